/* A replay model calibrated from one point's measurements, what it becomes when keys change, and
 * what is computed from it: predictions with intervals, elasticities, the ladder of limits, the
 * knee.  Pure functions on saved results.
 *
 * What is recorded. State clocks, queues and windows; per stage the time split (CPU
 * and run queue from schedstat, I/O from delay accounting, locks from timed_lock, the rest); and
 * traces: blocks of 64 consecutive items, evenly spread over the measured part, at most 4,096 a
 * stage, in traces/ beside points.jsonl. Which blocks are kept is a function of the ticket number
 * alone, so the threads of a team keep the same.
 *
 * Calibration (model_open). Each stage's recorded time becomes costs, each with its series in
 * ticket order:
 *
 * - read: cpu, latency, device: the thread's CPU time a file; latency and 1 / capacity of the
 *   storage station (storage_capacity.h) where several operating points tell them; else what
 *   remains of submission to completion is played through completion = max(submission + latency,
 *   max(submission, free) + service), and the pair (latency, service) that predicts the recorded
 *   times best is taken (model_costs.h)
 * - decode: cpu, lock, wait: service less the item's own lock wait, split as the stage's working
 *   time was; run-queue time is left out: the replay makes its own. Under a CPU quota the few
 *   items that it stopped are cut to the level at which the mean is right
 * - upload; step: host, device: per batch
 * - sync: per round of several devices, without the waiting
 *
 * Elasticities. e_i = - d ln X / d ln s_i for every cost, by central differences of replays
 * that share their draws. Throughput X is homogeneous of degree -1 in all times together, so by
 * Euler's theorem the e_i of a complete model sum to 1. What the replay does not explain, 1 -
 * X_measured / X_replayed, is kept as unmodelled: it is the part of the sum that no cost can
 * claim. Intervals come from a block bootstrap (Künsch, 1989: service times are autocorrelated).
 *
 * Counterfactuals. A changed key becomes a changed shape or scale (model_alter); the replay
 * gives the throughput and the bottleneck then. The ladder removes the bottleneck again and again;
 * the knee is the least number of workers whose doubling gains less than 5 %. Over a sweep the
 * universal scalability law X(n) = lambda n / (1 + sigma (n-1) + kappa n (n-1)) (N. Gunther,
 * Guerrilla Capacity Planning, 2007) is fitted. A prediction's 90 % interval adds, as variances,
 * the resampled replays, the noise of repeats, and the model's own error, whose constants come
 * from held-out sweeps (docs/ACCURACY.md). */
#ifndef MLBENCH_ANALYZE_POINT_MODEL_H
#define MLBENCH_ANALYZE_POINT_MODEL_H

#include "harness/analyze/replay.h"
#include "harness/analyze/statistics.h"
#include "harness/base/error.h"
#include "harness/config/config.h"
#include "harness/record/ceilings.h"
#include "harness/record/trace.h"

#include <stdbool.h>
#include <stddef.h>

enum { MODEL_NOTES_MAX = 16, LADDER_MAX = 8 };

/* The emulated step of a configuration at a batch size, ns per full batch: published times live
 * with the backends, which analysis does not see, so that the command passes them in.  NAN: not
 * known (another backend, or a pair without a published time). */
typedef double model_step_time(const struct config *config, uint32_t batch_size);
/* Likewise ns of an exchange of gradients among its devices, nothing planted; NAN: not known. */
typedef double model_exchange_time(const struct config *config);

/* How many items were recorded and how many a model needs; needed 0: enough. */
struct model_lack {
	size_t recorded, needed;
};

