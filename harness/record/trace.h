/* Service times in sequence: what a replay of the pipeline is fed with.  Of each stage, blocks of
 * consecutive items of the measured part, evenly spread over it: neighbours are neighbours (service
 * times are autocorrelated), and the memory is fixed whatever the length of the run.  Plain data,
 * saved beside points.jsonl, one file a repetition. */
#ifndef MLBENCH_RECORD_TRACE_H
#define MLBENCH_RECORD_TRACE_H

#include "harness/base/buffer.h"
#include "harness/base/error.h"
#include "harness/record/measurement.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TRACE_ITEMS_MAX = 4096 }; /* of a stage, as saved */

/* One sample (read, decode) or one batch (upload, step).  Times are ns, NAN where they do not apply. */
struct trace_item {
	/* Ticket of a sample, or number of a batch: the order of the items.  Where samples are cut out of large
	 * requests (workload_facts.reads_large), reads are these, in the order of submission. */
	uint64_t number;
	double end_s;    /* since the start of the repetition */
	uint32_t worker; /* thread of the stage */
	/* read, decode: which of the data set, from 1; 0: not known (large requests, older results) */
	uint32_t sample;
	/* The folder that its file is in, or the file that it is a part of: the least sample of the
	 * trace that has the same; 0: not known. */
	uint32_t place;
	uint32_t bytes; /* read: of the file or request, as fetched; 0 elsewhere */
	uint32_t
		in_flight; /* read: files in flight on that thread when it was submitted, itself included */
	/* read: submission to completion; decode: the whole item, locks and all; upload: the copy; step:
	 * from when the step had the batch until the device was done (emulated: its nominal time).  Where a
	 * device works by itself, upload and step: the time that it was at it, with what was planted */
	float service_ns;
	/* read: part of service_ns until the file was open; NAN: not timed for this one */
	float open_ns;
	float lock_wait_ns, lock_hold_ns; /* decode: under the team's lock; parts of service_ns */
	/* step: time that the thread itself needed before the device began.  Where a device works by itself,
	 * steps are launched while it is at earlier ones: only what of the launching delayed it counts, from
	 * when it was free and the thread had the batch until it began.  device step: the launching,
	 * whole. */
	float host_ns;
};

/* Beside "upload" and "step" stand "device upload" and "device step" where a device works by itself: what its
 * own clock says, on the monotonic clock as all times are (device_measurement.clock_map_error_ns).  An item lasts from
 * end_s - service_ns to end_s.  Host threads and device streams are so on one clock. */
#define TRACE_DEVICE_PREFIX "device "

/* The name of a sample: of its file, and where in it the sample begins if it is a part. */
enum { TRACE_NAMES_MAX = 24, TRACE_NAME_BYTES = 160 };
struct trace_name {
	uint32_t sample; /* from 1 */
	bool part;
	uint64_t offset;
	char path[TRACE_NAME_BYTES]; /* the end of it, where it is longer */
};

struct trace {
	char stage[NAME_BYTES];
	struct trace_item *items; /* by number; owned */
	size_t count;
	uint32_t block;           /* items are consecutive in runs of about so many */
	struct trace_name *names; /* of the samples that took longest, slowest first; owned */
	size_t name_count;
};

/* Beside "read" stands "read ramp" where the source has files in flight: the first files of the repetition, by number, which found
 * an idle store: items as of "read", though not of the measured part. */
#define TRACE_READ_RAMP "read ramp"
enum { TRACE_RAMP_FILES_MAX = 256 };

struct traces {
	uint32_t point, repeat;
	double begin_s, end_s; /* the part they are of */
	struct trace stages[STAGES_MAX];
	size_t stage_count;
};

void traces_release(struct traces *traces); /* safe on {0} */
/* One beyond the last item of the run of consecutive numbers that holds `first` < count. */
size_t trace_run_end(const struct trace *trace, size_t first);
/* NULL when there is none of that name. */
const struct trace *traces_find(const struct traces *traces, const char *stage);

/* --- as JSON ---------------------------------------------------------------------------------- */

/* Traces of a repetition as one JSON object, "mlbench.traces/1", and back: columns as arrays of
 * integers (ns, bytes), a column that is the same all through as one number, one that does not apply
 * left out. */

/* ended: of the repetition they are of, seconds since the epoch.  out->failed without memory. */
void traces_to_json(const struct traces *traces, double ended, struct buffer *out);

/* Fills traces (initialised here; released by the caller in any case).  -EINVAL with what is wrong. */
int traces_from_json(struct traces *traces, double *ended, const json_t *object, struct error *err);

#endif
