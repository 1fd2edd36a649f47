/* Processors: model, topology by hwloc, frequency control, and what this process may use of them. */
#include "harness/base/files.h"
#include "harness/measure/environment_parts.h"

#include <errno.h>
#include <hwloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIST_BYTES = 256, RANGE_BYTES = 24, CPUS_SPARE = 1024 };

static const char cpu_folder[] = "/sys/devices/system/cpu";

static const char *const flags_that_matter[] = {"sse4_2", "avx", "avx2", "fma", "avx512f",
	"avx512bw", "avx512_vnni", "avx512_bf16", "amx_tile", "hypervisor", "constant_tsc",
	"nonstop_tsc"};

static void add_flags(struct fact_list *list, const char *cpuinfo)
{
	char *flags = malloc(strlen(cpuinfo) + 1);
	if (!flags)
		return;
	if (!parse_field(cpuinfo, "flags", flags, strlen(cpuinfo) + 1)) {
		fact_missing(list, "cpu", "flags", "no 'flags' in /proc/cpuinfo");
		fact_missing(list, "cpu", "hypervisor", "no 'flags' in /proc/cpuinfo");
		free(flags);
		return;
	}
	char found[LIST_BYTES] = "";
	size_t used = 0;
	for (size_t i = 0; i < sizeof flags_that_matter / sizeof *flags_that_matter; i++)
		if (parse_has_word(flags, flags_that_matter[i]))
			used += (size_t)snprintf(found + used, sizeof found - used, "%s%s",
				used ? " " : "", flags_that_matter[i]);
	fact_text(list, "cpu", "flags", "%s", found);
	fact_text(list, "cpu", "hypervisor", "%s",
		parse_has_word(flags, "hypervisor") ? "yes: a virtual machine" : "no");
	free(flags);
}

static void add_field(
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
	char *cpuinfo = environment_text("/proc/cpuinfo");
	static const char *const names[] = {"model", "microcode", "flags", "hypervisor"};
	if (!cpuinfo) {
		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			fact_missing(list, "cpu", names[i], "/proc/cpuinfo cannot be read");
		return;
	}
	add_field(list, cpuinfo, "model name", "model");
	add_field(list, cpuinfo, "microcode", "microcode");
	add_flags(list, cpuinfo);
	free(cpuinfo);
}

static void add_cache(struct fact_list *list, hwloc_topology_t topology)
{
	const struct hwloc_obj *const l3 = hwloc_get_obj_by_type(topology, HWLOC_OBJ_L3CACHE, 0);
	if (l3 && l3->attr)
		fact_number(list, "cpu", "l3_cache", (double)l3->attr->cache.size, "B");
	else
		fact_missing(list, "cpu", "l3_cache", "not shown by the topology");
}

static void add_topology(struct fact_list *list)
{
	static const struct {
		const char *name;
		hwloc_obj_type_t type;
	} kinds[] = {{"sockets", HWLOC_OBJ_PACKAGE}, {"cores", HWLOC_OBJ_CORE},
		{"threads", HWLOC_OBJ_PU}, {"numa_nodes", HWLOC_OBJ_NUMANODE}};
	hwloc_topology_t topology;
	const bool made = hwloc_topology_init(&topology) == 0;
	const bool loaded = made && hwloc_topology_load(topology) == 0;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const int count = loaded ? hwloc_get_nbobjs_by_type(topology, kinds[i].type) : 0;
		if (count > 0)
			fact_number(list, "cpu", kinds[i].name, count, NULL);
		else
			fact_missing(
				list, "cpu", kinds[i].name, "not shown by the topology (hwloc)");
	}
	if (loaded)
		add_cache(list, topology);
	else
		fact_missing(list, "cpu", "l3_cache", "no topology (hwloc)");
	if (made)
		hwloc_topology_destroy(topology);
}

static void add_frequency(struct fact_list *list)
{
	char path[LIST_BYTES];
	(void)snprintf(path, sizeof path, "%s/cpu0/cpufreq/scaling_governor", cpu_folder);
	char line[LIST_BYTES];
	if (files_first_line(path, line, sizeof line) == 0)
		fact_text(list, "cpu", "governor", "%s", line);
	else
		fact_missing(list, "cpu", "governor",
			"no cpufreq: the clock is not under this system's control");
	uint64_t khz;
	(void)snprintf(path, sizeof path, "%s/cpu0/cpufreq/cpuinfo_max_freq", cpu_folder);
	if (files_number(path, &khz) == 0)
		fact_number(list, "cpu", "max_mhz", (double)khz / 1000, "MHz");
	else
		fact_missing(list, "cpu", "max_mhz", "no cpufreq");
}

static void add_smt(struct fact_list *list)
{
	char line[LIST_BYTES];
	char path[LIST_BYTES];
	(void)snprintf(path, sizeof path, "%s/smt/control", cpu_folder);
	if (files_first_line(path, line, sizeof line) == 0)
		fact_text(list, "cpu", "smt", "%s", line);
	else
		fact_missing(list, "cpu", "smt", "'%s' cannot be read", path);
}

/* CPU numbers as ranges, "0-3,8". */
static void format_set(const cpu_set_t *set, size_t size, size_t most, char *text, size_t room)
{
	size_t used = 0;
	text[0] = '\0';
	for (size_t cpu = 0; cpu < most && used + RANGE_BYTES < room; cpu++) {
		if (!CPU_ISSET_S(cpu, size, set))
			continue;
		size_t last = cpu;
		while (last + 1 < most && CPU_ISSET_S(last + 1, size, set))
			last++;
		used += (size_t)snprintf(text + used, room - used, "%s%zu", used ? "," : "", cpu);
		if (last > cpu)
			used += (size_t)snprintf(text + used, room - used, "-%zu", last);
		cpu = last;
	}
}

static void add_affinity(struct fact_list *list)
{
	const size_t most = (size_t)sysconf(_SC_NPROCESSORS_CONF) + CPUS_SPARE;
	cpu_set_t *set = CPU_ALLOC(most);
	const size_t size = CPU_ALLOC_SIZE(most);
	if (!set || sched_getaffinity(0, size, set) != 0) {
		const int code = set ? errno : ENOMEM;
		fact_missing(list, "cpu", "affinity", "sched_getaffinity: %s", strerror(code));
		fact_missing(list, "cpu", "allowed", "sched_getaffinity: %s", strerror(code));
	} else {
		char text[LIST_BYTES];
		format_set(set, size, most, text, sizeof text);
		fact_text(list, "cpu", "affinity", "%s", text);
		fact_number(list, "cpu", "allowed", CPU_COUNT_S(size, set), NULL);
	}
	CPU_FREE(set);
}

void environment_cpu(struct fact_list *list)
{
	add_cpuinfo(list);
	add_topology(list);
	add_smt(list);
	add_frequency(list);
	add_affinity(list);
}
