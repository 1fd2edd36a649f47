/* What a comparison is made of: matched points, what differs and what it weighs, the grammar of gates and when they
 * hold, and which stage explains what, on cases whose answer is known. */
#include "harness/analyze/comparison.h"
#include "harness/analyze/student.h"
#include "tests/unit/model_fixture.h"

#include <errno.h>

static void assert_near(double a, double b, double tolerance)
{
	if (!(fabs(a - b) <= tolerance))
		fail_msg("%.8g is not %.8g within %g", a, b, tolerance);
}

/* --- points ------------------------------------------------------------------------------------------------ */

struct sweep {
	struct config config;
	struct config_grid grid;
};

static struct sweep swept(const char *first, const char *second)
{
	struct sweep s = {0};
	config_init(&s.config);
	if (first)
		assert_int_equal(config_set(&s.config, first, NULL), 0);
	if (second)
		assert_int_equal(config_set(&s.config, second, NULL), 0);
	assert_int_equal(config_grid_open(&s.config, &s.grid, NULL), 0);
	return s;
}

static void sweep_release(struct sweep *s)
{
	config_grid_close(&s->grid);
	config_release(&s->config);
}

static struct point_match matched(struct sweep *a, struct sweep *b)
{
	struct point_match match;
	assert_int_equal(point_match(&a->config, &a->grid, &b->config, &b->grid, &match), 0);
	return match;
}

/* Axes in another order, values in another order, some on one side only. */
static void points_are_matched_by_value(void **state)
{
	(void)state;
	struct sweep a = swept("sweep.decode.workers=1,2,4", "sweep.batch.size=16,64");
	struct sweep b = swept("sweep.batch.size=64,32,16", "sweep.decode.workers=4,1");
	struct point_match match = matched(&a, &b);
	assert_int_equal(match.pair_count, 4);
	assert_int_equal(match.only_a_count, 2);
	assert_int_equal(match.only_b_count, 2);
	for (size_t i = 0; i < match.pair_count; i++)
		for (int k = 0; k < KEY_COUNT; k++)
			assert_true(config_value_same((enum key_id)k,
				point_value(&a.config, &a.grid, match.pairs[i].a, (enum key_id)k),
				point_value(&b.config, &b.grid, match.pairs[i].b, (enum key_id)k)));
	for (size_t i = 0; i < match.only_a_count; i++)
		assert_int_equal(
			point_value(&a.config, &a.grid, match.only_a[i], KEY_DECODE_WORKERS)
				->integer,
			2);
	for (size_t i = 0; i < match.only_b_count; i++)
		assert_int_equal(
			point_value(&b.config, &b.grid, match.only_b[i], KEY_BATCH_SIZE)->integer,
			32);
	point_match_release(&match);
	sweep_release(&a);
	sweep_release(&b);
}

static void a_single_run_is_a_point_of_a_sweep(void **state)
{
	(void)state;
	struct sweep a = swept("sweep.step.model=resnet50,vit_b16", NULL);
	struct sweep b = swept("step.model=vit_b16", "decode.workers=7");
	struct point_match match = matched(&a, &b);
	assert_int_equal(match.pair_count, 1);
	assert_int_equal(match.pairs[0].a, 1);
	assert_true(match.swept[KEY_STEP_MODEL] && !match.swept[KEY_DECODE_WORKERS]);
	point_match_release(&match);
	struct sweep c = swept(NULL, NULL);
	match = matched(&b, &c); /* two single runs are a pair, whatever their settings */
	assert_int_equal(match.pair_count, 1);
	point_match_release(&match);
	sweep_release(&a);
	sweep_release(&b);
	sweep_release(&c);
}

/* --- what differs ------------------------------------------------------------------------------------------ */

static enum compare_weight weight_of(const struct compare_facts *facts, const char *name)
{
	for (size_t i = 0; i < facts->count; i++)
		if (strcmp(facts->list[i].name, name) == 0)
			return facts->list[i].weight;
	fail_msg("'%s' does not differ", name);
	return COMPARE_HARMLESS;
}

static struct compare_facts keys_differ(
	const char *const *a, const char *const *b, const bool swept_keys[KEY_COUNT])
{
	struct config left;
	struct config right;
	struct compare_facts facts = {0};
	config_init(&left);
	config_init(&right);
	for (; *a; a++)
		assert_int_equal(config_set(&left, *a, NULL), 0);
	for (; *b; b++)
		assert_int_equal(config_set(&right, *b, NULL), 0);
	compare_keys(&facts, &left, &right, swept_keys);
	compare_facts_sort(&facts);
	assert_false(facts.failed);
	config_release(&left);
	config_release(&right);
	return facts;
}

