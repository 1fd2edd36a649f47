/* Whether a model makes sense; setting up its replay in one block of memory, running it, and what comes of it. */
#include "harness/analyze/replay.h"

#include "harness/analyze/replay_line.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

static const uint64_t EVENTS_MAX_DEFAULT = 20 * 1000 * 1000;
static const uint64_t BYTES_MAX = 1ULL << 30;
static const double NS_PER_SECOND = 1e9;

enum { BLOCK_ALIGN = 64 };

/* --- whether it makes sense ----------------------------------------------------------------------- */

enum {
	REPLAY_THREADS_MAX = 1 << 16,
	REPLAY_BLOBS_MAX = 1 << 24,
	REPLAY_BATCH_MAX = 1 << 24,
	REPLAY_SLOTS_MAX = 1 << 20,
	REPLAY_BATCHES_MAX = 1 << 30,
};

static int replay_refuse(struct error *err, const char *what, double value)
{
	return error_set(err, -EINVAL, "cannot replay with %s = %g", what, value);
}

static int replay_check_counts(const struct pipeline_shape *shape, struct error *err)
{
	const struct {
		const char *what;
		uint64_t value, most;
	} counts[] = {
		{"reader threads", shape->reader_threads, REPLAY_THREADS_MAX},
		{"files in flight a reader", shape->read_depth, REPLAY_BLOBS_MAX},
		{"blobs", shape->blobs, REPLAY_BLOBS_MAX},
		{"decode workers", shape->decode_workers, REPLAY_THREADS_MAX},
		{"samples a batch", shape->batch_size, REPLAY_BATCH_MAX},
		{"slots", shape->slots, REPLAY_SLOTS_MAX},
	};
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		if (counts[i].value < 1 || counts[i].value > counts[i].most)
			return replay_refuse(err, counts[i].what, (double)counts[i].value);
	if (shape->step_threads > REPLAY_THREADS_MAX)
		return replay_refuse(err, "threads of the step", shape->step_threads);
	if (shape->devices > DEVICES_MAX)
		return replay_refuse(err, "devices", shape->devices);
	if (shape->devices > 1 && shape->step_threads > 0)
		return replay_refuse(err, "several devices that compute on cores, threads of each",
			shape->step_threads);
	return 0;
}

static int replay_check_numbers(const struct replay_model *model, struct error *err)
{
	const struct {
		const char *what;
		double value;
	} numbers[] = {
		{"threads outside", model->outside},
		{"contention", model->contention},
		{"a time slice", model->slice_ns},
		{"a visit's time", model->visit_ns},
		{"a wake-up's time", model->wake_ns},
		{"the lock's share off the cores", model->lock_off_cores},
		{"the quota", model->quota},
		{"samples a request", model->request_samples},
	};
	if (!(model->cores > 0))
		return replay_refuse(err, "cores", model->cores);
	if (model->lock_off_cores > 1)
		return replay_refuse(err, "the lock's share off the cores", model->lock_off_cores);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (!(numbers[i].value >= 0) || !isfinite(numbers[i].value))
			return replay_refuse(err, numbers[i].what, numbers[i].value);
	for (unsigned i = 0; model->worker_factor && i < model->shape.decode_workers; i++)
		if (!(model->worker_factor[i] > 0) || !isfinite(model->worker_factor[i]))
			return replay_refuse(err, "a factor on a worker's time",
				(double)model->worker_factor[i]);
	for (unsigned i = 0; model->device_factor && i < model->shape.devices; i++)
		if (!(model->device_factor[i] > 0) || !isfinite(model->device_factor[i]))
			return replay_refuse(err, "a factor on a device's time",
				(double)model->device_factor[i]);
	return 0;
}

