/* The devices of a repetition as one: a step thread each, and an uploader if there is that stage.
 *
 * step.devices = N trains on N devices of the node, as data-parallel training does, in one process
 * with shared readers and decoders. In each round every device computes a batch, then all sum their
 * gradients.
 *
 * - Lanes. Each device is a lane of the exchange. In order, batch b goes to device b mod N, so that
 *   the seed alone decides what a device computes. As completed, a device gets whatever is complete
 *   when it asks, but not its next batch before every device has had as many. An epoch's last
 *   round is left out if it is not full, like a distributed sampler with drop_last; a note counts
 *   the samples. run.verify has one checksum for any N that leaves nothing out.
 *   pipelines/exchange.h says why lanes cannot deadlock.
 * - Buffers. Each device adds a slot and staging places of its own. prefetch.depth is shared and
 *   should be N or more, because a round takes N batches at once.
 * - Rounds (pipelines/rounds.h) end with the last device's step. Throughput is that of all devices,
 *   between two rounds.
 * - The gradient exchange is a stage of its own, sync, which begins when the last device has its
 *   gradients. Emulated devices meet at a barrier and then take the time of a ring all-reduce over
 *   links of sync.bandwidth and sync.latency (harness/config/shape.h). CUDA devices sum through
 *   NCCL on their own streams, between two events of each; all times lie on one clock. The first
 *   exchange, which connects the devices, is made of zeros before anything is timed. A step's
 *   thread is blocked from when its gradients are ready until they are exchanged; what of that is
 *   not the exchange is waiting for other devices.
 * - Ends. A device that fails ends the repetition, and the message names it. Nobody hangs: the
 *   emulated barrier and every wait in the CUDA group look at the stop flag, NCCL is non-blocking,
 *   and a device that leaves waits for the others, then aborts what is still in flight
 *   (workloads/backend/cuda/device_group.h).
 * - The model. The replay has N step servers that meet, and one more cost (sync/exchange); a
 *   straggler device has a factor, like a straggler worker. Step and exchange take turns on the
 *   same devices, so where "busy" decides, each counts as taken for both (binding_taken).
 *   step.devices and the keys of sync can be altered for emulated devices, whose exchange time is
 *   known. Verdicts: sync/exchange, and step/imbalance for one straggler device. */
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
