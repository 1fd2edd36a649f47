/* Strata of a data set as text: read back as written, hostile and wrong texts refused with the reason. */
#include "harness/config/like.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct like_stratum strata[LIKE_STRATA_MAX];
static size_t count;
static struct error err;

static void parse(const char *text)
{
	if (like_parse(text, strata, &count, &err))
		fail_msg("'%s': %s", text, err.text);
}

static void a_text_is_read_word_by_word(void **state)
{
	(void)state;
	parse("jpeg 500x375~0.15 420 q90 110KB~0.3 92%, jpeg 2048x1365 444 progressive q85 640KB+24KB 3%; "
	      "png 640x480 palette 42KB 4%,raw 10x20 1KB 1%");
	assert_int_equal(count, 4);
	assert_string_equal(strata[0].format, "jpeg");
	assert_string_equal(strata[0].subsampling, "420");
	assert_int_equal(strata[0].width, 500);
	assert_int_equal(strata[0].height, 375);
	assert_float_equal(strata[0].edge_sigma, 0.15, 1e-9);
	assert_int_equal(strata[0].quality, 90);
	assert_false(strata[0].progressive);
	assert_float_equal(strata[0].bytes, 110e3, 1e-6);
	assert_float_equal(strata[0].bytes_sigma, 0.3, 1e-9);
	assert_float_equal(strata[0].share, 0.92, 1e-9);
	assert_true(strata[1].progressive);
	assert_float_equal(strata[1].header, 24e3, 1e-6);
	assert_float_equal(strata[1].edge_sigma, 0, 0);
	assert_string_equal(strata[2].subsampling, "palette");
	assert_string_equal(strata[3].format, "raw");
	assert_string_equal(strata[3].subsampling, "");
	parse("jpeg 500x375 110KB 100%");
	assert_int_equal(strata[0].quality, 0);
}

static void what_is_written_reads_back(void **state)
{
	(void)state;
	struct like_stratum before[LIKE_STRATA_MAX];
	struct buffer text = {0};
	for (size_t i = 0; i < LIKE_STRATA_MAX; i++) {
		before[i] = (struct like_stratum){.format = "jpeg",
			.subsampling = "other",
			.progressive = true,
			.quality = 100,
			.width = 7999,
			.height = 7999,
			.edge_sigma = 0.1234,
			.bytes = 123456789 + 1000 * (double)i,
			.bytes_sigma = 0.9876,
			.header = 98765432,
			.share = (1 + (double)i) / (LIKE_STRATA_MAX * (LIKE_STRATA_MAX + 1) / 2.0)};
	}
	assert_true(like_write(before, LIKE_STRATA_MAX, &text) < 1e-9);
	assert_in_range(strlen(text.data), 1, 4096);
	parse(text.data);
	assert_int_equal(count, LIKE_STRATA_MAX);
	for (size_t i = 0; i < count; i++) {
		assert_float_equal(
			strata[i].share, before[i].share, (float)before[i].share * 1e-3F);
		assert_float_equal(
			strata[i].bytes, before[i].bytes, (float)before[i].bytes * 1e-3F);
		assert_float_equal(
			strata[i].header, before[i].header, (float)before[i].header * 1e-3F);
		assert_float_equal(strata[i].edge_sigma, 0.123, 1e-9);
		assert_float_equal(strata[i].bytes_sigma, 0.988, 1e-9);
		assert_int_equal(strata[i].quality, 100);
		assert_true(strata[i].progressive);
		assert_string_equal(strata[i].subsampling, "other");
	}
	struct buffer again = {0};
	(void)like_write(strata, count, &again);
	assert_string_equal(again.data, text.data);
	buffer_release(&text);
	buffer_release(&again);
}

/* What gen cannot write is left out and told. */
static void what_cannot_be_generated_is_left_out(void **state)
{
	(void)state;
	struct buffer text = {0};
	struct like_stratum some[3];
	const struct like_stratum jpeg = {
		.format = "jpeg", .width = 640, .height = 480, .bytes = 50e3, .share = 0.6};
	some[0] = some[1] = some[2] = jpeg;
	(void)strcpy(some[1].format, "webp");
	some[1].share = 0.3;
	some[2].share = 0.1;
	assert_float_equal(like_write(some, 3, &text), 0.3, 1e-9);
	assert_string_equal(text.data, "jpeg 640x480 50KB 85.71%, jpeg 640x480 50KB 14.29%");
	text.size = 0;
	assert_float_equal(like_write(some + 1, 0, &text), 0, 0);
	buffer_release(&text);
}

static void what_is_wrong_is_said(void **state)
{
	static const struct {
		const char *text, *why;
	} wrong[] = {
		{"", "a format"},
		{"   ", "a format"},
		{",", "a format"},
		{"jpg 5x5 1KB 100%", "did you mean 'jpeg'"},
		{"webp 5x5 1KB 100%", "can be generated"},
		{"jpeg", "width x height"},
		{"jpeg 500", "width x height"},
		{"jpeg 0x5 1KB 100%", "width x height"},
		{"jpeg 65500x65500 1KB 100%", "64 million"},
		{"jpeg 5x5~1.5 1KB 100%", "width x height"},
		{"jpeg 5x5~nan 1KB 100%", "width x height"},
		{"jpeg 5x5 4:2:1 1KB 100%", "a layout"},
		{"png 5x5 420 1KB 100%", "a share"},
		{"png 5x5 progressive 1KB 100%", "a layout"},
		{"raw 5x5 rgb 1KB 100%", "a layout"},
		{"jpeg 5x5 q0 1KB 100%", "a quality"},
		{"jpeg 5x5 q101 1KB 100%", "a quality"},
		{"jpeg 5x5 100%", "a layout"},
		{"jpeg 5x5 1KB~9 100%", "a layout"},
		{"jpeg 5x5 1GB 100%", "does not have"},
		{"jpeg 500x500 1KB+2KB 100%", "does not have"},
		{"png 500x500 2KB+1KB 100%", "a layout"},
		{"jpeg 5x5 1KB", "a share"},
		{"jpeg 5x5 1KB 0%", "a share"},
		{"jpeg 5x5 1KB 0.5", "a share"},
		{"jpeg 5x5 1KB 100% more", "a comma"},
		{"jpeg 5x5 1KB 50%", "50 %"},
		{"jpeg 5x5 1KB 50%, png 5x5 1KB 60%", "110 %"},
		{"jpeg 5x5 1KB 50%, png", "kind of files 2"},
		{"jpegjpegjpegjpegjpegjpegjpegjpegjpegjpegjpegjpegjpegjpeg 5x5", "too long"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_true(like_parse(wrong[i].text, strata, &count, &err) < 0);
		if (!strstr(err.text, wrong[i].why))
			fail_msg("'%s' gives: %s", wrong[i].text, err.text);
	}
	struct buffer many = {0};
	for (int i = 0; i <= LIKE_STRATA_MAX; i++)
		buffer_text(&many, "raw 5x5 1KB 1%, ");
	assert_true(like_parse(many.data, strata, &count, &err) < 0);
	assert_non_null(strstr(err.text, "more than 48"));
	buffer_release(&many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_is_read_word_by_word),
		cmocka_unit_test(what_is_written_reads_back),
		cmocka_unit_test(what_cannot_be_generated_is_left_out),
		cmocka_unit_test(what_is_wrong_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
