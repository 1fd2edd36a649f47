/* The way that --follow goes, in a world without time: what a setting gives is a function of it, and what is predicted is made
 * up.  Advice that does not come true is undone, costs confidence, and is not given again; what is real is kept. */
#include "harness/analyze/verdict.h"
#include "harness/command/follow.h"
#include "harness/report/trials.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { FOLDER_BYTES = 200, ADVICE_MOST = 4, RUNS_MOST = 40 };

struct advice {
	const char *setting;
	double times;   /* of what is there: predicted, 5 % to either side */
	double widened; /* lower end of the interval over what is there; 0: not */
};

struct world {
	struct advice advice[ADVICE_MOST];
	double (*rate)(int64_t depth, int64_t workers);
	double confidence, half;
	char root[FOLDER_BYTES];
	char folders[RUNS_MOST][FOLDER_BYTES]; /* of each run; 0 is the first */
	struct config configs[RUNS_MOST];
	size_t runs;
	size_t stop_at, fail_at; /* run; 0: none */
	atomic_bool stop;
};

/* A store with four places: depth beyond gives nothing. */
static double full_store(int64_t depth, int64_t workers)
{
	(void)workers;
	return 100.0 * (double)(depth < 4 ? depth : 4);
}

static double proportional(int64_t depth, int64_t workers)
{
	return 100.0 * (double)(depth < 2 * workers ? depth : 2 * workers);
}

