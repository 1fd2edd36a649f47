/* Crop, resize, flip and normalise of a whole batch in one launch, from pictures of any sizes.
 *
 * A block makes a tile of a sample, in the way of workloads/image: rows of the picture are resized across by weights in
 * fixed point and rounded to bytes, a chunk of them at a time into shared memory; the chunk is then added, by the
 * weights down, to the tile that its threads keep in registers.  So memory does not grow with the pictures.  Weights come
 * from the operations of workloads/image/resample.c in the same order, each rounded to double: the samples are the
 * host's, to the bit. */
#include "workloads/backend/batch.h"
#include "workloads/backend/cuda/kernels_common.h"

#include <math.h>

enum {
	TILE = 32,         /* columns and rows of a sample */
	CHUNK_ROWS = 32,   /* of the picture, at once in shared memory */
	CHUNK_TAPS = 32,   /* weights of a column at once there */
	DOWN = 8,          /* threads of a block down the tile; TILE across */
	OWN = TILE / DOWN, /* rows of a thread */
	AUGMENT_THREADS = TILE * DOWN,
	AUGMENT_BLOCKS_MAX = 1 << 16,
	AUGMENT_RESIDENT = 3,  /* blocks on a multiprocessor that the registers must suffice for */
	ACROSS_TAPS_ALIGN = 4, /* as in workloads/image/resample.c: it bounds the taps */
	DOWN_TAPS_ALIGN = 2,
	WEIGHT_BITS = 14, /* workloads/image/resample.h */
	WEIGHT_ONE = 1 << WEIGHT_BITS,
};

/* --- weights --------------------------------------------------------------------------------------- */

/* What is resized to what, as struct filter_axis; only pixels within [0, limit) exist. */
struct axis {
	double start, length;
	uint32_t limit, taps_align;
	bool antialias;
};

/* Pixels that an output averages, and what makes their weights. */
struct window {
	double centre, inverse, factor;
	uint32_t first, count;
};

/* Height of the triangle over input pixel i. */
CUDA_FUNCTION double triangle(const struct window &window, uint32_t i)
{
	const double distance = rounded_product(i + 0.5 - window.centre, window.inverse);
	const double height = 1 - fabs(distance);
	return height > 0 ? height : 0;
}

CUDA_FUNCTION uint32_t most_taps(const struct axis &axis, double support)
{
	const double covered = fmin(ceil(2 * support), (double)axis.limit);
	return ((uint32_t)covered + axis.taps_align - 1) / axis.taps_align * axis.taps_align;
}

CUDA_FUNCTION struct window find_window(const struct axis &axis, uint32_t output, uint32_t size)
{
	const double scale = axis.length / size;
	const double support = axis.antialias && scale > 1 ? scale : 1;
	const uint32_t taps = most_taps(axis, support);
	struct window window;
	window.centre = rounded_sum(axis.start, rounded_product(output + 0.5, scale));
	window.inverse = 1 / support;
	const double low = window.centre - support + 0.5;
	const double high = window.centre + support + 0.5;
	window.first = low > 0 ? (uint32_t)low : 0;
	const uint32_t end = high < axis.limit ? (uint32_t)high : axis.limit;
	const uint32_t count = end > window.first ? end - window.first : 0;
	window.count = count < taps ? count : taps;
	double total = 0;
	for (uint32_t i = 0; i < window.count; i++)
		total += triangle(window, window.first + i);
	window.factor = WEIGHT_ONE / total;
	return window;
}

/* The weights of a window, one after the other: the running sum is rounded, not each of them. */
struct weight_maker {
	double sum;
	int32_t before;
	uint32_t next; /* tap */
};

CUDA_FUNCTION struct weight_maker begin_weights()
{
	struct weight_maker maker;
	maker.sum = 0.5;
	maker.before = 0;
	maker.next = 0;
	return maker;
}

CUDA_FUNCTION int32_t next_weight(struct weight_maker *maker, const struct window &window)
{
	const double height = triangle(window, window.first + maker->next);
	maker->sum = rounded_sum(maker->sum, rounded_product(height, window.factor));
	const int32_t now = (int32_t)maker->sum;
	const int32_t rest = maker->next + 1 == window.count ? WEIGHT_ONE - now : 0;
	const int32_t weight = now - maker->before + rest;
	maker->before = now;
	maker->next++;
	return weight;
}

/* --- a tile ------------------------------------------------------------------------------------------- */

