/* Published peaks of devices: dense products, in FLOP/s.  Data sheets mostly print tensor figures
 * for weights of which half are zero; those are halved here.  A device that is not in the table has
 * no peak: a made-up one would make a made-up utilisation. */
#ifndef MLBENCH_ANALYZE_PEAKS_H
#define MLBENCH_ANALYZE_PEAKS_H

#include "harness/config/config.h"
#include "harness/record/measurement.h"

#include <stddef.h>

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

#endif
