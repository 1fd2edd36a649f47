/* Latency and device told apart on traces whose truth is known: a reader with so many files in flight in
 * front of a latency, a serial device, or both, with a cache or without. */
#include "harness/analyze/model_costs.h"

#include "harness/base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FILES = 6000, BLOCK = 64, DEPTH_MAX = 64 };

struct plant {
	unsigned depth;
	double cpu_us;     /* of the reader, before each submission */
	double latency_us; /* mean */
	double latency_cv;
	double ns_per_byte; /* of the serial device */
	double fixed_us;    /* likewise, per file */
	double bytes_cv;
	double hit_share; /* answered at once */
	/* A consumer that takes so long per file lets the reader run ahead by twice the depth. */
	double consumer_us;
	double noise_us;  /* of time stamps */
	double notice_us; /* until the reader sees a completion, after its time stamp */
	uint64_t seed;
};

struct made {
	struct trace_item items[FILES];
	size_t count;
	double device_busy, latency_mean_ns, device_mean_ns;
};

static double log_normal(struct rng *rng, double mean, double cv)
{
	if (cv <= 0)
		return mean;
	const double s2 = log1p(cv * cv);
	return mean * exp(sqrt(s2) * rng_normal(rng) - s2 / 2);
}

/* The place of the earliest of n. */
static size_t earliest(const double *times, size_t n)
{
	size_t at = 0;
	for (size_t i = 1; i < n; i++)
		at = times[i] < times[at] ? i : at;
	return at;
}

static bool kept(uint64_t number)
{
	return number / BLOCK % 3 == 1;
}

static struct made *make(const struct plant *s)
{
	struct made *made = calloc(1, sizeof *made);
	struct rng rng;
	rng_init(&rng, 17, s->seed);
	double flying[DEPTH_MAX];
	double consumed[2 * DEPTH_MAX + FILES];
	unsigned in_flight = 0;
	double now = 0;
	double device_free = 0;
	double busy = 0;
	double latency = 0;
	double consumer_free = 0;
	for (uint64_t t = 0; t < FILES; t++) {
		while (in_flight == s->depth) {
			const size_t first = earliest(flying, in_flight);
			now = fmax(now, flying[first]);
			flying[first] = flying[--in_flight];
		}
		if (s->consumer_us > 0 && t >= 2 * s->depth)
			now = fmax(now, consumed[t - 2 * s->depth]);
		for (size_t i = 0; i < in_flight;)
			if (flying[i] <= now)
				flying[i] = flying[--in_flight];
			else
				i++;
		const double submitted = now;
		now += s->cpu_us * 1e3;
		const double bytes = fmax(log_normal(&rng, 100000, s->bytes_cv), 1000);
		const double wait = log_normal(&rng, s->latency_us * 1e3, s->latency_cv);
		double done = now;
		if (rng_uniform(&rng) >= s->hit_share) {
			const double service = s->fixed_us * 1e3 + s->ns_per_byte * bytes;
			done = now + wait;
			if (service > 0) {
				done = fmax(done, device_free) + service;
				device_free = done;
			}
			busy += service;
			latency += wait;
		}
		flying[in_flight++] = done + s->notice_us * 1e3 * rng_exponential(&rng);
		consumer_free = fmax(consumer_free, done) + s->consumer_us * 1e3;
		consumed[t] = consumer_free;
		if (!kept(t))
			continue;
		done += s->noise_us * 1e3 * rng_exponential(&rng);
		made->items[made->count++] = (struct trace_item){
			.number = t,
			.end_s = done / 1e9,
			.bytes = (uint32_t)bytes,
			.in_flight = in_flight,
			.service_ns = (float)(done - submitted),
		};
	}
	made->device_busy = busy / now;
	made->device_mean_ns = busy / FILES;
	made->latency_mean_ns = latency / FILES;
	return made;
}

static struct read_split split(const struct plant *s, const struct made *made)
{
	float *latency = calloc(FILES, sizeof *latency);
	float *device = calloc(FILES, sizeof *device);
	const struct read_facts facts = {.cpu_ns = s->cpu_us * 1e3,
		.within_ns = s->cpu_us * 1e3,
		.threads = 1,
		.depth = s->depth};
	struct read_split out;
	assert_int_equal(read_split(made->items, made->count, &facts, latency, device, &out), 0);
	for (size_t i = 0; i < made->count; i++)
		assert_true(latency[i] >= 0 && device[i] >= 0);
	free(latency);
	free(device);
	return out;
}

static void describe(const char *what, const struct made *made, const struct read_split *out)
{
	print_message(
		"%-34s truth: latency %7.0f device %6.0f us busy %.2f; found: %7.0f %6.0f us busy "
		"%.2f hits %.2f, errors %.3f %.3f%s\n",
		what, made->latency_mean_ns / 1e3, made->device_mean_ns / 1e3, made->device_busy,
		out->latency_ns / 1e3, out->device_ns / 1e3, out->device_share, out->hit_share,
		out->error_latency, out->error_device, out->identified ? "" : ", not identified");
}

struct named {
	const char *name;
	struct plant plant;
};

