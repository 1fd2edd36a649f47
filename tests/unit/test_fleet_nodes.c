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
	(void)json_object_set_new(json_array_get(json_object_get(result, "checks"), 0), "verdict",
		json_string("ERROR"));
	(void)json_object_set_new(result, "verdict", json_string("ERROR"));
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

/* --- what must not pass without a word ------------------------------------------------------------ */

static json_t *measured_of(json_t *document, size_t check)
{
	return json_array_get(json_object_get(document, "measured"), check);
}

static void lack_place(json_t *document)
{
	(void)json_array_remove(json_object_get(measured_of(document, 0), "values"), 1);
}

static void lack_figure(json_t *document)
{
	(void)json_array_remove(json_object_get(measured_of(document, 1), "values"), 0);
}

static void lack_values(json_t *document)
{
	json_t *entry = json_array_get(json_object_get(measured_of(document, 1), "values"), 0);
	(void)json_object_set_new(entry, "values", json_pack("[n]"));
}

static void lack_check(json_t *document)
{
	(void)json_array_remove(json_object_get(document, "measured"), 1);
}

static void rename_check(json_t *document)
{
	json_t *check = json_array_get(json_object_get(document, "checks"), 0);
	(void)json_object_set_new(check, "check", json_string("training"));
}

static void other_plan(json_t *document)
{
	(void)json_object_set_new(json_object_get(document, "judged_by"), "plan",
		json_pack("{s:s}", "hash", "0123456789abcdef"));
}

static void other_baseline(json_t *document)
{
	(void)json_object_set_new(json_object_get(document, "judged_by"), "baseline",
		json_pack("{s:s}", "made", "2026-01-01T00:00:00Z"));
}

static void set_value(json_t *document, json_t *value)
{
	json_t *entry = json_array_get(json_object_get(measured_of(document, 0), "values"), 0);
	(void)json_array_set_new(json_object_get(entry, "values"), 3, value);
}

static void text_value(json_t *document)
{
	set_value(document, json_string("410.2"));
}

static void huge_value(json_t *document)
{
	set_value(document, json_real(1e308));
}

static void text_values(json_t *document)
{
	json_t *entry = json_array_get(json_object_get(measured_of(document, 0), "values"), 0);
	(void)json_object_set_new(entry, "values", json_string("410.2"));
}

static void died(json_t *document)
{
	(void)json_object_set_new(measured_of(document, 0), "state", json_string("died"));
}

static void no_date(json_t *document)
{
	(void)json_object_set_new(document, "started", json_string("yesterday"));
}

static void in_2036(json_t *document)
{
	(void)json_object_set_new(document, "started", json_string("2036-01-01T00:00:00Z"));
}

static void no_name(json_t *document)
{
	(void)json_object_del(document, "node");
	(void)json_object_del(json_object_get(document, "environment"), "node");
}

static void skip_verdict(json_t *document)
{
	(void)json_object_set_new(document, "verdict", json_string("SKIP"));
}

/* A PASS that most like nodes would not have given: of what was not measured, or by another plan.  `words` is the gap; NULL: the
 * status alone. */
static void gaps_are_no_pass(void **state)
{
	(void)state;
	static const struct {
		void (*change)(json_t *document);
		const char *gap;
	} cases[] = {
		{lack_place,
			"not measured: decode.core at core 1 of 'slow core', which 5 of 6 like nodes have"},
		{lack_figure,
			"not measured: throughput of 'training', which 5 of 6 like nodes have"},
		{lack_values,
			"not measured: throughput of 'training', which 5 of 6 like nodes have"},
		{lack_check,
			"not measured: decode.capacity of 'training', which 5 of 6 like nodes have"},
		{rename_check, "not measured: check 'slow core', which 5 of 6 like nodes have"},
		{other_plan, "judged by another plan than 5 of 6 like nodes"},
		{other_baseline, "judged by another baseline than 5 of 6 like nodes"},
		{skip_verdict, NULL},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct node_results results = {0};
		struct error err = {0};
		add_alike(&results, 5, 700);
		const struct fixture_node node = {
			.name = "odd", .seed = 7, .nodes = 0.004, .repeats = 0.01};
		json_t *result = fixture_document(&node);
		cases[i].change(result);
		if (node_results_add(&results, result, "odd/accept.json", &err))
			fail_msg("%zu: %s", i, err.text);
		json_decref(result);
		json_t *document = fleet_of(&results, NULL);
		const json_t *row = row_of(document, "odd");
		assert_int_equal(column_number(document, "exit_status"), EXIT_STATUS_CANNOT);
		if (cases[i].gap) {
			assert_string_equal(column_text(row, "gaps.0"), cases[i].gap);
			assert_string_equal(column_text(row, "sentence"), cases[i].gap);
			assert_non_null(
				strstr(column_text(document, "sentence"), "; 1 not comparable"));
			assert_string_equal(name_at(document, 0), "odd");
		}
		assert_int_equal(
			json_array_size(json_object_get(row_of(document, "node01"), "gaps")), 0);
		json_decref(document);
		node_results_release(&results);
	}
}

