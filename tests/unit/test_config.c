/* The key table, values in and out, --set, and the accessors. */
#include "harness/base/rng.h"
#include "harness/config/config.h"
#include "harness/config/tables.h"
#include "harness/config/value.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROUNDS = 300 };

static struct config config;
static struct error err;

static int open_config(void **state)
{
	(void)state;
	config_init(&config);
	err.text[0] = '\0';
	return 0;
}

static int close_config(void **state)
{
	(void)state;
	config_release(&config);
	return 0;
}

static void accept(const char *assignment)
{
	if (config_set(&config, assignment, &err))
		fail_msg("'%s' was refused: %s", assignment, err.text);
}

/* Refused, with just this message. */
static void refuse(const char *assignment, const char *message)
{
	assert_int_equal(config_set(&config, assignment, &err), -EINVAL);
	assert_string_equal(err.text, message);
}

static void table_is_sound(void **state)
{
	(void)state;
	for (int i = 0; i < KEY_COUNT; i++) {
		const enum key_id id = (enum key_id)i;
		const struct key *key = &config_keys[i];
		char dotted[80];
		struct config_value value;
		(void)snprintf(dotted, sizeof dotted, "%s.%s", key->section, key->name);
		assert_int_equal(config_find_key(dotted), id);
		if (value_parse(id, key->fallback, &value, &err))
			fail_msg("the default of %s is wrong: %s", dotted, err.text);
		value_release(&value);
		const bool number = key->type != KEY_TYPE_TEXT && key->type != KEY_TYPE_CHOICE &&
				    key->type != KEY_TYPE_BOOLEAN;
		assert_true(number ? key->min < key->max : key->max == 0.0);
		assert_int_equal(*key->choices != '\0', key->type == KEY_TYPE_CHOICE);
		assert_true(strlen(key->doc) > 10);
		assert_int_equal(key->doc[strlen(key->doc) - 1], '.');
		assert_true(strlen(dotted) < 40);
		size_t sections = 0;
		for (size_t s = 0; s < config_section_count; s++)
			sections += strcmp(config_sections[s].name, key->section) == 0;
		assert_int_equal(sections, 1);
	}
	assert_string_equal(config_sections[config_section_count - 1].name, "sweep");
	assert_int_equal(config_find_key("decode"), KEY_COUNT);
	assert_int_equal(config_find_key("decode."), KEY_COUNT);
	assert_int_equal(config_find_key(""), KEY_COUNT);
	assert_int_equal(config_find_key("dec.workers"), KEY_COUNT);
}

static void choices_are_the_enums(void **state)
{
	(void)state;
	accept("read.engine=io_uring");
	assert_int_equal(config_integer(&config, KEY_READ_ENGINE), READ_ENGINE_IO_URING);
	accept("run.affinity=spread");
	assert_int_equal(config_integer(&config, KEY_RUN_AFFINITY), AFFINITY_SPREAD);
	accept("dataset.recipe=photo");
	assert_int_equal(config_integer(&config, KEY_DATASET_RECIPE), DATASET_RECIPE_PHOTO);
	accept("dataset.format=raw");
	assert_int_equal(config_integer(&config, KEY_DATASET_FORMAT), DATASET_FORMAT_RAW);
	accept("dataset.subsampling=gray");
	assert_int_equal(
		config_integer(&config, KEY_DATASET_SUBSAMPLING), DATASET_SUBSAMPLING_GRAY);
	accept("dataset.png_color=palette");
	assert_int_equal(config_integer(&config, KEY_DATASET_PNG_COLOR), DATASET_PNG_PALETTE);
	accept("dataset.generate=never");
	assert_int_equal(config_integer(&config, KEY_DATASET_GENERATE), DATASET_GENERATE_NEVER);
	accept("read.cache=as-is");
	assert_int_equal(config_integer(&config, KEY_READ_CACHE), READ_CACHE_AS_IS);
	accept("read.order=sequential");
	assert_int_equal(config_integer(&config, KEY_READ_ORDER), READ_ORDER_SEQUENTIAL);
	accept("codec.name=null");
	assert_int_equal(config_integer(&config, KEY_CODEC_NAME), CODEC_NAME_NULL);
	accept("codec.png=fast");
	assert_int_equal(config_integer(&config, KEY_CODEC_PNG), CODEC_PNG_FAST);
	accept("augment.crop=none");
	assert_int_equal(config_integer(&config, KEY_AUGMENT_CROP), AUGMENT_CROP_NONE);
	accept("augment.type=uint8");
	assert_int_equal(config_integer(&config, KEY_AUGMENT_TYPE), AUGMENT_TYPE_UINT8);
	accept("augment.layout=hwc");
	assert_int_equal(config_integer(&config, KEY_AUGMENT_LAYOUT), AUGMENT_LAYOUT_HWC);
	accept("batch.order=as-completed");
	assert_int_equal(config_integer(&config, KEY_BATCH_ORDER), BATCH_ORDER_AS_COMPLETED);
	accept("upload.mode=copy");
	assert_int_equal(config_integer(&config, KEY_UPLOAD_MODE), UPLOAD_MODE_COPY);
	accept("step.backend=cuda");
	assert_int_equal(config_integer(&config, KEY_STEP_BACKEND), STEP_BACKEND_CUDA);
	accept("step.optimizer=adam");
	assert_int_equal(config_integer(&config, KEY_STEP_OPTIMIZER), STEP_OPTIMIZER_ADAM);
}

