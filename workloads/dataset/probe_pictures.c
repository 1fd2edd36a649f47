/* A handful of encoded pictures in memory. */
#include "workloads/dataset/probe_pictures.h"

#include "harness/base/files.h"
#include "harness/base/units.h"
#include "workloads/dataset/maker.h"
#include "workloads/image/picture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int pictures_load(const struct dataset *dataset, size_t most, const struct probe_control *control,
	struct picture_set *set, struct error *err)
{
	const size_t count = dataset->count < most ? dataset->count : most;
	struct totals totals = {0};
	int code = set_open(set, count ? count : 1, err);
	for (size_t i = 0; i < count && !code && totals.bytes < (double)BYTES_MOST; i++) {
		const size_t index = i * dataset->count / count;
		char *path = files_join(dataset->root, dataset->samples[index].path);
		char *bytes = NULL;
		size_t size = 0;
		struct error why;
		if (path && files_read(path, BYTES_MOST, &bytes, &size, &why) == 0)
			(void)probe_pictures_add(set, &totals, (uint8_t *)bytes, size);
		free(path);
		if (probe_time_over(control))
			code = error_set(err, -EINTR, "no time was left to read pictures");
	}
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
