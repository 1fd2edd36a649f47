/* Whether enough was measured for a verdict, from batch means: the spread of the rate over parts of
 * each repetition.  Where it was not, which keys make a measurement long enough, and by how
 * much. */
#include "harness/analyze/sufficiency.h"

#include "harness/analyze/phases.h"
#include "harness/analyze/statistics.h"
#include "harness/analyze/verdict.h"
#include "harness/base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the rate over a repetition --------------------------------------------------------------- */

double rate_samples_at(const struct measurement *m, double t)
{
	double t0 = 0;
	double s0 = 0;
	for (size_t i = 0; i < m->window_count; i++) {
		const double s1 = (double)m->windows[i].samples;
		if (s1 <= s0)
			continue;
		const double t1 = m->windows[i].t;
		if (t < t1)
			return t1 > t0 ? s0 + (s1 - s0) * (t - t0) / (t1 - t0) : s0;
		t0 = t1;
		s0 = s1;
	}
	return s0;
}

size_t rate_parts(const struct measurement *m, double from, double to, double batches, size_t most)
{
	const double per_batch = m->batches > 0 ? (double)m->samples / (double)m->batches : NAN;
	const double steps = (rate_samples_at(m, to) - rate_samples_at(m, from)) / per_batch;
	size_t windows = 0;
	for (size_t i = 0; i < m->window_count; i++)
		windows += m->windows[i].t > from && m->windows[i].t <= to;
	const double parts = fmin(steps / batches, (double)windows);
	if (!(parts >= 1))
		return 0;
	return parts < (double)most ? (size_t)parts : most;
}

void rate_series(const struct measurement *m, double from, double to, size_t parts, double *rates)
{
	const double length = (to - from) / (double)parts;
	double before = rate_samples_at(m, from);
	for (size_t i = 0; i < parts; i++) {
		const double after = rate_samples_at(m, from + (double)(i + 1) * length);
		rates[i] = length > 0 ? (after - before) / length : NAN;
		before = after;
	}
}

/* --- is it enough? ---------------------------------------------------------------------------- */

enum { PARTS_MOST = 20, PARTS_LEAST = 4, BATCHES_LEAST = 10, SAMPLES_LEAST = 64 };

static const double WIDTH_MOST = 0.20;
static const double NINETY = 1.645;
static const double STEPS_A_PART = 2;

/* Squared relative standard error of one repetition's rate; NAN: too few parts. */
static double rate_error_of(const struct measurement *m)
{
	double rates[PARTS_MOST];
	const double end = m->cut_seconds + m->measured_seconds;
	const size_t parts = rate_parts(m, m->cut_seconds, end, STEPS_A_PART, PARTS_MOST);
	if (parts < PARTS_LEAST)
		return NAN;
	rate_series(m, m->cut_seconds, end, parts, rates);
	const double mean = statistics_mean(rates, parts);
	const double error = statistics_deviation(rates, parts) / mean;
	return mean > 0 ? error * error / (double)parts : NAN;
}

/* Two significant digits, upwards. */
static uint64_t round_up_samples(double n)
{
	const double unit = pow(10, floor(log10(fmax(n, 10))) - 1);
	return (uint64_t)(ceil(n / unit) * unit);
}

struct sufficiency sufficiency_of(const struct measurement *const *repeats, size_t count)
{
	struct sufficiency s = {.width = NAN};
	double squares = 0;
	size_t known = 0;
	uint64_t batches = 0;
	for (size_t i = 0; i < count; i++) {
		const double error = rate_error_of(repeats[i]);
		s.samples += repeats[i]->samples;
		batches += repeats[i]->batches;
		squares += isnan(error) ? 0 : error;
		known += isnan(error) ? 0 : 1;
	}
	if (known > 0)
		s.width = NINETY * sqrt(squares / (double)known / (double)known);
	const double per_batch = batches > 0 ? (double)s.samples / (double)batches : 1;
	double needed = fmax(BATCHES_LEAST * per_batch, SAMPLES_LEAST);
	if (s.width > WIDTH_MOST)
		needed = fmax(needed, (double)s.samples * pow(s.width / WIDTH_MOST, 2));
	s.needed = (double)s.samples < needed ? round_up_samples(needed) : 0;
	return s;
}

/* --- the way out ------------------------------------------------------------------------------ */

/* A run twice as long halves the effect of its edges. */
static const double TWICE = 2;

/* Rounded up to a figure that people write. */
static const char *seconds_text(double seconds, char out[UNITS_BYTES])
{
	static const double WHOLE = 1, TENTH = 0.1;
	const double unit = seconds >= WHOLE ? WHOLE : TENTH;
	const double rounded = unit * ceil(seconds / unit - 1e-9);
	return units_print_duration((uint64_t)llround(rounded * 1e3) * 1000000, out);
}

/* " to 14s or more"; nothing where it is not known. */
static const char *to_seconds(double seconds, char out[UNITS_BYTES])
{
	char text[UNITS_BYTES];
	out[0] = '\0';
	if (seconds > 0 && isfinite(seconds))
		(void)snprintf(out, UNITS_BYTES, " to %.12s or more", seconds_text(seconds, text));
	return out;
}

