/* What recorded service times show by themselves, without a model: two populations (hits and
 * misses), or a straggler worker. Pure functions on the traces of one stage over the
 * repetitions of a point. */
#ifndef MLBENCH_ANALYZE_TRACE_FEATURES_H
#define MLBENCH_ANALYZE_TRACE_FEATURES_H

#include "harness/record/trace.h"

#include <stdbool.h>
#include <stddef.h>

enum { TRACE_SET_MAX = 16 };

/* One stage's traces, of the first TRACE_SET_MAX repeats that have any. */
struct trace_set {
	const struct trace *of[TRACE_SET_MAX];
	size_t count, items;
};

struct trace_set trace_set_of(const struct traces *const *traces, size_t count, const char *stage);

/* Two populations of service times: a split of their logarithms (Otsu) that explains most of the
 * variance, with the means far apart and neither side rare. Only of what file sizes do not explain:
 * two sizes of files are not two populations. */
struct trace_modes {
	bool two;
	double fast_share;       /* of the items */
	double fast_ns, slow_ns; /* geometric means */
	double explained;        /* share of the variance between the two */
};
struct trace_modes trace_modes_of(const struct trace_set *set);

/* The slowest worker against the median of the others, by medians of service times. */
struct trace_workers {
	unsigned seen;  /* workers with enough items */
	unsigned worst; /* the slowest */
	double ratio;   /* its median over that of the others; NAN: fewer than two */
	double worst_ns, others_ns;
};
struct trace_workers trace_workers_of(const struct trace_set *set);

/* Host time over the whole time of steps; NAN: not recorded. apart: the service time is the
 * device's alone (emulated); otherwise the host's time is part of it. */
double trace_host_share(const struct trace_set *set, bool apart);

#endif
