/* Setting up a ring: the flags the kernel takes, registered buffers, a table of direct descriptors,
 * worker threads. */
#include "workloads/source/uring.h"

#include "harness/base/units.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
	CHUNKS_MAX = 1024, /* registered buffers a ring may have on older kernels */
};

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

__attribute__((format(printf, 2, 3))) static void say(
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

static int set_up(struct uring_ring *ring, unsigned entries)
{
	int code = -EINVAL;
	for (size_t i = 0; i < sizeof setup_flags / sizeof *setup_flags && code == -EINVAL; i++) {
		struct io_uring_params params = {.flags = setup_flags[i] | IORING_SETUP_CLAMP};
		code = io_uring_queue_init_params(entries, &ring->ring, &params);
		ring->setup_flags = setup_flags[i];
	}
	return code;
}

static void say_unregistered(char lack[URING_REASON_BYTES], int code, size_t bytes)
{
	struct rlimit limit;
	char wanted[UNITS_BYTES];
	char allowed[UNITS_BYTES];
	if (code != -ENOMEM || getrlimit(RLIMIT_MEMLOCK, &limit) != 0 ||
		limit.rlim_cur == RLIM_INFINITY) {
		say(lack, "registered buffers: no: %s", strerror(-code));
		return;
	}
	say(lack,
		"registered buffers: no: the memlock limit of %s is too small for %s a reader (ulimit -l)",
		units_format_size((double)limit.rlim_cur, allowed),
		units_format_size((double)bytes, wanted));
}

static bool register_buffers(
	struct uring_ring *ring, const struct source *source, char lack[URING_REASON_BYTES])
{
	if (!source->blob_memory || source->blob_bytes == 0)
		return false;
	const size_t chunks = (source->blob_bytes + chunk_bytes - 1) / chunk_bytes;
	if (chunks > CHUNKS_MAX) {
		say(lack, "registered buffers: no: more than %d GiB", CHUNKS_MAX);
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
		say_unregistered(lack, code, source->blob_bytes);
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
static int register_table(struct io_uring *ring, unsigned slots)
{
	const int code = io_uring_register_files_sparse(ring, slots);
	if (code != -EINVAL)
		return code;
	int *const empty = malloc(slots * sizeof *empty);
	if (!empty)
		return -ENOMEM;
	for (unsigned i = 0; i < slots; i++)
		empty[i] = -1;
	const int again = io_uring_register_files(ring, empty, slots);
	free(empty);
	return again;
}

static bool set_up_table(struct uring_ring *ring, unsigned slots, char lack[URING_REASON_BYTES])
{
	const int code = register_table(&ring->ring, slots);
	if (code)
		say(lack, "direct descriptors: no: %s", strerror(-code));
	return code == 0;
}

/* What waits holds a worker thread of the kernel: an open, a read on some file systems, a close.  By
 * default there are at most four for each core ("bounded" ones), which would be the depth there.  They
 * come into being as they are needed. */
static void allow_workers(struct uring_ring *ring, unsigned slots, char lack[URING_REASON_BYTES])
{
	unsigned most[] = {slots, 0 /* of the unbounded: as it is */};
	const int code = io_uring_register_iowq_max_workers(&ring->ring, most);
	if (code)
		say(lack, "kernel threads for files that wait: four for each core: %s",
			strerror(-code));
}

int uring_ring_open(struct uring_ring *ring, const struct uring_source *source,
	char lack[URING_REASON_BYTES], struct error *err)
{
	*ring = (struct uring_ring){0};
	lack[0] = '\0';
	const unsigned slots = uring_slots(source->base.depth_most);
	/* Room for all that slots can have unsubmitted at once: the queue is never full. */
	const int code = set_up(ring, URING_CHAIN_SQES * slots);
	if (code)
		return error_set_errno(err, -code, "cannot set up an io_uring for %u files", slots);
	(void)io_uring_register_ring_fd(&ring->ring);
	allow_workers(ring, slots, lack);
	if (source->options.registered)
		ring->registered = register_buffers(ring, &source->base, lack);
	if (source->options.direct_descriptors)
		ring->direct_descriptors = set_up_table(ring, slots, lack);
	ring->linked = source->options.linked && ring->direct_descriptors;
	return 0;
}

/* Unregistering gives the locked memory back at once; closing a ring does so at some later time,
 * when the next repetition may already have been refused. */
void uring_ring_close(struct uring_ring *ring)
{
	if (ring->registered)
		(void)io_uring_unregister_buffers(&ring->ring);
	if (ring->direct_descriptors)
		(void)io_uring_unregister_files(&ring->ring);
	io_uring_queue_exit(&ring->ring);
}
