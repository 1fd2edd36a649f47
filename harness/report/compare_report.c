/* A comparison for people, from its document (compare_json.c): in the terminal, with the answer
 * last; as Markdown for a pull request's comment, with the answer first; and as a page of its own, with the
 * differences as dots and their intervals. */
#include "harness/report/compare.h"

#include "harness/base/array.h"
#include "harness/base/text.h"
#include "harness/record/config_json.h"
#include "harness/record/fields.h"
#include "harness/report/html/chart.h"
#include "harness/report/html/palette.h"
#include "harness/report/layout.h"
#include "harness/report/medium.h"
#include "harness/report/screen.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	POINT_LINES_WANTED = 9, /* of a screen */
	COMPARE_POINTS_SHOWN = 100,
	COMPARE_POINTS_DRAWN = 200,
	COMPARE_KEYS_MOST = 12,
	COMPARE_LISTED_MOST = 8,
	VALUE_MOST = 40, /* bytes of a cell */
	FACT_MOST = 400,
	ROW_PIXELS = 22,
};

/* --- what the document has ------------------------------------------------------------------------ */

static json_t *compare_member(const json_t *object, const char *name)
{
	return json_object_get(object, name);
}

static size_t compare_point_count(const json_t *c)
{
	return json_array_size(compare_member(c, "points"));
}

static json_t *compare_throughput(const json_t *of)
{
	return compare_member(of, "throughput");
}

/* The point whose stages are shown: the one whose difference is explained, else the baseline's best. */
static json_t *compare_focus(const json_t *c)
{
	json_t *points = compare_member(c, "points");
	const json_t *explained = column_value(c, "explanation.point");
	json_t *best = json_array_get(points, 0);
	size_t i;
	json_t *point;
	if (explained)
		return json_array_get(points, (size_t)json_integer_value(explained));
	json_array_foreach(points, i, point)
	{
		const double rate = column_number(best, "metrics.throughput.a");
		if (isnan(rate) || column_number(point, "metrics.throughput.a") > rate)
			best = point;
	}
	return best;
}

/* Where one of several points is meant: " at decode.workers=2". */
static void add_focus(const json_t *c, const char *before, struct buffer *out)
{
	if (compare_point_count(c) < 2)
		return;
	buffer_text(out, before);
	compare_settings_text(compare_member(compare_focus(c), "settings"), out);
}

static size_t compare_count_of(const json_t *c, const char *weight)
{
	size_t i;
	size_t count = 0;
	const json_t *fact;
	json_array_foreach(compare_member(c, "differs"), i, fact) count +=
		strcmp(column_text(fact, "weight"), weight) == 0;
	return count;
}

/* --- figures -------------------------------------------------------------------------------------- */

static struct metric metric_named(const char *name)
{
	struct metric metrics[METRICS_MAX];
	char stage[1][NAME_BYTES];
	size_t i = 0;
	(void)snprintf(stage[0], sizeof stage[0], "%.*s", (int)strcspn(name, "."), name);
	const size_t count = metrics_of_stages((const char(*)[NAME_BYTES])stage, 1, metrics);
	while (i + 1 < count && strcmp(metrics[i].name, name) != 0)
		i++;
	return metrics[i];
}

/* A difference as a row: with its metric's name, "metric". */
static json_t *figure_row(const char *metric, json_t *difference)
{
	json_t *row = json_copy(difference);
	if (json_object_set_new(row, "metric", json_string(metric)) == 0)
		return row;
	json_decref(row);
	return NULL;
}

static bool is_told(const json_t *difference)
{
	const char *verdict = column_text(difference, "verdict");
	return strcmp(verdict, "less") == 0 || strcmp(verdict, "more") == 0;
}

static enum ink difference_ink(const char *metric, const json_t *difference)
{
	const char *verdict = column_text(difference, "verdict");
	const enum metric_sense sense = metric_named(metric).kind->sense;
	if (!is_told(difference))
		return strcmp(verdict, "unsure") == 0 || strcmp(verdict, "untold") == 0 ? INK_WARN
											: INK_DIM;
	if (sense == METRIC_NEITHER)
		return INK_ACCENT;
	return (strcmp(verdict, "more") == 0) == (sense == METRIC_MORE_IS_BETTER) ? INK_GOOD
										  : INK_BAD;
}

static enum ink figure_ink(const struct table_column *column, const json_t *row)
{
	(void)column;
	return difference_ink(column_text(row, "metric"), row);
}

static void figure_value_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	const struct metric metric = metric_named(column_text(row, "metric"));
	char text[METRIC_TEXT_BYTES];
	buffer_text(out, metric_text(&metric, column_number(row, column->path), text));
}

static void figure_change_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	const struct metric metric = metric_named(column_text(row, "metric"));
	char text[METRIC_TEXT_BYTES];
	buffer_text(out, metric_change_text(&metric, column_number(row, column->path), text));
}

static void figure_interval_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	static const struct table_column ends[] = {{.path = "interval.0"}, {.path = "interval.1"}};
	if (!json_is_array(column_value(row, column->path)))
		return;
	figure_change_cell(&ends[0], row, out);
	buffer_text(out, " to ");
	figure_change_cell(&ends[1], row, out);
}

static void figure_p_cell(const struct table_column *column, const json_t *row, struct buffer *out)
{
	const double p = column_number(row, column->path);
	if (p < 1e-4)
		buffer_text(out, "<0.0001");
	else if (!isnan(p))
		buffer_format(out, "%.4f", p);
}

