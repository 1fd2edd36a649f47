/* The inventory, and the state of the node before it is loaded.  The figures that are asked about are told subject by
 * subject (expect_subjects), and a figure that no subject could tell is missing with the reason.  Files are read below the
 * context's root, sysfs directly and not by hwloc: most of what is asked for it does not know, and a test gives another
 * root to all of it alike. */
#include "harness/checks/check.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/text.h"
#include "harness/measure/data_store.h"
#include "harness/measure/dmi.h"
#include "harness/measure/error_counters.h"
#include "harness/measure/node_checks.h"
#include "harness/measure/node_files.h"
#include "harness/measure/node_users.h"
#include "harness/measure/nvml.h"
#include "harness/measure/proc_text.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

/* --- what is handed over ---------------------------------------------------------------------- */

enum {
	EXPECT_FIGURES_MAX = 256,
	EXPECT_PLACE_BYTES = 160,
	EXPECT_TEXT_BYTES = 4096, /* a kernel's command line has up to 4,096 */
};

struct expect_cpu {
	unsigned number;
	bool online, is_core; /* the first of its core's threads */
	double socket;
};

struct expect {
	const struct check_context *context;
	const char *root;
	bool told[EXPECT_FIGURES_MAX]; /* by their index in figure_list */
	struct expect_cpu *cpus;       /* owned */
	size_t cpu_count, cpu_room;
	size_t error_notes; /* so far */
};

static size_t expect_index(const char *figure)
{
	size_t i = 0;
	while (figure_list[i].name &&
		(figure_list[i].kind != ACCEPT_EXPECT || strcmp(figure_list[i].name, figure) != 0))
		i++;
	return i;
}

/* Whether the plan asks about the figure there; place NULL: anywhere. */
static bool expect_wants(const struct expect *e, const char *figure, const char *place)
{
	return check_wants(e->context, figure, place);
}

/* Notes that there is an answer; false: nobody asks. */
static bool expect_tell(struct expect *e, const char *figure, const char *place)
{
	const size_t index = expect_index(figure);
	if (index < EXPECT_FIGURES_MAX)
		e->told[index] = true;
	return expect_wants(e, figure, place);
}

static void expect_text(struct expect *e, const char *figure, const char *place, const char *text)
{
	if (expect_tell(e, figure, place))
		sink_text(e->context->sink, figure, place, text);
}

static void expect_number(struct expect *e, const char *figure, const char *place, double value)
{
	if (expect_tell(e, figure, place))
		sink_number(e->context->sink, figure, place, value);
}

static void expect_switch(struct expect *e, const char *figure, const char *place, bool on)
{
	expect_text(e, figure, place, on ? "on" : "off");
}

__attribute__((format(printf, 4, 5))) static void expect_missing(
	struct expect *e, const char *figure, const char *place, const char *format, ...)
{
	char why[NODE_LINE_BYTES];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(why, sizeof why, format, args);
	va_end(args);
	if (expect_tell(e, figure, place))
		sink_missing(e->context->sink, figure, place, "%s", why);
}

/* Each of a subject's figures that nothing was told of is missing for one reason. */
__attribute__((format(printf, 3, 4))) static void expect_rest_missing(
	struct expect *e, const char *prefix, const char *format, ...)
{
	char why[NODE_LINE_BYTES];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(why, sizeof why, format, args);
	va_end(args);
	for (size_t i = 0; figure_list[i].name && i < EXPECT_FIGURES_MAX; i++)
		if (figure_list[i].kind == ACCEPT_EXPECT && !e->told[i] &&
			strncmp(figure_list[i].name, prefix, strlen(prefix)) == 0)
			expect_missing(e, figure_list[i].name, "", "%s", why);
}

static bool expect_wants_any(const struct expect *e, const char *prefix)
{
	for (size_t i = 0; figure_list[i].name; i++)
		if (figure_list[i].kind == ACCEPT_EXPECT &&
			strncmp(figure_list[i].name, prefix, strlen(prefix)) == 0 &&
			expect_wants(e, figure_list[i].name, NULL))
			return true;
	return false;
}

/* --- figures that are one line of a file ------------------------------------------------------ */

static const struct expect_line {
	const char *figure, *path;
} expect_lines[] = {
	{"cpu.smt", "/sys/devices/system/cpu/smt/control"},
	{"kernel.release", "/proc/sys/kernel/osrelease"},
	{"kernel.command_line", "/proc/cmdline"},
	{"clock.source", "/sys/devices/system/clocksource/clocksource0/current_clocksource"},
	{"bios.version", "/sys/class/dmi/id/bios_version"},
	{"bios.date", "/sys/class/dmi/id/bios_date"},
	{"node.vendor", "/sys/class/dmi/id/sys_vendor"},
	{"node.product", "/sys/class/dmi/id/product_name"},
	{"node.serial", "/sys/class/dmi/id/product_serial"},
	{"node.board", "/sys/class/dmi/id/board_name"},
	{"node.board_serial", "/sys/class/dmi/id/board_serial"},
};

