/* For tests of kernels, on the test double and on a device alike: buffers whose every byte is known before a run, matrices
 * of any type and stride in them, and comparison with a reference in double.
 *
 * Each run is made twice from the same contents, and must give the same bits. */
#ifndef MLBENCH_TESTS_DEVICE_KERNEL_FIXTURE_H
#define MLBENCH_TESTS_DEVICE_KERNEL_FIXTURE_H

#include "harness/base/rng.h"
#include "workloads/backend/cuda/kernels.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BUFFERS_MAX = 16, POISON = 0xff, GUARD_BYTES = 64 };

/* 0xff in every byte is a NaN in each element type. */
struct device_buffer {
	uint8_t *device, *initial, *result; /* initial: what a run finds; result: what it left */
	size_t bytes;
};

struct fixture {
	struct device_buffer buffers[BUFFERS_MAX];
	size_t count;
	struct rng rng;
};

static inline void fixture_begin(struct fixture *fixture, uint64_t seed)
{
	*fixture = (struct fixture){0};
	rng_init(&fixture->rng, seed, 0);
}

static inline void fixture_end(struct fixture *fixture)
{
	for (size_t i = 0; i < fixture->count; i++) {
		struct device_buffer *const buffer = &fixture->buffers[i];
		assert_int_equal(cudaFree(buffer->device), 0);
		free(buffer->initial);
		free(buffer->result);
	}
	fixture->count = 0;
}

/* Poisoned, with a guard behind its end that has to stay so. */
static inline struct device_buffer *add_buffer(struct fixture *fixture, size_t bytes)
{
	assert_true(fixture->count < BUFFERS_MAX);
	struct device_buffer *const buffer = &fixture->buffers[fixture->count++];
	buffer->bytes = bytes + GUARD_BYTES;
	buffer->initial = malloc(buffer->bytes);
	buffer->result = malloc(buffer->bytes);
	assert_non_null(buffer->initial);
	assert_non_null(buffer->result);
	memset(buffer->initial, POISON, buffer->bytes);
	void *device = NULL;
	assert_int_equal(cudaMalloc(&device, buffer->bytes), 0);
	buffer->device = device;
	return buffer;
}

typedef int (*run_fn)(void *argument);

static inline void run_once(struct fixture *fixture, run_fn run, void *argument)
{
	for (size_t i = 0; i < fixture->count; i++) {
		const struct device_buffer *const buffer = &fixture->buffers[i];
		assert_int_equal(cudaMemcpy(buffer->device, buffer->initial, buffer->bytes,
					 cudaMemcpyHostToDevice),
			0);
	}
	assert_int_equal(run(argument), 0);
	assert_int_equal(cudaDeviceSynchronize(), 0);
}

static inline void fetch(const struct device_buffer *buffer, uint8_t *to)
{
	assert_int_equal(cudaMemcpy(to, buffer->device, buffer->bytes, cudaMemcpyDeviceToHost), 0);
}

/* All buffers as they were, run, twice: the same bits both times, and guards untouched. */
static inline void run_twice(struct fixture *fixture, run_fn run, void *argument)
{
	run_once(fixture, run, argument);
	for (size_t i = 0; i < fixture->count; i++)
		fetch(&fixture->buffers[i], fixture->buffers[i].result);
	run_once(fixture, run, argument);
	for (size_t i = 0; i < fixture->count; i++) {
		const struct device_buffer *const buffer = &fixture->buffers[i];
		uint8_t *const again = malloc(buffer->bytes);
		assert_non_null(again);
		fetch(buffer, again);
		assert_memory_equal(again, buffer->result, buffer->bytes);
		free(again);
		for (size_t at = buffer->bytes - GUARD_BYTES; at < buffer->bytes; at++)
			assert_int_equal(buffer->result[at], POISON);
	}
}

static inline void assert_unchanged(const struct device_buffer *buffer)
{
	assert_memory_equal(buffer->result, buffer->initial, buffer->bytes);
}

/* --- elements, in software ------------------------------------------------------------------------------ */

/* Of the formats: bits behind the binary point, exponents of the least normal number. */
struct element_format {
	int fraction_bits, least_exponent;
	double largest;
};

static inline struct element_format format_of(enum element type)
{
	switch (type) {
	case ELEMENT_F32:
		return (struct element_format){23, -126, 0x1.fffffep127};
	case ELEMENT_BF16:
		return (struct element_format){7, -126, 0x1.fep127};
	case ELEMENT_F16:
		return (struct element_format){10, -14, 65504};
	case ELEMENT_E4M3:
		return (struct element_format){3, -6, 448};
	case ELEMENT_E5M2:
		return (struct element_format){2, -14, 57344};
	}
	abort();
}

