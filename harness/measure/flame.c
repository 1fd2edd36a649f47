/* The sampler: a timer on each thread's CPU clock sends it SIGPROF.  The handler copies registers and
 * the end of the stack into a ring of the thread, and does nothing else: no lock, no allocation, no
 * call but clock_gettime.  A thread of the sampler's own, the drain, finds threads that nobody
 * registered, empties the rings, unwinds what is in them and says whose it is.
 *
 * perf_event would show kernel frames, but may do so only with perf_event_paranoid <= 1 or
 * CAP_PERFMON, which workstations, clusters and containers rarely grant. */
#include "harness/measure/flame.h"

#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/measure/flame_unwind.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum {
	FLAME_RATE_HZ = 397, /* at most; prime: in step with nothing */
	FLAME_STACK_BYTES = 24 << 10,
	FLAME_STACK_BYTES_MAX = 48 << 10,
	FLAME_THREADS_MAX = 512,
	FLAME_WINDOWS_KEPT = 16, /* samples come at most a moment late */
	FLAME_KNOWN = 1 << 10,
};

enum {
	RING_BYTES_MANY = 128 << 10, /* of each thread after the first LARGE_RINGS */
	RING_BYTES_FEW = 512 << 10,
	LARGE_RINGS = 128,
	WAIT_MS = 10, /* the smaller rings hold 20 */
	LOOKS = 10,   /* of them one at the threads in any case */
	/* A thread's clock by its number, as the kernel reads it (posix-timers.h): a thread's, of the scheduler's kind. */
	CLOCK_OF_THREAD = 4 | 2,
	CLOCK_SHIFT = 3,
};

/* ThreadSanitizer delivers them when it sees fit, to another stack. */
#if defined(__SANITIZE_THREAD__)
static const bool signals_are_late = true;
#else
static const bool signals_are_late = false;
#endif

/* One writer, the thread's handler; one reader, the drain.  Positions only grow. */
struct flame_ring {
	uint8_t *data; /* (bytes) a power of two */
	size_t bytes;
	bool is_main; /* its stack does not end at its thread block */
	atomic_uint_least64_t head, tail;
	atomic_uint_least64_t lost;
};

/* Before the stack's bytes in a ring. */
struct flame_entry {
	uint64_t time_ns, weight, ip, sp, bp, size;
};

struct flame_signals {
	struct sigaction before;
	bool handles;
	nlink_t links;  /* of the folder of threads, when it was last looked into */
	unsigned looks; /* since */
	uint64_t scratch[(sizeof(struct flame_entry) + FLAME_STACK_BYTES_MAX) / sizeof(uint64_t)];
};

/* Read by handlers. */
static atomic_bool sampling;
static atomic_uint inside;       /* handlers that run */
static uintptr_t main_stack_end; /* the highest address of the first thread's stack */
static size_t copied_bytes;

/* A thread that is known, with its timer and its ring. */
struct flame_thread {
	pid_t tid; /* 0: free */
	uint32_t stage;
	bool registered; /* it said its stage itself, in the function whose frame holds base */
	uint64_t base;   /* 0: not known */
	bool ended,
		leaving; /* it has; and what it left behind is being drained, after which the slot is free */
	bool has_timer;
	timer_t timer;
	struct flame_ring *ring;
};

struct flame_known {
	pid_t tid;
	uint32_t stage;
	uint64_t base;
};

struct flame {
	struct flame_options options;
	struct flame_profile profile; /* facts so far; no frames */
	pid_t pid;

	/* Under lock: threads, stages, windows. */
	pthread_mutex_t lock;
	struct flame_thread threads[FLAME_THREADS_MAX];
	size_t thread_count; /* slots in use or used once */
	uint64_t generation; /* grows with each thread that registers */
	const char *stages[FLAME_STAGES_MAX];
	uint32_t stage_count;
	uint64_t windows[FLAME_WINDOWS_KEPT][2]; /* from, to (UINT64_MAX: it goes on) */
	uint64_t window_count;
	uint64_t window_cpu_ns; /* the process' when the last one began */

