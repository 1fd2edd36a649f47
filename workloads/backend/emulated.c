/* A device that is only a clock: a step ends when the published time of that model on that device
 * has passed.  Utilisation counts the nominal time, never the measured sleep.  Devices that train
 * together meet at a barrier that carries the latest time: rounds are numbered, and the result of one
 * stays until the one after the next is complete, when everybody has read it. */
#include "workloads/backend/emulated.h"

#include "harness/base/clock.h"
#include "harness/base/rng.h"
#include "harness/base/units.h"
#include "harness/config/step_times.h"
#include "workloads/backend/backend.h"
#include "workloads/model/emulated_steps.h"
#include "workloads/model/model.h"
#include "workloads/ranks/gradients.h"
#include "workloads/ranks/ranks.h"
#include "workloads/sample/sample.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>

/* --- the clock of a device -------------------------------------------------------------------- */

enum {
	SLICE_NS = 100 * 1000 * 1000, /* between looks at the stop flag */
	APPROACH_NS = 300 * 1000,     /* the last sleep: the longer it is, the later it ends */
	LEARN_UP = 2,                 /* share of an excess that is added */
	LEARN_DOWN = 64,              /* share of a surplus that is given up */
	LEARN_SPARE_NS = 3000,        /* aim above the lateness itself */
};

static uint64_t deadline_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t deadline_later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t deadline_clamp(uint64_t value, uint64_t low, uint64_t high)
{
	return value < low ? low : deadline_least(value, high);
}

uint64_t deadline_start(const struct deadline *deadline, uint64_t now_ns, uint64_t nominal_ns)
{
	if (deadline->returned_ns == 0 || now_ns < deadline->returned_ns)
		return now_ns;
	const uint64_t handover = now_ns - deadline->returned_ns;
	if (handover > deadline_least(deadline->oversleep_ns, DEADLINE_HANDOVER_NS))
		return now_ns;
	return now_ns - deadline_least(deadline->oversleep_ns, nominal_ns);
}

uint64_t deadline_done(struct deadline *deadline, uint64_t deadline_ns, uint64_t now_ns)
{
	deadline->returned_ns = now_ns;
	deadline->oversleep_ns = now_ns > deadline_ns ? now_ns - deadline_ns : 0;
	return deadline->oversleep_ns;
}

void deadline_forget(struct deadline *deadline)
{
	deadline->returned_ns = 0;
	deadline->oversleep_ns = 0;
}

uint64_t deadline_margin(const struct deadline *deadline, uint64_t nominal_ns)
{
	const uint64_t margin =
		deadline_clamp(deadline->margin_ns, DEADLINE_MARGIN_MIN_NS, DEADLINE_MARGIN_MAX_NS);
	return deadline_least(margin, nominal_ns / DEADLINE_MARGIN_SHARE);
}

void deadline_learn(struct deadline *deadline, uint64_t lateness_ns)
{
	const uint64_t wanted = lateness_ns + LEARN_SPARE_NS;
	if (wanted > deadline->margin_ns)
		deadline->margin_ns += (wanted - deadline->margin_ns) / LEARN_UP;
	else
		deadline->margin_ns -= (deadline->margin_ns - wanted) / LEARN_DOWN;
	deadline->margin_ns =
		deadline_clamp(deadline->margin_ns, DEADLINE_MARGIN_MIN_NS, DEADLINE_MARGIN_MAX_NS);
}

static bool emulated_stopped(const atomic_bool *stop)
{
	return stop && atomic_load_explicit(stop, memory_order_relaxed);
}

/* Sleeps until wake_ns, or less long: *stop (may be NULL) is looked at every 100 ms.  The time at the end. */
static uint64_t deadline_sleep(uint64_t wake_ns, const atomic_bool *stop)
{
	uint64_t now = clock_now_ns();
	while (now < wake_ns && !emulated_stopped(stop)) {
		clock_sleep_until_ns(deadline_least(wake_ns, now + SLICE_NS));
		now = clock_now_ns();
	}
	return now;
}

/* Returns at deadline_ns or as soon as possible after it, never before, with the time it then is;
 * or early, within 100 ms, when *stop becomes true (may be NULL). */
