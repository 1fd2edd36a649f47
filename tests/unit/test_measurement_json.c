/* Repetitions as JSON: read back the same, and nonsense is refused. */
#include "harness/record/measurement.h"
#include "tests/unit/record_fixture.h"

#include <errno.h>
#include <string.h>

static void measurement_round_trip(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct measurement *m = make_measurement(1, 2, seed);
		struct measurement back;
		struct error err;
		m->status = (enum measurement_status)(seed % 4);
		json_t *object = measurement_to_json(m);
		char *text = json_dumps(object, JSON_COMPACT);
		json_t *again = json_loads(text, 0, NULL);
		assert_non_null(again);
		assert_int_equal(measurement_from_json(&back, again, &err), 0);
		assert_same(m, &back);
		json_decref(object);
		json_decref(again);
		free(text);
		measurement_release(&back);
		measurement_release(m);
		free(m);
	}
}

/* What a rank saw of its rounds, to the last one; a list that is too long is refused. */
static void rounds_of_ranks_come_back(void **state)
{
	(void)state;
	struct measurement *m = make_measurement(1, 2, 3);
	struct measurement back;
	struct error err;
	struct ranks_measurement *const ranks = &m->ranks[m->ranks_count++];
	*ranks = (struct ranks_measurement){.rank = 2,
		.count = 4,
		.host = "gpu-07",
		.rounds = 1ULL << 40,
		.late_seconds = 0.25,
		.worst_count = LATE_ROUNDS_MAX,
		.rounds_seconds = 7.25,
		.siblings_cores = 1.5,
		.crowd = 2,
		.clock_error_ns = 41000};
	for (size_t i = 0; i < LATE_ROUNDS_MAX; i++) {
		ranks->worst[i] = (struct late_round){
			.step = (1ULL << 40) + i, .late_ns = (1ULL << 33) - i, .rank = 3};
		histogram_add(&ranks->lateness, ranks->worst[i].late_ns, 7);
	}
	json_t *object = measurement_to_json(m);
	assert_int_equal(measurement_from_json(&back, object, &err), 0);
	assert_int_equal(back.ranks_count, 1);
	assert_memory_equal(&back.ranks[0].lateness, &ranks->lateness, sizeof ranks->lateness);
	assert_int_equal(back.ranks[0].worst_count, LATE_ROUNDS_MAX);
	for (size_t i = 0; i < LATE_ROUNDS_MAX; i++) {
		assert_int_equal(back.ranks[0].worst[i].step, ranks->worst[i].step);
		assert_int_equal(back.ranks[0].worst[i].late_ns, ranks->worst[i].late_ns);
		assert_int_equal(back.ranks[0].worst[i].rank, 3);
	}
	measurement_release(&back);
	json_t *worst =
		json_object_get(json_array_get(json_object_get(object, "ranks"), 0), "worst");
	(void)json_array_append_new(worst, json_pack("[i, i, i]", 1, 2, 3));
	assert_int_equal(measurement_from_json(&back, object, &err), -EINVAL);
	measurement_release(&back);
	json_decref(object);
	measurement_release(m);
	free(m);
}

/* Older results have another checksum under another name, which is held beside no newer one. */
static void an_older_checksum_is_none(void **state)
{
	(void)state;
	struct measurement m;
	struct error err;
	json_t *object = json_pack("{s:s, s:i, s:b, s:s}", "status", "ok", "point", 0,
		"has_checksum", 1, "checksum", "0123456789abcdef");
	assert_int_equal(measurement_from_json(&m, object, &err), 0);
	assert_false(m.has_checksum);
	measurement_release(&m);
	json_decref(object);
}

