/* The computed step's parts against plain references: the perceptron in float64 with finite
 * differences, the chain's links and attention by directional derivatives, the update rules, the
 * loss. */
#include "harness/base/rng.h"
#include "workloads/backend/network.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEED = 7 };

#define LOSS_CHANGE 5e-4 /* each way, when a slope is measured */
#define SLOPE_TOLERANCE 0.005

static const struct model *mlp(void)
{
	return model_find("mlp");
}

/* A batch of normal numbers with labels below classes; release with free_batch. */
struct sample_batch {
	struct batch_view view;
	float *data;
	uint32_t *labels;
};

static struct sample_batch random_batch(
	uint32_t size, uint32_t elements, uint32_t classes, uint64_t seed)
{
	struct sample_batch batch = {
		.data = malloc((size_t)size * elements * sizeof(float)),
		.labels = malloc(size * sizeof(uint32_t)),
	};
	assert_non_null(batch.data);
	assert_non_null(batch.labels);
	struct rng rng;
	rng_init(&rng, seed, 0);
	for (size_t i = 0; i < (size_t)size * elements; i++)
		batch.data[i] = (float)rng_normal(&rng);
	for (uint32_t i = 0; i < size; i++)
		batch.labels[i] = (uint32_t)rng_below(&rng, classes);
	batch.view = (struct batch_view){
		.data = batch.data,
		.labels = batch.labels,
		.size = size,
		.sample_bytes = elements * sizeof(float),
		.type = BATCH_FLOAT32,
	};
	return batch;
}

static void free_batch(struct sample_batch *batch)
{
	free(batch->data);
	free(batch->labels);
}

static struct network_options options_of(
	const struct model *model, uint32_t elements, uint32_t classes, uint32_t batch_size)
{
	return (struct network_options){
		.model = model,
		.shape = {elements, classes, 0},
		.batch_size = batch_size,
		.type = BATCH_FLOAT32,
		.rule = STEP_OPTIMIZER_SGD,
		.learning_rate = 0.01f,
		.threads = 1,
		.seed = SEED,
	};
}

static struct network open_network(const struct network_options *options)
{
	struct network network;
	struct error err = {""};
	if (network_open(&network, options, &err) < 0)
		fail_msg("%s", err.text);
	return network;
}

static double gradients(struct network *network, const struct batch_view *batch, float carry)
{
	double loss = NAN;
	struct error err = {""};
	if (network_gradients(network, batch, carry, &loss, &err) < 0)
		fail_msg("%s", err.text);
	return loss;
}

/* --- the perceptron in float64, written down a second time ------------------------------------ */

enum { REF_LAYERS = 3, REF_WIDTH_MAX = 512 };

struct reference {
	const struct network *network;
	double *values[REF_LAYERS]; /* weights (k, n), then biases (n) */
};

static struct reference reference_of(const struct network *network)
{
	struct reference reference = {.network = network};
	assert_int_equal(network->layer_count, REF_LAYERS);
	for (size_t l = 0; l < REF_LAYERS; l++) {
		const struct parameters *parameters = &network->layers[l].parameters;
		reference.values[l] = malloc(parameters->count * sizeof(double));
		assert_non_null(reference.values[l]);
		for (size_t i = 0; i < parameters->count; i++)
			reference.values[l][i] = (double)parameters->values[i];
	}
	return reference;
}

static void free_reference(struct reference *reference)
{
	for (size_t l = 0; l < REF_LAYERS; l++)
		free(reference->values[l]);
}

static double reference_score(
	const struct reference *reference, const float *sample, uint32_t label)
{
	static double in[REF_WIDTH_MAX], out[REF_WIDTH_MAX];
	for (size_t i = 0; i < reference->network->layers[0].k; i++)
		in[i] = (double)sample[i];
	for (size_t l = 0; l < REF_LAYERS; l++) {
		const struct layer *layer = &reference->network->layers[l];
		const double *w = reference->values[l], *b = w + (size_t)layer->k * layer->n;
		for (size_t j = 0; j < layer->n; j++) {
			double sum = b[j];
			for (size_t i = 0; i < layer->k; i++)
				sum += in[i] * w[i * layer->n + j];
			out[j] = l + 1 < REF_LAYERS && sum < 0 ? 0 : sum;
		}
		memcpy(in, out, layer->n * sizeof(double));
	}
	double total = 0;
	const size_t classes = reference->network->layers[REF_LAYERS - 1].n;
	for (size_t j = 0; j < classes; j++)
		total += exp(out[j]);
	return log(total) - out[label % classes];
}

