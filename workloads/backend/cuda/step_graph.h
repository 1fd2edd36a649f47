/* Steps kept as CUDA graphs: recorded once from the same calls that enqueue them, then launched as a whole.  With step.graph that
 * is how full batches run.  Without it, a few steps still do, now and then, because a step that was launched at once shows how long
 * its kernels take when the host is not in their way.
 *
 * The share of a step in which no kernel ran is 1 - (what its kernels take) / (the step's device time).  What they take is the time
 * of the step as a graph, less, for each node, the period of a graph of empty kernels: the shortest time from one kernel's begin to
 * the next one's.  An empty kernel's own run is in that period, so the share is an upper bound (with several streams, whose kernels'
 * pauses overlap, a looser one).  Nothing is said of steps whose kind was never seen as a graph.
 *
 * A GPU works by itself. To launch a kernel or a copy is to put a note into a queue (a stream) that
 * the device empties in its own time; the call returns in microseconds, whatever the work takes:
 *
 *   host     |launch step 1|launch step 2|...wait...................|
 *   device       |------ step 1 ------|------ step 2 ------|
 *
 * A clock around the launch measures the writing of a note. A clock around launch and wait measures
 * the wait: whatever else was in the queue, the wake-up of the thread, and nothing of where the
 * device stood still. Three times are therefore taken apart, and never one for another:
 * - Device time (step_ms, upload, sync). An event is a note in the same queue that makes the
 *   device write down its own clock when it comes to it. A step lies between two events on its
 *   stream, the copy of a batch between two on the upload's, the exchange of gradients between
 *   two more (workloads/backend/cuda/step.c, workloads/backend/cuda/staging.c). Only differences
 *   of two events are known, and they are free of the host.
 * - Launch time (launch_us) is the host's: how long the thread was busy handing a step to the
 *   queue. A launch that takes longer than its step leaves the device idle however fast it is;
 *   step.graph = on hands over a whole step as one note.
 * - Idle inside a step (idle_share): between two kernels of a step the device may wait for the
 *   host. No event can tell that without slowing the step, so it is inferred: now and then a step
 *   runs as a graph, which the host cannot hold up, and what its kernels take is that time less,
 *   for each of them, the shortest pause between two kernels, measured with empty ones. The share
 *   is an upper bound; of a step that was never seen as a graph
 *   it is null.
 *
 * States. The step's thread is working while a step of its own is on the device, though it sleeps
 * then: its device is at work. It launches up to step.ahead steps beyond the one that computes,
 * and the uploader hands it a batch as soon as the copy is begun, since the device orders the
 * two; so a step may be launched whose batch is not there yet. While the device has nothing else
 * to do, that is no work: the step is starved until the copy has ended. The uploader is working
 * while any copy is under way, blocked while there is no place on the device. A stage whose
 * device is true counts the device's time as its work, and the time split by the kernel's
 * accounting is not told of it. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_STEP_GRAPH_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_STEP_GRAPH_H

#include "harness/base/error.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cuda_session;

/* Bits of a step's kind: it adds to gradients that are there; it changes the weights. */
enum record_kind { RECORD_START, RECORD_ADDS = 1, RECORD_UPDATES = 2, RECORD_KINDS = 4 };

struct record {
	cudaGraphExec_t exec;
	size_t nodes;
};

struct records {
	struct record *list; /* (places, RECORD_KINDS); owned */
	unsigned places;
	struct record update;    /* alone: behind an exchange */
	bool refused;            /* a step could not be recorded */
	double gap_ns;           /* period of empty kernels; NAN: not known */
	bool seen[RECORD_KINDS]; /* ran kernel by kernel once, so that all of them are loaded */
	uint64_t candidates[RECORD_KINDS]; /* full batches at the first place */
	double busy_ns[RECORD_KINDS];      /* what the kernels take, smoothed; 0: not known */
};

/* On an idle device.  Measures the period of empty kernels. */
int records_open(struct cuda_session *session, struct error *err);
void records_close(struct records *records); /* safe on {0} */

/* Whether the next step, of a full batch, runs as a graph. */
bool records_wanted(struct cuda_session *session, enum record_kind kind, unsigned place);

/* Launches the gradients of a full batch at a place (and the update, where the kind has it), or the update alone; records it
 * first where that was not done.  -ENOTSUP: it cannot be recorded, and nothing was enqueued. */
int records_run(
	struct cuda_session *session, enum record_kind kind, unsigned place, struct error *err);
int records_run_update(struct cuda_session *session, struct error *err);

/* A step of a full batch was finished: work_ns of device time without copy and exchange.  The share of device_ns in which no
 * kernel ran, waiting for others in the exchange not counted; NAN: not known. */
double records_idle_share(struct cuda_session *session, enum record_kind kind, bool was_recorded,
	double work_ns, double device_ns);

#endif