/* Every member of the wrong kind is refused, not read as something else. */
static void measurement_refuses_nonsense(void **state)
{
	static const char *const rows[] = {
		"{}",
		"[]",
		"{\"status\": \"ok\"}",
		"{\"status\": \"fine\", \"point\": 0}",
		"{\"status\": \"ok\", \"point\": \"0\"}",
		"{\"status\": \"ok\", \"point\": -1}",
		"{\"status\": \"ok\", \"point\": 4294967296}",
		"{\"status\": \"ok\", \"point\": 0, \"throughput\": \"fast\"}",
		"{\"status\": \"ok\", \"point\": 0, \"has_checksum\": 1}",
		"{\"status\": \"ok\", \"point\": 0, \"stages\": [1,2,3,4,5,6,7,8,9]}",
		"{\"status\": \"ok\", \"point\": 0, \"stages\": [{\"service\": {\"buckets\": [[99999, 1]]}}]}",
		"{\"status\": \"ok\", \"point\": 0, \"stages\": [{\"service\": {\"buckets\": [[1, -1]]}}]}",
		"{\"status\": \"ok\", \"point\": 0, \"windows\": [[1, 2]]}",
		"{\"status\": \"ok\", \"point\": 0, \"window_columns\": [\"t\"], \"windows\": [[1, 2]]}",
		"{\"status\": \"ok\", \"point\": 0, \"windows\": [1]}",
		"{\"status\": \"ok\", \"point\": 0, \"engine\": 3}",
		"{\"status\": \"ok\", \"point\": 0, \"devices\": 1}",
		"{\"status\": \"ok\", \"point\": 0, \"devices\": [7]}",
		"{\"status\": \"ok\", \"point\": 0, \"devices\": [{\"name\": 7}]}",
		"{\"status\": \"ok\", \"point\": 0, \"devices\": [{\"step_seconds\": \"long\"}]}",
		"{\"status\": \"ok\", \"point\": 0, \"devices\": [{\"power_w\": 600}]}",
		"{\"status\": \"ok\", \"point\": 0, \"devices\": [{\"power_w\": [1, 2]}]}",
		"{\"status\": \"ok\", \"point\": 0, \"devices\": [{\"throttles\": [[1, \"thermal\"]]}]}",
		"{\"status\": \"ok\", \"point\": 0, \"devices\": [{\"throttles\": [0,0,0,0,0,0,0,0,0]}]}",
		"{\"status\": \"ok\", \"point\": 0, \"devices\": [{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}]}",
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct measurement m;
		struct error err = {0};
		json_t *object = json_loads(rows[i], 0, NULL);
		assert_non_null(object);
		if (measurement_from_json(&m, object, &err) != -EINVAL || !err.text[0])
			fail_msg("row %zu was taken: %s", i, rows[i]);
		measurement_release(&m);
		json_decref(object);
	}
}

