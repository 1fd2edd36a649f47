/* A few threads that help one other to do a piece of work in parts, as OpenCV's and OpenMP's do inside a library call: started
 * once, woken for each piece, and spinning for a moment before they sleep again.  Where such threads of all workers together are
 * far more than cores, their waiting takes the cores from the work: decode.threads plants that. */
#ifndef MLBENCH_BASE_HELPERS_H
#define MLBENCH_BASE_HELPERS_H

#include "harness/base/error.h"

#include <stdint.h>

struct helpers;

/* Does the items [first, end) of a piece.  who: 0 for the caller of helpers_do, else a number below `threads` that no other
 * thread has meanwhile. */
typedef void helpers_part(void *context, unsigned who, uint32_t first, uint32_t end);

/* threads, the caller's included; they inherit its affinity and policy.  -ENOMEM, or -EAGAIN: they cannot be started. */
int helpers_open(struct helpers **out, unsigned threads, struct error *err);
void helpers_close(struct helpers *helpers); /* NULL is fine */

/* Returns when all items are done.  One thread calls it, the one that opened.  NULL: it does all of them itself. */
void helpers_do(struct helpers *helpers, helpers_part *part, void *context, uint32_t items);

#endif
