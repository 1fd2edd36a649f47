/* The time of an all-reduce of n bytes over p participants, with a latency of alpha a message and beta seconds
 * a byte (R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in
 * MPICH", Int. J. High Performance Computing Applications 19(1), 2005: ring all-gather, pairwise
 * reduce-scatter, binomial broadcast and reduce; the time to add up is left out):
 *
 *   ring      2 (p - 1) alpha + 2 (p - 1) / p n beta        reduce-scatter, then all-gather
 *   tree      2 ceil(log2 p) (alpha + n beta)               reduce to a root, then broadcast (binomial)
 *
 * The one home of these formulas: emulated devices take this time, and predictions count it.  Pure functions. */
#ifndef MLBENCH_CONFIG_ALL_REDUCE_H
#define MLBENCH_CONFIG_ALL_REDUCE_H

/* Seconds; 0 for one participant.  bytes_per_s: > 0, HUGE_VAL for no limit. */
double all_reduce_ring_seconds(
	double bytes, unsigned participants, double bytes_per_s, double latency_s);
double all_reduce_tree_seconds(
	double bytes, unsigned participants, double bytes_per_s, double latency_s);

#endif
