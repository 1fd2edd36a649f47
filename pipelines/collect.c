/* From what was recorded to a struct measurement: finds the cut, takes differences between the cut and the end, and
 * says in words what is missing.
 *
 *   throughput   good samples / seconds, between the first completed step at or after the cut and the
 *                last one, and standstills before and after (steady.h)
 *   states       thread-seconds between the edge at the cut and the last edge
 *   capacity     samples / working thread-seconds x workers; of an emulated step samples / nominal
 *                device seconds.  A reader's working time is all time that it was not blocked, since the
 *                source was at work then with all the files in flight that it may have.
 *
 * and of a device
 *
 *   step, sync         sums of the device's own times over the steps between the span's completions
 *   upload             likewise of the copies that ended between its edges; where there is no upload stage,
 *                      of the copies that the steps began with
 *   utilisation        FLOPs of the steps / time between the completions / published peak */
#include "pipelines/repetition.h"
#include "pipelines/trace_names.h"

#include "harness/base/clock.h"
#include "harness/base/memory.h"
#include "harness/base/units.h"
#include "harness/measure/network_link.h"
#include "harness/measure/nvml_watch.h"
#include "harness/measure/proc_text.h"
#include "harness/measure/steady.h"
#include "workloads/source/source.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The part that is measured: between the edge at the cut and the last one. */
struct span {
	const struct edge *from, *to;
	double seconds;
	struct completion steps; /* between completions, from this time on */
	bool whole;              /* of whole periods of stalls, or of epochs that are kept apart */
	uint64_t completed_from_ns, completed_to_ns; /* whole periods, where there are */
	uint64_t completions;
	uint64_t first_ns, last_ns; /* of the completions */
};

enum {
	STANDSTILL_NS = 100000000
}; /* longer than a busy machine keeps a thread waiting, and the conductor's look */

enum { LEFT_LEAST = 4 }; /* of the planned time that much: 1 of so many */

enum { PERIODS_LEAST = 3 }; /* of a repetition, to tell what comes again from what happens once */

/* A stage that was not held up by others for at least this share of its time showed its limit. */
static const double SHOWS_ITS_LIMIT = 0.5;

/* What is the same of all devices. */
static const struct step_account *first_step(const struct run *r)
{
	return stepper_account(r->devices.steppers[0]);
}

/* --- the cut --------------------------------------------------------------------------------- */

/* Of checkpoints and evaluations those that come less often; NULL: there are none. */
static const struct stall_log *rarest_stalls(const struct run *r)
{
	const struct stall_log *const saves = checkpoints_log(r->checkpoints);
	const struct stall_log *const tries = evaluations_log(r->evaluations);
	if (!saves || !tries)
		return saves ? saves : tries;
	return stalls_period_ns(saves) > stalls_period_ns(tries) ? saves : tries;
}

/* What comes again and again, stalls and the beginnings of epochs, is not unsteady: so many ns apart; 0: nothing does. */
static uint64_t period_ns(const struct run *r)
{
	const struct stall_log *const stalls = rarest_stalls(r);
	const uint64_t stall_ns = stalls ? stalls_period_ns(stalls) : 0;
	return stall_ns > 0 ? stall_ns : exchange_epoch_ns(&r->exchange);
}

/* Rates on the grid of windows, as far as completions reach: of each window, or of the whole periods around it that fill
 * one. */
static size_t window_rates(const struct run *r, double *rates)
{
	const uint64_t window_ns = r->monitor.window_ns;
	const uint64_t last_ns = r->rounds.completions.last.t_ns;
	const uint64_t period = period_ns(r);
	uint64_t length_ns = window_ns;
	if (period > 0 && period <= last_ns / PERIODS_LEAST)
		length_ns = (window_ns + period - 1) / period * period;
	size_t count = 0;
	for (; count < WINDOWS_MAX && (count + 1) * window_ns <= last_ns; count++) {
		const uint64_t middle_ns = count * window_ns + window_ns / 2;
		const uint64_t begin_ns = middle_ns > length_ns / 2 ? middle_ns - length_ns / 2 : 0;
		const uint64_t end_ns =
			begin_ns + length_ns < last_ns ? begin_ns + length_ns : last_ns;
		rates[count] = (completions_samples_at(&r->rounds.completions, end_ns) -
				       completions_samples_at(
					       &r->rounds.completions, end_ns - length_ns)) *
			       (double)NS_PER_S / (double)length_ns;
	}
	return count;
}

static const struct edge *edge_at(const struct monitor *monitor, uint64_t t_ns)
{
	size_t i = 0;
	while (i + 1 < monitor->count && monitor->edges[i].t_ns < t_ns)
		i++;
	return &monitor->edges[i];
}

/* Until a moment of the clock, whatever goes on then; else until all epochs are over. */
static bool measured_by_time(const struct run *r)
{
	return config_integer(r->config, KEY_MEASURE_EPOCHS) == 0 && !r->interrupted;
}

/* When the last step ended before that; 0: none did. */
static uint64_t stepped_before(const struct run *r, uint64_t t_ns)
{
	const struct completions *const c = &r->rounds.completions;
	struct completion since_first;
	return completions_between(c, 0, t_ns, &since_first) > 0
		       ? c->entries[0].t_ns + since_first.t_ns
		       : 0;
}

/* Narrows it to whole epochs, from the last step before a gap to the last step before another one; false: that would leave
 * less than a third of it. */
static bool narrow_to_epochs(const struct run *r, struct span *span)
{
	const struct exchange *const x = &r->exchange;
	const uint64_t start_ns = r->monitor.start_ns;
	uint64_t first_ns = 0;
	uint64_t last_ns = 0;
	for (size_t i = 0; i < x->gap_count && i < EXCHANGE_GAPS_MAX; i++) {
		const uint64_t stepped_ns = stepped_before(r, x->gaps[i].begin_ns - start_ns);
		if (stepped_ns < span->completed_from_ns ||
			x->gaps[i].end_ns - start_ns > span->completed_to_ns)
			continue;
		first_ns = first_ns > 0 ? first_ns : stepped_ns;
		last_ns = stepped_ns;
	}
	if (first_ns == 0 ||
		last_ns - first_ns < (span->completed_to_ns - span->completed_from_ns) / 3)
		return false;
	span->completed_from_ns = first_ns;
	span->completed_to_ns = last_ns;
	return true;
}

static const struct edge *edge_until(const struct monitor *monitor, uint64_t t_ns)
{
	size_t i = monitor->count - 1;
	while (i > 0 && monitor->edges[i].t_ns > t_ns)
		i--;
	return &monitor->edges[i];
}

