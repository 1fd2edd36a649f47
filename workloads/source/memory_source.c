/* The memory engine: the data set is loaded before the clock starts, and a request is answered with
 * a pointer into that copy.  No I/O and no copy: the harness's own ceiling. */
#include "workloads/dataset/threads.h"
#include "workloads/source/engines.h"
#include "workloads/source/gzip_view.h"

#include <errno.h>
#include <stdlib.h>

enum {
	/* Samples start on cache lines, with a line to spare: a grown file shows, and decoders may
	 * read a little past the end. */
	SLOT_ALIGN = CACHE_LINE_BYTES,
};

struct memory_sample {
	uint8_t *data;
	size_t size;
	int status;
};

struct memory_source {
	struct source base;
	struct memory_block arena;
	struct memory_sample *samples; /* (count) */
	struct gzip_views views; /* of compressed files, while they are loaded in their order */
};

struct memory_reader {
	struct reader base;
	struct request_list done;
};

static size_t memory_slot_bytes(uint64_t bytes)
{
	return ((size_t)bytes / SLOT_ALIGN + 2) * SLOT_ALIGN;
}

static uint64_t memory_bytes(const struct config *config, const struct dataset *dataset)
{
	(void)config;
	uint64_t total = dataset->count * sizeof(struct memory_sample);
	for (size_t i = 0; i < dataset->count; i++)
		total += memory_slot_bytes(dataset->samples[i].bytes);
	return total;
}

static int memory_load(void *context, unsigned thread, uint64_t index, struct error *err)
{
	(void)thread;
	(void)err;
	struct memory_source *const source = context;
	const struct dataset *const dataset = source->base.dataset;
	struct memory_sample *const sample = &source->samples[index];
	sample->status = source_load_sample(source->base.store,
		source->views.list ? &source->views : NULL, dataset, (uint32_t)index, sample->data,
		memory_slot_bytes(dataset->samples[index].bytes), &sample->size);
	return 0;
}

static void memory_close(struct source *base)
{
	struct memory_source *const source = (struct memory_source *)base;
	memory_unmap(&source->arena);
	free(source->samples);
}

static int memory_allocate(struct memory_source *source)
{
	const struct dataset *const dataset = source->base.dataset;
	source->samples = calloc(dataset->count + 1, sizeof *source->samples);
	const uint64_t bytes = memory_bytes(source->base.config, dataset);
	const bool huge = config_on(source->base.config, KEY_READ_HUGE_PAGES);
	if (!source->samples || memory_map(&source->arena, (size_t)bytes, huge)) {
		free(source->samples);
		return -ENOMEM;
	}
	uint8_t *at = source->arena.data;
	for (size_t i = 0; i < dataset->count; i++) {
		source->samples[i].data = at;
		at += memory_slot_bytes(dataset->samples[i].bytes);
	}
	return 0;
}

static int memory_open(struct source *base, struct error *err)
{
	struct memory_source *const source = (struct memory_source *)base;
	const bool inflates = gzip_view_wanted(base->config);
	const struct team_job loading = {
		.count = base->dataset->count,
		.item = memory_load,
		.context = source,
		.threads = inflates ? 1 : team_threads(0),
	};
	int code = memory_allocate(source);
	if (code)
		return error_set(err, code, "out of memory for a copy of the data set (%llu bytes)",
			(unsigned long long)memory_bytes(base->config, base->dataset));
	if (inflates && !gzip_views_open(&source->views))
		code = error_set(err, -ENOMEM, "out of memory to inflate files");
	if (!code)
		code = team_run(&loading, err);
	(void)gzip_views_close(&source->views);
	if (code)
		memory_close(base);
	else
		source_note(
			base, "data set in memory on %s", memory_pages_name(source->arena.pages));
	return code;
}

static void memory_submit(struct reader *base, struct read_request *request)
{
	struct memory_reader *const reader = (struct memory_reader *)base;
	const struct memory_source *const source = (const struct memory_source *)base->source;
	const struct memory_sample *const sample = &source->samples[request->sample];
	request->data = sample->data;
	request->size = sample->size;
	request->status = sample->status;
	request_list_push(&reader->done, request);
}

static size_t memory_reap(
	struct reader *base, struct read_request **done, size_t room, uint64_t wait_ns)
{
	(void)wait_ns;
	return request_list_take(&((struct memory_reader *)base)->done, done, room);
}

const struct source_ops source_memory = {
	.name = "memory",
	.summary = "the data set in memory, loaded before the clock starts: no I/O",
	.immediate = true,
	.inflates = true,
	.source_size = sizeof(struct memory_source),
	.reader_size = sizeof(struct memory_reader),
	.bytes = memory_bytes,
	.open = memory_open,
	.close = memory_close,
	.submit = memory_submit,
	.reap = memory_reap,
};
