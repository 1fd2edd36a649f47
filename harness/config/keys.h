/* Within harness/config: names that are not in the table, and what was probably meant. */
#ifndef MLBENCH_CONFIG_KEYS_H
#define MLBENCH_CONFIG_KEYS_H

#include "harness/base/error.h"

#include <stdbool.h>

bool keys_have_section(const char *name);

/* Both return -EINVAL, with "unknown … 'x'; did you mean 'y'?" in err. */
int keys_refuse_section(const char *name, struct error *err);
int keys_refuse_key(const char *dotted, struct error *err);

#endif
