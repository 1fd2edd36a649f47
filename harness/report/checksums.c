/* Which repetitions must have the same samples in the same order, and whether they have. */
#include "harness/report/checksums.h"

#include "harness/analyze/comparison.h"
#include "harness/base/array.h"
#include "harness/base/buffer.h"
#include "harness/base/hash.h"
#include "harness/config/tables.h"
#include "harness/record/config_json.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- what decides on the samples -------------------------------------------------------------- */

/* Keys that say how fast the samples come, not what is in them.  What is not here counts: a new key then leaves two
 * repetitions uncompared at worst. */
static bool leaves_samples_alone(const char *name)
{
	static const char *const patterns[] = {"run.name", "run.verify", "run.affinity", "run.numa",
		"run.node", "dataset.generate", "read.engine", "read.threads", "read.depth",
		"read.direct", "read.cache", "read.huge_pages", "read.linked", "read.registered",
		"read.request", "decode.*", "batch.order", "prefetch.*", "upload.*", "step.*",
		"sync.*", "measure.*", "trace.*", "inject.*", "sweep.*", "checkpoint.*",
		"evaluate.*"};
	for (size_t i = 0; i < COUNT(patterns); i++)
		if (fnmatch(patterns[i], name, 0) == 0)
			return true;
	return false;
}

/* How many samples of an epoch are left out, and who gets which.  The sum needs neither: it has each sample's place, and
 * how many there are counts in any case. */
static bool deals_samples(enum key_id key)
{
	return key == KEY_BATCH_SIZE || key == KEY_BATCH_DROP_LAST || key == KEY_STEP_DEVICES ||
	       key == KEY_RUN_RANKS;
}

/* However a recipe's samples are packed, they are the same, in the same order unless that goes by shards. */
static bool packs_alike(enum key_id key)
{
	return key == KEY_DATASET_CONTAINER || key == KEY_DATASET_SHARD_SAMPLES ||
	       key == KEY_DATASET_PNG_LEVEL || key == KEY_DATASET_VOLUME_FORMAT;
}

static void checksums_add_number(struct buffer *out, const struct record *record, const char *name)
{
	const struct fact *fact = fact_find(&record->environment, "dataset", name);
	if (fact && fact->kind == FACT_NUMBER)
		buffer_format(out, "%s %.17g\n", name, fact->number);
}

static int64_t checksums_integer(
	const struct record *record, const struct measurement *m, enum key_id key)
{
	return point_value(&record->config, &record->grid, m->point, key)->integer;
}

/* Of a repetition's point, as text; a recipe makes the same files anywhere. */
static void add_content(
	struct buffer *out, const struct record *record, const struct measurement *m)
{
	const bool own = checksums_integer(record, m, KEY_DATASET_RECIPE) == DATASET_RECIPE_NONE;
	const bool by_shards = checksums_integer(record, m, KEY_READ_ORDER) == READ_ORDER_SHARDS;
	/* Of batches that a device finishes it is no sum over samples; by shards each rank leaves out the end of its part. */
	const bool as_dealt =
		checksums_integer(record, m, KEY_AUGMENT_DEVICE) == AUGMENT_DEVICE_GPU ||
		(by_shards && m->checksum_samples < m->dataset_samples);
	for (int k = 0; k < KEY_COUNT; k++) {
		const enum key_id key = (enum key_id)k;
		char name[CONFIG_NAME_BYTES];
		(void)config_key_name(key, name);
		if ((deals_samples(key) ? !as_dealt : leaves_samples_alone(name)) ||
			(key == KEY_DATASET_PATH && !own) ||
			(packs_alike(key) && !own && !by_shards))
			continue;
		char *value = config_value_text(
			key, point_value(&record->config, &record->grid, m->point, key));
		buffer_format(out, "%s=%s\n", name, value ? value : "?");
		out->failed = out->failed || !value;
		free(value);
	}
	checksums_add_number(out, record, "samples");
	checksums_add_number(out, record, "bytes");
	buffer_format(out, "in the sum %" PRIu64 "\n", m->checksum_samples);
}

/* A rank's share of a job's is held beside nothing. */
static bool checksums_whole(const struct record *record, const struct measurement *m)
{
	const int64_t ranks = checksums_integer(record, m, KEY_RUN_RANKS);
	return m->checksum_ranks >= (ranks > 1 ? ranks : 1);
}

