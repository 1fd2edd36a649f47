/* Runs a configuration as a user would, by this very program in a child, and hands over the figures of its repetitions, and
 * what its diagnosis names.  A run of its own keeps the job apart from the check: what it crashes on is an error with the
 * last line that it said. */
#include "harness/checks/check.h"

#include "harness/accept/judge.h"
#include "harness/analyze/comparison.h"
#include "harness/base/array.h"
#include "harness/base/bounded.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/config/config.h"
#include "harness/config/config_place.h"
#include "harness/config/tables.h"
#include "harness/record/fields.h"
#include "harness/record/measurement.h"
#include "harness/record/record.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	/* run CONFIG --out DIR, two settings of the check's own, and the end. */
	ARGUMENTS_MAX = 10 + 2 * ACCEPT_SETS_MAX,
	SETTING_BYTES_MAX = PATH_MAX + 32,
	LOOK_MS = 20,
	ASKED_MS = 800, /* for a run that was asked to end by the user */
	LATE_MS = 2000, /* ... because the time is over: it writes down what it has */
	SAID_MOST = 1 << 20,
};

static const double CONFIDENCE_LEAST = 0.5;

#define BOTTLENECK "bottleneck"
#define BOTTLENECK_RESOURCE "bottleneck.resource"

/* --- the configuration ------------------------------------------------------------------------ */

/* Beside the plan, with or without .ini; else what the name means on the command line. */
static const char *pipeline_find_config(
	const struct accept_plan *plan, const char *name, char out[PATH_MAX])
{
	static const char *const endings[] = {"", ".ini"};
	struct stat status;
	const char *slash = plan->path ? strrchr(plan->path, '/') : NULL;
	const int folder = slash ? (int)(slash - plan->path) : 1;
	for (size_t i = 0; i < COUNT(endings) && plan->path && name[0] != '/'; i++) {
		const int length = snprintf(out, PATH_MAX, "%.*s/%s%s", folder,
			slash ? plan->path : ".", name, endings[i]);
		if (length > 0 && length < PATH_MAX && stat(out, &status) == 0 &&
			S_ISREG(status.st_mode))
			return out;
	}
	return config_place_find(name, out, PATH_MAX);
}

static int pipeline_refuse_sweep(const struct config *config, const char *name, struct error *err)
{
	if (config->axis_count == 0)
		return 0;
	const struct key *key = &config_keys[config->axes[0].key];
	return error_set(err, -EINVAL,
		"config = %.200s sweeps %s.%s, and a check runs one point: add 'set.%s.%s = VALUE'",
		name, key->section, key->name, key->section, key->name);
}

/* With the check's settings; release config in any case. */
static int pipeline_read_config(const struct accept_plan *plan, const struct accept_check *check,
	struct config *config, char path[PATH_MAX], struct error *err)
{
	const char *name = check_text(check, PLAN_CONFIG);
	config_init(config);
	if (!*name)
		return error_set(err, -EINVAL,
			"a pipeline check needs 'config = FILE', as config = imagenet_like");
	const char *found = pipeline_find_config(plan, name, path);
	if (found != path)
		(void)snprintf(path, PATH_MAX, "%s", found);
	const int code = config_read_file(config, path, err);
	if (code)
		return error_prefix(err, code, "config = %.200s", name);
	for (size_t i = 0; i < check->set_count; i++)
		if (config_set(config, check->sets[i], err))
			return error_prefix(err, -EINVAL, "set.%.200s", check->sets[i]);
	return pipeline_refuse_sweep(config, name, err);
}

static int pipeline_validate(
	const struct accept_plan *plan, const struct accept_check *check, struct error *err)
{
	struct config config;
	char path[PATH_MAX];
	const int code = pipeline_read_config(plan, check, &config, path, err);
	config_release(&config);
	return code;
}

static int pipeline_ask_storage(const struct check_context *context, struct error *err)
{
	struct config config;
	char path[PATH_MAX];
	int code = pipeline_read_config(context->plan, context->check, &config, path, err);
	const char *const folders[] = {config_text(&config, KEY_DATASET_PATH),
		config_text(&config, KEY_CHECKPOINT_PATH), config_text(&config, KEY_EVALUATE_PATH)};
	if (!code)
		code = paths_answer(folders, COUNT(folders), context->stop, err);
	config_release(&config);
	return code;
}

