/* Products on the CPU.  Operands become packed floats, whatever they were; then one loop nest does all cases. */
#include "tests/device/double/lt_compute.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <vector>

namespace twin
{
namespace
{

enum { ROWS_AT_ONCE = 4, COLUMNS_AT_ONCE = 16, DEPTH_AT_ONCE = 256, TF32_DROPPED_BITS = 13 };

using floats = std::vector<float>;

float read(uint32_t type, const void *data, size_t index)
{
	const uint8_t *const bytes = (const uint8_t *)data;
	switch (type) {
	case CUDA_R_16BF:
		return __bfloat162float(((const __nv_bfloat16 *)data)[index]);
	case CUDA_R_16F:
		return __half2float(((const __half *)data)[index]);
	case CUDA_R_8F_E4M3:
		return __half2float(__half(__nv_cvt_fp8_to_halfraw(bytes[index], __NV_E4M3)));
	case CUDA_R_8F_E5M2:
		return __half2float(__half(__nv_cvt_fp8_to_halfraw(bytes[index], __NV_E5M2)));
	default:
		return ((const float *)data)[index];
	}
}

void write(uint32_t type, void *data, size_t index, float value)
{
	uint8_t *const bytes = (uint8_t *)data;
	switch (type) {
	case CUDA_R_16BF:
		((__nv_bfloat16 *)data)[index] = __float2bfloat16(value);
		break;
	case CUDA_R_16F:
		((__half *)data)[index] = __float2half(value);
		break;
	case CUDA_R_8F_E4M3:
		bytes[index] = __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
		break;
	case CUDA_R_8F_E5M2:
		bytes[index] = __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E5M2);
		break;
	default:
		((float *)data)[index] = value;
	}
}

float to_tf32(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof bits);
	if (!std::isfinite(value))
		return value;
	bits += 1U << (TF32_DROPPED_BITS - 1);
	bits &= ~((1U << TF32_DROPPED_BITS) - 1);
	memcpy(&value, &bits, sizeof value);
	return value;
}

/* Element (row, column) of a matrix as it lies. */
size_t place_of(const layout &of, uint64_t row, uint64_t column, uint64_t batch)
{
	const uint64_t inside = of.order == CUBLASLT_ORDER_COL ? column * (uint64_t)of.ld + row
							       : row * (uint64_t)of.ld + column;
	return (size_t)(inside + batch * (uint64_t)of.stride);
}

float scale_of(const product &asked, matrix which)
{
	const void *const scale = asked.how.scales[which];
	return scale ? *(const float *)scale : 1.0f;
}

/* op(A) or op(B) as (rows, columns) floats, compact and row-major. */
floats packed(const product &asked, matrix which, const void *data, uint64_t batch)
{
	const uint64_t rows = which == A ? asked.m : asked.k,
		       columns = which == A ? asked.k : asked.n;
	const bool turned = asked.how.transpose[which] != CUBLAS_OP_N,
		   tf32 = asked.how.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
	const layout &of = asked.of[which];
	floats out(rows * columns);
	for (uint64_t row = 0; row < rows; row++)
		for (uint64_t column = 0; column < columns; column++) {
			const size_t at = turned ? place_of(of, column, row, batch)
						 : place_of(of, row, column, batch);
			const float value = read(of.type, data, at);
			out[row * columns + column] = tf32 ? to_tf32(value) : value;
		}
	return out;
}

struct tile {
	uint64_t row, rows, column, columns, from, to; /* of k */
};

void multiply_edge(
	const product &asked, const floats &a, const floats &b, floats &sums, const tile &at)
{
	for (uint64_t p = at.from; p < at.to; p++)
		for (uint64_t r = at.row; r < at.row + at.rows; r++)
			for (uint64_t j = at.column; j < at.column + at.columns; j++)
				sums[r * asked.n + j] += a[r * asked.k + p] * b[p * asked.n + j];
}

typedef float four __attribute__((vector_size(16)));
typedef float eight __attribute__((vector_size(32)));

enum { VECTORS = 2 }; /* beside each other: with four rows, eight sums fill the registers */

/* A block of four rows and two vectors with its sums in registers.  An element's products are added one by one in the order of
 * k, so that every bit is that of multiply_edge. */
template <typename V>
inline __attribute__((always_inline)) void multiply_block(
	const product &asked, const float *a, const float *b, float *sums, uint64_t depth)
{
	V own[ROWS_AT_ONCE][VECTORS];
	for (unsigned r = 0; r < ROWS_AT_ONCE; r++)
		memcpy(own[r], sums + r * asked.n, sizeof own[r]);
	for (uint64_t p = 0; p < depth; p++, b += asked.n) {
		V right[VECTORS];
		memcpy(right, b, sizeof right);
		for (unsigned r = 0; r < ROWS_AT_ONCE; r++)
			for (unsigned v = 0; v < VECTORS; v++)
				own[r][v] += a[r * asked.k + p] * right[v];
	}
	for (unsigned r = 0; r < ROWS_AT_ONCE; r++)
		memcpy(sums + r * asked.n, own[r], sizeof own[r]);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) void multiply_wide(
	const product &asked, const float *a, const float *b, float *sums, uint64_t depth)
{
	multiply_block<eight>(asked, a, b, sums, depth);
}
bool has_wide()
{
	static const bool has = __builtin_cpu_supports("avx2");
	return has;
}
#else
void multiply_wide(const product &, const float *, const float *, float *, uint64_t)
{
}
bool has_wide()
{
	return false;
}
#endif

