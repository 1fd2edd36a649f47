/* What changing a key does to a model.  The structure follows from the new configuration by the
 * function that also builds the pipeline; a few keys scale costs as well.  One table says which
 * keys. */
#include "harness/analyze/point_model.h"

#include "harness/base/rng.h"
#include "harness/config/step_times.h"
#include "harness/config/tables.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Separates the emulated step's jitter from other uses of the seed. */
#define JITTER_STREAM 0x6a69747465720000ULL

enum { JITTER_BATCHES = 1024, ALONE_SAMPLES = 4096 };

/* With more crowding, threads no longer take the scheduler's slices strictly in turn. */
static const double CROWDING_MOST = 4;

struct change {
	struct model *model;
	enum key_id key; /* the one that is changed */
	const struct config *from, *to;
	enum replay_cost first, last; /* of the table's entry */
	struct error *err;
};

typedef int turn(const struct change *change);

static double change_before(const struct change *c)
{
	return config_real(c->from, c->key);
}

static double change_after(const struct change *c)
{
	return config_real(c->to, c->key);
}

static bool change_has_devices(const struct config *config)
{
	return config_integer(config, KEY_STEP_DEVICES) > 1;
}

/* Whether a key is the same before and after. */
static bool change_keeps(const struct change *c, enum key_id key)
{
	const struct config_value *a = &c->from->values[key];
	const struct config_value *b = &c->to->values[key];
	const enum key_type type = config_keys[key].type;
	if (type == KEY_TYPE_REAL || type == KEY_TYPE_SHARE)
		return a->real == b->real;
	return (type == KEY_TYPE_TEXT || a->integer == b->integer) &&
	       strcmp(config_text(c->from, key), config_text(c->to, key)) == 0;
}

/* Adds how far a number was changed from the calibration. */
static void change_count_distance(const struct change *c)
{
	if (change_before(c) > 0 && change_after(c) > 0)
		c->model->altered += fabs(log(change_after(c) / change_before(c)));
}

/* --- structure -------------------------------------------------------------------------------- */

static int turn_structure(const struct change *c)
{
	change_count_distance(c);
	return 0;
}

/* Linux's scheduler slice is 0.7 ms x (1 + log2 of the cores, 8 at most) (kernel/sched/fair.c),
 * plus the rest of a tick: a thread that lost its core was measured to wait 0.9 ms x the same for
 * each thread in front of it. */
static double slice_ns(double cores)
{
	return 900e3 * (1 + floor(log2(fmin(fmax(cores, 1), 8))));
}

/* Adds to each item of a cost, not below 0, and to their mean: where items have less than is taken away, since a core
 * came and went, the others give it. */
static int add_to_cost(const struct change *c, enum replay_cost cost, double more_ns)
{
	struct model *model = c->model;
	struct replay_series *series = &model->replay.series[cost];
	const double scale = series->count > 0 ? model->replay.scale[cost] : 0;
	const size_t n = series->count > 0 ? series->count : 1;
	float *changed = calloc(n, sizeof *changed);
	if (!changed)
		return error_set(c->err, -ENOMEM, "out of memory");
	double wanted = 0;
	double got = 0;
	for (size_t i = 0; i < n; i++) {
		const double old = series->count > 0 ? scale * (double)series->ns[i] : 0;
		changed[i] = (float)fmax(old + more_ns, 0);
		wanted += old + more_ns;
		got += fmax(old + more_ns, 0);
	}
	for (size_t i = 0; i < n && wanted < got; i++)
		changed[i] *= (float)(fmax(wanted, 0) / got);
	free(model->storage[cost]);
	model->storage[cost] = changed;
	model->replay.scale[cost] = 1;
	*series = (struct replay_series){.ns = changed, .count = n};
	return 0;
}

/* How many threads are in front of one that wants a core; 0 where every computing worker has a
 * core. */
