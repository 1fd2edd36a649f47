/* The sweep's grid: product, zip, exclude, bounds; and the rules across keys. */
#include "harness/base/rng.h"
#include "harness/config/config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct config config;
static struct config_grid grid;
static struct error err;

static int open_config(void **state)
{
	(void)state;
	config_init(&config);
	grid = (struct config_grid){0};
	err.text[0] = '\0';
	return 0;
}

static int close_config(void **state)
{
	(void)state;
	config_grid_close(&grid);
	config_release(&config);
	return 0;
}

static void set(const char *assignment)
{
	if (config_set(&config, assignment, &err))
		fail_msg("'%s' was refused: %s", assignment, err.text);
}

/* The grid as "1/32 1/64 ...". */
static void assert_grid(const char *expected)
{
	char out[4096] = "";
	config_grid_close(&grid);
	if (config_grid_open(&config, &grid, &err))
		fail_msg("refused: %s", err.text);
	assert_int_equal(grid.axis_count, config.axis_count);
	for (size_t p = 0; p < grid.points; p++) {
		for (size_t i = 0; i < grid.axis_count; i++) {
			const struct config_axis *axis = &config.axes[i];
			char value[CONFIG_VALUE_BYTES];
			const size_t index = grid.choice[p * grid.axis_count + i];
			assert_true(index < axis->count);
			config_format_value(axis->key, &axis->values[index], value, sizeof value);
			(void)snprintf(out + strlen(out), sizeof out - strlen(out), "%s%s",
				i   ? "/"
				: p ? " "
				    : "",
				value);
		}
	}
	assert_string_equal(out, expected);
}

static void refuse_grid(const char *message)
{
	assert_int_equal(config_grid_open(&config, &grid, &err), -EINVAL);
	assert_string_equal(err.text, message);
}

static void refuse_set(const char *assignment, const char *message)
{
	assert_int_equal(config_set(&config, assignment, &err), -EINVAL);
	assert_string_equal(err.text, message);
}

static void no_sweep_is_one_point(void **state)
{
	(void)state;
	struct config point;
	assert_int_equal(config_grid_open(&config, &grid, &err), 0);
	assert_int_equal(grid.points, 1);
	assert_int_equal(config_grid_point(&config, &grid, 0, &point, &err), 0);
	config_release(&point);
}

static void product(void **state)
{
	(void)state;
	set("sweep.decode.workers=1,2");
	set("sweep.batch.size=32,64,128");
	assert_grid("1/32 1/64 1/128 2/32 2/64 2/128");
}

static void zip(void **state)
{
	(void)state;
	set("sweep.zip=batch.size, decode.workers");
	set("sweep.decode.workers=1,2");
	set("sweep.read.depth=4,8");
	set("sweep.batch.size=32,64");
	assert_int_equal(config.axes[0].zip_with, 0);
	assert_int_equal(config.axes[1].zip_with, 1);
	assert_int_equal(config.axes[2].zip_with, 0);
	assert_grid("1/4/32 1/8/32 2/4/64 2/8/64");
}

static void two_zip_groups(void **state)
{
	(void)state;
	set("sweep.decode.workers=1,2");
	set("sweep.batch.size=32,64");
	set("sweep.read.depth=4,8,16");
	set("sweep.prefetch.depth=1,2,3");
	set("sweep.zip=decode.workers, batch.size; read.depth,prefetch.depth");
	assert_grid("1/32/4/1 1/32/8/2 1/32/16/3 2/64/4/1 2/64/8/2 2/64/16/3");
}

static void assert_unzipped(const char *zip, const char *pin, const char *left)
{
	char assignment[128];
	close_config(NULL);
	open_config(NULL);
	set("sweep.decode.workers=1,2");
	set("sweep.batch.size=32,64");
	set("sweep.read.depth=4,8");
	(void)snprintf(assignment, sizeof assignment, "sweep.zip=%s", zip);
	set(assignment);
	set(pin);
	assert_string_equal(config_text(&config, KEY_SWEEP_ZIP), left);
	assert_int_equal(config_grid_open(&config, &grid, &err), 0);
}

static void pinned_keys_leave_the_zip(void **state)
{
	(void)state;
	static const char all[] = "decode.workers ,batch.size, read.depth";
	assert_unzipped(all, "decode.workers=4", "batch.size, read.depth");
	assert_unzipped(all, "batch.size=4", "decode.workers , read.depth");
	assert_unzipped(all, "read.depth=4", "decode.workers ,batch.size");
	assert_unzipped("decode.workers, batch.size; read.depth", "batch.size=4",
		"decode.workers; read.depth");
	assert_unzipped("decode.workers; batch.size, read.depth", "batch.size=4",
		"decode.workers; read.depth");
	assert_unzipped("decode.workers; batch.size; read.depth", "decode.workers=4",
		"batch.size; read.depth");
	assert_unzipped("decode.workers ; batch.size", "batch.size=4", "decode.workers");
	assert_unzipped("batch.size", "batch.size=4", "");
	assert_unzipped("", "batch.size=4", "");
}

