/* Faults that tests plant: one bit of a result, of memory, or a stored block, so that each check is seen to find what it is
 * there for.  MLBENCH_ACCEPT_INJECT has them, separated by commas:
 *
 *	gemm:core=1:nth=3            the third product on core 1; nth=0: every one; core left out: any core
 *	decode:core=0:nth=2:bit=5    bit 5 of its picture, at byte `at` (0)
 *	memory:node=0:nth=1:at=4096  after the first filling of NUMA node 0
 *	device:device=0:nth=2
 *	storage:block=7:kind=stale   or bits, torn, misplaced, missing
 *
 * What is planted is announced in a note of the result.  Whoever judges knows nothing of it. */
#ifndef MLBENCH_CHECKS_CORRUPTION_H
#define MLBENCH_CHECKS_CORRUPTION_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CORRUPTION_VARIABLE "MLBENCH_ACCEPT_INJECT"

enum corruption_target {
	CORRUPT_DECODE,
	CORRUPT_GEMM,
	CORRUPT_MEMORY,
	CORRUPT_DEVICE,
	CORRUPT_STORAGE,
};

/* What can be wrong with a block that was stored. */
enum block_state {
	BLOCK_RIGHT,
	BLOCK_BITS,      /* its own, with other bits */
	BLOCK_STALE,     /* as it was before it was last written */
	BLOCK_TORN,      /* written in part */
	BLOCK_MISPLACED, /* another block's content */
	BLOCK_MISSING,   /* zeros, or the file ends before it */
	BLOCK_UNREADABLE,
	BLOCK_STATES
};
const char *block_state_name(enum block_state state); /* "stale" */

enum { CORRUPTIONS_MAX = 8, CORRUPTION_ANY = -1 };

struct corruption {
	enum corruption_target target;
	long place;   /* core, NUMA node or device; CORRUPTION_ANY */
	uint64_t nth; /* counted from 1 at each place; 0: every one */
	uint64_t at;  /* byte */
	unsigned bit; /* 0 .. 7 */
	uint64_t block;
	enum block_state kind; /* of storage */
};

struct corruptions {
	struct corruption list[CORRUPTIONS_MAX];
	size_t count;
};

/* From the environment; none where the variable is not set.  -EINVAL: it says what cannot be planted. */
int corruptions_read(struct corruptions *out, struct error *err);
int corruptions_parse(const char *text, struct corruptions *out, struct error *err);

/* Flips what is planted in the nth result of a place, counted from 1; beyond `size` it is taken modulo. */
void corruptions_flip(const struct corruptions *corruptions, enum corruption_target target,
	unsigned place, uint64_t nth, void *data, size_t size);

/* The one planted in a block of storage; NULL: none. */
const struct corruption *corruptions_of_block(
	const struct corruptions *corruptions, uint64_t block);

#endif
