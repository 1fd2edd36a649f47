/* Rates by point and round, for the rule that says where repetitions are worth their time. */
#include "harness/report/rounds.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct rounds {
	double *rates;                /* (points, rounds) */
	bool *unsteady;               /* (points): or read from storage, alone */
	size_t *workload;             /* (points) */
	struct record_tally *tallies; /* (points): of these rounds alone */
};

static void rounds_close(struct rounds *of)
{
	free(of->rates);
	free(of->unsteady);
	free(of->workload);
	free(of->tallies);
}

/* The first point of each point's workload; there are few workloads. */
static int rounds_find_workloads(const struct record *record, size_t *workload)
{
	const size_t points = record->grid.points;
	size_t *firsts = calloc(points, sizeof *firsts);
	size_t count = 0;
	if (!firsts)
		return -ENOMEM;
	for (size_t i = 0; i < points; i++) {
		size_t k = 0;
		while (k < count &&
			!config_grid_same_workload(&record->config, &record->grid, firsts[k], i))
			k++;
		if (k == count)
			firsts[count++] = i;
		workload[i] = firsts[k];
	}
	free(firsts);
	return 0;
}

/* The first points of a sweep may read from storage what the others find in the page cache.  Such a repetition alone tells
 * nothing of its point. */
static void rounds_find_cold(const struct record *record, size_t rounds, bool *cold)
{
	static const double COLD = 0.9, WARM = 0.99;
	bool warm = false;
	for (size_t i = 0; i < record->entry_count; i++)
		if (record->entries[i].repeat < rounds) {
			warm = warm || record->entries[i].resident_before >= WARM;
			cold[record->entries[i].point] = true;
		}
	for (size_t i = 0; i < record->entry_count; i++)
		if (record->entries[i].repeat < rounds &&
			(!warm || !(record->entries[i].resident_before < COLD)))
			cold[record->entries[i].point] = false;
}

/* Which repetitions count is decided as at the end (point_counts), by what these rounds came to. */
static void rounds_take(const struct record *record, size_t rounds, struct rounds *of)
{
	for (size_t i = 0; i < record->grid.points * rounds; i++)
		of->rates[i] = (double)NAN;
	for (size_t i = 0; i < record->entry_count; i++) {
		const struct record_entry *entry = &record->entries[i];
		if (entry->repeat < rounds)
			of->tallies[entry->point].with_status[entry->status]++;
	}
	rounds_find_cold(record, rounds, of->unsteady);
	for (size_t i = 0; i < record->grid.points; i++)
		of->unsteady[i] = of->unsteady[i] ||
				  point_status_of(of->tallies[i].with_status) == POINT_UNSTEADY;
	for (size_t i = 0; i < record->entry_count; i++) {
		const struct record_entry *entry = &record->entries[i];
		if (entry->repeat < rounds &&
			point_counts(point_status_of(of->tallies[entry->point].with_status),
				entry->status))
			of->rates[entry->point * rounds + entry->repeat] = entry->throughput;
	}
}

static bool rounds_smaller(const void *context, size_t a, size_t b)
{
	const struct record *record = context;
	return config_grid_no_larger(&record->config, &record->grid, a, b);
}

int rounds_judge(
	const struct record *record, size_t rounds, struct stop_point *out, struct error *err)
{
	const size_t points = record->grid.points;
	struct rounds of = {.rates = calloc(points * rounds + 1, sizeof *of.rates),
		.unsteady = calloc(points, sizeof *of.unsteady),
		.workload = calloc(points, sizeof *of.workload),
		.tallies = calloc(points, sizeof *of.tallies)};
	int wanted = -ENOMEM;
	if (of.rates && of.unsteady && of.workload && of.tallies &&
		rounds_find_workloads(record, of.workload) == 0) {
		rounds_take(record, rounds, &of);
		const struct stop_sweep sweep = {.points = points,
			.rounds = rounds,
			.rounds_most = (size_t)config_integer(&record->config, KEY_MEASURE_REPEATS),
			.rates = of.rates,
			.unsteady = of.unsteady,
			.workload = of.workload,
			.smaller = rounds_smaller,
			.context = record};
		wanted = stop_rule_judge(&sweep, out);
	}
	rounds_close(&of);
	return wanted < 0 ? error_set(err, wanted, "out of memory for %zu points", points) : wanted;
}
