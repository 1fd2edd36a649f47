/* Decoding on more and more cores.  Threads go where the kernel puts them, as the workers of a run do;
 * each takes pictures in its own order and times itself, so that none waits for another. */
#include "workloads/dataset/probe_decode.h"

#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "workloads/dataset/maker.h"
#include "workloads/image/picture.h"
#include "workloads/image/transform.h"
#include "workloads/source/store.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a handful of encoded pictures in memory ------------------------------------------------ */

static const size_t BYTES_MOST = (size_t)64 << 20;

struct totals {
	double width, height, bytes;
	const char *format;
};

static int set_open(struct picture_set *set, size_t count, struct error *err)
{
	*set = (struct picture_set){0};
	set->pictures = calloc(count, sizeof *set->pictures);
	return set->pictures ? 0 : error_set(err, -ENOMEM, "out of memory");
}

/* Takes bytes; false: no picture. */
static bool probe_pictures_add(
	struct picture_set *set, struct totals *totals, uint8_t *bytes, size_t size)
{
	struct image_info info;
	struct error why;
	if (image_read_info(bytes, size, &info, &why) || image_check_bytes(&info, size, &why)) {
		free(bytes);
		return false;
	}
	set->pictures[set->count++] = (struct picture_bytes){.bytes = bytes, .size = size};
	image_extents_add(&set->extents, info.format, info.width, info.height);
	totals->width += info.width;
	totals->height += info.height;
	totals->bytes += (double)size;
	totals->format = image_format_name(info.format);
	return true;
}

static void probe_pictures_describe(
	struct picture_set *set, const struct totals *totals, const char *from)
{
	char size[UNITS_BYTES];
	const double n = (double)set->count;
	(void)snprintf(set->what, sizeof set->what,
		"%zu %.140s: %s, %.0f x %.0f pixels, %s (means)", set->count, from, totals->format,
		totals->width / n, totals->height / n, units_format_size(totals->bytes / n, size));
}

/* A whole file of the store; NULL: it could not be read. */
static uint8_t *probe_read_picture(struct store *store, const char *path, size_t *size)
{
	union store_file file;
	if (store->ops->file_open(store, path, false, &file) != 0)
		return NULL;
	const uint64_t bytes = store_file_bytes(store, path, &file);
	uint8_t *const data = bytes > 0 && bytes <= BYTES_MOST ? malloc(bytes) : NULL;
	ssize_t n = 1;
	for (*size = 0; data && n > 0 && *size<bytes; *size += n> 0 ? (size_t)n : 0)
		n = store->ops->read(store, file, *size, data + *size, bytes - *size);
	store->ops->file_close(store, file);
	return data;
}

int pictures_load(const struct dataset *dataset, size_t most, const struct probe_control *control,
	struct picture_set *set, struct error *err)
{
	const size_t count = dataset->count < most ? dataset->count : most;
	struct totals totals = {0};
	struct store *store = NULL;
	int code = set_open(set, count ? count : 1, err);
	if (!code)
		code = store_open(&store, dataset->root, err);
	for (size_t i = 0; i < count && !code && totals.bytes < (double)BYTES_MOST; i++) {
		const size_t index = i * dataset->count / count;
		size_t size;
		uint8_t *const bytes =
			probe_read_picture(store, dataset->samples[index].path, &size);
		if (bytes)
			(void)probe_pictures_add(set, &totals, bytes, size);
		if (probe_time_over(control))
			code = error_set(err, -EINTR, "no time was left to read pictures");
	}
	store_close(store);
	if (!code && set->count == 0)
		code = error_set(err, -ENODATA, "no file of '%s' could be read", dataset->root);
	if (!code) {
		char from[NOTE_BYTES];
		(void)snprintf(from, sizeof from, "files of %.120s", dataset->root);
		probe_pictures_describe(set, &totals, from);
	}
	return code;
}

