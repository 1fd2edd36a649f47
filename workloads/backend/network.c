/* A model's layers and its training step on cores: dense layers and attention, forward and backward, the loss and the update;
 * then groups of samples through the chain and back.  Nearly all the time is in cblas_sgemm; the rest is kept to one pass over
 * rows that are still in cache. */
#include "workloads/backend/network.h"

#include "workloads/backend/openblas.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
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

/* samples: of the group, rows = samples * m.  Attention takes one sample at a time. */
static void layer_forward(const struct layer *layer, size_t samples, int threads)
{
	if (layer->kind == LAYER_ATTENTION)
		layer_attention_forward(layer);
	else
		layer_dense_forward(layer, samples, threads);
}

static void layer_backward(
	const struct layer *layer, size_t samples, const struct layer_gradients *gradients)
{
	if (layer->kind == LAYER_ATTENTION)
		layer_attention_backward(layer, gradients);
	else
		layer_dense_backward(layer, samples, gradients);
}

/* --- the loss --------------------------------------------------------------------------------- */

enum { LOSS_LANES = 16, FLOAT_EXPONENT_SHIFT = 23 };

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
	float lanes[LOSS_LANES];
	for (size_t j = 0; j < LOSS_LANES; j++)
		lanes[j] = row[0];
	size_t i = 0;
	for (; i + LOSS_LANES <= count; i += LOSS_LANES)
		for (size_t j = 0; j < LOSS_LANES; j++)
			lanes[j] = row[i + j] > lanes[j] ? row[i + j] : lanes[j];
	float maximum = lanes[0];
	for (size_t j = 1; j < LOSS_LANES; j++)
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
	float lanes[LOSS_LANES] = {0};
	size_t i = 0;
	for (; i + LOSS_LANES <= count; i += LOSS_LANES)
		for (size_t j = 0; j < LOSS_LANES; j++)
			lanes[j] += row[i + j];
	float sum = 0;
	for (; i < count; i++)
		sum += row[i];
	for (size_t j = 0; j < LOSS_LANES; j++)
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
	for (size_t r = 0; r < count; r++) {
		float *const row = logits + r * classes;
		const uint32_t label = labels[r / rows];
		if (label == BATCH_LABEL_MASKED)
			memset(row, 0, classes * sizeof *row);
		else
			loss += loss_score_row(row, classes, label % classes, scale);
	}
	return loss;
}

/* --- the update ------------------------------------------------------------------------------- */

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

/* --- a step over a batch ---------------------------------------------------------------------- */

#define BYTE_MIDDLE 128.0f
#define BYTE_SCALE (1.0f / 64)

static void network_initialise(struct network *network)
{
	for (size_t i = 0; i < network->layer_count; i++) {
		struct layer *layer = &network->layers[i];
		network_initial_values(network, i, network->links[i].gaps ? layer->output : NULL,
			layer->parameters.values, layer->n);
	}
}

int network_open(struct network *network, const struct network_options *options, struct error *err)
{
	*network = (struct network){.options = *options};
	network->optimizer = (struct optimizer){
		.rule = options->rule,
		.learning_rate = options->learning_rate,
		.threads = options->threads,
	};
	char why[ERROR_TEXT_BYTES];
	int result = network_plan(network, err);
	/* What gradients multiply with, whoever calls for them. */
	if (result == 0 && !blas_find(why, sizeof why))
		result = error_set(err, -ENOTSUP, "%s", why);
	if (result == 0) {
		const size_t bytes = network_place(network, NULL);
		result = memory_map(&network->memory, bytes, true);
		if (result < 0)
			(void)error_set(err, result,
				"out of memory for model '%s': it needs %zu bytes",
				options->model->name, bytes);
	}
	if (result < 0) {
		network_close(network);
		return result;
	}
	(void)network_place(network, network->memory.data);
	network_initialise(network);
	return 0;
}

void network_close(struct network *network)
{
	memory_unmap(&network->memory);
	free(network->layers);
	free(network->links);
	*network = (struct network){0};
}

