/* What the kernel's NFS client counts of a mount, from the text of /proc/self/mountstats: statvers
 * 1.0 and 1.1, NFSv3 to 4.2 (mountstats(8) and nfsiostat(8) say what its numbers mean).  Pure
 * functions on texts.
 *
 * All counts are since the mount was made, of whoever used it, and mounts of one export share them;
 * so two looks are compared.  Whatever is not as expected is a reason why there are no counts,
 * never a count of 0: of an unreadable first look every call since the mount would seem to be of
 * this run. */
#ifndef MLBENCH_MEASURE_MOUNTSTATS_H
#define MLBENCH_MEASURE_MOUNTSTATS_H

#include "harness/record/measurement.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MOUNTSTATS_PATH "/proc/self/mountstats"

/* Kinds of calls that were called at all; NFSv4.2 has about 70. */
enum { MOUNTSTATS_KINDS_MAX = 64 };

/* The order is that of the numbers in the text. */
enum mountstats_count {
	MOUNTSTATS_CALLS,
	MOUNTSTATS_SENT, /* calls, and those that were sent again */
	MOUNTSTATS_TIMEOUTS,
	MOUNTSTATS_BYTES_SENT,
	MOUNTSTATS_BYTES_RECEIVED,
	MOUNTSTATS_QUEUE_MS,
	MOUNTSTATS_ROUND_TRIP_MS,
	MOUNTSTATS_EXECUTE_MS,
	MOUNTSTATS_COUNTS
};

struct mountstats_kind {
	char name[NAME_BYTES];
	uint64_t counts[MOUNTSTATS_COUNTS];
};

/* One look. */
struct mountstats {
	char why[STORE_WHY_BYTES]; /* why nothing below is known; "": it is */
	char protocol[NAME_BYTES]; /* "NFSv4.2" */
	char server[NETWORK_SERVER_BYTES];
	uint64_t age_s;         /* of the mount */
	uint64_t request_bytes; /* rsize; 0: not said */
	unsigned connections;   /* nconnect, and those to more addresses */
	struct mountstats_kind kinds[MOUNTSTATS_KINDS_MAX];
	size_t kind_count;
};

/* The mount at a mount point (as struct mount_entry has it), the last of several. */
void mountstats_parse(const char *text, const char *point, struct mountstats *out);
/* The same of a file (MOUNTSTATS_PATH, but for tests).  Some 100 us an NFS mount; any thread. */
void mountstats_read(const char *path, const char *point, struct mountstats *out);
/* Of the seconds between two looks. */
void mountstats_between(const struct mountstats *from, const struct mountstats *to, double seconds,
	struct network_measurement *out);

#endif
