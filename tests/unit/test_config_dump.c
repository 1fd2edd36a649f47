/* The dump reads back to the same configuration, and the hash stands for what was measured: both
 * over random configurations. */
#include "harness/base/buffer.h"
#include "harness/base/rng.h"
#include "harness/config/config.h"
#include "harness/config/value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROUNDS = 200, LINES_MAX = KEY_COUNT };

static uint64_t test_seed(void)
{
	const char *text = getenv("SEED");
	const uint64_t seed = text ? strtoull(text, NULL, 10) : 31;
	print_message("seed %llu\n", (unsigned long long)seed);
	return seed;
}

static void read_back(const char *text, struct config *config)
{
	struct error err;
	config_init(config);
	if (config_read_text(config, "dump", text, strlen(text), &err))
		fail_msg("%s in:\n%s", err.text, text);
}

static void assert_same(const struct config *a, const struct config *b)
{
	for (int key = 0; key < KEY_COUNT; key++)
		if (!value_equal((enum key_id)key, &a->values[key], &b->values[key]))
			fail_msg("%s.%s differs", config_keys[key].section, config_keys[key].name);
	assert_int_equal(a->axis_count, b->axis_count);
	for (size_t i = 0; i < a->axis_count; i++) {
		assert_int_equal(a->axes[i].key, b->axes[i].key);
		assert_int_equal(a->axes[i].count, b->axes[i].count);
		assert_int_equal(a->axes[i].zip_with, b->axes[i].zip_with);
		for (size_t v = 0; v < a->axes[i].count; v++)
			assert_true(value_equal(
				a->axes[i].key, &a->axes[i].values[v], &b->axes[i].values[v]));
	}
}

static void set(struct config *config, const char *assignment)
{
	struct error err;
	if (config_set(config, assignment, &err))
		fail_msg("'%s' was refused: %s", assignment, err.text);
}

static void random_text(struct rng *rng, char *out, size_t room)
{
	static const char letters[] = "ab/.;#$ {}=[]\\\"'-+*%:\t";
	const size_t length = rng_below(rng, 8) ? rng_below(rng, 40) : rng_below(rng, room - 1);
	for (size_t i = 0; i < length; i++)
		out[i] = letters[rng_below(rng, sizeof letters - 1)];
	out[length] = '\0';
}

/* One random assignment in a program's words. */
static void set_random(struct config *config, enum key_id id, struct rng *rng)
{
	const struct key *key = &config_keys[id];
	char text[1024];
	struct error err;
	if (id == KEY_TRACE_SCHEDULE) {
		(void)snprintf(text, sizeof text, "%u, 0,%u,1,0", (unsigned)rng_below(rng, 9),
			(unsigned)rng_below(rng, 9));
	} else if (id == KEY_STEP_TIMES) {
		(void)snprintf(text, sizeof text, "%ums %u 0.25s", (unsigned)rng_below(rng, 9) + 1,
			(unsigned)rng_below(rng, 9) + 1);
	} else if (id == KEY_DATASET_LIKE) {
		(void)snprintf(text, sizeof text,
			"jpeg %ux70~0.1 420 q9 2KB~0.3+1KB 60%%; png 9x9 1KB %s40%%",
			100 + (unsigned)rng_below(rng, 9), rng_below(rng, 2) ? "" : " ");
	} else if (key->type == KEY_TYPE_TEXT) {
		random_text(rng, text, sizeof text);
	} else {
		const double at = key->min + (key->max - key->min) * rng_uniform(rng);
		struct config_value value = {.integer = (int64_t)at, .real = at};
		if (key->type == KEY_TYPE_BOOLEAN || key->type == KEY_TYPE_CHOICE)
			value.integer = (int64_t)rng_below(
				rng, *key->choices && !strchr(key->choices, '|') ? 1 : 2);
		config_format_value(id, &value, text, sizeof text);
	}
	if (config_set_key(config, id, text, &err))
		fail_msg("%s", err.text);
}

static void randomise(struct config *config, struct rng *rng)
{
	static const char *const axes[] = {"decode.workers=1,2,4", "batch.size=8-64*2",
		"inject.read_latency=0,1us,3ms", "step.jitter=0-0.5+0.125", "step.model=mlp,vit b",
		"read.direct=on,off", "read.depth=1-300+1", "augment.flip=10%,12.5%,100%",
		"inject.read_bandwidth=1MB/s,1MiB/s"};
	config_init(config);
	for (int key = 0; key < KEY_COUNT; key++)
		if (rng_below(rng, 2) && key != KEY_SWEEP_ZIP && key != KEY_SWEEP_EXCLUDE)
			set_random(config, (enum key_id)key, rng);
	for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++) {
		char text[128];
		(void)snprintf(text, sizeof text, "sweep.%s", axes[i]);
		if (rng_below(rng, 2))
			set(config, text);
	}
	if (rng_below(rng, 2))
		set(config, "sweep.exclude=decode.workers=1 batch.size=8; read.direct=on");
	if (rng_below(rng, 2))
		set(config, "sweep.zip=read.direct, inject.read_bandwidth");
}