/* The shared memory of a block. */
struct workplace {
	struct window *across, *down; /* (TILE) each */
	int32_t *across_weights;      /* (CHUNK_TAPS, TILE) */
	int32_t *down_weights; /* (CHUNK_ROWS, TILE): of the rows within an output's window */
	uint32_t *rows;        /* (CHUNK_ROWS, TILE): pixels resized across, a byte a channel */
};

struct tile {
	uint32_t sample, x, y; /* of its first output */
	uint32_t width, height;
};

/* The picture's part that is looked at. */
struct source {
	const uint8_t *pixels;
	size_t stride;
};

/* What the taps of a tile's outputs span. */
struct span {
	uint32_t first_row, end_row; /* of the picture's part */
	uint32_t most_taps;          /* across */
};

struct pixel_sums {
	int32_t channels[CHANNELS];
};

CUDA_FUNCTION struct tile tile_at(uint64_t index, uint32_t size)
{
	const uint32_t edge = (size - 1) / TILE + 1;
	const uint32_t tiles = edge * edge;
	struct tile tile;
	tile.sample = (uint32_t)(index / tiles);
	const uint32_t inside = (uint32_t)(index - (uint64_t)tile.sample * tiles);
	tile.y = inside / edge * TILE;
	tile.x = inside % edge * TILE;
	tile.width = least<uint32_t>(size - tile.x, TILE);
	tile.height = least<uint32_t>(size - tile.y, TILE);
	return tile;
}

/* Whether the box is not empty and inside its pixels; NaN fails every comparison. */
CUDA_FUNCTION bool is_inside(float start, float length, uint32_t pixels)
{
	return start >= 0 && length > 0 && (double)start + (double)length <= (double)pixels;
}

CUDA_FUNCTION bool is_usable(const struct batch_picture &picture)
{
	return !picture.bad && is_inside(picture.x, picture.box_width, picture.width) &&
	       is_inside(picture.y, picture.box_height, picture.height);
}

/* One axis of the box: pixels that it touches are those from its floor to its ceiling. */
CUDA_FUNCTION struct axis box_axis(float start, float length, uint32_t pixels, uint32_t *first)
{
	const double begin = floor((double)start);
	const double end = fmin(ceil((double)start + (double)length), (double)pixels);
	struct axis axis;
	axis.start = (double)start - begin;
	axis.length = (double)length;
	axis.limit = (uint32_t)(end - begin);
	*first = (uint32_t)begin;
	return axis;
}

/* Where the part begins, and a window for each row and column of the tile, by one thread each. */
CUDA_FUNCTION struct source set_up(const struct augment_task &task,
	const struct batch_picture &picture, const struct tile &tile, const struct workplace &place)
{
	uint32_t left, top;
	struct axis across = box_axis(picture.x, picture.box_width, picture.width, &left);
	struct axis down = box_axis(picture.y, picture.box_height, picture.height, &top);
	across.antialias = down.antialias = task.antialias;
	across.taps_align = ACROSS_TAPS_ALIGN;
	down.taps_align = DOWN_TAPS_ALIGN;
	const uint32_t column = tile.x + threadIdx.x;
	if (threadIdx.y == 0 && threadIdx.x < tile.width)
		place.across[threadIdx.x] = find_window(
			across, picture.flip ? task.size - 1 - column : column, task.size);
	if (threadIdx.y == 1 && threadIdx.x < tile.height)
		place.down[threadIdx.x] = find_window(down, tile.y + threadIdx.x, task.size);
	struct source source;
	source.stride = (size_t)picture.width * CHANNELS;
	source.pixels = task.bytes + picture.offset + top * source.stride + (size_t)left * CHANNELS;
	return source;
}

CUDA_FUNCTION struct span find_span(const struct tile &tile, const struct workplace &place)
{
	struct span span;
	span.first_row = UINT32_MAX;
	span.end_row = span.most_taps = 0;
	for (uint32_t x = 0; x < tile.width; x++)
		span.most_taps = most<uint32_t>(span.most_taps, place.across[x].count);
	for (uint32_t y = 0; y < tile.height; y++) {
		const struct window &window = place.down[y];
		span.first_row = least<uint32_t>(span.first_row, window.first);
		span.end_row = most<uint32_t>(span.end_row, window.first + window.count);
	}
	return span;
}

