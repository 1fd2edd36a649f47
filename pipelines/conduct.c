/* The control thread's part of a repetition: its start, the edges of windows, progress, the end,
 * and the watchdog. */
#include "pipelines/wiring.h"

#include "harness/base/clock.h"
#include "harness/measure/flame.h"
#include "pipelines/live_feed.h"
#include "pipelines/timeline_wiring.h"

#include <errno.h>
#include <math.h>

enum { POLL_NS = 50000000, DITHER_POLL_NS = 5000000, PATIENCE = 20, BATCHES_RATED = 2 };

struct conducting {
	struct run *run;
	const struct pipeline_control *control;
	uint64_t no_progress_ns,
		slowest_wait_ns; /* a standstill so long, and 20 such waits, fails */
	uint64_t planned_ns;     /* 0: by epochs */
	uint64_t warmup_ns;      /* as far as it is known */
	struct step_progress at_warmup;
	uint64_t warm_ns;            /* when the warm-up ended; 0: it goes on */
	uint64_t moved, moved_at_ns; /* files read and batches stepped, and when they last grew */
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
	return (uint64_t)(read_ns + decode_ns + copy_ns + step_ns);
}

/* The last edge of a window by which depths of reads must have been tried. */
static uint64_t conduct_latest_warm_ns(const struct run *run)
{
	const uint64_t latest_ns = run->warmup_ns + run->plan.depths.longer_ns;
	const uint64_t edge_ns = latest_ns / run->window_ns * run->window_ns;
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

static void conduct_watch(struct conducting *s, uint64_t now_ns)
{
	struct run *const run = s->run;
	const struct step_progress progress = devices_progress(&run->devices);
	struct source_counts read;
	source_read_counts(run->source, &read);
	const uint64_t moved = read.files + progress.batches;
	if (moved != s->moved || s->moved_at_ns == 0) {
		s->moved = moved;
		s->moved_at_ns = now_ns;
		return;
	}
	const uint64_t slowest = progress.last_step_ns > s->slowest_wait_ns ? progress.last_step_ns
									    : s->slowest_wait_ns;
	const uint64_t still_ns = now_ns - s->moved_at_ns;
	if (still_ns < s->no_progress_ns + PATIENCE * slowest)
		return;
	char states[256];
	struct error err;
	monitor_describe(&run->monitor, states, sizeof states);
	crew_fail(&run->crew,
		error_set(&err, -ETIMEDOUT, "no progress for %.3g s: %s",
			(double)still_ns / (double)NS_PER_S, states),
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

static void conduct_dither(struct conducting *s, uint64_t now_ns)
{
	struct exchange *const x = &s->run->exchange;
	struct dither *const dither = &s->run->dither;
	struct exchange_reads reads;
	if (!conduct_dithers(s))
		return;
	const uint32_t before = dither->depth;
	exchange_look_at_reads(x, &reads);
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

static void conduct_note_warmup(struct conducting *s, uint64_t now_ns)
{
	if (s->warm_ns > 0 || conduct_dithers(s) ||
		now_ns - s->run->monitor.start_ns < s->warmup_ns)
		return;
	s->warm_ns = now_ns;
	flame_count(true);
	s->at_warmup = devices_progress(&s->run->devices);
	if (!s->run->monitor.timed)
		monitor_sample(&s->run->monitor);
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
	monitor->stages = run->stages;
	monitor->exchange = &run->exchange;
	monitor->devices = &run->devices;
	monitor->rounds = &run->rounds;
	monitor->source = run->source;
	monitor->timed = run->timed;
	monitor->window_ns = run->window_ns;
	monitor_watch_devices(monitor, run->config, run->m);
	monitor->start_ns = clock_now_ns();
	if (run->timed) {
		exchange_start_meters(&run->exchange, monitor->start_ns);
		devices_start_meters(&run->devices, monitor->start_ns);
	}
	timeline_wiring_start(run, monitor->start_ns);
	monitor_sample(monitor);
	run->rounds.start_ns = monitor->start_ns;
	run->rounds.live = !run->plan.facts.step_has_memory;
	injection_start(&run->injection, monitor->start_ns);
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
		conduct_dither(&s, now_ns);
		conduct_note_warmup(&s, now_ns);
		over = over || conduct_is_enough(&s, elapsed_ns);
		const bool edge = now_ns >= edge_ns && monitor->timed && !over && !run->interrupted;
		if (now_ns >= edge_ns) {
			if (edge)
				monitor_sample(monitor);
			conduct_report(&s, now_ns);
			edge_ns = monitor->timed ? monitor_next_ns(monitor)
						 : now_ns + monitor->window_ns;
		}
		if (control->live)
			live_feed_tell(control->live, now_ns, edge);
		conduct_watch(&s, now_ns);
	}
	flame_count(false);
	monitor_sample(monitor);
	crew_stop(&run->crew);
	run->warmup_ns = s.warmup_ns;
	if (control->live)
		live_feed_end(control->live);
	monitor_stop_watching(monitor);
}