static void keys_weigh_what_they_change(void **state)
{
	(void)state;
	static const char *const a[] = {"dataset.recipe=photo", NULL};
	static const char *const b[] = {"dataset.recipe=photo", "dataset.quality=70",
		"dataset.png_level=9", "dataset.path=/elsewhere", "measure.repeats=9", "run.name=x",
		"decode.workers=8", "inject.decode_factor=2", "batch.size=16", "augment.size=64",
		NULL};
	bool keys[KEY_COUNT] = {false};
	struct compare_facts facts = keys_differ(a, b, keys);
	assert_int_equal(facts.count, 9);
	assert_int_equal(facts.list[0].weight, COMPARE_REFUSED);
	assert_int_equal(weight_of(&facts, "dataset.quality"), COMPARE_REFUSED);
	assert_int_equal(weight_of(&facts, "augment.size"), COMPARE_REFUSED);
	assert_int_equal(weight_of(&facts, "dataset.png_level"), COMPARE_HARMLESS); /* JPEG */
	assert_int_equal(weight_of(&facts, "dataset.path"), COMPARE_HARMLESS);
	assert_int_equal(weight_of(&facts, "measure.repeats"), COMPARE_HARMLESS);
	assert_int_equal(weight_of(&facts, "decode.workers"), COMPARE_SETTING);
	assert_int_equal(weight_of(&facts, "inject.decode_factor"), COMPARE_STRONG);
	assert_int_equal(weight_of(&facts, "batch.size"), COMPARE_STRONG);
	compare_facts_release(&facts);
	keys[KEY_AUGMENT_SIZE] = keys[KEY_DATASET_QUALITY] = true; /* matched by value */
	facts = keys_differ(a, b, keys);
	assert_int_equal(compare_facts_count(&facts, COMPARE_REFUSED), 0);
	compare_facts_release(&facts);
}

static void an_own_folder_is_known_by_its_path(void **state)
{
	(void)state;
	static const char *const a[] = {"dataset.path=/one", NULL};
	static const char *const b[] = {"dataset.path=/two", "dataset.quality=70", NULL};
	const bool keys[KEY_COUNT] = {false};
	struct compare_facts facts = keys_differ(a, b, keys);
	assert_int_equal(weight_of(&facts, "dataset.path"), COMPARE_STRONG);
	assert_int_equal(weight_of(&facts, "dataset.quality"), COMPARE_HARMLESS);
	compare_facts_release(&facts);
}

static void nodes_are_told_apart(void **state)
{
	(void)state;
	struct fact_list a = {0};
	struct fact_list b = {0};
	struct compare_facts facts = {0};
	fact_text(&a, "cpu", "model", "one");
	fact_text(&b, "cpu", "model", "two");
	fact_number(&a, "memory", "total", 1e10, "B");
	fact_number(&b, "memory", "total", 1.001e10, "B"); /* what a kernel keeps */
	fact_number(&a, "dataset", "bytes", 1e9, "bytes");
	fact_number(&b, "dataset", "bytes", 1e9 + 1, "bytes");
	fact_number(&a, "load", "average_1min", 1, NULL);
	fact_number(&b, "load", "average_1min", 2, NULL);
	fact_missing(&a, "gpu", "driver", "one reason");
	fact_missing(&b, "gpu", "driver", "another reason");
	fact_missing(&a, "cpu", "governor", "no cpufreq");
	fact_text(&b, "cpu", "governor", "powersave");
	fact_text(&b, "kernel", "new_fact", "of a later version");
	compare_environments(&facts, &a, &b);
	assert_int_equal(facts.count, 5);
	assert_int_equal(weight_of(&facts, "cpu.model"), COMPARE_STRONG);
	assert_int_equal(weight_of(&facts, "dataset.bytes"), COMPARE_REFUSED);
	assert_int_equal(weight_of(&facts, "load.average_1min"), COMPARE_HARMLESS);
	assert_int_equal(weight_of(&facts, "cpu.governor"), COMPARE_STRONG);
	assert_int_equal(weight_of(&facts, "kernel.new_fact"), COMPARE_MINOR);
	compare_facts_release(&facts);
	fact_list_release(&a);
	fact_list_release(&b);
}

