/* Traces whose steps, waits, kernels and copies are planted, in every form that is recognised; and what is no trace, or a torn
 * or hostile one. */
#include "harness/base/array.h"
#include "harness/base/buffer.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/fit/busy_spans.h"
#include "harness/fit/finding.h"
#include "harness/fit/kineto.h"
#include "harness/fit/source.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

static char work_folder[] = "/tmp/mlbench-trace-XXXXXX";

static char *trace_path(const char *name)
{
	static char path[256];
	(void)snprintf(path, sizeof path, "%s/%s", work_folder, name);
	return path;
}

static void expect_near(double value, double expected, double tolerance)
{
	if (!(fabs(value - expected) <= tolerance))
		fail_msg("%.9g, not %.9g", value, expected);
}

/* --- spans ------------------------------------------------------------------------------------ */

static void test_spans(void **state)
{
	struct busy_spans a;
	struct busy_spans b;
	(void)state;
	busy_spans_open(&a, BUSY_SPANS_LEAST);
	busy_spans_open(&b, BUSY_SPANS_LEAST);
	assert_int_equal(busy_spans_add(&a, 50, 60), 0);
	assert_int_equal(busy_spans_add(&a, 10, 20), 0);
	assert_int_equal(busy_spans_add(&a, 15, 30), 0);
	assert_int_equal(busy_spans_add(&a, 30, 30), 0);
	assert_int_equal(busy_spans_add(&a, -5, 0), 0);
	busy_spans_sort(&a);
	assert_int_equal(a.count, 3);
	assert_int_equal(busy_spans_within(&a, -100, 100), 35);
	assert_int_equal(busy_spans_within(&a, 12, 55), 18 + 5);
	assert_int_equal(busy_spans_within(&a, 20, 20), 0);
	assert_int_equal(busy_spans_add(&b, 25, 52), 0);
	busy_spans_sort(&b);
	assert_int_equal(busy_spans_both(&a, &b, 0, 100), 5 + 2);
	assert_int_equal(busy_spans_both(&a, &b, 51, 100), 1);
	busy_spans_close(&a);
	busy_spans_close(&b);
}

/* Against an array of moments, in an order without order. */
static void test_spans_at_random(void **state)
{
	enum { MOMENTS = 5000, SPANS = 3000 };
	static unsigned char busy[MOMENTS];
	struct busy_spans spans;
	uint32_t random = 1;
	int64_t all = 0;
	(void)state;
	busy_spans_open(&spans, 4096);
	for (int i = 0; i < SPANS; i++) {
		random = random * 1664525 + 1013904223;
		const int begin = (int)(random >> 8) % MOMENTS;
		const int end = begin + (int)(random >> 4) % 3 < MOMENTS
					? begin + (int)(random >> 4) % 3
					: MOMENTS;
		memset(busy + begin, 1, (size_t)(end - begin));
		assert_int_equal(busy_spans_add(&spans, begin, end), 0);
	}
	for (int i = 0; i < MOMENTS; i++)
		all += busy[i];
	busy_spans_sort(&spans);
	assert_int_equal(busy_spans_within(&spans, 0, MOMENTS), all);
	assert_int_equal(spans.filled_ns, 0);
	busy_spans_close(&spans);
}

/* Too many: the shortest gaps are closed, and how much time that is at most is known; in order it is known exactly. */
static void test_spans_without_room(void **state)
{
	enum { SPANS = 100000 };
	const int64_t steps[] = {1, 7919};
	(void)state;
	for (size_t way = 0; way < COUNT(steps); way++) {
		struct busy_spans spans;
		int64_t begin = 0;
		busy_spans_open(&spans, 1000);
		for (int64_t i = 0; i < SPANS; i++) {
			const int64_t at = i * steps[way] % SPANS;
			begin = 1000 * at;
			/* every thousandth gap is long */
			assert_int_equal(
				busy_spans_add(&spans, begin, begin + (at % 1000 ? 999 : 500)), 0);
		}
		busy_spans_sort(&spans);
		assert_true(spans.count <= 1000);
		const int64_t busy = busy_spans_within(&spans, 0, INT64_C(1000) * SPANS);
		const int64_t planted = SPANS / 1000 * (INT64_C(999) * 999 + 500);
		assert_true(busy >= planted && busy <= planted + spans.filled_ns);
		if (way == 0) {
			assert_int_equal(busy, planted + spans.filled_ns);
			assert_true(spans.filled_ns < SPANS);
		}
		busy_spans_close(&spans);
	}
}

/* --- traces ----------------------------------------------------------------------------------- */

