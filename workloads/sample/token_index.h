/* Megatron's index of a token file: NAME.idx beside NAME.bin, little-endian and without padding,
 *
 *   9 bytes "MMIDIDX\0\0"; u64 version, 1; u8 type of the ids; u64 S; u64 D;
 *   S x i32 tokens of each sequence; S x i64 the byte of NAME.bin where it begins;
 *   D x i64 sequences with which a document begins, and S at the end; perhaps S x i8 modes.
 *
 * Types: 4 is int32 and 8 uint16.  Written after the layout of megatron.core.datasets.indexed_dataset,
 * and without it.  The reader takes nothing on trust; tests/fuzz/fuzz_token_index.c holds it to that. */
#ifndef MLBENCH_WORKLOADS_SAMPLE_TOKEN_INDEX_H
#define MLBENCH_WORKLOADS_SAMPLE_TOKEN_INDEX_H

#include "harness/base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { TOKEN_INDEX_HEAD_BYTES = 34 };

/* Where documents begin in a file of tokens. */
struct token_index {
	uint64_t *begins; /* (count) tokens before each, rising, the first 0; owned */
	size_t count;
	uint64_t tokens; /* of the file */
};

/* id_bytes: 2 or 4, of an id in the file.  -EINVAL with the reason: it is no index, or of other ids, or
 * contradicts itself; -ENOMEM. */
int token_index_parse(const void *bytes, size_t size, size_t id_bytes, struct token_index *out,
	struct error *err);
void token_index_release(struct token_index *index); /* safe on {0} */

/* The first document that begins at token `from` or behind it; index->count: none. */
size_t token_index_find(const struct token_index *index, uint64_t from);

#endif
