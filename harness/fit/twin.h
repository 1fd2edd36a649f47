/* From what is known of a job to the keys of its synthetic twin.  Rules, each told where a key is a guess:
 *
 * The loader works as PyTorch's DataLoader does: each worker takes a whole batch and reads its files itself; prefetch_factor
 * batches per worker are outstanding; without workers, loading and steps take turns.
 *
 * The step is emulated: by recorded times of steps where the waits for batches are not among them, else by their mean, else by
 * the time between batches less the share in which the trainer waits.
 *
 * CPU time of the loader.  The twin decodes pictures like the job's itself, and what the job's loader takes beyond that is
 * overhead.sample.  How much that is differs between nodes, since a decoder and an interpreter gain differently from another
 * CPU.  Where the twin's own CPU time was measured on a CPU of the model that the job ran on (twin_cpu), the overhead is the
 * difference.  Elsewhere it is the job's own: what was not spent in codecs and in resizing.  Where neither is known it is
 * 0, and that is said. */
#ifndef MLBENCH_FIT_TWIN_H
#define MLBENCH_FIT_TWIN_H

#include "harness/fit/case.h"
#include "harness/fit/source.h"

struct twin_hints {
	const char *format; /* of the data's files, a choice of dataset.format; "" not known */
	bool loaders;       /* it was seen that other processes load for the trainer */
	bool setting; /* the twin's keys are those of a result already, but for its data where it was a user's folder */
};

/* The batch by the throughput and the time between batches, where no source tells it. */
void twin_guess_batch(struct findings *findings);

/* Sets the keys of file->twin that are not set yet from file->observed, what emulates the node, and what is assumed. */
int twin_derive(struct case_file *file, const struct twin_hints *hints, struct error *err);

/* Then, the loader's CPU time beyond the twin's own: twin_cpu_ns for a sample, as measured on a CPU like the job's; NAN: it was
 * not. */
int twin_derive_costs(struct case_file *file, double twin_cpu_ns, struct error *err);

/* How long a worker waits for a file, ns, where the storage is slow; NAN: it is fast, or nothing tells. */
double twin_slow_read(const struct case_file *file);

/* Whether the twin's step takes all the time that the reported throughput leaves for a batch, since nothing tells how much of it
 * is waiting.  Where that step limits the twin, its throughput is the reported one whatever the job is like. */
bool twin_step_is_of_rate(const struct case_file *file);

/* Share of the time in which the job's trainer waits for data; NAN: nothing tells it. */
double twin_wait_share(const struct case_file *file);

/* Makes step.times anew of the recorded ones, each of them by shift (ns) longer. */
int twin_shift_step_times(struct case_file *file, double shift, struct error *err);

/* How much CPU time a worker has for each sample, ns, by whatever tells it; NAN: nothing does.  *why (may be NULL): where it
 * is a guess; NULL else. */
double twin_loader_cpu(const struct case_file *file, const char **why);

#endif
