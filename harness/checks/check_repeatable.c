/* repeatable: does this node compute, keep and store the same bits every time?  The same work is done on every core, on each
 * alone and on all at once, again and again; what most results are equal to (or a golden checksum names) is right, and what
 * differs is counted for its core.  Memory holds patterns, and storage blocks that say which they are. */
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/rng.h"
#include "harness/base/units.h"
#include "harness/checks/check.h"
#include "harness/checks/checked_file.h"
#include "harness/checks/core_list.h"
#include "harness/checks/corruption.h"
#include "harness/checks/fixed_work.h"
#include "harness/checks/memory_patterns.h"
#include "harness/checks/votes.h"
#include "harness/measure/node_probes.h"
#include "workloads/backend/cuda.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	AGAIN = 8,           /* times that what was wrong is computed once more */
	AGAIN_ITEMS_MAX = 4, /* of a core */
	EVENTS_PER_PLACE = 4,
	IN_TURN_EVERY = 4, /* passes of all cores for one of each alone */
	STORED_FILES = 2,  /* so that one's block can turn up in the other */
	GENERATIONS = 2,
};

static const char *const repeatable_figures[FIXED_KINDS] = {
	[FIXED_PICTURE] = "repeatable.decode", [FIXED_PRODUCT] = "repeatable.gemm"};
static const enum corruption_target repeatable_targets[FIXED_KINDS] = {
	[FIXED_PICTURE] = CORRUPT_DECODE, [FIXED_PRODUCT] = CORRUPT_GEMM};

struct repeatable_core {
	uint64_t results[FIXED_KINDS];
	bool refused; /* the kernel lets no thread of this process run there */
	int code;     /* the first failure there */
	struct error why;
};

struct repeatable {
	const struct check_context *context;
	struct check_sink *sink;
	struct corruptions corruptions;
	uint64_t begin_ns;
	unsigned passes;

	/* Of the part that computes. */
	struct core_list cores;
	struct fixed_work *work;
	struct votes *votes;
	struct repeatable_core *each; /* (cores.count); owned */
	uint64_t end_ns;              /* of this part; 0: none */
	size_t alone;                 /* index of the core that works alone */
};

static double repeatable_now_s(const struct repeatable *repeatable)
{
	return (double)(clock_now_ns() - repeatable->begin_ns) / (double)NS_PER_S;
}

static bool repeatable_stopped(const struct repeatable *repeatable)
{
	const atomic_bool *const stop = repeatable->context->stop;
	return stop && atomic_load_explicit(stop, memory_order_relaxed);
}

static bool repeatable_over(const struct repeatable *repeatable)
{
	return repeatable_stopped(repeatable) ||
	       (repeatable->end_ns && clock_now_ns() >= repeatable->end_ns);
}

/* When a part ends that may take this share of what is left. */
static uint64_t repeatable_part_end(const struct repeatable *repeatable, double share)
{
	const uint64_t deadline = repeatable->context->deadline_ns;
	const uint64_t now = clock_now_ns();
	if (!deadline)
		return 0;
	return deadline > now ? now + (uint64_t)(share * (double)(deadline - now)) : now;
}

/* --- computing: on cores ---------------------------------------------------------------------- */

/* All items once, on the core of this index. */
static int repeatable_do_all(
	struct repeatable *repeatable, struct fixed_hand *hand, size_t at, struct error *err)
{
	struct repeatable_core *const core = &repeatable->each[at];
	for (size_t i = 0; i < fixed_work_count(repeatable->work); i++) {
		const struct fixed_item *const item = fixed_work_item(repeatable->work, i);
		void *result;
		if (repeatable_over(repeatable))
			return 0;
		const int code = fixed_hand_do(hand, i, &result, err);
		if (code)
			return code == -EINTR ? 0 : error_prefix(err, code, "%s", item->name);
		corruptions_flip(&repeatable->corruptions, repeatable_targets[item->kind],
			repeatable->cores.cores[at], ++core->results[item->kind], result,
			item->bytes);
		votes_add(repeatable->votes, i, at, result, item->bytes);
	}
	return 0;
}

static void repeatable_work_on(struct repeatable *repeatable, size_t at)
{
	struct repeatable_core *const core = &repeatable->each[at];
	struct fixed_hand *hand = NULL;
	core->refused = !core_pin(repeatable->cores.cores[at]);
	if (core->refused || core->code)
		return;
	core->code = fixed_hand_open(&hand, repeatable->work, &core->why);
	if (!core->code)
		core->code = repeatable_do_all(repeatable, hand, at, &core->why);
	fixed_hand_close(hand);
}

static void repeatable_at_once(void *context, unsigned index)
{
	repeatable_work_on(context, index);
}

static void repeatable_alone(void *context, unsigned index)
{
	struct repeatable *const repeatable = context;
	(void)index;
	repeatable_work_on(repeatable, repeatable->alone);
}

