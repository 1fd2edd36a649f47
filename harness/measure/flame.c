/* The sampler: which threads are whose, what counts, and the thread that takes samples in. */
#include "harness/measure/flame_parts.h"

#include "harness/base/clock.h"
#include "harness/base/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { COMM_BYTES = 32, STAGE_OTHER = 0 };

/* Hooks hold the gate while they use it: a thread that outlives its run may end at any time. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct flame *) current;

static pid_t own_tid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

const char *flame_method_name(enum flame_method method)
{
	return method == FLAME_PERF ? "perf_event" : "clock signals";
}

/* --- threads, under the lock ------------------------------------------------------------------------------ */

struct flame_thread *flame_thread_slot(struct flame *flame, pid_t tid)
{
	struct flame_thread *unused = NULL;
	for (size_t i = 0; i < flame->thread_count; i++) {
		struct flame_thread *const thread = &flame->threads[i];
		if (thread->tid == tid)
			return thread;
		if (thread->tid == 0 && !unused)
			unused = thread;
	}
	if (!unused && flame->thread_count < FLAME_THREADS_MAX)
		unused = &flame->threads[flame->thread_count++];
	if (unused)
		*unused = (struct flame_thread){.tid = tid, .ring = unused->ring};
	return unused;
}

static uint32_t stage_number(struct flame *flame, const char *stage)
{
	for (uint32_t i = 0; i < flame->stage_count; i++)
		if (strcmp(flame->stages[i], stage) == 0)
			return i;
	if (flame->stage_count == FLAME_STAGES_MAX)
		return STAGE_OTHER;
	flame->stages[flame->stage_count] = stage;
	return flame->stage_count++;
}

static void register_thread(struct flame *flame, const char *stage, uint64_t base)
{
	(void)pthread_mutex_lock(&flame->lock);
	struct flame_thread *const thread = flame_thread_slot(flame, own_tid());
	if (thread) {
		thread->stage = stage_number(flame, stage);
		thread->base = base;
		thread->registered = true;
		thread->ended = thread->leaving = false;
		flame->generation++;
		if (flame->signals)
			flame_signals_arm(flame, thread);
	} else {
		flame->profile.unsampled_threads++;
	}
	(void)pthread_mutex_unlock(&flame->lock);
}

static void end_thread(struct flame *flame)
{
	const pid_t tid = own_tid();
	(void)pthread_mutex_lock(&flame->lock);
	for (size_t i = 0; i < flame->thread_count; i++) {
		struct flame_thread *const thread = &flame->threads[i];
		if (thread->tid != tid)
			continue;
		if (flame->signals)
			flame_signals_disarm(flame, thread);
		thread->ended = true;
	}
	(void)pthread_mutex_unlock(&flame->lock);
}

/* What called the caller started the thread, and says nothing. */
__attribute__((noinline)) void flame_thread_begin(const char *stage)
{
	if (!atomic_load(&current))
		return;
	const uint64_t base = (uintptr_t)__builtin_frame_address(0) + 2 * sizeof(uint64_t);
	(void)pthread_mutex_lock(&gate);
	struct flame *const flame = atomic_load(&current);
	if (flame)
		register_thread(flame, stage, base);
	(void)pthread_mutex_unlock(&gate);
}

void flame_thread_end(void)
{
	if (!atomic_load(&current))
		return;
	(void)pthread_mutex_lock(&gate);
	struct flame *const flame = atomic_load(&current);
	if (flame)
		end_thread(flame);
	(void)pthread_mutex_unlock(&gate);
}

/* --- whose a sample is: the drain --------------------------------------------------------------------------- */

static void read_comm(pid_t tid, char out[COMM_BYTES])
{
	char path[64];
	(void)snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)tid);
	(void)files_first_line(path, out, COMM_BYTES);
}

