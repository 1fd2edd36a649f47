/* The store that the data lies on, as the kernel knows it: the disk under the mount, what it counts there, and what control
 * groups let through.  A network mount, FUSE, tmpfs or overlay shows no disk: then words say why.
 *
 * What the kernel knows of the data's store is looked at with every window
 * (harness/measure/data_store.h): the counts of the whole disk under the mount (requests and
 * bytes after merging, time of a request, share of the time that it had any), and the limits of
 * control groups on reads from it or from a disk below it (dm, md), with what the group itself
 * read: v1 blkio.throttle of the job's own group, since throttles of v1 do not reach below
 * theirs, and v2 io.max of its group and all above. NFS, FUSE, overlay and tmpfs have no disk:
 * store.device is null and says why. The disk counts everybody's reads, and only those that the
 * page cache did not serve. The mount's type and options are in the environment. A limit that is
 * another one at the end is left out, with a note. */
#ifndef MLBENCH_MEASURE_DATA_STORE_H
#define MLBENCH_MEASURE_DATA_STORE_H

#include "harness/measure/cgroup.h"
#include "harness/record/measurement.h"

#include <stdbool.h>
#include <stddef.h>

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
	char type[NAME_BYTES]; /* of the mount: "ext4"; "": not known */
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

struct mount_entry;
void block_disk_find(const struct mount_entry *mount, struct block_disk *out);
/* The same with another folder than /sys/dev/block, for tests. */
void block_disk_find_in(
	const char *dev_block, const struct mount_entry *mount, struct block_disk *out);

void data_store_find(const char *path, struct data_store *out);
/* Whether /proc/self/io has what is fetched from it: file systems in user space and those of a virtual machine's host count
 * nothing, so that all would seem to come from the page cache. */
bool data_store_counts_fetches(const struct data_store *store);
/* Some 10 us, 30 with a limit; any thread. */
void data_store_read(const struct data_store *store, struct data_store_use *out);
/* Of the seconds between two looks.  now: the limits as they are at the end; one that is another by then is left out. */
void data_store_between(const struct data_store *store, const struct cgroup_read_limits *now,
	const struct data_store_use *from, const struct data_store_use *to, double seconds,
	struct store_measurement *out);

#endif
