/* The read probe: its scratch files, two ways to keep requests in flight, and its cells (cache state x
 * request size x depth), visited in a new random order in every round.  What came back is refilled a few
 * requests at a time: the kernel holds those of one submission back until it has prepared all, and a
 * device that has completed everything in a burst idles until then (at 32 in flight a sixth of 4 KiB reads). */
#include "workloads/source/probe_read.h"

#include "harness/base/clock.h"
#include "harness/base/memory.h"
#include "harness/base/rng.h"
#include "harness/base/units.h"
#include "harness/measure/data_store.h"
#include "workloads/source/residency.h"
#include "workloads/source/source.h"
#include "workloads/source/uring.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* --- scratch files: without a name before they are filled, so that no exit leaves one behind ----- */

enum {
	CHUNK_BYTES = 1 << 20,
	SYNC_CHUNKS = 8, /* written between two looks at the disk's pace */
	FREE_SHARE = 10, /* the scratch file takes one part in this many of the free space */
	NAME_TRIES = 100,
	PATH_BYTES = 4096,
};

/* A file without a name. */
struct scratch_file {
	int fd;         /* -1: closed */
	int direct_fd;  /* with O_DIRECT; negative errno: the file system has none */
	uint64_t bytes; /* of random content, on the disk */
};

static uint64_t scratch_room_in(const char *folder)
{
	struct statvfs fs;
	struct rlimit limit;
	uint64_t room = UINT64_MAX;
	/* One that has no blocks does not count them. */
	if (statvfs(folder, &fs) == 0 && fs.f_blocks > 0)
		room = (uint64_t)fs.f_bavail * fs.f_frsize / FREE_SHARE;
	/* Beyond it writes fail. */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < room)
		room = limit.rlim_cur;
	return room;
}

static int scratch_open_direct(const char *path)
{
	const int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!residency_is_memory(fd)) /* where newer kernels have it without a meaning */
		return fd;
	(void)close(fd);
	return -ENOTSUP;
}

/* Where the file system has no O_TMPFILE (overlayfs before Linux 6.3, NFS, most of FUSE): a kill
 * between the two calls leaves an empty file. */
static int scratch_create_named(struct scratch_file *file, const char *folder, struct error *err)
{
	char path[PATH_BYTES];
	for (int i = 0; i < NAME_TRIES; i++) {
		if (snprintf(path, sizeof path, "%s/.mlbench-probe-%d-%d", folder, (int)getpid(),
			    i) >= (int)sizeof path)
			return error_set(err, -ENAMETOOLONG, "path too long: '%s'", folder);
		file->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (file->fd >= 0 || errno != EEXIST)
			break;
	}
	if (file->fd < 0)
		return error_set_errno(err, errno, "cannot create a scratch file in '%s'", folder);
	file->direct_fd = scratch_open_direct(path);
	if (unlink(path) != 0)
		return error_set_errno(err, errno, "cannot remove '%s'", path);
	return 0;
}

static int scratch_create(struct scratch_file *file, const char *folder, struct error *err)
{
	char path[64];
	file->fd = open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
	if (file->fd < 0)
		return scratch_create_named(file, folder, err);
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", file->fd);
	file->direct_fd = scratch_open_direct(path);
	return 0;
}

/* Random, so that neither compression nor deduplication makes it smaller. */
static void scratch_make(uint64_t *words, size_t bytes, struct rng *rng)
{
	for (size_t i = 0; i < bytes / sizeof *words; i++)
		words[i] = rng_next(rng);
}

