/* The diagnosis taken at its word: its first recommendation is set and measured, again and again, until it
 * has no more to say or what it says gains nothing.  A prediction that does not come true lowers the confidence of the verdict
 * that made it, and its setting is undone unless the gain is real all the same. */
#ifndef MLBENCH_COMMAND_FOLLOW_H
#define MLBENCH_COMMAND_FOLLOW_H

#include "harness/command/command.h"
#include "harness/config/config.h"
#include "harness/report/diagnosis_report.h"

#include <stdatomic.h>

enum { FOLLOW_DEFAULT = 8, FOLLOW_MOST = FOLLOW_STEPS_MAX - 1 };

/* Measures the invocation's CONFIG with `sets` more settings, saved into `out` (NULL: where results go); its
 * folder to *folder, owned by the caller, NULL when nothing was measured.  Returns the run's exit status. */
int follow_measure(const struct invocation *invocation, const char *const *sets, size_t count,
	const char *out, char **folder, struct error *err);

/* A result on the way, as it was diagnosed. */
struct follow_place {
	struct config config;
	struct diagnosis diagnosis;
	double rate, half; /* samples/s; of the 90 % interval of its logarithm */
	struct interval rate_95;
	bool unsteady, contaminated;
};

/* How the way is gone: follow_advice's own measures and diagnoses; a test's need no time. */
struct follow_means {
	/* As follow_measure. */
	int (*measure)(void *context, const char *const *sets, size_t count, const char *out,
		char **folder, struct error *err);
	/* place is fresh, its config to be released whatever is returned. */
	int (*look)(
		void *context, const char *folder, struct follow_place *place, struct error *err);
	const atomic_bool *stop;
	void *context;
};

int follow_walk(const struct follow_means *means, size_t steps, char **folder,
	struct follow *follow, struct error *err);

/* From the result in *folder on, at most `steps` settings more, each saved below it.  *folder becomes that of
 * the last setting that was kept.  Returns an exit status; what was met is in follow. */
int follow_advice(const struct invocation *invocation, size_t steps, char **folder,
	struct follow *follow, struct error *err);

#endif
