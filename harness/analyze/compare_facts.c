/* Two results held beside each other: which of their points are the same, and what their
 * configurations and nodes differ in. */
#include "harness/analyze/comparison.h"

#include "harness/analyze/point_model.h"
#include "harness/base/array.h"
#include "harness/config/tables.h"
#include "harness/measure/environment.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- which points are the same ---------------------------------------------------------------- */

/* A point to be ordered; the sides share the keys. */
struct place {
	const struct config *config;
	const struct config_grid *grid;
	const bool *swept;
	size_t point;
};

const struct config_value *point_value(
	const struct config *config, const struct config_grid *grid, size_t point, enum key_id key)
{
	for (size_t axis = 0; axis < config->axis_count; axis++)
		if (config->axes[axis].key == key)
			return &config->axes[axis]
					.values[grid->choice[point * grid->axis_count + axis]];
	return &config->values[key];
}

static int order_values(enum key_id key, const struct config_value *a, const struct config_value *b)
{
	const enum key_type type = config_keys[key].type;
	if (type == KEY_TYPE_TEXT)
		return strcmp(a->text ? a->text : "", b->text ? b->text : "");
	if (type == KEY_TYPE_REAL || type == KEY_TYPE_SHARE)
		return (a->real > b->real) - (a->real < b->real);
	if (a->integer != b->integer)
		return a->integer > b->integer ? 1 : -1;
	return strcmp(a->text ? a->text : "", b->text ? b->text : "");
}

bool config_value_same(enum key_id key, const struct config_value *a, const struct config_value *b)
{
	return order_values(key, a, b) == 0;
}

static int order_settings(const struct place *a, const struct place *b)
{
	for (int key = 0; key < KEY_COUNT; key++) {
		if (!a->swept[key])
			continue;
		const enum key_id id = (enum key_id)key;
		const int order = order_values(id, point_value(a->config, a->grid, a->point, id),
			point_value(b->config, b->grid, b->point, id));
		if (order)
			return order;
	}
	return 0;
}

static int order_by_settings(const void *left, const void *right)
{
	const struct place *a = left;
	const struct place *b = right;
	const int order = order_settings(a, b);
	return order ? order : (a->point > b->point) - (a->point < b->point);
}

static int order_points(const void *left, const void *right)
{
	const size_t a = *(const size_t *)left;
	const size_t b = *(const size_t *)right;
	return (a > b) - (a < b);
}

static struct place *places_of_grid(
	const struct config *config, const struct config_grid *grid, const bool *swept)
{
	struct place *places = calloc(grid->points + 1, sizeof *places);
	for (size_t i = 0; places && i < grid->points; i++)
		places[i] = (struct place){config, grid, swept, i};
	if (places)
		qsort(places, grid->points, sizeof *places, order_by_settings);
	return places;
}

static void match_places(struct point_match *match, const struct place *a, size_t a_count,
	const struct place *b, size_t b_count)
{
	size_t i = 0;
	size_t j = 0;
	while (i < a_count || j < b_count) {
		const int order = i == a_count   ? 1
				  : j == b_count ? -1
						 : order_settings(&a[i], &b[j]);
		if (order == 0)
			match->pairs[match->pair_count++] =
				(struct point_pair){a[i++].point, b[j++].point};
		else if (order < 0)
			match->only_a[match->only_a_count++] = a[i++].point;
		else
			match->only_b[match->only_b_count++] = b[j++].point;
	}
	/* Pairs by their first point. */
	qsort(match->pairs, match->pair_count, sizeof *match->pairs, order_points);
	qsort(match->only_a, match->only_a_count, sizeof *match->only_a, order_points);
	qsort(match->only_b, match->only_b_count, sizeof *match->only_b, order_points);
}