/* Sums to *total ns what is not nothing. */
static int replay_check_series(
	const struct replay_model *model, enum replay_cost cost, double *total, struct error *err)
{
	const struct replay_series *series = &model->series[cost];
	const double scale = model->scale[cost];
	if (!(scale >= 0) || !isfinite(scale))
		return error_set(err, -EINVAL, "cannot replay with %s/%s scaled by %g",
			replay_cost_stage(cost), replay_cost_resource(cost), scale);
	for (size_t i = 0; i < series->count; i++) {
		if (!(series->ns[i] >= 0) || !isfinite(series->ns[i]))
			return error_set(err, -EINVAL,
				"cannot replay with %s/%s of %g ns (entry %zu)",
				replay_cost_stage(cost), replay_cost_resource(cost),
				(double)series->ns[i], i);
		*total += (double)series->ns[i] * scale;
	}
	return 0;
}

static int replay_check(
	const struct replay_model *model, const struct replay_options *options, struct error *err)
{
	int code = replay_check_counts(&model->shape, err);
	if (!code)
		code = replay_check_numbers(model, err);
	double total = 0;
	for (int cost = 0; !code && cost < COSTS; cost++)
		code = replay_check_series(model, (enum replay_cost)cost, &total, err);
	if (code)
		return code;
	if (options->batches == 0 || options->batches > REPLAY_BATCHES_MAX ||
		options->warmup_batches > REPLAY_BATCHES_MAX)
		return replay_refuse(err, "batches", (double)options->batches);
	if (total <= 0)
		return error_set(err, -EINVAL, "cannot replay what takes no time at all");
	return 0;
}

/* --- memory -------------------------------------------------------------------------------------- */

/* Hands out pieces of a zeroed block; without one it only counts. */
struct block {
	char *data;
	uint64_t used;
};