uint64_t network_bytes(const struct network_options *options)
{
	struct network network = {.options = *options};
	uint64_t bytes = 0;
	if (network_plan(&network, NULL) == 0)
		bytes = network_place(&network, NULL);
	network_close(&network);
	return bytes;
}

static void network_convert_bytes(const uint8_t *restrict bytes, float *restrict out, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out[i] = ((float)bytes[i] - BYTE_MIDDLE) * BYTE_SCALE;
}

/* One sample into `wanted` floats: cut, or repeated from the start. */
static void network_fill_sample(
	const struct batch_view *batch, size_t sample, size_t elements, float *out, size_t wanted)
{
	const char *data = (const char *)batch->data + sample * batch->sample_bytes;
	const size_t have = elements < wanted ? elements : wanted;
	if (batch->type == BATCH_UINT8)
		network_convert_bytes((const uint8_t *)data, out, have);
	else
		memcpy(out, data, have * sizeof *out);
	for (size_t at = have; at < wanted; at += have) {
		const size_t rest = wanted - at;
		memcpy(out + at, out, (rest < have ? rest : have) * sizeof *out);
	}
}

/* One sequence of tokens into its embeddings (tokens, width).  Row by row of the table, each of which is
 * contiguous over the vocabulary. */
static void network_embed_sample(
	const struct network *network, const struct batch_view *batch, size_t sample)
{
	const struct layer *const head = &network->layers[network->layer_count - 1];
	const size_t tokens = network->options.shape.tokens;
	const size_t width = head->k;
	const uint32_t *const ids = (const uint32_t *)batch->data + sample * tokens;
	const float scale = sqrtf((float)width);
	float *const out = network->input;
#pragma omp parallel for num_threads(network->options.threads)
	for (size_t j = 0; j < width; j++)
		for (size_t t = 0; t < tokens; t++)
			out[t * width + j] =
				scale * head->parameters.values[j * head->n + ids[t] % head->n];
}

static const float *network_group_input(
	struct network *network, const struct batch_view *batch, size_t first, size_t samples)
{
	const size_t elements = network->options.shape.sample_elements;
	if (!network->input)
		return (const float *)batch->data + first * elements;
	if (network->options.type == BATCH_INT32) { /* a group is one sample: it has many rows */
		network_embed_sample(network, batch, first);
		return network->input;
	}
	const size_t wanted = (size_t)network->layers[0].m * network->layers[0].k;
#pragma omp parallel for num_threads(network->options.threads) if (samples > 1)
	for (size_t i = 0; i < samples; i++)
		network_fill_sample(
			batch, first + i, elements, network->input + i * wanted, wanted);
	return network->input;
}

/* averaged <- mean of the rows. */
static void network_average_rows(const struct layer *layer, float *averaged)
{
	const float share = 1 / (float)layer->m;
	memset(averaged, 0, layer->n * sizeof *averaged);
	for (size_t r = 0; r < layer->m; r++)
		for (size_t j = 0; j < layer->n; j++)
			averaged[j] += share * layer->output[r * layer->ld_out + j];
}

/* Each row's share of the mean's gradient. */
static void network_spread_gradient(
	const struct layer *layer, const float *averaged, float *gradient)
{
	const float share = 1 / (float)layer->m;
	for (size_t r = 0; r < layer->m; r++)
		for (size_t j = 0; j < layer->n; j++)
			gradient[r * layer->ld_out + j] = share * averaged[j];
}

/* A step of a large model takes many seconds: ending a run must not wait for it. */
static bool network_stopped(const struct network *network)
{
	const atomic_bool *const stop = network->options.stop;
	return stop && atomic_load_explicit(stop, memory_order_relaxed);
}

static void network_forward(struct network *network, size_t samples)
{
	for (size_t i = 0; i < network->layer_count && !network_stopped(network); i++) {
		layer_forward(&network->layers[i], samples, network->options.threads);
		if (network->links[i].averaged)
			network_average_rows(&network->layers[i], network->links[i].averaged);
	}
}

/* The gradient of link i's activations. */
static float *network_gradient_of(struct network *network, size_t i)
{
	if (i + 1 == network->layer_count)
		return network->layers[i].output; /* the loss left it there */
	return network->gradients[i % 2];
}

