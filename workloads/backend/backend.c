/* Choosing and driving a backend: the list, the rules that hold for every one of them. */
#include "workloads/backend/backend.h"

#include "harness/base/clock.h"
#include "harness/base/text.h"
#include "harness/base/units.h"
#include "workloads/backend/cuda.h"
#include "workloads/model/model.h"
#include "workloads/ranks/gradients.h"
#include "workloads/sample/sample.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACKEND_ENTRY(ID, name) &name##_backend_ops,
const struct backend_ops *const backend_list[] = {STEP_BACKENDS(BACKEND_ENTRY) NULL};

enum { REASON_BYTES = BACKEND_WHY_BYTES };

static const struct backend_ops *device_ops = &cuda_backend_ops;

void backend_replace_device(const struct backend_ops *ops)
{
	device_ops = ops ? ops : &cuda_backend_ops;
}

/* Why a device that is there would not do; NULL: it would. */
static const char *backend_why_emulate(const struct config *config, char *reason, size_t room)
{
	const char *missing = cuda_backend_ops.unavailable(reason, room);
	if (missing)
		return missing;
	const char *model = config_text(config, KEY_STEP_MODEL);
	if (config_sets_step_time(config))
		return config_integer(config, KEY_STEP_TIME) > 0
			       ? "step.time is set, which applies to emulated devices only"
			       : "step.times are set, which apply to emulated devices only";
	if (model_find(model))
		return NULL;
	(void)snprintf(reason, room, "step.model = %s can only be emulated", model);
	return reason;
}

static const struct backend_ops *backend_choose_real_or_emulated(
	const struct config *config, char *why_not, size_t room)
{
	char reason[REASON_BYTES];
	const char *why = backend_why_emulate(config, reason, sizeof reason);
	if (!why)
		return &cuda_backend_ops;
	const enum key_id ignored = emulated_ignores(config);
	if (why_not && room > 0 && ignored != KEY_COUNT)
		(void)snprintf(why_not, room, "no real device, so step.%s has no effect: %s",
			config_keys[ignored].name, why);
	else if (why_not && room > 0)
		(void)snprintf(why_not, room, "no real device: %s", why);
	return &emulated_backend_ops;
}

const struct backend_ops *backend_choose(
	const struct config *config, char *why_not, size_t room, struct error *err)
{
	if (why_not && room > 0)
		why_not[0] = '\0';
	const int64_t choice = config_integer(config, KEY_STEP_BACKEND);
	if (choice == STEP_BACKEND_AUTO)
		return backend_choose_real_or_emulated(config, why_not, room);
	const struct backend_ops *ops =
		choice == STEP_BACKEND_CUDA ? device_ops : backend_list[choice - 1];
	char reason[REASON_BYTES];
	const char *missing = ops->unavailable ? ops->unavailable(reason, sizeof reason) : NULL;
	if (!missing)
		return ops;
	(void)error_set(
		err, -ENOTSUP, "step.backend = %s: cannot be used here: %s", ops->name, missing);
	return NULL;
}

bool backend_reference(const struct config *config, char *out, size_t room)
{
	const struct backend_ops *ops = backend_choose(config, NULL, 0, NULL);
	return ops == &cuda_backend_ops &&
	       emulated_reference(cuda_find()->node.devices[0].name, config, out, room);
}

int backend_validate(const struct config *config, struct error *err)
{
	const struct backend_ops *ops = backend_choose(config, NULL, 0, err);
	if (!ops)
		return -ENOTSUP;
	const int64_t devices = config_integer(config, KEY_STEP_DEVICES);
	if (devices > 1 && !ops->group_open)
		return error_set(err, -EINVAL,
			"step.devices = %lld: the %s backend has one device; set it to 1, or use step.backend = emulated or cuda",
			(long long)devices, ops->name);
	const int64_t ranks = config_integer(config, KEY_RUN_RANKS);
	if (ranks > 1 && (devices > 1 || (backend_is_device(ops) && !ops->ranks_open)))
		return error_set(err, -EINVAL,
			"run.ranks = %lld: ranks exchange gradients of one device each; set step.devices = 1, and start a "
			"rank for each device",
			(long long)ranks);
	return ops->validate ? ops->validate(config, err) : 0;
}

uint64_t backend_bytes(const struct config *config, uint32_t sample_elements, uint32_t class_count)
{
	const struct backend_ops *ops = backend_choose(config, NULL, 0, NULL);
	return ops && ops->bytes ? ops->bytes(config, sample_elements, class_count) : 0;
}

/* What a step computes follows the length of its sequences. */
static void backend_describe_tokens(struct backend *backend)
{
	const uint32_t tokens = sample_tokens_of(backend->config);
	const size_t used = strlen(backend->description);
	if (tokens > 0 && backend->flops_per_sample > 0)
		(void)snprintf(backend->description + used, sizeof backend->description - used,
			"; %s GFLOP for each sequence of %u tokens",
			UNITS_PLAIN(backend->flops_per_sample * 1e-9, 4), tokens);
}

