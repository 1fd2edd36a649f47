/* Why reading does not go faster: a cache that holds a part of the data, the CPU, the device's bandwidth,
 * or the latency of each file with too few in flight. */
#include "harness/analyze/trace_features.h"
#include "harness/analyze/verdict_parts.h"

#include "harness/base/units.h"

#include <math.h>

static const double CPU_BOUND = 0.90;
static const double CPU_LIKELY = 0.80;
static const double DEVICE_BOUND = 0.90; /* of the storage's ceiling */
static const double LATENCY_BELOW = 0.70;
static const double IN_FLIGHT_FULL = 0.90; /* of what may be in flight */
static const double ONE_A_THREAD = 0.05;
static const double PAGE_CACHE_SERVED = 0.90;
static const double CACHE_LEAST = 0.04, CACHE_MOST = 0.96; /* a share strictly between */
static const double PACED = 0.60;     /* correlation of gaps and bytes: one after the other */
static const double UNPACED = 0.25;   /* below: each by itself */
static const double EVEN_GAPS = 0.25; /* deviation over mean */
static const double UNEVEN_GAPS = 0.60;
static const double IN_FLIGHT_SEVERAL = 1.5;
static const double CLEAR_OF = 0.10; /* by which one elasticity exceeds the other */

static struct trace_set reads(const struct evidence_base *base)
{
	return base->source ? trace_set_of(base->source->traces, base->source->count, "read")
			    : (struct trace_set){0};
}

static bool from_memory(const struct evidence_base *base)
{
	return base->facts->reads_memory || base->point->page_cache_share >= PAGE_CACHE_SERVED;
}

/* Hits and misses: two populations of service times, and a cache that served a part. */
static bool cached_in_part(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const struct trace_set set = reads(base);
	const struct trace_modes modes = trace_modes_of(&set);
	const double share = base->point->page_cache_share;
	if (!modes.two || base->facts->reads_memory || stage->cpu >= CPU_BOUND)
		return false;
	char fast[UNITS_BYTES];
	char slow[UNITS_BYTES];
	const bool between = share > CACHE_LEAST && share < CACHE_MOST;
	return cause_is(out, "cache", between ? 0.95 : 0.85,
		"%.0f %% of the reads take about %s and the others %s: a cache serves a part of them%s",
		modes.fast_share * 100, units_format_duration(modes.fast_ns, fast),
		units_format_duration(modes.slow_ns, slow),
		between ? ", as the page cache's share shows" : "");
}

static bool on_cpu(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const bool tells = !isnan(stage->cpu) && !isnan(stage->run_queue);
	if (!tells && from_memory(base))
		return cause_is(out, "cpu", 0.7,
			"reads are served from memory (%.0f %% page cache)",
			base->facts->reads_memory ? 100 : base->point->page_cache_share * 100);
	if (!tells || (!from_memory(base) && stage->cpu + stage->run_queue < CPU_BOUND))
		return false;
	if (cause_quota(base, stage, out) || cause_stolen(base, stage, out) ||
		cause_external(base, stage, out) || cause_cores(base, stage, out))
		return true;
	if (stage->cpu < CPU_LIKELY)
		return false;
	return cause_is(out, "cpu",
		stage->cpu >= CPU_BOUND ? certainty_above(stage->cpu, CPU_BOUND) : 0.6,
		"%.1f %% of %s's working time is on a CPU, %.1f %% waits for a core",
		stage->cpu * 100, stage->name, stage->run_queue * 100);
}

/* --- the storage ------------------------------------------------------------------------------ */

/* What is known of the reads in flight, and its words. */
struct flight {
	double rate, latency_ns, in_flight, allowed;
	bool full, one_a_thread; /* one a thread: blocking reads (pread), whatever the depth says */
	char rate_text[UNITS_BYTES], latency_text[UNITS_BYTES];
};

static struct flight flight_of(const struct evidence_base *base, const struct stage_summary *read)
{
	const struct point_facts *facts = base->facts;
	struct flight f = {.rate = base->point->bytes_read_per_s,
		.latency_ns = histogram_mean(&read->service),
		.allowed = (double)facts->read_threads * facts->read_depth};
	f.in_flight = base->point->median * f.latency_ns * 1e-9;
	f.one_a_thread =
		fabs(f.in_flight - facts->read_threads) <= ONE_A_THREAD * facts->read_threads;
	f.full = f.in_flight >= IN_FLIGHT_FULL * f.allowed || f.one_a_thread;
	(void)units_format_rate(f.rate, f.rate_text);
	(void)units_format_duration(f.latency_ns, f.latency_text);
	return f;
}

/* Which of the two the replay was calibrated to, when it is clear: DEVICE, LATENCY, or COSTS. */
static enum replay_cost by_replay(const struct evidence_base *base)
{
	const double device = cause_elasticity(base, COST_READ_DEVICE);
	const double latency = cause_elasticity(base, COST_READ_LATENCY);
	if (device > latency + CLEAR_OF)
		return COST_READ_DEVICE;
	return latency > device + CLEAR_OF ? COST_READ_LATENCY : COSTS;
}

