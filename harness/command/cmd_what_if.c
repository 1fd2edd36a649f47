/* mlbench what-if: throughput of settings that were not measured, from a saved result.  The
 * answers are mlbench.what-if/1, and for people made of that document. */
#include "harness/command/saved.h"
#include "harness/command/what_if.h"

#include "harness/base/array.h"
#include "harness/base/log.h"
#include "harness/base/units.h"
#include "harness/config/conditions.h"
#include "harness/record/config_json.h"
#include "harness/record/fields.h"
#include "harness/report/medium.h"
#include "harness/report/report.h"
#include "harness/report/style.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *interval(const struct interval *range)
{
	return json_pack("[o,o]", fields_number(range->low), fields_number(range->high));
}

static json_t *sources(const struct what_if *what_if, const struct forecast *forecast)
{
	json_t *array = json_array();
	for (size_t i = 0; i < forecast->from_count; i++)
		(void)json_array_append_new(
			array, json_integer((json_int_t)what_if->points[forecast->from[i]]));
	return array;
}

static json_t *notes(const char (*lines)[NOTE_BYTES], size_t count)
{
	json_t *array = json_array();
	for (size_t i = 0; i < count; i++)
		(void)json_array_append_new(array, fields_text(lines[i]));
	return array;
}

static json_t *what_if_json_answers(const struct what_if *what_if)
{
	json_t *array = json_array();
	for (size_t i = 0; i < what_if->grid.points; i++) {
		const struct alternative *alternative = &what_if->alternatives[i];
		const struct forecast *forecast = &alternative->forecast;
		const size_t item = what_if_measured_item(what_if, alternative);
		if (!alternative->done)
			continue;
		json_t *limit =
			!alternative->stage[0]
				? json_null()
				: json_pack("{s:s, s:s?}", "stage", alternative->stage, "resource",
					  alternative->resource[0] ? alternative->resource : NULL);
		(void)json_array_append_new(array,
			json_pack("{s:o, s:b, s:f, s:o, s:f, s:o, s:o, s:o, s:o}", "settings",
				config_point_to_json(&what_if->asked, &what_if->grid, i),
				"predicted", 1, "throughput", forecast->throughput, "interval90",
				interval(&forecast->interval), "gain",
				forecast->throughput / what_if->base_measured - 1, "limit", limit,
				"calibrated_from", sources(what_if, forecast), "extrapolates",
				notes((const char(*)[NOTE_BYTES])alternative->notes,
					alternative->note_count),
				"measured",
				item < what_if->point_count
					? fields_number(what_if->forecaster.measured[item])
					: json_null()));
	}
	return array;
}

/* From its own calibration the unchanged setting comes out as it was measured, which shows nothing. */
static bool calibrated_at_base(const struct what_if *what_if)
{
	const struct forecast *forecast = &what_if->alternatives[0].forecast;
	return forecast->from_count == 1 && forecast->from[0] == what_if->base;
}

static json_t *base(const struct what_if *what_if)
{
	const double unchanged = what_if->alternatives[0].forecast.unchanged;
	json_t *repeats = json_array();
	for (size_t i = 0; i < what_if->base_repeat_count; i++)
		(void)json_array_append_new(repeats, json_real(what_if->base_repeats[i]));
	return json_pack("{s:I, s:o, s:f, s:o, s:o}", "point", (json_int_t)what_if->base,
		"settings",
		config_point_to_json(&what_if->record.config, &what_if->record.grid, what_if->base),
		"measured", what_if->base_measured, "replayed",
		calibrated_at_base(what_if) ? json_null() : fields_number(unchanged), "repeats",
		repeats);
}

static json_t *fleet_strong_json(const struct fleet_strong *strong)
{
	if (isnan(strong->efficiency))
		return json_null();
	return json_pack("{s:I, s:f, s:f}", "batch", (json_int_t)strong->batch, "throughput",
		strong->samples_per_s, "efficiency", strong->efficiency);
}