/* The nearest number of the type, ties to even; infinity beyond its range. */
static inline double rounded_to(enum element type, double value)
{
	if (!isfinite(value) || value == 0)
		return value;
	const struct element_format format = format_of(type);
	int exponent;
	(void)frexp(value, &exponent); /* value = f * 2^exponent, 0.5 <= f < 1 */
	const int least = format.least_exponent + 1;
	const int step = (exponent > least ? exponent : least) - 1 - format.fraction_bits;
	const double result = ldexp(nearbyint(ldexp(value, -step)), step);
	return fabs(result) > format.largest ? copysign(INFINITY, value) : result;
}

static inline double get_element(enum element type, const void *at)
{
	uint32_t bits = 0;
	memcpy(&bits, at, element_bytes(type));
	if (type == ELEMENT_BF16)
		bits <<= 16;
	if (type == ELEMENT_F32 || type == ELEMENT_BF16) {
		float value;
		memcpy(&value, &bits, sizeof value);
		return value;
	}
	const struct element_format format = format_of(type);
	const int width = (int)element_bytes(type) * 8,
		  exponent_bits = width - 1 - format.fraction_bits;
	const uint32_t fraction = bits & ((1u << format.fraction_bits) - 1);
	const uint32_t exponent = (bits >> format.fraction_bits) & ((1u << exponent_bits) - 1);
	const double sign = bits >> (width - 1) ? -1 : 1;
	const bool is_top = exponent == (1u << exponent_bits) - 1;
	if (type == ELEMENT_E4M3 && is_top && fraction == 7)
		return NAN;
	if (type != ELEMENT_E4M3 && is_top)
		return fraction ? NAN : sign * INFINITY;
	if (exponent == 0)
		return sign * ldexp(fraction, format.least_exponent - format.fraction_bits);
	return sign * ldexp(fraction + (1u << format.fraction_bits),
			      format.least_exponent + (int)exponent - 1 - format.fraction_bits);
}

/* f32, bf16, f16; the value is rounded. */
static inline void put_element(enum element type, void *at, double value)
{
	const double nearest = rounded_to(type, value);
	if (type != ELEMENT_F16) {
		const float number = (float)nearest;
		uint32_t bits;
		memcpy(&bits, &number, sizeof bits);
		if (type == ELEMENT_BF16)
			bits = isnan(nearest) ? 0x7fff : bits >> 16;
		memcpy(at, &bits, element_bytes(type));
		return;
	}
	uint16_t bits = signbit(nearest) ? 0x8000 : 0;
	if (isnan(nearest)) {
		bits = 0x7fff;
	} else if (isinf(nearest)) {
		bits = (uint16_t)(bits | 0x7c00);
	} else if (fabs(nearest) < 0x1p-14) {
		bits = (uint16_t)(bits | (uint16_t)ldexp(fabs(nearest), 24));
	} else {
		int exponent;
		const double fraction = frexp(fabs(nearest), &exponent); /* [0.5, 1) */
		bits = (uint16_t)(bits | (uint16_t)((exponent + 14) << 10) |
				  ((uint16_t)ldexp(fraction, 11) & 0x3ff));
	}
	memcpy(at, &bits, sizeof bits);
}

/* --- matrices -------------------------------------------------------------------------------------------- */

struct matrix_shape {
	uint32_t samples, rows, columns;
	uint32_t ld_gap, sample_gap; /* elements */
	uint32_t offset;             /* of the first element, from a boundary of 256 bytes */
};

struct matrix {
	struct device_rows rows; /* as kernels take it */
	struct device_buffer *buffer;
	size_t offset; /* bytes */
};

static inline size_t matrix_place(
	const struct matrix *matrix, size_t sample, size_t row, size_t column)
{
	const struct device_rows *const rows = &matrix->rows;
	return matrix->offset +
	       (sample * rows->sample_stride + row * rows->ld + column) * element_bytes(rows->type);
}

static inline struct matrix add_matrix(
	struct fixture *fixture, enum element type, const struct matrix_shape *shape)
{
	struct matrix matrix = {
		.rows = {.type = type,
			.samples = shape->samples,
			.rows = shape->rows,
			.columns = shape->columns,
			.ld = shape->columns + shape->ld_gap},
		.offset = shape->offset * element_bytes(type),
	};
	matrix.rows.sample_stride = shape->rows * matrix.rows.ld + shape->sample_gap;
	matrix.buffer = add_buffer(fixture,
		matrix.offset + shape->samples * matrix.rows.sample_stride * element_bytes(type));
	matrix.rows.data = matrix.buffer->device + matrix.offset;
	return matrix;
}

/* From here on: elements by their number, rows of all samples counted through. */
static inline size_t matrix_count(const struct matrix *matrix)
{
	return (size_t)matrix->rows.samples * matrix->rows.rows * matrix->rows.columns;
}