/* Weights of taps [first, first + CHUNK_TAPS) of the thread's column. */
CUDA_FUNCTION void make_across(
	const struct workplace &place, struct weight_maker *maker, uint32_t first)
{
	const struct window &window = place.across[threadIdx.x];
	const uint32_t end = least<uint32_t>(window.count, first + CHUNK_TAPS);
	while (maker->next < end) {
		const uint32_t tap = maker->next - first;
		place.across_weights[tap * TILE + threadIdx.x] = next_weight(maker, window);
	}
}

/* Weights down of the chunk's rows, for the output that is the thread's. */
CUDA_FUNCTION void make_down(
	const struct workplace &place, struct weight_maker *maker, uint32_t chunk)
{
	const struct window &window = place.down[threadIdx.x];
	while (maker->next < window.count && window.first + maker->next < chunk + CHUNK_ROWS) {
		const uint32_t row = window.first + maker->next - chunk;
		place.down_weights[row * TILE + threadIdx.x] = next_weight(maker, window);
	}
}

CUDA_FUNCTION uint32_t round_sum(int32_t sum)
{
	return (uint32_t)((sum + WEIGHT_ONE / 2) >> WEIGHT_BITS) &
	       0xff; /* weights are not negative */
}

CUDA_FUNCTION uint32_t round_pixel(const struct pixel_sums &sums)
{
	return round_sum(sums.channels[0]) | round_sum(sums.channels[1]) << 8 |
	       round_sum(sums.channels[2]) << 16;
}

CUDA_FUNCTION void add_pixel(
	struct pixel_sums *sums, int32_t weight, uint32_t red, uint32_t green, uint32_t blue)
{
	sums->channels[0] += weight * (int32_t)red;
	sums->channels[1] += weight * (int32_t)green;
	sums->channels[2] += weight * (int32_t)blue;
}

/* The chunk's rows at the thread's column, taps [first, first + CHUNK_TAPS). */
CUDA_FUNCTION void add_across(const struct source &source, const struct workplace &place,
	uint32_t chunk, uint32_t rows, uint32_t first, struct pixel_sums (&sums)[OWN])
{
	const struct window &window = place.across[threadIdx.x];
	const uint32_t end = least<uint32_t>(window.count, first + CHUNK_TAPS);
	const uint8_t *const from = source.pixels + (size_t)(chunk + threadIdx.y) * source.stride +
				    (size_t)window.first * CHANNELS;
	for (uint32_t tap = first; tap < end; tap++) {
		const int32_t weight = place.across_weights[(tap - first) * TILE + threadIdx.x];
		CUDA_UNROLL
		for (int own = 0; own < OWN; own++) {
			if (threadIdx.y + (uint32_t)own * DOWN >= rows)
				continue;
			const uint8_t *const pixel = from + (size_t)(own * DOWN) * source.stride +
						     (size_t)tap * CHANNELS;
			add_pixel(&sums[own], weight, pixel[0], pixel[1], pixel[2]);
		}
	}
}

/* The chunk's rows into shared memory.  Weights that fit at once are made with the first chunk and stay. */
CUDA_FUNCTION void resize_across(const struct source &source, const struct tile &tile,
	const struct workplace &place, const struct span &span, uint32_t chunk, uint32_t rows)
{
	const bool is_mine = threadIdx.x < tile.width;
	const bool makes = span.most_taps > CHUNK_TAPS || chunk == span.first_row;
	struct pixel_sums sums[OWN] = {};
	struct weight_maker maker = begin_weights();
	for (uint32_t first = 0; first < span.most_taps; first += CHUNK_TAPS) {
		if (makes) {
			__syncthreads(); /* the weights before were read by all */
			if (is_mine && threadIdx.y == 0)
				make_across(place, &maker, first);
			__syncthreads();
		}
		if (is_mine)
			add_across(source, place, chunk, rows, first, sums);
	}
	CUDA_UNROLL
	for (int own = 0; own < OWN; own++)
		place.rows[(threadIdx.y + (uint32_t)own * DOWN) * TILE + threadIdx.x] =
			round_pixel(sums[own]);
}

/* The chunk's share of the thread's outputs. */
CUDA_FUNCTION void add_down(const struct tile &tile, const struct workplace &place, uint32_t chunk,
	uint32_t rows, struct pixel_sums (&sums)[OWN])
{
	CUDA_UNROLL
	for (int own = 0; own < OWN; own++) {
		const uint32_t y = threadIdx.y + (uint32_t)own * DOWN;
		if (y >= tile.height)
			continue;
		const struct window &window = place.down[y];
		const uint32_t begin = most<uint32_t>(window.first, chunk) - chunk;
		const uint32_t end = least<uint32_t>(window.first + window.count, chunk + rows);
		for (uint32_t row = begin; chunk + row < end; row++) {
			const uint32_t pixel = place.rows[row * TILE + threadIdx.x];
			add_pixel(&sums[own], place.down_weights[row * TILE + y], pixel & 0xff,
				pixel >> 8 & 0xff, pixel >> 16);
		}
	}
}

