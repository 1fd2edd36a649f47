/* A step as launches: forward, loss, backward.  The gradients of weights may run on streams of their own: events alone
 * order them, so that a step can be recorded as a graph. */
#include "workloads/backend/cuda/train_private.h"

#include <errno.h>

enum { QKV = 3 };

struct device_rows train_stand_in(const struct train *train, const struct device_layer *layer)
{
	return (struct device_rows){.data = train_at(train, layer->stand_in),
		.type = train->plan.type,
		.samples = train->plan.options.batch,
		.rows = layer->m,
		.columns = layer->n,
		.ld = layer->ld_products,
		.sample_stride = layer->m * layer->ld_products};
}

static cuda_stream main_stream(const struct train *train)
{
	return train->streams[0];
}

static int quantise(struct train *train, const struct device_rows *from, enum element type,
	size_t out, size_t transposed, const struct device_scale *scale, struct error *err)
{
	const struct quantise_task task = {
		.from = *from,
		.type = type,
		.out = train_at(train, out),
		.transposed = train_at(train, transposed),
		.amax = train_at(train, scale->amax),
		.scale_inverse = train_at(train, scale->inverse),
		.scratch = train_at(train, train->plan.quantise_scratch),
	};
	return CUDA_TRY(err, kernel_quantise(main_stream(train), &task));
}

static struct device_rows input_rows(const struct train *train, size_t i)
{
	struct device_rows rows = train_rows(train, &train->plan.layers[i].input);
	if (i == 0)
		rows.data =
			(void *)train->input; /* read alone: the first layer is not normalised */
	return rows;
}

static int quantise_forward(struct train *train, size_t i, bool with_weights, struct error *err)
{
	const struct device_layer *layer = &train->plan.layers[i];
	const struct device_rows x = input_rows(train, i);
	const struct device_rows weights = {
		.data = (float *)train_at(train, train->plan.weights) + layer->weights,
		.type = ELEMENT_F32,
		.samples = 1,
		.rows = layer->k,
		.columns = layer->n,
		.ld = layer->ld_weights,
		.sample_stride = layer->k * layer->ld_weights};
	int result = 0;
	if (with_weights)
		result = quantise(train, &weights, ELEMENT_E4M3, layer->weights_quantised,
			layer->weights_transposed, &layer->weights_scale, err);
	return result < 0 ? result
			  : quantise(train, &x, ELEMENT_E4M3, train->plan.quantised,
				    layer->input_transposed, &layer->input_scale, err);
}

/* What the forward product leaves to kernels. */
static int finish_output(struct train *train, size_t i, struct error *err)
{
	const struct device_layer *layer = &train->plan.layers[i];
	const struct device_rows output = train_rows(train, &layer->output);
	const struct device_rows stand_in = train_stand_in(train, layer);
	const bool fused = train->layers[i].products[DEVICE_FORWARD].epilogue != GEMM_PLAIN;
	const float *bias = (float *)train_at(train, train->plan.weights) + layer->biases;
	int result = 0;
	if (layer->bias && !fused)
		result = CUDA_TRY(
			err, kernel_bias_relu(main_stream(train),
				     layer->packed ? &stand_in : &output, bias, layer->relu));
	if (result == 0 && layer->packed)
		result = CUDA_TRY(err, kernel_copy_rows(main_stream(train), &stand_in, &output, 1));
	return result;
}

static int dense_forward(struct train *train, size_t i, bool with_weights, struct error *err)
{
	const struct device_layer *layer = &train->plan.layers[i];
	const struct device_rows x = input_rows(train, i);
	int result = 0;
	if (layer->normalised)
		result = CUDA_TRY(err, kernel_norm_forward(main_stream(train), &x,
					       train_at(train, layer->norm_scales)));
	if (result == 0 && layer->fp8)
		result = quantise_forward(train, i, with_weights, err);
	if (result == 0)
		result = train_run(train, i, DEVICE_FORWARD, 0, 0, err);
	return result < 0 ? result : finish_output(train, i, err);
}

