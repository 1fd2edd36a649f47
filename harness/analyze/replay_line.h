/* What a replay under way consists of, for its set-up (replay.c) and its events (replay_line.c). */
#ifndef MLBENCH_ANALYZE_REPLAY_LINE_H
#define MLBENCH_ANALYZE_REPLAY_LINE_H

#include "harness/analyze/replay.h"
#include "harness/flow/flow.h"

#include <stdbool.h>
#include <stdint.h>

/* The few pending events of a replay: a binary heap by (key, id), in memory of the caller's.  Most
 * events end one thing and begin another of the same kind, so the first place is left open by a pop and
 * filled by the push that follows, which then costs one way down instead of two. */
struct replay_event {
	double key;
	uint32_t id;
};

struct replay_heap {
	struct replay_event *events; /* borrowed, large enough for all that can be pending */
	uint32_t count;              /* the open place included */
	bool open;                   /* events[0] was taken */
};

/* Cores shared by all that is runnable, in virtual time: the service that each thread on a core has had
 * since the start, at the rate that the load leaves.  A piece of work ends when virtual time has moved on
 * by its length, so the order of ends never changes and a step costs O(log n).  (Weighted fair queueing.)
 *
 * Without time slices all that is runnable is on the cores at once, each at its part of them: processor * sharing.  With slices there is a place for each core; who has used least comes next, and stays for a
 * slice while others wait, as under a kernel's scheduler: a sample can be half done for as long.  A thread
 * that wakes up is given at most a slice's credit, and takes the place of one that has used more. */
static const uint32_t REPLAY_NOBODY = UINT32_MAX;

struct replay_thread {
	double used;      /* service in all; raised after a sleep, so that no credit is saved up */
	double from;      /* virtual time when it came to its place */
	double slice_end; /* virtual time */
	double end;       /* of its work: virtual time on a core; what is left while it waits */
};

struct replay_cores {
	struct replay_heap
		running; /* by virtual time of the end of work or of the slice; ids: threads */
	struct replay_heap waiting; /* by service used; empty without slices */
	struct replay_thread *threads;
	uint32_t places, on_place, in_line; /* counts; places is UINT32_MAX without slices */
	uint32_t
		going_on; /* the thread whose work has just ended and whose place is kept, or NOBODY */
	double slice_ns, floor; /* floor: of service used, by those that came to a place */
	double virtual_now;
	double slowness; /* ns of time for a ns of service, at this load */
	double busy;     /* cores, at this load, those for outside included */
	/* (all threads + 1) by how many are runnable: the two above; borrowed */
	double *slowness_of, *busy_of;
};

/* The series of the costs, item by item: as they are, or in blocks drawn at random.  Costs of one stage
 * draw the same blocks, so that what was recorded of one item stays together. */
struct replay_cursor {
	const float *ns;
	size_t count;          /* 0: the cost is nothing */
	size_t at, left;       /* next entry; entries left of the block */
	size_t block, offset;  /* block 0: the sequence as it is */
	uint64_t stream, next; /* random numbers of the stage; number of the next block */
	double scale;
};

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
	/* By blob; of workers that read, by slot and place in the batch, (slots x batch_size). */
	struct replay_blob *blobs;
	uint32_t batch_size;
};

/* What an event is for, in the order in which simultaneous ones of a heap are taken; the lower bits are
 * the index of the thread, or of the blob. */
enum replay_event_kind {
	EVENT_STEP,
	EVENT_UPLOAD,
	EVENT_WORKER,
	EVENT_READER,
	EVENT_FILE,
	EVENT_LOOK,
	EVENT_SYNC,
	EVENT_EPOCH
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
	WORKER_OPENS, /* one that reads for itself; and the next two */
	WORKER_FETCHES,
	WORKER_HAS_READ,
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
	bool woken;     /* and not at the exchange yet */
	bool completed; /* what its items complete was put together */
	/* Of one that reads for itself: its items stand there one after another; else in blobs. */
	uint32_t first;
	uint32_t blobs[FLOW_CHUNK_MAX];
};

