/* The stepper from inside: the account that its two ways of stepping share.  For stepper.c and step_*.c. */
#ifndef MLBENCH_PIPELINES_STEPPER_PARTS_H
#define MLBENCH_PIPELINES_STEPPER_PARTS_H

#include "harness/measure/timeline.h"
#include "pipelines/stepper.h"
#include "workloads/backend/backend.h"

#include <pthread.h>

struct stepper {
	struct stepper_options options;
	pthread_t thread;
	bool started;
	struct seat seat;
	struct backend *backend;
	struct step_account account;
	struct completion sum;
	struct group_watch watch;
	uint64_t start_ns;
	atomic_uint_least64_t samples, batches, last_step_ns;
};

/* A step that is over.  Times are monotonic. */
struct step_record {
	uint64_t seen_ns; /* the thread saw that it was */
	uint64_t ended_ns;
	uint64_t service_ns; /* as a trace has it */
	uint64_t host_ns;    /* that delayed the device */
	uint64_t took_ns;    /* from the batch to the end, as the thread saw it */
	uint64_t copy_bytes; /* that the step itself copied to a device */
};

/* Adds it to the account.  False: the repetition is over: not one sample of the first epoch was good. */
bool stepper_count(struct stepper *stepper, const struct slot *slot,
	const struct step_result *result, const struct step_record *record);

/* The repetition has failed at this device, which the message names where there are several. */
void stepper_fail(const struct stepper *stepper, int code, struct error *err);

/* In the timeline: what the device says of a step. */
void stepper_show_device(
	const struct stepper *stepper, uint64_t batch, const struct step_result *result);

struct batch_view stepper_view(const struct stepper *stepper, const struct slot *slot);

/* Until the run is over.  By the thread itself, one after another; or launching steps on a device, so
 * many ahead as step.ahead says. */
void step_by_device(struct stepper *stepper);

#endif
