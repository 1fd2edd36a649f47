/* The parts of a probe, their bounds, and what each is given of the configuration. */
#include "harness/command/probe_node.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/log.h"
#include "harness/base/units.h"
#include "harness/config/tables.h"
#include "harness/measure/proc_text.h"
#include "workloads/backend/probe_compute.h"
#include "workloads/dataset/probe_decode.h"
#include "workloads/model/model.h"
#include "workloads/sample/sample.h"
#include "workloads/source/source.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_REQUEST = 4096, LARGE_REQUEST = 128 * 1024, COPY_SHARE_OF_FREE = 8 };

static const uint64_t FILE_REQUEST_MOST = 4 << 20;

const struct probe_bounds probe_bounds_full = {
	.rounds = PROBE_ROUNDS,
	.timing = {20 * NS_PER_MS, 3 * NS_PER_S},
	.memory = {80 * NS_PER_MS, 5 * NS_PER_S},
	.decode = {200 * NS_PER_MS, 9 * NS_PER_S},
	.gemm = {30 * NS_PER_MS, 10 * NS_PER_S},
	.reads = {70 * NS_PER_MS, 30 * NS_PER_S},
	.first = {0, 6 * NS_PER_S},
	.device = {0, 12 * NS_PER_S}, /* chooses its slots itself */
	.scan_ns = 3 * NS_PER_S,
	.cold_bytes = 256 << 20,
	.warm_bytes = 256 << 20,
	.write_ns = 4 * NS_PER_S,
	.first_bytes = 256 << 20,
	.depths = {1, 2, 4, 8, 16, 32, 64},
	.depth_count = 7,
	.samples = 64,
	.generated = 12,
	.edges = {256, 512, 1024, 2048},
	.edge_count = 4,
	.shapes = 8,
	.call_flops = 4e9,
	.copy_bytes = 256 << 20,
};

const struct probe_bounds probe_bounds_quick = {
	.quick = true,
	.rounds = PROBE_ROUNDS,
	.timing = {10 * NS_PER_MS, NS_PER_S},
	.memory = {20 * NS_PER_MS, 2 * NS_PER_S},
	.decode = {60 * NS_PER_MS, 2500 * NS_PER_MS},
	.gemm = {10 * NS_PER_MS, 2500 * NS_PER_MS},
	.reads = {20 * NS_PER_MS, 6 * NS_PER_S},
	.first = {0, 2 * NS_PER_S},
	.device = {0, 4 * NS_PER_S},
	.scan_ns = NS_PER_S,
	.cold_bytes = 64 << 20,
	.warm_bytes = 64 << 20,
	.write_ns = NS_PER_S,
	.first_bytes = 64 << 20,
	.depths = {1, 4, 16, 64},
	.depth_count = 4,
	.samples = 16,
	.generated = 4,
	.edges = {512, 1024},
	.edge_count = 2,
	.shapes = 4,
	.call_flops = 1e9,
	.copy_bytes = 256 << 20,
};

/* --- the data set ----------------------------------------------------------------------------- */

/* Gives up a scan that takes too long, or when the user does. */
struct scan {
	const atomic_bool *stop;
	atomic_bool give_up;
	uint64_t end_ns;
};

static void probe_node_watch(void *context, uint64_t done, uint64_t total, uint64_t bytes)
{
	struct scan *scan = context;
	(void)done;
	(void)total;
	(void)bytes;
	if ((scan->stop && atomic_load(scan->stop)) || clock_now_ns() >= scan->end_ns)
		atomic_store(&scan->give_up, true);
}

int probe_look(struct probe_target *target, const struct probe_bounds *bounds,
	const atomic_bool *stop, struct error *err)
{
	struct scan scan = {.stop = stop, .end_ns = clock_now_ns() + bounds->scan_ns};
	const struct dataset_control control = {
		.progress = probe_node_watch, .context = &scan, .stop = &scan.give_up};
	struct error why = {0};
	if (config_text(target->config, KEY_DATASET_PATH)[0] == '\0') {
		(void)snprintf(target->data_why, sizeof target->data_why, "none is configured");
		return 0;
	}
	const int code = dataset_open(target->config, &control, &target->dataset, &why);
	target->has_data = code == 0 && target->dataset.count > 0;
	if (code == -EINTR && !(stop && atomic_load(stop)))
		(void)snprintf(why.text, sizeof why.text, "examining it takes too long");
	(void)snprintf(target->data_why, sizeof target->data_why, "%.200s", why.text);
	const bool recipe =
		config_integer(target->config, KEY_DATASET_RECIPE) != DATASET_RECIPE_NONE;
	const bool wrong = code == -ENOENT || code == -ENOTDIR;
	return wrong && !recipe ? error_set(err, code, "%s", why.text) : 0;
}

void probe_forget(struct probe_target *target)
{
	if (target->has_data)
		dataset_close(&target->dataset);
	target->has_data = false;
}

