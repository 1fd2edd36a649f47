/* Configurations in which a stage takes no time, or in which one stage works and the others do
 * nothing. */
#include "harness/command/limits.h"

#include "harness/analyze/stop_rule.h"
#include "harness/base/array.h"
#include "harness/command/step_facts.h"
#include "harness/config/shape.h"
#include "harness/record/config_json.h"
#include "harness/record/record.h"
#include "pipelines/pipeline.h"
#include "workloads/backend/backend.h"
#include "workloads/source/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DECODE_LIMITS_MAX = 8, OTHER_LIMITS = 3, NUMBER_BYTES = 24, SETS_MAX = 4, PLANTED_MAX = 6 };

/* Half of the interval that a limit's rate is measured to. */
static const double LIMIT_SHARE = 0.02;

/* Keys that take the largest value of the sweep where the bound of memory is asked for. */
static const enum key_id largest_keys[] = {
	KEY_READ_THREADS, KEY_READ_DEPTH, KEY_DECODE_WORKERS, KEY_BATCH_SIZE, KEY_PREFETCH_DEPTH};

/* How a stage is replaced by one that hands out ready-made outputs of the same size and takes no
 * time: keys that are set, and the keys of [inject], by their prefixes, that are reset, since
 * what is planted in the stage goes with it. */
static const struct substitution {
	const char *stage;
	struct {
		enum key_id key;
		const char *value;
	} sets[SETS_MAX];
	const char *planted[PLANTED_MAX];
} substitutions[] = {
	{STAGE_READ_NAME, {{KEY_READ_ENGINE, "memory"}}, {"read_"}},
	{STAGE_DECODE_NAME,
		{{KEY_CODEC_NAME, "null"}, {KEY_OVERHEAD_SAMPLE, "0"}, {KEY_OVERHEAD_BATCH, "0"}},
		{"decode_", "lock_", "slow_worker", "slow_share", "slow_factor", "leak"}},
	{STAGE_UPLOAD_NAME, {{KEY_UPLOAD_MODE, "none"}}, {"upload_"}},
	/* The null step has one device, and nobody to exchange with. */
	{STAGE_STEP_NAME,
		{{KEY_STEP_BACKEND, "null"}, {KEY_STEP_DEVICES, "1"}, {KEY_OVERHEAD_STEP, "0"},
			{KEY_OVERHEAD_INDEX, "0"}},
		{"step_", "sync_", "slow_device"}},
	{STAGE_CHECKPOINT_NAME, {{KEY_CHECKPOINT_EVERY, "0"}}, {"checkpoint_"}},
	{STAGE_EVALUATE_NAME, {{KEY_EVALUATE_EVERY, "0"}}, {NULL}},
	/* Of ranks: one byte is no gradient. */
	{STAGE_SYNC_NAME,
		{{KEY_SYNC_BANDWIDTH, "0"}, {KEY_SYNC_LATENCY, "0"}, {KEY_SYNC_GRADIENTS, "1"}},
		{"sync_"}},
};

bool limits_has_stage(const struct config *config, const char *stage)
{
	const struct workload_facts facts = pipeline_facts(config);
	if (stage_is(stage, STAGE_READ))
		return !facts.reads_memory;
	if (stage_is(stage, STAGE_DECODE))
		return config_integer(config, KEY_CODEC_NAME) != CODEC_NAME_NULL ||
		       config_integer(config, KEY_OVERHEAD_SAMPLE) > 0 ||
		       config_integer(config, KEY_OVERHEAD_BATCH) > 0 ||
		       config_real(config, KEY_OVERHEAD_OBJECTS) > 0 ||
		       config_integer(config, KEY_OVERHEAD_BANDWIDTH) > 0;
	if (stage_is(stage, STAGE_UPLOAD))
		return shape_uploads(config, &facts);
	if (stage_is(stage, STAGE_SYNC))
		return step_facts_exchange(config) > 0 || step_facts_ranks_exchange(config);
	if (stage_is(stage, STAGE_CHECKPOINT))
		return config_integer(config, KEY_CHECKPOINT_EVERY) > 0;
	if (stage_is(stage, STAGE_EVALUATE))
		return config_integer(config, KEY_EVALUATE_EVERY) > 0;
	return !facts.step_null;
}

/* A device cannot do without the copy, nor without the sums of its gradients. */
bool substitute_is_possible(const struct config *config, const char *stage)
{
	return !(stage_is(stage, STAGE_UPLOAD) || stage_is(stage, STAGE_SYNC)) ||
	       !pipeline_facts(config).step_has_memory;
}

