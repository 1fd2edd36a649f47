/* mlbench observe: any running job, from outside. */
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/base/units.h"
#include "harness/command/command.h"
#include "harness/fit/case_report.h"
#include "harness/live/look.h"
#include "harness/live/status.h"
#include "harness/measure/environment.h"
#include "harness/report/observe_report.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t OBSERVE_LEAST_NS = NS_PER_S, OBSERVE_USUAL_NS = 30 * NS_PER_S,
		      OBSERVE_MOST_NS = 24 * 3600 * NS_PER_S;
static const double OBSERVE_SHARE = 0.005; /* of a core: half of what is promised */

struct observe_request {
	int32_t pid;
	double seconds;
};

static int observe_parse(
	const struct options *options, struct observe_request *out, struct error *err)
{
	const char *text = options->arguments[0];
	const char *how_long = options->values[OPTION_FOR];
	uint64_t ns = OBSERVE_USUAL_NS;
	char *end;
	errno = 0;
	const long number = strtol(text, &end, 10);
	if (errno || *end || end == text || number <= 0 || number > INT32_MAX)
		return error_set(err, -EINVAL, "'%.100s' is not a process ID", text);
	if (how_long && units_parse_duration(how_long, &ns))
		return error_set(
			err, -EINVAL, "--for %.100s: not a time; such as 30s or 5m", how_long);
	if (ns < OBSERVE_LEAST_NS || ns > OBSERVE_MOST_NS)
		return error_set(err, -EINVAL, "--for %.100s: at least 1s, at most 24h", how_long);
	*out = (struct observe_request){(int32_t)number, (double)ns / (double)NS_PER_S};
	return 0;
}

/* --- a job that stands still -------------------------------------------------------------------- */

static void observe_link(struct job_lines *lines, const char *who, int32_t pid, const char *words)
{
	if (lines->count < JOB_LINES_MAX)
		(void)snprintf(lines->of[lines->count++], JOB_LINE_BYTES, "%s %d: %.250s", who, pid,
			words);
}

/* " <- process 12, 13": those that hold the other end of what it reads. */
static void observe_waits_for(
	const struct job_record *record, size_t process, char *words, size_t room)
{
	struct job_edge edges[JOB_LINES_MAX];
	const size_t count = job_edges(record, edges, JOB_LINES_MAX);
	bool first = true;
	for (size_t i = 0; i < count; i++) {
		const size_t used = strlen(words);
		if (edges[i].from != process || used + 1 >= room)
			continue;
		(void)snprintf(words + used, room - used, "%s%d",
			first ? " <- waits for process " : ", ",
			record->processes[edges[i].to].pid);
		first = false;
	}
}

/* What a thread waits for; the file that it waits for has no name in a result. */
static void observe_look_at(struct job_lines *lines, const struct job_record *record, size_t i)
{
	const struct job_process *process = &record->processes[i];
	struct thread_look look;
	char words[LOOK_WORDS_BYTES];
	char told[JOB_LINE_BYTES];
	if (!look_stands_still(process->pid, &look))
		return;
	if (look.file[0] == '/')
		(void)snprintf(look.file, sizeof look.file, "a file");
	(void)snprintf(told, sizeof told, "%.200s", look_words(&look, words));
	observe_waits_for(record, i, told, sizeof told);
	observe_link(lines, "process", process->pid, told);
}

/* A run of mlbench tells more of itself. */
static bool observe_own_run(int32_t pid, struct job_lines *lines)
{
	struct status *status = calloc(1, sizeof *status);
	struct error ignored;
	const bool own = status && status_look(pid, true, status, &ignored) == 0;
	if (own)
		observe_link(lines, "a run of mlbench, process", pid,
			status->seen ? status->stall.words : status->why);
	free(status);
	return own;
}

