/* Files that are written as configurations are and have sections of their own: cases, labs, plans of acceptance.  Whoever
 * reads such files describes them in one struct section_owner, the program registers it (main.c), and neither the
 * configuration nor what commands share knows of them otherwise. */
#ifndef MLBENCH_CONFIG_SECTION_OWNER_H
#define MLBENCH_CONFIG_SECTION_OWNER_H

#include "harness/base/error.h"

#include <stdbool.h>

/* What a file is asked for that may be another's. */
enum section_wanted { SECTION_WANTS_CONFIG, SECTION_WANTS_RESULT };

struct section_owner {
	/* Those that a configuration may have and passes over, NULL-terminated: the first one begins such a file, and the
	 * others stand below it.  NULL: a configuration may have none.  A file with the first is foreign: others may have
	 * written it. */
	const char *const *sections;
	bool variants; /* [FIRST.NAME] is a first one, too */

	/* Whether that file is one, and what is said to who took it for `not_a`.  May be NULL. */
	bool (*is)(const char *path);
	enum section_wanted not_a;
	void (*refuse)(const char *name, struct error *err);

	/* Whether what was measured in a folder may be opened; for those that hide it for a time.  May be NULL. */
	int (*may_open)(const char *folder, struct error *err);
};

/* NULL-terminated, for as long as the program runs; before other threads do. */
void section_owners_register(const struct section_owner *const *owners);
const struct section_owner *const *section_owners(void); /* NULL-terminated; none before that */

/* NULL: it is nobody's. */
const struct section_owner *section_owner_of(const char *section);
bool section_begins(
	const struct section_owner *owner, const char *section); /* the first, or a variant */
bool section_is_of(const struct section_owner *owner, const char *section);
/* It begins a file that others may have written. */
bool section_is_foreign(const char *section);

/* Whether the file at path, called NAME by the user, is no `wanted` but an owner's; then err says so. */
bool section_owners_refuse(
	const char *path, const char *name, enum section_wanted wanted, struct error *err);

#endif
