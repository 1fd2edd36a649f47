/* Facts about the node, one group after the other, each with its value or the reason why it is not known. */
#include "harness/measure/environment.h"

#include "harness/base/array.h"
#include "harness/base/buffer.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/units.h"
#include "harness/measure/data_store.h"
#include "harness/measure/dmi.h"
#include "harness/measure/mountstats.h"
#include "harness/measure/node_files.h"
#include "harness/measure/nvml.h"
#include "harness/measure/proc_text.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <gnu/libc-version.h>
#include <hwloc.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

/* --- the name of the node --------------------------------------------------------------------- */

static char given[NODE_NAME_BYTES];

int node_name_give(const char *name, struct error *err)
{
	if (strlen(name) >= sizeof given)
		return error_set(err, -EINVAL, "--node '%.20s...' is longer than %d bytes", name,
			NODE_NAME_BYTES - 1);
	(void)snprintf(given, sizeof given, "%s", name);
	return 0;
}

const char *node_name_here(char out[NODE_NAME_BYTES], const char **from)
{
	struct utsname host;
	const struct {
		const char *from, *name;
	} sources[] = {{"--node", given}, {"SLURMD_NODENAME", getenv("SLURMD_NODENAME")},
		{"NODE_NAME", getenv("NODE_NAME")},
		{FACT_NODE_HOST, uname(&host) == 0 ? host.nodename : ""}};
	out[0] = '\0';
	for (size_t i = 0; i < COUNT(sources) && !out[0]; i++) {
		(void)snprintf(out, NODE_NAME_BYTES, "%s", sources[i].name ? sources[i].name : "");
		if (from)
			*from = sources[i].from;
	}
	return out;
}

void node_name_facts(struct fact_list *list)
{
	char name[NODE_NAME_BYTES];
	const char *from;
	if (*node_name_here(name, &from)) {
		fact_text(list, "node", "name", "%s", name);
		fact_text(list, "node", "name_from", "%s", from);
	} else {
		fact_missing(list, "node", "name", "the host has none");
		fact_missing(list, "node", "name_from", "the host has none");
	}
}

/* --- facts about it --------------------------------------------------------------------------- */

enum { LINE_BYTES = 512, LIST_BYTES = 256, CPUS_SPARE = 1024, FACT_NAME_BYTES = 48 };

static void add_line_fact(
	struct fact_list *list, const char *group, const char *name, const char *path)
{
	char line[LINE_BYTES];
	const int code = node_line(line, sizeof line, "%s", path);
	if (code == -ENODATA)
		fact_missing(list, group, name, "'%s' is empty", path);
	else if (code)
		fact_missing(list, group, name, "'%s': %s", path, strerror(-code));
	else
		fact_text(list, group, name, "%s", line);
}

/* The same where the reason is known beforehand. */
static void add_line_or(struct fact_list *list, const char *group, const char *name,
	const char *path, const char *why)
{
	char line[LINE_BYTES];
	if (files_first_line(path, line, sizeof line) == 0)
		fact_text(list, group, name, "%s", line);
	else
		fact_missing(list, group, name, "%s", why);
}

/* Each of these is missing for one reason. */
__attribute__((format(printf, 5, 6))) static void miss_all(struct fact_list *list,
	const char *group, const char *const *names, size_t count, const char *why, ...)
{
	char text[LINE_BYTES];
	va_list args;
	va_start(args, why);
	(void)vsnprintf(text, sizeof text, why, args);
	va_end(args);
	for (size_t i = 0; i < count; i++)
		fact_missing(list, group, names[i], "%s", text);
}

static void add_build(struct fact_list *list)
{
	fact_text(list, "build", "mlbench", "%s", MLBENCH_VERSION);
#if defined(__clang__)
	fact_text(list, "build", "compiler", "clang %s", __clang_version__);
#else
	fact_text(list, "build", "compiler", "gcc %s", __VERSION__);
#endif
	fact_text(list, "build", "libc", "glibc %s", gnu_get_libc_version());
}

/* --- processors: model, topology, frequency control, and what this process may use of them ---- */

#define CPU_FOLDER "/sys/devices/system/cpu"

static const char *const flags_that_matter[] = {"sse4_2", "avx", "avx2", "fma", "avx512f",
	"avx512bw", "avx512_vnni", "avx512_bf16", "amx_tile", "hypervisor", "constant_tsc",
	"nonstop_tsc"};

