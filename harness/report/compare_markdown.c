/* A comparison as Markdown: for a pull request's comment, so the answer and the gates first and the rest folded. */
#include "harness/report/compare_tables.h"
#include "harness/report/table_markdown.h"

#include <stdio.h>

/* Releases text. */
static void line(struct buffer *text, const char *before, struct buffer *out)
{
	if (text->data && text->size > 0) {
		buffer_text(out, before);
		markdown_escape(text->data, out);
		buffer_text(out, "\n");
	}
	out->failed = out->failed || text->failed;
	buffer_release(text);
}

static void heads(const struct comparison *c, struct buffer *out)
{
	struct buffer text = {0};
	buffer_text(out, "### ");
	markdown_escape(c->b.report->record->name, out);
	buffer_text(out, " compared with ");
	markdown_escape(c->a.report->record->name, out);
	buffer_text(out, "\n\n**");
	compare_sentence(c, &text);
	markdown_escape(text.data ? text.data : "", out);
	buffer_release(&text);
	buffer_text(out, ".**\n\n");
	buffer_text(&text, "A (baseline): ");
	record_describe(c->a.report->record, &text);
	buffer_format(&text, ", config %s", c->a.report->record->config_hash);
	line(&text, "- ", out);
	buffer_text(&text, "B: ");
	record_describe(c->b.report->record, &text);
	buffer_format(&text, ", config %s", c->b.report->record->config_hash);
	line(&text, "- ", out);
	buffer_format(&text, "step: %s", c->a.report->record->step.description);
	line(&text, "- ", out);
	compare_explanation_words(c, &text);
	line(&text, "- because: ", out);
	compare_binding_words(c, &text);
	line(&text, "- limit: ", out);
	for (size_t i = 0; i < c->remark_count; i++) {
		buffer_text(&text, c->remarks[i]);
		line(&text, "- **note**: ", out);
	}
}

static void gates(
	const struct compare_document *document, const struct comparison *c, struct buffer *out)
{
	struct buffer text = {0};
	for (size_t i = 0; i < document->gate_count; i++) {
		compare_gate_words(&document->gates[i], &c->gates[i], c, &text);
		buffer_format(out, c->gates[i].outcome == GATE_WITHIN ? "- %s: " : "- **%s**: ",
			compare_gate_label(&document->gates[i], &c->gates[i]));
		line(&text, "", out);
	}
}

/* Closes the table. */
static void table_under(struct compare_table *table, const char *heading, struct buffer *out)
{
	if (table_rows(&table->table) > 0) {
		buffer_text(out, "\n#### ");
		markdown_escape(heading, out);
		buffer_text(out, "\n\n");
		table_markdown(&table->table, out);
	}
	table_close(&table->table);
}

static void list_points(const struct comparison *c, const struct report *report, const char *label,
	const size_t *list, size_t count, struct buffer *out)
{
	struct buffer text = {0};
	for (size_t i = 0; i < count; i++) {
		buffer_format(&text, "%s: ", label);
		compare_point_settings(c, report, list[i], &text);
		line(&text, "- ", out);
	}
}

static void unmatched(const struct comparison *c, struct buffer *out)
{
	struct buffer text = {0};
	if (c->match.only_a_count + c->match.only_b_count + c->unmeasured_count > 0)
		buffer_text(out, "\n#### Not compared\n\n");
	list_points(c, c->a.report, "only in A", c->match.only_a, c->match.only_a_count, out);
	list_points(c, c->b.report, "only in B", c->match.only_b, c->match.only_b_count, out);
	for (size_t i = 0; i < c->unmeasured_count; i++) {
		buffer_text(&text, "no figures in one of them: ");
		compare_point_settings(c, c->a.report, c->unmeasured[i].a, &text);
		line(&text, "- ", out);
	}
}

static void one(
	const struct compare_document *document, const struct comparison *c, struct buffer *out)
{
	struct compare_table table = {0};
	struct buffer text = {0};
	heads(c, out);
	gates(document, c, out);
	compare_points_table(c, &table);
	table_under(&table, "Throughput", out);
	if (c->pair_count > COMPARE_POINTS_SHOWN)
		buffer_format(out, "\n%zu more points are not listed.\n",
			c->pair_count - COMPARE_POINTS_SHOWN);
	unmatched(c, out);
	buffer_text(&text, "Stages");
	if (c->pair_count > 1) {
		buffer_text(&text, " at ");
		compare_settings(c, c->focus, &text);
	}
	table = (struct compare_table){0};
	compare_stages_table(c, &table);
	table_under(&table, text.data ? text.data : "Stages", out);
	buffer_release(&text);
	table = (struct compare_table){0};
	compare_figures_table(c, document->verbose, &table);
	table_under(&table,
		document->verbose ? "All figures there" : "Other figures that differ there", out);
	table = (struct compare_table){0};
	compare_facts_table(c, document->verbose, &table);
	table_under(&table, "What else differs", out);
	buffer_text(out, "\n");
	compare_method_words(c, &text);
	line(&text, "Method: ", out);
}

void compare_markdown(const struct compare_document *document, struct buffer *out)
{
	for (size_t i = 0; i < document->count; i++) {
		buffer_text(out, i ? "\n" : "");
		one(document, &document->comparisons[i], out);
	}
}
