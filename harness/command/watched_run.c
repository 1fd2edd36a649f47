/* Processes that are started, listened to, watched and ended. */
#include "harness/command/watched_run.h"

#include "harness/analyze/job_verdict.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/base/text.h"
#include "harness/measure/batch_lines.h"
#include "harness/record/measurement.h"
#include "pipelines/pipeline.h"
#include "workloads/source/residency.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	WATCHED_TAIL_BYTES = 1024, /* of the error stream */
	WATCHED_TOLD_BYTES = 300,  /* of that, in a message */
	WATCHED_RESULT_MAX = 64 << 20,
	WATCHED_POLL_MS = 20,
	WATCHED_GRACE_MS = 2000, /* for one that was asked to end */
	WATCHED_BATCHES_LEAST = 3,
};

static const double WATCHED_SHARE = 0.02;  /* of a core, for watching */
static const double FIRST_BATCH_S = 120;   /* a loader may take so long to start */
static const double WATCHED_LATE_S = 30;   /* beyond what is planned */
static const double WATCHED_EXTENSION = 4; /* times the duration, where batches are long */

struct watched_child {
	pid_t pid;
	int out, said;  /* what it writes; its error stream, -1: not listened to */
	int hold;       /* it waits until this is closed */
	uint64_t since; /* of a loader: its start, in ticks since the boot; 0: not known */
	int status;     /* of wait, once it has ended */
	bool ended;
	char tail[WATCHED_TAIL_BYTES + 1];
	size_t tail_used;
};

/* --- processes ---------------------------------------------------------------------------------- */

static void watched_own_group(pid_t parent)
{
	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGHUP, SIG_DFL);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGXFSZ, SIG_DFL);
}

static bool watched_has_ended(struct watched_child *child)
{
	if (!child->ended && waitpid(child->pid, &child->status, WNOHANG) == child->pid)
		child->ended = true;
	return child->ended;
}

static void watched_close(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

/* Of a process: its parent, and when it began, in ticks since the boot; 0: it is gone. */
static uint64_t watched_began(pid_t pid, pid_t *parent)
{
	enum {
		PARENT_PLACE = 1,
		BEGAN_PLACE = 19
	}; /* behind the name, from 0 (proc_pid_stat(5)) */
	char path[64];
	char line[1024];
	(void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	char *at = files_first_line(path, line, sizeof line) == 0 ? strrchr(line, ')') : NULL;
	char *rest = at ? at + 1 : NULL;
	uint64_t began = 0;
	for (int place = 0; place <= BEGAN_PLACE && rest; place++) {
		rest += strspn(rest, " ");
		char *word = strsep(&rest, " ");
		if (place == PARENT_PLACE)
			*parent = (pid_t)strtol(word, NULL, 10);
		else if (place == BEGAN_PLACE)
			began = strtoull(word, NULL, 10);
	}
	return began;
}

/* Ends what left the loader's group (setsid), which this process has adopted since (PR_SET_CHILD_SUBREAPER).  Whether there was
 * any. */
static bool watched_end_adopted(uint64_t since)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;
	bool any = false;
	while (proc && (entry = readdir(proc))) {
		const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		pid_t parent = 0;
		if (pid <= 0 || watched_began(pid, &parent) < since || parent != getpid())
			continue;
		any = true;
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, WNOHANG);
	}
	if (proc)
		(void)closedir(proc);
	return any;
}

/* Asks the group to end, then ends it.  One that cannot be killed (a dead mount) is left behind. */
static void watched_end(struct watched_child *child)
{
	if (child->pid <= 0)
		return;
	const uint64_t until = clock_now_ns() + WATCHED_GRACE_MS * NS_PER_MS;
	watched_close(&child->hold);
	(void)kill(-child->pid, SIGTERM);
	while (!watched_has_ended(child) && clock_now_ns() < until)
		clock_sleep_until_ns(clock_now_ns() + 5 * NS_PER_MS);
	(void)kill(-child->pid, SIGKILL);
	for (int i = 0; i < 200 && !watched_has_ended(child); i++)
		clock_sleep_until_ns(clock_now_ns() + 5 * NS_PER_MS);
	/* Of each that ends, the children come next. */
	for (int i = 0; i < 200 && child->since > 0 && watched_end_adopted(child->since); i++)
		clock_sleep_until_ns(clock_now_ns() + 5 * NS_PER_MS);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 0);
	watched_close(&child->out);
	watched_close(&child->said);
}