/* --- gates ----------------------------------------------------------------------------------------------------- */

static struct gate parsed_as(const char *text, bool required)
{
	struct gate gate;
	struct error err = {""};
	if (gate_parse(text, required, &gate, &err))
		fail_msg("%s", err.text);
	return gate;
}

static struct gate parsed(const char *text)
{
	return parsed_as(text, false);
}

static void refused(const char *text, const char *why)
{
	struct gate gate;
	struct error err = {""};
	assert_int_equal(gate_parse(text, false, &gate, &err), -EINVAL);
	if (!strstr(err.text, why))
		fail_msg("'%s' does not say '%s'", err.text, why);
}

static void the_grammar_is_small_and_strict(void **state)
{
	(void)state;
	struct gate gate = parsed("throughput < -5%");
	assert_true(gate.relative && !gate.above);
	assert_near(gate.value, -0.05, 1e-15);
	gate = parsed("  decode.p99>=3ms ");
	assert_true(!gate.relative && gate.above);
	assert_near(gate.value, 3e6, 0);
	assert_near(parsed("decode.busy > 0.9").value, 0.9, 0);
	assert_near(parsed("memory > 2GiB").value, 2147483648.0, 0);
	assert_near(parsed("read_rate < 1GiB/s").value, 1073741824.0, 0);
	gate = parsed_as("throughput > -5%", true); /* the same limit as of throughput < -5% */
	assert_true(gate.relative && !gate.above && gate.required);
	refused("", "expected METRIC");
	refused("throughput", "expected METRIC");
	refused("throughput == 5", "expected METRIC");
	refused("throughput < 5 % more", "is not a value");
	refused("throughput << 5", "is not a value");
	refused("trougput < 5", "did you mean 'throughput'");
	refused("throughput < nan", "is not a value");
	refused("throughput < inf%", "is not a value");
	refused("throughput < 0", "always above 0");
	refused("throughput < -200%", "nothing can fall");
	char lengthy[300];
	memset(lengthy, 'x', sizeof lengthy - 1);
	lengthy[sizeof lengthy - 1] = '\0';
	refused(lengthy, "too long");
}

/* ln of the ratio, with an interval of `half` at 1 %. */
static struct difference moved(double value, double half)
{
	const double t = student_quantile(0.995, 10);
	return (struct difference){.a = log(1000),
		.b = log(1000) + value,
		.value = value,
		.error = half / t,
		.critical = t,
		.freedom = 10,
		.interval = {value - half, value + half},
		.p = 0.5,
		.adjusted = 0.5,
		.floor = 0.01,
		.tests = 1,
		.a_count = 3,
		.b_count = 3};
}

static struct gate_result judged_as(
	const char *text, bool required, const struct difference *differences, size_t count)
{
	const struct gate gate = parsed_as(text, required);
	const struct difference mean = moved(0, 1);
	struct gate_result result;
	gate_judge(&gate, differences, count, count == 1 ? differences : &mean, 0.01, &result);
	assert_true(result.why[0]);
	return result;
}

static enum gate_outcome judged(
	const char *text, const struct difference *differences, size_t count)
{
	return judged_as(text, false, differences, count).outcome;
}

/* One side of the limit, the other, or both. */
static void a_gate_is_judged_by_the_whole_interval(void **state)
{
	(void)state;
	const struct difference d = moved(log1p(-0.1), 0.03); /* -12.7 to -7.3 % */
	assert_int_equal(judged("throughput < -5%", &d, 1), GATE_WORSE);
	assert_int_equal(judged("throughput < -7%", &d, 1), GATE_WORSE);
	assert_int_equal(judged("throughput < -8%", &d, 1), GATE_INCONCLUSIVE);
	assert_int_equal(judged("throughput < -12%", &d, 1), GATE_INCONCLUSIVE);
	assert_int_equal(judged("throughput < -13%", &d, 1), GATE_WITHIN);
	assert_int_equal(judged("throughput > -13%", &d, 1), GATE_WORSE);
	assert_int_equal(judged("throughput > -12%", &d, 1), GATE_INCONCLUSIVE);
	assert_int_equal(judged("throughput > -7%", &d, 1), GATE_WITHIN);
	assert_int_equal(judged("throughput < 950", &d, 1), GATE_WORSE);
	assert_int_equal(judged("throughput < 920", &d, 1), GATE_INCONCLUSIVE);
	assert_int_equal(judged("throughput < 860", &d, 1), GATE_WITHIN);
	/* Surely below 0, and within the noise floor: neither. */
	const struct difference small = moved(-0.009, 0.001);
	assert_int_equal(judged("throughput < 0%", &small, 1), GATE_INCONCLUSIVE);
	/* Repetitions that agree prove nothing about the next run: the limit is nearer than the noise floor. */
	assert_int_equal(judged("throughput < -1.5%", &small, 1), GATE_INCONCLUSIVE);
	assert_int_equal(judged("throughput < -3%", &small, 1), GATE_WITHIN);
}

