/* Flame graphs from profiles made by hand: names that try to break each format, sums, and charts that stay small. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/report/flame_report.h"
#include "harness/report/html/chart.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const hostile[] = {
	"step",
	"a;b 12",
	"</title><script>alert(1)</script>",
	"\"quoted\" & 'so' <on>",
	"]]>",
	"line\nbreak\r\ttab\x1b[31m\x07\x7f",
	"no utf-8: \xff\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80",
	"no character: \xef\xbf\xbe\xef\xbf\xbf \xe2\x80\xae",
	"",
	" ",
};
enum { HOSTILE = sizeof hostile / sizeof *hostile };

static uint32_t add_name(struct flame_profile *p, const char *name)
{
	p->names = realloc(p->names, (p->name_count + 1) * sizeof *p->names);
	p->names[p->name_count] = strdup(name);
	return (uint32_t)p->name_count++;
}

static uint32_t add_frame(struct flame_profile *p, uint32_t parent, uint32_t name, uint64_t self)
{
	p->frames = realloc(p->frames, (p->frame_count + 1) * sizeof *p->frames);
	p->frames[p->frame_count] =
		(struct flame_frame){.parent = parent, .name = name, .self = self};
	p->samples += self;
	for (uint32_t at = (uint32_t)p->frame_count; at != FLAME_ROOT; at = p->frames[at].parent)
		p->frames[at].total += self;
	return (uint32_t)p->frame_count++;
}

static struct flame_profile empty(void)
{
	return (struct flame_profile){.period_ns = 4041237, .windows = 2, .cpu_s = 1, .seconds = 1};
}

static struct flame_profile hostile_profile(void)
{
	struct flame_profile p = empty();
	uint32_t parent = FLAME_ROOT;
	for (size_t i = 0; i < HOSTILE; i++)
		parent = add_frame(&p, parent, add_name(&p, hostile[i]), 10 + i);
	return p;
}

/* A wide tree: `count` functions below one stage, the k-th with k + 1 samples, each calling another. */
static struct flame_profile wide_profile(uint32_t count, const char *name)
{
	struct flame_profile p = empty();
	const uint32_t stage = add_frame(&p, FLAME_ROOT, add_name(&p, "decode"), 0);
	for (uint32_t i = 0; i < count; i++) {
		char text[300];
		(void)snprintf(text, sizeof text, "%s%u", name, i);
		const uint32_t frame = add_frame(&p, stage, add_name(&p, text), i);
		(void)add_frame(&p, frame, add_name(&p, "inner"), 1);
	}
	return p;
}

/* Stacks of `depth` functions below one stage, `count` of them with names of their own, each as large as the next. */
static struct flame_profile deep_profile(uint32_t count, uint32_t depth, const char *name)
{
	struct flame_profile p = empty();
	const uint32_t stage = add_frame(&p, FLAME_ROOT, add_name(&p, "decode"), 0);
	for (uint32_t i = 0; i < count; i++) {
		char text[300];
		(void)snprintf(text, sizeof text, "%s%u", name, i);
		const uint32_t own = add_name(&p, text);
		uint32_t at = stage;
		for (uint32_t k = 0; k < depth; k++)
			at = add_frame(&p, at, own, k + 1 == depth ? 10 : 0);
	}
	return p;
}

/* The chart of what is left of the profile in a folder. */
static void chart_of(const struct flame_profile *p, struct chart *chart)
{
	char folder[] = "/tmp/mlbench-flame-XXXXXX";
	char path[64];
	struct error err;
	assert_non_null(mkdtemp(folder));
	struct record record = {.folder = folder};
	const struct report report = {.record = &record};
	const struct chart_input input = {.report = &report};
	*chart = (struct chart){0};
	assert_int_equal(flame_write_files(p, "name", folder, &err), 0);
	assert_int_equal(chart_flame(&input, chart), 0);
	for (size_t i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof path, "%s/flame.%s", folder, i ? "json" : "folded");
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(rmdir(folder), 0);
}

