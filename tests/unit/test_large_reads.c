/* Large requests of which samples are cut, on an engine whose time is the test's: how many are in flight, when the next one begins,
 * and what is told of each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/base/memory.h"
#include "harness/config/config.h"
#include "workloads/source/chunks.h"
#include "workloads/source/engines.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { SAMPLES = 64, SAMPLE_BYTES = 1024, EACH = 4, TICKETS_MOST = SAMPLES };

/* What was submitted and not answered; requests wait here until the test lets one answer. */
struct fake {
	struct reader reader;
	struct read_request *waiting[SAMPLES];
	size_t count;
	uint64_t now_ns;
	size_t answers; /* of those that wait, the first so many, at the next reap */
};

static void fake_submit(struct reader *reader, struct read_request *request)
{
	struct fake *const fake = (struct fake *)reader;
	request->submitted_ns = fake->now_ns;
	fake->waiting[fake->count++] = request;
}

static size_t fake_reap(
	struct reader *reader, struct read_request **done, size_t room, uint64_t wait_ns)
{
	struct fake *const fake = (struct fake *)reader;
	const size_t count = fake->answers < room ? fake->answers : room;
	(void)wait_ns;
	for (size_t i = 0; i < count; i++) {
		done[i] = fake->waiting[i];
		done[i]->size = (size_t)done[i]->length;
		done[i]->done_ns = fake->now_ns;
		memset(done[i]->buffer, (int)done[i]->sample, done[i]->size);
	}
	memmove((void *)fake->waiting, (void *)(fake->waiting + count),
		(fake->count - count) * sizeof(struct read_request *));
	fake->count -= count;
	fake->answers = 0;
	return count;
}

static const struct source_ops fake_ops = {
	.name = "fake", .submit = fake_submit, .reap = fake_reap};

struct stage {
	struct config config;
	struct sample samples[SAMPLES];
	uint64_t offsets[SAMPLES];
	struct dataset dataset;
	struct source_counter counters;
	struct source source;
	struct fake fake;
	struct memory_block memory;
	struct read_request requests[TICKETS_MOST];
};

static void stage_set(struct stage *s, const char *setting)
{
	struct error err = {""};
	if (config_set(&s->config, setting, &err))
		fail_msg("%s", err.text);
}

/* One file of all samples; a request of 4 KiB holds four of them. */
static void stage_open(struct stage *s, unsigned depth, unsigned depth_most)
{
	char setting[32];
	struct error err = {""};
	*s = (struct stage){0};
	config_init(&s->config);
	(void)snprintf(setting, sizeof setting, "read.depth=%u", depth);
	stage_set(s, setting);
	stage_set(s, "read.request=4KiB");
	stage_set(s, "read.order=sequential");
	for (size_t i = 0; i < SAMPLES; i++) {
		s->samples[i] = (struct sample){.path = "shard", .bytes = SAMPLE_BYTES};
		s->offsets[i] = i * SAMPLE_BYTES;
	}
	static char root[] = ".";
	s->dataset = (struct dataset){.root = root,
		.samples = s->samples,
		.offsets = s->offsets,
		.count = SAMPLES,
		.max_bytes = SAMPLE_BYTES};
	s->source = (struct source){.ops = &fake_ops,
		.config = &s->config,
		.dataset = &s->dataset,
		.threads = 1,
		.depth = depth,
		.depth_most = depth_most,
		.timed = true,
		.stamped = true,
		.counters = &s->counters};
	s->fake.reader.source = &s->source;
	s->fake.now_ns = 1000;
	assert_int_equal(chunks_open(&s->fake.reader.chunks, &s->source, &err), 0);
	assert_int_equal(memory_map(&s->memory, (size_t)TICKETS_MOST * READ_ALIGN_BYTES, false), 0);
}

static void stage_close(struct stage *s)
{
	chunks_close(s->fake.reader.chunks);
	memory_unmap(&s->memory);
	config_release(&s->config);
}

static void stage_ask(struct stage *s, uint32_t sample, uint32_t ahead)
{
	struct read_request *const request = &s->requests[sample];
	request->sample = sample;
	request->ahead = sample + ahead < SAMPLES && ahead > 0 ? sample + ahead : UINT32_MAX;
	request->buffer = (uint8_t *)s->memory.data + (size_t)sample * READ_ALIGN_BYTES;
	request->room = READ_ALIGN_BYTES;
	source_submit(&s->fake.reader, request);
}

