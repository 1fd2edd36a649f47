/* From a file and overrides to a plan that is known to be possible. */
#include "harness/command/run_plan.h"

#include "harness/analyze/stop_rule.h"
#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/log.h"
#include "harness/base/rng.h"
#include "harness/base/step_schedule.h"
#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/command/data_set.h"
#include "harness/command/limits.h"
#include "harness/command/party.h"
#include "harness/command/step_facts.h"
#include "harness/config/conditions.h"
#include "harness/measure/proc_text.h"
#include "harness/record/config_json.h"
#include "harness/record/fields.h"
#include "pipelines/dither.h"
#include "pipelines/pipeline.h"
#include "workloads/backend/backend.h"
#include "workloads/backend/cuda.h"
#include "workloads/dataset/recipe.h"
#include "workloads/model/model.h"
#include "workloads/sample/sample.h"
#include "workloads/source/residency.h"
#include "workloads/source/source.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- estimates of time, and the bound on memory: pools, and what the process has beside them -- */

/* What the program takes beside its pools, at least: the promise of docs/ARCHITECTURE.md. */
static const uint64_t PROGRAM_BYTES = 64ULL << 20;
/* To come, beside what is resident before a run: recorders, results, the page. */
static const uint64_t LATER_BYTES = 32ULL << 20;
/* Results in memory until the end: of each point its summary, its diagnosis and both as JSON; of each repetition its line, with
 * so much for each window. */
enum { POINT_BYTES = 160 << 10, REPETITION_BYTES = 12 << 10, WINDOW_BYTES = 400 };
/* Of each thread: touched stack, meters, what its C library keeps for it. */
static const uint64_t THREAD_BYTES = 128ULL << 10;
/* OpenBLAS maps so much for each of its threads, and touches what the sizes of the products ask for. */
static const uint64_t BLAS_THREAD_BYTES = 32ULL << 20;

static double plan_seconds_of(const struct config *config, enum key_id key)
{
	return (double)config_integer(config, key) / (double)NS_PER_S;
}

/* Between two batches, over all devices, where an emulated step is the limit; NAN: it is not known. */
static double batch_seconds(const struct config *config)
{
	const uint32_t batch = (uint32_t)config_integer(config, KEY_BATCH_SIZE);
	const double step_ns = step_facts_time(config, batch);
	const double devices = config_real(config, KEY_STEP_DEVICES);
	const double exchange_ns = devices > 1 ? step_facts_exchange(config) : 0;
	return (step_ns * config_real(config, KEY_INJECT_STEP_FACTOR) +
		       (isnan(exchange_ns) ? 0 : exchange_ns)) /
	       devices / (double)NS_PER_S;
}

static void note_short(
	struct plan_cost *cost, const struct config *config, double duration_s, double batch_s)
{
	const double least = config_real(config, KEY_MEASURE_MIN_BATCHES);
	if (!(duration_s < least * batch_s))
		return;
	cost->short_points++;
	if (batch_s <= cost->short_worst.batch_s)
		return;
	cost->short_worst.duration_s = duration_s;
	cost->short_worst.batch_s = batch_s;
	cost->short_worst.batches_least = least;
	cost->short_worst.hopeless = PIPELINE_EXTENSION * duration_s < (least + 1) * batch_s;
}

static void plan_cost_add_time(struct plan_cost *cost, const struct config *config)
{
	const double duration_s = plan_seconds_of(config, KEY_MEASURE_DURATION);
	const double batch_s = batch_seconds(config);
	/* As the conductor has it: one batch more, since time is measured from the first to the last. */
	const double wanted_s = (config_real(config, KEY_MEASURE_MIN_BATCHES) + 1) * batch_s;
	const double longer_s = (double)dither_longer_ns(config) / (double)NS_PER_S;
	double measured_s = duration_s;
	cost->points++;
	if (config_integer(config, KEY_MEASURE_EPOCHS) > 0)
		return;
	if (wanted_s > duration_s) /* not where it is NAN */
		measured_s = fmin(wanted_s, PIPELINE_EXTENSION * duration_s);
	note_short(cost, config, duration_s, batch_s);
	const double seconds = plan_seconds_of(config, KEY_MEASURE_WARMUP) + longer_s + measured_s;
	cost->seconds_sum += seconds;
	cost->seconds_most = fmax(cost->seconds_most, seconds);
}

enum { VISIT_TRIAL_MS = 100 };

