/* Samples by perf_event_open: one event per core that all threads inherit, each core with a ring of its own.  The event
 * is the software CPU clock, not cycles: every sample is the same slice of CPU time, whatever the core's frequency. */
#include "harness/measure/flame_parts.h"

#include "harness/base/clock.h"
#include "harness/base/files.h"

#include <asm/perf_regs.h>
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

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

/* --- opening --------------------------------------------------------------------------------------------- */

static int open_event(const struct flame *flame, pid_t tid, int cpu)
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
static int map_ring(struct ring *ring, size_t bytes)
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
static int keep_fd(struct flame_perf *perf, int fd)
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
static int open_on_core(struct flame *flame, pid_t tid, size_t core, size_t ring_bytes)
{
	struct flame_perf *const perf = flame->perf;
	struct ring *const ring = &perf->rings[core];
	const int fd = open_event(flame, tid, (int)core);
	if (fd < 0)
		return -errno;
	const int code = keep_fd(perf, fd);
	if (code) {
		(void)close(fd);
		return code;
	}
	if (ring->page)
		return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) ? -errno : 0;
	ring->fd = fd;
	const int mapped = map_ring(ring, ring_bytes);
	if (!mapped && (perf->ring_bytes_least == 0 || ring->bytes < perf->ring_bytes_least))
		perf->ring_bytes_least = ring->bytes;
	return mapped;
}

static size_t choose_ring(const struct flame *flame, size_t cores)
{
	size_t bytes = flame->options.ring_bytes ? flame->options.ring_bytes : RING_BYTES_MOST;
	while (bytes > RING_BYTES_LEAST && bytes * cores > RINGS_BYTES_MAX)
		bytes /= 2;
	return bytes < RING_BYTES_LEAST ? RING_BYTES_LEAST : bytes;
}

/* -ESRCH: it has ended meanwhile. */
static int open_thread(struct flame *flame, pid_t tid)
{
	struct flame_perf *const perf = flame->perf;
	const size_t ring_bytes = choose_ring(flame, perf->cores);
	size_t opened = 0;
	int code = 0;
	for (size_t core = 0; core < perf->cores && !code; core++) {
		code = open_on_core(flame, tid, core, ring_bytes);
		opened += code == 0;
		code = code == -ENODEV ? 0 : code; /* it is offline */
	}
	return code || opened ? code : -ENODEV;
}

/* The calling thread first: it says whether this can be done at all. */
static int open_threads(struct flame *flame)
{
	const pid_t self = (pid_t)syscall(SYS_gettid);
	int code = open_thread(flame, self);
	DIR *tasks = code ? NULL : opendir("/proc/self/task");
	const struct dirent *entry;
	for (int i = 0; tasks && !code && i < TASKS_MAX && (entry = readdir(tasks));) {
		const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		if (tid <= 0 || tid == self)
			continue;
		code = open_thread(flame, tid);
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
		code = open_threads(flame);
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

/* --- reading --------------------------------------------------------------------------------------------- */

struct reader {
	const uint64_t *at, *end;
	bool failed;
};

static const uint64_t *take(struct reader *reader, size_t words)
{
	const uint64_t *const at = reader->at;
	if (reader->failed || (size_t)(reader->end - at) < words) {
		reader->failed = true;
		return NULL;
	}
	reader->at += words;
	return at;
}

static uint64_t take_one(struct reader *reader)
{
	const uint64_t *const at = take(reader, 1);
	return at ? *at : 0;
}

/* A chain has marks between the kernel's frames and others. */
static void take_chain(struct reader *reader, struct flame_raw *raw)
{
	const uint64_t count = take_one(reader);
	const uint64_t *chain = take(reader, count < RECORD_BYTES_MAX ? count : SIZE_MAX / 16);
	if (!chain || count < 2 || chain[0] != (uint64_t)PERF_CONTEXT_KERNEL)
		return;
	raw->kernel = chain + 1;
	while (raw->kernel_count < count - 1 &&
		raw->kernel[raw->kernel_count] < (uint64_t)PERF_CONTEXT_MAX)
		raw->kernel_count++;
}

static void take_registers(struct reader *reader, struct flame_raw *raw)
{
	const uint64_t abi = take_one(reader);
	const uint64_t *registers =
		abi == PERF_SAMPLE_REGS_ABI_NONE ? NULL : take(reader, REGISTERS);
	if (!registers)
		return;
	raw->has_user = abi == PERF_SAMPLE_REGS_ABI_64;
	raw->bp = registers[0];
	raw->sp = registers[1];
	raw->ip = registers[2];
}

static void take_stack(struct reader *reader, struct flame_raw *raw)
{
	const uint64_t room = take_one(reader);
	if (room == 0)
		return;
	const uint64_t *const stack = take(reader, room / sizeof(uint64_t));
	const uint64_t size = take_one(reader);
	if (!stack || size > room)
		return;
	raw->stack = (const uint8_t *)stack;
	raw->size = size;
}

/* The kernel copies a stack without waiting for pages: it ends at the first that was never touched, as in the middle of
 * a large array.  Reading them once from here, where that can fail, gives them the page of zeros, and later copies pass. */
static void mend_stack(const struct flame *flame, const struct flame_raw *raw)
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
	const uint64_t who = take_one(&reader);
	uint32_t ids[2];
	memcpy(ids, &who, sizeof ids);
	raw.tid = (pid_t)ids[1];
	raw.time_ns = take_one(&reader);
	take_chain(&reader, &raw);
	take_registers(&reader, &raw);
	take_stack(&reader, &raw);
	if (reader.failed || (pid_t)ids[0] != flame->pid)
		return;
	if (!flame_take(flame, &raw) && raw.size < flame->options.stack_bytes)
		mend_stack(flame, &raw);
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

static const uint8_t *data_of(const struct ring *ring, uint64_t at)
{
	return (const uint8_t *)ring->page + (size_t)sysconf(_SC_PAGESIZE) +
	       (at & (ring->bytes - 1));
}

/* Where it lies, unless it goes on at the ring's beginning: of the 24 KiB of a stack another core wrote most into its own
 * cache, and unwinding reads a few lines of them.  The kernel leaves it alone until data_tail is behind it. */
static const void *record_at(
	struct flame_perf *perf, const struct ring *ring, uint64_t at, size_t size)
{
	const size_t first = ring->bytes - (at & (ring->bytes - 1));
	if (size <= first)
		return data_of(ring, at);
	memcpy(perf->record, data_of(ring, at), first);
	memcpy((uint8_t *)perf->record + first, data_of(ring, at + first), size - first);
	return perf->record;
}

static void drain_ring(struct flame *flame, struct ring *ring)
{
	struct perf_event_mmap_page *const page = ring->page;
	uint64_t tail = page->data_tail;
	const uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	while (tail < head) {
		/* Records are multiples of 8 bytes, as the header is long: it is never divided. */
		const struct perf_event_header *const header = (const void *)data_of(ring, tail);
		const size_t size = header->size;
		if (size < sizeof *header)
			break;
		take_record(flame, record_at(flame->perf, ring, tail, size));
		tail += size;
		__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
	}
}

void flame_perf_drain(struct flame *flame)
{
	for (size_t core = 0; core < flame->perf->cores; core++)
		if (flame->perf->rings[core].page)
			drain_ring(flame, &flame->perf->rings[core]);
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

/* --- the end --------------------------------------------------------------------------------------------- */

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
