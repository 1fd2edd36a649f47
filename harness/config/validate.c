/* Rules across keys that need no file system: what could never be what was meant. */
#include "harness/base/array.h"
#include "harness/base/buffer.h"
#include "harness/base/units.h"
#include "harness/config/config.h"
#include "harness/config/tables.h"
#include "harness/config/value.h"

#include <errno.h>
#include <inttypes.h>

enum { PIXEL_BYTES_MAX = 4, HEADER_BYTES = 65536 };

static const double DATASET_BYTES_LIMIT = 1125899906842624.0; /* 1 PiB of generated files */
static const double PIXELS_LIMIT = 64e6; /* in a picture: what the decoders take */

/* least <= largest */
static int check_pair(
	const struct config *config, enum key_id least, enum key_id largest, struct error *err)
{
	const double low = config_real(config, least);
	const double high = config_real(config, largest);
	if (low <= high)
		return 0;
	return error_set(err, -EINVAL, "'%s.%s' = %g is above '%s.%s' = %g",
		config_keys[least].section, config_keys[least].name, low,
		config_keys[largest].section, config_keys[largest].name, high);
}

/* What a recipe can make, and a disk can hold. */
static int check_recipe(const struct config *config, struct error *err)
{
	const double pixels =
		config_real(config, KEY_DATASET_WIDTH) * config_real(config, KEY_DATASET_HEIGHT);
	const double most = pixels * PIXEL_BYTES_MAX + HEADER_BYTES;
	const double bytes = config_real(config, KEY_DATASET_BYTES);
	/* A tenth of the pixels' size is what photographs come out at, or less. */
	const double each = bytes > 0 ? bytes : pixels / 10;
	const double total = each * config_real(config, KEY_DATASET_SAMPLES);
	char asked[UNITS_BYTES];
	char whole[UNITS_BYTES];
	if (config_integer(config, KEY_DATASET_SAMPLES) == 0)
		return error_set(err, -EINVAL,
			"'dataset.samples' is 0, and 'dataset.recipe' needs to know how many to generate (example: samples = 1200)");
	/* Of others the recipe itself knows what can be. */
	if (config_integer(config, KEY_DATASET_RECIPE) != DATASET_RECIPE_PHOTO)
		return 0;
	if (pixels > PIXELS_LIMIT)
		return error_set(err, -EINVAL,
			"'dataset.width' x 'dataset.height' is %s pixels, more than the %s that a picture may have",
			UNITS_PLAIN(pixels, 3), UNITS_PLAIN(PIXELS_LIMIT, 3));
	if (bytes > most)
		return error_set(err, -EINVAL,
			"'dataset.bytes' = %s is more than pictures of %" PRId64 "x%" PRId64
			" have (%s uncompressed)",
			units_format_size(bytes, asked), config_integer(config, KEY_DATASET_WIDTH),
			config_integer(config, KEY_DATASET_HEIGHT), units_format_size(most, whole));
	if (total > DATASET_BYTES_LIMIT)
		return error_set(err, -EINVAL,
			"'dataset.samples' = %" PRId64 " would take %s; 1 PiB is the limit",
			config_integer(config, KEY_DATASET_SAMPLES),
			units_format_size(total, whole));
	return 0;
}

static int check_dataset(const struct config *config, struct error *err)
{
	if (!*config_text(config, KEY_DATASET_PATH))
		return error_set(err, -EINVAL,
			"'dataset.path' is not set; name the folder of the data set, as in 'path = data/pictures' under [dataset]");
	return config_integer(config, KEY_DATASET_RECIPE) == DATASET_RECIPE_NONE
		       ? 0
		       : check_recipe(config, err);
}

static int check_crop(const struct config *config, struct error *err)
{
	const int code = check_pair(config, KEY_AUGMENT_SCALE_MIN, KEY_AUGMENT_SCALE_MAX, err);
	return code ? code : check_pair(config, KEY_AUGMENT_RATIO_MIN, KEY_AUGMENT_RATIO_MAX, err);
}

/* The memory engine reads everything before the clock starts: there is no cache to be cold, and no
 * read to be direct. */
