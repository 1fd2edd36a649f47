/* Calls of NVML, for those who make them on threads of their own: of a node at one moment (nvml.c), and over a run
 * (nvml_watch.c).  Each may block for any time.  Internal to measure. */
#ifndef MLBENCH_MEASURE_NVML_CALLS_H
#define MLBENCH_MEASURE_NVML_CALLS_H

#include "harness/measure/nvml.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NVML_HANGS "an earlier call of NVML has not come back: the driver hangs"

struct nvml_handle; /* of a device; nvmlDevice_t points to one */

/* Opens the library, once in a process and for good, and NVML in it; false with the reason.  Each success needs an nvml_end. */
bool nvml_begin(char *why, size_t room);
void nvml_end(void);

/* The device with a PCI address.  A code; *device is only of use where it is NVML_OK. */
int nvml_find_device(const char *bus, struct nvml_handle **device);
/* In the unit of nvml.h.  A code, and NAN unless it is 0. */
int nvml_ask(struct nvml_handle *device, enum nvml_quantity quantity, double *number);
/* Whether asking again can give nothing else. */
bool nvml_code_is_final(int code);

/* Nobody waits any more for a thread that calls NVML; and it has come back after all (nvml_hangs). */
void nvml_give_up(void);
void nvml_came_back(void);

/* A lock, and a condition of the monotonic clock; false without memory. */
bool nvml_lock_open(pthread_mutex_t *lock, pthread_cond_t *changed);
/* Waits for a change until a moment; false: it is there. */
bool nvml_wait_until(pthread_cond_t *changed, pthread_mutex_t *lock, uint64_t t_ns);

#endif
