/* Blocks that say which they are. */
#include "harness/checks/checked_file.h"

#include "harness/base/crc32c.h"
#include "harness/base/files.h"
#include "harness/base/rng.h"
#include "workloads/source/residency.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REQUEST_BYTES = 1 << 20, REQUEST_BLOCKS = REQUEST_BYTES / CHECKED_BLOCK_BYTES };
static const uint32_t CHECKED_MAGIC = 0x4b4c424d; /* "MBLK" */

struct checked_head {
	uint32_t magic, checksum; /* crc32c of what follows */
	uint64_t file, block;
	uint32_t generation, sector;
};

enum { CHECKED_COVERED = CHECKED_SECTOR_BYTES - 2 * sizeof(uint32_t) };

/* --- a block ---------------------------------------------------------------------------------- */

static void checked_sector_fill(uint8_t *sector, const struct checked_id *id, uint32_t number)
{
	struct checked_head head = {.magic = CHECKED_MAGIC,
		.file = id->file,
		.block = id->block,
		.generation = id->generation,
		.sector = number};
	uint64_t word = rng_mix(
		rng_mix(id->file, id->block), (uint64_t)id->generation * CHECKED_SECTORS + number);
	for (size_t at = sizeof head; at < CHECKED_SECTOR_BYTES; at += sizeof word) {
		word = word * 6364136223846793005U + 1442695040888963407U; /* Knuth's MMIX */
		memcpy(sector + at, &word, sizeof word);
	}
	memcpy(sector, &head, sizeof head);
	head.checksum = crc32c_add(0, sector + 2 * sizeof(uint32_t), CHECKED_COVERED);
	memcpy(sector, &head, sizeof head);
}

void checked_block_fill(void *block, const struct checked_id *id)
{
	for (uint32_t i = 0; i < CHECKED_SECTORS; i++)
		checked_sector_fill((uint8_t *)block + (size_t)i * CHECKED_SECTOR_BYTES, id, i);
}

/* What a sector holds. */
enum sector_state {
	SECTOR_RIGHT,
	SECTOR_OLD,   /* its own place, another generation */
	SECTOR_OTHER, /* whole, of another place */
	SECTOR_ZERO,
	SECTOR_BITS,
	SECTOR_STATES
};

static bool checked_all_zero(const uint8_t *bytes, size_t size)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

static enum sector_state checked_sector_judge(const uint8_t *sector, const uint8_t *expected,
	const struct checked_id *id, uint32_t number, struct checked_head *head)
{
	memcpy(head, sector, sizeof *head);
	if (memcmp(sector, expected, CHECKED_SECTOR_BYTES) == 0)
		return SECTOR_RIGHT;
	if (checked_all_zero(sector, CHECKED_SECTOR_BYTES))
		return SECTOR_ZERO;
	if (head->magic != CHECKED_MAGIC ||
		head->checksum != crc32c_add(0, sector + 2 * sizeof(uint32_t), CHECKED_COVERED))
		return SECTOR_BITS;
	return head->file == id->file && head->block == id->block && head->sector == number
		       ? SECTOR_OLD
		       : SECTOR_OTHER;
}

/* All that is known of a block's sectors. */
struct checked_look {
	const uint8_t *bytes;
	uint8_t expected[CHECKED_BLOCK_BYTES];
	enum sector_state states[CHECKED_SECTORS];
	struct checked_head heads[CHECKED_SECTORS];
	unsigned counts[SECTOR_STATES];
};

static unsigned checked_first(const struct checked_look *look, enum sector_state state)
{
	unsigned i = 0;
	while (i + 1 < CHECKED_SECTORS && look->states[i] != state)
		i++;
	return i;
}

/* "1 bit differs, the first at byte 40: 0x01 instead of 0x00" */
static void checked_say_bits(const struct checked_look *look, char text[CHECKED_TEXT_BYTES])
{
	unsigned bits = 0;
	size_t first = CHECKED_BLOCK_BYTES;
	for (size_t i = 0; i < CHECKED_BLOCK_BYTES; i++) {
		if (look->states[i / CHECKED_SECTOR_BYTES] != SECTOR_BITS)
			continue;
		const unsigned flipped = look->bytes[i] ^ look->expected[i];
		bits += (unsigned)__builtin_popcount(flipped);
		if (flipped && first == CHECKED_BLOCK_BYTES)
			first = i;
	}
	(void)snprintf(text, CHECKED_TEXT_BYTES,
		"%u bit%s, the first at byte %zu: 0x%02x instead of 0x%02x", bits,
		bits == 1 ? " differs" : "s differ", first,
		look->bytes[first % CHECKED_BLOCK_BYTES],
		look->expected[first % CHECKED_BLOCK_BYTES]);
}

