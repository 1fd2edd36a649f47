/* Looking at many files of a user's folder at once: sizes, times, headers.
 *
 * A file takes a few requests, one after the other: its size and time, open, read, close.  Each
 * answer says what is asked next (inspect_answer).  A few threads with a ring each have many
 * files in flight; where io_uring cannot be had, or the store is not local, there is a thread for
 * each of them, which calls the store. */
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "workloads/dataset/manifest.h"
#include "workloads/dataset/scan.h"
#include "workloads/dataset/threads.h"
#include "workloads/sample/sample.h"
#include "workloads/source/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <liburing.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* What the threads of one round share. */
struct inspect_job {
	struct folder_scan *scan;
	struct found *files;
	const size_t *which;
	size_t count;
	bool headers;
	size_t room;    /* bytes of a file's beginning */
	unsigned depth; /* in flight at most, all threads together */
	unsigned threads;
	/* Files are taken in turn from as many stretches as there are requests in flight, each
	 * so long: neighbours lie in one folder, and there are file systems where a folder
	 * answers one request after the other. */
	size_t lanes, lane;
	bool ring, near; /* near: sizes only, each in so little time that a call asks for it */
	atomic_size_t next;
	atomic_uint_fast64_t done, sized, read;
	atomic_uint in_flight, most_in_flight;
	atomic_bool failed, ringed; /* all is to end; a ring was used */
	pthread_mutex_t lock;       /* of the arena */
};

enum inspect_request {
	INSPECT_STAT,
	INSPECT_LSTAT, /* a broken link, or nothing that can be asked? */
	INSPECT_OPEN,
	INSPECT_READ,
	INSPECT_CLOSE,
	INSPECT_DONE,
};

struct inspection {
	struct inspect_job *job;
	struct found *file;
	enum inspect_request request; /* to be performed next */
	union store_file opened;
	size_t got;
	char *head;             /* (job->room) */
	struct store_stat what; /* the answer to INSPECT_STAT */
	struct statx st;        /* the same, as the kernel answers a ring */
};

/* ---- one file ----------------------------------------------------------------------------- */

/* A header that is still not whole after so many bytes is no header. */
static const uint64_t HEAD_MAX = 64 << 20;

static bool inspect_ends(const struct inspect_job *job)
{
	return atomic_load_explicit(&job->failed, memory_order_relaxed) || scan_stopped(job->scan);
}

/* The first request that a file needs; INSPECT_DONE: none. */
static enum inspect_request first_request(const struct inspect_job *job, const struct found *file)
{
	if (file->reason || (file->sized && (!job->headers || file->probed)))
		return INSPECT_DONE;
	return file->sized ? INSPECT_OPEN : INSPECT_STAT;
}

static void count_in_flight(struct inspect_job *job)
{
	const unsigned now = atomic_fetch_add(&job->in_flight, 1) + 1;
	unsigned most = atomic_load(&job->most_in_flight);
	while (now > most && !atomic_compare_exchange_weak(&job->most_in_flight, &most, now))
		;
}

/* Begins with the next file that has anything to be asked; false: there is none, or all is to
 * end. */
static bool inspect_begin(struct inspection *inspection)
{
	struct inspect_job *const job = inspection->job;
	while (!inspect_ends(job)) {
		const size_t turn = atomic_fetch_add(&job->next, 1);
		if (turn >= job->lanes * job->lane)
			return false;
		const size_t at = turn % job->lanes * job->lane + turn / job->lanes;
		if (at >= job->count)
			continue;
		inspection->file = &job->files[job->which ? job->which[at] : at];
		inspection->request = first_request(job, inspection->file);
		inspection->got = 0;
		if (inspection->request != INSPECT_DONE) {
			count_in_flight(job);
			return true;
		}
		(void)atomic_fetch_add_explicit(&job->done, 1, memory_order_relaxed);
	}
	return false;
}

static void inspect_end(struct inspection *inspection)
{
	inspection->request = INSPECT_DONE;
	(void)atomic_fetch_sub(&inspection->job->in_flight, 1);
	(void)atomic_fetch_add_explicit(&inspection->job->done, 1, memory_order_relaxed);
}

void found_take_size(struct found *file, const struct store_stat *what)
{
	file->sized = true;
	file->bytes = what->bytes;
	file->modified_ns = what->modified_ns;
	file->reason = file->bytes == 0 ? "an empty file" : NULL;
}

