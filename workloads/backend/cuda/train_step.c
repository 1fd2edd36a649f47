/* A step as launches: forward, loss, backward, update, statistics.  The gradients of weights may run on streams of their
 * own: events alone order them, so that a step can be recorded as a graph. */
#include "workloads/backend/cuda/train.h"

#include <errno.h>

enum { QKV = 3, GRADIENT_STATISTICS = 2 };

/* --- products --------------------------------------------------------------------------------- */

int train_run(struct train *train, size_t layer, enum device_product product, float beta,
	unsigned stream, struct error *err)
{
	const struct train_product *at = &train->layers[layer].products[product];
	struct gemm_operands operands = at->operands;
	const bool takes_input = product == DEVICE_FORWARD || product == DEVICE_WEIGHT_GRADIENT;
	operands.beta = beta;
	if (layer == 0 && takes_input && !train->plan.layers[0].fp8)
		operands.a = train->input;
	if (stream > 0)
		operands.workspace = train->memory + train->plan.bytes +
				     (stream - 1) * (size_t)TRAIN_WORKSPACE_BYTES;
	return gemm_run(at->plan, &operands, train->streams[stream], err);
}

/* Forward in order, then backward from the last layer. */
int train_products(struct train *train, struct error *err)
{
	static const enum device_product forward[] = {
		DEVICE_FORWARD, DEVICE_SCORES, DEVICE_CONTEXT};
	static const enum device_product backward[] = {DEVICE_WEIGHT_GRADIENT,
		DEVICE_INPUT_GRADIENT, DEVICE_SCORES_GRADIENT, DEVICE_VALUE_GRADIENT,
		DEVICE_QUERY_GRADIENT, DEVICE_KEY_GRADIENT};
	const size_t count = train->plan.layer_count;
	for (size_t i = 0; i < 2 * count; i++) {
		const size_t layer = i < count ? i : 2 * count - 1 - i;
		const enum device_product *const products = i < count ? forward : backward;
		const size_t end = i < count ? sizeof forward / sizeof *forward
					     : sizeof backward / sizeof *backward;
		for (size_t j = 0; j < end; j++) {
			const struct train_product *at =
				&train->layers[layer].products[products[j]];
			if (at->plan)
				OR_RETURN(train_run(
					train, layer, products[j], at->operands.beta, 0, err));
		}
	}
	return 0;
}

/* --- forward ---------------------------------------------------------------------------------- */

/* The compact rows that products take in place of the layer's output. */
static struct device_rows train_stand_in(
	const struct train *train, const struct device_layer *layer)
{
	return (struct device_rows){.data = train_at(train, layer->stand_in),
		.type = train->plan.type,
		.samples = train->plan.options.batch,
		.rows = layer->m,
		.columns = layer->n,
		.ld = layer->ld_products,
		.sample_stride = layer->m * layer->ld_products};
}

static cuda_stream train_main_stream(const struct train *train)
{
	return train->streams[0];
}

static int train_quantise(struct train *train, const struct device_rows *from, enum element type,
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
	return CUDA_TRY(err, kernel_quantise(train_main_stream(train), &task));
}

static struct device_rows train_input_rows(const struct train *train, size_t i)
{
	struct device_rows rows = train_rows(train, &train->plan.layers[i].input);
	if (i == 0)
		rows.data =
			(void *)train->input; /* read alone: the first layer is not normalised */
	return rows;
}

static int train_quantise_forward(
	struct train *train, size_t i, bool with_weights, struct error *err)
{
	const struct device_layer *layer = &train->plan.layers[i];
	const struct device_rows x = train_input_rows(train, i);
	const struct device_rows weights = {
		.data = (float *)train_at(train, train->plan.weights) + layer->weights,
		.type = ELEMENT_F32,
		.samples = 1,
		.rows = layer->k,
		.columns = layer->n,
		.ld = layer->ld_weights,
		.sample_stride = layer->k * layer->ld_weights};
	if (with_weights)
		OR_RETURN(train_quantise(train, &weights, ELEMENT_E4M3, layer->weights_quantised,
			layer->weights_transposed, &layer->weights_scale, err));
	return train_quantise(train, &x, ELEMENT_E4M3, train->plan.quantised,
		layer->input_transposed, &layer->input_scale, err);
}