static double reference_loss(const struct reference *reference, const struct sample_batch *batch)
{
	double sum = 0;
	const size_t elements = reference->network->layers[0].k;
	for (uint32_t s = 0; s < batch->view.size; s++)
		sum += reference_score(reference, batch->data + s * elements, batch->labels[s]);
	return sum / batch->view.size;
}

/* d loss / d values[layer][at], from both sides; the step is far above float64's rounding and too
 * small to cross a ReLU's corner but rarely. */
static double reference_slope(const struct reference *reference, const struct sample_batch *batch,
	size_t layer, size_t at)
{
	const double step = 1e-6, value = reference->values[layer][at];
	reference->values[layer][at] = value + step;
	const double above = reference_loss(reference, batch);
	reference->values[layer][at] = value - step;
	const double below = reference_loss(reference, batch);
	reference->values[layer][at] = value;
	return (above - below) / (2 * step);
}

static void mlp_gradient_is_the_slope_of_the_reference(void **state)
{
	(void)state;
	enum { BATCH = 5, ELEMENTS = 12, CLASSES = 4, PROBES = 24 };
	const struct network_options options = options_of(mlp(), ELEMENTS, CLASSES, BATCH);
	struct network network = open_network(&options);
	struct sample_batch batch = random_batch(BATCH, ELEMENTS, CLASSES, 1);
	struct rng rng;
	rng_init(&rng, 2, 0);
	/* Biases start at zero: move them, so that their place in the sum matters. */
	for (size_t l = 0; l < REF_LAYERS; l++) {
		struct parameters *parameters = &network.layers[l].parameters;
		for (size_t i = (size_t)network.layers[l].k * network.layers[l].n;
			i < parameters->count; i++)
			parameters->values[i] = 0.1f * (float)rng_normal(&rng);
	}
	struct reference reference = reference_of(&network);
	const double loss = gradients(&network, &batch.view, 0);
	assert_true(fabs(loss - reference_loss(&reference, &batch)) < 1e-5);
	for (size_t l = 0; l < REF_LAYERS; l++) {
		const struct parameters *parameters = &network.layers[l].parameters;
		double largest = 0, error = 0;
		for (size_t probe = 0; probe < PROBES; probe++) {
			/* The last probes hit biases. */
			const size_t at = probe < PROBES - 4 ? rng_below(&rng, parameters->count)
							     : parameters->count - 1 - probe % 4;
			const double slope = reference_slope(&reference, &batch, l, at);
			largest = fmax(largest, fabs(slope));
			error = fmax(error, fabs(slope - (double)parameters->gradient[at]));
		}
		assert_true(largest > 0);
		assert_true(error < 1e-4 * largest + 1e-7);
	}
	free_reference(&reference);
	free_batch(&batch);
	network_close(&network);
}

/* --- chains: each kind of link, and attention --------------------------------------------------
 */

static const struct model_gemm attention_gemms[] = {
	{"patch", 6, 8, 5, 1, 1, true}, /* 6 rows of 8 into 7 of 8: an extra row */
	{"qkv", 7, 24, 8, 2, 1, true}, {"scores", 7, 7, 4, 2, 2, false},
	{"context", 7, 4, 7, 2, 2, false}, {"proj", 7, 8, 8, 2, 1, true},
	{"head", 1, 5, 8, 1, 1, true}, /* the mean of 7 rows */
};

static const struct model attention_model = {
	.name = "attention", .gemms = attention_gemms, .gemm_count = 6, .input_elements = 30};

static const struct model_gemm convolution_gemms[] = {
	{"conv1", 36, 4, 12, 1, 1, true}, /* 144 outputs, of which the next reads 9 rows */
	{"conv2", 9, 6, 4, 1, 1, true},
	{"conv3", 9, 5, 54, 1, 1, true},   /* windows of 9 x 6 */
	{"narrow", 9, 8, 3, 1, 1, true},   /* 3 of 5 channels */
	{"stride", 3, 10, 60, 1, 1, true}, /* 9 rows of 8 into 3 rows of 60 */
	{"fc", 1, 7, 10, 1, 1, true},
};

static const struct model convolution_model = {
	.name = "convolution", .gemms = convolution_gemms, .gemm_count = 6, .input_elements = 100};

/* Moves a layer's values by `distance` along its gradient's chosen entries (every second one, or
 * all). */
