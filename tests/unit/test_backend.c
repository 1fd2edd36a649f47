/* The list of backends, the choice among them, and the null one. */
#include "workloads/backend/backend.h"
#include "workloads/backend/cuda.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct config config_with(const char *backend, const char *model)
{
	struct config config;
	struct error err = {""};
	config_init(&config);
	if (config_set_key(&config, KEY_STEP_BACKEND, backend, &err) < 0 ||
		config_set_key(&config, KEY_STEP_MODEL, model, &err) < 0)
		fail_msg("%s", err.text);
	return config;
}

static const struct backend_ops *listed(const char *name)
{
	for (const struct backend_ops *const *ops = backend_list; *ops; ops++)
		if (strcmp((*ops)->name, name) == 0)
			return *ops;
	fail_msg("'%s' is not in the list", name);
	return backend_list[0]; /* not reached */
}

static void list_is_complete(void **state)
{
	(void)state;
	for (const struct backend_ops *const *ops = backend_list; *ops; ops++) {
		assert_true(strlen((*ops)->name) > 0 && strlen((*ops)->summary) > 0);
		assert_true((*ops)->size >= sizeof(struct backend));
		assert_non_null((*ops)->open);
		assert_true((*ops)->step || (*ops)->launch);
	}
	for (size_t i = 0; i < 4; i++)
		assert_non_null(
			listed((const char *[]){"null", "emulated", "openblas", "cuda"}[i]));
}

static void names_choose_themselves(void **state)
{
	(void)state;
	static const char *const names[] = {"null", "emulated", "openblas"};
	for (size_t i = 0; i < 3; i++) {
		struct config config = config_with(names[i], "resnet50");
		char why_not[128] = "untouched";
		assert_ptr_equal(
			backend_choose(&config, why_not, sizeof why_not, NULL), listed(names[i]));
		assert_string_equal(why_not, "");
		assert_int_equal(backend_validate(&config, NULL), 0);
		config_release(&config);
	}
}

static void auto_says_why_it_emulates(void **state)
{
	(void)state;
	struct config config = config_with("auto", "resnet50");
	char why_not[BACKEND_WHY_BYTES];
	assert_ptr_equal(
		backend_choose(&config, why_not, sizeof why_not, NULL), listed("emulated"));
	print_message("%s\n", why_not);
	assert_non_null(strstr(why_not, "no real device: this build has no CUDA plug-in"));
	assert_ptr_equal(backend_choose(&config, NULL, 0, NULL), listed("emulated"));
	config_release(&config);
}

static void cuda_by_name_is_refused_with_the_reason(void **state)
{
	(void)state;
	struct config config = config_with("cuda", "resnet50");
	char why[BACKEND_WHY_BYTES] = "";
	assert_ptr_equal(listed("cuda")->unavailable(why, sizeof why), why);
	/* The plug-in is beside the program, not beside its tests. */
	const bool present =
		access("/dev/nvidiactl", F_OK) == 0 && access("/dev/nvidia0", F_OK) == 0;
	assert_non_null(strstr(why, "this build has no CUDA plug-in (" CUDA_PLUGIN_FILE));
	assert_non_null(strstr(why, present ? "a device is visible" : "no device is visible"));
	struct error err = {""};
	struct backend *backend = NULL;
	assert_null(backend_choose(&config, NULL, 0, &err));
	assert_non_null(strstr(err.text, why));
	assert_int_equal(backend_validate(&config, &err), -ENOTSUP);
	assert_int_equal(
		backend_open(&backend,
			&(const struct backend_options){
				.config = &config, .sample_elements = 12, .class_count = 2},
			&err),
		-ENOTSUP);
	assert_null(backend);
	assert_int_equal(backend_bytes(&config, 12, 2), 0);
	config_release(&config);
}

static void openblas_knows_its_models(void **state)
{
	(void)state;
	struct config config = config_with("openblas", "resnet5");
	struct error err = {""};
	assert_int_equal(backend_validate(&config, &err), -EINVAL);
	assert_non_null(strstr(err.text, "did you mean 'resnet50'?"));
	config_release(&config);
	config = config_with("openblas", "unet3d"); /* only an emulated one */
	assert_int_equal(backend_validate(&config, &err), -EINVAL);
	assert_non_null(strstr(err.text, "known: mlp resnet50 vit_b16 gpt2_small"));
	config_release(&config);
}

