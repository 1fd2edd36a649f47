/* Forward and backward of dense layers and of attention.  Nearly all the time is in cblas_sgemm;
 * the rest is kept to one pass over rows that are still in cache. */
#include "workloads/backend/layers.h"

#include "workloads/backend/blas.h"

#include <math.h>
#include <string.h>

enum { PARALLEL_MIN = 1 << 15, ATTENTION_INPUTS = 3 };

#define NORM_EPSILON 1e-6f

/* A matrix as a product takes it. */
struct matrix {
	const float *data;
	size_t ld;
	bool transposed;
};

/* C (m, n) <- alpha A B + beta C with inner length k. */
static void multiply(size_t m, size_t n, size_t k, float alpha, struct matrix a, struct matrix b,
	float beta, float *c, size_t ldc)
{
	blas->sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans,
		b.transposed ? CblasTrans : CblasNoTrans, (blasint)m, (blasint)n, (blasint)k, alpha,
		a.data, (blasint)a.ld, b.data, (blasint)b.ld, beta, c, (blasint)ldc);
}

static struct matrix plain(const float *data, size_t ld)
{
	return (struct matrix){data, ld, false};
}

static struct matrix transposed(const float *data, size_t ld)
{
	return (struct matrix){data, ld, true};
}

static void add_bias(const struct layer *layer, size_t rows, int threads)
{
	const float *restrict bias = layer->parameters.values + (size_t)layer->k * layer->n;
	const float floor = layer->relu ? 0.0f : -INFINITY;
	const size_t n = layer->n;
#pragma omp parallel for num_threads(threads) if (rows * n >= PARALLEL_MIN)
	for (size_t r = 0; r < rows; r++) {
		float *restrict y = layer->output + r * layer->ld_out;
		for (size_t j = 0; j < n; j++) {
			const float sum = y[j] + bias[j];
			y[j] = sum < floor ? floor : sum; /* NaN stays */
		}
	}
}

/* In place of batch and layer norms and of the softmax: keeps values of order one through any number of
 * layers, so that training cannot run away, at the cost of one row at a time in cache. */
static void norm_forward(const struct layer *layer, size_t rows)
{
	for (size_t r = 0; r < rows; r++) {
		float *restrict x = layer->norm_input + r * layer->ld_in;
		const float squares = blas->sdot((blasint)layer->k, x, 1, x, 1);
		const float scale = 1 / sqrtf(squares / (float)layer->k + NORM_EPSILON);
		layer->scales[r] = scale;
		for (size_t j = 0; j < layer->k; j++)
			x[j] *= scale;
	}
}

/* dX <- s (dN - N mean(dN N)), from the normalised rows N and their gradient dN, in place. */
static void norm_backward(const struct layer *layer, size_t rows, float *gradient)
{
	for (size_t r = 0; r < rows; r++) {
		const float *restrict x = layer->norm_input + r * layer->ld_in;
		float *restrict dx = gradient + r * layer->ld_in;
		const float mean = blas->sdot((blasint)layer->k, dx, 1, x, 1) / (float)layer->k;
		const float scale = layer->scales[r];
		for (size_t j = 0; j < layer->k; j++)
			dx[j] = scale * (dx[j] - x[j] * mean);
	}
}

static void dense_forward(const struct layer *layer, size_t samples, int threads)
{
	const size_t rows = samples * layer->m;
	if (layer->normalised)
		norm_forward(layer, rows);
	multiply(rows, layer->n, layer->k, 1, plain(layer->input, layer->ld_in),
		plain(layer->parameters.values, layer->n), 0, layer->output, layer->ld_out);
	if (layer->bias)
		add_bias(layer, rows, threads);
}

/* dY <- dY where the unit was active, else 0. */
static void relu_backward(
	const struct layer *layer, size_t rows, const struct layer_gradients *gradients)
{
	const size_t n = layer->n;
#pragma omp parallel for num_threads(gradients->threads) if (rows * n >= PARALLEL_MIN)
	for (size_t r = 0; r < rows; r++) {
		const float *restrict y = layer->output + r * layer->ld_out;
		float *restrict dy = gradients->output + r * layer->ld_out;
		for (size_t j = 0; j < n; j++)
			dy[j] = y[j] > 0 ? dy[j] : 0.0f;
	}
}

