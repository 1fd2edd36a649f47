/* ResNet-50 at 224 x 224 (He et al. 2015), the v1.5 variant that frameworks ship: the stride is in
 * the 3 x 3 convolutions.  A convolution is its im2col GEMM: m output pixels, k = 9 or 49 x
 * channels. */
#include "workloads/model/models.h"

static const struct model_gemm gemms[] = {
	{"conv1", 112 * 112, 64, 7 * 7 * 3, 1, 1, true},

	{"layer1.0.conv1", 56 * 56, 64, 64, 1, 1, true},
	{"layer1.0.conv2", 56 * 56, 64, 9 * 64, 1, 1, true},
	{"layer1.0.conv3", 56 * 56, 256, 64, 1, 1, true},
	{"layer1.0.downsample", 56 * 56, 256, 64, 1, 1, true},
	{"layer1.x.conv1", 56 * 56, 64, 256, 2, 1, true},
	{"layer1.x.conv2", 56 * 56, 64, 9 * 64, 2, 1, true},
	{"layer1.x.conv3", 56 * 56, 256, 64, 2, 1, true},

	{"layer2.0.conv1", 56 * 56, 128, 256, 1, 1, true},
	{"layer2.0.conv2", 28 * 28, 128, 9 * 128, 1, 1, true},
	{"layer2.0.conv3", 28 * 28, 512, 128, 1, 1, true},
	{"layer2.0.downsample", 28 * 28, 512, 256, 1, 1, true},
	{"layer2.x.conv1", 28 * 28, 128, 512, 3, 1, true},
	{"layer2.x.conv2", 28 * 28, 128, 9 * 128, 3, 1, true},
	{"layer2.x.conv3", 28 * 28, 512, 128, 3, 1, true},

	{"layer3.0.conv1", 28 * 28, 256, 512, 1, 1, true},
	{"layer3.0.conv2", 14 * 14, 256, 9 * 256, 1, 1, true},
	{"layer3.0.conv3", 14 * 14, 1024, 256, 1, 1, true},
	{"layer3.0.downsample", 14 * 14, 1024, 512, 1, 1, true},
	{"layer3.x.conv1", 14 * 14, 256, 1024, 5, 1, true},
	{"layer3.x.conv2", 14 * 14, 256, 9 * 256, 5, 1, true},
	{"layer3.x.conv3", 14 * 14, 1024, 256, 5, 1, true},

	{"layer4.0.conv1", 14 * 14, 512, 1024, 1, 1, true},
	{"layer4.0.conv2", 7 * 7, 512, 9 * 512, 1, 1, true},
	{"layer4.0.conv3", 7 * 7, 2048, 512, 1, 1, true},
	{"layer4.0.downsample", 7 * 7, 2048, 1024, 1, 1, true},
	{"layer4.x.conv1", 7 * 7, 512, 2048, 2, 1, true},
	{"layer4.x.conv2", 7 * 7, 512, 9 * 512, 2, 1, true},
	{"layer4.x.conv3", 7 * 7, 2048, 512, 2, 1, true},

	{"fc", 1, 1000, 2048, 1, 1, true},
};

/* In no GEMM: scale and shift of every batch normalisation, 2 x the output channels of each of the
 * 53 convolutions (53,120), and the 1,000 biases of fc. */
const struct model model_resnet50 = {
	.name = "resnet50",
	.summary = "ResNet-50 v1.5 at 224 x 224, convolutions as im2col GEMMs",
	.source = "torchvision ResNet50_Weights: 4.089 G multiply-adds, 25,557,032 parameters",
	.published_flops = 2 * 4.089e9,
	.published_parameters = 25557032,
	.gemms = gemms,
	.gemm_count = MODEL_GEMM_COUNT(gemms),
	.input_elements = MODEL_IMAGE_ELEMENTS,
	.published_elements = MODEL_IMAGE_ELEMENTS,
	.published_classes = 1000,
	.other_parameters = 53120 + 1000,
};
