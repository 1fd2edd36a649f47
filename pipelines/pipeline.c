/* The wiring of a repetition: opens everything in order, starts the threads, conducts, and takes
 * it all down again, from wherever it got to. */
#include "pipelines/pipeline.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/log.h"
#include "harness/measure/timeline.h"
#include "pipelines/live_feed.h"
#include "pipelines/repetition.h"
#include "workloads/backend/backend.h"
#include "workloads/model/emulated_steps.h"
#include "workloads/source/limiter.h"
#include "workloads/source/residency.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SEGMENTS_LEAST = 4,
	SEGMENT_BUDGET_BYTES = 16 << 20, /* for the service histograms of all threads */
	JOIN_PATIENCE = 20,              /* steps that a thread may take to end */
};

static const struct pipeline_limits usual_limits = {
	.no_progress_ns = 60 * NS_PER_S,
	.join_ns = 30 * NS_PER_S,
};

static int no_memory(struct error *err)
{
	return error_set(err, -ENOMEM, "out of memory for the pools of the pipeline");
}

/* --- opening --------------------------------------------------------------------------------- */

static void choose_times(struct run *run)
{
	const bool by_epochs = config_integer(run->config, KEY_MEASURE_EPOCHS) > 0;
	run->warmup_ns = (uint64_t)config_integer(run->config, KEY_MEASURE_WARMUP);
	run->duration_ns =
		by_epochs ? 0 : (uint64_t)config_integer(run->config, KEY_MEASURE_DURATION);
	const uint64_t planned_ns =
		by_epochs ? 0 : run->warmup_ns + run->duration_ns + dither_longer_ns(run->config);
	uint64_t window_ns = (uint64_t)config_integer(run->config, KEY_MEASURE_WINDOW);
	while (planned_ns / window_ns >= WINDOWS_MAX)
		window_ns *= 2;
	run->monitor.window_ns = window_ns;
}

static int open_stage(
	struct run *run, enum stage_id id, unsigned workers, bool per_batch, unsigned segments)
{
	struct stage *stage = &run->stages[id];
	*stage = (struct stage){.name = stage_name(id), .workers = workers, .per_batch = per_batch};
	if (!run->timed || workers == 0)
		return 0;
	stage->meters = thread_meters_open(workers, segments);
	if (!stage->meters)
		return -ENOMEM;
	/* Where reads are immediate they take no time. */
	if (id == STAGE_READ && (!run->plan.facts.reads_memory || limiter_wanted(run->config)) &&
		thread_meters_add_ramps(stage->meters, workers))
		return -ENOMEM;
	const bool on_device =
		(id == STAGE_STEP || id == STAGE_UPLOAD) && run->plan.facts.step_has_memory;
	return on_device ? thread_meters_add_devices(stage->meters, workers) : 0;
}

static unsigned count_ranks(const struct run *run)
{
	return (unsigned)config_integer(run->config, KEY_RUN_RANKS);
}

static int open_gradients(struct run *run, struct error *err)
{
	if (!run->ranks)
		return 0;
	return run->ranks->open_gradients(&run->gradients,
		&(const struct gradients_options){.ranks = run->ranks,
			.count = count_ranks(run),
			.bytes = (uint64_t)model_gradient_bytes(run->config),
			.bucket_bytes = (uint64_t)config_integer(run->config, KEY_SYNC_BUCKET),
			.overlap = config_on(run->config, KEY_SYNC_OVERLAP),
			.on_device = run->group},
		err);
}

