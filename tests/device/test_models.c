/* The shipped models, one step each, against the CPU's step of the same model: every product's real width, the rows of 147
 * elements that conv1 of resnet50 has, the 50,257 columns of gpt2_small's head.
 *
 * One block of those that repeat, of the transformers with fewer tokens, is held to the tolerance of its roundings.  Whole
 * models are held to one in fp32 alone: attention without a softmax is cubic in its input, and twelve blocks of it multiply an
 * error by thirty, so that a gradient of vit_b16 in bf16 is off by half; there the loss alone must be near.
 * The double takes the CPU's time for a product: whole models with MODELS_WHOLE=1 only, for many minutes. */
#include "tests/device/double/double.h"
#include "tests/device/train_fixture.h"

#include <limits.h>
#include <malloc.h>

enum { GEMMS_MAX = 40, CLASSES_OF_IMAGENET = 1000 };

struct shrunk {
	struct model model;
	struct model_gemm gemms[GEMMS_MAX];
};

static bool on_double(void)
{
#ifdef MLBENCH_CUDA_DOUBLE
	return true;
#else
	return false;
#endif
}

/* One block of those that repeat, and so many of all rows (tokens; all: no less). */
static const struct model *shrink(
	struct shrunk *out, const struct model *model, uint32_t all, uint32_t tokens)
{
	assert_true(model->gemm_count <= GEMMS_MAX && tokens <= all);
	out->model = *model;
	out->model.gemms = out->gemms;
	for (size_t i = 0; i < model->gemm_count; i++) {
		struct model_gemm *gemm = &out->gemms[i];
		*gemm = model->gemms[i];
		gemm->repeat = 1;
		if (gemm->m == 1 || tokens == all)
			continue;
		gemm->m = gemm->m - all + tokens; /* patches are one less */
		gemm->n = gemm->n == all ? tokens : gemm->n;
		gemm->k = gemm->k == all ? tokens : gemm->k;
	}
	out->model.input_elements = out->gemms[0].m * out->gemms[0].k;
	return &out->model;
}

/* Errors that do not know of each other, in three products a layer, forward and back; twice that is allowed. */
static double tolerance_of(enum step_precision precision, size_t layers)
{
	static const double roundoff[] = {[STEP_PRECISION_FP32] = 0x1p-22,
		[STEP_PRECISION_TF32] = 0x1p-11,
		[STEP_PRECISION_BF16] = 0x1p-8,
		[STEP_PRECISION_FP16] = 0x1p-11,
		[STEP_PRECISION_FP8] = 0x1p-4};
	return 2 * sqrt(3 * 2 * (double)layers) * roundoff[precision];
}

static bool device_has_fp8(void)
{
	int major = 0;
	int minor = 0;
	DEVICE_OK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
	DEVICE_OK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0));
	return 10 * major + minor >= 89;
}

static void compare(struct fixture *fixture, const struct network *network, double loss, bool whole)
{
	static const char *const names[] = {"fp32", "tf32", "bf16", "fp16", "fp8"};
	const enum step_precision precision = fixture->options.precision;
	const struct train_batch batch = fixture_view(fixture);
	fixture_gradients(fixture, &batch, 0);
	const double found = fixture_loss(fixture);
	float *gradient = fixture_parameters(fixture, fixture->train->plan.gradients);
	for (size_t i = 0; i < fixture->train->plan.parameters; i++)
		gradient[i] /= fixture->train->loss_scale;
	const double distance = fixture_distance(fixture, network, gradient, true);
	free(gradient);
	const double tolerance = tolerance_of(precision, fixture->train->plan.layer_count);
	const double allowed = !whole                             ? tolerance
			       : precision == STEP_PRECISION_FP32 ? 1e-3
								  : (double)INFINITY;
	print_message("%s%s, %s: gradient off by %.2g of %.2g allowed, loss %.6g by %.2g%s%s\n",
		whole ? "whole " : "", fixture->model->name, names[precision], distance, allowed,
		found, fabs(found / loss - 1), *train_note(fixture->train) ? "; " : "",
		train_note(fixture->train));
	assert_true(isfinite(distance) && distance < allowed);
	assert_true(fabs(found / loss - 1) < fmin(allowed, 0.1));
	if (on_double())
		return;
	/* The update, and a step on what it left. */
	fixture_update(fixture, 1);
	fixture_gradients(fixture, &batch, 0);
	const double after = fixture_loss(fixture);
	print_message("    after an update: loss %.6g\n", after);
	/* An unscaled update of a whole model may push activations beyond fp16's 65,504. */
	assert_true(isfinite(after) || (whole && precision == STEP_PRECISION_FP16));
}

