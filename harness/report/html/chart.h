/* The charts of a result's page: one file each, ending in a const struct chart_kind, in the page's order in
 * chart_kinds.  A chart is a pure function of the saved result. */
#ifndef MLBENCH_REPORT_HTML_CHART_H
#define MLBENCH_REPORT_HTML_CHART_H

#include "harness/record/trace.h"
#include "harness/report/html/page.h"
#include "harness/report/report.h"

struct verification; /* harness/analyze/experiment.h */

struct chart_input {
	const struct report *report; /* diagnosed */
	/* The point that charts of one point are about, the best one or the user's; grid.points: none was measured. */
	size_t point;
	const struct measurement *m; /* its repetition of the median throughput; NULL: none */
	const struct traces *traces; /* of that repetition; NULL: none */
	const struct verification *verification; /* of that point; NULL: none */
};

struct chart_kind {
	const char *id, *title;
	/* Fills text, spec and table, or why_not.  0 or -ENOMEM. */
	int (*build)(const struct chart_input *input, struct chart *chart);
};

extern const struct chart_kind
	chart_ladder,    /* capacity of each stage, achieved, needed by the step */
	chart_heatmap,   /* throughput over two keys, slider for the third; frontier and knee */
	chart_stages,    /* working, starved, blocked of each stage at each point */
	chart_timeline,  /* throughput, queues, CPU, device, memory over time; warm-up and phases */
	chart_latency,   /* CDFs of service times, with percentiles */
	chart_predicted, /* predicted against measured */
	chart_scaling,   /* throughput over workers, USL fit with its interval */
	chart_roofline;  /* of the step */
extern const struct chart_kind *const chart_kinds[]; /* NULL-terminated, in the page's order */

#endif
