/* A baseline of a fleet: what healthy nodes of one kind of hardware give.  A document (JSON, BASELINE_SCHEMA):
 *
 *	{"schema": "mlbench.baseline/1", "made": "2026-11-26T...Z", "program": "1.4.0", "fingerprint": {...},
 *	 "similarity_least": 0.95, "rate": 0.001, "notes": ["..."],
 *	 "nodes": [{"name", "started", "result"}],
 *	 "left_out": [{"name", "started", "why", "figures": [...]}],
 *	 "figures": [{"check": "slow core", "kind": "ceiling", "figure": "decode.core", "place": "core 0" or "*" or "",
 *	   "unit": "samples/s", "sense": "more", "nodes": 18, "repetitions": 126, "median": 410.2, "low": 398.0, "high": 421.0,
 *	   "quantiles": [21 values, 0 to 100 % in steps of 5 %], "similarity": 0.97,
 *	   "samples": [{"node": index, "repetitions", "values": [21 at most], "places": [likewise, of alike places]}]}]}
 *
 * place: figures of places that are alike on a node (cores) are pooled under "*"; NUMA nodes and devices, too.
 * low, high: what a further healthy node is within, but for a share `rate` on either side (spread.h), and never so near
 * that the noise of a healthy node's own repetitions keeps `accept` from showing that it is; of places that are alike, a
 * further place.  null: there is no such limit, as with one node.
 * similarity: the least one of a node that stands in the baseline to its centre.
 * samples: what a baseline is made of, so that it can be made anew with further results.
 *
 * How the healthy nodes are found, for all figures together: in each figure the node whose distribution is most like all
 * others' is the centre; a node leaves where its similarity to the centre is below 0.95 and its repetitions do not explain
 * that, or where its median (of cores and the like: its worst place, too) is an outlier on the bad side (spread.h).  A node
 * that leaves is out of every figure.  Then the centres are found anew, until nobody leaves.  Less than half of the nodes
 * are no majority, and there is no baseline.  Every node counts once, by its newest result.  */
#ifndef MLBENCH_ACCEPT_BASELINE_H
#define MLBENCH_ACCEPT_BASELINE_H

#include "harness/accept/node_results.h"
#include "harness/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define BASELINE_SIMILARITY 0.95
#define BASELINE_RATE 0.001 /* of healthy nodes beyond a limit, on either side, per figure */
enum { BASELINE_QUANTILES = 21, BASELINE_FEW = 5 };

/* Similarity of two samples: 1 - (area between their empirical cumulative distributions) / (the largest magnitude of
 * both); 1 where both are one and the same value.  So two steady nodes that are 5 % apart have 0.95, however little each
 * of them scatters.  one_sided: only the area where b is worse than a counts (more_is_better).
 * After the criterion of Y. Xiong et al., SuperBench: Improving Cloud AI Infrastructure Reliability with Proactive
 * Validation, USENIX ATC 2024; what the area is divided by is our choice. */
double baseline_similarity(const double *a, size_t a_count, const double *b, size_t b_count,
	bool one_sided, bool more_is_better);

/* The entry of a figure at a place (the exact one, else "*"); NULL: there is none. */
const json_t *baseline_figure(
	const json_t *baseline, const char *check, const char *figure, const char *place);

/* Whether a node of this fingerprint may be judged by it; why says which members differ. */
bool baseline_fits(const json_t *baseline, const json_t *fingerprint, char *why, size_t room);

/* -EINVAL: it is none, or of a newer schema. */
int baseline_read(const char *path, json_t **baseline, struct error *err);

struct baseline_request {
	double since_s;             /* older results are left out; 0: none */
	const char *since;          /* as it was given, for the reason */
	const char *made;           /* the time now, "2026-11-26T03:10:00Z" */
	const json_t *const *older; /* baselines that are merged with the results; NULL: none */
	size_t older_count;
};

/* A fresh baseline of the healthy nodes among results and older baselines.  The hardware is the older ones', else that of
 * most nodes.  -EINVAL: older baselines are of different hardware.  -ENODATA: no node is fit, or there is no majority, or
 * no figure. */
int baseline_make(const struct node_results *results, const struct baseline_request *request,
	json_t **baseline, struct error *err);

#endif
