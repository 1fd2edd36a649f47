/* The kind volume: a 3-D array a file (.npy, or an array of an .npz), of which a random box becomes
 * the sample, flipped along each axis by chance, as float32 (C, D, H, W); and the class of its file.
 *
 * An array is (D, H, W) or (C, D, H, W), of any type and order that npy.h reads.  Elements are taken in
 * the order in which they lie, run by run along the axis that is fastest in memory, so that a deflated
 * array is unpacked once, through a window of a fixed size: a large claim costs no memory.  All of a zip's
 * entry is read for its CRC-32, as zipfile does below np.load: what that refuses is no sample here, and a
 * twin of such a job does the same work.  An .npy has no checksum. */
#include "harness/base/files.h"
#include "harness/base/rng.h"
#include "workloads/sample/npy.h"
#include "workloads/sample/sample.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>

enum {
	VOLUME_AXES = 4, /* C, D, H, W */
	VOLUME_EDGE_MAX = 4096,
	VOLUME_VALUES_MAX = 1 << 28, /* in a sample: 1 GiB of them */
	VOLUME_WINDOW_BYTES = 256 * 1024,
	VOLUME_CUT_MOST = VOLUME_WINDOW_BYTES / 2, /* of one run, or of a header */
};
_Static_assert(VOLUME_CUT_MOST >= VOLUME_EDGE_MAX * 8, "a run is within the window");
_Static_assert(VOLUME_CUT_MOST >= NPY_HEAD_BYTES + NPY_HEADER_MAX, "and so is a header");

/* (C, D, H, W); false: volume.crop is not three numbers. */
static bool sample_volume_lengths(const struct config *config, uint32_t out[VOLUME_AXES])
{
	unsigned depth = 0;
	unsigned height = 0;
	unsigned width = 0;
	int end = 0;
	const char *const text = config_text(config, KEY_VOLUME_CROP);
	const bool read = sscanf(text, "%4ux%4ux%4u%n", &depth, &height, &width, &end) == 3 &&
			  text[end] == '\0' && strspn(text, "0123456789x") == strlen(text);
	out[0] = (uint32_t)config_integer(config, KEY_VOLUME_CHANNELS);
	out[1] = read ? depth : 1;
	out[2] = read ? height : 1;
	out[3] = read ? width : 1;
	return read;
}

static int sample_volume_validate(const struct config *config, struct error *err)
{
	uint32_t lengths[VOLUME_AXES];
	const char *const text = config_text(config, KEY_VOLUME_CROP);
	uint64_t values = 1;
	bool good = sample_volume_lengths(config, lengths);
	for (size_t i = 0; i < VOLUME_AXES; i++) {
		good = good && lengths[i] >= 1 && lengths[i] <= VOLUME_EDGE_MAX;
		values *= lengths[i];
	}
	if (!good)
		return error_set(err, -EINVAL,
			"'volume.crop' = %.60s is not depth x height x width, each 1 to %d, as in 128x128x128",
			text, VOLUME_EDGE_MAX);
	return values <= VOLUME_VALUES_MAX ? 0
					   : error_set(err, -EINVAL,
						     "'volume.crop' = %.60s is %" PRIu64
						     " values a sample; %d are the limit",
						     text, values, VOLUME_VALUES_MAX);
}

static void sample_volume_shape(const struct config *config, struct sample_shape *out)
{
	*out = (struct sample_shape){.type = BATCH_FLOAT32, .dimensions = VOLUME_AXES};
	(void)sample_volume_lengths(config, out->of);
}

static size_t sample_volume_labels(const struct config *config)
{
	(void)config;
	return sizeof(uint32_t);
}

/* ---- a worker ------------------------------------------------------------------------------- */

struct volume_worker {
	uint32_t lengths[VOLUME_AXES];
	double flip;
	const char *array; /* of an .npz, the configuration's; "": the only one that is a volume */
	const atomic_bool *stop;
	struct inflate_state inflate;
	uint8_t window[VOLUME_WINDOW_BYTES];
};

