/* What one repetition of one point gives: plain data, written to points.jsonl as one line and read
 * back from it.  The pipeline fills it; analyze and report see nothing else of the run.
 *
 * A share that could not be measured is NAN, and a line of `missing` says why. */
#ifndef MLBENCH_RECORD_MEASUREMENT_H
#define MLBENCH_RECORD_MEASUREMENT_H

#include "harness/base/error.h"
#include "harness/base/workload_facts.h"
#include "harness/record/fields.h"
#include "harness/record/histogram.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* --- the stages ------------------------------------------------------------------------------- */

/* The stages of a pipeline, in the order of a sample's way: the one table of them.  A record has a stage's role by these names, and
 * whoever judges compares with these alone. */

/* SYNC is no thread's: what of their steps the devices spend in exchanging gradients (devices.h).  CHECKPOINT is the writer's
 * thread (checkpoint.mode = async), or nobody's: what the step's thread spends in writing (checkpoints.h).  EVALUATE is nobody's,
 * either: what the step's thread spends in evaluations (evaluations.h). */
enum stage_id {
	STAGE_READ,
	STAGE_DECODE,
	STAGE_UPLOAD,
	STAGE_STEP,
	STAGE_SYNC,
	STAGE_CHECKPOINT,
	STAGE_EVALUATE,
	STAGE_IDS,
	/* What a verdict may name beside them: the queue before the step, and memory that grows. */
	STAGE_PREFETCH = STAGE_IDS,
	STAGE_MEMORY,
	STAGE_NAMES
};

/* For tables, which want constants. */
#define STAGE_READ_NAME "read"
#define STAGE_DECODE_NAME "decode"
#define STAGE_UPLOAD_NAME "upload"
#define STAGE_STEP_NAME "step"
#define STAGE_SYNC_NAME "sync"
#define STAGE_CHECKPOINT_NAME "checkpoint"
#define STAGE_EVALUATE_NAME "evaluate"
#define STAGE_PREFETCH_NAME "prefetch"
#define STAGE_MEMORY_NAME "memory"

extern const char *const stage_names[STAGE_NAMES];

static inline const char *stage_name(enum stage_id id)
{
	return stage_names[id];
}

static inline bool stage_is(const char *name, enum stage_id id)
{
	return strcmp(name, stage_names[id]) == 0;
}

/* --- a repetition ----------------------------------------------------------------------------- */

enum {
	STAGES_MAX = 8,
	QUEUES_MAX = 8,
	WINDOWS_MAX = 512,
	NAME_BYTES = 24,
	RANK_HOST_BYTES = 64,
	LATE_ROUNDS_MAX = 16,
	NOTE_BYTES = 256,
	NOTES_MAX = 32,
	DEVICES_MAX = 16, /* that one run can train on */
	THROTTLES_MAX = 8,
	QUOTA_GROUP_BYTES = 160,
	READ_POINTS_MAX = 4,
	STORE_WHY_BYTES = 128,
	NETWORK_CALLS_MAX = 16,
	NETWORK_SERVER_BYTES = 64,
};

/* A thread of a stage is in exactly one of these at any moment. */
enum thread_state { THREAD_STARVED, THREAD_WORKING, THREAD_BLOCKED, THREAD_STATES };
extern const char *const thread_state_names[THREAD_STATES]; /* "starved", "working", "blocked" */

