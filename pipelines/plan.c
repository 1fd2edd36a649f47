/* What a configuration will take: counts of threads and buffers, and the bound on memory. */
#include "pipelines/pipeline.h"

#include "harness/base/program.h"
#include "harness/base/units.h"
#include "harness/config/shape.h"
#include "harness/measure/proc_text.h"
#include "harness/measure/timeline.h"
#include "pipelines/checkpoints.h"
#include "pipelines/dither.h"
#include "pipelines/evaluations.h"
#include "workloads/backend/backend.h"
#include "workloads/model/emulated_steps.h"
#include "workloads/model/model.h"
#include "workloads/ranks/gradients.h"
#include "workloads/sample/sample.h"
#include "workloads/source/residency.h"
#include "workloads/source/source.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double MEMORY_SHARE_MAX = 0.9;
static const uint64_t SPLIT_SAVES_LEAST = 16 << 20; /* bytes: worth two kinds of buffers */
static const double SPARE_SHARE_MAX = 0.25;         /* of all pools, for a moment of the warm-up */

#define SCRATCH_KEYS "decode.workers"

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

struct sampler_options plan_sampler(const struct config *config, const struct dataset *dataset)
{
	return (struct sampler_options){
		.seed = (uint64_t)config_integer(config, KEY_RUN_SEED),
		.count = (uint32_t)dataset->count,
		.batch_size = (uint32_t)config_integer(config, KEY_BATCH_SIZE),
		.shuffle = config_integer(config, KEY_READ_ORDER) != READ_ORDER_SEQUENTIAL,
		.by_shards = dataset->offsets && config_integer(config, KEY_READ_ORDER) ==
							 READ_ORDER_SHARDS
				     ? dataset
				     : NULL,
		.window = (uint32_t)config_integer(config, KEY_READ_SHUFFLE_BUFFER),
		.drop_last = config_on(config, KEY_BATCH_DROP_LAST),
		.devices = (uint32_t)config_integer(config, KEY_STEP_DEVICES),
		.rank = program_rank_of(config_integer(config, KEY_RUN_RANKS)),
		.ranks = (uint32_t)config_integer(config, KEY_RUN_RANKS),
		.epochs = (uint64_t)config_integer(config, KEY_MEASURE_EPOCHS),
	};
}

uint32_t plan_slot_samples(const struct sampler_options *sampler)
{
	return sampler->batch_size < sampler->count ? sampler->batch_size : sampler->count;
}

/* How many files are how large: an eighth of an octave each. */
enum { SIZES_AN_OCTAVE = 8, SIZES = 33 * SIZES_AN_OCTAVE };

struct file_sizes {
	uint64_t files[SIZES], most[SIZES]; /* how many, and the largest, in bytes */
};

static void sort_sizes(const struct dataset *dataset, struct file_sizes *sizes)
{
	*sizes = (struct file_sizes){0};
	for (size_t i = 0; i < dataset->count; i++) {
		const uint64_t bytes = dataset->samples[i].bytes;
		const double octaves = bytes > 1 ? log2((double)bytes) : 0;
		const size_t at = (size_t)(octaves * SIZES_AN_OCTAVE);
		sizes->files[at]++;
		sizes->most[at] = bytes > sizes->most[at] ? bytes : sizes->most[at];
	}
}

/* Large buffers for so many files in flight that are large by chance: the mean, and four standard
 * deviations, so that none waits for one in practice. */
static uint32_t large_wanted(uint32_t blobs, uint64_t large, uint64_t files)
{
	const double mean = (double)blobs * (double)large / (double)files;
	const double wanted = ceil(mean + 4 * sqrt(mean)) + 1;
	return wanted < blobs ? (uint32_t)wanted : blobs;
}

/* One file of 15 MB shall not make every blob as large: where most of the pool would be for a few,
 * these get buffers of their own. */
