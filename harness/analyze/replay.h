/* Discrete-event simulation of the pipeline's exact structure, fed with recorded service times in
 * sequence.  A pure function: no clock, no thread, no file; the same input gives the same output.
 *
 *   reader i   takes the next tickets, each together with a free blob, in order, up to read_depth in
 *              flight; spends READ_CPU on a core file by file, each of which is in flight from then on:
 *              READ_LATENCY overlaps with others, READ_DEVICE is one server for all of them, first come
 *              first served, and the file is done when both are over (so the latency is that of an idle
 *              device, its own time in it; not their sum).  Done files are handed in together, when all
 *              that were taken have been submitted
 *   requests   where request_samples: sample t lies in request t / request_samples, and is done when that is read.
 *              Requests begin in order, once a sample was taken that lies in one of the read_depth before it,
 *              and as soon as fewer than read_depth are in flight (workloads/source/chunks.h)
 *   workers    shape.by_workers: there are no readers.  Worker j claims samples (harness/flow/flow.h), and for each spends
 *              READ_CPU on a core, waits for READ_LATENCY and READ_DEVICE, and then decodes it as below; while it reads, it is
 *              working in read and starved in decode, and while it decodes the other way around (blocked in read).
 *              shape.turns: nothing is taken before all slots have come back
 *   worker j   takes the ready file with the lowest ticket whose batch has a slot (slots go to batches in
 *              order); first DECODE_LOCK on a core under the one lock of the team, then DECODE_CPU on a
 *              core, then DECODE_WAIT off the cores.  Tiny samples are taken in chunks, by the pipeline's
 *              rule
 *   epochs     where shape.epochs_apart, nothing of one is read before all batches of the one before were given back and
 *              DECODE_STARTUP has passed, in which all workers start.  An epoch that is longer than the part that is
 *              measured does not end in it: DECODE_STARTUP is then added to the time, a part of it for a part of an epoch
 *   batches    the worker that completes one first spends DECODE_BATCH on a core;
 *              they are delivered in order, or as completed; what bounds them is the number of slots
 *              (prefetch_depth only caps the count of those that wait, as in the measurement)
 *   upload     takes a batch, then a staging slot; UPLOAD on a core (copies_off_cores: by a device, one copy after
 *              another); then its slot is free again
 *   step       STEP_HOST on shape.step_threads cores at once (at least one), then STEP_DEVICE off them
 *   sync       shape.devices > 1: each device has an upload and a step of its own and takes the batches of its lane
 *              (exchange.h); when all have computed a step, SYNC passes off the cores, once for all of them, and
 *              then they go on
 *   checkpoint every shape.checkpoint_every steps of all devices the first one stands still, off the cores: for
 *              CHECKPOINT, or (checkpoint_async) until the writer has done with the one before, and then for
 *              CHECKPOINT_COPY, whereupon the writer takes CHECKPOINT.  The part that is measured has whole periods; where
 *              one is longer than that part, checkpoints are as much shorter as they are more frequent
 *   evaluate   likewise every shape.evaluate_every steps, before a checkpoint: for EVALUATE_INPUT and EVALUATE_STEP.  Of two
 *              periods the longer one is whole
 *
 * Cores are shared by all that is runnable: `cores` of them, of which `outside` busy threads of other
 * processes take their equal part.  Item t of a stage takes entry t modulo count of the cost's series,
 * times its scale: per sample for read and decode, per batch for DECODE_BATCH, upload and step, per round of batches for
 * sync.
 *
 * It is tested against closed forms: M/M/1/K and tandem queues with blocking as Markov chains,
 * M/D/1 (Pollaczek-Khinchine), closed networks by mean-value analysis (Reiser and Lavenberg,
 * 1980), deterministic lines. */
#ifndef MLBENCH_ANALYZE_REPLAY_H
#define MLBENCH_ANALYZE_REPLAY_H

#include "harness/base/error.h"
#include "harness/config/shape.h"
#include "harness/record/measurement.h"

#include <stddef.h>
#include <stdint.h>

enum replay_cost {
	COST_READ_CPU,
	COST_READ_LATENCY,
	COST_READ_DEVICE,
	COST_DECODE_CPU,
	COST_DECODE_LOCK,
	COST_DECODE_WAIT,
	COST_DECODE_BATCH,
	COST_DECODE_STARTUP,
	COST_UPLOAD,
	COST_STEP_HOST,
	COST_STEP_DEVICE,
	COST_SYNC,
	COST_CHECKPOINT,
	COST_CHECKPOINT_COPY,
	COST_EVALUATE_INPUT,
	COST_EVALUATE_STEP,
	COSTS
};

enum replay_stage {
	REPLAY_READ,
	REPLAY_DECODE,
	REPLAY_UPLOAD,
	REPLAY_STEP,
	REPLAY_SYNC,
	REPLAY_CHECKPOINT,
	REPLAY_EVALUATE,
	REPLAY_STAGES
};

struct replay_series {
	const float *ns; /* (count), borrowed */
	size_t count;    /* 0: the cost is nothing */
};

