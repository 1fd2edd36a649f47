/* The models: tables of matrix products, each with the source of its published FLOPs and parameters, which tests/unit/test_model.c
 * compares with what follows from the table.  To add one: a table and a struct model here, and its line in model_list. */
#include "workloads/model/model.h"

#define GEMM_COUNT(gemms) (sizeof(gemms) / sizeof((gemms)[0]))

enum { IMAGE_ELEMENTS = 3 * 224 * 224 };

/* --- a plain multilayer perceptron, input-512-512-classes with biases and ReLU -------------------
 *
 * The small network whose every operation is computed, and whose loss falls. */

static const struct model_gemm mlp_gemms[] = {
	{"fc1", 1, 512, 0, 1, 1, true},
	{"fc2", 1, 512, 512, 1, 1, true},
	{"fc3", 1, 0, 512, 1, 1, true},
};

/* 669,706 parameters for 28 x 28 pictures in 10 classes: weights 784*512 + 512*512 + 512*10 and
 * biases 512 + 512 + 10.  Its forward FLOPs are twice the weights, each being used once per sample.
 */
static const struct model model_mlp = {
	.name = "mlp",
	.summary =
		"perceptron input-512-512-classes with biases and ReLU; takes samples of any size",
	.source = "PyTorch tutorial 'Build the Neural Network' (28 x 28 inputs, 10 classes)",
	.published_flops = 2.0 * (784 * 512 + 512 * 512 + 512 * 10),
	.published_parameters = 669706,
	.gemms = mlp_gemms,
	.gemm_count = GEMM_COUNT(mlp_gemms),
	.input_elements = 0,
	.published_elements = 28 * 28,
	.published_classes = 10,
	.other_parameters = 0,
	.complete = true,
};

/* --- ResNet-50 at 224 x 224 (He et al. 2015) -------------------------------------------------------
 *
 * The v1.5 variant that frameworks ship: the stride is in the 3 x 3 convolutions.  A convolution is its im2col GEMM: m output
 * pixels, k = 9 or 49 x channels. */

