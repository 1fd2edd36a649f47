/* Somebody's own data loader beside this pipeline on the same hardware, files and number of workers: how fast both are, and
 * where the difference goes.  A pure function of what was measured in rounds, one of each in turn.
 *
 * The difference is the time that one worker has for a sample: workers / rate, theirs less ours.  CPU time by class of code
 * is subtracted class by class, and so is the time that they were ready to run and had no core; what is left are other waits
 * of the workers, or work that others do here. */
#ifndef MLBENCH_ANALYZE_EFFICIENCY_H
#define MLBENCH_ANALYZE_EFFICIENCY_H

#include "harness/analyze/statistics.h"
#include "harness/measure/job_sampler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EFFICIENCY_ROUNDS_MAX = 64, EFFICIENCY_FORECASTS_MAX = 3, EFFICIENCY_WHY_BYTES = 240 };

/* One side in one round.  Times are seconds per sample; NAN: not known. */
struct efficiency_look {
	double rate;                 /* samples/s */
	double cpu_s;                /* CPU time of all its processes */
	double worker_cpu_s;         /* of that, of those that load */
	double classes[JOB_CLASSES]; /* of worker_cpu_s, by class; NAN: it was not sampled */
	double queue_s;              /* that those that load were ready to run and had no core */
	uint64_t class_samples;      /* that these come from */
	double memory_bytes;         /* its share of what is resident; shared pages counted once */
	double read_bytes;           /* per sample, through read calls */
	double start_s;              /* until its first batch; of a loader */
};

struct efficiency_input {
	const struct efficiency_look *loader, *hardware; /* (rounds) */
	size_t rounds;
	unsigned workers; /* of both; 0 counts as one */
	double cores;     /* that both may use; NAN: not known */
};

struct efficiency_rate {
	double median;
	struct interval interval; /* 95 % */
};

/* Means over the rounds. */
struct efficiency_side {
	struct efficiency_rate rate;
	struct efficiency_look mean;
	double each_s; /* that a worker has for a sample: workers / median rate */
};

/* What the loader would give if some classes cost what they cost here. */
struct efficiency_forecast {
	enum job_class classes[JOB_CLASSES];
	size_t class_count;
	double rate;
	bool by_cores; /* the cores limit it, no longer the workers */
};

struct efficiency {
	struct efficiency_side loader, hardware;
	struct efficiency_rate
		ratio; /* of the two medians; its interval by the ratio of each round */
	double lost_s; /* each_s of the loader less that of the hardware */
	double class_lost[JOB_CLASSES]; /* NAN: not sampled */
	double queue_lost_s; /* of lost_s: ready to run, and no core free; NAN: not known */
	double rest_s;       /* of lost_s: neither CPU time of the workers nor that */
	double worker_busy;  /* share of the workers' time that is CPU time, of the loader */
	struct efficiency_forecast forecasts[EFFICIENCY_FORECASTS_MAX];
	size_t forecast_count;
	char no_forecast[EFFICIENCY_WHY_BYTES]; /* why there is none; "" */
};

/* rounds >= 1. */
void efficiency_find(const struct efficiency_input *input, struct efficiency *out);

#endif