static void move(const struct parameters *parameters, const float *direction, double norm,
	double distance, size_t stride)
{
	for (size_t i = 0; i < parameters->count; i += stride)
		parameters->values[i] += (float)(distance * (double)direction[i] / norm);
}

static void check_slope(
	struct network *network, const struct batch_view *batch, size_t layer, size_t stride)
{
	const struct parameters *parameters = &network->layers[layer].parameters;
	(void)gradients(network, batch, 0);
	float *direction = malloc(parameters->count * sizeof(float));
	float *values = malloc(parameters->count * sizeof(float));
	assert_non_null(direction);
	assert_non_null(values);
	memcpy(direction, parameters->gradient, parameters->count * sizeof(float));
	memcpy(values, parameters->values, parameters->count * sizeof(float));
	double norm = 0;
	for (size_t i = 0; i < parameters->count; i += stride)
		norm += (double)direction[i] * (double)direction[i];
	norm = sqrt(norm);
	assert_true(norm > 1e-6);
	/* Above float32's noise, below where the curvature shows. */
	const double distance = LOSS_CHANGE / norm;
	move(parameters, direction, norm, distance, stride);
	const double above = gradients(network, batch, 0);
	memcpy(parameters->values, values, parameters->count * sizeof(float));
	move(parameters, direction, norm, -distance, stride);
	const double below = gradients(network, batch, 0);
	memcpy(parameters->values, values, parameters->count * sizeof(float));
	const double slope = (above - below) / (2 * distance);
	if (fabs(slope / norm - 1) > SLOPE_TOLERANCE)
		fail_msg("layer %zu, every %zu: slope %g, gradient %g", layer, stride, slope, norm);
	free(direction);
	free(values);
}

static void check_chain(const struct model *model, uint32_t classes)
{
	enum { BATCH = 3 };
	const struct network_options options =
		options_of(model, model->input_elements, classes, BATCH);
	struct network network = open_network(&options);
	struct sample_batch batch = random_batch(BATCH, model->input_elements, classes, 3);
	assert_int_equal(network.group, 1);
	for (size_t l = 0; l < network.layer_count; l++) {
		if (network.layers[l].kind != LAYER_DENSE)
			continue;
		check_slope(&network, &batch.view, l, 1);
		check_slope(&network, &batch.view, l, 2);
		check_slope(&network, &batch.view, l, 3);
	}
	free_batch(&batch);
	network_close(&network);
}

static void attention_gradient_is_the_slope(void **state)
{
	(void)state;
	check_chain(&attention_model, 5);
}

static void convolution_gradient_is_the_slope(void **state)
{
	(void)state;
	check_chain(&convolution_model, 7);
}

/* ---- tokens: embedded by the columns of the head, a label for each row -------------------------- */

enum { SEQUENCE = 6, VOCABULARY = 11, SEQUENCES = 3 };

static const struct model_gemm token_gemms[] = {
	{"qkv", 5, 24, 8, 2, 1, true},
	{"scores", 5, 5, 4, 2, 2, false},
	{"context", 5, 4, 5, 2, 2, false},
	{"proj", 5, 8, 8, 2, 1, true},
	{"head", 5, VOCABULARY, 8, 1, 1, true},
};

/* The table is for 5 tokens; it is run with 6. */
static const struct model token_model = {.name = "tokens",
	.gemms = token_gemms,
	.gemm_count = 5,
	.input_elements = 5 * 8,
	.tokens = 5};

struct token_batch {
	int32_t ids[SEQUENCES * SEQUENCE];
	uint32_t labels[SEQUENCES * SEQUENCE];
	struct batch_view view;
};

static void fill_tokens(struct token_batch *batch)
{
	struct rng rng;
	rng_init(&rng, 9, 0);
	for (size_t i = 0; i < SEQUENCES * SEQUENCE; i++) {
		batch->ids[i] = (int32_t)rng_below(&rng, VOCABULARY);
		batch->labels[i] = (uint32_t)rng_below(&rng, VOCABULARY);
	}
	batch->view = (struct batch_view){
		.data = batch->ids,
		.labels = batch->labels,
		.size = SEQUENCES,
		.sample_bytes = SEQUENCE * sizeof(int32_t),
		.label_bytes = SEQUENCE * sizeof(uint32_t),
		.type = BATCH_INT32,
	};
}

static struct network_options token_options(const struct model *model)
{
	struct network_options options = options_of(model, SEQUENCE, VOCABULARY, SEQUENCES);
	options.shape.tokens = SEQUENCE;
	options.type = BATCH_INT32;
	return options;
}