static void add_cpu_flags(struct fact_list *list, const char *cpuinfo)
{
	static const char *const names[] = {"flags", "hypervisor"};
	char *flags = malloc(strlen(cpuinfo) + 1);
	if (!flags)
		return;
	if (!parse_field(cpuinfo, "flags", flags, strlen(cpuinfo) + 1)) {
		miss_all(list, "cpu", names, COUNT(names), "no 'flags' in /proc/cpuinfo");
		free(flags);
		return;
	}
	char found[LIST_BYTES] = "";
	size_t used = 0;
	for (size_t i = 0; i < COUNT(flags_that_matter); i++)
		if (parse_has_word(flags, flags_that_matter[i]))
			used += (size_t)snprintf(found + used, sizeof found - used, "%s%s",
				used ? " " : "", flags_that_matter[i]);
	fact_text(list, "cpu", "flags", "%s", found);
	fact_text(list, "cpu", "hypervisor", "%s",
		parse_has_word(flags, "hypervisor") ? "yes: a virtual machine" : "no");
	free(flags);
}

static void add_cpu_field(
	struct fact_list *list, const char *cpuinfo, const char *key, const char *name)
{
	char value[LIST_BYTES];
	if (parse_field(cpuinfo, key, value, sizeof value))
		fact_text(list, "cpu", name, "%s", value);
	else
		fact_missing(list, "cpu", name, "no '%s' in /proc/cpuinfo", key);
}

static void add_cpuinfo(struct fact_list *list)
{
	char *cpuinfo = proc_text("/proc/cpuinfo");
	static const char *const names[] = {"model", "microcode", "flags", "hypervisor"};
	if (!cpuinfo) {
		miss_all(list, "cpu", names, COUNT(names), "/proc/cpuinfo cannot be read");
		return;
	}
	add_cpu_field(list, cpuinfo, "model name", "model");
	add_cpu_field(list, cpuinfo, "microcode", "microcode");
	add_cpu_flags(list, cpuinfo);
	free(cpuinfo);
}

static void add_cpu_cache(struct fact_list *list, hwloc_topology_t topology)
{
	const struct hwloc_obj *const l3 = hwloc_get_obj_by_type(topology, HWLOC_OBJ_L3CACHE, 0);
	if (l3 && l3->attr)
		fact_number(list, "cpu", "l3_cache", (double)l3->attr->cache.size, "B");
	else
		fact_missing(list, "cpu", "l3_cache", "not shown by the topology");
}

static void add_cpu_topology(struct fact_list *list)
{
	static const struct {
		const char *name;
		hwloc_obj_type_t type;
	} kinds[] = {{"sockets", HWLOC_OBJ_PACKAGE}, {"cores", HWLOC_OBJ_CORE},
		{"threads", HWLOC_OBJ_PU}, {"numa_nodes", HWLOC_OBJ_NUMANODE}};
	hwloc_topology_t topology;
	const bool made = hwloc_topology_init(&topology) == 0;
	const bool loaded = made && hwloc_topology_load(topology) == 0;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		const int count = loaded ? hwloc_get_nbobjs_by_type(topology, kinds[i].type) : 0;
		if (count > 0)
			fact_number(list, "cpu", kinds[i].name, count, NULL);
		else
			fact_missing(
				list, "cpu", kinds[i].name, "not shown by the topology (hwloc)");
	}
	if (loaded)
		add_cpu_cache(list, topology);
	else
		fact_missing(list, "cpu", "l3_cache", "no topology (hwloc)");
	if (made)
		hwloc_topology_destroy(topology);
}

static void add_cpu_frequency(struct fact_list *list)
{
	uint64_t khz;
	add_line_or(list, "cpu", "smt", CPU_FOLDER "/smt/control",
		"'" CPU_FOLDER "/smt/control' cannot be read");
	add_line_or(list, "cpu", "governor", CPU_FOLDER "/cpu0/cpufreq/scaling_governor",
		"no cpufreq: the clock is not under this system's control");
	if (files_number(CPU_FOLDER "/cpu0/cpufreq/cpuinfo_max_freq", &khz) == 0)
		fact_number(list, "cpu", "max_mhz", (double)khz / 1000, "MHz");
	else
		fact_missing(list, "cpu", "max_mhz", "no cpufreq");
}