static struct span span_from(const struct run *r, uint64_t cut_ns, uint64_t end_ns)
{
	const struct monitor *monitor = &r->monitor;
	struct span span = {
		.from = edge_at(monitor, cut_ns),
		.to = edge_until(monitor, end_ns),
	};
	span.seconds = (double)(span.to->t_ns - span.from->t_ns) / (double)NS_PER_S;
	span.completed_from_ns = r->timed ? span.from->t_ns : cut_ns;
	span.completed_to_ns = span.to->t_ns;
	const struct stall_log *const stalls = rarest_stalls(r);
	span.whole = stalls && stalls_whole(stalls, &span.completed_from_ns, &span.completed_to_ns);
	span.whole = span.whole || narrow_to_epochs(r, &span);
	span.completions = completions_between(
		&r->rounds.completions, span.completed_from_ns, span.completed_to_ns, &span.steps);
	span.last_ns = stepped_before(r, span.completed_to_ns);
	span.first_ns = span.last_ns - span.steps.t_ns;
	if (measured_by_time(r) && !span.whole)
		completions_add_standstill(&r->rounds.completions, span.completed_from_ns,
			span.completed_to_ns, STANDSTILL_NS, &span.steps);
	return span;
}

/* The configured warm-up, or less of a run that was shorter than twice that. */
static uint64_t least_cut(const struct run *r, struct measurement *m)
{
	const struct monitor *monitor = &r->monitor;
	const uint64_t end_ns = monitor->edges[monitor->count - 1].t_ns;
	if (r->warmup_ns <= end_ns / 2 || config_integer(r->config, KEY_MEASURE_EPOCHS) == 0)
		return r->warmup_ns;
	measurement_note(m, "the run of %s s was too short for measure.warmup: nothing was cut off",
		UNITS_PLAIN((double)end_ns / (double)NS_PER_S, 3));
	return 0;
}

/* All devices' of one step end together. */
static size_t steps_from(const struct run *r, uint64_t from_ns)
{
	struct completion steps;
	(void)completions_between(
		&r->rounds.completions, from_ns, r->rounds.completions.last.t_ns, &steps);
	return (size_t)(steps.batches / (uint64_t)config_integer(r->config, KEY_STEP_DEVICES));
}

static void judge_steadiness(const struct steady *steady, struct measurement *m)
{
	if (!steady->tested) {
		measurement_note(m, "steadiness not tested: %s", steady->reason);
	} else if (!steady->settled || !steady->stayed) {
		m->status = MEASUREMENT_UNSTEADY;
		measurement_note(m, "unsteady: %s", steady->reason);
	}
}

/* Whose clock went on and nothing else: then it was not this program alone. */
static bool machine_stood_still(const struct run *r, const struct stop *stop)
{
	const struct edge *from = edge_until(&r->monitor, stop->begin_ns);
	const struct edge *to = edge_at(&r->monitor, stop->end_ns);
	const double ran = to->usage.core_seconds - from->usage.core_seconds -
			   (to->usage.steal_seconds - from->usage.steal_seconds);
	const double all = (double)(to->t_ns - from->t_ns) / (double)NS_PER_S *
			   (double)sysconf(_SC_NPROCESSORS_ONLN);
	return ran < all / 2;
}

/* The longest part after the cut in which the process was not stopped.  What goes on is known only between edges. */
static struct stop part_without_stop(const struct run *r, uint64_t cut_ns, struct measurement *m)
{
	const struct patience *const p = &r->patience;
	const uint64_t start_ns = r->monitor.start_ns;
	const uint64_t end_ns = r->monitor.edges[r->monitor.count - 1].t_ns;
	struct stop best = {cut_ns, end_ns};
	struct stop longest = {0};
	uint64_t begin_ns = cut_ns;
	uint64_t most_ns = 0;
	if (p->stop_count == 0)
		return best;
	for (size_t i = 0; i <= p->stop_count; i++) {
		const struct stop stop = {
			i < p->stop_count ? p->stops[i].begin_ns - start_ns : end_ns,
			i < p->stop_count ? p->stops[i].end_ns - start_ns : end_ns};
		if (stop.begin_ns > begin_ns && stop.begin_ns - begin_ns > most_ns) {
			most_ns = stop.begin_ns - begin_ns;
			best = (struct stop){begin_ns, stop.begin_ns};
		}
		if (stop.end_ns - stop.begin_ns > longest.end_ns - longest.begin_ns)
			longest = stop;
		begin_ns = stop.end_ns > begin_ns ? stop.end_ns : begin_ns;
	}
	m->stood_still_seconds = (double)p->stopped_ns / (double)NS_PER_S;
	m->stood_still_at = (double)longest.begin_ns / (double)NS_PER_S;
	m->machine_stood_still = machine_stood_still(r, &longest);
	const bool cut_out = r->timed && most_ns >= r->duration_ns / LEFT_LEAST &&
			     2 * most_ns >= end_ns - cut_ns - p->stopped_ns;
	if (!cut_out && !r->interrupted)
		m->status = MEASUREMENT_UNSTEADY;
	char time[UNITS_BYTES];
	measurement_note(m, "%severything stood still for %s, %.1f s after the start: %s; %s",
		cut_out ? "" : "unsteady: ", units_format_duration((double)p->stopped_ns, time),
		m->stood_still_at,
		m->machine_stood_still
			? "the machine did not run"
			: "mlbench was stopped (SIGSTOP, Ctrl-Z), or frozen with its container",
		cut_out ? "only the part before or after it is measured"
			: "too little is left without it");
	return cut_out ? best : (struct stop){cut_ns, end_ns};
}

static struct span choose_span(const struct run *r, struct measurement *m)
{
	const uint64_t window_ns = r->monitor.window_ns;
	const uint64_t least_ns = least_cut(r, m);
	const uint64_t min_batches = (uint64_t)config_integer(r->config, KEY_MEASURE_MIN_BATCHES);
	double rates[WINDOWS_MAX];
	const size_t all_windows = window_rates(r, rates);
	const struct stop part = part_without_stop(r, least_ns, m);
	const size_t windows =
		part.end_ns / window_ns < all_windows ? part.end_ns / window_ns : all_windows;
	const size_t minimum = (size_t)((part.begin_ns + window_ns - 1) / window_ns);
	struct span span = span_from(r, part.begin_ns, part.end_ns);
	m->warmup_seconds = (double)edge_at(&r->monitor, least_ns)->t_ns / (double)NS_PER_S;
	if (r->interrupted)
		return span;
	if (windows > minimum) {
		const struct steady steady =
			steady_find(rates, windows, minimum, steps_from(r, minimum * window_ns));
		const struct span settled = span_from(r, steady.cut * window_ns, part.end_ns);
		/* Without the profiler there is no edge at a later cut. */
		if (r->timed && settled.steps.batches >= min_batches &&
			(settled.whole || !span.whole))
			span = settled;
		judge_steadiness(&steady, m);
	} else {
		measurement_note(m, "steadiness not tested: no whole window was measured");
	}
	if (span.steps.batches < min_batches &&
		config_integer(r->config, KEY_MEASURE_EPOCHS) == 0) {
		m->status = MEASUREMENT_UNSTEADY;
		measurement_note(m,
			"only %llu batches were measured, of measure.min_batches = %llu",
			(unsigned long long)span.steps.batches, (unsigned long long)min_batches);
	}
	return span;
}