/* As it was met: 26 % less, by two repetitions that tell nothing, is no pass. */
static void what_cannot_be_told_is_no_pass(void **state)
{
	(void)state;
	const double a[] = {log(1000), log(1150)};
	const double b[] = {log(700), log(900)};
	const struct difference_samples samples = {a, b, 2, 2};
	const struct difference_rules rules = {
		0.01, COMPARE_RUN_SHARE, COMPARE_RUN_DEVIATION, 0.05, false, STALLS_LESSEN, 1};
	struct difference d;
	assert_int_equal(compare_differences(&samples, 1, &rules, &d, NULL), 0);
	assert_true(d.value < log1p(-0.25));
	struct gate_result r = judged_as("throughput < -5%", false, &d, 1);
	assert_int_equal(r.outcome, GATE_INCONCLUSIVE);
	assert_true(r.repeats_needed == 0 || r.repeats_needed > 2);
	const struct gate fail_if = parsed("throughput < -5%");
	const struct gate required = parsed_as("throughput > -5%", true);
	assert_false(gate_fails(&fail_if, &r));
	r = judged_as("throughput > -5%", true, &d, 1);
	assert_int_equal(r.outcome, GATE_INCONCLUSIVE);
	assert_true(gate_fails(&required, &r)); /* the burden of proof is B's */
	const struct difference same = moved(0, 0.03);
	r = judged_as("throughput > -5%", true, &same, 1);
	assert_int_equal(r.outcome, GATE_WITHIN);
	assert_false(gate_fails(&required, &r));
}

/* One of many at the edge is chance; of many that are within, one that is not shown to be decides. */
static void several_points_are_judged_together(void **state)
{
	(void)state;
	enum { POINTS = 20 };
	struct difference points[POINTS];
	for (size_t i = 0; i < POINTS; i++)
		points[i] = moved(0, 0.03);
	assert_int_equal(judged("throughput < -5%", points, POINTS), GATE_WITHIN);
	points[3] = moved(-0.031, 0.03);
	assert_int_equal(judged("throughput < 0%", &points[3], 1), GATE_WORSE);
	assert_int_equal(judged("throughput < 0%", points, POINTS), GATE_INCONCLUSIVE);
	const struct gate_result r = judged_as("throughput < -5%", false, points, POINTS);
	assert_int_equal(r.outcome, GATE_INCONCLUSIVE);
	assert_int_equal(r.point, 3);
	assert_int_equal(r.points, 1);
	points[3] = moved(-0.1, 0.03);
	assert_int_equal(judged("throughput < 0%", points, POINTS), GATE_WORSE);
}

static void a_gate_never_passes_open(void **state)
{
	(void)state;
	struct difference points[2] = {moved(0, 0.01), moved(0, 0.01)};
	points[1].b = points[1].value = NAN;
	assert_int_equal(judged("throughput < -5%", points, 2), GATE_INCONCLUSIVE);
	assert_true(judged_as("throughput < -5%", false, points, 2).missing);
	assert_int_equal(judged("throughput < -5%", points, 1), GATE_WITHIN);
	assert_int_equal(judged("throughput < -5%", NULL, 0), GATE_INCONCLUSIVE);
	struct difference untold = moved(0, 0.01);
	untold.error = untold.interval.low = untold.interval.high = NAN;
	assert_int_equal(judged("throughput < -5%", &untold, 1), GATE_INCONCLUSIVE);
	points[1] = untold;
	assert_int_equal(judged("throughput < -5%", points, 2), GATE_INCONCLUSIVE);
	assert_int_equal(judged_as("throughput < -5%", false, points, 2).repeats_needed, 3);
}

/* --- explanations ------------------------------------------------------------------------------------------- */

