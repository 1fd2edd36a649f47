/* A comparison as a page of its own: the answer, the differences as dots with their intervals, where they come from,
 * and what else differs. */
#include "harness/report/compare.h"

#include "harness/record/fields.h"
#include "harness/report/html/chart.h"
#include "harness/report/html/page.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_PIXELS = 22, POINTS_DRAWN = 200 };

/* Releases text. */
static void paragraph(struct page *page, struct buffer *text)
{
	if (text->data && text->size > 0)
		page_paragraph(page, text->data);
	buffer_release(text);
}

static void term(struct page *page, const char *name, struct buffer *text)
{
	if (text->data && text->size > 0)
		page_term(page, name, text->data);
	buffer_release(text);
}

/* --- rows ------------------------------------------------------------------------------------------------------- */

/* What a dot's colour says. */
static const char *kind_of(const struct metric *metric, const struct difference *d)
{
	switch (compare_ink(metric, d)) {
	case INK_BAD:
		return "worse";
	case INK_GOOD:
		return "better";
	case INK_WARN:
		return "inconclusive";
	case INK_ACCENT:
		return "differs";
	default:
		return "no difference";
	}
}

/* tick: on the axis; label: where there is more room. */
static json_t *row_json(const struct metric *metric, const struct difference *d, const char *label,
	const char *tick)
{
	char text[METRIC_TEXT_BYTES];
	char words[COMPARE_WORDS_BYTES];
	struct part part = part_open();
	part_put(&part, "label", parts_text(label));
	part_put(&part, "tick", parts_text(tick));
	part_put(&part, "a", json_string(metric_text(metric, metric_unscaled(metric, d->a), text)));
	part_put(&part, "b", json_string(metric_text(metric, metric_unscaled(metric, d->b), text)));
	part_put(&part, "change", parts_number(metric_change(metric, d->value)));
	part_put(&part, "low", parts_number(metric_change(metric, d->interval.low)));
	part_put(&part, "high", parts_number(metric_change(metric, d->interval.high)));
	part_put(&part, "p", parts_number(d->adjusted));
	part_put(&part, "kind", json_string(kind_of(metric, d)));
	part_put(&part, "words", json_string(compare_verdict_words(metric, d, words)));
	return part_close(&part);
}

static const struct page_column forest_columns[] = {{"label", "what", PAGE_TEXT},
	{"a", "A", PAGE_TEXT}, {"b", "B", PAGE_TEXT}, {"change", "change", PAGE_SHARE},
	{"low", "CI from", PAGE_SHARE}, {"high", "to", PAGE_SHARE}, {"p", "p", PAGE_REAL},
	{"words", "B is", PAGE_TEXT}};

/* --- the forest plot ---------------------------------------------------------------------------------------------- */

/* What the axis shows: every dot and no change; intervals as far as three times that, so that one wide one does not
 * squeeze all others. */
static struct interval compare_html_axis_of(const json_t *rows)
{
	static const double least = 0.01;
	struct interval axis = {-least, least};
	double most = 0;
	size_t i;
	const json_t *row;
	json_array_foreach(rows, i, row)
	{
		const double change = fields_real(json_object_get(row, "change"));
		most = isnan(change) ? most : fmax(most, fabs(change));
	}
	const double widest = 3 * most + least;
	json_array_foreach(rows, i, row)
	{
		const double change = fields_real(json_object_get(row, "change"));
		const double low = fields_real(json_object_get(row, "low"));
		const double high = fields_real(json_object_get(row, "high"));
		/* fmin and fmax pass over NAN */
		axis.low = fmin(axis.low, fmin(change, fmax(low, -widest)));
		axis.high = fmax(axis.high, fmax(change, fmin(high, widest)));
	}
	return axis;
}

/* Dots with intervals, a row each, beside a line at no change.  Takes rows. */
static void forest(struct page *page, struct chart *chart, json_t *rows)
{
	const struct interval axis = compare_html_axis_of(rows);
	chart->table.rows = rows;
	PARTS_COLUMNS(chart, forest_columns);
	chart_open(chart, "forest");
	chart_param(chart, "low", json_real(axis.low));
	chart_param(chart, "high", json_real(axis.high));
	chart_set(chart, chart->spec, "height",
		json_integer((json_int_t)(json_array_size(rows) + 1) * ROW_PIXELS));
	(void)chart_done(chart); /* page_end says it */
	page_chart(page, chart);
	chart_release(chart);
}