struct stage_measurement {
	char name[NAME_BYTES]; /* of measurement.h */
	unsigned workers;
	bool per_batch; /* an item is a batch, not a sample */
	bool device;    /* working time is a device's (nominal for emulated), not the thread's */
	uint64_t items; /* after the warm-up cut */
	/* thread-seconds in each state, after the cut, over all workers */
	double seconds[THREAD_STATES];
	/* Thread-seconds after the cut by the kernel's accounting (schedstat); NAN: not available. */
	double cpu_seconds, run_queue_seconds;
	/* Block I/O by the kernel's delay accounting (proc_text.h has its trap).  Locks by our own wrapper
	 * (thread_meter.h): waited for the exchange's and for the team's, part of it on a core (looking
	 * again) or on the run queue; held: the team's, by whoever of the stage had it (the exchange's is
	 * held for some 100 ns a visit and not timed).  NAN: not available, a note says why. */
	double io_wait_seconds, lock_wait_seconds, lock_held_seconds;
	/* What its slowest worker spends on an item since the start, on a core or in waits of its own, not for a core or a lock;
	 * and what the others spend.  NAN: not available, or there is one worker. */
	uint32_t slowest;
	double slowest_ns, others_ns;
	/* Of decode: working time for overhead.batch, which is in no item's service time; NAN: not known,
	 * which is none. */
	double overhead_seconds;
	/* Cores that its threads together may run on, by their affinity; 0: not known. */
	uint32_t cores;
	/* Samples/s if it never waited, at this worker count: samples / working seconds x workers.  For
	 * read, where files overlap in flight: samples / (wall time - blocked time). */
	double capacity;
	bool capacity_is_lower_bound; /* the stage was never saturated in a way that shows its limit */
	/* ns per item: working time of one item; read: submit to completion */
	struct histogram service;
};

/* Least, mean and largest of what was sampled over the measured part; NAN: not available, a note of the
 * measurement says why. */
struct device_range {
	double low, mean, high;
};

/* Why clocks were held down. */
struct device_throttle {
	char reason[NAME_BYTES]; /* "power cap", "thermal", ... */
	double share;            /* of the samples */
};

/* A device that computed steps (not: the CPU).  Times are the device's own (CUDA events mapped to the
 * monotonic clock), never a host clock around an asynchronous call. */
struct device_measurement {
	unsigned index;             /* among the node's, as the driver counts */
	char name[64];              /* "NVIDIA H200", "emulated h100", "test double ..." */
	char bus[32];               /* PCI address; "" */
	char precision[NAME_BYTES]; /* of the products: "bf16" */
	bool emulated;
	/* Seconds of the measured part in which a step, a copy to it, an exchange of gradients ran.  NAN: unknown. */
	double step_seconds, upload_seconds, sync_seconds;
	double sync_wait_seconds; /* of sync_seconds: waited for other devices, not exchanged; NAN: unknown */
	/* Of the exchange from its first bucket on, what passed beside the backward pass, in steps in which this device was the last
	 * and waited for none; NAN: unknown. */
	double sync_hidden_share;
	double idle_share;   /* of step_seconds: no kernel ran, inside a step; NAN: not measured */
	double launch_ns;    /* host time to launch a step, mean; NAN */
	double upload_bytes; /* copied to it */
	double flops_per_step;    /* exact, of the model's products; 0: no model */
	double achieved_flops;    /* per second of step_seconds */
	double peak_flops;        /* published dense peak at this precision; NAN: unknown device */
	double model_utilisation; /* flops of the measured part / wall time / peak; NAN */
	double clock_map_error_ns; /* largest error of the mapping of its event times; NAN: not mapped */
	double gradient_norm, nonfinite_share, activation_mean,
		activation_deviation; /* last sampled; NAN */
	bool deterministic; /* every library that computed promises the same bits for the same input */
	/* NVML's, see nvml_watch.h. */
	struct device_range sm_clock_mhz, memory_clock_mhz, power_w, temperature_c,
		memory_used_bytes, pcie_to_device_bytes_per_s, pcie_from_device_bytes_per_s;
	double sm_clock_max_mhz; /* the highest that the device has; NAN */
	double busy_share; /* "a kernel was resident" share; no measure of how busy the device was */
	double ecc_corrected, ecc_uncorrected; /* that came in during the run */
	struct device_throttle throttles[THROTTLES_MAX];
	size_t throttle_count;
	double samples; /* of NVML */
};

struct queue_measurement {
	/* "samples" (read, before decode), "batches" (before step), "uploaded" */
	char name[NAME_BYTES];
	uint32_t capacity;
	double mean_depth;              /* time-weighted, after the cut */
	double empty_share, full_share; /* of time */
};

