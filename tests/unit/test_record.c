/* points.jsonl: what is written is read back the same; torn and foreign files are told apart. */
#include "harness/base/files.h"
#include "harness/base/rng.h"
#include "harness/report/measurement_json.h"
#include "harness/report/record.h"
#include "harness/report/report.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { REPEATS = 2, POINTS = 2, WINDOWS = 3, FILE_LIMIT = 1 << 24 };

static char folder[] = "/tmp/mlbench-record-XXXXXX";

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

static char *below(const char *name)
{
	char *path = files_join(folder, name);
	assert_non_null(path);
	return path;
}

static void fill_stage(struct stage_measurement *stage, const char *name, struct rng *rng)
{
	(void)snprintf(stage->name, sizeof stage->name, "%s", name);
	stage->workers = 3;
	stage->per_batch = rng_below(rng, 2) == 1;
	stage->device = true;
	stage->items = rng_below(rng, 1000000);
	for (int i = 0; i < THREAD_STATES; i++)
		stage->seconds[i] = rng_uniform(rng);
	stage->cpu_seconds = rng_uniform(rng);
	stage->run_queue_seconds = NAN;
	stage->capacity = 1e6 * rng_uniform(rng);
	stage->capacity_is_lower_bound = true;
	for (int i = 0; i < 500; i++)
		histogram_add(&stage->service, rng_next(rng) >> (20 + rng_below(rng, 44)),
			1 + (uint32_t)rng_below(rng, 9));
}

static struct measurement *make_measurement(uint32_t point, uint32_t repeat, uint64_t seed)
{
	struct rng rng;
	struct measurement *m = calloc(1, sizeof *m);
	assert_non_null(m);
	rng_init(&rng, seed, 0);
	m->point = point;
	m->repeat = repeat;
	m->started = 1900000000.125;
	m->wall_seconds = 3 + rng_uniform(&rng);
	m->cut_seconds = rng_uniform(&rng);
	m->measured_seconds = 2;
	m->samples = rng_below(&rng, 1ULL << 50);
	m->throughput = 1000 + rng_uniform(&rng);
	m->step_utilisation = rng_uniform(&rng);
	m->step_wait_share = rng_uniform(&rng);
	m->oversleep_mean_ns = NAN;
	m->oversleep_max_ns = m->loss_first = m->loss_last = NAN;
	m->bytes_read_per_s = 1e9 * rng_uniform(&rng);
	m->disk_bytes_per_s = NAN;
	m->page_cache_share = NAN;
	m->resident_before = 0.25;
	m->rss_peak_bytes = 123456789;
	m->accounted = 0.9981234567;
	m->cores_busy_outside = NAN;
	m->throttled_share = 0;
	m->checksum = 0xfedcba9876543210ULL; /* above what JSON's integers hold */
	m->has_checksum = true;
	fill_stage(&m->stages[m->stage_count++], "read", &rng);
	fill_stage(&m->stages[m->stage_count++], "step", &rng);
	m->queues[m->queue_count++] = (struct queue_measurement){.name = "batches",
		.capacity = 4,
		.mean_depth = rng_uniform(&rng),
		.empty_share = 0.125,
		.full_share = NAN};
	m->windows = calloc(WINDOWS, sizeof *m->windows);
	assert_non_null(m->windows);
	m->window_count = WINDOWS;
	m->window_seconds = 0.1;
	for (size_t i = 0; i < WINDOWS; i++) {
		struct window *w = &m->windows[i];
		w->t = 0.1 * (double)(i + 1);
		w->samples = rng_below(&rng, 1000000);
		w->bytes_read = rng_below(&rng, 1ULL << 40);
		w->resident_bytes = 1 << 20;
		for (size_t stage = 0; stage < m->stage_count; stage++) {
			for (size_t s = 0; s < THREAD_STATES; s++)
				w->stage_seconds[stage][s] = rng_uniform(&rng);
			w->stage_cpu[stage] = NAN;
		}
		w->queue_depth[0] = (uint32_t)rng_below(&rng, 5);
	}
	(void)snprintf(
		m->notes[m->note_count++], NOTE_BYTES, "a note with \"quotes\", \\ and \u00b5");
	return m;
}

