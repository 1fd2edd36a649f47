/* Kinds of samples: their table, what the kind image says of a batch, and a second kind, tiny and unlike it, that goes
 * through the whole pipeline without a line of the product knowing it: the first bytes of a file, with odd labels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/pipeline_fixture.h"

#include "workloads/backend/backend.h"
#include "workloads/sample/sample.h"

#include <errno.h>
#include <unistd.h>

enum { SAMPLES = 45, BATCH = 7, SAMPLE_BYTES = 29, LABEL_BYTES = 3, CLASSES = 256 };

/* ---- the kind ----------------------------------------------------------------------------- */

struct taker {
	uint64_t taken;
};

/* What all workers did. */
static atomic_uint_least64_t taken, opened, closed;

static void taken_shape(const struct config *config, struct sample_shape *out)
{
	(void)config;
	*out = (struct sample_shape){.type = BATCH_UINT8, .dimensions = 1, .of = {SAMPLE_BYTES}};
}

static size_t taken_labels(const struct config *config)
{
	(void)config;
	return LABEL_BYTES;
}

static uint32_t taken_classes(const struct config *config, const struct dataset *dataset)
{
	(void)config;
	(void)dataset;
	return CLASSES;
}

static uint64_t taken_scratch(const struct config *config, const struct dataset *dataset)
{
	(void)config;
	(void)dataset;
	return sizeof(struct taker);
}

static int taken_open(void **worker, const struct sample_options *options, struct error *err)
{
	assert_non_null(options->stop);
	*worker = calloc(1, sizeof(struct taker));
	if (!*worker)
		return error_set(err, -ENOMEM, "no memory");
	(void)atomic_fetch_add(&opened, 1);
	return 0;
}

static void taken_close(void *worker)
{
	const struct taker *taker = worker;
	if (!taker)
		return;
	(void)atomic_fetch_add(&taken, taker->taken);
	(void)atomic_fetch_add(&closed, 1);
	free(worker);
}

/* Its class, its first byte, and how long it is. */
static int taken_make(void *worker, const struct sample_task *task, struct error *err)
{
	const uint8_t *const bytes = task->bytes;
	((struct taker *)worker)->taken++;
	if (task->size < SAMPLE_BYTES)
		return error_set(err, -EINVAL, "%zu bytes only", task->size);
	memcpy(task->out, bytes, SAMPLE_BYTES);
	task->labels[0] = (uint8_t)task->sample->label;
	task->labels[1] = bytes[SAMPLE_BYTES - 1];
	task->labels[2] = (uint8_t)task->size;
	return 0;
}

static const struct sample_ops sample_taken = {
	.name = "taken",
	.summary = "the first bytes of a file",
	.shape = taken_shape,
	.label_bytes = taken_labels,
	.make = taken_make,
	.scratch_bytes = taken_scratch,
	.open = taken_open,
	.close = taken_close,
	.classes = taken_classes,
};

/* ---- a step that looks at its batches ----------------------------------------------------- */

static struct seen {
	const struct pipeline_fixture *fixture;
	uint8_t samples[SAMPLES][SAMPLE_BYTES], labels[SAMPLES][LABEL_BYTES];
	uint64_t batches, next;
	uint32_t elements, classes;
	bool wrong;
} seen;

static int look_open(struct backend *backend, struct error *err)
{
	(void)err;
	seen.elements = backend->sample_elements;
	seen.classes = backend->class_count;
	return 0;
}

static int look_step(struct backend *backend, const struct batch_view *batch,
	struct step_result *out, struct error *err)
{
	(void)backend;
	(void)out;
	(void)err;
	const uint8_t *const data = batch->data;
	const uint8_t *const labels = (const uint8_t *)batch->labels;
	seen.batches++;
	seen.wrong = seen.wrong || batch->notes || batch->type != BATCH_UINT8 ||
		     batch->sample_bytes != SAMPLE_BYTES || batch->label_bytes != LABEL_BYTES ||
		     batch->bytes != batch->size * (size_t)SAMPLE_BYTES;
	for (uint32_t i = 0; i < batch->size && !seen.wrong; i++) {
		const size_t at = seen.next++ % SAMPLES; /* in the files' order */
		memcpy(seen.samples[at], data + i * (size_t)SAMPLE_BYTES, SAMPLE_BYTES);
		memcpy(seen.labels[at], labels + i * (size_t)LABEL_BYTES, LABEL_BYTES);
	}
	return 0;
}

