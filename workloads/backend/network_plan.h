/* From a model's table to layers and their places in memory; network.c runs them. */
#ifndef MLBENCH_WORKLOADS_BACKEND_NETWORK_PLAN_H
#define MLBENCH_WORKLOADS_BACKEND_NETWORK_PLAN_H

#include "workloads/backend/network.h"

/* Fills layers, links, group; allocates the two arrays alone.  -EINVAL: they do not fit together.
 */
int network_plan(struct network *network, struct error *err);

/* Gives every array its place from `base` on, or none where base is NULL; the bytes needed. */
size_t network_place(struct network *network, char *base);

/* Whether the first layer can read a batch where it lies. */
bool network_reads_in_place(const struct network *network);

#endif