/* From the trainer to those it waits for, helpers last. */
static void observe_hang(
	const struct job_record *record, const struct job_verdict *verdict, struct job_lines *lines)
{
	static const enum job_role order[] = {
		JOB_ROLE_TRAINER, JOB_ROLE_WHOLE, JOB_ROLE_LOADER, JOB_ROLE_HELPER};
	if (observe_own_run(record->pid, lines))
		return;
	for (size_t k = 0; k < sizeof order / sizeof order[0]; k++)
		for (size_t i = 0; i < record->process_count && lines->count < JOB_LINES_MAX; i++)
			if (verdict->roles[i] == order[k] && !record->processes[i].gone)
				observe_look_at(lines, record, i);
}

/* --- the result --------------------------------------------------------------------------------- */

/* results/observe-NAME/UTC, or what --out names. */
static int observe_folder(const struct options *options, const struct job_record *record,
	char path[PATH_MAX], struct error *err)
{
	char utc[CLOCK_UTC_BYTES];
	char name[JOB_NAME_BYTES];
	size_t used = 0;
	const char *asked = options->values[OPTION_OUT];
	for (const char *at = record->processes[0].name; *at && used < sizeof name - 1; at++)
		name[used++] = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
					       (*at >= '0' && *at <= '9')
				       ? *at
				       : '-';
	name[used] = '\0';
	clock_format_utc_compact(record->begun_utc, utc);
	if (asked)
		(void)snprintf(path, PATH_MAX, "%.4000s", asked);
	else
		(void)snprintf(path, PATH_MAX, "%s/observe-%s/%s-%d", RESULTS_FOLDER,
			name[0] ? name : "job", utc, record->pid);
	return files_make_folder(path, err);
}

static int observe_save(const struct options *options, const struct job_record *record,
	const json_t *document, char path[PATH_MAX], struct error *err)
{
	const int code = observe_folder(options, record, path, err);
	return code ? code : command_save_json(path, "observe.json", document, err);
}

static int observe_print(
	const struct invocation *invocation, json_t *document, const char *path, struct error *err)
{
	if (command_wants_json(invocation))
		return command_print_json(invocation, json_incref(document), err);
	const struct style style = command_style(invocation);
	struct buffer text = {0};
	struct medium medium = medium_terminal(&style, &text);
	observe_text(document, &medium, options_given(&invocation->options, OPTION_VERBOSE));
	if (path[0])
		buffer_format(&text, "\nsaved: %s/observe.json\n", path);
	if (path[0] && !json_is_array(json_object_get(document, "hang")))
		buffer_format(&text,
			"'mlbench fit %s/observe.json --out case.ini' makes a case of it\n", path);
	return command_print(&text, err);
}

/* The node's fingerprint, as a case has it: no names. */
static json_t *observe_environment(const struct job_record *record)
{
	struct fact_list facts = {0};
	struct case_environment environment;
	const struct job_group *most = NULL;
	for (size_t i = 0; i < record->group_count; i++)
		if (!record->groups[i].written && (!most || record->groups[i].looks > most->looks))
			most = &record->groups[i];
	environment_capture(&facts, NULL);
	case_environment_of(&facts, &environment);
	fact_list_release(&facts);
	if (most)
		case_environment_of_data(most->system, &environment);
	environment.of[CASE_ENVIRONMENT_CORES].number = record->allowed_cpus;
	environment.of[CASE_ENVIRONMENT_CPU_QUOTA].number = record->quota_cores;
	return case_environment_json(&environment);
}

static int observe_deliver(
	const struct invocation *invocation, const struct observe_input *input, struct error *err)
{
	char path[PATH_MAX] = "";
	json_t *document = observe_json(input);
	if (!document)
		return command_status(error_set(err, -ENOMEM, "out of memory"));
	(void)json_object_set_new(document, "environment", observe_environment(input->record));
	int code = observe_save(&invocation->options, input->record, document, path, err);
	if (code) /* what was seen is printed all the same, and the error after it */
		path[0] = '\0';
	const int status = observe_print(invocation, document, path, err);
	json_decref(document);
	return status                  ? EXIT_STATUS_CANNOT
	       : code                  ? command_status(code)
	       : input->verdict->still ? EXIT_STATUS_FAILED
				       : EXIT_STATUS_DONE;
}