/* A job as a trace of it would show: each step waits, then launches work that the device does a little later. */
struct planted {
	int steps;
	double period_us, wait_us;
	double kernels_us; /* device time, from wait_us on, in two streams that overlap by half */
	double copy_us, copy_bytes;
	int batch;
	bool annotated, optimizers, alone, legacy, device_first, capitals;
	int rank, world;
	double ts_factor;         /* 1: microseconds */
	const char *kernel, *odd; /* its name, and more in its args, as they stand in the file */
	bool copies_nowhere;      /* of no device */
	int zero_from;            /* the step from which on all times are 0; 0: none */
	int gap_at;               /* the step before which a second passes; 0: none */
	int process, devices;
	double begin_us; /* of the trace */
};

static const struct planted planted_usual = {.steps = 11,
	.period_us = 50000,
	.wait_us = 20000,
	.kernels_us = 24000,
	.copy_us = 1500,
	.copy_bytes = 77070336,
	.batch = 128,
	.annotated = true,
	.rank = -1,
	.ts_factor = 1,
	.kernel = "void kernel<float>",
	.odd = "",
	.process = 2035,
	.devices = 2,
	.begin_us = 4818987873651.916};

/* As torch 1.8 to 1.11 called them. */
static const char *plant_category(const struct planted *p, const char *category)
{
	static const char *const others[][2] = {{"cpu_op", "Operator"},
		{"user_annotation", "Operator"}, {"kernel", "Kernel"}, {"gpu_memcpy", "Memcpy"}};

	for (size_t i = 0; p->capitals && i < COUNT(others); i++)
		if (strcmp(others[i][0], category) == 0)
			return others[i][1];
	return category;
}

static void plant_event(struct buffer *out, const struct planted *p, const char *category,
	const char *name, double begin_us, double length_us, const char *args)
{
	const bool zero = p->zero_from && begin_us >= p->zero_from * p->period_us;
	const bool late = p->gap_at && begin_us >= p->gap_at * p->period_us;
	const double at = zero ? 0 : p->begin_us + (begin_us + late * 1e6) * p->ts_factor;
	if (p->legacy)
		buffer_format(out,
			"{\"name\": \"%s\", \"ph\": \"X\", \"ts\": %.0f, \"dur\": %.0f, \"tid\": 1, \"pid\": \"CPU functions\", \"args\": {}}, ",
			name, begin_us, length_us);
	else
		buffer_format(out,
			"  {\n    \"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d, \"tid\": 7,\n    \"ts\": %.3f, \"dur\": %.3f,\n    \"args\": {\n      %s\n    }\n  },\n",
			plant_category(p, category), name,
			category[0] == 'k' || category[0] == 'g' ? 0 : p->process, at,
			zero ? 0 : length_us * p->ts_factor, args);
}

static void plant_device(struct buffer *out, const struct planted *p, double begin)
{
	char args[128];
	if (p->kernels_us <= 0)
		return;
	(void)snprintf(args, sizeof args, "%s\"stream\": 7, \"bytes\": %.0f",
		p->copies_nowhere ? "" : "\"device\": 0, ", p->copy_bytes);
	plant_event(
		out, p, "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", begin, p->copy_us, args);
	begin += p->copy_us;
	(void)snprintf(args, sizeof args, "\"device\": 0, \"stream\": 7%s", p->odd);
	for (int i = 0; i < 2; i++)
		plant_event(out, p, "kernel", p->kernel, begin + i * p->kernels_us / 3,
			p->kernels_us * 2 / 3, args);
	plant_event(out, p, "kernel", "ncclDevKernel_AllReduce", begin + p->kernels_us, 10,
		"\"device\": 0, \"stream\": 20");
	plant_event(out, p, "gpu_user_annotation", "ProfilerStep#9", begin, p->kernels_us, "");
}

static void plant_step(struct buffer *out, const struct planted *p, int step)
{
	const double begin = step * p->period_us;
	char name[96];
	char dims[160];
	(void)snprintf(name, sizeof name, "ProfilerStep#%d", step + 2);
	if (p->device_first)
		plant_device(out, p, begin + p->wait_us + 100);
	if (p->annotated)
		plant_event(out, p, "user_annotation", name, begin, p->period_us - 10, "");
	if (p->wait_us > 0) {
		(void)snprintf(name, sizeof name,
			"enumerate(DataLoader)#_%sDataLoaderIter.__next__",
			p->alone ? "SingleProcess" : "MultiProcessing");
		plant_event(out, p, "user_annotation", name, begin, p->wait_us, "");
	}
	(void)snprintf(dims, sizeof dims,
		"\"Concrete Inputs\": [\"\", \"[2, 2]\"], \"Input Strides\": [[9, 1], []], \"Input Dims\": [[%d, 3, 224, 224], [64, 3, 7, 7], []]",
		p->batch);
	if (p->batch)
		plant_event(out, p, "cpu_op", "aten::conv2d", begin + p->wait_us + 50, 80, dims);
	for (int i = 0; i < 8; i++)
		plant_event(out, p, "cpu_op", "aten::empty", begin + p->wait_us + 200 + 10 * i, 3,
			"\"Input Dims\": [[], []]");
	if (p->optimizers)
		plant_event(out, p, "user_annotation", "Optimizer.step#SGD.step",
			begin + p->period_us - 500, 400, "");
	if (!p->device_first)
		plant_device(out, p, begin + p->wait_us + 100);
}