static int repeatable_in_turn(struct repeatable *repeatable, struct error *err)
{
	int code = 0;
	for (size_t i = 0; i < repeatable->cores.count && !code && !repeatable_over(repeatable);
		i++) {
		sink_activity(
			repeatable->sink, "computing on core %u alone", repeatable->cores.cores[i]);
		repeatable->alone = i;
		code = probe_crew(1, false, repeatable_alone, repeatable, err);
	}
	return code;
}

static int repeatable_compute(struct repeatable *repeatable, struct error *err)
{
	int code = 0;
	for (unsigned pass = 0; pass < repeatable->passes && !code && !repeatable_over(repeatable);
		pass++) {
		sink_activity(repeatable->sink, "computing on all cores, pass %u of %u", pass + 1,
			repeatable->passes);
		code = probe_crew((unsigned)repeatable->cores.count, false, repeatable_at_once,
			repeatable, err);
		if (!code && pass % IN_TURN_EVERY == 0 && !repeatable_over(repeatable))
			code = repeatable_in_turn(repeatable, err);
	}
	return code;
}

/* --- computing: what was wrong ---------------------------------------------------------------- */

static int repeatable_right(const struct repeatable *repeatable, size_t item)
{
	const bool golden = check_integer(repeatable->context->check, PLAN_GOLDEN) != 0;
	return votes_right(
		repeatable->votes, item, golden ? fixed_work_golden(repeatable->work, item) : 0);
}

/* One item that was wrong on one core, once more there. */
struct repeatable_again {
	struct repeatable *repeatable;
	size_t core, item;
	const void *right;
	unsigned done, wrong;
};

static void repeatable_again_work(void *context, unsigned index)
{
	struct repeatable_again *const again = context;
	struct repeatable *const repeatable = again->repeatable;
	const struct fixed_item *const item = fixed_work_item(repeatable->work, again->item);
	struct repeatable_core *const core = &repeatable->each[again->core];
	const unsigned number = repeatable->cores.cores[again->core];
	struct fixed_hand *hand = NULL;
	struct error why;
	void *result;
	(void)index;
	if (!core_pin(number) || fixed_hand_open(&hand, repeatable->work, &why))
		return;
	while (again->done < AGAIN && !repeatable_stopped(repeatable) &&
		!fixed_hand_do(hand, again->item, &result, &why)) {
		corruptions_flip(&repeatable->corruptions, repeatable_targets[item->kind], number,
			++core->results[item->kind], result, item->bytes);
		again->wrong += memcmp(result, again->right, item->bytes) != 0;
		again->done++;
	}
	fixed_hand_close(hand);
}

static void repeatable_tell_wrong(
	struct repeatable *repeatable, size_t at, size_t item, int right, int variant)
{
	const struct fixed_item *const of = fixed_work_item(repeatable->work, item);
	const void *const wrong = variant < 0 ? NULL : votes_copy(repeatable->votes, item, variant);
	char where[FIXED_WHERE_BYTES] = "where they differ was not kept";
	char place[CORE_PLACE_BYTES];
	struct repeatable_again again = {.repeatable = repeatable,
		.core = at,
		.item = item,
		.right = votes_copy(repeatable->votes, item, right)};
	struct error ignored;
	if (wrong && again.right)
		(void)fixed_work_where(of, wrong, again.right, where);
	if (again.right)
		(void)probe_crew(1, false, repeatable_again_work, &again, &ignored);
	sink_event(repeatable->sink, repeatable_figures[of->kind],
		core_place(repeatable->cores.cores[at], place), repeatable_now_s(repeatable),
		"%s: %" PRIu64 " of %" PRIu64 " results on this core are wrong: %s; computed again "
		"there: %u of %u wrong",
		of->name, votes_wrong(repeatable->votes, item, at, right),
		votes_count(repeatable->votes, item, at), where, again.wrong, again.done);
}

static void repeatable_tell_undecided(struct repeatable *repeatable, size_t at, size_t item)
{
	const struct fixed_item *const of = fixed_work_item(repeatable->work, item);
	char place[CORE_PLACE_BYTES];
	sink_event(repeatable->sink, repeatable_figures[of->kind],
		core_place(repeatable->cores.cores[at], place), repeatable_now_s(repeatable),
		"%s: this node gives different results equally often, and nothing tells which are right: all "
		"%" PRIu64 " on this core count as wrong",
		of->name, votes_count(repeatable->votes, item, at));
}

