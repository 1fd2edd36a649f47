/* What a thread of the pipeline does, said once: these calls tell everybody who keeps book of it.
 *
 *   a thread begins and ends   its state clock, its histograms, the kernel's accounting, its memory account,
 *                              the sampler of CPU time (flame.h), the log of the timeline that its spans go to
 *   a span                     the timeline, and a device's profiler (NVTX, by the backend's mark)
 *   an item is done            the item count, the histogram of service times, the trace that a replay is fed with
 *   a device did something     the device's own trace and timeline
 *
 * A meter is NULL where threads are not timed: then only what needs no clock is told.  All but a device's calls are
 * for the thread itself. */
#ifndef MLBENCH_MEASURE_SPAN_H
#define MLBENCH_MEASURE_SPAN_H

#include "harness/measure/flame.h"
#include "harness/measure/thread_meter.h"
#include "harness/measure/timeline.h"
#include "harness/record/measurement.h"

/* --- threads: once each, in this order -------------------------------------------------------- */

/* In the function that the thread was started with: sampled stacks end there, so this must be part of it. */
__attribute__((always_inline)) static inline void span_thread_begin(
	enum stage_id stage, struct thread_meter *meter)
{
	flame_thread_begin(stage_name(stage));
	if (meter)
		thread_meter_attach(meter);
}

/* The clock of the repetition starts: start_ns and segment_ns as in thread_meter.h. */
static inline void span_thread_start(
	struct thread_meter *meter, enum thread_state state, uint64_t start_ns, uint64_t segment_ns)
{
	if (meter)
		thread_meter_start(meter, state, start_ns, segment_ns);
}

static inline void span_thread_end(struct thread_meter *meter)
{
	if (meter)
		thread_meter_detach(meter);
	flame_thread_end();
}

/* --- spans ------------------------------------------------------------------------------------ */

/* Opens a range of that name in a device's profiler; with NULL it closes the one opened last. */
typedef void span_marker(const char *name);

struct span {
	span_marker *mark;
	uint64_t begin_ns; /* 0: the timeline does not time it */
};

/* mark may be NULL. */
static inline struct span span_begin(enum stage_id stage, span_marker *mark)
{
	if (__builtin_expect(mark != NULL, 0))
		mark(stage_name(stage));
	return (struct span){.mark = mark, .begin_ns = timeline_mark()};
}

/* number and value as timeline.h has them for the kind.  Spans that are marked lie inside each other. */
static inline void span_end(
	const struct span *span, enum timeline_kind kind, uint64_t number, uint32_t value)
{
	if (__builtin_expect(span->begin_ns != 0, 0))
		timeline_span(kind, span->begin_ns, clock_now_ns(), number, value);
	if (__builtin_expect(span->mark != NULL, 0))
		span->mark(NULL);
}

/* --- items ------------------------------------------------------------------------------------ */

/* An item was done at now_ns in service_ns; `item` is what a trace keeps of it. */
static inline void span_item(struct thread_meter *meter, uint64_t now_ns, uint64_t service_ns,
	const struct trace_entry *item)
{
	thread_meter_add(meter, now_ns, service_ns, 1);
	trace_log_put(&meter->trace, item);
}

/* What a device did from begin_ns to item->end_ns, by its own clock: meter is that of the thread that had it do so, log the
 * device's in the timeline.  Either may be NULL. */
static inline void span_device(struct thread_meter *meter, struct timeline_log *log,
	enum timeline_kind kind, uint64_t begin_ns, const struct trace_entry *item)
{
	if (meter && meter->device.room > 0)
		trace_log_put(&meter->device, item);
	if (log)
		timeline_put(log, &(const struct timeline_entry){.begin_ns = begin_ns,
					  .end_ns = item->end_ns,
					  .number = item->number,
					  .kind = (uint16_t)kind});
}

#endif
