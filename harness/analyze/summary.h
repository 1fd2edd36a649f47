/* From repetitions to what is reported: one struct point_summary per point, with its verdict.  Pure
 * functions on saved results: `mlbench show` computes the same from the files. */
#ifndef MLBENCH_ANALYZE_SUMMARY_H
#define MLBENCH_ANALYZE_SUMMARY_H

#include "harness/analyze/foreign_load.h"
#include "harness/analyze/statistics.h"
#include "harness/base/error.h"
#include "harness/config/config.h"
#include "harness/config/shape.h"
#include "harness/record/measurement.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- published peaks of devices --------------------------------------------------------------- */

/* Of dense products, in FLOP/s.  Data sheets mostly print tensor figures
 * for weights of which half are zero; those are halved here.  A device that is not in the table has
 * no peak: a made-up one would make a made-up utilisation. */

enum { PEAK_PRECISIONS = STEP_PRECISION_FP8 + 1, PEAK_WORDS = 3 };

struct device_peak {
	const char *device; /* "H100 SXM" */
	/* Words that a device's name has, all of them; NULL: fewer.  Names are CUDA's and
	 * NVML's. */
	const char *words[PEAK_WORDS];
	double teraflops
		[PEAK_PRECISIONS]; /* 0: it does not compute in this, or nothing is published */
	const char *source;
};

extern const struct device_peak peak_list[];
extern const size_t peak_count;

/* The device's line by its name; NULL: unknown, a part of a device (MIG), or none at all (a test
 * double, an emulated one). */
const struct device_peak *peak_find(const char *name);

/* FLOP/s; NAN: unknown. */
double peak_flops(const char *name, enum step_precision precision);

/* Peak and utilisation of each device of m, from what was measured: FLOPs of its steps in the
 * measured part / measured time / peak.  NAN where something of it is not known. */
void peaks_fill(struct measurement *m);

/* --- what a device did ------------------------------------------------------------------------ */

struct device_summary {
	/* Means over the repetitions that know a member (NAN: none does), ranges from the least to
	 * the largest of all, errors of memory summed up, the largest error of the clock map, the
	 * newest statistics of a step. deterministic: in all of them. */
	struct device_measurement all;
	double step_ns;            /* device time of a step; NAN */
	double step_share;         /* of the measured time, in a step; NAN */
	double peak_share;         /* of the peak, while it was in a step; NAN */
	double upload_bytes_per_s; /* while it copied; NAN */
};

/* Device i of each repetition, as many as the first one has.  Returns how many. */
size_t device_summaries(const struct measurement *const *repeats, size_t count,
	struct device_summary out[DEVICES_MAX]);

/* Whether repetitions computed the same: the loss of their first step, compared bit by bit. */
enum same_results { SAME_UNKNOWN, SAME_YES, SAME_NO };
enum same_results device_same_results(const struct measurement *const *repeats, size_t count);

/* What the devices of a point did, as far as they report it: the evidence for limits that lie on
 * the device itself. Means over the repetitions and their devices; NAN: unknown. */
struct device_view {
	bool any; /* a real device computed; nothing else here is known otherwise */
	char name[sizeof((struct device_measurement){0}.name)];
	double busy;         /* of the measured time, in a step */
	double launch_share; /* host time to launch a step, of the step's device time */
	double idle;         /* of a step's device time, in which no kernel ran */
	double copy_share;   /* copying batches to it, of its step time */
	double copying;      /* of the measured time */
	double copy_rate;    /* bytes/s while it copied */
	double utilisation;  /* of the model: FLOPs done / time / published peak */
	/* Share of the samples in which the device slowed itself down against harm (heat, power
	 * supply), and the commonest reason; in which its power cap held the clocks down; and its
	 * clock over its highest. */
	double slowed;
	char reason[NAME_BYTES];
	double capped;
	double clock_share;
};

struct device_view device_view_of(const struct measurement *const *repeats, size_t count);

