/* The loader of the CUDA plug-in against files that are none, plug-ins of other builds, and nodes without devices: small
 * libraries compiled here.  Each failure must name what is missing. */
#include "workloads/backend/backend.h"
#include "workloads/backend/cuda.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* A plug-in whose macros say what is wrong with it. */
static const char plugin_source[] =
	"#include \"workloads/backend/cuda/plugin.h\"\n"
	"#include <errno.h>\n"
	"#include <stdio.h>\n"
	"int gone(void);\n"
	"static int node(struct cuda_node *out, struct error *err)\n"
	"{\n"
	"	out->driver = DRIVER;\n"
	"	out->runtime = 13000;\n"
	"	(void)snprintf(out->cublas, sizeof out->cublas, \"13.1.0\");\n"
	"	(void)snprintf(out->nccl, sizeof out->nccl, \"libnccl.so.2 is not there\");\n"
	"	out->count = COUNT;\n"
	"	for (unsigned i = 0; i < COUNT; i++)\n"
	"		out->devices[i] = (struct cuda_device_facts){\"Tiny\", \"0000:01:00.0\", 9, 0, 2, 1 << 20, 1 << 10, {1, 1, 1}};\n"
	"	if (COUNT == 0 && err)\n"
	"		(void)snprintf(err->text, sizeof err->text, \"no device: planted\");\n"
	"	return COUNT > 0 ? 0 : GONE;\n"
	"}\n"
	"static uint64_t device_bytes(const struct cuda_options *o) { return (uint64_t)o->batch_size * 1024; }\n"
	"static const struct cuda_plugin plugin = {.abi = ABI, .version = VERSION, .built = \"CUDA 13.0; sm_90\",\n"
	"	.node = node, .device_bytes = device_bytes};\n"
	"const struct cuda_plugin *mlbench_cuda_plugin(void) { return TABLE; }\n";

static char folder[] = "/tmp/mlbench-load-XXXXXX";

static const char *inside(const char *name)
{
	static char path[2][512];
	static unsigned turn;
	turn ^= 1;
	(void)snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
	return path[turn];
}