int point_match(const struct config *a, const struct config_grid *a_grid, const struct config *b,
	const struct config_grid *b_grid, struct point_match *match)
{
	*match = (struct point_match){0};
	for (size_t i = 0; i < a->axis_count; i++)
		match->swept[a->axes[i].key] = true;
	for (size_t i = 0; i < b->axis_count; i++)
		match->swept[b->axes[i].key] = true;
	struct place *left = places_of_grid(a, a_grid, match->swept);
	struct place *right = places_of_grid(b, b_grid, match->swept);
	match->pairs = calloc(a_grid->points + 1, sizeof *match->pairs);
	match->only_a = calloc(a_grid->points + 1, sizeof *match->only_a);
	match->only_b = calloc(b_grid->points + 1, sizeof *match->only_b);
	const bool room = left && right && match->pairs && match->only_a && match->only_b;
	if (room)
		match_places(match, left, a_grid->points, right, b_grid->points);
	else
		point_match_release(match);
	free(left);
	free(right);
	return room ? 0 : -ENOMEM;
}

void point_match_release(struct point_match *match)
{
	free(match->pairs);
	free(match->only_a);
	free(match->only_b);
	*match = (struct point_match){0};
}

/* --- what configurations and nodes differ in -------------------------------------------------- */

struct rule {
	const char *pattern; /* as of a shell */
	enum compare_weight weight;
};

/* The first pattern that matches counts. A key that is not here is a setting. */
static const struct rule key_rules[] = {
	{"run.name", COMPARE_HARMLESS},
	{"run.seed", COMPARE_HARMLESS}, /* other crops in another order: noise */
	{"run.verify", COMPARE_STRONG}, /* costs time */
	{"measure.profiler", COMPARE_STRONG},
	{"measure.epochs", COMPARE_MINOR}, /* begins with a cold start */
	{"measure.*", COMPARE_HARMLESS},
	{"trace.*", COMPARE_HARMLESS},
	{"sweep.*", COMPARE_HARMLESS}, /* axes are matched by value */
	{"dataset.path",
		COMPARE_HARMLESS}, /* a recipe makes the same files anywhere; else see below */
	{"dataset.generate", COMPARE_HARMLESS},
	{"dataset.classes", COMPARE_MINOR}, /* folders */
	{"dataset.*", COMPARE_REFUSED},
	{"sample.kind", COMPARE_REFUSED},
	{"codec.name", COMPARE_STRONG},
	{"step.backend", COMPARE_SETTING}, /* of what it stood for, record.step says more */
	{"step.model", COMPARE_REFUSED},
	{"step.device", COMPARE_STRONG},
	{"batch.size", COMPARE_STRONG},
	{"inject.*", COMPARE_STRONG},
};

/* The first pattern that matches counts. A fact that is not here is minor. */
static const struct rule fact_rules[] = {
	{"load.*", COMPARE_HARMLESS},
	{"node.name", COMPARE_STRONG},
	{"node.name_from", COMPARE_HARMLESS},
	{"memory.available", COMPARE_HARMLESS},
	{"memory.huge_pages_free", COMPARE_HARMLESS},
	{"data.free", COMPARE_HARMLESS},
	{"data.path", COMPARE_HARMLESS},
	{"mlbench.ceilings", COMPARE_HARMLESS},
	{"mlbench.cuda", COMPARE_HARMLESS},
	{"build.mlbench", COMPARE_HARMLESS}, /* mlbench.version */
	{"cpu.flags", COMPARE_MINOR},
	{"cpu.microcode", COMPARE_MINOR},
	{"cpu.numa_nodes", COMPARE_STRONG},
	{"cpu.affinity", COMPARE_MINOR}, /* which cores; how many is cpu.allowed */
	{"cpu.*", COMPARE_STRONG},
	{"memory.total", COMPARE_STRONG},
	{"memory.modules", COMPARE_STRONG},
	{"memory.transparent_huge_pages", COMPARE_STRONG},
	{"cgroup.cpu_limit", COMPARE_STRONG},
	{"cgroup.memory_limit", COMPARE_STRONG},
	{"data.file_system", COMPARE_STRONG},
	{"data.disk_model", COMPARE_STRONG},
	{"data.disk_serial", COMPARE_HARMLESS},
	{"data.rotational", COMPARE_STRONG},
	{"data.read_ahead", COMPARE_STRONG},
	{"board.*serial", COMPARE_HARMLESS}, /* each board has its own */
	{"gpu.serial_*", COMPARE_HARMLESS},
	{"gpu.vbios_*", COMPARE_MINOR},
	{"gpu.*clock*", COMPARE_MINOR},
	{"gpu.libcuda", COMPARE_MINOR},
	{"gpu.libnvidia_ml", COMPARE_MINOR},
	{"gpu.nvml", COMPARE_MINOR},
	{"gpu.*", COMPARE_STRONG},
	{"mlbench.engine", COMPARE_STRONG},
	{"dataset.samples", COMPARE_REFUSED},
	{"dataset.bytes", COMPARE_REFUSED},
	{"dataset.bad_files", COMPARE_STRONG},
};