/* What the forward product leaves to kernels. */
static int train_finish_output(struct train *train, size_t i, struct error *err)
{
	const struct device_layer *layer = &train->plan.layers[i];
	const struct device_rows output = train_rows(train, &layer->output);
	const struct device_rows stand_in = train_stand_in(train, layer);
	const bool fused = train->layers[i].products[DEVICE_FORWARD].epilogue != GEMM_PLAIN;
	const float *bias = (float *)train_at(train, train->plan.weights) + layer->biases;
	if (layer->bias && !fused)
		CUDA_OR_RETURN(
			err, kernel_bias_relu(train_main_stream(train),
				     layer->packed ? &stand_in : &output, bias, layer->relu));
	if (layer->packed)
		CUDA_OR_RETURN(err, kernel_copy_rows(train_main_stream(train), &stand_in, &output));
	return 0;
}

static int train_dense_forward(struct train *train, size_t i, bool with_weights, struct error *err)
{
	const struct device_layer *layer = &train->plan.layers[i];
	const struct device_rows x = train_input_rows(train, i);
	if (layer->normalised)
		CUDA_OR_RETURN(err, kernel_norm_forward(train_main_stream(train), &x,
					    train_at(train, layer->norm_scales)));
	if (layer->fp8)
		OR_RETURN(train_quantise_forward(train, i, with_weights, err));
	OR_RETURN(train_run(train, i, DEVICE_FORWARD, 0, 0, err));
	return train_finish_output(train, i, err);
}

static struct heads_task train_heads_of(const struct train *train, const struct device_layer *layer,
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

static int train_attention_forward(struct train *train, size_t i, struct error *err)
{
	const struct device_layer *layer = &train->plan.layers[i];
	const struct heads_task in = train_heads_of(train, layer, &layer->input);
	const struct heads_task out = train_heads_of(train, layer, &layer->output);
	const struct device_rows x = train_input_rows(train, i);
	CUDA_OR_RETURN(err, kernel_split_heads(train_main_stream(train), &in, x.data,
				    train_at(train, layer->heads_input), QKV));
	OR_RETURN(train_run(train, i, DEVICE_SCORES, 0, 0, err));
	OR_RETURN(train_run(train, i, DEVICE_CONTEXT, 1, 0, err));
	return CUDA_TRY(err, kernel_join_heads(train_main_stream(train), &out,
				     train_at(train, train->plan.heads_output),
				     train_at(train, layer->output.offset), 1));
}

static int train_forward(struct train *train, bool with_weights, struct error *err)
{
	for (size_t i = 0; i < train->plan.layer_count; i++) {
		const struct device_layer *layer = &train->plan.layers[i];
		const struct device_rows output = train_rows(train, &layer->output);
		OR_RETURN(layer->kind == LAYER_DENSE
				  ? train_dense_forward(train, i, with_weights, err)
				  : train_attention_forward(train, i, err));
		if (layer->averaged.rows > 0)
			CUDA_OR_RETURN(err, kernel_average_rows(train_main_stream(train), &output,
						    train_at(train, layer->averaged.offset)));
	}
	return 0;
}

/* --- backward --------------------------------------------------------------------------------- */

static unsigned train_side_stream(const struct train *train, size_t layer)
{
	return 1 + (unsigned)(layer % (train->stream_count - 1));
}

/* dW of layer i, on a side stream behind what the main stream has done so far. */
static int train_fork_weight_gradient(struct train *train, size_t i, float carry, struct error *err)
{
	if (train->stream_count < 2)
		return train_run(train, i, DEVICE_WEIGHT_GRADIENT, carry, 0, err);
	const unsigned side = train_side_stream(train, i);
	const struct train_layer *layer = &train->layers[i];
	CUDA_OR_RETURN(err, cudaEventRecord(layer->ready, train_main_stream(train)));
	CUDA_OR_RETURN(err, cudaStreamWaitEvent(train->streams[side], layer->ready, 0));
	OR_RETURN(train_run(train, i, DEVICE_WEIGHT_GRADIENT, carry, side, err));
	return CUDA_TRY(err, cudaEventRecord(layer->done, train->streams[side]));
}

static int train_join_weight_gradient(struct train *train, size_t i, struct error *err)
{
	if (train->stream_count < 2 || i >= train->plan.layer_count ||
		train->plan.layers[i].kind != LAYER_DENSE)
		return 0;
	return CUDA_TRY(
		err, cudaStreamWaitEvent(train_main_stream(train), train->layers[i].done, 0));
}

/* The gradient of the output, up to the products. */
static int train_finish_gradient(struct train *train, size_t i, float carry, struct error *err)
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
		result = CUDA_TRY(
			err, kernel_relu_backward(train_main_stream(train), &y, &gradient));
	if (result == 0 && layer->bias && !fused_bias)
		result = CUDA_TRY(
			err, kernel_bias_backward(train_main_stream(train), &gradient, carry, db,
				     train_at(train, train->plan.bias_scratch)));
	if (result == 0 && layer->fp8)
		result = train_quantise(train, &gradient, ELEMENT_E5M2, layer->gradient_quantised,
			layer->gradient_transposed, &layer->gradient_scale, err);
	else if (result == 0 && layer->packed)
		result = CUDA_TRY(
			err, kernel_copy_rows(train_main_stream(train), &gradient, &stand_in));
	return result;
}

