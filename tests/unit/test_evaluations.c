/* Evaluations in a run: which samples the second loader makes and when, what is told of it, and how it ends.  How a network
 * evaluates: test_network.c; how epochs are held: test_exchange.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/fake_device.h"
#include "tests/pipeline_fixture.h"

#include "pipelines/pipeline.h"
#include "pipelines/stall_log.h"
#include "tests/measuring.h"
#include "workloads/sample/sample.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

enum { TRAINED = 96, TRAIN_BATCH = 8, EPOCHS = 3, STEPS = TRAINED / TRAIN_BATCH * EPOCHS };
enum { EVALUATED = 40, WANTED = 37, EVERY = 5, EVALUATIONS = STEPS / EVERY };
enum { OUT_BYTES = 16 };

/* --- a kind that keeps what it makes ------------------------------------------------------------- */

static struct {
	const struct dataset *evaluated;
	atomic_uint made[EVALUATED]; /* samples of evaluations */
	atomic_uint_least64_t seeds[EVALUATED];
	atomic_uint others;       /* samples of training */
	atomic_uint odd;          /* made with another seed, or while steps were in flight */
	bool on_device;           /* which has had no step but whole periods of them */
	atomic_bool *stop;        /* set by the first sample of an evaluation */
	bool open_fails, bad_all; /* of evaluations */
	const char
		*pipe; /* what the first sample of training makes one of, which nobody writes to */
	uint32_t bad_from; /* samples of evaluations that cannot be made */
} seen;

static void seen_shape(const struct config *config, struct sample_shape *out)
{
	(void)config;
	*out = (struct sample_shape){.type = BATCH_UINT8, .dimensions = 1, .of = {OUT_BYTES}};
}

static size_t seen_labels(const struct config *config)
{
	(void)config;
	return sizeof(uint32_t);
}

static bool seen_is_evaluated(const struct sample *sample)
{
	const struct dataset *const d = seen.evaluated;
	return sample >= d->samples && sample < d->samples + d->count;
}

static int seen_open(void **worker, const struct sample_options *options, struct error *err)
{
	*worker = NULL;
	if (seen.open_fails && seen_is_evaluated(options->dataset->samples))
		return error_set(err, -EIO, "no worker of evaluations");
	return 0;
}

static void seen_close(void *worker)
{
	(void)worker;
}

static int seen_evaluate(const struct sample_task *task, struct error *err)
{
	const size_t i = (size_t)(task->sample - seen.evaluated->samples);
	uint_least64_t expected = 0;
	seen.made[i]++;
	if (!atomic_compare_exchange_strong(&seen.seeds[i], &expected, task->seed))
		seen.odd += expected != task->seed;
	if (seen.on_device &&
		(fake_report.launches % EVERY != 0 || fake_report.launches != fake_report.finishes))
		seen.odd++;
	if (seen.stop)
		atomic_store(seen.stop, true);
	return i >= seen.bad_from ? error_set(err, -EINVAL, "no good") : 0;
}

static int seen_make(void *worker, const struct sample_task *task, struct error *err)
{
	(void)worker;
	sample_put_class(task);
	memcpy(task->out, (const uint8_t *)task->bytes + task->size - OUT_BYTES, OUT_BYTES);
	if (seen_is_evaluated(task->sample))
		return seen_evaluate(task, err);
	if (seen.others++ == 0 && seen.pipe && (unlink(seen.pipe) || mkfifo(seen.pipe, 0600)))
		abort();
	return 0;
}

static const struct sample_ops sample_seen = {
	.name = "seen",
	.summary = "the last bytes of a file",
	.shape = seen_shape,
	.label_bytes = seen_labels,
	.make = seen_make,
	.open = seen_open,
	.close = seen_close,
};

/* --- a run --------------------------------------------------------------------------------------- */

struct both {
	struct pipeline_fixture training, evaluation;
};

