/* Which resource a stage that is the bottleneck lacks: a table of rules per stage, each with its
 * sentence of evidence, asked in order; the first that holds names the cause.  Where the
 * measurements cannot tell two causes apart, the resource says so ("full", "unknown") instead of
 * guessing.  Reading has its rules in cause_read.c.
 *
 * What keeps threads off the cores, asked in this order. quota: a control group's CPU quota, the
 * job's own or one above it (harness/measure/data_store.h finds them in v1, v2 and containers; per
 * window it reads cpu.stat of each). Throttled share = nr_throttled / nr_periods of the group
 * over the span: periods whose quota was used up, of those in which the group wanted any.
 * throttled_time is recorded, too, but is a sum over run queues, so no share of anything. From
 * 0.5 on the quota is the cause, from 0.1 on unless others matter more. steal: of the CPU time
 * that anybody here wanted, stolen / (stolen + used here), from 0.1 on. affinity: a mask
 * holds the threads on few cores while others are idle. threads: those within the workers are far
 * more than cores. external: others keep cores busy. cores: the job's own threads. All three loads are cumulative in the windows, so a
 * phase has its own. */
#include "harness/analyze/verdict.h"

#include "harness/analyze/model_costs.h"
#include "harness/analyze/statistics.h"
#include "harness/base/array.h"
#include "harness/base/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- what recorded service times show by themselves ------------------------------------------- */

/* Features of recorded service times.  Each works on sorted or gathered copies, so that a set of
 * traces stays as it is; without memory a feature is not found. */

enum {
	MODES_ITEMS_MIN = 40,
	WORKER_ITEMS_MIN = 8,
	WORKERS_MAX = 1024,
};

static const double MODES_EXPLAINED = 0.80; /* a normal variable gives 0.64, a uniform one 0.75 */
static const double MODES_RATIO = 3;        /* of the means */
static const double MODES_RARE = 0.04;
static const double SIZES_VARY = 1e-4; /* variance of ln of bytes, that tells anything */

static struct trace_set trace_set_of(
	const struct traces *const *traces, size_t count, const char *stage)
{
	struct trace_set set = {0};
	for (size_t i = 0; traces && i < count && set.count < TRACE_SET_MAX; i++) {
		const struct trace *trace = traces[i] ? traces_find(traces[i], stage) : NULL;
		if (!trace || trace->count == 0)
			continue;
		set.of[set.count++] = trace;
		set.items += trace->count;
	}
	return set;
}

/* Otsu's split of sorted values: the one that explains most of their variance. */
static struct trace_modes split_sorted(const double *x, size_t n)
{
	struct trace_modes modes = {0};
	double sum = 0;
	double squares = 0;
	for (size_t i = 0; i < n; i++) {
		sum += x[i];
		squares += x[i] * x[i];
	}
	const double total = squares - sum * sum / (double)n;
	double left = 0;
	for (size_t k = 1; k < n; k++) {
		left += x[k - 1];
		const double low = left / (double)k;
		const double high = (sum - left) / (double)(n - k);
		const double between =
			(high - low) * (high - low) * (double)k * (double)(n - k) / (double)n;
		if (total <= 0 || between / total <= modes.explained)
			continue;
		modes.explained = between / total;
		modes.fast_share = (double)k / (double)n;
		modes.fast_ns = exp(low);
		modes.slow_ns = exp(high);
	}
	return modes;
}

/* ln of the service times above zero, less what a line through ln of the bytes explains of them
 * beyond their mean.  NULL: there are none; the caller frees. */
static double *gather_logs(const struct trace_set *set, size_t *count)
{
	double *x = set->items > 0 ? malloc(2 * set->items * sizeof *x) : NULL;
	double *const bytes = x ? x + set->items : NULL;
	double sx = 0, sb = 0, sbb = 0, sxb = 0;
	size_t n = 0;
	for (size_t i = 0; x && i < set->count; i++)
		for (size_t k = 0; k < set->of[i]->count; k++) {
			const struct trace_item *item = &set->of[i]->items[k];
			if (!isfinite(item->service_ns) || item->service_ns <= 0)
				continue;
			x[n] = log((double)item->service_ns);
			bytes[n] = log(fmax(item->bytes, 1));
			sx += x[n];
			sb += bytes[n];
			sbb += bytes[n] * bytes[n];
			sxb += x[n] * bytes[n];
			n++;
		}
	const double m = (double)n;
	const double variance = sbb - sb * sb / m;
	/* No file is quicker for being larger. */
	const double slope =
		variance > SIZES_VARY * m ? fmax((sxb - sx * sb / m) / variance, 0) : 0;
	for (size_t i = 0; i < n; i++)
		x[i] -= slope * (bytes[i] - sb / m);
	*count = n;
	return x;
}

struct trace_modes trace_modes_of(const struct trace_set *set)
{
	size_t n = 0;
	double *x = gather_logs(set, &n);
	struct trace_modes modes = {0};
	if (x && n >= MODES_ITEMS_MIN) {
		sort_doubles(x, n);
		modes = split_sorted(x, n);
	}
	free(x);
	modes.two = modes.explained >= MODES_EXPLAINED &&
		    modes.slow_ns >= MODES_RATIO * modes.fast_ns &&
		    modes.fast_share >= MODES_RARE && modes.fast_share <= 1 - MODES_RARE;
	return modes;
}

/* Median service time of one worker over all repeats; NAN: too few items. */
static double worker_median(const struct trace_set *set, unsigned worker, double *scratch)
{
	size_t n = 0;
	for (size_t i = 0; i < set->count; i++)
		for (size_t k = 0; k < set->of[i]->count; k++) {
			const struct trace_item *item = &set->of[i]->items[k];
			if (item->worker == worker && isfinite(item->service_ns))
				scratch[n++] = (double)item->service_ns;
		}
	if (n < WORKER_ITEMS_MIN)
		return NAN;
	sort_doubles(scratch, n);
	return scratch[n / 2];
}

