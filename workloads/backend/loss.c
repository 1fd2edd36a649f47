/* Softmax and cross-entropy.  A vocabulary of 50257 makes the exponentials a visible share of a
 * step, so they are a polynomial that vectorises, and sums are kept in lanes. */
#include "workloads/backend/loss.h"

#include <math.h>

enum { LANES = 16, PARALLEL_MIN = 1 << 15, FLOAT_EXPONENT_SHIFT = 23 };

#define EXP_LEAST_BITS 0xc2ae0000u /* -87: e^-87 is still a normal float */
#define LOG2_E 1.44269504f
#define LN2_HIGH 0.693359375f /* ln 2 in two parts: n times the first is exact */
#define LN2_LOW (-2.12194440e-4f)
#define ROUNDER 12582912.0f /* 1.5 * 2^23: adding it rounds to an integer, in the low bits */

union float_bits {
	float number;
	uint32_t bits;
};

static inline float exp_vectorised(float x)
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
	return exp_vectorised(x);
}

static float row_maximum(const float *row, size_t count)
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
static void exponentials(float *row, size_t count, float maximum)
{
	for (size_t i = 0; i < count; i++)
		row[i] = exp_vectorised(row[i] - maximum);
}

static float row_sum(const float *row, size_t count)
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

static double score_row(float *row, size_t classes, size_t label, float scale)
{
	const float maximum = row_maximum(row, classes);
	const float score = row[label] - maximum;
	exponentials(row, classes, maximum);
	const float sum = row_sum(row, classes);
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
		loss += score_row(logits + r * classes, classes, labels[r / rows] % classes, scale);
	return loss;
}
