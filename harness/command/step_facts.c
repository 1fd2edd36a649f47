/* Published step times and sizes of models. */
#include "harness/command/step_facts.h"

#include "pipelines/pipeline.h"
#include "workloads/backend/backend.h"
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
	struct backend *backend;
	if (!is_emulated(config))
		return NAN;
	const double given = config_step_time(config, batch_size);
	if (given > 0)
		return given;
	if (backend_open(&backend,
		    &(const struct backend_options){
			    .config = config, .sample_elements = 1, .class_count = 1},
		    NULL) != 0)
		return NAN;
	const double each = backend->nominal_step_ns / backend->batch_size;
	backend_close(backend);
	return each * batch_size;
}

double step_facts_recorded_time(const struct config *config, uint32_t batch_size)
{
	struct config emulated = {0};
	double ns = NAN;
	if (config_copy(&emulated, config, NULL) == 0 &&
		config_set_key(&emulated, KEY_STEP_BACKEND, "emulated", NULL) == 0)
		ns = step_facts_time(&emulated, batch_size);
	config_release(&emulated);
	return ns;
}

double step_facts_exchange(const struct config *config)
{
	return is_emulated(config) ? backend_exchange_ns(config) : (double)NAN;
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
	const struct model *model = pipeline_facts(config).step_null
					    ? NULL
					    : model_find(config_text(config, KEY_STEP_MODEL));
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