static double crowding(const struct replay_model *replay, double workers)
{
	const double cpu = model_mean_cost(replay, COST_DECODE_CPU) +
			   model_mean_cost(replay, COST_DECODE_LOCK) +
			   model_mean_cost(replay, COST_DECODE_BATCH) / replay->shape.batch_size;
	const double whole = cpu + model_mean_cost(replay, COST_DECODE_WAIT);
	const double computing = whole > 0 ? workers * cpu / whole : 0;
	return fmin(fmax(computing / replay->cores - 1, 0), CROWDING_MOST);
}

/* With more workers than cores, a step's thread that wakes them at the end of a step loses its core
 * to one of them, and the device waits. */
static int crowd(const struct change *c)
{
	struct model *model = c->model;
	const struct replay_model *replay = &model->replay;
	if (model->facts.step_on_cores || model->facts.step_null ||
		replay->series[COST_STEP_DEVICE].count == 0)
		return 0;
	const double further =
		crowding(replay, change_after(c)) - crowding(replay, change_before(c));
	const double more = fmax(further * slice_ns(replay->cores), -model->late_ns);
	model->late_ns += more;
	model->late_guess_ns += fabs(more);
	return more != 0 ? add_to_cost(c, COST_STEP_DEVICE, more) : 0;
}

/* Files in flight are as many as the key allows. */
static void note_more_reads(const struct change *c)
{
	const struct replay_series *series = c->model->replay.series;
	const bool reads_take_time =
		series[COST_READ_LATENCY].count > 0 || series[COST_READ_DEVICE].count > 0;
	if (change_after(c) > change_before(c) && reads_take_time)
		model_note(c->model,
			"more files in flight than measured: storage is assumed to keep its "
			"latency and device time");
}

static int turn_workers(const struct change *c)
{
	struct model *model = c->model;
	const unsigned old = (unsigned)change_before(c);
	const unsigned now = (unsigned)change_after(c);
	float *factor = malloc(now * sizeof *factor);
	if (!factor)
		return error_set(c->err, -ENOMEM, "out of memory");
	for (unsigned w = 0; w < now; w++)
		factor[w] = w < old && model->worker_factor ? model->worker_factor[w] : 1;
	free(model->worker_factor);
	model->worker_factor = factor;
	if (model->replay.worker_factor)
		model->replay.worker_factor = factor;
	change_count_distance(c);
	if (now > old && model->replay.contention <= 0 && old < model->replay.cores)
		model_note(model,
			"more workers than measured: how much cores slow each other down is "
			"unknown and not counted");
	if (model->replay.quota > 0 && now > model->replay.quota)
		model_note(model, "%u workers share the %g cores of a CPU quota", now,
			model->replay.quota);
	else if (now > model->replay.cores)
		model_note(model, "%u workers share %g cores", now, model->replay.cores);
	if (shape_by_workers(c->to))
		note_more_reads(c);
	return crowd(c);
}

static int turn_read_parallelism(const struct change *c)
{
	if (!(c->key == KEY_READ_DEPTH && c->model->facts.reads_block))
		note_more_reads(c);
	return turn_structure(c);
}

/* Readers and workers read the same files; in the replay they only do so at other times. */
static int turn_reader(const struct change *c)
{
	const bool same_engine = config_integer(c->to, KEY_READ_ENGINE) != READ_ENGINE_AUTO;
	if (shape_by_workers(c->from) && !shape_by_workers(c->to) && !same_engine)
		return error_set(c->err, -ENOTSUP,
			"read.by: reader threads may take another engine than workers do (read.engine = auto), whose reads were not measured: set read.engine");
	model_note(c->model, "a file is assumed to take as long whoever reads it");
	return 0;
}

/* --- several devices -------------------------------------------------------------------------- */

static double exchange_ns(const struct change *c, const struct config *config)
{
	return c->model->exchange_time ? c->model->exchange_time(config) : NAN;
}

/* Scales the measured exchange by its nominal times; where none was measured, the nominal time is
 * taken. */