static void watched_keep_tail(struct watched_child *child, const char *bytes, size_t size)
{
	const size_t kept = size < WATCHED_TAIL_BYTES ? size : WATCHED_TAIL_BYTES;
	const size_t old = child->tail_used + kept <= WATCHED_TAIL_BYTES
				   ? child->tail_used
				   : WATCHED_TAIL_BYTES - kept;
	memmove(child->tail, child->tail + child->tail_used - old, old);
	memcpy(child->tail + old, bytes + size - kept, kept);
	child->tail_used = old + kept;
	child->tail[child->tail_used] = '\0';
}

/* The last lines that it said, as one that a terminal may show. */
static const char *watched_last_words(struct watched_child *child, char out[WATCHED_TOLD_BYTES])
{
	for (size_t i = 0; i < child->tail_used; i++)
		if (child->tail[i] == '\n' || child->tail[i] == '\r' || child->tail[i] == '\0')
			child->tail[i] = ' ';
	while (child->tail_used > 0 && child->tail[child->tail_used - 1] == ' ')
		child->tail[--child->tail_used] = '\0';
	const size_t most = WATCHED_TOLD_BYTES - 16;
	const size_t from = child->tail_used > most ? child->tail_used - most : 0;
	(void)snprintf(out, WATCHED_TOLD_BYTES, "%s%.*s", child->tail_used ? "; it said: " : "",
		WATCHED_TOLD_BYTES - 16, child->tail + from);
	utf8_make_plain(out, '?');
	return out;
}

/* What the child wrote until now: bytes, 0 at the end, -EAGAIN: nothing yet. */
static ssize_t watched_read(int *fd, char *bytes, size_t room)
{
	if (*fd < 0)
		return -EAGAIN;
	const ssize_t got = read(*fd, bytes, room);
	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
		watched_close(fd);
		return 0;
	}
	return got < 0 ? -EAGAIN : got;
}

static void watched_listen_to_errors(struct watched_child *child)
{
	char bytes[4096];
	for (int i = 0; i < 16; i++) { /* one that floods does not hold the rest up */
		const ssize_t got = watched_read(&child->said, bytes, sizeof bytes);
		if (got <= 0)
			return;
		watched_keep_tail(child, bytes, (size_t)got);
	}
}

static void watched_wait(struct watched_child *child, double seconds)
{
	struct pollfd ready[2] = {
		{.fd = child->out, .events = POLLIN}, {.fd = child->said, .events = POLLIN}};
	const double most = WATCHED_POLL_MS / 1e3;
	(void)poll(ready, 2, (int)(1e3 * fmax(0, fmin(seconds, most))));
}

/* --- the watch ---------------------------------------------------------------------------------- */

struct watched_look {
	struct job_watch *watch;
	struct job_sampler *sampler;
};

static int watched_look_open(struct watched_look *look, int32_t pid, struct error *err)
{
	int code = job_sampler_open(&look->sampler, err);
	const struct job_watch_options how = {
		.root = "", .pid = pid, .most_share = WATCHED_SHARE, .sampler = look->sampler};
	if (!code)
		code = job_watch_open(&look->watch, &how, err);
	if (!code)
		(void)job_watch_turn(look->watch);
	return code == -ESRCH ? error_set(err, -ECHILD, "it ended at this moment") : code;
}

static void watched_look_close(struct watched_look *look)
{
	job_watch_close(look->watch);
	job_sampler_close(look->sampler);
	*look = (struct watched_look){0};
}

static double watched_cores(const struct job_record *record)
{
	return fmin(isnan(record->allowed_cpus) ? INFINITY : record->allowed_cpus,
		isnan(record->quota_cores) ? INFINITY : record->quota_cores);
}