/* read.cache = cold and warm open every file before a repetition, and an open may be a round trip: so long, by a trial. */
static double plan_visit_seconds(const struct dataset *dataset)
{
	struct residency residency;
	const uint64_t begin_ns = clock_now_ns();
	if (residency_measure(dataset, VISIT_TRIAL_MS * NS_PER_MS, &residency, NULL) ||
		residency.asked == 0)
		return 0;
	return (double)(clock_now_ns() - begin_ns) / (double)NS_PER_S * (double)dataset->files /
	       (double)residency.asked;
}

static void plan_cost_add_cache(
	struct plan_cost *cost, const struct config *config, const struct dataset *dataset)
{
	if (config_integer(config, KEY_READ_CACHE) == READ_CACHE_AS_IS ||
		pipeline_facts(config).reads_memory)
		return;
	if (cost->visited != dataset)
		cost->visit_seconds = plan_visit_seconds(dataset);
	cost->visited = dataset;
	cost->cache_seconds += cost->visit_seconds;
}

/* Libraries that are loaded are resident by now, the plug-in's among them: where there is a device, every run opens it to
 * say in its result what the node has. */
static uint64_t resident_now(void)
{
	struct process_usage usage;
	(void)cuda_find();
	process_usage_read(&usage, NULL);
	return isnan(usage.resident_bytes) ? 0 : (uint64_t)usage.resident_bytes;
}

static uint64_t results_bytes(const struct config *config, size_t points)
{
	const double repeats = config_real(config, KEY_MEASURE_REPEATS);
	const double seconds = plan_seconds_of(config, KEY_MEASURE_WARMUP) +
			       PIPELINE_EXTENSION * plan_seconds_of(config, KEY_MEASURE_DURATION);
	const double windows =
		fmin(seconds / plan_seconds_of(config, KEY_MEASURE_WINDOW), WINDOWS_MAX);
	return (uint64_t)((double)points *
			  (POINT_BYTES + repeats * (REPETITION_BYTES + windows * WINDOW_BYTES)));
}

static uint64_t program_bytes(const struct plan_cost *cost, const struct pipeline_plan *planned)
{
	const bool blas = planned->facts.step_on_cores;
	const uint64_t threads =
		planned->reader_threads + planned->decode_workers + 2 * (uint64_t)planned->devices;
	const uint64_t bytes = cost->resident_bytes + cost->results_bytes + LATER_BYTES +
			       threads * THREAD_BYTES +
			       (blas ? planned->step_threads * BLAS_THREAD_BYTES : 0);
	return bytes > PROGRAM_BYTES ? bytes : PROGRAM_BYTES;
}

void plan_cost_add_memory(struct plan_cost *cost, const struct pipeline_plan *planned, bool limit)
{
	if (cost->resident_bytes == 0)
		cost->resident_bytes = resident_now();
	const uint64_t bound = planned->pool_bytes + program_bytes(cost, planned);
	if (limit && planned->pool_bytes > cost->limit_pool_bytes)
		cost->limit_pool_bytes = planned->pool_bytes;
	if (bound > cost->bound_bytes)
		cost->bound_bytes = bound;
}

/* --- how long, where nobody said so ---------------------------------------------------------- */

static const double NEEDED_LEAST_S = 0.75, NEEDED_MOST_S = 4; /* of a repetition */
static const double NEEDED_BATCHES = 8;
static const double NEEDED_WARMUP = 3; /* of these it is one part */

/* What comes every so many steps has to be in a repetition, and is measured as long as the keys say. */
static bool has_no_cycle(const struct config *config)
{
	static const enum key_id cycles[] = {
		KEY_MEASURE_EPOCHS, KEY_CHECKPOINT_EVERY, KEY_EVALUATE_EVERY};
	for (size_t i = 0; i < COUNT(cycles); i++)
		if (config_integer(config, cycles[i]) > 0 || config_find_axis(config, cycles[i]))
			return false;
	return config_on(config, KEY_DECODE_PERSISTENT) &&
	       !config_find_axis(config, KEY_DECODE_PERSISTENT) &&
	       !config->is_set[KEY_TRACE_SCHEDULE];
}

static int plan_set_span(struct config *config, enum key_id key, double seconds, struct error *err)
{
	char text[UNITS_BYTES];
	const uint64_t ns = (uint64_t)(seconds * 1e3) * NS_PER_MS;
	if (config->is_set[key])
		return 0;
	const int code = config_set_key(config, key, units_print_duration(ns, text), err);
	config->is_set[key] = false; /* by the user */
	return code;
}