static int change_exchange(const struct change *c)
{
	struct replay_model *replay = &c->model->replay;
	struct replay_series *series = &replay->series[COST_SYNC];
	const double from = exchange_ns(c, c->from);
	const double to = exchange_ns(c, c->to);
	const struct key *key = &config_keys[c->key];
	if (isnan(from) || isnan(to))
		return error_set(c->err, -ENOTSUP,
			"%s.%s: the duration of a gradient exchange is known for emulated devices "
			"only",
			key->section, key->name);
	if (series->count > 0 && from > 0) {
		replay->scale[COST_SYNC] *= to / from;
		return 0;
	}
	float *one = malloc(sizeof *one);
	if (!one)
		return error_set(c->err, -ENOMEM, "out of memory");
	*one = (float)(to * config_real(c->from, KEY_INJECT_SYNC_FACTOR));
	free(c->model->storage[COST_SYNC]);
	c->model->storage[COST_SYNC] = one;
	replay->scale[COST_SYNC] = 1;
	*series = (struct replay_series){.ns = one, .count = *one > 0};
	return 0;
}

/* The keys of the exchange are one change: the first one that differs does it all. */
static int turn_exchange(const struct change *c)
{
	static const enum key_id together[] = {
		KEY_STEP_DEVICES, KEY_SYNC_BANDWIDTH, KEY_SYNC_LATENCY};
	const size_t count = sizeof together / sizeof *together;
	for (size_t i = 0; i < count && together[i] != c->key; i++)
		if (!change_keeps(c, together[i]))
			return 0;
	return change_has_devices(c->to) ? change_exchange(c) : 0;
}

static int turn_devices(const struct change *c)
{
	struct model *model = c->model;
	const unsigned was = (unsigned)change_before(c);
	const unsigned now = (unsigned)change_after(c);
	for (unsigned d = now; d < was; d++)
		model->device_factor[d] = 1;
	if (now > was)
		model_note(model,
			"more devices than measured: the added ones are assumed to be as fast");
	change_count_distance(c);
	if (now > 1)
		return turn_exchange(c);
	/* Alone it exchanges with nobody. */
	free(model->storage[COST_SYNC]);
	model->storage[COST_SYNC] = NULL;
	model->replay.series[COST_SYNC] = (struct replay_series){0};
	return 0;
}

static int turn_slow_device(const struct change *c)
{
	c->model->device_factor[0] *= (float)(change_after(c) / change_before(c));
	change_count_distance(c);
	return 0;
}

/* --- the step --------------------------------------------------------------------------------- */

static double batch_of(const struct change *c, const struct config *config)
{
	struct pipeline_shape shape;
	model_shape(c->model, config, &shape);
	return shape.batch_size;
}

/* Nominal step time, ns per full batch, as far as it is known. */
static double nominal(const struct change *c, const struct config *config)
{
	if (config_sets_step_time(config))
		return config_step_time(config, batch_of(c, config));
	return c->model->step_time ? c->model->step_time(config, (uint32_t)batch_of(c, config))
				   : NAN;
}

/* The step's time scales with its nominal time if both are known, else with the batch size. */
static double step_ratio(const struct change *c)
{
	const double ratio = nominal(c, c->to) / nominal(c, c->from);
	if (ratio > 0 && isfinite(ratio))
		return ratio;
	return batch_of(c, c->to) / batch_of(c, c->from);
}

/* Whether an evaluation waits for a share of what training steps take for as many samples. */
static bool change_evaluates_by_steps(const struct change *c)
{
	return c->model->facts.step_emulated &&
	       config_integer(c->from, KEY_EVALUATE_STEP_TIME) == 0;
}

/* How late the thread is grows less than in proportion to the device's time: the delay is made of
 * scheduler slices, but is no longer than the work that competes. Measurements lie between the two:
 * its square root. */
static int scale_step(const struct change *c, double ratio)
{
	struct model *model = c->model;
	struct replay_model *replay = &model->replay;
	if (change_evaluates_by_steps(c))
		replay->scale[COST_EVALUATE_STEP] *= ratio;
	if (model->facts.step_on_cores) {
		replay->scale[COST_STEP_HOST] *= ratio;
		return 0;
	}
	replay->scale[COST_STEP_DEVICE] *= ratio;
	if (replay->series[COST_STEP_DEVICE].count == 0 || !(model->late_ns > 0))
		return 0;
	const double more = model->late_ns * (sqrt(ratio) - ratio);
	model->late_ns *= sqrt(ratio);
	return add_to_cost(c, COST_STEP_DEVICE, more);
}