/* Wrong results of a kind on a core; the first few with what is wrong. */
static uint64_t repeatable_wrong_on(struct repeatable *repeatable, enum fixed_kind kind, size_t at)
{
	uint64_t sum = 0;
	unsigned told = 0;
	for (size_t i = 0; i < fixed_work_count(repeatable->work); i++) {
		if (fixed_work_item(repeatable->work, i)->kind != kind)
			continue;
		const int right = repeatable_right(repeatable, i);
		const uint64_t wrong = votes_wrong(repeatable->votes, i, at, right);
		sum += wrong;
		if (wrong == 0 || told++ >= EVENTS_PER_PLACE)
			continue;
		if (right < 0) {
			repeatable_tell_undecided(repeatable, at, i);
			continue;
		}
		repeatable_tell_wrong(repeatable, at, i, right,
			votes_next_wrong(repeatable->votes, i, at, right, -1));
	}
	return sum;
}

static uint64_t repeatable_results(
	const struct repeatable *repeatable, enum fixed_kind kind, size_t at)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < fixed_work_count(repeatable->work); i++)
		if (fixed_work_item(repeatable->work, i)->kind == kind)
			sum += votes_count(repeatable->votes, i, at);
	return sum;
}

/* The first failure of a core; 0: none. */
static int repeatable_hand_core(
	struct repeatable *repeatable, enum fixed_kind kind, size_t at, struct error *err)
{
	const struct repeatable_core *const core = &repeatable->each[at];
	const char *const figure = repeatable_figures[kind];
	char place[CORE_PLACE_BYTES];
	(void)core_place(repeatable->cores.cores[at], place);
	if (!check_wants(repeatable->context, figure, place))
		return 0;
	if (core->code) {
		sink_missing(repeatable->sink, figure, place, "%s", core->why.text);
		return error_set(err, core->code, "on %s: %s", place, core->why.text);
	}
	if (core->refused)
		sink_missing(repeatable->sink, figure, place,
			"the kernel lets this process have no thread there");
	else if (repeatable_results(repeatable, kind, at) == 0)
		sink_missing(repeatable->sink, figure, place, "no time was left for it");
	else
		sink_number(repeatable->sink, figure, place,
			(double)repeatable_wrong_on(repeatable, kind, at));
	return 0;
}

/* "matrix products: 9 different ones, 36 on each core at least; code path: ..." */
static void repeatable_note_kind(struct repeatable *repeatable, enum fixed_kind kind)
{
	uint64_t least = UINT64_MAX;
	uint64_t all = 0;
	size_t items = 0;
	char total[UNITS_BYTES];
	char each[UNITS_BYTES];
	for (size_t i = 0; i < fixed_work_count(repeatable->work); i++)
		items += fixed_work_item(repeatable->work, i)->kind == kind;
	for (size_t at = 0; at < repeatable->cores.count; at++) {
		const uint64_t results = repeatable_results(repeatable, kind, at);
		least = results < least ? results : least;
		all += results;
	}
	if (items == 0)
		return;
	sink_note(repeatable->sink,
		"%s: %zu different ones, %s results on %zu cores, at least %s on each; code path: %s",
		kind == FIXED_PICTURE ? "pictures" : "matrix products", items,
		units_format_count((double)all, total), repeatable->cores.count,
		units_format_count((double)least, each), fixed_work_path(repeatable->work, kind));
}

/* --- computing: golden checksums -------------------------------------------------------------- */

/* What most results are, where there is any; false: nothing was computed. */
static bool repeatable_agreed(const struct repeatable *repeatable, size_t item, uint64_t *hash)
{
	const int right =
		votes_right(repeatable->votes, item, fixed_work_golden(repeatable->work, item));
	uint64_t results = 0;
	for (size_t at = 0; at < repeatable->cores.count; at++)
		results += votes_count(repeatable->votes, item, at);
	*hash = right < 0 ? 0 : votes_hash(repeatable->votes, item, right);
	return results > 0;
}

static void repeatable_hand_golden(struct repeatable *repeatable, enum fixed_kind kind)
{
	static const char *const places[FIXED_KINDS] = {"pictures", "products"};
	const char *const place = places[kind];
	uint64_t known = 0;
	uint64_t done = 0;
	uint64_t wrong = 0;
	uint64_t hash;
	if (!check_wants(repeatable->context, "repeatable.golden", place))
		return;
	for (size_t i = 0; i < fixed_work_count(repeatable->work); i++) {
		const struct fixed_item *const item = fixed_work_item(repeatable->work, i);
		const uint64_t golden = fixed_work_golden(repeatable->work, i);
		known += item->kind == kind && golden != 0;
		if (item->kind != kind || !golden || !repeatable_agreed(repeatable, i, &hash))
			continue;
		done++;
		if (hash == golden)
			continue;
		wrong++;
		sink_event(repeatable->sink, "repeatable.golden", place,
			repeatable_now_s(repeatable),
			"%s: %016" PRIx64 " instead of the golden checksum %016" PRIx64, item->name,
			hash, golden);
	}
	if (done > 0)
		sink_number(repeatable->sink, "repeatable.golden", place, (double)wrong);
	else if (known > 0)
		sink_missing(repeatable->sink, "repeatable.golden", place,
			"no time was left to compute with");
	else
		sink_lack(repeatable->sink, "repeatable.golden", place,
			"no golden checksum for this code path: %s",
			fixed_work_path(repeatable->work, kind));
	if (known == 0)
		sink_note(repeatable->sink,
			"no golden checksum for this code path (%s): its results are compared with each other",
			fixed_work_path(repeatable->work, kind));
}

