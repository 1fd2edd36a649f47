/* Events of a trace as torch.profiler writes it (Kineto's Chrome trace, plain or through gzip, and
 * the older array of events of builds without Kineto), read as a stream: memory and time per byte
 * are bounded whatever the file holds.
 *
 * Recognised: an object with an array "traceEvents", or an array alone.  Of each complete event (ph
 * X) the name, the category, ts and dur in microseconds (numbers, or text that is one), pid, tid,
 * and of args the device, the bytes and the first size of each input ("Input Dims", there with
 * record_shapes).  Of the head: distributedInfo and how many deviceProperties there are. Keys that
 * come twice: the last one counts.
 *
 * Real traces are torn and broken: a full disk, an interrupted download, text that was not escaped,
 * nan.  A string that is not escaped as JSON wants it is read all the same, and so is nan, as no
 * number.  Where the text is no JSON otherwise, or nests deeper than KINETO_DEPTH_MAX, or goes on
 * for KINETO_STALL_BYTES without an event, reading begins anew at the next thing that looks like an
 * event; struct kineto_file says how often that was, and whether the end is missing. */
#ifndef MLBENCH_FIT_KINETO_H
#define MLBENCH_FIT_KINETO_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	KINETO_NAME_BYTES = 96, /* longer names are cut */
	KINETO_DIMS_MAX = 3,    /* inputs of which the first size is kept */
	KINETO_DEPTH_MAX = 64,
	KINETO_STALL_BYTES = 4 << 20,
	KINETO_BREAKS_MAX = 10000, /* more: reading stops there */
	KINETO_DEVICES_MAX = 1024, /* more are not counted */
};
#define KINETO_BYTES_MAX (UINT64_C(64) << 30) /* unpacked; reading stops there */

enum kineto_kind {
	KINETO_OTHER,
	KINETO_HOST, /* operators and annotations of threads; older traces call neither by a category */
	KINETO_KERNEL,
	KINETO_COPY,
	KINETO_SET,
};

struct kineto_event {
	enum kineto_kind kind;
	char name[KINETO_NAME_BYTES];  /* of the user's; never to be shown */
	int64_t begin_ns, end_ns;      /* within +-2^61 */
	uint64_t thread;               /* of pid and tid: equal ones are one thread */
	uint64_t process;              /* of pid: equal ones are one process */
	int64_t device;                /* equal ones are one device; -1: none */
	double bytes;                  /* NAN: not said */
	int64_t dims[KINETO_DIMS_MAX]; /* first size of each input; 0: not said */
	bool whole[KINETO_DIMS_MAX];   /* it has another size behind the first */
};

struct kineto_file {
	uint64_t bytes;  /* unpacked */
	uint64_t events; /* objects in the array of events, of whatever kind */
	uint64_t
		unusable; /* complete ones without a usable time: none, negative, beyond all bounds */
	size_t breaks;    /* places where the text was no JSON and reading began anew */
	bool torn;        /* the end is missing */
	bool cut;         /* KINETO_BYTES_MAX or KINETO_BREAKS_MAX was reached */
	bool more;        /* behind the end there is more */
	bool of_mlbench;          /* a timeline of our own */
	int64_t rank, world_size; /* of distributedInfo; -1: not said */
	unsigned devices;         /* deviceProperties */
};

/* A negative errno ends the reading. */
typedef int kineto_take(void *context, const struct kineto_event *event);

/* Hands over each complete event, in the file's order.  -ENOMSG: no such trace (no JSON, or none with events); -ENOTSUP: built
 * without yajl; other errors are those of opening and reading, and of take. */
int kineto_read(const char *path, kineto_take *take, void *context, struct kineto_file *file,
	struct error *err);

#endif