/* Short repetitions, but of some batches. */
static int plan_time_as_needed(struct plan *plan, struct error *err)
{
	plan->as_needed = plan->as_needed && plan->grid.points == 1 &&
			  !plan->config.is_set[KEY_MEASURE_DURATION] &&
			  !plan->config.is_set[KEY_MEASURE_REPEATS] && has_no_cycle(&plan->config);
	if (!plan->as_needed)
		return 0;
	struct config config = {0};
	int code = config_grid_point(&plan->config, &plan->grid, 0, &config, err);
	const double batch_s = code ? 0 : batch_seconds(&config);
	config_release(&config);
	if (code)
		return code;
	const double seconds = fmin(fmax(NEEDED_BATCHES * batch_s, NEEDED_LEAST_S), NEEDED_MOST_S);
	code = plan_set_span(&plan->config, KEY_MEASURE_DURATION, seconds, err);
	return code ? code
		    : plan_set_span(
			      &plan->config, KEY_MEASURE_WARMUP, seconds / NEEDED_WARMUP, err);
}

/* --- making the plan -------------------------------------------------------------------------- */

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
		for (size_t k = 0; k < COUNT(ignored); k++)
			if (plan->config.axes[i].key == ignored[k] &&
				plan->config.axes[i].count > 1)
				return error_set(err, *why ? -ENOTSUP : -EINVAL,
					"step.%s is swept, but an emulated step is the same at each of its "
					"values%s%.200s",
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
	if (!code)
		code = sample_validate(&config, err);
	if (!code) {
		code = backend_validate(&config, err);
		if (!code)
			code = check_emulated_axes(plan, &config, err);
		if (code == -ENOTSUP) { /* the node's lack, not the file's mistake */
			if (plan->lacking++ == 0)
				plan->lack = *err;
			code = 0;
		}
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
	const struct model_shape shape = {model ? model->published_elements : 0,
		model ? model->published_classes : 0, sample_tokens_of(config)};
	step->flops_per_sample = model ? model_training_flops_at(model, shape) : 0;
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
		const struct source_ops *ops =
			source_choose(&config, plan->engine_note, sizeof plan->engine_note, NULL);
		(void)snprintf(plan->engine, sizeof plan->engine, "%s", ops ? ops->name : "none");
	}
	config_release(&config);
	const size_t used = strlen(plan->step.description);
	if (sweeps_section(&plan->config, "step") || sweeps_section(&plan->config, "sync") ||
		sweeps_section(&plan->config, "batch") || sweeps_section(&plan->config, "tokens"))
		(void)snprintf(plan->step.description + used, sizeof plan->step.description - used,
			" (first point; swept)");
	return code;
}

void plan_swept(const struct config *config, struct buffer *out)
{
	for (size_t i = 0; i < config->axis_count; i++) {
		const struct key *key = &config_keys[config->axes[i].key];
		buffer_format(out, "%s%s.%s", i ? ", " : "", key->section, key->name);
	}
}

int plan_settle_sweep(struct config *config, struct error *err)
{
	char most[UNITS_BYTES];
	(void)snprintf(most, sizeof most, "%d", STOP_ROUNDS_MOST);
	const struct {
		enum key_id key;
		const char *value;
		bool may;
	} usual[] = {{KEY_MEASURE_REPEATS, most, true},
		{KEY_MEASURE_DURATION, "1s", has_no_cycle(config)},
		{KEY_MEASURE_WARMUP, "500ms", has_no_cycle(config)}};
	int code = 0;
	if (config->axis_count == 0)
		return 0;
	if (config_integer(config, KEY_SWEEP_MODE) == SWEEP_MODE_AUTO)
		code = config_set_key(config, KEY_SWEEP_MODE,
			config->is_set[KEY_MEASURE_REPEATS] ? "grid" : "sequential", err);
	if (config_integer(config, KEY_SWEEP_MODE) != SWEEP_MODE_SEQUENTIAL)
		return code;
	for (size_t i = 0; i < COUNT(usual) && !code; i++)
		if (usual[i].may && !config->is_set[usual[i].key])
			code = config_set_key(config, usual[i].key, usual[i].value, err);
	return code;
}

static int plan_settle_ranks(
	struct config *config, const struct invocation *invocation, struct error *err)
{
	if (invocation->party)
		return party_settle(invocation, config, err);
	const int64_t most = conditions_most_ranks(config);
	return most < 2 ? 0
			: error_set(err, -EINVAL,
				  "run.ranks = %" PRId64
				  " needs a launcher that starts them: mpirun -n %" PRId64
				  " mlbench ..., or srun",
				  most, most);
}

