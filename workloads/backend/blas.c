/* Finding OpenBLAS. */
#include "workloads/backend/blas.h"

#include "harness/base/program.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <omp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MLBENCH_OPENBLAS_FOLDER
#define MLBENCH_OPENBLAS_FOLDER ""
#endif

enum { WHY_BYTES = 384, PARALLEL_OPENMP = 2 };

/* Of 0.3.21, measured: 40 MB for itself, 128 MB for each thread and its stack. */
static const size_t OWN_BYTES = (size_t)64 << 20, THREAD_BYTES = (size_t)140 << 20;

static struct {
	pthread_once_t once;
	struct blas functions;
	bool found;
	char why[WHY_BYTES];
} state = {.once = PTHREAD_ONCE_INIT};

const struct blas *blas;

/* A pointer to a function is not one to data in C: it is copied byte by byte. */
static bool blas_look_up_all(void *handle, const char *path)
{
	struct blas *f = &state.functions;
	const struct {
		const char *name;
		void *function;
	} wanted[] = {
		{"cblas_sgemm", &f->sgemm},
		{"cblas_sdot", &f->sdot},
		{"openblas_set_num_threads", &f->set_num_threads},
		{"openblas_get_num_threads", &f->get_num_threads},
		{"openblas_get_num_procs", &f->get_num_procs},
		{"openblas_get_config", &f->get_config},
		{"openblas_get_corename", &f->get_corename},
		{"openblas_get_parallel", &f->get_parallel},
	};
	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
		void *const symbol = dlsym(handle, wanted[i].name);
		memcpy(wanted[i].function, &symbol, sizeof symbol);
		if (!symbol) {
			(void)snprintf(
				state.why, sizeof state.why, "%s has no %s", path, wanted[i].name);
			return false;
		}
	}
	return true;
}

/* The first reason is kept: it is about the library that was meant. */
static void blas_keep_reason(const char *path)
{
	const char *const reason = dlerror();
	if (!state.why[0])
		(void)snprintf(
			state.why, sizeof state.why, "no OpenBLAS: %.320s", reason ? reason : path);
}

static bool blas_try_library(const char *path)
{
	void *const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		blas_keep_reason(path);
		return false;
	}
	if (blas_look_up_all(handle, path)) {
		if (state.functions.get_parallel() == PARALLEL_OPENMP)
			return true;
		(void)snprintf(state.why, sizeof state.why,
			"%s is not the OpenMP flavour (Debian: libopenblas0-openmp)", path);
	}
	(void)dlclose(handle);
	return false;
}

static void blas_find_library(void)
{
	char beside[PATH_MAX];
	struct error err = {""};
	if (blas_check_room(omp_get_num_procs(), &err) < 0) {
		(void)snprintf(state.why, sizeof state.why, "%.*s", WHY_BYTES - 1, err.text);
		return;
	}
	if (program_beside("../lib/libopenblas.so.0", beside, sizeof beside))
		state.found = blas_try_library(beside);
	if (!state.found && MLBENCH_OPENBLAS_FOLDER[0] != '\0')
		state.found = blas_try_library(MLBENCH_OPENBLAS_FOLDER "/libopenblas.so.0");
	if (!state.found)
		state.found = blas_try_library("libopenblas.so.0");
	blas = state.found ? &state.functions : NULL;
}

const struct blas *blas_find(char *why, size_t room)
{
	(void)pthread_once(&state.once, blas_find_library);
	if (!blas && room > 0)
		(void)snprintf(why, room, "%s", state.why);
	return blas;
}

void blas_replace(const struct blas *functions)
{
	blas = functions ? functions : state.found ? &state.functions : NULL;
}

int blas_check_room(int threads, struct error *err)
{
	const size_t bytes = OWN_BYTES + (size_t)threads * THREAD_BYTES;
	void *const trial =
		mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (trial == MAP_FAILED)
		return error_set(err, -ENOMEM,
			"OpenBLAS needs about %zu MiB of address space for %d thread%s, and there is less "
			"(see ulimit -v)",
			bytes >> 20, threads, threads == 1 ? "" : "s");
	(void)munmap(trial, bytes);
	return 0;
}
