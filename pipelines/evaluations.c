/* The second loader, the stalls of evaluations, and what is told of them. */
#include "pipelines/evaluations.h"

#include "harness/base/clock.h"
#include "harness/base/hash.h"
#include "harness/base/memory.h"
#include "harness/measure/span.h"
#include "pipelines/repetition.h"
#include "workloads/backend/backend.h"
#include "workloads/source/store.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the FLOPs of a training step, those of its forward pass. */
static const double FORWARD_SHARE = 1.0 / 3;

/* What was in a stall. */
struct evaluation_stall {
	uint64_t starved_ns, working_ns;
	uint64_t samples, bad;
	uint64_t checksum;
	bool done;
};

/* What the loader loads. */
struct evaluated {
	struct config config;
	const struct dataset *files;
	struct dataset
		samples; /* of files, for this configuration: the first evaluate.samples of them */
};

struct evaluations {
	struct seat seat;  /* the step's, at the loader's exchange */
	struct run *run;   /* whose evaluations they are */
	struct run *inner; /* the loader */
	struct evaluated data;
	struct measurement *unused; /* the loader's, of which nothing is told */
	struct thread_meter *meter; /* NULL: not timed */
	uint32_t every;
	uint64_t batches; /* of each */
	bool verify;
	bool computed;  /* the backend evaluates */
	double step_ns; /* of a full batch; 0: a share of what training steps take */
	struct stall_log log;
	struct evaluation_stall *stalls; /* (STALLS_MAX), those of the log; owned */
	atomic_uint_least64_t stepped;   /* batches */
};

/* --- what is loaded ---------------------------------------------------------------------------- */

/* A configuration value where it is given, else that of training. */
static int evaluated_take(struct config *to, const struct config *from, enum key_id own,
	enum key_id training, struct error *err)
{
	char text[CONFIG_VALUE_BYTES];
	if (config_integer(from, own) == 0)
		return 0;
	(void)snprintf(text, sizeof text, "%" PRId64, config_integer(from, own));
	return config_set_key(to, training, text, err);
}

/* Another store may want another engine. */
static int evaluated_set_path(struct config *to, struct error *err)
{
	char path[CONFIG_VALUE_BYTES];
	const bool local = store_find(config_text(to, KEY_DATASET_PATH))->local;
	const int length = snprintf(path, sizeof path, "%s", config_text(to, KEY_EVALUATE_PATH));
	if (length >= (int)sizeof path)
		return error_set(
			err, -EINVAL, "evaluate.path is longer than %zu bytes", sizeof path - 1);
	int code = config_set_key(to, KEY_DATASET_PATH, path, err);
	if (!code && store_find(path)->local != local)
		code = config_set_key(to, KEY_READ_ENGINE, "auto", err);
	return code;
}

/* Training's configuration with what evaluations have of their own, and nothing random. */
static int evaluated_configure(const struct config *config, struct config *out, struct error *err)
{
	static const struct {
		enum key_id key;
		const char *value;
	} sets[] = {{KEY_EVALUATE_EVERY, "0"}, {KEY_CHECKPOINT_EVERY, "0"}, {KEY_STEP_DEVICES, "1"},
		{KEY_UPLOAD_MODE, "none"}, {KEY_BATCH_DROP_LAST, "off"},
		{KEY_BATCH_ORDER, "in-order"}, {KEY_READ_ORDER, "sequential"},
		{KEY_DECODE_PERSISTENT, "on"}, {KEY_DECODE_STARTUP, "0"}, {KEY_MEASURE_EPOCHS, "0"},
		{KEY_MEASURE_DEPTHS, "off"}, {KEY_TRACE_SCHEDULE, ""}, {KEY_INJECT_LEAK, "0"},
		{KEY_INJECT_CPU_HOG, "0"}, {KEY_INJECT_MEMORY_HOG, "0"},
		{KEY_INJECT_UPLOAD_FACTOR, "1"}, {KEY_INJECT_UPLOAD_BANDWIDTH, "0"}};
	const struct sample_ops *const kind = sample_kind_of(config);
	int code = config_copy(out, config, err);
	for (size_t i = 0; i < sizeof sets / sizeof *sets && !code; i++)
		code = config_set_key(out, sets[i].key, sets[i].value, err);
	if (!code)
		code = evaluated_take(out, config, KEY_EVALUATE_BATCH_SIZE, KEY_BATCH_SIZE, err);
	if (!code)
		code = evaluated_take(out, config, KEY_EVALUATE_WORKERS, KEY_DECODE_WORKERS, err);
	if (!code && kind->settle)
		code = kind->settle(out, err);
	if (!code && *config_text(config, KEY_EVALUATE_PATH))
		code = evaluated_set_path(out, err);
	return code;
}

