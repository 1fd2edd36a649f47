/* The differences of two settings: what changes as one, what is left alone, and mixtures of both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/base/files.h"
#include "harness/command/bisect_sides.h"
#include "harness/fit/case.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sides_fixture {
	char root[96], good[128], bad[128];
	const char *arguments[2];
	atomic_bool stop;
	struct invocation invocation;
	struct bisect_sides sides;
};

static void sides_write(const char *path, const char *text)
{
	struct error err = {""};
	assert_int_equal(files_write_atomic(path, text, strlen(text), &err), 0);
}

static int sides_open(
	struct sides_fixture *f, const char *good, const char *bad, bool env, struct error *err)
{
	const char *folder = getenv("TMPDIR");
	*f = (struct sides_fixture){0};
	(void)snprintf(
		f->root, sizeof f->root, "%.60s/mlbench-sides-XXXXXX", folder ? folder : "/tmp");
	assert_non_null(mkdtemp(f->root));
	(void)snprintf(f->good, sizeof f->good, "%s/good.ini", f->root);
	(void)snprintf(f->bad, sizeof f->bad, "%s/bad.ini", f->root);
	sides_write(f->good, good);
	sides_write(f->bad, bad);
	f->arguments[0] = f->good;
	f->arguments[1] = f->bad;
	f->invocation.stop = &f->stop;
	f->invocation.options.arguments = f->arguments;
	f->invocation.options.argument_count = 2;
	if (env)
		f->invocation.options.given = OPTION_BIT(OPTION_ENV);
	return bisect_sides_open(&f->sides, &f->invocation, "out", err);
}

static void sides_close(struct sides_fixture *f)
{
	struct error err = {""};
	bisect_sides_close(&f->sides);
	assert_int_equal(files_remove_tree(f->root, &err), 0);
}

static size_t item_of(const struct bisect_sides *sides, const char *name)
{
	size_t i = 0;
	while (i < sides->count && strcmp(sides->items[i].name, name) != 0)
		i++;
	return i;
}

#define DATA "[dataset]\npath = data\nrecipe = photo\nsamples = 64\n"

static void test_keys_one_by_one_and_the_data_set_as_one(void **state)
{
	(void)state;
	struct sides_fixture f;
	struct error err = {""};
	char text[64];
	assert_int_equal(
		sides_open(&f, DATA "[batch]\nsize = 8\n",
			"[dataset]\npath = data\nrecipe = photo\nsamples = 32\nwidth = 64\n"
			"[batch]\nsize = 16\n[step]\ntime = 3ms\n"
			"[measure]\nduration = 7s\n[run]\nname = other\nseed = 4\n",
			false, &err),
		0);
	const struct bisect_sides *sides = &f.sides;
	assert_int_equal(sides->count, 3);
	const struct bisect_item *data = &sides->items[item_of(sides, "dataset")];
	assert_int_equal(data->key_count, 3); /* samples, width, and the folder of each */
	assert_int_equal(sides->items[item_of(sides, "batch.size")].key_count, 1);
	assert_string_equal(config_text(&sides->good.config, KEY_DATASET_PATH), "out/data-good");
	assert_string_equal(config_text(&sides->bad.config, KEY_DATASET_PATH), "out/data-bad");
	assert_int_equal(sides->note_count, 3); /* the data sets, the duration and the seed */
	assert_string_equal(
		bisect_value(sides, &sides->items[item_of(sides, "step.time")], true, text, 64),
		"3ms");
	assert_string_equal(bisect_value(sides, data, false, text, 64), "3 keys");
	sides_close(&f);
}

static void test_mixtures(void **state)
{
	(void)state;
	struct sides_fixture f;
	struct error err = {""};
	struct config mix;
	struct node_limits node;
	assert_int_equal(sides_open(&f, DATA "[batch]\nsize = 8\n",
				 DATA "[augment]\nratio_min = 2\nratio_max = 3\n"
				      "[step]\nmodel = vit_b16\ntime = 9ms@8,12ms@16\n",
				 false, &err),
		0);
	struct delta_set set = {{0}};
	assert_int_equal(bisect_mix(&f.sides, &set, &mix, &node, &err), 0);
	assert_int_equal(config_integer(&mix, KEY_BATCH_SIZE), 8);
	assert_false(node_limits_any(&node));
	config_release(&mix);
	delta_put(&set, item_of(&f.sides, "step.time"));
	delta_put(&set, item_of(&f.sides, "step.model"));
	assert_int_equal(bisect_mix(&f.sides, &set, &mix, &node, &err), 0);
	assert_string_equal(config_text(&mix, KEY_STEP_MODEL), "vit_b16");
	assert_true(config_step_time(&mix, 16) > config_step_time(&mix, 8));
	config_release(&mix);
	/* Half of what belongs together contradicts itself. */
	delta_put(&set, item_of(&f.sides, "augment.ratio_min"));
	assert_int_equal(bisect_mix(&f.sides, &set, &mix, &node, &err), -EINVAL);
	const struct delta_set all = delta_all(f.sides.count);
	assert_int_equal(bisect_mix(&f.sides, &all, &mix, &node, &err), 0);
	config_release(&mix);
	sides_close(&f);
}