static unsigned workers_in(const struct trace_set *set)
{
	unsigned most = 0;
	for (size_t i = 0; i < set->count; i++)
		for (size_t k = 0; k < set->of[i]->count; k++) {
			const unsigned worker = set->of[i]->items[k].worker;
			if (worker < WORKERS_MAX && worker + 1 > most)
				most = worker + 1;
		}
	return most;
}

struct trace_workers trace_workers_of(const struct trace_set *set)
{
	struct trace_workers out = {.ratio = NAN};
	const unsigned workers = workers_in(set);
	double *scratch = malloc((set->items + workers + 1) * sizeof *scratch);
	unsigned *who = malloc((workers + 1) * sizeof *who);
	if (scratch && who) {
		double *medians = scratch + set->items;
		for (unsigned w = 0; w < workers; w++) {
			const double median = worker_median(set, w, scratch);
			if (isnan(median))
				continue;
			who[out.seen] = w;
			medians[out.seen++] = median;
		}
		unsigned worst = 0;
		for (unsigned i = 1; i < out.seen; i++)
			if (medians[i] > medians[worst])
				worst = i;
		if (out.seen >= 2) {
			out.worst = who[worst];
			out.worst_ns = medians[worst];
			medians[worst] = medians[out.seen - 1]; /* the others stand together */
			out.others_ns = statistics_median(medians, out.seen - 1);
			out.ratio = out.others_ns > 0 ? out.worst_ns / out.others_ns : NAN;
		}
	}
	free(who);
	free(scratch);
	return out;
}

double trace_host_share(const struct trace_set *set, bool apart)
{
	double host = 0;
	double all = 0;
	for (size_t i = 0; i < set->count; i++)
		for (size_t k = 0; k < set->of[i]->count; k++) {
			const struct trace_item *item = &set->of[i]->items[k];
			if (!isfinite(item->host_ns) || !isfinite(item->service_ns))
				continue;
			host += (double)item->host_ns;
			all += (double)item->service_ns + (apart ? (double)item->host_ns : 0);
		}
	return all > 0 ? host / all : NAN;
}

/* --- causes ----------------------------------------------------------------------------------- */

enum { CERTAIN_ENOUGH_ZONE = 10 }; /* percent above a threshold at which it is beyond doubt */

double certainty_above(double value, double threshold)
{
	const double step = (value - threshold) * CERTAIN_ENOUGH_ZONE;
	return 0.5 + 0.45 * fmin(fmax(step, 0), 1);
}

bool cause_is(struct cause *out, const char *resource, double certainty, const char *format, ...)
{
	*out = (struct cause){.resource = resource, .certainty = certainty};
	va_list args;
	va_start(args, format);
	(void)vsnprintf(out->words, sizeof out->words, format, args);
	va_end(args);
	return true;
}

struct trace_set cause_traces(const struct evidence_base *base, const char *stage)
{
	return base->source ? trace_set_of(base->source->traces, base->source->count, stage)
			    : (struct trace_set){0};
}

static double cause_asleep(const struct stage_summary *stage)
{
	const double known = stage->cpu + stage->run_queue +
			     (isnan(stage->lock_wait) ? 0 : stage->lock_wait) +
			     (isnan(stage->io_wait) ? 0 : stage->io_wait);
	return isnan(known) ? NAN : fmax(1 - known, 0);
}

/* --- rules that any stage on cores shares ----------------------------------------------------- */

static const double CPU_BOUND = 0.90; /* of working time on a CPU */
static const double CPU_LIKELY = 0.80;
static const double RUN_QUEUE_BOUND = 0.10; /* of working time waiting for a core */
/* Share of a quota's periods that were throttled: below, it does not matter; above, nothing else
 * keeps the threads off the cores. */
static const double THROTTLED_BOUND = 0.10, THROTTLED_MOSTLY = 0.50;
static const double THROTTLED_DOUBTLESS = 0.60;
static const double OTHERS_USE = 0.20; /* of a quota, by others of its group */
/* Stolen share of the CPU time that anybody on the machine wanted: below, it does not matter;
 * above, it counts for more than threads that wait for each other. */
static const double STOLEN_BOUND = 0.10, STOLEN_MUCH = 0.20;
static const double STOLEN_SLACK = 0.15; /* asleep beyond what is stolen: for something else */
static const double GAIN_LEAST = 0.05;   /* by replay, without the others or with cores for all */
static const double CORES_OVERDRAWN = 1.10;
static const double SLOWED = 1.20; /* times the CPU time that an item takes alone */

static bool cause_unknown_split(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)base;
	if (!isnan(stage->cpu) && !isnan(stage->run_queue))
		return false;
	return cause_is(out, "unknown", 0.5,
		"how the working time of %s divides into CPU and waiting is unknown (no schedstat)",
		stage->name);
}

/* It waits for a core more than for anything else. */
static bool waits_for_cores(const struct stage_summary *stage)
{
	const double lock = isnan(stage->lock_wait) ? 0 : stage->lock_wait;
	return stage->run_queue >= RUN_QUEUE_BOUND && stage->run_queue >= cause_asleep(stage) &&
	       stage->run_queue >= lock;
}

/* Time that is neither on a core nor waiting for one points to another cause. */
static double cores_certainty(const struct stage_summary *stage)
{
	return certainty_above(stage->run_queue, RUN_QUEUE_BOUND) *
	       (1 - fmax(1 - stage->cpu - stage->run_queue, 0));
}

const char *cause_short_group(const char *group, char out[QUOTA_WORDS_BYTES])
{
	const size_t length = strlen(group);
	const size_t most = QUOTA_WORDS_BYTES - 1 - strlen("...");
	if (length < QUOTA_WORDS_BYTES)
		(void)snprintf(out, QUOTA_WORDS_BYTES, "%s", group);
	else
		(void)snprintf(out, QUOTA_WORDS_BYTES, "...%s", group + length - most);
	return out;
}

