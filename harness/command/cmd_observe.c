/* mlbench observe: any job, from outside: one that runs, or a command that is started here. */
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/base/units.h"
#include "harness/command/command.h"
#include "harness/command/started_job.h"
#include "harness/fit/case_report.h"
#include "harness/live/look.h"
#include "harness/live/status.h"
#include "harness/measure/environment.h"
#include "harness/report/observe_report.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const uint64_t OBSERVE_LEAST_NS = NS_PER_S, OBSERVE_USUAL_NS = 30 * NS_PER_S,
		      OBSERVE_MOST_NS = 24 * 3600 * NS_PER_S;
static const double OBSERVE_SHARE = 0.005; /* of a core: half of what is promised */

/* A job that is started here settles for so long before it is observed: no new process meanwhile, and hardly more memory. */
static const double START_LEAST_S = 4, START_SETTLED_S = 3, START_GROWTH = 1.1, START_MOST_S = 120,
		    START_FORKS_S =
			    20; /* then processes come all the time: a pipeline of the shell */

/* A verdict is firm when so many looks at it in a row agree, s apart at least; one that is only possible needs more. */
enum { OBSERVE_FIRM_LIKELY = 3, OBSERVE_FIRM_POSSIBLE = 10 };
static const double OBSERVE_FIRM_S = 5, OBSERVE_FIRM_POSSIBLE_S = 15, OBSERVE_APART_S = 1;
static const double OBSERVE_VERDICT_SHARE = 0.001; /* of a core, for the verdicts meanwhile */

enum { OBSERVE_AGAIN = -1 }; /* no exit status */

struct observe_request {
	int32_t pid;
	double seconds;
	bool until_firm;      /* else all of the seconds */
	char *const *command; /* that is started; NULL: the process is there */
	int command_status;   /* of one that has ended, -1 before */
	bool again;           /* it was observed twice */
};

static int observe_parse_pid(const struct options *options, int32_t *pid, struct error *err)
{
	const char *text = options->arguments[0];
	char *end;
	errno = 0;
	const long number = strtol(text, &end, 10);
	if (errno || *end || end == text || number <= 0 || number > INT32_MAX)
		return error_set(err, -EINVAL,
			"'%.100s' is not a process ID; to start a command, put -- before it: mlbench "
			"observe -- CMD...",
			text);
	if (options->argument_count > 1)
		return error_set(err, -EINVAL,
			"observe takes one process ID, or -- and a command; not '%.100s', too",
			options->arguments[1]);
	*pid = (int32_t)number;
	return 0;
}

