/* What a plan asks of a figure: clauses joined by "and", parsed once, judged many times.  There is no evaluation of
 * expressions and no code in a plan.
 *
 *	>= 2,000 samples/s            also > <= < =; the unit is checked
 *	>= 90 % of peak               of baseline, of median, of best: of all places of this node
 *	within 5 % of baseline        on the bad side by the figure's sense; "either side of" instead of "of"
 *	within 10 % of 2,000 samples/s
 *	spread <= 3 %                 of the repetitions: (p84 - p16) / 2 over the median
 *	similarity >= 0.95            1 - area between the cumulative distributions, to the baseline's
 *	equal                         all places and repetitions have the same value
 *	is *H100*                     a text, by globs; "is one of a, b", "is not a", "has a, b" (all of a list)
 *	known                         any value, but one
 *	... or missing                a node that lacks it skips the criterion, as with if_missing = skip */
#ifndef MLBENCH_ACCEPT_CRITERION_H
#define MLBENCH_ACCEPT_CRITERION_H

#include "harness/accept/figures.h"
#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum clause_kind {
	CLAUSE_LIMIT,  /* op against value x reference */
	CLAUSE_WITHIN, /* value: the share; reference, or absolute */
	CLAUSE_SPREAD,
	CLAUSE_SIMILARITY,
	CLAUSE_EQUAL,
	CLAUSE_IS,
	CLAUSE_IS_NOT,
	CLAUSE_HAS,
	CLAUSE_KNOWN,
};
enum clause_op { CLAUSE_LESS, CLAUSE_LESS_EQUAL, CLAUSE_MORE, CLAUSE_MORE_EQUAL, CLAUSE_SAME };
enum clause_of { OF_NOTHING, OF_PEAK, OF_BASELINE, OF_MEDIAN, OF_BEST };

enum { CRITERION_CLAUSES_MAX = 4, CRITERION_WORDS_MAX = 32 };

struct clause {
	enum clause_kind kind;
	enum clause_op op;
	enum clause_of of;
	bool either_side;
	double value;                     /* in the figure's base unit, or a share of `of` */
	double absolute;                  /* WITHIN with of = OF_NOTHING: of what */
	char *words[CRITERION_WORDS_MAX]; /* IS, IS_NOT: globs; HAS: words; owned */
	size_t word_count;
};

struct criterion {
	char *text; /* as written; owned */
	struct clause clauses[CRITERION_CLAUSES_MAX];
	size_t clause_count;
	bool may_miss; /* "or missing" */
};

/* -EINVAL with what is wrong and an example for this figure; also where it bounds only the good side of the figure, or holds for
 * no value.  On failure there is nothing to release. */
int criterion_parse(const struct figure *figure, const char *text, struct criterion *criterion,
	struct error *err);
void criterion_release(struct criterion *criterion); /* safe on {0} */
bool criterion_needs(const struct criterion *criterion, enum clause_of of);

/* Whether a warning of this criterion could only come after a failure of the other one: a limit of both, of the same reference,
 * that the warning has laxer. */
bool criterion_is_laxer(
	const struct criterion *warns, const struct criterion *fails, const struct figure *figure);

/* The limit of a LIMIT or WITHIN clause, given what it is a share of (reference; ignored where it is none): values at
 * or on the good side of [*low, *high] hold; -INFINITY, INFINITY: no limit on that side.  *open: the limit itself does
 * not hold (< >). */
void clause_bounds(const struct clause *clause, const struct figure *figure, double reference,
	double *low, double *high, bool *open);

#endif
