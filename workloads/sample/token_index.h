/* What files say of the ids in them: a header in front of them, and an index beside them.
 *
 * Headers are those of llm.c and of what reads its files (1,024 bytes: u32 20240520, version 1, number of
 * tokens of uint16; or 20240801, version 7, of uint32), and NumPy's (.npy renamed .bin).
 *
 * Megatron's index of a token file: NAME.idx beside NAME.bin, little-endian and without padding,
 *
 *   9 bytes "MMIDIDX\0\0"; u64 version, 1; u8 type of the ids; u64 S; u64 D;
 *   S x i32 tokens of each sequence; S x i64 the byte of NAME.bin where it begins;
 *   D x i64 sequences with which a document begins, and S at the end; perhaps S x i8 modes.
 *
 * Types: 1 uint8, 2 int8, 3 int16, 4 int32, 5 int64, 6 float64, 7 float32, 8 uint16.  Written after the
 * layout of megatron.core.datasets.indexed_dataset, and without it.  The reader takes nothing on trust; tests/fuzz/fuzz_token_index.c holds it to that. */
#ifndef MLBENCH_WORKLOADS_SAMPLE_TOKEN_INDEX_H
#define MLBENCH_WORKLOADS_SAMPLE_TOKEN_INDEX_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TOKEN_INDEX_HEAD_BYTES = 34 };

struct token_header {
	uint32_t bytes;    /* in front of the ids; 0: there is no header */
	uint32_t id_bytes; /* 2 or 4; 0: not said */
};

/* Of the beginning of a file of file_bytes.  -EAGAIN: more of it is needed; -EINVAL with the reason: what it
 * says of the file is not so, or its ids are of a type that is not read. */
int token_header_read(const void *head, size_t size, uint64_t file_bytes, struct token_header *out,
	struct error *err);

/* What the first TOKEN_INDEX_HEAD_BYTES of an index say; false: it is none of Megatron's. */
struct token_index_head {
	const char *type;  /* "int32"; NULL: not known */
	uint32_t id_bytes; /* 2 or 4, where ids of that type are read here; else 0 */
	uint64_t sequences;
};
bool token_index_read_head(const uint8_t *bytes, size_t size, struct token_index_head *out);

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