static const struct backend_ops look_ops = {
	.name = "look",
	.null = true, /* it takes any samples */
	.summary = "keeps what it sees",
	.size = sizeof(struct backend),
	.open = look_open,
	.step = look_step,
};

/* ---- the pipeline ------------------------------------------------------------------------- */

static void open_taken(struct pipeline_fixture *f)
{
	fixture_open(f, SAMPLES, 24, 20, 0);
	fixture_set(f, KEY_BATCH_SIZE, "7");
	fixture_set(f, KEY_BATCH_DROP_LAST, "off");
	fixture_set(f, KEY_READ_ORDER, "sequential");
	fixture_set(f, KEY_MEASURE_EPOCHS, "2");
	fixture_set(f, KEY_MEASURE_WARMUP, "0s");
	fixture_set(f, KEY_MEASURE_WINDOW, "10s");
	fixture_set(f, KEY_RUN_VERIFY, "on");
	fixture_set(f, KEY_STEP_BACKEND, "cuda");
	backend_replace_device(&look_ops);
	sample_replace_kind(&sample_taken);
	taken = opened = closed = 0;
	seen = (struct seen){.fixture = f};
}

static void close_taken(struct pipeline_fixture *f)
{
	sample_replace_kind(NULL);
	backend_replace_device(NULL);
	fixture_close(f);
}

/* What a batch must hold of the file. */
static void check_sample(const struct pipeline_fixture *f, size_t i, bool bad)
{
	uint8_t samples[SAMPLE_BYTES] = {0};
	uint8_t labels[LABEL_BYTES] = {0};
	if (!bad) {
		char path[256];
		char *data;
		size_t size;
		struct error err;
		(void)snprintf(path, sizeof path, "%s/%s", f->root, f->dataset.samples[i].path);
		assert_int_equal(files_read(path, 1 << 20, &data, &size, &err), 0);
		memcpy(samples, data, sizeof samples);
		labels[0] = (uint8_t)(i % 3);
		labels[1] = samples[SAMPLE_BYTES - 1];
		labels[2] = (uint8_t)size;
		free(data);
	}
	assert_memory_equal(seen.samples[i], samples, sizeof samples);
	assert_memory_equal(seen.labels[i], labels, sizeof labels);
}

static uint64_t run_taken(struct pipeline_fixture *f, uint64_t bad)
{
	struct measurement m;
	struct error err = {""};
	seen = (struct seen){.fixture = f};
	memset(seen.samples, 0xAB, sizeof seen.samples);
	memset(seen.labels, 0xAB, sizeof seen.labels);
	if (pipeline_run(&f->config, &f->dataset, NULL, &m, &err))
		fail_msg("%s", err.text);
	assert_false(seen.wrong);
	assert_int_equal(seen.next, 2 * SAMPLES);
	assert_int_equal(seen.batches, 2 * ((SAMPLES + BATCH - 1) / BATCH));
	assert_int_equal(seen.elements, SAMPLE_BYTES);
	assert_int_equal(seen.classes, CLASSES);
	assert_int_equal(m.bad_samples, bad);
	assert_true(m.has_checksum);
	const uint64_t sum = m.checksum;
	measurement_release(&m);
	return sum;
}