/* Numbers that differ by less count as equal: the memory that a kernel reserves differs from boot
 * to boot. */
static const double SAME_NUMBER = 0.01;

static enum compare_weight weight_by_rules(
	const struct rule *rules, size_t count, const char *name, enum compare_weight otherwise)
{
	for (size_t i = 0; i < count; i++)
		if (fnmatch(rules[i].pattern, name, 0) == 0)
			return rules[i].weight;
	return otherwise;
}

/* --- the list --------------------------------------------------------------------------------- */

static struct compare_fact *facts_room(struct compare_facts *facts)
{
	enum { ROOM_FIRST = 16 };
	if (facts->count == facts->room) {
		const size_t room = facts->room ? 2 * facts->room : ROOM_FIRST;
		struct compare_fact *list = realloc(facts->list, room * sizeof *list);
		facts->failed = facts->failed || !list;
		if (!list)
			return NULL;
		facts->list = list;
		facts->room = room;
	}
	facts->list[facts->count] = (struct compare_fact){0};
	return &facts->list[facts->count++];
}

/* Takes ownership of the texts. */
static void facts_take(struct compare_facts *facts, enum compare_weight weight, const char *name,
	bool is_key, char *a, char *b)
{
	struct compare_fact *fact = a && b ? facts_room(facts) : NULL;
	if (!fact) {
		facts->failed = true;
		free(a);
		free(b);
		return;
	}
	fact->weight = weight;
	fact->is_key = is_key;
	fact->a = a;
	fact->b = b;
	(void)snprintf(fact->name, sizeof fact->name, "%s", name);
}

void compare_fact_add(struct compare_facts *facts, enum compare_weight weight, const char *name,
	const char *a, const char *b)
{
	facts_take(facts, weight, name, false, strdup(a), strdup(b));
}

static int order_facts(const void *left, const void *right)
{
	const struct compare_fact *a = left;
	const struct compare_fact *b = right;
	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	if (a->is_key != b->is_key)
		return a->is_key ? -1 : 1;
	return strcmp(a->name, b->name);
}

void compare_facts_sort(struct compare_facts *facts)
{
	if (facts->count > 1)
		qsort(facts->list, facts->count, sizeof *facts->list, order_facts);
}

void compare_facts_release(struct compare_facts *facts)
{
	for (size_t i = 0; i < facts->count; i++) {
		free(facts->list[i].a);
		free(facts->list[i].b);
	}
	free(facts->list);
	*facts = (struct compare_facts){0};
}

size_t compare_facts_count(const struct compare_facts *facts, enum compare_weight weight)
{
	size_t count = 0;
	for (size_t i = 0; i < facts->count; i++)
		count += facts->list[i].weight == weight;
	return count;
}

const char *compare_weight_name(enum compare_weight weight)
{
	static const char *const names[] = {"harmless", "minor", "setting", "strong", "refused"};
	return names[weight];
}

/* --- keys ------------------------------------------------------------------------------------- */

