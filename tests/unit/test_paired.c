/* Configurations measured in turns: blocks in a random order, results of their own, a session that goes on after a kill, arms
 * that cannot run.  Orders and counts only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/pipeline_fixture.h"

#include "harness/command/paired.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

struct paired_fixture {
	struct pipeline_fixture pipeline;
	char out[128];
	atomic_bool stop;
	struct invocation invocation;
	struct command command;
};

static void paired_setup(struct paired_fixture *f)
{
	*f = (struct paired_fixture){0};
	fixture_open(&f->pipeline, 12, 8, 8, 1);
	fixture_set(&f->pipeline, KEY_READ_ENGINE, "pread");
	fixture_set(&f->pipeline, KEY_AUGMENT_SIZE, "8");
	fixture_set(&f->pipeline, KEY_BATCH_SIZE, "4");
	fixture_set(&f->pipeline, KEY_MEASURE_WARMUP, "0");
	fixture_set(&f->pipeline, KEY_MEASURE_EPOCHS, "1");
	f->command = (struct command){.name = "bisect"};
	f->invocation = (struct invocation){.command = &f->command, .stop = &f->stop};
	(void)snprintf(f->out, sizeof f->out, "%s-out", f->pipeline.root);
}

static void paired_teardown(struct paired_fixture *f)
{
	struct error err = {""};
	(void)files_remove_tree(f->out, &err);
	fixture_close(&f->pipeline);
}

static struct paired *session_of(struct paired_fixture *f, bool resume, double budget_s)
{
	const struct paired_options options = {.invocation = &f->invocation,
		.folder = f->out,
		.seed = 7,
		.budget_s = budget_s,
		.resume = resume};
	struct paired *paired = NULL;
	struct error err = {""};
	if (paired_open(&paired, &options, &err))
		fixture_die(err.text);
	return paired;
}

static size_t arm_of(struct paired_fixture *f, struct paired *paired, const char *label)
{
	const struct paired_arm_spec spec = {.label = label, .config = &f->pipeline.config};
	struct error err = {""};
	size_t arm;
	if (paired_add(paired, &spec, &arm, &err))
		fixture_die(err.text);
	return arm;
}

static void test_blocks_are_kept_and_gone_on_with(void **state)
{
	(void)state;
	struct paired_fixture f;
	struct error err = {""};
	double ratios[8];
	double before[8];
	size_t count;
	paired_setup(&f);
	struct paired *paired = session_of(&f, false, INFINITY);
	const size_t arms[2] = {arm_of(&f, paired, "good"), arm_of(&f, paired, "bad")};
	assert_int_equal(arm_of(&f, paired, "good"), arms[0]);
	for (int i = 0; i < 3; i++)
		assert_int_equal(paired_block(paired, arms, 2, &err), 0);
	assert_int_equal(paired_ratios(paired, arms[0], arms[1], before, 8), 3);
	assert_int_equal(paired_ratios(paired, arms[0], arms[1], ratios, 2), 2);
	assert_true(ratios[1] == before[2]);
	const double *rates = paired_rates(paired, arms[0], &count);
	assert_int_equal(count, 3);
	assert_true(rates[0] > 0);
	paired_close(paired);

	/* Another session is not to be mixed with it. */
	const struct paired_options again = {
		.invocation = &f.invocation, .folder = f.out, .seed = 7};
	assert_int_equal(paired_open(&paired, &again, &err), -EEXIST);
	assert_null(paired);

	paired = session_of(&f, true, INFINITY);
	const size_t bad = arm_of(&f, paired, "bad");
	const size_t good = arm_of(&f, paired, "good");
	assert_int_equal(paired_ratios(paired, good, bad, ratios, 8), 3);
	for (size_t i = 0; i < 3; i++)
		assert_true(fabs(ratios[i] - before[i]) < 1e-9);
	assert_int_equal(paired_block(paired, (size_t[]){good, bad}, 2, &err), 0);
	assert_int_equal(paired_runs(paired), 8);
	paired_close(paired);

	/* Each is a result like any other. */
	struct record record = {0};
	char folder[160];
	(void)snprintf(folder, sizeof folder, "%s/good", f.out);
	assert_int_equal(record_open(&record, folder, &err), 0);
	assert_int_equal(record.entry_count, 4);
	assert_false(record.interrupted);
	record_release(&record);
	paired_teardown(&f);
}

