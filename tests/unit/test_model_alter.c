/* Turning keys: the altered model of one run foretells another whose truth is known; what cannot be
 * modelled is refused by name. */
#include "tests/unit/model_fixture.h"

#include <errno.h>

static const struct truth plain = {
	.settings = {"decode.workers=2", "step.time=8ms", NULL},
	.read_cpu_us = 15,
	.read_latency_us = 100,
	.decode_us = 800,
	.decode_cv = 0.3,
	.step_ms = 8,
	.host_us = 20,
	.cores = 16,
	.samples = 2000,
};

/* Published 10 us a sample on h100, twice that on anything else, of models but bert. */
static double published(const struct config *config, uint32_t batch_size)
{
	const bool quick = strcmp(config_text(config, KEY_STEP_DEVICE), "h100") == 0;
	if (strcmp(config_text(config, KEY_STEP_MODEL), "bert") == 0)
		return NAN;
	return (quick ? 10e3 : 20e3) * batch_size;
}

struct altered {
	struct truth_run *run;
	struct model model;
	struct config config;
	int code;
	struct error err;
};

/* evaluation: what was measured of evaluations; NULL: there were none. */
static struct altered *alter_evaluating(const struct truth *t,
	const struct evaluation_measurement *evaluation, model_step_time *step_time,
	const char *const *settings)
{
	struct altered *a = calloc(1, sizeof *a);
	a->run = truth_make(t);
	a->run->source.step_time = step_time;
	if (evaluation) {
		a->run->measurements[0].evaluation[0] = *evaluation;
		a->run->measurements[0].evaluation_count = 1;
	}
	truth_open(&a->model, a->run);
	truth_configure(&a->config, a->run, settings);
	a->code = model_alter(&a->model, &a->run->config, &a->config, &a->err);
	return a;
}

static struct altered *alter_with(
	const struct truth *t, model_step_time *step_time, const char *const *settings)
{
	return alter_evaluating(t, NULL, step_time, settings);
}

static void done(struct altered *a)
{
	model_close(&a->model);
	config_release(&a->config);
	truth_free(a->run);
	free(a);
}

#define SETTINGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* The model of `from`, turned by the settings, against a replay of the truth of `to`. */
static void foretells(const struct truth *from, const struct truth *to, const char *const *settings)
{
	struct altered *a = alter_with(from, NULL, settings);
	if (a->code)
		fail_msg("%s", a->err.text);
	struct truth_run *target = truth_make(to);
	struct prediction prediction;
	assert_int_equal(model_predict(&a->model, 8, &prediction, &a->err), 0);
	print_message("%-60s from %7.1f truth %7.1f predicted %7.1f [%7.1f %7.1f]\n", settings[0],
		a->run->throughput, target->throughput, prediction.throughput,
		prediction.interval.low, prediction.interval.high);
	assert_about(prediction.throughput, target->throughput, 0.02);
	assert_true(prediction.interval.low <= target->throughput &&
		    target->throughput <= prediction.interval.high);
	truth_free(target);
	done(a);
}

static void structure_is_foretold(void **state)
{
	(void)state;
	struct truth to = plain;
	to.settings[0] = "decode.workers=3";
	foretells(&plain, &to, SETTINGS("decode.workers=3"));
	to = plain;
	to.settings[2] = "prefetch.depth=8";
	foretells(&plain, &to, SETTINGS("prefetch.depth=8"));
	to = plain;
	to.settings[2] = "batch.order=as-completed";
	foretells(&plain, &to, SETTINGS("batch.order=as-completed"));
	struct truth slow = plain;
	slow.read_latency_us = 10000;
	to = slow;
	to.settings[2] = "read.depth=2";
	foretells(&slow, &to, SETTINGS("read.depth=2"));
	to.settings[2] = "read.threads=2";
	foretells(&slow, &to, SETTINGS("read.threads=2"));
	to.settings[2] = "decode.queue=4";
	foretells(&slow, &to, SETTINGS("decode.queue=4"));
}