/* --- stages and queues ----------------------------------------------------------------------- */

/* By the device's own time. */
static double device_capacity(const struct span *span, enum stage_id id, unsigned devices)
{
	const struct completion *const steps = &span->steps;
	const double samples = devices * (double)steps->samples;
	if (id == STAGE_STEP)
		return samples * (double)NS_PER_S / (double)steps->device_ns;
	uint64_t upload_ns = 0;
	uint64_t batches = 0;
	for (unsigned i = 0; i < devices; i++) {
		upload_ns += span->to->uploads[i].device_ns - span->from->uploads[i].device_ns;
		batches += span->to->uploads[i].batches - span->from->uploads[i].batches;
	}
	return samples / (double)steps->batches * (double)batches * (double)NS_PER_S /
	       (double)upload_ns;
}

static double stage_capacity(const struct run *r, const struct span *span, enum stage_id id,
	const struct stage_measurement *stage)
{
	const double batch = span->steps.batches > 0
				     ? (double)span->steps.samples / (double)span->steps.batches
				     : NAN;
	const double working = stage->seconds[THREAD_WORKING];
	if (devices_do_stage(&r->devices, id) && id != STAGE_SYNC)
		return device_capacity(span, id, r->plan.devices);
	/* Written by the step's thread, they take its time: there is no rate of their own. */
	if (working <= 0 || stage->items == 0 || (r->stages[id].threadless && id != STAGE_SYNC))
		return NAN;
	const double steps =
		id == STAGE_CHECKPOINT
			? (double)config_integer(r->config, KEY_CHECKPOINT_EVERY) * r->plan.devices
			: 1;
	const double samples = (double)stage->items * (stage->per_batch ? batch * steps : 1);
	return samples / working * stage->workers;
}

static void merge_service(const struct run *r, const struct span *span, enum stage_id id,
	struct stage_measurement *out)
{
	const struct stage *stage = &r->stages[id];
	/* The first edge is taken a moment after the start. */
	const uint64_t cut_ns = span->from == r->monitor.edges ? 0 : span->from->t_ns;
	for (unsigned i = 0; i < stage->workers; i++)
		service_log_merge(&stage->meters[i].service, cut_ns, span->to->t_ns, &out->service);
	/* A run of few items may have none that began after the rounded-up cut. */
	for (unsigned i = 0; out->service.count == 0 && i < stage->workers; i++)
		service_log_merge(&stage->meters[i].service, 0, UINT64_MAX, &out->service);
}

/* NAN: the count went backwards, as that of a thread whose account could not be read at the end. */
static double seconds_between(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns >= from_ns ? (double)(to_ns - from_ns) / (double)NS_PER_S : (double)NAN;
}

/* Where the threads' time went, as the kernel and the locks say. */
static void fill_split(const struct run *r, const struct span *span, enum stage_id id,
	struct stage_measurement *out, struct measurement *m)
{
	const char *name = r->stages[id].name;
	const struct thread_times *from = &span->from->stages[id];
	const struct thread_times *to = &span->to->stages[id];
	if (r->stages[id].threadless) {
		out->cpu_seconds = out->run_queue_seconds = out->io_wait_seconds = NAN;
		out->lock_wait_seconds = out->lock_held_seconds = NAN;
		out->overhead_seconds = NAN;
		return;
	}
	const bool accounted = span->to->accounted[id];
	const char *no_delays = io_delay_unavailable();
	out->cpu_seconds = accounted ? seconds_between(from->cpu_ns, to->cpu_ns) : NAN;
	out->run_queue_seconds =
		accounted ? seconds_between(from->run_queue_ns, to->run_queue_ns) : NAN;
	if (!accounted)
		measurement_note(m, "%s: CPU and run-queue time unknown: no schedstat", name);
	out->io_wait_seconds =
		no_delays ? (double)NAN : seconds_between(from->io_wait_ns, to->io_wait_ns);
	if (no_delays)
		measurement_note(m, "I/O wait of threads unknown: %s", no_delays);
	else if (id == STAGE_READ && r->source->ops->waits_as_io)
		measurement_note(m,
			"read: since Linux 6.6 any wait at a ring counts as I/O wait, which is no "
			"evidence of a slow disk");
	out->lock_wait_seconds = seconds_between(from->lock_wait_ns, to->lock_wait_ns);
	out->lock_held_seconds = seconds_between(from->lock_hold_ns, to->lock_hold_ns);
	out->overhead_seconds = seconds_between(from->overhead_ns, to->overhead_ns);
}

/* What a thread spent since it began, ns: not what it waited for a core or a lock. A part of the wait for a lock is on the run
 * queue as well. */
static double spent_ns(const struct thread_times *t)
{
	const double waited = (double)(t->run_queue_ns + t->lock_wait_ns + t->overhead_ns);
	return fmax((double)t->state_ns[THREAD_WORKING] - waited, (double)t->cpu_ns);
}

/* The threads have ended: their meters have it all. */
static void fill_slowest(const struct stage *stage, struct stage_measurement *out)
{
	enum { ITEMS_LEAST = 8 };
	struct thread_times slowest = {0};
	double all_ns = 0;
	double items = 0;
	out->slowest_ns = out->others_ns = NAN;
	for (unsigned i = 0; stage->meters && i < stage->workers; i++) {
		struct thread_times t;
		(void)thread_meter_read(&stage->meters[i], clock_now_ns(), &t);
		if (t.items < ITEMS_LEAST || t.cpu_ns == 0)
			continue;
		all_ns += spent_ns(&t);
		items += (double)t.items;
		if (slowest.items > 0 && spent_ns(&t) / (double)t.items <= out->slowest_ns)
			continue;
		slowest = t;
		out->slowest = i;
		out->slowest_ns = spent_ns(&t) / (double)t.items;
	}
	const double others = items - (double)slowest.items;
	if (others > 0)
		out->others_ns = (all_ns - spent_ns(&slowest)) / others;
}