/* --- computing -------------------------------------------------------------------------------- */

static bool repeatable_wants_golden(const struct repeatable *repeatable)
{
	return check_integer(repeatable->context->check, PLAN_GOLDEN) != 0 &&
	       check_wants(repeatable->context, "repeatable.golden", NULL);
}

static int repeatable_add_pictures(struct repeatable *repeatable, struct error *err)
{
	if (!check_wants(repeatable->context, "repeatable.decode", NULL) &&
		!repeatable_wants_golden(repeatable))
		return 0;
	sink_activity(repeatable->sink, "making pictures");
	return fixed_work_add_pictures(repeatable->work, err);
}

static int repeatable_add_products(struct repeatable *repeatable, struct error *err)
{
	if (!check_wants(repeatable->context, "repeatable.gemm", NULL) &&
		!repeatable_wants_golden(repeatable))
		return 0;
	const int code = fixed_work_add_products(repeatable->work, err);
	if (code != -ENOTSUP)
		return code;
	sink_lack(repeatable->sink, "repeatable.gemm", "", "%s", err->text);
	return 0;
}

static int repeatable_hand_computed(struct repeatable *repeatable, struct error *err)
{
	int first = 0;
	for (int kind = 0; kind < FIXED_KINDS; kind++) {
		size_t items = 0;
		for (size_t i = 0; i < fixed_work_count(repeatable->work); i++)
			items +=
				fixed_work_item(repeatable->work, i)->kind == (enum fixed_kind)kind;
		for (size_t at = 0; items > 0 && at < repeatable->cores.count; at++) {
			struct error why;
			const int code =
				repeatable_hand_core(repeatable, (enum fixed_kind)kind, at, &why);
			if (code && !first)
				first = error_set(err, code, "%s", why.text);
		}
		if (items > 0)
			repeatable_note_kind(repeatable, (enum fixed_kind)kind);
		if (items > 0 && repeatable_wants_golden(repeatable))
			repeatable_hand_golden(repeatable, (enum fixed_kind)kind);
	}
	return first;
}

static int repeatable_cores(struct repeatable *repeatable, struct error *err)
{
	repeatable->end_ns = repeatable_part_end(repeatable, 0.4);
	int code = core_list_open(&repeatable->cores, err);
	if (!code)
		code = fixed_work_open(&repeatable->work, repeatable->context->stop, err);
	if (!code)
		code = repeatable_add_pictures(repeatable, err);
	if (!code)
		code = repeatable_add_products(repeatable, err);
	if (code || fixed_work_count(repeatable->work) == 0)
		return code;
	repeatable->each = calloc(repeatable->cores.count, sizeof *repeatable->each);
	if (!repeatable->each)
		return error_set(err, -ENOMEM, "out of memory");
	code = votes_open(&repeatable->votes, fixed_work_count(repeatable->work),
		repeatable->cores.count, err);
	if (!code)
		code = repeatable_compute(repeatable, err);
	return code ? code : repeatable_hand_computed(repeatable, err);
}

/* --- memory ----------------------------------------------------------------------------------- */

/* A pass over memory takes longer than one over the cores, and finds what it finds by its size. */
static unsigned repeatable_memory_passes(const struct check_context *context)
{
	static const unsigned by_tier[] = {[TIER_QUICK] = 1, [TIER_STANDARD] = 3, [TIER_BURN] = 20};
	const int64_t asked = check_integer(context->check, PLAN_PASSES);
	return asked > 0 ? (unsigned)asked
			 : by_tier[context->tier <= TIER_BURN ? context->tier : TIER_BURN];
}

/* By the tier, and at most half of what is free. */
static uint64_t repeatable_bytes(const struct check_context *context, double is_free)
{
	static const double by_tier[] = {[TIER_QUICK] = 256 << 20,
		[TIER_STANDARD] = (double)((uint64_t)4 << 30),
		[TIER_BURN] = (double)((uint64_t)1 << 40)};
	const int64_t asked = check_integer(context->check, PLAN_SIZE);
	const double most = is_free / 2;
	if (asked > 0)
		return (uint64_t)asked;
	const double bytes = by_tier[context->tier <= TIER_BURN ? context->tier : TIER_BURN];
	return (uint64_t)(bytes < most || is_free <= 0 ? bytes : most);
}

static void repeatable_memory_activity(void *context, unsigned node, uint64_t bytes)
{
	const struct repeatable *const repeatable = context;
	sink_activity(repeatable->sink, "testing %" PRIu64 " MiB of memory on NUMA node %u",
		bytes >> 20, node);
}