static int observe_parse(
	const struct options *options, struct observe_request *out, struct error *err)
{
	const char *how_long = options->values[OPTION_FOR];
	uint64_t ns = OBSERVE_USUAL_NS;
	*out = (struct observe_request){.command_status = -1};
	if (options->own_count == 0)
		out->command = (char *const *)(uintptr_t)options->arguments;
	else if (observe_parse_pid(options, &out->pid, err) != 0)
		return -EINVAL;
	if (out->command && options_given(options, OPTION_JSON))
		return error_set(err, -EINVAL,
			"--json and a command would both write to standard output: leave it out, and "
			"read observe.json in the folder of --out");
	if (how_long && units_parse_duration(how_long, &ns))
		return error_set(
			err, -EINVAL, "--for %.100s: not a time; such as 30s or 5m", how_long);
	if (ns < OBSERVE_LEAST_NS || ns > OBSERVE_MOST_NS)
		return error_set(err, -EINVAL, "--for %.100s: at least 1s, at most 24h", how_long);
	out->seconds = (double)ns / (double)NS_PER_S;
	out->until_firm = how_long == NULL;
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

static int observe_print(const struct invocation *invocation, bool beside, json_t *document,
	const char *path, struct error *err)
{
	if (command_wants_json(invocation))
		return command_print_json(invocation, json_incref(document), err);
	const struct style style =
		beside ? style_for(STDERR_FILENO, true) : command_style(invocation);
	struct buffer text = {0};
	struct medium medium = medium_terminal(&style, &text);
	observe_text(document, &medium, options_given(&invocation->options, OPTION_VERBOSE));
	if (path[0])
		buffer_format(&text, "\nsaved: %s/observe.json\n", path);
	if (path[0] && !json_is_array(json_object_get(document, "hang")))
		buffer_format(&text,
			"'mlbench fit %s/observe.json --out case.ini' makes a case of it\n", path);
	return beside ? command_print_beside(&text, err) : command_print(&text, err);
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

/* What a command prints and what is printed of it do not mix: the report waits for its end. */
static int observe_deliver(const struct invocation *invocation, struct observe_request *request,
	const struct observe_input *input, struct error *err)
{
	char path[PATH_MAX] = "";
	json_t *document = observe_json(input);
	if (!document)
		return command_status(error_set(err, -ENOMEM, "out of memory"));
	(void)json_object_set_new(document, "environment", observe_environment(input->record));
	int code = observe_save(&invocation->options, input->record, document, path, err);
	if (code) /* what was seen is printed all the same, and the error after it */
		path[0] = '\0';
	if (request->command) {
		log_info("observed; the report follows when the command ends");
		request->command_status = started_job_wait();
	}
	const int status = observe_print(invocation, request->command, document, path, err);
	json_decref(document);
	return status                  ? EXIT_STATUS_CANNOT
	       : code                  ? command_status(code)
	       : input->verdict->still ? EXIT_STATUS_FAILED
				       : EXIT_STATUS_DONE;
}

/* What a verdict was at the last look at it, and for how many in a row. */
struct observe_firm {
	char stage[JOB_WORD_BYTES], resource[JOB_WORD_BYTES];
	unsigned agreed;
};

/* Whether longer watching would hardly change what is said. */
static bool observe_is_firm(
	const struct job_record *record, struct job_verdict *verdict, struct observe_firm *firm)
{
	job_verdict_find(record, NULL, verdict);
	const bool same = strcmp(firm->stage, verdict->stage) == 0 &&
			  strcmp(firm->resource, verdict->resource) == 0;
	firm->agreed = same ? firm->agreed + 1 : 1;
	memcpy(firm->stage, verdict->stage, sizeof firm->stage);
	memcpy(firm->resource, verdict->resource, sizeof firm->resource);
	if (verdict->still || record->watched_s < job_life_enough_s(record, verdict))
		return false;
	return (verdict->certainty == JOB_LIKELY && firm->agreed >= OBSERVE_FIRM_LIKELY) ||
	       (verdict->certainty == JOB_POSSIBLE && firm->agreed >= OBSERVE_FIRM_POSSIBLE &&
		       record->watched_s >= OBSERVE_FIRM_POSSIBLE_S);
}

static void observe_until_firm(const struct invocation *invocation, struct job_watch *watch,
	double most_s, struct job_verdict *verdict)
{
	const struct job_record *record = job_watch_record(watch);
	struct observe_firm firm = {0};
	double next_verdict_s = OBSERVE_FIRM_S;
	for (double now_s = 0; now_s < most_s && !atomic_load(invocation->stop);
		now_s = job_watch_now(watch)) {
		const double next_s = fmin(job_watch_turn(watch), most_s);
		if (!isnan(record->ended_s))
			break;
		if (now_s >= next_verdict_s) {
			const uint64_t begin_ns = clock_thread_cpu_ns();
			if (observe_is_firm(record, verdict, &firm))
				break;
			next_verdict_s =
				now_s + fmax(OBSERVE_APART_S,
						(double)(clock_thread_cpu_ns() - begin_ns) /
							(double)NS_PER_S / OBSERVE_VERDICT_SHARE);
		}
		const double wait_s = next_s - job_watch_now(watch);
		if (wait_s > 0)
			clock_sleep_until_ns(
				clock_now_ns() + (uint64_t)(wait_s * (double)NS_PER_S));
	}
	job_watch_finish(watch);
}

static int observe_watch(const struct invocation *invocation, struct observe_request *request,
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
	log_info("observing process %d for %.0f s%s%s", request->pid, request->seconds,
		request->until_firm ? " at most, until the verdict is firm" : "",
		request->command ? "" : "; Ctrl-C ends it early");
	if (request->until_firm)
		observe_until_firm(invocation, watch, request->seconds, verdict);
	else
		job_watch_for(watch, request->seconds, invocation->stop);
	const struct job_profile *profile = job_sampler_finish(sampler, record);
	const struct job_places *seen = job_places_end(places);
	job_verdict_find(record, profile, verdict);
	job_verdict_weigh_devices(record, seen, verdict);
	if (verdict->still)
		observe_hang(record, verdict, &hang);
	/* Of a command whose workers had not begun, or of which a whole period was not seen, there is more to see. */
	const bool short_watch = verdict->loaders_began_s > 0 ||
				 record->watched_s < job_life_enough_s(record, verdict);
	const bool again =
		request->command && !request->again && short_watch && isnan(record->ended_s);
	request->again = request->again || again;
	const struct observe_input input = {.record = record,
		.verdict = verdict,
		.profile = profile,
		.places = seen,
		.hang = verdict->still ? &hang : NULL};
	const int status =
		again ? OBSERVE_AGAIN : observe_deliver(invocation, request, &input, err);
	job_places_close(places);
	free(verdict);
	return status;
}

static int observe_process(
	const struct invocation *invocation, struct observe_request *request, struct error *err)
{
	struct job_watch *watch = NULL;
	struct job_sampler *sampler = NULL;
	int code = job_sampler_open(&sampler, err);
	const struct job_watch_options how = {
		.root = "", .pid = request->pid, .most_share = OBSERVE_SHARE, .sampler = sampler};
	if (!code)
		code = job_watch_open(&watch, &how, err);
	const int status = code ? command_status(code)
				: observe_watch(invocation, request, watch, sampler, err);
	job_watch_close(watch);
	job_sampler_close(sampler);
	return status;
}

/* --- a command that is started here ------------------------------------------------------------- */

/* Whether the last seconds of the record are of a job that has started: it works, no process is new, and its memory has its
 * size. */
static bool observe_has_started(const struct job_record *record)
{
	const struct job_moment *last =
		record->moment_count ? &record->moments[record->moment_count - 1] : NULL;
	const struct job_moment *first = last;
	if (!last || last->t_s < START_LEAST_S)
		return false;
	for (size_t i = record->moment_count; i > 0; i--)
		if (last->t_s - first->t_s < START_SETTLED_S)
			first = &record->moments[i - 1];
	for (size_t i = 0; i < record->process_count; i++)
		if (record->processes[i].first_s > first->t_s && last->t_s < START_FORKS_S)
			return false;
	return last->resident <= START_GROWTH * first->resident &&
	       (last->cpu_s > first->cpu_s || last->read_bytes > first->read_bytes);
}

/* 0: it is to be observed from now on; -ECHILD: it ended before. */
static int observe_await_start(int32_t pid, struct error *err)
{
	const struct job_watch_options how = {.root = "", .pid = pid, .most_share = OBSERVE_SHARE};
	struct job_watch *watch = NULL;
	double next_s = 0;
	bool started = false;
	int code = job_watch_open(&watch, &how, err);
	while (!code && !started && job_watch_now(watch) < START_MOST_S) {
		next_s = job_watch_turn(watch);
		if (isinf(next_s))
			code = -ESRCH;
		else
			clock_sleep_until_ns(
				clock_now_ns() + (uint64_t)(fmax(0, next_s - job_watch_now(watch)) *
							    (double)NS_PER_S));
		started = !code && observe_has_started(job_watch_record(watch));
	}
	const double ended_s = code && watch ? job_watch_now(watch) : 0;
	job_watch_close(watch);
	return code ? error_set(err, -ECHILD,
			      "the command ended after %.1f s, while it was still starting: nothing can "
			      "be said about it; observe a longer run",
			      ended_s)
		    : 0;
}

/* Its own failure counts first, as if nobody had observed it. */
static int observe_command(
	const struct invocation *invocation, struct observe_request *request, struct error *err)
{
	int status = EXIT_STATUS_CANNOT;
	int code = started_job_begin(request->command, &request->pid, err);
	if (code)
		return command_status(code);
	code = observe_await_start(request->pid, err);
	if (!code)
		status = observe_process(invocation, request, err);
	if (status == OBSERVE_AGAIN)
		status = observe_process(invocation, request, err);
	if (request->command_status < 0) /* no report has waited for it */
		request->command_status = started_job_wait();
	if (request->command_status == 0)
		return status;
	(void)error_set(
		err, -ECHILD, "the command ended with exit status %d", request->command_status);
	return request->command_status;
}

static int observe_run(const struct invocation *invocation, struct error *err)
{
	struct observe_request request;
	const int code = observe_parse(&invocation->options, &request, err);
	return code              ? command_status(code)
	       : request.command ? observe_command(invocation, &request, err)
				 : observe_process(invocation, &request, err);
}

const struct command command_observe = {
	.name = "observe",
	.summary = "watch any training job from outside, and say what seems to limit it",
	.arguments = "PID | -- CMD...",
	.runs_command = true,
	.description =
		"Watches the process PID and all below it until the verdict is firm, for 30 s at most, "
		"or for as long as --for says: which process trains, "
		"which ones load data, what each spends its time on (cores, run-queue wait, reads and "
		"writes of files, waiting for input, locks by their kind), what they read, which kinds of files they have "
		"open, memory and its growth, where its CPU time goes by class of code (as far as the "
		"kernel lets others sample it), the calls to NFS servers by kind, and how busy its "
		"GPUs are and whether that swings. It needs no change of the job: it reads /proc, stops "
		"and traces nothing, and takes less than 1 % of one core.\n\n"
		"Roles come from what processes do, not from their names. The verdict names the "
		"stage and the resource that seem to limit the job and lists what cannot be known "
		"from outside: it rests on one operating point, so it says 'likely' at most.\n\n"
		"Workers that end and begin anew are counted by generations; ranks, by their launcher's "
		"environment or by connections between them, with the one that holds the others up; "
		"programs that live for a moment, as in a shell loop, together. A watch that was too "
		"short says for how long it has to be.\n\n"
		"A job of which nothing runs and nothing is read is told as a hang, with what each "
		"process waits for. Processes of another user need their user or root; what "
		"is missing without it is said.\n\n"
		"With -- and a command, the command is started and observed once it has settled: no new "
		"process and hardly more memory for 3 s. Its streams are its own, signals and Ctrl-C "
		"go to it, and it goes on after it was observed; the report comes on standard error "
		"when it has ended.\n\n"
		"The result is saved as results/observe-NAME/TIME-PID/observe.json (--out names "
		"another folder). It has no names of files and nothing of their contents.\n\n"
		"Exit status: 0 observed, 1 the job stands still, 2 there is no such process or "
		"command, 3 what was seen could not be saved, or a command ended while it was starting; "
		"with a command that fails, the command's.",
	.example = "mlbench observe 4711 --for 1m",
	.options = OPTION_BIT(OPTION_FOR) | OPTION_BIT(OPTION_OUT) | OPTION_BIT(OPTION_JSON),
	.arguments_min = 1,
	.arguments_max = SIZE_MAX,
	.run = observe_run,
};
