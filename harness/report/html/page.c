/* The page: everything that is written passes html_escape, and the document is put together at its end, when
 * its contents are known.  A chart's rows are in its table for readers and once more, by column, for the script. */
#include "harness/report/html/page.h"

#include "harness/base/hash.h"
#include "harness/report/html/assets.h"
#include "harness/report/html/page_data.h"
#include "harness/report/html/palette.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEVEL_SECTION = 2, LEVEL_PART = 3, NONCE_SEED = 7 };

struct page {
	char *title;            /* owned */
	struct buffer facts;    /* as HTML */
	struct buffer lead;     /* likewise */
	struct buffer body;     /* likewise */
	struct buffer contents; /* links */
	size_t links, charts;
	bool in_section; /* a heading of level 2 was written: charts are parts of it */
	bool numbered;   /* the list that is open */
	bool failed;
};

static bool has_charts(void)
{
	return strncmp(asset_charts().text, "//!", 3) != 0;
}

const char *page_charts_unavailable(void)
{
	static char why[CHART_WHY_BYTES];
	if (has_charts())
		return NULL;
	const char *line = asset_charts().text + strspn(asset_charts().text, "/! ");
	const size_t size = strcspn(line, "\n");
	const size_t kept = size < sizeof why ? size : sizeof why - 1;
	memcpy(why, line, kept);
	why[kept] = '\0';
	return why;
}

void chart_release(struct chart *chart)
{
	buffer_release(&chart->finding);
	buffer_release(&chart->text);
	json_decref(chart->spec);
	json_decref(chart->table.rows);
	free(chart->table.made_columns);
	*chart = (struct chart){0};
}

struct page *page_begin(const char *title, const char *lead)
{
	struct page *page = calloc(1, sizeof *page);
	if (!page)
		return NULL;
	page->title = strdup(title);
	page->failed = !page->title;
	if (lead)
		html_escape(lead, &page->lead);
	return page;
}

void page_release(struct page *page)
{
	if (!page)
		return;
	free(page->title);
	buffer_release(&page->facts);
	buffer_release(&page->lead);
	buffer_release(&page->body);
	buffer_release(&page->contents);
	free(page);
}

static void put(struct page *page, const char *html)
{
	buffer_text(&page->body, html);
}

static void put_text(struct page *page, const char *text)
{
	html_escape(text, &page->body);
}

/* <name>text</name> */
static void put_element(struct page *page, const char *name, const char *text)
{
	buffer_format(&page->body, "<%s>", name);
	put_text(page, text);
	buffer_format(&page->body, "</%s>\n", name);
}

static void put_id(struct page *page, const char *id)
{
	if (!id || !id[0])
		return;
	put(page, " id=\"");
	put_text(page, id);
	put(page, "\"");
}

static void add_link(struct page *page, const char *id, const char *text)
{
	if (!id || !id[0])
		return;
	buffer_text(&page->contents, "<li><a href=\"#");
	html_escape(id, &page->contents);
	buffer_text(&page->contents, "\">");
	html_escape(text, &page->contents);
	buffer_text(&page->contents, "</a></li>\n");
	page->links++;
}

void page_facts(struct page *page, const char *text)
{
	html_escape(text, &page->facts);
}

void page_heading(struct page *page, int level, const char *id, const char *text)
{
	const int kept = level <= LEVEL_SECTION ? LEVEL_SECTION : LEVEL_PART;
	page->in_section = page->in_section || kept == LEVEL_SECTION;
	if (kept == LEVEL_SECTION)
		add_link(page, id, text);
	buffer_format(&page->body, "<h%d", kept);
	put_id(page, id);
	put(page, ">");
	put_text(page, text);
	buffer_format(&page->body, "</h%d>\n", kept);
}

void page_section_end(struct page *page)
{
	page->in_section = false;
}

void page_paragraph(struct page *page, const char *text)
{
	put_element(page, "p", text);
}

void page_terms_begin(struct page *page)
{
	put(page, "<dl>\n");
}