static json_t *fleet_point_json(const struct fleet_answer *answer, size_t at)
{
	const struct fleet_point *const point = &answer->points[at];
	static const char *const limits[] = {
		[FLEET_LIMIT_INPUT] = "input",
		[FLEET_LIMIT_STEP] = STAGE_STEP_NAME,
		[FLEET_LIMIT_STORAGE] = "file server",
		[FLEET_LIMIT_NETWORK] = "network",
		[FLEET_LIMIT_SLOWEST] = "slowest node",
	};
	const struct fleet_measured *const measured = &answer->measured;
	return json_pack("{s:i, s:f, s:o, s:o, s:f, s:o, s:f, s:o, s:s?, s:f, s:f, s:f, s:s}",
		"nodes", (int)point->nodes, "throughput", point->samples_per_s, "interval90",
		interval(&answer->intervals[at]), "measured",
		point->nodes == measured->ranks ? fields_number(measured->samples_per_s)
						: json_null(),
		"efficiency", point->efficiency, "strong", fleet_strong_json(&answer->strong[at]),
		"waiting_share", point->waiting_share, "round_bound",
		fields_number(answer->rounds[at].bound), "exchange",
		point->exchange_seconds > 0 ? fleet_exchange_name(point->exchange) : NULL,
		"exchange_seconds", point->exchange_seconds, "exposed_seconds",
		point->exposed_seconds, "file_server_share", point->storage_share, "limit",
		limits[point->limit]);
}

static json_t *fleet_first_json(unsigned nodes)
{
	return nodes > 0 ? json_integer(nodes) : json_null();
}

/* Ranks that were measured; null: none. */
static json_t *fleet_measured_json(const struct fleet_answer *answer)
{
	const struct fleet_measured *const measured = &answer->measured;
	if (measured->ranks == 0)
		return json_null();
	return json_pack("{s:I, s:f, s:f, s:o, s:o, s:f}", "nodes", (json_int_t)measured->ranks,
		"throughput", measured->samples_per_s, "predicted_before", answer->unmended,
		"round_seconds", fields_number(measured->round_seconds), "exposed_seconds",
		fields_number(measured->exposed_seconds), "waiting_times", answer->together);
}

static json_t *what_if_fleet_json(const struct what_if *what_if)
{
	const struct fleet_answer *answer = what_if->fleet;
	const struct fleet *fleet = &answer->fleet;
	json_t *points = json_array();
	for (size_t i = 0; i < answer->count; i++)
		(void)json_array_append_new(points, fleet_point_json(answer, i));
	return json_pack(
		"{s:b, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:o, s:f, s:f, s:o}",
		"predicted", 1, "spread", answer->spread.deviation, "measured",
		fleet_measured_json(answer), "node_samples_per_s",
		fields_number(fleet->node_samples_per_s), "input_samples_per_s",
		fields_number(fleet->input_samples_per_s), "step_seconds",
		fields_number(fleet->step_seconds), "bytes_per_sample",
		fields_number(fleet->bytes_per_sample), "storage_bytes_per_s",
		fields_number(fleet->storage_bytes_per_s), "network_bytes_per_s",
		fields_number(fleet->network_bytes_per_s), "gradient_bytes", fleet->gradient_bytes,
		"bucket_bytes", fleet->bucket_bytes, "points", points, "network_latency_s",
		fleet->network_latency_s, "overlap", fleet->overlap, "first_limits",
		json_pack("{s:o, s:o, s:o, s:o}", "file_server",
			fleet_first_json(answer->storage_binds), "network",
			fleet_first_json(answer->network_binds), "slowest_node",
			fleet_first_json(answer->slowest_binds), "notes",
			notes((const char(*)[NOTE_BYTES])answer->notes, answer->note_count)));
}

static json_t *what_if_json(const struct what_if *what_if)
{
	const struct record *record = &what_if->record;
	/* Of predicting measured points from each other. */
	const struct forecast_errors *of = &what_if->errors;
	json_t *errors = json_pack("{s:I, s:o, s:o}", "points", (json_int_t)of->count, "median",
		fields_number(of->median), "worst", fields_number(of->worst));
	json_t *contaminated =
		what_if->contaminated == 0
			? json_null()
			: json_pack("{s:I, s:s}", "points", (json_int_t)what_if->contaminated,
				  "reason", what_if->contamination);
	return json_pack("{s:s, s:o, s:o, s:s, s:s, s:b, s:b, s:o, s:o, s:o, s:o, s:o}", "schema",
		"mlbench.what-if/1", "name", fields_text(record->name), "result",
		fields_text(record->folder), "config_hash", record->config_hash, "unit",
		"samples/s", "predicted", 1, "complete",
		(int)(what_if->done == what_if->grid.points), "base", base(what_if), "alternatives",
		what_if_json_answers(what_if), "contaminated", contaminated, "cross_errors", errors,
		"fleet", what_if->fleet ? what_if_fleet_json(what_if) : json_null());
}