#define VALUE_CELL(side) .path = (side), .text_of = figure_value_cell
#define CHANGE_CELL .path = "change", .text_of = figure_change_cell, .ink_of = figure_ink
#define INTERVAL_CELL .path = "interval", .text_of = figure_interval_cell
#define P_CELL .path = "p_adjusted", .text_of = figure_p_cell, .ink = INK_DIM
#define WORDS_CELL .left = true, .wraps = true, .path = "words", .ink_of = figure_ink

/* --- tables of text ------------------------------------------------------------------------------- */

/* Under its heading, unless it is empty.  Takes rows. */
static void compare_put_rows(struct medium *medium, const char *heading,
	const struct table_column *columns, size_t count, json_t *rows)
{
	struct buffer words = {0};
	if (json_array_size(rows) > 0) {
		utf8_add_plain(&words, heading, "?");
		medium_heading(medium, words.data ? words.data : "");
		medium_table(medium, columns, count, rows, "");
	}
	medium->out->failed = medium->out->failed || !rows;
	buffer_release(&words);
	json_decref(rows);
}

/* column->path: the key. */
static void setting_cell(const struct table_column *column, const json_t *row, struct buffer *out)
{
	struct buffer text = {0};
	struct buffer plain = {0};
	compare_setting_value(
		column->path, compare_member(compare_member(row, "settings"), column->path), &text);
	utf8_add_plain(&plain, text.data ? text.data : "", "?");
	buffer_format(out, "%.*s", VALUE_MOST, plain.data ? plain.data : "");
	buffer_release(&plain);
	buffer_release(&text);
}

/* Throughput of points: their settings, a column each, and the difference; those that differ first where not all are
 * shown. */
static void compare_put_points(
	struct medium *medium, const json_t *c, double significance, size_t most)
{
	static const struct table_column fixed[] = {{.head = "samples/s\nA", VALUE_CELL("a")},
		{.head = "samples/s\nB", VALUE_CELL("b")}, {.head = "change", CHANGE_CELL},
		{.head = "interval", .keep = 1, INTERVAL_CELL}, {.head = "p", .keep = 2, P_CELL},
		{.head = "B is", WORDS_CELL}};
	struct table_column columns[COMPARE_KEYS_MOST + COUNT(fixed)];
	char heads[COMPARE_KEYS_MOST][CONFIG_NAME_BYTES];
	char heading[METRIC_TEXT_BYTES];
	json_t *points = compare_member(c, "points");
	json_t *rows = json_array();
	struct buffer more = {0};
	size_t keys = 0;
	size_t i;
	const char *key;
	json_t *value;
	json_object_foreach(compare_member(json_array_get(points, 0), "settings"), key, value)
	{
		if (keys == COMPARE_KEYS_MOST)
			break;
		(void)snprintf(heads[keys], sizeof heads[keys], "%s", key);
		heads[keys][strcspn(key, ".")] = '\n';
		columns[keys] = (struct table_column){
			.head = heads[keys], .path = key, .text_of = setting_cell};
		keys++;
	}
	memcpy(&columns[keys], fixed, sizeof fixed);
	const bool all = json_array_size(points) <= most;
	for (int turn = all; turn < 2; turn++)
		json_array_foreach(points, i, value)
		{
			json_t *throughput = compare_throughput(compare_member(value, "metrics"));
			if (json_array_size(rows) >= most || (!all && is_told(throughput) != !turn))
				continue;
			json_t *row = figure_row("throughput", throughput);
			if (json_object_set(row, "settings", compare_member(value, "settings")) !=
				0)
				medium->out->failed = true;
			part_append(&rows, row);
		}
	(void)snprintf(heading, sizeof heading, "throughput, %g %% confidence intervals",
		100 * (1 - significance));
	compare_put_rows(medium, heading, columns, keys + COUNT(fixed), rows);
	if (!all)
		buffer_format(&more, "... and %zu more points (--format json has all)",
			json_array_size(points) - most);
	medium_note(medium, &more);
}

/* Of the focus: {"stage": "decode", "metrics": {...}}. */
static json_t *stage_rows(json_t *metrics)
{
	json_t *rows = json_array();
	const char *name;
	json_t *figure;
	json_object_foreach(metrics, name, figure)
	{
		const struct metric metric = metric_named(name);
		const json_t *last = json_array_get(rows, json_array_size(rows) - 1);
		if (metric.stage[0] && strcmp(column_text(last, "stage"), metric.stage) != 0)
			part_append(&rows,
				json_pack("{s:s, s:O}", "stage", metric.stage, "metrics", metrics));
	}
	return rows;
}

/* column->context: of the stage's metrics; name: room for its whole name. */
static const json_t *stage_figure(
	const struct table_column *column, const json_t *row, char name[METRIC_NAME_BYTES])
{
	(void)snprintf(name, METRIC_NAME_BYTES, "%s.%s", column_text(row, "stage"),
		(const char *)column->context);
	return compare_member(compare_member(row, "metrics"), name);
}

static void stage_value_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	char name[METRIC_NAME_BYTES];
	char text[METRIC_TEXT_BYTES];
	const json_t *figure = stage_figure(column, row, name);
	const struct metric metric = metric_named(name);
	buffer_text(out, metric_text(&metric, column_number(figure, column->path), text));
}

