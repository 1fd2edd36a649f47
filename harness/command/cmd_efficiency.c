/* mlbench efficiency: the user's own data loader beside this hardware, or beside none in the user's own loop.  The pipeline's
 * repetitions are an ordinary result; what the loader did stands in efficiency.json beside them and nowhere else: its figures
 * are those of another program. */
#include "harness/analyze/foreign_load.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/base/units.h"
#include "harness/command/command.h"
#include "harness/command/resume.h"
#include "harness/command/run_plan.h"
#include "harness/command/watched_run.h"
#include "harness/fit/step_log.h"
#include "harness/report/efficiency_report.h"
#include "harness/report/loop_report.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct efficiency_job {
	const struct invocation *invocation;
	char name[RECORD_NAME_BYTES]; /* of the configuration */
	struct plan plan;
	struct record record; /* of this pipeline */
	struct watched_run run;
	size_t rounds; /* wanted */
	struct efficiency_look loader[EFFICIENCY_ROUNDS_MAX], hardware[EFFICIENCY_ROUNDS_MAX];
	size_t done;
	struct watched_facts loader_facts, hardware_facts; /* of the last round */
	double loader_others,
		hardware_others; /* cores that other processes kept busy meanwhile, sums over rounds; NAN */
	size_t unsteady;
	bool interrupted;
};

/* --- what is run -------------------------------------------------------------------------------- */

/* The pipeline alone: no step, nothing beside it, and nothing emulated. */
static int efficiency_configure(struct efficiency_job *job, struct error *err)
{
	static const struct {
		enum key_id key;
		const char *value;
	} alone[] = {{KEY_STEP_BACKEND, "null"}, {KEY_MEASURE_LIMITS, "off"},
		{KEY_CHECKPOINT_EVERY, "0"}, {KEY_EVALUATE_EVERY, "0"}, {KEY_UPLOAD_MODE, "none"}};
	int code = 0;
	for (size_t i = 0; i < sizeof alone / sizeof alone[0] && !code; i++)
		code = config_set_key(&job->plan.config, alone[i].key, alone[i].value, err);
	for (int key = 0; key < KEY_COUNT && !code; key++)
		if (strcmp(config_keys[key].section, "inject") == 0 ||
			strcmp(config_keys[key].section, "overhead") == 0)
			code = config_set_key(&job->plan.config, (enum key_id)key,
				config_keys[key].fallback, err);
	return code;
}

/* The result is not taken for one of a plain run of CONFIG. */
static void efficiency_choose_name(struct efficiency_job *job)
{
	(void)snprintf(job->name, sizeof job->name, "%s", job->plan.name);
	(void)snprintf(job->plan.name, sizeof job->plan.name, "efficiency-%.100s", job->name);
}

static int efficiency_open(struct efficiency_job *job, struct error *err)
{
	const struct options *options = &job->invocation->options;
	struct invocation plain = *job->invocation;
	plain.options.set_count = 0; /* they are in the configuration */
	int code =
		config_place_read(&job->plan.config, job->invocation, options->arguments[0], err);
	if (!code && job->plan.config.axis_count > 0) {
		struct buffer names = {0};
		plan_swept(&job->plan.config, &names);
		code = error_set(err, -EINVAL,
			"'%.200s' sweeps %s: give each one value with --set, as --set decode.workers=2",
			options->arguments[0], names.data ? names.data : "");
		buffer_release(&names);
	}
	if (!code)
		code = efficiency_configure(job, err);
	if (!code)
		code = plan_open(&job->plan, &plain, NULL, err);
	if (!code)
		code = plan_data(&job->plan, &plain, true, err);
	if (code)
		return code;
	efficiency_choose_name(job);
	const int64_t rounds = config_integer(&job->plan.config, KEY_MEASURE_REPEATS);
	job->rounds = rounds < EFFICIENCY_ROUNDS_MAX ? (size_t)rounds : EFFICIENCY_ROUNDS_MAX;
	job->run = (struct watched_run){.config = &job->plan.config,
		.dataset = &job->plan.dataset,
		.command = (char *const *)(uintptr_t)(options->arguments + 1),
		.stop = job->invocation->stop};
	return resume_record(&job->record, &job->plan, job->invocation, err);
}

/* --- the result ------------------------------------------------------------------------------- */

/* One without a repetition would be the newest. */
static void efficiency_remove(struct efficiency_job *job)
{
	char *points = files_join(job->record.folder, "points.jsonl");
	char *traces = files_join(job->record.folder, "traces");
	if (points)
		(void)unlink(points);
	if (traces)
		(void)files_remove_tree(traces, NULL);
	(void)rmdir(job->record.folder);
	free(points);
	free(traces);
}

