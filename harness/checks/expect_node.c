/* The inventory of the node itself: processors, NUMA nodes, memory, and what this process may use of them. */
#include "harness/checks/expect.h"

#include "harness/base/array.h"
#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/measure/data_store.h"
#include "harness/measure/dmi.h"
#include "harness/measure/node_files.h"
#include "harness/measure/proc_text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>

/* --- processors ------------------------------------------------------------------------------- */

static void add_expect_cpu(void *context, const char *path)
{
	struct expect *e = context;
	char siblings[128];
	double online = 1;
	if (e->cpu_count == e->cpu_room)
		return;
	struct expect_cpu *cpu = &e->cpus[e->cpu_count++];
	*cpu = (struct expect_cpu){.socket = NAN};
	cpu->number = (unsigned)strtoul(node_base(path) + strlen("cpu"), NULL, 10);
	(void)node_number(&online, "%s/online", path); /* the first has no such file */
	cpu->online = online > 0;
	(void)node_number(&cpu->socket, "%s/topology/physical_package_id", path);
	cpu->is_core = cpu->online &&
		       node_line(siblings, sizeof siblings, "%s/topology/thread_siblings_list",
			       path) == 0 &&
		       strtoul(siblings, NULL, 10) == cpu->number;
}

void find_expect_cpus(struct expect *e)
{
	enum { CPUS_MAX = 8192 };
	e->cpus = calloc(CPUS_MAX, sizeof *e->cpus);
	e->cpu_room = e->cpus ? CPUS_MAX : 0;
	(void)node_each(add_expect_cpu, e, "%s" EXPECT_CPUS "/cpu[0-9]*", e->root);
}

static bool socket_seen(const struct expect *e, size_t count, double socket)
{
	for (size_t i = 0; i < count; i++)
		if (e->cpus[i].online && e->cpus[i].socket == socket)
			return true;
	return false;
}

double expect_threads(const struct expect *e)
{
	double threads = 0;
	for (size_t i = 0; i < e->cpu_count; i++)
		threads += e->cpus[i].online;
	return threads;
}

static void tell_topology(struct expect *e)
{
	double cores = 0;
	double sockets = 0;
	if (e->cpu_count == 0) {
		expect_rest_missing(e, "cpu.", "'" EXPECT_CPUS "' shows no CPU");
		return;
	}
	const double threads = expect_threads(e);
	for (size_t i = 0; i < e->cpu_count; i++) {
		cores += e->cpus[i].is_core;
		sockets += e->cpus[i].online && !isnan(e->cpus[i].socket) &&
			   !socket_seen(e, i, e->cpus[i].socket);
	}
	expect_number(e, "cpu.threads", "", threads);
	expect_number(e, "cpu.offline", "", (double)e->cpu_count - threads);
	if (cores > 0)
		expect_number(e, "cpu.cores", "", cores);
	else
		expect_missing(e, "cpu.cores", "", "the CPUs do not show their topology");
	if (sockets > 0)
		expect_number(e, "cpu.sockets", "", sockets);
	else
		expect_missing(e, "cpu.sockets", "", "the CPUs do not show their topology");
}

/* A file that each CPU has: told once where all say the same, else for each value with the CPUs that have it. */
struct per_cpu {
	const char *figure, *file;
	double scale; /* of a number; 0: a text */
	const char *why;
};

static const struct per_cpu per_cpu_files[] = {
	{"cpu.governor", "cpufreq/scaling_governor", 0,
		"no cpufreq: the clock is not under this system's control"},
	{"cpu.mhz_max", "cpufreq/cpuinfo_max_freq", 1e-3,
		"no cpufreq: the clock is not under this system's control"},
	{"cpu.mhz_limit", "cpufreq/scaling_max_freq", 1e-3,
		"no cpufreq: the clock is not under this system's control"},
	{"cpu.microcode", "microcode/version", 0, NULL}, /* told from /proc/cpuinfo otherwise */
};

enum { CPU_VALUE_BYTES = 48, CPU_VALUES_MAX = 16 };

struct cpu_value {
	char text[CPU_VALUE_BYTES];
	cpu_set_t *cpus;
};

struct cpu_values {
	struct cpu_value of[CPU_VALUES_MAX];
	size_t count, set_bytes, most;
};