const char *cause_quota_name(const struct point_summary *point, char out[QUOTA_NAME_BYTES])
{
	char group[QUOTA_WORDS_BYTES];
	(void)snprintf(out, QUOTA_NAME_BYTES, "the quota of cgroup %s (%s core%s)",
		cause_short_group(point->quota_group, group), UNITS_PLAIN(point->quota_cores, 3),
		point->quota_cores == 1 ? "" : "s");
	return out;
}

static bool others_are_busy(const struct evidence_base *base)
{
	return foreign_load_is_heavy(base->point->cores_busy_outside, base->point->cores_allowed);
}

/* What the model says of throughput without others, over what was measured: it may know nothing of what they do, as where
 * threads cannot leave a core that is taken. */
static bool gains_alone(const struct evidence_base *base)
{
	const struct model_findings *const f = base->findings;
	return !f || (1 + f->alone) / (1 - fmax(f->elasticities.unmodelled, 0)) - 1 >= GAIN_LEAST;
}

/* Where the quota throttles only now and then, other processes may matter more. */
static bool quota_matters(const struct evidence_base *base)
{
	const struct model_findings *f = base->findings;
	if (base->point->throttled_share >= THROTTLED_MOSTLY)
		return true;
	if (f && f->unthrottled < GAIN_LEAST)
		return false;
	return !others_are_busy(base) || (f && f->unthrottled >= f->alone);
}

/* A CPU quota throttled the process so often that it may be the cause. */
static bool cause_quota_throttles(const struct point_summary *point)
{
	return point->quota_cores > 0 && point->throttled_share >= THROTTLED_BOUND;
}

static double cause_quota_certainty(const struct point_summary *point)
{
	const double beyond = (point->throttled_share - THROTTLED_BOUND) /
			      (THROTTLED_DOUBTLESS - THROTTLED_BOUND);
	return 0.6 + 0.35 * fmin(fmax(beyond, 0), 1);
}

static bool cause_quota(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const struct point_summary *point = base->point;
	char quota[QUOTA_NAME_BYTES];
	char others[64] = "";
	if (!cause_quota_throttles(point) || !waits_for_cores(stage) || !quota_matters(base))
		return false;
	if (point->quota_others > OTHERS_USE * point->quota_cores)
		(void)snprintf(others, sizeof others, " and %.2f by other processes of the group",
			point->quota_others);
	return cause_is(out, "quota",
		cause_quota_certainty(point) * (1 - fmax(1 - stage->cpu - stage->run_queue, 0)),
		"%s throttled in %.0f %% of its periods: %s waits for a core %.0f %% of its "
		"working time; %.2f cores were used%s",
		cause_quota_name(point, quota), point->throttled_share * 100, stage->name,
		stage->run_queue * 100, point->cores_used, others);
}

/* Where the kernel leaves stolen time out of a thread's CPU time, the thread seems to sleep
 * meanwhile. */
static bool cause_stolen(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const struct point_summary *point = base->point;
	const double cores = point->steal_share * point->cores_allowed;
	const double outside = isnan(point->cores_busy_outside) ? 0 : point->cores_busy_outside;
	const double stolen = cores / (cores + point->cores_used + outside);
	const double lock = isnan(stage->lock_wait) ? 0 : stage->lock_wait;
	if (!(stolen >= STOLEN_BOUND) || !(cause_asleep(stage) <= stolen + STOLEN_SLACK) ||
		lock > STOLEN_SLACK)
		return false;
	if (waits_for_cores(stage) && ((others_are_busy(base) && outside > cores) ||
					      (stage->run_queue > stolen && stolen < STOLEN_MUCH)))
		return false;
	return cause_is(out, "steal", certainty_above(stolen, STOLEN_BOUND),
		"the host took %.1f of %u cores' time away (steal), %.0f %% of what processes here "
		"wanted; %s is on a CPU %.0f %% of its working time and waits for one %.0f %%",
		cores, point->cores_allowed, stolen * 100, stage->name, stage->cpu * 100,
		stage->run_queue * 100);
}

static const double CORES_FREE = 0.5; /* beyond the mask, that others leave idle */

/* An affinity mask holds the threads on fewer cores than the node would let them use, while others are idle. */
static bool cause_affinity(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const struct point_summary *const point = base->point;
	const double elsewhere =
		isnan(point->cores_busy_elsewhere) ? 0 : point->cores_busy_elsewhere;
	const double outside = isnan(point->cores_busy_outside) ? 0 : point->cores_busy_outside;
	const double held = stage->cores;
	const double beyond = point->cores_reachable - held;
	/* Others that run beside the threads are not in the way elsewhere. */
	const double shared = stage->cores < point->cores_allowed ? outside : 0;
	if (!waits_for_cores(stage) || stage->cores == 0 ||
		!(beyond - elsewhere - shared >= CORES_FREE) ||
		!(cause_cores_wanted(point) > CORES_OVERDRAWN * held))
		return false;
	return cause_is(out, "affinity", cores_certainty(stage),
		"an affinity mask holds the %u thread%s of %s on %u of the %u cores that this process could use: they wait for a core %.0f %% of their working time",
		stage->workers, stage->workers == 1 ? "" : "s", stage->name, stage->cores,
		point->cores_reachable, stage->run_queue * 100);
}

static const double THREADS_FAR_ABOVE = 2; /* times the cores */
/* In a second of CPU time: a thread that works keeps its core for about a millisecond and more (slice_ns of model_alter.c),
 * however many want it; threads that wake and yield to each other do not. */
static const double SWITCHES_MANY = 5000;
/* Of the CPU time, in the kernel beyond reading: what switching takes at least.  8 workers of 2 threads had 14 % and lost
 * nothing, of 16 threads 24 % and of 64 threads 42 % (tests/bench/bench_worker_threads.sh). */
static const double KERNEL_MUCH = 0.15;

static double cause_kernel_share(const struct point_summary *point)
{
	const struct stage_summary *const read = summary_stage(point, STAGE_READ_NAME);
	/* fmax passes over NAN: it hardly worked. */
	const double reading = read ? fmax(read->busy * read->workers * read->cpu, 0) : 0;
	return point->system_share - reading / point->cores_used;
}

