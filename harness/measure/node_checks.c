/* What the node has and lacks for measuring.  Each check says what is the case, what follows from it for measuring, and
 * how to mend it. */
#include "harness/measure/node_checks.h"

#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/units.h"
#include "harness/measure/data_store.h"
#include "harness/measure/environment.h"
#include "harness/measure/proc_text.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- probes of the kernel --------------------------------------------------------------------- */

enum { RING_ENTRIES = 4, SYSCALL_CACHESTAT = 451, HUGE_BYTES = 2 << 20, PAGE_BYTES = 4096 };

/* By raw system calls: the C library may not know them, and a switch in /proc may promise what a seccomp filter then
 * forbids. */
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

static int probe_huge_page(void)
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

int probe_direct_io(const char *folder)
{
	return close_probe(open(folder, O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600));
}

bool probe_load(
	const char *root, unsigned ms, double cores, double *cores_busy, double *steal_share)
{
	struct cpu_ticks before;
	struct cpu_ticks after;
	if (!proc_cpu_ticks(root, &before))
		return false;
	clock_sleep_until_ns(clock_now_ns() + ms * NS_PER_MS);
	if (!proc_cpu_ticks(root, &after))
		return false;
	const double busy = after.busy - before.busy;
	const double steal = after.steal - before.steal;
	const double all = busy + steal + after.idle - before.idle;
	if (!(all > 0))
		return false;
	*cores_busy = busy / all * cores;
	*steal_share = steal / all;
	return true;
}

/* --- the node --------------------------------------------------------------------------------- */

enum {
	LOAD_SAMPLE_MS = 200,
	KERNEL_MAJOR_WANTED = 6,
	KERNEL_MINOR_WANTED = 5, /* cachestat */
};

static const double MEMLOCK_WANTED = 64 * 1048576.0;
static const double MEMORY_AVAILABLE_WANTED = 2 * 1073741824.0;
static const double LOAD_NOTED = 0.10; /* of the cores */
static const double STEAL_NOTED = 0.01;
static const double SLACK_DEFAULT_NS = 50000;

/* The findings so far, and the facts they are drawn from. */
struct doctor {
	struct doctor_finding *findings;
	size_t count, room;
	struct fact_list facts;
	const char *data_path; /* may be NULL */
};

/* Adds a finding.  What is well has neither consequence nor remedy; both may be "" in any case. */
__attribute__((format(printf, 6, 7))) static void doctor_find(struct doctor *doctor,
	enum doctor_level level, const char *subject, const char *consequence, const char *remedy,
	const char *format, ...)
{
	if (doctor->count == doctor->room)
		return;
	struct doctor_finding *finding = &doctor->findings[doctor->count++];
	*finding = (struct doctor_finding){.level = level};
	(void)snprintf(finding->subject, sizeof finding->subject, "%s", subject);
	if (level != DOCTOR_OK) {
		(void)snprintf(
			finding->consequence, sizeof finding->consequence, "%s", consequence);
		(void)snprintf(finding->remedy, sizeof finding->remedy, "%s", remedy);
	}
	va_list args;
	va_start(args, format);
	(void)vsnprintf(finding->state, sizeof finding->state, format, args);
	va_end(args);
}

#define doctor_ok(doctor, subject, ...) doctor_find(doctor, DOCTOR_OK, subject, "", "", __VA_ARGS__)

static enum doctor_level note_unless(bool well)
{
	return well ? DOCTOR_OK : DOCTOR_NOTE;
}

/* A fact's text ("" when missing), number (NAN when missing or a text), and why it is missing. */
static const char *doctor_text(const struct doctor *doctor, const char *group, const char *name)
{
	const struct fact *fact = fact_find(&doctor->facts, group, name);
	return fact && fact->kind != FACT_MISSING ? fact->text : "";
}

static double doctor_number(const struct doctor *doctor, const char *group, const char *name)
{
	const struct fact *fact = fact_find(&doctor->facts, group, name);
	return fact && fact->kind == FACT_NUMBER ? fact->number : NAN;
}

static const char *doctor_why(const struct doctor *doctor, const char *group, const char *name)
{
	const struct fact *fact = fact_find(&doctor->facts, group, name);
	return fact ? fact->text : "not known";
}

