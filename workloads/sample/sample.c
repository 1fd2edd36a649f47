/* The table of kinds, and what follows from it: the check that no hook was forgotten, sizes, and what
 * a worker calls. */
#include "workloads/sample/sample.h"

#include "harness/base/hash.h"
#include "harness/base/units.h"
#include "harness/config/tables.h"
#include "workloads/dataset/container.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE_DECLARE(ID, name) extern const struct sample_ops sample_##name;
SAMPLE_KINDS(SAMPLE_DECLARE)
#undef SAMPLE_DECLARE

#define SAMPLE_ENTRY(ID, name) &sample_##name,
const struct sample_ops *const sample_kinds[] = {SAMPLE_KINDS(SAMPLE_ENTRY) NULL};

static const struct sample_ops *replacement;

void sample_replace_kind(const struct sample_ops *kind)
{
	replacement = kind;
}

const struct sample_ops *sample_kind_of(const struct config *config)
{
	return replacement ? replacement : sample_kinds[config_integer(config, KEY_SAMPLE_KIND)];
}

/* ---- checks ------------------------------------------------------------------------------- */

static const char *sample_device_lacks(const struct sample_device_ops *device)
{
	if (!device->on || !device->off || !device->called)
		return "not all of .on, .off and .called of its .device";
	if (!device->room || !device->make || !device->blank || !device->hash)
		return "not all of .room, .make, .blank and .hash of its .device";
	return device->note_bytes > 0 && device->note_bytes % sizeof(uint64_t) == 0
		       ? NULL
		       : "no .note_bytes of its .device that are a multiple of 8";
}

static const char *sample_lacks(const struct sample_ops *kind)
{
	if (!kind->summary)
		return "no .summary";
	if (!kind->shape)
		return "no .shape";
	if (!kind->label_bytes)
		return "no .label_bytes";
	if (!kind->make)
		return "no .make";
	if (!kind->open != !kind->close)
		return "one of .open and .close";
	if (kind->scratch_bytes && !kind->open)
		return ".scratch_bytes without .open";
	if (!kind->keys != !kind->key_count)
		return "one of .keys and .key_count";
	const struct sample_file_ops *const files = kind->files;
	if (files && !(files->called && files->takes && files->endings && files->look))
		return "not all of .called, .takes, .endings and .look of its .files";
	if (kind->container && (files || container_lacks(kind->container)))
		return "a .container that lacks something, or .files beside it";
	return kind->device ? sample_device_lacks(kind->device) : NULL;
}

int sample_kind_check(const struct sample_ops *kind, struct error *err)
{
	const char *const lacks = kind->name ? sample_lacks(kind) : "no .name";
	return lacks ? error_set(err, -EINVAL, "bug: the table of the sample kind '%s' has %s",
			       kind->name ? kind->name : "without a .name", lacks)
		     : 0;
}

int sample_kinds_check(struct error *err)
{
	int code = 0;
	for (size_t i = 0; sample_kinds[i] && !code; i++)
		code = sample_kind_check(sample_kinds[i], err);
	for (size_t i = 0; container_list[i] && !code; i++) {
		const char *const lacks = container_lacks(container_list[i]);
		if (lacks)
			code = error_set(err, -EINVAL,
				"bug: the table of the container '%s' has %s",
				container_list[i]->name ? container_list[i]->name : "?", lacks);
	}
	return code;
}

static bool sample_has_key(const struct sample_ops *kind, enum key_id key)
{
	for (size_t i = 0; i < kind->key_count; i++)
		if (kind->keys[i] == key)
			return true;
	return false;
}

/* What batches come to, as far as the configuration alone says it. */
static int sample_check_batches(
	const struct sample_ops *kind, const struct config *config, struct error *err)
{
	static const double most = 4398046511104.0; /* bytes of batches in memory: 4 TiB */
	const int64_t samples = config_integer(config, KEY_DATASET_SAMPLES);
	const int64_t batch = config_integer(config, KEY_BATCH_SIZE);
	struct sample_shape shape;
	char each[UNITS_BYTES], all[UNITS_BYTES];
	/* What files that are cut hold is known with the data set. */
	if (!kind->cut && samples > 0 && batch > samples && config_on(config, KEY_BATCH_DROP_LAST))
		return error_set(err, -EINVAL,
			"'batch.size' = %" PRId64 " is more than 'dataset.samples' = %" PRId64
			", and 'batch.drop_last' leaves incomplete batches out: set 'batch.size' to %" PRId64
			" or less, or 'batch.drop_last' to off",
			batch, samples, samples);
	kind->shape(config, &shape);
	double bytes = (double)batch_type_bytes(shape.type);
	for (uint32_t i = 0; i < shape.dimensions; i++)
		bytes *= shape.of[i];
	const double total =
		bytes * (double)batch * (double)config_integer(config, KEY_PREFETCH_DEPTH);
	return total <= most
		       ? 0
		       : error_set(err, -EINVAL,
				 "'batch.size' x 'prefetch.depth' samples of %s would take %s of memory; 4 TiB is the limit",
				 units_format_size(bytes, each), units_format_size(total, all));
}

