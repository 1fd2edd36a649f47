/* The devices of a repetition as one: a step thread each, and an uploader if there is that
 * stage.
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
 * - Rounds (below) end with the last device's step. Throughput is that of all devices,
 *   between two rounds.
 * - The gradient exchange is a stage of its own, sync, which begins when the last device has its
 *   gradients. Emulated devices meet at a barrier and then take the time of a ring all-reduce over
 *   links of sync.bandwidth and sync.latency (harness/config/shape.h). CUDA devices sum through
 *   NCCL in buckets, each on a stream of its own while the backward pass makes the next
 *   (workloads/backend/buckets.h, cuda/step.c); all times lie on one clock. The first exchange,
 *   which connects the devices, is made of zeros before anything is timed. A step's
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

#include "harness/measure/steady.h"
#include "harness/measure/thread_meter.h"
#include "harness/record/measurement.h"
#include "pipelines/exchange.h"
#include "pipelines/lateness.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct run;
struct backend;

/* --- the step thread of a device: stepper.c ------------------------------------------------ */

/* It takes batches, has the backend compute a step of each, and keeps the account of what came
 * through.  States: starved (waits for a batch, with no step in flight), working; blocked while its
 * device waits for the others that train with it, or exchanges gradients with them. */
struct stepper;

/* What it found; read after it was joined. */
struct step_account {
	struct completions completions;
	bool emulated;
	char description[256];
	uint64_t oversleep_max_ns;    /* after the configured warm-up */
	double loss_first, loss_last; /* NAN: none */
	bool on_device;               /* steps are launched on a device that works by itself */
	double flops_per_sample;
	bool described;
	struct device_measurement device; /* what the backend says; with `described` */
	char not_pinned[256];             /* why; "" */
};

/* Sets run->devices.steppers[device]. */
int stepper_start(struct run *run, unsigned device, struct error *err);
const struct step_account *stepper_account(const struct stepper *stepper);

/* Any thread, any time. */
struct step_progress {
	uint64_t samples, batches; /* good samples, and batches, through the step */
	uint64_t last_step_ns;     /* time of the last step, or the nominal one */
};

/* --- the uploader of a device: upload.c ---------------------------------------------------- */

/* A thread that copies each batch into a staging place, so that the batch's own slot is
 * free again before the step begins.
 *
 * Where the step's backend has memory of its own (device), the places are there, and the copies are the
 * device's: as many are begun as there are places, and a batch is handed to the step as soon as its copy
 * is begun, since the device orders the two.  Else the places are host memory, and the thread copies.
 *
 * States: starved (no batch), working (a copy is under way), blocked (no place). */
struct upload;

/* Sets run->devices.uploads[device]; nothing where there is no upload stage. */
int upload_start(struct run *run, unsigned device, struct error *err);
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

/* --- all devices --------------------------------------------------------------------------- */

struct devices {
	unsigned count;
	struct stepper *steppers[DEVICES_MAX];
	struct upload *uploads[DEVICES_MAX]; /* NULL: no upload stage */
};

/* Samples and batches of all; the longest last step. */
struct step_progress devices_progress(const struct devices *devices);

/* Whether they, emulated or real, do the work of a stage, and not its threads.  After their
 * backends were opened. */
bool devices_do_stage(const struct devices *devices, enum stage_id id);

/* The queues of uploaded batches as one: depths add up, shares of time are means.  The depth
 * now. */
uint32_t devices_read_queues(
	const struct devices *devices, uint64_t now_ns, struct queue_integrals *out);

bool devices_join(
	const struct devices *devices, uint64_t deadline_ns); /* false: one does not end */
void devices_free(struct devices *devices);                   /* after devices_join; safe on {0} */

/* What came through all devices together.  A round is one step of each: it is complete when the last device's step is, and
 * counts then as a whole, so throughput is that of the group and not of whoever is ahead.  With one device every step is a
 * round.
 *
 * The exchange of gradients, too, is known only from all of them: it began when the last device had its gradients; what a
 * device spent before that, it waited for others.  From that comes the stage "sync": working while gradients
 * are exchanged, starved else. */

/* Rounds that can be open at once: devices launch up to 8 steps ahead (step.ahead), and none ends
 * a step that another has not computed. */
enum { ROUNDS_OPEN_MAX = 16 };

/* One device's step, as it counts in its round.  Times are monotonic, ns. */
struct round_step {
	uint64_t batch, ended_ns;
	uint64_t samples, stepped; /* good ones; all */
	uint64_t compute_ns, oversleep_ns;
	uint64_t sync_begin_ns, sync_ns, exchange_ns; /* step_result's; 0: nothing was exchanged */
	struct gradients_round ranks;                 /* met_ns 0: it is alone */
};

struct round {
	unsigned arrived;
	struct round_step steps[DEVICES_MAX];
};

/* What a device spent in all complete rounds. */
struct round_sums {
	uint64_t exchange_ns; /* exchanging gradients */
	uint64_t waiting_ns;  /* waiting for others before that */
	/* In rounds in which it was the last, and so waited for nobody: how long their exchanges took, from the first bucket on, and
	 * how much of that beside the step. */
	uint64_t own_ns, own_hidden_ns;
	/* Between ranks: complete rounds; those in which this rank was the last, and how long all others waited for it alone in
	 * them. */
	uint64_t count, last, late_ns;
	uint64_t passed_ns; /* from the start until the last complete round of ranks ended */
};

struct rounds {
	pthread_mutex_t lock;
	bool is_open;
	unsigned devices;
	uint64_t start_ns;
	struct thread_meter *meters; /* (devices) of sync; NULL: not timed, or one device */
	unsigned rank;               /* of this process; with other ranks alone */
	struct lateness lateness;    /* of rounds with other ranks; else it is not open */
	bool late; /* devices tell of an exchange when its step is over: what their clocks counted meanwhile is moved */
	uint64_t steps[DEVICES_MAX]; /* of each device */
	struct round open[ROUNDS_OPEN_MAX];
	struct completions completions;
	struct completion sum;
	struct round_sums sums[DEVICES_MAX];
};

int rounds_open(struct rounds *rounds, unsigned devices, struct thread_meter *meters);
void rounds_close(struct rounds *rounds); /* safe on {0} */

/* Any thread: of each device, (devices). */
void rounds_read(struct rounds *rounds, struct round_sums *out);

#endif
