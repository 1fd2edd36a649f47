/* New runs and continued ones. */
#include "harness/command/resume.h"

#include "harness/base/buffer.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/fit/case.h"
#include "harness/measure/environment.h"
#include "harness/record/config_json.h"
#include "harness/report/ceilings_cache.h"
#include "workloads/backend/backend.h"
#include "workloads/backend/cuda.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DIFFERENCES_MAX = 5, PATH_BYTES = 4096, BLAS_TEXT_BYTES = 256 };

static void axis_text(const struct config *config, enum key_id key, struct buffer *out)
{
	char value[CONFIG_VALUE_BYTES];
	const struct config_axis *axis = config_find_axis(config, key);
	for (size_t i = 0; axis && i < axis->count; i++)
		buffer_format(out, "%s%s", i ? "," : "",
			config_format_value(key, &axis->values[i], value, sizeof value));
	if (!axis)
		buffer_text(
			out, config_format_value(key, &config->values[key], value, sizeof value));
}

static bool is_key_but_name(enum key_id key)
{
	return key != KEY_RUN_NAME;
}

/* How long it is measured, and where the files lie, makes no other job of it. */
static bool is_key_of_job(enum key_id key)
{
	return strcmp(config_keys[key].section, "run") != 0 &&
	       strcmp(config_keys[key].section, "measure") != 0 && key != KEY_DATASET_PATH;
}

/* "decode.workers (was 1,2, now 1,2,4)" for each key that differs. */
static void append_differences(const struct config *was, const struct config *now,
	bool (*matters)(enum key_id key), struct buffer *out)
{
	size_t found = 0;
	for (int key = 0; key < KEY_COUNT; key++) {
		struct buffer before = {0};
		struct buffer after = {0};
		char name[CONFIG_NAME_BYTES];
		axis_text(was, (enum key_id)key, &before);
		axis_text(now, (enum key_id)key, &after);
		const bool differ =
			before.data && after.data && strcmp(before.data, after.data) != 0;
		if (differ && matters((enum key_id)key) && found++ < DIFFERENCES_MAX)
			buffer_format(out, "%s%s (was %s, now %s)", found > 1 ? ", " : "",
				config_key_name((enum key_id)key, name), before.data, after.data);
		buffer_release(&before);
		buffer_release(&after);
	}
	if (found > DIFFERENCES_MAX)
		buffer_format(out, " and %zu more", found - DIFFERENCES_MAX);
}

static int compare_configs(const struct record *record, const struct plan *plan, struct error *err)
{
	char was[RECORD_HASH_BYTES];
	config_hash(&record->config, was);
	if (strcmp(was, plan->hash) == 0)
		return 0;
	struct buffer text = {0};
	append_differences(&record->config, &plan->config, is_key_but_name, &text);
	const int code = error_set(err, -EINVAL,
		"cannot resume '%s': it was run with another configuration: %s", record->folder,
		text.data ? text.data : "the order of the axes");
	buffer_release(&text);
	return code;
}

/* The newest run of any benchmark, when there is no configuration to say which. */
static int newest_of_all(char **folder, struct error *err)
{
	DIR *dir = opendir(RESULTS_FOLDER);
	if (!dir)
		return error_set_errno(err, errno, "cannot open '%s'", RESULTS_FOLDER);
	for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		char *root =
			entry->d_name[0] == '.' ? NULL : files_join(RESULTS_FOLDER, entry->d_name);
		char *newest = NULL;
		if (root && record_find_newest(root, &newest, NULL) == 0 &&
			(!*folder || strcmp(strrchr(newest, '/'), strrchr(*folder, '/')) > 0)) {
			free(*folder);
			*folder = newest;
			newest = NULL;
		}
		free(newest);
		free(root);
	}
	(void)closedir(dir);
	return *folder ? 0 : error_set(err, -ENOENT, "no run in '%s' to resume", RESULTS_FOLDER);
}

static int find_run(const struct plan *plan, const struct invocation *invocation, bool has_config,
	char **folder, struct error *err)
{
	const char *resume = invocation->options.values[OPTION_RESUME];
	*folder = NULL;
	if (strcmp(resume, "latest") != 0)
		return record_find_newest(resume, folder, err);
	if (!has_config)
		return newest_of_all(folder, err);
	char *root = files_join(RESULTS_FOLDER, plan->name);
	const int code = root ? record_find_newest(root, folder, err) : -ENOMEM;
	free(root);
	return code;
}