/* What a model is calibrated from: everything known about one point. */
struct model_source {
	const struct config *config; /* of the point */
	const struct measurement *const *repeats;
	const struct traces *const *traces; /* of the same repeats */
	size_t count;
	unsigned cores;
	const struct ceilings *ceilings; /* NULL: none */
	/* How fast cores are when n are busy, from other points of the sweep; NAN: not known (taken
	 * from the ceilings, or as none, and a note says so) */
	double contention;
	/* Points of the same sweep that read at other depths, all else equal. */
	const struct read_point *others;
	size_t other_count;
	const struct read_block *read_blocks; /* reads alone, of this point */
	size_t read_block_count;
	/* NULL: step.device and step.model cannot be altered, and an emulated step is taken to be
	 * in proportion to the batch unless step.time is set. */
	model_step_time *step_time;
	/* NULL: step.devices and sync.* cannot be altered. */
	model_exchange_time *exchange_time;
	/* Reads that the mount lets through at once, beyond which they wait in front of the store;
	 * 0: any number. */
	double let_through;
	bool any_number; /* of recorded samples will do: for a ratio, not for a prediction */
	struct model_lack
		*lack; /* set by model_open where there is too little; NULL: not asked for */
};

/* What a rank spends in the stage sync: waiting for the others, and exchanging with them. */
struct model_waits {
	double waited_ns, all_ns; /* sums over what was recorded */
	double alone_s;           /* of its round by itself, as calibrated */
	double times;             /* of what it waited then; model_follow_ranks */
};

/* The decode series are those of an ordinary worker, the step series those of an ordinary device;
 * worker_factor and device_factor say which ones are slower by more than chance, and by how
 * much. */
struct model {
	struct replay_model replay; /* its series are owned by storage */
	float *storage[COSTS];      /* owned */
	float *worker_factor;       /* (decode_workers); owned */
	float *device_factor;       /* (DEVICES_MAX); owned */
	struct config config;       /* that it is of: model_alter's `to`; owned */
	model_step_time *step_time;
	model_exchange_time *exchange_time;
	uint64_t samples;    /* of the data set */
	double cores;        /* that the process may use */
	double sample_bytes; /* of each, mean */
	double made_bytes;   /* of each in its batch; 0: not known */
	struct workload_facts facts;
	double samples_per_batch;
	size_t needed;     /* items, where fewer were recorded; 0: they are enough */
	double measured;   /* samples/s: median of the repeats */
	double noise;      /* relative deviation of one repeat */
	double unmodelled; /* ln(replayed / measured): what binds and is not in the model */
	/* Busy shares of the stages in the replay as calibrated: where the above is known to
	 * hold. */
	double calibrated_busy[REPLAY_STAGES];
	double calibrated;       /* samples/s of that replay */
	double calibrated_cores; /* that it kept busy */
	/* CPU time of a sample, ns: all of the process's as measured, which has what its threads pay to hand samples over and to
	 * look for work (0: unknown, or a step's own threads spin), and what of it the costs have. */
	double cpu_ns, calibrated_cpu_ns;
	/* How well it is known how cores slow each other down: deviation of ln(their speed) for each doubling of busy cores. */
	double contention_doubt;
	double calibrated_step; /* share of the time that the step's thread was at work in it */
	/* Of an emulated device's step thread, ns a batch: at work as measured, and by how much
	 * longer in a replay before that was fitted to it.  0: not known. */
	double step_working_ns, step_excess_ns;
	/* ns a batch, in STEP_DEVICE: how late the step's thread was, beyond the device's own
	 * time. */
	double late_ns;
	/* of which so much was not measured, but follows from more or fewer workers */
	double late_guess_ns;
	struct model_waits waits;
	double altered; /* sum of |ln| of what keys were turned by; 0: as calibrated */
	/* Of reading, when no device showed: time that might be a device's after all
	 * (model_costs.h), and the files in flight that it was seen with.  Matters when more of them
	 * are to be. */
	double hidden_device_ns;
	unsigned measured_in_flight;
	/* Files/s, the most that was read with so many in flight, of several depths; 0: only one was seen. */
	double read_most;
	/* probability that storage is full, more in flight gains nothing (storage_capacity.h) */
	double read_full;
	size_t recorded; /* samples that the series came from */
	char notes[MODEL_NOTES_MAX][NOTE_BYTES];
	size_t note_count;
};