/* Whether its data set has to be generated: into the scratch folder then, so that nothing has to be prepared and nothing
 * is left behind. */
static bool pipeline_generates(const struct config *config)
{
	struct stat status;
	const char *path = config_text(config, KEY_DATASET_PATH);
	return config_integer(config, KEY_DATASET_RECIPE) != DATASET_RECIPE_NONE &&
	       (!*path || (!strstr(path, "://") && stat(path, &status) != 0));
}

static void pipeline_estimate(const struct check_context *context, struct check_cost *cost)
{
	enum {
		START_S = 2,
		SAMPLES_PER_S = 150,
		SAMPLE_BYTES = 128 * 1024,
		RESULT_BYTES = 4 << 20,
	};
	struct config config;
	struct error err;
	char path[PATH_MAX];
	*cost = (struct check_cost){.seconds = START_S, .disk_bytes = RESULT_BYTES};
	if (pipeline_read_config(context->plan, context->check, &config, path, &err) == 0) {
		const double each = (double)config_integer(&config, KEY_MEASURE_DURATION) +
				    (double)config_integer(&config, KEY_MEASURE_WARMUP);
		const double samples = (double)config_integer(&config, KEY_DATASET_SAMPLES);
		const double repeats = context->repeats > 0 ? context->repeats : 1;
		cost->seconds += repeats * each / (double)NS_PER_S;
		if (pipeline_generates(&config)) {
			cost->seconds += samples / SAMPLES_PER_S;
			cost->disk_bytes += samples * SAMPLE_BYTES;
		}
	}
	config_release(&config);
}

/* --- the child -------------------------------------------------------------------------------- */

struct pipeline {
	const struct check_context *context;
	struct config config;
	char path[PATH_MAX]; /* of the configuration */
	char out[PATH_MAX];  /* the run's folder */
	char said[PATH_MAX]; /* file of its error stream */
	char repeats[SETTING_BYTES_MAX], data[SETTING_BYTES_MAX];
	const char *arguments[ARGUMENTS_MAX];
	size_t argument_count;
};

static void pipeline_add(struct pipeline *pipeline, const char *option, const char *value)
{
	pipeline->arguments[pipeline->argument_count++] = option;
	pipeline->arguments[pipeline->argument_count++] = value;
}

static int pipeline_open(struct pipeline *pipeline, struct error *err)
{
	const struct check_context *context = pipeline->context;
	const struct accept_check *check = context->check;
	int code =
		pipeline_read_config(context->plan, check, &pipeline->config, pipeline->path, err);
	if (code)
		return code;
	if (snprintf(pipeline->out, sizeof pipeline->out, "%s/run", context->scratch) >= PATH_MAX ||
		snprintf(pipeline->said, sizeof pipeline->said, "%s/said", context->scratch) >=
			PATH_MAX)
		return error_set(err, -ENAMETOOLONG, "path too long: '%s'", context->scratch);
	(void)snprintf(pipeline->repeats, sizeof pipeline->repeats, "measure.repeats=%u",
		context->repeats);
	pipeline_add(pipeline, context->program, "run");
	pipeline->arguments[pipeline->argument_count++] = pipeline->path;
	pipeline_add(pipeline, "--out", pipeline->out);
	pipeline_add(pipeline, "--set", pipeline->repeats);
	for (size_t i = 0; i < check->set_count; i++)
		pipeline_add(pipeline, "--set", check->sets[i]);
	if (pipeline_generates(&pipeline->config)) {
		(void)snprintf(pipeline->data, sizeof pipeline->data, "dataset.path=%s/data",
			context->scratch);
		pipeline_add(pipeline, "--set", pipeline->data);
	}
	return 0;
}

/* In the child: it ends with its parent, and what it prints goes nowhere but for errors. */
static void pipeline_become(const struct pipeline *pipeline, pid_t parent)
{
	sigset_t none;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGINT, SIG_DFL);
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int said = open(pipeline->said, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	(void)dup2(null, STDIN_FILENO);
	(void)dup2(null, STDOUT_FILENO);
	(void)dup2(said >= 0 ? said : null, STDERR_FILENO);
	(void)execv(pipeline->arguments[0], (char *const *)(uintptr_t)pipeline->arguments);
	_exit(EXIT_FAILURE);
}

