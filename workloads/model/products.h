/* The distinct matrix products of a model's forward pass over a batch, those with most FLOPs first: what a probe measures of
 * a model that is too large to measure whole. */
#ifndef MLBENCH_WORKLOADS_MODEL_PRODUCTS_H
#define MLBENCH_WORKLOADS_MODEL_PRODUCTS_H

#include "workloads/model/model.h"

struct model_product {
	long long m, n,
		k;    /* m: rows of the whole batch where there are weights, else of one product */
	double share; /* of the model's forward FLOPs, over all layers that it stands for */
	const char *name; /* of the first such layer */
};

/* Fills at most `room` and returns how many. */
size_t model_products(const struct model *model, struct model_shape shape, uint32_t batch,
	struct model_product *out, size_t room);

/* The most rows whose product is within so many FLOPs and whose operands are within so many elements each; at least 1. */
long long model_product_rows(const struct model_product *product, double flops, double elements);

#endif