static void another_kind_goes_through_the_pipeline(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	static const char *const workers[] = {"1", "3"};
	static const char *const engines[] = {"memory", "pread"};
	static const char *const uploads[] = {"none", "copy"};
	uint64_t first = 0;
	open_taken(&f);
	for (int way = 0; way < 8; way++) {
		fixture_set(&f, KEY_DECODE_WORKERS, workers[way & 1]);
		fixture_set(&f, KEY_READ_ENGINE, engines[way >> 1 & 1]);
		fixture_set(&f, KEY_UPLOAD_MODE, uploads[way >> 2]);
		const uint64_t sum = run_taken(&f, 0);
		first = way == 0 ? sum : first;
		assert_true(sum == first);
		for (size_t i = 0; i < SAMPLES; i++)
			check_sample(&f, i, false);
	}
	assert_int_equal(taken, 8 * 2 * SAMPLES);
	assert_int_equal(opened, 4 * (1 + 3));
	assert_int_equal(closed, opened);
	close_taken(&f);
}

static void bad_samples_are_zeros_and_counted(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	char path[256];
	open_taken(&f);
	fixture_set(&f, KEY_READ_ENGINE, "pread");
	(void)run_taken(&f, 0); /* so that places hold something else */
	fixture_write(&f, 5, "short", 5);
	(void)snprintf(path, sizeof path, "%s/%s", f.root, f.dataset.samples[SAMPLES - 1].path);
	assert_int_equal(unlink(path), 0);
	(void)run_taken(&f, 4);
	for (size_t i = 0; i < SAMPLES; i++)
		check_sample(&f, i, i == 5 || i == SAMPLES - 1);
	close_taken(&f);
}

static void no_codec_makes_no_samples(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_taken(&f);
	fixture_set(&f, KEY_CODEC_NAME, "null");
	fixture_write(&f, 5, "short", 5);
	(void)run_taken(&f, 0);
	assert_int_equal(taken, 0);
	close_taken(&f);
}

static void its_sizes_are_planned(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct pipeline_plan plan;
	struct error err = {""};
	open_taken(&f);
	fixture_set(&f, KEY_UPLOAD_MODE, "copy");
	assert_int_equal(pipeline_plan(&f.config, &f.dataset, &plan, &err), 0);
	assert_true(plan.kind == &sample_taken);
	assert_int_equal(plan.sample.values, SAMPLE_BYTES);
	assert_int_equal(plan.sample.bytes, SAMPLE_BYTES);
	assert_int_equal(plan.sample.label_bytes, LABEL_BYTES);
	assert_int_equal(plan.sample.classes, CLASSES);
	assert_int_equal(plan.sample.raw_bytes, 0);
	assert_int_equal(plan.batch_bytes, sample_room(BATCH * SAMPLE_BYTES));
	assert_int_equal(plan.slot_pool_bytes,
		plan.slots * (plan.batch_bytes + (size_t)BATCH * LABEL_BYTES));
	assert_int_equal(plan.staging_bytes,
		plan.staging_slots * (plan.batch_bytes + (size_t)BATCH * LABEL_BYTES));
	assert_int_equal(plan.scratch_bytes, plan.decode_workers * sizeof(struct taker));
	char largest[192];
	sample_describe_largest(plan.kind, &f.dataset, largest, sizeof largest);
	assert_non_null(strstr(largest, ".ppm', of 1."));
	assert_null(strstr(largest, "pixels"));
	close_taken(&f);
}