static void test_nothing_differs_and_what_cannot_be_compared(void **state)
{
	(void)state;
	struct sides_fixture f;
	struct error err = {""};
	assert_int_equal(sides_open(&f, DATA, DATA "[measure]\nrepeats = 9\n", false, &err), 0);
	assert_int_equal(f.sides.count, 0);
	sides_close(&f);
	assert_int_equal(
		sides_open(&f, DATA, DATA "[sweep]\nbatch.size = 8,16\n", false, &err), -EINVAL);
	assert_non_null(strstr(err.text, "sweeps keys"));
	sides_close(&f);
	assert_int_equal(
		sides_open(&f, DATA, DATA "[augment]\nratio_min = 2\n", false, &err), -EINVAL);
	assert_non_null(strstr(err.text, "bad.ini"));
	sides_close(&f);
}

/* A case knows the node that it was reported from. */
static void test_limits_of_a_node_are_differences(void **state)
{
	(void)state;
	struct sides_fixture f;
	struct error err = {""};
	static const char reported[] =
		"[case]\nversion = 1\n" DATA "[reported]\ncores = 1\ncpu_quota = 0.37\n"
		"inject.read_latency = 4ms\n";
	cpu_set_t here;
	assert_int_equal(sched_getaffinity(0, sizeof here, &here), 0);
	const size_t cores = CPU_COUNT(&here) > 1;
	const int code = sides_open(&f, DATA, reported, true, &err);
	if (code)
		fail_msg("%s", err.text);
	assert_int_equal(f.sides.count, 2 + cores);
	const size_t quota = item_of(&f.sides, "node.cpu_quota");
	struct delta_set set = {{0}};
	struct config mix;
	struct node_limits node;
	char text[64];
	delta_put(&set, quota);
	assert_int_equal(bisect_mix(&f.sides, &set, &mix, &node, &err), 0);
	assert_true(node.quota_cores > 0.36 && node.quota_cores < 0.38);
	assert_int_equal(node.cores, 0);
	assert_int_equal(config_integer(&mix, KEY_INJECT_READ_LATENCY), 0);
	config_release(&mix);
	assert_string_equal(bisect_value(&f.sides, &f.sides.items[quota], false, text, 64), "none");
	assert_string_equal(
		bisect_value(&f.sides, &f.sides.items[quota], true, text, 64), "0.37 cores");
	sides_close(&f);
	/* Without --env the case is its twin. */
	assert_int_equal(sides_open(&f, DATA, reported, false, &err), 0);
	assert_int_equal(f.sides.count, 0);
	sides_close(&f);
}

/* Less memory is a difference where it can be emulated, and a note where it cannot. */
static void test_memory_of_a_node(void **state)
{
	(void)state;
	struct sides_fixture f;
	struct error err = {""};
	static const char reported[] = "[case]\nversion = 1\n[environment]\nmemory = 64 MiB\n" DATA;
	const struct node_limits limits = {.memory_bytes = 64 << 20};
	struct node_emulation emulation;
	char text[64];
	const bool can = node_emulation_begin(&emulation, &limits, &err) == 0;
	node_emulation_end(&emulation);
	print_message("less memory: %s\n", can ? "can be emulated" : err.text);
	assert_int_equal(sides_open(&f, DATA, reported, true, &err), 0);
	assert_int_equal(f.sides.count, can);
	assert_int_equal(f.sides.note_count, !can);
	if (can) {
		const size_t memory = item_of(&f.sides, "node.memory");
		struct delta_set set = {{0}};
		struct config mix;
		struct node_limits node;
		delta_put(&set, memory);
		assert_int_equal(bisect_mix(&f.sides, &set, &mix, &node, &err), 0);
		assert_int_equal(node.memory_bytes, 64 << 20);
		config_release(&mix);
		assert_string_equal(
			bisect_value(&f.sides, &f.sides.items[memory], true, text, 64), "64.0 MiB");
		assert_string_equal(
			bisect_value(&f.sides, &f.sides.items[memory], false, text, 64), "none");
		assert_string_equal(
			node_limits_words(&node, text, sizeof text), "64.0 MiB of memory");
	} else
		assert_non_null(strstr(f.sides.notes[0], "node.memory differs: "));
	sides_close(&f);
}

int main(void)
{
	section_owners_register((const struct section_owner *const[]){&case_owner, NULL});
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys_one_by_one_and_the_data_set_as_one),
		cmocka_unit_test(test_mixtures),
		cmocka_unit_test(test_nothing_differs_and_what_cannot_be_compared),
		cmocka_unit_test(test_limits_of_a_node_are_differences),
		cmocka_unit_test(test_memory_of_a_node),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
