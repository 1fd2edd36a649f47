/* A record with its statistics: what every writer (terminal, JSON, CSV) prints.  A function of the
 * saved record alone, so `mlbench show` prints what the sweep printed. */
#ifndef MLBENCH_REPORT_REPORT_H
#define MLBENCH_REPORT_REPORT_H

#include "harness/analyze/stop_rule.h"
#include "harness/analyze/summary.h"
#include "harness/base/buffer.h"
#include "harness/record/record.h"
#include "harness/report/checksums.h"
#include "harness/report/style.h"

#include <jansson.h>

struct medium;
struct diagnosis; /* harness/analyze/diagnose.h */

struct report {
	const struct record *record;
	struct point_summary **points; /* (grid.points): NULL where nothing was measured; owned */
	/* The point that verdict, stages, limits and pages speak of: of the first workload, the
	 * smallest setting whose throughput is tied with the highest; grid.points: there is none. */
	size_t best;
	size_t good, unsteady, failed; /* points; the rest was not measured */
	size_t left_out;               /* repetitions of measured points that do not count */
	struct checksums checksums;    /* of run.verify; and whether they agree */
	struct checksum_check checksum_check;

	/* Of a sequential sweep, what its rounds say of each point (grid.points, owned); else NULL.  Points with fewer than
	 * three repetitions have their interval by the deviation that the points share. */
	struct stop_point *decided;

	/* By report_diagnose; NULL: not asked for, or nothing was measured at that point. */
	struct diagnosis **diagnoses; /* (grid.points), owned */
};

int report_open(struct report *report, const struct record *record, struct error *err);
void report_close(struct report *report); /* safe on {0} */

/* Diagnoses every measured point from its record and traces, unless that was done before and nothing has
 * changed (saved_diagnoses.h); their verdicts take the place of the first ones.  What cannot be modelled keeps its first verdict,
 * and its diagnosis says why. */
int report_diagnose(struct report *report, struct error *err);
/* One point, sketchily, whatever was done of the others; the report stays as it is. */
int report_diagnose_at(
	const struct report *report, size_t point, struct diagnosis *out, struct error *err);
/* The best point alone: of a long sweep, a fraction of the time. */
int report_diagnose_best(struct report *report, struct error *err);
void report_drop_diagnoses(struct report *report);
/* Whether the point has a good or an unsteady repetition: only such a one is diagnosed. */
bool report_has_figures(const struct report *report, size_t point);

/* Writes the end line, summary.json and points.csv from what the record holds; sets finished (when
 * it is 0) and interrupted. */
int report_finish(struct record *record, struct error *err);

/* What analysis must know of a point's configuration, and of what ran it. */
int report_facts(const struct report *report, size_t point, const struct workload_facts *workload,
	struct point_facts *facts, struct error *err);

/* "1,024 samples, 12.5 MiB in /data/set"; nothing where no data set was counted. */
void report_data_text(const struct record *record, struct buffer *out);

/* One line on samples that could not be read or decoded; nothing where there were none. */
void report_bad_text(const struct report *report, struct buffer *out);

/* "complete", "interrupted" or "failed" (nothing could be measured). */
const char *report_status(const struct report *report);

/* config_grid_same_workload.  `like` is any point of it; grid.points when none of its points has a figure. */
bool report_same_workload(const struct report *report, size_t a, size_t b);
/* Of the highest median; an unsteady point only where none is steady. */
size_t report_fastest_like(const struct report *report, size_t like);
/* The smallest setting that is tied with it: what it gives less may be noise, by the intervals of both.
 * "Smallest" is the least sum over the axes of the value's rank; texts and choices, which have none, are
 * the fastest one's. */
size_t report_best_like(const struct report *report, size_t like);
/* The smallest one within `share` of the fastest, of the best point's workload. */
size_t report_smallest_within(const struct report *report, double share);

/* "2,812 samples/s (2.88 M tokens/s)", "12,702 samples/s (1.2 GiB/s, 12,702 IOPS)": in the units of
 * what is measured. */
void report_add_rate(const struct report *report, size_t point, struct buffer *out);

/* A key's value at a point. */
int64_t report_integer_at(const struct report *report, size_t point, enum key_id key);
/* What is told of a job of ranks (report_ranks.h): main registers it, so that what reads results of one rank needs none of it.
 * weigh makes a point's verdict, which is of rank 0, that of the job; json is what summary.json says of the ranks, NULL: none;
 * scaling says, of a sweep over numbers of ranks, how the rate of all grows with them. */
struct report_ranks {
	int (*weigh)(const struct report *report, size_t point, struct verdict *verdict,
		struct error *err);
	json_t *(*json)(const struct report *report, size_t point);
	void (*scaling)(const struct report *report, struct buffer *out);
	/* Of a point of summary.json: in a sentence, and a row for each. */
	void (*say)(const json_t *point, struct buffer *out);
	void (*put)(const json_t *point, struct medium *medium);
};
void report_ranks_register(const struct report_ranks *ranks);
const struct report_ranks *report_ranks_registered(void); /* NULL: nothing is told of them */
int report_weigh_ranks(
	const struct report *report, size_t point, struct verdict *verdict, struct error *err);

/* A swept key's value at a point, as text. */
const char *report_setting(
	const struct report *report, size_t point, size_t axis, char *out, size_t room);
/* All of them: "decode.workers=2 batch.size=64". */
void report_settings(const struct report *report, size_t point, struct buffer *out);

/* The knobs among them, or what is none: the workload. */
void report_settings_of(const struct report *report, size_t point, bool knobs, struct buffer *out);
/* Those that another point does not have. */
void report_differing_settings(
	const struct report *report, size_t point, size_t from, struct buffer *out);

/* What a stage's items are: "sample", "batch", "checkpoint" or "evaluation". */
const char *report_stage_item(const struct stage_summary *stage);

/* Of decoding alone there is a limit for each number of workers: whether this is the point's. */
bool report_limit_is_of(const struct stage_limit *limit, const struct point_summary *p);
/* Says, after `before`, that a stage alone gave less than the point achieved, and with which settings.  Nothing where
 * none did.  Of the step nothing is said: alone it was measured with one size of batch. */
void report_exceeded_text(const struct report *report, const struct point_summary *p,
	const char *before, struct buffer *out);

/* "3 of 54 repetitions, at 2 points, were unsteady or failed, or came ..."; nothing where all count. */
void report_left_out_text(const struct report *report, struct buffer *out);

/* "3 of 12 points were measured beside other load; at point 4: ..."; nothing where none was. */
void report_contaminated_text(const struct report *report, struct buffer *out);

/* summary.json; NULL without memory. */
json_t *report_summary_json(const struct report *report);
/* One of its points; the stages' limits. */
json_t *report_limits_json(const struct record *record);
json_t *report_point_json(const struct report *report, size_t point);
/* points: of summary.json. */
void report_csv(const struct report *report, const json_t *points, struct buffer *out);
/* The answer at the end in each of them; on its own it fits a screen of SCREEN_LINES. */
enum report_detail { REPORT_SCREEN, REPORT_WHOLE, REPORT_EVERY_POINT };
void report_terminal(const struct report *report, const struct style *style,
	enum report_detail detail, struct buffer *out);

/* The same of one point, but for what is concluded of it: no verdict, evidence, model or advice.  For who shall find out. */
void report_measured(const struct report *report, const struct style *style, struct buffer *out);

/* summary.json and points.csv into the record's folder. */
int report_write_files(const struct report *report, struct error *err);

#endif
