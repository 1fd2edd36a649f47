/* Reading /proc of a job.  Processes and threads may end between any two reads: what is missing keeps what was last known. */
#include "harness/measure/job_watch.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/rng.h"
#include "harness/base/text.h"
#include "harness/measure/job_acts.h"
#include "harness/measure/job_descriptors.h"
#include "harness/measure/job_lives.h"
#include "harness/measure/job_sampler.h"
#include "harness/measure/proc_text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	WATCH_TEXT_BYTES = 4096,
	WATCH_PATH_BYTES = 320,
	WATCH_STATISTICS_BYTES = 16384,
	WATCH_STATUS_COUNTS = 8,   /* looks at counts, of which one reads the long text */
	WATCH_QUIET_LOOKS = 8,     /* of which one asks a quiet thread */
	WATCH_BOSSES_MAX = 8,      /* processes that are in every slice */
	WATCH_FIRST_FILES_MS = 30, /* CPU time of the first look at files, at most */
};

/* Each kind of look has a part of the time that may be used, so that dear ones cannot crowd out the states, which the verdict
 * counts.  It ends a slice when it has used so much CPU time; counts are of one moment, and have no slices.  least_s: the kind is due
 * after so long though its part is used up. */
static const struct watch_kind {
	enum job_look look;
	double every_s, part, slice_s, least_s;
} watch_kinds[] = {{JOB_CENSUS, 1, 0.1, 0.001, 5}, {JOB_COUNT, 1, 0.15, INFINITY, 10},
	{JOB_BIRTHS, 0.1, 0.15, 0.0005, 2}, {JOB_STATES, 0.02, 0.45, 0.0004, 2},
	{JOB_FILES, 0.2, 0.15, 0.001, 5}};
static const double WATCH_QUIET = 0.001; /* cores, used by a quiet thread at most */
enum { WATCH_KINDS = sizeof watch_kinds / sizeof watch_kinds[0] };

/* Fields of /proc/PID/stat (proc(5)), counted from the state, which is the first behind the name. */
enum {
	STAT_STATE = 0,
	STAT_PARENT = 1,
	STAT_FLAGS = 6,
	STAT_MINOR = 7,
	STAT_MAJOR = 9,
	STAT_USER = 11,
	STAT_SYSTEM = 12,
	STAT_CHILD_USER = 13,
	STAT_CHILD_SYSTEM = 14,
	STAT_START = 19,
	STAT_PAGES = 21,
	STAT_STACK = 25,
	STAT_BLKIO = 39,
	STAT_FIELDS = 40,
	FLAG_KERNEL_THREAD = 0x200000,
};

static size_t watch_kind_of_look(enum job_look look)
{
	size_t kind = 0;
	while (watch_kinds[kind].look != look)
		kind++;
	return kind;
}

struct watch_stat {
	char state, name[JOB_NAME_BYTES];
	double fields[STAT_FIELDS]; /* NAN: not there */
};

struct job_watch {
	struct job_record record;
	struct job_watch_options options;
	char root[WATCH_PATH_BYTES];
	double ticks_per_s, page_bytes, begun_ticks;
	uint64_t begun_ns, begun_cpu_ns;
	struct job_descriptors *descriptors;
	struct cpu_ticks node;               /* at the first look */
	char quota_folder[WATCH_TEXT_BYTES]; /* of the tightest CPU quota; "" */
	double periods, throttled;
	char memory_folder[WATCH_TEXT_BYTES]; /* of the tightest limit of memory; "" */
	double refault_file, refault_swap;    /* at the first look */
	bool finishing;                       /* this is the last look */
	bool no_children;                     /* the kernel does not list children */
	/* Of each kind of look: when it is due, s of the watch, and the CPU time that it has used. */
	double next[WATCH_KINDS], used[WATCH_KINDS];
	uint32_t turn[WATCH_KINDS]; /* the process that its next slice begins with */
	struct rng rng;
};

/* --- texts below a process's folder ------------------------------------------------------------- */

/* The name may have any character. */
static bool watch_parse_stat(const char *text, struct watch_stat *out)
{
	const char *open = strchr(text, '(');
	const char *close = strrchr(text, ')');
	if (!open || !close || close < open || close[1] != ' ')
		return false;
	(void)snprintf(out->name, sizeof out->name, "%.*s", (int)(close - open - 1), open + 1);
	utf8_make_plain(out->name, '?');
	out->state = close[2];
	for (int i = 0; i < STAT_FIELDS; i++)
		out->fields[i] = NAN;
	const char *at = close[2] ? close + 3 : close + 2;
	for (int i = 1; i < STAT_FIELDS && *at == ' '; i++) {
		char *end;
		out->fields[i] = strtod(at, &end);
		if (end == at)
			return false;
		at = end;
	}
	return true;
}

static double watch_count_of(const char *text, const char *key)
{
	double value;
	return parse_field_number(text, key, &value) ? value : NAN;
}

/* "ff,ffffffff": the last digit is of the first four CPUs. */
static void watch_parse_mask(const char *text, uint64_t cpus[JOB_CPUS_MAX / 64])
{
	enum { DIGIT_BITS = 4 };
	unsigned bit = 0;
	memset(cpus, 0, JOB_CPUS_MAX / 8);
	for (size_t at = strlen(text); at > 0 && bit < JOB_CPUS_MAX; at--) {
		const char digit[2] = {text[at - 1], '\0'};
		if (digit[0] == ',')
			continue;
		cpus[bit / 64] |= (uint64_t)strtoul(digit, NULL, 16) << (bit % 64);
		bit += DIGIT_BITS;
	}
}

/* "NS_ON_CORE NS_WAITED SLICES" */
static bool watch_schedstat(int folder, int32_t tid, double counts[JOB_COUNTS])
{
	char text[WATCH_TEXT_BYTES];
	unsigned long long ran;
	unsigned long long waited;
	if (proc_text_at(folder, text, sizeof text, "task/%d/schedstat", tid) ||
		sscanf(text, "%llu %llu", &ran, &waited) != 2)
		return false;
	counts[JOB_CPU_S] = (double)ran / (double)NS_PER_S;
	counts[JOB_QUEUE_S] = (double)waited / (double)NS_PER_S;
	return true;
}

/* How often it left its core, and of a process's first thread where it may run: a long text, which is read seldom. */
static void watch_status(struct job_process *process, int32_t tid, double counts[JOB_COUNTS])
{
	char text[WATCH_TEXT_BYTES];
	char mask[JOB_CPUS_MAX];
	if (proc_text_at(process->folder, text, sizeof text, "task/%d/status", tid))
		return;
	counts[JOB_YIELDED] = watch_count_of(text, "voluntary_ctxt_switches");
	counts[JOB_PREEMPTED] = watch_count_of(text, "nonvoluntary_ctxt_switches");
	if (tid == process->pid && parse_field(text, "Cpus_allowed", mask, sizeof mask))
		watch_parse_mask(mask, process->cpus);
}

