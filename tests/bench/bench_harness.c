/* The harness alone: memory source, raw codec of 1 KiB samples.  Samples per second through everything that the harness
 * adds to the work itself.
 *
 *   bench_harness [KEY VALUE]...            null step, one worker, and changes of the configuration, as `batch.size 64`
 *   bench_harness threads [KEY VALUE]...    1 to 1,024 workers: with a null step, and with one that takes 20 ms of a
 *                                           device, whose utilisation says what the workers take from it
 *   bench_harness repetitions [KEY VALUE]...  what a repetition takes beyond the time that it measures, with its pools kept
 *                                           for the next one and without, in turn
 */
#include "tests/pipeline_bench.h"

#include "harness/base/clock.h"
#include "pipelines/placement.h"

enum { REPEATS = 7, THREADS_REPEATS = 5, SAMPLES = 4096, EDGE = 18 /* 18 x 18 x 3 = 972 bytes */ };

static struct measurement bench_run(const struct pipeline_fixture *f)
{
	struct measurement m;
	struct error err = {""};
	if (pipeline_run(&f->config, &f->dataset, NULL, &m, &err))
		fixture_die(err.text);
	return m;
}

static void bench_one(const struct pipeline_fixture *f)
{
	double rates[REPEATS];
	for (int i = 0; i < REPEATS; i++) {
		struct measurement m = bench_run(f);
		rates[i] = m.throughput;
		measurement_release(&m);
	}
	const double median = bench_median(rates, REPEATS);
	printf("harness alone (memory source, raw samples of 1 KiB, null step, %lld worker, %u cores):\n"
	       "%.3f M samples/s [%.3f %.3f], n = %d, bar 1.5\n",
		(long long)config_integer(&f->config, KEY_DECODE_WORKERS), placement_cores(),
		median / 1e6, rates[0] / 1e6, rates[REPEATS - 1] / 1e6, REPEATS);
}

struct crowd {
	double rate[THREADS_REPEATS], sample_ns[THREADS_REPEATS]; /* null step */
	double utilisation[THREADS_REPEATS], step_us[THREADS_REPEATS];
};

/* Its CPU time is of the process, and of the thread of the step. */
static void bench_crowd(struct pipeline_fixture *f, struct crowd *crowd, int repeat)
{
	fixture_set(f, KEY_STEP_BACKEND, "null");
	struct measurement m = bench_run(f);
	crowd->rate[repeat] = m.throughput / 1e6;
	crowd->sample_ns[repeat] = m.cpu_seconds * 1e9 / (double)m.samples;
	measurement_release(&m);
	fixture_set(f, KEY_STEP_BACKEND, "emulated");
	fixture_set(f, KEY_STEP_TIME, "20ms");
	m = bench_run(f);
	const struct stage_measurement *step = measurement_stage(&m, STAGE_STEP);
	crowd->utilisation[repeat] = m.step_utilisation;
	crowd->step_us[repeat] = step->cpu_seconds * 1e6 / (double)m.batches;
	measurement_release(&m);
}

static void print_spread(double *values, int width, int digits)
{
	const double median = bench_median(values, THREADS_REPEATS);
	printf("  %*.*f [%*.*f %*.*f]", width, digits, median, width, digits, values[0], width,
		digits, values[THREADS_REPEATS - 1]);
}

