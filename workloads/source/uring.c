/* The io_uring engine: a ring per reader.
 *
 * A file is one linked chain openat -> read -> close on a direct descriptor: the open posts no
 * completion when it works, the read is hard-linked so that a short one does not cancel the close.
 * Where the kernel lacks that, or a file needs a second read, the three are staged: each is
 * submitted when the one before has completed.
 *
 * Files that hold several samples stay open, where they are few or read in order: a part is then a read and
 * nothing else.
 *
 * A chain says when all of it is over.  One file in OPEN_TIMED is therefore staged, which tells how long the
 * open takes.
 *
 * Submissions are prepared in submit and handed to the kernel two files at a time, the rest by the next
 * reap in the same system call that waits.
 *
 * What a file of 97 KB costs in CPU, direct, 16 in flight, Linux 6.18 on ext4 (tests/bench/
 * bench_source.sh measures it anew):
 *   chain and stages 7 to 8 us, open(2) and close(2) by the reader around a ring's read the same;
 *   16 threads with pread 10 to 11.  With no dentry cached (opens go to kernel threads): 17 and 18;
 *   buffered with no page cached: chain 38, stages 48, threads 54.
 * So neither the chain nor its stages are dear.  What is: to sleep and wake up for each file (one in
 * flight: 24 us, as with pread), which several completions a wake-up avoid; and buffers on small pages
 * (11 us, and 20 to 40 us at 428 KB: a segment per page, pinned for each read where they are not
 * registered; the device then gives half its rate or less).  The chain is the default: it is never
 * behind, and ahead where reads miss the cache, since a file's read starts without waiting for this
 * thread to come round.
 *
 * Where an open or a read may wait (uring_may_wait), kernel threads do both: in the submission they would
 * wait one behind the other at any depth.  Not everywhere, since on warm local files that takes
 * twice to three times the CPU with one in flight, half as much again with eight. */
#include "workloads/source/uring.h"

#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/units.h"
#include "harness/measure/timeline.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

/* --- whether there is io_uring here, and if not, which of the known obstacles it is -------------- */

enum { PROBE_ENTRIES = 4 };

static const char disabled_path[] = "/proc/sys/kernel/io_uring_disabled";

static const char *uring_refusal(uint64_t disabled)
{
	if (disabled >= 2)
		return "disabled on this node (sysctl kernel.io_uring_disabled = 2)";
	if (disabled == 1)
		return "only members of kernel.io_uring_group may use it (sysctl kernel.io_uring_disabled = 1)";
	return "a seccomp filter or security module forbids it to this process, as in most containers "
	       "(EPERM)";
}

void uring_explain(int code, uint64_t disabled, char *why, size_t room)
{
	switch (code) {
	case -ENOSYS:
		(void)snprintf(why, room,
			"the kernel has no io_uring, or a seccomp filter hides it (ENOSYS)");
		break;
	case -EPERM:
	case -EACCES:
		(void)snprintf(why, room, "%s", uring_refusal(disabled));
		break;
	case -ENOMEM:
		(void)snprintf(why, room,
			"out of memory for a ring; on old kernels raise the memlock limit, ulimit -l (ENOMEM)");
		break;
	default:
		(void)snprintf(why, room, "io_uring_setup: %s", strerror(-code));
	}
}

static const char *uring_missing_operation(struct io_uring *ring)
{
	static const struct {
		int op;
		const char *name;
	} needed[] = {
		{IORING_OP_OPENAT, "openat"}, {IORING_OP_READ, "read"}, {IORING_OP_CLOSE, "close"}};
	struct io_uring_probe *const probe = io_uring_get_probe_ring(ring);
	const char *missing = NULL;
	for (size_t i = 0; i < sizeof needed / sizeof *needed && !missing; i++)
		if (!probe || !io_uring_opcode_supported(probe, needed[i].op))
			missing = needed[i].name;
	if (probe)
		io_uring_free_probe(probe);
	return missing;
}

/* One request that does nothing: a filter may allow io_uring_setup and forbid io_uring_enter. */
static int uring_try_to_enter(struct io_uring *ring)
{
	struct io_uring_sqe *const sqe = io_uring_get_sqe(ring);
	if (!sqe)
		return -ENOMEM;
	io_uring_prep_nop(sqe);
	const int code = io_uring_submit(ring);
	return code < 0 ? code : 0;
}

const char *uring_unavailable(char *why, size_t room)
{
	struct io_uring_params params = {0};
	struct io_uring ring;
	int code = io_uring_queue_init_params(PROBE_ENTRIES, &ring, &params);
	if (!code) {
		code = uring_try_to_enter(&ring);
		if (code)
			io_uring_queue_exit(&ring);
	}
	if (code) {
		uint64_t disabled = 0;
		if (files_number(disabled_path, &disabled) != 0)
			disabled = 0; /* before Linux 6.6 there is no such switch */
		uring_explain(code, disabled, why, room);
		return why;
	}
	const char *const missing = uring_missing_operation(&ring);
	const bool timed_waits = params.features & IORING_FEAT_EXT_ARG;
	io_uring_queue_exit(&ring);
	if (missing)
		(void)snprintf(why, room,
			"the kernel's io_uring lacks %s (needs Linux 5.11), or io_uring_register is forbidden",
			missing);
	else if (!timed_waits)
		(void)snprintf(
			why, room, "the kernel's io_uring lacks timed waits (needs Linux 5.11)");
	return missing || !timed_waits ? why : NULL;
}

