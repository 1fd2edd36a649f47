/* The uploader from inside: the ring of staging places between it and the step, filled and emptied in
 * order, and the two ways to fill it.  For upload*.c alone. */
#ifndef MLBENCH_PIPELINES_UPLOAD_PARTS_H
#define MLBENCH_PIPELINES_UPLOAD_PARTS_H

#include "pipelines/upload.h"

#include <pthread.h>

enum { UPLOAD_PLACES_MAX = 65 }; /* upload.depth is at most 64 */

struct upload {
	struct upload_options options;
	pthread_t thread;
	bool started;
	struct seat seat; /* of the uploader */
	pthread_mutex_t lock;
	struct slot *staging;     /* (ring.places) */
	struct flow_staging ring; /* options.depth + 1 places: the step holds one */
	uint64_t copied;          /* by a device: copies that have ended */
	uint64_t wanted;          /* the step sleeps until so many have; 0: it waits for no copy */
	bool ended;               /* no batch will follow, and the backend is used no more */
	struct backend *backend;  /* with options.device */
	struct seat *idle_step, *idle_upload;
	struct queue_meter meter;
	atomic_uint_least64_t batches, bytes, device_ns; /* that were copied */
};

/* The place of copy number `number`, which are numbered from 0; NULL: the run is over, or, unless
 * may_wait, none is free. */
struct slot *upload_take_place(
	struct upload *upload, uint64_t number, bool may_wait, uint64_t *now_ns);
/* Names the batch in the place. */
void upload_label(struct slot *to, const struct slot *from);
/* Hands the next place to the step. */
void upload_deliver(struct upload *upload, uint64_t now_ns);

/* A device has ended one more copy. */
void upload_copied(struct upload *upload);

struct copy_times {
	uint64_t batch, bytes;
	uint64_t ended_ns, service_ns; /* service: of the copy itself */
};
void upload_count(struct upload *upload, const struct copy_times *copy, bool on_device);

/* Until the run is over. */
void upload_by_copying(struct upload *upload, uint64_t start_ns);
void upload_by_device(struct upload *upload, uint64_t start_ns);

#endif