static uint64_t deadline_wait(struct deadline *deadline, uint64_t deadline_ns, uint64_t nominal_ns,
	const atomic_bool *stop)
{
	uint64_t now = clock_now_ns();
	const uint64_t wake_ns = deadline_ns - deadline_margin(deadline, nominal_ns);
	if (now < wake_ns) {
		/* A core that slept for long is in a deeper idle state: wake it early once, so that
		 * the lateness that matters is that of a short sleep, however long the step is. */
		if (now + 2 * APPROACH_NS < wake_ns)
			(void)deadline_sleep(wake_ns - APPROACH_NS, stop);
		now = deadline_sleep(wake_ns, stop);
		if (now < wake_ns)
			return now;
		deadline_learn(deadline, now - wake_ns);
	}
	while (now < deadline_ns) {
		__builtin_ia32_pause();
		now = clock_now_ns();
	}
	return now;
}

/* --- where devices meet ----------------------------------------------------------------------- */

enum { LOOK_NS = 20 * 1000 * 1000 /* between looks at the stop flag */ };

struct emulated_group {
	pthread_mutex_t lock;
	pthread_cond_t complete;
	unsigned count, arrived;
	uint64_t round;
	uint64_t latest_ns, longest_ns;      /* of those who have arrived */
	struct emulated_exchange results[2]; /* by round % 2 */
};

int emulated_group_open(struct emulated_group **out, unsigned count)
{
	struct emulated_group *group = calloc(1, sizeof *group);
	pthread_condattr_t attributes;
	*out = group;
	if (!group)
		return -ENOMEM;
	group->count = count;
	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&group->complete, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	(void)pthread_mutex_init(&group->lock, NULL);
	return 0;
}

void emulated_group_close(void *own)
{
	struct emulated_group *group = own;
	if (!group)
		return;
	(void)pthread_mutex_destroy(&group->lock);
	(void)pthread_cond_destroy(&group->complete);
	free(group);
}

/* The lock is held.  True: the round is complete. */
static bool emulated_group_await_round(struct emulated_group *group, uint64_t round,
	uint64_t computed_ns, const atomic_bool *stop, const struct group_watch *watch)
{
	while (group->round == round && !emulated_stopped(stop)) {
		const uint64_t now = clock_now_ns();
		uint64_t until = now + LOOK_NS;
		if (watch && now >= computed_ns) {
			watch->enter(watch->context, GROUP_WAITS, computed_ns);
			watch = NULL;
		} else if (watch && computed_ns < until) {
			until = computed_ns;
		}
		const struct timespec deadline = {
			.tv_sec = (time_t)(until / NS_PER_S),
			.tv_nsec = (long)(until % NS_PER_S),
		};
		(void)pthread_cond_timedwait(&group->complete, &group->lock, &deadline);
	}
	return group->round != round;
}

static void emulated_group_complete_round(struct emulated_group *group)
{
	group->results[group->round % 2] = (struct emulated_exchange){
		.begin_ns = group->latest_ns,
		.end_ns = group->latest_ns + group->longest_ns,
	};
	group->arrived = 0;
	group->latest_ns = 0;
	group->longest_ns = 0;
	group->round++;
	(void)pthread_cond_broadcast(&group->complete);
}

bool emulated_group_meet(struct emulated_group *group, uint64_t computed_ns, uint64_t exchange_ns,
	const atomic_bool *stop, const struct group_watch *watch, struct emulated_exchange *out)
{
	(void)pthread_mutex_lock(&group->lock);
	const uint64_t round = group->round;
	group->latest_ns = deadline_later(computed_ns, group->latest_ns);
	group->longest_ns = deadline_later(exchange_ns, group->longest_ns);
	if (++group->arrived == group->count)
		emulated_group_complete_round(group);
	const bool complete = emulated_group_await_round(group, round, computed_ns, stop, watch);
	*out = group->results[round % 2];
	(void)pthread_mutex_unlock(&group->lock);
	return complete;
}

/* --- the backend ------------------------------------------------------------------------------ */

/* Keeps the jitter apart from other uses of run.seed. */
#define JITTER_STREAM 0x6a69747465720000ULL

enum { TIMER_SLACK_NS = 1 };

/* With step.time set, step.device and step.model may have this name: nothing is published of them.
 */
