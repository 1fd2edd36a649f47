/* What follows from a table of GEMMs: FLOPs, parameters, and the distinct products that a probe measures. */
#include "workloads/model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FLOPS_PER_MAC = 2 };

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
	if (model->tokens > 0 && shape.tokens > 0) {
		gemm.m = gemm.m == model->tokens ? shape.tokens : gemm.m;
		gemm.n = gemm.n == model->tokens ? shape.tokens : gemm.n;
		gemm.k = gemm.k == model->tokens ? shape.tokens : gemm.k;
	}
	return gemm;
}

static double model_gemm_flops(const struct model_gemm *gemm)
{
	return (double)FLOPS_PER_MAC * gemm->m * gemm->n * gemm->k * gemm->repeat * gemm->batched;
}

double model_forward_flops_at(const struct model *model, struct model_shape shape)
{
	double flops = 0;
	for (size_t i = 0; i < model->gemm_count; i++) {
		const struct model_gemm gemm = model_gemm_at(model, i, shape);
		flops += model_gemm_flops(&gemm);
	}
	return flops;
}

double model_training_flops_at(const struct model *model, struct model_shape shape)
{
	/* Forward and two backward products of the same size; the gradient of the data is
	 * not needed. */
	struct model_gemm first = model_gemm_at(model, 0, shape);
	first.repeat = 1;
	return 3 * model_forward_flops_at(model, shape) - model_gemm_flops(&first);
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

static struct model_shape model_published_shape(const struct model *model)
{
	return (struct model_shape){model->published_elements, model->published_classes, 0};
}

double model_forward_flops(const struct model *model)
{
	return model_forward_flops_at(model, model_published_shape(model));
}

double model_training_flops(const struct model *model)
{
	return model_training_flops_at(model, model_published_shape(model));
}

uint64_t model_parameters(const struct model *model)
{
	return model_parameters_at(model, model_published_shape(model));
}

static size_t model_block_end(const struct model *model, size_t begin)
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
		walk->block_end = model_block_end(model, 0);
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
	walk->block_end = model_block_end(model, walk->block);
	walk->round = 0;
	return true;
}

/* --- distinct products: layers of one shape are one --- */

static int model_product_order(const void *a, const void *b)
{
	const struct model_product *left = a;
	const struct model_product *right = b;
	return left->share > right->share ? -1 : left->share < right->share;
}

static bool model_merge_product(
	struct model_product *products, size_t count, const struct model_product *product)
{
	for (size_t i = 0; i < count; i++)
		if (products[i].m == product->m && products[i].n == product->n &&
			products[i].k == product->k) {
			products[i].share += product->share;
			return true;
		}
	return false;
}

size_t model_products(const struct model *model, struct model_shape shape, uint32_t batch,
	struct model_product *out, size_t room)
{
	const double all = model_forward_flops_at(model, shape);
	size_t count = 0;
	for (size_t i = 0; i < model->gemm_count && count < room; i++) {
		const struct model_gemm gemm = model_gemm_at(model, i, shape);
		const struct model_product product = {
			.m = (long long)gemm.m * (gemm.weights ? batch : 1),
			.n = gemm.n,
			.k = gemm.k,
			.share = model_gemm_flops(&gemm) / all,
			.name = gemm.name,
		};
		if (!model_merge_product(out, count, &product))
			out[count++] = product;
	}
	qsort(out, count, sizeof *out, model_product_order);
	return count;
}

long long model_product_rows(const struct model_product *product, double flops, double elements)
{
	const double row = 2.0 * (double)product->n * (double)product->k;
	const double widest = (double)(product->n > product->k ? product->n : product->k);
	const double most = fmin(flops / row, elements / widest);
	if ((double)product->m <= most)
		return product->m;
	return most < 1 ? 1 : (long long)most;
}