static void both_open(struct both *b)
{
	fixture_open(&b->training, TRAINED, 24, 20, 0);
	fixture_open(&b->evaluation, EVALUATED, 20, 18, 0);
	memset(&seen, 0, sizeof seen);
	seen.evaluated = &b->evaluation.dataset;
	seen.bad_from = EVALUATED;
	sample_replace_kind(&sample_seen);
	struct pipeline_fixture *const f = &b->training;
	f->dataset.evaluated = &b->evaluation.dataset;
	fixture_set(f, KEY_BATCH_SIZE, "8");
	fixture_set(f, KEY_MEASURE_EPOCHS, "3");
	fixture_set(f, KEY_MEASURE_WARMUP, "0s");
	fixture_set(f, KEY_MEASURE_WINDOW, "10ms");
	fixture_set(f, KEY_STEP_BACKEND, "emulated");
	fixture_set(f, KEY_STEP_TIME, "200us");
	fixture_set(f, KEY_RUN_VERIFY, "on");
	fixture_set(f, KEY_EVALUATE_EVERY, "5");
	fixture_set(f, KEY_EVALUATE_PATH, b->evaluation.root);
	fixture_set(f, KEY_EVALUATE_SAMPLES, "37");
	fixture_set(f, KEY_EVALUATE_BATCH_SIZE, "16");
}

static void both_close(struct both *b)
{
	sample_replace_kind(NULL);
	fixture_close(&b->training);
	fixture_close(&b->evaluation);
}

static int both_run(const struct both *b, const struct pipeline_control *control,
	struct measurement *m, struct error *err)
{
	const struct pipeline_limits limits = {
		.no_progress_ns = 20 * NS_PER_S, .join_ns = 20 * NS_PER_S};
	*err = (struct error){""};
	memset(seen.made, 0, sizeof seen.made);
	return pipeline_run_limited(
		&b->training.config, &b->training.dataset, control, &limits, m, err);
}

static void both_run_well(const struct both *b, struct measurement *m)
{
	struct error err;
	if (both_run(b, NULL, m, &err))
		fail_msg("%s", err.text);
	assert_int_equal(m->epochs, EPOCHS);
	assert_int_equal(m->evaluation_count, 1);
	assert_int_equal(seen.odd, 0);
}

/* Each of the wanted ones so often, and no other. */
static void each_was_made(unsigned times)
{
	for (size_t i = 0; i < EVALUATED; i++)
		assert_int_equal(seen.made[i], i < WANTED ? times : 0);
}

static bool both_has_note(const struct measurement *m, const char *words)
{
	for (size_t i = 0; i < m->note_count; i++)
		if (strstr(m->notes[i], words))
			return true;
	return false;
}

/* --- what is evaluated --------------------------------------------------------------------------- */

/* Whoever decodes, each evaluation is of the same batches, and training's stay what they are without. */
static void each_sample_comes_once_at_each_evaluation(void **state)
{
	(void)state;
	static const char *const workers[] = {"1", "2", "4"};
	struct both b;
	struct measurement m;
	char first[NAME_BYTES] = "";
	both_open(&b);
	fixture_set(&b.training, KEY_EVALUATE_EVERY, "0");
	struct error err;
	assert_int_equal(both_run(&b, NULL, &m, &err), 0);
	assert_int_equal(m.evaluation_count, 0);
	assert_null(measurement_stage(&m, STAGE_EVALUATE));
	each_was_made(0);
	const uint64_t plain = m.checksum;
	measurement_release(&m);
	fixture_set(&b.training, KEY_EVALUATE_EVERY, "5");
	for (size_t i = 0; i < sizeof workers / sizeof *workers; i++) {
		fixture_set(&b.training, KEY_EVALUATE_WORKERS, workers[i]);
		fixture_set(&b.training, KEY_DECODE_WORKERS, workers[2 - i]);
		both_run_well(&b, &m);
		each_was_made(EVALUATIONS);
		assert_true(m.has_checksum && m.checksum == plain);
		const struct evaluation_measurement *const e = &m.evaluation[0];
		assert_int_equal(strlen(e->checksum), 16);
		if (i == 0)
			(void)snprintf(first, sizeof first, "%s", e->checksum);
		assert_string_equal(e->checksum, first);
		measurement_release(&m);
	}
	assert_int_equal(seen.others, 4 * EPOCHS * TRAINED);
	both_close(&b);
}

