/* The page: everything that is written passes html_escape, and the document is put together at its end, when
 * its contents are known.  A chart's rows are in its table for readers and once more, by column, for the script. */
#include "harness/report/html/page.h"

#include "harness/base/hash.h"
#include "harness/base/units.h"
#include "harness/report/columns.h"
#include "harness/report/html/assets.h"
#include "harness/report/html/html.h"

#include <errno.h>
#include <math.h>
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
	json_t *drawn;   /* the files of charts that are in the body, once each */
	bool in_section; /* a heading of level 2 was written: charts are parts of it */
	bool in_point;
	bool numbered; /* the list that is open */
	bool sheet;    /* to be printed on one page */
	bool failed;
};

void chart_release(struct chart *chart)
{
	buffer_release(&chart->finding);
	buffer_release(&chart->text);
	json_decref(chart->drawing);
	json_decref(chart->file);
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
	page->drawn = json_object();
	page->failed = !page->title || !page->drawn;
	if (lead)
		html_escape(lead, &page->lead);
	return page;
}

void page_release(struct page *page)
{
	if (!page)
		return;
	free(page->title);
	json_decref(page->drawn);
	buffer_release(&page->facts);
	buffer_release(&page->lead);
	buffer_release(&page->body);
	buffer_release(&page->contents);
	free(page);
}

static void page_put(struct page *page, const char *html)
{
	buffer_text(&page->body, html);
}

static void page_put_text(struct page *page, const char *text)
{
	html_escape(text, &page->body);
}

/* <name>text</name> */
static void page_put_element(struct page *page, const char *name, const char *text)
{
	buffer_format(&page->body, "<%s>", name);
	page_put_text(page, text);
	buffer_format(&page->body, "</%s>\n", name);
}

static void page_put_id(struct page *page, const char *id)
{
	if (!id || !id[0])
		return;
	page_put(page, " id=\"");
	page_put_text(page, id);
	page_put(page, "\"");
}

static void page_add_link(struct page *page, const char *id, const char *text)
{
	if (!id || !id[0] || page->in_point)
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
		page_add_link(page, id, text);
	buffer_format(&page->body, "<h%d", kept);
	page_put_id(page, id);
	page_put(page, ">");
	page_put_text(page, text);
	buffer_format(&page->body, "</h%d>\n", kept);
}

void page_section_end(struct page *page)
{
	page->in_section = false;
}

void page_paragraph(struct page *page, const char *text)
{
	page_put_element(page, "p", text);
}

void page_terms_begin(struct page *page)
{
	page_put(page, "<dl>\n");
}

void page_term(struct page *page, const char *term, const char *text)
{
	page_put(page, "<div>");
	page_put_element(page, "dt", term);
	page_put_element(page, "dd", text);
	page_put(page, "</div>\n");
}

void page_terms_end(struct page *page)
{
	page_put(page, "</dl>\n");
}

void page_code(struct page *page, const char *text)
{
	page_put(page, "<pre tabindex=\"0\" aria-label=\"command\"><code>");
	page_put_text(page, text);
	page_put(page, "</code></pre>\n");
}

void page_link(struct page *page, const char *file, const char *text)
{
	page_put(page, "<p><a href=\"./");
	page_put_text(page, file);
	page_put(page, "\">");
	page_put_text(page, text);
	page_put(page, "</a></p>\n");
}

void page_figures_begin(struct page *page)
{
	page_put(page, "<ul class=\"figures\">\n");
}

void page_figure(struct page *page, const char *value, const char *unit, const char *text)
{
	page_put(page, "<li><b>");
	page_put_text(page, value);
	page_put(page, "</b> <span>");
	page_put_text(page, unit);
	page_put(page, "</span>");
	page_put_element(page, "p", text);
	page_put(page, "</li>\n");
}

void page_figures_end(struct page *page)
{
	page_put(page, "</ul>\n");
}

void page_list_begin(struct page *page, bool numbered)
{
	page_put(page, numbered ? "<ol>\n" : "<ul>\n");
	page->numbered = numbered;
}

void page_item(struct page *page, const char *text)
{
	page_put_element(page, "li", text);
}

void page_list_end(struct page *page)
{
	page_put(page, page->numbered ? "</ol>\n" : "</ul>\n");
}

void page_notice(struct page *page, const char *label, const char *text)
{
	page_put(page, "<p class=\"notice\"><strong>");
	page_put_text(page, label);
	page_put(page, "</strong> ");
	page_put_text(page, text);
	page_put(page, "</p>\n");
}