static void set_values(void **state)
{
	(void)state;
	accept("measure.duration=150ms");
	assert_int_equal(config_integer(&config, KEY_MEASURE_DURATION), 150000000);
	assert_true(config_real(&config, KEY_MEASURE_DURATION) == 150000000.0);
	accept("inject.read_bandwidth=2GiB/s");
	assert_int_equal(config_integer(&config, KEY_INJECT_READ_BANDWIDTH), 2147483648);
	accept("augment.flip=25%");
	assert_true(config_real(&config, KEY_AUGMENT_FLIP) == 0.25);
	accept("dataset.bytes=110k");
	assert_int_equal(config_integer(&config, KEY_DATASET_BYTES), 112640);
	accept("dataset.bytes=110KB");
	assert_int_equal(config_integer(&config, KEY_DATASET_BYTES), 110000);
	accept("decode.workers = 8 ");
	assert_int_equal(config_integer(&config, KEY_DECODE_WORKERS), 8);
	accept("read.direct=Yes");
	assert_true(config_on(&config, KEY_READ_DIRECT));
	accept("read.direct=0");
	assert_false(config_on(&config, KEY_READ_DIRECT));
	accept("dataset.path=/data/a, b; c#1");
	assert_string_equal(config_text(&config, KEY_DATASET_PATH), "/data/a, b; c#1");
	accept("dataset.path=");
	assert_string_equal(config_text(&config, KEY_DATASET_PATH), "");
	assert_string_equal(config_text(&config, KEY_STEP_MODEL), "resnet50");
	assert_string_equal(config_text(&config, KEY_DECODE_WORKERS), "");
	assert_true(config.is_set[KEY_DECODE_WORKERS]);
	assert_false(config.is_set[KEY_READ_DEPTH]);
}

