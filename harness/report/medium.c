/* Three media, block by block. */
#include "harness/report/medium.h"

#include "harness/report/layout.h"

struct medium medium_terminal(const struct style *style, struct buffer *out)
{
	return (struct medium){.style = style, .out = out};
}

struct medium medium_markdown(struct buffer *out)
{
	return (struct medium){.out = out};
}

struct medium medium_page(struct page *page)
{
	return (struct medium){.page = page};
}

/* In HTML the facts are one list, which whatever is no fact ends. */
static void medium_set_facts(struct medium *medium, bool in_facts)
{
	if (medium->page && in_facts && !medium->in_facts)
		page_terms_begin(medium->page);
	else if (medium->page && !in_facts && medium->in_facts)
		page_terms_end(medium->page);
	else if (in_facts && medium->after_table)
		buffer_text(medium->out, "\n");
	medium->in_facts = in_facts;
	medium->after_table = false;
}

void medium_end(struct medium *medium)
{
	medium_set_facts(medium, false);
}

void medium_title(struct medium *medium, const char *name, const char *beside)
{
	const struct style *style = medium->style;
	if (style) {
		buffer_format(medium->out, "%s%s%s%s", style_ink(style, INK_BOLD), name,
			style_end(style), *beside ? "  " : "\n");
		if (*beside)
			style_wrap(style, beside, LAYOUT_INDENT + LAYOUT_LABEL,
				style_columns(name) + 2, medium->out);
	} else if (!medium->page) {
		buffer_text(medium->out, "## ");
		markdown_escape(name, medium->out);
		buffer_text(medium->out, "\n\n");
		medium_fact_text(medium, INK_PLAIN, "", beside);
	}
}

void medium_space(struct medium *medium)
{
	medium_set_facts(medium, false);
	if (medium->out)
		buffer_text(medium->out, "\n");
}

void medium_heading(struct medium *medium, const char *text)
{
	struct buffer words = {0};
	medium_set_facts(medium, false);
	buffer_sentence(&words, text);
	if (medium->style) {
		layout_heading(medium->style, text, medium->out);
	} else if (medium->page) {
		page_heading(medium->page, 3, NULL, words.data ? words.data : "");
	} else {
		buffer_text(medium->out, "\n### ");
		markdown_escape(words.data ? words.data : "", medium->out);
		buffer_text(medium->out, "\n\n");
	}
	buffer_release(&words);
}

void medium_fact_text(struct medium *medium, enum ink ink, const char *term, const char *text)
{
	const bool goes_on = medium->in_facts && !*term;
	if (!*text)
		return;
	medium_set_facts(medium, true);
	if (medium->style) {
		layout_labelled(medium->style, ink, term, text, medium->out);
	} else if (medium->page) {
		page_term(medium->page, term, text);
	} else {
		buffer_format(medium->out, *term ? "- **%s:** " : goes_on ? "  %s" : "- %s", term);
		markdown_escape(text, medium->out);
		buffer_text(medium->out, "\n");
	}
}

void medium_fact(struct medium *medium, enum ink ink, const char *term, struct buffer *text)
{
	if (text->size > 0)
		medium_fact_text(medium, ink, term, text->data);
	if (medium->out)
		medium->out->failed = medium->out->failed || text->failed;
	buffer_release(text);
}

void medium_list(
	struct medium *medium, enum ink ink, const char *term, const json_t *texts, size_t first)
{
	for (size_t i = first; i < json_array_size(texts); i++) {
		const char *text = json_string_value(json_array_get(texts, i));
		const bool says_term = i == first || (!medium->style && !medium->page);
		medium_fact_text(medium, ink, says_term ? term : "", text ? text : "");
	}
}

void medium_note(struct medium *medium, struct buffer *text)
{
	const struct style *style = medium->style;
	medium_set_facts(medium, false);
	if (text->size > 0 && style) {
		buffer_repeat(medium->out, " ", LAYOUT_INDENT);
		buffer_text(medium->out, style_ink(style, INK_DIM));
		style_wrap(style, text->data, LAYOUT_INDENT, LAYOUT_INDENT, medium->out);
		medium->out->size -= medium->out->size > 0; /* the ink ends before the newline */
		buffer_format(medium->out, "%s\n", style_end(style));
	} else if (text->size > 0 && medium->page) {
		page_paragraph(medium->page, text->data);
	} else if (text->size > 0) {
		buffer_text(medium->out, "\n");
		markdown_escape(text->data, medium->out);
		buffer_text(medium->out, "\n");
	}
	buffer_release(text);
}

/* One that was filled by table_add, in a terminal or Markdown. */
static void medium_put_table(struct medium *medium, const struct table *table)
{
	medium_set_facts(medium, false);
	if (medium->style)
		table_render(table, medium->style, LAYOUT_INDENT, true, medium->out);
	else
		table_markdown(table, medium->out);
	medium->after_table = !medium->style;
}

void medium_table(struct medium *medium, const struct table_column *columns, size_t count,
	const json_t *rows, const char *caption)
{
	struct table table;
	if (json_array_size(rows) == 0)
		return;
	if (medium->page) {
		struct buffer words = {0};
		medium_set_facts(medium, false);
		buffer_sentence(&words, caption);
		page_rows(medium->page, columns, count, rows, words.data ? words.data : "");
		buffer_release(&words);
		return;
	}
	columns_table(columns, count, rows, &table);
	medium_put_table(medium, &table);
	table_close(&table);
}
