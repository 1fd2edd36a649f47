/* How a round of gradients.h ended; apart from it, since C++ includes this, too, which has no atomics of C. */
#ifndef MLBENCH_WORKLOADS_RANKS_GRADIENTS_ROUND_H
#define MLBENCH_WORKLOADS_RANKS_GRADIENTS_ROUND_H

#include <stdint.h>

/* Why a rank leaves; of several the largest counts. */
enum gradients_leave { GRADIENTS_STAY, GRADIENTS_ENDED, GRADIENTS_FAILED };

/* Of a round.  Monotonic times of this rank, ns. */
struct gradients_round {
	uint64_t first_ns; /* the first bucket was begun */
	uint64_t met_ns;   /* the last rank had its gradients */
	uint64_t ended_ns; /* the sums are there */
	uint64_t late_ns;  /* how long all waited for that rank alone: from the last but one */
	unsigned last;     /* which rank it was */
	enum gradients_leave leaves; /* anything but STAY: it was the last round */
};

#endif
