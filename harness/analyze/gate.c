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

static bool steady(const struct evidence_base *base, char *reason, size_t room)
{
	if (base->point->status == POINT_UNSTEADY) {
		(void)snprintf(reason, room, "the throughput was not steady");
		for (size_t i = 0; i < base->point->note_count; i++)
			if (strncmp(base->point->notes[i], "unsteady: ", strlen("unsteady: ")) == 0)
				(void)snprintf(reason, room, "%.200s", base->point->notes[i]);

		return false;
	}
	if (base->count == 0 || base->point->status != POINT_OK) {
		(void)snprintf(reason, room, "there is no good repetition");
		return false;
	}
	return true;
}

static bool is_share(double value)
{
	return value >= 0 && value <= 1; /* not NAN either */
}

static bool has_states(const struct evidence_base *base, char *reason, size_t room)
{
	const struct point_summary *point = base->point;
	bool known = point->stage_count >= 2;
	for (size_t i = 0; i < point->stage_count; i++)
		known = known && is_share(point->stages[i].busy) &&
			is_share(point->stages[i].starved) && is_share(point->stages[i].blocked);
	if (!known)
		(void)snprintf(reason, room,
			"no state times were recorded (measure.profiler = off, or too short a run)");
	return known;
}

static bool accounts(const struct evidence_base *base, char *reason, size_t room)
{
	const double accounted = base->point->accounted;
	if (accounted >= ACCOUNTED_MIN)
		return true;
	if (isnan(accounted))
		(void)snprintf(reason, room,
			"it is not known how much of the threads' time is accounted for");
	else
		(void)snprintf(reason, room,
			"only %.1f %% of the threads' time is accounted for, and it takes %.0f %%",
			accounted * 100, ACCOUNTED_MIN * 100);
	return false;
}

static const struct stage_measurement *stage_of(const struct measurement *m, const char *name)
{
	for (size_t i = 0; i < m->stage_count; i++)
		if (strcmp(m->stages[i].name, name) == 0)
			return &m->stages[i];
	return NULL;
}

/* What entered the decode stage left through the step, but for what waited at either end; samples are
 * counted between completions of steps, stages between edges of windows, which adds two batches. */
static bool flow_conserved(
	const struct evidence_base *base, const struct measurement *m, char *reason, size_t room)
{
	const struct stage_measurement *read = stage_of(m, "read");
	const struct stage_measurement *decode = stage_of(m, "decode");
	if (!read || !decode || read->items == 0 || decode->items == 0)
		return true;
	const double out = (double)(m->samples + m->bad_samples);
	const struct stage_measurement *step = stage_of(m, "step");
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
	(void)snprintf(reason, room,
		"flow is not conserved: %llu read, %llu decoded, %.0f through the step",
		(unsigned long long)read->items, (unsigned long long)decode->items, out);
	return false;
}

/* Files in flight = rate x latency, and may not exceed what is allowed in flight. */
static bool little_of_reads(
	const struct evidence_base *base, const struct measurement *m, char *reason, size_t room)
{
	const struct stage_measurement *read = stage_of(m, "read");
	if (!read || read->service.count == 0 || base->facts->reads_memory ||
		base->facts->read_depth == 0)
		return true;
	const double in_flight = m->throughput * histogram_mean(&read->service) * 1e-9;
	const double allowed = (double)base->facts->read_threads * base->facts->read_depth;
	if (in_flight <= allowed * (1 + LITTLE_TOLERANCE) + 1)
		return true;
	(void)snprintf(reason, room,
		"Little's law fails at read: rate x latency is %.1f files in flight, and at most "
		"%.0f may be",
		in_flight, allowed);
	return false;
}

/* Utilisation law (Little's on the workers): rate x service time = workers at work, by two clocks.
 */
static bool little_of_decode(const struct measurement *m, char *reason, size_t room)
{
	const struct stage_measurement *decode = stage_of(m, "decode");
	if (!decode || decode->service.count == 0 || decode->per_batch || m->measured_seconds <= 0)
		return true;
	const double by_histogram = (double)decode->items * histogram_mean(&decode->service) *
				    1e-9 / m->measured_seconds;
	const double by_states = decode->seconds[THREAD_WORKING] / m->measured_seconds;
	/* Items cut in two by the edges of the measured part: at most one a worker at each end. */
	const double edges = 2 * histogram_mean(&decode->service) * 1e-9 / m->measured_seconds;
	const double slack = UTILISATION_TOLERANCE * fmax(by_histogram, by_states) +
			     (0.01 + edges) * decode->workers;
	if (fabs(by_histogram - by_states) <= slack)
		return true;
	(void)snprintf(reason, room,
		"Little's law fails at decode: rate x service time keeps %.2f workers at work, the "
		"state clocks %.2f",
		by_histogram, by_states);
	return false;
}

bool gate_passes(const struct evidence_base *base, char *reason, size_t room)
{
	if (!steady(base, reason, room) || !has_states(base, reason, room) ||
		!accounts(base, reason, room))
		return false;
	for (size_t i = 0; i < base->count; i++)
		if (!flow_conserved(base, base->repeats[i], reason, room) ||
			!little_of_reads(base, base->repeats[i], reason, room) ||
			!little_of_decode(base->repeats[i], reason, room))
			return false;
	return true;
}
