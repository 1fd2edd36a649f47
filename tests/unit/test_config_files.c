/* The configurations that come with the program: each is right, can be expanded, and is a lesson. */
#include "harness/base/files.h"
#include "harness/command/run_plan.h"
#include "harness/config/config.h"
#include "harness/config/tables.h"
#include "harness/config/value.h"
#include "harness/fit/case.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LESSON_LINES_MAX = 60, FILE_BYTES_MAX = 1 << 16 };

static glob_t files;

static int find_files(void **state)
{
	static const struct section_owner *const owners[] = {&case_owner, NULL};
	(void)state;
	section_owners_register(owners);
	return glob("configs/*.ini", 0, NULL, &files) ||
	       glob("configs/emulated/*.ini", GLOB_APPEND, NULL, &files) ||
	       glob("configs/cases/*.ini", GLOB_APPEND, NULL, &files);
}

static int forget_files(void **state)
{
	(void)state;
	globfree(&files);
	return 0;
}

static void open_file(const char *path, struct config *config)
{
	struct error err;
	config_init(config);
	if (config_read_file(config, path, &err))
		fail_msg("%s", err.text);
}

static void all_are_there(void **state)
{
	(void)state;
	static const char *const names[] = {"imagenet_like", "imagenet_full", "png_medical",
		"cpu_training", "io_only", "decode_only", "step_only", "null", "emulated/unet3d",
		"emulated/resnet50", "emulated/cosmoflow", "emulated/retinanet", "emulated/flux",
		"emulated/eight_devices", "emulated/dlrm", "emulated/bert"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		char path[64];
		size_t found = 0;
		(void)snprintf(path, sizeof path, "configs/%s.ini", names[i]);
		for (size_t f = 0; f < files.gl_pathc; f++)
			found += strcmp(files.gl_pathv[f], path) == 0;
		assert_int_equal(found, 1);
	}
}

static void each_is_right_at_each_point(void **state)
{
	(void)state;
	for (size_t f = 0; f < files.gl_pathc; f++) {
		const char *path = files.gl_pathv[f];
		struct config config;
		struct config_grid grid;
		struct error err;
		open_file(path, &config);
		if (config_validate(&config, &err) || config_grid_open(&config, &grid, &err))
			fail_msg("%s: %s", path, err.text);
		for (size_t p = 0; p < grid.points; p++) {
			struct config point;
			if (config_grid_point(&config, &grid, p, &point, &err) ||
				config_validate(&point, &err))
				fail_msg("%s: point %zu: %s", path, p, err.text);
			/* It must run in a container, whose seccomp profile forbids io_uring. */
			if (config_integer(&point, KEY_READ_ENGINE) == READ_ENGINE_IO_URING)
				fail_msg("%s: point %zu insists on io_uring", path, p);
			config_release(&point);
		}
		config_grid_close(&grid);
		config_release(&config);
	}
}

/* Two configurations with one folder must mean the same pictures, or the second run would be refused. */
static void shared_folders_hold_the_same_pictures(void **state)
{
	(void)state;
	size_t shared = 0;
	for (size_t a = 0; a < files.gl_pathc; a++) {
		for (size_t b = a + 1; b < files.gl_pathc; b++) {
			struct config one;
			struct config other;
			open_file(files.gl_pathv[a], &one);
			open_file(files.gl_pathv[b], &other);
			const bool same_folder = value_equal(KEY_DATASET_PATH,
				&one.values[KEY_DATASET_PATH], &other.values[KEY_DATASET_PATH]);
			for (int key = 0; key < KEY_COUNT && same_folder; key++)
				if (strcmp(config_keys[key].section, "dataset") == 0 &&
					!value_equal((enum key_id)key, &one.values[key],
						&other.values[key]))
					fail_msg("%s and %s differ in dataset.%s",
						files.gl_pathv[a], files.gl_pathv[b],
						config_keys[key].name);
			shared += same_folder;
			config_release(&one);
			config_release(&other);
		}
	}
	assert_true(shared > 0);
}

static void each_is_a_lesson(void **state)
{
	(void)state;
	for (size_t f = 0; f < files.gl_pathc; f++) {
		const char *path = files.gl_pathv[f];
		char *text;
		size_t size;
		size_t lines = 0;
		assert_int_equal(files_read(path, FILE_BYTES_MAX, &text, &size, NULL), 0);
		for (const char *at = text; (at = strchr(at, '\n')); at++)
			lines++;
		if (lines > LESSON_LINES_MAX || *text != '#')
			fail_msg("%s has %zu lines, or no comment at its head", path, lines);
		if (!strstr(text, "# What to expect") || !strstr(text, "# What to change next"))
			fail_msg("%s does not say what to expect or to change", path);
		/* Only that benchmark's own tool makes its results. */
		if (strstr(text, "MLPerf"))
			fail_msg("%s names MLPerf", path);
		free(text);
	}
}

static void data_folder_can_be_moved(void **state)
{
	(void)state;
	struct config config;
	(void)unsetenv("MLBENCH_DATA");
	open_file("configs/imagenet_like.ini", &config);
	assert_string_equal(config_text(&config, KEY_DATASET_PATH), "data/imagenet_like");
	config_release(&config);
	(void)setenv("MLBENCH_DATA", "/scratch", 1);
	open_file("configs/imagenet_like.ini", &config);
	assert_string_equal(config_text(&config, KEY_DATASET_PATH), "/scratch/imagenet_like");
	config_release(&config);
	(void)unsetenv("MLBENCH_DATA");
}

/* The demo that `make sweep` runs: its size is what the minutes rest on, at most. */
static void the_demo_is_what_the_readme_says(void **state)
{
	(void)state;
	struct config config;
	struct config_grid grid;
	open_file("configs/imagenet_like.ini", &config);
	assert_int_equal(config_grid_open(&config, &grid, NULL), 0);
	assert_int_equal(grid.points, 12);
	assert_int_equal(config.axes[0].key, KEY_DECODE_WORKERS);
	assert_int_equal(config.axes[1].key, KEY_BATCH_SIZE);
	assert_int_equal(config.axes[2].key, KEY_PREFETCH_DEPTH);
	assert_int_equal(config_integer(&config, KEY_READ_ENGINE), READ_ENGINE_AUTO);
	assert_int_equal(config_integer(&config, KEY_DATASET_SAMPLES), 1200);
	assert_int_equal(config_integer(&config, KEY_DATASET_BYTES), 112640);
	assert_int_equal(plan_settle_sweep(&config, NULL), 0);
	assert_int_equal(config_integer(&config, KEY_SWEEP_MODE), SWEEP_MODE_SEQUENTIAL);
	const int64_t each = config_integer(&config, KEY_MEASURE_DURATION) +
			     config_integer(&config, KEY_MEASURE_WARMUP);
	const int64_t total =
		(int64_t)grid.points * config_integer(&config, KEY_MEASURE_REPEATS) * each;
	assert_true(total <= 150 * 1000000000LL);
	config_grid_close(&grid);
	config_release(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_are_there),
		cmocka_unit_test(each_is_right_at_each_point),
		cmocka_unit_test(shared_folders_hold_the_same_pictures),
		cmocka_unit_test(each_is_a_lesson),
		cmocka_unit_test(data_folder_can_be_moved),
		cmocka_unit_test(the_demo_is_what_the_readme_says),
	};
	return cmocka_run_group_tests_name("config_files", tests, find_files, forget_files);
}
