/* Pieces of the report: fields, bars, wrapping, tables that fit, maps of throughput; always within the
 * width.  Whole reports are compared by tests/cli. */
#include "harness/report/heatmap.h"
#include "harness/report/style.h"
#include "harness/report/summary_tables.h"
#include "harness/report/table.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct style plain = {.width = 80, .utf8 = true};
static const struct style ascii = {.width = 80};
static const struct style coloured = {.width = 80, .utf8 = true, .colour = true};

static void expect_text(struct buffer *out, const char *text)
{
	assert_false(out->failed);
	assert_string_equal(out->data ? out->data : "", text);
	buffer_release(out);
}

static void fields(void **state)
{
	struct buffer out = {0};
	(void)state;
	style_field(&plain, INK_BOLD, "abc", 5, &out);
	expect_text(&out, "abc  ");
	style_field(&plain, INK_BOLD, "abc", -5, &out);
	expect_text(&out, "  abc");
	style_field(&plain, INK_PLAIN, "abcdef", 4, &out);
	expect_text(&out, "abc…");
	style_field(&ascii, INK_PLAIN, "abcdef", -4, &out);
	expect_text(&out, "abc~");
	style_field(&plain, INK_PLAIN, "±µ…x", 4, &out);
	expect_text(&out, "±µ…x");
	style_field(&plain, INK_PLAIN, "±µ…x", 3, &out);
	expect_text(&out, "±µ…");
	style_field(&plain, INK_PLAIN, "abc", 0, &out);
	expect_text(&out, "");
	struct buffer marked = {0};
	style_field(&coloured, INK_BAD, "no", 3, &marked);
	style_add_printable(marked.data, &out);
	expect_text(&out, "\033[31mno\033[0m ");
	buffer_release(&marked);
	assert_int_equal(style_columns("±µ…x"), 4);
}

static void bars(void **state)
{
	struct buffer out = {0};
	(void)state;
	style_bar(&plain, INK_PLAIN, 0.5, 4, &out);
	expect_text(&out, "██  ");
	style_bar(&plain, INK_PLAIN, 0.53, 4, &out);
	expect_text(&out, "██▏ ");
	style_bar(&ascii, INK_PLAIN, 0.53, 4, &out);
	expect_text(&out, "##  ");
	style_bar(&plain, INK_PLAIN, 7, 3, &out);
	expect_text(&out, "███");
	style_bar(&plain, INK_PLAIN, (double)NAN, 3, &out);
	expect_text(&out, "   ");
	style_bar(&plain, INK_PLAIN, -1, 2, &out);
	expect_text(&out, "  ");
}

static void wrapping(void **state)
{
	const struct style narrow = {.width = 12};
	struct buffer out = {0};
	(void)state;
	style_wrap(&narrow, "one two three four", 2, 0, &out);
	expect_text(&out, "one two\n  three four\n");
	style_wrap(&narrow, "one two", 2, 8, &out);
	expect_text(&out, "one\n  two\n");
	style_wrap(&narrow, "a_word_that_is_longer_than_the_line b", 0, 0, &out);
	expect_text(&out, "a_word_that_is_longer_than_the_line\nb\n");
	style_wrap(&narrow, "", 2, 0, &out);
	expect_text(&out, "\n");
}

static const struct table_column columns[] = {
	{.head = "up\nname", .left = true},
	{.head = "n"},
	{.head = "bar", .bar = true, .keep = 2},
	{.head = "extra", .keep = 1},
	{.head = "text", .left = true, .wraps = true},
};

static void fill(struct table *table)
{
	table_open(table, columns, sizeof columns / sizeof columns[0]);
	table_add(table, INK_PLAIN, "a");
	table_add(table, INK_PLAIN, "%d", 1234);
	table_add(table, INK_PLAIN, "%.2f", 1.0);
	table_add(table, INK_PLAIN, "more");
	table_add(table, INK_PLAIN, "this text is broken over lines when it must be");
	table_add(table, INK_PLAIN, "bcd");
	table_add(table, INK_PLAIN, "5");
	table_add(table, INK_PLAIN, "%.2f", 0.25);
	table_add(table, INK_PLAIN, "-");
	table_add(table, INK_PLAIN, "short");
}

