/* The mmap engine: files are mapped, and samples are copied out of the mapping, as loaders of token files do it
 * (NumPy's memmap).  The first touch of a page is a fault, for which the reader's thread waits; what is in the page
 * cache takes no system call.  One sample at a time per reader thread, and never past the page cache.
 *
 * A file that is cut short while it is mapped, and storage that fails, end a copy with SIGBUS: that sample fails, and
 * nothing else does. */
#include "workloads/source/engines.h"

#include "harness/base/clock.h"
#include "harness/measure/timeline.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Of each reader, where files hold many samples; a file that is one is unmapped at once. */
enum { MAPPINGS = 32 };

struct mapping {
	const char *path; /* the data set's own; NULL: none */
	uint8_t *bytes;   /* NULL: the file is empty */
	size_t size;
};

struct mmap_reader {
	struct reader base;
	struct request_list done;
	struct mapping list[MAPPINGS];
	size_t next; /* the one to be unmapped first */
};

/* ---- copies that may fail ----------------------------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	unsigned users; /* sources that are open */
	struct sigaction before;
} mmap_faults = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local sigjmp_buf mmap_escape;
static _Thread_local volatile sig_atomic_t mmap_copies;

/* A fault that is not a copy's goes to whoever handled it before: the instruction faults again, and a signal that
 * somebody sent is sent on. */
static void mmap_fault(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (mmap_copies)
		siglongjmp(mmap_escape, 1);
	(void)sigaction(number, &mmap_faults.before, NULL);
	if (info->si_code <= 0)
		(void)raise(number);
}

/* False: a page cannot be had. */
static bool mmap_copy(uint8_t *to, const uint8_t *from, size_t size)
{
	if (sigsetjmp(mmap_escape, 0) != 0) {
		mmap_copies = 0;
		return false;
	}
	mmap_copies = 1;
	atomic_signal_fence(memory_order_seq_cst);
	memcpy(to, from, size);
	atomic_signal_fence(memory_order_seq_cst);
	mmap_copies = 0;
	return true;
}

static int mmap_open(struct source *base, struct error *err)
{
	/* The signal is not blocked while it is handled, since the handler does not return. */
	struct sigaction action = {.sa_sigaction = mmap_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
	const int code = source_check_open_files(base, base->threads, err);
	if (code)
		return code;
	(void)sigemptyset(&action.sa_mask);
	(void)pthread_mutex_lock(&mmap_faults.lock);
	if (mmap_faults.users++ == 0)
		(void)sigaction(SIGBUS, &action, &mmap_faults.before);
	(void)pthread_mutex_unlock(&mmap_faults.lock);
	return 0;
}

static void mmap_close(struct source *base)
{
	struct sigaction now;
	(void)base;
	(void)pthread_mutex_lock(&mmap_faults.lock);
	if (--mmap_faults.users == 0 && sigaction(SIGBUS, NULL, &now) == 0 &&
		now.sa_sigaction == mmap_fault)
		(void)sigaction(SIGBUS, &mmap_faults.before, NULL);
	(void)pthread_mutex_unlock(&mmap_faults.lock);
}

/* ---- mappings ----------------------------------------------------------------------------- */

static void mapping_close(struct mapping *mapping)
{
	if (mapping->bytes)
		(void)munmap(mapping->bytes, mapping->size);
	*mapping = (struct mapping){0};
}

/* -errno: it cannot be mapped. */
static int mapping_open(struct mapping *mapping, struct store *store, const char *path)
{
	union store_file file;
	struct store_stat st;
	int code = store->ops->file_open(store, path, false, &file);
	if (code)
		return code;
	code = store->ops->stat(store, path, &file, &st);
	if (!code && st.kind == STORE_FOLDER)
		code = -EISDIR;
	void *bytes = NULL;
	if (!code && st.bytes > 0) {
		bytes = mmap(NULL, (size_t)st.bytes, PROT_READ, MAP_SHARED, file.fd, 0);
		code = bytes == MAP_FAILED ? -errno : 0;
	}
	store->ops->file_close(store, file);
	if (!code)
		*mapping = (struct mapping){.path = path, .bytes = bytes, .size = (size_t)st.bytes};
	return code;
}

/* Names are told apart by where they are: all parts of a file have the same. */
static struct mapping *mapping_find(struct mmap_reader *reader, const char *path, int *code)
{
	*code = 0;
	for (size_t i = 0; i < MAPPINGS; i++)
		if (reader->list[i].path == path)
			return &reader->list[i];
	struct mapping *const mapping = &reader->list[reader->next];
	reader->next = (reader->next + 1) % MAPPINGS;
	mapping_close(mapping);
	const uint64_t open_ns = timeline_mark();
	*code = mapping_open(mapping, reader->base.source->store, path);
	(void)timeline_end(TIMELINE_OPEN, open_ns, 0);
	return *code ? NULL : mapping;
}

/* ---- reading ------------------------------------------------------------------------------ */

/* As other engines have it: a whole file is as long as it is now, a part as long as it was. */
static int mmap_take(const struct mapping *mapping, struct read_request *request)
{
	const uint64_t whole = mapping->size;
	const uint64_t from = request->part ? request->offset : 0;
	const uint64_t size = request->part ? request->length : whole;
	if (size > request->room)
		return -EFBIG;
	if (size > 0 && (from > whole || size > whole - from))
		return -ENODATA;
	if (size > 0 && !mmap_copy(request->buffer, mapping->bytes + from, (size_t)size))
		return -EIO;
	request->size = (size_t)size;
	return 0;
}

/* Why a page could not be had: the file is shorter now, or it cannot be read. */
static int mmap_why(
	const struct source *source, const char *path, const struct read_request *request)
{
	const uint64_t end = request->part ? request->offset + request->length : 0;
	return store_file_bytes(source->store, path, NULL) < end ? -ENODATA : -EIO;
}

static void mmap_submit(struct reader *base, struct read_request *request)
{
	struct mmap_reader *const reader = (struct mmap_reader *)base;
	const char *const path = base->source->dataset->samples[request->sample].path;
	struct mapping *const mapping = mapping_find(reader, path, &request->status);
	if (mapping) {
		const uint64_t read_ns = timeline_mark();
		request->status = mmap_take(mapping, request);
		(void)timeline_end(TIMELINE_READ, read_ns, 0);
		if (request->status == -EIO)
			request->status = mmap_why(base->source, path, request);
		if (request->status || !request->part)
			mapping_close(mapping);
	}
	if (base->source->stamped)
		request->done_ns = clock_now_ns();
	request_list_push(&reader->done, request);
}

static size_t mmap_reap(
	struct reader *base, struct read_request **done, size_t room, uint64_t wait_ns)
{
	(void)wait_ns;
	return request_list_take(&((struct mmap_reader *)base)->done, done, room);
}

static void mmap_reader_close(struct reader *base)
{
	for (size_t i = 0; i < MAPPINGS; i++)
		mapping_close(&((struct mmap_reader *)base)->list[i]);
}

const struct source_ops source_mmap = {
	.name = "mmap",
	.summary = "map each file and copy samples out of it, one at a time per reader thread",
	.blocking = true,
	.needs_local = true,
	.maps = true,
	.source_size = sizeof(struct source),
	.reader_size = sizeof(struct mmap_reader),
	.open = mmap_open,
	.close = mmap_close,
	.reader_close = mmap_reader_close,
	.submit = mmap_submit,
	.reap = mmap_reap,
};