int plan_open(
	struct plan *plan, const struct invocation *invocation, const char *path, struct error *err)
{
	int code = config_place_read(&plan->config, invocation, path, err);
	if (!code)
		code = plan_settle_ranks(&plan->config, invocation, err);
	if (!code)
		code = plan_settle_sweep(&plan->config, err);
	if (!code)
		code = config_grid_open(&plan->config, &plan->grid, err);
	if (!code)
		code = plan_time_as_needed(plan, err);
	for (size_t point = 0; point < plan->grid.points && !code; point++)
		code = check_point(plan, point, err);
	if (code)
		return code;
	choose_name(plan);
	config_hash(&plan->config, plan->hash);
	cpu_set_t cores;
	plan->cores =
		sched_getaffinity(0, sizeof cores, &cores) == 0 ? (unsigned)CPU_COUNT(&cores) : 1;
	plan->limits = limits_count(&plan->config);
	return describe_first(plan, err);
}

static unsigned plan_threads(const struct pipeline_plan *planned)
{
	return planned->reader_threads + planned->decode_workers +
	       planned->devices * (planned->facts.step_on_cores ? planned->step_threads : 1);
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
		code = pipeline_plan(&config, plan_dataset(plan, &config), &planned, err);
	if (!code)
		plan_cost_add_memory(&plan->cost, &planned, false);
	if (!code)
		plan_cost_add_cache(&plan->cost, &config, plan_dataset(plan, &config));
	if (!code && plan_threads(&planned) > plan->threads)
		plan->threads = plan_threads(&planned);
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
		if (code && plan->refused++ == 0) {
			plan->refusal = refusal;
			plan->refusal_code = code;
		}
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
						    LIMITS_UNKNOWN, &plan->dataset, err)
					  : 0;
	for (size_t i = 0; i < limits.count && !code; i++) {
		struct pipeline_plan planned;
		const struct config *config = &limits.jobs[i].config;
		if (pipeline_plan(config, plan_dataset(plan, config), &planned, NULL) == 0)
			plan_cost_add_memory(&plan->cost, &planned, true);
	}
	limits_close(&limits);
	return code;
}

/* What the environment says of the data set is the same for all points, and for sweeps over other values.
 * Where files hold no sample of that length, they are counted. */
static void plan_count_samples(struct plan *plan)
{
	struct dataset samples;
	if (sample_cut_files(&plan->config, &plan->dataset, &samples, NULL))
		samples = plan->dataset;
	plan->samples = samples.count;
	plan->sample_bytes = samples.total_bytes;
	sample_cut_release(&samples, &plan->dataset);
}

const struct dataset *plan_dataset(const struct plan *plan, const struct config *config)
{
	const char *const path = config_text(config, KEY_DATASET_PATH);
	for (size_t i = 0; i < plan->form_count; i++)
		if (strcmp(plan->forms[i].root, path) == 0)
			return &plan->forms[i];
	return &plan->dataset;
}

static int plan_open_form(struct plan *plan, const struct config *config, const atomic_bool *stop,
	bool make, struct error *err)
{
	const char *const path = config_text(config, KEY_DATASET_PATH);
	if (!plan->dataset.root)
		return data_open(config, &plan->dataset, stop, make, err);
	if (strcmp(plan->dataset.root, path) == 0 || plan_dataset(plan, config) != &plan->dataset)
		return 0;
	struct dataset *const forms = realloc(plan->forms, (plan->form_count + 1) * sizeof *forms);
	if (!forms)
		return error_set(err, -ENOMEM, "out of memory");
	plan->forms = forms;
	const int code = data_open(config, &forms[plan->form_count], stop, make, err);
	plan->form_count += code == 0;
	return code;
}

/* The data set, or one for each storage form that is swept. */
static int plan_open_forms(struct plan *plan, const atomic_bool *stop, bool make, struct error *err)
{
	int code = 0;
	if (!config_sweeps_storage(&plan->config))
		return plan->dataset.root
			       ? 0
			       : data_open(&plan->config, &plan->dataset, stop, make, err);
	for (size_t point = 0; point < plan->grid.points && !code; point++) {
		struct config config = {0};
		code = config_grid_point(&plan->config, &plan->grid, point, &config, err);
		if (!code)
			code = plan_open_form(plan, &config, stop, make, err);
		config_release(&config);
	}
	return code;
}