static void tables_fit(void **state)
{
	struct table table;
	struct buffer out = {0};
	const struct style wide = {.width = 100};
	const struct style middle = {.width = 50};
	(void)state;
	fill(&table);
	table_render(&table, &wide, 2, true, &out);
	expect_text(&out,
		"  up\n"
		"  name     n  bar               extra  text\n"
		"  a     1234  ################   more  this text is broken over lines when it must be\n"
		"  bcd      5  ####                  -  short\n");
	table_render(&table, &middle, 2, true, &out);
	expect_text(&out, "  up\n"
			  "  name     n  extra  text\n"
			  "  a     1234   more  this text is broken over\n"
			  "                     lines when it must be\n"
			  "  bcd      5      -  short\n");
	table_render(&table, &middle, 0, false, &out);
	assert_non_null(out.data);
	assert_null(strstr(out.data, "name"));
	buffer_release(&out);
	table_close(&table);
}

/* --- maps ------------------------------------------------------------------------------------- */

struct made {
	struct record record;
	struct report report;
	struct point_summary points[64];
	struct point_summary *pointers[64];
};

static void make(struct made *made, const char *first, const char *second, const char *third)
{
	struct error err;
	const char *axes[] = {first, second, third};
	memset(made, 0, sizeof *made);
	config_init(&made->record.config);
	for (size_t i = 0; i < 3; i++)
		if (axes[i])
			assert_int_equal(config_set(&made->record.config, axes[i], &err), 0);
	assert_int_equal(config_grid_open(&made->record.config, &made->record.grid, &err), 0);
	assert_true(made->record.grid.points <= 64);
	made->report.record = &made->record;
	made->report.points = made->pointers;
	for (size_t i = 0; i < made->record.grid.points; i++) {
		made->points[i].median = 100.0 * (double)(i + 1);
		made->pointers[i] = &made->points[i];
	}
	made->report.best = made->record.grid.points - 1;
}

static void drop(struct made *made)
{
	config_grid_close(&made->record.grid);
	config_release(&made->record.config);
}

static void map_of_two_keys(void **state)
{
	struct made made;
	struct buffer out = {0};
	(void)state;
	make(&made, "sweep.decode.workers=1,2", "sweep.batch.size=8,16,32", NULL);
	made.points[1].status = POINT_FAILED;
	made.pointers[2] = NULL;
	assert_true(heatmap_render(&made.report, &ascii, &out));
	expect_text(&out,
		"samples/s over decode.workers (down) and batch.size (across), 100 to 600\n"
		"           8        16        32\n"
		"  1 .    100    failed         .\n"
		"  2 +    400  %    500  @    600<\n");
	drop(&made);
}

static void no_map_of_one_key(void **state)
{
	struct made made;
	struct buffer out = {0};
	(void)state;
	make(&made, "sweep.decode.workers=1,2,3", NULL, NULL);
	assert_false(heatmap_render(&made.report, &plain, &out));
	expect_text(&out, "");
	drop(&made);
	/* Zipped keys are one dimension. */
	make(&made, "sweep.decode.workers=1,2,3", "sweep.read.threads=1,2,3",
		"sweep.zip=decode.workers, read.threads");
	assert_int_equal(made.record.grid.points, 3);
	assert_false(heatmap_render(&made.report, &plain, &out));
	buffer_release(&out);
	drop(&made);
}