static void throughput_chart(struct page *page, const struct comparison *c, size_t number)
{
	struct chart chart = {0};
	struct buffer label = {0};
	struct buffer tick = {0};
	json_t *rows = json_array();
	(void)snprintf(chart.id, sizeof chart.id, "throughput%zu", number);
	(void)snprintf(chart.title, sizeof chart.title, "Throughput of each point");
	buffer_format(&chart.text,
		"%g %% confidence intervals; one that is cut at the edge extends beyond it.",
		100 * (1 - c->significance));
	if (c->pair_count > 1) {
		buffer_text(&chart.text, " Rows: ");
		compare_key_names(c, &chart.text);
		buffer_text(&chart.text, ".");
	}
	if (c->pair_count > POINTS_DRAWN)
		buffer_format(&chart.text, " The first %d of %zu points are drawn.",
			(int)POINTS_DRAWN, c->pair_count);
	if (c->pair_count > 1)
		parts_append(&rows, row_json(&c->metrics[0], &c->overall[0],
					    "all points (geometric mean)", "mean of all"));
	for (size_t i = 0; i < c->pair_count && i < POINTS_DRAWN; i++) {
		compare_settings(c, i, &label);
		compare_values(c, i, &tick);
		parts_append(&rows, row_json(&c->metrics[0], &c->differences[i],
					    label.size > 0 ? label.data : "throughput",
					    tick.size > 0 ? tick.data : "throughput"));
		buffer_release(&label);
		buffer_release(&tick);
	}
	forest(page, &chart, rows);
}

static bool is_of_stages(const struct metric *metric)
{
	static const char *const kinds[] = {"capacity", "p50", "p99"};
	for (size_t i = 0; i < PARTS_COUNT(kinds); i++)
		if (metric->stage[0] && strcmp(metric->kind->name, kinds[i]) == 0)
			return true;
	return strcmp(metric->name, "step_time") == 0;
}

static void stages_chart(struct page *page, const struct comparison *c, size_t number)
{
	struct chart chart = {0};
	json_t *rows = json_array();
	(void)snprintf(chart.id, sizeof chart.id, "stages%zu", number);
	(void)snprintf(
		chart.title, sizeof chart.title, "Capacities and service times of the stages");
	buffer_text(&chart.text,
		"Capacity (more is better) and service times (less is better) of each stage, B "
		"against A");
	if (c->pair_count > 1) {
		buffer_text(&chart.text, "; at ");
		compare_settings(c, c->focus, &chart.text);
	}
	buffer_text(&chart.text, ".");
	for (size_t m = 0; m < c->metric_count; m++) {
		const struct difference *d = &c->differences[m * c->pair_count + c->focus];
		if (is_of_stages(&c->metrics[m]) && !isnan(d->value))
			parts_append(&rows, row_json(&c->metrics[m], d, c->metrics[m].name,
						    c->metrics[m].name));
	}
	forest(page, &chart, rows);
}

/* --- tables --------------------------------------------------------------------------------------------------------- */

static void figures_table(struct page *page, const struct comparison *c)
{
	struct page_table table = {.columns = forest_columns,
		.column_count = PARTS_COUNT(forest_columns),
		.rows = json_array()};
	for (size_t m = 0; m < c->metric_count; m++)
		parts_append(&table.rows,
			row_json(&c->metrics[m], &c->differences[m * c->pair_count + c->focus],
				c->metrics[m].name, c->metrics[m].name));
	page_table(page, &table, "All figures of that point");
	json_decref(table.rows);
}

/* harmless: those that only name, place or time the run; else the others. */
static json_t *fact_rows(const struct comparison *c, bool harmless)
{
	json_t *rows = json_array();
	for (size_t i = 0; i < c->facts.count; i++) {
		const struct compare_fact *fact = &c->facts.list[i];
		if ((fact->weight == COMPARE_HARMLESS) == harmless)
			parts_append(&rows,
				json_pack("{s:o, s:o, s:o, s:s}", "name", parts_text(fact->name),
					"a", parts_text(fact->a), "b", parts_text(fact->b),
					"weight", compare_weight_name(fact->weight)));
	}
	return rows;
}

static void facts_table(struct page *page, const struct comparison *c, bool harmless)
{
	static const struct page_column columns[] = {{"name", "what differs", PAGE_TEXT},
		{"a", "A", PAGE_TEXT}, {"b", "B", PAGE_TEXT}, {"weight", "weight", PAGE_TEXT}};
	struct page_table table = {.columns = columns,
		.column_count = PARTS_COUNT(columns),
		.rows = fact_rows(c, harmless)};
	if (json_array_size(table.rows) > 0)
		page_table(page, &table, "Keys of the configuration and facts of the node");
	else
		page_paragraph(page, "No recorded key or fact of substance differs.");
	json_decref(table.rows);
}

static void explanation_table(struct page *page, const struct comparison *c)
{
	static const struct page_column columns[] = {{"part", "exchanged", PAGE_TEXT},
		{"change", "changes throughput by", PAGE_SHARE},
		{"share", "share of the measured change", PAGE_SHARE}};
	const struct explanation *e = &c->explanation;
	struct page_table table = {
		.columns = columns, .column_count = PARTS_COUNT(columns), .rows = json_array()};
	const double rest = isnan(e->explained) ? e->measured : e->measured - e->explained;
	for (size_t i = 0; i < e->part_count; i++)
		parts_append(&table.rows,
			json_pack("{s:s, s:o, s:o}", "part", e->parts[i].name, "change",
				parts_number(expm1(e->parts[i].effect)), "share",
				parts_number(e->parts[i].effect / e->measured)));
	parts_append(&table.rows,
		json_pack("{s:s, s:o, s:o}", "part", "unexplained", "change",
			parts_number(expm1(rest)), "share", parts_number(rest / e->measured)));
	page_table(page, &table, "Where the difference comes from");
	json_decref(table.rows);
}