static void repeatable_tell_memory(
	struct repeatable *repeatable, const char *place, const struct pattern_finding *finding)
{
	const uint64_t flipped = finding->found ^ finding->expected;
	char physical[48] = "";
	char bits[32];
	if (finding->physical)
		(void)snprintf(physical, sizeof physical, " (physical address 0x%" PRIx64 ")",
			finding->physical);
	if (__builtin_popcountll(flipped) == 1)
		(void)snprintf(bits, sizeof bits, "bit %d", __builtin_ctzll(flipped));
	else
		(void)snprintf(bits, sizeof bits, "%d bits", __builtin_popcountll(flipped));
	sink_event(repeatable->sink, "repeatable.memory", place, repeatable_now_s(repeatable),
		"pattern '%s', read by core %u: 0x%016" PRIx64 " instead of 0x%016" PRIx64
		" (%s) at offset 0x%" PRIx64 "%s; read again past the cache: %u of %d wrong",
		finding->pattern, finding->core, finding->found, finding->expected, bits,
		finding->offset, physical, finding->again, PATTERN_AGAIN);
}

static void repeatable_hand_node(struct repeatable *repeatable, const struct pattern_node *node)
{
	char place[CORE_PLACE_BYTES];
	char size[UNITS_BYTES];
	char words[UNITS_BYTES];
	(void)snprintf(place, sizeof place, "NUMA node %u", node->node);
	if (!check_wants(repeatable->context, "repeatable.memory", place))
		return;
	/* Half of the patterns prove nothing, but what they find counts. */
	if (node->why[0] || (node->passes == 0 && node->wrong == 0)) {
		sink_missing(repeatable->sink, "repeatable.memory", place, "%s",
			node->why[0] ? node->why
				     : "the time was over before all patterns were read back");
		return;
	}
	for (size_t i = 0; i < node->finding_count; i++)
		repeatable_tell_memory(repeatable, place, &node->findings[i]);
	sink_number(repeatable->sink, "repeatable.memory", place, (double)node->wrong);
	sink_note(repeatable->sink,
		"memory of %s: %s, %u whole passes of 4 patterns, %s words read back by %zu cores of it",
		place, units_format_size((double)node->bytes, size), node->passes,
		units_format_count((double)node->words, words), node->cores);
}

static int repeatable_memory(struct repeatable *repeatable, struct error *err)
{
	const struct pattern_plan plan = {
		.bytes = repeatable_bytes(repeatable->context, probe_free_memory()),
		.passes = repeatable_memory_passes(repeatable->context),
		.deadline_ns = repeatable_part_end(repeatable, 0.5),
		.stop = repeatable->context->stop,
		.corruptions = &repeatable->corruptions,
		.activity = repeatable_memory_activity,
		.context = repeatable};
	struct pattern_node *nodes = NULL;
	size_t count = 0;
	if (!check_wants(repeatable->context, "repeatable.memory", NULL))
		return 0;
	nodes = calloc(PATTERN_NODES_MAX, sizeof *nodes);
	int code = nodes ? memory_patterns_run(&plan, nodes, &count, err)
			 : error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < count; i++)
		repeatable_hand_node(repeatable, &nodes[i]);
	free(nodes);
	if (code == -ENOTSUP) {
		sink_missing(repeatable->sink, "repeatable.memory", "", "%s", err->text);
		code = 0;
	}
	return code;
}

/* --- devices ---------------------------------------------------------------------------------- */

enum { DEVICE_EDGE = 512, DEVICE_TIMES = 8, DEVICE_PRECISIONS = STEP_PRECISION_FP8 + 1 };

/* Products on devices: an item is a precision on devices of one name, a place a device. */
struct repeatable_devices {
	struct repeatable *repeatable;
	const struct cuda_found *found;
	struct votes *votes;
	unsigned device;
	uint64_t results[CUDA_DEVICES_MAX];
	size_t element_bytes[DEVICE_PRECISIONS];
	void *copy; /* of a result, which is the plug-in's */
};

/* Devices of one name give the same bits: the first of them stands for all. */
static size_t repeatable_device_item(
	const struct repeatable_devices *devices, unsigned device, enum step_precision precision)
{
	const struct cuda_device_facts *const facts = devices->found->node.devices;
	unsigned like = 0;
	while (strcmp(facts[like].name, facts[device].name) != 0)
		like++;
	return (size_t)like * DEVICE_PRECISIONS + (size_t)precision;
}

static void repeatable_take(
	void *context, enum step_precision precision, const void *result, size_t element_bytes)
{
	struct repeatable_devices *const devices = context;
	const size_t bytes = (size_t)DEVICE_EDGE * DEVICE_EDGE * element_bytes;
	devices->element_bytes[precision] = element_bytes;
	memcpy(devices->copy, result, bytes);
	corruptions_flip(&devices->repeatable->corruptions, CORRUPT_DEVICE, devices->device,
		++devices->results[devices->device], devices->copy, bytes);
	votes_add(devices->votes, repeatable_device_item(devices, devices->device, precision),
		devices->device, devices->copy, bytes);
}

