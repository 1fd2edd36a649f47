/* The uploader: a thread that copies each batch into a staging place, so that the batch's own slot is
 * free again before the step begins.
 *
 * Where the step's backend has memory of its own (device), the places are there, and the copies are the
 * device's: as many are begun as there are places, and a batch is handed to the step as soon as its copy
 * is begun, since the device orders the two.  Else the places are host memory, and the thread copies.
 *
 * States: starved (no batch), working (a copy is under way), blocked (no place). */
#ifndef MLBENCH_PIPELINES_UPLOAD_H
#define MLBENCH_PIPELINES_UPLOAD_H

#include "harness/measure/thread_meter.h"
#include "pipelines/crew.h"
#include "pipelines/exchange.h"
#include "pipelines/first_epoch.h"
#include "pipelines/injection.h"
#include "pipelines/placement.h"

struct backend;

struct upload_options {
	struct crew *crew;
	struct exchange *exchange;
	unsigned lane; /* at the exchange, and which of the devices */
	unsigned devices;
	struct first_epoch *first;
	const struct injection *injection;
	const struct placement *placement;
	unsigned place;
	struct thread_meter *meter; /* or NULL: not timed */
	uint64_t segment_ns;
	unsigned depth;  /* batches that may wait for the step */
	bool device;     /* upload_use gives the backend that copies */
	uint8_t *memory; /* (depth + 1) x slot_samples x bytes of a sample; NULL with a device */
	uint8_t *labels; /* (depth + 1) x slot_samples x label_bytes; likewise */
	uint32_t slot_samples;
	struct sample_sizes sizes;
	/* Of the timeline: the queue of uploaded batches, and what the device copies; NULL: none. */
	struct timeline_log *queue_timeline, *device_timeline;
};

struct upload;

int upload_start(struct upload **out, const struct upload_options *options, struct error *err);
bool upload_join(struct upload *upload, uint64_t deadline_ns); /* false: it does not end */
void upload_free(struct upload *upload);                       /* after upload_join; NULL is fine */
void upload_wake(struct upload *upload);                       /* after crew's stopping was set */

/* The step thread, before it arrives at the gate; and before it closes the backend, which the uploader
 * may be using: waits until that has ended. */
void upload_use(struct upload *upload, struct backend *backend);
void upload_wait_end(struct upload *upload, struct seat *seat);

/* The step: gives back a staging place (or NULL) and takes the next uploaded batch, as
 * exchange_next_batch and exchange_try_batch do.  On a device a slot has no bytes; its index is its
 * place there. */
struct slot *upload_next_batch(
	struct upload *upload, struct seat *seat, struct slot *used, uint64_t *now_ns);
/* oldest: number of the oldest batch that it has a step of in flight, counted from 0 as they were taken.
 * While the copy of that one is under way the device has nothing to compute on: the step is starved. */
struct slot *upload_try_batch(struct upload *upload, struct seat *seat, struct slot *used,
	uint64_t oldest, uint64_t until_ns, bool *over, uint64_t *now_ns);
/* Waits, starved, until that copy has ended, or the run. */
void upload_wait_copy(struct upload *upload, struct seat *seat, uint64_t oldest, uint64_t *now_ns);

void upload_start_meter(struct upload *upload, uint64_t now_ns);
uint32_t upload_read_queue(struct upload *upload, uint64_t now_ns, struct queue_integrals *out);

/* Copies that have ended; any thread, any time. */
struct upload_totals {
	uint64_t batches, bytes;
	uint64_t device_ns; /* of copies by a device */
};
struct upload_totals upload_read_totals(const struct upload *upload);

#endif
