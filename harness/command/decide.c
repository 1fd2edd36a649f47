/* Stages alone, in turns: see decide.h. */
#include "harness/command/decide.h"

#include "harness/analyze/reads_alone.h"
#include "harness/analyze/verdict.h"
#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/log.h"
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
	BLOCK_FILES = 40,  /* of a block, at the set depth */
	BLOCK_BATCH = 8,   /* samples, at most: blocks end with a batch */
	CLASS_LEAST = 16,  /* files of a half */
	BLOCK_BATCHES = 6, /* of a stage beside another one */
	STAGE_BLOCKS_MOST = 8,
};

static const double BLOCK_LEAST_S = 0.25, BLOCK_MOST_S = 1.5;
static const double WARMUP_LEAST_S = 0.06, WARMUP_MOST_S = 1;
static const double SETTLES = 2;       /* times, that as many files as are in flight are done */
static const double SET_UP_S = 0.05;   /* of a block */
static const double LOAD_MOST_S = 1;   /* for files that a stage alone takes from the page cache */
static const double SURE_ENOUGH = 0.9; /* of bytes or requests */

/* One arm: a configuration, and the data that it reads. */
struct arm {
	struct config config;
	const struct dataset *dataset;
	struct read_block block; /* without its figures */
};

struct experiment_arms {
	struct session *session;
	struct arm list[ARMS_MAX];
	size_t count;
	struct dataset parts[2]; /* their samples are owned */
	double warmup_s, block_s;
};

static void arms_close(struct experiment_arms *arms)
{
	for (size_t i = 0; i < arms->count; i++)
		config_release(&arms->list[i].config);
	free(arms->parts[0].samples);
	free(arms->parts[1].samples);
}

/* --- what is open ----------------------------------------------------------------------------- */

static bool resource_is(const struct diagnosed *d, const char *const *names)
{
	for (; *names; names++)
		if (strcmp(d->diagnosis.verdict.resource, *names) == 0)
			return true;
	return false;
}