static void stage_change_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	char name[METRIC_NAME_BYTES];
	char text[METRIC_TEXT_BYTES];
	const json_t *figure = stage_figure(column, row, name);
	const struct metric metric = metric_named(name);
	(void)metric_change_text(&metric, column_number(figure, "change"), text);
	const char *points = strstr(text, " points"); /* its head says it */
	buffer_add(out, text, points ? (size_t)(points - text) : strlen(text));
}

static enum ink stage_change_ink(const struct table_column *column, const json_t *row)
{
	char name[METRIC_NAME_BYTES];
	const json_t *figure = stage_figure(column, row, name);
	return json_is_number(column_value(figure, "change")) ? difference_ink(name, figure)
							      : INK_DIM;
}

#define STAGE_VALUE(metric, side) .context = (metric), .path = (side), .text_of = stage_value_cell
#define STAGE_CHANGE(metric) \
	.context = (metric), .text_of = stage_change_cell, .ink_of = stage_change_ink

/* In the stages' table already. */
static bool figure_is_shown(const char *name)
{
	static const char *const shown[] = {
		"capacity", "mean", "p50", "p99", "busy", "starved", "blocked"};
	const struct metric metric = metric_named(name);
	for (size_t i = 0; i < COUNT(shown); i++)
		if (metric.stage[0] && strcmp(metric.kind->name, shown[i]) == 0)
			return true;
	return strcmp(name, "throughput") == 0;
}

static bool figure_differs(const json_t *difference)
{
	const bool missing = strcmp(column_text(difference, "verdict"), "missing") == 0;
	return is_told(difference) ||
	       (missing && column_number(difference, "repeats.0") +
					   column_number(difference, "repeats.1") >
				   0);
}

/* Those that differ, or all. */
static json_t *figure_rows(json_t *metrics, bool all)
{
	json_t *rows = json_array();
	const char *name;
	json_t *figure;
	json_object_foreach(metrics, name,
		figure) if (all || (!figure_is_shown(name) && figure_differs(figure)))
		part_append(&rows, figure_row(name, figure));
	return rows;
}

/* "2ms -> 4ms" */
static void fact_cell(const struct table_column *column, const json_t *row, struct buffer *out)
{
	const char *a = column_text(row, "a");
	const char *b = column_text(row, "b");
	struct buffer plain = {0};
	(void)column;
	utf8_add_plain(&plain, *a ? a : "(empty)", "?");
	buffer_text(&plain, " -> ");
	utf8_add_plain(&plain, *b ? b : "(empty)", "?");
	buffer_format(out, "%.*s", FACT_MOST, plain.data ? plain.data : "");
	buffer_release(&plain);
}

static enum ink fact_ink(const struct table_column *column, const json_t *row)
{
	(void)column;
	return strcmp(column_text(row, "weight"), "strong") == 0 ? INK_WARN : INK_PLAIN;
}

/* Facts that differ; harmless: those that only name, place or time the run. */
static json_t *fact_rows(const json_t *c, bool harmless, bool others)
{
	json_t *rows = json_array();
	size_t i;
	json_t *fact;
	json_array_foreach(compare_member(c, "differs"), i, fact)
	{
		const bool is_harmless = strcmp(column_text(fact, "weight"), "harmless") == 0;
		if (is_harmless ? harmless : others)
			part_append(&rows, json_incref(fact));
	}
	return rows;
}

static void compare_put_facts(struct medium *medium, const json_t *c, bool harmless)
{
	static const struct table_column facts[] = {
		{.head = "what differs", .left = true, .path = "name", .ink_of = fact_ink},
		{.head = "weight", .left = true, .path = "weight", .ink_of = fact_ink},
		{.head = "A -> B", .left = true, .wraps = true, .text_of = fact_cell},
	};
	compare_put_rows(
		medium, "what else differs", facts, COUNT(facts), fact_rows(c, harmless, true));
}

static void compare_put_focus(struct medium *medium, const json_t *c, bool verbose)
{
	static const struct table_column stages[] = {
		{.head = "stage", .left = true, .path = "stage"},
		{.head = "capacity/s\nA", .keep = 2, STAGE_VALUE("capacity", "a")},
		{.head = "\nB", .keep = 1, STAGE_VALUE("capacity", "b")},
		{.head = "\nchange", STAGE_CHANGE("capacity")},
		{.head = "p50\nA", .keep = 7, STAGE_VALUE("p50", "a")},
		{.head = "p50\nchange", .keep = 4, STAGE_CHANGE("p50")},
		{.head = "p99\nA", .keep = 7, STAGE_VALUE("p99", "a")},
		{.head = "p99\nchange", .keep = 3, STAGE_CHANGE("p99")},
		{.head = "busy\nA", .keep = 5, STAGE_VALUE("busy", "a")},
		{.head = "busy\nB", .keep = 1, STAGE_VALUE("busy", "b")},
		{.head = "starved\npoints", .keep = 6, STAGE_CHANGE("starved")},
		{.head = "blocked\npoints", .keep = 6, STAGE_CHANGE("blocked")},
	};
	static const struct table_column figures[] = {
		{.head = "figure", .left = true, .path = "metric"},
		{.head = "A", .keep = 1, VALUE_CELL("a")},
		{.head = "B", VALUE_CELL("b")},
		{.head = "change", CHANGE_CELL},
		{.head = "interval", .keep = 2, INTERVAL_CELL},
		{.head = "p", .keep = 3, P_CELL},
		{.head = "B is", WORDS_CELL},
	};
	json_t *metrics = compare_member(compare_focus(c), "metrics");
	struct buffer heading = {0};
	buffer_text(&heading, "stages");
	add_focus(c, " at ", &heading);
	compare_put_rows(medium, heading.data ? heading.data : "", stages, COUNT(stages),
		stage_rows(metrics));
	buffer_release(&heading);
	compare_put_rows(medium, verbose ? "all figures there" : "other figures that differ there",
		figures, COUNT(figures), figure_rows(metrics, verbose));
	compare_put_facts(medium, c, verbose);
}

