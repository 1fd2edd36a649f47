/* Work whose result must be the same bits whenever and wherever it is done on one kind of processor: pictures made from a
 * seed, decoded and augmented as a run's are, and matrix products of fixed operands.  The pictures are a few of each format
 * that the program writes; the products fill vector units, have edges that no vector fits, and are larger than caches. */
#ifndef MLBENCH_CHECKS_FIXED_WORK_H
#define MLBENCH_CHECKS_FIXED_WORK_H

#include "harness/base/error.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum fixed_kind { FIXED_PICTURE, FIXED_PRODUCT, FIXED_KINDS };

enum {
	FIXED_ITEMS_MAX = 32,
	FIXED_NAME_BYTES = 80,
	FIXED_PATH_BYTES = 192,
	FIXED_WHERE_BYTES = 320,
};

struct fixed_item {
	enum fixed_kind kind;
	char name
		[FIXED_NAME_BYTES]; /* "jpeg picture 2 of 517 x 402 pixels", "dgemm of 131 x 67 x 259" */
	size_t bytes, element_bytes; /* of its result, (rows, columns) of such elements */
	uint32_t rows, columns;
	double flops; /* of a product */
	size_t index; /* within its kind */
};

struct fixed_work;

/* Nothing to do yet.  stop: see sample.h; may be NULL.  0 or -ENOMEM. */
int fixed_work_open(struct fixed_work **out, const atomic_bool *stop, struct error *err);
/* Add items; each once.  Making the pictures takes a second or so on one core. -EINTR: stopped.  -ENOTSUP: there is no BLAS,
 * with the reason; none is added then. */
int fixed_work_add_pictures(struct fixed_work *work, struct error *err);
int fixed_work_add_products(struct fixed_work *work, struct error *err);
void fixed_work_close(struct fixed_work *work); /* NULL is fine */

size_t fixed_work_count(const struct fixed_work *work);
const struct fixed_item *fixed_work_item(const struct fixed_work *work, size_t item);

/* The code path of a kind's items: versions of libraries and the kernels that they choose on this processor.  Where two
 * nodes have the same, their results are the same bits. */
const char *fixed_work_path(const struct fixed_work *work, enum fixed_kind kind);
/* What came with the program for that code path: the hash of an item's result (votes_hash); 0: there is none. */
uint64_t fixed_work_golden(const struct fixed_work *work, size_t item);

/* Where two results of an item differ: "row 12, column 200: 0x3f8a1c00 instead of 0x3f8a1c04 (bit 2 of 32); 1 of 65,536
 * values differs".  Returns out. */
const char *fixed_work_where(const struct fixed_item *item, const void *wrong, const void *right,
	char out[FIXED_WHERE_BYTES]);

/* --- a thread that does it -------------------------------------------------------------------- */

struct fixed_hand;

/* 0, or -ENOMEM and what a sample's worker gives. */
int fixed_hand_open(struct fixed_hand **out, const struct fixed_work *work, struct error *err);
void fixed_hand_close(struct fixed_hand *hand); /* NULL is fine */

/* Does an item; *result is the hand's, valid until its next call.  -EINTR: stopped. */
int fixed_hand_do(struct fixed_hand *hand, size_t item, void **result, struct error *err);

#endif