static const struct model_gemm resnet50_gemms[] = {
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
static const struct model model_resnet50 = {
	.name = "resnet50",
	.summary = "ResNet-50 v1.5 at 224 x 224, convolutions as im2col GEMMs",
	.source = "torchvision ResNet50_Weights: 4.089 G multiply-adds, 25,557,032 parameters",
	.published_flops = 2 * 4.089e9,
	.published_parameters = 25557032,
	.gemms = resnet50_gemms,
	.gemm_count = GEMM_COUNT(resnet50_gemms),
	.input_elements = IMAGE_ELEMENTS,
	.published_elements = IMAGE_ELEMENTS,
	.published_classes = 1000,
	.other_parameters = 53120 + 1000,
};

/* --- two transformers of 12 blocks of width 768 ----------------------------------------------------- */

enum {
	BLOCKS = 12,
	HEADS = 12,
	WIDTH = 768,
	HEAD_WIDTH = WIDTH / HEADS,
	HIDDEN = 4 * WIDTH,
};

/* In no GEMM, per block: biases of qkv, proj, fc1, fc2 and two layer norms. */
#define BLOCK_OTHERS (3 * WIDTH + WIDTH + HIDDEN + WIDTH + 2 * 2 * WIDTH)

/* ViT-B/16 at 224 x 224 (Dosovitskiy et al. 2020): 196 patches and a class token. */
enum { VIT_PATCHES = 14 * 14, VIT_TOKENS = VIT_PATCHES + 1, VIT_CLASSES = 1000 };

static const struct model_gemm vit_b16_gemms[] = {
	{"patch", VIT_PATCHES, WIDTH, 16 * 16 * 3, 1, 1, true},

	{"attn.qkv", VIT_TOKENS, 3 * WIDTH, WIDTH, BLOCKS, 1, true},
	{"attn.scores", VIT_TOKENS, VIT_TOKENS, HEAD_WIDTH, BLOCKS, HEADS, false},
	{"attn.context", VIT_TOKENS, HEAD_WIDTH, VIT_TOKENS, BLOCKS, HEADS, false},
	{"attn.proj", VIT_TOKENS, WIDTH, WIDTH, BLOCKS, 1, true},
	{"mlp.fc1", VIT_TOKENS, HIDDEN, WIDTH, BLOCKS, 1, true},
	{"mlp.fc2", VIT_TOKENS, WIDTH, HIDDEN, BLOCKS, 1, true},

	{"head", 1, VIT_CLASSES, WIDTH, 1, 1, true},
};

/* Besides: bias of the patches, class token, positions, the last layer norm, bias of the head. */
static const struct model model_vit_b16 = {
	.name = "vit_b16",
	.summary = "vision transformer ViT-B/16 at 224 x 224",
	.source = "torchvision ViT_B_16_Weights: 17.564 G multiply-adds, 86,567,656 parameters",
	.published_flops = 2 * 17.564e9,
	.published_parameters = 86567656,
	.gemms = vit_b16_gemms,
	.gemm_count = GEMM_COUNT(vit_b16_gemms),
	.input_elements = IMAGE_ELEMENTS,
	.published_elements = IMAGE_ELEMENTS,
	.published_classes = VIT_CLASSES,
	.other_parameters = WIDTH + WIDTH + VIT_TOKENS * WIDTH + BLOCKS * BLOCK_OTHERS + 2 * WIDTH +
			    VIT_CLASSES,
};

/* GPT-2 small (Radford et al. 2019), one sample being a sequence of 1024 tokens: a vocabulary of 50257,
 * whose embedding is also the weight of the head (counted once). */
enum { GPT_TOKENS = 1024, GPT_VOCABULARY = 50257 };

/* Attention is computed for all pairs of tokens, as the published count takes it, not for the
 * causal half. */
static const struct model_gemm gpt2_small_gemms[] = {
	{"attn.qkv", GPT_TOKENS, 3 * WIDTH, WIDTH, BLOCKS, 1, true},
	{"attn.scores", GPT_TOKENS, GPT_TOKENS, HEAD_WIDTH, BLOCKS, HEADS, false},
	{"attn.context", GPT_TOKENS, HEAD_WIDTH, GPT_TOKENS, BLOCKS, HEADS, false},
	{"attn.proj", GPT_TOKENS, WIDTH, WIDTH, BLOCKS, 1, true},
	{"mlp.fc1", GPT_TOKENS, HIDDEN, WIDTH, BLOCKS, 1, true},
	{"mlp.fc2", GPT_TOKENS, WIDTH, HIDDEN, BLOCKS, 1, true},

	{"lm_head", GPT_TOKENS, GPT_VOCABULARY, WIDTH, 1, 1, true},
};

/* Forward FLOPs per token: 2 N + 4 L H Q T (Chowdhery et al. 2022, PaLM, appendix B, as in
 * nanoGPT's estimate_mfu: a third of 6 N + 12 L H Q T), N without the position embedding:
 * 123,653,376.  The table gives the same for any length T of the sequence, but for the norms and
 * biases in N: they are in no product. */
#define GPT_FLOPS_PER_TOKEN (2.0 * 123653376 + 4.0 * BLOCKS * HEADS * HEAD_WIDTH * GPT_TOKENS)

/* Besides the blocks' others: positions and the last layer norm. */
static const struct model model_gpt2_small = {
	.name = "gpt2_small",
	.summary = "GPT-2 small, a sequence of 1024 tokens per sample, head included",
	.source =
		"PaLM (2022) appendix B as in nanoGPT: 2 N + 4 L H Q T per token; 124,439,808 parameters",
	.published_flops = GPT_FLOPS_PER_TOKEN * GPT_TOKENS,
	.published_parameters = 124439808,
	.gemms = gpt2_small_gemms,
	.gemm_count = GEMM_COUNT(gpt2_small_gemms),
	.input_elements = GPT_TOKENS * WIDTH,
	.published_elements = GPT_TOKENS * WIDTH,
	.published_classes = GPT_VOCABULARY,
	.tokens = GPT_TOKENS,
	.other_parameters = GPT_TOKENS * WIDTH + BLOCKS * BLOCK_OTHERS + 2 * WIDTH,
};

const struct model *const model_list[] = {
	&model_mlp,
	&model_resnet50,
	&model_vit_b16,
	&model_gpt2_small,
	NULL,
};
