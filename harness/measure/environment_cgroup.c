/* Facts of the control groups: their limits, and the container around them. */
#include "harness/base/files.h"
#include "harness/measure/cgroup.h"
#include "harness/measure/environment_parts.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINE_BYTES = 128 };

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
	for (size_t i = 0; i < sizeof names / sizeof names[0] && !least; i++)
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

void environment_cgroup(struct fact_list *list)
{
	static const char *const names[] = {"version", "memory_limit", "memory_limit_group",
		"memory_high", "memory_high_group"};
	const struct cgroup_limits limits = cgroup_limits_now();
	for (size_t i = 0; i < sizeof names / sizeof names[0] && limits.version == 0; i++)
		fact_missing(list, "cgroup", names[i], "no control group is mounted");
	if (limits.version > 0) {
		fact_number(list, "cgroup", names[0], limits.version, NULL);
		add_memory_limit(
			list, names[1], names[2], limits.memory_bytes, limits.memory_group);
		add_memory_limit(list, names[3], names[4], limits.memory_high_bytes,
			limits.memory_high_group);
	}
	add_cpu_limit(list);
	add_container(list);
}
