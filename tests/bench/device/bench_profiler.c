/* What the profiler costs with a device at work: measure.profiler on against off in one process, in turn (on off off on), the
 * whole pipeline with the memory source and the cuda backend (the plug-in as the program finds it).  A run goes through the same
 * number of samples either way. */
#include "tests/bench/device/device_bench.h"
#include "tests/pipeline_bench.h"

#include <math.h>

static const double BAR = 0.01;

struct cost {
	double seconds_a_sample, cpu_us;
};

static struct cost run(struct device_bench *bench, struct pipeline_fixture *f, const char *profiler)
{
	struct measurement m;
	struct error err = {""};
	struct traces traces;
	const struct pipeline_control control = {.traces = &traces};
	fixture_set(f, KEY_MEASURE_PROFILER, profiler);
	const double before = bench_cpu_seconds();
	if (pipeline_run(&f->config, &f->dataset, &control, &m, &err))
		device_bench_die(bench, "a run", &err);
	const struct cost cost = {
		.seconds_a_sample = 1 / m.throughput,
		.cpu_us = (bench_cpu_seconds() - before) * 1e6 / (double)m.samples,
	};
	traces_release(&traces);
	measurement_release(&m);
	return cost;
}

static void configure(const struct device_bench *bench, struct pipeline_fixture *f)
{
	fixture_set(f, KEY_READ_ENGINE, "memory");
	fixture_set(f, KEY_AUGMENT_SIZE, bench->small ? "8" : "32");
	fixture_set(f, KEY_STEP_BACKEND, "cuda");
	fixture_set(f, KEY_STEP_MODEL, bench->small ? "mlp" : "resnet50");
	fixture_set(f, KEY_STEP_PRECISION, "bf16");
	fixture_set(f, KEY_BATCH_SIZE, bench->small ? "8" : "64");
	fixture_set(f, KEY_DECODE_WORKERS, "4");
	fixture_set(f, KEY_PREFETCH_DEPTH, "4");
	fixture_set(f, KEY_MEASURE_WARMUP, "0s");
	fixture_set(f, KEY_MEASURE_EPOCHS, bench->small ? "2" : bench->quick ? "1" : "8");
	fixture_set(f, KEY_MEASURE_DEVICE, "off");
}

int main(int argc, char **argv)
{
	struct device_bench bench;
	struct pipeline_fixture f;
	double time[BENCH_ROUNDS_MAX], cpu[BENCH_ROUNDS_MAX], noise[BENCH_ROUNDS_MAX];
	const int status = device_bench_open(
		&bench, "profiler", "measure.profiler on against off, with a device", argc, argv);
	if (status)
		return status;
	fixture_open(&f, bench.small ? 64 : 2048, 34, 34, 1);
	configure(&bench, &f);
	(void)run(&bench, &f, "on");
	for (size_t i = 0; i < bench.rounds; i++) {
		const struct cost on = run(&bench, &f, "on");
		const struct cost off = run(&bench, &f, "off");
		const struct cost off2 = run(&bench, &f, "off");
		const struct cost on2 = run(&bench, &f, "on");
		time[i] = (on.seconds_a_sample + on2.seconds_a_sample) /
				  (off.seconds_a_sample + off2.seconds_a_sample) -
			  1;
		cpu[i] = 100 * ((on.cpu_us + on2.cpu_us) / (off.cpu_us + off2.cpu_us) - 1);
		noise[i] = 100 * fabs(off2.seconds_a_sample / off.seconds_a_sample - 1);
	}
	device_bench_bar(
		&bench, "time a sample, more with it", time, bench.rounds, BENCH_AT_MOST, BAR);
	device_bench_figure(&bench, "CPU a sample, more with it", "%", cpu, bench.rounds);
	device_bench_figure(
		&bench, "the same twice without it: the noise", "%", noise, bench.rounds);
	fixture_close(&f);
	return device_bench_close(&bench);
}
