/* Conducting a repetition. */
#include "pipelines/conduct.h"

#include "harness/base/clock.h"
#include "harness/measure/flame.h"
#include "pipelines/live_feed.h"

#include <errno.h>
#include <math.h>

enum { POLL_NS = 50000000, DITHER_POLL_NS = 5000000, PATIENCE = 20, BATCHES_RATED = 2 };

struct conducting {
	const struct conduct *c;
	uint64_t planned_ns; /* 0: by epochs */
	uint64_t warmup_ns;  /* as far as it is known */
	struct step_progress at_warmup;
	uint64_t warm_ns;            /* when the warm-up ended; 0: it goes on */
	uint64_t moved, moved_at_ns; /* files read and batches stepped, and when they last grew */
};

static bool asked_to_stop(const struct conduct *c)
{
	return c->control && c->control->stop && atomic_load(c->control->stop);
}

/* Enough was measured: the time is over, and the batches are there or four times the time is. */
static bool is_enough(const struct conducting *s, uint64_t elapsed_ns)
{
	const struct conduct *c = s->c;
	if (s->planned_ns == 0 || elapsed_ns < s->planned_ns)
		return false;
	if (elapsed_ns >= s->warmup_ns + CONDUCT_EXTENSION * c->duration_ns)
		return true;
	/* One more, since time is measured from the first to the last. */
	return devices_progress(c->monitor->devices).batches - s->at_warmup.batches >
	       c->min_batches;
}

static void conduct_watch(struct conducting *s, uint64_t now_ns)
{
	const struct conduct *c = s->c;
	const struct step_progress progress = devices_progress(c->monitor->devices);
	struct source_counts read;
	source_read_counts(c->monitor->source, &read);
	const uint64_t moved = read.files + progress.batches;
	if (moved != s->moved || s->moved_at_ns == 0) {
		s->moved = moved;
		s->moved_at_ns = now_ns;
		return;
	}
	const uint64_t slowest = progress.last_step_ns > c->slowest_wait_ns ? progress.last_step_ns
									    : c->slowest_wait_ns;
	const uint64_t still_ns = now_ns - s->moved_at_ns;
	if (still_ns < c->no_progress_ns + PATIENCE * slowest)
		return;
	char states[256];
	struct error err;
	monitor_describe(c->monitor, states, sizeof states);
	crew_fail(c->crew,
		error_set(&err, -ETIMEDOUT, "no progress for %.3g s: %s",
			(double)still_ns / (double)NS_PER_S, states),
		&err);
}

static void conduct_report(struct conducting *s, uint64_t now_ns)
{
	const struct pipeline_control *control = s->c->control;
	if (!control || !control->progress)
		return;
	const struct step_progress now = devices_progress(s->c->monitor->devices);
	const bool rated = s->warm_ns > 0 && now_ns > s->warm_ns &&
			   now.batches >= s->at_warmup.batches + BATCHES_RATED;
	control->progress(control->context,
		(double)(now_ns - s->c->monitor->start_ns) / (double)NS_PER_S,
		(double)s->planned_ns / (double)NS_PER_S,
		rated ? (double)(now.samples - s->at_warmup.samples) * (double)NS_PER_S /
				(double)(now_ns - s->warm_ns)
		      : (double)NAN);
}

static bool dithers(const struct conducting *s)
{
	return s->c->dither && !dither_is_over(s->c->dither);
}

static void look_at_readers(const struct stage *stage, uint64_t now_ns, struct dither_look *look)
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

/* Up to an edge of the grid that windows end on, so that what is measured stays as long as it is asked for. */
static void lengthen(struct conducting *s, uint64_t until_ns)
{
	const uint64_t window_ns = s->c->monitor->window_ns;
	if (until_ns <= s->warmup_ns)
		return;
	s->warmup_ns = (until_ns + window_ns - 1) / window_ns * window_ns;
	s->planned_ns = s->warmup_ns + s->c->duration_ns;
	if (s->c->control && s->c->control->live)
		live_feed_lengthen(s->c->control->live, s->warmup_ns);
}

