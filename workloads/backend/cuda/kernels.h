/* Kernels of the plug-in, as plain functions that enqueue one launch (or a few) on a stream.  Each is
 * defined in a .cu file of its subject, next to no other code, so that the host side is plain C.
 *
 * The same .cu files are compiled twice: by nvcc for devices, and as C++ by the host's compiler for the test
 * double (tests/device/double/), which runs them thread by thread on the CPU.  Hence: launches go
 * through CUDA_LAUNCH of kernels_common.h; no warp intrinsics, no textures, no inline PTX; __syncthreads() is
 * reached by all threads of a block or by none; shared memory is declared by CUDA_SHARED.
 *
 * All results are the same bits for the same input on the same device: sums are taken in a fixed order, and no
 * kernel adds floats atomically.  Functions return 0 or a CUDA error code (cudaError_t).
 *
 * All are bound by memory.  What they move of it at least, for a roofline; n: elements, e: bytes of one, c: columns:
 *   input                        n e, and of each sample's elements 4 or 1, once (again from the cache where repeated)
 *   norm_forward, _backward      2 n e, 3 n e; rows of more than 4096 (backward 2048) elements, or a fourth of that where
 *                                rows do not begin at multiples of 16 bytes, are read again, from the cache
 *   bias_relu, relu_backward     2 n e, 3 n e
 *   bias_backward                n e + 8 c per slice of rows, of which there are up to 1024 128 / c
 *   average_rows, spread_rows    n e + n e / rows
 *   copy_rows, split, join       n (e from + e to)
 *   softmax_cross_entropy        2 n e, and n e more from the cache, or from memory where rows are more than it holds
 *   quantise                     n e + n for each output; n e more where there is no magnitude from before
 *   sgd, adam                    20 n, 28 n; and n e for the copy
 *   find_nonfinite, statistics   n e
 *   augment                      the samples, and the boxes' pixels once from memory (3 bytes each)
 *   memory_copy                  2 bytes for each
 */
#ifndef MLBENCH_WORKLOADS_BACKEND_CUDA_KERNELS_H
#define MLBENCH_WORKLOADS_BACKEND_CUDA_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st *cuda_stream; /* cudaStream_t */

/* Element types of tensors on the device. */
enum element { ELEMENT_F32, ELEMENT_BF16, ELEMENT_F16, ELEMENT_E4M3, ELEMENT_E5M2 };
static inline size_t element_bytes(enum element type)
{
	return type == ELEMENT_F32 ? 4 : type == ELEMENT_BF16 || type == ELEMENT_F16 ? 2 : 1;
}

/* Rows of a matrix as they lie: sample s, row r, column j is at s * sample_stride + r * ld + j elements.  Gaps
 * between rows are left alone. */
struct device_rows {
	void *data;
	enum element type;               /* f32, bf16 or f16 */
	uint32_t samples, rows, columns; /* rows of each sample */
	size_t ld, sample_stride;
};

/* --- input: a batch into the first layer's rows (kernels_copy.cu) ---------------------------------------- */

/* Each sample's elements in order, repeated from the start or cut to `wanted`.  uint8 becomes
 * (x / 255 - mean[c]) / deviation[c] of ImageNet, the channel by the layout: the values that the host's float32
 * path gives. */
struct input_task {
	const void *batch; /* (samples, elements) float or uint8, on the device */
	bool is_bytes, channels_last;
	uint32_t samples, elements, wanted;
	/* Rows of `columns` elements, which divides wanted, begin at multiples of ld: zeros fill the gaps.  0: one row. */
	uint32_t columns, ld;
	void *out; /* (samples, wanted), or (samples, wanted / columns, ld) */
	enum element type;
};
int kernel_input(cuda_stream stream, const struct input_task *task);

/* --- layers (kernels_layers.cu, kernels_copy.cu) ------------------------------------------ */

/* x <- x / sqrt(mean(x^2) + 1e-6), row by row in place; scales (samples * rows) float keeps the factors. */
int kernel_norm_forward(cuda_stream stream, const struct device_rows *x, float *scales);
/* dx <- s (dx - x mean(dx x)): x are the normalised rows, dx their gradient, in place, of the same shape. */
int kernel_norm_backward(cuda_stream stream, const struct device_rows *x,
	const struct device_rows *gradient, const float *scales);
/* y <- y + bias, then max(y, 0) with relu.  bias: (columns) float. */
int kernel_bias_relu(cuda_stream stream, const struct device_rows *y, const float *bias, bool relu);
/* dy <- dy where y > 0, else 0. */
int kernel_relu_backward(
	cuda_stream stream, const struct device_rows *y, const struct device_rows *gradient);
/* db <- carry * db + column sums of dy; with carry 0, what is there is not read.  scratch: kernel_bias_scratch floats. */
int kernel_bias_backward(cuda_stream stream, const struct device_rows *gradient, float carry,
	float *bias_gradient, float *scratch);
size_t kernel_bias_scratch(const struct device_rows *gradient); /* floats */
/* averaged (samples, columns) <- mean of the rows of each sample; and each row's share of its gradient. */
int kernel_average_rows(cuda_stream stream, const struct device_rows *x, void *averaged);
int kernel_spread_rows(
	cuda_stream stream, const void *averaged, const struct device_rows *gradient);
/* to <- from, converting; shapes and counts are the same, strides are each one's own. */
int kernel_copy_rows(
	cuda_stream stream, const struct device_rows *from, const struct device_rows *to);
/* Every element of `count` at data <- value. */
int kernel_fill(cuda_stream stream, void *data, enum element type, size_t count, float value);

