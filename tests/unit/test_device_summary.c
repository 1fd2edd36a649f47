/* A device over repetitions, and what is said of it: figures by hand, never a zero for what is not known. */
#include "harness/record/measurement.h"
#include "harness/report/device_report.h"
#include "harness/report/summary_tables.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* after the others */
#include <cmocka.h>

enum { REPEATS_HERE = 3 };

static struct measurement measurements[REPEATS_HERE];
static const struct measurement *const repeats[REPEATS_HERE] = {
	&measurements[0], &measurements[1], &measurements[2]};
static const struct point_facts facts = {.cores = 2, .decode_workers = 2, .batch_size = 10};

/* Repeat r: 10 s, 200 batches on two devices, each 8 + r / 10 s in a step. */
static void fill(unsigned r)
{
	struct measurement *m = &measurements[r];
	*m = (struct measurement){.repeat = r,
		.status = MEASUREMENT_OK,
		.measured_seconds = 10,
		.batches = 200,
		.samples = 2000,
		.throughput = 200,
		.loss_first = 6.9077,
		.device_count = 2};
	for (unsigned i = 0; i < 2; i++) {
		struct device_measurement *d = &m->devices[i];
		device_measurement_init(d);
		d->index = i;
		(void)snprintf(d->name, sizeof d->name, "NVIDIA H200");
		(void)snprintf(d->precision, sizeof d->precision, "bf16");
		d->deterministic = true;
		d->step_seconds = 8 + r / 10.0;
		d->achieved_flops = 600e12;
		d->flops_per_step = 1e13;
		d->peak_flops = 1000e12;
		d->model_utilisation = 0.48 + 0.01 * r;
		d->idle_share = 0.013;
		d->launch_ns = 300e3;
		d->upload_seconds = 1;
		d->upload_bytes = 12.5 * (1 << 30);
		d->clock_map_error_ns = 1000 * r;
	}
}

static void sampled(struct device_measurement *d, double low, double mean, double high)
{
	d->samples = 100;
	d->sm_clock_mhz = (struct device_range){low, mean, high};
	d->sm_clock_max_mhz = 1980;
	d->power_w = (struct device_range){400, 612, 690};
	d->temperature_c = (struct device_range){61, 61, 61};
	d->ecc_corrected = 1;
	d->ecc_uncorrected = 0;
}

static void throttled(struct device_measurement *d, const char *reason, double share)
{
	(void)snprintf(d->throttles[d->throttle_count].reason, NAME_BYTES, "%s", reason);
	d->throttles[d->throttle_count++].share = share;
}

static void fill_all(void)
{
	for (unsigned r = 0; r < REPEATS_HERE; r++)
		fill(r);
}

static void assert_near(double got, double expected)
{
	if (!(fabs(got - expected) <= 1e-9 * (1 + fabs(expected))))
		fail_msg("got %.12g, expected %.12g", got, expected);
}

static void repetitions_are_merged(void **state)
{
	(void)state;
	static struct device_summary devices[DEVICES_MAX];
	fill_all();
	sampled(&measurements[0].devices[0], 1700, 1900, 1980);
	sampled(&measurements[2].devices[0], 1695, 1800, 1950);
	throttled(&measurements[0].devices[0], "power cap", 0.1);
	throttled(&measurements[2].devices[0], "thermal", 0.5);
	throttled(&measurements[2].devices[0], "power cap", 0.2);
	measurements[1].devices[0].gradient_norm = 2.5;
	measurements[1].devices[0].nonfinite_share = 0;
	measurements[2].devices[1].deterministic = false;
	assert_int_equal(device_summaries(repeats, REPEATS_HERE, devices), 2);
	const struct device_summary *d = &devices[0];
	assert_near(d->all.step_seconds, 8.1);
	/* 100 steps in each repetition on each device. */
	assert_near(d->step_ns, 81e6);
	assert_near(d->step_share, 0.81);
	assert_near(d->peak_share, 0.6);
	assert_near(d->all.model_utilisation, 0.49);
	assert_near(d->upload_bytes_per_s, 12.5 * (1 << 30));
	assert_near(d->all.clock_map_error_ns, 2000);
	/* The repetition that was not sampled counts in none of these. */
	assert_near(d->all.sm_clock_mhz.low, 1695);
	assert_near(d->all.sm_clock_mhz.mean, 1850);
	assert_near(d->all.sm_clock_mhz.high, 1980);
	assert_near(d->all.ecc_corrected, 2);
	assert_near(d->all.samples, 200);
	assert_int_equal(d->all.throttle_count, 2);
	assert_string_equal(d->all.throttles[0].reason, "thermal");
	assert_near(d->all.throttles[0].share, 0.25);
	assert_near(d->all.throttles[1].share, 0.15);
	assert_near(d->all.gradient_norm, 2.5);
	assert_true(d->all.deterministic && !devices[1].all.deterministic);
	/* Of the other nothing was sampled. */
	assert_true(isnan(devices[1].all.sm_clock_mhz.low) && isnan(devices[1].all.ecc_corrected));
	assert_int_equal(devices[1].all.throttle_count, 0);
}