/* A chain of tokens computes what one of the same numbers does, and all gradients but the head's, which is
 * the table of embeddings too, are the slope. */
static void tokens_are_embedded_by_the_head(void **state)
{
	(void)state;
	struct token_batch batch;
	fill_tokens(&batch);
	const struct network_options options = token_options(&token_model);
	struct network network = open_network(&options);
	const struct layer *const head = &network.layers[network.layer_count - 1];
	assert_int_equal(head->m, SEQUENCE);
	batch.labels[4] = BATCH_LABEL_MASKED;
	for (size_t l = 0; l + 1 < network.layer_count; l++) {
		if (network.layers[l].kind != LAYER_DENSE)
			continue;
		check_slope(&network, &batch.view, l, 1);
		check_slope(&network, &batch.view, l, 3);
	}
	/* The last sequence of the batch is still in the input. */
	for (size_t t = 0; t < SEQUENCE; t++)
		for (size_t j = 0; j < head->k; j++) {
			const int32_t id = batch.ids[(SEQUENCES - 1) * SEQUENCE + t];
			const double wanted =
				sqrt((double)head->k) *
				(double)head->parameters.values[j * VOCABULARY + (size_t)id];
			assert_true(fabs((double)network.input[t * head->k + j] - wanted) < 1e-5);
		}
	network_close(&network);
}

/* The loss is the mean of the labels that are not masked. */
static void masked_labels_have_no_loss(void **state)
{
	(void)state;
	struct token_batch batch;
	const struct network_options options = token_options(&token_model);
	struct network network = open_network(&options);
	double sum = 0;
	fill_tokens(&batch);
	uint32_t labels[SEQUENCES * SEQUENCE];
	memcpy(labels, batch.labels, sizeof labels);
	static const size_t kept[] = {0, 7, 17};
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
		memset(batch.labels, 0xff, sizeof batch.labels);
		batch.labels[kept[i]] = labels[kept[i]];
		sum += gradients(&network, &batch.view, 0);
	}
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
		batch.labels[kept[i]] = labels[kept[i]];
	assert_true(fabs(gradients(&network, &batch.view, 0) - sum / 3) < 1e-5);
	memset(batch.labels, 0xff, sizeof batch.labels);
	assert_true(gradients(&network, &batch.view, 0) == 0);
	const struct parameters *const first = &network.layers[0].parameters;
	for (size_t i = 0; i < first->count; i++)
		assert_true(first->gradient[i] == 0);
	/* Ids are taken modulo the vocabulary, and labels as well. */
	fill_tokens(&batch);
	const double loss = gradients(&network, &batch.view, 0);
	batch.ids[3] += VOCABULARY;
	batch.labels[3] += VOCABULARY;
	assert_true(gradients(&network, &batch.view, 0) == loss);
	network_close(&network);
}

static void tokens_that_do_not_fit_are_refused(void **state)
{
	(void)state;
	static const struct model pictures = {.name = "pictures",
		.gemms = attention_gemms,
		.gemm_count = 6,
		.input_elements = 30};
	const struct network_options options = token_options(&pictures);
	const struct network_options good = token_options(&token_model);
	struct network network;
	struct token_batch batch;
	struct error err = {""};
	double loss;
	assert_int_equal(network_open(&network, &options, &err), -EINVAL);
	assert_non_null(strstr(err.text, "model 'pictures' has no embedding for tokens"));
	network = open_network(&good);
	fill_tokens(&batch);
	batch.view.label_bytes = 4; /* a class */
	assert_int_equal(network_gradients(&network, &batch.view, 0, &loss, &err), -EINVAL);
	network_close(&network);
}

static void layers_that_do_not_fit_are_refused(void **state)
{
	(void)state;
	static const struct model_gemm bad_gemms[] = {
		{"a", 7, 5, 3, 1, 1, true}, {"b", 4, 2, 9, 1, 1, true}};
	static const struct model bad = {.name = "bad", .gemms = bad_gemms, .gemm_count = 2};
	static const struct model_gemm lone_gemms[] = {
		{"a", 7, 5, 3, 1, 1, true}, {"scores", 7, 7, 4, 1, 2, false}};
	static const struct model lone = {.name = "lone", .gemms = lone_gemms, .gemm_count = 2};
	struct network network;
	struct error err = {""};
	const struct network_options options = options_of(&bad, 21, 2, 1);
	assert_int_equal(network_open(&network, &options, &err), -EINVAL);
	assert_non_null(strstr(err.text, "do not match"));
	assert_int_equal(network_bytes(&options), 0);
	const struct network_options alone = options_of(&lone, 21, 2, 1);
	assert_int_equal(network_open(&network, &alone, &err), -EINVAL);
	assert_non_null(strstr(err.text, "scores"));
}