/* --- for people ------------------------------------------------------------------------------- */

enum { ANSWER_COLUMNS = 5 };

static void what_if_rate_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	char text[UNITS_BYTES];
	buffer_format(out, "~%s", units_format_count(column_number(row, column->path), text));
}

static void what_if_gain_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	buffer_format(out, "%+.1f%%", 100 * column_number(row, column->path));
}

static void what_if_limit_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	const char *resource = column_text(row, "limit.resource");
	(void)column;
	buffer_format(
		out, "%s%s%s", column_text(row, "limit.stage"), *resource ? " / " : "", resource);
}

static void what_if_exchange_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	const double seconds = column_number(row, "exchange_seconds");
	char text[UNITS_BYTES];
	(void)column;
	if (seconds > 0)
		buffer_format(out, "%s %s", column_text(row, "exchange"),
			units_format_duration(seconds * 1e9, text));
}

/* Of the node, or of what all nodes share. */
static void what_if_fleet_limit_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	const char *limit = column_text(row, "limit");
	const bool shared = strcmp(limit, "file server") == 0 || strcmp(limit, "network") == 0 ||
			    strcmp(limit, "slowest node") == 0;
	(void)column;
	buffer_format(out, "%s %s", shared ? "the" : "the node's own", limit);
}

/* "1,120 to 1,240" */
static void what_if_add_range(double low, double high, struct buffer *out)
{
	char text[UNITS_BYTES];
	buffer_format(out, "%s to ", units_format_count(low, text));
	buffer_text(out, units_format_count(high, text));
}

static void what_if_add_base(const struct what_if *what_if, struct medium *medium)
{
	const size_t count = what_if->base_repeat_count;
	char number[UNITS_BYTES];
	struct buffer text = {0};
	buffer_format(&text, "%s samples/s%s", units_format_count(what_if->base_measured, number),
		conditions_most_ranks(&what_if->record.config) > 1 ? " a rank" : "");
	if (what_if->record.config.axis_count > 0) {
		buffer_format(&text, " at point %zu, ", what_if->base);
		config_point_text(
			&what_if->record.config, &what_if->record.grid, what_if->base, &text);
	}
	buffer_format(&text, " (%zu repetition%s", count, count == 1 ? "" : "s");
	if (count > 1) {
		buffer_text(&text, ", ");
		what_if_add_range(
			what_if->base_repeats[0], what_if->base_repeats[count - 1], &text);
	}
	buffer_text(&text, ")");
	medium_fact(medium, INK_PLAIN, "measured", &text);
	const struct forecast *forecast = &what_if->alternatives[0].forecast;
	if (calibrated_at_base(what_if))
		buffer_text(&text,
			"the model is calibrated at the unchanged setting: gains are between replays");
	else
		buffer_format(&text,
			"%s samples/s at the unchanged setting (%+.1f %%): gains are between replays",
			units_format_count(forecast->unchanged, number),
			100 * (forecast->unchanged / what_if->base_measured - 1));
	medium_fact(medium, INK_DIM, "replayed", &text);
}

/* answer NULL: of all. */
static void what_if_add_sources(
	const struct what_if *what_if, const json_t *answer, struct medium *medium)
{
	const json_t *from = json_object_get(answer, "calibrated_from");
	const struct forecast_errors *model = &what_if->errors;
	struct buffer text = {0};
	if (what_if->record.grid.points == 1)
		return;
	if (answer)
		buffer_format(
			&text, "calibrated from point%s ", json_array_size(from) == 1 ? "" : "s");
	else
		buffer_format(&text, "calibrated from %zu measured points, the nearest %d of each",
			what_if->source_count, (int)what_if->forecaster.nearest);
	for (size_t i = 0; i < json_array_size(from); i++)
		buffer_format(&text, "%s%lld", i ? ", " : "",
			(long long)json_integer_value(json_array_get(from, i)));
	if (model->count > 1)
		buffer_format(&text,
			"; model error, each measured point predicted from the others: median %.1f %%, "
			"worst %.1f %%",
			100 * model->median, 100 * model->worst);
	medium_fact(medium, INK_DIM, "from", &text);
}