/* Threads within each worker are far more than cores: waking, spinning and yielding to each other takes the cores from the
 * work. */
static bool cause_threads(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const struct point_summary *const point = base->point;
	const unsigned each = base->facts->worker_threads;
	const double threads = (double)base->facts->decode_workers * each;
	const unsigned cores = stage->cores > 0 ? stage->cores : point->cores_allowed;
	const double kernel = cause_kernel_share(point);
	if (each < 2 || !waits_for_cores(stage) || !(threads > THREADS_FAR_ABOVE * cores) ||
		!(point->switches >= SWITCHES_MANY) || !(kernel >= KERNEL_MUCH))
		return false;
	/* Beside others, more threads also get more of the cores: fewer of them may then be slower. */
	return cause_is(out, "threads",
		fmin(certainty_above(kernel, KERNEL_MUCH), others_are_busy(base) ? 0.55 : 1),
		"%u workers of %u threads each are %.0f threads on %u core%s: they lose or give up a core %.0f times in each second of CPU time, %.0f %% of which is in the kernel beyond reading",
		base->facts->decode_workers, each, threads, cores, cores == 1 ? "" : "s",
		point->switches, kernel * 100);
}

static bool cause_external(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	if (!waits_for_cores(stage) || !others_are_busy(base))
		return false;
	if (!gains_alone(base))
		return false;
	return cause_is(out, "external", cores_certainty(stage),
		"%s waits for a core %.0f %% of its working time, and other processes keep %.1f of "
		"%u core%s busy",
		stage->name, stage->run_queue * 100, base->point->cores_busy_outside,
		base->point->cores_allowed, base->point->cores_allowed == 1 ? "" : "s");
}

/* Threads that are woken by others of the line wait for a core before they work: that counts as starved or blocked. */
static bool cause_woken_late(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const double wanted = stage->queued + stage->busy * stage->cpu;
	if (!(stage->queued >= QUEUED_MUCH) || !others_are_busy(base) || !gains_alone(base))
		return false;
	return cause_is(out, "external", fmin(stage->queued / wanted + QUEUED_MUCH, 0.9),
		"the threads of %s wait for a core %.0f %% of all their time, also when they are "
		"woken, and other processes keep %.1f of %u core%s busy",
		stage->name, stage->queued * 100, base->point->cores_busy_outside,
		base->point->cores_allowed, base->point->cores_allowed == 1 ? "" : "s");
}

double cause_cores_wanted(const struct point_summary *point)
{
	double wanted = 0;
	for (size_t i = 0; i < point->stage_count; i++) {
		const struct stage_summary *s = &point->stages[i];
		if (!isnan(s->cpu) && !isnan(s->run_queue))
			wanted += s->busy * s->workers * (s->cpu + s->run_queue);
	}
	return wanted;
}

static bool cause_cores(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const struct point_facts *facts = base->facts;
	if (!waits_for_cores(stage))
		return false;
	const bool own = facts->decode_workers + facts->step_threads > facts->cores ||
			 cause_cores_wanted(base->point) > CORES_OVERDRAWN * facts->cores;
	const bool gains = base->findings && base->findings->roomy >= GAIN_LEAST;
	if (!own && !gains)
		return false;
	return cause_is(out, "cores", cores_certainty(stage),
		"%s waits for a core %.0f %% of its working time: %u decode workers and %u step "
		"threads on %u cores",
		stage->name, stage->run_queue * 100, facts->decode_workers, facts->step_threads,
		facts->cores);
}

/* What keeps the threads off the cores; the head of this file has the order and the reasons. */
bool cause_no_core(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	return cause_quota(base, stage, out) || cause_stolen(base, stage, out) ||
	       cause_affinity(base, stage, out) || cause_threads(base, stage, out) ||
	       cause_external(base, stage, out) || cause_woken_late(base, stage, out) ||
	       cause_cores(base, stage, out);
}

/* Processes that stream through memory slow every core down without taking one away, wherever they run. */
static bool cause_slowed(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const struct point_summary *const point = base->point;
	const double alone = base->facts->decode_alone;
	const double elsewhere =
		isnan(point->cores_busy_elsewhere) ? 0 : point->cores_busy_elsewhere;
	const double busy = point->cores_busy_outside + elsewhere;
	if (!foreign_load_is_heavy(busy, point->cores_allowed) ||
		!(alone > SLOWED * stage->capacity) || isnan(cause_asleep(stage)) ||
		cause_asleep(stage) > RUN_QUEUE_BOUND)
		return false;
	return cause_is(out, "external", 0.8,
		"%s takes %.1f times as long as alone on this node, and other processes keep %.1f "
		"cores busy",
		stage->name, alone / stage->capacity, busy);
}

static const double HANDOVER_MOSTLY = 0.5; /* of what is declared to be other than that */

/* Share of the working time of its threads in which they hand batches over, as declared; 0: none. */
static double handover_share(const struct evidence_base *base, const struct stage_summary *stage)
{
	const double batches = base->point->median / fmax(base->facts->batch_size, 1);
	const double working = stage->busy * stage->workers;
	const double share = base->facts->handover_ns * 1e-9 * batches / working;
	return share > 0 ? fmin(share, 1) : 0;
}

/* The workers serialise more than they make. */
static bool decode_handover(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const double share = handover_share(base, stage);
	if (share < HANDOVER_MOSTLY || stage->cpu < CPU_LIKELY)
		return false;
	return cause_is(out, "hand-over", certainty_above(share, HANDOVER_MOSTLY),
		"the workers spend %.0f %% of their working time handing batches over to the step (objects and bytes that they serialise)",
		share * 100);
}

/* The working time is spent on a CPU: computing of the step, copying of the upload. */
bool cause_on_cpu(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)base;
	if (stage->cpu < CPU_LIKELY)
		return false;
	return cause_is(out,
		stage_is(stage->name, STAGE_STEP)     ? "compute"
		: stage_is(stage->name, STAGE_UPLOAD) ? "copy"
						      : "cpu",
		stage->cpu >= CPU_BOUND ? certainty_above(stage->cpu, CPU_BOUND) : 0.6,
		"%.1f %% of the working time of %s is on a CPU and %.1f %% waits for a core",
		stage->cpu * 100, stage->name, stage->run_queue * 100);
}