static void compare_html_list_points(struct page *page, const struct comparison *c,
	const struct report *report, const char *what, const size_t *list, size_t count)
{
	struct buffer text = {0};
	if (count == 0)
		return;
	page_paragraph(page, what);
	page_list_begin(page, false);
	for (size_t i = 0; i < count; i++) {
		compare_point_settings(c, report, list[i], &text);
		page_item(page, text.data ? text.data : "");
		buffer_release(&text);
	}
	page_list_end(page);
}

/* --- the page --------------------------------------------------------------------------------------------------------- */

static void subjects(struct page *page, const struct comparison *c)
{
	struct buffer text = {0};
	page_terms_begin(page);
	buffer_format(&text, "%s, config %s", c->a.report->record->folder,
		c->a.report->record->config_hash);
	term(page, "A, the baseline", &text);
	buffer_format(&text, "%s, config %s", c->b.report->record->folder,
		c->b.report->record->config_hash);
	term(page, "B", &text);
	buffer_text(&text, c->a.report->record->step.description);
	term(page, "step", &text);
	compare_binding_words(c, &text);
	term(page, "bottleneck", &text);
	compare_explanation_words(c, &text);
	term(page, "explanation", &text);
	page_terms_end(page);
}

static void judgement(
	struct page *page, const struct compare_document *document, const struct comparison *c)
{
	struct buffer text = {0};
	for (size_t i = 0; i < c->remark_count; i++)
		page_notice(page, "Note", c->remarks[i]);
	for (size_t i = 0; i < c->facts.count; i++)
		if (c->facts.list[i].weight == COMPARE_STRONG)
			buffer_format(&text, "%s%s (%s, %s)", text.size > 0 ? "; " : "",
				c->facts.list[i].name, c->facts.list[i].a, c->facts.list[i].b);
	if (text.size > 0)
		page_notice(page, "Different", text.data);
	buffer_release(&text);
	for (size_t i = 0; i < document->gate_count; i++) {
		compare_gate_words(&document->gates[i], &c->gates[i], c, &text);
		page_notice(page, compare_gate_label(&document->gates[i], &c->gates[i]),
			text.data ? text.data : "");
		buffer_release(&text);
	}
}

static void section(struct page *page, const struct compare_document *document, size_t number)
{
	const struct comparison *c = &document->comparisons[number];
	struct buffer text = {0};
	char id[CHART_ID_BYTES];
	if (document->count > 1) {
		(void)snprintf(id, sizeof id, "result%zu", number);
		buffer_format(&text, "%s compared with %s", c->b.report->record->folder,
			c->a.report->record->folder);
		page_heading(page, 2, id, text.data ? text.data : "");
		buffer_release(&text);
		compare_sentence(c, &text);
		paragraph(page, &text);
	}
	judgement(page, document, c);
	subjects(page, c);
	throughput_chart(page, c, number);
	compare_html_list_points(page, c, c->a.report, "Not compared, because only A has them:", c->match.only_a,
		c->match.only_a_count);
	compare_html_list_points(page, c, c->b.report, "Not compared, because only B has them:", c->match.only_b,
		c->match.only_b_count);
	if (c->explained)
		explanation_table(page, c);
	stages_chart(page, c, number);
	page_fold_begin(page, "All figures");
	figures_table(page, c);
	page_fold_end(page);
	page_heading(page, 3, NULL, "What else differs");
	facts_table(page, c, false);
	if (compare_facts_count(&c->facts, COMPARE_HARMLESS) > 0) {
		page_fold_begin(page, "Differences in names, places and times only");
		facts_table(page, c, true);
		page_fold_end(page);
	}
	compare_method_words(c, &text);
	paragraph(page, &text);
}

int compare_html(const struct compare_document *document, struct buffer *out, struct error *err)
{
	struct buffer title = {0};
	struct buffer lead = {0};
	const struct comparison *first = &document->comparisons[0];
	buffer_format(&title, "%s compared with %s", first->b.report->record->name,
		first->a.report->record->name);
	if (document->count == 1)
		compare_sentence(first, &lead);
	else
		buffer_format(&lead, "%zu results compared with one baseline", document->count);
	buffer_text(&lead, ".");
	struct page *page = title.failed || lead.failed
				    ? NULL
				    : page_begin(title.data ? title.data : "", lead.data);
	buffer_release(&title);
	buffer_release(&lead);
	if (!page)
		return error_set(err, -ENOMEM, "out of memory for the page");
	for (size_t i = 0; i < document->count; i++)
		section(page, document, i);
	return page_end(page, out, err);
}