/* -ENODATA: no service times were recorded, or too few (err: how many there are and how many are
 * needed). */
int model_open(struct model *model, const struct model_source *source, struct error *err);

/* Cores of the replay: those that inject.cpus holds the loader on, and those of a step that computes beside it. */
double model_cores(const struct model *model, const struct config *config);

/* ns of CPU time that the configuration declares for a batch: of the worker that completes it, or of the step's thread. */
double model_declared(const struct model *model, const struct config *config, bool by_step);

/* What all operating points tell about the store, for repetitions that need not be the source's.
 * source: NULL: there is none. */
struct storage;
void model_storage(const struct model_source *source, const struct measurement *const *repeats,
	size_t count, double let_through, struct storage *out);

/* Whether a sample costs the decoder the same at all values of the key. Points of a sweep that
 * differ in other keys say nothing about how decoding scales or how cores slow each other down. */
bool model_keeps_decode_cost(enum key_id key);

/* How cores slow each other down, from several points of a sweep: busy[i] cores were busy on
 * average while an item of CPU work took cpu_ns[i] of CPU time; cpu = c (1 + contention (busy -
 * 1)).  Not below 0; NAN: the points are too few or too much alike (fewer than two, or less than
 * half a core apart). */
double model_fit_contention(const double *busy, const double *cpu_ns, size_t count);
/* The two figures of one repetition.  False: its decode stage has no CPU accounting. */
bool model_contention_point(
	const struct measurement *measurement, unsigned cores, double *busy, double *cpu_ns);
void model_close(struct model *model); /* safe on {0} */
int model_copy(struct model *to, const struct model *from, struct error *err);

/* Changes the model of `from` into that of `to`: every key that differs, except those that only say
 * how a run is named, seeded and measured. -ENOTSUP: a key that the model does not cover (err lists
 * those that it does), or a step whose time is unknown; the model is then unchanged or half
 * changed: close it. Adds a note for what is extrapolated. */
int model_alter(
	struct model *model, const struct config *from, const struct config *to, struct error *err);
/* The other ranks change as this one does: what it waits for them changes as its own rounds do.  model_alter has done it. */
int model_follow_ranks(struct model *model, struct error *err);
/* Whether a key can be altered. */
bool model_knows(enum key_id key);
/* -ENOTSUP with the reason for a key that only another measurement tells of; 0: it is none of those. */
int model_refuse_unmeasured(enum key_id key, struct error *err);

struct prediction {
	double throughput; /* samples/s, of the replay, times the calibration error known */
	struct interval
		interval; /* 90 %: resampled blocks, the machine's noise, the model's own error */
	struct replay_result replay;
	/* The interval reaches down to what storage would give that serves no more files at once
	 * than were in flight when it was measured: until more are, nothing tells a serial device
	 * from latency. */
	bool hidden_device;
};

/* effort: replays for the interval (8 is a sketch, 40 is thorough). */
int model_predict(
	const struct model *model, unsigned effort, struct prediction *out, struct error *err);
/* The largest effort up to `most` whose prediction replays no more samples than this, or `least`. */
unsigned model_effort_within(
	const struct model *model, uint64_t samples, unsigned least, unsigned most);

/* e = -dlnX/dln s of every cost, by replays that share their random numbers, with block bootstrap
 * intervals (90 %).  They sum to 1, less what is not in the model. */
struct elasticity {
	enum replay_cost cost;
	double value;
	struct interval interval;
};
struct elasticities {
	struct elasticity costs[COSTS];
	double sum;        /* of the replay's */
	double unmodelled; /* share of the time between batches that no cost explains */
};
int model_elasticities(
	const struct model *model, unsigned effort, struct elasticities *out, struct error *err);
/* About so many samples are replayed for them at least. */
uint64_t model_elasticities_samples(const struct model *model);

/* The next bottlenecks: the limiting stage's service time is set to zero, again and again, until
 * the step limits. */
