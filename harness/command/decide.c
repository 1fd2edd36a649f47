/* Stages alone, in turns: see decide.h. */
#include "harness/command/decide.h"

#include "harness/analyze/reads_alone.h"
#include "harness/analyze/verdict.h"
#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/log.h"
#include "harness/base/rng.h"
#include "harness/base/units.h"
#include "harness/command/calibration.h"
#include "harness/command/limits.h"
#include "harness/command/verify.h"
#include "harness/config/shape.h"
#include "harness/record/config_json.h"
#include "workloads/source/source.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	ARMS_MAX = 4,
	BLOCK_FILES = 40,      /* of a block, at the set depth */
	BLOCK_BATCH = 8,       /* samples, at most: blocks end with a batch */
	CLASS_LEAST = 16,      /* files of a half */
	BLOCK_BATCHES = 6,     /* of a stage beside another one */
	STAGE_BLOCKS_MOST = 8, /* two rounds */
	FILES_MOST = 4096,     /* that blocks read */
	STRATA = 10,           /* by size */
};

enum part { ALL_FILES, SMALLER, LARGER, PARTS_MOST };

static const double BLOCK_LEAST_S = 0.2, BLOCK_MOST_S = 1.5;
static const double WARMUP_LEAST_S = 0.06, WARMUP_MOST_S = 1;
static const double SETTLES = 2;     /* times, that as many files as are in flight are done */
static const double SET_UP_S = 0.05; /* of a block */
/* A store with a credit saves it up while nothing is read; reading 1.5 times as fast as it lasts uses it up in twice the time. */
static const double USES_UP = 2;
static const double ONE_LONGER = 2;    /* a block of one file at a time, of which there are few */
static const double LOAD_MOST_S = 1;   /* for files that a stage alone takes from the page cache */
static const double SURE_ENOUGH = 0.9; /* of bytes or requests */

/* Files in an order in which any few that follow one another have about the sizes of all: by size, one of each tenth in turn.
 * Blocks are short, and would differ by which files they happen to read. */
struct even_files {
	struct dataset
		files; /* count of them; its samples are owned: all twice, so that a block may begin at any */
	size_t next; /* that no block has read */
};

/* One arm: a configuration, and the data that it reads. */
struct arm {
	struct config config;
	const struct dataset *dataset;
	struct even_files *even; /* NULL: the data set in its own order, by the seed */
	struct read_block block; /* without its figures */
};

struct experiment_arms {
	struct session *session;
	struct arm list[ARMS_MAX];
	size_t count;
	struct even_files parts[PARTS_MOST];
	double warmup_s, block_s;
	double drain_s; /* that what is in flight at the set depth takes to come in */
};

static void arms_close(struct experiment_arms *arms)
{
	for (size_t i = 0; i < arms->count; i++)
		config_release(&arms->list[i].config);
	for (size_t i = 0; i < PARTS_MOST; i++)
		free(arms->parts[i].files.samples);
}

/* --- what is open ----------------------------------------------------------------------------- */

static bool resource_is(const struct diagnosed *d, const char *const *names)
{
	for (; *names; names++)
		if (strcmp(d->diagnosis.verdict.resource, *names) == 0)
			return true;
	return false;
}

/* Of whom the verdict is: of a job of ranks the straggler's. */
static const struct record *decide_record(const struct session *session)
{
	return session->judged ? session->judged : &session->record;
}

/* Of ranks, of parts, or of neither. */
static bool has_blocks_of(const struct record *record, size_t point, const char *part)
{
	for (size_t i = 0; i < record->read_block_count; i++)
		if (record->read_blocks[i].point == point &&
			strcmp(record->read_blocks[i].part, part) == 0)
			return true;
	return false;
}

static bool has_blocks(const struct record *record, size_t point, bool parts)
{
	for (size_t i = 0; i < record->read_block_count; i++)
		if (record->read_blocks[i].point == point && !record->read_blocks[i].stage[0] &&
			strcmp(record->read_blocks[i].part, READ_BLOCK_RANKS) != 0 &&
			(record->read_blocks[i].part[0] != '\0') == parts)
			return true;
	return false;
}

/* What depths tried one after the other said is tried again, too: a store that ages, or one that warms up, looks full or slow
 * there. */