static void repeatable_tell_device(struct repeatable_devices *devices, unsigned device,
	enum step_precision precision, int right, const char *place)
{
	struct repeatable *const repeatable = devices->repeatable;
	const size_t at = repeatable_device_item(devices, device, precision);
	const size_t element = devices->element_bytes[precision];
	const struct fixed_item item = {.bytes = (size_t)DEVICE_EDGE * DEVICE_EDGE * element,
		.element_bytes = element,
		.rows = DEVICE_EDGE,
		.columns = DEVICE_EDGE};
	const struct config_value value = {.integer = precision};
	char name[16] = "";
	char where[FIXED_WHERE_BYTES] = "its devices disagree, and nothing tells which are right";
	const int variant = votes_next_wrong(devices->votes, at, device, right, -1);
	const void *const wrong = variant < 0 ? NULL : votes_copy(devices->votes, at, variant);
	if (right >= 0 && wrong && votes_copy(devices->votes, at, right))
		(void)fixed_work_where(&item, wrong, votes_copy(devices->votes, at, right), where);
	(void)config_format_value(KEY_STEP_PRECISION, &value, name, sizeof name);
	sink_event(repeatable->sink, "repeatable.device", place, repeatable_now_s(repeatable),
		"product of %d x %d x %d in %s: %" PRIu64 " of %" PRIu64 " results are wrong: %s",
		DEVICE_EDGE, DEVICE_EDGE, DEVICE_EDGE, name,
		votes_wrong(devices->votes, at, device, right),
		votes_count(devices->votes, at, device), where);
}

static void repeatable_hand_device(struct repeatable_devices *devices, unsigned device)
{
	struct repeatable *const repeatable = devices->repeatable;
	char place[CORE_PLACE_BYTES];
	uint64_t wrong = 0;
	(void)snprintf(place, sizeof place, "device %u", device);
	for (int precision = 0; precision < DEVICE_PRECISIONS; precision++) {
		const size_t at =
			repeatable_device_item(devices, device, (enum step_precision)precision);
		const int right = votes_right(devices->votes, at, 0);
		const uint64_t of = votes_wrong(devices->votes, at, device, right);
		wrong += of;
		if (of > 0)
			repeatable_tell_device(
				devices, device, (enum step_precision)precision, right, place);
	}
	if (devices->results[device] > 0)
		sink_number(repeatable->sink, "repeatable.device", place, (double)wrong);
	else
		sink_missing(
			repeatable->sink, "repeatable.device", place, "no time was left for it");
}

/* In turn, so that the host's memory and its links serve one at a time. */
static int repeatable_do_devices(struct repeatable_devices *devices, struct error *err)
{
	struct repeatable *const repeatable = devices->repeatable;
	const unsigned count = (unsigned)devices->found->node.count;
	int code = 0;
	for (unsigned pass = 0; pass < repeatable->passes && !code && !repeatable_over(repeatable);
		pass++)
		for (unsigned device = 0; device < count && !code && !repeatable_over(repeatable);
			device++) {
			const struct cuda_repeat_plan plan = {.device = device,
				.precisions = ~0U,
				.times = DEVICE_TIMES,
				.edge = DEVICE_EDGE,
				.stop = repeatable->context->stop,
				.take = repeatable_take,
				.context = devices};
			sink_activity(repeatable->sink, "multiplying on device %u", device);
			devices->device = device;
			code = devices->found->plugin->repeat(&plan, err);
			if (code)
				code = error_prefix(err, code, "device %u", device);
		}
	for (unsigned device = 0; device < count && !code; device++)
		repeatable_hand_device(devices, device);
	if (!code && devices->found->plugin->test_double)
		sink_note(repeatable->sink, "devices are simulated on the CPU by a test double");
	return code;
}

static int repeatable_on_devices(struct repeatable *repeatable, struct error *err)
{
	struct repeatable_devices devices = {.repeatable = repeatable, .found = NULL};
	if (!check_wants(repeatable->context, "repeatable.device", NULL))
		return 0;
	sink_activity(repeatable->sink, "looking for devices");
	devices.found = cuda_find();
	if (!devices.found->ready) {
		sink_lack(repeatable->sink, "repeatable.device", "", "%s", devices.found->why);
		return 0;
	}
	repeatable->end_ns = repeatable_part_end(repeatable, 0.5);
	devices.copy = malloc((size_t)DEVICE_EDGE * DEVICE_EDGE * sizeof(float));
	int code = devices.copy ? votes_open(&devices.votes,
					  devices.found->node.count * DEVICE_PRECISIONS,
					  devices.found->node.count, err)
				: error_set(err, -ENOMEM, "out of memory");
	if (!code)
		code = repeatable_do_devices(&devices, err);
	votes_close(devices.votes);
	free(devices.copy);
	return code;
}

