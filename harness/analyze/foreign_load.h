/* Whether other processes took so much of the node during a measurement that its figures are not the node's. */
#ifndef MLBENCH_ANALYZE_FOREIGN_LOAD_H
#define MLBENCH_ANALYZE_FOREIGN_LOAD_H

#include <stdbool.h>

enum { FOREIGN_LOAD_BYTES = 160 };

/* What was seen of other processes meanwhile; NAN: unknown, which is no reason. */
struct foreign_load {
	double cores;       /* of those, kept busy by other processes */
	double own_cores;   /* kept busy by this one */
	double steal_share; /* of their time, taken by the hypervisor */
	unsigned usable;    /* cores that this process may run on */
};

/* Other processes keep so many of the usable cores busy that they slow down whatever runs beside them. */
bool foreign_load_is_heavy(double cores, unsigned usable);

/* True, with the reason in words, when other processes are heavy, when they and this one together
 * want all cores and theirs is at least a tenth, or when the hypervisor takes 5 % of the time.
 * Otherwise reason is "". */
bool foreign_load_contaminates(const struct foreign_load *load, char reason[FOREIGN_LOAD_BYTES]);

#endif