/* --- the summary of a point ------------------------------------------------------------------- */

/* More lines than any verdict has, so that none is dropped. */
enum { EVIDENCE_MAX = 20, EVIDENCE_BYTES = 240 };

enum { MOUNT_WORDS_BYTES = 96 };

enum { RANK_WORDS_BYTES = RANK_HOST_BYTES + 32 };

/* Of a job of ranks: the one that the others wait for, most of all, and what holds it back. */
struct verdict_straggler {
	bool known;
	uint32_t rank, count;       /* of how many that lag as it does */
	char who[RANK_WORDS_BYTES]; /* "rank 2 on node-2", "the 8 ranks on node-2": these */
	char host[RANK_HOST_BYTES];
	char stage[NAME_BYTES], resource[NAME_BYTES]; /* by its own measurements; "": not known */
	double confidence;                            /* of these */
	double rounds,
		waiting; /* shares: of the rounds in which one of these was the last; of the others' time */
};

struct verdict {
	/* A stage's name; "prefetch" when the depth of the queue binds; "none" when it cannot tell.
	 */
	char stage[NAME_BYTES];
	/* A stage within 5 % of it, as far as can be told: it binds as much; with "depth" the
	 * busiest stage; "" if none. */
	char also[NAME_BYTES];
	/* A stage that may limit instead of this one or as much as it: both alone would tell; "": no. */
	char against[NAME_BYTES];
	char resource[NAME_BYTES]; /* verdict.h lists them all */
	double confidence; /* 0..1, that (stage, resource) is right; verdict.h has the formula */
	char evidence[EVIDENCE_MAX][EVIDENCE_BYTES];
	size_t evidence_count;
	char advice[EVIDENCE_BYTES];
	struct verdict_straggler straggler;
};

struct stage_summary {
	char name[NAME_BYTES];
	unsigned workers;
	bool per_batch, device;
	double busy, starved, blocked; /* shares of the stage's thread time; sum to 1 */
	/* shares of its working time; NAN: not available, or it hardly worked */
	double cpu, run_queue, io_wait, lock_wait;
	double queued; /* share of all its time on a run queue: one that is woken from any state may wait for a core; NAN */
	/* share of the time that some thread of it held the lock; NAN: not known */
	double lock_busy;
	unsigned cores;  /* that its threads may run on; 0: not known */
	double capacity; /* samples/s, median of the repeats; NAN: never showed */
	bool capacity_is_lower_bound;
	struct histogram service; /* merged over the repeats */
};

