/* One round of `mlbench efficiency`: a loader of the user's, or this pipeline, run in a process group of its own, watched from
 * outside and ended.  Both are watched by the same means, so that their CPU time is told in the same classes.
 *
 * The loader is a command.  It is started with MLBENCH_FOLDER, MLBENCH_WORKERS and MLBENCH_BATCH in its environment, prints
 * `batch N` for each batch (harness/measure/batch_lines.h), and is ended when it was measured.  What else it prints is thrown
 * away; of its error stream the end is kept for a message.  Time and memory are bounded whatever it does. */
#ifndef MLBENCH_COMMAND_WATCHED_RUN_H
#define MLBENCH_COMMAND_WATCHED_RUN_H

#include "harness/analyze/efficiency.h"
#include "harness/config/config.h"
#include "harness/measure/job_watch.h"
#include "harness/record/record.h"
#include "workloads/dataset/dataset.h"

#include <stdatomic.h>

struct watched_run {
	const struct config *config; /* of one point */
	const struct dataset *dataset;
	char *const *command; /* of the loader, NULL-terminated */
	const atomic_bool *stop;
};

enum { WATCHED_WORD_BYTES = 160 };

/* What a round tells beside its figures. */
struct watched_facts {
	uint32_t loaders;       /* worker processes that were found */
	uint64_t batch_samples; /* of the last batch */
	uint64_t wrong_lines;
	double allowed_cores; /* that it may use, by affinity and quota; NAN */
	double node_cores,
		other_cores; /* of the node, and of these kept busy by other processes; NAN */
	char stage[JOB_NAME_BYTES], resource[JOB_NAME_BYTES]; /* as `mlbench observe` names them */
	char no_classes[JOB_WHY_BYTES];    /* why its CPU time was not sampled; "" */
	char unsteady[WATCHED_WORD_BYTES]; /* of this pipeline; "" */
};

/* -EINVAL: the command cannot be started, prints nothing of the protocol, or ends too early; -EINTR: *stop.  The end of the
 * loader's error stream is in err. */
int watched_run_loader(const struct watched_run *run, struct efficiency_look *out,
	struct watched_facts *facts, struct error *err);
/* The repetition is also appended to `record`, with its traces. */
int watched_run_pipeline(const struct watched_run *run, struct record *record,
	struct efficiency_look *out, struct watched_facts *facts, struct error *err);

#endif