static struct heads_task heads_of(const struct train *train, const struct device_layer *layer,
	const struct device_view *packed)
{
	return (struct heads_task){.samples = train->plan.options.batch,
		.rows = layer->m,
		.heads = layer->heads,
		.width = layer->n / layer->heads,
		.type = train->plan.type,
		.ld = packed->ld,
		.sample_stride = packed->sample_stride};
}

static int attention_forward(struct train *train, size_t i, struct error *err)
{
	const struct device_layer *layer = &train->plan.layers[i];
	const struct heads_task in = heads_of(train, layer, &layer->input);
	const struct heads_task out = heads_of(train, layer, &layer->output);
	const struct device_rows x = input_rows(train, i);
	int result = CUDA_TRY(err, kernel_split_heads(main_stream(train), &in, x.data,
					   train_at(train, layer->heads_input), QKV));
	if (result == 0)
		result = train_run(train, i, DEVICE_SCORES, 0, 0, err);
	if (result == 0)
		result = train_run(train, i, DEVICE_CONTEXT, 1, 0, err);
	if (result == 0)
		result = CUDA_TRY(err, kernel_join_heads(main_stream(train), &out,
					       train_at(train, train->plan.heads_output),
					       train_at(train, layer->output.offset), 1));
	return result;
}

int train_forward(struct train *train, bool with_weights, struct error *err)
{
	int result = 0;
	for (size_t i = 0; result == 0 && i < train->plan.layer_count; i++) {
		const struct device_layer *layer = &train->plan.layers[i];
		const struct device_rows output = train_rows(train, &layer->output);
		result = layer->kind == LAYER_DENSE ? dense_forward(train, i, with_weights, err)
						    : attention_forward(train, i, err);
		if (result == 0 && layer->averaged.rows > 0)
			result = CUDA_TRY(err, kernel_average_rows(main_stream(train), &output,
						       train_at(train, layer->averaged.offset)));
	}
	return result;
}

/* --- backward ------------------------------------------------------------------------------------------ */

static unsigned side_stream(const struct train *train, size_t layer)
{
	return 1 + (unsigned)(layer % (train->stream_count - 1));
}

/* dW of layer i, on a side stream behind what the main stream has done so far. */
static int fork_weight_gradient(struct train *train, size_t i, float carry, struct error *err)
{
	if (train->stream_count < 2)
		return train_run(train, i, DEVICE_WEIGHT_GRADIENT, carry, 0, err);
	const unsigned side = side_stream(train, i);
	const struct train_layer *layer = &train->layers[i];
	int result = CUDA_TRY(err, cudaEventRecord(layer->ready, main_stream(train)));
	if (result == 0)
		result = CUDA_TRY(err, cudaStreamWaitEvent(train->streams[side], layer->ready, 0));
	if (result == 0)
		result = train_run(train, i, DEVICE_WEIGHT_GRADIENT, carry, side, err);
	if (result == 0)
		result = CUDA_TRY(err, cudaEventRecord(layer->done, train->streams[side]));
	return result;
}

static int join_weight_gradient(struct train *train, size_t i, struct error *err)
{
	if (train->stream_count < 2 || i >= train->plan.layer_count ||
		train->plan.layers[i].kind != LAYER_DENSE)
		return 0;
	return CUDA_TRY(err, cudaStreamWaitEvent(main_stream(train), train->layers[i].done, 0));
}

/* The gradient of the output, up to the products. */
static int finish_gradient(struct train *train, size_t i, float carry, struct error *err)
{
	const struct device_layer *layer = &train->plan.layers[i];
	const struct train_layer *own = &train->layers[i];
	const struct device_rows gradient = train_rows(train, &layer->output_gradient);
	const struct device_rows y = train_rows(train, &layer->output);
	const struct device_rows stand_in = train_stand_in(train, layer);
	const bool fused_relu = own->products[DEVICE_FORWARD].epilogue == GEMM_BIAS_RELU_MASK;
	const bool fused_bias =
		own->products[DEVICE_WEIGHT_GRADIENT].epilogue == GEMM_BIAS_BACKWARD;
	float *db = (float *)train_at(train, train->plan.gradients) + layer->biases;
	int result = 0;
	if (layer->relu && !fused_relu)
		result = CUDA_TRY(err, kernel_relu_backward(main_stream(train), &y, &gradient));
	if (result == 0 && layer->bias && !fused_bias)
		result = CUDA_TRY(err, kernel_bias_backward(main_stream(train), &gradient, carry,
					       db, train_at(train, train->plan.bias_scratch)));
	if (result == 0 && layer->fp8)
		result = quantise(train, &gradient, ELEMENT_E5M2, layer->gradient_quantised,
			layer->gradient_transposed, &layer->gradient_scale, err);
	else if (result == 0 && layer->packed)
		result = CUDA_TRY(
			err, kernel_copy_rows(main_stream(train), &gradient, &stand_in, 1));
	return result;
}

