/* Facts about the node, each with its value or the reason why it is not known. */
#ifndef MLBENCH_MEASURE_ENVIRONMENT_H
#define MLBENCH_MEASURE_ENVIRONMENT_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum fact_kind { FACT_TEXT, FACT_NUMBER, FACT_MISSING };

struct fact {
	char *group, *name; /* "cpu", "model"; owned */
	enum fact_kind kind;
	char *text; /* the value, or why it is missing; owned */
	double number;
	const char *unit; /* of a number; static, may be NULL */
};

struct fact_list {
	struct fact *facts;
	size_t count, room;
	bool failed; /* out of memory on the way: the list is incomplete */
};

void fact_text(struct fact_list *list, const char *group, const char *name, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void fact_number(struct fact_list *list, const char *group, const char *name, double value,
	const char *unit);
void fact_missing(struct fact_list *list, const char *group, const char *name, const char *why, ...)
	__attribute__((format(printf, 4, 5)));
const struct fact *fact_find(const struct fact_list *list, const char *group, const char *name);
void fact_list_release(struct fact_list *list); /* safe on {0} */

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