/* Under the lock: of a thread that did not say. The program's own first thread lends its name to many. */
static uint32_t guess_stage(struct flame *flame, pid_t tid)
{
	char name[COMM_BYTES];
	char other[COMM_BYTES];
	read_comm(tid, name);
	for (size_t i = 0; name[0] && i < flame->thread_count; i++) {
		const struct flame_thread *const thread = &flame->threads[i];
		if (!thread->tid || !thread->registered || thread->tid == flame->pid)
			continue;
		read_comm(thread->tid, other);
		if (strcmp(name, other) == 0)
			return thread->stage;
	}
	return STAGE_OTHER;
}

static struct flame_known find_thread(struct flame *flame, pid_t tid)
{
	struct flame_known known = {0};
	(void)pthread_mutex_lock(&flame->lock);
	for (size_t i = 0; i < flame->thread_count && !known.tid; i++) {
		const struct flame_thread *const thread = &flame->threads[i];
		if (thread->tid == tid && thread->registered)
			known = (struct flame_known){tid, thread->stage, thread->base};
	}
	if (!known.tid)
		known = (struct flame_known){tid, guess_stage(flame, tid), 0};
	(void)pthread_mutex_unlock(&flame->lock);
	return known;
}

static const struct flame_known *thread_of(struct flame *flame, pid_t tid)
{
	struct flame_known *const known = &flame->known[(unsigned)tid % FLAME_KNOWN];
	if (known->tid != tid)
		*known = find_thread(flame, tid);
	return known;
}

static bool counts(const struct flame *flame, uint64_t time_ns)
{
	for (size_t i = 0; i < FLAME_WINDOWS_KEPT && i < flame->copied_count; i++)
		if (time_ns >= flame->copied[i][0] && time_ns < flame->copied[i][1])
			return true;
	return false;
}

static uint32_t step_down(
	struct flame *flame, uint32_t node, const uint64_t *pcs, size_t count, bool kernel)
{
	while (count-- > 0 && node != FLAME_ROOT)
		node = flame_tree_step(&flame->tree, node, pcs[count], kernel);
	return node;
}

static size_t kernel_depth(const struct flame_raw *raw)
{
	return raw->kernel_count < FLAME_DEPTH_MAX ? raw->kernel_count : FLAME_DEPTH_MAX;
}

/* Before anything counts stacks are unwound all the same: tables are read in the warm-up, and not in what is measured. */
bool flame_take(struct flame *flame, const struct flame_raw *raw)
{
	uint64_t pcs[FLAME_DEPTH_MAX];
	const bool counted = counts(flame, raw->time_ns);
	if (!counted) {
		flame->profile.outside += raw->weight;
		if (flame->copied_count > 0)
			return true;
	}
	const struct flame_known *const thread = thread_of(flame, raw->tid);
	struct flame_raw based = *raw;
	based.base = thread->base;
	bool whole = true;
	const size_t count =
		raw->has_user ? flame_unwind(flame->unwinder, &based, pcs, FLAME_DEPTH_MAX, &whole)
			      : 0;
	if (!counted)
		return whole;
	uint32_t node = thread->stage;
	if (!whole)
		node = flame_tree_step(&flame->tree, node, FLAME_PC_TRUNCATED, false);
	node = step_down(flame, node, pcs, count, false);
	node = step_down(flame, node, raw->kernel, kernel_depth(raw), true);
	if (node == FLAME_ROOT) {
		flame->profile.lost += raw->weight;
		return whole;
	}
	flame->tree.nodes[node].self += raw->weight;
	flame->profile.samples += raw->weight;
	flame->profile.truncated += whole ? 0 : raw->weight;
	return whole;
}

/* When they were lost is known to a moment: it counts if anything did. */
void flame_lose(struct flame *flame, uint64_t count)
{
	if (flame->copied_count > 0)
		flame->profile.lost += count;
}

/* --- what counts ----------------------------------------------------------------------------------------------- */

