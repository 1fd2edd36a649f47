/* The events of a trace.json: tracks with their slices, files in flight, batches, counters, and the arrows from a
 * sample to the step that took it. */
#include "harness/report/timeline_stream.h"

#include "harness/base/buffer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NESTING_MAX = 16, SLICE_NAME_BYTES = 48 };

static const char *const state_words[THREAD_STATES] = {"starved", "working", "blocked"};

/* --- names ------------------------------------------------------------------------------------------------ */

static const char *queue_unit(const char *queue)
{
	return strcmp(queue, "samples") == 0 ? "files" : "batches";
}

/* Which one of several. */
static void queue_name(const struct timeline *t, const struct timeline_log *log, char out[64])
{
	const bool several = t->devices > 1 && strcmp(log->stage, "uploaded") == 0;
	if (several)
		(void)snprintf(out, 64, "queue: %s, device %u", log->stage, log->thread);
	else
		(void)snprintf(out, 64, "queue: %s", log->stage);
}

static void tracks_name_device(struct timeline_stream *stream, const struct timeline_log *log)
{
	const struct timeline *t = stream->story->timeline;
	char name[3 * NAME_BYTES];
	(void)snprintf(name, sizeof name, "%s %u%s", log->stage, log->thread,
		t->emulated ? " (emulated)" : "");
	timeline_stream_name(
		stream, "thread_name", timeline_pid(stream, log), timeline_tid(log), name);
}

static void sort_track(struct timeline_stream *stream, const struct timeline_log *log)
{
	timeline_stream_event(stream,
		"{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":%u,\"tid\":%u,\"args\":{\"sort_index\":%u}}",
		timeline_pid(stream, log), timeline_tid(log), timeline_tid(log));
}

static bool tracks_is_shown(const struct timeline_stream *stream, const struct timeline_log *log)
{
	return log->track == TIMELINE_THREAD ||
	       (log->track == TIMELINE_DEVICE && stream->index.logs[log->index].count > 0);
}

/* With others, a process says which rank it is of, and they are shown in the order of ranks. */
static void name_process(struct timeline_stream *stream, unsigned pid, const char *text)
{
	const struct timeline_rank *const rank = stream->story->rank;
	struct buffer name = {0};
	if (rank)
		buffer_format(&name, "rank %u on %s: ", rank->rank, rank->host);
	buffer_text(&name, text);
	stream->failed = stream->failed || name.failed;
	timeline_stream_name(stream, "process_name", pid, 0, name.data ? name.data : "");
	buffer_release(&name);
	if (rank)
		timeline_stream_event(stream,
			"{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%u,\"tid\":0,\"args\":{\"sort_index\":%u}}",
			pid, pid);
}

void timeline_write_names(struct timeline_stream *stream)
{
	const struct timeline_story *const story = stream->story;
	const struct timeline *t = story->timeline;
	char text[RECORD_NAME_BYTES + 16];
	(void)snprintf(text, sizeof text, "mlbench %s", story->name);
	name_process(stream, timeline_host(story), text);
	name_process(
		stream, timeline_devices(story), t->emulated ? "devices (emulated)" : "devices");
	for (uint32_t i = 0; i < t->log_count; i++) {
		const struct timeline_log *log = &t->logs[i];
		char name[2 * NAME_BYTES];
		if (!tracks_is_shown(stream, log))
			continue;
		if (log->track == TIMELINE_DEVICE) {
			tracks_name_device(stream, log);
		} else {
			timeline_track_name(log, name);
			timeline_stream_name(stream, "thread_name", timeline_pid(stream, log),
				timeline_tid(log), name);
		}
		sort_track(stream, log);
	}
}