/* --- updates, loss ------------------------------------------------------------------------------
 */

/* Three steps of a rule in float64 beside the network, from the gradients of an untouched twin. */
static void check_update(enum step_optimizer rule)
{
	enum { BATCH = 4, ELEMENTS = 9, CLASSES = 3, STEPS = 3, LAYER = 1 };
	struct network_options options = options_of(mlp(), ELEMENTS, CLASSES, BATCH);
	options.rule = rule;
	struct network network = open_network(&options);
	struct network twin = open_network(&options);
	struct sample_batch batch = random_batch(BATCH, ELEMENTS, CLASSES, 4);
	const struct parameters *ours = &network.layers[LAYER].parameters;
	const size_t count = ours->count;
	double *w = malloc(count * sizeof *w), *m = calloc(count, sizeof *m),
	       *v = calloc(count, sizeof *v);
	assert_true(w && m && v);
	for (size_t i = 0; i < count; i++)
		w[i] = (double)ours->values[i];
	const double rate = (double)options.learning_rate;
	double moved = 0;
	for (int t = 1; t <= STEPS; t++) {
		for (size_t l = 0; l < network.layer_count; l++)
			memcpy(twin.layers[l].parameters.values,
				network.layers[l].parameters.values,
				network.layers[l].parameters.count * sizeof(float));
		(void)gradients(&twin, &batch.view, 0);
		double loss;
		assert_int_equal(network_step(&network, &batch.view, &loss, NULL), 0);
		for (size_t i = 0; i < count; i++) {
			const double g = (double)twin.layers[LAYER].parameters.gradient[i],
				     before = w[i];
			if (rule == STEP_OPTIMIZER_SGD) {
				m[i] = 0.9 * m[i] + g;
				w[i] -= rate * m[i];
			} else {
				m[i] = 0.9 * m[i] + 0.1 * g;
				v[i] = 0.999 * v[i] + 0.001 * g * g;
				w[i] -= rate * (m[i] / (1 - pow(0.9, t))) /
					(sqrt(v[i] / (1 - pow(0.999, t))) + 1e-8);
			}
			moved = fmax(moved, fabs(w[i] - before));
			/* Adam divides by |g|: where that is near the epsilon, rounding shows. */
			const double tolerance = rule == STEP_OPTIMIZER_ADAM ? 2e-3 * rate : 1e-7;
			assert_true(fabs(w[i] - (double)ours->values[i]) <= tolerance);
			w[i] = (double)ours->values[i];
		}
	}
	assert_true(moved > 1e-6);
	free(w);
	free(m);
	free(v);
	free_batch(&batch);
	network_close(&network);
	network_close(&twin);
}

static void sgd_with_momentum_is_the_reference(void **state)
{
	(void)state;
	check_update(STEP_OPTIMIZER_SGD);
}

static void adam_is_the_reference(void **state)
{
	(void)state;
	check_update(STEP_OPTIMIZER_ADAM);
}

/* The loss that a step begins with, of any number of samples, and nothing is learned. */
static void evaluating_leaves_everything(void **state)
{
	(void)state;
	enum { BATCH = 5, ROOM = 2, ELEMENTS = 9, CLASSES = 3 };
	const struct network_options options = options_of(mlp(), ELEMENTS, CLASSES, BATCH);
	const struct network_options small = options_of(mlp(), ELEMENTS, CLASSES, ROOM);
	struct network network = open_network(&small);
	struct network twin = open_network(&options);
	struct sample_batch batch = random_batch(BATCH, ELEMENTS, CLASSES, 6);
	double evaluated = 0;
	double again = 0;
	double stepped = 0;
	assert_int_equal(network_evaluate(&network, &batch.view, &evaluated, NULL), 0);
	assert_int_equal(network_evaluate(&network, &batch.view, &again, NULL), 0);
	assert_true(evaluated == again);
	for (size_t l = 0; l < network.layer_count; l++) {
		const struct parameters *const own = &network.layers[l].parameters;
		const struct parameters *const fresh = &twin.layers[l].parameters;
		if (own->count == 0)
			continue;
		assert_memory_equal(own->values, fresh->values, own->count * sizeof(float));
		assert_memory_equal(own->gradient, fresh->gradient, own->count * sizeof(float));
	}
	assert_int_equal(network_step(&twin, &batch.view, &stepped, NULL), 0);
	assert_true(fabs(evaluated - stepped) < 1e-5);
	free_batch(&batch);
	network_close(&network);
	network_close(&twin);
}

