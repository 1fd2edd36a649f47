/* A comparison in the terminal, the answer first, what makes it doubtful next, then the figures; and as Markdown for a
 * pull request's comment.  Both print the same tables. */
#include "harness/base/array.h"
#include "harness/report/compare.h"

#include "harness/base/text.h"
#include "harness/record/config_json.h"
#include "harness/report/layout.h"
#include "harness/report/medium.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- tables ----------------------------------------------------------------------------------- */

enum { COMPARE_POINTS_SHOWN = 100 };

struct compare_table {
	struct table table; /* close it */
	struct table_column columns[TABLE_COLUMNS_MAX];
	char heads[TABLE_COLUMNS_MAX][CONFIG_NAME_BYTES];
};

enum { VALUE_MOST = 40, FACT_MOST = 400 };

/* Text of a configuration or a node; most: bytes. */
static void table_add_plain(struct table *table, const char *text, int most)
{
	struct buffer plain = {0};
	utf8_add_plain(&plain, text, "?");
	table_add(table, INK_PLAIN, "%.*s", most, plain.data ? plain.data : "");
	buffer_release(&plain);
}

static void open_columns(
	struct compare_table *out, const struct table_column *columns, size_t count)
{
	memcpy(out->columns, columns, count * sizeof *columns);
	table_open(&out->table, out->columns, count);
}

static bool differs(const struct difference *d)
{
	return d->verdict == DIFFERENCE_LESS || d->verdict == DIFFERENCE_MORE ||
	       (d->verdict == DIFFERENCE_MISSING && d->a_count + d->b_count > 0);
}

/* --- points ----------------------------------------------------------------------------------- */

/* "decode\nworkers" of every key that points are matched by. */
static size_t table_key_columns(const struct comparison *c, struct compare_table *out)
{
	enum { KEYS_MOST = 12 };
	size_t count = 0;
	for (int k = 0; k < KEY_COUNT && count < KEYS_MOST; k++) {
		if (!c->match.swept[k])
			continue;
		(void)snprintf(out->heads[count], sizeof out->heads[count], "%s\n%s",
			config_keys[k].section, config_keys[k].name);
		out->columns[count] = (struct table_column){.head = out->heads[count]};
		count++;
	}
	return count;
}

static void table_add_settings(
	struct table *table, const struct comparison *c, size_t pair, size_t most)
{
	const struct record *record = c->a.report->record;
	size_t count = 0;
	for (int k = 0; k < KEY_COUNT && count < most; k++) {
		const enum key_id key = (enum key_id)k;
		if (!c->match.swept[k])
			continue;
		char *value = config_value_text(
			key, point_value(&record->config, &record->grid, c->pairs[pair].a, key));
		table_add_plain(table, value ? value : "?", VALUE_MOST);
		free(value);
		count++;
	}
}

static void add_p(struct table *table, double p)
{
	if (isnan(p))
		table_add(table, INK_DIM, "-");
	else if (p < 1e-4)
		table_add(table, INK_DIM, "<0.0001");
	else
		table_add(table, INK_DIM, "%.4f", p);
}

static void table_add_difference(
	struct table *table, const struct metric *metric, const struct difference *d)
{
	char text[METRIC_TEXT_BYTES];
	char words[COMPARE_WORDS_BYTES];
	const enum ink ink = compare_ink(metric, d);
	table_add(table, INK_PLAIN, "%s", metric_text(metric, metric_unscaled(metric, d->a), text));
	table_add(table, INK_PLAIN, "%s", metric_text(metric, metric_unscaled(metric, d->b), text));
	table_add(table, ink, "%s",
		metric_change_text(metric, metric_change(metric, d->value), text));
	table_add(table, INK_PLAIN, "%s", compare_interval_words(metric, d, words));
	add_p(table, d->adjusted);
	table_add(table, ink, "%s", compare_verdict_words(metric, d, words));
}