int checksums_add(struct checksums *sums, const struct record *record, const struct measurement *m)
{
	if (!m->has_checksum || m->point >= record->grid.points || !checksums_whole(record, m))
		return 0;
	struct buffer text = {0};
	add_content(&text, record, m);
	struct checksum *list =
		text.failed ? NULL : realloc(sums->list, (sums->count + 1) * sizeof *list);
	if (list) {
		sums->list = list;
		list[sums->count++] = (struct checksum){hash_bytes(text.data, text.size, 0),
			m->checksum, m->point, m->repeat, m->checksum_ranks};
	}
	buffer_release(&text);
	return list ? 0 : -ENOMEM;
}

void checksums_release(struct checksums *sums)
{
	free(sums->list);
	*sums = (struct checksums){0};
}

/* --- whether they agree ----------------------------------------------------------------------- */

struct placed {
	struct checksum sum;
	char side; /* 'A', 'B' */
};

static int order_placed(const void *left, const void *right)
{
	const struct placed *a = left;
	const struct placed *b = right;
	if (a->sum.content != b->sum.content)
		return a->sum.content < b->sum.content ? -1 : 1;
	if (a->side != b->side)
		return a->side < b->side ? -1 : 1;
	if (a->sum.point != b->sum.point)
		return a->sum.point < b->sum.point ? -1 : 1;
	return (a->sum.repeat > b->sum.repeat) - (a->sum.repeat < b->sum.repeat);
}

static void say_differ(struct checksum_check *check, const struct placed *a, const struct placed *b,
	bool two_results)
{
	const char of_a[] = {two_results ? a->side : '\0', ' ', '\0'};
	const char of_b[] = {two_results ? b->side : '\0', ' ', '\0'};
	(void)snprintf(check->words, sizeof check->words,
		"checksums differ: %spoint %u repetition %u has %016" PRIx64
		", %spoint %u repetition %u %016" PRIx64
		", and the same seed, data and samples: some samples are wrong",
		of_a, a->sum.point, a->sum.repeat, a->sum.value, of_b, b->sum.point, b->sum.repeat,
		b->sum.value);
	check->differ = true;
}

/* The job's, where all are those of the same samples. */
static void say_sum(struct checksum_check *check, const struct placed *all, size_t count)
{
	const size_t used = strlen(check->words);
	uint32_t ranks = 1;
	for (size_t i = 0; i < count; i++)
		ranks = all[i].sum.ranks > ranks ? all[i].sum.ranks : ranks;
	if (ranks > 1 && all[0].sum.content == all[count - 1].sum.content)
		(void)snprintf(check->words + used, sizeof check->words - used,
			": the sum over all ranks is %016" PRIx64, all[0].sum.value);
}

static void checksums_judge(
	struct checksum_check *check, const struct placed *all, size_t count, bool two_results)
{
	for (size_t first = 0, last; first < count; first = last) {
		for (last = first + 1;
			last < count && all[last].sum.content == all[first].sum.content; last++)
			if (all[last].sum.value != all[first].sum.value && !check->differ)
				say_differ(check, &all[first], &all[last], two_results);
		if (last - first > 1 && (!two_results || all[first].side != all[last - 1].side))
			check->together += last - first;
	}
	if (check->differ || count == 0)
		return;
	if (check->together > 0)
		(void)snprintf(check->words, sizeof check->words,
			"checksums of %zu repetitions agree", check->together);
	else if (two_results)
		check->words[0] = '\0';
	else
		(void)snprintf(check->words, sizeof check->words,
			"%zu checksum%s, with no other to compare", count, count == 1 ? "" : "s");
	if (check->words[0])
		say_sum(check, all, count);
}

static void checksums_place(struct placed *all, const struct checksums *sums, char side)
{
	for (size_t i = 0; i < sums->count; i++)
		all[i] = (struct placed){sums->list[i], side};
}

int checksums_check(
	const struct checksums *a, const struct checksums *b, struct checksum_check *check)
{
	const size_t count = a->count + (b ? b->count : 0);
	struct placed *all = calloc(count + 1, sizeof *all);
	*check = (struct checksum_check){.checked = count};
	if (!all)
		return -ENOMEM;
	checksums_place(all, a, 'A');
	if (b)
		checksums_place(all + a->count, b, 'B');
	qsort(all, count, sizeof *all, order_placed);
	checksums_judge(check, all, count, b != NULL);
	free(all);
	return 0;
}
