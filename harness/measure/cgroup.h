/* The control groups of this process, v1 and v2: limits, what a CPU quota costs, and what reads a group lets through.  A
 * limit on any group above the process binds as well (a pod's, a job's, a slice's), so every one that the mounts show
 * counts. */
#ifndef MLBENCH_MEASURE_CGROUP_H
#define MLBENCH_MEASURE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

enum {
	CGROUP_FOLDER_BYTES = 1024,
	CGROUP_GROUP_BYTES = 160, /* of a name that is told */
	CPU_QUOTAS_MAX = 12,      /* groups one in another that may have a quota */
	CGROUP_WHY_BYTES = 96,
};

/* A group that has a CPU quota, or may be given one. */
struct cpu_quota {
	int version; /* 1, 2 */
	/* "/a/b", as /proc/self/cgroup has it; the end of a longer one, behind "..." */
	char group[CGROUP_GROUP_BYTES];
	char folder[CGROUP_FOLDER_BYTES]; /* where its files are */
	double cores;                     /* quota / period; INFINITY: none now */
	double period_s;                  /* NAN with none */
};

/* From the process's own group upwards. */
struct cpu_quotas {
	struct cpu_quota of[CPU_QUOTAS_MAX];
	size_t count;
	char unknown
		[CGROUP_WHY_BYTES]; /* why quotas cannot be seen; "": they can, and these are all */
};

/* cpu.stat of a group, since it was made; NAN: it does not tell. */
struct cpu_quota_use {
	double periods;   /* in which any thread of the group was runnable */
	double throttled; /* of these: in which its quota was used up while threads wanted more */
	/* That it stood still then, summed over the run queues that had threads of it: up to as many times as long as
	 * the time that passed as there are CPUs. */
	double throttled_seconds;
};

/* Of this process. */
void cgroup_cpu_quotas(struct cpu_quotas *out);
/* Again, of a group that was found before; false: it has none, and what was known of one is kept. */
bool cgroup_quota_again(struct cpu_quota *quota);
/* Some 10 us; any thread. */
void cgroup_cpu_use(const struct cpu_quota *quota, struct cpu_quota_use *out);
/* The one with the least cores; NULL: no group has a quota. */
const struct cpu_quota *cgroup_tightest(const struct cpu_quotas *quotas);

/* The tightest limits of this process's groups and those above them; INFINITY: none. */
struct cgroup_limits {
	int version; /* 0: no cgroups, 1, 2 */
	double cores, memory_bytes;
	char memory_group[CGROUP_GROUP_BYTES]; /* that sets it */
	/* v2's memory.high: above it the group is not killed, but loses its page cache all the same. */
	double memory_high_bytes;
	char memory_high_group[CGROUP_GROUP_BYTES];
};
struct cgroup_limits cgroup_limits_now(void);

struct block_number {
	unsigned major, minor;
};

/* The least that groups allow of reads from one of a store's devices. */
struct cgroup_read_limit {
	int version;
	char group[CGROUP_GROUP_BYTES];
	char folder[CGROUP_FOLDER_BYTES];
	struct block_number device;
	double per_s; /* bytes or requests; INFINITY: no group sets a limit */
};
struct cgroup_read_limits {
	struct cgroup_read_limit bytes, requests;
};
/* Of this process.  In v2 a limit on any group above counts; in v1 that of the own group alone: its throttles do not
 * reach below the group that they are set on. */
void cgroup_read_limits(
	const struct block_number *devices, size_t count, struct cgroup_read_limits *out);

/* What the group, with those below it in v2, has read from the device that it limits, since it was made; NAN: not counted. */
struct cgroup_read_use {
	double bytes, requests;
};
/* Some 20 us; any thread. */
void cgroup_read_use(const struct cgroup_read_limit *limit, struct cgroup_read_use *out);

/* The same from the texts of /proc/self/mountinfo and /proc/self/cgroup; a NULL is one that cannot be read. */
void cgroup_cpu_quotas_of(const char *mountinfo, const char *cgroup, struct cpu_quotas *out);
struct cgroup_limits cgroup_limits_of(const char *mountinfo, const char *cgroup);
void cgroup_read_limits_of(const char *mountinfo, const char *cgroup,
	const struct block_number *devices, size_t count, struct cgroup_read_limits *out);

#endif
