/* A plain multilayer perceptron, input-512-512-classes with biases and ReLU: the small network
 * whose every operation is computed, and whose loss falls. */
#include "workloads/model/models.h"

static const struct model_gemm gemms[] = {
	{"fc1", 1, 512, 0, 1, 1, true},
	{"fc2", 1, 512, 512, 1, 1, true},
	{"fc3", 1, 0, 512, 1, 1, true},
};

/* 669,706 parameters for 28 x 28 pictures in 10 classes: weights 784*512 + 512*512 + 512*10 and
 * biases 512 + 512 + 10.  Its forward FLOPs are twice the weights, each being used once per sample.
 */
const struct model model_mlp = {
	.name = "mlp",
	.summary =
		"perceptron input-512-512-classes with biases and ReLU; takes samples of any size",
	.source = "PyTorch tutorial 'Build the Neural Network' (28 x 28 inputs, 10 classes)",
	.published_flops = 2.0 * (784 * 512 + 512 * 512 + 512 * 10),
	.published_parameters = 669706,
	.gemms = gemms,
	.gemm_count = MODEL_GEMM_COUNT(gemms),
	.input_elements = 0,
	.published_elements = 28 * 28,
	.published_classes = 10,
	.other_parameters = 0,
	.complete = true,
};