	/* The drain's own. */
	pthread_t drain;
	bool drains;
	atomic_bool stopping;
	struct flame_unwinder *unwinder;
	struct flame_tree tree;
	struct flame_known known[FLAME_KNOWN]; /* a cache of threads' stages, by number */
	uint64_t known_generation;
	uint64_t copied[FLAME_WINDOWS_KEPT][2]; /* of windows */
	uint64_t copied_count;

	struct flame_signals *signals;
};

void flame_profile_release(struct flame_profile *profile)
{
	for (size_t i = 0; i < profile->name_count; i++)
		free(profile->names[i]);
	free(profile->names);
	free(profile->frames);
	*profile = (struct flame_profile){0};
}

enum { COMM_BYTES = 32, STAGE_OTHER = 0 };

/* Hooks hold the gate while they use it: a thread that outlives its run may end at any time. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct flame *) current;

static pid_t own_tid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

/* --- SIGPROF: in the handler ------------------------------------------------------------------ */

/* Stacks are read whole, other functions' red zones included: neither checked nor turned into memcpy, which would be. */
__attribute__((no_sanitize("address", "thread", "undefined"))) static void copy_words(
	struct flame_ring *ring, uint64_t at, const volatile uint64_t *from, size_t bytes)
{
	volatile uint64_t *const data = (volatile uint64_t *)(void *)ring->data;
	const size_t mask = ring->bytes / sizeof *data - 1;
	size_t word = (size_t)(at / sizeof *data) & mask;
	for (size_t i = 0; i < bytes / sizeof *from; i++) {
		data[word] = from[i];
		word = (word + 1) & mask;
	}
}

/* Bytes from sp upwards that may be read: glibc puts a thread's own block at the end of its stack. */
static size_t readable_stack(const struct flame_ring *ring, uintptr_t sp)
{
	const uintptr_t end = ring->is_main ? main_stack_end : (uintptr_t)pthread_self();
	const size_t most = copied_bytes;
	if (sp % sizeof(uint64_t) != 0 || sp >= end)
		return 0;
	const size_t size = end - sp;
	/* Farther away than a stack is large, it is another stack. */
	return size > (size_t)1 << 30 ? 0
	       : size < most          ? size / sizeof(uint64_t) * sizeof(uint64_t)
				      : most;
}

__attribute__((no_sanitize("address", "thread", "undefined"))) static void take_signal(
	struct flame_ring *ring, uint64_t weight, const ucontext_t *context)
{
	const greg_t *const registers = context->uc_mcontext.gregs;
	struct flame_entry entry = {
		.time_ns = clock_now_ns(),
		.weight = weight,
		.ip = (uint64_t)registers[REG_RIP],
		.sp = (uint64_t)registers[REG_RSP],
		.bp = (uint64_t)registers[REG_RBP],
	};
	entry.size = signals_are_late ? 0 : readable_stack(ring, entry.sp);
	const uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	const uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
	if (ring->bytes - (head - tail) < sizeof entry + entry.size) {
		atomic_fetch_add_explicit(&ring->lost, weight, memory_order_relaxed);
		return;
	}
	copy_words(ring, head, (const volatile uint64_t *)(const void *)&entry, sizeof entry);
	copy_words(ring, head + sizeof entry, (const volatile uint64_t *)entry.sp, entry.size);
	atomic_store_explicit(&ring->head, head + sizeof entry + entry.size, memory_order_release);
}

static void on_sigprof(int number, siginfo_t *info, void *context)
{
	(void)number;
	const int saved = errno;
	if (info->si_code == SI_TIMER) {
		atomic_fetch_add(&inside, 1);
		if (atomic_load(&sampling))
			take_signal(info->si_value.sival_ptr,
				1 + (uint64_t)(unsigned)info->si_overrun, context);
		atomic_fetch_sub(&inside, 1);
	}
	errno = saved;
}

/* --- SIGPROF: threads ------------------------------------------------------------------------- */

