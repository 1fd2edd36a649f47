/* Columns over the values of summary.json. */
#include "harness/report/summary_tables.h"

#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/config/conditions.h"
#include "harness/record/config_json.h"
#include "harness/report/csv.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { HEAD_BYTES = CONFIG_NAME_BYTES, NAME_COLUMN_BYTES = 2 * NAME_BYTES };

/* --- points ----------------------------------------------------------------------------------- */

/* Of the cells of a swept key, and of bars. */
struct points_context {
	const struct report *report;
	size_t axis;
	double best; /* samples/s of the fastest point; NAN: none */
};

static size_t point_id(const json_t *row)
{
	return (size_t)json_integer_value(column_value(row, "id"));
}

static bool point_is(const json_t *row, const char *status)
{
	return strcmp(column_text(row, "status"), status) == 0;
}

static void point_setting(const struct table_column *column, const json_t *row, struct buffer *out)
{
	const struct points_context *of = column->context;
	char value[CONFIG_VALUE_BYTES];
	buffer_text(out, report_setting(of->report, point_id(row), of->axis, value, sizeof value));
}

static void point_bar(const struct table_column *column, const json_t *row, struct buffer *out)
{
	const struct points_context *of = column->context;
	const double rate = column_number(row, "throughput.median");
	buffer_format(out, "%.4f", rate > 0 && of->best > 0 ? fmin(rate / of->best, 1) : 0);
}

static void point_interval(const struct table_column *column, const json_t *row, struct buffer *out)
{
	const double rate = column_number(row, "throughput.median");
	const double wide = fmax(column_number(row, "throughput.ci95.1") - rate,
		rate - column_number(row, "throughput.ci95.0"));
	(void)column;
	if (wide > 0 && rate > 0)
		buffer_format(out, "%.1f%%", 100 * wide / rate);
}

static void cell_repeats(const struct table_column *column, const json_t *row, struct buffer *out)
{
	buffer_format(out, "%zu", json_array_size(column_value(row, column->path)));
}

/* The value at the column's path where that of another path, the context, is a number above 0. */
static void cell_if(const struct table_column *column, const json_t *row, struct buffer *out)
{
	struct table_column plain = *column;
	plain.text_of = NULL;
	plain.after = NULL;
	if (column_number(row, column->context) > 0)
		column_cell(&plain, row, out);
}

static const char MEASURED[] = "throughput.median";

/* Why a point that ran has no figure. */
static const char *point_why_nothing(const json_t *row)
{
	size_t i;
	const json_t *note;
	json_array_foreach(column_value(row, "notes"), i,
		note) if (strstr(json_string_value(note),
				  "batches were measured")) return json_string_value(note);
	return "throughput was not measured";
}

static void point_verdict(const struct table_column *column, const json_t *row, struct buffer *out)
{
	const char *stage = column_text(row, "verdict.stage");
	const char *also = column_text(row, "verdict.also");
	(void)column;
	if (point_is(row, "interrupted")) {
		buffer_text(out, "not measured");
	} else if (point_is(row, "failed")) {
		buffer_format(out, "failed: %s", column_text(row, "error"));
	} else if (isnan(column_number(row, "throughput.median"))) {
		buffer_format(out, "unsteady: %s", point_why_nothing(row));
	} else {
		buffer_text(out, point_is(row, "unsteady") ? "unsteady; " : "");
		if (strcmp(stage, "none") == 0)
			buffer_text(out, "inconclusive");
		else
			buffer_format(out, "%s%s%s / %s", stage, *also ? " + " : "", also,
				column_text(row, "verdict.resource"));
	}
}

static enum ink point_rate_ink(const struct table_column *column, const json_t *row)
{
	const struct points_context *of = column->context;
	return report_best_like(of->report, point_id(row)) == point_id(row) ? INK_BOLD : INK_PLAIN;
}

static enum ink point_ink(const struct table_column *column, const json_t *row)
{
	if (point_is(row, "interrupted"))
		return INK_DIM;
	if (!column->wraps && !column->left)
		return column->bar ? INK_ACCENT : INK_PLAIN;
	return isnan(column_number(row, "throughput.median")) ? INK_BAD
	       : point_is(row, "unsteady")                    ? INK_WARN
							      : INK_PLAIN;
}