/* Workers that read for themselves, more of them and otherwise; and what is loaded in turns with the step. */
static void other_loaders_are_foretold(void **state)
{
	(void)state;
	struct truth from = plain;
	from.read_latency_us = 3000;
	from.settings[1] = "step.time=2ms";
	from.step_ms = 2;
	from.settings[2] = "read.by=workers";
	struct truth to = from;
	to.settings[0] = "decode.workers=4";
	foretells(&from, &to, SETTINGS("decode.workers=4"));
	to = from;
	to.settings[3] = "decode.share=batches";
	foretells(&from, &to, SETTINGS("decode.share=batches"));
	from = to;
	to.settings[0] = "decode.workers=5";
	foretells(&from, &to, SETTINGS("decode.workers=5"));
	from.settings[3] = "prefetch.depth=0";
	from.step_ms = 8;
	to = from;
	to.settings[3] = "prefetch.depth=2";
	foretells(&from, &to, SETTINGS("prefetch.depth=2"));
	foretells(&to, &from, SETTINGS("prefetch.depth=0"));
	to = from;
	to.settings[0] = "decode.workers=3";
	foretells(&from, &to, SETTINGS("decode.workers=3"));
	from.settings[2] = "read.depth=4";
	to = from;
	to.settings[2] = "read.by=workers";
	foretells(&from, &to, SETTINGS("read.by=workers"));
	/* How readers would read was not measured. */
	struct altered *a = alter_with(&to, NULL, SETTINGS("read.by=readers"));
	assert_int_equal(a->code, -ENOTSUP);
	assert_non_null(strstr(a->err.text, "set read.engine"));
	done(a);
}

static void many_workers_on_few_cores(void **state)
{
	(void)state;
	struct truth from = plain;
	from.cores = 4;
	from.settings[1] = "step.time=1ms";
	from.step_ms = 1;
	struct truth to = from;
	to.settings[0] = "decode.workers=4";
	foretells(&from, &to, SETTINGS("decode.workers=4"));
}

static void a_fixed_step_time_is_of_any_batch(void **state)
{
	(void)state;
	struct truth to = plain;
	to.settings[2] = "batch.size=4";
	foretells(&plain, &to, SETTINGS("batch.size=4"));
	to = plain;
	to.settings[1] = "step.time=20ms";
	to.step_ms = 20;
	foretells(&plain, &to, SETTINGS("step.time=20ms"));
	to.settings[2] = "batch.size=8";
	foretells(&plain, &to, SETTINGS("step.time=20ms", "batch.size=8"));
}

static void a_line_of_step_times_goes_with_the_batch(void **state)
{
	(void)state;
	struct truth from = plain;
	from.settings[1] = "step.time=6ms@8,8ms@16";
	struct truth to = from;
	to.settings[2] = "batch.size=32";
	to.step_ms = 12;
	foretells(&from, &to, SETTINGS("batch.size=32"));
	/* One duration for all of them is said to be so. */
	struct altered *a = alter_with(&plain, NULL, SETTINGS("batch.size=32"));
	bool said = false;
	for (size_t i = 0; i < a->model.note_count; i++)
		said = said || strstr(a->model.notes[i], "step.time is one duration");
	assert_true(said);
	done(a);
}

static void a_published_step_goes_with_the_batch(void **state)
{
	(void)state;
	struct truth t = plain;
	t.settings[1] = NULL;
	t.step_ms = 0.16;
	struct altered *a = alter_with(&t, NULL, SETTINGS("batch.size=32"));
	assert_int_equal(a->code, 0);
	assert_about(truth_mean(&a->model, COST_STEP_DEVICE), 320, 0.001);
	done(a);
	a = alter_with(&t, published, SETTINGS("batch.size=32", "step.device=a100"));
	assert_int_equal(a->code, 0);
	assert_about(truth_mean(&a->model, COST_STEP_DEVICE), 640, 0.001);
	assert_about(a->model.samples_per_batch, 32, 0);
	done(a);
	a = alter_with(&t, published, SETTINGS("step.model=bert"));
	assert_int_equal(a->code, -ENOTSUP);
	done(a);
	a = alter_with(&t, NULL, SETTINGS("step.device=a100"));
	assert_int_equal(a->code, -ENOTSUP);
	assert_non_null(strstr(a->err.text, "step.time"));
	done(a);
	a = alter_with(&t, published, SETTINGS("step.time=5ms"));
	assert_int_equal(a->code, 0);
	assert_about(truth_mean(&a->model, COST_STEP_DEVICE), 5000, 0.001);
	done(a);
}