/* Why a file's line is not known. */
static void expect_file_missing(
	struct expect *e, const char *figure, const char *place, const char *path, int code)
{
	const bool dmi = strstr(path, "/dmi/") != NULL;
	const char *hint = "";
	if (code == -ENOENT && dmi)
		hint = ": no DMI table (a virtual machine, or a container that hides it)";
	else if ((code == -EACCES || code == -EPERM) && geteuid() != 0)
		hint = ": only root may read it";
	if (code == -ENODATA)
		expect_missing(e, figure, place, "'%s' is empty", path);
	else
		expect_missing(e, figure, place, "'%s': %s%s", path, strerror(-code), hint);
}

static void expect_line_of(struct expect *e, const char *figure, const char *path)
{
	char text[EXPECT_TEXT_BYTES];
	const int code = node_line(text, sizeof text, "%s%s", e->root, path);
	if (code)
		expect_file_missing(e, figure, "", path, code);
	else
		expect_text(e, figure, "", text);
}

static void tell_lines(struct expect *e)
{
	for (size_t i = 0; i < COUNT(expect_lines); i++)
		if (expect_wants(e, expect_lines[i].figure, NULL))
			expect_line_of(e, expect_lines[i].figure, expect_lines[i].path);
}

/* "sysctl.vm.swappiness" is /proc/sys/vm/swappiness. */
static void tell_sysctl(struct expect *e)
{
	for (size_t i = 0; figure_list[i].name; i++) {
		const char *figure = figure_list[i].name;
		char path[128];
		double value;
		if (strncmp(figure, "sysctl.", 7) != 0 || !expect_wants(e, figure, NULL))
			continue;
		(void)snprintf(path, sizeof path, "/proc/sys/%s", figure + 7);
		for (char *at = path; *at; at++)
			*at = *at == '.' ? '/' : *at;
		const int code = node_number(&value, "%s%s", e->root, path);
		if (code)
			expect_file_missing(e, figure, "", path, code);
		else
			expect_number(e, figure, "", value);
	}
}

static void tell_modules(struct expect *e)
{
	for (size_t i = 0; figure_list[i].name; i++) {
		const char *figure = figure_list[i].name;
		if (strncmp(figure, "module.", 7) != 0 || !expect_wants(e, figure, NULL))
			continue;
		if (!node_has("%s/sys/module", e->root))
			expect_missing(e, figure, "", "'/sys/module' is not there");
		else
			expect_text(e, figure, "",
				node_has("%s/sys/module/%s", e->root, figure + 7) ? "loaded"
										  : "not loaded");
	}
}

static void tell_os(struct expect *e)
{
	static const char key[] = "PRETTY_NAME=";
	char *text = node_text("%s/etc/os-release", e->root);
	for (const char *line = text; line && *line; line = text_next_line(line)) {
		char name[128];
		if (strncmp(line, key, sizeof key - 1) != 0)
			continue;
		line += sizeof key - 1;
		const bool quoted = *line == '"' || *line == '\'';
		line += quoted;
		(void)snprintf(name, sizeof name, "%.*s",
			(int)strcspn(line, quoted ? "\"'\n" : "\n"), line);
		utf8_make_plain(name, '?');
		expect_text(e, "os.release", "", name);
		break;
	}
	free(text);
	expect_rest_missing(e, "os.", "'/etc/os-release' does not name it");
}

/* --- processors ------------------------------------------------------------------------------- */

#define EXPECT_CPUS "/sys/devices/system/cpu"

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

static void find_expect_cpus(struct expect *e)
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

static double expect_threads(const struct expect *e)
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

static bool expect_told(const struct expect *e, const char *figure)
{
	const size_t index = expect_index(figure);
	return index < EXPECT_FIGURES_MAX && e->told[index];
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

static double throttle_events(const struct expect *e)
{
	struct throttle_sum sum = {.events = NAN};
	(void)node_each(add_throttle_count, &sum,
		"%s" EXPECT_CPUS "/cpu[0-9]*/thermal_throttle/core_throttle_count", e->root);
	/* The package's is the same file on each of its CPUs, which the sum then counts as often. */
	(void)node_each(add_throttle_count, &sum,
		"%s" EXPECT_CPUS "/cpu[0-9]*/thermal_throttle/package_throttle_count", e->root);
	return sum.events;
}

#define NO_THROTTLE_COUNTS "the CPUs do not count it (no thermal_throttle in '" EXPECT_CPUS "')"

static void tell_cpus(struct expect *e)
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

static void tell_numa(struct expect *e)
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

static void tell_node_memory(struct expect *e)
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

static void tell_cgroup(struct expect *e)
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
	if (least)
		expect_number(e, "cgroup.cores", "",
			cpus > 0 && cpus < least->cores ? cpus : least->cores);
	else if (quotas.unknown[0] && cgroup && mountinfo && strchr(cgroup, ':'))
		expect_missing(e, "cgroup.cores", "", "%s", quotas.unknown);
	else if (cpus > 0)
		expect_number(e, "cgroup.cores", "", cpus);
	if (least && expect_wants(e, "cgroup.cores", NULL))
		sink_note(e->context->sink, "control group %s has a quota of %.3g cores",
			least->group, least->cores);
	if (!meminfo || !parse_field_number(meminfo, "MemTotal", &total))
		expect_missing(e, "cgroup.memory", "", "no 'MemTotal' in /proc/meminfo");
	else
		expect_number(e, "cgroup.memory", "", fmin(total, limits.memory_bytes));
	expect_rest_missing(e, "cgroup.", "/proc/self/status does not tell");
	free(mountinfo);
	free(cgroup);
	free(meminfo);
}

