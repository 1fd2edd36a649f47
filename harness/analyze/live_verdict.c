/* The difference of two snapshots of a run, judged like a measurement. */
#include "harness/analyze/live_verdict.h"

#include "harness/base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES_LEAST = 4 };

static const double SECONDS_LEAST = 1;
static const double CLEAR = 0.75, LIKELY = 0.50;

/* --- is it time? ------------------------------------------------------------------------------ */

static bool live_cannot(struct live_verdict *out, const char *words)
{
	(void)snprintf(out->words, sizeof out->words, "%s", words);
	return false;
}

static bool live_runs(const struct live_view *to, struct live_verdict *out)
{
	if (to->phase != LIVE_WARMUP && to->phase != LIVE_MEASURING && to->phase != LIVE_LIMITS)
		return live_cannot(out, "none: no repetition is running");
	if (to->limit)
		return live_cannot(out, "none: a stage runs alone, to measure its limit");
	if (!to->timed)
		return live_cannot(out,
			"unknown: measure.profiler is off, so that thread time is not accounted "
			"for");
	if (to->updated_ns >= to->warm_ns)
		return true;
	(void)snprintf(out->words, sizeof out->words, "too early: the warm-up ends in %.1f s",
		(double)(to->warm_ns - to->updated_ns) / (double)NS_PER_S);
	return false;
}

static bool live_is_enough(
	const struct live_sums *from, const struct live_view *to, struct live_verdict *out)
{
	if (!live_runs(to, out))
		return false;
	const bool follows = from->t_ns > 0 && from->t_ns >= to->begun_ns &&
			     to->updated_ns > from->t_ns && to->batches >= from->batches;
	out->over_s = follows ? (double)(to->updated_ns - from->t_ns) / (double)NS_PER_S : 0;
	const uint64_t batches = follows ? to->batches - from->batches : 0;
	if (out->over_s >= SECONDS_LEAST && batches >= BATCHES_LEAST)
		return true;
	(void)snprintf(out->words, sizeof out->words,
		"too early: %.1f s and %llu batch%s since the warm-up", out->over_s,
		(unsigned long long)batches, batches == 1 ? "" : "es");
	return false;
}

/* --- the measurement -------------------------------------------------------------------------- */

static double grown(double from, double to)
{
	return fmax(to - from, 0); /* NAN: fmax would hide it */
}

static double grown_or_unknown(double from, double to)
{
	return isnan(from) || isnan(to) ? NAN : grown(from, to);
}

static void live_fill_stage(const struct live_stage *from, const struct live_stage *to,
	double samples_per_batch, struct stage_measurement *out)
{
	memcpy(out->name, to->name, sizeof out->name);
	out->workers = to->workers;
	out->per_batch = to->per_batch;
	out->device = to->device;
	out->items = to->items > from->items ? to->items - from->items : 0;
	for (int k = 0; k < THREAD_STATES; k++)
		out->seconds[k] = grown(from->seconds[k], to->seconds[k]);
	out->cpu_seconds = grown_or_unknown(from->cpu_seconds, to->cpu_seconds);
	out->run_queue_seconds = grown_or_unknown(from->run_queue_seconds, to->run_queue_seconds);
	out->io_wait_seconds = grown_or_unknown(from->io_wait_seconds, to->io_wait_seconds);
	out->lock_wait_seconds = grown_or_unknown(from->lock_wait_seconds, to->lock_wait_seconds);
	out->lock_held_seconds = NAN;
	const double samples = (double)out->items * (to->per_batch ? samples_per_batch : 1);
	const double working = out->seconds[THREAD_WORKING];
	out->capacity = working > 0 && samples > 0 ? samples / working * to->workers : NAN;
}