static void evaluated_close(struct evaluated *e)
{
	sample_cut_release(&e->samples, e->files);
	config_release(&e->config);
}

static int evaluated_open(const struct config *config, const struct dataset *training,
	struct evaluated *e, struct error *err)
{
	const size_t wanted = (size_t)config_integer(config, KEY_EVALUATE_SAMPLES);
	*e = (struct evaluated){.files = training->evaluated ? training->evaluated : training};
	int code = evaluated_configure(config, &e->config, err);
	if (!code)
		code = sample_cut_files(&e->config, e->files, &e->samples, err);
	if (!code && wanted > e->samples.count)
		code = error_set(err, -EINVAL,
			"evaluate.samples = %zu is more than the %zu samples of '%s'", wanted,
			e->samples.count, e->files->root);
	if (code)
		evaluated_close(e);
	else if (wanted > 0)
		e->samples.count = wanted;
	return code;
}

/* --- the plan ---------------------------------------------------------------------------------- */

int evaluations_plan(const struct config *config, const struct dataset *samples,
	struct pipeline_plan *plan, struct error *err)
{
	struct evaluated e;
	struct pipeline_plan inner = {0};
	if (config_integer(config, KEY_EVALUATE_EVERY) == 0)
		return 0;
	const struct backend_ops *const ops = backend_choose(config, NULL, 0, NULL);
	if (config_integer(config, KEY_EVALUATE_STEP_TIME) > 0 && ops &&
		backend_evaluates(ops, config))
		return error_set(err, -EINVAL,
			"evaluate.step_time: step.backend = %s computes the forward pass, and takes its own time: leave it out",
			ops->name);
	int code = evaluated_open(config, samples, &e, err);
	if (code)
		return code;
	code = pipeline_plan_samples(&e.config, &e.samples, &inner, err);
	if (code)
		(void)error_prefix(err, code, "evaluations");
	plan->evaluation_samples = e.samples.count;
	plan->evaluation_batch = (uint32_t)config_integer(&e.config, KEY_BATCH_SIZE);
	plan->evaluation_workers = inner.decode_workers;
	/* They step on the backend of training. */
	plan->evaluation_memory =
		inner.pool_bytes - inner.backend_bytes +
		STALLS_MAX * (sizeof(struct evaluation_stall) + sizeof(struct stall));
	evaluated_close(&e);
	return code;
}

/* --- opening and closing ----------------------------------------------------------------------- */

/* Where one of the loader's threads has failed, so has the repetition. */
static void evaluations_pass_failure(const struct evaluations *e)
{
	struct crew *const crew = &e->inner->crew;
	(void)pthread_mutex_lock(&crew->lock);
	const int code = crew->code;
	struct error err = crew->error;
	(void)pthread_mutex_unlock(&crew->lock);
	if (code)
		crew_fail(&e->run->crew, error_prefix(&err, code, "evaluation"), &err);
}

/* They were told to end, or one of them has failed. */
static void evaluations_wake_loader(void *context)
{
	const struct evaluations *const e = context;
	exchange_wake_all(&e->inner->exchange);
	if (!crew_stopping(&e->run->crew))
		evaluations_pass_failure(e);
}

static int evaluations_open_parts(struct evaluations *e, struct error *err)
{
	struct run *const inner = e->inner;
	int code = injection_open(&inner->injection, inner->config, err);
	inner->injection_is_open = true;
	if (!code)
		code = placement_open(&inner->placement, inner->config,
			&(const struct placement_threads){
				.decode = inner->plan.decode_workers,
				.read = inner->plan.reader_threads,
				.devices = 1,
				.step = 1,
			},
			err);
	if (code)
		return code;
	code = crew_open(&inner->crew, inner->plan.reader_threads + inner->plan.decode_workers,
		evaluations_wake_loader, e);
	inner->crew_is_open = code == 0;
	if (!code)
		code = bad_samples_open(&inner->bad);
	inner->bad_is_open = code == 0;
	return code ? error_set_errno(err, -code, "cannot make the loader of evaluations")
		    : run_open_loader(inner, err);
}