int plan_data(struct plan *plan, const struct invocation *invocation, bool make, struct error *err)
{
	/* Before anything is generated. */
	if (plan->lacking == plan->grid.points)
		return error_set(err, -ENOTSUP, "%s", plan->lack.text);
	int code = plan_open_forms(plan, invocation->stop, make, err);
	const bool recipe =
		config_integer(&plan->config, KEY_DATASET_RECIPE) != DATASET_RECIPE_NONE;
	if (code == -ENODATA && recipe && !make) {
		(void)snprintf(plan->data_why, sizeof plan->data_why, "%.*s", PLAN_WHY_BYTES - 1,
			err->text);
		err->text[0] = '\0';
		return 0;
	}
	if (code)
		return code;
	plan->has_data = true;
	plan_count_samples(plan);
	plan->cost.results_bytes = results_bytes(&plan->config, plan->grid.points);
	code = plan_points(plan, err);
	if (!code)
		code = plan_limits(plan, err);
	/* Now that the classes are known. */
	struct config first = {0};
	if (!code)
		code = config_grid_point(&plan->config, &plan->grid, 0, &first, err);
	if (!code)
		step_facts_products(&first, (uint32_t)plan->dataset.class_count, &plan->step);
	config_release(&first);
	return code;
}

void plan_close(struct plan *plan)
{
	dataset_close(&plan->dataset);
	for (size_t i = 0; i < plan->form_count; i++)
		dataset_close(&plan->forms[i]);
	free(plan->forms);
	config_grid_close(&plan->grid);
	config_release(&plan->config);
	*plan = (struct plan){0};
}

/* --- in which order repetitions run ----------------------------------------------------------- */

static const uint64_t SCHEDULE_STREAM =
	0x5343484544554c45ULL; /* apart from other uses of run.seed */

struct schedule_item *schedule_make(size_t points, size_t repeats, uint64_t seed)
{
	struct schedule_item *items = calloc(points * repeats, sizeof *items);
	uint32_t *order = calloc(points, sizeof *order);
	for (size_t repeat = 0; items && order && repeat < repeats; repeat++) {
		struct rng rng;
		rng_init(&rng, seed, SCHEDULE_STREAM + repeat);
		rng_permutation(&rng, order, (uint32_t)points);
		for (size_t i = 0; i < points; i++)
			items[repeat * points + i] = (struct schedule_item){
				.point = order[i], .repeat = (uint32_t)repeat};
	}
	if (!order) {
		free(items);
		items = NULL;
	}
	free(order);
	return items;
}

/* --- in words and as JSON: how many points, how long, how much memory ------------------------- */

enum { LABEL_COLUMNS = 9 };

/* Before and after a repetition's clock; only for the estimate, like the next one. */
static const double SET_UP_SECONDS = 0.05;
/* A GPU's libraries are opened and a point's products are timed against each other, once; a guess, measured on no GPU yet, for
 * the estimate alone. */
static const double CHOOSE_SECONDS = 3;

double plan_repetition_seconds(const struct plan *plan)
{
	return plan->cost.points > 0 ? plan->cost.seconds_sum / (double)plan->cost.points : 0;
}

/* A guess of the time that generating takes; 0 without a recipe. */
static double plan_generation_seconds(const struct plan *plan)
{
	double forms = 1;
	for (size_t i = 0; i < plan->config.axis_count; i++)
		if (config_is_storage(plan->config.axes[i].key))
			forms *= (double)plan->config.axes[i].count;
	return forms * recipe_seconds(&plan->config) / (plan->cores ? plan->cores : 1);
}

double plan_seconds(const struct plan *plan, size_t repetitions)
{
	const double each = plan_repetition_seconds(plan);
	const double making = plan->has_data ? 0 : plan_generation_seconds(plan);
	/* One of the stages alone is the step. */
	const double limits = plan->limits > 0 ? plan->cost.seconds_most - each : 0;
	const bool chooses = plan->facts.step_has_memory;
	const double choosing = chooses ? CHOOSE_SECONDS * (double)plan->grid.points : 0;
	const double points = plan->cost.points > 0 ? (double)plan->cost.points : 1;
	/* What is refused takes no time. */
	const double run = (double)repetitions * (points - (double)plan->refused) / points;
	return making + limits + choosing +
	       plan->cost.cache_seconds / points * (double)repetitions +
	       (each + SET_UP_SECONDS) * (run + (double)plan->limits);
}

