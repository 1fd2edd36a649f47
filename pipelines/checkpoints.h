/* Checkpoints of a repetition: every checkpoint.every steps the step's thread of the first device stands still for one.
 *
 *   sync    the thread writes it (workloads/checkpoint/checkpoint_file.h) and goes on when it is durable
 *   async   the thread waits for the writer to have done with the one before, copies the state to the writer's staging
 *           buffer, and goes on: the copy is the least stall, and there is one buffer, so memory is bounded
 *
 * The stage "checkpoint" is working while one is being written, whoever does so, and starved else: its items
 * are checkpoints, its service times those of storing one.
 *
 * The state is a plain buffer in host memory.  What it takes to bring it there from a device is not in it. */
#ifndef MLBENCH_PIPELINES_CHECKPOINTS_H
#define MLBENCH_PIPELINES_CHECKPOINTS_H

#include "harness/measure/thread_meter.h"
#include "harness/record/measurement.h"
#include "pipelines/pipeline.h"
#include "pipelines/stall_log.h"

#include <stdbool.h>
#include <stdint.h>

struct run;
struct checkpoints;
struct checkpoint_calls;

/* Fills the checkpoint_ members of a plan.  -EINVAL: no size is known, or two do not fit on the disk. */
int checkpoints_plan(const struct config *config, const struct dataset *dataset,
	struct pipeline_plan *plan, struct error *err);

/* Sets run->checkpoints, NULL where there are none.  Errors as checkpoint_file_open has them. */
int checkpoints_open(struct run *run, struct error *err);
int checkpoints_start(struct run *run, struct error *err);    /* the writer, where there is one */
void checkpoints_wake(struct run *run);                       /* after crew's stopping was set */
bool checkpoints_join(struct run *run, uint64_t deadline_ns); /* false: the writer does not end */
void checkpoints_close(struct run *run);                      /* after checkpoints_join */

/* The step's thread of the first device: the repetition begins. */
void checkpoints_begin(struct checkpoints *checkpoints, uint64_t start_ns);
/* Whether one follows this step, counted from 1. */
bool checkpoints_follow(const struct checkpoints *checkpoints, uint64_t step);
/* Stands still for it.  step_meter: the thread's, or NULL; stepped_ns: when the step ended, since the start; *now_ns becomes the time when it goes on.  False: the repetition is
 * over, or has failed. */
bool checkpoints_stall(struct checkpoints *checkpoints, struct thread_meter *step_meter,
	uint64_t step, uint64_t stepped_ns, uint64_t *now_ns);

/* Any thread: bytes moved so far, a sign of life; and the longest that one took, ns. */
uint64_t checkpoints_moved(const struct checkpoints *checkpoints);
uint64_t checkpoints_longest_ns(const struct checkpoints *checkpoints);

/* Its stalls; NULL: there are no checkpoints. */
const struct stall_log *checkpoints_log(const struct checkpoints *checkpoints);
/* After the threads have ended. */
void checkpoints_fill(
	const struct run *run, uint64_t from_ns, uint64_t to_ns, struct measurement *m);

/* For tests: what is used in place of the kernel's calls from now on; NULL: the kernel's again. */
void checkpoints_replace_calls(const struct checkpoint_calls *calls);

#endif