static const char backend_custom_name[] = "custom";

struct emulated {
	struct backend backend;
	struct deadline deadline;
	struct step_times times; /* recorded ones; count 0: none */
	struct step_walk walk;
	double exchange_ns;  /* of gradients; 0: alone */
	double jitter_sigma; /* of ln(step time); 0: none */
	uint64_t seed;
	int timer_slack_ns; /* the thread's own, to be put back */
};

static int emulated_refuse_device(const char *word, struct error *err)
{
	const char *names[BACKEND_NAMES_MAX];
	size_t count = 0;
	for (size_t i = 0; i < emulated_step_count; i++)
		count = backend_add_name(names, count, BACKEND_NAMES_MAX, emulated_steps[i].device);
	struct error refusal;
	const int code = backend_refuse_name(&refusal, "device", word, names, count);
	return error_set(err, code,
		"%.300s; or emulate any device by its step times: step.time = 106ms@64,61ms@32",
		refusal.text);
}

static int emulated_refuse_model(const char *word, struct error *err)
{
	const char *names[BACKEND_NAMES_MAX];
	size_t count = 0;
	for (size_t i = 0; i < emulated_step_count; i++)
		count = backend_add_name(names, count, BACKEND_NAMES_MAX, emulated_steps[i].model);
	for (const struct model *const *model = model_list; *model; model++)
		count = backend_add_name(names, count, BACKEND_NAMES_MAX, (*model)->name);
	return backend_refuse_name(err, "model", word, names, count);
}

/* "NVIDIA A100-SXM4-80GB" is a100; a slice of a device (MIG) is not in the table. */
static bool emulated_is_named(const char *full, const char *device)
{
	bool named = false;
	for (const char *at = full; *at; at += strspn(at, " -")) {
		const size_t length = strcspn(at, " -");
		if (length == strlen("MIG") && strncmp(at, "MIG", length) == 0)
			return false;
		named = named || (length == strlen(device) && strncasecmp(at, device, length) == 0);
		at += length;
	}
	return named;
}

bool emulated_reference(const char *device, const struct config *config, char *out, size_t room)
{
	const char *model = config_text(config, KEY_STEP_MODEL);
	char time[UNITS_BYTES];
	for (size_t i = 0; i < emulated_step_count; i++) {
		const struct emulated_step *step = &emulated_steps[i];
		if (strcmp(step->model, model) != 0 || !emulated_is_named(device, step->device))
			continue;
		(void)snprintf(out, room,
			"published %s, %s: %s per batch of %u, %.0f samples/s (not measured here)",
			step->device, model,
			units_format_duration(step->seconds * (double)NS_PER_S, time), step->batch,
			step->batch / step->seconds);
		return true;
	}
	return false;
}

static int emulated_refuse_pair(const char *device, const char *model, struct error *err)
{
	char others[ERROR_TEXT_BYTES / 4] = "";
	for (size_t i = 0, at = 0; i < emulated_step_count && at < sizeof others; i++)
		if (strcmp(emulated_steps[i].device, device) == 0)
			at += (size_t)snprintf(
				others + at, sizeof others - at, " %s", emulated_steps[i].model);
	return error_set(err, -EINVAL,
		"step.model = %s: no step time is published for it on %s; set step.time = 106ms@64,61ms@32, or use one of:%s",
		model, device, others);
}

/* Keys that change a real device's step but not an emulated one.  The first that is set; KEY_COUNT: none. */
enum key_id emulated_ignores(const struct config *config)
{
	if (config_integer(config, KEY_STEP_PRECISION) != STEP_PRECISION_AUTO)
		return KEY_STEP_PRECISION;
	if (config_integer(config, KEY_STEP_ACCUMULATE) > 1)
		return KEY_STEP_ACCUMULATE;
	if (config_on(config, KEY_STEP_GRAPH))
		return KEY_STEP_GRAPH;
	if (config_integer(config, KEY_STEP_STATISTICS) > 0)
		return KEY_STEP_STATISTICS;
	return config_integer(config, KEY_STEP_STREAMS) > 1 ? KEY_STEP_STREAMS : KEY_COUNT;
}

