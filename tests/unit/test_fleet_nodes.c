/* Fleets of nodes: who is worst and why, what differs, what changed, who is missing, and that healthy nodes are left in peace. */
#include "harness/accept/fleet.h"
#include "harness/report/columns.h"
#include "harness/report/fleet_report.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/nodes_fixture.h"

static void add_alike(struct node_results *results, size_t count, uint64_t seed)
{
	for (size_t i = 0; i < count; i++) {
		char name[32];
		(void)snprintf(name, sizeof name, "node%02zu", i + 1);
		const struct fixture_node node = {
			.name = name, .seed = seed + i, .nodes = 0.004, .repeats = 0.01};
		fixture_add(results, &node);
	}
}

static json_t *fleet_of(struct node_results *results, const struct fleet_request *given)
{
	const struct fleet_request none = {0};
	struct error err = {0};
	json_t *document = NULL;
	if (fleet_make(results, given ? given : &none, &document, &err))
		fail_msg("%s", err.text);
	return document;
}

static const json_t *row_of(const json_t *document, const char *name)
{
	size_t i;
	const json_t *node;
	json_array_foreach(json_object_get(document, "nodes"), i, node)
	{
		if (strcmp(column_text(node, "node"), name) == 0)
			return node;
	}
	fail_msg("no row of %s", name);
	return NULL;
}

static const char *name_at(const json_t *document, size_t row)
{
	return column_text(json_array_get(json_object_get(document, "nodes"), row), "node");
}

static size_t outliers_in(const json_t *document)
{
	size_t i;
	size_t count = 0;
	const json_t *node;
	json_array_foreach(json_object_get(document, "nodes"), i, node)
	{
		count += json_array_size(json_object_get(node, "outliers"));
	}
	return count;
}

static void add(struct node_results *results, struct fixture_node node)
{
	node.nodes = 0.004;
	node.repeats = 0.01;
	fixture_add(results, &node);
}

static void the_worst_come_first_with_their_reasons(void **state)
{
	(void)state;
	struct node_results results = {0};
	add_alike(&results, 20, 100);
	add(&results, (struct fixture_node){.name = "slow",
			      .seed = 1,
			      .slow = 0.05,
			      .microcode = "0x19",
			      .kernel = "5.10.0"});
	add(&results, (struct fixture_node){.name = "core", .seed = 2, .slow_core = 0.2});
	add(&results, (struct fixture_node){.name = "read", .seed = 3, .slow_read = 0.4});
	add(&results, (struct fixture_node){.name = "failed", .seed = 4, .verdict = "FAIL"});
	add(&results, (struct fixture_node){.name = "undecided", .seed = 5, .verdict = "ERROR"});
	add(&results, (struct fixture_node){.name = "dimm", .seed = 6, .memory = 480});
	json_t *document = fleet_of(&results, NULL);
	assert_string_equal(column_text(document, "sentence"),
		"26 nodes: 1 FAIL, 1 ERROR, 24 PASS; 3 outliers");
	assert_int_equal(column_number(document, "exit_status"), EXIT_STATUS_FAILED);
	assert_string_equal(name_at(document, 0), "failed");
	assert_string_equal(name_at(document, 1), "read");
	assert_string_equal(name_at(document, 2), "core");
	assert_string_equal(name_at(document, 3), "slow");
	assert_string_equal(name_at(document, 4), "undecided");
	assert_string_equal(name_at(document, 5), "dimm");
	const json_t *slow = row_of(document, "slow");
	assert_string_equal(column_text(slow, "action"), "isolate");
	assert_string_equal(column_text(slow, "differs.0.name"), "cpu.microcode");
	assert_string_equal(column_text(slow, "differs.0.majority"), "0x2b");
	assert_int_equal(column_number(slow, "differs.0.have_majority"), 24);
	assert_int_equal(column_number(slow, "differs.0.like_it"), 0);
	assert_string_equal(column_text(slow, "differs.1.name"), "kernel.release");
	assert_true(column_number(slow, "change") < -0.04 && column_number(slow, "change") > -0.06);
	const json_t *core = row_of(document, "core");
	assert_string_equal(column_text(core, "worst_figure"), "decode.core, worst core");
	assert_string_equal(column_text(core, "outliers.0.place"), "core 2");
	assert_int_equal(json_array_size(json_object_get(core, "outliers")), 1);
	const json_t *read = row_of(document, "read");
	assert_non_null(strstr(column_text(read, "why.0"), "account for this much"));
	assert_non_null(strstr(column_text(read, "why.0"), ": read -2"));
	assert_non_null(strstr(column_text(read, "sentence"), "read.capacity of 'training'"));
	const json_t *dimm = row_of(document, "dimm");
	assert_true(json_is_true(json_object_get(dimm, "stranger")));
	assert_non_null(strstr(column_text(dimm, "sentence"), "memory: 480 GiB, not 512 GiB"));
	for (size_t i = 1; i <= 20; i++) {
		char name[32];
		(void)snprintf(name, sizeof name, "node%02zu", i);
		assert_int_equal(
			json_array_size(json_object_get(row_of(document, name), "outliers")), 0);
	}
	json_decref(document);
	node_results_release(&results);
}

