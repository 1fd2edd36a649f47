/* Which variants there are, and their configurations. */
#include "harness/command/relief.h"

#include "harness/base/array.h"
#include "harness/command/limits.h"
#include "harness/config/config.h"
#include "pipelines/pipeline.h"
#include "workloads/source/limiter.h"

#include <stdio.h>
#include <string.h>

enum { RELIEF_DEEPER = 4, RELIEF_NUMBER_BYTES = 24 };

static const struct {
	const char *name, *ready;
} relief_stages[] = {
	{STAGE_READ_NAME, "files from memory"},
	{STAGE_DECODE_NAME, "ready-made samples"},
	{STAGE_UPLOAD_NAME, "no copy"},
	{STAGE_STEP_NAME, "a step of no time"},
	{STAGE_SYNC_NAME, "no exchange"},
	{STAGE_CHECKPOINT_NAME, "no checkpoints"},
	{STAGE_EVALUATE_NAME, "no evaluations"},
};

static int relief_add(struct relief *reliefs, size_t *count, const struct config *twin,
	const char *label, struct error *err)
{
	struct relief *relief = &reliefs[*count];
	*relief = (struct relief){.stage = ""};
	const int code = config_copy(&relief->config, twin, err);
	if (code)
		return code;
	(*count)++;
	(void)snprintf(relief->label, sizeof relief->label, "%s", label);
	return 0;
}

/* What is said of files means nothing for those in memory. */
static int relief_keep_valid(struct config *config, struct error *err)
{
	if (!pipeline_facts(config).reads_memory)
		return 0;
	const int code = config_set_key(config, KEY_READ_CACHE, "as-is", err);
	return code ? code : config_set_key(config, KEY_READ_DIRECT, "off", err);
}

static int relief_of_stage(size_t i, const struct config *twin, const struct dataset *dataset,
	struct relief *reliefs, size_t *count, struct error *err)
{
	char label[RELIEF_TEXT_BYTES];
	const char *how = relief_stages[i].ready;
	struct error why = {0};
	(void)snprintf(label, sizeof label, "without-%s", relief_stages[i].name);
	int code = relief_add(reliefs, count, twin, label, err);
	if (code)
		return code;
	struct relief *relief = &reliefs[*count - 1];
	code = substitute_stage(&relief->config, relief_stages[i].name, dataset, &how, err);
	/* No device, no copy to it. */
	if (!code && stage_is(relief_stages[i].name, STAGE_STEP) &&
		pipeline_facts(twin).step_has_memory)
		code = substitute_stage(&relief->config, STAGE_UPLOAD_NAME, dataset, NULL, err);
	if (!code && stage_is(relief_stages[i].name, STAGE_READ))
		code = relief_keep_valid(&relief->config, err);
	if (!code && config_validate(&relief->config, &why))
		(void)snprintf(
			relief->why, sizeof relief->why, "%.*s", RELIEF_WHY_BYTES - 1, why.text);
	(void)snprintf(relief->stage, sizeof relief->stage, "%s", relief_stages[i].name);
	(void)snprintf(relief->what, sizeof relief->what, "%s: %s%s", relief_stages[i].name,
		how == relief_stages[i].ready ? "" : "files ", how);
	return code;
}

/* A key with another number; stage "": it relieves none. */
static int relief_by_key(const char *label, const char *stage, enum key_id key, int64_t value,
	const struct config *twin, struct relief *reliefs, size_t *count, struct error *err)
{
	char text[RELIEF_NUMBER_BYTES];
	if ((double)value > config_keys[key].max)
		return 0;
	int code = relief_add(reliefs, count, twin, label, err);
	if (code)
		return code;
	struct relief *relief = &reliefs[*count - 1];
	(void)snprintf(text, sizeof text, "%lld", (long long)value);
	code = config_set_key(&relief->config, key, text, err);
	(void)snprintf(relief->stage, sizeof relief->stage, "%s", stage);
	(void)snprintf(relief->what, sizeof relief->what, "%s.%s=%s", config_keys[key].section,
		config_keys[key].name, text);
	return code;
}

/* Files in memory behind an emulated store take time, too. */
static bool relief_has_stage(const struct config *twin, const char *stage)
{
	return limits_has_stage(twin, stage) ||
	       (stage_is(stage, STAGE_READ) && limiter_wanted(twin));
}

int relief_list(const struct config *twin, const struct dataset *dataset, bool prefetch,
	struct relief reliefs[RELIEFS_MAX], size_t *count, struct error *err)
{
	const int64_t workers = config_integer(twin, KEY_DECODE_WORKERS);
	const int64_t depth = config_integer(twin, KEY_PREFETCH_DEPTH);
	int code = 0;
	*count = 0;
	for (size_t i = 0; i < COUNT(relief_stages) && !code; i++)
		if (relief_has_stage(twin, relief_stages[i].name) &&
			substitute_is_possible(twin, relief_stages[i].name))
			code = relief_of_stage(i, twin, dataset, reliefs, count, err);
	/* Where loading and the step take turns, more workers load no more at once. */
	if (!code && depth > 0)
		code = relief_by_key("more-workers", "", KEY_DECODE_WORKERS, 2 * workers, twin,
			reliefs, count, err);
	if (!code && (depth == 0 || prefetch))
		code = relief_by_key("more-prefetch", prefetch ? STAGE_PREFETCH_NAME : "",
			KEY_PREFETCH_DEPTH, depth > 0 ? RELIEF_DEEPER * depth : 2, twin, reliefs,
			count, err);
	return code;
}

void relief_close(struct relief *reliefs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		config_release(&reliefs[i].config);
}