static void fill_cores(const struct stage *stage, struct stage_measurement *out)
{
	cpu_set_t cores;
	CPU_ZERO(&cores);
	for (unsigned i = 0; stage->meters && !stage->threadless && i < stage->workers; i++)
		CPU_OR(&cores, &cores, &stage->meters[i].cores);
	out->cores = (uint32_t)CPU_COUNT(&cores);
}

static void collect_fill_stage(
	const struct run *r, const struct span *span, enum stage_id id, struct measurement *m)
{
	const struct stage *stage = &r->stages[id];
	const struct thread_times *from = &span->from->stages[id];
	const struct thread_times *to = &span->to->stages[id];
	struct stage_measurement *out = &m->stages[m->stage_count++];
	(void)snprintf(out->name, sizeof out->name, "%s", stage->name);
	out->workers = stage->workers;
	out->per_batch = stage->per_batch;
	out->device = devices_do_stage(&r->devices, id);
	out->items = to->items - from->items;
	for (int k = 0; k < THREAD_STATES; k++)
		out->seconds[k] = seconds_between(from->state_ns[k], to->state_ns[k]);
	fill_split(r, span, id, out, m);
	out->capacity = stage_capacity(r, span, id, out);
	const double total = stage->workers * span->seconds;
	out->capacity_is_lower_bound =
		id == STAGE_READ && out->seconds[THREAD_WORKING] < SHOWS_ITS_LIMIT * total;
	merge_service(r, span, id, out);
	fill_slowest(stage, out);
	fill_cores(stage, out);
}

static void fill_queue(const struct span *span, enum queue_id id, const char *name, uint32_t size,
	struct measurement *m)
{
	const struct queue_integrals *from = &span->from->queues[id];
	const struct queue_integrals *to = &span->to->queues[id];
	const double time = (double)(to->total_ns - from->total_ns);
	struct queue_measurement *out = &m->queues[m->queue_count++];
	(void)snprintf(out->name, sizeof out->name, "%s", name);
	out->capacity = size;
	out->mean_depth = (to->depth_ns - from->depth_ns) / time;
	out->empty_share = (double)(to->empty_ns - from->empty_ns) / time;
	out->full_share = (double)(to->full_ns - from->full_ns) / time;
}

static void fill_stages(const struct run *r, const struct span *span, struct measurement *m)
{
	double states = 0;
	double wall = 0;
	for (int id = 0; id < STAGE_IDS; id++) {
		if (r->stages[id].workers == 0)
			continue;
		collect_fill_stage(r, span, (enum stage_id)id, m);
		const struct stage_measurement *stage = &m->stages[m->stage_count - 1];
		for (int k = 0; k < THREAD_STATES; k++)
			states += stage->seconds[k];
		wall += stage->workers * span->seconds;
		if (id == STAGE_STEP)
			m->step_wait_share =
				stage->seconds[THREAD_STARVED] / span->seconds / stage->workers;
	}
	m->accounted = states / wall;
	fill_queue(span, QUEUE_SAMPLES, "samples", r->plan.blobs, m);
	fill_queue(span, QUEUE_BATCHES, "batches", r->plan.prefetch_depth, m);
	if (r->plan.staging_slots > 0)
		fill_queue(span, QUEUE_UPLOADED, "uploaded",
			(r->plan.staging_slots - 1) * r->plan.devices, m);
}

/* --- devices --------------------------------------------------------------------------------- */

static void fill_copies(const struct run *r, const struct span *span, unsigned device,
	const struct completion *steps, struct device_measurement *out)
{
	const bool by_stage = r->plan.staging_slots > 0;
	const struct upload_totals *const from = &span->from->uploads[device];
	const struct upload_totals *const to = &span->to->uploads[device];
	out->upload_seconds =
		seconds_between(0, by_stage ? to->device_ns - from->device_ns : steps->copy_ns);
	out->upload_bytes = (double)(by_stage ? to->bytes - from->bytes : steps->copy_bytes);
}

static void fill_flops(const struct step_account *step, const struct completion *steps,
	uint32_t batch_size, struct device_measurement *out)
{
	const double flops = step->flops_per_sample * (double)steps->stepped;
	if (!(out->flops_per_step > 0))
		out->flops_per_step = step->flops_per_sample * batch_size;
	if (!(flops > 0))
		return;
	if (steps->device_ns > 0)
		out->achieved_flops = flops / seconds_between(0, steps->device_ns);
	if (steps->t_ns > 0)
		out->model_utilisation = flops / seconds_between(0, steps->t_ns) / out->peak_flops;
}

/* Of the exchanges in the rounds that were complete by then.  Rounds are complete later than a
 * device's own step, so at the edges of a span their sums are of other steps than a device's: only
 * the share is taken from them. */
static double waiting_share(const struct round_sums *from, const struct round_sums *to)
{
	const uint64_t waiting_ns = to->waiting_ns - from->waiting_ns;
	const uint64_t all_ns = waiting_ns + to->exchange_ns - from->exchange_ns;
	return all_ns > 0 ? (double)waiting_ns / (double)all_ns : 0;
}

/* Of the exchange, what passed beside the step; NAN: it was never the last device, or nothing timed the first bucket. */
static double hidden_share(const struct round_sums *from, const struct round_sums *to)
{
	const uint64_t own_ns = to->own_ns - from->own_ns;
	const uint64_t hidden_ns = to->own_hidden_ns - from->own_hidden_ns;
	return own_ns > 0 ? (double)hidden_ns / (double)own_ns : (double)NAN;
}

static void collect_device(const struct run *r, const struct span *span, unsigned device,
	const struct step_account *step, struct device_measurement *out)
{
	struct completion own;
	const struct completion *const steps = &own;
	(void)completions_between(
		&step->completions, span->completed_from_ns, span->completed_to_ns, &own);
	*out = step->device;
	out->step_seconds = seconds_between(0, steps->device_ns);
	out->sync_seconds = seconds_between(0, steps->sync_ns);
	out->sync_wait_seconds = out->sync_seconds * waiting_share(&span->from->rounds[device],
							     &span->to->rounds[device]);
	out->sync_hidden_share =
		hidden_share(&span->from->rounds[device], &span->to->rounds[device]);
	if (!step->on_device)
		return;
	fill_copies(r, span, device, steps, out);
	fill_flops(step, steps, (uint32_t)config_integer(r->config, KEY_BATCH_SIZE), out);
	if (steps->idle_of_ns > 0)
		out->idle_share = (double)steps->idle_ns / (double)steps->idle_of_ns;
	if (steps->batches > 0)
		out->launch_ns = (double)steps->launch_ns / (double)steps->batches;
}

