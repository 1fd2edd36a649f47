/* What reads alone, and stages alone, gave (struct read_block): the rate of each arm of the experiment, freed of what changed
 * meanwhile.
 * Pure functions.
 *
 * An arm is a value of the key that says how many files are in flight, or a half of the files, the larger or the smaller ones;
 * or a stage beside another one.
 * Its blocks ran forth and back (A-B-B-A), so that a store that ages or warms up by so much a block takes as much from each arm:
 * ln(rate) of a block is its arm's plus a slope times the block's number, and plus another, between -1 and 0, times ln(mean
 * bytes) of its files, which differ from block to block where a few are huge; by least squares.  The error of an arm is that
 * of the residuals, or that of counting so many files where it is more. */
#ifndef MLBENCH_ANALYZE_READS_ALONE_H
#define MLBENCH_ANALYZE_READS_ALONE_H

#include "harness/record/measurement.h"

#include <stdbool.h>
#include <stddef.h>

enum { ALONE_ARMS_MAX = 12 };

struct alone_arm {
	const struct read_block *first; /* of its blocks: key, value, part; borrowed */
	unsigned blocks;
	double in_flight;       /* files, on average (Little's law) */
	double log_rate, error; /* ln(files/s), and its standard error */
	double bytes;           /* of a file, mean */
	double spread;          /* deviation of a file's time over its mean, of a block, mean */
};

/* Of reads alone. Returns how many; 0 where there are too few blocks to know an error from. */
size_t reads_alone_arms(
	const struct read_block *all, size_t count, struct alone_arm arms[ALONE_ARMS_MAX]);

/* The arm of all files at the point's own value; NULL: there is none. */
const struct alone_arm *reads_alone_as_set(const struct alone_arm *arms, size_t count);

/* d ln(time of a file) / d ln(its bytes), from the arms of larger and of smaller files: 1 where bytes limit, 0 where requests
 * do. *error: its standard error. NAN: no such arms. */
double reads_alone_bytes_share(const struct alone_arm *arms, size_t count, double *error);

/* ln(capacity of the other stage / capacity of the first), from both alone in the last round. *error: its standard error; *least: the smaller of
 * the two capacities, samples/s. NAN: they did not run. */
double stages_alone_ratio(const struct read_block *all, size_t count, const char *stage,
	const char *other, double *error, double *least);

/* ln(files/s of a rank while all read / files/s while it reads alone): 0 where they do not share a store, or share one that is not full.
 * *error: its standard error; *one: files/s alone.  NAN: they did not run. */
double reads_alone_ranks(const struct read_block *all, size_t count, double *error, double *one);

#endif