/* --- sentences ------------------------------------------------------------------------------------ */

/* A fact that may hold names of files and values of keys. */
static void compare_fact(
	struct medium *medium, enum ink ink, const char *label, struct buffer *text)
{
	struct buffer plain = {0};
	if (text->size > 0)
		utf8_add_plain(&plain, text->data, "?");
	plain.failed = plain.failed || text->failed;
	buffer_release(text);
	medium_fact(medium, ink, label, &plain);
}

/* A text of the document. */
static void compare_fact_of(struct medium *medium, enum ink ink, const char *label,
	const json_t *document, const char *path)
{
	struct buffer text = {0};
	buffer_text(&text, column_text(document, path));
	compare_fact(medium, ink, label, &text);
}

static bool compare_limit_is_known(const json_t *limit)
{
	return limit && strcmp(column_text(limit, "stage"), "none") != 0;
}

static void limit_words(const json_t *limit, struct buffer *out)
{
	if (!compare_limit_is_known(limit))
		buffer_text(out, "unknown");
	else
		buffer_format(out, "%s/%s (%.0f %% confidence)", column_text(limit, "stage"),
			column_text(limit, "resource"), 100 * column_number(limit, "confidence"));
}

/* What limits the one and the other. */
static void limits_words(const json_t *c, struct buffer *out)
{
	const json_t *a = compare_member(c, "limit_a");
	const json_t *b = compare_member(c, "limit_b");
	a = json_is_object(a) ? a : NULL;
	b = json_is_object(b) ? b : NULL;
	buffer_text(out, "in A ");
	limit_words(a, out);
	buffer_text(out, ", in B ");
	limit_words(b, out);
	if (compare_limit_is_known(a) && compare_limit_is_known(b) &&
		(strcmp(column_text(a, "stage"), column_text(b, "stage")) != 0 ||
			strcmp(column_text(a, "resource"), column_text(b, "resource")) != 0))
		buffer_text(out, ": the bottleneck has moved");
	add_focus(c, "; at ", out);
}

static const char *gate_label(const json_t *gate)
{
	if (json_is_true(compare_member(gate, "failed")))
		return "FAILS";
	return strcmp(column_text(gate, "outcome"), "inconclusive") == 0 ? "INCONCLUSIVE"
									 : "passes";
}

/* --- a terminal and Markdown ---------------------------------------------------------------------- */

static void compare_put_subjects(struct medium *medium, const struct comparison *of)
{
	struct buffer text = {0};
	const struct record *a = of->a.report->record;
	const struct record *b = of->b.report->record;
	record_describe(a, &text);
	buffer_format(&text, ", config %s%s", a->config_hash, medium->style ? " (baseline)" : "");
	compare_fact(medium, INK_DIM, medium->style ? "A" : "A (baseline)", &text);
	record_describe(b, &text);
	buffer_format(&text, ", config %s", b->config_hash);
	compare_fact(medium, INK_DIM, "B", &text);
	buffer_text(&text, a->step.description);
	compare_fact(medium, INK_DIM, "step", &text);
}

static void compare_put_title(
	struct medium *medium, const json_t *document, const json_t *c, const struct comparison *of)
{
	struct buffer *out = medium->out;
	buffer_text(out, "## ");
	markdown_escape(column_text(c, "result.name"), out);
	buffer_text(out, " compared with ");
	markdown_escape(column_text(document, "baseline.name"), out);
	buffer_text(out, "\n\n**");
	markdown_escape(column_text(c, "sentence"), out);
	buffer_text(out, ".**\n\n");
	compare_put_subjects(medium, of);
}

/* Of a terminal: the answer in a sentence. */
static void compare_put_sentence(struct medium *medium, const json_t *c)
{
	const enum ink ink =
		difference_ink("throughput", compare_throughput(compare_member(c, "overall")));
	compare_fact_of(medium, ink == INK_DIM ? INK_BOLD : ink, "result", c, "sentence");
}

static void compare_put_unlike(struct medium *medium, const json_t *c)
{
	struct buffer text = {0};
	const size_t strong = compare_count_of(c, "strong");
	if (strong == 0)
		return;
	/* The heaviest stand first. */
	for (size_t i = 0; i < strong && i < COMPARE_LISTED_MOST; i++)
		buffer_format(&text, "%s%s", i ? ", " : "",
			column_text(json_array_get(compare_member(c, "differs"), i), "name"));
	if (strong > COMPARE_LISTED_MOST)
		buffer_format(&text, " and %zu more", strong - COMPARE_LISTED_MOST);
	buffer_format(&text, " differ%s, and may be the whole cause", strong == 1 ? "s" : "");
	compare_fact(medium, INK_WARN, "unlike", &text);
}

