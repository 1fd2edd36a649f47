/* Helpers of the data set tests: a scratch folder, a configuration from text, small recipes. */
#ifndef MLBENCH_TESTS_DATASET_FIXTURE_H
#define MLBENCH_TESTS_DATASET_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/config/config.h"
#include "workloads/dataset/dataset.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIXTURE_PATH = 4096 };

static char fixture_root[FIXTURE_PATH];

static inline int fixture_setup(void **state)
{
	(void)state;
	const char *base = getenv("TMPDIR");
	(void)snprintf(
		fixture_root, sizeof(fixture_root), "%s/mlbench-test-XXXXXX", base ? base : "/tmp");
	if (!mkdtemp(fixture_root))
		return -1;
	char cache[FIXTURE_PATH + 16];
	(void)snprintf(cache, sizeof(cache), "%s/cache", fixture_root);
	return setenv("XDG_CACHE_HOME", cache, 1);
}

static inline int fixture_teardown(void **state)
{
	(void)state;
	struct error err;
	return files_remove_tree(fixture_root, &err);
}

/* fixture_root/name, in a buffer of the caller's. */
static inline const char *fixture_path(const char *name, char out[FIXTURE_PATH])
{
	(void)snprintf(out, FIXTURE_PATH, "%.2000s/%.2000s", fixture_root, name);
	return out;
}

static inline void fixture_set(struct config *config, const char *assignment)
{
	struct error err = {""};
	if (config_set(config, assignment, &err))
		fail_msg("%s: %s", assignment, err.text);
}

/* A configuration whose data set lies at fixture_root/name; then assignments, up to NULL. */
static inline void fixture_config(struct config *config, const char *name, ...)
{
	struct error err = {""};
	char path[FIXTURE_PATH];
	va_list list;
	config_init(config);
	assert_int_equal(
		config_set_key(config, KEY_DATASET_PATH, fixture_path(name, path), &err), 0);
	va_start(list, name);
	for (const char *text; (text = va_arg(list, const char *));)
		fixture_set(config, text);
	va_end(list);
}

static inline void fixture_write(const char *name, const void *data, size_t size)
{
	char path[FIXTURE_PATH];
	FILE *file = fopen(fixture_path(name, path), "wb");
	assert_non_null(file);
	if (size)
		assert_int_equal(fwrite(data, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static inline void fixture_folder(const char *name)
{
	char path[FIXTURE_PATH];
	struct error err = {""};
	assert_int_equal(files_make_folder(fixture_path(name, path), &err), 0);
}

/* XXH3 of a file of the fixture. */
static inline uint64_t fixture_hash(const char *name)
{
	char path[FIXTURE_PATH], *data;
	size_t size;
	struct error err = {""};
	if (files_read(fixture_path(name, path), (size_t)1 << 30, &data, &size, &err))
		fail_msg("%s", err.text);
	const uint64_t hash = hash_bytes(data, size, 0);
	free(data);
	return hash;
}

#endif
