/* What a step of the backend that is chosen here takes and computes. */
#include "harness/command/step_facts.h"

#include "workloads/backend/backend.h"
#include "workloads/model/emulated_steps.h"
#include "workloads/model/model.h"
#include "workloads/sample/sample.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_emulated(const struct config *config)
{
	const struct backend_ops *ops = backend_choose(config, NULL, 0, NULL);
	return ops && ops->emulated;
}

double step_facts_time(const struct config *config, uint32_t batch_size)
{
	return is_emulated(config) ? emulated_step_ns(config, batch_size) : (double)NAN;
}

double step_facts_exchange(const struct config *config)
{
	return is_emulated(config) ? emulated_exchange_ns(config) : (double)NAN;
}

bool step_facts_ranks_exchange(const struct config *config)
{
	const struct backend_ops *ops = backend_choose(config, NULL, 0, NULL);
	return config_integer(config, KEY_RUN_RANKS) > 1 && ops && !ops->null &&
	       model_gradient_bytes(config) >= sizeof(float);
}

/* Products of one shape are counted together. */
static void step_facts_add_product(struct step_info *step, const struct step_product *product)
{
	for (size_t i = 0; i < step->product_count; i++) {
		struct step_product *known = &step->products[i];
		if (known->m == product->m && known->n == product->n && known->k == product->k &&
			known->weights == product->weights) {
			known->count += product->count;
			return;
		}
	}
	if (step->product_count < STEP_PRODUCTS_MAX)
		step->products[step->product_count++] = *product;
}

void step_facts_products(const struct config *config, uint32_t class_count, struct step_info *step)
{
	const struct backend_ops *ops = backend_choose(config, NULL, 0, NULL);
	const struct model *model =
		ops && ops->null ? NULL : model_find(config_text(config, KEY_STEP_MODEL));
	struct sample_sizes sizes;
	sample_sizes_of(config, NULL, &sizes);
	const struct model_shape shape = {sizes.values, class_count, sizes.shape.tokens};
	step->product_count = 0;
	for (size_t i = 0; model && i < model->gemm_count; i++) {
		const struct model_gemm gemm = model_gemm_at(model, i, shape);
		struct step_product product = {.m = gemm.m,
			.n = gemm.n,
			.k = gemm.k,
			.count = gemm.repeat * gemm.batched,
			.weights = gemm.weights,
			.first = i == 0};
		(void)snprintf(product.name, sizeof product.name, "%s", gemm.name);
		step_facts_add_product(step, &product);
	}
}