/* A column for each swept key; how many.  heads, contexts: of the columns. */
static size_t setting_columns(const struct report *report, struct table_column *columns,
	char (*heads)[HEAD_BYTES], struct points_context *contexts)
{
	const struct config *const config = &report->record->config;
	for (size_t axis = 0; axis < config->axis_count; axis++) {
		const struct key *key = &config_keys[config->axes[axis].key];
		(void)snprintf(heads[axis], HEAD_BYTES, "%s\n%s", key->section, key->name);
		contexts[axis] = (struct points_context){.report = report, .axis = axis};
		columns[axis] = (struct table_column){
			.head = heads[axis], .text_of = point_setting, .context = &contexts[axis]};
	}
	return config->axis_count;
}

void summary_storage(struct medium *medium, const struct report *report, size_t most)
{
	static const struct table_column fixed[] = {
		{.head = "size of\nfiles", .path = "storage.bytes", .unit = COLUMN_BYTES},
		{.head = "files", .path = "storage.files", .unit = COLUMN_COUNT},
		{.head = "requests\na sample",
			.path = "storage.requests_per_sample",
			COLUMN_DECIMALS(2)},
		{.head = "CPU\na sample",
			.path = "storage.cpu_us_per_sample",
			.unit = COLUMN_SECONDS,
			.scale = 1e-6},
		{.head = "resident\nat most", .path = "rss_peak_bytes", .unit = COLUMN_BYTES},
		{.head = "samples/s", .path = "throughput.median", .unit = COLUMN_COUNT},
	};
	struct points_context contexts[CONFIG_AXES_MAX];
	char heads[CONFIG_AXES_MAX][HEAD_BYTES];
	struct table_column columns[CONFIG_AXES_MAX + COUNT(fixed)];
	if (!config_sweeps_storage(&report->record->config))
		return;
	const size_t axes = setting_columns(report, columns, heads, contexts);
	memcpy(columns + axes, fixed, sizeof fixed);
	json_t *rows = json_array();
	for (size_t i = 0; i < report->record->grid.points && i < most; i++)
		(void)json_array_append_new(rows, report_point_json(report, i));
	medium_heading(medium, "storage forms");
	medium_table(medium, columns, axes + COUNT(fixed), rows, "What each form takes, and gives");
	json_decref(rows);
	struct buffer text = {0};
	buffer_text(&text,
		"size: bytes in the files, without what a disk adds to fill its blocks; requests: "
		"reads that were asked for, of a compressed file for the bytes that it inflates "
		"to; CPU: of all threads; resident: the program's memory");
	medium_note(medium, &text);
}

/* Whether any point is a job of ranks: its figures are then those of rank 0. */
static bool has_ranks(const struct report *report)
{
	bool any = false;
	for (size_t i = 0; i < report->record->grid.points; i++)
		any = any || report_integer_at(report, i, KEY_RUN_RANKS) > 1;
	return any;
}

/* ids: of the points to show, count of them. */
static void put_points(struct medium *medium, const struct report *report, const size_t *ids,
	size_t count, bool wraps)
{
	const size_t points = report->record->grid.points;
	const bool ascii = medium->style && !medium->style->utf8;
	struct points_context context = {.report = report,
		.best = report->best < points ? report->points[report->best]->median : NAN};
	struct points_context contexts[CONFIG_AXES_MAX];
	char heads[CONFIG_AXES_MAX][HEAD_BYTES];
	const struct table_column fixed[] = {
		{.head = has_ranks(report) ? "samples/s\na rank" : "samples/s",
			.path = "throughput.median",
			.unit = COLUMN_COUNT,
			.ink_of = point_rate_ink,
			.context = &context},
		{.head = ascii ? "+-95 %" : "±95 %",
			.keep = 3,
			.text_of = point_interval,
			.ink = INK_DIM},
		{.head = "n",
			.keep = 1,
			.path = "throughput.repeats",
			.text_of = cell_repeats,
			.ink = INK_DIM},
		{.head = "",
			.bar = true,
			.keep = 5,
			.text_of = point_bar,
			.ink_of = point_ink,
			.context = &context},
		{.head = "step\nbusy",
			.keep = 4,
			.path = "step_utilisation",
			.unit = COLUMN_SHARE,
			.ink_of = point_ink},
		{.head = "confi-\ndence",
			.keep = 2,
			.path = "verdict.confidence",
			COLUMN_DECIMALS(2),
			.text_of = cell_if,
			.context = MEASURED,
			.ink = INK_DIM},
		{.head = "bottleneck",
			.left = true,
			.wraps = wraps,
			.text_of = point_verdict,
			.ink_of = point_ink},
	};
	struct table_column columns[CONFIG_AXES_MAX + COUNT(fixed)];
	size_t used = setting_columns(report, columns, heads, contexts);
	for (size_t i = 0; i < COUNT(fixed); i++)
		if (fixed[i].text_of != cell_repeats || report->decided)
			columns[used++] = fixed[i];
	json_t *rows = json_array();
	for (size_t i = 0; i < count; i++)
		(void)json_array_append_new(rows, report_point_json(report, ids[i]));
	medium_table(medium, columns, used, rows, "Points");
	json_decref(rows);
	if (report->decided) {
		struct buffer text = {0};
		buffer_text(
			&text, "n: repetitions; points were repeated where the answer was open");
		medium_note(medium, &text);
	}
}

