/* GPT-2 small (Radford et al. 2019), one sample being a sequence of 1024 tokens: 12 blocks of width
 * 768 and a vocabulary of 50257, whose embedding is also the weight of the head (counted once). */
#include "workloads/model/models.h"

enum {
	TOKENS = 1024,
	BLOCKS = 12,
	HEADS = 12,
	WIDTH = 768,
	HEAD_WIDTH = WIDTH / HEADS,
	HIDDEN = 4 * WIDTH,
	VOCABULARY = 50257,
};

/* Attention is computed for all pairs of tokens, as the published count takes it, not for the
 * causal half. */
static const struct model_gemm gemms[] = {
	{"attn.qkv", TOKENS, 3 * WIDTH, WIDTH, BLOCKS, 1, true},
	{"attn.scores", TOKENS, TOKENS, HEAD_WIDTH, BLOCKS, HEADS, false},
	{"attn.context", TOKENS, HEAD_WIDTH, TOKENS, BLOCKS, HEADS, false},
	{"attn.proj", TOKENS, WIDTH, WIDTH, BLOCKS, 1, true},
	{"mlp.fc1", TOKENS, HIDDEN, WIDTH, BLOCKS, 1, true},
	{"mlp.fc2", TOKENS, WIDTH, HIDDEN, BLOCKS, 1, true},

	{"lm_head", TOKENS, VOCABULARY, WIDTH, 1, 1, true},
};

/* In no GEMM, per block: biases of qkv, proj, fc1, fc2 and two layer norms. */
#define BLOCK_OTHERS (3 * WIDTH + WIDTH + HIDDEN + WIDTH + 2 * 2 * WIDTH)

/* Forward FLOPs per token: 2 N + 4 L H Q T (Chowdhery et al. 2022, PaLM, appendix B, as in
 * nanoGPT's estimate_mfu: a third of 6 N + 12 L H Q T), N without the position embedding:
 * 123,653,376. */
#define FLOPS_PER_TOKEN (2.0 * 123653376 + 4.0 * BLOCKS * HEADS * HEAD_WIDTH * TOKENS)

/* Besides the blocks' others: positions and the last layer norm. */
const struct model model_gpt2_small = {
	.name = "gpt2_small",
	.summary = "GPT-2 small, a sequence of 1024 tokens per sample, head included",
	.source =
		"PaLM (2022) appendix B as in nanoGPT: 2 N + 4 L H Q T per token; 124,439,808 parameters",
	.published_flops = FLOPS_PER_TOKEN * TOKENS,
	.published_parameters = 124439808,
	.gemms = gemms,
	.gemm_count = MODEL_GEMM_COUNT(gemms),
	.input_elements = TOKENS * WIDTH,
	.published_elements = TOKENS * WIDTH,
	.published_classes = VOCABULARY,
	.other_parameters = TOKENS * WIDTH + BLOCKS * BLOCK_OTHERS + 2 * WIDTH,
};
