/* The store: what control groups allow and count, and what the disk under the data counts. */
#ifndef MLBENCH_MEASURE_DATA_STORE_H
#define MLBENCH_MEASURE_DATA_STORE_H

#include "harness/measure/proc_text.h"
#include "harness/record/measurement.h"

#include <stdbool.h>
#include <stddef.h>

/* --- control groups --------------------------------------------------------------------------- */

/* The control groups of this process, v1 and v2: limits, what a CPU quota costs, and what reads a group lets through.  A
 * limit on any group above the process binds as well (a pod's, a job's, a slice's), so every one that the mounts show
 * counts. */

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

/* A group's quota now, and its cpu.stat since it was made; NAN: it does not tell. */
struct cpu_quota_use {
	double cores;     /* as of cpu_quota, now */
	double seconds;   /* CPU time of all in the group (v1: where cpuacct is mounted with cpu) */
	double periods;   /* in which any thread of the group was runnable */
	double throttled; /* of these: in which its quota was used up while threads wanted more */
	/* That it stood still then, summed over the run queues that had threads of it: up to as many times as long as
	 * the time that passed as there are CPUs. */
	double throttled_seconds;
};

/* Of this process. */
void cgroup_cpu_quotas(struct cpu_quotas *out);
/* Some 20 us; any thread. */
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

/* The folder of this process's own memory group, and the version of its hierarchy; 0: it has none that is mounted here. */
int cgroup_memory_folder(char out[CGROUP_FOLDER_BYTES]);

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
enum { READ_LIMIT_WORDS_BYTES = 80 };
/* "19.1 MiB/s", "19.1 MiB/s and 100 requests/s"; "": no group sets a limit. */
const char *cgroup_read_limit_words(
	const struct cgroup_read_limits *limits, char out[READ_LIMIT_WORDS_BYTES]);
/* Whether this process's groups limit reads from any disk of the node; looks at no file system. */
bool cgroup_limits_reads(void);
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
int cgroup_memory_folder_of(
	const char *mountinfo, const char *cgroup, char out[CGROUP_FOLDER_BYTES]);
void cgroup_read_limits_of(const char *mountinfo, const char *cgroup,
	const struct block_number *devices, size_t count, struct cgroup_read_limits *out);

/* --- the disk under the data ------------------------------------------------------------------ */

enum { BLOCK_DEVICES_MAX = 32, BLOCK_FOLDER_BYTES = 1024 };

/* The whole disk, since a partition has no queue of its own, nor a limit. */
struct block_disk {
	char name[NAME_BYTES];           /* "nvme0n1"; "": why has the reason */
	char folder[BLOCK_FOLDER_BYTES]; /* in /sys */
	/* Itself, and the disks below it where it is made of others (dm, md): a limit on any of them counts. */
	struct block_number numbers[BLOCK_DEVICES_MAX];
	size_t count;
	char why[STORE_WHY_BYTES];
};

struct data_store {
	char type[NAME_BYTES];             /* of the mount: "ext4"; "": not known */
	char point[MOUNT_TEXT_BYTES];      /* where it is mounted */
	char server[NETWORK_SERVER_BYTES]; /* address of an NFS mount's; "": not known */
	unsigned server_port;
	struct block_disk disk;
	struct cgroup_read_limits limits; /* as they were when it was found */
};

/* Counts since the machine started; NAN: not told. */
struct data_store_use {
	/* Of the disk, by whoever reads: requests, bytes, seconds that they took together, seconds in which it had any. */
	double reads, bytes, read_seconds, busy_seconds;
	/* What the groups with a limit read: of the limit of bytes, and of that of requests. */
	double limited_bytes, limited_requests;
};

void block_disk_find(const struct mount_entry *mount, struct block_disk *out);
/* The same with another folder than /sys/dev/block, for tests. */
void block_disk_find_in(
	const char *dev_block, const struct mount_entry *mount, struct block_disk *out);

void data_store_find(const char *path, struct data_store *out);
/* Whether /proc/self/io has what is fetched from it: file systems in user space and those of a virtual machine's host count
 * nothing, so that all would seem to come from the page cache. */
bool data_store_counts_fetches(const struct data_store *store);
/* Whether it is mounted from an NFS server by the kernel (mountstats.h). */
bool data_store_is_nfs(const struct data_store *store);
/* Some 10 us, 30 with a limit; any thread. */
void data_store_read(const struct data_store *store, struct data_store_use *out);
/* Of the seconds between two looks.  now: the limits as they are at the end; one that is another by then is left out. */
void data_store_between(const struct data_store *store, const struct cgroup_read_limits *now,
	const struct data_store_use *from, const struct data_store_use *to, double seconds,
	struct store_measurement *out);

#endif
