/* Which node a data sheet is of: the parts that make two nodes different, and the key made of them. */
#ifndef MLBENCH_MEASURE_CEILINGS_NODE_H
#define MLBENCH_MEASURE_CEILINGS_NODE_H

#include "harness/base/error.h"
#include "harness/record/ceilings.h"

struct node_identity {
	char machine[CEILINGS_NAME_BYTES]; /* /etc/machine-id, else the host's name */
	char host[CEILINGS_NAME_BYTES], cpu[CEILINGS_NAME_BYTES], kernel[CEILINGS_NAME_BYTES];
	unsigned cores;           /* that this process may use */
	char storage[NOTE_BYTES]; /* "ext4 on /dev/vda1" of the file system that the data lies on */
	/* "NVIDIA H200, driver 580.65.06", "8 x NVIDIA H200, ..."; "": none. A plug-in that was asked for by name is part
	 * of it: another one may see other devices. */
	char gpu[CEILINGS_NAME_BYTES];
	bool is_virtual; /* a hypervisor runs it */
};

/* data_path, or its nearest parent that is there, says which storage is meant.  -errno when that
 * cannot be found. */
int node_identify(const char *data_path, struct node_identity *node, struct error *err);

/* Fills the member gpu of an identity. */
void node_gpus(char gpu[CEILINGS_NAME_BYTES]);

/* "HARDWARE-STATE", 16 hex digits each: machine, CPU and storage; cores, kernel and GPUs.  A data sheet of
 * the same hardware in another state may be used with a warning. */
void node_key(const struct node_identity *node, char out[CEILINGS_NODE_BYTES]);
enum { NODE_HARDWARE_DIGITS = 16 };

/* Puts the node's names and key into a data sheet. */
void node_describe(const struct node_identity *node, struct ceilings *ceilings);

#endif