/* Painted by this one thread: some tenths of a second. */
static int paint(
	struct picture_atlas *atlas, const struct probe_control *control, struct error *err)
{
	int code = 0;
	for (unsigned tile = 0; tile < picture_atlas_tiles() && !code; tile++)
		code = probe_stopped(control) ? error_set(err, -EINTR, "stopped")
					      : picture_atlas_paint(atlas, tile, err);
	return code;
}

static int probe_pictures_make_one(struct picture_set *set, struct totals *totals,
	struct maker *maker, const struct recipe *recipe, const struct picture_atlas *atlas,
	struct error *err)
{
	const uint8_t *made;
	size_t size;
	const int code = maker_make(
		maker, recipe, atlas, set->count, PICTURE_DETAIL_NATURAL, &made, &size, err);
	if (code)
		return code;
	uint8_t *bytes = malloc(size);
	if (!bytes)
		return error_set(err, -ENOMEM, "out of memory");
	memcpy(bytes, made, size);
	return probe_pictures_add(set, totals, bytes, size)
		       ? 0
		       : error_set(err, -EINVAL, "a generated picture cannot be decoded");
}

static int make_all(struct picture_set *set, size_t count, const struct recipe *recipe,
	const struct probe_control *control, struct error *err)
{
	struct picture_atlas *atlas = NULL;
	struct maker maker = {0};
	struct totals totals = {0};
	int code = picture_atlas_open(&atlas, recipe->seed, err);
	if (!code)
		code = paint(atlas, control, err);
	if (!code)
		code = maker_open(&maker, recipe, err);
	for (size_t i = 0; i < count && !code; i++)
		code = probe_stopped(control)
			       ? error_set(err, -EINTR, "stopped")
			       : probe_pictures_make_one(set, &totals, &maker, recipe, atlas, err);
	maker_close(&maker);
	picture_atlas_close(atlas);
	if (!code)
		probe_pictures_describe(set, &totals, "generated pictures in memory");
	return code;
}

int pictures_make(const struct config *config, size_t count, const struct probe_control *control,
	struct picture_set *set, struct error *err)
{
	struct config own;
	struct recipe recipe;
	*set = (struct picture_set){0};
	int code = config_copy(&own, config, err);
	if (code)
		return code;
	/* A folder of the user's has no recipe: the defaults are a photograph of ImageNet's size. */
	code = config_set_key(&own, KEY_DATASET_RECIPE, "photo", err);
	if (!code)
		code = config_set_key(&own, KEY_DATASET_SAMPLES, "1", err);
	if (!code)
		code = recipe_read(&own, &recipe, err);
	config_release(&own);
	if (!code)
		code = set_open(set, count, err);
	return code ? code : make_all(set, count, &recipe, control, err);
}

void picture_set_release(struct picture_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		free(set->pictures[i].bytes);
	free(set->pictures);
	*set = (struct picture_set){0};
}

/* ---- decoding them ------------------------------------------------------------------------- */

struct worker {
	struct transform *transform;
	uint8_t *sample;
	size_t next; /* picture */
	double rate; /* samples/s in this slot */
	int code;
	struct error why;
};

struct decoding {
	const struct picture_set *set;
	const struct probe_control *control;
	struct worker *workers; /* (cores), owned */
	unsigned cores;
	uint64_t end_ns;
};

static void decoding_work(void *context, unsigned me)
{
	const struct decoding *decoding = context;
	const struct picture_set *set = decoding->set;
	struct worker *worker = &decoding->workers[me];
	const uint64_t begin = clock_now_ns();
	uint64_t now;
	uint64_t done = 0;
	do {
		const struct picture_bytes *picture = &set->pictures[worker->next % set->count];
		worker->code = transform_sample(worker->transform, picture->bytes, picture->size,
			worker->next++, worker->sample, NULL, &worker->why);
		now = clock_now_ns();
		done++;
	} while (!worker->code && now < decoding->end_ns && !probe_stopped(decoding->control));
	worker->rate = (double)done * (double)NS_PER_S / (double)(now - begin);
}