struct point_summary {
	uint32_t id;
	enum point_status status;
	char error[ERROR_TEXT_BYTES];
	struct workload_facts facts;
	char engine[NAME_BYTES];     /* that read; "": nothing was measured */
	char read_pages[NAME_BYTES]; /* that it read into; "" */
	double *repeats;             /* samples/s of each repetition that counts; owned */
	size_t repeat_count;
	/* repetitions that do not count: unsteady, failed or interrupted, or of a state that did not last
	 * (diagnose.h, regimes); notes say which */
	size_t left_out;
	double median;
	struct interval ci95;
	/* Means over the repeats that could measure them (NAN: none could); accounted is the least.
	 */
	double accelerator_utilisation; /* NAN: an older result */
	double step_utilisation, step_wait_share, bytes_read_per_s, page_cache_share, accounted;
	char cold_ended[COLD_ENDED_BYTES]; /* measurement_cold_ended; "" */
	double cores_busy_outside, cores_busy_elsewhere, throttled_share, steal_share;
	unsigned cores_allowed;   /* that its threads may run on */
	unsigned cores_reachable; /* if no affinity mask held them; 0: not known */
	/* CPU time of the step's thread for a sample that is declared in front of an emulated step (overhead.step). */
	double step_declared_seconds;
	/* The CPU quota that the repeats were under, of the one that it throttled most; "" and NAN:
	 * none. */
	char quota_group[QUOTA_GROUP_BYTES];
	double quota_cores;
	double quota_others; /* cores that others in the group used; NAN: not seen */
	/* Reads that were timed, for a sample: 1, or less where it is cut out of a large request
	 * (workload_facts.reads_large). */
	double reads_per_sample;
	double resident_before; /* of the data, in the page cache; NAN */
	double data_bytes;      /* of the data set; 0: not known */
	double data_samples;    /* likewise */
	double batch_bytes;     /* of the samples of a batch; 0: not known */
	/* How its samples are stored and what that costs; bytes 0: not known. */
	struct {
		double files, bytes;
		double requests_per_sample, cpu_us_per_sample; /* read requests; all threads */
	} storage;
	uint64_t epochs;                /* finished, the most of any repeat */
	struct store_measurement store; /* of the repeats that were on the first one's disk */
	/* Of the repeats whose calls were counted, if all had the same client and server. */
	struct network_measurement network;
	/* Sums over the repeats, less those whose checkpoints all ended outside of the measured part; count 0: none. */
	struct checkpoint_measurement checkpoint;
	double checkpoint_share; /* of the measured time, that the step stood still for them; NAN: none */
	/* Likewise.  The checksum is "" where two repeats differ. */
	struct evaluation_measurement evaluation;
	double evaluation_share;
	/* decode.persistent = off: how often workers started anew, and the share of the time that the step waited for the
	 * first batch of an epoch. */
	uint64_t restarts;
	double restart_share, restart_seconds;
	double cores_used;   /* by the process, all its threads */
	double system_share; /* of that, in the kernel; NAN: not known */
	double switches; /* involuntary ones of its threads, for each second of CPU time; NAN: not known */
	char contaminated[FOREIGN_LOAD_BYTES]; /* by others' load: in which way; "" if it is not */
	uint64_t rss_peak_bytes, pool_bytes, bad_samples; /* the largest of any repeat */
	double bad_share;                                 /* likewise; NAN: not known of any */
	struct stage_summary stages[STAGES_MAX];
	size_t stage_count;
	struct queue_measurement queues[QUEUES_MAX];
	size_t queue_count;
	struct device_summary devices[DEVICES_MAX]; /* over the repeats that count */
	size_t device_count;
	enum same_results
		same_results; /* of the repeats that count; unknown where batches have no order */
	struct verdict verdict;
	char notes[NOTES_MAX][NOTE_BYTES]; /* union over the repeats */
	size_t note_count;
};

/* What analysis must know about a point's configuration. */
struct point_facts {
	unsigned cores; /* that the process may use */
	/* As configured; decode_workers and read_threads give way to the workers that were
	 * measured. */
	unsigned decode_workers, read_threads, read_depth;
	unsigned step_threads; /* that compute: 0 where the step is emulated or null */
	unsigned
		worker_threads; /* that share the work within each decode worker; 0 or 1: it does it alone */
	uint32_t batch_size, prefetch_depth;
	/* CPU time that is declared for somebody's loader: of each sample and batch in a worker, of each batch in the
	 * step's thread. */
	double overhead_sample_ns, overhead_batch_ns, overhead_step_ns;
	struct declared_batch declared; /* beside these */
	double handover_ns; /* of a batch on either side, as measured batches are large; in both of the last */
	bool step_emulated, reads_memory;
	bool by_workers; /* read.by = workers: each of them reads and decodes, one after the other */
	bool reads_block;  /* workload_facts.reads_block */
	bool turns;        /* prefetch.depth = 0: loading and steps take turns */
	bool reads_large;  /* workload_facts.reads_large */
	bool reads_direct; /* past the page cache */
	/* What the data may hold, and what makes its decoding cheaper and is not set yet. */
	bool pictures, may_be_jpeg, may_be_png;
	bool any_order; /* batches come as they are completed: the first need not be the same */
	char storage_pages[NAME_BYTES]; /* that the next one was read into; "": not known */
	double storage_bytes_per_s;     /* what the data's storage gave at best on this node; 0: not
				       known */
	/* samples/s of as many decode workers alone on this node; 0: not known */
	double decode_alone;
	double memory_limit_bytes; /* of the process: cgroup's or machine's; 0: not known */
	/* A control group's alone, which its page cache counts against; "memory.max", "memory.high"
	 * of v2, or "memory.limit_in_bytes" of v1.  0 and "": there is none, or it is not known. */
	double cache_limit_bytes, machine_bytes;
	char cache_limit_name[NAME_BYTES], cache_limit_group[QUOTA_GROUP_BYTES];
	char mount[MOUNT_WORDS_BYTES]; /* of the data: "ext4 (rw,relatime)"; "": not known */
	uint64_t seed;                 /* of the bootstrap */
	/* How it was measured, as configured; 0: not known. */
	double duration_s, warmup_s;
	unsigned repeats, epochs; /* epochs 0: by duration */
};

