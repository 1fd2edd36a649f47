/* The words for what verdicts name. */
#include "harness/analyze/limit_kinds.h"

#include "harness/base/array.h"

#include <stdio.h>
#include <string.h>

#define CPU "its CPU time"
#define CORES "too few cores"
#define AFFINITY "an affinity mask"
#define THREADS "threads of the workers, far more than cores"
#define QUOTA "a cgroup's CPU quota"
#define STEAL "the host, which takes CPU time away (steal)"
#define EXTERNAL "other processes"
#define UNKNOWN "an unknown cause"
#define DEPTH "the queue depth"
#define HANDOVER "handing batches from the workers to the step"

const struct limit_kind limit_kinds[] = {
	{STAGE_READ_NAME, "latency", "the latency of each request"},
	{STAGE_READ_NAME, "cache", "cache misses"},
	{STAGE_READ_NAME, "bandwidth", "saturated storage bandwidth"},
	{STAGE_READ_NAME, "iops", "saturated storage IOPS"},
	{STAGE_READ_NAME, "concurrency", "the number of files that storage serves at once"},
	{STAGE_READ_NAME, "full", "saturated storage"},
	{STAGE_READ_NAME, "network", "a saturated network"},
	{STAGE_READ_NAME, "server", "a saturated file server"},
	{STAGE_READ_NAME, "metadata", "calls to the file server that read no data"},
	{STAGE_READ_NAME, "shared", "storage that is shared with others"},
	{STAGE_READ_NAME, "stalls", "storage stalls"},
	{STAGE_READ_NAME, "outage", "a storage outage"},
	{STAGE_READ_NAME, "tail",
		"tail latency: a few files take many times as long as the others"},
	{STAGE_READ_NAME, "cpu", CPU},
	{STAGE_READ_NAME, "depth", DEPTH},
	{STAGE_READ_NAME, "cores", CORES},
	{STAGE_READ_NAME, "affinity", AFFINITY},
	{STAGE_READ_NAME, "threads", THREADS},
	{STAGE_READ_NAME, "quota", QUOTA},
	{STAGE_READ_NAME, "steal", STEAL},
	{STAGE_READ_NAME, "external", EXTERNAL},
	{STAGE_READ_NAME, "unknown", UNKNOWN},
	{STAGE_DECODE_NAME, "cpu", CPU},
	{STAGE_DECODE_NAME, "lock", "lock contention"},
	{STAGE_DECODE_NAME, "wait", "waiting off the CPU"},
	{STAGE_DECODE_NAME, "imbalance", "one straggler worker"},
	{STAGE_DECODE_NAME, "hand-over", HANDOVER},
	{STAGE_DECODE_NAME, "startup", "workers that start anew with each epoch"},
	{STAGE_DECODE_NAME, "cores", CORES},
	{STAGE_DECODE_NAME, "affinity", AFFINITY},
	{STAGE_DECODE_NAME, "threads", THREADS},
	{STAGE_DECODE_NAME, "quota", QUOTA},
	{STAGE_DECODE_NAME, "steal", STEAL},
	{STAGE_DECODE_NAME, "external", EXTERNAL},
	{STAGE_DECODE_NAME, "unknown", UNKNOWN},
	{STAGE_PREFETCH_NAME, "depth", DEPTH},
	{STAGE_UPLOAD_NAME, "copy", "copying"},
	{STAGE_UPLOAD_NAME, "cores", CORES},
	{STAGE_UPLOAD_NAME, "affinity", AFFINITY},
	{STAGE_UPLOAD_NAME, "threads", THREADS},
	{STAGE_UPLOAD_NAME, "quota", QUOTA},
	{STAGE_UPLOAD_NAME, "steal", STEAL},
	{STAGE_UPLOAD_NAME, "external", EXTERNAL},
	{STAGE_UPLOAD_NAME, "unknown", UNKNOWN},
	{STAGE_STEP_NAME, "compute", "its compute time"},
	{STAGE_STEP_NAME, "launch", "launch overhead on the host"},
	{STAGE_STEP_NAME, "hand-over", HANDOVER},
	{STAGE_STEP_NAME, "copy", "copying its batch"},
	{STAGE_STEP_NAME, "throttled", "throttled device clocks"},
	{STAGE_STEP_NAME, "imbalance", "one straggler device"},
	{STAGE_STEP_NAME, "cores", CORES},
	{STAGE_STEP_NAME, "affinity", AFFINITY},
	{STAGE_STEP_NAME, "threads", THREADS},
	{STAGE_STEP_NAME, "quota", QUOTA},
	{STAGE_STEP_NAME, "steal", STEAL},
	{STAGE_STEP_NAME, "external", EXTERNAL},
	{STAGE_STEP_NAME, "unknown", UNKNOWN},
	{STAGE_SYNC_NAME, "exchange", "the gradient exchange"},
	{STAGE_SYNC_NAME, "imbalance", "ranks that lag"},
	{STAGE_CHECKPOINT_NAME, "storage", "writing checkpoints"},
	{STAGE_CHECKPOINT_NAME, "copy", "copying the state for checkpoints"},
	{STAGE_EVALUATE_NAME, "input", "the data loader of evaluations"},
	{STAGE_EVALUATE_NAME, "step", "the steps of evaluations"},
	{STAGE_MEMORY_NAME, "leak", "a memory leak"},
	{"none", "unknown", UNKNOWN},
};