static void plant(struct buffer *out, const struct planted *p)
{
	buffer_text(out, p->legacy ? "[" : "{\n  \"schemaVersion\": 1,\n");
	if (p->rank >= 0)
		buffer_format(out,
			"  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %d, \"world_size\": %d, \"pg_config\": [{\"ranks\": [0, 1]}]},\n",
			p->rank, p->world);
	if (!p->legacy)
		buffer_format(out,
			"  \"deviceProperties\": [{\"id\": 0, \"name\": \"SECRET\"}%s],\n"
			"  \"displayTimeUnit\": \"ms\",\n  \"traceEvents\": [\n",
			p->devices > 1 ? ", {\"id\": 1, \"name\": \"SECRET\"}" : "");
	for (int step = 0; step < p->steps; step++)
		plant_step(out, p, step);
	buffer_text(out,
		p->legacy
			? "{\"name\": \"end\", \"ph\": \"i\"}]\n"
			: "  {\"name\": \"end\", \"ph\": \"i\", \"ts\": 1}\n  ],\n  \"traceName\": \"/home/SECRET/t.json\"\n}\n");
	assert_false(out->failed);
}

/* Of the trace that was read last. */
static struct findings findings;
static struct error err;

static int trace_read(const char *path)
{
	findings_close(&findings);
	findings_open(&findings);
	err = (struct error){0};
	return findings_from_trace(&findings, path, &err);
}

static int trace_of(const void *bytes, size_t size)
{
	char *path = trace_path("t.json");
	assert_int_equal(files_write_atomic(path, bytes, size, &err), 0);
	const int code = trace_read(path);
	if (code)
		assert_true(strlen(err.text) > 10 && !strchr(err.text, '\n'));
	for (size_t i = 0; i < findings.note_count; i++)
		assert_null(strstr(findings.notes[i], "SECRET"));
	assert_null(strstr(err.text, "SECRET"));
	return code;
}

static int trace_of_planted(const struct planted *p)
{
	struct buffer text = {0};
	plant(&text, p);
	const int code = trace_of(text.data, text.size);
	buffer_release(&text);
	return code;
}

static bool trace_notes(const char *words)
{
	for (size_t i = 0; i < findings.note_count; i++)
		if (strstr(findings.notes[i], words))
			return true;
	return false;
}

static void trace_expect(enum finding_id id, double value, enum finding_how how)
{
	expect_near(findings.known[id].value, value, fabs(value) * 1e-4 + 1e-9);
	assert_int_equal(findings.known[id].how, how);
	assert_int_equal(findings.known[id].source, SOURCE_TRACE);
}

static void trace_expect_usual(void)
{
	trace_expect(FINDING_STEP_PERIOD, 50e6, FINDING_MEASURED);
	trace_expect(FINDING_STEP_WAIT, 20e6, FINDING_MEASURED);
	trace_expect(FINDING_STEP_TIME, 30e6, FINDING_DERIVED);
	trace_expect(FINDING_UPLOAD_BYTES, 77070336, FINDING_MEASURED);
	trace_expect(FINDING_UPLOAD_TIME, 1.5e6, FINDING_MEASURED);
	trace_expect(FINDING_BATCH_SIZE, 128, FINDING_DERIVED);
	trace_expect(FINDING_THROUGHPUT, 2560, FINDING_DERIVED);
	/* two kernels that overlap; neither the copy nor the collective */
	expect_near(findings.known[FINDING_DEVICE_BUSY].value, 24e3 / 50e3, 1e-3);
	assert_int_equal(findings.step_count, 10);
	assert_true(findings.step_series);
	assert_int_equal(findings.step_is, FINDING_STEP_TIME);
	for (size_t i = 0; i < findings.step_count; i++)
		expect_near(findings.step_ns[i], 30e6, 20e3);
	assert_true(trace_notes("first step"));
}

static void test_usual(void **state)
{
	(void)state;
	assert_int_equal(trace_of_planted(&planted_usual), 0);
	trace_expect_usual();
	assert_int_equal(findings.known[FINDING_WORKERS].how, FINDING_ASSUMED);
	assert_true(trace_notes("idled 20.0 ms during waits"));
	/* a device's events may come before those of the threads */
	struct planted other = planted_usual;
	other.device_first = true;
	assert_int_equal(trace_of_planted(&other), 0);
	trace_expect_usual();
	other.capitals = true;
	assert_int_equal(trace_of_planted(&other), 0);
	trace_expect_usual();
}

