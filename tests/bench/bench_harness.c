/* The harness alone: memory source, raw codec of 1 KiB samples, null step, one worker.  Samples per
 * second through everything that the harness adds to the work itself.
 *
 *   bench_harness [KEY VALUE]...     changes of the configuration, as `batch.size 64` */
#include "tests/pipeline_bench.h"

#include "pipelines/placement.h"

enum { REPEATS = 7, SAMPLES = 4096, EDGE = 18 /* 18 x 18 x 3 = 972 bytes */ };

int main(int argc, char **argv)
{
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
	for (int i = 1; i + 1 < argc; i += 2) {
		struct error err;
		const enum key_id key = config_find_key(argv[i]);
		if (key == KEY_COUNT || config_set_key(&f.config, key, argv[i + 1], &err))
			fixture_die("usage: bench_harness [KEY VALUE]...");
	}
	double rates[REPEATS];
	for (int i = 0; i < REPEATS; i++) {
		struct measurement m;
		struct error err = {""};
		if (pipeline_run(&f.config, &f.dataset, NULL, &m, &err))
			fixture_die(err.text);
		rates[i] = m.throughput;
		measurement_release(&m);
	}
	const double median = bench_median(rates, REPEATS);
	printf("harness alone (memory source, raw samples of 1 KiB, null step, %lld worker, %u cores):\n"
	       "%.3f M samples/s [%.3f %.3f], n = %d, bar 1.5\n",
		(long long)config_integer(&f.config, KEY_DECODE_WORKERS), placement_cores(),
		median / 1e6, rates[0] / 1e6, rates[REPEATS - 1] / 1e6, REPEATS);
	fixture_close(&f);
	return 0;
}