/* What a state means in this stage. */
static const char *tracks_state_name(const struct timeline_log *log, int state)
{
	const char *const stage = log->stage;
	static const struct {
		const char *stage;
		const char *names[THREAD_STATES];
	} stages[] = {
		{STAGE_READ_NAME,
			{"starved: nothing to read", "working", "blocked: no free buffer"}},
		{STAGE_DECODE_NAME, {"starved: no file", "working", "blocked: no room in a batch"}},
		{STAGE_UPLOAD_NAME, {"starved: no batch", "working", "blocked: no free place"}},
		{STAGE_STEP_NAME, {"starved: no batch", "working",
					  "blocked: checkpoint, evaluation, other devices"}},
		{STAGE_SYNC_NAME, {"idle", "exchanging", "blocked"}},
		{STAGE_CHECKPOINT_NAME, {"idle", "writing", "blocked"}},
		{STAGE_EVALUATE_NAME, {"idle", "evaluating", "blocked"}},
	};
	if (log->timeline->of_ranks && state == THREAD_BLOCKED && stage_is(stage, STAGE_STEP))
		return "blocked: other ranks, checkpoint, evaluation";
	if (log->timeline->by_workers && state == THREAD_BLOCKED && stage_is(stage, STAGE_READ))
		return "blocked: the worker decodes, or has no room";
	if (log->timeline->by_workers && state == THREAD_STARVED && stage_is(stage, STAGE_DECODE))
		return "starved: the worker reads, or has no file";
	for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++)
		if (strcmp(stages[i].stage, stage) == 0)
			return stages[i].names[state];
	return state_words[state];
}

/* --- slices ----------------------------------------------------------------------------------------------- */

/* "args", or nothing. */
static void tracks_describe(const struct timeline_stream *stream, const struct timeline_entry *e,
	bool clipped, char *out, size_t room)
{
	char what[192] = "";
	const uint64_t epoch_batches = stream->story->timeline->batches_per_epoch;
	if (e->kind == TIMELINE_STEP)
		(void)snprintf(what, sizeof what, "\"batch\":%" PRIu64 ",\"epoch\":%" PRIu64,
			e->number, epoch_batches ? e->number / epoch_batches : 0);
	else if (e->kind >= TIMELINE_STATE && e->kind < TIMELINE_STATE + THREAD_STATES)
		(void)snprintf(what, sizeof what, "\"state\":\"%s\"",
			state_words[e->kind - TIMELINE_STATE]);
	else if (e->kind == TIMELINE_DECODE)
		(void)snprintf(what, sizeof what, "\"ticket\":%" PRIu64 ",\"batch\":%" PRIu32,
			e->number, e->value);
	else if (e->kind == TIMELINE_SUBMIT || e->kind == TIMELINE_REAP)
		(void)snprintf(what, sizeof what, "\"files\":%" PRIu64, e->number);
	else if (e->kind == TIMELINE_CHECKPOINT || e->kind == TIMELINE_EVALUATION)
		(void)snprintf(what, sizeof what, "\"step\":%" PRIu64, e->number);
	else if (e->kind >= TIMELINE_COPY)
		(void)snprintf(what, sizeof what, "\"batch\":%" PRIu64, e->number);
	else if (e->pieces > 0)
		(void)snprintf(what, sizeof what, "\"interleaved\":true,\"pieces\":%u",
			(unsigned)e->pieces);
	if (clipped)
		(void)snprintf(what + strlen(what), sizeof what - strlen(what),
			"%s\"clipped\":true", what[0] ? "," : "");
	(void)snprintf(out, room, what[0] ? ",\"args\":{%s}" : "%s", what);
}

static void name_entry(
	const struct timeline_log *log, const struct timeline_entry *e, char out[SLICE_NAME_BYTES])
{
	if (e->kind == TIMELINE_STEP)
		(void)snprintf(out, SLICE_NAME_BYTES, "step %" PRIu64, e->number);
	else if (e->kind >= TIMELINE_STATE && e->kind < TIMELINE_STATE + THREAD_STATES)
		(void)snprintf(out, SLICE_NAME_BYTES, "%s",
			tracks_state_name(log, e->kind - TIMELINE_STATE));
	else
		(void)snprintf(out, SLICE_NAME_BYTES, "%s", timeline_names[e->kind]);
}

