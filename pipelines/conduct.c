/* The control thread's part of a repetition: its start, the edges of windows, progress, the end,
 * and the watchdog. */
#include "pipelines/repetition.h"

#include "harness/base/clock.h"
#include "harness/base/memory.h"
#include "harness/base/units.h"
#include "harness/measure/flame.h"
#include "harness/measure/nvml_watch.h"
#include "pipelines/live_feed.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* --- edges of windows ------------------------------------------------------------------------ */

/* A look at all clocks takes less, unless the thread loses its core; and how often it is tried. */
enum { LOOK_NS = 2000000, LOOK_OF_THREAD_NS = 50000, LOOKS_MOST = 4 };

int monitor_open(struct monitor *m, const struct placement *placement, const char *data)
{
	placement_set(placement, &m->cores);
	m->reachable = cpus_reachable();
	cgroup_cpu_quotas(&m->quotas);
	data_store_find(data, &m->store);
	m->edges = memory_touched(EDGES_MAX, sizeof *m->edges);
	if (data_store_is_nfs(&m->store))
		m->mounts = memory_touched(EDGES_MAX, sizeof *m->mounts);
	return m->edges && (m->mounts || !data_store_is_nfs(&m->store)) ? 0 : -ENOMEM;
}

void monitor_close(struct monitor *m)
{
	nvml_watch_free(m->nvml);
	free(m->edges);
	free(m->mounts);
	*m = (struct monitor){0};
}

static void sample_stage(
	const struct stage *stage, uint64_t now_ns, struct thread_times *sum, bool *accounted)
{
	*accounted = stage->meters && stage->workers > 0;
	for (unsigned i = 0; stage->meters && i < stage->workers; i++) {
		struct thread_times one;
		*accounted = thread_meter_read(&stage->meters[i], now_ns, &one) && *accounted;
		for (int k = 0; k < THREAD_STATES; k++)
			sum->state_ns[k] += one.state_ns[k];
		sum->items += one.items;
		sum->cpu_ns += one.cpu_ns;
		sum->run_queue_ns += one.run_queue_ns;
		sum->io_wait_ns += one.io_wait_ns;
		sum->lock_wait_ns += one.lock_wait_ns;
		sum->lock_hold_ns += one.lock_hold_ns;
		sum->overhead_ns += one.overhead_ns;
		sum->allocated_bytes += one.allocated_bytes;
	}
}

/* What devices told late was moved from one state to another (state_clock_move), maybe out of what an earlier edge has
 * counted: then so much is taken from the state that grew most. */
static void keep_growing(const struct thread_times *before, struct thread_times *now)
{
	int most = 0;
	for (int k = 1; k < THREAD_STATES; k++)
		if (now->state_ns[k] - before->state_ns[k] + (UINT64_MAX >> 1) >
			now->state_ns[most] - before->state_ns[most] + (UINT64_MAX >> 1))
			most = k;
	for (int k = 0; k < THREAD_STATES; k++) {
		if (now->state_ns[k] >= before->state_ns[k])
			continue;
		const uint64_t lacks = before->state_ns[k] - now->state_ns[k];
		now->state_ns[k] = before->state_ns[k];
		now->state_ns[most] -= lacks;
	}
}

/* A clock that is read late has run on: what grew by more than the time since the edge before is the next edge's. */
static void keep_within(
	uint64_t most_ns, const struct thread_times *before, struct thread_times *now)
{
	uint64_t grown_ns = 0;
	for (int k = 0; k < THREAD_STATES; k++)
		grown_ns += now->state_ns[k] - before->state_ns[k];
	if (grown_ns <= most_ns)
		return;
	const double share = (double)most_ns / (double)grown_ns;
	for (int k = 0; k < THREAD_STATES; k++)
		now->state_ns[k] =
			before->state_ns[k] +
			(uint64_t)(share * (double)(now->state_ns[k] - before->state_ns[k]));
}

