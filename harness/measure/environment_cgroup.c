/* Limits of the control group, v1 or v2.  A limit anywhere above the process binds as well, so the
 * tightest from its group up to the mount counts.  In a container the path in /proc/self/cgroup may
 * lie outside what is mounted: the mount's own root is then the group. */
#include "harness/base/files.h"
#include "harness/measure/environment_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1536, LINE_BYTES = 128, LEVELS_MAX = 64 };

/* A controller's mounted root and this process's group below it. */
struct group_place {
	char root[MOUNT_TEXT_BYTES];
	char folder[PATH_BYTES];
};

static bool is_wanted_mount(const struct mount_entry *mount, const char *controller)
{
	if (controller[0] == '\0')
		return strcmp(mount->type, "cgroup2") == 0;
	if (strcmp(mount->type, "cgroup") != 0)
		return false;
	char options[MOUNT_TEXT_BYTES];
	memcpy(options, mount->super_options, sizeof options);
	for (char *at = options; *at; at++)
		if (*at == ',')
			*at = ' ';
	return parse_has_word(options, controller);
}

static bool find_mount(const char *mountinfo, const char *controller, struct mount_entry *mount)
{
	for (const char *line = mountinfo; line && *line;) {
		if (parse_mount(line, mount) && is_wanted_mount(mount, controller))
			return true;
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return false;
}

static bool find_group(const char *mountinfo, const char *cgroup, const char *controller,
	struct group_place *place)
{
	struct mount_entry mount;
	char path[MOUNT_TEXT_BYTES];
	if (!find_mount(mountinfo, controller, &mount) ||
		!parse_cgroup_path(cgroup, controller, path, sizeof path))
		return false;
	/* The mount may show only the part below its root. */
	const size_t root = strlen(mount.root);
	const char *below = strcmp(mount.root, "/") != 0 && strncmp(path, mount.root, root) == 0
				    ? path + root
				    : path;
	(void)snprintf(place->root, sizeof place->root, "%s", mount.point);
	(void)snprintf(place->folder, sizeof place->folder, "%s%s", mount.point, below);
	if (access(place->folder, F_OK) != 0)
		(void)snprintf(place->folder, sizeof place->folder, "%s", mount.point);
	return true;
}

typedef double read_limit(const char *folder);

/* Least of the limits from the group up to its root. */
static double tightest(const struct group_place *place, read_limit *read)
{
	char folder[PATH_BYTES];
	memcpy(folder, place->folder, sizeof folder);
	double least = INFINITY;
	for (int level = 0; level < LEVELS_MAX && strlen(folder) >= strlen(place->root); level++) {
		least = fmin(least, read(folder)); /* fmin passes over NAN: no such file here */
		char *slash = strrchr(folder, '/');
		if (!slash)
			break;
		*slash = '\0';
	}
	return least;
}

static double read_text_limit(const char *folder, const char *name, double (*parse)(const char *))
{
	char path[PATH_BYTES + 64];
	char line[LINE_BYTES];
	(void)snprintf(path, sizeof path, "%s/%s", folder, name);
	return files_first_line(path, line, sizeof line) == 0 ? parse(line) : NAN;
}

static double cores_v2(const char *folder)
{
	return read_text_limit(folder, "cpu.max", parse_cpu_max);
}

static double memory_v2(const char *folder)
{
	return read_text_limit(folder, "memory.max", parse_memory_max);
}

static double parse_signed(const char *text)
{
	return strtod(text, NULL);
}

static double cores_v1(const char *folder)
{
	const double quota = read_text_limit(folder, "cpu.cfs_quota_us", parse_signed);
	const double period = read_text_limit(folder, "cpu.cfs_period_us", parse_signed);
	return quota > 0 && period > 0 ? quota / period : NAN;
}

static double memory_v1(const char *folder)
{
	return read_text_limit(folder, "memory.limit_in_bytes", parse_memory_max);
}

struct cgroup_limits environment_cgroup_limits(void)
{
	struct cgroup_limits limits = {.cores = INFINITY, .memory_bytes = INFINITY};
	char *mountinfo = environment_text("/proc/self/mountinfo");
	char *cgroup = environment_text("/proc/self/cgroup");
	struct group_place place;
	if (mountinfo && cgroup) {
		if (find_group(mountinfo, cgroup, "", &place)) {
			limits.version = 2;
			limits.cores = tightest(&place, cores_v2);
			limits.memory_bytes = tightest(&place, memory_v2);
		}
		if (find_group(mountinfo, cgroup, "cpu", &place)) {
			limits.version = 1;
			limits.cores = fmin(limits.cores, tightest(&place, cores_v1));
		}
		if (find_group(mountinfo, cgroup, "memory", &place)) {
			limits.version = 1;
			limits.memory_bytes =
				fmin(limits.memory_bytes, tightest(&place, memory_v1));
		}
	}
	free(mountinfo);
	free(cgroup);
	return limits;
}

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

void environment_cgroup(struct fact_list *list)
{
	const struct cgroup_limits limits = environment_cgroup_limits();
	if (limits.version == 0) {
		fact_missing(list, "cgroup", "version", "no control group is mounted");
		fact_missing(list, "cgroup", "cpu_limit", "no control group is mounted");
		fact_missing(list, "cgroup", "memory_limit", "no control group is mounted");
	} else {
		fact_number(list, "cgroup", "version", limits.version, NULL);
		if (isinf(limits.cores))
			fact_text(list, "cgroup", "cpu_limit", "none");
		else
			fact_number(list, "cgroup", "cpu_limit", limits.cores, "cores");
		if (isinf(limits.memory_bytes))
			fact_text(list, "cgroup", "memory_limit", "none");
		else
			fact_number(list, "cgroup", "memory_limit", limits.memory_bytes, "B");
	}
	add_container(list);
}