/* Slices that have begun and not ended on the track that is being written.  A slice is a pair of events, not one with a
 * length: viewers compute in doubles, and where one slice ends as the next begins, a sum that is off by a bit would make
 * the one stick out of the other. */
struct nesting {
	struct timeline_stream *stream;
	const struct timeline_log *log;
	struct {
		uint64_t end_ns;
		char name[SLICE_NAME_BYTES];
	} open[NESTING_MAX];
	size_t depth;
};

/* The name is there for readers that pair events by it. */
static void end_slices(struct nesting *n, uint64_t until_ns)
{
	while (n->depth > 0 && n->open[n->depth - 1].end_ns <= until_ns) {
		n->depth--;
		timeline_stream_event(n->stream,
			"{\"ph\":\"E\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":" TIMELINE_TS
			"}",
			n->open[n->depth].name, timeline_pid(n->stream, n->log),
			timeline_tid(n->log),
			TIMELINE_US(timeline_since(n->stream, n->open[n->depth].end_ns)));
	}
}

static void tracks_begin_slice(
	struct nesting *n, const char *name, const struct timeline_slice *slice, const char *args)
{
	end_slices(n, slice->begin_ns);
	if (n->depth == NESTING_MAX) {
		n->stream->failed = true; /* nothing of ours is so deep */
		return;
	}
	n->open[n->depth].end_ns = slice->end_ns;
	(void)snprintf(n->open[n->depth++].name, SLICE_NAME_BYTES, "%s", name);
	timeline_stream_event(n->stream,
		"{\"ph\":\"B\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":" TIMELINE_TS
		"%s}",
		name, n->log->stage, timeline_pid(n->stream, n->log), timeline_tid(n->log),
		TIMELINE_US(timeline_since(n->stream, slice->begin_ns)), args);
}

/* Flights of files and depths of queues are no slices of a track. */
static bool is_slice(const struct timeline_entry *e)
{
	return e->kind != TIMELINE_FILE && e->kind != TIMELINE_FILE_OPEN &&
	       e->kind != TIMELINE_GRADIENTS && e->kind != TIMELINE_LAST_RANK &&
	       e->kind != TIMELINE_DEPTH;
}

static void begin_entry(
	struct nesting *n, const struct timeline_entry *e, const struct timeline_window *window)
{
	char name[SLICE_NAME_BYTES];
	char args[256];
	const struct timeline_slice slice = timeline_clip(e, window);
	name_entry(n->log, e, name);
	tracks_describe(n->stream, e, slice.clipped, args, sizeof args);
	tracks_begin_slice(n, name, &slice, args);
}

/* --- epochs ----------------------------------------------------------------------------------------------- */

struct epochs {
	uint64_t epoch; /* the one that is written; UINT64_MAX: none yet */
	uint64_t batches;
};

static uint64_t epoch_of(const struct epochs *epochs, const struct timeline_entry *step)
{
	return epochs->batches > 0 ? step->number / epochs->batches : 0;
}

/* Steps of the same epoch as the one at `at`, in this window, follow one another: all of them as one slice. */
static void begin_epoch(struct nesting *n, uint32_t at, uint32_t end, const struct epochs *epochs,
	const struct timeline_window *window)
{
	const struct timeline_index *index = &n->stream->index;
	const struct timeline_entry *first = timeline_index_entry(index, index->order[at]);
	struct timeline_slice slice = timeline_clip(first, window);
	char name[SLICE_NAME_BYTES];
	char args[64];
	for (; at < end; at++) {
		const struct timeline_entry *e = timeline_index_entry(index, index->order[at]);
		if (e->begin_ns >= window->end_ns)
			break;
		if (e->kind != TIMELINE_STEP)
			continue;
		if (epoch_of(epochs, e) != epochs->epoch)
			break;
		slice.end_ns = timeline_clip(e, window).end_ns;
	}
	(void)snprintf(name, sizeof name, "epoch %" PRIu64, epochs->epoch);
	(void)snprintf(args, sizeof args, ",\"args\":{\"epoch\":%" PRIu64 "}", epochs->epoch);
	tracks_begin_slice(n, name, &slice, args);
}