/* 100 fleets of healthy nodes: named by chance in one of them, as the document says. */
static void healthy_fleets_are_left_in_peace(void **state)
{
	(void)state;
	size_t alarmed = 0;
	for (size_t i = 0; i < 100; i++) {
		struct node_results results = {0};
		add_alike(&results, 20, 1000 * (i + 1));
		json_t *document = fleet_of(&results, NULL);
		alarmed += outliers_in(document) > 0;
		if (outliers_in(document) == 0)
			assert_int_equal(column_number(document, "exit_status"), EXIT_STATUS_DONE);
		json_decref(document);
		node_results_release(&results);
	}
	print_message("%zu of 100 healthy fleets have an outlier\n", alarmed);
	assert_in_range(alarmed, 0, 4);
}

static void says_what_changed(void **state)
{
	(void)state;
	struct node_results results = {0};
	add_alike(&results, 10, 300);
	add(&results, (struct fixture_node){.name = "node11",
			      .seed = 311,
			      .started = "2026-11-01T00:00:00Z",
			      .kernel = "5.10.0"});
	add(&results, (struct fixture_node){.name = "node11", .seed = 312, .slow = 0.1});
	add(&results, (struct fixture_node){.name = "node12",
			      .seed = 313,
			      .started = "2026-11-01T00:00:00Z",
			      .verdict = "FAIL"});
	add(&results, (struct fixture_node){.name = "node12", .seed = 314});
	json_t *document = fleet_of(&results, NULL);
	assert_int_equal(column_number(document, "node_count"), 12);
	assert_int_equal(column_number(document, "result_count"), 14);
	const json_t *slower = json_object_get(row_of(document, "node11"), "changed");
	assert_string_equal(column_text(slower, "since"), "2026-11-01T00:00:00Z");
	assert_non_null(strstr(column_text(slower, "changes.0"), "decode.core of 'slow core'"));
	const size_t last = json_array_size(json_object_get(slower, "changes")) - 1;
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(slower, "changes"), last)),
		"kernel.release: 6.1.0-18, it was 5.10.0");
	const json_t *mended = json_object_get(row_of(document, "node12"), "changed");
	assert_string_equal(column_text(mended, "changes.0"), "verdict: PASS, it was FAIL");
	assert_int_equal(json_array_size(json_object_get(mended, "changes")), 1);
	assert_true(json_is_null(json_object_get(row_of(document, "node01"), "changed")));
	json_decref(document);
	const struct fleet_request since = {
		.since_s = node_result_time("2026-11-20T00:00:00Z"), .since = "2026-11-20"};
	document = fleet_of(&results, &since);
	assert_int_equal(column_number(document, "result_count"), 12);
	assert_int_equal(json_array_size(json_object_get(document, "left_out")), 2);
	json_decref(document);
	struct error err = {0};
	const struct fleet_request never = {.since_s = 4e9, .since = "2096-10-02"};
	assert_int_equal(fleet_make(&results, &never, &document, &err), -ENODATA);
	assert_null(document);
	node_results_release(&results);
}

/* What a check measured before it died is no figure, and neither is one of a newer program. */
static void what_did_not_end_is_no_figure(void **state)
{
	(void)state;
	struct node_results results = {0};
	struct error err = {0};
	add_alike(&results, 5, 500);
	const struct fixture_node node = {.name = "died", .seed = 9, .repeats = 0.01};
	json_t *result = fixture_document(&node);
	json_t *cores = json_array_get(json_object_get(result, "measured"), 0);
	(void)json_object_set_new(cores, "state", json_string("died"));
	json_t *training = json_array_get(json_object_get(result, "measured"), 1);
	(void)json_object_set_new(json_array_get(json_object_get(training, "values"), 0), "figure",
		json_string("figure.of.tomorrow"));
	(void)json_object_set_new(result, "tier", json_string("burn"));
	assert_int_equal(node_results_add(&results, result, "died/accept.json", &err), 0);
	json_decref(result);
	assert_int_equal(results.list[0].figure_count, FIXTURE_CORES + 3);
	assert_string_equal(results.list[5].name, "died");
	assert_int_equal(results.list[5].figure_count, 2);
	json_t *document = fleet_of(&results, NULL);
	size_t i;
	const json_t *metric;
	json_array_foreach(column_value(document, "groups.0.metrics"), i, metric)
	{
		assert_int_equal(column_number(metric, "nodes"),
			strstr(column_text(metric, "figure"), "capacity") ? 6 : 5);
	}
	assert_string_equal(column_text(document, "notes.0"),
		"1 node was judged by another tier than most: died");
	json_decref(document);
	node_results_release(&results);
}