/* CPU time of the watch per second, all of it and of those that load, and its classes, which are of those that load. */
static void watched_take(const struct watched_look *look, const struct job_profile *profile,
	struct efficiency_look *out, struct watched_facts *facts)
{
	const struct job_record *record = job_watch_record(look->watch);
	struct job_verdict *verdict = calloc(1, sizeof *verdict);
	uint64_t samples[JOB_CLASSES] = {0};
	double cpu_s = 0;
	double worker_s = 0;
	double queue_s = NAN;
	double read = 0;
	if (!verdict)
		return;
	job_verdict_find(record, profile, verdict);
	const bool has_loaders = verdict->loader.count > 0;
	for (size_t i = 0; i < record->process_count; i++) {
		const struct job_process *p = &record->processes[i];
		const bool loads = !has_loaders || verdict->roles[i] == JOB_ROLE_LOADER;
		const double cpu = job_grown(p->first, p->last, JOB_CPU_S);
		const double bytes = job_grown(p->first, p->last, JOB_READ);
		cpu_s += isnan(cpu) ? 0 : cpu;
		worker_s += isnan(cpu) || !loads ? 0 : cpu;
		read += isnan(bytes) || !loads ? 0 : bytes;
		const double queue = loads ? job_process_queue_s(record, i) : NAN;
		queue_s = isnan(queue) ? queue_s : queue + (isnan(queue_s) ? 0 : queue_s);
		facts->loaders += verdict->roles[i] == JOB_ROLE_LOADER && !p->gone;
		for (int k = 0; k < JOB_CLASSES && loads; k++)
			samples[k] += profile->classes[i][k];
	}
	const double samples_s = out->rate * record->watched_s;
	out->cpu_s = cpu_s / samples_s;
	out->worker_cpu_s = worker_s / samples_s;
	out->queue_s = queue_s / samples_s;
	out->read_bytes = read / samples_s;
	out->memory_bytes = job_watch_memory(look->watch);
	for (int k = 0; k < JOB_CLASSES; k++)
		out->class_samples += samples[k];
	for (int k = 0; k < JOB_CLASSES; k++)
		out->classes[k] = out->class_samples ? out->worker_cpu_s * (double)samples[k] /
							       (double)out->class_samples
						     : NAN;
	facts->allowed_cores = watched_cores(record);
	facts->node_cores = record->node_cores;
	facts->other_cores = record->node_busy_cores - cpu_s / record->watched_s;
	(void)snprintf(facts->stage, sizeof facts->stage, "%s", verdict->stage);
	(void)snprintf(facts->resource, sizeof facts->resource, "%s", verdict->resource);
	(void)snprintf(facts->no_classes, sizeof facts->no_classes, "%s", profile->why);
	free(verdict);
}

static void watched_scale_cpu(struct efficiency_look *look, double cpu_s)
{
	for (int k = 0; k < JOB_CLASSES; k++)
		look->classes[k] = look->worker_cpu_s > 0
					   ? look->classes[k] * cpu_s / look->worker_cpu_s
					   : NAN;
	look->cpu_s = look->worker_cpu_s = cpu_s;
}

/* read.cache, as a repetition prepares it. */
static int watched_prepare_cache(const struct watched_run *run, struct error *err)
{
	struct residency after;
	const int64_t wanted = config_integer(run->config, KEY_READ_CACHE);
	return wanted == READ_CACHE_COLD   ? residency_evict(run->dataset, &after, err)
	       : wanted == READ_CACHE_WARM ? residency_warm(run->dataset, &after, err)
					   : 0;
}

static double watched_seconds(const struct config *config, enum key_id key)
{
	return (double)config_integer(config, key) / (double)NS_PER_S;
}

/* --- a loader ----------------------------------------------------------------------------------- */

static void watched_set_number(const char *name, int64_t value)
{
	char text[24];
	(void)snprintf(text, sizeof text, "%lld", (long long)value);
	(void)setenv(name, text, 1);
}

static void watched_exec(const struct watched_run *run, int out, int said, int failure)
{
	const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	(void)setenv("MLBENCH_FOLDER", run->dataset->root, 1);
	watched_set_number("MLBENCH_WORKERS", config_integer(run->config, KEY_DECODE_WORKERS));
	watched_set_number("MLBENCH_BATCH", config_integer(run->config, KEY_BATCH_SIZE));
	(void)setenv("PYTHONUNBUFFERED", "1", 0);
	if (null >= 0)
		(void)dup2(null, STDIN_FILENO);
	(void)dup2(out, STDOUT_FILENO);
	(void)dup2(said, STDERR_FILENO);
	(void)execvp(run->command[0], run->command);
	const int code = errno;
	(void)files_write_all(failure, &code, sizeof code);
	_exit(127);
}

