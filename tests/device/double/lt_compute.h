/* Computing a product on the CPU, as cuBLASLt defines it: column-major, float sums, an epilogue. */
#ifndef MLBENCH_TESTS_DEVICE_DOUBLE_LT_COMPUTE_H
#define MLBENCH_TESTS_DEVICE_DOUBLE_LT_COMPUTE_H

#include "tests/device/double/lt_rules.h"

namespace twin
{

struct operands {
	const void *data[MATRICES]; /* D is written */
	float alpha, beta;
};

/* splits: in how many parts k is summed: kernels differ in the order of sums, and so do these. */
void compute_product(const product &asked, const operands &given, unsigned splits);

} // namespace twin

#endif
