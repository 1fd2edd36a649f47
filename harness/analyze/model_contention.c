/* How cores slow each other down, from points of a sweep at which different numbers of them were busy. */
#include "harness/analyze/model.h"

#include "harness/analyze/model_parts.h"

#include <math.h>
#include <string.h>

static const double SPREAD_LEAST = 0.5; /* cores */

bool model_keeps_decode_cost(enum key_id key)
{
	static const char *const sections[] = {
		"decode", "batch", "prefetch", "step", "sync", "upload"};
	for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
		if (strcmp(config_keys[key].section, sections[i]) == 0)
			return true;
	return key == KEY_READ_DEPTH || key == KEY_READ_THREADS;
}

bool model_contention_point(
	const struct measurement *measurement, unsigned cores, double *busy, double *cpu_ns)
{
	const struct stage_measurement *decode = measurement_stage(measurement, STAGE_DECODE);
	if (!decode || decode->items == 0 || isnan(decode->cpu_seconds))
		return false;
	*busy = busy_beside_decode(measurement, cores);
	*cpu_ns = decode->cpu_seconds * 1e9 / (double)decode->items;
	return *cpu_ns > 0;
}

/* A line by least squares; contention is its slope over its value at one core. */
double model_fit_contention(const double *busy, const double *cpu_ns, size_t count)
{
	double low = HUGE_VAL;
	double high = -HUGE_VAL;
	double x = 0;
	double y = 0;
	for (size_t i = 0; i < count; i++) {
		low = fmin(low, busy[i]);
		high = fmax(high, busy[i]);
		x += (busy[i] - 1) / (double)count;
		y += cpu_ns[i] / (double)count;
	}
	if (count < 2 || high - low < SPREAD_LEAST)
		return NAN;
	double xx = 0;
	double xy = 0;
	for (size_t i = 0; i < count; i++) {
		xx += (busy[i] - 1 - x) * (busy[i] - 1 - x);
		xy += (busy[i] - 1 - x) * (cpu_ns[i] - y);
	}
	const double slope = xy / xx;
	const double alone = y - slope * x;
	return alone > 0 ? fmax(slope / alone, 0) : NAN;
}
