/* How near the kernels of a step come to the speed of memory: the bytes that each has to move (workloads/backend/cuda/kernels.h)
 * in its time by the device's events, as a share of what a plain copy moves.  Matrices are larger than caches.  In rounds that
 * visit all of them; no bar. */
#include "tests/bench/device/device_bench.h"
#include "workloads/backend/cuda/device_probe.h"
#include "workloads/backend/cuda/kernels.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	ARRAYS = 4,
	MATRIX_BYTES = 256 << 20,
	SMALL_BYTES = 1 << 18,
	SCRATCH_BYTES = 64 << 20,
	COLUMNS = 1024,
	HEADS = 12,
	HEAD_WIDTH = 64,
	PICTURES = 256,
	PICTURE_WIDTH = 500,
	PICTURE_HEIGHT = 375,
	BOX_EDGE = 330, /* about a random crop's */
	SAMPLE_EDGE = 224,
	CHANNELS = 3,
	LAUNCHES = 5, /* in a measurement */
};

/* What all kernels work on. */
struct arena {
	size_t bytes;                   /* of an array */
	void *arrays[ARRAYS], *scratch; /* numbers of [-1, 1] at first; the last one 1 */
	float *amax;                    /* and the inverse scale behind it */
	uint32_t *labels;
	struct batch_picture *pictures;
	cudaStream_t stream;
	cudaEvent_t begin, end;
};

static void must(struct device_bench *bench, const char *what, int code)
{
	struct error err = {0};
	if (code == 0)
		return;
	(void)error_set(&err, -code, "%s", cudaGetErrorString((cudaError_t)code));
	device_bench_die(bench, what, &err);
}

static struct device_rows matrix(const struct arena *arena, int array, enum element type)
{
	const size_t rows = arena->bytes / COLUMNS / element_bytes(type);
	return (struct device_rows){
		arena->arrays[array], type, 1, (uint32_t)rows, COLUMNS, COLUMNS, rows * COLUMNS};
}

static size_t floats(const struct arena *arena)
{
	return arena->bytes / sizeof(float);
}

static float *scratch(const struct arena *arena)
{
	return arena->scratch;
}

/* --- the kernels: each returns an error code, and says what it moves ------------------------------------------ */

typedef int (*kernel_fn)(const struct arena *arena, double *bytes);

static int run_copy(const struct arena *arena, double *bytes)
{
	*bytes = 2 * (double)arena->bytes;
	return kernel_memory_copy(arena->stream, arena->arrays[0], arena->arrays[1], arena->bytes);
}

static int run_norm_forward(const struct arena *arena, double *bytes)
{
	const struct device_rows x = matrix(arena, 0, ELEMENT_BF16);
	*bytes = 2 * (double)arena->bytes;
	return kernel_norm_forward(arena->stream, &x, scratch(arena));
}

static int run_norm_backward(const struct arena *arena, double *bytes)
{
	const struct device_rows x = matrix(arena, 0, ELEMENT_BF16);
	const struct device_rows gradient = matrix(arena, 1, ELEMENT_BF16);
	*bytes = 3 * (double)arena->bytes;
	return kernel_norm_backward(arena->stream, &x, &gradient, scratch(arena));
}

static int run_bias_relu(const struct arena *arena, double *bytes)
{
	const struct device_rows y = matrix(arena, 0, ELEMENT_BF16);
	*bytes = 2 * (double)arena->bytes;
	return kernel_bias_relu(arena->stream, &y, scratch(arena), true);
}

static int run_relu_backward(const struct arena *arena, double *bytes)
{
	const struct device_rows y = matrix(arena, 0, ELEMENT_BF16);
	const struct device_rows gradient = matrix(arena, 1, ELEMENT_BF16);
	*bytes = 3 * (double)arena->bytes;
	return kernel_relu_backward(arena->stream, &y, &gradient);
}

