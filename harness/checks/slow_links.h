/* Which link between the nodes of a job is slow, and which node: a search that tries links, knows nothing of how they are
 * tried, and compares them with each other.
 *
 * All links are tried several times, in an order of its own each time, so that a disturbance hits all of them alike.  Up to
 * SLOW_LINKS_ALONE nodes: one link at a time.  More: as many at once as there are pairs of nodes, each node in one of them.
 * Round r pairs node i with node i XOR r: the rounds above half of the nodes try the halves against each other, those above a
 * quarter the quarters, and so on down to neighbours, so that every link is tried once in about as many rounds as there are
 * nodes; with more than SLOW_LINKS_ROUNDS, some rounds of each of these levels are.
 *
 * A link is slow if the interval of its median lies apart from those of the others by a margin, a node if all of its links
 * are, in one direction at least.  What was found is tried again by fresh repetitions, one link at a time, in turn with links
 * that were not found, and counts only if it is found again: a link that is slow only while others are used is no slow link.
 * One that was slow alone, and is not when tried again, is unclear. */
#ifndef MLBENCH_CHECKS_SLOW_LINKS_H
#define MLBENCH_CHECKS_SLOW_LINKS_H

#include "harness/analyze/statistics.h"
#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SLOW_LINKS_ALONE = 8, SLOW_LINKS_ROUNDS = 64, SLOW_LINKS_FOUND_MAX = 16 };
/* A smaller loss is not named. */
#define SLOW_LINKS_BANDWIDTH 0.10
#define SLOW_LINKS_LATENCY 0.33

struct link_of {
	unsigned from, to; /* nodes */
};

/* What one trial of it gave: bytes/s from -> to and back, and half of a round trip, median and 99 %. */
struct link_values {
	double there, back, latency_ns, tail_ns;
};

/* Tries links at once, no two of one node. */
typedef int links_trial(void *context, const struct link_of *links, size_t count,
	struct link_values *out, struct error *err);

struct slow_links_request {
	unsigned nodes; /* 2 or more */
	unsigned repeats;
	double rate; /* of wrong claims per link, before it is tried again */
	uint64_t seed;
	links_trial *trial;
	void *context;
};

enum link_quantity { LINK_BANDWIDTH, LINK_LATENCY, LINK_QUANTITIES };
enum link_way { LINK_THERE, LINK_BACK, LINK_ROUND_TRIP, LINK_WAYS };

/* A link that was tried: from < to. */
struct link_record {
	struct link_of link;
	struct link_values *values; /* (count); owned */
	size_t count;
	/* By how much its median is worse than that of the others, as in struct slow_link, when it was tried last; NAN: there is
	 * nothing to compare it with. */
	double loss[LINK_WAYS];
};

struct slow_link {
	enum link_quantity of;
	bool is_node;        /* then link.to says nothing */
	struct link_of link; /* or node: .from */
	bool there,
		back; /* slow from -> to, to -> from; of a node: what it sends, what it receives */
	double loss; /* as a share: of the others' bandwidth what is lacking, of its latency what is more than theirs */
	struct interval is;    /* the slowest of its links' */
	struct interval other; /* of the median of the others */
	bool again;            /* found when tried again, alone */
};

struct slow_links {
	unsigned nodes, rounds;
	struct link_record *records; /* owned */
	size_t count;
	struct slow_link found[SLOW_LINKS_FOUND_MAX]; /* nodes first */
	size_t found_count;
	/* Found once, and not when tried again; found, and too many to try again, which are in `found` or beyond its room. */
	size_t only_once, not_tried;
};

/* 0, or what a trial returned; -ENOMEM. */
int slow_links_search(
	const struct slow_links_request *request, struct slow_links *out, struct error *err);
void slow_links_release(struct slow_links *links); /* safe on {0} */

/* What is known of a node, or of a link in one direction; NULL: it was not found to be slow.  A link of a slow node is not slow
 * by itself. */
const struct slow_link *slow_links_of_node(
	const struct slow_links *links, enum link_quantity of, unsigned node);
const struct slow_link *slow_links_of_link(
	const struct slow_links *links, enum link_quantity of, unsigned from, unsigned to);

/* Whether a link that was not found looks slow by its median, while its repetitions scatter too much to show it. */
bool slow_links_is_unclear(const struct link_record *record, enum link_way way);

/* The k-th round of all, and how many there are; links of disjoint nodes into out (room for nodes / 2).  For all-to-all. */
unsigned slow_links_round_count(unsigned nodes);
size_t slow_links_round(unsigned nodes, unsigned round, struct link_of *out);

#endif
