/* Baselines: the similarity of distributions, who is healthy, limits and what stands behind them, merging, ageing, and
 * baselines that do not fit. */
#include "harness/accept/baseline.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/nodes_fixture.h"

static void add_healthy(struct node_results *results, size_t count, uint64_t seed)
{
	for (size_t i = 0; i < count; i++) {
		char name[32];
		(void)snprintf(name, sizeof name, "node%02zu", i + 1);
		const struct fixture_node node = {
			.name = name, .seed = seed + i, .nodes = 0.004, .repeats = 0.01};
		fixture_add(results, &node);
	}
}

static json_t *made_of(const struct node_results *results, const struct baseline_request *given)
{
	struct baseline_request request = {.made = "2026-11-26T04:00:00Z"};
	struct error err = {0};
	json_t *baseline = NULL;
	if (given)
		request = *given;
	if (baseline_make(results, &request, &baseline, &err))
		fail_msg("%s", err.text);
	return baseline;
}

static size_t many(const json_t *document, const char *member)
{
	return json_array_size(json_object_get(document, member));
}

static const json_t *left_out(const json_t *baseline, const char *name)
{
	size_t i;
	const json_t *entry;
	json_array_foreach(json_object_get(baseline, "left_out"), i, entry)
	{
		if (strcmp(json_string_value(json_object_get(entry, "name")), name) == 0)
			return entry;
	}
	return NULL;
}

static const char *why_of(const json_t *baseline, const char *name)
{
	const char *why = json_string_value(json_object_get(left_out(baseline, name), "why"));
	return why ? why : "it stands";
}

static double number(const json_t *entry, const char *member)
{
	return json_number_value(json_object_get(entry, member));
}

static void similarity_is_the_area_between_distributions(void **state)
{
	(void)state;
	const double steady[] = {100, 100, 100};
	const double slower[] = {95, 95};
	const double wide[] = {80, 100, 120, 100};
	assert_float_equal(baseline_similarity(steady, 3, steady, 3, false, true), 1, 1e-12);
	assert_float_equal(baseline_similarity(steady, 3, slower, 2, false, true), 0.95, 1e-12);
	assert_float_equal(baseline_similarity(steady, 3, slower, 2, true, true), 0.95, 1e-12);
	/* what is better does not count, on one side */
	assert_float_equal(baseline_similarity(steady, 3, slower, 2, true, false), 1, 1e-12);
	assert_float_equal(baseline_similarity(slower, 2, steady, 3, true, true), 1, 1e-12);
	/* a quarter is 20 below, a quarter 20 above: an area of 10 of 120 */
	assert_float_equal(
		baseline_similarity(steady, 3, wide, 4, false, true), 1 - 10.0F / 120, 1e-6);
	assert_float_equal(
		baseline_similarity(steady, 3, wide, 4, true, true), 1 - 5.0F / 120, 1e-6);
	const double none[] = {0, 0};
	assert_float_equal(baseline_similarity(none, 2, none, 2, false, false), 1, 1e-12);
	assert_true(isnan(baseline_similarity(none, 0, none, 2, false, false)));
}

static void healthy_nodes_stand_and_say_how_many(void **state)
{
	(void)state;
	struct node_results results = {0};
	add_healthy(&results, 20, 100);
	json_t *baseline = made_of(&results, NULL);
	assert_int_equal(many(baseline, "nodes"), 20);
	assert_int_equal(many(baseline, "left_out"), 0);
	assert_int_equal(many(baseline, "notes"), 0);
	assert_int_equal(many(baseline, "figures"), 4);
	const json_t *core = baseline_figure(baseline, "slow core", "decode.core", "core 3");
	assert_ptr_equal(core, baseline_figure(baseline, "slow core", "decode.core", "*"));
	assert_int_equal(number(core, "nodes"), 20);
	assert_int_equal(number(core, "repetitions"), 20 * FIXTURE_CORES * FIXTURE_REPEATS);
	assert_float_equal(number(core, "median"), 410, 4);
	assert_true(number(core, "low") < 405 && number(core, "low") > 380);
	assert_true(number(core, "high") > 415 && number(core, "high") < 440);
	assert_true(number(core, "similarity") > 0.95);
	assert_int_equal(many(core, "quantiles"), BASELINE_QUANTILES);
	assert_null(baseline_figure(baseline, "slow core", "decode.core2", "*"));
	assert_null(baseline_figure(baseline, "training", "throughput", "*"));
	assert_non_null(baseline_figure(baseline, "training", "throughput", ""));
	json_decref(baseline);
	node_results_release(&results);
}