void summary_points(struct medium *medium, const struct report *report, size_t most)
{
	const size_t points = report->record->grid.points;
	const size_t count = points < most ? points : most;
	size_t *ids = calloc(count + 1, sizeof *ids);
	medium->out->failed = medium->out->failed || !ids;
	for (size_t i = 0; ids && i < count; i++)
		ids[i] = i;
	if (ids)
		put_points(medium, report, ids, count, report->failed > 0);
	free(ids);
	if (points > most) {
		struct buffer text = {0};
		buffer_format(&text, "and %zu more points: see points.csv", points - most);
		medium_note(medium, &text);
	}
}

/* -1: not measured. */
static double rank_of_point(const struct report *report, size_t point)
{
	const double rate = report->points[point] ? report->points[point]->median : (double)NAN;
	return isfinite(rate) ? rate : -1;
}

/* The best of each workload above all others, and that of the verdict above these. */
static void rank_points(const struct report *report, double *ranks)
{
	const size_t points = report->record->grid.points;
	for (size_t i = 0; i < points; i++)
		ranks[i] = rank_of_point(report, i);
	for (size_t i = 0; i < points; i++) {
		size_t first = 0;
		while (first < i && !report_same_workload(report, first, i))
			first++;
		if (first == i && report_best_like(report, i) < points)
			ranks[report_best_like(report, i)] = DBL_MAX;
	}
	if (report->best < points)
		ranks[report->best] = HUGE_VAL;
}

void summary_best_points(
	struct medium *medium, const struct report *report, size_t most, bool counts)
{
	const size_t points = report->record->grid.points;
	const size_t count = points < most ? points : most;
	size_t *ids = calloc(points + 1, sizeof *ids);
	double *ranks = calloc(points + 1, sizeof *ranks);
	medium->out->failed = medium->out->failed || !ids || !ranks;
	if (!ids || !ranks) {
		free(ranks);
		free(ids);
		return;
	}
	rank_points(report, ranks);
	for (size_t i = 0; i < points; i++)
		ids[i] = i;
	for (size_t i = 0; count < points && i < count; i++) {
		size_t first = i;
		for (size_t k = i + 1; k < points; k++)
			if (ranks[ids[k]] > ranks[ids[first]])
				first = k;
		const size_t id = ids[first];
		memmove(ids + i + 1, ids + i, (first - i) * sizeof *ids);
		ids[i] = id;
	}
	put_points(medium, report, ids, count, count == points && report->failed > 0);
	if (counts && count < points) {
		struct buffer text = {0};
		buffer_format(&text, "best %zu of %zu points", count, points);
		if (report->failed > 0)
			buffer_format(&text, "; %zu failed", report->failed);
		medium_note(medium, &text);
	}
	free(ranks);
	free(ids);
}

/* --- stages ------------------------------------------------------------------------------------- */

/* The greater-sign: it never showed its limit, which is at least this. */
static void stage_capacity_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	const double capacity = column_number(row, "capacity");
	char number[UNITS_BYTES];
	(void)column;
	if (isfinite(capacity))
		buffer_format(out, "%s%s",
			json_is_true(column_value(row, "capacity_is_lower_bound")) ? ">" : "",
			units_format_count(capacity, number));
}

static enum ink stage_ink(const struct table_column *column, const json_t *row)
{
	const bool busiest = column_number(row, "busy") >= 0.95;
	return column->bar ? (busiest ? INK_WARN : INK_ACCENT) : busiest ? INK_BOLD : INK_PLAIN;
}

static const struct table_column stage_columns[] = {
	{.head = "stage", .left = true, .path = "name", .ink_of = stage_ink},
	{.head = "threads", .keep = 2, .path = "workers"},
	{.head = "", .bar = true, .keep = 6, .path = "busy", .ink_of = stage_ink},
	{.head = "busy", .path = "busy", .unit = COLUMN_SHARE},
	{.head = "starved", .path = "starved", .unit = COLUMN_SHARE},
	{.head = "blocked", .path = "blocked", .unit = COLUMN_SHARE},
	{.head = "capacity/s", .keep = 1, .text_of = stage_capacity_cell},
	{.head = "on CPU", .keep = 5, .path = "cpu", .unit = COLUMN_SHARE},
	{.head = "time of a", .left = true, .keep = 7, .path = "per", .ink = INK_DIM},
	{.head = "p50", .keep = 3, .path = "service_us.p50", .unit = COLUMN_SECONDS, .scale = 1e-6},
	{.head = "p99", .keep = 4, .path = "service_us.p99", .unit = COLUMN_SECONDS, .scale = 1e-6},
};

