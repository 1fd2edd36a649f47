/* The view on canvases of all sizes, from made-up pictures: what it shows, that it stays inside, and that nothing in it would be
 * obeyed by a terminal; and what it keeps of the last seconds. */
#include "harness/base/clock.h"
#include "harness/live/draw.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include <cmocka.h>

static struct live_view *view;
static struct recent *history;
static struct live_verdict verdict;
static struct stall stall;
static struct canvas canvas;
static struct scene scene;

enum { STAGES = 3 };

/* At `seconds` of a repetition in which decode works 90 %, and the step 40 %. */
static void at(double seconds)
{
	static const char *const names[STAGES] = {"read", "decode", "step"};
	static const double works[STAGES] = {0.1, 0.9, 0.4};
	view->updated_ns = view->begun_ns + (uint64_t)(seconds * 1e9);
	view->elapsed_s = seconds;
	view->samples = (uint64_t)(1000 * seconds);
	view->batches = view->samples / 50;
	view->stage_count = STAGES;
	for (size_t i = 0; i < STAGES; i++) {
		struct live_stage *stage = &view->stages[i];
		(void)snprintf(stage->name, sizeof stage->name, "%s", names[i]);
		stage->workers = i == 1 ? 2 : 1;
		stage->per_batch = stage->emulated = i == 2;
		stage->items = i == 2 ? view->batches : view->samples;
		stage->seconds[THREAD_WORKING] = works[i] * seconds * stage->workers;
		stage->seconds[i == 0 ? THREAD_BLOCKED : THREAD_STARVED] =
			(1 - works[i]) * seconds * stage->workers;
	}
}

static int make(void **state)
{
	(void)state;
	view = calloc(1, sizeof *view);
	history = calloc(1, sizeof *history);
	if (!view || !history || !setlocale(LC_CTYPE, "C.UTF-8"))
		return -1;
	*view = (struct live_view){.phase = LIVE_MEASURING,
		.timed = true,
		.step_emulated = true,
		.period_s = 0.2,
		.begun_ns = 100 * NS_PER_S,
		.planned_s = 20,
		.rest_s = 75,
		.done = 2,
		.total = 12,
		.throughput_window = 1000,
		.throughput = 990,
		.step_utilisation_window = 0.4,
		.bytes_read_per_s = 1e8,
		.resident_bytes = 1 << 26,
		.device_clock_mhz = NAN,
		.device_power_w = NAN,
		.device_temperature_c = NAN,
		.queue_count = 2,
		.result_count = 3,
		.queues = {{"samples", 3, 16}, {"batches", 0, 2}},
		.results = {{"decode.workers=1", 812, true}, {"decode.workers=2", NAN, false},
			{"decode.workers=3", 500, false}}};
	(void)snprintf(view->command, sizeof view->command, "sweep");
	(void)snprintf(view->name, sizeof view->name, "imagenet_like");
	(void)snprintf(view->label, sizeof view->label, "decode.workers=4 batch.size=50");
	for (int i = 0; i <= 40; i++) {
		at(i * 0.25);
		recent_add(history, view);
	}
	verdict = (struct live_verdict){.told = true};
	(void)snprintf(verdict.words, sizeof verdict.words, "forming: decode / cpu, so far");
	stall = (struct stall){.kind = STALL_NONE};
	scene = (struct scene){.view = view,
		.history = history,
		.verdict = &verdict,
		.stall = &stall,
		.log = "first message\nmlbench: warning: second\n",
		.own = true};
	canvas.utf8 = true;
	return 0;
}

static int drop(void **state)
{
	(void)state;
	free(view);
	free(history);
	canvas_release(&canvas);
	return 0;
}

static void draw(int rows, int columns)
{
	assert_int_equal(canvas_clear(&canvas, rows, columns), 0);
	draw_scene(&canvas, &scene);
	for (size_t i = 0; i < (size_t)canvas.rows * (size_t)canvas.columns; i++) {
		const wchar_t c = canvas.cells[i].character;
		if (c != 0 && !iswprint((wint_t)c))
			fail_msg("U+%04X at %zu of %dx%d", (unsigned)c, i, rows, columns);
		if (!canvas.utf8 && c > 126)
			fail_msg("U+%04X without UTF-8", (unsigned)c);
	}
}

