/* Loading of ranks, and the straggler's own diagnosis. */
#include "harness/report/report_ranks.h"

#include "harness/analyze/diagnose.h"
#include "harness/analyze/reads_alone.h"
#include "harness/base/array.h"
#include "harness/base/files.h"
#include "harness/base/units.h"
#include "harness/record/fields.h"
#include "harness/report/columns.h"
#include "harness/report/medium.h"
#include "harness/report/part.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* False: these are not rank 0's measurements. */
static bool report_add_rank(
	struct ranks_view *view, unsigned rank, const struct record *record, size_t point)
{
	bool own = true;
	for (size_t i = 0; i < record->entry_count && own; i++) {
		const struct record_entry *const entry = &record->entries[i];
		struct measurement *const m = calloc(1, sizeof *m);
		if (m && entry->point == point && record_counts(record, entry) &&
			record_load(record, i, m, NULL) == 0 && m->ranks_count > 0) {
			own = m->ranks[0].rank == rank;
			if (own)
				ranks_view_add(view, rank, m);
		}
		if (m)
			measurement_release(m);
		free(m);
	}
	return own;
}

static int report_judge_straggler(
	struct ranks_view *view, const struct record *leader, size_t point)
{
	struct record record = {0};
	struct report report = {0};
	struct diagnosis *const d = calloc(1, sizeof *d);
	char *const folder = record_rank_folder(leader, view->last);
	int code = d && folder ? record_open(&record, folder, NULL) : -ENOMEM;
	if (!code)
		code = report_open(&report, &record, NULL);
	if (!code && point < record.grid.points && report_has_figures(&report, point) &&
		report_diagnose_at(&report, point, d, NULL) == 0)
		view->cause = d->verdict;
	report_close(&report);
	record_release(&record);
	free(folder);
	free(d);
	return code;
}

/* Reads alone, of one rank and of all. */
static void report_add_store(struct ranks_view *view, const struct record *record, size_t point)
{
	struct read_block blocks[RECORD_READ_BLOCKS_MAX];
	size_t count = 0;
	double error;
	for (size_t i = 0; i < record->read_block_count; i++)
		if (record->read_blocks[i].point == point)
			blocks[count++] = record->read_blocks[i];
	view->together_files = NAN;
	const double ratio = reads_alone_ranks(blocks, count, &error, &view->alone_files);
	if (isfinite(ratio))
		view->together_files = view->alone_files * exp(ratio);
}

int report_ranks_open(
	struct ranks_view *view, const struct report *report, size_t point, struct error *err)
{
	const struct record *const record = report->record;
	struct config config = {0};
	*view = (struct ranks_view){0};
	int code = config_grid_point(&record->config, &record->grid, point, &config, err);
	const int64_t count = code ? 0 : config_integer(&config, KEY_RUN_RANKS);
	config_release(&config);
	if (code || count < 2)
		return code;
	if (ranks_view_open(view, (unsigned)count))
		return error_set(err, -ENOMEM, "out of memory for %u ranks", (unsigned)count);
	if (!report_add_rank(view, 0, record, point) || view->known == 0) {
		ranks_view_close(view);
		return 0;
	}
	for (unsigned rank = 1; rank < view->count; rank++) {
		struct record of = {0};
		char *const folder = record_rank_folder(record, rank);
		if (folder && record_open(&of, folder, NULL) == 0)
			(void)report_add_rank(view, rank, &of, point);
		record_release(&of);
		free(folder);
	}
	ranks_conclude(view);
	report_add_store(view, record, point);
	if (view->straggles && view->last != 0)
		(void)report_judge_straggler(view, record, point);
	return 0;
}

/* --- scaling ---------------------------------------------------------------------------------- */

/* Whether a point is the best one, but for its number of ranks and what is swept together with that. */
static bool ranks_beside_best(const struct report *report, size_t point, size_t axis)
{
	const struct config *const config = &report->record->config;
	const size_t group = config->axes[axis].zip_with;
	char own[CONFIG_VALUE_BYTES];
	char best[CONFIG_VALUE_BYTES];
	for (size_t i = 0; i < config->axis_count; i++)
		if (config->axes[i].zip_with != group &&
			strcmp(report_setting(report, point, i, own, sizeof own),
				report_setting(report, report->best, i, best, sizeof best)) != 0)
			return false;
	return report_has_figures(report, point);
}

