/* libFuzzer target: any file of row groups is refused with a reason, or its groups lie in it one behind the
 * other; and any group, of any file, is refused with a reason or read, twice the same. */
#include "workloads/sample/rowgroup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 3, COLUMNS = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "fuzz_rowgroup: %s\n", what);
	abort();
}

static void try_group(const uint8_t *bytes, size_t size)
{
	float first[ROWS * COLUMNS] = {0};
	float second[ROWS * COLUMNS] = {0};
	for (uint32_t columns = 1; columns <= COLUMNS; columns++) {
		struct error err = {""};
		struct error again = {""};
		const int code = row_group_read(bytes, size, ROWS, columns, first, &err);
		require(code == 0 || (code == -EINVAL && err.text[0]), "refused without a reason");
		require(row_group_read(bytes, size, ROWS, columns, second, &again) == code,
			"not the same twice");
		require(code || memcmp(first, second, sizeof(float) * ROWS * columns) == 0,
			"another sample");
	}
}

static void try_file(const uint8_t *bytes, size_t size)
{
	struct rows_header header;
	struct error err = {""};
	int code = size < ROWS_HEAD_BYTES
			   ? -EINVAL
			   : rows_read_header(bytes, ROWS_HEAD_BYTES, size, &header, &err);
	if (code)
		return;
	uint64_t least = header.groups_at;
	require(least <= size, "a list of groups behind the end");
	for (uint32_t i = 0; i < header.groups && !code; i++) {
		struct row_group_place place;
		const size_t at = (size_t)header.entries_at + (size_t)ROWS_ENTRY_BYTES * i;
		code = rows_read_entry(&header, bytes + at, least, size, &place, &err);
		if (code)
			continue;
		require(place.offset >= least && place.offset + place.bytes <= size,
			"a group behind the end");
		require(place.bytes == row_group_bytes(header.columns, header.columns, place.rows),
			"a group of another size");
		least = place.offset + place.bytes;
		try_group(bytes + place.offset, (size_t)place.bytes);
	}
	require(code == 0 || (code == -EINVAL && err.text[0]), "refused without a reason");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Of its own size exactly: a read behind it is seen. */
	uint8_t *const own = malloc(size ? size : 1);
	require(own != NULL, "out of memory");
	memcpy(own, data, size);
	try_file(own, size);
	try_group(own, size);
	free(own);
	return 0;
}