static void split_blobs(const struct dataset *dataset, struct pipeline_plan *plan)
{
	const uint64_t largest = plan->blob_bytes;
	const uint64_t before = plan->blob_pool_bytes;
	struct file_sizes sizes;
	uint64_t large = dataset->count;
	uint64_t best = before > SPLIT_SAVES_LEAST ? before - SPLIT_SAVES_LEAST : 0;
	best = best < before / 2 ? best : before / 2;
	sort_sizes(dataset, &sizes);
	for (size_t i = 0; i < SIZES; i++) {
		large -= sizes.files[i];
		if (sizes.files[i] == 0 || large == 0)
			continue;
		const uint64_t room = round_up(sizes.most[i], READ_ALIGN_BYTES);
		const uint32_t wanted = large_wanted(plan->blobs, large, dataset->count);
		const uint64_t bytes = plan->blobs * room + wanted * largest;
		if (bytes >= best)
			continue;
		best = bytes;
		plan->blob_bytes = (uint32_t)room;
		plan->large_blobs = wanted;
		plan->large_blob_bytes = (uint32_t)largest;
		plan->blob_pool_bytes = bytes;
	}
}

static void size_blobs(const struct dataset *dataset, struct pipeline_plan *plan)
{
	plan->blob_bytes = plan->facts.reads_memory
				   ? 0
				   : (uint32_t)round_up(dataset->max_bytes, READ_ALIGN_BYTES);
	plan->blob_pool_bytes = (uint64_t)plan->blobs * plan->blob_bytes;
	/* A worker's own takes any file: it waits for no large one. */
	if (plan->blob_pool_bytes > SPLIT_SAVES_LEAST && !plan->by_workers)
		split_blobs(dataset, plan);
}

/* So many more that at twice the depth files wait for workers as at the set one (harness/config/shape.c), but not more than are
 * in flight in addition. */
static uint32_t spare_blobs(const struct pipeline_plan *plan)
{
	const uint32_t wanted = 2 * plan->depths.twice + 2 * plan->decode_workers;
	const uint32_t most = plan->depths.twice - plan->depths.set;
	const uint32_t more = wanted > plan->blobs ? wanted - plan->blobs : 0;
	return more < most ? more : most;
}

/* Buffers for twice the depth, where they are small beside all pools.  After the pools were summed up. */
static void add_spare_buffers(
	const struct config *config, const struct dataset *dataset, struct pipeline_plan *plan)
{
	struct depth_plan *const d = &plan->depths;
	const double limit = (double)process_memory_limit() * MEMORY_SHARE_MAX;
	if (d->twice == 0)
		return;
	d->spare_blobs = spare_blobs(plan);
	d->spare_bytes = (uint64_t)d->spare_blobs * plan->blob_bytes;
	if (plan->large_blobs > 0) {
		/* As there would be of so many, in proportion. */
		d->spare_large_blobs = (uint32_t)(((uint64_t)plan->large_blobs * d->spare_blobs +
							  plan->blobs - 1) /
						  plan->blobs);
		d->spare_bytes += (uint64_t)d->spare_large_blobs * plan->large_blob_bytes;
	}
	d->spare_source_bytes = source_spare_bytes(config, dataset, d->twice / plan->readers);
	const double pools = (double)plan->pool_bytes;
	const double more = (double)d->spare_bytes + (double)d->spare_source_bytes;
	if (more > SPARE_SHARE_MAX * pools || pools + more > limit) {
		char text[UNITS_BYTES];
		dither_plan_not_twice(
			d, "buffers for it would take %s more", units_format_size(more, text));
	}
	plan->blob_pool_bytes += d->spare_bytes;
	plan->source_bytes += d->spare_source_bytes;
	plan->pool_bytes += d->spare_bytes + d->spare_source_bytes;
}

