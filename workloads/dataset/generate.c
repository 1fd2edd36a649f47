/* dataset_generate: check what is there, paint the atlas, calibrate, make what is missing, finish.
 */
#include "workloads/dataset/container.h"
#include "workloads/dataset/dataset.h"
#include "workloads/dataset/maker.h"
#include "workloads/dataset/site.h"
#include "workloads/dataset/threads.h"

#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/log.h"
#include "harness/base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct generation {
	const struct dataset_control *control;
	struct recipe recipe;
	struct site site;
	struct picture_atlas *atlas;
	struct maker *makers;
	unsigned threads;
	const struct config *config;
	uint64_t *missing; /* files to make */
	uint64_t missing_count;
	atomic_uint_fast64_t bytes; /* of what is there, for the progress line */
	double expected_bytes;      /* mean of a file */
};

/* Size and checksum of a file, which may be larger than memory; false where it cannot be read, or is
 * larger than `most`. */
static bool hash_file(const char *path, uint64_t most, uint64_t *bytes, uint64_t *checksum)
{
	enum { PIECE = 256 * 1024 };
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct hash_pieces *const pieces = hash_begin(0);
	char *const piece = malloc(PIECE);
	ssize_t n = fd >= 0 && pieces && piece ? 1 : -1;
	for (*bytes = 0; n > 0 && *bytes <= most; *bytes += n > 0 ? (uint64_t)n : 0) {
		n = read(fd, piece, PIECE);
		if (n > 0)
			hash_add(pieces, piece, (size_t)n);
	}
	*checksum = pieces ? hash_end(pieces) : 0;
	free(piece);
	if (fd >= 0)
		(void)close(fd);
	return n == 0;
}

static bool is_whole(const char *path, const struct record *record, bool vouched)
{
	struct stat st;
	if (vouched)
		return stat(path, &st) == 0 && (uint64_t)st.st_size == record->bytes;
	uint64_t bytes, checksum;
	return hash_file(path, record->bytes, &bytes, &checksum) && bytes == record->bytes &&
	       checksum == record->checksum;
}

/* A claimed sample counts only if the file is whole: by size where a manifest vouches for it, by
 * checksum too where only the journal does. */
static int check_claim(void *context, unsigned worker, uint64_t id, struct error *err)
{
	(void)worker;
	struct generation *generation = context;
	struct record *record = &generation->site.records[id];
	if (atomic_load(&record->state) != RECORD_CLAIMED)
		return 0;
	char name[RECIPE_PATH_BYTES];
	recipe_file_path(&generation->recipe, id, name);
	char *path = files_join(generation->site.root, name);
	if (!path)
		return error_set(err, -ENOMEM, "no memory for a path");
	const bool whole = is_whole(path, record, generation->site.complete);
	atomic_store(&record->state, whole ? RECORD_DONE : RECORD_MISSING);
	if (whole)
		atomic_fetch_add(&generation->bytes, record->bytes);
	free(path);
	return 0;
}

static struct team_job job_of(struct generation *generation, uint64_t count)
{
	return (struct team_job){
		.count = count,
		.context = generation,
		.stop = generation->control ? generation->control->stop : NULL,
		.threads = generation->threads,
	};
}

/* Checks claims, and lists what is to be made. */
static int find_missing(struct generation *generation, struct error *err)
{
	const uint64_t files = recipe_files(&generation->recipe);
	struct team_job job = job_of(generation, files);
	job.item = check_claim;
	const int code = team_run(&job, err);
	if (code)
		return code;
	generation->missing = calloc(files, sizeof(*generation->missing));
	if (!generation->missing)
		return error_set(err, -ENOMEM, "no memory for the list of samples");
	for (uint64_t id = 0; id < files; id++)
		if (atomic_load(&generation->site.records[id].state) == RECORD_MISSING)
			generation->missing[generation->missing_count++] = id;
	return 0;
}

static int paint_one(void *context, unsigned worker, uint64_t tile, struct error *err)
{
	(void)worker;
	const struct generation *generation = context;
	return picture_atlas_paint(generation->atlas, (unsigned)tile, err);
}

static int open_makers(struct generation *generation, struct error *err)
{
	generation->makers = calloc(generation->threads, sizeof(*generation->makers));
	if (!generation->makers)
		return error_set(err, -ENOMEM, "no memory for encoders");
	for (unsigned i = 0; i < generation->threads; i++) {
		const int code = maker_open(&generation->makers[i], &generation->recipe, err);
		if (code)
			return code;
	}
	return 0;
}