static void assert_same_real(double a, double b)
{
	if (isnan(a) || isnan(b))
		assert_true(isnan(a) && isnan(b));
	else
		assert_true(fabs(a - b) <= 1e-14 * fabs(a));
}

static void assert_same_stage(const struct stage_measurement *a, const struct stage_measurement *b)
{
	assert_string_equal(a->name, b->name);
	assert_int_equal(a->workers, b->workers);
	assert_int_equal(a->per_batch, b->per_batch);
	assert_int_equal(a->device, b->device);
	assert_int_equal(a->items, b->items);
	for (int i = 0; i < THREAD_STATES; i++)
		assert_same_real(a->seconds[i], b->seconds[i]);
	assert_same_real(a->cpu_seconds, b->cpu_seconds);
	assert_same_real(a->run_queue_seconds, b->run_queue_seconds);
	assert_same_real(a->capacity, b->capacity);
	assert_int_equal(a->capacity_is_lower_bound, b->capacity_is_lower_bound);
	assert_memory_equal(&a->service, &b->service, sizeof a->service);
}

static void assert_same(const struct measurement *a, const struct measurement *b)
{
	assert_int_equal(a->point, b->point);
	assert_int_equal(a->repeat, b->repeat);
	assert_int_equal(a->status, b->status);
	assert_string_equal(a->error, b->error);
	assert_same_real(a->started, b->started);
	assert_same_real(a->wall_seconds, b->wall_seconds);
	assert_same_real(a->throughput, b->throughput);
	assert_same_real(a->oversleep_mean_ns, b->oversleep_mean_ns);
	assert_same_real(a->page_cache_share, b->page_cache_share);
	assert_same_real(a->accounted, b->accounted);
	assert_int_equal(a->samples, b->samples);
	assert_int_equal(a->rss_peak_bytes, b->rss_peak_bytes);
	assert_true(a->checksum == b->checksum && a->has_checksum == b->has_checksum);
	assert_int_equal(a->stage_count, b->stage_count);
	for (size_t i = 0; i < a->stage_count; i++)
		assert_same_stage(&a->stages[i], &b->stages[i]);
	assert_int_equal(a->queue_count, b->queue_count);
	assert_string_equal(a->queues[0].name, b->queues[0].name);
	assert_same_real(a->queues[0].mean_depth, b->queues[0].mean_depth);
	assert_same_real(a->queues[0].full_share, b->queues[0].full_share);
	assert_int_equal(a->window_count, b->window_count);
	for (size_t i = 0; i < a->window_count; i++) {
		assert_same_real(a->windows[i].t, b->windows[i].t);
		assert_int_equal(a->windows[i].samples, b->windows[i].samples);
		assert_same_real(
			a->windows[i].stage_seconds[1][2], b->windows[i].stage_seconds[1][2]);
		assert_same_real(a->windows[i].stage_cpu[1], b->windows[i].stage_cpu[1]);
		assert_int_equal(a->windows[i].queue_depth[0], b->windows[i].queue_depth[0]);
	}
	assert_int_equal(a->note_count, b->note_count);
	assert_string_equal(a->notes[0], b->notes[0]);
}

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

