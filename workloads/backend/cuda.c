/* NVIDIA GPUs: finding the plug-in (dlopen, so that one build runs on nodes with and without CUDA, and what is missing is
 * said by name), and the backend's functions as calls of the plug-in's.  Nothing here knows CUDA. */
#include "workloads/backend/cuda.h"

#include "harness/base/clock.h"
#include "harness/base/launcher.h"
#include "harness/base/plugin.h"
#include "harness/base/program.h"
#include "harness/base/units.h"
#include "workloads/backend/backend.h"
#include "workloads/model/model.h"
#include "workloads/ranks/gradients.h"
#include "workloads/ranks/ranks.h"
#include "workloads/sample/sample.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- finding the plug-in ---------------------------------------------------------------------- */

int cuda_open_plugin(const struct cuda_plugin **out, const char *path, struct error *err)
{
	void *library;
	plugin_entry *entry;
	*out = NULL;
	int code = plugin_open(&library, &entry, path, CUDA_PLUGIN_ENTRY, "CUDA", err);
	if (code)
		return code;
	const struct cuda_plugin *plugin = ((const struct cuda_plugin *(*)(void))entry)();
	code = plugin_check(path, "CUDA",
		plugin ? &(struct plugin_of){plugin->abi, plugin->version} : NULL, CUDA_PLUGIN_ABI,
		err);
	if (code)
		(void)dlclose(library);
	else
		*out = plugin;
	return code;
}

/* The kernel's side of a driver: there is something that a plug-in could use. */
static const char *cuda_visible_device(void)
{
	static const char *const files[] = {"/dev/nvidiactl", "/dev/nvidia0"};
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
		if (access(files[i], F_OK) != 0)
			return i == 0 ? "and no device is visible (no /dev/nvidiactl)"
				      : "and no device is visible (no /dev/nvidia0)";
	return "though a device is visible";
}

/* The CUDA libraries are 200 MiB of resident memory, which a run on a node without a driver need not carry.  Only opened here:
 * the runtime opens it again by the same name. */
static bool cuda_has_driver(struct cuda_found *found)
{
	if (dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL))
		return true;
	const char *reason = dlerror();
	(void)snprintf(found->why, sizeof found->why, "no NVIDIA driver: %s",
		reason ? reason : "libcuda.so.1 cannot be opened");
	return false;
}

static bool cuda_choose_file(struct cuda_found *found, const char *folder)
{
	if (plugin_find(CUDA_PLUGIN_VARIABLE, CUDA_PLUGIN_FILE, folder, found->path,
		    sizeof found->path))
		return true;
	if (found->path[0])
		return cuda_has_driver(found);
	(void)snprintf(found->why, sizeof found->why,
		"this build has no CUDA plug-in (%s is not in '%.200s', ../lib/mlbench or ../lib), %s",
		CUDA_PLUGIN_FILE, folder, cuda_visible_device());
	return false;
}

void cuda_look(struct cuda_found *found, const char *folder)
{
	*found = (struct cuda_found){0};
	if (!cuda_choose_file(found, folder))
		return;
	struct error err = {0};
	int code = cuda_open_plugin(&found->plugin, found->path, &err);
	if (!code)
		code = found->plugin->node(&found->node, &err);
	if (!code && found->node.count == 0)
		code = error_set(&err, -ENODEV, "no device");
	found->ready = code == 0;
	if (code)
		(void)snprintf(found->why, sizeof found->why, "%s", err.text);
}

static struct cuda_found found_once;

static void cuda_find_once(void)
{
	char folder[PATH_MAX];
	program_folder(folder, sizeof folder);
	cuda_look(&found_once, folder);
}

const struct cuda_found *cuda_find(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	(void)pthread_once(&once, cuda_find_once);
	return &found_once;
}

/* --- in words --------------------------------------------------------------------------------- */

enum { MAJOR_FACTOR = 1000, MINOR_FACTOR = 10 };

