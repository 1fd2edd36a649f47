/* One replay under way: the pipeline's threads as state machines on simulated time.  Each does what its
 * counterpart in pipelines/ does between two waits, by the same law (harness/flow/flow.h), and then either
 * begins a timed piece of work or sleeps; whoever can go on is woken when the event is over, as the exchange
 * does it. */
#ifndef MLBENCH_ANALYZE_REPLAY_LINE_H
#define MLBENCH_ANALYZE_REPLAY_LINE_H

#include "harness/analyze/replay_cores.h"
#include "harness/analyze/replay_costs.h"
#include "harness/flow/flow.h"

/* A file on its way: what its sample costs, beside what the law has of it. */
enum { SAMPLE_COSTS = COST_DECODE_WAIT + 1 };

struct replay_blob {
	double cost[SAMPLE_COSTS]; /* ns of this sample, by enum replay_cost */
	uint64_t ticket, batch;
	uint32_t slot; /* of its batch, from when a worker took it */
	uint32_t reader;
};

struct replay_files {
	struct replay_cursor cursors[SAMPLE_COSTS];
	struct replay_blob *blobs;
};

/* The next ticket with a free blob; there are both. */
static inline uint32_t replay_files_take(struct replay_files *f, struct flow *flow, uint32_t reader)
{
	const uint32_t index = flow_pool_take(&flow->blobs);
	const struct flow_ticket ticket = flow_take_ticket(flow);
	struct replay_blob *blob = &f->blobs[index];
	for (int cost = 0; cost < SAMPLE_COSTS; cost++)
		blob->cost[cost] = replay_cursor_next(&f->cursors[cost]);
	blob->ticket = ticket.number;
	blob->batch = ticket.batch;
	blob->reader = reader;
	return index;
}

/* What an event is for, in the order in which simultaneous ones of a heap are taken; the lower bits are
 * the index of the thread, or of the blob. */
enum replay_event_kind {
	EVENT_STEP,
	EVENT_UPLOAD,
	EVENT_WORKER,
	EVENT_READER,
	EVENT_FILE,
	EVENT_LOOK,
	EVENT_SYNC
};
enum { EVENT_INDEX_BITS = 28, EVENT_INDEX_MASK = (1 << EVENT_INDEX_BITS) - 1 };

static inline uint32_t replay_event_id(enum replay_event_kind kind, uint32_t index)
{
	return (uint32_t)kind << EVENT_INDEX_BITS | index;
}

/* Core time of a thread that comes to a core only to go on: a switch between threads. */
enum { REPLAY_SWITCH_NS = 1000 };
enum { REPLAY_COMPUTING_KINDS = EVENT_READER + 1 }; /* those of threads that can be on cores */

/* What a thread does when it is next heard of. */
enum worker_phase {
	WORKER_VISITS,
	WORKER_ENTERS,
	WORKER_LOCKS,
	WORKER_HOLDS, /* the lock, off the cores from now on */
	WORKER_UNLOCKS,
	WORKER_COMPUTES,
	WORKER_WAITED
};

struct replay_worker {
	double factor; /* on the time of its items */
	double began;  /* when it took them */
	uint32_t next_idle;
	uint32_t items, at;
	enum worker_phase phase;
	enum thread_state state;
	bool woken; /* and not at the exchange yet */
	uint32_t blobs[FLOW_CHUNK_MAX];
};

struct replay_team {
	struct replay_worker *workers;
	uint32_t count;
	uint32_t idle;             /* list of sleepers, last come first */
	enum thread_state idle_in; /* all of them */
	uint32_t waiting
		[THREAD_STATES]; /* workers: sleepers, and the woken that are not there yet */
	bool apart;              /* items have parts beside their CPU time, and go one by one */
	bool locked, lock_woken; /* lock_woken: one that waited is on its way to it */
	uint32_t *lock_queue, lock_first, lock_waiting; /* ring of (count) */
};

enum reader_phase { READER_VISITS, READER_SUBMITS, READER_SUBMITTED, READER_REAPS, READER_WAITS };

struct replay_reader {
	uint32_t *taken, *done; /* (depth) blobs each */
	uint32_t taken_count, submitted, done_count;
	uint32_t in_flight; /* the done ones included */
	uint32_t next_idle;
	enum reader_phase phase;
	bool is_short;     /* got fewer blobs than it wanted */
	bool woken;        /* and not at the exchange yet */
	bool blocked;      /* waits while it is short of blobs */
	bool timer_set;    /* its EVENT_LOOK is in the heap */
	double looks_next; /* while blocked with files in flight: when it looks for a blob again */
};

struct replay_crew {
	struct replay_reader *readers;
	uint32_t count, depth;
	uint32_t idle, idle_count, blocked;
	bool apart;        /* files take time in flight */
	double link_free;  /* when the device will have served all that was submitted */
	double link_given; /* ns of its time so far */
};