void page_action(struct page *page, const char *what, const char *gain, const char *text)
{
	page_put(page, "<p class=\"action\"><b>");
	page_put_text(page, what);
	page_put(page, "</b> <strong>");
	page_put_text(page, gain);
	page_put(page, "</strong> ");
	page_put_text(page, text);
	page_put(page, "</p>\n");
}

/* What it shows, beside a heading. */
static void page_put_finding(struct page *page, const char *finding)
{
	if (finding) {
		page_put(page, " <span>");
		page_put_text(page, finding);
		page_put(page, "</span>");
	}
	page_put(page, "</summary><div>\n");
}

void page_more_begin(struct page *page, const char *id, const char *heading, const char *finding)
{
	page->in_section = true;
	page_add_link(page, id, heading);
	page_put(page, "<details class=\"more\" open");
	page_put_id(page, id);
	page_put(page, "><summary><h2>");
	page_put_text(page, heading);
	page_put(page, "</h2>");
	page_put_finding(page, finding);
}

void page_point_begin(struct page *page, size_t point, const char *heading, const char *finding)
{
	page->in_point = true;
	buffer_format(
		&page->body, "<details class=\"point\" open id=\"point-%zu\"><summary><h3>", point);
	page_put_text(page, heading);
	page_put(page, "</h3>");
	page_put_finding(page, finding);
}

void page_point_end(struct page *page)
{
	page->in_point = false;
	page_fold_end(page);
}

void page_fold_begin(struct page *page, const char *summary)
{
	page_put(page, "<details open>");
	page_put_element(page, "summary", summary);
	page_put(page, "<div>\n");
}

void page_fold_end(struct page *page)
{
	page_put(page, "</div></details>\n");
}

void page_sheet(struct page *page)
{
	page->sheet = true;
}

void page_signatures(struct page *page, const char *const *labels, size_t count)
{
	page_put(page, "<ul class=\"signatures\">\n");
	for (size_t i = 0; i < count; i++)
		page_item(page, labels[i]);
	page_put(page, "</ul>\n");
}

/* --- tables ------------------------------------------------------------------------------------ */

/* End tags of rows and cells are left out, as HTML allows: a page has thousands. */
static void page_put_cell(struct page *page, const struct page_column *column, const json_t *value)
{
	char number[PAGE_NUMBER_BYTES];
	page_put(page, column->format == PAGE_TEXT ? "<td>" : "<td class=n>");
	if (json_is_string(value))
		page_put_text(page, json_string_value(value));
	else if (json_is_number(value))
		page_put_text(page, page_number(column->format, json_number_value(value), number));
	else if (json_is_boolean(value))
		page_put(page, json_is_true(value) ? "yes" : "no");
	else
		page_put(page, "–");
}

static void page_put_head(struct page *page, const struct page_table *table)
{
	page_put(page, "<thead><tr>");
	for (size_t i = 0; i < table->column_count; i++) {
		const struct page_column *column = &table->columns[i];
		page_put(page,
			column->format == PAGE_TEXT ? "<th scope=col>" : "<th scope=col class=n>");
		page_put_text(page, column->head);
	}
	page_put(page, "\n<tbody>\n");
}

