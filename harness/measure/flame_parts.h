/* What the parts of the sampler share.  Raw samples come from a method, are unwound, and end in a tree of addresses;
 * names are found at the end. */
#ifndef MLBENCH_MEASURE_FLAME_PARTS_H
#define MLBENCH_MEASURE_FLAME_PARTS_H

#include "harness/measure/flame.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <time.h>

enum {
	FLAME_RATE_HZ =
		397, /* prime: not in step with anything; an interrupt is the costly part of a sample */
	FLAME_STACK_BYTES = 24 << 10,
	FLAME_STACK_BYTES_MAX = 48 << 10,
	FLAME_DEPTH_MAX = 128, /* frames of a stack that are kept */
	FLAME_STAGES_MAX = 16, /* other, profiler, and what registers */
	FLAME_THREADS_MAX = 512,
	FLAME_WINDOWS_KEPT = 16, /* samples come at most a moment late */
	FLAME_KNOWN = 1 << 10,
};

/* A stack as it was taken. */
struct flame_raw {
	pid_t tid;
	uint64_t time_ns; /* monotonic */
	uint64_t weight;  /* slices that it stands for */
	bool has_user;    /* the registers, and stack[0 .. size) from sp upwards */
	uint64_t ip, sp, bp;
	uint64_t base; /* stacks end with the frame that holds this address; 0: not known */
	const uint8_t *stack;
	size_t size;
	const uint64_t *kernel; /* (kernel_count), innermost first */
	size_t kernel_count;
};

/* --- unwinding: one thread at a time ------------------------------------------------------------------- */

struct flame_unwinder;
int flame_unwinder_open(struct flame_unwinder **out, struct error *err);
void flame_unwinder_close(struct flame_unwinder *unwinder); /* NULL is fine */

/* Fills pcs, innermost first, with addresses inside the calling instruction; how many.  *whole: the outermost is there. */
size_t flame_unwind(struct flame_unwinder *unwinder, const struct flame_raw *raw, uint64_t *pcs,
	size_t room, bool *whole);

/* Names of an address, outermost first (functions that were inlined there follow), at most room; at least 1. */
enum { FLAME_INLINED_MAX = 8, FLAME_NAME_BYTES = 256 };
size_t flame_user_names(
	struct flame_unwinder *unwinder, uint64_t pc, char (*names)[FLAME_NAME_BYTES], size_t room);

/* --- names of the kernel ------------------------------------------------------------------------------- */

struct flame_kernel;
struct flame_kernel *flame_kernel_open(void); /* NULL: not to be read, or no memory */
void flame_kernel_close(struct flame_kernel *kernel);
const char *flame_kernel_name(const struct flame_kernel *kernel, uint64_t pc); /* "[kernel]" */

/* --- the tree of addresses ----------------------------------------------------------------------------- */

/* A frame of the tree: pc below parent.  Stages are nodes 0 .. FLAME_STAGES_MAX - 1. */
struct flame_node {
	uint64_t pc; /* FLAME_PC_TRUNCATED: callers that are not known */
	uint32_t parent;
	bool kernel;
	uint64_t self;
};
#define FLAME_PC_TRUNCATED UINT64_MAX

struct flame_tree {
	struct flame_node *nodes;
	size_t count, room;
	uint32_t *slots; /* (slot_count) a hash of nodes; power of two */
	size_t slot_count;
};

/* --- threads ------------------------------------------------------------------------------------------- */

/* A thread that is known; with signals, one with a timer and a ring. */
struct flame_thread {
	pid_t tid; /* 0: free */
	uint32_t stage;
	bool registered; /* it said its stage itself, in the function whose frame holds base */
	uint64_t base;   /* 0: not known */
	bool ended,
		leaving; /* it has; and what it left behind is being drained, after which the slot is free */
	bool has_timer;
	timer_t timer;
	struct flame_ring *ring;
};

struct flame_known {
	pid_t tid;
	uint32_t stage;
	uint64_t base;
};

struct flame {
	struct flame_options options;
	struct flame_profile profile; /* facts so far; no frames */
	pid_t pid;

	/* Under lock: threads, stages, windows. */
	pthread_mutex_t lock;
	struct flame_thread threads[FLAME_THREADS_MAX];
	size_t thread_count; /* slots in use or used once */
	uint64_t generation; /* grows with each thread that registers */
	const char *stages[FLAME_STAGES_MAX];
	uint32_t stage_count;
	uint64_t windows[FLAME_WINDOWS_KEPT][2]; /* from, to (UINT64_MAX: it goes on) */
	uint64_t window_count;
	uint64_t window_cpu_ns; /* the process' when the last one began */

	/* The drain's own. */
	pthread_t drain;
	bool drains;
	atomic_bool stopping;
	struct flame_unwinder *unwinder;
	struct flame_tree tree;
	struct flame_known known[FLAME_KNOWN]; /* a cache of threads' stages, by number */
	uint64_t known_generation;
	uint64_t copied[FLAME_WINDOWS_KEPT][2]; /* of windows */
	uint64_t copied_count;

	struct flame_perf *perf; /* of the method in use */
	struct flame_signals *signals;
};

/* The drain's thread: a sample has come (false: its outermost callers were not in its stack); so many are lost. */
bool flame_take(struct flame *flame, const struct flame_raw *raw);
void flame_lose(struct flame *flame, uint64_t count);

/* --- methods: open before threads start, drain again and again, stop, drain once more, close -------------- */

int flame_perf_open(struct flame *flame, struct error *err);
void flame_perf_wait(struct flame *flame); /* until there is something, or a moment has passed */
void flame_perf_drain(struct flame *flame);
void flame_perf_stop(struct flame *flame);
void flame_perf_lose_rest(struct flame *flame); /* once, when all is stopped and drained */
void flame_perf_close(struct flame *flame);

int flame_signals_open(struct flame *flame, struct error *err);
void flame_signals_wait(struct flame *flame);
void flame_signals_drain(struct flame *flame);
void flame_signals_stop(struct flame *flame);
void flame_signals_close(struct flame *flame);
/* Under the lock. */
void flame_signals_arm(struct flame *flame, struct flame_thread *thread);
void flame_signals_disarm(struct flame *flame, struct flame_thread *thread);

/* A slot for tid under the lock: its own, or a free one; NULL: there is none. */
struct flame_thread *flame_thread_slot(struct flame *flame, pid_t tid);

#endif