static void sample_queues(struct run *run, uint64_t now_ns, struct edge *e)
{
	struct exchange_queues queues;
	exchange_read_queues(&run->exchange, now_ns, &queues);
	e->queues[QUEUE_SAMPLES] = queues.samples;
	e->queues[QUEUE_BATCHES] = queues.batches;
	e->queue_depth[QUEUE_SAMPLES] = queues.samples_depth;
	e->being_read = queues.being_read;
	const struct stage *const read = &run->stages[STAGE_READ];
	for (unsigned i = 0; run->plan.by_workers && i < read->workers && read->meters; i++)
		e->being_read += state_clock_state(&read->meters[i].clock) == THREAD_WORKING;
	e->queue_depth[QUEUE_BATCHES] = queues.batches_depth;
	e->queue_depth[QUEUE_UPLOADED] =
		devices_read_queues(&run->devices, now_ns, &e->queues[QUEUE_UPLOADED]);
}

/* Every second edge stays, the start (0) among them. */
static void monitor_thin(struct monitor *m)
{
	size_t kept = 0;
	for (size_t i = 0; i < m->count; i += 2) {
		if (m->mounts)
			m->mounts[kept] = m->mounts[i];
		m->edges[kept++] = m->edges[i];
	}
	m->count = kept;
	m->window_ns *= 2;
}

/* Where this thread lost its core among the clocks, it looks again. */
static void sample_clocks(struct run *run, struct edge *e)
{
	uint64_t now_ns;
	uint64_t most_ns = LOOK_NS;
	int looks = 0;
	for (int i = 0; i < STAGE_IDS; i++)
		most_ns += (uint64_t)run->stages[i].workers * LOOK_OF_THREAD_NS;
	do {
		*e = (struct edge){0};
		now_ns = clock_now_ns();
		e->t_ns = now_ns - run->monitor.start_ns;
		for (int i = 0; run->timed && i < STAGE_IDS; i++)
			sample_stage(&run->stages[i], now_ns, &e->stages[i], &e->accounted[i]);
	} while (clock_now_ns() - now_ns > most_ns && ++looks < LOOKS_MOST);
	if (run->timed)
		sample_queues(run, now_ns, e);
}

/* before: the edge before it, NULL: it is the first. */
static void monitor_take(struct run *run, const struct edge *before, struct edge *e)
{
	const struct monitor *const m = &run->monitor;
	sample_clocks(run, e);
	for (int i = 0; run->timed && before && i < STAGE_IDS; i++) {
		keep_growing(&before->stages[i], &e->stages[i]);
		keep_within(run->stages[i].workers * (e->t_ns - before->t_ns), &before->stages[i],
			&e->stages[i]);
	}
	const struct step_progress progress = devices_progress(&run->devices);
	// NOLINTNEXTLINE(clang-analyzer-core.NullDereference): edges were made before
	e->samples = progress.samples;
	e->batches = progress.batches;
	for (unsigned i = 0; i < run->devices.count; i++)
		if (run->devices.uploads[i])
			e->uploads[i] = upload_read_totals(run->devices.uploads[i]);
	rounds_read(&run->rounds, e->rounds);
	source_read_counts(run->source, &e->read);
	(void)source_read_network(run->source, &e->network);
	process_usage_read(&e->usage, &m->cores);
	for (size_t i = 0; i < m->quotas.count; i++)
		cgroup_cpu_use(&m->quotas.of[i], &e->quotas[i]);
	data_store_read(&m->store, &e->store);
}

/* Takes an edge now.  When all are used, every second is dropped and the window doubles. */
static void monitor_sample(struct run *run)
{
	struct monitor *const m = &run->monitor;
	if (m->count == EDGES_MAX)
		monitor_thin(m);
	struct edge *e = &m->edges[m->count];
	monitor_take(run, m->count > 0 ? e - 1 : NULL, e);
	if (m->mounts)
		mountstats_read(MOUNTSTATS_PATH, m->store.point, &m->mounts[m->count]);
	m->count++;
}

void monitor_peek(struct run *run, struct edge *edge)
{
	monitor_take(run, &run->monitor.edges[run->monitor.count - 1], edge);
}

/* The time of the next edge.  Edges stay on the grid; one that was missed is left out. */
static uint64_t monitor_next_ns(const struct monitor *m)
{
	return m->start_ns + (m->edges[m->count - 1].t_ns / m->window_ns + 1) * m->window_ns;
}

/* Begins to watch, on threads of its own, the real devices, whose backends are open by now and
 * have said what they compute on.  Where measure.device or measure.profiler is off, or it cannot,
 * a note says so. */