/* --- a track in a window ---------------------------------------------------------------------------------- */

static bool reaches(const struct timeline_entry *e, const struct timeline_window *window)
{
	return e->begin_ns < window->end_ns &&
	       (e->end_ns > window->begin_ns ||
		       (e->end_ns == e->begin_ns && e->begin_ns == window->begin_ns));
}

/* *from: entries in front of it end before the window, and those that follow it. */
static void write_window(struct timeline_stream *stream, const struct timeline_log *log,
	const struct timeline_window *window, uint32_t *from)
{
	const struct timeline_index *index = &stream->index;
	const struct timeline_range *range = &index->logs[log->index];
	const uint32_t end = range->first + range->count;
	struct epochs epochs = {UINT64_MAX, stream->story->timeline->batches_per_epoch};
	struct nesting nesting = {.stream = stream, .log = log};
	while (*from < end &&
		timeline_index_entry(index, index->order[*from])->end_ns <= window->begin_ns)
		(*from)++;
	for (uint32_t at = *from; at < end && !stream->failed; at++) {
		const struct timeline_entry *e = timeline_index_entry(index, index->order[at]);
		if (e->begin_ns >= window->end_ns)
			break;
		if (!is_slice(e) || !reaches(e, window))
			continue;
		if (e->kind == TIMELINE_STEP && epoch_of(&epochs, e) != epochs.epoch) {
			epochs.epoch = epoch_of(&epochs, e);
			begin_epoch(&nesting, at, end, &epochs, window);
		}
		begin_entry(&nesting, e, window);
	}
	end_slices(&nesting, UINT64_MAX);
}

void timeline_write_tracks(struct timeline_stream *stream)
{
	const struct timeline *t = stream->story->timeline;
	for (uint32_t i = 0; i < t->log_count; i++) {
		const struct timeline_log *log = &t->logs[i];
		uint32_t from = stream->index.logs[i].first;
		if (log->track == TIMELINE_QUEUE)
			continue;
		for (size_t w = 0; w < t->window_count; w++)
			write_window(stream, log, &t->windows[w], &from);
	}
}

/* --- counters --------------------------------------------------------------------------------------------- */

static void write_count(struct timeline_stream *stream, const char *name, const char *unit,
	uint64_t at_ns, double value)
{
	timeline_stream_event(stream,
		"{\"ph\":\"C\",\"name\":\"%s\",\"pid\":%u,\"ts\":" TIMELINE_TS
		",\"args\":{\"%s\":%.10g}}",
		name, timeline_host(stream->story), TIMELINE_US(timeline_since(stream, at_ns)),
		unit, value);
}

/* Its changes in a window, from entry *from on, after how deep it was when the window began. */
static void write_changes(struct timeline_stream *stream, const struct timeline_log *log,
	const struct timeline_window *window, uint32_t depth, uint32_t *from)
{
	const struct timeline_index *index = &stream->index;
	const struct timeline_range *range = &index->logs[log->index];
	char name[64];
	queue_name(stream->story->timeline, log, name);
	if (*from < range->count) {
		const struct timeline_entry *first =
			timeline_index_entry(index, index->order[range->first + *from]);
		depth = first->begin_ns < window->end_ns ? first->value : depth;
	}
	write_count(stream, name, queue_unit(log->stage), window->begin_ns, depth);
	for (; *from < range->count && !stream->failed; (*from)++) {
		const struct timeline_entry *e =
			timeline_index_entry(index, index->order[range->first + *from]);
		if (e->begin_ns >= window->end_ns)
			break;
		write_count(stream, name, queue_unit(log->stage), e->begin_ns, (double)e->number);
	}
}