static int dense_backward(struct train *train, size_t i, float carry, struct error *err)
{
	const struct device_layer *layer = &train->plan.layers[i];
	const struct device_rows x = input_rows(train, i);
	const struct device_rows dx = train_rows(train, &layer->input_gradient);
	int result = finish_gradient(train, i, carry, err);
	if (result == 0)
		result = fork_weight_gradient(train, i, carry, err);
	if (result < 0 || i == 0)
		return result;
	/* The buffer that dX goes to was last read for the gradient of weights some layers behind. */
	result = join_weight_gradient(train, i - 1 + train->plan.slots, err);
	if (result == 0)
		result = train_run(train, i, DEVICE_INPUT_GRADIENT, 0, 0, err);
	if (result == 0 && layer->normalised)
		result = CUDA_TRY(err, kernel_norm_backward(main_stream(train), &x, &dx,
					       train_at(train, layer->norm_scales)));
	return result;
}

static int attention_backward(struct train *train, size_t i, struct error *err)
{
	const struct device_layer *layer = &train->plan.layers[i];
	const struct heads_task in = heads_of(train, layer, &layer->input_gradient);
	const struct heads_task out = heads_of(train, layer, &layer->output_gradient);
	int result = join_weight_gradient(train, i - 1 + train->plan.slots, err);
	if (result == 0)
		result = CUDA_TRY(err, kernel_split_heads(main_stream(train), &out,
					       train_at(train, layer->output_gradient.offset),
					       train_at(train, train->plan.heads_output), 1));
	if (result == 0)
		result = train_run(train, i, DEVICE_SCORES_GRADIENT, 0, 0, err);
	if (result == 0)
		result = train_run(train, i, DEVICE_VALUE_GRADIENT, 1, 0, err);
	if (result == 0)
		result = train_run(train, i, DEVICE_QUERY_GRADIENT, 0, 0, err);
	if (result == 0)
		result = train_run(train, i, DEVICE_KEY_GRADIENT, 0, 0, err);
	if (result == 0)
		result = CUDA_TRY(err, kernel_join_heads(main_stream(train), &in,
					       train_at(train, train->plan.heads_gradient),
					       train_at(train, layer->input_gradient.offset), QKV));
	return result;
}

/* The side streams end in the first one again. */
static int join_all(struct train *train, struct error *err)
{
	int result = 0;
	size_t joined = 0;
	for (size_t i = 0; result == 0 && i < train->plan.layer_count; i++) {
		if (train->stream_count < 2 || train->plan.layers[i].kind != LAYER_DENSE)
			continue;
		/* Layers go backward: the first one of a stream is its last product. */
		const unsigned side = side_stream(train, i);
		if (joined & (size_t)1 << side)
			continue;
		joined |= (size_t)1 << side;
		result = join_weight_gradient(train, i, err);
	}
	return result;
}

int train_backward(struct train *train, float carry, struct error *err)
{
	int result = 0;
	for (size_t i = train->plan.layer_count; result == 0 && i-- > 0;) {
		const struct device_layer *layer = &train->plan.layers[i];
		result = layer->kind == LAYER_DENSE ? dense_backward(train, i, carry, err)
						    : attention_backward(train, i, err);
		if (result < 0 || i == 0 || layer[-1].averaged.rows == 0)
			continue;
		const struct device_rows rows = train_rows(train, &layer[-1].output_gradient);
		result = CUDA_TRY(
			err, kernel_spread_rows(main_stream(train),
				     train_at(train, layer[-1].averaged_gradient.offset), &rows));
	}
	return result < 0 ? result : join_all(train, err);
}
