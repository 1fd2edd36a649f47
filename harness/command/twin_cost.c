#include "harness/command/twin_cost.h"

#include "harness/base/array.h"
#include "harness/base/files.h"
#include "harness/command/paired.h"
#include "harness/record/measurement.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TWIN_COST_SAMPLES = 200, TWIN_COST_PATH = 4096 };

/* What is not the twin's own work, and what would hold it up. */
static int twin_cost_strip(struct config *config, const char *folder, struct error *err)
{
	static const struct {
		const char *key, *value;
	} changes[] = {
		{"step.backend", "null"},
		{"step.devices", "1"},
		{"decode.workers", "1"},
		{"decode.startup", "0"},
		{"prefetch.depth", "4"},
		{"read.cache", "as-is"},
		{"read.direct", "off"},
		{"measure.duration", "1s"},
		{"measure.warmup", "300ms"},
		{"measure.repeats", "1"},
		{"measure.limits", "off"},
		{"trace.schedule", ""},
	};
	char path[TWIN_COST_PATH];
	char number[32];
	int code = 0;
	const int64_t samples = config_integer(config, KEY_DATASET_SAMPLES);
	for (int key = 0; key < KEY_COUNT && !code; key++)
		if ((strcmp(config_keys[key].section, "inject") == 0 ||
			    strcmp(config_keys[key].section, "overhead") == 0) &&
			!config_is_default(config, (enum key_id)key))
			code = config_set_key(
				config, (enum key_id)key, config_keys[key].fallback, err);
	for (size_t i = 0; i < COUNT(changes) && !code; i++) {
		const enum key_id key = config_find_key(changes[i].key);
		if (key != KEY_COUNT)
			code = config_set_key(config, key, changes[i].value, err);
	}
	(void)snprintf(path, sizeof path, "%s/data", folder);
	(void)snprintf(number, sizeof number, "%d",
		samples > 0 && samples < TWIN_COST_SAMPLES ? (int)samples : TWIN_COST_SAMPLES);
	if (!code)
		code = config_set_key(config, KEY_DATASET_SAMPLES, number, err);
	(void)snprintf(number, sizeof number, "%d",
		config_integer(config, KEY_BATCH_SIZE) < 16
			? (int)config_integer(config, KEY_BATCH_SIZE)
			: 16);
	if (!code)
		code = config_set_key(config, KEY_BATCH_SIZE, number, err);
	return code ? code : config_set_key(config, KEY_DATASET_PATH, path, err);
}

static int twin_cost_of(const struct record *record, double *ns, struct error *err)
{
	struct measurement m = {0};
	int code = record->entry_count == 0 ? -ENODATA : record_load(record, 0, &m, err);
	double decode = NAN;
	double read = 0;
	for (size_t i = 0; !code && i < m.stage_count; i++) {
		const struct stage_measurement *const stage = &m.stages[i];
		const double each =
			stage->items > 0 ? stage->cpu_seconds * 1e9 / (double)stage->items : NAN;
		if (strcmp(stage->name, STAGE_DECODE_NAME) == 0)
			decode = each;
		else if (strcmp(stage->name, STAGE_READ_NAME) == 0 && isfinite(each))
			read = each; /* the job's loader reads, too */
	}
	*ns = decode + read;
	measurement_release(&m);
	return code || isfinite(*ns)
		       ? code
		       : error_set(err, -ENODATA, "the workers' CPU time is not told here");
}

static int twin_cost_run(const struct invocation *invocation, const struct config *config,
	const char *folder, double *ns, struct error *err)
{
	const struct paired_options options = {
		.invocation = invocation, .folder = folder, .seed = 1, .budget_s = INFINITY};
	const struct paired_arm_spec spec = {.label = "twin", .config = config};
	struct paired *paired;
	size_t arm;
	int code = paired_open(&paired, &options, err);
	if (code)
		return code;
	code = paired_add(paired, &spec, &arm, err);
	if (!code)
		code = paired_block(paired, &arm, 1, err);
	const char *broken = code ? NULL : paired_arm_broken(paired, arm);
	if (broken)
		code = error_set(err, -EIO, "%s", broken);
	if (!code)
		code = twin_cost_of(paired_record(paired, arm), ns, err);
	paired_close(paired);
	return code;
}

int twin_cost_measure(const struct invocation *invocation, const struct config *config, double *ns,
	struct error *err)
{
	const char *temporary = getenv("TMPDIR");
	char folder[TWIN_COST_PATH / 2];
	struct config stripped;
	(void)snprintf(folder, sizeof folder, "%.1900s/mlbench-fit-XXXXXX",
		temporary && *temporary ? temporary : "/tmp");
	if (!mkdtemp(folder))
		return error_set_errno(err, errno, "cannot make a folder '%.200s'", folder);
	int code = config_copy(&stripped, config, err);
	if (!code) {
		code = twin_cost_strip(&stripped, folder, err);
		if (!code)
			code = twin_cost_run(invocation, &stripped, folder, ns, err);
		config_release(&stripped);
	}
	(void)files_remove_tree(folder, NULL);
	return code;
}