static void write_queue(
	struct timeline_stream *stream, const struct timeline_log *log, size_t queue)
{
	const struct timeline *t = stream->story->timeline;
	uint32_t from = 0;
	for (size_t w = 0; w < t->window_count; w++)
		write_changes(stream, log, &t->windows[w], t->windows[w].depths[queue], &from);
}

static void write_memory(struct timeline_stream *stream)
{
	const struct timeline *t = stream->story->timeline;
	const struct measurement *m = stream->story->m;
	for (size_t i = 0; i < m->window_count; i++) {
		const uint64_t at_ns = t->start_ns + (uint64_t)(m->windows[i].t * (double)NS_PER_S);
		if (timeline_index_window(t, at_ns, at_ns))
			write_count(stream, "resident memory", "MiB", at_ns,
				(double)m->windows[i].resident_bytes / (1 << 20));
	}
}

/* Files of all readers in flight, from when each was submitted and when it was there. */
struct flights {
	const struct timeline_entry *entries;
	uint32_t *begins, *ends; /* (count) sorted */
	uint32_t count, begun, ended;
};

static int by_begin(const void *a, const void *b, void *context)
{
	const struct timeline_entry *entries = context;
	const uint64_t x = entries[*(const uint32_t *)a].begin_ns;
	const uint64_t y = entries[*(const uint32_t *)b].begin_ns;
	return x < y ? -1 : x > y;
}

static int tracks_by_end(const void *a, const void *b, void *context)
{
	const struct timeline_entry *entries = context;
	const uint64_t x = entries[*(const uint32_t *)a].end_ns;
	const uint64_t y = entries[*(const uint32_t *)b].end_ns;
	return x < y ? -1 : x > y;
}

/* The next change at or after the last; false: there is none. */
static bool next_change(struct flights *f, uint64_t *at_ns)
{
	const uint64_t begin_ns =
		f->begun < f->count ? f->entries[f->begins[f->begun]].begin_ns : UINT64_MAX;
	const uint64_t end_ns =
		f->ended < f->count ? f->entries[f->ends[f->ended]].end_ns : UINT64_MAX;
	if (begin_ns == UINT64_MAX && end_ns == UINT64_MAX)
		return false;
	*at_ns = begin_ns <= end_ns ? begin_ns : end_ns;
	f->begun += begin_ns <= end_ns;
	f->ended += begin_ns > end_ns;
	return true;
}

static void write_flights(struct timeline_stream *stream)
{
	const struct timeline *t = stream->story->timeline;
	const struct timeline_index *index = &stream->index;
	const struct timeline_range *files = &index->kinds[TIMELINE_FILE];
	struct flights f = {.entries = t->entries,
		.begins = index->by_number + files->first,
		.ends = index->order,
		.count = files->count};
	const struct timeline_window *last = NULL;
	uint64_t at_ns;
	memcpy(f.ends, f.begins, f.count * sizeof *f.ends);
	qsort_r(f.begins, f.count, sizeof *f.begins, by_begin, t->entries);
	qsort_r(f.ends, f.count, sizeof *f.ends, tracks_by_end, t->entries);
	for (uint32_t before = 0; next_change(&f, &at_ns) && !stream->failed;
		before = f.begun - f.ended) {
		const struct timeline_window *window = timeline_index_window(t, at_ns, at_ns);
		if (!window)
			continue;
		if (window != last)
			write_count(stream, "files in flight", "files", window->begin_ns, before);
		last = window;
		write_count(stream, "files in flight", "files", at_ns, f.begun - f.ended);
	}
}

void timeline_write_counters(struct timeline_stream *stream)
{
	const struct timeline *t = stream->story->timeline;
	size_t queue = 0;
	for (uint32_t i = 0; i < t->log_count; i++)
		if (t->logs[i].track == TIMELINE_QUEUE && queue < TIMELINE_QUEUES_MAX)
			write_queue(stream, &t->logs[i], queue++);
	write_memory(stream);
	write_flights(stream);
}

/* --- files in flight -------------------------------------------------------------------------------------- */

