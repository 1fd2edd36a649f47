/* Why reading is slow: a cache that holds a part of the data, the CPU, storage that stalls, storage
 * that is saturated (bandwidth, IOPS, files served at once), or the latency of each file with too
 * few in flight.
 *
 * Limits that the system states come first. If a control group limits reads, and the group read 90
 * to 110 % of that by the kernel's own count, the limit is the cause: bandwidth or iops, named with
 * the group, at a confidence of 0.97 from 97 % on, 0.85 below, and 0.7 if other depths show that
 * more in flight reads more. A memory limit (memory.max, memory.high, v1 memory.limit_in_bytes, of
 * the group or one above) that is below the data set and the resident peak together is named if
 * files are read again and the page cache does not serve all of them; with read/cache it is the
 * advice. FUSE, virtiofs and 9p count nothing in /proc/self/io, so there such a limit, beside a
 * bimodal read latency, stands in for the unknown share of the page cache.
 *
 * The mount, its options and the disk are evidence. A disk that is idle half the time under a
 * saturated store, without page-cache hits, shows that the limit is above it. A busy disk shows
 * nothing: NVMe drives and arrays serve many requests at once, and virtual disks call themselves
 * rotational.
 */
#include "harness/analyze/verdict.h"

#include "harness/analyze/storage_capacity.h"
#include "harness/base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Share of the limit that the group reads: used; used up; and more than a working limit lets
 * through. */
static const double LIMIT_USED = 0.90, LIMIT_USED_UP = 0.97, LIMIT_EXCEEDED = 1.10;
static const double CERTAIN_USED = 0.85, CERTAIN_USED_UP = 0.97;
/* If more files in flight read more, the limit is near but latency still counts. */
static const double CERTAIN_AGAINST = 0.7;
static const double CACHE_LEAST = 0.04, CACHE_MOST = 0.96; /* a share strictly between */
static const double IDLE_DISK = 0.50; /* busy less than this, while a store is full: not the disk */

/* --- a limit on reads ------------------------------------------------------------------------- */

/* The limit that is nearer to being used up, if there are two. */
struct used_limit {
	bool bytes; /* else requests */
	const char *group;
	double limit, used; /* a second */
};

static bool is_used(double used, double limit)
{
	return limit > 0 && used >= LIMIT_USED * limit && used <= LIMIT_EXCEEDED * limit;
}

static bool find_used_limit(const struct store_measurement *s, struct used_limit *out)
{
	const bool bytes = is_used(s->bytes_used, s->bytes_limit);
	const bool requests = is_used(s->requests_used, s->requests_limit);
	const bool nearer =
		!requests || s->bytes_used / s->bytes_limit >= s->requests_used / s->requests_limit;
	*out = bytes && nearer
		       ? (struct used_limit){true, s->bytes_group, s->bytes_limit, s->bytes_used}
		       : (struct used_limit){
				 false, s->requests_group, s->requests_limit, s->requests_used};
	return bytes || requests;
}

/* "20.0 MiB/s", "500 requests/s" */
static const char *limit_rate(bool bytes, double per_s, char out[UNITS_BYTES])
{
	char number[UNITS_BYTES];
	if (bytes)
		return units_format_rate(per_s, out);
	(void)snprintf(out, UNITS_BYTES, "%.12s requests/s", units_format_count(per_s, number));
	return out;
}

static bool cause_read_limit(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)stage;
	const struct store_measurement *store = &base->point->store;
	struct used_limit found;
	if (base->facts->reads_memory || !find_used_limit(store, &found))
		return false;
	struct storage points;
	model_storage(
		base->source, base->repeats, base->count, cause_let_through(base->facts), &points);
	const bool against = points.known && points.full < 0.5 - STORAGE_TOLD;
	char group[QUOTA_WORDS_BYTES];
	char limit[UNITS_BYTES];
	char used[UNITS_BYTES];
	const double certainty = against                                     ? CERTAIN_AGAINST
				 : found.used >= LIMIT_USED_UP * found.limit ? CERTAIN_USED_UP
									     : CERTAIN_USED;
	return cause_is(out, found.bytes ? "bandwidth" : "iops", certainty,
		"the read limit of cgroup %s on %s (%s) is used up: the group read %s, %.0f %% of "
		"the limit%s",
		cause_short_group(found.group, group), store->device,
		limit_rate(found.bytes, found.limit, limit),
		limit_rate(found.bytes, found.used, used), found.used / found.limit * 100,
		against ? ", although more files in flight read more" : "");
}

