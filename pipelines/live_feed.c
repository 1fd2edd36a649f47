/* Filling the view. */
#include "pipelines/live_feed.h"

#include "harness/base/clock.h"
#include "harness/measure/proc_text.h"
#include "pipelines/repetition.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	LEAST_NS = 100000000, /* between two views */
	MOST_NS = 1000000000,
	RATES_NS = 1000000000, /* that rates are over: a second, or so many steps */
	RATES_STEPS = 8,
};

static double live_feed_seconds_of(uint64_t ns)
{
	return (double)ns / (double)NS_PER_S;
}

/* --- the beginning ------------------------------------------------------------------------- */

static void describe_stage(const struct run *run, enum stage_id id, struct live_view *view)
{
	const struct stage *stage = &run->stages[id];
	const struct step_account *step = stepper_account(run->devices.steppers[0]);
	const bool steps = id == STAGE_STEP || id == STAGE_SYNC;
	struct live_stage *out = &view->stages[view->stage_count++];
	*out = (struct live_stage){
		.workers = stage->workers,
		.per_batch = stage->per_batch,
		.emulated = steps && step->emulated,
		.device = devices_do_stage(&run->devices, id),
		.cpu_seconds = NAN,
		.run_queue_seconds = NAN,
		.io_wait_seconds = NAN,
		.lock_wait_seconds = NAN,
	};
	(void)snprintf(out->name, sizeof out->name, "%s", stage->name);
}

static void describe_queue(const char *name, uint32_t capacity, struct live_view *view)
{
	struct live_queue *out = &view->queues[view->queue_count++];
	*out = (struct live_queue){.capacity = capacity};
	(void)snprintf(out->name, sizeof out->name, "%s", name);
}

static void live_feed_describe(const struct run *run, struct live_view *view)
{
	const struct pipeline_plan *plan = &run->plan;
	view->stage_count = view->queue_count = view->thread_count = 0;
	for (int id = 0; id < STAGE_IDS; id++)
		if (run->stages[id].workers > 0)
			describe_stage(run, (enum stage_id)id, view);
	view->ranks = run->ranks ? (uint32_t)config_integer(run->config, KEY_RUN_RANKS) : 0;
	view->cores = run->cores;
	view->read_depth = plan->read_depth;
	view->prefetch_depth = plan->prefetch_depth;
	view->step_emulated = stepper_account(run->devices.steppers[0])->emulated;
	view->step_threads = plan->facts.step_on_cores ? plan->step_threads : 0;
	view->reads_memory = plan->facts.reads_memory;
	view->any_order = !run->exchange.options.in_order;
	view->by_workers = plan->by_workers;
	view->batch_size = run->exchange.options.sampler.batch_size;
	view->pool_bytes = plan->pool_bytes;
	describe_queue("samples", plan->blobs, view);
	describe_queue("batches", view->prefetch_depth, view);
	if (plan->staging_slots > 0)
		describe_queue("uploaded", (plan->staging_slots - 1) * plan->devices, view);
}

static void forget_rates(struct live_view *view)
{
	view->throughput_window = view->throughput = view->step_utilisation_window = NAN;
	view->bytes_read_per_s = NAN;
	view->device_clock_mhz = view->device_power_w = view->device_temperature_c = NAN;
	view->window_s = 0;
}

void live_feed_begin(struct live_feed *feed, struct run *run)
{
	const uint64_t window_ns = run->monitor.window_ns;
	struct live_view *view = &feed->view;
	feed->run = run;
	feed->interval_ns = window_ns < LEAST_NS  ? LEAST_NS
			    : window_ns > MOST_NS ? MOST_NS
						  : window_ns;
	feed->told_ns = feed->moved = 0;
	feed->mark_count = 0;
	view->warm = (struct live_sums){0};
	view->timed = run->timed;
	view->begun_ns = view->moved_ns = view->phase_ns = run->monitor.start_ns;
	view->warm_ns = view->begun_ns + run->warmup_ns;
	view->planned_s =
		run->duration_ns > 0 ? live_feed_seconds_of(run->warmup_ns + run->duration_ns) : 0;
	view->period_s = live_feed_seconds_of(2 * feed->interval_ns);
	view->phase = view->limit ? LIVE_LIMITS : run->warmup_ns > 0 ? LIVE_WARMUP : LIVE_MEASURING;
	forget_rates(view);
	live_feed_describe(run, view);
}

void live_feed_lengthen(struct live_feed *feed, uint64_t warmup_ns)
{
	struct live_view *view = &feed->view;
	view->warm_ns = view->begun_ns + warmup_ns;
	view->planned_s = live_feed_seconds_of(warmup_ns + feed->run->duration_ns);
}

/* --- what every thread does ---------------------------------------------------------------- */