/* The last rule of a stage: its time split, which points to no cause. */
bool cause_unexplained(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)base;
	return cause_is(out, "unknown", 0.5,
		"%.0f %% of the working time of %s is on a CPU, %.0f %% waits for a core and %.0f "
		"%% for something else",
		stage->cpu * 100, stage->name, stage->run_queue * 100,
		fmax(1 - stage->cpu - stage->run_queue, 0) * 100);
}

/* --- decode: a slow worker, a lock, cores, waiting off the cores, its CPU --------------------- */

static const double ASLEEP_BOUND = 0.15;     /* neither on a core nor waiting for one */
static const double LOCK_WAIT_BOUND = 0.08;  /* of working time */
static const double LOCK_BUSY_BOUND = 0.90;  /* of all time */
static const double IMBALANCE_RATIO = 1.5;   /* the slowest worker's median over the others' */
static const double IMBALANCE_PROVEN = 1.2;  /* the same where replay gains from even workers ... */
static const double IMBALANCE_GAIN = 0.05;   /* ... by so much */
static const double IMBALANCE_DOUBTLESS = 2; /* times */

/* By what it spends: one that waits for a core takes as long, and is none.  Where that is not known, nobody is called slow while
 * the stage waits for cores. */
static struct trace_workers slowest_worker(
	const struct evidence_base *base, const struct stage_summary *stage)
{
	const struct trace_set set = cause_traces(base, stage->name);
	struct trace_workers out = trace_workers_of(&set);
	const double spends = worker_spends(base->repeats, base->count, stage->name, out.worst);
	if (isnan(spends) && !stage->device && waits_for_cores(stage))
		out.ratio = NAN;
	if (out.ratio > spends) {
		out.ratio = spends;
		out.worst_ns = spends * out.others_ns;
	}
	return out;
}

static bool decode_lock_is_full(const struct stage_summary *stage)
{
	return stage->lock_busy >= LOCK_BUSY_BOUND && stage->workers > 1;
}

/* With batch.order = in-order, the batch of a slow worker is waited for while later ones are
 * complete. A lock that is held all the time makes workers slow, too: it is not fair, and one of
 * them may wait for it far longer than the others. */
static bool decode_imbalance(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const struct trace_workers slowest = slowest_worker(base, stage);
	const bool gains = base->findings && base->findings->even >= IMBALANCE_GAIN;
	if (!(slowest.ratio >= (gains ? IMBALANCE_PROVEN : IMBALANCE_RATIO)) ||
		(decode_lock_is_full(stage) && stage->lock_wait >= LOCK_WAIT_BOUND))
		return false;
	/* A core that others share is slower as well. */
	if (waits_for_cores(stage) && slowest.ratio < IMBALANCE_DOUBTLESS)
		return false;
	char slow[UNITS_BYTES];
	char others[UNITS_BYTES];
	const double beyond =
		(slowest.ratio - IMBALANCE_RATIO) / (IMBALANCE_DOUBTLESS - IMBALANCE_RATIO);
	return cause_is(out, "imbalance", 0.6 + 0.35 * fmin(beyond, 1),
		"%s worker %u is a straggler: it takes %s per sample, the others %s, and it holds "
		"up the batch",
		stage->name, slowest.worst, units_format_duration(slowest.worst_ns, slow),
		units_format_duration(slowest.others_ns, others));
}

/* Lock waits grow without bound as the lock is held all the time: either one shows that the lock is
 * the bottleneck. */
static bool decode_lock(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)base;
	const bool waits =
		stage->lock_wait >= LOCK_WAIT_BOUND && stage->lock_wait >= stage->run_queue;
	const bool held = decode_lock_is_full(stage);
	if (!waits && !held)
		return false;
	const double certainty =
		fmax(waits ? certainty_above(stage->lock_wait, LOCK_WAIT_BOUND) : 0,
			held ? certainty_above(stage->lock_busy, LOCK_BUSY_BOUND) : 0);
	return cause_is(out, "lock", certainty,
		"lock contention (GIL-like): %s waits for its lock %.0f %% of its working time, "
		"and the lock is held %.0f %% of the time",
		stage->name, stage->lock_wait * 100, stage->lock_busy * 100);
}

/* Where lock waits were not timed: sleep that nothing else explains. */
static bool decode_lock_unseen(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)base;
	const double asleep = cause_asleep(stage);
	if (!isnan(stage->lock_wait) || asleep < ASLEEP_BOUND || stage->cpu >= CPU_BOUND)
		return false;
	return cause_is(out, "lock", certainty_above(asleep, ASLEEP_BOUND) * 0.9,
		"%s sleeps %.0f %% of its working time although it hardly waits for a core (%.1f "
		"%%): it waits for a lock",
		stage->name, asleep * 100, stage->run_queue * 100);
}

static bool decode_waits(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)base;
	const double asleep = cause_asleep(stage) + (isnan(stage->io_wait) ? 0 : stage->io_wait);
	if (isnan(stage->lock_wait) || asleep < ASLEEP_BOUND)
		return false;
	return cause_is(out, "wait", certainty_above(asleep, ASLEEP_BOUND),
		"%s waits off the CPU %.0f %% of its working time, neither for a core (%.1f %%) "
		"nor for its lock (%.1f %%)",
		stage->name, asleep * 100, stage->run_queue * 100, stage->lock_wait * 100);
}

static bool decode_on_cpu(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	if (stage->cpu >= CPU_BOUND)
		return cause_on_cpu(base, stage, out);
	if (stage->cpu < CPU_LIKELY)
		return false;
	(void)cause_unexplained(base, stage, out);
	out->resource = "cpu";
	out->certainty = 0.6;
	return true;
}

