/* Making samples on more and more cores, by the kind's own table.  Threads go where the kernel puts them,
 * as the workers of a run do; each takes samples in its own order and times itself, so that none waits for
 * another. */
#include "workloads/dataset/probe_decode.h"

#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "workloads/dataset/maker.h"
#include "workloads/dataset/manifest.h"
#include "workloads/image/picture.h"
#include "workloads/sample/sample.h"
#include "workloads/source/engines.h"
#include "workloads/source/gzip_view.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a handful of encoded samples in memory ------------------------------------------------- */

enum { PROBE_ALIGN = 64 };

/* Together, of which the last may be more than its share; and of one. */
static const uint64_t BYTES_MOST = (uint64_t)64 << 20;
static const uint64_t SAMPLE_BYTES_MOST = (uint64_t)1 << 30;

/* Where the bytes of files are. */
struct probe_files {
	const struct dataset *set;
	struct store *store; /* of a data set; else NULL: */
	uint8_t **made;      /* (set->count) */
	struct gzip_views *views;
};

/* Rounded up, with a line to spare: decoders may read a little past the end. */
static uint8_t *probe_take(size_t bytes)
{
	return aligned_alloc(PROBE_ALIGN, (bytes / PROBE_ALIGN + 2) * PROBE_ALIGN);
}

void probe_samples_release(struct probe_samples *samples)
{
	for (size_t i = 0; i < samples->set.count; i++)
		free(samples->bytes[i]);
	free(samples->bytes);
	free(samples->set.samples);
	free(samples->offsets);
	arena_close(samples->arena);
	*samples = (struct probe_samples){0};
}

/* The bytes of a sample; NULL: they cannot be had. */
static uint8_t *probe_fetch(
	const struct probe_files *files, const struct dataset *cut, size_t index, size_t *size)
{
	const struct sample *const sample = &cut->samples[index];
	const uint64_t offset = cut->offsets ? cut->offsets[index] : 0;
	uint8_t *const bytes =
		sample->bytes <= SAMPLE_BYTES_MOST ? probe_take(sample->bytes) : NULL;
	int code = bytes ? 0 : -ENOMEM;
	if (!code && files->store)
		code = source_load_sample(files->store, files->views, cut, (uint32_t)index, bytes,
			sample->bytes + PROBE_ALIGN, size);
	for (size_t i = 0; !code && !files->store && i < files->set->count; i++)
		if (files->set->samples[i].path == sample->path) {
			memcpy(bytes, files->made[i] + offset, sample->bytes);
			*size = sample->bytes;
		}
	if (!code)
		return bytes;
	free(bytes);
	return NULL;
}

/* Takes them where they are a sample. */
static void probe_keep(const struct sample_ops *kind, const struct dataset *cut, size_t index,
	uint8_t *bytes, size_t size, struct probe_samples *out)
{
	struct sample said;
	struct error why;
	if (!bytes || sample_look(kind, bytes, size, size, &said, &why)) {
		free(bytes);
		return;
	}
	const size_t at = out->set.count++;
	out->set.samples[at] = cut->samples[index];
	out->set.samples[at].bytes = size;
	out->offsets[at] = cut->offsets ? cut->offsets[index] : 0;
	out->bytes[at] = bytes;
}

static int probe_take_samples(const struct config *config, const struct probe_files *files,
	const struct dataset *cut, size_t most, const struct probe_control *control,
	struct probe_samples *out, struct error *err)
{
	const size_t count = cut->count < most ? cut->count : most;
	uint64_t taken = 0;
	out->set = *cut;
	out->set.count = 0;
	out->set.samples = calloc(count + 1, sizeof *out->set.samples);
	out->offsets = calloc(count + 1, sizeof *out->offsets);
	out->bytes = calloc(count + 1, sizeof *out->bytes);
	out->set.offsets = cut->offsets ? out->offsets : NULL;
	if (!out->set.samples || !out->offsets || !out->bytes)
		return error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < count && taken < BYTES_MOST; i++) {
		const size_t index = i * cut->count / count;
		size_t size = 0;
		uint8_t *const bytes = probe_fetch(files, cut, index, &size);
		taken += size;
		probe_keep(sample_kind_of(config), cut, index, bytes, size, out);
		/* What was made is there, however long that took. */
		if (files->store && probe_time_over(control))
			return error_set(err, -EINTR, "no time was left to read samples");
	}
	manifest_total(&out->set);
	return out->set.count > 0 ? 0
				  : error_set(err, -ENODATA, "no sample of '%s' could be read",
					    cut->root ? cut->root : "the recipe");
}