/* One that has its default may have been read from a result, which keeps all keys. */
int sample_validate(const struct config *config, struct error *err)
{
	const struct sample_ops *const own = sample_kind_of(config);
	for (size_t i = 0; sample_kinds[i]; i++)
		for (size_t k = 0; k < sample_kinds[i]->key_count; k++) {
			const enum key_id key = sample_kinds[i]->keys[k];
			if (sample_has_key(own, key) || config_is_default(config, key))
				continue;
			return error_set(err, -EINVAL,
				"'%s.%s' is about sample.kind = %s, and has no effect on %s: leave it out",
				config_keys[key].section, config_keys[key].name,
				sample_kinds[i]->name, own->name);
		}
	/* A folder that evaluations read beside it is the user's own. */
	if (config_integer(config, KEY_DATASET_RECIPE) != DATASET_RECIPE_NONE &&
		*config_text(config, KEY_DATASET_EXCLUDE) &&
		!*config_text(config, KEY_EVALUATE_PATH))
		return error_set(err, -EINVAL,
			"'dataset.exclude' leaves files of a folder of your own out, and dataset.recipe generates all that is read: leave it out");
	int code = container_validate(config, true, err);
	if (!code && own->validate)
		code = own->validate(config, err);
	return code ? code : sample_check_batches(own, config, err);
}

/* ---- sizes -------------------------------------------------------------------------------- */

void sample_sizes_of(
	const struct config *config, const struct dataset *dataset, struct sample_sizes *out)
{
	const struct sample_ops *const kind = sample_kind_of(config);
	*out = (struct sample_sizes){.values = 1, .label_bytes = kind->label_bytes(config)};
	kind->shape(config, &out->shape);
	for (uint32_t i = 0; i < out->shape.dimensions; i++)
		out->values *= out->shape.of[i];
	out->bytes = (size_t)out->values * batch_type_bytes(out->shape.type);
	if (!dataset)
		return;
	out->classes =
		kind->classes ? kind->classes(config, dataset) : (uint32_t)dataset->class_count;
	const size_t raw = kind->device ? kind->device->room(config, dataset) : 0;
	out->raw_bytes = sample_room(raw);
	out->note_bytes = raw > 0 ? kind->device->note_bytes : 0;
}

enum batch_type sample_type_of(const struct config *config)
{
	struct sample_shape shape;
	sample_kind_of(config)->shape(config, &shape);
	return shape.type;
}

uint32_t sample_tokens_of(const struct config *config)
{
	struct sample_shape shape;
	sample_kind_of(config)->shape(config, &shape);
	return shape.tokens;
}

uint64_t sample_scratch_bytes(const struct config *config, const struct dataset *dataset)
{
	const struct sample_ops *const kind = sample_kind_of(config);
	return kind->scratch_bytes ? kind->scratch_bytes(config, dataset) : 0;
}

void sample_describe_largest(
	const struct sample_ops *kind, const struct dataset *dataset, char *out, size_t room)
{
	const struct sample *most = dataset->samples;
	char bytes[UNITS_BYTES];
	if (kind->describe_largest) {
		kind->describe_largest(dataset, out, room);
		return;
	}
	for (size_t i = 1; i < dataset->count; i++)
		most = dataset->samples[i].bytes > most->bytes ? &dataset->samples[i] : most;
	(void)snprintf(out, room, "'%.100s', of %s", most->path,
		units_format_size((double)most->bytes, bytes));
}

/* ---- several samples in a file -------------------------------------------------------------- */

static int sample_cut_file(const struct config *config, const struct dataset *files, size_t i,
	struct sample_cut *out, struct error *err)
{
	const struct sample *const file = &files->samples[i];
	const int code = sample_kind_of(config)->cut(config, file, out, err);
	return code ? error_prefix(err, code, "'%.200s'", file->path) : 0;
}

static int sample_cut_count(
	const struct config *config, const struct dataset *files, size_t *count, struct error *err)
{
	struct sample_cut cut;
	uint64_t sum = 0;
	int code = 0;
	for (size_t i = 0; i < files->count && !code && sum <= UINT32_MAX; i++) {
		code = sample_cut_file(config, files, i, &cut, err);
		sum += code ? 0 : cut.count;
	}
	*count = (size_t)sum;
	if (code || (sum > 0 && sum <= UINT32_MAX))
		return code;
	return sum > 0 ? error_set(err, -EINVAL, "the files of '%s' hold more than 2^32 samples",
				 files->root)
		       : error_set(err, -ENODATA, "no file of '%s' is as long as one sample",
				 files->root);
}

