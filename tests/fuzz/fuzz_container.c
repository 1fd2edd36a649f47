/* libFuzzer target: any tar archive or TFRecord file is split into samples that lie inside it, or refused with reasons.
 * The first byte says which of the two it is; its second bit asks for checksums to be made right first, so that what is
 * behind them is reached.  Its fourth bit: it is a gzip stream of an archive; its fifth: an archive that is packed here, in
 * two members, and split again: the same samples have to come of it.  Its sixth: it is of the last container of the list. */
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
#include <zlib.h>

enum { TAR_BIT = 1, MEND_BIT = 2, HASH_BIT = 4, GZIP_BIT = 8, PACK_BIT = 16, LAST_BIT = 32 };
enum { GZIP_FORM = 15 + 16, INFLATES_MOST = 1040 /* times, a little more than deflate can */ };
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

static size_t pack_member(uint8_t *to, size_t room, const uint8_t *from, size_t size)
{
	z_stream deflater = {0};
	require(deflateInit2(&deflater, 1, Z_DEFLATED, GZIP_FORM, 8, Z_DEFAULT_STRATEGY) == Z_OK,
		"no deflate");
	deflater.next_in = (Bytef *)(uintptr_t)from;
	deflater.avail_in = (uInt)size;
	deflater.next_out = to;
	deflater.avail_out = (uInt)room;
	require(deflate(&deflater, Z_FINISH) == Z_STREAM_END, "no room to deflate");
	const size_t packed = deflater.total_out;
	(void)deflateEnd(&deflater);
	return packed;
}

/* In place of the bytes, what they pack to. */
static void pack_bytes(void)
{
	const size_t room = byte_count + byte_count / 8 + 1024;
	uint8_t *const packed = malloc(room);
	require(packed != NULL, "no memory");
	size_t size = pack_member(packed, room, bytes, byte_count / 3);
	size += pack_member(
		packed + size, room - size, bytes + byte_count / 3, byte_count - byte_count / 3);
	free(bytes);
	bytes = packed;
	byte_count = size;
}

static void require_inside(const struct dataset *set, size_t most)
{
	require(set->bad_count > 0 || set->count > 0, "neither a sample nor a reason");
	for (size_t i = 0; i < set->count; i++) {
		const struct sample *const sample = &set->samples[i];
		require(sample->bytes > 0 && set->offsets[i] <= most &&
				sample->bytes <= most - set->offsets[i],
			"a sample outside of the file");
		require(sample->label < set->class_count && sample->format < IMAGE_FORMATS,
			"a sample of no class or format");
	}
	for (size_t i = 0; i < set->bad_count; i++)
		require(*set->bad[i].reason, "no reason");
}

static void require_same(const struct dataset *a, const struct dataset *b)
{
	require(a->count == b->count && a->bad_count == b->bad_count,
		"packed, it has other samples");
	for (size_t i = 0; i < a->count; i++)
		require(a->offsets[i] == b->offsets[i] &&
				a->samples[i].bytes == b->samples[i].bytes &&
				a->samples[i].checksum == b->samples[i].checksum &&
				a->samples[i].label == b->samples[i].label,
			"packed, a sample is another one");
}

/* Splits the bytes; false: no memory.  The arena is the set's. */
static bool split_bytes(
	const struct container_ops *container, bool checksums, size_t most, struct dataset *set)
{
	static const struct dataset_control control = {.threads = 1};
	struct store store = {.ops = &memory_store, .root_fd = -1};
	struct error err = {""};
	bool passing;
	struct folder_scan scan = {
		.root = "fuzz",
		.store = &store,
		.control = &control,
		.kind = sample_kinds[0],
		.container = container,
		.depth = 1,
		.checksums = checksums,
		.arena = arena_open(),
	};
	char path[] = "class/shard.tar";
	const struct found file = {
		.path = path, .bytes = byte_count, .kind = STORE_FILE, .sized = true};
	const int code = container_split_files(&scan, &file, 1, set, &passing, &err);
	require(code == 0 || code == -ENOMEM, err.text);
	if (!code)
		require_inside(set, most);
	set->arena = scan.arena;
	return !code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dataset set = {0};
	struct dataset again = {0};
	if (size < 2)
		return 0;
	bytes = malloc(size - 1);
	byte_count = size - 1;
	require(bytes != NULL, "no memory");
	memcpy(bytes, data + 1, byte_count);
	const bool gzip = data[0] & GZIP_BIT;
	const bool tar = data[0] & TAR_BIT;
	const struct container_ops *container = container_list[tar ? 0 : 1];
	for (size_t i = 0; data[0] & LAST_BIT && container_list[i]; i++)
		container = container_list[i];
	const bool checksums = data[0] & HASH_BIT;
	if (data[0] & MEND_BIT && !gzip && !(data[0] & LAST_BIT))
		tar ? mend_tar() : mend_records();
	const struct container_ops *const tgz = container_list[DATASET_CONTAINER_TGZ - 1];
	const size_t plain = byte_count;
	if (gzip)
		container = tgz;
	const bool split = split_bytes(
		container, checksums, container->inflates ? plain * INFLATES_MOST : plain, &set);
	if (split && container == container_list[0] && data[0] & PACK_BIT) {
		pack_bytes();
		if (split_bytes(tgz, checksums, plain, &again))
			require_same(&set, &again);
		arena_close(again.arena);
	}
	arena_close(set.arena);
	free(bytes);
	return 0;
}