static void what_if_one_answer(
	const struct what_if *what_if, const json_t *answer, struct medium *medium)
{
	const double rate = column_number(answer, "throughput");
	const double low = column_number(answer, "interval90.0");
	const double high = column_number(answer, "interval90.1");
	const size_t item = what_if_measured_item(what_if, &what_if->alternatives[0]);
	char number[UNITS_BYTES];
	struct buffer text = {0};
	config_point_text(&what_if->asked, &what_if->grid, 0, &text);
	medium_fact(medium, INK_PLAIN, "set", &text);
	buffer_format(&text, "predicted %s samples/s (90 %% CI ", units_format_count(rate, number));
	what_if_add_range(low, high, &text);
	buffer_text(&text, ")");
	medium_fact(medium, INK_BOLD, "gives", &text);
	if (item < what_if->point_count && what_if->points[item] != what_if->base)
		buffer_format(&text, "also measured: point %zu, %s samples/s",
			what_if->points[item],
			units_format_count(column_number(answer, "measured"), number));
	medium_fact(medium, INK_PLAIN, "", &text);
	buffer_format(&text, "%+.1f %% (%+.1f %% to %+.1f %%)",
		100 * (rate / what_if->base_measured - 1), 100 * (low / what_if->base_measured - 1),
		100 * (high / what_if->base_measured - 1));
	medium_fact(medium, INK_PLAIN, "gain", &text);
	if (json_is_object(json_object_get(answer, "limit"))) {
		buffer_text(&text, "the bottleneck is ");
		what_if_limit_cell(NULL, answer, &text);
	}
	medium_fact(medium, INK_PLAIN, "then", &text);
	what_if_add_sources(what_if, answer, medium);
	medium_list(medium, INK_DIM, "assumed", json_object_get(answer, "extrapolates"), 0);
}

static void what_if_table(
	const struct what_if *what_if, const json_t *answers, struct medium *medium)
{
	static const struct table_column fixed[ANSWER_COLUMNS] = {
		{.head = "predicted\nsamples/s",
			.path = "throughput",
			.text_of = what_if_rate_cell,
			.ink = INK_BOLD},
		{.head = "90 % CI",
			.path = "interval90",
			.unit = COLUMN_COUNT,
			.keep = 3,
			.ink = INK_DIM},
		{.head = "gain", .path = "gain", .text_of = what_if_gain_cell},
		{.head = "then the\nbottleneck",
			.text_of = what_if_limit_cell,
			.left = true,
			.keep = 2},
		{.head = "measured", .path = "measured", .unit = COLUMN_COUNT, .keep = 4},
	};
	struct table_column columns[CONFIG_AXES_MAX + ANSWER_COLUMNS];
	char heads[CONFIG_AXES_MAX][CONFIG_NAME_BYTES];
	char paths[CONFIG_AXES_MAX][CONFIG_NAME_BYTES + 16];
	const size_t keys = what_if->asked.axis_count;
	for (size_t i = 0; i < keys; i++) {
		const struct key *key = &config_keys[what_if->asked.axes[i].key];
		(void)snprintf(heads[i], sizeof heads[i], "%s\n%s", key->section, key->name);
		(void)snprintf(
			paths[i], sizeof paths[i], "settings.%s.%s", key->section, key->name);
		columns[i] = (struct table_column){.head = heads[i], .path = paths[i]};
	}
	memcpy(columns + keys, fixed, sizeof fixed);
	medium_space(medium);
	medium_table(medium, columns, keys + ANSWER_COLUMNS, answers, "predicted settings");
	medium_space(medium);
}