static int check_memory_engine(const struct config *config, struct error *err)
{
	const int64_t engine = config_integer(config, KEY_READ_ENGINE);
	if (engine == READ_ENGINE_MMAP && config_on(config, KEY_READ_DIRECT))
		return error_set(err, -EINVAL,
			"'read.direct' = on does not go with 'read.engine' = mmap: what is mapped is in the page cache");
	if (engine != READ_ENGINE_MEMORY)
		return 0;
	if (config_integer(config, KEY_READ_CACHE) == READ_CACHE_COLD)
		return error_set(err, -EINVAL,
			"'read.cache' = cold does not go with 'read.engine' = memory, which reads nothing while the clock runs");
	if (config_on(config, KEY_READ_DIRECT))
		return error_set(err, -EINVAL,
			"'read.direct' = on does not go with 'read.engine' = memory, which reads nothing while the clock runs");
	return 0;
}

/* What is cut out of large requests is one reader's. */
static int check_large_requests(const struct config *config, struct error *err)
{
	if (config_integer(config, KEY_READ_REQUEST) == 0)
		return 0;
	if (config_integer(config, KEY_READ_THREADS) > 1)
		return error_set(err, -EINVAL,
			"'read.request' takes one reader thread, which keeps 'read.depth' large requests in flight: set 'read.threads' to 1");
	if (config_integer(config, KEY_READ_ORDER) == READ_ORDER_SHUFFLE)
		return error_set(err, -EINVAL,
			"'read.request' reads what lies together, and 'read.order' = shuffle asks for it in any order: set it to shards or sequential");
	return config_real(config, KEY_INJECT_READ_CACHE) > 0
		       ? error_set(err, -EINVAL,
				 "'inject.read_cache' holds samples, and 'read.request' reads many at once: leave one out")
		       : 0;
}

/* Recorded times are an emulated step's, and have a spread of their own.  Without a step (null) they wait for one, as step.time
 * does. */
static int check_step_times(const struct config *config, struct error *err)
{
	const int64_t backend = config_integer(config, KEY_STEP_BACKEND);
	if (!*config_text(config, KEY_STEP_TIMES))
		return 0;
	if (backend != STEP_BACKEND_AUTO && backend != STEP_BACKEND_EMULATED &&
		backend != STEP_BACKEND_NULL)
		return error_set(err, -EINVAL,
			"'step.times' are those of an emulated step: set 'step.backend' to emulated, or remove them");
	if (config_real(config, KEY_STEP_JITTER) > 0)
		return error_set(err, -EINVAL,
			"'step.jitter' does not go with 'step.times', which vary by themselves: leave one out");
	return 0;
}

/* What workers that read for themselves make no use of. */
static int check_reading_workers(const struct config *config, struct error *err)
{
	static const struct {
		enum key_id key;
		int64_t most;
		const char *why;
	} useless[] = {
		{KEY_READ_THREADS, 1, "there are no reader threads: set 'decode.workers'"},
		{KEY_READ_DEPTH, 1, "each of them reads one file at a time: set 'decode.workers'"},
		{KEY_DECODE_QUEUE, 0, "no file waits for a worker"},
		{KEY_READ_REQUEST, 0, "large requests are read ahead by a reader thread"},
	};
	for (size_t i = 0; i < COUNT(useless); i++)
		if (config_integer(config, useless[i].key) > useless[i].most &&
			!config_is_default(config, useless[i].key))
			return error_set(err, -EINVAL,
				"'%s.%s' does not go with 'read.by' = workers: %s",
				config_keys[useless[i].key].section,
				config_keys[useless[i].key].name, useless[i].why);
	return 0;
}

/* Who reads and makes what, and when. */
static int check_loader(const struct config *config, struct error *err)
{
	const bool by_workers = config_integer(config, KEY_READ_BY) == READ_BY_WORKERS;
	const bool batches = config_integer(config, KEY_DECODE_SHARE) == DECODE_SHARE_BATCHES;
	const bool turns = config_integer(config, KEY_PREFETCH_DEPTH) == 0;
	if (batches && !by_workers)
		return error_set(err, -EINVAL,
			"'decode.share' = batches needs 'read.by' = workers: a worker that makes a whole batch reads its files itself");
	if (turns && batches && config_integer(config, KEY_DECODE_WORKERS) > 1)
		return error_set(err, -EINVAL,
			"'prefetch.depth' = 0 makes one batch at a time, and with 'decode.share' = batches one worker makes it: set 'decode.workers' to 1");
	if (turns && config_integer(config, KEY_UPLOAD_MODE) == UPLOAD_MODE_COPY)
		return error_set(err, -EINVAL,
			"'prefetch.depth' = 0 does not go with 'upload.mode' = copy, which moves the next batch while a step computes");
	if (turns && config_integer(config, KEY_READ_REQUEST) > 0)
		return error_set(err, -EINVAL,
			"'prefetch.depth' = 0 does not go with 'read.request', which reads ahead");
	return by_workers ? check_reading_workers(config, err) : 0;
}

