/* What sampling for a flame graph costs: none, by perf_event and by signals in turn (none perf signals signals perf none),
 * on the JPEG pipeline with one worker.  The sampler's own thread is in the CPU time.  CPU time per sample tells more than
 * throughput on a machine that is not quiet; both are shown, and what two runs without sampling differ by.
 * Bar: 2 % of CPU time.
 *
 *   bench_flame [BLOCKS [SECONDS]]     an odd number of blocks of six repetitions */
#include "tests/pipeline_bench.h"

#include "harness/measure/flame.h"

#include <math.h>

enum { BLOCKS = 7, BLOCKS_MAX = 99, NONE = -1 };

struct cost {
	double rate, cpu_us;
};

struct sums {
	uint64_t samples, lost, truncated, sampler;
};

static void add_up(const struct flame_profile *p, struct sums *sums)
{
	sums->samples += p->samples;
	sums->lost += p->lost;
	sums->truncated += p->truncated;
	for (size_t i = 0; i < p->frame_count; i++)
		if (p->frames[i].parent == FLAME_ROOT &&
			strcmp(p->names[p->frames[i].name], FLAME_SAMPLER) == 0)
			sums->sampler += p->frames[i].total;
}

/* method NONE: no sampler.  CPU time of opening and of naming is left out: nothing is measured then. */
static struct cost run(struct pipeline_fixture *f, int method, struct sums *sums)
{
	struct measurement m;
	struct error err = {""};
	struct flame *flame = NULL;
	const struct flame_options options = {.method = (enum flame_method)method};
	if (method != NONE && flame_open(&flame, &options, &err))
		fixture_die(err.text);
	const double before = bench_cpu_seconds();
	if (pipeline_run(&f->config, &f->dataset, NULL, &m, &err))
		fixture_die(err.text);
	const double cpu = bench_cpu_seconds() - before;
	const double epochs = (double)config_integer(&f->config, KEY_MEASURE_EPOCHS);
	const struct cost cost = {
		.rate = m.throughput,
		.cpu_us = cpu * 1e6 / (epochs * (double)f->dataset.count),
	};
	if (flame) {
		struct flame_profile profile;
		if (flame_finish(flame, &profile, &err))
			fixture_die(err.text);
		add_up(&profile, sums);
		flame_profile_release(&profile);
		flame_close(flame);
	}
	measurement_release(&m);
	return cost;
}

static bool is_permitted(enum flame_method method)
{
	struct error err = {""};
	struct flame *flame = NULL;
	const struct flame_options options = {.method = method};
	if (flame_open(&flame, &options, &err))
		printf("%s: left out: %s\n", flame_method_name(method), err.text);
	flame_close(flame);
	return flame != NULL;
}

struct series {
	double cpu[BLOCKS_MAX], time[BLOCKS_MAX];
	double least; /* CPU a sample: others can only add to it */
	struct sums sums;
};

static void add(struct series *s, size_t block, const struct cost *a, const struct cost *b,
	const struct cost *plain, const struct cost *plain2)
{
	s->cpu[block] = ((a->cpu_us + b->cpu_us) / (plain->cpu_us + plain2->cpu_us) - 1) * 100;
	s->time[block] = ((plain->rate + plain2->rate) / (a->rate + b->rate) - 1) * 100;
	s->least = fmin(s->least, fmin(a->cpu_us, b->cpu_us));
}

static void print(const char *what, struct series *s, size_t blocks, double least_plain)
{
	const double cpu = bench_median(s->cpu, blocks);
	const double time = bench_median(s->time, blocks);
	const double samples = s->sums.samples > 0 ? (double)s->sums.samples : NAN;
	printf("%-14s %+7.2f [%+.2f %+.2f] %+9.2f [%+.2f %+.2f] %+8.2f %9llu %6llu %8.2f %9.2f\n",
		what, cpu, s->cpu[0], s->cpu[blocks - 1], time, s->time[0], s->time[blocks - 1],
		(s->least / least_plain - 1) * 100, (unsigned long long)s->sums.samples,
		(unsigned long long)s->sums.lost, 100 * (double)s->sums.truncated / samples,
		100 * (double)s->sums.sampler / samples);
}

int main(int argc, char **argv)
{
	const size_t blocks = argc > 1 ? strtoul(argv[1], NULL, 10) % BLOCKS_MAX | 1 : BLOCKS;
	const double seconds = argc > 2 ? strtod(argv[2], NULL) : 1;
	const bool permitted[] = {is_permitted(FLAME_PERF), is_permitted(FLAME_SIGNALS)};
	struct pipeline_fixture f;
	char epochs[32];
	bench_open_jpegs(&f, "256");
	fixture_set(&f, KEY_DECODE_WORKERS, "1");
	fixture_set(&f, KEY_MEASURE_WARMUP, "0s");
	fixture_set(&f, KEY_BATCH_DROP_LAST, "off");
	(void)snprintf(epochs, sizeof epochs, "%d", (int)fmax(1, seconds * 1e6 / 800 / 256));
	fixture_set(&f, KEY_MEASURE_EPOCHS, epochs);
	struct series perf = {.least = HUGE_VAL};
	struct series signals = {.least = HUGE_VAL};
	double noise[BLOCKS_MAX];
	double least_plain = HUGE_VAL;
	(void)run(&f, NONE, NULL); /* and everything is warm */
	for (size_t i = 0; i < blocks; i++) {
		const struct cost none = run(&f, NONE, NULL);
		const struct cost a = permitted[0] ? run(&f, FLAME_PERF, &perf.sums) : none;
		const struct cost b = permitted[1] ? run(&f, FLAME_SIGNALS, &signals.sums) : none;
		const struct cost b2 = permitted[1] ? run(&f, FLAME_SIGNALS, &signals.sums) : none;
		const struct cost a2 = permitted[0] ? run(&f, FLAME_PERF, &perf.sums) : none;
		const struct cost none2 = run(&f, NONE, NULL);
		add(&perf, i, &a, &a2, &none, &none2);
		add(&signals, i, &b, &b2, &none, &none2);
		noise[i] = fabs(none2.cpu_us / none.cpu_us - 1) * 100;
		least_plain = fmin(least_plain, fmin(none.cpu_us, none2.cpu_us));
	}
	printf("%zu blocks of none perf signals signals perf none, JPEG, one worker, %.0f us of CPU a sample; bar 2 %%\n",
		blocks, least_plain);
	printf("%-14s %-23s %-25s %8s %9s %6s %8s %9s\n", "", "  CPU a sample, %",
		"  time a sample, %", "least", "samples", "lost", "cut, %", "sampler, %");
	if (permitted[0])
		print("perf_event", &perf, blocks, least_plain);
	if (permitted[1])
		print("signals", &signals, blocks, least_plain);
	printf("noise %14.2f (none against none)\n", bench_median(noise, blocks));
	bench_close_jpegs(&f);
	return 0;
}