static int open_stages(struct run *run)
{
	const struct pipeline_plan *plan = &run->plan;
	const unsigned uploads = plan->staging_slots > 0 ? plan->devices : 0;
	const unsigned syncs = plan->devices > 1 || run->ranks ? plan->devices : 0;
	const unsigned threads =
		plan->readers + plan->decode_workers + uploads + plan->devices + syncs + 2;
	uint64_t segments = SEGMENT_BUDGET_BYTES / (threads * sizeof(struct histogram)) / 2 * 2;
	segments = segments < SEGMENTS_LEAST ? SEGMENTS_LEAST : segments;
	segments = segments > SERVICE_SEGMENTS_MAX ? SERVICE_SEGMENTS_MAX : segments;
	const uint64_t planned_ns = run->duration_ns > 0 ? run->warmup_ns + run->duration_ns : 0;
	const uint64_t windows = planned_ns / run->monitor.window_ns / segments + 1;
	run->segment_ns = windows * run->monitor.window_ns;
	const unsigned n = (unsigned)segments;
	int code = open_stage(run, STAGE_READ, plan->readers, false, n);
	if (!code)
		code = open_stage(run, STAGE_DECODE, plan->decode_workers, false, n);
	if (!code)
		code = open_stage(run, STAGE_UPLOAD, uploads, true, n);
	if (!code)
		code = open_stage(run, STAGE_STEP, plan->devices, true, n);
	if (!code)
		code = open_stage(run, STAGE_SYNC, syncs, true, n);
	if (!code)
		code = open_stage(run, STAGE_CHECKPOINT, plan->checkpoint_bytes > 0, true, n);
	if (!code)
		code = open_stage(run, STAGE_EVALUATE, plan->evaluation_samples > 0, true, n);
	run->stages[STAGE_SYNC].threadless = true;
	run->stages[STAGE_CHECKPOINT].threadless = !plan->checkpoint_async;
	run->stages[STAGE_EVALUATE].threadless = true;
	return code;
}

static void attach_stage(struct run *run, struct stage *stage, bool leads)
{
	for (unsigned i = 0; i < stage->workers; i++) {
		struct timeline_log *log =
			timeline_add_log(run->timeline, TIMELINE_THREAD, stage->name, i);
		if (!log)
			return;
		log->clock = &stage->meters[i].clock;
		log->leads = leads && i == 0;
		log->lone = stage->workers == 1;
		stage->meters[i].clock.timeline = log;
	}
}

/* After the stages and before the exchange. */
static int open_timeline(struct run *run)
{
	struct step_schedule schedule;
	if (!run->wants_timeline || run->plan.timeline_logs == 0 ||
		step_schedule_parse(config_text(run->config, KEY_TRACE_SCHEDULE), &schedule))
		return 0;
	const int code = timeline_open(
		&run->timeline, &schedule, run->plan.timeline_entries, run->plan.timeline_logs);
	if (code)
		return code;
	struct timeline *const t = run->timeline;
	t->batches_per_epoch = run->plan.batches_per_epoch;
	t->batch_size = (uint32_t)config_integer(run->config, KEY_BATCH_SIZE);
	t->devices = run->plan.devices;
	t->emulated = run->backend->emulated;
	t->by_workers = run->plan.by_workers;
	t->of_ranks = run->ranks;
	for (int id = 0; id < STAGE_IDS; id++)
		if (run->stages[id].meters)
			attach_stage(run, &run->stages[id], id == STAGE_STEP);
	return 0;
}

_Static_assert((int)PIPELINE_POOLS == (int)POOL_STAGING + 1, "a block for each pool");

static int open_pools(struct run *run, struct error *err)
{
	const struct pipeline_plan *plan = &run->plan;
	const bool huge = config_on(run->config, KEY_READ_HUGE_PAGES);
	const struct {
		enum placement_pool pool;
		struct memory_block *block;
		size_t bytes;
		bool huge;
	} pools[] = {
		{POOL_BLOBS, &run->blob_block, plan->blob_pool_bytes, huge},
		{POOL_SLOTS, &run->slot_block, plan->slot_pool_bytes, false},
		{POOL_STAGING, &run->staging_block, plan->staging_bytes, false},
	};
	int code = 0;
	for (size_t i = 0; i < COUNT(pools) && !code; i++) {
		if (run->kept) {
			*pools[i].block = run->kept->blocks[pools[i].pool];
			run->kept->blocks[pools[i].pool] = (struct memory_block){0};
		}
		if (pools[i].bytes > 0)
			code = placement_map(&run->placement, pools[i].pool, pools[i].block,
				pools[i].bytes, pools[i].huge);
		else
			memory_unmap(pools[i].block);
	}
	return code ? no_memory(err) : 0;
}

