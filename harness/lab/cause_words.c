/* Stages, resources, and what else people call them. */
#include "harness/lab/cause_words.h"

#include "harness/analyze/limit_kinds.h"
#include "harness/base/array.h"
#include "harness/base/text.h"
#include "harness/record/measurement.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Words in a row, with blanks around each. */
static const struct cause_synonyms {
	const char *words;
	const char *name;
} cause_stages[] =
	{
		{" storage io i/o disk file files filesystem nfs reader readers reading network ",
			STAGE_READ_NAME},
		{" worker workers augment augmentation preprocess preprocessing decoding transform "
		 "transforms dataloader ",
			STAGE_DECODE_NAME},
		{" queue buffer prefetching prefetch-queue ", STAGE_PREFETCH_NAME},
		{" copy h2d pcie transfer uploading host-to-device ", STAGE_UPLOAD_NAME},
		{" gpu device accelerator model training compute forward backward ",
			STAGE_STEP_NAME},
		{" gradients allreduce all-reduce communication ", STAGE_SYNC_NAME},
		{" checkpoints checkpointing save saving ", STAGE_CHECKPOINT_NAME},
		{" evaluation validation eval ", STAGE_EVALUATE_NAME},
		{" ram rss heap ", STAGE_MEMORY_NAME},
},
  cause_resources[] = {
	  {" rtt round-trip roundtrip delay latency-bound request-latency ", "latency"},
	  {" bw bandwidth-bound mb/s throughput ", "bandwidth"},
	  {" processor cpu-bound cpu-time computation ", "cpu"},
	  {" gil lock-contention mutex interpreter interpreter-lock serialization ", "lock"},
	  {" waiting sleep off-cpu service remote ", "wait"},
	  {" tail tails straggler stragglers slow-worker skew slow-device ", "imbalance"},
	  {" oversubscription oversubscribed too-few-cores contention core ", "cores"},
	  {" nested-threads intra-op omp_num_threads library-threads ", "threads"},
	  {" mask pinning taskset cpu-bind srun ", "affinity"},
	  {" throttling cgroup limit cpu-quota cpu-limit ", "quota"},
	  {" queue-depth in-flight concurrency-of-reads prefetch-depth parallelism ", "depth"},
	  {" gpu device-bound flops kernel kernels ", "compute"},
	  {" launch-bound launches host python-overhead kernel-launch ", "launch"},
	  {" handover pickle pickling unpickling deserialization ipc ", "hand-over"},
	  {" h2d pcie transfer memcpy pageable ", "copy"},
	  {" disk write writes writing fsync store save-time ", "storage"},
	  {" leaking growth memory-leak ", "leak"},
	  {" small-files metadata-calls opens ", "metadata"},
	  {" cache-misses cold-cache page-cache ", "cache"},
	  {" noisy-neighbour noisy-neighbor other-jobs neighbour ", "external"},
};

static bool cause_has(const char *words, const char *word)
{
	const size_t length = strlen(word);
	for (const char *at = strcasestr(words, word); at; at = strcasestr(at + 1, word))
		if (at > words && at[-1] == ' ' && at[length] == ' ')
			return true;
	return false;
}

const char *cause_word(bool stage, const char *word)
{
	if (!*word || strchr(word, ' '))
		return NULL;
	for (size_t i = 0; i < limit_kind_count; i++) {
		const char *name = stage ? limit_kinds[i].stage : limit_kinds[i].resource;
		if (strcasecmp(name, word) == 0)
			return name;
	}
	const struct cause_synonyms *of = stage ? cause_stages : cause_resources;
	const size_t count = stage ? COUNT(cause_stages) : COUNT(cause_resources);
	for (size_t i = 0; i < count; i++)
		if (cause_has(of[i].words, word))
			return of[i].name;
	return NULL;
}

static int cause_refuse(bool stage, const char *word, struct error *err)
{
	const char *names[LIMIT_KINDS_MAX];
	size_t count = 0;
	char all[ERROR_TEXT_BYTES] = "";
	for (size_t i = 0; i < limit_kind_count && count < LIMIT_KINDS_MAX; i++) {
		const char *name = stage ? limit_kinds[i].stage : limit_kinds[i].resource;
		size_t same = 0;
		while (same < count && strcmp(names[same], name) != 0)
			same++;
		if (same < count)
			continue;
		const size_t used = strlen(all);
		(void)snprintf(all + used, sizeof all - used, "%s%s", count ? ", " : "", name);
		names[count++] = name;
	}
	const char *nearest = suggest_nearest(word, names, count);
	return error_set(err, -EINVAL, "'%.40s' is no %s that mlbench knows; %s%s%s", word,
		stage ? "stage" : "resource",
		nearest ? "did you mean '" : "there are: ", nearest ? nearest : all,
		nearest ? "'?" : "");
}

