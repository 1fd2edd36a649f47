/* A process for each check: started, listened to, and ended in time. */
#include "harness/checks/runner.h"

#include "harness/accept/judge.h"
#include "harness/accept/result.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/rng.h"
#include "harness/base/units.h"
#include "harness/checks/other_work.h"
#include "harness/checks/settle.h"
#include "harness/checks/sink.h"
#include "harness/measure/data_store.h"
#include "harness/measure/node_probes.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	GRACE_MS = 2000, /* for a check that was asked to end; then it is killed */
	OPEN_MAX = 1024,
};

/* The kinds, in the order of enum accept_kind. */
const struct check_ops *const check_list[ACCEPT_KINDS + 1] = {
	[ACCEPT_EXPECT] = &check_expect,
	[ACCEPT_CEILING] = &check_ceiling,
	[ACCEPT_PIPELINE] = &check_pipeline,
	[ACCEPT_BURN] = &check_burn,
	[ACCEPT_REPEATABLE] = &check_repeatable,
	[ACCEPT_NETWORK] = &check_network,
};

/* --- one call of a check ---------------------------------------------------------------------- */

struct check_call {
	struct check_context context;
	char scratch[FILES_PATH_BYTES];
};

/* --- faults of checks themselves, for tests --------------------------------------------------- */

/* MLBENCH_ACCEPT_INJECT=check:die, hang, silent or nan: what a check may do wrong, done in place of measuring, and said in a
 * note.  True: it was done, and *code is what the check returns. */
static bool runner_inject(const struct check_context *context, struct check_sink *sink, int *code)
{
	static const char prefix[] = "check:";
	const char *asked = getenv("MLBENCH_ACCEPT_INJECT");
	if (!asked || strncmp(asked, prefix, strlen(prefix)) != 0)
		return false;
	const char *fault = asked + strlen(prefix);
	*code = 0;
	sink_note(sink, "a fault was injected for a test: %s", asked);
	sink_activity(sink, "doing what the injected fault says");
	if (strcmp(fault, "die") == 0)
		(void)raise(SIGKILL);
	if (strcmp(fault, "hang") == 0) {
		(void)signal(SIGTERM, SIG_IGN);
		for (;;)
			(void)pause();
	}
	if (strcmp(fault, "nan") == 0)
		for (size_t i = 0; i < context->check->limit_count; i++)
			sink_value(sink, context->check->limits[i].figure->name, "", (double)NAN);
	return true; /* silent: it says that it is done, and has nothing */
}

/* Before a check measures for the first time. */
static void call_settle(const struct check_context *context, struct check_sink *sink)
{
	static const uint64_t most_ns[] = {2 * NS_PER_S, 60 * NS_PER_S, 120 * NS_PER_S};
	char why[SETTLE_WHY_BYTES];
	if (context->round > 0 || context->check->kind == ACCEPT_EXPECT)
		return;
	sink_activity(sink, "waiting for the node to come to rest");
	const uint64_t waited =
		settle_wait(context->root, context->tier == TIER_QUICK ? NS_PER_S / 5 : NS_PER_S,
			most_ns[context->tier < TIER_NEVER ? context->tier : TIER_BURN],
			context->stop, why);
	if (*why)
		sink_note(sink, "measured after waiting %.1f s for the node to come to rest: %s",
			(double)waited / NS_PER_S, why);
}

/* The folder for its files is made by the check's own process, because the storage may hang; not at all for a check that
 * writes none, which is to run on a node whose storage is dead. */
static int call_make_folder(struct check_call *call, struct check_sink *sink, struct error *err)
{
	struct check_context *context = &call->context;
	struct check_cost cost = {0};
	check_list[context->check->kind]->estimate(context, &cost);
	if (cost.disk_bytes <= 0)
		return 0;
	sink_activity(sink, "making a folder in '%s'", context->folder);
	return mkdir(call->scratch, 0700) == 0
		       ? 0
		       : error_set_errno(err, errno, "cannot make a folder for its files in '%s'",
				 context->folder);
}