static void tell_limits(struct expect *e)
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

static void tell_clock(struct expect *e)
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

/* --- GPUs ------------------------------------------------------------------------------------- */

/* How many NVIDIA GPUs the PCI bus shows, and whether it shows anything. */
struct bus_sight {
	size_t devices, gpus;
};

static void see_bus_device(void *context, const char *path)
{
	enum { NVIDIA = 0x10de, CLASS_DISPLAY = 0x03, CLASS_SHIFT = 16 };
	struct bus_sight *sight = context;
	double vendor;
	double class;
	if (node_number(&vendor, "%s/vendor", path) || node_number(&class, "%s/class", path))
		return;
	sight->devices++;
	sight->gpus += vendor == NVIDIA && (unsigned)class >> CLASS_SHIFT == CLASS_DISPLAY;
}

static struct bus_sight look_at_bus(struct expect *e)
{
	struct bus_sight sight = {0};
	(void)node_each(see_bus_device, &sight, "%s/sys/bus/pci/devices/*", e->root);
	if (sight.devices > 0)
		expect_number(e, "gpu.on_bus", "", (double)sight.gpus);
	else
		expect_missing(e, "gpu.on_bus", "", "'/sys/bus/pci/devices' shows no device");
	return sight;
}

static const struct {
	const char *figure;
	enum nvml_quantity quantity;
	bool is_switch;
} expect_gpu_values[] = {
	{"gpu.memory", NVML_MEMORY_TOTAL, false},
	{"gpu.pcie_generation", NVML_PCIE_GENERATION, false},
	{"gpu.pcie_generation_max", NVML_PCIE_GENERATION_MAX, false},
	{"gpu.pcie_width", NVML_PCIE_WIDTH, false},
	{"gpu.pcie_width_max", NVML_PCIE_WIDTH_MAX, false},
	{"gpu.power_limit", NVML_POWER_LIMIT, false},
	{"gpu.clock_max", NVML_SM_CLOCK_MAX, false},
	{"gpu.busy", NVML_KERNEL_RESIDENT, false},
	{"gpu.memory_used", NVML_MEMORY_USED, false},
	{"gpu.temperature", NVML_TEMPERATURE, false},
	{"gpu.rows_remapped", NVML_ROWS_UNCORRECTED, false},
	{"gpu.rows_pending", NVML_ROWS_PENDING, false},
	{"gpu.rows_failed", NVML_ROWS_FAILED, false},
	{"gpu.ecc", NVML_ECC_MODE, true},
	{"gpu.persistence", NVML_PERSISTENCE, true},
	{"gpu.mig", NVML_MIG_MODE, true},
};

static void tell_gpu_links(
	struct expect *e, const char *place, const struct nvml_device_facts *device)
{
	double active = 0;
	for (size_t i = 0; i < device->link_count; i++)
		active += device->links[i].active;
	if (device->link_count > 0) {
		expect_number(e, "gpu.nvlinks", place, active);
		expect_number(e, "gpu.nvlinks_down", place, (double)device->link_count - active);
		return;
	}
	const char *why = nvml_code_words(device->link_code);
	expect_missing(e, "gpu.nvlinks", place, "no NVLink: %s", why);
	expect_missing(e, "gpu.nvlinks_down", place, "no NVLink: %s", why);
}

static void tell_gpu_text(struct expect *e, const char *figure, const char *place, const char *text)
{
	char plain[80];
	(void)snprintf(plain, sizeof plain, "%s", text);
	utf8_make_plain(plain, '?');
	if (plain[0])
		expect_text(e, figure, place, plain);
	else
		expect_missing(e, figure, place, "the driver does not tell");
}

static void tell_gpu(struct expect *e, const struct nvml_device_facts *device, size_t index)
{
	char place[EXPECT_PLACE_BYTES];
	char reasons[128];
	(void)snprintf(place, sizeof place, "device %zu", index);
	tell_gpu_text(e, "gpu.model", place, device->name);
	tell_gpu_text(e, "gpu.serial", place, device->serial);
	tell_gpu_text(e, "gpu.vbios", place, device->vbios);
	for (size_t i = 0; i < COUNT(expect_gpu_values); i++) {
		const struct nvml_value *value = &device->values[expect_gpu_values[i].quantity];
		if (value->code)
			expect_missing(e, expect_gpu_values[i].figure, place, "%s",
				nvml_code_words(value->code));
		else if (expect_gpu_values[i].is_switch)
			expect_switch(e, expect_gpu_values[i].figure, place, value->number > 0);
		else
			expect_number(e, expect_gpu_values[i].figure, place, value->number);
	}
	const struct nvml_value *throttles = &device->values[NVML_THROTTLES];
	if (throttles->code) {
		expect_missing(e, "gpu.throttled", place, "%s", nvml_code_words(throttles->code));
	} else {
		nvml_throttle_names(throttles->number, reasons, sizeof reasons);
		expect_text(e, "gpu.throttled", place, reasons[0] ? reasons : "none");
	}
	tell_gpu_links(e, place, device);
}