static void a_step_is_the_cpu_s(
	const struct model *model, const enum step_precision *precisions, bool whole)
{
	struct cuda_options options =
		fixture_options(model, STEP_PRECISION_FP32, STEP_OPTIMIZER_SGD);
	options.batch_size = 1;
	options.sample_elements = model->input_elements < 150528 ? model->input_elements : 150528;
	options.class_count = CLASSES_OF_IMAGENET;
	struct network network;
	double loss = NAN;
	for (size_t i = 0; precisions[i] != STEP_PRECISION_AUTO; i++) {
		options.precision = precisions[i];
		if (options.precision == STEP_PRECISION_FP8 && !device_has_fp8())
			continue;
		struct fixture fixture = fixture_open(model, &options);
		fixture_batch(&fixture, 0);
		if (i == 0) { /* the same for all of them */
			const struct batch_view host = fixture_host_view(&fixture);
			network = fixture_network(&fixture);
			DEVICE_OK(network_gradients(&network, &host, 0, &loss, NULL));
		}
		compare(&fixture, &network, loss, whole);
		fixture_close(&fixture);
	}
	network_close(&network);
}

static void step_of(const char *name, uint32_t all_tokens, uint32_t tokens)
{
	static const enum step_precision bf16[] = {STEP_PRECISION_BF16, STEP_PRECISION_AUTO};
	static const enum step_precision fp32[] = {STEP_PRECISION_FP32, STEP_PRECISION_AUTO};
	static const enum step_precision all[] = {STEP_PRECISION_FP32, STEP_PRECISION_TF32,
		STEP_PRECISION_BF16, STEP_PRECISION_FP16, STEP_PRECISION_FP8, STEP_PRECISION_AUTO};
	struct shrunk shrunk;
	const struct model *model = model_find(name);
	a_step_is_the_cpu_s(
		shrink(&shrunk, model, all_tokens, tokens), on_double() ? bf16 : all, false);
	if (!on_double() || getenv("MODELS_WHOLE"))
		a_step_is_the_cpu_s(model, on_double() ? fp32 : all, true);
}

static void resnet50(void **state)
{
	(void)state;
	step_of("resnet50", 0, 0);
}

static void vit_b16(void **state)
{
	(void)state;
	step_of("vit_b16", 197, 17);
}

static void gpt2_small(void **state)
{
	(void)state;
	step_of("gpt2_small", 1024, 16);
}

/* On the double: one kernel for each product, which need not be timed against others, none for rows that are not aligned, and
 * room for a whole model. */
static int prepare(void **state)
{
	(void)state;
#ifdef MLBENCH_CUDA_DOUBLE
	(void)setenv("MLBENCH_DOUBLE_KERNELS", "1", 1);
	(void)setenv("MLBENCH_DOUBLE_ALIGNED", "1", 1);
	(void)setenv("MLBENCH_DOUBLE_MEMORY", "16e9", 1);
	/* Its operands as floats come and go: not from the kernel each time. */
	(void)mallopt(M_MMAP_THRESHOLD, 1 << 30);
	(void)mallopt(M_TRIM_THRESHOLD, INT_MAX);
	double_configure();
#endif
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resnet50),
		cmocka_unit_test(vit_b16),
		cmocka_unit_test(gpt2_small),
	};
	return cmocka_run_group_tests(tests, prepare, NULL);
}
