/* How far the opening of a step on a device is: what the program, its progress and the plug-in share. */
#ifndef MLBENCH_WORKLOADS_BACKEND_CHOOSING_H
#define MLBENCH_WORKLOADS_BACKEND_CHOOSING_H

#include <stdatomic.h>

/* For how many of a step's products kernels are chosen, of all devices that open: counted up by who opens, read by any thread.
 * products 0: there is nothing to choose, or not yet. */
struct step_choosing {
	atomic_uint chosen, products;
};

#endif