static void compare_put_gates(struct medium *medium, const json_t *c)
{
	struct buffer text = {0};
	size_t i;
	const json_t *gate;
	json_array_foreach(compare_member(c, "gates"), i, gate)
	{
		const char *label = gate_label(gate);
		buffer_format(&text, "%s: %s", label, column_text(gate, "words"));
		compare_fact(medium,
			*label == 'F'   ? INK_BAD
			: *label == 'I' ? INK_WARN
					: INK_GOOD,
			"gate", &text);
	}
}

/* Settings of the first of them: "batch.size=8; batch.size=16". */
static void compare_list_points(const json_t *points, struct buffer *out)
{
	const size_t count = json_array_size(points);
	for (size_t i = 0; i < count && i < COMPARE_LISTED_MOST; i++) {
		buffer_text(out, i ? "; " : "");
		compare_settings_text(compare_member(json_array_get(points, i), "settings"), out);
	}
}

static void compare_put_alone(struct medium *medium, const char *label, const json_t *points)
{
	const size_t count = json_array_size(points);
	struct buffer text = {0};
	if (count == 0)
		return;
	buffer_format(&text, "%zu point%s: ", count, count == 1 ? "" : "s");
	compare_list_points(points, &text);
	if (count > COMPARE_LISTED_MOST)
		buffer_format(&text, "; and %zu more", count - COMPARE_LISTED_MOST);
	compare_fact(medium, INK_DIM, label, &text);
}

static void compare_put_unmatched(struct medium *medium, const json_t *c)
{
	const json_t *only_a = compare_member(c, "only_in_a");
	const json_t *only_b = compare_member(c, "only_in_b");
	const json_t *neither = compare_member(c, "without_figures");
	struct buffer text = {0};
	if (json_array_size(only_a) + json_array_size(only_b) + json_array_size(neither) > 0)
		medium_heading(medium, "not compared");
	compare_put_alone(medium, "A only", only_a);
	compare_put_alone(medium, "B only", only_b);
	if (json_array_size(neither) == 0)
		return;
	buffer_format(&text, "%zu: ", json_array_size(neither));
	compare_list_points(neither, &text);
	buffer_text(&text, " (failed or not measured in one of them)");
	compare_fact(medium, INK_DIM, "neither", &text);
}

static void compare_put_remarks(struct medium *medium, const json_t *c)
{
	size_t i;
	const json_t *remark;
	json_array_foreach(compare_member(c, "remarks"), i, remark)
		compare_fact_of(medium, INK_WARN, "note", remark, "");
}

static void compare_put_because(struct medium *medium, const json_t *c)
{
	compare_fact_of(medium, INK_BOLD, "because", c, "explanation.words");
}

static void compare_put_bottleneck(struct medium *medium, const json_t *c)
{
	struct buffer text = {0};
	limits_words(c, &text);
	compare_fact(medium, INK_PLAIN, "verdict", &text);
}

static void compare_put_details(struct medium *medium, const json_t *c, bool verbose)
{
	const size_t harmless = compare_count_of(c, "harmless");
	struct buffer text = {0};
	compare_put_unmatched(medium, c);
	compare_put_focus(medium, c, verbose);
	if (harmless > 0 && !verbose)
		buffer_format(&text, "and %zu difference%s in names, places, times (--verbose)",
			harmless, harmless == 1 ? "" : "s");
	medium_note(medium, &text);
	medium_space(medium);
	compare_fact_of(medium, INK_DIM, "method", c, "method");
}

/* What is said at the end in a terminal, in this order; the larger `keep`, the earlier it is left out where there is no
 * room. */
static const struct {
	void (*put)(struct medium *medium, const json_t *c);
	int keep;
} compare_answer[] = {
	{compare_put_remarks, 3},
	{compare_put_unlike, 2},
	{compare_put_because, 1},
	{compare_put_bottleneck, 1},
	{compare_put_sentence, 0},
	{compare_put_gates, 0},
};

static void compare_screen(struct medium *medium, const struct compare_document *compared,
	const json_t *c, const struct comparison *of, double significance)
{
	struct buffer *const out = medium->out;
	struct screen screen = {.lines = SCREEN_LINES / compared->count};
	struct buffer table = {0};
	medium->out = screen_add(&screen, 4);
	compare_put_subjects(medium, of);
	struct buffer *const points = screen_add(&screen, 0);
	medium->out = screen_add(&screen, 5);
	compare_put_facts(medium, c, false);
	medium->out = screen_add(&screen, 2);
	compare_put_unmatched(medium, c);
	buffer_text(screen_add(&screen, 0), "\n");
	for (size_t i = 0; i < COUNT(compare_answer); i++) {
		medium->out = screen_add(&screen, compare_answer[i].keep);
		compare_answer[i].put(medium, c);
	}
	/* Of one point the sentence has all. */
	if (compare_point_count(c) > 1)
		screen_make_room(&screen, POINT_LINES_WANTED, 2);
	for (size_t rows = screen_left(&screen); rows > 0; rows--) {
		buffer_release(&table);
		medium->out = &table;
		compare_put_points(medium, c, significance, rows);
		if (screen_lines_of(&table) <= screen_left(&screen)) {
			buffer_add(points, table.data, table.size);
			break;
		}
	}
	buffer_release(&table);
	medium->out = out;
	screen_print(&screen, out);
}

