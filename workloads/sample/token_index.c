/* Reading Megatron's index: sequences lie one behind the other, so a document begins where the sequences
 * before it end. */
#include "workloads/sample/token_index.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TOKEN_INDEX_INT32 = 4, TOKEN_INDEX_UINT16 = 8, TOKEN_SEQUENCE_BYTES = 4 + 8 };

static uint64_t token_index_number(const uint8_t *at, size_t bytes)
{
	uint64_t value = 0;
	for (size_t i = bytes; i-- > 0;)
		value = value << 8 | at[i];
	return value;
}

/* The arrays of an index, in its bytes. */
struct token_arrays {
	const uint8_t *lengths, *places, *documents;
	uint64_t sequences, marks;
};

static int token_index_arrays(const uint8_t *bytes, size_t size, size_t id_bytes,
	struct token_arrays *out, struct error *err)
{
	static const char magic[] = "MMIDIDX\0"; /* and the terminating zero */
	if (size < TOKEN_INDEX_HEAD_BYTES || memcmp(bytes, magic, sizeof magic) != 0 ||
		token_index_number(bytes + sizeof magic, 8) != 1)
		return error_set(err, -EINVAL, "index: it is none of Megatron's, version 1");
	const unsigned type = bytes[sizeof magic + 8];
	const unsigned wanted = id_bytes == 2 ? TOKEN_INDEX_UINT16 : TOKEN_INDEX_INT32;
	if (type != wanted)
		return error_set(err, -EINVAL,
			"index: its ids are of type %u, and tokens.type asks for %u (8: uint16, 4: int32)",
			type, wanted);
	const uint64_t sequences = token_index_number(bytes + sizeof magic + 9, 8);
	const uint64_t marks = token_index_number(bytes + sizeof magic + 17, 8);
	const size_t room = size - TOKEN_INDEX_HEAD_BYTES;
	if (sequences > room / TOKEN_SEQUENCE_BYTES ||
		marks > (room - sequences * TOKEN_SEQUENCE_BYTES) / 8)
		return error_set(err, -EINVAL,
			"index: cut short, %zu bytes for %" PRIu64 " sequences and %" PRIu64
			" documents",
			size, sequences, marks);
	out->lengths = bytes + TOKEN_INDEX_HEAD_BYTES;
	out->places = out->lengths + sequences * 4;
	out->documents = out->places + sequences * 8;
	out->sequences = sequences;
	out->marks = marks;
	return 0;
}

/* Sequence by sequence; a document that begins with one begins at its token.  Empty documents are none. */
static int token_index_fill(const struct token_arrays *arrays, size_t id_bytes,
	struct token_index *out, struct error *err)
{
	uint64_t mark = 0;
	uint64_t before = 0;
	for (uint64_t i = 0; i < arrays->sequences; i++) {
		const uint64_t length = token_index_number(arrays->lengths + i * 4, 4);
		if (length > INT32_MAX)
			return error_set(err, -EINVAL,
				"index: sequence %" PRIu64 " has a negative length", i);
		if (token_index_number(arrays->places + i * 8, 8) != out->tokens * id_bytes)
			return error_set(err, -EINVAL,
				"index: sequence %" PRIu64
				" does not begin where the one before it ends",
				i);
		for (; mark < arrays->marks &&
			token_index_number(arrays->documents + mark * 8, 8) == i;
			mark++)
			if (out->count == 0 || out->begins[out->count - 1] != out->tokens)
				out->begins[out->count++] = out->tokens;
		before = mark < arrays->marks ? token_index_number(arrays->documents + mark * 8, 8)
					      : arrays->sequences;
		if (before <= i)
			return error_set(err, -EINVAL, "index: its documents are not in order");
		out->tokens += length;
	}
	for (; mark < arrays->marks; mark++)
		if (token_index_number(arrays->documents + mark * 8, 8) != arrays->sequences)
			return error_set(err, -EINVAL,
				"index: a document begins behind its %" PRIu64 " sequences",
				arrays->sequences);
	return 0;
}

int token_index_parse(
	const void *bytes, size_t size, size_t id_bytes, struct token_index *out, struct error *err)
{
	struct token_arrays arrays = {0};
	*out = (struct token_index){0};
	int code = token_index_arrays(bytes, size, id_bytes, &arrays, err);
	if (code)
		return code;
	out->begins = calloc(arrays.marks + 1, sizeof *out->begins);
	code = out->begins ? token_index_fill(&arrays, id_bytes, out, err)
			   : error_set(err, -ENOMEM, "no memory for an index");
	if (code)
		token_index_release(out);
	return code;
}

void token_index_release(struct token_index *index)
{
	free(index->begins);
	*index = (struct token_index){0};
}

size_t token_index_find(const struct token_index *index, uint64_t from)
{
	size_t low = 0;
	size_t high = index->count;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (index->begins[middle] < from)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