/* --- the mount, the disk ---------------------------------------------------------------------- */

enum { DISK_WORDS_BYTES = 112 };

/* " on vda (busy 12 % of the time, 1.05 ms per request)", and what that says about saturated
 * storage. */
static void describe_disk(
	const struct point_summary *point, const char *resource, char out[DISK_WORDS_BYTES])
{
	const struct store_measurement *s = &point->store;
	char each[UNITS_BYTES];
	int used = snprintf(out, DISK_WORDS_BYTES, " on %s", s->device);
	if (isnan(s->busy_share) || isnan(s->read_ns))
		return;
	used += snprintf(out + used, DISK_WORDS_BYTES - (size_t)used,
		" (busy %.0f %% of the time, %s per request)", s->busy_share * 100,
		units_format_duration(s->read_ns, each));
	if (limit_is_full_store(resource) && s->busy_share < IDLE_DISK &&
		!(point->page_cache_share > CACHE_LEAST))
		(void)snprintf(out + used, DISK_WORDS_BYTES - (size_t)used,
			"; the saturated part lies above the disk");
}

/* False where reads wait for a core: then the store explains nothing. */
static bool is_storage(const char *resource)
{
	return limit_is_full_store(resource) || strcmp(resource, "latency") == 0 ||
	       strcmp(resource, "stalls") == 0 || strcmp(resource, "outage") == 0 ||
	       strcmp(resource, "unknown") == 0 || strcmp(resource, "cache") == 0 ||
	       strcmp(resource, "shared") == 0 || strcmp(resource, "tail") == 0;
}

static void evidence_add_mount(
	const struct evidence_base *base, const char *resource, struct verdict *out)
{
	const struct point_summary *point = base->point;
	char disk[DISK_WORDS_BYTES] = "";
	char cached[64] = "";
	char through[80] = "";
	if (point->store.device[0])
		describe_disk(point, resource, disk);
	if (point->page_cache_share > CACHE_LEAST)
		(void)snprintf(cached, sizeof cached, "; the page cache served %.0f %%",
			point->page_cache_share * 100);
	const double most = cause_let_through(base->facts);
	if (most > 0 && strcmp(resource, "shared") == 0)
		(void)snprintf(through, sizeof through,
			"; it is assumed to pass %.0f reads at once (FUSE's default, not read)",
			most);
	if (base->facts->mount[0])
		evidence_add(
			out, "the data is on %s%s%s%s", base->facts->mount, disk, cached, through);
}

/* --- a memory limit --------------------------------------------------------------------------- */

/* A limit under which the data does not stay in the page cache from one epoch to the next. */
static bool cause_cache_limited(const struct point_summary *point, const struct point_facts *facts)
{
	const double limit = facts->cache_limit_bytes;
	const bool reads_again = point->epochs > 0 || point->resident_before > CACHE_LEAST;
	return limit > 0 && !facts->reads_memory && !facts->reads_direct && reads_again &&
	       !(point->page_cache_share >= CACHE_MOST) &&
	       point->data_bytes + (double)point->rss_peak_bytes > limit;
}

/* "memory.max of cgroup /job (2.00 GiB)" */
enum { CACHE_LIMIT_BYTES = 144 };
static const char *cache_limit_name(const struct point_facts *facts, char out[CACHE_LIMIT_BYTES])
{
	char group[QUOTA_WORDS_BYTES];
	char bytes[UNITS_BYTES];
	(void)snprintf(out, CACHE_LIMIT_BYTES, "%s of cgroup %s (%s)", facts->cache_limit_name,
		cause_short_group(facts->cache_limit_group, group),
		units_format_size(facts->cache_limit_bytes, bytes));
	return out;
}