/* As many repetitions as its configuration says: nobody shall go on with it without the loader. */
static int efficiency_end_record(struct efficiency_job *job)
{
	struct record *record = &job->record;
	struct error err = {0};
	if (!record->locked)
		return 0;
	if (record->entry_count == 0) {
		efficiency_remove(job);
		return 0;
	}
	int code = record_settle_repeats(record, (uint32_t)record->entry_count, &err);
	if (!code)
		code = record_end(record, &err);
	if (code)
		log_warn("%s", err.text);
	return code;
}

/* --- the rounds ------------------------------------------------------------------------------- */

/* One of each, the first one in turn. */
static int efficiency_round(struct efficiency_job *job, size_t round, struct error *err)
{
	int code = 0;
	for (size_t i = 0; i < 2 && !code; i++) {
		const bool loader = i == round % 2;
		log_progress("round %zu of %zu: %s", round + 1, job->rounds,
			loader ? "your loader" : "this pipeline");
		if (loader)
			code = watched_run_loader(
				&job->run, &job->loader[round], &job->loader_facts, err);
		else
			code = watched_run_pipeline(&job->run, &job->record, &job->hardware[round],
				&job->hardware_facts, err);
		if (!code && !loader)
			job->unsteady += job->hardware_facts.unsteady[0] != '\0';
	}
	if (!code) {
		job->loader_others += job->loader_facts.other_cores;
		job->hardware_others += job->hardware_facts.other_cores;
	}
	return code;
}

static int efficiency_measure(struct efficiency_job *job, struct error *err)
{
	int code = 0;
	while (job->done < job->rounds && !code) {
		code = efficiency_round(job, job->done, err);
		job->done += code == 0;
	}
	log_progress_end();
	job->interrupted = code == -EINTR;
	return job->interrupted && job->done > 0 ? 0 : code;
}

/* --- what is said ------------------------------------------------------------------------------- */