/* Throughput of every pair in the order of points; of more than COMPARE_POINTS_SHOWN those that differ first. */
static void compare_points_table(const struct comparison *comparison, struct compare_table *out)
{
	static const struct table_column fixed[] = {{.head = "samples/s\nA"},
		{.head = "samples/s\nB"}, {.head = "change"}, {.head = "interval", .keep = 1},
		{.head = "p", .keep = 2}, {.head = "B is", .left = true, .wraps = true}};
	const size_t keys = table_key_columns(comparison, out);
	memcpy(&out->columns[keys], fixed, sizeof fixed);
	table_open(&out->table, out->columns, keys + COUNT(fixed));
	for (size_t i = 0; i < comparison->pair_count && i < COMPARE_POINTS_SHOWN; i++) {
		table_add_settings(&out->table, comparison, i, keys);
		table_add_difference(
			&out->table, &comparison->metrics[0], &comparison->differences[i]);
	}
}

/* --- stages ----------------------------------------------------------------------------------- */

struct figure {
	const struct metric *metric;
	const struct difference *difference;
};

static bool table_find(
	const struct comparison *c, const char *stage, const char *kind, struct figure *out)
{
	for (size_t i = 0; i < c->metric_count; i++)
		if (strcmp(c->metrics[i].stage, stage) == 0 &&
			strcmp(c->metrics[i].kind->name, kind) == 0) {
			*out = (struct figure){
				&c->metrics[i], &c->differences[i * c->pair_count + c->focus]};
			return true;
		}
	return false;
}

static void table_add_value(struct table *table, const struct comparison *c, const char *stage,
	const char *kind, bool b)
{
	struct figure f = {0};
	char text[METRIC_TEXT_BYTES];
	const double y = !table_find(c, stage, kind, &f) ? (double)NAN
			 : b                             ? f.difference->b
							 : f.difference->a;
	table_add(table, INK_PLAIN, "%s",
		isnan(y) ? "-" : metric_text(f.metric, metric_unscaled(f.metric, y), text));
}

static void table_add_change(
	struct table *table, const struct comparison *c, const char *stage, const char *kind)
{
	struct figure f = {0};
	char text[METRIC_TEXT_BYTES];
	if (!table_find(c, stage, kind, &f) || isnan(f.difference->value)) {
		table_add(table, INK_DIM, "-");
		return;
	}
	(void)metric_change_text(f.metric, metric_change(f.metric, f.difference->value), text);
	char *points = strstr(text, " points");
	if (points)
		*points = '\0';
	table_add(table, compare_ink(f.metric, f.difference), "%s", text);
}

static size_t stages_of(const struct comparison *c, const char *names[STAGES_MAX])
{
	size_t count = 0;
	for (size_t i = 0; i < c->metric_count; i++) {
		const char *stage = c->metrics[i].stage;
		bool known = !stage[0] || count == STAGES_MAX;
		for (size_t j = 0; j < count; j++)
			known = known || strcmp(names[j], stage) == 0;
		if (!known)
			names[count++] = stage;
	}
	return count;
}

/* Stages of the focus. */
static void compare_stages_table(const struct comparison *comparison, struct compare_table *out)
{
	static const struct table_column columns[] = {{.head = "stage", .left = true},
		{.head = "capacity/s\nA", .keep = 2}, {.head = "\nB", .keep = 1},
		{.head = "\nchange"}, {.head = "p50\nA", .keep = 7},
		{.head = "p50\nchange", .keep = 4}, {.head = "p99\nA", .keep = 7},
		{.head = "p99\nchange", .keep = 3}, {.head = "busy\nA", .keep = 5},
		{.head = "busy\nB", .keep = 1}, {.head = "starved\npoints", .keep = 6},
		{.head = "blocked\npoints", .keep = 6}};
	const char *names[STAGES_MAX];
	const size_t count = stages_of(comparison, names);
	struct table *table = &out->table;
	open_columns(out, columns, COUNT(columns));
	for (size_t i = 0; i < count; i++) {
		table_add(table, INK_PLAIN, "%s", names[i]);
		table_add_value(table, comparison, names[i], "capacity", false);
		table_add_value(table, comparison, names[i], "capacity", true);
		table_add_change(table, comparison, names[i], "capacity");
		table_add_value(table, comparison, names[i], "p50", false);
		table_add_change(table, comparison, names[i], "p50");
		table_add_value(table, comparison, names[i], "p99", false);
		table_add_change(table, comparison, names[i], "p99");
		table_add_value(table, comparison, names[i], "busy", false);
		table_add_value(table, comparison, names[i], "busy", true);
		table_add_change(table, comparison, names[i], "starved");
		table_add_change(table, comparison, names[i], "blocked");
	}
}