static size_t ranks_axis(const struct config *config)
{
	size_t axis = 0;
	while (axis < config->axis_count && config->axes[axis].key != KEY_RUN_RANKS)
		axis++;
	return axis;
}

struct scaled_point {
	int64_t ranks, batch; /* batch: samples of a rank's step */
	double rate;          /* of a rank */
};

static int scaled_compare(const void *a, const void *b)
{
	const struct scaled_point *const left = a;
	const struct scaled_point *const right = b;
	return (left->ranks > right->ranks) - (left->ranks < right->ranks);
}

/* "1, 2, 4 ranks: 400, 780, 1,480 samples/s together; efficiency 100 %, 97.5 %, 92.5 %, weak scaling ..." */
static void scaling_words(const struct scaled_point *list, size_t count, struct buffer *out)
{
	const struct scaled_point *const first = &list[0];
	const struct scaled_point *const last = &list[count - 1];
	char number[UNITS_BYTES];
	const bool strong = last->ranks * last->batch == first->ranks * first->batch;
	for (size_t i = 0; i < count; i++)
		buffer_format(out, "%s%" PRId64, i ? ", " : "", list[i].ranks);
	buffer_text(out, " ranks: ");
	for (size_t i = 0; i < count; i++)
		buffer_format(out, "%s%s", i ? ", " : "",
			units_format_count(list[i].rate * (double)list[i].ranks, number));
	buffer_text(out, " samples/s together; efficiency ");
	for (size_t i = 0; i < count; i++)
		buffer_format(out, "%s%s", i ? ", " : "",
			units_format_share(list[i].rate / first->rate, number));
	if (strong)
		buffer_text(out, " (strong scaling: the same samples in a step of all)");
	else if (last->batch == first->batch)
		buffer_text(out, " (weak scaling: the same samples in a step of each)");
}

static void report_ranks_scale(const struct report *report, struct buffer *out)
{
	const struct record *const record = report->record;
	const size_t axis = ranks_axis(&record->config);
	if (axis == record->config.axis_count || report->best >= record->grid.points)
		return;
	struct scaled_point *const list = calloc(record->grid.points, sizeof *list);
	size_t count = 0;
	for (size_t i = 0; list && i < record->grid.points; i++) {
		if (!ranks_beside_best(report, i, axis))
			continue;
		const int64_t ranks = report_integer_at(report, i, KEY_RUN_RANKS);
		list[count++] = (struct scaled_point){.ranks = ranks > 0 ? ranks : 1,
			.batch = report_integer_at(report, i, KEY_BATCH_SIZE),
			.rate = report->points[i]->median};
	}
	if (count > 1) {
		qsort(list, count, sizeof *list, scaled_compare);
		scaling_words(list, count, out);
	}
	free(list);
}

/* --- as JSON ---------------------------------------------------------------------------------- */

enum { RANKS_LISTED_MOST = 256 };

static const enum stage_id scored_stages[] = {STAGE_READ, STAGE_DECODE, STAGE_UPLOAD, STAGE_STEP};

static json_t *scores_json(const struct rank_of *of)
{
	json_t *const scores = json_object();
	int bad = 0;
	for (size_t i = 0; i < COUNT(scored_stages); i++) {
		const struct rank_score *const s = &of->scores[scored_stages[i]];
		if (isfinite(s->relative))
			bad |= json_object_set_new(scores, stage_name(scored_stages[i]),
				json_pack("{s:f, s:f, s:f}", "item_s", s->item_ns * 1e-9,
					"relative", s->relative, "individual", s->individual));
	}
	return fields_whole(scores, bad);
}

