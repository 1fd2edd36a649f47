/* The inventory, and the state of the node before it is loaded.  The figures that are asked about are told subject by
 * subject (expect_subjects), and a figure that no subject could tell is missing with the reason.  Files are read below the
 * context's root, sysfs directly and not by hwloc: most of what is asked for it does not know, and a test gives another
 * root to all of it alike. */
#include "harness/checks/expect.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/text.h"
#include "harness/measure/dmi.h"
#include "harness/measure/error_counters.h"
#include "harness/measure/node_checks.h"
#include "harness/measure/node_files.h"
#include "harness/measure/node_users.h"
#include "harness/measure/proc_text.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- what is handed over ---------------------------------------------------------------------- */

static size_t expect_index(const char *figure)
{
	size_t i = 0;
	while (figure_list[i].name &&
		(figure_list[i].kind != ACCEPT_EXPECT || strcmp(figure_list[i].name, figure) != 0))
		i++;
	return i;
}

bool expect_wants(const struct expect *e, const char *figure, const char *place)
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

void expect_text(struct expect *e, const char *figure, const char *place, const char *text)
{
	if (expect_tell(e, figure, place))
		sink_text(e->context->sink, figure, place, text);
}

void expect_number(struct expect *e, const char *figure, const char *place, double value)
{
	if (expect_tell(e, figure, place))
		sink_number(e->context->sink, figure, place, value);
}

void expect_switch(struct expect *e, const char *figure, const char *place, bool on)
{
	expect_text(e, figure, place, on ? "on" : "off");
}

void expect_missing(
	struct expect *e, const char *figure, const char *place, const char *format, ...)
{
	char why[NODE_LINE_BYTES];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(why, sizeof why, format, args);
	va_end(args);
	if (expect_tell(e, figure, place))
		sink_lack(e->context->sink, figure, place, "%s", why);
}

/* Each of a subject's figures that nothing was told of is missing for one reason. */
void expect_rest_missing(struct expect *e, const char *prefix, const char *format, ...)
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

/* Whether the plan asks about any figure whose name begins so. */
static bool expect_wants_any(const struct expect *e, const char *prefix)
{
	for (size_t i = 0; figure_list[i].name; i++)
		if (figure_list[i].kind == ACCEPT_EXPECT &&
			strncmp(figure_list[i].name, prefix, strlen(prefix)) == 0 &&
			expect_wants(e, figure_list[i].name, NULL))
			return true;
	return false;
}