static void maps_stay_within_the_width(void **state)
{
	struct made made;
	(void)state;
	make(&made, "sweep.decode.workers=1,2,4,8", "sweep.batch.size=8,16",
		"sweep.prefetch.depth=1,2,3,4,5,6,7,8");
	for (int width = STYLE_WIDTH_LEAST; width < STYLE_WIDTH_MOST; width += 7) {
		const struct style style = {.width = width, .utf8 = true};
		struct buffer out = {0};
		assert_true(heatmap_render(&made.report, &style, &out));
		for (char *line = strtok(out.data, "\n"); line; line = strtok(NULL, "\n"))
			if (style_columns(line) > width && !strstr(line, "samples/s over"))
				fail_msg("%d columns of %d: %s", style_columns(line), width, line);
		buffer_release(&out);
	}
	drop(&made);
}

/* The least setting within 5 % of the best one. */
static void smallest_within(void **state)
{
	struct made made;
	(void)state;
	make(&made, "sweep.decode.workers=4,2,1", "sweep.batch.size=8,16", NULL);
	static const double medians[] = {1000, 1010, 970, 990, 500, 600};
	for (size_t i = 0; i < 6; i++)
		made.points[i].median = medians[i];
	made.report.best = 1;
	assert_int_equal(
		report_smallest_within(&made.report, 0.05), 2); /* 2 workers, batches of 8 */
	assert_int_equal(report_smallest_within(&made.report, 0.6), 4);
	made.points[2].status = POINT_FAILED;
	assert_int_equal(report_smallest_within(&made.report, 0.05),
		0); /* as little as point 3, and before it */
	made.report.best = 6;
	assert_int_equal(report_smallest_within(&made.report, 0.05), 6);
	drop(&made);
	/* Of choices none is less than another: as much with fewer workers, and of the same format. */
	make(&made, "sweep.dataset.format=jpeg,png", "sweep.decode.workers=1,2", NULL);
	for (size_t i = 0; i < 4; i++)
		made.points[i].median = i == 3 ? 1001 : 1000;
	made.report.best = 3;
	assert_int_equal(report_smallest_within(&made.report, 0.05), 2);
	drop(&made);
}

static void measured(struct point_summary *p, double median, double share)
{
	p->median = median;
	p->ci95 = (struct interval){median * (1 - share), median * (1 + share)};
	p->repeat_count = 3;
}

/* What is more by no more than noise is no reason to take more. */
static void the_best_is_the_smallest_that_is_tied(void **state)
{
	struct made made;
	(void)state;
	make(&made, "sweep.decode.workers=1,2,4", NULL, NULL);
	measured(&made.points[0], 640, 0.05);
	measured(&made.points[1], 1253, 0.11);
	measured(&made.points[2], 1277, 0.08);
	assert_int_equal(report_fastest_like(&made.report, 0), 2);
	assert_int_equal(report_best_like(&made.report, 0), 1);
	/* A difference beyond the noise is one. */
	measured(&made.points[1], 1253, 0.002);
	measured(&made.points[2], 1300, 0.002);
	assert_int_equal(report_best_like(&made.report, 0), 2);
	/* So is one of more than a tenth, however wide the intervals are. */
	measured(&made.points[1], 1100, 0.5);
	measured(&made.points[2], 1277, 0.5);
	assert_int_equal(report_best_like(&made.report, 0), 2);
	/* What never settled is the best only where nothing did. */
	made.points[2].status = POINT_UNSTEADY;
	assert_int_equal(report_best_like(&made.report, 0), 1);
	made.points[0].status = made.points[1].status = POINT_FAILED;
	assert_int_equal(report_best_like(&made.report, 0), 2);
	made.points[2].status = POINT_FAILED;
	assert_int_equal(report_best_like(&made.report, 0), 3);
	drop(&made);
}