static void add_cpu_affinity(struct fact_list *list)
{
	static const char *const names[] = {"affinity", "allowed"};
	const size_t most = (size_t)sysconf(_SC_NPROCESSORS_CONF) + CPUS_SPARE;
	cpu_set_t *set = CPU_ALLOC(most);
	const size_t size = CPU_ALLOC_SIZE(most);
	if (!set || sched_getaffinity(0, size, set) != 0) {
		miss_all(list, "cpu", names, COUNT(names), "sched_getaffinity: %s",
			strerror(set ? errno : ENOMEM));
	} else {
		char text[LIST_BYTES];
		format_cpu_set(set, size, most, text, sizeof text);
		fact_text(list, "cpu", "affinity", "%s", text);
		fact_number(list, "cpu", "allowed", CPU_COUNT_S(size, set), NULL);
	}
	CPU_FREE(set);
}

static void add_cpu(struct fact_list *list)
{
	add_cpuinfo(list);
	add_cpu_topology(list);
	add_cpu_frequency(list);
	add_cpu_affinity(list);
}

/* --- memory: how much, its pages, and how much may be locked ---------------------------------- */

static const struct {
	const char *key, *name, *unit;
} memory_fields[] = {
	{"MemTotal", "total", "B"},
	{"MemAvailable", "available", "B"},
	{"SwapTotal", "swap", "B"},
	{"HugePages_Total", "huge_pages", NULL},
	{"HugePages_Free", "huge_pages_free", NULL},
	{"Hugepagesize", "huge_page_size", "B"},
};

static void add_meminfo(struct fact_list *list)
{
	char *meminfo = proc_text("/proc/meminfo");
	for (size_t i = 0; i < COUNT(memory_fields); i++) {
		double value;
		if (meminfo && parse_field_number(meminfo, memory_fields[i].key, &value))
			fact_number(list, "memory", memory_fields[i].name, value,
				memory_fields[i].unit);
		else
			fact_missing(list, "memory", memory_fields[i].name,
				"no '%s' in /proc/meminfo", memory_fields[i].key);
	}
	free(meminfo);
}

static void add_transparent(struct fact_list *list)
{
	char line[128];
	char chosen[64];
	static const char path[] = "/sys/kernel/mm/transparent_hugepage/enabled";
	const int code = files_first_line(path, line, sizeof line);
	if (code) {
		fact_missing(list, "memory", "transparent_huge_pages", "'%s': %s", path,
			strerror(-code));
		return;
	}
	parse_bracketed(line, chosen, sizeof chosen);
	fact_text(list, "memory", "transparent_huge_pages", "%s", chosen);
}

static void add_memlock(struct fact_list *list)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
		fact_missing(list, "memory", "memlock_limit", "getrlimit: %s", strerror(errno));
	else if (limit.rlim_cur == RLIM_INFINITY)
		fact_text(list, "memory", "memlock_limit", "unlimited");
	else
		fact_number(list, "memory", "memlock_limit", (double)limit.rlim_cur, "B");
}

static void add_memory_facts(struct fact_list *list)
{
	add_meminfo(list);
	add_transparent(list);
	add_memlock(list);
	fact_number(list, "memory", "page_size", (double)sysconf(_SC_PAGESIZE), "B");
}

/* --- the board: who made it, its serial numbers (which only root may read), its memory modules -- */

/* "8 x 64 GiB DDR5"; those that differ follow behind a comma. */
static void add_memory_modules(struct fact_list *list)
{
	struct dmi_module *modules = calloc(DMI_MODULES_MAX, sizeof *modules);
	struct buffer text = {0};
	size_t count = 0;
	const int code = modules ? dmi_modules_read("", modules, DMI_MODULES_MAX, &count) : -ENOMEM;
	for (size_t first = 0; first < count;) {
		const struct dmi_module *module = &modules[first];
		size_t same = 1;
		char size[UNITS_BYTES];
		while (first + same < count && modules[first + same].bytes == module->bytes &&
			strcmp(modules[first + same].type, module->type) == 0)
			same++;
		if (module->bytes > 0)
			buffer_format(&text, "%s%zu x %s %s", text.size ? ", " : "", same,
				units_format_size(module->bytes, size), module->type);
		first += same;
	}
	if (text.data)
		fact_text(list, "memory", "modules", "%s", text.data);
	else
		fact_missing(list, "memory", "modules", "no DMI table tells of any: %s",
			code ? strerror(-code) : "none in place");
	buffer_release(&text);
	free(modules);
}