/* --- trials on a scratch ring of what no probe of the kernel reports ------------------------------- */

enum { TRIAL_ENTRIES = 4, TRIAL_READ_BYTES = 64, TRIAL_STEPS = 3, TRIAL_UNSET = 1 };

enum { TRIAL_OPEN, TRIAL_READ, TRIAL_CLOSE };

struct trial {
	struct io_uring ring;
	int results[TRIAL_STEPS]; /* TRIAL_UNSET where no completion came */
	uint8_t buffer[TRIAL_READ_BYTES];
};

static int trial_open(struct trial *trial)
{
	*trial = (struct trial){.results = {TRIAL_UNSET, TRIAL_UNSET, TRIAL_UNSET}};
	const int code = io_uring_queue_init(TRIAL_ENTRIES, &trial->ring, 0);
	if (code)
		return code;
	const int empty = -1;
	const int registered = io_uring_register_files(&trial->ring, &empty, 1);
	if (registered)
		io_uring_queue_exit(&trial->ring);
	return registered;
}

/* Submits what is prepared and collects that many completions, waiting a second for each at most. */
static void trial_run(struct trial *trial, unsigned completions)
{
	struct __kernel_timespec second = {.tv_sec = 1};
	for (unsigned seen = 0; seen < completions; seen++) {
		struct io_uring_cqe *cqe = NULL;
		const int code =
			io_uring_submit_and_wait_timeout(&trial->ring, &cqe, 1, &second, NULL);
		if (code < 0 || !cqe)
			return;
		trial->results[cqe->user_data] = cqe->res;
		io_uring_cqe_seen(&trial->ring, cqe);
	}
}

/* The queue of a fresh ring has room for every step. */
static bool trial_prepare(struct trial *trial, int root_fd, bool chain)
{
	struct io_uring_sqe *const opening = io_uring_get_sqe(&trial->ring);
	struct io_uring_sqe *const reading = chain ? io_uring_get_sqe(&trial->ring) : NULL;
	struct io_uring_sqe *const closing = chain ? io_uring_get_sqe(&trial->ring) : NULL;
	if (!opening || (chain && (!reading || !closing)))
		return false;
	io_uring_prep_openat_direct(opening, root_fd, ".", O_RDONLY, 0, 0);
	opening->user_data = TRIAL_OPEN;
	if (!chain)
		return true;
	opening->flags |= IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS;
	io_uring_prep_read(reading, 0, trial->buffer, TRIAL_READ_BYTES, 0);
	reading->flags |= IOSQE_FIXED_FILE | IOSQE_IO_HARDLINK;
	reading->user_data = TRIAL_READ;
	io_uring_prep_close_direct(closing, 0);
	closing->user_data = TRIAL_CLOSE;
	return true;
}

static bool uring_direct_open_works(int root_fd)
{
	struct trial trial;
	if (trial_open(&trial))
		return false;
	if (trial_prepare(&trial, root_fd, false))
		trial_run(&trial, 1);
	io_uring_queue_exit(&trial.ring);
	return trial.results[TRIAL_OPEN] == 0;
}

/* The read of a folder fails with EISDIR, but by that it has found the descriptor, and the close
 * shows that a hard link outlives a failure. */
static bool uring_chain_works(int root_fd)
{
	struct trial trial;
	if (trial_open(&trial))
		return false;
	if ((trial.ring.features & IORING_FEAT_CQE_SKIP) && trial_prepare(&trial, root_fd, true))
		trial_run(&trial, 2);
	io_uring_queue_exit(&trial.ring);
	return trial.results[TRIAL_OPEN] == TRIAL_UNSET && trial.results[TRIAL_READ] == -EISDIR &&
	       trial.results[TRIAL_CLOSE] == 0;
}

/* A ring first tries everything without waiting.  But of an open it asks that of the path alone: what
 * the file system then does, a round trip on FUSE or NFSv4, happens inside the submission.  So do reads
 * from a FUSE server that did not ask for asynchronous ones.  On a local file system the inode of a
 * cached path is in memory. */