void summary_stages(struct medium *medium, const json_t *point)
{
	medium_table(medium, stage_columns, COUNT(stage_columns), column_value(point, "stages"),
		"Stages");
}

/* A value in a sentence; one that is not said where it is 0. */
#define SAYS(before, of, in, behind)                                                   \
	{                                                                              \
		.head = (before), .path = (of), .unit = COLUMN_##in, .after = (behind) \
	}
#define SAYS_POSITIVE(before, of, in, behind)                                           \
	{                                                                               \
		.head = (before), .path = (of), .unit = COLUMN_##in, .after = (behind), \
		.positive = true                                                        \
	}

/* Shares of working time; behind the first, with a comma. */
static const struct table_column split_columns[] = {
	SAYS(" ", "cpu", SHARE, " on a core"),
	SAYS(", ", "run_queue", SHARE, " waiting for one"),
	SAYS(", ", "io_wait", SHARE, " for I/O"),
	SAYS(", ", "lock_wait", SHARE, " for a lock"),
};

/* Where the working time went; what hardly worked, or works on a device, is left out. */
static void stage_add_split(const json_t *stage, struct buffer *text)
{
	double rest = 1;
	char number[UNITS_BYTES];
	if (isnan(column_number(stage, "cpu")))
		return;
	for (size_t i = 0; i < COUNT(split_columns); i++)
		rest -= fmax(column_number(stage, split_columns[i].path), 0);
	buffer_format(
		text, "%s%s", text->size > 0 ? "; " : "at work: ", column_text(stage, "name"));
	columns_phrase(split_columns, COUNT(split_columns), stage, text);
	buffer_format(text, ", %s for something else", units_format_share(fmax(rest, 0), number));
}

static const struct table_column queue_columns[] = {
	{.head = "", .path = "name"},
	{.head = " ", .path = "mean_depth", COLUMN_DECIMALS(1)},
	{.head = " of ", .path = "capacity"},
	SAYS(" (empty ", "empty_share", SHARE, ""),
	SAYS(", full ", "full_share", SHARE, ")"),
};

static const char DISK_READ[] = "store.read_ns";

static const struct table_column total_columns[] = {
	SAYS("accounted ", "accounted", SHARE, " of all thread time"),
	SAYS("; accelerator utilisation (AU) ", "accelerator_utilisation", SHARE, ""),
	SAYS_POSITIVE("; resident ", "rss_peak_bytes", BYTES, " at most"),
	SAYS_POSITIVE(", pools ", "pool_bytes", BYTES, ""),
	SAYS("; read ", "bytes_read_per_s", RATE, ""),
	SAYS(", ", "page_cache_share", SHARE, " of it from the page cache"),
	{.head = "; disk ", .path = "store.device"},
	SAYS(" ", "store.reads_per_s", COUNT, " reads/s"),
	{.head = ", ",
		.path = "store.bytes_per_s",
		.unit = COLUMN_RATE,
		.text_of = cell_if,
		.context = DISK_READ},
	{.head = ", ",
		.path = DISK_READ,
		.unit = COLUMN_SECONDS,
		.scale = 1e-9,
		.positive = true,
		.after = " each"},
	{.head = ", busy ",
		.path = "store.busy_share",
		.unit = COLUMN_SHARE,
		.text_of = cell_if,
		.context = DISK_READ},
};

static const struct table_column checkpoint_columns[] = {
	{.head = "checkpoints: ", .path = "checkpoint.count"},
	SAYS(" of ", "checkpoint.bytes", BYTES, ""),
	{.head = ", ", .path = "checkpoint.mode"},
	SAYS("; they stop the step for ", "checkpoint.stall_share", SHARE, " of the time"),
	SAYS(", ", "checkpoint.stall_s", SECONDS, " each"),
	SAYS_POSITIVE(": waiting for the writer ", "checkpoint.wait_s", SECONDS, ""),
	SAYS_POSITIVE(", copying ", "checkpoint.copy_s", SECONDS, ""),
	SAYS("; storing one: write ", "checkpoint.write_s", SECONDS, ""),
	SAYS(", fsync ", "checkpoint.fsync_s", SECONDS, ""),
	SAYS(", rename ", "checkpoint.rename_s", SECONDS, ""),
	SAYS_POSITIVE(", reading back ", "checkpoint.verify_s", SECONDS, ""),
	SAYS(" (", "checkpoint.write_bytes_per_s", RATE, ")"),
};

