/* Memory bandwidth as STREAM counts it (McCalpin, https://www.cs.virginia.edu/stream/): arrays on each NUMA node, and the
 * triad over them from any cores, so that each core, node and way between nodes is measured by itself.  probe_memory
 * (node_probes.h) makes a data sheet of them. */
#ifndef MLBENCH_MEASURE_PROBE_MEMORY_H
#define MLBENCH_MEASURE_PROBE_MEMORY_H

#include "harness/measure/node_probes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct probe_memory_node {
	unsigned number;   /* the kernel's */
	unsigned *cores;   /* of it, that this process may use, by the kernel's numbers */
	size_t core_count; /* 0: it is memory alone */
	/* "": its arrays lie on it.  Else where they lie; a note where the kernel does not tell (unsure). */
	char why[PROBE_WHY_BYTES];
	bool unsure;
};

struct probe_streams;

/* Maps and touches arrays on every node.  array_bytes: of each of the three arrays of a node; 0: 4 x its last-level
 * caches, at most a quarter of the free memory for all nodes together. */
int probe_streams_open(struct probe_streams **out, uint64_t array_bytes,
	const struct probe_control *control, struct error *err);
void probe_streams_close(struct probe_streams *streams); /* NULL is fine */

size_t probe_streams_nodes(const struct probe_streams *streams); /* 1 at least */
const struct probe_memory_node *probe_streams_node(
	const struct probe_streams *streams, size_t index);

enum probe_stream { PROBE_TRIAD, PROBE_COPY };

/* Each is one slot: bytes/s, NAN when it was stopped.  -EIO: what was computed is wrong. */
/* One core, on the memory of its own node. */
int probe_stream_core(struct probe_streams *streams, unsigned core, enum probe_stream stream,
	double *bytes_per_s, struct error *err);
/* All cores of a node on the memory of that one or another: indices.  -ENODEV: it has no cores. */
int probe_stream_nodes(struct probe_streams *streams, size_t from, size_t to, double *bytes_per_s,
	struct error *err);
/* All cores, each on the memory of its own node. */
int probe_stream_all(struct probe_streams *streams, double *bytes_per_s, struct error *err);

#endif
