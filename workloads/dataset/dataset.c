/* Opening, closing and verifying a data set. */
#include "workloads/dataset/dataset.h"

#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/log.h"
#include "workloads/dataset/container.h"
#include "workloads/dataset/manifest.h"
#include "workloads/dataset/scan.h"
#include "workloads/dataset/site.h"
#include "workloads/dataset/threads.h"
#include "workloads/sample/sample.h"
#include "workloads/source/engines.h"
#include "workloads/source/gzip_view.h"
#include "workloads/source/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_generated(const struct config *config)
{
	return config_integer(config, KEY_DATASET_RECIPE) != DATASET_RECIPE_NONE;
}

static int check_folder(const char *path, struct error *err)
{
	struct stat st;
	if (!path[0])
		return error_set(
			err, -EINVAL, "dataset.path is empty: which folder should be read?");
	if (stat(path, &st) != 0)
		return error_set_errno(err, errno, "cannot use dataset.path '%s'", path);
	if (!S_ISDIR(st.st_mode))
		return error_set(err, -ENOTDIR, "dataset.path '%s' is not a folder", path);
	return 0;
}

static int dataset_open_folder(const struct config *config, const struct dataset_control *control,
	struct dataset *dataset, struct error *err)
{
	const char *path = config_text(config, KEY_DATASET_PATH);
	struct dataset_control own = control ? *control : (struct dataset_control){0};
	own.kind = sample_kind_of(config);
	own.container = container_of_config(config);
	own.exclude = config_text(config, KEY_DATASET_EXCLUDE);
	own.undecoded = config_integer(config, KEY_CODEC_NAME) == CODEC_NAME_NULL &&
			!config_find_axis(config, KEY_CODEC_NAME) && !own.kind->cut;
	struct store *store = NULL;
	int code = store_find(path)->local ? check_folder(path, err) : 0;
	if (!code)
		code = store_open(&store, path, err);
	if (!code)
		code = scan_store(store, (uint64_t)config_integer(config, KEY_DATASET_SAMPLES),
			&own, dataset, err);
	if (!code && own.kind->check && dataset->beside > 0 && !own.container)
		code = own.kind->check(config, store, dataset, err);
	store_close(store);
	return code;
}

int dataset_check_writable(const struct config *config, struct error *err)
{
	const struct store_ops *const store = store_find(config_text(config, KEY_DATASET_PATH));
	return store->local
		       ? 0
		       : error_set(err, -EINVAL,
				 "dataset.path = %s is only read, since it is %s: generate the data set in the folder "
				 "that the server exports, or through a mount, and read it with dataset.recipe = none",
				 config_text(config, KEY_DATASET_PATH), store->summary);
}

static int open_generated(const struct config *config, const struct dataset_control *control,
	struct dataset *dataset, struct error *err)
{
	struct recipe recipe;
	int code = dataset_check_writable(config, err);
	if (!code)
		code = recipe_read(config, &recipe, err);
	if (!code)
		code = site_load(
			&recipe, config_text(config, KEY_DATASET_PATH), true, dataset, err);
	dataset->generated = true;
	const struct sample_ops *const kind = sample_kind_of(config);
	/* Drawn for each file, and nothing of those that are cut: they have no header. */
	for (size_t i = 0; !code && kind->cut && i < dataset->count; i++)
		dataset->samples[i].width = dataset->samples[i].height = 0;
	if (!code && kind->container)
		code = scan_split_generated(config, control, dataset, err);
	return code;
}

/* evaluate.path as the folder that dataset.path is: its configuration. */
static int dataset_evaluated_config(
	const struct config *config, struct config *out, struct error *err)
{
	static const struct {
		enum key_id key;
		const char *value;
	} others[] = {{KEY_EVALUATE_EVERY, "0"}, {KEY_DATASET_RECIPE, "none"},
		{KEY_DATASET_SAMPLES, "0"}};
	int code = config_copy(out, config, err);
	if (!code)
		code = config_set_key(
			out, KEY_DATASET_PATH, config_text(config, KEY_EVALUATE_PATH), err);
	for (size_t i = 0; i < sizeof others / sizeof *others && !code; i++)
		code = config_set_key(out, others[i].key, others[i].value, err);
	return code;
}

