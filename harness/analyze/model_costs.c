/* The costs that a replay is fed with, from the recorded items.
 *
 * The service time of an item is wall time.  What it waited for the workers' lock is left out, and
 * so is its part of the stage's run-queue time, because the replay makes both anew.  The rest was
 * spent on a core or off it, in the proportion that the stage's own accounting shows. */
#include "harness/analyze/model_costs.h"

#include "harness/analyze/point_model.h"
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
/* Of a quota's periods: in fewer, it is of no matter; in more, hardly anything but the quota is waited for. */
static const double STOPS = 0.1, STOPS_MOSTLY = 0.5;
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

/* A CPU quota stopped the threads, for the rest of a period at a time. */
static bool quota_stops(const struct measurement *m)
{
	return m->quota_cores > 0 && m->throttled_share >= STOPS;
}

/* Run-queue time of a stage that computes is left out, because the replay makes it anew. In a stage
 * that sleeps within its items it is wake-up time, which the replay does not know: it counts as off
 * the cores. So it is divided in the proportion of the rest of the time; but what a quota stopped is no
 * wake-up. */
struct time_split time_split_of(const struct measurement *m, const struct stage_measurement *stage)
{
	/* What is declared for a batch is CPU time that is in no item. */
	const double apart = or_zero(stage->overhead_seconds);
	const double base =
		stage->seconds[THREAD_WORKING] - or_zero(stage->lock_wait_seconds) - apart;
	if (isnan(stage->cpu_seconds) || !(base > 0))
		return (struct time_split){.cpu = 1};
	const double cpu = fmin(fmax(stage->cpu_seconds - apart, 0) / base, 1);
	const double queued = or_zero(stage->run_queue_seconds) / base;
	const double asleep = fmax(1 - cpu - queued, 0);
	const double awake = cpu > 0 ? cpu / (cpu + asleep) : 0;
	const double computes = quota_stops(m) ? 1 : awake;
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

/* A quota lets all threads that want a core run at once, as far as there are cores, and then leaves
 * the cores idle. Only while they run do cores slow each other down. */
static double cores_in_use(const struct measurement *m, const struct stage_measurement *stage)
{
	const double queued = quota_stops(m) ? or_zero(stage->run_queue_seconds) : 0;
	return (or_zero(stage->cpu_seconds) + queued) / measurement_counted_seconds(m);
}

double busy_beside(const struct measurement *m, enum stage_id stage, double cores)
{
	const struct stage_measurement *const of = measurement_stage(m, stage);
	if (!of || !(m->measured_seconds > 0) || of->workers == 0)
		return 1;
	double busy = or_zero(m->cores_busy_outside) + others_of_ours(m);
	for (size_t i = 0; i < m->stage_count; i++) {
		const double own = cores_in_use(m, &m->stages[i]);
		busy += &m->stages[i] == of ? own * (1 - 1.0 / of->workers) : own;
	}
	return fmin(1 + busy, fmax(cores, 1));
}

/* Of the time that the stages' threads waited for a core: while a quota had stopped them, which is no load of others. The
 * kernel sums it over the cores whose queues had any of them. */
static double queued_by_quota(const struct measurement *m, double cores, double wanted)
{
	const double threads = wanted / measurement_counted_seconds(m);
	return or_zero(m->throttled_seconds) * fmax(threads / cores, 1);
}

struct outside outside_threads(const struct measurement *m, double cores, bool step_on_cores)
{
	double got = or_zero(m->cores_busy_outside) + (step_on_cores ? 0 : others_of_ours(m));
	double cpu = 0;
	double queued = 0;
	for (size_t i = 0; i < m->stage_count; i++) {
		cpu += or_zero(m->stages[i].cpu_seconds);
		queued += or_zero(m->stages[i].run_queue_seconds);
	}
	/* Where cores are short, all that want one get the same share of what they want. */
	const double is_short = shortness(m, cores) * share_of(got, VISITORS, BURDEN);
	if (quota_stops(m)) {
		/* Those that take all that a quota leaves are whole threads, which would have to share. */
		if (got > VISITORS && shortness(m, cores) >= 1)
			got = ceil(got - VISITORS);
		queued -= queued_by_quota(m, cores, cpu + queued);
		if (m->throttled_share >= STOPS_MOSTLY) /* so that nothing is known of the rest */
			queued = 0;
	}
	const double share = cpu > 0 ? cpu / (cpu + is_short * fmax(queued, 0)) : 1;
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

double model_sample_cpu(const struct replay_model *replay)
{
	const double locked =
		model_mean_cost(replay, COST_DECODE_LOCK) * (1 - replay->lock_off_cores);
	const double upload = replay->copies_off_cores ? 0 : model_mean_cost(replay, COST_UPLOAD);
	const double batch = model_mean_cost(replay, COST_DECODE_BATCH) + upload +
			     model_mean_cost(replay, COST_STEP_HOST);
	return model_mean_cost(replay, COST_READ_CPU) + model_mean_cost(replay, COST_DECODE_CPU) +
	       locked + batch / fmax(replay->shape.batch_size, 1);
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

float *series_extend(struct cost_series *series, size_t count)
{
	float *grown = realloc(series->ns, (series->count + count + 1) * sizeof *grown);
	if (!grown)
		return NULL;
	series->ns = grown;
	series->count += count;
	return memset(grown + series->count - count, 0, count * sizeof *grown);
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
	const double wall = stage->seconds[THREAD_WORKING] -
			    or_zero((float)stage->lock_wait_seconds) -
			    or_zero(stage->overhead_seconds);
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
	const struct stage_measurement *stage = measurement_stage(m, STAGE_DECODE);
	if (!stage)
		return 0;
	float *const cpu = series_extend(&series[COST_DECODE_CPU], trace->count);
	float *const lock = series_extend(&series[COST_DECODE_LOCK], trace->count);
	float *const wait = series_extend(&series[COST_DECODE_WAIT], trace->count);
	if (!cpu || !lock || !wait)
		return -ENOMEM;
	struct time_split split = time_split_of(m, stage);
	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_item *item = &trace->items[i];
		const double usual =
			item->worker < stage->workers ? 1 / (double)factor[item->worker] : 1;
		cpu[i] = (float)(usual * (or_zero(item->service_ns) - or_zero(item->lock_wait_ns)));
		lock[i] = (float)(usual * or_zero(item->lock_hold_ns));
	}
	if (quota_stops(m) && split.known && stage->items > 0 && trace->count > 0) {
		cut_stops(stage, &split, cpu, trace->count);
		split.cpu /= split.cpu + split.sleep;
		split.sleep = 1 - split.cpu;
	}
	for (size_t i = 0; i < trace->count; i++) {
		const double held = fmin((double)lock[i], (double)cpu[i]);
		const double free_ns = fmax((double)cpu[i] - held, 0);
		cpu[i] = (float)(free_ns * split.cpu / slowed);
		lock[i] = (float)(held * (split.cpu / slowed + split.sleep));
		wait[i] = (float)(free_ns * split.sleep);
	}
	return 0;
}

int series_of_upload(struct cost_series series[COSTS], const struct measurement *m,
	const struct trace *trace, const struct workload_facts *facts, double slowed)
{
	const struct stage_measurement *stage = measurement_stage(m, STAGE_UPLOAD);
	if (!stage)
		return 0;
	float *const ns = series_extend(&series[COST_UPLOAD], trace->count);
	if (!ns)
		return -ENOMEM;
	/* Off the cores or on them, a copy holds the uploader: the replay knows it as CPU, unless
	 * it is a device's, which is as long as it is. */
	const struct time_split split =
		facts->step_has_memory ? (struct time_split){.sleep = 1} : time_split_of(m, stage);
	for (size_t i = 0; i < trace->count; i++)
		ns[i] = (float)(or_zero(trace->items[i].service_ns) *
				(split.cpu / slowed + split.sleep));
	return 0;
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

int series_of_sync(
	struct cost_series series[COSTS], const struct trace *trace, struct model_waits *waits)
{
	for (size_t i = 0; i < trace->count; i++) {
		if (trace->items[i].worker != 0)
			continue;
		float *const ns = series_extend(&series[COST_SYNC], 1);
		if (!ns)
			return -ENOMEM;
		/* Waiting for other ranks is none of this one's doing: it takes as long as it took. */
		const double waited_ns = or_zero(trace->items[i].host_ns);
		*ns = trace->items[i].service_ns + (float)waited_ns;
		waits->waited_ns += waited_ns;
		waits->all_ns += *ns;
	}
	return 0;
}

/* Repetitions weigh as many checkpoints as they have: few, so that a mean of each is all that is known well. */
int series_of_checkpoint(struct cost_series series[COSTS], const struct measurement *m)
{
	const struct checkpoint_measurement *const c = &m->checkpoint[0];
	if (m->checkpoint_count == 0 || c->count == 0)
		return 0;
	const double seconds =
		c->write_seconds + c->sync_seconds + c->rename_seconds + c->verify_seconds;
	const double copy = (double)c->bytes / c->copy_bytes_per_s;
	float *const store_ns = series_extend(&series[COST_CHECKPOINT], c->count);
	float *const copy_ns = series_extend(&series[COST_CHECKPOINT_COPY], c->count);
	if (!store_ns || !copy_ns)
		return -ENOMEM;
	for (uint64_t i = 0; i < c->count; i++) {
		store_ns[i] = (float)(seconds * 1e9 / (double)c->count);
		copy_ns[i] = isfinite(copy) ? (float)(copy * 1e9) : 0;
	}
	return 0;
}

int series_of_evaluation(struct cost_series series[COSTS], const struct measurement *m)
{
	const struct evaluation_measurement *const e = &m->evaluation[0];
	if (m->evaluation_count == 0 || e->count == 0)
		return 0;
	float *const input_ns = series_extend(&series[COST_EVALUATE_INPUT], e->count);
	float *const step_ns = series_extend(&series[COST_EVALUATE_STEP], e->count);
	if (!input_ns || !step_ns)
		return -ENOMEM;
	const double steps = fmax(e->stall_seconds - e->starved_seconds, 0);
	for (uint64_t i = 0; i < e->count; i++) {
		input_ns[i] = (float)(e->starved_seconds * 1e9 / (double)e->count);
		step_ns[i] = (float)(steps * 1e9 / (double)e->count);
	}
	return 0;
}

int series_of_step(struct cost_series series[COSTS], const struct measurement *m,
	const struct trace *trace, const float *factor, const struct workload_facts *facts,
	double slowed, double *late_ns)
{
	const struct stage_measurement *stage = measurement_stage(m, STAGE_STEP);
	const bool on_cores = facts->step_on_cores;
	*late_ns = 0;
	if (!stage)
		return 0;
	float *const host = series_extend(&series[COST_STEP_HOST], trace->count);
	float *const device = series_extend(&series[COST_STEP_DEVICE], trace->count);
	if (!host || !device)
		return -ENOMEM;
	const struct step_times mean = step_times_of(m, stage, trace, facts);
	*late_ns = mean.late_ns;
	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_item *item = &trace->items[i];
		const double usual =
			item->worker < DEVICES_MAX ? 1 / (double)factor[item->worker] : 1;
		const double service = usual * or_zero(item->service_ns);
		host[i] = (float)(mean.host_cpu_share *
				  (on_cores ? service / slowed : or_zero(item->host_ns)));
		device[i] = (float)(on_cores ? 0 : service + mean.late_ns);
	}
	return 0;
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

double worker_spends(
	const struct measurement *const *repeats, size_t count, const char *stage, unsigned worker)
{
	double sum = 0;
	double known = 0;
	for (size_t i = 0; i < count; i++) {
		const struct stage_measurement *const s =
			measurement_stage_named(repeats[i], stage);
		if (!s || s->device || !(s->others_ns > 0))
			continue;
		sum += s->slowest == worker ? s->slowest_ns / s->others_ns : 1;
		known++;
	}
	return known > 0 ? sum / known : (double)NAN;
}

bool worker_factors(const struct measurement *const *repeats, const struct traces *const *traces,
	size_t count, const char *stage, unsigned workers, float *factor)
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
	for (unsigned w = 0; w < workers && any; w++) {
		const double spends = worker_spends(repeats, count, stage, w);
		if ((double)factor[w] > spends) /* false for NAN */
			factor[w] = spends < SLOW_LEAST ? 1 : (float)spends;
	}
	free(times);
	free(work);
	return any;
}

/* --- reads: latency and device time ----------------------------------------------------------- */

/* Tells latency and device time apart: see model_costs.h. The trace consists of runs of consecutive
 * files. Each run is replayed by itself from its first completion on, and only briefly, because an
 * error of the service time adds up. */

enum { LATENCIES = 12, REFINEMENTS = 40, BISECTIONS = 10, USEFUL_MIN = 32, RUN_MOST = 64 };

/* The device must leave less than this share of the error of latency alone; less still where that
 * error is small (as a share of the mean time) and may be noise. */
static const double CLEARLY_BETTER = 0.7;
static const double FAR_BETTER = 0.55;
static const double SMALL_ERROR = 0.03;
/* Latency that varies so little predicts well enough to be told from a queue. */
static const double WELL_FORETOLD = 0.08;
/* Predicts as well as the best; and the step of the service time, over the time between files, that
 * ends the search. */
static const double AS_GOOD = 1.02;
static const double LEAST = 0.005;
/* Error, as a share of the time per file, that still counts as nearly as good. */
static const double HIDDEN = 0.02;
static const double FINE_ENOUGH = 1e-5;
/* Far more than rounding of sums and quotients in double. */
static const double ROUNDING = 1e-9;
/* A file that took so many services longer than the latency waited for the device. */
static const double WAITED = 0.1;
/* A device that is faster than the reader's CPU cannot be told from it. */
static const double OVER_CPU = 1.6;
/* Cache hits: the slower class takes so many times as long, and either has so many of the files. */
static const double HIT_RATIO = 4;
static const double HIT_SHARE_MIN = 0.03;

/* One file in the order of submission. */
struct file {
	double submitted, completed; /* ns */
	double weight;               /* service in units of the mean: bytes or 1 */
	size_t item;
	bool begins; /* a run: what was before is not known */
	bool hit;
};

struct play {
	struct file *files; /* (count) */
	double *scratch;    /* (2 count) */
	size_t count;
	double gap_ns;    /* mean time between files within runs, of those that are no hits */
	size_t predicted; /* files: all of those but the first of each run */
};

struct guess {
	double latency_ns, service_ns; /* of a file of weight 1 */
	double loss;                   /* mean absolute error, ns */
};

/* fmax for numbers, inlined: a trace is replayed some thousand times. */
static inline double later_of(double a, double b)
{
	return a > b ? a : b;
}

static double took(const struct file *f)
{
	return f->completed - f->submitted;
}

static int submitted_earlier(const void *a, const void *b)
{
	const struct file *x = a;
	const struct file *y = b;
	if (x->submitted != y->submitted)
		return x->submitted < y->submitted ? -1 : 1;
	return (x->item > y->item) - (x->item < y->item);
}

/* --- taking the trace apart ------------------------------------------------------------------- */

static void fill_files(const struct trace_item *items, size_t count, struct play *play)
{
	size_t first = 0;
	for (size_t i = 0; i < count; i++) {
		const double completed = items[i].end_s * 1e9;
		play->files[i] = (struct file){.submitted = completed - (double)items[i].service_ns,
			.completed = completed,
			.item = i};
		const bool last = i + 1 == count || i + 1 - first == RUN_MOST ||
				  items[i + 1].number != items[i].number + 1;
		if (!last)
			continue;
		qsort(play->files + first, i + 1 - first, sizeof *play->files, submitted_earlier);
		play->files[first].begins = true;
		first = i + 1;
	}
	play->count = count;
}

static void weigh_files(const struct trace_item *items, bool by_bytes, struct play *play)
{
	double sum = 0;
	double n = 0;
	for (size_t i = 0; i < play->count; i++) {
		struct file *f = &play->files[i];
		f->weight = by_bytes ? (double)items[f->item].bytes : 1;
		sum += f->hit ? 0 : f->weight;
		n += f->hit ? 0 : 1;
	}
	for (size_t i = 0; i < play->count; i++)
		play->files[i].weight = sum > 0 ? play->files[i].weight * n / sum : 1;
}

/* The mean time between submissions: the pace that the device must keep up with. */
static void find_gap(struct play *play)
{
	double time = 0;
	double files = 0;
	const struct file *before = NULL;
	play->predicted = 0;
	for (size_t i = 0; i < play->count; i++) {
		const struct file *f = &play->files[i];
		if (f->begins)
			before = NULL;
		if (f->hit)
			continue;
		if (before) {
			time += f->submitted - before->submitted;
			files += f->weight;
			play->predicted++;
		}
		before = f;
	}
	play->gap_ns = files > 0 ? time / files : 0;
}

/* --- playing ---------------------------------------------------------------------------------- */

/* When the device is free after the first file of a run: at its completion if that took longer than
 * the latency, so that it had been waiting. */
static double first_free(const struct file *f, const struct guess *guess)
{
	const double service_ns = guess->service_ns * f->weight;
	const bool waited = took(f) > guess->latency_ns + WAITED * service_ns;
	return waited ? f->completed : f->submitted + service_ns;
}

/* Predicts each file's completion. Returns the mean absolute error, or HUGE_VAL as soon as it
 * cannot be below `most`. latency_ns, unless NULL: the latency that the replay must be given for
 * each file. */
static double play_through(
	const struct play *play, const struct guess *guess, double most, double *latency_ns)
{
	const double enough =
		most < HUGE_VAL ? most * (double)play->predicted * (1 + ROUNDING) : HUGE_VAL;
	double loss = 0;
	double device_free = 0;
	bool known = false;
	for (size_t i = 0; i < play->count && loss <= enough; i++) {
		const struct file *f = &play->files[i];
		known = known && !f->begins;
		double latency = f->hit ? took(f) : guess->latency_ns;
		if (!f->hit && known) {
			device_free =
				later_of(f->submitted, device_free) + guess->service_ns * f->weight;
			const double arrives = f->submitted + guess->latency_ns;
			loss += fabs(f->completed - later_of(arrives, device_free));
			/* A tail is the file's own: no queue in front of the device explains it. */
			const double queued = device_free - f->submitted;
			if (arrives > device_free || took(f) > TAIL_TIMES * queued)
				latency = took(f);
		} else if (!f->hit) {
			device_free = first_free(f, guess);
			known = true;
		}
		if (latency_ns)
			latency_ns[i] = latency;
	}
	return play->predicted > 0 && loss <= enough ? loss / (double)play->predicted : HUGE_VAL;
}

/* The times of the files that went to the device, or of the hits. */
static size_t times_taken(const struct play *play, bool hits)
{
	size_t n = 0;
	for (size_t i = 0; i < play->count; i++)
		if (play->files[i].hit == hits)
			play->scratch[n++] = took(&play->files[i]);
	return n;
}

static void try_guess(const struct play *play, struct guess guess, struct guess *best)
{
	guess.loss = play_through(play, &guess, best->loss, NULL);
	if (guess.loss < best->loss)
		*best = guess;
}

/* Tries a service time with some latencies. */
static void try_service(
	const struct play *play, double service_ns, const double *latencies, struct guess *best)
{
	try_guess(play, (struct guess){.service_ns = service_ns}, best);
	for (size_t i = 0; i < LATENCIES; i++) {
		try_guess(play, (struct guess){latencies[i], service_ns, 0}, best);
	}
}

/* Around the best, along each axis and both diagonals, in steps that shrink when none leads
 * down. */
static void refine_guess(const struct play *play, struct guess *best)
{
	static const double ways[][2] = {
		{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, -1}, {-1, 1}, {1, 1}, {-1, -1}};
	double step_service = 0.02 * play->gap_ns;
	double step_latency = 0.1 * best->latency_ns + 0.05 * play->gap_ns;
	for (int r = 0; r < REFINEMENTS && step_service > FINE_ENOUGH * play->gap_ns; r++) {
		const struct guess from = *best;
		for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++)
			try_guess(play,
				(struct guess){fmax(from.latency_ns + ways[w][0] * step_latency, 0),
					fmax(from.service_ns + ways[w][1] * step_service, 0), 0},
				best);
		if (best->loss < from.loss)
			continue;
		step_service /= 2;
		step_latency /= 2;
	}
}

/* One latency for all files, without any queue. */
static struct guess latency_alone(const struct play *play)
{
	const size_t n = times_taken(play, false);
	struct guess guess = {.latency_ns = statistics_median(play->scratch, n)};
	for (size_t i = 0; i < n; i++)
		guess.loss += fabs(play->scratch[i] - guess.latency_ns) / (double)n;
	return guess;
}

/* Behind a queue that never empties latency does not show: takes the least one that predicts as
 * well. */
static void least_latency(const struct play *play, struct guess *best)
{
	const double enough = AS_GOOD * best->loss;
	double low = 0;
	double high = best->latency_ns;
	for (int i = 0; i < BISECTIONS; i++) {
		const struct guess guess = {i == 0 ? 0 : (low + high) / 2, best->service_ns, 0};
		const double loss = play_through(play, &guess, HUGE_VAL, NULL);
		*(loss <= enough ? &high : &low) = guess.latency_ns;
	}
	best->latency_ns = high;
	best->loss = play_through(play, best, HUGE_VAL, NULL);
}

static struct guess with_device(const struct play *play)
{
	/* Busy shares: dense near 1, where the queue is. */
	static const double shares[] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93,
		0.96, 0.98, 0.99, 1, 1.01, 1.03};
	/* Hardly a file was quicker than the last: what latency is if a queue hides it from nearly
	 * all. */
	double quantiles[LATENCIES + 1];
	double latencies[LATENCIES + 1];
	const size_t n = times_taken(play, false);
	for (size_t i = 0; i < LATENCIES; i++)
		quantiles[i] = 0.02 + 0.9 * (double)i / LATENCIES;
	quantiles[LATENCIES] = LEAST;
	statistics_quantiles(play->scratch, n, quantiles, LATENCIES + 1, latencies);
	struct guess best = {.loss = HUGE_VAL};
	struct guess least = {.latency_ns = latencies[LATENCIES], .loss = HUGE_VAL};
	for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
		const double service_ns = shares[i] * play->gap_ns;
		try_service(play, service_ns, latencies, &best);
		try_guess(play, (struct guess){least.latency_ns, service_ns, 0}, &least);
	}
	refine_guess(play, &best);
	refine_guess(play, &least);
	if (least.loss < best.loss)
		best = least;
	least_latency(play, &best);
	return best;
}