static int evaluations_open_loader(struct evaluations *e, struct error *err)
{
	struct run *const run = e->run;
	struct run *const inner = calloc(1, sizeof *inner);
	if (!inner)
		return error_set(err, -ENOMEM, "out of memory for evaluations");
	e->inner = inner;
	inner->config = &e->data.config;
	inner->files = inner->dataset = &e->data.samples;
	inner->m = e->unused;
	inner->backend = run->backend;
	inner->cores = run->cores;
	inner->evaluates = true;
	int code = pipeline_plan_samples(inner->config, inner->dataset, &inner->plan, err);
	if (!code)
		code = evaluations_open_parts(e, err);
	e->batches = inner->plan.batches_per_epoch;
	return code ? error_prefix(err, code, "evaluations") : 0;
}

static void evaluations_note(const struct evaluations *e, struct measurement *m)
{
	const struct run *const inner = e->inner;
	char took[64] = "a third of the time of training steps";
	if (e->step_ns > 0)
		(void)snprintf(took, sizeof took, "evaluate.step_time");
	measurement_note(m, "evaluations of %zu samples of %.100s, %s: %s%s", inner->dataset->count,
		inner->dataset->root, inner->source->ops->name,
		e->computed            ? "the forward pass is computed"
		: inner->backend->null ? "steps compute nothing"
				       : "steps are waited for, ",
		e->computed || inner->backend->null ? "" : took);
}

int evaluations_open(struct run *run, struct error *err)
{
	if (run->plan.evaluation_samples == 0)
		return 0;
	struct evaluations *const e = aligned_alloc(_Alignof(struct evaluations), sizeof *e);
	if (!e)
		return error_set(err, -ENOMEM, "out of memory for evaluations");
	*e = (struct evaluations){
		.run = run,
		.meter = run_meter(run, STAGE_EVALUATE, 0),
		.every = (uint32_t)config_integer(run->config, KEY_EVALUATE_EVERY),
		.verify = config_on(run->config, KEY_RUN_VERIFY),
		.computed = backend_evaluates(run->backend, run->config),
		.step_ns = config_real(run->config, KEY_EVALUATE_STEP_TIME),
	};
	run->evaluations = e;
	e->unused = calloc(1, sizeof *e->unused);
	e->stalls = memory_touched(STALLS_MAX, sizeof *e->stalls);
	if (!e->unused || !e->stalls || stalls_open(&e->log))
		return error_set(err, -ENOMEM, "out of memory for evaluations");
	int code = evaluated_open(run->config, run->dataset, &e->data, err);
	if (!code)
		code = evaluations_open_loader(e, err);
	if (!code)
		evaluations_note(e, run->m);
	return code;
}

void evaluations_close(struct run *run)
{
	struct evaluations *const e = run->evaluations;
	if (!e)
		return;
	if (e->inner)
		run_close(e->inner);
	evaluated_close(&e->data);
	stalls_close(&e->log);
	free(e->stalls);
	free(e->unused);
	free(e);
	run->evaluations = NULL;
}

/* --- the loader's threads ---------------------------------------------------------------------- */

int evaluations_start(struct evaluations *e, struct error *err)
{
	const int code = e ? readers_start(e->inner, err) : 0;
	return code || !e ? code : team_start(e->inner, err);
}

bool evaluations_gather(struct evaluations *e, const atomic_bool *stop)
{
	if (!e || crew_gather(&e->inner->crew, stop, NULL, NULL))
		return true;
	/* Who failed may not have come to say so, and nobody listens once all were told to end. */
	evaluations_pass_failure(e);
	return false;
}

void evaluations_wake(struct evaluations *e)
{
	if (e)
		crew_stop(&e->inner->crew);
}

bool evaluations_join(struct evaluations *e, uint64_t deadline_ns)
{
	return !e || loader_join(e->inner, deadline_ns);
}