/* (samples, rows, 3 heads width) as (q | k | v) -> three tensors (samples * heads, rows, width), one after the
 * other; and back (gradients, all three).  And (samples * heads, rows, width) -> (samples, rows, heads width). */
struct heads_task {
	uint32_t samples, rows, heads, width;
	enum element type;
	size_t ld, sample_stride; /* of the packed side */
};
int kernel_split_heads(cuda_stream stream, const struct heads_task *task, const void *packed,
	void *qkv, unsigned parts);
int kernel_join_heads(cuda_stream stream, const struct heads_task *task, const void *parts_data,
	void *packed, unsigned parts);

/* logits (samples, rows, columns) are overwritten by scale times the gradient of
 * -ln softmax(row)[label of the sample modulo columns]; losses (samples * rows) float gets that per row, and
 * loss[0] their mean, in a fixed order.  A sample whose label is CUDA_LABEL_MASKED has neither: both are 0. */
#define CUDA_LABEL_MASKED UINT32_MAX /* BATCH_LABEL_MASKED of workloads/backend/batch.h */
int kernel_softmax_cross_entropy(cuda_stream stream, const struct device_rows *logits,
	const uint32_t *labels, float scale, float *losses, float *loss);

/* --- fp8 (kernels_cast.cu) ----------------------------------------------------------------------------- */

/* Quantises with scale = max_of_type / max(amax_before, tiny), written to *scale_inverse (1 / scale) for the
 * product, and collects this tensor's own amax in amax_next for the next step (delayed scaling).  amax_before <= 0:
 * the tensor's own amax is taken first (first step).  out: (rows, columns) compact; transposed: (columns, rows)
 * compact; either may be NULL.  Values beyond the range saturate. */
struct quantise_task {
	struct device_rows from;
	enum element type; /* e4m3 or e5m2 */
	void *out, *transposed;
	float *amax;          /* (1): in: before; out: this tensor's */
	float *scale_inverse; /* (1) */
	float *scratch;       /* kernel_quantise_scratch floats */
};
int kernel_quantise(cuda_stream stream, const struct quantise_task *task);
size_t kernel_quantise_scratch(const struct quantise_task *task);

/* --- parameters (kernels_optimizer.cu) ------------------------------------------------------------------ */

/* One launch over all parameters of the model, which lie in one array of `count`.  Rules as in
 * workloads/backend/network.h: sgd v <- 0.9 v + g, w <- w - rate v; adam with its corrections.  The gradient is
 * multiplied by gradient_factor first (1 / loss scale / steps accumulated).  With skip (may be NULL), *skip != 0 leaves
 * everything as it is. */
struct optimizer_task {
	float *weights; /* fp32 master */
	const float *gradients;
	float *velocity;       /* sgd */
	float *first, *second; /* adam */
	void *computed; /* copy that products take, of element type `type`; NULL: weights themselves */
	enum element type;
	size_t count;
	float learning_rate, gradient_factor;
	/* Adam: the number of updates so far, on the device, so that a recorded graph can be launched again for step after step.
	 * The corrections are computed from it, and unless the update is skipped it is counted up by one, in a launch of its own. */
	uint32_t *step;
	const uint32_t *skip;
};
int kernel_sgd(cuda_stream stream, const struct optimizer_task *task);
int kernel_adam(cuda_stream stream, const struct optimizer_task *task);
/* *skip <- number of non-finite gradients, capped; partials: kernel_reduce_partials(count) floats. */
int kernel_find_nonfinite(
	cuda_stream stream, const float *gradients, size_t count, uint32_t *skip, float *partials);

/* --- statistics (kernels_optimizer.cu) ------------------------------------------------------------------ */

size_t kernel_reduce_partials(size_t count); /* floats of scratch for a reduction over count */
/* out[0] <- sum of squares of the finite, out[1] <- number of non-finite; in double. */
int kernel_gradient_statistics(
	cuda_stream stream, const float *values, size_t count, double *out, float *partials);
/* out[0] <- sum, out[1] <- sum of squares, out[2] <- number of non-finite. */
int kernel_activation_statistics(
	cuda_stream stream, const struct device_rows *x, double *out, float *partials);

/* What both leave, in the words of struct step_result: out (4) <- norm of the gradient, times gradient_factor; share of
 * non-finite gradients; mean and standard deviation of the finite activations (NAN without any). */
struct statistics_task {
	const double *gradient, *activation; /* (2), (3): as above */
	double gradient_count, activation_count, gradient_factor;
	double *out;
};
int kernel_finish_statistics(cuda_stream stream, const struct statistics_task *task);

/* --- augmentation (kernels_augment.cu) -------------------------------------------------------------------- */

struct batch_picture;
/* Pictures of different sizes -> samples of size x size, all in one launch: crop box, triangle filter widened when
 * shrinking (antialias), flip, and (x / 255 - mean) / deviation for float, or rounded bytes.  pictures: (count), on the
 * device. */
struct augment_task {
	const uint8_t *bytes;
	const struct batch_picture *pictures;
	uint32_t count, size;
	bool antialias, is_float, channels_last;
	void *out; /* (count, 3, size, size) or (count, size, size, 3) */
};
int kernel_augment(cuda_stream stream, const struct augment_task *task);

/* --- probe (kernels_copy.cu) ------------------------------------------------------------------------------ */

int kernel_nothing(cuda_stream stream);
int kernel_memory_copy(
	cuda_stream stream, const void *from, void *to, size_t bytes); /* 16-byte accesses */

#ifdef __cplusplus
}
#endif

#endif