/* augment.device = gpu: who makes the samples, and of what. */
static int check_gpu_samples(const struct config *config, struct error *err)
{
	const int64_t backend = config_integer(config, KEY_STEP_BACKEND);
	if (config_integer(config, KEY_AUGMENT_DEVICE) != AUGMENT_DEVICE_GPU)
		return 0;
	if (backend == STEP_BACKEND_EMULATED || backend == STEP_BACKEND_OPENBLAS)
		return error_set(err, -EINVAL,
			"'augment.device' = gpu does not go with 'step.backend' = %s, which makes no samples: it needs cuda",
			backend == STEP_BACKEND_EMULATED ? "emulated" : "openblas");
	if (config_integer(config, KEY_DECODE_THREADS) > 1)
		return error_set(err, -EINVAL,
			"'decode.threads' > 1 does not go with 'augment.device' = gpu, which leaves the workers nothing to share");
	if (config_integer(config, KEY_CODEC_NAME) == CODEC_NAME_NULL)
		return error_set(err, -EINVAL,
			"'augment.device' = gpu does not go with 'codec.name' = null, which decodes no pictures for it");
	return 0;
}

/* Where the backend is chosen only when the run is planned, that is where it is known. */
static bool may_upload(const struct config *config)
{
	const int64_t mode = config_integer(config, KEY_UPLOAD_MODE);
	const int64_t backend = config_integer(config, KEY_STEP_BACKEND);
	if (mode == UPLOAD_MODE_AUTO)
		return backend == STEP_BACKEND_CUDA || backend == STEP_BACKEND_AUTO;
	return mode == UPLOAD_MODE_COPY;
}

/* The first of these keys that is set to plant something. */
static const char *find_planted(const struct config *config, const enum key_id *keys, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (config_real(config, keys[i]) > config_keys[keys[i]].min)
			return config_keys[keys[i]].name;
	return NULL;
}

/* A planted condition that would not act is no experiment. */
static int check_inject(const struct config *config, struct error *err)
{
	static const enum key_id of_copy[] = {
		KEY_INJECT_UPLOAD_FACTOR, KEY_INJECT_UPLOAD_BANDWIDTH};
	static const enum key_id of_several[] = {KEY_INJECT_SLOW_DEVICE, KEY_INJECT_SYNC_FACTOR};
	const char *copy = may_upload(config) ? NULL : find_planted(config, of_copy, 2);
	const bool together = config_integer(config, KEY_STEP_DEVICES) > 1;
	const bool ranks = config_integer(config, KEY_RUN_RANKS) > 1;
	const char *several =
		together ? NULL : find_planted(config, of_several + ranks, 2U - ranks);
	const double begin = config_real(config, KEY_INJECT_BEGIN);
	const double end = config_real(config, KEY_INJECT_END);
	if (copy)
		return error_set(err, -EINVAL,
			"'inject.%s' slows the copy of batches, and there is none: it needs 'upload.mode' = copy",
			copy);
	if (config_real(config, KEY_INJECT_READ_CACHE) > 0 &&
		config_integer(config, KEY_INJECT_READ_BANDWIDTH) == 0 &&
		config_integer(config, KEY_INJECT_READ_LATENCY) == 0)
		return error_set(err, -EINVAL,
			"'inject.read_cache' is the cache of an emulated storage: it needs 'inject.read_bandwidth' or 'inject.read_latency'");
	if ((config_real(config, KEY_INJECT_READ_SLOW_SHARE) > 0) !=
		(config_integer(config, KEY_INJECT_READ_SLOW_LATENCY) > 0))
		return error_set(err, -EINVAL,
			"'inject.read_slow_share' and 'inject.read_slow_latency' say which files take how much longer: give both, or neither");
	if (several)
		return error_set(err, -EINVAL,
			"'inject.%s' is about devices that train together, and there is one: it needs 'step.devices' > 1",
			several);
	if (config_real(config, KEY_INJECT_LOCK_SHARE) > 0 &&
		config_real(config, KEY_OVERHEAD_LOCK) > 0)
		return error_set(err, -EINVAL,
			"'inject.lock_share' and 'overhead.lock' are of one and the same lock: leave one out");
	if (config_integer(config, KEY_INJECT_CPUS) > 0 &&
		config_integer(config, KEY_RUN_AFFINITY) != AFFINITY_NONE)
		return error_set(err, -EINVAL,
			"'inject.cpus' and 'run.affinity' both say which cores the workers run on: leave one out");
	if (begin >= end)
		return error_set(err, -EINVAL,
			"'inject.begin' = %g %% is not before 'inject.end' = %g %%", begin * 100,
			end * 100);
	if ((begin > 0 || end < 1) && config_integer(config, KEY_MEASURE_EPOCHS) > 0)
		return error_set(err, -EINVAL,
			"'inject.begin' and 'inject.end' are shares of the planned time, and 'measure.epochs' plans none");
	return 0;
}