static void cuda_add(char *out, size_t room, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void cuda_add(char *out, size_t room, const char *format, ...)
{
	const size_t used = strlen(out);
	va_list args;
	va_start(args, format);
	(void)vsnprintf(out + used, room - used, format, args);
	va_end(args);
}

/* 13020 is 13.2. */
static void cuda_add_version(char *out, size_t room, const char *name, int version)
{
	if (version > 0)
		cuda_add(out, room, "%s%s %d.%d", *out ? ", " : "", name, version / MAJOR_FACTOR,
			version % MAJOR_FACTOR / MINOR_FACTOR);
}

static void cuda_add_devices(char *out, size_t room, const struct cuda_node *node)
{
	if (node->count == 0)
		return;
	cuda_add(out, room, "; %zu device%s:", node->count, node->count == 1 ? "" : "s");
	for (size_t i = 0; i < node->count && i < CUDA_DEVICES_MAX; i++) {
		const struct cuda_device_facts *device = &node->devices[i];
		char size[UNITS_BYTES];
		cuda_add(out, room, "%s %s (sm_%u%u, %s)", i > 0 ? "," : "", device->name,
			device->major, device->minor,
			units_format_size((double)device->memory_bytes, size));
	}
}

const char *cuda_describe_node(const struct cuda_found *found, char *out, size_t room)
{
	const struct cuda_node *node = &found->node;
	const struct cuda_plugin *plugin = found->plugin;
	out[0] = '\0';
	/* Without a driver it was not opened: its build can be reported all the same. */
	if (!plugin && (!found->path[0] || cuda_open_plugin(&plugin, found->path, NULL) != 0))
		return out;
	cuda_add_version(out, room, "driver", node->driver);
	cuda_add_version(out, room, "runtime", node->runtime);
	if (node->cublas[0])
		cuda_add(out, room, ", cuBLAS %s", node->cublas);
	if (node->nccl[0])
		cuda_add(out, room,
			isdigit((unsigned char)node->nccl[0]) ? ", NCCL %s" : ", no NCCL (%s)",
			node->nccl);
	cuda_add(out, room, "%splug-in built with %s", *out ? ", " : "", plugin->built);
	cuda_add_devices(out, room, node);
	return out;
}

/* --- the backend ------------------------------------------------------------------------------ */

struct cuda {
	struct backend backend;
	const struct cuda_plugin *plugin;
	struct cuda_session *session;
	struct step_result sampled; /* the statistics that came last */
};

static const char *cuda_unavailable(char *why, size_t room)
{
	const struct cuda_found *found = cuda_find();
	if (found->ready)
		return NULL;
	(void)snprintf(why, room, "%s", found->why);
	return why;
}

static const char *cuda_details(char *out, size_t room)
{
	return cuda_describe_node(cuda_find(), out, room);
}

/* --- a configuration in the plug-in's terms --------------------------------------------------- */

enum step_precision cuda_precision(const struct config *config)
{
	const struct cuda_found *found = cuda_find();
	const enum step_precision asked =
		(enum step_precision)config_integer(config, KEY_STEP_PRECISION);
	if (asked != STEP_PRECISION_AUTO)
		return asked;
	return found->ready && found->node.devices[0].precisions[STEP_PRECISION_BF16]
		       ? STEP_PRECISION_BF16
		       : STEP_PRECISION_FP32;
}

static struct cuda_options cuda_options_from(
	const struct config *config, uint32_t sample_elements, uint32_t class_count)
{
	const enum batch_type type = sample_type_of(config);
	const uint32_t batch_size = (uint32_t)config_integer(config, KEY_BATCH_SIZE);
	return (struct cuda_options){
		.model = config_text(config, KEY_STEP_MODEL),
		.batch_size = batch_size,
		.sample_elements = sample_elements,
		.class_count = class_count,
		.type = (enum augment_type)type,
		.channels_last = config_integer(config, KEY_AUGMENT_LAYOUT) == AUGMENT_LAYOUT_HWC,
		.precision = cuda_precision(config),
		.rule = (enum step_optimizer)config_integer(config, KEY_STEP_OPTIMIZER),
		.learning_rate = (float)config_real(config, KEY_STEP_LEARNING_RATE),
		.seed = (uint64_t)config_integer(config, KEY_RUN_SEED),
		.accumulate = (unsigned)config_integer(config, KEY_STEP_ACCUMULATE),
		.streams = (unsigned)config_integer(config, KEY_STEP_STREAMS),
		.ahead = (unsigned)config_integer(config, KEY_STEP_AHEAD),
		.statistics = (unsigned)config_integer(config, KEY_STEP_STATISTICS),
		.graph = config_on(config, KEY_STEP_GRAPH),
		.bucket_bytes = (uint64_t)config_integer(config, KEY_SYNC_BUCKET),
		.overlap = config_on(config, KEY_SYNC_OVERLAP),
		.batch_room = (size_t)batch_size * sample_elements * batch_type_bytes(type),
		.evaluates = backend_evaluates(&cuda_backend_ops, config),
		.augments = config_integer(config, KEY_AUGMENT_DEVICE) == AUGMENT_DEVICE_GPU,
		.antialias = config_on(config, KEY_AUGMENT_ANTIALIAS),
		.picture_size = (uint32_t)config_integer(config, KEY_AUGMENT_SIZE),
	};
}

/* --- what can be told and refused before anything runs ---------------------------------------- */

static int cuda_check_devices(
	const struct config *config, const struct cuda_node *node, struct error *err)
{
	const size_t wanted = (size_t)config_integer(config, KEY_STEP_DEVICES);
	if (wanted <= node->count)
		return 0;
	return error_set(err, -ENOTSUP, "step.devices = %zu: this node has only %zu device%s",
		wanted, node->count, node->count == 1 ? "" : "s");
}

/* Ranks of a node take its devices in turn, of those that they see: that is device 0 where the launcher shows each rank its own. */
static unsigned cuda_ranks_device(unsigned local_rank)
{
	const size_t count = cuda_find()->node.count;
	return count > 0 ? (unsigned)(local_rank % count) : 0;
}

/* Where the launcher says which of the node's devices each rank sees, who takes which is compared before they train (party.c). */
static int cuda_check_ranks(
	const struct config *config, const struct cuda_node *node, struct error *err)
{
	struct launcher launcher;
	const unsigned ranks = (unsigned)config_integer(config, KEY_RUN_RANKS);
	if (ranks < 2)
		return 0;
	if (!isdigit((unsigned char)node->nccl[0]))
		return error_set(err, -ENOTSUP,
			"run.ranks = %u: the ranks' devices cannot exchange gradients: %s", ranks,
			node->nccl);
	if (config_real(config, KEY_SYNC_GRADIENTS) > 0)
		return error_set(err, -EINVAL,
			"sync.gradients has no effect with step.backend = cuda, which exchanges the gradients of "
			"step.model; remove it");
	if (!launcher_find(&launcher) || getenv("CUDA_VISIBLE_DEVICES"))
		return 0;
	const unsigned here = launcher.local_count < ranks ? launcher.local_count : ranks;
	if (here <= node->count)
		return 0;
	return error_set(err, -EINVAL,
		"%s started %u ranks on this node, which has %zu device%s: start a rank for each device, or set "
		"run.ranks = %zu",
		launcher.name, here, node->count, node->count == 1 ? "" : "s", node->count);
}

static const char *cuda_precision_name(const struct config *config, char out[CONFIG_VALUE_BYTES])
{
	const struct config_value value = {.integer = cuda_precision(config)};
	return config_format_value(KEY_STEP_PRECISION, &value, out, CONFIG_VALUE_BYTES);
}

static const char *cuda_outline(const struct config *config, char *out, size_t room)
{
	const struct cuda_node *node = &cuda_find()->node;
	const int64_t devices = config_integer(config, KEY_STEP_DEVICES);
	char count[32] = "";
	char precision[CONFIG_VALUE_BYTES];
	if (devices > 1)
		(void)snprintf(count, sizeof count, "%lld x ", (long long)devices);
	(void)snprintf(out, room, "%s%s, %s in %s", count, node->devices[0].name,
		config_text(config, KEY_STEP_MODEL), cuda_precision_name(config, precision));
	return out;
}

static int cuda_check_device(const struct config *config, const struct cuda_device_facts *device,
	const struct cuda_options *options, uint64_t needed, struct error *err)
{
	char name[CONFIG_VALUE_BYTES];
	char need[UNITS_BYTES];
	char room[UNITS_BYTES];
	if (!device->precisions[options->precision])
		return error_set(err, -ENOTSUP,
			"step.precision = %s: %s (sm_%u%u) does not support it",
			cuda_precision_name(config, name), device->name, device->major,
			device->minor);
	if (device->memory_bytes > 0 && needed > device->memory_bytes)
		return error_set(err, -ENOTSUP,
			"step.model = %s with batch.size = %u needs at least %s of device memory, but %s has %s",
			options->model, options->batch_size,
			units_format_size((double)needed, need), device->name,
			units_format_size((double)device->memory_bytes, room));
	return 0;
}

static int cuda_validate(const struct config *config, struct error *err)
{
	const struct cuda_found *found = cuda_find();
	int code = backend_check_model(config, err);
	if (!code)
		code = cuda_check_devices(config, &found->node, err);
	if (!code)
		code = cuda_check_ranks(config, &found->node, err);
	if (code)
		return code;
	struct sample_sizes sizes;
	sample_sizes_of(config, NULL, &sizes);
	const struct cuda_options options = cuda_options_from(config, sizes.values, 1);
	const uint64_t needed = found->plugin->device_bytes(&options);
	const size_t devices = (size_t)config_integer(config, KEY_STEP_DEVICES);
	for (size_t i = 0; i < devices && !code; i++)
		code = cuda_check_device(config, &found->node.devices[i], &options, needed, err);
	return code;
}

/* --- a session -------------------------------------------------------------------------------- */

/* Waits for the other ranks' devices, so that none waits in NCCL for one that could not be opened: that rank says why when all agree
 * to begin, and until then nothing is launched.  code: of opening this one. */
static int cuda_join_ranks(const struct cuda *cuda, int code, struct error *err)
{
	struct gradients *const gradients = cuda->backend.gradients;
	struct gradients_round round = {.leaves = GRADIENTS_STAY};
	struct error ignored;
	const uint64_t now_ns = clock_now_ns();
	if (code) {
		(void)gradients_leave(gradients, GRADIENTS_FAILED, &ignored);
		return code;
	}
	gradients_begin(gradients, now_ns, now_ns);
	code = gradients_finish(gradients, now_ns, &round, err);
	return code || round.leaves != GRADIENTS_STAY ? code
						      : cuda->plugin->join(cuda->session, err);
}

static int cuda_open(struct backend *backend, struct error *err)
{
	struct cuda *cuda = (struct cuda *)backend;
	const struct ranks *const ranks =
		backend->gradients ? backend->gradients->options.ranks : NULL;
	cuda->plugin = cuda_find()->plugin;
	cuda->sampled = (struct step_result){
		.gradient_norm = NAN,
		.nonfinite_share = NAN,
		.activation_mean = NAN,
		.activation_deviation = NAN,
	};
	struct cuda_options options =
		cuda_options_from(backend->config, backend->sample_elements, backend->class_count);
	if (ranks)
		backend->device_index = cuda_ranks_device(ranks->world.local_rank);
	options.device = backend->device_index;
	options.staging_places = backend->staging_places;
	if (backend->batch_room > 0)
		options.batch_room = backend->batch_room;
	options.group = backend->group ? backend->group->own : NULL;
	options.rank = ranks ? 0 : backend->device_index;
	options.devices = ranks && backend->group ? backend->group->count : backend->device_count;
	options.stop = backend->stop;
	options.choosing = backend->choosing;
	int code = cuda->plugin->open(&cuda->session, &options, err);
	if (ranks)
		code = cuda_join_ranks(cuda, code, err);
	if (code) {
		cuda->plugin->close(cuda->session);
		return code;
	}
	struct cuda_description description;
	cuda->plugin->describe(cuda->session, &description);
	backend->flops_per_sample = description.flops_per_sample;
	(void)snprintf(backend->description, sizeof backend->description, "%s", description.text);
	return 0;
}

static void cuda_close(struct backend *backend)
{
	struct cuda *cuda = (struct cuda *)backend;
	cuda->plugin->close(cuda->session);
	cuda->session = NULL;
}

static int cuda_launch(struct backend *backend, const struct batch_view *batch, struct error *err)
{
	const struct cuda *cuda = (const struct cuda *)backend;
	return cuda->plugin->launch(cuda->session, batch, err);
}

static void cuda_keep_statistics(struct cuda *cuda, const struct step_result *result)
{
	if (!isnan(result->nonfinite_share))
		cuda->sampled = *result;
}

/* The ranks meet when their devices have the step's gradients, which are summed there meanwhile. */
static int cuda_meet(struct cuda *cuda, struct gradients_round *out, struct error *err)
{
	struct gradients *const gradients = cuda->backend.gradients;
	uint64_t computed_ns = 0;
	int code = gradients ? cuda->plugin->computed(cuda->session, &computed_ns, err) : 0;
	if (code || computed_ns == 0)
		return code;
	gradients_begin(gradients, computed_ns, computed_ns);
	return gradients_finish(gradients, computed_ns, out, err);
}

/* When the sums were there the device says. */
static void cuda_time_round(struct gradients_round *round, struct step_result *out)
{
	if (out->sync_begin_ns == 0)
		out->sync_begin_ns = clock_now_ns() - out->sync_ns;
	round->ended_ns = out->sync_begin_ns + out->sync_ns;
	round->first_ns = round->ended_ns - out->exchange_ns;
	if (round->met_ns > round->ended_ns)
		round->met_ns = round->ended_ns;
	if (round->met_ns < out->sync_begin_ns)
		round->met_ns = out->sync_begin_ns;
}

static int cuda_finish(struct backend *backend, struct step_result *out, struct error *err)
{
	struct cuda *cuda = (struct cuda *)backend;
	struct gradients_round round = {.leaves = GRADIENTS_STAY};
	int code = cuda_meet(cuda, &round, err);
	if (!code && round.leaves == GRADIENTS_STAY) {
		code = cuda->plugin->finish(cuda->session, out, err);
		if (!code)
			cuda_keep_statistics(cuda, out);
		if (!code && round.met_ns > 0)
			cuda_time_round(&round, out);
	}
	out->round = round;
	return code;
}

static bool cuda_finished(struct backend *backend)
{
	const struct cuda *cuda = (const struct cuda *)backend;
	return cuda->plugin->finished(cuda->session);
}

static int cuda_evaluate(struct backend *backend, const struct batch_view *batch, struct error *err)
{
	const struct cuda *cuda = (const struct cuda *)backend;
	return cuda->plugin->evaluate(cuda->session, batch, err);
}

static int cuda_upload(
	struct backend *backend, unsigned place, const struct batch_view *batch, struct error *err)
{
	const struct cuda *cuda = (const struct cuda *)backend;
	return cuda->plugin->upload(cuda->session, place, batch, err);
}

static int cuda_upload_finish(
	struct backend *backend, unsigned place, struct upload_result *out, struct error *err)
{
	const struct cuda *cuda = (const struct cuda *)backend;
	return cuda->plugin->upload_finish(cuda->session, place, out, err);
}

static bool cuda_upload_finished(struct backend *backend, unsigned place)
{
	const struct cuda *cuda = (const struct cuda *)backend;
	return cuda->plugin->upload_finished(cuda->session, place);
}

static int cuda_pin(struct backend *backend, void *memory, size_t bytes, struct error *err)
{
	const struct cuda *cuda = (const struct cuda *)backend;
	return cuda->plugin->pin(cuda->session, memory, bytes, err);
}

static int cuda_group_open(
	void **own, const struct config *config, unsigned count, struct error *err)
{
	(void)config;
	struct cuda_group *group = NULL;
	const int code = cuda_find()->plugin->group_open(&group, count, NULL, err);
	*own = group;
	return code;
}

static int cuda_ranks_id(unsigned char id[RANKS_ID_BYTES], struct error *err)
{
	_Static_assert((int)CUDA_ID_BYTES == (int)RANKS_ID_BYTES, "they are handed on");
	return cuda_find()->plugin->group_id(id, err);
}

static int cuda_miss_rank(void *context, struct error *err)
{
	struct ranks *const ranks = context;
	return ranks->missing(ranks, err);
}

static int cuda_ranks_open(void **own, struct ranks *ranks, unsigned count, struct error *err)
{
	struct cuda_group *group = NULL;
	struct cuda_peers peers = {.rank = ranks_index(ranks),
		.count = count,
		.missing = cuda_miss_rank,
		.context = ranks};
	memcpy(peers.id, ranks->id, sizeof peers.id);
	const int code = cuda_find()->plugin->group_open(&group, count, &peers, err);
	*own = group;
	return code;
}

static const char *cuda_rank_device(unsigned local_rank, char *out, size_t room)
{
	const unsigned device = cuda_ranks_device(local_rank);
	const struct cuda_node *const node = &cuda_find()->node;
	(void)snprintf(out, room, "%s", device < node->count ? node->devices[device].bus : "");
	return out;
}

static void cuda_group_close(void *own)
{
	cuda_find()->plugin->group_close(own);
}

static void cuda_mark(const char *name)
{
	const struct cuda_found *found = cuda_find();
	if (found->plugin && found->plugin->mark)
		found->plugin->mark(name);
}

/* --- for the measurement ---------------------------------------------------------------------- */

static void cuda_describe_device(const struct backend *backend, struct device_measurement *out)
{
	const struct cuda_found *found = cuda_find();
	char precision[CONFIG_VALUE_BYTES];
	out->index = backend->device_index;
	out->emulated = false;
	(void)snprintf(out->precision, sizeof out->precision, "%s",
		cuda_precision_name(backend->config, precision));
	if (backend->device_index >= found->node.count)
		return;
	const struct cuda_device_facts *facts = &found->node.devices[backend->device_index];
	const bool unsaid = found->plugin->test_double && !strstr(facts->name, "test double");
	(void)snprintf(
		out->name, sizeof out->name, "%s%.48s", unsaid ? "test double " : "", facts->name);
	(void)snprintf(out->bus, sizeof out->bus, "%s", facts->bus);
}

static void cuda_describe(struct backend *backend, struct device_measurement *out)
{
	const struct cuda *cuda = (const struct cuda *)backend;
	struct cuda_description description;
	cuda->plugin->describe(cuda->session, &description);
	cuda_describe_device(backend, out);
	out->flops_per_step = description.flops_per_sample * backend->batch_size;
	out->deterministic = description.deterministic;
	out->clock_map_error_ns = description.clock_map_error_ns;
	out->gradient_norm = cuda->sampled.gradient_norm;
	out->nonfinite_share = cuda->sampled.nonfinite_share;
	out->activation_mean = cuda->sampled.activation_mean;
	out->activation_deviation = cuda->sampled.activation_deviation;
}

const struct backend_ops cuda_backend_ops = {
	.name = "cuda",
	.summary = "NVIDIA GPU through the CUDA plug-in",
	.size = sizeof(struct cuda),
	.unavailable = cuda_unavailable,
	.details = cuda_details,
	.outline = cuda_outline,
	.open = cuda_open,
	.close = cuda_close,
	.validate = cuda_validate,
	.launch = cuda_launch,
	.finish = cuda_finish,
	.finished = cuda_finished,
	.evaluate = cuda_evaluate,
	.upload = cuda_upload,
	.upload_finish = cuda_upload_finish,
	.upload_finished = cuda_upload_finished,
	.pin = cuda_pin,
	.describe = cuda_describe,
	.group_open = cuda_group_open,
	.group_close = cuda_group_close,
	.ranks_id = cuda_ranks_id,
	.ranks_open = cuda_ranks_open,
	.ranks_device = cuda_rank_device,
	.mark = cuda_mark,
};