enum step_phase { STEP_FETCHES, STEP_LAUNCHES, STEP_ENDS, STEP_SYNCS };
enum upload_phase { UPLOAD_FETCHES, UPLOAD_STAGES, UPLOAD_ENDS };

/* Upload and step of one device.  The one that takes batches from the exchange is its consumer. */
struct replay_device {
	enum step_phase step;
	enum upload_phase upload;
	bool step_waits, upload_starved, upload_blocked;
	bool step_woken, upload_woken;
	uint32_t
		held; /* by its consumer: the slot that is given back at the next visit, or FLOW_NONE */
	uint32_t computing; /* threads of the step that have not ended their part */
	struct flow_staging staging;
	bool step_holds; /* a staged batch */
	double factor;   /* on the time that it computes */
};

struct replay_ends {
	struct replay_cursor upload_cost, host_cost, device_cost, sync_cost;
	struct replay_device devices[DEVICES_MAX];
	uint32_t count; /* devices */
	uint32_t staging, step_threads;
	uint32_t gathered; /* devices that have computed their step of this round */
	bool on_cores;     /* the step's host time is its computing */
	bool copies_off_cores;
	uint64_t batches; /* through the step */
};

enum replay_level {
	LEVEL_READ_BLOCKED, /* threads */
	LEVEL_DECODE_STARVED,
	LEVEL_DECODE_BLOCKED,
	LEVEL_UPLOAD_STARVED,
	LEVEL_UPLOAD_BLOCKED,
	LEVEL_STEP_STARVED,
	LEVEL_STEP_BUSY,
	LEVEL_STEP_BLOCKED,
	LEVEL_SYNC_BUSY,
	LEVEL_LOCK,
	LEVEL_CORES,
	LEVEL_SAMPLES,
	LEVEL_BATCHES,
	LEVEL_ORDER_WAIT,
	LEVELS
};

struct replay {
	double now; /* ns */
	struct replay_cores cores;
	struct replay_heap timed; /* key: ns */
	struct flow flow;         /* who gets what, and who is woken */
	struct replay_files files;
	struct replay_team team;
	struct replay_crew crew;
	struct replay_ends ends;
	uint32_t first_thread[REPLAY_COMPUTING_KINDS]; /* on the cores, by kind */
	uint32_t *event_of; /* (threads): what ends with the work of one */
	double visit_ns, wake_ns, lock_off_cores;
	uint32_t prefetch_depth;
	uint64_t events, events_max, batches_end;
	double integral[LEVELS]; /* over the time since replay_clear, ns */
};

/* Puts every thread to its first visit; the struct and its arrays are set up (replay.c). */
void replay_start(struct replay *r);
/* Until so many batches are through the step.  0; -E2BIG: events_max; -EDEADLK: nothing can move. */
int replay_until(struct replay *r, uint64_t batches);

static inline bool replay_over(const struct replay *r)
{
	return r->ends.batches >= r->batches_end;
}

/* A thread begins to wait off the cores for ns > 0. */
static inline void replay_wait(struct replay *r, uint32_t id, double ns)
{
	replay_heap_push(&r->timed, (struct replay_event){.key = r->now + ns, .id = id});
}

/* A thread begins ns > 0 of work on the cores. */
static inline void replay_compute(
	struct replay *r, enum replay_event_kind kind, uint32_t index, double ns)
{
	replay_cores_begin(&r->cores, r->first_thread[kind] + index, ns);
}

/* A thread does its event now. */
void replay_dispatch(struct replay *r, uint32_t id);

/* The same of one that was off the cores: with time slices, it first waits for a core if all are busy. */
static inline void replay_resume(struct replay *r, uint32_t id)
{
	const uint32_t kind = id >> EVENT_INDEX_BITS;
	if (kind < REPLAY_COMPUTING_KINDS && replay_cores_all_busy(&r->cores))
		replay_compute(
			r, (enum replay_event_kind)kind, id & EVENT_INDEX_MASK, REPLAY_SWITCH_NS);
	else
		replay_dispatch(r, id);
}

static inline void replay_wake(struct replay *r, uint32_t id)
{
	if (r->wake_ns > 0)
		replay_wait(r, id, r->wake_ns);
	else
		replay_resume(r, id);
}
/* Each goes on until it waits for something; wake: whoever sleeps and can go on; true: some did. */
void replay_worker_go(struct replay *r, uint32_t index);
bool replay_wake_workers(struct replay *r);
void replay_reader_go(struct replay *r, uint32_t index);
void replay_file_done(struct replay *r, uint32_t blob);
void replay_reader_look(struct replay *r, uint32_t index);
bool replay_wake_readers(struct replay *r);
void replay_upload_go(struct replay *r, uint32_t device);
void replay_step_go(struct replay *r, uint32_t device);
void replay_sync_done(struct replay *r);
bool replay_wake_ends(struct replay *r);

#endif