static void size_batches(const struct sampler_options *sampler, struct pipeline_plan *plan)
{
	const uint32_t slot_samples = plan_slot_samples(sampler);
	plan->batch_bytes =
		sample_room(slot_samples * (plan->sample.raw_bytes > 0 ? plan->sample.raw_bytes
								       : plan->sample.bytes));
	const uint64_t slot_bytes =
		plan->batch_bytes +
		slot_samples * (plan->sample.note_bytes + plan->sample.label_bytes);
	plan->slot_pool_bytes = plan->slots * slot_bytes;
	/* On a device they are in its memory. */
	plan->ticket_bytes =
		plan->by_workers ? plan->slots * slot_samples * sizeof(struct ticket) : 0;
	plan->staging_bytes =
		plan->facts.step_has_memory ? 0 : plan->devices * plan->staging_slots * slot_bytes;
	const uint64_t used = sampler_used(sampler);
	plan->batches_per_epoch = (used + sampler->batch_size - 1) / sampler->batch_size;
}

static void count_parts(
	const struct config *config, const struct dataset *dataset, struct pipeline_plan *plan)
{
	const struct shape_facts facts = {.samples = dataset->count,
		.sample_bytes = (double)dataset->total_bytes / (double)dataset->count,
		.workload = plan->facts};
	struct pipeline_shape shape;
	pipeline_shape_of(config, &facts, &shape);
	plan->by_workers = shape.by_workers;
	plan->whole_batches = shape.whole_batches;
	plan->turns = shape.turns;
	plan->prefetch_depth = shape.prefetch_depth;
	plan->readers = shape.reader_threads;
	plan->reader_threads = shape.by_workers ? 0 : shape.reader_threads;
	/* As configured where reads block, too: so many free buffers wake a reader. */
	plan->read_depth = shape_read_depth(config);
	plan->reader_takes = shape.reader_takes;
	plan->decode_workers = shape.decode_workers;
	plan->step_threads = (unsigned)config_integer(config, KEY_STEP_THREADS);
	plan->blobs = shape.blobs;
	plan->slots = shape.slots;
	plan->staging_slots = shape.staging_slots;
	plan->devices = shape.devices;
}

/* The keys of the largest part, to say what to turn down. */
static void largest_part(const struct pipeline_plan *plan, char *out, size_t room)
{
	const char *const size_key = plan->kind->size_key;
	char slots[128] = "batch.size and prefetch.depth";
	if (plan->sample.raw_bytes > 0)
		(void)snprintf(slots, sizeof slots, "batch.size and prefetch.depth, or set %s",
			plan->kind->device->off);
	else if (size_key)
		(void)snprintf(slots, sizeof slots, "batch.size, prefetch.depth and %s", size_key);
	const char *const source_keys = plan->facts.reads_memory ? "read.engine = memory"
					: plan->by_workers
						? "decode.workers and read.connections"
						: "read.threads, read.connections and read.depth";
	const struct {
		uint64_t bytes;
		const char *keys;
	} parts[] = {
		{plan->slot_pool_bytes, slots},
		{plan->blob_pool_bytes, plan->by_workers
						? SCRATCH_KEYS
						: "read.threads, read.depth and decode.queue"},
		{plan->staging_bytes, "upload.depth and batch.size"},
		{plan->source_bytes, source_keys},
		{plan->scratch_bytes, SCRATCH_KEYS},
		{plan->backend_bytes, "step.model"},
		{plan->timeline_bytes, "trace.schedule"},
		{plan->checkpoint_memory, "checkpoint.bytes (or set checkpoint.mode = sync)"},
		{plan->evaluation_memory, "evaluate.batch_size and evaluate.workers"},
	};
	size_t most = 0;
	for (size_t i = 1; i < sizeof parts / sizeof *parts; i++)
		if (parts[i].bytes > parts[most].bytes)
			most = i;
	(void)snprintf(out, room, "%s", parts[most].keys);
}

