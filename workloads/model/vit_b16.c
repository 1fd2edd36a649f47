/* ViT-B/16 at 224 x 224 (Dosovitskiy et al. 2020): 196 patches and a class token, 12 blocks of
 * width 768. */
#include "workloads/model/models.h"

enum {
	PATCHES = 14 * 14,
	TOKENS = PATCHES + 1,
	BLOCKS = 12,
	HEADS = 12,
	WIDTH = 768,
	HEAD_WIDTH = WIDTH / HEADS,
	HIDDEN = 4 * WIDTH,
	CLASSES = 1000,
};

static const struct model_gemm gemms[] = {
	{"patch", PATCHES, WIDTH, 16 * 16 * 3, 1, 1, true},

	{"attn.qkv", TOKENS, 3 * WIDTH, WIDTH, BLOCKS, 1, true},
	{"attn.scores", TOKENS, TOKENS, HEAD_WIDTH, BLOCKS, HEADS, false},
	{"attn.context", TOKENS, HEAD_WIDTH, TOKENS, BLOCKS, HEADS, false},
	{"attn.proj", TOKENS, WIDTH, WIDTH, BLOCKS, 1, true},
	{"mlp.fc1", TOKENS, HIDDEN, WIDTH, BLOCKS, 1, true},
	{"mlp.fc2", TOKENS, WIDTH, HIDDEN, BLOCKS, 1, true},

	{"head", 1, CLASSES, WIDTH, 1, 1, true},
};

/* In no GEMM, per block: biases of qkv, proj, fc1, fc2 and two layer norms. */
#define BLOCK_OTHERS (3 * WIDTH + WIDTH + HIDDEN + WIDTH + 2 * 2 * WIDTH)

/* Besides: bias of the patches, class token, positions, the last layer norm, bias of the head. */
const struct model model_vit_b16 = {
	.name = "vit_b16",
	.summary = "vision transformer ViT-B/16 at 224 x 224",
	.source = "torchvision ViT_B_16_Weights: 17.564 G multiply-adds, 86,567,656 parameters",
	.published_flops = 2 * 17.564e9,
	.published_parameters = 86567656,
	.gemms = gemms,
	.gemm_count = MODEL_GEMM_COUNT(gemms),
	.input_elements = MODEL_IMAGE_ELEMENTS,
	.published_elements = MODEL_IMAGE_ELEMENTS,
	.published_classes = CLASSES,
	.other_parameters =
		WIDTH + WIDTH + TOKENS * WIDTH + BLOCKS * BLOCK_OTHERS + 2 * WIDTH + CLASSES,
};