static void what_it_cannot_be_is_refused(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct pipeline_plan plan;
	struct error err = {""};
	open_taken(&f);
	/* As results have it: every key is written there. */
	fixture_set(&f, KEY_AUGMENT_SIZE, config_keys[KEY_AUGMENT_SIZE].fallback);
	assert_int_equal(pipeline_plan(&f.config, &f.dataset, &plan, &err), 0);
	fixture_set(&f, KEY_AUGMENT_SIZE, "16");
	assert_int_equal(pipeline_plan(&f.config, &f.dataset, &plan, &err), -EINVAL);
	assert_string_equal(err.text,
		"'augment.size' is about sample.kind = image, and has no effect on taken: leave it out");
	fixture_set(&f, KEY_AUGMENT_SIZE, config_keys[KEY_AUGMENT_SIZE].fallback);
	/* Batches that cannot be, by the shape of its samples and before there is a data set. */
	fixture_set(&f, KEY_DATASET_SAMPLES, "6");
	fixture_set(&f, KEY_BATCH_DROP_LAST, "on");
	assert_int_equal(sample_validate(&f.config, &err), -EINVAL);
	assert_string_equal(err.text,
		"'batch.size' = 7 is more than 'dataset.samples' = 6, and 'batch.drop_last' leaves incomplete batches out: set 'batch.size' to 6 or less, or 'batch.drop_last' to off");
	fixture_set(&f, KEY_DATASET_SAMPLES, "0");
	fixture_set(&f, KEY_STEP_BACKEND, "openblas");
	fixture_set(&f, KEY_STEP_MODEL, "mlp");
	const int code = pipeline_plan(&f.config, &f.dataset, &plan, &err);
	print_message("%s\n", err.text);
	assert_true(code == -EINVAL || code == -ENOTSUP);
	assert_true(code == -ENOTSUP || strstr(err.text, "sample.kind = taken"));
	close_taken(&f);
}

static void write_file(const struct pipeline_fixture *f, const char *name, const char *text)
{
	char path[256];
	struct error err = {""};
	(void)snprintf(path, sizeof path, "%s/%s", f->root, name);
	if (files_write_atomic(path, text, strlen(text), &err))
		fail_msg("%s", err.text);
}

/* Images are looked for by their names and headers; this kind takes what is there. */
static void a_folder_has_samples_of_each_kind(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct dataset dataset;
	struct error err = {""};
	char cache[160];
	open_taken(&f);
	(void)snprintf(cache, sizeof cache, "%s-cache", f.root);
	assert_int_equal(setenv("XDG_CACHE_HOME", cache, 1), 0);
	write_file(&f, "class0/any.bin", "thirty bytes, of which some are taken");
	write_file(&f, "class0/wrong.ppm", "no picture, but these are bytes, too");
	write_file(&f, "class0/.hidden", "not looked at, however many there are");
	write_file(&f, "class2/empty.bin", "");
	for (int time = 0; time < 2; time++) {
		assert_int_equal(dataset_open(&f.config, NULL, &dataset, &err), 0);
		assert_int_equal(dataset.count, SAMPLES + 2);
		assert_int_equal(dataset.bad_count, 1);
		assert_int_equal(dataset.class_count, 3);
		assert_string_equal(dataset.samples[SAMPLES / 3].path, "class0/any.bin");
		assert_int_equal(dataset.scanned_now, time == 0);
		if (time == 0)
			dataset_close(&dataset);
	}
	struct measurement m;
	if (pipeline_run(&f.config, &dataset, NULL, &m, &err))
		fail_msg("%s", err.text);
	assert_int_equal(m.bad_samples, 0);
	assert_int_equal(taken, 2 * (SAMPLES + 2));
	measurement_release(&m);
	dataset_close(&dataset);
	/* Of the same folder: what the other kind found is not taken for it. */
	sample_replace_kind(NULL);
	assert_int_equal(dataset_open(&f.config, NULL, &dataset, &err), 0);
	assert_int_equal(dataset.count, SAMPLES);
	assert_int_equal(dataset.bad_count, 1);
	assert_true(dataset.scanned_now);
	assert_int_equal(dataset.samples[0].width, 24);
	dataset_close(&dataset);
	(void)files_remove_tree(cache, &err);
	close_taken(&f);
}

/* ---- the table ---------------------------------------------------------------------------- */

static void a_table_that_lacks_a_hook_is_refused(void **state)
{
	(void)state;
	struct error err = {""};
	assert_int_equal(sample_kinds_check(&err), 0);
	assert_int_equal(sample_kind_check(&sample_taken, &err), 0);
	struct sample_ops kind = sample_taken;
	kind.close = NULL;
	assert_int_equal(sample_kind_check(&kind, &err), -EINVAL);
	assert_string_equal(
		err.text, "bug: the table of the sample kind 'taken' has one of .open and .close");
	kind = (struct sample_ops){.name = "empty", .summary = "nothing"};
	assert_int_equal(sample_kind_check(&kind, &err), -EINVAL);
	assert_non_null(strstr(err.text, "no .shape"));
	struct sample_device_ops device = *sample_kinds[0]->device;
	device.hash = NULL;
	kind = *sample_kinds[0];
	kind.device = &device;
	assert_int_equal(sample_kind_check(&kind, &err), -EINVAL);
	assert_non_null(strstr(err.text, ".hash"));
}

