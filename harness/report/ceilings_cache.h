/* Data sheets kept per node, for later runs: $XDG_CACHE_HOME/mlbench/ceilings-KEY.json, or
 * ~/.cache/mlbench/. */
#ifndef MLBENCH_REPORT_CEILINGS_CACHE_H
#define MLBENCH_REPORT_CEILINGS_CACHE_H

#include "harness/base/error.h"
#include "harness/measure/node_probes.h"
#include "harness/record/ceilings.h"

/* The data sheet of this node and of the storage under path_of_data.  One that was measured with other
 * cores or under another kernel is taken where there is no better, and ceilings_stale says so.  -ENOENT:
 * there is none; a file that is torn, or not what its name says, is warned of and left out. */
int ceilings_load(const char *path_of_data, struct ceilings *ceilings, struct error *err);
int ceilings_load_node(
	const struct node_identity *node, struct ceilings *ceilings, struct error *err);

/* Under ceilings->node.  -ENOENT: neither XDG_CACHE_HOME nor HOME is set. */
int ceilings_save(const struct ceilings *ceilings, struct error *err);

/* Whether a data sheet is old, or of another state of this node (ceilings_stale). */
bool ceilings_stale_here(const struct ceilings *ceilings, char *why, size_t room);

#endif