/* "32 samples of data/photos: jpeg, 500 x 375 pixels, 95.1 KiB (means)" */
static void probe_samples_describe(
	const struct config *config, const char *from, struct probe_samples *samples)
{
	const struct dataset *const set = &samples->set;
	const struct sample_ops *const kind = sample_kind_of(config);
	const double n = (double)set->count;
	double width = 0, height = 0;
	char size[UNITS_BYTES], pixels[64] = "";
	for (size_t i = 0; i < set->count; i++) {
		width += set->samples[i].width;
		height += set->samples[i].height;
	}
	if (kind->uses_codecs)
		(void)snprintf(
			pixels, sizeof pixels, ", %.0f x %.0f pixels", width / n, height / n);
	(void)snprintf(samples->what, sizeof samples->what,
		"%zu samples of %.120s: %s%s, %s (means)", set->count, from,
		kind->uses_codecs ? image_format_name((enum image_format)set->samples[0].format)
				  : kind->name,
		pixels, units_format_size((double)set->total_bytes / n, size));
}

static int probe_samples_cut(const struct config *config, const struct probe_files *files,
	size_t most, const struct probe_control *control, struct probe_samples *out,
	struct error *err)
{
	struct dataset cut;
	int code = sample_cut_files(config, files->set, &cut, err);
	if (code)
		return code;
	code = probe_take_samples(config, files, &cut, most, control, out, err);
	sample_cut_release(&cut, files->set);
	return code;
}

int probe_samples_load(const struct config *config, const struct dataset *dataset, size_t most,
	const struct probe_control *control, struct probe_samples *out, struct error *err)
{
	struct gzip_views views = {0};
	struct probe_files files = {.set = dataset};
	*out = (struct probe_samples){0};
	int code = store_open(&files.store, dataset->root, err);
	if (!code && gzip_view_wanted(config)) {
		files.views = &views;
		code = gzip_views_open(&views) ? 0 : error_set(err, -ENOMEM, "out of memory");
	}
	if (!code)
		code = probe_samples_cut(config, &files, most, control, out, err);
	(void)gzip_views_close(&views);
	store_close(files.store);
	if (!code)
		probe_samples_describe(config, dataset->root, out);
	return code;
}

/* ---- made in memory ------------------------------------------------------------------------- */

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

/* One more file of *set, whose paths and bytes are the arena's. */
static int probe_make_one(const struct sample_ops *kind, struct maker *maker,
	const struct recipe *recipe, const struct picture_atlas *atlas, struct arena *arena,
	struct dataset *set, uint8_t **made, struct error *err)
{
	const uint64_t id = set->count;
	struct sample *const sample = &set->samples[id];
	char name[RECIPE_PATH_BYTES];
	const uint8_t *bytes;
	size_t size;
	int code = maker_make(maker, recipe, atlas, id, PICTURE_DETAIL_NATURAL, &bytes, &size, err);
	if (!code)
		code = sample_look(kind, bytes, size, size, sample, err);
	if (code)
		return code;
	recipe_file_path(recipe, id, name);
	sample->bytes = size;
	sample->path = arena_text(arena, name, strlen(name));
	made[id] = arena_take(arena, size);
	if (!sample->path || !made[id])
		return error_set(err, -ENOMEM, "out of memory");
	memcpy(made[id], bytes, size);
	set->count++;
	set->total_bytes += size;
	return 0;
}

static int probe_make_files(const struct sample_ops *kind, const struct recipe *recipe,
	size_t count, const struct probe_control *control, struct arena *arena, struct dataset *set,
	uint8_t **made, struct error *err)
{
	struct picture_atlas *atlas = NULL;
	struct maker maker = {0};
	int code = recipe_is_drawn(recipe) ? picture_atlas_open(&atlas, recipe->seed, err) : 0;
	if (!code && atlas)
		code = paint(atlas, control, err);
	if (!code)
		code = maker_open(&maker, recipe, err);
	for (size_t i = 0; i < count && set->total_bytes < BYTES_MOST && !code; i++)
		code = probe_stopped(control)
			       ? error_set(err, -EINTR, "stopped")
			       : probe_make_one(kind, &maker, recipe, atlas, arena, set, made, err);
	maker_close(&maker);
	picture_atlas_close(atlas);
	return code;
}

/* A folder of the user's has no recipe: the defaults are a photograph of ImageNet's size. */
static int probe_recipe(const struct config *config, struct recipe *recipe, struct error *err)
{
	struct config own;
	int code = config_copy(&own, config, err);
	if (code)
		return code;
	if (config_integer(&own, KEY_DATASET_RECIPE) == DATASET_RECIPE_NONE)
		code = config_set_key(&own, KEY_DATASET_RECIPE, "photo", err);
	if (!code)
		code = config_set_key(&own, KEY_DATASET_CONTAINER, "files", err);
	if (!code && config_integer(&own, KEY_DATASET_SAMPLES) == 0)
		code = config_set_key(&own, KEY_DATASET_SAMPLES, "1", err);
	if (!code)
		code = recipe_read(&own, recipe, err);
	config_release(&own);
	return code;
}

