/* The steps of a verdict, shared by the files that make it: gate -> arrow -> cause -> words.
 * Internal to analyze; summary.h is the way in. */
#ifndef MLBENCH_ANALYZE_VERDICT_PARTS_H
#define MLBENCH_ANALYZE_VERDICT_PARTS_H

#include "harness/analyze/summary.h"

#include <stdbool.h>
#include <stddef.h>

/* What is judged: the summary, and the repeats it was made of. */
struct evidence_base {
	const struct point_summary *point;
	const struct measurement *const *repeats;
	size_t count;
	const struct point_facts *facts;
};

/* gate.c: whether the measurements may be judged at all; false with the reason. */
bool gate_passes(const struct evidence_base *base, char *reason, size_t room);

/* arrow.c: which stage binds. */
struct binding {
	size_t stage;       /* index into point->stages */
	size_t second;      /* the stage that binds as much; stage_count: none */
	double second_gap;  /* second's spare utilisation over the first's: 0.03 is "within 3 %" */
	double certainty;   /* that the arrows at the stage point the right way, 0..1 */
	bool conflict;      /* the busiest stage is not where the arrows point */
	bool depth;         /* no stage is busy: the queue between two of them is what binds */
	size_t queue_above; /* depth: the stage above that queue */
};
struct binding binding_find(const struct evidence_base *base);
/* The stage with the next least capacity after `but`; stage_count when none shows one. */
size_t binding_next_capacity(const struct point_summary *point, size_t but);

/* cause.c: which resource the stage lacks. */
struct cause {
	const char *resource;
	double certainty;           /* 0..1, given that the stage is right */
	char words[EVIDENCE_BYTES]; /* the figures behind it */
};
struct cause cause_of_stage(const struct evidence_base *base, const struct stage_summary *stage);

/* evidence.c: sentences with figures. */
void evidence_write(const struct evidence_base *base, const struct binding *binding,
	const struct cause *cause, struct verdict *out);
void evidence_add(struct verdict *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* advice.c: what to turn, with what may be expected of it. */
void advice_write(const struct evidence_base *base, const struct binding *binding,
	const struct cause *cause, struct verdict *out);

#endif