static void fill_record(struct record *record, const char *name)
{
	struct error err;
	*record = (struct record){.folder = below(name), .started = 1900000000, .cores = 2};
	(void)snprintf(record->name, sizeof record->name, "test");
	config_init(&record->config);
	assert_int_equal(config_set(&record->config, "dataset.path=a,b/${X} \"c\"", &err), -EINVAL);
	assert_int_equal(config_set_key(&record->config, KEY_DATASET_PATH, "a,b/${X} c", &err), 0);
	assert_int_equal(config_set(&record->config, "sweep.batch.size=32,64", &err), 0);
	assert_int_equal(config_set(&record->config, "inject.read_latency=1.5ms", &err), 0);
	assert_int_equal(config_set(&record->config, "measure.repeats=2", &err), 0);
	config_hash(&record->config, record->config_hash);
	assert_int_equal(config_grid_open(&record->config, &record->grid, &err), 0);
	fact_text(&record->environment, "cpu", "model", "A \"CPU\"");
	fact_number(&record->environment, "cpu", "mhz", 3500.5, "MHz");
	fact_missing(&record->environment, "cpu", "governor", "no cpufreq");
	record->step = (struct step_info){.backend = "emulated",
		.emulated = true,
		.model = "resnet50",
		.description = "emulated x"};
}

static void append(struct record *record, struct measurement *m, struct error *err)
{
	assert_int_equal(record_append(record, m, err), 0);
	measurement_release(m);
	free(m);
}

static void write_record(struct record *record, const char *name)
{
	struct error err;
	fill_record(record, name);
	assert_int_equal(record_create(record, &err), 0);
	for (uint32_t repeat = 0; repeat < REPEATS; repeat++)
		for (uint32_t point = 0; point < POINTS; point++)
			assert_int_equal(record_append(record,
						 make_measurement(point, repeat, 7 + point), &err),
				0);
	const struct stage_limit limit = {.stage = "read", .capacity = 1234.5, .how = "alone"};
	const struct stage_limit unknown = {.stage = "step", .capacity = NAN, .how = "could not"};
	assert_int_equal(record_append_limit(record, &limit, &err), 0);
	assert_int_equal(record_append_limit(record, &unknown, &err), 0);
}

static void assert_same_entry(const struct record *a, const struct record *b, size_t i)
{
	struct measurement x;
	struct measurement y;
	assert_int_equal(record_load(a, i, &x, NULL), 0);
	assert_int_equal(record_load(b, i, &y, NULL), 0);
	assert_same(&x, &y);
	measurement_release(&x);
	measurement_release(&y);
}

static void record_round_trip(void **state)
{
	struct record a;
	struct record b;
	struct error err = {0};
	char *sweeps = below("runs");
	(void)state;
	write_record(&a, "runs/one");
	assert_int_equal(record_open(&b, sweeps, &err), 0); /* the newest run in a folder of runs */
	assert_string_equal(a.folder, b.folder);
	assert_string_equal(a.name, b.name);
	assert_string_equal(a.config_hash, b.config_hash);
	char hash[RECORD_HASH_BYTES];
	config_hash(&b.config, hash);
	assert_string_equal(hash, a.config_hash);
	assert_string_equal(config_text(&b.config, KEY_DATASET_PATH), "a,b/${X} c");
	assert_int_equal(b.cores, 2);
	assert_int_equal(b.grid.points, POINTS);
	assert_int_equal(b.entry_count, POINTS * REPEATS);
	for (size_t i = 0; i < b.entry_count; i++)
		assert_same_entry(&a, &b, i);
	assert_int_equal(b.limit_count, 2);
	assert_same_real(b.limits[0].capacity, 1234.5);
	assert_true(isnan(b.limits[1].capacity));
	assert_true(b.step.emulated);
	const struct fact *mhz = fact_find(&b.environment, "cpu", "mhz");
	assert_non_null(mhz);
	assert_int_equal(mhz->kind, FACT_NUMBER);
	assert_string_equal(mhz->unit, "MHz");
	assert_int_equal(fact_find(&b.environment, "cpu", "governor")->kind, FACT_MISSING);
	assert_false(b.interrupted);
	assert_true(record_has(&b, 1, 1));
	assert_false(record_has(&b, 1, 2));
	record_release(&a);
	record_release(&b);
	record_release(&b);
	free(sweeps);
}