/* A row as text; NULL: none begins so. */
static const char *row_with(const char *begin)
{
	static char text[4 * CANVAS_COLUMNS_MAX + 1];
	for (int r = 0; r < canvas.rows; r++) {
		wchar_t wide[CANVAS_COLUMNS_MAX + 1];
		int used = 0;
		for (int c = 0; c < canvas.columns; c++) {
			const wchar_t one = canvas.cells[r * canvas.columns + c].character;
			if (one)
				wide[used++] = one;
		}
		wide[used] = L'\0';
		if (wcstombs(text, wide, sizeof text) != (size_t)-1 &&
			strncmp(text, begin, strlen(begin)) == 0)
			return text;
	}
	return NULL;
}

static void expect_row(const char *begin, const char *part)
{
	const char *row = row_with(begin);
	if (!row || !strstr(row, part))
		fail_msg("the row '%s' does not have '%s': %s", begin, part,
			row ? row : "there is none");
}

static size_t count_of(const char *row, const char *glyph)
{
	size_t count = 0;
	for (const char *at_ = row ? strstr(row, glyph) : NULL; at_; at_ = strstr(at_ + 1, glyph))
		count++;
	return count;
}

static void test_all_of_it(void **state)
{
	(void)state;
	draw(40, 120);
	expect_row("mlbench sweep  imagenet_like", "ETA 75 s");
	expect_row("3/12  decode.workers=4", "10 s of 20 s");
	expect_row("verdict", "forming: decode / cpu, so far");
	expect_row("decode x2", " 90 %");
	expect_row("decode x2", "1,000 /s");
	expect_row("step x1 e", " 20 batch/s");
	expect_row("samples  ", "3/16");
	expect_row("samples/s", "1,000");
	expect_row("step (emul.)", "40 %");
	expect_row("read        ", "95.4 MiB/s");
	expect_row("  decode.workers=1", "812");
	expect_row("  decode.workers=2", "failed");
	expect_row("~ decode.workers=3", "500");
}

/* Parts of a bar have its length: 90 of 100 columns work, the rest starves. */
/* With ranks, what all of them do comes first; a launcher that has the keyboard leaves Ctrl-C. */
static void test_ranks(void **state)
{
	(void)state;
	draw(24, 80);
	assert_null(row_with("ranks"));
	expect_row("q stop", "p pause");
	view->ranks = 4;
	view->pid = 1234567;
	scene.keyless = true;
	draw(24, 80);
	expect_row("ranks", "4: 4,000 samples/s together; the rest is of rank 0");
	expect_row("samples/s", "1,000");
	expect_row("Ctrl-C stop the run", "mlbench status --watch 1234567");
	view->phase = LIVE_BETWEEN;
	view->period_s = NAN;
	draw(24, 80);
	expect_row("ranks", "4: - samples/s");
}

static void test_bars(void **state)
{
	(void)state;
	draw(40, 135);
	const char *row = row_with("decode x2");
	assert_int_equal(count_of(row, "\u2588"), 90);
	assert_int_equal(count_of(row, "\u00b7"), 10);
	row = row_with("read x1");
	assert_int_equal(count_of(row, "\u2588"), 10);
	assert_int_equal(count_of(row, "\u2592"), 90);
	row = row_with("samples  ");
	assert_int_equal(count_of(row, "\u25a0"), 19);
	canvas.utf8 = false;
	draw(40, 135);
	row = row_with("read x1");
	assert_int_equal(count_of(row, "#"), 10);
	assert_int_equal(count_of(row, "x"), 90 + 1);
	canvas.utf8 = true;
}

static void test_sizes(void **state)
{
	(void)state;
	static const int sizes[] = {0, 1, 2, 3, 5, 10, 24, 40, 41, 80, 200, 299, 500, 5000};
	const size_t count = sizeof sizes / sizeof sizes[0];
	for (size_t r = 0; r < count; r++)
		for (size_t c = 0; c < count; c++)
			draw(sizes[r], sizes[c]);
	draw(10, 40);
	assert_non_null(row_with("verdict"));
	assert_non_null(row_with("step x1 e"));
	assert_non_null(row_with("q stop the run"));
}