static bool is_planted(const struct substitution *substitution, const struct key *key)
{
	if (strcmp(key->section, "inject") != 0)
		return false;
	for (size_t i = 0; i < PLANTED_MAX && substitution->planted[i]; i++)
		if (strncmp(key->name, substitution->planted[i],
			    strlen(substitution->planted[i])) == 0)
			return true;
	return false;
}

int substitute_stage(struct config *config, const char *stage, const struct dataset *dataset,
	const char **how, struct error *err)
{
	const struct substitution *by = substitutions;
	struct pipeline_plan planned;
	int code = 0;
	while (strcmp(by->stage, stage) != 0)
		by++;
	/* Checkpoints that are as large as gradients stay so. */
	if (stage_is(stage, STAGE_SYNC) && pipeline_plan(config, dataset, &planned, NULL) == 0 &&
		planned.checkpoint_bytes > 0)
		code = limits_set_number(
			config, KEY_CHECKPOINT_BYTES, (int64_t)planned.checkpoint_bytes, err);
	for (size_t i = 0; i < SETS_MAX && by->sets[i].value && !code; i++)
		code = config_set_key(config, by->sets[i].key, by->sets[i].value, err);
	for (int key = 0; key < KEY_COUNT && !code; key++)
		if (is_planted(by, &config_keys[key]))
			code = config_set_key(
				config, (enum key_id)key, config_keys[key].fallback, err);
	if (code || !stage_is(stage, STAGE_READ))
		return code;
	*how = "from memory";
	/* Pools that were not even summed up: the reason is another one, which the run itself tells. */
	if (pipeline_plan(config, dataset, &planned, NULL) == 0 || planned.pool_bytes == 0)
		return 0;
	*how = "from the page cache (the data set does not fit into memory)";
	code = config_set_key(config, KEY_READ_ENGINE, "pread", err);
	return code ? code : config_set_key(config, KEY_READ_CACHE, "warm", err);
}

/* An overhead that is declared or swept. */
static bool limits_has_cost(const struct config *config, enum key_id key)
{
	return config_real(config, key) > 0 || config_find_axis(config, key);
}

static bool is_null_step(const struct config *config)
{
	return pipeline_facts(config).step_null && !config_find_axis(config, KEY_STEP_BACKEND) &&
	       !limits_has_cost(config, KEY_OVERHEAD_STEP) &&
	       !limits_has_cost(config, KEY_OVERHEAD_INDEX);
}

static bool is_null_codec(const struct config *config)
{
	return config_integer(config, KEY_CODEC_NAME) == CODEC_NAME_NULL &&
	       !config_find_axis(config, KEY_CODEC_NAME) &&
	       !limits_has_cost(config, KEY_OVERHEAD_SAMPLE) &&
	       !limits_has_cost(config, KEY_OVERHEAD_BATCH) &&
	       !limits_has_cost(config, KEY_OVERHEAD_OBJECTS) &&
	       !limits_has_cost(config, KEY_OVERHEAD_BANDWIDTH);
}

static bool is_memory(const struct config *config)
{
	return pipeline_facts(config).reads_memory && !config_find_axis(config, KEY_READ_ENGINE);
}

static int compare_integers(const void *a, const void *b)
{
	const int64_t left = *(const int64_t *)a;
	const int64_t right = *(const int64_t *)b;
	return left < right ? -1 : left > right;
}

/* Worker counts to decode alone with: the swept ones, ascending; when there are many, some of them,
 * the least and the largest among these. */
static size_t worker_counts(const struct config *config, int64_t out[DECODE_LIMITS_MAX])
{
	const struct config_axis *axis = config_find_axis(config, KEY_DECODE_WORKERS);
	if (!axis) {
		out[0] = config_integer(config, KEY_DECODE_WORKERS);
		return 1;
	}
	int64_t *all = calloc(axis->count, sizeof *all);
	if (!all)
		return 0;
	for (size_t i = 0; i < axis->count; i++)
		all[i] = axis->values[i].integer;
	qsort(all, axis->count, sizeof *all, compare_integers);
	size_t count = axis->count < DECODE_LIMITS_MAX ? axis->count : DECODE_LIMITS_MAX;
	for (size_t i = 0; i < count; i++)
		out[i] = all[count == 1 ? 0 : i * (axis->count - 1) / (count - 1)];
	free(all);
	size_t distinct = 0;
	for (size_t i = 0; i < count; i++)
		if (distinct == 0 || out[distinct - 1] != out[i])
			out[distinct++] = out[i];
	return distinct;
}

bool limits_enough(const double *rates, size_t count)
{
	return stop_rule_estimate(rates, count, LIMIT_SHARE).enough;
}

