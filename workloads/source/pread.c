/* The pread engine: open, pread, close, one file at a time per reader, blocking in submit.  What
 * every data loader does; the measure for io_uring.  Files that hold several samples stay open, and those
 * that gzip packed are inflated, in the reader's thread. */
#include "workloads/source/engines.h"

#include "harness/base/clock.h"
#include "harness/base/log.h"
#include "harness/base/units.h"
#include "harness/measure/timeline.h"
#include "workloads/source/gzip_view.h"

#include <errno.h>

struct pread_source {
	struct source base;
	bool direct;
	unsigned kept; /* files that a reader leaves open; 0: none */
	bool inflates;
};

struct pread_reader {
	struct reader base;
	struct request_list done;
	struct open_files files;
	struct gzip_views views; /* of compressed files */
	uint64_t asked;          /* bytes of them that were read */
};

static int pread_open(struct source *base, struct error *err)
{
	struct pread_source *const source = (struct pread_source *)base;
	source->direct = config_on(base->config, KEY_READ_DIRECT) && source_direct_works(base);
	source->inflates = gzip_view_wanted(base->config);
	if (!source->inflates) {
		source->kept = source_open_files(base, 1);
		return source_check_open_files(base, base->threads, err);
	}
	base->past_cache = false;
	if (source->direct)
		source_note(base, "direct reads: off: the files are compressed");
	return source_check_open_files(base, base->threads * GZIP_VIEWS, err);
}

static int pread_reader_open(struct reader *base, struct error *err)
{
	struct pread_reader *const reader = (struct pread_reader *)base;
	const struct pread_source *const source = (const struct pread_source *)base->source;
	if (source->inflates)
		return gzip_views_open(&reader->views)
			       ? 0
			       : error_set(err, -ENOMEM, "out of memory to inflate files");
	/* Without memory each part has its file opened. */
	(void)open_files_open(&reader->files, source->kept);
	return 0;
}

/* Files were begun again, since a buffer was taken too early (chunks.h): so much more than was read. */
static void pread_tell_inflated(uint64_t again, uint64_t asked)
{
	enum { TOLD_FROM = 4 }; /* a quarter */
	char much[UNITS_BYTES], read[UNITS_BYTES];
	(void)units_format_size((double)again, much);
	(void)units_format_size((double)asked, read);
	if (again > asked / TOLD_FROM)
		log_warn(
			"beside the %s that were read, %s were inflated again to come to them: a smaller read.shuffle_buffer, or larger files, help",
			read, much);
}

static void pread_reader_close(struct reader *base)
{
	struct pread_reader *const reader = (struct pread_reader *)base;
	open_files_close(&reader->files, base->source->store);
	pread_tell_inflated(gzip_views_close(&reader->views), reader->asked);
}

static uint64_t pread_bytes(const struct config *config, const struct dataset *dataset)
{
	(void)dataset;
	return gzip_view_wanted(config) ? (uint64_t)GZIP_VIEWS * GZIP_VIEW_MEMORY : 0;
}

static void pread_inflate(struct pread_reader *reader, struct read_request *request)
{
	struct source *const source = reader->base.source;
	const uint64_t begun_ns = timeline_mark();
	const uint64_t before = reader->views.packed;
	request->status =
		request->length > request->room
			? -EFBIG
			: gzip_views_read(&reader->views, source->store,
				  source->dataset->samples[request->sample].path, request->offset,
				  request->buffer, (size_t)request->length);
	(void)timeline_end(TIMELINE_READ, begun_ns, 0);
	request->size = request->status ? 0 : (size_t)request->length;
	reader->asked += request->size;
	request->packed = reader->views.packed - before;
	source_count(&source->counters[reader->base.index].packed_bytes, request->packed);
}

/* One file, or a part of one, as it lies there. */
static void pread_plain(struct pread_reader *reader, struct read_request *request)
{
	const struct pread_source *const source = (const struct pread_source *)reader->base.source;
	struct store *const store = source->base.store;
	const char *const path = source->base.dataset->samples[request->sample].path;
	struct source_counter *const counter = &source->base.counters[reader->base.index];
	struct read_progress progress;
	read_progress_request(&progress, request, source->direct);
	progress.timed = source->base.timed;
	const enum read_step step =
		request->part && reader->files.room > 0
			? source_read_part(
				  &reader->files, store, path, request->buffer, &progress, counter)
			: source_read_now(store, path, request->buffer, &progress, counter);
	request->opened_ns = progress.opened_ns;
	if (step == READ_STEP_DONE)
		request->size = progress.got;
	else
		request->status = progress.status;
}

static void pread_submit(struct reader *base, struct read_request *request)
{
	struct pread_reader *const reader = (struct pread_reader *)base;
	if (((const struct pread_source *)base->source)->inflates)
		pread_inflate(reader, request);
	else
		pread_plain(reader, request);
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
	.inflates = true,
	.source_size = sizeof(struct pread_source),
	.reader_size = sizeof(struct pread_reader),
	.bytes = pread_bytes,
	.open = pread_open,
	.reader_open = pread_reader_open,
	.reader_close = pread_reader_close,
	.submit = pread_submit,
	.reap = pread_reap,
};
