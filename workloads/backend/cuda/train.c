/* A model's training step on one device: what train.h offers, on top of the plan and its launches. */
#include "workloads/backend/cuda/train_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { GRADIENT_STATISTICS = 2 };

/* --- open ----------------------------------------------------------------------------------------------- */

static struct device_plan_options plan_options(
	const struct cuda_options *options, const struct model *model)
{
	return (struct device_plan_options){
		.model = model,
		.shape = {options->sample_elements, options->class_count},
		.batch = options->batch_size,
		.precision = options->precision,
		.rule = options->rule,
		.streams = options->streams,
		.seed = options->seed,
	};
}

static unsigned stream_count(const struct cuda_options *options)
{
	return options->streams > 1 ? options->streams : 1;
}

/* Of the block: the plan, and a workspace for each stream but the first, whose is the context's. */
static size_t block_bytes(const struct device_plan *plan, unsigned streams)
{
	return plan->bytes + (streams - 1) * (size_t)TRAIN_WORKSPACE_BYTES;
}

uint64_t train_bytes(const struct cuda_options *options)
{
	const struct model *model = model_find(options->model);
	const struct device_plan_options wanted = plan_options(options, model);
	struct device_plan plan;
	if (!model || device_plan_open(&plan, &wanted, NULL) < 0)
		return 0;
	const uint64_t bytes = block_bytes(&plan, stream_count(options)) + TRAIN_WORKSPACE_BYTES;
	device_plan_close(&plan);
	return bytes;
}

static int train_allocate(struct train *train, struct error *err)
{
	const size_t bytes = block_bytes(&train->plan, train->stream_count);
	const cudaError_t code = cudaMalloc((void **)&train->memory, bytes);
	if (code == cudaSuccess)
		return 0;
	return fail_cuda(err, (int)code, "%.2f GiB for '%s' with batches of %u",
		(double)bytes / (double)(1 << 30), train->plan.options.model->name,
		train->plan.options.batch);
}

static int create_events(struct train *train, struct error *err)
{
	int result = 0;
	for (size_t i = 0; result == 0 && i < train->plan.layer_count; i++) {
		if (train->stream_count < 2 || train->plan.layers[i].kind != LAYER_DENSE)
			continue;
		result = CUDA_TRY(err,
			cudaEventCreateWithFlags(&train->layers[i].ready, cudaEventDisableTiming));
		if (result == 0)
			result = CUDA_TRY(err, cudaEventCreateWithFlags(&train->layers[i].done,
						       cudaEventDisableTiming));
	}
	return result;
}

static void train_describe(struct train *train)
{
	size_t not_fp8 = 0;
	const size_t products = device_plan_products(&train->plan, &not_fp8);
	if (train->options.precision == STEP_PRECISION_FP8 && not_fp8 > 0)
		(void)snprintf(train->note, sizeof train->note, "%zu of %zu products in bf16",
			not_fp8, products);
}

static int train_fill(struct train *train, struct error *err)
{
	train->layers = calloc(train->plan.layer_count, sizeof *train->layers);
	if (!train->layers)
		return error_set(err, -ENOMEM, "no memory for the step's layers");
	int result = train_allocate(train, err);
	if (result == 0)
		result = gemm_context_open(&train->context, TRAIN_WORKSPACE_BYTES, err);
	if (result == 0)
		result = train_plans_open(train, err);
	if (result == 0)
		result = create_events(train, err);
	if (result == 0)
		result = train_initialise(train, err);
	return result;
}

int train_open_model(struct train **out, const struct cuda_options *options,
	const struct model *model, cuda_stream const *streams, struct error *err)
{
	const struct device_plan_options wanted = plan_options(options, model);
	struct train *train = calloc(1, sizeof *train);
	if (!train)
		return error_set(err, -ENOMEM, "no memory for a step");
	train->options = *options;
	train->stream_count = stream_count(options);
	train->deterministic = true;
	train->last_size = options->batch_size;
	int result = device_plan_open(&train->plan, &wanted, err);
	if (result == 0) {
		for (unsigned i = 0; i < train->stream_count; i++)
			train->streams[i] = streams[i];
		train->loss_scale = device_plan_loss_scale(&train->plan);
		train_describe(train);
		result = train_fill(train, err);
	}
	if (result < 0) {
		train_close(train);
		return result;
	}
	*out = train;
	return 0;
}

int train_open(struct train **out, const struct cuda_options *options, cuda_stream const *streams,
	struct error *err)
{
	const struct model *model = model_find(options->model);
	if (!model)
		return error_set(err, -EINVAL, "no model '%s'", options->model);
	return train_open_model(out, options, model, streams, err);
}