/* A kill in the middle of a write: the torn line is dropped, and cut off when the run goes on. */
static void torn_last_line(void **state)
{
	struct record a;
	struct error err = {0};
	(void)state;
	write_record(&a, "torn");
	char *path = below("torn/points.jsonl");
	char *text;
	size_t size;
	assert_int_equal(files_read(path, FILE_LIMIT, &text, &size, &err), 0);
	record_release(&a);
	char *last = memrchr(text, '\n', size - 1);
	const size_t kept = (size_t)(last - text) + 1;
	for (size_t cut = kept; cut < size; cut += 7) {
		struct record b;
		assert_int_equal(files_write_atomic(path, text, cut, &err), 0);
		assert_int_equal(record_open(&b, path, &err), 0);
		assert_int_equal(b.limit_count, 1);
		assert_int_equal(b.torn, cut > kept);
		record_release(&b);
	}
	struct record c;
	assert_int_equal(files_write_atomic(path, text, size - 3, &err), 0);
	assert_int_equal(record_open(&c, path, &err), 0);
	assert_int_equal(record_continue(&c, &err), 0);
	const struct stage_limit limit = {.stage = "decode", .capacity = 5, .how = "alone"};
	assert_int_equal(record_append_limit(&c, &limit, &err), 0);
	record_release(&c);
	assert_int_equal(record_open(&c, path, &err), 0);
	assert_false(c.torn);
	assert_int_equal(c.limit_count, 2);
	assert_string_equal(c.limits[1].stage, "decode");
	record_release(&c);
	free(text);
	free(path);
}

static void refuse(const char *name, const char *text, const char *says)
{
	struct record record;
	struct error err = {0};
	char *path = below(name);
	assert_int_equal(files_write_atomic(path, text, strlen(text), &err), 0);
	assert_int_equal(record_open(&record, folder, &err), -EINVAL);
	if (!strstr(err.text, says))
		fail_msg("'%s' does not say '%s'", err.text, says);
	record_release(&record);
	assert_int_equal(unlink(path), 0);
	free(path);
}

static void foreign_files(void **state)
{
	(void)state;
	refuse("points.jsonl", "{\"schema\": \"mlbench.points/9\"}\n", "mlbench.points/9");
	refuse("points.jsonl", "{\"a\": 1}\n", "no 'schema'");
	refuse("points.jsonl", "hello\n", "points.jsonl:1: no JSON");
	refuse("points.jsonl", "{\"schema\": \"mlbench.points/1\"}\n", "'resolved'");
	refuse("points.jsonl", "", "no whole line");
	refuse("points.jsonl", "{\"schema\": \"mlbench.points/1\"", "no whole line");
}

/* Damage in the middle is no torn line: it is told with its line. */
static void damaged_middle(void **state)
{
	struct record a;
	struct error err = {0};
	(void)state;
	write_record(&a, "damaged");
	record_release(&a);
	char *path = below("damaged/points.jsonl");
	char *text;
	size_t size;
	assert_int_equal(files_read(path, FILE_LIMIT, &text, &size, &err), 0);
	char *second = memchr(text, '\n', size);
	second[1] = '#';
	assert_int_equal(files_write_atomic(path, text, size, &err), 0);
	assert_int_equal(record_open(&a, path, &err), -EINVAL);
	assert_non_null(strstr(err.text, "points.jsonl:2"));
	record_release(&a);
	free(text);
	free(path);
}

static void failed_is_tried_again(void **state)
{
	struct record record;
	struct record back;
	struct error err = {0};
	(void)state;
	fill_record(&record, "failed");
	assert_int_equal(record_create(&record, &err), 0);
	struct measurement *m = make_measurement(0, 0, 1);
	m->status = MEASUREMENT_FAILED;
	append(&record, m, &err);
	assert_false(record_has(&record, 0, 0));
	assert_int_equal(record_failed_count(&record), 1);
	append(&record, make_measurement(0, 0, 2), &err);
	assert_true(record_has(&record, 0, 0));
	assert_int_equal(record.entry_count, 1);
	assert_int_equal(record_open(&back, record.folder, &err), 0);
	assert_int_equal(back.entry_count, 1);
	assert_true(record_has(&back, 0, 0));
	assert_true(back.interrupted); /* the other point was not measured */
	record_release(&back);
	record_release(&record);
}