static void stalls_are_measured(void **state)
{
	(void)state;
	for (unsigned devices = 1; devices <= 2; devices++) {
		struct both b;
		struct measurement m;
		both_open(&b);
		fixture_set(&b.training, KEY_STEP_DEVICES, devices == 1 ? "1" : "2");
		fixture_set(&b.training, KEY_EVALUATE_STEP_TIME, "300us");
		both_run_well(&b, &m);
		/* A round is a batch of each device. */
		const unsigned evaluations = STEPS / devices / EVERY;
		each_was_made(evaluations);
		const struct evaluation_measurement *const e = &m.evaluation[0];
		assert_int_equal(e->every, EVERY);
		assert_int_equal(e->batch_size, 16);
		assert_int_equal(e->samples_each, WANTED);
		assert_false(e->computed);
		assert_in_range(e->count, 1, evaluations);
		assert_int_equal(e->samples, e->count * WANTED);
		assert_int_equal(e->bad_samples, 0);
		/* What is waited for is waited for at least: 37 samples at 16 in 300 us. */
		assert_true(e->working_seconds >= (double)e->count * 300e-6 * WANTED / 16 * 0.999);
		assert_true(e->starved_seconds > 0);
		assert_true(e->starved_seconds + e->working_seconds <= e->stall_seconds);
		assert_true(e->stall_max_ns <= e->stall_seconds * 1e9 * 1.000001);
		assert_string_equal(e->path, b.evaluation.root);
		const struct stage_measurement *const s = measurement_stage(&m, STAGE_EVALUATE);
		assert_non_null(s);
		assert_true(s->seconds[THREAD_WORKING] > 0);
		assert_true(isnan(s->cpu_seconds) && isnan(s->capacity));
		assert_true(measurement_stage(&m, STAGE_STEP)->seconds[THREAD_BLOCKED] > 0);
		assert_measured(m.accounted > 0.9);
		measurement_release(&m);
		both_close(&b);
	}
}

/* Nothing is read or decoded ahead of one. */
static void none_comes_before_its_step(void **state)
{
	(void)state;
	struct both b;
	struct measurement m;
	both_open(&b);
	fixture_set(&b.training, KEY_EVALUATE_EVERY, "1000");
	both_run_well(&b, &m);
	each_was_made(0);
	assert_int_equal(m.evaluation[0].count, 0);
	assert_true(m.evaluation[0].outside);
	assert_true(both_has_note(&m, "no evaluation ended in the measured part"));
	measurement_release(&m);
	both_close(&b);
}

/* A device that works by itself is let finish what it has. */
static void a_device_is_drained(void **state)
{
	(void)state;
	struct both b;
	struct measurement m;
	both_open(&b);
	backend_replace_device(&fake_device_ops);
	fixture_set(&b.training, KEY_STEP_TIME, "0");
	fixture_set(&b.training, KEY_STEP_BACKEND, "cuda");
	fake_reset();
	fake_settings.ahead = 2;
	fixture_set(&b.training, KEY_STEP_AHEAD, "2");
	seen.on_device = true;
	both_run_well(&b, &m);
	each_was_made(EVALUATIONS);
	assert_string_equal(fake_report.violation, "");
	assert_true(m.evaluation[0].working_seconds > 0);
	measurement_release(&m);
	backend_replace_device(NULL);
	both_close(&b);
}

/* With checkpoints and workers that start anew, each keeps its own count. */
static void other_phases_go_on(void **state)
{
	(void)state;
	struct both b;
	struct measurement m;
	char folder[128];
	both_open(&b);
	(void)snprintf(folder, sizeof folder, "%s/saved", b.training.root);
	fixture_set(&b.training, KEY_CHECKPOINT_EVERY, "3");
	fixture_set(&b.training, KEY_CHECKPOINT_BYTES, "64k");
	fixture_set(&b.training, KEY_CHECKPOINT_PATH, folder);
	fixture_set(&b.training, KEY_DECODE_PERSISTENT, "off");
	both_run_well(&b, &m);
	each_was_made(EVALUATIONS);
	assert_int_equal(m.checkpoint_count, 1);
	measurement_release(&m);
	both_close(&b);
}

/* --- how it ends --------------------------------------------------------------------------------- */

