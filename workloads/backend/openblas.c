/* A training step computed on the CPU: the model's GEMMs on OpenBLAS, see network.h for what is and
 * what is not computed. */
#include "harness/base/clock.h"
#include "workloads/backend/backends.h"
#include "workloads/backend/blas.h"
#include "workloads/backend/network.h"
#include "workloads/sample/sample.h"

#include <errno.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <xmmintrin.h>

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
		getenv("OPENBLAS_CORETYPE") ? ", as OPENBLAS_CORETYPE says" : "",
		parallel >= 0 && parallel <= 2 ? threading[parallel] : "unknown threading",
		blas->get_num_procs());
	return out;
}

static struct network_options openblas_options_from(
	const struct config *config, uint32_t sample_elements, uint32_t class_count)
{
	return (struct network_options){
		.model = model_find(config_text(config, KEY_STEP_MODEL)),
		.shape = {sample_elements, class_count},
		.batch_size = (uint32_t)config_integer(config, KEY_BATCH_SIZE),
		.type = (enum augment_type)sample_type_of(config),
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
			"step.precision: openblas computes in fp32; other precisions need step.backend = cuda");
	if (config_integer(config, KEY_STEP_ACCUMULATE) > 1)
		return error_set(err, -EINVAL,
			"step.accumulate: openblas updates the weights in every step; it needs step.backend = cuda");
	if (config_integer(config, KEY_STEP_STATISTICS) > 0)
		return error_set(err, -EINVAL,
			"step.statistics: openblas takes none; they need step.backend = cuda");
	if (config_on(config, KEY_STEP_GRAPH))
		return error_set(err, -EINVAL,
			"step.graph: a CUDA graph needs step.backend = cuda, not openblas");
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

/* The count is a property of the calling thread (OpenMP's), so it is set from the step's own
 * thread. */
static int openblas_set_threads(int threads, struct error *err)
{
	const int code = threads > blas->get_num_threads() ? blas_check_room(threads, err) : 0;
	if (code < 0)
		return code;
	blas->set_num_threads(threads);
	if (blas->get_num_threads() == threads && omp_get_max_threads() == threads)
		return 0;
	return error_set(err, -EINVAL, "step.threads: openblas was built for %d threads, not %d",
		blas->get_num_threads(), threads);
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
	int result = openblas_set_threads(options.threads, err);
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

static void openblas_close(struct backend *backend)
{
	struct openblas *openblas = (struct openblas *)backend;
	network_close(&openblas->network);
	openblas_restore_thread(openblas);
}

const struct backend_ops openblas_backend_ops = {
	.name = "openblas",
	.on_cores = true,
	.summary = "computes the model's GEMMs on the CPU: forward, backward, update",
	.size = sizeof(struct openblas),
	.outline = openblas_outline,
	.open = openblas_open,
	.step = openblas_step,
	.close = openblas_close,
	.unavailable = openblas_unavailable,
	.validate = openblas_validate,
	.bytes = openblas_bytes,
};
