/* Whether what somebody reported of a training job is seen here, by repetitions of its twin and of
 * variants of it that ran in turns.  Pure functions.
 *
 * A variant is the twin with one suspected cost taken away.  If that cost binds, throughput rises
 * without it; if it does not rise, something else binds.  So the cause is shown by experiment, and
 * not only read off a trace.
 *
 * Throughput.  The median of ln(samples/s), and its interval against the band from low (1 -
 * tolerance) to high (1 + tolerance) around the reported interval.  Wholly inside: within. Wholly
 * outside: beyond.  Else open.  This is an equivalence test (D. Schuirmann, J. Pharmacokin.
 * Biopharm. 15, 1987): that the twin is like the job has to be shown, and few or noisy repetitions
 * show nothing.
 *
 * Interval.  That of the test of pairs (paired_test.h), of repetitions against the reported rate:
 * it holds at all looks together at 95 %, so that one may stop at the first look that decides.
 * Looks are after 4, 6, 9, 14, 21, 32 and 48 repetitions, and where the budget ends.  Repetitions
 * may have heavy tails: one stalled repetition among four hardly widens it, where Student's t over
 * the same looks gave an interval too wide to decide.  None is left out; those that stand out are
 * counted, and the words say so.  tests/unit/test_reproduction.c and tests/bench/bench_looks.c hold
 * both errors to the promise by simulation: of a twin whose truth lies on the edge of the band
 * fewer than 5 % are called within, and as few beyond.
 *
 * Between runs on different days a node differs by more than repetitions tell; a deviation of
 * COMPARE_RUN_DEVIATION is added to every interval for it (comparison.h).
 *
 * Cause.  The same, where the diagnosis of the twin names the reported stage and resource (or one
 * of those that an observation from outside cannot tell apart), and
 * relieving the stage gains more than 5 %, and relieving no other stage gains more, beyond both
 * intervals.  Where no variant can relieve the stage, the diagnosis alone decides, and the words
 * say so.  A twin whose step was made of the reported rate, for nothing else told it, gives that rate
 * whatever the job is like: where that step limits it, its throughput shows nothing.  An experiment stands above a diagnosis: where they differ the cause is open, unless the
 * experiment says that another stage binds. */
#ifndef MLBENCH_ANALYZE_REPRODUCTION_H
#define MLBENCH_ANALYZE_REPRODUCTION_H

#include "harness/analyze/point_model.h"
#include "harness/analyze/statistics.h"
#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	REPRODUCTION_REPEATS_LEAST = 3, /* that have an interval */
	REPRODUCTION_REPEATS_MAX = 48,
	REPRODUCTION_VARIANTS_MAX = 10,
	REPRODUCTION_WORDS_BYTES = 240,
	REPRODUCTION_TEXT_BYTES = 96,
	REPRODUCTION_RESOURCE_BYTES = 64, /* of a case's (finding.h) */
	REPRODUCTION_DIFFERENCES_MAX = 16,
	REPRODUCTION_REPEATS_ADVISED = 200,
};

#define REPRODUCTION_TOLERANCE 0.10 /* unless another is asked for */
#define REPRODUCTION_SURE 0.5       /* a case's verdict counts from this confidence on */
#define REPRODUCTION_GAIN 0.05      /* the least that a relieved stage gains, if it binds */

/* What the case says, in the words of a verdict (verdict.h). */
struct reproduction_reported {
	double rate;              /* samples/s; NAN: it says none */
	struct interval interval; /* NAN: not known, then the rate alone */
	/* "read", or several of which the report does not say which: "decode or step"; "" or "unknown": none */
	char stage[NAME_BYTES];
	/* "latency", or several of which the report does not say which: "latency or full"; "" or "unknown": none */
	char resource[REPRODUCTION_RESOURCE_BYTES];
	double confidence; /* NAN: not known, which is no reason to doubt it */
};

/* What a diagnosis of the twin's repetitions says. */
struct reproduction_seen {
	char stage[NAME_BYTES], also[NAME_BYTES]; /* as struct verdict has them */
	char resource[NAME_BYTES];
	double confidence;
	bool by_replay; /* the diagnosis abstains: its costs name a resource, and no cause of why that is short */
};

/* The middle of several rates or ratios, all > 0. */
struct reproduction_mean {
	size_t count;             /* of values that there are */
	double value;             /* the median; NAN: none */
	struct interval interval; /* 95 % over all looks; NAN: too few */
	double deviation;         /* of ln of one, stalls aside; NAN likewise */
	size_t stood_out;         /* further away than the others by far; they count */
};

enum reproduction_relief {
	RELIEF_OPEN,
	RELIEF_GAINS,   /* more than REPRODUCTION_GAIN, beyond its interval */
	RELIEF_NOTHING, /* its interval is below that */
};

/* A variant of the twin in which a stage costs nothing. */
struct reproduction_variant {
	char stage[NAME_BYTES];
	bool aside; /* no stage is relieved (more workers): it is told, and proves no cause */
	char what[REPRODUCTION_TEXT_BYTES]; /* "files from memory" */
	/* Variant over twin, of each round; NAN: one of them did not run, or does not count. */
	double ratios[REPRODUCTION_REPEATS_MAX];
	size_t count;
	/* By reproduction_judge. */
	struct reproduction_mean ratio;
	enum reproduction_relief relief;
	bool reported; /* its stage is the reported one */
};

