/* Many nodes beside each other: who is out of line, in what, and what it has that the others do not have.  A function of
 * the results alone; a document (JSON, FLEET_SCHEMA, docs/fleet.schema.json) that every writer works from.
 *
 * Each node counts by its newest result.  Nodes of one hardware (fingerprint.h) are a group, and only nodes of a group are
 * compared.  A metric is a figure at a place; of places that are alike (cores), the median of all of them, and the worst one.
 * A node is an outlier in a metric by the rule of spread.h: over all nodes and metrics together, FLEET_RATE of healthy fleets
 * have one by chance. */
#ifndef MLBENCH_ACCEPT_FLEET_H
#define MLBENCH_ACCEPT_FLEET_H

#include "harness/accept/node_results.h"
#include "harness/base/error.h"

#include <jansson.h>

#define FLEET_SCHEMA "mlbench.fleet/1"
#define FLEET_RATE 0.01

struct fleet_request {
	double since_s;       /* older results are left out; 0: none */
	const char *since;    /* as it was given */
	const json_t *expect; /* names of nodes that should have reported; NULL: it is not known */
	const char *expect_file;
};

/* A fresh document.  -ENODATA: no result is left. */
int fleet_make(struct node_results *results, const struct fleet_request *request, json_t **document,
	struct error *err);

/* Reads names of nodes: separated by blanks, commas or lines, "#" begins a comment, "node[01-40,45]" as Slurm writes it.  A
 * name that comes twice counts once.  -EINVAL with the line. */
int fleet_expect_read(const char *path, json_t **names, struct error *err);
int fleet_expect_parse(const char *text, json_t **names, struct error *err);

#endif