static void says_who_is_missing(void **state)
{
	(void)state;
	struct node_results results = {0};
	struct error err = {0};
	json_t *names = NULL;
	add_alike(&results, 6, 400);
	assert_int_equal(
		fleet_expect_parse(
			"node[01-03,05],node09 # one too many\n\n node04\nnode05\n", &names, &err),
		0);
	assert_int_equal(json_array_size(names), 6);
	const struct fleet_request request = {.expect = names, .expect_file = "nodes.txt"};
	json_t *document = fleet_of(&results, &request);
	const json_t *expected = json_object_get(document, "expected");
	assert_int_equal(column_number(expected, "reported"), 5);
	assert_string_equal(column_text(expected, "missing.0"), "node09");
	assert_string_equal(column_text(expected, "unexpected.0"), "node06");
	assert_int_equal(column_number(document, "exit_status"), EXIT_STATUS_CANNOT);
	assert_string_equal(column_text(document, "sentence"),
		"6 nodes: 6 PASS; 1 of 6 expected nodes did not report");
	struct buffer words = {0};
	fleet_expected_words(expected, &words);
	assert_string_equal(words.data, "5 of 6 reported, missing: node09; not expected: node06");
	buffer_release(&words);
	json_decref(document);
	json_decref(names);
	node_results_release(&results);
}

static void refuses_lists_that_are_none(void **state)
{
	(void)state;
	static const char *const wrong[] = {"", "# nothing\n", "a\nnode[1-", "node[5-1]", "node[]",
		"node[a]", "a[1]b[2]", "node]", "node[1-2-3]", "node[1-9999999999]",
		"node[1-200000]", "a\xff"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct error err = {0};
		json_t *names = NULL;
		assert_int_equal(fleet_expect_parse(wrong[i], &names, &err), -EINVAL);
		assert_true(err.text[0] != '\0');
		assert_null(names);
	}
	struct error err = {0};
	json_t *names = NULL;
	assert_int_equal(fleet_expect_parse("\na\n b c node[1-", &names, &err), -EINVAL);
	assert_non_null(strstr(err.text, "line 3"));
	assert_int_equal(fleet_expect_parse("r[08-11]n", &names, &err), 0);
	assert_string_equal(json_string_value(json_array_get(names, 0)), "r08n");
	assert_string_equal(json_string_value(json_array_get(names, 3)), "r11n");
	json_decref(names);
}

/* One node, nodes of which each is another hardware, and names that are hostile. */
static void odd_fleets_have_documents(void **state)
{
	(void)state;
	static const char *const names[] = {"<script>alert(1)</script>", "a,\"b\"\n|`c`",
		"\xe2\x80\xae\x1b[31mred", "x", "=1+2"};
	struct node_results results = {0};
	struct buffer out = {0};
	struct error err = {0};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		add(&results, (struct fixture_node){.name = names[i],
				      .seed = i,
				      .memory = 64.0 * (double)(i + 1),
				      .verdict = i % 2 ? "FAIL" : NULL});
		json_t *document = fleet_of(&results, NULL);
		assert_int_equal(json_array_size(json_object_get(document, "groups")), i + 1);
		assert_int_equal(outliers_in(document), 0);
		struct medium markdown = medium_markdown(&out);
		fleet_text(document, &markdown, true);
		assert_int_equal(fleet_page(document, "", &out, &err), 0);
		assert_null(strstr(out.data, "<script>alert"));
		buffer_release(&out);
		fleet_csv(document,
			&out); /* as text for a spreadsheet: names with commas are quoted */
		assert_true(i == 0 || strstr(out.data, "\"a,\"\"b\"\""));
		buffer_release(&out);
		json_decref(document);
	}
	node_results_release(&results);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_worst_come_first_with_their_reasons),
		cmocka_unit_test(healthy_fleets_are_left_in_peace),
		cmocka_unit_test(says_what_changed),
		cmocka_unit_test(what_did_not_end_is_no_figure),
		cmocka_unit_test(says_who_is_missing),
		cmocka_unit_test(refuses_lists_that_are_none),
		cmocka_unit_test(odd_fleets_have_documents),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