int probe_samples_make(const struct config *config, size_t count,
	const struct probe_control *control, struct probe_samples *out, struct error *err)
{
	const struct sample_ops *const kind = sample_kind_of(config);
	struct recipe recipe;
	*out = (struct probe_samples){.arena = arena_open()};
	if (kind->container)
		return error_set(err, -ENODATA,
			"the data set is missing, and without its files no %s is found",
			kind->name);
	int code = probe_recipe(config, &recipe, err);
	if (code)
		return code;
	struct dataset set = {.root = (char *)(uintptr_t)config_text(config, KEY_DATASET_PATH),
		.class_count = recipe.classes};
	struct probe_files files = {.set = &set};
	set.samples = out->arena ? arena_take(out->arena, count * sizeof *set.samples) : NULL;
	files.made = out->arena ? arena_take(out->arena, count * sizeof *files.made) : NULL;
	if (!set.samples || !files.made)
		return error_set(err, -ENOMEM, "out of memory");
	code = probe_make_files(kind, &recipe, count, control, out->arena, &set, files.made, err);
	if (!code)
		code = probe_samples_cut(config, &files, count, control, out, err);
	if (!code)
		probe_samples_describe(config, "a recipe, made in memory", out);
	return code;
}

/* ---- making samples of them ----------------------------------------------------------------- */

struct worker {
	struct sample_maker maker;
	uint8_t *out, *labels;
	size_t next;     /* sample */
	double rate;     /* samples/s in this slot */
	double cpu_rate; /* samples per second of its own CPU time */
	int code;
	struct error why;
};

struct probe_decoding {
	const struct probe_samples *samples;
	const struct probe_control *control;
	struct sample_sizes sizes;
	struct worker *workers; /* (cores), owned */
	unsigned cores;
	unsigned first; /* worker of the slot that goes on */
};

static void decoding_work(void *context, unsigned me)
{
	const struct probe_decoding *decoding = context;
	const struct dataset *const set = &decoding->samples->set;
	struct worker *worker = &decoding->workers[decoding->first + me];
	struct sample_task task = {
		.sizes = &decoding->sizes, .labels = worker->labels, .out = worker->out};
	/* Its own: a thread that waits for its core does not find its slot over when it has it, and looks fast. */
	const uint64_t begin = clock_now_ns();
	const uint64_t end = probe_slot_end(decoding->control, begin);
	const uint64_t cpu_ns = clock_thread_cpu_ns();
	uint64_t now;
	uint64_t done = 0;
	do {
		const size_t index = worker->next % set->count;
		task.sample = &set->samples[index];
		task.bytes = decoding->samples->bytes[index];
		task.size = task.sample->bytes;
		task.seed = worker->next++;
		worker->code = worker->maker.make(worker->maker.worker, &task, &worker->why);
		now = clock_now_ns();
		done++;
	} while (!worker->code && now < end && !probe_stopped(decoding->control));
	worker->rate = (double)done * (double)NS_PER_S / (double)(now - begin);
	worker->cpu_rate =
		(double)done * (double)NS_PER_S / (double)(clock_thread_cpu_ns() - cpu_ns);
}

static int decoding_open_worker(struct probe_decoding *decoding, const struct config *config,
	unsigned index, struct error *err)
{
	const struct sample_options options = {.config = config,
		.dataset = &decoding->samples->set,
		.stop = decoding->control->stop};
	struct worker *worker = &decoding->workers[index];
	worker->next = index;
	worker->out = probe_take(decoding->sizes.bytes);
	worker->labels = probe_take(decoding->sizes.label_bytes);
	return worker->out && worker->labels
		       ? sample_maker_open(&worker->maker, &options, &decoding->sizes, err)
		       : error_set(err, -ENOMEM, "out of memory");
}