static int open_exchange(struct run *run, struct error *err)
{
	const struct pipeline_plan *plan = &run->plan;
	struct sampler_options sampler = plan_sampler(run->config, run->dataset);
	sampler.alike = run->evaluates;
	uint8_t *const slots = run->slot_block.data;
	const uint32_t slot_samples = plan_slot_samples(&sampler);
	const struct exchange_options options = {
		.sampler = sampler,
		.lookahead = source_lookahead(run->config, run->dataset),
		.reads_large = plan->facts.reads_large,
		.blobs = plan->blobs,
		.blob_bytes = plan->blob_bytes,
		.blob_memory = run->blob_block.data,
		.large_blobs = plan->large_blobs,
		.large_bytes = plan->large_blob_bytes,
		.spare_blobs = plan->depths.spare_blobs,
		.spare_large_blobs = plan->depths.spare_large_blobs,
		.samples = run->dataset->samples,
		.slots = plan->slots,
		.prefetch_depth = plan->prefetch_depth,
		.slot_memory = slots,
		.label_memory = slots + plan_labels_at(plan, plan->slots, slot_samples),
		.note_memory = plan->sample.note_bytes > 0
				       ? slots + plan_notes_at(plan, plan->slots)
				       : NULL,
		.slot_samples = slot_samples,
		.slot_bytes = plan->batch_bytes,
		.label_bytes = plan->sample.label_bytes,
		.note_bytes = plan->sample.note_bytes,
		.in_order = config_integer(run->config, KEY_BATCH_ORDER) == BATCH_ORDER_IN_ORDER,
		.by_workers = plan->by_workers,
		.whole_batches = plan->whole_batches,
		.turns = plan->turns,
		.epochs_apart = !config_on(run->config, KEY_DECODE_PERSISTENT),
		.startup_ns = (uint64_t)config_integer(run->config, KEY_DECODE_STARTUP),
		.held = run->evaluates,
		.lanes = plan->devices,
		.workers = plan->decode_workers,
		.readers = plan->reader_threads,
		.read_depth = plan->read_depth > plan->reader_takes ? plan->read_depth
								    : plan->reader_takes,
		.depth = plan->depths.longer_ns > 0 ? plan->depths.set : 0,
		.cores = run->cores,
		.stopping = &run->crew.stopping,
		.samples_timeline = run_timeline_log(run, TIMELINE_QUEUE, "samples", 0),
		.batches_timeline = run_timeline_log(run, TIMELINE_QUEUE, "batches", 0),
	};
	return exchange_open(&run->exchange, &options) ? no_memory(err) : 0;
}

static void wake_everybody(void *context)
{
	struct run *run = context;
	exchange_wake_all(&run->exchange);
	for (unsigned i = 0; i < run->devices.count; i++)
		if (run->devices.uploads[i])
			upload_wake(run->devices.uploads[i]);
	checkpoints_wake(run);
	evaluations_wake(run->evaluations);
}

static int open_crew(struct run *run, struct error *err)
{
	const struct pipeline_plan *plan = &run->plan;
	const unsigned uploads = plan->staging_slots > 0 ? plan->devices : 0;
	const unsigned threads = plan->reader_threads + plan->decode_workers + uploads +
				 plan->devices + plan->checkpoint_async;
	const int code = crew_open(&run->crew, threads, wake_everybody, run);
	if (code)
		return error_set_errno(err, -code, "cannot make the start gate");
	run->crew_is_open = true;
	run->crew.stepping = plan->devices;
	run->devices.count = plan->devices;
	return 0;
}

/* Looking takes one part in so many of a repetition, and LOOK_LEAST_MS where that is less or not known. */
enum { LOOK_SHARE = 50, LOOK_LEAST_MS = 3 };
static const double COLD_BELOW = 0.01, WARM_ABOVE = 0.99;

static double cache_state_share(const struct residency *residency)
{
	return residency->total_pages > 0
		       ? (double)residency->resident_pages / (double)residency->total_pages
		       : 0;
}

static int cache_state_check(enum read_cache wanted, double resident, struct error *err)
{
	if (wanted == READ_CACHE_COLD && resident >= COLD_BELOW)
		return error_set(err, -EBUSY,
			"read.cache = cold, but %.2f %% of the data set is in the page cache",
			resident * 100);
	if (wanted == READ_CACHE_WARM && resident < WARM_ABOVE)
		return error_set(err, -EBUSY,
			"read.cache = warm, but only %.2f %% of the data set is in the page cache",
			resident * 100);
	return 0;
}