/* Nothing can be done about a failure here. */
void train_close(struct train *train)
{
	if (!train)
		return;
	train_plans_close(train);
	for (size_t i = 0; train->layers && i < train->plan.layer_count; i++) {
		if (train->layers[i].ready)
			(void)cudaEventDestroy(train->layers[i].ready);
		if (train->layers[i].done)
			(void)cudaEventDestroy(train->layers[i].done);
	}
	gemm_context_close(train->context);
	if (train->memory)
		(void)cudaFree(train->memory);
	free(train->layers);
	device_plan_close(&train->plan);
	free(train);
}

/* --- a step ---------------------------------------------------------------------------------------------- */

/* The first layer may read a batch where it lies. */
static bool reads_in_place(const struct train *train, const struct train_batch *batch)
{
	const struct device_plan *plan = &train->plan;
	const struct device_view *input = &plan->layers[0].input;
	return plan->type == ELEMENT_F32 && train->options.type == AUGMENT_TYPE_FLOAT32 &&
	       input->ld == input->columns &&
	       train->options.sample_elements == input->sample_stride &&
	       batch->size == plan->options.batch && (uintptr_t)batch->data % GEMM_ALIGN_BYTES == 0;
}

/* Samples beyond the batch's are zeros: what an earlier batch left there need not be finite. */
static int take_input(struct train *train, const struct train_batch *batch, struct error *err)
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
	if (reads_in_place(train, batch)) {
		train->input = batch->data;
		return 0;
	}
	int result = CUDA_TRY(err, kernel_input(train->streams[0], &task));
	if (result == 0 && used < all)
		result = CUDA_TRY(
			err, kernel_fill(train->streams[0], own + used * element_bytes(input->type),
				     input->type, all - used, 0));
	return result;
}

static int score(struct train *train, const struct train_batch *batch, struct error *err)
{
	const struct device_plan *plan = &train->plan;
	const struct device_layer *last = &plan->layers[plan->layer_count - 1];
	const size_t used = batch->size * last->output.sample_stride;
	const size_t all = plan->options.batch * last->output.sample_stride;
	const float scale = train->loss_scale / (float)((double)batch->size * last->m);
	struct device_rows logits = train_rows(train, &last->output);
	logits.samples = batch->size;
	int result = CUDA_TRY(
		err, kernel_softmax_cross_entropy(train->streams[0], &logits, batch->labels, scale,
			     train_at(train, plan->losses), train_at(train, plan->loss)));
	if (result == 0 && used < all)
		result = CUDA_TRY(
			err, kernel_fill(train->streams[0],
				     (char *)logits.data + used * element_bytes(logits.type),
				     logits.type, all - used, 0));
	return result;
}

int train_gradients(
	struct train *train, const struct train_batch *batch, float carry, struct error *err)
{
	if (batch->size == 0 || batch->size > train->plan.options.batch)
		return error_set(err, -EINVAL, "a batch of %u samples for a step on %u",
			batch->size, train->plan.options.batch);
	if (carry != 0 && train->options.accumulate <= 1)
		return error_set(err, -EINVAL, "gradients add up where step.accumulate says so");
	const bool with_weights = carry == 0 || !train->quantised;
	train->last_size = batch->size;
	int result = take_input(train, batch, err);
	if (result == 0)
		result = train_forward(train, with_weights, err);
	if (result == 0)
		result = score(train, batch, err);
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
	int result = 0;
	if (checked)
		result = CUDA_TRY(
			err, kernel_find_nonfinite(train->streams[0], task.gradients, task.count,
				     train_at(train, plan->skip), train_at(train, plan->partials)));
	if (result < 0)
		return result;
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
	int result = CUDA_TRY(
		err, kernel_gradient_statistics(train->streams[0], train_at(train, plan->gradients),
			     plan->parameters, sums, partials));
	if (result == 0)
		result = CUDA_TRY(err, kernel_activation_statistics(train->streams[0], &watched,
					       sums + GRADIENT_STATISTICS, partials));
	return result < 0 ? result
			  : CUDA_TRY(err, kernel_finish_statistics(train->streams[0], &task));
}

/* --- what it is ------------------------------------------------------------------------------------------- */

const char *train_note(const struct train *train)
{
	return train->note;
}

double train_flops_per_sample(const struct train *train)
{
	return device_plan_flops(&train->plan) / train->plan.options.batch;
}

bool train_deterministic(const struct train *train)
{
	return train->deterministic;
}
