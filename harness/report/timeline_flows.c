/* What crosses tracks: files in flight, the arrows from a file to its sample to the step of its batch, and the life of
 * each batch. */
#include "harness/report/timeline_stream.h"

#include <inttypes.h>
#include <stdio.h>

/* --- files in flight -------------------------------------------------------------------------------------- */

/* phase: 'b' or 'e' of an asynchronous slice. */
static void write_async(struct timeline_stream *stream, char phase, const char *name,
	const char *category, uint64_t id, uint64_t at_ns, const char *args)
{
	timeline_stream_event(stream,
		"{\"ph\":\"%c\",\"name\":\"%s\",\"cat\":\"%s\",\"id2\":{\"local\":\"0x%" PRIx64
		"\"},\"pid\":%d,\"tid\":0,\"ts\":" TIMELINE_TS "%s}",
		phase, name, category, id, TIMELINE_HOST,
		TIMELINE_US(timeline_since(stream, at_ns)), args);
}

static void write_part(struct timeline_stream *stream, const char *name, const char *category,
	uint64_t id, uint64_t begin_ns, uint64_t end_ns)
{
	if (end_ns <= begin_ns)
		return;
	write_async(stream, 'b', name, category, id, begin_ns, "");
	write_async(stream, 'e', name, category, id, end_ns, "");
}

static void write_file(
	struct timeline_stream *stream, const struct timeline_entry *file, unsigned reader)
{
	const struct timeline *t = stream->story->timeline;
	const struct timeline_window *window =
		timeline_index_window(t, file->begin_ns, file->end_ns);
	const struct timeline_slice slice = timeline_clip(file, window);
	uint32_t open;
	char args[128];
	(void)snprintf(args, sizeof args,
		",\"args\":{\"ticket\":%" PRIu64 ",\"bytes\":%" PRIu32 ",\"reader\":%u%s}",
		file->number, file->value, reader, slice.clipped ? ",\"clipped\":true" : "");
	write_async(stream, 'b', "file", "file", file->number, slice.begin_ns, args);
	if (timeline_index_find(&stream->index, TIMELINE_FILE_OPEN, file->number, &open)) {
		const uint64_t opened_ns = timeline_index_entry(&stream->index, open)->end_ns;
		if (opened_ns > slice.begin_ns && opened_ns < slice.end_ns) {
			write_part(stream, "open", "file", file->number, slice.begin_ns, opened_ns);
			write_part(stream, STAGE_READ_NAME, "file", file->number, opened_ns,
				slice.end_ns);
		}
	}
	write_async(stream, 'e', "file", "file", file->number, slice.end_ns, "");
}

void timeline_write_files(struct timeline_stream *stream)
{
	const struct timeline_index *index = &stream->index;
	const struct timeline_range *files = &index->kinds[TIMELINE_FILE];
	for (uint32_t i = 0; i < files->count && !stream->failed; i++) {
		const uint32_t id = index->by_number[files->first + i];
		write_file(stream, timeline_index_entry(index, id),
			timeline_index_log(index, id)->thread);
	}
}

/* --- arrows ----------------------------------------------------------------------------------------------- */

/* One of two kinds of a batch, whichever there is, with its slice; false: it is in no window. */
static bool find_batch(const struct timeline_stream *stream, enum timeline_kind one,
	enum timeline_kind other, uint64_t batch, uint32_t *id, struct timeline_slice *slice)
{
	const struct timeline_index *index = &stream->index;
	if (!timeline_index_find(index, one, batch, id) &&
		!timeline_index_find(index, other, batch, id))
		return false;
	const struct timeline_entry *e = timeline_index_entry(index, *id);
	*slice = timeline_clip(e, timeline_index_window(index->timeline, e->begin_ns, e->end_ns));
	return true;
}

/* phase: 's', 't' or 'f'; binds to the slice around it. */
static void write_arrow(struct timeline_stream *stream, char phase, uint64_t ticket,
	const struct timeline_log *log, uint64_t at_ns)
{
	timeline_stream_event(stream,
		"{\"ph\":\"%c\",\"name\":\"sample\",\"cat\":\"sample\",\"id\":%" PRIu64
		",\"pid\":%d,\"tid\":%u,\"ts\":" TIMELINE_TS "%s}",
		phase, ticket, timeline_pid(log), timeline_tid(log),
		TIMELINE_US(timeline_since(stream, at_ns)), phase == 's' ? "" : ",\"bp\":\"e\"");
}