static void bad_zips(void **state)
{
	(void)state;
	set("sweep.decode.workers=1,2");
	set("sweep.read.depth=4,8,16");
	set("sweep.zip=decode.workers, read.depth");
	refuse_grid(
		"'sweep.zip': 'decode.workers' has 2 values and 'read.depth' has 3; keys that step together have lists of one length");
	set("sweep.zip=decode.workers, batch.size");
	refuse_grid(
		"'sweep.zip' names 'batch.size', which is not swept; give it a list in [sweep]");
	refuse_set("sweep.zip=decode.workers, read.deep",
		"--set 'sweep.zip=decode.workers, read.deep': 'sweep.zip': unknown key 'read.deep'; did you mean 'read.depth'?");
	set("sweep.zip=decode.workers, decode.workers");
	refuse_grid("'sweep.zip' names 'decode.workers' twice");
}

static void exclude(void **state)
{
	(void)state;
	set("sweep.decode.workers=1,2");
	set("sweep.batch.size=32,64,128");
	set("sweep.exclude=decode.workers=1 batch.size=128; batch.size=64;");
	assert_grid("1/32 2/32 2/128");
	set("sweep.exclude=  decode.workers=1\tbatch.size=128");
	assert_grid("1/32 1/64 2/32 2/64 2/128");
	set("sweep.exclude=batch.size=256; prefetch.depth=2 batch.size=32");
	assert_grid("1/64 1/128 2/64 2/128"); /* 256 is not there; prefetch.depth is 2 by default */
	set("sweep.exclude=prefetch.depth=3 batch.size=32");
	assert_grid("1/32 1/64 1/128 2/32 2/64 2/128");
	set("sweep.exclude=");
	assert_grid("1/32 1/64 1/128 2/32 2/64 2/128");
}

static void bad_excludes(void **state)
{
	(void)state;
	set("sweep.decode.workers=1,2");
	set("sweep.exclude=decode.workers=1;decode.workers=2");
	refuse_grid("'sweep.exclude' leaves no point of 2");
	refuse_set("sweep.exclude=decode.workers = 1",
		"--set 'sweep.exclude=decode.workers = 1': 'sweep.exclude': expected KEY=VALUE without blanks, not 'decode.workers' (example: decode.workers=1 batch.size=256; batch.size=512)");
	refuse_set("sweep.exclude=decode.worker=1",
		"--set 'sweep.exclude=decode.worker=1': 'sweep.exclude': unknown key 'decode.worker'; did you mean 'decode.workers'?");
	refuse_set("sweep.exclude=decode.workers=x",
		"--set 'sweep.exclude=decode.workers=x': 'sweep.exclude': 'decode.workers' = 'x' is not a whole number (example: 8)");
}

static void bounded(void **state)
{
	(void)state;
	set("sweep.batch.size=1-400+1");
	set("sweep.read.depth=1-250+1");
	assert_int_equal(config_grid_open(&config, &grid, &err), 0);
	assert_int_equal(grid.points, CONFIG_POINTS_MAX);
	config_grid_close(&grid);
	set("sweep.decode.workers=1,2");
	refuse_grid("the sweep has more than 100000 points; shorten its lists or zip keys");
}

static void points_have_their_values(void **state)
{
	(void)state;
	struct config point;
	set("sweep.decode.workers=1,2");
	set("sweep.step.model=mlp,vit_b16");
	set("sweep.exclude=decode.workers=1 step.model=mlp");
	set("sweep.zip=");
	assert_int_equal(config_grid_open(&config, &grid, &err), 0);
	assert_int_equal(grid.points, 3);
	assert_int_equal(config_grid_point(&config, &grid, 1, &point, &err), 0);
	assert_int_equal(point.axis_count, 0);
	assert_int_equal(config_integer(&point, KEY_DECODE_WORKERS), 2);
	assert_string_equal(config_text(&point, KEY_STEP_MODEL), "mlp");
	assert_string_equal(config_text(&point, KEY_SWEEP_EXCLUDE), "");
	assert_true(point.is_set[KEY_DECODE_WORKERS]);
	config_release(&point);
}

