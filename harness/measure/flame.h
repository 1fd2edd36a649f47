/* Where the CPU time goes: run --flame samples every thread of the process as often as it uses up a
 * slice of CPU time.  Each sample is a stack and stands for the same slice, so shares of samples are
 * shares of CPU time; the sum is held to the kernel's account of the process, and the share that it
 * covers is printed.  Only what comes after measure.warmup counts (flame_count).
 *
 * A POSIX timer on each thread's CPU clock sends it SIGPROF (flame.c); that needs no privilege and
 * works in containers.  The kernel looks at CPU clocks at its tick, so at 250 Hz ticks there are 247
 * samples a second.  What a signal came too late for is counted with it, and time in the kernel
 * counts for the call that entered it.  Calls that a signal interrupts are restarted.  Threads tell
 * their stage in their entry functions (flame_thread_begin); those of libraries are found in
 * /proc/self/task and belong to the stage whose threads have their name, which they inherit.
 *
 * A sample is the registers and up to 24 KiB of the stack, unwound by the tables of .eh_frame
 * (flame_unwind.c), since libjpeg and OpenBLAS have no frame pointers.  What the tables say holds for
 * a range of addresses and is kept; they are read during the warm-up.  12 KiB cut off 40 % of the
 * stacks of an OpenBLAS step, which keeps 12 KiB of its own on the stack; 16 KiB 15 %, 24 KiB under
 * 1 %.  Rings, threads, the tree and names have fixed bounds; what finds no room is counted as lost.
 * Names come at the end, with debug files by build-id where they are installed, never from the
 * network.
 *
 * There is at most one sampler per process.  Without one, each hook is one load. */
#ifndef MLBENCH_MEASURE_FLAME_H
#define MLBENCH_MEASURE_FLAME_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FLAME_ROOT UINT32_MAX /* parent of the stages' frames */

/* What threads belong to that no stage claims: those of libraries, and the sampler itself. */
#define FLAME_OTHER "other"
#define FLAME_SAMPLER "profiler"
#define FLAME_CONTROL "control"       /* the thread that opens the sampler */
#define FLAME_TRUNCATED "[truncated]" /* stands for the callers that are not known */

struct flame_options {
	/* 0: the usual.  Of a stack copied; of each thread's buffer: a power of two. */
	size_t stack_bytes, ring_bytes;
};

/* A function as it was called: by those above it.  Parents come before their children. */
struct flame_frame {
	uint32_t parent; /* FLAME_ROOT: a stage */
	uint32_t name;
	uint64_t self, total; /* samples */
};

struct flame_profile {
	uint64_t period_ns;         /* of CPU time, between two samples of a thread */
	uint64_t samples;           /* counted; the sum of all self */
	uint64_t lost;              /* no room for them */
	uint64_t truncated;         /* of samples: their outermost callers are not known */
	uint64_t outside;           /* before, between and after what was measured */
	uint64_t unsampled_threads; /* could not be given a timer */
	double cpu_s;     /* of the whole process, by the kernel's account, while samples counted */
	double seconds;   /* that went by meanwhile */
	uint32_t windows; /* flame_count(true) so many times */
	struct flame_frame *frames; /* (frame_count) */
	size_t frame_count;
	char **names; /* (name_count) */
	size_t name_count;
};

struct flame;

/* Starts sampling all threads that there are and that these will start.  -ENOTSUP: it cannot be done here;
 * -EBUSY: there is one already.  From the thread that will start the others. */
int flame_open(struct flame **out, const struct flame_options *options, struct error *err);

/* Stops sampling and names what was found; out is {0} on failure, and released by the caller in any case. */
int flame_finish(struct flame *flame, struct flame_profile *out, struct error *err);
void flame_close(struct flame *flame); /* NULL is fine */
/* How it samples: of a profile only what is known before the end. */
void flame_facts(const struct flame *flame, struct flame_profile *out);
void flame_profile_release(struct flame_profile *profile);

/* A thread itself, at its start and at its end: whom its samples belong to.  stage lives forever.  A thread that never
 * says so belongs to the stage whose threads have its name (libgomp's inherit it), else to FLAME_OTHER. */
void flame_thread_begin(const char *stage);
void flame_thread_end(void);

/* Samples count from now on, or no longer.  One thread at a time. */
void flame_count(bool on);

#endif