static int scratch_write(int fd, const void *bytes, size_t size, uint64_t at)
{
	for (size_t done = 0; done < size;) {
		const ssize_t n =
			pwrite(fd, (const char *)bytes + done, size - done, (off_t)(at + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

/* Until all is written, the disk is full, or the time is over. */
static int scratch_fill(struct scratch_file *file, uint64_t bytes, uint64_t end_ns,
	const struct probe_control *control)
{
	uint64_t *chunk = malloc(CHUNK_BYTES);
	struct rng rng;
	rng_init(&rng, (uint64_t)getpid(), bytes);
	int code = chunk ? 0 : -ENOMEM;
	for (unsigned i = 1; !code && file->bytes < bytes && clock_now_ns() < end_ns; i++) {
		if (probe_stopped(control))
			code = -EINTR;
		if (!code) {
			scratch_make(chunk, CHUNK_BYTES, &rng);
			code = scratch_write(file->fd, chunk, CHUNK_BYTES, file->bytes);
		}
		if (!code)
			file->bytes += CHUNK_BYTES;
		if (!code && i % SYNC_CHUNKS == 0 && fdatasync(file->fd) != 0)
			code = -errno;
	}
	free(chunk);
	if (!code && fdatasync(file->fd) != 0)
		code = -errno;
	return code;
}

static int scratch_refuse(
	const struct scratch_file *file, const char *folder, int code, struct error *err)
{
	char size[UNITS_BYTES];
	(void)units_format_size((double)file->bytes, size);
	if (code == -EINTR)
		return error_set(err, code, "stopped");
	if (code == 0)
		return error_set(err, -ETIMEDOUT,
			"wrote only %s of a scratch file to '%s' in the time allowed", size,
			folder);
	return error_set_errno(
		err, -code, "cannot write a scratch file to '%s' beyond %s", folder, size);
}

/* Safe on one that was not opened, with fd = -1. */
static void scratch_close(struct scratch_file *file)
{
	if (file->fd >= 0)
		(void)close(file->fd);
	if (file->direct_fd >= 0)
		(void)close(file->direct_fd);
	*file = (struct scratch_file){.fd = -1, .direct_fd = -EBADF};
}

/* Writes up to `bytes`, at most a tenth of what is free, until write_end_ns; at least `least`, or
 * -ENOSPC or -ETIMEDOUT.  -EINTR: stopped. */
static int scratch_open(struct scratch_file *file, const char *folder, uint64_t bytes,
	uint64_t least, uint64_t write_end_ns, const struct probe_control *control,
	struct error *err)
{
	const uint64_t room = scratch_room_in(folder);
	char size[UNITS_BYTES];
	*file = (struct scratch_file){.fd = -1, .direct_fd = -EBADF};
	if (room < least)
		return error_set(err, -ENOSPC,
			"not enough space for a scratch file in '%s': it may take %s, a tenth of what is free",
			folder, units_format_size((double)room, size));
	int code = scratch_create(file, folder, err);
	if (!code) {
		const uint64_t wanted = bytes < room ? bytes : room;
		code = scratch_fill(
			file, wanted / CHUNK_BYTES * CHUNK_BYTES, write_end_ns, control);
		/* A disk that fills up meanwhile has given what there was. */
		const bool enough = file->bytes >= least && code != -EINTR && code != -EIO;
		code = enough ? 0 : scratch_refuse(file, folder, code, err);
	}
	if (code)
		scratch_close(file);
	return code;
}

/* --- requests in flight by one ring and one thread ----------------------------------------------- */

enum {
	WAIT_MS = 100,          /* between two looks at the stop flag */
	STUCK_MS = 5000,        /* without a completion: lost */
	STUCK_STOPPED_MS = 500, /* likewise when asked to stop */
	REQUESTS_LEAST = 8,     /* a slot goes on until this many came back ... */
	SLOT_TIMES = 4,         /* ... for at most this multiple of its length */
	SUBMIT_READS = 4,       /* handed to the kernel at once */
};

/* Room for PROBE_DEPTH_MOST requests of `each` bytes; borrowed. */
struct read_buffers {
	uint8_t *bytes;
	size_t each;
};

struct read_ring {
	struct io_uring ring;
	struct read_buffers buffers;
	bool fixed; /* buffers are registered */
	bool lost;
	uint64_t submitted_ns[PROBE_DEPTH_MOST];
	unsigned idle[PROBE_DEPTH_MOST]; /* buffers without a request */
	unsigned idle_count;
};

static int read_ring_open(
	struct read_ring **out, const struct read_buffers *buffers, struct error *err)
{
	static const unsigned flags[] = {
		IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
		IORING_SETUP_COOP_TASKRUN, 0};
	struct read_ring *ring = calloc(1, sizeof *ring);
	if (!ring)
		return error_set(err, -ENOMEM, "out of memory");
	int code = -EINVAL;
	for (size_t i = 0; i < sizeof flags / sizeof *flags && code == -EINVAL; i++)
		code = io_uring_queue_init(PROBE_DEPTH_MOST, &ring->ring, flags[i]);
	if (code) {
		free(ring);
		return error_set_errno(err, -code, "cannot set up an io_uring");
	}
	/* Where reads wait in the kernel's worker threads, as many as the depth says (uring.c). */
	unsigned workers[] = {PROBE_DEPTH_MOST, 0};
	(void)io_uring_register_iowq_max_workers(&ring->ring, workers);
	const struct iovec all = {
		.iov_base = buffers->bytes, .iov_len = buffers->each * PROBE_DEPTH_MOST};
	ring->fixed = io_uring_register_buffers(&ring->ring, &all, 1) == 0;
	ring->buffers = *buffers;
	for (unsigned i = 0; i < PROBE_DEPTH_MOST; i++)
		ring->idle[ring->idle_count++] = i;
	*out = ring;
	return 0;
}

static bool read_ring_lost(const struct read_ring *ring)
{
	return ring && ring->lost;
}

static void read_ring_close(struct read_ring *ring)
{
	if (ring && !ring->lost) {
		if (ring->fixed)
			(void)io_uring_unregister_buffers(&ring->ring);
		io_uring_queue_exit(&ring->ring);
	}
	free(ring);
}

bool read_slot_next(struct read_slot *slot, uint32_t *taken, uint64_t *offset)
{
	if (!slot->wraps && *taken == slot->order_count)
		return false;
	++*taken;
	*offset = slot->order[slot->next] * slot->request_bytes;
	slot->next = (slot->next + 1) % slot->order_count;
	return true;
}

double read_tally_rate(const struct read_tally *tally)
{
	static const double LATE_SHARE = 0.5; /* of the slot, before the first burst */
	const double all = (double)(tally->last_ns - tally->begin_ns);
	const double after = (double)(tally->last_ns - tally->first_ns);
	const bool late = after < (1 - LATE_SHARE) * all;
	const double count = (double)tally->count + (late ? (double)tally->first_count : 0.0);
	const double spent = late ? all : after;
	return tally->first_count && count > 0 && spent > 0 ? count * (double)NS_PER_S / spent
							    : (double)NAN;
}

struct ring_run {
	struct read_ring *ring;
	struct read_slot *slot;
	struct read_tally tally;
	double latency_ns; /* of those counted after the first burst, together */
	uint32_t taken;
	unsigned in_flight;
	int status;
	bool async;   /* as in struct uring_options */
	bool counted; /* the burst that the end of the slot waited for; no further one counts */
};

static bool read_ring_submit_one(struct ring_run *run, uint64_t now)
{
	struct read_ring *ring = run->ring;
	const struct read_slot *slot = run->slot;
	uint64_t offset;
	if (io_uring_sq_space_left(&ring->ring) == 0 ||
		!read_slot_next(run->slot, &run->taken, &offset))
		return false;
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->ring);
	const unsigned place = ring->idle[--ring->idle_count];
	uint8_t *buffer = ring->buffers.bytes + place * ring->buffers.each;
	const unsigned size = (unsigned)slot->request_bytes;
	if (ring->fixed)
		io_uring_prep_read_fixed(sqe, slot->fd, buffer, size, offset, 0);
	else
		io_uring_prep_read(sqe, slot->fd, buffer, size, offset);
	if (run->async)
		sqe->flags |= IOSQE_ASYNC;
	io_uring_sqe_set_data64(sqe, place);
	ring->submitted_ns[place] = now;
	run->in_flight++;
	return true;
}

static bool read_ring_is_over(const struct ring_run *run, uint64_t now)
{
	const struct read_slot *slot = run->slot;
	const uint64_t length =
		slot->end_ns > run->tally.begin_ns ? slot->end_ns - run->tally.begin_ns : 0;
	if (run->status || probe_stopped(slot->control))
		return true;
	return now >= slot->end_ns && (run->tally.count >= REQUESTS_LEAST ||
					      now >= run->tally.begin_ns + SLOT_TIMES * length);
}

/* One completion; now is that of its burst. */
static void read_ring_complete(
	struct ring_run *run, const struct io_uring_cqe *cqe, uint64_t now, bool counts)
{
	struct read_ring *ring = run->ring;
	const unsigned place = (unsigned)io_uring_cqe_get_data64(cqe);
	run->in_flight--;
	ring->idle[ring->idle_count++] = place;
	if (cqe->res != (int)run->slot->request_bytes && !run->status)
		run->status = cqe->res < 0 ? cqe->res : -EIO;
	if (!counts)
		return;
	run->tally.count++;
	run->latency_ns += (double)(now - ring->submitted_ns[place]);
}

/* The burst under way when the slot ends counts, with the time that it took: where a store lets through
 * a burst and then nothing for a while (a throttle), the slot most often ends in such a pause, which would
 * else be left out. */
static void read_ring_reap(struct ring_run *run)
{
	struct io_uring_cqe *cqe;
	unsigned head;
	unsigned seen = 0;
	const uint64_t now = clock_now_ns();
	const bool first = run->tally.first_ns == 0;
	const bool counts = !run->counted;
	io_uring_for_each_cqe(&run->ring->ring, head, cqe)
	{
		read_ring_complete(run, cqe, now, !first && counts);
		seen++;
	}
	io_uring_cq_advance(&run->ring->ring, seen);
	if (seen == 0 || !counts)
		return;
	run->counted = read_ring_is_over(run, now);
	if (first) {
		run->tally.first_ns = now;
		run->tally.first_count = seen;
	}
	run->tally.last_ns = now;
}

static bool read_ring_is_stuck(const struct ring_run *run, uint64_t waiting_since)
{
	const uint64_t ms = (clock_now_ns() - waiting_since) / NS_PER_MS;
	return ms >= STUCK_MS || (ms >= STUCK_STOPPED_MS && probe_stopped(run->slot->control));
}

/* Submits what is prepared and waits for one completion or more.  -ETIMEDOUT: none came. */
static int read_ring_wait_for_some(struct ring_run *run)
{
	const uint64_t since = clock_now_ns();
	for (;;) {
		struct __kernel_timespec wait = {.tv_nsec = WAIT_MS * (long long)NS_PER_MS};
		struct io_uring_cqe *cqe;
		const int code =
			io_uring_submit_and_wait_timeout(&run->ring->ring, &cqe, 1, &wait, NULL);
		if (code >= 0)
			return 0;
		if (code != -ETIME && code != -EINTR && code != -EAGAIN)
			return code;
		if (read_ring_is_stuck(run, since))
			return -ETIMEDOUT;
	}
}

static int read_ring_keep_going(struct ring_run *run)
{
	bool more = true;
	for (;;) {
		const uint64_t now = clock_now_ns();
		more = more && !read_ring_is_over(run, now);
		while (more && run->in_flight < run->slot->depth) {
			more = read_ring_submit_one(run, now);
			if (io_uring_sq_ready(&run->ring->ring) >= SUBMIT_READS)
				(void)io_uring_submit(&run->ring->ring);
		}
		if (run->in_flight == 0)
			return run->status;
		const int code = read_ring_wait_for_some(run);
		if (code) {
			run->ring->lost = true;
			return code;
		}
		read_ring_reap(run);
	}
}

/* -EIO and the like: a request failed.  -ETIMEDOUT: one did not come back in time: the ring is lost,
 * and the kernel may still write to the buffers. */
static int read_ring_run(struct read_ring *ring, struct read_slot *slot, struct error *err)
{
	struct ring_run run = {.ring = ring,
		.slot = slot,
		.tally.begin_ns = clock_now_ns(),
		.async = uring_may_wait(slot->fd)};
	const int code = read_ring_keep_going(&run);
	const uint64_t count = run.tally.count;
	slot->requests = count;
	slot->requests_per_s = read_tally_rate(&run.tally);
	slot->latency_ns = count ? run.latency_ns / (double)count : (double)NAN;
	if (code == -ETIMEDOUT)
		return error_set(err, code, "a read did not come back in %d s", STUCK_MS / 1000);
	return code ? error_set_errno(err, -code, "reading the scratch file") : 0;
}

/* --- requests in flight by one blocking thread for each: where there is no io_uring -------------- */

struct reading {
	struct read_slot *slot;
	struct read_buffers buffers;
	atomic_uint_fast32_t taken;
	atomic_int status;
	/* Of each thread; its own. */
	uint64_t count[PROBE_DEPTH_MOST], spent_ns[PROBE_DEPTH_MOST];
};

static bool reading_next_offset(struct reading *reading, uint64_t *offset)
{
	const struct read_slot *slot = reading->slot;
	const uint32_t taken =
		(uint32_t)atomic_fetch_add_explicit(&reading->taken, 1, memory_order_relaxed);
	if (!slot->wraps && taken >= slot->order_count)
		return false;
	*offset = slot->order[(slot->next + taken) % slot->order_count] * slot->request_bytes;
	return true;
}

static void reading_go_on(void *context, unsigned me)
{
	struct reading *reading = context;
	const struct read_slot *slot = reading->slot;
	const uint64_t begin = clock_now_ns();
	uint64_t offset;
	do {
		if (!reading_next_offset(reading, &offset))
			break;
		const ssize_t n =
			pread(slot->fd, reading->buffers.bytes + me * reading->buffers.each,
				slot->request_bytes, (off_t)offset);
		if (n != (ssize_t)slot->request_bytes) {
			atomic_store(&reading->status, n < 0 ? -errno : -EIO);
			break;
		}
		reading->count[me]++;
		reading->spent_ns[me] = clock_now_ns() - begin;
	} while (begin + reading->spent_ns[me] < slot->end_ns && !atomic_load(&reading->status) &&
		 !probe_stopped(slot->control));
}

static int read_threads_run(
	const struct read_buffers *buffers, struct read_slot *slot, struct error *err)
{
	struct reading reading = {.slot = slot, .buffers = *buffers};
	const int code = probe_crew(slot->depth, false, reading_go_on, &reading, err);
	double rate = 0;
	uint64_t count = 0;
	uint64_t spent = 0;
	for (unsigned i = 0; i < slot->depth; i++) {
		count += reading.count[i];
		spent += reading.spent_ns[i];
		if (reading.spent_ns[i])
			rate += (double)reading.count[i] * (double)NS_PER_S /
				(double)reading.spent_ns[i];
	}
	slot->next = (uint32_t)((slot->next + atomic_load(&reading.taken)) % slot->order_count);
	slot->requests = count;
	slot->requests_per_s = count ? rate : (double)NAN;
	slot->latency_ns = count ? (double)spent / (double)count : (double)NAN;
	if (code)
		return code;
	const int status = atomic_load(&reading.status);
	return status ? error_set_errno(err, -status, "reading the scratch file") : 0;
}

/* --- the cells ----------------------------------------------------------------------------------- */

enum {
	WHY_BYTES = 160,
	BLOCKS_LEAST = 2 * PROBE_DEPTH_MOST, /* of the largest request in the smaller file */
	READ_BYTES = 1 << 20,
	/* Under a control group's limit.  After a pause the kernel lets through at once what a tenth of a second
	 * is worth: so much is read first, without counting. */
	LIMITED_SLOT_MS = 500,
	LIMITED_LEAD_SHARE = 5, /* one part in this many */
	LIMITED_LEAD_DEPTH = 4, /* at most: those in flight at its end are waited for */
};

static const double LIMITED_MOST = 1.5; /* of the limit: above it a slot was too short to meet it */

static const double WARM_SHARE = 0.99; /* resident at least */

static const char *const state_names[PROBE_CACHES] = {
	"cold direct", "cold buffered", "warm buffered"};

struct cell {
	enum probe_cache state;
	size_t size;
	unsigned depth;
	struct probe_values rate, latency;
};

/* Blocks of one size in a random order, and how far they are read. */
struct order {
	uint32_t *blocks;
	uint32_t count, next;
};

struct probe_reads {
	const struct probe_read_plan *plan;
	const struct probe_control *control;
	struct ceilings *out;
	struct scratch_file cold, warm;
	struct order orders[PROBE_CACHES][PROBE_SIZES_MAX];
	struct memory_block memory;
	struct read_buffers buffers; /* in it */
	struct read_ring *ring;      /* NULL: threads */
	struct cgroup_read_limits limits;
	char limit[READ_LIMIT_WORDS_BYTES]; /* in words; "": none */
	bool left_out;                      /* a slot that did not meet the limit, and said so */
	bool lacks[PROBE_CACHES];           /* given up, and said why */
	struct cell cells[CEILING_READS_MAX];
	size_t cell_count;
};

static void reads_give_up(struct probe_reads *reads, enum probe_cache state, const char *why)
{
	if (!reads->lacks[state])
		ceilings_lack(reads->out, "%s reads: %s", state_names[state], why);
	reads->lacks[state] = true;
}

/* --- setting up ---------------------------------------------------------------------------------- */

static uint64_t reads_largest_size(const struct probe_read_plan *plan)
{
	uint64_t most = 0;
	for (size_t i = 0; i < plan->size_count; i++)
		most = plan->sizes[i] > most ? plan->sizes[i] : most;
	return most;
}

static int reads_open_files(struct probe_reads *reads, struct error *err)
{
	const struct probe_read_plan *plan = reads->plan;
	const uint64_t least = BLOCKS_LEAST * reads_largest_size(plan);
	const uint64_t begin = clock_now_ns();
	int code = scratch_open(&reads->cold, plan->folder, plan->cold_bytes, least,
		begin + plan->write_ns, reads->control, err);
	if (code)
		return code;
	/* As much time again as the first may take, in proportion. */
	if (plan->warm_bytes > 0)
		code = scratch_open(&reads->warm, plan->folder, plan->warm_bytes, least,
			clock_now_ns() + plan->write_ns, reads->control, err);
	if (code == -EINTR)
		return code;
	if (code)
		reads_give_up(reads, PROBE_WARM, err->text);
	if (reads->cold.direct_fd < 0) {
		char why[WHY_BYTES];
		(void)snprintf(why, sizeof why,
			"the file system has no reads past the page cache (O_DIRECT: %s)",
			strerror(-reads->cold.direct_fd));
		reads_give_up(reads, PROBE_DIRECT, why);
	}
	/* What is asked for is read, and nothing ahead of it. */
	(void)posix_fadvise(reads->cold.fd, 0, 0, POSIX_FADV_RANDOM);
	return 0;
}

static int reads_open_orders(struct probe_reads *reads, struct error *err)
{
	struct rng rng;
	rng_init(&rng, reads->plan->seed, 0);
	for (int state = 0; state < PROBE_CACHES; state++)
		for (size_t i = 0; i < reads->plan->size_count; i++) {
			const uint64_t bytes =
				state == PROBE_WARM ? reads->warm.bytes : reads->cold.bytes;
			struct order *order = &reads->orders[state][i];
			order->count = (uint32_t)(bytes / reads->plan->sizes[i]);
			order->blocks = calloc(order->count + 1U, sizeof *order->blocks);
			if (!order->blocks)
				return error_set(err, -ENOMEM, "out of memory for offsets");
			rng_permutation(&rng, order->blocks, order->count);
		}
	return 0;
}

static void reads_list_cells(struct probe_reads *reads)
{
	const struct probe_read_plan *plan = reads->plan;
	const int caches = plan->warm_bytes > 0 ? PROBE_CACHES : PROBE_WARM;
	for (int state = 0; state < caches; state++)
		for (size_t size = 0; size < plan->size_count; size++)
			for (size_t i = 0; i < plan->depth_count; i++)
				if (reads->cell_count < CEILING_READS_MAX)
					reads->cells[reads->cell_count++] =
						(struct cell){.state = (enum probe_cache)state,
							.size = size,
							.depth = plan->depths[i]};
}

static void reads_choose_engine(struct probe_reads *reads)
{
	char why[WHY_BYTES] = "";
	struct error err = {0};
	const char *lack =
		reads->plan->without_uring ? "left out" : uring_unavailable(why, sizeof why);
	if (!lack && read_ring_open(&reads->ring, &reads->buffers, &err))
		lack = err.text;
	if (lack)
		ceilings_note(reads->out, "reads: by threads that call pread; io_uring: %.*s",
			WHY_BYTES, lack);
	(void)snprintf(reads->out->engine, sizeof reads->out->engine, "%s",
		reads->ring ? source_io_uring.name : source_pread.name);
	reads->out->reads_block = !reads->ring;
}

static void reads_find_limits(struct probe_reads *reads)
{
	struct data_store *store = malloc(sizeof *store);
	if (!store)
		return;
	data_store_find(reads->plan->folder, store);
	reads->limits = store->limits;
	free(store);
	if (cgroup_read_limit_words(&reads->limits, reads->limit)[0])
		ceilings_note(reads->out,
			"reads: a control group of this process limits them to %s; slots are long enough to meet that",
			reads->limit);
}

const char *probe_reads_pages(const struct probe_reads *reads)
{
	return memory_pages_name(reads->memory.pages);
}

const char *probe_reads_limit(const struct probe_reads *reads)
{
	return reads->limit;
}

uint64_t probe_reads_slot_ns(const struct probe_reads *reads, uint64_t slot_ns)
{
	const uint64_t least = LIMITED_SLOT_MS * NS_PER_MS;
	return reads->limit[0] && slot_ns < least ? least : slot_ns;
}

static int reads_open_all(struct probe_reads *reads, struct error *err)
{
	reads_find_limits(reads);
	reads->buffers.each = reads_largest_size(reads->plan);
	int code = reads_open_files(reads, err);
	if (!code)
		code = reads_open_orders(reads, err);
	if (!code && memory_map(&reads->memory, reads->buffers.each * PROBE_DEPTH_MOST,
			     !reads->plan->small_pages) != 0)
		code = error_set(
			err, -ENOMEM, "out of memory for %d requests in flight", PROBE_DEPTH_MOST);
	if (code)
		return code;
	reads->buffers.bytes = reads->memory.data;
	reads->out->scratch_bytes = (double)reads->cold.bytes;
	(void)snprintf(reads->out->read_pages, sizeof reads->out->read_pages, "%s",
		probe_reads_pages(reads));
	reads_choose_engine(reads);
	reads_list_cells(reads);
	return 0;
}

void probe_reads_close(struct probe_reads *reads)
{
	if (!reads)
		return;
	if (!read_ring_lost(reads->ring)) /* else the kernel may still write to them */
		memory_unmap(&reads->memory);
	read_ring_close(reads->ring);
	for (int state = 0; state < PROBE_CACHES; state++)
		for (size_t i = 0; i < PROBE_SIZES_MAX; i++)
			free(reads->orders[state][i].blocks);
	scratch_close(&reads->cold);
	scratch_close(&reads->warm);
	free(reads);
}

int probe_reads_open(struct probe_reads **out, const struct probe_read_plan *plan,
	const struct probe_control *control, struct ceilings *sheet, struct error *err)
{
	struct probe_reads *reads = calloc(1, sizeof *reads);
	*out = NULL;
	if (!reads)
		return error_set(err, -ENOMEM, "out of memory");
	reads->plan = plan;
	reads->control = control;
	reads->out = sheet;
	reads->cold.fd = reads->warm.fd = -1;
	reads->cold.direct_fd = reads->warm.direct_fd = -EBADF;
	const int code = reads_open_all(reads, err);
	if (code)
		probe_reads_close(reads);
	else
		*out = reads;
	return code;
}

/* --- measuring ----------------------------------------------------------------------------------- */

/* Reads the warm file until it is in the page cache; its buffers are free between slots. */
static int reads_make_warm(struct probe_reads *reads, struct error *err)
{
	const struct scratch_file *file = &reads->warm;
	struct residency now;
	int code = residency_of_file(file->fd, &now, err);
	if (!code && (double)now.resident_pages >= WARM_SHARE * (double)now.total_pages)
		return 0;
	uint8_t *bytes = code ? NULL : malloc(READ_BYTES);
	if (!code && !bytes)
		code = error_set(err, -ENOMEM, "out of memory");
	for (uint64_t at = 0; at < file->bytes && !code; at += READ_BYTES) {
		if (probe_time_over(reads->control))
			code = error_set(err, -EINTR,
				"out of time to read the scratch file into the page cache");
		else if (pread(file->fd, bytes, READ_BYTES, (off_t)at) < 0)
			code = error_set_errno(err, errno, "reading the scratch file");
	}
	free(bytes);
	if (!code)
		code = residency_of_file(file->fd, &now, err);
	if (!code && (double)now.resident_pages < WARM_SHARE * (double)now.total_pages)
		code = error_set(err, -ENOMEM, "the page cache does not keep %llu MiB",
			(unsigned long long)(file->bytes >> 20));
	return code;
}

/* Brings the page cache into the cell's state, and proves it. */
static int reads_make_ready(struct probe_reads *reads, enum probe_cache state, struct error *err)
{
	struct residency after;
	if (state == PROBE_COLD)
		return residency_evict_file(reads->cold.fd, &after, err);
	return state == PROBE_WARM ? reads_make_warm(reads, err) : 0;
}

static int reads_file_of(const struct probe_reads *reads, enum probe_cache state)
{
	switch (state) {
	case PROBE_DIRECT:
		return reads->cold.direct_fd;
	case PROBE_COLD:
		return reads->cold.fd;
	default:
		return reads->warm.fd;
	}
}

static int reads_run(struct probe_reads *reads, enum probe_cache state, size_t size, unsigned depth,
	uint64_t length_ns, struct read_slot *slot, struct error *err)
{
	struct order *order = &reads->orders[state][size];
	const struct probe_control control = {
		.slot_ns = length_ns, .deadline_ns = reads->control->deadline_ns};
	*slot = (struct read_slot){
		.fd = reads_file_of(reads, state),
		.request_bytes = reads->plan->sizes[size],
		.order = order->blocks,
		.order_count = order->count,
		.next = order->next,
		.wraps = state != PROBE_COLD,
		.depth = depth,
		.end_ns = probe_slot_end(&control, clock_now_ns()),
		.control = reads->control,
	};
	const int code = reads->ring ? read_ring_run(reads->ring, slot, err)
				     : read_threads_run(&reads->buffers, slot, err);
	order->next = slot->next;
	return code;
}

/* A job goes on for longer than the burst that a limit lets through. */
static bool reads_met_limit(struct probe_reads *reads, const struct read_slot *slot)
{
	const struct cgroup_read_limits *limits = &reads->limits;
	const double bytes_per_s = slot->requests_per_s * (double)slot->request_bytes;
	if (!(slot->requests_per_s > LIMITED_MOST * limits->requests.per_s ||
		    bytes_per_s > LIMITED_MOST * limits->bytes.per_s))
		return true;
	if (!reads->left_out)
		ceilings_note(reads->out,
			"reads: slots that the scratch file was too small for to meet the limit are left out");
	reads->left_out = true;
	return false;
}

static int reads_run_slot(struct probe_reads *reads, enum probe_cache state, size_t size,
	unsigned depth, double *requests_per_s, double *latency_ns, struct error *err)
{
	struct read_slot slot;
	const bool limited = reads->limit[0] && state != PROBE_WARM;
	const enum probe_cache lead = reads->cold.direct_fd >= 0 ? PROBE_DIRECT : state;
	uint64_t length = reads->control->slot_ns;
	int code = 0;
	if (limited) {
		const uint64_t whole = probe_reads_slot_ns(reads, length);
		length = whole - whole / LIMITED_LEAD_SHARE;
		code = reads_run(reads, lead, size,
			depth < LIMITED_LEAD_DEPTH ? depth : LIMITED_LEAD_DEPTH, whole - length,
			&slot, err);
	}
	if (!code)
		code = reads_run(reads, state, size, depth, length, &slot, err);
	if (code || probe_stopped(reads->control) || (limited && !reads_met_limit(reads, &slot)))
		return code;
	*requests_per_s = slot.requests_per_s;
	*latency_ns = slot.latency_ns;
	return 0;
}

int probe_reads_slot(struct probe_reads *reads, enum probe_cache state, size_t size, unsigned depth,
	double *requests_per_s, double *latency_ns, struct error *err)
{
	*requests_per_s = *latency_ns = NAN;
	if (read_ring_lost(reads->ring))
		return error_set(err, -ETIMEDOUT, "a read before did not come back");
	if (state == PROBE_DIRECT && reads->cold.direct_fd < 0)
		return error_set(err, -ENOTSUP,
			"the file system has no reads past the page cache (O_DIRECT: %s)",
			strerror(-reads->cold.direct_fd));
	const int code = reads_make_ready(reads, state, err);
	return code ? code
		    : reads_run_slot(reads, state, size, depth, requests_per_s, latency_ns, err);
}

/* A negative result ends the probe: what failed would fail again. */
static int reads_visit(struct probe_reads *reads, struct cell *cell, struct error *err)
{
	double rate;
	double latency;
	struct error why = {0};
	if (reads->lacks[cell->state])
		return 0;
	const int code = probe_reads_slot(
		reads, cell->state, cell->size, cell->depth, &rate, &latency, &why);
	probe_add(&cell->rate, rate);
	probe_add(&cell->latency, latency);
	if (!code || probe_time_over(reads->control))
		return 0;
	if (read_ring_lost(reads->ring))
		return error_set(err, code, "%s", why.text);
	reads_give_up(reads, cell->state, why.text);
	return 0;
}

int probe_reads_write(
	struct probe_reads *reads, uint64_t bytes, double *bytes_per_s, struct error *err)
{
	const uint64_t most = bytes < reads->cold.bytes ? bytes : reads->cold.bytes;
	const size_t size = (size_t)(most / CHUNK_BYTES * CHUNK_BYTES);
	uint64_t *const content = malloc(size + 1);
	struct rng rng;
	*bytes_per_s = NAN;
	if (!content)
		return error_set(err, -ENOMEM, "out of memory");
	rng_init(&rng, reads->plan->seed, clock_now_ns());
	scratch_make(content, size, &rng);
	int code = 0;
	const uint64_t begin = clock_now_ns();
	for (size_t at = 0; at < size && !code && !probe_stopped(reads->control); at += CHUNK_BYTES)
		code = scratch_write(reads->cold.fd, (const char *)content + at, CHUNK_BYTES, at);
	if (!code && fdatasync(reads->cold.fd) != 0)
		code = -errno;
	if (!code && !probe_stopped(reads->control))
		*bytes_per_s = (double)size * (double)NS_PER_S / (double)(clock_now_ns() - begin);
	free(content);
	return code ? error_set_errno(err, -code, "writing the scratch file") : 0;
}

static int reads_measure_rounds(struct probe_reads *reads, struct error *err)
{
	uint32_t order[CEILING_READS_MAX];
	struct rng rng;
	int code = 0;
	rng_init(&rng, reads->plan->seed, 1);
	for (unsigned round = 0; round < reads->control->rounds && !code; round++) {
		rng_permutation(&rng, order, (uint32_t)reads->cell_count);
		for (size_t i = 0; i < reads->cell_count && !code; i++) {
			if (probe_time_over(reads->control))
				return 0;
			code = reads_visit(reads, &reads->cells[order[i]], err);
		}
	}
	return code;
}

/* --- results ------------------------------------------------------------------------------------- */

static void reads_keep_cell(struct probe_reads *reads, const struct cell *cell)
{
	const double size = (double)reads->plan->sizes[cell->size];
	struct ceiling_range range;
	struct read_ceiling *read = &reads->out->reads[reads->out->read_count++];
	const double rate = probe_median(&cell->rate, &range);
	*read = (struct read_ceiling){.direct = cell->state == PROBE_DIRECT,
		.cold = cell->state != PROBE_WARM,
		.depth = cell->depth,
		.request_bytes = size,
		.bytes_per_s = rate * size,
		.requests_per_s = rate,
		.latency_ns = probe_median(&cell->latency, NULL),
		.range = {range.low * size, range.high * size, range.repeats}};
}

static void reads_keep(struct probe_reads *reads)
{
	size_t unseen = 0;
	unsigned least = reads->control->rounds;
	for (size_t i = 0; i < reads->cell_count; i++) {
		const struct cell *cell = &reads->cells[i];
		if (reads->lacks[cell->state] && cell->rate.count == 0)
			continue;
		unseen += cell->rate.count == 0;
		if (cell->rate.count == 0)
			continue;
		reads_keep_cell(reads, cell);
		least = cell->rate.count < least ? cell->rate.count : least;
	}
	if (probe_stopped(reads->control))
		return;
	if (unseen > 0)
		ceilings_lack(reads->out,
			"reads: %zu of %zu combinations of cache, size and depth: out of time",
			unseen, reads->cell_count);
	if (least < reads->control->rounds)
		ceilings_note(reads->out, "reads: some have %u repeats instead of %u: out of time",
			least, reads->control->rounds);
}

/* Longer slots get the time for a round of all cells. */
static void reads_prolong(const struct probe_reads *reads, struct probe_control *control)
{
	const uint64_t more = probe_reads_slot_ns(reads, control->slot_ns) - control->slot_ns;
	if (control->deadline_ns)
		control->deadline_ns += reads->cell_count * more;
}

int probe_read(const struct probe_read_plan *plan, const struct probe_control *bounds,
	struct ceilings *out, struct error *err)
{
	struct probe_control own = *bounds;
	const struct probe_control *control = &own;
	struct probe_reads *reads;
	int code = probe_reads_open(&reads, plan, control, out, err);
	if (reads) { /* NULL where it failed */
		reads_prolong(reads, &own);
		code = reads_measure_rounds(reads, err);
		reads_keep(reads);
	}
	probe_reads_close(reads);
	return probe_stopped(control) ? -EINTR : code;
}
