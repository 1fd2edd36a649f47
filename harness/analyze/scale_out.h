/* Many nodes that train together, predicted from the model of one.  Pure functions; every figure is a prediction, never a
 * measurement.
 *
 * Synchronous data-parallel training: each of N nodes steps on a batch of its own, then all of them sum their gradients and
 * begin the next step together.  A round takes the largest of
 *
 *   nodes     E max(t_1 ... t_N) + exposed(N)    the slowest node, and the exchange that no node hides
 *   storage   N B bytes_per_sample / S           the file server of S bytes/s, shared by all nodes
 *
 * t_i is the time from the beginning of a round until node i has computed its step.  It varies from round to round and from
 * node to node.  Its input varies too, but a node that waits for others fills its prefetch queue meanwhile, which absorbs
 * single slow batches.  So t_i depends on what the others do.  Up to FLEET_MEMBERS nodes are replayed together, each with
 * blocks of its own of the recorded items, and meet after each round (replay.h).  Of more nodes only rounds are simulated: each
 * draws blocks of the times that the replayed input and the replayed step need for a round, its input may be ahead by as many
 * rounds as there are slots, and the result is corrected by what the replays had beyond such a simulation of as many nodes.
 * Without queues, the expected maximum of N rounds of a node by itself would be had (fleet_maximum): the bound.
 *
 * Between nodes, times are log-normal: nodes keep their speed for as long as the job runs.
 *
 * The interval.  Little is recorded of the slowest of N nodes: with 1,024 nodes and 4,096 rounds, it is one of the slowest four.
 * How far the waiting w(N) may be off because of that is read from P = 8 parts of the recording (random groups: K. Wolter,
 * Introduction to Variance Estimation, 2007, chapter 2).  A part tells of N / P nodes as much as the whole tells of N, but
 * for the scale of the tail, which grows by P^xi between the two:
 *
 *   w(N) is off by up to exp(+-d) at 90 %,   d = t(0.95, P) sqrt(mean over parts of (w_part(N/P) - w(N/P))^2) P^xi / w(N)
 *   P^xi = (w(N) - w(N/P)) / (w(N/P) - w(N/P^2)),   1 to sqrt(P)
 *
 * t is Student's quantile.  xi is the extreme value index, by such spacings (J. Pickands, Annals of Statistics 3, 1975): 0 for
 * normal and exponential times, 1 / a for P(t > x) ~ x^-a; from 1 / 2 on no variance exists.  A recording that happens to lack the
 * slowest rounds shows a small d.  So w(N) may also be what it would be if the slowest recorded round, x, were that of P times as
 * many: x + P^xi (x - y), where y is the P-th slowest and P^xi follows from x, y and the P^2-th slowest.  One recording in eight
 * has a round as slow as that.  w is of equal nodes: how much slower the slow ones are is in doubt by the spread alone.
 *
 * exposed(N) of an exchange of C(N) in k buckets, whose gradients become ready evenly over the backward pass of b seconds:
 * max(C(N) - b (1 - 1/k), C(N) / k).  All but the last bucket can be hidden.  C(N) is the time of an all-reduce over the
 * nodes, a ring's or a tree's (harness/config/shape.h), of 1 / k of the bytes, k times.  Within a node of several devices, the
 * ring between them (sync.*) is in the node's own rounds: with it, the all-reduce is hierarchical. */
#ifndef MLBENCH_ANALYZE_SCALE_OUT_H
#define MLBENCH_ANALYZE_SCALE_OUT_H

#include "harness/analyze/point_model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FLEET_NODES_MAX = 65536, FLEET_MEMBERS = 8, FLEET_COUNTS_MAX = 64 };

/* --- the largest of many ---------------------------------------------------------------------- */

/* The expected largest of so many draws from (count) ascending values, without putting back: the mean of the maximum over all
 * subsets of that size, which is unbiased whatever the values were drawn from.  More draws than values give the largest value.
 * NAN: no values. */
double fleet_maximum(const double *ascending, size_t count, unsigned draws);

/* --- rounds ----------------------------------------------------------------------------------- */

/* How much the nodes differ. */
struct fleet_spread {
	double deviation; /* of ln(time of a round) between nodes; 0: they are alike */
	unsigned
		measured; /* nodes that it was measured on, which leaves it in doubt; 0: it is given */
	const double *factors; /* (measured): their times over the modelled node's; NULL: unknown */
};

/* What the ranks of a job were seen to do. */
struct fleet_measured {
	unsigned ranks;
	size_t repeats;
	/* (ranks, repeats): of a round, without waiting for others and without what is exposed of the exchange; borrowed */
	const double *own_seconds;
	double round_seconds;   /* all of a round, mean */
	double exposed_seconds; /* of the exchange in it */
	double samples_per_s;   /* of all ranks */
};

/* How much ranks differ, of which rank 0 is the modelled node: its factors are written to factors (ranks).  What repetitions
 * scatter by is no difference: with one repetition there is none. */
struct fleet_spread fleet_spread_of(const struct fleet_measured *measured, double *factors);
/* As struct fleet_round has it; NAN: not known. */
double fleet_waiting_of(const struct fleet_measured *measured);