static int decoding_open(struct decoding *decoding, const struct config *config, struct error *err)
{
	const struct picture_set *set = decoding->set;
	const size_t bytes = transform_sample_bytes(config);
	decoding->workers = calloc(decoding->cores, sizeof *decoding->workers);
	int code = decoding->workers ? 0 : error_set(err, -ENOMEM, "out of memory");
	for (unsigned i = 0; i < decoding->cores && !code; i++) {
		struct worker *worker = &decoding->workers[i];
		worker->next = i;
		worker->sample = aligned_alloc(64, (bytes + 63) / 64 * 64);
		code = worker->sample ? transform_open(&worker->transform, config, &set->extents,
						NULL, err)
				      : error_set(err, -ENOMEM, "out of memory");
	}
	return code;
}

static void decoding_close(struct decoding *decoding)
{
	for (unsigned i = 0; decoding->workers && i < decoding->cores; i++) {
		transform_close(decoding->workers[i].transform);
		free(decoding->workers[i].sample);
	}
	free(decoding->workers);
}

static double decoding_rate(struct decoding *decoding, unsigned cores, int *code, struct error *err)
{
	double sum = 0;
	decoding->end_ns = probe_slot_end(decoding->control, clock_now_ns());
	*code = probe_crew(cores, false, decoding_work, decoding, err);
	for (unsigned i = 0; i < cores && !*code; i++) {
		const struct worker *worker = &decoding->workers[i];
		sum += worker->rate;
		if (worker->code)
			*code = error_set(err, worker->code, "%s", worker->why.text);
	}
	return *code || probe_stopped(decoding->control) ? (double)NAN : sum;
}

/* 1, 2, 4 ... and all. */
static size_t decoding_list_counts(unsigned cores, unsigned counts[CEILING_CORES_MAX])
{
	size_t n = 0;
	for (unsigned c = 1; c < cores && n + 1 < CEILING_CORES_MAX; c *= 2)
		counts[n++] = c;
	counts[n++] = cores;
	return n;
}

static void decoding_keep(
	const struct probe_values *values, const unsigned *counts, size_t n, struct ceilings *out)
{
	for (size_t i = 0; i < n; i++) {
		struct core_ceiling *entry = &out->decode[out->decode_count];
		entry->cores = counts[i];
		entry->samples_per_s = probe_median(&values[i], &entry->range);
		out->decode_count += values[i].count > 0;
	}
	out->decode_one_core = probe_median(&values[0], NULL);
	out->decode_all_cores = probe_median(&values[n - 1], NULL);
	out->cpu_scaling = out->decode_all_cores / ((double)counts[n - 1] * out->decode_one_core);
}

static int decoding_measure(struct decoding *decoding, const unsigned *counts, size_t n,
	struct probe_values *values, struct error *err)
{
	const struct probe_control *control = decoding->control;
	int code = 0;
	(void)decoding_rate(
		decoding, decoding->cores, &code, err); /* caches and clocks get going */
	for (unsigned round = 0; round < control->rounds && !code; round++) {
		if (probe_stopped(control) || (round > 0 && probe_time_over(control)))
			break;
		for (size_t i = 0; i < n && !code; i++)
			probe_add(&values[i], decoding_rate(decoding, counts[i], &code, err));
	}
	return code;
}

int probe_decode(const struct config *config, const struct picture_set *set, unsigned cores,
	const struct probe_control *control, struct ceilings *out, struct error *err)
{
	struct decoding decoding = {
		.set = set, .control = control, .cores = cores ? cores : probe_cores()};
	unsigned counts[CEILING_CORES_MAX];
	struct probe_values values[CEILING_CORES_MAX] = {0};
	const size_t n = decoding_list_counts(decoding.cores, counts);
	int code = decoding_open(&decoding, config, err);
	if (!code)
		code = decoding_measure(&decoding, counts, n, values, err);
	decoding_close(&decoding);
	(void)snprintf(out->decode_what, sizeof out->decode_what, "%s", set->what);
	decoding_keep(values, counts, n, out);
	if (probe_stopped(control))
		return -EINTR;
	return code;
}
