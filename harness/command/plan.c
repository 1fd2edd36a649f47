/* From a file and overrides to a plan that is known to be possible. */
#include "harness/command/plan.h"

#include "harness/base/log.h"
#include "harness/command/adaptive_sweep.h"
#include "harness/command/config_place.h"
#include "harness/command/data.h"
#include "harness/command/limits.h"
#include "harness/command/step_facts.h"
#include "harness/record/config_json.h"
#include "workloads/backend/backend.h"
#include "workloads/model/model.h"
#include "workloads/source/source.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned usable_cores(void)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof set, &set) != 0)
		return 1;
	return (unsigned)CPU_COUNT(&set);
}

static int read_config(
	struct plan *plan, const struct invocation *invocation, const char *path, struct error *err)
{
	int code = 0;
	if (path) {
		char place[PATH_MAX];
		config_init(&plan->config);
		code = config_read_file(
			&plan->config, config_place_find(path, place, sizeof place), err);
	}
	for (size_t i = 0; i < invocation->options.set_count && !code; i++)
		code = config_set(&plan->config, invocation->options.sets[i], err);
	return code;
}

/* run.name, else the file's name without its ending; a folder's name in any case. */
static void choose_name(struct plan *plan)
{
	const char *given = config_text(&plan->config, KEY_RUN_NAME);
	const char *path = plan->config.path ? plan->config.path : "mlbench";
	const char *slash = strrchr(path, '/');
	const char *file = slash ? slash + 1 : path;
	const char *dot = strrchr(file, '.');
	const size_t stem = dot && dot != file ? (size_t)(dot - file) : strlen(file);
	if (*given)
		(void)snprintf(plan->name, sizeof plan->name, "%s", given);
	else
		(void)snprintf(plan->name, sizeof plan->name, "%.*s", (int)stem, file);
	for (char *at = plan->name; *at; at++)
		if (*at == '/' || (unsigned char)*at < ' ')
			*at = '-';
	if (plan->name[0] == '.')
		plan->name[0] = '-';
}

static void prefix_settings(const struct plan *plan, size_t point, int code, struct error *err)
{
	struct buffer text = {0};
	config_point_text(&plan->config, &plan->grid, point, &text);
	if (text.data)
		(void)error_prefix(err, code, "%s", text.data);
	buffer_release(&text);
}

static void note_refusal(struct plan *plan, int code, const struct error *err)
{
	if (plan->refused++ > 0)
		return;
	plan->refusal = *err;
	plan->refusal_code = code;
}

static int note_lack(struct plan *plan, const struct error *err)
{
	if (plan->lacking++ == 0 && err)
		plan->lack = *err;
	return 0;
}

/* Settings of a real device's step make no difference to an emulated one: a sweep over them would compare chance. */
static int check_emulated_axes(
	const struct plan *plan, const struct config *point, struct error *err)
{
	static const enum key_id ignored[] = {KEY_STEP_PRECISION, KEY_STEP_ACCUMULATE,
		KEY_STEP_GRAPH, KEY_STEP_STATISTICS, KEY_STEP_STREAMS, KEY_STEP_AHEAD,
		KEY_STEP_OPTIMIZER, KEY_STEP_LEARNING_RATE};
	char why[PLAN_WHY_BYTES] = "";
	const struct backend_ops *ops = backend_choose(point, why, sizeof why, NULL);
	if (!ops || !ops->emulated)
		return 0;
	for (size_t i = 0; i < plan->config.axis_count; i++)
		for (size_t k = 0; k < sizeof ignored / sizeof ignored[0]; k++)
			if (plan->config.axes[i].key == ignored[k] &&
				plan->config.axes[i].count > 1)
				return error_set(err, *why ? -ENOTSUP : -EINVAL,
					"step.%s is swept, and an emulated step is the same at each of its values%s%.200s",
					config_keys[ignored[k]].name, *why ? "; " : "", why);
	return 0;
}

