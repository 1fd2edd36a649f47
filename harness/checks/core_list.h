/* The cores that this process may use, by the kernel's numbers, so that each can be loaded and named by itself. */
#ifndef MLBENCH_CHECKS_CORE_LIST_H
#define MLBENCH_CHECKS_CORE_LIST_H

#include "harness/base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct core_list {
	unsigned *cores; /* (count), ascending; owned */
	size_t count;    /* at least 1 */
};

/* 0, or -ENOMEM. */
int core_list_open(struct core_list *list, struct error *err);
void core_list_close(struct core_list *list); /* safe on {0} */

/* Keeps the calling thread on that core.  False: the kernel refuses (a cpuset changed, the core went offline), or another
 * core runs the thread all the same. */
bool core_pin(unsigned core);

enum { CORE_PLACE_BYTES = 32 };
/* "core 3".  Returns out. */
const char *core_place(unsigned core, char out[CORE_PLACE_BYTES]);

#endif