/* --- the step's thread ------------------------------------------------------------------------- */

void evaluations_begin(struct evaluations *e, uint64_t start_ns)
{
	if (!e)
		return;
	e->log.start_ns = start_ns;
	if (e->meter) {
		service_log_start(&e->meter->service, start_ns, e->run->segment_ns);
		state_clock_start(&e->meter->clock, THREAD_STARVED, start_ns);
	}
	e->inner->injection.start_ns = start_ns;
	source_start(e->inner->source, start_ns);
	crew_start(&e->inner->crew, start_ns);
}

bool evaluations_follow(const struct evaluations *e, uint64_t step)
{
	return e && step > 0 && step % e->every == 0;
}

/* A batch that began then. */
static int evaluations_step(const struct evaluations *e, const struct evaluation_caller *caller,
	const struct slot *slot, uint64_t began_ns, struct error *err)
{
	const struct run *const inner = e->inner;
	const struct backend_ops *const ops = caller->backend->ops;
	if (e->computed) {
		const struct batch_view view = slot_view(slot, &inner->plan.sample, BATCH_ON_HOST);
		return ops->evaluate(caller->backend, &view, err);
	}
	const double full = (double)config_integer(inner->config, KEY_BATCH_SIZE);
	const double sample_ns =
		e->step_ns > 0 ? e->step_ns / full : FORWARD_SHARE * caller->sample_ns;
	injection_hold(began_ns + (uint64_t)(sample_ns * slot->size), &e->run->crew.stopping);
	return 0;
}

/* All batches of one.  False: the repetition is over, or has failed (err: why). */
static bool evaluations_step_through(struct evaluations *e, const struct evaluation_caller *caller,
	struct evaluation_stall *told, struct error *err)
{
	struct run *const inner = e->inner;
	struct slot *slot = NULL;
	uint64_t untimed_ns = 0;
	uint64_t now_ns = clock_now_ns();
	exchange_begin_epoch(&inner->exchange);
	for (uint64_t i = 0; i < e->batches; i++) {
		slot = exchange_next_batch(&inner->exchange, 0, &e->seat, slot, &untimed_ns);
		if (!slot)
			return false;
		const uint64_t began_ns = clock_now_ns();
		told->starved_ns += began_ns - now_ns;
		if (e->verify) {
			const uint64_t own =
				slot_checksum(inner->plan.kind, &inner->plan.sample, slot);
			told->checksum = hash_bytes(&own, sizeof own, told->checksum);
		}
		const int code = evaluations_step(e, caller, slot, began_ns, err);
		now_ns = clock_now_ns();
		told->working_ns += now_ns - began_ns;
		told->samples += slot->size - slot->bad;
		told->bad += slot->bad;
		atomic_fetch_add_explicit(&e->stepped, 1, memory_order_relaxed);
		if (crew_stopping(&e->run->crew))
			return false;
		if (code) {
			crew_fail(&inner->crew, code, err);
			return false;
		}
	}
	exchange_release(&inner->exchange, &e->seat, slot, &untimed_ns);
	if (told->samples > 0)
		return true;
	crew_fail(&inner->crew,
		error_set(err, -EBADMSG, "not one sample could be read and decoded"), err);
	return false;
}

static void evaluations_meter(struct evaluations *e, size_t number, uint64_t began_ns)
{
	const uint64_t ended_ns = clock_now_ns();
	const struct trace_entry item = {.number = number,
		.end_ns = ended_ns,
		.service_ns = (float)(ended_ns - began_ns),
		.host_ns = NAN};
	if (e->meter)
		span_item(e->meter, ended_ns, ended_ns - began_ns, &item);
}

bool evaluations_stall(
	struct evaluations *e, const struct evaluation_caller *caller, uint64_t *now_ns)
{
	const size_t number = e->log.count;
	struct evaluation_stall told = {0};
	struct error err = {0};
	const uint64_t shown_ns = timeline_mark();
	stalls_begin(&e->log, caller->step_meter, caller->stepped_ns);
	const uint64_t began_ns = clock_now_ns();
	if (e->meter)
		state_clock_enter(&e->meter->clock, THREAD_WORKING, began_ns);
	told.done = evaluations_step_through(e, caller, &told, &err);
	if (told.done)
		evaluations_meter(e, number, began_ns);
	if (e->meter)
		state_clock_enter(&e->meter->clock, THREAD_STARVED, clock_now_ns());
	(void)timeline_end(TIMELINE_EVALUATION, shown_ns, caller->step);
	stalls_end(&e->log, caller->step_meter, now_ns);
	if (number < STALLS_MAX)
		e->stalls[number] = told;
	return told.done;
}