/* Each note of a table once. */
static void what_if_table_notes(const json_t *answers, struct medium *medium)
{
	json_t *once = json_object();
	json_t *list = json_array();
	size_t i;
	const json_t *answer;
	json_array_foreach(answers, i, answer)
	{
		const json_t *lines = json_object_get(answer, "extrapolates");
		for (size_t n = 0; n < json_array_size(lines); n++) {
			json_t *line = json_array_get(lines, n);
			const char *words = json_string_value(line);
			if (json_object_get(once, words) ||
				json_array_size(list) == WHAT_IF_NOTES_MAX)
				continue;
			(void)json_object_set(once, words, line);
			(void)json_array_append(list, line);
		}
	}
	medium_list(medium, INK_DIM, "assumed", list, 0);
	json_decref(list);
	json_decref(once);
}

/* The replay has the others' threads in it: what it predicts is of a node that they go on using. */
static void what_if_add_contamination(const struct what_if *what_if, struct medium *medium)
{
	struct buffer text = {0};
	if (what_if->contaminated == 0)
		return;
	if (what_if->source_count > 1)
		buffer_format(&text, "%zu of the %zu points that the model is calibrated from: ",
			what_if->contaminated, what_if->source_count);
	buffer_format(&text,
		"%s during the measurement: predictions and their intervals hold for a node "
		"under the same load",
		what_if->contamination);
	medium_fact(medium, INK_WARN, "load", &text);
}

/* nodes NULL: it never is; there: it can be at all. */
static void what_if_add_first(
	const char *what, const json_t *nodes, bool there, struct medium *medium)
{
	const long long count = json_integer_value(nodes);
	struct buffer text = {0};
	if (there && count > 0)
		buffer_format(&text, "%s is the bottleneck from %lld node%s on", what, count,
			count == 1 ? "" : "s");
	else if (there)
		buffer_format(
			&text, "%s is not the bottleneck up to %d nodes", what, FLEET_NODES_MAX);
	medium_fact(medium, INK_BOLD, "first", &text);
}

static void what_if_add_measured(const json_t *measured, struct medium *medium)
{
	const double found = column_number(measured, "throughput");
	const double before = column_number(measured, "predicted_before");
	char number[UNITS_BYTES];
	struct buffer text = {0};
	if (!json_is_object(measured))
		return;
	buffer_format(&text, "%lld ranks: %s samples/s; ",
		(long long)json_integer_value(json_object_get(measured, "nodes")),
		units_format_count(found, number));
	buffer_format(&text, "the model predicted %s (%+.1f %%) before they corrected it",
		units_format_count(before, number), 100 * (before / found - 1));
	medium_fact(medium, INK_PLAIN, "measured", &text);
}

static void what_if_add_fleet(const struct fleet *of, const json_t *fleet, struct medium *medium)
{
	/* The last one only where ranks were measured. */
	static const struct table_column columns[] = {
		{.head = "nodes", .path = "nodes"},
		{.head = "predicted\nsamples/s",
			.path = "throughput",
			.text_of = what_if_rate_cell,
			.ink = INK_BOLD},
		{.head = "90 % CI", .path = "interval90", .unit = COLUMN_COUNT, .ink = INK_DIM},
		{.head = "weak\nscaling", .path = "efficiency", .unit = COLUMN_SHARE},
		{.head = "strong\nscaling",
			.path = "strong.efficiency",
			.unit = COLUMN_SHARE,
			.keep = 1},
		{.head = "waiting", .path = "waiting_share", .unit = COLUMN_SHARE, .keep = 2},
		{.head = "exchange", .text_of = what_if_exchange_cell, .keep = 3, .ink = INK_DIM},
		{.head = "file\nserver",
			.path = "file_server_share",
			.unit = COLUMN_SHARE,
			.keep = 4},
		{.head = "bottleneck", .text_of = what_if_fleet_limit_cell, .left = true},
		{.head = "measured", .path = "measured", .unit = COLUMN_COUNT},
	};
	const bool measured = json_is_object(json_object_get(fleet, "measured"));
	medium_heading(medium, measured ? "a fleet of such nodes, predicted: each is a rank"
					: "a fleet of such nodes, predicted");
	medium_table(medium, columns, COUNT(columns) - !measured, json_object_get(fleet, "points"),
		"a fleet");
	medium_space(medium);
	what_if_add_measured(json_object_get(fleet, "measured"), medium);
	what_if_add_first("the file server", column_value(fleet, "first_limits.file_server"),
		isfinite(of->storage_bytes_per_s), medium);
	what_if_add_first("the network", column_value(fleet, "first_limits.network"),
		of->gradient_bytes > 0 &&
			(isfinite(of->network_bytes_per_s) || of->network_latency_s > 0),
		medium);
	what_if_add_first("waiting for the slowest node",
		column_value(fleet, "first_limits.slowest_node"), true, medium);
	medium_list(medium, INK_DIM, "assumed", column_value(fleet, "first_limits.notes"), 0);
}

