/* The costs that a replay is fed with, from the recorded items.
 *
 * The service time of an item is wall time.  What it waited for the workers' lock is left out, and
 * so is its part of the stage's run-queue time, because the replay makes both anew.  The rest was
 * spent on a core or off it, in the proportion that the stage's own accounting shows. */
#include "harness/analyze/model_internal.h"

#include "harness/analyze/statistics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A smaller share off the cores is rounding in the accounting, not a wait. */
static const double SLEEP_LEAST = 0.01;
/* Busy share of the cores: below, a core is always free; above, there is always a queue. */
static const double SHORT_FROM = 0.8;
static const double SHORT_TO = 0.95;
/* Cores that other processes got: below, they are short visits that get a core at once; above,
 * threads that compute and have to share. */
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

/* Run-queue time of a stage that computes is left out, because the replay makes it anew. In a stage
 * that sleeps within its items it is wake-up time, which the replay does not know: it counts as off
 * the cores. So it is divided in the proportion of the rest of the time. */
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

/* A CPU quota stopped the threads, for the rest of a period at a time. */
static bool quota_stops(const struct measurement *m)
{
	return m->quota_cores > 0 && m->throttled_share >= STOPS;
}

/* A quota lets all threads that want a core run at once, as far as there are cores, and then leaves
 * the cores idle. Only while they run do cores slow each other down. */
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