/* As a kill leaves it: one repetition of a block is there, the block is not. */
static void test_half_a_block_is_finished(void **state)
{
	(void)state;
	struct paired_fixture f;
	struct error err = {""};
	char path[160];
	char *text = NULL;
	size_t size = 0;
	size_t count;
	paired_setup(&f);
	struct paired *paired = session_of(&f, false, INFINITY);
	const size_t arms[2] = {arm_of(&f, paired, "good"), arm_of(&f, paired, "bad")};
	assert_int_equal(paired_block(paired, arms, 2, &err), 0);
	assert_int_equal(paired_block(paired, arms, 1, &err), 0);
	paired_close(paired);
	(void)snprintf(path, sizeof path, "%s/paired.jsonl", f.out);
	assert_int_equal(files_read(path, 1 << 20, &text, &size, &err), 0);
	text[size - 10] = '\0'; /* the line of the block is torn */
	assert_int_equal(files_write_atomic(path, text, strlen(text), &err), 0);
	free(text);

	paired = session_of(&f, true, INFINITY);
	const size_t good = arm_of(&f, paired, "good");
	const size_t bad = arm_of(&f, paired, "bad");
	(void)paired_rates(paired, good, &count);
	assert_int_equal(count, 2);
	assert_int_equal(paired_block(paired, (size_t[]){good, bad}, 2, &err), 0);
	(void)paired_rates(paired, good, &count);
	assert_int_equal(count, 2); /* it was used again */
	double ratios[4];
	assert_int_equal(paired_ratios(paired, good, bad, ratios, 4), 2);
	paired_close(paired);
	paired_teardown(&f);
}

static void test_another_configuration_is_refused(void **state)
{
	(void)state;
	struct paired_fixture f;
	struct error err = {""};
	size_t arm;
	paired_setup(&f);
	struct paired *paired = session_of(&f, false, INFINITY);
	(void)arm_of(&f, paired, "good");
	paired_close(paired);
	fixture_set(&f.pipeline, KEY_BATCH_SIZE, "3");
	paired = session_of(&f, true, INFINITY);
	const struct paired_arm_spec spec = {.label = "good", .config = &f.pipeline.config};
	assert_int_equal(paired_add(paired, &spec, &arm, &err), -EDOM);
	paired_close(paired);
	paired_teardown(&f);
}

static void test_what_cannot_run_is_told(void **state)
{
	(void)state;
	struct paired_fixture f;
	struct error err = {""};
	size_t arm;
	paired_setup(&f);
	struct paired *paired = session_of(&f, false, 0);
	struct paired_arm_spec spec = {.label = "../bad", .config = &f.pipeline.config};
	assert_int_equal(paired_add(paired, &spec, &arm, &err), -EINVAL);
	spec.label = "many";
	spec.node.cores = 100000;
	assert_int_equal(paired_add(paired, &spec, &arm, &err), -EINVAL);
	spec.node.cores = 1;
	assert_int_equal(paired_add(paired, &spec, &arm, &err), 0);
	assert_int_equal(paired_record(paired, arm)->cores, 1);
	/* No time at all. */
	fixture_set(&f.pipeline, KEY_MEASURE_EPOCHS, "0");
	const size_t timed = arm_of(&f, paired, "timed");
	assert_int_equal(paired_block(paired, &timed, 1, &err), -ETIME);
	paired_close(paired);
	paired_teardown(&f);
}

static bool never(void *context, const struct paired_estimate *estimate)
{
	(void)context;
	(void)estimate;
	return false;
}

static void test_an_arm_that_fails_is_broken(void **state)
{
	(void)state;
	struct paired_fixture f;
	struct error err = {""};
	paired_setup(&f);
	struct paired *paired = session_of(&f, false, INFINITY);
	const size_t good = arm_of(&f, paired, "good");
	const size_t bad = arm_of(&f, paired, "bad");
	for (size_t i = 0; i < f.pipeline.dataset.count; i++) {
		char path[256];
		(void)snprintf(path, sizeof path, "%s/%s", f.pipeline.root,
			f.pipeline.dataset.samples[i].path);
		(void)unlink(path);
	}
	const struct paired_question question = {
		.a = bad, .b = good, .rate = 0.01, .pairs_most = 9};
	struct paired_estimate estimate;
	assert_int_equal(paired_ask(paired, &question, never, NULL, &estimate, &err), -EIO);
	assert_non_null(paired_arm_broken(paired, good));
	assert_int_equal(estimate.pairs, 0);
	paired_close(paired);
	paired_teardown(&f);
}

static void test_stop_and_the_most_pairs_end_a_question(void **state)
{
	(void)state;
	struct paired_fixture f;
	struct error err = {""};
	paired_setup(&f);
	struct paired *paired = session_of(&f, false, INFINITY);
	const struct paired_question question = {.a = arm_of(&f, paired, "a"),
		.b = arm_of(&f, paired, "b"),
		.rate = 0.01,
		.pairs_most = 4};
	struct paired_estimate estimate;
	assert_int_equal(paired_ask(paired, &question, never, NULL, &estimate, &err), 0);
	assert_int_equal(estimate.pairs, 4);
	assert_true(paired_noise_of(paired)->pairs == 4);
	atomic_store(&f.stop, true);
	const struct paired_question more = {
		.a = question.a, .b = question.b, .rate = 0.01, .pairs_most = 9};
	assert_int_equal(paired_ask(paired, &more, never, NULL, &estimate, &err), -EINTR);
	assert_int_equal(estimate.pairs, 4);
	paired_close(paired);
	paired_teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks_are_kept_and_gone_on_with),
		cmocka_unit_test(test_half_a_block_is_finished),
		cmocka_unit_test(test_another_configuration_is_refused),
		cmocka_unit_test(test_what_cannot_run_is_told),
		cmocka_unit_test(test_an_arm_that_fails_is_broken),
		cmocka_unit_test(test_stop_and_the_most_pairs_end_a_question),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