/* A chain takes samples one by one: their gradients must add up to the batch's. */
static void groups_add_up(void **state)
{
	(void)state;
	enum { BATCH = 3, CLASSES = 7 };
	const struct model *model = &convolution_model;
	const struct network_options options =
		options_of(model, model->input_elements, CLASSES, BATCH);
	struct network network = open_network(&options);
	struct sample_batch batch = random_batch(BATCH, model->input_elements, CLASSES, 5);
	const struct parameters *parameters = &network.layers[2].parameters;
	double *sum = calloc(parameters->count, sizeof *sum), losses = 0;
	assert_non_null(sum);
	for (uint32_t s = 0; s < BATCH; s++) {
		struct batch_view one = batch.view;
		one.data = batch.data + s * model->input_elements;
		one.labels = batch.labels + s;
		one.size = 1;
		losses += gradients(&network, &one, 0) / BATCH;
		for (size_t i = 0; i < parameters->count; i++)
			sum[i] += (double)parameters->gradient[i] / BATCH;
	}
	assert_true(fabs(gradients(&network, &batch.view, 0) - losses) < 1e-6);
	for (size_t i = 0; i < parameters->count; i++)
		assert_true(fabs((double)parameters->gradient[i] - sum[i]) < 1e-6);
	free(sum);
	free_batch(&batch);
	network_close(&network);
}

static void exponential_is_libm_s(void **state)
{
	(void)state;
	double worst = 0;
	for (int i = 0; i <= 87 * 512; i++) {
		const float x = (float)-i / 512;
		worst = fmax(worst, fabs((double)loss_exp(x) / exp((double)x) - 1));
	}
	print_message("largest relative error of the exponential: %.3g\n", worst);
	assert_true(worst < 2e-7);
	assert_true(loss_exp(0.0f) == 1.0f);
	assert_true(loss_exp(-1000.0f) == loss_exp(-87.0f));
}

static void loss_and_its_gradient_are_the_reference(void **state)
{
	(void)state;
	enum { SAMPLES = 3, ROWS = 2, CLASSES = 37 };
	const uint32_t labels[SAMPLES] = {0, 36, 40}; /* 40 counts as 3 */
	const double scale = 0.25;
	float logits[SAMPLES * ROWS * CLASSES];
	double expected[SAMPLES * ROWS * CLASSES], loss = 0;
	struct rng rng;
	rng_init(&rng, 6, 0);
	for (size_t i = 0; i < SAMPLES * ROWS * CLASSES; i++)
		logits[i] = 20 * (float)rng_normal(&rng);
	for (size_t r = 0; r < SAMPLES * ROWS; r++) {
		const float *row = logits + r * CLASSES;
		const size_t label = labels[r / ROWS] % CLASSES;
		double sum = 0;
		for (size_t j = 0; j < CLASSES; j++)
			sum += exp((double)row[j]);
		loss += log(sum) - (double)row[label];
		for (size_t j = 0; j < CLASSES; j++)
			expected[r * CLASSES + j] =
				scale * (exp((double)row[j]) / sum - (j == label ? 1 : 0));
	}
	const double ours =
		loss_softmax_cross_entropy(logits, SAMPLES, ROWS, CLASSES, labels, (float)scale, 1);
	assert_true(fabs(ours - loss) < 1e-5 * fabs(loss));
	for (size_t i = 0; i < SAMPLES * ROWS * CLASSES; i++)
		assert_true(fabs((double)logits[i] - expected[i]) < 1e-6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mlp_gradient_is_the_slope_of_the_reference),
		cmocka_unit_test(attention_gradient_is_the_slope),
		cmocka_unit_test(convolution_gradient_is_the_slope),
		cmocka_unit_test(tokens_are_embedded_by_the_head),
		cmocka_unit_test(masked_labels_have_no_loss),
		cmocka_unit_test(tokens_that_do_not_fit_are_refused),
		cmocka_unit_test(layers_that_do_not_fit_are_refused),
		cmocka_unit_test(sgd_with_momentum_is_the_reference),
		cmocka_unit_test(adam_is_the_reference),
		cmocka_unit_test(evaluating_leaves_everything),
		cmocka_unit_test(groups_add_up),
		cmocka_unit_test(exponential_is_libm_s),
		cmocka_unit_test(loss_and_its_gradient_are_the_reference),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
