/* points.jsonl: what is written is read back the same; torn and foreign files are told apart. */
#include "harness/base/files.h"
#include "harness/record/record.h"
#include "harness/report/report.h"
#include "tests/unit/record_fixture.h"

#include <jansson.h>

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

enum { REPEATS = 2, POINTS = 2, FILE_LIMIT = 1 << 24 };

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
		.description = "emulated x",
		.products = {{"in \"a\"", 112, 64, 147, 1, true, true},
			{"scores", 1024, 1024, 64, 144, false, false}},
		.product_count = 2};
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
			append(record, make_measurement(point, repeat, 7 + point), &err);
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

/* One rule for all that is said of a point; a repetition that is measured again is counted once. */
static void repetitions_that_count(void **state)
{
	static const struct {
		enum measurement_status repeats[3];
		size_t count;
		enum point_status status;
		bool counted[3];
	} cases[] = {
		{{MEASUREMENT_OK, MEASUREMENT_OK}, 2, POINT_OK, {true, true}},
		{{MEASUREMENT_OK, MEASUREMENT_UNSTEADY}, 2, POINT_OK, {true, false}},
		{{MEASUREMENT_OK, MEASUREMENT_UNSTEADY, MEASUREMENT_UNSTEADY}, 3, POINT_UNSTEADY,
			{true, true, true}},
		{{MEASUREMENT_OK, MEASUREMENT_UNSTEADY, MEASUREMENT_FAILED}, 3, POINT_UNSTEADY,
			{true, true, false}},
		{{MEASUREMENT_OK, MEASUREMENT_FAILED, MEASUREMENT_FAILED}, 3, POINT_OK,
			{true, false, false}},
		{{MEASUREMENT_UNSTEADY}, 1, POINT_UNSTEADY, {true}},
		{{MEASUREMENT_FAILED, MEASUREMENT_INTERRUPTED}, 2, POINT_FAILED, {false, false}},
		{{MEASUREMENT_INTERRUPTED}, 1, POINT_INTERRUPTED, {false}},
		{{0}, 0, POINT_INTERRUPTED, {false}},
	};
	struct error err = {0};
	(void)state;
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		struct record record;
		char name[32];
		(void)snprintf(name, sizeof name, "counted/%zu", c);
		fill_record(&record, name);
		assert_int_equal(record_create(&record, &err), 0);
		for (uint32_t i = 0; i < cases[c].count; i++)
			for (int again = 1; again >= 0; again--) {
				struct measurement *m = make_measurement(1, i, 7);
				m->status = again ? MEASUREMENT_FAILED : cases[c].repeats[i];
				append(&record, m, &err);
			}
		assert_int_equal(record_point_status(&record, 1), cases[c].status);
		assert_int_equal(record_point_status(&record, 0), POINT_INTERRUPTED);
		assert_int_equal(record.entry_count, cases[c].count);
		for (size_t i = 0; i < cases[c].count; i++)
			assert_int_equal(
				record_counts(&record, &record.entries[i]), cases[c].counted[i]);
		record_release(&record);
	}
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
	assert_int_equal(b.step.product_count, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct step_product *x = &a.step.products[i];
		const struct step_product *y = &b.step.products[i];
		assert_string_equal(x->name, y->name);
		assert_true(x->m == y->m && x->n == y->n && x->k == y->k && x->count == y->count);
		assert_true(x->weights == y->weights && x->first == y->first);
	}
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

/* A fact that came later than the others is told by the configuration, and the others stay as recorded. */
static void a_later_fact(void **state)
{
	static const char *const kinds[] = {"sample.kind=tokens", "sample.kind=image"};
	struct record record;
	struct measurement m;
	struct error err = {0};
	(void)state;
	write_record(&record, "later");
	char *const fact = strstr(record.entries[0].line, "\"uses_codecs\"");
	char *const block = strstr(record.entries[0].line, "\"reads_block\"");
	assert_non_null(fact);
	assert_non_null(block);
	const bool blocks = strncmp(block, "\"reads_block\":true", 18) == 0;
	fact[1] = 'U';
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(config_set(&record.config, kinds[i], &err), 0);
		assert_int_equal(record_load(&record, 0, &m, &err), 0);
		assert_int_equal(m.facts.uses_codecs, i == 1);
		assert_int_equal(m.facts.reads_block, blocks);
		measurement_release(&m);
	}
	record_release(&record);
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
	refuse("points.jsonl", "{\"a\": 1}\n", "'schema' is missing");
	refuse("points.jsonl", "hello\n", "points.jsonl:1: not JSON");
	refuse("points.jsonl", "{\"schema\": \"mlbench.points/1\"}\n", "'resolved'");
	refuse("points.jsonl", "", "no complete line");
	refuse("points.jsonl", "{\"schema\": \"mlbench.points/1\"", "no complete line");
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
	if (report_finish(&record, &err) != 0)
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
	bool quoted = false;
	for (size_t i = 0; i < size; i++) {
		lines += text[i] == '\n';
		quoted ^= text[i] == '"';
		if (text[i] == ',' && !quoted && lines <= POINTS)
			commas[lines]++;
	}
	assert_int_equal(lines, POINTS + 1);
	assert_true(commas[0] > 10 && commas[1] == commas[0] && commas[2] == commas[0]);
	free(text);
	free(path);
	record_release(&record);
}

/* On as many ranks as it was measured with; a rank's own result cannot be continued, its job can. */
static void commands_can_be_typed(void **state)
{
	static const struct {
		const char *folder, *set, *words, *command;
	} cases[] = {
		{"a", "run.seed=2", "diagnose", "mlbench diagnose a"},
		{"a b", "run.ranks=1", NULL, "mlbench run --resume 'a b'"},
		{"a", "sweep.batch.size=8,16", NULL, "mlbench sweep --resume a"},
		{"a", "run.ranks=4", "diagnose", "mpirun -n 4 mlbench diagnose a"},
		{"a", "sweep.run.ranks=1,8,2", NULL, "mpirun -n 8 mlbench sweep --resume a"},
		{"a/ranks/0003", "run.ranks=4", NULL, "mpirun -n 4 mlbench run --resume a"},
		{"ranks/0003", "run.seed=2", NULL, "mlbench run --resume ranks/0003"},
		{"a/ranks/last", "run.seed=2", NULL, "mlbench run --resume a/ranks/last"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct record record = {.folder = strdup(cases[i].folder)};
		struct buffer text = {0};
		struct error err;
		config_init(&record.config);
		assert_int_equal(config_set(&record.config, cases[i].set, &err), 0);
		record_add_command(&record, cases[i].words, &text);
		assert_string_equal(text.data, cases[i].command);
		buffer_release(&text);
		record_release(&record);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(repetitions_that_count),
		cmocka_unit_test(record_round_trip),
		cmocka_unit_test(a_later_fact),
		cmocka_unit_test(torn_last_line),
		cmocka_unit_test(foreign_files),
		cmocka_unit_test(damaged_middle),
		cmocka_unit_test(failed_is_tried_again),
		cmocka_unit_test(folders_are_kept_apart),
		cmocka_unit_test(finish_writes_all),
		cmocka_unit_test(commands_can_be_typed),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