static void bad_samples_are_told(void **state)
{
	(void)state;
	struct both b;
	struct measurement m;
	struct error err;
	both_open(&b);
	seen.bad_from = WANTED - 2;
	both_run_well(&b, &m);
	const struct evaluation_measurement *const e = &m.evaluation[0];
	assert_int_equal(e->bad_samples, 2 * e->count);
	assert_int_equal(e->samples, (WANTED - 2) * e->count);
	assert_true(both_has_note(&m, "bad samples in evaluations: "));
	assert_int_equal(m.bad_samples, 0);
	measurement_release(&m);
	seen.bad_from = 0;
	assert_int_equal(both_run(&b, NULL, &m, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "evaluation: not one sample"));
	assert_non_null(strstr(err.text, "no good"));
	assert_int_equal(m.status, MEASUREMENT_FAILED);
	each_was_made(1);
	measurement_release(&m);
	both_close(&b);
}

static void a_loader_that_cannot_open_ends_the_repetition(void **state)
{
	(void)state;
	struct both b;
	struct measurement m;
	struct error err;
	both_open(&b);
	seen.open_fails = true;
	assert_int_equal(both_run(&b, NULL, &m, &err), -EIO);
	assert_string_equal(err.text, "evaluation: no worker of evaluations");
	measurement_release(&m);
	both_close(&b);
}

/* In the middle of one. */
static void a_stop_ends_it(void **state)
{
	(void)state;
	struct both b;
	struct measurement m;
	struct error err;
	atomic_bool stop = false;
	const struct pipeline_control control = {.stop = &stop};
	both_open(&b);
	fixture_set(&b.training, KEY_EVALUATE_STEP_TIME, "1h");
	seen.stop = &stop;
	assert_int_equal(both_run(&b, &control, &m, &err), 0);
	assert_int_equal(m.status, MEASUREMENT_INTERRUPTED);
	assert_int_equal(m.evaluation[0].count, 0);
	assert_string_equal(m.evaluation[0].checksum, "");
	measurement_release(&m);
	both_close(&b);
}

/* The end of the measured time, too, whatever is under way. */
static void time_ends_it(void **state)
{
	(void)state;
	struct both b;
	struct measurement m;
	struct error err;
	both_open(&b);
	fixture_set(&b.training, KEY_EVALUATE_STEP_TIME, "1h");
	fixture_set(&b.training, KEY_MEASURE_EPOCHS, "0");
	fixture_set(&b.training, KEY_MEASURE_DURATION, "50ms");
	fixture_set(&b.training, KEY_MEASURE_MIN_BATCHES, "1");
	assert_int_equal(both_run(&b, NULL, &m, &err), 0);
	assert_int_equal(m.evaluation[0].count, 0);
	measurement_release(&m);
	both_close(&b);
}

static void standing_still_is_noticed(void **state)
{
	(void)state;
	if (SANITIZED)
		skip(); /* what a hanging thread may touch is left alone on purpose, which they report */
	static struct both b; /* nor is it ours to release: the thread goes on at the end */
	static char path[256];
	both_open(&b);
	fixture_set(&b.training, KEY_READ_ENGINE, "pread");
	(void)snprintf(path, sizeof path, "%s/%s", b.evaluation.root,
		b.evaluation.dataset.samples[3].path);
	seen.pipe = path;
	const struct pipeline_limits limits = {
		.no_progress_ns = 5 * NS_PER_S, /* a machine may stand still, too */
		.join_ns = 500 * NS_PER_MS};
	struct measurement m;
	struct error err = {""};
	assert_int_equal(pipeline_run_limited(
				 &b.training.config, &b.training.dataset, NULL, &limits, &m, &err),
		-ETIMEDOUT);
	assert_non_null(strstr(err.text, "no progress"));
	assert_non_null(strstr(err.text, "evaluate 1 working"));
	measurement_release(&m);
	FILE *const pipe = fopen(path, "w");
	assert_non_null(pipe);
	(void)fclose(pipe);
	sample_replace_kind(NULL);
	assert_int_equal(files_remove_tree(b.training.root, &err), 0);
	assert_int_equal(files_remove_tree(b.evaluation.root, &err), 0);
}