static void dump_reads_back(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, test_seed(), 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct config config;
		struct config again;
		char hash[17];
		char hash_again[17];
		randomise(&config, &rng);
		char *dump = config_dump(&config);
		assert_non_null(dump);
		read_back(dump, &again);
		assert_same(&config, &again);
		config_hash(&config, hash);
		config_hash(&again, hash_again);
		assert_string_equal(hash, hash_again);
		char *dump_again = config_dump(&again);
		assert_string_equal(dump, dump_again);
		free(dump_again);
		free(dump);
		config_release(&again);
		config_release(&config);
	}
}

/* Shuffles the lines of one file's assignments: the hash stays. */
static void hash_ignores_the_order_of_keys(void **state)
{
	(void)state;
	struct rng rng;
	rng_init(&rng, test_seed(), 1);
	static const char *const lines[] = {"[read]\ndepth = 4\n", "[read]\nengine = pread\n",
		"[dataset]\npath = data/x\n", "[sweep]\ndecode.workers = 1,2\n",
		"[sweep]\nbatch.size = 8,16\n", "[sweep]\nzip = decode.workers, batch.size\n",
		"[sweep]\nread.threads = 1-4+1\n", "[decode]\nworkers = 3\n",
		"[measure]\nduration = 1500ms\n"};
	enum { LINES = sizeof lines / sizeof lines[0] };
	char first[17] = "";
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t order[LINES];
		struct buffer text = {0};
		struct config config;
		char hash[17];
		rng_permutation(&rng, order, LINES);
		for (size_t line = 0; line < LINES; line++)
			buffer_text(&text, lines[order[line]]);
		read_back(text.data, &config);
		config_hash(&config, hash);
		assert_string_equal(*first ? first : hash, hash);
		memcpy(first, hash, sizeof first);
		config_release(&config);
		buffer_release(&text);
	}
}

static void hash_of(const char *assignment, char out[17])
{
	struct config config;
	config_init(&config);
	set(&config, "sweep.read.depth=1,2");
	set(&config, "sweep.read.threads=1,2");
	set(&config, assignment);
	config_hash(&config, out);
	config_release(&config);
}

static void hash_sees_what_matters(void **state)
{
	(void)state;
	static const char *const different[] = {"decode.workers=3", "augment.flip=0.25",
		"dataset.path=/a", "sweep.decode.workers=1,2", "sweep.read.depth=2,1",
		"sweep.zip=read.depth,read.threads", "sweep.exclude=read.depth=1", "read.depth=2",
		"measure.duration=4s", "run.seed=2", "trace.schedule=0,0,0,1,1",
		"step.times=20ms 21", "sweep.mode=sequential"};
	char plain[17];
	char spelled[17];
	hash_of("run.name=other", plain);
	assert_int_equal(strspn(plain, "0123456789abcdef"), 16);
	hash_of("measure.duration=3000ms", spelled);
	assert_string_equal(plain, spelled);
	hash_of("trace.compress=on", spelled);
	assert_string_equal(plain, spelled);
	hash_of("sweep.mode=grid", spelled); /* which it was by default, once */
	assert_string_equal(plain, spelled);
	for (size_t i = 0; i < sizeof different / sizeof different[0]; i++) {
		char hash[17];
		hash_of(different[i], hash);
		if (strcmp(hash, plain) == 0)
			fail_msg("'%s' does not change the hash", different[i]);
	}
}

static void dump_shows_every_key(void **state)
{
	(void)state;
	struct config config;
	config_init(&config);
	set(&config, "dataset.path=/a $${b} $#c");
	set(&config, "sweep.decode.workers=1-4*2");
	char *dump = config_dump(&config);
	assert_non_null(dump);
	assert_non_null(strstr(dump, "[dataset]\npath = /a $${b} $#c\nrecipe = none\n"));
	assert_non_null(strstr(dump, "\nratio_max = 1.33333333\nflip = 50%\n"));
	assert_non_null(strstr(dump, "\n[measure]\nduration = 3s\nwarmup = 1s\n"));
	assert_non_null(strstr(dump,
		"\n[sweep]\nmode = auto\nzip = \nexclude = \ndecode.workers = 1,2,4\n"));
	size_t lines = 0;
	for (const char *at = dump; (at = strstr(at, " = ")); at++)
		lines++;
	assert_int_equal(lines, KEY_COUNT + 1);
	free(dump);
	config_release(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dump_reads_back),
		cmocka_unit_test(hash_ignores_the_order_of_keys),
		cmocka_unit_test(hash_sees_what_matters),
		cmocka_unit_test(dump_shows_every_key),
	};
	return cmocka_run_group_tests_name("config_dump", tests, NULL, NULL);
}
