/* Layers of one shape are one product. */
#include "workloads/model/products.h"

#include <math.h>
#include <stdlib.h>

static int by_share(const void *a, const void *b)
{
	const struct model_product *left = a;
	const struct model_product *right = b;
	return left->share > right->share ? -1 : left->share < right->share;
}

static bool merge(struct model_product *products, size_t count, const struct model_product *product)
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
			.share = 2.0 * gemm.m * gemm.n * gemm.k * gemm.repeat * gemm.batched / all,
			.name = gemm.name,
		};
		if (!merge(out, count, &product))
			out[count++] = product;
	}
	qsort(out, count, sizeof *out, by_share);
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