bool uring_may_wait(int fd)
{
	static const uint32_t local[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
		F2FS_SUPER_MAGIC, TMPFS_MAGIC, RAMFS_MAGIC, OVERLAYFS_SUPER_MAGIC, SQUASHFS_MAGIC,
		EROFS_SUPER_MAGIC_V1, ISOFS_SUPER_MAGIC, EXFAT_SUPER_MAGIC, MSDOS_SUPER_MAGIC};
	struct statfs found;
	if (fstatfs(fd, &found) != 0)
		return true;
	for (size_t i = 0; i < sizeof local / sizeof *local; i++)
		if ((uint32_t)found.f_type == local[i])
			return false;
	return true;
}

/* --- setting up a ring --------------------------------------------------------------------------- */

enum {
	URING_CHAIN_SQES = 3,     /* open, read, close */
	URING_REASON_BYTES = 256, /* of text on what was not got */
	CHUNKS_MAX = 1024,        /* registered buffers a ring may have on older kernels */
};

static unsigned uring_slots(unsigned depth)
{
	return 2 * depth;
}

/* The kernel's limit for one registered buffer. */
static const size_t chunk_bytes = (size_t)1 << 30;

/* In the order of preference.  DEFER_TASKRUN runs completions in the reader's own wait and not by
 * interrupting it: no switch and no inter-processor interrupt per file. */
static const unsigned setup_flags[] = {
	IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
	IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
		IORING_SETUP_SINGLE_ISSUER,
	IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
	IORING_SETUP_SUBMIT_ALL,
	0,
};

__attribute__((format(printf, 2, 3))) static void ring_say(
	char lack[URING_REASON_BYTES], const char *format, ...)
{
	size_t used = strlen(lack);
	if (used > 0 && used + 2 < URING_REASON_BYTES) {
		memcpy(lack + used, "; ", 3);
		used += 2;
	}
	va_list args;
	va_start(args, format);
	(void)vsnprintf(lack + used, URING_REASON_BYTES - used, format, args);
	va_end(args);
}

static int ring_set_up(struct uring_ring *ring, unsigned entries)
{
	int code = -EINVAL;
	for (size_t i = 0; i < sizeof setup_flags / sizeof *setup_flags && code == -EINVAL; i++) {
		struct io_uring_params params = {.flags = setup_flags[i] | IORING_SETUP_CLAMP};
		code = io_uring_queue_init_params(entries, &ring->ring, &params);
		ring->setup_flags = setup_flags[i];
	}
	return code;
}

static void ring_say_unregistered(char lack[URING_REASON_BYTES], int code, size_t bytes)
{
	struct rlimit limit;
	char wanted[UNITS_BYTES];
	char allowed[UNITS_BYTES];
	if (code != -ENOMEM || getrlimit(RLIMIT_MEMLOCK, &limit) != 0 ||
		limit.rlim_cur == RLIM_INFINITY) {
		ring_say(lack, "registered buffers: no: %s", strerror(-code));
		return;
	}
	ring_say(lack,
		"registered buffers: off: the memlock limit of %s (ulimit -l) is below the %s that a reader needs",
		units_format_size((double)limit.rlim_cur, allowed),
		units_format_size((double)bytes, wanted));
}

static bool ring_register_buffers(
	struct uring_ring *ring, const struct source *source, char lack[URING_REASON_BYTES])
{
	if (!source->blob_memory || source->blob_bytes == 0)
		return false;
	const size_t chunks = (source->blob_bytes + chunk_bytes - 1) / chunk_bytes;
	if (chunks > CHUNKS_MAX) {
		ring_say(lack, "registered buffers: no: more than %d GiB", CHUNKS_MAX);
		return false;
	}
	struct iovec *const parts = calloc(chunks, sizeof *parts);
	int code = parts ? 0 : -ENOMEM;
	for (size_t i = 0; parts && i < chunks; i++) {
		const size_t left = source->blob_bytes - i * chunk_bytes;
		parts[i].iov_base = source->blob_memory + i * chunk_bytes;
		parts[i].iov_len = left < chunk_bytes ? left : chunk_bytes;
	}
	if (!code)
		code = io_uring_register_buffers(&ring->ring, parts, (unsigned)chunks);
	free(parts);
	if (code)
		ring_say_unregistered(lack, code, source->blob_bytes);
	return code == 0;
}

int uring_buffer_index(const struct uring_source *source, const uint8_t *data, size_t size)
{
	if (size == 0 || data < source->base.blob_memory)
		return -1;
	const size_t first = (size_t)(data - source->base.blob_memory);
	const size_t last = first + size - 1;
	if (last >= source->base.blob_bytes || first / chunk_bytes != last / chunk_bytes)
		return -1;
	return (int)(first / chunk_bytes);
}

/* An empty table; kernels before 5.19 want it spelled out. */
static bool ring_register_table(
	struct uring_ring *ring, unsigned slots, char lack[URING_REASON_BYTES])
{
	int code = io_uring_register_files_sparse(&ring->ring, slots);
	if (code == -EINVAL) {
		int *const empty = malloc(slots * sizeof *empty);
		for (unsigned i = 0; empty && i < slots; i++)
			empty[i] = -1;
		code = empty ? io_uring_register_files(&ring->ring, empty, slots) : -ENOMEM;
		free(empty);
	}
	if (code)
		ring_say(lack, "direct descriptors: no: %s", strerror(-code));
	return code == 0;
}