/* Scores that are flagged: "read", "step (of its own)". */
static json_t *low_json(const struct rank_of *of)
{
	json_t *const low = json_array();
	int bad = 0;
	for (size_t i = 0; i < COUNT(scored_stages); i++) {
		const struct rank_score *const s = &of->scores[scored_stages[i]];
		char words[NAME_BYTES + 16];
		(void)snprintf(words, sizeof words, "%s", stage_name(scored_stages[i]));
		if (s->relative < RANKS_SCORE_LOW)
			bad |= json_array_append_new(low, json_string(words));
		(void)snprintf(
			words, sizeof words, "%s (its own best)", stage_name(scored_stages[i]));
		if (s->individual < RANKS_SCORE_LOW)
			bad |= json_array_append_new(low, json_string(words));
	}
	return fields_whole(low, bad);
}

static json_t *rank_json(const struct ranks_view *view, unsigned rank)
{
	const struct rank_of *const of = &view->of[rank];
	struct part part = part_open();
	part_put(&part, "rank", json_integer(rank));
	part_put(&part, "host", fields_text(of->host));
	part_put(&part, "samples_per_s", fields_number(of->rate));
	part_put(&part, "starved_share", fields_number(of->starved));
	part_put(&part, "wait_share", fields_number(of->wait));
	part_put(&part, "exchange_share", fields_number(of->exchange));
	part_put(&part, "last_share",
		fields_number(of->rounds > 0 ? (double)of->last_rounds / (double)of->rounds
					     : (double)NAN));
	part_put(&part, "late_s",
		fields_number(
			of->last_rounds > 0 ? of->late_s / (double)of->last_rounds : (double)NAN));
	part_put(&part, "clock_error_s", json_real(of->clock_error_ns * 1e-9));
	part_put(&part, "scores", scores_json(of));
	part_put(&part, "low", low_json(of));
	return part_close(&part);
}

static json_t *late_json(const struct histogram *h, double quantile)
{
	return h->count > 0 ? json_real(histogram_quantile(h, quantile) * 1e-9) : json_null();
}

/* All, or of very many the last ones in most rounds. */
static json_t *ranks_list_json(const struct ranks_view *view)
{
	json_t *const list = json_array();
	int bad = 0;
	for (unsigned r = 0; r < view->count; r++)
		if (view->of[r].repeats > 0 && (r < RANKS_LISTED_MOST || r == view->last))
			bad |= json_array_append_new(list, rank_json(view, r));
	return fields_whole(list, bad);
}

static json_t *report_ranks_to_json(const struct report *report, size_t point)
{
	struct ranks_view view;
	if (report_ranks_open(&view, report, point, NULL) || view.count == 0) {
		ranks_view_close(&view);
		return NULL;
	}
	struct part part = part_open();
	part_put(&part, "count", json_integer(view.count));
	part_put(&part, "known", json_integer(view.known));
	part_put(&part, "samples_per_s",
		fields_number(view.known == view.count ? view.rate : (double)NAN));
	part_put(&part, "least_samples_per_s", fields_number(view.rate_least));
	part_put(&part, "round_s", fields_number(view.round_s));
	part_put(&part, "wait_share", fields_number(view.wait));
	part_put(&part, "exchange_share", fields_number(view.exchange));
	part_put(&part, "gradient_bytes", json_real(view.bytes));
	part_put(&part, "exchange_s", fields_number(view.own_s));
	part_put(&part, "hidden_share", fields_number(view.hidden));
	part_put(&part, "bus_bytes_per_s", fields_number(view.bus_bytes_per_s));
	part_put(&part, "alone_files_per_s", fields_number(view.alone_files));
	part_put(&part, "together_files_per_s", fields_number(view.together_files));
	part_put(&part, "late_p50_s", late_json(&view.lateness, 0.5));
	part_put(&part, "late_p99_s", late_json(&view.lateness, 0.99));
	part_put(&part, "longest_s", fields_number(view.longest_s));
	part_put(&part, "last", json_integer(view.last));
	part_put(&part, "last_share", fields_number(view.last_share));
	part_put(&part, "straggles", json_boolean(view.straggles));
	part_put(&part, "list", ranks_list_json(&view));
	ranks_view_close(&view);
	return part_close(&part);
}

static int report_ranks_weigh(
	const struct report *report, size_t point, struct verdict *verdict, struct error *err)
{
	struct ranks_view view;
	const int code = report_ranks_open(&view, report, point, err);
	if (!code && view.last == 0)
		view.cause = *verdict;
	if (!code)
		ranks_weigh(&view, verdict);
	ranks_view_close(&view);
	return code;
}