static uint64_t sample_volume_scratch(const struct config *config, const struct dataset *dataset)
{
	(void)config;
	(void)dataset;
	return sizeof(struct volume_worker);
}

static int sample_volume_open(void **out, const struct sample_options *options, struct error *err)
{
	struct volume_worker *const worker = calloc(1, sizeof *worker);
	*out = worker;
	if (!worker)
		return error_set(err, -ENOMEM, "no memory to unpack volumes");
	(void)sample_volume_lengths(options->config, worker->lengths);
	worker->flip = config_real(options->config, KEY_VOLUME_FLIP);
	worker->array = config_text(options->config, KEY_VOLUME_ARRAY);
	worker->stop = options->stop;
	return 0;
}

static void sample_volume_close(void *worker)
{
	free(worker);
}

/* The bytes of an .npy, wherever they are. */
struct volume_bytes {
	const uint8_t
		*whole; /* NULL: to be unpacked, the window having [held_at, held_at + held) */
	uint64_t size, held_at;
	size_t held;
	bool zipped;
	uint32_t crc; /* of a zip's entry, by its directory */
	struct volume_worker *worker;
};

/* Unpacks into the window, some bytes at least. */
static int volume_unpack(struct volume_bytes *bytes, struct error *err)
{
	struct inflate_state *const inflate = &bytes->worker->inflate;
	const uint64_t left = bytes->size - bytes->held_at - bytes->held;
	const size_t free_bytes = VOLUME_WINDOW_BYTES - bytes->held;
	const uint32_t room = (uint32_t)(left < free_bytes ? left : free_bytes);
	const atomic_bool *const stop = bytes->worker->stop;
	if (stop && atomic_load_explicit(stop, memory_order_relaxed))
		return -EINTR;
	inflate->next_out = bytes->worker->window + bytes->held;
	inflate->avail_out = room;
	const int status = isal_inflate(inflate);
	if (status != ISAL_DECOMP_OK && status != ISAL_END_INPUT)
		return error_set(err, -EINVAL, "npz: its array cannot be unpacked: damaged");
	if (inflate->avail_out == room)
		return error_set(err, -EINVAL,
			"npz: its array ends after %" PRIu64 " of %" PRIu64 " bytes",
			bytes->held_at + bytes->held, bytes->size);
	bytes->held += room - inflate->avail_out;
	return 0;
}

/* Bytes [offset, offset + size) of the .npy, valid until the next call; offsets never fall.  They are
 * within its size, and size is at most VOLUME_CUT_MOST. */
static int volume_fetch(struct volume_bytes *bytes, uint64_t offset, size_t size,
	const uint8_t **out, struct error *err)
{
	int code = 0;
	if (bytes->whole) {
		*out = bytes->whole + offset;
		return 0;
	}
	while (!code && bytes->held_at + bytes->held < offset + size) {
		/* What lies before offset makes room. */
		const uint64_t before = offset - bytes->held_at;
		const size_t gone = before < bytes->held ? (size_t)before : bytes->held;
		if (VOLUME_WINDOW_BYTES - bytes->held < VOLUME_CUT_MOST || gone == bytes->held) {
			uint8_t *const window = bytes->worker->window;
			memmove(window, window + gone, bytes->held - gone);
			bytes->held -= gone;
			bytes->held_at += gone;
		}
		code = volume_unpack(bytes, err);
	}
	*out = bytes->worker->window + (offset - bytes->held_at);
	return code;
}

/* All of a zip's entry has the checksum that its directory says; what is still packed is unpacked. */
static int volume_check_sum(struct volume_bytes *bytes, struct error *err)
{
	int code = 0;
	if (!bytes->zipped)
		return 0;
	while (!code && !bytes->whole && bytes->held_at + bytes->held < bytes->size) {
		bytes->held_at += bytes->held;
		bytes->held = 0;
		code = volume_unpack(bytes, err);
	}
	if (code)
		return code;
	const uint32_t crc = bytes->whole ? crc32_gzip_refl(0, bytes->whole, bytes->size)
					  : bytes->worker->inflate.crc;
	return crc == bytes->crc ? 0
				 : error_set(err, -EINVAL,
					   "npz: its array is damaged: CRC-32 %08" PRIx32
					   ", and its directory says %08" PRIx32,
					   crc, bytes->crc);
}