static void look_at_thread(
	const struct thread_meter *meter, uint64_t now_ns, bool known, struct live_thread *out)
{
	enum thread_state state;
	const uint64_t items = atomic_load_explicit(&meter->items, memory_order_relaxed);
	if (!known || items != out->items)
		out->moved_ns = now_ns;
	out->items = items;
	out->tid = atomic_load_explicit(&meter->tid, memory_order_relaxed);
	out->since_ns = state_clock_look(&meter->clock, &state);
	out->state = (uint8_t)state;
}

static void live_feed_look_at_threads(
	const struct run *run, uint64_t now_ns, struct live_view *view)
{
	const uint32_t known = view->thread_count;
	uint32_t count = 0;
	uint8_t stage = 0;
	for (int id = 0; id < STAGE_IDS; id++) {
		const struct stage *s = &run->stages[id];
		if (s->workers == 0)
			continue;
		for (unsigned i = 0; s->meters && i < s->workers && count < LIVE_THREADS_MAX; i++) {
			struct live_thread *out = &view->threads[count];
			out->stage = stage;
			out->index = (uint16_t)i;
			look_at_thread(&s->meters[i], now_ns, count < known, out);
			count++;
		}
		stage++;
	}
	view->thread_count = count;
}

/* --- what has come through ----------------------------------------------------------------- */

static void live_feed_fill_stage(
	const struct run *run, const struct edge *edge, enum stage_id id, struct live_stage *out)
{
	const bool threads = !run->stages[id].threadless;
	const struct thread_times *times = &edge->stages[id];
	const bool told = edge->accounted[id] && threads;
	for (int k = 0; k < THREAD_STATES; k++)
		/* Devices may take back what an earlier view had (state_clock_move). */
		out->seconds[k] = fmax(out->seconds[k], live_feed_seconds_of(times->state_ns[k]));
	out->items = times->items;
	out->cpu_seconds = told ? live_feed_seconds_of(times->cpu_ns) : NAN;
	out->run_queue_seconds = told ? live_feed_seconds_of(times->run_queue_ns) : NAN;
	out->io_wait_seconds =
		threads && !io_delay_unavailable() ? live_feed_seconds_of(times->io_wait_ns) : NAN;
	out->lock_wait_seconds = threads ? live_feed_seconds_of(times->lock_wait_ns) : NAN;
}

static void fill_states(const struct run *run, const struct edge *edge, struct live_view *view)
{
	size_t stage = 0;
	for (int id = 0; id < STAGE_IDS; id++)
		if (run->stages[id].workers > 0)
			live_feed_fill_stage(run, edge, (enum stage_id)id, &view->stages[stage++]);
	for (uint32_t i = 0; i < view->queue_count; i++)
		view->queues[i].depth = edge->queue_depth[i];
}

static struct live_mark live_feed_mark_of(const struct edge *edge, uint64_t now_ns)
{
	return (struct live_mark){.t_ns = now_ns,
		.samples = edge->samples,
		.bytes = edge->read.bytes,
		.step_ns = edge->stages[STAGE_STEP].state_ns[THREAD_WORKING]};
}

/* Rates are over a second, or over several steps where these are long. */
static uint64_t rates_span(const struct run *run)
{
	const uint64_t steps_ns = RATES_STEPS * devices_progress(&run->devices).last_step_ns;
	return steps_ns > RATES_NS ? steps_ns : RATES_NS;
}

/* The youngest mark that is old enough; what is older than that is forgotten. */
static const struct live_mark *mark_before(
	struct live_feed *feed, uint64_t now_ns, uint64_t span_ns)
{
	unsigned first = 0;
	while (first + 1 < feed->mark_count && now_ns - feed->marks[first + 1].t_ns >= span_ns)
		first++;
	feed->mark_count -= first;
	memmove(feed->marks, feed->marks + first, feed->mark_count * sizeof feed->marks[0]);
	return feed->mark_count > 0 ? &feed->marks[0] : NULL;
}

static void live_feed_keep_mark(
	struct live_feed *feed, const struct live_mark *mark, uint64_t span_ns)
{
	if (feed->mark_count > 0 &&
		mark->t_ns - feed->marks[feed->mark_count - 1].t_ns < span_ns / (LIVE_MARKS - 2))
		return;
	if (feed->mark_count < LIVE_MARKS)
		feed->marks[feed->mark_count++] = *mark;
}