/* 0; an errno of execvp; negative: no process can be made. */
static int watched_start_loader(const struct watched_run *run, struct watched_child *child)
{
	int out[2];
	int said[2];
	int failure[2];
	int code = 0;
	if (pipe2(out, O_CLOEXEC) != 0)
		return -errno;
	if (pipe2(said, O_CLOEXEC) != 0) {
		code = -errno;
		(void)close(out[0]);
		(void)close(out[1]);
		return code;
	}
	if (pipe2(failure, O_CLOEXEC) != 0) {
		code = -errno;
		failure[0] = failure[1] = -1;
	}
	const pid_t parent = getpid();
	/* Its orphans come to this process, which ends them. */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	child->pid = code ? -1 : fork();
	if (child->pid == 0) {
		watched_own_group(parent);
		watched_exec(run, out[1], said[1], failure[1]);
	}
	if (child->pid < 0 && !code)
		code = -errno;
	watched_close(&out[1]);
	watched_close(&said[1]);
	watched_close(&failure[1]);
	if (child->pid > 0) {
		int refused = 0;
		pid_t mine;
		child->since = watched_began(child->pid, &mine);
		(void)setpgid(child->pid, child->pid);
		if (read(failure[0], &refused, sizeof refused) == (ssize_t)sizeof refused)
			code = refused;
	}
	watched_close(&failure[0]);
	(void)fcntl(out[0], F_SETFL, O_NONBLOCK);
	(void)fcntl(said[0], F_SETFL, O_NONBLOCK);
	child->out = out[0];
	child->said = said[0];
	return code;
}

enum loader_phase { LOADER_STARTS, LOADER_WARMS_UP, LOADER_IS_MEASURED };

struct loader_round {
	const struct watched_run *run;
	struct watched_child child;
	struct watched_look look;
	struct batch_lines lines;
	enum loader_phase phase;
	uint64_t begun_ns;
	double warmup_s, duration_s;
	/* Seconds since it began: its first batch, the batch that begins the measured part, the last batch. */
	double first_s, from_s, last_s;
	uint64_t from_batches, from_samples;
};

static double loader_now(const struct loader_round *round)
{
	return (double)(clock_now_ns() - round->begun_ns) / (double)NS_PER_S;
}

/* After a batch.  1: the round is complete. */
static int loader_batch(struct loader_round *round, double now_s, struct error *err)
{
	round->last_s = now_s;
	if (round->phase == LOADER_STARTS) {
		round->first_s = now_s;
		round->phase = LOADER_WARMS_UP;
	}
	if (round->phase == LOADER_WARMS_UP && now_s >= round->first_s + round->warmup_s) {
		round->from_s = now_s;
		round->from_batches = round->lines.batches;
		round->from_samples = round->lines.samples;
		round->phase = LOADER_IS_MEASURED;
		return watched_look_open(&round->look, round->child.pid, err);
	}
	return round->phase == LOADER_IS_MEASURED && now_s >= round->from_s + round->duration_s &&
	       round->lines.batches >= round->from_batches + WATCHED_BATCHES_LEAST;
}

/* What it printed until now.  1: complete; 0: not yet; -EPIPE: it closed its output; another negative errno. */
static int loader_listen(struct loader_round *round, struct error *err)
{
	char bytes[1 << 14];
	for (int i = 0; i < 16; i++) {
		const uint64_t before = round->lines.batches;
		const ssize_t got = watched_read(&round->child.out, bytes, sizeof bytes);
		if (got <= 0)
			return got == 0 ? -EPIPE : 0;
		batch_lines_take(&round->lines, bytes, (size_t)got);
		const int code = round->lines.batches > before
					 ? loader_batch(round, loader_now(round), err)
					 : 0;
		if (code)
			return code;
	}
	return 0;
}