static void live_fill_stages(
	const struct live_sums *from, const struct live_view *to, struct measurement *m)
{
	double states = 0;
	double wall = 0;
	const double batch = m->batches > 0 ? (double)m->samples / (double)m->batches : NAN;
	m->stage_count = to->stage_count;
	for (size_t i = 0; i < m->stage_count; i++) {
		struct stage_measurement *stage = &m->stages[i];
		live_fill_stage(&from->stages[i], &to->stages[i], batch, stage);
		for (int k = 0; k < THREAD_STATES; k++)
			states += stage->seconds[k];
		wall += stage->workers * m->measured_seconds;
	}
	m->accounted = wall > 0 ? states / wall : NAN;
}

static void live_fill(
	const struct live_sums *from, const struct live_view *to, struct measurement *m)
{
	*m = (struct measurement){.status = MEASUREMENT_OK,
		.measured_seconds = (double)(to->updated_ns - from->t_ns) / (double)NS_PER_S,
		.samples = to->samples - from->samples,
		.batches = to->batches - from->batches,
		.bad_samples = to->bad_samples,
		.bytes_read = to->bytes_read - from->bytes_read,
		.step_utilisation = NAN,
		.step_wait_share = NAN,
		.disk_bytes_per_s = NAN,
		.page_cache_share = NAN,
		.resident_before = NAN,
		.cores_busy_outside = NAN,
		.quota_cores = NAN,
		.throttled_share = NAN,
		.throttled_seconds = NAN,
		.steal_share = NAN,
		.oversleep_mean_ns = NAN,
		.oversleep_max_ns = NAN,
		.loss_first = NAN,
		.loss_last = NAN,
		.file_bytes_mean = NAN,
		.pool_bytes = to->pool_bytes};
	m->throughput = (double)m->samples / m->measured_seconds;
	m->bytes_read_per_s = (double)m->bytes_read / m->measured_seconds;
	live_fill_stages(from, to, m);
}

static struct point_facts live_facts(const struct live_view *to)
{
	struct point_facts facts = {.cores = to->cores,
		.read_depth = to->read_depth,
		.step_threads = to->step_threads,
		.batch_size = to->batch_size,
		.prefetch_depth = to->prefetch_depth,
		.step_emulated = to->step_emulated,
		.reads_memory = to->reads_memory,
		.any_order = to->any_order};
	for (size_t i = 0; i < to->stage_count; i++) {
		if (stage_is(to->stages[i].name, STAGE_READ))
			facts.read_threads = to->stages[i].workers;
		if (stage_is(to->stages[i].name, STAGE_DECODE))
			facts.decode_workers = to->stages[i].workers;
	}
	return facts;
}

/* --- words ------------------------------------------------------------------------------------ */

static const char *sureness(double confidence)
{
	return confidence >= CLEAR ? "clear" : confidence >= LIKELY ? "likely" : "unsure";
}

static void live_say(struct live_verdict *out)
{
	const struct verdict *v = &out->verdict;
	out->told = strcmp(v->stage, "none") != 0;
	if (!out->told) {
		const char *why = v->evidence_count > 0 ? v->evidence[0] : "the reason is unknown";
		(void)snprintf(out->words, sizeof out->words, "none yet: %.200s", why);
		return;
	}
	(void)snprintf(out->words, sizeof out->words,
		"forming: %s / %s, so far%s%s (%s, %.0f %% sure, over %.1f s)", v->stage,
		v->resource, v->also[0] ? ", with " : "", v->also, sureness(v->confidence),
		v->confidence * 100, out->over_s);
}

void live_verdict_of(
	const struct live_sums *from, const struct live_view *to, struct live_verdict *out)
{
	*out = (struct live_verdict){0};
	if (!live_is_enough(from, to, out))
		return;
	struct measurement *m = malloc(sizeof *m);
	struct point_summary *summary = calloc(1, sizeof *summary);
	const struct measurement *one = m;
	const struct point_facts facts = live_facts(to);
	bool judged = m && summary;
	if (judged) {
		live_fill(from, to, m);
		judged = summary_of_point(&one, 1, &facts, summary, NULL) == 0;
	}
	if (judged) {
		out->verdict = summary->verdict;
		point_summary_release(summary);
		live_say(out);
	} else {
		(void)live_cannot(out, "none: out of memory");
	}
	free(summary);
	free(m);
}
