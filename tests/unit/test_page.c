/* Pages: whatever a text holds, it stays text; numbers as people write them; what the script gets is what the table says. */
#include "harness/report/html/assets.h"
#include "harness/report/html/html.h"
#include "harness/report/html/page.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define EVIL "</script><script>alert(1)</script><img src=x onerror='a()'>\"&amp;"

static void expect_escaped(const char *text, const char *html)
{
	struct buffer out = {0};
	html_escape(text, &out);
	assert_false(out.failed);
	assert_string_equal(out.data ? out.data : "", html);
	buffer_release(&out);
}

static void escaping(void **state)
{
	(void)state;
	expect_escaped("", "");
	expect_escaped("4 workers give 612", "4 workers give 612");
	expect_escaped(
		"<a href=\"x\" b='y'>&amp;", "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;amp;");
	expect_escaped("µ±…≥ 日本 𝄞", "µ±…≥ 日本 𝄞");
	expect_escaped("a\tb\nc", "a\tb\nc");
	expect_escaped("a\x01\x1b[31m\x7f", "a\ufffd\ufffd[31m\ufffd");
	expect_escaped("\xc2\x85|", "\ufffd|");                         /* a C1 control */
	expect_escaped("\xe2\x80\xae|\xe2\x81\xa6|", "\ufffd|\ufffd|"); /* turns of direction */
	/* No UTF-8: a lone continuation, an overlong '<', a surrogate, above the last, torn at the end. */
	expect_escaped("\x80<", "\ufffd&lt;");
	expect_escaped("\xc0\xbc", "\ufffd\ufffd");
	expect_escaped("\xed\xa0\x80", "\ufffd\ufffd\ufffd");
	expect_escaped("\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd");
	expect_escaped("x\xe2\x82", "x\ufffd\ufffd");
	expect_escaped("\xe2<\x80", "\ufffd&lt;\ufffd");
}

static void expect_number(enum page_format format, double value, const char *text)
{
	char out[PAGE_NUMBER_BYTES];
	assert_string_equal(page_number(format, value, out), text);
}

static void numbers(void **state)
{
	(void)state;
	expect_number(PAGE_COUNT, 0, "0");
	expect_number(PAGE_COUNT, 999.4, "999");
	expect_number(PAGE_COUNT, 1234.5, "1,234");
	expect_number(PAGE_COUNT, 1234567, "1,234,567");
	expect_number(PAGE_COUNT, -1234567, "-1,234,567");
	expect_number(PAGE_COUNT, -123, "-123");
	expect_number(PAGE_COUNT, 12.34567, "12.35");
	expect_number(PAGE_COUNT, 7, "7");
	expect_number(PAGE_REAL, 0.97, "0.9700");
	expect_number(PAGE_REAL, 3.14159, "3.142");
	expect_number(PAGE_REAL, 31415.9, "31,416");
	expect_number(PAGE_REAL, 0.00001234, "1.234e-05");
	expect_number(PAGE_SHARE, 0.125, "12.5 %");
	expect_number(PAGE_SHARE, 0, "0 %");
	expect_number(PAGE_SHARE, 1, "100 %");
	expect_number(PAGE_SHARE, -0.31, "-31.0 %");
	expect_number(PAGE_SECONDS, 0.00125, "1.25 ms");
	expect_number(PAGE_SECONDS, 0.000375, "375 µs");
	expect_number(PAGE_BYTES, 1.5 * 1024 * 1024, "1.50 MiB");
	expect_number(PAGE_RATE, 1024, "1.00 KiB/s");
	expect_number(PAGE_FRACTION, 0.9, "0.90");
	expect_number(PAGE_COUNT, (double)NAN, "–");
	expect_number(PAGE_COUNT, HUGE_VAL, "unbounded");
}

/* --- data of charts -------------------------------------------------------------------------------- */

static json_t *rows_with(const char *text)
{
	json_t *rows = json_array();
	(void)json_array_append_new(
		rows, json_pack("{s:s, s:f, s:i}", "name", text, "rate", 1234.56789012, "n", 4));
	(void)json_array_append_new(
		rows, json_pack("{s:s, s:n, s:f}", "name", "b", "rate", "when", 1763800000123.0));
	return rows;
}

static void data_of_charts(void **state)
{
	struct chart chart = {.title = EVIL "\x1b\\u0041",
		.drawing = json_pack("{s:s}", "mark", "<!--\xe2\x80\xae\r")};
	struct buffer out = {0};
	(void)state;
	chart.table.rows = rows_with(EVIL "\x02\x7f tab\there \\ \"");
	page_data(&chart, &out);
	assert_false(out.failed);
	assert_null(strchr(out.data, '<'));
	json_t *all = json_loadb(out.data, out.size, 0, NULL);
	assert_non_null(all);
	assert_string_equal(json_string_value(json_object_get(all, "title")), EVIL "\ufffd\\u0041");
	assert_string_equal(json_string_value(json_object_get(all, "mark")), "<!--\ufffd\ufffd");
	const json_t *columns = json_object_get(all, "columns");
	assert_string_equal(json_string_value(json_array_get(json_object_get(columns, "name"), 0)),
		EVIL "\ufffd\ufffd tab\there \\ \"");
	/* A column has a value for each row: seven digits, but all of a large number. */
	assert_true(
		json_number_value(json_array_get(json_object_get(columns, "rate"), 0)) == 1234.568);
	assert_true(json_is_null(json_array_get(json_object_get(columns, "rate"), 1)));
	assert_true(json_is_null(json_array_get(json_object_get(columns, "n"), 1)));
	assert_true(json_is_null(json_array_get(json_object_get(columns, "when"), 0)));
	assert_true(json_number_value(json_array_get(json_object_get(columns, "when"), 1)) ==
		    1763800000123.0);
	json_decref(all);
	buffer_release(&out);
	chart_release(&chart);
}

