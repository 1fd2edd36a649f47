/* One repetition's parts.  Its threads and the control thread share them all; what several threads
 * write is behind a lock or atomic, the rest stays as it was when the threads started. */
#ifndef MLBENCH_PIPELINES_REPETITION_H
#define MLBENCH_PIPELINES_REPETITION_H

#include "harness/base/clock.h"
#include "harness/base/memory.h"
#include "harness/measure/data_store.h"
#include "harness/measure/mountstats.h"
#include "harness/measure/proc_text.h"
#include "harness/measure/thread_meter.h"
#include "harness/measure/timeline.h"
#include "harness/record/measurement.h"
#include "pipelines/checkpoints.h"
#include "pipelines/crew.h"
#include "pipelines/devices.h"
#include "pipelines/dither.h"
#include "pipelines/evaluations.h"
#include "pipelines/exchange.h"
#include "pipelines/injection.h"
#include "pipelines/overhead.h"
#include "pipelines/pipeline.h"
#include "pipelines/placement.h"
#include "pipelines/sample_account.h"
#include "workloads/ranks/gradients.h"
#include "workloads/ranks/ranks.h"
#include "workloads/source/source.h"

/* A stage of a repetition as the instrument sees it, whatever its threads do; a stage that the run
 * does not have has no workers. */
struct stage {
	const char *name;
	unsigned workers;
	bool per_batch;
	bool threadless; /* nobody's threads: there is nothing that the kernel would know of it */
	/* (workers); owned by who opened it; NULL with the profiler off */
	struct thread_meter *meters;
};

enum queue_id { QUEUE_SAMPLES, QUEUE_BATCHES, QUEUE_UPLOADED, QUEUE_IDS };

/* Everything that is known at one moment, cumulative since the start. */
struct edge {
	uint64_t t_ns; /* since the start */
	uint64_t samples, batches;
	struct source_counts read;
	struct thread_times stages[STAGE_IDS]; /* summed over the stage's threads */
	bool accounted[STAGE_IDS];             /* the kernel told CPU times */
	struct queue_integrals queues[QUEUE_IDS];
	uint32_t queue_depth[QUEUE_IDS];
	uint32_t being_read; /* files with the readers */
	struct upload_totals uploads[DEVICES_MAX];
	struct round_sums rounds[DEVICES_MAX];
	struct process_usage usage;
	struct cpu_quota_use quotas[CPU_QUOTAS_MAX];
	struct data_store_use store;
	struct network_counts network; /* of an engine that is a client itself */
};

enum { EDGES_MAX = WINDOWS_MAX + 1 };

/* What the control thread looks at: a snapshot of every cumulative count at each edge of a window.
 * All rates and shares are differences of two edges, so the warm-up can be cut at any edge after
 * the run. */
struct monitor {
	uint64_t start_ns, window_ns;
	cpu_set_t cores;          /* that the threads may run on */
	unsigned reachable;       /* if no affinity mask held them; 0: not known */
	struct cpu_quotas quotas; /* as they were when it was opened; edges have those in force */
	struct data_store store;
	struct edge *edges; /* (EDGES_MAX); owned */
	/* (EDGES_MAX); of the edges, of an NFS mount; NULL: it is none.  Owned. */
	struct mountstats *mounts;
	size_t count;
	struct nvml_watch *nvml; /* of the devices that compute (nvml.h); NULL: none is watched */
};

/* A control thread that looks again so late did not run: neither did the rest of the process. */
#define STOPPED_NS (5 * NS_PER_S)
/* One that is late by less may have waited for a core.  If meanwhile nothing moved and nobody used a core, although both
 * are usual in such a time, all stood still at once. */
#define STOPPED_LEAST_NS (300 * NS_PER_MS)

#define USUAL_LEAST_NS (200 * NS_PER_MS) /* for what is usual to be known */

enum { STOPS_MAX = 16, PATIENCE_MOVES = 8 };

struct stop {
	uint64_t begin_ns, end_ns;
};

/* How long nothing has moved; all zero before the first look. */
struct patience {
	uint64_t moved, moved_at_ns; /* files read and batches stepped, and when they last grew */
	uint64_t cpu_ns;             /* of the process */
	uint64_t looked_at_ns;
	uint64_t first_ns, first_moved, first_cpu_ns;
	uint64_t stopped_ns; /* in which the process did not run: stopped, or frozen */
	struct stop stops[STOPS_MAX];
	size_t stop_count;
};

static inline bool patience_was_stopped(
	const struct patience *p, uint64_t moved, uint64_t cpu_ns, uint64_t gap_ns)
{
	static const double FEW =
		0.4; /* of what is usual; the rest of a look and what was ready make some */
	static const double CPU_LEAST_NS = 20e6;
	const uint64_t ran_ns = p->looked_at_ns - p->first_ns - p->stopped_ns;
	if (gap_ns >= STOPPED_NS)
		return true;
	if (gap_ns < STOPPED_LEAST_NS || ran_ns < USUAL_LEAST_NS)
		return false;
	const double share = (double)gap_ns / (double)ran_ns;
	const double moves = (double)(p->moved - p->first_moved) * share;
	const double cpu = (double)(p->cpu_ns - p->first_cpu_ns) * share;
	const bool still = (double)(moved - p->moved) < FEW * moves;
	const bool idle = (double)(cpu_ns - p->cpu_ns) < FEW * cpu;
	return moves >= PATIENCE_MOVES && still && (idle || cpu < CPU_LEAST_NS);
}