/* What is wrong with a point whatever the node: refused before anything runs. */
static int check_point(struct plan *plan, size_t point, struct error *err)
{
	struct config config = {0};
	int code = config_grid_point(&plan->config, &plan->grid, point, &config, err);
	if (!code)
		code = config_validate(&config, err);
	if (!code) {
		code = backend_validate(&config, err);
		if (!code)
			code = check_emulated_axes(plan, &config, err);
		if (code == -ENOTSUP) /* the node's lack, not the file's mistake */
			code = note_lack(plan, err);
	}
	if (!code)
		plan_cost_add_time(&plan->cost, &config);
	config_release(&config);
	if (code)
		prefix_settings(plan, point, code, err);
	return code;
}

static void describe_step(struct plan *plan, const struct config *config)
{
	struct step_info *step = &plan->step;
	const struct backend_ops *ops =
		backend_choose(config, plan->step_note, sizeof plan->step_note, NULL);
	const bool null = ops && ops->null;
	const struct model *model = null ? NULL : model_find(config_text(config, KEY_STEP_MODEL));
	(void)snprintf(step->backend, sizeof step->backend, "%s", ops ? ops->name : "none");
	(void)snprintf(step->model, sizeof step->model, "%s",
		null ? "none" : config_text(config, KEY_STEP_MODEL));
	step->emulated = ops && ops->emulated;
	plan->facts = pipeline_facts(config);
	step->flops_per_sample = model ? model_training_flops(model) : 0;
	struct backend *backend = NULL;
	char outline[NOTE_BYTES / 2];
	if (null || step->emulated)
		(void)backend_open(&backend,
			&(const struct backend_options){.config = config,
				.sample_elements = 1,
				.class_count = 1,
				.device_count = (unsigned)config_integer(config, KEY_STEP_DEVICES)},
			NULL);
	if (backend)
		(void)snprintf(
			step->description, sizeof step->description, "%s", backend->description);
	else if (ops && ops->outline)
		(void)snprintf(step->description, sizeof step->description, "%s: %s", step->backend,
			ops->outline(config, outline, sizeof outline));
	else
		(void)snprintf(step->description, sizeof step->description, "%s, %s", step->backend,
			step->model);
	backend_close(backend);
	if (!backend_reference(config, step->reference, sizeof step->reference))
		step->reference[0] = '\0';
}

static void describe_engine(struct plan *plan, const struct config *config)
{
	const struct source_ops *ops =
		source_choose(config, plan->engine_note, sizeof plan->engine_note, NULL);
	(void)snprintf(plan->engine, sizeof plan->engine, "%s", ops ? ops->name : "none");
}

static bool sweeps_section(const struct config *config, const char *section)
{
	for (size_t i = 0; i < config->axis_count; i++)
		if (strcmp(config_keys[config->axes[i].key].section, section) == 0)
			return true;
	return false;
}

/* Step and engine of the first point; the text says when the others differ. */
static int describe_first(struct plan *plan, struct error *err)
{
	struct config config = {0};
	const int code = config_grid_point(&plan->config, &plan->grid, 0, &config, err);
	if (!code) {
		describe_step(plan, &config);
		describe_engine(plan, &config);
	}
	config_release(&config);
	const size_t used = strlen(plan->step.description);
	if (sweeps_section(&plan->config, "step") || sweeps_section(&plan->config, "sync") ||
		sweeps_section(&plan->config, "batch"))
		(void)snprintf(plan->step.description + used, sizeof plan->step.description - used,
			" (first point; swept)");
	return code;
}

int plan_open(
	struct plan *plan, const struct invocation *invocation, const char *path, struct error *err)
{
	int code = read_config(plan, invocation, path, err);
	if (!code)
		code = config_grid_open(&plan->config, &plan->grid, err);
	if (!code)
		code = adaptive_sweep_check(&plan->config, &plan->grid, err);
	for (size_t point = 0; point < plan->grid.points && !code; point++)
		code = check_point(plan, point, err);
	if (code)
		return code;
	choose_name(plan);
	config_hash(&plan->config, plan->hash);
	plan->cores = usable_cores();
	plan->limits = limits_count(&plan->config);
	return describe_first(plan, err);
}