static void losses_are_compared_bit_by_bit(void **state)
{
	(void)state;
	fill_all();
	assert_int_equal(device_same_results(repeats, REPEATS_HERE), SAME_YES);
	assert_int_equal(device_same_results(repeats, 1), SAME_UNKNOWN);
	measurements[2].loss_first = nextafter(measurements[2].loss_first, 10);
	assert_int_equal(device_same_results(repeats, REPEATS_HERE), SAME_NO);
	measurements[1].loss_first = NAN;
	assert_int_equal(device_same_results(repeats, REPEATS_HERE), SAME_UNKNOWN);
}

static struct point_summary *summarised(void)
{
	static struct point_summary point;
	struct error err;
	assert_int_equal(summary_of_point(repeats, REPEATS_HERE, &facts, &point, &err), 0);
	return &point;
}

static const char *text_of(const struct point_summary *point)
{
	static const char *const same[] = {[SAME_YES] = "same", [SAME_NO] = "different"};
	static char copy[8192];
	static const struct style style = {.width = 400, .utf8 = true};
	struct buffer out = {0};
	struct medium medium = medium_terminal(&style, &out);
	json_t *json = json_pack("{s:o}", "devices", device_summaries_to_json(point));
	assert_non_null(json);
	if (same[point->same_results])
		json_object_set_new(json, "first_losses", json_string(same[point->same_results]));
	summary_devices(&medium, json);
	json_decref(json);
	(void)snprintf(copy, sizeof copy, "%s", out.data ? out.data : "");
	buffer_release(&out);
	return copy;
}

static void assert_says(const char *text, const char *words)
{
	if (!strstr(text, words))
		fail_msg("'%s' is not in: %s", words, text);
}

static void a_device_is_described(void **state)
{
	(void)state;
	fill_all();
	for (unsigned r = 0; r < REPEATS_HERE; r++) {
		sampled(&measurements[r].devices[0], 1695, 1910, 1980);
		throttled(&measurements[r].devices[0], "power cap", 0.12);
	}
	struct point_summary *point = summarised();
	const char *text = text_of(point);
	assert_says(text,
		"device 0 NVIDIA H200 bf16: step 81.0 ms; in a step 81.0% of the time; "
		"600 TFLOP/s in a step, 60 % of the published peak (model utilisation over all "
		"time 49 %); idle inside a step 1.30%; launch 300 us; upload 12.5 GiB/s");
	assert_says(text, "clock 1910 (1695-1980) MHz of 1980; power 612 (400-690) W; 61 C; "
			  "throttled: power cap 12.0%; memory errors: 3 corrected");
	assert_says(text, "device 1 NVIDIA H200 bf16: step 81.0 ms");
	assert_says(text, "bit-identical: yes, as the libraries promise");
	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "kernel"));
	point_summary_release(point);
}