static int open_old(struct plan *plan, struct record *record, const struct invocation *invocation,
	struct error *err)
{
	const bool has_config = invocation->options.argument_count > 0;
	char *folder = NULL;
	int code =
		has_config ? plan_open(plan, invocation, invocation->options.arguments[0], err) : 0;
	if (!code)
		code = find_run(plan, invocation, has_config, &folder, err);
	if (!code)
		code = record_open(record, folder, err);
	free(folder);
	if (!code && !has_config) {
		code = config_copy(&plan->config, &record->config, err);
		if (!code)
			code = plan_open(plan, invocation, NULL, err);
		(void)snprintf(plan->name, sizeof plan->name, "%s", record->name);
	}
	return code ? code : compare_configs(record, plan, err);
}

int resume_plan(struct plan *plan, struct record *record, const struct invocation *invocation,
	struct error *err)
{
	const struct options *options = &invocation->options;
	if (options->values[OPTION_RESUME] && options->values[OPTION_OUT])
		return error_set(err, -EINVAL,
			"--resume and --out exclude each other: --resume names the folder");
	if (options->values[OPTION_RESUME])
		return open_old(plan, record, invocation, err);
	if (options->argument_count == 0)
		return error_set(err, -EINVAL, "'mlbench %s' needs CONFIG; see 'mlbench help %s'",
			invocation->command->name, invocation->command->name);
	return plan_open(plan, invocation, options->arguments[0], err);
}

/* results/NAME/TIME. */
static int make_new_folder(struct record *record, const struct plan *plan, struct error *err)
{
	char when[CLOCK_UTC_BYTES];
	char path[PATH_BYTES];
	(void)snprintf(path, sizeof path, RESULTS_FOLDER "/%s", plan->name);
	clock_format_utc_compact(record->started, when);
	return files_make_new_folder(path, when, &record->folder, err);
}

/* What an earlier 'mlbench probe' found out about this node becomes a part of the result. */
static void add_ceilings(struct record *record, const struct plan *plan)
{
	struct error err;
	char text[NOTE_BYTES];
	const char *path = config_text(&plan->config, KEY_DATASET_PATH);
	record->has_ceilings = ceilings_load(path, &record->ceilings, &err) == 0;
	if (!record->has_ceilings) {
		fact_missing(&record->environment, "mlbench", "ceilings",
			"none: 'mlbench probe' measures them");
		return;
	}
	fact_text(&record->environment, "mlbench", "ceilings", "%s",
		ceilings_age(&record->ceilings, record->started, "before", text, sizeof text));
	if (ceilings_stale_here(&record->ceilings, text, sizeof text))
		log_warn(
			"the ceilings of this node are out of date (%s); 'mlbench probe' measures them "
			"again",
			text);
}

/* Versions of what a GPU computes with, or why there is none. */
static void add_cuda(struct fact_list *list)
{
	const struct cuda_found *found = cuda_find();
	char text[ERROR_TEXT_BYTES];
	/* Asked without a device it would open cuBLAS, 200 MB, for its version. */
	if (found->ready)
		fact_text(list, "mlbench", "cuda", "%s",
			cuda_describe_node(found, text, sizeof text));
	else
		fact_missing(list, "mlbench", "cuda", "%s", found->why);
}

static void add_facts(struct record *record, const struct plan *plan)
{
	char text[BLAS_TEXT_BYTES];
	const struct dataset *set = &plan->dataset;
	struct fact_list *list = &record->environment;
	environment_capture(list, config_text(&plan->config, KEY_DATASET_PATH));
	fact_text(list, "mlbench", "version", "%s", MLBENCH_VERSION);
	if (plan->facts.step_on_cores)
		fact_text(list, "mlbench", "blas", "%s", openblas_describe(text, sizeof text));
	else
		fact_missing(
			list, "mlbench", "blas", "not opened: the step does not compute with it");
	add_cuda(list);
	fact_text(list, "mlbench", "engine", "%s%s%s", plan->engine, *plan->engine_note ? "; " : "",
		plan->engine_note);
	fact_number(list, "dataset", "samples", (double)plan->samples, NULL);
	fact_number(list, "dataset", "bytes", (double)plan->sample_bytes, "bytes");
	fact_number(list, "dataset", "bad_files", (double)set->bad_count, NULL);
	fact_text(list, "dataset", "origin", "%s",
		set->generated ? "generated by a recipe" : "a folder");
}