int backend_open(struct backend **out, const struct backend_options *options, struct error *err)
{
	*out = NULL;
	const struct config *config = options->config;
	const int valid = backend_validate(config, err);
	if (valid < 0)
		return valid;
	const struct backend_ops *ops = backend_choose(config, NULL, 0, err);
	struct backend *backend = calloc(1, ops->size);
	if (!backend)
		return error_set(err, -ENOMEM, "out of memory for the %s backend", ops->name);
	backend->ops = ops;
	backend->config = config;
	backend->batch_size = (uint32_t)config_integer(config, KEY_BATCH_SIZE);
	backend->sample_elements = options->sample_elements;
	backend->class_count = options->class_count > 0 ? options->class_count : 1;
	backend->stop = options->stop;
	backend->choosing = options->choosing;
	backend->device_index = options->device_index;
	backend->device_count = options->device_count > 0 ? options->device_count : 1;
	backend->group = options->group;
	backend->gradients = options->gradients;
	backend->watch = options->watch;
	backend->staging_places = options->staging_places;
	backend->batch_room = options->batch_room;
	backend->slowdown = 1;
	backend->exchange_slowdown = 1;
	const int opened = ops->open(backend, err);
	if (opened < 0) {
		free(backend);
		return opened;
	}
	backend_describe_tokens(backend);
	*out = backend;
	return 0;
}

/* What a step on the cores has computed is exchanged when all of it is there. */
static int backend_exchange(
	struct backend *backend, uint64_t began_ns, struct step_result *out, struct error *err)
{
	const uint64_t computed_ns = clock_now_ns();
	gradients_begin(backend->gradients, began_ns, computed_ns);
	if (backend->watch)
		backend->watch->enter(backend->watch->context, GROUP_WAITS, computed_ns);
	const int code = gradients_finish(backend->gradients, computed_ns, &out->round, err);
	if (code)
		return code;
	if (backend->watch)
		backend->watch->enter(backend->watch->context, GROUP_COMPUTES, out->round.ended_ns);
	out->sync_begin_ns = computed_ns;
	out->sync_ns = out->round.ended_ns - computed_ns;
	out->device_ns += out->sync_ns;
	return 0;
}

int backend_step(struct backend *backend, const struct batch_view *batch, struct step_result *out,
	struct error *err)
{
	*out = (struct step_result){.loss = NAN};
	if (batch->size == 0 || batch->size > backend->batch_size)
		return error_set(err, -EINVAL, "batch of %u samples: the step takes 1 to %u",
			batch->size, backend->batch_size);
	const uint64_t began_ns = clock_now_ns();
	const int code = backend->ops->step(backend, batch, out, err);
	return code || !backend->gradients || backend->ops->exchanges
		       ? code
		       : backend_exchange(backend, began_ns, out, err);
}

void backend_close(struct backend *backend)
{
	if (!backend)
		return;
	if (backend->ops->close)
		backend->ops->close(backend);
	free(backend);
}

size_t backend_add_name(const char **names, size_t count, size_t room, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return count;
	if (count < room)
		names[count++] = name;
	return count;
}

int backend_check_model(const struct config *config, struct error *err)
{
	const char *name = config_text(config, KEY_STEP_MODEL);
	if (model_find(name))
		return 0;
	const char *names[BACKEND_NAMES_MAX];
	size_t count = 0;
	for (const struct model *const *model = model_list; *model; model++)
		count = backend_add_name(names, count, BACKEND_NAMES_MAX, (*model)->name);
	return backend_refuse_name(err, "model", name, names, count);
}

int backend_refuse_name(struct error *err, const char *kind, const char *word,
	const char *const *names, size_t count)
{
	const char *near = suggest_nearest(word, names, count);
	if (near)
		return error_set(err, -EINVAL, "step.%s = %s: unknown %s; did you mean '%s'?", kind,
			word, kind, near);
	char known[REASON_BYTES] = "";
	for (size_t i = 0, at = 0; i < count && at < sizeof known; i++)
		at += (size_t)snprintf(known + at, sizeof known - at, " %s", names[i]);
	return error_set(
		err, -EINVAL, "step.%s = %s: unknown %s; known:%s", kind, word, kind, known);
}

/* --- groups of devices, for every backend ----------------------------------------------------- */

int backend_group_open(struct backend_group **out, const struct config *config, struct ranks *ranks,
	struct error *err)
{
	*out = NULL;
	const unsigned count =
		(unsigned)config_integer(config, ranks ? KEY_RUN_RANKS : KEY_STEP_DEVICES);
	if (count < 2)
		return 0;
	int code = backend_validate(config, err);
	const struct backend_ops *const ops = backend_choose(config, NULL, 0, NULL);
	if (code || (ranks && !ops->ranks_open))
		return code;
	struct backend_group *group = calloc(1, sizeof *group);
	if (!group)
		return error_set(err, -ENOMEM, "out of memory for a group of %u devices", count);
	group->ops = ops;
	group->count = count;
	code = ranks ? ops->ranks_open(&group->own, ranks, count, err)
		     : ops->group_open(&group->own, config, count, err);
	if (code) {
		free(group);
		return code;
	}
	*out = group;
	return 0;
}

void backend_group_close(struct backend_group *group)
{
	if (!group)
		return;
	group->ops->group_close(group->own);
	free(group);
}