static void upload_goes_with_the_batch(void **state)
{
	(void)state;
	struct truth t = plain;
	t.settings[2] = "upload.mode=copy";
	t.upload_us = 3000;
	struct truth to = t;
	to.settings[3] = "inject.upload_factor=4";
	to.upload_us = 12000;
	foretells(&t, &to, SETTINGS("inject.upload_factor=4"));
	struct altered *a = alter_with(&t, NULL, SETTINGS("batch.size=64", "upload.depth=4"));
	assert_int_equal(a->code, 0);
	assert_about(truth_mean(&a->model, COST_UPLOAD), 12000, 0.001);
	assert_int_equal(a->model.replay.shape.staging_slots, 5);
	done(a);
	a = alter_with(&t, NULL, SETTINGS("upload.mode=none"));
	assert_int_equal(a->code, 0);
	assert_int_equal(a->model.replay.series[COST_UPLOAD].count, 0);
	assert_int_equal(a->model.replay.shape.staging_slots, 0);
	done(a);
	a = alter_with(&plain, NULL, SETTINGS("upload.mode=copy"));
	assert_int_equal(a->code, -ENOTSUP);
	done(a);
}

/* A GPU's copies take no core, and without that stage its steps would copy. */
static void a_device_copies_by_itself(void **state)
{
	(void)state;
	struct truth t = plain;
	t.settings[2] = "step.backend=cuda";
	t.gpu = true;
	t.upload_us = 3000;
	t.cores = 1;
	struct truth to = t;
	to.settings[3] = "inject.upload_factor=5";
	to.upload_us = 15000;
	foretells(&t, &to, SETTINGS("inject.upload_factor=5"));
	struct altered *a = alter_with(&t, NULL, SETTINGS("upload.mode=copy"));
	assert_int_equal(a->code, 0);
	assert_true(a->model.replay.copies_off_cores);
	assert_about(truth_mean(&a->model, COST_UPLOAD), 3000, 0.001);
	assert_about(truth_mean(&a->model, COST_STEP_DEVICE), t.step_ms * 1e3, 0.001);
	assert_int_equal(a->model.replay.shape.staging_slots, 3);
	done(a);
	a = alter_with(&t, NULL, SETTINGS("upload.mode=none"));
	assert_int_equal(a->code, -ENOTSUP);
	done(a);
}

static void injected_slow_downs_scale(void **state)
{
	(void)state;
	struct altered *a = alter_with(&plain, NULL,
		SETTINGS("inject.decode_factor=2", "inject.read_factor=3", "inject.step_factor=1.5",
			"inject.decode_wait=2ms", "inject.step_launch=100us"));
	assert_int_equal(a->code, 0);
	assert_about(truth_mean(&a->model, COST_DECODE_CPU), 1600, 0.03);
	assert_about(truth_mean(&a->model, COST_READ_LATENCY), 300, 0.01);
	assert_about(truth_mean(&a->model, COST_STEP_DEVICE), 12000, 0.001);
	assert_about(truth_mean(&a->model, COST_DECODE_WAIT), 2000, 0.001);
	assert_about(truth_mean(&a->model, COST_STEP_HOST), 120, 0.001);
	/* And back again. */
	assert_int_equal(model_alter(&a->model, &a->config, &a->run->config, &a->err), 0);
	assert_about(truth_mean(&a->model, COST_DECODE_CPU), 800, 0.03);
	assert_about(truth_mean(&a->model, COST_DECODE_WAIT), 0, 0);
	assert_about(truth_mean(&a->model, COST_STEP_HOST), 20, 0.01);
	done(a);
}