double probe_file_bytes(const struct probe_target *target)
{
	struct dataset samples;
	/* What is read at once: a sample, where files hold several. */
	if (!target->has_data || sample_cut_files(target->config, &target->dataset, &samples, NULL))
		return NAN;
	const uint64_t mean = samples.total_bytes / samples.count;
	sample_cut_release(&samples, &target->dataset);
	const uint64_t blocks = (mean + READ_ALIGN_BYTES - 1) / READ_ALIGN_BYTES;
	return (double)(blocks * READ_ALIGN_BYTES);
}

/* --- the parts -------------------------------------------------------------------------------- */

struct job {
	const struct probe_target *target;
	const struct probe_bounds *bounds;
	struct ceilings *out;
};

static int do_timing(const struct job *job, const struct probe_control *control, struct error *err)
{
	return probe_timing(control, job->out, err);
}

static int do_memory(const struct job *job, const struct probe_control *control, struct error *err)
{
	return probe_memory(control, job->bounds->array_bytes, job->out, err);
}

static int do_decode(const struct job *job, const struct probe_control *control, struct error *err)
{
	const struct probe_target *target = job->target;
	struct probe_samples samples = {0};
	struct error why = {0};
	int code = -ENODATA;
	if (target->has_data)
		code = probe_samples_load(target->config, &target->dataset, job->bounds->samples,
			control, &samples, &why);
	if (code && !probe_stopped(control)) {
		probe_samples_release(&samples);
		code = probe_samples_make(
			target->config, job->bounds->generated, control, &samples, err);
		if (!code)
			ceilings_note(job->out,
				"decode: generated samples, because the data set is missing: %.180s",
				target->has_data ? why.text : target->data_why);
	}
	if (!code)
		code = probe_decode(target->config, &samples, 0, control, job->out, err);
	probe_samples_release(&samples);
	return code;
}

static struct model_shape probe_shape(const struct config *config)
{
	struct sample_sizes sizes;
	sample_sizes_of(config, NULL, &sizes);
	return (struct model_shape){sizes.values,
		(uint32_t)config_integer(config, KEY_DATASET_CLASSES), sizes.shape.tokens};
}

static int do_gemm(const struct job *job, const struct probe_control *control, struct error *err)
{
	const struct config *config = job->target->config;
	const struct probe_bounds *bounds = job->bounds;
	const unsigned threads = (unsigned)config_integer(config, KEY_STEP_THREADS);
	struct probe_gemm_plan plan = {
		.edge_count = bounds->edge_count,
		.model = model_find(config_text(config, KEY_STEP_MODEL)),
		.shape = probe_shape(config),
		.batch = (uint32_t)config_integer(config, KEY_BATCH_SIZE),
		.threads = threads < probe_cores() ? threads : probe_cores(),
		.shapes_most = bounds->shapes,
		.call_flops_most = bounds->call_flops,
	};
	memcpy(plan.edges, bounds->edges, sizeof plan.edges);
	if (!plan.model)
		ceilings_lack(job->out, "gemm: the shapes of model '%s' are unknown",
			config_text(config, KEY_STEP_MODEL));
	return probe_gemm(&plan, control, job->out, err);
}

static void add_size(struct probe_read_plan *plan, uint64_t bytes)
{
	for (size_t i = 0; i < plan->size_count; i++)
		if (plan->sizes[i] == bytes)
			return;
	plan->sizes[plan->size_count++] = bytes;
}

static int do_reads(const struct job *job, const struct probe_control *control, struct error *err)
{
	const struct probe_bounds *bounds = job->bounds;
	struct probe_read_plan plan = {
		.folder = job->target->folder,
		.cold_bytes = bounds->cold_bytes,
		.warm_bytes = bounds->warm_bytes,
		.write_ns = bounds->write_ns,
		.depth_count = bounds->depth_count,
		.small_pages = !config_on(job->target->config, KEY_READ_HUGE_PAGES),
		.seed = (uint64_t)config_integer(job->target->config, KEY_RUN_SEED),
	};
	memcpy(plan.depths, bounds->depths, sizeof plan.depths);
	add_size(&plan, SMALL_REQUEST);
	add_size(&plan, LARGE_REQUEST);
	const double file = job->out->file_bytes;
	char size[UNITS_BYTES];
	/* Twice as many as can be in flight must fit into the scratch file. */
	const uint64_t fits = bounds->warm_bytes / (2 * PROBE_DEPTH_MOST);
	const uint64_t most = fits < FILE_REQUEST_MOST ? fits : FILE_REQUEST_MOST;
	if (file > 0 && file <= (double)most)
		add_size(&plan, (uint64_t)file);
	else if (file > 0)
		ceilings_note(job->out,
			"reads: requests of the mean file size, %s, are larger than probe tries",
			units_format_size(file, size));
	const int code = probe_read(&plan, control, job->out, err);
	if (job->out->read_count > 0 && job->target->node.is_virtual)
		ceilings_note(job->out,
			"reads: a virtual machine: its host may keep the disk in memory; cold is cold in "
			"this system only");
	return code;
}