static void images_have_their_shape(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	struct sample_sizes sizes;
	fixture_open(&f, 3, 24, 20, 0);
	sample_sizes_of(&f.config, &f.dataset, &sizes);
	assert_int_equal(sizes.shape.dimensions, 3);
	assert_int_equal(sizes.shape.of[0], 3);
	assert_int_equal(sizes.values, 3 * 224 * 224);
	assert_int_equal(sizes.bytes, 4 * 3 * 224 * 224);
	assert_int_equal(sizes.label_bytes, 4);
	assert_int_equal(sizes.classes, 3);
	assert_int_equal(sizes.raw_bytes, 0);
	struct error err = {""};
	fixture_set(&f, KEY_BATCH_SIZE, "1M");
	fixture_set(&f, KEY_AUGMENT_SIZE, "4096");
	assert_int_equal(sample_validate(&f.config, &err), -EINVAL);
	assert_string_equal(err.text,
		"'batch.size' x 'prefetch.depth' samples of 192 MiB would take 366 TiB of memory; 4 TiB is the limit");
	fixture_set(&f, KEY_AUGMENT_SIZE, "16");
	fixture_set(&f, KEY_AUGMENT_TYPE, "uint8");
	fixture_set(&f, KEY_AUGMENT_LAYOUT, "hwc");
	fixture_set(&f, KEY_AUGMENT_DEVICE, "gpu");
	sample_sizes_of(&f.config, &f.dataset, &sizes);
	assert_int_equal(sizes.shape.of[2], 3);
	assert_int_equal(sizes.values, 3 * 16 * 16);
	assert_int_equal(sizes.bytes, 3 * 16 * 16);
	assert_int_equal(sizes.raw_bytes, sample_room(3 * 26 * 22));
	assert_int_equal(sizes.note_bytes, sizeof(struct batch_picture));
	fixture_close(&f);
}

/* A key that came late changes no hash while it says what was so before. */
static void hashes_of_before_stay(void **state)
{
	(void)state;
	struct config config;
	char hash[17];
	struct error err = {""};
	config_init(&config);
	assert_int_equal(config_set(&config, "dataset.path=data", &err), 0);
	config_hash(&config, hash);
	assert_string_equal(hash, "a08d9728640a06b1");
	assert_int_equal(config_set(&config, "volume.flip=0", &err), 0);
	config_hash(&config, hash);
	assert_string_not_equal(hash, "a08d9728640a06b1");
	config_release(&config);
	/* Swept, it has no one value that could be its default. */
	config_init(&config);
	assert_int_equal(config_set(&config, "dataset.path=data", &err), 0);
	assert_int_equal(config_set(&config, "sweep.volume.flip=0,50%", &err), 0);
	config_hash(&config, hash);
	assert_string_not_equal(hash, "a08d9728640a06b1");
	config_release(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_kind_goes_through_the_pipeline),
		cmocka_unit_test(bad_samples_are_zeros_and_counted),
		cmocka_unit_test(no_codec_makes_no_samples),
		cmocka_unit_test(its_sizes_are_planned),
		cmocka_unit_test(what_it_cannot_be_is_refused),
		cmocka_unit_test(a_folder_has_samples_of_each_kind),
		cmocka_unit_test(a_table_that_lacks_a_hook_is_refused),
		cmocka_unit_test(images_have_their_shape),
		cmocka_unit_test(hashes_of_before_stay),
	};
	return cmocka_run_group_tests_name("sample", tests, NULL, NULL);
}