static void bad_nodes_are_left_out_of_all_and_why(void **state)
{
	(void)state;
	static const struct fixture_node bad[] = {
		{.name = "slow", .seed = 1, .nodes = 0, .repeats = 0.01, .slow = 0.05},
		{.name = "one-core", .seed = 2, .nodes = 0, .repeats = 0.01, .slow_core = 0.3},
		{.name = "failed", .seed = 3, .nodes = 0, .repeats = 0.01, .verdict = "FAIL"},
		{.name = "no-verdict", .seed = 4, .nodes = 0, .repeats = 0.01, .verdict = "ERROR"},
		{.name = "busy", .seed = 8, .nodes = 0, .repeats = 0.01, .busy = true},
		{.name = "warned", .seed = 5, .nodes = 0, .repeats = 0.01, .verdict = "WARN"},
		{.name = "lost-dimm", .seed = 6, .nodes = 0, .repeats = 0.01, .memory = 480},
		{.name = "node01",
			.seed = 7,
			.nodes = 0,
			.repeats = 0.01,
			.slow = 0.5,
			.started = "2026-11-20T03:10:00Z"},
	};
	struct node_results results = {0};
	add_healthy(&results, 20, 200);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		fixture_add(&results, &bad[i]);
	json_t *baseline = made_of(&results, NULL);
	assert_int_equal(many(baseline, "nodes"), 21); /* the one with a warning stands */
	assert_string_equal(why_of(baseline, "slow"), "not like the other nodes");
	assert_true(many(left_out(baseline, "slow"), "figures") >= 2);
	assert_string_equal(why_of(baseline, "one-core"), "not like the other nodes");
	assert_non_null(
		strstr(json_string_value(json_array_get(
			       json_object_get(left_out(baseline, "one-core"), "figures"), 0)),
			"decode.core of 'slow core' at all places"));
	assert_non_null(strstr(why_of(baseline, "failed"), "slow core: decode.core of core 1"));
	assert_non_null(strstr(why_of(baseline, "no-verdict"), "slow core"));
	assert_string_equal(why_of(baseline, "busy"),
		"slow core: the node was busy: other work took 40 % of its time");
	assert_string_equal(
		why_of(baseline, "lost-dimm"), "other hardware: memory: 480 GiB, not 512 GiB");
	assert_string_equal(why_of(baseline, "node01"), "the node has a newer result");
	json_decref(baseline);
	node_results_release(&results);
}

/* Repetitions that vary by a fifth make samples of 7 less than 0.95 similar: that alone drops nobody. */
static void noise_drops_nobody(void **state)
{
	(void)state;
	struct node_results results = {0};
	for (size_t i = 0; i < 20; i++) {
		char name[32];
		(void)snprintf(name, sizeof name, "node%02zu", i + 1);
		const struct fixture_node node = {
			.name = name, .seed = 300 + i, .nodes = 0.004, .repeats = 0.2};
		fixture_add(&results, &node);
	}
	json_t *baseline = made_of(&results, NULL);
	assert_int_equal(many(baseline, "nodes"), 20);
	const json_t *rate = baseline_figure(baseline, "training", "throughput", "");
	assert_true(number(rate, "similarity") < 0.95);
	json_decref(baseline);
	node_results_release(&results);
}

static void few_nodes_say_so(void **state)
{
	(void)state;
	struct node_results results = {0};
	add_healthy(&results, 1, 400);
	json_t *baseline = made_of(&results, NULL);
	assert_int_equal(many(baseline, "nodes"), 1);
	assert_non_null(
		strstr(json_string_value(json_array_get(json_object_get(baseline, "notes"), 0)),
			"One node alone"));
	const json_t *rate = baseline_figure(baseline, "training", "throughput", "");
	assert_true(json_is_null(json_object_get(rate, "low")));
	assert_true(json_is_number(json_object_get(rate, "median")));
	json_decref(baseline);
	add_healthy(&results, 3, 410); /* node01 anew, node02, node03 */
	baseline = made_of(&results, NULL);
	assert_int_equal(many(baseline, "nodes"), 3);
	assert_non_null(
		strstr(json_string_value(json_array_get(json_object_get(baseline, "notes"), 0)),
			"3 nodes only: the limits are wide"));
	json_decref(baseline);
	node_results_release(&results);
}

static void without_a_majority_there_is_none(void **state)
{
	(void)state;
	struct node_results results = {0};
	struct baseline_request request = {.made = "2026-11-26T04:00:00Z"};
	struct error err = {0};
	json_t *baseline = NULL;
	const struct fixture_node halves[] = {{.name = "a", .seed = 1, .repeats = 0.01},
		{.name = "b", .seed = 2, .repeats = 0.01, .slow = 0.3}};
	for (size_t i = 0; i < 2; i++)
		fixture_add(&results, &halves[i]);
	assert_int_equal(baseline_make(&results, &request, &baseline, &err), -ENODATA);
	assert_non_null(strstr(err.text, "1 of 2, no majority (decode.core of 'slow core'"));
	assert_null(baseline);
	node_results_release(&results);
	assert_int_equal(baseline_make(&results, &request, &baseline, &err), -ENODATA);
	const struct fixture_node failed = {.name = "c", .verdict = "FAIL"};
	fixture_add(&results, &failed);
	assert_int_equal(baseline_make(&results, &request, &baseline, &err), -ENODATA);
	assert_non_null(strstr(err.text, "none is of a healthy node (c: slow core"));
	node_results_release(&results);
}