void page_term(struct page *page, const char *term, const char *text)
{
	put(page, "<div>");
	put_element(page, "dt", term);
	put_element(page, "dd", text);
	put(page, "</div>\n");
}

void page_terms_end(struct page *page)
{
	put(page, "</dl>\n");
}

void page_code(struct page *page, const char *text)
{
	put(page, "<pre tabindex=\"0\" aria-label=\"command\"><code>");
	put_text(page, text);
	put(page, "</code></pre>\n");
}

void page_link(struct page *page, const char *file, const char *text)
{
	put(page, "<p><a href=\"./");
	put_text(page, file);
	put(page, "\">");
	put_text(page, text);
	put(page, "</a></p>\n");
}

void page_figures_begin(struct page *page)
{
	put(page, "<ul class=\"figures\">\n");
}

void page_figure(struct page *page, const char *value, const char *unit, const char *text)
{
	put(page, "<li><b>");
	put_text(page, value);
	put(page, "</b> <span>");
	put_text(page, unit);
	put(page, "</span>");
	put_element(page, "p", text);
	put(page, "</li>\n");
}

void page_figures_end(struct page *page)
{
	put(page, "</ul>\n");
}

void page_list_begin(struct page *page, bool numbered)
{
	put(page, numbered ? "<ol>\n" : "<ul>\n");
	page->numbered = numbered;
}

void page_item(struct page *page, const char *text)
{
	put_element(page, "li", text);
}

void page_list_end(struct page *page)
{
	put(page, page->numbered ? "</ol>\n" : "</ul>\n");
}

void page_notice(struct page *page, const char *label, const char *text)
{
	put(page, "<p class=\"notice\"><strong>");
	put_text(page, label);
	put(page, "</strong> ");
	put_text(page, text);
	put(page, "</p>\n");
}

void page_action(struct page *page, const char *what, const char *gain, const char *text)
{
	put(page, "<p class=\"action\"><b>");
	put_text(page, what);
	put(page, "</b> <strong>");
	put_text(page, gain);
	put(page, "</strong> ");
	put_text(page, text);
	put(page, "</p>\n");
}

void page_more_begin(struct page *page, const char *id, const char *heading, const char *finding)
{
	page->in_section = true;
	add_link(page, id, heading);
	put(page, "<details class=\"more\" open");
	put_id(page, id);
	put(page, "><summary><h2>");
	put_text(page, heading);
	put(page, "</h2>");
	if (finding) {
		put(page, " <span>");
		put_text(page, finding);
		put(page, "</span>");
	}
	put(page, "</summary><div>\n");
}

void page_fold_begin(struct page *page, const char *summary)
{
	put(page, "<details open>");
	put_element(page, "summary", summary);
	put(page, "<div>\n");
}

void page_fold_end(struct page *page)
{
	put(page, "</div></details>\n");
}

/* --- tables ------------------------------------------------------------------------------------ */

/* End tags of rows and cells are left out, as HTML allows: a page has thousands. */
static void put_cell(struct page *page, const struct page_column *column, const json_t *value)
{
	char number[PAGE_NUMBER_BYTES];
	put(page, column->format == PAGE_TEXT ? "<td>" : "<td class=n>");
	if (json_is_string(value))
		put_text(page, json_string_value(value));
	else if (json_is_number(value))
		put_text(page, page_number(column->format, json_number_value(value), number));
	else if (json_is_boolean(value))
		put(page, json_is_true(value) ? "yes" : "no");
	else
		put(page, "–");
}

static void put_head(struct page *page, const struct page_table *table)
{
	put(page, "<thead><tr>");
	for (size_t i = 0; i < table->column_count; i++) {
		const struct page_column *column = &table->columns[i];
		put(page,
			column->format == PAGE_TEXT ? "<th scope=col>" : "<th scope=col class=n>");
		put_text(page, column->head);
	}
	put(page, "\n<tbody>\n");
}