/* Answers so many requests after a while; how many samples came of it. */
static size_t stage_answer(struct stage *s, size_t answers, uint64_t later_ns)
{
	struct read_request *done[TICKETS_MOST];
	s->fake.answers = answers;
	s->fake.now_ns += later_ns;
	const size_t count = source_reap(&s->fake.reader, done, TICKETS_MOST, 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(done[i]->status, 0);
	for (size_t i = 0; i < count; i++)
		source_let_go(done[i]);
	return count;
}

static struct large_reads stage_told(const struct stage *s)
{
	struct large_reads told;
	source_reader_large(&s->fake.reader, &told);
	return told;
}

static void each_is_timed_from_submission_to_completion(void **state)
{
	struct stage s;
	(void)state;
	stage_open(&s, 2, 2);
	stage_ask(&s, 0, 0);
	stage_ask(&s, 1, 0);
	assert_int_equal(stage_told(&s).in_flight, 2);
	assert_int_equal(stage_answer(&s, 1, 700), 2);
	struct large_reads told = stage_told(&s);
	assert_int_equal(told.count, 1);
	assert_int_equal(told.done[0].number, 0);
	assert_int_equal(told.done[0].done_ns - told.done[0].submitted_ns, 700);
	assert_int_equal(told.done[0].bytes, EACH * SAMPLE_BYTES);
	assert_int_equal(told.done[0].in_flight, 1);
	assert_int_equal(told.in_flight, 1);
	/* The second one was read ahead: nobody waits for it, and it is told all the same. */
	assert_int_equal(stage_answer(&s, 1, 50), 0);
	told = stage_told(&s);
	assert_int_equal(told.count, 1);
	assert_int_equal(told.done[0].number, 1);
	assert_int_equal(told.done[0].done_ns - told.done[0].submitted_ns, 750);
	assert_int_equal(told.done[0].in_flight, 2);
	/* Cut out of what is there: no time of a store. */
	stage_ask(&s, 4, 0);
	assert_int_equal(stage_answer(&s, 0, 10), 1);
	assert_int_equal(stage_told(&s).count, 0);
	stage_close(&s);
}

/* A request that was announced begins when another is done, and waits for no ticket. */
static void those_that_are_expected_begin_by_themselves(void **state)
{
	struct stage s;
	(void)state;
	stage_open(&s, 2, 2);
	for (uint32_t i = 0; i < EACH; i++)
		stage_ask(&s, i, 3 * EACH);
	assert_int_equal(s.fake.count, 2);
	assert_int_equal(s.fake.waiting[1]->sample, EACH); /* read on */
	assert_int_equal(stage_answer(&s, 1, 100), EACH);
	assert_int_equal(s.fake.count, 2);
	assert_int_equal(s.fake.waiting[1]->sample, 3 * EACH);
	assert_int_equal(stage_told(&s).in_flight, 2);
	/* One that was wanted before its turn is not read again. */
	stage_ask(&s, 4, 4 * EACH);
	stage_ask(&s, 20, 0);
	assert_int_equal(stage_answer(&s, 1, 100), 1);
	assert_int_equal(s.fake.waiting[1]->sample, 20);
	assert_int_equal(stage_answer(&s, 2, 100), 1);
	assert_int_equal(s.fake.count, 0);
	stage_close(&s);
}

/* A device may complete all at once, and idle until the next request comes. */
static void as_many_as_come_back_begin_before_all_are_cut(void **state)
{
	enum { DEPTH = 8 };
	struct stage s;
	(void)state;
	stage_open(&s, DEPTH, DEPTH);
	for (uint32_t i = 0; i < DEPTH; i++)
		stage_ask(&s, i * EACH, DEPTH * EACH);
	assert_int_equal(s.fake.count, DEPTH);
	assert_int_equal(
		stage_answer(&s, DEPTH, 100), DEPTH); /* the others are not asked for yet */
	assert_int_equal(s.fake.count, DEPTH);
	for (uint32_t i = 0; i < DEPTH; i++)
		assert_int_equal(s.fake.waiting[i]->sample, (DEPTH + i) * EACH);
	stage_close(&s);
}

/* One that is wanted at once takes the buffer of the one that is wanted last, which is read again in its turn. */
static void the_last_one_gives_way(void **state)
{
	enum { BUFFERS = 7 }; /* at a depth of one */
	struct stage s;
	(void)state;
	stage_open(&s, 1, 1);
	for (uint32_t i = 0; i < EACH; i++)
		stage_ask(&s, i, EACH * (i + 1) - i);
	for (uint32_t chunk = 0; chunk < 5; chunk++)
		assert_int_equal(stage_answer(&s, 1, 100), chunk == 0 ? EACH : 0);
	for (uint32_t i = EACH; i < 2 * EACH - 1; i++) {
		stage_ask(&s, i, EACH * (i + 1) - i);
		assert_int_equal(stage_answer(&s, 1, 100), 1);
	}
	assert_int_equal(s.fake.count, 0);
	stage_ask(&s, 40, 0);
	assert_int_equal(s.fake.waiting[0]->sample, 40);
	assert_int_equal(stage_answer(&s, 1, 100), 1);
	assert_int_equal(s.fake.count, 0); /* no buffer is free */
	stage_ask(&s, 2 * EACH - 1, 0);
	assert_int_equal(stage_answer(&s, 0, 100), 1);
	stage_ask(&s, 2 * EACH, 0);
	assert_int_equal(s.fake.count, 0); /* buffers are looked for once a visit */
	assert_int_equal(stage_answer(&s, 0, 100), 1);
	assert_int_equal(s.fake.count, 1);
	assert_int_equal(s.fake.waiting[0]->sample, BUFFERS * EACH);
	stage_close(&s);
}

static void the_depth_and_its_tag_change(void **state)
{
	struct stage s;
	(void)state;
	stage_open(&s, 2, 4);
	stage_ask(&s, 0, 0);
	assert_int_equal(s.fake.count, 2);
	source_reader_allow(&s.fake.reader, 1, 7);
	assert_int_equal(stage_told(&s).earlier, 2);
	assert_int_equal(stage_answer(&s, 1, 100), 1);
	stage_ask(&s, 40, 0);
	assert_int_equal(s.fake.count, 1); /* beyond one: it waits */
	assert_int_equal(stage_told(&s).earlier, 1);
	assert_int_equal(stage_answer(&s, 1, 100), 0);
	struct large_reads told = stage_told(&s);
	assert_int_equal(told.done[0].tag, 0);
	assert_int_equal(told.earlier, 0);
	assert_int_equal(told.tag, 7);
	assert_int_equal(s.fake.count, 1);
	assert_int_equal(stage_answer(&s, 1, 100), 1);
	assert_int_equal(stage_told(&s).done[0].tag, 7);
	/* Four at most, whatever is allowed. */
	source_reader_allow(&s.fake.reader, 100, 8);
	stage_ask(&s, 8, 0);
	assert_int_equal(s.fake.count, 4);
	stage_close(&s);
}

/* One that cannot be read is told without bytes, and its samples are read by themselves. */
static void a_failure_is_told(void **state)
{
	struct stage s;
	struct read_request *done[2];
	(void)state;
	stage_open(&s, 1, 1);
	stage_ask(&s, 0, 0);
	s.fake.waiting[0]->status = -EIO;
	assert_int_equal(stage_answer(&s, 1, 100), 0);
	assert_int_equal(stage_told(&s).count, 1);
	assert_int_equal(stage_told(&s).done[0].bytes, 0);
	assert_int_equal(s.fake.count, 1);
	assert_int_equal(s.fake.waiting[0]->length, SAMPLE_BYTES);
	s.fake.answers = 1;
	assert_int_equal(source_reap(&s.fake.reader, done, 2, 0), 1);
	assert_int_equal(stage_told(&s).count, 0); /* a sample's own */
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_timed_from_submission_to_completion),
		cmocka_unit_test(those_that_are_expected_begin_by_themselves),
		cmocka_unit_test(as_many_as_come_back_begin_before_all_are_cut),
		cmocka_unit_test(the_last_one_gives_way),
		cmocka_unit_test(the_depth_and_its_tag_change),
		cmocka_unit_test(a_failure_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