static const struct truth plain = {
	.settings = {"step.backend=emulated", "step.time=4ms", "batch.size=16", "decode.workers=2"},
	.read_cpu_us = 15,
	.read_latency_us = 100,
	.decode_us = 300,
	.decode_cv = 0.3,
	.step_ms = 4,
	.host_us = 50,
	.cores = 8,
	.samples = 2048,
	.repeats = 2,
};

static struct explanation explained(const struct truth *left, const struct truth *right)
{
	struct truth_run *a = truth_make(left);
	struct truth_run *b = truth_make(right);
	struct model before;
	struct model after;
	struct explanation out;
	struct error err = {""};
	truth_open(&before, a);
	truth_open(&after, b);
	if (explain_by_replay(&before, &after, log(b->throughput / a->throughput), &out, &err))
		fail_msg("%s", err.text);
	print_message("measured %.3f explained %.3f:", out.measured, out.explained);
	double sum = 0;
	for (size_t i = 0; i < out.part_count; i++) {
		sum += out.parts[i].effect;
		print_message(" %s %.3f", out.parts[i].name, out.parts[i].effect);
	}
	print_message("\n");
	assert_near(sum, out.explained, 1e-4);
	model_close(&before);
	model_close(&after);
	truth_free(a);
	truth_free(b);
	return out;
}

static void a_slower_stage_explains_its_loss(void **state)
{
	(void)state;
	struct truth slow = plain;
	slow.settings[1] = "step.time=6ms";
	slow.step_ms = 6;
	struct explanation e = explained(&plain, &slow);
	assert_string_equal(e.parts[0].name, "step");
	assert_near(e.parts[0].effect, log(4.05 / 6.05), 0.01);
	assert_near(e.explained, e.measured, 0.01);
	slow = plain;
	slow.decode_us = 1200; /* 9.6 ms a batch: decoding binds */
	e = explained(&plain, &slow);
	assert_string_equal(e.parts[0].name, "decode");
	assert_near(e.parts[0].effect / e.measured, 1, 0.05);
}

/* Fewer workers is no stage's cost. */
static void fewer_threads_are_a_part_of_their_own(void **state)
{
	(void)state;
	struct truth busy = plain;
	struct truth fewer;
	busy.decode_us = 600;
	fewer = busy;
	fewer.settings[3] = "decode.workers=1";
	const struct explanation e = explained(&busy, &fewer);
	assert_string_equal(e.parts[0].name, "threads and buffers");
	assert_near(e.parts[0].effect / e.measured, 1, 0.1);
}

/* Two stages that both became slower share the loss; which is first makes no difference. */
static void stages_share_what_both_take(void **state)
{
	(void)state;
	struct explain_capacity stages[] = {{"decode", 1000, 500}, {"step", 1000, 500}};
	struct explanation e;
	explain_by_capacities(stages, 2, log(0.5), &e);
	assert_false(e.replayed);
	assert_int_equal(e.part_count, 2);
	assert_near(e.parts[0].effect, log(0.5) / 2, 1e-12);
	assert_near(e.parts[1].effect, log(0.5) / 2, 1e-12);
	/* One that never binds has no part, and what is not known binds nothing. */
	struct explain_capacity some[] = {
		{"read", NAN, NAN}, {"decode", 9000, 4000}, {"step", 1000, 700}};
	explain_by_capacities(some, 3, log(0.6), &e);
	assert_int_equal(e.part_count, 1);
	assert_string_equal(e.parts[0].name, "step");
	assert_near(e.explained, log(0.7), 1e-12);
	explain_by_capacities(some, 1, log(0.6), &e);
	assert_true(isnan(e.explained));
	assert_int_equal(e.part_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(points_are_matched_by_value),
		cmocka_unit_test(a_single_run_is_a_point_of_a_sweep),
		cmocka_unit_test(keys_weigh_what_they_change),
		cmocka_unit_test(an_own_folder_is_known_by_its_path),
		cmocka_unit_test(nodes_are_told_apart),
		cmocka_unit_test(the_grammar_is_small_and_strict),
		cmocka_unit_test(a_gate_is_judged_by_the_whole_interval),
		cmocka_unit_test(what_cannot_be_told_is_no_pass),
		cmocka_unit_test(several_points_are_judged_together),
		cmocka_unit_test(a_gate_never_passes_open),
		cmocka_unit_test(a_slower_stage_explains_its_loss),
		cmocka_unit_test(fewer_threads_are_a_part_of_their_own),
		cmocka_unit_test(stages_share_what_both_take),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