static void fill_ranks(const struct run *r, const struct span *span, struct measurement *m)
{
	const struct round_sums *const from = &span->from->rounds[0];
	const struct round_sums *const to = &span->to->rounds[0];
	if (!r->ranks)
		return;
	struct ranks_measurement *const out = &m->ranks[m->ranks_count++];
	*out = (struct ranks_measurement){
		.rank = r->ranks->world.rank,
		.count = (uint32_t)config_integer(r->config, KEY_RUN_RANKS),
		.rounds = to->count - from->count,
		.rounds_seconds = seconds_between(from->passed_ns, to->passed_ns),
		.bytes = r->gradients->options.bytes,
		.wait_seconds = seconds_between(from->waiting_ns, to->waiting_ns),
		.exchange_seconds = seconds_between(from->exchange_ns, to->exchange_ns),
		.last_rounds = to->last - from->last,
		.late_seconds = seconds_between(from->late_ns, to->late_ns),
		.own_seconds = seconds_between(from->own_ns, to->own_ns),
		.own_hidden_seconds = seconds_between(from->own_hidden_ns, to->own_hidden_ns),
		.siblings_cores = NAN,
		.clock_error_ns = (double)r->ranks->error_ns,
	};
	(void)snprintf(out->host, sizeof out->host, "%s", r->ranks->world.host);
	lateness_fill(&r->rounds.lateness, span->from == r->monitor.edges ? 0 : span->from->t_ns,
		span->to->t_ns, out);
}

static void fill_devices(const struct run *r, const struct span *span, struct measurement *m)
{
	for (unsigned i = 0; i < r->devices.count; i++) {
		const struct step_account *step = stepper_account(r->devices.steppers[i]);
		if (!step->described)
			continue;
		collect_device(r, span, i, step, &m->devices[m->device_count++]);
		if (step->not_pinned[0])
			measurement_note(m,
				"upload.memory = pinned was refused, memory is pageable: %s",
				step->not_pinned);
	}
	if (r->monitor.nvml)
		nvml_watch_fill(r->monitor.nvml, r->monitor.start_ns + span->from->t_ns,
			r->monitor.start_ns + span->to->t_ns, m);
	for (size_t i = 0; i < m->device_count && !r->monitor.nvml; i++)
		nvml_forget(&m->devices[i]);
}

/* --- the rest -------------------------------------------------------------------------------- */

static double longest_oversleep(const struct run *r)
{
	uint64_t longest_ns = 0;
	for (unsigned i = 0; i < r->devices.count; i++) {
		const uint64_t own_ns = stepper_account(r->devices.steppers[i])->oversleep_max_ns;
		longest_ns = own_ns > longest_ns ? own_ns : longest_ns;
	}
	return (double)longest_ns;
}

static void note_left_out(const struct run *r, struct measurement *m)
{
	const struct sampler_options all = plan_sampler(r->config, r->dataset);
	struct sampler_options alone = all;
	alone.devices = 1;
	const uint32_t left_out = sampler_used(&alone) - sampler_used(&all);
	if (left_out > 0)
		measurement_note(m,
			"%u samples of each epoch are left out: their batches do not make a whole round of %u devices",
			left_out, all.devices);
}

/* Everything but the first step: (samples / batch x computation time) / (total time less the first step). */
static double accelerator_utilisation(const struct run *r)
{
	const struct completions *const c = &r->rounds.completions;
	struct completion all;
	if (completions_between(c, 0, c->last.t_ns, &all) < 2 || all.t_ns == 0)
		return NAN;
	return (double)all.device_ns / (double)all.t_ns / r->plan.devices;
}

static void fill_throughput(const struct run *r, const struct span *span, struct measurement *m)
{
	const struct completion *steps = &span->steps;
	const double seconds = (double)steps->t_ns / (double)NS_PER_S;
	const bool any = steps->batches > 0;
	m->cut_seconds = (double)span->from->t_ns / (double)NS_PER_S;
	m->wall_seconds = (double)span->to->t_ns / (double)NS_PER_S;
	m->measured_seconds = seconds;
	m->samples = steps->samples;
	m->batches = steps->batches;
	m->epochs = r->rounds.sum.batches / r->plan.batches_per_epoch;
	m->bad_share =
		steps->stepped > 0 ? 1 - (double)steps->samples / (double)steps->stepped : NAN;
	m->throughput = any ? (double)steps->samples / seconds : NAN;
	m->step_utilisation =
		any ? (double)steps->device_ns / (double)steps->t_ns / r->plan.devices : NAN;
	m->accelerator_utilisation =
		r->plan.facts.step_null ? (double)NAN : accelerator_utilisation(r);
	note_left_out(r, m);
	m->loss_first = first_step(r)->loss_first;
	m->loss_last = first_step(r)->loss_last;
	const double flops = first_step(r)->flops_per_sample;
	m->flops_per_sample = flops > 0 ? flops : NAN;
	m->oversleep_mean_ns = any && first_step(r)->emulated
				       ? (double)steps->oversleep_ns / (double)steps->batches
				       : NAN;
	m->oversleep_max_ns = first_step(r)->emulated ? longest_oversleep(r) : NAN;
	first_epoch_checksum(&r->first_epoch, m);
	if (config_on(r->config, KEY_RUN_VERIFY) && !m->has_checksum)
		measurement_note(m, "no checksum: the run ended before its first epoch did");
}

/* Not all file systems count what they fetch: none at all, while the pages cannot all have been
 * there before, is no count. */
static bool counts_fetches(
	const struct run *r, const struct span *span, const struct measurement *m)
{
	const struct edge *start = &r->monitor.edges[0];
	if (!data_store_counts_fetches(&r->monitor.store))
		return false;
	const bool none = span->to->usage.disk_bytes - start->usage.disk_bytes <= 0;
	const bool must = config_on(r->config, KEY_READ_DIRECT) || m->resident_before < 0.5;
	return !(none && must && span->to->read.bytes > 0);
}

/* What fetching every file takes, in whole pages, over the bytes of the files: many are smaller than a page. */
static double pages_over_bytes(const struct dataset *dataset)
{
	static const uint64_t page = 4096;
	uint64_t fetched = 0;
	if (dataset->offsets || dataset->total_bytes == 0)
		return 1;
	for (size_t i = 0; i < dataset->count; i++)
		fetched += (dataset->samples[i].bytes + page - 1) / page * page;
	return (double)fetched / (double)dataset->total_bytes;
}

