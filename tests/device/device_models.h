/* Small models of each kind that a device's step meets, for the tests of its plan and of its numbers. */
#ifndef MLBENCH_TESTS_DEVICE_DEVICE_MODELS_H
#define MLBENCH_TESTS_DEVICE_DEVICE_MODELS_H

#include "workloads/model/model.h"

/* A class token (6 rows of 32 into 7), two blocks of attention, the mean of the rows. */
static const struct model_gemm attention_gemms[] = {
	{"patch", 6, 32, 20, 1, 1, true},
	{"qkv", 7, 96, 32, 2, 1, true},
	{"scores", 7, 7, 16, 2, 2, false},
	{"context", 7, 16, 7, 2, 2, false},
	{"proj", 7, 32, 32, 2, 1, true},
	{"head", 1, 10, 32, 1, 1, true},
};
static const struct model attention_model = {
	.name = "attention", .gemms = attention_gemms, .gemm_count = 6, .input_elements = 120};

/* Outputs that nobody reads, windows that overlap, narrower branches, strides, the mean of the rows. */
static const struct model_gemm convolution_gemms[] = {
	{"conv1", 36, 16, 27, 1, 1, true}, /* 576 outputs, of which the next reads 9 rows of 16 */
	{"conv2", 9, 16, 16, 1, 1, true},
	{"conv3", 9, 16, 144, 1, 1, true},  /* windows of 9 x 16 */
	{"narrow", 9, 32, 8, 1, 1, true},   /* 8 of 16 channels */
	{"stride", 3, 32, 288, 1, 1, true}, /* 9 rows of 32 into 3 rows of 288 */
	{"fc", 1, 7, 32, 1, 1, true},
};
static const struct model convolution_model = {
	.name = "convolution", .gemms = convolution_gemms, .gemm_count = 6, .input_elements = 400};

/* Odd sizes everywhere: nothing is aligned but by our own doing. */
static const struct model_gemm odd_gemms[] = {
	{"patch", 3, 9, 5, 1, 1, true},
	{"qkv", 3, 27, 9, 1, 1, true},
	{"scores", 3, 3, 3, 1, 3, false},
	{"context", 3, 3, 3, 1, 3, false},
	{"proj", 3, 9, 9, 1, 1, true},
	{"head", 3, 11, 9, 1, 1, true},
};
static const struct model odd_model = {
	.name = "odd", .gemms = odd_gemms, .gemm_count = 6, .input_elements = 15};

#endif