static void checked_say_other(
	const struct checked_look *look, const struct checked_id *id, char text[CHECKED_TEXT_BYTES])
{
	const struct checked_head *const head = &look->heads[checked_first(look, SECTOR_OTHER)];
	if (head->file == id->file)
		(void)snprintf(text, CHECKED_TEXT_BYTES,
			"it holds block %" PRIu64 " of the same file, generation %u", head->block,
			head->generation);
	else
		(void)snprintf(text, CHECKED_TEXT_BYTES,
			"it holds block %" PRIu64 " of file %" PRIx64 ", generation %u",
			head->block, head->file, head->generation);
}

enum block_state checked_block_judge(
	const void *block, size_t have, const struct checked_id *id, char text[CHECKED_TEXT_BYTES])
{
	struct checked_look look = {.bytes = block};
	text[0] = '\0';
	if (have < CHECKED_BLOCK_BYTES) {
		(void)snprintf(
			text, CHECKED_TEXT_BYTES, "the file ends after %zu bytes of it", have);
		return BLOCK_MISSING;
	}
	checked_block_fill(look.expected, id);
	for (uint32_t i = 0; i < CHECKED_SECTORS; i++) {
		const size_t at = (size_t)i * CHECKED_SECTOR_BYTES;
		look.states[i] = checked_sector_judge(
			look.bytes + at, look.expected + at, id, i, &look.heads[i]);
		look.counts[look.states[i]]++;
	}
	if (look.counts[SECTOR_RIGHT] == CHECKED_SECTORS)
		return BLOCK_RIGHT;
	if (look.counts[SECTOR_ZERO] == CHECKED_SECTORS) {
		(void)snprintf(text, CHECKED_TEXT_BYTES, "it is zeros");
		return BLOCK_MISSING;
	}
	if (look.counts[SECTOR_OTHER] > 0) {
		checked_say_other(&look, id, text);
		return BLOCK_MISPLACED;
	}
	const unsigned old = look.heads[checked_first(&look, SECTOR_OLD)].generation;
	if (look.counts[SECTOR_OLD] == CHECKED_SECTORS) {
		(void)snprintf(text, CHECKED_TEXT_BYTES, "it is of generation %u, not %u", old,
			id->generation);
		return BLOCK_STALE;
	}
	/* A sector that was written in part has no checksum: of more than one source, it is torn all the same. */
	if (look.counts[SECTOR_OLD] + look.counts[SECTOR_ZERO] > 0) {
		(void)snprintf(text, CHECKED_TEXT_BYTES,
			"%u of %d sectors are of generation %u, %u of an older one, %u zeros",
			look.counts[SECTOR_RIGHT], CHECKED_SECTORS, id->generation,
			look.counts[SECTOR_OLD], look.counts[SECTOR_ZERO]);
		return BLOCK_TORN;
	}
	checked_say_bits(&look, text);
	return BLOCK_BITS;
}

/* --- a file ----------------------------------------------------------------------------------- */

uint64_t checked_report_wrong(const struct checked_report *report)
{
	uint64_t sum = 0;
	for (int state = BLOCK_RIGHT + 1; state < BLOCK_STATES; state++)
		sum += report->counts[state];
	return sum;
}