static bool has_blocks(const struct record *record, size_t point, bool parts)
{
	for (size_t i = 0; i < record->read_block_count; i++)
		if (record->read_blocks[i].point == point && !record->read_blocks[i].stage[0] &&
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
	       !has_blocks(&session->record, d->point, false);
}

static bool stages_are_open(const struct session *session, const struct diagnosed *d)
{
	const struct verdict *v = &d->diagnosis.verdict;
	const struct record *record = &session->record;
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
	       !has_blocks(&session->record, d->point, true);
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
	const struct dataset *dataset, enum key_id key, int64_t value, const char *part)
{
	struct arm *arm = &arms->list[arms->count];
	const int64_t set = config_integer(alone, key);
	*arm = (struct arm){
		.dataset = dataset, .block = {.value = (uint32_t)value, .as_set = value == set}};
	char name[CONFIG_NAME_BYTES];
	(void)snprintf(arm->block.key, sizeof arm->block.key, "%s", config_key_name(key, name));
	(void)snprintf(arm->block.part, sizeof arm->block.part, "%s", part);
	if (config_copy(&arm->config, alone, NULL) ||
		limits_set_number(&arm->config, key, value, NULL) || !arm_fits(arms, arm)) {
		config_release(&arm->config);
		return -1;
	}
	arms->count++;
	return 0;
}

static int add_depths(
	struct experiment_arms *arms, const struct config *alone, const struct diagnosed *d)
{
	(void)d;
	const enum key_id key = depth_key(alone);
	const int64_t set = config_integer(alone, key);
	const struct dataset *dataset = plan_dataset(&arms->session->plan, alone);
	const int64_t values[ARMS_MAX] = {set / 2, set, 2 * set, 4 * set};
	for (size_t i = 0; i < ARMS_MAX; i++)
		if (values[i] > 0)
			(void)arms_add(arms, alone, dataset, key, values[i], "");
	return arms->count > 1 ? 0 : -1;
}

static int by_bytes(const void *a, const void *b)
{
	const uint64_t left = ((const struct sample *)a)->bytes;
	const uint64_t right = ((const struct sample *)b)->bytes;
	return (left > right) - (left < right);
}

/* `count` of these samples, every so many. */
static int take_part(struct dataset *part, const struct dataset *all, const struct sample *samples,
	size_t count, size_t every)
{
	*part = *all;
	part->samples = malloc((count + 1) * sizeof *part->samples);
	if (!part->samples)
		return -1;
	part->count = part->files = count;
	part->evaluated = NULL;
	part->total_bytes = 0;
	for (size_t s = 0; s < count; s++) {
		part->samples[s] = samples[s * every];
		part->total_bytes += part->samples[s].bytes;
	}
	part->stored_bytes = part->total_bytes;
	return 0;
}

/* The halves of a data set whose samples are files of their own. */
static int halve(struct experiment_arms *arms, const struct dataset *all)
{
	const size_t half = all->count / 2;
	struct sample *sorted = malloc((all->count + 1) * sizeof *sorted);
	if (!sorted || half < CLASS_LEAST || all->offsets) {
		free(sorted);
		return -1;
	}
	memcpy(sorted, all->samples, all->count * sizeof *sorted);
	qsort(sorted, all->count, sizeof *sorted, by_bytes);
	for (size_t i = 0; i < 2; i++)
		if (take_part(&arms->parts[i], all, sorted + (i ? all->count - half : 0), half, 1))
			break;
	free(sorted);
	return arms->parts[1].samples ? 0 : -1;
}

static int add_sizes(
	struct experiment_arms *arms, const struct config *alone, const struct diagnosed *d)
{
	(void)d;
	const enum key_id key = depth_key(alone);
	const int64_t set = config_integer(alone, key);
	if (halve(arms, plan_dataset(&arms->session->plan, alone)))
		return -1;
	(void)arms_add(arms, alone, &arms->parts[0], key, set, "smaller");
	(void)arms_add(arms, alone, &arms->parts[1], key, set, "larger");
	return arms->count == 2 ? 0 : -1;
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
	const size_t count = (size_t)fmax(most, CLASS_LEAST);
	if (all->offsets || all->count < count)
		return NULL;
	if (!arms->parts[0].samples &&
		take_part(&arms->parts[0], all, all->samples, count, all->count / count))
		return NULL;
	return &arms->parts[0];
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
	arms->block_s = fmin(fmax(files / rate, BLOCK_LEAST_S), BLOCK_MOST_S);
	arms->warmup_s = fmin(fmax(SETTLES * before / rate, WARMUP_LEAST_S), WARMUP_MOST_S);
}

static double block_seconds(const struct experiment_arms *arms)
{
	return arms->warmup_s + arms->block_s + SET_UP_S;
}

/* Each block in an order of files of its own: what a block before it read may be in the page cache. */
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
	else
		(void)snprintf(label, sizeof label, "%s = %u, reads alone%s%s", arm->block.key,
			arm->block.value, arm->block.part[0] ? ", files that are " : "",
			arm->block.part);
	int code = limits_set_number(&arm->config, KEY_RUN_SEED,
		config_integer(&session->plan.config, KEY_RUN_SEED) + 1 + block, &err);
	if (!code)
		code = session_run_alone(session, &arm->config, arm->dataset, label, m, &err);
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
		code = record_append_read_block(&session->record, of, &err);
	if (told && code)
		log_warn("%s", err.text);
	return told && !code ? 0 : -1;
}

static bool run_rounds(struct experiment_arms *arms, const struct diagnosed *d, double seconds)
{
	struct session *session = arms->session;
	struct error err = {0};
	unsigned block = (unsigned)session->record.read_block_count;
	const size_t before = session->record.read_block_count;
	const unsigned round = before > 0 ? session->record.read_blocks[before - 1].round + 1 : 0;
	/* Half the depth tells least, and beside twice and four times as many nothing new. */
	while (arms->count > 2 && !arms->list[0].block.as_set &&
		(arms->count == ARMS_MAX ||
			2 * (double)arms->count * block_seconds(arms) > seconds)) {
		config_release(&arms->list[0].config);
		memmove(&arms->list[0], &arms->list[1], --arms->count * sizeof arms->list[0]);
	}
	if (before + 2 * arms->count > RECORD_READ_BLOCKS_MAX)
		return false;
	for (size_t i = 0; i < arms->count; i++)
		if (verify_set_time(&arms->list[i].config, arms->warmup_s, arms->block_s, &err))
			return false;
	session->progress.total += 2 * arms->count;
	for (size_t i = 0; i < 2 * arms->count && !session_stopped(session); i++) {
		const size_t at = i < arms->count ? i : 2 * arms->count - 1 - i;
		if (run_block(arms, &arms->list[at], round, block++, (uint32_t)d->point))
			break;
	}
	return session->record.read_block_count > before;
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
	{"whether the storage is full of bytes or of requests",
		"reading larger and smaller files alone", size_is_open, add_sizes},
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
	/* Fewer depths still tell something, fewer stages do not. */
	if (can && arms->list[0].block.stage[0])
		can = 2 * (double)arms->count * block_seconds(arms) <= seconds;
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
		if (questions[i].is_open(session, d))
			return answer(session, &questions[i], d, seconds);
	return false;
}