/* --- figures ---------------------------------------------------------------------------------- */

/* In the stages' table already. */
static bool table_is_shown(const struct metric *metric)
{
	static const char *const shown[] = {
		"capacity", "mean", "p50", "p99", "busy", "starved", "blocked"};
	for (size_t i = 0; i < COUNT(shown); i++)
		if (metric->stage[0] && strcmp(metric->kind->name, shown[i]) == 0)
			return true;
	return false;
}

/* Figures of the focus: those that differ, or all. */
static void compare_figures_table(
	const struct comparison *comparison, bool all, struct compare_table *out)
{
	static const struct table_column columns[] = {{.head = "figure", .left = true},
		{.head = "A", .keep = 1}, {.head = "B"}, {.head = "change"},
		{.head = "interval", .keep = 2}, {.head = "p", .keep = 3},
		{.head = "B is", .left = true, .wraps = true}};
	open_columns(out, columns, COUNT(columns));
	for (size_t i = 0; i < comparison->metric_count; i++) {
		const struct metric *metric = &comparison->metrics[i];
		const struct difference *d =
			&comparison->differences[i * comparison->pair_count + comparison->focus];
		if (!all && (i == 0 || table_is_shown(metric) || !differs(d)))
			continue;
		table_add(&out->table, INK_PLAIN, "%s", metric->name);
		table_add_difference(&out->table, metric, d);
	}
}

/* --- what else differs ------------------------------------------------------------------------ */

/* "2ms -> 4ms" */
static void add_both(struct table *table, const struct compare_fact *fact)
{
	struct buffer plain = {0};
	utf8_add_plain(&plain, fact->a[0] ? fact->a : "(empty)", "?");
	buffer_text(&plain, " -> ");
	utf8_add_plain(&plain, fact->b[0] ? fact->b : "(empty)", "?");
	table_add(table, INK_PLAIN, "%.*s", FACT_MOST, plain.data ? plain.data : "");
	buffer_release(&plain);
}

/* Keys and facts that differ; all: the harmless ones, too. */
static void compare_facts_table(
	const struct comparison *comparison, bool all, struct compare_table *out)
{
	static const struct table_column columns[] = {{.head = "what differs", .left = true},
		{.head = "weight", .left = true}, {.head = "A -> B", .left = true, .wraps = true}};
	open_columns(out, columns, COUNT(columns));
	for (size_t i = 0; i < comparison->facts.count; i++) {
		const struct compare_fact *fact = &comparison->facts.list[i];
		if (!all && fact->weight == COMPARE_HARMLESS)
			continue;
		const enum ink ink = fact->weight >= COMPARE_STRONG ? INK_WARN : INK_PLAIN;
		table_add(&out->table, ink, "%s", fact->name);
		table_add(&out->table, ink, "%s", compare_weight_name(fact->weight));
		add_both(&out->table, fact);
	}
}

/* --- what both media have --------------------------------------------------------------------- */

enum { LISTED_MOST = 8 };

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

/* The table under its heading, unless it is empty; closes it. */
static void compare_put_table(
	struct medium *medium, const char *heading, struct compare_table *table)
{
	struct buffer words = {0};
	if (table_rows(&table->table) > 0) {
		utf8_add_plain(&words, heading, "?");
		medium_heading(medium, words.data ? words.data : "");
		medium_put_table(medium, &table->table);
	}
	buffer_release(&words);
	table_close(&table->table);
	*table = (struct compare_table){0};
}

