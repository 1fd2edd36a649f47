/* One file's way through the ring: the chain or the stages of uring.h, and what each completion
 * leads to.  A short read of a chain finds its file closed already, so the file is opened again,
 * staged. */
#include "workloads/source/uring.h"

#include "harness/measure/timeline.h"

#include <errno.h>
#include <fcntl.h>

/* user_data: generation (32 bits), slot, operation. */
enum uring_op { OP_OPEN, OP_READ, OP_CLOSE };
enum { READ_BYTES_MAX = 1 << 30 }; /* of one submission, whose length has 32 bits */
enum { OP_BITS = 2, OP_MASK = (1 << OP_BITS) - 1, GENERATION_SHIFT = 32 };

static struct uring_source *source_of(const struct uring_reader *reader)
{
	return (struct uring_source *)reader->base.source;
}

static struct source_counter *counter_of(const struct uring_reader *reader)
{
	return &reader->base.source->counters[reader->base.index];
}

static unsigned index_of(const struct uring_reader *reader, const struct uring_slot *slot)
{
	return (unsigned)(slot - reader->slots);
}

static const char *path_of(const struct uring_reader *reader, const struct uring_slot *slot)
{
	return reader->base.source->dataset->samples[slot->request->sample].path;
}

/* The queue holds three submissions for each slot, so it is never full. */
static void finish_sqe(struct uring_reader *reader, const struct uring_slot *slot,
	struct io_uring_sqe *sqe, enum uring_op op, unsigned flags)
{
	if (op != OP_CLOSE && source_of(reader)->options.async)
		flags |= IOSQE_ASYNC;
	sqe->flags |= (__u8)flags;
	sqe->user_data = ((uint64_t)slot->generation << GENERATION_SHIFT) |
			 ((uint64_t)index_of(reader, slot) << OP_BITS) | (uint64_t)op;
}

static bool prepare_open(struct uring_reader *reader, struct uring_slot *slot, unsigned flags)
{
	struct io_uring_sqe *const sqe = io_uring_get_sqe(&reader->ring.ring);
	if (!sqe)
		return false;
	const int open_flags = O_RDONLY | (slot->progress.direct ? O_DIRECT : 0);
	const int root_fd = reader->base.source->store->root_fd;
	if (reader->ring.direct_descriptors) /* O_CLOEXEC is refused on these */
		io_uring_prep_openat_direct(
			sqe, root_fd, path_of(reader, slot), open_flags, 0, index_of(reader, slot));
	else
		io_uring_prep_openat(
			sqe, root_fd, path_of(reader, slot), open_flags | O_CLOEXEC, 0);
	finish_sqe(reader, slot, sqe, OP_OPEN, flags);
	return true;
}

static bool prepare_read(struct uring_reader *reader, struct uring_slot *slot, unsigned flags)
{
	struct io_uring_sqe *const sqe = io_uring_get_sqe(&reader->ring.ring);
	if (!sqe)
		return false;
	const struct uring_source *const source = source_of(reader);
	const struct read_progress *const progress = &slot->progress;
	const bool table = reader->ring.direct_descriptors;
	const int fd = table ? (int)index_of(reader, slot) : slot->fd;
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
	finish_sqe(reader, slot, sqe, OP_READ, flags | (table ? (unsigned)IOSQE_FIXED_FILE : 0U));
	return true;
}

static bool prepare_close(struct uring_reader *reader, struct uring_slot *slot)
{
	struct io_uring_sqe *const sqe = io_uring_get_sqe(&reader->ring.ring);
	if (!sqe)
		return false;
	if (reader->ring.direct_descriptors)
		io_uring_prep_close_direct(sqe, index_of(reader, slot));
	else
		io_uring_prep_close(sqe, slot->fd);
	finish_sqe(reader, slot, sqe, OP_CLOSE, 0);
	return true;
}

static void deliver(struct uring_reader *reader, struct uring_slot *slot, enum read_step step)
{
	struct read_request *const request = slot->request;
	slot->request = NULL;
	if (step == READ_STEP_DONE)
		request->size = slot->progress.got;
	else
		request->status = slot->progress.status;
	request_list_push(&reader->done, request);
}