static void add_cache_limit(const struct evidence_base *base, struct verdict *out)
{
	const struct point_summary *point = base->point;
	const double own = (double)point->rss_peak_bytes;
	const double left = fmax(base->facts->cache_limit_bytes - own, 0);
	char name[CACHE_LIMIT_BYTES];
	char data[UNITS_BYTES];
	char program[UNITS_BYTES];
	if (cause_cache_limited(point, base->facts))
		evidence_add(out,
			"%s is less than the data (%s) and the program (%s) need: the page cache "
			"keeps at most %.0f %% of the data",
			cache_limit_name(base->facts, name),
			units_format_size(point->data_bytes, data), units_format_size(own, program),
			left / point->data_bytes * 100);
}

void evidence_add_store(const struct evidence_base *base, const char *resource, struct verdict *out)
{
	if (base->facts->reads_memory || !is_storage(resource))
		return;
	evidence_add_mount(base, resource, out);
	evidence_add_open(base, out);
	evidence_add_network(base, resource, out);
	add_cache_limit(base, out);
}

/* --- what to do ------------------------------------------------------------------------------- */

bool advice_of_limits(const struct point_summary *point, const struct point_facts *facts,
	const char *resource, char *out, size_t room)
{
	struct used_limit found;
	char group[QUOTA_WORDS_BYTES];
	char bytes[UNITS_BYTES];
	char name[CACHE_LIMIT_BYTES];
	if ((strcmp(resource, "bandwidth") == 0 || strcmp(resource, "iops") == 0) &&
		find_used_limit(&point->store, &found)) {
		(void)snprintf(out, room,
			"raise the read limit of cgroup %s on %s (%s): no setting helps below it",
			cause_short_group(found.group, group), point->store.device,
			limit_rate(found.bytes, found.limit, bytes));
		return true;
	}
	if (strcmp(resource, "cache") != 0 || !cause_cache_limited(point, facts))
		return false;
	const double wanted = point->data_bytes + (double)point->rss_peak_bytes;
	(void)snprintf(out, room, "raise %s to %s or more, so that the page cache holds the data%s",
		cache_limit_name(facts, name), units_format_size(wanted, bytes),
		facts->machine_bytes > 0 && wanted > facts->machine_bytes
			? "; that is more than this node's memory, so reduce the bytes per sample "
			  "too"
			: "");
	return true;
}

/* --- the rules -------------------------------------------------------------------------------- */

static const double CPU_BOUND = 0.90;
static const double DEVICE_BOUND = 0.90; /* of the storage's ceiling */
static const double LATENCY_BELOW = 0.70;
static const double PAGE_CACHE_SERVED = 0.90;
static const double READS_ALL_THE_TIME = 0.90; /* busy: nothing below holds it back */
static const double NINETY = 1.645;
/* A capacity below so many times the rate is the next bottleneck, and close. */
static const double NEARLY_FULL = 1.5, CERTAIN_NEARLY = 0.7;
static const double CERTAIN_SHARED = 0.85;
static const double CERTAIN_UNTOLD = 0.5;
static const double SHARED_REQUESTS = 0.5; /* for a sample: fewer serve several */
static const double CERTAIN_CEILING = 0.8, CERTAIN_BELOW_CEILING = 0.65;
/* Once storage is known to be saturated, not knowing in what costs little confidence. */
static const double CERTAIN_UNCLEAR = 0.85;

static bool reads_from_memory(const struct evidence_base *base)
{
	return base->facts->reads_memory || base->point->page_cache_share >= PAGE_CACHE_SERVED;
}

/* Hits and misses: service times have two populations that file sizes do not explain, and the page
 * cache served a part of the reads. Where nobody counts what it served: a memory limit keeps the
 * page cache too small for the data. */
