/* Every metric that mlbench gives: of a run while it goes on (mlbench_run_..., `--listen`), of a saved result
 * (mlbench_result_..., `mlbench export --format openmetrics`), and of an acceptance (mlbench_accept_...).  They have names of their own, so that a file that lies
 * there for weeks is never taken for a run.  docs/prometheus/ has rules for them; a name is a promise to whoever wrote
 * others. */
#ifndef MLBENCH_REPORT_OPENMETRICS_NAMES_H
#define MLBENCH_REPORT_OPENMETRICS_NAMES_H

#include "harness/report/openmetrics.h"

/* Without a label unless one is named. */
enum run_metric {
	RUN_INFO,    /* {name, version, command} */
	RUN_PHASE,   /* {phase}: 1 for the one that it is in, 0 for the others */
	RUN_STUCK,   /* 1: nothing comes through, or nothing of it runs, for longer than is usual */
	RUN_STARTED, /* the command */
	RUN_UPDATED, /* when the picture was made that this is read from */
	RUN_REPETITIONS,
	RUN_REPETITIONS_DONE,
	RUN_RANKS,
	/* Counters of the repetition in progress: they begin anew with each, as those of a process that was started
	 * again. */
	RUN_SAMPLES,
	RUN_BATCHES,
	RUN_EPOCHS,
	RUN_BAD_SAMPLES,
	RUN_THROUGHPUT, /* of the last window */
	RUN_STEP_UTILISATION,
	RUN_READ_BYTES,
	RUN_RESIDENT,
	RUN_POOL,
	RUN_STAGE_SECONDS,  /* {stage, state} */
	RUN_STAGE_CPU,      /* {stage} */
	RUN_STAGE_ITEMS,    /* {stage} */
	RUN_STAGE_WORKERS,  /* {stage} */
	RUN_QUEUE_DEPTH,    /* {queue} */
	RUN_QUEUE_CAPACITY, /* {queue} */
	RUN_DEVICE_CLOCK,
	RUN_DEVICE_POWER,
	RUN_DEVICE_TEMPERATURE,
	RUN_METRICS
};
extern const struct openmetrics_family run_metrics[RUN_METRICS];

/* All with {name, config}: the benchmark's name and the hash of its configuration. */
enum result_metric {
	RESULT_INFO, /* {version, cpu, backend} */
	RESULT_START,
	RESULT_END,
	RESULT_COMPLETE,
	RESULT_POINTS, /* {state} */
	/* Of the best point. */
	RESULT_THROUGHPUT,
	RESULT_THROUGHPUT_LOW,
	RESULT_THROUGHPUT_HIGH,
	RESULT_STEP_UTILISATION,
	RESULT_STEP_WAIT,
	RESULT_READ_RATE,
	RESULT_RESIDENT,
	RESULT_BAD_SAMPLES,
	RESULT_VERDICT,        /* {stage, resource}: its confidence */
	RESULT_STAGE_STATE,    /* {stage, state} */
	RESULT_STAGE_CAPACITY, /* {stage} */
	RESULT_STAGE_WORKERS,  /* {stage} */
	RESULT_RANKS,
	/* Of every point measured, up to a bound: {point, settings}. */
	RESULT_POINT_THROUGHPUT,
	RESULT_POINTS_LEFT_OUT,
	RESULT_METRICS
};
extern const struct openmetrics_family result_metrics[RESULT_METRICS];

/* Of a node that was accepted or not (mlbench accept), all with {node, plan}. */
enum accept_metric {
	ACCEPT_INFO, /* {version, tier, baseline} */
	ACCEPT_START,
	ACCEPT_DURATION,
	ACCEPT_COMPLETE,
	ACCEPT_EXIT_STATUS,
	ACCEPT_VERDICT,        /* {verdict}: 1 for the one that it is, 0 for the others */
	ACCEPT_CHECKS,         /* {verdict} */
	ACCEPT_CHECK_VERDICT,  /* {check, kind, verdict}: likewise */
	ACCEPT_CHECK_DURATION, /* {check, kind} */
	/* Of every figure, up to a bound: {check, figure, place, statistic, unit}. */
	ACCEPT_FIGURE,
	ACCEPT_LIMIT, /* and {level, bound} */
	ACCEPT_FIGURES_LEFT_OUT,
	ACCEPT_METRICS
};
extern const struct openmetrics_family accept_metrics[ACCEPT_METRICS];

#endif
