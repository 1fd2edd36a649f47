/* A comparison in the terminal: the answer first, what makes it doubtful next, then the figures. */
#include "harness/report/compare_tables.h"

#include "harness/base/utf8.h"
#include "harness/report/layout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LISTED_MOST = 8 };

/* layout_labelled_buffer of text that may hold names of files and values of keys. */
static void labelled(const struct style *style, enum ink ink, const char *label,
	struct buffer *text, struct buffer *out)
{
	struct buffer plain = {0};
	if (text->data && text->size > 0)
		utf8_add_plain(&plain, text->data, "?");
	plain.failed = plain.failed || text->failed;
	buffer_release(text);
	layout_labelled_buffer(style, ink, label, &plain, out);
}

static void names(const struct comparison *c, const struct style *style, struct buffer *out)
{
	struct buffer line = {0};
	const struct record *a = c->a.report->record;
	const struct record *b = c->b.report->record;
	record_describe(a, &line);
	buffer_format(&line, ", config %s (baseline)", a->config_hash);
	labelled(style, INK_DIM, "A", &line, out);
	record_describe(b, &line);
	buffer_format(&line, ", config %s", b->config_hash);
	labelled(style, INK_DIM, "B", &line, out);
	buffer_format(&line, "%s", a->step.description);
	labelled(style, INK_DIM, "step", &line, out);
}

static void sentence(const struct comparison *c, const struct style *style, struct buffer *out)
{
	struct buffer text = {0};
	const enum ink ink = compare_ink(&c->metrics[0], &c->overall[0]);
	compare_sentence(c, &text);
	buffer_repeat(out, " ", LAYOUT_INDENT);
	buffer_text(out, style_ink(style, ink == INK_DIM ? INK_BOLD : ink));
	style_wrap(style, text.data ? text.data : "", LAYOUT_INDENT, LAYOUT_INDENT, out);
	out->size -= out->size > 0; /* the ink ends before the newline */
	buffer_format(out, "%s\n", style_end(style));
	buffer_release(&text);
}

static void doubts(const struct comparison *c, const struct style *style, struct buffer *out)
{
	struct buffer text = {0};
	const size_t strong = compare_facts_count(&c->facts, COMPARE_STRONG);
	for (size_t i = 0; i < c->remark_count; i++) {
		buffer_text(&text, c->remarks[i]);
		labelled(style, INK_WARN, "note", &text, out);
	}
	if (strong == 0)
		return;
	for (size_t i = 0; i < strong && i < LISTED_MOST; i++)
		buffer_format(&text, "%s%s", i ? ", " : "", c->facts.list[i].name);
	if (strong > LISTED_MOST)
		buffer_format(&text, " and %zu more", strong - LISTED_MOST);
	buffer_format(&text, " differ%s, and may be the whole cause", strong == 1 ? "s" : "");
	labelled(style, INK_WARN, "unlike", &text, out);
}

static void explanation(const struct comparison *c, const struct style *style, struct buffer *out)
{
	struct buffer text = {0};
	compare_explanation_words(c, &text);
	labelled(style, INK_BOLD, "because", &text, out);
	compare_binding_words(c, &text);
	labelled(style, INK_PLAIN, "limit", &text, out);
}

static void gates(const struct compare_document *document, const struct comparison *c,
	const struct style *style, struct buffer *out)
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
		labelled(style, ink, "gate", &text, out);
	}
}

/* Closes the table. */
static void table_under(struct compare_table *table, const char *heading, const struct style *style,
	struct buffer *out)
{
	if (table_rows(&table->table) > 0) {
		layout_heading(style, heading, out);
		table_render(&table->table, style, LAYOUT_INDENT, true, out);
	}
	table_close(&table->table);
}

static void points(const struct comparison *c, const struct style *style, struct buffer *out)
{
	struct compare_table table = {0};
	char heading[COMPARE_WORDS_BYTES];
	(void)snprintf(heading, sizeof heading, "throughput, %g %% intervals",
		100 * (1 - c->significance));
	compare_points_table(c, &table);
	table_under(&table, heading, style, out);
	if (c->pair_count > COMPARE_POINTS_SHOWN)
		buffer_format(out, "  ... and %zu more points (--format json has all)\n",
			c->pair_count - COMPARE_POINTS_SHOWN);
}

static void list_points(const struct comparison *c, const struct report *report, const char *label,
	const size_t *list, size_t count, const struct style *style, struct buffer *out)
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
	labelled(style, INK_DIM, label, &text, out);
}

static void unmatched(const struct comparison *c, const struct style *style, struct buffer *out)
{
	struct buffer text = {0};
	if (c->match.only_a_count + c->match.only_b_count + c->unmeasured_count > 0)
		layout_heading(style, "not compared", out);
	list_points(c, c->a.report, "A only", c->match.only_a, c->match.only_a_count, style, out);
	list_points(c, c->b.report, "B only", c->match.only_b, c->match.only_b_count, style, out);
	if (c->unmeasured_count == 0)
		return;
	buffer_format(&text, "%zu: ", c->unmeasured_count);
	for (size_t i = 0; i < c->unmeasured_count && i < LISTED_MOST; i++) {
		buffer_text(&text, i ? "; " : "");
		compare_point_settings(c, c->a.report, c->unmeasured[i].a, &text);
	}
	buffer_text(&text, " (failed, or not measured, in one of them)");
	labelled(style, INK_DIM, "neither", &text, out);
}

static void stages(
	const struct comparison *c, bool verbose, const struct style *style, struct buffer *out)
{
	struct compare_table table = {0};
	struct buffer heading = {0};
	struct buffer plain = {0};
	buffer_text(&heading, "stages");
	if (c->pair_count > 1) {
		buffer_text(&heading, " at ");
		compare_settings(c, c->focus, &heading);
	}
	utf8_add_plain(&plain, heading.data ? heading.data : "stages", "?");
	compare_stages_table(c, &table);
	table_under(&table, plain.data ? plain.data : "stages", style, out);
	buffer_release(&plain);
	buffer_release(&heading);
	table = (struct compare_table){0};
	compare_figures_table(c, verbose, &table);
	table_under(&table, verbose ? "all figures there" : "other figures that differ there",
		style, out);
}

static void facts(
	const struct comparison *c, bool verbose, const struct style *style, struct buffer *out)
{
	struct compare_table table = {0};
	const size_t harmless = compare_facts_count(&c->facts, COMPARE_HARMLESS);
	compare_facts_table(c, verbose, &table);
	table_under(&table, "what else differs", style, out);
	if (harmless > 0 && !verbose)
		buffer_format(out,
			"  %s%zu that only name, place or time the run %s (--verbose)%s\n",
			style_ink(style, INK_DIM), harmless, harmless == 1 ? "differs" : "differ",
			style_end(style));
}

static void one(const struct compare_document *document, const struct comparison *c,
	const struct style *style, struct buffer *out)
{
	struct buffer text = {0};
	names(c, style, out);
	buffer_text(out, "\n");
	sentence(c, style, out);
	doubts(c, style, out);
	explanation(c, style, out);
	gates(document, c, style, out);
	points(c, style, out);
	unmatched(c, style, out);
	stages(c, document->verbose, style, out);
	facts(c, document->verbose, style, out);
	buffer_text(out, "\n");
	compare_method_words(c, &text);
	labelled(style, INK_DIM, "method", &text, out);
}

void compare_text(
	const struct compare_document *document, const struct style *style, struct buffer *out)
{
	for (size_t i = 0; i < document->count; i++) {
		buffer_text(out, i ? "\n" : "");
		one(document, &document->comparisons[i], style, out);
	}
}
