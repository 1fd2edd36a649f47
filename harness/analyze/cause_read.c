/* Why reading does not go faster: a cache that holds a part of the data, the CPU, storage that stalls, one that is full (of
 * bytes, of requests, of files served at once), or the latency of each file with too few in flight. */
#include "harness/analyze/storage_capacity.h"
#include "harness/analyze/trace_features.h"
#include "harness/analyze/verdict_parts.h"

#include "harness/base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double CPU_BOUND = 0.90;
static const double CPU_LIKELY = 0.80;
static const double DEVICE_BOUND = 0.90; /* of the storage's ceiling */
static const double LATENCY_BELOW = 0.70;
static const double PAGE_CACHE_SERVED = 0.90;
static const double READS_ALL_THE_TIME = 0.90;             /* busy: nothing below holds it back */
static const double CACHE_LEAST = 0.04, CACHE_MOST = 0.96; /* a share strictly between */
static const double NINETY = 1.645;
/* A capacity of less than so many times the rate is the next limit, and a close one. */
static const double NEARLY_FULL = 1.5, CERTAIN_NEARLY = 0.7;
static const double CERTAIN_SHARED = 0.85;
static const double CERTAIN_UNTOLD = 0.5;
static const double CERTAIN_CEILING = 0.8, CERTAIN_BELOW_CEILING = 0.65;
/* Given that it is full, that no more can be said is as good as sure; the name is not what a reader looks for. */
static const double CERTAIN_UNCLEAR = 0.85;

static struct trace_set reads(const struct evidence_base *base)
{
	return base->source ? trace_set_of(base->source->traces, base->source->count,
				      stage_name(STAGE_READ))
			    : (struct trace_set){0};
}

static bool from_memory(const struct evidence_base *base)
{
	return base->facts->reads_memory || base->point->page_cache_share >= PAGE_CACHE_SERVED;
}

/* Hits and misses: two populations of service times that bytes do not explain, and a page cache that served a part, or, where
 * nobody counts what it served, one that a memory limit keeps too small for the data. */
static bool cached_in_part(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const double share = base->point->page_cache_share;
	const bool between = share > CACHE_LEAST && share < CACHE_MOST;
	const bool limited = isnan(share) && cause_cache_limited(base->point, base->facts);
	if (!(between || limited) || base->facts->reads_memory || base->facts->reads_direct ||
		stage->cpu >= CPU_BOUND)
		return false;
	const struct trace_set set = reads(base);
	const struct trace_modes modes = trace_modes_of(&set);
	if (!modes.two)
		return false;
	char fast[UNITS_BYTES];
	char slow[UNITS_BYTES];
	if (limited)
		return cause_is(out, "cache", 0.9,
			"%.0f %% of the reads take about %s and the others %s: a cache serves a part of them, under a memory limit that it cannot hold the data in",
			modes.fast_share * 100, units_format_duration(modes.fast_ns, fast),
			units_format_duration(modes.slow_ns, slow));
	return cause_is(out, "cache", 0.95,
		"%.0f %% of the reads take about %s and the others %s: a cache serves a part of them, as the page cache's share (%.0f %%) shows",
		modes.fast_share * 100, units_format_duration(modes.fast_ns, fast),
		units_format_duration(modes.slow_ns, slow), share * 100);
}