/* Half of a text, or a loader without its cost, is no better setting. */
static void workloads_are_not_compared(void **state)
{
	struct made made;
	struct buffer out = {0};
	(void)state;
	make(&made, "sweep.tokens.length=1024,256", "sweep.decode.workers=1,2",
		"sweep.overhead.sample=1500us,0");
	static const double medians[] = {100, 400, 190, 700, 500, 1600, 900, 3000};
	for (size_t i = 0; i < 8; i++)
		measured(&made.points[i], medians[i], 0.01);
	assert_true(report_same_workload(&made.report, 0, 2));
	assert_false(report_same_workload(&made.report, 0, 1));
	assert_false(report_same_workload(&made.report, 0, 4));
	assert_int_equal(report_best_like(&made.report, 0), 2);
	assert_int_equal(report_best_like(&made.report, 1), 3);
	assert_int_equal(report_best_like(&made.report, 4), 6);
	made.report.best = report_best_like(&made.report, 0);
	assert_int_equal(report_smallest_within(&made.report, 0.6), 0);
	/* A sequence of 1,024 tokens is not as much as one of 256. */
	assert_int_equal(
		config_set(&made.record.config, "sample.kind=tokens", &(struct error){0}), 0);
	report_add_rate(&made.report, 2, &out);
	expect_text(&out, "190 samples/s (194,560 tokens/s)");
	report_add_rate(&made.report, 6, &out);
	expect_text(&out, "900 samples/s (230,400 tokens/s)");
	/* With room for one row, it is that of the setting that the verdict is about. */
	double repeats[] = {900, 900, 900};
	made.report.best = 6;
	made.points[6].repeats = repeats;
	struct medium medium = medium_terminal(&plain, &out);
	summary_best_points(&medium, &made.report, 1, false);
	assert_non_null(out.data);
	assert_non_null(strstr(out.data, " 900 "));
	buffer_release(&out);
	drop(&made);
}

/* Where nothing but reading is measured, its units. */
static void reading_alone_has_its_units(void **state)
{
	struct made made;
	struct buffer out = {0};
	(void)state;
	make(&made, "sweep.codec.name=null,auto", NULL, NULL);
	for (size_t i = 0; i < 2; i++) {
		measured(&made.points[i], 12000, 0.01);
		made.points[i].facts.step_null = true;
		made.points[i].bytes_read_per_s = 12000.0 * (1 << 20);
		made.points[i].reads_per_sample = 0.5;
	}
	report_add_rate(&made.report, 0, &out);
	expect_text(&out, "12,000 samples/s (11.7 GiB/s, 6,000 IOPS)");
	report_add_rate(&made.report, 1, &out);
	expect_text(&out, "12,000 samples/s");
	buffer_release(&out);
	drop(&made);
}

/* Lines stay, and our colours become escape sequences; what a name has of either a terminal never sees. */
static void printable(void **state)
{
	struct buffer out = {0};
	(void)state;
	struct buffer marked = {0};
	buffer_format(&marked, "a\n%sb%s\033[31m\033[8m\0330000000000000000;31m ±\n",
		style_shade(&coloured, 0), style_end(&coloured));
	style_add_printable(marked.data, &out);
	expect_text(&out, "a\n\033[48;5;17;38;5;255mb\033[0m?[31m?[8m?0000000000000000;31m ±\n");
	buffer_release(&marked);
	style_add_printable("\033[2J\033]0;x\007\r\t\033[1", &out);
	expect_text(&out, "?[2J?]0;x????[1");
	style_add_printable("\xc2\x9b"
			    "2J\x7f\xff\033",
		&out);
	expect_text(&out, "?2J???");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields),
		cmocka_unit_test(printable),
		cmocka_unit_test(bars),
		cmocka_unit_test(wrapping),
		cmocka_unit_test(tables_fit),
		cmocka_unit_test(map_of_two_keys),
		cmocka_unit_test(no_map_of_one_key),
		cmocka_unit_test(maps_stay_within_the_width),
		cmocka_unit_test(smallest_within),
		cmocka_unit_test(the_best_is_the_smallest_that_is_tied),
		cmocka_unit_test(workloads_are_not_compared),
		cmocka_unit_test(reading_alone_has_its_units),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