/* Atlas, encoders, detail. */
static int generate_prepare(struct generation *generation, struct error *err)
{
	const struct recipe_ops *const ops = generation->recipe.ops;
	/* What is made one by one, and is a file or lies in one. */
	const double in_file = recipe_is_packed(&generation->recipe)
				       ? (double)recipe_per_file(&generation->recipe)
				       : 1;
	int code = 0;
	if (recipe_is_drawn(&generation->recipe))
		code = picture_atlas_open(&generation->atlas, generation->recipe.seed, err);
	if (!code && generation->atlas) {
		struct team_job job = job_of(generation, picture_atlas_tiles());
		job.item = paint_one;
		code = team_run(&job, err);
	}
	if (!code)
		code = open_makers(generation, err);
	if (!code && ops)
		generation->expected_bytes = ops->mean_bytes(&generation->recipe) * in_file;
	if (code || ops)
		return code;
	const struct calibration calibration = {
		.recipe = &generation->recipe,
		.atlas = generation->atlas,
		.makers = generation->makers,
		.threads = generation->threads,
		.stop = generation->control ? generation->control->stop : NULL,
	};
	if (generation->site.has_detail) { /* found by an earlier try */
		const uint64_t kept = recipe_files(&generation->recipe) - generation->missing_count;
		generation->expected_bytes =
			kept ? (double)atomic_load(&generation->bytes) / (double)kept
			     : (double)generation->recipe.bytes * in_file;
		return 0;
	}
	code = calibrate(&calibration, &generation->site.detail, &generation->expected_bytes, err);
	generation->expected_bytes *= in_file;
	for (unsigned i = 0; i < generation->threads; i++) /* the shares are of generating */
		generation->makers[i].cpu_ns = generation->makers[i].encode_cpu_ns = 0;
	return code;
}

static bool generate_stopped(const struct generation *generation)
{
	const atomic_bool *const stop = generation->control ? generation->control->stop : NULL;
	return stop && atomic_load(stop);
}

/* One sample of a shard. */
static int generate_pack_one(struct generation *generation, struct maker *maker, uint64_t id,
	struct site_file *file, struct error *err)
{
	const struct recipe *const recipe = &generation->recipe;
	struct container_entry entry = {.extension = recipe_extension(recipe, id),
		.label = (uint32_t)(id % recipe->classes)};
	struct buffer before = {0}, behind = {0};
	char key[RECIPE_PATH_BYTES];
	recipe_sample_key(recipe, id, key);
	entry.key = key;
	int code = maker_make(maker, recipe, generation->atlas, id, generation->site.detail,
		&entry.bytes, &entry.size, err);
	if (!code) {
		recipe->container->wrap(&entry, &before, &behind);
		if (before.failed || behind.failed)
			code = error_set(err, -ENOMEM, "no memory to pack a sample");
	}
	if (!code)
		code = site_file_add(&generation->site, file, before.data, before.size, err);
	if (!code)
		code = site_file_add(&generation->site, file, entry.bytes, entry.size, err);
	if (!code)
		code = site_file_add(&generation->site, file, behind.data, behind.size, err);
	buffer_release(&before);
	buffer_release(&behind);
	return code;
}

static int generate_make_shard(
	struct generation *generation, struct maker *maker, uint64_t shard, struct error *err)
{
	const uint64_t first = shard * recipe_per_file(&generation->recipe);
	const uint64_t count = recipe_samples_of(&generation->recipe, shard);
	struct site_file file;
	struct buffer end = {0};
	int code = site_file_begin(&generation->site, shard, &file, err);
	if (code)
		return code;
	uint64_t told = 0; /* of its bytes */
	for (uint64_t i = 0; i < count && !code; i++) {
		code = generate_stopped(generation)
			       ? error_set(err, -EINTR, "stopped")
			       : generate_pack_one(generation, maker, first + i, &file, err);
		atomic_fetch_add(&generation->bytes, file.bytes - told);
		told = file.bytes;
	}
	if (!code) {
		if (generation->recipe.container->finish)
			generation->recipe.container->finish(&end);
		code = end.failed
			       ? error_set(err, -ENOMEM, "no memory to pack a sample")
			       : site_file_add(&generation->site, &file, end.data, end.size, err);
	}
	buffer_release(&end);
	if (code) {
		site_file_drop(&generation->site, &file);
		return code;
	}
	code = site_file_end(&generation->site, &file, err);
	if (!code)
		atomic_fetch_add(&generation->bytes, generation->site.records[shard].bytes - told);
	return code;
}

static int generate_make_one(void *context, unsigned worker, uint64_t index, struct error *err)
{
	struct generation *generation = context;
	struct maker *maker = &generation->makers[worker];
	const uint64_t id = generation->missing[index];
	const uint8_t *bytes;
	size_t size;
	if (recipe_is_packed(&generation->recipe))
		return generate_make_shard(generation, maker, id, err);
	int code = maker_make(maker, &generation->recipe, generation->atlas, id,
		generation->site.detail, &bytes, &size, err);
	if (code)
		return code;
	const uint64_t start = clock_thread_cpu_ns();
	code = site_store(&generation->site, id, bytes, size, err);
	maker->cpu_ns += clock_thread_cpu_ns() - start;
	if (!code)
		atomic_fetch_add(&generation->bytes, size);
	return code;
}

static int generate_tick(void *context, uint64_t done, struct error *err)
{
	struct generation *generation = context;
	const struct dataset_control *control = generation->control;
	if (control && control->progress) {
		const uint64_t samples = generation->recipe.samples;
		const uint64_t files =
			recipe_files(&generation->recipe) - generation->missing_count + done;
		const uint64_t reached = files * recipe_per_file(&generation->recipe);
		control->progress(control->context, reached < samples ? reached : samples, samples,
			atomic_load(&generation->bytes));
	}
	return site_note(&generation->site, err);
}