/* True: it has ended, and *status says how. */
static bool pipeline_ends(
	pid_t child, uint64_t until_ns, const struct check_context *context, int *status)
{
	for (;;) {
		const pid_t ended = waitpid(child, status, WNOHANG);
		if (ended == child || (ended < 0 && errno != EINTR))
			return true;
		if ((until_ns && clock_now_ns() >= until_ns) || (context && check_stopped(context)))
			return false;
		clock_sleep_until_ns(clock_now_ns() + LOOK_MS * NS_PER_MS);
	}
}

/* Its wait status.  -EINTR: the user stopped it; -ETIMEDOUT: it was asked to end, as the time was over, and what it had by
 * then is in its folder. */
static int pipeline_run_child(const struct pipeline *pipeline, int *status, struct error *err)
{
	const struct check_context *context = pipeline->context;
	const pid_t parent = getpid();
	const pid_t child = fork();
	if (child == 0)
		pipeline_become(pipeline, parent);
	if (child < 0)
		return error_set_errno(err, errno, "cannot start a process");
	if (pipeline_ends(child, 0, context, status))
		return 0;
	const bool stopped = context->stop && atomic_load(context->stop);
	const uint64_t grace = stopped ? ASKED_MS : LATE_MS;
	(void)kill(child, SIGINT);
	if (!pipeline_ends(child, clock_now_ns() + grace * NS_PER_MS, NULL, status)) {
		(void)kill(child, SIGKILL);
		(void)pipeline_ends(child, clock_now_ns() + ASKED_MS * NS_PER_MS, NULL, status);
	}
	return stopped ? error_set(err, -EINTR, "stopped")
		       : error_set(err, -ETIMEDOUT,
				 "the run did not end in time: a longer budget, or a shorter measure.duration");
}

/* The last line that it said, without "error: ". */
static void pipeline_last_words(const struct pipeline *pipeline, char *out, size_t room)
{
	static const char error[] = "error: ";
	char *text;
	size_t size;
	struct error why;
	(void)snprintf(out, room, "it said nothing");
	if (files_read(pipeline->said, SAID_MOST, &text, &size, &why))
		return;
	while (size > 0 && text[size - 1] == '\n')
		text[--size] = '\0';
	const char *line = size > 0 ? strrchr(text, '\n') : NULL;
	line = line ? line + 1 : text;
	if (strncmp(line, error, sizeof error - 1) == 0)
		line += sizeof error - 1;
	if (*line)
		(void)snprintf(out, room, "%s", line);
	free(text);
}

/* --- its figures ------------------------------------------------------------------------------ */

static bool pipeline_is_text(const char *figure)
{
	return strcmp(figure, BOTTLENECK) == 0 || strcmp(figure, BOTTLENECK_RESOURCE) == 0;
}

/* The values of one repetition; found (limit_count): for which figures there is one. */
static void pipeline_hand_over_one(
	const struct pipeline *pipeline, const struct measurement *m, bool *found)
{
	const struct check_context *context = pipeline->context;
	const struct accept_check *check = context->check;
	for (size_t i = 0; i < check->limit_count; i++) {
		const char *name = check->limits[i].figure->name;
		struct metric metric;
		bool seen = pipeline_is_text(name) || !check_wants(context, name, "");
		for (size_t before = 0; before < i && !seen; before++)
			seen = check->limits[before].figure == check->limits[i].figure;
		if (seen || metric_find(name, &metric, NULL))
			continue;
		const double value = metric_value(&metric, m);
		found[i] = found[i] || isfinite(value);
		if (isfinite(value))
			sink_value(context->sink, name, "", value);
	}
}

static void pipeline_say_missing(const struct pipeline *pipeline, const bool *found)
{
	const struct check_context *context = pipeline->context;
	const struct accept_check *check = context->check;
	for (size_t i = 0; i < check->limit_count; i++) {
		const char *name = check->limits[i].figure->name;
		bool any = false;
		for (size_t j = 0; j < check->limit_count; j++)
			any = any ||
			      (check->limits[j].figure == check->limits[i].figure && found[j]);
		if (!any && !pipeline_is_text(name) && check_wants(context, name, ""))
			sink_lack(context->sink, name, "", "this run has no such figure");
	}
}