static void watch_counts_of_stat(
	const struct job_watch *watch, const struct watch_stat *stat, double counts[JOB_COUNTS])
{
	const double *f = stat->fields;
	for (int i = 0; i < JOB_COUNTS; i++)
		counts[i] = NAN;
	counts[JOB_USER_S] = f[STAT_USER] / watch->ticks_per_s;
	counts[JOB_CPU_S] = (f[STAT_USER] + f[STAT_SYSTEM]) / watch->ticks_per_s;
	counts[JOB_CHILD_CPU_S] = (f[STAT_CHILD_USER] + f[STAT_CHILD_SYSTEM]) / watch->ticks_per_s;
	counts[JOB_MINOR] = f[STAT_MINOR];
	counts[JOB_MAJOR] = f[STAT_MAJOR];
	counts[JOB_RESIDENT] = f[STAT_PAGES] * watch->page_bytes;
	counts[JOB_BLKIO_S] = watch->record.no_blkio ? NAN : f[STAT_BLKIO] / watch->ticks_per_s;
}

static void watch_refuse(struct job_process *process, const char *what, int code)
{
	if (code == -ESRCH || code == -ENOENT || process->unknown[0])
		return;
	(void)snprintf(process->unknown, sizeof process->unknown, "%s: %s", what, strerror(-code));
}

/* --- who is there ------------------------------------------------------------------------------- */

static struct job_process *watch_find(struct job_watch *watch, int32_t pid)
{
	for (size_t i = 0; i < watch->record.process_count; i++) {
		struct job_process *process = &watch->record.processes[i];
		if (process->pid == pid && !process->gone)
			return process;
	}
	return NULL;
}

/* What began after the watch has used nothing before it. */
static bool watch_saw_begin(const struct job_watch *watch, double start_ticks)
{
	return watch->record.counts > 0 && start_ticks > watch->begun_ticks;
}

static void watch_begin_counts(const struct job_watch *watch, double start_ticks,
	const double now[JOB_COUNTS], double first[JOB_COUNTS])
{
	const bool began = watch_saw_begin(watch, start_ticks);
	for (int i = 0; i < JOB_COUNTS; i++)
		if (isnan(first[i]))
			first[i] = began && i != JOB_RESIDENT && !isnan(now[i]) ? 0 : now[i];
}

/* From when on its counts are known. */
static double watch_first_s(const struct job_watch *watch, double start_ticks, double t_s)
{
	return watch_saw_begin(watch, start_ticks)
		       ? fmin((start_ticks - watch->begun_ticks) / watch->ticks_per_s, t_s)
		       : t_s;
}

/* Living threads of a process are a chain. */
static void watch_end_thread(struct job_watch *watch, struct job_thread *thread)
{
	struct job_thread *const threads = watch->record.threads;
	const uint32_t number = (uint32_t)(thread - threads) + 1;
	uint32_t *at = &watch->record.processes[thread->process].first_thread;
	while (*at && *at != number)
		at = &threads[*at - 1].next;
	if (*at)
		*at = thread->next;
	thread->gone = true;
}

static void watch_end_process(struct job_watch *watch, struct job_process *process, double t_s)
{
	process->gone = true;
	job_lives_end(&watch->record, process, t_s);
	while (process->first_thread)
		watch_end_thread(watch, &watch->record.threads[process->first_thread - 1]);
	if (process->folder >= 0)
		(void)close(process->folder);
	process->folder = -1;
}

/* --- room for those who come, of those who went ------------------------------------------------- */

/* What one has used becomes the other's, which then seems to have lived for both their times. */
static void watch_join_counts(double first[JOB_COUNTS], const double other_first[JOB_COUNTS],
	const double other_last[JOB_COUNTS])
{
	for (int i = 0; i < JOB_COUNTS; i++) {
		const double grown = job_grown(other_first, other_last, (enum job_count)i);
		if (i != JOB_RESIDENT && !isnan(grown))
			first[i] -= grown;
	}
}

static void watch_join_looks(uint32_t looks[JOB_ACTS], const uint32_t other[JOB_ACTS])
{
	for (int i = 0; i < JOB_ACTS; i++)
		looks[i] += other[i];
}

static struct job_thread *watch_room_for_thread(struct job_watch *watch)
{
	struct job_record *record = &watch->record;
	if (record->thread_count < JOB_THREADS_MAX)
		return &record->threads[record->thread_count++];
	for (size_t i = 0; i < JOB_THREADS_MAX; i++) {
		struct job_thread *from = &record->threads[i];
		for (size_t k = i + 1; from->gone && k < JOB_THREADS_MAX; k++) {
			struct job_thread *to = &record->threads[k];
			if (!to->gone || to->process != from->process ||
				strcmp(to->name, from->name) != 0)
				continue;
			watch_join_counts(to->first, from->first, from->last);
			watch_join_looks(to->looks, from->looks);
			to->first_s -= from->last_s - from->first_s;
			to->held += from->held;
			return from;
		}
	}
	record->no_room++;
	return NULL;
}

static void watch_join_process(struct job_watch *watch, uint32_t from, uint32_t to)
{
	struct job_record *record = &watch->record;
	const struct job_process *one = &record->processes[from];
	struct job_process *both = &record->processes[to];
	watch_join_counts(both->first, one->first, one->last);
	watch_join_looks(both->looks, one->looks);
	both->first_s -= one->last_s - one->first_s;
	both->look_count += one->look_count;
	both->runnable += one->runnable;
	both->timed_semaphores += one->timed_semaphores;
	both->vague = both->vague || one->vague;
	both->file_looks += one->file_looks;
	both->open_looks += one->open_looks;
	both->peak_resident = fmax(both->peak_resident, one->peak_resident);
	both->threads_most =
		one->threads_most > both->threads_most ? one->threads_most : both->threads_most;
	both->device = both->device || one->device;
	both->devices |= one->devices;
	both->shared_memory = both->shared_memory || one->shared_memory;
	both->stands_for += (one->stands_for ? one->stands_for : 1) + !both->stands_for;
	for (size_t i = 0; i < record->thread_count; i++)
		if (record->threads[i].process == from)
			record->threads[i].process = to;
	if (watch->options.sampler)
		job_sampler_join(watch->options.sampler, from, to);
}

/* Of zeros.  Where the table is full the place of one that ended, which another of its kind stands for from now on. */
static struct job_process *watch_room_for_process(struct job_watch *watch)
{
	struct job_record *record = &watch->record;
	if (record->process_count < JOB_PROCESSES_MAX)
		return &record->processes[record->process_count++];
	for (uint32_t i = 1; i < JOB_PROCESSES_MAX; i++) {
		const struct job_process *from = &record->processes[i];
		for (uint32_t k = i + 1; from->gone && k < JOB_PROCESSES_MAX; k++) {
			const struct job_process *to = &record->processes[k];
			if (!to->gone || to->parent != from->parent ||
				strcmp(to->name, from->name) != 0)
				continue;
			watch_join_process(watch, i, k);
			memset(&record->processes[i], 0, sizeof record->processes[i]);
			return &record->processes[i];
		}
	}
	record->no_room++;
	return NULL;
}