static void test_stands_still(void **state)
{
	(void)state;
	stall.kind = STALL_WAITING;
	(void)snprintf(stall.words, sizeof stall.words,
		"no progress for 12 s: step starved 12 s <- decode starved 12 s <- read: 8 files in flight");
	draw(24, 80);
	expect_row("stands still", "no progress for 12 s");
	assert_null(row_with("verdict"));
	stall.kind = STALL_NONE;
	scene.help = true;
	draw(24, 80);
	assert_non_null(row_with("starved    waiting"));
	scene.help = false;
	scene.view = NULL;
	draw(24, 80);
	assert_non_null(row_with("mlbench: nothing was shown yet"));
	scene.view = view;
}

static void test_unknown(void **state)
{
	(void)state;
	view->timed = false;
	draw(40, 100);
	expect_row("decode x2", "unknown: measure.profiler is off");
	assert_null(row_with("samples   "));
	view->timed = true;
	view->period_s = NAN;
	draw(40, 100);
	expect_row("samples/s", " - ");
	view->period_s = 0.2;
}

static void test_hostile(void **state)
{
	(void)state;
	static const char wild[] = "x\033[2J\a\xff\xc2\x9b\u200b\u4e2d\u0301\u6587\ny";
	(void)snprintf(view->name, sizeof view->name, "%s", wild);
	(void)snprintf(view->label, sizeof view->label, "%s", wild);
	(void)snprintf(view->results[1].label, sizeof view->results[1].label, "%s", wild);
	scene.log = "\033]0;title\a\n\xfe\xff\n";
	for (int columns = 1; columns < 60; columns++)
		draw(40, columns);
	/* Wide characters are not torn at the edge. */
	draw(40, 100);
	expect_row("mlbench sweep  x?[2J??", "\u4e2d");
}

/* --- history ------------------------------------------------------------------------------------ */

static void test_history(void **state)
{
	(void)state;
	double shares[THREAD_STATES];
	double rate;
	assert_int_equal(history->value_count, 41);
	assert_true(recent_states(history, view, 1, shares, &rate));
	assert_float_equal(shares[THREAD_WORKING], 0.9, 1e-6);
	assert_float_equal(rate, 1000, 1);
	const struct live_sums *old = recent_before(history, view, 2, 0);
	assert_int_equal(old->t_ns, view->updated_ns - 2 * NS_PER_S);
	/* Pictures that come too fast are one. */
	at(10.01);
	recent_add(history, view);
	assert_int_equal(history->value_count, 41);
	/* A long run stays within bounds, and forgets the oldest. */
	for (int i = 41; i < 2000; i++) {
		at(i * 0.25);
		recent_add(history, view);
	}
	assert_int_equal(history->value_count, RECENT_VALUES);
	assert_int_equal(history->sum_count, RECENT_SUMS);
	assert_int_equal(recent_before(history, view, 2, 0)->t_ns, view->updated_ns - 2 * NS_PER_S);
	/* A pause is one gap; the next repetition has nothing of the one before. */
	view->period_s = NAN;
	for (int i = 0; i < 5; i++) {
		view->updated_ns += NS_PER_S;
		recent_add(history, view);
	}
	assert_true(isnan(history->values[RECENT_MEMORY][history->value_count - 1]));
	const float before = history->values[RECENT_MEMORY][history->value_count - 2];
	assert_true(before > 0);
	view->period_s = 0.2;
	view->begun_ns = view->updated_ns;
	at(0.25);
	assert_null(recent_before(history, view, 2, 0));
	assert_false(recent_states(history, view, 1, shares, &rate));
	recent_add(history, view);
	at(0.5);
	recent_add(history, view);
	assert_true(recent_states(history, view, 1, shares, &rate));
	assert_float_equal(shares[THREAD_WORKING], 0.9, 1e-6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_of_it, make, drop),
		cmocka_unit_test_setup_teardown(test_ranks, make, drop),
		cmocka_unit_test_setup_teardown(test_bars, make, drop),
		cmocka_unit_test_setup_teardown(test_sizes, make, drop),
		cmocka_unit_test_setup_teardown(test_stands_still, make, drop),
		cmocka_unit_test_setup_teardown(test_unknown, make, drop),
		cmocka_unit_test_setup_teardown(test_hostile, make, drop),
		cmocka_unit_test_setup_teardown(test_history, make, drop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
