/* All probes of a node's ceilings, one after the other, within bounds of time and size. */
#ifndef MLBENCH_COMMAND_PROBE_NODE_H
#define MLBENCH_COMMAND_PROBE_NODE_H

#include "harness/config/config.h"
#include "harness/measure/node_probes.h"
#include "harness/record/ceilings.h"
#include "workloads/backend/probe_compute.h"
#include "workloads/dataset/dataset.h"
#include "workloads/source/probe_read.h"

#include <stdatomic.h>

/* Of one part: length of a slot, and time for all of it. */
struct probe_share {
	uint64_t slot_ns, most_ns;
};

struct probe_bounds {
	bool quick;
	unsigned rounds;
	struct probe_share timing, memory, decode, gemm, reads, first, device;
	uint64_t scan_ns; /* for looking at the data set */
	uint64_t cold_bytes, warm_bytes, write_ns, first_bytes;
	unsigned depths[PROBE_DEPTHS_MAX];
	size_t depth_count;
	uint64_t array_bytes; /* 0: by the caches */
	size_t samples, generated;
	unsigned edges[PROBE_EDGES_MAX];
	size_t edge_count, shapes;
	double call_flops;
	uint64_t copy_bytes; /* of the largest copy to a device */
};

extern const struct probe_bounds probe_bounds_full, probe_bounds_quick;

struct probe_target {
	const struct config *config; /* of one point */
	const char *folder;          /* whose storage is probed; exists */
	struct node_identity node;
	/* The data set, and why there is none. */
	struct dataset dataset;
	bool has_data;
	char data_why[NOTE_BYTES];
};

/* Looks at the configured data set, if there is one.  Fails only for what the user got wrong: a path
 * that is not there and has no recipe, or is no folder. */
int probe_look(struct probe_target *target, const struct probe_bounds *bounds,
	const atomic_bool *stop, struct error *err);
void probe_forget(struct probe_target *target); /* safe on {0} */

/* Mean file size of the data set in whole blocks of storage, as it is probed; NAN: no data set. */
double probe_file_bytes(const struct probe_target *target);

/* Fills out.  -EINTR: stopped; what was measured is in out, which says interrupted. */
int probe_node(const struct probe_target *target, const struct probe_bounds *bounds,
	const atomic_bool *stop, struct ceilings *out);

#endif
