/* Flame graphs from profiles made by hand: names that try to break each format, sums, and pictures that stay small. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/report/flame_report.h"

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

/* Stacks of `depth` functions below one stage, `count` of them, each as large as the next. */
static struct flame_profile deep_profile(uint32_t count, uint32_t depth, const char *name)
{
	struct flame_profile p = empty();
	const uint32_t stage = add_frame(&p, FLAME_ROOT, add_name(&p, "decode"), 0);
	const uint32_t text = add_name(&p, name);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = stage;
		for (uint32_t k = 0; k < depth; k++)
			at = add_frame(&p, at, text, k + 1 == depth ? 10 : 0);
	}
	return p;
}

/* An XML parser's opinion; skipped without python3. */
static void check_xml(const struct buffer *svg)
{
	char path[] = "/tmp/mlbench-flame-XXXXXX";
	char command[200];
	assert_false(svg->failed);
	const int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, svg->data, svg->size), (ssize_t)svg->size);
	(void)close(fd);
	(void)snprintf(command, sizeof command,
		"command -v python3 >/dev/null || exit 0; "
		"python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' %s",
		path);
	const int status = system(command);
	(void)unlink(path);
	assert_int_equal(status, 0);
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
	flame_svg(&p, "<x>&\"';\xff\x02", &out);
	check_xml(&out);
	assert_null(strstr(out.data, "<script>alert"));
	buffer_release(&out);
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

static void pictures_stay_small(void **state)
{
	(void)state;
	static const char long_name[] =
		"<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<"
		"<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<";
	const char *const names[] = {"f", long_name};
	for (size_t i = 0; i < 2; i++) {
		/* The share alone would keep them all. */
		struct flame_profile p = deep_profile(60, 60, names[i]);
		struct buffer out = {0};
		flame_svg(&p, "wide", &out);
		assert_true(out.size > 10000 && out.size <= FLAME_SVG_BYTES_MAX);
		check_xml(&out);
		buffer_release(&out);
		flame_profile_release(&p);
	}
	struct flame_profile p = wide_profile(20000, "f");
	struct buffer out = {0};
	flame_svg(&p, "wide", &out);
	assert_true(out.size <= FLAME_SVG_BYTES_MAX);
	assert_non_null(strstr(out.data, " smaller\n")); /* what is not drawn is said */
	check_xml(&out);
	buffer_release(&out);
	flame_profile_release(&p);
}

/* Rectangles of one row lie side by side within those above them: read back from the picture. */
static void callees_lie_within_their_callers(void **state)
{
	(void)state;
	struct flame_profile p = wide_profile(30, "f");
	struct buffer out = {0};
	flame_svg(&p, "wide", &out);
	double widths[8] = {0};
	double ends[8] = {0};
	int rows = 0;
	const char *at = strstr(out.data, "<g id=\"frames\">");
	while ((at = strstr(at, "<rect x=\"")) != NULL) {
		double x;
		double y;
		double width;
		assert_int_equal(
			sscanf(at, "<rect x=\"%lf\" y=\"%lf\" width=\"%lf\"", &x, &y, &width), 3);
		const int row = (int)(y - 84) / 18;
		assert_true(row >= 0 && row < 8);
		widths[row] += width;
		ends[row] = x + width > ends[row] ? x + width : ends[row];
		rows = row > rows ? row : rows;
		assert_true(x >= 9.9 && x + width <= 1190.2);
		at++;
	}
	assert_int_equal(rows, 2);
	assert_true(widths[0] > 1179 && widths[0] < 1181);
	assert_true(widths[1] > 1175 && widths[1] < 1185 && ends[1] > 1189);
	/* 30 of 465 samples are in "inner". */
	assert_true(widths[2] > 1180 * 30. / 465 - 3 && widths[2] < 1180 * 30. / 465 + 3);
	buffer_release(&out);
	flame_profile_release(&p);
}

static void nothing_is_a_picture_too(void **state)
{
	(void)state;
	struct flame_profile p = empty();
	struct buffer out = {0};
	flame_svg(&p, "idle", &out);
	check_xml(&out);
	assert_non_null(strstr(out.data, "no CPU time was sampled"));
	buffer_release(&out);
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
		cmocka_unit_test(pictures_stay_small),
		cmocka_unit_test(callees_lie_within_their_callers),
		cmocka_unit_test(nothing_is_a_picture_too),
		cmocka_unit_test(functions_add_up),
	};
	return cmocka_run_group_tests_name("flame_report", tests, NULL, NULL);
}