char *config_value_text(enum key_id key, const struct config_value *value)
{
	char text[CONFIG_VALUE_BYTES];
	if (config_keys[key].type == KEY_TYPE_TEXT || value->text)
		return strdup(value->text ? value->text : "");
	return strdup(config_format_value(key, value, text, sizeof text));
}

static bool both(const struct config *a, const struct config *b, enum key_id key, int64_t value)
{
	return config_integer(a, key) == value && config_integer(b, key) == value;
}

/* A key of the recipe that the files of neither side depend on. */
static bool is_idle_key(enum key_id key, const struct config *a, const struct config *b)
{
	switch (key) {
	case KEY_DATASET_PATH:
	case KEY_DATASET_RECIPE:
	case KEY_DATASET_SAMPLES:
		return false;
	case KEY_DATASET_QUALITY:
	case KEY_DATASET_SUBSAMPLING:
		if (config_integer(a, KEY_DATASET_FORMAT) != DATASET_FORMAT_JPEG &&
			config_integer(b, KEY_DATASET_FORMAT) != DATASET_FORMAT_JPEG)
			return true;
		break;
	case KEY_DATASET_PNG_COLOR:
	case KEY_DATASET_PNG_LEVEL:
		if (config_integer(a, KEY_DATASET_FORMAT) != DATASET_FORMAT_PNG &&
			config_integer(b, KEY_DATASET_FORMAT) != DATASET_FORMAT_PNG)
			return true;
		break;
	default:
		break;
	}
	return strcmp(config_keys[key].section, "dataset") == 0 &&
	       both(a, b, KEY_DATASET_RECIPE, DATASET_RECIPE_NONE);
}

static enum compare_weight weight_of_key(
	enum key_id key, const char *name, const struct config *a, const struct config *b)
{
	if (is_idle_key(key, a, b))
		return COMPARE_HARMLESS;
	/* Of one's own folders, as many samples and bytes are no proof of the same files. */
	if (key == KEY_DATASET_PATH && both(a, b, KEY_DATASET_RECIPE, DATASET_RECIPE_NONE))
		return COMPARE_STRONG;
	if (key == KEY_STEP_DEVICE && both(a, b, KEY_STEP_BACKEND, STEP_BACKEND_NULL))
		return COMPARE_HARMLESS;
	if (config_shapes_samples(key))
		return COMPARE_REFUSED;
	if (config_is_storage(key)) /* of the same samples: that is what is compared */
		return COMPARE_SETTING;
	return weight_by_rules(key_rules, COUNT(key_rules), name, COMPARE_SETTING);
}

void compare_keys(struct compare_facts *facts, const struct config *a, const struct config *b,
	const bool swept[KEY_COUNT])
{
	for (int k = 0; k < KEY_COUNT; k++) {
		const enum key_id key = (enum key_id)k;
		char name[COMPARE_NAME_BYTES];
		const bool same = config_value_same(key, &a->values[k], &b->values[k]);
		if (config_is_storage(key) && (swept[k] || !same) && !is_idle_key(key, a, b))
			facts->storage = true;
		if (swept[k] || same)
			continue;
		(void)snprintf(
			name, sizeof name, "%s.%s", config_keys[k].section, config_keys[k].name);
		facts_take(facts, weight_of_key(key, name, a, b), name, true,
			config_value_text(key, &a->values[k]),
			config_value_text(key, &b->values[k]));
	}
}

/* --- the node --------------------------------------------------------------------------------- */

static bool same_fact(const struct fact *a, const struct fact *b)
{
	if (a->kind == FACT_MISSING && b->kind == FACT_MISSING)
		return true; /* whatever the reasons */
	if (a->kind != b->kind)
		return false;
	if (a->kind == FACT_TEXT)
		return strcmp(a->text, b->text) == 0;
	return a->number == b->number ||
	       fabs(a->number - b->number) <= SAME_NUMBER * fmax(fabs(a->number), fabs(b->number));
}