static void *piece(struct block *block, uint64_t count, uint64_t size)
{
	void *const at = block->data ? block->data + block->used : NULL;
	block->used += (count * size + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
	return at;
}

static uint32_t devices_of(const struct pipeline_shape *shape)
{
	return shape->devices > 1 ? shape->devices : 1;
}

/* Batches of an epoch that workers start anew for, where some end in what is replayed; 0: none do. */
static uint64_t epoch_batches_of(
	const struct pipeline_shape *shape, const struct replay_options *options)
{
	const uint64_t batches = shape->epoch_samples / shape->batch_size;
	const uint64_t whole = batches - batches % devices_of(shape);
	return shape->epochs_apart && whole > 0 && whole <= options->batches ? whole : 0;
}

static uint32_t reader_takes_of(const struct pipeline_shape *shape)
{
	return shape->reader_takes > shape->read_depth ? shape->reader_takes : shape->read_depth;
}

/* All batches are alike: epochs matter only where they are kept apart. */
static struct flow_options flow_options_of(
	const struct replay_model *model, const struct replay_options *options)
{
	const struct pipeline_shape *shape = &model->shape;
	const uint64_t batches = epoch_batches_of(shape, options);
	return (struct flow_options){
		.epoch_samples = (batches > 0 ? batches : 1) * shape->batch_size,
		.epochs_apart = batches > 0,
		.by_workers = shape->by_workers,
		.whole_batches = shape->whole_batches,
		.turns = shape->turns,
		.batch_size = shape->batch_size,
		.blobs = shape->by_workers ? 0 : shape->blobs,
		.slots = shape->slots,
		.lanes = devices_of(shape),
		.in_order = shape->in_order,
		.workers = shape->decode_workers,
		.read_depth = reader_takes_of(shape),
		.cores = model->cores < shape->decode_workers ? (uint32_t)ceil(model->cores) : 0,
	};
}

static void place_flow(struct replay *r, const struct replay_model *model,
	const struct replay_options *options, struct block *b)
{
	const struct flow_options law = flow_options_of(model, options);
	void *const memory = piece(b, flow_bytes(&law), 1);
	if (memory)
		flow_open(&r->flow, &law, memory);
	const uint64_t samples = model->shape.by_workers
					 ? (uint64_t)model->shape.slots * model->shape.batch_size
					 : model->shape.blobs;
	r->files.blobs = piece(b, samples, sizeof *r->files.blobs);
	r->files.batch_size = model->shape.batch_size;
}

/* Beside the workers. */
static uint32_t readers_of(const struct pipeline_shape *shape)
{
	return shape->by_workers ? 0 : shape->reader_threads;
}

/* Of the pipeline's, that can be on cores at once; a step has one at least. */
static uint32_t threads_most(const struct pipeline_shape *shape)
{
	const uint32_t step = shape->step_threads > 0 ? shape->step_threads : 1;
	return shape->decode_workers + readers_of(shape) + devices_of(shape) * (1 + step);
}

static void place_threads(struct replay *r, const struct pipeline_shape *shape, struct block *b)
{
	const uint64_t workers = shape->decode_workers;
	const uint32_t readers = readers_of(shape);
	const uint32_t takes = reader_takes_of(shape);
	const uint64_t flying = (uint64_t)readers * takes;
	r->team.workers = piece(b, workers, sizeof *r->team.workers);
	r->team.lock_queue = piece(b, workers, sizeof *r->team.lock_queue);
	r->crew.readers = piece(b, readers, sizeof *r->crew.readers);
	uint32_t *const lists = piece(b, 2 * flying, sizeof *lists);
	for (uint64_t i = 0; lists && i < readers; i++) {
		r->crew.readers[i].taken = lists + 2 * i * takes;
		r->crew.readers[i].done = r->crew.readers[i].taken + takes;
	}
	/* A reader has a timer or is being woken; a worker waits or is; so do uploads and steps; or they sync; and
	 * an epoch begins. */
	const uint64_t in_flight = flying < shape->blobs ? flying : shape->blobs;
	const uint64_t ends = 2 * (uint64_t)devices_of(shape) + 2;
	r->timed.events =
		piece(b, in_flight + 2 * readers + workers + ends, sizeof *r->timed.events);
}

/* Beyond the one that is needed, of requests that hold many samples. */
static uint32_t requests_ahead(const struct replay_model *model)
{
	return model->requests_block ? 0 : model->shape.read_depth;
}

static bool reads_requests(const struct replay_model *model)
{
	return model->request_samples > 1;
}

static void place_requests(struct replay *r, const struct replay_model *model, struct block *b)
{
	if (!reads_requests(model))
		return;
	struct replay_requests *const q = &r->crew.requests;
	q->done = piece(b, (uint64_t)requests_ahead(model) + 1, sizeof *q->done);
	q->flying = piece(b, model->shape.read_depth, sizeof *q->flying);
}

static void place_cores(struct replay *r, const struct pipeline_shape *shape, struct block *b)
{
	const uint64_t threads = threads_most(shape);
	struct replay_cores *cores = &r->cores;
	cores->running.events = piece(b, threads, sizeof *cores->running.events);
	cores->waiting.events = piece(b, threads, sizeof *cores->waiting.events);
	cores->threads = piece(b, threads, sizeof *cores->threads);
	cores->slowness_of = piece(b, threads + 1, sizeof *cores->slowness_of);
	cores->busy_of = piece(b, threads + 1, sizeof *cores->busy_of);
	r->event_of = piece(b, threads, sizeof *r->event_of);
}

static uint64_t replay_place(struct replay *r, const struct replay_model *model,
	const struct replay_options *options, struct block *b)
{
	const struct pipeline_shape *shape = &model->shape;
	place_flow(r, model, options, b);
	place_threads(r, shape, b);
	place_requests(r, model, b);
	place_cores(r, shape, b);
	return b->used;
}

/* --- the beginning ------------------------------------------------------------------------------- */

static bool has_cost(const struct replay_model *model, enum replay_cost cost)
{
	return model->series[cost].count > 0 && model->scale[cost] > 0;
}

/* Their times are those of requests, not of samples: a block has as many as there are in one of samples. */
static void set_up_requests(
	struct replay *r, const struct replay_model *model, const struct replay_options *options)
{
	struct replay_requests *const q = &r->crew.requests;
	struct replay_cursor *const costs = r->files.cursors;
	struct replay_options own = *options;
	if (!reads_requests(model))
		return;
	if (own.block > 0)
		own.block = (size_t)ceil((double)own.block / model->request_samples);
	q->samples = model->request_samples;
	q->ahead = requests_ahead(model);
	q->depth = model->shape.read_depth;
	replay_cursor_open(&q->latency, model, &own, COST_READ_LATENCY);
	replay_cursor_open(&q->device, model, &own, COST_READ_DEVICE);
	costs[COST_READ_LATENCY] = costs[COST_READ_DEVICE] = (struct replay_cursor){0};
}

static void set_up_team(struct replay_team *team, const struct replay_model *model)
{
	team->count = model->shape.decode_workers;
	team->apart = model->shape.by_workers || has_cost(model, COST_DECODE_LOCK) ||
		      has_cost(model, COST_DECODE_WAIT);
	team->waiting[THREAD_STARVED] = team->count;
	for (uint32_t i = 0; i < team->count; i++) {
		team->workers[i].factor =
			model->worker_factor ? (double)model->worker_factor[i] : 1;
		team->workers[i].state = THREAD_STARVED;
	}
}

/* Batches from one stall to the next.  A period longer than what is replayed is cut down to that, and what it costs with it. */
static uint64_t stall_batches(const struct replay_ends *ends, uint32_t every,
	const struct replay_options *options, struct replay_cursor *one,
	struct replay_cursor *other)
{
	const uint64_t asked = (uint64_t)every * ends->count;
	const uint64_t most = (options->batches + ends->count - 1) / ends->count * ends->count;
	if (asked <= most)
		return asked;
	const double shorter = (double)most / (double)asked;
	one->scale *= shorter;
	other->scale *= shorter;
	return most;
}

static void set_up_stalls(struct replay_ends *ends, const struct replay_model *model,
	const struct replay_options *options)
{
	replay_cursor_open(&ends->checkpoint_cost, model, options, COST_CHECKPOINT);
	replay_cursor_open(&ends->checkpoint_copy, model, options, COST_CHECKPOINT_COPY);
	replay_cursor_open(&ends->evaluate_input, model, options, COST_EVALUATE_INPUT);
	replay_cursor_open(&ends->evaluate_step, model, options, COST_EVALUATE_STEP);
	ends->checkpoint_async = model->shape.checkpoint_async;
	ends->checkpoint_batches = stall_batches(ends, model->shape.checkpoint_every, options,
		&ends->checkpoint_cost, &ends->checkpoint_copy);
	ends->evaluate_batches = stall_batches(ends, model->shape.evaluate_every, options,
		&ends->evaluate_input, &ends->evaluate_step);
}

static void set_up_ends(struct replay_ends *ends, const struct replay_model *model,
	const struct replay_options *options)
{
	replay_cursor_open(&ends->upload_cost, model, options, COST_UPLOAD);
	replay_cursor_open(&ends->host_cost, model, options, COST_STEP_HOST);
	replay_cursor_open(&ends->device_cost, model, options, COST_STEP_DEVICE);
	replay_cursor_open(&ends->sync_cost, model, options, COST_SYNC);
	ends->count = devices_of(&model->shape);
	ends->syncs = ends->count > 1 || model->shape.ranks > 1;
	set_up_stalls(ends, model, options);
	replay_cursor_open(&ends->startup_cost, model, options, COST_DECODE_STARTUP);
	ends->epoch_batches = epoch_batches_of(&model->shape, options);
	ends->epochs = 1;
	for (uint32_t i = 0; i < ends->count; i++) {
		ends->devices[i].factor =
			model->device_factor ? (double)model->device_factor[i] : 1;
		ends->devices[i].held = FLOW_NONE;
		ends->devices[i].staging.places = model->shape.staging_slots;
	}
	ends->staging = model->shape.staging_slots;
	ends->on_cores = model->shape.step_threads > 0;
	ends->copies_off_cores = model->copies_off_cores;
	ends->step_threads = ends->on_cores ? model->shape.step_threads : 1;
}

/* Threads on the cores are numbered kind by kind. */
static void number_threads(struct replay *r, const struct pipeline_shape *shape)
{
	const uint32_t counts[REPLAY_COMPUTING_KINDS] = {
		[EVENT_STEP] = r->ends.step_threads * r->ends.count,
		[EVENT_UPLOAD] = r->ends.count,
		[EVENT_WORKER] = shape->decode_workers,
		[EVENT_READER] = readers_of(shape),
	};
	uint32_t next = 0;
	for (int kind = 0; kind < REPLAY_COMPUTING_KINDS; kind++) {
		r->first_thread[kind] = next;
		for (uint32_t i = 0; i < counts[kind]; i++)
			r->event_of[next++] = replay_event_id((enum replay_event_kind)kind,
				kind == EVENT_STEP ? i / r->ends.step_threads : i);
	}
}

static void set_up_cores(struct replay_cores *cores, const struct replay_model *model)
{
	const bool sliced = model->slice_ns > 0 && model->cores < REPLAY_NOBODY;
	cores->slice_ns = sliced ? model->slice_ns : 0;
	cores->places = sliced ? (uint32_t)ceil(model->cores) : REPLAY_NOBODY;
	cores->going_on = REPLAY_NOBODY;
	const uint32_t most = threads_most(&model->shape);
	for (uint32_t i = 0; i < most; i++)
		cores->threads[i].slice_end = HUGE_VAL;
	for (uint32_t n = 0; n <= most; n++)
		replay_cores_rate(model->cores, model->quota, model->outside, model->contention,
			cores->places, n, &cores->slowness_of[n], &cores->busy_of[n]);
	replay_cores_load(cores);
}

static void set_up(
	struct replay *r, const struct replay_model *model, const struct replay_options *options)
{
	for (int cost = 0; cost < SAMPLE_COSTS; cost++)
		replay_cursor_open(&r->files.cursors[cost], model, options, (enum replay_cost)cost);
	set_up_requests(r, model, options);
	set_up_team(&r->team, model);
	replay_cursor_open(&r->team.batch_cost, model, options, COST_DECODE_BATCH);
	r->crew.count = readers_of(&model->shape);
	r->crew.depth = reader_takes_of(&model->shape);
	r->crew.apart = has_cost(model, COST_READ_LATENCY) || has_cost(model, COST_READ_DEVICE);
	set_up_ends(&r->ends, model, options);
	number_threads(r, &model->shape);
	set_up_cores(&r->cores, model);
	r->visit_ns = model->visit_ns;
	r->wake_ns = model->wake_ns;
	r->lock_off_cores = model->lock_off_cores;
	r->prefetch_depth = model->shape.prefetch_depth;
	r->events_max = options->events_max > 0 ? options->events_max : EVENTS_MAX_DEFAULT;
}

/* --- the end ------------------------------------------------------------------------------------- */

/* ns that the reading device has worked by now; it gives its time in one piece from submission on. */
static double link_worked(const struct replay *r)
{
	const double ahead = r->crew.link_free - r->now;
	return r->crew.link_given - (ahead > 0 ? ahead : 0);
}

static void fill_shares(const struct replay *r, double ns, struct replay_result *out)
{
	const bool by_workers = r->flow.options.by_workers;
	const double workers = ns * r->team.count;
	const double readers = by_workers ? workers : ns * r->crew.count;
	const double devices = ns * r->ends.count;
	const double *sum = r->integral;
	/* A worker that reads for itself makes nothing meanwhile, and the other way around. */
	const double idle = sum[LEVEL_DECODE_STARVED];
	const double reading = sum[LEVEL_READING];
	const double unread = by_workers ? workers - reading - idle : sum[LEVEL_READ_BLOCKED];
	const double waits[REPLAY_STAGES][2] = {
		[REPLAY_READ] = {by_workers ? idle / workers : 0, unread / readers},
		[REPLAY_DECODE] = {(idle + reading) / workers, sum[LEVEL_DECODE_BLOCKED] / workers},
		[REPLAY_UPLOAD] = {sum[LEVEL_UPLOAD_STARVED] / devices,
			sum[LEVEL_UPLOAD_BLOCKED] / devices},
		[REPLAY_STEP] = {sum[LEVEL_STEP_STARVED] / devices,
			sum[LEVEL_STEP_BLOCKED] / devices},
		[REPLAY_SYNC] = {1 - sum[LEVEL_SYNC_BUSY] / ns, 0},
		[REPLAY_CHECKPOINT] = {1 - fmin(sum[LEVEL_CHECKPOINT_BUSY] / ns, 1), 0},
		[REPLAY_EVALUATE] = {1 - fmin(sum[LEVEL_EVALUATE_BUSY] / ns, 1), 0},
	};
	for (int stage = 0; stage < REPLAY_STAGES; stage++) {
		if ((stage == REPLAY_UPLOAD && r->ends.staging == 0) ||
			(stage == REPLAY_SYNC && r->ends.count == 1) ||
			(stage == REPLAY_CHECKPOINT && r->ends.checkpoint_batches == 0) ||
			(stage == REPLAY_EVALUATE && r->ends.evaluate_batches == 0))
			continue;
		out->share[stage][THREAD_STARVED] = waits[stage][0];
		out->share[stage][THREAD_BLOCKED] = waits[stage][1];
		out->share[stage][THREAD_WORKING] = 1 - waits[stage][0] - waits[stage][1];
	}
}

/* ns that workers start in, for epochs that do not end in what was replayed. */
static double starts_beside(
	const struct replay *r, const struct replay_model *model, uint64_t samples)
{
	const struct pipeline_shape *shape = &model->shape;
	const struct replay_series *startup = &model->series[COST_DECODE_STARTUP];
	if (!shape->epochs_apart || r->ends.epoch_batches > 0 || startup->count == 0)
		return 0;
	return (double)startup->ns[0] * model->scale[COST_DECODE_STARTUP] * (double)samples /
	       (double)shape->epoch_samples;
}

static void replay_fill(const struct replay *r, const struct replay_model *model, double ns,
	double link_worked_before, struct replay_result *out)
{
	const double *sum = r->integral;
	out->samples = out->batches * model->shape.batch_size;
	out->seconds = (ns + starts_beside(r, model, out->samples)) / NS_PER_SECOND;
	out->throughput = (double)out->samples / out->seconds;
	out->events = r->events;
	fill_shares(r, ns, out);
	out->core_utilisation = isinf(model->cores) ? 0 : sum[LEVEL_CORES] / ns / model->cores;
	out->lock_utilisation = sum[LEVEL_LOCK] / ns;
	out->device_utilisation = (link_worked(r) - link_worked_before) / ns;
	out->step_utilisation = sum[LEVEL_STEP_BUSY] / ns / r->ends.count;
	out->samples_waiting = sum[LEVEL_SAMPLES] / ns;
	out->batches_waiting = sum[LEVEL_BATCHES] / ns;
	out->order_wait_share = sum[LEVEL_ORDER_WAIT] / ns;
}

/* Several devices end their steps together; and what comes again and again, stalls and epochs that are kept apart, in whole
 * periods of the longest. */
static uint64_t whole_rounds(const struct replay *r, uint64_t batches)
{
	const struct replay_ends *ends = &r->ends;
	uint64_t period = ends->epoch_batches > ends->checkpoint_batches ? ends->epoch_batches
									 : ends->checkpoint_batches;
	period = period > ends->evaluate_batches ? period : ends->evaluate_batches;
	const uint64_t whole = period > 0 ? period : ends->count;
	return (batches + whole - 1) / whole * whole;
}

static atomic_uint_fast64_t samples_done;

uint64_t replay_samples_done(void)
{
	return atomic_load(&samples_done);
}

static int refuse_replay(const struct replay *r, int code, uint64_t batches, struct error *err)
{
	if (code == -E2BIG)
		return error_set(err, code, "a replay of %llu batches takes more than %llu events",
			(unsigned long long)batches, (unsigned long long)r->events_max);
	return error_set(err, code, "the replayed pipeline stands still");
}

static int replay_run_line(struct replay *r, const struct replay_model *model,
	const struct replay_options *options, struct replay_result *out, struct error *err)
{
	const uint64_t warmup = whole_rounds(r, options->warmup_batches);
	const uint64_t batches = whole_rounds(r, options->batches);
	replay_start(r);
	int code = replay_until(r, warmup);
	const double begin = r->now;
	const double worked = link_worked(r);
	for (int level = 0; level < LEVELS; level++)
		r->integral[level] = 0;
	if (!code)
		code = replay_until(r, warmup + batches);
	atomic_fetch_add(&samples_done, (warmup + batches) * model->shape.batch_size);
	if (code)
		return refuse_replay(r, code, options->warmup_batches + options->batches, err);
	if (r->now <= begin)
		return error_set(err, -EINVAL, "cannot replay what takes no time at all");
	out->batches = batches;
	replay_fill(r, model, r->now - begin, worked, out);
	return 0;
}

/* Sets up what replay_close releases. */
static int replay_open(struct replay *r, void **memory, const struct replay_model *model,
	const struct replay_options *options, struct error *err)
{
	struct block block = {0};
	const int code = replay_check(model, options, err);
	if (code)
		return code;
	const uint64_t bytes = replay_place(r, model, options, &block);
	if (bytes > BYTES_MAX)
		return error_set(err, -EINVAL, "too large to replay: %llu MiB",
			(unsigned long long)(bytes >> 20));
	block = (struct block){.data = calloc(1, bytes)};
	if (!block.data)
		return error_set(err, -ENOMEM, "out of memory for a replay");
	(void)replay_place(r, model, options, &block);
	set_up(r, model, options);
	*memory = block.data;
	return 0;
}

int replay_run(const struct replay_model *model, const struct replay_options *options,
	struct replay_result *result, struct error *err)
{
	*result = (struct replay_result){0};
	struct replay r = {0};
	void *memory = NULL;
	int code = replay_open(&r, &memory, model, options, err);
	if (!code)
		code = replay_run_line(&r, model, options, result, err);
	free(memory);
	return code;
}

/* --- round by round ------------------------------------------------------------------------------ */

struct replay_rounds {
	struct replay line;
	void *memory;
	uint32_t batch_size;
};

int replay_rounds_open(struct replay_rounds **out, const struct replay_model *model,
	const struct replay_options *options, struct error *err)
{
	struct replay_rounds *const rounds = calloc(1, sizeof *rounds);
	*out = NULL;
	if (!rounds)
		return error_set(err, -ENOMEM, "out of memory for a replay");
	const int code = replay_open(&rounds->line, &rounds->memory, model, options, err);
	if (code) {
		free(rounds);
		return code;
	}
	rounds->batch_size = model->shape.batch_size;
	replay_start(&rounds->line);
	*out = rounds;
	return 0;
}

int replay_rounds_next(
	struct replay_rounds *rounds, double from_ns, double *ready_ns, struct error *err)
{
	struct replay *const r = &rounds->line;
	if (r->ends.batches > 0)
		replay_hold(r, from_ns);
	const int code = replay_until(r, r->ends.batches + r->ends.count);
	atomic_fetch_add(&samples_done, (uint64_t)r->ends.count * rounds->batch_size);
	*ready_ns = r->now;
	return code ? refuse_replay(r, code, r->ends.batches, err) : 0;
}

void replay_rounds_close(struct replay_rounds *rounds)
{
	if (rounds)
		free(rounds->memory);
	free(rounds);
}