static int emulated_validate(const struct config *config, struct error *err)
{
	const char *device = config_text(config, KEY_STEP_DEVICE);
	const char *model = config_text(config, KEY_STEP_MODEL);
	const bool timed = config_sets_step_time(config);
	const enum key_id ignored = emulated_ignores(config);
	if (ignored != KEY_COUNT && config_integer(config, KEY_STEP_BACKEND) != STEP_BACKEND_AUTO)
		return error_set(err, -EINVAL,
			"step.%s has no effect on an emulated step; remove it, or set step.backend = cuda",
			config_keys[ignored].name);
	const bool custom = timed && strcmp(model, backend_custom_name) == 0;
	if (!timed && !emulated_step_find(device, NULL))
		return emulated_refuse_device(device, err);
	if (!custom && !emulated_step_find(NULL, model) && !model_find(model))
		return emulated_refuse_model(model, err);
	if (!timed && !emulated_step_find(device, model))
		return emulated_refuse_pair(device, model, err);
	if (timed && !(config_step_time(config, config_real(config, KEY_BATCH_SIZE)) >= 1))
		return error_set(err, -EINVAL,
			"step.time = %s: these points give a negative time at batch.size = %lld; add a point near that size",
			config_text(config, KEY_STEP_TIME),
			(long long)config_integer(config, KEY_BATCH_SIZE));
	/* A bandwidth says nothing of gradients of unknown size. */
	if (config_integer(config, KEY_STEP_DEVICES) > 1 &&
		config_real(config, KEY_SYNC_BANDWIDTH) > 0 && !(model_gradient_bytes(config) > 0))
		return error_set(err, -EINVAL,
			"sync.bandwidth: the size of the gradients of model '%s' is unknown; set sync.latency alone, or use a model of `mlbench list models`",
			model);
	return 0;
}

/* "from 512 recorded step times"; else of which device and model they are. */
static void emulated_describe_times(
	const struct config *config, const struct step_times *times, char *out, size_t room)
{
	char correlation[32] = "";
	if (times->count == 0) {
		(void)snprintf(out, room, "%.24s, %.24s", config_text(config, KEY_STEP_DEVICE),
			config_text(config, KEY_STEP_MODEL));
		return;
	}
	if (times->correlation != 0)
		(void)snprintf(correlation, sizeof correlation, ", correlation %s",
			UNITS_PLAIN(times->correlation, 3));
	(void)snprintf(out, room, "from %zu %srecorded step times%s", times->count,
		times->is_series ? "" : "quantiles of ", correlation);
}

static void emulated_describe(struct emulated *emulated, const struct emulated_step *published)
{
	struct backend *backend = &emulated->backend;
	const struct config *config = backend->config;
	char step[UNITS_BYTES], original[UNITS_BYTES];
	char time[2 * UNITS_BYTES + 64], jitter[64] = "", devices[UNITS_BYTES + 64] = "";
	char recorded[96], whole[512];
	units_format_duration(backend->nominal_step_ns, step);
	emulated_describe_times(config, &emulated->times, recorded, sizeof recorded);
	const char *line = config_text(config, KEY_STEP_TIME);
	if (!published && config_integer(config, KEY_STEP_TIME) == 0)
		(void)snprintf(time, sizeof time, "%s per batch of %u on average", step,
			backend->batch_size);
	else if (!published)
		(void)snprintf(time, sizeof time, "%s per batch of %u (step.time%s%.48s)", step,
			backend->batch_size, *line ? ": " : "", line);
	else if (published->batch == backend->batch_size)
		(void)snprintf(time, sizeof time, "%s per batch of %u", step, backend->batch_size);
	else
		(void)snprintf(time, sizeof time,
			"%s per batch of %u, scaled to %s per batch of %u",
			units_format_duration(published->seconds * (double)NS_PER_S, original),
			published->batch, step, backend->batch_size);
	if (emulated->jitter_sigma > 0)
		(void)snprintf(
			jitter, sizeof jitter, ", jitter %g", config_real(config, KEY_STEP_JITTER));
	if (backend->device_count > 1)
		(void)snprintf(devices, sizeof devices, ", %u devices, %s to exchange gradients",
			backend->device_count, units_format_duration(emulated->exchange_ns, step));
	(void)snprintf(whole, sizeof whole, "emulated %s: %s%s%s", recorded, time, jitter, devices);
	(void)snprintf(backend->description, sizeof backend->description, "%.255s", whole);
}