struct replay_team {
	struct replay_worker *workers;
	uint32_t count;
	uint32_t idle;             /* list of sleepers, last come first */
	enum thread_state idle_in; /* all of them */
	uint32_t waiting
		[THREAD_STATES]; /* workers: sleepers, and the woken that are not there yet */
	struct replay_cursor batch_cost;
	bool apart;              /* items have parts beside their CPU time, and go one by one */
	uint32_t reading;        /* workers that read for themselves, and do now */
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

/* Reads that hold many samples each.  begun: those from the first on; ahead: beyond the one that is needed. */
struct replay_requests {
	struct replay_cursor latency, device;
	double samples; /* 0: there are none */
	uint64_t begun;
	uint32_t ahead, depth;
	double *done;   /* (ahead + 1), by number: when each is done */
	double *flying; /* (depth): when those that were begun last are done, in any order */
};

struct replay_crew {
	struct replay_requests requests;
	struct replay_reader *readers;
	uint32_t count, depth;
	uint32_t idle, idle_count, blocked;
	bool apart;        /* files take time in flight */
	double link_free;  /* when the device will have served all that was submitted */
	double link_given; /* ns of its time so far */
};

enum step_phase { STEP_FETCHES, STEP_LAUNCHES, STEP_ENDS, STEP_SYNCS, STEP_SAVES, STEP_STALLS };
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
	bool syncs;     /* after each step: with one another, or with other ranks */
	uint32_t staging, step_threads;
	uint32_t gathered; /* devices that have computed their step of this round */
	bool on_cores;     /* the step's host time is its computing */
	bool copies_off_cores;
	uint64_t batches; /* through the step */
	/* Checkpoints: batches between two of them, 0: none; when the writer will have done with the last one. */
	struct replay_cursor checkpoint_cost, checkpoint_copy;
	uint64_t checkpoint_batches;
	bool checkpoint_async;
	double writer_free;
	/* Evaluations: batches between two of them, 0: none. */
	struct replay_cursor evaluate_input, evaluate_step;
	uint64_t evaluate_batches;
	/* Epochs that are kept apart: batches of one, 0: none; those that have begun. */
	struct replay_cursor startup_cost;
	uint64_t epoch_batches, epochs;
};

enum replay_level {
	LEVEL_READ_BLOCKED, /* threads */
	LEVEL_READING,      /* workers */
	LEVEL_DECODE_STARVED,
	LEVEL_DECODE_BLOCKED,
	LEVEL_UPLOAD_STARVED,
	LEVEL_UPLOAD_BLOCKED,
	LEVEL_STEP_STARVED,
	LEVEL_STEP_BUSY,
	LEVEL_STEP_BLOCKED,
	LEVEL_SYNC_BUSY,
	LEVEL_CHECKPOINT_BUSY,
	LEVEL_EVALUATE_BUSY,
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
	bool held;               /* the steps go on at an event of their own */
	double integral[LEVELS]; /* over the time since replay_clear, ns */
};

/* Puts every thread to its first visit; the struct and its arrays are set up (replay.c). */
void replay_start(struct replay *r);
/* Until so many batches are through the step.  0; -E2BIG: events_max; -EDEADLK: nothing can move. */
int replay_until(struct replay *r, uint64_t batches);
/* After replay_until: the steps go on at that time, not before now. */
void replay_hold(struct replay *r, double until_ns);

void replay_cursor_open(struct replay_cursor *cursor, const struct replay_model *model,
	const struct replay_options *options, enum replay_cost cost);
void replay_cores_rate(double cores, double quota, double outside, double contention,
	uint32_t places, uint32_t n, double *slowness, double *busy);
void replay_cores_load(struct replay_cores *cores);

#endif