static void bench_threads(struct pipeline_fixture *f)
{
	static const char *const workers[] = {"1", "4", "16", "64", "256", "1024"};
	enum { COUNTS = sizeof workers / sizeof *workers };
	static struct crowd crowds[COUNTS];
	for (int repeat = 0; repeat < THREADS_REPEATS; repeat++)
		for (int i = 0; i < COUNTS; i++) {
			fixture_set(f, KEY_DECODE_WORKERS, workers[i]);
			bench_crowd(f, &crowds[i], repeat);
		}
	printf("raw samples of 1 KiB from memory, %u cores, median [least most] of %d\n"
	       "%7s  %-24s  %-24s  %-24s  %-24s\n%7s  %-24s  %-24s  %-24s  %-24s\n",
		placement_cores(), THREADS_REPEATS, "", "null step:", "", "step of 20 ms:", "",
		"workers", "M samples/s", "CPU ns/sample", "utilisation", "step's CPU us/batch");
	for (int i = 0; i < COUNTS; i++) {
		printf("%7s", workers[i]);
		print_spread(crowds[i].rate, 6, 3);
		print_spread(crowds[i].sample_ns, 6, 0);
		print_spread(crowds[i].utilisation, 6, 3);
		print_spread(crowds[i].step_us, 6, 0);
		printf("\n");
	}
}

static void bench_repetitions(struct pipeline_fixture *f)
{
	enum { REPETITIONS = 100 };
	static double ms[2][REPETITIONS];
	struct pipeline_pools pools = {0};
	uint64_t pool_bytes = 0;
	fixture_set(f, KEY_MEASURE_DURATION, "50ms");
	fixture_set(f, KEY_MEASURE_WARMUP, "10ms");
	for (int i = 0; i < 2 * REPETITIONS; i++) {
		struct traces traces = {0};
		const struct pipeline_control control = {
			.traces = &traces, .pools = i % 2 ? &pools : NULL};
		struct measurement m;
		struct error err = {""};
		const uint64_t begin_ns = clock_now_ns();
		if (pipeline_run(&f->config, &f->dataset, &control, &m, &err))
			fixture_die(err.text);
		ms[i % 2][i / 2] =
			(double)(clock_now_ns() - begin_ns) * 1e-6 - m.wall_seconds * 1e3;
		pool_bytes = m.pool_bytes;
		traces_release(&traces);
		measurement_release(&m);
	}
	pipeline_pools_release(&pools);
	for (int kept = 0; kept < 2; kept++) {
		const double median = bench_median(ms[kept], REPETITIONS);
		printf("%-12s %.1f MiB of pools, %.2f ms beyond what is measured [%.2f %.2f], n = %d\n",
			kept ? "pools kept" : "mapped anew", (double)pool_bytes / 1048576, median,
			ms[kept][REPETITIONS / 10], ms[kept][REPETITIONS * 9 / 10], REPETITIONS);
	}
}

int main(int argc, char **argv)
{
	const bool threads = argc > 1 && strcmp(argv[1], "threads") == 0;
	const bool repetitions = argc > 1 && strcmp(argv[1], "repetitions") == 0;
	struct pipeline_fixture f;
	fixture_open(&f, SAMPLES, EDGE, EDGE, 1);
	fixture_set(&f, KEY_DECODE_WORKERS, "1");
	fixture_set(&f, KEY_AUGMENT_TYPE, "uint8");
	fixture_set(&f, KEY_AUGMENT_LAYOUT, "hwc");
	fixture_set(&f, KEY_AUGMENT_CROP, "none");
	fixture_set(&f, KEY_AUGMENT_SIZE, "18");
	fixture_set(&f, KEY_BATCH_SIZE, "256");
	fixture_set(&f, KEY_PREFETCH_DEPTH, "4");
	fixture_set(&f, KEY_MEASURE_DURATION, "1s");
	fixture_set(&f, KEY_MEASURE_WARMUP, "200ms");
	for (int i = 1 + threads + repetitions; i + 1 < argc; i += 2) {
		struct error err;
		const enum key_id key = config_find_key(argv[i]);
		if (key == KEY_COUNT || config_set_key(&f.config, key, argv[i + 1], &err))
			fixture_die("usage: bench_harness [threads|repetitions] [KEY VALUE]...");
	}
	if (threads)
		bench_threads(&f);
	else if (repetitions)
		bench_repetitions(&f);
	else
		bench_one(&f);
	fixture_close(&f);
	return 0;
}