static double of_row(const json_t *row, const char *field)
{
	return json_number_value(json_object_get(row, field));
}

static void folded_lines_sum_up(void **state)
{
	(void)state;
	struct flame_profile p = hostile_profile();
	struct buffer out = {0};
	flame_folded(&p, &out);
	assert_false(out.failed);
	uint64_t sum = 0;
	size_t lines = 0;
	for (char *line = out.data; *line; lines++) {
		char *const end = strchr(line, '\n');
		assert_non_null(end);
		*end = '\0';
		char *const blank = strrchr(line, ' ');
		assert_non_null(blank);
		sum += strtoull(blank + 1, NULL, 10);
		size_t frames = 1;
		for (const char *c = line; *c; c++) {
			frames += *c == ';';
			assert_true((unsigned char)*c >= ' ' && *c != 0x7F);
		}
		assert_int_equal(frames, lines + 1); /* one deeper each */
		line = end + 1;
	}
	assert_int_equal(lines, HOSTILE);
	assert_int_equal(sum, p.samples);
	buffer_release(&out);
	flame_profile_release(&p);
}

static void hostile_names_stay_text(void **state)
{
	(void)state;
	struct flame_profile p = hostile_profile();
	struct buffer out = {0};
	struct chart chart;
	chart_of(&p, &chart);
	assert_int_equal(json_array_size(chart.table.rows), HOSTILE);
	struct page *page = page_begin("flame", NULL);
	page_chart(page, &chart);
	assert_int_equal(page_end(page, &out, NULL), 0);
	assert_null(strstr(out.data, "<script>alert"));
	buffer_release(&out);
	chart_release(&chart);
	json_t *json = flame_json(&p, "<x>\xff\x02");
	assert_non_null(json);
	assert_int_equal(json_array_size(json_object_get(json, "functions")), HOSTILE);
	char *text = json_dumps(json, 0);
	assert_non_null(text);
	free(text);
	json_decref(json);
	const struct style style = {.width = 100, .utf8 = true};
	flame_table(&p, &style, &out);
	for (const char *c = out.data; *c; c++)
		assert_true(*c == '\n' || (unsigned char)*c >= ' ');
	buffer_release(&out);
	flame_profile_release(&p);
}

static void charts_stay_small(void **state)
{
	(void)state;
	static const char long_name[] =
		"<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<"
		"<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<";
	const char *const names[] = {"f", long_name};
	struct chart chart;
	for (size_t i = 0; i < 2; i++) {
		/* One stack, deeper than is drawn. */
		struct flame_profile p = deep_profile(1, 100, names[i]);
		chart_of(&p, &chart);
		assert_int_equal(json_array_size(chart.table.rows), 60);
		assert_non_null(strstr(chart.text.data, "cut below 60 calls"));
		const json_t *last = json_array_get(chart.table.rows, 59);
		assert_true(of_row(last, "depth") == 59 && of_row(last, "self") == 1);
		chart_release(&chart);
		flame_profile_release(&p);
	}
	/* The share alone would keep them all. */
	struct flame_profile p = deep_profile(50, 50, "f");
	chart_of(&p, &chart);
	assert_true(json_array_size(chart.table.rows) >= 800);
	assert_true(json_array_size(chart.table.rows) <= 1600);
	assert_non_null(strstr(chart.text.data, "all after the 800 largest"));
	chart_release(&chart);
	flame_profile_release(&p);
	p = wide_profile(20000, "f");
	chart_of(&p, &chart);
	const json_t *row;
	size_t i;
	bool merged = false;
	json_array_foreach(chart.table.rows, i, row) merged |=
		strstr(json_string_value(json_object_get(row, "function")), " smaller") != NULL &&
		of_row(row, "share") > 0.99;
	assert_true(merged && i <= 1600); /* what is not drawn is said */
	chart_release(&chart);
	flame_profile_release(&p);
}