double model_mean_cost(const struct replay_model *replay, enum replay_cost cost)
{
	const struct replay_series *series = &replay->series[cost];
	double sum = 0;
	for (size_t i = 0; i < series->count; i++)
		sum += (double)series->ns[i];
	return series->count > 0 ? replay->scale[cost] * sum / (double)series->count : 0;
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

/* A worker is slow when its median is off by so many standard errors and by so much. */
static const double SLOW_ERRORS = 5;
static const double SLOW_LEAST = 1.25;
/* Share of a computed step's time that waits for a core: below, each of its threads has its own. */
static const double STEP_QUEUED = 0.10;
/* Standard error of a median over the median absolute deviation, for normal values: 1.4826 x
 * sqrt(pi / 2). */
static const double MEDIAN_ERROR = 1.858;

enum { WORKER_ITEMS_MIN = 8 };

int series_append(struct cost_series *series, const float *ns, size_t count)
{
	if (count == 0)
		return 0;
	float *grown = realloc(series->ns, (series->count + count) * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	series->ns = grown;
	memcpy(grown + series->count, ns, count * sizeof *ns);
	series->count += count;
	return 0;
}

static int append_three(struct cost_series series[COSTS], const enum replay_cost costs[3],
	const float *values, size_t count)
{
	int code = 0;
	for (size_t c = 0; c < 3 && !code; c++)
		code = series_append(&series[costs[c]], values + c * count, count);
	return code;
}

/* Mean of the values, cut off at a level. */
static double mean_below(const float *values, size_t count, double level)
{
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += fmin((double)values[i], level);
	return sum / (double)count;
}

/* A quota stops a thread in few of its items, for tens of milliseconds each. These items are cut to
 * the level at which the mean equals an item's time without the run queue, because the other items
 * hardly waited. */
static void cut_stops(const struct stage_measurement *stage, const struct time_split *split,
	float *values, size_t count)
{
	enum { HALVINGS = 50 };
	const double wall =
		stage->seconds[THREAD_WORKING] - or_zero((float)stage->lock_wait_seconds);
	const double mean = wall * (split->cpu + split->sleep) * 1e9 / (double)stage->items;
	double low = 0;
	double high = 0;
	for (size_t i = 0; i < count; i++)
		high = fmax(high, (double)values[i]);
	for (int i = 0; i < HALVINGS; i++) {
		const double level = (low + high) / 2;
		if (mean_below(values, count, level) < mean)
			low = level;
		else
			high = level;
	}
	const double scale =
		mean / mean_below(values, count, high); /* 1, unless few were recorded */
	for (size_t i = 0; i < count; i++)
		values[i] = (float)(fmin((double)values[i], high) * scale);
}

int series_of_decode(struct cost_series series[COSTS], const struct measurement *m,
	const struct trace *trace, const float *factor, double slowed)
{
	static const enum replay_cost costs[3] = {
		COST_DECODE_CPU, COST_DECODE_LOCK, COST_DECODE_WAIT};
	const struct stage_measurement *stage = measurement_stage(m, STAGE_DECODE);
	float *values = calloc(3 * trace->count + 1, sizeof *values);
	if (!stage || !values) {
		free(values);
		return stage ? -ENOMEM : 0;
	}
	struct time_split split = time_split_of(stage);
	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_item *item = &trace->items[i];
		const double usual =
			item->worker < stage->workers ? 1 / (double)factor[item->worker] : 1;
		values[i] =
			(float)(usual * (or_zero(item->service_ns) - or_zero(item->lock_wait_ns)));
		values[trace->count + i] = (float)(usual * or_zero(item->lock_hold_ns));
	}
	if (quota_stops(m) && split.known && stage->items > 0 && trace->count > 0) {
		cut_stops(stage, &split, values, trace->count);
		split.cpu /= split.cpu + split.sleep;
		split.sleep = 1 - split.cpu;
	}
	for (size_t i = 0; i < trace->count; i++) {
		const double held = fmin((double)values[trace->count + i], (double)values[i]);
		const double free_ns = fmax((double)values[i] - held, 0);
		values[i] = (float)(free_ns * split.cpu / slowed);
		values[trace->count + i] = (float)(held * (split.cpu / slowed + split.sleep));
		values[2 * trace->count + i] = (float)(free_ns * split.sleep);
	}
	const int code = append_three(series, costs, values, trace->count);
	free(values);
	return code;
}

int series_of_upload(struct cost_series series[COSTS], const struct measurement *m,
	const struct trace *trace, const struct workload_facts *facts, double slowed)
{
	const struct stage_measurement *stage = measurement_stage(m, STAGE_UPLOAD);
	float *values = calloc(trace->count + 1, sizeof *values);
	if (!stage || !values) {
		free(values);
		return stage ? -ENOMEM : 0;
	}
	/* Off the cores or on them, a copy holds the uploader: the replay knows it as CPU, unless
	 * it is a device's, which is as long as it is. */
	const struct time_split split =
		facts->step_has_memory ? (struct time_split){.sleep = 1} : time_split_of(stage);
	for (size_t i = 0; i < trace->count; i++)
		values[i] = (float)(or_zero(trace->items[i].service_ns) *
				    (split.cpu / slowed + split.sleep));
	const int code = series_append(&series[COST_UPLOAD], values, trace->count);
	free(values);
	return code;
}

struct step_times {
	/* of the host's part, or of a computed step: the rest it waited for a core or a lock */
	double host_cpu_share;
	double late_ns; /* a batch, off the cores: beyond the device's time and that */
};

/* The part of a computed step that is to be replayed, on as many cores as it has threads, which
 * proceed together.  Where they do not all get a core, one waits for it and the others wait for
 * that one; the replay makes both waits anew, so only the CPU time remains. */
static double computed_share(const struct stage_measurement *stage)
{
	const double working = stage->seconds[THREAD_WORKING];
	const double queued = stage->run_queue_seconds / working;
	const double cpu = stage->cpu_seconds / working;
	return queued >= STEP_QUEUED && cpu > 0 ? fmin(cpu, 1) : 1;
}

/* A step's thread must get a core when its device is done. A late wake-up shows in the stage's
 * working time, which lasts from batch to batch while data is ready. A device that works by itself
 * already has the next step. */
static struct step_times step_times_of(const struct measurement *m,
	const struct stage_measurement *stage, const struct trace *trace,
	const struct workload_facts *facts)
{
	double service = 0;
	double host = 0;
	for (size_t i = 0; i < trace->count; i++) {
		service += or_zero(trace->items[i].service_ns) / (double)trace->count;
		host += or_zero(trace->items[i].host_ns) / (double)trace->count;
	}
	if (facts->step_on_cores)
		return (struct step_times){.host_cpu_share = computed_share(stage)};
	if (facts->step_has_memory || stage->items == 0 || trace->count == 0)
		return (struct step_times){.host_cpu_share = 1};
	const double items = (double)stage->items;
	const double cpu = isnan(stage->cpu_seconds) ? host : stage->cpu_seconds * 1e9 / items;
	const double share = host > 0 ? fmin(cpu / host, 1) : 1;
	const double working = stage->seconds[THREAD_WORKING] * 1e9 / items;
	/* Of the step that goes on when counting ends, a part of the time counts, and no item. */
	const double cut = service / items;
	/* Where a quota stops all threads, it is in what all of them may compute, and no lateness
	 * of this one. */
	const double late = quota_stops(m) ? 1 - m->throttled_share : 1;
	return (struct step_times){.host_cpu_share = share,
		.late_ns = late * fmax(working - cut - service - share * host, 0)};
}

int series_of_sync(struct cost_series series[COSTS], const struct trace *trace)
{
	int code = 0;
	for (size_t i = 0; i < trace->count && !code; i++)
		if (trace->items[i].worker == 0)
			code = series_append(&series[COST_SYNC], &trace->items[i].service_ns, 1);
	return code;
}

int series_of_step(struct cost_series series[COSTS], const struct measurement *m,
	const struct trace *trace, const float *factor, const struct workload_facts *facts,
	double slowed, double *late_ns)
{
	const struct stage_measurement *stage = measurement_stage(m, STAGE_STEP);
	const bool on_cores = facts->step_on_cores;
	*late_ns = 0;
	float *values = calloc(2 * trace->count + 1, sizeof *values);
	if (!stage || !values) {
		free(values);
		return stage ? -ENOMEM : 0;
	}
	const struct step_times mean = step_times_of(m, stage, trace, facts);
	*late_ns = mean.late_ns;
	float *const host = values;
	float *const device = values + trace->count;
	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_item *item = &trace->items[i];
		const double usual =
			item->worker < DEVICES_MAX ? 1 / (double)factor[item->worker] : 1;
		const double service = usual * or_zero(item->service_ns);
		host[i] = (float)(mean.host_cpu_share *
				  (on_cores ? service / slowed : or_zero(item->host_ns)));
		device[i] = (float)(on_cores ? 0 : service + mean.late_ns);
	}
	int code = series_append(&series[COST_STEP_HOST], host, trace->count);
	if (!code)
		code = series_append(&series[COST_STEP_DEVICE], device, trace->count);
	free(values);
	return code;
}