static void fill_cache_share(
	const struct run *r, const struct span *span, double disk_bytes, struct measurement *m)
{
	/* What inflates has fewer bytes in its files. */
	const uint64_t packed = span->to->read.packed_bytes - span->from->read.packed_bytes;
	const double asked =
		packed > 0 ? (double)packed : (double)m->bytes_read * pages_over_bytes(r->dataset);
	m->page_cache_share = NAN;
	if (source_emulates_storage(r->source)) {
		/* What there is to know of the files' real home would only mislead. */
		m->resident_before = 0;
		measurement_note(m,
			"injected: the storage is emulated, and so is its cache, empty at the start: what is said of the page cache and of bytes fetched is of these");
		if (m->bytes_read > 0)
			m->page_cache_share = fmax(0, 1 - disk_bytes / (double)m->bytes_read);
	} else if (r->plan.facts.reads_memory) {
		measurement_note(
			m, "page cache: no file is read while measuring (read.engine = memory)");
	} else if (!r->source->store->ops->local) {
		/* None of this node's lies between; what the server fetched is its own affair. */
		m->page_cache_share = 0;
		m->disk_bytes_per_s = NAN;
	} else if (isnan(disk_bytes)) {
		measurement_note(m, "page cache: share unknown, no /proc/self/io here");
	} else if (!counts_fetches(r, span, m)) {
		m->disk_bytes_per_s = NAN;
		measurement_note(m,
			"page cache: share unknown, this file system does not count what it fetches");
	} else if (m->bytes_read > 0) {
		const double share = 1 - disk_bytes / asked;
		m->page_cache_share = share > 0 ? share : 0;
	}
}

/* The first epoch fills the page cache again. */
static double after_cold(const struct run *r, const struct span *span)
{
	const double from = (double)span->from->read.files;
	const double read = (double)span->to->read.files - from;
	const double cold = fmax((double)r->dataset->count - from, 0);
	const bool cached = r->source->store->ops->local && !r->plan.facts.reads_memory &&
			    !r->source->past_cache;
	if (config_integer(r->config, KEY_READ_CACHE) != READ_CACHE_COLD || !cached)
		return 0;
	return read > 0 ? fmax(1 - cold / read, 0) : 0;
}

/* A group's quota may change meanwhile: the one that was in force where it throttled most, else the last.  INFINITY: it had
 * none. */
static double quota_in_force(const struct span *span, size_t quota)
{
	double cores = span->to->quotas[quota].cores;
	double most = 0;
	for (const struct edge *e = span->from; e < span->to; e++) {
		const double throttled = e[1].quotas[quota].throttled - e->quotas[quota].throttled;
		if (!(throttled > most))
			continue;
		most = throttled;
		cores = fmin(e->quotas[quota].cores, e[1].quotas[quota].cores);
	}
	return cores;
}

/* Of several groups with a quota, the one that throttled most in the span, else the tightest;
 * count: there is none. */
static size_t choose_quota(const struct monitor *monitor, const struct span *span)
{
	size_t chosen = monitor->quotas.count;
	double most = 0;
	double tightest = INFINITY;
	for (size_t i = 0; i < monitor->quotas.count; i++) {
		const double throttled =
			span->to->quotas[i].throttled - span->from->quotas[i].throttled;
		const double cores = quota_in_force(span, i);
		if (!isfinite(cores))
			continue;
		if (throttled > most || (most <= 0 && cores < tightest)) {
			most = fmax(throttled, 0);
			tightest = cores;
			chosen = i;
		}
	}
	return chosen;
}

/* Without a period in which the group wanted anything, nothing was throttled. */
static void fill_quota(const struct run *r, const struct span *span, struct measurement *m)
{
	const struct cpu_quotas *quotas = &r->monitor.quotas;
	const size_t chosen = choose_quota(&r->monitor, span);
	m->quota_cores = m->quota_used = m->throttled_share = m->throttled_seconds = NAN;
	if (chosen == quotas->count) {
		if (quotas->unknown[0])
			measurement_note(m, "throttling unknown: %s", quotas->unknown);
		else
			m->throttled_share = m->throttled_seconds = 0;
		return;
	}
	const struct cpu_quota_use *from = &span->from->quotas[chosen];
	const struct cpu_quota_use *to = &span->to->quotas[chosen];
	const double periods = to->periods - from->periods;
	m->quota_cores = quota_in_force(span, chosen);
	m->quota_used = (to->seconds - from->seconds) / span->seconds;
	(void)snprintf(m->quota_group, sizeof m->quota_group, "%s", quotas->of[chosen].group);
	m->throttled_share = periods > 0 ? (to->throttled - from->throttled) / periods : periods;
	m->throttled_seconds = to->throttled_seconds - from->throttled_seconds;
	if (isnan(m->throttled_share))
		measurement_note(m, "throttling unknown: cgroup %s has no cpu.stat",
			quotas->of[chosen].group);
}

/* What there is to know of the files' real home would only mislead where it is not what is read. */
static void fill_store(const struct run *r, const struct span *span, struct measurement *m)
{
	const struct data_store *store = &r->monitor.store;
	struct cgroup_read_limits now;
	if (!r->source->store->ops->local) {
		store_measurement_init(
			&m->store, "the data are read over the network, without a mount");
		return;
	}
	if (source_emulates_storage(r->source) || r->plan.facts.reads_memory) {
		store_measurement_init(&m->store, source_emulates_storage(r->source)
							  ? "the storage is emulated"
							  : "no file is read while measuring");
		return;
	}
	/* Not by the path again: a store that has died by now would hold us. */
	cgroup_read_limits(store->disk.numbers, store->disk.count, &now);
	data_store_between(
		store, &now, &span->from->store, &span->to->store, span->seconds, &m->store);
	if (now.bytes.per_s != store->limits.bytes.per_s ||
		now.requests.per_s != store->limits.requests.per_s)
		measurement_note(
			m, "a control group's limit on reads changed during the run: none is told");
}

static double mean_between(uint64_t to, uint64_t from, double count)
{
	return count > 0 ? (double)(to - from) / count : NAN;
}