static int run_bias_backward(const struct arena *arena, double *bytes)
{
	const struct device_rows gradient = matrix(arena, 0, ELEMENT_BF16);
	*bytes = (double)arena->bytes;
	return kernel_bias_backward(arena->stream, &gradient, 0, arena->arrays[1], scratch(arena));
}

static int run_copy_rows(const struct arena *arena, double *bytes)
{
	const struct device_rows from = matrix(arena, 0, ELEMENT_F32);
	struct device_rows to = from;
	to.data = arena->arrays[1];
	to.type = ELEMENT_BF16;
	*bytes = 1.5 * (double)arena->bytes;
	return kernel_copy_rows(arena->stream, &from, &to);
}

static int run_split_heads(const struct arena *arena, double *bytes)
{
	const uint32_t columns = 3 * HEADS * HEAD_WIDTH;
	const uint32_t rows = (uint32_t)(arena->bytes / columns / element_bytes(ELEMENT_BF16));
	const struct heads_task task = {
		1, rows, HEADS, HEAD_WIDTH, ELEMENT_BF16, columns, (size_t)rows * columns};
	*bytes = 2.0 * rows * columns * (double)element_bytes(ELEMENT_BF16);
	return kernel_split_heads(arena->stream, &task, arena->arrays[0], arena->arrays[1], 3);
}

static int run_loss(const struct arena *arena, double *bytes)
{
	const struct device_rows logits = matrix(arena, 2, ELEMENT_BF16);
	*bytes = 2 * (double)arena->bytes;
	return kernel_softmax_cross_entropy(arena->stream, &logits, arena->labels, 1,
		scratch(arena), scratch(arena) + logits.rows);
}

static int run_quantise(const struct arena *arena, double *bytes)
{
	const struct quantise_task task = {
		.from = matrix(arena, 0, ELEMENT_BF16),
		.type = ELEMENT_E4M3,
		.out = arena->arrays[1],
		.transposed = arena->arrays[2],
		.amax = arena->amax,
		.scale_inverse = arena->amax + 1,
		.scratch = scratch(arena),
	};
	*bytes = 2 * (double)arena->bytes;
	return kernel_quantise(arena->stream, &task);
}

static struct optimizer_task update(const struct arena *arena)
{
	return (struct optimizer_task){
		.weights = arena->arrays[0],
		.gradients = arena->arrays[1],
		.velocity = arena->arrays[2],
		.first = arena->arrays[2],
		.second = arena->arrays[3],
		.count = floats(arena),
		.learning_rate = 0,
		.gradient_factor = 1,
		.step = arena->scratch,
	};
}

static int run_sgd(const struct arena *arena, double *bytes)
{
	const struct optimizer_task task = update(arena);
	*bytes = 5 * (double)arena->bytes;
	return kernel_sgd(arena->stream, &task);
}

static int run_adam(const struct arena *arena, double *bytes)
{
	const struct optimizer_task task = update(arena);
	*bytes = 7 * (double)arena->bytes;
	return kernel_adam(arena->stream, &task);
}

static int run_find_nonfinite(const struct arena *arena, double *bytes)
{
	*bytes = (double)arena->bytes;
	return kernel_find_nonfinite(arena->stream, arena->arrays[0], floats(arena),
		(uint32_t *)arena->scratch, scratch(arena) + 1);
}

static int run_statistics(const struct arena *arena, double *bytes)
{
	*bytes = (double)arena->bytes;
	return kernel_gradient_statistics(
		arena->stream, arena->arrays[0], floats(arena), arena->scratch, scratch(arena) + 4);
}

static int run_input(const struct arena *arena, double *bytes)
{
	const uint32_t elements = CHANNELS * SAMPLE_EDGE * SAMPLE_EDGE;
	const size_t samples = arena->bytes / elements / element_bytes(ELEMENT_BF16);
	const struct input_task task = {.batch = arena->arrays[0],
		.is_bytes = true,
		.samples = samples ? (uint32_t)samples : 1,
		.elements = samples ? elements : CHANNELS,
		.wanted = samples ? elements : CHANNELS,
		.out = arena->arrays[1],
		.type = ELEMENT_BF16};
	*bytes = (double)task.samples * task.elements * (double)(1 + element_bytes(ELEMENT_BF16));
	return kernel_input(arena->stream, &task);
}

