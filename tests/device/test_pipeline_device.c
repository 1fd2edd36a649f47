/* The whole pipeline on the plug-in, which is opened as the program opens it: the same batches as any backend gets,
 * trained on, uploaded or not, with samples made by workers or by the device; and what is said of the device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/measuring.h"
#include "tests/pipeline_fixture.h"
#include "workloads/backend/backend.h"

#include <math.h>

enum { SAMPLES = 44, BATCH = 8, EPOCHS = 2, BATCHES = EPOCHS * ((SAMPLES + BATCH - 1) / BATCH) };

/* BLAS libraries start threads that thread sanitizers cannot follow: then batches are compared, and no losses. */
#if defined(__SANITIZE_THREAD__)
static const char CPU_BACKEND[] = "null";
#else
static const char CPU_BACKEND[] = "openblas";
#endif

/* A mismatch of the loss that sums of another order, and rounding to a level before normalising, explain. */
static const double LOSS_TOLERANCE = 2e-3;

static void open_fixture(struct pipeline_fixture *f)
{
	fixture_open(f, SAMPLES, 24, 20, 0);
	fixture_set(f, KEY_AUGMENT_SIZE, "16");
	fixture_set(f, KEY_BATCH_SIZE, "8");
	fixture_set(f, KEY_BATCH_DROP_LAST, "off");
	fixture_set(f, KEY_MEASURE_EPOCHS, "2");
	fixture_set(f, KEY_MEASURE_WARMUP, "0s");
	fixture_set(f, KEY_MEASURE_WINDOW, "10ms");
	fixture_set(f, KEY_RUN_VERIFY, "on");
	fixture_set(f, KEY_STEP_MODEL, "mlp");
	fixture_set(f, KEY_STEP_BACKEND, "cuda");
}

static bool has_device(const struct pipeline_fixture *f)
{
	char why_not[BACKEND_WHY_BYTES];
	struct error err = {""};
	if (backend_choose(&f->config, why_not, sizeof why_not, &err))
		return true;
	print_message("skipped: %s\n", err.text);
	return false;
}

static void run(struct pipeline_fixture *f, struct measurement *m)
{
	struct error err = {""};
	if (pipeline_run(&f->config, &f->dataset, NULL, m, &err))
		fail_msg("%s", err.text);
	measurement_release(m);
}

static void check_device(const struct measurement *m)
{
	assert_int_equal(m->device_count, 1);
	const struct device_measurement *d = &m->devices[0];
	assert_true(d->name[0] && !d->emulated);
	assert_true(d->step_seconds > 0);
	assert_measured(d->step_seconds < 1.01 * m->measured_seconds);
	assert_true(d->launch_ns > 0 && d->upload_bytes > 0 && d->upload_seconds > 0);
	assert_true(d->flops_per_step > 0 && d->achieved_flops > 0);
	assert_true(d->clock_map_error_ns >= 0);
	assert_measured(m->accounted > 0.99 && m->accounted < 1.01);
	assert_measured(
		fabs(m->step_utilisation * m->measured_seconds / d->step_seconds - 1) < 0.01);
}

static void the_same_batches_train_the_same(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	if (!has_device(&f)) {
		fixture_close(&f);
		skip();
	}
	struct measurement cpu;
	fixture_set(&f, KEY_STEP_BACKEND, CPU_BACKEND);
	run(&f, &cpu);
	fixture_set(&f, KEY_STEP_BACKEND, "cuda");
	static const struct {
		const char *upload, *memory, *ahead, *graph, *depth;
	} ways[] = {
		{"auto", "pinned", "1", "off", "2"},
		{"none", "pinned", "1", "off", "2"},
		{"copy", "pageable", "0", "off", "1"},
		{"auto", "pinned", "3", "on", "1"},
	};
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		struct measurement m;
		fixture_set(&f, KEY_UPLOAD_MODE, ways[i].upload);
		fixture_set(&f, KEY_UPLOAD_MEMORY, ways[i].memory);
		fixture_set(&f, KEY_STEP_AHEAD, ways[i].ahead);
		fixture_set(&f, KEY_STEP_GRAPH, ways[i].graph);
		fixture_set(&f, KEY_UPLOAD_DEPTH, ways[i].depth);
		run(&f, &m);
		assert_true(m.has_checksum && m.checksum == cpu.checksum);
		assert_int_equal(m.epochs, EPOCHS);
		assert_true(isfinite(m.loss_first) && isfinite(m.loss_last));
		if (!isnan(cpu.loss_first)) {
			assert_true(fabs(m.loss_first - cpu.loss_first) < LOSS_TOLERANCE);
			assert_true(fabs(m.loss_last - cpu.loss_last) < LOSS_TOLERANCE);
		}
		check_device(&m);
	}
	fixture_close(&f);
}