/* A file of before: what it does not have is NAN, 0 or "". */
static void an_older_line_is_read(void **state)
{
	static const char line[] =
		"{\"status\": \"ok\", \"point\": 0, \"throughput\": 5,"
		"\"stages\": [{\"name\": \"read\", \"cpu_seconds\": 2, \"seconds\": [1, 2, 3]}],"
		"\"queues\": [{\"name\": \"samples\"}],"
		"\"window_columns\": [\"t\", \"samples\", \"bytes_read\", \"resident_bytes\","
		"\"read.starved\", \"read.working\", \"read.blocked\", \"read.cpu\", \"samples.depth\"],"
		"\"windows\": [[0.1, 10, 20, 30, 0.25, 0.5, 0.75, null, 7]]}";
	(void)state;
	struct measurement m;
	struct error err = {0};
	json_t *object = json_loads(line, 0, NULL);
	assert_non_null(object);
	if (measurement_from_json(&m, object, &err))
		fail_msg("%s", err.text);
	assert_true(m.throughput == 5 && m.stages[0].cpu_seconds == 2);
	assert_true(isnan(m.stages[0].io_wait_seconds) && isnan(m.stages[0].lock_wait_seconds));
	assert_true(isnan(m.warmup_seconds) && isnan(m.steal_share) && isnan(m.file_bytes_mean));
	assert_true(isnan(m.quota_cores) && isnan(m.throttled_seconds) && !m.quota_group[0]);
	assert_true(isnan(m.store.reads_per_s) && isnan(m.store.bytes_limit));
	assert_string_equal(m.store.why, "an older result");
	assert_string_equal(m.engine, "");
	assert_int_equal(m.dataset_samples, 0);
	assert_int_equal(m.window_count, 1);
	const struct window *w = &m.windows[0];
	assert_true(w->t == 0.1 && w->samples == 10 && w->bytes_read == 20);
	assert_true(w->resident_bytes == 30 && w->stage_seconds[0][THREAD_WORKING] == 0.5);
	assert_true(w->stage_seconds[0][THREAD_BLOCKED] == 0.75 && isnan(w->stage_cpu[0]));
	assert_int_equal(w->queue_depth[0], 7);
	assert_int_equal(w->file_bytes, 0);
	assert_int_equal(w->stage_allocated[0], 0);
	assert_true(isnan(w->heap_used_bytes) && isnan(w->heap_free_bytes));
	assert_true(isnan(w->own_cpu) && isnan(w->machine_cpu) && isnan(w->stage_run_queue[0]));
	assert_true(isnan(w->quota_periods) && isnan(w->throttled_seconds));
	assert_int_equal(m.device_count, 0);
	assert_true(isnan(w->device_clock_mhz) && isnan(w->device_temperature_c));
	measurement_release(&m);
	json_decref(object);
}

/* What a device did not say stays unknown; names that are no UTF-8 are made some. */
static void a_device_of_few_words(void **state)
{
	(void)state;
	struct measurement *m = make_measurement(0, 0, 3);
	struct measurement back;
	struct error err;
	m->device_count = 1;
	device_measurement_init(&m->devices[0]);
	memcpy(m->devices[0].name, "GPU \xff\xc3", 7);
	json_t *object = measurement_to_json(m);
	assert_non_null(object);
	const json_t *device = json_array_get(json_object_get(object, "devices"), 0);
	assert_true(json_is_null(json_object_get(device, "power_w")));
	assert_true(json_is_null(json_object_get(device, "busy_share")));
	assert_int_equal(measurement_from_json(&back, object, &err), 0);
	assert_string_equal(back.devices[0].name, "GPU ??");
	assert_true(isnan(back.devices[0].power_w.mean) && isnan(back.devices[0].launch_ns));
	assert_int_equal(back.devices[0].throttle_count, 0);
	json_decref(object);
	measurement_release(&back);
	measurement_release(m);
	free(m);
}

static void cold_that_did_not_last(void **state)
{
	(void)state;
	char words[COLD_ENDED_BYTES];
	assert_true(measurement_cold_ended(1, 1, words));
	assert_string_equal(words,
		"read.cache = cold ended with the first epoch, before the measurement; all that was measured came from "
		"memory. For a cold measurement use more samples, a shorter measure.duration or read.direct = on");
	assert_true(measurement_cold_ended(0.4, 0.35, words));
	assert_non_null(strstr(words,
		"first epoch, 60.0% of the measured samples; 35.0% of the measured bytes came from "));
	assert_true(measurement_cold_ended(0.4, NAN, words));
	assert_non_null(strstr(words, "; how much came from memory is unknown. "));
	/* Within the first epoch; not asked for, as in older results; larger than the memory. */
	assert_false(measurement_cold_ended(0, 0.5, words));
	assert_false(measurement_cold_ended(NAN, 1, words));
	assert_false(measurement_cold_ended(1, 0.001, words));
	assert_string_equal(words, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measurement_round_trip),
		cmocka_unit_test(rounds_of_ranks_come_back),
		cmocka_unit_test(an_older_checksum_is_none),
		cmocka_unit_test(cold_that_did_not_last),
		cmocka_unit_test(measurement_refuses_nonsense),
		cmocka_unit_test(an_older_line_is_read),
		cmocka_unit_test(a_device_of_few_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