/* --- whole pages ------------------------------------------------------------------------------------- */

static const struct page_column columns[] = {
	{"name", EVIL, PAGE_TEXT},
	{"rate", "samples/s", PAGE_COUNT},
	{"missing", "nothing", PAGE_REAL},
	{"yes", "is it", PAGE_TEXT},
};

/* Everything that a page can hold, with `text` in each place for one. */
static char *make_page(const char *text, bool chart_drawn)
{
	struct buffer out = {0};
	struct error err = {0};
	struct chart chart = {.id = "rates"};
	struct page_table table = {.columns = columns, .column_count = 4, .rows = rows_with(text)};
	(void)snprintf(chart.title, sizeof chart.title, "%s", text);
	buffer_text(&chart.text, text);
	buffer_text(&chart.finding, text);
	(void)snprintf(chart.caption, sizeof chart.caption, "%s", text);
	chart.table =
		(struct page_table){.columns = columns, .column_count = 4, .rows = rows_with(text)};
	chart.drawing = chart_drawn ? json_pack("{s:s}", "mark", text) : NULL;
	(void)snprintf(chart.why_not, sizeof chart.why_not, "%s", text);
	struct page *page = page_begin(text, text);
	assert_non_null(page);
	page_facts(page, text);
	page_notice(page, text, text);
	page_action(page, text, text, text);
	page_figures_begin(page);
	page_figure(page, text, text, text);
	page_figures_end(page);
	page_chart(page, &chart);
	page_heading(page, 2, "more", text);
	page_heading(page, 3, NULL, text);
	page_paragraph(page, text);
	page_terms_begin(page);
	page_term(page, text, text);
	page_terms_end(page);
	page_code(page, text);
	page_list_begin(page, true);
	page_item(page, text);
	page_list_end(page);
	page_fold_begin(page, text);
	page_table(page, &table, text);
	page_fold_end(page);
	page_more_begin(page, "folded", text, text);
	page_paragraph(page, text);
	page_fold_end(page);
	assert_int_equal(page_end(page, &out, &err), 0);
	json_decref(table.rows);
	chart_release(&chart);
	return out.data;
}

static size_t count_of(const char *page, const char *what)
{
	size_t count = 0;
	for (const char *at = page; (at = strstr(at, what)); at++)
		count++;
	return count;
}

/* A page of evil texts has the elements of one of harmless texts, no more. */
static void texts_stay_texts(void **state)
{
	static const char *const elements[] = {
		"<script", "</script", "<img", "<style", "<svg", "<!--", "<p>", "<td>"};
	char *plain = make_page("harmless", true);
	char *evil = make_page(EVIL "<!--<style><svg>\x01", true);
	(void)state;
	for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++)
		if (count_of(plain, elements[i]) != count_of(evil, elements[i]))
			fail_msg("%zu '%s' have become %zu", count_of(plain, elements[i]),
				elements[i], count_of(evil, elements[i]));
	assert_non_null(strstr(evil, "&lt;img src=x onerror=&#39;a()&#39;&gt;"));
	free(plain);
	free(evil);
}

static void pages_are_whole(void **state)
{
	char *page = make_page("harmless", true);
	char *again = make_page("harmless", true);
	char *other = make_page("harmlesS", true);
	(void)state;
	assert_int_equal(strncmp(page, "<!DOCTYPE html>", 15), 0);
	assert_non_null(strstr(page, "</html>\n"));
	assert_non_null(strstr(page, "<a href=\"#rates\">harmless</a>"));
	assert_non_null(strstr(page, "<a href=\"#more\">harmless</a>"));
	assert_non_null(strstr(page, "<td>harmless<td class=n>1,235<td class=n>–<td>–"));
	/* The same result gives the same page; a script's mark is the page's own. */
	assert_string_equal(page, again);
	const char *mark = strstr(page, "nonce-");
	const char *theirs = strstr(other, "nonce-");
	assert_non_null(mark);
	assert_non_null(theirs);
	assert_true(strncmp(mark, theirs, 38) != 0);
	assert_non_null(strstr(page, "default-src 'none'"));
	if (asset_charts_unavailable())
		assert_null(strstr(page, "class=\"plot\""));
	else
		assert_non_null(strstr(page, "UW Interactive Data Lab"));
	free(page);
	free(again);
	free(other);
}

/* A chart that cannot be drawn says why and keeps its table; without any chart there are no libraries. */
static void without_charts(void **state)
{
	char *page = make_page("not enough was measured", false);
	(void)state;
	assert_non_null(strstr(page, "<p class=\"none\">not enough was measured</p>"));
	assert_non_null(strstr(page, "<figure class=\"chart\" id=\"rates\">"));
	assert_null(strstr(page, "const vega = "));
	assert_true(strlen(page) < 40000);
	free(page);
	page_release(NULL);
	page_release(page_begin("given up", NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escaping),
		cmocka_unit_test(numbers),
		cmocka_unit_test(data_of_charts),
		cmocka_unit_test(texts_stay_texts),
		cmocka_unit_test(pages_are_whole),
		cmocka_unit_test(without_charts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