static void add_board(struct fact_list *list)
{
	static const struct {
		const char *name, *path;
	} lines[] = {
		{"vendor", "/sys/class/dmi/id/sys_vendor"},
		{"product", "/sys/class/dmi/id/product_name"},
		{"serial", "/sys/class/dmi/id/product_serial"},
		{"name", "/sys/class/dmi/id/board_name"},
		{"board_serial", "/sys/class/dmi/id/board_serial"},
		{"bios_version", "/sys/class/dmi/id/bios_version"},
		{"bios_date", "/sys/class/dmi/id/bios_date"},
	};
	for (size_t i = 0; i < COUNT(lines); i++)
		add_line_fact(list, "board", lines[i].name, lines[i].path);
	add_memory_modules(list);
}

/* --- control groups: their limits, and the container around them ------------------------------ */

static void add_container(struct fact_list *list)
{
	char line[LINE_BYTES];
	if (files_first_line("/run/systemd/container", line, sizeof line) == 0)
		fact_text(list, "cgroup", "container", "%s", line);
	else if (access("/.dockerenv", F_OK) == 0)
		fact_text(list, "cgroup", "container", "docker");
	else if (access("/run/.containerenv", F_OK) == 0)
		fact_text(list, "cgroup", "container", "podman");
	else if (getenv("KUBERNETES_SERVICE_HOST"))
		fact_text(list, "cgroup", "container", "kubernetes");
	else
		fact_text(list, "cgroup", "container", "none that shows");
}

/* Of the quota that leaves the least. */
static void add_cpu_limit(struct fact_list *list)
{
	static const char *const names[] = {"cpu_limit", "cpu_limit_group", "cpu_limit_period"};
	struct cpu_quotas quotas;
	cgroup_cpu_quotas(&quotas);
	const struct cpu_quota *least = cgroup_tightest(&quotas);
	if (least) {
		fact_number(list, "cgroup", names[0], least->cores, "cores");
		fact_text(list, "cgroup", names[1], "%s", least->group);
		fact_number(list, "cgroup", names[2], least->period_s, "s");
	}
	for (size_t i = 0; i < COUNT(names) && !least; i++)
		if (quotas.unknown[0])
			fact_missing(list, "cgroup", names[i], "%s", quotas.unknown);
		else
			fact_text(list, "cgroup", names[i], "none");
}

/* A limit and the group that sets it; above memory.high a group keeps running, without its page cache. */
static void add_memory_limit(struct fact_list *list, const char *name, const char *group_name,
	double bytes, const char *group)
{
	if (isinf(bytes)) {
		fact_text(list, "cgroup", name, "none");
		fact_text(list, "cgroup", group_name, "none");
		return;
	}
	fact_number(list, "cgroup", name, bytes, "B");
	fact_text(list, "cgroup", group_name, "%s", group);
}

static void add_cgroup(struct fact_list *list)
{
	static const char *const names[] = {"version", "memory_limit", "memory_limit_group",
		"memory_high", "memory_high_group"};
	const struct cgroup_limits limits = cgroup_limits_now();
	if (limits.version == 0) {
		miss_all(list, "cgroup", names, COUNT(names), "no control group is mounted");
	} else {
		fact_number(list, "cgroup", names[0], limits.version, NULL);
		add_memory_limit(
			list, names[1], names[2], limits.memory_bytes, limits.memory_group);
		add_memory_limit(list, names[3], names[4], limits.memory_high_bytes,
			limits.memory_high_group);
	}
	add_cpu_limit(list);
	add_container(list);
}

/* --- the kernel: its release and the switches that decide what can be measured ---------------- */