size_t limits_count(const struct config *config)
{
	int64_t workers[DECODE_LIMITS_MAX];
	if (!config_on(config, KEY_MEASURE_LIMITS))
		return 0;
	size_t count = 1; /* the harness itself */
	count += is_memory(config) ? 0 : 1;
	count += is_null_step(config) ? 0 : 1;
	count += is_null_codec(config) ? 0 : worker_counts(config, workers);
	return count;
}

int limits_set_number(struct config *config, enum key_id key, int64_t value, struct error *err)
{
	char text[NUMBER_BYTES];
	(void)snprintf(text, sizeof text, "%lld", (long long)value);
	return config_set_key(config, key, text, err);
}

/* A point's configuration, with nothing else that takes time.  LIMITS_UNKNOWN: the first point's, with
 * the sweep's largest counts. */
static int base_config(struct config *out, const struct config *config,
	const struct config_grid *grid, size_t point, struct error *err)
{
	const bool unknown = point == LIMITS_UNKNOWN;
	static const struct {
		enum key_id key;
		const char *value;
	} beside[] = {{KEY_RUN_VERIFY, "off"}, {KEY_MEASURE_EPOCHS, "0"},
		{KEY_MEASURE_DEPTHS, "off"}, {KEY_CHECKPOINT_EVERY, "0"}, {KEY_EVALUATE_EVERY, "0"},
		{KEY_DECODE_PERSISTENT, "on"}, {KEY_DECODE_STARTUP, "0"}};
	int code = config_grid_point(config, grid, unknown ? 0 : point, out, err);
	for (size_t i = 0; i < COUNT(largest_keys) && unknown && !code; i++) {
		const struct config_axis *axis = config_find_axis(config, largest_keys[i]);
		int64_t most = 0;
		for (size_t v = 0; axis && v < axis->count; v++)
			most = axis->values[v].integer > most ? axis->values[v].integer : most;
		if (axis)
			code = limits_set_number(out, largest_keys[i], most, err);
	}
	for (size_t i = 0; i < COUNT(beside) && !code; i++)
		code = config_set_key(out, beside[i].key, beside[i].value, err);
	/* Alone it takes no turns. */
	if (!code && config_integer(out, KEY_PREFETCH_DEPTH) == 0)
		code = limits_set_number(out, KEY_PREFETCH_DEPTH, 1, err);
	return code;
}

struct limit_context {
	const struct config *swept; /* with its axes */
	const struct config *base;
	const struct dataset *dataset;
	struct limit_list *list;
	struct error *err;
};

/* The swept keys as `config` has them. */
static void add_settings(
	struct stage_limit *limit, const struct config *swept, const struct config *config)
{
	size_t used = 0;
	limit->settings[0] = '\0';
	for (size_t i = 0; i < swept->axis_count && used < sizeof limit->settings; i++) {
		const enum key_id key = swept->axes[i].key;
		char name[CONFIG_NAME_BYTES];
		char value[CONFIG_VALUE_BYTES];
		used += (size_t)snprintf(limit->settings + used, sizeof limit->settings - used,
			"%s%s=%s", i ? " " : "", config_key_name(key, name),
			config_format_value(key, &config->values[key], value, sizeof value));
	}
}

/* A run without these stages (up to a NULL); how: where its files come from. */
static int add_job(const struct limit_context *context, const char *stage,
	const char *const *without, struct limit_job **job, const char **how)
{
	*how = "";
	*job = &context->list->jobs[context->list->count];
	int code = config_copy(&(*job)->config, context->base, context->err);
	if (code)
		return code;
	context->list->count++;
	(void)snprintf((*job)->limit.stage, sizeof(*job)->limit.stage, "%s", stage);
	add_settings(&(*job)->limit, context->swept, context->base);
	for (; *without && !code; without++)
		code = substitute_stage(
			&(*job)->config, *without, context->dataset, how, context->err);
	return code;
}

static int add_read(const struct limit_context *context)
{
	static const char *const without[] = {
		STAGE_DECODE_NAME, STAGE_STEP_NAME, STAGE_UPLOAD_NAME, NULL};
	struct limit_job *job;
	const char *how;
	const int code = add_job(context, STAGE_READ_NAME, without, &job, &how);
	if (code)
		return code;
	char why[NOTE_BYTES];
	const struct source_ops *ops = source_choose(&job->config, why, sizeof why, NULL);
	const unsigned threads = shape_readers(&job->config);
	const bool by_workers = shape_by_workers(&job->config);
	char cache[CONFIG_VALUE_BYTES];
	(void)snprintf(job->limit.how, sizeof job->limit.how,
		"alone: %s, %u %s%s x %u in flight, cache %s; nothing decoded, null step",
		ops ? ops->name : "no engine", threads, by_workers ? "worker" : "thread",
		threads == 1 ? "" : "s", shape_read_depth(&job->config),
		config_format_value(
			KEY_READ_CACHE, &job->config.values[KEY_READ_CACHE], cache, sizeof cache));
	return 0;
}

