/* Within harness/config: the combinations that sweep.exclude leaves out. */
#ifndef MLBENCH_CONFIG_EXCLUDE_H
#define MLBENCH_CONFIG_EXCLUDE_H

#include "harness/base/error.h"
#include "harness/config/config.h"

#include <stdbool.h>
#include <stddef.h>

struct exclude_condition {
	/* the axis has this value; axis EXCLUDE_ALWAYS or EXCLUDE_NEVER: fixed */
	size_t axis, value;
	bool ends; /* the last condition of its combination */
};

#define EXCLUDE_ALWAYS ((size_t)CONFIG_AXES_MAX)
#define EXCLUDE_NEVER ((size_t)CONFIG_AXES_MAX + 1)

struct exclude {
	struct exclude_condition *conditions; /* owned */
	size_t count;
};

/* Reads text, "a.b=1 c.d=2; a.b=3": a point is excluded when all conditions of a combination hold.  A
 * condition on a key that is not swept compares its fixed value. */
int exclude_open(
	struct exclude *exclude, const struct config *config, const char *text, struct error *err);
void exclude_close(struct exclude *exclude);

/* choice: value index per axis */
bool exclude_matches(const struct exclude *exclude, const size_t *choice);

#endif