static void free_slot(struct uring_reader *reader, struct uring_slot *slot)
{
	slot->generation++;
	reader->free_slots[reader->free_count++] = index_of(reader, slot);
}

static void start_staged(struct uring_reader *reader, struct uring_slot *slot)
{
	slot->generation++;
	slot->linked = false;
	slot->reopen = false;
	if (!prepare_open(reader, slot, 0))
		uring_fail_all(reader, -EBUSY);
}

static void start_linked(struct uring_reader *reader, struct uring_slot *slot)
{
	slot->generation++;
	slot->linked = true;
	slot->reopen = false;
	if (!prepare_open(reader, slot, IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS) ||
		!prepare_read(reader, slot, IOSQE_IO_HARDLINK) || !prepare_close(reader, slot))
		uring_fail_all(reader, -EBUSY);
}

void uring_start(struct uring_reader *reader)
{
	while (reader->free_count > 0 && reader->waiting.head) {
		struct read_request *const request = request_list_pop(&reader->waiting);
		struct uring_slot *const slot =
			&reader->slots[reader->free_slots[--reader->free_count]];
		slot->request = request;
		read_progress_request(&slot->progress, request, source_of(reader)->options.direct);
		if (reader->ring.linked)
			start_linked(reader, slot);
		else
			start_staged(reader, slot);
	}
}

static bool is_final(enum read_step step)
{
	return step == READ_STEP_DONE || step == READ_STEP_FAILED;
}

/* A failed open ends its chain without further completions. */
static void opened(struct uring_reader *reader, struct uring_slot *slot, int result)
{
	if (result >= 0) {
		slot->fd = result;
		slot->request->opened_ns = timeline_mark();
		if (!prepare_read(reader, slot, 0))
			uring_fail_all(reader, -EBUSY);
		return;
	}
	const enum read_step step =
		read_progress_open_failed(&slot->progress, result, counter_of(reader));
	if (is_final(step)) {
		deliver(reader, slot, step);
		free_slot(reader, slot);
	} else {
		start_staged(reader, slot);
	}
}

static void answered(struct uring_reader *reader, struct uring_slot *slot, int result)
{
	enum read_step step = read_progress_answer(&slot->progress, result, counter_of(reader));
	if (step == READ_STEP_SIZE)
		step = read_progress_size(&slot->progress,
			store_file_bytes(reader->base.source->store, path_of(reader, slot), NULL));
	if (step == READ_STEP_MORE && !slot->linked) {
		if (!prepare_read(reader, slot, 0))
			uring_fail_all(reader, -EBUSY);
		return;
	}
	slot->reopen = !is_final(step);
	if (!slot->reopen)
		deliver(reader, slot, step);
	reader->closing++;
	if (!slot->linked && !prepare_close(reader, slot))
		uring_fail_all(reader, -EBUSY);
}

static void closed(struct uring_reader *reader, struct uring_slot *slot)
{
	reader->closing--;
	if (slot->reopen)
		start_staged(reader, slot);
	else
		free_slot(reader, slot);
}

void uring_complete(struct uring_reader *reader, uint64_t user_data, int result)
{
	const uint32_t low = (uint32_t)user_data;
	struct uring_slot *const slot = &reader->slots[low >> OP_BITS];
	if (slot->generation != (uint32_t)(user_data >> GENERATION_SHIFT) || reader->broken)
		return;
	switch ((enum uring_op)(low & OP_MASK)) {
	case OP_OPEN:
		opened(reader, slot, result);
		break;
	case OP_READ:
		answered(reader, slot, result);
		break;
	case OP_CLOSE:
		closed(reader, slot);
		break;
	}
}

void uring_fail_all(struct uring_reader *reader, int status)
{
	reader->broken = status;
	for (unsigned i = 0; i < reader->slot_count; i++) {
		struct uring_slot *const slot = &reader->slots[i];
		if (!slot->request)
			continue;
		slot->progress.status = status;
		deliver(reader, slot, READ_STEP_FAILED);
	}
	struct read_request *request;
	while ((request = request_list_pop(&reader->waiting)) != NULL) {
		request->status = status;
		request_list_push(&reader->done, request);
	}
}