static int add_decode(const struct limit_context *context, int64_t workers)
{
	static const char *const without[] = {
		STAGE_READ_NAME, STAGE_STEP_NAME, STAGE_UPLOAD_NAME, NULL};
	struct limit_job *job;
	const char *how;
	struct config with = {0};
	int code = add_job(context, STAGE_DECODE_NAME, without, &job, &how);
	if (!code)
		code = config_copy(&with, context->base, context->err);
	if (code)
		return code;
	code = limits_set_number(&with, KEY_DECODE_WORKERS, workers, context->err);
	if (!code)
		add_settings(&job->limit, context->swept, &with);
	config_release(&with);
	if (code)
		return code;
	(void)snprintf(job->limit.how, sizeof job->limit.how, "alone: %lld worker%s, %s, null step",
		(long long)workers, workers == 1 ? "" : "s", how);
	return limits_set_number(&job->config, KEY_DECODE_WORKERS, workers, context->err);
}

static int add_step(const struct limit_context *context)
{
	static const char *const without[] = {STAGE_READ_NAME, STAGE_DECODE_NAME, NULL};
	struct limit_job *job;
	const char *how;
	const int code = add_job(context, STAGE_STEP_NAME, without, &job, &how);
	if (code)
		return code;
	const struct backend_ops *ops = backend_choose(&job->config, NULL, 0, NULL);
	char devices[NAME_BYTES] = "";
	if (config_integer(&job->config, KEY_STEP_DEVICES) > 1)
		(void)snprintf(devices, sizeof devices, ", %lld devices",
			(long long)config_integer(&job->config, KEY_STEP_DEVICES));
	(void)snprintf(job->limit.how, sizeof job->limit.how,
		"alone: %s %s, batches of %lld%s; %s, nothing decoded", ops ? ops->name : "no",
		config_text(&job->config, KEY_STEP_MODEL),
		(long long)config_integer(&job->config, KEY_BATCH_SIZE), devices, how);
	return 0;
}

static int add_harness(const struct limit_context *context)
{
	static const char *const without[] = {
		STAGE_READ_NAME, STAGE_DECODE_NAME, STAGE_STEP_NAME, STAGE_UPLOAD_NAME, NULL};
	struct limit_job *job;
	const char *how;
	const int code = add_job(context, "harness", without, &job, &how);
	if (!code)
		(void)snprintf(job->limit.how, sizeof job->limit.how,
			"mlbench's own ceiling: %s, nothing decoded, null step", how);
	return code;
}

int limits_stage_alone(struct config *out, const struct config *config,
	const struct config_grid *grid, size_t point, const char *stage,
	const struct dataset *dataset, struct error *err)
{
	static const char *const without[] = {
		STAGE_DECODE_NAME, STAGE_STEP_NAME, STAGE_UPLOAD_NAME, STAGE_READ_NAME};
	const char *how;
	int code = base_config(out, config, grid, point, err);
	for (size_t i = 0; i < COUNT(without) && !code; i++)
		if (strcmp(stage, without[i]) != 0)
			code = substitute_stage(out, without[i], dataset, &how, err);
	return code;
}

int limits_open(struct limit_list *list, const struct config *config,
	const struct config_grid *grid, size_t point, const struct dataset *dataset,
	struct error *err)
{
	struct config base = {0};
	*list = (struct limit_list){0};
	if (!config_on(config, KEY_MEASURE_LIMITS))
		return 0;
	list->jobs = calloc(DECODE_LIMITS_MAX + OTHER_LIMITS, sizeof *list->jobs);
	if (!list->jobs)
		return error_set(err, -ENOMEM, "out of memory for the limits");
	const struct limit_context context = {
		.swept = config, .base = &base, .dataset = dataset, .list = list, .err = err};
	int code = base_config(&base, config, grid, point, err);
	if (!code && !is_memory(config))
		code = add_read(&context);
	int64_t workers[DECODE_LIMITS_MAX];
	const size_t counts = is_null_codec(config) ? 0 : worker_counts(config, workers);
	for (size_t i = 0; i < counts && !code; i++)
		code = add_decode(&context, workers[i]);
	if (!code && !is_null_step(config))
		code = add_step(&context);
	if (!code)
		code = add_harness(&context);
	config_release(&base);
	return code ? error_prefix(err, code, "limits") : 0;
}

void limits_close(struct limit_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		config_release(&list->jobs[i].config);
	free(list->jobs);
	*list = (struct limit_list){0};
}