static int run_augment(const struct arena *arena, double *bytes)
{
	const size_t samples = SAMPLE_EDGE * SAMPLE_EDGE * CHANNELS * sizeof(float);
	const uint32_t room = (uint32_t)(arena->bytes / samples);
	const struct augment_task task = {.bytes = arena->arrays[0],
		.pictures = arena->pictures,
		.count = room < 1          ? 1
			 : room < PICTURES ? room
					   : PICTURES,
		.size = room < 1 ? CHANNELS : SAMPLE_EDGE,
		.antialias = true,
		.is_float = true,
		.out = arena->arrays[1]};
	*bytes = task.count * ((double)samples + (double)BOX_EDGE * BOX_EDGE * CHANNELS);
	return kernel_augment(arena->stream, &task);
}

static const struct {
	const char *what;
	kernel_fn run;
} kernels[] = {
	{"memory copy", run_copy},
	{"norm, forward, bf16", run_norm_forward},
	{"norm, backward, bf16", run_norm_backward},
	{"bias and ReLU, bf16", run_bias_relu},
	{"ReLU, backward, bf16", run_relu_backward},
	{"bias, backward, bf16", run_bias_backward},
	{"copy of rows, fp32 to bf16", run_copy_rows},
	{"splitting heads, bf16", run_split_heads},
	{"softmax and cross-entropy, 1024 classes, bf16", run_loss},
	{"quantising, bf16 to e4m3, both ways", run_quantise},
	{"sgd", run_sgd},
	{"adam", run_adam},
	{"finding non-finite gradients", run_find_nonfinite},
	{"statistics of gradients", run_statistics},
	{"input, uint8 to bf16", run_input},
	{"augmentation, 330 to 224 pixels, float", run_augment},
};

enum { KERNELS = sizeof kernels / sizeof *kernels };

/* --- measuring -------------------------------------------------------------------------------------------- */

static void make_pictures(struct device_bench *bench, struct arena *arena)
{
	static struct batch_picture pictures[PICTURES];
	const size_t bytes = (size_t)PICTURE_WIDTH * PICTURE_HEIGHT * CHANNELS;
	for (size_t i = 0; i < PICTURES; i++)
		pictures[i] = (struct batch_picture){
			.offset = (i + 1) * bytes < arena->bytes ? i * bytes : 0,
			.width = PICTURE_WIDTH,
			.height = PICTURE_HEIGHT,
			.x = (float)(i % (PICTURE_WIDTH - BOX_EDGE)),
			.y = (float)(i % (PICTURE_HEIGHT - BOX_EDGE)),
			.box_width = BOX_EDGE,
			.box_height = BOX_EDGE,
			.flip = i % 2,
			.bad = bytes > arena->bytes};
	must(bench, "a copy of pictures",
		(int)cudaMemcpy(
			arena->pictures, pictures, sizeof pictures, cudaMemcpyHostToDevice));
}

