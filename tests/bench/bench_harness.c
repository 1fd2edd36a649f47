/* The harness alone: memory source, raw codec of 1 KiB samples, null step, one worker.  Samples per
 * second through everything that the harness adds to the work itself. */
#include "tests/pipeline_fixture.h"

#include "harness/base/clock.h"
#include "pipelines/placement.h"

enum { REPEATS = 7, SAMPLES = 4096, EDGE = 18 /* 18 x 18 x 3 = 972 bytes */ };

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a;
	const double y = *(const double *)b;
	return x < y ? -1 : x > y;
}

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
		for (size_t k = 0; k < m.stage_count; k++) {
			const struct stage_measurement *s = &m.stages[k];
			printf("%s: starved %.3f working %.3f blocked %.3f cpu %.3f, %.0f ns; ",
				s->name, s->seconds[0], s->seconds[1], s->seconds[2],
				s->cpu_seconds, histogram_mean(&s->service));
		}
		printf("accounted %.4f, %.0f /s, status %d %s\n", m.accounted, m.throughput,
			m.status, m.notes[m.note_count - 1]);
		measurement_release(&m);
	}
	qsort(rates, REPEATS, sizeof *rates, by_value);
	printf("harness alone, memory source, 1 KiB raw samples, null step, 1 worker, %u cores: median %.3f M "
	       "samples/s, min %.3f, max %.3f, n = %d (bar 1.5)\n",
		placement_cores(), rates[REPEATS / 2] / 1e6, rates[0] / 1e6,
		rates[REPEATS - 1] / 1e6, REPEATS);
	fixture_close(&f);
	return 0;
}
