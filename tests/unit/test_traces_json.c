/* Traces as files: read back the same; none, torn, foreign and hostile ones are told apart. */
#include "harness/base/files.h"
#include "harness/base/rng.h"
#include "harness/record/record.h"
#include "harness/record/trace.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char folder[] = "/tmp/mlbench-traces-XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return files_remove_tree(folder, NULL);
}

static void make_stage(
	struct traces *traces, const char *name, size_t count, bool read, struct rng *rng)
{
	struct trace *trace = &traces->stages[traces->stage_count++];
	(void)snprintf(trace->stage, sizeof trace->stage, "%s", name);
	trace->block = 64;
	trace->count = count;
	trace->items = calloc(count > 0 ? count : 1, sizeof *trace->items);
	assert_non_null(trace->items);
	uint64_t number = rng_below(rng, 1ULL << 40);
	for (size_t i = 0; i < count; i++) {
		struct trace_item *item = &trace->items[i];
		number += 1 + rng_below(rng, 5);
		*item = (struct trace_item){
			.number = number,
			.end_s = (double)rng_below(rng, 1ULL << 40) / 1e9,
			.worker = (uint32_t)rng_below(rng, 4),
			.sample = (uint32_t)rng_below(rng, 1000) + 1,
			.place = (uint32_t)rng_below(rng, 10),
			.bytes = read ? (uint32_t)rng_next(rng) : 0,
			.open_ns = read && i % 3 == 0 ? (float)rng_below(rng, 1000) : NAN,
			.in_flight = read ? 7 : 0,
			.service_ns = (float)rng_below(rng, 1 << 24),
			.lock_wait_ns = read ? NAN : (float)rng_below(rng, 100),
			.lock_hold_ns = read ? NAN : 0,
			.host_ns = NAN,
		};
	}
}

static void make_names(struct trace *trace)
{
	trace->names = calloc(2, sizeof *trace->names);
	assert_non_null(trace->names);
	trace->name_count = 2;
	trace->names[0] = (struct trace_name){.sample = 7, .path = "a \"b\"/c\303\244.jpg"};
	trace->names[1] = (struct trace_name){
		.sample = 9, .part = true, .offset = 1ULL << 40, .path = "shard.tar"};
}

static struct traces make_traces(size_t count, uint64_t seed)
{
	struct rng rng;
	rng_init(&rng, seed, 0);
	struct traces traces = {.point = 12, .repeat = 1, .begin_s = 2.000000123, .end_s = 12.5};
	make_stage(&traces, "read", count, true, &rng);
	make_names(&traces.stages[0]);
	make_stage(&traces, "decode", count, false, &rng);
	make_stage(&traces, "step", 0, false, &rng);
	return traces;
}

static bool same(double a, double b)
{
	return (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-12 * fabs(a);
}

static void assert_same_trace(const struct trace *a, const struct trace *b)
{
	assert_string_equal(a->stage, b->stage);
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->block, b->block);
	for (size_t i = 0; i < a->count; i++) {
		const struct trace_item *x = &a->items[i];
		const struct trace_item *y = &b->items[i];
		assert_true(x->number == y->number && x->worker == y->worker);
		assert_true(x->bytes == y->bytes && x->in_flight == y->in_flight);
		assert_true(x->sample == y->sample && x->place == y->place);
		assert_true(same((double)x->open_ns, (double)y->open_ns));
		assert_true(fabs(x->end_s - y->end_s) < 1e-9);
		assert_true(same((double)x->service_ns, (double)y->service_ns));
		assert_true(same((double)x->lock_wait_ns, (double)y->lock_wait_ns));
		assert_true(same((double)x->lock_hold_ns, (double)y->lock_hold_ns));
		assert_true(same((double)x->host_ns, (double)y->host_ns));
	}
}

static void assert_same_names(const struct trace *a, const struct trace *b)
{
	assert_int_equal(a->name_count, b->name_count);
	for (size_t i = 0; i < a->name_count; i++) {
		const struct trace_name *x = &a->names[i];
		const struct trace_name *y = &b->names[i];
		assert_true(x->sample == y->sample && x->part == y->part && x->offset == y->offset);
		assert_string_equal(x->path, y->path);
	}
}

