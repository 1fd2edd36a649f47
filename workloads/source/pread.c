/* The pread engine: open, pread, close, one file at a time per reader, blocking in submit.  What
 * every data loader does; the measure for io_uring. */
#include "workloads/source/engines.h"
#include "workloads/source/progress.h"
#include "workloads/source/request_list.h"

#include "harness/base/clock.h"
#include "harness/measure/timeline.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

struct pread_source {
	struct source base;
	int root_fd;
	bool direct;
};

struct pread_reader {
	struct reader base;
	struct request_list done;
};

static int pread_open(struct source *base, struct error *err)
{
	struct pread_source *const source = (struct pread_source *)base;
	source->root_fd = source_root_open(base->dataset, err);
	if (source->root_fd < 0)
		return source->root_fd;
	source->direct = config_on(base->config, KEY_READ_DIRECT) &&
			 source_direct_works(base, source->root_fd);
	const int code = source_check_open_files(base, source->root_fd, base->threads, err);
	if (code)
		(void)close(source->root_fd);
	return code;
}

static void pread_close(struct source *base)
{
	(void)close(((struct pread_source *)base)->root_fd);
}

/* Reads on an open file until something else has to be done than reading. */
static enum read_step read_open_file(
	int fd, uint8_t *buffer, struct read_progress *progress, struct source_counter *counter)
{
	enum read_step step;
	do {
		const size_t size = progress->want - progress->got;
		const ssize_t n = pread(fd, buffer + progress->got, size, (off_t)progress->got);
		step = read_progress_answer(progress, n < 0 ? -errno : n, counter);
	} while (step == READ_STEP_MORE);
	if (step == READ_STEP_SIZE)
		step = read_progress_size(progress, source_file_bytes(fd));
	return step;
}

static enum read_step open_and_read(const struct pread_source *source, const char *path,
	uint8_t *buffer, struct read_progress *progress, struct source_counter *counter)
{
	const int flags = O_RDONLY | O_CLOEXEC | (progress->direct ? O_DIRECT : 0);
	const uint64_t open_ns = timeline_mark();
	const int fd = openat(source->root_fd, path, flags);
	if (fd < 0)
		return read_progress_open_failed(progress, -errno, counter);
	const uint64_t read_ns = timeline_end(TIMELINE_OPEN, open_ns, 0);
	const enum read_step step = read_open_file(fd, buffer, progress, counter);
	const uint64_t close_ns = timeline_end(TIMELINE_READ, read_ns, 0);
	(void)close(fd);
	(void)timeline_end(TIMELINE_CLOSE, close_ns, 0);
	return step;
}

static void pread_submit(struct reader *base, struct read_request *request)
{
	const struct pread_source *const source = (const struct pread_source *)base->source;
	const struct sample *const sample = &base->source->dataset->samples[request->sample];
	struct source_counter *const counter = &base->source->counters[base->index];
	struct read_progress progress;
	read_progress_start(&progress, sample->bytes, request->room, source->direct);
	enum read_step step;
	do {
		step = open_and_read(source, sample->path, request->buffer, &progress, counter);
	} while (step != READ_STEP_DONE && step != READ_STEP_FAILED);
	if (step == READ_STEP_DONE)
		request->size = progress.got;
	else
		request->status = progress.status;
	if (base->source->stamped)
		request->done_ns = clock_now_ns();
	request_list_push(&((struct pread_reader *)base)->done, request);
}

static size_t pread_reap(
	struct reader *base, struct read_request **done, size_t room, uint64_t wait_ns)
{
	(void)wait_ns;
	return request_list_take(&((struct pread_reader *)base)->done, done, room);
}

const struct source_ops source_pread = {
	.name = "pread",
	.summary = "open, pread and close, one file at a time per reader thread",
	.blocking = true,
	.source_size = sizeof(struct pread_source),
	.reader_size = sizeof(struct pread_reader),
	.open = pread_open,
	.close = pread_close,
	.submit = pread_submit,
	.reap = pread_reap,
};
