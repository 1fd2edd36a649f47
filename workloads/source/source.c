/* The layer in front of every engine: choice, counters, time stamps and injected conditions. */
#include "workloads/source/source.h"

#include "harness/base/clock.h"
#include "workloads/source/engines.h"
#include "workloads/source/limiter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLOSE_BATCH = 64, REASON_BYTES = 256 };

const struct source_ops *const source_list[] = {
	&source_memory,
	&source_pread,
	&source_io_uring,
	NULL,
};

static const struct source_ops *choose_named(const struct source_ops *ops, struct error *err)
{
	char reason[REASON_BYTES];
	const char *const why = ops->unavailable ? ops->unavailable(reason, sizeof reason) : NULL;
	if (!why)
		return ops;
	(void)error_set(err, -ENOTSUP, "read.engine = %s cannot be used here: %s", ops->name, why);
	return NULL;
}

const struct source_ops *source_choose(
	const struct config *config, char *why_not, size_t room, struct error *err)
{
	if (room > 0)
		why_not[0] = '\0';
	switch ((enum read_engine)config_integer(config, KEY_READ_ENGINE)) {
	case READ_ENGINE_MEMORY:
		return choose_named(&source_memory, err);
	case READ_ENGINE_PREAD:
		return choose_named(&source_pread, err);
	case READ_ENGINE_IO_URING:
		return choose_named(&source_io_uring, err);
	case READ_ENGINE_AUTO:
		break;
	}
	char reason[REASON_BYTES];
	const char *const why = source_io_uring.unavailable(reason, sizeof reason);
	if (!why)
		return &source_io_uring;
	(void)snprintf(why_not, room, "io_uring: %s", why);
	return choose_named(&source_pread, err);
}

/* Takes what source_open made; ops->open has succeeded or was not called yet. */
static void release(struct source *source)
{
	if (source->limiter)
		limiter_release(source->limiter);
	free(source->limiter);
	free(source->counters);
	free(source);
}

/* calloc does not promise the padding's alignment. */
static void *allocate_padded(size_t size)
{
	void *data = NULL;
	if (posix_memalign(&data, COUNTER_ALIGN_BYTES, size) != 0)
		return NULL;
	memset(data, 0, size);
	return data;
}

static int prepare(struct source *source)
{
	source->counters = allocate_padded(source->threads * sizeof *source->counters);
	if (!source->counters)
		return -ENOMEM;
	if (limiter_wanted(source->config)) {
		source->limiter = allocate_padded(sizeof *source->limiter);
		if (!source->limiter ||
			limiter_init(source->limiter, source->config, source->dataset))
			return -ENOMEM;
	}
	source->stamped = source->limiter || (source->timed && !source->ops->immediate);
	return 0;
}

int source_open(struct source **out, const struct config *config, const struct dataset *dataset,
	uint8_t *blob_memory, size_t blob_bytes, unsigned depth_most, struct error *err)
{
	*out = NULL;
	char why_not[REASON_BYTES];
	const struct source_ops *const ops = source_choose(config, why_not, sizeof why_not, err);
	if (!ops)
		return -ENOTSUP;
	struct source *source = allocate_padded(ops->source_size);
	if (!source)
		return error_set(err, -ENOMEM, "out of memory for the %s source", ops->name);
	source->ops = ops;
	source->config = config;
	source->dataset = dataset;
	source->blob_memory = blob_memory;
	source->blob_bytes = blob_bytes;
	source->threads = (unsigned)config_integer(config, KEY_READ_THREADS);
	source->depth = ops->blocking ? 1 : (unsigned)config_integer(config, KEY_READ_DEPTH);
	source->depth_most = source->depth;
	if (depth_most > source->depth && !ops->blocking)
		source->depth_most = depth_most;
	source->timed = config_on(config, KEY_MEASURE_PROFILER);
	if (why_not[0])
		source_note(source, "%s", why_not);
	int code = prepare(source);
	if (code)
		(void)error_set(err, code, "out of memory for the %s source", ops->name);
	else if (ops->open)
		code = ops->open(source, err);
	if (code) {
		release(source);
		return code;
	}
	*out = source;
	return 0;
}

void source_close(struct source *source)
{
	if (!source)
		return;
	if (source->ops->close)
		source->ops->close(source);
	release(source);
}

void source_note(struct source *source, const char *format, ...)
{
	const size_t used = strlen(source->notes);
	const char *const separator = used > 0 ? "; " : "";
	int length = snprintf(source->notes + used, sizeof source->notes - used, "%s", separator);
	if (length < 0 || used + (size_t)length >= sizeof source->notes)
		return;
	va_list args;
	va_start(args, format);
	(void)vsnprintf(source->notes + used + (size_t)length,
		sizeof source->notes - used - (size_t)length, format, args);
	va_end(args);
}

static uint64_t sum(const struct source *source, size_t offset)
{
	uint64_t total = 0;
	for (unsigned i = 0; i < source->threads; i++) {
		const char *const counter = (const char *)&source->counters[i];
		total += atomic_load_explicit(
			(const atomic_uint_fast64_t *)(const void *)(counter + offset),
			memory_order_relaxed);
	}
	return total;
}