void page_table(struct page *page, const struct page_table *table, const char *caption)
{
	size_t at;
	const json_t *row;
	put(page, "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"");
	put_text(page, caption);
	put(page, "\"><table><caption>");
	put_text(page, caption);
	put(page, "</caption>");
	put_head(page, table);
	json_array_foreach(table->rows, at, row)
	{
		put(page, "<tr>");
		for (size_t i = 0; i < table->column_count; i++)
			put_cell(page, &table->columns[i],
				json_object_get(row, table->columns[i].field));
		put(page, "\n");
	}
	put(page, "</table></div>\n");
}

/* --- charts ------------------------------------------------------------------------------------ */

/* Where the script draws; what it says stands beside it, and the table behind. */
static void put_plot(struct page *page, const struct chart *chart)
{
	page->charts++;
	put(page,
		"<div class=\"choices\"></div>\n<div class=\"plot\" role=\"img\" aria-labelledby=\"");
	put_text(page, chart->id);
	put(page, "-title\" aria-describedby=\"");
	put_text(page, chart->id);
	put(page, "-text\"></div>\n<script type=\"application/json\">");
	page_data(chart, &page->body);
	put(page, "</script>\n");
}

/* Folded only where there is a picture in front of it. */
static void put_table_behind(struct page *page, const struct chart *chart)
{
	const size_t rows = json_array_size(chart->table.rows);
	const bool kept = !chart->spec || !has_charts();
	if (rows == 0)
		return;
	buffer_format(&page->body,
		"<details open class=\"behind%s\"><summary>The numbers: %zu row%s</summary>\n",
		kept ? " kept" : "", rows, rows == 1 ? "" : "s");
	page_table(page, &chart->table, chart->title);
	put(page, "</details>\n");
}

/* What it is of, what it shows, and how to read it. */
static void put_caption(struct page *page, const struct chart *chart)
{
	const int level = page->in_section ? LEVEL_PART : LEVEL_SECTION;
	buffer_format(&page->body, "<figcaption><h%d id=\"", level);
	put_text(page, chart->id);
	put(page, "-title\">");
	if (chart->finding.size > 0) {
		put(page, "<span>");
		put_text(page, chart->title);
		put(page, "</span> ");
	}
	put_text(page, chart->finding.size > 0 ? chart->finding.data : chart->title);
	buffer_format(&page->body, "</h%d><p id=\"", level);
	put_text(page, chart->id);
	put(page, "-text\">");
	put_text(page, chart->caption);
	put(page, "</p></figcaption>\n");
}

void page_chart(struct page *page, const struct chart *chart)
{
	page->failed = page->failed || chart->failed || chart->text.failed || chart->finding.failed;
	add_link(page, chart->id, chart->title);
	put(page, "<figure class=\"chart\"");
	put_id(page, chart->id);
	put(page, ">\n");
	put_caption(page, chart);
	if (!chart->spec) {
		put(page, "<p class=\"none\">");
		put_text(page, chart->why_not);
		put(page, "</p>\n");
	} else if (has_charts()) {
		put_plot(page, chart);
	}
	if (chart->text.size > 0) {
		put(page, "<p class=\"said\">");
		put_text(page, chart->text.data);
		put(page, "</p>\n");
	}
	put_table_behind(page, chart);
	put(page, "</figure>\n");
}

/* --- the document ------------------------------------------------------------------------------ */

/* Nothing may be fetched, and no script may run but those that bear the page's own mark, which text within
 * the page cannot know: it is a hash of all of it. */
static void put_policy(struct buffer *out, const char *nonce)
{
	buffer_format(out,
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'nonce-%s'; "
		"style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n",
		nonce);
}

static void put_document_head(const struct page *page, const char *nonce, struct buffer *out)
{
	buffer_text(out,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"color-scheme\" content=\"light dark\">\n"
		"<meta name=\"generator\" content=\"mlbench " MLBENCH_VERSION "\">\n");
	put_policy(out, nonce);
	buffer_text(out, "<title>");
	html_escape(page->title ? page->title : "", out);
	buffer_text(out, "</title>\n<style>\n");
	buffer_add(out, asset_style().text, asset_style().size);
	buffer_format(out,
		"</style>\n<script nonce=\"%s\">document.documentElement.className = \"js early\";</script>\n"
		"</head>\n",
		nonce);
}

static void put_contents(const struct page *page, struct buffer *out)
{
	if (page->links < 2)
		return;
	buffer_text(out, "<nav aria-label=\"Contents\"><ul>\n");
	buffer_add(out, page->contents.data, page->contents.size);
	buffer_text(out, "</ul></nav>\n");
}

static void put_top(const struct page *page, struct buffer *out)
{
	buffer_text(out,
		"<body>\n<a class=\"skip\" href=\"#main\">Skip to the content</a>\n<header>\n<h1>");
	html_escape(page->title ? page->title : "", out);
	buffer_text(out, "</h1>\n");
	if (page->facts.size > 0) {
		buffer_text(out, "<p class=\"facts\">");
		buffer_add(out, page->facts.data, page->facts.size);
		buffer_text(out, "</p>\n");
	}
	if (page->lead.size > 0) {
		buffer_text(out, "<p class=\"lead\">");
		buffer_add(out, page->lead.data, page->lead.size);
		buffer_text(out, "</p>\n");
	}
	buffer_text(out, "</header>\n");
	put_contents(page, out);
}

static void put_why_no_charts(const struct page *page, struct buffer *out)
{
	const char *why = page_charts_unavailable();
	if (page->charts > 0)
		buffer_text(out,
			"<noscript><p class=\"notice\"><strong>No scripts here.</strong> The charts are not "
			"drawn; the tables have all their numbers.</p></noscript>\n");
	if (!why)
		return;
	buffer_text(out, "<p class=\"notice\"><strong>No charts.</strong> ");
	html_escape(why, out);
	buffer_text(out, ". The tables have all their numbers.</p>\n");
}

static void put_palette(struct buffer *out)
{
	static const char *const series[] = PALETTE_SERIES;
	buffer_text(out, "const mlbenchSeries = [");
	for (size_t i = 0; i < sizeof series / sizeof series[0]; i++)
		buffer_format(out, "%s\"%s\"", i ? ", " : "", series[i]);
	buffer_text(out, "];\n");
}

static void put_script(const struct asset *asset, const char *nonce, struct buffer *out)
{
	buffer_format(out, "<script nonce=\"%s\">\n", nonce);
	if (asset->text == asset_script().text)
		put_palette(out);
	buffer_add(out, asset->text, asset->size);
	buffer_text(out, "</script>\n");
}

static void put_end(const struct page *page, const char *nonce, struct buffer *out)
{
	const struct asset charts = asset_charts();
	const struct asset script = asset_script();
	const bool draws = page->charts > 0;
	buffer_format(out, "<footer><p>Written by mlbench " MLBENCH_VERSION ".%s</p></footer>\n",
		draws ? " Charts are drawn by Vega, Vega-Lite and Vega-Embed, whose licences are in this file."
		      : "");
	if (draws)
		put_script(&charts, nonce, out);
	put_script(&script, nonce, out);
	buffer_text(out, "</body>\n</html>\n");
}

static void put_document(const struct page *page, struct buffer *out)
{
	char nonce[2 * 16 + 1];
	const uint64_t first = hash_bytes(page->body.data, page->body.size, NONCE_SEED);
	(void)snprintf(nonce, sizeof nonce, "%016llx%016llx", (unsigned long long)first,
		(unsigned long long)hash_bytes(page->lead.data, page->lead.size, first));
	put_document_head(page, nonce, out);
	put_top(page, out);
	buffer_text(out, "<main id=\"main\" tabindex=\"-1\">\n");
	put_why_no_charts(page, out);
	buffer_add(out, page->body.data, page->body.size);
	buffer_text(out, "</main>\n");
	put_end(page, nonce, out);
}

int page_end(struct page *page, struct buffer *out, struct error *err)
{
	bool failed = !page;
	if (page) {
		put_document(page, out);
		failed = page->failed || page->body.failed || page->facts.failed ||
			 page->lead.failed || page->contents.failed || out->failed;
	}
	page_release(page);
	return failed ? error_set(err, -ENOMEM, "out of memory for the page") : 0;
}
