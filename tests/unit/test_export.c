/* What exports are made of: checksums and frames of events, Markdown's escapes, names of files, the list of formats. */
#include "harness/base/crc32c.h"
#include "harness/report/export.h"
#include "harness/report/table.h"
#include "harness/report/tensorboard.pb-c.h"
#include "harness/report/tensorboard_events.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* RFC 3720, B.4, and the check value of CRC-32C. */
static void test_crc(void **state)
{
	unsigned char bytes[32];
	(void)state;
	memset(bytes, 0, sizeof bytes);
	assert_int_equal(crc32c_add(0, bytes, sizeof bytes), 0x8a9136aaU);
	memset(bytes, 0xff, sizeof bytes);
	assert_int_equal(crc32c_add(0, bytes, sizeof bytes), 0x62a8ab43U);
	for (unsigned i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)i;
	assert_int_equal(crc32c_add(0, bytes, sizeof bytes), 0x46dd794eU);
	for (unsigned i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)(31 - i);
	assert_int_equal(crc32c_add(0, bytes, sizeof bytes), 0x113fdb5cU);
	assert_int_equal(crc32c_add(0, "123456789", 9), 0xe3069283U);
	assert_int_equal(crc32c_add(0, "", 0), 0);
	/* ((crc >> 15) | (crc << 17)) + 0xa282ead8 of the check value, worked out apart. */
	assert_int_equal(crc32c_mask(crc32c_add(0, "123456789", 9)),
		(uint32_t)((0xe3069283ULL >> 15 | (0xe3069283ULL << 17 & 0xffffffffULL)) +
			   0xa282ead8ULL));
}

static uint64_t little_endian(const unsigned char *bytes, size_t count)
{
	uint64_t value = 0;
	for (size_t i = count; i-- > 0;)
		value = value << 8 | bytes[i];
	return value;
}

/* The record at *at, unpacked; the caller frees it. */
static Tensorboard__Event *next_event(const struct buffer *file, size_t *at)
{
	const unsigned char *frame = (const unsigned char *)file->data + *at;
	assert_true(*at + 16 <= file->size);
	const size_t size = (size_t)little_endian(frame, 8);
	assert_true(*at + 16 + size <= file->size);
	assert_int_equal(little_endian(frame + 8, 4), crc32c_mask(crc32c_add(0, frame, 8)));
	assert_int_equal(
		little_endian(frame + 12 + size, 4), crc32c_mask(crc32c_add(0, frame + 12, size)));
	*at += 16 + size;
	Tensorboard__Event *event = tensorboard__event__unpack(NULL, size, frame + 12);
	assert_non_null(event);
	return event;
}

static void test_events(void **state)
{
	struct buffer file = {0};
	size_t at = 0;
	(void)state;
	const struct event_scalar scalars[] = {
		{"a/b", 0, "why"}, {"unknown", NAN, NULL}, {"c", 1.5, NULL}};
	events_begin(&file, 1e9);
	events_add(&file, 1e9 + 0.25, 7, scalars, 3);
	events_add(&file, 1e9, 8, &scalars[1], 1); /* nothing is known: no event */
	Tensorboard__Event *event = next_event(&file, &at);
	assert_string_equal(event->file_version, "brain.Event:2");
	tensorboard__event__free_unpacked(event, NULL);
	event = next_event(&file, &at);
	assert_true(event->wall_time == 1e9 + 0.25);
	assert_int_equal(event->step, 7);
	assert_int_equal(event->summary->n_value, 2);
	assert_string_equal(event->summary->value[0]->tag, "a/b");
	/* A zero is a value, not a member left out. */
	assert_int_equal(event->summary->value[0]->value_case,
		TENSORBOARD__SUMMARY_VALUE__VALUE_SIMPLE_VALUE);
	assert_string_equal(event->summary->value[0]->metadata->summary_description, "why");
	assert_true(event->summary->value[1]->simple_value == 1.5F);
	tensorboard__event__free_unpacked(event, NULL);
	assert_int_equal(at, file.size);
	buffer_release(&file);
}

static void test_markdown(void **state)
{
	static const struct table_column columns[] = {{.head = "decode\nworkers"},
		{.head = "confi-\ndence"}, {.head = "", .bar = true},
		{.head = "bottleneck", .left = true}};
	struct table table;
	struct buffer out = {0};
	(void)state;
	table_open(&table, columns, 4);
	table_add(&table, INK_PLAIN, "%s", "4");
	table_add(&table, INK_PLAIN, "%s", "0.5");
	table_add(&table, INK_PLAIN, "%s", "0.7");
	table_add(&table, INK_PLAIN, "%s", "a|b`c`\n<script>&amp; \033[31m*_x_* @all \xff");
	table_markdown(&table, &out);
	assert_string_equal(out.data,
		"| decode workers | confidence | bottleneck |\n"
		"| --: | --: | :-- |\n"
		"| 4 | 0.5 | a\\|b\\`c\\` &lt;script\\>&amp;amp;  \\[31m\\*\\_x\\_\\* &#64;all "
		"\xEF\xBF\xBD |\n");
	buffer_release(&out);
	table_close(&table);
}

static void test_names(void **state)
{
	char out[16];
	(void)state;
	assert_string_equal(export_file_name("../../etc/x", out, sizeof out), "_._.._etc_x");
	assert_string_equal(export_file_name("", out, sizeof out), "_");
	assert_string_equal(export_file_name("-rf", out, sizeof out), "_rf");
	assert_string_equal(export_file_name("a b\n\033\"c", out, sizeof out), "a_b___c");
	assert_int_equal(strlen(export_file_name("0123456789abcdefghij", out, sizeof out)), 15);
}

static void test_formats(void **state)
{
	enum export_id id = EXPORTS;
	struct error err = {0};
	(void)state;
	for (unsigned i = 0; i < EXPORTS; i++) {
		assert_non_null(export_formats[i].summary);
		assert_true(!export_list[i].text != !export_list[i].folder);
		assert_int_equal(export_find(export_formats[i].name, &id, &err), 0);
		assert_int_equal(id, i);
	}
	assert_int_equal(export_find("openmetrix", &id, &err), -EINVAL);
	assert_non_null(strstr(err.text, "did you mean 'openmetrics'"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crc),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_markdown),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_formats),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