/* --- what came of them ------------------------------------------------------------------------- */

uint64_t evaluations_moved(const struct evaluations *e)
{
	struct source_counts read;
	if (!e)
		return 0;
	source_read_counts(e->inner->source, &read);
	return read.files + atomic_load_explicit(&e->stepped, memory_order_relaxed);
}

const struct stall_log *evaluations_log(const struct evaluations *e)
{
	return e ? &e->log : NULL;
}

bool evaluations_failed(const struct evaluations *e)
{
	return e && e->inner->crew.code != 0;
}

const struct run *evaluations_loader(const struct evaluations *e)
{
	return e->inner;
}

static void evaluations_add(
	const struct evaluations *e, size_t number, struct evaluation_measurement *out)
{
	const struct evaluation_stall *const s = &e->stalls[number];
	const double ns = (double)(e->log.list[number].end_ns - e->log.list[number].begin_ns);
	out->count++;
	out->samples += s->samples;
	out->bad_samples += s->bad;
	out->stall_seconds += ns / (double)NS_PER_S;
	out->stall_max_ns = fmax(out->stall_max_ns, ns);
	out->starved_seconds += (double)s->starved_ns / (double)NS_PER_S;
	out->working_seconds += (double)s->working_ns / (double)NS_PER_S;
}

/* Of all evaluations: each is of the same batches. */
static void evaluations_compare(
	const struct evaluations *e, struct evaluation_measurement *out, struct measurement *m)
{
	size_t others = 0;
	for (size_t i = 0; i < stalls_kept(&e->log); i++)
		others += e->stalls[i].done && e->stalls[i].checksum != e->stalls[0].checksum;
	if (e->verify && others > 0)
		measurement_note(m,
			"run.verify: %zu evaluations had other batches than the first one", others);
	else if (e->verify && e->stalls[0].done)
		(void)snprintf(
			out->checksum, sizeof out->checksum, "%016" PRIx64, e->stalls[0].checksum);
}

static void evaluations_name_bad(const struct run *inner, struct measurement *m)
{
	char name[DATASET_NAME_BYTES];
	if (inner->bad.listed > 0)
		measurement_note(m, "bad samples in evaluations: %" PRIu64 "; the first is %s: %s",
			inner->bad.count,
			dataset_name_sample(inner->dataset, inner->bad.list[0].sample, name),
			inner->bad.list[0].reason);
}

void evaluations_fill(
	const struct run *run, uint64_t from_ns, uint64_t to_ns, struct measurement *m)
{
	const struct evaluations *const e = run->evaluations;
	if (!e)
		return;
	const struct run *const inner = e->inner;
	struct evaluation_measurement *const out = &m->evaluation[0];
	m->evaluation_count = 1;
	*out = (struct evaluation_measurement){.every = e->every,
		.batch_size = (uint32_t)config_integer(inner->config, KEY_BATCH_SIZE),
		.workers = inner->plan.decode_workers,
		.computed = e->computed,
		.samples_each = inner->dataset->count};
	(void)snprintf(out->path, sizeof out->path, "%.120s", inner->dataset->root);
	const size_t kept = stalls_kept(&e->log);
	for (size_t i = 0; i < kept; i++)
		if (e->stalls[i].done && stalls_is_in(&e->log, i, from_ns, to_ns))
			evaluations_add(e, i, out);
	out->outside = out->count == 0;
	for (size_t i = 0; i < kept && out->outside; i++)
		if (e->stalls[i].done)
			evaluations_add(e, i, out);
	evaluations_compare(e, out, m);
	evaluations_name_bad(inner, m);
	stalls_note(&e->log,
		&(const struct stalls_told){
			"evaluation", "evaluate", out->count, out->stall_max_ns, out->outside},
		to_ns - from_ns, m);
}