static int plan_point(struct plan *plan, size_t point, struct error *err)
{
	struct config config = {0};
	struct pipeline_plan planned;
	char why[PLAN_WHY_BYTES];
	int code = config_grid_point(&plan->config, &plan->grid, point, &config, err);
	if (!code && !source_choose(&config, why, sizeof why, err))
		code = -ENOTSUP;
	if (!code && !backend_choose(&config, why, sizeof why, err))
		code = -ENOTSUP;
	if (!code)
		code = pipeline_plan(&config, &plan->dataset, &planned, err);
	if (!code)
		plan_cost_add_memory(&plan->cost, &planned, false);
	if (!code && planned.pool_bytes >= plan->largest.pool_bytes)
		plan->largest = planned;
	config_release(&config);
	if (code)
		prefix_settings(plan, point, code, err);
	return code;
}

static int plan_points(struct plan *plan, struct error *err)
{
	for (size_t point = 0; point < plan->grid.points; point++) {
		struct error refusal;
		const int code = plan_point(plan, point, &refusal);
		if (code)
			note_refusal(plan, code, &refusal);
	}
	if (plan->refused == plan->grid.points)
		return error_set(err, plan->refusal_code, "%s", plan->refusal.text);
	const char *description = plan->largest.step_description;
	const bool computed = !plan->facts.step_emulated && !plan->facts.step_null;
	if (*description && computed && !sweeps_section(&plan->config, "step"))
		(void)snprintf(
			plan->step.description, sizeof plan->step.description, "%s", description);
	return 0;
}

/* A stage alone has its inputs in memory: all files of the data set, or samples. */
static int plan_limits(struct plan *plan, struct error *err)
{
	struct limit_list limits = {0};
	const int code = plan->limits > 0 ? limits_open(&limits, &plan->config, &plan->grid,
						    &plan->dataset, err)
					  : 0;
	for (size_t i = 0; i < limits.count && !code; i++) {
		struct pipeline_plan planned;
		const struct config *config = &limits.jobs[i].config;
		if (pipeline_plan(config, &plan->dataset, &planned, NULL) == 0)
			plan_cost_add_memory(&plan->cost, &planned, true);
	}
	limits_close(&limits);
	return code;
}

/* Now that the classes are known. */
static int describe_products(struct plan *plan, struct error *err)
{
	struct config config = {0};
	const int code = config_grid_point(&plan->config, &plan->grid, 0, &config, err);
	if (!code)
		step_facts_products(&config, (uint32_t)plan->dataset.class_count, &plan->step);
	config_release(&config);
	return code;
}

int plan_data(struct plan *plan, const struct invocation *invocation, enum plan_data what,
	struct error *err)
{
	/* Before anything is generated. */
	if (plan->lacking == plan->grid.points)
		return error_set(err, -ENOTSUP, "%s", plan->lack.text);
	int code = data_open(
		&plan->config, &plan->dataset, invocation->stop, what == PLAN_DATA_MAKE, err);
	const bool recipe =
		config_integer(&plan->config, KEY_DATASET_RECIPE) != DATASET_RECIPE_NONE;
	if (code == -ENODATA && recipe && what == PLAN_DATA_LOOK) {
		(void)snprintf(plan->data_why, sizeof plan->data_why, "%.*s", PLAN_WHY_BYTES - 1,
			err->text);
		err->text[0] = '\0';
		return 0;
	}
	if (code)
		return code;
	plan->has_data = true;
	code = plan_points(plan, err);
	if (!code)
		code = plan_limits(plan, err);
	return code ? code : describe_products(plan, err);
}

void plan_close(struct plan *plan)
{
	dataset_close(&plan->dataset);
	config_grid_close(&plan->grid);
	config_release(&plan->config);
	*plan = (struct plan){0};
}
