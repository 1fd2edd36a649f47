/* Reading row groups.  Each number of a header is held against the bytes that there are, before anything
 * is read where it points. */
#include "workloads/sample/rowgroup.h"

#include "workloads/image/codec.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

int rows_read_header(const uint8_t *head, size_t size, uint64_t bytes, struct rows_header *out,
	struct error *err)
{
	static const size_t magic = sizeof ROWS_MAGIC - 1;
	if (size < ROWS_HEAD_BYTES || memcmp(head, ROWS_MAGIC, magic) != 0)
		return error_set(err, -EINVAL, "rows: it does not begin with MLROWS1");
	out->columns = bytes_le32(head + 8);
	out->groups = bytes_le32(head + 12);
	out->rows = bytes_le32(head + 16) | (uint64_t)bytes_le32(head + 20) << 32;
	out->entries_at = ROWS_HEAD_BYTES + 4ULL * out->columns;
	out->groups_at = out->entries_at + (uint64_t)ROWS_ENTRY_BYTES * out->groups;
	if (out->columns == 0 || out->columns > ROWS_COLUMNS_MAX)
		return error_set(err, -EINVAL, "rows: %" PRIu32 " columns; 1 to %d are read",
			out->columns, ROWS_COLUMNS_MAX);
	if (out->groups_at > bytes)
		return error_set(err, -EINVAL,
			"rows: %" PRIu32 " row groups, whose list does not fit into %" PRIu64
			" bytes",
			out->groups, bytes);
	return 0;
}

uint64_t row_group_bytes(uint32_t all_columns, uint32_t columns, uint64_t rows)
{
	return ROW_GROUP_HEAD_BYTES + (uint64_t)ROW_GROUP_COLUMN_BYTES * all_columns +
	       rows * columns * ROW_VALUE_BYTES;
}

int rows_read_entry(const struct rows_header *header, const uint8_t *entry, uint64_t least,
	uint64_t bytes, struct row_group_place *out, struct error *err)
{
	out->offset = bytes_le32(entry) | (uint64_t)bytes_le32(entry + 4) << 32;
	out->rows = bytes_le32(entry + 8);
	out->bytes = row_group_bytes(header->columns, header->columns, out->rows);
	if (out->rows > 0 && out->offset >= least && out->offset <= bytes &&
		out->bytes <= bytes - out->offset)
		return 0;
	return error_set(err, -EINVAL,
		"rows: a row group of %" PRIu32 " rows at byte %" PRIu64
		" does not lie behind byte %" PRIu64 " within %" PRIu64 " bytes",
		out->rows, out->offset, least, bytes);
}

/* A column of a group. */
struct row_column {
	const uint8_t *values;
	uint32_t type;
};

static int row_group_column(const uint8_t *bytes, size_t size, uint32_t rows, uint32_t column,
	uint64_t begin, struct row_column *out, struct error *err)
{
	const uint64_t stride = bytes_le32(bytes + 12);
	const uint8_t *const at =
		bytes + ROW_GROUP_HEAD_BYTES + (size_t)ROW_GROUP_COLUMN_BYTES * column;
	const uint64_t offset = bytes_le32(at);
	const uint64_t end = offset + (rows - 1) * stride + ROW_VALUE_BYTES;
	out->values = bytes + offset;
	out->type = bytes_le32(at + 4);
	if (offset < begin || end > size)
		return error_set(err, -EINVAL,
			"rows: column %" PRIu32 " lies in bytes %" PRIu64 " to %" PRIu64
			" of a row group, of which %zu were read (record.layout)",
			column, offset, end, size);
	return out->type == ROW_TYPE_FLOAT32 || out->type == ROW_TYPE_INT32
		       ? 0
		       : error_set(err, -EINVAL,
				 "rows: column %" PRIu32 " is of type %" PRIu32
				 "; 1 (float32) and 2 (int32) are read",
				 column, out->type);
}

static void row_column_copy(
	const struct row_column *column, uint32_t rows, size_t stride, float *out, uint32_t columns)
{
	const bool whole = column->type == ROW_TYPE_INT32;
	for (size_t r = 0; r < rows; r++) {
		const uint32_t raw = bytes_le32(column->values + r * stride);
		float value;
		memcpy(&value, &raw, sizeof value);
		out[r * columns] = whole ? (float)(int32_t)raw : value;
	}
}

int row_group_read(const uint8_t *bytes, size_t size, uint32_t rows, uint32_t columns, float *out,
	struct error *err)
{
	if (size < ROW_GROUP_HEAD_BYTES || memcmp(bytes, ROW_GROUP_MAGIC, 4) != 0)
		return error_set(err, -EINVAL, "rows: no row group begins here");
	const uint32_t own_rows = bytes_le32(bytes + 4);
	const uint32_t own_columns = bytes_le32(bytes + 8);
	const size_t stride = bytes_le32(bytes + 12);
	const uint64_t begin = row_group_bytes(own_columns, 0, 0);
	if (own_rows < rows || own_columns < columns || own_columns > ROWS_COLUMNS_MAX)
		return error_set(err, -EINVAL,
			"rows: a row group of %" PRIu32 " rows and %" PRIu32 " columns; %" PRIu32
			" rows and %" PRIu32 " columns are asked for",
			own_rows, own_columns, rows, columns);
	if (begin > size ||
		(stride != ROW_VALUE_BYTES && stride != (size_t)own_columns * ROW_VALUE_BYTES))
		return error_set(err, -EINVAL,
			"rows: a row group of %zu bytes with values %zu apart", size, stride);
	for (uint32_t c = 0; c < columns; c++) {
		struct row_column column;
		const int code = row_group_column(bytes, size, rows, c, begin, &column, err);
		if (code)
			return code;
		row_column_copy(&column, rows, stride, out + c, columns);
	}
	return 0;
}
