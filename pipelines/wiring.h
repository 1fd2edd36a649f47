/* One repetition's parts, and what pipeline.c has done with them by others: wiring.c, conduct.c,
 * collect.c. */
#ifndef MLBENCH_PIPELINES_WIRING_H
#define MLBENCH_PIPELINES_WIRING_H

#include "harness/base/memory.h"
#include "pipelines/bad_samples.h"
#include "pipelines/crew.h"
#include "pipelines/devices.h"
#include "pipelines/dither.h"
#include "pipelines/exchange.h"
#include "pipelines/first_epoch.h"
#include "pipelines/injection.h"
#include "pipelines/monitor.h"
#include "pipelines/pipeline.h"
#include "pipelines/placement.h"
#include "pipelines/readers.h"
#include "pipelines/team.h"

/* Everything one repetition owns. */
struct run {
	const struct config *config;
	const struct dataset *dataset;
	struct pipeline_plan plan;
	const struct backend_ops *backend; /* of the step */
	struct measurement *m;
	bool timed;
	bool wants_timeline;
	bool interrupted;
	unsigned cores;
	uint64_t warmup_ns; /* configured; when conducted: as it was */
	uint64_t duration_ns, window_ns, segment_ns;
	struct dither dither; /* {0}: no other depth is tried */
	struct memory_block blob_block, slot_block, staging_block;
	struct placement placement;
	struct injection injection;
	bool injection_is_open, bad_is_open, crew_is_open;
	struct bad_samples bad;
	struct source *source;
	struct exchange exchange;
	struct first_epoch first_epoch;
	struct crew crew;
	struct stage stages[STAGE_IDS];
	struct readers *readers;
	struct team *team;
	struct backend_group *group; /* NULL: one device */
	struct rounds rounds;
	struct devices devices;
	struct monitor monitor;
	struct timeline *timeline; /* NULL: none */
};

/* Starts all threads; a failure goes to the crew.  They end in any case once the crew is
 * stopped. */
void wiring_start_threads(struct run *run);

/* False: a thread hangs in the kernel; what it may still touch must stay. */
bool wiring_join_threads(struct run *run, const struct pipeline_limits *limits);

/* From the start of the threads' work to the last edge; then everybody was told to stop.
 * run->warmup_ns is as long as it was, run->interrupted says whether *control->stop ended it. */
void conduct(struct run *run, const struct pipeline_control *control,
	const struct pipeline_limits *limits);

/* After the threads have ended: sets m's status to OK, UNSTEADY or INTERRUPTED. traces may be
 * NULL. 0 or -ENOMEM. */
int collect(const struct run *run, struct measurement *m, struct traces *traces);

#endif