static int emulated_open(struct backend *backend, struct error *err)
{
	struct emulated *emulated = (struct emulated *)backend;
	const struct config *config = backend->config;
	const char *device = config_text(config, KEY_STEP_DEVICE);
	const char *name = config_text(config, KEY_STEP_MODEL);
	const bool own = config_step_time(config, backend->batch_size) > 0; /* the user's */
	const struct emulated_step *published = own ? NULL : emulated_step_find(device, name);
	if (!own && !published)
		return emulated_refuse_pair(device, name, err);
	backend->nominal_step_ns = emulated_step_ns(config, backend->batch_size);
	const struct model *model = model_find(name);
	const struct model_shape shape = {
		backend->sample_elements, backend->class_count, sample_tokens_of(config)};
	backend->flops_per_sample = model ? model_training_flops_at(model, shape) : 0;
	const double jitter = config_real(config, KEY_STEP_JITTER);
	emulated->jitter_sigma = sqrt(log1p(jitter * jitter));
	emulated->seed = (uint64_t)config_integer(config, KEY_RUN_SEED);
	/* Ranks have jitters of their own. */
	if (backend->gradients)
		emulated->seed =
			rng_mix(emulated->seed, backend->gradients->options.ranks->world.rank);
	emulated->exchange_ns = backend->device_count > 1 ? emulated_exchange_ns(config) : 0;
	backend->emulated = true;
	step_times_of(config, &emulated->times);
	if (emulated->times.count > 0)
		step_walk_begin(
			&emulated->walk, &emulated->times, emulated->seed, backend->device_index);
	emulated_describe(emulated, published);

	/* The default slack of 50 us is a delay that the learned margin could not take back. */
	emulated->timer_slack_ns = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
	(void)prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
	return 0;
}

/* Over the mean time: as recorded, a function of the steps so far.  Else log-normal with mean 1: exp(sigma z - sigma^2 / 2), whose coefficient of variation is
 * sqrt(exp(sigma^2) - 1).  A function of the seed and the batch's index alone. */
static double emulated_jitter_factor(struct emulated *emulated, uint64_t index)
{
	const double sigma = emulated->jitter_sigma;
	if (emulated->times.count > 0)
		return step_walk_next(&emulated->walk, &emulated->times) / emulated->times.mean_ns;
	if (sigma <= 0)
		return 1;
	struct rng rng;
	rng_init(&rng, emulated->seed ^ JITTER_STREAM, index);
	return exp(sigma * rng_normal(&rng) - sigma * sigma / 2);
}

/* Cut short by the end of the run. */
static int emulated_give_up(
	struct emulated *emulated, uint64_t start, uint64_t now, struct step_result *out)
{
	deadline_forget(&emulated->deadline);
	out->device_ns = now > start ? now - start : 0;
	return 0;
}

static void emulated_tell(const struct emulated *emulated, enum group_phase phase, uint64_t at_ns)
{
	const struct group_watch *watch = emulated->backend.watch;
	if (!watch)
		return;
	if (deadline_sleep(at_ns, emulated->backend.stop) >= at_ns)
		watch->enter(watch->context, phase, at_ns);
}

/* Gradients are there at computed; *end is when they are exchanged.  False: stopped. */
static bool emulated_exchange(
	struct emulated *emulated, uint64_t computed, uint64_t *end, struct step_result *out)
{
	const struct backend *backend = &emulated->backend;
	const double ns = emulated->exchange_ns * backend->exchange_slowdown;
	struct emulated_exchange met;
	if (!emulated_group_meet(backend->group->own, computed, (uint64_t)llround(ns),
		    backend->stop, backend->watch, &met))
		return false;
	if (met.begin_ns > computed)
		emulated_tell(emulated, GROUP_WAITS, computed);
	if (met.end_ns > met.begin_ns)
		emulated_tell(emulated, GROUP_EXCHANGES, met.begin_ns);
	*end = met.end_ns;
	out->sync_begin_ns = computed;
	out->sync_ns = met.end_ns - computed;
	return true;
}