/* As it is: knowing how much is resident is good, but no reason to fail or to wait long. */
static void cache_state_look(
	const struct config *config, const struct dataset *dataset, struct measurement *m)
{
	const uint64_t planned_ns = (uint64_t)(config_integer(config, KEY_MEASURE_DURATION) +
					       config_integer(config, KEY_MEASURE_WARMUP));
	const uint64_t least_ns = LOOK_LEAST_MS * NS_PER_MS;
	const uint64_t most_ns = planned_ns / LOOK_SHARE;
	struct error why;
	struct residency residency;
	if (residency_measure(dataset, most_ns > least_ns ? most_ns : least_ns, &residency, &why)) {
		measurement_note(m, "page cache before: not measured, %.160s", why.text);
		return;
	}
	m->resident_before = cache_state_share(&residency);
	if (residency.asked < dataset->files)
		measurement_note(m,
			"page cache before: %llu of %llu files were asked, in the time allowed",
			(unsigned long long)residency.asked, (unsigned long long)dataset->files);
}

/* read.cache: brings the page cache into the state that was asked for, and proves it; before the
 * clock starts. -EBUSY: cold (warm) was asked for and more than 1 % (less than 99 %) was
 * resident. */
static int cache_state_prepare(const struct run *run, struct error *err)
{
	const enum read_cache wanted = (enum read_cache)config_integer(run->config, KEY_READ_CACHE);
	const struct dataset *const dataset = run->dataset;
	struct measurement *const m = run->m;
	m->resident_before = NAN;
	if (run->plan.facts.reads_memory)
		return 0;
	if (wanted != READ_CACHE_WARM && !store_find(dataset->root)->local) {
		m->resident_before = 0;
		if (wanted == READ_CACHE_COLD)
			measurement_note(m,
				"read.cache = cold: this node caches nothing of %s; the server's cache is not ours to empty",
				store_find(dataset->root)->summary);
		return 0;
	}
	if (wanted == READ_CACHE_AS_IS) {
		cache_state_look(run->config, dataset, m);
		return 0;
	}
	struct residency after = {0};
	const int code = wanted == READ_CACHE_COLD ? residency_evict(dataset, &after, err)
						   : residency_warm(dataset, &after, err);
	if (code)
		return code;
	m->resident_before = cache_state_share(&after);
	return cache_state_check(wanted, m->resident_before, err);
}

static int open_source(struct run *run, struct error *err)
{
	int code = cache_state_prepare(run, err);
	if (code)
		return code;
	struct depth_plan *const depths = &run->plan.depths;
	const unsigned most = depths->twice / run->plan.readers;
	code = source_open(&run->source, run->config, run->dataset, run->blob_block.data,
		run->blob_block.size - (size_t)depths->spare_bytes, most, err);
	if (code)
		return code;
	if (run->source->depth_most < most)
		dither_plan_not_twice(depths, "too few files can be open at once (ulimit -n)");
	measurement_note(run->m, "read engine %s%s%s%.200s", run->source->ops->name,
		run->plan.by_workers ? ", by the decode workers" : "",
		run->source->notes[0] ? ": " : "", run->source->notes);
	if (!run->blob_block.data)
		return 0;
	const char *const pages = memory_pages_name(run->blob_block.pages);
	measurement_note(run->m, "read buffers on %s", pages);
	if (run->blob_block.size >= MEMORY_HUGE_LEAST_BYTES)
		(void)snprintf(run->m->read_pages, sizeof run->m->read_pages, "%s", pages);
	return 0;
}

static struct overhead_facts run_overhead_facts(const struct run *run)
{
	return (struct overhead_facts){.batch_bytes = run->plan.batch_bytes,
		.samples = run->dataset->count,
		.step_null = run->plan.facts.step_null};
}

int run_open_loader(struct run *run, struct error *err)
{
	const struct overhead_facts facts = run_overhead_facts(run);
	run->overhead = overhead_of(run->config, &facts);
	int code = open_pools(run, err);
	if (!code)
		code = open_exchange(run, err);
	return code ? code : open_source(run, err);
}

static int choose_backend(struct run *run, struct error *err)
{
	char why_not[BACKEND_WHY_BYTES] = "";
	run->backend = backend_choose(run->config, why_not, sizeof why_not, err);
	if (run->backend && why_not[0])
		measurement_note(run->m, "step.backend = auto: %s", why_not);
	return run->backend ? 0 : -ENOTSUP;
}