static int call_run(struct check_call *call, struct check_sink *sink, struct error *err)
{
	const struct check_context *context = &call->context;
	int code;
	code = call_make_folder(call, sink, err);
	if (code)
		return code;
	call_settle(context, sink);
	sink_activity(sink, "starting");
	return runner_inject(context, sink, &code)
		       ? code
		       : check_list[context->check->kind]->run(context, err);
}

static void check_call_work(void *context, int fd)
{
	struct check_call *call = context;
	struct check_sink sink = {.fd = fd};
	struct error err = {0};
	call->context.sink = &sink;
	const int code = call_run(call, &sink, &err);
	if (code && !err.text[0])
		(void)error_set_errno(&err, -code, "it failed");
	sink_end(&sink, code, &err);
	/* All is said, though a thread that waits for dead storage may keep the process from ending. */
	(void)close(fd);
}

static void remove_scratch(void *context, int fd)
{
	(void)fd;
	(void)files_remove_tree(context, NULL);
}

static void take_into_gather(void *context, const char *bytes, size_t size)
{
	gather_bytes(context, bytes, size);
}

static int call_ask_storage(const struct check_context *context, struct error *err)
{
	const struct check_ops *ops = check_list[context->check->kind];
	return ops->ask_storage ? ops->ask_storage(context, err) : 0;
}

/* How a call ended that did not say so itself.  silent: the storage that it waits for; "": not known. */
static void call_state(struct gather *gather, int code, bool gone, int status, uint64_t spent_ns,
	const char *silent)
{
	char time[UNITS_BYTES];
	if (code == -ETIMEDOUT)
		gather_state(gather, "timed out", "it did not end within %s%s%s%s",
			units_format_duration((double)spent_ns, time),
			gone ? "" : ", and could not be killed: it waits in the kernel",
			*silent ? "; " : "", silent);
	else if (code == -EINTR)
		gather_state(gather, "interrupted", "by the user");
	else if (gather->ended)
		return;
	else if (gone && WIFSIGNALED(status))
		gather_state(gather, "died", "signal %d (%s)", WTERMSIG(status),
			strsignal(WTERMSIG(status)));
	else
		gather_state(gather, "died", "exit status %d without a word", WEXITSTATUS(status));
}

/* Seconds for which a CPU quota has stopped this process's control group; NAN: there is none, or the kernel does not tell. */
static double quota_stopped_s(void)
{
	struct cpu_quotas quotas;
	struct cpu_quota_use use = {.periods = NAN, .throttled = NAN, .throttled_seconds = NAN};
	cgroup_cpu_quotas(&quotas);
	const struct cpu_quota *tightest = cgroup_tightest(&quotas);
	if (tightest)
		cgroup_cpu_use(tightest, &use);
	return use.throttled_seconds;
}

/* Under what it ran: a quota that stopped it, other work on its cores.  Ceilings look at each of their cores themselves; an
 * inventory is no matter of time. */
static void call_say_conditions(const struct accept_check *check, const struct other_work *work,
	size_t cores, double stopped_s, struct gather *gather)
{
	static const double BUSY_SHARE = 0.2; /* who serves files in user mode is part of it */
	static const double STOPPED_SHARE = 0.05;
	char words[OTHER_WORK_WORDS_BYTES];
	char time[UNITS_BYTES];
	if (check->kind == ACCEPT_EXPECT)
		return;
	if (stopped_s > STOPPED_SHARE * work->wall_s / (double)(cores > 0 ? cores : 1)) {
		(void)snprintf(words, sizeof words,
			"a CPU quota of a control group stopped it for %s",
			units_format_duration(stopped_s * NS_PER_S, time));
		gather_condition(gather, "", "", CONDITION_LIMITED, words);
	}
	if (check->kind != ACCEPT_CEILING && other_work_is_busy(work, BUSY_SHARE, cores, words))
		gather_condition(gather, "", "", CONDITION_BUSY, words);
}