/* Declared CPU time is the same on a core that others slow down, and the replay slows down all of it: less by as much as
 * it does where the model is calibrated. */
static int add_overhead(const struct change *c, enum replay_cost cost, double more_ns)
{
	const struct model *model = c->model;
	const double others = fmax(model->calibrated_cores, 1) - 1;
	return add_to_cost(c, cost, more_ns / (1 + model->replay.contention * others));
}

/* batch.size and the keys of what is declared for a batch are one change: the first one that differs does it all. */
static int turn_declared(const struct change *c)
{
	static const enum key_id together[] = {KEY_BATCH_SIZE, KEY_OVERHEAD_BATCH,
		KEY_OVERHEAD_STEP, KEY_OVERHEAD_OBJECTS, KEY_OVERHEAD_OBJECT,
		KEY_OVERHEAD_BANDWIDTH, KEY_OVERHEAD_INDEX};
	for (size_t i = 0; together[i] != c->key; i++)
		if (!change_keeps(c, together[i]))
			return 0;
	const double worker_ns =
		model_declared(c->model, c->to, false) - model_declared(c->model, c->from, false);
	const double step_ns =
		model_declared(c->model, c->to, true) - model_declared(c->model, c->from, true);
	const int code = worker_ns != 0 ? add_overhead(c, COST_DECODE_BATCH, worker_ns) : 0;
	return code || step_ns == 0 ? code : add_overhead(c, COST_STEP_HOST, step_ns);
}

/* Of an older result nobody knows how large its batches were, or how many samples the data set had. */
static int turn_declared_by_size(const struct change *c)
{
	const bool known = c->key == KEY_OVERHEAD_INDEX ? c->model->samples < UINT32_MAX
							: c->model->made_bytes > 0;
	if (!known)
		return error_set(c->err, -ENOTSUP,
			"overhead.%s: this result does not say how %s: measure it again",
			config_keys[c->key].name,
			c->key == KEY_OVERHEAD_INDEX ? "many samples the data set has"
						     : "large its batches are");
	return turn_declared(c);
}

static int turn_batch(const struct change *c)
{
	struct model *model = c->model;
	const double ratio = batch_of(c, c->to) / batch_of(c, c->from);
	const int code = scale_step(c, step_ratio(c));
	if (code)
		return code;
	model->replay.scale[COST_UPLOAD] *= ratio;
	if (change_evaluates_by_steps(c))
		model->replay.scale[COST_EVALUATE_STEP] /= ratio;
	change_count_distance(c);
	const int declared = turn_declared(c);
	if (declared)
		return declared;
	if (!model->facts.step_on_cores && config_step_time_is_fixed(c->to))
		model_note(model,
			"step.time is one duration, so that a batch of any size is assumed to take "
			"as long: give it as step.time=106ms@64,61ms@32");
	if (model->facts.step_on_cores)
		model_note(model,
			"step time is assumed to be proportional to the batch size; its fixed part "
			"shows only when several batch sizes were measured");
	return 0;
}

static int refuse_step(const struct change *c)
{
	const struct key *key = &config_keys[c->key];
	return error_set(c->err, -ENOTSUP,
		"%s.%s: the step times before and after are not both known; set step.time",
		key->section, key->name);
}

/* step.time, step.times, step.device and step.model are one change, and batch.size changes them with it: the
 * first one that differs does it all. */
static int turn_step_time(const struct change *c)
{
	static const enum key_id together[] = {
		KEY_BATCH_SIZE, KEY_STEP_MODEL, KEY_STEP_DEVICE, KEY_STEP_TIME, KEY_STEP_TIMES};
	for (size_t i = 0; together[i] != c->key; i++)
		if (!change_keeps(c, together[i]))
			return 0;
	/* With a time set on both sides, the names mean nothing. */
	const double from = nominal(c, c->from);
	const double to = nominal(c, c->to);
	if (c->model->facts.step_on_cores || !(from > 0) || !(to > 0))
		return refuse_step(c);
	c->model->altered += fabs(log(to / from));
	const int code = scale_step(c, to / from);
	/* Another model has other gradients. */
	const bool exchanges = change_has_devices(c->from) && change_has_devices(c->to);
	if (code || !exchanges || change_keeps(c, KEY_STEP_MODEL) ||
		!change_keeps(c, KEY_SYNC_BANDWIDTH) || !change_keeps(c, KEY_SYNC_LATENCY) ||
		!change_keeps(c, KEY_STEP_DEVICES))
		return code;
	return change_exchange(c);
}