static void assert_same_traces(const struct traces *a, const struct traces *b)
{
	assert_int_equal(a->point, b->point);
	assert_int_equal(a->repeat, b->repeat);
	assert_true(same(a->begin_s, b->begin_s) && same(a->end_s, b->end_s));
	assert_int_equal(a->stage_count, b->stage_count);
	for (size_t i = 0; i < a->stage_count; i++) {
		assert_same_trace(&a->stages[i], &b->stages[i]);
		assert_same_names(&a->stages[i], &b->stages[i]);
	}
}

static void traces_round_trip(void **state)
{
	static const size_t counts[] = {0, 1, 2, 333, TRACE_ITEMS_MAX};
	(void)state;
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		struct traces traces = make_traces(counts[i], i + 1);
		struct traces back;
		struct buffer text = {0};
		struct error err = {""};
		double ended = 0;
		traces_to_json(&traces, 1900000000.25, &text);
		assert_false(text.failed);
		json_t *object = json_loads(text.data, 0, NULL);
		assert_non_null(object);
		if (traces_from_json(&back, &ended, object, &err))
			fail_msg("%s", err.text);
		assert_true(same(ended, 1900000000.25));
		assert_same_traces(&traces, &back);
		json_decref(object);
		buffer_release(&text);
		traces_release(&back);
		traces_release(&traces);
	}
}

#define HEAD "{\"schema\":\"mlbench.traces/1\",\"point\":0,\"repeat\":0,\"stages\":["
#define ONE "{\"stage\":\"read\",\"block\":64,\"count\":2,"

static void nonsense_is_refused(void **state)
{
	static const char *const rows[] = {
		"{}",
		"[]",
		"7",
		"{\"schema\":\"mlbench.traces/2\",\"stages\":[]}",
		"{\"schema\":\"mlbench.traces/1\"}",
		"{\"schema\":\"mlbench.traces/1\",\"stages\":{}}",
		"{\"schema\":\"mlbench.traces/1\",\"stages\":[],\"point\":-1}",
		HEAD "1]}",
		HEAD "{},{},{},{},{},{},{},{},{}]}",
		HEAD "{\"stage\":\"a name that is far too long for a stage\"}]}",
		HEAD "{\"stage\":\"read\",\"count\":-1}]}",
		HEAD "{\"stage\":\"read\",\"count\":4097}]}",
		HEAD "{\"stage\":\"read\",\"count\":1000000000000}]}",
		HEAD "{\"stage\":\"read\",\"block\":-1}]}",
		HEAD ONE "\"number\":[1,2,3]}]}",
		HEAD ONE "\"number\":[2,1]}]}",
		HEAD ONE "\"number\":[1,2],\"names\":[[0,\"a\"]]}]}",
		HEAD ONE "\"number\":[1,2],\"names\":[[1,\"a\",-1]]}]}",
		HEAD ONE "\"number\":[1,2],\"names\":[[1]]}]}",
		HEAD ONE "\"number\":[1,1]}]}",
		HEAD ONE "\"number\":5}]}",
		HEAD ONE "\"number\":[1,1e300]}]}",
		HEAD ONE "\"number\":[1,-2]}]}",
		HEAD ONE "\"number\":[1,\"2\"]}]}",
		HEAD ONE "\"number\":[1,2],\"worker\":4294967296}]}",
		HEAD ONE "\"number\":[1,2],\"service_ns\":[1,[]]}]}",
		HEAD ONE "\"number\":[1,2],\"service_ns\":\"fast\"}]}",
		HEAD ONE "\"number\":[1,2],\"service_ns\":[1,-1]}]}",
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct traces traces;
		struct error err = {""};
		double ended;
		json_t *object = json_loads(rows[i], JSON_DECODE_ANY, NULL);
		assert_non_null(object);
		if (traces_from_json(&traces, &ended, object, &err) != -EINVAL || !err.text[0])
			fail_msg("row %zu was taken: %s", i, rows[i]);
		traces_release(&traces);
		json_decref(object);
	}
}

