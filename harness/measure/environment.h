/* Facts about the node, found out. */
#ifndef MLBENCH_MEASURE_ENVIRONMENT_H
#define MLBENCH_MEASURE_ENVIRONMENT_H

#include "harness/record/fact_list.h"

#include <stdbool.h>
#include <stddef.h>

/* CPU model, cores, SMT, NUMA (hwloc), governor, cgroup limits, affinity, kernel, memory, huge pages, the
 * data's mount, file system and disk, BLAS, GPU and driver, container, load.  data_path may be NULL. */
void environment_capture(struct fact_list *list, const char *data_path);

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
size_t environment_doctor(struct doctor_finding *findings, size_t room, const char *data_path);

#endif
