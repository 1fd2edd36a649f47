/* Dense layers and attention, forward and backward, the loss, and the update.  Nearly all the time is in
 * cblas_sgemm; the rest is kept to one pass over rows that are still in cache. */
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
static void layer_multiply(size_t m, size_t n, size_t k, float alpha, struct matrix a,
	struct matrix b, float beta, float *c, size_t ldc)
{
	blas->sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans,
		b.transposed ? CblasTrans : CblasNoTrans, (blasint)m, (blasint)n, (blasint)k, alpha,
		a.data, (blasint)a.ld, b.data, (blasint)b.ld, beta, c, (blasint)ldc);
}

static struct matrix layer_plain(const float *data, size_t ld)
{
	return (struct matrix){data, ld, false};
}

static struct matrix layer_transposed(const float *data, size_t ld)
{
	return (struct matrix){data, ld, true};
}

static void layer_add_bias(const struct layer *layer, size_t rows, int threads)
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
static void layer_norm_forward(const struct layer *layer, size_t rows)
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
static void layer_norm_backward(const struct layer *layer, size_t rows, float *gradient)
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

static void layer_dense_forward(const struct layer *layer, size_t samples, int threads)
{
	const size_t rows = samples * layer->m;
	if (layer->normalised)
		layer_norm_forward(layer, rows);
	layer_multiply(rows, layer->n, layer->k, 1, layer_plain(layer->input, layer->ld_in),
		layer_plain(layer->parameters.values, layer->n), 0, layer->output, layer->ld_out);
	if (layer->bias)
		layer_add_bias(layer, rows, threads);
}

