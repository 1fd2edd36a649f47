/* A device over the repetitions of a point. */
#ifndef MLBENCH_ANALYZE_DEVICE_SUMMARY_H
#define MLBENCH_ANALYZE_DEVICE_SUMMARY_H

#include "harness/config/config.h"
#include "harness/record/measurement.h"

#include <stdbool.h>
#include <stddef.h>

/* --- published peaks of devices --------------------------------------------------------------- */

/* Published peaks of devices: dense products, in FLOP/s.  Data sheets mostly print tensor figures
 * for weights of which half are zero; those are halved here.  A device that is not in the table has
 * no peak: a made-up one would make a made-up utilisation. */

enum { PEAK_PRECISIONS = STEP_PRECISION_FP8 + 1, PEAK_WORDS = 3 };

struct device_peak {
	const char *device; /* "H100 SXM" */
	/* Words that a device's name has, all of them; NULL: fewer.  Names are CUDA's and
	 * NVML's. */
	const char *words[PEAK_WORDS];
	double teraflops
		[PEAK_PRECISIONS]; /* 0: it does not compute in this, or nothing is published */
	const char *source;
};

extern const struct device_peak peak_list[];
extern const size_t peak_count;

/* The device's line by its name; NULL: unknown, a part of a device (MIG), or none at all (a test
 * double, an emulated one). */
const struct device_peak *peak_find(const char *name);

/* FLOP/s; NAN: unknown. */
double peak_flops(const char *name, enum step_precision precision);

/* Peak and utilisation of each device of m, from what was measured: FLOPs of its steps in the
 * measured part / measured time / peak.  NAN where something of it is not known. */
void peaks_fill(struct measurement *m);

/* --- what a device did ------------------------------------------------------------------------ */

struct device_summary {
	/* Means over the repetitions that know a member (NAN: none does), ranges from the least to
	 * the largest of all, errors of memory summed up, the largest error of the clock map, the
	 * newest statistics of a step. deterministic: in all of them. */
	struct device_measurement all;
	double step_ns;            /* device time of a step; NAN */
	double step_share;         /* of the measured time, in a step; NAN */
	double peak_share;         /* of the peak, while it was in a step; NAN */
	double upload_bytes_per_s; /* while it copied; NAN */
};

/* Device i of each repetition, as many as the first one has.  Returns how many. */
size_t device_summaries(const struct measurement *const *repeats, size_t count,
	struct device_summary out[DEVICES_MAX]);

/* Whether repetitions computed the same: the loss of their first step, compared bit by bit. */
enum same_results { SAME_UNKNOWN, SAME_YES, SAME_NO };
enum same_results device_same_results(const struct measurement *const *repeats, size_t count);

/* What the devices of a point did, as far as they report it: the evidence for limits that lie on
 * the device itself. Means over the repetitions and their devices; NAN: unknown. */
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
	/* Share of the samples in which the device slowed itself down against harm (heat, power
	 * supply), and the commonest reason; in which its power cap held the clocks down; and its
	 * clock over its highest. */
	double slowed;
	char reason[NAME_BYTES];
	double capped;
	double clock_share;
};

struct device_view device_view_of(const struct measurement *const *repeats, size_t count);

#endif