static void samples_that_the_device_makes_train_the_same(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	if (!has_device(&f)) {
		fixture_close(&f);
		skip();
	}
	struct measurement by_workers;
	struct measurement decoded;
	run(&f, &by_workers);
	fixture_set(&f, KEY_AUGMENT_DEVICE, "gpu");
	fixture_set(&f, KEY_STEP_BACKEND, "null");
	run(&f, &decoded);
	fixture_set(&f, KEY_STEP_BACKEND, "cuda");
	const char *modes[] = {"auto", "none"};
	const char *types[] = {"float32", "uint8"};
	for (int i = 0; i < 4; i++) {
		struct measurement m;
		fixture_set(&f, KEY_UPLOAD_MODE, modes[i % 2]);
		fixture_set(&f, KEY_AUGMENT_TYPE, types[i / 2]);
		fixture_set(&f, KEY_DECODE_WORKERS, i % 2 ? "1" : "3");
		run(&f, &m);
		assert_true(m.checksum == decoded.checksum);
		assert_true(m.checksum != by_workers.checksum);
		assert_true(m.devices[0].upload_bytes < by_workers.devices[0].upload_bytes);
		/* Bytes are rounded, and normalised by the device's first kernel. */
		if (i < 2) {
			assert_true(fabs(m.loss_first - by_workers.loss_first) < LOSS_TOLERANCE);
			assert_true(fabs(m.loss_last - by_workers.loss_last) < LOSS_TOLERANCE);
		}
		check_device(&m);
	}
	fixture_close(&f);
}

static void traces_show_the_device(void **state)
{
	(void)state;
	struct pipeline_fixture f;
	open_fixture(&f);
	if (!has_device(&f)) {
		fixture_close(&f);
		skip();
	}
	struct measurement m;
	struct traces traces;
	struct error err = {""};
	const struct pipeline_control control = {.traces = &traces};
	fixture_set(&f, KEY_STEP_STATISTICS, "2");
	fixture_set(&f, KEY_MEASURE_WINDOW, "10s"); /* nothing is cut off */
	if (pipeline_run(&f.config, &f.dataset, &control, &m, &err))
		fail_msg("%s", err.text);
	const struct trace *step = traces_find(&traces, "device step");
	const struct trace *upload = traces_find(&traces, "device upload");
	assert_non_null(step);
	assert_non_null(upload);
	assert_true(step->count >= BATCHES - 1 && step->count <= BATCHES);
	const double slack = m.devices[0].clock_map_error_ns * 2e-9 + 1e-6;
	for (size_t i = 0; i + 1 < step->count; i++) {
		const struct trace_item *item = &step->items[i];
		const double next_began = item[1].end_s - (double)item[1].service_ns * 1e-9;
		assert_true(item->service_ns > 0 && item->host_ns > 0);
		assert_true(next_began >= item->end_s - slack);
	}
	assert_true(m.devices[0].gradient_norm > 0);
	assert_true(m.devices[0].nonfinite_share == 0);
	traces_release(&traces);
	measurement_release(&m);
	fixture_close(&f);
}

/* The double is taken only by name; it lies beside this program. */
static void name_plugin(const char *program)
{
#ifdef MLBENCH_CUDA_DOUBLE
	char path[512];
	const char *slash = strrchr(program, '/');
	(void)snprintf(path, sizeof path, "%.*s/libmlbench-cuda.so",
		slash ? (int)(slash - program) : 1, slash ? program : ".");
	(void)setenv("MLBENCH_CUDA_PLUGIN", path, 0);
#else
	(void)program;
#endif
}

int main(int argc, char **argv)
{
	if (argc > 0)
		name_plugin(argv[0]);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_batches_train_the_same),
		cmocka_unit_test(samples_that_the_device_makes_train_the_same),
		cmocka_unit_test(traces_show_the_device),
	};
	return cmocka_run_group_tests_name("pipeline_device", tests, NULL, NULL);
}
