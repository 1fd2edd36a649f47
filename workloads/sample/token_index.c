/* Reading headers of token files, and Megatron's index: sequences lie one behind the other, so a document begins where the sequences
 * before it end. */
#include "workloads/sample/token_index.h"

#include "workloads/sample/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TOKEN_SEQUENCE_BYTES = 4 + 8 };
static const char token_index_magic[] = "MMIDIDX\0"; /* and the terminating zero */

static uint64_t token_index_number(const uint8_t *at, size_t bytes)
{
	uint64_t value = 0;
	for (size_t i = bytes; i-- > 0;)
		value = value << 8 | at[i];
	return value;
}

/* ---- headers --------------------------------------------------------------------------------- */

static int token_header_read_npy(const void *head, size_t size, uint64_t file_bytes,
	struct token_header *out, struct error *err)
{
	struct npy_array array;
	int code = npy_read_header(head, size, &array, err);
	if (!code)
		code = npy_check_bytes(&array, file_bytes, err);
	if (code)
		return code;
	const bool whole = array.kind == 'u' || (array.kind == 'i' && array.size == 4);
	if (array.dimensions != 1 || array.big || !whole || (array.size != 2 && array.size != 4))
		return error_set(err, -EINVAL,
			"a NumPy array of %u dimensions, elements '%c%u': of those, token ids are one dimension of u2, u4 or i4",
			array.dimensions, array.kind, array.size);
	*out = (struct token_header){(uint32_t)array.header_bytes, array.size};
	return 0;
}

int token_header_read(const void *head, size_t size, uint64_t file_bytes, struct token_header *out,
	struct error *err)
{
	enum { LLMC_BYTES = 1024, LLMC_READ = 12, NPY_MAGIC = 6 };
	static const struct {
		uint32_t magic, version, id_bytes;
	} llmc[] = {{20240520, 1, 2}, {20240801, 7, 4}};
	const uint8_t *const at = head;
	*out = (struct token_header){0};
	if (size >= NPY_MAGIC && memcmp(at, "\x93NUMPY", NPY_MAGIC) == 0)
		return token_header_read_npy(head, size, file_bytes, out, err);
	for (size_t i = 0; size >= LLMC_READ && i < sizeof llmc / sizeof *llmc; i++) {
		if (token_index_number(at, 4) != llmc[i].magic ||
			token_index_number(at + 4, 4) != llmc[i].version)
			continue;
		const uint64_t tokens = token_index_number(at + 8, 4);
		*out = (struct token_header){LLMC_BYTES, llmc[i].id_bytes};
		if (LLMC_BYTES + tokens * llmc[i].id_bytes == file_bytes)
			return 0;
		return error_set(err, -EINVAL,
			"llm.c's header of %d bytes says %" PRIu64
			" tokens of %u bytes, which are not the file's %" PRIu64 " bytes",
			LLMC_BYTES, tokens, llmc[i].id_bytes, file_bytes);
	}
	return 0;
}

/* ---- the index ------------------------------------------------------------------------------- */

bool token_index_read_head(const uint8_t *bytes, size_t size, struct token_index_head *out)
{
	static const struct token_index_head types[] = {{NULL, 0, 0}, {"uint8", 0, 0},
		{"int8", 0, 0}, {"int16", 0, 0}, {"int32", 4, 0}, {"int64", 0, 0},
		{"float64", 0, 0}, {"float32", 0, 0}, {"uint16", 2, 0}};
	if (size < TOKEN_INDEX_HEAD_BYTES ||
		memcmp(bytes, token_index_magic, sizeof token_index_magic) != 0 ||
		token_index_number(bytes + sizeof token_index_magic, 8) != 1)
		return false;
	const unsigned type = bytes[sizeof token_index_magic + 8];
	*out = types[type < sizeof types / sizeof *types ? type : 0];
	out->sequences = token_index_number(bytes + sizeof token_index_magic + 9, 8);
	return true;
}

/* The arrays of an index, in its bytes. */
struct token_arrays {
	const uint8_t *lengths, *places, *documents;
	uint64_t sequences, marks;
};

static int token_index_arrays(const uint8_t *bytes, size_t size, size_t id_bytes,
	struct token_arrays *out, struct error *err)
{
	struct token_index_head head;
	if (!token_index_read_head(bytes, size, &head))
		return error_set(err, -EINVAL, "index: it is none of Megatron's, version 1");
	if (head.id_bytes != id_bytes)
		return error_set(err, -EINVAL,
			"index: its ids are %s, and tokens.type asks for ids of %zu bytes",
			head.type ? head.type : "of an unknown type", id_bytes);
	const uint64_t sequences = head.sequences;
	const uint64_t marks = token_index_number(bytes + sizeof token_index_magic + 17, 8);
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
