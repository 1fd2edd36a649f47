/* The uploader (upload.mode = copy): a thread that copies each batch into a staging slot, so that the
 * batch's own slot is free again before the step begins.  It stands for a copy to a device, in host
 * memory.  States: starved (no batch), working (copying), blocked (no staging slot). */
#ifndef MLBENCH_PIPELINES_UPLOAD_H
#define MLBENCH_PIPELINES_UPLOAD_H

#include "harness/measure/thread_meter.h"
#include "pipelines/crew.h"
#include "pipelines/exchange.h"
#include "pipelines/injection.h"
#include "pipelines/placement.h"

struct upload_options {
	struct crew *crew;
	struct exchange *exchange;
	const struct injection *injection;
	const struct placement *placement;
	unsigned place;
	struct thread_meter *meter; /* or NULL: not timed */
	uint64_t segment_ns;
	unsigned depth;   /* batches that may wait for the step */
	uint8_t *memory;  /* (depth + 1) x slot_samples x sample_bytes */
	uint32_t *labels; /* (depth + 1) x slot_samples */
	uint32_t slot_samples;
	size_t sample_bytes;
};

struct upload;

int upload_start(struct upload **out, const struct upload_options *options, struct error *err);
bool upload_join(struct upload *upload, uint64_t deadline_ns); /* false: it does not end */
void upload_free(struct upload *upload);                       /* after upload_join; NULL is fine */
void upload_wake(struct upload *upload);                       /* after crew's stopping was set */

/* The step: gives back a staging slot (or NULL) and takes the next uploaded batch, as
 * exchange_next_batch does. */
struct slot *upload_next_batch(
	struct upload *upload, struct seat *seat, struct slot *used, uint64_t *now_ns);

void upload_start_meter(struct upload *upload, uint64_t now_ns);
uint32_t upload_read_queue(struct upload *upload, uint64_t now_ns, struct queue_integrals *out);

#endif