static void add_cpu_value(struct cpu_values *values, const char *text, unsigned cpu)
{
	size_t i = 0;
	while (i < values->count && strcmp(values->of[i].text, text) != 0)
		i++;
	if (i == CPU_VALUES_MAX || cpu >= values->most)
		return;
	struct cpu_value *value = &values->of[i];
	if (i == values->count) {
		value->cpus = CPU_ALLOC(values->most);
		if (!value->cpus)
			return;
		CPU_ZERO_S(values->set_bytes, value->cpus);
		(void)snprintf(value->text, sizeof value->text, "%s", text);
		values->count++;
	}
	CPU_SET_S(cpu, values->set_bytes, value->cpus);
}

static void tell_cpu_values(struct expect *e, const struct per_cpu *what, struct cpu_values *values)
{
	for (size_t i = 0; i < values->count; i++) {
		char place[EXPECT_PLACE_BYTES] = "";
		const size_t used = values->count > 1 ? strlen("CPUs ") : 0;
		double number;
		if (used) {
			(void)snprintf(place, sizeof place, "CPUs ");
			format_cpu_set(values->of[i].cpus, values->set_bytes, values->most,
				place + used, sizeof place - used);
		}
		if (what->scale == 0)
			expect_text(e, what->figure, place, values->of[i].text);
		else if (node_number_of(values->of[i].text, &number) == 0)
			expect_number(e, what->figure, place, number * what->scale);
		else
			expect_missing(
				e, what->figure, place, "'%s' is no number", values->of[i].text);
		CPU_FREE(values->of[i].cpus);
	}
}

static void tell_per_cpu(struct expect *e, const struct per_cpu *what)
{
	struct cpu_values values = {.most = 1};
	for (size_t i = 0; i < e->cpu_count; i++)
		if (e->cpus[i].number >= values.most && e->cpus[i].number < 1U << 20)
			values.most = e->cpus[i].number + 1;
	values.set_bytes = CPU_ALLOC_SIZE(values.most);
	for (size_t i = 0; i < e->cpu_count; i++) {
		char text[CPU_VALUE_BYTES];
		if (e->cpus[i].online && node_line(text, sizeof text, "%s" EXPECT_CPUS "/cpu%u/%s",
						 e->root, e->cpus[i].number, what->file) == 0)
			add_cpu_value(&values, text, e->cpus[i].number);
	}
	if (values.count == 0 && what->why)
		expect_missing(e, what->figure, "", "%s", what->why);
	tell_cpu_values(e, what, &values);
}

static void tell_turbo(struct expect *e)
{
	double value;
	if (node_number(&value, "%s" EXPECT_CPUS "/intel_pstate/no_turbo", e->root) == 0)
		expect_switch(e, "cpu.turbo", "", value == 0);
	else if (node_number(&value, "%s" EXPECT_CPUS "/cpufreq/boost", e->root) == 0)
		expect_switch(e, "cpu.turbo", "", value > 0);
	else
		expect_missing(e, "cpu.turbo", "",
			"neither intel_pstate/no_turbo nor cpufreq/boost is in '" EXPECT_CPUS "'");
}

static void tell_cpuinfo(struct expect *e)
{
	static const struct {
		const char *figure, *key;
	} fields[] = {{"cpu.model", "model name"}, {"cpu.microcode", "microcode"},
		{"cpu.flags", "flags"}};
	char value[EXPECT_TEXT_BYTES];
	char *cpuinfo = node_text("%s/proc/cpuinfo", e->root);
	for (size_t i = 0; i < COUNT(fields); i++) {
		if (expect_told(e, fields[i].figure))
			continue;
		if (!cpuinfo || !parse_field(cpuinfo, fields[i].key, value, sizeof value)) {
			expect_missing(
				e, fields[i].figure, "", "no '%s' in /proc/cpuinfo", fields[i].key);
			continue;
		}
		utf8_make_plain(value, '?');
		expect_text(e, fields[i].figure, "", value);
		if (strcmp(fields[i].key, "flags") == 0)
			expect_text(e, "cpu.virtual", "",
				parse_has_word(value, "hypervisor") ? "yes" : "no");
	}
	free(cpuinfo);
}

static void tell_vulnerability(void *context, const char *path)
{
	char text[NODE_LINE_BYTES];
	if (node_line(text, sizeof text, "%s", path) == 0)
		expect_text(context, "cpu.mitigation", node_base(path), text);
}

/* Since the node started, of all CPUs; NAN: not counted. */
struct throttle_sum {
	double events;
};