bool cache_binds(const struct evidence_base *base)
{
	const struct point_summary *point = base->point;
	struct cause cause;
	const struct stage_summary *read = summary_stage(point, STAGE_READ_NAME);
	return read && read->busy >= READS_ALL_THE_TIME && cached_in_part(base, read, &cause);
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

double cause_let_through(const struct point_facts *facts)
{
	static const double MAX_BACKGROUND = 12;
	const bool fuse = strncmp(facts->mount, "fuse", strlen("fuse")) == 0;
	return fuse && !facts->reads_direct ? MAX_BACKGROUND : 0;
}

void storage_of_point(const struct evidence_base *base, struct storage *out)
{
	const struct model_source *source = base->source;
	const bool same = source && source->repeats == base->repeats;
	const struct storage_evidence evidence = {.repeats = base->repeats,
		.traces = source && (same || source->count == base->count) ? source->traces : NULL,
		.count = base->count,
		.others = source ? source->others : NULL,
		.other_count = source ? source->other_count : 0,
		.ceilings = source ? source->ceilings : NULL,
		.let_through = cause_let_through(base->facts)};
	storage_fit(&evidence, out);
}

enum { POINTS_BYTES = 160 };

/* "250 files/s with 4 in flight and 251 with 8" */
static const char *compare_points(const struct storage *s, char out[POINTS_BYTES])
{
	char here[UNITS_BYTES];
	char there[UNITS_BYTES];
	(void)units_format_count(s->rate, here);
	(void)units_format_count(s->rate * s->ratio, there);
	if (s->compared > 0)
		(void)snprintf(out, POINTS_BYTES,
			"%s files/s with %.1f in flight, %s with %.1f (elasticity %.2f +- %.2f)",
			here, s->in_flight, there, s->other_in_flight, s->elasticity,
			s->elasticity_error);
	else if (s->queues)
		(void)snprintf(out, POINTS_BYTES,
			"%s files/s with %.1f in flight, which wait for each other: a later one comes back no later",
			here, s->in_flight);
	else if (!isnan(s->ramp_ratio))
		(void)snprintf(out, POINTS_BYTES,
			"a file takes %.1f times as long with %.1f in flight as the first files did",
			s->ramp_ratio, s->in_flight);
	else
		(void)snprintf(
			out, POINTS_BYTES, "%s files/s with %.1f in flight", here, s->in_flight);
	return out;
}

/* Bytes and requests cannot be told apart where sizes are alike; where times are too uneven, nothing is. */
static bool full_of_something(const struct storage *s, const char *points, struct cause *out)
{
	if (s->sizes_alike)
		return cause_is(out, "bandwidth", s->full * CERTAIN_UNCLEAR,
			"storage is full: %s; files are of one size, so that bandwidth (bytes) and IOPS (requests) cannot be told apart",
			points);
	return cause_is(out, "full", s->full * CERTAIN_UNCLEAR,
		"storage is full: %s; their times do not tell whether of bytes (bandwidth) or requests (IOPS)",
		points);
}

static bool storage_is_full(const struct storage *s, struct cause *out)
{
	char points[POINTS_BYTES];
	char rate[UNITS_BYTES];
	(void)compare_points(s, points);
	const double certainty = s->full * s->kind_certainty;
	const char *const sizes = isnan(s->bytes_share) ? "" : ", whatever their bytes";
	switch (s->kind) {
	case STORAGE_BYTES:
		return cause_is(out, "bandwidth", certainty,
			"storage is full: %s; the time goes with the bytes (%.2f +- %.2f)", points,
			s->bytes_share, s->bytes_error);
	case STORAGE_REQUESTS:
		return cause_is(out, "iops", certainty,
			"storage is full: %s; the time goes with the files, not their bytes (%.2f +- %.2f)%s",
			points, s->bytes_share, s->bytes_error,
			s->group == 1 ? ": the first ones came back one by one" : "");
	case STORAGE_SLOTS:
		if (s->group > 1)
			return cause_is(out, "concurrency", certainty,
				"storage is full: %s; it serves %u files at once, %s each%s: the first ones came back in groups of %u",
				points, s->group, units_format_duration(s->latency_ns, rate), sizes,
				s->group);
		return cause_is(out, "concurrency", certainty,
			"storage is full: %s; it serves %.1f files at once, %s each%s", points,
			s->slots, units_format_duration(s->latency_ns, rate), sizes);
	default:
		return full_of_something(s, points, out);
	}
}

static bool storage_is_shared(const struct storage *s, struct cause *out)
{
	char points[POINTS_BYTES];
	char all[UNITS_BYTES];
	return cause_is(out, "shared", CERTAIN_SHARED,
		"others use this storage: the first files waited for about %.0f of theirs, and then came in at %s files/s, which ours and theirs share: %s",
		s->others, units_format_count(s->shared_capacity, all), compare_points(s, points));
}

static bool told_by_points(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)stage;
	struct storage s;
	char points[POINTS_BYTES];
	storage_of_point(base, &s);
	if (s.known && s.others > 0)
		return storage_is_shared(&s, out);
	if (!s.known || fabs(s.full - 0.5) <= STORAGE_TOLD)
		return false;
	if (s.full > 0.5)
		return storage_is_full(&s, out);
	const bool less = s.compared > 0 && s.elasticity + NINETY * s.elasticity_error < 1;
	const bool nearly = less || (s.capacity_seen && s.capacity < NEARLY_FULL * s.rate);
	return cause_is(out, "latency", nearly ? fmin(1 - s.full, CERTAIN_NEARLY) : 1 - s.full,
		nearly           ? "throughput follows the files in flight, but not for long: %s"
		: s.compared > 0 ? "throughput follows the files in flight: %s"
				 : "files do not queue: %s",
		compare_points(&s, points));
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
	const double rate = base->point->bytes_read_per_s;
	char best[UNITS_BYTES];
	char now[UNITS_BYTES];
	char each[UNITS_BYTES];
	if (!(ceiling > 0) || (rate < DEVICE_BOUND * ceiling && rate >= LATENCY_BELOW * ceiling))
		return false;
	(void)units_format_rate(ceiling, best);
	(void)units_format_rate(rate, now);
	if (rate >= DEVICE_BOUND * ceiling)
		return cause_is(out, "bandwidth", CERTAIN_CEILING,
			"reads run at %s, %.0f %% of the %s that this storage gave at best", now,
			rate / ceiling * 100, best);
	return cause_is(out, "latency", CERTAIN_BELOW_CEILING,
		"reads run at %s, %.0f %% of the %s that this storage gave at best, at %s a file",
		now, rate / ceiling * 100, best,
		units_format_duration(histogram_mean(&stage->service), each));
}

static bool cannot_be_told(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const double each_ns = histogram_mean(&stage->service);
	const unsigned depth = base->facts->read_depth;
	char each[UNITS_BYTES];
	return cause_is(out, "unknown", CERTAIN_UNTOLD,
		"%.1f files in flight take %s each: storage that is slow and storage that is full look alike at one depth; a sweep of read.depth=%u,%u would tell",
		base->point->median * each_ns * 1e-9, units_format_duration(each_ns, each), depth,
		2 * depth);
}

/* Page-cache reads that sleep wait for a disk's queue after all: not for what was measured. */
static bool memory_that_sleeps(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	return from_memory(base) && !isnan(stage->cpu) && cause_unexplained(base, stage, out);
}

/* A limit that is used up is a fact.  Points of this run come before what the page cache and a ceiling say, of which some file systems count nothing and which is of
 * this node's storage at its best. */
cause_rule *const cause_rules_read[] = {cause_read_limit, cached_in_part, on_cpu, cause_stalls,
	told_by_points, memory_that_sleeps, told_by_ceiling, cannot_be_told, NULL};