static cause_rule *const cause_rules_decode[] = {decode_imbalance, cause_unknown_split, decode_lock,
	cause_no_core, decode_lock_unseen, decode_waits, cause_slowed, decode_handover,
	decode_on_cpu, cause_unexplained, NULL};

/* --- devices that train together -------------------------------------------------------------- */

static const double SLOW_RATIO = 1.25;    /* the slowest device's median step over the others' */
static const double SLOW_PROVEN = 1.05;   /* the same where replay gains from even devices ... */
static const double SLOW_GAIN = 0.05;     /* ... by so much */
static const double SLOW_DOUBTLESS = 1.5; /* times */

double devices_waiting(const struct point_summary *point)
{
	const struct stage_summary *step = summary_stage(point, STAGE_STEP_NAME);
	const struct stage_summary *sync = summary_stage(point, STAGE_SYNC_NAME);
	/* 0 where there are none. */
	const double stopped = fmax(point->checkpoint_share, 0) + fmax(point->evaluation_share, 0);
	return step && sync ? fmax(step->blocked - sync->busy - stopped, 0) : (double)NAN;
}

static bool cause_slow_device(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	if (stage->workers < 2)
		return false;
	const struct trace_workers slowest = slowest_worker(base, stage);
	const bool gains = base->findings && base->findings->even_devices >= SLOW_GAIN;
	if (!(slowest.ratio >= (gains ? SLOW_PROVEN : SLOW_RATIO)))
		return false;
	char slow[UNITS_BYTES];
	char others[UNITS_BYTES];
	const double beyond = (slowest.ratio - SLOW_PROVEN) / (SLOW_DOUBTLESS - SLOW_PROVEN);
	return cause_is(out, "imbalance", 0.7 + 0.25 * fmin(beyond, 1),
		"device %u is a straggler: it computes %s per step, the others %s, and they wait "
		"%.0f %% of the time for one another",
		slowest.worst, units_format_duration(slowest.worst_ns, slow),
		units_format_duration(slowest.others_ns, others),
		devices_waiting(base->point) * 100);
}

static bool sync_exchanges(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	if (stage->workers == 1)
		return cause_is(out, "exchange", 0.95,
			"each rank exchanges gradients %.1f %% of the time, beyond what passes beside the "
			"step, and waits for the others %.1f %% before that",
			stage->busy * 100, devices_waiting(base->point) * 100);
	return cause_is(out, "exchange", 0.95,
		"%u devices spend %.1f %% of the time exchanging gradients and %.1f %% waiting for "
		"one another before that",
		stage->workers, stage->busy * 100, devices_waiting(base->point) * 100);
}

static cause_rule *const cause_rules_sync[] = {sync_exchanges, NULL};

/* --- checkpoints ------------------------------------------------------------------------------ */

static bool checkpoint_stalls(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const struct checkpoint_measurement *const c = &base->point->checkpoint;
	const double share = base->point->checkpoint_share * 100;
	char each[UNITS_BYTES];
	char size[UNITS_BYTES];
	if (c->count == 0)
		return cause_is(out, "storage", 0.6,
			"a checkpoint was being written %.0f %% of the time, and none was done in the measured part: measure longer",
			stage->busy * 100);
	(void)units_format_duration(c->stall_seconds * 1e9 / (double)c->count, each);
	(void)units_format_size((double)c->bytes, size);
	if (!c->async)
		return cause_is(out, "storage", 0.95,
			"the step stands still for %.1f %% of the time while checkpoints of %s are written: %s every %u steps",
			share, size, each, c->every);
	if (c->copy_seconds > c->wait_seconds)
		return cause_is(out, "copy", 0.9,
			"the step stands still for %.1f %% of the time while a state of %s is copied for checkpoints: %s every %u steps",
			share, size, each, c->every);
	return cause_is(out, "storage", 0.95,
		"the step stands still for %.1f %% of the time until the writer has done with the checkpoint before, of %s: %s every %u steps",
		share, size, each, c->every);
}

static cause_rule *const cause_rules_checkpoint[] = {checkpoint_stalls, NULL};

/* --- evaluations ------------------------------------------------------------------------------ */

/* What their time is: hardly less than half of it may as well be the other, as the next run has it. */
static const double EVALUATION_MOSTLY = 0.6;

static bool evaluation_stalls(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const struct evaluation_measurement *const e = &base->point->evaluation;
	char each[UNITS_BYTES];
	if (e->count == 0)
		return cause_is(out, "step", 0.5,
			"evaluations went on %.0f %% of the time, and none ended in the measured part: measure longer",
			stage->busy * 100);
	const double starved = e->starved_seconds / e->stall_seconds;
	const bool input = starved > 0.5;
	const double mostly = input ? starved : 1 - starved;
	(void)units_format_duration(e->stall_seconds * 1e9 / (double)e->count, each);
	return cause_is(out, input ? "input" : "step", mostly >= EVALUATION_MOSTLY ? 0.95 : 0.7,
		"the step stands still for %.1f %% of the time for evaluations of %" PRIu64
		" samples, %s every %u steps; they wait for input %.0f %% of that (workers of their own: %u)",
		base->point->evaluation_share * 100, e->samples_each, each, e->every, starved * 100,
		e->workers);
}

static cause_rule *const cause_rules_evaluate[] = {evaluation_stalls, NULL};

/* --- the step, and the copy to it ------------------------------------------------------------- */

static const double HOST_BOUND =
	0.20; /* of a step's time, worked by its thread beforehand: without it, a quarter more */

/* Without schedstat a thread that waits for a core looks like one that launches. */
static const double LAUNCH_UNTOLD = 0.6;
static const double LAUNCH_BOUND =
	0.90; /* of a step's device time, spent by the host in launching it */
static const double IDLE_BOUND = 0.25;   /* of a step's device time, without a kernel */
static const double COPY_BOUND = 0.30;   /* of a step's device time, copying its own batch */
static const double SLOWED_BOUND = 0.50; /* of the samples */
static const double COPIES_MOSTLY = 0.5; /* of the uploader's working time, something is copied */
static const double LATE_TOLD =
	0.05; /* of the time, busy beyond what an emulated device computes */