static void what_if_text(const struct what_if *what_if, const json_t *document,
	const struct style *style, struct buffer *out)
{
	const json_t *answers = json_object_get(document, "alternatives");
	struct medium medium = medium_terminal(style, out);
	struct buffer words = {0};
	buffer_format(&words,
		"predicted by the model from recorded service times; nothing was run; %s step",
		what_if->record.step.backend);
	medium_title(&medium, what_if->record.name, words.data ? words.data : "");
	buffer_release(&words);
	conditions_injected(&what_if->asked, ", ", &words);
	medium_fact(&medium, INK_WARN, "injected", &words);
	conditions_declared(&what_if->asked, &words);
	medium_fact(&medium, INK_WARN, "declared", &words);
	what_if_add_contamination(what_if, &medium);
	what_if_add_base(what_if, &medium);
	if (what_if->asked.axis_count == 0) { /* --fleet alone */
		what_if_add_sources(what_if, json_array_get(answers, 0), &medium);
	} else if (what_if->grid.points == 1) {
		what_if_one_answer(what_if, json_array_get(answers, 0), &medium);
	} else {
		what_if_table(what_if, answers, &medium);
		what_if_add_sources(what_if, NULL, &medium);
		what_if_table_notes(answers, &medium);
	}
	medium_fact_text(&medium, INK_DIM, "result", what_if->record.folder);
	if (what_if->fleet)
		what_if_add_fleet(
			&what_if->fleet->fleet, json_object_get(document, "fleet"), &medium);
	medium_end(&medium);
}

/* --- the command ------------------------------------------------------------------------------ */

/* Too little to predict from is no mistake of the user's. */
static int status_of(int code)
{
	return code == -ENODATA   ? EXIT_STATUS_CANNOT
	       : code == -ENOTSUP ? EXIT_STATUS_BAD_INPUT /* a key that replay does not model */
				  : command_status(code);
}

static int what_if_print(const struct what_if *what_if, struct error *err)
{
	json_t *document = what_if_json(what_if);
	if (command_wants_json(what_if->invocation) || !document)
		return command_print_json(what_if->invocation, document, err);
	const struct style style = command_style(what_if->invocation);
	struct buffer text = {0};
	what_if_text(what_if, document, &style, &text);
	json_decref(document);
	return command_print(&text, err);
}

static void what_if_release(struct what_if *what_if)
{
	forecaster_close(&what_if->forecaster);
	config_grid_close(&what_if->grid);
	config_release(&what_if->asked);
	record_release(&what_if->record);
	free(what_if->points);
	free(what_if->base_repeats);
	free(what_if->alternatives);
	what_if_fleet_close(what_if->fleet);
	free(what_if);
}

/* The base last: its reason is the one that is told. */
static int look_for_load(struct what_if *what_if, struct error *err)
{
	struct report report = {0};
	int code = report_open(&report, &what_if->record, err);
	for (size_t i = 0; i < what_if->source_count && !code; i++) {
		const size_t point = what_if->points[what_if->sources[i]];
		const struct point_summary *p = report.points[point];
		if (!p || !p->contaminated[0])
			continue;
		if (what_if->contaminated++ == 0 || point == what_if->base)
			memcpy(what_if->contamination, p->contaminated,
				sizeof what_if->contamination);
	}
	report_close(&report);
	if (code || what_if->contaminated == 0 ||
		!options_given(&what_if->invocation->options, OPTION_FLEET) ||
		options_given(&what_if->invocation->options, OPTION_FORCE))
		return code;
	return error_set(err, -ENODATA,
		"--fleet: '%s' was measured on a loaded node (%s); measure it again on an idle "
		"one, or give --force",
		what_if->record.folder, what_if->contamination);
}