static void fill_rates(struct live_feed *feed, const struct live_mark *now)
{
	struct live_view *view = &feed->view;
	const uint64_t span_ns = rates_span(feed->run);
	const struct live_mark *before = mark_before(feed, now->t_ns, span_ns);
	if (before && now->t_ns > before->t_ns) {
		const double seconds = live_feed_seconds_of(now->t_ns - before->t_ns);
		const double steps = feed->run->stages[STAGE_STEP].workers;
		view->window_s = seconds;
		view->throughput_window = (double)(now->samples - before->samples) / seconds;
		view->bytes_read_per_s = (double)(now->bytes - before->bytes) / seconds;
		/* What a device tells late may be taken back. */
		const double worked = live_feed_seconds_of(
			now->step_ns > before->step_ns ? now->step_ns - before->step_ns : 0);
		view->step_utilisation_window =
			view->timed ? fmin(worked / seconds / steps, 1) : NAN;
	}
	live_feed_keep_mark(feed, now, span_ns);
	if (view->warm.t_ns > 0 && now->t_ns > view->warm.t_ns)
		view->throughput = (double)(now->samples - view->warm.samples) /
				   live_feed_seconds_of(now->t_ns - view->warm.t_ns);
}

static void note_progress(struct live_feed *feed, uint64_t now_ns)
{
	const uint64_t moved = run_moved(feed->run);
	if (moved != feed->moved)
		feed->view.moved_ns = now_ns;
	feed->moved = moved;
}

static void fill_totals(struct live_feed *feed, const struct edge *edge)
{
	struct run *run = feed->run;
	struct live_view *view = &feed->view;
	view->samples = edge->samples;
	view->batches = edge->batches;
	view->epochs = edge->batches / run->plan.batches_per_epoch;
	view->bad_samples = bad_samples_count(&run->bad);
	view->bytes_read = edge->read.bytes;
	view->files_in_flight = edge->being_read;
	view->resident_bytes = (uint64_t)edge->usage.resident_bytes;
}

static void fill_device(const struct run *run, uint64_t now_ns, struct live_view *view)
{
	struct window window;
	monitor_device_window(&run->monitor, now_ns, &window);
	view->device_clock_mhz = window.device_clock_mhz;
	view->device_power_w = window.device_power_w;
	view->device_temperature_c = window.device_temperature_c;
}

static void fill_time(struct live_feed *feed, uint64_t now_ns)
{
	struct live_view *view = &feed->view;
	view->updated_ns = now_ns;
	view->elapsed_s = live_feed_seconds_of(now_ns - view->begun_ns);
	view->rest_s = fmax(feed->rest_at_begin_s - view->elapsed_s, 0);
	if (isnan(feed->rest_at_begin_s))
		view->rest_s = NAN;
	if (now_ns < view->warm_ns || view->warm.t_ns > 0)
		return;
	live_sums_of(view, &view->warm);
	if (view->phase == LIVE_WARMUP)
		view->phase_ns = now_ns;
	if (!view->limit)
		view->phase = LIVE_MEASURING;
}

static void live_feed_fill(struct live_feed *feed, const struct edge *edge, uint64_t now_ns)
{
	const struct live_mark mark = live_feed_mark_of(edge, now_ns);
	note_progress(feed, now_ns);
	fill_totals(feed, edge);
	if (feed->view.timed) {
		fill_states(feed->run, edge, &feed->view);
		live_feed_look_at_threads(feed->run, now_ns, &feed->view);
	}
	fill_device(feed->run, now_ns, &feed->view);
	fill_time(feed, now_ns);
	fill_rates(feed, &mark);
}

/* An edge that was just taken costs nothing more; without one it is waited for a little. */
static bool live_feed_is_due(const struct live_feed *feed, uint64_t now_ns, bool edge)
{
	const uint64_t interval_ns = feed->interval_ns;
	const bool one_comes = feed->view.timed && feed->run->monitor.window_ns <= interval_ns;
	const uint64_t wait_ns = edge        ? interval_ns / 4 * 3
				 : one_comes ? interval_ns / 2 * 3
					     : interval_ns;
	return feed->told_ns == 0 || now_ns - feed->told_ns >= wait_ns;
}

void live_feed_tell(struct live_feed *feed, uint64_t now_ns, bool edge)
{
	const struct monitor *monitor = &feed->run->monitor;
	if (!live_feed_is_due(feed, now_ns, edge))
		return;
	struct edge peeked;
	if (!edge)
		monitor_peek(feed->run, &peeked);
	live_feed_fill(feed, edge ? &monitor->edges[monitor->count - 1] : &peeked, now_ns);
	live_board_publish(feed->board, &feed->view);
	feed->told_ns = now_ns;
}

static void publish_phase(struct live_feed *feed, enum live_phase phase)
{
	struct live_view *view = &feed->view;
	const uint64_t now_ns = clock_now_ns();
	if (view->phase != phase || view->phase_ns == 0)
		view->phase_ns = now_ns;
	view->phase = phase;
	view->updated_ns = now_ns;
	view->period_s = NAN;
	live_board_publish(feed->board, view);
}

void live_feed_end(struct live_feed *feed)
{
	feed->run = NULL;
	publish_phase(feed, LIVE_DRAINING);
}

void live_feed_phase(struct live_feed *feed, enum live_phase phase)
{
	feed->view.thread_count = 0;
	publish_phase(feed, phase);
}