/* One writer at a time, and no run over another. */
static void folders_are_kept_apart(void **state)
{
	struct record a;
	struct record b;
	struct error err = {0};
	(void)state;
	write_record(&a, "kept");
	fill_record(&b, "kept");
	assert_int_equal(record_create(&b, &err), -EEXIST);
	assert_non_null(strstr(err.text, "--resume"));
	record_release(&b);
	assert_int_equal(record_open(&b, a.folder, &err), 0);
	assert_int_equal(record_continue(&b, &err), -EBUSY);
	record_release(&a);
	assert_int_equal(record_continue(&b, &err), 0);
	record_release(&b);
	assert_int_equal(record_open(&b, "/nonexistent/run", &err), -ENOENT);
	record_release(&b);
}

static json_t *read_json(const char *name)
{
	char *path = below(name);
	json_t *json = json_load_file(path, 0, NULL);
	free(path);
	return json;
}

/* The summary says why a value is missing, wherever one is null. */
static void check_missing(const json_t *value)
{
	const char *name;
	const json_t *member;
	size_t i;
	json_array_foreach(value, i, member) check_missing(member);
	if (!json_is_object(value))
		return;
	const json_t *missing = json_object_get(value, "missing");
	void *at;
	for (at = json_object_iter((json_t *)(uintptr_t)value); at;
		at = json_object_iter_next((json_t *)(uintptr_t)value, at)) {
		name = json_object_iter_key(at);
		member = json_object_iter_value(at);
		const bool may = strcmp(name, "error") == 0 || strcmp(name, "also") == 0 ||
				 strcmp(name, "ci95") == 0 || strcmp(name, "flops_per_sample") == 0;
		if (json_is_null(member) && !may && !json_is_string(json_object_get(missing, name)))
			fail_msg("'%s' is null without a reason", name);
		check_missing(member);
	}
}

static void finish_writes_all(void **state)
{
	struct record record;
	struct error err = {0};
	(void)state;
	write_record(&record, "whole");
	if (record_finish(&record, &err) != 0)
		fail_msg("%s", err.text);
	json_t *summary = read_json("whole/summary.json");
	assert_non_null(summary);
	assert_string_equal(
		json_string_value(json_object_get(summary, "schema")), "mlbench.summary/1");
	assert_string_equal(json_string_value(json_object_get(summary, "status")), "complete");
	assert_int_equal(json_array_size(json_object_get(summary, "points")), POINTS);
	const json_t *point = json_array_get(json_object_get(summary, "points"), 1);
	assert_int_equal(json_integer_value(
				 json_object_get(json_object_get(point, "settings"), "batch.size")),
		64);
	check_missing(json_object_get(summary, "points"));
	check_missing(json_object_get(summary, "limits"));
	json_decref(summary);
	char *path = below("whole/points.csv");
	char *text;
	size_t size;
	assert_int_equal(files_read(path, FILE_LIMIT, &text, &size, &err), 0);
	size_t lines = 0;
	size_t commas[POINTS + 1] = {0};
	for (size_t i = 0; i < size; i++) {
		lines += text[i] == '\n';
		if (text[i] == ',' && lines <= POINTS)
			commas[lines]++;
	}
	assert_int_equal(lines, POINTS + 1);
	assert_true(commas[0] > 10 && commas[1] == commas[0] && commas[2] == commas[0]);
	free(text);
	free(path);
	record_release(&record);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(measurement_round_trip),
		cmocka_unit_test(measurement_refuses_nonsense),
		cmocka_unit_test(record_round_trip),
		cmocka_unit_test(torn_last_line),
		cmocka_unit_test(foreign_files),
		cmocka_unit_test(damaged_middle),
		cmocka_unit_test(failed_is_tried_again),
		cmocka_unit_test(folders_are_kept_apart),
		cmocka_unit_test(finish_writes_all),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
