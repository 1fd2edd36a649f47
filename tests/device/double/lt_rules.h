/* Which products cuBLASLt computes, and which it refuses: its documentation's tables, read strictly.  What is allowed
 * there but never needed here is refused, too. */
#ifndef MLBENCH_TESTS_DEVICE_DOUBLE_LT_RULES_H
#define MLBENCH_TESTS_DEVICE_DOUBLE_LT_RULES_H

#include "tests/device/double/lt_objects.h"

namespace twin
{

/* A product as it was asked for, all descriptors copied. */
struct product {
	matmul how;
	layout of[MATRICES];
	uint64_t m, n, k;
};

size_t type_bytes(uint32_t type); /* 0: not known */
bool is_fp8(uint32_t type);
bool writes_mask(uint32_t epilogue); /* RELU_AUX; DRELU reads one */
bool uses_mask(uint32_t epilogue);
bool adds_bias(uint32_t epilogue);
bool sums_bias(uint32_t epilogue); /* a bias gradient */
uint32_t bias_type(const product &asked);
uint64_t bias_length(const product &asked);

/* INVALID_VALUE: contradicts itself; NOT_SUPPORTED: there is no kernel.  why: a sentence. */
cublasStatus_t check_product(const product &asked, const char **why);

} // namespace twin

#endif