static char *fact_words(const struct fact *fact)
{
	char *words;
	if (!fact)
		return strdup("not recorded");
	if (fact->kind == FACT_TEXT)
		return strdup(fact->text);
	if (fact->kind == FACT_MISSING)
		return asprintf(&words, "unknown: %s", fact->text) < 0 ? NULL : words;
	return asprintf(&words, "%.10g%s%s", fact->number, fact->unit ? " " : "",
		       fact->unit ? fact->unit : "") < 0
		       ? NULL
		       : words;
}

static void compare_fact_pair(
	struct compare_facts *facts, const struct fact *a, const struct fact *b)
{
	const struct fact *any = a ? a : b;
	char name[COMPARE_NAME_BYTES];
	/* The size of a data set is exact: the tolerance of other numbers does not apply. */
	const bool exact = strcmp(any->group, "dataset") == 0 && any->kind == FACT_NUMBER;
	if (a && b && (exact ? a->kind == b->kind && a->number == b->number : same_fact(a, b)))
		return;
	if ((!a || !b) && any->kind == FACT_MISSING)
		return;
	(void)snprintf(name, sizeof name, "%s.%s", any->group, any->name);
	enum compare_weight weight =
		weight_by_rules(fact_rules, COUNT(fact_rules), name, COMPARE_MINOR);
	/* One that an older version did not write is no difference of the nodes. */
	if ((!a || !b) && weight > COMPARE_MINOR)
		weight = strcmp(any->group, "gpu") == 0 ? COMPARE_STRONG : COMPARE_MINOR;
	facts_take(facts, weight, name, false, fact_words(a), fact_words(b));
}

void compare_environments(
	struct compare_facts *facts, const struct fact_list *a, const struct fact_list *b)
{
	for (size_t i = 0; i < a->count; i++)
		compare_fact_pair(
			facts, &a->facts[i], fact_find(b, a->facts[i].group, a->facts[i].name));
	for (size_t i = 0; i < b->count; i++)
		if (!fact_find(a, b->facts[i].group, b->facts[i].name))
			compare_fact_pair(facts, NULL, &b->facts[i]);
	/* Another storage form has other bytes. */
	for (size_t i = 0; i < facts->count && facts->storage; i++)
		if (strcmp(facts->list[i].name, "dataset.bytes") == 0)
			facts->list[i].weight = COMPARE_MINOR;
	/* A container engine makes up another node name each time. */
	const bool made_up = !fact_node_name_lasts(a) && !fact_node_name_lasts(b);
	for (size_t i = 0; i < facts->count && made_up; i++)
		if (strcmp(facts->list[i].name, "node.name") == 0)
			facts->list[i].weight = COMPARE_HARMLESS;
}

/* --- where a difference comes from ------------------------------------------------------------ */

enum {
	SUBSETS_MAX = 1 << EXPLAIN_PARTS_MAX,
	SAMPLES_PER_REPLAY = 4000,
	PART_SHAPE = REPLAY_STAGES, /* the parts beyond the stages */
	PART_CORES,
};

/* A smaller effect is rounding of a sum. */
static const double EFFECT_LEAST = 1e-6;

/* --- the game: players, and ln of what each subset of them is worth --------------------------- */

static double factorial(unsigned n)
{
	return tgamma(n + 1.0);
}

/* worth: (1 << players). */
static double shapley(const double *worth, unsigned players, unsigned player)
{
	double sum = 0;
	for (unsigned subset = 0; subset < 1U << players; subset++) {
		if (subset & (1U << player))
			continue;
		const unsigned before = (unsigned)__builtin_popcount(subset);
		const double weight =
			factorial(before) * factorial(players - before - 1) / factorial(players);
		sum += weight * (worth[subset | (1U << player)] - worth[subset]);
	}
	return sum;
}

static int order_parts(const void *left, const void *right)
{
	const double a = fabs(((const struct explain_part *)left)->effect);
	const double b = fabs(((const struct explain_part *)right)->effect);
	return (a < b) - (a > b);
}

