/* The devices of a repetition, a step thread each and an uploader where there is that stage: what all of them
 * have done so far, as one.
 *
 * step.devices = N trains on N devices of the node, as data-parallel training does: one process,
 * readers and decoders shared, and for each device a step thread and, where there is that stage,
 * an uploader. All of them compute a batch each, then sum their gradients,
 * then begin the next step: a round.
 *
 * - Lanes. Each device is a lane at the exchange. In order, batch b goes to device b mod N, so
 *   what a device computes depends on the seed alone. As completed, a device gets whatever is
 *   complete when it asks, but not its next before every device has had as many. Either way all
 *   make the same number of steps. An epoch's last round that is not full is left out, as a
 *   distributed sampler with drop_last does it, and a note counts the samples. run.verify has one
 *   checksum for any N that leaves nothing out. pipelines/exchange.h extends the argument that it
 *   cannot deadlock.
 * - Buffers. A slot more for each device, and staging places of its own; prefetch.depth is
 *   shared, and a round takes N batches at once, so it wants to be N or more. The bound on memory
 *   counts all of it, and the backend N times.
 * - Rounds (pipelines/rounds.h) count when the last device's step of that round is over.
 *   Throughput is all devices' samples between two rounds.
 * - The exchange is a stage of its own, sync. It begins when the last device has its gradients.
 *   Emulated devices meet at a barrier and then take the time of a ring all-reduce of the model's
 *   parameters over links of sync.bandwidth and sync.latency (harness/config/shape.h, which
 *   predictions use, too). CUDA devices sum through NCCL on their own streams, between two events
 *   of each (the first exchange, at which NCCL connects the devices and starts its helper
 *   threads, is made of zeros when the sessions open, before anything is timed); all their times
 *   lie on one clock, so when the last one began is known. sync is working while gradients are
 *   exchanged. The step's thread is blocked from when its own gradients are there until they are
 *   exchanged; the difference of the two is waiting for one another.
 * - Ends. A device that fails ends the repetition, and the message names it. Nobody hangs: the
 *   emulated barrier and every wait in the CUDA group look at the stop flag, NCCL is asked not to
 *   block, and who leaves waits for the others, then aborts what is still under way
 *   (workloads/backend/cuda/device_group.h).
 * - The model. The replay has N step servers that meet, and one cost more (sync/exchange); a
 *   device that is slower by more than chance has a factor, as a slow worker has. Step and
 *   exchange take turns on the same devices: where "busy" decides, either counts as taken for as
 *   long as both (binding_taken). step.devices and the keys of sync can be altered where the
 *   exchange's time is known, that is for emulated devices. Verdicts: sync/exchange, and
 *   step/imbalance for one slow device. */
#ifndef MLBENCH_PIPELINES_DEVICES_H
#define MLBENCH_PIPELINES_DEVICES_H

#include "pipelines/stepper.h"
#include "pipelines/upload.h"

struct devices {
	unsigned count;
	struct stepper *steppers[DEVICES_MAX];
	struct upload *uploads[DEVICES_MAX]; /* NULL: no upload stage */
};

/* Samples and batches of all; the longest last step. */
struct step_progress devices_progress(const struct devices *devices);

/* Copies of each: (count). */
void devices_read_uploads(const struct devices *devices, struct upload_totals *out);

/* The queues of uploaded batches as one: depths add up, shares of time are means.  The depth now. */
void devices_start_meters(const struct devices *devices, uint64_t now_ns);
uint32_t devices_read_queues(
	const struct devices *devices, uint64_t now_ns, struct queue_integrals *out);

void devices_wake(const struct devices *devices); /* after crew's stopping was set */
bool devices_join(
	const struct devices *devices, uint64_t deadline_ns); /* false: one does not end */
void devices_free(struct devices *devices);                   /* after devices_join; safe on {0} */

#endif