static void inspect_file_take_size(struct inspection *inspection)
{
	struct found *const file = inspection->file;
	file->kind = (uint8_t)inspection->what.kind;
	file->sized = true;
	if (file->kind == STORE_FILE) {
		found_take_size(file, &inspection->what);
	} else if (file->kind == STORE_OTHER || inspection->job->headers) {
		file->reason = "not a regular file";
	}
}

static int keep_finding(struct inspection *inspection, const char *reason, struct error *err)
{
	struct inspect_job *const job = inspection->job;
	struct found *const file = inspection->file;
	file->probed = true;
	if (!reason)
		return 0;
	(void)pthread_mutex_lock(&job->lock);
	file->reason = arena_text(job->scan->arena, reason, strlen(reason));
	(void)pthread_mutex_unlock(&job->lock);
	return file->reason ? 0 : error_set(err, -ENOMEM, "no memory for a list of bad files");
}

static int keep_errno(
	struct inspection *inspection, int saved_errno, const char *what, struct error *err)
{
	struct error why;
	(void)error_set_errno(&why, saved_errno, "%s", what);
	inspection->file->passing = true;
	return keep_finding(inspection, why.text, err);
}

/* What its beginning says.  Where more of it is needed, that is left for another round. */
static int judge_head(struct inspection *inspection, struct error *err)
{
	const struct inspect_job *const job = inspection->job;
	struct found *const file = inspection->file;
	struct sample said;
	struct error why = {"unreadable"};
	int code =
		scan_look(job->scan, inspection->head, inspection->got, file->bytes, &said, &why);
	if (code == -EAGAIN && inspection->got < file->bytes && inspection->got == job->room) {
		file->cut = job->room < HEAD_MAX;
		if (file->cut)
			return 0;
		(void)error_set(
			&why, -EINVAL, "its header is longer than %" PRIu64 " MiB", HEAD_MAX >> 20);
	} else if (code == -EAGAIN) {
		(void)error_set(&why, -EINVAL, "cut short within its header");
	}
	file->passing = code == -ENOMEM;
	file->width = said.width;
	file->height = said.height;
	file->format = said.format;
	return keep_finding(inspection, code ? why.text : NULL, err);
}

static int answer_read(struct inspection *inspection, int result, struct error *err)
{
	const struct inspect_job *const job = inspection->job;
	inspection->request = INSPECT_CLOSE;
	if (result < 0)
		return keep_errno(inspection, -result, "cannot be read", err);
	inspection->got += (size_t)result;
	const bool whole = result == 0 || inspection->got >= inspection->file->bytes ||
			   inspection->got == job->room;
	if (inspect_ends(job))
		return 0;
	if (whole)
		return judge_head(inspection, err);
	inspection->request = INSPECT_READ;
	return 0;
}

/* result: of the request, or a negative errno.  -ENOMEM when the scan has to fail. */
static int inspect_answer(struct inspection *inspection, int result, struct error *err)
{
	struct found *const file = inspection->file;
	struct inspect_job *const job = inspection->job;
	int code = 0;
	if (store_repeats(result) && inspection->request != INSPECT_CLOSE)
		return 0;
	switch (inspection->request) {
	case INSPECT_STAT:
		if (result < 0) {
			inspection->request = INSPECT_LSTAT;
			break;
		}
		(void)atomic_fetch_add_explicit(&job->sized, 1, memory_order_relaxed);
		inspect_file_take_size(inspection);
		inspection->request = first_request(job, file);
		break;
	case INSPECT_LSTAT:
		file->reason = result == 0 ? "a broken link" : "its size and type cannot be read";
		inspection->request = INSPECT_DONE;
		break;
	case INSPECT_OPEN:
		(void)atomic_fetch_add_explicit(&job->read, 1, memory_order_relaxed);
		if (result < 0) {
			inspection->request = INSPECT_DONE;
			code = keep_errno(inspection, -result, "cannot be opened", err);
			break;
		}
		inspection->request = INSPECT_READ;
		break;
	case INSPECT_READ:
		code = answer_read(inspection, result, err);
		break;
	case INSPECT_CLOSE:
	case INSPECT_DONE:
		inspection->request = INSPECT_DONE;
		break;
	}
	if (code)
		atomic_store(&job->failed, true);
	/* What is open has to be closed all the same. */
	if (inspect_ends(job) && inspection->request != INSPECT_DONE)
		inspection->request =
			inspection->request >= INSPECT_READ ? INSPECT_CLOSE : INSPECT_DONE;
	if (inspection->request == INSPECT_DONE)
		inspect_end(inspection);
	return code;
}

