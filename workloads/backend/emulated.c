/* A device that is only a clock: a step ends when the published time of that model on that device
 * has passed.  Utilisation counts the nominal time, never the measured sleep. */
#include "harness/base/clock.h"
#include "harness/base/rng.h"
#include "harness/base/units.h"
#include "workloads/backend/backends.h"
#include "workloads/backend/deadline.h"
#include "workloads/backend/emulated_group.h"
#include "workloads/model/model.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>

/* Keeps the jitter apart from other uses of run.seed. */
#define JITTER_STREAM 0x6a69747465720000ULL

enum { TIMER_SLACK_NS = 1 };

const char backend_custom_name[] = "custom";

struct emulated {
	struct backend backend;
	struct deadline deadline;
	double exchange_ns;  /* of gradients; 0: alone */
	double jitter_sigma; /* of ln(step time); 0: none */
	uint64_t seed;
	int timer_slack_ns; /* the thread's own, to be put back */
};

static bool is_device(const char *name)
{
	for (size_t i = 0; i < emulated_step_count; i++)
		if (strcmp(emulated_steps[i].device, name) == 0)
			return true;
	return false;
}

static bool is_model(const char *name)
{
	for (size_t i = 0; i < emulated_step_count; i++)
		if (strcmp(emulated_steps[i].model, name) == 0)
			return true;
	return model_find(name) != NULL;
}

static int refuse_device(const char *word, struct error *err)
{
	const char *names[BACKEND_NAMES_MAX];
	size_t count = 0;
	for (size_t i = 0; i < emulated_step_count; i++)
		count = backend_add_name(names, count, BACKEND_NAMES_MAX, emulated_steps[i].device);
	struct error refusal;
	const int code = backend_refuse_name(&refusal, "device", word, names, count);
	return error_set(err, code,
		"%.300s; a device of any name can be emulated by its own step times: step.time = 106ms@64,61ms@32",
		refusal.text);
}

static int refuse_model(const char *word, struct error *err)
{
	const char *names[BACKEND_NAMES_MAX];
	size_t count = 0;
	for (size_t i = 0; i < emulated_step_count; i++)
		count = backend_add_name(names, count, BACKEND_NAMES_MAX, emulated_steps[i].model);
	for (const struct model *const *model = model_list; *model; model++)
		count = backend_add_name(names, count, BACKEND_NAMES_MAX, (*model)->name);
	return backend_refuse_name(err, "model", word, names, count);
}

static const struct emulated_step *find_step(const char *device, const char *model)
{
	for (size_t i = 0; i < emulated_step_count; i++)
		if (strcmp(emulated_steps[i].device, device) == 0 &&
			strcmp(emulated_steps[i].model, model) == 0)
			return &emulated_steps[i];
	return NULL;
}

/* "NVIDIA A100-SXM4-80GB" is a100; a part of a device (MIG) is no device of the table. */
static bool is_named(const char *full, const char *device)
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
		if (strcmp(step->model, model) != 0 || !is_named(device, step->device))
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

static int refuse_pair(const char *device, const char *model, struct error *err)
{
	char others[ERROR_TEXT_BYTES / 4] = "";
	for (size_t i = 0, at = 0; i < emulated_step_count && at < sizeof others; i++)
		if (strcmp(emulated_steps[i].device, device) == 0)
			at += (size_t)snprintf(
				others + at, sizeof others - at, " %s", emulated_steps[i].model);
	return error_set(err, -EINVAL,
		"step.model: no published step time of '%s' on '%s'; give its own (step.time = 106ms@64,61ms@32), or take one of:%s",
		model, device, others);
}

/* A bandwidth says nothing of gradients of unknown size. */
static int exchange_is_known(const struct config *config, struct error *err)
{
	if (config_integer(config, KEY_STEP_DEVICES) < 2 ||
		config_real(config, KEY_SYNC_BANDWIDTH) <= 0 || backend_gradient_bytes(config) > 0)
		return 0;
	return error_set(err, -EINVAL,
		"sync.bandwidth: how many parameters the model '%s' has is not known here, so its gradients have no size; set sync.latency alone, or take one of `mlbench list models`",
		config_text(config, KEY_STEP_MODEL));
}