/* dY <- dY where the unit was active, else 0. */
static void layer_relu_backward(
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

static void layer_bias_backward(
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

static void layer_dense_backward(
	const struct layer *layer, size_t samples, const struct layer_gradients *gradients)
{
	const size_t rows = samples * layer->m;
	const struct parameters *parameters = &layer->parameters;
	if (layer->relu)
		layer_relu_backward(layer, rows, gradients);
	if (gradients->input)
		layer_multiply(rows, layer->k, layer->n, 1,
			layer_plain(gradients->output, layer->ld_out),
			layer_transposed(parameters->values, layer->n), 0, gradients->input,
			layer->ld_in);
	layer_multiply(layer->k, layer->n, rows, 1, layer_transposed(layer->input, layer->ld_in),
		layer_plain(gradients->output, layer->ld_out), gradients->carry,
		parameters->gradient, layer->n);
	if (layer->bias)
		layer_bias_backward(layer, rows, gradients);
	if (layer->normalised && gradients->input)
		layer_norm_backward(layer, rows, gradients->input);
}

/* The factors that keep variances: 1 / sqrt(inner length) of each product; and the mixed values are a
 * quarter beside the token's own.  Without the latter, which stands for the residual connections, a
 * dozen blocks multiply a small change by thousands, and no learning rate is small enough. */
static float layer_score_factor(const struct layer *layer)
{
	const size_t head_width = layer->n / layer->heads;
	return 1 / sqrtf((float)head_width);
}

static float layer_context_factor(const struct layer *layer)
{
	return ATTENTION_SHARE / sqrtf((float)layer->m);
}

static void layer_copy_rows(
	const float *from, size_t ld_from, float *to, size_t ld_to, size_t rows, size_t width)
{
	for (size_t r = 0; r < rows; r++)
		memcpy(to + r * ld_to, from + r * ld_from, width * sizeof *to);
}

static void layer_attention_forward(const struct layer *layer)
{
	const size_t m = layer->m, ld = layer->ld_in, width = layer->n / layer->heads;
	for (size_t head = 0; head < layer->heads; head++) {
		const float *q = layer->input + head * width, *k = q + layer->n, *v = k + layer->n;
		float *scores = layer->scores + head * m * m;
		layer_multiply(m, m, width, layer_score_factor(layer), layer_plain(q, ld),
			layer_transposed(k, ld), 0, scores, m);
		float *y = layer->output + head * width;
		layer_copy_rows(v, ld, y, layer->ld_out, m, width);
		layer_multiply(m, width, m, layer_context_factor(layer), layer_plain(scores, m),
			layer_plain(v, ld), 1, y, layer->ld_out);
	}
}

static void layer_attention_backward(
	const struct layer *layer, const struct layer_gradients *gradients)
{
	const size_t m = layer->m, ld = layer->ld_in, width = layer->n / layer->heads;
	float *ds = layer->head_gradient;
	for (size_t head = 0; head < layer->heads; head++) {
		const float *q = layer->input + head * width, *k = q + layer->n, *v = k + layer->n;
		const float *scores = layer->scores + head * m * m;
		float *dq = gradients->input + head * width, *dk = dq + layer->n,
		      *dv = dk + layer->n;
		const struct matrix dy =
			layer_plain(gradients->output + head * width, layer->ld_out);
		layer_copy_rows(dy.data, dy.ld, dv, ld, m, width);
		layer_multiply(m, m, width, layer_context_factor(layer), dy,
			layer_transposed(v, ld), 0, ds, m);
		layer_multiply(m, width, m, layer_context_factor(layer),
			layer_transposed(scores, m), dy, 1, dv, ld);
		layer_multiply(m, width, m, layer_score_factor(layer), layer_plain(ds, m),
			layer_plain(k, ld), 0, dq, ld);
		layer_multiply(m, width, m, layer_score_factor(layer), layer_transposed(ds, m),
			layer_plain(q, ld), 0, dk, ld);
	}
}

void layer_forward(const struct layer *layer, size_t samples, int threads)
{
	if (layer->kind == LAYER_ATTENTION)
		layer_attention_forward(layer);
	else
		layer_dense_forward(layer, samples, threads);
}

void layer_backward(
	const struct layer *layer, size_t samples, const struct layer_gradients *gradients)
{
	if (layer->kind == LAYER_ATTENTION)
		layer_attention_backward(layer, gradients);
	else
		layer_dense_backward(layer, samples, gradients);
}

/* --- the loss ------------------------------------------------------------------------------------ */

enum { LANES = 16, FLOAT_EXPONENT_SHIFT = 23 };

#define EXP_LEAST_BITS 0xc2ae0000u /* -87: e^-87 is still a normal float */
#define LOG2_E 1.44269504f
#define LN2_HIGH 0.693359375f /* ln 2 in two parts: n times the first is exact */
#define LN2_LOW (-2.12194440e-4f)
#define ROUNDER 12582912.0f /* 1.5 * 2^23: adding it rounds to an integer, in the low bits */

union float_bits {
	float number;
	uint32_t bits;
};

static inline float loss_exp_vectorised(float x)
{
	/* Negative floats order as their bits do, and an integer minimum vectorises where a float
	 * one, which may trap, does not. */
	union float_bits clamped = {.number = x};
	clamped.bits = clamped.bits > EXP_LEAST_BITS ? EXP_LEAST_BITS : clamped.bits;
	x = clamped.number;
	const float shifted = x * LOG2_E + ROUNDER;
	const float n = shifted - ROUNDER;
	const float r = (x - n * LN2_HIGH) - n * LN2_LOW;
	/* Taylor's series to r^7; |r| <= ln(2) / 2, where the next term is below 1e-8. */
	float p = 1.0f / 5040;
	p = p * r + 1.0f / 720;
	p = p * r + 1.0f / 120;
	p = p * r + 1.0f / 24;
	p = p * r + 1.0f / 6;
	p = p * r + 0.5f;
	p = p * r + 1.0f;
	p = p * r + 1.0f;
	/* 2^n: the low bits of shifted hold n, which goes to the exponent of p. */
	union float_bits scaled = {.number = p};
	const union float_bits exponent = {.number = shifted};
	scaled.bits += exponent.bits << FLOAT_EXPONENT_SHIFT;
	return scaled.number;
}

float loss_exp(float x)
{
	return loss_exp_vectorised(x);
}

static float loss_row_maximum(const float *row, size_t count)
{
	float lanes[LANES];
	for (size_t j = 0; j < LANES; j++)
		lanes[j] = row[0];
	size_t i = 0;
	for (; i + LANES <= count; i += LANES)
		for (size_t j = 0; j < LANES; j++)
			lanes[j] = row[i + j] > lanes[j] ? row[i + j] : lanes[j];
	float maximum = lanes[0];
	for (size_t j = 1; j < LANES; j++)
		maximum = fmaxf(maximum, lanes[j]);
	for (; i < count; i++)
		maximum = fmaxf(maximum, row[i]);
	return maximum;
}

/* row <- e^(row - maximum) */
static void loss_exponentials(float *row, size_t count, float maximum)
{
	for (size_t i = 0; i < count; i++)
		row[i] = loss_exp_vectorised(row[i] - maximum);
}

static float loss_row_sum(const float *row, size_t count)
{
	float lanes[LANES] = {0};
	size_t i = 0;
	for (; i + LANES <= count; i += LANES)
		for (size_t j = 0; j < LANES; j++)
			lanes[j] += row[i + j];
	float sum = 0;
	for (; i < count; i++)
		sum += row[i];
	for (size_t j = 0; j < LANES; j++)
		sum += lanes[j];
	return sum;
}

static double loss_score_row(float *row, size_t classes, size_t label, float scale)
{
	const float maximum = loss_row_maximum(row, classes);
	const float score = row[label] - maximum;
	loss_exponentials(row, classes, maximum);
	const float sum = loss_row_sum(row, classes);
	const float factor = scale / sum;
	for (size_t i = 0; i < classes; i++)
		row[i] *= factor;
	row[label] -= scale;
	return log((double)sum) - (double)score;
}

double loss_softmax_cross_entropy(float *logits, size_t samples, size_t rows, size_t classes,
	const uint32_t *labels, float scale, int threads)
{
	double loss = 0;
	const size_t count = samples * rows;
#pragma omp parallel for reduction(+ : loss) num_threads(threads) if (count * classes >= PARALLEL_MIN)
	for (size_t r = 0; r < count; r++)
		loss += loss_score_row(
			logits + r * classes, classes, labels[r / rows] % classes, scale);
	return loss;
}

/* --- the update ---------------------------------------------------------------------------------- */

#define MOMENTUM 0.9f
#define ADAM_BETA1 0.9f
#define ADAM_BETA2 0.999f
#define ADAM_EPSILON 1e-8f

enum { SGD_ARRAYS = 2, ADAM_ARRAYS = 4 };

float optimizer_carry(const struct optimizer *optimizer)
{
	return optimizer->rule == STEP_OPTIMIZER_ADAM ? 0.0f : MOMENTUM;
}

void optimizer_begin(struct optimizer *optimizer)
{
	optimizer->steps++;
	const double steps = (double)optimizer->steps;
	optimizer->first_correction = (float)(1 / (1 - pow((double)ADAM_BETA1, steps)));
	optimizer->second_correction = (float)(1 / (1 - pow((double)ADAM_BETA2, steps)));
}

static void optimizer_update_sgd(
	const struct optimizer *optimizer, const struct parameters *parameters)
{
	float *restrict values = parameters->values;
	const float *restrict velocity = parameters->gradient;
	const size_t count = parameters->count;
	const float rate = optimizer->learning_rate;
#pragma omp parallel for simd num_threads(optimizer->threads) if (count >= PARALLEL_MIN)
	for (size_t i = 0; i < count; i++)
		values[i] -= rate * velocity[i];
}

static void optimizer_update_adam(
	const struct optimizer *optimizer, const struct parameters *parameters)
{
	float *restrict values = parameters->values;
	const float *restrict gradient = parameters->gradient;
	float *restrict first = parameters->first;
	float *restrict second = parameters->second;
	const size_t count = parameters->count;
	const float rate = optimizer->learning_rate * optimizer->first_correction;
	const float correction = optimizer->second_correction;
#pragma omp parallel for simd num_threads(optimizer->threads) if (count >= PARALLEL_MIN)
	for (size_t i = 0; i < count; i++) {
		const float g = gradient[i];
		first[i] = ADAM_BETA1 * first[i] + (1 - ADAM_BETA1) * g;
		second[i] = ADAM_BETA2 * second[i] + (1 - ADAM_BETA2) * g * g;
		values[i] -= rate * first[i] / (sqrtf(correction * second[i]) + ADAM_EPSILON);
	}
}

void optimizer_update(const struct optimizer *optimizer, const struct parameters *parameters)
{
	if (optimizer->rule == STEP_OPTIMIZER_ADAM)
		optimizer_update_adam(optimizer, parameters);
	else
		optimizer_update_sgd(optimizer, parameters);
}