static void tell_gpus(struct expect *e)
{
	struct error err = {0};
	const struct bus_sight sight = look_at_bus(e);
	bool wanted = false;
	for (size_t i = 0; figure_list[i].name && !wanted; i++)
		wanted = strncmp(figure_list[i].name, "gpu.", 4) == 0 &&
			 strcmp(figure_list[i].name, "gpu.on_bus") != 0 &&
			 expect_wants(e, figure_list[i].name, NULL);
	struct nvml_node *node = wanted ? calloc(1, sizeof *node) : NULL;
	if (!node)
		return;
	sink_activity(e->context->sink, "asking the GPU driver (NVML)");
	if (nvml_node_read(node, NVML_PATIENCE_S * NS_PER_S, &err)) {
		if (sight.gpus > 0)
			expect_rest_missing(e, "gpu.",
				"%.300s, but the PCI bus shows %zu NVIDIA GPU%s", err.text,
				sight.gpus, sight.gpus == 1 ? "" : "s");
		else
			expect_rest_missing(e, "gpu.", "%.300s", err.text);
	} else {
		expect_number(e, "gpu.count", "", (double)node->count);
		tell_gpu_text(e, "gpu.driver", "", node->driver);
		for (size_t i = 0; i < node->count; i++)
			tell_gpu(e, &node->devices[i], i);
	}
	free(node);
}

/* --- adapters and disks ----------------------------------------------------------------------- */

enum { BITS_PER_BYTE = 8 };

struct port_count {
	struct expect *e;
	double active;
};

static void tell_rdma_port(void *context, const char *path)
{
	struct port_count *count = context;
	struct expect *e = count->e;
	char place[EXPECT_PLACE_BYTES];
	char line[64];
	double gigabits;
	/* ".../infiniband/mlx5_0/ports/1" */
	const char *ports = strstr(path, "/ports/");
	const char *device = ports;
	while (device && device > path && device[-1] != '/')
		device--;
	if (!ports)
		return;
	(void)snprintf(place, sizeof place, "%.*s port %.16s",
		(int)(ports - device < 64 ? ports - device : 64), device, node_base(path));
	/* "4: ACTIVE" */
	if (node_line(line, sizeof line, "%s/state", path) == 0) {
		const char *name = strchr(line, ':');
		name = name ? name + 1 + strspn(name + 1, " ") : line;
		count->active += strcmp(name, "ACTIVE") == 0;
		expect_text(e, "rdma.state", place, name);
	} else {
		expect_missing(e, "rdma.state", place, "the port does not tell");
	}
	/* "400 Gb/sec (4X NDR)" */
	if (node_line(line, sizeof line, "%s/rate", path) == 0 &&
		sscanf(line, "%lf Gb/sec", &gigabits) == 1 && gigabits >= 0 && isfinite(gigabits))
		expect_number(e, "rdma.rate", place, gigabits * 1e9 / BITS_PER_BYTE);
	else
		expect_missing(e, "rdma.rate", place, "the port does not tell");
}

static void tell_rdma_adapter(void *context, const char *path)
{
	char line[64];
	if (node_line(line, sizeof line, "%s/fw_ver", path) == 0)
		expect_text(context, "rdma.firmware", node_base(path), line);
	else
		expect_missing(
			context, "rdma.firmware", node_base(path), "the adapter does not tell");
}

static void tell_rdma(struct expect *e)
{
	struct port_count count = {.e = e};
	(void)node_each(tell_rdma_adapter, e, "%s/sys/class/infiniband/*", e->root);
	if (node_each(tell_rdma_port, &count, "%s/sys/class/infiniband/*/ports/*", e->root) > 0)
		expect_number(e, "rdma.ports", "", count.active);
	expect_rest_missing(e, "rdma.", "'/sys/class/infiniband' shows no RDMA adapter");
}

/* Of interfaces with hardware of their own that are up. */
static void tell_interface(void *context, const char *path)
{
	struct expect *e = context;
	char state[16];
	double megabits;
	if (!node_has("%s/device", path) || node_line(state, sizeof state, "%s/operstate", path) ||
		strcmp(state, "down") == 0)
		return;
	/* A virtual adapter says -1, or nothing. */
	if (node_number(&megabits, "%s/speed", path) == 0 && megabits < 4294967295.0)
		expect_number(e, "net.rate", node_base(path), megabits * 1e6 / BITS_PER_BYTE);
	else
		expect_missing(
			e, "net.rate", node_base(path), "the adapter does not tell its speed");
}

static void tell_network(struct expect *e)
{
	(void)node_each(tell_interface, e, "%s/sys/class/net/*", e->root);
	expect_rest_missing(
		e, "net.", "'/sys/class/net' shows no interface of hardware that is up");
}