const char *way_out_longer(const struct sufficiency *s, const struct point_facts *facts,
	const struct measurement *const *repeats, size_t count, char out[WAY_OUT_BYTES])
{
	char to[UNITS_BYTES];
	double seconds = 0;
	for (size_t i = 0; i < count; i++)
		seconds += repeats[i]->measured_seconds;
	const double planned = facts->repeats > 0 ? facts->repeats : (double)count;
	const double rate = (double)s->samples / seconds;
	if (facts->epochs > 0 && s->samples > 0) {
		const double times =
			(double)s->needed / (double)s->samples * (double)count / planned;
		(void)snprintf(out, WAY_OUT_BYTES, "set measure.epochs to %.0f or more",
			ceil(times * facts->epochs));
		return out;
	}
	/* Nothing went through it: only so much longer is known to be more. */
	const double each =
		rate > 0 ? (double)s->needed / rate / planned : 2 * TWICE * facts->duration_s;
	(void)snprintf(out, WAY_OUT_BYTES, "set measure.duration%s",
		to_seconds(fmax(each, facts->duration_s), to));
	return out;
}

const char *way_out_steadier(
	const char *reason, const struct point_facts *facts, char out[WAY_OUT_BYTES])
{
	char to[UNITS_BYTES];
	if (strstr(reason, "never settled"))
		(void)snprintf(out, WAY_OUT_BYTES,
			"set measure.warmup%s, so that the rate settles before it is measured",
			to_seconds(facts->warmup_s + facts->duration_s, to));
	else
		(void)snprintf(out, WAY_OUT_BYTES,
			"set measure.duration%s, or find what disturbs this node (mlbench doctor)",
			to_seconds(TWICE * facts->duration_s, to));
	return out;
}

const char *way_out_again(const struct point_facts *facts, char out[WAY_OUT_BYTES])
{
	char to[UNITS_BYTES];
	(void)snprintf(out, WAY_OUT_BYTES,
		"set measure.duration%s; if it happens again, the node disturbs its clocks "
		"(mlbench doctor)",
		to_seconds(TWICE * facts->duration_s, to));
	return out;
}

const char *way_out_states(const struct point_facts *facts, char out[WAY_OUT_BYTES])
{
	char to[UNITS_BYTES];
	(void)snprintf(out, WAY_OUT_BYTES, "set measure.profiler=on, and measure.duration%s",
		to_seconds(TWICE * facts->duration_s, to));
	return out;
}

/* --- repetitions ------------------------------------------------------------------------------ */

/* Selects the repetitions of a status, in order; returns how many. */
static size_t select_status(const struct measurement *const *repeats, size_t count,
	enum measurement_status status, const struct measurement **out)
{
	size_t found = 0;
	for (size_t i = 0; i < count; i++)
		if (repeats[i]->status == status)
			out[found++] = repeats[i];
	return found;
}

size_t way_out_for_samples(uint64_t have, uint64_t needed, size_t count, size_t most)
{
	if (needed <= have || have == 0 || count >= most)
		return 0;
	const double more = ceil((double)(needed - have) * (double)count / (double)have);
	return more <= (double)(most - count) ? (size_t)more : 0;
}

/* A point is steady where half of its repetitions are; one whose bottleneck changes is cut into
 * parts instead. Where several are unsteady and none is good, more of the same length would be no
 * better: that takes another key. */
static size_t for_steadiness(size_t good, size_t unsteady, size_t left)
{
	const size_t more = good > 0 || unsteady == 1 ? unsteady - good : 0;
	return more <= left ? more : 0;
}

size_t way_out_repetitions(const struct measurement *const *repeats, size_t count, size_t most)
{
	const struct measurement **chosen = calloc(count + 1, sizeof(*chosen));
	size_t more = 0;
	if (!chosen)
		return 0;
	const size_t unsteady = select_status(repeats, count, MEASUREMENT_UNSTEADY, chosen);
	struct phase_cut cut = {.count = 1};
	const struct evidence_base uneven = {.repeats = chosen, .count = unsteady};
	const bool stalled = unsteady > 0 && stalls_bind(&uneven);
	if (unsteady > 0)
		phases_cut(chosen, unsteady, &cut);
	const size_t good = select_status(repeats, count, MEASUREMENT_OK, chosen);
	const struct sufficiency enough = sufficiency_of(chosen, good);
	const size_t with_status[MEASUREMENT_STATUSES] = {
		[MEASUREMENT_OK] = good, [MEASUREMENT_UNSTEADY] = unsteady};
	if (good + unsteady == count && count < most) {
		if (point_status_of(with_status) == POINT_UNSTEADY)
			more = cut.count > 1 || stalled
				       ? 0
				       : for_steadiness(good, unsteady, most - count);
		else
			more = way_out_for_samples(
				enough.samples, enough.needed, good, most - count + good);
	}
	free(chosen);
	return more;
}