/* The state of things at the end of one sampling window; all cumulative since the start. */
struct window {
	double t;         /* seconds since the repetition began */
	uint64_t samples; /* through the step */
	uint64_t bytes_read;
	double stage_seconds[STAGES_MAX][THREAD_STATES];
	/* By the kernel's accounting; NAN: not available. */
	double stage_cpu[STAGES_MAX], stage_run_queue[STAGES_MAX];
	uint32_t queue_depth[QUEUES_MAX]; /* at this moment */
	uint64_t resident_bytes;
	uint64_t file_bytes; /* of resident_bytes, mapped files and shared memory: not a leak */
	/* Held by allocations that stage threads made while it ran (memory.h), pools excluded. */
	uint64_t stage_allocated[STAGES_MAX];
	/* malloc's: in use, and free inside its arenas (fragmentation); NAN: not available. */
	double heap_used_bytes, heap_free_bytes;
	/* Core-seconds of this process, and on the cores that it may use: of everybody, taken by the hypervisor, all there were. */
	double own_cpu, machine_cpu, machine_steal, machine_time;
	/* Of the group that the measurement names; NAN: no quota, or not available. */
	double quota_cores; /* in force at this moment; 0: none */
	double quota_used;  /* core-seconds of all in the group */
	double quota_periods, quota_throttled, throttled_seconds;
	/* Of the first device, at this moment; NAN: not available. */
	float device_clock_mhz, device_power_w, device_temperature_c;
};

/* Reads at one depth for a while in the warm-up, after what was in flight before is done; never of the measured part.  Beside the
 * measured part, at the depth that is set, it tells a store that is slow (throughput follows depth) from one that is full. */
struct read_point {
	uint32_t depth;        /* files that may be in flight, all readers together */
	double seconds;        /* of the window */
	uint64_t files, bytes; /* completed in it */
	double latency_mean_ns, latency_deviation_ns; /* of these, submission to completion */
	double rate_error; /* standard error of files/seconds, as a share of it; NAN: unknown */
	double blocked_share; /* of the readers' time: no blob was free, so the depth was not used; NAN */
};

/* A block of an experiment: one stage alone, the others null. Reads: at one value of the key that says how many files are in
 * flight, or of one size of files. Another stage, or reads beside it: `files` are samples, no latency, and no key. The blocks
 * of a round ran one after the other, forth and back (A-B-B-A). */
#define READ_BLOCK_RANKS "ranks"
struct read_block {
	uint32_t point, round;
	char stage
		[NAME_BYTES]; /* compared with another stage; "": reads that are compared with reads */
	char key[NAME_BYTES]; /* "read.depth" */
	uint32_t value;
	bool as_set; /* the point's own value */
	/* "larger" or "smaller": half of the files; "": all.  READ_BLOCK_RANKS: all, by `value` ranks at the same time. */
	char part[NAME_BYTES];
	struct read_point read;
};

/* What the kernel counted on the disk under the data over the measured part, whoever read; NAN: `why`. */
struct store_measurement {
	char device[NAME_BYTES];   /* the whole disk: "nvme0n1"; "": none, or an older result */
	char why[STORE_WHY_BYTES]; /* why there are no counts; "": there are */
	double reads_per_s,
		bytes_per_s; /* requests and bytes after merging, so fewer and larger than files */
	double read_ns;      /* of a request, in its queue and on the disk, mean */
	double busy_share; /* of the time, some request was with it; a disk that serves several at once is not full at 1 */
	/* The tightest limits of control groups on reads from it, the groups that set them, and what these read of it.  NAN and
	 * "": no group sets one, or it changed meanwhile; used alone NAN: the group does not count. */
	double bytes_limit, bytes_used;       /* a second */
	double requests_limit, requests_used; /* a second */
	char bytes_group[QUOTA_GROUP_BYTES], requests_group[QUOTA_GROUP_BYTES];
};