static void check_kernel(struct doctor *doctor)
{
	const char *release = doctor_text(doctor, "kernel", "release");
	int major = 0;
	int minor = 0;
	(void)sscanf(release, "%d.%d", &major, &minor);
	doctor_find(doctor,
		note_unless(major > KERNEL_MAJOR_WANTED ||
			    (major == KERNEL_MAJOR_WANTED && minor >= KERNEL_MINOR_WANTED)),
		"kernel", "some fast paths and cachestat (6.5) are absent; others are used",
		"a kernel of 6.5 or later", "Linux %s", release);
}

static void check_io_uring(struct doctor *doctor)
{
	const int code = probe_io_uring();
	const char *off = doctor_text(doctor, "kernel", "io_uring_disabled");
	if (code == 0)
		doctor_ok(doctor, "io_uring", "a ring can be made");
	else
		doctor_find(doctor, DOCTOR_LACKS, "io_uring",
			"read.engine = io_uring is refused, auto falls back to pread",
			strcmp(off, "0") != 0 && off[0]
				? "sysctl kernel.io_uring_disabled=0"
				: "allow io_uring_setup in the container's seccomp profile, or a newer kernel",
			"no ring: %s (kernel.io_uring_disabled = %s)", strerror(-code),
			off[0] ? off : "absent");
}

static void check_memlock(struct doctor *doctor)
{
	const double limit = doctor_number(doctor, "memory", "memlock_limit");
	char size[UNITS_BYTES];
	if (geteuid() == 0)
		doctor_ok(doctor, "locked memory", "root is not limited");
	else if (isnan(limit))
		doctor_ok(doctor, "locked memory", "%s",
			doctor_text(doctor, "memory", "memlock_limit"));
	else
		doctor_find(doctor, note_unless(limit >= MEMLOCK_WANTED), "locked memory",
			"large read buffers cannot be registered with the ring; plain buffers are used",
			"ulimit -l unlimited, or memlock in /etc/security/limits.conf",
			"%s may be locked", units_format_size(limit, size));
}

static void check_huge_pages(struct doctor *doctor)
{
	const double free_pages = doctor_number(doctor, "memory", "huge_pages_free");
	const char *transparent = doctor_text(doctor, "memory", "transparent_huge_pages");
	if (free_pages > 0 && probe_huge_page() == 0)
		doctor_ok(doctor, "huge pages", "%.0f of 2 MiB are free", free_pages);
	else if (transparent[0] && strcmp(transparent, "never") != 0)
		doctor_find(doctor, DOCTOR_NOTE, "huge pages",
			"buffers use transparent huge pages, which the kernel may or may not give",
			"sysctl vm.nr_hugepages=512", "none reserved; transparent ones: %s",
			transparent);
	else
		doctor_find(doctor, DOCTOR_LACKS, "huge pages",
			"direct reads into 4 KiB pages are slower and vary more",
			"sysctl vm.nr_hugepages=512, or transparent_hugepage/enabled = madvise",
			"none reserved, no transparent ones");
}

static void check_residency(struct doctor *doctor)
{
	const int code = probe_cachestat();
	const int old = code ? probe_mincore() : 0;
	if (code == 0)
		doctor_ok(doctor, "page cache share", "cachestat works");
	else if (old == 0)
		doctor_find(doctor, DOCTOR_NOTE, "page cache share",
			"residency is measured by mincore: slower, own or writable files only",
			"a kernel of 6.5 or later", "no cachestat (%s), mincore works",
			strerror(-code));
	else
		doctor_find(doctor, DOCTOR_LACKS, "page cache share",
			"whether a run was cold cannot be proved", "a kernel of 6.5 or later",
			"no cachestat (%s), no mincore (%s)", strerror(-code), strerror(-old));
}

static void check_drop_caches(struct doctor *doctor)
{
	const bool well = access("/proc/sys/vm/drop_caches", W_OK) == 0;
	doctor_find(doctor, note_unless(well), "cache eviction",
		"read.cache = cold evicts file by file, which is slower for large data sets",
		"run as root if cold runs of large data sets are wanted",
		"drop_caches may %sbe written", well ? "" : "not ");
}