/* Each of three nodes has its own links alone, which two of three have: no gap. */
static void a_nodes_own_links_are_no_gap(void **state)
{
	(void)state;
	static const char *const names[] = {"n1", "n2", "n3"};
	struct node_results results = {0};
	struct error err = {0};
	for (size_t i = 0; i < 3; i++) {
		const struct fixture_node node = {
			.name = names[i], .seed = 40 + i, .nodes = 0.004, .repeats = 0.01};
		json_t *result = fixture_document(&node);
		json_t *links = json_array();
		struct rng rng;
		rng_init(&rng, i, 5);
		for (size_t k = 0; k < 6; k++) {
			char place[16];
			const char *other = names[k / 2];
			(void)snprintf(place, sizeof place, "%s to %s", k % 2 ? other : names[i],
				k % 2 ? names[i] : other);
			if (k / 2 != i)
				(void)json_array_append_new(
					links, fixture_values(&rng, &node, 1e9, "network.bandwidth",
						       place));
		}
		(void)json_array_append_new(json_object_get(result, "measured"),
			fixture_check("links", "network", links, NULL));
		if (node_results_add(&results, result, names[i], &err))
			fail_msg("%s", err.text);
		json_decref(result);
	}
	json_t *document = fleet_of(&results, NULL);
	assert_int_equal(column_number(document, "exit_status"), 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(
			json_array_size(json_object_get(row_of(document, names[i]), "gaps")), 0);
	json_decref(document);
	node_results_release(&results);
}

/* What nobody could have measured, and what hides another result, is no result. */
static void damage_is_no_result(void **state)
{
	(void)state;
	static const struct {
		void (*change)(json_t *document);
		const char *why;
	} cases[] = {
		{text_value, "decode.core of check 'slow core' is damaged: \"410.2\" is no number"},
		{huge_value, "is no number that can be measured"},
		{text_values, "decode.core of check 'slow core' is damaged"},
		{died, "PASS of check 'slow core' contradicts how it ended (died)"},
		{no_date, "it has no date: 'started' is 'yesterday'"},
		{in_2036, "it is dated 2036-01-01T00:00:00Z, which is still to come"},
		{no_name, "it does not say of which node it is"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct node_results results = {.now_s = node_result_time("2026-11-26T04:00:00Z")};
		struct error err = {0};
		const struct fixture_node node = {.name = "odd", .seed = 7, .repeats = 0.01};
		json_t *result = fixture_document(&node);
		cases[i].change(result);
		assert_int_equal(
			node_results_add(&results, result, "odd/accept.json", &err), -EINVAL);
		if (!strstr(err.text, cases[i].why))
			fail_msg("'%s', not '%s'", err.text, cases[i].why);
		assert_int_equal(results.count, 0);
		json_decref(result);
		node_results_release(&results);
	}
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
		cmocka_unit_test(gaps_are_no_pass),
		cmocka_unit_test(a_nodes_own_links_are_no_gap),
		cmocka_unit_test(damage_is_no_result),
		cmocka_unit_test(says_who_is_missing),
		cmocka_unit_test(refuses_lists_that_are_none),
		cmocka_unit_test(odd_fleets_have_documents),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