/* Calls of one kind to a server of files, over the measured part. */
struct network_call {
	char name[NAME_BYTES];     /* "READ", "GETATTR"; "others": all kinds that had no room */
	double calls, retransmits; /* answered; sent again */
	/* Mean of a call: it waited for a slot or a place on a connection; from sending it to the
	 * reply; all together.  NAN: not known. */
	double queue_ns, round_trip_ns, execute_ns;
	double bytes_sent, bytes_received; /* with their headers; NAN: not known */
};

/* What a client of a network file system counted over the measured part; the kernel's counts are
 * of whoever used the mount. */
struct network_measurement {
	char protocol[NAME_BYTES]; /* "NFSv4.1"; "": no network file system, or an older result */
	char client[NAME_BYTES];   /* "kernel" or "nfs engine" */
	char server[NETWORK_SERVER_BYTES]; /* its name or address */
	char why[STORE_WHY_BYTES];         /* why there are no counts; "": there are */
	double seconds;                    /* counted over */
	unsigned connections;
	double request_bytes; /* the most that one READ asks for (rsize) */
	/* Of NULL or GETATTR calls beside the load, for which the server has hardly anything to do:
	 * they meet the same link and its queues.  NAN: not known; what was measured before the
	 * load is not meant. */
	double idle_round_trip_ns;
	/* TCP's smoothed round trip (tcp_info), which may include the time until an acknowledgement
	 * that the server delays; NAN: not known. */
	double wire_round_trip_ns;
	double link_bytes_per_s; /* of the interface towards the server; NAN: not known */
	/* Of the time, a reply had come in part and the rest had not: near 1 where the way paces the
	 * bytes, low where replies come in bursts.  NAN: not known. */
	double receiving_share;
	double packet_bytes;                          /* of TCP, from the server; NAN: not known */
	struct network_call calls[NETWORK_CALLS_MAX]; /* kinds that were called, most first */
	size_t call_count;
};

/* A round between ranks: the step (from 0, of the repetition), its last rank, and how long all others waited for that one alone. */
struct late_round {
	uint64_t step, late_ns;
	uint32_t rank;
};

/* What a rank saw of the rounds that it made with others, of those in the measured part.  Every rank has its own. */
struct ranks_measurement {
	uint32_t rank, count; /* which, of how many that trained */
	char host[RANK_HOST_BYTES];
	uint64_t rounds;
	double rounds_seconds; /* that they took, each from the end of the one before; 0: an older result */
	uint64_t bytes; /* of gradients, each round */
	/* Waited for the last rank, having computed, and exchanged gradients after that; all rounds together. */
	double wait_seconds, exchange_seconds;
	/* Rounds in which it was the last, and how long all others waited for it alone in them. */
	uint64_t last_rounds;
	double late_seconds;
	/* Of all rounds, whichever rank was the last: how long all others waited for it alone; and the rounds in which they waited
	 * longest, by that.  Segments of the time are counted as a whole, and the one in which the measured part begins is not. */
	struct histogram lateness;
	struct late_round worst[LATE_ROUNDS_MAX];
	size_t worst_count;
	/* In those: from the first bucket until the sums were there, and how much of that passed beside the step.  The last rank
	 * waits for nobody: this is what exchanges take. */
	double own_seconds, own_hidden_seconds;
	double siblings_cores; /* that other ranks of its node used; NAN: not known */
	uint32_t
		crowd; /* ranks that may run on a core of its own, itself among them; 0: not known */
	double clock_error_ns; /* of its clock against the leader's: as much as a lateness may be wrong; 0: they have one clock */
};

/* What checkpoints took, of those that ended in the measured part (of the whole repetition where none did).  A stall is what
 * the step's thread waited: for all of a checkpoint (sync), or for the writer and the copy (async). */
struct checkpoint_measurement {
	uint32_t every; /* steps */
	bool async;
	bool direct;   /* past the page cache */
	bool verified; /* each was read back */
	bool outside;  /* all told here ended outside of the measured part */
	uint64_t count;
	uint64_t bytes;       /* of each */
	double stall_seconds; /* all of them; outside: of none in the measured part */
	double stall_max_ns;
	/* Sums over all of them; wait: for the writer of the one before. */
	double wait_seconds, copy_seconds;
	double write_seconds, sync_seconds, rename_seconds, verify_seconds;
	double copy_bytes_per_s; /* into the staging buffer; sync: as tried before the run; NAN */
	char path[STORE_WHY_BYTES]; /* the folder, cut */
};

