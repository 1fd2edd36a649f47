/* What a run shows of itself while it goes on: one picture, replaced at every sampling window by the control
 * thread, never waited for.  It lies in a small file that is mapped, so that a view on the same terminal, a listener for
 * metrics and `mlbench status` in another process read the same thing and disturb nothing.
 *
 * One writer.  Readers retry while it is being written (a sequence lock in atomics), and give up after a bounded time:
 * a writer may have been killed in the middle. */
#ifndef MLBENCH_MEASURE_LIVE_H
#define MLBENCH_MEASURE_LIVE_H

#include "harness/base/error.h"
#include "harness/measure/environment.h"
#include "harness/record/measurement.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	LIVE_VERSION = 4, /* of the layout: a reader refuses another by name */
	LIVE_THREADS_MAX = 512,
	LIVE_RESULTS_MAX = 32,
	LIVE_LABEL_BYTES = 160,
	LIVE_PATH_BYTES = 512,
};

enum live_phase {
	LIVE_SETTING_UP, /* planning, generating or checking the data set, touching memory */
	LIVE_WARMUP,
	LIVE_MEASURING,
	LIVE_DRAINING, /* its time is over, and its threads are to end */
	LIVE_BETWEEN,  /* two repetitions: one is saved, the next set up */
	LIVE_LIMITS,   /* each stage alone */
	LIVE_REPORTING,
	LIVE_CHOOSING, /* kernels of the step on a device, before its warm-up */
	LIVE_PHASES
};

/* A thread of a stage, as it was at updated_ns. */
struct live_thread {
	int32_t tid;          /* 0: no thread of its own, or not known */
	uint8_t stage, state; /* index into stages; enum thread_state */
	uint16_t index;       /* within its stage */
	uint64_t since_ns;    /* monotonic: when this state began */
	uint64_t moved_ns;    /* monotonic: when it was first seen to have finished so many items */
	uint64_t items;       /* finished */
};

struct live_stage {
	char name[NAME_BYTES];
	uint32_t workers;
	bool per_batch, device, emulated;
	uint64_t items;
	double seconds[THREAD_STATES]; /* thread-seconds since the repetition began */
	double cpu_seconds;            /* NAN: not available */
	double run_queue_seconds, io_wait_seconds, lock_wait_seconds; /* likewise */
};

/* What had come through at one moment of a repetition: the difference of two is what a verdict forms from. */
struct live_sums {
	uint64_t t_ns; /* monotonic */
	uint64_t samples, batches, bad_samples, bytes_read;
	struct live_stage stages[STAGES_MAX];
};

struct live_queue {
	char name[NAME_BYTES];
	uint32_t depth, capacity;
};

/* A repetition or a limit that has ended. */
struct live_result {
	char label[LIVE_LABEL_BYTES];
	double throughput; /* NAN: it failed */
	bool steady;
};

struct live_view {
	int32_t pid;
	uint64_t
		process_start; /* clock ticks after boot: tells it from a later process of that number */
	char version[NAME_BYTES];     /* of the program */
	char command[NAME_BYTES];     /* "sweep" */
	char name[LIVE_LABEL_BYTES];  /* of the benchmark */
	char node[NODE_NAME_BYTES];   /* that it runs on */
	char label[LIVE_LABEL_BYTES]; /* of the point: "decode.workers=2 batch.size=64" */
	char folder[LIVE_PATH_BYTES]; /* of the results; "" before there is one */
	enum live_phase phase;

	bool limit;        /* what runs is the limit of a stage alone, not a point */
	uint64_t phase_ns; /* monotonic: when the phase began */
	uint64_t
		updated_ns; /* monotonic; never more than two period_s old while the control thread lives and a repetition runs */
	double period_s;    /* between two pictures, at most */
	uint64_t begun_ns;  /* monotonic: the repetition; 0: none */
	uint64_t moved_ns;  /* monotonic: when a file or a step was last seen to be done */
	double started;     /* seconds since the epoch: the command */
	uint32_t done, total;        /* repetitions and limits */
	double elapsed_s, planned_s; /* of the repetition; planned 0: by epochs */
	double rest_s;               /* of all that is to come; NAN: not known */

	uint32_t
		ranks; /* that train together, of which this is rank 0, as is all that follows; 0: it is alone */
	bool timed; /* false: measure.profiler is off: no states, queues, threads */
	uint64_t samples, batches, epochs, bad_samples; /* of the repetition, warm-up included */
	double throughput_window,
		throughput; /* samples/s: of the last window; since the warm-up, NAN before */
	double step_utilisation_window; /* 0..1; NAN: unknown */
	double bytes_read_per_s;        /* of the last window */
	double window_s;                /* that these are over: about a second */
	uint64_t bytes_read;            /* of the repetition */
	uint64_t resident_bytes, pool_bytes;
	double device_clock_mhz, device_power_w, device_temperature_c; /* NAN: not available */
	uint32_t batch_size;
	uint32_t files_in_flight; /* with the readers */

	/* What a verdict takes beside the stages. */
	uint32_t cores, read_depth, prefetch_depth, step_threads;
	bool step_emulated, reads_memory, any_order, by_workers;
	uint64_t warm_ns;      /* monotonic: the end of the warm-up, as it is planned */
	struct live_sums warm; /* at the first picture after that; t_ns 0: not yet */

	uint32_t stage_count, queue_count, thread_count, result_count;
	struct live_stage stages[STAGES_MAX];
	struct live_queue queues[QUEUES_MAX];
	/* The last so many, oldest first. */
	struct live_result results[LIVE_RESULTS_MAX];
	/* The first so many; stages have them all in their sums.  Last: histories of views leave them out. */
	struct live_thread threads[LIVE_THREADS_MAX];
};

struct live_board; /* a mapped picture */

/* The run's own: makes FOLDER/PID.live (the folder 0700), replacing what a dead process left.  Where no folder can be
 * had the board is of this process alone, and live_board_hidden says why.  0 or -ENOMEM. */
int live_board_create(struct live_board **board, struct error *err);
const char *live_board_hidden(const struct live_board *board); /* NULL: others can see it */
/* Another's.  -ESRCH: no such process, or it shows nothing; -EPROTO: of another version, which is named;
 * -EACCES: it is of another user. */
int live_board_attach(struct live_board **board, int32_t pid, struct error *err);
void live_board_close(struct live_board *board); /* the creator removes the file; NULL is fine */

/* The writer, one thread at a time. */
void live_board_publish(struct live_board *board, const struct live_view *view);
/* 0; -EAGAIN: nothing was published yet; -ETIMEDOUT: it is being written since long; -EPROTO: another's file was cut
 * short meanwhile.  Any thread; of one that is attached, one at a time. */
int live_board_read(const struct live_board *board, struct live_view *view);

/* The picture's own. */
void live_sums_of(const struct live_view *view, struct live_sums *sums);

/* Process numbers of this user's runs that show themselves, ascending, at most room; how many. */
size_t live_board_list(int32_t *pids, size_t room);

/* When a process began, in clock ticks after boot; 0: there is none, or it cannot be told. */
uint64_t live_process_start(int32_t pid);

const char *live_phase_name(enum live_phase phase);

#endif
