/* Plug-ins: shared libraries of ours that are opened at run time, so that one build runs on nodes with and without what they
 * need.  Each exports one function, which returns its table of functions. */
#ifndef MLBENCH_BASE_PLUGIN_H
#define MLBENCH_BASE_PLUGIN_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* Where its file is: what the environment names by `variable` (then nothing else is looked at), else in `folder`, ../lib/mlbench or
 * ../lib from there; "": nowhere.  True: the environment named it. */
bool plugin_find(
	const char *variable, const char *file, const char *folder, char *out, size_t room);

/* Its one function, of whatever type it has. */
typedef void plugin_entry(void);

/* Opens a file and looks its function up.  what: "CUDA".  -ENOENT with the linker's words when it or a library that it needs is
 * missing or broken; -ENOTSUP: it lacks the function.  *library is for dlclose. */
int plugin_open(void **library, plugin_entry **out, const char *path, const char *entry,
	const char *what, struct error *err);

/* What its table says of itself. */
struct plugin_of {
	unsigned abi;
	const char *version;
};
/* Whether it is of this build; of NULL: it has no table.  -ENOTSUP. */
int plugin_check(const char *path, const char *what, const struct plugin_of *of, unsigned abi,
	struct error *err);

#endif