void compare_text(const struct compare_document *compared, const json_t *document,
	const struct style *style, struct buffer *out)
{
	const double significance = column_number(document, "significance");
	for (size_t i = 0; i < compared->count; i++) {
		const json_t *c = json_array_get(compare_member(document, "comparisons"), i);
		const struct comparison *of = &compared->comparisons[i];
		struct medium medium = medium_terminal(style, out);
		buffer_text(out, i ? "\n" : "");
		if (!compared->whole) {
			compare_screen(&medium, compared, c, of, significance);
			continue;
		}
		compare_put_subjects(&medium, of);
		compare_put_points(&medium, c, significance, COMPARE_POINTS_SHOWN);
		compare_put_details(&medium, c, compared->verbose);
		medium_space(&medium);
		for (size_t k = 0; k < COUNT(compare_answer); k++)
			compare_answer[k].put(&medium, c);
	}
}

void compare_markdown(
	const struct compare_document *compared, const json_t *document, struct buffer *out)
{
	for (size_t i = 0; i < compared->count; i++) {
		const json_t *c = json_array_get(compare_member(document, "comparisons"), i);
		struct medium medium = medium_markdown(out);
		buffer_text(out, i ? "\n" : "");
		compare_put_title(&medium, document, c, &compared->comparisons[i]);
		compare_put_remarks(&medium, c);
		compare_put_unlike(&medium, c);
		compare_put_because(&medium, c);
		compare_put_bottleneck(&medium, c);
		compare_put_gates(&medium, c);
		compare_put_points(
			&medium, c, column_number(document, "significance"), COMPARE_POINTS_SHOWN);
		compare_put_details(&medium, c, compared->verbose);
	}
}

/* --- charts and tables of the page ---------------------------------------------------------------- */

static const struct page_column forest_columns[] = {{"label", "what", PAGE_TEXT},
	{"a", "A", PAGE_TEXT}, {"b", "B", PAGE_TEXT}, {"change", "change", PAGE_SHARE},
	{"low", "CI from", PAGE_SHARE}, {"high", "to", PAGE_SHARE}, {"p", "p", PAGE_REAL},
	{"words", "B is", PAGE_TEXT}};

/* What a dot's colour says. */
static const struct chart_ink forest_kinds[] = {
	{"worse", PALETTE_BINDS, NULL},
	{"better", PALETTE_GOOD, NULL},
	{"differs", PALETTE_WORKING, NULL},
	{"inconclusive", PALETTE_STARVED, NULL},
	{"no difference", PALETTE_BLOCKED, NULL},
};

static const char *forest_kind(const char *metric, const json_t *difference)
{
	static const enum ink inks[] = {INK_BAD, INK_GOOD, INK_ACCENT, INK_WARN};
	size_t i = 0;
	while (i < PARTS_COUNT(inks) && inks[i] != difference_ink(metric, difference))
		i++;
	return forest_kinds[i].name;
}

/* tick: on the axis; label: where there is more room. */
static json_t *forest_row(
	const char *metric, const json_t *difference, const char *label, const char *tick)
{
	const struct metric of = metric_named(metric);
	char a[METRIC_TEXT_BYTES];
	char b[METRIC_TEXT_BYTES];
	return json_pack("{s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:s, s:s}", "label",
		parts_text(label), "tick", parts_text(tick), "a",
		metric_text(&of, column_number(difference, "a"), a), "b",
		metric_text(&of, column_number(difference, "b"), b), "change",
		parts_number(column_number(difference, "change")), "low",
		parts_number(column_number(difference, "interval.0")), "high",
		parts_number(column_number(difference, "interval.1")), "p",
		parts_number(column_number(difference, "p_adjusted")), "kind",
		forest_kind(metric, difference), "words", column_text(difference, "words"));
}

/* What the axis shows: every dot and no change; intervals as far as three times that, so that one wide one does not
 * squeeze all others. */
static struct interval forest_axis(const json_t *rows)
{
	static const double least = 0.01;
	struct interval axis = {-least, least};
	double most = 0;
	size_t i;
	const json_t *row;
	json_array_foreach(rows, i, row) most = fmax(most, fabs(column_number(row, "change")));
	const double widest = 3 * most + least;
	json_array_foreach(rows, i, row)
	{
		const double change = column_number(row, "change");
		/* fmin and fmax pass over NAN */
		axis.low = fmin(axis.low, fmin(change, fmax(column_number(row, "low"), -widest)));
		axis.high = fmax(axis.high, fmax(change, fmin(column_number(row, "high"), widest)));
	}
	return axis;
}

/* Dots with intervals, a row each, beside a line at no change.  Takes rows. */
static void forest(struct page *page, struct chart *chart, json_t *rows)
{
	const struct interval axis = forest_axis(rows);
	chart->table.rows = rows;
	PARTS_COLUMNS(chart, forest_columns);
	chart_open(chart, "forest");
	chart_legend(chart, "kind", NULL, forest_kinds, PARTS_COUNT(forest_kinds));
	chart_param(chart, "low", json_real(axis.low));
	chart_param(chart, "high", json_real(axis.high));
	chart_param(chart, "height",
		json_integer((json_int_t)(json_array_size(rows) + 1) * ROW_PIXELS));
	(void)chart_done(chart); /* page_end says it */
	page_chart(page, chart);
	chart_release(chart);
}

