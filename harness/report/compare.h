/* Two saved results held beside each other: a function of their records alone.  Every writer prints from this.
 *
 * mlbench compare A B ... is a function of saved results: harness/report/compare.c matches the
 * points of two records by the values of every key that either sweeps (comparison.h), takes
 * each metric of each repetition (compare_gate.c: the one table that extraction, tables and
 * gates share), and tests point by point (comparison.h: its head is the reasoning; the
 * section on stalls in compare_statistics.c is the second test, without each side's worst
 * repetitions, and its constants are drawn anew by a test). What else differs is weighed by two
 * tables at the head of compare_facts.c: a setting, a detail, likely to matter by itself, or
 * other work, which is refused. comparison.h has the grammar of --fail-if and --require and
 * their three outcomes: worse, within the limit, inconclusive. test_compare_gate holds both
 * errors to the level of significance. --until-sure (harness/command/cmd_compare.c) runs two
 * sessions that take turns; what they leave says so in its header, and is compared without a
 * variance between runs.
 *
 * The loss at one point, the surest, is divided among the stages by exchanging their costs in the
 * replay (compare_facts.c): each subset of stages is replayed with B's costs in A's model, and
 * a stage gets its Shapley value, so that the parts sum to what the two replays differ by.
 * Threads and buffers, and the cores (how many, others' load), are parts of their own. Without
 * service times in sequence the least of the capacities stands for the replay, and the words say
 * so. */
#ifndef MLBENCH_REPORT_COMPARE_H
#define MLBENCH_REPORT_COMPARE_H

#include "harness/analyze/comparison.h"
#include "harness/base/buffer.h"
#include "harness/report/report.h"
#include "harness/report/style.h"

#include <jansson.h>

enum { COMPARE_REMARKS_MAX = 16, COMPARE_RESULTS_MAX = 16 };

/* Of a result that is compared. */
struct compare_side {
	const struct report *report;
	/* What binds at the explained point, by diagnosis; "none" where it cannot be told. */
	struct verdict verdict;
};

struct comparison {
	struct compare_side a, b; /* a: the baseline */
	double significance;
	bool interleaved; /* measured in turn (--until-sure): runs are as near as repetitions */
	struct point_match match;
	struct point_pair
		*pairs; /* that both results have figures of, in the order of a's points; owned */
	size_t pair_count;
	struct point_pair *unmeasured; /* matched, and one of them has no figures; owned */
	size_t unmeasured_count;
	struct metric
		metrics[METRICS_MAX]; /* that either has figures of; the first is throughput */
	size_t metric_count;
	struct difference *differences; /* (metric_count, pair_count), owned */
	struct difference overall[METRICS_MAX];
	struct compare_facts facts;
	char remarks[COMPARE_REMARKS_MAX]
		    [NOTE_BYTES]; /* what must be known before the figures are believed */
	size_t remark_count;
	struct checksum_check checksum_check; /* of both together */
	size_t focus;   /* the pair whose stages are shown, and whose difference is explained */
	bool explained; /* there was a difference to explain */
	struct explanation explanation;
	struct gate_result *gates; /* of the gates given, in their order; owned */
};

/* significance: 0.01.  -EINVAL: the results cannot be compared (err says why in a line).  Only what a and b have in
 * common is looked at; they must outlive the comparison. */
int compare_open(struct comparison *comparison, const struct report *a, const struct report *b,
	double significance, struct error *err);
void compare_close(struct comparison *comparison); /* safe on {0} */

/* gates: (count); fills comparison->gates. */
int compare_judge(
	struct comparison *comparison, const struct gate *gates, size_t count, struct error *err);

/* The metric's differences: (pair_count); NULL: neither result has it. */
const struct difference *compare_differences_of(
	const struct comparison *comparison, const char *name);

/* Capacities of the focus, for explain_by_capacities.  Returns how many. */
size_t compare_capacities(
	const struct comparison *comparison, struct explain_capacity stages[STAGES_MAX]);

/* --- all comparisons with one baseline, and how they are told --------------------------------- */

struct compare_document {
	const struct comparison *comparisons; /* (count), all of the same baseline */
	size_t count;
	const struct gate *gates; /* (gate_count) */
	size_t gate_count;
	bool verbose; /* every metric */
	bool whole;   /* in a terminal, more than fits a screen */
};

/* The one description of all comparisons, mlbench.compare/1, which the other media are written from; its sentences are
 * members.  NULL without memory. */
json_t *compare_json(const struct compare_document *compared);
/* Members of it: a setting as --set takes it, and all of a point, "decode.workers=2 batch.size=64"; appended. */
void compare_setting_value(const char *key, const json_t *value, struct buffer *out);
void compare_settings_text(const json_t *settings, struct buffer *out);

/* document: compare_json's of `compared`. */
void compare_text(const struct compare_document *compared, const json_t *document,
	const struct style *style, struct buffer *out);
void compare_markdown(
	const struct compare_document *compared, const json_t *document, struct buffer *out);
int compare_html(const json_t *document, struct buffer *out, struct error *err);

#endif