/* A disk's texts, each in the first file that has it. */
static const struct {
	const char *figure, *file, *other;
} disk_texts[] = {
	{"disk.model", "device/model", "device/name"},
	{"disk.serial", "device/serial", "serial"},
	{"disk.firmware", "device/firmware_rev", "device/rev"},
};

struct disk_count {
	struct expect *e;
	double disks;
};

static void tell_disk_queue(struct expect *e, const char *disk, const char *path)
{
	char line[128];
	char chosen[128];
	double value;
	if (node_number(&value, "%s/queue/rotational", path) == 0)
		expect_text(e, "disk.rotational", disk, value > 0 ? "yes" : "no");
	else
		expect_missing(e, "disk.rotational", disk, "queue/rotational cannot be read");
	if (node_line(line, sizeof line, "%s/queue/scheduler", path) == 0) {
		parse_bracketed(line, chosen, sizeof chosen);
		expect_text(e, "disk.scheduler", disk, chosen);
	} else {
		expect_missing(e, "disk.scheduler", disk, "queue/scheduler cannot be read");
	}
}

/* Those without a device are made of others or of memory; removable ones may be empty. */
static void tell_disk(void *context, const char *path)
{
	enum { SECTOR_BYTES = 512 };
	struct disk_count *count = context;
	struct expect *e = count->e;
	const char *disk = node_base(path);
	char line[NODE_LINE_BYTES];
	double value;
	if (!node_has("%s/device", path) ||
		(node_number(&value, "%s/removable", path) == 0 && value > 0))
		return;
	count->disks++;
	for (size_t i = 0; i < COUNT(disk_texts); i++)
		if (node_line(line, sizeof line, "%s/%s", path, disk_texts[i].file) == 0 ||
			node_line(line, sizeof line, "%s/%s", path, disk_texts[i].other) == 0)
			expect_text(e, disk_texts[i].figure, disk, line);
		else
			expect_missing(e, disk_texts[i].figure, disk, "the disk does not tell");
	if (node_number(&value, "%s/size", path) == 0)
		expect_number(e, "disk.size", disk, value * SECTOR_BYTES);
	else
		expect_missing(e, "disk.size", disk, "its size cannot be read");
	tell_disk_queue(e, disk, path);
}

static void tell_disks(struct expect *e)
{
	struct disk_count count = {.e = e};
	(void)node_each(tell_disk, &count, "%s/sys/block/*", e->root);
	if (count.disks > 0)
		expect_number(e, "disk.count", "", count.disks);
	expect_rest_missing(e, "disk.", "'/sys/block' shows no disk");
}

static void tell_pcie_device(void *context, const char *path)
{
	/* Storage, network, display, accelerators. */
	static const unsigned classes[] = {0x01, 0x02, 0x03, 0x12};
	enum { CLASS_SHIFT = 16, LANES_MAX = 32 };
	struct expect *e = context;
	char place[EXPECT_PLACE_BYTES];
	double class;
	double lanes;
	double most;
	bool looked_at = false;
	if (node_number(&class, "%s/class", path))
		return;
	for (size_t i = 0; i < COUNT(classes); i++)
		looked_at = looked_at || (unsigned)class >> CLASS_SHIFT == classes[i];
	/* What is built in has no link, or says 0 or 255. */
	if (!looked_at || node_number(&lanes, "%s/current_link_width", path) ||
		node_number(&most, "%s/max_link_width", path) || lanes > LANES_MAX ||
		most > LANES_MAX || most == 0)
		return;
	(void)snprintf(place, sizeof place, "PCI %.40s", node_base(path));
	expect_number(e, "pcie.width", place, lanes);
	expect_number(e, "pcie.lost_width", place, most > lanes ? most - lanes : 0);
}

static void tell_pcie(struct expect *e)
{
	(void)node_each(tell_pcie_device, e, "%s/sys/bus/pci/devices/*", e->root);
	expect_rest_missing(e, "pcie.",
		"'/sys/bus/pci/devices' shows no link of a disk controller, network adapter or GPU");
}

/* --- the folder that is judged ---------------------------------------------------------------- */

/* Options of the mount and, behind them, those of the file system that are not among them. */
static void join_options(const struct mount_entry *mount, char *out, size_t room)
{
	size_t used = (size_t)snprintf(out, room, "%s", mount->options);
	for (const char *at = mount->super_options; *at && used < room;
		at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
		const int length = (int)strcspn(at, ",");
		char option[MOUNT_TEXT_BYTES];
		(void)snprintf(option, sizeof option, "%.*s", length, at);
		bool there = false;
		for (const char *old = mount->options; *old && !there;
			old += strcspn(old, ",") + (old[strcspn(old, ",")] == ','))
			there = (int)strcspn(old, ",") == length &&
				strncmp(old, option, (size_t)length) == 0;
		if (length > 0 && !there)
			used += (size_t)snprintf(out + used, room - used, ",%s", option);
	}
	utf8_make_plain(out, '?');
}

