/* From a model's table to layers and their places in memory; network.c runs them. */
#ifndef MLBENCH_WORKLOADS_BACKEND_NETWORK_PLAN_H
#define MLBENCH_WORKLOADS_BACKEND_NETWORK_PLAN_H

#include "workloads/backend/network.h"

/* Fills layers, links, group; allocates the two arrays alone.  -EINVAL: they do not fit together.
 */
int network_plan(struct network *network, struct error *err);

/* Gives every array its place from `base` on, or none where base is NULL; the bytes needed. */
size_t network_place(struct network *network, char *base);

/* What layer i starts from, a function of the seed: small constants into the whole of the link behind it,
 * gaps (group * floats of that link), where it has any; and weights (k, n), `ld` floats from row to
 * row, such that outputs have the variance of the inputs.  Biases start at zero, and are not written. */
void network_initial_values(
	const struct network *network, size_t i, float *gaps, float *weights, size_t ld);

#endif
