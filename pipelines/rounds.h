/* What came through all devices together.  A round is one step of each: it is complete when the last device's step is, and
 * counts then as a whole, so throughput is that of the group and not of whoever is ahead.  With one device every step is a
 * round.
 *
 * The exchange of gradients, too, is known only from all of them: it began when the last device had its gradients; what a
 * device spent before that, it waited for others.  From that comes the stage "sync": working while gradients
 * are exchanged, starved else. */
#ifndef MLBENCH_PIPELINES_ROUNDS_H
#define MLBENCH_PIPELINES_ROUNDS_H

#include "harness/measure/steady.h"
#include "harness/measure/thread_meter.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Rounds that can be open at once: devices launch up to 8 steps ahead (step.ahead), and none ends a step that another
 * has not computed. */
enum { ROUNDS_OPEN_MAX = 16 };

/* One device's step, as it counts in its round.  Times are monotonic, ns. */
struct round_step {
	uint64_t batch, ended_ns;
	uint64_t samples, stepped; /* good ones; all */
	uint64_t compute_ns, oversleep_ns;
	uint64_t sync_begin_ns, sync_ns; /* step_result's; 0: nothing was exchanged */
};

struct round {
	unsigned arrived;
	struct round_step steps[DEVICES_MAX];
};

/* What a device spent in all complete rounds. */
struct round_sums {
	uint64_t exchange_ns; /* exchanging gradients */
	uint64_t waiting_ns;  /* waiting for others before that */
};

struct rounds {
	pthread_mutex_t lock;
	bool is_open;
	unsigned devices;
	uint64_t start_ns;
	struct thread_meter *meters; /* (devices) of sync; NULL: not timed, or one device */
	bool live; /* the meters' clocks are kept by the devices themselves (emulated) */
	uint64_t steps[DEVICES_MAX]; /* of each device */
	struct round open[ROUNDS_OPEN_MAX];
	struct completions completions;
	struct completion sum;
	struct round_sums sums[DEVICES_MAX];
};

int rounds_open(struct rounds *rounds, unsigned devices, struct thread_meter *meters);
void rounds_close(struct rounds *rounds); /* safe on {0} */

/* A device's thread, its steps in their order; rounds->start_ns was set before the first. */
void rounds_add(struct rounds *rounds, unsigned device, const struct round_step *step);

/* Any thread: of each device, (devices). */
void rounds_read(struct rounds *rounds, struct round_sums *out);

#endif
