/* Counters of the process and the machine. */
#include "harness/measure/process_usage.h"

#include "harness/base/files.h"
#include "harness/base/memory.h"
#include "harness/measure/cgroup.h"
#include "harness/measure/proc_text.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The number after "name" at the start of a line; NAN when there is none. */
static double number_after(const char *path, const char *name)
{
	char *text = proc_text(path);
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

void process_usage_read(struct process_usage *usage)
{
	struct timespec cpu;
	usage->cpu_seconds = clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) == 0
				     ? (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9
				     : NAN;
	usage->disk_bytes = number_after("/proc/self/io", "read_bytes: ");
	read_machine(usage);
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
