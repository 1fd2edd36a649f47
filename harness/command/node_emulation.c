/* Affinity and a control group, put on and taken off again. */
#include "harness/command/node_emulation.h"

#include "harness/base/log.h"
#include "harness/base/units.h"
#include "harness/measure/data_store.h"
#include "harness/measure/proc_text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { QUOTA_PERIOD_US = 100000, EMULATION_FILE_BYTES = 1152, EMULATION_MEMORY_LEAST = 64 << 20 };

bool node_limits_any(const struct node_limits *limits)
{
	return limits->cores > 0 || limits->quota_cores > 0 || limits->memory_bytes > 0;
}

const char *node_limits_words(const struct node_limits *limits, char *out, size_t room)
{
	char bytes[UNITS_BYTES];
	size_t used = 0;
	*out = '\0';
	if (limits->cores > 0)
		used = (size_t)snprintf(
			out, room, "%u core%s", limits->cores, limits->cores == 1 ? "" : "s");
	if (limits->quota_cores > 0 && used < room)
		used += (size_t)snprintf(out + used, room - used, "%sa CPU quota of %s cores",
			used > 0 ? ", " : "", UNITS_PLAIN(limits->quota_cores, 3));
	if (limits->memory_bytes > 0 && used < room)
		(void)snprintf(out + used, room - used, "%s%s of memory", used > 0 ? ", " : "",
			units_format_size((double)limits->memory_bytes, bytes));
	return out;
}

/* The first of those that this thread may use. */
static int emulation_pin(struct node_emulation *emulation, unsigned cores, struct error *err)
{
	cpu_set_t some;
	unsigned taken = 0;
	if (sched_getaffinity(0, sizeof emulation->before, &emulation->before) != 0)
		return error_set_errno(err, errno, "cannot read the affinity of this process");
	if (cores > (unsigned)CPU_COUNT(&emulation->before))
		return error_set(err, -EINVAL,
			"%u cores cannot be emulated: this process may use %d", cores,
			CPU_COUNT(&emulation->before));
	CPU_ZERO(&some);
	for (size_t core = 0; core < CPU_SETSIZE && taken < cores; core++)
		if (CPU_ISSET(core, &emulation->before)) {
			CPU_SET(core, &some);
			taken++;
		}
	if (sched_setaffinity(0, sizeof some, &some) != 0)
		return error_set_errno(err, errno, "cannot run on %u cores", cores);
	emulation->pinned = true;
	cpus_emulate(cores);
	return 0;
}

static int emulation_write(const char *folder, const char *file, const char *text)
{
	char path[EMULATION_FILE_BYTES];
	(void)snprintf(path, sizeof path, "%s/%s", folder, file);
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	const ssize_t written = write(fd, text, strlen(text));
	const int code = written < 0 ? -errno : 0;
	(void)close(fd);
	return code;
}

static int emulation_move(const char *folder)
{
	char pid[16];
	(void)snprintf(pid, sizeof pid, "%ld", (long)getpid());
	return emulation_write(folder, "cgroup.procs", pid);
}

/* A group below `home`, this process's own, so that all limits above it hold as they did. */
static int emulation_enter(struct emulation_group *group, const char *what, const char *home,
	const char *file, const char *limit, struct error *err)
{
	(void)snprintf(group->home, sizeof group->home, "%s", home);
	(void)snprintf(group->path, sizeof group->path, "%s/mlbench-%ld", home, (long)getpid());
	if (mkdir(group->path, 0755) != 0 && errno != EEXIST) {
		group->path[0] = '\0';
		return error_set_errno(err, errno,
			"%s cannot be emulated here: no control group can be made", what);
	}
	int code = emulation_write(group->path, file, limit);
	if (!code)
		code = emulation_move(group->path);
	if (!code)
		return 0;
	(void)rmdir(group->path);
	group->path[0] = '\0';
	return error_set_errno(
		err, -code, "%s cannot be emulated here: the control group does not take it", what);
}

static int emulation_quota(struct emulation_group *group, double cores, struct error *err)
{
	struct cpu_quotas quotas;
	char text[48];
	cgroup_cpu_quotas(&quotas);
	if (quotas.count == 0)
		return error_set(err, -ENOTSUP, "a CPU quota cannot be emulated here: %s",
			*quotas.unknown ? quotas.unknown
					: "this process's control group cannot have one");
	const bool v2 = quotas.of[0].version == 2;
	const long us = lround(cores * QUOTA_PERIOD_US);
	if (v2)
		(void)snprintf(text, sizeof text, "%ld %d", us, QUOTA_PERIOD_US);
	else
		(void)snprintf(text, sizeof text, "%ld", us);
	return emulation_enter(group, "a CPU quota", quotas.of[0].folder,
		v2 ? "cpu.max" : "cpu.cfs_quota_us", text, err);
}

/* v2 has one hierarchy: where a quota is emulated, too, one group has both limits. */
static int emulation_memory(struct node_emulation *emulation, uint64_t bytes, struct error *err)
{
	static const char what[] = "a limit of memory";
	char home[CGROUP_FOLDER_BYTES];
	char text[32];
	const int version = cgroup_memory_folder(home);
	const char *file = version == 2 ? "memory.max" : "memory.limit_in_bytes";
	(void)snprintf(text, sizeof text, "%" PRIu64, bytes);
	if (bytes < EMULATION_MEMORY_LEAST)
		return error_set(err, -ENOTSUP,
			"%s of less than 64 MiB cannot be emulated: the program itself takes as much",
			what);
	if (version == 0)
		return error_set(err, -ENOTSUP,
			"%s cannot be emulated here: this process's memory control group is not mounted",
			what);
	if (version == 1 || !emulation->quota.path[0])
		return emulation_enter(&emulation->memory, what, home, file, text, err);
	const int code = emulation_write(emulation->quota.path, file, text);
	return code ? error_set_errno(err, -code,
			      "%s cannot be emulated here: the control group does not take it",
			      what)
		    : 0;
}

int node_emulation_begin(
	struct node_emulation *emulation, const struct node_limits *limits, struct error *err)
{
	*emulation = (struct node_emulation){0};
	int code = limits->cores > 0 ? emulation_pin(emulation, limits->cores, err) : 0;
	if (!code && limits->quota_cores > 0)
		code = emulation_quota(&emulation->quota, limits->quota_cores, err);
	if (!code && limits->memory_bytes > 0)
		code = emulation_memory(emulation, limits->memory_bytes, err);
	if (code)
		node_emulation_end(emulation);
	return code;
}

static void emulation_leave(const struct emulation_group *group, const char *what)
{
	if (!group->path[0])
		return;
	if (emulation_move(group->home) != 0)
		log_warn("this process stays under the emulated %s", what);
	/* v1: what it read leaves the page cache, and the group leaves nothing behind. */
	(void)emulation_write(group->path, "memory.force_empty", "0");
	(void)rmdir(group->path);
}

void node_emulation_end(struct node_emulation *emulation)
{
	if (emulation->pinned)
		cpus_emulate(0);
	if (emulation->pinned &&
		sched_setaffinity(0, sizeof emulation->before, &emulation->before) != 0)
		log_warn("the affinity of this process could not be restored");
	emulation_leave(&emulation->memory, "limit of memory");
	emulation_leave(&emulation->quota, "CPU quota");
	*emulation = (struct node_emulation){0};
}