static int open_run(struct run *run, struct error *err)
{
	int code = choose_backend(run, err);
	if (code)
		return code;
	injection_announce(run->config, run->m);
	const struct overhead_facts facts = run_overhead_facts(run);
	overhead_announce(run->config, &facts, run->m);
	/* The processes of inject.cpu_hog and memory_hog are forked while no thread of ours runs. */
	run->injection_is_open = true;
	code = injection_open(&run->injection, run->config, err);
	if (!code)
		code = placement_open(&run->placement, run->config,
			&(const struct placement_threads){
				.decode = run->plan.decode_workers,
				.read = run->plan.reader_threads,
				.devices = run->plan.devices,
				.step = run->plan.step_threads,
				.has_upload = run->plan.staging_slots > 0,
			},
			err);
	if (!code)
		code = open_crew(run, err);
	if (!code) {
		code = bad_samples_open(&run->bad);
		run->bad_is_open = code == 0;
	}
	if (!code && (open_stages(run) || open_timeline(run) ||
			     monitor_open(&run->monitor, &run->placement, run->dataset->root)))
		code = no_memory(err);
	if (!code) {
		const struct sampler_options sampler = plan_sampler(run->config, run->dataset);
		run->first_epoch = first_epoch_of(&sampler, run->plan.kind, &run->plan.sample,
			config_on(run->config, KEY_RUN_VERIFY));
	}
	if (!code && rounds_open(&run->rounds, run->plan.devices, run->stages[STAGE_SYNC].meters))
		code = no_memory(err);
	if (!code && run->ranks && lateness_open(&run->rounds.lateness))
		code = no_memory(err);
	if (!code)
		code = backend_group_open(&run->group, run->config, run->ranks, err);
	if (!code)
		code = open_gradients(run, err);
	if (!code)
		code = checkpoints_open(run, err);
	if (!code)
		code = run_open_loader(run, err);
	return code ? code : evaluations_open(run, err);
}

/* --- ranks ------------------------------------------------------------------------------------ */

/* All start their threads together, and begin together, or none does: who could not says so. */
static int begin_together(struct run *run, int code, struct error *err)
{
	return run->ranks ? ranks_agree(run->ranks, count_ranks(run), code, err) : code;
}

/* --- running --------------------------------------------------------------------------------- */

static void keep_read_points(const struct run *run)
{
	const struct dither *const dither = &run->dither;
	struct measurement *const m = run->m;
	if (run->plan.depths.why_not[0])
		measurement_note(m, "%s", run->plan.depths.why_not);
	if (dither->note[0])
		measurement_note(m, "%s", dither->note);
	memcpy(m->read_points, dither->points, sizeof m->read_points);
	m->read_point_count = dither->point_count;
}

static int pipeline_finish(struct run *run, struct traces *traces, struct error *err)
{
	struct measurement *m = run->m;
	if (run->crew.code) {
		const struct run *const loader = evaluations_failed(run->evaluations)
							 ? evaluations_loader(run->evaluations)
							 : run;
		*err = run->crew.error;
		return run->crew.code == -EBADMSG
			       ? bad_samples_name_first(&loader->bad, loader->dataset, err)
			       : run->crew.code;
	}
	measurement_note(m, "step: %s", stepper_account(run->devices.steppers[0])->description);
	char samples[128] = "";
	if (run->plan.kind->note)
		run->plan.kind->note(run->config, samples, sizeof samples);
	if (*samples)
		measurement_note(m, "%s", samples);
	placement_note(&run->placement, m);
	keep_read_points(run);
	if (collect(run, m, traces))
		return no_memory(err);
	bad_samples_report(&run->bad, run->dataset, m);
	return bad_samples_judge(&run->bad, run->dataset, run->rounds.sum.stepped, m, err);
}

/* Says in a note what it holds. */
static void hand_timeline_over(struct run *run, struct timeline **out)
{
	struct timeline *t = run->timeline;
	if (!t || !out)
		return;
	timeline_finish(t, clock_now_ns());
	(void)snprintf(t->engine, sizeof t->engine, "%s", run->source->ops->name);
	uint64_t steps = 0;
	for (size_t i = 0; i < t->window_count; i++)
		steps += t->windows[i].steps;
	if (steps > 0)
		measurement_note(run->m,
			"timeline: %" PRIu64 " steps recorded, the first of them step %" PRIu64,
			steps, t->windows[0].first_step);
	else
		measurement_note(run->m,
			"timeline: the repetition ended after %" PRIu64
			" steps, before one was recorded whole by trace.schedule",
			t->steps);
	if (t->dropped_steps > 0)
		measurement_note(run->m,
			"timeline: %" PRIu64
			" steps of trace.schedule are not in it: its memory was used up",
			t->dropped_steps);
	*out = t;
	run->timeline = NULL;
}