static void open_arena(struct device_bench *bench, struct arena *arena)
{
	void *memory[4] = {0};
	const size_t sizes[] = {SCRATCH_BYTES, sizeof(uint32_t),
		PICTURES * sizeof(struct batch_picture), 2 * sizeof(float)};
	*arena = (struct arena){.bytes = bench->small ? SMALL_BYTES : MATRIX_BYTES};
	must(bench, "choosing the device", (int)cudaSetDevice((int)bench->device));
	must(bench, "a stream",
		(int)cudaStreamCreateWithFlags(&arena->stream, cudaStreamNonBlocking));
	must(bench, "an event", (int)cudaEventCreate(&arena->begin));
	must(bench, "an event", (int)cudaEventCreate(&arena->end));
	for (int i = 0; i < 4; i++) {
		must(bench, "memory", (int)cudaMalloc(&memory[i], sizes[i]));
		must(bench, "clearing", (int)cudaMemset(memory[i], 0, sizes[i]));
	}
	arena->scratch = memory[0];
	arena->labels = memory[1];
	arena->pictures = memory[2];
	arena->amax = memory[3];
	void *numbers = malloc(arena->bytes);
	must(bench, "memory", numbers ? 0 : (int)cudaErrorMemoryAllocation);
	formats_fill(ELEMENT_BF16, numbers, arena->bytes / 2);
	for (unsigned i = 0; i < ARRAYS; i++) {
		must(bench, "memory", (int)cudaMalloc(&arena->arrays[i], arena->bytes));
		must(bench, "filling",
			(int)cudaMemcpy(
				arena->arrays[i], numbers, arena->bytes, cudaMemcpyHostToDevice));
	}
	free(numbers);
	must(bench, "filling",
		kernel_fill(NULL, arena->arrays[ARRAYS - 1], ELEMENT_F32, floats(arena), 1));
	make_pictures(bench, arena);
	must(bench, "filling", (int)cudaDeviceSynchronize());
}

static void close_arena(struct device_bench *bench, struct arena *arena)
{
	for (int i = 0; i < ARRAYS; i++)
		must(bench, "freeing", (int)cudaFree(arena->arrays[i]));
	must(bench, "freeing", (int)cudaFree(arena->scratch));
	must(bench, "freeing", (int)cudaFree(arena->labels));
	must(bench, "freeing", (int)cudaFree(arena->pictures));
	must(bench, "freeing", (int)cudaFree(arena->amax));
	must(bench, "an event", (int)cudaEventDestroy(arena->begin));
	must(bench, "an event", (int)cudaEventDestroy(arena->end));
	must(bench, "a stream", (int)cudaStreamDestroy(arena->stream));
}

/* Bytes a second; the first launch is not measured. */
static double measure(struct device_bench *bench, const struct arena *arena, size_t kernel)
{
	double bytes = 0;
	float ms = 0;
	const char *const what = kernels[kernel].what;
	must(bench, what, kernels[kernel].run(arena, &bytes));
	must(bench, what, (int)cudaEventRecord(arena->begin, arena->stream));
	for (int i = 0; i < LAUNCHES; i++)
		must(bench, what, kernels[kernel].run(arena, &bytes));
	must(bench, what, (int)cudaEventRecord(arena->end, arena->stream));
	must(bench, what, (int)cudaEventSynchronize(arena->end));
	must(bench, what, (int)cudaEventElapsedTime(&ms, arena->begin, arena->end));
	return ms > 0 ? LAUNCHES * bytes / ((double)ms * 1e-3) : NAN;
}

int main(int argc, char **argv)
{
	struct device_bench bench;
	struct arena arena;
	double rates[KERNELS][BENCH_ROUNDS_MAX];
	char text[96];
	const int status = device_bench_open(
		&bench, "kernels", "bytes a second of the kernels beside the products", argc, argv);
	if (status)
		return status;
	open_arena(&bench, &arena);
	for (size_t round = 0; round < bench.rounds; round++)
		for (size_t kernel = 0; kernel < KERNELS; kernel++)
			rates[kernel][round] = measure(&bench, &arena, kernel);
	for (size_t round = 0; round < bench.rounds; round++) {
		for (size_t kernel = 1; kernel < KERNELS; kernel++)
			rates[kernel][round] *= 100 / rates[0][round];
		rates[0][round] /= 1e9;
	}
	device_bench_figure(&bench, kernels[0].what, "GB/s", rates[0], bench.rounds);
	for (size_t kernel = 1; kernel < KERNELS; kernel++) {
		(void)snprintf(text, sizeof text, "%s, of the copy", kernels[kernel].what);
		device_bench_figure(&bench, text, "%", rates[kernel], bench.rounds);
	}
	close_arena(&bench, &arena);
	return device_bench_close(&bench);
}