static int dataset_open_evaluated(const struct config *config,
	const struct dataset_control *control, struct dataset *dataset, struct error *err)
{
	struct config own = {0};
	const char *const path = config_text(config, KEY_EVALUATE_PATH);
	const bool wanted = config_integer(config, KEY_EVALUATE_EVERY) > 0 ||
			    config_find_axis(config, KEY_EVALUATE_EVERY);
	if (!wanted || !*path)
		return 0;
	int code = dataset_evaluated_config(config, &own, err);
	dataset->evaluated = code ? NULL : calloc(1, sizeof *dataset->evaluated);
	if (!code && !dataset->evaluated)
		code = error_set(err, -ENOMEM, "no memory for the data set of evaluations");
	if (!code)
		code = dataset_open(&own, control, dataset->evaluated, err);
	config_release(&own);
	/* Nothing that could be generated is missing. */
	return code ? error_prefix(err, code == -ENODATA ? -EINVAL : code, "evaluate.path = %.200s",
			      path)
		    : 0;
}

int dataset_open(const struct config *config, const struct dataset_control *control,
	struct dataset *dataset, struct error *err)
{
	*dataset = (struct dataset){0};
	store_patience.timeout_ns = (uint64_t)config_integer(config, KEY_READ_TIMEOUT);
	int code = is_generated(config) ? open_generated(config, control, dataset, err)
					: dataset_open_folder(config, control, dataset, err);
	if (!code) {
		dataset->root = strdup(config_text(config, KEY_DATASET_PATH));
		code = dataset->root ? 0
				     : error_set(err, -ENOMEM, "no memory for the data set's path");
	}
	if (!code)
		code = dataset_open_evaluated(config, control, dataset, err);
	if (code)
		dataset_close(dataset);
	return code;
}

const char *dataset_name_sample(
	const struct dataset *dataset, size_t sample, char out[DATASET_NAME_BYTES])
{
	const char *const path = dataset->samples[sample].path;
	if (dataset->offsets)
		(void)snprintf(out, DATASET_NAME_BYTES, "'%.140s' at byte %" PRIu64, path,
			dataset->offsets[sample]);
	else
		(void)snprintf(out, DATASET_NAME_BYTES, "'%.180s'", path);
	return out;
}

void dataset_close(struct dataset *dataset)
{
	arena_close(dataset->arena);
	free(dataset->root);
	if (dataset->evaluated)
		dataset_close(dataset->evaluated);
	free(dataset->evaluated);
	*dataset = (struct dataset){0};
}

struct verification {
	const struct dataset *dataset;
	struct store *store;
	struct gzip_views *views; /* (threads) of a compressed set, else NULL */
	const struct dataset_control *control;
	atomic_uint_fast64_t good, bad, bytes;
};

enum { BAD_LOGGED = 20 };

/* NULL, or what is wrong; text holds it. */
static const char *examine(const struct verification *verification, unsigned worker, uint64_t index,
	struct error *text)
{
	const struct sample *const sample = &verification->dataset->samples[index];
	struct gzip_views *const views = verification->views ? &verification->views[worker] : NULL;
	char why[ERROR_REASON_BYTES];
	size_t size;
	uint8_t *const data = malloc(sample->bytes + 1); /* so that a longer file shows */
	if (!data)
		return "no memory";
	const int code = source_load_sample(verification->store, views, verification->dataset,
		(uint32_t)index, data, sample->bytes + 1, &size);
	const uint64_t checksum = code ? 0 : hash_bytes(data, size, 0);
	free(data);
	if (code == -EFBIG || size > sample->bytes)
		return "it is longer than the manifest says";
	if (code) {
		(void)error_set(text, code, "%s", source_status_text(code, why));
		return text->text;
	}
	if (size < sample->bytes)
		return "it is shorter than the manifest says";
	return sample->checksum && checksum != sample->checksum
		       ? "its checksum is not the manifest's"
		       : NULL;
}

