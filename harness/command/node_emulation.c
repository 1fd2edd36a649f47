/* Affinity and a control group, put on and taken off again. */
#include "harness/command/node_emulation.h"

#include "harness/base/log.h"
#include "harness/measure/data_store.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { QUOTA_PERIOD_US = 100000, EMULATION_FILE_BYTES = 1152 };

bool node_limits_any(const struct node_limits *limits)
{
	return limits->cores > 0 || limits->quota_cores > 0;
}

const char *node_limits_words(const struct node_limits *limits, char *out, size_t room)
{
	size_t used = 0;
	*out = '\0';
	if (limits->cores > 0)
		used = (size_t)snprintf(
			out, room, "%u core%s", limits->cores, limits->cores == 1 ? "" : "s");
	if (limits->quota_cores > 0 && used < room)
		(void)snprintf(out + used, room - used, "%sa CPU quota of %.3g cores",
			used > 0 ? ", " : "", limits->quota_cores);
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

/* A group below this process's own, so that all limits above it hold as they did. */
static int emulation_group(struct node_emulation *emulation, double cores, struct error *err)
{
	struct cpu_quotas quotas;
	char text[48];
	cgroup_cpu_quotas(&quotas);
	if (quotas.count == 0)
		return error_set(err, -ENOTSUP, "a CPU quota cannot be emulated here: %s",
			*quotas.unknown ? quotas.unknown
					: "this process's control group cannot have one");
	const int version = quotas.of[0].version;
	(void)snprintf(emulation->home, sizeof emulation->home, "%s", quotas.of[0].folder);
	(void)snprintf(emulation->group, sizeof emulation->group, "%s/mlbench-%ld",
		quotas.of[0].folder, (long)getpid());
	if (mkdir(emulation->group, 0755) != 0 && errno != EEXIST)
		return error_set_errno(err, errno,
			"a CPU quota cannot be emulated here: no control group can be made");
	const long us = lround(cores * QUOTA_PERIOD_US);
	if (version == 2)
		(void)snprintf(text, sizeof text, "%ld %d", us, QUOTA_PERIOD_US);
	else
		(void)snprintf(text, sizeof text, "%ld", us);
	int code = emulation_write(
		emulation->group, version == 2 ? "cpu.max" : "cpu.cfs_quota_us", text);
	if (!code)
		code = emulation_move(emulation->group);
	emulation->grouped = code == 0;
	if (!code)
		return 0;
	(void)rmdir(emulation->group);
	return error_set_errno(err, -code,
		"a CPU quota cannot be emulated here: the control group does not take it");
}

int node_emulation_begin(
	struct node_emulation *emulation, const struct node_limits *limits, struct error *err)
{
	*emulation = (struct node_emulation){0};
	int code = limits->cores > 0 ? emulation_pin(emulation, limits->cores, err) : 0;
	if (!code && limits->quota_cores > 0)
		code = emulation_group(emulation, limits->quota_cores, err);
	if (code)
		node_emulation_end(emulation);
	return code;
}

void node_emulation_end(struct node_emulation *emulation)
{
	if (emulation->pinned &&
		sched_setaffinity(0, sizeof emulation->before, &emulation->before) != 0)
		log_warn("the affinity of this process could not be restored");
	if (emulation->grouped) {
		if (emulation_move(emulation->home) != 0)
			log_warn("this process stays under the emulated CPU quota");
		(void)rmdir(emulation->group);
	}
	*emulation = (struct node_emulation){0};
}