/* "2 / 32", or the keys that these are of: "decode.workers / batch.size". */
static void add_slashed(const json_t *point, bool keys, struct buffer *out)
{
	const size_t begin = out->size;
	const char *key;
	json_t *value;
	json_object_foreach(compare_member(point, "settings"), key, value)
	{
		buffer_text(out, out->size > begin ? " / " : "");
		if (keys)
			buffer_text(out, key);
		else
			compare_setting_value(key, value, out);
	}
}

static void throughput_chart(struct page *page, const json_t *c, double significance, size_t number)
{
	struct chart chart = {0};
	json_t *points = compare_member(c, "points");
	json_t *rows = json_array();
	size_t i;
	const json_t *point;
	(void)snprintf(chart.id, sizeof chart.id, "throughput%zu", number);
	(void)snprintf(chart.title, sizeof chart.title, "Throughput of each point");
	buffer_format(&chart.text,
		"%g %% confidence intervals; one that is cut at the edge extends beyond it.",
		100 * (1 - significance));
	if (json_array_size(points) > 1) {
		buffer_text(&chart.text, " Rows: ");
		add_slashed(json_array_get(points, 0), true, &chart.text);
		buffer_text(&chart.text, ".");
		parts_append(&rows,
			forest_row("throughput", compare_throughput(compare_member(c, "overall")),
				"all points (geometric mean)", "mean of all"));
	}
	if (json_array_size(points) > COMPARE_POINTS_DRAWN)
		buffer_format(&chart.text, " The first %d of %zu points are drawn.",
			(int)COMPARE_POINTS_DRAWN, json_array_size(points));
	json_array_foreach(points, i, point)
	{
		struct buffer label = {0};
		struct buffer tick = {0};
		if (i == COMPARE_POINTS_DRAWN)
			break;
		compare_settings_text(compare_member(point, "settings"), &label);
		add_slashed(point, false, &tick);
		parts_append(
			&rows, forest_row("throughput", column_value(point, "metrics.throughput"),
				       label.size > 0 ? label.data : "throughput",
				       tick.size > 0 ? tick.data : "throughput"));
		buffer_release(&label);
		buffer_release(&tick);
	}
	forest(page, &chart, rows);
}

static bool is_in_chart_of_stages(const char *name)
{
	static const char *const kinds[] = {"capacity", "p50", "p99"};
	const struct metric metric = metric_named(name);
	for (size_t i = 0; i < COUNT(kinds); i++)
		if (metric.stage[0] && strcmp(metric.kind->name, kinds[i]) == 0)
			return true;
	return strcmp(name, "step_time") == 0;
}

static void stages_chart(struct page *page, const json_t *c, size_t number)
{
	struct chart chart = {0};
	json_t *rows = json_array();
	const char *name;
	json_t *figure;
	(void)snprintf(chart.id, sizeof chart.id, "stages%zu", number);
	(void)snprintf(
		chart.title, sizeof chart.title, "Capacities and service times of the stages");
	buffer_text(&chart.text,
		"Capacity (more is better) and service times (less is better) of each stage, B "
		"against A");
	add_focus(c, "; at ", &chart.text);
	buffer_text(&chart.text, ".");
	json_object_foreach(compare_member(compare_focus(c), "metrics"), name, figure)
	{
		if (is_in_chart_of_stages(name) && json_is_number(compare_member(figure, "change")))
			parts_append(&rows, forest_row(name, figure, name, name));
	}
	forest(page, &chart, rows);
}

/* Takes rows. */
static void page_put_rows(struct page *page, const struct page_column *columns, size_t count,
	json_t *rows, const char *caption)
{
	const struct page_table table = {.columns = columns, .column_count = count, .rows = rows};
	page_table(page, &table, caption);
	json_decref(rows);
}

static void page_put_figures(struct page *page, const json_t *c)
{
	json_t *rows = json_array();
	const char *name;
	json_t *figure;
	json_object_foreach(compare_member(compare_focus(c), "metrics"), name, figure)
		parts_append(&rows, forest_row(name, figure, name, name));
	page_put_rows(
		page, forest_columns, COUNT(forest_columns), rows, "All figures of that point");
}

static void page_put_facts(struct page *page, const json_t *c, bool harmless)
{
	static const struct page_column columns[] = {{"name", "what differs", PAGE_TEXT},
		{"a", "A", PAGE_TEXT}, {"b", "B", PAGE_TEXT}, {"weight", "weight", PAGE_TEXT}};
	json_t *rows = fact_rows(c, harmless, !harmless);
	if (json_array_size(rows) > 0) {
		page_put_rows(page, columns, COUNT(columns), rows,
			"Keys of the configuration and facts of the node");
	} else {
		page_paragraph(page, "No recorded key or fact of substance differs.");
		json_decref(rows);
	}
}

static void page_put_explanation(struct page *page, const json_t *explanation)
{
	static const struct page_column columns[] = {{"part", "exchanged", PAGE_TEXT},
		{"change", "changes throughput by", PAGE_SHARE},
		{"share", "share of the measured change", PAGE_SHARE}};
	const double measured = column_number(explanation, "measured");
	const double explained = column_number(explanation, "explained");
	const double rest = isnan(explained) ? measured : (1 + measured) / (1 + explained) - 1;
	json_t *rows = json_array();
	size_t i;
	const json_t *part;
	json_array_foreach(compare_member(explanation, "parts"), i, part)
		parts_append(&rows, json_pack("{s:s, s:o, s:o}", "part", column_text(part, "part"),
					    "change", parts_number(column_number(part, "change")),
					    "share", parts_number(column_number(part, "share"))));
	parts_append(&rows,
		json_pack("{s:s, s:o, s:o}", "part", "unexplained", "change", parts_number(rest),
			"share", parts_number(column_number(explanation, "not_explained"))));
	page_put_rows(page, columns, COUNT(columns), rows, "Where the difference comes from");
}