static void tell_mount(struct expect *e, const struct mount_entry *mount)
{
	char options[2 * MOUNT_TEXT_BYTES];
	char path[NODE_PATH_BYTES];
	char source[MOUNT_TEXT_BYTES];
	struct block_disk disk;
	join_options(mount, options, sizeof options);
	memcpy(source, mount->source, sizeof source);
	utf8_make_plain(source, '?');
	expect_text(e, "data.file_system", "", mount->type);
	expect_text(e, "data.source", "", source);
	expect_text(e, "mount.options", "", options);
	(void)snprintf(path, sizeof path, "%s/sys/dev/block", e->root);
	block_disk_find_in(path, mount, &disk);
	if (disk.name[0])
		expect_text(e, "data.disk", "", disk.name);
	else
		expect_missing(e, "data.disk", "", "%s", disk.why);
}

static void tell_space(struct expect *e, const char *folder)
{
	struct statvfs fs;
	if (statvfs(folder, &fs)) {
		const int code = errno;
		expect_missing(e, "data.free", "", "statvfs '%s': %s", folder, strerror(code));
		expect_missing(
			e, "data.inodes_free", "", "statvfs '%s': %s", folder, strerror(code));
		return;
	}
	expect_number(e, "data.free", "", (double)fs.f_bavail * (double)fs.f_frsize);
	if (fs.f_files > 0)
		expect_number(e, "data.inodes_free", "", (double)fs.f_favail);
	else
		expect_missing(e, "data.inodes_free", "",
			"the file system makes inodes as it needs them, and does not count them");
}

static void tell_data(struct expect *e)
{
	const char *folder = e->context->folder;
	char resolved[PATH_MAX];
	struct mount_entry mount;
	if (!folder || !*folder) {
		expect_rest_missing(e, "data.", "no folder is judged");
		expect_rest_missing(e, "mount.", "no folder is judged");
		return;
	}
	/* A mount that does not answer hangs here: the parent then names this. */
	sink_activity(e->context->sink, "looking at the file system of '%s'", folder);
	char *mountinfo = node_text("%s/proc/self/mountinfo", e->root);
	if (!realpath(folder, resolved))
		expect_rest_missing(e, "mount.", "'%s': %s", folder, strerror(errno));
	else if (mountinfo && parse_mount_of(mountinfo, resolved, &mount))
		tell_mount(e, &mount);
	free(mountinfo);
	tell_space(e, folder);
	expect_rest_missing(
		e, "data.", "/proc/self/mountinfo does not show the mount of '%s'", folder);
	expect_rest_missing(
		e, "mount.", "/proc/self/mountinfo does not show the mount of '%s'", folder);
}

/* --- pre-flight: who else is there, and how hot it is ----------------------------------------- */

enum { EXPECT_WINDOW_MS = 500, USERS_NAMED = 3 };

static const double USER_NAMED_SHARE = 0.02; /* of a core */

/* The busiest processes, for whoever has to stop them. */
static void note_users(const struct expect *e, const struct node_processes *before,
	const struct node_processes *after, double seconds, double busy)
{
	struct node_user users[USERS_NAMED];
	char text[256] = "";
	size_t used = 0;
	double seen = 0;
	const double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
	const size_t count = node_busiest(before, after, users, USERS_NAMED);
	for (size_t i = 0; i < count; i++) {
		const double share = users[i].ticks * tick / seconds;
		if (share < USER_NAMED_SHARE)
			continue;
		seen += share;
		used += (size_t)snprintf(text + used, sizeof text - used,
			"%s'%s' (process %d) %.0f %%", used ? ", " : "", users[i].name, users[i].id,
			share * 100);
	}
	if (used)
		sink_note(e->context->sink, "busiest, in shares of a core: %s", text);
	else if (busy >= 10 * USER_NAMED_SHARE && seen < busy / 2)
		sink_note(e->context->sink,
			"%.1f cores are busy with processes that cannot be seen from here: those of other containers, of the host, or the kernel's own",
			busy);
}

static void tell_load_now(struct expect *e)
{
	struct node_processes before = {0};
	struct node_processes after = {0};
	double busy = NAN;
	double steal = NAN;
	sink_activity(e->context->sink, "looking who else uses the node");
	const bool seen = node_processes_read(e->root, &before) == 0;
	const double throttled = throttle_events(e);
	const uint64_t began_ns = clock_now_ns();
	const bool known = probe_load(e->root, EXPECT_WINDOW_MS, expect_threads(e), &busy, &steal);
	const double seconds = (double)(clock_now_ns() - began_ns) / (double)NS_PER_S;
	const double later = throttle_events(e);
	if (known && e->cpu_count > 0)
		expect_number(e, "node.busy", "", busy);
	else
		expect_missing(e, "node.busy", "", "/proc/stat does not tell");
	if (known)
		expect_number(e, "node.steal", "", steal);
	else
		expect_missing(e, "node.steal", "", "/proc/stat does not tell");
	if (isnan(later - throttled))
		expect_missing(e, "node.throttled", "", NO_THROTTLE_COUNTS);
	else
		expect_number(e, "node.throttled", "", fmax(0, later - throttled));
	if (seen && seconds > 0 && node_processes_read(e->root, &after) == 0)
		note_users(e, &before, &after, seconds, known ? busy : 0);
	node_processes_release(&before);
	node_processes_release(&after);
}