/* How a step's time varies: as recorded, or by a log-normal jitter. */
static void draw_step_times(const struct config *config, float *drawn)
{
	const double jitter = config_real(config, KEY_STEP_JITTER);
	const double sigma = sqrt(log1p(jitter * jitter));
	const uint64_t seed = (uint64_t)config_integer(config, KEY_RUN_SEED);
	struct step_times times;
	struct step_walk walk;
	struct rng rng;
	step_times_of(config, &times);
	if (times.count > 0)
		step_walk_begin(&walk, &times, seed, 0);
	rng_init(&rng, seed, JITTER_STREAM);
	for (size_t i = 0; i < JITTER_BATCHES; i++)
		drawn[i] = times.count > 0
				   ? (float)step_walk_next(&walk, &times)
				   : (float)exp(sigma * rng_normal(&rng) - sigma * sigma / 2);
}

/* Draws times that vary as is asked for and keep the mean. */
static int turn_spread(const struct change *c)
{
	struct model *model = c->model;
	struct replay_series *series = &model->replay.series[COST_STEP_DEVICE];
	if (model->facts.step_on_cores || series->count == 0)
		return error_set(c->err, -ENOTSUP, "step.%s: only an emulated step has it",
			config_keys[c->key].name);
	double mean = 0;
	for (size_t i = 0; i < series->count; i++)
		mean += (double)series->ns[i] / (double)series->count;
	float *drawn = malloc(JITTER_BATCHES * sizeof *drawn);
	if (!drawn)
		return error_set(c->err, -ENOMEM, "out of memory");
	draw_step_times(c->to, drawn);
	double sum = 0;
	for (size_t i = 0; i < JITTER_BATCHES; i++)
		sum += (double)drawn[i];
	/* What was drawn has the mean, so that jitter alone changes no step's rate. */
	for (size_t i = 0; i < JITTER_BATCHES; i++)
		drawn[i] = (float)((double)drawn[i] * mean * JITTER_BATCHES / sum);
	free(model->storage[COST_STEP_DEVICE]);
	model->storage[COST_STEP_DEVICE] = drawn;
	*series = (struct replay_series){.ns = drawn, .count = JITTER_BATCHES};
	return 0;
}

/* Their mean, and how they vary around it. */
static int turn_step_times(const struct change *c)
{
	const int code = turn_step_time(c);
	return code ? code : turn_spread(c);
}

/* --- upload ----------------------------------------------------------------------------------- */

static int turn_upload(const struct change *c)
{
	const bool copies = shape_uploads(c->to, &c->model->facts);
	if (copies == shape_uploads(c->from, &c->model->facts))
		return 0;
	if (copies)
		return error_set(c->err, -ENOTSUP,
			"upload.mode = copy: how long a copy takes was not measured");
	if (c->model->facts.step_has_memory)
		return error_set(c->err, -ENOTSUP,
			"upload.mode = none: how long a step takes that copies its own batch was "
			"not measured");
	c->model->replay.series[COST_UPLOAD] = (struct replay_series){0};
	free(c->model->storage[COST_UPLOAD]);
	c->model->storage[COST_UPLOAD] = NULL;
	return 0;
}

/* A device takes its batches itself where none are loaded ahead. */
static int turn_prefetch(const struct change *c)
{
	const int code = turn_upload(c);
	return code ? code : turn_structure(c);
}

/* --- epochs ----------------------------------------------------------------------------------- */