/* The next of "a/b | c/d" in its halves; false: no more. */
static bool cause_next(const char **at, char stage[CAUSE_BYTES], char resource[CAUSE_BYTES])
{
	*at += strspn(*at, " |");
	const size_t length = strcspn(*at, "|");
	char pair[CAUSE_BYTES];
	if (length == 0)
		return false;
	(void)snprintf(pair, sizeof pair, "%.*s", (int)length, *at);
	*at += length;
	pair[strcspn(pair, " ")] = '\0';
	const size_t half = strcspn(pair, "/");
	(void)snprintf(stage, CAUSE_BYTES, "%.*s", (int)half, pair);
	(void)snprintf(resource, CAUSE_BYTES, "%s", pair[half] ? pair + half + 1 : "");
	return true;
}

int cause_check(const char *choices, struct error *err)
{
	char stage[CAUSE_BYTES];
	char resource[CAUSE_BYTES];
	size_t count = 0;
	for (const char *at = choices; cause_next(&at, stage, resource); count++)
		if (!limit_kind_find(stage, resource))
			return error_set(err, -EINVAL,
				"no verdict is '%s/%s'; 'mlbench explain' lists them", stage,
				resource);
	return count > 0 ? 0 : error_set(err, -EINVAL, "'cause' names no STAGE/RESOURCE");
}

/* What a stage calls a resource of which no verdict speaks there: its cores compute, and a link or a store lacks bandwidth. */
static const char *cause_same_as(const char *resource, const char *stage)
{
	if (strcmp(resource, "compute") == 0)
		return "cpu";
	if (strcmp(resource, "cpu") == 0)
		return "compute";
	if (strcmp(resource, "bandwidth") == 0 && strcmp(stage, STAGE_UPLOAD_NAME) == 0)
		return "copy";
	if (strcmp(resource, "bandwidth") == 0 && strcmp(stage, STAGE_CHECKPOINT_NAME) == 0)
		return "storage";
	return resource;
}

int cause_judge(
	const char *choices, const char *named, struct cause_right *right, struct error *err)
{
	char word[CAUSE_BYTES];
	/* "i/o" is a stage with a slash of its own. */
	const char *slash = strrchr(named, '/');
	*right = (struct cause_right){0};
	if (!slash || strlen(named) >= sizeof word)
		return error_set(err, -EINVAL,
			"a cause is STAGE/RESOURCE, as 'decode/cpu', not '%.48s'", named);
	(void)snprintf(word, sizeof word, "%.*s", (int)(slash - named), named);
	const char *stage = cause_word(true, word);
	const char *resource = cause_word(false, slash + 1);
	if (!stage)
		return cause_refuse(true, word, err);
	if (!resource)
		return cause_refuse(false, slash + 1, err);
	/* A leak is one of memory, whichever stage allocates. */
	if (strcmp(resource, "leak") == 0)
		stage = STAGE_MEMORY_NAME;
	if (!limit_kind_find(stage, resource))
		resource = cause_same_as(resource, stage);
	char a[CAUSE_BYTES];
	char b[CAUSE_BYTES];
	bool both = false;
	for (const char *at = choices; cause_next(&at, a, b);) {
		right->stage = right->stage || strcmp(a, stage) == 0;
		both = both || (strcmp(a, stage) == 0 && strcmp(b, resource) == 0);
	}
	right->resource = both;
	return 0;
}

int cause_word_judge(
	const char *choices, bool stage, const char *word, bool *right, struct error *err)
{
	char a[CAUSE_BYTES];
	char b[CAUSE_BYTES];
	const char *name = cause_word(stage, word);
	*right = false;
	if (!name)
		return cause_refuse(stage, word, err);
	for (const char *at = choices; cause_next(&at, a, b);)
		*right = *right || strcmp(stage ? a : b, name) == 0 ||
			 (!stage && strcmp(b, cause_same_as(name, a)) == 0);
	return 0;
}

void cause_first(const char *choices, bool stage, char out[CAUSE_BYTES])
{
	char a[CAUSE_BYTES];
	char b[CAUSE_BYTES];
	out[0] = '\0';
	if (cause_next(&choices, a, b))
		(void)snprintf(out, CAUSE_BYTES, "%s", stage ? a : b);
}