enum reproduction_rate {
	RATE_UNTOLD, /* the case has no throughput */
	RATE_OPEN,
	RATE_WITHIN,
	RATE_BELOW,
	RATE_ABOVE,
};

enum reproduction_cause {
	CAUSE_UNTOLD, /* the case names none, or is not sure of it */
	CAUSE_OPEN,
	CAUSE_SAME,
	CAUSE_OTHER_STAGE,
	CAUSE_OTHER_RESOURCE, /* of the same stage */
};

enum reproduction_outcome { REPRODUCTION_OPEN, REPRODUCTION_SHOWN, REPRODUCTION_REFUTED };

struct reproduction {
	struct reproduction_reported reported;
	bool step_is_of_rate;                   /* the twin's step was made of the reported rate */
	double tolerance;                       /* a share, > 0 */
	double rates[REPRODUCTION_REPEATS_MAX]; /* samples/s of the twin's repetitions that count */
	size_t rate_count;
	struct reproduction_seen seen;
	struct reproduction_variant variants[REPRODUCTION_VARIANTS_MAX];
	size_t variant_count;

	/* By reproduction_judge. */
	struct interval band; /* that the twin's interval has to lie in; NAN: none */
	struct reproduction_mean twin;
	enum reproduction_rate rate;
	enum reproduction_cause cause;
	bool by_diagnosis; /* the cause: no variant relieves the reported stage */
	bool circular;     /* the rate is the reported one since the step was made of it */
	/* Of the variants, the one that gained most, beyond the reported stage's gain if that is
	 * another; variant_count: none gained. */
	size_t most;
	enum reproduction_outcome outcome;

	/* By reproduction_advise.  OPEN: so many repetitions in all would decide four times in five; 0:
	 * not known, or more than REPRODUCTION_REPEATS_ADVISED, and then `edge` says which. */
	size_t repeats_needed;
	bool edge; /* the truth lies so near to an edge that no number of repetitions decides soon */
	char why[REPRODUCTION_WORDS_BYTES]; /* OPEN: what is open; else "" */
};

/* Whether it is time to look, with so many repetitions of each. */
bool reproduction_is_look(size_t repeats);
/* The next number of repetitions to look at, above this one; REPRODUCTION_REPEATS_MAX at most. */
size_t reproduction_next_look(size_t repeats);

/* Fills everything that is "by reproduction_judge". */
void reproduction_judge(struct reproduction *reproduction);
/* Whether only the diagnosis is open, which more repetitions of this kind hardly change. */
bool reproduction_is_stuck(const struct reproduction *reproduction);
/* After that: what is open, and how many repetitions would decide. */
void reproduction_advise(struct reproduction *reproduction);

const char *reproduction_outcome_name(enum reproduction_outcome outcome);
const char *reproduction_rate_name(enum reproduction_rate rate);
const char *reproduction_cause_name(enum reproduction_cause cause);
const char *reproduction_relief_name(enum reproduction_relief relief);

/* --- what would have to differ ---------------------------------------------------------------- */

/* By what factor a cost of the twin would have to be another for the replay to give the reported
 * rate: 1.8: it would have to take 1.8 times as long. */
struct reproduction_need {
	char stage[NAME_BYTES], resource[NAME_BYTES];
	double factor; /* NAN: no factor from 1/1000 to 1000 gives it */
};

/* Costs of one stage and resource that take any time, in the replay's order; at most `room`. */
int reproduction_needs(const struct model *model, double rate, struct reproduction_need *needs,
	size_t room, size_t *count, struct error *err);

/* How likely a difference of the environments is the reason, heaviest first. */
enum reproduction_weight {
	WEIGHT_EXPLAINS, /* put into the replay, it alone gives the reported rate */
	WEIGHT_PART,     /* it goes that way, and not as far */
	WEIGHT_MAY,      /* it acts on a stage that could give the rate, by how much is not known */
	WEIGHT_UNLIKELY, /* no change of what it acts on gives the rate, or it goes the other way */
};

/* What of the twin's environment another value stands for. */
enum reproduction_lever {
	LEVER_NONE,      /* on nothing that the replay has: a kernel's version */
	LEVER_CORES,     /* value: cores */
	LEVER_QUOTA,     /* value: cores' worth of CPU time */
	LEVER_LATENCY,   /* value: ns that a file takes beyond its bytes */
	LEVER_BANDWIDTH, /* value: bytes/s; needs sample_bytes */
	LEVER_STAGE,     /* on this stage, in an unknown measure: the kind of storage, a device */
};

struct reproduction_difference {
	char name[REPRODUCTION_TEXT_BYTES]; /* "cores" */
	char reported[REPRODUCTION_TEXT_BYTES], here[REPRODUCTION_TEXT_BYTES];
	enum reproduction_lever lever;
	double value;           /* reported; NAN: not known */
	char stage[NAME_BYTES]; /* LEVER_STAGE */
	/* By reproduction_rank. */
	double predicted; /* samples/s here with the reported value, by replay; NAN: not known */
	enum reproduction_weight weight;
};

/* Weighs them by replay, and sorts them.  model NULL: nothing is predicted, and all MAY.
 * sample_bytes: that the source reads for a sample; NAN: not known. */
int reproduction_rank(struct reproduction_difference *differences, size_t count,
	const struct model *model, double sample_bytes, const struct reproduction *reproduction,
	struct error *err);

/* Whether the resource is one of those that were reported: they may be several. */
bool reproduction_allows(const char *reported, const char *resource);

const char *reproduction_weight_name(enum reproduction_weight weight);

#endif