static int loader_is_late(const struct loader_round *round, double now_s, struct error *err)
{
	const double bound_s = round->first_s + round->warmup_s +
			       WATCHED_EXTENSION * round->duration_s + WATCHED_LATE_S;
	if (round->phase == LOADER_STARTS && now_s >= FIRST_BATCH_S)
		return error_set(err, -EINVAL,
			"the loader printed no line 'batch N' within %.0f s (%llu other lines, %llu of 'batch' without a count)",
			FIRST_BATCH_S, (unsigned long long)round->lines.others,
			(unsigned long long)round->lines.wrong);
	if (round->phase != LOADER_STARTS && now_s >= bound_s)
		return error_set(err, -EINVAL,
			"the loader handed over %llu batches only, in %.0f s: too few to measure",
			(unsigned long long)round->lines.batches, now_s);
	return 0;
}

/* Its output has ended before it was measured. */
static int loader_gave_up(struct loader_round *round, struct error *err)
{
	char words[WATCHED_TOLD_BYTES];
	const uint64_t until = clock_now_ns() + WATCHED_GRACE_MS * NS_PER_MS;
	const double seconds = loader_now(round);
	const unsigned long long batches = round->lines.batches;
	struct watched_child *child = &round->child;
	while (!watched_has_ended(child) && clock_now_ns() < until) {
		watched_listen_to_errors(child);
		clock_sleep_until_ns(clock_now_ns() + 5 * NS_PER_MS);
	}
	watched_listen_to_errors(child);
	const char *said = watched_last_words(child, words);
	if (child->ended && WIFSIGNALED(child->status))
		return error_set(err, -EINVAL,
			"the loader was ended by signal %d after %.1f s and %llu batches%s",
			WTERMSIG(child->status), seconds, batches, said);
	if (child->ended && WEXITSTATUS(child->status) != 0)
		return error_set(err, -EINVAL,
			"the loader ended with exit status %d after %.1f s and %llu batches%s",
			WEXITSTATUS(child->status), seconds, batches, said);
	if (batches == 0)
		return error_set(err, -EINVAL,
			"the loader closed its output without a line 'batch N'%s", said);
	return error_set(err, -EINVAL,
		"the loader %s after %.1f s and %llu batches, before it was measured: let it go on for %.0f s, through as many epochs as that takes%s",
		child->ended ? "ended" : "closed its output", seconds, batches,
		round->warmup_s + round->duration_s + 1, said);
}

static int loader_measure(struct loader_round *round, struct error *err)
{
	double next_s = 0;
	for (;;) {
		int code = loader_listen(round, err);
		watched_listen_to_errors(&round->child);
		if (code == -EPIPE)
			return loader_gave_up(round, err);
		if (code == -ECHILD)
			return loader_gave_up(round, err);
		if (code)
			return code < 0 ? code : 0;
		code = atomic_load(round->run->stop)
			       ? -EINTR
			       : loader_is_late(round, loader_now(round), err);
		if (code)
			return code;
		if (round->look.watch && job_watch_now(round->look.watch) >= next_s)
			next_s = job_watch_turn(round->look.watch);
		watched_wait(&round->child,
			round->look.watch ? next_s - job_watch_now(round->look.watch) : 1);
	}
}

static void loader_result(
	struct loader_round *round, struct efficiency_look *out, struct watched_facts *facts)
{
	const double samples = (double)(round->lines.samples - round->from_samples);
	job_watch_finish(round->look.watch);
	out->rate = samples / (round->last_s - round->from_s);
	out->start_s = round->first_s;
	watched_take(&round->look,
		job_sampler_finish(round->look.sampler, job_watch_record(round->look.watch)), out,
		facts);
	facts->batch_samples = round->lines.last_samples;
	facts->wrong_lines = round->lines.wrong;
}

int watched_run_loader(const struct watched_run *run, struct efficiency_look *out,
	struct watched_facts *facts, struct error *err)
{
	struct loader_round round = {.run = run,
		.child = {.out = -1, .said = -1, .hold = -1},
		.warmup_s = watched_seconds(run->config, KEY_MEASURE_WARMUP),
		.duration_s = watched_seconds(run->config, KEY_MEASURE_DURATION)};
	*out = (struct efficiency_look){
		.cpu_s = NAN, .worker_cpu_s = NAN, .queue_s = NAN, .memory_bytes = NAN};
	*facts =
		(struct watched_facts){.allowed_cores = NAN, .node_cores = NAN, .other_cores = NAN};
	int code = watched_prepare_cache(run, err);
	if (code)
		return code;
	round.begun_ns = clock_now_ns();
	code = watched_start_loader(run, &round.child);
	if (code > 0)
		code = error_set(
			err, -EINVAL, "cannot start '%.200s': %s", run->command[0], strerror(code));
	else if (code < 0)
		(void)error_set_errno(err, -code, "cannot start a process");
	if (!code)
		code = loader_measure(&round, err);
	if (!code)
		loader_result(&round, out, facts);
	watched_look_close(&round.look);
	watched_end(&round.child);
	return code;
}