static const struct table_column evaluation_columns[] = {
	{.head = "evaluations: ", .path = "evaluation.count"},
	{.head = " of ", .path = "evaluation.samples_each", .after = " samples each"},
	SAYS("; they stop the step for ", "evaluation.stall_share", SHARE, " of the time"),
	SAYS(", ", "evaluation.stall_s", SECONDS, " each"),
	SAYS(" (at most ", "evaluation.stall_max_s", SECONDS, ")"),
	SAYS(": ", "evaluation.samples_per_s", COUNT, " samples/s"),
	SAYS(", waiting for input ", "evaluation.starved_share", SHARE, " of it"),
	SAYS(", in steps ", "evaluation.working_share", SHARE, ""),
	SAYS("; between them training runs at ", "evaluation.training_samples_per_s", COUNT,
		" samples/s, and the throughput above has them in it"),
};

static const struct table_column restart_columns[] = {
	{.head = "epochs that workers started anew for: ", .path = "restarts.count"},
	SAYS("; the step waited ", "restarts.each_s", SECONDS, " for the first batch of each"),
	SAYS(", ", "restarts.share", SHARE, " of the time"),
};

/* What control groups let through. */
static void totals_add_limits(const json_t *limits, struct buffer *text)
{
	size_t i;
	const json_t *limit;
	json_array_foreach(limits, i, limit)
	{
		const bool bytes = strcmp(column_text(limit, "unit"), "B/s") == 0;
		const double most = column_number(limit, "limit");
		const double used = column_number(limit, "used");
		char number[UNITS_BYTES];
		buffer_format(text, "; cgroup %s may read %s%s", column_text(limit, "group"),
			bytes ? units_format_rate(most, number) : units_format_count(most, number),
			bytes ? "" : " requests/s");
		if (isfinite(used))
			buffer_format(text, ", %s used", units_format_share(used / most, number));
	}
}

static const struct table_column network_columns[] = {
	{.head = "", .path = "protocol"},
	{.head = " to ", .path = "server"},
	{.head = " (", .path = "client"},
	{.head = ", connections: ", .path = "connections"},
	SAYS_POSITIVE(", READ of at most ", "request_bytes", BYTES, ""),
};

static const struct table_column call_columns[] = {
	{.head = "; ", .path = "name"},
	SAYS(" ", "calls_per_s", COUNT, "/s"),
	{.head = ", waits ",
		.path = "queue_ns",
		.unit = COLUMN_SECONDS,
		.scale = 1e-9,
		.positive = true},
	{.head = ", round trip ", .path = "round_trip_ns", .unit = COLUMN_SECONDS, .scale = 1e-9},
	SAYS_POSITIVE(", sent again: ", "retransmits", COUNT, ""),
};

/* What the client of a network file system counted. */
static void totals_add_network(const json_t *network, struct buffer *text)
{
	size_t i;
	const json_t *call;
	if (!network)
		return;
	const char *const why = column_text(network, "missing.seconds");
	columns_phrase(network_columns, COUNT(network_columns), network, text);
	buffer_format(text, ")%s%s", why[0] ? "; calls were not counted: " : "", why);
	json_array_foreach(column_value(network, "calls"), i, call)
		columns_phrase(call_columns, COUNT(call_columns), call, text);
}

void summary_totals(struct medium *medium, const json_t *point)
{
	struct buffer text = {0};
	size_t i;
	const json_t *row;
	json_array_foreach(column_value(point, "queues"), i, row)
	{
		buffer_text(&text, i ? ", " : "queues: ");
		columns_phrase(queue_columns, COUNT(queue_columns), row, &text);
	}
	medium_note(medium, &text);
	json_array_foreach(column_value(point, "stages"), i, row) stage_add_split(row, &text);
	medium_note(medium, &text);
	columns_phrase(checkpoint_columns, COUNT(checkpoint_columns), point, &text);
	medium_note(medium, &text);
	columns_phrase(evaluation_columns, COUNT(evaluation_columns), point, &text);
	medium_note(medium, &text);
	columns_phrase(restart_columns, COUNT(restart_columns), point, &text);
	medium_note(medium, &text);
	columns_phrase(total_columns, COUNT(total_columns), point, &text);
	totals_add_limits(column_value(point, "store.limits"), &text);
	medium_note(medium, &text);
	totals_add_network(column_value(point, "network"), &text);
	medium_note(medium, &text);
}