static void what_is_not_known_is_left_out(void **state)
{
	(void)state;
	fill_all();
	for (unsigned r = 0; r < REPEATS_HERE; r++) {
		struct measurement *m = &measurements[r];
		m->device_count = 1;
		m->loss_first = NAN;
		device_measurement_init(&m->devices[0]);
		(void)snprintf(m->devices[0].name, sizeof m->devices[0].name, "GPU \x1b[31m\n");
		m->devices[0].achieved_flops = 1e12;
	}
	struct point_summary *point = summarised();
	const char *text = text_of(point);
	assert_says(text, "device 0 GPU ?[31m?: 1 TFLOP/s in a step, peak unknown\n");
	assert_says(text, "bit-identical: not promised\n");
	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "MHz"));
	assert_null(strstr(text, "errors"));
	assert_null(strstr(text, "throttled"));
	point_summary_release(point);
}

static void an_emulated_device_is_brief(void **state)
{
	(void)state;
	fill_all();
	for (unsigned r = 0; r < REPEATS_HERE; r++) {
		struct measurement *m = &measurements[r];
		m->device_count = 1;
		device_measurement_init(&m->devices[0]);
		(void)snprintf(m->devices[0].name, sizeof m->devices[0].name, "emulated h100");
		m->devices[0].emulated = true;
		m->devices[0].step_seconds = 5;
	}
	struct point_summary *point = summarised();
	assert_string_equal(text_of(point),
		"  device 0 emulated h100: step 25.0 ms; in a step 50.0% of the time\n");
	point_summary_release(point);
}

static void broken_promises_and_lost_bits_are_loud(void **state)
{
	(void)state;
	fill_all();
	measurements[1].loss_first = 7;
	sampled(&measurements[0].devices[1], 1, 2, 3);
	measurements[0].devices[1].ecc_uncorrected = 4;
	struct point_summary *point = summarised();
	const char *text = text_of(point);
	assert_says(text, "bit-identical: NO, though the libraries promise it");
	assert_says(text, "memory errors: 1 corrected, 4 UNCORRECTED");
	point_summary_release(point);
	struct point_facts any = facts;
	any.any_order = true;
	struct error err;
	assert_int_equal(summary_of_point(repeats, REPEATS_HERE, &any, point, &err), 0);
	assert_int_equal(point->same_results, SAME_UNKNOWN);
	point_summary_release(point);
}

/* Each null of an object is in its "missing". */
static void assert_explained(json_t *object)
{
	const char *name;
	json_t *value;
	const json_t *missing = json_object_get(object, "missing");
	json_object_foreach(object, name, value)
	{
		if (json_is_null(value) && !json_string_value(json_object_get(missing, name)))
			fail_msg("'%s' is null without a reason", name);
	}
	json_object_foreach(json_object_get(object, "missing"), name, value)
	{
		assert_true(json_is_null(json_object_get(object, name)));
	}
}

static void every_null_has_its_reason(void **state)
{
	(void)state;
	fill_all();
	measurement_note(&measurements[0],
		"device 0: power, corrected memory errors unknown: not supported by this device");
	sampled(&measurements[0].devices[0], 1695, 1910, 1980);
	measurements[0].devices[0].power_w = (struct device_range){NAN, NAN, NAN};
	measurements[1].devices[0].emulated = true;
	struct point_summary *point = summarised();
	json_t *devices = device_summaries_to_json(point);
	assert_int_equal(json_array_size(devices), 2);
	json_t *first = json_array_get(devices, 0);
	assert_explained(first);
	assert_explained(json_array_get(devices, 1));
	assert_near(json_real_value(json_object_get(first, "step_ms")), 81);
	assert_near(
		json_real_value(json_array_get(json_object_get(first, "sm_clock_mhz"), 1)), 1910);
	assert_non_null(strstr(
		json_string_value(json_object_get(json_object_get(first, "missing"), "power_w")),
		"not supported by this device"));
	json_decref(devices);
	point_summary_release(point);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(repetitions_are_merged),
		cmocka_unit_test(losses_are_compared_bit_by_bit),
		cmocka_unit_test(a_device_is_described),
		cmocka_unit_test(what_is_not_known_is_left_out),
		cmocka_unit_test(an_emulated_device_is_brief),
		cmocka_unit_test(broken_promises_and_lost_bits_are_loud),
		cmocka_unit_test(every_null_has_its_reason),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