/* What evaluations took, of those that ended in the measured part (of the whole repetition where none did).  The step's thread
 * stands still for all of one: it waits for input, or it works. */
struct evaluation_measurement {
	uint32_t every;      /* steps */
	uint32_t batch_size; /* samples of its steps */
	unsigned workers;
	bool computed; /* its steps were, by the backend: the forward pass; else they were waited for */
	bool outside;          /* all told here ended outside of the measured part */
	uint64_t samples_each; /* samples of one */
	uint64_t count;
	uint64_t samples; /* good ones, of all of them */
	uint64_t bad_samples;
	double stall_seconds; /* all of them; outside: of none in the measured part */
	double stall_max_ns;
	double starved_seconds, working_seconds; /* of stall_seconds */
	/* With run.verify, over the batches of one in their order; "": not known, or they differed. */
	char checksum[NAME_BYTES];
	char path[STORE_WHY_BYTES]; /* the data set, cut */
};

enum measurement_status {
	MEASUREMENT_OK,
	MEASUREMENT_UNSTEADY, /* ran, but never settled or left the steady state: note says */
	MEASUREMENT_FAILED,   /* error says */
	MEASUREMENT_INTERRUPTED,
	MEASUREMENT_STATUSES
};

struct measurement {
	/* Set by the sweep. */
	uint32_t point, repeat;
	double started; /* seconds since the epoch, UTC */

	enum measurement_status status;
	char error[ERROR_TEXT_BYTES];

	double wall_seconds; /* of the whole repetition, warm-up included */
	/* In which the whole process did not run (stopped, frozen), and when the longest such time began; the measured part is
	 * without it, or the repetition is unsteady.  0: none; NAN: an older result.  Of the machine: as it seems. */
	double stood_still_seconds, stood_still_at;
	bool machine_stood_still;
	double cut_seconds; /* warm-up sliced off; what follows is measured */
	/* The least that is sliced off: measure.warmup, and what reads at other depths made of it.  From there to the cut the
	 * pipeline ran as it is set.  NAN: an older result. */
	double warmup_seconds;
	double measured_seconds;
	uint64_t samples, batches; /* in the measured part */
	uint64_t bad_samples;      /* that could not be decoded or read, in the whole run */
	double bad_share;          /* of them among the samples of the measured part; NAN unknown */
	double throughput;         /* samples/s in the measured part, good samples only */
	uint64_t epochs;           /* finished, whole run */

	double step_utilisation; /* device time / measured time; emulated: nominal time */
	/* Device time / time from the end of the first step to that of the last, warm-up included: AU, as storage benchmarks
	 * publish it.  NAN: an older result, or fewer than two steps. */
	double accelerator_utilisation;
	double step_wait_share; /* share of the measured time that the step waited for a batch */
	double oversleep_mean_ns, oversleep_max_ns; /* emulated; NAN otherwise */
	double loss_first, loss_last;               /* NAN where there is none */
	double flops_per_sample; /* of the step, forward and backward; NAN: its model is not known */

	uint64_t bytes_read; /* by the source, measured part */
	/* Requests for files, or parts of them, in the measured part; 0: an older result. */
	uint64_t read_requests;
	uint64_t storage_files, storage_bytes; /* that hold the samples; 0: an older result */
	double bytes_read_per_s;
	double disk_bytes_per_s; /* from /proc/self/io, really fetched from storage; NAN */
	double page_cache_share; /* of the bytes read, served from the page cache; NAN: note says why */
	double resident_before; /* share of the data set in the page cache before; NAN */
	/* read.cache = cold: share of the measured samples that were read after the first epoch, when the page cache had
	 * them; 0: none, or it was not asked for, or files are read past that cache. */
	double after_cold;
	uint64_t rss_peak_bytes, rss_growth_bytes,
		pool_bytes; /* pools: the bound that was printed */

