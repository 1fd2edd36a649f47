/* What the devices of a point did, as far as they said: the evidence for limits that lie on the device itself.  Means over
 * the repetitions and their devices; NAN: not known. */
#ifndef MLBENCH_ANALYZE_DEVICE_VIEW_H
#define MLBENCH_ANALYZE_DEVICE_VIEW_H

#include "harness/record/measurement.h"

#include <stdbool.h>
#include <stddef.h>

struct device_view {
	bool any; /* a real device computed; nothing else here is known otherwise */
	char name[sizeof((struct device_measurement){0}.name)];
	double busy;         /* of the measured time, in a step */
	double launch_share; /* host time to launch a step, of the step's device time */
	double idle;         /* of a step's device time, in which no kernel ran */
	double copy_share;   /* copying batches to it, of its step time */
	double copying;      /* of the measured time */
	double copy_rate;    /* bytes/s while it copied */
	double sync_share;   /* exchange of gradients, of its step time */
	double utilisation;  /* of the model: FLOPs done / time / published peak */
	/* Share of the samples in which the device slowed itself down against harm (heat, power supply), and the
	 * commonest reason; in which its power cap held the clocks down; and its clock over its highest. */
	double slowed;
	char reason[NAME_BYTES];
	double capped;
	double clock_share;
};

struct device_view device_view_of(const struct measurement *const *repeats, size_t count);

#endif
