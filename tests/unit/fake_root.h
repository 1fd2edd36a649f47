/* A root for fake /proc, /sys, /etc and /dev: what other machines show. */
#ifndef MLBENCH_TESTS_FAKE_ROOT_H
#define MLBENCH_TESTS_FAKE_ROOT_H

#include "harness/base/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char fake_root[64];

static inline void fake_root_make(void)
{
	(void)snprintf(fake_root, sizeof fake_root, "/tmp/mlbench_root_XXXXXX");
	assert_non_null(mkdtemp(fake_root));
}

static inline void fake_root_remove(void)
{
	struct error err;
	assert_int_equal(files_remove_tree(fake_root, &err), 0);
}

/* Writes root/path with these bytes, making its folders. */
static inline void fake_bytes(const char *path, const void *bytes, size_t size)
{
	char full[512];
	struct error err;
	(void)snprintf(full, sizeof full, "%s%s", fake_root, path);
	char *slash = strrchr(full, '/');
	*slash = '\0';
	assert_int_equal(files_make_folder(full, &err), 0);
	*slash = '/';
	FILE *file = fopen(full, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static inline void fake_file(const char *path, const char *text)
{
	fake_bytes(path, text, strlen(text));
}

/* root/path -> target, which is below the root as well where it begins with '/'. */
static inline void fake_link(const char *path, const char *target)
{
	char full[512];
	char to[512];
	fake_file(path, "");
	(void)snprintf(full, sizeof full, "%s%s", fake_root, path);
	(void)snprintf(to, sizeof to, "%s%s", target[0] == '/' ? fake_root : "", target);
	assert_int_equal(unlink(full), 0);
	assert_int_equal(symlink(to, full), 0);
}

static inline void fake_drop(const char *path)
{
	char full[512];
	struct error err;
	(void)snprintf(full, sizeof full, "%s%s", fake_root, path);
	assert_int_equal(files_remove_tree(full, &err), 0);
}

#endif
