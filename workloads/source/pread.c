/* The pread engine: open, pread, close, one file at a time per reader, blocking in submit.  What
 * every data loader does; the measure for io_uring.  Files that hold several samples stay open. */
#include "workloads/source/engines.h"

#include "harness/base/clock.h"

struct pread_source {
	struct source base;
	bool direct;
	unsigned kept; /* files that a reader leaves open; 0: none */
};

struct pread_reader {
	struct reader base;
	struct request_list done;
	struct open_files files;
};

static int pread_open(struct source *base, struct error *err)
{
	struct pread_source *const source = (struct pread_source *)base;
	source->direct = config_on(base->config, KEY_READ_DIRECT) && source_direct_works(base);
	source->kept = source_open_files(base, 1);
	return source_check_open_files(base, base->threads, err);
}

static int pread_reader_open(struct reader *base, struct error *err)
{
	(void)err;
	/* Without memory each part has its file opened. */
	(void)open_files_open(&((struct pread_reader *)base)->files,
		((const struct pread_source *)base->source)->kept);
	return 0;
}

static void pread_reader_close(struct reader *base)
{
	open_files_close(&((struct pread_reader *)base)->files, base->source->store);
}

static void pread_submit(struct reader *base, struct read_request *request)
{
	const struct pread_source *const source = (const struct pread_source *)base->source;
	struct pread_reader *const reader = (struct pread_reader *)base;
	struct store *const store = base->source->store;
	const char *const path = base->source->dataset->samples[request->sample].path;
	struct source_counter *const counter = &base->source->counters[base->index];
	struct read_progress progress;
	read_progress_request(&progress, request, source->direct);
	const enum read_step step =
		request->part && reader->files.room > 0
			? source_read_part(
				  &reader->files, store, path, request->buffer, &progress, counter)
			: source_read_now(store, path, request->buffer, &progress, counter);
	if (step == READ_STEP_DONE)
		request->size = progress.got;
	else
		request->status = progress.status;
	if (base->source->stamped)
		request->done_ns = clock_now_ns();
	request_list_push(&reader->done, request);
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
	.automatic = true,
	.blocking = true,
	.source_size = sizeof(struct pread_source),
	.reader_size = sizeof(struct pread_reader),
	.open = pread_open,
	.reader_open = pread_reader_open,
	.reader_close = pread_reader_close,
	.submit = pread_submit,
	.reap = pread_reap,
};
