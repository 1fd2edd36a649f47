/* Numbers of every element type on the host, written down a second time: rounding to nearest even, saturating in fp8.  And
 * arrays of them on the device, in a frame of poison. */
#ifndef MLBENCH_TESTS_DEVICE_DEVICE_VALUES_H
#define MLBENCH_TESTS_DEVICE_DEVICE_VALUES_H

#include "harness/base/rng.h"
#include "workloads/backend/cuda/kernels.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Poison is NaN in every type; the frame leaves what lies behind it aligned to 16 bytes and no more. */
enum { DEVICE_FRAME_BYTES = 1024 + 16, DEVICE_POISON = 0xff };

#define DEVICE_OK(call) assert_int_equal((int)(call), 0)

/* mantissa: explicit bits; least: exponent of the smallest normal number. */
struct value_format {
	int exponent_bits, mantissa_bits, least;
	double largest;
};

static inline struct value_format value_format(enum element type)
{
	switch (type) {
	case ELEMENT_BF16:
		return (struct value_format){8, 7, -126, 0x1.fep127};
	case ELEMENT_F16:
		return (struct value_format){5, 10, -14, 65504};
	case ELEMENT_E4M3:
		return (struct value_format){4, 3, -6, 448};
	case ELEMENT_E5M2:
		return (struct value_format){5, 2, -14, 57344};
	case ELEMENT_F32:
	default:
		return (struct value_format){8, 23, -126, 0x1.fffffep127};
	}
}

/* Half the distance from 1 to the next number: the unit roundoff. */
static inline double value_roundoff(enum element type)
{
	return ldexp(0.5, -value_format(type).mantissa_bits);
}

/* The nearest number of that type; all finite. */
static inline double value_rounded(enum element type, double value)
{
	const struct value_format format = value_format(type);
	if (value == 0 || isnan(value))
		return value;
	int exponent = 0;
	(void)frexp(value, &exponent);
	exponent = exponent - 1 < format.least ? format.least : exponent - 1;
	const double unit = ldexp(1, exponent - format.mantissa_bits);
	const double rounded = nearbyint(value / unit) * unit;
	return fmin(fmax(rounded, -format.largest), format.largest);
}

static inline void value_store(enum element type, void *array, size_t i, double value)
{
	const struct value_format format = value_format(type);
	const double rounded = value_rounded(type, value);
	const double size = fabs(rounded);
	int exponent = 0;
	(void)frexp(size, &exponent);
	exponent--;
	uint32_t bits = 0;
	if (size > 0 && exponent >= format.least)
		bits = ((uint32_t)(exponent - format.least + 1) << format.mantissa_bits) |
		       (uint32_t)ldexp(size - ldexp(1, exponent), format.mantissa_bits - exponent);
	else if (size > 0)
		bits = (uint32_t)ldexp(size, format.mantissa_bits - format.least);
	if (signbit(rounded))
		bits |= 1u << (format.exponent_bits + format.mantissa_bits);
	memcpy((char *)array + i * element_bytes(type), &bits, element_bytes(type));
}

static inline double value_load(enum element type, const void *array, size_t i)
{
	const struct value_format format = value_format(type);
	uint32_t bits = 0;
	memcpy(&bits, (const char *)array + i * element_bytes(type), element_bytes(type));
	const uint32_t exponents = (1u << format.exponent_bits) - 1;
	const uint32_t exponent = bits >> format.mantissa_bits & exponents;
	const uint32_t mantissa = bits & ((1u << format.mantissa_bits) - 1);
	const double sign = bits >> (format.exponent_bits + format.mantissa_bits) & 1 ? -1.0 : 1.0;
	if (type == ELEMENT_E4M3 && (bits & 0x7f) == 0x7f)
		return NAN;
	if (type != ELEMENT_E4M3 && exponent == exponents)
		return mantissa ? (double)NAN : sign * (double)INFINITY;
	if (exponent == 0)
		return sign * ldexp(mantissa, format.least - format.mantissa_bits);
	return sign * ldexp(mantissa + ldexp(1, format.mantissa_bits),
			      (int)exponent - 1 + format.least - format.mantissa_bits);
}

/* On the device and on the host, with poison in front and behind. */
struct device_array {
	enum element type;
	size_t count, bytes;
	char *memory; /* on the device, with the frame */
	char *data;
	char *host; /* (bytes) */
};

static inline void device_array_poison(struct device_array *array)
{
	DEVICE_OK(cudaMemset(
		array->memory, DEVICE_POISON, array->bytes + 2 * (size_t)DEVICE_FRAME_BYTES));
	DEVICE_OK(cudaDeviceSynchronize());
	memset(array->host, DEVICE_POISON, array->bytes);
}

static inline struct device_array device_array(enum element type, size_t count)
{
	struct device_array array = {
		.type = type, .count = count, .bytes = count * element_bytes(type)};
	array.host = malloc(array.bytes);
	assert_non_null(array.host);
	DEVICE_OK(cudaMalloc((void **)&array.memory, array.bytes + 2 * (size_t)DEVICE_FRAME_BYTES));
	array.data = array.memory + DEVICE_FRAME_BYTES;
	device_array_poison(&array);
	return array;
}

static inline void device_array_free(struct device_array *array)
{
	DEVICE_OK(cudaFree(array->memory));
	free(array->host);
	*array = (struct device_array){0};
}

static inline void device_array_up(const struct device_array *array)
{
	DEVICE_OK(cudaMemcpy(array->data, array->host, array->bytes, cudaMemcpyHostToDevice));
	DEVICE_OK(cudaDeviceSynchronize());
}

/* And the frame must be as it was. */
static inline void device_array_down(const struct device_array *array)
{
	unsigned char frame[2][DEVICE_FRAME_BYTES];
	DEVICE_OK(cudaDeviceSynchronize());
	DEVICE_OK(cudaMemcpy(array->host, array->data, array->bytes, cudaMemcpyDeviceToHost));
	DEVICE_OK(cudaMemcpy(frame[0], array->memory, DEVICE_FRAME_BYTES, cudaMemcpyDeviceToHost));
	DEVICE_OK(cudaMemcpy(
		frame[1], array->data + array->bytes, DEVICE_FRAME_BYTES, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < DEVICE_FRAME_BYTES; i++)
		assert_true(frame[0][i] == DEVICE_POISON && frame[1][i] == DEVICE_POISON);
}

static inline double device_array_get(const struct device_array *array, size_t i)
{
	return value_load(array->type, array->host, i);
}

static inline void device_array_set(const struct device_array *array, size_t i, double value)
{
	value_store(array->type, array->host, i, value);
}

/* Whether element i still is poison. */
static inline bool device_array_untouched(const struct device_array *array, size_t i)
{
	const size_t size = element_bytes(array->type);
	for (size_t byte = 0; byte < size; byte++)
		if ((unsigned char)array->host[i * size + byte] != DEVICE_POISON)
			return false;
	return true;
}

static inline double uniform(struct rng *rng)
{
	return 2 * rng_uniform(rng) - 1;
}

#endif
