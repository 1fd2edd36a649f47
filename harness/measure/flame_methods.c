/* The two ways of taking samples: events of perf, whose samples the kernel writes into rings, and SIGPROF from a timer on
 * each thread's CPU clock. */
#include "harness/measure/flame_parts.h"

#include "harness/base/clock.h"
#include "harness/base/files.h"

#include <asm/perf_regs.h>
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

/* --- perf_event_open -------------------------------------------------------------------------- */

/* One event per core that all threads inherit, each core with a ring of its own.  The event is the software CPU clock, not
 * cycles: every sample is the same slice of CPU time, whatever the core's frequency. */
enum {
	RING_BYTES_MOST = 2 << 20,
	RING_BYTES_LEAST = 64 << 10,
	RINGS_BYTES_MAX = 64 << 20, /* of all cores */
	RECORD_BYTES_MAX = 1 << 16, /* the size in its header has 16 bits */
	TASKS_MAX = 256,            /* threads that there are already */
	WAIT_MS_MOST = 20, /* so soon the places of threads that have ended are free again */
	WAIT_MS_LEAST = 2,
	KERNELS = 3,   /* that differ in what they know */
	REGISTERS = 3, /* in the kernel's order: bp, sp, ip */
};

/* Linux 6.0; headers may be older. */
static const uint64_t FORMAT_LOST = 1U << 4;

struct ring {
	struct perf_event_mmap_page *page; /* NULL: this core is offline */
	size_t bytes;
	int fd;
};

struct flame_perf {
	struct ring *rings;      /* (cores) */
	size_t ring_bytes_least; /* of those that are there */
	size_t cores;
	int *fds; /* (fd_count) all events */
	size_t fd_count, fd_room;
	bool threads_only; /* the kernel knows how not to count child processes */
	bool counts_lost;  /* it says of an event what it lost */
	uint64_t lost;     /* by the records of it */
	uint64_t record[RECORD_BYTES_MAX / sizeof(uint64_t)];
};

/* --- perf: opening --------------------------------------------------------------------------------------------- */

static int open_perf_event(const struct flame *flame, pid_t tid, int cpu)
{
	const struct flame_perf *const perf = flame->perf;
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof attr,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = NS_PER_S / FLAME_RATE_HZ,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN |
			       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.disabled = 1,
		.inherit = 1,
		.inherit_thread = perf->threads_only,
		.read_format = perf->counts_lost ? FORMAT_LOST : 0,
		.exclude_callchain_user = 1,
		.exclude_hv = 1,
		.watermark = 1, /* nobody waits for a wake-up */
		.wakeup_watermark = RING_BYTES_MOST,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.sample_regs_user =
			(1 << PERF_REG_X86_BP) | (1 << PERF_REG_X86_SP) | (1 << PERF_REG_X86_IP),
		.sample_stack_user = (uint32_t)flame->options.stack_bytes,
	};
	return (int)syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Without memory that may be locked for more, a smaller ring. */
static int map_perf_ring(struct ring *ring, size_t bytes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	for (; bytes >= RING_BYTES_LEAST; bytes /= 2) {
		void *const data =
			mmap(NULL, page + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
		if (data != MAP_FAILED) {
			ring->page = data;
			ring->bytes = bytes;
			return 0;
		}
	}
	return -errno;
}

/* Half of the files that may be open are for the pipeline. */
static int keep_perf_fd(struct flame_perf *perf, int fd)
{
	struct rlimit most;
	if (getrlimit(RLIMIT_NOFILE, &most) == 0 && (rlim_t)fd >= most.rlim_cur / 2)
		return -EMFILE;
	if (perf->fd_count == perf->fd_room) {
		const size_t room = perf->fd_room ? 2 * perf->fd_room : 64;
		int *const fds = realloc(perf->fds, room * sizeof *fds);
		if (!fds)
			return -ENOMEM;
		perf->fds = fds;
		perf->fd_room = room;
	}
	perf->fds[perf->fd_count++] = fd;
	return 0;
}

/* tid's event on a core; the first makes the core's ring, the others write there. */
static int open_perf_core(struct flame *flame, pid_t tid, size_t core, size_t ring_bytes)
{
	struct flame_perf *const perf = flame->perf;
	struct ring *const ring = &perf->rings[core];
	const int fd = open_perf_event(flame, tid, (int)core);
	if (fd < 0)
		return -errno;
	const int code = keep_perf_fd(perf, fd);
	if (code) {
		(void)close(fd);
		return code;
	}
	if (ring->page)
		return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) ? -errno : 0;
	ring->fd = fd;
	const int mapped = map_perf_ring(ring, ring_bytes);
	if (!mapped && (perf->ring_bytes_least == 0 || ring->bytes < perf->ring_bytes_least))
		perf->ring_bytes_least = ring->bytes;
	return mapped;
}

