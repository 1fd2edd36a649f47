/* Sums over whole tensors.  A bounded number of blocks each leave a partial, and a block adds those up: two launches, and
 * the same order every time.  Only finite elements are summed, in double; the others are counted. */
#include "workloads/backend/cuda/rows.h"

#include <float.h>
#include <math.h>

enum {
	REDUCE_BLOCKS_MAX = 1 << 10,
	PARTIAL_WORDS = 5, /* two doubles, in halves as scratch is of floats, and a count */
};

size_t kernel_reduce_partials(size_t count)
{
	(void)count; /* as many for any: 20 KiB */
	return (size_t)REDUCE_BLOCKS_MAX * PARTIAL_WORDS;
}

struct moments {
	double sum, squares;
	uint32_t nonfinite;
};

union double_words {
	double value;
	uint32_t words[2];
};

CUDA_FUNCTION void put_double(uint32_t *at, double value)
{
	union double_words both;
	both.value = value;
	at[0] = both.words[0];
	at[1] = both.words[1];
}

CUDA_FUNCTION double get_double(const uint32_t *at)
{
	union double_words both;
	both.words[0] = at[0];
	both.words[1] = at[1];
	return both.value;
}

/* What a thread has seen.  Without SUMS only the count is taken, at the speed of memory. */
template <class T, bool SUMS> struct take_moments {
	const T *data;
	struct row_places places;
	struct moments own;

	template <int N> __device__ void at(uint32_t row, size_t column)
	{
		float values[N];
		load_floats<N>(data + row_offset(places, row) + column, values);
		CUDA_UNROLL
		for (int i = 0; i < N; i++) {
			const bool is_finite = fabsf(values[i]) <= FLT_MAX;
			own.nonfinite += !is_finite;
			if (SUMS && is_finite) {
				const double value = (double)values[i];
				own.sum += value;
				own.squares += value * value;
			}
		}
	}
};

template <int N, class WORK>
__global__ void CUDA_THREADS(MAP_THREADS)
	reduce_kernel(WORK work, struct map_shape shape, uint32_t *partials)
{
	CUDA_SHARED(double, slots, MAP_THREADS);
	CUDA_SHARED(double, lanes, SUM_LANES);
	visit_tiles<N>(work, shape);
	/* Counts of a block are below 2^53 by far: exact as doubles. */
	const double sum = block_sum<MAP_THREADS>(work.own.sum, slots, lanes);
	const double squares = block_sum<MAP_THREADS>(work.own.squares, slots, lanes);
	const double nonfinite = block_sum<MAP_THREADS>((double)work.own.nonfinite, slots, lanes);
	if (threadIdx.x == 0 && threadIdx.y == 0) {
		uint32_t *const place = partials + blockIdx.x * PARTIAL_WORDS;
		put_double(place, sum);
		put_double(place + 2, squares);
		place[4] = (uint32_t)fmin(nonfinite, (double)UINT32_MAX);
	}
}

/* Where the result goes; NULL: not wanted. */
struct moments_out {
	double *sum, *squares, *nonfinite;
	uint32_t *capped; /* number of non-finite */
};

static __global__ void CUDA_THREADS(MAP_THREADS)
	add_partials_kernel(const uint32_t *partials, uint32_t blocks, struct moments_out out)
{
	CUDA_SHARED(double, slots, MAP_THREADS);
	CUDA_SHARED(double, lanes, SUM_LANES);
	double sum = 0, squares = 0, nonfinite = 0;
	for (uint32_t block = threadIdx.x; block < blocks; block += MAP_THREADS) {
		const uint32_t *const place = partials + block * PARTIAL_WORDS;
		sum += get_double(place);
		squares += get_double(place + 2);
		nonfinite += (double)place[4];
	}
	sum = block_sum<MAP_THREADS>(sum, slots, lanes);
	squares = block_sum<MAP_THREADS>(squares, slots, lanes);
	nonfinite = block_sum<MAP_THREADS>(nonfinite, slots, lanes);
	if (threadIdx.x != 0)
		return;
	if (out.sum)
		*out.sum = sum;
	if (out.squares)
		*out.squares = squares;
	if (out.nonfinite)
		*out.nonfinite = nonfinite;
	if (out.capped)
		*out.capped = (uint32_t)fmin(nonfinite, (double)UINT32_MAX);
}