/* phase: 'b' or 'e' of an asynchronous slice. */
static void write_async(struct timeline_stream *stream, char phase, const char *name,
	const char *category, uint64_t id, uint64_t at_ns, const char *args)
{
	timeline_stream_event(stream,
		"{\"ph\":\"%c\",\"name\":\"%s\",\"cat\":\"%s\",\"id2\":{\"local\":\"0x%" PRIx64
		"\"},\"pid\":%u,\"tid\":0,\"ts\":" TIMELINE_TS "%s}",
		phase, name, category, id, timeline_host(stream->story),
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

static void flows_write_file(
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
		flows_write_file(stream, timeline_index_entry(index, id),
			timeline_index_log(index, id)->thread);
	}
}

/* --- rounds between ranks --------------------------------------------------------------------------------- */

static void write_gradients(struct timeline_stream *stream, const struct timeline_entry *e)
{
	const struct timeline *t = stream->story->timeline;
	const struct timeline_slice slice =
		timeline_clip(e, timeline_index_window(t, e->begin_ns, e->end_ns));
	char args[96];
	(void)snprintf(args, sizeof args, ",\"args\":{\"round\":%" PRIu64 "%s}", e->number,
		slice.clipped ? ",\"clipped\":true" : "");
	write_async(stream, 'b', "gradients", "gradients", e->number, slice.begin_ns, args);
	write_async(stream, 'e', "gradients", "gradients", e->number, slice.end_ns, "");
}

/* In the process of the rank that the others waited for. */
static void write_last_rank(struct timeline_stream *stream, const struct timeline_entry *e,
	const struct timeline_log *log)
{
	if (timeline_index_window(stream->story->timeline, e->end_ns, e->end_ns))
		timeline_stream_event(stream,
			"{\"ph\":\"i\",\"s\":\"p\",\"name\":\"last rank\",\"cat\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":" TIMELINE_TS
			",\"args\":{\"round\":%" PRIu64 ",\"others_waited_us\":" TIMELINE_TS "}}",
			log->stage, timeline_pid(stream, log), timeline_tid(log),
			TIMELINE_US(timeline_since(stream, e->end_ns)), e->number,
			TIMELINE_US(e->end_ns - e->begin_ns));
}

void timeline_write_rounds(struct timeline_stream *stream)
{
	static const enum timeline_kind kinds[] = {TIMELINE_GRADIENTS, TIMELINE_LAST_RANK};
	const struct timeline_index *index = &stream->index;
	for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
		const struct timeline_range *range = &index->kinds[kinds[k]];
		for (uint32_t i = 0; i < range->count && !stream->failed; i++) {
			const uint32_t id = index->by_number[range->first + i];
			const struct timeline_entry *e = timeline_index_entry(index, id);
			if (kinds[k] == TIMELINE_GRADIENTS)
				write_gradients(stream, e);
			else
				write_last_rank(stream, e, timeline_index_log(index, id));
		}
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
		",\"pid\":%u,\"tid\":%u,\"ts\":" TIMELINE_TS "%s}",
		phase,
		((uint64_t)timeline_rank_of(stream->story) << TIMELINE_RANK_FLOW_BITS) + ticket,
		timeline_pid(stream, log), timeline_tid(log),
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

static uint64_t flows_later(uint64_t a, uint64_t b)
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
		at_ns = flows_later(at_ns, copy.begin_ns);
		write_arrow(stream, 't', e->number, timeline_index_log(index, copy_id), at_ns);
	}
	write_arrow(stream, 'f', e->number, timeline_index_log(index, step_id),
		flows_later(at_ns, step.begin_ns));
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
		const uint64_t from_ns = flows_later(e->begin_ns, window->begin_ns);
		life->filled_from_ns =
			from_ns < life->filled_from_ns ? from_ns : life->filled_from_ns;
		life->filled_ns = flows_later(life->filled_ns, e->end_ns);
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
		life->stepped_ns = flows_later(slice.end_ns,
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
