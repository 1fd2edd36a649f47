/* The parts of the read probe: its scratch files, and two ways to keep requests in flight.  Internal
 * to workloads/source, but for tests. */
#ifndef MLBENCH_WORKLOADS_SOURCE_PROBE_READ_PARTS_H
#define MLBENCH_WORKLOADS_SOURCE_PROBE_READ_PARTS_H

#include "workloads/source/probe_read.h"

/* A file without a name. */
struct scratch_file {
	int fd;         /* -1: closed */
	int direct_fd;  /* with O_DIRECT; negative errno: the file system has none */
	uint64_t bytes; /* of random content, on the disk */
};

/* Writes up to `bytes`, at most a tenth of what is free, until write_end_ns; at least `least`, or
 * -ENOSPC or -ETIMEDOUT.  -EINTR: stopped. */
int scratch_open(struct scratch_file *file, const char *folder, uint64_t bytes, uint64_t least,
	uint64_t write_end_ns, const struct probe_control *control, struct error *err);
void scratch_close(struct scratch_file *file); /* safe on one that was not opened, with fd = -1 */

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

/* Room for PROBE_DEPTH_MOST requests of `each` bytes; borrowed. */
struct read_buffers {
	uint8_t *bytes;
	size_t each;
};

/* One ring, one thread. */
struct read_ring;
int read_ring_open(struct read_ring **out, const struct read_buffers *buffers, struct error *err);
/* -EIO and the like: a request failed.  -ETIMEDOUT: one did not come back in time: the ring is lost, and
 * the kernel may still write to the buffers. */
int read_ring_run(struct read_ring *ring, struct read_slot *slot, struct error *err);
bool read_ring_lost(const struct read_ring *ring);
void read_ring_close(struct read_ring *ring); /* NULL is fine */

/* A thread of pread for each request in flight. */
int read_threads_run(const struct read_buffers *buffers, struct read_slot *slot, struct error *err);

#endif