static bool depth_is_open(const struct session *session, const struct diagnosed *d)
{
	static const char *const of_store[] = {
		"unknown", "latency", "full", "bandwidth", "iops", "concurrency", "shared", NULL};
	return config_integer(&d->config, KEY_MEASURE_DEPTHS) == MEASURE_DEPTHS_AUTO &&
	       stage_is(d->diagnosis.verdict.stage, STAGE_READ) && resource_is(d, of_store) &&
	       !has_blocks(decide_record(session), d->point, false);
}

static bool stages_are_open(const struct session *session, const struct diagnosed *d)
{
	const struct verdict *v = &d->diagnosis.verdict;
	const struct record *record = decide_record(session);
	struct read_block blocks[RECORD_READ_BLOCKS_MAX];
	size_t count = 0;
	double error;
	double least;
	for (size_t i = 0; i < record->read_block_count; i++)
		if (record->read_blocks[i].point == d->point && record->read_blocks[i].stage[0])
			blocks[count++] = record->read_blocks[i];
	/* Once more where something disturbed a block. */
	const bool open = count == 0 || (count < STAGE_BLOCKS_MOST &&
						!isnan(stages_alone_ratio(blocks, count, v->stage,
							v->against, &error, &least)) &&
						error > ALONE_ERROR_MOST);
	/* A device's kernels are chosen anew in each block. */
	return config_integer(&d->config, KEY_MEASURE_DEPTHS) == MEASURE_DEPTHS_AUTO &&
	       v->against[0] && open && !pipeline_facts(&d->config).step_has_memory;
}

static bool size_is_open(const struct session *session, const struct diagnosed *d)
{
	static const char *const of_full[] = {"full", "bandwidth", "iops", "concurrency", NULL};
	return stage_is(d->diagnosis.verdict.stage, STAGE_READ) && resource_is(d, of_full) &&
	       d->diagnosis.verdict.confidence < SURE_ENOUGH &&
	       !has_blocks(decide_record(session), d->point, true);
}

/* Whether ranks share what limits their reads. */
static bool ranks_are_open(const struct session *session, const struct diagnosed *d)
{
	return session->party->ranks && !session->judged &&
	       config_integer(&d->config, KEY_RUN_RANKS) > 1 &&
	       config_integer(&d->config, KEY_MEASURE_DEPTHS) == MEASURE_DEPTHS_AUTO &&
	       stage_is(d->diagnosis.verdict.stage, STAGE_READ) &&
	       !has_blocks_of(&session->record, d->point, READ_BLOCK_RANKS);
}

/* --- arms ------------------------------------------------------------------------------------- */

/* The key that says how many files are in flight. */
static enum key_id depth_key(const struct config *config)
{
	if (shape_by_workers(config))
		return KEY_DECODE_WORKERS;
	return pipeline_facts(config).reads_block ? KEY_READ_THREADS : KEY_READ_DEPTH;
}

static bool arm_fits(const struct experiment_arms *arms, const struct arm *arm)
{
	const struct plan_cost *promised = &arms->session->plan.cost;
	struct plan_cost cost = {.resident_bytes = promised->resident_bytes,
		.results_bytes = promised->results_bytes};
	struct pipeline_plan planned;
	if (pipeline_plan(&arm->config, arm->dataset, &planned, NULL))
		return false;
	plan_cost_add_memory(&cost, &planned, true);
	return promised->bound_bytes == 0 || cost.bound_bytes <= promised->bound_bytes;
}

/* One more, if it can be. */
static int arms_add(struct experiment_arms *arms, const struct config *alone,
	struct even_files *even, enum key_id key, int64_t value, const char *part)
{
	struct arm *arm = &arms->list[arms->count];
	const int64_t set = config_integer(alone, key);
	*arm = (struct arm){
		.dataset = even ? &even->files : plan_dataset(&arms->session->plan, alone),
		.even = even,
		.block = {.value = (uint32_t)value, .as_set = value == set}};
	char name[CONFIG_NAME_BYTES];
	(void)snprintf(arm->block.key, sizeof arm->block.key, "%s", config_key_name(key, name));
	(void)snprintf(arm->block.part, sizeof arm->block.part, "%s", part);
	if (config_copy(&arm->config, alone, NULL) ||
		limits_set_number(&arm->config, key, value, NULL) ||
		(even && config_set_key(&arm->config, KEY_READ_ORDER, "sequential", NULL)) ||
		!arm_fits(arms, arm)) {
		config_release(&arm->config);
		return -1;
	}
	arms->count++;
	return 0;
}