static size_t choose_perf_ring(const struct flame *flame, size_t cores)
{
	size_t bytes = flame->options.ring_bytes ? flame->options.ring_bytes : RING_BYTES_MOST;
	while (bytes > RING_BYTES_LEAST && bytes * cores > RINGS_BYTES_MAX)
		bytes /= 2;
	return bytes < RING_BYTES_LEAST ? RING_BYTES_LEAST : bytes;
}

/* -ESRCH: it has ended meanwhile. */
static int open_perf_thread(struct flame *flame, pid_t tid)
{
	struct flame_perf *const perf = flame->perf;
	const size_t ring_bytes = choose_perf_ring(flame, perf->cores);
	size_t opened = 0;
	int code = 0;
	for (size_t core = 0; core < perf->cores && !code; core++) {
		code = open_perf_core(flame, tid, core, ring_bytes);
		opened += code == 0;
		code = code == -ENODEV ? 0 : code; /* it is offline */
	}
	return code || opened ? code : -ENODEV;
}

/* The calling thread first: it says whether this can be done at all. */
static int open_perf_threads(struct flame *flame)
{
	const pid_t self = (pid_t)syscall(SYS_gettid);
	int code = open_perf_thread(flame, self);
	DIR *tasks = code ? NULL : opendir("/proc/self/task");
	const struct dirent *entry;
	for (int i = 0; tasks && !code && i < TASKS_MAX && (entry = readdir(tasks));) {
		const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		if (tid <= 0 || tid == self)
			continue;
		code = open_perf_thread(flame, tid);
		code = code == -ESRCH ? 0 : code;
		i++;
	}
	if (tasks)
		(void)closedir(tasks);
	return code;
}

static int open_perf(struct flame *flame)
{
	struct flame_perf *const perf = flame->perf;
	const long cores = sysconf(_SC_NPROCESSORS_CONF);
	perf->cores = cores > 0 ? (size_t)cores : 1;
	perf->rings = calloc(perf->cores, sizeof *perf->rings);
	if (!perf->rings)
		return -ENOMEM;
	int code = -EINVAL;
	for (int i = 0; i < KERNELS && code == -EINVAL && perf->fd_count == 0; i++) {
		perf->counts_lost = i < 1;  /* since Linux 6.0 */
		perf->threads_only = i < 2; /* since Linux 5.13 */
		code = open_perf_threads(flame);
	}
	for (size_t i = 0; i < perf->fd_count && !code; i++)
		code = ioctl(perf->fds[i], PERF_EVENT_IOC_ENABLE, 0) ? -errno : 0;
	return code;
}

