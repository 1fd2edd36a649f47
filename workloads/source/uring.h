/* The io_uring engine's own parts.
 *
 * A file is one linked chain openat -> read -> close on a direct descriptor: the open posts no
 * completion when it works, the read is hard-linked so that a short one does not cancel the close.
 * Where the kernel lacks that, or a file needs a second read, the three are staged: each is
 * submitted when the one before has completed. */
#ifndef MLBENCH_WORKLOADS_SOURCE_URING_H
#define MLBENCH_WORKLOADS_SOURCE_URING_H

#include "workloads/source/engines.h"

#include <liburing.h>
#include <pthread.h>

enum {
	URING_CHAIN_SQES = 3,     /* open, read, close */
	URING_REASON_BYTES = 256, /* of text on what was not got */
};

/* What is wanted of the rings; source_open sets it from the configuration, less what its trial ring
 * did not get.  Readers opened afterwards follow it, so tests may switch things off in between. */
struct uring_options {
	bool direct; /* O_DIRECT */
	bool linked;
	bool registered; /* buffers */
	bool direct_descriptors;
	bool async; /* opens and reads by worker threads of the kernel, never inside a submission */
	size_t read_limit; /* bytes per read, to provoke short reads; 0: none */
};

struct uring_source {
	struct source base;
	struct uring_options options;
	/* Held to open and close rings and to add notes.  Rings of one thread come to lie where another's
	 * were, and only this tells a race detector that the two never overlap in time. */
	pthread_mutex_t lock;
};

/* A ring and what it got of the options. */
struct uring_ring {
	struct io_uring ring;
	bool linked, registered, direct_descriptors;
	unsigned setup_flags; /* IORING_SETUP_ */
};

/* One file in work.  Slots are twice the depth, since a slot stays taken until its file is closed.
 */
struct uring_slot {
	struct read_request *request; /* NULL once delivered */
	struct read_progress progress;
	int fd; /* a plain descriptor; unused with direct ones, whose number is the slot's */
	uint32_t generation; /* of this use: completions of an earlier one are ignored */
	bool linked;         /* its chain is under way */
	bool reopen;         /* once it is closed */
};

struct uring_reader {
	struct reader base;
	struct uring_ring ring;
	struct uring_slot *slots; /* (slot_count) */
	uint32_t *free_slots;     /* a stack */
	unsigned slot_count, free_count;
	unsigned closing; /* files read whose close has yet to complete */
	int broken;       /* negative errno: the ring failed for good */
	struct request_list waiting, done;
};

static inline unsigned uring_slots(unsigned depth)
{
	return 2 * depth;
}

/* Opens a ring with what it can get of source->options.  lack tells what was not got ("" if all
 * was). Fails only when there is no ring at all.  One thread owns the ring: the one that opens it.
 */
int uring_ring_open(struct uring_ring *ring, const struct uring_source *source,
	char lack[URING_REASON_BYTES], struct error *err);
void uring_ring_close(struct uring_ring *ring);

/* Trials on a scratch ring of what no probe of the kernel tells: whether openat can put a file into
 * a table of descriptors, and whether the whole chain works. */
bool uring_direct_open_works(int root_fd);
bool uring_chain_works(int root_fd);

/* Whether opens and reads of files like this one may wait inside a submission, one behind the other:
 * true unless it is on a file system that is known to be local.  Takes descriptors of O_PATH. */
bool uring_may_wait(int fd);

/* Index of the registered buffer that holds all of [data, data + size), or -1. */
int uring_buffer_index(const struct uring_source *source, const uint8_t *data, size_t size);

/* Puts waiting requests into free slots and prepares their submission. */
void uring_start(struct uring_reader *reader);
/* Acts on one completion; may prepare further submissions. */
void uring_complete(struct uring_reader *reader, uint64_t user_data, int result);
/* The ring is lost: every request ends with this status. */
void uring_fail_all(struct uring_reader *reader, int status);

/* NULL, or why there is no io_uring here; why holds the text. */
const char *uring_unavailable(char *why, size_t room);
/* What a failure of io_uring_setup means; disabled is the value of sysctl kernel.io_uring_disabled.
 */
void uring_explain(int code, uint64_t disabled, char *why, size_t room);

#endif