static struct flame_ring *make_ring(const struct flame *flame)
{
	struct flame_ring *ring = calloc(1, sizeof *ring);
	if (!ring)
		return NULL;
	ring->bytes = flame->options.ring_bytes            ? flame->options.ring_bytes
		      : flame->thread_count <= LARGE_RINGS ? RING_BYTES_FEW
							   : RING_BYTES_MANY;
	void *const data =
		mmap(NULL, ring->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (data == MAP_FAILED) {
		free(ring);
		return NULL;
	}
	ring->data = data;
	return ring;
}

static int set_timer(const struct flame *flame, struct flame_thread *thread)
{
	const unsigned clock =
		((~(unsigned)thread->tid) << CLOCK_SHIFT) | (unsigned)CLOCK_OF_THREAD;
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
	event.sigev_value.sival_ptr = thread->ring;
	event.sigev_notify_thread_id = thread->tid;
	if (timer_create((clockid_t)clock, &event, &thread->timer))
		return -errno;
	thread->has_timer = true;
	const struct timespec period = {.tv_nsec = (long)flame->profile.period_ns};
	const struct itimerspec setting = {.it_interval = period, .it_value = period};
	return timer_settime(thread->timer, 0, &setting, NULL) ? -errno : 0;
}

static void flame_signals_disarm(struct flame_thread *thread)
{
	if (thread->has_timer)
		(void)timer_delete(thread->timer);
	thread->has_timer = false;
}

static bool is_gone(const struct flame *flame, pid_t tid)
{
	return syscall(SYS_tgkill, flame->pid, tid, 0) != 0 && errno == ESRCH;
}

static void flame_signals_arm(struct flame *flame, struct flame_thread *thread)
{
	if (thread->has_timer || !atomic_load(&sampling))
		return;
	if (!thread->ring)
		thread->ring = make_ring(flame);
	if (thread->ring)
		thread->ring->is_main = thread->tid == flame->pid;
	if (!thread->ring || set_timer(flame, thread)) {
		flame_signals_disarm(thread);
		/* One that was found in /proc may have ended since: nothing of it is missed. */
		if (!is_gone(flame, thread->tid))
			flame->profile.unsampled_threads++;
	}
}

/* --- threads, under the lock ------------------------------------------------------------------ */

/* A slot for tid under the lock: its own, or a free one; NULL: there is none. */
static struct flame_thread *flame_thread_slot(struct flame *flame, pid_t tid)
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

static void register_sampled(struct flame *flame, const char *stage, uint64_t base)
{
	(void)pthread_mutex_lock(&flame->lock);
	struct flame_thread *const thread = flame_thread_slot(flame, own_tid());
	if (thread) {
		thread->stage = stage_number(flame, stage);
		thread->base = base;
		thread->registered = true;
		thread->ended = thread->leaving = false;
		flame->generation++;
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
		flame_signals_disarm(thread);
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
		register_sampled(flame, stage, base);
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

/* --- whose a sample is: the drain ------------------------------------------------------------- */

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

static const struct flame_known *known_thread(struct flame *flame, pid_t tid)
{
	struct flame_known *const known = &flame->known[(unsigned)tid % FLAME_KNOWN];
	if (known->tid != tid)
		*known = find_thread(flame, tid);
	return known;
}

static bool is_counted(const struct flame *flame, uint64_t time_ns)
{
	for (size_t i = 0; i < FLAME_WINDOWS_KEPT && i < flame->copied_count; i++)
		if (time_ns >= flame->copied[i][0] && time_ns < flame->copied[i][1])
			return true;
	return false;
}

/* Before anything counts stacks are unwound all the same: tables are read in the warm-up, and not in what is measured. */
static void flame_take(
	struct flame *flame, pid_t tid, const struct flame_entry *entry, const uint8_t *stack)
{
	uint64_t pcs[FLAME_DEPTH_MAX];
	const bool counted = is_counted(flame, entry->time_ns);
	if (!counted) {
		flame->profile.outside += entry->weight;
		if (flame->copied_count > 0)
			return;
	}
	const struct flame_known *const thread = known_thread(flame, tid);
	const struct flame_raw raw = {
		.ip = entry->ip,
		.sp = entry->sp,
		.bp = entry->bp,
		.base = thread->base,
		.stack = stack,
		.size = entry->size,
	};
	bool whole = true;
	size_t count = flame_unwind(flame->unwinder, &raw, pcs, FLAME_DEPTH_MAX, &whole);
	if (!counted)
		return;
	uint32_t node = thread->stage;
	if (!whole)
		node = flame_tree_step(&flame->tree, node, FLAME_PC_TRUNCATED);
	while (count-- > 0 && node != FLAME_ROOT)
		node = flame_tree_step(&flame->tree, node, pcs[count]);
	if (node == FLAME_ROOT) {
		flame->profile.lost += entry->weight;
		return;
	}
	flame->tree.nodes[node].self += entry->weight;
	flame->profile.samples += entry->weight;
	flame->profile.truncated += whole ? 0 : entry->weight;
}

/* When they were lost is known to a moment: it counts if anything did. */
static void flame_lose(struct flame *flame, uint64_t count)
{
	if (flame->copied_count > 0)
		flame->profile.lost += count;
}

/* --- what counts ------------------------------------------------------------------------------ */

static void begin_window(struct flame *flame, uint64_t now_ns)
{
	uint64_t *const window = flame->windows[flame->window_count++ % FLAME_WINDOWS_KEPT];
	window[0] = now_ns;
	window[1] = UINT64_MAX;
	flame->window_cpu_ns = clock_process_cpu_ns();
	flame->profile.windows++;
}

static void end_window(struct flame *flame, uint64_t now_ns)
{
	uint64_t *const window = flame->windows[(flame->window_count - 1) % FLAME_WINDOWS_KEPT];
	window[1] = now_ns;
	flame->profile.seconds += (double)(now_ns - window[0]) / (double)NS_PER_S;
	flame->profile.cpu_s +=
		(double)(clock_process_cpu_ns() - flame->window_cpu_ns) / (double)NS_PER_S;
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

/* --- SIGPROF: the drain ----------------------------------------------------------------------- */

static void copy_out(const struct flame_ring *ring, uint64_t at, void *out, size_t size)
{
	const size_t from = at & (ring->bytes - 1);
	const size_t first = size < ring->bytes - from ? size : ring->bytes - from;
	memcpy(out, ring->data + from, first);
	memcpy((uint8_t *)out + first, ring->data, size - first);
}

static void drain_signal_ring(struct flame *flame, pid_t tid, struct flame_ring *ring)
{
	uint8_t *const scratch = (uint8_t *)flame->signals->scratch;
	const uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	while (tail < head) {
		struct flame_entry entry;
		copy_out(ring, tail, &entry, sizeof entry);
		copy_out(ring, tail + sizeof entry, scratch, entry.size);
		tail += sizeof entry + entry.size;
		atomic_store_explicit(&ring->tail, tail, memory_order_release);
		flame_take(flame, tid, &entry, scratch);
	}
	flame_lose(flame, atomic_exchange(&ring->lost, 0));
}

static void find_threads(struct flame *flame)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *entry;
	while (tasks && (entry = readdir(tasks))) {
		const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		struct flame_thread *const thread = tid > 0 ? flame_thread_slot(flame, tid) : NULL;
		if (thread && !thread->ended)
			flame_signals_arm(flame, thread);
	}
	if (tasks)
		(void)closedir(tasks);
}

static void flame_signals_drain(struct flame *flame)
{
	(void)pthread_mutex_lock(&flame->lock);
	const size_t count = flame->thread_count;
	(void)pthread_mutex_unlock(&flame->lock);
	for (size_t i = 0; i < count; i++) {
		(void)pthread_mutex_lock(&flame->lock);
		const struct flame_thread thread = flame->threads[i];
		(void)pthread_mutex_unlock(&flame->lock);
		if (thread.tid && thread.ring)
			drain_signal_ring(flame, thread.tid, thread.ring);
	}
}

/* There is a link for each thread, so that a look into the folder is rarely needed; one may end and another begin. */
static bool threads_changed(struct flame_signals *signals)
{
	struct stat st = {0};
	(void)stat("/proc/self/task", &st);
	if (st.st_nlink == signals->links && ++signals->looks < LOOKS)
		return false;
	signals->links = st.st_nlink;
	signals->looks = 0;
	return true;
}

static void flame_signals_wait(struct flame *flame)
{
	clock_sleep_until_ns(clock_now_ns() + WAIT_MS * NS_PER_MS);
	if (!threads_changed(flame->signals))
		return;
	(void)pthread_mutex_lock(&flame->lock);
	for (size_t i = 0; i < flame->thread_count; i++)
		if (flame->threads[i].tid && is_gone(flame, flame->threads[i].tid))
			flame->threads[i].ended = true; /* libraries' threads end without a word */
	find_threads(flame);
	(void)pthread_mutex_unlock(&flame->lock);
}

/* --- SIGPROF: opening and the end ------------------------------------------------------------- */

/* The kernel looks at CPU clocks at its tick: more often than that, a timer only overruns.  A little less often, it is not in step. */
static uint64_t choose_period(void)
{
	struct timespec tick = {0};
	(void)clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	const uint64_t tick_ns = (uint64_t)tick.tv_nsec;
	const uint64_t wanted_ns = NS_PER_S / FLAME_RATE_HZ;
	return tick_ns >= wanted_ns / 2 ? tick_ns + tick_ns / 97 : wanted_ns;
}

static void find_main_stack(void)
{
	pthread_attr_t attributes;
	void *base = NULL;
	size_t size = 0;
	main_stack_end = 0;
	/* Of whatever thread this is: only the first thread's is asked for, by its number. */
	if (pthread_getattr_np(pthread_self(), &attributes))
		return;
	if (getpid() == (pid_t)syscall(SYS_gettid) &&
		pthread_attr_getstack(&attributes, &base, &size) == 0)
		main_stack_end = (uintptr_t)base + size;
	(void)pthread_attr_destroy(&attributes);
}

static void flame_signals_stop(struct flame *flame)
{
	(void)pthread_mutex_lock(&flame->lock);
	atomic_store(&sampling, false); /* no timer is set from now on */
	for (size_t i = 0; i < flame->thread_count; i++)
		flame_signals_disarm(&flame->threads[i]);
	(void)pthread_mutex_unlock(&flame->lock);
	while (atomic_load(&inside) > 0) /* as long as a copy takes */
		clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
}

static void flame_signals_close(struct flame *flame)
{
	struct flame_signals *const signals = flame->signals;
	if (!signals)
		return;
	if (signals->handles) {
		/* What is still on its way is dropped by the first; its usual effect would be to end the program. */
		const struct sigaction ignore = {.sa_handler = SIG_IGN};
		(void)sigaction(SIGPROF, &ignore, NULL);
		(void)sigaction(SIGPROF, &signals->before, NULL);
	}
	for (size_t i = 0; i < flame->thread_count; i++) {
		struct flame_ring *const ring = flame->threads[i].ring;
		if (!ring)
			continue;
		(void)munmap(ring->data, ring->bytes);
		free(ring);
		flame->threads[i].ring = NULL;
	}
	free(signals);
	flame->signals = NULL;
}

static int flame_signals_open(struct flame *flame, struct error *err)
{
	flame->signals = calloc(1, sizeof *flame->signals);
	if (!flame->signals)
		return error_set(err, -ENOMEM, "out of memory");
	flame->profile.period_ns = choose_period();
	find_main_stack();
	copied_bytes = flame->options.stack_bytes;
	struct sigaction action = {.sa_sigaction = on_sigprof, .sa_flags = SA_SIGINFO | SA_RESTART};
	(void)sigemptyset(&action.sa_mask);
	if (sigaction(SIGPROF, &action, &flame->signals->before)) {
		const int code = errno;
		flame_signals_close(flame);
		return error_set_errno(err, code, "cannot handle SIGPROF");
	}
	flame->signals->handles = true;
	atomic_store(&sampling, true);
	(void)pthread_mutex_lock(&flame->lock);
	find_threads(flame);
	struct flame_thread *const self = flame_thread_slot(flame, (pid_t)syscall(SYS_gettid));
	const bool works = self && self->has_timer;
	(void)pthread_mutex_unlock(&flame->lock);
	if (works)
		return 0;
	flame_signals_stop(flame);
	flame_signals_close(flame);
	return error_set(err, -ENOTSUP, "this kernel has no timers on threads' CPU clocks");
}

/* --- the drain -------------------------------------------------------------------------------- */

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
static void free_thread_slots(struct flame *flame)
{
	(void)pthread_mutex_lock(&flame->lock);
	for (size_t i = 0; i < flame->thread_count; i++) {
		struct flame_thread *const thread = &flame->threads[i];
		if (!thread->leaving)
			continue;
		flame_signals_disarm(thread);
		*thread = (struct flame_thread){.ring = thread->ring};
		flame->generation++;
	}
	(void)pthread_mutex_unlock(&flame->lock);
}

static void drain_samples(struct flame *flame)
{
	copy_state(flame);
	flame_signals_drain(flame);
	free_thread_slots(flame);
}

static void *drain_main(void *context)
{
	struct flame *const flame = context;
	register_sampled(flame, FLAME_SAMPLER, 0);
	while (!atomic_load(&flame->stopping)) {
		flame_signals_wait(flame);
		drain_samples(flame);
	}
	end_thread(flame);
	return NULL;
}

/* --- opening and the end ---------------------------------------------------------------------- */

static void stop_sampling(struct flame *flame)
{
	if (flame->signals)
		flame_signals_stop(flame);
	if (!flame->drains)
		return;
	atomic_store(&flame->stopping, true);
	(void)pthread_join(flame->drain, NULL);
	flame->drains = false;
	drain_samples(flame); /* what came between its last look and the stop */
}

static int open_sampler(struct flame *flame, struct error *err)
{
	int code = flame_tree_open(&flame->tree);
	if (code)
		return error_set(err, code, "out of memory");
	code = flame_unwinder_open(&flame->unwinder, err);
	if (code)
		return code;
	code = flame_signals_open(flame, err);
	if (code)
		return error_prefix(err, -ENOTSUP, "cannot sample the CPU time");
	code = pthread_create(&flame->drain, NULL, drain_main, flame);
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
	return error_set(err, -ENOTSUP, "flame graphs need an x86-64 processor");
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
	struct flame *none = NULL;
	if (!atomic_compare_exchange_strong(&current, &none, flame)) {
		(void)pthread_mutex_destroy(&flame->lock);
		free(flame);
		return error_set(err, -EBUSY, "CPU time is already being sampled");
	}
	register_sampled(flame, FLAME_CONTROL, 0);
	const int code = open_sampler(flame, err);
	if (code)
		flame_close(flame);
	else
		*out = flame;
	return code;
#endif
}

void flame_facts(const struct flame *flame, struct flame_profile *out)
{
	*out = (struct flame_profile){.period_ns = flame->profile.period_ns};
}

int flame_finish(struct flame *flame, struct flame_profile *out, struct error *err)
{
	*out = (struct flame_profile){0};
	set_counting(flame, false);
	stop_sampling(flame);
	struct flame_profile profile = flame->profile;
	const int code = flame_tree_name(&flame->tree, flame->stages, flame->unwinder, &profile);
	*out = profile;
	return code ? error_set(err, code, "out of memory for the names of what was sampled") : 0;
}

void flame_close(struct flame *flame)
{
	if (!flame)
		return;
	stop_sampling(flame);
	(void)pthread_mutex_lock(&gate);
	atomic_store(&current, NULL);
	(void)pthread_mutex_unlock(&gate);
	flame_signals_close(flame);
	flame_unwinder_close(flame->unwinder);
	flame_tree_close(&flame->tree);
	(void)pthread_mutex_destroy(&flame->lock);
	free(flame);
}