/* What waits holds a worker thread of the kernel: an open, a read on some file systems, a close.  By
 * default there are at most four for each core ("bounded" ones), which would be the depth there.  They
 * come into being as they are needed. */
static void ring_allow_workers(
	struct uring_ring *ring, unsigned slots, char lack[URING_REASON_BYTES])
{
	unsigned most[] = {slots, 0 /* of the unbounded: as it is */};
	const int code = io_uring_register_iowq_max_workers(&ring->ring, most);
	if (code)
		ring_say(lack, "kernel threads for files that wait: four for each core: %s",
			strerror(-code));
}

/* Opens a ring with what it can get of source->options.  lack tells what was not got ("" if all was).
 * Fails only when there is no ring at all.  The thread that opens it owns it. */
static int uring_ring_open(struct uring_ring *ring, const struct uring_source *source,
	char lack[URING_REASON_BYTES], struct error *err)
{
	*ring = (struct uring_ring){0};
	lack[0] = '\0';
	const unsigned slots = uring_slots(source->base.depth_most);
	/* Room for all that slots can have unsubmitted at once: the queue is never full. */
	const int code = ring_set_up(ring, URING_CHAIN_SQES * slots);
	if (code)
		return error_set_errno(err, -code, "cannot set up an io_uring for %u files", slots);
	(void)io_uring_register_ring_fd(&ring->ring);
	ring_allow_workers(ring, slots, lack);
	if (source->options.registered)
		ring->registered = ring_register_buffers(ring, &source->base, lack);
	if (source->options.direct_descriptors)
		ring->direct_descriptors = ring_register_table(ring, slots, lack);
	ring->linked = source->options.linked && ring->direct_descriptors;
	return 0;
}

/* Unregistering gives the locked memory back at once; closing a ring does so at some later time,
 * when the next repetition may already have been refused. */
static void uring_ring_close(struct uring_ring *ring)
{
	if (ring->registered)
		(void)io_uring_unregister_buffers(&ring->ring);
	if (ring->direct_descriptors)
		(void)io_uring_unregister_files(&ring->ring);
	io_uring_queue_exit(&ring->ring);
}

/* --- the way of a file through the ring ---------------------------------------------------------- */

/* One file in work.  Slots are twice the depth, since a slot stays taken until its file is closed. */
struct uring_slot {
	struct read_request *request; /* NULL once delivered */
	struct read_progress progress;
	int fd; /* a plain descriptor; unused with direct ones, whose number is the slot's */
	uint32_t generation; /* of this use: completions of an earlier one are ignored */
	bool linked;         /* its chain is under way */
	bool reopen;         /* once it is closed */
	struct open_file
		*kept; /* a file that stays open, which is read; NULL: it is opened for this */
};

/* user_data: generation (32 bits), slot, operation. */
enum uring_op { OP_OPEN, OP_READ, OP_CLOSE };
enum { READ_BYTES_MAX = 1 << 30 }; /* of one submission, whose length has 32 bits */
enum { OP_BITS = 2, OP_MASK = (1 << OP_BITS) - 1, GENERATION_SHIFT = 32 };

static struct uring_source *uring_source_of(const struct uring_reader *reader)
{
	return (struct uring_source *)reader->base.source;
}

static struct source_counter *uring_counter_of(const struct uring_reader *reader)
{
	return &reader->base.source->counters[reader->base.index];
}

static unsigned uring_index_of(const struct uring_reader *reader, const struct uring_slot *slot)
{
	return (unsigned)(slot - reader->slots);
}

static const char *uring_path_of(const struct uring_reader *reader, const struct uring_slot *slot)
{
	return reader->base.source->dataset->samples[slot->request->sample].path;
}

/* The queue holds three submissions for each slot, so it is never full. */
static void uring_finish_sqe(struct uring_reader *reader, const struct uring_slot *slot,
	struct io_uring_sqe *sqe, enum uring_op op, unsigned flags)
{
	if (op != OP_CLOSE && uring_source_of(reader)->options.async)
		flags |= IOSQE_ASYNC;
	sqe->flags |= (__u8)flags;
	sqe->user_data = ((uint64_t)slot->generation << GENERATION_SHIFT) |
			 ((uint64_t)uring_index_of(reader, slot) << OP_BITS) | (uint64_t)op;
}

static bool uring_prepare_open(struct uring_reader *reader, struct uring_slot *slot, unsigned flags)
{
	struct io_uring_sqe *const sqe = io_uring_get_sqe(&reader->ring.ring);
	if (!sqe)
		return false;
	const int open_flags = O_RDONLY | (slot->progress.direct ? O_DIRECT : 0);
	const int root_fd = reader->base.source->store->root_fd;
	if (reader->ring.direct_descriptors) /* O_CLOEXEC is refused on these */
		io_uring_prep_openat_direct(sqe, root_fd, uring_path_of(reader, slot), open_flags,
			0, uring_index_of(reader, slot));
	else
		io_uring_prep_openat(
			sqe, root_fd, uring_path_of(reader, slot), open_flags | O_CLOEXEC, 0);
	uring_finish_sqe(reader, slot, sqe, OP_OPEN, flags);
	return true;
}