int sample_cut_files(const struct config *config, const struct dataset *files, struct dataset *out,
	struct error *err)
{
	size_t count = 0;
	*out = *files;
	if (files->cut || !sample_kind_of(config)->cut)
		return 0;
	const int code = sample_cut_count(config, files, &count, err);
	if (code)
		return code;
	struct sample *const samples = calloc(count, sizeof *samples);
	uint64_t *const offsets = calloc(count, sizeof *offsets);
	*out = (struct dataset){0};
	if (!samples || !offsets) {
		free(samples);
		free(offsets);
		return error_set(err, -ENOMEM, "no memory for a list of %zu samples", count);
	}
	size_t at = 0;
	uint64_t largest = 0;
	uint64_t total = 0;
	for (size_t i = 0; i < files->count; i++) {
		struct sample_cut cut;
		const uint64_t base = files->offsets ? files->offsets[i] : 0;
		(void)sample_cut_file(config, files, i, &cut, err); /* as above */
		for (uint64_t k = 0; k < cut.count && at < count; k++, at++) {
			samples[at] = files->samples[i];
			samples[at].bytes = cut.bytes;
			samples[at].checksum = 0;
			offsets[at] = base + cut.first + k * cut.stride;
		}
		largest = cut.count > 0 && cut.bytes > largest ? cut.bytes : largest;
		total += cut.count * cut.bytes;
	}
	*out = *files;
	out->samples = samples;
	out->offsets = offsets;
	out->count = count;
	out->max_bytes = largest;
	out->total_bytes = total;
	out->cut = true;
	return 0;
}

void sample_cut_release(struct dataset *cut, const struct dataset *files)
{
	if (cut->cut && !files->cut) {
		free(cut->samples);
		free((uint64_t *)(uintptr_t)cut->offsets);
	}
	*cut = (struct dataset){0};
}

/* ---- files -------------------------------------------------------------------------------- */

const char *sample_endings(const struct sample_ops *kind, char out[SAMPLE_ENDINGS_BYTES])
{
	if (kind->container)
		return kind->container->endings;
	return kind->files ? kind->files->endings(out) : "";
}

bool sample_takes_name(const struct sample_ops *kind, const char *name)
{
	if (kind->container)
		return kind->container->takes(name);
	return kind->files ? kind->files->takes(name) : name[0] != '.';
}

int sample_look(const struct sample_ops *kind, const void *head, size_t size, uint64_t file_bytes,
	struct sample *out, struct error *err)
{
	*out = (struct sample){.bytes = file_bytes};
	return kind->files && kind->files->look
		       ? kind->files->look(head, size, file_bytes, out, err)
		       : 0;
}

/* ---- a worker ----------------------------------------------------------------------------- */

static void sample_blank_zero(const struct sample_task *task)
{
	memset(task->out, 0, task->sizes->bytes);
	memset(task->labels, 0, task->sizes->label_bytes);
}

/* codec.name = null. */
static int sample_make_nothing(void *worker, const struct sample_task *task, struct error *err)
{
	(void)worker;
	(void)err;
	if (task->sizes->label_bytes == sizeof task->sample->label)
		sample_put_class(task);
	return 0;
}

int sample_maker_open(struct sample_maker *maker, const struct sample_options *options,
	const struct sample_sizes *sizes, struct error *err)
{
	const struct sample_ops *const kind = sample_kind_of(options->config);
	const struct sample_device_ops *const device = sizes->raw_bytes > 0 ? kind->device : NULL;
	const bool makes = config_integer(options->config, KEY_CODEC_NAME) != CODEC_NAME_NULL;
	const struct container_ops *const container = container_of_config(options->config);
	*maker = (struct sample_maker){
		.checks = makes && container && container->summed,
		.make = device  ? device->make
			: makes ? kind->make
				: sample_make_nothing,
		.blank = device        ? device->blank
			 : kind->blank ? kind->blank
				       : sample_blank_zero,
		.kind = kind,
	};
	return kind->open ? kind->open(&maker->worker, options, err) : 0;
}

int sample_maker_make(
	const struct sample_maker *maker, const struct sample_task *task, struct error *err)
{
	const uint64_t checksum = maker->checks ? task->sample->checksum : 0;
	if (checksum && hash_bytes(task->bytes, task->size, 0) != checksum)
		return error_set(err, -EBADMSG,
			"its bytes are not those that the file's checksum was right for");
	return maker->make(maker->worker, task, err);
}

void sample_maker_close(struct sample_maker *maker)
{
	if (maker->kind && maker->kind->close)
		maker->kind->close(maker->worker);
	*maker = (struct sample_maker){0};
}