static void check_perf(struct doctor *doctor)
{
	const int software = perf_open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
	const int hardware = perf_open(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
	if (software == 0)
		doctor_ok(doctor, "software counters", "perf_event_open works");
	else
		doctor_find(doctor, DOCTOR_NOTE, "software counters",
			"none: CPU time is taken from /proc instead",
			"sysctl kernel.perf_event_paranoid=2", "%s (perf_event_paranoid = %s)",
			strerror(-software), doctor_text(doctor, "kernel", "perf_event_paranoid"));
	if (hardware == 0)
		doctor_ok(doctor, "hardware counters", "cycles can be counted");
	else
		doctor_find(doctor, DOCTOR_NOTE, "hardware counters",
			"cycles, cache misses and memory traffic are not measured",
			"bare metal or a virtual PMU; sysctl kernel.perf_event_paranoid=2",
			"cycles cannot be counted: %s", strerror(-hardware));
}

static void check_accounting(struct doctor *doctor)
{
	char line[128];
	unsigned long long on_cpu;
	unsigned long long waiting;
	const bool schedstat = files_first_line("/proc/self/schedstat", line, sizeof line) == 0 &&
			       sscanf(line, "%llu %llu", &on_cpu, &waiting) == 2;
	const bool io = access("/proc/self/io", R_OK) == 0;
	const bool pressure = access("/proc/pressure/cpu", R_OK) == 0;
	doctor_find(doctor, schedstat ? DOCTOR_OK : DOCTOR_LACKS, "run-queue time",
		"waiting for a core cannot be told from waiting for a lock: the verdict says less",
		"a kernel with CONFIG_SCHED_INFO", "%s",
		schedstat ? "schedstat can be read" : "no /proc/self/schedstat");
	doctor_find(doctor, note_unless(io), "I/O accounting",
		"bytes really fetched from storage are not known",
		"a kernel with CONFIG_TASK_IO_ACCOUNTING", "%s",
		io ? "/proc/self/io can be read" : "no /proc/self/io");
	doctor_find(doctor, note_unless(pressure), "pressure (PSI)",
		"load from outside is known from /proc/stat only", "boot with psi=1", "%s",
		pressure ? "/proc/pressure can be read" : "no /proc/pressure");
}

static void check_frequency(struct doctor *doctor)
{
	const char *governor = doctor_text(doctor, "cpu", "governor");
	if (!governor[0])
		doctor_find(doctor, DOCTOR_NOTE, "CPU frequency",
			"clock changes during a run go unseen",
			"on a virtual machine: none, compare ratios within a run", "%s",
			doctor_why(doctor, "cpu", "governor"));
	else
		doctor_find(doctor, note_unless(strcmp(governor, "performance") == 0),
			"CPU frequency", "short runs may be measured at a lower clock",
			"cpupower frequency-set -g performance", "governor %s", governor);
}

static void check_topology(struct doctor *doctor)
{
	const double cores = doctor_number(doctor, "cpu", "cores");
	const double threads = doctor_number(doctor, "cpu", "threads");
	const double nodes = doctor_number(doctor, "cpu", "numa_nodes");
	const bool is_virtual = doctor_text(doctor, "cpu", "hypervisor")[0] == 'y';
	if (threads > cores)
		doctor_find(doctor, DOCTOR_NOTE, "SMT",
			"two workers on one core share it: scaling bends at the number of cores",
			"count cores, not threads, when choosing decode.workers",
			"%.0f threads on %.0f cores", threads, cores);
	else
		doctor_ok(doctor, "SMT", "%.0f threads, each its own core%s", threads,
			is_virtual ? " as the hypervisor tells it" : "");
	if (nodes > 1)
		doctor_find(doctor, DOCTOR_NOTE, "NUMA",
			"where memory and threads lie changes the rates",
			"run.affinity = compact or spread, or numactl", "%.0f nodes", nodes);
	else
		doctor_ok(doctor, "NUMA", "one node");
}

/* Threads that libraries start in each process of a job: a hint, since a job may set its own. */
static void check_library_threads(struct doctor *doctor, double cores)
{
	static const char *const names[] = {"OMP_NUM_THREADS", "MKL_NUM_THREADS",
		"OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"};
	const double allowed = doctor_number(doctor, "cpu", "allowed");
	const char *most_of = NULL;
	long most = 0;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *const value = getenv(names[i]);
		const long threads = value ? strtol(value, NULL, 10) : 0;
		if (threads > most) {
			most = threads;
			most_of = names[i];
		}
	}
	if (most_of && (double)most > cores)
		doctor_find(doctor, DOCTOR_NOTE, "library threads",
			"a hint: each worker process of a job may start so many, far more than there are cores",
			"OMP_NUM_THREADS=1 and the like, cv2.setNumThreads(0), torch.set_num_threads(1) in workers",
			"%s=%ld for %s core%s", most_of, most, UNITS_PLAIN(cores, 3),
			cores == 1 ? "" : "s");
	else if (!getenv("OMP_NUM_THREADS") && cores < allowed)
		doctor_find(doctor, DOCTOR_NOTE, "library threads",
			"a hint: OpenMP starts one for each CPU that it sees in each worker process of a job, and does not see the CPU quota",
			"OMP_NUM_THREADS=1 in workers, cv2.setNumThreads(0), torch.set_num_threads(1)",
			"OMP_NUM_THREADS is not set: %.0f threads a process for %s cores", allowed,
			UNITS_PLAIN(cores, 3));
	else if (most_of)
		doctor_ok(doctor, "library threads", "%s=%ld", most_of, most);
	else
		doctor_ok(doctor, "library threads",
			"OMP_NUM_THREADS is not set: a process may start %.0f", allowed);
}