static void merges_and_ages(void **state)
{
	(void)state;
	struct node_results first = {0};
	struct node_results second = {0};
	add_healthy(&first, 12, 500);
	json_t *old = made_of(&first, NULL);
	for (size_t i = 0; i < 10; i++) {
		char name[32];
		(void)snprintf(name, sizeof name, "node%02zu", i + 9); /* four of them again */
		const struct fixture_node node = {.name = name,
			.started = "2026-12-26T03:10:00Z",
			.seed = 600 + i,
			.nodes = 0.004,
			.repeats = 0.01};
		fixture_add(&second, &node);
	}
	const json_t *const older[] = {old};
	struct baseline_request request = {
		.made = "2026-12-26T04:00:00Z", .older = older, .older_count = 1};
	json_t *merged = made_of(&second, &request);
	assert_int_equal(many(merged, "nodes"), 18);
	assert_int_equal(many(merged, "left_out"), 4);
	assert_string_equal(why_of(merged, "node09"), "the node has a newer result");
	const json_t *core = baseline_figure(merged, "slow core", "decode.core", "*");
	assert_int_equal(number(core, "repetitions"), 18 * FIXTURE_CORES * FIXTURE_REPEATS);
	assert_float_equal(number(core, "median"), 410, 4);
	/* the same from the results themselves, up to what compressing loses */
	for (size_t i = 0; i < 8; i++) {
		char name[32];
		(void)snprintf(name, sizeof name, "node%02zu", i + 1);
		const struct fixture_node node = {
			.name = name, .seed = 500 + i, .nodes = 0.004, .repeats = 0.01};
		fixture_add(&second, &node);
	}
	json_t *whole = made_of(&second, NULL);
	const json_t *same = baseline_figure(whole, "slow core", "decode.core", "*");
	assert_float_equal(number(core, "median"), number(same, "median"), 0.01);
	assert_float_equal(number(core, "low"), number(same, "low"), 0.1);
	json_decref(whole);
	request.since = "2026-12-01";
	request.since_s = node_result_time("2026-12-01T00:00:00Z");
	whole = made_of(&second, &request);
	assert_int_equal(many(whole, "nodes"), 10);
	assert_string_equal(why_of(whole, "node01"), "older than --since 2026-12-01");
	json_decref(whole);
	json_decref(merged);
	json_decref(old);
	node_results_release(&first);
	node_results_release(&second);
}

static void fits_like_hardware_alone(void **state)
{
	(void)state;
	struct node_results results = {0};
	char why[128];
	struct error err = {0};
	add_healthy(&results, 6, 700);
	const struct fixture_node other = {.name = "other", .seed = 1, .memory = 1024};
	fixture_add(&results, &other);
	json_t *baseline = made_of(&results, NULL);
	assert_true(baseline_fits(baseline, results.list[0].fingerprint, why, sizeof why));
	assert_false(baseline_fits(baseline, results.list[6].fingerprint, why, sizeof why));
	assert_string_equal(why, "memory: 1.00 TiB, not 512 GiB");
	char path[] = "/tmp/test_baseline-XXXXXX";
	const int fd = mkstemp(path);
	assert_true(fd >= 0);
	json_t *read = NULL;
	assert_int_equal(json_dump_file(baseline, path, JSON_COMPACT), 0);
	assert_int_equal(baseline_read(path, &read, &err), 0);
	assert_true(json_equal(read, baseline));
	json_decref(read);
	(void)json_object_set_new(baseline, "schema", json_string("mlbench.baseline/2"));
	assert_int_equal(json_dump_file(baseline, path, JSON_COMPACT), 0);
	assert_int_equal(baseline_read(path, &read, &err), -EINVAL);
	assert_non_null(strstr(err.text, "use a newer mlbench"));
	(void)json_object_set_new(baseline, "schema", json_string(ACCEPT_SCHEMA));
	assert_int_equal(json_dump_file(baseline, path, JSON_COMPACT), 0);
	assert_int_equal(baseline_read(path, &read, &err), -EINVAL);
	assert_non_null(strstr(err.text, "not a baseline"));
	assert_int_equal(ftruncate(fd, 100), 0);
	assert_int_equal(baseline_read(path, &read, &err), -EINVAL);
	assert_non_null(strstr(err.text, "no JSON"));
	(void)close(fd);
	(void)unlink(path);
	json_decref(baseline);
	node_results_release(&results);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(similarity_is_the_area_between_distributions),
		cmocka_unit_test(healthy_nodes_stand_and_say_how_many),
		cmocka_unit_test(bad_nodes_are_left_out_of_all_and_why),
		cmocka_unit_test(noise_drops_nobody),
		cmocka_unit_test(few_nodes_say_so),
		cmocka_unit_test(without_a_majority_there_is_none),
		cmocka_unit_test(merges_and_ages),
		cmocka_unit_test(fits_like_hardware_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