static const double QUOTA_LATE = 0.20; /* the same, for a quota to be what matters most */
/* The same, for other processes, and share of its working time that its thread then waits for a core. */
static const double OTHERS_LATE = 0.25, OTHERS_QUEUED = 0.5;
static const double CLOCK_LOW = 0.85; /* of the highest clock: a power cap that matters */

/* --- a device that works by itself: what it and NVML say of it -------------------------------- */

static bool step_of_device(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const struct device_view view = device_view_of(base->repeats, base->count);
	char peak[64] = "";
	char capped[64] = "";
	if (!view.any)
		return false;
	if (view.slowed >= SLOWED_BOUND)
		return cause_is(out, "throttled", certainty_above(view.slowed, SLOWED_BOUND),
			"%s throttled its clocks in %.0f %% of the samples: %s", view.name,
			view.slowed * 100, view.reason);
	if (view.capped >= SLOWED_BOUND && view.clock_share < CLOCK_LOW)
		return cause_is(out, "throttled",
			certainty_above(1 - view.clock_share, 1 - CLOCK_LOW),
			"the power cap held %s at %.0f %% of its highest clock, in %.0f %% of the "
			"samples",
			view.name, view.clock_share * 100, view.capped * 100);
	/* Without an upload stage, the step begins with the copy. */
	if (view.copy_share >= COPY_BOUND && !summary_stage(base->point, STAGE_UPLOAD_NAME))
		return cause_is(out, "copy", certainty_above(view.copy_share, COPY_BOUND),
			"%.0f %% of the step time on %s is spent copying its batch, at %.1f GB/s",
			view.copy_share * 100, view.name, view.copy_rate / 1e9);
	if (view.launch_share >= LAUNCH_BOUND)
		return cause_is(out, "launch",
			isfinite(view.idle) && view.idle < IDLE_BOUND ? 0.6 : 0.9,
			"launching a step takes the host %.0f %% of the time that the device needs "
			"to run it%s",
			view.launch_share * 100,
			isfinite(view.idle) ? "" : " (idle time within a step was not measured)");
	if (view.idle >= IDLE_BOUND)
		return cause_is(out, "launch", certainty_above(view.idle, IDLE_BOUND),
			"no kernel runs during %.0f %% of the step time on the device",
			view.idle * 100);
	if (isfinite(view.utilisation))
		(void)snprintf(peak, sizeof peak, ", %.0f %% of its published peak",
			view.utilisation * 100);
	if (view.capped >= SLOWED_BOUND)
		(void)snprintf(capped, sizeof capped,
			"; its power cap was reached in %.0f %% of the samples", view.capped * 100);
	return cause_is(out, "compute", 0.95, "%s computes %.1f %% of the time%s%s", view.name,
		fmin(isfinite(view.busy) ? view.busy : stage->busy, 1) * 100, peak, capped);
}

/* --- any other -------------------------------------------------------------------------------- */

/* Shares of the working time of the step's threads, over the repetitions; NAN: unknown (no
 * schedstat). */
struct thread_shares {
	double cpu, queued;
};

static struct thread_shares thread_shares_of(const struct evidence_base *base, const char *name)
{
	struct thread_shares sum = {0, 0};
	double working = 0;
	for (size_t i = 0; i < base->count; i++)
		for (size_t k = 0; k < base->repeats[i]->stage_count; k++) {
			const struct stage_measurement *stage = &base->repeats[i]->stages[k];
			if (strcmp(stage->name, name) != 0 || isnan(stage->run_queue_seconds))
				continue;
			sum.cpu += stage->cpu_seconds;
			sum.queued += stage->run_queue_seconds;
			working += stage->seconds[THREAD_WORKING];
		}
	return working > 0 ? (struct thread_shares){sum.cpu / working, sum.queued / working}
			   : (struct thread_shares){NAN, NAN};
}

/* Share of the step time that its thread works before the device begins, on a core or asleep in a
 * driver. Waiting for a core is not work, before the device or after it; without schedstat that
 * waiting is included. NAN: unknown. */
static double launch_share(const struct evidence_base *base, const struct stage_summary *stage)
{
	if (base->facts->step_threads > 0)
		return NAN;
	const struct trace_set set = cause_traces(base, stage->name);
	const double host = trace_host_share(&set, base->facts->step_emulated);
	const struct thread_shares thread = thread_shares_of(base, stage->name);
	/* fmin and fmax pass over NAN */
	return isnan(host) ? NAN : fmin(host, fmax(thread.cpu, host - thread.queued));
}

/* The device waits for its thread, as with many small kernels. The two take turns, so whatever one
 * takes is lost to the other. */
static bool step_launch(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const double host = launch_share(base, stage);
	if (!(host >= HOST_BOUND))
		return false;
	const double by_host = base->findings ? findings_cost(base->findings, COST_STEP_HOST) : NAN;
	const bool agree = isnan(by_host) || by_host >= HOST_BOUND / 2;
	const bool told = !isnan(thread_shares_of(base, stage->name).queued);
	const double certainty = agree ? certainty_above(host, HOST_BOUND) : 0.5;
	const double handover = handover_share(base, stage);
	if (!base->point->facts.step_null && handover >= HANDOVER_MOSTLY * host)
		return cause_is(out, "hand-over", told ? certainty : fmin(certainty, LAUNCH_UNTOLD),
			"the step's thread takes batches over from the workers for %.0f %% of the step time (objects and bytes that it deserialises), before the device begins",
			fmin(handover, host) * 100);
	return cause_is(out, "launch", told ? certainty : fmin(certainty, LAUNCH_UNTOLD),
		"the step's thread %s %.0f %% of the step time before the device begins%s",
		told ? "works" : "takes", host * 100,
		told ? "" : "; how much of that it waited for a core is unknown (no schedstat)");
}