/* Of `most` that are to go, so many as usual: sweeps of docs/ACCURACY.md come to about ROUNDS_USUAL repetitions of a point. */
static size_t plan_usual_repetitions(const struct plan *plan, size_t most)
{
	enum { ROUNDS_USUAL = 2 };
	const size_t repeats = (size_t)config_integer(&plan->config, KEY_MEASURE_REPEATS);
	const size_t done = plan->grid.points * repeats - most;
	const size_t usual = plan->grid.points * ROUNDS_USUAL;
	if (!record_is_sequential(&plan->config) || repeats <= ROUNDS_USUAL)
		return most;
	return usual > done ? usual - done : 0;
}

static void plan_label(struct buffer *out, const char *text)
{
	buffer_format(out, "  %-*s", LABEL_COLUMNS, text);
}

static void describe_time(const struct plan *plan, size_t repetitions, struct buffer *out)
{
	char text[UNITS_BYTES];
	const size_t repeats = (size_t)config_integer(&plan->config, KEY_MEASURE_REPEATS);
	plan_label(out, "points");
	const bool sequential = record_is_sequential(&plan->config);
	if (sequential)
		buffer_format(out,
			"%zu, each once, then again where the answer is open, at most %zu times",
			plan->grid.points, repeats);
	else
		buffer_format(out, "%zu x %zu repetition%s%s", plan->grid.points, repeats,
			repeats == 1 ? "" : "s",
			plan->grid.points > 1 ? " in seeded random order" : "");
	if (repetitions != plan->grid.points * repeats)
		buffer_format(out, ", %s%zu repetitions to go", sequential ? "at most " : "",
			repetitions);
	if (plan_repetition_seconds(plan) > 0)
		buffer_format(out, ", about %s",
			clock_format_span(
				plan_seconds(plan, plan_usual_repetitions(plan, repetitions)), text,
				sizeof text));
	if (plan_repetition_seconds(plan) > 0 && sequential)
		buffer_format(out, ", at most %s",
			clock_format_span(plan_seconds(plan, repetitions), text, sizeof text));
	else if (!(plan_repetition_seconds(plan) > 0))
		buffer_text(out, ", duration unknown (measure.epochs)");
	if (plan->as_needed)
		buffer_format(
			out, "; more until the answer is clear, at most %.0f s", PLAN_AT_MOST_S);
	if (plan->limits > 0)
		buffer_format(out, "; then %zu stages alone", plan->limits);
	buffer_text(out, "\n");
}

/* A measurement that cannot hold enough batches is known before it is made. */
static void describe_short(const struct plan *plan, struct buffer *out)
{
	const struct plan_cost *cost = &plan->cost;
	char duration[UNITS_BYTES], batch[UNITS_BYTES];
	if (cost->short_points == 0)
		return;
	const double least = cost->short_worst.batches_least;
	const double batch_s = cost->short_worst.batch_s;
	const double duration_s = cost->short_worst.duration_s;
	plan_label(out, "short");
	if (plan->grid.points > 1)
		buffer_format(out, "%zu of %zu points: ", cost->short_points, plan->grid.points);
	buffer_format(out,
		"measure.duration of %s is enough for only %s of the %g batches that a "
		"measurement needs, at %s per batch: a repetition takes up to %d times as "
		"long%s; measure.duration=%.0fs is enough\n",
		clock_format_span(duration_s, duration, sizeof duration),
		UNITS_PLAIN(duration_s / batch_s, 2), least,
		clock_format_span(batch_s, batch, sizeof batch), PIPELINE_EXTENSION,
		cost->short_worst.hopeless ? ", and even then measures too few" : "",
		ceil((least + 1) * batch_s));
}

/* Of files that hold many samples parts are, each with a reason of its own. */
static void plan_put_left_out(const struct dataset *set, struct buffer *out)
{
	const char *const end = set->bad_count == 1 ? "" : "s";
	if (set->bad_count == 0)
		return;
	if (set->offsets)
		buffer_format(
			out, "; not all of it is used, for %zu reason%s (", set->bad_count, end);
	else
		buffer_format(out, "; %zu file%s left out (", set->bad_count, end);
	utf8_add_plain(out, set->bad[0].path, "?");
	buffer_text(out, ": ");
	utf8_add_plain(out, set->bad[0].reason, "?");
	buffer_text(out, ")");
}