static int verify_one(void *context, unsigned worker, uint64_t index, struct error *err)
{
	(void)err;
	struct verification *verification = context;
	const struct dataset *const dataset = verification->dataset;
	const struct sample *sample = &dataset->samples[index];
	const uint64_t offset = dataset->offsets ? dataset->offsets[index] : 0;
	struct error text;
	const char *const wrong = examine(verification, worker, index, &text);
	if (!wrong)
		atomic_fetch_add(&verification->good, 1);
	else if (atomic_fetch_add(&verification->bad, 1) >= BAD_LOGGED)
		;
	else if (dataset->offsets)
		log_warn("'%s/%s', the sample at byte %" PRIu64 ": %s", dataset->root, sample->path,
			offset, wrong);
	else
		log_warn("'%s/%s': %s", dataset->root, sample->path, wrong);
	atomic_fetch_add(&verification->bytes, sample->bytes);
	return 0;
}

static int verify_tick(void *context, uint64_t done, struct error *err)
{
	(void)err;
	const struct verification *verification = context;
	const struct dataset_control *control = verification->control;
	if (control && control->progress)
		control->progress(control->context, done, verification->dataset->count,
			atomic_load(&verification->bytes));
	return 0;
}

/* What to compare with: the manifest alone, so that a missing file is a finding and not a refusal.
 */
static int open_to_verify(const struct config *config, const struct dataset_control *control,
	struct dataset *dataset, struct error *err)
{
	struct recipe recipe;
	if (!is_generated(config))
		return dataset_open(config, control, dataset, err);
	*dataset = (struct dataset){0};
	int code = recipe_read(config, &recipe, err);
	if (!code)
		code = site_load(
			&recipe, config_text(config, KEY_DATASET_PATH), false, dataset, err);
	if (!code && !(dataset->root = strdup(config_text(config, KEY_DATASET_PATH))))
		code = error_set(err, -ENOMEM, "no memory for the data set's path");
	if (code)
		dataset_close(dataset);
	return code;
}

static int verify_open_views(struct verification *verification, unsigned threads, struct error *err)
{
	verification->views = calloc(threads, sizeof *verification->views);
	bool good = verification->views;
	for (unsigned i = 0; good && i < threads; i++)
		good = gzip_views_open(&verification->views[i]);
	return good ? 0 : error_set(err, -ENOMEM, "no memory to inflate files");
}

int dataset_verify(const struct config *config, const struct dataset_control *control,
	struct dataset_verified *out, struct error *err)
{
	struct dataset dataset;
	*out = (struct dataset_verified){0};
	int code = open_to_verify(config, control, &dataset, err);
	if (code)
		return code;
	struct verification verification = {.dataset = &dataset, .control = control};
	const struct team_job job = {
		.count = dataset.count,
		.item = verify_one,
		.tick = verify_tick,
		.context = &verification,
		.stop = control ? control->stop : NULL,
		.threads = team_threads(control ? control->threads : 0),
	};
	code = store_open(&verification.store, dataset.root, err);
	if (!code && gzip_view_wanted(config))
		code = verify_open_views(&verification, job.threads, err);
	if (!code)
		code = team_run(&job, err);
	for (unsigned i = 0; verification.views && i < job.threads; i++)
		(void)gzip_views_close(&verification.views[i]);
	free(verification.views);
	store_close(verification.store);
	out->good = atomic_load(&verification.good);
	out->bad = atomic_load(&verification.bad);
	dataset_close(&dataset);
	return code;
}