static int turn_epochs(const struct change *c)
{
	struct model *const model = c->model;
	const bool apart = !config_on(c->to, KEY_DECODE_PERSISTENT);
	const double ns = apart ? config_real(c->to, KEY_DECODE_STARTUP) : 0;
	float *const one = malloc(sizeof *one);
	if (!one)
		return error_set(c->err, -ENOMEM, "out of memory");
	*one = (float)ns;
	free(model->storage[COST_DECODE_STARTUP]);
	model->storage[COST_DECODE_STARTUP] = one;
	model->replay.scale[COST_DECODE_STARTUP] = 1;
	model->replay.series[COST_DECODE_STARTUP] =
		(struct replay_series){.ns = one, .count = ns > 0};
	return 0;
}

/* --- checkpoints ------------------------------------------------------------------------------ */

static int turn_checkpoints(const struct change *c)
{
	const struct key *key = &config_keys[c->key];
	const bool measured = c->model->replay.series[COST_CHECKPOINT].count > 0;
	if (!measured && config_integer(c->to, KEY_CHECKPOINT_EVERY) > 0)
		return error_set(c->err, -ENOTSUP,
			"%s.%s: how long a checkpoint takes was not measured", key->section,
			key->name);
	return turn_structure(c);
}

static int turn_checkpoint_bytes(const struct change *c)
{
	if (!(change_before(c) > 0) || !(change_after(c) > 0))
		return error_set(c->err, -ENOTSUP,
			"checkpoint.bytes: 0 stands for a size that the model does not know");
	c->model->replay.scale[COST_CHECKPOINT] *= change_after(c) / change_before(c);
	c->model->replay.scale[COST_CHECKPOINT_COPY] *= change_after(c) / change_before(c);
	return turn_checkpoints(c);
}

/* --- evaluations ------------------------------------------------------------------------------ */

static int turn_evaluations(const struct change *c)
{
	const struct replay_model *const replay = &c->model->replay;
	const bool measured = replay->series[COST_EVALUATE_INPUT].count > 0 ||
			      replay->series[COST_EVALUATE_STEP].count > 0;
	if (!measured && change_after(c) > 0)
		return error_set(c->err, -ENOTSUP,
			"evaluate.every: how long an evaluation takes was not measured");
	return turn_structure(c);
}

static int turn_evaluated_samples(const struct change *c)
{
	if (!(change_before(c) > 0) || !(change_after(c) > 0))
		return error_set(c->err, -ENOTSUP,
			"evaluate.samples: 0 stands for a number that the model does not know");
	c->model->replay.scale[COST_EVALUATE_INPUT] *= change_after(c) / change_before(c);
	c->model->replay.scale[COST_EVALUATE_STEP] *= change_after(c) / change_before(c);
	return turn_structure(c);
}

/* --- injected slow-downs ---------------------------------------------------------------------- */

static int turn_factor(const struct change *c)
{
	for (enum replay_cost cost = c->first; cost <= c->last; cost++)
		c->model->replay.scale[cost] *= change_after(c) / change_before(c);
	change_count_distance(c);
	return 0;
}

static int turn_step_factor(const struct change *c)
{
	change_count_distance(c);
	return scale_step(c, change_after(c) / change_before(c));
}

static int turn_addition(const struct change *c)
{
	return add_to_cost(c, c->first, change_after(c) - change_before(c));
}

/* A part of it is under the lock.  Either key does it for both. */
static int turn_overhead(const struct change *c)
{
	if (c->key == KEY_OVERHEAD_LOCK && !change_keeps(c, KEY_OVERHEAD_SAMPLE))
		return 0;
	const double was = config_real(c->from, KEY_OVERHEAD_SAMPLE);
	const double is = config_real(c->to, KEY_OVERHEAD_SAMPLE);
	const double locked = is * config_real(c->to, KEY_OVERHEAD_LOCK) -
			      was * config_real(c->from, KEY_OVERHEAD_LOCK);
	const int code = add_overhead(c, COST_DECODE_CPU, is - was - locked);
	return code || locked == 0 ? code : add_overhead(c, COST_DECODE_LOCK, locked);
}

static int turn_cpus(const struct change *c)
{
	c->model->replay.cores = model_cores(c->model, c->to);
	change_count_distance(c);
	return 0;
}