static void bias_backward(
	const struct layer *layer, size_t rows, const struct layer_gradients *gradients)
{
	float *restrict db = layer->parameters.gradient + (size_t)layer->k * layer->n;
	for (size_t j = 0; j < layer->n; j++)
		db[j] *= gradients->carry;
	for (size_t r = 0; r < rows; r++) {
		const float *restrict dy = gradients->output + r * layer->ld_out;
		for (size_t j = 0; j < layer->n; j++)
			db[j] += dy[j];
	}
}

static void dense_backward(
	const struct layer *layer, size_t samples, const struct layer_gradients *gradients)
{
	const size_t rows = samples * layer->m;
	const struct parameters *parameters = &layer->parameters;
	if (layer->relu)
		relu_backward(layer, rows, gradients);
	if (gradients->input)
		multiply(rows, layer->k, layer->n, 1, plain(gradients->output, layer->ld_out),
			transposed(parameters->values, layer->n), 0, gradients->input,
			layer->ld_in);
	multiply(layer->k, layer->n, rows, 1, transposed(layer->input, layer->ld_in),
		plain(gradients->output, layer->ld_out), gradients->carry, parameters->gradient,
		layer->n);
	if (layer->bias)
		bias_backward(layer, rows, gradients);
	if (layer->normalised && gradients->input)
		norm_backward(layer, rows, gradients->input);
}

/* The factors that keep variances: 1 / sqrt(inner length) of each product; and the mixed values are a
 * quarter beside the token's own.  Without the latter, which stands for the residual connections, a
 * dozen blocks multiply a small change by thousands, and no learning rate is small enough. */
static float score_factor(const struct layer *layer)
{
	const size_t head_width = layer->n / layer->heads;
	return 1 / sqrtf((float)head_width);
}

static float context_factor(const struct layer *layer)
{
	return ATTENTION_SHARE / sqrtf((float)layer->m);
}

static void copy_rows(
	const float *from, size_t ld_from, float *to, size_t ld_to, size_t rows, size_t width)
{
	for (size_t r = 0; r < rows; r++)
		memcpy(to + r * ld_to, from + r * ld_from, width * sizeof *to);
}

static void attention_forward(const struct layer *layer)
{
	const size_t m = layer->m, ld = layer->ld_in, width = layer->n / layer->heads;
	for (size_t head = 0; head < layer->heads; head++) {
		const float *q = layer->input + head * width, *k = q + layer->n, *v = k + layer->n;
		float *scores = layer->scores + head * m * m;
		multiply(m, m, width, score_factor(layer), plain(q, ld), transposed(k, ld), 0,
			scores, m);
		float *y = layer->output + head * width;
		copy_rows(v, ld, y, layer->ld_out, m, width);
		multiply(m, width, m, context_factor(layer), plain(scores, m), plain(v, ld), 1, y,
			layer->ld_out);
	}
}

static void attention_backward(const struct layer *layer, const struct layer_gradients *gradients)
{
	const size_t m = layer->m, ld = layer->ld_in, width = layer->n / layer->heads;
	float *ds = layer->head_gradient;
	for (size_t head = 0; head < layer->heads; head++) {
		const float *q = layer->input + head * width, *k = q + layer->n, *v = k + layer->n;
		const float *scores = layer->scores + head * m * m;
		float *dq = gradients->input + head * width, *dk = dq + layer->n,
		      *dv = dk + layer->n;
		const struct matrix dy = plain(gradients->output + head * width, layer->ld_out);
		copy_rows(dy.data, dy.ld, dv, ld, m, width);
		multiply(m, m, width, context_factor(layer), dy, transposed(v, ld), 0, ds, m);
		multiply(m, width, m, context_factor(layer), transposed(scores, m), dy, 1, dv, ld);
		multiply(m, width, m, score_factor(layer), plain(ds, m), plain(k, ld), 0, dq, ld);
		multiply(m, width, m, score_factor(layer), transposed(ds, m), plain(q, ld), 0, dk,
			ld);
	}
}

void layer_forward(const struct layer *layer, size_t samples, int threads)
{
	if (layer->kind == LAYER_ATTENTION)
		attention_forward(layer);
	else
		dense_forward(layer, samples, threads);
}

void layer_backward(
	const struct layer *layer, size_t samples, const struct layer_gradients *gradients)
{
	if (layer->kind == LAYER_ATTENTION)
		attention_backward(layer, gradients);
	else
		dense_backward(layer, samples, gradients);
}