/* Uploaders are there before anything can fail in another thread and want to wake them.  A failure
 * goes to the crew; those that started end in any case once it is stopped. */
static void start_threads(struct run *run)
{
	struct error err = {0};
	int code = 0;
	for (unsigned i = 0; i < run->plan.devices && !code; i++)
		code = upload_start(run, i, &err);
	for (unsigned i = 0; i < run->plan.devices && !code; i++)
		code = stepper_start(run, i, &err);
	if (!code)
		code = checkpoints_start(run, &err);
	if (!code)
		code = evaluations_start(run->evaluations, &err);
	if (!code)
		code = readers_start(run, &err);
	if (!code)
		code = team_start(run, &err);
	if (code)
		crew_fail(&run->crew, code, &err);
}

/* False: a thread hangs in the kernel; what it may still touch must stay. */
static bool join_threads(struct run *run, const struct pipeline_limits *limits)
{
	const uint64_t step_ns = devices_progress(&run->devices).last_step_ns;
	/* An fsync under way cannot be cut short. */
	const uint64_t deadline_ns = clock_now_ns() + limits->join_ns + JOIN_PATIENCE * step_ns +
				     2 * checkpoints_longest_ns(run->checkpoints);
	const bool loader = loader_join(run, deadline_ns);
	const bool devices = devices_join(&run->devices, deadline_ns);
	const bool evaluations = evaluations_join(run->evaluations, deadline_ns);
	return checkpoints_join(run, deadline_ns) && devices && loader && evaluations;
}

/* On a first GPU it takes minutes: nothing else would be seen of them. */
static void show_choosing(void *context, unsigned chosen, unsigned products)
{
	const struct pipeline_control *control = context;
	if (control->choosing)
		control->choosing(control->context, chosen, products);
	if (control->live)
		live_feed_phase(control->live, LIVE_CHOOSING);
}

static bool gather_ranks(struct run *run, bool gathered)
{
	struct error err = gathered ? (struct error){""} : run->crew.error;
	const int own = gathered ? 0 : run->crew.code ? run->crew.code : -EINTR;
	const int code = begin_together(run, own, &err);
	if (code && gathered && code != -EINTR)
		crew_fail(&run->crew, code, &err);
	return code == 0;
}

static int run_threads(struct run *run, const struct pipeline_control *control,
	const struct pipeline_limits *limits, bool *joined, struct error *err)
{
	if (!memory_reset_peak())
		measurement_note(run->m,
			"peak of memory is since the program's start: it cannot be reset here");
	log_set_wait("the reads and the steps that are under way");
	start_threads(run);
	bool gathered = crew_gather(&run->crew, control->stop, show_choosing, (void *)control) &&
			evaluations_gather(run->evaluations, control->stop);
	if (run->ranks)
		gathered = gather_ranks(run, gathered);
	if (gathered)
		conduct(run, control, limits);
	else
		crew_stop(&run->crew);
	*joined = join_threads(run, limits);
	log_set_wait(NULL);
	if (gathered && control->live)
		live_feed_phase(control->live, LIVE_BETWEEN);
	if (!*joined)
		return error_set(err, -ETIMEDOUT, "a thread does not end: %.300s",
			run->crew.code ? run->crew.error.text : "it hangs in the kernel");
	if (!gathered && !run->crew.code) {
		run->m->status = MEASUREMENT_INTERRUPTED;
		return 0;
	}
	const int code = pipeline_finish(run, control->traces, err);
	if (!code)
		hand_timeline_over(run, control->timeline);
	return code;
}

static void close_pool(struct run *run, enum placement_pool pool, struct memory_block *block)
{
	if (!run->kept) {
		memory_unmap(block);
		return;
	}
	memory_hide_from_forks(block);
	run->kept->blocks[pool] = *block;
}