/* --- the plan ------------------------------------------------------------------------------------ */

static void its_memory_is_planned(void **state)
{
	(void)state;
	struct both b;
	struct pipeline_plan without;
	struct pipeline_plan with;
	struct error err = {""};
	both_open(&b);
	const struct config *const config = &b.training.config;
	assert_int_equal(pipeline_plan(config, &b.training.dataset, &with, &err), 0);
	assert_int_equal(with.evaluation_samples, WANTED);
	assert_int_equal(with.evaluation_batch, 16);
	assert_int_equal(with.evaluation_workers, 2); /* decode.workers */
	fixture_set(&b.training, KEY_EVALUATE_EVERY, "0");
	assert_int_equal(pipeline_plan(config, &b.training.dataset, &without, &err), 0);
	assert_int_equal(without.evaluation_memory, 0);
	assert_int_equal(with.pool_bytes, without.pool_bytes + with.evaluation_memory);
	/* The slots and what is in memory, at least. */
	assert_true(with.evaluation_memory > 3 * 16 * OUT_BYTES);
	fixture_set(&b.training, KEY_EVALUATE_EVERY, "5");
	fixture_set(&b.training, KEY_EVALUATE_SAMPLES, "41");
	assert_int_equal(pipeline_plan(config, &b.training.dataset, &with, &err), -EINVAL);
	assert_non_null(strstr(err.text, "evaluate.samples = 41 is more than the 40 samples"));
	both_close(&b);
}

/* --- the log of stalls ---------------------------------------------------------------------------- */

/* Ten steps of 10 and a stall of 50, again and again. */
static void periods_are_whole(void **state)
{
	(void)state;
	struct stall_log log;
	assert_int_equal(stalls_open(&log), 0);
	assert_int_equal(stalls_period_ns(&log), 0);
	for (uint64_t i = 0; i < 6; i++)
		log.list[log.count++] = (struct stall){.stepped_ns = 100 + i * 150,
			.begin_ns = 101 + i * 150,
			.end_ns = 151 + i * 150};
	log.list[log.count++] =
		(struct stall){.stepped_ns = 1000, .begin_ns = 1001}; /* cut short */
	assert_int_equal(stalls_period_ns(&log), 150);
	uint64_t from_ns = 200;
	uint64_t to_ns = 990;
	assert_true(stalls_whole(&log, &from_ns, &to_ns));
	assert_int_equal(from_ns, 250);
	assert_int_equal(to_ns, 851 + 25);
	size_t inside = 0;
	for (size_t i = 0; i < stalls_kept(&log); i++)
		inside += stalls_is_in(&log, i, from_ns, 850); /* the last step in it */
	assert_int_equal(inside, 4);                           /* of four periods */
	/* One that goes on when the part begins, with the first step at 310, is not in it. */
	assert_false(stalls_is_in(&log, 1, 310, 850));
	assert_true(stalls_is_in(&log, 2, 310, 850));
	assert_false(stalls_is_in(&log, 5, 310, 860)); /* nor one that no step follows */
	assert_true(stalls_is_in(&log, 5, 310, 910));
	from_ns = 260;
	to_ns = 700;
	assert_true(stalls_whole(&log, &from_ns, &to_ns));
	from_ns = 760; /* one stall in it */
	to_ns = 999;
	assert_false(stalls_whole(&log, &from_ns, &to_ns));
	assert_true(from_ns == 760 && to_ns == 999);
	stalls_close(&log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_sample_comes_once_at_each_evaluation),
		cmocka_unit_test(stalls_are_measured),
		cmocka_unit_test(none_comes_before_its_step),
		cmocka_unit_test(a_device_is_drained),
		cmocka_unit_test(other_phases_go_on),
		cmocka_unit_test(bad_samples_are_told),
		cmocka_unit_test(a_loader_that_cannot_open_ends_the_repetition),
		cmocka_unit_test(a_stop_ends_it),
		cmocka_unit_test(time_ends_it),
		cmocka_unit_test(standing_still_is_noticed),
		cmocka_unit_test(its_memory_is_planned),
		cmocka_unit_test(periods_are_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
