/* How often a baseline and a fleet are wrong where the truth is known, with repetitions that were really measured
 * (real_repetitions.h): nodes are runs, drawn without replacement, and their repetitions are resampled.  A node that is 5 %
 * slow among 20 is found, by its verdict against their baseline and by the fleet; and at most 1 % of healthy nodes are
 * rejected.  The seed is fixed. */
#include "harness/accept/baseline.h"
#include "harness/accept/fleet.h"
#include "harness/accept/result.h"
#include "harness/base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/real_repetitions.h"

enum { NODES = 20, DRAWS = 100, REPEATS_MOST = 48 };

static const char plan_of_baseline[] =
	"[cores]\nkind = ceiling\ntier = quick\n"
	"decode.core = within baseline\ngemm.core = within baseline\n";
static const char plan_of_five[] = "[cores]\nkind = ceiling\ntier = quick\n"
				   "decode.core = within 5 % of baseline\n"
				   "gemm.core = within 5 % of baseline\n";

static const double real_units[REAL_FIGURES] = {1, 1e9};

/* A node: a run whose repetitions are drawn anew, as long as a verdict asks for more. */
struct drawn_node {
	size_t run;
	double slow;
	double values[REAL_FIGURES][REAL_CORES][REPEATS_MOST];
	size_t count;
};

static void draw_more(struct rng *rng, struct drawn_node *node, size_t count)
{
	for (size_t f = 0; f < REAL_FIGURES; f++)
		for (size_t c = 0; c < REAL_CORES; c++)
			for (size_t i = node->count; i < node->count + count; i++)
				node->values[f][c][i] = (1 - node->slow) * real_units[f] *
							real_repetitions[node->run][f][c][rng_below(
								rng, REAL_REPEATS)];
	node->count += count;
}

static json_t *values_json_of(const struct drawn_node *node)
{
	json_t *entries = json_array();
	for (size_t f = 0; f < REAL_FIGURES; f++)
		for (size_t c = 0; c < REAL_CORES; c++) {
			char place[16];
			json_t *values = json_array();
			(void)snprintf(place, sizeof place, "core %zu", c);
			for (size_t i = 0; i < node->count; i++)
				(void)json_array_append_new(
					values, json_real(node->values[f][c][i]));
			(void)json_array_append_new(entries,
				json_pack("{s:s, s:s, s:o, s:n, s:n}", "figure", real_figures[f],
					"place", place, "values", values, "peak", "source"));
		}
	return entries;
}

static json_t *document_of(const struct drawn_node *node, size_t number, const char *schema)
{
	char name[16];
	(void)snprintf(name, sizeof name, "node%02zu", number);
	return json_pack(
		"{s:s, s:s, s:{s:s}, s:{s:s}, s:s, s:s, s:s, s:b, s:[{s:s, s:s, s:[]}], s:[{s:s, s:s, s:s, s:o, s:[], "
		"s:[], s:[], s:[], s:[], s:i}]}",
		"schema", schema, "program", "test", "node", "name", name, "fingerprint", "cpu",
		"x", "tier", "quick", "started", "2026-11-26T03:10:00Z", "verdict", "PASS",
		"complete", 1, "checks", "check", "cores", "verdict", "PASS", "findings",
		"measured", "check", "cores", "kind", "ceiling", "state", "done", "values",
		values_json_of(node), "facts", "missing", "events", "series", "notes", "rounds", 1);
}

static void add_drawn(struct node_results *results, const struct drawn_node *node, size_t number)
{
	struct error err = {0};
	json_t *document = document_of(node, number, ACCEPT_SCHEMA);
	assert_non_null(document);
	if (node_results_add(results, document, "x", &err))
		fail_msg("%s", err.text);
	json_decref(document);
}

/* The verdict after as many repetitions as it takes, eight at a time. */
static enum accept_verdict verdict_of(struct rng *rng, struct drawn_node *node,
	const struct accept_plan *plan, const json_t *baseline)
{
	enum accept_verdict verdict = VERDICT_ERROR;
	struct error err = {0};
	while (verdict == VERDICT_ERROR && node->count + REAL_REPEATS <= REPEATS_MOST) {
		draw_more(rng, node, REAL_REPEATS);
		json_t *measured = document_of(node, 0, MEASURED_SCHEMA);
		json_t *judged = result_judge(measured, plan, TIER_QUICK, baseline, &err);
		assert_non_null(judged);
		verdict = accept_verdict_of(json_string_value(json_object_get(judged, "verdict")));
		json_decref(judged);
		json_decref(measured);
	}
	return verdict;
}

struct counts {
	size_t verdicts[VERDICT_FAIL + 1];
	size_t left_out, outliers, alarms; /* alarms: fleets with a healthy outlier */
};

static bool is_left_out(const json_t *baseline, const char *name)
{
	size_t i;
	const json_t *entry;
	json_array_foreach(json_object_get(baseline, "left_out"), i, entry)
	{
		if (strcmp(json_string_value(json_object_get(entry, "name")), name) == 0)
			return true;
	}
	return false;
}