static void add_kernel(struct fact_list *list)
{
	struct utsname name;
	if (uname(&name) == 0) {
		fact_text(list, "kernel", "nodename", "%s", name.nodename);
		fact_text(list, "kernel", "release", "%s", name.release);
		fact_text(list, "kernel", "machine", "%s", name.machine);
	} else {
		fact_missing(list, "kernel", "release", "uname: %s", strerror(errno));
		fact_missing(list, "kernel", "machine", "uname: %s", strerror(errno));
	}
	add_line_fact(list, "kernel", "clocksource",
		"/sys/devices/system/clocksource/clocksource0/current_clocksource");
	add_line_fact(list, "kernel", "io_uring_disabled", "/proc/sys/kernel/io_uring_disabled");
	add_line_fact(
		list, "kernel", "perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid");
	add_line_fact(list, "kernel", "numa_balancing", "/proc/sys/kernel/numa_balancing");
	fact_text(list, "kernel", "pressure", "%s",
		access("/proc/pressure/cpu", R_OK) == 0 ? "yes" : "no /proc/pressure");
	const int slack = prctl(PR_GET_TIMERSLACK);
	if (slack >= 0)
		fact_number(list, "kernel", "timer_slack", slack, "ns");
	else
		fact_missing(list, "kernel", "timer_slack", "prctl: %s", strerror(errno));
}

/* --- where the data lies: mount, file system, and the disk under it as far as it shows -------- */

static void miss_disk(struct fact_list *list, const char *why)
{
	static const char *const names[] = {"disk", "scheduler", "rotational", "disk_model",
		"disk_serial", "disk_firmware", "read_ahead"};
	miss_all(list, "data", names, COUNT(names), "%s", why);
}

static void add_disk_scheduler(struct fact_list *list, const char *folder)
{
	char path[PATH_MAX + 64];
	char line[128];
	char chosen[128];
	(void)snprintf(path, sizeof path, "%s/queue/scheduler", folder);
	if (files_first_line(path, line, sizeof line)) {
		fact_missing(list, "data", "scheduler", "'%s' cannot be read", path);
		return;
	}
	parse_bracketed(line, chosen, sizeof chosen);
	fact_text(list, "data", "scheduler", "%s", chosen);
}

static void add_disk_queue(struct fact_list *list, const char *folder)
{
	char path[PATH_MAX + 64];
	uint64_t value;
	(void)snprintf(path, sizeof path, "%s/queue/rotational", folder);
	if (files_number(path, &value) == 0)
		fact_text(list, "data", "rotational", "%s", value ? "yes" : "no");
	else
		fact_missing(list, "data", "rotational", "'%s' cannot be read", path);
	(void)snprintf(path, sizeof path, "%s/queue/read_ahead_kb", folder);
	if (files_number(path, &value) == 0)
		fact_number(list, "data", "read_ahead", (double)value * 1024, "B");
	else
		fact_missing(list, "data", "read_ahead", "'%s' cannot be read", path);
	(void)snprintf(path, sizeof path, "%s/device/model", folder);
	add_line_fact(list, "data", "disk_model", path);
	(void)snprintf(path, sizeof path, "%s/device/serial", folder);
	add_line_fact(list, "data", "disk_serial", path);
	(void)snprintf(path, sizeof path, "%s/device/firmware_rev", folder);
	add_line_fact(list, "data", "disk_firmware", path);
}

static void add_disk(struct fact_list *list, const struct mount_entry *mount)
{
	struct block_disk disk;
	block_disk_find(mount, &disk);
	if (!disk.name[0]) {
		miss_disk(list, disk.why);
		return;
	}
	fact_text(list, "data", "disk", "%s", disk.name);
	add_disk_scheduler(list, disk.folder);
	add_disk_queue(list, disk.folder);
}

static void add_free_space(struct fact_list *list, const char *point)
{
	struct statvfs fs;
	if (statvfs(point, &fs) == 0)
		fact_number(list, "data", "free", (double)fs.f_bavail * (double)fs.f_frsize, "B");
	else
		fact_missing(list, "data", "free", "statvfs '%s': %s", point, strerror(errno));
}

/* What the options of the mount do not say, or not alone. */
static void add_nfs(struct fact_list *list, const char *point)
{
	struct mountstats stats;
	mountstats_read(MOUNTSTATS_PATH, point, &stats);
	if (stats.why[0]) {
		fact_missing(list, "data", "nfs", "%s", stats.why);
		return;
	}
	fact_text(list, "data", "nfs", "%s of %s", stats.protocol, stats.server);
	fact_number(list, "data", "nfs_connections", stats.connections, NULL);
	if (stats.request_bytes > 0)
		fact_number(list, "data", "nfs_request", (double)stats.request_bytes, "B");
	else
		fact_missing(list, "data", "nfs_request", "the mount's options name no rsize");
}