static void devices_are_found(void **state)
{
	(void)state;
	static const struct named cases[] = {
		{"link, saturated", {8, 10, 50, 0, 10, 0, 0.4, 0, 0, 5, 20, 1}},
		{"link, saturated, equal files", {8, 10, 50, 0, 10, 0, 0, 0, 0, 1, 20, 2}},
		{"link, saturated, depth 32", {32, 10, 50, 0, 5, 0, 0.4, 0, 0, 5, 20, 3}},
		{"requests, saturated", {8, 10, 50, 0, 0, 500, 0.4, 0, 0, 5, 20, 4}},
		{"link behind 3 ms, saturated", {8, 10, 3000, 0, 10, 0, 0.4, 0, 0, 20, 20, 5}},
		{"link, 80 % busy", {8, 10, 50, 0, 10, 0, 0.4, 0, 1250, 5, 20, 6}},
		{"link, fluttering stamps", {8, 10, 50, 0, 10, 0, 0.4, 0, 0, 100, 20, 7}},
		{"link, a third cached", {8, 10, 50, 0, 10, 0, 0.4, 0.35, 0, 5, 20, 8}},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct made *made = make(&cases[i].plant);
		const struct read_split out = split(&cases[i].plant, made);
		describe(cases[i].name, made, &out);
		assert_true(out.identified);
		assert_true(fabs(out.device_ns / made->device_mean_ns - 1) < 0.05);
		/* What a queue always hides is not known; it must not be beyond what was seen. */
		if (out.device_share < 0.97)
			assert_true(out.latency_ns < made->latency_mean_ns * 1.1 + 150e3);
		free(made);
	}
}

static void latencies_are_no_device(void **state)
{
	(void)state;
	static const struct named cases[] = {
		{"constant", {8, 10, 5000, 0, 0, 0, 0.4, 0, 0, 20, 20, 1}},
		{"constant, equal files", {8, 10, 5000, 0, 0, 0, 0, 0, 0, 20, 20, 2}},
		{"varied", {8, 10, 5000, 0.3, 0, 0, 0.4, 0, 0, 20, 20, 3}},
		{"long tailed", {16, 10, 5000, 1, 0, 0, 0.4, 0, 0, 20, 20, 4}},
		{"of a reader held up", {8, 10, 2000, 0.2, 0, 0, 0.4, 0, 600, 20, 20, 5}},
		{"a third cached", {8, 10, 5000, 0.2, 0, 0, 0.4, 0.35, 0, 20, 20, 6}},
		{"depth 2", {2, 10, 2000, 0.2, 0, 0, 0.4, 0, 0, 20, 20, 7}},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct made *made = make(&cases[i].plant);
		const struct read_split out = split(&cases[i].plant, made);
		describe(cases[i].name, made, &out);
		assert_true(out.device_ns < 0.03 * made->latency_mean_ns);
		assert_true(fabs(out.latency_ns / made->latency_mean_ns - 1) < 0.05);
		free(made);
	}
}

/* What the reader copies itself in the call is CPU time, and counted once. */
static void the_page_cache_is_cpu(void **state)
{
	(void)state;
	const struct plant s = {8, 30, 0, 0, 0, 0, 0.4, 0, 0, 1, 20, 1};
	struct made *made = make(&s);
	const struct read_split out = split(&s, made);
	describe("page cache", made, &out);
	assert_true(out.device_ns == 0);
	assert_true(out.latency_ns < 0.2 * s.cpu_us * 1e3);
	free(made);
}

static void one_at_a_time_is_latency(void **state)
{
	(void)state;
	const struct plant s = {1, 10, 50, 0, 10, 0, 0.4, 0, 0, 5, 20, 1};
	struct made *made = make(&s);
	const struct read_split out = split(&s, made);
	describe("link at depth 1", made, &out);
	assert_true(out.device_ns == 0 && !out.identified);
	assert_true(
		fabs(out.latency_ns / (made->latency_mean_ns + made->device_mean_ns) - 1) < 0.05);
	free(made);
}

static void next_to_nothing(void **state)
{
	(void)state;
	struct read_split out;
	float a[4];
	float b[4];
	const struct read_facts facts = {.threads = 1, .depth = 8};
	assert_int_equal(read_split(NULL, 0, &facts, a, b, &out), 0);
	assert_true(out.latency_ns == 0 && !out.identified);
	const struct trace_item same[3] = {{.number = 1}, {.number = 2}, {.number = 3}};
	assert_int_equal(read_split(same, 3, &facts, a, b, &out), 0);
	assert_true(out.latency_ns == 0 && out.device_ns == 0);
	struct trace_item still[100];
	float many[100];
	float more[100];
	for (uint64_t i = 0; i < 100; i++)
		still[i] = (struct trace_item){.number = i};
	assert_int_equal(read_split(still, 100, &facts, many, more, &out), 0);
	assert_true(out.latency_ns == 0 && out.device_ns == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_are_found),
		cmocka_unit_test(latencies_are_no_device),
		cmocka_unit_test(the_page_cache_is_cpu),
		cmocka_unit_test(one_at_a_time_is_latency),
		cmocka_unit_test(next_to_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