static bool cached_in_part(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const double share = base->point->page_cache_share;
	const bool between = share > CACHE_LEAST && share < CACHE_MOST;
	const bool limited = isnan(share) && cause_cache_limited(base->point, base->facts);
	if (!(between || limited) || base->facts->reads_memory || base->facts->reads_direct ||
		stage->cpu >= CPU_BOUND)
		return false;
	const struct trace_set set = cause_traces(base, stage->name);
	const struct trace_modes modes = trace_modes_of(&set);
	if (!modes.two)
		return false;
	char fast[UNITS_BYTES];
	char slow[UNITS_BYTES];
	if (limited)
		return cause_is(out, "cache", 0.9,
			"read latency is bimodal: %.0f %% of the reads take about %s (page-cache "
			"hits), the others %s (misses); under its memory limit the page cache "
			"cannot hold the data",
			modes.fast_share * 100, units_format_duration(modes.fast_ns, fast),
			units_format_duration(modes.slow_ns, slow));
	return cause_is(out, "cache", 0.95,
		"read latency is bimodal: %.0f %% of the reads take about %s (page-cache hits), "
		"the others %s (misses); the page cache served %.0f %%",
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

static bool read_on_cpu(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const bool tells = !isnan(stage->cpu) && !isnan(stage->run_queue);
	if (!tells && reads_from_memory(base))
		return cause_is(out, "cpu", 0.7,
			"reads are served from memory (%.0f %% page cache)",
			base->facts->reads_memory ? 100 : base->point->page_cache_share * 100);
	if (!tells || (!reads_from_memory(base) && stage->cpu + stage->run_queue < CPU_BOUND))
		return false;
	return cause_no_core(base, stage, out) || cause_on_cpu(base, stage, out);
}

/* --- the storage ------------------------------------------------------------------------------ */

double cause_let_through(const struct point_facts *facts)
{
	static const double MAX_BACKGROUND = 12;
	const bool fuse = strncmp(facts->mount, "fuse", strlen("fuse")) == 0;
	return fuse && !facts->reads_direct ? MAX_BACKGROUND : 0;
}

enum { POINTS_BYTES = 160 };

const char *cause_read_unit(const struct evidence_base *base)
{
	return base->facts->reads_large ? "request" : "file";
}

static const char *storage_unit(const struct storage *s)
{
	return s->reads_large ? "request" : "file";
}

/* "250 files/s with 4 in flight and 251 with 8" */
static const char *compare_points(const struct storage *s, char out[POINTS_BYTES])
{
	const char *const each = storage_unit(s);
	char here[UNITS_BYTES];
	char there[UNITS_BYTES];
	const double rate = s->alone > 0 ? s->alone : s->rate;
	(void)units_format_count(rate, here);
	(void)units_format_count(rate * s->ratio, there);
	if (s->compared > 0)
		(void)snprintf(out, POINTS_BYTES,
			"%s%s %ss/s with %.1f in flight, %s with %.1f (elasticity %.2f +/- %.2f)",
			s->alone > 0 ? "alone, " : "", here, each,
			s->alone > 0 ? s->alone_in_flight : s->in_flight, there, s->other_in_flight,
			s->elasticity, s->elasticity_error);
	else if (s->queues)
		(void)snprintf(out, POINTS_BYTES,
			"%s %ss/s with %.1f in flight, which queue behind each other (%ss that "
			"are sent later do not return later)",
			here, each, s->in_flight, each);
	else if (!isnan(s->ramp_ratio))
		(void)snprintf(out, POINTS_BYTES,
			"a %s takes %.1f times as long with %.1f in flight as the first %ss did",
			each, s->ramp_ratio, s->in_flight, each);
	else
		(void)snprintf(out, POINTS_BYTES, "%s %ss/s with %.1f in flight", here, each,
			s->in_flight);
	return out;
}

/* Bytes and requests cannot be told apart where all files have one size, as large requests nearly have; where
 * service times are too uneven, nothing can. */
static bool full_of_something(const struct evidence_base *base, const struct storage *s,
	const char *points, struct cause *out)
{
	/* No rank reads one file at a time while the others read, too. */
	if (s->sizes_alike && base->count > 0 && base->repeats[0]->ranks_count > 0)
		return cause_is(out, "full", s->full * CERTAIN_UNCLEAR,
			"storage is saturated: %s; all %ss have one size, and several ranks read, so that "
			"bytes, requests and %ss at once cannot be told apart",
			points, storage_unit(s), storage_unit(s));
	if (s->sizes_alike || s->reads_large)
		return cause_is(out, "bandwidth", s->full * CERTAIN_UNCLEAR,
			"storage is saturated: %s; all %ss have %s size, so that bandwidth (bytes) "
			"and IOPS (requests) cannot be told apart",
			points, storage_unit(s), s->sizes_alike ? "one" : "about one");
	return cause_is(out, "full", s->full * CERTAIN_UNCLEAR,
		"storage is saturated: %s; the service times do not tell whether in bandwidth "
		"(bytes) or IOPS (requests)",
		points);
}

static bool storage_is_full(
	const struct evidence_base *base, const struct storage *s, struct cause *out)
{
	char points[POINTS_BYTES];
	char rate[UNITS_BYTES];
	(void)compare_points(s, points);
	const double certainty = s->full * s->kind_certainty;
	const char *const each = storage_unit(s);
	const char *const sizes = isnan(s->bytes_share) ? "" : " regardless of its size";
	switch (s->kind) {
	case STORAGE_BYTES:
		return cause_is(out, "bandwidth", certainty,
			"storage bandwidth is saturated: %s; time is proportional to bytes (%.2f "
			"+/- %.2f)",
			points, s->bytes_share, s->bytes_error);
	case STORAGE_REQUESTS:
		return cause_is(out, "iops", certainty,
			"storage IOPS are saturated: %s; time is proportional to the number of "
			"%ss, not to their bytes (%.2f +/- %.2f)%s",
			points, each, s->bytes_share, s->bytes_error,
			s->group == 1 ? "; the first of them returned one by one" : "");
	case STORAGE_SLOTS:
		if (s->group > 1)
			return cause_is(out, "concurrency", certainty,
				"storage is saturated: %s; it serves %u %ss at once and takes %s "
				"for each%s; the first of them returned in groups of %u",
				points, s->group, each, units_format_duration(s->latency_ns, rate),
				sizes, s->group);
		return cause_is(out, "concurrency", certainty,
			"storage is saturated: %s; it serves %.1f %ss at once and takes %s for "
			"each%s",
			points, s->slots, each, units_format_duration(s->latency_ns, rate), sizes);
	default:
		return full_of_something(base, s, points, out);
	}
}

static bool storage_is_shared(const struct storage *s, struct cause *out)
{
	char points[POINTS_BYTES];
	char all[UNITS_BYTES];
	return cause_is(out, "shared", CERTAIN_SHARED,
		"other jobs use this storage: our first %ss waited behind about %.0f of theirs, "
		"then arrived at %s a second, which we share with them: %s",
		storage_unit(s), s->others, units_format_count(s->shared_capacity, all),
		compare_points(s, points));
}

/* Older versions kept of samples that are cut out of large requests (read.request) their waits for one, which
 * follow depth and bytes in another way than a store's own times do. */
static bool hidden_by_large_requests(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)stage;
	const double requests = base->point->storage.requests_per_sample;
	if (base->facts->reads_large || !(requests > 0 && requests < SHARED_REQUESTS))
		return false;
	return cause_is(out, "unknown", CERTAIN_UNTOLD,
		"samples are cut out of large requests, whose own times the version that measured "
		"this did not keep: measure again");
}

static bool told_by_points(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)stage;
	struct storage s;
	char points[POINTS_BYTES];
	model_storage(base->source, base->repeats, base->count, cause_let_through(base->facts), &s);
	if (s.known && s.others > 0)
		return storage_is_shared(&s, out);
	if (!s.known || fabs(s.full - 0.5) <= STORAGE_TOLD)
		return false;
	/* Of a network file system one depth names nothing: another one tells which part is full. */
	if (s.compared == 0 && cause_is_network(base))
		return false;
	if (s.full > 0.5) {
		(void)storage_is_full(base, &s, out);
		/* Of what is behind a network: which part of it is full is not told (docs/ACCURACY.md). */
		if (cause_is_network(base))
			out->certainty = fmin(out->certainty, CERTAIN_UNTOLD);
		return true;
	}
	const bool less = s.compared > 0 && s.elasticity + NINETY * s.elasticity_error < 1;
	const bool nearly = less || (s.capacity_seen && s.capacity < NEARLY_FULL * s.rate);
	const double certainty = cause_network_latency(base, 1 - s.full);
	return cause_is(out, "latency", nearly ? fmin(certainty, CERTAIN_NEARLY) : certainty,
		nearly ? "throughput rises with the %ss in flight, but is close to saturation: %s"
		: s.compared > 0 ? "throughput rises with the %ss in flight: %s"
				 : "%ss do not queue at the storage: %s",
		storage_unit(&s), compare_points(&s, points));
}

