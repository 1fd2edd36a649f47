/* Reads at half and at twice the set depth, each for a moment of the warm-up (measure.depths): at
 * one depth a slow store and a saturated one look alike, because with d files in flight each takes
 * d / X on either.  If throughput follows the depth the store is slow; if not, it is saturated.
 *
 * A state machine in virtual time: the control thread shows it what the readers have done
 * (conduct.c), and it says how many files may be in flight from now on.  In order:
 *   ramp     the set depth, until twice as many files are read (the first ones find an idle store:
 *            TRACE_READ_RAMP)
 *   look     the same for a moment: nothing is tried if no blob was free most of the time, or if
 *            the readers' own CPU time is what reads take (page cache)
 *   settle   another depth, until all that was in flight before is done, and as many files as are
 *            in flight now
 *   count    a point: at least 64 files and half a second, more if the warm-up has the time and the
 *            rate is uncertain
 *   return   the set depth, until it has settled again
 * All of it may lengthen the warm-up by 4 % of the repetition, at most 10 s: points get shorter,
 * then are left out.
 *
 * The depth changes under the exchange's lock, which readers visit anyway; each reader has a share
 * of it, and one whose share is 0 pauses.  Tickets stay in order, so batches are the same.  Twice
 * the depth needs spare buffers, which the printed bound includes; if they would add a quarter to
 * all pools, that point is left out.  The measured part begins once no file of another depth is in
 * flight, and files read at another depth are in no histogram and no trace.  The result's
 * read_points have rate, latency, the rate's error from eight blocks, and how long no buffer was
 * free; a note says why one is missing. */
#ifndef MLBENCH_PIPELINES_DITHER_H
#define MLBENCH_PIPELINES_DITHER_H

#include "harness/record/measurement.h"
#include "pipelines/pipeline.h"
#include "workloads/source/source.h"

/* Which depths are worth trying: fills plan->depths but for its memory, of plan's threads and depth. */
void dither_plan(
	const struct config *config, const struct source_ops *source, struct pipeline_plan *plan);
/* Not twice the depth; the reason is formatted. */
void dither_plan_not_twice(struct depth_plan *plan, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The longest that a repetition of this configuration can be lengthened by. */
uint64_t dither_longer_ns(const struct config *config);
/* What is known at one moment; all but in_flight and earlier are sums since the start. */
struct dither_look {
	uint64_t now_ns; /* since the start */
	uint64_t files, bytes;
	double latency_ns, latency_squares;
	uint32_t in_flight,
		earlier; /* with the readers; of these, from before the last change of depth */
	/* Of the readers' threads.  CPU time 0: not known. */
	uint64_t working_ns, blocked_ns, cpu_ns, run_queue_ns;
};

enum { DITHER_MARKS = 64 };

enum dither_phase {
	DITHER_RAMP,
	DITHER_LOOK,
	DITHER_SETTLE,
	DITHER_COUNT,
	DITHER_RETURN,
	DITHER_OVER
};

/* Begins as {.plan = ..., .warmup_ns = ..., .latest_ns = ...}. */
struct dither {
	const struct depth_plan *plan;
	uint64_t warmup_ns; /* configured */
	uint64_t latest_ns; /* when it is over in any case */
	enum dither_phase phase;
	unsigned trial;             /* the next or present one */
	uint32_t depth;             /* at present; 0: before the first look */
	struct dither_look entered; /* the phase; of the first look: the start */
	uint64_t drain_ns; /* that as many files as are in flight took, when it was looked */
	uint64_t soft_ns, hard_ns; /* of the present trial: when it may go on, and when it ends */
	struct dither_look marks[DITHER_MARKS]; /* of a count, the first is its beginning */
	unsigned mark_count, mark_every, marks_passed;
	struct read_point points[READ_POINTS_MAX];
	size_t point_count;
	char note[NOTE_BYTES]; /* what was not tried or kept, and why; "" */
};

/* The depth from now on.  At each look, some milliseconds apart. */
uint32_t dither_step(struct dither *dither, const struct dither_look *now);
static inline bool dither_is_over(const struct dither *dither)
{
	return dither->phase == DITHER_OVER;
}

#endif