static void set_refuses(void **state)
{
	(void)state;
	refuse("decode.workers",
		"--set 'decode.workers': write it as KEY=VALUE, as in --set decode.workers=4");
	refuse("decode.worker=4",
		"--set 'decode.worker=4': unknown key 'decode.worker'; did you mean 'decode.workers'?");
	refuse("batch.workers=4",
		"--set 'batch.workers=4': unknown key 'batch.workers'; did you mean 'decode.workers'?");
	refuse("workers=4",
		"--set 'workers=4': unknown key 'workers'; did you mean 'decode.workers'?");
	refuse("quite.else=4",
		"--set 'quite.else=4': unknown key 'quite.else'; see `mlbench help keys`");
	refuse("=4", "--set '=4': unknown key ''; see `mlbench help keys`");
	refuse("decode.workers=",
		"--set 'decode.workers=': 'decode.workers' has no value (example: 8)");
	refuse("decode.workers=many",
		"--set 'decode.workers=many': 'decode.workers' = 'many' is not a whole number (example: 8)");
	refuse("decode.workers=1.5",
		"--set 'decode.workers=1.5': 'decode.workers' = '1.5' is not a whole number (example: 8)");
	refuse("decode.workers=1e30",
		"--set 'decode.workers=1e30': 'decode.workers' = '1e30' is too large to hold");
	refuse("batch.size=0", "--set 'batch.size=0': 'batch.size' = 0 is below its minimum 1");
	refuse("decode.workers=-1",
		"--set 'decode.workers=-1': 'decode.workers' = -1 is below its minimum 1");
	refuse("decode.workers=1025",
		"--set 'decode.workers=1025': 'decode.workers' = 1025 is above its maximum 1024");
	refuse("augment.flip=90",
		"--set 'augment.flip=90': 'augment.flip' = 9000% is above its maximum 100%");
	refuse("measure.duration=1ms",
		"--set 'measure.duration=1ms': 'measure.duration' = 1ms is below its minimum 10ms");
	refuse("measure.duration=3 parsecs",
		"--set 'measure.duration=3 parsecs': 'measure.duration' = '3 parsecs' is not a duration (example: 1.5ms)");
	refuse("dataset.bytes=64q",
		"--set 'dataset.bytes=64q': 'dataset.bytes' = '64q' is not a size (example: 64KiB)");
	refuse("dataset.bytes=64kb",
		"--set 'dataset.bytes=64kb': 'dataset.bytes' = '64kb' counts bits, and a size counts bytes (did you mean 64KB?)");
	refuse("inject.leak=1MB/h",
		"--set 'inject.leak=1MB/h': 'inject.leak' = '1MB/h' is not a rate (example: 2GiB/s)");
	refuse("augment.flip=half",
		"--set 'augment.flip=half': 'augment.flip' = 'half' is not a share (example: 25%)");
	refuse("step.jitter=nan",
		"--set 'step.jitter=nan': 'step.jitter' = 'nan' is not a number (example: 0.5)");
	refuse("read.engine=iouring",
		"--set 'read.engine=iouring': 'read.engine' cannot be 'iouring'; it is one of: auto, memory, pread, io_uring, nfs, mmap (did you mean 'io_uring'?)");
	refuse("read.engine=",
		"--set 'read.engine=': 'read.engine' cannot be ''; it is one of: auto, memory, pread, io_uring, nfs, mmap");
	refuse("read.direct=maybe",
		"--set 'read.direct=maybe': 'read.direct' cannot be 'maybe'; it is on or off");
	refuse("dataset.path=a\nb",
		"--set 'dataset.path=a\nb': 'dataset.path' holds a control character (10)");
}

static void lists_belong_in_the_sweep(void **state)
{
	(void)state;
	refuse("decode.workers=1,2",
		"--set 'decode.workers=1,2': 'decode.workers' takes one value here; put a list in [sweep]: 'decode.workers = ...'");
	refuse("decode.workers=1-8*2",
		"--set 'decode.workers=1-8*2': 'decode.workers' takes one value here; put a list in [sweep]: 'decode.workers = ...'");
	refuse("step.model=mlp,resnet50",
		"--set 'step.model=mlp,resnet50': 'step.model' takes one value here; put a list in [sweep]: 'step.model = ...'");
	refuse("read.engine=pread,io_uring",
		"--set 'read.engine=pread,io_uring': 'read.engine' takes one value here; put a list in [sweep]: 'read.engine = ...'");
	refuse("measure.duration=1s,2s",
		"--set 'measure.duration=1s,2s': 'measure.duration' takes one value, not a list, and cannot be swept");
	refuse("sweep.measure.duration=1s,2s",
		"--set 'sweep.measure.duration=1s,2s': 'measure.duration' cannot be swept; set one value under [measure]");
	refuse("sweep.decode.worker=1,2",
		"--set 'sweep.decode.worker=1,2': unknown key 'decode.worker'; did you mean 'decode.workers'?");
	refuse("sweep.decode.workers=",
		"--set 'sweep.decode.workers=': 'decode.workers' has no values to sweep; give a list, as 1,2,4");
}

/* The values of the sweep's first axis, as text. */
static void assert_axis(const char *text)
{
	char out[1024] = "";
	const struct config_axis *axis = &config.axes[0];
	for (size_t i = 0; i < axis->count; i++) {
		char value[CONFIG_VALUE_BYTES];
		config_format_value(axis->key, &axis->values[i], value, sizeof value);
		(void)snprintf(
			out + strlen(out), sizeof out - strlen(out), "%s%s", i ? "," : "", value);
	}
	assert_string_equal(out, text);
}

static void sweep(const char *key, const char *list, const char *expected)
{
	char assignment[256];
	close_config(NULL);
	open_config(NULL);
	(void)snprintf(assignment, sizeof assignment, "sweep.%s=%s", key, list);
	accept(assignment);
	assert_int_equal(config.axis_count, 1);
	assert_axis(expected);
}

