/* Whether others took so much of the node while a point was measured that its figures are not the node's. */
#ifndef MLBENCH_ANALYZE_FOREIGN_LOAD_H
#define MLBENCH_ANALYZE_FOREIGN_LOAD_H

#include <stdbool.h>

enum { FOREIGN_LOAD_BYTES = 160 };

/* What was seen of others meanwhile; NAN: not known, which is no reason. */
struct foreign_load {
	double cores;       /* kept busy by other processes */
	double own_cores;   /* kept busy by this one */
	double steal_share; /* of the machine's time, taken by the hypervisor */
	unsigned usable;    /* cores */
};

/* Other processes keep so many of the cores busy that they slow whatever runs beside them. */
bool foreign_load_is_heavy(double cores, unsigned usable);

/* True, with the reason in words, when other processes are heavy, when they and this one together want all
 * cores and theirs is a tenth at least, or when the hypervisor takes 5 % of the time.  else reason is "". */
bool foreign_load_contaminates(const struct foreign_load *load, char reason[FOREIGN_LOAD_BYTES]);

#endif
