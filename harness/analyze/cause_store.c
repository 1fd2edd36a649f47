/* What the system itself knows of the store: a control group's limit on reads that is used up, the mount and the disk, and a
 * memory limit that leaves the page cache too small for the data.  Facts, so they come before what rates over depths suggest;
 * a disk that is busy all the time is none: it may serve several requests at once. */
#include "harness/analyze/storage_capacity.h"
#include "harness/analyze/verdict_parts.h"

#include "harness/base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Of a limit, that the group reads: used; used up; and more than a limit that holds lets through. */
static const double LIMIT_USED = 0.90, LIMIT_USED_UP = 0.97, LIMIT_EXCEEDED = 1.10;
static const double CERTAIN_USED = 0.85, CERTAIN_USED_UP = 0.97;
/* More files in flight read more: then the limit is near, and latency still counts. */
static const double CERTAIN_AGAINST = 0.7;
static const double CACHE_LEAST = 0.04, CACHE_MOST = 0.96; /* a share strictly between */
static const double IDLE_DISK = 0.50; /* busy less than this, while a store is full: not the disk */

/* --- a limit on reads ------------------------------------------------------------------------------------- */

/* A limit that is nearer to used up than the other, if there are two. */
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

bool cause_read_limit(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)stage;
	const struct store_measurement *store = &base->point->store;
	struct used_limit found;
	if (base->facts->reads_memory || !find_used_limit(store, &found))
		return false;
	struct storage points;
	storage_of_point(base, &points);
	const bool against = points.known && points.full < 0.5 - STORAGE_TOLD;
	char group[QUOTA_WORDS_BYTES];
	char limit[UNITS_BYTES];
	char used[UNITS_BYTES];
	const double certainty = against                                     ? CERTAIN_AGAINST
				 : found.used >= LIMIT_USED_UP * found.limit ? CERTAIN_USED_UP
									     : CERTAIN_USED;
	return cause_is(out, found.bytes ? "bandwidth" : "iops", certainty,
		"the read limit of cgroup %s on %s (%s) is used up: the group read %s, %.0f %% of it%s",
		cause_short_group(found.group, group), store->device,
		limit_rate(found.bytes, found.limit, limit),
		limit_rate(found.bytes, found.used, used), found.used / found.limit * 100,
		against ? ", though more files in flight read more" : "");
}

/* --- the mount, the disk ---------------------------------------------------------------------------------- */

enum { DISK_WORDS_BYTES = 112 };

static bool is_full(const char *resource)
{
	return strcmp(resource, "bandwidth") == 0 || strcmp(resource, "iops") == 0 ||
	       strcmp(resource, "concurrency") == 0 || strcmp(resource, "full") == 0;
}

/* " on vda: busy 12 % of the time, 1.05 ms a request", and what that says of a full store. */
static void describe_disk(
	const struct point_summary *point, const char *resource, char out[DISK_WORDS_BYTES])
{
	const struct store_measurement *s = &point->store;
	char each[UNITS_BYTES];
	int used = snprintf(out, DISK_WORDS_BYTES, " on %s", s->device);
	if (isnan(s->busy_share) || isnan(s->read_ns))
		return;
	used += snprintf(out + used, DISK_WORDS_BYTES - (size_t)used,
		": busy %.0f %% of the time, %s a request", s->busy_share * 100,
		units_format_duration(s->read_ns, each));
	if (is_full(resource) && s->busy_share < IDLE_DISK &&
		!(point->page_cache_share > CACHE_LEAST))
		(void)snprintf(out + used, DISK_WORDS_BYTES - (size_t)used,
			", so what is full lies above the disk");
}

/* Nothing of the store where reads wait for a core. */
static bool is_storage(const char *resource)
{
	return is_full(resource) || strcmp(resource, "latency") == 0 ||
	       strcmp(resource, "stalls") == 0 || strcmp(resource, "outage") == 0 ||
	       strcmp(resource, "unknown") == 0 || strcmp(resource, "cache") == 0 ||
	       strcmp(resource, "shared") == 0;
}

static void add_mount(const struct evidence_base *base, const char *resource, struct verdict *out)
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
			"; %.0f reads at once are taken to pass it (FUSE's default, not read)",
			most);
	if (base->facts->mount[0])
		evidence_add(out, "the data lies on %s%s%s%s", base->facts->mount, disk, cached,
			through);
}

/* --- a memory limit ---------------------------------------------------------------------------------------- */

/* A limit under which the data does not stay in the page cache from one epoch to the next. */
bool cause_cache_limited(const struct point_summary *point, const struct point_facts *facts)
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
			"%s is less than the data (%s) and the program (%s): the page cache keeps at most %.0f %% of the data",
			cache_limit_name(base->facts, name),
			units_format_size(point->data_bytes, data), units_format_size(own, program),
			left / point->data_bytes * 100);
}

void evidence_add_store(const struct evidence_base *base, const char *resource, struct verdict *out)
{
	if (base->facts->reads_memory || !is_storage(resource))
		return;
	add_mount(base, resource, out);
	add_cache_limit(base, out);
}

/* --- what to do -------------------------------------------------------------------------------------------- */

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
			"raise the read limit of cgroup %s on %s (%s): no key gains under it",
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
			? ": more than this node's memory, so fewer bytes a sample, too"
			: "");
	return true;
}
