/* What columns of CSV files and tags of TensorBoard are about, by their names, and in which unit. */
#ifndef MLBENCH_FIT_STEP_NAMES_H
#define MLBENCH_FIT_STEP_NAMES_H

#include <stdbool.h>
#include <stddef.h>

enum step_role {
	STEP_ROLE_NONE,
	STEP_ROLE_NUMBER, /* which step: "step", "global_step", "iteration" */
	STEP_ROLE_CLOCK,  /* when: "timestamp", "wall_time", "elapsed_s" */
	STEP_ROLE_TIME, /* how long a step takes: "step_time_ms", "iter_time", "batch_time", "duration_s" */
	STEP_ROLE_WAIT,      /* how long it waits for its batch: "data_time", "data_loading_time" */
	STEP_ROLE_RATE,      /* steps per second: "it/s", "steps_per_sec", "global_step/sec" */
	STEP_ROLE_SAMPLES,   /* samples per second: "images_per_s", "samples/s" */
	STEP_ROLE_BATCH,     /* samples of a step, or so far: "batch_size", "samples" */
	STEP_ROLE_JOB_BATCH, /* the same of all ranks together: "global_batch_size" */
	STEP_ROLE_RANK,      /* whose step: "rank", "local_rank" */
	STEP_ROLE_RUN,       /* how long all steps took together: "train_runtime" */
	STEP_ROLE_PAUSE,     /* how long an evaluation took, which is in that: "eval_runtime" */
	STEP_ROLE_PHASE,     /* words, which may be of an evaluation: "phase", "split" */
	STEP_ROLE_SIDE, /* words, in turns with what a step was measured: "side" (loop_headroom.h) */
	STEP_ROLE_TOTAL, /* how many steps the loop has; of lines alone */
	STEP_ROLES,
};

struct step_name {
	enum step_role role;
	double unit_ns; /* of its values, from an ending such as _ms, (ms) or _s; 0: the name does not say */
	bool either; /* STEP_ROLE_TIME or _CLOCK: a column called "time" */
};

/* A name as somebody chose it: any case, with any signs between its words; of a tag, only its last part has to tell, "train/" and
 * the like may stand before it.  Names of validation and evaluation have no role. */
struct step_name step_name_of(const char *name, size_t length);

/* A number, with or without a unit of time behind it ("31.5ms", "0.03 s").  False: none.  *unit_ns: 0 where none is said. */
bool step_number(const char *text, size_t length, double *value, double *unit_ns);

/* A moment: a date with its time of day ("2026-11-26 06:53:01.123", with T, Z or an offset, too).  Seconds since 1970.  False: none. */
bool step_moment(const char *text, size_t length, double *s);

/* A date with its time of day, or hours, minutes and seconds ("1:02:03.5", "02:03"), at the
 * beginning of a text: how long it is; 0: none. */
size_t step_clock(const char *text, double *s);

/* Whether words, as somebody wrote them, speak of validation, evaluation or a test. */
bool step_is_of_validation(const char *text, size_t length);

/* The unit of numbers that count since 1970, by their size; 0: they do not. */
double step_epoch_unit_ns(double value);

#endif