static int what_if_command(const struct invocation *invocation, struct error *err)
{
	struct what_if *what_if = calloc(1, sizeof *what_if);
	if (!what_if)
		return command_status(error_set(err, -ENOMEM, "out of memory"));
	what_if->invocation = invocation;
	int code = saved_open(
		&what_if->record, invocation->options.arguments[0], SAVED_SWEEP_FIRST, err);
	if (!code)
		code = what_if_ask(what_if, err);
	if (!code)
		code = what_if_answer(what_if, err);
	if (!code)
		code = look_for_load(what_if, err);
	if (!code && options_given(&invocation->options, OPTION_FLEET))
		code = what_if_fleet(what_if, err);
	int status = status_of(code);
	if (!code)
		err->text[0] = '\0'; /* what was met and overcome on the way */
	if (!code)
		status = what_if_print(what_if, err);
	if (!code && !status && what_if->done < what_if->grid.points)
		status = atomic_load(invocation->stop) ? EXIT_STATUS_INTERRUPTED
						       : EXIT_STATUS_CANNOT;
	what_if_release(what_if);
	return status;
}

const struct command command_what_if = {
	.name = "what-if",
	.summary = "predict other settings, or a fleet, from a saved result",
	.arguments = "RESULT",
	.description =
		"Replays the service times recorded in RESULT through the pipeline as it would "
		"be with the keys of --set changed. Prints the predicted throughput with a 90 % "
		"interval, the measured one beside it, and the bottleneck that the change would "
		"lead to. A gain is the difference between the replays of the changed and of the "
		"unchanged setting; where the latter misses what was measured by half, nothing is "
		"predicted. Nothing runs, and every figure is marked as predicted. A list, as in "
		"--set decode.workers=4,8,16, makes a table; several lists are combined, up to "
		"1,000 settings.\n\n"
		"RESULT is a run's folder or the name of a benchmark in results/ (its newest "
		"sweep, or else its newest run); the first line says which one was read. Of a "
		"sweep, the changes apply to the best measured point or to that of --point. "
		"Predictions come from the measured points nearest to the setting; where these "
		"disagree or predict each other badly, the interval is wider.\n\n"
		"--fleet N predicts N nodes like this one that train synchronously. They share a file "
		"server (--storage) and sum their gradients over a network (--network-bandwidth, "
		"--network-latency), by ring or tree, in buckets that overlap with the backward pass "
		"(--overlap). Each round waits for the slowest node: recorded service times are "
		"replayed for several nodes that meet after each step, and --fleet N:3% lets nodes "
		"differ in speed. It prints throughput with a 90 % interval, the efficiency of weak "
		"scaling (the same batch per node) and of strong scaling (the same batch of all "
		"nodes), the share of time that is spent waiting, and which of node, file server, "
		"network and slowest node is the bottleneck, and from how many nodes on. Of a result "
		"of several ranks, a rank is the node: how ranks differ, what they exchange and how "
		"long they wait for each other correct the model, and what was measured stands beside "
		"what is predicted.\n\n"
		"The output says if a result was measured under other load. Predictions then "
		"hold for a node under the same load, and a fleet is refused without --force.\n\n"
		"A key that the replay does not model is refused, with the list of keys that it "
		"does. A run that was too short is refused with exit status 3.",
	.example = "mlbench what-if imagenet_like --set decode.workers=16 --set step.device=a100",
	.options = OPTION_BIT(OPTION_SET) | OPTION_BIT(OPTION_JSON) | OPTION_BIT(OPTION_POINT) |
		   OPTION_BIT(OPTION_FLEET) | OPTION_BIT(OPTION_STORAGE) |
		   OPTION_BIT(OPTION_NETWORK_BANDWIDTH) | OPTION_BIT(OPTION_NETWORK_LATENCY) |
		   OPTION_BIT(OPTION_GRADIENT_BYTES) | OPTION_BIT(OPTION_OVERLAP) |
		   OPTION_BIT(OPTION_ALL_REDUCE) | OPTION_BIT(OPTION_FORCE),
	.arguments_min = 1,
	.arguments_max = 1,
	.run = what_if_command,
};