static void lists_and_ranges(void **state)
{
	(void)state;
	sweep("decode.workers", "4", "4");
	sweep("decode.workers", " 1, 2 ,4", "1,2,4");
	sweep("decode.workers", "4,2,1", "4,2,1");
	sweep("decode.workers", "1-8+1", "1,2,3,4,5,6,7,8");
	sweep("decode.workers", "1-64*2", "1,2,4,8,16,32,64");
	sweep("decode.workers", "1-10*2", "1,2,4,8");
	sweep("decode.workers", "1 - 10 + 3", "1,4,7,10");
	sweep("decode.workers", "1-3+1,8,16-64*2", "1,2,3,8,16,32,64");
	sweep("decode.workers", "5-5+1", "5");
	sweep("inject.read_latency", "0,100us-1ms*10", "0,100us,1ms");
	sweep("inject.read_latency", "1ms-3ms+500us", "1ms,1500us,2ms,2500us,3ms");
	sweep("inject.read_bandwidth", "64MiB-1GiB*4", "64MiB/s,256MiB/s,1GiB/s");
	sweep("inject.read_bandwidth", "10Gb/s,10GB/s", "1250000000/s,9765625KiB/s");
	sweep("augment.flip", "0%-100%+25%", "0%,25%,50%,75%,100%");
	sweep("step.jitter", "0.1-0.5+0.1", "0.1,0.2,0.3,0.4,0.5");
	sweep("step.jitter", "1e-3-1e-1*10", "0.001,0.01,0.1");
	sweep("step.learning_rate", "0.25-2*2", "0.25,0.5,1,2");
	sweep("read.engine", "pread, io_uring", "pread,io_uring");
	sweep("read.cache", "as-is,cold", "as-is,cold");
	sweep("read.direct", "on,off", "on,off");
	sweep("step.model", "mlp, vit_b16", "mlp,vit_b16");
}

static void refuse_sweep(const char *key, const char *list, const char *why)
{
	char assignment[256];
	(void)snprintf(assignment, sizeof assignment, "sweep.%s=%s", key, list);
	assert_int_equal(config_set(&config, assignment, &err), -EINVAL);
	const char *tail = strstr(err.text, "': ");
	assert_non_null(tail);
	assert_string_equal(tail + 3, why);
}

static void bad_lists(void **state)
{
	(void)state;
	const char *key = "decode.workers";
	refuse_sweep(key, "1,,2", "'decode.workers' has an empty place in its list of values");
	refuse_sweep(key, "1,2,", "'decode.workers' has an empty place in its list of values");
	refuse_sweep(key, "1,2,1", "'decode.workers' has the value 1 twice");
	refuse_sweep(key, "1-4*2,2", "'decode.workers' has the value 2 twice");
	refuse_sweep(key, "1-8",
		"'decode.workers': the range '1-8' has no step; write it as FROM-TO+STEP or FROM-TO*FACTOR");
	refuse_sweep(key, "8-1+1",
		"'decode.workers': the range '8-1+1' runs downwards; write the smaller end first");
	refuse_sweep(
		key, "1-8+0", "'decode.workers': the range '1-8+0' has a step of zero or less");
	refuse_sweep(
		key, "1-8+-1", "'decode.workers': the range '1-8+-1' has a step of zero or less");
	refuse_sweep(key, "1-8*1",
		"'decode.workers': the range '1-8*1' needs a whole factor of at least 2, as 1-8*2");
	refuse_sweep(key, "1-8*x",
		"'decode.workers': the range '1-8*x' needs a whole factor of at least 2, as 1-8*2");
	refuse_sweep(key, "1-8+x", "'decode.workers' = 'x' is not a whole number (example: 8)");
	refuse_sweep(key, "1-x+1", "'decode.workers' = 'x' is not a whole number (example: 8)");
	refuse_sweep(key, "1-9999+1", "'decode.workers' = 9999 is above its maximum 1024");
	refuse_sweep(key, "0-8+1", "'decode.workers' = 0 is below its minimum 1");
	refuse_sweep(key, "1-8+", "'decode.workers' = '' is not a whole number (example: 8)");
	refuse_sweep("inject.cpu_hog", "0-8*2",
		"'inject.cpu_hog': the range '0-8*2' multiplies from 0 and never gets further");
	refuse_sweep("step.jitter", "0-1*2",
		"'step.jitter': the range '0-1*2' multiplies from 0 and never gets further");
	refuse_sweep("step.jitter", "0.1-1*1.0000001",
		"'step.jitter': the range '0.1-1*1.0000001' needs a factor above 1, as 1-8*2");
	refuse_sweep("batch.size", "1-1M+1", "'batch.size' has more than 4096 values");
	refuse_sweep("step.jitter", "0-1+1e-12", "'step.jitter' has more than 4096 values");
	assert_int_equal(config.axis_count, 0);
}