/* The largest service time of a device that latency would have hidden: with it the trace is
 * predicted nearly as well as without. */
static double hidden_service(const struct play *play, const struct guess *alone)
{
	const double enough = alone->loss + HIDDEN * alone->latency_ns;
	double low = 0;
	double high = alone->latency_ns;
	for (int i = 0; i < BISECTIONS; i++) {
		const struct guess guess = {alone->latency_ns, i == 0 ? high : (low + high) / 2, 0};
		*(play_through(play, &guess, HUGE_VAL, NULL) <= enough ? &low : &high) =
			guess.service_ns;
	}
	return low;
}

/* --- cache hits ------------------------------------------------------------------------------- */

/* Splits by the time taken so that the classes differ most in its logarithm (N. Otsu, 1979); false:
 * one class. */
static bool find_hits(struct play *play)
{
	enum { LEVELS = 64 };
	const size_t n = times_taken(play, false);
	double *const logarithms = play->scratch + n;
	double quantiles[LEVELS - 1];
	double levels[LEVELS - 1];
	for (size_t i = 0; i < LEVELS - 1; i++)
		quantiles[i] = (double)(i + 1) / LEVELS;
	statistics_quantiles(play->scratch, n, quantiles, LEVELS - 1, levels);
	for (size_t i = 0; i < n; i++)
		logarithms[i] = log(fmax(play->scratch[i], 1));
	double best = 0;
	double threshold = 0;
	for (size_t level = 0; level < LEVELS - 1; level++) {
		const double at = levels[level];
		double low = 0;
		double high = 0;
		double below = 0;
		for (size_t i = 0; i < n; i++) {
			*(play->scratch[i] <= at ? &low : &high) += logarithms[i];
			below += play->scratch[i] <= at;
		}
		const double above = (double)n - below;
		if (below < 1 || above < 1)
			continue;
		const double apart = high / above - low / below;
		if (below * above * apart * apart > best && apart > log(HIT_RATIO)) {
			best = below * above * apart * apart;
			threshold = at;
		}
	}
	size_t hits = 0;
	for (size_t i = 0; i < play->count; i++) {
		play->files[i].hit = took(&play->files[i]) <= threshold;
		hits += play->files[i].hit;
	}
	const double share = (double)hits / (double)play->count;
	return threshold > 0 && share >= HIT_SHARE_MIN && share <= 1 - HIT_SHARE_MIN;
}

