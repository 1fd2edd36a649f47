/* Files every sector of which says which one it is, so that what a storage gives back is told apart: the right block, wrong
 * bits, an old generation, a block written in part, another block's content, or none.
 *
 * A block is 4 KiB of 8 sectors.  Each sector begins with a magic number, a checksum of the rest, the file's id, the block's
 * number, the generation (how often the block has been written) and its own place; its other bytes are a function of these,
 * so that wrong bits are counted and located. */
#ifndef MLBENCH_CHECKS_CHECKED_FILE_H
#define MLBENCH_CHECKS_CHECKED_FILE_H

#include "harness/base/error.h"
#include "harness/checks/corruption.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CHECKED_BLOCK_BYTES = 4096,
	CHECKED_SECTOR_BYTES = 512,
	CHECKED_SECTORS = CHECKED_BLOCK_BYTES / CHECKED_SECTOR_BYTES,
	CHECKED_TEXT_BYTES = 192,
	CHECKED_FINDINGS_MAX = 16,
};

/* --- a block, in memory ----------------------------------------------------------------------- */

struct checked_id {
	uint64_t file, block;
	uint32_t generation;
};

void checked_block_fill(void *block, const struct checked_id *id);

/* What a block is that should be this one.  have: bytes that could be read of it.  text: what is wrong, in words; "" where
 * nothing is. */
enum block_state checked_block_judge(
	const void *block, size_t have, const struct checked_id *id, char text[CHECKED_TEXT_BYTES]);

/* --- a file ----------------------------------------------------------------------------------- */

struct checked_file {
	int fd;        /* to write, through the page cache unless direct_writes */
	int direct_fd; /* to read past the cache; -1: evicting and proving it has to do */
	uint64_t id, blocks;
	uint32_t generation; /* written last; 0: none */
	void *buffer;        /* of a request; owned */
	char path[256];      /* for messages */
};

struct checked_finding {
	uint64_t block;
	enum block_state state;
	char text[CHECKED_TEXT_BYTES];
};

struct checked_report {
	uint64_t checked; /* blocks that were read and judged */
	uint64_t counts[BLOCK_STATES];
	struct checked_finding findings[CHECKED_FINDINGS_MAX]; /* the first wrong ones */
	size_t finding_count;
};
uint64_t checked_report_wrong(const struct checked_report *report);

/* Makes a new file of so many blocks in an existing folder.  direct_writes: past the page cache, where the file system
 * allows it.  A negative errno with the reason. */
int checked_file_open(struct checked_file *file, const char *path, uint64_t id, uint64_t blocks,
	bool direct_writes, struct error *err);
/* Closes and removes it; safe after a failure of open. */
void checked_file_close(struct checked_file *file);

/* Writes the next generation of all blocks and syncs.  -ENOSPC, -EDQUOT, -EFBIG, -EIO ...: with the byte at which it ended;
 * -EINTR: stopped.  written (may be NULL): bytes, counted up as they are written, read by any thread. */
int checked_file_write(struct checked_file *file, const atomic_bool *stop,
	atomic_uint_least64_t *written, struct error *err);

/* Reads all blocks past the cache and judges them against the generation written last; adds to *report.  A block that cannot
 * be read is BLOCK_UNREADABLE, and the rest is read.  -EINTR: stopped; -EBUSY, -ENOTSUP: the cache cannot be passed, with the
 * reason.  read: as written above. */
int checked_file_verify(struct checked_file *file, const atomic_bool *stop,
	atomic_uint_least64_t *read, struct checked_report *report, struct error *err);

/* Reads some blocks past the cache, into a buffer of the caller's (aligned to a block) and judges them as
 * above, where report is not NULL.  Any number of threads at once, while nobody writes.  0; -EIO and the like: some of them
 * cannot be read. */
int checked_file_read(const struct checked_file *file, uint64_t first, size_t count, void *buffer,
	struct checked_report *report);

/* For tests: makes what is planted of the blocks that were written last. */
int checked_file_plant(
	struct checked_file *file, const struct corruptions *corruptions, struct error *err);

#endif
