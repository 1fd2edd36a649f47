/* A baseline of a fleet: what healthy nodes of one kind of hardware give.  A document (JSON, BASELINE_SCHEMA):
 *
 *	{"schema": "mlbench.baseline/1", "made": "2026-11-26T...Z", "program": "1.4.0", "fingerprint": {...},
 *	 "nodes": [{"name", "started", "result"}],
 *	 "left_out": [{"name", "why", "figures": [...]}],
 *	 "figures": [{"check": "slow core", "figure": "decode.core", "place": "core 0" or "" , "unit": "samples/s", "sense": "more",
 *	   "nodes": 18, "repetitions": 126, "median": 410.2, "low": 398.0, "high": 421.0, "quantiles": [21 values, 0 to 100 % in
 *	   steps of 5 %], "similarity": 0.97}]}
 *
 * place: figures of places that are alike on a node (cores) are pooled under "*"; NUMA nodes and devices, too. */
#ifndef MLBENCH_ACCEPT_BASELINE_H
#define MLBENCH_ACCEPT_BASELINE_H

#include "harness/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Similarity of two samples: 1 - (area between their empirical cumulative distributions) / (range of both together); 1
 * where both are one and the same value.  one_sided: only the area where b is worse than a counts (more_is_better).
 * The published criterion: Y. Xiong et al., SuperBench: Improving Cloud AI Infrastructure Reliability with Proactive
 * Validation, USENIX ATC 2024, section 3.5. */
double baseline_similarity(const double *a, size_t a_count, const double *b, size_t b_count,
	bool one_sided, bool more_is_better);

/* The entry of a figure at a place (the exact one, else "*"); NULL: there is none. */
const json_t *baseline_figure(
	const json_t *baseline, const char *check, const char *figure, const char *place);

/* Whether a node of this fingerprint may be judged by it; why says which members differ. */
bool baseline_fits(const json_t *baseline, const json_t *fingerprint, char *why, size_t room);

int baseline_read(const char *path, json_t **baseline, struct error *err);

#endif
