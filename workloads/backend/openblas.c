/* OpenBLAS: finding the library, and the backend that computes a training step on it, on this node's cores.  network.h says
 * what is computed and what is not. */
#include "workloads/backend/openblas.h"

#include "harness/base/clock.h"
#include "harness/base/program.h"
#include "workloads/backend/backend.h"
#include "workloads/backend/network.h"
#include "workloads/sample/sample.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <xmmintrin.h>

#ifndef MLBENCH_OPENBLAS_FOLDER
#define MLBENCH_OPENBLAS_FOLDER ""
#endif

enum { WHY_BYTES = 384, PARALLEL_OPENMP = 2 };

/* Of 0.3.21, measured: 40 MB for itself, 128 MB for each thread and its stack. */
static const size_t BLAS_OWN_BYTES = (size_t)64 << 20, BLAS_THREAD_BYTES = (size_t)140 << 20;

static struct {
	pthread_once_t once;
	struct blas functions;
	bool found;
	char why[WHY_BYTES];
} blas_library = {.once = PTHREAD_ONCE_INIT};

const struct blas *blas;

/* A pointer to a function is not one to data in C: it is copied byte by byte. */
static bool blas_look_up_all(void *handle, const char *path)
{
	struct blas *f = &blas_library.functions;
	const struct {
		const char *name;
		void *function;
	} wanted[] = {
		{"cblas_sgemm", &f->sgemm},
		{"cblas_dgemm", &f->dgemm},
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
			(void)snprintf(blas_library.why, sizeof blas_library.why, "%s has no %s",
				path, wanted[i].name);
			return false;
		}
	}
	return true;
}

/* The first reason is kept: it is about the library that was meant. */
static void blas_keep_reason(const char *path)
{
	const char *const reason = dlerror();
	if (!blas_library.why[0])
		(void)snprintf(blas_library.why, sizeof blas_library.why, "no OpenBLAS: %.320s",
			reason ? reason : path);
}

static bool blas_try_library(const char *path)
{
	void *const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		blas_keep_reason(path);
		return false;
	}
	if (blas_look_up_all(handle, path)) {
		if (blas_library.functions.get_parallel() == PARALLEL_OPENMP)
			return true;
		(void)snprintf(blas_library.why, sizeof blas_library.why,
			"%s is not built with OpenMP (on Debian, install libopenblas0-openmp)",
			path);
	}
	(void)dlclose(handle);
	return false;
}

/* Whether `threads` threads of it will find their buffers.  It never stops asking for memory that it does not get, so this
 * is asked first.  -ENOMEM: not. */
static int blas_check_room(int threads, struct error *err)
{
	const size_t bytes = BLAS_OWN_BYTES + (size_t)threads * BLAS_THREAD_BYTES;
	void *const trial =
		mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (trial == MAP_FAILED)
		return error_set(err, -ENOMEM,
			"OpenBLAS needs about %zu MiB of address space for %d thread%s, which is not available "
			"(raise ulimit -v)",
			bytes >> 20, threads, threads == 1 ? "" : "s");
	(void)munmap(trial, bytes);
	return 0;
}

static void blas_find_library(void)
{
	char beside[PATH_MAX];
	struct error err = {""};
	if (blas_check_room(omp_get_num_procs(), &err) < 0) {
		(void)snprintf(
			blas_library.why, sizeof blas_library.why, "%.*s", WHY_BYTES - 1, err.text);
		return;
	}
	if (program_beside("../lib/libopenblas.so.0", beside, sizeof beside))
		blas_library.found = blas_try_library(beside);
	if (!blas_library.found && MLBENCH_OPENBLAS_FOLDER[0] != '\0')
		blas_library.found = blas_try_library(MLBENCH_OPENBLAS_FOLDER "/libopenblas.so.0");
	if (!blas_library.found)
		blas_library.found = blas_try_library("libopenblas.so.0");
	blas = blas_library.found ? &blas_library.functions : NULL;
}

const struct blas *blas_find(char *why, size_t room)
{
	(void)pthread_once(&blas_library.once, blas_find_library);
	if (!blas && room > 0)
		(void)snprintf(why, room, "%s", blas_library.why);
	return blas;
}

void blas_replace(const struct blas *functions)
{
	blas = functions ? functions : blas_library.found ? &blas_library.functions : NULL;
}

int blas_set_threads(int threads, struct error *err)
{
	const int code = threads > blas->get_num_threads() ? blas_check_room(threads, err) : 0;
	if (code < 0)
		return code;
	blas->set_num_threads(threads);
	if (blas->get_num_threads() == threads && omp_get_max_threads() == threads)
		return 0;
	return error_set(err, -ENOTSUP, "OpenBLAS was built for %d threads, not %d",
		blas->get_num_threads(), threads);
}

/* --- the backend ------------------------------------------------------------------------------ */

/* MXCSR: flush denormal results to zero, and take denormal operands as zero.  Vanishing gradients
 * would otherwise cost a hundred cycles each. */
enum { FLUSH_DENORMALS = 0x8040 };

struct openblas {
	struct backend backend;
	struct network network;
	int saved_threads;
	unsigned saved_mode;
};

const char *openblas_describe(char *out, size_t room)
{
	static const char *const threading[] = {"sequential", "pthreads", "OpenMP"};
	if (!blas_find(out, room))
		return out;
	const int parallel = blas->get_parallel();
	(void)snprintf(out, room, "%s; kernels for %s%s; %s; %d processors", blas->get_config(),
		blas->get_corename(),
		getenv("OPENBLAS_CORETYPE") ? " (set by OPENBLAS_CORETYPE)" : "",
		parallel >= 0 && parallel <= 2 ? threading[parallel] : "unknown threading",
		blas->get_num_procs());
	return out;
}

