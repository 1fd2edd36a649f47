/* The fingerprint of a node's hardware: results of one fingerprint may be judged by one baseline, and stand in one group of
 * a fleet.  It has what was bought and does not change from boot to boot.  Settings (NUMA mode, SMT, governor, kernel,
 * limits of a control group) are not in it: where a node has others than its fellows, that is a finding about the node.
 *
 *	{"cpu": "AMD EPYC 9654 96-Core Processor", "sockets": 2, "cores": 192, "memory": 824633720832, "virtual": "no",
 *	 "gpus": "8 x NVIDIA H100 80GB HBM3", "storage": "NVMe disk"}
 *
 * A member that is not known is null; unknown and known differ.  memory: in bytes, rounded up to an eighth of a power of
 * two, because kernels keep different amounts for themselves: a missing module of up to eight still shows. */
#ifndef MLBENCH_ACCEPT_FINGERPRINT_H
#define MLBENCH_ACCEPT_FINGERPRINT_H

#include "harness/base/buffer.h"
#include "harness/record/fact_list.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Of what environment_capture found; the storage is that of its data_path.  Fresh; NULL without memory. */
json_t *fingerprint_make(const struct fact_list *environment);

/* Whether both are of the same hardware; else why (may be NULL) names the members: "memory: 448 GiB, not 512 GiB". */
bool fingerprint_same(const json_t *node, const json_t *other, struct buffer *why);

/* Appends "2 x AMD EPYC 9654, 192 cores, 768 GiB, 8 x NVIDIA H100, NVMe disk". */
void fingerprint_words(const json_t *fingerprint, struct buffer *out);

#endif