static int volume_begin_entry(struct volume_bytes *bytes, struct volume_worker *worker,
	const struct sample_task *task, const struct npz_entry *entry, struct error *err)
{
	*bytes = (struct volume_bytes){.whole = (const uint8_t *)task->bytes + entry->offset,
		.size = entry->bytes,
		.zipped = true,
		.crc = entry->crc,
		.worker = worker};
	if (entry->method == NPZ_STORED)
		return 0;
	if (entry->stored > UINT32_MAX)
		return error_set(err, -EINVAL, "npz: a packed array of 4 GiB or more");
	isal_inflate_init(&worker->inflate);
	worker->inflate.next_in = (uint8_t *)(uintptr_t)bytes->whole;
	worker->inflate.avail_in = (uint32_t)entry->stored;
	worker->inflate.crc_flag =
		ISAL_GZIP_NO_HDR; /* deflate, with gzip's CRC of what comes out */
	bytes->whole = NULL;
	return 0;
}

static int volume_read_header(
	struct volume_bytes *bytes, struct npy_array *array, struct error *err)
{
	static const size_t most = NPY_HEAD_BYTES + NPY_HEADER_MAX;
	const size_t size = bytes->size < most ? (size_t)bytes->size : most;
	const uint8_t *head;
	int code = volume_fetch(bytes, 0, size, &head, err);
	if (!code)
		code = npy_read_header(head, size, array, err);
	if (code == -EAGAIN)
		code = error_set(err, -EINVAL, "npy: cut short within its header");
	return code ? code : npy_check_bytes(array, bytes->size, err);
}

/* The arrays of an .npz, for messages. */
struct volume_list {
	char text[200];
	size_t used;
};

static void volume_list_add(
	struct volume_list *list, const struct npz_entry *entry, const struct npy_array *array)
{
	const size_t room = sizeof list->text;
	char shape[64] = "";
	for (size_t i = 0, used = 0; array && i < array->dimensions && used < sizeof shape; i++)
		used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%" PRIu64,
			i > 0 ? "x" : "", array->shape[i]);
	if (list->used < room)
		list->used += (size_t)snprintf(list->text + list->used, room - list->used,
			"%s%.*s%s%s%s", list->used > 0 ? ", " : "",
			(int)(entry->name_size < 40 ? entry->name_size : 40), entry->name,
			*shape ? " (" : "", shape, *shape ? ")" : "");
}

static bool volume_has_name(const struct npz_entry *entry, const char *name)
{
	return strlen(name) == entry->name_size && memcmp(name, entry->name, entry->name_size) == 0;
}

/* The array that volume.array names; or the only one, or the only one that is a volume by its header. */
static int volume_find_entry(struct volume_bytes *bytes, struct volume_worker *worker,
	const struct sample_task *task, struct npz_entry *found, struct error *err)
{
	struct npz_directory zip;
	struct npz_entry entry;
	struct volume_list all = {.used = 0}, volumes = {.used = 0};
	struct error ignored;
	size_t arrays = 0;
	size_t count = 0;
	int code = npz_open(&zip, task->bytes, task->size, err);
	const uint64_t first = zip.at;
	while (!code && (code = npz_next_array(&zip, &entry, err)) > 0) {
		code = 0;
		arrays++;
		volume_list_add(&all, &entry, NULL);
		*found = entry;
		if (*worker->array && volume_has_name(&entry, worker->array))
			return 0;
	}
	if (code || (arrays == 1 && !*worker->array))
		return code;
	if (arrays == 0)
		return error_set(err, -EINVAL, "npz: there is no .npy in it");
	if (*worker->array)
		return error_set(err, -EINVAL,
			"npz: it has no array '%.60s' (volume.array), but %s", worker->array,
			all.text);
	zip.at = first;
	zip.taken = 0;
	all.used = 0;
	while ((code = npz_next_array(&zip, &entry, err)) > 0) {
		struct npy_array array = {0};
		code = volume_begin_entry(bytes, worker, task, &entry, &ignored);
		if (!code)
			code = volume_read_header(bytes, &array, &ignored);
		if (code == -EINTR)
			return code;
		volume_list_add(&all, &entry, code ? NULL : &array);
		if (code || (array.dimensions != 3 && array.dimensions != VOLUME_AXES))
			continue;
		volume_list_add(&volumes, &entry, &array);
		*found = entry;
		count++;
	}
	if (code || count == 1)
		return code;
	return error_set(err, -EINVAL,
		count > 1 ? "npz: it has several volumes: set volume.array to one of %s"
			  : "npz: none of its arrays is a volume, (D, H, W) or (C, D, H, W): %s",
		count > 1 ? volumes.text : all.text);
}