/* --- the table -------------------------------------------------------------------------------- */

/* In the order in which they are applied. */
static const struct turned {
	enum key_id key;
	turn *turn;
	enum replay_cost first,
		last; /* turn_factor, turn_addition: the costs that the key changes */
} turned[] = {
	{.key = KEY_DECODE_WORKERS, .turn = turn_workers},
	{.key = KEY_BATCH_SIZE, .turn = turn_batch},
	{.key = KEY_STEP_MODEL, .turn = turn_step_time},
	{.key = KEY_STEP_DEVICE, .turn = turn_step_time},
	{.key = KEY_STEP_TIME, .turn = turn_step_time},
	{.key = KEY_STEP_TIMES, .turn = turn_step_times},
	{.key = KEY_STEP_JITTER, .turn = turn_spread},
	{.key = KEY_STEP_DEVICES, .turn = turn_devices},
	{.key = KEY_SYNC_BANDWIDTH, .turn = turn_exchange},
	{.key = KEY_SYNC_LATENCY, .turn = turn_exchange},
	{.key = KEY_PREFETCH_DEPTH, .turn = turn_prefetch},
	{.key = KEY_READ_BY, .turn = turn_reader},
	{.key = KEY_DECODE_SHARE, .turn = turn_structure},
	{.key = KEY_READ_DEPTH, .turn = turn_read_parallelism},
	{.key = KEY_READ_THREADS, .turn = turn_read_parallelism},
	{.key = KEY_DECODE_QUEUE, .turn = turn_structure},
	{.key = KEY_BATCH_ORDER, .turn = turn_structure},
	{.key = KEY_UPLOAD_MODE, .turn = turn_upload},
	{.key = KEY_UPLOAD_DEPTH, .turn = turn_structure},
	{.key = KEY_DECODE_PERSISTENT, .turn = turn_epochs},
	{.key = KEY_DECODE_STARTUP, .turn = turn_epochs},
	{.key = KEY_CHECKPOINT_EVERY, .turn = turn_checkpoints},
	{.key = KEY_CHECKPOINT_MODE, .turn = turn_checkpoints},
	{.key = KEY_CHECKPOINT_BYTES, .turn = turn_checkpoint_bytes},
	{.key = KEY_EVALUATE_EVERY, .turn = turn_evaluations},
	{.key = KEY_EVALUATE_SAMPLES, .turn = turn_evaluated_samples},
	{.key = KEY_OVERHEAD_SAMPLE, .turn = turn_overhead},
	{.key = KEY_OVERHEAD_LOCK, .turn = turn_overhead},
	{.key = KEY_OVERHEAD_BATCH, .turn = turn_declared},
	{.key = KEY_OVERHEAD_STEP, .turn = turn_declared},
	{.key = KEY_OVERHEAD_OBJECTS, .turn = turn_declared},
	{.key = KEY_OVERHEAD_OBJECT, .turn = turn_declared},
	{.key = KEY_OVERHEAD_BANDWIDTH, .turn = turn_declared_by_size},
	{.key = KEY_OVERHEAD_INDEX, .turn = turn_declared_by_size},
	{KEY_INJECT_READ_FACTOR, turn_factor, COST_READ_LATENCY, COST_READ_DEVICE},
	{KEY_INJECT_DECODE_FACTOR, turn_factor, COST_DECODE_CPU, COST_DECODE_LOCK},
	{KEY_INJECT_DECODE_WAIT, turn_addition, COST_DECODE_WAIT, COST_DECODE_WAIT},
	{KEY_INJECT_UPLOAD_FACTOR, turn_factor, COST_UPLOAD, COST_UPLOAD},
	{.key = KEY_INJECT_STEP_FACTOR, .turn = turn_step_factor},
	{KEY_INJECT_STEP_LAUNCH, turn_addition, COST_STEP_HOST, COST_STEP_HOST},
	{KEY_INJECT_SYNC_FACTOR, turn_factor, COST_SYNC, COST_SYNC},
	{KEY_INJECT_CHECKPOINT_FACTOR, turn_factor, COST_CHECKPOINT, COST_CHECKPOINT},
	{.key = KEY_INJECT_CPUS, .turn = turn_cpus},
	{.key = KEY_INJECT_SLOW_DEVICE, .turn = turn_slow_device},
};