static void test_packed(void **state)
{
	struct buffer text = {0};
	(void)state;
	plant(&text, &planted_usual);
	char *path = trace_path("t.json.gz");
	gzFile file = gzopen(path, "wb");
	assert_int_equal(gzwrite(file, text.data, (unsigned)text.size), (int)text.size);
	assert_int_equal(gzclose(file), Z_OK);
	assert_int_equal(trace_read(path), 0);
	trace_expect_usual();
	assert_false(trace_notes("end of the trace is missing"));
	/* torn: what was complete counts */
	char *bytes;
	size_t length;
	assert_int_equal(files_read(path, 1 << 20, &bytes, &length, &err), 0);
	assert_int_equal(trace_of(bytes, length * 2 / 3), 0);
	trace_expect(FINDING_STEP_PERIOD, 50e6, FINDING_MEASURED);
	assert_true(trace_notes("end of the trace is missing"));
	free(bytes);
	buffer_release(&text);
}

/* Work that the device does during the wait belongs to the step. */
static void test_wait_of_a_busy_device(void **state)
{
	struct planted p = planted_usual;
	(void)state;
	p.kernels_us = 40000; /* ends 11.61 ms into the next wait, with copy and collective */
	assert_int_equal(trace_of_planted(&p), 0);
	trace_expect(FINDING_STEP_PERIOD, 50e6, FINDING_MEASURED);
	trace_expect(FINDING_STEP_WAIT, 20e6 - 11.61e6, FINDING_DERIVED);
	trace_expect(FINDING_STEP_TIME, 30e6 + 11.61e6, FINDING_DERIVED);
	p.alone = true; /* then all of it is loading */
	assert_int_equal(trace_of_planted(&p), 0);
	trace_expect(FINDING_STEP_WAIT, 20e6, FINDING_MEASURED);
	trace_expect(FINDING_WORKERS, 0, FINDING_MEASURED);
}

static void test_other_steps(void **state)
{
	struct planted p = planted_usual;
	(void)state;
	p.annotated = false;
	assert_int_equal(trace_of_planted(&p), 0);
	trace_expect(FINDING_STEP_PERIOD, 50e6, FINDING_DERIVED);
	trace_expect(FINDING_STEP_WAIT, 20e6, FINDING_MEASURED);
	assert_int_equal(findings.step_count, 9);
	assert_true(trace_notes("requests for batches"));
	p.wait_us = 0;
	p.optimizers = true;
	assert_int_equal(trace_of_planted(&p), 0);
	trace_expect(FINDING_STEP_PERIOD, 50e6, FINDING_DERIVED);
	assert_int_equal(findings.known[FINDING_STEP_WAIT].how, FINDING_UNKNOWN);
	assert_int_equal(findings.known[FINDING_STEP_TIME].how, FINDING_UNKNOWN);
	assert_int_equal(findings.step_is, FINDING_STEP_PERIOD);
	assert_true(trace_notes("Optimizer.step()"));
	p.optimizers = false;
	assert_int_equal(trace_of_planted(&p), -EINVAL);
	assert_non_null(strstr(err.text, "no training steps"));
}

/* Builds without Kineto write an array, whole microseconds, and no device. */
static void test_legacy(void **state)
{
	struct planted p = planted_usual;
	(void)state;
	p.legacy = true;
	p.kernels_us = 0;
	assert_int_equal(trace_of_planted(&p), 0);
	trace_expect(FINDING_STEP_PERIOD, 50e6, FINDING_MEASURED);
	trace_expect(FINDING_STEP_WAIT, 20e6, FINDING_MEASURED);
	assert_int_equal(findings.known[FINDING_BATCH_SIZE].how, FINDING_UNKNOWN);
	assert_int_equal(findings.known[FINDING_DEVICE_BUSY].how, FINDING_UNKNOWN);
	assert_true(trace_notes("no events of a device"));
}

