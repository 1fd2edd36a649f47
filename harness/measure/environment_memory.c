/* Memory: how much, its pages, and how much may be locked. */
#include "harness/base/files.h"
#include "harness/measure/environment_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

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
	char *meminfo = environment_text("/proc/meminfo");
	for (size_t i = 0; i < sizeof memory_fields / sizeof *memory_fields; i++) {
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

void environment_memory(struct fact_list *list)
{
	add_meminfo(list);
	add_transparent(list);
	add_memlock(list);
	fact_number(list, "memory", "page_size", (double)sysconf(_SC_PAGESIZE), "B");
}