/* --- devices ------------------------------------------------------------------------------------ */

static void device_flops(const struct table_column *column, const json_t *row, struct buffer *out)
{
	static const struct {
		double scale;
		const char *name;
	} units[] = {{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1, ""}};
	const double flops = column_number(row, "achieved_flops");
	const double of_peak = column_number(row, "peak_share");
	const double all = column_number(row, "model_utilisation");
	size_t i = 0;
	(void)column;
	if (!(flops > 0))
		return;
	while (i + 1 < COUNT(units) && flops < units[i].scale)
		i++;
	buffer_format(out, "%s %sFLOP/s in a step, ", UNITS_PLAIN(flops / units[i].scale, 3),
		units[i].name);
	if (isnan(of_peak))
		buffer_text(out, "peak unknown");
	else
		buffer_format(out, "%.0f %% of the published peak", 100 * of_peak);
	if (isfinite(all))
		buffer_format(out, " (model utilisation over all time %.0f %%)", 100 * all);
}

/* "1980 (1695-1980)"; the range only where there is one. */
static void device_range(const struct table_column *column, const json_t *row, struct buffer *out)
{
	const json_t *range = column_value(row, column->path);
	const double low = json_number_value(json_array_get(range, 0));
	const double high = json_number_value(json_array_get(range, 2));
	if (json_array_size(range) != 3)
		return;
	buffer_format(out, "%.0f", json_number_value(json_array_get(range, 1)));
	if (round(low) < round(high))
		buffer_format(out, " (%.0f-%.0f)", low, high);
}

static void device_throttles(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	size_t i;
	const json_t *throttle;
	char number[UNITS_BYTES];
	json_array_foreach(column_value(row, column->path), i, throttle)
		buffer_format(out, "%s%s %s", i ? ", " : "", column_text(throttle, "0"),
			units_format_share(column_number(throttle, "1"), number));
}

static void device_errors(const struct table_column *column, const json_t *row, struct buffer *out)
{
	const double corrected = column_number(row, "ecc_corrected");
	const double uncorrected = column_number(row, "ecc_uncorrected");
	(void)column;
	if (corrected > 0)
		buffer_format(out, " %.0f corrected", corrected);
	if (uncorrected > 0)
		buffer_format(out, "%s %.0f UNCORRECTED", corrected > 0 ? "," : "", uncorrected);
}

static const struct table_column device_steps[] = {
	{.head = "; step ", .path = "step_ms", .unit = COLUMN_SECONDS, .scale = 1e-3},
	SAYS("; in a step ", "step_share", SHARE, " of the time"),
	{.head = "; ", .text_of = device_flops},
	SAYS("; idle inside a step ", "idle_share", SHARE, ""),
	{.head = "; launch ", .path = "launch_us", .unit = COLUMN_SECONDS, .scale = 1e-6},
	SAYS("; upload ", "upload_bytes_per_s", RATE, ""),
	SAYS_POSITIVE("; exchange of gradients ", "sync_share", SHARE, " of a step"),
	SAYS_POSITIVE("; of that waiting for other devices ", "sync_wait_share", SHARE, ""),
	SAYS_POSITIVE("; hidden behind the backward pass ", "sync_hidden_share", SHARE,
		" of the exchange"),
	SAYS_POSITIVE("; NOT FINITE: ", "nonfinite_share", SHARE, " of the gradients"),
};

static const struct table_column device_state[] = {
	{.head = "; clock ", .path = "sm_clock_mhz", .text_of = device_range, .after = " MHz"},
	SAYS(" of ", "sm_clock_max_mhz", FIXED, ""),
	{.head = "; power ", .path = "power_w", .text_of = device_range, .after = " W"},
	{.head = "; ", .path = "temperature_c", .text_of = device_range, .after = " C"},
	SAYS("; memory ", "memory_used_bytes.2", BYTES, ""),
	SAYS("; PCIe to it ", "pcie_to_device_bytes_per_s.1", RATE, ""),
	{.head = "; throttled: ", .path = "throttles", .text_of = device_throttles},
	{.head = "; memory errors:", .text_of = device_errors},
};

/* A name is what a driver, or a file, says: it moves no cursor. */
static void device_name_plain(const json_t *device, struct buffer *text)
{
	utf8_add_plain(text, column_text(device, "name"), "?");
	buffer_text(text, *column_text(device, "precision") ? " " : "");
	utf8_add_plain(text, column_text(device, "precision"), "?");
}

