/* Whether the twin of a case is like the job: what a short run of it gave beside what is known of the job, what of the twin was
 * assumed and can be corrected by that, and what is said of it in the case.  Pure functions.
 *
 * Throughput, the trainer's wait, the loader's CPU time and the cause are compared.  A twin that is more than 15 % off, or that
 * something else limits, is unfaithful, unless other processes disturbed its run: then it is not checked.
 *
 * Corrections.  A step is as long as the time between batches without the wait.  A loader that is too fast or too slow for the
 * wait gets the difference as waiting, or less overhead; of a loader whose CPU time was only guessed, as CPU time.  What is
 * neither known nor guessed, but missing by more than a quarter of the loader's time for a sample, is not made up: then
 * something of the job is not in the twin, and it stays unfaithful. */
#ifndef MLBENCH_FIT_TWIN_CHECK_H
#define MLBENCH_FIT_TWIN_CHECK_H

#include "harness/fit/case.h"
#include "harness/record/measurement.h"

#define TWIN_OFF 0.15 /* of the job's throughput: more is another job */

/* What a run of the twin gave. */
struct twin_run {
	double rate;   /* samples/s, median of the repetitions */
	double spread; /* of them: (most - least) / median; NAN: one repetition */
	double wait;   /* share of the time in which the step waits for its batch; NAN: not known */
	double cpu;    /* ns of CPU time of reading and decoding a sample; NAN: not known */
	double stall_every; /* steps from one that stalls to the next, where the job's stall; NAN: not known */
	char stage[NAME_BYTES], resource[NAME_BYTES]; /* of its diagnosis; "": none */
	double confidence;
	const char *disturbed; /* by whom its run was; "": by nobody */
};

/* Why the twin cannot be compared with the job here, as far as the case tells; NULL: it can. */
const char *twin_cannot_check(const struct case_file *file, double cores_here);

struct twin_corrections {
	const bool *fixed; /* KEY_COUNT flags: keys that the user said stay */
	bool changed;      /* by the last call: the twin has to run again */
	double step_shift; /* ns, of all calls: what recorded steps were made longer by; 0 at first */
};

/* From how many ns on a step of the twin is one that stalls; NAN: the job's do not stall. */
double twin_stalls_from(const struct case_file *file);

/* Corrects what was assumed; nothing where other processes disturbed the run of a twin that was slower than the job. */
int twin_correct(struct case_file *file, const struct twin_run *run, struct twin_corrections *to,
	struct error *err);

/* Says in the case how like the job the twin is: file->check and file->compared. */
int twin_judge(struct case_file *file, const struct twin_run *run, struct error *err);

#endif