/* Of what was missing: files that are there now, or, with samples, their samples. */
static uint64_t count_made(const struct generation *generation, bool samples)
{
	uint64_t made = 0;
	for (uint64_t i = 0; i < generation->missing_count; i++) {
		const uint64_t file = generation->missing[i];
		if (atomic_load(&generation->site.records[file].state) == RECORD_DONE)
			made += samples ? recipe_samples_of(&generation->recipe, file) : 1;
	}
	return made;
}

static uint64_t count_missing(const struct generation *generation)
{
	uint64_t missing = 0;
	for (uint64_t i = 0; i < generation->missing_count; i++)
		missing += recipe_samples_of(&generation->recipe, generation->missing[i]);
	return missing;
}

/* A full disk, said with what is still to be written. */
static int explain_full(const struct generation *generation, int code, struct error *err)
{
	if (code != -ENOSPC && code != -EDQUOT)
		return code;
	const uint64_t left = generation->missing_count - count_made(generation, false);
	char text[UNITS_BYTES];
	const struct error before = *err;
	return error_set(err, -ENOSPC,
		"%.350s; about %s are still needed; what was made is kept for the next try",
		before.text, units_format_size((double)left * generation->expected_bytes, text));
}

static int make_missing(struct generation *generation, struct error *err)
{
	struct error later;
	const double needed = (double)generation->missing_count * generation->expected_bytes;
	int code = site_check_room(&generation->site, needed, generation->missing_count, err);
	if (!code)
		code = site_begin(&generation->site, generation->site.detail, err);
	if (code)
		return code;
	struct team_job job = job_of(generation, generation->missing_count);
	job.item = generate_make_one;
	job.tick = generate_tick;
	code = team_run(&job, err);
	if (code) /* samples done by the last threads to finish */
		(void)site_note(&generation->site, &later);
	return explain_full(generation, code, err);
}

/* Says so where pictures of such sizes do not compress to what was asked of them. */
static void generate_tell_miss(const struct generation *generation, uint64_t bytes)
{
	enum { PERCENT = 3 };
	const struct recipe *const recipe = &generation->recipe;
	char is[UNITS_BYTES], asked[UNITS_BYTES];
	if (!recipe->ops || !recipe->ops->size || recipe_is_packed(recipe))
		return;
	const double mean = (double)bytes / (double)recipe_files(recipe);
	const double wanted = recipe->ops->mean_bytes(recipe);
	if (100 * fabs(mean / wanted - 1) > PERCENT)
		log_warn(
			"files have %s in the mean where %s were asked for: pictures of these sizes and formats do not compress to that",
			units_format_size(mean, is), units_format_size(wanted, asked));
}

static void sum_up(const struct generation *generation, struct dataset_generated *out)
{
	uint64_t encode = 0, all = 0;
	for (unsigned i = 0; generation->makers && i < generation->threads; i++) {
		encode += generation->makers[i].encode_cpu_ns;
		all += generation->makers[i].cpu_ns;
	}
	out->made = count_made(generation, true);
	out->kept = generation->recipe.samples - count_missing(generation);
	out->encode_share = all ? (double)encode / (double)all : 0;
}

static int generate(struct generation *generation, const char *root, struct dataset_generated *out,
	struct error *err)
{
	int code = site_open(&generation->site, &generation->recipe, root, err);
	if (!code)
		code = find_missing(generation, err);
	if (code)
		return code;
	if (generation->missing_count == 0 && generation->site.complete) {
		out->bytes = atomic_load(&generation->bytes);
		return 0;
	}
	code = generate_prepare(generation, err);
	if (!code)
		code = make_missing(generation, err);
	if (!code)
		code = site_finish(&generation->site, generation->config, generation->control,
			&out->bytes, err);
	if (!code)
		generate_tell_miss(generation, out->bytes);
	return code;
}

int dataset_generate(const struct config *config, const struct dataset_control *control,
	struct dataset_generated *out, struct error *err)
{
	const uint64_t start = clock_now_ns();
	struct generation generation = {.config = config,
		.control = control,
		.threads = team_threads(control ? control->threads : 0)};
	*out = (struct dataset_generated){0};
	if (config_integer(config, KEY_DATASET_RECIPE) == DATASET_RECIPE_NONE)
		return error_set(
			err, -EINVAL, "dataset.recipe is none: there is nothing to generate");
	int code = dataset_check_writable(config, err);
	if (!code)
		code = recipe_read(config, &generation.recipe, err);
	if (code)
		return code;
	code = generate(&generation, config_text(config, KEY_DATASET_PATH), out, err);
	if (generation.missing)
		sum_up(&generation, out);
	out->seconds = (double)(clock_now_ns() - start) / (double)NS_PER_S;
	for (unsigned i = 0; generation.makers && i < generation.threads; i++)
		maker_close(&generation.makers[i]);
	free(generation.makers);
	free(generation.missing);
	picture_atlas_close(generation.atlas);
	site_close(&generation.site);
	return code;
}