static void test_ranks(void **state)
{
	struct planted p = planted_usual;
	struct findings all;
	(void)state;
	findings_open(&all);
	for (int rank = 0; rank < 2; rank++) {
		p.rank = rank;
		p.world = 2;
		p.wait_us = 20000 + 4000 * rank;
		assert_int_equal(trace_of_planted(&p), 0);
		trace_expect(FINDING_RANKS, 2, FINDING_DERIVED);
		trace_expect(FINDING_THROUGHPUT, 5120, FINDING_DERIVED);
		assert_int_equal(findings.ranks, 1U << rank);
		assert_int_equal(findings_merge(&all, &findings, &err), 0);
	}
	findings_close(&findings);
	findings = all;
	trace_expect(FINDING_STEP_WAIT, 22e6, FINDING_MEASURED);
	expect_near(findings.known[FINDING_STEP_WAIT].low, 20e6, 1e4);
	expect_near(findings.known[FINDING_STEP_WAIT].high, 24e6, 1e4);
	trace_expect(FINDING_RANKS, 2, FINDING_DERIVED);
	p.world = 16; /* on several nodes: this process sees two devices */
	assert_int_equal(trace_of_planted(&p), 0);
	trace_expect(FINDING_RANKS, 2, FINDING_DERIVED);
}

/* Where a launcher gives each rank its own device, one trace knows of its own rank alone. */
static void test_one_rank_of_many(void **state)
{
	struct planted p = planted_usual;
	(void)state;
	p.rank = 3;
	p.world = 8;
	p.devices = 1;
	assert_int_equal(trace_of_planted(&p), 0);
	trace_expect(FINDING_RANKS, 1, FINDING_ASSUMED);
	trace_expect(FINDING_THROUGHPUT, 2560, FINDING_DERIVED);
	assert_true(trace_notes("one rank of 8"));
	/* of several such traces each is a rank of the node's */
	for (int rank = 4; rank < 7; rank++) {
		struct findings others = findings;
		findings = (struct findings){0};
		p.rank = rank;
		assert_int_equal(trace_of_planted(&p), 0);
		assert_int_equal(findings_merge(&others, &findings, &err), 0);
		findings_close(&findings);
		findings = others;
		trace_expect(FINDING_RANKS, rank - 2, FINDING_DERIVED);
		trace_expect(FINDING_THROUGHPUT, 2560 * (rank - 2), FINDING_DERIVED);
	}
}

/* Two batches for each annotated step: gradients are accumulated. */
static void test_accumulation(void **state)
{
	struct planted p = planted_usual;
	struct buffer text = {0};
	(void)state;
	buffer_text(&text, "{\"traceEvents\": [\n");
	for (int step = 0; step < 12; step++) {
		p.annotated = step % 2 == 0;
		plant_step(&text, &p, step);
		if (p.annotated)
			plant_event(&text, &p, "user_annotation", "ProfilerStep#1",
				step * p.period_us, 2 * p.period_us - 10, "");
	}
	buffer_text(&text, "{}]}");
	assert_int_equal(trace_of(text.data, text.size), 0);
	trace_expect(FINDING_STEP_PERIOD, 50e6, FINDING_DERIVED);
	buffer_release(&text);
}

static void test_units(void **state)
{
	struct planted p = planted_usual;
	(void)state;
	p.ts_factor = 1000; /* nanoseconds: operators of milliseconds */
	assert_int_equal(trace_of_planted(&p), -EINVAL);
	assert_non_null(strstr(err.text, "not in microseconds"));
	p.ts_factor = 0.0001;
	assert_int_equal(trace_of_planted(&p), -EINVAL);
	assert_non_null(strstr(err.text, "not in microseconds"));
}

/* --- what is wrong with them ------------------------------------------------------------------ */

static void trace_expect_no_device(void)
{
	assert_int_equal(findings.known[FINDING_DEVICE_BUSY].how, FINDING_UNKNOWN);
	assert_int_equal(findings.known[FINDING_UPLOAD_BYTES].how, FINDING_UNKNOWN);
	assert_int_equal(findings.known[FINDING_UPLOAD_TIME].how, FINDING_UNKNOWN);
	assert_true(trace_notes("how busy the device is"));
}

static void test_torn(void **state)
{
	struct buffer text = {0};
	(void)state;
	plant(&text, &planted_usual);
	for (size_t size = 0; size < text.size; size += 97) {
		const int code = trace_of(text.data, size);
		if (code == 0) {
			assert_true(trace_notes("end of the trace is missing"));
			trace_expect_no_device();
			trace_expect(FINDING_STEP_PERIOD, 50e6, FINDING_MEASURED);
			if (findings.known[FINDING_STEP_WAIT].how)
				trace_expect(FINDING_STEP_WAIT, 20e6, FINDING_DERIVED);
		}
		assert_true(code == 0 || code == -ENOMSG || code == -EINVAL);
		if (size > text.size / 2)
			assert_int_equal(code, 0);
	}
	buffer_release(&text);
}