/* Whether a few files, which take many times as long as the others, take much of the time: they are no
 * misses of a cache, and one in flight no store that serves each file in the mean of all. */
static bool has_tail(struct play *play)
{
	static const double TAIL_MUCH = 0.35, TAIL_MOST = 0.10;
	const size_t n = times_taken(play, false);
	const double median = n > 0 ? statistics_median(play->scratch, n) : NAN;
	double beyond = 0;
	double all = 0;
	size_t slow = 0;
	for (size_t i = 0; i < n; i++) {
		const double ns = play->scratch[i];
		const bool is_slow = ns > TAIL_TIMES * median;
		beyond += is_slow ? ns - median : 0;
		slow += is_slow;
		all += ns;
	}
	return beyond >= TAIL_MUCH * all && (double)slow <= TAIL_MOST * (double)n;
}

/* Mean absolute error over all files, hits taken as a constant. */
static double overall(const struct play *play, double loss)
{
	const size_t n = times_taken(play, true);
	const double middle = statistics_median(play->scratch, n);
	double hits = 0;
	for (size_t i = 0; i < n; i++)
		hits += fabs(play->scratch[i] - middle);
	return (hits + loss * (double)(play->count - n)) / (double)play->count;
}

/* --- the choice ------------------------------------------------------------------------------- */