/* --- in words --------------------------------------------------------------------------------- */

#define SAYS(before, of, in, behind)                                                   \
	{                                                                              \
		.head = (before), .path = (of), .unit = COLUMN_##in, .after = (behind) \
	}
#define SAYS_POSITIVE(before, of, in, behind)                                           \
	{                                                                               \
		.head = (before), .path = (of), .unit = COLUMN_##in, .after = (behind), \
		.positive = true                                                        \
	}

/* "decode, step" */
static void rank_low(const struct table_column *column, const json_t *row, struct buffer *out)
{
	size_t i;
	const json_t *name;
	json_array_foreach(column_value(row, column->path), i, name)
		buffer_format(out, "%s%s", i ? ", " : "", json_string_value(name));
}

static const struct table_column rank_columns[] = {
	{.head = "rank", .path = "rank", .unit = COLUMN_COUNT},
	{.head = "host", .left = true, .path = "host", .keep = 2},
	{.head = "samples/s", .path = "samples_per_s", .unit = COLUMN_COUNT},
	{.head = "starved", .path = "starved_share", .unit = COLUMN_SHARE},
	{.head = "waits", .path = "wait_share", .unit = COLUMN_SHARE},
	{.head = "exchanges", .path = "exchange_share", .unit = COLUMN_SHARE},
	{.head = "last in", .path = "last_share", .unit = COLUMN_SHARE},
	{.head = "late by", .path = "late_s", .unit = COLUMN_SECONDS},
	{.head = "read",
		.path = "scores.read.relative",
		.unit = COLUMN_FIXED,
		.decimals = 2,
		.keep = 3},
	{.head = "decode",
		.path = "scores.decode.relative",
		.unit = COLUMN_FIXED,
		.decimals = 2,
		.keep = 3},
	{.head = "step",
		.path = "scores.step.relative",
		.unit = COLUMN_FIXED,
		.decimals = 2,
		.keep = 3},
	{.head = "low",
		.left = true,
		.path = "low",
		.text_of = rank_low,
		.keep = 4,
		.ink = INK_WARN},
};

static const struct table_column ranks_phrase[] = {
	{.head = "", .path = "count", .unit = COLUMN_COUNT, .after = " ranks"},
	SAYS(": ", "samples_per_s", COUNT, " samples/s together"),
	SAYS("; a round takes ", "round_s", SECONDS, ""),
	SAYS_POSITIVE("; they wait for its last rank ", "wait_share", SHARE, " of the time"),
	SAYS_POSITIVE(", alone ", "late_p50_s", SECONDS, " in the median round"),
	SAYS_POSITIVE(" and ", "late_p99_s", SECONDS, " in 99 %"),
	SAYS_POSITIVE(", and exchange gradients ", "exchange_share", SHARE, ""),
	SAYS_POSITIVE("; gradients of ", "gradient_bytes", BYTES, ""),
	SAYS_POSITIVE(" in ", "exchange_s", SECONDS, ""),
	SAYS_POSITIVE(", ", "hidden_share", SHARE, " of that beside the step"),
	SAYS_POSITIVE(", bus bandwidth ", "bus_bytes_per_s", RATE, ""),
};

static void report_ranks_say(const json_t *point, struct buffer *out)
{
	const json_t *const ranks = column_value(point, "ranks");
	if (json_is_object(ranks))
		columns_phrase(ranks_phrase, COUNT(ranks_phrase), ranks, out);
}

static void report_ranks_put(const json_t *point, struct medium *medium)
{
	struct buffer text = {0};
	const json_t *const list = column_value(point, "ranks.list");
	if (json_array_size(list) == 0)
		return;
	medium_heading(medium,
		"ranks: shares of their time, rounds in which each was the last, and relative scores");
	medium_table(medium, rank_columns, COUNT(rank_columns), list, "Ranks");
	report_ranks_say(point, &text);
	medium_note(medium, &text);
}

const struct report_ranks report_of_ranks = {
	.weigh = report_ranks_weigh,
	.json = report_ranks_to_json,
	.scaling = report_ranks_scale,
	.say = report_ranks_say,
	.put = report_ranks_put,
};