static void call_once(const struct runner *runner, struct check_call *call, uint64_t until_ns,
	struct gather *gather)
{
	struct bounded_process process;
	const uint64_t began = clock_now_ns();
	struct other_work others = {0};
	unsigned *cores;
	const unsigned core_count = probe_core_list(&cores);
	gather->ended = false;
	const double stopped_before_s = quota_stopped_s();
	other_work_begin(&others, cores_used_seconds(runner->root, cores, core_count), 0);
	int code = bounded_start(&process, check_call_work, call);
	if (code) {
		free(cores);
		gather_state(gather, "failed", "no process could be started: %s", strerror(-code));
		return;
	}
	code = bounded_listen(&process, until_ns, runner->stop, take_into_gather, gather);
	int status = 0;
	/* Asked to end, it may have more to say. */
	if (code) {
		(void)kill(-process.pid, SIGTERM);
		(void)bounded_listen(&process, clock_now_ns() + GRACE_MS * NS_PER_MS, NULL,
			take_into_gather, gather);
	}
	(void)close(process.fd);
	const bool gone = bounded_end(&process, &status);
	other_work_end(&others, cores_used_seconds(runner->root, cores, core_count), process.user_s,
		core_count);
	free(cores);
	call_say_conditions(call->context.check, &others, core_count,
		quota_stopped_s() - stopped_before_s, gather);
	const uint64_t spent_ns = clock_now_ns() - began;
	struct error silent = {0};
	if (code == -ETIMEDOUT && call_ask_storage(&call->context, &silent) != -ETIMEDOUT)
		silent.text[0] = '\0';
	call_state(gather, code, gone, status, spent_ns, silent.text);
	/* A slow node has the time that a path has to answer; storage that has not answered is not asked for long. */
	const bool answers = !*runner->folder_why && code != -ETIMEDOUT && gone;
	char *nothing;
	(void)run_bounded(remove_scratch, call->scratch,
		(answers ? PATH_ANSWER_S : 2ULL) * NS_PER_S, NULL, &nothing);
	free(nothing);
}

/* --- the folder ---------------------------------------------------------------------------- */

static void folder_tell_free(void *context, int fd)
{
	struct statvfs there;
	const char *folder = context;
	if (statvfs(folder, &there) == 0)
		(void)dprintf(fd, "%.17g", (double)there.f_bavail * (double)there.f_frsize);
}

int runner_ask_folder(struct runner *runner, struct error *err)
{
	char *text = NULL;
	runner->free_bytes = (double)NAN;
	const int code = path_answers(runner->folder, runner->stop, err);
	if (code)
		return code;
	if (run_bounded(folder_tell_free, (void *)(uintptr_t)runner->folder,
		    PATH_ANSWER_S * NS_PER_S, runner->stop, &text) == 0 &&
		*text)
		runner->free_bytes = strtod(text, NULL);
	free(text);
	return 0;
}

/* --- a check ---------------------------------------------------------------------------------- */

static void call_context(
	const struct runner *runner, const struct accept_check *check, struct check_call *call)
{
	*call = (struct check_call){
		.context = {
			.plan = runner->plan,
			.check = check,
			.tier = runner->tier,
			.folder = runner->folder,
			.free_bytes = runner->free_bytes,
			.root = runner->root,
			.program = runner->program,
			.for_ns = runner->for_ns,
			.repeats = judge_repeats(plan_share(runner->plan, PLAN_ERROR)),
			.stop = runner->stop,
		}};
	/* A name that nobody can have put there before. */
	(void)snprintf(call->scratch, sizeof call->scratch, "%s/.mlbench-accept-%ld-%08x",
		runner->folder, (long)getpid(),
		(unsigned)rng_mix(clock_now_ns(), (uint64_t)getpid()));
	call->context.scratch = call->scratch;
}