/* Names and numbers that are no JSON cost no event: kernels, copies and steps are all there. */
static void test_odd_text(void **state)
{
	static const char *const kernels[] = {"void at::\x7f<\\lambda>", /* no escapes of JSON */
		"C:\\users\\unit\\u12", "a\x01\tb\nc", "say \"SECRET\" twice", "\\\\ \\\" \\u00e9",
		"\xff\xc0\x80", "inf, nan and {braces}", "ends with \\q", "ends with \\"};
	static const char *const odd[] = {", \"x\": nan",
		", \"x\": -inf, \"y\": [NaN, Infinity, 1e5]", ", \"x\": -Infinity",
		", \"inf\": null, \"nan\": true"};
	struct planted p = planted_usual;
	(void)state;
	for (size_t i = 0; i < COUNT(kernels) + COUNT(odd); i++) {
		p.kernel = i < COUNT(kernels) ? kernels[i] : planted_usual.kernel;
		p.odd = i < COUNT(kernels) ? "" : odd[i - COUNT(kernels)];
		assert_int_equal(trace_of_planted(&p), 0);
		trace_expect_usual();
		assert_int_equal(findings.known[FINDING_DEVICE_BUSY].how, FINDING_MEASURED);
		if (trace_notes("no JSON"))
			fail_msg("%zu is not mended", i);
	}
}

/* Times of zero are none.  Of the steps that have times the period is known; of the device nothing
 * is. */
static void test_zero_times(void **state)
{
	struct planted p = planted_usual;
	(void)state;
	p.zero_from = 6;
	assert_int_equal(trace_of_planted(&p), 0);
	trace_expect(FINDING_STEP_PERIOD, 50e6, FINDING_MEASURED);
	trace_expect(FINDING_THROUGHPUT, 2560, FINDING_DERIVED);
	trace_expect(FINDING_STEP_WAIT, 20e6, FINDING_DERIVED);
	trace_expect_no_device();
	assert_int_equal(findings.step_count, 5);
	assert_true(trace_notes("events without a usable time"));
	p.begin_us = 4000; /* times that count from nearly zero themselves */
	assert_int_equal(trace_of_planted(&p), 0);
	trace_expect(FINDING_STEP_PERIOD, 50e6, FINDING_MEASURED);
	trace_expect_no_device();
	p.begin_us = planted_usual.begin_us;
	p.zero_from = 1;
	assert_int_equal(trace_of_planted(&p), -EINVAL);
	assert_non_null(strstr(err.text, "events at time zero"));
}

/* Of two recordings in one file, the time between them is neither a step nor idleness of the
 * device. */
static void test_gap(void **state)
{
	struct planted p = planted_usual;
	(void)state;
	for (int annotated = 0; annotated < 2; annotated++) {
		p.annotated = annotated;
		p.gap_at = 6;
		assert_int_equal(trace_of_planted(&p), 0);
		trace_expect(
			FINDING_STEP_PERIOD, 50e6, annotated ? FINDING_MEASURED : FINDING_DERIVED);
		trace_expect(FINDING_STEP_WAIT, 20e6, FINDING_MEASURED);
		expect_near(findings.known[FINDING_DEVICE_BUSY].value, 24e3 / 50e3, 1e-3);
		trace_expect(FINDING_UPLOAD_BYTES, 77070336, FINDING_MEASURED);
		assert_int_equal(trace_notes("1 gap between recordings"), !annotated);
	}
}

/* Two traces made one: the steps of one process count, and which device is whose is not known. */
static void test_merged_ranks(void **state)
{
	struct planted p = planted_usual;
	struct buffer text = {0};
	(void)state;
	buffer_text(&text, "{\"traceEvents\": [\n");
	for (int step = 0; step < 11; step++)
		for (p.process = 2035; p.process < 2037; p.process++)
			plant_step(&text, &p, step);
	buffer_text(&text, "{}]}");
	assert_int_equal(trace_of(text.data, text.size), 0);
	trace_expect(FINDING_STEP_PERIOD, 50e6, FINDING_MEASURED);
	trace_expect(FINDING_RANKS, 2, FINDING_DERIVED);
	trace_expect(FINDING_THROUGHPUT, 5120, FINDING_DERIVED);
	trace_expect_no_device();
	assert_int_equal(findings.ranks, 0);
	assert_true(trace_notes("give one trace per rank"));
	/* in containers, both are process 1 */
	struct planted late = p;
	late.begin_us += 30000;
	text.size = 0;
	buffer_text(&text, "{\"traceEvents\": [\n");
	for (int step = 0; step < 11; step++) {
		plant_step(&text, &p, step);
		plant_step(&text, &late, step);
	}
	buffer_text(&text, "{}]}");
	assert_int_equal(trace_of(text.data, text.size), -EINVAL);
	assert_non_null(strstr(err.text, "steps of several ranks"));
	buffer_release(&text);
}

/* What is behind the end of a trace is told, and does not count. */
static void test_two_documents(void **state)
{
	struct buffer text = {0};
	(void)state;
	for (int i = 0; i < 2; i++) {
		plant(&text, &planted_usual);
		assert_int_equal(trace_of(text.data, text.size), 0);
		trace_expect_usual();
		assert_int_equal(trace_notes("more behind the end"), i);
	}
	buffer_release(&text);
}