int checked_file_open(struct checked_file *file, const char *path, uint64_t id, uint64_t blocks,
	bool direct_writes, struct error *err)
{
	*file = (struct checked_file){.fd = -1, .direct_fd = -1, .id = id, .blocks = blocks};
	(void)snprintf(file->path, sizeof file->path, "%s", path);
	file->buffer = aligned_alloc(CHECKED_BLOCK_BYTES, REQUEST_BYTES);
	if (!file->buffer)
		return error_set(err, -ENOMEM, "out of memory");
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
	file->fd = open(path, flags | (direct_writes ? O_DIRECT : 0), 0600);
	if (file->fd < 0 && direct_writes && errno == EINVAL) {
		(void)unlink(path); /* some file systems make it first and refuse then */
		file->fd = open(path, flags, 0600);
	}
	if (file->fd < 0) {
		const int code = error_set_errno(err, errno, "cannot make '%s'", path);
		file->path[0] = '\0'; /* it is another's */
		return code;
	}
	file->direct_fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	return 0;
}

void checked_file_close(struct checked_file *file)
{
	if (file->fd >= 0)
		(void)close(file->fd);
	if (file->direct_fd >= 0)
		(void)close(file->direct_fd);
	if (file->path[0])
		(void)unlink(file->path);
	free(file->buffer);
	*file = (struct checked_file){.fd = -1, .direct_fd = -1};
}

static bool checked_stopped(const atomic_bool *stop)
{
	return stop && atomic_load_explicit(stop, memory_order_relaxed);
}

