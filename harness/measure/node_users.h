/* Who else uses the node: the processes that took most CPU time between two looks at /proc. */
#ifndef MLBENCH_MEASURE_NODE_USERS_H
#define MLBENCH_MEASURE_NODE_USERS_H

#include <stddef.h>

enum { NODE_PROCESSES_MAX = 16384 };

struct node_process {
	int id;
	char name[32];  /* of its command, fit to be shown */
	double started; /* ticks since the node started: tells two of one id apart */
	double ticks;   /* of CPU time so far */
};
struct node_processes {
	struct node_process *list; /* by id; owned */
	size_t count, room;
};

/* All that /proc below a root ("" but in tests) shows, this process and its ancestors left out.  0 or -ENOMEM. */
int node_processes_read(const char *root, struct node_processes *out);
void node_processes_release(struct node_processes *processes); /* safe on {0} */

struct node_user {
	int id;
	char name[32];
	double ticks; /* of CPU time between the looks */
};
/* The busiest first; those that did nothing are left out.  Returns how many were written. */
size_t node_busiest(const struct node_processes *before, const struct node_processes *after,
	struct node_user *out, size_t room);

#endif
