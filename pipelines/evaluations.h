/* Evaluations of a repetition: every evaluate.every steps the step's thread of the first device stands still (stall_log.h) and
 * steps through evaluate.samples samples that a second loader reads and decodes for it.
 *
 * That loader is a run of its own without a step: its readers, workers, blobs and slots are there from the beginning, as
 * validation workers that persist are, and sleep between evaluations.  An evaluation is one of its epochs, which are held until
 * the step's thread lets the next one begin (exchange.h).  So nothing is read ahead of an evaluation, and each begins with an
 * empty queue.  Training's readers and workers go on meanwhile until their queues are full, and compete for the cores.
 *
 * Samples come in the order of the data set, without random augmentation, so that each evaluation is of the same batches;
 * where a kind has something random left, it is the same each time.  A step of an evaluation is the forward pass, which the
 * backend computes on its weights (backend_evaluates); else it is waited for, evaluate.step_time or a third of what
 * training steps took for as many samples.  A third, since a backward pass has two matrix products, for the gradients of
 * inputs and of weights, for each one of the forward pass (Kaplan et al. 2020, arXiv 2001.08361, section 2.1).
 *
 * The stage "evaluate" is working while one goes on, and starved else: its items are evaluations, its service times those of
 * all of one.  What is planted by inject.* for reading and decoding slows both loaders, each by itself. */
#ifndef MLBENCH_PIPELINES_EVALUATIONS_H
#define MLBENCH_PIPELINES_EVALUATIONS_H

#include "pipelines/pipeline.h"
#include "pipelines/stall_log.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct run;
struct evaluations;
struct backend;

/* Fills the evaluation_ members of a plan of samples that were cut.  -EINVAL: what cannot be, as pipeline_plan has it. */
int evaluations_plan(const struct config *config, const struct dataset *samples,
	struct pipeline_plan *plan, struct error *err);

/* Sets run->evaluations, NULL where there are none; in all that follows NULL is fine.  After the run's own parts. */
int evaluations_open(struct run *run, struct error *err);
int evaluations_start(
	struct evaluations *evaluations, struct error *err); /* the loader's threads */
/* The control thread: waits for these, as crew_gather does. */
bool evaluations_gather(struct evaluations *evaluations, const atomic_bool *stop);
void evaluations_wake(struct evaluations *evaluations); /* after crew's stopping was set */
bool evaluations_join(
	struct evaluations *evaluations, uint64_t deadline_ns); /* false: one does not end */
void evaluations_close(struct run *run);                        /* after evaluations_join */

/* The step's thread of the first device: the repetition begins. */
void evaluations_begin(struct evaluations *evaluations, uint64_t start_ns);
/* Whether one follows this step, counted from 1. */
bool evaluations_follow(const struct evaluations *evaluations, uint64_t step);

struct evaluation_caller {
	struct backend *backend;
	struct thread_meter *step_meter; /* the thread's, or NULL */
	uint64_t step, stepped_ns;       /* and when it ended, since the start */
	double sample_ns;                /* of a sample in training steps so far, mean */
};
/* Stands still for it; *now_ns becomes the time when it goes on.  False: the repetition is over, or has failed. */
bool evaluations_stall(
	struct evaluations *evaluations, const struct evaluation_caller *caller, uint64_t *now_ns);

/* Any thread: files read and steps done so far, a sign of life. */
uint64_t evaluations_moved(const struct evaluations *evaluations);

/* Its stalls; NULL: there are no evaluations. */
const struct stall_log *evaluations_log(const struct evaluations *evaluations);
/* After the threads have ended.  Whether it was an evaluation that failed; and its loader. */
bool evaluations_failed(const struct evaluations *evaluations);
const struct run *evaluations_loader(const struct evaluations *evaluations);
void evaluations_fill(
	const struct run *run, uint64_t from_ns, uint64_t to_ns, struct measurement *m);

#endif