/* Bars of one row lie side by side within those above them. */
static void callees_lie_within_their_callers(void **state)
{
	(void)state;
	struct flame_profile p = wide_profile(30, "f");
	struct chart chart;
	double widths[3] = {0};
	double ends[3] = {0};
	const json_t *row;
	size_t i;
	chart_of(&p, &chart);
	json_array_foreach(chart.table.rows, i, row)
	{
		const double width = of_row(row, "right") - of_row(row, "left");
		const int depth = (int)of_row(row, "depth");
		assert_true(depth >= 0 && depth < 3);
		assert_true(of_row(row, "left") >= 0 && of_row(row, "right") <= 1);
		assert_true(fabs(width - of_row(row, "share")) < 2e-5);
		assert_true(fabs(of_row(row, "samples") / (double)p.samples - width) < 2e-5);
		size_t k;
		const json_t *other;
		bool within = depth == 0;
		json_array_foreach(chart.table.rows, k, other)
		{
			const double from = fmax(of_row(row, "left"), of_row(other, "left"));
			const double to = fmin(of_row(row, "right"), of_row(other, "right"));
			const int its = (int)of_row(other, "depth");
			assert_true(k == i || its != depth || to - from < 2e-5);
			within |= its + 1 == depth && to - from > width - 2e-5;
		}
		assert_true(within);
		widths[depth] += width;
		ends[depth] = fmax(ends[depth], of_row(row, "right"));
	}
	assert_true(widths[0] == 1);
	assert_true(widths[1] > 0.999 && ends[1] > 0.999);
	/* 30 of 465 samples are in "inner". */
	assert_true(fabs(widths[2] - 30. / 465) < 0.001);
	chart_release(&chart);
	flame_profile_release(&p);
}

static void nothing_is_no_picture(void **state)
{
	(void)state;
	struct flame_profile p = empty();
	struct buffer out = {0};
	struct chart chart;
	chart_of(&p, &chart);
	assert_null(chart.drawing);
	assert_non_null(strstr(chart.why_not, "No CPU time was sampled"));
	chart_release(&chart);
	const struct style style = {.width = 80};
	flame_table(&p, &style, &out);
	assert_non_null(strstr(out.data, "0 samples"));
	buffer_release(&out);
	flame_folded(&p, &out);
	assert_int_equal(out.size, 0);
	json_decref(flame_json(&p, "idle"));
	flame_profile_release(&p);
	flame_profile_release(&p);
}

/* The same function called from two places is one line of the table. */
static void functions_add_up(void **state)
{
	(void)state;
	struct flame_profile p = empty();
	const uint32_t stage = add_frame(&p, FLAME_ROOT, add_name(&p, "decode"), 0);
	const uint32_t copy = add_name(&p, "memcpy");
	const uint32_t a = add_frame(&p, stage, add_name(&p, "a"), 5);
	const uint32_t b = add_frame(&p, stage, add_name(&p, "b"), 7);
	(void)add_frame(&p, a, copy, 20);
	(void)add_frame(&p, b, copy, 30);
	struct flame_top tops[8];
	assert_int_equal(flame_top(&p, tops, 8), 3);
	assert_int_equal(tops[0].name, copy);
	assert_int_equal(tops[0].self, 50);
	assert_int_equal(tops[1].self, 7);
	assert_int_equal(flame_top(&p, tops, 1), 1);
	flame_profile_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folded_lines_sum_up),
		cmocka_unit_test(hostile_names_stay_text),
		cmocka_unit_test(charts_stay_small),
		cmocka_unit_test(callees_lie_within_their_callers),
		cmocka_unit_test(nothing_is_no_picture),
		cmocka_unit_test(functions_add_up),
	};
	return cmocka_run_group_tests_name("flame_report", tests, NULL, NULL);
}