static int train_dense_backward(struct train *train, size_t i, float carry, struct error *err)
{
	const struct device_layer *layer = &train->plan.layers[i];
	const struct device_rows x = train_input_rows(train, i);
	const struct device_rows dx = train_rows(train, &layer->input_gradient);
	OR_RETURN(train_finish_gradient(train, i, carry, err));
	OR_RETURN(train_fork_weight_gradient(train, i, carry, err));
	if (i == 0)
		return 0;
	/* The buffer that dX goes to was last read for the gradient of weights some layers behind. */
	OR_RETURN(train_join_weight_gradient(train, i - 1 + train->plan.slots, err));
	OR_RETURN(train_run(train, i, DEVICE_INPUT_GRADIENT, 0, 0, err));
	if (layer->normalised)
		CUDA_OR_RETURN(err, kernel_norm_backward(train_main_stream(train), &x, &dx,
					    train_at(train, layer->norm_scales)));
	return 0;
}

static int train_attention_backward(struct train *train, size_t i, struct error *err)
{
	const struct device_layer *layer = &train->plan.layers[i];
	const struct heads_task in = train_heads_of(train, layer, &layer->input_gradient);
	const struct heads_task out = train_heads_of(train, layer, &layer->output_gradient);
	OR_RETURN(train_join_weight_gradient(train, i - 1 + train->plan.slots, err));
	CUDA_OR_RETURN(err, kernel_split_heads(train_main_stream(train), &out,
				    train_at(train, layer->output_gradient.offset),
				    train_at(train, train->plan.heads_output), 1));
	OR_RETURN(train_run(train, i, DEVICE_SCORES_GRADIENT, 0, 0, err));
	OR_RETURN(train_run(train, i, DEVICE_VALUE_GRADIENT, 1, 0, err));
	OR_RETURN(train_run(train, i, DEVICE_QUERY_GRADIENT, 0, 0, err));
	OR_RETURN(train_run(train, i, DEVICE_KEY_GRADIENT, 0, 0, err));
	return CUDA_TRY(err, kernel_join_heads(train_main_stream(train), &in,
				     train_at(train, train->plan.heads_gradient),
				     train_at(train, layer->input_gradient.offset), QKV));
}