static void add_throttle_count(void *context, const char *path)
{
	struct throttle_sum *sum = context;
	double count;
	if (node_number(&count, "%s", path) == 0)
		sum->events = (isnan(sum->events) ? 0 : sum->events) + count;
}

double throttle_events(const struct expect *e)
{
	struct throttle_sum sum = {.events = NAN};
	(void)node_each(add_throttle_count, &sum,
		"%s" EXPECT_CPUS "/cpu[0-9]*/thermal_throttle/core_throttle_count", e->root);
	/* The package's is the same file on each of its CPUs, which the sum then counts as often. */
	(void)node_each(add_throttle_count, &sum,
		"%s" EXPECT_CPUS "/cpu[0-9]*/thermal_throttle/package_throttle_count", e->root);
	return sum.events;
}

void tell_cpus(struct expect *e)
{
	for (size_t i = 0; i < COUNT(per_cpu_files); i++)
		if (expect_wants(e, per_cpu_files[i].figure, NULL))
			tell_per_cpu(e, &per_cpu_files[i]);
	tell_turbo(e);
	tell_cpuinfo(e);
	if (node_each(tell_vulnerability, e, "%s" EXPECT_CPUS "/vulnerabilities/*", e->root) == 0)
		expect_missing(
			e, "cpu.mitigation", "", "'" EXPECT_CPUS "/vulnerabilities' is not there");
	if (isnan(throttle_events(e)))
		expect_missing(e, "cpu.throttle_count", "", NO_THROTTLE_COUNTS);
	else
		expect_number(e, "cpu.throttle_count", "", throttle_events(e));
	tell_topology(e);
}

/* --- NUMA nodes ------------------------------------------------------------------------------- */

static void tell_numa_memory(struct expect *e, const char *place, const char *path)
{
	char *text = node_text("%s/meminfo", path);
	const char *at = text ? strstr(text, "MemTotal:") : NULL;
	double bytes;
	if (at && parse_field_number(at, "MemTotal", &bytes))
		expect_number(e, "memory.numa", place, bytes);
	else
		expect_missing(e, "memory.numa", place, "its meminfo has no MemTotal");
	free(text);
}

static void tell_numa_node(void *context, const char *path)
{
	struct expect *e = context;
	char place[EXPECT_PLACE_BYTES];
	char distances[NODE_LINE_BYTES];
	(void)snprintf(place, sizeof place, "NUMA node %.16s", node_base(path) + strlen("node"));
	tell_numa_memory(e, place, path);
	if (node_line(distances, sizeof distances, "%s/distance", path)) {
		expect_missing(e, "numa.distances", place, "it shows no distances");
		expect_missing(e, "numa.distance", place, "it shows no distances");
		return;
	}
	double most = 0;
	char *end;
	for (const char *at = distances; *at; at = end) {
		const double distance = strtod(at, &end);
		if (end == at)
			break;
		most = distance > most ? distance : most;
	}
	expect_text(e, "numa.distances", place, distances);
	expect_number(e, "numa.distance", place, most);
}

void tell_numa(struct expect *e)
{
	const size_t count =
		node_each(tell_numa_node, e, "%s/sys/devices/system/node/node[0-9]*", e->root);
	if (count > 0)
		expect_number(e, "numa.nodes", "", (double)count);
	expect_rest_missing(e, "numa.", "'/sys/devices/system/node' shows no NUMA node");
	expect_rest_missing(e, "memory.numa", "'/sys/devices/system/node' shows no NUMA node");
}

/* --- memory ----------------------------------------------------------------------------------- */

static const struct {
	const char *figure, *key;
} expect_meminfo[] = {
	{"memory.total", "MemTotal"},
	{"memory.available", "MemAvailable"},
	{"memory.swap", "SwapTotal"},
	{"memory.huge_pages", "HugePages_Total"},
	{"memory.huge_pages_free", "HugePages_Free"},
	{"memory.huge_page_size", "Hugepagesize"},
};

static void tell_meminfo(struct expect *e, const char *meminfo)
{
	double value;
	double total;
	for (size_t i = 0; i < COUNT(expect_meminfo); i++)
		if (parse_field_number(meminfo, expect_meminfo[i].key, &value) && isfinite(value))
			expect_number(e, expect_meminfo[i].figure, "", value);
		else
			expect_missing(e, expect_meminfo[i].figure, "", "no '%s' in /proc/meminfo",
				expect_meminfo[i].key);
	if (parse_field_number(meminfo, "SwapTotal", &total) &&
		parse_field_number(meminfo, "SwapFree", &value))
		expect_number(e, "memory.swap_used", "", total - value);
	else
		expect_missing(e, "memory.swap_used", "", "/proc/meminfo does not tell of swap");
}

