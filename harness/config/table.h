/* Within harness/config: names that are not in the table, and what was probably meant. */
#ifndef MLBENCH_CONFIG_TABLE_H
#define MLBENCH_CONFIG_TABLE_H

#include "harness/base/error.h"

#include <stdbool.h>

bool table_has_section(const char *name);

/* Both return -EINVAL, with "unknown … 'x'; did you mean 'y'?" in err. */
int table_unknown_section(const char *name, struct error *err);
int table_unknown_key(const char *dotted, struct error *err);

#endif