static int observe_watch(const struct invocation *invocation, const struct observe_request *request,
	struct job_watch *watch, struct job_sampler *sampler, struct error *err)
{
	struct job_verdict *verdict = calloc(1, sizeof *verdict);
	struct job_lines hang = {0};
	if (!verdict)
		return command_status(error_set(err, -ENOMEM, "out of memory"));
	/* Which GPUs it has open is known after a look. */
	uint64_t devices = 0;
	job_watch_begin(watch);
	const struct job_record *record = job_watch_record(watch);
	for (size_t i = 0; i < record->process_count; i++)
		devices |= record->processes[i].devices;
	struct job_places_watch *places;
	const int code = job_places_begin(&places, "", request->pid, devices, err);
	if (code) {
		free(verdict);
		return command_status(code);
	}
	log_info("observing process %d for %.0f s; Ctrl-C ends it early", request->pid,
		request->seconds);
	job_watch_for(watch, request->seconds, invocation->stop);
	const struct job_profile *profile = job_sampler_finish(sampler, record);
	const struct job_places *seen = job_places_end(places);
	job_verdict_find(record, profile, verdict);
	job_verdict_weigh_devices(record, seen, verdict);
	if (verdict->still)
		observe_hang(record, verdict, &hang);
	const struct observe_input input = {.record = record,
		.verdict = verdict,
		.profile = profile,
		.places = seen,
		.hang = verdict->still ? &hang : NULL};
	const int status = observe_deliver(invocation, &input, err);
	job_places_close(places);
	free(verdict);
	return status;
}

static int observe_run(const struct invocation *invocation, struct error *err)
{
	struct observe_request request;
	struct job_watch *watch = NULL;
	struct job_sampler *sampler = NULL;
	int code = observe_parse(&invocation->options, &request, err);
	if (!code)
		code = job_sampler_open(&sampler, err);
	const struct job_watch_options how = {.root = "",
		.pid = code ? 0 : request.pid,
		.most_share = OBSERVE_SHARE,
		.sampler = sampler};
	if (!code)
		code = job_watch_open(&watch, &how, err);
	const int status = code ? command_status(code)
				: observe_watch(invocation, &request, watch, sampler, err);
	job_watch_close(watch);
	job_sampler_close(sampler);
	return status;
}

const struct command command_observe = {
	.name = "observe",
	.summary = "watch any running training job from outside, and say what seems to limit it",
	.arguments = "PID",
	.description =
		"Watches the process PID and all below it for 30 s (--for): which process trains, "
		"which ones load data, what each spends its time on (cores, run-queue wait, calls on "
		"files, waiting for input, locks), what they read, which kinds of files they have "
		"open, memory and its growth, where its CPU time goes by class of code (as far as the "
		"kernel lets others sample it), the calls to NFS servers by kind, and how busy its "
		"GPUs are and whether that swings. It needs no change of the job: it reads /proc, stops "
		"and traces nothing, and takes less than 1 % of one core.\n\n"
		"Roles come from what processes do, not from their names. The verdict names the "
		"stage and the resource that seem to limit the job and lists what cannot be known "
		"from outside: it rests on one operating point, so it says 'likely' at most.\n\n"
		"A job of which nothing runs and nothing is read is told as a hang, with what each "
		"process waits for. Processes of another user need their user or root; what "
		"is missing without it is said.\n\n"
		"The result is saved as results/observe-NAME/TIME-PID/observe.json (--out names "
		"another folder). It has no names of files and nothing of their contents.\n\n"
		"Exit status: 0 observed, 1 the job stands still, 2 there is no such process, "
		"3 what was seen could not be saved.",
	.example = "mlbench observe 4711 --for 1m",
	.options = OPTION_BIT(OPTION_FOR) | OPTION_BIT(OPTION_OUT) | OPTION_BIT(OPTION_JSON),
	.arguments_min = 1,
	.arguments_max = 1,
	.run = observe_run,
};