/* Keys of a real device's step: a clock takes as long whatever they are.  The first that is set; KEY_COUNT: none. */
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
	const bool timed = config_integer(config, KEY_STEP_TIME) > 0;
	const enum key_id ignored = emulated_ignores(config);
	if (ignored != KEY_COUNT && config_integer(config, KEY_STEP_BACKEND) != STEP_BACKEND_AUTO)
		return error_set(err, -EINVAL,
			"step.%s has no effect on an emulated step; leave it out, or compute the step (step.backend = cuda)",
			config_keys[ignored].name);
	if (!timed && !is_device(device))
		return refuse_device(device, err);
	if (!is_model(model) && !(timed && strcmp(model, backend_custom_name) == 0))
		return refuse_model(model, err);
	if (!timed && !find_step(device, model))
		return refuse_pair(device, model, err);
	if (timed && !(config_step_time(config, config_real(config, KEY_BATCH_SIZE)) >= 1))
		return error_set(err, -EINVAL,
			"step.time = %s: the line through these points is below 0 at batch.size = %lld; add a point near there",
			config_text(config, KEY_STEP_TIME),
			(long long)config_integer(config, KEY_BATCH_SIZE));
	return exchange_is_known(config, err);
}

static void describe(struct emulated *emulated, const struct emulated_step *published)
{
	struct backend *backend = &emulated->backend;
	const struct config *config = backend->config;
	char step[UNITS_BYTES], original[UNITS_BYTES];
	char time[2 * UNITS_BYTES + 64], jitter[64] = "", devices[UNITS_BYTES + 64] = "";
	units_format_duration(backend->nominal_step_ns, step);
	const char *line = config_text(config, KEY_STEP_TIME);
	if (!published)
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
	(void)snprintf(backend->description, sizeof backend->description,
		"emulated %.24s, %.24s: %.100s%.24s%.68s", config_text(config, KEY_STEP_DEVICE),
		config_text(config, KEY_STEP_MODEL), time, jitter, devices);
}

static double model_flops(const struct backend *backend)
{
	const struct model *model = model_find(config_text(backend->config, KEY_STEP_MODEL));
	const struct model_shape shape = {backend->sample_elements, backend->class_count};
	return model ? model_training_flops_at(model, shape) : 0;
}

/* Per full batch; *published is NULL when the time is the user's own. */
static int nominal_time(const struct backend *backend, const struct emulated_step **published,
	double *ns, struct error *err)
{
	const struct config *config = backend->config;
	const char *device = config_text(config, KEY_STEP_DEVICE);
	const char *model = config_text(config, KEY_STEP_MODEL);
	*published = NULL;
	*ns = config_step_time(config, backend->batch_size);
	if (*ns > 0)
		return 0;
	const struct emulated_step *step = find_step(device, model);
	if (!step)
		return refuse_pair(device, model, err);
	*published = step;
	*ns = step->seconds * (double)NS_PER_S / step->batch * backend->batch_size;
	return 0;
}

static int emulated_open(struct backend *backend, struct error *err)
{
	struct emulated *emulated = (struct emulated *)backend;
	const struct config *config = backend->config;
	const struct emulated_step *published;
	const int result = nominal_time(backend, &published, &backend->nominal_step_ns, err);
	if (result < 0)
		return result;
	const double jitter = config_real(config, KEY_STEP_JITTER);
	emulated->jitter_sigma = sqrt(log1p(jitter * jitter));
	emulated->seed = (uint64_t)config_integer(config, KEY_RUN_SEED);
	emulated->exchange_ns = backend->device_count > 1 ? backend_exchange_ns(config) : 0;
	backend->emulated = true;
	backend->flops_per_sample = model_flops(backend);
	describe(emulated, published);

	/* The default slack of 50 us is a delay that the learned margin could not take back. */
	emulated->timer_slack_ns = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
	(void)prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
	return 0;
}

