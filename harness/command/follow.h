/* The diagnosis taken at its word: its first recommendation is set and measured, again and again, until it
 * has no more to say or what it says gains nothing. */
#ifndef MLBENCH_COMMAND_FOLLOW_H
#define MLBENCH_COMMAND_FOLLOW_H

#include "harness/command/command.h"
#include "harness/report/diagnosis_report.h"

enum { FOLLOW_DEFAULT = 8, FOLLOW_MOST = FOLLOW_STEPS_MAX - 1 };

/* Measures the invocation's CONFIG with `sets` more settings, saved into `out` (NULL: where results go); its
 * folder to *folder, owned by the caller, NULL when nothing was measured.  Returns the run's exit status. */
int follow_measure(const struct invocation *invocation, const char *const *sets, size_t count,
	const char *out, char **folder, struct error *err);

/* From the result in *folder on, at most `steps` settings more, each saved below it.  *folder becomes that of
 * the last setting that was kept.  Returns an exit status; what was met is in follow. */
int follow_advice(const struct invocation *invocation, size_t steps, char **folder,
	struct follow *follow, struct error *err);

#endif