/* --- files ------------------------------------------------------------------------------------ */

static int by_bytes(const void *a, const void *b)
{
	const uint64_t left = ((const struct sample *)a)->bytes;
	const uint64_t right = ((const struct sample *)b)->bytes;
	return (left > right) - (left < right);
}

/* Some files of a data set by size; the caller frees them. */
static struct sample *some_by_size(
	const struct dataset *all, uint64_t seed, size_t most, size_t *count)
{
	struct rng rng;
	*count = all->count < most ? all->count : most;
	struct sample *some = malloc((*count + 1) * sizeof *some);
	rng_init(&rng, seed, 0);
	for (size_t i = 0; some && i < *count; i++) { /* one of each so many */
		const size_t first = i * all->count / *count;
		const size_t end = (i + 1) * all->count / *count;
		some[i] = all->samples[first + rng_below(&rng, end - first)];
	}
	if (some)
		qsort(some, *count, sizeof *some, by_bytes);
	return some;
}

/* sorted: (count), by size.  Returns -1 for lack of memory. */
static int spread_evenly(struct even_files *out, const struct dataset *all,
	const struct sample *sorted, size_t count, uint64_t seed)
{
	struct rng rng;
	struct sample *samples = malloc(2 * count * sizeof *samples);
	uint32_t *order = malloc(count * sizeof *order); /* of files within each stratum */
	const size_t depth = (count + STRATA - 1) / STRATA;
	size_t n = 0;
	rng_init(&rng, seed, 1);
	for (size_t first = 0; order && first < count; first += depth)
		rng_permutation(&rng, order + first,
			(uint32_t)(count - first < depth ? count - first : depth));
	for (size_t i = 0; samples && order && i < depth; i++)
		for (size_t first = 0; first + i < count; first += depth)
			if (i < (count - first < depth ? count - first : depth))
				samples[n++] = sorted[first + order[first + i]];
	free(order);
	if (!samples || n < count) {
		free(samples);
		return -1;
	}
	memcpy(samples + count, samples, count * sizeof *samples);
	*out = (struct even_files){.files = *all};
	out->files.samples = samples;
	out->files.count = out->files.files = count;
	out->files.evaluated = NULL;
	out->files.total_bytes = 0;
	for (size_t i = 0; i < count; i++)
		out->files.total_bytes += samples[i].bytes;
	out->files.stored_bytes = out->files.total_bytes;
	return 0;
}

/* Whether files may be read in another order: they are files of their own, and the point reads them in any. */
static bool any_order(const struct config *alone, const struct dataset *all)
{
	return !all->offsets && config_integer(alone, KEY_READ_ORDER) != READ_ORDER_SEQUENTIAL;
}

/* All files, and their smaller and their larger half where these are wanted. */
static int part_files(struct experiment_arms *arms, const struct config *alone, bool halves)
{
	const struct dataset *all = plan_dataset(&arms->session->plan, alone);
	const uint64_t seed = (uint64_t)config_integer(alone, KEY_RUN_SEED);
	size_t count;
	if (!any_order(alone, all))
		return -1;
	struct sample *sorted = some_by_size(all, seed, FILES_MOST, &count);
	const size_t half = count / 2;
	int code = sorted && half >= CLASS_LEAST ? 0 : -1;
	if (!code)
		code = spread_evenly(&arms->parts[ALL_FILES], all, sorted, count, seed);
	if (!code && halves)
		code = spread_evenly(&arms->parts[SMALLER], all, sorted, half, seed) ||
		       spread_evenly(&arms->parts[LARGER], all, sorted + count - half, half, seed);
	free(sorted);
	return code ? -1 : 0;
}

static int add_depths(
	struct experiment_arms *arms, const struct config *alone, const struct diagnosed *d)
{
	(void)d;
	const enum key_id key = depth_key(alone);
	const int64_t set = config_integer(alone, key);
	struct even_files *even = part_files(arms, alone, false) ? NULL : &arms->parts[ALL_FILES];
	const int64_t values[ARMS_MAX] = {set / 2, set, 2 * set, 4 * set};
	for (size_t i = 0; i < ARMS_MAX; i++)
		if (values[i] > 0)
			(void)arms_add(arms, alone, even, key, values[i], "");
	return arms->count > 1 ? 0 : -1;
}