static void compare_put_subjects(struct medium *medium, const struct comparison *c)
{
	struct buffer text = {0};
	const struct record *a = c->a.report->record;
	const struct record *b = c->b.report->record;
	record_describe(a, &text);
	buffer_format(&text, ", config %s%s", a->config_hash, medium->style ? " (baseline)" : "");
	compare_fact(medium, INK_DIM, medium->style ? "A" : "A (baseline)", &text);
	record_describe(b, &text);
	buffer_format(&text, ", config %s", b->config_hash);
	compare_fact(medium, INK_DIM, "B", &text);
	buffer_text(&text, a->step.description);
	compare_fact(medium, INK_DIM, "step", &text);
}

static void compare_put_reasons(struct medium *medium, const struct comparison *c)
{
	struct buffer text = {0};
	compare_explanation_words(c, &text);
	compare_fact(medium, INK_BOLD, "because", &text);
	compare_binding_words(c, &text);
	compare_fact(medium, INK_PLAIN, "verdict", &text);
}

static void compare_put_remarks(struct medium *medium, const struct comparison *c)
{
	struct buffer text = {0};
	for (size_t i = 0; i < c->remark_count; i++) {
		buffer_text(&text, c->remarks[i]);
		compare_fact(medium, INK_WARN, "note", &text);
	}
}

/* Of the focus; and what else differs. */
static void compare_put_focus(struct medium *medium, const struct comparison *c, bool verbose)
{
	struct compare_table table = {0};
	struct buffer heading = {0};
	buffer_text(&heading, "stages");
	if (c->pair_count > 1) {
		buffer_text(&heading, " at ");
		compare_settings(c, c->focus, &heading);
	}
	compare_stages_table(c, &table);
	compare_put_table(medium, heading.data ? heading.data : "stages", &table);
	buffer_release(&heading);
	compare_figures_table(c, verbose, &table);
	compare_put_table(
		medium, verbose ? "all figures there" : "other figures that differ there", &table);
	compare_facts_table(c, verbose, &table);
	compare_put_table(medium, "what else differs", &table);
}

/* --- the document ----------------------------------------------------------------------------- */

static void compare_put_title(struct medium *medium, const struct comparison *c)
{
	const enum ink ink = compare_ink(&c->metrics[0], &c->overall[0]);
	const struct style *style = medium->style;
	struct buffer *out = medium->out;
	struct buffer text = {0};
	compare_sentence(c, &text);
	if (style) {
		compare_put_subjects(medium, c);
		medium_space(medium);
		buffer_repeat(out, " ", LAYOUT_INDENT);
		buffer_text(out, style_ink(style, ink == INK_DIM ? INK_BOLD : ink));
		style_wrap(style, text.data ? text.data : "", LAYOUT_INDENT, LAYOUT_INDENT, out);
		out->size -= out->size > 0; /* the ink ends before the newline */
		buffer_format(out, "%s\n", style_end(style));
	} else {
		buffer_text(out, "## ");
		markdown_escape(c->b.report->record->name, out);
		buffer_text(out, " compared with ");
		markdown_escape(c->a.report->record->name, out);
		buffer_text(out, "\n\n**");
		markdown_escape(text.data ? text.data : "", out);
		buffer_text(out, ".**\n\n");
		compare_put_subjects(medium, c);
	}
	buffer_release(&text);
}

static void compare_put_unlike(struct medium *medium, const struct comparison *c)
{
	struct buffer text = {0};
	const size_t strong = compare_facts_count(&c->facts, COMPARE_STRONG);
	if (strong == 0)
		return;
	for (size_t i = 0; i < strong && i < LISTED_MOST; i++)
		buffer_format(&text, "%s%s", i ? ", " : "", c->facts.list[i].name);
	if (strong > LISTED_MOST)
		buffer_format(&text, " and %zu more", strong - LISTED_MOST);
	buffer_format(&text, " differ%s, and may be the whole cause", strong == 1 ? "s" : "");
	compare_fact(medium, INK_WARN, "unlike", &text);
}

