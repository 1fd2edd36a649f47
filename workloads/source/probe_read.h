/* What the storage under a folder gives: bytes/s, requests/s and latency over requests in flight, sizes,
 * and state of the page cache (cold past it, cold through it, warm).  Reads are at random offsets of
 * scratch files written for the purpose, which lose their names as soon as they are open: they vanish
 * with the process, however it ends. */
#ifndef MLBENCH_WORKLOADS_SOURCE_PROBE_READ_H
#define MLBENCH_WORKLOADS_SOURCE_PROBE_READ_H

#include "harness/measure/node_probes.h"
#include "workloads/dataset/dataset.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROBE_DEPTHS_MAX = 7, PROBE_SIZES_MAX = 3, PROBE_DEPTH_MOST = 64 };

struct probe_read_plan {
	const char *folder;              /* the scratch files go here */
	uint64_t cold_bytes, warm_bytes; /* of the scratch files, at most; warm 0: no warm reads */
	uint64_t write_ns; /* time to write them in, at most; what is there by then is read */
	unsigned depths[PROBE_DEPTHS_MAX]; /* each at most PROBE_DEPTH_MOST */
	size_t depth_count;
	uint64_t sizes[PROBE_SIZES_MAX]; /* bytes a request, multiples of READ_ALIGN_BYTES */
	size_t size_count;
	bool without_uring; /* threads of pread in any case */
	bool small_pages;   /* into 4 KiB pages, as read.huge_pages = off has it */
	uint64_t seed;      /* of offsets and order */
};

/* The scratch files, and slots of reading them.  What is worth a note goes to the sheet.  plan, control and sheet
 * stay. */
struct probe_reads;
int probe_reads_open(struct probe_reads **out, const struct probe_read_plan *plan,
	const struct probe_control *control, struct ceilings *sheet, struct error *err);
void probe_reads_close(struct probe_reads *reads); /* NULL is fine */

/* Cold past the page cache (O_DIRECT), cold through it (emptied before the slot, which is proved), warm. */
enum probe_cache { PROBE_DIRECT, PROBE_COLD, PROBE_WARM, PROBE_CACHES };

/* One slot of reads of plan->sizes[size]; NAN: stopped, or too few came back.  -ENOTSUP: no O_DIRECT; -EBUSY: the page
 * cache cannot be emptied; -EIO ...: a read failed; -ETIMEDOUT: one never came back, and none is tried again. */
int probe_reads_slot(struct probe_reads *reads, enum probe_cache state, size_t size, unsigned depth,
	double *requests_per_s, double *latency_ns, struct error *err);
/* What it reads into: "transparent huge pages".  Rates into 4 KiB pages are a fraction of those. */
const char *probe_reads_pages(const struct probe_reads *reads);
/* What control groups of this process allow of reads from there, as "19.1 MiB/s"; "": they set no limit. */
const char *probe_reads_limit(const struct probe_reads *reads);
/* How long a slot takes that is asked to take slot_ns: longer where a control group limits reads, so as to meet the
 * limit. */
uint64_t probe_reads_slot_ns(const struct probe_reads *reads, uint64_t slot_ns);
/* Writes so many bytes of the cold file anew and syncs them: bytes/s of both together; NAN: stopped. */
int probe_reads_write(
	struct probe_reads *reads, uint64_t bytes, double *bytes_per_s, struct error *err);

/* Fills reads, engine and scratch_bytes.  -ENOSPC, -EROFS, -EACCES ...: there is no place for the
 * scratch files; err has the reason. */
int probe_read(const struct probe_read_plan *plan, const struct probe_control *control,
	struct ceilings *out, struct error *err);

/* What reading files of the data set gives that this probe has not read, and what the same files give when they
 * are evicted from this node and read again: where the first is slower, a cache below this node (of a host, an
 * array, a server) holds what was written or read before, the scratch file included.  Up to bytes_most of them,
 * chosen at random, on 8 threads.  Fills first_read_*; what cannot be had is a line of missing. */
int probe_first_reads(const struct dataset *dataset, uint64_t bytes_most,
	const struct probe_control *control, struct ceilings *out, struct error *err);

/* --- within probe_read.c, but for tests --- */

/* One quantity in one round: what is to be read, and what came of it. */
struct read_slot {
	int fd;
	uint64_t request_bytes;
	const uint32_t *order; /* (order_count): blocks of request_bytes, in the order of reading */
	uint32_t order_count;
	uint32_t next; /* place in order; goes on where the last slot ended */
	bool wraps;    /* else it ends when every block was read once */
	unsigned depth;
	uint64_t end_ns;
	const struct probe_control *control;

	uint64_t requests;                 /* counted */
	double requests_per_s, latency_ns; /* NAN: too few were done */
};

/* The offset of the next request; false: the slot is over. */
bool read_slot_next(struct read_slot *slot, uint32_t *taken, uint64_t *offset);

/* What came back in a slot. */
struct read_tally {
	uint64_t begin_ns, first_ns, last_ns; /* of the slot, its first burst, and its last */
	uint64_t first_count, count;          /* in the first burst, and after it */
};

/* Requests per second.  The first burst only starts the count, as it waited for nothing before it; but
 * where it came late (this process was kept from looking), what follows it at once did not take so
 * little, and all are counted from the beginning.  NAN: too few came back. */
double read_tally_rate(const struct read_tally *tally);

#endif
