/* What a test can ask the test double of the CUDA libraries, beside their own functions.  Environment, read at the first
 * call and again by double_configure:
 *   MLBENCH_DOUBLE_DEVICES=2           how many devices (1); 0: cudaErrorNoDevice
 *   CUDA_VISIBLE_DEVICES=1             which of them this process sees, by numbers
 *   MLBENCH_DOUBLE_NAME="NVIDIA H100"  their name, behind "test double " ("(CPU)")
 *   MLBENCH_DOUBLE_DRIVER=12080        what the driver supports (13000); less than the runtime: too old; 0: none
 *   MLBENCH_DOUBLE_MEMORY=BYTES        of each device (4 GiB)
 *   MLBENCH_DOUBLE_CAPABILITY=80       compute capability times 10 (90): fp8 needs 89
 *   MLBENCH_DOUBLE_FAIL=cudaMalloc:3,kernel:2   those calls fail, counted from 1; "kernel", "product", "copy": on
 *                                      the device, later
 *   MLBENCH_DOUBLE_NO_EPILOGUE=1       cuBLASLt knows plain products alone
 *   MLBENCH_DOUBLE_ALIGNED=1           ... only where rows of less than 4 bytes an element begin at multiples of 16 bytes
 *   MLBENCH_DOUBLE_KERNELS=1           how many kernels its heuristics propose at most (4)
 *   MLBENCH_DOUBLE_CAPTURE=907         what a call says that a capture forbids (900): drivers differ
 *   MLBENCH_DOUBLE_VERBOSE=1           says on stderr why cuBLASLt has no kernel
 * Speeds, all unset at first (as fast as it goes):
 *   MLBENCH_DOUBLE_H2D, MLBENCH_DOUBLE_D2H=BYTES/S       copies take at least so long, one at a time each way
 *   MLBENCH_DOUBLE_EXCHANGE=BYTES/S     sums over devices take at least so long
 *   MLBENCH_DOUBLE_PAGEABLE=BYTES/S    staging of pageable memory, in the calling thread
 *   MLBENCH_DOUBLE_KERNEL_NS           every kernel and product takes at least so long
 *   MLBENCH_DOUBLE_LAUNCH_NS           the host is busy so long with every launch */
#ifndef MLBENCH_TESTS_DEVICE_DOUBLE_H
#define MLBENCH_TESTS_DEVICE_DOUBLE_H

#include <stddef.h>
#include <stdint.h>

enum { DOUBLE_NCCL_VERSION = 22809 }; /* what ncclGetVersion says */

#ifdef __cplusplus
extern "C" {
#endif

/* Reads the environment anew and forgets faults, complaints, counts and a device's sticky error.  Nothing may be running. */
void double_configure(void);
/* The misuse found last, in words; "" when there was none.  Also on stderr when it is found.  Valid until the next. */
const char *double_complaint(void);
unsigned double_complaints(void); /* how many so far */
unsigned double_calls(
	const char *function); /* of this name, so far; "kernel": launches, a graph's included */
size_t double_allocated(void); /* bytes of device memory that are taken now, all devices */
size_t double_live(
	void); /* streams, events, graphs, cuBLASLt objects and NCCL communicators not destroyed yet */

#ifdef __cplusplus
}
#endif

#endif