/* What would change the computation is not left out in silence. */
static void openblas_refuses_what_it_does_not_do(void **state)
{
	(void)state;
	static const struct {
		enum key_id key;
		const char *value, *says;
	} cases[] = {
		{KEY_STEP_PRECISION, "bf16", "openblas computes in fp32"},
		{KEY_STEP_ACCUMULATE, "4", "openblas updates the weights in every step"},
		{KEY_STEP_STATISTICS, "10", "openblas takes none"},
		{KEY_STEP_GRAPH, "on", "openblas has no CUDA graphs"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct config config = config_with("openblas", "mlp");
		struct error err = {""};
		assert_int_equal(config_set_key(&config, cases[i].key, cases[i].value, NULL), 0);
		assert_int_equal(backend_validate(&config, &err), -EINVAL);
		assert_non_null(strstr(err.text, cases[i].says));
		/* Where a step is nothing, one file serves nodes with and without a device. */
		assert_int_equal(config_set_key(&config, KEY_STEP_BACKEND, "null", NULL), 0);
		assert_int_equal(backend_validate(&config, &err), 0);
		config_release(&config);
	}
}

/* A clock takes as long whatever they are: refused by name, said where the node's lack of a device made the step one. */
static void an_emulated_step_refuses_what_it_ignores(void **state)
{
	(void)state;
	static const struct {
		enum key_id key;
		const char *value, *name;
	} cases[] = {
		{KEY_STEP_PRECISION, "bf16", "step.precision"},
		{KEY_STEP_PRECISION, "fp32", "step.precision"},
		{KEY_STEP_ACCUMULATE, "4", "step.accumulate"},
		{KEY_STEP_GRAPH, "on", "step.graph"},
		{KEY_STEP_STATISTICS, "10", "step.statistics"},
		{KEY_STEP_STREAMS, "2", "step.streams"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct config config = config_with("emulated", "resnet50");
		struct error err = {""};
		char why_not[BACKEND_WHY_BYTES];
		assert_int_equal(config_set_key(&config, cases[i].key, cases[i].value, NULL), 0);
		assert_int_equal(backend_validate(&config, &err), -EINVAL);
		assert_non_null(strstr(err.text, cases[i].name));
		assert_non_null(strstr(err.text, "no effect on an emulated step"));
		assert_int_equal(config_set_key(&config, KEY_STEP_BACKEND, "auto", NULL), 0);
		assert_int_equal(backend_validate(&config, &err), 0);
		(void)backend_choose(&config, why_not, sizeof why_not, NULL);
		assert_non_null(strstr(why_not, cases[i].name));
		config_release(&config);
	}
}

static void only_openblas_takes_memory(void **state)
{
	(void)state;
	struct config config = config_with("null", "mlp");
	assert_int_equal(backend_bytes(&config, 48, 5), 0);
	config_release(&config);
	config = config_with("emulated", "resnet50");
	assert_int_equal(backend_bytes(&config, 48, 5), 0);
	config_release(&config);
	config = config_with("openblas", "mlp");
	const uint64_t weights = (48 * 512 + 512 * 512 + 512 * 5) * sizeof(float);
	const uint64_t sgd = backend_bytes(&config, 48, 5);
	assert_true(sgd > 2 * weights &&
		    sgd < 4 * weights); /* weights and velocities, then activations */
	assert_int_equal(config_set_key(&config, KEY_STEP_OPTIMIZER, "adam", NULL), 0);
	assert_true(backend_bytes(&config, 48, 5) > sgd + 2 * weights);
	config_release(&config);
}

static void null_does_nothing(void **state)
{
	(void)state;
	struct config config = config_with("null", "resnet50");
	struct backend *backend = NULL;
	assert_int_equal(
		backend_open(&backend,
			&(const struct backend_options){
				.config = &config, .sample_elements = 12, .class_count = 2},
			NULL),
		0);
	assert_false(backend->emulated);
	assert_true(strlen(backend->description) > 0);
	const struct batch_view batch = {.size = 1}, empty = {.size = 0}, large = {.size = 65};
	struct step_result result;
	assert_int_equal(backend_step(backend, &batch, &result, NULL), 0);
	assert_int_equal(result.device_ns, 0);
	assert_int_equal(result.oversleep_ns, 0);
	assert_true(isnan(result.loss));
	assert_int_equal(backend_step(backend, &empty, &result, NULL), -EINVAL);
	assert_int_equal(backend_step(backend, &large, &result, NULL), -EINVAL);
	backend_close(backend);
	backend_close(NULL);
	config_release(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list_is_complete),
		cmocka_unit_test(names_choose_themselves),
		cmocka_unit_test(auto_says_why_it_emulates),
		cmocka_unit_test(cuda_by_name_is_refused_with_the_reason),
		cmocka_unit_test(openblas_knows_its_models),
		cmocka_unit_test(openblas_refuses_what_it_does_not_do),
		cmocka_unit_test(an_emulated_step_refuses_what_it_ignores),
		cmocka_unit_test(only_openblas_takes_memory),
		cmocka_unit_test(null_does_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