static void page_put_caption_of_table(struct page *page, const char *caption)
{
	page_put(page, "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"");
	page_put_text(page, caption);
	page_put(page, "\"><table><caption>");
	page_put_text(page, caption);
	page_put(page, "</caption>");
}

void page_table(struct page *page, const struct page_table *table, const char *caption)
{
	size_t at;
	const json_t *row;
	page_put_caption_of_table(page, caption);
	page_put_head(page, table);
	json_array_foreach(table->rows, at, row)
	{
		page_put(page, "<tr>");
		for (size_t i = 0; i < table->column_count; i++)
			page_put_cell(page, &table->columns[i],
				json_object_get(row, table->columns[i].field));
		page_put(page, "\n");
	}
	page_put(page, "</table></div>\n");
}

/* A number as this page has it, a text as all media do. */
static void page_put_row(struct page *page, const struct table_column *column, const json_t *row)
{
	static const enum page_format formats[] = {[COLUMN_COUNT] = PAGE_COUNT,
		[COLUMN_SHARE] = PAGE_SHARE,
		[COLUMN_BYTES] = PAGE_BYTES,
		[COLUMN_RATE] = PAGE_RATE,
		[COLUMN_SECONDS] = PAGE_SECONDS};
	const struct page_column mine = {.format = column->left ? PAGE_TEXT : PAGE_REAL};
	const json_t *value = column->text_of ? NULL : column_value(row, column->path);
	const double scale = fpclassify(column->scale) == FP_ZERO ? 1 : column->scale;
	char number[PAGE_NUMBER_BYTES];
	struct buffer text = {0};
	if (json_is_number(value) && column->unit < COLUMN_FIXED && column->unit > COLUMN_TEXT)
		buffer_text(&text, page_number(formats[column->unit],
					   scale * json_number_value(value), number));
	else
		column_cell(column, row, &text);
	json_t *cell =
		strcmp(text.data ? text.data : "-", "-") == 0 ? NULL : json_string(text.data);
	page_put_cell(page, &mine, cell);
	page->failed = page->failed || text.failed;
	json_decref(cell);
	buffer_release(&text);
}

void page_rows(struct page *page, const struct table_column *columns, size_t count,
	const json_t *rows, const char *caption)
{
	size_t at;
	const json_t *row;
	page_put_caption_of_table(page, caption);
	page_put(page, "<thead><tr>");
	for (size_t i = 0; i < count; i++) {
		struct buffer words = {0};
		if (!table_column_is_words(&columns[i]))
			continue;
		table_column_words(&columns[i], &words);
		page_put(page, columns[i].left ? "<th scope=col>" : "<th scope=col class=n>");
		page_put_text(page, words.data ? words.data : "");
		buffer_release(&words);
	}
	page_put(page, "\n<tbody>\n");
	json_array_foreach(rows, at, row)
	{
		page_put(page, "<tr>");
		for (size_t i = 0; i < count; i++)
			if (table_column_is_words(&columns[i]))
				page_put_row(page, &columns[i], row);
		page_put(page, "\n");
	}
	page_put(page, "</table></div>\n");
}

/* --- charts ------------------------------------------------------------------------------------ */

/* Where the script draws; what it says stands beside it, and the table behind. */
static void page_put_plot(struct page *page, const struct chart *chart)
{
	page->charts++;
	page_put(page,
		"<div class=\"choices\"></div>\n<div class=\"plot\" role=\"img\" aria-labelledby=\"");
	page_put_text(page, chart->id);
	page_put(page, "-title\" aria-describedby=\"");
	page_put_text(page, chart->id);
	page_put(page, "-text\"></div>\n<script type=\"application/json\">");
	page_data(chart, &page->body);
	page_put(page, "</script>\n");
	const char *file = json_string_value(json_object_get(chart->drawing, "file"));
	const char *text = file ? asset_chart(file) : NULL;
	if (!text || json_object_get(page->drawn, file))
		return;
	page->failed = json_object_set_new(page->drawn, file, json_true()) || page->failed;
	buffer_format(&page->body, "<script type=\"application/json\" data-chart=\"%s\">", file);
	page_data_text(text, &page->body);
	page_put(page, "</script>\n");
}

/* Folded only where there is a picture in front of it. */
static void page_put_table_behind(struct page *page, const struct chart *chart)
{
	const size_t rows = json_array_size(chart->table.rows);
	const bool kept = !chart->drawing || asset_charts_unavailable();
	if (rows == 0)
		return;
	buffer_format(&page->body,
		"<details open class=\"behind%s\"><summary>The numbers: %zu row%s</summary>\n",
		kept ? " kept" : "", rows, rows == 1 ? "" : "s");
	page_table(page, &chart->table, chart->title);
	page_put(page, "</details>\n");
}

/* What it is of, what it shows, and how to read it. */
static void page_put_caption(struct page *page, const struct chart *chart)
{
	const int level = page->in_section ? LEVEL_PART : LEVEL_SECTION;
	buffer_format(&page->body, "<figcaption><h%d id=\"", level);
	page_put_text(page, chart->id);
	page_put(page, "-title\">");
	if (chart->finding.size > 0) {
		page_put(page, "<span>");
		page_put_text(page, chart->title);
		page_put(page, "</span> ");
	}
	page_put_text(page, chart->finding.size > 0 ? chart->finding.data : chart->title);
	buffer_format(&page->body, "</h%d><p id=\"", level);
	page_put_text(page, chart->id);
	page_put(page, "-text\">");
	page_put_text(page, chart->caption);
	page_put(page, "</p></figcaption>\n");
}

void page_chart(struct page *page, const struct chart *chart)
{
	page->failed = page->failed || chart->failed || chart->text.failed || chart->finding.failed;
	page_add_link(page, chart->id, chart->title);
	page_put(page, "<figure class=\"chart\"");
	page_put_id(page, chart->id);
	page_put(page, ">\n");
	page_put_caption(page, chart);
	if (!chart->drawing) {
		page_put(page, "<p class=\"none\">");
		page_put_text(page, chart->why_not);
		page_put(page, "</p>\n");
	} else if (!asset_charts_unavailable()) {
		page_put_plot(page, chart);
	}
	if (chart->text.size > 0) {
		page_put(page, "<p class=\"said\">");
		page_put_text(page, chart->text.data);
		page_put(page, "</p>\n");
	}
	page_put_table_behind(page, chart);
	page_put(page, "</figure>\n");
}

/* --- the document ------------------------------------------------------------------------------ */

/* Nothing may be fetched, and no script may run but those that bear the page's own mark, which text within
 * the page cannot know: it is a hash of all of it. */
static void page_put_policy(struct buffer *out, const char *nonce)
{
	buffer_format(out,
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'nonce-%s'; "
		"style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n",
		nonce);
}

static void page_put_head_element(const struct page *page, const char *nonce, struct buffer *out)
{
	buffer_text(out,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"color-scheme\" content=\"light dark\">\n"
		"<meta name=\"generator\" content=\"mlbench " MLBENCH_VERSION "\">\n");
	page_put_policy(out, nonce);
	buffer_text(out, "<title>");
	html_escape(page->title ? page->title : "", out);
	buffer_text(out, "</title>\n<style>\n");
	buffer_add(out, asset_style().text, asset_style().size);
	buffer_format(out,
		"</style>\n<script nonce=\"%s\">document.documentElement.className = \"js early\";</script>\n"
		"</head>\n",
		nonce);
}

static void page_put_contents(const struct page *page, struct buffer *out)
{
	if (page->links < 2 || page->sheet)
		return;
	buffer_text(out, "<nav aria-label=\"Contents\"><ul>\n");
	buffer_add(out, page->contents.data, page->contents.size);
	buffer_text(out, "</ul></nav>\n");
}

static void page_put_top(const struct page *page, struct buffer *out)
{
	buffer_text(out, page->sheet ? "<body class=\"sheet\">\n" : "<body>\n");
	buffer_text(
		out, "<a class=\"skip\" href=\"#main\">Skip to the content</a>\n<header>\n<h1>");
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
	page_put_contents(page, out);
}

static void page_put_why_no_charts(const struct page *page, struct buffer *out)
{
	const char *why = asset_charts_unavailable();
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

static void page_put_script(const struct asset *asset, const char *nonce, struct buffer *out)
{
	buffer_format(out, "<script nonce=\"%s\">\n", nonce);
	buffer_add(out, asset->text, asset->size);
	buffer_text(out, "</script>\n");
}

static void page_put_end(const struct page *page, const char *nonce, struct buffer *out)
{
	const struct asset charts = asset_charts();
	const struct asset script = asset_script();
	const bool draws = page->charts > 0;
	buffer_format(out, "<footer><p>Written by mlbench " MLBENCH_VERSION ".%s</p></footer>\n",
		draws ? " Charts are drawn by Vega, whose licence is in this file." : "");
	if (draws)
		page_put_script(&charts, nonce, out);
	page_put_script(&script, nonce, out);
	buffer_text(out, "</body>\n</html>\n");
}

static void page_put_document(const struct page *page, struct buffer *out)
{
	char nonce[2 * 16 + 1];
	const uint64_t first = hash_bytes(page->body.data, page->body.size, NONCE_SEED);
	(void)snprintf(nonce, sizeof nonce, "%016llx%016llx", (unsigned long long)first,
		(unsigned long long)hash_bytes(page->lead.data, page->lead.size, first));
	page_put_head_element(page, nonce, out);
	page_put_top(page, out);
	buffer_text(out, "<main id=\"main\" tabindex=\"-1\">\n");
	page_put_why_no_charts(page, out);
	buffer_add(out, page->body.data, page->body.size);
	buffer_text(out, "</main>\n");
	page_put_end(page, nonce, out);
}

int page_end(struct page *page, struct buffer *out, struct error *err)
{
	bool failed = !page;
	if (page) {
		page_put_document(page, out);
		failed = page->failed || page->body.failed || page->facts.failed ||
			 page->lead.failed || page->contents.failed || out->failed;
	}
	page_release(page);
	return failed ? error_set(err, -ENOMEM, "out of memory for the page") : 0;
}

/* --- numbers of cells: four digits that count, units beside them, true minus signs ------- */

enum { NUMBER_DIGITS = 4, NUMBER_GROUP = 3 };
static const double NUMBER_WHOLE_MOST =
	1e15; /* above it neighbours of a double are too far apart for commas */

/* "-1234567" -> "-1,234,567" */
static void number_add_commas(const char *digits, char *out)
{
	if (*digits == '-')
		*out++ = *digits++;
	size_t left = strspn(digits, "0123456789");
	for (; left > 0; left--) {
		*out++ = *digits++;
		if (left > 1 && (left - 1) % NUMBER_GROUP == 0)
			*out++ = ',';
	}
	(void)memcpy(out, digits, strlen(digits) + 1);
}

static int number_decimals(double value)
{
	const double magnitude = fabs(value);
	if (magnitude >= 1000 || magnitude <= 0)
		return 0;
	const int before = (int)floor(log10(magnitude)) + 1;
	return before > 0 ? NUMBER_DIGITS - before : NUMBER_DIGITS;
}

static void format_real(double value, char out[PAGE_NUMBER_BYTES])
{
	char digits[PAGE_NUMBER_BYTES];
	if (fabs(value) >= NUMBER_WHOLE_MOST || (value != 0 && fabs(value) < 1e-4)) {
		(void)snprintf(out, PAGE_NUMBER_BYTES, "%.3e", value);
		return;
	}
	const bool whole = value == floor(value);
	(void)snprintf(digits, sizeof digits, "%.*f", whole ? 0 : number_decimals(value), value);
	number_add_commas(digits, out);
}

static void format_count(double value, char out[PAGE_NUMBER_BYTES])
{
	char digits[PAGE_NUMBER_BYTES];
	if (fabs(value) >= NUMBER_WHOLE_MOST || (fabs(value) < 100 && value != floor(value))) {
		format_real(value, out);
		return;
	}
	(void)snprintf(digits, sizeof digits, "%.0f", value);
	number_add_commas(digits, out);
}

static void format_share(double value, char out[PAGE_NUMBER_BYTES])
{
	const double percent = 100 * value;
	const int decimals = fabs(percent) >= 99.95 || percent == 0 ? 0
			     : fabs(percent) >= 1                   ? 1
								    : 2;
	(void)snprintf(out, PAGE_NUMBER_BYTES, "%.*f %%", decimals, percent);
}

static void page_format_seconds(double value, char out[PAGE_NUMBER_BYTES])
{
	char text[UNITS_BYTES];
	(void)units_format_duration(value * 1e9, text);
	const size_t size = strlen(text);
	if (size > 2 && strcmp(text + size - 2, "us") == 0)
		(void)snprintf(out, PAGE_NUMBER_BYTES, "%.*sµs", (int)size - 2, text);
	else
		(void)snprintf(out, PAGE_NUMBER_BYTES, "%s", text);
}

const char *page_number(enum page_format format, double value, char out[PAGE_NUMBER_BYTES])
{
	char text[UNITS_BYTES];
	if (!isfinite(value)) {
		(void)snprintf(out, PAGE_NUMBER_BYTES, "%s", isinf(value) ? "unbounded" : "–");
		return out;
	}
	switch (format) {
	case PAGE_COUNT:
		format_count(value, out);
		break;
	case PAGE_SHARE:
		format_share(value, out);
		break;
	case PAGE_SECONDS:
		page_format_seconds(value, out);
		break;
	case PAGE_BYTES:
		(void)snprintf(out, PAGE_NUMBER_BYTES, "%s", units_format_size(value, text));
		break;
	case PAGE_RATE:
		(void)snprintf(out, PAGE_NUMBER_BYTES, "%s", units_format_rate(value, text));
		break;
	case PAGE_FRACTION:
		(void)snprintf(out, PAGE_NUMBER_BYTES, "%.2f", value);
		break;
	case PAGE_TEXT:
	case PAGE_REAL:
		format_real(value, out);
		break;
	}
	return out;
}
