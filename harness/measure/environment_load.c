/* What else the node is doing at this moment. */
#include "harness/base/files.h"
#include "harness/measure/environment_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	char line[256];
	struct cpu_ticks ticks;
	if (files_first_line("/proc/stat", line, sizeof line) == 0 &&
		parse_cpu_ticks(line, &ticks) && ticks.busy + ticks.idle + ticks.steal > 0)
		fact_number(list, "load", "steal_since_boot",
			ticks.steal / (ticks.busy + ticks.idle + ticks.steal), "share");
	else
		fact_missing(list, "load", "steal_since_boot", "/proc/stat cannot be read");
}

void environment_load(struct fact_list *list)
{
	add_loadavg(list);
	add_steal(list);
	environment_line(list, "load", "pressure_cpu", "/proc/pressure/cpu");
	environment_line(list, "load", "pressure_memory", "/proc/pressure/memory");
	environment_line(list, "load", "pressure_io", "/proc/pressure/io");
}