static int checked_write_at(struct checked_file *file, const void *bytes, size_t size,
	uint64_t offset, struct error *err)
{
	size_t done = 0;
	while (done < size) {
		const ssize_t n = pwrite(
			file->fd, (const char *)bytes + done, size - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_set_errno(err, errno, "writing '%s' at byte %" PRIu64,
				file->path, offset + done);
		if (n == 0)
			return error_set(err, -EIO,
				"writing '%s' at byte %" PRIu64
				": the file system takes nothing and gives no reason",
				file->path, offset + done);
		done += (size_t)n;
	}
	return 0;
}

int checked_file_write(struct checked_file *file, const atomic_bool *stop,
	atomic_uint_least64_t *written, struct error *err)
{
	struct checked_id id = {.file = file->id, .generation = file->generation + 1};
	int code = 0;
	for (uint64_t first = 0; first < file->blocks && !code; first += REQUEST_BLOCKS) {
		const uint64_t left = file->blocks - first;
		const size_t count = left < REQUEST_BLOCKS ? (size_t)left : REQUEST_BLOCKS;
		for (size_t i = 0; i < count; i++) {
			id.block = first + i;
			checked_block_fill((char *)file->buffer + i * CHECKED_BLOCK_BYTES, &id);
		}
		if (checked_stopped(stop))
			return error_set(err, -EINTR, "stopped");
		code = checked_write_at(file, file->buffer, count * CHECKED_BLOCK_BYTES,
			first * CHECKED_BLOCK_BYTES, err);
		if (!code && written)
			(void)atomic_fetch_add_explicit(
				written, count * CHECKED_BLOCK_BYTES, memory_order_relaxed);
	}
	if (!code && fsync(file->fd) != 0)
		code = error_set_errno(err, errno, "fsync of '%s'", file->path);
	if (!code)
		file->generation++;
	return code;
}

static void checked_judge(const struct checked_file *file, uint64_t block, const void *bytes,
	ssize_t have, struct checked_report *report)
{
	const struct checked_id id = {
		.file = file->id, .block = block, .generation = file->generation};
	struct checked_finding finding = {.block = block, .state = BLOCK_UNREADABLE};
	char reason[ERROR_REASON_BYTES];
	if (have < 0)
		(void)snprintf(finding.text, sizeof finding.text, "it cannot be read: %s",
			error_reason((int)-have, reason));
	else
		finding.state = checked_block_judge(bytes, (size_t)have, &id, finding.text);
	report->checked++;
	report->counts[finding.state]++;
	if (finding.state != BLOCK_RIGHT && report->finding_count < CHECKED_FINDINGS_MAX)
		report->findings[report->finding_count++] = finding;
}

/* Up to size bytes; fewer at the end of the file.  A negative errno. */
static ssize_t checked_read_at(int fd, void *bytes, size_t size, uint64_t offset)
{
	size_t done = 0;
	while (done < size) {
		const ssize_t n =
			pread(fd, (char *)bytes + done, size - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
		/* A direct read that ends within a block ends at the end of the file. */
		if (n == 0 || done % CHECKED_BLOCK_BYTES != 0)
			break;
	}
	return (ssize_t)done;
}

/* Where a request fails, block by block. */
static int checked_read_request(const struct checked_file *file, int fd, uint64_t first,
	size_t count, char *buffer, struct checked_report *report)
{
	const ssize_t whole = checked_read_at(
		fd, buffer, count * CHECKED_BLOCK_BYTES, first * CHECKED_BLOCK_BYTES);
	for (size_t i = 0; report && i < count; i++) {
		const ssize_t at = (ssize_t)(i * CHECKED_BLOCK_BYTES);
		ssize_t have = whole > at ? whole - at : 0;
		if (whole < 0)
			have = checked_read_at(fd, buffer + at, CHECKED_BLOCK_BYTES,
				(first + i) * CHECKED_BLOCK_BYTES);
		if (have > CHECKED_BLOCK_BYTES)
			have = CHECKED_BLOCK_BYTES;
		checked_judge(file, first + i, buffer + at, have, report);
	}
	return whole < 0 ? (int)whole : 0;
}

int checked_file_read(const struct checked_file *file, uint64_t first, size_t count, void *buffer,
	struct checked_report *report)
{
	return checked_read_request(file, file->direct_fd, first, count, buffer, report);
}

/* What a later write has in the cache may not answer. */
static int checked_pass_cache(struct checked_file *file, int *fd, struct error *err)
{
	struct residency after;
	*fd = file->direct_fd;
	if (*fd >= 0)
		return 0;
	*fd = file->fd;
	const int code = residency_evict_file(file->fd, &after, err);
	return code ? error_prefix(err, code, "'%s' cannot be read past the page cache", file->path)
		    : 0;
}

int checked_file_verify(struct checked_file *file, const atomic_bool *stop,
	atomic_uint_least64_t *read, struct checked_report *report, struct error *err)
{
	int fd;
	const int code = checked_pass_cache(file, &fd, err);
	for (uint64_t first = 0; first < file->blocks && !code; first += REQUEST_BLOCKS) {
		const uint64_t left = file->blocks - first;
		const size_t count = left < REQUEST_BLOCKS ? (size_t)left : REQUEST_BLOCKS;
		if (checked_stopped(stop))
			return error_set(err, -EINTR, "stopped");
		(void)checked_read_request(file, fd, first, count, file->buffer, report);
		if (read)
			(void)atomic_fetch_add_explicit(
				read, count * CHECKED_BLOCK_BYTES, memory_order_relaxed);
	}
	return code;
}

/* --- planted ---------------------------------------------------------------------------------- */

static void checked_make_fault(const struct corruption *one, const struct checked_id *id,
	uint8_t block[CHECKED_BLOCK_BYTES])
{
	struct checked_id other = *id;
	uint8_t old[CHECKED_BLOCK_BYTES];
	checked_block_fill(block, id);
	other.generation--;
	checked_block_fill(old, &other);
	if (one->kind == BLOCK_BITS)
		block[one->at % CHECKED_BLOCK_BYTES] ^= (uint8_t)(1U << one->bit);
	else if (one->kind == BLOCK_STALE)
		memcpy(block, old, sizeof old);
	else if (one->kind == BLOCK_TORN)
		memcpy(block, old, sizeof old / 2);
	else if (one->kind == BLOCK_MISSING)
		memset(block, 0, CHECKED_BLOCK_BYTES);
	other = *id;
	other.block++;
	if (one->kind == BLOCK_MISPLACED)
		checked_block_fill(block, &other);
}

int checked_file_plant(
	struct checked_file *file, const struct corruptions *corruptions, struct error *err)
{
	int code = 0;
	for (uint64_t i = 0; i < file->blocks && corruptions->count > 0 && !code; i++) {
		const struct corruption *const one = corruptions_of_block(corruptions, i);
		const struct checked_id id = {
			.file = file->id, .block = i, .generation = file->generation};
		if (!one)
			continue;
		checked_make_fault(one, &id, file->buffer);
		code = checked_write_at(
			file, file->buffer, CHECKED_BLOCK_BYTES, i * CHECKED_BLOCK_BYTES, err);
	}
	if (!code && corruptions->count > 0 && fsync(file->fd) != 0)
		code = error_set_errno(err, errno, "fsync of '%s'", file->path);
	return code;
}