static int plan_check_memory(
	const struct pipeline_plan *plan, const struct dataset *dataset, struct error *err)
{
	const double limit = (double)process_memory_limit() * MEMORY_SHARE_MAX;
	if ((double)plan->pool_bytes <= limit)
		return 0;
	char needed[UNITS_BYTES];
	char room[UNITS_BYTES];
	char advice[320];
	char keys[128];
	largest_part(plan, keys, sizeof keys);
	(void)snprintf(advice, sizeof advice, "turn down %s", keys);
	if (strcmp(keys, SCRATCH_KEYS) == 0) {
		char largest[192];
		sample_describe_largest(plan->kind, dataset, largest, sizeof largest);
		(void)snprintf(advice, sizeof advice, "%s%s, which each decode worker has room for",
			plan->decode_workers > 1 ? "turn down " SCRATCH_KEYS ", or take out "
						 : "take out ",
			largest);
	}
	return error_set(err, -EINVAL,
		"pools of %s do not fit into 90%% of this machine's memory, %s: %s",
		units_format_size((double)plan->pool_bytes, needed), units_format_size(limit, room),
		advice);
}

/* As config_validate has it of backends that are named.  The null step wants no samples. */
static int check_device_makes(const struct config *config, const struct pipeline_plan *plan,
	const struct backend_ops *ops, const char *why_not, struct error *err)
{
	if (plan->sample.raw_bytes == 0)
		return 0;
	const struct sample_device_ops *const device = plan->kind->device;
	if (!backend_is_device(ops) && !ops->null)
		return error_set(err, -ENOTSUP,
			"%s: the step's backend is '%s' here, which makes no samples (%s): set %s",
			device->on, ops->name, why_not, device->off);
	if (!backend_is_device(ops) && config_integer(config, KEY_UPLOAD_MODE) == UPLOAD_MODE_COPY)
		return error_set(err, -EINVAL,
			"%s does not go with upload.mode = copy where step.backend = %s",
			device->on, ops->name);
	return 0;
}

/* A backend that computes takes a class for each sample, or tokens; others do not look at batches. */
static int check_step_takes(const struct config *config, const struct pipeline_plan *plan,
	const struct backend_ops *ops, struct error *err)
{
	if (ops->null || ops->emulated)
		return 0;
	const struct model *const model = model_find(config_text(config, KEY_STEP_MODEL));
	const bool sequences = plan->sample.shape.tokens > 0;
	if (sequences && ops->takes_tokens && model && model->tokens > 0)
		return 0;
	if (sequences && ops->takes_tokens)
		return error_set(err, -EINVAL,
			"step.model = %s has no embedding, and takes no tokens: set step.model = gpt2_small, or step.backend = emulated or null",
			config_text(config, KEY_STEP_MODEL));
	if (plan->sample.label_bytes == sizeof(uint32_t) && plan->sample.shape.type != BATCH_INT32)
		return 0;
	return error_set(err, -EINVAL,
		"step.backend = %s computes on float32 or uint8 and one class for each sample, and sample.kind = %s has others: set step.backend = %semulated or null",
		ops->name, plan->kind->name, sequences ? "openblas, " : "");
}

static int plan_describe_step_here(
	const struct config *config, struct pipeline_plan *plan, struct error *err)
{
	char why_not[BACKEND_WHY_BYTES] = "";
	const struct backend_ops *ops = backend_choose(config, why_not, sizeof why_not, err);
	if (!ops)
		return -ENOTSUP;
	char outline[sizeof plan->step_description] = "";
	if (ops->outline)
		(void)ops->outline(config, outline, sizeof outline);
	(void)snprintf(plan->step_description, sizeof plan->step_description, "%s: %.200s",
		ops->name, *outline ? outline : ops->summary);
	int code = backend_validate(config, err);
	if (!code)
		code = check_step_takes(config, plan, ops, err);
	return code ? code : check_device_makes(config, plan, ops, why_not, err);
}