/* From where the file was seen to be there; false: that was in no window. */
static bool begin_arrow(struct timeline_stream *stream, uint64_t ticket, uint64_t latest_ns)
{
	const struct timeline_index *index = &stream->index;
	uint32_t id;
	if (!timeline_index_find(index, TIMELINE_FILE, ticket, &id))
		return false;
	const struct timeline_entry *file = timeline_index_entry(index, id);
	const uint64_t at_ns = file->end_ns < latest_ns ? file->end_ns : latest_ns;
	if (!timeline_index_window(index->timeline, at_ns, at_ns))
		return false;
	write_arrow(stream, 's', ticket, timeline_index_log(index, id), at_ns);
	return true;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void write_sample(struct timeline_stream *stream, uint32_t sample)
{
	const struct timeline_index *index = &stream->index;
	const struct timeline_entry *e = timeline_index_entry(index, sample);
	const struct timeline_slice decoded =
		timeline_clip(e, timeline_index_window(index->timeline, e->begin_ns, e->end_ns));
	struct timeline_slice step;
	struct timeline_slice copy;
	uint32_t step_id;
	uint32_t copy_id;
	if (!find_batch(stream, TIMELINE_COMPUTE, TIMELINE_LAUNCH, e->value, &step_id, &step)) {
		stream->open_flows++;
		return;
	}
	const bool from_file = begin_arrow(stream, e->number, decoded.begin_ns);
	write_arrow(stream, from_file ? 't' : 's', e->number, timeline_index_log(index, sample),
		decoded.begin_ns);
	uint64_t at_ns = decoded.begin_ns;
	if (find_batch(stream, TIMELINE_COPY, TIMELINE_COPY_LAUNCH, e->value, &copy_id, &copy)) {
		at_ns = later(at_ns, copy.begin_ns);
		write_arrow(stream, 't', e->number, timeline_index_log(index, copy_id), at_ns);
	}
	write_arrow(stream, 'f', e->number, timeline_index_log(index, step_id),
		later(at_ns, step.begin_ns));
	stream->flows++;
}

void timeline_write_flows(struct timeline_stream *stream)
{
	const struct timeline_index *index = &stream->index;
	const struct timeline_range *samples = &index->kinds[TIMELINE_DECODE];
	for (uint32_t i = 0; i < samples->count && !stream->failed; i++)
		write_sample(stream, index->by_number[samples->first + i]);
}

/* --- batches ---------------------------------------------------------------------------------------------- */

/* When what happened to a batch; each begins where the one before it ended. */
struct life {
	uint64_t filled_from_ns, filled_ns, copied_from_ns, copied_ns, stepped_from_ns, stepped_ns;
	uint32_t samples;
};

/* False: none of its samples is in the window. */
static bool find_filling(const struct timeline_stream *stream, uint64_t batch,
	const struct timeline_window *window, struct life *life)
{
	const struct timeline_index *index = &stream->index;
	const struct timeline_range samples = timeline_index_batch(index, batch);
	life->filled_from_ns = UINT64_MAX;
	for (uint32_t i = 0; i < samples.count; i++) {
		const struct timeline_entry *e =
			timeline_index_entry(index, index->by_number[samples.first + i]);
		if (e->end_ns <= window->begin_ns)
			continue;
		const uint64_t from_ns = later(e->begin_ns, window->begin_ns);
		life->filled_from_ns =
			from_ns < life->filled_from_ns ? from_ns : life->filled_from_ns;
		life->filled_ns = later(life->filled_ns, e->end_ns);
		life->samples++;
	}
	return life->samples > 0;
}

static bool live(
	const struct timeline_stream *stream, const struct timeline_entry *step, struct life *life)
{
	const struct timeline_index *index = &stream->index;
	const struct timeline_window *window =
		timeline_index_window(index->timeline, step->begin_ns, step->end_ns);
	struct timeline_slice copy;
	uint32_t id;
	*life = (struct life){0};
	const struct timeline_slice slice = timeline_clip(step, window);
	life->stepped_from_ns = slice.begin_ns;
	life->stepped_ns = slice.end_ns;
	/* A step that was launched is over when its thread has seen it. */
	if (step->kind == TIMELINE_LAUNCH) {
		if (!timeline_index_find(index, TIMELINE_STEP, step->number, &id))
			return false;
		life->stepped_ns = later(slice.end_ns,
			timeline_clip(timeline_index_entry(index, id), window).end_ns);
	}
	if (find_batch(stream, TIMELINE_DEVICE_COPY, TIMELINE_COPY, step->number, &id, &copy)) {
		life->copied_from_ns = copy.begin_ns;
		life->copied_ns = copy.end_ns;
	}
	return find_filling(stream, step->number, window, life);
}

static void write_life(struct timeline_stream *stream, uint64_t batch, const struct life *life)
{
	const bool copied = life->copied_ns > 0 && life->copied_from_ns >= life->filled_ns &&
			    life->copied_ns <= life->stepped_from_ns;
	char args[96];
	(void)snprintf(args, sizeof args,
		",\"args\":{\"batch\":%" PRIu64 ",\"samples_recorded\":%" PRIu32 "}", batch,
		life->samples);
	write_async(stream, 'b', "batch", "batch", batch, life->filled_from_ns, args);
	write_part(stream, "filling", "batch", batch, life->filled_from_ns, life->filled_ns);
	write_part(stream, "waiting", "batch", batch, life->filled_ns,
		copied ? life->copied_from_ns : life->stepped_from_ns);
	if (copied) {
		write_part(stream, STAGE_UPLOAD_NAME, "batch", batch, life->copied_from_ns,
			life->copied_ns);
		write_part(stream, "uploaded, waiting", "batch", batch, life->copied_ns,
			life->stepped_from_ns);
	}
	write_part(
		stream, STAGE_STEP_NAME, "batch", batch, life->stepped_from_ns, life->stepped_ns);
	write_async(stream, 'e', "batch", "batch", batch, life->stepped_ns, "");
}

void timeline_write_batches(struct timeline_stream *stream)
{
	static const enum timeline_kind kinds[] = {TIMELINE_COMPUTE, TIMELINE_LAUNCH};
	const struct timeline_index *index = &stream->index;
	for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
		const struct timeline_range *steps = &index->kinds[kinds[k]];
		for (uint32_t i = 0; i < steps->count && !stream->failed; i++) {
			const struct timeline_entry *step =
				timeline_index_entry(index, index->by_number[steps->first + i]);
			struct life life;
			if (live(stream, step, &life))
				write_life(stream, step->number, &life);
		}
	}
}