struct check_cost runner_cost(const struct runner *runner, const struct accept_check *check)
{
	struct check_call call;
	struct check_cost cost = {0};
	call_context(runner, check, &call);
	check_list[check->kind]->estimate(&call.context, &cost);
	return cost;
}

uint64_t runner_budget(const struct runner *runner, const struct accept_check *check)
{
	enum { TIMES = 3, LEAST_S = 15, QUICK_MOST_S = 30 };
	const int64_t asked = check_integer(check, PLAN_BUDGET);
	if (asked > 0)
		return (uint64_t)asked;
	const double seconds = TIMES * runner_cost(runner, check).seconds;
	if (runner->tier == TIER_QUICK && seconds > QUICK_MOST_S)
		return QUICK_MOST_S * NS_PER_S;
	return (uint64_t)((seconds > LEAST_S ? seconds : LEAST_S) * NS_PER_S);
}

static void open_release(char **open, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(open[i]);
}

/* Calls the check until everything can be told, or time or patience are over. */
static void check_rounds(const struct runner *runner, const struct accept_check *check,
	uint64_t until_ns, struct gather *gather)
{
	char *open[OPEN_MAX];
	size_t open_count = 0;
	const uint64_t began = clock_now_ns();
	uint64_t longest = 0;
	for (unsigned round = 0; round < JUDGE_LOOKS_MAX; round++) {
		struct check_call call;
		call_context(runner, check, &call);
		call.context.round = round;
		call.context.open = round > 0 ? (const char *const *)open : NULL;
		call.context.open_count = open_count;
		/* It is told to end a little before it is abandoned. */
		const uint64_t now = clock_now_ns();
		call.context.deadline_ns = until_ns - (until_ns - now) / 10;
		call_once(runner, &call, until_ns, gather);
		open_release(open, open_count);
		open_count = 0;
		gather_time(gather, runner->started_ns, began, round + 1);
		const uint64_t took = clock_now_ns() - now;
		longest = took > longest ? took : longest;
		if (strcmp(json_string_value(json_object_get(gather->check, "state")), "done") != 0)
			break;
		open_count = result_open(gather->check, check, runner->plan, runner->tier,
			runner->baseline, open, OPEN_MAX);
		if (open_count == 0 || clock_now_ns() + longest > until_ns)
			break;
	}
	open_release(open, open_count);
}

json_t *runner_check(const struct runner *runner, const struct accept_check *check)
{
	struct gather gather;
	struct check_call call;
	struct error err = {0};
	if (gather_open(&gather, check->name, accept_kind_name(check->kind)))
		return NULL;
	call_context(runner, check, &call);
	const uint64_t asked = clock_now_ns();
	const int silent = call_ask_storage(&call.context, &err);
	const uint64_t began = clock_now_ns();
	uint64_t until = silent ? began : began + runner_budget(runner, check);
	if (runner->until_ns && until > runner->until_ns)
		until = runner->until_ns;
	if (silent)
		gather_state(&gather, silent == -EINTR ? "interrupted" : "failed", "%s",
			silent == -EINTR ? "by the user" : err.text);
	else if (runner->folder_why[0] && runner_cost(runner, check).disk_bytes > 0)
		gather_state(&gather, "failed", "%s", runner->folder_why);
	else if (until <= began)
		gather_state(&gather, "failed", "the time for all checks was over before it began");
	else
		check_rounds(runner, check, until, &gather);
	gather_time(&gather, runner->started_ns, asked,
		(unsigned)json_integer_value(json_object_get(gather.check, "rounds")));
	if (gather.lost)
		gather_state(&gather, "failed",
			"it handed over more places or longer texts than are kept, so that not all can be judged");
	if (gather.dropped)
		gather.failed |=
			json_array_append_new(json_object_get(gather.check, "notes"),
				json_string("the check handed over more than is kept")) != 0;
	json_t *line = gather.failed ? NULL : json_incref(gather.check);
	gather_close(&gather);
	return line;
}