/* Returns for how long nothing has moved while the process ran. */
static inline uint64_t patience_look(
	struct patience *p, uint64_t moved, uint64_t cpu_ns, uint64_t now_ns)
{
	const uint64_t gap_ns = p->looked_at_ns > 0 ? now_ns - p->looked_at_ns : 0;
	if (p->looked_at_ns == 0) {
		p->first_ns = now_ns;
		p->first_moved = moved;
		p->first_cpu_ns = cpu_ns;
	} else if (patience_was_stopped(p, moved, cpu_ns, gap_ns)) {
		if (p->stop_count < STOPS_MAX)
			p->stops[p->stop_count++] = (struct stop){p->looked_at_ns, now_ns};
		p->stopped_ns += gap_ns;
		p->moved_at_ns += gap_ns;
	}
	p->looked_at_ns = now_ns;
	p->cpu_ns = cpu_ns;
	if (moved != p->moved || p->moved_at_ns == 0) {
		p->moved = moved;
		p->moved_at_ns = now_ns;
	}
	return now_ns - p->moved_at_ns;
}

/* Everything one repetition owns. */
struct run {
	const struct config *config;
	const struct dataset *dataset; /* samples below */
	const struct dataset *files;
	struct dataset samples; /* of files, for this configuration (sample_cut_files) */
	struct pipeline_plan plan;
	const struct backend_ops *backend; /* of the step */
	struct measurement *m;
	bool timed;
	bool evaluates; /* a loader alone, for the evaluations of another run; not timed */
	bool wants_timeline;
	bool interrupted;
	unsigned cores;
	uint64_t warmup_ns; /* configured; when conducted: as it was */
	uint64_t duration_ns, segment_ns;
	struct patience patience;
	struct dither dither; /* {0}: no other depth is tried */
	struct memory_block blob_block, slot_block, staging_block;
	struct pipeline_pools *kept; /* between repetitions; NULL: nothing is */
	struct placement placement;
	struct injection injection;
	struct overhead overhead;
	bool injection_is_open, bad_is_open, crew_is_open;
	struct bad_samples bad;
	struct source *source;
	struct exchange exchange;
	struct first_epoch first_epoch;
	struct crew crew;
	struct stage stages[STAGE_IDS];
	struct one_reader *readers; /* (plan.reader_threads); NULL: none was started */
	struct worker *workers;     /* (plan.decode_workers); likewise */
	pthread_t team;             /* worker 0, who starts the others */
	bool team_started;
	struct backend_group *group; /* NULL: one device */
	struct ranks *ranks;         /* of which this one trains; NULL: it is alone */
	struct gradients *gradients; /* exchanged with other ranks; NULL: this one is alone */
	struct rounds rounds;
	struct devices devices;
	struct checkpoints *checkpoints; /* NULL: none */
	struct evaluations *evaluations; /* NULL: none */
	struct monitor monitor;
	struct timeline *timeline; /* NULL: none */
};

/* The meter of a thread of a stage; NULL: not timed, or there is no such stage. */
static inline struct thread_meter *run_meter(
	const struct run *run, enum stage_id stage, unsigned thread)
{
	struct thread_meter *const meters = run->stages[stage].meters;
	return meters ? &meters[thread] : NULL;
}

static inline void seat_open(struct seat *seat, struct thread_meter *meter)
{
	seat->clock = meter ? &meter->clock : NULL;
	seat->lock = meter ? &meter->lock : NULL;
}

/* One more log of the timeline, before the threads start; NULL: there is no timeline. */
static inline struct timeline_log *run_timeline_log(
	struct run *run, enum timeline_track track, const char *name, unsigned number)
{
	return run->timeline ? timeline_add_log(run->timeline, track, name, number) : NULL;
}

/* --- pipeline.c ------------------------------------------------------------------------------ */

/* Pools, exchange and source, after the rest was opened; and all that a run has, and itself. */
int run_open_loader(struct run *run, struct error *err);
void run_close(struct run *run);

/* --- loader.c: the threads that read and decode -------------------------------------------- */

/* Starts the reader threads.  Each keeps as many files in flight as its source is worth, as long as
 * there are blobs.  States: working while reads are in flight or being handed over (the stage's
 * device is at work, also when the thread sleeps for it); blocked when it wants a blob and none is
 * free; starved only when the run has no more samples to read. */
int readers_start(struct run *run, struct error *err);

/* Starts the decode workers: OpenMP threads that turn ready files into samples, straight into their
 * place in a batch.  States: starved (nothing is ready), working, blocked (the next batch has no
 * slot). */
int team_start(struct run *run, struct error *err);

/* False: one hangs in the kernel; what it may still touch must stay. */
bool loader_join(struct run *run, uint64_t deadline_ns);
void loader_free(struct run *run); /* after loader_join; safe on what never started */

/* --- conduct.c: the control thread --------------------------------------------------------- */

/* data: where the samples lie.  0 or -ENOMEM. */
int monitor_open(struct monitor *monitor, const struct placement *placement, const char *data);
void monitor_close(struct monitor *monitor); /* safe on {0} */

/* Files that were read, batches that were stepped, and what checkpoints and evaluations did: it grows while anything goes on. */
uint64_t run_moved(const struct run *run);

/* What an edge would be now, kept by nobody.  After the first one. */
void monitor_peek(struct run *run, struct edge *edge);

/* The first device at a moment; unknown where none is watched. */
void monitor_device_window(const struct monitor *monitor, uint64_t t_ns, struct window *window);

/* From the start of the threads' work to the last edge; then everybody was told to stop.
 * run->warmup_ns is as long as it was, run->interrupted says whether *control->stop ended it. */
void conduct(struct run *run, const struct pipeline_control *control,
	const struct pipeline_limits *limits);

/* --- collect.c ----------------------------------------------------------------------------- */

/* After the threads have ended: sets m's status to OK, UNSTEADY or INTERRUPTED. traces may be
 * NULL. 0 or -ENOMEM. */
int collect(const struct run *run, struct measurement *m, struct traces *traces);

#endif
