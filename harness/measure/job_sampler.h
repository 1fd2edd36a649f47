/* Where the CPU time of a job of somebody else goes, by classes that a user knows: decoding, resizing, copies, the
 * interpreter, reading in the kernel.  perf_event_open(2) samples each of its threads by its CPU time; the job is not
 * stopped, and its stacks and memory are not read.  A sample is the innermost function alone: the file that it lies in
 * and its exported name decide the class, so what a codec spends in the C library counts for the C library.
 *
 * Where a process writes a perf map (code_map.h; Python with -X perf), code that it made has a name, and time in its
 * interpreter is told by the function that it interprets: by the innermost return address on the stack that lies in the map.
 * The kernel finds that by frame pointers, so that an interpreter which was built without them has no functions.
 *
 * Where the kernel allows less (kernel.perf_event_paranoid, another user's process), user time alone is sampled, or
 * nothing, with the reason.  Threads, addresses and names have fixed bounds.  Names are looked up at the end.
 *
 * One thread at a time: that of the watch (job_watch.h). */
#ifndef MLBENCH_MEASURE_JOB_SAMPLER_H
#define MLBENCH_MEASURE_JOB_SAMPLER_H

#include "harness/measure/job_watch.h"

enum job_class {
	JOB_CLASS_DECODE,
	JOB_CLASS_RESIZE,
	JOB_CLASS_COPY,
	JOB_CLASS_SERIAL,
	JOB_CLASS_PYTHON,
	JOB_CLASS_READ,  /* in the kernel: open, read, stat, ... */
	JOB_CLASS_WRITE, /* in the kernel: write, fsync, rename, ...; to files, pipes or sockets */
	JOB_CLASS_QUEUE, /* in the kernel or spinning: locks, pipes, sockets, poll */
	JOB_CLASS_BLAS,
	JOB_CLASS_TENSOR, /* in a tensor library, and nothing more is known */
	JOB_CLASS_LIBC,   /* allocation; what has no name */
	JOB_CLASS_KERNEL, /* other calls, interrupts */
	JOB_CLASS_OTHER,
	JOB_CLASSES
};
const char *job_class_name(enum job_class class); /* "decoding" */
const char *job_class_words(enum job_class class);

/* Of the file that code lies in (its path), its exported function ("" where there is none), and whether the kernel ran for
 * it. */
enum job_class job_class_of(const char *file, const char *function, bool kernel);

enum { JOB_PLACES_MAX = 12, JOB_PLACE_BYTES = 96 };

struct job_profile {
	char why[JOB_WHY_BYTES]; /* why there are no samples, or fewer than there could be; "" */
	bool kernel;             /* time in the kernel is sampled, too */
	uint64_t samples, lost;
	double period_s;                  /* of CPU time, between two samples of a thread */
	uint64_t (*classes)[JOB_CLASSES]; /* (processes of the record); owned by the sampler */
	/* The hottest functions, else files: "libjpeg.so.62 jpeg_fill_bit_buffer". */
	struct job_place {
		char name[JOB_PLACE_BYTES];
		enum job_class class;
		uint64_t samples;
	} places[JOB_PLACES_MAX];
	size_t place_count;
	/* Processes that have a perf map; samples of those that are in the interpreter, and those of them whose function is known. */
	size_t mapped;
	uint64_t interpreted, named;
};

struct job_sampler;

/* Never fails for want of permission: the profile says why there is nothing.  -ENOMEM. */
int job_sampler_open(struct job_sampler **out, struct error *err);
void job_sampler_close(struct job_sampler *sampler); /* NULL is fine */
/* Samples the threads of the record that use CPU time and are not sampled yet, and lets go of those that ended. */
void job_sampler_follow(struct job_sampler *sampler, struct job_record *record);
/* From now on the process `to` of the record stands for `from`, too. */
void job_sampler_join(struct job_sampler *sampler, uint32_t from, uint32_t to);
void job_sampler_drain(struct job_sampler *sampler);
/* Ends the sampling and finds the classes. */
const struct job_profile *job_sampler_finish(
	struct job_sampler *sampler, const struct job_record *record);

#endif
