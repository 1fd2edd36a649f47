/* The list of (stage, resource), in the order of the pipeline. */
#include "harness/analyze/limit_kind.h"

#include <stdio.h>
#include <string.h>

#define CPU "its CPU time"
#define CORES "too few cores"
#define QUOTA "the CPU quota of a cgroup"
#define STEAL "the host, which takes its CPU time"
#define EXTERNAL "other processes"
#define UNKNOWN "what is not known"
#define DEPTH "the depth of the queue"

const struct limit_kind limit_kinds[] = {
	{"read", "latency", "the latency of each request"},
	{"read", "cache", "what the cache does not hold"},
	{"read", "bandwidth", "storage that gives all its bytes per second"},
	{"read", "iops", "storage that gives all its requests per second"},
	{"read", "concurrency", "storage that serves so many files at once"},
	{"read", "full", "storage that is full"},
	{"read", "shared", "storage that others use, too"},
	{"read", "stalls", "storage that stalls now and then"},
	{"read", "outage", "storage that did not answer for a while"},
	{"read", "cpu", CPU},
	{"read", "depth", DEPTH},
	{"read", "cores", CORES},
	{"read", "quota", QUOTA},
	{"read", "steal", STEAL},
	{"read", "external", EXTERNAL},
	{"read", "unknown", UNKNOWN},
	{"decode", "cpu", CPU},
	{"decode", "lock", "waiting for a lock"},
	{"decode", "wait", "waiting without a core"},
	{"decode", "imbalance", "one worker that is slower"},
	{"decode", "cores", CORES},
	{"decode", "quota", QUOTA},
	{"decode", "steal", STEAL},
	{"decode", "external", EXTERNAL},
	{"decode", "unknown", UNKNOWN},
	{"prefetch", "depth", DEPTH},
	{"upload", "copy", "copying"},
	{"upload", "cores", CORES},
	{"upload", "quota", QUOTA},
	{"upload", "steal", STEAL},
	{"upload", "external", EXTERNAL},
	{"upload", "unknown", UNKNOWN},
	{"step", "compute", "its computing"},
	{"step", "launch", "the host's work for each step"},
	{"step", "copy", "copying its batch"},
	{"step", "throttled", "clocks that the device holds down"},
	{"step", "imbalance", "one device that is slower"},
	{"step", "cores", CORES},
	{"step", "quota", QUOTA},
	{"step", "steal", STEAL},
	{"step", "external", EXTERNAL},
	{"step", "unknown", UNKNOWN},
	{"sync", "exchange", "the exchange of gradients"},
	{"memory", "leak", "memory that grows"},
	{"none", "unknown", UNKNOWN},
};

const size_t limit_kind_count = sizeof limit_kinds / sizeof limit_kinds[0];

const struct limit_kind *limit_kind_find(const char *stage, const char *resource)
{
	for (size_t i = 0; i < limit_kind_count; i++)
		if (strcmp(limit_kinds[i].stage, stage) == 0 &&
			strcmp(limit_kinds[i].resource, resource) == 0)
			return &limit_kinds[i];
	return NULL;
}

const char *limit_kind_pair(const char *stage, const char *resource, char out[PAIR_BYTES])
{
	(void)snprintf(
		out, PAIR_BYTES, "%.*s/%.*s", NAME_BYTES - 1, stage, NAME_BYTES - 1, resource);
	return out;
}

const char *limit_kind_words(const char *stage, const char *resource)
{
	const struct limit_kind *kind = limit_kind_find(stage, resource);
	if (kind)
		return kind->words;
	for (size_t i = 0; i < limit_kind_count; i++)
		if (strcmp(limit_kinds[i].resource, resource) == 0)
			return limit_kinds[i].words;
	return UNKNOWN;
}