static void too_many_axes(void **state)
{
	(void)state;
	size_t swept = 0;
	for (int key = 0; key < KEY_COUNT && swept <= CONFIG_AXES_MAX; key++) {
		char text[160];
		if (config_keys[key].kind == KEY_KIND_FIXED)
			continue;
		(void)snprintf(text, sizeof text, "sweep.%s.%s=%s", config_keys[key].section,
			config_keys[key].name, config_keys[key].fallback);
		if (++swept <= CONFIG_AXES_MAX) {
			accept(text);
			continue;
		}
		assert_int_equal(config_set(&config, text, &err), -EINVAL);
		assert_non_null(strstr(err.text, "more than 16 swept keys"));
	}
	assert_int_equal(config.axis_count, CONFIG_AXES_MAX);
}

/* What may be compared by its throughput: only what the user chooses while the training stays the same. */
static void keys_know_their_kind(void **state)
{
	static const struct {
		const char *key;
		enum key_kind kind;
	} expected[] = {
		{"measure.duration", KEY_KIND_FIXED},
		{"dataset.width", KEY_KIND_FIXED},
		{"decode.workers", KEY_KIND_KNOB},
		{"batch.size", KEY_KIND_KNOB},
		{"dataset.container", KEY_KIND_KNOB},
		{"step.devices", KEY_KIND_KNOB},
		{"tokens.length", KEY_KIND_WORKLOAD},
		{"record.columns", KEY_KIND_WORKLOAD},
		{"augment.size", KEY_KIND_WORKLOAD},
		{"step.model", KEY_KIND_WORKLOAD},
		{"read.order", KEY_KIND_WORKLOAD},
		{"checkpoint.every", KEY_KIND_WORKLOAD},
		{"step.device", KEY_KIND_ASSUMPTION},
		{"step.time", KEY_KIND_ASSUMPTION},
		{"read.cache", KEY_KIND_ASSUMPTION},
		{"measure.profiler", KEY_KIND_ASSUMPTION},
	};
	(void)state;
	for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
		assert_int_equal(
			config_keys[config_find_key(expected[i].key)].kind, expected[i].kind);
	for (int key = 0; key < KEY_COUNT; key++)
		if (strcmp(config_keys[key].section, "inject") == 0 ||
			strcmp(config_keys[key].section, "overhead") == 0)
			assert_int_equal(config_keys[key].kind, KEY_KIND_ASSUMPTION);
}

static void a_value_pins_its_key(void **state)
{
	(void)state;
	accept("sweep.decode.workers=1,2");
	accept("sweep.batch.size=32,64");
	accept("sweep.read.depth=4,8");
	accept("sweep.zip=decode.workers, batch.size, read.depth");
	assert_int_equal(config.axes[2].zip_with, 0);
	accept("decode.workers=4");
	assert_int_equal(config.axis_count, 2);
	assert_int_equal(config.axes[0].key, KEY_BATCH_SIZE);
	assert_int_equal(config.axes[1].zip_with, 0);
	assert_string_equal(config_text(&config, KEY_SWEEP_ZIP), "batch.size, read.depth");
	assert_int_equal(config_set_key(&config, KEY_BATCH_SIZE, "7", &err), 0);
	assert_int_equal(config.axis_count, 1);
	assert_int_equal(config_integer(&config, KEY_BATCH_SIZE), 7);
	accept("sweep.read.depth=1,2,3");
	assert_int_equal(config.axes[0].count, 3);
}

static void set_key_takes_words_literally(void **state)
{
	(void)state;
	assert_int_equal(config_set_key(&config, KEY_DATASET_PATH, "/a/${HOME}/$", &err), 0);
	assert_string_equal(config_text(&config, KEY_DATASET_PATH), "/a/${HOME}/$");
	assert_int_equal(config_set_key(&config, KEY_READ_ENGINE, "smb", &err), -EINVAL);
	assert_non_null(strstr(err.text, "'read.engine' cannot be 'smb'"));
	assert_int_equal(config_set_key(&config, KEY_READ_ENGINE, "pread", NULL), 0);
	assert_int_equal(config_integer(&config, KEY_READ_ENGINE), READ_ENGINE_PREAD);
}

