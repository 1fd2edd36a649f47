/* TensorBoard's event files: records in TFRecord frames (length, its checksum, bytes, their checksum; all
 * little-endian; https://www.tensorflow.org/tutorials/load_data/tfrecord), each an Event (tensorboard.proto). */
#ifndef MLBENCH_REPORT_TENSORBOARD_EVENTS_H
#define MLBENCH_REPORT_TENSORBOARD_EVENTS_H

#include "harness/base/buffer.h"

#include <stddef.h>
#include <stdint.h>

enum { EVENT_SCALARS_MAX = 8 };

struct event_scalar {
	const char *tag; /* UTF-8 */
	double value;    /* NAN: not known, left out */
	const char *
		description; /* Markdown; NULL: none.  Said once for each tag, with its first value */
};

/* The first record of a file. */
void events_begin(struct buffer *out, double wall_time);
/* Scalars of one step; nothing where none is known.  out->failed without memory. */
void events_add(struct buffer *out, double wall_time, int64_t step,
	const struct event_scalar *scalars, size_t count);

#endif