/* Against a plain count: each combination of a random sweep comes once, or is excluded. */
static void random_grids(void **state)
{
	(void)state;
	const char *text = getenv("SEED");
	const uint64_t seed = text ? strtoull(text, NULL, 10) : 5;
	struct rng rng;
	print_message("seed %llu\n", (unsigned long long)seed);
	rng_init(&rng, seed, 0);
	for (int round = 0; round < 200; round++) {
		char assignment[128];
		const unsigned sizes[3] = {1 + (unsigned)rng_below(&rng, 6),
			1 + (unsigned)rng_below(&rng, 6), 1 + (unsigned)rng_below(&rng, 6)};
		static const char *const keys[3] = {"decode.workers", "read.depth", "batch.size"};
		unsigned expected = sizes[0] * sizes[1] * sizes[2];
		close_config(NULL);
		open_config(NULL);
		for (int i = 0; i < 3; i++) {
			(void)snprintf(assignment, sizeof assignment, "sweep.%s=1-%u+1", keys[i],
				sizes[i]);
			set(assignment);
		}
		const unsigned a = 1 + (unsigned)rng_below(&rng, 8);
		const unsigned b = 1 + (unsigned)rng_below(&rng, 8);
		(void)snprintf(assignment, sizeof assignment,
			"sweep.exclude=decode.workers=%u read.depth=%u", a, b);
		set(assignment);
		if (a <= sizes[0] && b <= sizes[1])
			expected -= sizes[2];
		if (expected == 0) {
			assert_int_equal(config_grid_open(&config, &grid, &err), -EINVAL);
			continue;
		}
		assert_int_equal(config_grid_open(&config, &grid, &err), 0);
		assert_int_equal(grid.points, expected);
		for (size_t p = 1; p < grid.points; p++) /* in order, so each once */
			assert_true(memcmp(&grid.choice[p * 3], &grid.choice[p * 3 - 3],
					    3 * sizeof *grid.choice) != 0);
	}
}

static void refuse(const char *message)
{
	assert_int_equal(config_validate(&config, &err), -EINVAL);
	assert_string_equal(err.text, message);
}

static void assert_valid(void)
{
	if (config_validate(&config, &err))
		fail_msg("refused: %s", err.text);
}

static void rules(void **state)
{
	(void)state;
	refuse("'dataset.path' is not set; name the folder of the data set, as in 'path = data/pictures' under [dataset]");
	set("dataset.path=data/x");
	assert_valid();
	set("dataset.recipe=photo");
	refuse("'dataset.samples' is 0, and 'dataset.recipe' needs to know how many to generate (example: samples = 1200)");
	set("dataset.samples=1200");
	assert_valid();
	set("augment.ratio_min=2");
	refuse("'augment.ratio_min' = 2 is above 'augment.ratio_max' = 1.33333");
	set("augment.ratio_max=2");
	assert_valid();
	set("augment.scale_max=0.05");
	refuse("'augment.scale_min' = 0.08 is above 'augment.scale_max' = 0.05");
	set("augment.scale_max=1");
	set("dataset.bytes=10M");
	refuse("'dataset.bytes' = 10.0 MiB is more than pictures of 500x375 have (796 KiB uncompressed)");
	set("dataset.bytes=0");
	assert_valid();
	set("dataset.width=60000");
	set("dataset.height=60000");
	refuse("'dataset.width' x 'dataset.height' is 3.60 G pixels, more than the 64.0 M that a picture may have");
	set("dataset.height=1000");
	set("dataset.samples=1G");
	refuse("'dataset.samples' = 1000000000 would take 5457 TiB; 1 PiB is the limit");
	set("dataset.samples=100");
	assert_valid();
	set("read.engine=mmap");
	assert_valid();
	set("read.direct=on");
	refuse("'read.direct' = on does not go with 'read.engine' = mmap: what is mapped is in the page cache");
	set("read.direct=off");
	set("read.engine=memory");
	assert_valid();
	set("read.direct=on");
	refuse("'read.direct' = on does not go with 'read.engine' = memory, which reads nothing while the clock runs");
	set("read.cache=cold");
	refuse("'read.cache' = cold does not go with 'read.engine' = memory, which reads nothing while the clock runs");
}

static void rules_hold_at_each_point(void **state)
{
	(void)state;
	set("dataset.path=data/x");
	set("sweep.augment.scale_min=0.1,0.5");
	set("sweep.augment.scale_max=0.2,1");
	refuse("at the point augment.scale_min=0.5 augment.scale_max=0.2 (leave it out with sweep.exclude): 'augment.scale_min' = 0.5 is above 'augment.scale_max' = 0.2");
	set("sweep.exclude=augment.scale_min=0.5 augment.scale_max=0.2");
	assert_valid();
	/* The fixed value of a swept key does not count. */
	set("sweep.exclude=");
	set("augment.scale_min=0.5");
	set("augment.scale_max=0.1");
	set("sweep.augment.scale_max=0.5,1");
	assert_valid();
	set("sweep.zip=augment.scale_max, read.depth");
	refuse("'sweep.zip' names 'read.depth', which is not swept; give it a list in [sweep]");
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, open_config, close_config)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(no_sweep_is_one_point),
		CASE(product),
		CASE(zip),
		CASE(two_zip_groups),
		CASE(pinned_keys_leave_the_zip),
		CASE(bad_zips),
		CASE(exclude),
		CASE(bad_excludes),
		CASE(bounded),
		CASE(points_have_their_values),
		CASE(random_grids),
		CASE(rules),
		CASE(rules_hold_at_each_point),
	};
	return cmocka_run_group_tests_name("config_grid", tests, NULL, NULL);
}