static void copies_share_nothing(void **state)
{
	(void)state;
	struct config copy;
	accept("dataset.path=/a");
	accept("sweep.step.model=mlp,vit_b16");
	assert_int_equal(config_copy(&copy, &config, &err), 0);
	accept("dataset.path=/b");
	accept("step.model=mlp");
	assert_string_equal(config_text(&copy, KEY_DATASET_PATH), "/a");
	assert_int_equal(copy.axis_count, 1);
	assert_string_equal(copy.axes[0].values[1].text, "vit_b16");
	config_release(&copy);
	config_release(&copy);
}

static void format_fits_its_room(void **state)
{
	(void)state;
	char out[8];
	accept("dataset.path=/a/long/path/that/does/not/fit");
	config_format_value(KEY_DATASET_PATH, &config.values[KEY_DATASET_PATH], out, sizeof out);
	assert_string_equal(out, "/a/long");
}

/* A random right value of a key, as a number. */
static struct config_value random_value(enum key_id id, struct rng *rng)
{
	const struct key *key = &config_keys[id];
	const double share = rng_below(rng, 8) ? rng_uniform(rng) : (double)rng_below(rng, 2);
	const double span = key->min + (key->max - key->min) * share;
	struct config_value value = {0};
	size_t choices = 1;
	for (const char *at = key->choices; *at; at++)
		choices += *at == '|';
	switch (key->type) {
	case KEY_TYPE_BOOLEAN:
		value.integer = (int64_t)rng_below(rng, 2);
		break;
	case KEY_TYPE_CHOICE:
		value.integer = (int64_t)rng_below(rng, choices);
		break;
	case KEY_TYPE_REAL:
	case KEY_TYPE_SHARE:
		value.real = span;
		break;
	default:
		value.integer = (int64_t)span;
		if (rng_below(rng, 2) && value.integer / 1024 * 1024 >= (int64_t)key->min)
			value.integer = value.integer / 1024 * 1024;
		break;
	}
	return value;
}

static void formatted_values_are_read_back(void **state)
{
	(void)state;
	const char *text = getenv("SEED");
	const uint64_t seed = text ? strtoull(text, NULL, 10) : 77;
	struct rng rng;
	print_message("seed %llu\n", (unsigned long long)seed);
	rng_init(&rng, seed, 0);
	for (int key = 0; key < KEY_COUNT; key++) {
		const enum key_id id = (enum key_id)key;
		for (int i = 0; i < ROUNDS && config_keys[key].type != KEY_TYPE_TEXT; i++) {
			char out[CONFIG_VALUE_BYTES];
			char assignment[160];
			const struct config_value value = random_value(id, &rng);
			config_format_value(id, &value, out, sizeof out);
			(void)snprintf(assignment, sizeof assignment, "%s.%s=%s",
				config_keys[key].section, config_keys[key].name, out);
			accept(assignment);
			if (!value_equal(id, &value, &config.values[key]))
				fail_msg("%s was read back as something else", assignment);
		}
	}
}

static void formatted_texts_are_read_back(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"a b", "$", "${HOME}", "#a ;b a#b", "; #", "$$#", "a $; b", "ü=ö"};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		char out[CONFIG_VALUE_BYTES];
		char assignment[160];
		assert_int_equal(config_set_key(&config, KEY_DATASET_PATH, texts[i], &err), 0);
		config_format_value(
			KEY_DATASET_PATH, &config.values[KEY_DATASET_PATH], out, sizeof out);
		(void)snprintf(assignment, sizeof assignment, "dataset.path=%s", out);
		accept(assignment);
		assert_string_equal(config_text(&config, KEY_DATASET_PATH), texts[i]);
	}
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, open_config, close_config)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(table_is_sound),
		CASE(choices_are_the_enums),
		CASE(set_values),
		CASE(set_refuses),
		CASE(lists_belong_in_the_sweep),
		CASE(lists_and_ranges),
		CASE(bad_lists),
		CASE(too_many_axes),
		CASE(keys_know_their_kind),
		CASE(a_value_pins_its_key),
		CASE(set_key_takes_words_literally),
		CASE(copies_share_nothing),
		CASE(format_fits_its_room),
		CASE(formatted_values_are_read_back),
		CASE(formatted_texts_are_read_back),
	};
	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
