/* The scripted NVML of tests/device/nvml, found beside the test program. */
#ifndef MLBENCH_TESTS_NVML_FIXTURE_H
#define MLBENCH_TESTS_NVML_FIXTURE_H

#include <dlfcn.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Loads build/VARIANT/nvml/KIND/libnvidia-ml.so.1, so that dlopen by its plain name finds it. */
static inline bool fake_nvml_load(const char *kind)
{
	char self[4096];
	char file[sizeof self + 64];
	const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
	if (length <= 0)
		return false;
	self[length] = '\0';
	(void)snprintf(file, sizeof file, "%s/../nvml/%s/libnvidia-ml.so.1", dirname(self), kind);
	if (dlopen(file, RTLD_NOW | RTLD_GLOBAL))
		return true;
	(void)fprintf(stderr, "%s\n", dlerror());
	return false;
}

static inline void fake_nvml_script(const char *script)
{
	(void)setenv("MLBENCH_FAKE_NVML", script, 1);
}

#endif