/* Before anything else reads the files. */
static int do_first(const struct job *job, const struct probe_control *control, struct error *err)
{
	const struct probe_target *target = job->target;
	if (!target->has_data)
		return error_set(err, -ENODATA, "no data set: %.150s", target->data_why);
	return probe_first_reads(
		&target->dataset, job->bounds->first_bytes, control, job->out, err);
}

static int do_device(const struct job *job, const struct probe_control *control, struct error *err)
{
	const struct config *config = job->target->config;
	const double room = probe_free_memory() / COPY_SHARE_OF_FREE;
	const struct probe_device_plan plan = {
		.device = 0,
		.most_ns = job->bounds->device.most_ns,
		.copy_most = room > 0 && room < (double)job->bounds->copy_bytes
				     ? (size_t)room
				     : (size_t)job->bounds->copy_bytes,
		.model = model_find(config_text(config, KEY_STEP_MODEL)),
		.shape = probe_shape(config),
		.batch = (uint32_t)config_integer(config, KEY_BATCH_SIZE),
		.precision = cuda_precision(config),
		.shapes_most = (unsigned)job->bounds->shapes,
	};
	return probe_device(&plan, control, job->out, err);
}

static const struct part {
	const char *name;
	int (*run)(const struct job *job, const struct probe_control *control, struct error *err);
	size_t share; /* offset of its struct probe_share in the bounds */
	bool cores;   /* it wants all of them for itself */
} parts[] = {
	{"first reads", do_first, offsetof(struct probe_bounds, first), false},
	{"timing", do_timing, offsetof(struct probe_bounds, timing), false},
	{"memory", do_memory, offsetof(struct probe_bounds, memory), true},
	{"gemm", do_gemm, offsetof(struct probe_bounds, gemm), true},
	{"decode", do_decode, offsetof(struct probe_bounds, decode), true},
	{"device", do_device, offsetof(struct probe_bounds, device), false},
	{"storage", do_reads, offsetof(struct probe_bounds, reads), false},
};

enum { PARTS = COUNT(parts) };

static bool probe_node_is_stopped(const atomic_bool *stop)
{
	return stop && atomic_load(stop);
}

/* What others took of the cores, and in how long, while parts wanted them all; s. */
struct probe_others {
	double taken, seconds;
};

/* CPU time of other programs on the cores that this one may use, since the machine was started; NAN: not known. */
static double probe_others_now(void)
{
	struct process_usage usage;
	cpu_set_t own;
	process_usage_read(&usage, sched_getaffinity(0, sizeof own, &own) == 0 ? &own : NULL);
	return usage.machine_seconds - usage.cpu_seconds;
}

/* A ceiling that was measured beside other programs is none. */
static void probe_note_others(const struct probe_others *others, struct ceilings *out)
{
	static const double least = 0.1; /* of the cores */
	const double cores = others->taken / others->seconds;
	if (others->seconds > 0 && isnan(cores))
		ceilings_note(out,
			"what other programs took of the cores meanwhile is unknown: no /proc/stat");
	if (cores >= least * probe_cores())
		ceilings_note(out,
			"memory, gemm, decode: other programs took %.1f cores meanwhile, and the node can do more: measure again "
			"with --fresh when it is idle",
			cores);
}

static void run_part(const struct job *job, const struct part *part, const atomic_bool *stop,
	struct probe_others *others)
{
	const struct probe_share *share =
		(const struct probe_share *)(const void *)((const char *)job->bounds + part->share);
	const struct probe_control control = {
		.stop = stop,
		.rounds = job->bounds->rounds,
		.slot_ns = share->slot_ns,
		.deadline_ns = clock_now_ns() + share->most_ns,
	};
	struct error err = {0};
	const uint64_t begin_ns = clock_now_ns();
	const double before = probe_others_now();
	const int code = part->run(job, &control, &err);
	if (part->cores) {
		others->taken += probe_others_now() - before;
		others->seconds += (double)(clock_now_ns() - begin_ns) / (double)NS_PER_S;
	}
	if (code && !probe_node_is_stopped(stop))
		ceilings_lack(job->out, "%s: %.220s", part->name, err.text);
}

int probe_node(const struct probe_target *target, const struct probe_bounds *bounds,
	const atomic_bool *stop, struct ceilings *out)
{
	const uint64_t begin = clock_now_ns();
	const struct job job = {.target = target, .bounds = bounds, .out = out};
	struct probe_others others = {0};
	ceilings_init(out);
	node_describe(&target->node, out);
	out->measured_at = clock_utc_seconds();
	out->quick = bounds->quick;
	out->file_bytes = probe_file_bytes(target);
	size_t done = 0;
	for (; done < PARTS && !probe_node_is_stopped(stop); done++) {
		log_progress("probing %s (%zu of %d)", parts[done].name, done + 1, PARTS);
		run_part(&job, &parts[done], stop, &others);
	}
	probe_note_others(&others, out);
	log_progress_end();
	out->seconds = (double)(clock_now_ns() - begin) / (double)NS_PER_S;
	out->interrupted = probe_node_is_stopped(stop);
	if (out->interrupted)
		ceilings_lack(out, "interrupted: the rest was not measured");
	return out->interrupted ? -EINTR : 0;
}