static bool uring_prepare_read(struct uring_reader *reader, struct uring_slot *slot, unsigned flags)
{
	struct io_uring_sqe *const sqe = io_uring_get_sqe(&reader->ring.ring);
	if (!sqe)
		return false;
	const struct uring_source *const source = uring_source_of(reader);
	const struct read_progress *const progress = &slot->progress;
	const bool table = reader->ring.direct_descriptors && !slot->kept;
	const int own = slot->kept ? slot->kept->file.fd : slot->fd;
	const int fd = table ? (int)uring_index_of(reader, slot) : own;
	uint8_t *const data = slot->request->buffer + progress->got;
	const uint64_t offset = progress->offset + progress->got;
	const size_t limit =
		source->options.read_limit ? source->options.read_limit : READ_BYTES_MAX;
	const size_t left = progress->want - progress->got;
	const size_t size = left < limit ? left : limit;
	const int buffer = reader->ring.registered ? uring_buffer_index(source, data, size) : -1;
	if (buffer >= 0)
		io_uring_prep_read_fixed(sqe, fd, data, (unsigned)size, offset, buffer);
	else
		io_uring_prep_read(sqe, fd, data, (unsigned)size, offset);
	uring_finish_sqe(
		reader, slot, sqe, OP_READ, flags | (table ? (unsigned)IOSQE_FIXED_FILE : 0U));
	return true;
}

static bool uring_prepare_close(struct uring_reader *reader, struct uring_slot *slot)
{
	struct io_uring_sqe *const sqe = io_uring_get_sqe(&reader->ring.ring);
	if (!sqe)
		return false;
	if (reader->ring.direct_descriptors)
		io_uring_prep_close_direct(sqe, uring_index_of(reader, slot));
	else
		io_uring_prep_close(sqe, slot->fd);
	uring_finish_sqe(reader, slot, sqe, OP_CLOSE, 0);
	return true;
}

static void uring_deliver(struct uring_reader *reader, struct uring_slot *slot, enum read_step step)
{
	struct read_request *const request = slot->request;
	slot->request = NULL;
	if (step == READ_STEP_DONE)
		request->size = slot->progress.got;
	else
		request->status = slot->progress.status;
	request_list_push(&reader->done, request);
}

/* The ring is lost: every request ends with this status. */
static void uring_fail_all(struct uring_reader *reader, int status)
{
	reader->broken = status;
	for (unsigned i = 0; i < reader->slot_count; i++) {
		struct uring_slot *const slot = &reader->slots[i];
		if (!slot->request)
			continue;
		slot->progress.status = status;
		uring_deliver(reader, slot, READ_STEP_FAILED);
	}
	struct read_request *request;
	while ((request = request_list_pop(&reader->waiting)) != NULL) {
		request->status = status;
		request_list_push(&reader->done, request);
	}
}

static void uring_free_slot(struct uring_reader *reader, struct uring_slot *slot)
{
	slot->generation++;
	reader->free_slots[reader->free_count++] = uring_index_of(reader, slot);
}

/* Linked: the whole chain; else its open alone. */
static void uring_start_file(struct uring_reader *reader, struct uring_slot *slot, bool linked)
{
	const unsigned flags = linked ? IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS : 0;
	slot->generation++;
	slot->linked = linked;
	slot->reopen = false;
	if (!uring_prepare_open(reader, slot, flags) ||
		(linked && (!uring_prepare_read(reader, slot, IOSQE_IO_HARDLINK) ||
				   !uring_prepare_close(reader, slot))))
		uring_fail_all(reader, -EBUSY);
}

/* A part of a file that is open, or is opened now: a read and nothing else.  False: it goes the way of other
 * files. */
static bool uring_start_kept(struct uring_reader *reader, struct uring_slot *slot)
{
	int code;
	slot->kept = slot->request->part && reader->files.room > 0
			     ? open_files_find(&reader->files, reader->base.source->store,
				       uring_path_of(reader, slot), slot->progress.direct, &code)
			     : NULL;
	if (!slot->kept)
		return false;
	slot->kept->users++;
	slot->generation++;
	slot->linked = false;
	slot->reopen = false;
	if (!uring_prepare_read(reader, slot, 0))
		uring_fail_all(reader, -EBUSY);
	return true;
}

enum { OPEN_TIMED = 16 };

static bool uring_times_open(struct uring_reader *reader)
{
	return reader->base.source->timed && reader->begun++ % OPEN_TIMED == 0;
}

