/* The pread engine: open, pread, close, one file at a time per reader, blocking in submit.  What
 * every data loader does; the measure for io_uring. */
#include "workloads/source/engines.h"

#include "harness/base/clock.h"

struct pread_source {
	struct source base;
	bool direct;
};

struct pread_reader {
	struct reader base;
	struct request_list done;
};

static int pread_open(struct source *base, struct error *err)
{
	((struct pread_source *)base)->direct =
		config_on(base->config, KEY_READ_DIRECT) && source_direct_works(base);
	return source_check_open_files(base, base->threads, err);
}

static void pread_submit(struct reader *base, struct read_request *request)
{
	const struct pread_source *const source = (const struct pread_source *)base->source;
	struct read_progress progress;
	read_progress_request(&progress, request, source->direct);
	const enum read_step step = source_read_now(base->source->store,
		base->source->dataset->samples[request->sample].path, request->buffer, &progress,
		&base->source->counters[base->index]);
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
	.automatic = true,
	.blocking = true,
	.source_size = sizeof(struct pread_source),
	.reader_size = sizeof(struct pread_reader),
	.open = pread_open,
	.submit = pread_submit,
	.reap = pread_reap,
};