/* Performs a request by a call of the store: the result, or a negative errno. */
static int inspect_call(struct inspection *inspection)
{
	struct store *const store = inspection->job->scan->store;
	const char *const path = inspection->file->path;
	switch (inspection->request) {
	case INSPECT_STAT:
		return store->ops->stat(store, path, NULL, &inspection->what);
	case INSPECT_LSTAT: /* only a local store has links */
		return store->ops->local ? store_local_link(store, path) : -ENOENT;
	case INSPECT_OPEN:
		return store->ops->file_open(store, path, false, &inspection->opened);
	case INSPECT_READ:
		return (int)store->ops->read(store, inspection->opened, inspection->got,
			inspection->head + inspection->got,
			inspection->job->room - inspection->got);
	case INSPECT_CLOSE:
		store->ops->file_close(store, inspection->opened);
		return 0;
	case INSPECT_DONE:
		break;
	}
	return 0;
}

/* Performs the rest of its requests, one after the other. */
static int inspect_plainly(struct inspection *inspection, struct error *err)
{
	int code = 0;
	while (inspection->request != INSPECT_DONE) {
		const int next = inspect_answer(inspection, inspect_call(inspection), err);
		code = code ? code : next;
	}
	return code;
}

/* ---- a ring a thread, with one request of each file in flight at a time ----------------------
 *
 * The kernel performs what may block in threads of its own: a statx always, an open only where
 * it is asked to.  Left to itself it opens a file whose path is cached in the call that submits,
 * and a file system that answers over a network (FUSE, NFS) then holds up everything behind it:
 * 2,400 files at 20 ms a request took 24 s so, and 4.5 s as it is. */

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
	/* Not O_NONBLOCK: there are kernels whose io_uring then ends a read that would block. */
	static const int open_flags = O_RDONLY | O_CLOEXEC | O_NOCTTY;
	struct io_uring_sqe *const sqe = io_uring_get_sqe(&ring->ring);
	const int root = ring->job->scan->store->root_fd;
	const char *const path = inspection->file->path;
	switch (inspection->request) {
	case INSPECT_STAT:
		io_uring_prep_statx(sqe, root, path, 0, STORE_STATX_MASK, &inspection->st);
		break;
	case INSPECT_LSTAT:
		io_uring_prep_statx(
			sqe, root, path, AT_SYMLINK_NOFOLLOW, STORE_STATX_MASK, &inspection->st);
		break;
	case INSPECT_OPEN:
		io_uring_prep_openat(sqe, root, path, open_flags, 0);
		io_uring_sqe_set_flags(sqe, IOSQE_ASYNC);
		break;
	case INSPECT_READ:
		io_uring_prep_read(sqe, inspection->opened.fd, inspection->head + inspection->got,
			(unsigned)(ring->job->room - inspection->got), inspection->got);
		break;
	default:
		io_uring_prep_close(sqe, inspection->opened.fd);
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
	if (inspection->request == INSPECT_STAT && cqe->res >= 0)
		inspection->what = store_stat_of(&inspection->st);
	if (inspection->request == INSPECT_OPEN && cqe->res >= 0)
		inspection->opened.fd = cqe->res;
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

/* Takes files of the job until there are none, as one of its threads: up to job->depth /
 * job->threads of them in flight in a ring of the calling thread.  *code: 0, -ENOMEM, or -errno
 * where the ring is lost.  False: it cannot be had, and nothing was taken. */
static bool inspect_by_ring(struct inspect_job *job, int *code, struct error *err)
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

/* ---- many files --------------------------------------------------------------------------- */

enum {
	/* The first 64 KiB of a file are nearly always enough; what they are not enough for is
	 * read again, with eight times as much of each. */
	HEAD_BYTES = 64 * 1024,
	HEAD_GROWTH = 8,
	/* More threads than read headers at the speed of memory bring nothing: rings are for
	 * depth. */
	RING_THREADS_MAX = 16,
};

/* Of all beginnings in memory at once. */
static const size_t HEADS_BYTES_MAX = 256 << 20;

static int inspect_by_calls(struct inspect_job *job, struct error *err)
{
	struct inspection inspection = {
		.job = job, .head = job->headers ? malloc(job->room) : NULL};
	int code = 0;
	if (job->headers && !inspection.head) {
		atomic_store(&job->failed, true);
		return error_set(err, -ENOMEM, "no memory for the beginning of a file");
	}
	while (!code && inspect_begin(&inspection))
		code = inspect_plainly(&inspection, err);
	free(inspection.head);
	return code;
}

enum { TRIAL_FILES = 256, NEAR_NS = 20000, TRIAL_NS = 1000000, NEAR_STRETCH = 1024 };

/* A folder below the store's, open as a store of its own: a path of one part is found sooner. */
struct near_folder {
	struct store store;
	const char *path; /* of a file in it; NULL: none is open, and the store is the whole one */
	size_t length;    /* of its own path, which begins that one */
};

static void near_leave(struct near_folder *near)
{
	if (near->path)
		(void)near->store.calls->close(near->store.root_fd);
	near->path = NULL;
}

/* Opens the folder of a file, unless it is open already.  What near->store calls the file. */
static const char *near_enter(struct near_folder *near, const struct store *whole, const char *path)
{
	const char *const slash = strrchr(path, '/');
	const size_t length = slash ? (size_t)(slash - path) : 0;
	char folder[FILES_PATH_BYTES];
	if (near->path && near->length == length && memcmp(near->path, path, length) == 0)
		return path + length + 1;
	near_leave(near);
	near->store = *whole;
	if (!slash || length >= sizeof folder)
		return path;
	memcpy(folder, path, length);
	folder[length] = '\0';
	const int fd =
		whole->calls->openat(whole->root_fd, folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return path;
	near->store.root_fd = fd;
	near->path = path;
	near->length = length;
	return slash + 1;
}

/* Sizes that are no round trip away, folder by folder: a stretch of files at a time, so that threads
 * share nothing else. */
static int inspect_near(struct inspect_job *job, struct error *err)
{
	const struct store *const whole = job->scan->store;
	struct inspection inspection = {.job = job};
	struct near_folder near = {.path = NULL};
	int code = 0;
	while (!code && !inspect_ends(job)) {
		const size_t from = atomic_fetch_add(&job->next, NEAR_STRETCH);
		const size_t end =
			from + NEAR_STRETCH < job->count ? from + NEAR_STRETCH : job->count;
		uint64_t sized = 0; /* threads contend for the job's count */
		if (from >= end)
			break;
		for (size_t i = from; i < end && !code; i++) {
			inspection.file = &job->files[job->which ? job->which[i] : i];
			inspection.request = first_request(job, inspection.file);
			if (inspection.request == INSPECT_DONE)
				continue;
			const char *const name = near_enter(&near, whole, inspection.file->path);
			if (whole->ops->stat(&near.store, name, NULL, &inspection.what) == 0) {
				inspect_file_take_size(&inspection);
				sized++;
				continue;
			}
			count_in_flight(job);
			code = inspect_plainly(&inspection, err);
		}
		(void)atomic_fetch_add(&job->sized, sized);
		(void)atomic_fetch_add(&job->done, end - from);
	}
	near_leave(&near);
	return code;
}

/* Each thread has one item: as many files as there are for it. */
static int inspect_work(void *context, unsigned worker, uint64_t index, struct error *err)
{
	struct inspect_job *const job = context;
	(void)worker;
	(void)index;
	int code = 0;
	if (job->near)
		return inspect_near(job, err);
	return job->ring && inspect_by_ring(job, &code, err) ? code : inspect_by_calls(job, err);
}

static int inspect_tick(void *context, uint64_t done, struct error *err)
{
	struct inspect_job *const job = context;
	const struct dataset_control *const control = job->scan->control;
	(void)done;
	(void)err;
	if (control->progress)
		control->progress(control->context, atomic_load(&job->done), job->count, 0);
	return 0;
}

static unsigned inspect_least(size_t a, size_t b)
{
	return (unsigned)(a < b ? a : b);
}

static unsigned inspect_threads(const struct inspect_job *job)
{
	unsigned threads = job->depth;
	if (job->ring)
		threads = inspect_least(team_threads(job->scan->control->threads),
			inspect_least(RING_THREADS_MAX, job->depth));
	return inspect_least(threads, job->count);
}

static void count_effort(struct inspect_job *job)
{
	struct dataset_effort *const effort = &job->scan->effort;
	const unsigned most = atomic_load(&job->most_in_flight);
	effort->sized += atomic_load(&job->sized);
	effort->headers += atomic_load(&job->read);
	effort->ring = effort->ring || atomic_load(&job->ringed);
	if (most > effort->most_in_flight)
		effort->most_in_flight = most;
}

/* Asks for the sizes of a few files by calls: whether they are no round trip away.  Then a call each, by a thread a core that
 * goes through one folder after the other, is several times as fast as a ring, which hands each statx to a thread of the
 * kernel's. */
static bool sizes_are_near(struct inspect_job *job)
{
	struct inspection inspection = {.job = job};
	const uint64_t begin_ns = clock_now_ns();
	uint64_t asked = 0;
	while (asked < TRIAL_FILES && clock_now_ns() - begin_ns <= asked * NEAR_NS + TRIAL_NS &&
		inspect_begin(&inspection)) {
		(void)inspect_plainly(&inspection, NULL);
		asked++;
	}
	return asked > 0 && (clock_now_ns() - begin_ns) / asked < NEAR_NS;
}

/* All files of the job, with so much of each one's beginning. */
static int inspect_round(struct inspect_job *job, size_t room, struct error *err)
{
	const size_t heads = HEADS_BYTES_MAX / room;
	job->room = room;
	job->depth = inspect_least(job->scan->depth, job->headers ? heads : job->scan->depth);
	job->ring = job->scan->ring;
	job->threads = inspect_threads(job);
	job->lanes = job->depth;
	job->lane = (job->count + job->lanes - 1) / job->lanes;
	atomic_store(&job->next, 0);
	job->near = job->ring && !job->headers && sizes_are_near(job);
	atomic_store(&job->next, 0); /* the files of the trial are known by now */
	atomic_store(&job->done, 0);
	const struct team_job team = {
		.count = job->threads,
		.item = inspect_work,
		.tick = inspect_tick,
		.context = job,
		.stop = job->scan->control->stop,
		.threads = job->threads,
	};
	const int code = job->count ? team_run(&team, err) : 0;
	return !code && scan_stopped(job->scan) ? error_set(err, -EINTR, "stopped") : code;
}

/* Those whose beginning was too short: how many, and where there is room for them, which. */
static size_t find_cut(const struct inspect_job *job, size_t *cut)
{
	size_t count = 0;
	for (size_t i = 0; i < job->count; i++) {
		const size_t at = job->which ? job->which[i] : i;
		if (!job->files[at].cut)
			continue;
		if (cut)
			cut[count] = at;
		count++;
	}
	return count;
}

/* Rounds until no beginning is too short.  The list of each lies where that of the one before
 * did, which was no shorter. */
static int inspect_cut(struct inspect_job *job, struct error *err)
{
	const size_t first = find_cut(job, NULL);
	size_t *const cut = calloc(first + 1, sizeof *cut);
	int code = cut ? 0 : error_set(err, -ENOMEM, "no memory for a list of files");
	for (size_t room = HEAD_BYTES * HEAD_GROWTH; !code; room *= HEAD_GROWTH) {
		job->count = find_cut(job, cut);
		job->which = cut;
		if (job->count == 0)
			break;
		for (size_t i = 0; i < job->count; i++)
			job->files[cut[i]].cut = false;
		code = inspect_round(job, room, err);
	}
	free(cut);
	return code;
}

int inspect_files(struct folder_scan *scan, struct found *files, const size_t *which, size_t count,
	bool headers, struct error *err)
{
	struct inspect_job job = {
		.scan = scan, .files = files, .which = which, .count = count, .headers = headers};
	bool any = false;
	for (size_t i = 0; i < count && !any; i++)
		any = first_request(&job, &files[which ? which[i] : i]) != INSPECT_DONE;
	if (!any)
		return scan_stopped(scan)
			       ? error_set(err, -EINTR,
					 "stopped while the files of '%s' were looked at",
					 scan->root)
			       : 0;
	(void)pthread_mutex_init(&job.lock, NULL);
	int code = inspect_round(&job, HEAD_BYTES, err);
	if (!code && headers)
		code = inspect_cut(&job, err);
	(void)pthread_mutex_destroy(&job.lock);
	count_effort(&job);
	if (code == -EINTR)
		(void)error_set(
			err, code, "stopped while the files of '%s' were looked at", scan->root);
	return code;
}