static int add_ranks(
	struct experiment_arms *arms, const struct config *alone, const struct diagnosed *d)
{
	const int64_t all = config_integer(&d->config, KEY_RUN_RANKS);
	struct even_files *even = part_files(arms, alone, false) ? NULL : &arms->parts[ALL_FILES];
	if (arms_add(arms, alone, even, KEY_RUN_RANKS, 1, READ_BLOCK_RANKS))
		return -1;
	return arms_add(arms, alone, even, KEY_RUN_RANKS, all, READ_BLOCK_RANKS);
}

static int add_sizes(
	struct experiment_arms *arms, const struct config *alone, const struct diagnosed *d)
{
	const enum key_id key = depth_key(alone);
	const int64_t set = config_integer(alone, key);
	if (part_files(arms, alone, true))
		return -1;
	(void)arms_add(arms, alone, &arms->parts[SMALLER], key, set, "smaller");
	(void)arms_add(arms, alone, &arms->parts[LARGER], key, set, "larger");
	if (arms->count < 2)
		return -1;
	/* One at a time of each of several ranks is not one. */
	if (set > 1 && config_integer(&d->config, KEY_RUN_RANKS) < 2)
		(void)arms_add(arms, alone, &arms->parts[ALL_FILES], key, 1, "");
	return 0;
}

/* Other stages than reading get their files from the page cache, for which no memory was promised: as many as can be read in a
 * moment, at the rate of the run at least. */
static const struct dataset *few_files(
	struct experiment_arms *arms, const struct config *config, const struct diagnosed *d)
{
	const struct dataset *all = plan_dataset(&arms->session->plan, config);
	const double most = LOAD_MOST_S * d->summary->median;
	if (!((double)all->count > most))
		return all;
	const uint64_t seed = (uint64_t)config_integer(config, KEY_RUN_SEED);
	struct even_files *part = &arms->parts[ALL_FILES];
	size_t count;
	if (all->offsets || all->count < CLASS_LEAST)
		return NULL;
	if (part->files.samples)
		return &part->files;
	struct sample *some =
		some_by_size(all, seed, (size_t)fmin(fmax(most, CLASS_LEAST), FILES_MOST), &count);
	const int code = some ? spread_evenly(part, all, some, count, seed) : -1;
	free(some);
	return code ? NULL : &part->files;
}

static int add_stage(struct experiment_arms *arms, const char *stage, const struct diagnosed *d)
{
	const struct plan *plan = &arms->session->plan;
	struct arm *arm = &arms->list[arms->count];
	static const struct {
		enum key_id key;
		const char *value;
	} cached[] = {
		{KEY_READ_ENGINE, "pread"}, {KEY_READ_CACHE, "warm"}, {KEY_READ_DIRECT, "off"}};
	const bool reads = stage_is(stage, STAGE_READ);
	const bool in_memory = pipeline_facts(&d->config).reads_memory;
	*arm = (struct arm){
		.dataset = reads ? plan_dataset(plan, &d->config) : few_files(arms, &d->config, d)};
	(void)snprintf(arm->block.stage, sizeof arm->block.stage, "%s", stage);
	struct error err = {0};
	int code = arm->dataset ? limits_stage_alone(&arm->config, &plan->config, &plan->grid,
					  d->point, stage, arm->dataset, &err)
				: -1;
	for (size_t i = 0; i < COUNT(cached) && !reads && !in_memory && !code; i++)
		code = config_set_key(&arm->config, cached[i].key, cached[i].value, &err);
	if (code || !source_choose(&arm->config, NULL, 0, &err) || !arm_fits(arms, arm)) {
		config_release(&arm->config);
		return -1;
	}
	arms->count++;
	return 0;
}

static int add_stages(
	struct experiment_arms *arms, const struct config *alone, const struct diagnosed *d)
{
	(void)alone;
	if (add_stage(arms, d->diagnosis.verdict.stage, d) ||
		add_stage(arms, d->diagnosis.verdict.against, d))
		return -1;
	return 0;
}

/* --- blocks ----------------------------------------------------------------------------------- */