static void divide(
	struct explanation *out, const double *worth, unsigned players, const char *const *names)
{
	out->explained = worth[(1U << players) - 1] - worth[0];
	out->part_count = 0;
	for (unsigned i = 0; i < players; i++) {
		const double effect = shapley(worth, players, i);
		if (fabs(effect) < EFFECT_LEAST)
			continue;
		struct explain_part *part = &out->parts[out->part_count++];
		part->effect = effect;
		(void)snprintf(part->name, sizeof part->name, "%s", names[i]);
	}
	qsort(out->parts, out->part_count, sizeof *out->parts, order_parts);
}

/* --- by replay -------------------------------------------------------------------------------- */

/* Worker factors as long as the larger side's, so that either shape finds its own; NULL: alike. */
static float *widened(const struct replay_model *replay, unsigned workers)
{
	float *factor = replay->worker_factor ? malloc(workers * sizeof *factor) : NULL;
	for (unsigned i = 0; factor && i < workers; i++)
		factor[i] = i < replay->shape.decode_workers ? replay->worker_factor[i] : 1;
	return factor;
}

static void give_stage(struct replay_model *to, const struct replay_model *from,
	enum replay_stage stage, const float *factor)
{
	for (int c = 0; c < COSTS; c++) {
		if (replay_stage_of((enum replay_cost)c) != stage)
			continue;
		to->series[c] = from->series[c];
		to->scale[c] = from->scale[c];
	}
	if (stage == REPLAY_DECODE) {
		to->worker_factor = factor;
		to->visit_ns = from->visit_ns;
		to->lock_off_cores = from->lock_off_cores;
	}
	if (stage == REPLAY_UPLOAD)
		to->copies_off_cores = from->copies_off_cores;
	if (stage == REPLAY_STEP)
		to->device_factor = from->device_factor;
}

static void give_cores(struct replay_model *to, const struct replay_model *from)
{
	to->cores = from->cores;
	to->quota = from->quota;
	to->outside = from->outside;
	to->slice_ns = from->slice_ns;
	to->contention = from->contention;
	to->wake_ns = from->wake_ns;
}

static void give(struct replay_model *to, const struct replay_model *from, unsigned part,
	const float *factor)
{
	if (part == PART_SHAPE)
		to->shape = from->shape;
	else if (part == PART_CORES)
		give_cores(to, from);
	else
		give_stage(to, from, (enum replay_stage)part, factor);
}

static bool same_series(const struct replay_model *a, const struct replay_model *b, unsigned stage)
{
	for (int c = 0; c < COSTS; c++)
		if ((unsigned)replay_stage_of((enum replay_cost)c) == stage &&
			(a->series[c].count > 0 || b->series[c].count > 0))
			return false;
	return true;
}

static bool same_pipeline_shape(const struct pipeline_shape *a, const struct pipeline_shape *b)
{
	return a->reader_threads == b->reader_threads && a->read_depth == b->read_depth &&
	       a->blobs == b->blobs && a->decode_workers == b->decode_workers &&
	       a->batch_size == b->batch_size && a->prefetch_depth == b->prefetch_depth &&
	       a->slots == b->slots && a->staging_slots == b->staging_slots &&
	       a->devices == b->devices && a->in_order == b->in_order &&
	       a->step_threads == b->step_threads && a->checkpoint_every == b->checkpoint_every &&
	       a->checkpoint_async == b->checkpoint_async &&
	       a->evaluate_every == b->evaluate_every && a->epochs_apart == b->epochs_apart &&
	       (!a->epochs_apart || a->epoch_samples == b->epoch_samples);
}

/* Parts that are the same in both need no replays. */
static bool plays(const struct replay_model *a, const struct replay_model *b, unsigned part)
{
	if (part == PART_SHAPE)
		return !same_pipeline_shape(&a->shape, &b->shape);
	if (part == PART_CORES)
		return a->cores != b->cores || a->quota != b->quota || a->outside != b->outside ||
		       a->contention != b->contention || a->slice_ns != b->slice_ns;
	return !same_series(a, b, part);
}