/* Share of the time that the thread is busy beyond what the device computes and the thread
 * launches; 0 where the rate or the capacity is unknown. */
static double late_share(const struct evidence_base *base, const struct stage_summary *stage)
{
	const double launching = launch_share(base, stage);
	const double late = stage->busy - base->point->median / stage->capacity -
			    (isnan(launching) ? 0 : launching * stage->busy);
	return late > 0 ? late : 0;
}

bool step_is_late(const struct evidence_base *base)
{
	const struct point_summary *point = base->point;
	const struct stage_summary *step = summary_stage(point, STAGE_STEP_NAME);
	return base->facts->step_emulated && step && late_share(base, step) > LATE_TOLD;
}

/* A quota that stops the thread of an emulated device makes the device late. */
static bool step_late_by_quota(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const double late = late_share(base, stage);
	char quota[QUOTA_NAME_BYTES];
	if (!base->facts->step_emulated || late < QUOTA_LATE || !cause_quota_throttles(base->point))
		return false;
	return cause_is(out, "quota", cause_quota_certainty(base->point),
		"%s throttled in %.0f %% of its periods: for %.0f %% of the time the emulated "
		"device's thread handed a step over late or woke up late after it",
		cause_quota_name(base->point, quota), base->point->throttled_share * 100,
		late * 100);
}

/* So do other processes that keep the thread of an emulated device from a core. */
static bool step_late_by_others(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const double queued = thread_shares_of(base, stage->name).queued;
	const double late = late_share(base, stage);
	if (!base->facts->step_emulated || late < OTHERS_LATE || !(queued >= OTHERS_QUEUED) ||
		!others_are_busy(base))
		return false;
	return cause_is(out, "external", fmin(fmin(queued, 0.9), late + OTHERS_QUEUED),
		"the emulated device's thread waits for a core %.0f %% of its working time, and other processes "
		"keep %.1f of %u cores busy",
		queued * 100, base->point->cores_busy_outside, base->point->cores_allowed);
}

/* An emulated device's busy share follows from its nominal time, not from how long its thread
 * slept. */
static bool emulated_computes(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const double late = late_share(base, stage);
	/* fmin passes over NAN: a capacity that is not known */
	const double computing = fmin(base->point->median / stage->capacity, stage->busy);
	if (isnan(base->point->step_utilisation)) /* a run in progress */
		return cause_is(out, "compute", 0.95,
			"the emulated device and its thread are busy %.1f %% of the time, late "
			"wake-ups included",
			stage->busy * 100);
	if (late <= LATE_TOLD)
		return cause_is(out, "compute", 0.95,
			"the emulated device computes %.1f %% of the time", computing * 100);
	return cause_is(out, "compute", 0.6,
		"the emulated device computes %.1f %% of the time; for another %.1f %% its thread "
		"was late: it handed a step over late or woke up late after it",
		computing * 100, late * 100);
}

static bool step_on_device(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	if (base->facts->step_emulated)
		return emulated_computes(base, stage, out);
	if (!stage->device)
		return false;
	return cause_is(
		out, "compute", 0.9, "the device computes %.1f %% of the time", stage->busy * 100);
}

static bool upload_to_device(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const struct device_view view = device_view_of(base->repeats, base->count);
	/* A thread that works while nothing is copied lacks something on the host. */
	if (!view.any || !isfinite(view.copy_rate) ||
		!(view.copying >= COPIES_MOSTLY * stage->busy))
		return false;
	return cause_is(out, "copy", 0.95,
		"copying batches to %s takes %.0f %% of the time, at %.1f GB/s", view.name,
		stage->busy * 100, view.copy_rate / 1e9);
}

/* A copy that sleeps waits for the memory or the link that it copies over. */
static bool upload_waits(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)base;
	const double asleep = cause_asleep(stage);
	if (isnan(asleep) || asleep < stage->run_queue)
		return false;
	return cause_is(out, "copy", 0.85,
		"upload copies on a core %.0f %% of its working time and waits for the memory or "
		"the link %.0f %%",
		stage->cpu * 100, asleep * 100);
}

static cause_rule *const cause_rules_step[] = {cause_slow_device, step_of_device, step_launch,
	step_late_by_quota, step_late_by_others, step_on_device, cause_unknown_split, cause_no_core,
	cause_on_cpu, cause_unexplained, NULL};
static cause_rule *const cause_rules_upload[] = {upload_to_device, cause_unknown_split,
	cause_no_core, cause_on_cpu, upload_waits, cause_unexplained, NULL};

/* --- all of them ------------------------------------------------------------------------------ */

struct cause cause_of_restarts(const struct point_summary *point)
{
	struct cause cause = {0};
	char each[UNITS_BYTES];
	(void)units_format_duration(point->restart_seconds * 1e9 / (double)point->restarts, each);
	(void)cause_is(&cause, "startup", 0.95,
		"the workers start anew with each epoch: the step waits %s for its first batch, %.1f %% of the time",
		each, point->restart_share * 100);
	return cause;
}

struct cause cause_of_stage(const struct evidence_base *base, const struct stage_summary *stage)
{
	static const struct {
		const char *stage;
		cause_rule *const *rules;
	} tables[] = {
		{STAGE_READ_NAME, cause_rules_read},
		{STAGE_DECODE_NAME, cause_rules_decode},
		{STAGE_UPLOAD_NAME, cause_rules_upload},
		{STAGE_STEP_NAME, cause_rules_step},
		{STAGE_SYNC_NAME, cause_rules_sync},
		{STAGE_CHECKPOINT_NAME, cause_rules_checkpoint},
		{STAGE_EVALUATE_NAME, cause_rules_evaluate},
	};
	struct cause cause = {.resource = "unknown", .certainty = 0.5};
	(void)snprintf(
		cause.words, sizeof cause.words, "there is no rule for stage %s", stage->name);
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
		for (cause_rule *const *rule = tables[i].rules;
			strcmp(tables[i].stage, stage->name) == 0 && *rule; rule++)
			if ((*rule)(base, stage, &cause))
				return cause;
	return cause;
}
