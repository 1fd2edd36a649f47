/* What the links between ranks give: the leader says which pairs of ranks talk at the same time, they stream to each other and
 * send a small message to and fro, and answer what they saw.
 *
 * A stream is timed by who receives it, from the sender's word that it begins to its last byte.  It is as long as the stream
 * before it needs to be to last stream_ns, and a quarter of it goes ahead untimed, because a connection that rested is slow at
 * first.  One thread, which MPI has to itself meanwhile. */
#ifndef MLBENCH_WORKLOADS_RANKS_LINKS_H
#define MLBENCH_WORKLOADS_RANKS_LINKS_H

#include "harness/base/buffer.h"
#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ranks;
struct links;

enum links_mode {
	LINKS_IN_TURN, /* latency, then first -> second, then back; a rank is in one pair */
	LINKS_AT_ONCE, /* both directions at the same time; a rank is in one pair */
	LINKS_RING, /* first -> second alone; a rank is the first of one pair, and the second of one */
};

struct links_pair {
	uint32_t first, second; /* ranks */
};

/* NAN: not in that mode. */
struct links_seen {
	double there, back; /* bytes/s first -> second, second -> first */
	/* Half of the round trip of 8 bytes: the median, and the 99th percentile. */
	double latency_ns, tail_ns;
};

struct links_options {
	struct ranks *ranks;
	uint64_t stream_ns;
	uint64_t pings_ns; /* for round trips; LINKS_PINGS_LEAST are made however long they take */
	bool crowded;      /* more ranks than cores: who waits leaves them to the others */
};
enum { LINKS_PINGS_LEAST = 10, LINKS_PATIENCE_S = 30, LINKS_CHUNK_BYTES = 1 << 20 };

/* Bytes that links_open allocates. */
uint64_t links_memory(unsigned ranks);
int links_open(struct links **out, const struct links_options *options, struct error *err);
void links_close(struct links *links); /* NULL is fine */

/* The leader.  -ETIMEDOUT: a rank has not answered the leader, or its partner for LINKS_PATIENCE_S, and who; -EINTR. */
int links_try(struct links *links, enum links_mode mode, const struct links_pair *pairs,
	size_t count, struct links_seen *out, struct error *err);
/* The others: as ranks_hear, and take part in what the leader tries until it says something else. */
int links_hear(struct links *links, uint64_t limit_ns, struct buffer *out, struct error *err);

#endif