static void count_fleet(struct node_results *results, double slow, struct counts *counts)
{
	const struct fleet_request request = {0};
	struct error err = {0};
	json_t *fleet = NULL;
	size_t i;
	const json_t *node;
	bool alarmed = false;
	assert_int_equal(fleet_make(results, &request, &fleet, &err), 0);
	json_array_foreach(json_object_get(fleet, "nodes"), i, node)
	{
		const bool planted =
			slow > 0 &&
			strcmp(json_string_value(json_object_get(node, "node")), "node00") == 0;
		const bool outlier = json_is_true(json_object_get(node, "outlier"));
		counts->outliers += planted && outlier;
		alarmed = alarmed || (!planted && outlier);
	}
	counts->alarms += alarmed;
	json_decref(fleet);
}

/* One draw: a fleet whose first node is slow by that, its baseline, and who is judged by it: the slow one, or else as many
 * healthy nodes that the baseline has not seen. */
static void draw(
	struct rng *rng, double slow, const struct accept_plan *plan, struct counts *counts)
{
	size_t runs[REAL_RUNS];
	struct node_results results = {0};
	struct baseline_request request = {.made = "2026-11-26T04:00:00Z"};
	struct error err = {0};
	json_t *baseline = NULL;
	for (size_t i = 0; i < REAL_RUNS; i++)
		runs[i] = i;
	for (size_t i = REAL_RUNS - 1; i > 0; i--) {
		const size_t other = rng_below(rng, i + 1);
		const size_t kept = runs[i];
		runs[i] = runs[other];
		runs[other] = kept;
	}
	for (size_t i = 0; i < NODES; i++) {
		struct drawn_node node = {.run = runs[i], .slow = i == 0 ? slow : 0};
		draw_more(rng, &node, REAL_REPEATS);
		add_drawn(&results, &node, i);
	}
	if (baseline_make(&results, &request, &baseline, &err))
		fail_msg("%s", err.text);
	counts->left_out += is_left_out(baseline, "node00");
	for (size_t i = 0; i < (slow > 0 ? 1 : NODES); i++) {
		struct drawn_node fresh = {
			.run = slow > 0 ? runs[0] : runs[NODES + i], .slow = slow};
		counts->verdicts[verdict_of(rng, &fresh, plan, baseline)]++;
	}
	count_fleet(&results, slow, counts);
	json_decref(baseline);
	node_results_release(&results);
}

static struct counts draws_of(uint64_t seed, double slow, const char *text)
{
	struct counts counts = {{0}, 0, 0, 0};
	struct accept_plan plan = {0};
	struct error err = {0};
	struct rng rng;
	if (plan_read_text(&plan, "plan.ini", text, strlen(text), &err))
		fail_msg("%s", err.text);
	rng_init(&rng, seed, 0);
	for (size_t i = 0; i < DRAWS; i++)
		draw(&rng, slow, &plan, &counts);
	plan_release(&plan);
	print_message(
		"%g %% slow: PASS %zu, FAIL %zu, cannot tell %zu; left out of the baseline %zu of %d; "
		"outlier %zu of %d; fleets with another outlier %zu of %d\n",
		100 * slow, counts.verdicts[VERDICT_PASS], counts.verdicts[VERDICT_FAIL],
		counts.verdicts[VERDICT_ERROR], counts.left_out, DRAWS, counts.outliers, DRAWS,
		counts.alarms, DRAWS);
	return counts;
}

static void healthy_nodes_are_not_rejected(void **state)
{
	(void)state;
	const struct counts by_limits = draws_of(1, 0, plan_of_baseline);
	assert_in_range(by_limits.verdicts[VERDICT_FAIL], 0, DRAWS * NODES / 100);
	assert_true(by_limits.verdicts[VERDICT_PASS] > DRAWS * NODES * 90 / 100);
	assert_in_range(by_limits.alarms, 0, 2);
	const struct counts by_share = draws_of(2, 0, plan_of_five);
	assert_in_range(by_share.verdicts[VERDICT_FAIL], 0, DRAWS * NODES / 100);
}

static void a_slow_node_is_found(void **state)
{
	(void)state;
	const struct counts counts = draws_of(3, 0.05, plan_of_baseline);
	assert_in_range(counts.verdicts[VERDICT_FAIL], 95, DRAWS);
	assert_int_equal(counts.verdicts[VERDICT_PASS], 0);
	assert_in_range(counts.outliers, 95, DRAWS);
	assert_in_range(counts.left_out, 95, DRAWS);
	assert_in_range(counts.alarms, 0, 2);
}

/* A tenth slower is beyond 5 % of the baseline, whatever its limits. */
static void a_slower_one_is_beyond_a_share_of_the_median(void **state)
{
	(void)state;
	const struct counts counts = draws_of(4, 0.10, plan_of_five);
	assert_int_equal(counts.verdicts[VERDICT_FAIL], DRAWS);
	assert_int_equal(counts.outliers, DRAWS);
	assert_int_equal(counts.left_out, DRAWS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(healthy_nodes_are_not_rejected),
		cmocka_unit_test(a_slow_node_is_found),
		cmocka_unit_test(a_slower_one_is_beyond_a_share_of_the_median),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