	double accounted;   /* sum of the states of all threads / sum of their wall times */
	double cpu_seconds; /* of the process, measured part */
	/* Of those, in the kernel; and how often one of its threads lost or gave up its core and wanted to go on (involuntary
	 * context switches).  NAN: not known. */
	double system_seconds, switches;
	/* Cores that its threads may run on; 0: an older result, whose loads are of the whole node.  Others' CPU time meanwhile, as
	 * cores (/proc/stat): on these, and on those that it may not use; NAN. */
	uint32_t cores_allowed;
	/* Cores that they could run on if no affinity mask held them: those of the node that its cpusets allow; 0: not known. */
	uint32_t cores_reachable;
	double cores_busy_outside, cores_busy_elsewhere;
	/* The CPU quota of a control group above the process: of several the one that throttled most, else the
	 * tightest.  "" and NAN: there is none, or a note says why it is not known. */
	char quota_group[QUOTA_GROUP_BYTES];
	double quota_cores; /* that was in force where it throttled most */
	double quota_used;  /* cores that all in the group used; NAN: it does not tell */
	/* Of the group's periods in which it had runnable threads (nr_throttled / nr_periods): used up before
	 * the end.  Unlike the throttled time, which is a sum over run queues, it is at most 1 on any machine.
	 * 0: no quota; NAN: a note says why. */
	double throttled_share;
	double throttled_seconds; /* summed over run queues; NAN as above */
	double steal_share;       /* of its cores' time, taken by the hypervisor; NAN */
	struct store_measurement store;
	struct network_measurement network;
	/* Workers started anew with an epoch (decode.persistent = off): how often, and how long the step's queue stayed empty
	 * from the last batch of the epoch before to the first one. */
	uint64_t restarts;
	double restart_seconds;
	struct checkpoint_measurement checkpoint[1]; /* none: checkpoint.every = 0 */
	size_t checkpoint_count;
	struct evaluation_measurement evaluation[1]; /* none: evaluate.every = 0 */
	size_t evaluation_count;
	struct ranks_measurement ranks[1]; /* none: it trained alone */
	size_t ranks_count;

	struct read_point
		read_points[READ_POINTS_MAX]; /* none: why, in a note, where it was to be tried */
	size_t read_point_count;
	char engine[NAME_BYTES]; /* that read, to be shown */
	char read_pages
		[NAME_BYTES]; /* that it read into (memory_pages_name); "": into few, or an older result */
	struct workload_facts facts;
	uint64_t dataset_samples;
	uint64_t
		batch_bytes; /* of the samples of a batch, as workers leave them; 0: an older result */
	double file_bytes_mean;

	/* With run.verify: the sum over the samples of epoch 0 of hash(bytes, label, place in the order of all ranks), and how
	 * many samples and ranks are in it.  A job's leader has the sum over its ranks, which is what one process has; each
	 * other rank has its share. */
	bool has_checksum;
	uint64_t checksum, checksum_samples;
	uint32_t checksum_ranks;

	struct stage_measurement stages[STAGES_MAX];
	size_t stage_count;
	struct queue_measurement queues[QUEUES_MAX];
	size_t queue_count;
	struct device_measurement
		devices[DEVICES_MAX]; /* none: the step is the CPU's, or nothing */
	size_t device_count;
	struct window *windows; /* window_count of them; owned */
	size_t window_count;
	double window_seconds;

	char notes
		[NOTES_MAX]
		[NOTE_BYTES]; /* engine, huge pages, fallbacks, injected conditions, missing counters */
	size_t note_count;
};

/* NULL: it has none. */
const struct stage_measurement *measurement_stage(const struct measurement *m, enum stage_id id);
const struct stage_measurement *measurement_stage_named(
	const struct measurement *m, const char *name);
