/* Saved results: what a name on the command line means. */
#ifndef MLBENCH_COMMAND_SAVED_H
#define MLBENCH_COMMAND_SAVED_H

#include "harness/base/error.h"
#include "harness/record/record.h"

#include <stdbool.h>

/* A result is named by a run's folder, a file in it, or a benchmark's name in results/.
 * Of the runs of a benchmark: the newest, or, for a command that is about many settings, the
 * newest sweep before any newer single point. */
enum saved_choice { SAVED_NEWEST, SAVED_SWEEP_FIRST };

/* Opens it, and says on stderr which one it is. */
int saved_open(
	struct record *record, const char *name, enum saved_choice choice, struct error *err);
/* Opens the newest; the caller says. */
int saved_find(struct record *record, const char *name, struct error *err);

/* A folder, a file of a result, or a name in results/: not a configuration. */
bool saved_is_meant(const char *name);

/* -EINVAL: it is a lab's, which is not over; saved_open and saved_find ask by themselves. */
int saved_may_open(const struct record *record, struct error *err);

#endif