/* Puts waiting requests into free slots and prepares their submission. */
static void uring_start(struct uring_reader *reader)
{
	while (reader->free_count > 0 && reader->waiting.head) {
		struct read_request *const request = request_list_pop(&reader->waiting);
		struct uring_slot *const slot =
			&reader->slots[reader->free_slots[--reader->free_count]];
		slot->request = request;
		read_progress_request(
			&slot->progress, request, uring_source_of(reader)->options.direct);
		if (!uring_start_kept(reader, slot))
			uring_start_file(reader, slot,
				reader->ring.linked && !uring_times_open(reader));
	}
}

static bool uring_is_final(enum read_step step)
{
	return step == READ_STEP_DONE || step == READ_STEP_FAILED;
}

/* A failed open ends its chain without further completions. */
static void uring_opened(struct uring_reader *reader, struct uring_slot *slot, int result)
{
	if (result >= 0) {
		slot->fd = result;
		if (reader->base.source->timed)
			slot->request->opened_ns = clock_now_ns();
		if (!uring_prepare_read(reader, slot, 0))
			uring_fail_all(reader, -EBUSY);
		return;
	}
	const enum read_step step =
		read_progress_open_failed(&slot->progress, result, uring_counter_of(reader));
	if (uring_is_final(step)) {
		uring_deliver(reader, slot, step);
		uring_free_slot(reader, slot);
	} else {
		uring_start_file(reader, slot, false);
	}
}

static void uring_answered(struct uring_reader *reader, struct uring_slot *slot, int result)
{
	enum read_step step =
		read_progress_answer(&slot->progress, result, uring_counter_of(reader));
	if (step == READ_STEP_SIZE)
		step = read_progress_size(
			&slot->progress, store_file_bytes(reader->base.source->store,
						 uring_path_of(reader, slot), NULL));
	if (step == READ_STEP_MORE && !slot->linked) {
		if (!uring_prepare_read(reader, slot, 0))
			uring_fail_all(reader, -EBUSY);
		return;
	}
	slot->reopen = !uring_is_final(step);
	if (slot->kept) {
		slot->kept->users--;
		slot->kept = NULL;
		if (slot->reopen) {
			uring_start_file(reader, slot, false);
			return;
		}
		uring_deliver(reader, slot, step);
		uring_free_slot(reader, slot);
		return;
	}
	if (!slot->reopen)
		uring_deliver(reader, slot, step);
	reader->closing++;
	if (!slot->linked && !uring_prepare_close(reader, slot))
		uring_fail_all(reader, -EBUSY);
}

static void uring_closed(struct uring_reader *reader, struct uring_slot *slot)
{
	reader->closing--;
	if (slot->reopen)
		uring_start_file(reader, slot, false);
	else
		uring_free_slot(reader, slot);
}

/* Acts on one completion; may prepare further submissions. */
static void uring_complete(struct uring_reader *reader, uint64_t user_data, int result)
{
	const uint32_t low = (uint32_t)user_data;
	struct uring_slot *const slot = &reader->slots[low >> OP_BITS];
	if (slot->generation != (uint32_t)(user_data >> GENERATION_SHIFT) || reader->broken)
		return;
	switch ((enum uring_op)(low & OP_MASK)) {
	case OP_OPEN:
		uring_opened(reader, slot, result);
		break;
	case OP_READ:
		uring_answered(reader, slot, result);
		break;
	case OP_CLOSE:
		uring_closed(reader, slot);
		break;
	}
}

/* --- the engine ---------------------------------------------------------------------------------- */

enum {
	HARVEST_BATCH = 64,
	/* Longest wait for closes that are under way when a reader ends. */
	CLOSE_WAIT_MS = 1000,
	/* Files handed to the kernel at once.  Completions come in bursts, so that the device lies idle
	 * until the first read of the next burst; with all of it in one submission that read would stand
	 * behind the opens of all the others.  Two: 4 % more files a second than sixteen, for 0.3 us each. */
	SUBMIT_FILES = 2,
};

static const uint64_t WAIT_MAX_NS = 3600 * NS_PER_S;

/* The folder may be local and hold links to what is not. */
static bool uring_files_may_wait(const struct source *base)
{
	const struct dataset *const dataset = base->dataset;
	const int root_fd = base->store->root_fd;
	const int fd = dataset->count > 0
			       ? openat(root_fd, dataset->samples[0].path, O_PATH | O_CLOEXEC)
			       : -1;
	const bool may = uring_may_wait(fd >= 0 ? fd : root_fd);
	if (fd >= 0)
		(void)close(fd);
	return may;
}