static void test_copies_without_device(void **state)
{
	struct planted p = planted_usual;
	(void)state;
	p.copies_nowhere = true;
	assert_int_equal(trace_of_planted(&p), 0);
	trace_expect_usual();
	assert_true(isnan(findings.known[FINDING_DEVICE_BUSY].low)); /* one device */
	/* a device that only copies does not compute 0 % of the time */
	p.kernels_us = 0;
	struct buffer text = {0};
	buffer_text(&text, "{\"traceEvents\": [\n");
	for (int step = 0; step < 11; step++) {
		plant_step(&text, &p, step);
		plant_event(&text, &p, "gpu_memcpy", "Memcpy HtoD", step * p.period_us + 21000,
			1500, "\"bytes\": 5000");
	}
	buffer_text(&text, "{}]}");
	assert_int_equal(trace_of(text.data, text.size), 0);
	assert_int_equal(findings.known[FINDING_DEVICE_BUSY].how, FINDING_UNKNOWN);
	trace_expect(FINDING_UPLOAD_BYTES, 5000, FINDING_MEASURED);
	assert_true(trace_notes("no kernels"));
	buffer_release(&text);
}

/* Puts something in the middle of the array of events. */
static int trace_with(const char *what, size_t times)
{
	struct buffer text = {0};
	struct buffer bad = {0};
	plant(&text, &planted_usual);
	char *middle = strstr(text.data + text.size / 2, "  {\n    \"ph\"");
	assert_non_null(middle);
	buffer_add(&bad, text.data, (size_t)(middle - text.data));
	for (size_t i = 0; i < times; i++)
		buffer_text(&bad, what);
	buffer_text(&bad, middle);
	assert_false(bad.failed);
	const int code = trace_of(bad.data, bad.size);
	buffer_release(&bad);
	buffer_release(&text);
	return code;
}

static void test_broken_inside(void **state)
{
	static const struct {
		const char *what;
		size_t times;
		bool breaks;
		const char *note;
	} cases[] = {
		{"{\"ph\": \"X\", \"name\": \"x\", \"ts\": 1 2, \"dur\": 1},", 1, true,
			"no JSON in 1 place:"},
		{"{\"ph\": \"X\", \"name\": SECRET, \"ts\": 1, \"dur\": 1},", 3, true,
			"no JSON in 3 places"},
		{"{\"ph\": \"X\", \"name\": \"x\", \"ts\": NaN, \"dur\": 1},", 1, false,
			"1 event without a usable time"},
		{"]]]]}", 1, true, NULL},
		{"[", 1000, true, "no JSON"},
		{"{\"a\":", 100000, true, "no JSON"},
		{"{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"x\", \"ts\": 1, \"dur\": -5},",
			1, false, "1 event without a usable time"},
		{"{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"x\", \"ts\": 1e300, \"dur\": 1},",
			1, false, "without a usable time"},
		{"{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"x\", \"ts\": \"soon\", \"dur\": 1},",
			2, false, "2 events without"},
		{"{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"x\"},", 1, false,
			"without a usable time"},
		{"{\"ph\": \"X\", \"ph\": \"M\", \"cat\": \"kernel\", \"cat\": [], \"args\": 1, \"args\": {\"args\": {\"bytes\": 1}}},",
			1, false, NULL},
		{"{\"ph\": [\"X\"], \"ts\": {\"ts\": 1}, \"args\": [[[[1]]]]},", 1, false, NULL},
		{"1, \"x\", null, true, {}, [], [[]], {\"args\": {\"Input Dims\": [[[1,2],[3]], [1e400, -5], 7]}},",
			1, false, NULL},
		{"\xff\xfe\x01{{{", 5, true, "no JSON"},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(trace_with(cases[i].what, cases[i].times), 0);
		expect_near(findings.known[FINDING_STEP_PERIOD].value, 50e6, 1e6);
		if (cases[i].note)
			assert_true(trace_notes(cases[i].note));
		assert_int_equal(trace_notes("no JSON"), cases[i].breaks);
		if (cases[i].breaks)
			trace_expect_no_device();
	}
}