void multiply_tile(
	const product &asked, const floats &a, const floats &b, floats &sums, const tile &at)
{
	if (at.rows < ROWS_AT_ONCE || at.columns < COLUMNS_AT_ONCE)
		return multiply_edge(asked, a, b, sums, at);
	const float *const left = &a[at.row * asked.k + at.from];
	const float *const right = &b[at.from * asked.n + at.column];
	float *const out = &sums[at.row * asked.n + at.column];
	const uint64_t depth = at.to - at.from;
	if (has_wide())
		return multiply_wide(asked, left, right, out, depth);
	multiply_block<four>(asked, left, right, out, depth);
	multiply_block<four>(
		asked, left, right + COLUMNS_AT_ONCE / 2, out + COLUMNS_AT_ONCE / 2, depth);
}

void multiply_range(const product &asked, const floats &a, const floats &b, floats &sums,
	uint64_t from, uint64_t to)
{
	for (uint64_t p = from; p < to; p += DEPTH_AT_ONCE)
		for (uint64_t column = 0; column < asked.n; column += COLUMNS_AT_ONCE)
			for (uint64_t row = 0; row < asked.m; row += ROWS_AT_ONCE)
				multiply_tile(asked, a, b, sums,
					{row, std::min<uint64_t>(ROWS_AT_ONCE, asked.m - row),
						column,
						std::min<uint64_t>(
							COLUMNS_AT_ONCE, asked.n - column),
						p, std::min<uint64_t>(p + DEPTH_AT_ONCE, to)});
}

floats multiply(const product &asked, const floats &a, const floats &b, unsigned splits)
{
	floats sums(asked.m * asked.n);
	const uint64_t part = (asked.k + splits - 1) / splits;
	multiply_range(asked, a, b, sums, 0, std::min(part, asked.k));
	for (uint64_t from = part; from < asked.k; from += part) {
		floats partial(asked.m * asked.n);
		multiply_range(asked, a, b, partial, from, std::min(from + part, asked.k));
		for (size_t i = 0; i < sums.size(); i++)
			sums[i] += partial[i];
	}
	return sums;
}

bool mask_bit(const product &asked, uint64_t row, uint64_t column)
{
	const uint64_t bit = column * (uint64_t)asked.how.aux_ld + row;
	return ((const uint8_t *)asked.how.aux)[bit / 8] >> (bit % 8) & 1;
}

void set_mask_bit(const product &asked, uint64_t row, uint64_t column, bool value)
{
	const uint64_t bit = column * (uint64_t)asked.how.aux_ld + row;
	uint8_t &byte = ((uint8_t *)asked.how.aux)[bit / 8];
	byte = (uint8_t)((byte & ~(1U << (bit % 8))) | (unsigned)value << (bit % 8));
}

/* The sum of a gradient's rows or columns, which becomes a bias gradient. */
void sum_bias(const product &asked, const floats &from, uint64_t rows, uint64_t columns,
	bool over_columns)
{
	const uint64_t length = over_columns ? rows : columns;
	floats sums(length);
	for (uint64_t row = 0; row < rows; row++)
		for (uint64_t column = 0; column < columns; column++)
			sums[over_columns ? row : column] += from[row * columns + column];
	for (uint64_t i = 0; i < length; i++)
		write(bias_type(asked), asked.how.bias, i, sums[i]);
}

float activated(const product &asked, float value, uint64_t row, uint64_t column)
{
	const uint32_t epilogue = asked.how.epilogue;
	if (adds_bias(epilogue))
		value += read(bias_type(asked), asked.how.bias, row);
	if (writes_mask(epilogue))
		set_mask_bit(asked, row, column, value > 0);
	if (epilogue & CUBLASLT_EPILOGUE_RELU)
		return value > 0 ? value : value != value ? value : 0.0f;
	if (uses_mask(epilogue))
		return mask_bit(asked, row, column) ? value : 0.0f;
	return value;
}

void finish(const product &asked, const operands &given, floats &sums, uint64_t batch)
{
	const layout &c = asked.of[C], &d = asked.of[D];
	const float factor = given.alpha * scale_of(asked, A) * scale_of(asked, B),
		    c_factor = given.beta * scale_of(asked, C), d_factor = scale_of(asked, D);
	float amax = 0;
	for (uint64_t row = 0; row < asked.m; row++)
		for (uint64_t column = 0; column < asked.n; column++) {
			float value = factor * sums[row * asked.n + column];
			if (given.beta != 0)
				value += c_factor * read(c.type, given.data[C],
							    place_of(c, row, column, batch));
			value = activated(asked, value, row, column);
			sums[row * asked.n + column] = value;
			amax = std::max(amax, std::fabs(value));
			write(d.type, (void *)given.data[D], place_of(d, row, column, batch),
				value * d_factor);
		}
	if (asked.how.amax)
		*(float *)asked.how.amax = amax;
	if (asked.how.epilogue == CUBLASLT_EPILOGUE_DRELU_BGRAD)
		sum_bias(asked, sums, asked.m, asked.n, true);
}

} // namespace

void compute_product(const product &asked, const operands &given, unsigned splits)
{
	for (uint64_t batch = 0; batch < (uint64_t)asked.of[D].batch; batch++) {
		const floats a = packed(asked, A, given.data[A], batch),
			     b = packed(asked, B, given.data[B], batch);
		floats sums = multiply(asked, a, b, splits);
		if (asked.how.epilogue == CUBLASLT_EPILOGUE_BGRADA)
			sum_bias(asked, a, asked.m, asked.k, true);
		if (asked.how.epilogue == CUBLASLT_EPILOGUE_BGRADB)
			sum_bias(asked, b, asked.k, asked.n, false);
		finish(asked, given, sums, batch);
	}
}

} // namespace twin