/* Figures of the whole and of the step are those of an emulated device where the step is: each finding says so, because such
 * a device keeps its time whatever the node does. */
static void pipeline_say_emulated(const struct pipeline *pipeline, const struct record *record)
{
	static const char *const of_stages[] = {"read.", "decode.", "upload."};
	const struct check_context *context = pipeline->context;
	if (!record->step.emulated || context->round > 0)
		return;
	sink_note(context->sink, "step: %s", record->step.description);
	for (size_t i = 0; i < context->check->limit_count; i++) {
		const char *name = context->check->limits[i].figure->name;
		bool own = false;
		for (size_t stage = 0; stage < COUNT(of_stages); stage++)
			own |= strncmp(name, of_stages[stage], strlen(of_stages[stage])) == 0;
		if (!own)
			sink_event(context->sink, name, "", (double)NAN, "the step is emulated");
	}
}

/* Those that count, by the one rule; how many in *counted. */
static int pipeline_hand_over(const struct pipeline *pipeline, const struct record *record,
	size_t *counted, struct error *err)
{
	bool found[ACCEPT_CRITERIA_MAX] = {false};
	int code = 0;
	*counted = 0;
	for (size_t i = 0; i < record->entry_count && !code; i++) {
		struct measurement m = {0};
		if (!record_counts(record, &record->entries[i]))
			continue;
		char cold[COLD_ENDED_BYTES];
		code = record_load(record, i, &m, err);
		if (!code && measurement_cold_ended(m.after_cold, m.page_cache_share, cold))
			code = error_set(err, -ENODATA, "not measured as asked: %s", cold);
		if (!code) {
			pipeline_hand_over_one(pipeline, &m, found);
			++*counted;
		}
		measurement_release(&m);
	}
	if (!code && *counted > 0)
		pipeline_say_missing(pipeline, found);
	return code;
}

/* --- its diagnosis ---------------------------------------------------------------------------- */

static bool pipeline_asks_bottleneck(const struct check_context *context)
{
	return check_asks(context->check, BOTTLENECK) ||
	       check_asks(context->check, BOTTLENECK_RESOURCE);
}

static void pipeline_no_bottleneck(const struct check_context *context, const char *why)
{
	static const char *const figures[] = {BOTTLENECK, BOTTLENECK_RESOURCE};
	for (size_t i = 0; i < COUNT(figures); i++)
		if (check_wants(context, figures[i], ""))
			sink_missing(context->sink, figures[i], "", "%s", why);
}

/* Whether the plan's verdict on a figure is the same for both of two stages that a diagnosis cannot tell apart: else
 * nobody could say which holds. */
static bool pipeline_alike(
	const struct check_context *context, const char *figure, const char *a, const char *b)
{
	const struct accept_check *check = context->check;
	for (size_t i = 0; i < check->limit_count; i++) {
		const struct criterion *criterion = &check->limits[i].criterion;
		if (strcmp(check->limits[i].figure->name, figure) != 0)
			continue;
		for (size_t j = 0; j < criterion->clause_count; j++)
			if (judge_text(&criterion->clauses[j], a) !=
				judge_text(&criterion->clauses[j], b))
				return false;
	}
	return true;
}