static inline size_t numbered_place(const struct matrix *matrix, size_t number)
{
	const size_t row = number / matrix->rows.columns;
	return matrix_place(matrix, row / matrix->rows.rows, row % matrix->rows.rows,
		number % matrix->rows.columns);
}

static inline double initial_element(const struct matrix *matrix, size_t number)
{
	return get_element(
		matrix->rows.type, matrix->buffer->initial + numbered_place(matrix, number));
}

static inline double result_element(const struct matrix *matrix, size_t number)
{
	return get_element(
		matrix->rows.type, matrix->buffer->result + numbered_place(matrix, number));
}

static inline void set_initial(struct matrix *matrix, size_t number, double value)
{
	put_element(
		matrix->rows.type, matrix->buffer->initial + numbered_place(matrix, number), value);
}

static inline double uniform_in(struct fixture *fixture, double amplitude)
{
	return amplitude * (2 * rng_uniform(&fixture->rng) - 1);
}

static inline void fill_random(struct fixture *fixture, struct matrix *matrix, double amplitude)
{
	for (size_t i = 0; i < matrix_count(matrix); i++)
		set_initial(matrix, i, uniform_in(fixture, amplitude));
}

/* Bytes that are no element are as they were. */
static inline void assert_gaps_untouched(const struct matrix *matrix)
{
	const struct device_buffer *const buffer = matrix->buffer;
	bool *const covered = calloc(buffer->bytes, sizeof *covered);
	assert_non_null(covered);
	for (size_t i = 0; i < matrix_count(matrix); i++)
		for (size_t byte = 0; byte < element_bytes(matrix->rows.type); byte++)
			covered[numbered_place(matrix, i) + byte] = true;
	for (size_t at = 0; at < buffer->bytes; at++)
		if (!covered[at])
			assert_int_equal(buffer->result[at], buffer->initial[at]);
	free(covered);
}

/* --- tolerances -------------------------------------------------------------------------------------------- */

/* Half a unit in the last place, relative to the number. */
static inline double unit_roundoff(enum element type)
{
	return ldexp(1, -format_of(type).fraction_bits - 1);
}

/* A result of the type that was computed in float: `operations` roundings of intermediate values up to `magnitude`, and
 * one to the type.  Below its least normal number, half of the least step; and a few least floats, where intermediates are
 * below theirs. */
static inline double allowed_error(
	enum element type, double wanted, double magnitude, double operations)
{
	const struct element_format format = format_of(type);
	const double computing = operations * unit_roundoff(ELEMENT_F32) * magnitude;
	const double storing = unit_roundoff(type) * (fabs(wanted) + computing);
	const double least = ldexp(1, format.least_exponent - format.fraction_bits - 1);
	return computing + storing + least + 0x1p-146;
}

static inline void assert_close(
	enum element type, double got, double wanted, double magnitude, double operations)
{
	const double allowed = allowed_error(type, wanted, magnitude, operations);
	if (!(fabs(got - wanted) <= allowed))
		fail_msg("%.9g is not %.9g to %.3g", got, wanted, allowed);
}

/* Shapes that take every path: wide and narrow accesses, ends of rows, gaps, rows that registers do not hold. */
static const struct matrix_shape kernel_shapes[] = {
	{1, 1, 1, 0, 0, 0},
	{1, 1, 8, 0, 0, 0},
	{3, 1, 5, 0, 3, 0},
	{2, 3, 5, 3, 8, 0},
	{2, 7, 64, 0, 0, 0},
	{2, 7, 64, 0, 0, 1},
	{2, 7, 63, 1, 0, 0},
	{4, 49, 72, 8, 16, 0},
	{1, 300, 40, 0, 0, 0},
	{2, 2, 1000, 0, 0, 0},
	{1, 3, 4099, 5, 0, 0},
	{2, 2, 4104, 0, 8, 0},
	{1, 2, 8211, 0, 0, 3},
};

static const enum element kernel_types[] = {ELEMENT_F32, ELEMENT_BF16, ELEMENT_F16};

enum {
	SHAPES = sizeof kernel_shapes / sizeof *kernel_shapes,
	TYPES = sizeof kernel_types / sizeof *kernel_types,
};

#define FOR_EACH_SHAPE(type_name, shape_name)                                                 \
	for (size_t t_ = 0; t_ < TYPES; t_++)                                                 \
		for (size_t s_ = 0; s_ < SHAPES; s_++)                                        \
			for (bool once_ = true; once_;)                                       \
				for (const enum element type_name = kernel_types[t_]; once_;) \
					for (const struct matrix_shape *const shape_name =    \
							&kernel_shapes[s_];                   \
						once_; once_ = false)

#endif