struct replay_model {
	struct pipeline_shape shape;
	double cores; /* > 0; HUGE_VAL: as many as wanted */
	/* Cores' worth of CPU time that a quota lets the pipeline's threads have at most; 0: no quota.  A kernel
	 * deals it out in periods, stopping all of them at the end of each; here it is even at every moment. */
	double quota;
	double outside; /* threads of others that are always runnable */
	/* How long a thread keeps a core while others wait for one, ns: under a kernel's scheduler a sample
	 * lies half decoded for as long as that, which delivery in order waits for, and a thread that is
	 * woken waits for a core first.  It matters when more threads are runnable than there are cores
	 * and items are shorter.  0: cores are shared evenly at every moment (processor sharing).  4 ms is
	 * usual (a tick at HZ = 250). */
	double slice_ns;
	/* Cores slow each other down: with n of them busy each runs at 1 / (1 + contention x (n - 1)) */
	double contention;
	struct replay_series series[COSTS];
	double scale[COSTS]; /* 1: as recorded */
	/* (decode_workers): a slow worker's items take longer, all parts of them; NULL: alike */
	const float *worker_factor;
	/* (devices): a slow device's STEP_DEVICE takes longer; NULL: alike */
	const float *device_factor;
	/* Zero-cost hand-overs are free; this is what a visit at the exchange costs a worker, ns on a core,
	 * in its working time. */
	double visit_ns;
	/* From when a sleeper is woken until it goes on, ns off the cores; it counts as waiting.  Whoever comes
	 * to the team's lock meanwhile takes it, and the woken one goes to the end of the line, as at a futex:
	 * with 0 the lock is served in order.  Some 20 us on plain hardware. */
	double wake_ns;
	/* Share of DECODE_LOCK that is spent off the cores, with the lock still held: 0 to 1. */
	double lock_off_cores;
	bool copies_off_cores;
	/* Samples that are cut out of a read: READ_LATENCY and READ_DEVICE are those of such requests. Up to
	 * 1: each sample is read by itself. */
	double request_samples;
	bool requests_block; /* none is read ahead: the reader's thread reads them itself */
};

struct replay_options {
	/* Through the step, warm-up first: not counted.  Rounded up to whole rounds of several devices, and to whole
	 * periods of checkpoints or evaluations. */
	uint64_t batches, warmup_batches;
	size_t offset; /* first entry of each series: another one is another resample (block bootstrap) */
	/* Blocks of so many entries are drawn at random, seeded, instead of the sequence itself; 0: the
	 * sequence as it is. */
	size_t block;
	uint64_t seed;
	uint64_t events_max; /* -E2BIG beyond; 0: a default that bounds any replay to seconds */
};

struct replay_result {
	double throughput; /* samples/s */
	double seconds;    /* simulated, measured part */
	uint64_t samples, batches, events;
	/* Shares of the stage's thread time, as the state clocks would show; zeros without an upload, of sync with one
	 * device, and without checkpoints or evaluations.  A device that waits for others, exchanges, or stands still for
	 * one of these is blocked in step. */
	double share[REPLAY_STAGES][THREAD_STATES];
	double core_utilisation; /* cores busy, with outside threads, / cores; 0 of unlimited ones */
	double lock_utilisation, device_utilisation; /* device: of reading */
	/* STEP_DEVICE, and STEP_HOST too when the step computes on the cores. */
	double step_utilisation;
	/* Mean depths of the two queues, batches at most prefetch_depth, as the measurement has them. */
	double samples_waiting, batches_waiting;
	double order_wait_share; /* time that the consumer starved while a later batch was complete */
};

/* 0; -EINVAL: the model makes no sense, or nothing in it takes time (err says what); -E2BIG; -ENOMEM.
 * Any thread; calls share nothing but the count of what was done. */
int replay_run(const struct replay_model *model, const struct replay_options *options,
	struct replay_result *result, struct error *err);

/* A replay round by round, for pipelines that wait for each other between their steps.  A round is one step of every
 * device, with their own exchange.  Not for several threads at once. */
struct replay_rounds;

/* options: batches bounds the period of stalls and epochs, as in replay_run; nothing else of it ends the rounds.  The model
 * and its series must live as long.  Errors as of replay_run. */
int replay_rounds_open(struct replay_rounds **out, const struct replay_model *model,
	const struct replay_options *options, struct error *err);
/* Computes the next round, whose step begins at from_ns at the earliest; reading, decoding and upload went on meanwhile.
 * *ready_ns: when the round has been computed.  ns since the start of the replay. */
int replay_rounds_next(
	struct replay_rounds *rounds, double from_ns, double *ready_ns, struct error *err);
void replay_rounds_close(struct replay_rounds *rounds); /* NULL: nothing */

/* Samples that all replays of this process have taken through the step, warm-up included.  Any thread.  The same question takes
 * the same on every machine, so that whoever answers one can bound it. */
uint64_t replay_samples_done(void);

enum replay_stage replay_stage_of(enum replay_cost cost);
const char *replay_cost_stage(enum replay_cost cost);    /* "read", "decode", ... */
const char *replay_cost_resource(enum replay_cost cost); /* "cpu", "latency", "full", "lock", ... */
const char *replay_cost_name(enum replay_cost cost);     /* the same, but unique in its stage */

#endif