/* What the run's own summary says: the same diagnosis that `mlbench diagnose` prints. */
static void pipeline_hand_over_verdict(const struct check_context *context, const json_t *verdict)
{
	struct check_sink *sink = context->sink;
	const char *stage = fields_text_of(verdict, "stage");
	const char *also = fields_text_of(verdict, "also");
	const char *resource = fields_text_of(verdict, "resource");
	const char *evidence =
		json_string_value(json_array_get(json_object_get(verdict, "evidence"), 0));
	const double confidence = json_number_value(json_object_get(verdict, "confidence"));
	if (!*stage || strcmp(stage, "none") == 0) {
		pipeline_no_bottleneck(context, "the diagnosis is inconclusive");
		sink_note(sink, "the diagnosis is inconclusive: %s",
			evidence ? evidence : "no evidence");
		return;
	}
	sink_note(sink, "bottleneck: %s%s%s (%s), %.0f %% confidence. %s", stage,
		*also ? " or " : "", also, resource, 100 * confidence, evidence ? evidence : "");
	if (*fields_text_of(verdict, "advice"))
		sink_note(sink, "advice of the diagnosis: %s", fields_text_of(verdict, "advice"));
	if (confidence < CONFIDENCE_LEAST) {
		pipeline_no_bottleneck(context, "the diagnosis is more probably wrong than right");
		return;
	}
	if (*also && !pipeline_alike(context, BOTTLENECK, stage, also))
		sink_missing(sink, BOTTLENECK, "",
			"the diagnosis cannot tell whether %s or %s limits the run", stage, also);
	else if (check_wants(context, BOTTLENECK, ""))
		sink_text(sink, BOTTLENECK, "", stage);
	if (check_wants(context, BOTTLENECK_RESOURCE, ""))
		sink_text(sink, BOTTLENECK_RESOURCE, "", resource);
}

static void pipeline_hand_over_bottleneck(const struct pipeline *pipeline)
{
	char path[PATH_MAX];
	const json_t *point = NULL;
	(void)snprintf(path, sizeof path, "%.4000s/summary.json", pipeline->out);
	json_t *summary = json_load_file(path, 0, NULL);
	point = json_array_get(json_object_get(summary, "points"), 0);
	if (point)
		pipeline_hand_over_verdict(pipeline->context, json_object_get(point, "verdict"));
	else if (pipeline_asks_bottleneck(pipeline->context))
		pipeline_no_bottleneck(pipeline->context, "the run left no summary");
	json_decref(summary);
}

/* --- the check -------------------------------------------------------------------------------- */

/* code, err: of the child. */
static int pipeline_read_result(struct pipeline *pipeline, int code, int status, struct error *err)
{
	char words[ERROR_TEXT_BYTES];
	struct record record = {0};
	struct error why = {0};
	size_t counted = 0;
	pipeline_last_words(pipeline, words, sizeof words);
	if (!code && WIFSIGNALED(status))
		return error_set(err, -EIO, "the run died by signal %d (%s); %.300s",
			WTERMSIG(status), strsignal(WTERMSIG(status)), words);
	int read = record_open(&record, pipeline->out, &why);
	if (!read) {
		read = pipeline_hand_over(pipeline, &record, &counted, &why);
		if (read)
			code = error_set(err, read, "%s", why.text);
	}
	if (!read && counted > 0)
		pipeline_say_emulated(pipeline, &record);
	record_release(&record);
	if (!read && counted > 0) {
		pipeline_hand_over_bottleneck(pipeline);
		if (counted < pipeline->context->repeats)
			sink_note(pipeline->context->sink, "%zu of %u repetitions count: %s",
				counted, pipeline->context->repeats, code ? err->text : words);
		return 0;
	}
	if (code)
		return code;
	return error_set(err, read ? read : -EIO, "the run ended with exit status %d: %.400s",
		WEXITSTATUS(status), words);
}

static int pipeline_run(const struct check_context *context, struct error *err)
{
	int status = 0;
	struct pipeline *pipeline = calloc(1, sizeof *pipeline);
	if (!pipeline)
		return error_set(err, -ENOMEM, "out of memory");
	pipeline->context = context;
	int code = pipeline_open(pipeline, err);
	if (!code) {
		sink_activity(context->sink, "running %s", pipeline->path);
		sink_note(context->sink, "ran %s%s%s", pipeline->path,
			*pipeline->data ? " on generated data in " : "",
			*pipeline->data ? context->scratch : "");
		code = pipeline_run_child(pipeline, &status, err);
		if (code == 0 || code == -ETIMEDOUT)
			code = pipeline_read_result(pipeline, code, status, err);
	}
	config_release(&pipeline->config);
	free(pipeline);
	return code;
}

const struct check_ops check_pipeline = {
	.kind = ACCEPT_PIPELINE,
	.validate = pipeline_validate,
	.ask_storage = pipeline_ask_storage,
	.estimate = pipeline_estimate,
	.run = pipeline_run,
};