static void tell_transparent(struct expect *e)
{
	static const char path[] = "/sys/kernel/mm/transparent_hugepage/enabled";
	char line[128];
	char chosen[64];
	const int code = node_line(line, sizeof line, "%s%s", e->root, path);
	if (code) {
		expect_file_missing(e, "memory.transparent", "", path, code);
		return;
	}
	parse_bracketed(line, chosen, sizeof chosen);
	expect_text(e, "memory.transparent", "", chosen);
}

static void tell_module(struct expect *e, const struct dmi_module *module)
{
	char part[96];
	const char *place = module->slot;
	const struct {
		const char *figure;
		double value;
	} numbers[] = {{"memory.module_size", module->bytes}, {"memory.speed", module->speed},
		{"memory.rated", module->rated}};
	for (size_t i = 0; i < COUNT(numbers); i++)
		if (isnan(numbers[i].value))
			expect_missing(e, numbers[i].figure, place, "the DMI table does not tell");
		else
			expect_number(e, numbers[i].figure, place, numbers[i].value);
	(void)snprintf(part, sizeof part, "%s%s%s", module->maker,
		module->maker[0] && module->part[0] ? " " : "", module->part);
	const struct {
		const char *figure, *text;
	} texts[] = {{"memory.type", module->type}, {"memory.part", part},
		{"memory.ecc", module->corrects < 0 ? ""
			       : module->corrects   ? "yes"
						    : "no"}};
	for (size_t i = 0; i < COUNT(texts); i++)
		if (texts[i].text[0])
			expect_text(e, texts[i].figure, place, texts[i].text);
		else
			expect_missing(e, texts[i].figure, place, "the DMI table does not tell");
}

/* The figures that the DMI table tells. */
static const char *const module_figures[] = {"memory.modules", "memory.module_size", "memory.speed",
	"memory.rated", "memory.type", "memory.part", "memory.ecc"};

static void tell_memory_modules(struct expect *e)
{
	struct dmi_module *modules = calloc(DMI_MODULES_MAX, sizeof *modules);
	size_t count = 0;
	size_t present = 0;
	const int code =
		modules ? dmi_modules_read(e->root, modules, DMI_MODULES_MAX, &count) : -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (!(modules[i].bytes == 0)) {
			present++;
			tell_module(e, &modules[i]);
		}
	if (present > 0)
		expect_number(e, "memory.modules", "", (double)present);
	for (size_t i = 0; i < COUNT(module_figures); i++) {
		if (expect_told(e, module_figures[i]))
			continue;
		if (code)
			expect_file_missing(
				e, module_figures[i], "", "/sys/firmware/dmi/tables/DMI", code);
		else
			expect_missing(e, module_figures[i], "",
				"the DMI table has no memory module in place");
	}
	free(modules);
}

void tell_node_memory(struct expect *e)
{
	char *meminfo = node_text("%s/proc/meminfo", e->root);
	tell_meminfo(e, meminfo ? meminfo : "");
	free(meminfo);
	tell_transparent(e);
	bool wanted = false;
	for (size_t i = 0; i < COUNT(module_figures); i++)
		wanted = wanted || expect_wants(e, module_figures[i], NULL);
	if (wanted)
		tell_memory_modules(e);
}

/* --- what this process may use ---------------------------------------------------------------- */

/* CPUs of a list as "0-3,8"; 0: it is none. */
static double count_cpu_list(const char *list)
{
	double count = 0;
	while (*list) {
		char *end;
		const unsigned long first = strtoul(list, &end, 10);
		unsigned long last = first;
		if (end == list)
			return 0;
		if (*end == '-') {
			list = end + 1;
			last = strtoul(list, &end, 10);
			if (end == list || last < first)
				return 0;
		}
		count += (double)(last - first) + 1;
		list = *end == ',' ? end + 1 : end;
		if (*end && *end != ',')
			return 0;
	}
	return count;
}

static double allowed_cpus(const struct expect *e)
{
	char list[NODE_LINE_BYTES] = "";
	char *status = node_text("%s/proc/self/status", e->root);
	if (status)
		(void)parse_field(status, "Cpus_allowed_list", list, sizeof list);
	free(status);
	return count_cpu_list(list);
}

