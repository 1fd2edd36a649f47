/* Scalars of TensorBoard's event files, read as a stream: memory is bounded whatever the file holds.
 *
 * A file is a list of records: u64 length, u32 checksum of it, an Event message, u32 checksum of that (harness/base/crc32c.h).
 * An event's scalar is a simple_value or a tensor of one float or double, as TensorFlow 2 writes it.  Records above
 * SCALAR_RECORD_BYTES hold pictures, graphs and the like, and are passed over. */
#ifndef MLBENCH_FIT_SCALAR_EVENTS_H
#define MLBENCH_FIT_SCALAR_EVENTS_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SCALAR_RECORD_BYTES = 1 << 20, SCALAR_HEAD_BYTES = 12 };

struct scalar_event {
	double wall_time_s; /* since 1970 */
	int64_t step;
	const char *tag; /* borrowed for the call, not terminated; of the user's */
	size_t tag_length;
	double value; /* finite */
};

struct scalar_file {
	uint64_t records;
	uint64_t
		damaged; /* left out: the checksum is not that of the bytes, or they are no message */
	bool torn; /* the last record is not whole, or its length is damaged: nothing behind it was read */
};

/* A negative errno ends the reading. */
typedef int scalar_take(void *context, const struct scalar_event *event);

/* Whether a file that begins so is one. */
bool scalars_begin(const unsigned char *bytes, size_t size);

/* Hands over each scalar, in the file's order.  -ENOMSG: no such file. */
int scalars_read(const char *path, scalar_take *take, void *context, struct scalar_file *file,
	struct error *err);

#endif
