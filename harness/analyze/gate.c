/* The validity gate: figures that contradict each other are not diagnosed.  Checked are steadiness,
 * the accounting of thread time, flow conservation, and Little's law where both of its sides were
 * measured. */
#include "harness/analyze/verdict_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double ACCOUNTED_MIN = 0.97;
static const double LITTLE_TOLERANCE = 0.02;
static const double UTILISATION_TOLERANCE =
	0.10; /* histograms know a value to 3 %, and clip at the edges */
static const double FLOW_TOLERANCE = 0.02;

static bool steady(const struct evidence_base *base, struct refusal *refusal)
{
	if (base->point->status == POINT_UNSTEADY) {
		(void)snprintf(
			refusal->reason, sizeof refusal->reason, "the throughput was not steady");
		for (size_t i = 0; i < base->point->note_count; i++)
			if (strncmp(base->point->notes[i], "unsteady: ", strlen("unsteady: ")) == 0)
				(void)snprintf(refusal->reason, sizeof refusal->reason, "%.200s",
					base->point->notes[i]);
		(void)way_out_steadier(refusal->reason, base->facts, refusal->way_out);
		return false;
	}
	if (base->count == 0 || base->point->status != POINT_OK) {
		(void)snprintf(
			refusal->reason, sizeof refusal->reason, "there is no good repetition");
		(void)snprintf(refusal->way_out, sizeof refusal->way_out,
			"see why each failed (mlbench show --verbose), and measure again");
		return false;
	}
	return true;
}

static bool is_share(double value)
{
	return value >= 0 && value <= 1; /* not NAN either */
}

static bool has_states(const struct evidence_base *base, struct refusal *refusal)
{
	const struct point_summary *point = base->point;
	bool known = point->stage_count >= 2;
	for (size_t i = 0; i < point->stage_count; i++)
		known = known && is_share(point->stages[i].busy) &&
			is_share(point->stages[i].starved) && is_share(point->stages[i].blocked);
	if (!known) {
		(void)snprintf(refusal->reason, sizeof refusal->reason,
			"no state times were recorded (measure.profiler = off, or too short a run)");
		(void)way_out_states(base->facts, refusal->way_out);
	}
	return known;
}

static bool accounts(const struct evidence_base *base, struct refusal *refusal)
{
	const double accounted = base->point->accounted;
	if (accounted >= ACCOUNTED_MIN)
		return true;
	if (isnan(accounted))
		(void)snprintf(refusal->reason, sizeof refusal->reason,
			"it is not known how much of the threads' time is accounted for");
	else
		(void)snprintf(refusal->reason, sizeof refusal->reason,
			"only %.1f %% of the threads' time is accounted for, and it takes %.0f %%",
			accounted * 100, ACCOUNTED_MIN * 100);
	return false;
}

/* What entered the decode stage left through the step, but for what waited at either end; samples are
 * counted between completions of steps, stages between edges of windows, which adds two batches. */
static bool flow_conserved(
	const struct evidence_base *base, const struct measurement *m, struct refusal *refusal)
{
	const struct stage_measurement *read = measurement_stage(m, STAGE_READ);
	const struct stage_measurement *decode = measurement_stage(m, STAGE_DECODE);
	if (!read || !decode || read->items == 0 || decode->items == 0)
		return true;
	const double out = (double)(m->samples + m->bad_samples);
	const struct stage_measurement *step = measurement_stage(m, STAGE_STEP);
	const double devices = step && step->workers > 1 ? step->workers : 1;
	const double waiting =
		(double)base->facts->batch_size * (base->facts->prefetch_depth + 4 * devices) +
		(double)base->facts->read_threads * base->facts->read_depth * 2.0 +
		2.0 * base->facts->decode_workers;
	const double tolerance = FLOW_TOLERANCE * out + waiting + (double)m->bad_samples;
	const double worst = fmax(fabs((double)read->items - (double)decode->items),
		fabs((double)decode->items - out));
	if (worst <= tolerance)
		return true;
	(void)snprintf(refusal->reason, sizeof refusal->reason,
		"flow is not conserved: %llu read, %llu decoded, %.0f through the step",
		(unsigned long long)read->items, (unsigned long long)decode->items, out);
	return false;
}

/* Files in flight = rate x latency, and may not exceed what is allowed in flight.  Those in flight at the beginning bring along what
 * they had waited by then. */
static bool little_of_reads(
	const struct evidence_base *base, const struct measurement *m, struct refusal *refusal)
{
	const struct stage_measurement *read = measurement_stage(m, STAGE_READ);
	if (!read || read->service.count == 0 || base->facts->reads_memory ||
		base->facts->read_depth == 0)
		return true;
	const double seconds = measurement_counted_seconds(m);
	if (seconds <= 0)
		return true;
	const double in_flight =
		(double)read->items / seconds * histogram_mean(&read->service) * 1e-9;
	const double allowed = (double)base->facts->read_threads * base->facts->read_depth;
	const double before = fmin((double)read->service.max_ns * 1e-9 / seconds, 1);
	if (in_flight <= allowed * (1 + LITTLE_TOLERANCE + before) + 1)
		return true;
	(void)snprintf(refusal->reason, sizeof refusal->reason,
		"Little's law fails at read: rate x latency is %.1f files in flight, and at most "
		"%.0f may be",
		in_flight, allowed);
	return false;
}

/* Utilisation law (Little's on the workers): rate x service time = workers at work, by two clocks.
 */
static bool little_of_decode(const struct measurement *m, struct refusal *refusal)
{
	const struct stage_measurement *decode = measurement_stage(m, STAGE_DECODE);
	const double seconds = measurement_counted_seconds(m);
	if (!decode || decode->service.count == 0 || decode->per_batch || seconds <= 0)
		return true;
	const double by_histogram =
		(double)decode->items * histogram_mean(&decode->service) * 1e-9 / seconds;
	const double by_states = decode->seconds[THREAD_WORKING] / seconds;
	/* Items cut in two by the edges of the measured part: at most one a worker at each end. */
	const double edges = 2 * histogram_mean(&decode->service) * 1e-9 / seconds;
	const double slack = UTILISATION_TOLERANCE * fmax(by_histogram, by_states) +
			     (0.01 + edges) * decode->workers;
	if (fabs(by_histogram - by_states) <= slack)
		return true;
	(void)snprintf(refusal->reason, sizeof refusal->reason,
		"Little's law fails at decode: rate x service time keeps %.2f workers at work, the "
		"state clocks %.2f",
		by_histogram, by_states);
	return false;
}

bool gate_passes(const struct evidence_base *base, struct refusal *refusal)
{
	*refusal = (struct refusal){0};
	if (!steady(base, refusal) || !has_states(base, refusal))
		return false;
	bool agrees = accounts(base, refusal);
	for (size_t i = 0; i < base->count && agrees; i++)
		agrees = flow_conserved(base, base->repeats[i], refusal) &&
			 little_of_reads(base, base->repeats[i], refusal) &&
			 little_of_decode(base->repeats[i], refusal);
	if (!agrees)
		(void)way_out_again(base->facts, refusal->way_out);
	return agrees;
}
