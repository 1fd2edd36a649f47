/* libFuzzer target: any tar archive or TFRecord file is split into samples that lie inside it, or refused with reasons.
 * The first byte says which of the two it is; its second bit asks for checksums to be made right first, so that what is
 * behind them is reached. */
#include "harness/base/crc32c.h"
#include "harness/config/tables.h"
#include "workloads/dataset/container.h"
#include "workloads/dataset/manifest.h"
#include "workloads/dataset/scan.h"
#include "workloads/sample/sample.h"
#include "workloads/source/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512, SUM_AT = 148, SUM_SIZE = 8, SIZE_AT = 124, SIZE_SIZE = 12 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- a store of one file ---------------------------------------------------------------------- */

static uint8_t *bytes;
static size_t byte_count;

static int memory_open_file(
	struct store *store, const char *path, bool direct, union store_file *out)
{
	(void)store;
	(void)path;
	(void)direct;
	out->handle = bytes;
	return 0;
}

static ssize_t memory_read(
	struct store *store, union store_file file, uint64_t offset, void *buffer, size_t size)
{
	(void)store;
	(void)file;
	if (offset >= byte_count)
		return 0;
	const size_t left = byte_count - (size_t)offset;
	const size_t most = size < left ? size : left;
	memcpy(buffer, bytes + offset, most);
	return (ssize_t)most;
}

static void memory_close_file(struct store *store, union store_file file)
{
	(void)store;
	(void)file;
}

static const struct store_ops memory_store = {
	.file_open = memory_open_file, .read = memory_read, .file_close = memory_close_file};

/* ---- checksums -------------------------------------------------------------------------------- */

static void mend_tar(void)
{
	for (size_t at = 0; at + BLOCK <= byte_count;) {
		uint8_t *const header = bytes + at;
		unsigned sum = 0;
		size_t length = 0;
		bool zero = true;
		for (size_t i = 0; i < BLOCK; i++) {
			sum += i >= SUM_AT && i < SUM_AT + SUM_SIZE ? ' ' : header[i];
			zero = zero && header[i] == 0;
		}
		for (size_t i = 0; i < SIZE_SIZE; i++)
			if (header[SIZE_AT + i] >= '0' && header[SIZE_AT + i] <= '7')
				length = (length << 3 | (header[SIZE_AT + i] & 7U)) & 0xffffff;
		if (!zero) {
			char text[SUM_SIZE + 1];
			(void)snprintf(text, sizeof text, "%06o ", sum);
			memcpy(header + SUM_AT, text, SUM_SIZE);
		}
		at += BLOCK + (length + BLOCK - 1) / BLOCK * BLOCK;
	}
}

static void put32(uint8_t *to, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		to[i] = (uint8_t)(value >> (8 * i));
}

static void mend_records(void)
{
	enum { HEAD = 12, TAIL = 4 };
	for (size_t at = 0; at + HEAD + TAIL <= byte_count;) {
		uint64_t length = 0;
		put32(bytes + at + 8, crc32c_mask(crc32c_add(0, bytes + at, 8)));
		for (int i = 7; i >= 0; i--)
			length = length << 8 | bytes[at + (size_t)i];
		if (length > byte_count - at - HEAD - TAIL)
			return;
		at += HEAD + (size_t)length;
		put32(bytes + at, crc32c_mask(crc32c_add(0, bytes + at - length, (size_t)length)));
		at += TAIL;
	}
}

static void require(int holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "fuzz_container: %s\n", what);
	abort();
}

static void require_inside(const struct dataset *set)
{
	require(set->bad_count > 0 || set->count > 0, "neither a sample nor a reason");
	for (size_t i = 0; i < set->count; i++) {
		const struct sample *const sample = &set->samples[i];
		require(sample->bytes > 0 && set->offsets[i] <= byte_count &&
				sample->bytes <= byte_count - set->offsets[i],
			"a sample outside of the file");
		require(sample->label < set->class_count && sample->format < IMAGE_FORMATS,
			"a sample of no class or format");
	}
	for (size_t i = 0; i < set->bad_count; i++)
		require(*set->bad[i].reason, "no reason");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct dataset_control control = {.threads = 1};
	struct store store = {.ops = &memory_store, .root_fd = -1};
	struct dataset set = {0};
	struct error err = {""};
	bool passing;
	if (size < 2)
		return 0;
	bytes = malloc(size - 1);
	byte_count = size - 1;
	require(bytes != NULL, "no memory");
	memcpy(bytes, data + 1, byte_count);
	const bool tar = data[0] & 1;
	if (data[0] & 2)
		tar ? mend_tar() : mend_records();
	struct folder_scan scan = {
		.root = "fuzz",
		.store = &store,
		.control = &control,
		.kind = sample_kinds[0],
		.container = container_list[tar ? 0 : 1],
		.depth = 1,
		.checksums = data[0] & 4,
		.arena = arena_open(),
	};
	char path[] = "class/shard.tar";
	const struct found file = {
		.path = path, .bytes = byte_count, .kind = STORE_FILE, .sized = true};
	const int code = container_split_files(&scan, &file, 1, &set, &passing, &err);
	require(code == 0 || code == -ENOMEM, err.text);
	if (!code)
		require_inside(&set);
	arena_close(scan.arena);
	free(bytes);
	return 0;
}