/* Its place among the stages; stage_count: it has none. */
size_t measurement_stage_at(const struct measurement *m, const char *name);
void device_measurement_init(struct device_measurement *device); /* nothing is known of it yet */
/* Nothing is known of it, for that reason. */
void store_measurement_init(struct store_measurement *store, const char *why);
void network_measurement_init(struct network_measurement *network, const char *why);
/* Adds calls to those of their kind, or beside them, or to "others" where there is no room: sums,
 * and means over the calls of which they are known. */
void network_add_call(struct network_measurement *network, const struct network_call *call);
void measurement_release(struct measurement *m); /* safe on {0} */
/* How long threads, CPU time and items were counted: between windows, where measured_seconds, which is of the throughput, is
 * between completions of steps and up to a step shorter.  Without states of threads: measured_seconds. */
double measurement_counted_seconds(const struct measurement *m);
/* Reads of the measured part that were timed each for itself: files, or large requests
 * (workload_facts.reads_large).  0: nothing is known of reading. */
double measurement_reads(const struct measurement *m);
double measurement_read_bytes(const struct measurement *m); /* mean of one; NAN: not known */
/* The measured part as one point, whose rate has no known error; depth: files that were in flight. False: nothing is known of reading. */
bool measurement_read_point(const struct measurement *m, struct read_point *out);
/* A stage alone: how many samples it passed on in which time, and rate_error from the spread of its service times; the rest is
 * unknown. False: it passed none on. */
bool measurement_stage_point(
	const struct measurement *m, const char *stage, struct read_point *out);
/* Whether read.cache = cold was asked for and did not last: a sentence without its full stop. */
enum { COLD_ENDED_BYTES = 320 };
bool measurement_cold_ended(double after_cold, double page_cache_share, char out[COLD_ENDED_BYTES]);
void measurement_note(struct measurement *m, const char *format, ...)
	__attribute__((format(printf, 2, 3))); /* dropped when full */

/* --- a point ---------------------------------------------------------------------------------- */

/* What the repetitions of a point come to, and which of them count. */

enum point_status { POINT_OK, POINT_UNSTEADY, POINT_FAILED, POINT_INTERRUPTED, POINT_STATUSES };

/* For all that is said of a point: the good ones; and, where fewer than half of all are good, those that never settled, too. */
enum point_status point_status_of(const size_t with_status[MEASUREMENT_STATUSES]);
bool point_counts(enum point_status point, enum measurement_status repetition);

const char *point_status_name(enum point_status status); /* "ok", "unsteady", ... */

/* The limit of a stage on this node, and how it was found. */
struct stage_limit {
	char stage[NAME_BYTES];
	double capacity;      /* samples/s */
	char how[NOTE_BYTES]; /* "alone: memory source, null step, 2 workers" */
	/* The swept keys that it was measured with, "" in older results: "decode.workers=2 batch.size=64" */
	char settings[NOTE_BYTES];
};

/* --- as JSON ---------------------------------------------------------------------------------- */

/* A repetition as one JSON object, and back without loss: histograms as the buckets that hold
 * something ([[bucket, count], ...]), windows as rows of numbers whose columns are named beside
 * them. */

/* What a stage does in the pipeline, by which analysis knows it: a name beside it may be any.  Older results have the name alone, which
 * was the role. */
#define FIELD_ROLE(type, member) FIELD_AS(type, member, "role", FIELD_ALIAS)

/* NULL without memory. */
json_t *measurement_to_json(const struct measurement *m);

/* Fills m (initialised here; released by the caller in any case).  -EINVAL with what is wrong. */
int measurement_from_json(struct measurement *m, const json_t *object, struct error *err);
/* False of results that are older than the fact (record.h). */
bool measurement_json_has_fact(const json_t *object, const char *name);

/* Members of a device that are ranges: [least, mean, largest] or null.  Throttle reasons are [[reason, share of the
 * samples], ...]. */
enum { DEVICE_RANGES = 7 };
enum { READ_BLOCK_FIELDS = 8 };
extern const struct field read_block_fields[READ_BLOCK_FIELDS];
extern const struct field device_ranges[DEVICE_RANGES];
extern const struct field device_throttles_field;

#endif