static void write_text(const char *name, const char *text)
{
	FILE *file = fopen(inside(name), "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static bool compile(const char *name, const char *source, const char *flags)
{
	char command[1024];
	const char *compiler = getenv("CC");
	(void)snprintf(command, sizeof command,
		"%s -std=gnu17 -shared -fPIC -I. -o %s/%s %s/%s %s 2>&1",
		compiler ? compiler : "cc", folder, name, folder, source, flags);
	return system(command) == 0;
}

#define GOOD                                                  \
	"-DABI=CUDA_PLUGIN_ABI -DVERSION='\"" MLBENCH_VERSION \
	"\"' -DDRIVER=13000 -DCOUNT=1 -DGONE=-ENODEV -DTABLE='&plugin'"

static int make_plugins(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)unsetenv(CUDA_PLUGIN_VARIABLE);
	write_text("plugin.c", plugin_source);
	write_text("other.c", "int something_else(void) { return 1; }\n");
	write_text("gone.c", "int gone(void) { return 1; }\n");
	write_text("needs.c", "int gone(void); int mlbench_cuda_plugin(void) { return gone(); }\n");
	write_text("garbage.so", "these are no instructions\n");
	char needs[300];
	(void)snprintf(needs, sizeof needs, "-L%s -l:libgone.so.7", folder);
	const bool built =
		compile("good.so", "plugin.c", GOOD) && compile("other.so", "other.c", "") &&
		compile("libgone.so.7", "gone.c", "-Wl,-soname,libgone.so.7") &&
		compile("needs.so", "needs.c", needs) &&
		compile("abi.so", "plugin.c", GOOD " -UABI -DABI=99") &&
		compile("version.so", "plugin.c", GOOD " -UVERSION -DVERSION='\"0.0.9\"'") &&
		compile("empty.so", "plugin.c", GOOD " -UTABLE -DTABLE=0") &&
		compile("none.so", "plugin.c", GOOD " -UCOUNT -DCOUNT=0 -UDRIVER -DDRIVER=0");
	(void)unlink(inside("libgone.so.7"));
	if (!built)
		print_message("no compiler: plug-ins of this test cannot be made\n");
	return built ? 0 : -1;
}

static int remove_plugins(void **state)
{
	(void)state;
	char command[300];
	(void)snprintf(command, sizeof command, "rm -rf %s", folder);
	return system(command);
}

static void expect_refusal(const char *name, int code, const char *part, const char *other)
{
	const struct cuda_plugin *plugin = NULL;
	struct error err = {""};
	assert_int_equal(cuda_open_plugin(&plugin, inside(name), &err), code);
	print_message("%s\n", err.text);
	assert_null(plugin);
	assert_non_null(strstr(err.text, part));
	assert_non_null(strstr(err.text, other));
	assert_null(strchr(err.text, '\n'));
}

static void what_is_no_plugin_is_refused_by_name(void **state)
{
	(void)state;
	expect_refusal("missing.so", -ENOENT, "cannot be opened", "missing.so");
	expect_refusal("garbage.so", -ENOENT, "cannot be opened", "garbage.so");
	expect_refusal("needs.so", -ENOENT, "cannot be opened", "libgone.so.7");
	expect_refusal(
		"other.so", -ENOTSUP, "not a plug-in of this program", "mlbench_cuda_plugin");
	expect_refusal("abi.so", -ENOTSUP, "interface 99", "of this build");
	expect_refusal("version.so", -ENOTSUP, "version 0.0.9", MLBENCH_VERSION);
	expect_refusal("empty.so", -ENOTSUP, "no function table", "empty.so");
}

static void a_named_file_is_taken_and_no_other(void **state)
{
	(void)state;
	struct cuda_found found;
	assert_int_equal(setenv(CUDA_PLUGIN_VARIABLE, inside("good.so"), 1), 0);
	cuda_look(&found, "/nowhere");
	assert_true(found.ready);
	assert_string_equal(found.path, inside("good.so"));
	assert_int_equal(found.node.count, 1);
	char text[400];
	assert_string_equal(cuda_describe_node(&found, text, sizeof text),
		"driver 13.0, runtime 13.0, cuBLAS 13.1.0, no NCCL (libnccl.so.2 is not there), plug-in built with CUDA 13.0; "
		"sm_90; 1 device: Tiny (sm_90, 1.00 MiB)");
	/* A good one beside the program does not stand in for a bad one that was named. */
	assert_int_equal(rename(inside("good.so"), inside(CUDA_PLUGIN_FILE)), 0);
	assert_int_equal(setenv(CUDA_PLUGIN_VARIABLE, inside("missing.so"), 1), 0);
	cuda_look(&found, folder);
	assert_false(found.ready);
	assert_null(found.plugin);
	assert_non_null(strstr(found.why, "missing.so"));
	assert_int_equal(unsetenv(CUDA_PLUGIN_VARIABLE), 0);
	assert_int_equal(rename(inside(CUDA_PLUGIN_FILE), inside("good.so")), 0);
}

static void places_are_searched_in_order(void **state)
{
	(void)state;
	struct cuda_found found;
	assert_int_equal(mkdir(inside("bin"), 0700), 0);
	assert_int_equal(mkdir(inside("lib"), 0700), 0);
	assert_int_equal(mkdir(inside("lib/mlbench"), 0700), 0);
	char bin[256];
	(void)snprintf(bin, sizeof bin, "%s", inside("bin"));
	cuda_look(&found, bin);
	assert_false(found.ready);
	print_message("%s\n", found.why);
	assert_non_null(strstr(found.why, "this build has no CUDA plug-in"));
	assert_non_null(strstr(found.why, bin));
	assert_non_null(strstr(found.why, "a device is visible")
				? strstr(found.why, "though")
				: strstr(found.why, "no device is visible"));
	const bool has_driver = dlopen("libcuda.so.1", RTLD_LAZY) != NULL;
	char text[400];
	static const char *const places[] = {"lib", "lib/mlbench", "bin"};
	for (size_t i = 0; i < 3; i++) {
		char path[256];
		(void)snprintf(path, sizeof path, "%s/" CUDA_PLUGIN_FILE, places[i]);
		assert_int_equal(link(inside("good.so"), inside(path)), 0);
		cuda_look(&found, bin);
		/* It is opened where there is a driver that it could use. */
		assert_true(found.ready == has_driver);
		if (!has_driver)
			assert_non_null(strstr(found.why, "no NVIDIA driver: libcuda.so.1"));
		char *real = realpath(found.path, NULL);
		assert_non_null(real);
		assert_string_equal(real, inside(path));
		free(real);
		(void)cuda_describe_node(&found, text, sizeof text);
		assert_non_null(strstr(text, "plug-in built with CUDA 13.0; sm_90"));
	}
}

static void a_node_without_devices_says_so(void **state)
{
	(void)state;
	struct cuda_found found;
	assert_int_equal(setenv(CUDA_PLUGIN_VARIABLE, inside("none.so"), 1), 0);
	cuda_look(&found, "/nowhere");
	assert_int_equal(unsetenv(CUDA_PLUGIN_VARIABLE), 0);
	assert_false(found.ready);
	assert_non_null(found.plugin);
	assert_string_equal(found.why, "no device: planted");
	char text[400];
	(void)cuda_describe_node(&found, text, sizeof text);
	assert_non_null(strstr(text, "runtime 13.0"));
	assert_null(strstr(text, "driver"));
}

/* The process's one look is the last test: it cannot be taken back. */
static void a_configuration_is_held_against_the_node(void **state)
{
	(void)state;
	assert_int_equal(setenv(CUDA_PLUGIN_VARIABLE, inside("good.so"), 1), 0);
	struct config config;
	struct error err = {""};
	config_init(&config);
	assert_int_equal(config_set_key(&config, KEY_STEP_BACKEND, "cuda", NULL), 0);
	assert_int_equal(backend_validate(&config, &err), 0);
	static const struct {
		enum key_id key;
		const char *value, *back, *says;
		int code;
	} cases[] = {
		{KEY_STEP_DEVICES, "2", "1", "step.devices = 2: this node has only 1 device",
			-ENOTSUP},
		{KEY_STEP_PRECISION, "fp8", "fp32",
			"step.precision = fp8: Tiny (sm_90) does not support it", -ENOTSUP},
		{KEY_STEP_MODEL, "resnet5", "resnet50", "did you mean 'resnet50'?", -EINVAL},
		{KEY_BATCH_SIZE, "2048", "64",
			"needs at least 2.00 MiB of device memory, but Tiny has 1.00 MiB",
			-ENOTSUP},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_int_equal(config_set_key(&config, cases[i].key, cases[i].value, NULL), 0);
		assert_int_equal(backend_validate(&config, &err), cases[i].code);
		print_message("%s\n", err.text);
		assert_non_null(strstr(err.text, cases[i].says));
		assert_int_equal(config_set_key(&config, cases[i].key, cases[i].back, NULL), 0);
	}
	/* auto takes the device, and trains in bf16 there. */
	assert_int_equal(config_set_key(&config, KEY_STEP_PRECISION, "auto", NULL), 0);
	assert_int_equal(cuda_precision(&config), STEP_PRECISION_BF16);
	char why_not[BACKEND_WHY_BYTES];
	assert_int_equal(config_set_key(&config, KEY_STEP_BACKEND, "auto", NULL), 0);
	const struct backend_ops *ops = backend_choose(&config, why_not, sizeof why_not, &err);
	assert_non_null(ops);
	assert_string_equal(ops->name, "cuda");
	assert_string_equal(why_not, "");
	/* Unless what is asked for is an emulated one's. */
	assert_int_equal(config_set_key(&config, KEY_STEP_TIME, "5ms", NULL), 0);
	ops = backend_choose(&config, why_not, sizeof why_not, &err);
	assert_string_equal(ops->name, "emulated");
	assert_non_null(strstr(why_not, "step.time is set"));
	assert_int_equal(config_set_key(&config, KEY_STEP_TIME, "0", NULL), 0);
	assert_int_equal(config_set_key(&config, KEY_STEP_MODEL, "unet3d", NULL), 0);
	ops = backend_choose(&config, why_not, sizeof why_not, &err);
	assert_string_equal(ops->name, "emulated");
	assert_non_null(strstr(why_not, "unet3d can only be emulated"));
	config_release(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_plugin_is_refused_by_name),
		cmocka_unit_test(a_named_file_is_taken_and_no_other),
		cmocka_unit_test(places_are_searched_in_order),
		cmocka_unit_test(a_node_without_devices_says_so),
		cmocka_unit_test(a_configuration_is_held_against_the_node),
	};
	return cmocka_run_group_tests(tests, make_plugins, remove_plugins);
}