/* The side streams end in the first one again. */
static int train_join_all(struct train *train, struct error *err)
{
	size_t joined = 0;
	for (size_t i = 0; i < train->plan.layer_count; i++) {
		if (train->stream_count < 2 || train->plan.layers[i].kind != LAYER_DENSE)
			continue;
		/* Layers go backward: the first one of a stream is its last product. */
		const unsigned side = train_side_stream(train, i);
		if (joined & (size_t)1 << side)
			continue;
		joined |= (size_t)1 << side;
		OR_RETURN(train_join_weight_gradient(train, i, err));
	}
	return 0;
}

static int train_backward(struct train *train, float carry, struct error *err)
{
	int result = 0;
	for (size_t i = train->plan.layer_count; result == 0 && i-- > 0;) {
		const struct device_layer *layer = &train->plan.layers[i];
		result = layer->kind == LAYER_DENSE ? train_dense_backward(train, i, carry, err)
						    : train_attention_backward(train, i, err);
		if (result < 0 || i == 0 || layer[-1].averaged.rows == 0)
			continue;
		const struct device_rows rows = train_rows(train, &layer[-1].output_gradient);
		result = CUDA_TRY(
			err, kernel_spread_rows(train_main_stream(train),
				     train_at(train, layer[-1].averaged_gradient.offset), &rows));
	}
	return result < 0 ? result : train_join_all(train, err);
}

/* --- a step ----------------------------------------------------------------------------------- */

/* The first layer may read a batch where it lies. */
static bool train_reads_in_place(const struct train *train, const struct train_batch *batch)
{
	const struct device_plan *plan = &train->plan;
	const struct device_view *input = &plan->layers[0].input;
	return plan->type == ELEMENT_F32 && train->options.type == AUGMENT_TYPE_FLOAT32 &&
	       input->ld == input->columns &&
	       train->options.sample_elements == input->sample_stride &&
	       batch->size == plan->options.batch && (uintptr_t)batch->data % GEMM_ALIGN_BYTES == 0;
}

/* Samples beyond the batch's are zeros: what an earlier batch left there need not be finite. */
static int train_take_input(struct train *train, const struct train_batch *batch, struct error *err)
{
	const struct device_view *input = &train->plan.layers[0].input;
	char *const own = train_at(train, input->offset);
	const size_t used = batch->size * input->sample_stride;
	const size_t all = train->plan.options.batch * input->sample_stride;
	const struct input_task task = {
		.batch = batch->data,
		.is_bytes = train->options.type == AUGMENT_TYPE_UINT8,
		.channels_last = train->options.channels_last,
		.samples = batch->size,
		.elements = train->options.sample_elements,
		.wanted = input->rows * input->columns,
		.columns = input->columns,
		.ld = (uint32_t)input->ld,
		.out = own,
		.type = input->type,
	};
	train->input = own;
	if (train_reads_in_place(train, batch)) {
		train->input = batch->data;
		return 0;
	}
	CUDA_OR_RETURN(err, kernel_input(train->streams[0], &task));
	if (used < all)
		CUDA_OR_RETURN(
			err, kernel_fill(train->streams[0], own + used * element_bytes(input->type),
				     input->type, all - used, 0));
	return 0;
}

static int train_score(struct train *train, const struct train_batch *batch, struct error *err)
{
	const struct device_plan *plan = &train->plan;
	const struct device_layer *last = &plan->layers[plan->layer_count - 1];
	const size_t used = batch->size * last->output.sample_stride;
	const size_t all = plan->options.batch * last->output.sample_stride;
	const float scale = train->loss_scale / (float)((double)batch->size * last->m);
	struct device_rows logits = train_rows(train, &last->output);
	logits.samples = batch->size;
	CUDA_OR_RETURN(
		err, kernel_softmax_cross_entropy(train->streams[0], &logits, batch->labels, scale,
			     train_at(train, plan->losses), train_at(train, plan->loss)));
	if (used < all)
		CUDA_OR_RETURN(err, kernel_fill(train->streams[0],
					    (char *)logits.data + used * element_bytes(logits.type),
					    logits.type, all - used, 0));
	return 0;
}

