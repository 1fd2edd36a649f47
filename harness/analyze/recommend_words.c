/* Advice in words: the chain of settings, or what no key turns. */
#include "harness/analyze/headroom.h"
#include "harness/analyze/recommend.h"
#include "harness/analyze/verdict_parts.h"

#include "harness/base/units.h"

#include <stdio.h>
#include <string.h>

/* Where no key gains by replay. */
static const struct {
	const char *stage, *resource, *words;
} without_keys[] = {
	{STAGE_READ_NAME, "bandwidth",
		"no key gains: fewer bytes a sample (smaller pictures, a denser format), a faster link or more disks, or data that fits in the page cache"},
	{STAGE_READ_NAME, "iops",
		"no key gains: larger files that hold several samples (shards), or storage that takes more requests per second"},
	{STAGE_READ_NAME, "concurrency",
		"no key gains: more servers or connections, a server with more threads, or larger files that hold several samples"},
	{STAGE_READ_NAME, "full",
		"no key gains: fewer bytes a sample if bandwidth limits, files that hold several samples if requests do; or faster storage"},
	{STAGE_READ_NAME, "shared",
		"find who else reads there, or use storage of its own; more files in flight (read.depth, read.threads) take a larger share, which the others lose"},
	{STAGE_READ_NAME, "latency",
		"no key gains (predicted): storage with a lower latency, or larger files that hold several samples"},
	{STAGE_READ_NAME, "stalls",
		"find what the storage does meanwhile (flushes, garbage collection, a neighbour, a failing disk or link); a deeper prefetch.depth bridges stalls as long as its batches last"},
	{STAGE_READ_NAME, "outage",
		"find why the storage did not answer (server, network, disk; see the kernel's log), and measure again"},
	{STAGE_READ_NAME, "cache",
		"no key gains: a cache that holds more of the data (more memory, fewer bytes a sample), or faster storage behind it"},
	{STAGE_READ_NAME, "cpu", "no key gains by replay: larger files, or more cores"},
	{STAGE_DECODE_NAME, "lock",
		"more workers gain nothing: do less under the lock, or split it"},
	{STAGE_DECODE_NAME, "wait",
		"more workers gain nothing by replay: make what the samples wait for faster"},
	{STAGE_DECODE_NAME, "imbalance",
		"no key gains by replay: find what slows that worker (its core, its data)"},
	{STAGE_DECODE_NAME, "external",
		"stop the other processes, or keep cores for this job (run.affinity, cgroup cpuset)"},
	{STAGE_UPLOAD_NAME, "copy",
		"no key gains by replay: pinned memory, fewer bytes a batch (augment.type = uint8), or a faster link"},
	{STAGE_STEP_NAME, "launch",
		"no key gains: larger batches (batch.size), fewer and larger kernels, or launching several at once (graphs)"},
	{STAGE_STEP_NAME, "external",
		"stop the other processes, or keep cores for this job (run.affinity, cgroup cpuset)"},
	{STAGE_STEP_NAME, "imbalance",
		"no key gains: find what slows that device (its clocks and temperature, another process on it, its place on the bus), or train without it"},
	{STAGE_SYNC_NAME, "exchange",
		"a larger batch.size makes fewer exchanges; a faster link between the devices (sync.bandwidth), or fewer of them (step.devices), are the rest"},
};

static void advise_chain(const struct diagnosis *diagnosis, double measured, char *out, size_t room)
{
	const struct recommendation *best = &diagnosis->recommendations[0];
	char settings[SETTINGS_MAX * (SETTING_BYTES + 2)] = "";
	char predicted[UNITS_BYTES];
	char low[UNITS_BYTES];
	char high[UNITS_BYTES];
	char now[UNITS_BYTES];
	size_t used = 0;
	(void)units_format_count(measured, now);
	for (size_t i = 0; i < best->setting_count; i++)
		used += (size_t)snprintf(settings + used, sizeof settings - used, "%s%s",
			i ? ", " : "", best->settings[i]);
	if (best->measured > 0)
		(void)snprintf(out, room, "set %s: measured %s samples/s, of %s here", settings,
			units_format_count(best->measured, predicted), now);
	else
		(void)snprintf(out, room,
			"set %s: predicted %s samples/s (%s-%s) of %s now; then %s binds (%s)",
			settings, units_format_count(best->predicted, predicted),
			units_format_count(best->interval.low, low),
			units_format_count(best->interval.high, high), now, best->next_stage,
			best->next_resource);
}

static bool is(const struct verdict *v, const char *stage, const char *resource)
{
	return strcmp(v->stage, stage) == 0 && strcmp(v->resource, resource) == 0;
}

/* More workers than cores take turns: fewer are as fast, and that is a key to turn, though it gains nothing. */
static void advise_decode(const struct point_facts *facts, char *out, size_t room)
{
	const unsigned fewer = advice_fewer_workers(facts);
	char cheaper[CHEAPER_BYTES];
	(void)advice_cheaper_decode(facts, cheaper);
	if (fewer > 0)
		(void)snprintf(out, room,
			"decode.workers=%u keeps all %u cores busy; %u workers only take turns on them. To go faster: %s, or more cores",
			fewer, facts->cores, facts->decode_workers, cheaper);
	else
		(void)snprintf(out, room,
			"more workers will not help (predicted); %s, or more cores, will", cheaper);
}

static void advise_step_computes(
	const struct point_summary *point, const struct verdict *verdict, char *out, size_t room)
{
	const struct headroom headroom = headroom_of_input(point, verdict);
	char words[HEADROOM_BYTES];
	(void)headroom_words(&headroom, words);
	words[strlen(words) - 1] = '\0'; /* as all advice, without a full stop */
	(void)snprintf(out, room, "%s (step.device, batch.size, step.threads)", words);
}

bool recommend_without_keys(const char *stage, const char *resource, char *out, size_t room)
{
	for (size_t i = 0; i < sizeof without_keys / sizeof without_keys[0]; i++)
		if (strcmp(without_keys[i].stage, stage) == 0 &&
			strcmp(without_keys[i].resource, resource) == 0) {
			(void)snprintf(out, room, "%s", without_keys[i].words);
			return true;
		}
	return false;
}

void recommend_advise(const struct diagnosis *diagnosis, const struct point_summary *point,
	const struct point_facts *facts, char *out, size_t room)
{
	const struct verdict *v = &diagnosis->verdict;
	if (stage_is(v->stage, STAGE_READ) &&
		advice_of_limits(point, facts, v->resource, out, room))
		return;
	if (diagnosis->recommendation_count > 0) {
		advise_chain(diagnosis, point->median, out, room);
		return;
	}
	if (is(v, STAGE_DECODE_NAME, "cpu") || is(v, STAGE_DECODE_NAME, "cores"))
		advise_decode(facts, out, room);
	if (is(v, STAGE_STEP_NAME, "compute"))
		advise_step_computes(point, v, out, room);
	(void)recommend_without_keys(v->stage, v->resource, out, room);
}