static void tell_load_average(struct expect *e)
{
	char line[128];
	double load;
	if (node_line(line, sizeof line, "%s/proc/loadavg", e->root) == 0 &&
		sscanf(line, "%lf", &load) == 1 && isfinite(load) && load >= 0)
		expect_number(e, "node.load", "", load);
	else
		expect_missing(e, "node.load", "", "/proc/loadavg cannot be read");
}

/* Thousandths of a degree; what is no temperature of a running machine is a sensor that is not connected. */
static bool tell_temperature(struct expect *e, const char *place, const char *path)
{
	char line[32];
	char *end;
	if (node_line(line, sizeof line, "%s", path))
		return false;
	const double celsius = strtod(line, &end) / 1000;
	if (end == line || *end || !(celsius > 0 && celsius < 150))
		return false;
	expect_number(e, "node.temperature", place, celsius);
	return true;
}

/* ".../hwmon3/temp2_input": "coretemp Core 0", or "nvme temp2 (hwmon3)". */
static void tell_sensor(void *context, const char *path)
{
	char folder[NODE_PATH_BYTES];
	char chip[48];
	char label[48];
	char place[EXPECT_PLACE_BYTES];
	(void)snprintf(folder, sizeof folder, "%s", path);
	*strrchr(folder, '/') = '\0';
	const char *file = node_base(path);
	const int stem = (int)strcspn(file, "_");
	if (node_line(chip, sizeof chip, "%s/name", folder))
		(void)snprintf(chip, sizeof chip, "%.40s", node_base(folder));
	if (node_line(label, sizeof label, "%s/%.*s_label", folder, stem, file))
		(void)snprintf(label, sizeof label, "%.*s", stem < 16 ? stem : 16, file);
	(void)snprintf(place, sizeof place, "%s %s (%.16s)", chip, label, node_base(folder));
	(void)tell_temperature(context, place, path);
}

static void tell_zone(void *context, const char *path)
{
	char kind[48];
	char place[EXPECT_PLACE_BYTES];
	char file[NODE_PATH_BYTES];
	if (node_line(kind, sizeof kind, "%s/type", path))
		kind[0] = '\0';
	(void)snprintf(place, sizeof place, "%.32s%s%s", node_base(path), kind[0] ? " " : "", kind);
	(void)snprintf(file, sizeof file, "%.*s/temp", NODE_PATH_BYTES - 8, path);
	(void)tell_temperature(context, place, file);
}

static void tell_node(struct expect *e)
{
	tell_load_average(e);
	(void)node_each(tell_sensor, e, "%s/sys/class/hwmon/hwmon*/temp[0-9]*_input", e->root);
	if (!expect_told(e, "node.temperature"))
		(void)node_each(tell_zone, e, "%s/sys/class/thermal/thermal_zone*", e->root);
	if (!expect_told(e, "node.temperature"))
		expect_missing(e, "node.temperature", "",
			"neither hwmon nor thermal zones show a temperature (a virtual machine, or no driver)");
	if (expect_wants(e, "node.busy", NULL) || expect_wants(e, "node.steal", NULL) ||
		expect_wants(e, "node.throttled", NULL))
		tell_load_now(e);
}

/* --- errors since the node started ------------------------------------------------------------ */

enum { ERROR_PLACES_MAX = 64 }; /* of a class; what is beyond is told in one sum */

static uint64_t add_counts(uint64_t sum, uint64_t count)
{
	return count > UINT64_MAX - sum ? UINT64_MAX : sum + count;
}

/* What all counters of that counter's place together show; 0 where an earlier one has told it. */
static uint64_t sum_at_place(const struct error_counters *now, size_t index)
{
	const struct error_counter *of = &now->list[index];
	uint64_t sum = 0;
	for (size_t i = 0; i < now->count; i++) {
		const struct error_counter *other = &now->list[i];
		if (other->class != of->class || other->corrected != of->corrected ||
			strcmp(other->place, of->place) != 0)
			continue;
		if (i < index)
			return 0;
		sum = add_counts(sum, other->count);
	}
	return sum;
}

/* What kind of error it is: a few, since more do not help. */
static void note_error(struct expect *e, const char *figure, const struct error_counter *counter)
{
	enum { ERROR_NOTES_MAX = 24 };
	if (!expect_wants(e, figure, NULL) || e->error_notes++ >= ERROR_NOTES_MAX)
		return;
	sink_note(e->context->sink, "%s: %s%s%s: %llu%s%s", error_class_name(counter->class),
		counter->name, counter->place[0] ? " of " : "", counter->place,
		(unsigned long long)counter->count, counter->evidence[0] ? ": " : "",
		counter->evidence);
}