static int volume_bytes_open(struct volume_bytes *bytes, struct volume_worker *worker,
	const struct sample_task *task, struct error *err)
{
	struct npz_entry entry = {0};
	*bytes = (struct volume_bytes){.whole = task->bytes, .size = task->size, .worker = worker};
	if (!npy_is_zip(task->bytes, task->size))
		return 0;
	const int code = volume_find_entry(bytes, worker, task, &entry, err);
	return code ? code : volume_begin_entry(bytes, worker, task, &entry, err);
}

/* ---- numbers -------------------------------------------------------------------------------- */

typedef void volume_convert(const uint8_t *from, size_t count, float *to, ptrdiff_t step);

static inline float volume_half(uint16_t bits)
{
	const uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
	const uint32_t exponent = (uint32_t)(bits >> 10) & 31;
	const uint32_t fraction = (uint32_t)bits & 1023;
	if (exponent == 0) /* zero, and what is smaller than 2^-14: fraction x 2^-24 */
		return (sign ? -1.0f : 1.0f) * (float)fraction * 0x1p-24f;
	const uint32_t whole =
		sign | (exponent == 31 ? 255U : exponent + 112) << 23 | fraction << 13;
	float out;
	memcpy(&out, &whole, sizeof out);
	return out;
}

static inline uint8_t volume_same8(uint8_t value)
{
	return value;
}

/* For each type a function for each order of bytes; one loop is contiguous, and vectorised. */
#define VOLUME_LOOP(bits, SWAP, VALUE, index)                    \
	for (size_t i = 0; i < count; i++) {                     \
		uint##bits##_t raw;                              \
		memcpy(&raw, from + i * sizeof raw, sizeof raw); \
		raw = SWAP(raw);                                 \
		to[index] = VALUE;                               \
	}
#define VOLUME_CONVERT(name, bits, SWAP, VALUE)                                                 \
	static void volume_##name(const uint8_t *from, size_t count, float *to, ptrdiff_t step) \
	{                                                                                       \
		if (step == 1) {                                                                \
			VOLUME_LOOP(bits, SWAP, VALUE, i)                                       \
		} else {                                                                        \
			VOLUME_LOOP(bits, SWAP, VALUE, (ptrdiff_t)i *step)                      \
		}                                                                               \
	}