/* What is typed to measure it again: where results go, and how they are shown, is another matter. */
static char *command_line(const struct invocation *invocation)
{
	static const struct {
		enum option_id id;
		const char *word;
	} emulating[] = {{OPTION_AS_REPORTED, " --as-reported"}, {OPTION_ENV, " --env"}};
	struct buffer text = {0};
	const size_t count = invocation->options.argument_count;
	const size_t own = invocation->command->runs_command && count > 0 ? 1 : count;
	buffer_format(&text, "mlbench %s", invocation->command->name);
	for (size_t i = 0; i < own; i++) {
		buffer_text(&text, " ");
		shell_word(invocation->options.arguments[i], &text);
	}
	for (size_t i = 0; i < invocation->options.set_count; i++) {
		buffer_text(&text, " --set ");
		shell_word(invocation->options.sets[i], &text);
	}
	for (size_t i = 0; i < sizeof emulating / sizeof *emulating; i++)
		if (options_given(&invocation->options, emulating[i].id))
			buffer_text(&text, emulating[i].word);
	for (size_t i = own; i < count; i++) {
		buffer_text(&text, i == own ? " -- " : " ");
		shell_word(invocation->options.arguments[i], &text);
	}
	if (text.failed)
		buffer_release(&text);
	return text.data;
}

/* A case that cannot be read any more is as if there had been none. */
static void add_case(struct record *record, const struct config *config)
{
	struct record_case *of = &record->of_case;
	struct case_file file;
	struct buffer changed = {0};
	if (!config->path || !case_is(config->path) || case_read(&file, config->path, NULL))
		return;
	const struct finding *rate = &file.observed.known[FINDING_THROUGHPUT];
	const bool known = rate->how != FINDING_UNKNOWN;
	append_differences(&file.twin, config, is_key_of_job, &changed);
	*of = (struct record_case){.known = !changed.failed,
		.rate = known ? rate->value : (double)NAN,
		.low = known ? rate->low : (double)NAN,
		.high = known ? rate->high : (double)NAN,
		.confidence = file.observed.confidence};
	(void)snprintf(of->created, sizeof of->created, "%s", file.created);
	(void)snprintf(
		of->complaint, sizeof of->complaint, "%s", file.complaint ? file.complaint : "");
	(void)snprintf(of->stage, sizeof of->stage, "%s", file.observed.stage);
	(void)snprintf(of->resource, sizeof of->resource, "%s", file.observed.resource);
	(void)snprintf(of->changed, sizeof of->changed, "%s", changed.data ? changed.data : "");
	buffer_release(&changed);
	case_release(&file);
}

int resume_fill_record(struct record *record, const struct plan *plan,
	const struct invocation *invocation, struct error *err)
{
	record->started = floor(clock_utc_seconds()); /* as the folder is named */
	(void)snprintf(record->name, sizeof record->name, "%s", plan->name);
	(void)snprintf(record->config_hash, sizeof record->config_hash, "%s", plan->hash);
	record->command = command_line(invocation);
	record->cores = plan->cores;
	record->step = plan->step;
	int code = config_copy(&record->config, &plan->config, err);
	if (!code)
		code = config_grid_open(&record->config, &record->grid, err);
	if (code)
		return code;
	add_facts(record, plan);
	add_ceilings(record, plan);
	add_case(record, &plan->config);
	return 0;
}

int resume_new_record(struct record *record, const struct plan *plan,
	const struct invocation *invocation, struct error *err)
{
	const bool given = record->folder;
	int code = resume_fill_record(record, plan, invocation, err);
	if (code)
		return code;
	if (!given)
		code = make_new_folder(record, plan, err);
	if (code)
		return code;
	code = record_create(record, err);
	if (code && !given)
		(void)rmdir(record->folder);
	return code;
}

int resume_record(struct record *record, const struct plan *plan,
	const struct invocation *invocation, struct error *err)
{
	const char *out = invocation->options.values[OPTION_OUT];
	if (invocation->options.values[OPTION_RESUME])
		return record_continue(record, err);
	record->folder = out ? strdup(out) : NULL;
	if (out && !record->folder)
		return error_set(err, -ENOMEM, "out of memory");
	return resume_new_record(record, plan, invocation, err);
}