/* Who told the launcher to bind, if it says so. */
static const char *mask_hint(void)
{
	const char *const bind = getenv("SLURM_CPU_BIND");
	return bind && *bind && !strstr(bind, "none") ? " (SLURM_CPU_BIND is set)" : "";
}

static void check_limits(struct doctor *doctor)
{
	const struct cgroup_limits limits = cgroup_limits_now();
	const double allowed = doctor_number(doctor, "cpu", "allowed");
	const double threads = doctor_number(doctor, "cpu", "threads");
	const double reachable = cpus_reachable();
	char size[UNITS_BYTES];
	if (limits.cores < allowed)
		doctor_find(doctor, DOCTOR_NOTE, "CPU limit",
			"more busy threads than this are throttled, in bursts that look like stalls",
			"decode.workers within the limit, or raise the cgroup's CPU quota",
			"cgroup %.100s allows %.2f of %.0f cores",
			doctor_text(doctor, "cgroup", "cpu_limit_group"), limits.cores, allowed);
	else if (allowed < reachable)
		doctor_find(doctor, DOCTOR_NOTE, "CPU limit",
			"all workers of a job that is started here share them, and the others are idle",
			"srun --cpu-bind=none or a larger --cpus-per-task, taskset, or whatever set the mask",
			"an affinity mask holds this process on CPU%s %s: %.0f of the %.0f that it could use%s",
			allowed > 1 ? "s" : "", doctor_text(doctor, "cpu", "affinity"), allowed,
			reachable, mask_hint());
	else if (allowed < threads)
		doctor_find(doctor, DOCTOR_NOTE, "CPU limit", "only these are used",
			"widen the cpuset, if that is not meant",
			"a cpuset allows CPUs %s: %.0f of %.0f",
			doctor_text(doctor, "cpu", "affinity"), allowed, threads);
	else
		doctor_ok(doctor, "CPU limit", "none: %.0f cores", allowed);
	check_library_threads(doctor, fmin(allowed, limits.cores));
	if (limits.memory_bytes < doctor_number(doctor, "memory", "total"))
		doctor_find(doctor, DOCTOR_NOTE, "memory limit",
			"the page cache counts against it: warm runs may not stay warm",
			"raise the cgroup's memory limit", "the cgroup allows %s",
			units_format_size(limits.memory_bytes, size));
	else
		doctor_ok(doctor, "memory limit", "none");
}

static void check_free_memory(struct doctor *doctor)
{
	const double available = doctor_number(doctor, "memory", "available");
	char size[UNITS_BYTES];
	if (isnan(available))
		doctor_find(doctor, DOCTOR_NOTE, "memory", "the bound on memory cannot be checked",
			"", "%s", doctor_why(doctor, "memory", "available"));
	else
		doctor_find(doctor, note_unless(available >= MEMORY_AVAILABLE_WANTED), "memory",
			"little room for buffers and page cache",
			"stop other processes, or smaller batch.size and prefetch.depth",
			"%s available", units_format_size(available, size));
}

static void check_load(struct doctor *doctor)
{
	double busy;
	double steal;
	const double online = (double)sysconf(_SC_NPROCESSORS_ONLN);
	if (!probe_load("", LOAD_SAMPLE_MS, online, &busy, &steal)) {
		doctor_find(doctor, DOCTOR_NOTE, "load now", "others' load goes unseen", "",
			"/proc/stat does not say");
		return;
	}
	const double cores = doctor_number(doctor, "cpu", "threads");
	doctor_find(doctor, note_unless(!(busy > LOAD_NOTED * cores)), "load now",
		"measurements will vary and read too low", "stop other work while measuring",
		"%.1f of %.0f cores are busy", busy, cores);
	doctor_find(doctor, note_unless(steal <= STEAL_NOTED), "stolen time",
		"the host takes cores away: rates vary by more than this",
		"another host or dedicated cores", "%.1f %% of the time", steal * 100);
}