static void describe_data(const struct plan *plan, struct buffer *out)
{
	char text[UNITS_BYTES];
	const char *path = config_text(&plan->config, KEY_DATASET_PATH);
	plan_label(out, "data");
	if (plan->has_data) {
		const struct dataset *set = &plan->dataset;
		const bool some =
			!set->generated &&
			(int64_t)set->count == config_integer(&plan->config, KEY_DATASET_SAMPLES);
		const bool each = !sample_kind_of(&plan->config)->cut;
		buffer_format(out, "%" PRIu64 " %s%s, %s, in %s", each ? set->count : set->files,
			each && set->count == 1 ? "sample"
			: each                  ? "samples"
			: set->files == 1       ? "file"
						: "files",
			some ? " (no more than dataset.samples)" : "",
			units_format_size(
				(double)(each ? set->total_bytes : set->stored_bytes), text),
			path);
		if (!each)
			buffer_format(out, ": %s samples",
				units_format_count((double)plan->largest.samples, text));
		if (plan->form_count > 0)
			buffer_format(
				out, "; stored in %zu more forms beside it", plan->form_count);
		plan_put_left_out(set, out);
	} else {
		const bool makes = config_integer(&plan->config, KEY_DATASET_GENERATE) ==
				   DATASET_GENERATE_AUTO;
		buffer_format(out, "%s; %s", plan->data_why,
			makes ? "a run generates it first" : "'mlbench gen' makes it");
		buffer_format(out, ", about %s",
			clock_format_span(plan_generation_seconds(plan), text, sizeof text));
	}
	buffer_text(out, "\n");
}

static void describe_memory(const struct plan *plan, struct buffer *out)
{
	char pools[UNITS_BYTES];
	char all[UNITS_BYTES];
	plan_label(out, "memory");
	if (!plan->has_data) {
		buffer_text(out, "unknown until the data set exists\n");
		return;
	}
	const double bytes = (double)plan->largest.pool_bytes;
	const double alone = (double)plan->cost.limit_pool_bytes;
	const double bound = (double)plan->cost.bound_bytes;
	buffer_format(out, "at most %s resident%s: %s of pools at the largest point",
		units_format_size(bound, all),
		plan->facts.step_has_memory ? " (beside the CUDA libraries)" : "",
		units_format_size(bytes, pools));
	if (alone > bytes)
		buffer_format(out, ", %s where a stage runs alone, from memory",
			units_format_size(alone, pools));
	buffer_format(out, ", and %s for the program\n",
		units_format_size(bound - (alone > bytes ? alone : bytes), pools));
	if (plan->largest.sample.raw_bytes > 0)
		buffer_format(out, "           each slot of a batch holds %s of up to %s\n",
			plan->largest.kind->device->called,
			units_format_size((double)plan->largest.sample.raw_bytes, pools));
}

static void describe_checkpoints(const struct plan *plan, struct buffer *out)
{
	char size[UNITS_BYTES];
	const struct pipeline_plan *most = &plan->largest;
	if (!plan->has_data || most->checkpoint_bytes == 0)
		return;
	plan_label(out, "saving");
	buffer_format(out, "checkpoints of %s in %s, two at once%s\n",
		units_format_size((double)most->checkpoint_bytes, size), most->checkpoint_folder,
		most->checkpoint_async ? ", and one in memory" : "");
}

static void describe_evaluations(const struct plan *plan, struct buffer *out)
{
	const struct pipeline_plan *const most = &plan->largest;
	if (!plan->has_data || most->evaluation_samples == 0)
		return;
	plan_label(out, "evaluate");
	buffer_format(out, "%" PRIu64 " samples of %s in batches of %u, %u worker%s of their own\n",
		most->evaluation_samples,
		plan->dataset.evaluated ? plan->dataset.evaluated->root : plan->dataset.root,
		most->evaluation_batch, most->evaluation_workers,
		most->evaluation_workers == 1 ? "" : "s");
}

static void describe_timeline(const struct plan *plan, struct buffer *out)
{
	struct step_schedule schedule;
	char room[UNITS_BYTES];
	const char *text = config_text(&plan->config, KEY_TRACE_SCHEDULE);
	if (!*text || step_schedule_parse(text, &schedule))
		return;
	plan_label(out, "timeline");
	const uint64_t first = schedule.skip + schedule.wait + schedule.warmup;
	const uint64_t cycle = schedule.wait + schedule.warmup + schedule.active;
	if (step_schedule_kept(&schedule) == UINT64_MAX)
		buffer_format(out, "%llu of every %llu steps from step %llu on",
			(unsigned long long)schedule.active, (unsigned long long)cycle,
			(unsigned long long)first);
	else
		buffer_format(out, "%llu steps from step %llu on",
			(unsigned long long)step_schedule_kept(&schedule),
			(unsigned long long)first);
	buffer_text(out, ", of the first repetition of each point");
	if (plan->has_data)
		buffer_format(out, ", recorded in at most %s",
			units_format_size((double)plan->largest.timeline_bytes, room));
	buffer_text(out, "\n");
}