enum { TURNED = sizeof turned / sizeof turned[0] };

bool model_knows(enum key_id key)
{
	for (size_t i = 0; i < TURNED; i++)
		if (turned[i].key == key)
			return true;
	return false;
}

/* Keys that say how a run is named, seeded and measured, not what runs. */
static bool is_beside_the_point(enum key_id key)
{
	const char *section = config_keys[key].section;
	return strcmp(section, "measure") == 0 || strcmp(section, "sweep") == 0 ||
	       key == KEY_RUN_NAME || key == KEY_RUN_SEED || key == KEY_DATASET_GENERATE;
}

int model_refuse_unmeasured(enum key_id key, struct error *err)
{
	if (key == KEY_DECODE_THREADS)
		return error_set(err, -ENOTSUP,
			"decode.threads: what another number of threads in each worker costs was not measured: sweep.decode.threads = 1,N measures it");
	if (strcmp(config_keys[key].section, "evaluate") != 0)
		return 0;
	return error_set(err, -ENOTSUP,
		"evaluate.%s: how long an evaluation takes with another value was not measured",
		config_keys[key].name);
}

static int refuse_unmodelled_key(enum key_id key, struct error *err)
{
	char list[ERROR_TEXT_BYTES] = "";
	size_t used = 0;
	const int code = model_refuse_unmeasured(key, err);
	if (code)
		return code;
	for (size_t i = 0; i < TURNED; i++) {
		const struct key *known = &config_keys[turned[i].key];
		const int wrote = snprintf(list + used, sizeof list - used, "%s%s.%s",
			i > 0 ? ", " : "", known->section, known->name);
		if (wrote < 0 || used + (size_t)wrote >= sizeof list)
			break;
		used += (size_t)wrote;
	}
	return error_set(err, -ENOTSUP, "the model does not cover '%s.%s'; it covers %s",
		config_keys[key].section, config_keys[key].name, list);
}

int model_round_alone(const struct model *model, double *out, struct error *err)
{
	const struct replay_options options = model_options(model, ALONE_SAMPLES);
	struct replay_model alone = model->replay;
	struct replay_result result;
	alone.shape.ranks = 1;
	const int code = replay_run(&alone, &options, &result, err);
	*out = code ? 0 : model->replay.shape.batch_size / result.throughput;
	return code;
}

int model_follow_ranks(struct model *model, struct error *err)
{
	struct model_waits *const waits = &model->waits;
	const double share = waits->waited_ns > 0 ? waits->waited_ns / waits->all_ns : 0;
	double alone_s = 0;
	if (model->replay.shape.ranks < 2 || !(waits->alone_s > 0))
		return 0;
	const int code = model_round_alone(model, &alone_s, err);
	if (code)
		return code;
	const double times = alone_s / waits->alone_s;
	model->replay.scale[COST_SYNC] *=
		(1 - share + share * times) / (1 - share + share * waits->times);
	waits->times = times;
	return 0;
}

int model_alter(
	struct model *model, const struct config *from, const struct config *to, struct error *err)
{
	struct change change = {.model = model, .from = from, .to = to, .err = err};
	for (enum key_id key = 0; key < KEY_COUNT; key++)
		if (!is_beside_the_point(key) && !change_keeps(&change, key) && !model_knows(key))
			return refuse_unmodelled_key(key, err);
	int code = 0;
	for (size_t i = 0; i < TURNED && !code; i++) {
		change.key = turned[i].key;
		change.first = turned[i].first;
		change.last = turned[i].last;
		if (!change_keeps(&change, change.key))
			code = turned[i].turn(&change);
	}
	if (code)
		return code;
	struct config copy;
	code = config_copy(&copy, to, err);
	if (code)
		return code;
	config_release(&model->config);
	model->config = copy;
	model_shape(model, to, &model->replay.shape);
	model_use_devices(model);
	model->samples_per_batch = model->replay.shape.batch_size;
	return model_follow_ranks(model, err);
}