void pipeline_pools_release(struct pipeline_pools *pools)
{
	for (size_t i = 0; i < COUNT(pools->blocks); i++)
		memory_unmap(&pools->blocks[i]);
}

void run_close(struct run *run)
{
	devices_free(&run->devices);
	checkpoints_close(run);
	evaluations_close(run);
	backend_group_close(run->group);
	gradients_close(run->gradients);
	rounds_close(&run->rounds);
	loader_free(run);
	source_close(run->source);
	exchange_close(&run->exchange);
	close_pool(run, POOL_STAGING, &run->staging_block);
	close_pool(run, POOL_SLOTS, &run->slot_block);
	close_pool(run, POOL_BLOBS, &run->blob_block);
	monitor_close(&run->monitor);
	for (int i = 0; i < STAGE_IDS; i++)
		thread_meters_close(run->stages[i].meters, run->stages[i].workers);
	if (run->bad_is_open)
		bad_samples_close(&run->bad);
	if (run->crew_is_open)
		crew_close(&run->crew);
	placement_close(&run->placement);
	timeline_close(run->timeline);
	if (run->injection_is_open)
		injection_close(&run->injection);
	sample_cut_release(&run->samples, run->files);
	free(run);
}

static void pipeline_fail(struct measurement *m, const struct error *err)
{
	m->status = MEASUREMENT_FAILED;
	(void)snprintf(m->error, sizeof m->error, "%s", err->text);
}

/* Until something was measured, nothing is known. */
static struct measurement unmeasured(void)
{
	struct measurement m = {
		.status = MEASUREMENT_FAILED,
		.warmup_seconds = NAN,
		.throughput = NAN,
		.bad_share = NAN,
		.step_utilisation = NAN,
		.accelerator_utilisation = NAN,
		.step_wait_share = NAN,
		.oversleep_mean_ns = NAN,
		.oversleep_max_ns = NAN,
		.loss_first = NAN,
		.flops_per_sample = NAN,
		.loss_last = NAN,
		.disk_bytes_per_s = NAN,
		.page_cache_share = NAN,
		.resident_before = NAN,
		.accounted = NAN,
		.cores_busy_outside = NAN,
		.cores_busy_elsewhere = NAN,
		.quota_cores = NAN,
		.quota_used = NAN,
		.throttled_share = NAN,
		.throttled_seconds = NAN,
		.steal_share = NAN,
		.file_bytes_mean = NAN,
	};
	store_measurement_init(&m.store, "nothing was measured");
	network_measurement_init(&m.network, "nothing was measured");
	return m;
}

int pipeline_run_limited(const struct config *config, const struct dataset *dataset,
	const struct pipeline_control *control, const struct pipeline_limits *limits,
	struct measurement *out, struct error *err)
{
	static const struct pipeline_control nothing_wanted;
	struct error local = {0};
	err = err ? err : &local;
	control = control ? control : &nothing_wanted;
	*out = unmeasured();
	if (control->traces)
		*control->traces = (struct traces){0};
	if (control->timeline)
		*control->timeline = NULL;
	out->started = clock_utc_seconds();
	struct run *run = calloc(1, sizeof *run);
	int code = run ? 0 : no_memory(err);
	bool joined = true;
	if (run) {
		run->config = config;
		run->files = dataset;
		run->dataset = &run->samples;
		run->m = out;
		run->timed = config_on(config, KEY_MEASURE_PROFILER);
		run->wants_timeline = control->timeline;
		run->kept = control->pools;
		run->ranks = count_ranks(run) > 1 ? control->ranks : NULL;
		run->cores = placement_cores();
		choose_times(run);
		code = sample_cut_files(config, dataset, &run->samples, err);
		if (!code)
			code = pipeline_plan(config, run->dataset, &run->plan, err);
		out->facts = run->plan.facts;
		if (!code)
			code = open_run(run, err);
		code = begin_together(run, code, err);
		if (!code)
			code = run_threads(run, control, limits, &joined, err);
		if (joined)
			run_close(run);
	}
	if (code)
		pipeline_fail(out, err);
	if (code && control->traces)
		traces_release(control->traces);
	return code;
}

int pipeline_run(const struct config *config, const struct dataset *dataset,
	const struct pipeline_control *control, struct measurement *out, struct error *err)
{
	return pipeline_run_limited(config, dataset, control, &usual_limits, out, err);
}
