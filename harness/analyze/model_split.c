/* What a stage's working time was spent on, and how busy the cores were meanwhile. */
#include "harness/analyze/model_parts.h"

#include <math.h>
#include <string.h>

/* Less than this share off the cores is the accounting's roundness, not a wait. */
static const double SLEEP_LEAST = 0.01;
/* Shares of the cores that are busy: below, one is always free; above, there is always a queue. */
static const double SHORT_FROM = 0.8;
static const double SHORT_TO = 0.95;
/* Cores got by others: below, they are short visits that get a core at once; above, threads that compute
 * and have to share. */
static const double VISITORS = 0.1;
static const double BURDEN = 0.3;
static const double STOPS = 0.1;      /* of a quota's periods: in fewer, it is of no matter */
static const double OUTSIDE_MOST = 4; /* a core */

static double or_zero(double value)
{
	return isnan(value) ? 0 : value;
}

static double share_of(double value, double from, double to)
{
	return fmin(fmax((value - from) / (to - from), 0), 1);
}

/* 1 where runnable threads queue for cores all the time, 0 where there is always one free. */
static double shortness(const struct measurement *m, double cores)
{
	double busy = or_zero(m->cores_busy_outside);
	const double seconds = measurement_counted_seconds(m);
	if (seconds > 0)
		busy += or_zero(m->cpu_seconds) / seconds;
	return share_of(busy / cores, SHORT_FROM, SHORT_TO);
}

/* Run-queue time of a stage that computes is left out: the replay makes it anew.  Of one that sleeps in its
 * items it is the time of waking up, which the replay knows nothing of: off the cores.  So it counts as the
 * one or the other as the rest of the time does. */
struct time_split time_split_of(const struct stage_measurement *stage)
{
	const double base = stage->seconds[THREAD_WORKING] - or_zero(stage->lock_wait_seconds);
	if (isnan(stage->cpu_seconds) || !(base > 0))
		return (struct time_split){.cpu = 1};
	const double cpu = fmin(stage->cpu_seconds / base, 1);
	const double queued = or_zero(stage->run_queue_seconds) / base;
	const double asleep = fmax(1 - cpu - queued, 0);
	const double computes = cpu > 0 ? cpu / (cpu + asleep) : 0;
	const double sleep = 1 - cpu - fmin(computes * queued, 1 - cpu);
	return (struct time_split){
		.cpu = cpu, .sleep = sleep < SLEEP_LEAST ? 0 : sleep, .known = true};
}

/* Threads of this process beside the stages' (kernel workers, the sampler), as cores. */
static double others_of_ours(const struct measurement *m)
{
	double stages = 0;
	for (size_t i = 0; i < m->stage_count; i++)
		stages += or_zero(m->stages[i].cpu_seconds);
	const double seconds = measurement_counted_seconds(m);
	return seconds > 0 ? fmax(or_zero(m->cpu_seconds) - stages, 0) / seconds : 0;
}

bool quota_stops(const struct measurement *m)
{
	return m->quota_cores > 0 && m->throttled_share >= STOPS;
}

/* A quota leaves cores idle between the times in which all that want one are on them, as far as there are any: it is
 * then that cores slow each other down. */
static double cores_in_use(const struct measurement *m, const struct stage_measurement *stage)
{
	const double queued = quota_stops(m) ? or_zero(stage->run_queue_seconds) : 0;
	return (or_zero(stage->cpu_seconds) + queued) / measurement_counted_seconds(m);
}

double busy_beside_decode(const struct measurement *m, double cores)
{
	const struct stage_measurement *decode = measurement_stage(m, STAGE_DECODE);
	if (!decode || !(m->measured_seconds > 0) || decode->workers == 0)
		return 1;
	double busy = or_zero(m->cores_busy_outside) + others_of_ours(m);
	for (size_t i = 0; i < m->stage_count; i++) {
		const double own = cores_in_use(m, &m->stages[i]);
		busy += &m->stages[i] == decode ? own * (1 - 1.0 / decode->workers) : own;
	}
	return fmin(1 + busy, fmax(cores, 1));
}

struct outside outside_threads(const struct measurement *m, double cores, bool step_on_cores)
{
	const double got = or_zero(m->cores_busy_outside) + (step_on_cores ? 0 : others_of_ours(m));
	double cpu = 0;
	double queued = 0;
	for (size_t i = 0; i < m->stage_count; i++) {
		cpu += or_zero(m->stages[i].cpu_seconds);
		queued += or_zero(m->stages[i].run_queue_seconds);
	}
	/* Where cores are short, all that want one get the same share of what they want. */
	const double is_short = shortness(m, cores) * share_of(got, VISITORS, BURDEN);
	const double share = cpu > 0 ? cpu / (cpu + is_short * queued) : 1;
	return (struct outside){got, fmin(got / share, OUTSIDE_MOST * cores)};
}

enum replay_stage model_cost_stage(enum replay_cost cost)
{
	if (cost <= COST_READ_DEVICE)
		return REPLAY_READ;
	if (cost <= COST_DECODE_WAIT)
		return REPLAY_DECODE;
	if (cost == COST_SYNC)
		return REPLAY_SYNC;
	return cost == COST_UPLOAD ? REPLAY_UPLOAD : REPLAY_STEP;
}