static void monitor_watch_devices(struct run *run)
{
	struct monitor *const m = &run->monitor;
	const struct config *const config = run->config;
	const uint64_t least_ns = NVML_PERIOD_MS * NS_PER_MS;
	struct nvml_watch_options options = {
		.period_ns = m->window_ns > least_ns ? m->window_ns : least_ns,
		.pcie_period_ns = NVML_PCIE_PERIOD_MS * NS_PER_MS,
	};
	for (unsigned i = 0; i < run->devices.count; i++) {
		const struct step_account *const step = stepper_account(run->devices.steppers[i]);
		if (step->described && !step->device.emulated && step->device.bus[0])
			(void)snprintf(options.buses[options.count++], sizeof options.buses[0],
				"%s", step->device.bus);
	}
	struct error err = {0};
	if (options.count == 0)
		return;
	if (!config_on(config, KEY_MEASURE_DEVICE) || !config_on(config, KEY_MEASURE_PROFILER))
		(void)error_set(&err, -ENOTSUP, "measure.%s is off",
			config_on(config, KEY_MEASURE_DEVICE) ? "profiler" : "device");
	else if (!nvml_watch_start(&m->nvml, &options, &err))
		return;
	measurement_note(run->m,
		"clocks, power, temperature and throttling of the device unknown: %s", err.text);
}

void monitor_device_window(const struct monitor *m, uint64_t t_ns, struct window *window)
{
	window->device_clock_mhz = window->device_power_w = window->device_temperature_c = NAN;
	if (m->nvml)
		nvml_watch_window(m->nvml, t_ns, window);
}

/* What every thread does now: "read 1 working, decode 2 starved, ..." */
static void monitor_describe(const struct run *run, char *out, size_t room)
{
	size_t used = 0;
	out[0] = '\0';
	for (int i = 0; i < STAGE_IDS; i++) {
		const struct stage *stage = &run->stages[i];
		unsigned threads[THREAD_STATES] = {0};
		for (unsigned k = 0; stage->meters && k < stage->workers; k++)
			threads[state_clock_state(&stage->meters[k].clock)]++;
		for (int k = 0; k < THREAD_STATES; k++)
			if (threads[k] > 0 && used < room)
				used += (size_t)snprintf(out + used, room - used, "%s%s %u %s",
					used > 0 ? ", " : "", stage->name, threads[k],
					thread_state_names[k]);
	}
	if (used == 0)
		(void)snprintf(out, room, "states unknown: the profiler is off");
}

/* --- conducting ------------------------------------------------------------------------------ */

enum {
	POLL_NS = 50000000,
	DITHER_POLL_NS = 5000000,
	PATIENCE = 20,
	BATCHES_RATED = 2,
	BLOCK_MS = 300,
	BLOCKS_MOST = 20
};

struct conducting {
	struct run *run;
	const struct pipeline_control *control;
	uint64_t no_progress_ns,
		slowest_wait_ns; /* a standstill so long, and 20 such waits, fails */
	uint64_t planned_ns;     /* 0: by epochs */
	uint64_t warmup_ns;      /* as far as it is known */
	struct step_progress at_warmup;
	uint64_t warm_ns; /* when the warm-up ended; 0: it goes on */
	/* For control->enough: the rates of blocks, and where the next one begins. */
	double blocks[BLOCKS_MOST];
	size_t block_count;
	struct step_progress block_from;
	uint64_t block_from_ns; /* 0: none was begun */
};