/* --- storage ---------------------------------------------------------------------------------- */

/* By the tier, and at most a quarter of what is free there. */
static uint64_t repeatable_stored_bytes(const struct check_context *context)
{
	static const double by_tier[] = {[TIER_QUICK] = 64 << 20,
		[TIER_STANDARD] = (double)((uint64_t)1 << 30),
		[TIER_BURN] = (double)((uint64_t)16 << 30)};
	const int64_t asked = check_integer(context->check, PLAN_SIZE);
	if (asked > 0)
		return (uint64_t)asked;
	const double bytes = by_tier[context->tier <= TIER_BURN ? context->tier : TIER_BURN];
	return (uint64_t)fmin(bytes, context->free_bytes / 4); /* of NAN and a number: the number */
}

static void repeatable_hand_storage(struct repeatable *repeatable,
	const struct checked_report *reports, const struct checked_file *files)
{
	uint64_t wrong = 0;
	uint64_t checked = 0;
	bool direct = true;
	char count[UNITS_BYTES];
	for (size_t f = 0; f < STORED_FILES; f++) {
		wrong += checked_report_wrong(&reports[f]);
		checked += reports[f].checked;
		direct = direct && files[f].direct_fd >= 0;
		for (size_t i = 0; i < reports[f].finding_count; i++)
			sink_event(repeatable->sink, "repeatable.storage", "",
				repeatable_now_s(repeatable),
				"%s: block %" PRIu64 " (byte %" PRIu64 ") of scratch file %zu: %s",
				block_state_name(reports[f].findings[i].state),
				reports[f].findings[i].block,
				reports[f].findings[i].block * CHECKED_BLOCK_BYTES, f,
				reports[f].findings[i].text);
	}
	sink_number(repeatable->sink, "repeatable.storage", "", (double)wrong);
	sink_note(repeatable->sink,
		"storage: %s blocks of 4 KiB in %d files were written, synced and read back past the page cache (%s), in "
		"%d generations",
		units_format_count((double)checked, count), STORED_FILES,
		direct ? "direct reads" : "evicted, and shown to be", GENERATIONS);
}

static int repeatable_generation(struct repeatable *repeatable, struct checked_file *files,
	struct checked_report *reports, bool last, struct error *err)
{
	const atomic_bool *const stop = repeatable->context->stop;
	int code = 0;
	for (size_t f = 0; f < STORED_FILES && !code; f++) {
		sink_activity(repeatable->sink, "writing '%s'", files[f].path);
		code = checked_file_write(&files[f], stop, NULL, err);
	}
	if (!code && last)
		code = checked_file_plant(&files[0], &repeatable->corruptions, err);
	for (size_t f = 0; f < STORED_FILES && !code; f++) {
		sink_activity(repeatable->sink, "reading '%s'", files[f].path);
		code = checked_file_verify(&files[f], stop, NULL, &reports[f], err);
	}
	return code;
}

static int repeatable_generations(struct repeatable *repeatable, struct checked_file *files,
	struct checked_report *reports, struct error *err)
{
	unsigned left = GENERATIONS;
	int code = 0;
	while (left > 0 && !code) {
		left--;
		code = repeatable_generation(repeatable, files, reports, left == 0, err);
	}
	return code;
}

static int repeatable_open_files(
	struct repeatable *repeatable, struct checked_file *files, struct error *err)
{
	const uint64_t id = rng_mix(clock_now_ns(), (uint64_t)getpid());
	const uint64_t blocks =
		repeatable_stored_bytes(repeatable->context) / STORED_FILES / CHECKED_BLOCK_BYTES;
	int code = blocks > 0 ? 0
			      : error_set(err, -ENOSPC, "no space is left under '%s'",
					repeatable->context->folder);
	for (size_t f = 0; f < STORED_FILES && !code; f++) {
		char name[32];
		(void)snprintf(name, sizeof name, "checked-%zu", f);
		char *const path = files_join(repeatable->context->scratch, name);
		code = path ? checked_file_open(&files[f], path, id + f, blocks, false, err)
			    : error_set(err, -ENOMEM, "out of memory");
		free(path);
	}
	return code;
}