/* --- this pipeline ------------------------------------------------------------------------------ */

struct pipeline_child {
	int out;
	bool told;
};

static const char PIPELINE_MEASURES = 'm';

/* Its warm-up is over. */
static void pipeline_tell(void *context, double seconds, double planned_s, double samples_per_s)
{
	struct pipeline_child *child = context;
	(void)seconds;
	(void)planned_s;
	if (child->told || isnan(samples_per_s))
		return;
	child->told = true;
	(void)files_write_all(child->out, &PIPELINE_MEASURES, 1);
}

static void pipeline_child_run(
	const struct watched_run *run, const struct record *record, int out, int hold)
{
	struct pipeline_child child = {.out = out};
	struct error err = {0};
	struct traces traces;
	struct measurement *m = calloc(1, sizeof *m);
	const struct pipeline_control control = {
		.progress = pipeline_tell, .context = &child, .traces = &traces};
	char byte;
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0)
		(void)dup2(null, STDOUT_FILENO);
	log_set_level(LOG_LEVEL_QUIET);
	if (!m)
		_exit(EXIT_FAILURE);
	const int code = pipeline_run(run->config, run->dataset, &control, m, &err);
	m->repeat = (uint32_t)record->entry_count;
	/* A repetition without its traces is still one. */
	if (!code && traces.stage_count > 0 && record_save_traces(record, &traces, m, &err))
		measurement_note(m, "%.150s", err.text);
	json_t *result = code ? json_pack("{s:s}", "error", err.text) : measurement_to_json(m);
	char *text = result ? json_dumps(result, JSON_COMPACT) : NULL;
	if (text) {
		(void)files_write_all(out, text, strlen(text));
		(void)files_write_all(out, "\n", 1);
	}
	/* It stays until its code was named. */
	while (read(hold, &byte, 1) < 0 && errno == EINTR)
		continue;
	_exit(EXIT_SUCCESS);
}

static int watched_start_pipeline(
	const struct watched_run *run, const struct record *record, struct watched_child *child)
{
	int out[2];
	int hold[2];
	if (pipe2(out, O_CLOEXEC) != 0)
		return -errno;
	if (pipe2(hold, O_CLOEXEC) != 0) {
		const int code = -errno;
		(void)close(out[0]);
		(void)close(out[1]);
		return code;
	}
	const pid_t parent = getpid();
	child->pid = fork();
	if (child->pid == 0) {
		watched_own_group(parent);
		(void)close(hold[1]);
		pipeline_child_run(run, record, out[1], hold[0]);
	}
	const int code = child->pid < 0 ? -errno : 0;
	if (child->pid > 0)
		(void)setpgid(child->pid, child->pid);
	(void)close(out[1]);
	(void)close(hold[0]);
	(void)fcntl(out[0], F_SETFL, O_NONBLOCK);
	child->out = out[0];
	child->hold = hold[1];
	return code;
}

struct pipeline_round {
	const struct watched_run *run;
	struct watched_child child;
	struct watched_look look;
	struct buffer text;
};

/* 1: its result is there. */
static int pipeline_listen(struct pipeline_round *round, struct error *err)
{
	char bytes[1 << 16];
	for (;;) {
		const ssize_t got = watched_read(&round->child.out, bytes, sizeof bytes);
		if (got == 0)
			return error_set(
				err, -EIO, "the pipeline's process ended without a result");
		if (got < 0)
			return 0;
		size_t from = 0;
		if (!round->look.watch && bytes[0] == PIPELINE_MEASURES) {
			const int code = watched_look_open(&round->look, round->child.pid, err);
			if (code)
				return code;
			from = 1;
		}
		if (round->text.size + (size_t)got > WATCHED_RESULT_MAX)
			return error_set(err, -EFBIG, "the pipeline's result has no end");
		buffer_add(&round->text, bytes + from, (size_t)got - from);
		if (round->text.failed)
			return error_set(err, -ENOMEM, "out of memory");
		if (bytes[got - 1] == '\n')
			return 1;
	}
}