/* What the rings will be like; the trial ring is thrown away. */
static int uring_try_out(struct uring_source *source, struct error *err)
{
	struct source *const base = &source->base;
	struct uring_options *const options = &source->options;
	const int root_fd = base->store->root_fd;
	if (options->direct)
		options->direct = source_direct_works(base);
	const bool wanted_linked = options->linked;
	options->linked = wanted_linked && uring_chain_works(root_fd);
	const bool direct_open = options->linked || uring_direct_open_works(root_fd);
	options->direct_descriptors = direct_open;
	options->async = uring_files_may_wait(base);
	struct uring_ring ring;
	char lack[URING_REASON_BYTES];
	const int code = uring_ring_open(&ring, source, lack, err);
	if (code)
		return code;
	options->registered = ring.registered;
	options->direct_descriptors = ring.direct_descriptors;
	options->linked = ring.linked;
	uring_ring_close(&ring);
	source_note(base, "linked open-read-close: %s", options->linked ? "on" : "off");
	if (wanted_linked && !options->linked)
		source_note(base, "the kernel cannot link an open with a read (needs Linux 5.18)");
	if (options->async)
		source_note(base,
			"opens and reads run on kernel threads, because this file system may block");
	if (options->registered)
		source_note(base, "registered buffers: on");
	if (!direct_open)
		source_note(
			base, "direct descriptors: off: the kernel lacks them (needs Linux 5.15)");
	if (lack[0])
		source_note(base, "%s", lack);
	if (!(ring.setup_flags & IORING_SETUP_DEFER_TASKRUN))
		source_note(base,
			"deferred task work: off: the kernel lacks it (needs Linux 6.1), which costs CPU per file");
	return 0;
}

/* A direct descriptor does not count among the process's own. */
static int uring_check_open_files(
	const struct uring_source *source, unsigned depth, struct error *err)
{
	const struct source *const base = &source->base;
	const unsigned slots = source->options.direct_descriptors ? 0 : uring_slots(depth);
	return source_check_open_files(base, base->threads * (1 + slots), err);
}

/* A file that is to stay open is opened by the reader itself, which waits for it: not where that takes long,
 * nor for each of many files in any order. */
static bool uring_keeps_files(const struct uring_source *source)
{
	enum { FEW_FILES = 32 };
	const struct source *const base = &source->base;
	const bool any_order = config_integer(base->config, KEY_READ_ORDER) == READ_ORDER_SHUFFLE;
	return !source->options.async && (!any_order || base->dataset->files <= FEW_FILES);
}

static int uring_open(struct source *base, struct error *err)
{
	struct uring_source *const source = (struct uring_source *)base;
	source->options = (struct uring_options){
		.direct = config_on(base->config, KEY_READ_DIRECT),
		.linked = config_on(base->config, KEY_READ_LINKED),
		.registered = config_on(base->config, KEY_READ_REGISTERED),
		.direct_descriptors = true,
	};
	int code = uring_try_out(source, err);
	if (!code && uring_check_open_files(source, base->depth_most, err) != 0) {
		base->depth_most = base->depth;
		code = uring_check_open_files(source, base->depth, err);
	}
	if (!code)
		(void)pthread_mutex_init(&source->lock, NULL);
	if (!code && uring_keeps_files(source))
		source->kept = source_open_files(base,
			1 + (source->options.direct_descriptors ? 0
								: uring_slots(base->depth_most)));
	return code;
}

static void uring_close(struct source *base)
{
	(void)pthread_mutex_destroy(&((struct uring_source *)base)->lock);
}

static int uring_allocate_slots(struct uring_reader *reader)
{
	reader->slot_count = uring_slots(reader->base.source->depth_most);
	reader->slots = calloc(reader->slot_count, sizeof *reader->slots);
	reader->free_slots = calloc(reader->slot_count, sizeof *reader->free_slots);
	if (!reader->slots || !reader->free_slots)
		return -ENOMEM;
	for (unsigned i = 0; i < reader->slot_count; i++)
		reader->free_slots[i] = reader->slot_count - 1 - i;
	reader->free_count = reader->slot_count;
	return 0;
}

static void uring_free_slots(struct uring_reader *reader)
{
	free(reader->slots);
	free(reader->free_slots);
}

static int uring_open_ring(struct uring_reader *reader, struct error *err)
{
	struct uring_source *const source = (struct uring_source *)reader->base.source;
	char lack[URING_REASON_BYTES];
	(void)pthread_mutex_lock(&source->lock);
	const int code = uring_ring_open(&reader->ring, source, lack, err);
	if (!code && lack[0])
		source_note(&source->base, "reader %u: %s", reader->base.index, lack);
	(void)pthread_mutex_unlock(&source->lock);
	return code;
}

static int uring_reader_open(struct reader *base, struct error *err)
{
	struct uring_reader *const reader = (struct uring_reader *)base;
	int code = uring_allocate_slots(reader);
	if (code)
		(void)error_set(err, code, "out of memory for reader %u", base->index);
	else
		code = uring_open_ring(reader, err);
	if (code)
		uring_free_slots(reader);
	else /* without memory each part has its file opened */
		(void)open_files_open(&reader->files, uring_source_of(reader)->kept);
	return code;
}

