/* Probes by raw system calls: the C library may not know them, and a switch in /proc may promise what
 * a seccomp filter then forbids. */
#include "harness/measure/doctor_probe.h"

#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/measure/environment_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RING_ENTRIES = 4, SYSCALL_CACHESTAT = 451, HUGE_BYTES = 2 << 20, PAGE_BYTES = 4096 };

static int close_probe(long fd)
{
	if (fd < 0)
		return -errno;
	(void)close((int)fd);
	return 0;
}

int probe_io_uring(void)
{
	struct io_uring_params params = {0};
	return close_probe(syscall(SYS_io_uring_setup, RING_ENTRIES, &params));
}

static int with_own_program(int (*probe)(int))
{
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	const int code = probe(fd);
	(void)close(fd);
	return code;
}

static int cachestat_of(int fd)
{
	struct {
		uint64_t offset, length;
	} range = {0, PAGE_BYTES};
	struct {
		uint64_t cached, dirty, writeback, evicted, recently_evicted;
	} answer;
	return syscall(SYSCALL_CACHESTAT, fd, &range, &answer, 0) == 0 ? 0 : -errno;
}

int probe_cachestat(void)
{
	return with_own_program(cachestat_of);
}

static int mincore_of(int fd)
{
	unsigned char resident;
	void *map = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	const int code = mincore(map, PAGE_BYTES, &resident) == 0 ? 0 : -errno;
	(void)munmap(map, PAGE_BYTES);
	return code;
}

int probe_mincore(void)
{
	return with_own_program(mincore_of);
}

int probe_huge_page(void)
{
	void *map = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return -errno;
	(void)munmap(map, HUGE_BYTES);
	return 0;
}

static int perf_open(uint32_t type, uint64_t config)
{
	struct perf_event_attr attr = {.type = type, .size = sizeof attr, .config = config};
	attr.disabled = 1;
	attr.exclude_kernel = 1;
	attr.exclude_hv = 1;
	return close_probe(syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

int probe_perf_software(void)
{
	return perf_open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
}

int probe_perf_hardware(void)
{
	return perf_open(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
}

int probe_direct_io(const char *folder)
{
	return close_probe(open(folder, O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600));
}

static bool read_ticks(struct cpu_ticks *ticks)
{
	char line[256];
	return files_first_line("/proc/stat", line, sizeof line) == 0 &&
	       parse_cpu_ticks(line, ticks);
}

bool probe_load(unsigned ms, double *cores_busy, double *steal_share)
{
	struct cpu_ticks before;
	struct cpu_ticks after;
	if (!read_ticks(&before))
		return false;
	clock_sleep_until_ns(clock_now_ns() + ms * NS_PER_MS);
	if (!read_ticks(&after))
		return false;
	const double busy = after.busy - before.busy;
	const double steal = after.steal - before.steal;
	const double all = busy + steal + after.idle - before.idle;
	if (!(all > 0))
		return false;
	*cores_busy = busy / all * (double)sysconf(_SC_NPROCESSORS_ONLN);
	*steal_share = steal / all;
	return true;
}