struct choice {
	struct guess guess;
	double loss, alone; /* over all files: with the device, and with latency alone */
	bool by_bytes, hits;
};

static void consider_choice(const struct trace_item *items, bool by_bytes, bool hits,
	struct play *play, struct choice *best)
{
	weigh_files(items, by_bytes, play);
	find_gap(play);
	if (!(play->gap_ns > 0))
		return;
	const struct guess guess = with_device(play);
	const double loss = overall(play, guess.loss);
	if (loss < best->loss)
		*best = (struct choice){
			guess, loss, overall(play, latency_alone(play).loss), by_bytes, hits};
}

static void restore(const struct trace_item *items, const struct choice *choice, struct play *play)
{
	for (size_t i = 0; i < play->count; i++)
		play->files[i].hit = false;
	if (choice->hits)
		(void)find_hits(play);
	weigh_files(items, choice->by_bytes, play);
	find_gap(play);
}

static void all_latency(const struct play *play, double cpu_ns, float *latency_ns, float *device_ns)
{
	for (size_t i = 0; i < play->count; i++) {
		const struct file *f = &play->files[i];
		latency_ns[f->item] = (float)fmax(took(f) - cpu_ns, 0);
		device_ns[f->item] = 0;
	}
}

/* Leaves out what the queue explains: the replay makes it anew. */
static void queue_out(const struct play *play, const struct guess *guess, double cpu_ns,
	bool device, float *latency_ns, float *device_ns)
{
	(void)play_through(play, guess, HUGE_VAL, play->scratch);
	for (size_t i = 0; i < play->count; i++) {
		const struct file *f = &play->files[i];
		latency_ns[f->item] = (float)fmax(play->scratch[i] - cpu_ns, 0);
		device_ns[f->item] = f->hit || !device ? 0 : (float)(guess->service_ns * f->weight);
	}
}

