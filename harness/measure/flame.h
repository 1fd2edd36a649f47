/* Where the CPU time goes: every thread of the process is sampled as often as it uses up a slice of CPU time, and each
 * sample is the stack that it stood on.  Each counts the same slice, so shares of samples are shares of CPU time, in
 * the kernel, too.
 *
 * Two methods.  perf_event_open (a timer of the kernel that runs while the thread does) sees kernel frames and samples
 * at 397 Hz; it is taken where the kernel may be sampled.  Elsewhere a timer on each thread's CPU clock sends it SIGPROF:
 * time in the kernel counts for the call that entered it, and the kernel looks at such clocks at its tick only.
 * Either way what is taken is registers and a copy of the stack's end; a thread of the sampler's own unwinds it by the
 * tables of .eh_frame, so that libraries without frame pointers are no obstacle and nothing is unwound in a signal handler.
 *
 * At most one sampler per process.  Without one, each hook is one load.
 *
 * run --flame samples every thread of the process. Each sample stands for the same slice of CPU
 * time, so shares of samples are shares of CPU time; the sum is held to the kernel's account of
 * the process, and what share it covers is printed. Threads tell their stage in their entry
 * functions (flame_thread_begin); those of libraries belong to the stage whose threads have their
 * name, which they inherit. Only what comes after measure.warmup counts (flame_count, in
 * pipelines/pipeline.c).
 *
 * - perf_event: one software CPU-clock event per core, inherited by all threads, 397 Hz, a ring
 *   per core; what a sample costs is mostly the timer's interrupt, and more of them than this
 *   came near 2 % of CPU time on a virtual machine. It is used only where the kernel may be
 *   sampled, too: without that right, time in system calls would be missing from every share.
 * - clock signals: a POSIX timer on each thread's CPU clock sends it SIGPROF. The handler copies
 *   registers and the stack's end into a ring of the thread: no lock, no allocation. The kernel
 *   looks at CPU clocks at its tick, so at 250 Hz ticks there are 247 samples a second, and what
 *   a signal came too late for is counted with it. Threads of libraries are found within 10 ms in
 *   /proc/self/task, or 100 where another ended meanwhile. Calls that a signal interrupts begin
 *   anew.
 *
 * Both deliver the same: registers and up to 24 KiB of stack, which a thread of the sampler
 * unwinds by the tables of .eh_frame (flame_unwind.c; libdw reads them), since libjpeg and
 * OpenBLAS have no frame pointers: with those alone, every stack would end in the library. What
 * the tables say holds for a range of addresses and is kept (looking takes 27 us where caches are
 * cold); they are read during the warm-up, whose samples are unwound and dropped. 4 to 12 KiB cut
 * off 40 % of the stacks of an OpenBLAS step, which keeps 12 KiB of its own on the stack, 16 KiB
 * 15 %, 24 KiB under 1 %. perf's copy of a stack ends at the first page that was never touched;
 * such pages are read once, and later copies pass. Assembler without tables (libjpeg's) is passed
 * by its frame pointer, if what that leads to follows a call. Rings, threads, the tree and names
 * have fixed bounds; what finds no room is counted as lost. Names come at the end, with debug
 * files by build-id where they are installed (libjpeg62-turbo-dbgsym), never from the network.
 * MLBENCH_FLAME=perf or signals asks for a method. */
#ifndef MLBENCH_MEASURE_FLAME_H
#define MLBENCH_MEASURE_FLAME_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum flame_method { FLAME_AUTO, FLAME_PERF, FLAME_SIGNALS };

enum { FLAME_WHY_BYTES = 200 };

#define FLAME_ROOT UINT32_MAX /* parent of the stages' frames */

/* What threads belong to that no stage claims: those of libraries, and the sampler itself. */
#define FLAME_OTHER "other"
#define FLAME_SAMPLER "profiler"
#define FLAME_CONTROL "control"       /* the thread that opens the sampler */
#define FLAME_TRUNCATED "[truncated]" /* stands for the callers that are not known */

struct flame_options {
	enum flame_method method;
	/* 0: the usual.  Of a stack copied; of each thread's buffer (signals) or each core's (perf, 64 KiB at least): a
	 * power of two. */
	size_t stack_bytes, ring_bytes;
};

/* A function as it was called: by those above it.  Parents come before their children. */
struct flame_frame {
	uint32_t parent; /* FLAME_ROOT: a stage */
	uint32_t name;
	uint64_t self, total; /* samples */
	bool kernel;
};

struct flame_profile {
	enum flame_method method;
	char why_not_perf[FLAME_WHY_BYTES]; /* "" with perf */
	uint64_t period_ns;                 /* of CPU time, between two samples of a thread */
	uint64_t samples;                   /* counted; the sum of all self */
	uint64_t lost;                      /* no room for them */
	uint64_t truncated;                 /* of samples: their outermost callers are not known */
	uint64_t outside;                   /* before, between and after what was measured */
	uint64_t unsampled_threads;         /* could not be given a timer */
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

/* "perf_event" or "clock signals". */
const char *flame_method_name(enum flame_method method);

#endif