/* The key that says how many files are in flight, and its value; so many of them are for each of `readers`. */
struct flight {
	const char *key;
	unsigned value, readers;
};

struct flight point_facts_flight(const struct point_facts *facts);

/* From the first repetition that did not fail; count >= 1. */
struct workload_facts summary_facts(const struct measurement *const *repeats, size_t count);

/* repeats: the point's measurements in any order, count >= 1. Adds a note for each that does not
 * count. */
int summary_of_point(const struct measurement *const *repeats, size_t count,
	const struct point_facts *facts, struct point_summary *out, struct error *err);
/* NULL: it has none. */
const struct stage_summary *summary_stage(const struct point_summary *point, const char *name);
/* samples/s that the step could take: its device's, and of an emulated one what is declared for its thread between two
 * steps.  NAN of a null step, which takes whatever comes. */
double summary_step_takes(const struct point_summary *point, const struct stage_summary *step);
void point_summary_release(struct point_summary *point); /* safe on {0} */

/* --- whether it is enough --------------------------------------------------------------------- */

/* Whether enough was measured for a verdict: the 90 % interval of the throughput, from its spread
 * over the run, may be at most a fifth of it to either side.  A width w of n samples takes n (w /
 * 0.2)^2. */

struct sufficiency {
	uint64_t samples; /* measured, all repeats */
	uint64_t needed;  /* 0: these are enough */
	double width;     /* half of the interval over the throughput; NAN: too few to tell */
};

struct sufficiency sufficiency_of(const struct measurement *const *repeats, size_t count);

/* --- the way out: what to set so that there will be a verdict --------------------------------- */

enum { WAY_OUT_BYTES = 200 };

/* "set measure.duration to 14s or more": for a run with too few samples. */
const char *way_out_longer(const struct sufficiency *sufficiency, const struct point_facts *facts,
	const struct measurement *const *repeats, size_t count, char out[WAY_OUT_BYTES]);

/* For a run that was not steady; `reason` is what the steady-state test said. */
const char *way_out_steadier(
	const char *reason, const struct point_facts *facts, char out[WAY_OUT_BYTES]);

/* For figures that contradict each other, as the edges of a short run do. */
const char *way_out_again(const struct point_facts *facts, char out[WAY_OUT_BYTES]);

/* For a run without recorded thread states. */
const char *way_out_states(const struct point_facts *facts, char out[WAY_OUT_BYTES]);

/* How many more repetitions make a verdict possible. 0: it is possible already, no number within
 * `most` will do, or one failed. repeats: all of them, whatever their status. */
size_t way_out_repetitions(const struct measurement *const *repeats, size_t count, size_t most);

/* The same for `needed` samples or items where `count` repetitions have `have`. */
size_t way_out_for_samples(uint64_t have, uint64_t needed, size_t count, size_t most);

#endif