int flame_perf_open(struct flame *flame, struct error *err)
{
	char paranoid[32] = "";
	flame->perf = calloc(1, sizeof *flame->perf);
	const int code = flame->perf ? open_perf(flame) : -ENOMEM;
	if (!code)
		return 0;
	flame_perf_close(flame);
	(void)files_first_line("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof paranoid);
	const bool forbidden = code == -EACCES || code == -EPERM;
	return error_set_errno(err, -code, "perf_event_open %s (perf_event_paranoid = %s)",
		forbidden ? "may not sample the kernel" : "cannot be used",
		paranoid[0] ? paranoid : "not there");
}

/* --- perf: reading --------------------------------------------------------------------------------------------- */

struct reader {
	const uint64_t *at, *end;
	bool failed;
};

static const uint64_t *take_words(struct reader *reader, size_t words)
{
	const uint64_t *const at = reader->at;
	if (reader->failed || (size_t)(reader->end - at) < words) {
		reader->failed = true;
		return NULL;
	}
	reader->at += words;
	return at;
}

static uint64_t take_word(struct reader *reader)
{
	const uint64_t *const at = take_words(reader, 1);
	return at ? *at : 0;
}

/* A chain has marks between the kernel's frames and others. */
static void take_chain(struct reader *reader, struct flame_raw *raw)
{
	const uint64_t count = take_word(reader);
	const uint64_t *chain =
		take_words(reader, count < RECORD_BYTES_MAX ? count : SIZE_MAX / 16);
	if (!chain || count < 2 || chain[0] != (uint64_t)PERF_CONTEXT_KERNEL)
		return;
	raw->kernel = chain + 1;
	while (raw->kernel_count < count - 1 &&
		raw->kernel[raw->kernel_count] < (uint64_t)PERF_CONTEXT_MAX)
		raw->kernel_count++;
}

static void take_registers(struct reader *reader, struct flame_raw *raw)
{
	const uint64_t abi = take_word(reader);
	const uint64_t *registers =
		abi == PERF_SAMPLE_REGS_ABI_NONE ? NULL : take_words(reader, REGISTERS);
	if (!registers)
		return;
	raw->has_user = abi == PERF_SAMPLE_REGS_ABI_64;
	raw->bp = registers[0];
	raw->sp = registers[1];
	raw->ip = registers[2];
}

static void take_stack(struct reader *reader, struct flame_raw *raw)
{
	const uint64_t room = take_word(reader);
	if (room == 0)
		return;
	const uint64_t *const stack = take_words(reader, room / sizeof(uint64_t));
	const uint64_t size = take_word(reader);
	if (!stack || size > room)
		return;
	raw->stack = (const uint8_t *)stack;
	raw->size = size;
}

/* The kernel copies a stack without waiting for pages: it ends at the first that was never touched, as in the middle of
 * a large array.  Reading them once from here, where that can fail, gives them the page of zeros, and later copies pass. */
static void touch_stack(const struct flame *flame, const struct flame_raw *raw)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const uintptr_t end = raw->sp + flame->options.stack_bytes;
	uint8_t byte;
	for (uintptr_t at = raw->sp + raw->size; at < end; at = (at / page + 1) * page) {
		const struct iovec into = {&byte, 1};
		const struct iovec from = {(void *)at, 1}; /* NOLINT(performance-no-int-to-ptr) */
		if (process_vm_readv(flame->pid, &into, 1, &from, 1, 0) != 1)
			return;
	}
}

/* Fields in the order that perf_event_open(2) gives. */
static void take_sample(struct flame *flame, const uint64_t *words, size_t count)
{
	struct reader reader = {.at = words, .end = words + count};
	struct flame_raw raw = {.weight = 1};
	const uint64_t who = take_word(&reader);
	uint32_t ids[2];
	memcpy(ids, &who, sizeof ids);
	raw.tid = (pid_t)ids[1];
	raw.time_ns = take_word(&reader);
	take_chain(&reader, &raw);
	take_registers(&reader, &raw);
	take_stack(&reader, &raw);
	if (reader.failed || (pid_t)ids[0] != flame->pid)
		return;
	if (!flame_take(flame, &raw) && raw.size < flame->options.stack_bytes)
		touch_stack(flame, &raw);
}

static void take_record(struct flame *flame, const struct perf_event_header *header)
{
	const uint64_t *const words = (const uint64_t *)(const void *)(header + 1);
	const size_t count = (header->size - sizeof *header) / sizeof *words;
	if (header->type == PERF_RECORD_SAMPLE) {
		take_sample(flame, words, count);
	} else if (header->type == PERF_RECORD_LOST && count >= 2) {
		flame->perf->lost += words[1];
		flame_lose(flame, words[1]);
	}
}

static const uint8_t *perf_data(const struct ring *ring, uint64_t at)
{
	return (const uint8_t *)ring->page + (size_t)sysconf(_SC_PAGESIZE) +
	       (at & (ring->bytes - 1));
}