/* That planted conditions make anything wait for: standing still so long is no fault. */
static uint64_t conduct_slowest_wait(const struct run *run)
{
	const double bandwidth = config_real(run->config, KEY_INJECT_READ_BANDWIDTH);
	const double transfer_ns =
		bandwidth > 0 ? (double)run->dataset->max_bytes * (double)NS_PER_S / bandwidth : 0;
	const double read_ns = config_real(run->config, KEY_INJECT_READ_FACTOR) *
			       (transfer_ns + config_real(run->config, KEY_INJECT_READ_LATENCY));
	const bool some_slow = config_real(run->config, KEY_INJECT_SLOW_SHARE) > 0;
	const double slow = some_slow ? config_real(run->config, KEY_INJECT_SLOW_FACTOR) : 1;
	const double decode_ns = slow * config_real(run->config, KEY_INJECT_DECODE_FACTOR) *
				 config_real(run->config, KEY_INJECT_SLOW_WORKER) *
				 config_real(run->config, KEY_INJECT_DECODE_WAIT);
	const double rate = config_real(run->config, KEY_INJECT_UPLOAD_BANDWIDTH);
	const double copy_ns = rate > 0 ? config_real(run->config, KEY_INJECT_UPLOAD_FACTOR) *
						  (double)run->plan.batch_bytes * (double)NS_PER_S /
						  rate
					: 0;
	const double step_ns = config_real(run->config, KEY_INJECT_STEP_LAUNCH) +
			       config_real(run->config, KEY_INJECT_STEP_FACTOR) *
				       (double)devices_progress(&run->devices).last_step_ns;
	return (uint64_t)(read_ns + decode_ns + copy_ns + step_ns) +
	       (uint64_t)config_integer(run->config, KEY_EVALUATE_STEP_TIME);
}

/* The last edge of a window by which depths of reads must have been tried. */
static uint64_t conduct_latest_warm_ns(const struct run *run)
{
	const uint64_t latest_ns = run->warmup_ns + run->plan.depths.longer_ns;
	const uint64_t edge_ns = latest_ns / run->monitor.window_ns * run->monitor.window_ns;
	return edge_ns > run->warmup_ns ? edge_ns : run->warmup_ns;
}

/* Enough was measured: the time is over, and the batches are there or four times the time is. */
static bool conduct_is_enough(const struct conducting *s, uint64_t elapsed_ns)
{
	struct run *const run = s->run;
	if (s->planned_ns == 0 || elapsed_ns < s->planned_ns)
		return false;
	if (elapsed_ns >= s->warmup_ns + PIPELINE_EXTENSION * run->duration_ns)
		return true;
	/* One more, since time is measured from the first to the last. */
	return devices_progress(&run->devices).batches - s->at_warmup.batches >
	       (uint64_t)config_integer(run->config, KEY_MEASURE_MIN_BATCHES);
}

/* Whether who asked for the rate has seen enough of it.  A block has BATCHES_RATED batches at least. */
static bool conduct_has_sufficed(struct conducting *s, uint64_t now_ns)
{
	const struct pipeline_control *control = s->control;
	const struct step_progress now = devices_progress(&s->run->devices);
	if (!control->enough || s->warm_ns == 0 || s->run->duration_ns == 0)
		return false;
	if (s->block_from_ns == 0) {
		s->block_from_ns = now_ns;
		s->block_from = now;
	}
	if (now_ns - s->block_from_ns < BLOCK_MS * NS_PER_MS ||
		now.batches < s->block_from.batches + BATCHES_RATED ||
		s->block_count == BLOCKS_MOST)
		return false;
	s->blocks[s->block_count++] = (double)(now.samples - s->block_from.samples) *
				      (double)NS_PER_S / (double)(now_ns - s->block_from_ns);
	s->block_from_ns = now_ns;
	s->block_from = now;
	return now.batches - s->at_warmup.batches >
		       (uint64_t)config_integer(s->run->config, KEY_MEASURE_MIN_BATCHES) &&
	       control->enough(s->blocks, s->block_count);
}

/* Of a training step that took so long, and an evaluation's, whose batches may be larger. */
static uint64_t conduct_longest_step(const struct run *run, uint64_t step_ns)
{
	const double times =
		(double)run->plan.evaluation_batch / config_real(run->config, KEY_BATCH_SIZE);
	return times > 1 ? (uint64_t)(times * (double)step_ns) : step_ns;
}

uint64_t run_moved(const struct run *run)
{
	struct source_counts read;
	source_read_counts(run->source, &read);
	return read.files + devices_progress(&run->devices).batches +
	       checkpoints_moved(run->checkpoints) + evaluations_moved(run->evaluations);
}