/* Some bytes changed at random: refused or read, and nothing worse. */
static void damage_does_no_harm(void **state)
{
	(void)state;
	struct traces traces = make_traces(40, 3);
	struct buffer text = {0};
	struct rng rng;
	size_t taken = 0;
	traces_to_json(&traces, 1, &text);
	rng_init(&rng, 11, 0);
	for (int round = 0; round < 2000; round++) {
		char *copy = strdup(text.data);
		assert_non_null(copy);
		for (int k = 0; k < 2; k++)
			copy[rng_below(&rng, text.size)] =
				"0123456789-[]{},\"e."[rng_below(&rng, 19)];
		json_t *object = json_loads(copy, 0, NULL);
		struct traces back;
		struct error err;
		double ended;
		if (object) {
			taken += traces_from_json(&back, &ended, object, &err) == 0;
			traces_release(&back);
		}
		json_decref(object);
		free(copy);
	}
	assert_true(taken > 0);
	buffer_release(&text);
	traces_release(&traces);
}

/* --- files ---------------------------------------------------------------------------------------- */

static void write_file(const char *text)
{
	char path[128];
	(void)snprintf(path, sizeof path, "%s/traces/p00012-r1.json", folder);
	assert_int_equal(files_write_atomic(path, text, strlen(text), NULL), 0);
}

static void expect(const struct record *record, int code, const char *part)
{
	struct traces traces;
	struct error err = {""};
	assert_int_equal(record_load_traces(record, 0, &traces, &err), code);
	if (!strstr(err.text, part))
		fail_msg("'%s' does not say '%s'", err.text, part);
	assert_int_equal(traces.stage_count, 0);
}

static void files_are_told_apart(void **state)
{
	(void)state;
	struct record_entry entry = {.point = 12, .repeat = 1, .ended = 1900000003.5};
	const struct record record = {.folder = folder, .entries = &entry, .entry_count = 1};
	const struct measurement m = {
		.point = 12, .repeat = 1, .started = 1900000000.25, .wall_seconds = 3.25};
	struct error err = {""};
	expect(&record, -ENOENT, "p00012-r1.json");
	struct traces traces = make_traces(1000, 5);
	struct traces back;
	traces.point = 99; /* the measurement's counts */
	assert_int_equal(record_save_traces(&record, &traces, &m, &err), 0);
	traces.point = 12;
	assert_int_equal(record_load_traces(&record, 0, &back, &err), 0);
	assert_same_traces(&traces, &back);
	traces_release(&back);
	/* Left over from an attempt that was killed before its line was written. */
	entry.ended += 5;
	expect(&record, -ENOENT, "another attempt");
	entry.ended -= 5;
	entry.repeat = 0;
	expect(&record, -ENOENT, "p00012-r0.json");
	entry.repeat = 1;
	struct measurement other = m;
	other.point = 7;
	assert_int_equal(record_save_traces(&record, &traces, &other, &err), 0);
	char from[128];
	char to[128];
	(void)snprintf(from, sizeof from, "%s/traces/p00007-r1.json", folder);
	(void)snprintf(to, sizeof to, "%s/traces/p00012-r1.json", folder);
	assert_int_equal(rename(from, to), 0);
	expect(&record, -EINVAL, "point 7");
	write_file("{\"schema\":\"mlbench.traces/1\",\"point\":12,\"rep");
	expect(&record, -EINVAL, "not JSON");
	write_file("");
	expect(&record, -EINVAL, "p00012-r1.json");
	write_file("{\"schema\":\"mlbench.traces/9\"}");
	expect(&record, -EINVAL, "mlbench.traces/9");
	traces_release(&traces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(traces_round_trip),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(damage_does_no_harm),
		cmocka_unit_test_setup_teardown(files_are_told_apart, make_folder, remove_folder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