/* Text and lists without end are passed over; memory stays what it is. */
static void test_huge_values(void **state)
{
	static const char *const what[] = {"aaaaaaaaaaaaaaaa", "\\\"\\\"\\\"\\\"\\\"\\\"\\\"\\\"",
		"1234567812345678", "                ", "[[[[[[[[[[[[[[[["};
	(void)state;
	for (size_t i = 0; i < COUNT(what); i++) {
		struct buffer text = {0};
		struct buffer huge = {0};
		plant(&text, &planted_usual);
		char *middle = strstr(text.data + text.size / 2, "  {\n    \"ph\"");
		buffer_add(&huge, text.data, (size_t)(middle - text.data));
		if (i < 2)
			buffer_text(&huge, "{\"name\": \"");
		while (huge.size < 20 << 20)
			buffer_text(&huge, what[i]);
		if (i < 2)
			buffer_text(&huge, "\"},");
		if (i == 2)
			buffer_text(&huge, ",");
		buffer_text(&huge, middle);
		assert_int_equal(trace_of(huge.data, huge.size), 0);
		expect_near(findings.known[FINDING_STEP_PERIOD].value, 50e6, 1e6);
		assert_int_equal(findings.step_count, 10);
		buffer_release(&huge);
		buffer_release(&text);
	}
}

/* Ctrl-C is heeded while a trace is read, which may take minutes: this one is refused at its end only. */
static void test_stop(void **state)
{
	static const char text[] = "{\"schema\": ";
	struct source_more more;
	enum finding_source kind;
	atomic_bool stop = false;
	(void)state;
	assert_int_equal(files_write_atomic(trace_path("stop"), text, strlen(text), &err), 0);
	for (int i = 0; i < 2; i++) {
		findings_close(&findings);
		findings_open(&findings);
		source_more_open(&more);
		assert_int_equal(
			source_read(trace_path("stop"), &findings, &more, &kind, &stop, &err),
			stop ? -EINTR : -EINVAL);
		source_more_release(&more);
		stop = true;
	}
}

static void test_no_traces(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *says;
	} cases[] = {
		{"", -ENOMSG, "is empty"},
		{"step,time\n1,2\n", -ENOMSG, "no JSON"},
		{"\x1f\x8b\x08", -ENOMSG, ""},
		{"{}", -ENOMSG, "no list of events"},
		{"[]", -ENOMSG, "no list of events"},
		{"[1,2,3]", -ENOMSG, "no list of events"},
		{"[{\"step\": 1, \"time\": 2}, {\"step\": 2}]", -ENOMSG, "no list of events"},
		{"{\"a\": {\"traceEvents\": [{\"ph\": \"X\"}]}}", -ENOMSG, "no list of events"},
		{"{\"traceEvents\": {}}", -ENOMSG, "no list of events"},
		{"{\"schema\": ", -ENOMSG, "its end is missing"},
		{"{\"traceEvents\": []}", -EINVAL, "0 events"},
		{"{\"traceEvents\": [", -EINVAL, "its end is missing"},
		{"\xef\xbb\xbf {\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"devtools.timeline\", \"name\": \"RunTask\", \"ts\": 5, \"dur\": 1}]}",
			-EINVAL, "1 events, but no training steps"},
		{"{\"schema\": \"mlbench.timeline/1\", \"traceEvents\": [{\"ph\": \"X\", \"name\": \"step\", \"ts\": 5, \"dur\": 1}]}",
			-EINVAL, "is a timeline of mlbench"},
		{"{\"traceEvents\": [{\"ph\": \"X\", \"name\": \"ProfilerStep#1\", \"ts\": 5, \"dur\": 100000}]}",
			-EINVAL, "no training steps"},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(trace_of(cases[i].text, strlen(cases[i].text)), cases[i].code);
		assert_non_null(strstr(err.text, cases[i].says));
	}
	assert_int_equal(trace_read(work_folder), -EISDIR);
	assert_int_equal(trace_read("/nonexistent/t.json"), -ENOENT);
}

static int trace_prepare(void **state)
{
	(void)state;
	return mkdtemp(work_folder) ? 0 : -1;
}

static int trace_remove(void **state)
{
	(void)state;
	findings_close(&findings);
	return files_remove_tree(work_folder, &err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spans),
		cmocka_unit_test(test_spans_at_random),
		cmocka_unit_test(test_spans_without_room),
		cmocka_unit_test(test_usual),
		cmocka_unit_test(test_packed),
		cmocka_unit_test(test_wait_of_a_busy_device),
		cmocka_unit_test(test_other_steps),
		cmocka_unit_test(test_legacy),
		cmocka_unit_test(test_ranks),
		cmocka_unit_test(test_one_rank_of_many),
		cmocka_unit_test(test_accumulation),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_odd_text),
		cmocka_unit_test(test_zero_times),
		cmocka_unit_test(test_gap),
		cmocka_unit_test(test_merged_ranks),
		cmocka_unit_test(test_two_documents),
		cmocka_unit_test(test_copies_without_device),
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_broken_inside),
		cmocka_unit_test(test_huge_values),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_no_traces),
	};
	return cmocka_run_group_tests(tests, trace_prepare, trace_remove);
}