/* Not one batch an epoch, or not one for each device, or rank. */
static int refuse_no_batch(const struct sampler_options *sampler, struct error *err)
{
	const struct sampler_options alone = {.count = sampler->count,
		.batch_size = sampler->batch_size,
		.drop_last = sampler->drop_last};
	const uint32_t used = sampler_used(&alone);
	if (used > 0)
		return error_set(err, -EINVAL,
			"%s = %u is more than the data set's %u batch%s of batch.size = %u: each gets one in every step; lower batch.size, or raise dataset.samples",
			sampler->ranks > 1 ? "run.ranks" : "step.devices",
			sampler->ranks > 1 ? sampler->ranks : sampler->devices,
			(used + sampler->batch_size - 1) / sampler->batch_size,
			used > sampler->batch_size ? "es" : "", sampler->batch_size);
	return error_set(err, -EINVAL,
		"batch.size = %u is larger than the data set's %u samples, and batch.drop_last is on: set batch.size to %u or less, or batch.drop_last to off",
		sampler->batch_size, sampler->count, sampler->count);
}

static int check_data(
	const struct sampler_options *sampler, const struct dataset *dataset, struct error *err)
{
	if (dataset->count == 0)
		return error_set(err, -EINVAL, "the data set '%s' has no samples", dataset->root);
	if (dataset->count > UINT32_MAX || dataset->max_bytes > UINT32_MAX - READ_ALIGN_BYTES)
		return error_set(err, -EINVAL,
			"the data set '%s' has more samples, or larger files, than 2^32",
			dataset->root);
	if (sampler_used(sampler) == 0)
		return refuse_no_batch(sampler, err);
	return 0;
}

/* As config_validate has it of what a configuration alone says. */
static int check_planted(
	const struct config *config, const struct pipeline_plan *plan, struct error *err)
{
	const bool planted = config_real(config, KEY_INJECT_UPLOAD_FACTOR) > 1 ||
			     config_real(config, KEY_INJECT_UPLOAD_BANDWIDTH) > 0;
	if (!planted || plan->staging_slots > 0)
		return 0;
	return error_set(err, -EINVAL,
		"'inject.upload_factor' and 'inject.upload_bandwidth' slow the copy of batches, and with step.backend = %s there is none: they need 'upload.mode' = copy",
		plan->step_description);
}

static struct workload_facts facts_of(const struct sample_ops *kind,
	const struct source_ops *source, const struct backend_ops *backend)
{
	return (struct workload_facts){.reads_memory = source && source->immediate,
		.reads_block = source && source->blocking,
		.uses_codecs = kind->uses_codecs,
		.step_null = backend && backend->null,
		.step_emulated = backend && backend->emulated,
		.step_on_cores = backend && backend->on_cores,
		.step_has_memory = backend && backend_is_device(backend)};
}

struct workload_facts pipeline_facts(const struct config *config)
{
	return facts_of(sample_kind_of(config), source_choose(config, NULL, 0, NULL),
		backend_choose(config, NULL, 0, NULL));
}

enum {
	/* Entries of a sample at most: its file in two parts, the visits of a reader, open, read and close, the
	 * sample with its sub-stages, the depth of the queue twice, a change of state four times. */
	ENTRIES_PER_SAMPLE = 26,
	/* Of a step, and of each thread in it: copies and steps with their parts, states cut at its end. */
	ENTRIES_PER_STEP = 32,
	ENTRIES_PER_THREAD = 8,
	STREAMS_PER_DEVICE = 2,
	QUEUES = 2, /* beside one of uploaded batches for each device */
};

static bool plan_has_timeline(const struct config *config, struct step_schedule *schedule)
{
	const char *text = config_text(config, KEY_TRACE_SCHEDULE);
	return *text && !step_schedule_parse(text, schedule) &&
	       config_on(config, KEY_MEASURE_PROFILER);
}

static uint64_t entries_for(const struct step_schedule *schedule, uint64_t per_step)
{
	/* The step before each window is kept, too. */
	const uint64_t kept = step_schedule_kept(schedule);
	const uint64_t steps = kept < UINT64_MAX ? kept + schedule->repeat : kept;
	return steps > TIMELINE_ENTRIES_MAX / per_step ? TIMELINE_ENTRIES_MAX : steps * per_step;
}