/* Of an engine that is a client itself. */
static void fill_network_of_engine(const struct network_counts *from,
	const struct network_counts *to, double seconds, struct network_measurement *out)
{
	network_measurement_init(out, "");
	(void)snprintf(out->protocol, sizeof out->protocol, "%s", to->protocol);
	(void)snprintf(out->client, sizeof out->client, "nfs engine");
	(void)snprintf(
		out->server, sizeof out->server, "%.*s", NETWORK_SERVER_BYTES - 1, to->server);
	out->seconds = seconds;
	out->connections = to->connections;
	out->request_bytes = (double)to->request_bytes;
	out->idle_round_trip_ns =
		mean_between(to->probe_ns, from->probe_ns, (double)(to->probes - from->probes));
	out->wire_round_trip_ns = to->wire_ns > 0 ? (double)to->wire_ns : NAN;
	out->link_bytes_per_s = network_link_bytes_per_s(out->server);
	const double receiving =
		mean_between(to->receiving_ns, from->receiving_ns, seconds * (double)NS_PER_S);
	out->receiving_share = receiving > 1 ? 1 : receiving; /* not fmin, which makes 1 of NAN */
	out->packet_bytes = to->packet_bytes > 0 ? (double)to->packet_bytes : NAN;
	for (size_t i = 0; i < to->kind_count; i++) {
		const double calls = (double)(to->kinds[i].calls - from->kinds[i].calls);
		const uint64_t repeats = to->kinds[i].repeats - from->kinds[i].repeats;
		if (calls + (double)repeats == 0)
			continue;
		size_t at = out->call_count++;
		for (; at > 0 && out->calls[at - 1].calls < calls; at--) /* most first */
			out->calls[at] = out->calls[at - 1];
		struct network_call *const call = &out->calls[at];
		*call = (struct network_call){.calls = calls,
			.retransmits = (double)repeats,
			.queue_ns =
				mean_between(to->kinds[i].queue_ns, from->kinds[i].queue_ns, calls),
			.round_trip_ns = mean_between(
				to->kinds[i].round_trip_ns, from->kinds[i].round_trip_ns, calls),
			.execute_ns = mean_between(
				to->kinds[i].execute_ns, from->kinds[i].execute_ns, calls),
			.bytes_sent = (double)(to->kinds[i].sent_bytes - from->kinds[i].sent_bytes),
			.bytes_received = (double)(to->kinds[i].received_bytes -
						   from->kinds[i].received_bytes)};
		(void)snprintf(call->name, sizeof call->name, "%s", to->kinds[i].name);
	}
}

/* Of a mount that the kernel made, or of the engine. */
static void fill_network(const struct run *r, const struct span *span, struct measurement *m)
{
	const struct monitor *monitor = &r->monitor;
	const bool reads_files = !source_emulates_storage(r->source) && !r->plan.facts.reads_memory;
	if (reads_files && span->to->network.protocol) {
		fill_network_of_engine(
			&span->from->network, &span->to->network, span->seconds, &m->network);
		return;
	}
	if (!monitor->mounts || !reads_files) {
		network_measurement_init(
			&m->network, reads_files ? r->source->store->ops->local
							   ? "no NFS is mounted there"
							   : "the nfs engine alone counts its calls"
						 : m->store.why);
		return;
	}
	mountstats_between(&monitor->mounts[span->from - monitor->edges],
		&monitor->mounts[span->to - monitor->edges], span->seconds, &m->network);
	m->network.link_bytes_per_s = network_link_bytes_per_s(monitor->store.server);
	m->network.wire_round_trip_ns =
		network_wire_round_trip_ns(monitor->store.server, monitor->store.server_port);
	if (config_integer(r->config, KEY_READ_CACHE) == READ_CACHE_COLD)
		measurement_note(m,
			"read.cache = cold on %s: this client's page cache was cold; the server "
			"may have the files in its memory",
			m->network.protocol);
}

/* Pages of mapped data files are the page cache's: they take no memory from anybody. */
static double resident_own(const struct run *r, const struct process_usage *usage)
{
	return usage->resident_bytes - (r->source->ops->maps ? usage->file_bytes : 0);
}

static uint64_t resident_peak(const struct run *r)
{
	const struct edge *const edges = r->monitor.edges;
	double most = 0;
	if (!r->source->ops->maps)
		return memory_resident_peak_bytes();
	for (size_t i = 0; i < r->monitor.count; i++)
		most = fmax(most, resident_own(r, &edges[i].usage));
	return (uint64_t)(most + edges[0].usage.file_bytes);
}

static void fill_usage(const struct run *r, const struct span *span, struct measurement *m)
{
	const struct process_usage *from = &span->from->usage;
	const struct process_usage *to = &span->to->usage;
	const double disk_bytes =
		source_emulates_storage(r->source)
			? (double)(span->to->read.stored_bytes - span->from->read.stored_bytes)
			: to->disk_bytes - from->disk_bytes;
	m->bytes_read = span->to->read.bytes - span->from->read.bytes;
	m->read_requests = span->to->read.requests - span->from->read.requests;
	m->bytes_read_per_s = (double)m->bytes_read / span->seconds;
	m->disk_bytes_per_s = disk_bytes / span->seconds;
	fill_cache_share(r, span, disk_bytes, m);
	m->after_cold = after_cold(r, span);
	m->cpu_seconds = to->cpu_seconds - from->cpu_seconds;
	m->system_seconds = to->system_seconds - from->system_seconds;
	m->switches = to->switches - from->switches;
	const double outside =
		(to->machine_seconds - from->machine_seconds - m->cpu_seconds) / span->seconds;
	m->cores_allowed = (uint32_t)CPU_COUNT(&r->monitor.cores);
	m->cores_reachable = r->monitor.reachable;
	m->cores_busy_outside = outside < 0 ? 0 : outside;
	m->cores_busy_elsewhere = (to->elsewhere_seconds - from->elsewhere_seconds) / span->seconds;
	if (isnan(outside))
		measurement_note(m, "load from outside unknown: no /proc/stat");
	fill_quota(r, span, m);
	fill_store(r, span, m);
	fill_network(r, span, m);
	m->steal_share =
		(to->steal_seconds - from->steal_seconds) / (to->core_seconds - from->core_seconds);
	const double growth = resident_own(r, to) - resident_own(r, from);
	m->rss_growth_bytes = growth > 0 ? (uint64_t)growth : 0;
	m->rss_peak_bytes = resident_peak(r);
	m->pool_bytes = r->plan.pool_bytes;
	(void)snprintf(m->engine, sizeof m->engine, "%s", r->source->ops->name);
	m->dataset_samples = r->dataset->count;
	m->batch_bytes = r->plan.batch_bytes;
	m->storage_files = r->dataset->files;
	m->storage_bytes = r->dataset->stored_bytes;
	m->file_bytes_mean = (double)r->dataset->total_bytes / (double)r->dataset->count;
}

/* Since the start. */
static void fill_window_load(
	const struct edge *edge, const struct edge *start, size_t quota, struct window *out)
{
	const struct process_usage *from = &start->usage;
	const struct process_usage *to = &edge->usage;
	out->own_cpu = to->cpu_seconds - from->cpu_seconds;
	out->machine_cpu = to->machine_seconds - from->machine_seconds;
	out->machine_steal = to->steal_seconds - from->steal_seconds;
	out->machine_time = to->core_seconds - from->core_seconds;
	out->quota_cores = out->quota_periods = out->quota_throttled = NAN;
	out->quota_used = out->throttled_seconds = NAN;
	if (quota == CPU_QUOTAS_MAX)
		return;
	const struct cpu_quota_use *used = &edge->quotas[quota];
	out->quota_cores = isinf(used->cores) ? 0 : used->cores;
	out->quota_used = used->seconds - start->quotas[quota].seconds;
	out->quota_periods = used->periods - start->quotas[quota].periods;
	out->quota_throttled = used->throttled - start->quotas[quota].throttled;
	out->throttled_seconds = used->throttled_seconds - start->quotas[quota].throttled_seconds;
}