static int repeatable_storage(struct repeatable *repeatable, struct error *err)
{
	struct checked_file files[STORED_FILES] = {
		{.fd = -1, .direct_fd = -1}, {.fd = -1, .direct_fd = -1}};
	struct checked_report *reports;
	if (!check_wants(repeatable->context, "repeatable.storage", ""))
		return 0;
	reports = calloc(STORED_FILES, sizeof *reports);
	int code = reports ? repeatable_open_files(repeatable, files, err)
			   : error_set(err, -ENOMEM, "out of memory");
	if (!code)
		code = repeatable_generations(repeatable, files, reports, err);
	uint64_t unreadable = 0;
	for (size_t f = 0; reports && f < STORED_FILES; f++)
		unreadable += reports[f].counts[BLOCK_UNREADABLE];
	if (code)
		sink_missing(repeatable->sink, "repeatable.storage", "", "%s", err->text);
	else
		repeatable_hand_storage(repeatable, reports, files);
	if (!code && unreadable > 0)
		code = error_set(err, -EIO,
			"%" PRIu64 " blocks of the scratch files could not be read: %s", unreadable,
			reports[0].counts[BLOCK_UNREADABLE] ? reports[0].findings[0].text
							    : reports[1].findings[0].text);
	for (size_t f = 0; f < STORED_FILES; f++)
		checked_file_close(&files[f]);
	free(reports);
	return code;
}

/* --- the kind --------------------------------------------------------------------------------- */

static unsigned repeatable_passes(const struct check_context *context)
{
	static const unsigned by_tier[] = {
		[TIER_QUICK] = 2, [TIER_STANDARD] = 24, [TIER_BURN] = 400};
	const int64_t asked = check_integer(context->check, PLAN_PASSES);
	return asked > 0 ? (unsigned)asked
			 : by_tier[context->tier <= TIER_BURN ? context->tier : TIER_BURN];
}

/* On a busy node: pictures are made in 5 s; a pass on a core takes 0.15 s, and as much on each core alone in every
 * IN_TURN_EVERYth; memory 150 MB/s a core for all patterns; storage 200 MB/s; devices a second each. */
static void repeatable_estimate(const struct check_context *context, struct check_cost *cost)
{
	static const double PICTURES_S = 5, PASS_S = 0.15, MEMORY_BYTES_PER_S = 1.5e8,
			    STORED_BYTES_PER_S = 2e8, DEVICES_S = 5;
	const unsigned passes = repeatable_passes(context);
	const unsigned in_turn = (passes + IN_TURN_EVERY - 1) / IN_TURN_EVERY;
	const double turns = (double)in_turn * probe_cores();
	const bool golden = check_wants(context, "repeatable.golden", NULL);
	const bool decode = golden || check_wants(context, "repeatable.decode", NULL);
	*cost = (struct check_cost){.seconds = 1};
	if (decode)
		cost->seconds += PICTURES_S;
	if (decode || check_wants(context, "repeatable.gemm", NULL))
		cost->seconds += PASS_S * (passes + turns);
	if (check_wants(context, "repeatable.memory", NULL)) {
		cost->memory_bytes = (double)repeatable_bytes(context, probe_free_memory());
		cost->seconds += repeatable_memory_passes(context) * cost->memory_bytes /
				 MEMORY_BYTES_PER_S / probe_cores();
	}
	if (check_wants(context, "repeatable.device", NULL))
		cost->seconds += DEVICES_S;
	if (check_wants(context, "repeatable.storage", "")) {
		cost->disk_bytes = (double)repeatable_stored_bytes(context);
		cost->seconds += 2.0 * GENERATIONS * cost->disk_bytes / STORED_BYTES_PER_S;
	}
}

static int repeatable_parts(struct repeatable *repeatable, struct error *err)
{
	int (*const parts[])(struct repeatable *, struct error *) = {
		repeatable_cores, repeatable_memory, repeatable_on_devices, repeatable_storage};
	int first = 0;
	/* One that cannot be done keeps none of the others from being done. */
	for (size_t i = 0; i < sizeof parts / sizeof *parts && !repeatable_stopped(repeatable);
		i++) {
		struct error why = {""};
		const int code = parts[i](repeatable, &why);
		if (code && !first)
			first = error_set(err, code, "%s", why.text);
	}
	return repeatable_stopped(repeatable) ? error_set(err, -EINTR, "stopped") : first;
}

static int repeatable_run(const struct check_context *context, struct error *err)
{
	struct repeatable repeatable = {.context = context,
		.sink = context->sink,
		.begin_ns = clock_now_ns(),
		.passes = repeatable_passes(context)};
	int code = corruptions_read(&repeatable.corruptions, err);
	if (code)
		return code;
	if (repeatable.corruptions.count > 0)
		sink_note(context->sink,
			"corruption was planted by " CORRUPTION_VARIABLE
			"=%s: this result says nothing about the node",
			getenv(CORRUPTION_VARIABLE));
	code = repeatable_parts(&repeatable, err);
	votes_close(repeatable.votes);
	fixed_work_close(repeatable.work);
	core_list_close(&repeatable.cores);
	free(repeatable.each);
	return code;
}

const struct check_ops check_repeatable = {
	.kind = ACCEPT_REPEATABLE,
	.estimate = repeatable_estimate,
	.run = repeatable_run,
};
