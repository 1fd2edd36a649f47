/* Counters of the process, its cgroup and the machine. */
#include "harness/measure/process_usage.h"

#include "harness/base/files.h"
#include "harness/base/memory.h"

#include <malloc.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FILE_LIMIT = 1 << 20 };

static char *read_text(const char *path)
{
	char *text = NULL;
	size_t size;
	return files_read(path, FILE_LIMIT, &text, &size, NULL) == 0 ? text : NULL;
}

/* The number after "name" at the start of a line; NAN when there is none. */
static double number_after(const char *path, const char *name)
{
	char *text = read_text(path);
	double number = NAN;
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, strlen(name)) == 0) {
			number = strtod(line + strlen(name), NULL);
			break;
		}
	}
	free(text);
	return number;
}

/* First line of /proc/stat: user nice system idle iowait irq softirq steal, in ticks. */
static void read_machine(struct process_usage *usage)
{
	enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, KINDS };
	char line[256];
	usage->machine_seconds = usage->steal_seconds = usage->core_seconds = NAN;
	if (files_first_line("/proc/stat", line, sizeof line) || strncmp(line, "cpu ", 4) != 0)
		return;
	const double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
	double seconds[KINDS];
	char *at = line + 4;
	usage->core_seconds = 0;
	for (int i = 0; i < KINDS; i++) {
		seconds[i] = (double)strtoull(at, &at, 10) * tick;
		usage->core_seconds += seconds[i];
	}
	usage->machine_seconds =
		seconds[USER] + seconds[NICE] + seconds[SYSTEM] + seconds[IRQ] + seconds[SOFTIRQ];
	usage->steal_seconds = seconds[STEAL];
}

static void read_heap(struct process_usage *usage)
{
	const struct mallinfo2 info = mallinfo2();
	const double used = (double)info.uordblks + (double)info.hblkhd;
	usage->heap_used_bytes = used > 0 ? used : NAN;
	usage->heap_free_bytes = used > 0 ? (double)info.fordblks : NAN;
}

/* Path of this process's group in a hierarchy: "N:controllers:/path"; v2 has no controllers. */
static bool cgroup_path(const char *controller, char *out, size_t room)
{
	char *text = read_text("/proc/self/cgroup");
	bool found = false;
	char *save = NULL;
	for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line && !found;
		line = strtok_r(NULL, "\n", &save)) {
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = '\0';
		found = *controller ? strstr(controllers + 1, controller) != NULL
				    : controllers[1] == '\0';
		if (found)
			(void)snprintf(out, room, "%s", strcmp(path, "/") == 0 ? "" : path);
	}
	free(text);
	return found;
}

/* Files of the process's own cgroup; in a container its path is often only visible as the root. */
static double cgroup_number(
	const char *mount, const char *controller, const char *file, const char *name)
{
	char path[512];
	char group[256];
	double number = NAN;
	if (cgroup_path(controller, group, sizeof group)) {
		(void)snprintf(path, sizeof path, "%s%s/%s", mount, group, file);
		number = number_after(path, name);
	}
	if (isnan(number)) {
		(void)snprintf(path, sizeof path, "%s/%s", mount, file);
		number = number_after(path, name);
	}
	return number;
}

static double throttled_seconds(void)
{
	const double v2 = cgroup_number("/sys/fs/cgroup", "", "cpu.stat", "throttled_usec ");
	if (!isnan(v2))
		return v2 / 1e6;
	return cgroup_number("/sys/fs/cgroup/cpu", "cpu", "cpu.stat", "throttled_time ") / 1e9;
}

void process_usage_read(struct process_usage *usage)
{
	struct timespec cpu;
	usage->cpu_seconds = clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) == 0
				     ? (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9
				     : NAN;
	usage->disk_bytes = number_after("/proc/self/io", "read_bytes: ");
	read_machine(usage);
	usage->throttled_seconds = throttled_seconds();
	uint64_t file_bytes;
	usage->resident_bytes = (double)memory_resident_split(&file_bytes);
	usage->file_bytes = (double)file_bytes;
	read_heap(usage);
}

uint64_t process_memory_limit(void)
{
	double limit = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
	const double v2 = cgroup_number("/sys/fs/cgroup", "", "memory.max", "");
	const double v1 =
		cgroup_number("/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes", "");
	if (v2 > 0 && v2 < limit)
		limit = v2;
	if (v1 > 0 && v1 < limit)
		limit = v1;
	return (uint64_t)limit;
}
