/* Key averages: what the operations of a repetition took, one row each.  From its timeline, where there is one: there an
 * operation's own time is its slices' less that of the slices inside them.  Else from the states and service times of its
 * stages. */
#ifndef MLBENCH_REPORT_OPERATIONS_H
#define MLBENCH_REPORT_OPERATIONS_H

#include "harness/base/buffer.h"
#include "harness/base/error.h"
#include "harness/record/histogram.h"
#include "harness/record/measurement.h"
#include "harness/report/style.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	OPERATIONS_MAX = 512,
	OPERATION_NAME_BYTES = 64,
	OPERATIONS_TITLE_BYTES = 256,
};

/* Where an operation runs: on a thread; on a device's stream; beside them (files in flight, batches), where many overlap
 * and there is no time of its own. */
enum operation_place { OPERATION_THREAD, OPERATION_DEVICE, OPERATION_ASYNC };

struct operation {
	char name[OPERATION_NAME_BYTES];
	char stage[NAME_BYTES];
	enum operation_place place;
	uint64_t calls;           /* those that a window cut off included */
	double self_ns, total_ns; /* self: NAN where operations overlap */
	double share;  /* self over the time of all threads, or (device) of all devices; NAN */
	double cpu_ns; /* NAN: not known */
	double mean_ns, p99_ns, max_ns; /* of a call; NAN: none is known whole */
	double *times;                  /* ns of those that are whole, (time_count); owned */
	size_t time_count, time_room;
};

struct operations {
	char title
		[OPERATIONS_TITLE_BYTES]; /* of what: "tiny, point 0: 10 steps, 43.9 ms, 5 threads" */
	char file[OPERATIONS_TITLE_BYTES]; /* the timeline's; "": stages only */
	bool emulated;                     /* the devices are clocks */
	double seconds;                    /* that were looked at */
	double thread_ns, device_ns;       /* of all threads and of all devices in them */
	struct operation *list;            /* (count), owned */
	size_t count;
};

/* Reads a trace.json(.gz) that timeline_save wrote, line by line.  -EINVAL: it is another file, or torn; err says which
 * and where.  config_hash: of the result that it lies in, or NULL. */
int operations_read(
	struct operations *out, const char *path, const char *config_hash, struct error *err);

/* Of the stages of one repetition. */
int operations_of_stages(
	struct operations *out, const struct measurement *m, const char *name, struct error *err);

void operations_release(struct operations *operations); /* safe on {0} */

/* The row of that name, made where there is none; NULL without memory or room. */
struct operation *operations_row(struct operations *operations, const char *name, const char *stage,
	enum operation_place place);
/* A call of so many ns; whole: no window cut it off.  0 or -ENOMEM. */
int operation_add(struct operation *operation, double ns, bool whole);
/* After the last call: shares, means and quantiles. */
void operations_settle(struct operations *operations);

/* The columns that a table can be sorted by, with what they mean; NULL-terminated names. */
struct operation_column {
	const char *name, *doc;
};
extern const struct operation_column operation_columns[];

/* By that column, largest first, texts in their order; -EINVAL with the nearest name.  NULL: by self. */
int operations_sort(struct operations *operations, const char *column, struct error *err);

/* mlbench.top/1, which the text is written from; NULL without memory. */
json_t *operations_json(const struct operations *operations, const char *sort);
void operations_text(const json_t *document, const struct style *style, struct buffer *out);

#endif