const size_t limit_kind_count = COUNT(limit_kinds);

const struct limit_kind *limit_kind_find(const char *stage, const char *resource)
{
	for (size_t i = 0; i < limit_kind_count; i++)
		if (strcmp(limit_kinds[i].stage, stage) == 0 &&
			strcmp(limit_kinds[i].resource, resource) == 0)
			return &limit_kinds[i];
	return NULL;
}

static const char LIMIT_OR[] = " or ";

bool limit_resource_next(const char **rest, char out[NAME_BYTES])
{
	const char *end = strstr(*rest, LIMIT_OR);
	const size_t length = end ? (size_t)(end - *rest) : strlen(*rest);
	if (length == 0)
		return false;
	(void)snprintf(out, NAME_BYTES, "%.*s",
		(int)(length < NAME_BYTES ? length : NAME_BYTES - 1), *rest);
	*rest += length + (end ? sizeof LIMIT_OR - 1 : 0);
	return true;
}

bool limit_is_several(const char *names)
{
	return strstr(names, LIMIT_OR) != NULL;
}

bool limit_stage_is_of(const char *stages, const char *stage)
{
	char one[NAME_BYTES];
	while (limit_resource_next(&stages, one))
		if (strcmp(one, stage) == 0)
			return true;
	return false;
}

bool limit_is_full_store(const char *resource)
{
	return strcmp(resource, "bandwidth") == 0 || strcmp(resource, "iops") == 0 ||
	       strcmp(resource, "concurrency") == 0 || strcmp(resource, "full") == 0 ||
	       strcmp(resource, "server") == 0 || strcmp(resource, "network") == 0 ||
	       strcmp(resource, "metadata") == 0;
}

const char *limit_kind_pair(const char *stage, const char *resource, char out[PAIR_BYTES])
{
	(void)snprintf(
		out, PAIR_BYTES, "%.*s/%.*s", NAME_BYTES - 1, stage, NAME_BYTES - 1, resource);
	return out;
}

/* The words for a resource of a stage, or of any stage; "an unknown cause" for a resource that is
 * not listed. */
static const char *limit_kind_words(const char *stage, const char *resource)
{
	const struct limit_kind *kind = limit_kind_find(stage, resource);
	if (kind)
		return kind->words;
	for (size_t i = 0; i < limit_kind_count; i++)
		if (strcmp(limit_kinds[i].resource, resource) == 0)
			return limit_kinds[i].words;
	return UNKNOWN;
}

const char *limit_kind_bound(const char *stage, const char *resource, char out[BOUND_BYTES])
{
	static const struct {
		const char *resource, *bound;
	} adjectives[] = {
		{"latency", "latency-bound"},
		{"bandwidth", "bandwidth-bound"},
		{"iops", "IOPS-bound"},
		{"network", "network-bound"},
		{"metadata", "metadata-bound"},
		{"cpu", "CPU-bound"},
		{"compute", "compute-bound"},
	};
	for (size_t i = 0; i < COUNT(adjectives); i++)
		if (strcmp(adjectives[i].resource, resource) == 0) {
			(void)snprintf(out, BOUND_BYTES, "%s", adjectives[i].bound);
			return out;
		}
	(void)snprintf(out, BOUND_BYTES, "limited by %s", limit_kind_words(stage, resource));
	return out;
}

void limit_kinds_text(const char *stage, const char *resources, struct buffer *out)
{
	char one[NAME_BYTES];
	char bound[BOUND_BYTES];
	buffer_text(out, stage);
	for (const char *between = ", "; limit_resource_next(&resources, one); between = " or ")
		buffer_format(out, "%s%s", between, limit_kind_bound(stage, one, bound));
}

const struct job_entry job_entries[] = {
	{"unknown", NULL, "job", "unknown"}, /* the first: what no other is for */
	{"still", NULL, "job", "still"},
	{"loader", "cpu", "loader", "cpu"},
	{"loader", "cores", "loader", "cores"},
	{NULL, "gil", "loader", "gil"},
	{NULL, "lock", "loader", "lock"},
	{NULL, "wait", "loader", "wait"},
	{"loader", "imbalance", "loader", "imbalance"},
	{"loader", "restarts", "loader", "restarts"},
	{NULL, "quota", "job", "quota"},
	{NULL, "external", "job", "external"},
	{NULL, "affinity", "job", "affinity"},
	{NULL, "threads", "job", "threads"},
	{NULL, "memory", "job", "memory"},
	{"loader and step", "cores", "job", "cores"},
	{"loader and step", NULL, "loader", "balanced"},
	{"read", NULL, "read", "observed"},
	{"process", "cpu", "process", "cpu"},
	{"process", "cores", "process", "cores"},
	{"trainer", "cpu", "trainer", "cpu"},
	{"trainer", "hand-over", "trainer", "hand-over"},
	{STAGE_STEP_NAME, "write", STAGE_STEP_NAME, "write"},
	{"step", NULL, "step", "observed"},
	{"sync", NULL, "sync", "observed"},
};
const size_t job_entry_count = COUNT(job_entries);
_Static_assert(COUNT(job_entries) <= JOB_ENTRIES_MAX, "room for all");