/* The timeline is made of what the profiler measures. */
static int check_timeline(const struct config *config, struct error *err)
{
	if (!*config_text(config, KEY_TRACE_SCHEDULE) || config_on(config, KEY_MEASURE_PROFILER))
		return 0;
	return error_set(err, -EINVAL,
		"'trace.schedule' does not go with 'measure.profiler' = off, which keeps no states of threads");
}

/* What is said of evaluations where there are none. */
static int check_evaluations(const struct config *config, struct error *err)
{
	static const enum key_id others[] = {KEY_EVALUATE_PATH, KEY_EVALUATE_SAMPLES,
		KEY_EVALUATE_BATCH_SIZE, KEY_EVALUATE_WORKERS, KEY_EVALUATE_STEP_TIME};
	for (size_t i = 0; i < COUNT(others) && !config->is_set[KEY_EVALUATE_EVERY]; i++)
		if (!config_is_default(config, others[i]))
			return error_set(err, -EINVAL,
				"'evaluate.%s' is set, and 'evaluate.every' = 0 never evaluates: set 'evaluate.every' to a number of steps",
				config_keys[others[i]].name);
	return 0;
}

/* What others wrote contacts nobody and writes nowhere but where the user works. */
static int check_elsewhere(const struct config *config, struct error *err)
{
	for (int key = 0; key < KEY_COUNT; key++)
		if (config->is_elsewhere[key])
			return error_set(err, -EINVAL,
				"'%s.%s' = '%.200s': a case or a lab names no server, and no folder outside of the one it runs in; if you trust it, give %s--set %s.%s=...",
				config_keys[key].section, config_keys[key].name,
				config_text(config, (enum key_id)key),
				key == KEY_DATASET_PATH ? "--data DIR or " : "",
				config_keys[key].section, config_keys[key].name);
	return 0;
}

static int check_rules(const struct config *config, struct error *err)
{
	static int (*const rules[])(const struct config *config, struct error *err) = {
		check_elsewhere, check_dataset, check_crop, check_memory_engine,
		check_large_requests, check_loader, check_step_times, check_gpu_samples,
		check_inject, check_timeline, check_evaluations};
	int code = 0;
	for (size_t i = 0; i < COUNT(rules) && !code; i++)
		code = rules[i](config, err);
	return code;
}

/* Says at which point of the sweep a rule is broken. */
static int name_point(
	const struct config *config, const struct config *point, int code, struct error *err)
{
	struct buffer text = {0};
	for (size_t i = 0; i < config->axis_count; i++) {
		const enum key_id key = config->axes[i].key;
		buffer_format(&text, "%s%s.%s=", i ? " " : "", config_keys[key].section,
			config_keys[key].name);
		value_write(key, &point->values[key], true, &text);
	}
	if (!text.failed)
		(void)error_prefix(err, code,
			"at the point %.200s (leave it out with sweep.exclude)", text.data);
	buffer_release(&text);
	return code;
}

int config_validate(const struct config *config, struct error *err)
{
	struct config_grid grid;
	struct config point;
	int code = config_grid_open(config, &grid, err);
	if (code)
		return code;
	code = config_copy(&point, config, err);
	if (code) {
		config_grid_close(&grid);
		return code;
	}
	for (size_t i = 0; i < grid.points && !code; i++) {
		code = grid_apply_point(config, &grid, i, &point, err);
		if (!code)
			code = check_rules(&point, err);
		if (code == -EINVAL && config->axis_count > 0)
			(void)name_point(config, &point, code, err);
	}
	config_release(&point);
	config_grid_close(&grid);
	return code;
}