static void add_storage(struct fact_list *list, const char *data_path)
{
	static const char *const names[] = {
		"path", "mount", "file_system", "options", "super_options", "device", "free"};
	struct mount_entry mount;
	const int code = data_path ? proc_mount_of(data_path, &mount) : 0;
	if (!data_path || code) {
		miss_all(list, "data", names, COUNT(names), "%s",
			data_path ? proc_mount_why(code) : "no data set is configured");
		miss_disk(list, data_path ? "the data's mount is unknown"
					  : "the data's mount is not configured");
		return;
	}
	fact_text(list, "data", "path", "%s", data_path);
	fact_text(list, "data", "mount", "%s", mount.point);
	fact_text(list, "data", "file_system", "%s", mount.type);
	fact_text(list, "data", "options", "%s", mount.options);
	fact_text(list, "data", "super_options", "%s", mount.super_options);
	fact_text(list, "data", "device", "%s", mount.source);
	add_free_space(list, mount.point);
	if (strcmp(mount.type, "nfs") == 0 || strcmp(mount.type, "nfs4") == 0)
		add_nfs(list, mount.point);
	add_disk(list, &mount);
}

/* --- GPUs as the kernel and the driver's files show them; nothing is initialised -------------- */

static void add_gpu_models(struct fact_list *list)
{
	glob_t found;
	size_t count = 0;
	if (glob("/proc/driver/nvidia/gpus/*/information", 0, NULL, &found) == 0) {
		for (; count < found.gl_pathc; count++) {
			char name[32];
			char model[128] = "unknown";
			char *text = proc_text(found.gl_pathv[count]);
			if (text)
				(void)parse_field(text, "Model", model, sizeof model);
			free(text);
			(void)snprintf(name, sizeof name, "model_%zu", count);
			fact_text(list, "gpu", name, "%s", model);
		}
		globfree(&found);
	}
	if (count > 0)
		fact_number(list, "gpu", "devices", (double)count, NULL);
	else
		fact_missing(list, "gpu", "devices",
			"no NVIDIA device: /proc/driver/nvidia/gpus is not there");
}

static void add_gpu_library(struct fact_list *list, const char *name, const char *library)
{
	void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
	if (!handle) {
		fact_missing(list, "gpu", name, "%s", dlerror());
		return;
	}
	fact_text(list, "gpu", name, "%s opens", library);
	(void)dlclose(handle);
}

static void add_gpu(struct fact_list *list)
{
	add_gpu_models(list);
	add_line_fact(list, "gpu", "driver", "/proc/driver/nvidia/version");
	add_gpu_library(list, "libcuda", "libcuda.so.1");
	add_gpu_library(list, "libnvidia_ml", "libnvidia-ml.so.1");
}

/* --- GPUs by NVML: limits, links and modes ---------------------------------------------------- */

static const struct gpu_fact {
	enum nvml_quantity quantity;
	const char *name;
} gpu_facts[] = {
	{NVML_MEMORY_TOTAL, "memory"},
	{NVML_SM_CLOCK_MAX, "sm_clock_max"},
	{NVML_MEMORY_CLOCK_MAX, "memory_clock_max"},
	{NVML_SM_CLOCK, "sm_clock_now"},
	{NVML_TEMPERATURE, "temperature_now"},
	{NVML_THROTTLES, "throttles_now"},
	{NVML_POWER_LIMIT, "power_limit"},
	{NVML_POWER_LIMIT_MAX, "power_limit_max"},
	{NVML_PCIE_GENERATION, "pcie_generation"},
	{NVML_PCIE_GENERATION_MAX, "pcie_generation_max"},
	{NVML_PCIE_WIDTH, "pcie_lanes"},
	{NVML_PCIE_WIDTH_MAX, "pcie_lanes_max"},
	{NVML_PERSISTENCE, "persistence"},
	{NVML_ECC_MODE, "ecc_mode"},
	{NVML_ECC_CORRECTED, "ecc_corrected"},
	{NVML_ECC_UNCORRECTED, "ecc_uncorrected"},
	{NVML_MIG_MODE, "mig_mode"},
};

static bool is_switch(enum nvml_quantity quantity)
{
	return quantity == NVML_PERSISTENCE || quantity == NVML_ECC_MODE ||
	       quantity == NVML_MIG_MODE;
}

