/* What recording a timeline costs, on the fastest pipelines there are: samples of about 1 us and 20 us, and JPEGs, from
 * memory into a null step.  Three ways side by side in one binary, in turn (none idle on on idle none): no schedule; a
 * schedule whose window never comes; every step recorded.  Bar: under 1 % while nothing is recorded.
 *
 *   bench_timeline [BLOCKS [SECONDS]]     an odd number of blocks of six repetitions */
#include "tests/pipeline_bench.h"

#include "harness/measure/timeline.h"

#include <math.h>

enum { BLOCKS = 7, BLOCKS_MAX = 99, WAYS = 3 };

static const char *const schedules[WAYS] = {"", "1000000000,0,0,1,1", "0,0,0,1,0"};

/* CPU time, us. */
static double run(struct pipeline_fixture *f, int way, uint64_t *dropped)
{
	struct measurement m;
	struct error err = {""};
	struct timeline *timeline = NULL;
	const struct pipeline_control control = {.timeline = &timeline};
	fixture_set(f, KEY_TRACE_SCHEDULE, schedules[way]);
	const double before = bench_cpu_seconds();
	if (pipeline_run(&f->config, &f->dataset, &control, &m, &err))
		fixture_die(err.text);
	const double cpu = bench_cpu_seconds() - before;
	*dropped += timeline ? timeline->dropped_steps : 0;
	timeline_close(timeline);
	measurement_release(&m);
	return cpu * 1e6;
}

/* Of all epochs but one: less a run of one epoch, which has the same set-up (the pool that is mapped). */
static double run_epochs(struct pipeline_fixture *f, int epochs, int way, uint64_t *dropped)
{
	char text[32];
	(void)snprintf(text, sizeof text, "%d", epochs);
	fixture_set(f, KEY_MEASURE_EPOCHS, "1");
	const double one = run(f, way, dropped);
	fixture_set(f, KEY_MEASURE_EPOCHS, text);
	return run(f, way, dropped) - one;
}

static void compare(struct pipeline_fixture *f, const char *what, int epochs, size_t blocks)
{
	double costs[WAYS][BLOCKS_MAX];
	double noise[BLOCKS_MAX];
	uint64_t dropped = 0;
	double plain = 0;
	for (size_t i = 0; i < blocks; i++) {
		double us[WAYS][2];
		for (int turn = 0; turn < 2; turn++)
			for (int k = 0; k < WAYS; k++) {
				const int way = turn == 0 ? k : WAYS - 1 - k;
				us[way][turn] = run_epochs(f, epochs, way, &dropped);
			}
		for (int way = 0; way < WAYS; way++)
			costs[way][i] =
				((us[way][0] + us[way][1]) / (us[0][0] + us[0][1]) - 1) * 100;
		noise[i] = fabs(us[0][1] / us[0][0] - 1) * 100;
		plain = us[0][0] / ((epochs - 1) * (double)f->dataset.count);
	}
	printf("%-18s %7.2f", what, plain);
	for (int way = 1; way < WAYS; way++) {
		const double median = bench_median(costs[way], blocks);
		printf(" %+8.2f [%+.2f %+.2f]", median, costs[way][0], costs[way][blocks - 1]);
	}
	printf(" %8.2f %9llu\n", bench_median(noise, blocks), (unsigned long long)dropped);
}

static int epochs_for(struct pipeline_fixture *f, double seconds, double us_per_sample)
{
	const double count = seconds * 1e6 / us_per_sample / (double)f->dataset.count;
	fixture_set(f, KEY_MEASURE_WARMUP, "0s");
	fixture_set(f, KEY_BATCH_DROP_LAST, "off");
	fixture_set(f, KEY_DECODE_WORKERS, "1");
	return count < 2 ? 3 : 1 + (int)count;
}

int main(int argc, char **argv)
{
	const size_t blocks = argc > 1 ? strtoul(argv[1], NULL, 10) % BLOCKS_MAX | 1 : BLOCKS;
	const double seconds = argc > 2 ? strtod(argv[2], NULL) : 0.5;
	struct pipeline_fixture f;
	printf("CPU time a sample against none, %%: median of %zu blocks [least, most]\n", blocks);
	printf("%-18s %7s %-24s %-24s %8s %9s\n", "", "us each", "  scheduled, not yet",
		"  every step", "noise,%", "cut steps");
	fixture_open(&f, 4096, 40, 40, 1);
	fixture_set(&f, KEY_AUGMENT_TYPE, "uint8");
	fixture_set(&f, KEY_AUGMENT_LAYOUT, "hwc");
	fixture_set(&f, KEY_AUGMENT_CROP, "none");
	fixture_set(&f, KEY_AUGMENT_SIZE, "40");
	fixture_set(&f, KEY_BATCH_SIZE, "256");
	/* As many as there is room for. */
	compare(&f, "raw, about 1 us", epochs_for(&f, fmin(seconds, 0.15), 1), blocks);
	fixture_close(&f);
	fixture_open(&f, 1000, 102, 102, 1);
	fixture_set(&f, KEY_AUGMENT_CROP, "center");
	fixture_set(&f, KEY_AUGMENT_SIZE, "100");
	compare(&f, "raw, about 20 us", epochs_for(&f, seconds, 20), blocks);
	fixture_close(&f);
	bench_open_jpegs(&f, "256");
	compare(&f, "JPEG", epochs_for(&f, seconds, 800), blocks);
	bench_close_jpegs(&f);
	return 0;
}