static void check_clock(struct doctor *doctor)
{
	const char *source = doctor_text(doctor, "kernel", "clocksource");
	const double slack = doctor_number(doctor, "kernel", "timer_slack");
	if (strcmp(source, "tsc") == 0 || strstr(source, "kvm-clock") || strstr(source, "arch_sys"))
		doctor_ok(doctor, "clock", "%s: read without a system call", source);
	else
		doctor_find(doctor, DOCTOR_NOTE, "clock",
			"each reading of the time is a system call: the profiler costs more",
			"clocksource=tsc on the kernel's command line, if the TSC is stable", "%s",
			source[0] ? source : "clock source not known");
	doctor_find(doctor, note_unless(slack <= SLACK_DEFAULT_NS), "timer slack",
		"an emulated step may oversleep by so much", "", "%.0f us", slack / 1000);
}

static void check_gpu(struct doctor *doctor)
{
	/* A container may have the one and not the other. */
	const double by_kernel = doctor_number(doctor, "gpu", "devices");
	const double by_driver = doctor_number(doctor, "gpu", "nvml");
	const double devices = fmax(by_kernel, by_driver);
	const char *library = doctor_text(doctor, "gpu", "libcuda");
	const char *model = doctor_text(doctor, "gpu", by_driver > 0 ? "name_0" : "model_0");
	if (devices > 0)
		doctor_find(doctor, library[0] ? DOCTOR_OK : DOCTOR_LACKS, "GPU",
			"the device cannot be used: steps are emulated",
			"install the driver's libcuda.so.1, or pass it into the container",
			"%.0f x %s%s", devices, model, library[0] ? "" : ", but no libcuda.so.1");
	else
		doctor_find(doctor, DOCTOR_NOTE, "GPU",
			"steps are emulated, or computed on the CPU", "", "no NVIDIA device");
}

/* --- what may make a GPU slower than its name; the first device that fails is told ------------ */

enum { NAME_ROOM = 48, DEVICES_LOOKED_AT = 16 };

/* Facts are by device: "pcie_lanes_0". */
static const char *doctor_device_name(const char *name, unsigned device, char out[NAME_ROOM])
{
	(void)snprintf(out, NAME_ROOM, "%s_%u", name, device);
	return out;
}

static double gpu_number(const struct doctor *doctor, const char *name, unsigned device)
{
	char full[NAME_ROOM];
	return doctor_number(doctor, "gpu", doctor_device_name(name, device, full));
}

static const char *gpu_text(const struct doctor *doctor, const char *name, unsigned device)
{
	char full[NAME_ROOM];
	return doctor_text(doctor, "gpu", doctor_device_name(name, device, full));
}

static const char *gpu_why(const struct doctor *doctor, const char *name, unsigned device)
{
	char full[NAME_ROOM];
	return doctor_why(doctor, "gpu", doctor_device_name(name, device, full));
}

static void check_device_link(struct doctor *doctor, unsigned devices)
{
	for (unsigned i = 0; i < devices; i++) {
		const double lanes = gpu_number(doctor, "pcie_lanes", i);
		const double most = gpu_number(doctor, "pcie_lanes_max", i);
		if (isnan(lanes) || isnan(most)) {
			doctor_find(doctor, DOCTOR_NOTE, "GPU link",
				"a narrow link would go unseen", "", "device %u: lanes unknown: %s",
				i,
				gpu_why(doctor, isnan(lanes) ? "pcie_lanes" : "pcie_lanes_max", i));
			return;
		}
		if (lanes < most) {
			doctor_find(doctor, DOCTOR_LACKS, "GPU link",
				"batches are copied to it at a part of the link's bandwidth",
				"reseat the card or riser, or another slot; check the slot's bifurcation in the firmware",
				"device %u: %.0f of %.0f PCIe lanes", i, lanes, most);
			return;
		}
	}
	doctor_ok(doctor, "GPU link",
		"%.0f PCIe lanes of generation %.0f now (at most %.0f; less while idle is normal)",
		gpu_number(doctor, "pcie_lanes", 0), gpu_number(doctor, "pcie_generation", 0),
		gpu_number(doctor, "pcie_generation_max", 0));
}