/* --- slow workers ----------------------------------------------------------------------------- */

struct worker_times {
	double median, error; /* of ln(service): the median, and its standard error */
	size_t count;
};

/* work: room for as many values as the traces have items. */
static struct worker_times times_of_worker(const struct traces *const *traces, size_t count,
	const char *stage, unsigned worker, double *work)
{
	size_t n = 0;
	for (size_t r = 0; r < count; r++) {
		const struct trace *trace = traces_find(traces[r], stage);
		for (size_t i = 0; trace && i < trace->count; i++)
			if (trace->items[i].worker == worker && trace->items[i].service_ns > 0)
				work[n++] = log((double)trace->items[i].service_ns);
	}
	struct worker_times times = {.count = n, .median = statistics_median(work, n)};
	for (size_t i = 0; i < n; i++)
		work[i] = fabs(work[i] - times.median);
	times.error = MEDIAN_ERROR * statistics_median(work, n) / sqrt((double)n);
	return times;
}

static size_t items_of(const struct traces *const *traces, size_t count, const char *stage)
{
	size_t n = 0;
	for (size_t r = 0; r < count; r++) {
		const struct trace *trace = traces_find(traces[r], stage);
		n += trace ? trace->count : 0;
	}
	return n;
}

static bool judge_workers(
	const struct worker_times *times, unsigned workers, double *medians, float *factor)
{
	size_t n = 0;
	for (unsigned w = 0; w < workers; w++)
		if (times[w].count >= WORKER_ITEMS_MIN)
			medians[n++] = times[w].median;
	if (n < 2)
		return false;
	/* The quicker half is ordinary: with two workers, the quicker one. */
	const double usual = statistics_quantile(medians, n, n > 2 ? 0.5 : 0);
	bool any = false;
	for (unsigned w = 0; w < workers; w++) {
		const double off = times[w].median - usual;
		if (times[w].count >= WORKER_ITEMS_MIN && off > SLOW_ERRORS * times[w].error &&
			off > log(SLOW_LEAST)) {
			factor[w] = (float)exp(off);
			any = true;
		}
	}
	return any;
}

bool worker_factors(const struct traces *const *traces, size_t count, const char *stage,
	unsigned workers, float *factor)
{
	for (unsigned w = 0; w < workers; w++)
		factor[w] = 1;
	const size_t items = items_of(traces, count, stage);
	struct worker_times *times = calloc(workers + 1U, sizeof *times);
	double *work = calloc((items > workers ? items : workers) + 1, sizeof *work);
	bool any = false;
	if (times && work) {
		for (unsigned w = 0; w < workers; w++)
			times[w] = times_of_worker(traces, count, stage, w, work);
		any = judge_workers(times, workers, work, factor);
	}
	free(times);
	free(work);
	return any;
}