static void compare_put_gates(
	const struct compare_document *document, const struct comparison *c, struct medium *medium)
{
	struct buffer text = {0};
	for (size_t i = 0; i < document->gate_count; i++) {
		const struct gate *gate = &document->gates[i];
		const struct gate_result *result = &c->gates[i];
		const enum ink ink = gate_fails(gate, result)               ? INK_BAD
				     : result->outcome == GATE_INCONCLUSIVE ? INK_WARN
									    : INK_GOOD;
		buffer_format(&text, "%s: ", compare_gate_label(gate, result));
		compare_gate_words(gate, result, c, &text);
		compare_fact(medium, ink, "gate", &text);
	}
}

static void compare_list_points(struct medium *medium, const struct comparison *c,
	const struct report *report, const char *label, const size_t *list, size_t count)
{
	struct buffer text = {0};
	if (count == 0)
		return;
	buffer_format(&text, "%zu point%s: ", count, count == 1 ? "" : "s");
	for (size_t i = 0; i < count && i < LISTED_MOST; i++) {
		buffer_text(&text, i ? "; " : "");
		compare_point_settings(c, report, list[i], &text);
	}
	if (count > LISTED_MOST)
		buffer_format(&text, "; and %zu more", count - LISTED_MOST);
	compare_fact(medium, INK_DIM, label, &text);
}

static void compare_put_unmatched(struct medium *medium, const struct comparison *c)
{
	struct buffer text = {0};
	const struct point_match *match = &c->match;
	if (match->only_a_count + match->only_b_count + c->unmeasured_count > 0)
		medium_heading(medium, "not compared");
	compare_list_points(medium, c, c->a.report, "A only", match->only_a, match->only_a_count);
	compare_list_points(medium, c, c->b.report, "B only", match->only_b, match->only_b_count);
	if (c->unmeasured_count == 0)
		return;
	buffer_format(&text, "%zu: ", c->unmeasured_count);
	for (size_t i = 0; i < c->unmeasured_count && i < LISTED_MOST; i++) {
		buffer_text(&text, i ? "; " : "");
		compare_point_settings(c, c->a.report, c->unmeasured[i].a, &text);
	}
	buffer_text(&text, " (failed or not measured in one of them)");
	compare_fact(medium, INK_DIM, "neither", &text);
}

static void compare_put(
	const struct compare_document *document, const struct comparison *c, struct medium *medium)
{
	const size_t harmless = compare_facts_count(&c->facts, COMPARE_HARMLESS);
	struct compare_table table = {0};
	struct buffer text = {0};
	char heading[COMPARE_WORDS_BYTES];
	compare_put_title(medium, c);
	compare_put_remarks(medium, c);
	compare_put_unlike(medium, c);
	compare_put_reasons(medium, c);
	compare_put_gates(document, c, medium);
	(void)snprintf(heading, sizeof heading, "throughput, %g %% confidence intervals",
		100 * (1 - c->significance));
	compare_points_table(c, &table);
	compare_put_table(medium, heading, &table);
	if (c->pair_count > COMPARE_POINTS_SHOWN)
		buffer_format(&text, "... and %zu more points (--format json has all)",
			c->pair_count - COMPARE_POINTS_SHOWN);
	medium_note(medium, &text);
	compare_put_unmatched(medium, c);
	compare_put_focus(medium, c, document->verbose);
	if (harmless > 0 && !document->verbose)
		buffer_format(&text, "and %zu difference%s in names, places, times (--verbose)",
			harmless, harmless == 1 ? "" : "s");
	medium_note(medium, &text);
	medium_space(medium);
	compare_method_words(c, &text);
	compare_fact(medium, INK_DIM, "method", &text);
}

void compare_text(
	const struct compare_document *document, const struct style *style, struct buffer *out)
{
	for (size_t i = 0; i < document->count; i++) {
		struct medium medium = medium_terminal(style, out);
		buffer_text(out, i ? "\n" : "");
		compare_put(document, &document->comparisons[i], &medium);
	}
}

void compare_markdown(const struct compare_document *document, struct buffer *out)
{
	for (size_t i = 0; i < document->count; i++) {
		struct medium medium = medium_markdown(out);
		buffer_text(out, i ? "\n" : "");
		compare_put(document, &document->comparisons[i], &medium);
	}
}
