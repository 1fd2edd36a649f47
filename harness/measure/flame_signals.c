/* Samples by SIGPROF from a timer on each thread's own CPU clock.  The handler copies registers and the end of the
 * stack into a ring of the thread, and nothing else: no lock, no allocation, no call but clock_gettime.  The drain does the rest,
 * and finds threads that nobody registered. */
#include "harness/measure/flame_parts.h"

#include "harness/base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

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
struct entry {
	uint64_t time_ns, weight, ip, sp, bp, size;
};

struct flame_signals {
	struct sigaction before;
	bool handles;
	nlink_t links;  /* of the folder of threads, when it was last looked into */
	unsigned looks; /* since */
	uint64_t scratch[(sizeof(struct entry) + FLAME_STACK_BYTES_MAX) / sizeof(uint64_t)];
};

/* Read by handlers. */
static atomic_bool sampling;
static atomic_uint inside;       /* handlers that run */
static uintptr_t main_stack_end; /* the highest address of the first thread's stack */
static size_t copied_bytes;

/* --- in the handler ---------------------------------------------------------------------------------------- */

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
static size_t readable(const struct flame_ring *ring, uintptr_t sp)
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

__attribute__((no_sanitize("address", "thread", "undefined"))) static void take(
	struct flame_ring *ring, uint64_t weight, const ucontext_t *context)
{
	const greg_t *const registers = context->uc_mcontext.gregs;
	struct entry entry = {
		.time_ns = clock_now_ns(),
		.weight = weight,
		.ip = (uint64_t)registers[REG_RIP],
		.sp = (uint64_t)registers[REG_RSP],
		.bp = (uint64_t)registers[REG_RBP],
	};
	entry.size = signals_are_late ? 0 : readable(ring, entry.sp);
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

static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)number;
	const int saved = errno;
	if (info->si_code == SI_TIMER) {
		atomic_fetch_add(&inside, 1);
		if (atomic_load(&sampling))
			take(info->si_value.sival_ptr, 1 + (uint64_t)(unsigned)info->si_overrun,
				context);
		atomic_fetch_sub(&inside, 1);
	}
	errno = saved;
}

/* --- threads ----------------------------------------------------------------------------------------------- */

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

void flame_signals_disarm(struct flame *flame, struct flame_thread *thread)
{
	(void)flame;
	if (thread->has_timer)
		(void)timer_delete(thread->timer);
	thread->has_timer = false;
}

static bool is_gone(const struct flame *flame, pid_t tid)
{
	return syscall(SYS_tgkill, flame->pid, tid, 0) != 0 && errno == ESRCH;
}

void flame_signals_arm(struct flame *flame, struct flame_thread *thread)
{
	if (thread->has_timer || !atomic_load(&sampling))
		return;
	if (!thread->ring)
		thread->ring = make_ring(flame);
	if (thread->ring)
		thread->ring->is_main = thread->tid == flame->pid;
	if (!thread->ring || set_timer(flame, thread)) {
		flame_signals_disarm(flame, thread);
		/* One that was found in /proc may have ended since: nothing of it is missed. */
		if (!is_gone(flame, thread->tid))
			flame->profile.unsampled_threads++;
	}
}

/* --- the drain --------------------------------------------------------------------------------------------- */

static void copy_out(const struct flame_ring *ring, uint64_t at, void *out, size_t size)
{
	const size_t from = at & (ring->bytes - 1);
	const size_t first = size < ring->bytes - from ? size : ring->bytes - from;
	memcpy(out, ring->data + from, first);
	memcpy((uint8_t *)out + first, ring->data, size - first);
}

static void drain_ring(struct flame *flame, pid_t tid, struct flame_ring *ring)
{
	uint8_t *const scratch = (uint8_t *)flame->signals->scratch;
	const uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	while (tail < head) {
		struct entry entry;
		copy_out(ring, tail, &entry, sizeof entry);
		copy_out(ring, tail + sizeof entry, scratch, entry.size);
		tail += sizeof entry + entry.size;
		atomic_store_explicit(&ring->tail, tail, memory_order_release);
		const struct flame_raw raw = {
			.tid = tid,
			.time_ns = entry.time_ns,
			.weight = entry.weight,
			.has_user = true,
			.ip = entry.ip,
			.sp = entry.sp,
			.bp = entry.bp,
			.stack = scratch,
			.size = entry.size,
		};
		(void)flame_take(flame, &raw);
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

void flame_signals_drain(struct flame *flame)
{
	(void)pthread_mutex_lock(&flame->lock);
	const size_t count = flame->thread_count;
	(void)pthread_mutex_unlock(&flame->lock);
	for (size_t i = 0; i < count; i++) {
		(void)pthread_mutex_lock(&flame->lock);
		const struct flame_thread thread = flame->threads[i];
		(void)pthread_mutex_unlock(&flame->lock);
		if (thread.tid && thread.ring)
			drain_ring(flame, thread.tid, thread.ring);
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

void flame_signals_wait(struct flame *flame)
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

/* --- opening and the end ------------------------------------------------------------------------------------- */

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

int flame_signals_open(struct flame *flame, struct error *err)
{
	flame->signals = calloc(1, sizeof *flame->signals);
	if (!flame->signals)
		return error_set(err, -ENOMEM, "out of memory");
	flame->profile.period_ns = choose_period();
	find_main_stack();
	copied_bytes = flame->options.stack_bytes;
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
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
	return error_set(err, -ENOTSUP, "a thread's CPU clock gives no timer here");
}

void flame_signals_stop(struct flame *flame)
{
	(void)pthread_mutex_lock(&flame->lock);
	atomic_store(&sampling, false); /* no timer is set from now on */
	for (size_t i = 0; i < flame->thread_count; i++)
		flame_signals_disarm(flame, &flame->threads[i]);
	(void)pthread_mutex_unlock(&flame->lock);
	while (atomic_load(&inside) > 0) /* as long as a copy takes */
		clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
}

void flame_signals_close(struct flame *flame)
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
