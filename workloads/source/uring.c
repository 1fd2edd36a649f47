/* The io_uring engine: a ring per reader.  Submissions are prepared in submit and handed to the kernel
 * two files at a time, the rest by the next reap in the same system call that waits.
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
 * wait one behind the other, whatever the depth.  Not everywhere, since on warm local files that takes
 * twice to three times the CPU with one in flight, half as much again with eight. */
#include "workloads/source/uring.h"

#include "harness/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

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

static const char *feature(bool on)
{
	return on ? "on" : "off";
}

/* The folder may be local and hold links to what is not. */
static bool files_may_wait(const struct source *base)
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
static int try_out(struct uring_source *source, struct error *err)
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
	options->async = files_may_wait(base);
	struct uring_ring ring;
	char lack[URING_REASON_BYTES];
	const int code = uring_ring_open(&ring, source, lack, err);
	if (code)
		return code;
	options->registered = ring.registered;
	options->direct_descriptors = ring.direct_descriptors;
	options->linked = ring.linked;
	uring_ring_close(&ring);
	source_note(base, "linked open-read-close: %s", feature(options->linked));
	if (wanted_linked && !options->linked)
		source_note(base, "the kernel cannot link an open with a read (needs Linux 5.18)");
	if (options->async)
		source_note(base, "opens and reads by kernel threads: this file system may wait");
	if (options->registered)
		source_note(base, "registered buffers: on");
	if (!direct_open)
		source_note(base, "direct descriptors: no: the kernel has none (needs Linux 5.15)");
	if (lack[0])
		source_note(base, "%s", lack);
	if (!(ring.setup_flags & IORING_SETUP_DEFER_TASKRUN))
		source_note(base, "no deferred task work (needs Linux 6.1): more CPU per file");
	return 0;
}

/* A direct descriptor is none of the process. */
static int check_open_files(const struct uring_source *source, unsigned depth, struct error *err)
{
	const struct source *const base = &source->base;
	const unsigned slots = source->options.direct_descriptors ? 0 : uring_slots(depth);
	return source_check_open_files(base, base->threads * (1 + slots), err);
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
	int code = try_out(source, err);
	if (!code && check_open_files(source, base->depth_most, err) != 0) {
		base->depth_most = base->depth;
		code = check_open_files(source, base->depth, err);
	}
	if (!code)
		(void)pthread_mutex_init(&source->lock, NULL);
	return code;
}

static void uring_close(struct source *base)
{
	(void)pthread_mutex_destroy(&((struct uring_source *)base)->lock);
}

static int allocate_slots(struct uring_reader *reader)
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

static void free_slots(struct uring_reader *reader)
{
	free(reader->slots);
	free(reader->free_slots);
}

static int open_ring(struct uring_reader *reader, struct error *err)
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

static void close_ring(struct uring_reader *reader)
{
	struct uring_source *const source = (struct uring_source *)reader->base.source;
	(void)pthread_mutex_lock(&source->lock);
	uring_ring_close(&reader->ring);
	(void)pthread_mutex_unlock(&source->lock);
}

static int uring_reader_open(struct reader *base, struct error *err)
{
	struct uring_reader *const reader = (struct uring_reader *)base;
	int code = allocate_slots(reader);
	if (code)
		(void)error_set(err, code, "out of memory for reader %u", base->index);
	else
		code = open_ring(reader, err);
	if (code)
		free_slots(reader);
	return code;
}

/* Takes what has completed: no system call unless the kernel says that it holds work for us. */
static void harvest(struct uring_reader *reader)
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
static bool passing(int code)
{
	return code >= 0 || code == -EINTR || code == -EAGAIN || code == -EBUSY || code == -ETIME;
}

/* Submits what is prepared and waits for so many completions (0: none) at most wait_ns.  False: a
 * signal came, or the ring is lost. */
static bool enter(struct uring_reader *reader, unsigned wanted, uint64_t wait_ns)
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
	if (!passing(code))
		uring_fail_all(reader, code);
	harvest(reader);
	return code != -EINTR && !reader->broken;
}

/* Waits for the first completed read.  Closes under way complete on the way and are not waited for:
 * else each would cost a wake-up. */
static void wait_for_one(struct uring_reader *reader, uint64_t wait_ns)
{
	const uint64_t start_ns = clock_now_ns();
	uint64_t waited_ns = 0;
	while (!reader->done.head && waited_ns < wait_ns) {
		if (!enter(reader, 1 + reader->closing, wait_ns - waited_ns))
			return;
		waited_ns = clock_now_ns() - start_ns;
	}
}

/* A reader may end only when the kernel has closed its files. */
static void wait_for_closes(struct uring_reader *reader)
{
	const uint64_t start_ns = clock_now_ns();
	while (reader->closing > 0 && !reader->broken &&
		clock_now_ns() - start_ns < CLOSE_WAIT_MS * NS_PER_MS)
		(void)enter(reader, reader->closing, CLOSE_WAIT_MS * NS_PER_MS);
}

static void uring_reader_close(struct reader *base)
{
	struct uring_reader *const reader = (struct uring_reader *)base;
	wait_for_closes(reader);
	close_ring(reader);
	free_slots(reader);
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
		(void)enter(reader, 0, 0);
}

static size_t uring_reap(
	struct reader *base, struct read_request **done, size_t room, uint64_t wait_ns)
{
	struct uring_reader *const reader = (struct uring_reader *)base;
	harvest(reader);
	if (!reader->done.head && wait_ns > 0)
		wait_for_one(reader, wait_ns < WAIT_MAX_NS ? wait_ns : WAIT_MAX_NS);
	(void)enter(reader, 0, 0); /* what has been prepared meanwhile must not lie about */
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
