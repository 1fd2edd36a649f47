/* What each answer means, and what is asked next. */
#include "workloads/dataset/inspect_file.h"

#include "workloads/dataset/manifest.h"
#include "workloads/sample/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* A header that is still not whole after so many bytes is no header. */
static const uint64_t HEAD_MAX = 64 << 20;

/* Only of regular files.  Not O_NONBLOCK: there are kernels whose io_uring then ends a read that would block. */
const int inspect_open_flags = O_RDONLY | O_CLOEXEC | O_NOCTTY;

const struct storage_calls storage_system = {
	.openat = openat,
	.readdir = readdir,
	.statx = statx,
	.pread = pread,
	.close = close,
};

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

bool inspect_begin(struct inspection *inspection)
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

static void inspect_file_take_size(struct inspection *inspection)
{
	struct found *const file = inspection->file;
	const struct statx *const st = &inspection->st;
	(void)atomic_fetch_add_explicit(&inspection->job->sized, 1, memory_order_relaxed);
	file->kind = S_ISREG(st->stx_mode)   ? FOUND_FILE
		     : S_ISDIR(st->stx_mode) ? FOUND_FOLDER
					     : FOUND_OTHER;
	file->sized = true;
	if (file->kind == FOUND_FILE) {
		file->bytes = st->stx_size;
		file->modified_ns = st->stx_mtime.tv_sec * 1000000000LL + st->stx_mtime.tv_nsec;
		file->reason = file->bytes == 0 ? "an empty file" : NULL;
	} else if (file->kind == FOUND_OTHER || inspection->job->headers) {
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
	int code = sample_look(
		job->scan->kind, inspection->head, inspection->got, file->bytes, &said, &why);
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

int inspect_answer(struct inspection *inspection, int result, struct error *err)
{
	struct found *const file = inspection->file;
	struct inspect_job *const job = inspection->job;
	int code = 0;
	if (result == -EINTR && inspection->request != INSPECT_CLOSE)
		return 0;
	switch (inspection->request) {
	case INSPECT_STAT:
		if (result < 0) {
			inspection->request = INSPECT_LSTAT;
			break;
		}
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
		inspection->fd = result;
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

/* Asks a store for its size and time, as a statx would answer. */
static int inspect_stat_in_store(struct inspection *inspection)
{
	static const mode_t modes[] = {
		[STORE_FILE] = S_IFREG, [STORE_FOLDER] = S_IFDIR, [STORE_OTHER] = S_IFCHR};
	struct store *const store = inspection->job->scan->store;
	struct store_stat what;
	const int code = store->ops->stat(store, inspection->file->path, NULL, &what);
	if (code)
		return code;
	inspection->st = (struct statx){.stx_mode = (uint16_t)modes[what.kind],
		.stx_size = what.bytes,
		.stx_mtime = {.tv_sec = what.modified_ns / 1000000000,
			.tv_nsec = (uint32_t)(what.modified_ns % 1000000000)}};
	return 0;
}

/* The result, or a negative errno. */
static int inspect_in_store(struct inspection *inspection)
{
	struct store *const store = inspection->job->scan->store;
	switch (inspection->request) {
	case INSPECT_STAT:
		return inspect_stat_in_store(inspection);
	case INSPECT_LSTAT: /* it has no links */
		return -ENOENT;
	case INSPECT_OPEN:
		return store->ops->file_open(
			store, inspection->file->path, false, &inspection->opened);
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

/* The same of a local store, by the system's calls. */
static int perform(struct inspection *inspection)
{
	const struct storage_calls *const calls = inspection->job->scan->calls;
	const int root = inspection->job->scan->root_fd;
	const char *const path = inspection->file->path;
	ssize_t result = 0;
	switch (inspection->request) {
	case INSPECT_STAT:
		result = calls->statx(root, path, 0, INSPECT_STATX_MASK, &inspection->st);
		break;
	case INSPECT_LSTAT:
		result = calls->statx(
			root, path, AT_SYMLINK_NOFOLLOW, INSPECT_STATX_MASK, &inspection->st);
		break;
	case INSPECT_OPEN:
		result = calls->openat(root, path, inspect_open_flags);
		break;
	case INSPECT_READ:
		result = calls->pread(inspection->fd, inspection->head + inspection->got,
			inspection->job->room - inspection->got, (off_t)inspection->got);
		break;
	case INSPECT_CLOSE:
		result = calls->close(inspection->fd);
		break;
	case INSPECT_DONE:
		break;
	}
	return result < 0 ? -errno : (int)result;
}

int inspect_plainly(struct inspection *inspection, struct error *err)
{
	int code = 0;
	while (inspection->request != INSPECT_DONE) {
		const bool local = inspection->job->scan->store->ops->local;
		const int result = local ? perform(inspection) : inspect_in_store(inspection);
		const int next = inspect_answer(inspection, result, err);
		code = code ? code : next;
	}
	return code;
}