static void set_times(struct experiment_arms *arms, const struct diagnosed *d)
{
	const struct stage_summary *read = summary_stage(d->summary, STAGE_READ_NAME);
	const bool stages = arms->list[0].block.stage[0] != '\0';
	const double reads = stages ? 1 : fmax(d->summary->reads_per_sample, 1e-6);
	const double rate = d->summary->median * reads;
	const double in_flight = read ? rate * histogram_mean(&read->service) * 1e-9 : 1;
	const double batch = (double)(config_integer(&d->config, KEY_BATCH_SIZE) *
				      config_integer(&d->config, KEY_STEP_DEVICES));
	const double files = stages ? fmax(BLOCK_BATCHES * batch, BLOCK_FILES) : BLOCK_FILES;
	const double before = in_flight + (stages ? batch : 1);
	arms->drain_s = stages ? 0 : in_flight / rate;
	arms->block_s = fmin(fmax(files / rate, BLOCK_LEAST_S), BLOCK_MOST_S);
	arms->warmup_s = fmin(fmax(SETTLES * before / rate, WARMUP_LEAST_S), WARMUP_MOST_S);
}

/* The first block's: what was saved up since the last pipeline ended is no part of it. */
static double first_warmup_s(const struct experiment_arms *arms)
{
	const double idle_s = (double)(clock_now_ns() - arms->session->ended_ns) / (double)NS_PER_S;
	return fmin(arms->warmup_s + USES_UP * idle_s, fmax(arms->warmup_s, WARMUP_MOST_S));
}

static double block_seconds(const struct experiment_arms *arms)
{
	return arms->warmup_s + arms->block_s + SET_UP_S;
}

/* Forth and back. More in flight than is set takes longer to come in. */
static double round_seconds(const struct experiment_arms *arms)
{
	double set = 1;
	double seconds = 0;
	for (size_t i = 0; i < arms->count; i++)
		set = arms->list[i].block.as_set ? fmax(arms->list[i].block.value, 1) : set;
	for (size_t i = 0; i < arms->count; i++)
		seconds +=
			2 * (block_seconds(arms) + arms->drain_s * arms->list[i].block.value / set);
	return seconds;
}

/* In all, before it was measured and after. */
static size_t files_read(const struct measurement *m)
{
	const struct stage_measurement *read = measurement_stage(m, STAGE_READ);
	return read && m->measured_seconds > 0
		       ? (size_t)((double)read->items * m->wall_seconds / m->measured_seconds)
		       : 0;
}

/* Each block with files of its own, or in an order of its own: what a block before it read may be in the page cache. */
static int run_block(struct experiment_arms *arms, struct arm *arm, unsigned round, unsigned block,
	uint32_t point)
{
	struct session *session = arms->session;
	struct error err = {0};
	char label[PROGRESS_LABEL_BYTES];
	struct measurement *m = calloc(1, sizeof *m);
	if (!m)
		return -1;
	if (arm->block.stage[0])
		(void)snprintf(label, sizeof label, "%s alone", arm->block.stage);
	else if (strcmp(arm->block.part, READ_BLOCK_RANKS) == 0)
		(void)snprintf(label, sizeof label, "%s = %u, reads alone", arm->block.key,
			arm->block.value);
	else
		(void)snprintf(label, sizeof label, "%s = %u, reads alone%s%s", arm->block.key,
			arm->block.value, arm->block.part[0] ? ", files that are " : "",
			arm->block.part);
	int code = limits_set_number(&arm->config, KEY_RUN_SEED,
		config_integer(&session->plan.config, KEY_RUN_SEED) + 1 + block, &err);
	struct dataset from = *arm->dataset;
	if (arm->even)
		from.samples += arm->even->next;
	if (!code)
		code = session_run_alone(session, &arm->config, &from, label, m, &err);
	if (arm->even)
		arm->even->next = (arm->even->next + files_read(m)) % from.count;
	struct read_block *const of = &arm->block;
	const bool told = !code && m->status != MEASUREMENT_INTERRUPTED &&
			  (of->stage[0] ? measurement_stage_point(m, of->stage, &of->read)
					: measurement_read_point(m, &of->read));
	of->point = point;
	of->round = round;
	if (told && !of->stage[0])
		of->read.rate_error = of->read.latency_deviation_ns / of->read.latency_mean_ns /
				      sqrt((double)of->read.files);
	if (!told && !session_stopped(session))
		log_warn("%s: %s", label,
			err.text[0] ? err.text : "nothing was measured in the time of a block");
	measurement_release(m);
	free(m);
	if (told)
		code = record_append_read_block(
			session->judged ? session->judged : &session->record, of, &err);
	if (told && code)
		log_warn("%s", err.text);
	return told && !code ? 0 : -1;
}