static void conduct_watch(struct conducting *s, uint64_t now_ns)
{
	struct run *const run = s->run;
	const struct step_progress progress = devices_progress(&run->devices);
	const uint64_t still_ns =
		patience_look(&run->patience, run_moved(run), clock_process_cpu_ns(), now_ns);
	const uint64_t step_ns = conduct_longest_step(run, progress.last_step_ns);
	const uint64_t slowest = step_ns > s->slowest_wait_ns ? step_ns : s->slowest_wait_ns;
	/* The rank that is waited for says why. */
	if (run->gradients && atomic_load(&run->gradients->waits)) {
		run->patience.moved_at_ns = now_ns;
		return;
	}
	if (still_ns < s->no_progress_ns + PATIENCE * slowest)
		return;
	char states[256];
	struct error err;
	monitor_describe(run, states, sizeof states);
	crew_fail(&run->crew,
		error_set(&err, -ETIMEDOUT, "no progress for %s s: %s",
			UNITS_PLAIN((double)still_ns / (double)NS_PER_S, 3), states),
		&err);
}

static void conduct_report(struct conducting *s, uint64_t now_ns)
{
	const struct pipeline_control *control = s->control;
	if (!control->progress)
		return;
	const struct step_progress now = devices_progress(&s->run->devices);
	const bool rated = s->warm_ns > 0 && now_ns > s->warm_ns &&
			   now.batches >= s->at_warmup.batches + BATCHES_RATED;
	control->progress(control->context,
		(double)(now_ns - s->run->monitor.start_ns) / (double)NS_PER_S,
		(double)s->planned_ns / (double)NS_PER_S,
		rated ? (double)(now.samples - s->at_warmup.samples) * (double)NS_PER_S /
				(double)(now_ns - s->warm_ns)
		      : (double)NAN);
}

static bool conduct_dithers(const struct conducting *s)
{
	return s->run->plan.depths.longer_ns > 0 && !dither_is_over(&s->run->dither);
}

static void conduct_look_at_readers(
	const struct stage *stage, uint64_t now_ns, struct dither_look *look)
{
	for (unsigned i = 0; i < stage->workers; i++) {
		struct thread_times one;
		const bool accounted = thread_meter_read(&stage->meters[i], now_ns, &one);
		look->working_ns += one.state_ns[THREAD_WORKING];
		look->blocked_ns += one.state_ns[THREAD_BLOCKED];
		look->cpu_ns += accounted ? one.cpu_ns : 0;
		look->run_queue_ns += accounted ? one.run_queue_ns : 0;
	}
}

/* Up to an edge of the grid that windows end on, so that what is measured stays as long as it is
 * asked for. */
static void conduct_lengthen(struct conducting *s, uint64_t until_ns)
{
	const uint64_t window_ns = s->run->monitor.window_ns;
	if (until_ns <= s->warmup_ns)
		return;
	s->warmup_ns = (until_ns + window_ns - 1) / window_ns * window_ns;
	s->planned_ns = s->warmup_ns + s->run->duration_ns;
	if (s->control->live)
		live_feed_lengthen(s->control->live, s->warmup_ns);
}

static void conduct_dither(struct conducting *s)
{
	struct exchange *const x = &s->run->exchange;
	struct dither *const dither = &s->run->dither;
	struct exchange_reads reads;
	if (!conduct_dithers(s))
		return;
	const uint32_t before = dither->depth;
	const uint64_t now_ns = exchange_look_at_reads(x, &reads);
	struct dither_look look = {
		.now_ns = now_ns - s->run->monitor.start_ns,
		.files = reads.files,
		.bytes = reads.bytes,
		.latency_ns = reads.latency_ns,
		.latency_squares = reads.latency_squares,
		.in_flight = reads.in_flight,
		.earlier = reads.earlier,
	};
	conduct_look_at_readers(&s->run->stages[STAGE_READ], now_ns, &look);
	const uint32_t depth = dither_step(dither, &look);
	if (before > 0 && depth != before)
		exchange_set_depth(x, depth, now_ns);
	if (dither_is_over(dither))
		exchange_keep_depth(x);
	conduct_lengthen(s, look.now_ns < dither->latest_ns ? look.now_ns : dither->latest_ns);
}

/* What is measured begins at the edge of a window: steps that ended between the warm-up and that are none of it. */
static void conduct_note_warmup(struct conducting *s, uint64_t now_ns)
{
	const struct monitor *const m = &s->run->monitor;
	const uint64_t seen_ns = s->run->timed ? m->edges[m->count - 1].t_ns : now_ns - m->start_ns;
	if (s->warm_ns > 0 || conduct_dithers(s) || seen_ns < s->warmup_ns)
		return;
	s->warm_ns = now_ns;
	flame_count(true);
	s->at_warmup = devices_progress(&s->run->devices);
	if (!s->run->timed)
		monitor_sample(s->run);
}