static void tell_error_class(
	struct expect *e, const struct error_counters *now, enum error_class class, bool corrected)
{
	const char *figure = corrected ? "errors.corrected" : "errors.uncorrected";
	const char *name = error_class_name(class);
	char other[EXPECT_PLACE_BYTES];
	size_t places = 0;
	uint64_t rest = 0;
	if (now->why[class][0]) {
		expect_missing(e, figure, name, "%s", now->why[class]);
		return;
	}
	for (size_t i = 0; i < now->count; i++) {
		const struct error_counter *counter = &now->list[i];
		char place[EXPECT_PLACE_BYTES];
		if (counter->class != class || counter->corrected != corrected || !counter->count)
			continue;
		note_error(e, figure, counter);
		const uint64_t sum = sum_at_place(now, i);
		(void)snprintf(place, sizeof place, "%s%s%s", name, counter->place[0] ? ": " : "",
			counter->place);
		if (sum > 0 && places++ < ERROR_PLACES_MAX)
			expect_number(e, figure, place, (double)sum);
		else
			rest = add_counts(rest, sum);
	}
	(void)snprintf(other, sizeof other, "%s: other parts", name);
	if (rest > 0)
		expect_number(e, figure, other, (double)rest);
	if (places == 0)
		expect_number(e, figure, name, 0);
}

static void tell_errors(struct expect *e)
{
	struct error_counters now;
	sink_activity(e->context->sink, "reading the counters of hardware errors");
	if (error_counters_read(e->root, ERRORS_ALL, NULL, &now)) {
		expect_rest_missing(e, "errors.", "out of memory");
		return;
	}
	for (int class = 0; class < ERROR_CLASSES; class ++) {
		tell_error_class(e, &now, (enum error_class) class, true);
		tell_error_class(e, &now, (enum error_class) class, false);
	}
	error_counters_release(&now);
}

/* --- all -------------------------------------------------------------------------------------- */

/* By the beginning of the figures' names, so that what nobody asks for is not looked for.  What may hang is last: all
 * before it is told by then. */
static const struct expect_subject {
	const char *prefix;
	void (*tell)(struct expect *e);
} expect_subjects[] = {
	{"node.", tell_node}, /* first: before this check keeps the node busy itself */
	{"", tell_lines},
	{"sysctl.", tell_sysctl},
	{"module.", tell_modules},
	{"os.", tell_os},
	{"cpu.", tell_cpus},
	{"numa.", tell_numa},
	{"memory.numa", tell_numa},
	{"memory.", tell_node_memory},
	{"cgroup.", tell_cgroup},
	{"limit.", tell_limits},
	{"clock.", tell_clock},
	{"rdma.", tell_rdma},
	{"net.", tell_network},
	{"pcie.", tell_pcie},
	{"disk.", tell_disks},
	{"gpu.", tell_gpus},
	{"errors.", tell_errors},
	{"data.", tell_data},
	{"mount.", tell_data},
};

static int expect_validate(const struct accept_check *check, struct error *err)
{
	for (size_t i = 0; i < check->limit_count; i++) {
		const struct accept_limit *limit = &check->limits[i];
		for (size_t k = 0; k < limit->criterion.clause_count; k++) {
			const struct clause *clause = &limit->criterion.clauses[k];
			if (clause->kind == CLAUSE_SPREAD || clause->kind == CLAUSE_SIMILARITY)
				return error_set(err, -EINVAL,
					"'%s' is looked up once and has no repetitions: write a limit, a list, or 'equal'",
					limit->figure->name);
			if (clause->of == OF_PEAK)
				return error_set(err, -EINVAL,
					"'%s' has no peak: write the limit itself",
					limit->figure->name);
		}
	}
	return 0;
}

static void expect_estimate(const struct check_context *context, struct check_cost *cost)
{
	const struct expect e = {.context = context, .root = context->root ? context->root : ""};
	*cost = (struct check_cost){.seconds = 0.1};
	if (expect_wants_any(&e, "node."))
		cost->seconds += EXPECT_WINDOW_MS / 1000.0;
	if (expect_wants_any(&e, "gpu.") || expect_wants_any(&e, "errors."))
		cost->seconds += 2; /* a driver that is loaded answers in that */
	cost->memory_bytes = expect_wants_any(&e, "errors.") ? 32e6 : 4e6;
}

static int expect_run(const struct check_context *context, struct error *err)
{
	struct expect e = {.context = context, .root = context->root ? context->root : ""};
	int code = 0;
	find_expect_cpus(&e);
	for (size_t i = 0; i < COUNT(expect_subjects) && !code; i++) {
		const struct expect_subject *subject = &expect_subjects[i];
		const bool done = i > 0 && subject[-1].tell == subject->tell &&
				  expect_wants_any(&e, subject[-1].prefix);
		if (check_stopped(context))
			code = error_set(err, -EINTR, "interrupted");
		else if (!done && expect_wants_any(&e, subject->prefix))
			subject->tell(&e);
	}
	if (!code)
		expect_rest_missing(&e, "", "this version cannot tell on this node");
	free(e.cpus);
	return code;
}

const struct check_ops check_expect = {
	.kind = ACCEPT_EXPECT,
	.name = "expect",
	.summary = "compare the node with what was bought, and look who else uses it",
	.validate = expect_validate,
	.estimate = expect_estimate,
	.run = expect_run,
};