int probe_decoding_open(struct probe_decoding **out, const struct config *config,
	const struct probe_samples *samples, unsigned workers, const struct probe_control *control,
	struct error *err)
{
	struct probe_decoding *decoding = calloc(1, sizeof *decoding);
	*out = decoding;
	if (!decoding)
		return error_set(err, -ENOMEM, "out of memory");
	decoding->samples = samples;
	decoding->control = control;
	sample_sizes_of(config, &samples->set, &decoding->sizes);
	/* By the cores, also where a device makes them in a run. */
	decoding->sizes.raw_bytes = decoding->sizes.note_bytes = 0;
	decoding->workers = calloc(workers, sizeof *decoding->workers);
	int code = decoding->workers ? 0 : error_set(err, -ENOMEM, "out of memory");
	for (; decoding->cores < workers && !code; decoding->cores++)
		code = decoding_open_worker(decoding, config, decoding->cores, err);
	if (!code)
		return 0;
	probe_decoding_close(decoding);
	*out = NULL;
	return code;
}

void probe_decoding_close(struct probe_decoding *decoding)
{
	if (!decoding)
		return;
	for (unsigned i = 0; decoding->workers && i < decoding->cores; i++) {
		sample_maker_close(&decoding->workers[i].maker);
		free(decoding->workers[i].out);
		free(decoding->workers[i].labels);
	}
	free(decoding->workers);
	free(decoding);
}

int probe_decoding_slot(struct probe_decoding *decoding, const unsigned *cores, unsigned first,
	unsigned threads, double *samples_per_s, struct error *err)
{
	double sum = 0;
	*samples_per_s = NAN;
	decoding->first = first;
	const int code = cores ? probe_crew_on(cores, threads, decoding_work, decoding, err)
			       : probe_crew(threads, false, decoding_work, decoding, err);
	if (code)
		return code;
	for (unsigned i = first; i < first + threads; i++) {
		const struct worker *worker = &decoding->workers[i];
		sum += worker->rate;
		if (worker->code)
			return error_set(err, worker->code, "%s", worker->why.text);
	}
	if (!probe_stopped(decoding->control))
		*samples_per_s = sum;
	return 0;
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

/* Of one core, in the slot that has ended; NAN where a clock that ticks did not, as those of some sandboxes. */
static double decoding_cpu_rate(const struct probe_decoding *decoding, unsigned threads)
{
	double sum = 0;
	for (unsigned i = 0; i < threads; i++)
		sum += decoding->workers[i].cpu_rate;
	return isfinite(sum) ? sum / threads : (double)NAN;
}

/* Samples/s of so many cores, and of a second of their CPU time. */
struct decoding_values {
	struct probe_values rate, cpu_rate;
};

static void decoding_keep(const struct decoding_values *values, const unsigned *counts, size_t n,
	struct ceilings *out)
{
	for (size_t i = 0; i < n; i++) {
		struct core_ceiling *entry = &out->decode[out->decode_count];
		entry->cores = counts[i];
		entry->samples_per_s = probe_median(&values[i].rate, &entry->range);
		out->decode_count += values[i].rate.count > 0;
	}
	out->decode_one_core = probe_median(&values[0].rate, NULL);
	out->decode_all_cores = probe_median(&values[n - 1].rate, NULL);
	out->cpu_scaling = probe_median(&values[n - 1].cpu_rate, NULL) /
			   probe_median(&values[0].cpu_rate, NULL);
}

static int decoding_measure(struct probe_decoding *decoding, const unsigned *counts, size_t n,
	struct decoding_values *values, struct error *err)
{
	const struct probe_control *control = decoding->control;
	double rate;
	/* Caches and clocks get going. */
	int code = probe_decoding_slot(decoding, NULL, 0, decoding->cores, &rate, err);
	for (unsigned round = 0; round < control->rounds && !code; round++) {
		if (probe_stopped(control) || (round > 0 && probe_time_over(control)))
			break;
		for (size_t i = 0; i < n && !code; i++) {
			code = probe_decoding_slot(decoding, NULL, 0, counts[i], &rate, err);
			probe_add(&values[i].rate, rate);
			probe_add(&values[i].cpu_rate,
				isnan(rate) ? rate : decoding_cpu_rate(decoding, counts[i]));
		}
	}
	return code;
}

int probe_decode(const struct config *config, const struct probe_samples *samples, unsigned cores,
	const struct probe_control *control, struct ceilings *out, struct error *err)
{
	const unsigned all = cores ? cores : probe_cores();
	struct probe_decoding *decoding;
	unsigned counts[CEILING_CORES_MAX];
	struct decoding_values values[CEILING_CORES_MAX] = {0};
	const size_t n = decoding_list_counts(all, counts);
	int code = probe_decoding_open(&decoding, config, samples, all, control, err);
	if (!code)
		code = decoding_measure(decoding, counts, n, values, err);
	probe_decoding_close(decoding);
	(void)snprintf(out->decode_what, sizeof out->decode_what, "%s", samples->what);
	decoding_keep(values, counts, n, out);
	if (probe_stopped(control))
		return -EINTR;
	return code;
}
