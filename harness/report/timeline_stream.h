/* Within harness/report: the events of a trace.json, one a line, as they are written.  For timeline_*.c alone. */
#ifndef MLBENCH_REPORT_TIMELINE_STREAM_H
#define MLBENCH_REPORT_TIMELINE_STREAM_H

#include "harness/report/timeline_index.h"
#include "harness/report/timeline_report.h"

enum { TIMELINE_HOST = 1, TIMELINE_DEVICES = 2 }; /* processes, as viewers call them; of rank 0 */
enum { TIMELINE_RANK_FLOW_BITS = 40 };            /* of an arrow's number; above them is the rank */

struct timeline_stream {
	timeline_sink *sink;
	void *context;
	const struct timeline_story *story;
	struct timeline_index index;
	bool failed; /* nothing more is written */
	uint64_t events;
	uint64_t flows,
		open_flows; /* samples whose arrow reaches a step; whose batch has no step in a window */
};

/* One event: a JSON object; the format's texts need no escaping. */
void timeline_stream_event(struct timeline_stream *stream, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* A name that comes from outside: {"ph": "M", ... "args": {"name": text}}. */
void timeline_stream_name(struct timeline_stream *stream, const char *what, unsigned pid,
	unsigned tid, const char *text);

/* A moment as the "ts" of an event: microseconds since the start, for "%" PRIu64 ".%03u". */
#define TIMELINE_TS "%" PRIu64 ".%03u"
#define TIMELINE_US(ns) (uint64_t)(ns) / 1000, (unsigned)((ns) % 1000)

static inline uint64_t timeline_since(const struct timeline_stream *stream, uint64_t ns)
{
	const struct timeline_rank *const rank = stream->story->rank;
	const int64_t since_ns = rank ? (int64_t)(ns - rank->origin_ns) + rank->offset_ns
				      : (int64_t)(ns - stream->story->timeline->start_ns);
	return since_ns > 0 ? (uint64_t)since_ns : 0;
}

static inline unsigned timeline_rank_of(const struct timeline_story *story)
{
	return story->rank ? story->rank->rank : 0;
}

static inline unsigned timeline_host(const struct timeline_story *story)
{
	return TIMELINE_HOST + 2 * timeline_rank_of(story);
}

static inline unsigned timeline_devices(const struct timeline_story *story)
{
	return TIMELINE_DEVICES + 2 * timeline_rank_of(story);
}

unsigned timeline_pid(const struct timeline_stream *stream, const struct timeline_log *log);
static inline unsigned timeline_tid(const struct timeline_log *log)
{
	return log->index + 1;
}
/* "decode 3", "step" */
void timeline_track_name(const struct timeline_log *log, char out[2 * NAME_BYTES]);

/* An entry clipped to a window that it reaches into. */
struct timeline_slice {
	uint64_t begin_ns, end_ns;
	bool clipped;
};
static inline struct timeline_slice timeline_clip(
	const struct timeline_entry *entry, const struct timeline_window *window)
{
	struct timeline_slice slice = {entry->begin_ns, entry->end_ns, false};
	if (slice.begin_ns < window->begin_ns) {
		slice.begin_ns = window->begin_ns;
		slice.clipped = true;
	}
	if (slice.end_ns > window->end_ns) {
		slice.end_ns = window->end_ns;
		slice.clipped = true;
	}
	return slice;
}

/* The parts of the file, in this order. */
void timeline_write_names(struct timeline_stream *stream);
void timeline_write_tracks(struct timeline_stream *stream);
void timeline_write_files(struct timeline_stream *stream);
void timeline_write_flows(struct timeline_stream *stream);
void timeline_write_batches(struct timeline_stream *stream);
void timeline_write_rounds(struct timeline_stream *stream);
void timeline_write_counters(struct timeline_stream *stream); /* uses up the index */

#endif