static void dither_reads(struct conducting *s, uint64_t now_ns)
{
	const struct monitor *monitor = s->c->monitor;
	struct dither *const dither = s->c->dither;
	struct exchange_reads reads;
	if (!dithers(s))
		return;
	const uint32_t before = dither->depth;
	exchange_look_at_reads(monitor->exchange, &reads);
	struct dither_look look = {
		.now_ns = now_ns - monitor->start_ns,
		.files = reads.files,
		.bytes = reads.bytes,
		.latency_ns = reads.latency_ns,
		.latency_squares = reads.latency_squares,
		.in_flight = reads.in_flight,
		.earlier = reads.earlier,
	};
	look_at_readers(&monitor->stages[STAGE_READ], now_ns, &look);
	const uint32_t depth = dither_step(dither, &look);
	if (before > 0 && depth != before)
		exchange_set_depth(monitor->exchange, depth, now_ns);
	if (dither_is_over(dither))
		exchange_keep_depth(monitor->exchange);
	lengthen(s, look.now_ns < dither->latest_ns ? look.now_ns : dither->latest_ns);
}

static void note_warmup(struct conducting *s, uint64_t now_ns)
{
	if (s->warm_ns > 0 || dithers(s) || now_ns - s->c->monitor->start_ns < s->warmup_ns)
		return;
	s->warm_ns = now_ns;
	flame_count(true);
	s->at_warmup = devices_progress(s->c->monitor->devices);
	if (!s->c->monitor->timed)
		monitor_sample(s->c->monitor);
}

/* Until something is due: the next edge, the end of the warm-up or of the run, or a look round. */
static uint64_t next_due(const struct conducting *s, uint64_t now_ns, uint64_t edge_ns)
{
	const uint64_t start_ns = s->c->monitor->start_ns;
	uint64_t due = now_ns + (dithers(s) ? DITHER_POLL_NS : POLL_NS);
	due = edge_ns < due ? edge_ns : due;
	const uint64_t warm_ns = start_ns + s->warmup_ns;
	if (s->warm_ns == 0 && warm_ns > now_ns && warm_ns < due)
		due = warm_ns;
	const uint64_t end_ns = start_ns + s->planned_ns;
	if (end_ns > now_ns && end_ns < due)
		due = end_ns;
	return due;
}

bool conduct_run(const struct conduct *c, uint64_t *warmup_ns)
{
	struct monitor *monitor = c->monitor;
	struct conducting s = {
		.c = c,
		.planned_ns = c->duration_ns > 0 ? c->warmup_ns + c->duration_ns : 0,
		.warmup_ns = c->warmup_ns,
	};
	uint64_t edge_ns = monitor_next_ns(monitor);
	bool interrupted = false;
	bool over = false;
	while (!over && !interrupted) {
		over = crew_wait(c->crew, next_due(&s, clock_now_ns(), edge_ns));
		const uint64_t now_ns = clock_now_ns();
		const uint64_t elapsed_ns = now_ns - monitor->start_ns;
		interrupted = asked_to_stop(c);
		dither_reads(&s, now_ns);
		note_warmup(&s, now_ns);
		over = over || is_enough(&s, elapsed_ns);
		const bool edge = now_ns >= edge_ns && monitor->timed && !over && !interrupted;
		if (now_ns >= edge_ns) {
			if (edge)
				monitor_sample(monitor);
			conduct_report(&s, now_ns);
			edge_ns = monitor->timed ? monitor_next_ns(monitor)
						 : now_ns + monitor->window_ns;
		}
		if (c->control && c->control->live)
			live_feed_tell(c->control->live, now_ns, edge);
		conduct_watch(&s, now_ns);
	}
	flame_count(false);
	monitor_sample(monitor);
	crew_stop(c->crew);
	*warmup_ns = s.warmup_ns;
	return interrupted;
}
