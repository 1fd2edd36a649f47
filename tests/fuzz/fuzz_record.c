/* libFuzzer target: any text of points.jsonl is refused with a message or becomes a report, in every format that is
 * made of it alone.  Two kinds of input:
 *   - text of points.jsonl
 *   - '=' and triples of bytes: a number of tests/fuzz/corpus/record/sweep.jsonl and what stands in its place, so that
 *     values which nobody measured get past the reader's first look
 * Run from the root of the tree. */
#include "harness/record/record.h"
#include "harness/report/export.h"
#include "harness/report/report.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE "tests/fuzz/corpus/record/sweep.jsonl"

enum {
	NUMBERS_MAX = 8192,
	PATCH_BYTES = 3,
	PATCHES_MAX = 8,
	POINTS_TRIED = 64,
	TERMINAL_COLUMNS = 80
};

static char sample[1 << 20];
static struct {
	size_t at, length;
} numbers[NUMBERS_MAX];
static size_t number_count;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "fuzz_record: %s\n", what);
	abort();
}

/* Outside of strings, which are left as they are. */
static void find_numbers(void)
{
	bool quoted = false;
	for (size_t i = 0; sample[i] && number_count < NUMBERS_MAX;) {
		if (sample[i] == '\\') {
			i += 2;
			continue;
		}
		quoted = quoted != (sample[i] == '"');
		if (quoted || !(isdigit((unsigned char)sample[i]) || sample[i] == '-')) {
			i++;
			continue;
		}
		numbers[number_count].at = i;
		i += strspn(sample + i, "+-.0123456789eE");
		numbers[number_count].length = i - numbers[number_count].at;
		number_count++;
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	FILE *file = fopen(SAMPLE, "re");
	require(file != NULL, "no " SAMPLE ": run from the root of the tree");
	sample[fread(sample, 1, sizeof sample - 1, file)] = '\0';
	(void)fclose(file);
	find_numbers();
	require(number_count > 100, "no numbers in " SAMPLE);
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const uint8_t *x = a;
	const uint8_t *y = b;
	return memcmp(x, y, 2);
}

/* The sample with some of its numbers changed. */
static char *patch(const uint8_t *data, size_t size)
{
	static const char *const values[] = {"0", "1", "-1", "2", "0.5", "-0.0", "1e308", "-1e308",
		"1e-320", "1e19", "-1e19", "1e10", "4294967295", "4294967296", "2147483648",
		"9007199254740993", "9223372036854775807", "-9223372036854775808", "null", "true",
		"\"x\"", "[]", "{}", "65536", "1e300"};
	uint8_t places[PATCHES_MAX][PATCH_BYTES];
	const size_t count = size / PATCH_BYTES < PATCHES_MAX ? size / PATCH_BYTES : PATCHES_MAX;
	struct buffer text = {0};
	size_t done = 0;
	memcpy(places, data, count * PATCH_BYTES);
	qsort(places, count, PATCH_BYTES, by_place);
	for (size_t i = 0; i < count; i++) {
		const size_t number = ((size_t)places[i][0] << 8 | places[i][1]) % number_count;
		const size_t at = numbers[number].at;
		if (at < done)
			continue;
		buffer_add(&text, sample + done, at - done);
		buffer_text(&text, values[places[i][2] % (sizeof values / sizeof *values)]);
		done = at + numbers[number].length;
	}
	buffer_text(&text, sample + done);
	require(!text.failed, "out of memory");
	return text.data;
}

static void write_all(struct report *report)
{
	const struct style style = {.width = TERMINAL_COLUMNS, .utf8 = true};
	struct buffer text = {0};
	struct error err = {0};
	report_terminal(report, &style, REPORT_EVERY_POINT, &text);
	report_terminal(report, &style, REPORT_SCREEN, &text);
	for (size_t i = 0; i < EXPORTS; i++)
		if (export_list[i].text && export_list[i].text(report, &text, &err))
			require(*err.text, "a refused export without a message");
	json_t *summary = report_summary_json(report);
	char *dump = summary ? json_dumps(summary, 0) : NULL;
	require(dump != NULL, "a summary that is no JSON");
	report_csv(report, json_object_get(summary, "points"), &text);
	buffer_release(&text);
	free(dump);
	json_decref(summary);
}

static void use(struct record *record)
{
	struct report report = {0};
	struct error err = {0};
	if (record->grid.points > POINTS_TRIED)
		return;
	if (report_open(&report, record, &err))
		require(*err.text, "a refused report without a message");
	else if (report_diagnose(&report, &err))
		require(*err.text, "a refused diagnosis without a message");
	else
		write_all(&report);
	report_close(&report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct record record = {.folder = strdup("/nonexistent/fuzz")};
	struct error err = {0};
	char *patched = size > 0 && *data == '=' ? patch(data + 1, size - 1) : NULL;
	const char *text = patched ? patched : (const char *)data;
	if (record_read(&record, "fuzz", text, patched ? strlen(patched) : size, &err))
		require(*err.text, "a refused result without a message");
	else
		use(&record);
	record_release(&record);
	free(patched);
	return 0;
}