static const char *const part_names[EXPLAIN_PARTS_MAX] = {STAGE_READ_NAME, STAGE_DECODE_NAME,
	STAGE_UPLOAD_NAME, STAGE_STEP_NAME, STAGE_SYNC_NAME, STAGE_CHECKPOINT_NAME,
	STAGE_EVALUATE_NAME, "threads and buffers", "cores"};

static int worth_of(const struct model *model, const struct replay_model *replay, double *worth,
	struct error *err)
{
	struct model like = *model; /* borrowed: options look at its shape */
	struct replay_result result;
	like.replay = *replay;
	const struct replay_options options = model_options(&like, SAMPLES_PER_REPLAY);
	const int code = replay_run(replay, &options, &result, err);
	*worth = code ? NAN : log(result.throughput);
	return code;
}

/* Replays of A with the parts of each subset taken from B. */
static int play(const struct model *a, const struct model *b, const unsigned *parts,
	unsigned players, double *worth, struct error *err)
{
	const unsigned left = a->replay.shape.decode_workers;
	const unsigned right = b->replay.shape.decode_workers;
	float *const factor_a = widened(&a->replay, left > right ? left : right);
	float *const factor_b = widened(&b->replay, left > right ? left : right);
	const bool bad =
		(a->replay.worker_factor && !factor_a) || (b->replay.worker_factor && !factor_b);
	int code = bad ? -ENOMEM : 0;
	for (unsigned subset = 0; subset < 1U << players && !code; subset++) {
		struct replay_model replay = a->replay;
		replay.worker_factor = factor_a;
		for (unsigned i = 0; i < players; i++)
			if (subset & (1U << i))
				give(&replay, &b->replay, parts[i], factor_b);
		code = worth_of(a, &replay, &worth[subset], err);
	}
	free(factor_a);
	free(factor_b);
	return code;
}

int explain_by_replay(const struct model *a, const struct model *b, double measured,
	struct explanation *out, struct error *err)
{
	unsigned parts[EXPLAIN_PARTS_MAX];
	const char *names[EXPLAIN_PARTS_MAX];
	unsigned players = 0;
	double *worth = calloc(SUBSETS_MAX, sizeof *worth);
	if (!worth)
		return error_set(err, -ENOMEM, "out of memory for an explanation");
	*out = (struct explanation){.replayed = true, .measured = measured};
	for (unsigned part = 0; part < EXPLAIN_PARTS_MAX; part++)
		if (plays(&a->replay, &b->replay, part)) {
			names[players] = part_names[part];
			parts[players++] = part;
		}
	const int code = play(a, b, parts, players, worth, err);
	if (!code)
		divide(out, worth, players, names);
	free(worth);
	return code;
}

/* --- by capacities ---------------------------------------------------------------------------- */

static double least_capacity(const struct explain_capacity *stages, size_t count, unsigned subset)
{
	double least = NAN; /* fmin passes over it */
	for (size_t i = 0; i < count; i++)
		least = fmin(least, subset & (1U << i) ? stages[i].b : stages[i].a);
	return least;
}

void explain_by_capacities(const struct explain_capacity *stages, size_t count, double measured,
	struct explanation *out)
{
	double worth[SUBSETS_MAX];
	const char *names[EXPLAIN_PARTS_MAX];
	const size_t used = count < EXPLAIN_PARTS_MAX ? count : EXPLAIN_PARTS_MAX;
	for (size_t i = 0; i < used; i++)
		names[i] = stages[i].stage;
	bool known = true;
	for (unsigned subset = 0; subset < 1U << used; subset++) {
		worth[subset] = log(least_capacity(stages, used, subset));
		known = known && isfinite(worth[subset]);
	}
	out->replayed = false;
	out->measured = measured;
	out->explained = known ? 0 : (double)NAN;
	out->part_count = 0;
	if (known)
		divide(out, worth, (unsigned)used, names);
}