/* --- who comes and goes ------------------------------------------------------------------------- */

static struct job_process *watch_add_process(
	struct job_watch *watch, int32_t pid, int32_t parent, double t_s)
{
	char path[WATCH_PATH_BYTES];
	char text[WATCH_TEXT_BYTES];
	struct watch_stat stat;
	if (pid == (int32_t)getpid() && !watch->root[0])
		return NULL; /* this watch itself, started by the job */
	(void)snprintf(path, sizeof path, "%.256s/proc/%d", watch->root, pid);
	const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return NULL;
	if (proc_text_at(folder, text, sizeof text, "stat") || !watch_parse_stat(text, &stat) ||
		(parent && (int32_t)stat.fields[STAT_PARENT] != parent)) {
		(void)close(folder);
		return NULL;
	}
	struct job_process *process = watch_room_for_process(watch);
	if (!process) {
		(void)close(folder);
		return NULL;
	}
	process->pid = pid;
	process->parent = (int32_t)stat.fields[STAT_PARENT];
	process->start_ticks = stat.fields[STAT_START];
	process->stack = isnan(stat.fields[STAT_STACK]) ? 0 : stat.fields[STAT_STACK];
	process->first_s = watch_first_s(watch, process->start_ticks, t_s);
	process->last_s = t_s;
	process->zombie = stat.state == 'Z';
	process->folder = folder;
	struct job_process *above = parent ? watch_find(watch, parent) : NULL;
	if (above)
		above->children++;
	memcpy(process->name, stat.name, sizeof process->name);
	for (int i = 0; i < JOB_COUNTS; i++)
		process->first[i] = NAN;
	watch_counts_of_stat(watch, &stat, process->last);
	watch_begin_counts(watch, process->start_ticks, process->last, process->first);
	job_lives_begin(&watch->record, process,
		(process->start_ticks - watch->begun_ticks) / watch->ticks_per_s);
	return process;
}

static void watch_add_children(
	struct job_watch *watch, const struct job_process *of, int32_t tid, double t_s)
{
	char text[WATCH_TEXT_BYTES];
	const int32_t parent = of->pid;
	if (proc_text_at(of->folder, text, sizeof text, "task/%d/children", tid)) {
		watch->no_children = watch->no_children || tid == parent;
		return;
	}
	char *at = text;
	for (;;) {
		char *end;
		const long pid = strtol(at, &end, 10);
		if (end == at)
			return;
		if (pid > 0 && !watch_find(watch, (int32_t)pid))
			(void)watch_add_process(watch, (int32_t)pid, parent, t_s);
		at = end;
	}
}

/* Where threads do not list their children: all processes are asked for their parents. */
static void watch_search_children(struct job_watch *watch, double t_s)
{
	char path[WATCH_PATH_BYTES];
	(void)snprintf(path, sizeof path, "%.256s/proc", watch->root);
	DIR *all = opendir(path);
	for (const struct dirent *e = all ? readdir(all) : NULL; e; e = readdir(all)) {
		const int32_t pid = (int32_t)strtol(e->d_name, NULL, 10);
		char text[WATCH_TEXT_BYTES];
		struct watch_stat stat;
		if (pid <= 0 || watch_find(watch, pid) ||
			proc_text_at(dirfd(all), text, sizeof text, "%d/stat", pid) ||
			!watch_parse_stat(text, &stat))
			continue;
		const int32_t parent = (int32_t)stat.fields[STAT_PARENT];
		if (watch_find(watch, parent))
			(void)watch_add_process(watch, pid, parent, t_s);
	}
	if (all)
		(void)closedir(all);
}

/* The kernel lists threads in the order of the chain: *place is where the last one was found, index + 1; 0: at its begin. */
static bool watch_find_thread(
	const struct job_record *record, uint32_t process, int32_t tid, uint32_t *place)
{
	const uint32_t first = record->processes[process].first_thread;
	const uint32_t begin = *place ? record->threads[*place - 1].next : first;
	for (uint32_t at = begin; at; at = record->threads[at - 1].next)
		if (record->threads[at - 1].tid == tid) {
			*place = at;
			return true;
		}
	for (uint32_t at = first; at && at != begin; at = record->threads[at - 1].next)
		if (record->threads[at - 1].tid == tid)
			return true;
	return false;
}

static bool watch_read_thread(const struct job_watch *watch, const struct job_process *process,
	int32_t tid, struct watch_stat *stat, double counts[JOB_COUNTS])
{
	char text[WATCH_TEXT_BYTES];
	if (proc_text_at(process->folder, text, sizeof text, "task/%d/stat", tid) ||
		!watch_parse_stat(text, stat))
		return false;
	watch_counts_of_stat(watch, stat, counts);
	(void)watch_schedstat(process->folder, tid, counts);
	return true;
}

/* Into the chain behind *place, which it becomes. */
static void watch_add_thread(
	struct job_watch *watch, uint32_t process, int32_t tid, double t_s, uint32_t *place)
{
	struct job_record *record = &watch->record;
	double now[JOB_COUNTS];
	struct watch_stat stat;
	if (!watch_read_thread(watch, &record->processes[process], tid, &stat, now))
		return;
	struct job_thread *thread = watch_room_for_thread(watch);
	if (!thread)
		return;
	uint32_t *link = *place ? &record->threads[*place - 1].next
				: &record->processes[process].first_thread;
	*thread = (struct job_thread){.tid = tid,
		.process = process,
		.start_ticks = stat.fields[STAT_START],
		.first_s = watch_first_s(watch, stat.fields[STAT_START], t_s),
		.last_s = t_s,
		.next = *link};
	*place = *link = (uint32_t)(thread - record->threads) + 1;
	memcpy(thread->name, stat.name, sizeof thread->name);
	watch_status(&record->processes[process], tid, now);
	for (int i = 0; i < JOB_COUNTS; i++)
		thread->first[i] = NAN;
	watch_begin_counts(watch, thread->start_ticks, now, thread->first);
	memcpy(thread->last, now, sizeof thread->last);
}