/* Who is held on few CPUs has the rest of the node idle. */
static void tell_mask(struct expect *e, double cpus)
{
	const double reachable = cpus_reachable();
	if (!(cpus > 0) || !(reachable > 0)) {
		expect_missing(e, "cgroup.masked", "", "the kernel does not tell");
		return;
	}
	expect_number(e, "cgroup.masked", "", fmax(0, reachable - cpus));
	if (cpus < reachable && expect_wants(e, "cgroup.masked", NULL))
		sink_note(e->context->sink,
			"an affinity mask holds this process on %.0f of the %.0f CPUs that it could use, and all workers that it starts",
			cpus, reachable);
}

void tell_cgroup(struct expect *e)
{
	char *mountinfo = node_text("%s/proc/self/mountinfo", e->root);
	char *cgroup = node_text("%s/proc/self/cgroup", e->root);
	char *meminfo = node_text("%s/proc/meminfo", e->root);
	const struct cgroup_limits limits = cgroup_limits_of(mountinfo, cgroup);
	struct cpu_quotas quotas;
	cgroup_cpu_quotas_of(mountinfo, cgroup, &quotas);
	const struct cpu_quota *least = cgroup_tightest(&quotas);
	const double cpus = allowed_cpus(e);
	double total = NAN;
	if (cpus > 0)
		expect_number(e, "cgroup.cpus", "", cpus);
	else
		expect_missing(e, "cgroup.cpus", "", "/proc/self/status does not tell");
	tell_mask(e, cpus);
	if (least) {
		expect_number(e, "cgroup.cores", "",
			cpus > 0 && cpus < least->cores ? cpus : least->cores);
		if (cpus > 0)
			expect_number(e, "cgroup.withheld", "", fmax(0, cpus - least->cores));
	} else if (quotas.unknown[0] && cgroup && mountinfo && strchr(cgroup, ':')) {
		expect_missing(e, "cgroup.cores", "", "%s", quotas.unknown);
		expect_missing(e, "cgroup.withheld", "", "%s", quotas.unknown);
	} else if (cpus > 0) {
		expect_number(e, "cgroup.cores", "", cpus);
		expect_number(e, "cgroup.withheld", "", 0);
	}
	if (least &&
		(expect_wants(e, "cgroup.cores", NULL) || expect_wants(e, "cgroup.withheld", NULL)))
		sink_note(e->context->sink, "control group %s has a quota of %s cores",
			least->group, UNITS_PLAIN(least->cores, 3));
	if (!meminfo || !parse_field_number(meminfo, "MemTotal", &total))
		expect_missing(e, "cgroup.memory", "", "no 'MemTotal' in /proc/meminfo");
	else
		expect_number(e, "cgroup.memory", "", fmin(total, limits.memory_bytes));
	expect_rest_missing(e, "cgroup.", "/proc/self/status does not tell");
	free(mountinfo);
	free(cgroup);
	free(meminfo);
}

void tell_limits(struct expect *e)
{
	static const struct {
		const char *figure, *row;
	} rows[] = {{"limit.memlock", "Max locked memory"}, {"limit.open_files", "Max open files"},
		{"limit.processes", "Max processes"}};
	char *text = node_text("%s/proc/self/limits", e->root);
	for (size_t i = 0; i < COUNT(rows); i++) {
		char soft[32] = "";
		double value;
		for (const char *line = text; line && *line; line = text_next_line(line))
			if (strncmp(line, rows[i].row, strlen(rows[i].row)) == 0)
				(void)sscanf(line + strlen(rows[i].row), " %31s", soft);
		if (strcmp(soft, "unlimited") == 0)
			expect_number(e, rows[i].figure, "", 0x1p64);
		else if (node_number_of(soft, &value) == 0)
			expect_number(e, rows[i].figure, "", value);
		else
			expect_missing(e, rows[i].figure, "", "/proc/self/limits does not tell");
	}
	free(text);
}

void tell_clock(struct expect *e)
{
	struct timex now = {0};
	const int state = adjtimex(&now);
	if (state < 0) {
		expect_rest_missing(e, "clock.synchronised", "adjtimex: %s", strerror(errno));
		expect_rest_missing(e, "clock.error", "adjtimex: %s", strerror(errno));
		return;
	}
	expect_text(e, "clock.synchronised", "",
		state == TIME_ERROR || now.status & STA_UNSYNC ? "no" : "yes");
	expect_number(e, "clock.error", "", (double)now.maxerror * 1e3);
}