/* All threads of the block together. */
CUDA_FUNCTION void make_tile(const struct source &source, const struct tile &tile,
	const struct workplace &place, struct pixel_sums (&sums)[OWN])
{
	const struct span span = find_span(tile, place);
	const bool makes_down = threadIdx.y == 1 && threadIdx.x < tile.height;
	struct weight_maker maker = begin_weights();
	for (uint32_t chunk = span.first_row; chunk < span.end_row; chunk += CHUNK_ROWS) {
		const uint32_t rows = least<uint32_t>(span.end_row - chunk, CHUNK_ROWS);
		if (makes_down)
			make_down(place, &maker, chunk);
		resize_across(source, tile, place, span, chunk, rows);
		__syncthreads();
		add_down(tile, place, chunk, rows, sums);
		__syncthreads();
	}
}

/* --- samples ------------------------------------------------------------------------------------------ */

/* zero: the picture was bad, and the sample is zeros, as the host leaves it. */
CUDA_FUNCTION void store_pixel(const struct augment_task &task, uint32_t sample, uint32_t x,
	uint32_t y, uint32_t pixel, bool zero)
{
	const size_t plane = (size_t)task.size * task.size, at = (size_t)y * task.size + x;
	const size_t first = task.channels_last ? at * CHANNELS : at;
	const size_t stride = task.channels_last ? 1 : plane;
	const size_t begin = sample * plane * CHANNELS + first;
	CUDA_UNROLL
	for (unsigned c = 0; c < CHANNELS; c++) {
		const uint8_t level = (uint8_t)(pixel >> 8 * c & 0xff);
		if (task.is_float)
			((float *)task.out)[begin + c * stride] =
				zero ? 0.0f : normalised(level, c);
		else
			((uint8_t *)task.out)[begin + c * stride] = zero ? 0 : level;
	}
}

static __global__ void CUDA_THREADS(AUGMENT_THREADS, AUGMENT_RESIDENT)
	augment_kernel(struct augment_task task, uint64_t tiles)
{
	CUDA_SHARED(struct window, across, TILE);
	CUDA_SHARED(struct window, down, TILE);
	CUDA_SHARED(int32_t, across_weights, CHUNK_TAPS * TILE);
	CUDA_SHARED(int32_t, down_weights, CHUNK_ROWS * TILE);
	CUDA_SHARED(uint32_t, rows, CHUNK_ROWS * TILE);
	const struct workplace place = {across, down, across_weights, down_weights, rows};
	for (uint64_t index = blockIdx.x; index < tiles; index += gridDim.x) {
		const struct tile tile = tile_at(index, task.size);
		const struct batch_picture picture = task.pictures[tile.sample];
		const bool usable = is_usable(picture); /* the same for all threads */
		struct pixel_sums sums[OWN] = {};
		if (usable) {
			__syncthreads(); /* the windows before were read by all */
			const struct source source = set_up(task, picture, tile, place);
			__syncthreads();
			make_tile(source, tile, place, sums);
		}
		CUDA_UNROLL
		for (int own = 0; own < OWN; own++) {
			const uint32_t y = threadIdx.y + (uint32_t)own * DOWN;
			if (threadIdx.x < tile.width && y < tile.height)
				store_pixel(task, tile.sample, tile.x + threadIdx.x, tile.y + y,
					round_pixel(sums[own]), !usable);
		}
	}
}

int kernel_augment(cuda_stream stream, const struct augment_task *task)
{
	/* The area of a sample is counted in 32 bits. */
	if (!task->bytes || !task->pictures || !task->out || task->count == 0 || task->size == 0 ||
		task->size > UINT16_MAX)
		return (int)cudaErrorInvalidValue;
	const uint64_t edge = (task->size - 1) / TILE + 1, tiles = edge * edge * task->count;
	const dim3 blocks((unsigned)least<uint64_t>(tiles, AUGMENT_BLOCKS_MAX)),
		threads(TILE, DOWN);
	return CUDA_LAUNCH(augment_kernel, blocks, threads, stream, *task, tiles);
}
