/* The results of many nodes, as baselines and fleets need them: each accept.json is read, what is needed of it is kept, and
 * the document is dropped, so that a thousand fit into memory.  Names and texts are somebody's: writers escape them. */
#ifndef MLBENCH_ACCEPT_NODE_RESULTS_H
#define MLBENCH_ACCEPT_NODE_RESULTS_H

#include "harness/accept/figures.h"
#include "harness/accept/result.h"
#include "harness/base/error.h"
#include "harness/record/fact_list.h"

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { NODE_RESULTS_MAX = 20000, NODE_PLACE_BYTES = 64 };

/* The repetitions of a figure at a place. */
struct node_figure {
	const char *check,
		*place; /* kept by the set, each text once: equal texts are equal pointers */
	const struct figure *figure;
	double *values; /* count finite values, 1 or more; in the result's block */
	size_t count;
};

struct node_result {
	char *path;       /* of accept.json */
	char *name;       /* of the node */
	char started[32]; /* as the result has it */
	double started_s; /* seconds since the epoch; NAN: it is no date */
	char tier[16];
	char plan[17], program[32]; /* hash of the plan that judged it; version */
	char baseline[32];          /* when the baseline that it was judged by was made; "": none */
	enum accept_verdict verdict;
	bool complete;
	char *action, *sentence; /* of the result */
	/* Why no baseline may stand on it: it failed, or something of it was not measured; NULL: it may. */
	char *unfit;
	json_t *fingerprint;
	json_t *findings; /* of those that do not hold, the worst first: as in accept.json, with "check" */
	json_t *notes; /* {CHECK: [texts]} */
	/* Its environment, then what checks found: group CHECK, name "FIGURE @ PLACE". */
	struct fact_list facts;
	size_t environment_count; /* how many of them are its environment */
	/* What was judged and measured, sorted, each once: kept by the set (node_results_covers). */
	const char **covered;
	size_t covered_count;
	struct node_figure *figures; /* owned; those of one series stand together */
	size_t figure_count;
	double *values; /* owned: of all figures */
};

struct node_text; /* texts kept once */

struct node_results {
	struct node_result *list; /* owned */
	size_t count, room;
	json_t *left_out;  /* [{"file", "why"}]: files that are no results */
	int left_out_code; /* why the first of them is not: a negative errno */
	double now_s; /* set by the caller: a result that is dated later is left out; 0: whatever its date */
	struct node_text *texts;
};

/* Reads files and what is below folders (accept.json; no link is followed).  A broken file is kept in left_out, once.
 * -ENOENT: a path is not there.  -EINTR: *stop (may be NULL) was set. */
int node_results_read(struct node_results *results, const char *const *paths, size_t count,
	const atomic_bool *stop, struct error *err);
/* One document that is in memory already. */
int node_results_add(
	struct node_results *results, const json_t *document, const char *path, struct error *err);
void node_results_release(struct node_results *results); /* safe on {0} */

/* "gemm.core at core 3 of 'matrix products'", "check 'matrix products'": whether the node has it. */
bool node_result_covers(const struct node_result *node, const char *what);

/* What is compared between nodes: a figure at a place, or at all places that are alike. */
struct node_series {
	const struct node_figure *figures; /* count: 1, or of each place; borrowed */
	size_t count;
	const char *place;  /* "*" of places that are alike */
	size_t repetitions; /* of all places */
};
#define PLACE_ALL "*"

/* The next one of a result; *at is 0 before the first.  false: there is none. */
bool node_series_next(const struct node_result *node, size_t *at, struct node_series *series);
/* All of its values into values (room for .repetitions). */
void node_series_values(const struct node_series *series, double *values);

/* "2026-11-26T03:10:00Z" in seconds since the epoch; NAN: it is none. */
double node_result_time(const char *text);
/* By how much clocks may differ before a result is dated in the future. */
enum { CLOCKS_APART_S = 3600 };

/* By name, then by time, the newest first. */
void node_results_sort(struct node_results *results);

#endif