static void fill_window(const struct edge *edge, const struct run *r, struct window *out)
{
	out->t = (double)edge->t_ns / (double)NS_PER_S;
	out->samples = edge->samples;
	out->bytes_read = edge->read.bytes;
	out->resident_bytes = (uint64_t)edge->usage.resident_bytes;
	out->file_bytes = (uint64_t)edge->usage.file_bytes;
	out->heap_used_bytes = edge->usage.heap_used_bytes;
	out->heap_free_bytes = edge->usage.heap_free_bytes;
	size_t stage = 0;
	for (int id = 0; id < STAGE_IDS; id++) {
		if (r->stages[id].workers == 0)
			continue;
		for (int k = 0; k < THREAD_STATES; k++)
			out->stage_seconds[stage][k] =
				(double)edge->stages[id].state_ns[k] / (double)NS_PER_S;
		const int64_t held = edge->stages[id].allocated_bytes;
		out->stage_allocated[stage] = held > 0 ? (uint64_t)held : 0;
		out->stage_cpu[stage] = out->stage_run_queue[stage] = NAN;
		if (edge->accounted[id]) {
			out->stage_cpu[stage] = (double)edge->stages[id].cpu_ns / (double)NS_PER_S;
			out->stage_run_queue[stage] =
				(double)edge->stages[id].run_queue_ns / (double)NS_PER_S;
		}
		stage++;
	}
	for (int id = 0; id < QUEUE_IDS; id++)
		out->queue_depth[id] = edge->queue_depth[id];
}

static int fill_windows(const struct run *r, const struct span *span, struct measurement *m)
{
	const struct monitor *monitor = &r->monitor;
	const size_t chosen = choose_quota(monitor, span);
	const size_t quota = chosen < monitor->quotas.count ? chosen : CPU_QUOTAS_MAX;
	m->window_seconds = (double)monitor->window_ns / (double)NS_PER_S;
	m->windows = calloc(monitor->count, sizeof *m->windows);
	if (!m->windows)
		return -ENOMEM;
	/* The first edge is the start; windows are known by their ends. */
	for (size_t i = 1; i < monitor->count; i++) {
		struct window *window = &m->windows[m->window_count++];
		fill_window(&monitor->edges[i], r, window);
		fill_window_load(&monitor->edges[i], monitor->edges, quota, window);
		monitor_device_window(monitor, monitor->start_ns + monitor->edges[i].t_ns, window);
	}
	return 0;
}

/* --- traces ---------------------------------------------------------------------------------- */

enum which_log { LOG_STAGE, LOG_DEVICE, LOG_RAMP };

static const struct trace_log *trace_log_of(const struct thread_meter *meter, enum which_log which)
{
	switch (which) {
	case LOG_DEVICE:
		return &meter->device;
	case LOG_RAMP:
		return &meter->ramp;
	case LOG_STAGE:
		break;
	}
	return &meter->trace;
}

/* What the stage's threads did, or devices did for them, or the first of it; nothing where there
 * is no such log. */
static int gather_trace(const struct run *r, const struct span *span, enum stage_id id,
	enum which_log which, struct traces *traces)
{
	const struct stage *const stage = &r->stages[id];
	if (stage->workers == 0 || !stage->meters || trace_log_of(stage->meters, which)->room == 0)
		return 0;
	const struct trace_log **logs = malloc(stage->workers * sizeof(const struct trace_log *));
	if (!logs)
		return -ENOMEM;
	for (unsigned i = 0; i < stage->workers; i++)
		logs[i] = trace_log_of(&stage->meters[i], which);
	char name[NAME_BYTES];
	(void)snprintf(name, sizeof name, "%s%s", which == LOG_DEVICE ? TRACE_DEVICE_PREFIX : "",
		which == LOG_RAMP ? TRACE_READ_RAMP : stage->name);
	const uint64_t start_ns = r->monitor.start_ns;
	const struct trace_source source = {
		.stage = name,
		.kind = id == STAGE_READ     ? TRACE_READ
			: id == STAGE_DECODE ? TRACE_DECODE
					     : TRACE_BATCH,
		.logs = logs,
		.count = stage->workers,
		.start_ns = start_ns,
		.begin_ns = which == LOG_RAMP ? start_ns : start_ns + span->from->t_ns,
		.end_ns = start_ns + span->to->t_ns,
	};
	struct trace *const trace = &traces->stages[traces->stage_count];
	int code = trace_gather(trace, &source);
	traces->stage_count += code == 0;
	free(logs);
	if (!code && which == LOG_STAGE && (id == STAGE_READ || id == STAGE_DECODE))
		code = trace_name_samples(trace, r->dataset);
	return code;
}

static int fill_traces(const struct run *r, const struct span *span, struct traces *traces)
{
	int code = 0;
	traces->begin_s = seconds_between(0, span->from->t_ns);
	traces->end_s = seconds_between(0, span->to->t_ns);
	for (int id = 0; id < STAGE_IDS && !code; id++)
		code = gather_trace(r, span, (enum stage_id)id, LOG_STAGE, traces);
	for (int id = 0; id < STAGE_IDS && !code; id++)
		code = gather_trace(r, span, (enum stage_id)id, LOG_DEVICE, traces);
	return code ? code : gather_trace(r, span, STAGE_READ, LOG_RAMP, traces);
}

/* --- all of it ------------------------------------------------------------------------------- */

int collect(const struct run *r, struct measurement *m, struct traces *traces)
{
	m->status = r->interrupted ? MEASUREMENT_INTERRUPTED : MEASUREMENT_OK;
	const struct span span = choose_span(r, m);
	fill_throughput(r, &span, m);
	fill_usage(r, &span, m);
	fill_devices(r, &span, m);
	fill_ranks(r, &span, m);
	if (!r->timed) {
		measurement_note(m,
			"measure.profiler is off: throughput only, no states, queues or windows");
		return 0;
	}
	fill_stages(r, &span, m);
	m->restart_seconds = seconds_between(0,
		exchange_whole_gaps_ns(&r->exchange, r->monitor.start_ns + span.completed_from_ns,
			r->monitor.start_ns + span.completed_to_ns, &m->restarts));
	checkpoints_fill(r, span.first_ns, span.last_ns, m);
	evaluations_fill(r, span.first_ns, span.last_ns, m);
	const int code = traces ? fill_traces(r, &span, traces) : 0;
	return code ? code : fill_windows(r, &span, m);
}