static int pipeline_listen_long(struct pipeline_round *round, struct error *err)
{
	const uint64_t begun_ns = clock_now_ns();
	const double bound_s =
		FIRST_BATCH_S + watched_seconds(round->run->config, KEY_MEASURE_WARMUP) * 4 +
		PIPELINE_EXTENSION * watched_seconds(round->run->config, KEY_MEASURE_DURATION);
	double next_s = 0;
	for (;;) {
		const int code = pipeline_listen(round, err);
		if (code)
			return code < 0 ? code : 0;
		if (atomic_load(round->run->stop))
			return -EINTR;
		if ((double)(clock_now_ns() - begun_ns) >= bound_s * (double)NS_PER_S)
			return error_set(
				err, -ETIMEDOUT, "the pipeline did not end within %.0f s", bound_s);
		if (round->look.watch && job_watch_now(round->look.watch) >= next_s)
			next_s = job_watch_turn(round->look.watch);
		watched_wait(&round->child,
			round->look.watch ? next_s - job_watch_now(round->look.watch) : 1);
	}
}

static int pipeline_result(struct pipeline_round *round, struct record *record,
	struct efficiency_look *out, struct watched_facts *facts, struct error *err)
{
	struct measurement *m = calloc(1, sizeof *m);
	json_t *json = m ? json_loads(round->text.data, 0, NULL) : NULL;
	const char *failure = json_string_value(json_object_get(json, "error"));
	int code = !json ? error_set(err, -EIO, "the pipeline's result is no JSON") : 0;
	if (!code && failure && failure[0])
		code = error_set(err, -EIO, "%.400s", failure);
	if (!code)
		code = measurement_from_json(m, json, err);
	if (!code && (!(m->throughput > 0) || !round->look.watch))
		code = error_set(err, -ENODATA, "no batch was finished in it");
	if (!code) {
		job_watch_finish(round->look.watch);
		out->rate = m->throughput;
		watched_take(&round->look,
			job_sampler_finish(
				round->look.sampler, job_watch_record(round->look.watch)),
			out, facts);
		/* Its own count is finer than ticks of the kernel. */
		watched_scale_cpu(out, m->cpu_seconds / (double)m->samples);
		/* Reads by io_uring are not among what the kernel counts of its read calls. */
		out->read_bytes = m->samples ? (double)m->bytes_read / (double)m->samples : NAN;
		/* It may have ended before this process had a core to look at it. */
		if (isnan(out->memory_bytes))
			out->memory_bytes = (double)m->rss_peak_bytes;
		if (m->status == MEASUREMENT_UNSTEADY)
			(void)snprintf(facts->unsteady, sizeof facts->unsteady,
				"a round of this pipeline was not steady");
		measurement_note(m,
			"measured in turn with a data loader of the user's, and watched from outside");
		code = record_append(record, m, err);
	}
	if (m)
		measurement_release(m);
	free(m);
	json_decref(json);
	return code;
}

int watched_run_pipeline(const struct watched_run *run, struct record *record,
	struct efficiency_look *out, struct watched_facts *facts, struct error *err)
{
	struct pipeline_round round = {.run = run, .child = {.out = -1, .said = -1, .hold = -1}};
	*out = (struct efficiency_look){.cpu_s = NAN,
		.worker_cpu_s = NAN,
		.queue_s = NAN,
		.memory_bytes = NAN,
		.start_s = NAN};
	*facts =
		(struct watched_facts){.allowed_cores = NAN, .node_cores = NAN, .other_cores = NAN};
	int code = watched_start_pipeline(run, record, &round.child);
	if (code)
		return error_set_errno(err, -code, "cannot start a process");
	code = pipeline_listen_long(&round, err);
	if (!code)
		code = pipeline_result(&round, record, out, facts, err);
	watched_look_close(&round.look);
	watched_end(&round.child);
	buffer_release(&round.text);
	return code;
}
