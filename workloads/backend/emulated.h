/* The parts of the emulated device that tests look at: its clock, and where devices meet. */
#ifndef MLBENCH_WORKLOADS_BACKEND_EMULATED_H
#define MLBENCH_WORKLOADS_BACKEND_EMULATED_H

#include "workloads/backend/backend.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* --- the clock of a device: when a step ends, and waiting for that moment ------------------------
 *
 * deadline_start and deadline_done are plain arithmetic on given times, so tests need no clock;
 * deadline_wait sleeps, then spins for the last few microseconds.  One thread. */
enum {
	/* A batch that is handed over so soon after the previous step had been waiting: a thread
	 * that must be woken for it takes longer. */
	DEADLINE_HANDOVER_NS = 20000,

	/* Bounds of the time spent spinning in front of a deadline. */
	DEADLINE_MARGIN_MIN_NS = 2000,
	DEADLINE_MARGIN_MAX_NS = 60000,
	DEADLINE_MARGIN_SHARE = 6, /* never more than a sixth of the step */
};

struct deadline {
	uint64_t returned_ns;  /* when the last step's caller got control back; 0: none yet */
	uint64_t oversleep_ns; /* of that step */
	uint64_t margin_ns;    /* learned: how early to ask to be woken */
};

/* The time at which the device begins a step of nominal_ns that is handed over at now_ns.
 *
 * That is now, except where the host overslept the last deadline with the next batch already
 * waiting: a real device would have begun it at once, so the oversleep is not charged to it.  The
 * batch counts as waiting when it is handed over within the oversleep and within
 * DEADLINE_HANDOVER_NS of the return; the credit is at most the last oversleep and at most
 * nominal_ns (a queue of one).  So steps whose data is ready end, on average, at multiples of their
 * time, and starved ones never gain. */
uint64_t deadline_start(const struct deadline *deadline, uint64_t now_ns, uint64_t nominal_ns);

/* Notes that the step with this deadline returned at now_ns >= deadline_ns; the oversleep. */
uint64_t deadline_done(struct deadline *deadline, uint64_t deadline_ns, uint64_t now_ns);

/* Forgets the last step: the next one gets no credit. */
void deadline_forget(struct deadline *deadline);

/* How early to be woken for a step of nominal_ns. */
uint64_t deadline_margin(const struct deadline *deadline, uint64_t nominal_ns);

/* Learns from one wake-up that came lateness_ns after the time asked for: up quickly, down slowly,
 * so that the margin settles above nearly all latenesses. */
void deadline_learn(struct deadline *deadline, uint64_t lateness_ns);

/* Where emulated devices meet in each step.  A device knows when it will have computed as soon as it begins, so it says
 * that at once and learns when the exchange begins: when the last of them has computed.  No time is lost in waking
 * threads up, as long as a step takes longer than that. */
struct emulated_group;

int emulated_group_open(struct emulated_group **out, unsigned count);
void emulated_group_close(
	void *group); /* a struct emulated_group, as backend_ops has it; NULL is fine */

/* A device, once a step: its gradients are ready at computed_ns, which may be to come, and exchanging them takes
 * exchange_ns (the longest that any device announces counts).  Returns when all devices have said theirs, with the times at
 * which the exchange begins and ends, which may be to come; or false, within 20 ms of
 * *stop becoming true (may be NULL).  Tells the watch (may be NULL) when computed_ns has passed meanwhile. */
struct emulated_exchange {
	uint64_t begin_ns, end_ns;
};
bool emulated_group_meet(struct emulated_group *group, uint64_t computed_ns, uint64_t exchange_ns,
	const atomic_bool *stop, const struct group_watch *watch, struct emulated_exchange *out);

#endif