/* Takes what has completed: no system call unless the kernel says that it holds work for us. */
static void uring_harvest(struct uring_reader *reader)
{
	struct io_uring *const ring = &reader->ring.ring;
	for (;;) {
		struct io_uring_cqe *ready[HARVEST_BATCH];
		const unsigned count = io_uring_peek_batch_cqe(ring, ready, HARVEST_BATCH);
		for (unsigned i = 0; i < count; i++)
			uring_complete(reader, ready[i]->user_data, ready[i]->res);
		io_uring_cq_advance(ring, count);
		if (count < HARVEST_BATCH)
			break;
	}
	uring_start(reader);
}

/* Errors of io_uring_enter after which it may be called again. */
static bool uring_may_retry(int code)
{
	return code >= 0 || code == -EINTR || code == -EAGAIN || code == -EBUSY || code == -ETIME;
}

/* Submits what is prepared and waits for that many completions (0: none), for at most wait_ns.  False: a
 * signal came, or the ring is lost. */
static bool uring_enter(struct uring_reader *reader, unsigned wanted, uint64_t wait_ns)
{
	struct io_uring *const ring = &reader->ring.ring;
	int code = 0;
	if (wanted > 0) {
		struct __kernel_timespec wait = {
			.tv_sec = (int64_t)(wait_ns / NS_PER_S),
			.tv_nsec = (int64_t)(wait_ns % NS_PER_S),
		};
		struct io_uring_cqe *first;
		code = io_uring_submit_and_wait_timeout(ring, &first, wanted, &wait, NULL);
	} else if (io_uring_sq_ready(ring) > 0) {
		code = io_uring_submit_and_get_events(ring);
	}
	if (!uring_may_retry(code))
		uring_fail_all(reader, code);
	uring_harvest(reader);
	return code != -EINTR && !reader->broken;
}

/* Waits for the first completed read.  Closes under way complete on the way and are not waited for:
 * else each would cost a wake-up. */
static void uring_wait_for_one(struct uring_reader *reader, uint64_t wait_ns)
{
	const uint64_t start_ns = clock_now_ns();
	uint64_t waited_ns = 0;
	while (!reader->done.head && waited_ns < wait_ns) {
		if (!uring_enter(reader, 1 + reader->closing, wait_ns - waited_ns))
			return;
		waited_ns = clock_now_ns() - start_ns;
	}
}

/* A reader may end only when the kernel has closed its files. */
static void uring_wait_for_closes(struct uring_reader *reader)
{
	const uint64_t start_ns = clock_now_ns();
	while (reader->closing > 0 && !reader->broken &&
		clock_now_ns() - start_ns < CLOSE_WAIT_MS * NS_PER_MS)
		(void)uring_enter(reader, reader->closing, CLOSE_WAIT_MS * NS_PER_MS);
}

static void uring_reader_close(struct reader *base)
{
	struct uring_reader *const reader = (struct uring_reader *)base;
	struct uring_source *const source = uring_source_of(reader);
	uring_wait_for_closes(reader);
	(void)pthread_mutex_lock(&source->lock);
	uring_ring_close(&reader->ring);
	(void)pthread_mutex_unlock(&source->lock);
	open_files_close(&reader->files, reader->base.source->store);
	uring_free_slots(reader);
}

static void uring_submit(struct reader *base, struct read_request *request)
{
	struct uring_reader *const reader = (struct uring_reader *)base;
	request_list_push(&reader->waiting, request);
	if (reader->broken) {
		uring_fail_all(reader, reader->broken);
		return;
	}
	uring_start(reader);
	const unsigned per_file = reader->ring.linked ? URING_CHAIN_SQES : 1;
	if (io_uring_sq_ready(&reader->ring.ring) >= SUBMIT_FILES * per_file)
		(void)uring_enter(reader, 0, 0);
}

static size_t uring_reap(
	struct reader *base, struct read_request **done, size_t room, uint64_t wait_ns)
{
	struct uring_reader *const reader = (struct uring_reader *)base;
	uring_harvest(reader);
	if (!reader->done.head && wait_ns > 0)
		uring_wait_for_one(reader, wait_ns < WAIT_MAX_NS ? wait_ns : WAIT_MAX_NS);
	(void)uring_enter(reader, 0, 0); /* what has been prepared meanwhile must not lie about */
	return request_list_take(&reader->done, done, room);
}

const struct source_ops source_io_uring = {
	.name = "io_uring",
	.summary =
		"asynchronous open, read and close, read.depth files in flight per reader thread",
	.automatic = true,
	.needs_local = true,
	.waits_as_io = true, /* at a ring, since Linux 6.6 */
	.source_size = sizeof(struct uring_source),
	.reader_size = sizeof(struct uring_reader),
	.unavailable = uring_unavailable,
	.open = uring_open,
	.close = uring_close,
	.reader_open = uring_reader_open,
	.reader_close = uring_reader_close,
	.submit = uring_submit,
	.reap = uring_reap,
};