static struct network_options openblas_options_from(
	const struct config *config, uint32_t sample_elements, uint32_t class_count)
{
	return (struct network_options){
		.model = model_find(config_text(config, KEY_STEP_MODEL)),
		.shape = {sample_elements, class_count, sample_tokens_of(config)},
		.batch_size = (uint32_t)config_integer(config, KEY_BATCH_SIZE),
		.type = sample_type_of(config),
		.rule = (enum step_optimizer)config_integer(config, KEY_STEP_OPTIMIZER),
		.learning_rate = (float)config_real(config, KEY_STEP_LEARNING_RATE),
		.threads = (int)config_integer(config, KEY_STEP_THREADS),
		.seed = (uint64_t)config_integer(config, KEY_RUN_SEED),
	};
}

/* Settings of the cuda backend that would change what is computed: they are not left out in silence. */
static int openblas_validate(const struct config *config, struct error *err)
{
	const int64_t precision = config_integer(config, KEY_STEP_PRECISION);
	if (precision != STEP_PRECISION_FP32 && precision != STEP_PRECISION_AUTO)
		return error_set(err, -EINVAL,
			"step.precision: openblas computes in fp32 only; use step.backend = cuda for other precisions");
	if (config_integer(config, KEY_STEP_ACCUMULATE) > 1)
		return error_set(err, -EINVAL,
			"step.accumulate: openblas updates the weights in every step; use step.backend = cuda");
	if (config_integer(config, KEY_STEP_STATISTICS) > 0)
		return error_set(err, -EINVAL,
			"step.statistics: openblas takes none; use step.backend = cuda");
	if (config_on(config, KEY_STEP_GRAPH))
		return error_set(err, -EINVAL,
			"step.graph: openblas has no CUDA graphs; use step.backend = cuda");
	return backend_check_model(config, err);
}

static const char *openblas_outline(const struct config *config, char *out, size_t room)
{
	(void)snprintf(out, room, "CPU, %s in fp32", config_text(config, KEY_STEP_MODEL));
	return out;
}

static const char *openblas_unavailable(char *why, size_t room)
{
	return blas_find(why, room) ? NULL : why;
}

static uint64_t openblas_bytes(
	const struct config *config, uint32_t sample_elements, uint32_t class_count)
{
	const struct network_options options =
		openblas_options_from(config, sample_elements, class_count > 0 ? class_count : 1);
	return options.model ? network_bytes(&options) : 0;
}

static void openblas_restore_thread(const struct openblas *openblas)
{
	blas->set_num_threads(openblas->saved_threads);
	_mm_setcsr(openblas->saved_mode);
}

static int openblas_open(struct backend *backend, struct error *err)
{
	struct openblas *openblas = (struct openblas *)backend;
	struct network_options options = openblas_options_from(
		backend->config, backend->sample_elements, backend->class_count);
	options.stop = backend->stop;
	openblas->saved_threads = omp_get_max_threads();
	openblas->saved_mode = _mm_getcsr();
	/* Before the first product: BLAS's own threads inherit the mode when they start. */
	_mm_setcsr(openblas->saved_mode | FLUSH_DENORMALS);
	int result = blas_set_threads(options.threads, err);
	if (result == -ENOTSUP)
		result = error_prefix(err, -EINVAL, "step.threads = %d", options.threads);
	if (result == 0)
		result = network_open(&openblas->network, &options, err);
	if (result < 0) {
		openblas_restore_thread(openblas);
		return result;
	}
	backend->flops_per_sample = model_training_flops_at(options.model, options.shape);
	(void)snprintf(backend->description, sizeof backend->description,
		"openblas (%s kernels, %d thread%s), %s: %s with %s in fp32", blas->get_corename(),
		options.threads, options.threads == 1 ? "" : "s", options.model->name,
		options.model->complete ? "training step" : "GEMMs of a training step",
		options.rule == STEP_OPTIMIZER_ADAM ? "adam" : "sgd");
	return 0;
}

static int openblas_step(struct backend *backend, const struct batch_view *batch,
	struct step_result *out, struct error *err)
{
	struct openblas *openblas = (struct openblas *)backend;
	const uint64_t begin = clock_now_ns();
	const int result = network_step(&openblas->network, batch, &out->loss, err);
	out->device_ns = clock_now_ns() - begin;
	return result;
}

static int openblas_evaluate(
	struct backend *backend, const struct batch_view *batch, struct error *err)
{
	struct openblas *openblas = (struct openblas *)backend;
	double loss;
	return network_evaluate(&openblas->network, batch, &loss, err);
}

static void openblas_close(struct backend *backend)
{
	struct openblas *openblas = (struct openblas *)backend;
	network_close(&openblas->network);
	openblas_restore_thread(openblas);
}

const struct backend_ops openblas_backend_ops = {
	.name = "openblas",
	.on_cores = true,
	.takes_tokens = true,
	.summary = "computes the model's GEMMs on the CPU: forward, backward, update",
	.size = sizeof(struct openblas),
	.outline = openblas_outline,
	.open = openblas_open,
	.step = openblas_step,
	.evaluate = openblas_evaluate,
	.close = openblas_close,
	.unavailable = openblas_unavailable,
	.validate = openblas_validate,
	.bytes = openblas_bytes,
};
