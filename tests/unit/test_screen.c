/* What is printed at the end of a run or sweep fits a screen, with the answer last: of the committed sample, at every
 * width, and where there is more to say than room. */
#include "harness/report/report.h"
#include "harness/report/screen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* "  verdict  Bottleneck..." -> "verdict"; lines that go on have none. */
static const char *label_of(const char *line, char out[32])
{
	out[0] = '\0';
	if (strncmp(line, "  ", 2) == 0 && line[2] != ' ')
		(void)snprintf(out, 32, "%.*s", (int)strcspn(line + 2, " \n"), line + 2);
	return out;
}

/* The labels below the last empty line, in their order: "best verdict page". */
static void labels_at_end(const char *text, char *out, size_t room)
{
	const char *begin = text;
	size_t used = 0;
	for (const char *at = strstr(text, "\n\n"); at; at = strstr(at + 1, "\n\n"))
		begin = at + 2;
	out[0] = '\0';
	for (const char *line = begin; *line; line += strcspn(line, "\n") + 1) {
		char label[32];
		if (*label_of(line, label))
			used += (size_t)snprintf(
				out + used, room - used, "%s%s", used ? " " : "", label);
	}
}

static void the_sample_fits_a_screen(void **state)
{
	struct record record = {0};
	struct report report;
	struct error err;
	char labels[256];
	(void)state;
	assert_int_equal(record_open(&record, "tests/golden/sample", &err), 0);
	assert_int_equal(report_open(&report, &record, &err), 0);
	assert_int_equal(report_diagnose(&report, &err), 0);
	for (int width = STYLE_WIDTH_LEAST; width <= STYLE_WIDTH_MOST; width += 5) {
		const struct style style = {.width = width, .utf8 = true};
		struct buffer out = {0};
		report_terminal(&report, &style, REPORT_SCREEN, &out);
		if (screen_lines_of(&out) > SCREEN_LINES)
			fail_msg("%zu lines at %d columns:\n%s", screen_lines_of(&out), width,
				out.data);
		assert_non_null(strstr(out.data, "emulated"));
		labels_at_end(out.data, labels, sizeof labels);
		if (!strstr(labels, "verdict advice") || !strstr(labels, "results"))
			fail_msg("'%s' at %d columns:\n%s", labels, width, out.data);
		buffer_release(&out);
	}
	/* At 80 columns there is room for the map and the best points, too. */
	const struct style usual = {.width = 80, .utf8 = true};
	struct buffer out = {0};
	report_terminal(&report, &usual, REPORT_SCREEN, &out);
	assert_non_null(strstr(out.data, "samples/s over decode.workers (down)"));
	assert_non_null(strstr(out.data, "step + decode / compute"));
	buffer_release(&out);
	/* All of it ends in the same words. */
	report_terminal(&report, &usual, REPORT_WHOLE, &out);
	labels_at_end(out.data, labels, sizeof labels);
	assert_string_equal(labels, "load best verdict advice more results");
	buffer_release(&out);
	report_close(&report);
	record_release(&record);
}

static void the_least_important_goes_first(void **state)
{
	struct screen screen = {.lines = 4};
	struct buffer out = {0};
	(void)state;
	buffer_text(screen_add(&screen, 0), "title\n");
	buffer_text(screen_add(&screen, 2), "a\nb\n");
	buffer_text(screen_add(&screen, 3), "c\n");
	buffer_text(screen_add(&screen, 0), "verdict\n");
	assert_int_equal(screen_left(&screen), 0);
	screen_make_room(&screen, 1, 2);
	assert_int_equal(screen_left(&screen), 0); /* only what is above 2 was left out */
	screen_print(&screen, &out);
	assert_string_equal(out.data, "title\na\nb\nverdict\n");
	buffer_release(&out);
	/* What has to stay is there whatever its length. */
	screen = (struct screen){.lines = 2};
	buffer_text(screen_add(&screen, 0), "1\n2\n3\n");
	buffer_text(screen_add(&screen, 1), "left out\n");
	screen_print(&screen, &out);
	assert_string_equal(out.data, "1\n2\n3\n");
	buffer_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_least_important_goes_first),
		cmocka_unit_test(the_sample_fits_a_screen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