/* Whether it computes the same again. */
static void devices_put_results(struct medium *medium, const json_t *point)
{
	static const char *const words[2][3] = {
		{"bit-identical: not promised",
			"bit-identical: not promised; yes by the first loss of all repetitions",
			"bit-identical: not promised, and the first loss differs between repetitions"},
		{"bit-identical: promised by the libraries; nothing was compared",
			"bit-identical: yes, as the libraries promise (first loss of all repetitions)",
			"bit-identical: NO, though the libraries promise it: the first loss differs between repetitions"},
	};
	const char *losses = column_text(point, "first_losses");
	const int same = strcmp(losses, "same") == 0 ? 1 : strcmp(losses, "different") == 0 ? 2 : 0;
	bool promised = true;
	size_t i;
	const json_t *device;
	json_array_foreach(column_value(point, "devices"), i, device)
	{
		if (json_is_true(column_value(device, "emulated")))
			return;
		promised = promised && json_is_true(column_value(device, "deterministic"));
	}
	const bool broken = promised && same == 2;
	if (i > 0)
		medium_fact_text(medium, broken ? INK_BAD : INK_DIM, broken ? "results" : "",
			words[promised][same]);
}

void summary_devices(struct medium *medium, const json_t *point)
{
	size_t i;
	const json_t *device;
	json_array_foreach(column_value(point, "devices"), i, device)
	{
		const long long index = json_integer_value(column_value(device, "index"));
		const bool bad = column_number(device, "ecc_uncorrected") > 0;
		char label[NAME_BYTES];
		struct buffer steps = {0};
		struct buffer text = {0};
		(void)snprintf(label, sizeof label, index < 10 ? "device %lld" : "dev %lld", index);
		columns_phrase(device_steps, COUNT(device_steps), device, &steps);
		device_name_plain(device, &text);
		buffer_format(
			&text, "%s%s", steps.size > 0 ? ": " : "", steps.data ? steps.data : "");
		buffer_release(&steps);
		medium_fact(medium, INK_BOLD, label, &text);
		columns_phrase(device_state, COUNT(device_state), device, &text);
		medium_fact(medium, bad ? INK_BAD : INK_DIM, bad ? "errors" : "", &text);
	}
	devices_put_results(medium, point);
}

/* --- limits ------------------------------------------------------------------------------------- */

/* Full bars stand for this: three times the least limit, so that the stages that matter differ to the
 * eye; what is above it is cut off, as the head says. */
static double limits_scale(const json_t *limits)
{
	static const double LEAST_TIMES = 3;
	double least = INFINITY;
	double most = 0;
	size_t i;
	const json_t *limit;
	json_array_foreach(limits, i, limit)
	{
		const double capacity = column_number(limit, "capacity");
		if (!(capacity > 0))
			continue;
		least = fmin(least, capacity);
		most = fmax(most, capacity);
	}
	return most > 0 ? fmin(most, LEAST_TIMES * least) : 1;
}

void summary_limits(struct medium *medium, const json_t *limits)
{
	const double full = limits_scale(limits);
	char number[UNITS_BYTES];
	char head[UNITS_BYTES + sizeof "0 to "];
	(void)snprintf(head, sizeof head, "0 to %s", units_format_count(full, number));
	const struct table_column columns[] = {
		{.head = "stage", .left = true, .path = "stage"},
		{.head = "samples/s", .path = "capacity", .unit = COLUMN_COUNT, .ink = INK_BOLD},
		{.head = head, .bar = true, .keep = 1, .path = "capacity", .scale = 1 / full},
		{.head = "how", .left = true, .wraps = true, .path = "how", .ink = INK_DIM},
	};
	medium_table(medium, columns, COUNT(columns), limits, "Each stage alone");
}

/* --- points.csv --------------------------------------------------------------------------------- */

/* The commonest reason's share; none: 0, if anything was sampled. */
static void csv_throttled(const struct table_column *column, const json_t *row, struct buffer *out)
{
	const json_t *throttles = column_value(row, column->path);
	if (json_array_size(throttles) > 0)
		buffer_format(out, "%.9g", column_number(throttles, "0.1"));
	else if (column_number(row, "samples") > 0)
		buffer_text(out, "0");
}

/* At a path of the point, or, where that is NULL, the names with the path before them. */
static void csv_put(const struct table_column *columns, size_t count, const char *path,
	const json_t *point, struct buffer *out)
{
	if (point)
		columns_csv_cells(columns, count, column_value(point, path), out);
	else
		columns_csv_heads(columns, count, path, out);
}

/* Named as in JSON. */
#define SAME(name)                            \
	{                                     \
		.csv = (name), .path = (name) \
	}

