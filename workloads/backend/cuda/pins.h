/* Host memory that devices copy from directly.  Several sessions share the pipeline's pools, and memory can be registered once in
 * a process: the first to ask registers, the last to leave gives it up. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_PINS_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_PINS_H

#include "harness/base/error.h"

#include <stddef.h>

struct pin; /* one session's hold on one piece of memory */

/* Any thread.  *list: what a session holds; the new one is put in front.  A refusal (a limit on locked memory, memory that
 * cannot be pinned) changes nothing: copies from there work all the same, only slower. */
int pins_add(struct pin **list, void *memory, size_t bytes, struct error *err);
/* Ends all of the list's holds. */
void pins_release(struct pin **list);

#endif
