/* A fleet between its analysis (fleet.c) and its document (fleet_document.c). */
#ifndef MLBENCH_ACCEPT_FLEET_NODES_H
#define MLBENCH_ACCEPT_FLEET_NODES_H

#include "harness/accept/fleet.h"
#include "harness/accept/spread.h"

#include <stdint.h>

/* A metric's value of a node. */
struct fleet_value {
	size_t node;
	struct spread_value of;
	const char *worst; /* the place, of the worst one; else NULL */
	double z;
	bool outlier;
};

struct fleet_metric {
	size_t group;
	const char *check, *place; /* kept by the results */
	const struct figure *figure;
	bool worst; /* of alike places, the worst one; else their median */
	struct spread spread;
	struct fleet_value *values; /* owned */
	size_t count, room;
	size_t outliers;
};

struct fleet_node {
	const struct node_result *newest, *before; /* before: NULL: there is none */
	size_t results, group;
	/* The metric in which it is worst, and how far out it is there, above 0 on the bad side. */
	const struct fleet_metric *worst;
	const struct fleet_value *worst_value;
	size_t compared; /* metrics in which there are others to compare it with */
	double bad;
	size_t bad_outliers;
	json_t *gaps; /* owned: why its good verdict is not that of the others; []: it is */
	int rank;
};

/* A fact of a node, for counting who has the same. */
struct fleet_fact {
	const struct fact *fact;
	size_t node;
};

struct fleet_group {
	const json_t *fingerprint; /* borrowed */
	size_t nodes, metrics;
	struct fact_list majority;
	struct fleet_fact *facts; /* owned, sorted by name and value */
	size_t fact_count;
};

struct node_fleet {
	const struct fleet_request *request;
	struct fleet_node *nodes; /* owned */
	size_t node_count;
	struct fleet_group *groups; /* owned */
	size_t group_count;
	struct fleet_metric *metrics; /* owned */
	size_t metric_count, metric_room;
	size_t tests;
	json_t *left_out;
	size_t unreadable; /* of those left out: what they would say is unknown */
	bool failed;
};

/* The text that most nodes of the group have, or of FLEET_ALL; the first of equals.  *count: how many have it. */
typedef const char *fleet_text(const struct node_result *result);
#define FLEET_ALL SIZE_MAX
const char *fleet_most_common(
	const struct node_fleet *fleet, fleet_text *of, size_t group, size_t *count);
fleet_text fleet_plan_of; /* its hash */

/* A distance as badness: above 0 on the bad side, either side of what is neither. */
double fleet_badness(const struct figure *figure, double distance);
/* Of two facts: by group and name, then by value; missing is one value, whatever the reason. */
int fleet_order_facts(const void *left, const void *right);
/* FLEET_SCHEMA; NULL without memory. */
json_t *fleet_document(struct node_fleet *fleet);

#endif
