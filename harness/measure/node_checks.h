/* What the node has and lacks for measuring: the findings of `mlbench doctor`, and the probes of the running kernel
 * behind them. */
#ifndef MLBENCH_MEASURE_NODE_CHECKS_H
#define MLBENCH_MEASURE_NODE_CHECKS_H

#include <stdbool.h>
#include <stddef.h>

/* One line of `mlbench doctor`. */
enum doctor_level { DOCTOR_OK, DOCTOR_NOTE, DOCTOR_LACKS };
struct doctor_finding {
	enum doctor_level level;
	char subject[32];      /* "io_uring" */
	char state[480];       /* what is the case */
	char consequence[200]; /* what follows for measuring; "" if nothing */
	char remedy[200];      /* how to mend it; "" if nothing */
};
enum { DOCTOR_FINDINGS_MAX = 48 };

/* What the node has and lacks for measuring, from facts of the system alone (the engines and
 * backends add theirs in the command).  Returns how many were written. */
size_t node_checks(struct doctor_finding *findings, size_t room, const char *data_path);

/* --- probes: each tries the thing itself, harmlessly -------------------------------------------- */

/* Each returns 0, or the negative errno with which the kernel refused. */
int probe_io_uring(void);
int probe_cachestat(void);
int probe_mincore(void);
int probe_direct_io(
	const char *folder); /* an unnamed temporary file there; -EROFS and the like too */

/* Cores busy, of so many, and share stolen on the whole node over `ms`; root: in front of /proc, "" but in tests.  False
 * when /proc/stat does not say. */
bool probe_load(
	const char *root, unsigned ms, double cores, double *cores_busy, double *steal_share);

#endif