/* Log-normal with mean 1: exp(sigma z - sigma^2 / 2), whose coefficient of variation is
 * sqrt(exp(sigma^2) - 1).  A function of the seed and the batch's index alone. */
static double jitter_factor(const struct emulated *emulated, uint64_t index)
{
	const double sigma = emulated->jitter_sigma;
	if (sigma <= 0)
		return 1;
	struct rng rng;
	rng_init(&rng, emulated->seed ^ JITTER_STREAM, index);
	return exp(sigma * rng_normal(&rng) - sigma * sigma / 2);
}

/* Cut short by the end of the run. */
static int give_up(struct emulated *emulated, uint64_t start, uint64_t now, struct step_result *out)
{
	deadline_forget(&emulated->deadline);
	out->device_ns = now > start ? now - start : 0;
	return 0;
}

static void tell(const struct emulated *emulated, enum group_phase phase, uint64_t at_ns)
{
	const struct group_watch *watch = emulated->backend.watch;
	if (!watch)
		return;
	if (deadline_sleep(at_ns, emulated->backend.stop) >= at_ns)
		watch->enter(watch->context, phase, at_ns);
}

/* Gradients are there at computed; *end is when they are exchanged.  False: stopped. */
static bool exchange(
	struct emulated *emulated, uint64_t computed, uint64_t *end, struct step_result *out)
{
	const struct backend *backend = &emulated->backend;
	const double ns = emulated->exchange_ns * backend->exchange_slowdown;
	struct emulated_exchange met;
	if (!emulated_group_meet(backend->group->own, computed, (uint64_t)llround(ns),
		    backend->stop, backend->watch, &met))
		return false;
	if (met.begin_ns > computed)
		tell(emulated, GROUP_WAITS, computed);
	if (met.end_ns > met.begin_ns)
		tell(emulated, GROUP_EXCHANGES, met.begin_ns);
	*end = met.end_ns;
	out->sync_begin_ns = computed;
	out->sync_ns = met.end_ns - computed;
	return true;
}

static int emulated_step(struct backend *backend, const struct batch_view *batch,
	struct step_result *out, struct error *err)
{
	(void)err;
	struct emulated *emulated = (struct emulated *)backend;
	const double share = (double)batch->size / backend->batch_size;
	const double factor = jitter_factor(emulated, batch->index) * backend->slowdown;
	const uint64_t nominal = (uint64_t)llround(backend->nominal_step_ns * share * factor);
	const uint64_t start = deadline_start(&emulated->deadline, clock_now_ns(), nominal);
	uint64_t end = start + nominal;
	if (backend->group && !exchange(emulated, end, &end, out))
		return give_up(emulated, start, clock_now_ns(), out);
	const uint64_t now = deadline_wait(&emulated->deadline, end, end - start, backend->stop);
	if (now < end)
		return give_up(emulated, start, now, out);
	if (backend->watch)
		backend->watch->enter(backend->watch->context, GROUP_COMPUTES, end);
	out->device_ns = end - start;
	out->begin_ns = start;
	out->end_ns = end;
	out->oversleep_ns = deadline_done(&emulated->deadline, end, now);
	return 0;
}

static int open_group(void **own, const struct config *config, unsigned count, struct error *err)
{
	(void)config;
	struct emulated_group *group;
	const int code = emulated_group_open(&group, count);
	*own = group;
	return code ? error_set_errno(err, -code, "cannot make a group of %u devices", count) : 0;
}

static void close_group(void *own)
{
	emulated_group_close(own);
}

static void emulated_close(struct backend *backend)
{
	const struct emulated *emulated = (const struct emulated *)backend;
	if (emulated->timer_slack_ns > 0)
		(void)prctl(PR_SET_TIMERSLACK, emulated->timer_slack_ns, 0, 0, 0);
}

const struct backend_ops emulated_backend_ops = {
	.name = "emulated",
	.emulated = true,
	.summary = "waits for the published step time of a model on a device",
	.size = sizeof(struct emulated),
	.open = emulated_open,
	.step = emulated_step,
	.close = emulated_close,
	.validate = emulated_validate,
	.group_open = open_group,
	.group_close = close_group,
};