static void network_backward_layer(struct network *network, size_t i, size_t samples, float carry)
{
	struct layer_gradients gradients = {
		.output = network_gradient_of(network, i),
		.carry = carry,
		.threads = network->options.threads,
	};
	const struct network_link *before = i > 0 ? &network->links[i - 1] : NULL;
	if (before && before->averaged)
		gradients.input = network->averaged_gradient;
	else if (before)
		gradients.input = network_gradient_of(network, i - 1);
	if (before && before->dead)
		memset(gradients.input, 0, samples * before->floats * sizeof(float));
	layer_backward(&network->layers[i], samples, &gradients);
	if (before && before->averaged)
		network_spread_gradient(&network->layers[i - 1], gradients.input,
			network_gradient_of(network, i - 1));
}

static int network_check_batch(
	const struct network *network, const struct batch_view *batch, struct error *err)
{
	const struct network_options *options = &network->options;
	const size_t size = batch_type_bytes(options->type);
	const bool labelled = options->type != BATCH_INT32 ||
			      batch->label_bytes == options->shape.tokens * sizeof *batch->labels;
	if (batch->type != options->type || !labelled ||
		batch->sample_bytes != size * options->shape.sample_elements)
		return error_set(err, -EINVAL,
			"batch with samples of %zu bytes: the step takes samples of %zu bytes",
			batch->sample_bytes, size * options->shape.sample_elements);
	return 0;
}

/* Rows that a loss is taken of, over the batch. */
static double network_scored_rows(
	const struct network *network, const struct batch_view *batch, size_t rows)
{
	size_t masked = 0;
	for (size_t i = 0; network->options.type == BATCH_INT32 && i < rows; i++)
		masked += batch->labels[i] == BATCH_LABEL_MASKED;
	return rows > masked ? (double)(rows - masked) : 1;
}

/* Forward, and back where carry is not NULL. */
static int network_pass(struct network *network, const struct batch_view *batch, const float *carry,
	double *loss, struct error *err)
{
	const int fits = network_check_batch(network, batch, err);
	if (fits < 0)
		return fits;
	const struct layer *last = &network->layers[network->layer_count - 1];
	const double rows = network_scored_rows(network, batch, (size_t)batch->size * last->m);
	/* A label for each row of the last layer, or for each sample. */
	const uint32_t labels = network->options.type == BATCH_INT32 ? last->m : 1;
	double sum = 0;
	for (size_t first = 0; first < batch->size && !network_stopped(network);
		first += network->group) {
		const size_t rest = batch->size - first;
		const size_t samples = rest < network->group ? rest : network->group;
		network->layers[0].input = network_group_input(network, batch, first, samples);
		network_forward(network, samples);
		sum += loss_softmax_cross_entropy(last->output, samples * labels, last->m / labels,
			last->n, batch->labels + first * labels, (float)(1 / rows),
			network->options.threads);
		for (size_t i = carry ? network->layer_count : 0;
			i-- > 0 && !network_stopped(network);)
			network_backward_layer(network, i, samples, first == 0 ? *carry : 1);
	}
	if (network_stopped(network))
		return error_set(err, -ECANCELED, "the step was stopped");
	*loss = sum / rows;
	return 0;
}

int network_gradients(struct network *network, const struct batch_view *batch, float carry,
	double *loss, struct error *err)
{
	return network_pass(network, batch, &carry, loss, err);
}

int network_evaluate(
	struct network *network, const struct batch_view *batch, double *loss, struct error *err)
{
	return network_pass(network, batch, NULL, loss, err);
}

static void network_update(struct network *network)
{
	optimizer_begin(&network->optimizer);
	for (size_t i = 0; i < network->layer_count; i++)
		if (network->layers[i].kind == LAYER_DENSE)
			optimizer_update(&network->optimizer, &network->layers[i].parameters);
}

int network_step(
	struct network *network, const struct batch_view *batch, double *loss, struct error *err)
{
	const float carry = optimizer_carry(&network->optimizer);
	const int result = network_gradients(network, batch, carry, loss, err);
	if (result == 0)
		network_update(network);
	return result;
}
