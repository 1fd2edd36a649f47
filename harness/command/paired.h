/* Several configurations measured in turns on this node, for `bisect` and `reproduce`.
 *
 * An arm is a configuration, with a smaller node emulated around it if wanted, and a result folder of its own in the
 * session's folder (OUT/LABEL), which every command takes like any other result.  A block is one repetition of each of some
 * arms, in a random order that run.seed and the number of the block decide.  Each repetition is saved as it ends; which ones
 * belong together stands in OUT/paired.jsonl, a line a block.  A kill therefore loses the repetition in flight and no more:
 * those of the same block are used again, if the session goes on within PAIRED_REUSE_S of them (later, the node may have
 * changed, and the block is measured anew).
 *
 * Which of two arms is slower is told by harness/analyze/paired_test.h.  One thread. */
#ifndef MLBENCH_COMMAND_PAIRED_H
#define MLBENCH_COMMAND_PAIRED_H

#include "harness/analyze/paired_test.h"
#include "harness/command/command.h"
#include "harness/command/node_emulation.h"
#include "harness/config/config.h"
#include "harness/record/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PAIRED_ARMS_MAX = 256,
	PAIRED_TOGETHER_MAX = 16, /* arms of a block */
	PAIRED_LABEL_BYTES = 48,
	/* Repetitions that fail one after another before an arm counts as broken: of one that never worked, and of one that did. */
	PAIRED_FAILURES_MOST = 2,
	PAIRED_FLAKES_MOST = 6,
	PAIRED_REUSE_S = 900,
};

struct paired;

struct paired_options {
	const struct invocation *
		invocation; /* its stop flag, and how it was called; --set is the caller's to apply */
	const char *folder; /* OUT; made if missing */
	uint64_t seed;
	double budget_s; /* of measuring in this call; INFINITY: none */
	bool resume; /* false: OUT must hold no session yet (-EEXIST); true: it must (-ENOENT) */
};

int paired_open(struct paired **paired, const struct paired_options *options, struct error *err);
void paired_close(struct paired *paired); /* ends all results; NULL is fine */

struct paired_arm_spec {
	const char *label;           /* a folder's name: letters, digits, '-', '_' and '.' */
	const char *name;            /* that its results are listed by; NULL: the label */
	const struct config *config; /* without a sweep; copied */
	struct node_limits node;
	bool keep_traces; /* service times, for diagnosis and replay */
	/* What its results say that it was measured with: conditions that a lab plants (harness/lab) stand in none of them, in no
	 * note either.  NULL: config. */
	const struct config *shown;
};

/* Plans it, opens or generates its data set, and makes or reopens its results.  *arm: its number.  The same label again gives
 * the same arm.  -EINVAL, -ENOTSUP, ...: this configuration cannot run here, which is no failure of the session; -EDOM: the
 * session that goes on had another configuration under that label. */
int paired_add(
	struct paired *paired, const struct paired_arm_spec *spec, size_t *arm, struct error *err);

/* One repetition of each.  -EINTR: stopped.  -ETIME: the budget does not have the time for it any more.  A repetition that
 * fails is no failure of the block: see paired_arm_broken.  Other codes: results cannot be saved. */
int paired_block(struct paired *paired, const size_t *arms, size_t count, struct error *err);

struct paired_question {
	size_t a, b;       /* d = ln(a / b) */
	double rate;       /* of a wrong answer */
	double hint;       /* a difference that is likely, as in paired_test.h; 0: none */
	size_t pairs_most; /* after which it stays open */
};

/* Whether an estimate answers the question of the context. */
typedef bool paired_enough(void *context, const struct paired_estimate *estimate);

/* Measures a and b in turns until it is answered, there are pairs_most pairs, or something ends it (0 then, too: the estimate
 * tells; -ETIME, -EINTR as paired_block).  Pairs that are there already count.  -EIO: an arm is broken, err says why. */
int paired_ask(struct paired *paired, const struct paired_question *question, paired_enough *enough,
	void *context, struct paired_estimate *estimate, struct error *err);

/* --- what was measured ------------------------------------------------------------------------ */

/* samples/s of an arm's repetitions, in their order; NAN: that one failed.  Borrowed until the next block. */
const double *paired_rates(const struct paired *paired, size_t arm, size_t *count);
/* ln(a / b) of each block that has both, in their order; at most `room`, the newest. */
size_t paired_ratios(const struct paired *paired, size_t a, size_t b, double *out, size_t room);
/* NULL: it is not; else why. */
const char *paired_arm_broken(const struct paired *paired, size_t arm);
const struct record *paired_record(const struct paired *paired, size_t arm);
/* Noise of all pairs of the session so far. */
const struct paired_noise *paired_noise_of(const struct paired *paired);
size_t paired_runs(
	const struct paired *paired); /* repetitions of the session, earlier calls included */
double paired_spent_s(const struct paired *paired); /* of measuring, in this call */
double paired_each_s(const struct paired *paired);  /* mean time of a repetition; NAN: none yet */

#endif
