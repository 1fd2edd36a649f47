/* Keeping reads in flight with one ring and one thread.  Each submission call carries whatever came
 * back since the last, so a device that completes in bursts is refilled in bursts. */
#include "workloads/source/probe_read_parts.h"

#include "harness/base/clock.h"
#include "workloads/source/uring.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	WAIT_MS = 100,          /* between two looks at the stop flag */
	STUCK_MS = 5000,        /* without a completion: lost */
	STUCK_STOPPED_MS = 500, /* likewise when asked to stop */
	REQUESTS_LEAST = 8,     /* a slot goes on until so many came back ... */
	SLOT_TIMES = 4,         /* ... for at most so many times its length */
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

int read_ring_open(struct read_ring **out, const struct read_buffers *buffers, struct error *err)
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
	/* Where reads wait in the kernel's worker threads, as many as the depth says (uring_ring.c). */
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

bool read_ring_lost(const struct read_ring *ring)
{
	return ring && ring->lost;
}

void read_ring_close(struct read_ring *ring)
{
	if (ring && !ring->lost) {
		if (ring->fixed)
			(void)io_uring_unregister_buffers(&ring->ring);
		io_uring_queue_exit(&ring->ring);
	}
	free(ring);
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

struct run {
	struct read_ring *ring;
	struct read_slot *slot;
	struct read_tally tally;
	double latency_ns; /* of those counted after the first burst, together */
	uint32_t taken;
	unsigned in_flight;
	int status;
	bool async; /* as in struct uring_options */
};

static bool submit_one(struct run *run, uint64_t now)
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

static bool is_over(const struct run *run, uint64_t now)
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
static void complete(struct run *run, const struct io_uring_cqe *cqe, uint64_t now, bool counts)
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

static void reap(struct run *run)
{
	struct io_uring_cqe *cqe;
	unsigned head;
	unsigned seen = 0;
	const uint64_t now = clock_now_ns();
	const bool over = is_over(run, now);
	const bool first = run->tally.first_ns == 0;
	io_uring_for_each_cqe(&run->ring->ring, head, cqe)
	{
		complete(run, cqe, now, !first && !over);
		seen++;
	}
	io_uring_cq_advance(&run->ring->ring, seen);
	if (seen == 0 || over)
		return;
	if (first) {
		run->tally.first_ns = now;
		run->tally.first_count = seen;
	}
	run->tally.last_ns = now;
}

static bool is_stuck(const struct run *run, uint64_t waiting_since)
{
	const uint64_t ms = (clock_now_ns() - waiting_since) / NS_PER_MS;
	return ms >= STUCK_MS || (ms >= STUCK_STOPPED_MS && probe_stopped(run->slot->control));
}

/* Submits what is prepared and waits for one completion or more.  -ETIMEDOUT: none came. */
static int wait_for_some(struct run *run)
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
		if (is_stuck(run, since))
			return -ETIMEDOUT;
	}
}

static int keep_going(struct run *run)
{
	bool more = true;
	for (;;) {
		const uint64_t now = clock_now_ns();
		more = more && !is_over(run, now);
		while (more && run->in_flight < run->slot->depth)
			more = submit_one(run, now);
		if (run->in_flight == 0)
			return run->status;
		const int code = wait_for_some(run);
		if (code) {
			run->ring->lost = true;
			return code;
		}
		reap(run);
	}
}

int read_ring_run(struct read_ring *ring, struct read_slot *slot, struct error *err)
{
	struct run run = {.ring = ring,
		.slot = slot,
		.tally.begin_ns = clock_now_ns(),
		.async = uring_may_wait(slot->fd)};
	const int code = keep_going(&run);
	const uint64_t count = run.tally.count;
	slot->requests = count;
	slot->requests_per_s = read_tally_rate(&run.tally);
	slot->latency_ns = count ? run.latency_ns / (double)count : (double)NAN;
	if (code == -ETIMEDOUT)
		return error_set(err, code, "a read did not come back in %d s", STUCK_MS / 1000);
	return code ? error_set_errno(err, -code, "reading the scratch file") : 0;
}
