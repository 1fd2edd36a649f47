/* A ring a thread, with one request of each file in flight at a time.
 *
 * The kernel performs what may block in threads of its own: a statx always, an open only where
 * it is asked to.  Left to itself it opens a file whose path is cached in the call that submits,
 * and a file system that answers over a network (FUSE, NFS) then holds up everything behind it:
 * 2,400 files at 20 ms a request took 24 s so, and 4.5 s as it is. */
#include "workloads/dataset/inspect_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>

struct inspect_ring {
	struct inspect_job *job;
	struct io_uring ring;
	bool lost;
	unsigned depth, in_flight;
	struct inspection *slots; /* (depth) */
	unsigned *free_slots;     /* a stack of depth - in_flight */
};

bool inspect_ring_works(void)
{
	static const int needed[] = {
		IORING_OP_STATX, IORING_OP_OPENAT, IORING_OP_READ, IORING_OP_CLOSE};
	struct io_uring ring;
	if (io_uring_queue_init(1, &ring, 0))
		return false;
	struct io_uring_probe *const probe = io_uring_get_probe_ring(&ring);
	bool works = probe != NULL;
	for (size_t i = 0; works && i < sizeof needed / sizeof *needed; i++)
		works = io_uring_opcode_supported(probe, needed[i]);
	if (probe)
		io_uring_free_probe(probe);
	io_uring_queue_exit(&ring);
	return works;
}

static int inspect_ring_open_slots(struct inspect_ring *ring, struct error *err)
{
	struct inspect_job *const job = ring->job;
	ring->slots = calloc(ring->depth, sizeof *ring->slots);
	ring->free_slots = calloc(ring->depth, sizeof *ring->free_slots);
	bool got = ring->slots && ring->free_slots;
	for (unsigned i = 0; got && i < ring->depth; i++) {
		ring->slots[i] = (struct inspection){
			.job = job, .head = job->headers ? malloc(job->room) : NULL};
		ring->free_slots[i] = i;
		got = !job->headers || ring->slots[i].head;
	}
	return got ? 0 : error_set(err, -ENOMEM, "no memory for the beginnings of files");
}

static void close_slots(struct inspect_ring *ring)
{
	for (unsigned i = 0; ring->slots && i < ring->depth; i++)
		free(ring->slots[i].head);
	free(ring->slots);
	free(ring->free_slots);
}

/* Left to itself the kernel has four threads a core for what may block. */
static bool open_ring(struct inspect_ring *ring)
{
	unsigned workers[2] = {ring->depth, 0};
	if (io_uring_queue_init(ring->depth, &ring->ring, 0))
		return false;
	(void)io_uring_register_iowq_max_workers(&ring->ring, workers);
	atomic_store(&ring->job->ringed, true);
	return true;
}

/* The queue has room for a request of each slot. */
static void prepare_request(struct inspect_ring *ring, struct inspection *inspection)
{
	struct io_uring_sqe *const sqe = io_uring_get_sqe(&ring->ring);
	const int root = ring->job->scan->root_fd;
	const char *const path = inspection->file->path;
	switch (inspection->request) {
	case INSPECT_STAT:
		io_uring_prep_statx(sqe, root, path, 0, INSPECT_STATX_MASK, &inspection->st);
		break;
	case INSPECT_LSTAT:
		io_uring_prep_statx(
			sqe, root, path, AT_SYMLINK_NOFOLLOW, INSPECT_STATX_MASK, &inspection->st);
		break;
	case INSPECT_OPEN:
		io_uring_prep_openat(sqe, root, path, inspect_open_flags, 0);
		io_uring_sqe_set_flags(sqe, IOSQE_ASYNC);
		break;
	case INSPECT_READ:
		io_uring_prep_read(sqe, inspection->fd, inspection->head + inspection->got,
			(unsigned)(ring->job->room - inspection->got), inspection->got);
		break;
	default:
		io_uring_prep_close(sqe, inspection->fd);
		break;
	}
	io_uring_sqe_set_data(sqe, inspection);
}

/* Begins files until as many are in flight as may be, or none are left. */
static void fill_ring(struct inspect_ring *ring)
{
	while (ring->in_flight < ring->depth) {
		struct inspection *const inspection =
			&ring->slots[ring->free_slots[ring->depth - ring->in_flight - 1]];
		if (!inspect_begin(inspection))
			break;
		prepare_request(ring, inspection);
		ring->in_flight++;
	}
}

static int take_answer(struct inspect_ring *ring, const struct io_uring_cqe *cqe, struct error *err)
{
	struct inspection *const inspection = io_uring_cqe_get_data(cqe);
	const int code = inspect_answer(inspection, cqe->res, err);
	if (inspection->request != INSPECT_DONE) {
		prepare_request(ring, inspection);
		return code;
	}
	ring->in_flight--;
	ring->free_slots[ring->depth - ring->in_flight - 1] = (unsigned)(inspection - ring->slots);
	return code;
}

static int take_answers(struct inspect_ring *ring, struct error *err)
{
	struct io_uring_cqe *cqe;
	int failed = 0;
	int code = io_uring_submit_and_wait(&ring->ring, 1);
	ring->lost = code < 0 && code != -EINTR && code != -EAGAIN && code != -EBUSY;
	if (ring->lost)
		return error_set_errno(err, -code, "lost the io_uring that looks at files");
	while (io_uring_peek_cqe(&ring->ring, &cqe) == 0) {
		code = take_answer(ring, cqe, failed ? NULL : err);
		io_uring_cqe_seen(&ring->ring, cqe);
		failed = failed ? failed : code;
	}
	return failed;
}

bool inspect_by_ring(struct inspect_job *job, int *code, struct error *err)
{
	struct inspect_ring ring = {.job = job, .depth = job->depth / job->threads};
	if (!open_ring(&ring))
		return false;
	*code = inspect_ring_open_slots(&ring, err);
	while (!*code) {
		fill_ring(&ring);
		if (ring.in_flight == 0)
			break;
		*code = take_answers(&ring, err);
	}
	if (*code)
		atomic_store(&job->failed, true);
	while (ring.in_flight > 0 && !ring.lost)
		(void)take_answers(&ring, NULL);
	io_uring_queue_exit(&ring.ring);
	if (!ring.lost) /* else the kernel may still write there */
		close_slots(&ring);
	return true;
}
