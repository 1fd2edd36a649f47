/* A checkpoint on disk: the state of training as a file that is either the one before or the new one, whole.
 *
 *   write    into a temporary file beside it, in large aligned writes at depth by io_uring, past the page cache where the
 *            file system takes that (else buffered; without io_uring by pwrite, one after another)
 *   fsync    of that file: its bytes are on the disk
 *   verify   on request: read back, and the checksum compared with that of what was written
 *   rename   over the checkpoint before, so that a crash at any moment leaves one that is whole
 *   fsync    of the folder: only now is the new name durable, too
 *
 * At most two are on the disk at once.  The bytes are a function of (seed, step): random ones that all blocks of 4 KiB share,
 * and a stamp of each block.  Making them costs a store per block, and nothing of a model's state is needed. */
#ifndef MLBENCH_WORKLOADS_CHECKPOINT_FILE_H
#define MLBENCH_WORKLOADS_CHECKPOINT_FILE_H

#include "harness/base/error.h"
#include "harness/base/memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	CHECKPOINT_BLOCK = 4096,    /* a whole checkpoint is a multiple of it */
	CHECKPOINT_CHUNK = 1 << 20, /* of one write */
	CHECKPOINT_DEPTH = 8,       /* writes in flight */
};

#define CHECKPOINT_NAME "checkpoint.bin"

/* What it asks the kernel for, so that tests can have any of it fail; each gives its result or -errno. */
struct checkpoint_calls {
	int (*open)(const char *path, int flags, mode_t mode);
	/* What the kernel said of a write: bytes, or -errno. */
	int (*wrote)(int result, uint64_t offset);
	int (*sync)(int fd);
	int (*rename)(const char *from, const char *to);
	int (*unlink)(const char *path);
};
extern const struct checkpoint_calls checkpoint_kernel;

struct checkpoint_options {
	const char *folder;   /* made where it is missing */
	uint64_t bytes, seed; /* rounded up to whole blocks */
	bool verify;
	bool own_folder; /* it is for checkpoints alone: removed at the end, whoever made it */
	bool staged;     /* there is to be a staging buffer of all bytes */
	const struct checkpoint_calls *calls;
};

struct checkpoint_file {
	const struct checkpoint_calls *calls;
	uint64_t bytes, seed;
	bool verify;
	bool direct;   /* past the page cache */
	bool has_ring; /* else pwrite */
	bool made_folder;
	bool exists;   /* a checkpoint of ours is there */
	int folder_fd; /* locked */
	char path[512], beside[512], folder[512];
	struct memory_block
		chunks; /* (CHECKPOINT_DEPTH + 1) of CHECKPOINT_CHUNK: to write from, and the bytes of all */
	struct memory_block staging;  /* of bytes; without: {0} */
	double copy_bytes_per_s;      /* into such a buffer, as measured when this was opened */
	struct checkpoint_ring *ring; /* owned */
	atomic_uint_least64_t moved;  /* bytes written and read back so far; any thread */
	char why_no_ring[128];
};

/* ns of one checkpoint, part by part. */
struct checkpoint_times {
	uint64_t write_ns, sync_ns, verify_ns, rename_ns;
};

/* Bytes of memory that it will take. */
uint64_t checkpoint_memory_bytes(uint64_t bytes, bool staged);

/* Before anything is made: free bytes of the file system that the folder is, or would be, on; what an unprivileged user gets
 * of it.  -EACCES, -EROFS: nothing may be written there; -EEXIST as below. */
int checkpoint_look(const char *folder, uint64_t *free_bytes, struct error *err);

/* Opens the folder, locks it, and tries a write in it, so that what cannot be is said before anything is measured: -EACCES,
 * -EROFS, -EBUSY (another process writes checkpoints there), -EEXIST (a checkpoint.bin that mlbench did not write).  Memory
 * is touched here.  *out is NULL after a failure. */
int checkpoint_file_open(
	struct checkpoint_file **out, const struct checkpoint_options *options, struct error *err);
/* keep: the checkpoint stays, and so does its folder. NULL is fine. */
void checkpoint_file_close(struct checkpoint_file *file, bool keep);

/* The bytes of a step's checkpoint from `offset` on: whole blocks, as is size. */
void checkpoint_fill(const struct checkpoint_file *file, uint64_t step, uint64_t offset, void *to,
	uint64_t size);

/* Copies a step's state into the staging buffer: what training stands still for when another thread writes. */
void checkpoint_stage(struct checkpoint_file *file, uint64_t step);

/* Writes a step's checkpoint, from the staging buffer if there is one; the calling thread sleeps while the disk works.
 * 0: it is durable.  Else the temporary file is gone and the checkpoint before is untouched, unless err says that the new one
 * may be in its place without being durable; -ECANCELED: *stop became true; -EBADMSG: what was read back is not what was
 * written. */
int checkpoint_store(struct checkpoint_file *file, uint64_t step, const atomic_bool *stop,
	struct checkpoint_times *times, struct error *err);

#endif
