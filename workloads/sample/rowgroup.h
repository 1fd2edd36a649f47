/* Files of rows of numbers in row groups (.rows): Parquet-like, and not Parquet.  Little-endian.
 *
 *   file       "MLROWS1\n"; u32 C columns; u32 G row groups; u64 rows in all;
 *              C x u32 type of a column (enum row_type), which is the schema;
 *              G x {u64 offset in the file, u32 rows, u32 0}; then the groups.
 *   row group  "RGRP"; u32 rows; u32 C; u32 stride, bytes from a value to the same column's next;
 *              C x {u32 offset in the group of the column's first value, u32 type}; then the values.
 *
 * A value has 4 bytes.  In columns (stride 4) each column is a chunk of its own, in the order of the
 * schema, so that the first N of them are the beginning of a group: a reader that wants no more reads no
 * more.  In rows (stride 4 C) the values of a row lie side by side.  A group says all that is needed to
 * read it, because it is read alone.  The readers take nothing on trust; tests/fuzz/fuzz_rowgroup.c holds
 * them to that. */
#ifndef MLBENCH_WORKLOADS_SAMPLE_ROWGROUP_H
#define MLBENCH_WORKLOADS_SAMPLE_ROWGROUP_H

#include "harness/base/error.h"

#include <stddef.h>
#include <stdint.h>

#define ROWS_MAGIC "MLROWS1\n"
#define ROW_GROUP_MAGIC "RGRP"

enum {
	ROWS_COLUMNS_MAX = 65536,
	ROWS_HEAD_BYTES = 24,
	ROWS_ENTRY_BYTES = 16, /* of a group, in the file's header */
	ROW_GROUP_HEAD_BYTES = 16,
	ROW_GROUP_COLUMN_BYTES = 8,
	ROW_VALUE_BYTES = 4,
};

enum row_type { ROW_TYPE_FLOAT32 = 1, ROW_TYPE_INT32 = 2 };

/* The beginning of a file. */
struct rows_header {
	uint32_t columns, groups;
	uint64_t rows;
	uint64_t entries_at, groups_at; /* where the list of groups begins, and where it ends */
};
/* bytes: of the file; size: of what is at hand, ROWS_HEAD_BYTES or more.  -EINVAL with the reason. */
int rows_read_header(const uint8_t *head, size_t size, uint64_t bytes, struct rows_header *out,
	struct error *err);

/* Bytes of a group's first `columns` of C columns, with all that stands in front of their values. */
uint64_t row_group_bytes(uint32_t all_columns, uint32_t columns, uint64_t rows);

/* An entry of the list of groups, at entry.  -EINVAL: it does not lie within [least, bytes) of the file. */
struct row_group_place {
	uint64_t offset, bytes;
	uint32_t rows;
};
int rows_read_entry(const struct rows_header *header, const uint8_t *entry, uint64_t least,
	uint64_t bytes, struct row_group_place *out, struct error *err);

/* The first `columns` columns of a group's first `rows` rows as float32 (rows, columns).  bytes: of the
 * group, its beginning at least.  -EINVAL with the reason: its header lies, or the values are not all
 * there. */
int row_group_read(const uint8_t *bytes, size_t size, uint32_t rows, uint32_t columns, float *out,
	struct error *err);

#endif
