/* Which of the differences between two configurations explain that one is slower: delta debugging (A. Zeller and R. Hildebrandt,
 * Simplifying and isolating failure-inducing input, IEEE Trans. Softw. Eng. 28, 2002) on measurements.  Pure: whoever asks
 * the questions of this file runs what they are about.
 *
 * A mixture has the bad values of some differences and the good ones of all others; the empty set is GOOD, all of them are
 * BAD.  A question compares two mixtures by d = ln(rate of the one / rate of the other) and is answered only when that is
 * sure; a mixture that cannot run, or about which it does not become sure, is unresolved, and never guessed.
 *
 * Search.  Differences are ordered by how much they are suspected.  The shortest prefix that is as slow as all of them, found
 * by halving the suspicion, ends with a difference that matters; it is kept, and the rest of the prefix is searched in the
 * same way until what was kept is as slow as all.  One culprit among n takes log2 n questions, one question where the
 * suspicion is right, and each further one as many again: fewer than ddmin's chunks and complements, with the same promise
 * (1-minimality: each that was kept is taken out once, and dropped where that changes nothing).  Differences between which all
 * mixtures are unresolved belong together: one cause.
 *
 * "As slow" means: explains at least half of the loss, and "not as slow": leaves more than a sixth of it; between the two
 * either answer will do, so that no question lingers at a threshold.  What is left is looked for in turn: the remaining
 * differences are compared with GOOD (causes that the first one hides, or smaller ones), and all causes together with BAD
 * (what shows only beside them); first as far as a tenth or so, then, which takes longer, as far as the margin.  A
 * cause that another difference makes up for is not seen by this.
 *
 * Blame.  The search may err more often, because nobody is blamed by it: each cause is measured from both sides, added to
 * GOOD and taken out of BAD, and is confirmed by one of these, or by what is lost without it, at a rate of DELTA_RATE each.
 * The two sides differ where causes interact. */
#ifndef MLBENCH_ANALYZE_DELTA_DEBUG_H
#define MLBENCH_ANALYZE_DELTA_DEBUG_H

#include "harness/analyze/paired_test.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DELTA_RATE 0.001 /* of a wrong answer, each */
#define DELTA_SEARCH_RATE 0.01

enum { DELTA_ITEMS_MAX = 256, DELTA_WORDS = DELTA_ITEMS_MAX / 64, DELTA_CAUSES_MAX = 32 };

/* The differences whose bad value a mixture has. */
struct delta_set {
	uint64_t words[DELTA_WORDS];
};
bool delta_has(const struct delta_set *set, size_t item);
void delta_put(struct delta_set *set, size_t item);
size_t delta_size(const struct delta_set *set);
bool delta_equal(const struct delta_set *a, const struct delta_set *b);
struct delta_set delta_all(size_t count);
struct delta_set delta_union(const struct delta_set *a, const struct delta_set *b);
struct delta_set delta_without(const struct delta_set *set, const struct delta_set *out);

/* What a question is for. */
enum delta_purpose {
	DELTA_LOSS,   /* whether BAD is slower than GOOD at all */
	DELTA_SEARCH, /* whether these are as slow as those */
	DELTA_NEEDED, /* whether a cause is needed beside the others */
	DELTA_REST,   /* whether the remaining differences are as fast as GOOD */
	DELTA_WHOLE,  /* whether all causes together are as slow as BAD */
	DELTA_ADDED,  /* what a cause costs in GOOD */
	DELTA_REMOVED /* what it gives back in BAD */
};
const char *delta_purpose_name(enum delta_purpose purpose); /* "search" */

enum delta_answer {
	DELTA_BELOW,
	DELTA_ABOVE,
	DELTA_UNCLEAR, /* in the time or the repetitions that a question may take */
	DELTA_INVALID, /* one of the two cannot run */
	DELTA_OVER     /* the time of all questions is over, or somebody stopped it */
};

/* DELTA_BELOW once d is surely below `below`, DELTA_ABOVE once it is surely above `above`, which may lie below `below`: then
 * either will do in between.  Enough is known, too, once half of the interval is `width` (0: never), and nothing else is
 * sure: that is DELTA_UNCLEAR. */
struct delta_question {
	enum delta_purpose purpose;
	struct delta_set mix, reference;
	double below, above, width;
	double rate;                     /* of a wrong answer */
	double hint;                     /* the loss, for paired_beliefs; 0: not known */
	struct paired_estimate estimate; /* the answerer's: of d */
};
typedef enum delta_answer delta_ask(void *context, struct delta_question *question);

/* Whether d is known well enough: what an answerer asks after each pair. */
bool delta_is_answered(
	const struct delta_question *question, const struct paired_estimate *estimate);
enum delta_answer delta_answer_of(
	const struct delta_question *question, const struct paired_estimate *estimate);

struct delta_task {
	size_t count; /* differences, 1 to DELTA_ITEMS_MAX */
	const double *
		suspicion; /* (count) how much each may cost; any scale, none below 0; NULL: all alike */
	double margin; /* a share: what costs less than that is nothing */
	delta_ask *ask;
	void *context;
};

struct delta_cause {
	struct delta_set items; /* one, or several that could not be told apart */
	bool ambiguous; /* several, because answers stayed unclear: some of them; else they can only change together */
	bool confirmed; /* it costs more than the margin in some mixture, for sure */
	struct paired_estimate added,
		removed; /* ln(GOOD and it / GOOD), ln(BAD / BAD without it); pairs 0: not measured */
};

enum delta_status {
	DELTA_EXPLAINED,  /* and all that is not blamed costs less than `within`, for sure */
	DELTA_NO_LOSS,    /* BAD is surely not slower than GOOD by the margin */
	DELTA_UNKNOWN,    /* whether there is a loss is not clear */
	DELTA_PARTLY,     /* all questions were asked, some stayed unclear */
	DELTA_UNFINISHED, /* the time was over */
};

struct delta_result {
	enum delta_status status;
	struct paired_estimate loss;  /* ln(BAD / GOOD) */
	struct paired_estimate rest;  /* ln(GOOD and all that is not blamed / GOOD) */
	struct paired_estimate whole; /* ln(all causes / BAD) */
	struct delta_cause causes[DELTA_CAUSES_MAX]; /* in the order in which they were found */
	size_t cause_count;
	double within; /* a share: the margin, or more where that stayed unclear; NAN: not sure of any */
	struct delta_set remaining; /* among which there may be another cause; empty: none */
	size_t questions;           /* that were not invalid */
};

/* Depends on the answers alone. */
void delta_debug(const struct delta_task *task, struct delta_result *result);

#endif