static void describe_conditions(const struct plan *plan, struct buffer *out)
{
	struct buffer injected = {0};
	struct buffer declared = {0};
	conditions_injected(&plan->config, ", ", &injected);
	conditions_declared(&plan->config, &declared);
	if (injected.data) {
		plan_label(out, "injected");
		buffer_format(out, "%s\n", injected.data);
	}
	if (declared.data) {
		plan_label(out, "declared");
		buffer_format(out, "%s\n", declared.data);
	}
	buffer_release(&injected);
	buffer_release(&declared);
	const char *warning = conditions_warning(&plan->config, plan->step.emulated);
	if (warning) {
		plan_label(out, "warning");
		buffer_format(out, "%s\n", warning);
	}
	if (plan->refused > 0) {
		plan_label(out, "refused");
		buffer_format(out, "%zu of %zu points cannot run here; the first: %s\n",
			plan->refused, plan->grid.points, plan->refusal.text);
	}
}

void plan_describe(const struct plan *plan, size_t repetitions, struct buffer *out)
{
	buffer_format(out, "%s  step: %s\n", plan->name, plan->step.description);
	if (plan->step_note[0]) {
		plan_label(out, "");
		buffer_format(out, "%s\n", plan->step_note);
	}
	if (plan->step.reference[0]) {
		plan_label(out, "");
		buffer_format(out, "reference: %s\n", plan->step.reference);
	}
	describe_conditions(plan, out);
	describe_time(plan, repetitions, out);
	describe_short(plan, out);
	describe_data(plan, out);
	plan_label(out, "engine");
	buffer_format(out, "%s%s%s%s\n", plan->engine, plan->engine_note[0] ? " (" : "",
		plan->engine_note, plan->engine_note[0] ? ")" : "");
	describe_memory(plan, out);
	describe_checkpoints(plan, out);
	describe_evaluations(plan, out);
	describe_timeline(plan, out);
	plan_label(out, "config");
	buffer_format(out, "%s %s\n", plan->hash, plan->config.path ? plan->config.path : "");
}

static json_t *points_of(const struct plan *plan)
{
	json_t *array = json_array();
	for (size_t point = 0; point < plan->grid.points; point++)
		if (json_array_append_new(
			    array, config_point_to_json(&plan->config, &plan->grid, point)) != 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

json_t *plan_to_json(const struct plan *plan)
{
	const size_t repeats = (size_t)config_integer(&plan->config, KEY_MEASURE_REPEATS);
	const bool timed = plan_repetition_seconds(plan) > 0;
	json_t *memory = plan->has_data ? json_real((double)plan->cost.bound_bytes) : json_null();
	const size_t most = plan->grid.points * repeats;
	json_t *seconds = fields_number(
		timed ? plan_seconds(plan, plan_usual_repetitions(plan, most)) : (double)NAN);
	const double planned_s = timed ? plan_seconds(plan, most) : (double)NAN;
	json_t *seconds_most =
		fields_number(plan->as_needed ? fmax(planned_s, PLAN_AT_MOST_S) : planned_s);
	json_t *step = json_pack("{s:s, s:b, s:s, s:o, s:o}", "backend", plan->step.backend,
		"emulated", (int)plan->step.emulated, "model", plan->step.model, "description",
		fields_text(plan->step.description), "flops_per_sample",
		plan->step.flops_per_sample > 0 ? json_real(plan->step.flops_per_sample)
						: json_null());
	return json_pack(
		"{s:s, s:o, s:s, s:o, s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:b, s:o, s:I, s:o}",
		"schema", "mlbench.check/1", "name", fields_text(plan->name), "config_hash",
		plan->hash, "step", step, "engine", plan->engine, "repeats", (json_int_t)repeats,
		"limits", (json_int_t)plan->limits, "refused", (json_int_t)plan->refused, "short",
		(json_int_t)plan->cost.short_points, "seconds", seconds, "seconds_most",
		seconds_most, "memory_bytes", memory, "data_set", (int)plan->has_data, "refusal",
		plan->refused ? fields_text(plan->refusal.text) : json_null(), "point_count",
		(json_int_t)plan->grid.points, "points", points_of(plan));
}