/* Until something is due: the next edge, the end of the warm-up or of the run, or a look round. */
static uint64_t conduct_next_due(const struct conducting *s, uint64_t now_ns, uint64_t edge_ns)
{
	const uint64_t start_ns = s->run->monitor.start_ns;
	uint64_t due = now_ns + (conduct_dithers(s) ? DITHER_POLL_NS : POLL_NS);
	due = edge_ns < due ? edge_ns : due;
	const uint64_t warm_ns = start_ns + s->warmup_ns;
	if (s->warm_ns == 0 && warm_ns > now_ns && warm_ns < due)
		due = warm_ns;
	const uint64_t end_ns = start_ns + s->planned_ns;
	if (end_ns > now_ns && end_ns < due)
		due = end_ns;
	return due;
}

static void conduct_start(struct run *run, const struct pipeline_control *control)
{
	struct monitor *const monitor = &run->monitor;
	monitor_watch_devices(run);
	monitor->start_ns = clock_now_ns();
	if (run->timed) {
		exchange_start_meters(&run->exchange, monitor->start_ns);
		for (unsigned i = 0; i < run->devices.count; i++)
			if (run->devices.uploads[i])
				upload_start_meter(run->devices.uploads[i], monitor->start_ns);
	}
	if (run->timeline)
		timeline_start(run->timeline, monitor->start_ns);
	monitor_sample(run);
	run->rounds.start_ns = monitor->start_ns;
	run->rounds.late = run->plan.facts.step_has_memory;
	lateness_start(&run->rounds.lateness, monitor->start_ns, run->segment_ns);
	run->rounds.rank = run->ranks ? run->ranks->world.rank : 0;
	run->injection.start_ns = monitor->start_ns;
	source_start(run->source, monitor->start_ns);
	if (control->live)
		live_feed_begin(control->live, run);
	crew_start(&run->crew, monitor->start_ns);
	if (run->plan.depths.longer_ns > 0)
		run->dither = (struct dither){
			.plan = &run->plan.depths,
			.warmup_ns = run->warmup_ns,
			.latest_ns = conduct_latest_warm_ns(run),
		};
}

void conduct(struct run *run, const struct pipeline_control *control,
	const struct pipeline_limits *limits)
{
	struct monitor *const monitor = &run->monitor;
	conduct_start(run, control);
	struct conducting s = {
		.run = run,
		.control = control,
		.no_progress_ns = limits->no_progress_ns,
		.slowest_wait_ns = conduct_slowest_wait(run),
		.planned_ns = run->duration_ns > 0 ? run->warmup_ns + run->duration_ns : 0,
		.warmup_ns = run->warmup_ns,
	};
	uint64_t edge_ns = monitor_next_ns(monitor);
	bool over = false;
	while (!over && !run->interrupted) {
		over = crew_wait(&run->crew, conduct_next_due(&s, clock_now_ns(), edge_ns));
		const uint64_t now_ns = clock_now_ns();
		const uint64_t elapsed_ns = now_ns - monitor->start_ns;
		run->interrupted = control->stop && atomic_load(control->stop);
		conduct_dither(&s);
		over = over || (s.warm_ns > 0 && conduct_is_enough(&s, elapsed_ns));
		const bool edge = now_ns >= edge_ns && run->timed && !over && !run->interrupted;
		if (now_ns >= edge_ns) {
			if (edge)
				monitor_sample(run);
			conduct_report(&s, now_ns);
			over = over || conduct_has_sufficed(&s, now_ns);
			edge_ns =
				run->timed ? monitor_next_ns(monitor) : now_ns + monitor->window_ns;
		}
		conduct_note_warmup(&s, now_ns);
		if (control->live)
			live_feed_tell(control->live, now_ns, edge);
		conduct_watch(&s, now_ns);
	}
	flame_count(false);
	monitor_sample(run);
	crew_stop(&run->crew);
	run->warmup_ns = s.warmup_ns;
	if (control->live)
		live_feed_end(control->live);
	if (monitor->nvml) /* within a second, whatever the driver does */
		nvml_watch_stop(monitor->nvml, NVML_STOP_PATIENCE_MS * NS_PER_MS);
}