static bool run_rounds(struct experiment_arms *arms, const struct diagnosed *d, double seconds)
{
	struct session *session = arms->session;
	struct error err = {0};
	const struct record *const record = decide_record(session);
	unsigned block = (unsigned)record->read_block_count;
	const size_t before = record->read_block_count;
	const unsigned round = before > 0 ? record->read_blocks[before - 1].round + 1 : 0;
	/* Half the depth tells least, and beside twice and four times as many nothing new. */
	while (arms->count > 2 && !arms->list[0].block.as_set &&
		(arms->count == ARMS_MAX || round_seconds(arms) > seconds)) {
		config_release(&arms->list[0].config);
		memmove(&arms->list[0], &arms->list[1], --arms->count * sizeof arms->list[0]);
	}
	/* Then four times the depth, which takes longest to come in. */
	if (arms->count > 2 && !arms->list[0].block.part[0] && round_seconds(arms) > seconds)
		config_release(&arms->list[--arms->count].config);
	if (before + 2 * arms->count > RECORD_READ_BLOCKS_MAX)
		return false;
	session->progress.total += 2 * arms->count;
	for (size_t i = 0; i < 2 * arms->count && !session_stopped(session); i++) {
		struct arm *arm = &arms->list[i < arms->count ? i : 2 * arms->count - 1 - i];
		const double warmup_s = i > 0 ? arms->warmup_s : first_warmup_s(arms);
		const double block_s = (arm->block.value == 1 ? ONE_LONGER : 1) * arms->block_s;
		if (verify_set_time(&arm->config, warmup_s, block_s, &err) ||
			run_block(arms, arm, round, block++, (uint32_t)d->point))
			break;
	}
	return record->read_block_count > before;
}

/* --- the table -------------------------------------------------------------------------------- */

static const struct question {
	const char *open, *experiment; /* words */
	bool (*is_open)(const struct session *session, const struct diagnosed *d);
	int (*add)(struct experiment_arms *arms, const struct config *alone,
		const struct diagnosed *d); /* arms, of reads alone or others; -1: it cannot be */
} questions[] = {
	{"whether the storage is slow or full", "reading alone at other depths", depth_is_open,
		add_depths},
	{"whether ranks share what limits their reads", "reading alone on one rank, and on all",
		ranks_are_open, add_ranks},
	{"whether the storage is full of bytes, of requests, or of files that it serves at once",
		"reading larger and smaller files alone, and one at a time", size_is_open,
		add_sizes},
	{"which of two stages is the bottleneck", "running each of them alone", stages_are_open,
		add_stages},
};

static int reads_alone(struct session *session, size_t point, struct config *out, struct error *err)
{
	const struct plan *plan = &session->plan;
	struct config config = {0};
	int code = config_grid_point(&plan->config, &plan->grid, point, &config, err);
	if (!code)
		code = limits_stage_alone(out, &plan->config, &plan->grid, point, STAGE_READ_NAME,
			plan_dataset(plan, &config), err);
	const int64_t batch = code ? 0 : config_integer(out, KEY_BATCH_SIZE);
	if (!code && batch > BLOCK_BATCH)
		code = limits_set_number(out, KEY_BATCH_SIZE, BLOCK_BATCH, err);
	config_release(&config);
	return code;
}

static bool answer(struct session *session, const struct question *question,
	const struct diagnosed *d, double seconds)
{
	struct experiment_arms *arms = calloc(1, sizeof *arms);
	struct config alone = {0};
	struct error err = {0};
	bool ran = false;
	if (arms)
		arms->session = session;
	bool can = arms && reads_alone(session, d->point, &alone, &err) == 0 &&
		   question->add(arms, &alone, d) == 0;
	if (can)
		set_times(arms, d);
	/* Fewer depths still tell something, fewer sizes or stages do not. */
	if (can && (arms->list[0].block.part[0] || arms->list[0].block.stage[0]))
		can = round_seconds(arms) <= seconds;
	if (can) {
		log_info("it is not yet clear %s: %s", question->open, question->experiment);
		ran = run_rounds(arms, d, seconds);
	}
	if (arms)
		arms_close(arms);
	config_release(&alone);
	free(arms);
	return ran;
}

bool decide(struct session *session, const struct diagnosed *d, double seconds)
{
	for (size_t i = 0; i < COUNT(questions); i++)
		if (questions[i].is_open(session, d) && answer(session, &questions[i], d, seconds))
			return true;
	return false;
}