static void page_put_alone(struct page *page, const char *what, const json_t *points)
{
	size_t i;
	const json_t *point;
	if (json_array_size(points) == 0)
		return;
	page_paragraph(page, what);
	page_list_begin(page, false);
	json_array_foreach(points, i, point)
	{
		struct buffer text = {0};
		compare_settings_text(compare_member(point, "settings"), &text);
		page_item(page, text.data ? text.data : "");
		buffer_release(&text);
	}
	page_list_end(page);
}

/* --- the page ------------------------------------------------------------------------------------- */

static void page_put_subjects(struct page *page, const json_t *document, const json_t *c)
{
	struct medium medium = medium_page(page);
	struct buffer text = {0};
	buffer_format(&text, "%s, config %s", column_text(document, "baseline.folder"),
		column_text(document, "baseline.config_hash"));
	medium_fact(&medium, INK_PLAIN, "A, the baseline", &text);
	buffer_format(&text, "%s, config %s", column_text(c, "result.folder"),
		column_text(c, "result.config_hash"));
	medium_fact(&medium, INK_PLAIN, "B", &text);
	medium_fact_text(&medium, INK_PLAIN, "step", column_text(document, "baseline.step"));
	limits_words(c, &text);
	medium_fact(&medium, INK_PLAIN, "bottleneck", &text);
	medium_fact_text(&medium, INK_PLAIN, "explanation", column_text(c, "explanation.words"));
	medium_end(&medium);
}

static void page_put_notices(struct page *page, const json_t *c)
{
	struct buffer text = {0};
	size_t i;
	const json_t *item;
	json_array_foreach(compare_member(c, "remarks"), i, item)
		page_notice(page, "Note", json_string_value(item));
	json_array_foreach(compare_member(c, "differs"), i, item)
	{
		if (strcmp(column_text(item, "weight"), "strong") == 0)
			buffer_format(&text, "%s%s (%s, %s)", text.size > 0 ? "; " : "",
				column_text(item, "name"), column_text(item, "a"),
				column_text(item, "b"));
	}
	if (text.size > 0)
		page_notice(page, "Different", text.data);
	buffer_release(&text);
	json_array_foreach(compare_member(c, "gates"), i, item)
		page_notice(page, gate_label(item), column_text(item, "words"));
}

static void page_put_comparison(struct page *page, const json_t *document, size_t number)
{
	const json_t *comparisons = compare_member(document, "comparisons");
	const json_t *c = json_array_get(comparisons, number);
	if (json_array_size(comparisons) > 1) {
		struct buffer text = {0};
		char id[CHART_ID_BYTES];
		(void)snprintf(id, sizeof id, "result%zu", number);
		buffer_format(&text, "%s compared with %s", column_text(c, "result.folder"),
			column_text(document, "baseline.folder"));
		page_heading(page, 2, id, text.data ? text.data : "");
		buffer_release(&text);
		page_paragraph(page, column_text(c, "sentence"));
	}
	page_put_notices(page, c);
	page_put_subjects(page, document, c);
	throughput_chart(page, c, column_number(document, "significance"), number);
	page_put_alone(
		page, "Not compared, because only A has them:", compare_member(c, "only_in_a"));
	page_put_alone(
		page, "Not compared, because only B has them:", compare_member(c, "only_in_b"));
	if (json_is_object(compare_member(c, "explanation")))
		page_put_explanation(page, compare_member(c, "explanation"));
	stages_chart(page, c, number);
	page_fold_begin(page, "All figures");
	page_put_figures(page, c);
	page_fold_end(page);
	page_heading(page, 3, NULL, "What else differs");
	page_put_facts(page, c, false);
	if (compare_count_of(c, "harmless") > 0) {
		page_fold_begin(page, "Differences in names, places and times only");
		page_put_facts(page, c, true);
		page_fold_end(page);
	}
	page_paragraph(page, column_text(c, "method"));
}

int compare_html(const json_t *document, struct buffer *out, struct error *err)
{
	const json_t *comparisons = compare_member(document, "comparisons");
	const json_t *first = json_array_get(comparisons, 0);
	struct buffer title = {0};
	struct buffer lead = {0};
	buffer_format(&title, "%s compared with %s", column_text(first, "result.name"),
		column_text(document, "baseline.name"));
	if (json_array_size(comparisons) == 1)
		buffer_text(&lead, column_text(first, "sentence"));
	else
		buffer_format(&lead, "%zu results compared with one baseline",
			json_array_size(comparisons));
	buffer_text(&lead, ".");
	struct page *page = title.failed || lead.failed ? NULL : page_begin(title.data, lead.data);
	buffer_release(&title);
	buffer_release(&lead);
	if (!page)
		return error_set(err, -ENOMEM, "out of memory for the page");
	for (size_t i = 0; i < json_array_size(comparisons); i++)
		page_put_comparison(page, document, i);
	return page_end(page, out, err);
}