struct ladder_rung {
	char stage[NAME_BYTES], resource[NAME_BYTES];
	double throughput; /* with all the rungs before it removed */
};
struct ladder {
	struct ladder_rung rungs[LADDER_MAX];
	size_t count;
};
int model_ladder(const struct model *model, struct ladder *out, struct error *err);

/* The smallest number of decode workers whose doubling gains less than 5 %. */
struct knee {
	unsigned workers;
	double throughput, doubled;
};
int model_knee(
	const struct model *model, unsigned workers_max, struct knee *out, struct error *err);

/* --- for what is computed from a model -------------------------------------------------------- */

void model_note(struct model *model, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Makes the replay use the factors of slow devices, if any device is slow.  Call it after a change
 * of device_factor or of the number of devices. */
void model_use_devices(struct model *model);
/* The shape of another configuration of the same workload. */
void model_shape(
	const struct model *model, const struct config *config, struct pipeline_shape *shape);

/* Seconds of a rank's round by itself, by a short replay. */
int model_round_alone(const struct model *model, double *out, struct error *err);
/* About `samples` samples through the step, after a warm-up. */
struct replay_options model_options(const struct model *model, size_t samples);
/* Draws blocks of the recorded items at random: another run of the same kind. */
struct replay_options model_resample(const struct model *model, size_t samples, uint64_t seed);
/* As many samples as a replay of full length has. */
size_t model_whole_length(const struct model *model);
/* How much of the time a stage's threads were at work in a replay, 0..1. */
double replay_busy(const struct replay_result *result, enum replay_stage stage);

/* ns per item, scale included; 0 where the stage has none of this cost. */
/* Share of the process's CPU time that is in none of the costs; 0: unknown. */
double model_handover_share(const struct model *model);
double model_mean_cost(const struct replay_model *replay, enum replay_cost cost);

/* Of the throughput, that stalls between steps cost: from here on they are named before the step. */
enum { LIMIT_STALLS_PERCENT = 5 };

/* The costliest cost of the stage whose costs' elasticities sum highest; of a step that stands still for
 * checkpoints, evaluations, or for workers that start anew, theirs, as a verdict has it. */
enum replay_cost model_limiting_cost(const struct elasticities *elasticities);

/* --- findings: what a replay of the point says about its limit -------------------------------- */

/* How throughput answers to each cost, and what it would be without a lock, with even workers, with
 * cores for all, with nothing else on the node, without a CPU quota, with deeper queues.  Each of
 * the latter is a counterfactual: one replay with the same random numbers. */
enum { TAIL_TIMES = 5 };
enum { FINDINGS_THOROUGH = 8 }; /* effort below which it is a sketch */

struct model_findings {
	bool sketch;     /* by few and short replays */
	double replayed; /* samples/s of the replay as it is */
	struct elasticities elasticities;
	/* Relative gains, 0.1: a tenth more; 0 where there is nothing to take away. */
	double unlocked, even, roomy, alone;
	double unthrottled;  /* without the CPU quota, on the cores that there are */
	double even_devices; /* with no device slower than the others */
	/* With the files, or samples, that take more than TAIL_TIMES the median cut to it. */
	double untailed_read, untailed_decode;
	double deeper;      /* with four times the prefetch depth */
	double deeper_read; /* with four times the files in flight and waiting */
	/* With the costs of the stage of the highest elasticity taken away, and the stage that is
	 * busiest then: one that binds nearly as much, when the gain is small. */
	double relieved;
	enum replay_stage limit, next;
};

/* effort as for model_predict, at least 1. */
int findings_of(
	const struct model *model, unsigned effort, struct model_findings *out, struct error *err);

/* Of the findings, untailed_read alone: one replay against another of the same samples, so that few of them will do. */
int findings_of_tail(const struct model *model, double *gain, struct error *err);

/* Sum of the elasticities of a stage's costs; *deviation from their intervals (as if
 * independent). */
double findings_stage(const struct model_findings *findings, const char *stage, double *deviation);
double findings_cost(const struct model_findings *findings, enum replay_cost cost);

#endif