static uint64_t process_cpu_ns(void)
{
	struct timespec ts = {0};
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void begin_window(struct flame *flame, uint64_t now_ns)
{
	uint64_t *const window = flame->windows[flame->window_count++ % FLAME_WINDOWS_KEPT];
	window[0] = now_ns;
	window[1] = UINT64_MAX;
	flame->window_cpu_ns = process_cpu_ns();
	flame->profile.windows++;
}

static void end_window(struct flame *flame, uint64_t now_ns)
{
	uint64_t *const window = flame->windows[(flame->window_count - 1) % FLAME_WINDOWS_KEPT];
	window[1] = now_ns;
	flame->profile.seconds += (double)(now_ns - window[0]) / (double)NS_PER_S;
	flame->profile.cpu_s +=
		(double)(process_cpu_ns() - flame->window_cpu_ns) / (double)NS_PER_S;
}

static void set_counting(struct flame *flame, bool on)
{
	(void)pthread_mutex_lock(&flame->lock);
	const uint64_t count = flame->window_count;
	const bool is_on =
		count > 0 && flame->windows[(count - 1) % FLAME_WINDOWS_KEPT][1] == UINT64_MAX;
	if (on && !is_on)
		begin_window(flame, clock_now_ns());
	else if (!on && is_on)
		end_window(flame, clock_now_ns());
	(void)pthread_mutex_unlock(&flame->lock);
}

void flame_count(bool on)
{
	if (!atomic_load(&current))
		return;
	(void)pthread_mutex_lock(&gate);
	struct flame *const flame = atomic_load(&current);
	if (flame)
		set_counting(flame, on);
	(void)pthread_mutex_unlock(&gate);
}

/* --- the drain --------------------------------------------------------------------------------------------------- */

static void copy_state(struct flame *flame)
{
	(void)pthread_mutex_lock(&flame->lock);
	memcpy(flame->copied, flame->windows, sizeof flame->copied);
	flame->copied_count = flame->window_count;
	if (flame->known_generation != flame->generation)
		memset(flame->known, 0, sizeof flame->known);
	flame->known_generation = flame->generation;
	for (size_t i = 0; i < flame->thread_count; i++)
		flame->threads[i].leaving = flame->threads[i].ended;
	(void)pthread_mutex_unlock(&flame->lock);
}

/* What ended before the rings were emptied has nothing in them any more. */
static void free_slots(struct flame *flame)
{
	(void)pthread_mutex_lock(&flame->lock);
	for (size_t i = 0; i < flame->thread_count; i++) {
		struct flame_thread *const thread = &flame->threads[i];
		if (!thread->leaving)
			continue;
		if (flame->signals)
			flame_signals_disarm(flame, thread);
		*thread = (struct flame_thread){.ring = thread->ring};
		flame->generation++;
	}
	(void)pthread_mutex_unlock(&flame->lock);
}

static void drain_once(struct flame *flame)
{
	copy_state(flame);
	if (flame->perf)
		flame_perf_drain(flame);
	else
		flame_signals_drain(flame);
	free_slots(flame);
}

static void *drain(void *context)
{
	struct flame *const flame = context;
	register_thread(flame, FLAME_SAMPLER, 0);
	while (!atomic_load(&flame->stopping)) {
		if (flame->perf)
			flame_perf_wait(flame);
		else
			flame_signals_wait(flame);
		drain_once(flame);
	}
	end_thread(flame);
	return NULL;
}

/* --- opening and the end -------------------------------------------------------------------------------------- */

static int open_method(struct flame *flame, struct error *err)
{
	struct error why = {0};
	flame->profile.period_ns = NS_PER_S / FLAME_RATE_HZ;
	const enum flame_method wanted = flame->options.method;
	if (wanted != FLAME_SIGNALS) {
		flame->profile.method = FLAME_PERF;
		const int code = flame_perf_open(flame, wanted == FLAME_PERF ? err : &why);
		if (!code || wanted == FLAME_PERF)
			return code;
	} else {
		(void)snprintf(why.text, sizeof why.text, "signals were asked for");
	}
	flame->profile.method = FLAME_SIGNALS;
	(void)snprintf(flame->profile.why_not_perf, sizeof flame->profile.why_not_perf, "%.*s",
		FLAME_WHY_BYTES - 1, why.text);
	return flame_signals_open(flame, err);
}

static void stop(struct flame *flame)
{
	if (flame->perf)
		flame_perf_stop(flame);
	if (flame->signals)
		flame_signals_stop(flame);
	if (!flame->drains)
		return;
	atomic_store(&flame->stopping, true);
	(void)pthread_join(flame->drain, NULL);
	flame->drains = false;
	drain_once(flame); /* what came between its last look and the stop */
	if (flame->perf)
		flame_perf_lose_rest(flame);
}

static int open_all(struct flame *flame, struct error *err)
{
	int code = flame_tree_open(&flame->tree);
	if (code)
		return error_set(err, code, "out of memory");
	code = flame_unwinder_open(&flame->unwinder, err);
	if (code)
		return code;
	code = open_method(flame, err);
	if (code)
		return error_prefix(err, -ENOTSUP, "cannot sample the CPU time");
	code = pthread_create(&flame->drain, NULL, drain, flame);
	if (code)
		return error_set_errno(err, code, "cannot start the sampler's thread");
	flame->drains = true;
	(void)pthread_setname_np(flame->drain, "mlb-flame");
	return 0;
}

static size_t stack_bytes(const struct flame_options *options)
{
	const size_t bytes = options->stack_bytes ? options->stack_bytes : FLAME_STACK_BYTES;
	return (bytes > FLAME_STACK_BYTES_MAX ? FLAME_STACK_BYTES_MAX : bytes) / 8 * 8;
}

int flame_open(struct flame **out, const struct flame_options *options, struct error *err)
{
#if !defined(__x86_64__)
	(void)options;
	*out = NULL;
	return error_set(err, -ENOTSUP, "flame graphs are known to x86-64 only");
#else
	struct flame *flame = calloc(1, sizeof *flame);
	*out = NULL;
	if (!flame || pthread_mutex_init(&flame->lock, NULL)) {
		free(flame);
		return error_set(err, -ENOMEM, "out of memory");
	}
	flame->options = *options;
	flame->options.stack_bytes = stack_bytes(options);
	flame->pid = getpid();
	(void)stage_number(flame, FLAME_OTHER);
	register_thread(flame, FLAME_CONTROL, 0);
	struct flame *none = NULL;
	if (!atomic_compare_exchange_strong(&current, &none, flame)) {
		(void)pthread_mutex_destroy(&flame->lock);
		free(flame);
		return error_set(err, -EBUSY, "the CPU time is being sampled already");
	}
	const int code = open_all(flame, err);
	if (code)
		flame_close(flame);
	else
		*out = flame;
	return code;
#endif
}

void flame_facts(const struct flame *flame, struct flame_profile *out)
{
	*out = (struct flame_profile){
		.method = flame->profile.method, .period_ns = flame->profile.period_ns};
	memcpy(out->why_not_perf, flame->profile.why_not_perf, sizeof out->why_not_perf);
}

int flame_finish(struct flame *flame, struct flame_profile *out, struct error *err)
{
	*out = (struct flame_profile){0};
	set_counting(flame, false);
	stop(flame);
	struct flame_profile profile = flame->profile;
	const int code = flame_tree_name(&flame->tree, flame->stages, flame->unwinder, &profile);
	*out = profile;
	return code ? error_set(err, code, "out of memory for the names of what was sampled") : 0;
}

void flame_close(struct flame *flame)
{
	if (!flame)
		return;
	stop(flame);
	(void)pthread_mutex_lock(&gate);
	atomic_store(&current, NULL);
	(void)pthread_mutex_unlock(&gate);
	flame_perf_close(flame);
	flame_signals_close(flame);
	flame_unwinder_close(flame->unwinder);
	flame_tree_close(&flame->tree);
	(void)pthread_mutex_destroy(&flame->lock);
	free(flame);
}