/* What is reduced: (rows, columns); compact matrices and arrays are one long row. */
struct reduce_source {
	const void *data;
	struct row_places places;
	uint32_t rows;
	size_t columns;
	bool is_wide;
};

template <bool SUMS, class T>
static int run_reduce(cuda_stream stream, const struct reduce_source *source, uint32_t *partials,
	const struct moments_out *out)
{
	typedef take_moments<T, SUMS> taking;
	constexpr int WIDTH = wide<T>::COUNT;
	taking work;
	work.data = (const T *)source->data;
	work.places = source->places;
	work.own.sum = work.own.squares = 0;
	work.own.nonfinite = 0;
	struct map_launch launch;
	if (!partials ||
		!map_plan(&launch, source->is_wide ? WIDTH : 1, source->rows, source->columns))
		return (int)cudaErrorInvalidValue;
	const unsigned blocks = least<unsigned>(launch.blocks, REDUCE_BLOCKS_MAX);
	const dim3 threads(launch.across, launch.down);
	int result;
	if (source->is_wide)
		result = CUDA_LAUNCH((reduce_kernel<WIDTH, taking>), dim3(blocks), threads, stream,
			work, launch.shape, partials);
	else
		result = CUDA_LAUNCH((reduce_kernel<1, taking>), dim3(blocks), threads, stream,
			work, launch.shape, partials);
	if (result)
		return result;
	return CUDA_LAUNCH(add_partials_kernel, dim3(1), dim3(MAP_THREADS), stream,
		(const uint32_t *)partials, blocks, *out);
}

static struct reduce_source array_source(const float *values, size_t count)
{
	struct reduce_source source;
	source.data = values;
	source.places = row_places_of(1, 0, 0, 1);
	source.rows = values ? 1 : 0;
	source.columns = count;
	source.is_wide = is_aligned(values, ACCESS_BYTES);
	return source;
}

static struct reduce_source rows_source(const struct device_rows *x)
{
	const bool joined = is_compact(x);
	const uint32_t rows = count_rows(x);
	struct reduce_source source;
	source.data = x->data;
	source.places = row_places(x);
	source.rows = joined && rows ? 1 : rows;
	source.columns = joined ? (size_t)rows * x->columns : x->columns;
	source.is_wide =
		joined ? is_aligned(x->data, ACCESS_BYTES) : rows_are_aligned(x, ACCESS_BYTES);
	return source;
}

int kernel_find_nonfinite(
	cuda_stream stream, const float *gradients, size_t count, uint32_t *skip, float *partials)
{
	const struct reduce_source source = array_source(gradients, count);
	const struct moments_out out = {NULL, NULL, NULL, skip};
	if (!skip)
		return (int)cudaErrorInvalidValue;
	return run_reduce<false, float>(stream, &source, (uint32_t *)partials, &out);
}

int kernel_gradient_statistics(
	cuda_stream stream, const float *values, size_t count, double *out, float *partials)
{
	const struct reduce_source source = array_source(values, count);
	const struct moments_out moments = {NULL, out, out + 1, NULL};
	if (!out)
		return (int)cudaErrorInvalidValue;
	return run_reduce<true, float>(stream, &source, (uint32_t *)partials, &moments);
}

int kernel_activation_statistics(
	cuda_stream stream, const struct device_rows *x, double *out, float *partials)
{
	const struct reduce_source source = rows_source(x);
	const struct moments_out moments = {out, out + 1, out + 2, NULL};
	if (!out)
		return (int)cudaErrorInvalidValue;
	FOR_ELEMENT(x->type, run_reduce<true, T>(stream, &source, (uint32_t *)partials, &moments));
}
