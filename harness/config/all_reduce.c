/* The formulas of all_reduce.h. */
#include "harness/config/all_reduce.h"

double all_reduce_ring_seconds(
	double bytes, unsigned participants, double bytes_per_s, double latency_s)
{
	if (participants < 2)
		return 0;
	const double p = participants;
	return 2 * (p - 1) * latency_s + 2 * (p - 1) / p * bytes / bytes_per_s;
}

/* ceil(log2 participants), without rounding. */
static unsigned rounds_of(unsigned participants)
{
	unsigned rounds = 0;
	for (unsigned reached = 1; reached < participants; reached *= 2)
		rounds++;
	return rounds;
}

double all_reduce_tree_seconds(
	double bytes, unsigned participants, double bytes_per_s, double latency_s)
{
	if (participants < 2)
		return 0;
	return 2 * (double)rounds_of(participants) * (latency_s + bytes / bytes_per_s);
}
