/* What the profiler costs: measure.profiler on against off in one binary, in turn (on off off on),
 * on samples of about 1 us and 20 us and on the JPEG pipeline; on, it records service times in sequence too.  CPU time per sample tells more than throughput
 * on a machine that is not quiet; both are shown.  Bars: 3 % at 1 us (samples are timed in chunks), 1 % at 20 us, 0.5 % on JPEG.
 *
 *   bench_profiler [BLOCKS [SECONDS]]     an odd number of blocks of four repetitions */
#include "tests/pipeline_bench.h"

#include <math.h>

enum { BLOCKS = 7, BLOCKS_MAX = 99 };

struct cost {
	double rate, cpu_us, service_us;
};

static struct cost run(struct pipeline_fixture *f, const char *profiler)
{
	struct measurement m;
	struct error err = {""};
	struct traces traces;
	const struct pipeline_control control = {.traces = &traces};
	fixture_set(f, KEY_MEASURE_PROFILER, profiler);
	const double before = bench_cpu_seconds();
	if (pipeline_run(&f->config, &f->dataset, &control, &m, &err))
		fixture_die(err.text);
	const double cpu = bench_cpu_seconds() - before;
	/* Every run goes through the same number of samples. */
	const double epochs = (double)config_integer(&f->config, KEY_MEASURE_EPOCHS);
	struct cost cost = {
		.rate = m.throughput,
		.cpu_us = cpu * 1e6 / (epochs * (double)f->dataset.count),
		.service_us = m.stage_count > 1 ? histogram_mean(&m.stages[1].service) / 1e3 : NAN,
	};
	traces_release(&traces);
	measurement_release(&m);
	return cost;
}

static void compare(struct pipeline_fixture *f, const char *what, size_t blocks, double bar)
{
	double rates[BLOCKS_MAX];
	double cpus[BLOCKS_MAX];
	double plain[BLOCKS_MAX];
	double least_on = HUGE_VAL; /* CPU a sample: others can only add to it */
	double least_off = HUGE_VAL;
	struct cost first = run(f, "on"); /* and everything is warm */
	for (size_t i = 0; i < blocks; i++) {
		const struct cost on = run(f, "on");
		const struct cost off = run(f, "off");
		const struct cost off2 = run(f, "off");
		const struct cost on2 = run(f, "on");
		rates[i] = ((off.rate + off2.rate) / (on.rate + on2.rate) - 1) * 100;
		cpus[i] = ((on.cpu_us + on2.cpu_us) / (off.cpu_us + off2.cpu_us) - 1) * 100;
		least_on = fmin(least_on, fmin(on.cpu_us, on2.cpu_us));
		least_off = fmin(least_off, fmin(off.cpu_us, off2.cpu_us));
		plain[i] = fabs(off2.cpu_us / off.cpu_us - 1) *
			   100; /* the same thing twice: the noise */
	}
	const double rate = bench_median(rates, blocks);
	const double cpu = bench_median(cpus, blocks);
	printf("%-24s %8.1f %+9.2f [%+.2f %+.2f] %+9.2f [%+.2f %+.2f] %+9.2f %7.2f %7.2f\n", what,
		first.service_us, cpu, cpus[0], cpus[blocks - 1], rate, rates[0], rates[blocks - 1],
		(least_on / least_off - 1) * 100, bench_median(plain, blocks), bar);
}

static void set_epochs(struct pipeline_fixture *f, double seconds, double us_per_sample)
{
	char epochs[32];
	const double count = seconds * 1e6 / us_per_sample / (double)f->dataset.count;
	(void)snprintf(epochs, sizeof epochs, "%d", count < 1 ? 1 : (int)count);
	fixture_set(f, KEY_MEASURE_EPOCHS, epochs);
	fixture_set(f, KEY_MEASURE_WARMUP, "0s");
	fixture_set(f, KEY_BATCH_DROP_LAST, "off");
}

int main(int argc, char **argv)
{
	const size_t blocks = argc > 1 ? strtoul(argv[1], NULL, 10) % BLOCKS_MAX | 1 : BLOCKS;
	const double seconds = argc > 2 ? strtod(argv[2], NULL) : 1;
	struct pipeline_fixture f;
	printf("profiler on against off, %zu blocks of on off off on, one worker\n", blocks);
	printf("%-24s %8s %-26s %-26s %9s %7s %7s\n", "", "us each", "  CPU a sample, %",
		"  time a sample, %", "least CPU", "noise,%", "bar,%");
	fixture_open(&f, 4096, 40, 40, 1);
	fixture_set(&f, KEY_DECODE_WORKERS, "1");
	fixture_set(&f, KEY_AUGMENT_TYPE, "uint8");
	fixture_set(&f, KEY_AUGMENT_LAYOUT, "hwc");
	fixture_set(&f, KEY_AUGMENT_CROP, "none");
	fixture_set(&f, KEY_AUGMENT_SIZE, "40");
	fixture_set(&f, KEY_BATCH_SIZE, "256");
	set_epochs(&f, seconds, 1);
	compare(&f, "raw, about 1 us", blocks, 3);
	fixture_close(&f);
	fixture_open(&f, 1000, 102, 102, 1);
	fixture_set(&f, KEY_DECODE_WORKERS, "1");
	fixture_set(&f, KEY_AUGMENT_CROP, "center");
	fixture_set(&f, KEY_AUGMENT_SIZE, "100");
	set_epochs(&f, seconds, 20);
	compare(&f, "raw, about 20 us", blocks, 1);
	fixture_close(&f);
	bench_open_jpegs(&f, "256");
	fixture_set(&f, KEY_DECODE_WORKERS, "1");
	set_epochs(&f, seconds, 800);
	compare(&f, "JPEG", blocks, 0.5);
	bench_close_jpegs(&f);
	return 0;
}