static double mean_ns(const float *values, size_t count)
{
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += (double)values[i];
	return count > 0 ? sum / (double)count : 0;
}

static double hit_share_of(const struct play *play)
{
	double hits = 0;
	for (size_t i = 0; i < play->count; i++)
		hits += play->files[i].hit;
	return hits / (double)play->count;
}

/* Uses the latency and capacity of all operating points. Cache hits are in the rate but do not use
 * the device. */
static void split_at_capacity(const struct trace_item *items, const struct read_facts *facts,
	const struct choice *best, struct play *play, float *latency_ns, float *device_ns,
	struct read_split *out)
{
	const struct storage *storage = facts->storage;
	struct choice choice = *best;
	choice.by_bytes = storage->kind == STORAGE_BYTES ||
			  (storage->kind == STORAGE_UNCLEAR && best->by_bytes);
	restore(items, &choice, play);
	out->hit_share = hit_share_of(play);
	const double service_ns = 1e9 / storage->capacity / fmax(1 - out->hit_share, LEAST);
	const struct guess guess = {fmin(storage->latency_ns, storage->response_ns), service_ns, 0};
	queue_out(play, &guess, facts->within_ns, true, latency_ns, device_ns);
	out->by_bytes = choice.by_bytes;
	out->device_share = fmin(storage->rate / storage->capacity, 1);
	out->identified = true;
}