static void check_device_memory(struct doctor *doctor, unsigned devices)
{
	double corrected = 0;
	for (unsigned i = 0; i < devices; i++) {
		const double lost = gpu_number(doctor, "ecc_uncorrected", i);
		if (isnan(lost)) {
			doctor_find(doctor, DOCTOR_NOTE, "GPU memory",
				"errors of its memory go unseen", "", "device %u: %s", i,
				gpu_why(doctor, "ecc_uncorrected", i));
			return;
		}
		if (lost > 0) {
			doctor_find(doctor, DOCTOR_LACKS, "GPU memory",
				"results of this device cannot be trusted",
				"reset the device, and replace it if they come back",
				"device %u: %.0f uncorrected errors since the driver was loaded", i,
				lost);
			return;
		}
		corrected += fmax(0, gpu_number(doctor, "ecc_corrected", i));
	}
	if (corrected > 0)
		doctor_find(doctor, DOCTOR_NOTE, "GPU memory",
			"none is lost; many of them herald worse", "",
			"%.0f corrected errors since the driver was loaded", corrected);
	else
		doctor_ok(doctor, "GPU memory", "no errors since the driver was loaded");
}

static void check_device_clocks(struct doctor *doctor, unsigned devices)
{
	for (unsigned i = 0; i < devices; i++) {
		const char *reasons = gpu_text(doctor, "throttles_now", i);
		if (!reasons[0]) {
			doctor_find(doctor, DOCTOR_NOTE, "GPU clocks",
				"clocks that are held down go unseen", "", "device %u: %s", i,
				gpu_why(doctor, "throttles_now", i));
			return;
		}
		if (strcmp(reasons, "none") != 0) {
			doctor_find(doctor, DOCTOR_NOTE, "GPU clocks",
				"steps are slower than this device's name promises",
				"cooling, power supply, or nvidia-smi --reset-gpu-clocks, by the reason",
				"device %u is held down now: %s", i, reasons);
			return;
		}
	}
	doctor_ok(doctor, "GPU clocks", "not held down (%.0f MHz now, at most %.0f)",
		gpu_number(doctor, "sm_clock_now", 0), gpu_number(doctor, "sm_clock_max", 0));
}

static void check_device_driver(struct doctor *doctor, unsigned devices)
{
	for (unsigned i = 0; i < devices; i++)
		if (strcmp(gpu_text(doctor, "persistence", i), "off") == 0) {
			doctor_find(doctor, DOCTOR_NOTE, "GPU driver",
				"the driver is loaded anew for every program: seconds before each run",
				"nvidia-smi -pm 1, or the nvidia-persistenced service",
				"device %u: persistence mode is off", i);
			return;
		}
	doctor_ok(doctor, "GPU driver", "%s%s", doctor_text(doctor, "gpu", "driver_version"),
		strcmp(gpu_text(doctor, "persistence", 0), "on") == 0 ? ", stays loaded" : "");
}

static void check_device_parts(struct doctor *doctor, unsigned devices)
{
	for (unsigned i = 0; i < devices; i++)
		if (strcmp(gpu_text(doctor, "mig_mode", i), "on") == 0) {
			doctor_find(doctor, DOCTOR_NOTE, "GPU parts",
				"a part has no published peak, and the driver tells less of it", "",
				"device %u is split (MIG)", i);
			return;
		}
}

static void check_gpu_state(struct doctor *doctor)
{
	const double count = doctor_number(doctor, "gpu", "nvml");
	const unsigned devices = count > 0 ? (unsigned)fmin(count, DEVICES_LOOKED_AT) : 0;
	if (devices == 0) {
		/* Without a GPU, that there is none has been said. */
		if (doctor_number(doctor, "gpu", "devices") > 0)
			doctor_find(doctor, DOCTOR_LACKS, "GPU state",
				"clocks, power, throttling and memory errors of a run stay unknown",
				"install the driver's libnvidia-ml.so.1, or pass it into the container",
				"%s", doctor_why(doctor, "gpu", "nvml"));
		return;
	}
	check_device_link(doctor, devices);
	check_device_memory(doctor, devices);
	check_device_clocks(doctor, devices);
	check_device_driver(doctor, devices);
	check_device_parts(doctor, devices);
}

/* --- the data: a file system may make a measurement mean something else than it seems --------- */