void source_read_counts(const struct source *source, struct source_counts *counts)
{
	*counts = (struct source_counts){
		.files = sum(source, offsetof(struct source_counter, files)),
		.bytes = sum(source, offsetof(struct source_counter, bytes)),
		.stored_bytes = sum(source, offsetof(struct source_counter, stored_bytes)),
		.errors = sum(source, offsetof(struct source_counter, errors)),
		.short_reads = sum(source, offsetof(struct source_counter, short_reads)),
		.retries = sum(source, offsetof(struct source_counter, retries)),
	};
}

void source_start(struct source *source, uint64_t start_ns)
{
	if (source->limiter)
		source->limiter->start_ns = start_ns;
}

bool source_emulates_storage(const struct source *source)
{
	return source->limiter && limiter_is_storage(source->limiter);
}

uint64_t source_bytes(const struct config *config, const struct dataset *dataset)
{
	return config_integer(config, KEY_READ_ENGINE) == READ_ENGINE_MEMORY
		       ? source_memory_bytes(dataset)
		       : 0;
}

int source_reader_open(
	struct reader **out, struct source *source, unsigned index, struct error *err)
{
	*out = NULL;
	const struct source_ops *const ops = source->ops;
	if (index >= source->threads)
		return error_set(err, -EINVAL, "reader %u of %u", index, source->threads);
	struct reader *reader = allocate_padded(ops->reader_size);
	if (!reader)
		return error_set(err, -ENOMEM, "out of memory for reader %u", index);
	reader->source = source;
	reader->index = index;
	if (source->limiter) {
		reader->limiter = limiter_queue_open(source->limiter, source->depth_most);
		if (!reader->limiter) {
			free(reader);
			return error_set(err, -ENOMEM, "out of memory for reader %u", index);
		}
	}
	const int code = ops->reader_open ? ops->reader_open(reader, err) : 0;
	if (code) {
		limiter_queue_close(reader->limiter);
		free(reader);
		return code;
	}
	*out = reader;
	return 0;
}

/* Lets the engine finish, past the limiter: what it holds is in nobody's hands but its own. */
static void drain(struct reader *reader)
{
	size_t left = reader->in_flight;
	if (reader->limiter)
		left -= limiter_queue_held(reader->limiter);
	while (left > 0) {
		struct read_request *done[CLOSE_BATCH];
		left -= reader->source->ops->reap(reader, done, CLOSE_BATCH, NS_PER_S);
	}
}

void source_reader_close(struct reader *reader)
{
	if (!reader)
		return;
	drain(reader);
	if (reader->source->ops->reader_close)
		reader->source->ops->reader_close(reader);
	limiter_queue_close(reader->limiter);
	free(reader);
}

unsigned source_reader_depth_most(const struct reader *reader)
{
	return reader->source->depth_most;
}

void source_submit(struct reader *reader, struct read_request *request)
{
	request->data = request->buffer;
	request->size = 0;
	request->status = 0;
	request->done_ns = 0;
	request->opened_ns = 0;
	request->cached = false;
	request->submitted_ns = reader->source->stamped ? clock_now_ns() : 0;
	reader->submitted_ns = request->submitted_ns;
	reader->in_flight++;
	reader->source->ops->submit(reader, request);
}

/* One clock read serves the batch: its requests became visible together. */
static void stamp(const struct source *source, struct read_request **done, size_t count)
{
	if (!source->timed && !source->stamped)
		return;
	const uint64_t now_ns = source->timed ? clock_now_ns() : 0;
	for (size_t i = 0; i < count; i++) {
		struct read_request *const request = done[i];
		if (!source->timed) {
			request->submitted_ns = 0;
			request->done_ns = 0;
			continue;
		}
		if (request->done_ns == 0)
			request->done_ns = now_ns;
		if (request->submitted_ns == 0)
			request->submitted_ns = request->done_ns;
	}
}

static void count_done(struct source_counter *counter, struct read_request **done, size_t count)
{
	uint64_t bytes = 0;
	uint64_t stored = 0;
	uint64_t errors = 0;
	for (size_t i = 0; i < count; i++) {
		bytes += done[i]->size;
		stored += done[i]->cached ? 0 : done[i]->size;
		errors += done[i]->status != 0;
	}
	source_count(&counter->files, count);
	source_count(&counter->bytes, bytes);
	source_count(&counter->stored_bytes, stored);
	if (errors > 0)
		source_count(&counter->errors, errors);
}

size_t source_reap(struct reader *reader, struct read_request **done, size_t room, uint64_t wait_ns)
{
	struct source *const source = reader->source;
	if (reader->in_flight == 0 || room == 0)
		return 0;
	const size_t count = reader->limiter ? limiter_reap(reader, done, room, wait_ns)
					     : source->ops->reap(reader, done, room, wait_ns);
	if (count == 0)
		return 0;
	reader->in_flight -= (unsigned)count;
	stamp(source, done, count);
	count_done(&source->counters[reader->index], done, count);
	return count;
}