/* Furthers the exchange with other ranks while the device computes, until shortly before it has. */
static int emulated_further(struct emulated *emulated, uint64_t end, struct error *err)
{
	const struct backend *const backend = &emulated->backend;
	uint64_t now = clock_now_ns();
	uint64_t due = now;
	while (now + 2 * APPROACH_NS < end && !emulated_stopped(backend->stop)) {
		const int code = gradients_further(backend->gradients, now, &due, err);
		if (code || due > end - 2 * APPROACH_NS) /* UINT64_MAX: nothing is due */
			return code;
		now = deadline_sleep(due, backend->stop);
	}
	return 0;
}

/* Computes, and exchanges gradients with other ranks meanwhile and after it. */
static int emulated_step_of_ranks(struct emulated *emulated, uint64_t start, uint64_t nominal,
	struct step_result *out, struct error *err)
{
	const struct backend *const backend = &emulated->backend;
	const struct group_watch *const watch = backend->watch;
	const uint64_t computed = start + nominal;
	gradients_begin(backend->gradients, start, computed);
	int code = emulated_further(emulated, computed, err);
	if (code)
		return code;
	const uint64_t now = deadline_wait(&emulated->deadline, computed, nominal, backend->stop);
	if (now < computed)
		return emulated_give_up(emulated, start, now, out);
	out->oversleep_ns = now - computed;
	if (watch)
		watch->enter(watch->context, GROUP_WAITS, computed);
	code = gradients_finish(backend->gradients, computed, &out->round, err);
	if (code)
		return code;
	const uint64_t end = out->round.ended_ns;
	if (watch)
		watch->enter(watch->context, GROUP_COMPUTES, end);
	deadline_forget(&emulated->deadline);
	out->sync_begin_ns = computed;
	out->sync_ns = end - computed;
	out->device_ns = end - start;
	out->begin_ns = start;
	out->end_ns = end;
	return 0;
}

static int emulated_step(struct backend *backend, const struct batch_view *batch,
	struct step_result *out, struct error *err)
{
	struct emulated *emulated = (struct emulated *)backend;
	const double share = (double)batch->size / backend->batch_size;
	const double factor = emulated_jitter_factor(emulated, batch->index) * backend->slowdown;
	const uint64_t nominal = (uint64_t)llround(backend->nominal_step_ns * share * factor);
	const uint64_t start = deadline_start(&emulated->deadline, clock_now_ns(), nominal);
	uint64_t end = start + nominal;
	if (backend->gradients)
		return emulated_step_of_ranks(emulated, start, nominal, out, err);
	if (backend->group && !emulated_exchange(emulated, end, &end, out))
		return emulated_give_up(emulated, start, clock_now_ns(), out);
	const uint64_t now = deadline_wait(&emulated->deadline, end, end - start, backend->stop);
	if (now < end)
		return emulated_give_up(emulated, start, now, out);
	if (backend->watch)
		backend->watch->enter(backend->watch->context, GROUP_COMPUTES, end);
	out->device_ns = end - start;
	out->begin_ns = start;
	out->end_ns = end;
	out->oversleep_ns = deadline_done(&emulated->deadline, end, now);
	return 0;
}

static int emulated_open_group(
	void **own, const struct config *config, unsigned count, struct error *err)
{
	(void)config;
	struct emulated_group *group;
	const int code = emulated_group_open(&group, count);
	*own = group;
	return code ? error_set_errno(err, -code, "cannot make a group of %u devices", count) : 0;
}

static void emulated_close(struct backend *backend)
{
	const struct emulated *emulated = (const struct emulated *)backend;
	if (emulated->timer_slack_ns > 0)
		(void)prctl(PR_SET_TIMERSLACK, emulated->timer_slack_ns, 0, 0, 0);
}

const struct backend_ops emulated_backend_ops = {
	.name = "emulated",
	.exchanges = true,
	.emulated = true,
	.summary = "waits for the published step time of a model on a device",
	.size = sizeof(struct emulated),
	.open = emulated_open,
	.step = emulated_step,
	.close = emulated_close,
	.validate = emulated_validate,
	.group_open = emulated_open_group,
	.group_close = emulated_group_close,
};
