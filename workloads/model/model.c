/* The list of models, and what follows from a table of GEMMs: FLOPs and parameters. */
#include "workloads/model/model.h"

#include "workloads/model/models.h"

#include <string.h>

enum { FLOPS_PER_MAC = 2 };

const struct model *const model_list[] = {
	&model_mlp,
	&model_resnet50,
	&model_vit_b16,
	&model_gpt2_small,
	NULL,
};

const struct model *model_find(const char *name)
{
	for (const struct model *const *model = model_list; *model; model++)
		if (strcmp((*model)->name, name) == 0)
			return *model;
	return NULL;
}

struct model_gemm model_gemm_at(const struct model *model, size_t index, struct model_shape shape)
{
	struct model_gemm gemm = model->gemms[index];
	if (gemm.k == 0)
		gemm.k = shape.sample_elements;
	if (gemm.n == 0)
		gemm.n = shape.class_count;
	return gemm;
}

static double gemm_flops(const struct model_gemm *gemm)
{
	return (double)FLOPS_PER_MAC * gemm->m * gemm->n * gemm->k * gemm->repeat * gemm->batched;
}

double model_forward_flops_at(const struct model *model, struct model_shape shape)
{
	double flops = 0;
	for (size_t i = 0; i < model->gemm_count; i++) {
		const struct model_gemm gemm = model_gemm_at(model, i, shape);
		flops += gemm_flops(&gemm);
	}
	return flops;
}

double model_training_flops_at(const struct model *model, struct model_shape shape)
{
	/* Forward and two backward products of the same size; nobody needs the gradient of the
	 * data. */
	struct model_gemm first = model_gemm_at(model, 0, shape);
	first.repeat = 1;
	return 3 * model_forward_flops_at(model, shape) - gemm_flops(&first);
}

uint64_t model_parameters_at(const struct model *model, struct model_shape shape)
{
	uint64_t count = model->other_parameters;
	for (size_t i = 0; i < model->gemm_count; i++) {
		const struct model_gemm gemm = model_gemm_at(model, i, shape);
		if (gemm.weights)
			count += (uint64_t)gemm.n * gemm.k * gemm.repeat;
		if (model->complete)
			count += (uint64_t)gemm.n * gemm.repeat;
	}
	return count;
}

static struct model_shape published_shape(const struct model *model)
{
	return (struct model_shape){model->published_elements, model->published_classes};
}

double model_forward_flops(const struct model *model)
{
	return model_forward_flops_at(model, published_shape(model));
}

double model_training_flops(const struct model *model)
{
	return model_training_flops_at(model, published_shape(model));
}

uint64_t model_parameters(const struct model *model)
{
	return model_parameters_at(model, published_shape(model));
}

static size_t block_end(const struct model *model, size_t begin)
{
	size_t end = begin + 1;
	while (end < model->gemm_count && model->gemms[end].repeat == model->gemms[begin].repeat)
		end++;
	return end;
}

bool model_walk_next(const struct model *model, struct model_walk *walk)
{
	if (!walk->begun) {
		walk->begun = true;
		walk->block_end = block_end(model, 0);
		return model->gemm_count > 0;
	}
	if (++walk->index < walk->block_end)
		return true;
	if (++walk->round < model->gemms[walk->block].repeat) {
		walk->index = walk->block;
		return true;
	}
	if (walk->block_end == model->gemm_count)
		return false;
	walk->block = walk->block_end;
	walk->block_end = block_end(model, walk->block);
	walk->round = 0;
	return true;
}