/* Fills the timeline_ members from the other ones. */
static void plan_timeline(const struct config *config, struct pipeline_plan *plan)
{
	struct step_schedule schedule;
	if (!plan_has_timeline(config, &schedule))
		return;
	const unsigned uploads = plan->staging_slots > 0 ? plan->devices : 0;
	const bool ranks = config_integer(config, KEY_RUN_RANKS) > 1;
	const unsigned threads = plan->readers + plan->decode_workers + uploads + plan->devices +
				 (plan->devices > 1 || ranks ? plan->devices : 0) +
				 (plan->checkpoint_bytes > 0) + (plan->evaluation_samples > 0);
	const uint64_t samples = (uint64_t)config_integer(config, KEY_BATCH_SIZE) * plan->devices;
	const uint64_t per_step = samples * ENTRIES_PER_SAMPLE + plan->devices * ENTRIES_PER_STEP +
				  threads * ENTRIES_PER_THREAD;
	plan->timeline_logs = threads + STREAMS_PER_DEVICE * plan->devices + QUEUES + uploads;
	plan->timeline_entries = entries_for(&schedule, per_step);
	plan->timeline_bytes = timeline_bytes(plan->timeline_entries, plan->timeline_logs);
}

int pipeline_plan_samples(const struct config *config, const struct dataset *dataset,
	struct pipeline_plan *plan, struct error *err)
{
	const struct sampler_options sampler = plan_sampler(config, dataset);
	int code = check_data(&sampler, dataset, err);
	if (!code)
		code = sample_validate(config, err);
	if (code)
		return code;
	plan->kind = sample_kind_of(config);
	sample_sizes_of(config, dataset, &plan->sample);
	char why_not[128] = "";
	const struct source_ops *source = source_choose(config, why_not, sizeof why_not, err);
	if (!source)
		return -ENOTSUP;
	if (config_integer(config, KEY_READ_CACHE) == READ_CACHE_COLD &&
		residency_evictable(dataset->root, err))
		return -ENOTSUP;
	code = plan_describe_step_here(config, plan, err);
	if (code)
		return code;
	plan->facts = facts_of(plan->kind, source, backend_choose(config, NULL, 0, NULL));
	plan->facts.reads_large = source_reads_large(config, dataset);
	plan->source_bytes = source_bytes(config, dataset);
	count_parts(config, dataset, plan);
	code = check_planted(config, plan, err);
	if (code)
		return code;
	size_blobs(dataset, plan);
	size_batches(&sampler, plan);
	plan->scratch_bytes = plan->decode_workers * sample_scratch_bytes(config, dataset);
	plan->backend_bytes =
		plan->devices * backend_bytes(config, plan->sample.values, plan->sample.classes);
	if (config_integer(config, KEY_RUN_RANKS) > 1 && !plan->facts.step_has_memory)
		plan->backend_bytes += gradients_memory((uint64_t)model_gradient_bytes(config));
	code = checkpoints_plan(config, dataset, plan, err);
	if (!code)
		code = evaluations_plan(config, dataset, plan, err);
	if (code)
		return code;
	plan_timeline(config, plan);
	plan->pool_bytes = plan->blob_pool_bytes + plan->slot_pool_bytes + plan->staging_bytes +
			   plan->source_bytes + plan->scratch_bytes + plan->backend_bytes +
			   plan->ticket_bytes + plan->timeline_bytes + plan->checkpoint_memory +
			   plan->evaluation_memory + sampler_bytes(&sampler);
	code = plan_check_memory(plan, dataset, err);
	dither_plan(config, source, plan);
	add_spare_buffers(config, dataset, plan);
	return code;
}

int pipeline_plan(const struct config *config, const struct dataset *dataset,
	struct pipeline_plan *plan, struct error *err)
{
	struct dataset samples;
	*plan = (struct pipeline_plan){0};
	int code = sample_cut_files(config, dataset, &samples, err);
	if (!code)
		code = pipeline_plan_samples(config, &samples, plan, err);
	plan->samples = samples.count;
	sample_cut_release(&samples, dataset);
	return code;
}