bool expect_told(const struct expect *e, const char *figure)
{
	const size_t index = expect_index(figure);
	return index < EXPECT_FIGURES_MAX && e->told[index];
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
void expect_file_missing(
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
	else if (dmi_is_placeholder(text))
		expect_missing(e, figure, "", "its maker left it at '%.60s'", text);
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
		sink_event(e->context->sink, "node.busy", "", NAN,
			"the busiest, in shares of a core: %s", text);
	else if (busy >= 10 * USER_NAMED_SHARE && seen < busy / 2)
		sink_event(e->context->sink, "node.busy", "", NAN,
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

static void tell_node(struct expect *e)
{
	tell_load_average(e);
	if (expect_wants(e, "node.busy", NULL) || expect_wants(e, "node.steal", NULL) ||
		expect_wants(e, "node.throttled", NULL))
		tell_load_now(e);
}

/* A file with thousandths of a degree; false: it has no temperature of a running machine, as of a sensor that is not
 * connected. */
static bool read_celsius(double *celsius, const char *folder, const char *stem, const char *what)
{
	char line[32];
	char *end;
	if (node_line(line, sizeof line, "%s/%s%s", folder, stem, what))
		return false;
	*celsius = strtod(line, &end) / 1000;
	return end != line && !*end && *celsius > 0 && *celsius < 150;
}

/* ".../hwmon3/temp2_input": "coretemp Core 0 (hwmon3)", or "nvme temp2 (hwmon3)". */
static void tell_sensor(void *context, const char *path)
{
	struct expect *e = context;
	char folder[NODE_PATH_BYTES];
	char chip[48];
	char stem[16];
	char label[48];
	char place[EXPECT_PLACE_BYTES];
	double celsius;
	double critical;
	(void)snprintf(folder, sizeof folder, "%s", path);
	*strrchr(folder, '/') = '\0';
	(void)snprintf(
		stem, sizeof stem, "%.*s", (int)strcspn(node_base(path), "_"), node_base(path));
	if (node_line(chip, sizeof chip, "%s/name", folder))
		(void)snprintf(chip, sizeof chip, "%.40s", node_base(folder));
	if (node_line(label, sizeof label, "%s/%s_label", folder, stem))
		(void)snprintf(label, sizeof label, "%s", stem);
	(void)snprintf(place, sizeof place, "%s %s (%.16s)", chip, label, node_base(folder));
	/* A disk's sensor is the disk itself, which may not answer. */
	sink_activity(e->context->sink, "reading the temperature of %s", place);
	if (!read_celsius(&celsius, folder, stem, "_input"))
		return;
	expect_number(e, "node.temperature", place, celsius);
	if (read_celsius(&critical, folder, stem, "_crit") ||
		read_celsius(&critical, folder, stem, "_max"))
		expect_number(e, "node.temperature_left", place, critical - celsius);
}

static void tell_zone(void *context, const char *path)
{
	struct expect *e = context;
	char kind[48];
	char place[EXPECT_PLACE_BYTES];
	double celsius;
	if (node_line(kind, sizeof kind, "%s/type", path))
		kind[0] = '\0';
	(void)snprintf(place, sizeof place, "%.32s%s%s", node_base(path), kind[0] ? " " : "", kind);
	if (read_celsius(&celsius, path, "temp", ""))
		expect_number(e, "node.temperature", place, celsius);
}

static void tell_temperatures(struct expect *e)
{
	(void)node_each(tell_sensor, e, "%s/sys/class/hwmon/hwmon*/temp[0-9]*_input", e->root);
	if (!expect_told(e, "node.temperature"))
		(void)node_each(tell_zone, e, "%s/sys/class/thermal/thermal_zone*", e->root);
	expect_rest_missing(e, "node.temperature_left",
		"no sensor tells its critical temperature (hwmon): a virtual machine, or no driver");
	expect_rest_missing(e, "node.temperature",
		"neither hwmon nor thermal zones show a temperature: a virtual machine, or no driver");
}

/* --- errors since the node started ------------------------------------------------------------ */

enum {
	ERROR_PLACES_MAX = 64, /* of a class; what is beyond is told in one sum */
	ERROR_EVENTS_MAX = 256,
};

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

/* What kind of error it is, for the finding's sentence. */
static void tell_error_kind(struct expect *e, const char *figure, const char *place,
	const struct error_counter *counter)
{
	if (expect_wants(e, figure, place) && e->error_events++ < ERROR_EVENTS_MAX)
		sink_event(e->context->sink, figure, place, NAN, "%s: %llu%s%s", counter->name,
			(unsigned long long)counter->count,
			counter->evidence[0] ? ", the last: " : "", counter->evidence);
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
		const uint64_t sum = sum_at_place(now, i);
		(void)snprintf(place, sizeof place, "%s%s%s", name, counter->place[0] ? ": " : "",
			counter->place);
		tell_error_kind(e, figure, place, counter);
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

static void tell_error_classes(struct expect *e, unsigned classes)
{
	struct error_counters now;
	if (error_counters_read(e->root, classes, NULL, &now)) {
		expect_rest_missing(e, "errors.", "out of memory");
		return;
	}
	for (int class = 0; class < ERROR_CLASSES; class ++)
		if (classes & ERROR_CLASS_BIT(class)) {
			tell_error_class(e, &now, (enum error_class) class, true);
			tell_error_class(e, &now, (enum error_class) class, false);
		}
	if (now.log_lost)
		sink_note(e->context->sink,
			"the kernel's log has dropped its oldest lines: errors of the time just after the start may be missing in it");
	error_counters_release(&now);
}

static void tell_errors(struct expect *e)
{
	sink_activity(e->context->sink, "reading the counters of hardware errors");
	tell_error_classes(e, ERRORS_QUICK);
	sink_activity(e->context->sink, "asking the GPU driver (NVML) for errors");
	tell_error_classes(e, ERROR_CLASS_BIT(ERRORS_GPU));
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
	{"node.temperature", tell_temperatures},
	{"gpu.", tell_gpus},
	{"errors.", tell_errors},
	{"data.", tell_data},
	{"mount.", tell_data},
};

static int expect_validate(
	const struct accept_plan *plan, const struct accept_check *check, struct error *err)
{
	(void)plan;
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
		if (context->stop && atomic_load(context->stop))
			code = error_set(err, -EINTR, "interrupted");
		else if (check_stopped(context))
			code = error_set(err, -ETIMEDOUT,
				"its time was over before it had looked at everything");
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
	.validate = expect_validate,
	.estimate = expect_estimate,
	.run = expect_run,
};