/* Where it lies, unless it goes on at the ring's beginning: of the 24 KiB of a stack another core wrote most into its own
 * cache, and unwinding reads a few lines of them.  The kernel leaves it alone until data_tail is behind it. */
static const void *perf_record(
	struct flame_perf *perf, const struct ring *ring, uint64_t at, size_t size)
{
	const size_t first = ring->bytes - (at & (ring->bytes - 1));
	if (size <= first)
		return perf_data(ring, at);
	memcpy(perf->record, perf_data(ring, at), first);
	memcpy((uint8_t *)perf->record + first, perf_data(ring, at + first), size - first);
	return perf->record;
}

static void drain_perf_ring(struct flame *flame, struct ring *ring)
{
	struct perf_event_mmap_page *const page = ring->page;
	uint64_t tail = page->data_tail;
	const uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	while (tail < head) {
		/* Records are multiples of 8 bytes, as the header is long: it is never divided. */
		const struct perf_event_header *const header = (const void *)perf_data(ring, tail);
		const size_t size = header->size;
		if (size < sizeof *header)
			break;
		take_record(flame, perf_record(flame->perf, ring, tail, size));
		tail += size;
		__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
	}
}

void flame_perf_drain(struct flame *flame)
{
	for (size_t core = 0; core < flame->perf->cores; core++)
		if (flame->perf->rings[core].page)
			drain_perf_ring(flame, &flame->perf->rings[core]);
}

/* A record of what was lost is written with the next sample that finds room: of the last, there is none. */
void flame_perf_lose_rest(struct flame *flame)
{
	const struct flame_perf *const perf = flame->perf;
	uint64_t lost = 0;
	for (size_t i = 0; perf->counts_lost && i < perf->fd_count; i++) {
		uint64_t values[2]; /* time, and samples lost */
		if (read(perf->fds[i], values, sizeof values) == (ssize_t)sizeof values)
			lost += values[1];
	}
	if (lost > perf->lost)
		flame_lose(flame, lost - perf->lost);
}

/* A core in use fills a ring at the rate of samples: it is emptied four times meanwhile, if this thread gets its turn. */
void flame_perf_wait(struct flame *flame)
{
	const size_t samples = flame->perf->ring_bytes_least / flame->options.stack_bytes;
	uint64_t wait_ms = samples * 1000 / FLAME_RATE_HZ / 4;
	wait_ms = wait_ms > WAIT_MS_MOST ? WAIT_MS_MOST : wait_ms;
	wait_ms = wait_ms < WAIT_MS_LEAST ? WAIT_MS_LEAST : wait_ms;
	clock_sleep_until_ns(clock_now_ns() + wait_ms * NS_PER_MS);
}

/* --- perf: the end --------------------------------------------------------------------------------------------- */

void flame_perf_stop(struct flame *flame)
{
	for (size_t i = 0; i < flame->perf->fd_count; i++)
		(void)ioctl(flame->perf->fds[i], PERF_EVENT_IOC_DISABLE, 0);
}

void flame_perf_close(struct flame *flame)
{
	struct flame_perf *const perf = flame->perf;
	if (!perf)
		return;
	for (size_t core = 0; perf->rings && core < perf->cores; core++)
		if (perf->rings[core].page)
			(void)munmap(perf->rings[core].page,
				(size_t)sysconf(_SC_PAGESIZE) + perf->rings[core].bytes);
	for (size_t i = 0; i < perf->fd_count; i++)
		(void)close(perf->fds[i]);
	free(perf->rings);
	free(perf->fds);
	free(perf);
	flame->perf = NULL;
}

/* --- SIGPROF ---------------------------------------------------------------------------------- */

/* The handler copies registers and the end of the stack into a ring of the thread, and nothing else: no lock, no
 * allocation, no call but clock_gettime.  The drain does the rest, and finds threads that nobody registered. */
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

/* --- SIGPROF: in the handler ---------------------------------------------------------------------------------------- */

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
	struct entry entry = {
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

/* --- SIGPROF: threads ----------------------------------------------------------------------------------------------- */

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

/* --- SIGPROF: the drain --------------------------------------------------------------------------------------------- */

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

/* --- SIGPROF: opening and the end ------------------------------------------------------------------------------------- */

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
