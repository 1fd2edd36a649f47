/* INI files line by line, for whoever knows what their keys mean: sections, "key = value", comments, "include = FILE".  What
 * a line may look like stands at config_read_file (config.h). */
#ifndef MLBENCH_CONFIG_INI_H
#define MLBENCH_CONFIG_INI_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { INI_NAME_BYTES = 80 /* of a key or a section as written; longer ones are none of ours */ };

/* Where a line stands. */
struct ini_place {
	const struct ini_place *outer; /* of the including line; NULL */
	const char *name;              /* of the file */
	int file; /* its number, from 0 in the order in which they are opened */
	int line;
	bool foreign; /* the file has a section that target->foreign says is of others' files */
	void *scope;  /* scope_size bytes of the file's own, zeroed at its start */
};

/* Who takes the lines; each returns 0, or a negative errno with err, in front of which the place is put. */
struct ini_target {
	void *context;
	int (*section)(
		void *context, const struct ini_place *place, const char *name, struct error *err);
	/* section "": in front of any; text: as written, with variables (expand_variables) */
	int (*value)(void *context, const struct ini_place *place, const char *section,
		const char *key, const char *text, struct error *err);
	/* Sections of files that are passed on; such a file includes nothing.  NULL: there are none. */
	bool (*foreign)(const char *section);
	size_t scope_size;
	const char *const *
		lists; /* "sweep.zip": values with ';', which begins no comment there; NULL-terminated, or NULL */
};

/* -EINVAL: a line is wrong; -errno: the file cannot be read. */
int ini_read_file(const struct ini_target *target, const char *path, struct error *err);
/* From memory, where includes are refused; name stands for the file in messages. */
int ini_read_text(const struct ini_target *target, const char *name, const char *text, size_t size,
	struct error *err);

#endif