static int measure(void *context, const char *const *sets, size_t count, const char *out,
	char **folder, struct error *err)
{
	struct world *world = context;
	const size_t run = world->runs++;
	assert_true(run < RUNS_MOST);
	(void)snprintf(world->folders[run], FOLDER_BYTES, "%s", out);
	assert_int_equal(mkdir(out, 0777), 0);
	assert_int_equal(config_copy(&world->configs[run], &world->configs[0], err), 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(config_set(&world->configs[run], sets[i], err), 0);
	*folder = NULL;
	if (run == world->fail_at)
		return EXIT_STATUS_FAILED;
	if (run == world->stop_at)
		atomic_store(&world->stop, true);
	*folder = strdup(out);
	return run == world->stop_at ? EXIT_STATUS_INTERRUPTED : EXIT_STATUS_DONE;
}

static void advise(
	const struct advice *advice, const struct config *config, double rate, struct diagnosis *d)
{
	struct config to = {0};
	struct error err;
	assert_int_equal(config_copy(&to, config, &err), 0);
	assert_int_equal(config_set(&to, advice->setting, &err), 0);
	const bool there =
		config_integer(&to, KEY_READ_DEPTH) == config_integer(config, KEY_READ_DEPTH) &&
		config_integer(&to, KEY_DECODE_WORKERS) ==
			config_integer(config, KEY_DECODE_WORKERS);
	config_release(&to);
	if (there)
		return;
	struct recommendation *r = &d->recommendations[d->recommendation_count++];
	*r = (struct recommendation){.setting_count = 1,
		.predicted = advice->times * rate,
		.interval = {(advice->widened > 0 ? advice->widened : 0.95 * advice->times) * rate,
			1.05 * advice->times * rate}};
	(void)snprintf(r->settings[0], SETTING_BYTES, "%s", advice->setting);
}

/* As the diagnosis does: what failed before costs confidence. */
static int look(void *context, const char *folder, struct follow_place *place, struct error *err)
{
	struct world *world = context;
	size_t run = 0;
	struct trials *trials = calloc(1, sizeof *trials);
	assert_non_null(trials);
	while (strcmp(world->folders[run], folder) != 0)
		assert_true(++run < world->runs);
	const struct config *config = &world->configs[run];
	assert_int_equal(config_copy(&place->config, config, err), 0);
	place->rate = world->rate(
		config_integer(config, KEY_READ_DEPTH), config_integer(config, KEY_DECODE_WORKERS));
	place->half = world->half;
	place->rate_95 = (struct interval){place->rate, place->rate};
	struct verdict *v = &place->diagnosis.verdict;
	*v = (struct verdict){
		.stage = "read", .resource = "latency", .confidence = world->confidence};
	assert_true(trials_load(folder, trials, err) >= 0);
	for (size_t i = 0; i < trials->count; i++)
		if (trials->list[i].outcome == EXPERIMENT_FAILED)
			v->confidence = confidence_failed(v->confidence, CONFIDENCE_ODDS_OWN);
	for (size_t i = 0; i < ADVICE_MOST && world->advice[i].setting; i++)
		advise(&world->advice[i], config, place->rate, &place->diagnosis);
	free(trials);
	return 0;
}

static void go(struct world *world, size_t steps, int status, struct follow *follow, char **last)
{
	struct error err = {0};
	const struct follow_means means = {
		.measure = measure, .look = look, .stop = &world->stop, .context = world};
	(void)snprintf(world->root, sizeof world->root, "/tmp/mlbench-follow-XXXXXX");
	assert_non_null(mkdtemp(world->root));
	(void)snprintf(world->folders[0], FOLDER_BYTES, "%s", world->root);
	world->runs = 1;
	world->confidence = world->confidence > 0 ? world->confidence : 0.8;
	world->half = world->half > 0 ? world->half : 0.01;
	config_init(&world->configs[0]);
	assert_int_equal(config_set(&world->configs[0], "read.depth=4", &err), 0);
	assert_int_equal(config_set(&world->configs[0], "decode.workers=2", &err), 0);
	*last = strdup(world->root);
	assert_int_equal(follow_walk(&means, steps, last, follow, &err), status);
}

static void close_world(struct world *world, char *last)
{
	free(last);
	for (size_t i = world->runs; i-- > 0;) {
		char path[FOLDER_BYTES + 32];
		(void)snprintf(path, sizeof path, "%s/" TRIALS_FILE, world->folders[i]);
		(void)unlink(path);
		assert_int_equal(rmdir(world->folders[i]), 0);
		config_release(&world->configs[i]);
	}
}

static void expect_once(const struct follow *follow)
{
	for (size_t i = 1; i < follow->count; i++)
		for (size_t k = 1; k < i; k++)
			assert_string_not_equal(
				follow->steps[i].trial.set, follow->steps[k].trial.set);
}

/* 3,198 were predicted, and nothing came of it. */
static void what_does_not_come_true_is_undone(void **state)
{
	struct world world = {
		.rate = full_store, .advice = {{"read.depth=32", 8, 0}, {"read.depth=16", 4, 0}}};
	struct follow follow;
	struct trials trials;
	struct error err;
	char *last;
	(void)state;
	go(&world, 8, EXIT_STATUS_DONE, &follow, &last);
	assert_string_equal(last, world.root);
	assert_string_equal(follow.set, "");
	assert_int_equal(follow.count, 3);
	assert_int_equal(follow.failed, 2);
	assert_int_equal(follow.came_true, 0);
	expect_once(&follow);
	for (size_t i = 1; i < follow.count; i++) {
		assert_int_equal(follow.steps[i].trial.outcome, EXPERIMENT_FAILED);
		assert_false(follow.steps[i].trial.kept);
	}
	/* Odds of 4, divided by 4 twice. */
	assert_true(fabs(follow.steps[0].confidence - 0.2) < 1e-9);
	/* Whoever diagnoses it again knows. */
	assert_int_equal(trials_load(world.root, &trials, &err), 1);
	assert_int_equal(trials.count, 3);
	assert_string_equal(trials.list[1].settings[0], "read.depth=32");
	assert_string_equal(trials.list[0].settings[0], "read.depth=4");
	assert_true(trials.list[1].rate == 400);
	close_world(&world, last);
}

/* The next advice is taken up after one that failed. */
static void the_way_goes_on_to_the_next(void **state)
{
	struct world world = {.rate = proportional,
		.advice = {{"read.depth=32", 8, 0}, {"decode.workers=4", 1, 0},
			{"read.depth=8", 2, 0}}};
	struct follow follow;
	char *last;
	(void)state;
	/* Depth alone gives nothing with two workers: both that promise something fail. */
	go(&world, 8, EXIT_STATUS_DONE, &follow, &last);
	assert_int_equal(follow.failed, 2);
	assert_string_equal(last, world.root);
	close_world(&world, last);
}

static void what_comes_true_is_kept_and_goes_on(void **state)
{
	struct world world = {.rate = proportional,
		.advice = {{"decode.workers=8", 1.5, 0.9}, {"read.depth=8", 2, 0}}};
	struct follow follow;
	struct trials trials;
	struct error err;
	char *last;
	(void)state;
	/* Workers alone were allowed to give nothing, and do: what was promised did not come true; nor does depth. */
	go(&world, 8, EXIT_STATUS_DONE, &follow, &last);
	assert_int_equal(follow.steps[1].trial.outcome, EXPERIMENT_FAILED);
	assert_false(follow.steps[1].trial.kept);
	assert_int_equal(follow.failed, 2);
	close_world(&world, last);
	world = (struct world){
		.rate = full_store, .advice = {{"read.depth=2", 0.5, 0}, {"read.depth=8", 2, 0}}};
	go(&world, 8, EXIT_STATUS_DONE, &follow, &last);
	assert_int_equal(follow.count, 2); /* a loss is not advised */
	close_world(&world, last);
	world = (struct world){.rate = proportional, .advice = {{"read.depth=2", 1.0, 0}}};
	go(&world, 8, EXIT_STATUS_DONE, &follow, &last);
	assert_int_equal(follow.count, 1);
	assert_int_equal(trials_load(world.root, &trials, &err), 0);
	close_world(&world, last);
}

static double by_depth(int64_t depth, int64_t workers)
{
	(void)workers;
	return 100.0 * (double)depth;
}

/* From a setting that was kept, what was measured before is known, and no prediction of its. */
static void a_new_place_begins_anew(void **state)
{
	struct world world = {
		.rate = by_depth, .advice = {{"read.depth=8", 2, 0}, {"decode.workers=8", 2, 0}}};
	struct follow follow;
	struct trials trials;
	struct error err;
	char *last;
	(void)state;
	go(&world, 8, EXIT_STATUS_DONE, &follow, &last);
	assert_int_equal(follow.count, 3);
	assert_true(follow.steps[1].trial.kept);
	assert_int_equal(follow.steps[1].trial.outcome, EXPERIMENT_CONFIRMED);
	assert_string_equal(follow.set, "--set read.depth=8");
	assert_string_equal(last, world.folders[1]);
	assert_int_equal(follow.came_true, 1);
	assert_int_equal(follow.failed, 1);
	assert_true(follow.steps[0].confidence == 0.8);
	assert_true(follow.steps[1].confidence < 0.8);
	assert_int_equal(trials_load(last, &trials, &err), 1);
	assert_int_equal(trials.list[0].setting_count, 2);
	assert_string_equal(trials.list[0].settings[0], "read.depth=4");
	assert_string_equal(trials.list[0].settings[1], "decode.workers=2");
	assert_int_equal(trials.list[0].outcome, EXPERIMENT_UNPREDICTED);
	assert_int_equal(trials.list[1].outcome, EXPERIMENT_UNPREDICTED);
	assert_int_equal(trials.list[2].outcome, EXPERIMENT_FAILED);
	close_world(&world, last);
}

/* Less than was promised and a real gain: kept, and the prediction failed all the same. */
static void a_real_gain_stays(void **state)
{
	struct world world = {.rate = by_depth, .advice = {{"read.depth=8", 8, 0}}};
	struct follow follow;
	char *last;
	(void)state;
	go(&world, 8, EXIT_STATUS_DONE, &follow, &last);
	assert_true(follow.steps[1].trial.kept);
	assert_int_equal(follow.failed, 1);
	assert_true(fabs(follow.steps[0].confidence - 0.5) < 1e-9);
	assert_true(follow.steps[1].confidence == 0.8);
	assert_string_equal(last, world.folders[1]);
	close_world(&world, last);
}

static void it_ends_in_any_case(void **state)
{
	struct world world = {.rate = full_store,
		.advice = {{"read.depth=32", 8, 0}, {"read.depth=16", 4, 0}, {"read.depth=8", 2, 0},
			{"read.depth=64", 9, 0}}};
	struct follow follow;
	char *last;
	(void)state;
	go(&world, 8, EXIT_STATUS_DONE, &follow, &last);
	assert_int_equal(follow.count, 4); /* three undone are enough */
	expect_once(&follow);
	close_world(&world, last);
	atomic_store(&world.stop, false);
	world.stop_at = 2;
	go(&world, 8, EXIT_STATUS_INTERRUPTED, &follow, &last);
	assert_true(follow.interrupted);
	assert_int_equal(follow.failed, 1);
	close_world(&world, last);
	atomic_store(&world.stop, false);
	world.stop_at = 0;
	world.fail_at = 1;
	go(&world, 1, EXIT_STATUS_DONE, &follow, &last);
	assert_int_equal(follow.steps[1].trial.outcome, EXPERIMENT_UNTRIED);
	assert_int_equal(follow.failed, 0);
	close_world(&world, last);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_does_not_come_true_is_undone),
		cmocka_unit_test(the_way_goes_on_to_the_next),
		cmocka_unit_test(what_comes_true_is_kept_and_goes_on),
		cmocka_unit_test(a_new_place_begins_anew),
		cmocka_unit_test(a_real_gain_stays),
		cmocka_unit_test(it_ends_in_any_case),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
