/* Waits until a node has come to rest after what loaded it, so that the order of checks does not matter: temperatures no
 * longer fall, and what was written has reached the disk.  (No process of the check before is left: runner.h ends its
 * group.) */
#ifndef MLBENCH_CHECKS_SETTLE_H
#define MLBENCH_CHECKS_SETTLE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { SETTLE_WHY_BYTES = 160 };

/* Waits for most_ns at most, and looks every look_ns.  root: in front of /proc and /sys.  Returns the ns waited; what it
 * still waited for at the end is in why, "": nothing, the node is at rest. */
uint64_t settle_wait(const char *root, uint64_t look_ns, uint64_t most_ns, const atomic_bool *stop,
	char why[SETTLE_WHY_BYTES]);

#endif