/* File systems on which a measurement means something else than it seems. */
static const struct {
	const char *type, *consequence, *remedy;
} file_systems[] = {
	{"tmpfs", "reads come from memory: there is no cold run, and no storage is measured",
		"put the data set on a disk"},
	{"ramfs", "reads come from memory: there is no cold run, and no storage is measured",
		"put the data set on a disk"},
	{"overlay", "reads pass the container's overlay, and the disk under it does not show",
		"mount a volume for the data set"},
	{"nfs", "the server's cache and the network are measured; eviction here does not make it cold there",
		""},
	{"nfs4",
		"the server's cache and the network are measured; eviction here does not make it cold there",
		""},
	{"9p", "the host's cache serves the reads, and does not show",
		"put the data set on a disk of this node"},
	{"virtiofs", "the host's cache serves the reads, and does not show",
		"put the data set on a disk of this node"},
	{"cifs", "the server's cache and the network are measured", ""},
	{"ceph", "the servers' caches and the network are measured", ""},
	{"lustre", "the servers' caches and the network are measured", ""},
};

static void check_file_system(struct doctor *doctor)
{
	const char *type = doctor_text(doctor, "data", "file_system");
	const char *consequence = "";
	const char *remedy = "";
	if (!type[0]) {
		doctor_find(doctor, DOCTOR_NOTE, "data",
			doctor->data_path && strstr(doctor->data_path, "://")
				? "the server's cache and the network are measured"
				: "where it lies is not checked",
			"", "%s", doctor_why(doctor, "data", "file_system"));
		return;
	}
	for (size_t i = 0; i < sizeof file_systems / sizeof *file_systems; i++)
		if (strcmp(type, file_systems[i].type) == 0) {
			consequence = file_systems[i].consequence;
			remedy = file_systems[i].remedy;
		}
	if (strncmp(type, "fuse", 4) == 0)
		consequence =
			"a user program serves the reads: its CPU and its cache are measured too";
	doctor_find(doctor, consequence[0] ? DOCTOR_NOTE : DOCTOR_OK, "data", consequence, remedy,
		"%.40s on %.80s (%.30s)", type, doctor_text(doctor, "data", "device"),
		doctor_text(doctor, "data", "options"));
}

static void check_direct_io(struct doctor *doctor)
{
	struct mount_entry mount;
	if (!doctor->data_path || proc_mount_of(doctor->data_path, &mount))
		return;
	const int code = probe_direct_io(
		access(doctor->data_path, W_OK) == 0 ? doctor->data_path : mount.point);
	if (code == 0)
		doctor_ok(doctor, "direct reads", "O_DIRECT works where the data lies");
	else
		doctor_find(doctor, DOCTOR_NOTE, "direct reads",
			"read.direct may be refused for this data set", "",
			"could not be tried: %s", strerror(-code));
}

static void check_disk(struct doctor *doctor)
{
	const char *disk = doctor_text(doctor, "data", "disk");
	if (!doctor_text(doctor, "data", "file_system")[0])
		return;
	const bool rotates = strcmp(doctor_text(doctor, "data", "rotational"), "yes") == 0;
	if (!disk[0])
		doctor_find(doctor, DOCTOR_NOTE, "disk", "queue depth and scheduler are not known",
			"", "%s", doctor_why(doctor, "data", "disk"));
	else
		doctor_find(doctor, note_unless(!rotates), "disk",
			"shuffled reads seek; virtual disks often say so wrongly", "",
			"%.60s, scheduler %.30s%s", disk, doctor_text(doctor, "data", "scheduler"),
			rotates ? ", says that it rotates" : "");
}

size_t node_checks(struct doctor_finding *findings, size_t room, const char *data_path)
{
	static void (*const checks[])(struct doctor *) = {
		check_kernel,
		check_io_uring,
		check_memlock,
		check_huge_pages,
		check_residency,
		check_drop_caches,
		check_perf,
		check_accounting,
		check_frequency,
		check_topology,
		check_limits,
		check_free_memory,
		check_load,
		check_clock,
		check_gpu,
		check_gpu_state,
		check_file_system,
		check_direct_io,
		check_disk,
	};
	struct doctor doctor = {.findings = findings, .room = room, .data_path = data_path};
	environment_capture(&doctor.facts, data_path);
	for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
		checks[i](&doctor);
	fact_list_release(&doctor.facts);
	return doctor.count;
}