static void decide(const struct trace_item *items, const struct read_facts *facts,
	struct play *play, float *latency_ns, float *device_ns, struct read_split *out)
{
	(void)times_taken(play, false);
	const double mean_ns = statistics_mean(play->scratch, play->count);
	struct choice best = {.loss = HUGE_VAL};
	const bool tail = has_tail(play);
	consider_choice(items, false, false, play, &best);
	consider_choice(items, true, false, play, &best);
	if (!tail && find_hits(play)) {
		consider_choice(items, false, true, play, &best);
		consider_choice(items, true, true, play, &best);
	}
	const struct storage *storage = facts->storage;
	if (storage && storage->capacity_seen && fabs(storage->full - 0.5) > STORAGE_TOLD) {
		split_at_capacity(items, facts, &best, play, latency_ns, device_ns, out);
		return;
	}
	if (storage && storage->full < 0.5 - STORAGE_TOLD) {
		/* Without a queue, the rate with the most files in flight bounds what a device may
		 * hide. */
		all_latency(play, facts->within_ns, latency_ns, device_ns);
		out->hidden_ns = 1e9 / storage->best_rate;
		out->identified = true;
		return;
	}
	restore(items, &best, play);
	out->error_latency = mean_ns > 0 ? best.alone / mean_ns : 0;
	out->error_device = mean_ns > 0 ? best.loss / mean_ns : 0;
	const double needed = out->error_latency < SMALL_ERROR ? FAR_BETTER : CLEARLY_BETTER;
	const bool better = best.loss < needed * best.alone;
	out->identified = better || out->error_latency < WELL_FORETOLD;
	if (!better) {
		all_latency(play, facts->within_ns, latency_ns, device_ns);
		const struct guess alone = latency_alone(play);
		out->hidden_ns = hidden_service(play, &alone);
	} else {
		const bool device = best.guess.service_ns > OVER_CPU * facts->cpu_ns;
		queue_out(play, &best.guess, facts->within_ns, device, latency_ns, device_ns);
		out->by_bytes = best.by_bytes;
		out->device_share = device ? fmin(best.guess.service_ns / play->gap_ns, 1) : 0;
		out->hit_share = hit_share_of(play);
	}
}