/* The best rate that a probe of this node's storage found; 0: unknown. */
static double ceiling_of(const struct evidence_base *base)
{
	const struct ceilings *ceilings = base->source ? base->source->ceilings : NULL;
	const struct measurement *m = base->count > 0 ? base->repeats[0] : NULL;
	const double probed = ceilings && m ? ceilings_read_bytes_per_s(
						      ceilings, measurement_read_bytes(m), 0, true)
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
			"reads run at %s, %.0f %% of this storage's best rate, %s", now,
			rate / ceiling * 100, best);
	if (cause_is_network(base)) /* of one depth: no latency is told */
		return false;
	return cause_is(out, "latency", CERTAIN_BELOW_CEILING,
		"reads run at %s, %.0f %% of this storage's best rate, %s, and take %s per %s", now,
		rate / ceiling * 100, best,
		units_format_duration(histogram_mean(&stage->service), each),
		cause_read_unit(base));
}

static bool cannot_be_told(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const double each_ns = histogram_mean(&stage->service);
	const struct flight flight = point_facts_flight(base->facts);
	char each[UNITS_BYTES];
	if (!(each_ns > 0)) /* a run in progress has no service times */
		return cause_is(out, "unknown", CERTAIN_UNTOLD,
			"high latency and saturation look alike at a single queue depth; a sweep of "
			"%s=%u,%u would tell them apart",
			flight.key, flight.value, 2 * flight.value);
	return cause_is(out, "unknown", CERTAIN_UNTOLD,
		"%.1f %ss in flight take %s each: high latency and saturation look alike at a "
		"single queue depth; a sweep of %s=%u,%u would tell them apart",
		base->point->median * base->point->reads_per_sample * each_ns * 1e-9,
		cause_read_unit(base), units_format_duration(each_ns, each), flight.key,
		flight.value, 2 * flight.value);
}

/* Reads that the page cache served but that sleep must wait for the disk's queue after all; what
 * was measured does not explain them. */
static bool memory_that_sleeps(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	return reads_from_memory(base) && !isnan(stage->cpu) && cause_unexplained(base, stage, out);
}

/* Of reads that make the step starve for a few slow files: threads that wait for nothing else while
 * they are blocked show mostly their CPU time, which is not the cause. A limit that is used up delays
 * some requests more than others. */
struct cause cause_of_tail(const struct evidence_base *base, const struct stage_summary *read)
{
	struct cause cause = {.resource = "unknown"};
	(void)(cause_read_limit(base, read, &cause) || cause_tail_no_stall(base, read, &cause) ||
		cause_stalls(base, read, &cause) || cause_tail(base, read, &cause));
	return cause;
}

/* In this order because a limit that is used up is a fact, and because points of this run count
 * more than the page cache (which some file systems do not count) and a ceiling (which is this
 * node's storage at its best). */
cause_rule *const cause_rules_read[] = {cause_read_limit, cached_in_part, read_on_cpu,
	cause_tail_no_stall, cause_stalls, hidden_by_large_requests, cause_network, cause_tail,
	told_by_points, memory_that_sleeps, told_by_ceiling, cannot_be_told, NULL};
