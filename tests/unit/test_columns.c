/* Columns over rows of JSON, in each medium: paths, units, ranges, what is missing, and names that break a format. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/report/medium.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void verdict_of_row(const struct table_column *column, const json_t *row, struct buffer *out)
{
	(void)column;
	buffer_format(out, "%s / %s", column_text(row, "verdict.stage"),
		column_text(row, "verdict.resource"));
}

static const struct table_column columns[] = {
	{.head = "decode\nworkers", .path = "settings.decode.workers", .csv = "decode.workers"},
	{.head = "name", .left = true, .path = "name", .csv = "name"},
	{.head = "samples/s", .path = "rate.median", .unit = COLUMN_COUNT, .csv = "samples_per_s"},
	{.head = "95 % CI", .path = "rate.ci95", .unit = COLUMN_COUNT},
	{.path = "rate.ci95.0", .csv = "ci95_low"},
	{.head = "",
		.bar = true,
		.path = "stages.decode.busy",
		.unit = COLUMN_FIXED,
		.decimals = 4},
	{.head = "busy", .path = "stages.decode.busy", .unit = COLUMN_SHARE, .csv = "decode.busy"},
	{.head = "p99", .path = "stages.decode.p99_us", .unit = COLUMN_SECONDS, .scale = 1e-6},
	{.head = "gain", .path = "gain", .unit = COLUMN_FIXED, .decimals = 2, .after = "x"},
	{.head = "bottle-\nneck", .left = true, .text_of = verdict_of_row},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static json_t *rows_of_test(void)
{
	json_t *rows = json_loads(
		"[{\"settings\": {\"decode.workers\": 2}, \"name\": \"a,<b>|\\n\", \"gain\": 1.5,"
		"\"rate\": {\"median\": 1234.25, \"ci95\": [1200, 1300]},"
		"\"stages\": [{\"name\": \"read\"}, {\"name\": \"decode\", \"busy\": 0.95, \"p99_us\": 1500}],"
		"\"verdict\": {\"stage\": \"decode\", \"resource\": \"cpu\"}},"
		"{\"settings\": {\"decode.workers\": 4}, \"name\": null, \"gain\": null,"
		"\"rate\": {\"median\": null, \"ci95\": [null, null]}, \"stages\": [],"
		"\"verdict\": {\"stage\": \"none\", \"resource\": \"unknown\"}}]",
		0, NULL);
	assert_non_null(rows);
	return rows;
}

static void test_paths(void **state)
{
	(void)state;
	json_t *rows = rows_of_test();
	const json_t *row = json_array_get(rows, 0);
	assert_true(column_value(row, "") == row);
	assert_int_equal(json_integer_value(column_value(row, "settings.decode.workers")), 2);
	assert_string_equal(column_text(row, "verdict.stage"), "decode");
	assert_string_equal(column_text(row, "stages.1.name"), "decode");
	assert_true(isnan(column_number(row, "stages.read.busy")));
	assert_true(isnan(column_number(row, "stages.none.busy")));
	assert_true(isnan(column_number(row, "rate.ci95.2")));
	assert_null(column_value(row, "name.of"));
	assert_null(column_value(NULL, "name"));
	assert_string_equal(column_text(row, "gain"), "");
	json_decref(rows);
}

static void test_csv_of_rows(void **state)
{
	(void)state;
	struct buffer out = {0};
	json_t *rows = rows_of_test();
	columns_csv(columns, COLUMNS, rows, &out);
	assert_string_equal(out.data, "decode.workers,name,samples_per_s,ci95_low,decode.busy\n"
				      "2,\"a,<b>|?\",1234.25,1200,0.95\n"
				      "4,,,,\n");
	buffer_release(&out);
	json_decref(rows);
}

static void test_terminal_of_rows(void **state)
{
	(void)state;
	const struct style style = {.width = 100};
	struct buffer out = {0};
	struct medium medium = medium_terminal(&style, &out);
	json_t *rows = rows_of_test();
	medium_table(&medium, columns, COLUMNS, rows, "");
	assert_non_null(strstr(out.data, "1,200-1,300"));
	assert_non_null(strstr(out.data, "1.50 ms"));
	assert_non_null(strstr(out.data, "1.50x"));
	assert_non_null(strstr(out.data, "decode / cpu"));
	assert_non_null(strstr(out.data, "none / unknown"));
	buffer_release(&out);
	json_decref(rows);
	rows = json_array();
	medium_table(&medium, columns, COLUMNS, rows, "");
	assert_null(out.data);
	json_decref(rows);
}

static void write_all(struct medium *medium)
{
	struct buffer text = {0};
	json_t *rows = rows_of_test();
	json_t *texts = json_pack("[s, s]", "first *one*", "second <two>");
	medium_heading(medium, "points measured");
	medium_table(medium, columns, COLUMNS, rows, "points");
	medium_fact(medium, INK_BOLD, "nothing", &text);
	buffer_text(&text, "decode & step");
	medium_fact(medium, INK_BOLD, "verdict", &text);
	medium_list(medium, INK_DIM, "evidence", texts, 0);
	buffer_text(&text, "and so on");
	medium_note(medium, &text);
	medium_end(medium);
	json_decref(texts);
	json_decref(rows);
}

static void test_markdown(void **state)
{
	(void)state;
	struct buffer out = {0};
	struct medium medium = medium_markdown(&out);
	write_all(&medium);
	assert_string_equal(out.data,
		"\n### Points measured\n\n"
		"| decode workers | name | samples/s | 95 % CI | busy | p99 | gain | bottleneck |\n"
		"| --: | :-- | --: | --: | --: | --: | --: | :-- |\n"
		"| 2 | a,&lt;b\\>\\|  | 1,234 | 1,200-1,300 | 95.0% | 1.50 ms | 1.50x | decode / cpu |\n"
		"| 4 | - | - | - | - | - | - | none / unknown |\n"
		"\n- **verdict:** decode &amp; step\n"
		"- **evidence:** first \\*one\\*\n- **evidence:** second &lt;two\\>\n"
		"\nand so on\n");
	buffer_release(&out);
}

static void test_page(void **state)
{
	(void)state;
	struct buffer out = {0};
	struct error err;
	struct page *page = page_begin("test", NULL);
	struct medium medium = medium_page(page);
	write_all(&medium);
	assert_int_equal(page_end(page, &out, &err), 0);
	assert_non_null(strstr(out.data, "<td class=n>2<td>a,&lt;b&gt;|"));
	assert_non_null(strstr(out.data,
		"<td class=n>95.0 %<td class=n>1.50 ms<td class=n>1.50x<td>decode / cpu"));
	assert_non_null(strstr(out.data, "<th scope=col>bottleneck"));
	assert_non_null(strstr(out.data, "second &lt;two&gt;"));
	buffer_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_csv_of_rows),
		cmocka_unit_test(test_terminal_of_rows),
		cmocka_unit_test(test_markdown),
		cmocka_unit_test(test_page),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