/* Of 0.3 s each, 0.1 s without input.  Their steps take a share of training's, or a time of their own. */
static void evaluations_are_foretold(void **state)
{
	(void)state;
	static const struct evaluation_measurement measured = {.every = 10,
		.count = 4,
		.samples_each = 100,
		.stall_seconds = 1.2,
		.starved_seconds = 0.4,
		.working_seconds = 0.79};
	static const struct {
		const char *own, *setting;
		double input_ms, step_ms; /* 0: refused */
	} cases[] = {
		{"evaluate.step_time=0", "evaluate.every=50", 100, 200},
		{"evaluate.step_time=0", "evaluate.samples=50", 50, 100},
		{"evaluate.step_time=0", "step.time=16ms", 100, 400},
		{"evaluate.step_time=0", "inject.step_factor=1.5", 100, 300},
		{"evaluate.step_time=0", "batch.size=32", 100, 100}, /* in as long as 16 */
		{"evaluate.step_time=9ms", "step.time=16ms", 100, 200},
		{"evaluate.step_time=9ms", "batch.size=32", 100, 200},
		{"evaluate.step_time=9ms", "evaluate.samples=0", 0, 0},
		{"evaluate.step_time=9ms", "evaluate.workers=3", 0, 0},
		{"evaluate.step_time=9ms", "evaluate.batch_size=3", 0, 0},
		{"evaluate.step_time=9ms", "evaluate.step_time=3ms", 0, 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct truth t = plain;
		t.settings[2] = "evaluate.every=10";
		t.settings[3] = "evaluate.samples=100";
		t.settings[4] = cases[i].own;
		struct altered *a =
			alter_evaluating(&t, &measured, NULL, SETTINGS(cases[i].setting));
		assert_int_equal(a->code, cases[i].step_ms > 0 ? 0 : -ENOTSUP);
		if (a->code) {
			assert_non_null(strstr(a->err.text, "evaluate."));
		} else {
			assert_about(truth_mean(&a->model, COST_EVALUATE_INPUT),
				cases[i].input_ms * 1e3, 1e-4);
			assert_about(truth_mean(&a->model, COST_EVALUATE_STEP),
				cases[i].step_ms * 1e3, 1e-4);
		}
		done(a);
	}
	struct altered *a = alter_with(&plain, NULL, SETTINGS("evaluate.every=10"));
	assert_int_equal(a->code, -ENOTSUP);
	assert_non_null(strstr(a->err.text, "was not measured"));
	done(a);
}

static void jitter_is_drawn(void **state)
{
	(void)state;
	struct altered *a = alter_with(&plain, NULL, SETTINGS("step.jitter=0.5"));
	assert_int_equal(a->code, 0);
	const struct replay_series *series = &a->model.replay.series[COST_STEP_DEVICE];
	double sum = 0;
	double squares = 0;
	for (size_t i = 0; i < series->count; i++) {
		sum += (double)series->ns[i];
		squares += (double)series->ns[i] * (double)series->ns[i];
	}
	const double n = (double)series->count;
	const double mean = sum / n;
	assert_about(mean, 8e6, 0.001);
	assert_about(sqrt(squares / n - mean * mean) / mean, 0.5, 0.12);
	done(a);
}

/* Their mean, and their spread in their order. */
static void recorded_step_times_are_replayed(void **state)
{
	(void)state;
	struct altered *a = alter_with(&plain, NULL, SETTINGS("step.times=2ms 2 8"));
	assert_int_equal(a->code, 0);
	const struct replay_series *series = &a->model.replay.series[COST_STEP_DEVICE];
	const double scale = a->model.replay.scale[COST_STEP_DEVICE];
	assert_true(series->count > 6);
	assert_about(truth_mean(&a->model, COST_STEP_DEVICE), 8000, 0.001); /* step.time is set */
	for (size_t i = 0; i + 3 < series->count; i++) {
		assert_about(
			scale * (double)series->ns[i], (double)series->ns[i + 3] * scale, 1e-4);
		const double ms = scale * (double)series->ns[i] / 1e6;
		assert_true(fabs(ms - 4) < 0.02 || fabs(ms - 16) < 0.02);
	}
	done(a);
	a = alter_with(&plain, NULL, SETTINGS("step.time=0", "step.times=2ms 2 8"));
	assert_int_equal(a->code, 0);
	assert_about(truth_mean(&a->model, COST_STEP_DEVICE), 4000, 0.001);
	done(a);
}

/* Declared costs of a loader are added where they are spent. */
static void overheads_are_added(void **state)
{
	(void)state;
	struct altered *a = alter_with(&plain, NULL, SETTINGS("decode.workers=2"));
	const double sample_us = truth_mean(&a->model, COST_DECODE_CPU);
	const double host_us = truth_mean(&a->model, COST_STEP_HOST);
	done(a);
	a = alter_with(&plain, NULL,
		SETTINGS("overhead.sample=700us", "overhead.batch=3ms", "overhead.step=2ms"));
	assert_int_equal(a->code, 0);
	assert_about(truth_mean(&a->model, COST_DECODE_CPU), sample_us + 700, 0.001);
	assert_about(truth_mean(&a->model, COST_DECODE_BATCH), 3000, 0.001);
	assert_about(truth_mean(&a->model, COST_STEP_HOST), host_us + 2000, 0.001);
	done(a);
	a = alter_with(&plain, NULL, SETTINGS("overhead.sample=700us", "overhead.lock=20%"));
	assert_int_equal(a->code, 0);
	assert_about(truth_mean(&a->model, COST_DECODE_CPU), sample_us + 560, 0.001);
	assert_about(truth_mean(&a->model, COST_DECODE_LOCK), 140, 0.001);
	done(a);
	/* Uneven items give together what is taken away from their mean. */
	struct truth declared = plain;
	declared.settings[2] = "overhead.sample=500us";
	a = alter_with(&declared, NULL, SETTINGS("overhead.sample=0"));
	assert_int_equal(a->code, 0);
	assert_about(truth_mean(&a->model, COST_DECODE_CPU), fmax(sample_us - 500, 0), 0.001);
	for (size_t i = 0; i < a->model.replay.series[COST_DECODE_CPU].count; i++)
		assert_true(a->model.replay.series[COST_DECODE_CPU].ns[i] >= 0);
	done(a);
}

/* The hand-over of a batch costs either side by its objects and bytes, and grows with the batch; an index costs the step's
 * thread by the samples of the data set. */
static void handovers_are_added(void **state)
{
	(void)state;
	struct altered *a = alter_with(&plain, NULL, SETTINGS("overhead.objects=0"));
	const double host_us = truth_mean(&a->model, COST_STEP_HOST);
	const double batch = config_real(&a->config, KEY_BATCH_SIZE);
	char twice[32];
	(void)snprintf(twice, sizeof twice, "batch.size=%.0f", 2 * batch);
	done(a);
	a = alter_with(&plain, NULL, SETTINGS("overhead.objects=0.5", "overhead.object=100us"));
	assert_int_equal(a->code, 0);
	assert_about(truth_mean(&a->model, COST_DECODE_BATCH), 50 * batch, 0.001);
	assert_about(truth_mean(&a->model, COST_STEP_HOST), host_us + 50 * batch, 0.001);
	done(a);
	a = alter_with(
		&plain, NULL, SETTINGS("overhead.objects=0.5", "overhead.object=100us", twice));
	assert_int_equal(a->code, 0);
	assert_about(truth_mean(&a->model, COST_DECODE_BATCH), 100 * batch, 0.001);
	assert_about(truth_mean(&a->model, COST_STEP_HOST), host_us + 100 * batch, 0.001);
	done(a);
	/* 100,000 samples of 20 ns. */
	a = alter_with(&plain, NULL, SETTINGS("overhead.index=20ns"));
	assert_int_equal(a->code, 0);
	assert_int_equal(a->model.replay.series[COST_DECODE_BATCH].count, 0);
	assert_about(truth_mean(&a->model, COST_STEP_HOST), host_us + 2000, 0.001);
	done(a);
	struct truth sized = plain;
	sized.batch_bytes = 1000000;
	a = alter_with(&sized, NULL, SETTINGS("overhead.bandwidth=500MB/s"));
	assert_int_equal(a->code, 0);
	assert_about(truth_mean(&a->model, COST_DECODE_BATCH), 2000, 0.001);
	assert_about(truth_mean(&a->model, COST_STEP_HOST), host_us + 2000, 0.001);
	done(a);
	/* Declared in the run itself: all of it is there already, and goes with the key. */
	struct truth declared = plain;
	declared.settings[2] = "overhead.objects=1";
	a = alter_with(&declared, NULL, SETTINGS("overhead.objects=0"));
	assert_int_equal(a->code, 0);
	assert_about(truth_mean(&a->model, COST_DECODE_BATCH), 0, 0.001);
	done(a);
	a = alter_with(&plain, NULL, SETTINGS("overhead.bandwidth=500MB/s"));
	assert_int_equal(a->code, -ENOTSUP);
	assert_non_null(strstr(a->err.text, "measure it again"));
	done(a);
}

/* What threads in each worker cost is measured, and not predicted. */
static void threads_of_a_worker_are_refused(void **state)
{
	(void)state;
	struct altered *a = alter_with(&plain, NULL, SETTINGS("decode.threads=8"));
	assert_int_equal(a->code, -ENOTSUP);
	assert_non_null(strstr(a->err.text, "sweep.decode.threads = 1,N"));
	done(a);
}

/* A mask takes cores of the replay, and gives them back with the key. */
static void a_mask_takes_cores(void **state)
{
	(void)state;
	struct altered *a = alter_with(&plain, NULL, SETTINGS("inject.cpus=1"));
	assert_int_equal(a->code, 0);
	assert_true(plain.cores > 1 && a->model.replay.cores == 1);
	done(a);
	struct truth held = plain;
	held.settings[2] = "inject.cpus=1";
	a = alter_with(&held, NULL, SETTINGS("inject.cpus=0"));
	assert_int_equal(a->code, 0);
	assert_true(a->model.replay.cores == plain.cores);
	done(a);
}

/* Of what a rank spends with the others it waits half: where steps take twice as long everywhere that part grows as its own rounds
 * do, the exchange stays, and back again all is as it was. */
static void other_ranks_follow(void **state)
{
	(void)state;
	struct altered *a = alter_with(&plain, NULL, (const char *const[]){NULL});
	struct model *const m = &a->model;
	struct config more;
	double after_s;
	m->replay.shape.ranks = 2;
	assert_int_equal(config_set_key(&a->config, KEY_RUN_RANKS, "2", &a->err), 0);
	m->waits = (struct model_waits){.waited_ns = 1, .all_ns = 2, .times = 1};
	assert_int_equal(model_round_alone(m, &m->waits.alone_s, &a->err), 0);
	truth_configure(
		&more, a->run, (const char *const[]){"step.time=16ms", "run.ranks=2", NULL});
	assert_int_equal(model_alter(m, &a->config, &more, &a->err), 0);
	assert_int_equal(model_round_alone(m, &after_s, &a->err), 0);
	assert_true(after_s > 1.9 * m->waits.alone_s);
	assert_about(m->replay.scale[COST_SYNC], 0.5 + 0.5 * after_s / m->waits.alone_s, 1e-9);
	assert_int_equal(model_alter(m, &more, &a->config, &a->err), 0);
	assert_about(m->replay.scale[COST_SYNC], 1, 1e-9);
	config_release(&more);
	done(a);
}

static void others_are_refused(void **state)
{
	(void)state;
	struct altered *a = alter_with(&plain, NULL, SETTINGS("augment.size=160"));
	assert_int_equal(a->code, -ENOTSUP);
	assert_non_null(strstr(a->err.text, "augment.size"));
	assert_non_null(strstr(a->err.text, "decode.workers"));
	assert_non_null(strstr(a->err.text, "read.threads"));
	done(a);
	a = alter_with(
		&plain, NULL, SETTINGS("measure.duration=9s", "run.seed=7", "run.name=other"));
	assert_int_equal(a->code, 0);
	done(a);
	assert_true(model_knows(KEY_DECODE_WORKERS) && model_knows(KEY_INJECT_READ_FACTOR));
	assert_false(model_knows(KEY_AUGMENT_SIZE) || model_knows(KEY_CODEC_NAME));
}

static void extrapolation_is_noted(void **state)
{
	(void)state;
	struct truth t = plain;
	t.cores = 4;
	struct altered *a = alter_with(&t, NULL, SETTINGS("decode.workers=8", "read.depth=64"));
	assert_int_equal(a->code, 0);
	bool workers = false;
	bool depth = false;
	for (size_t i = 0; i < a->model.note_count; i++) {
		workers = workers || strstr(a->model.notes[i], "8 workers share 4 cores");
		depth = depth || strstr(a->model.notes[i], "more files in flight than measured");
	}
	assert_true(workers && depth);
	assert_true(a->model.altered > 1);
	done(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(structure_is_foretold),
		cmocka_unit_test(other_loaders_are_foretold),
		cmocka_unit_test(many_workers_on_few_cores),
		cmocka_unit_test(a_fixed_step_time_is_of_any_batch),
		cmocka_unit_test(a_line_of_step_times_goes_with_the_batch),
		cmocka_unit_test(a_published_step_goes_with_the_batch),
		cmocka_unit_test(upload_goes_with_the_batch),
		cmocka_unit_test(a_device_copies_by_itself),
		cmocka_unit_test(injected_slow_downs_scale),
		cmocka_unit_test(evaluations_are_foretold),
		cmocka_unit_test(jitter_is_drawn),
		cmocka_unit_test(recorded_step_times_are_replayed),
		cmocka_unit_test(overheads_are_added),
		cmocka_unit_test(handovers_are_added),
		cmocka_unit_test(a_mask_takes_cores),
		cmocka_unit_test(threads_of_a_worker_are_refused),
		cmocka_unit_test(other_ranks_follow),
		cmocka_unit_test(others_are_refused),
		cmocka_unit_test(extrapolation_is_noted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