int train_gradients(
	struct train *train, const struct train_batch *batch, float carry, struct error *err)
{
	if (batch->size == 0 || batch->size > train->plan.options.batch)
		return error_set(err, -EINVAL, "batch of %u samples: the step takes 1 to %u",
			batch->size, train->plan.options.batch);
	if (carry != 0 && train->options.accumulate <= 1)
		return error_set(
			err, -EINVAL, "gradients accumulate only with step.accumulate above 1");
	const bool with_weights = carry == 0 || !train->quantised;
	train->last_size = batch->size;
	int result = train_take_input(train, batch, err);
	if (result == 0)
		result = train_forward(train, with_weights, err);
	if (result == 0)
		result = train_score(train, batch, err);
	if (result == 0)
		result = train_backward(train, carry, err);
	train->quantised = train->quantised || result == 0;
	return result;
}

float *train_gradient_array(const struct train *train, size_t *count)
{
	*count = train->plan.parameters;
	return train_at(train, train->plan.gradients);
}

int train_update(struct train *train, unsigned steps, struct error *err)
{
	const struct device_plan *plan = &train->plan;
	const bool checked = plan->options.precision == STEP_PRECISION_FP16;
	const struct optimizer_task task = {
		.weights = train_at(train, plan->weights),
		.gradients = train_at(train, plan->gradients),
		.velocity = train_at(train, plan->velocity),
		.first = train_at(train, plan->first),
		.second = train_at(train, plan->second),
		.computed = train_at(train, plan->computed),
		.type = plan->type,
		.count = plan->parameters,
		.learning_rate = train->options.learning_rate,
		.gradient_factor = 1 / (train->loss_scale * (float)steps),
		.step = train_at(train, plan->optimizer_step),
		.skip = checked ? train_at(train, plan->skip) : NULL,
	};
	if (checked)
		CUDA_OR_RETURN(
			err, kernel_find_nonfinite(train->streams[0], task.gradients, task.count,
				     train_at(train, plan->skip), train_at(train, plan->partials)));
	return plan->options.rule == STEP_OPTIMIZER_ADAM
		       ? CUDA_TRY(err, kernel_adam(train->streams[0], &task))
		       : CUDA_TRY(err, kernel_sgd(train->streams[0], &task));
}

const float *train_loss(const struct train *train)
{
	return train_at(train, train->plan.loss);
}

int train_statistics(struct train *train, unsigned steps, double *out, struct error *err)
{
	const struct device_plan *plan = &train->plan;
	double *const sums = train_at(train, plan->statistics);
	float *const partials = train_at(train, plan->partials);
	const struct device_view *view = device_plan_watched(plan);
	struct device_rows watched = train_rows(train, view);
	watched.samples = train->last_size;
	struct statistics_task task = {
		.gradient = sums,
		.activation = sums + GRADIENT_STATISTICS,
		.gradient_count = (double)plan->trained,
		.activation_count = (double)watched.samples * watched.rows * watched.columns,
		.gradient_factor = 1 / ((double)train->loss_scale * steps),
	};
	task.out = out;
	CUDA_OR_RETURN(
		err, kernel_gradient_statistics(train->streams[0], train_at(train, plan->gradients),
			     plan->parameters, sums, partials));
	CUDA_OR_RETURN(err, kernel_activation_statistics(train->streams[0], &watched,
				    sums + GRADIENT_STATISTICS, partials));
	return CUDA_TRY(err, kernel_finish_statistics(train->streams[0], &task));
}
