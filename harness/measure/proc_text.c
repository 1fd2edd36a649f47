/* Reading /proc and /sys.  The parsing is pure, so that tests feed it what other machines say. */
#include "harness/measure/proc_text.h"

#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/memory.h"
#include "harness/measure/data_store.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* --- texts of the kernel ---------------------------------------------------------------------- */

enum { TEXT_MOST = 4 << 20, OCTAL_DIGITS = 3, V1_NO_LIMIT_BITS = 62 };

int proc_text_at(int folder, char *text, size_t room, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(path, sizeof path, format, args);
	va_end(args);
	text[0] = '\0';
	const int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	const ssize_t size = read(fd, text, room - 1);
	const int code = size < 0 ? -errno : 0;
	(void)close(fd);
	text[size > 0 ? size : 0] = '\0';
	return code;
}

const char *text_next_line(const char *line)
{
	const char *end = strchr(line, '\n');
	return end ? end + 1 : NULL;
}

void text_unescape(char *text)
{
	char *to = text;
	for (const char *from = text; *from; to++) {
		if (from[0] == '\\' && isdigit((unsigned char)from[1]) &&
			isdigit((unsigned char)from[2]) && isdigit((unsigned char)from[3])) {
			const char digits[] = {from[1], from[2], from[3], '\0'};
			*to = (char)strtol(digits, NULL, 8);
			from += 1 + OCTAL_DIGITS;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

bool parse_mount(const char *line, struct mount_entry *entry)
{
	*entry = (struct mount_entry){0};
	if (sscanf(line, "%*u %*u %u:%u %511s %511s %511s", &entry->major, &entry->minor,
		    entry->root, entry->point, entry->options) != 5)
		return false;
	/* Optional fields end at a lone hyphen. */
	const char *end = strchr(line, '\n');
	const char *tail = strstr(line, " - ");
	if (!tail || (end && tail > end) ||
		sscanf(tail + 3, "%63s %511s %511s", entry->type, entry->source,
			entry->super_options) < 2)
		return false;
	text_unescape(entry->root);
	text_unescape(entry->point);
	text_unescape(entry->source);
	return true;
}

bool parse_mount_option(const char *options, const char *name, char *out, size_t room)
{
	const size_t length = strlen(name);
	for (const char *at = options; *at;
		at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
		const size_t size = strcspn(at, ",");
		if (size <= length || strncmp(at, name, length) != 0 || at[length] != '=')
			continue;
		return snprintf(out, room, "%.*s", (int)(size - length - 1), at + length + 1) <
		       (int)room;
	}
	return false;
}

static bool lies_below(const char *path, const char *point)
{
	const size_t length = strlen(point);
	if (strcmp(point, "/") == 0)
		return path[0] == '/';
	return strncmp(path, point, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

bool parse_mount_of(const char *mountinfo, const char *path, struct mount_entry *entry)
{
	size_t longest = 0;
	for (const char *line = mountinfo; line && *line; line = text_next_line(line)) {
		struct mount_entry candidate;
		if (parse_mount(line, &candidate) && lies_below(path, candidate.point) &&
			strlen(candidate.point) >= longest) {
			longest = strlen(candidate.point);
			*entry = candidate;
		}
	}
	return longest > 0;
}

/* Start of the value of `key` on the line that begins with it. */
static const char *find_field(const char *text, const char *key)
{
	const size_t length = strlen(key);
	for (const char *line = text; line && *line; line = text_next_line(line)) {
		if (strncmp(line, key, length) == 0) {
			const char *at = line + length;
			at += strspn(at, " \t");
			if (*at == ':')
				return at + 1 + strspn(at + 1, " \t");
		}
	}
	return NULL;
}

bool parse_field(const char *text, const char *key, char *out, size_t room)
{
	const char *value = find_field(text, key);
	if (!value)
		return false;
	(void)snprintf(out, room, "%.*s", (int)strcspn(value, "\n"), value);
	return true;
}

bool parse_field_number(const char *text, const char *key, double *value)
{
	char field[64];
	char unit[8] = "";
	if (!parse_field(text, key, field, sizeof field) ||
		sscanf(field, "%lf %7s", value, unit) < 1)
		return false;
	if (strcmp(unit, "kB") == 0)
		*value *= 1024;
	return true;
}

double parse_number_after(const char *text, const char *word)
{
	const size_t length = strlen(word);
	for (const char *line = text; line && *line; line = text_next_line(line))
		if (strncmp(line, word, length) == 0 && line[length] == ' ')
			return strtod(line + length, NULL);
	return NAN;
}

bool parse_has_word(const char *list, const char *word)
{
	const size_t length = strlen(word);
	for (const char *at = length ? strstr(list, word) : NULL; at; at = strstr(at + 1, word))
		if ((at == list || isspace((unsigned char)at[-1])) &&
			(at[length] == '\0' || isspace((unsigned char)at[length])))
			return true;
	return false;
}

double parse_cpu_max(const char *text)
{
	double quota;
	double period;
	if (strncmp(text, "max", 3) == 0)
		return INFINITY;
	if (sscanf(text, "%lf %lf", &quota, &period) != 2 || !(quota > 0) || !(period > 0))
		return NAN;
	return quota / period;
}

double parse_memory_max(const char *text)
{
	if (strncmp(text, "max", 3) == 0)
		return INFINITY;
	char *end;
	const double bytes = strtod(text, &end);
	if (end == text || bytes < 0)
		return NAN;
	return bytes >= ldexp(1, V1_NO_LIMIT_BITS) ? INFINITY : bytes;
}

/* Whether "cpu,cpuacct" names the controller. */
static bool lists_controller(const char *from, const char *to, const char *controller)
{
	const size_t length = strlen(controller);
	while (from < to) {
		const char *end = memchr(from, ',', (size_t)(to - from));
		end = end ? end : to;
		if ((size_t)(end - from) == length && strncmp(from, controller, length) == 0)
			return true;
		from = end + 1;
	}
	return length == 0 && from == to;
}

bool parse_cgroup_path(const char *text, const char *controller, char *out, size_t room)
{
	for (const char *line = text; line && *line; line = text_next_line(line)) {
		const char *names = strchr(line, ':');
		const char *path = names ? strchr(names + 1, ':') : NULL;
		if (path && lists_controller(names + 1, path, controller)) {
			(void)snprintf(out, room, "%.*s", (int)strcspn(path + 1, "\n"), path + 1);
			return true;
		}
	}
	return false;
}

void parse_bracketed(const char *text, char *out, size_t room)
{
	const char *open = strchr(text, '[');
	const char *close = open ? strchr(open, ']') : NULL;
	if (close)
		(void)snprintf(out, room, "%.*s", (int)(close - open - 1), open + 1);
	else
		(void)snprintf(out, room, "%s", text);
}

bool parse_cpu_ticks(const char *text, struct cpu_ticks *ticks)
{
	double user;
	double nice;
	double system;
	double idle;
	double iowait = 0;
	double irq = 0;
	double softirq = 0;
	double steal = 0;
	if (sscanf(text, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle,
		    &iowait, &irq, &softirq, &steal) < 4)
		return false;
	*ticks = (struct cpu_ticks){.busy = user + nice + system + irq + softirq,
		.idle = idle + iowait,
		.steal = steal};
	return true;
}

bool parse_core_ticks(const char *text, const cpu_set_t *cores, struct cpu_ticks *ticks)
{
	static const char cpu[] = "cpu";
	bool any = false;
	*ticks = (struct cpu_ticks){0};
	for (const char *line = text; line && strncmp(line, cpu, strlen(cpu)) == 0;
		line = text_next_line(line)) {
		char whole[256] = "cpu ";
		char *end;
		struct cpu_ticks one;
		const unsigned long core = strtoul(line + strlen(cpu), &end, 10);
		if (end == line + strlen(cpu) || *end != ' ' || line[strlen(cpu)] == ' ' ||
			!CPU_ISSET(core, cores))
			continue;
		(void)snprintf(whole + strlen(whole), sizeof whole - strlen(whole), "%.200s", end);
		if (!parse_cpu_ticks(whole, &one))
			continue;
		ticks->busy += one.busy;
		ticks->idle += one.idle;
		ticks->steal += one.steal;
		any = true;
	}
	return any;
}

bool proc_cpu_ticks(const char *root, struct cpu_ticks *ticks)
{
	char path[PATH_MAX];
	char line[256];
	(void)snprintf(path, sizeof path, "%s/proc/stat", root);
	return files_first_line(path, line, sizeof line) == 0 && parse_cpu_ticks(line, ticks);
}

/* --- sets of CPUs ------------------------------------------------------------------------------ */

void format_cpu_set(const cpu_set_t *set, size_t size, size_t most, char *text, size_t room)
{
	enum { RANGE_BYTES = 24 };
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

static atomic_uint cpus_emulated;

/* A mask is a thread's own, so one that ends at once is asked to run anywhere: the kernel leaves what cpusets allow. */
static void *cpus_ask(void *count)
{
	cpu_set_t cpus;
	memset(&cpus, 0xff, sizeof cpus);
	if (sched_setaffinity(0, sizeof cpus, &cpus) == 0 &&
		sched_getaffinity(0, sizeof cpus, &cpus) == 0)
		*(unsigned *)count = (unsigned)CPU_COUNT(&cpus);
	return NULL;
}

unsigned cpus_reachable(void)
{
	unsigned count = atomic_load(&cpus_emulated);
	pthread_t thread;
	if (count == 0 && pthread_create(&thread, NULL, cpus_ask, &count) == 0)
		(void)pthread_join(thread, NULL);
	return count;
}

void cpus_emulate(unsigned emulated)
{
	atomic_store(&cpus_emulated, emulated);
}

/* --- asked of the node ------------------------------------------------------------------------ */

char *proc_text(const char *path)
{
	char *text = NULL;
	size_t size;
	struct error err;
	return files_read(path, TEXT_MOST, &text, &size, &err) == 0 ? text : NULL;
}

/* The path itself, or its nearest parent that exists, absolute. */
static int proc_resolve(const char *path, char out[PATH_MAX])
{
	char at[PATH_MAX];
	if (snprintf(at, sizeof at, "%s", path) >= (int)sizeof at)
		return -ENAMETOOLONG;
	while (!realpath(at, out)) {
		if (errno != ENOENT && errno != ENOTDIR)
			return -errno;
		char *slash = strrchr(at, '/');
		if (slash == at && at[1] != '\0')
			at[1] = '\0';
		else if (slash && slash != at)
			*slash = '\0';
		else if (strcmp(at, ".") != 0)
			(void)snprintf(at, sizeof at, ".");
		else
			return -ENOENT;
	}
	return 0;
}

const char *proc_mount_why(int code)
{
	return code == -EREMOTE ? "a server is read without a mount" : strerror(-code);
}

int proc_mount_of(const char *path, struct mount_entry *entry)
{
	char resolved[PATH_MAX];
	const int code = strstr(path, "://") ? -EREMOTE : proc_resolve(path, resolved);
	if (code)
		return code;
	char *mountinfo = proc_text("/proc/self/mountinfo");
	if (!mountinfo)
		return -ENOSYS;
	const bool found = parse_mount_of(mountinfo, resolved, entry);
	free(mountinfo);
	return found ? 0 : -ENOENT;
}

/* --- the process and the machine -------------------------------------------------------------- */

static void read_machine(struct process_usage *usage, const cpu_set_t *cores)
{
	const double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
	struct cpu_ticks node = {NAN, NAN, NAN};
	struct cpu_ticks ticks;
	char *const text = proc_text("/proc/stat");
	if (text)
		(void)parse_cpu_ticks(text, &node);
	if (!text || !cores || !parse_core_ticks(text, cores, &ticks))
		ticks = node;
	free(text);
	usage->elsewhere_seconds = (node.busy - ticks.busy) * tick;
	usage->machine_seconds = ticks.busy * tick;
	usage->steal_seconds = ticks.steal * tick;
	usage->core_seconds = (ticks.busy + ticks.idle + ticks.steal) * tick;
}

static void read_heap(struct process_usage *usage)
{
	const struct mallinfo2 info = mallinfo2();
	const double used = (double)info.uordblks + (double)info.hblkhd;
	usage->heap_used_bytes = used > 0 ? used : NAN;
	usage->heap_free_bytes = used > 0 ? (double)info.fordblks : NAN;
}

void process_usage_read(struct process_usage *usage, const cpu_set_t *cores)
{
	struct timespec cpu;
	usage->cpu_seconds = clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) == 0
				     ? (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9
				     : NAN;
	struct rusage used;
	const bool told = getrusage(RUSAGE_SELF, &used) == 0;
	usage->system_seconds =
		told ? (double)used.ru_stime.tv_sec + 1e-6 * (double)used.ru_stime.tv_usec : NAN;
	usage->switches = told ? (double)used.ru_nivcsw : NAN;
	char *io = proc_text("/proc/self/io");
	usage->disk_bytes = parse_number_after(io, "read_bytes:");
	free(io);
	read_machine(usage, cores);
	uint64_t file_bytes;
	usage->resident_bytes = (double)memory_resident_split(&file_bytes);
	usage->file_bytes = (double)file_bytes;
	read_heap(usage);
}

uint64_t process_memory_limit(void)
{
	const double all = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
	const double allowed = cgroup_limits_now().memory_bytes;
	return (uint64_t)(allowed > 0 && allowed < all ? allowed : all);
}

/* --- delay accounting of a thread ------------------------------------------------------------- */

enum {
	FIELD_STATE = 3, /* the first after the name in brackets, which may hold anything */
	FIELD_IO_DELAY = 42,
	LINE_BYTES = 1024,
};

const char *io_delay_unavailable(void)
{
	uint64_t on = 0;
	if (files_number("/proc/sys/kernel/task_delayacct", &on))
		return "no delay accounting: this kernel has no kernel.task_delayacct";
	return on ? NULL : "no delay accounting: kernel.task_delayacct is 0";
}

int io_delay_open(void)
{
	return open("/proc/thread-self/stat", O_RDONLY | O_CLOEXEC);
}

bool io_delay_parse(const char *line, uint64_t *ticks)
{
	const char *at = strrchr(line, ')');
	for (int field = FIELD_STATE; at && field <= FIELD_IO_DELAY; field++)
		at = strchr(at + 1, ' ');
	if (!at || at[1] < '0' || at[1] > '9')
		return false;
	*ticks = strtoull(at + 1, NULL, 10);
	return true;
}

bool io_delay_read(int file, uint64_t *ns)
{
	char line[LINE_BYTES];
	const ssize_t size = pread(file, line, sizeof line - 1, 0);
	if (size <= 0)
		return false;
	line[size] = '\0';
	uint64_t ticks;
	if (!io_delay_parse(line, &ticks))
		return false;
	*ns = ticks * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
	return true;
}