/* And what the completions show: paced by their bytes, or each by itself.  With one file in flight they
 * cannot. */
static enum replay_cost by_pacing(const struct trace_pacing *pacing, const struct flight *f)
{
	if (f->in_flight < IN_FLIGHT_SEVERAL)
		return COSTS;
	if (pacing->correlation >= PACED ||
		(isnan(pacing->correlation) && pacing->variation <= EVEN_GAPS))
		return COST_READ_DEVICE;
	if (pacing->correlation <= UNPACED ||
		(isnan(pacing->correlation) && pacing->variation >= UNEVEN_GAPS))
		return COST_READ_LATENCY;
	return COSTS;
}

/* The calibration takes for latency what it cannot tell: only its device is evidence against pacing. */
static enum replay_cost choose_limit(enum replay_cost replay, enum replay_cost paced)
{
	if (replay == COST_READ_DEVICE)
		return replay;
	return paced != COSTS ? paced : replay;
}

static bool told_by_traces(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const struct trace_set set = reads(base);
	const struct trace_pacing pacing = trace_pacing_of(&set);
	const struct flight f = flight_of(base, stage);
	const enum replay_cost replay = by_replay(base);
	const enum replay_cost paced = by_pacing(&pacing, &f);
	const enum replay_cost chosen = choose_limit(replay, paced);
	if (set.count == 0 || chosen == COSTS)
		return false;
	const double certainty = paced == replay                     ? 0.95
				 : replay == COSTS || paced == COSTS ? 0.85
				 : chosen == COST_READ_DEVICE        ? 0.75
								     : 0.6;
	if (chosen == COST_READ_DEVICE)
		return cause_is(out, "device", certainty,
			"reads run at %s, and files complete one after the other, paced by their bytes, "
			"with %.1f of %.0f allowed in flight",
			f.rate_text, f.in_flight, f.allowed);
	return cause_is(out, "latency", certainty,
		"each file takes %s whatever its bytes, %.1f of %.0f allowed in flight, %s",
		f.latency_text, f.in_flight, f.allowed, f.rate_text);
}

/* The best this node's storage gave, by a probe of it; 0: not known. */
static double ceiling_of(const struct evidence_base *base)
{
	const struct ceilings *ceilings = base->source ? base->source->ceilings : NULL;
	const struct measurement *m = base->count > 0 ? base->repeats[0] : NULL;
	const double probed =
		ceilings && m ? ceilings_read_bytes_per_s(ceilings, m->file_bytes_mean, 0, true)
			      : NAN;
	return probed > 0 ? probed : base->facts->storage_bytes_per_s;
}

static bool told_by_ceiling(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const double ceiling = ceiling_of(base);
	const struct flight f = flight_of(base, stage);
	char best[UNITS_BYTES];
	if (!(ceiling > 0))
		return false;
	(void)units_format_rate(ceiling, best);
	if (f.rate >= DEVICE_BOUND * ceiling)
		return cause_is(out, "device", 0.9,
			"reads run at %s, %.0f %% of the %s that this storage gave at best",
			f.rate_text, f.rate / ceiling * 100, best);
	if (f.rate >= LATENCY_BELOW * ceiling || !f.full)
		return false;
	return cause_is(out, "latency", 0.85,
		"reads run at %s, %.0f %% of the %s that this storage gave at best, with %.1f of %.0f "
		"allowed in flight at %s each",
		f.rate_text, f.rate / ceiling * 100, best, f.in_flight, f.allowed, f.latency_text);
}

static bool storage(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const struct flight f = flight_of(base, stage);
	if (f.one_a_thread)
		return cause_is(out, "storage", 0.8,
			"each of %u reader threads has one file in flight, %s each, %s: slow storage or too "
			"few at once, which one point cannot tell apart",
			base->facts->read_threads, f.latency_text, f.rate_text);
	if (f.full)
		return cause_is(out, "storage", 0.8,
			"%.1f of %.0f files allowed are in flight, %s each, %s: slow storage or too few "
			"at once, which one point cannot tell apart",
			f.in_flight, f.allowed, f.latency_text, f.rate_text);
	return cause_is(out, "storage", 0.6,
		"%.1f of %.0f files allowed are in flight, %s each, %s", f.in_flight, f.allowed,
		f.latency_text, f.rate_text);
}

/* Page-cache reads that sleep wait for a disk's queue after all: not for what was measured. */
static bool memory_that_sleeps(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	return from_memory(base) && !isnan(stage->cpu) && cause_unexplained(base, stage, out);
}

/* Traces come before a ceiling: a ceiling is of this node's storage at its best, traces of this run. */
cause_rule *const cause_rules_read[] = {
	cached_in_part, on_cpu, told_by_traces, memory_that_sleeps, told_by_ceiling, storage, NULL};