#define VOLUME_BOTH(name, bits, VALUE)                      \
	VOLUME_CONVERT(name, bits, (uint##bits##_t), VALUE) \
	VOLUME_CONVERT(name##_big, bits, __builtin_bswap##bits, VALUE)

static inline float volume_float(uint32_t raw)
{
	float value;
	memcpy(&value, &raw, sizeof value);
	return value;
}

static inline float volume_double(uint64_t raw)
{
	double value;
	memcpy(&value, &raw, sizeof value);
	return (float)value;
}

VOLUME_CONVERT(u1, 8, volume_same8, (float)raw)
VOLUME_CONVERT(i1, 8, volume_same8, (float)(int8_t)raw)
VOLUME_BOTH(u2, 16, (float)raw)
VOLUME_BOTH(i2, 16, (float)(int16_t)raw)
VOLUME_BOTH(f2, 16, volume_half(raw))
VOLUME_BOTH(u4, 32, (float)raw)
VOLUME_BOTH(i4, 32, (float)(int32_t)raw)
VOLUME_BOTH(f4, 32, volume_float(raw))
VOLUME_BOTH(u8, 64, (float)raw)
VOLUME_BOTH(i8, 64, (float)(int64_t)raw)
VOLUME_BOTH(f8, 64, volume_double(raw))

/* npy_read_header lets no other through. */
static volume_convert *volume_converter(const struct npy_array *array)
{
	static const struct {
		char kind;
		uint32_t size;
		volume_convert *of[2]; /* little and big */
	} types[] = {
		{'u', 1, {volume_u1, volume_u1}},
		{'b', 1, {volume_u1, volume_u1}},
		{'i', 1, {volume_i1, volume_i1}},
		{'u', 2, {volume_u2, volume_u2_big}},
		{'i', 2, {volume_i2, volume_i2_big}},
		{'f', 2, {volume_f2, volume_f2_big}},
		{'u', 4, {volume_u4, volume_u4_big}},
		{'i', 4, {volume_i4, volume_i4_big}},
		{'f', 4, {volume_f4, volume_f4_big}},
		{'u', 8, {volume_u8, volume_u8_big}},
		{'i', 8, {volume_i8, volume_i8_big}},
		{'f', 8, {volume_f8, volume_f8_big}},
	};
	size_t i = 0;
	while (types[i].kind != array->kind || types[i].size != array->size)
		i++;
	return types[i].of[array->big];
}

/* ---- the sample ----------------------------------------------------------------------------- */

/* One axis of an array: of its elements `count` from `start` on, and where these go. */
struct volume_axis {
	uint64_t length, start, count;
	ptrdiff_t step; /* floats from one to the next in the sample; < 0: flipped */
};

static int volume_check_shape(
	const struct npy_array *array, const uint32_t wanted[VOLUME_AXES], struct error *err)
{
	if (array->dimensions != 3 && array->dimensions != VOLUME_AXES)
		return error_set(err, -EINVAL,
			"an array of %u dimensions; a volume has (D, H, W) or (C, D, H, W)",
			array->dimensions);
	const uint64_t channels = array->dimensions == VOLUME_AXES ? array->shape[0] : 1;
	const uint64_t *const edges = array->shape + array->dimensions - 3;
	if (channels != wanted[0])
		return error_set(err, -EINVAL,
			"it has %" PRIu64 " channel%s, and volume.channels is %u", channels,
			channels == 1 ? "" : "s", wanted[0]);
	if (edges[0] < wanted[1] || edges[1] < wanted[2] || edges[2] < wanted[3])
		return error_set(err, -EINVAL,
			"%" PRIu64 "x%" PRIu64 "x%" PRIu64 ", smaller than volume.crop = %ux%ux%u",
			edges[0], edges[1], edges[2], wanted[1], wanted[2], wanted[3]);
	return 0;
}

/* The box, in the order of axes in which elements lie: the fastest last. */
static float *volume_choose(const struct volume_worker *worker, const struct npy_array *array,
	uint64_t seed, float *out, struct volume_axis axes[VOLUME_AXES])
{
	struct volume_axis own[VOLUME_AXES];
	struct rng rng;
	ptrdiff_t stride = 1;
	size_t used = 0;
	rng_init(&rng, seed, 0);
	for (size_t i = VOLUME_AXES; i-- > 0; stride *= (ptrdiff_t)worker->lengths[i]) {
		const uint64_t count = worker->lengths[i];
		const uint64_t length =
			i > 0 ? array->shape[array->dimensions + i - VOLUME_AXES] : count;
		const uint64_t start = rng_below(&rng, length - count + 1);
		const bool flip = i > 0 && rng_uniform(&rng) < worker->flip;
		own[i] = (struct volume_axis){length, start, count, flip ? -stride : stride};
		out += flip ? (ptrdiff_t)(count - 1) * stride : 0;
	}
	/* Axes of one element are put in front, so that runs are as long as can be. */
	for (int longer = 0; longer < 2; longer++)
		for (size_t i = 0; i < VOLUME_AXES; i++) {
			const size_t at = array->fortran ? VOLUME_AXES - 1 - i : i;
			if ((own[at].length > 1) == (longer > 0))
				axes[used++] = own[at];
		}
	return out;
}

static int volume_copy(struct volume_bytes *bytes, const struct npy_array *array,
	const struct volume_axis axes[VOLUME_AXES], float *out, struct error *err)
{
	volume_convert *const convert = volume_converter(array);
	const struct volume_axis *const run = &axes[3];
	const size_t run_bytes = (size_t)run->count * array->size;
	for (uint64_t i = 0; i < axes[0].count; i++)
		for (uint64_t j = 0; j < axes[1].count; j++)
			for (uint64_t k = 0; k < axes[2].count; k++) {
				uint64_t element = axes[0].start + i;
				element = element * axes[1].length + axes[1].start + j;
				element = element * axes[2].length + axes[2].start + k;
				element = element * run->length + run->start;
				const uint8_t *from;
				const int code = volume_fetch(bytes,
					array->header_bytes + element * array->size, run_bytes,
					&from, err);
				if (code)
					return code;
				convert(from, (size_t)run->count,
					out + (ptrdiff_t)i * axes[0].step +
						(ptrdiff_t)j * axes[1].step +
						(ptrdiff_t)k * axes[2].step,
					run->step);
			}
	return 0;
}

static int sample_volume_make(void *context, const struct sample_task *task, struct error *err)
{
	struct volume_worker *const worker = context;
	struct volume_bytes bytes;
	struct npy_array array;
	struct volume_axis axes[VOLUME_AXES];
	sample_put_class(task);
	int code = volume_bytes_open(&bytes, worker, task, err);
	if (!code)
		code = volume_read_header(&bytes, &array, err);
	if (!code)
		code = volume_check_shape(&array, worker->lengths, err);
	if (code)
		return code;
	float *const out =
		volume_choose(worker, &array, task->seed, (float *)(void *)task->out, axes);
	code = volume_copy(&bytes, &array, axes, out, err);
	return code ? code : volume_check_sum(&bytes, err);
}

/* ---- files ---------------------------------------------------------------------------------- */

static bool sample_volume_takes(const char *name)
{
	return files_name_ends(name, ".npy") || files_name_ends(name, ".npz");
}

static const char *sample_volume_endings(char out[SAMPLE_ENDINGS_BYTES])
{
	(void)snprintf(out, SAMPLE_ENDINGS_BYTES, ".npy or .npz");
	return out;
}

/* A zip has its directory at its end: what it holds is seen when it is read. */
static int sample_volume_look(
	const void *head, size_t size, uint64_t file_bytes, struct sample *out, struct error *err)
{
	struct npy_array array;
	(void)out;
	if (npy_is_zip(head, size))
		return 0;
	const int code = npy_read_header(head, size, &array, err);
	return code ? code : npy_check_bytes(&array, file_bytes, err);
}

static const struct sample_file_ops volume_files = {
	.called = "volumes",
	.takes = sample_volume_takes,
	.endings = sample_volume_endings,
	.look = sample_volume_look,
};

static const enum key_id volume_keys[] = {
	KEY_VOLUME_CROP, KEY_VOLUME_CHANNELS, KEY_VOLUME_FLIP, KEY_VOLUME_ARRAY};

/* The box stays where the seed puts it. */
static int sample_volume_settle(struct config *config, struct error *err)
{
	return config_set_key(config, KEY_VOLUME_FLIP, "0", err);
}

const struct sample_ops sample_volume = {
	.name = "volume",
	.summary =
		"one 3-D array a file (.npy; .npz, its CRC-32 checked): a random box of it, flipped; its class",
	.shape = sample_volume_shape,
	.label_bytes = sample_volume_labels,
	.make = sample_volume_make,
	.scratch_bytes = sample_volume_scratch,
	.open = sample_volume_open,
	.close = sample_volume_close,
	.settle = sample_volume_settle,
	.validate = sample_volume_validate,
	.keys = volume_keys,
	.key_count = sizeof volume_keys / sizeof *volume_keys,
	.size_key = "volume.crop",
	.files = &volume_files,
};
