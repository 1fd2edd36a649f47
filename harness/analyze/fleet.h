/* Many nodes on paper: one node's throughput multiplied under what nodes share, a file server and
 * a network that sums the gradients.  Pure functions; every figure is an estimate, never a
 * measurement.
 *
 * Synchronous data-parallel training: each of N nodes steps on a batch of its own, then all of
 * them sum their gradients.  Time between the steps of a node is the largest of
 *
 *   input     B / X_input                 what the node's pipeline needs for a batch of B samples
 *   step      T_step + exposed(N)         its step, and the part of the exchange that it does not hide
 *   storage   N B bytes_per_sample / S    the file server of S bytes/s, shared by all nodes
 *
 * divided by what one node loses to finite queues (so that N = 1 gives the node's own throughput).
 * Nodes are alike: waiting for the slowest of them is not in it.
 *
 * exposed(N) = max(0, C(N) - overlap x T_step), with C(N) the time of the all-reduce, a ring's or
 * a tree's (harness/config/shape.h). */
#ifndef MLBENCH_ANALYZE_FLEET_H
#define MLBENCH_ANALYZE_FLEET_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { FLEET_NODES_MAX = 65536 };

enum fleet_exchange { FLEET_EXCHANGE_CHEAPER, FLEET_EXCHANGE_RING, FLEET_EXCHANGE_TREE };

struct fleet {
	double node_samples_per_s;  /* of one node alone, > 0 */
	double input_samples_per_s; /* its pipeline without a step; HUGE_VAL: no limit */
	double step_seconds;        /* of one batch on its device, >= 0 */
	double batch;               /* samples a step, > 0 */

	double bytes_per_sample;    /* from the file server */
	double storage_bytes_per_s; /* of the file server, over all nodes; HUGE_VAL: no limit */

	double gradient_bytes; /* 0: nothing is exchanged */
	double network_bytes_per_s, network_latency_s;
	double overlap; /* share of the step's time that the exchange can hide behind, 0..1 */
	enum fleet_exchange exchange;
};

enum fleet_limit { FLEET_LIMIT_INPUT, FLEET_LIMIT_STEP, FLEET_LIMIT_STORAGE, FLEET_LIMIT_NETWORK };

struct fleet_point {
	unsigned nodes;
	double samples_per_s; /* of all nodes */
	double efficiency;    /* over nodes x one node */
	double exchange_seconds, exposed_seconds;
	enum fleet_exchange exchange; /* ring or tree: which was taken */
	/* network: without the exchange it would be more than 5 % faster; else what is left */
	enum fleet_limit limit;
	double storage_share; /* of the file server's rate that is in use */
};

/* -EINVAL when a figure makes no sense (err says which). */
int fleet_check(const struct fleet *fleet, struct error *err);

/* nodes: 1 .. FLEET_NODES_MAX.  The fleet must have passed fleet_check. */
struct fleet_point fleet_at(const struct fleet *fleet, unsigned nodes);

/* The least number of nodes at which this is the bottleneck; 0: none up to FLEET_NODES_MAX. */
unsigned fleet_first(const struct fleet *fleet, enum fleet_limit limit);

const char *fleet_exchange_name(enum fleet_exchange exchange); /* "ring", "tree" */

#endif