static const struct table_column csv_first[] = {SAME("id"), SAME("status")};
static const struct table_column csv_figures[] = {
	{.csv = "samples_per_s", .path = "throughput.median"},
	{.csv = "ci95_low", .path = "throughput.ci95.0"},
	{.csv = "ci95_high", .path = "throughput.ci95.1"},
	{.csv = "repeats", .path = "throughput.repeats", .text_of = cell_repeats},
	SAME("step_utilisation"),
	SAME("step_wait_share"),
	SAME("bytes_read_per_s"),
	SAME("page_cache_share"),
	SAME("rss_peak_bytes"),
	SAME("accounted"),
	SAME("bad_samples"),
};
/* Of a job of ranks, where any point is one. */
static const struct table_column csv_ranks[] = {
	SAME("count"), SAME("samples_per_s"), SAME("wait_share"), SAME("exchange_share")};
static const struct table_column csv_stage[] = {SAME("busy"), SAME("starved"), SAME("blocked"),
	SAME("capacity"), SAME("cpu"), SAME("run_queue"), SAME("io_wait"), SAME("lock_wait")};
/* Of the first device, where any point has one. */
static const struct table_column csv_device[] = {
	SAME("name"),
	SAME("step_ms"),
	SAME("step_share"),
	SAME("idle_share"),
	SAME("launch_us"),
	SAME("upload_bytes_per_s"),
	SAME("peak_share"),
	SAME("model_utilisation"),
	{.csv = "sm_clock_mhz", .path = "sm_clock_mhz.1"},
	{.csv = "power_w", .path = "power_w.1"},
	{.csv = "throttled", .path = "throttles", .text_of = csv_throttled},
};
static const struct table_column csv_verdict[] = {
	{.csv = "verdict_stage", .path = "verdict.stage", .text_of = cell_if, .context = MEASURED},
	{.csv = "verdict_resource",
		.path = "verdict.resource",
		.text_of = cell_if,
		.context = MEASURED},
	{.csv = "verdict_confidence",
		.path = "verdict.confidence",
		.text_of = cell_if,
		.context = MEASURED},
};
static const struct table_column csv_last[] = {
	SAME("error"),
};

/* Of one point, or the heads where it is NULL.  stages: of the first measured point: all have the same. */
static void csv_put_line(const struct report *report, const json_t *stages, bool devices,
	const json_t *point, struct buffer *out)
{
	const struct config *config = &report->record->config;
	size_t i;
	const json_t *stage;
	csv_put(csv_first, COUNT(csv_first), "", point, out);
	for (size_t axis = 0; axis < config->axis_count; axis++) {
		char name[CONFIG_NAME_BYTES];
		char value[CONFIG_VALUE_BYTES];
		buffer_text(out, ",");
		csv_text(out,
			point ? report_setting(report, point_id(point), axis, value, sizeof value)
			      : config_key_name(config->axes[axis].key, name));
	}
	csv_put(csv_figures, COUNT(csv_figures), "", point, out);
	csv_put(csv_ranks, has_ranks(report) ? COUNT(csv_ranks) : 0, point ? "ranks" : "ranks.",
		point, out);
	json_array_foreach(stages, i, stage)
	{
		char path[NAME_COLUMN_BYTES];
		(void)snprintf(
			path, sizeof path, point ? "stages.%s" : "%s.", column_text(stage, "name"));
		csv_put(csv_stage, COUNT(csv_stage), path, point, out);
	}
	csv_put(csv_device, devices ? COUNT(csv_device) : 0, point ? "devices.0" : "device.", point,
		out);
	csv_put(csv_verdict, COUNT(csv_verdict), "", point, out);
	/* A row is read apart from its file: it says itself what computed the step, and what was planted. */
	struct buffer injected = {0};
	conditions_injected(config, "; ", &injected);
	buffer_text(out, ",");
	csv_text(out, point ? report->record->step.backend : "step_backend");
	buffer_text(out, ",");
	csv_text(out, !point ? "injected" : injected.data ? injected.data : "");
	buffer_release(&injected);
	csv_put(csv_last, COUNT(csv_last), "", point, out);
	buffer_text(out, "\n");
}

void report_csv(const struct report *report, const json_t *points, struct buffer *out)
{
	const json_t *stages = NULL;
	bool devices = false;
	size_t i;
	const json_t *point;
	json_array_foreach(points, i, point)
	{
		const json_t *mine = column_value(point, "stages");
		devices = devices || column_value(point, "devices.0");
		stages = stages || json_array_size(mine) == 0 ? stages : mine;
	}
	csv_put_line(report, stages, devices, NULL, out);
	json_array_foreach(points, i, point) csv_put_line(report, stages, devices, point, out);
}
