/* Which part of a repetition counts: between which completions of steps throughput is taken, and from
 * when it is steady. */
#ifndef MLBENCH_MEASURE_STEADY_H
#define MLBENCH_MEASURE_STEADY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- completions of steps --------------------------------------------------------------------- */

/* When steps were completed, and what had come through by then.  Throughput is taken between two
 * completions, not between two moments of the clock: with N completions of b samples between times t_1
 * and t_N it is the samples after the first up to the last, over t_N - t_1.  A clock that starts and stops anywhere
 * would be wrong by up to a batch at each end.
 *
 * The memory is fixed: when it is full, every other entry is dropped and from then on only every second
 * (fourth, ...) completion is kept; entries are cumulative, so those that are kept stay exact. */

/* Cumulative since the start. */
struct completion {
	uint64_t t_ns; /* since the start */
	uint64_t samples, batches;
	uint64_t device_ns;
	uint64_t oversleep_ns;
	/* Of steps on a device that works by itself; 0 elsewhere. */
	uint64_t stepped; /* samples that were computed, bad ones included */
	uint64_t launch_ns, sync_ns;
	uint64_t copy_ns, copy_bytes; /* of batches that the step itself copied to the device */
	uint64_t idle_ns,
		idle_of_ns; /* no kernel ran; of so much device time in which that was measured */
};

struct completions {
	struct completion *entries; /* (room); owned */
	size_t count, room;
	uint64_t stride;        /* every so many completions are kept */
	struct completion last; /* the newest, kept or not */
};

/* room: even, at least 4.  0 or -ENOMEM. */
int completions_open(struct completions *completions, size_t room);
void completions_close(struct completions *completions); /* safe on {0} */

/* One writer. */
void completions_add(struct completions *completions, const struct completion *now);

/* After the run.  The part between the first completion at cut_ns or later and the last one up to
 * end_ns: their difference in *out (t_ns: its length).  The number of completions in it, the first one
 * included: nothing can be said with fewer than 2. */
uint64_t completions_between(const struct completions *completions, uint64_t cut_ns,
	uint64_t end_ns, struct completion *out);

/* Makes *out, as completions_between left it, longer by a standstill at either end: from cut_ns to the first completion, or from
 * the last to end_ns, where that is more than twice the longest time between two of the part, and more than least_ns.  Without it
 * a run whose store dies in the middle has the rate that it had before. */
void completions_add_standstill(const struct completions *completions, uint64_t cut_ns,
	uint64_t end_ns, uint64_t least_ns, struct completion *out);

/* Samples through the step at t_ns, interpolated between completions (from 0 at the start; flat after
 * the last). */
double completions_samples_at(const struct completions *completions, uint64_t t_ns);

/* --- the steady part -------------------------------------------------------------------------- */

/* Below this many windows after the minimum nothing can be said. */
enum { STEADY_WINDOWS_MIN = 8 };

struct steady {
	size_t cut;       /* first window of the steady part */
	bool tested;      /* false: too few windows to test; settled and stayed are then presumed */
	bool settled;     /* false: no cut in the first third leaves a steady rest */
	bool stayed;      /* false: it settled and then left the steady state (a shift) */
	double drift;     /* relative change of the rate over the steady part, by robust slope */
	char reason[160]; /* when not tested, not settled or not stayed */
};

/* rates: samples/s per window, count >= 1.  minimum: windows that are warm-up whatever the test
 * says.  steps: how many ended in the others; windows are joined until there are no more of them,
 * since rates between steps are interpolated and one of them would count several times.  MSER
 * (White 1997), on means of up to five windows, chooses the cut within the first third of the
 * rest.  What follows is searched for the most significant change of level, against noise that
 * may be autocorrelated; changes below 5 % never count.  A change within the first third moves
 * the cut. */
struct steady steady_find(const double *rates, size_t count, size_t minimum, size_t steps);

#endif