static void watch_list_threads(struct job_watch *watch, uint32_t index, double t_s)
{
	struct job_process *process = &watch->record.processes[index];
	const int fd = openat(process->folder, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *tasks = fd >= 0 ? fdopendir(fd) : NULL;
	uint32_t count = 0;
	uint32_t place = 0;
	if (fd >= 0 && !tasks)
		(void)close(fd);
	for (const struct dirent *e = tasks ? readdir(tasks) : NULL; e; e = readdir(tasks)) {
		const int32_t tid = (int32_t)strtol(e->d_name, NULL, 10);
		if (tid <= 0)
			continue;
		count++;
		if (!watch_find_thread(&watch->record, index, tid, &place))
			watch_add_thread(watch, index, tid, t_s, &place);
		watch_add_children(watch, process, tid, t_s);
	}
	if (tasks)
		(void)closedir(tasks);
	if (count > process->threads_most)
		process->threads_most = count;
}

/* --- slices of a look --------------------------------------------------------------------------- */

/* At processes until so much CPU time is used: those with several children, and the others in turn. */
static void watch_slice(struct job_watch *watch, enum job_look look, double most_s, double t_s,
	void (*visit)(struct job_watch *watch, uint32_t process, double t_s))
{
	const struct job_record *record = &watch->record;
	const size_t kind = watch_kind_of_look(look);
	const uint64_t begin_ns = isinf(most_s) ? 0 : clock_thread_cpu_ns();
	const uint64_t most_ns = isinf(most_s) ? UINT64_MAX : (uint64_t)(most_s * (double)NS_PER_S);
	unsigned bosses = 0;
	uint32_t boss_end = 0;
	for (; boss_end < record->process_count && bosses < WATCH_BOSSES_MAX; boss_end++)
		if (record->processes[boss_end].children > 1 && !record->processes[boss_end].gone) {
			visit(watch, boss_end, t_s);
			bosses++;
		}
	for (uint32_t n = 0; n < record->process_count; n++) {
		const uint32_t i = watch->turn[kind]++ % (uint32_t)record->process_count;
		watch->turn[kind] = i + 1;
		if (record->processes[i].gone ||
			(i < boss_end && record->processes[i].children > 1))
			continue;
		visit(watch, i, t_s);
		if (most_ns < UINT64_MAX && clock_thread_cpu_ns() - begin_ns >= most_ns)
			return;
	}
}

/* New processes stand at the end of the table, where this comes to in its turn. */
static void watch_census(struct job_watch *watch, double most_s, double t_s)
{
	watch->record.census++;
	if (isinf(most_s))
		watch->turn[watch_kind_of_look(JOB_CENSUS)] = 0;
	watch_slice(watch, JOB_CENSUS, most_s, t_s, watch_list_threads);
	if (!watch->no_children)
		return;
	const size_t known = watch->record.process_count;
	watch_search_children(watch, t_s);
	for (size_t i = known; i < watch->record.process_count; i++)
		watch_list_threads(watch, (uint32_t)i, t_s);
}

/* --- what the kernel has counted ---------------------------------------------------------------- */

static void watch_count_io(struct job_process *process, double counts[JOB_COUNTS])
{
	char text[WATCH_TEXT_BYTES];
	const int code = proc_text_at(process->folder, text, sizeof text, "io");
	if (code) {
		watch_refuse(process, "bytes and calls", code);
		return;
	}
	counts[JOB_READ] = watch_count_of(text, "rchar");
	counts[JOB_WRITTEN] = watch_count_of(text, "wchar");
	counts[JOB_READ_CALLS] = watch_count_of(text, "syscr");
	counts[JOB_WRITE_CALLS] = watch_count_of(text, "syscw");
	counts[JOB_DISK_READ] = watch_count_of(text, "read_bytes");
	counts[JOB_DISK_WRITTEN] = watch_count_of(text, "write_bytes");
}

static void watch_count_process(struct job_watch *watch, struct job_process *process, double t_s)
{
	char text[WATCH_TEXT_BYTES];
	struct watch_stat stat;
	double now[JOB_COUNTS];
	if (proc_text_at(process->folder, text, sizeof text, "stat") ||
		!watch_parse_stat(text, &stat) || stat.state == 'X' ||
		stat.fields[STAT_START] != process->start_ticks) {
		watch_end_process(watch, process, t_s);
		return;
	}
	process->zombie = stat.state == 'Z';
	watch_counts_of_stat(watch, &stat, now);
	if (process->zombie) { /* it has no memory and no files any more, and all its CPU time */
		process->last[JOB_CPU_S] = now[JOB_CPU_S];
		process->last[JOB_USER_S] = now[JOB_USER_S];
		watch_count_io(process, process->last);
		process->last_s = t_s;
		watch_end_process(watch, process, t_s);
		return;
	}
	memcpy(process->name, stat.name, sizeof process->name); /* exec changes it */
	watch_count_io(process, now);
	watch_begin_counts(watch, process->start_ticks, now, process->first);
	memcpy(process->last, now, sizeof process->last);
	process->peak_resident = fmax(process->peak_resident, now[JOB_RESIDENT]);
	process->last_s = t_s;
}

static void watch_count_thread(struct job_watch *watch, struct job_thread *thread, double t_s)
{
	struct job_process *process = &watch->record.processes[thread->process];
	struct watch_stat stat;
	double now[JOB_COUNTS];
	memcpy(now, thread->last, sizeof now);
	if (!isnan(now[JOB_QUEUE_S]) && watch_schedstat(process->folder, thread->tid, now) &&
		now[JOB_CPU_S] <= thread->last[JOB_CPU_S] &&
		now[JOB_CPU_S] >= thread->last[JOB_CPU_S]) {
		thread->dormant = thread->act_known;
		thread->last_s = t_s;
		return;
	}
	thread->dormant = false;
	if (!watch_read_thread(watch, process, thread->tid, &stat, now) ||
		stat.fields[STAT_START] != thread->start_ticks) {
		watch_end_thread(watch, thread);
		return;
	}
	thread->quiet = t_s > thread->last_s && (now[JOB_CPU_S] - thread->last[JOB_CPU_S]) <
							WATCH_QUIET * (t_s - thread->last_s);
	thread->act_known = thread->act_known && thread->quiet;
	now[JOB_YIELDED] = thread->last[JOB_YIELDED];
	now[JOB_PREEMPTED] = thread->last[JOB_PREEMPTED];
	if (watch->finishing || watch->record.counts % WATCH_STATUS_COUNTS == 0)
		watch_status(process, thread->tid, now);
	memcpy(thread->last, now, sizeof now);
	thread->last_s = t_s;
}

static double watch_sum_of(const struct job_process *process, enum job_count count)
{
	const double grown = job_grown(process->first, process->last, count);
	return isnan(grown) ? 0 : grown;
}

static void watch_add_moment(struct job_watch *watch, double t_s)
{
	struct job_record *record = &watch->record;
	if (record->moment_count == JOB_SERIES_MAX) {
		for (size_t i = 0; i < JOB_SERIES_MAX / 2; i++)
			record->moments[i] = record->moments[2 * i];
		record->moment_count /= 2;
	}
	struct job_moment *moment = &record->moments[record->moment_count++];
	*moment = (struct job_moment){.t_s = t_s};
	for (size_t i = 0; i < record->process_count; i++) {
		const struct job_process *process = &record->processes[i];
		moment->cpu_s += watch_sum_of(process, JOB_CPU_S);
		moment->read_bytes += watch_sum_of(process, JOB_READ);
		moment->disk_bytes += watch_sum_of(process, JOB_DISK_READ);
		if (!process->gone && !isnan(process->last[JOB_RESIDENT]))
			moment->resident += process->last[JOB_RESIDENT];
	}
}

static void watch_surroundings(struct job_watch *watch, double t_s);

static void watch_counts(struct job_watch *watch, double t_s)
{
	struct job_record *record = &watch->record;
	for (size_t i = 0; i < record->process_count; i++)
		if (!record->processes[i].gone)
			watch_count_process(watch, &record->processes[i], t_s);
	for (size_t i = 0; i < record->thread_count; i++)
		if (!record->threads[i].gone)
			watch_count_thread(watch, &record->threads[i], t_s);
	watch_surroundings(watch, t_s);
	record->counts++;
	watch_add_moment(watch, t_s);
}

/* --- what each thread does ---------------------------------------------------------------------- */

/* Another user may not see calls, and where ptrace is restricted (kernel.yama.ptrace_scope) its own user neither: the kernel's
 * function is shown to more. */
static struct job_wait watch_wait_of_function(
	struct job_process *process, int32_t tid, bool held, int refused)
{
	char text[WATCH_TEXT_BYTES];
	const bool told =
		proc_text_at(process->folder, text, sizeof text, "task/%d/wchan", tid) == 0 &&
		strcmp(text, "0") != 0;
	if (told)
		process->vague = true;
	else
		watch_refuse(process, "what its threads wait for", refused);
	return (struct job_wait){.act = job_act_of_function(told ? text : "", held)};
}

static struct job_wait watch_wait_asleep(
	struct job_watch *watch, struct job_process *process, int32_t tid, bool held)
{
	char text[WATCH_TEXT_BYTES];
	const int code = proc_text_at(process->folder, text, sizeof text, "task/%d/syscall", tid);
	return code == 0 ? job_wait_of_call(watch->descriptors, process, text, held)
			 : watch_wait_of_function(process, tid, held, code);
}

/* One more that waits there in this look; where there is no room it takes the place of the rarest. */
static struct job_futex *watch_count_futex(
	struct job_process *process, int32_t tid, const struct job_wait *wait)
{
	struct job_futex *const all = process->futexes;
	size_t rarest = 0;
	size_t at = 0;
	for (; at < JOB_FUTEXES_MAX && all[at].address && all[at].address != wait->futex; at++)
		if (all[at].waits < all[rarest].waits)
			rarest = at;
	if (at == JOB_FUTEXES_MAX) {
		at = rarest;
		all[at] = (struct job_futex){.address = 0};
	}
	if (!all[at].address)
		all[at].tid = tid;
	all[at].address = wait->futex;
	all[at].several = all[at].several || all[at].tid != tid;
	all[at].waits++;
	all[at].timed += wait->timed;
	all[at].now++;
	return &all[at];
}

/* After a look at all threads, of which so many ran. */
static void watch_end_futexes(struct job_process *process, uint32_t ran)
{
	for (size_t i = 0; i < JOB_FUTEXES_MAX; i++) {
		struct job_futex *futex = &process->futexes[i];
		if (!futex->now)
			continue;
		futex->looks++;
		futex->ran += ran;
		futex->squares += (double)futex->now * futex->now;
		futex->most = futex->now > futex->most ? futex->now : futex->most;
		futex->now = 0;
	}
}

/* The one that has more than half of the votes, if any has (Boyer and Moore). */
static void watch_vote_futex(struct job_thread *thread, uint64_t futex)
{
	if (thread->futex_votes == 0)
		thread->futex = futex;
	if (thread->futex == futex)
		thread->futex_votes++;
	else
		thread->futex_votes--;
}

/* Counts what it was found in.  A thread that takes turns with others wakes up by its time-out to look whether it may go on. */
static enum job_act watch_take(
	struct job_process *process, struct job_thread *thread, const struct job_wait *wait)
{
	enum job_act act = wait->act;
	if (wait->futex) {
		const struct job_futex *futex = watch_count_futex(process, thread->tid, wait);
		watch_vote_futex(thread, wait->futex);
		if (act == JOB_WAITS_CONDITION && wait->timed && futex->several)
			act = JOB_WAITS_TURN;
		process->timed_semaphores += act == JOB_WAITS_SEMAPHORE && wait->timed;
	}
	thread->looks[act]++;
	return act;
}

/* Whether a thread that has not run, or hardly, does the same still, and nothing else is asked about it: at which pipe it waits, and what
 * the kernel does for it, are looked at each time. */
static bool watch_act_lasts(enum job_act act)
{
	return act != JOB_RUNS && act != JOB_WAITS_READ && act != JOB_WAITS_WRITE &&
	       act != JOB_WAITS_INPUT && act != JOB_WAITS_OUTPUT && act != JOB_STOPPED;
}

static bool watch_act(struct job_watch *watch, struct job_thread *thread, enum job_act *act)
{
	struct job_process *process = &watch->record.processes[thread->process];
	char text[WATCH_TEXT_BYTES];
	struct watch_stat stat;
	const bool asks = process->look_count % WATCH_QUIET_LOOKS ==
			  (uint32_t)thread->tid % WATCH_QUIET_LOOKS;
	/* What a trainer does from moment to moment is its track. */
	const bool leads = thread->tid == process->pid && process->children > 1;
	if (thread->act_known && !leads && (thread->dormant || (thread->quiet && !asks)) &&
		watch_act_lasts(thread->wait.act)) {
		*act = watch_take(process, thread, &thread->wait);
		return true;
	}
	if (proc_text_at(process->folder, text, sizeof text, "task/%d/stat", thread->tid) ||
		!watch_parse_stat(text, &stat) || stat.state == 'Z' || stat.state == 'X')
		return false;
	const bool held = stat.state == 'D';
	thread->wait = stat.state == 'R' ? (struct job_wait){.act = JOB_RUNS}
		       : stat.state == 'T' || stat.state == 't'
			       ? (struct job_wait){.act = JOB_STOPPED}
			       : watch_wait_asleep(watch, process, thread->tid, held);
	thread->held += held;
	thread->act_known = true;
	*act = watch_take(process, thread, &thread->wait);
	return true;
}

/* Of a process with several threads: work counts before waits, waits for files and output before others, then the first
 * thread's. */
static unsigned watch_rank(enum job_act act)
{
	return act == JOB_RUNS                                  ? 4
	       : act >= JOB_WAITS_READ && act <= JOB_WAITS_HELD ? 3
	       : act == JOB_WAITS_OUTPUT                        ? 2
								: 1;
}

static void watch_state_of(struct job_watch *watch, uint32_t index, double t_s)
{
	struct job_process *process = &watch->record.processes[index];
	enum job_act all = JOB_RUNS;
	bool seen = false;
	uint32_t ran = 0;
	for (uint32_t at = process->first_thread; at; at = watch->record.threads[at - 1].next) {
		struct job_thread *thread = &watch->record.threads[at - 1];
		enum job_act act;
		if (!watch_act(watch, thread, &act))
			continue;
		if (!seen || watch_rank(act) > watch_rank(all) ||
			(watch_rank(act) == watch_rank(all) && thread->tid == process->pid))
			all = act;
		seen = true;
		ran += act == JOB_RUNS;
	}
	process->looks[all] += seen;
	process->look_count += seen;
	process->runnable += ran;
	watch_end_futexes(process, ran);
	if (seen)
		job_lives_look(&watch->record, index, all, t_s);
	else
		watch_count_process(watch, process, t_s); /* it may have ended */
}

/* Of processes that have children: those that are new, and what they do at this moment.  Some live for less than the time between
 * two censuses.  Those that a new one follows may have ended: threads that sleep are not asked in each look. */
static void watch_births_of(struct job_watch *watch, uint32_t index, double t_s)
{
	struct job_record *record = &watch->record;
	const int32_t parent = record->processes[index].pid;
	bool born = false;
	if (index > 0 && record->processes[index].children == 0)
		return;
	watch_add_children(watch, &record->processes[index], parent, t_s);
	for (uint32_t i = 0; i < record->process_count; i++)
		if (!record->processes[i].gone && !record->processes[i].first_thread) {
			watch_list_threads(watch, i, t_s);
			watch_state_of(watch, i, t_s);
			born = true;
		}
	for (uint32_t i = 0; born && i < record->process_count; i++)
		if (!record->processes[i].gone && record->processes[i].parent == parent)
			watch_count_process(watch, &record->processes[i], t_s);
}

/* --- open files --------------------------------------------------------------------------------- */

static void watch_files_of(struct job_watch *watch, uint32_t index, double t_s)
{
	struct job_process *process = &watch->record.processes[index];
	const int code = job_descriptors_look(watch->descriptors, process);
	(void)t_s;
	if (code)
		watch_refuse(process, "open files", code);
}

static void watch_files(struct job_watch *watch, double most_s, double t_s)
{
	watch->record.files++;
	watch_slice(watch, JOB_FILES, most_s, t_s, watch_files_of);
	job_descriptors_find_peers(watch->descriptors);
}

/* --- what the node and its control groups allow ------------------------------------------------- */

static bool watch_cgroup_number(
	const char *folder, const char *name, const char *word, double *value)
{
	char path[WATCH_TEXT_BYTES];
	char text[WATCH_TEXT_BYTES];
	(void)snprintf(path, sizeof path, "%.3000s/%s", folder, name);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t size = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	if (fd >= 0)
		(void)close(fd);
	if (size <= 0)
		return false;
	text[size] = '\0';
	*value = word                               ? parse_number_after(text, word)
		 : strcmp(name, "cpu.max") == 0     ? parse_cpu_max(text)
		 : strncmp(name, "memory.", 7) == 0 ? parse_memory_max(text)
						    : strtod(text, NULL);
	return !isnan(*value);
}

/* Cores that a group's quota leaves; INFINITY: it has none. */
static double watch_quota_of(const char *folder)
{
	double quota;
	double period;
	if (watch_cgroup_number(folder, "cpu.max", NULL, &quota))
		return quota;
	if (!watch_cgroup_number(folder, "cpu.cfs_quota_us", NULL, &quota) || quota <= 0 ||
		!watch_cgroup_number(folder, "cpu.cfs_period_us", NULL, &period) || period <= 0)
		return INFINITY;
	return quota / period;
}

/* Bytes that a group may use; INFINITY: it has no limit. */
static double watch_memory_of(const char *folder)
{
	double bytes;
	return watch_cgroup_number(folder, "memory.max", NULL, &bytes) ||
			       watch_cgroup_number(folder, "memory.limit_in_bytes", NULL, &bytes)
		       ? bytes
		       : INFINITY;
}

/* The group with the least, of the process's and those above it; "" in tightest: none has a limit. */
static double watch_find_tightest(struct job_watch *watch, const char *mount, char *group,
	double (*limit_of)(const char *folder), char tightest[WATCH_TEXT_BYTES])
{
	double least = INFINITY;
	for (;;) {
		char folder[WATCH_TEXT_BYTES];
		(void)snprintf(folder, sizeof folder, "%.256s%s%.3000s", watch->root, mount, group);
		const double limit = limit_of(folder);
		if (limit < least) {
			least = limit;
			memcpy(tightest, folder, WATCH_TEXT_BYTES);
		}
		char *slash = strrchr(group, '/');
		if (!slash)
			return least;
		*slash = '\0';
	}
}

/* Of the group itself and those below it, where version 1 tells both. */
static double watch_refaults(const char *text, const char *kind)
{
	char word[64];
	(void)snprintf(word, sizeof word, "total_workingset_refault_%s", kind);
	const double all = parse_number_after(text, word);
	return isnan(all) ? parse_number_after(text, word + strlen("total_")) : all;
}

static void watch_memory(struct job_watch *watch, bool first)
{
	char text[WATCH_STATISTICS_BYTES];
	char path[WATCH_TEXT_BYTES + 16];
	struct job_record *record = &watch->record;
	if (watch->memory_folder[0])
		(void)snprintf(path, sizeof path, "%s/memory.stat", watch->memory_folder);
	else
		(void)snprintf(path, sizeof path, "%.256s/proc/vmstat", watch->root);
	if (proc_text_at(AT_FDCWD, text, sizeof text, "%s", path))
		text[0] = '\0';
	const double file = watch_refaults(text, "file") * watch->page_bytes;
	const double swap = watch_refaults(text, "anon") * watch->page_bytes;
	if (first) {
		watch->refault_file = file;
		watch->refault_swap = swap;
	}
	record->refault_file = file - watch->refault_file;
	record->refault_swap = swap - watch->refault_swap;
}

static void watch_find_limits(struct job_watch *watch, int folder)
{
	static const struct {
		const char *controller, *folder;
		bool cpu, memory;
	} mounts[] = {{"", "/sys/fs/cgroup", true, true},
		{"cpu", "/sys/fs/cgroup/cpu", true, false},
		{"cpu", "/sys/fs/cgroup/cpu,cpuacct", true, false},
		{"memory", "/sys/fs/cgroup/memory", false, true}};
	struct job_record *record = &watch->record;
	char text[WATCH_TEXT_BYTES];
	char group[1024];
	char value[1024];
	record->quota_cores = record->allowed_cpus = record->memory_limit = NAN;
	if (proc_text_at(folder, text, sizeof text, "status") == 0 &&
		parse_field(text, "Cpus_allowed", value, sizeof value)) {
		record->allowed_cpus = 0;
		for (const char *at = value; *at; at++) {
			const char digit[2] = {*at, '\0'};
			record->allowed_cpus += __builtin_popcountl(strtoul(digit, NULL, 16));
		}
	}
	if (proc_text_at(folder, text, sizeof text, "cgroup"))
		return;
	record->quota_cores = record->memory_limit = INFINITY;
	for (size_t i = 0; i < COUNT(mounts); i++) {
		if (mounts[i].cpu && !watch->quota_folder[0] &&
			parse_cgroup_path(text, mounts[i].controller, group, sizeof group))
			record->quota_cores = fmin(record->quota_cores,
				watch_find_tightest(watch, mounts[i].folder, group, watch_quota_of,
					watch->quota_folder));
		if (mounts[i].memory && !watch->memory_folder[0] &&
			parse_cgroup_path(text, mounts[i].controller, group, sizeof group))
			record->memory_limit = fmin(record->memory_limit,
				watch_find_tightest(watch, mounts[i].folder, group, watch_memory_of,
					watch->memory_folder));
	}
}

/* Bytes that the job may still use: of its control group's limit, and of the node without swapping.  Pages of files give way. */
static double watch_memory_left(const struct job_watch *watch)
{
	char text[WATCH_TEXT_BYTES];
	double used;
	double files;
	double left = proc_text_at(AT_FDCWD, text, sizeof text, "%.256s/proc/meminfo", watch->root)
			      ? NAN
			      : watch_count_of(text, "MemAvailable");
	const char *folder = watch->memory_folder;
	if (!folder[0] ||
		!(watch_cgroup_number(folder, "memory.current", NULL, &used) ||
			watch_cgroup_number(folder, "memory.usage_in_bytes", NULL, &used)))
		return left;
	if (!watch_cgroup_number(folder, "memory.stat", "inactive_file", &files))
		files = 0;
	return fmin(left, watch->record.memory_limit - used + files);
}

/* Of the node and of the quota, since the watch began. */
static void watch_surroundings(struct job_watch *watch, double t_s)
{
	struct job_record *record = &watch->record;
	struct cpu_ticks now;
	double periods = NAN;
	double throttled = NAN;
	const bool first = record->counts == 0;
	record->memory_left = watch_memory_left(watch);
	if (watch->quota_folder[0]) {
		(void)watch_cgroup_number(watch->quota_folder, "cpu.stat", "nr_periods", &periods);
		(void)watch_cgroup_number(
			watch->quota_folder, "cpu.stat", "nr_throttled", &throttled);
	}
	watch_memory(watch, first);
	if (!proc_cpu_ticks(watch->root, &now))
		now = (struct cpu_ticks){NAN, NAN, NAN};
	if (first) {
		watch->node = now;
		watch->periods = periods;
		watch->throttled = throttled;
		return;
	}
	record->throttled = periods > watch->periods
				    ? (throttled - watch->throttled) / (periods - watch->periods)
				    : NAN;
	const double busy = now.busy - watch->node.busy;
	const double all = busy + now.idle - watch->node.idle + now.steal - watch->node.steal;
	record->node_busy_cores = t_s > 0 ? busy / watch->ticks_per_s / t_s : NAN;
	record->node_cores = t_s > 0 ? round(all / watch->ticks_per_s / t_s) : NAN;
}

/* --- the watch ---------------------------------------------------------------------------------- */

/* most_s: CPU time of each kind but the counts. */
static void watch_look(struct job_watch *watch, unsigned looks, double most_s, double t_s)
{
	struct job_record *record = &watch->record;
	if (looks & JOB_CENSUS)
		watch_census(watch, most_s, t_s);
	if (looks & JOB_COUNT)
		watch_counts(watch, t_s);
	if (looks & JOB_STATES) {
		record->states++;
		watch_slice(watch, JOB_STATES, most_s, t_s, watch_state_of);
	}
	if ((looks & JOB_BIRTHS) && !watch->no_children)
		watch_slice(watch, JOB_BIRTHS, most_s, t_s, watch_births_of);
	if (looks & JOB_FILES)
		watch_files(watch, most_s, t_s);
	if (watch->options.sampler && (looks & JOB_CENSUS))
		job_sampler_follow(watch->options.sampler, record);
	if (watch->options.sampler && (looks & JOB_FILES))
		job_sampler_drain(watch->options.sampler);
	record->watched_s = t_s;
	if (record->processes[0].gone && isnan(record->ended_s))
		record->ended_s = t_s;
}

void job_watch_look(struct job_watch *watch, unsigned looks, double t_s)
{
	watch_look(watch, looks, INFINITY, t_s);
}

/* Paid for from what each kind may use later on. */
void job_watch_begin(struct job_watch *watch)
{
	for (size_t i = 0; i < WATCH_KINDS; i++) {
		const enum job_look look = watch_kinds[i].look;
		const uint64_t begin_ns = clock_thread_cpu_ns();
		watch_look(
			watch, look, look == JOB_FILES ? WATCH_FIRST_FILES_MS / 1e3 : INFINITY, 0);
		watch->used[i] += (double)(clock_thread_cpu_ns() - begin_ns) / (double)NS_PER_S;
		watch->next[i] = watch_kinds[i].every_s / 2;
	}
}

double job_watch_now(const struct job_watch *watch)
{
	return (double)(clock_now_ns() - watch->begun_ns) / (double)NS_PER_S;
}

/* Looks once; the next look of this kind is due when what such looks used is again within their part.  States are looked at in
 * no step with anything: the times between the looks are drawn. */
static void watch_visit(struct job_watch *watch, size_t kind)
{
	const struct watch_kind *of = &watch_kinds[kind];
	const double t_s = job_watch_now(watch);
	const uint64_t begin_ns = clock_thread_cpu_ns();
	watch_look(watch, of->look, of->slice_s, t_s);
	watch->used[kind] += (double)(clock_thread_cpu_ns() - begin_ns) / (double)NS_PER_S;
	const double paid_s = watch->used[kind] / (of->part * watch->options.most_share);
	watch->next[kind] = fmax(t_s + of->every_s * (0.5 + rng_uniform(&watch->rng)),
		fmin(paid_s, t_s + of->least_s));
}

double job_watch_turn(struct job_watch *watch)
{
	double next_s = INFINITY;
	for (size_t i = 0; i < WATCH_KINDS && isnan(watch->record.ended_s); i++) {
		if (job_watch_now(watch) >= watch->next[i])
			watch_visit(watch, i);
		next_s = fmin(next_s, watch->next[i]);
	}
	return isnan(watch->record.ended_s) ? next_s : INFINITY;
}

void job_watch_finish(struct job_watch *watch)
{
	watch->finishing = true;
	if (isnan(watch->record.ended_s))
		job_watch_look(watch, JOB_COUNT, job_watch_now(watch));
	watch->record.own_cpu_s =
		(double)(clock_process_cpu_ns() - watch->begun_cpu_ns) / (double)NS_PER_S;
}

void job_watch_for(struct job_watch *watch, double seconds, const atomic_bool *stop)
{
	while (job_watch_now(watch) < seconds && !(stop && atomic_load(stop))) {
		const double until_s = fmin(job_watch_turn(watch), seconds);
		if (!isnan(watch->record.ended_s))
			break;
		clock_sleep_until_ns(watch->begun_ns + (uint64_t)(until_s * (double)NS_PER_S));
	}
	job_watch_finish(watch);
}

static int watch_check(struct job_watch *watch, struct error *err)
{
	const int32_t pid = watch->options.pid;
	char text[WATCH_TEXT_BYTES];
	struct watch_stat stat;
	const struct job_process *process = watch_add_process(watch, pid, 0, 0);
	if (!process)
		return error_set(err, -ESRCH, "there is no process %d", pid);
	if (proc_text_at(process->folder, text, sizeof text, "stat") ||
		!watch_parse_stat(text, &stat))
		return error_set(err, -ESRCH, "process %d ends at this moment", pid);
	if (stat.state == 'Z')
		return error_set(err, -ESRCH,
			"process %d has ended, and its parent has not reaped it (zombie): there is nothing to observe",
			pid);
	if ((unsigned)stat.fields[STAT_FLAGS] & FLAG_KERNEL_THREAD)
		return error_set(
			err, -ESRCH, "process %d is a thread of the kernel, not a job", pid);
	job_descriptors_read_mounts(watch->descriptors, process->folder);
	watch_find_limits(watch, process->folder);
	return 0;
}

static double watch_ticks_now(const struct job_watch *watch)
{
	char path[WATCH_PATH_BYTES];
	char text[WATCH_TEXT_BYTES];
	struct timespec now;
	/* A container may have a /proc/uptime of its own; when processes began counts from the machine's boot. */
	if (!watch->root[0] && clock_gettime(CLOCK_BOOTTIME, &now) == 0)
		return ((double)now.tv_sec + (double)now.tv_nsec / (double)NS_PER_S) *
		       watch->ticks_per_s;
	(void)snprintf(path, sizeof path, "%.256s/proc/uptime", watch->root);
	return proc_text_at(AT_FDCWD, text, sizeof text, "%s", path)
		       ? INFINITY
		       : strtod(text, NULL) * watch->ticks_per_s;
}

int job_watch_open(
	struct job_watch **out, const struct job_watch_options *options, struct error *err)
{
	struct job_watch *watch = calloc(1, sizeof *watch);
	*out = NULL;
	if (!watch)
		return error_set(err, -ENOMEM, "out of memory");
	struct job_record *record = &watch->record;
	record->processes = calloc(JOB_PROCESSES_MAX, sizeof *record->processes);
	record->threads = calloc(JOB_THREADS_MAX, sizeof *record->threads);
	record->moments = calloc(JOB_SERIES_MAX, sizeof *record->moments);
	record->lives = calloc(JOB_LIVES_MAX, sizeof *record->lives);
	record->tracks = calloc(JOB_TRACKS_MAX, sizeof *record->tracks);
	watch->descriptors = job_descriptors_open(record, options->root);
	watch->options = *options;
	(void)snprintf(watch->root, sizeof watch->root, "%.256s", options->root);
	if (!record->processes || !record->threads || !record->moments || !record->lives ||
		!record->tracks || !watch->descriptors) {
		job_watch_close(watch);
		return error_set(err, -ENOMEM, "out of memory");
	}
	watch->ticks_per_s = (double)sysconf(_SC_CLK_TCK);
	watch->page_bytes = (double)sysconf(_SC_PAGESIZE);
	watch->begun_ticks = watch_ticks_now(watch);
	watch->begun_ns = clock_now_ns();
	watch->begun_cpu_ns = clock_process_cpu_ns();
	rng_init(&watch->rng, watch->begun_ns, 0);
	record->pid = options->pid;
	record->begun_utc = clock_utc_seconds();
	record->ended_s = record->throttled = record->node_cores = record->node_busy_cores = NAN;
	record->refault_file = record->refault_swap = NAN;
	record->no_blkio = watch->root[0] ? NULL : io_delay_unavailable();
	const int code = watch_check(watch, err);
	if (code)
		job_watch_close(watch);
	else
		*out = watch;
	return code;
}

void job_watch_close(struct job_watch *watch)
{
	if (!watch)
		return;
	for (size_t i = 0; watch->record.processes && i < watch->record.process_count; i++)
		if (watch->record.processes[i].folder >= 0)
			(void)close(watch->record.processes[i].folder);
	free(watch->record.processes);
	free(watch->record.threads);
	free(watch->record.moments);
	free(watch->record.lives);
	free(watch->record.tracks);
	job_descriptors_close(watch->descriptors);
	free(watch);
}

double job_watch_memory(const struct job_watch *watch)
{
	double sum = NAN;
	for (size_t i = 0; i < watch->record.process_count; i++) {
		const struct job_process *process = &watch->record.processes[i];
		char text[WATCH_TEXT_BYTES];
		if (process->gone)
			continue;
		const double shared =
			proc_text_at(process->folder, text, sizeof text, "smaps_rollup")
				? NAN
				: watch_count_of(text, "Pss");
		const double one = isnan(shared) ? process->last[JOB_RESIDENT] : shared;
		if (!isnan(one))
			sum = isnan(sum) ? one : sum + one;
	}
	return sum;
}

const struct job_record *job_watch_record(const struct job_watch *watch)
{
	return &watch->record;
}

/* --- of a record -------------------------------------------------------------------------------- */

double job_grown(
	const double first[JOB_COUNTS], const double last[JOB_COUNTS], enum job_count count)
{
	return last[count] - first[count];
}

double job_process_seconds(const struct job_process *process)
{
	return process->last_s - process->first_s;
}

/* The kernel counts a wait when it ends, so that the first one may have begun long before the thread was first looked at. */
double job_thread_queue_s(const struct job_thread *thread)
{
	const double grown = job_grown(thread->first, thread->last, JOB_QUEUE_S);
	const double cpu = job_grown(thread->first, thread->last, JOB_CPU_S);
	const double room = thread->last_s - thread->first_s - (isnan(cpu) ? 0 : cpu);
	return isnan(grown) ? NAN : fmin(grown, fmax(room, 0));
}

double job_process_queue_s(const struct job_record *record, size_t process)
{
	double sum = NAN;
	for (size_t i = 0; i < record->thread_count; i++) {
		const double waited = job_thread_queue_s(&record->threads[i]);
		if (record->threads[i].process == process && !isnan(waited))
			sum = isnan(sum) ? waited : sum + waited;
	}
	return sum;
}

double job_process_longest_queue_s(const struct job_record *record, size_t process)
{
	double most = NAN;
	for (size_t i = 0; i < record->thread_count; i++)
		if (record->threads[i].process == process)
			most = fmax(most, job_thread_queue_s(&record->threads[i]));
	return most;
}

double job_allowed_cpus(const struct job_process *process)
{
	double count = 0;
	for (size_t i = 0; i < COUNT(process->cpus); i++)
		count += __builtin_popcountll(process->cpus[i]);
	return count > 0 ? count : NAN;
}

uint32_t job_looks_at_files(const uint32_t looks[JOB_ACTS])
{
	return looks[JOB_WAITS_READ] + looks[JOB_WAITS_WRITE] + looks[JOB_WAITS_SYNC] +
	       looks[JOB_WAITS_FAULT] + looks[JOB_WAITS_HELD] + looks[JOB_WAITS_RING];
}

uint32_t job_looks_at_locks(const uint32_t looks[JOB_ACTS])
{
	return looks[JOB_WAITS_LOCK] + looks[JOB_WAITS_FILE_LOCK] + looks[JOB_WAITS_SEMAPHORE] +
	       looks[JOB_WAITS_CONDITION];
}

double job_share(const struct job_process *process, enum job_act act)
{
	return process->look_count ? (double)process->looks[act] / (double)process->look_count
				   : NAN;
}