int read_split(const struct trace_item *items, size_t count, const struct read_facts *facts,
	float *latency_ns, float *device_ns, struct read_split *out)
{
	*out = (struct read_split){0};
	struct play play = {.files = calloc(count + 1, sizeof(struct file)),
		.scratch = calloc(2 * count + 1, sizeof(double))};
	if (!play.files || !play.scratch) {
		free(play.files);
		free(play.scratch);
		return -ENOMEM;
	}
	fill_files(items, count, &play);
	const bool one = facts->threads * (facts->blocking ? 1 : facts->depth) <= 1;
	const struct storage *storage = facts->storage;
	const bool seen =
		storage && storage->capacity_seen && fabs(storage->full - 0.5) > STORAGE_TOLD;
	if (one && seen && count >= USEFUL_MIN && !has_tail(&play))
		split_at_capacity(items, facts, &(struct choice){.hits = false}, &play, latency_ns,
			device_ns, out);
	else if (one || count < USEFUL_MIN)
		all_latency(&play, facts->within_ns, latency_ns, device_ns);
	else
		decide(items, facts, &play, latency_ns, device_ns, out);
	out->latency_ns = mean_ns(latency_ns, count);
	if (one && out->device_share <= 0)
		out->hidden_ns = out->latency_ns;
	if (storage && storage->known)
		out->hidden_ns = fmin(out->hidden_ns, 1e9 / storage->best_rate);
	out->device_ns = mean_ns(device_ns, count);
	free(play.files);
	free(play.scratch);
	return 0;
}