/* Rounds of N nodes, relative to those of a node by itself. */
struct fleet_round {
	double ratio; /* mean time over the mean time of a node by itself, >= 1 but for noise */
	struct interval interval; /* 90 %, of one fleet */
	double waiting; /* time until the slowest is done over what a node takes on average, >= 1 */
	double bound;   /* the ratio if no queue absorbed anything; NAN: not known */
	bool beyond; /* more nodes than recorded rounds to draw from: the slowest of these bounds them */
};

struct fleet_replay;
/* Replays a node by itself.  samples: about so many are replayed for each fleet_replay_at, and here; with batches of very many,
 * none are replayed together, and rounds are simulated for fewer than FLEET_MEMBERS nodes, too.  The model must live as long.  To be closed after an error, too. */
int fleet_replay_open(struct fleet_replay **out, const struct model *model,
	const struct fleet_spread *spread, uint64_t samples, struct error *err);
/* pause_seconds: from when the slowest node is done to the next round. */
int fleet_replay_at(struct fleet_replay *replay, unsigned nodes, double pause_seconds,
	struct fleet_round *out, struct error *err);
/* Times of nodes that vary together (with the batch, with the hour) are waited for less than predicted, those of nodes that
 * disturb each other more.  predicted: of as many nodes as were measured, whose `waiting` was this.  From now on ln(waiting) is
 * so many times what it would be, which is returned: 0 to 2. */
double fleet_replay_mend(
	struct fleet_replay *replay, const struct fleet_round *predicted, double waiting);
void fleet_replay_set_waiting(
	struct fleet_replay *replay, double times);   /* as another one returned it */
void fleet_replay_close(struct fleet_replay *replay); /* NULL: nothing */

/* --- what nodes share ------------------------------------------------------------------------- */

enum fleet_exchange { FLEET_EXCHANGE_CHEAPER, FLEET_EXCHANGE_RING, FLEET_EXCHANGE_TREE };

/* How much longer rounds are than those of equally fast nodes, at some numbers of nodes. */
struct fleet_wait {
	unsigned nodes;
	double factor;
};

struct fleet {
	double node_samples_per_s;  /* of one node alone, > 0 */
	double input_samples_per_s; /* its pipeline without a step; HUGE_VAL: no limit */
	double step_seconds;        /* of one batch on its device, >= 0 */
	double batch;               /* samples a step, > 0 */

	double bytes_per_sample;    /* from the file server */
	double storage_bytes_per_s; /* of the file server, over all nodes; HUGE_VAL: no limit */

	double gradient_bytes; /* 0: nothing is exchanged */
	double bucket_bytes;   /* that they are exchanged in; 0: all at once */
	double network_bytes_per_s, network_latency_s;
	double overlap; /* share of the step's time, its end, that the exchange can hide behind, 0..1 */
	enum fleet_exchange exchange;

	struct fleet_wait waits[FLEET_COUNTS_MAX +
				1]; /* (wait_count), ascending; between them by log(nodes) */
	size_t wait_count;          /* 0: nobody waits */
};

enum fleet_limit {
	FLEET_LIMIT_INPUT,
	FLEET_LIMIT_STEP,
	FLEET_LIMIT_STORAGE,
	FLEET_LIMIT_NETWORK,
	FLEET_LIMIT_SLOWEST
};

struct fleet_point {
	unsigned nodes;
	double samples_per_s; /* of all nodes */
	double efficiency;    /* over nodes x one node */
	double exchange_seconds, exposed_seconds;
	enum fleet_exchange exchange; /* ring or tree: which was taken */
	/* network, slowest: without the exchange, or without waiting for the slowest node, it would be more than 5 % faster;
	 * else what is left */
	enum fleet_limit limit;
	double waiting_share; /* of the time, for the slowest node */
	double storage_share; /* of the file server's rate that is in use */
};

/* -EINVAL when a figure makes no sense (err says which). */
int fleet_check(const struct fleet *fleet, struct error *err);

/* nodes: 1 .. FLEET_NODES_MAX.  The fleet must have passed fleet_check. */
struct fleet_point fleet_at(const struct fleet *fleet, unsigned nodes);

/* Bytes/s of a network over which a ring of so many nodes leaves this exposed; HUGE_VAL: nothing is. */
double fleet_bandwidth_of(const struct fleet *fleet, unsigned nodes, double exposed_seconds);

/* Fills `waits` for these numbers of nodes (ascending, at most FLEET_COUNTS_MAX) by replay, and rounds[i] of each; the pause
 * is the exchange that is not hidden. */
int fleet_wait_for_slowest(struct fleet *fleet, struct fleet_replay *replay, const unsigned *nodes,
	size_t count, struct fleet_round *rounds, struct error *err);

/* 90 %, samples/s, of a number of nodes that was replayed; node: of a node alone, relative to node_samples_per_s. */
struct interval fleet_interval(const struct fleet *fleet, unsigned nodes,
	const struct interval *node, const struct fleet_round *round);

/* The least number of nodes at which this is the bottleneck; 0: none up to FLEET_NODES_MAX. */
unsigned fleet_first(const struct fleet *fleet, enum fleet_limit limit);

const char *fleet_exchange_name(enum fleet_exchange exchange); /* "ring", "tree" */

#endif