static void add_gpu_value(struct fact_list *list, const char *name, enum nvml_quantity quantity,
	const struct nvml_value *value)
{
	char reasons[128];
	if (value->code) {
		fact_missing(list, "gpu", name, "%s", nvml_code_words(value->code));
	} else if (is_switch(quantity)) {
		fact_text(list, "gpu", name, "%s", value->number > 0 ? "on" : "off");
	} else if (quantity == NVML_THROTTLES) {
		nvml_throttle_names(value->number, reasons, sizeof reasons);
		fact_text(list, "gpu", name, "%s", reasons[0] ? reasons : "none");
	} else {
		const char *unit = nvml_quantity_unit(quantity);
		fact_number(list, "gpu", name, value->number, unit[0] ? unit : NULL);
	}
}

static void add_gpu_text(struct fact_list *list, const char *stem, size_t index, const char *text)
{
	char name[FACT_NAME_BYTES];
	(void)snprintf(name, sizeof name, "%s_%zu", stem, index);
	if (*text)
		fact_text(list, "gpu", name, "%s", text);
	else
		fact_missing(list, "gpu", name, "the driver does not tell");
}

static void add_gpu_device(
	struct fact_list *list, const struct nvml_device_facts *device, size_t index)
{
	char name[FACT_NAME_BYTES];
	(void)snprintf(name, sizeof name, "name_%zu", index);
	fact_text(list, "gpu", name, "%s", device->name);
	(void)snprintf(name, sizeof name, "bus_%zu", index);
	fact_text(list, "gpu", name, "%s", device->bus);
	add_gpu_text(list, "serial", index, device->serial);
	add_gpu_text(list, "vbios", index, device->vbios);
	for (size_t i = 0; i < COUNT(gpu_facts); i++) {
		const enum nvml_quantity quantity = gpu_facts[i].quantity;
		(void)snprintf(name, sizeof name, "%s_%zu", gpu_facts[i].name, index);
		add_gpu_value(list, name, quantity, &device->values[quantity]);
	}
}

void environment_nvml(struct fact_list *list)
{
	struct error err;
	struct nvml_node *node = calloc(1, sizeof *node);
	if (!node) {
		list->failed = true;
		return;
	}
	if (nvml_node_read(node, NVML_PATIENCE_S * NS_PER_S, &err)) {
		fact_missing(list, "gpu", "nvml", "%s", err.text);
	} else {
		fact_number(list, "gpu", "nvml", (double)node->count, NULL);
		if (node->driver[0])
			fact_text(list, "gpu", "driver_version", "%s", node->driver);
		for (size_t i = 0; i < node->count; i++)
			add_gpu_device(list, &node->devices[i], i);
	}
	free(node);
}

/* --- what else the node is doing at this moment ----------------------------------------------- */

static void add_loadavg(struct fact_list *list)
{
	char line[128];
	double one;
	double five;
	if (files_first_line("/proc/loadavg", line, sizeof line) == 0 &&
		sscanf(line, "%lf %lf", &one, &five) == 2) {
		fact_number(list, "load", "average_1min", one, NULL);
		fact_number(list, "load", "average_5min", five, NULL);
		return;
	}
	fact_missing(list, "load", "average_1min", "/proc/loadavg cannot be read");
	fact_missing(list, "load", "average_5min", "/proc/loadavg cannot be read");
}

static void add_steal(struct fact_list *list)
{
	struct cpu_ticks ticks;
	if (proc_cpu_ticks("", &ticks) && ticks.busy + ticks.idle + ticks.steal > 0)
		fact_number(list, "load", "steal_since_boot",
			ticks.steal / (ticks.busy + ticks.idle + ticks.steal), "share");
	else
		fact_missing(list, "load", "steal_since_boot", "/proc/stat cannot be read");
}

static void add_load(struct fact_list *list)
{
	add_loadavg(list);
	add_steal(list);
	add_line_fact(list, "load", "pressure_cpu", "/proc/pressure/cpu");
	add_line_fact(list, "load", "pressure_memory", "/proc/pressure/memory");
	add_line_fact(list, "load", "pressure_io", "/proc/pressure/io");
}

void environment_capture(struct fact_list *list, const char *data_path)
{
	add_build(list);
	node_name_facts(list);
	add_cpu(list);
	add_memory_facts(list);
	add_board(list);
	add_cgroup(list);
	add_kernel(list);
	add_storage(list, data_path);
	add_gpu(list);
	environment_nvml(list);
	add_load(list);
}