static void efficiency_note(json_t *notes, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void efficiency_note(json_t *notes, const char *format, ...)
{
	char text[EFFICIENCY_WHY_BYTES];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	(void)json_array_append_new(notes, json_string(text));
}

/* Whoever runs beside one side makes it slower, and beside both, other things alike. */
static void efficiency_note_others(const struct efficiency_job *job, json_t *notes)
{
	const double loader = job->loader_others / (double)job->done;
	const double hardware = job->hardware_others / (double)job->done;
	const double cores = job->hardware_facts.node_cores;
	/* fmax passes over NAN. */
	if (!(cores > 0) || !foreign_load_is_heavy(fmax(loader, hardware), (unsigned)cores))
		return;
	char sides[2][24] = {"an unknown number", "an unknown number"};
	if (isfinite(loader))
		(void)snprintf(sides[0], sizeof sides[0], "%.1f", fmax(loader, 0));
	if (isfinite(hardware))
		(void)snprintf(sides[1], sizeof sides[1], "%.1f", fmax(hardware, 0));
	efficiency_note(notes,
		"disturbed: other processes kept %s of %.0f cores busy while your loader ran and %s while this pipeline ran; stop them and measure again",
		sides[0], cores, sides[1]);
}

static json_t *efficiency_notes(const struct efficiency_job *job)
{
	const struct watched_facts *facts = &job->loader_facts;
	const int64_t workers = config_integer(&job->plan.config, KEY_DECODE_WORKERS);
	const int64_t batch = config_integer(&job->plan.config, KEY_BATCH_SIZE);
	json_t *notes = json_array();
	efficiency_note(notes,
		"this pipeline ran without a step: a loader that also trains has less time for loading");
	if (facts->loaders > 0 && (int64_t)facts->loaders != workers)
		efficiency_note(notes,
			"your loader had %u worker processes, this pipeline %lld workers (MLBENCH_WORKERS)",
			facts->loaders, (long long)workers);
	if ((int64_t)facts->batch_samples != batch)
		efficiency_note(notes,
			"your loader's last batch had %llu samples, this pipeline's have %lld (MLBENCH_BATCH)",
			(unsigned long long)facts->batch_samples, (long long)batch);
	if (facts->wrong_lines)
		efficiency_note(notes, "%llu lines of 'batch' had no count of samples",
			(unsigned long long)facts->wrong_lines);
	if (facts->no_classes[0] || job->hardware_facts.no_classes[0])
		efficiency_note(notes, "CPU time by class: %s",
			facts->no_classes[0] ? facts->no_classes : job->hardware_facts.no_classes);
	efficiency_note_others(job, notes);
	if (job->unsteady)
		efficiency_note(notes, "%zu of %zu rounds of this pipeline were not steady",
			job->unsteady, job->done);
	if (job->done < 3)
		efficiency_note(notes,
			"only %zu rounds: the interval is unreliable (measure.repeats)", job->done);
	if (job->interrupted)
		efficiency_note(
			notes, "interrupted after %zu of %zu rounds", job->done, job->rounds);
	return notes;
}

/* NULL without memory. */
static json_t *efficiency_document(const struct efficiency_job *job)
{
	const struct config *config = &job->plan.config;
	const struct efficiency_input input = {.loader = job->loader,
		.hardware = job->hardware,
		.rounds = job->done,
		.workers = (unsigned)config_integer(config, KEY_DECODE_WORKERS),
		.cores = fmin(job->loader_facts.allowed_cores, job->hardware_facts.allowed_cores)};
	struct efficiency *found = calloc(1, sizeof *found);
	json_t *notes = efficiency_notes(job);
	json_t *document = NULL;
	if (found) {
		efficiency_find(&input, found);
		const struct efficiency_material material = {.name = job->name,
			.folder = job->record.folder,
			.input = &input,
			.found = found,
			.samples = job->plan.samples,
			.batch_size = (uint64_t)config_integer(config, KEY_BATCH_SIZE),
			.stage = job->loader_facts.stage,
			.resource = job->loader_facts.resource,
			.duration_s = (double)config_integer(config, KEY_MEASURE_DURATION) / 1e9,
			.warmup_s = (double)config_integer(config, KEY_MEASURE_WARMUP) / 1e9,
			.planned = job->rounds,
			.notes = notes};
		document = efficiency_json(&material);
	}
	free(found);
	json_decref(notes);
	return document;
}

static int efficiency_deliver(struct efficiency_job *job, struct error *err)
{
	json_t *document = efficiency_document(job);
	struct error why;
	struct buffer text = {0};
	if (!document)
		return command_status(error_set(err, -ENOMEM, "out of memory"));
	const int saved = command_save_json(job->record.folder, EFFICIENCY_FILE, document, &why);
	int printed;
	if (command_wants_json(job->invocation)) {
		printed = command_print_json(job->invocation, json_incref(document), err);
	} else {
		const struct style style = command_style(job->invocation);
		struct medium medium = medium_terminal(&style, &text);
		efficiency_text(document, &medium);
		printed = command_print(&text, err);
	}
	json_decref(document);
	if (saved && !printed)
		*err = why;
	return printed ? printed : command_status(saved);
}

/* --- a log of headroom.py ----------------------------------------------------------------------- */

static struct loop_step *efficiency_steps_of(const struct step_log *log)
{
	struct loop_step *steps = calloc(log->count + 1, sizeof *steps);
	for (size_t i = 0; i < log->count && steps; i++) {
		const double *of = log->of[i].of;
		const double side = of[STEP_ROLE_SIDE];
		steps[i] = (struct loop_step){
			.side = isnan(side) ? LOOP_NOT_COUNTED : (enum loop_side)side,
			.end_s = of[STEP_ROLE_CLOCK],
			.samples = of[STEP_ROLE_BATCH],
			.wait_s = of[STEP_ROLE_WAIT] / 1e9};
	}
	return steps;
}

static int efficiency_print_headroom(const struct invocation *invocation,
	const struct loop_headroom *found, const char *path, struct error *err)
{
	json_t *document = loop_json(found, path);
	struct buffer text = {0};
	if (!document)
		return command_status(error_set(err, -ENOMEM, "out of memory"));
	int status;
	if (command_wants_json(invocation)) {
		status = command_print_json(invocation, json_incref(document), err);
	} else {
		const struct style style = command_style(invocation);
		struct medium medium = medium_terminal(&style, &text);
		loop_text(document, &medium);
		status = command_print(&text, err);
	}
	json_decref(document);
	return status ? status : found->verdict == LOOP_HEADROOM_UNKNOWN ? EXIT_STATUS_CANNOT : 0;
}

/* -ENOMSG: it is no such log. */
static int efficiency_headroom(
	const struct invocation *invocation, const char *path, int *status, struct error *err)
{
	struct step_log log = {0};
	struct loop_headroom found;
	bool sides = false;
	int code = step_log_read(&log, path, err);
	for (size_t i = 0; i < log.count && !code; i++)
		sides = sides || isfinite(log.of[i].of[STEP_ROLE_SIDE]);
	if (!code && !(sides && log.named[STEP_ROLE_CLOCK]))
		code = error_set(err, -ENOMSG,
			"'%.200s' has no column of sides: to measure the headroom of a loop, wrap its "
			"loader with pipelines/adaptors/headroom.py and give its log",
			path);
	struct loop_step *steps = code ? NULL : efficiency_steps_of(&log);
	if (!code && !steps)
		code = error_set(err, -ENOMEM, "out of memory");
	if (!code) {
		loop_headroom_find(steps, log.count, &found);
		*status = efficiency_print_headroom(invocation, &found, path, err);
	}
	free(steps);
	step_log_release(&log);
	return code;
}

/* A configuration is not taken for a log. */
static int efficiency_run_alone(const struct invocation *invocation, struct error *err)
{
	const char *path = invocation->options.arguments[0];
	const char *ending = strrchr(path, '.');
	int status = 0;
	const int code =
		ending && strcmp(ending, ".ini") == 0
			? error_set(err, -EINVAL,
				  "no command of a loader: mlbench efficiency CONFIG -- CMD ...")
			: efficiency_headroom(invocation, path, &status, err);
	return code ? command_status(code) : status;
}

static int efficiency_run(const struct invocation *invocation, struct error *err)
{
	if (invocation->options.argument_count == 1)
		return efficiency_run_alone(invocation, err);
	struct efficiency_job *job = calloc(1, sizeof *job);
	if (!job)
		return command_status(error_set(err, -ENOMEM, "out of memory"));
	job->invocation = invocation;
	int code = efficiency_open(job, err);
	if (!code)
		code = efficiency_measure(job, err);
	int status = code == -EINTR ? EXIT_STATUS_INTERRUPTED : command_status(code);
	const int ended = efficiency_end_record(job);
	if (!code)
		status = efficiency_deliver(job, err);
	if (!status)
		status = command_status(ended);
	if (!status && job->interrupted)
		status = EXIT_STATUS_INTERRUPTED;
	record_release(&job->record);
	plan_close(&job->plan);
	free(job);
	return status;
}

const struct command command_efficiency = {
	.name = "efficiency",
	.summary = "measure your own data loader beside what this hardware can give",
	.arguments = "CONFIG -- CMD... | LOG",
	.runs_command = true,
	.description =
		"Runs your real loader and the pipeline of CONFIG in turn, on the same files with "
		"the same number of workers, measure.repeats rounds of each, and compares "
		"samples/s, CPU time a sample, memory and bytes read. It says in which class of "
		"code the difference goes (decoding, resize, copies, the interpreter, ...), and "
		"what cheaper code would give, where that follows from what was measured.\n\n"
		"CONFIG is one setting: a case (mlbench fit), or a configuration in which --set gives "
		"each swept key one value.\n\n"
		"The pipeline's repetitions are saved as a result, in results/efficiency-NAME or "
		"--out, which show, report, compare, history and export take like any other. What "
		"the loader did stands beside them in efficiency.json, and in no result of mlbench: "
		"they are figures of another program.\n\n"
		"CMD is any command that prints the line 'batch N' on standard output for each "
		"batch of N samples that its loader hands over, as soon as it has it. Any other line is "
		"ignored. CMD finds the folder, the number of workers and the batch size in the "
		"environment: MLBENCH_FOLDER, MLBENCH_WORKERS, MLBENCH_BATCH. It should go on through "
		"as many epochs as measure.warmup and measure.duration take; it is ended when it "
		"was measured. pipelines/adaptors/ has examples of a few lines for PyTorch's "
		"DataLoader, WebDataset and any Python iterable.\n\n"
		"The pipeline runs without a step, and without what CONFIG injects or emulates. CMD "
		"runs in a process group of its own, is watched from outside like 'mlbench "
		"observe' does, and is ended if it hangs. Nothing that it prints is "
		"interpreted beyond that line.\n\n"
		"LOG is what pipelines/adaptors/headroom.py wrote: wrapped around the loader of your "
		"own training loop, it hands the loop batches from memory in turns with those of the "
		"loader. It says what a perfect loader would gain, with a 95 % CI, and which part of "
		"that comes from cores that the loader's workers set free. It may be asked while the "
		"job goes on, from five rounds on.\n\n"
		"Exit status: 0 measured, 2 the loader, CONFIG or LOG is wrong, 3 this pipeline could "
		"not be measured or LOG does not show the gain, 130 interrupted.",
	.example = "mlbench efficiency case.ini --data /data/train -- python3 my_loader.py",
	.options = OPTION_BIT(OPTION_SET) | OPTION_BIT(OPTION_DATA) | OPTION_BIT(OPTION_OUT) |
		   OPTION_BIT(OPTION_NODE) | OPTION_BIT(OPTION_JSON),
	.arguments_min = 1,
	.arguments_max = SIZE_MAX,
	.run = efficiency_run,
};
