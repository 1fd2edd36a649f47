/* What sampling for a flame graph costs: bar, 2 % of CPU time.  By perf_event and by clock signals, in two parts that add
 * up to it:
 *
 *   interrupted  what each sample takes from the thread that it interrupts: this thread decodes the same JPEGs in blocks of
 *                some 20 ms, sampled and not in turn, and compares its own CPU time
 *   sampler      what the thread takes that unwinds the samples, by its own CPU clock, over the CPU time that was sampled
 *
 * Tables are read when an address is first met: in a run, mostly in its warm-up.  That comes once and is shown apart.  Then
 * the pipeline, whole, in runs of a second: none, none again, sampled.
 *
 *   bench_flame [SECONDS]     in all, about; 80.  Exit status 1: the bar is missed */
#include "tests/bench_pairs.h"
#include "tests/pipeline_bench.h"

#include "harness/measure/flame_parts.h"
#include "workloads/image/transform.h"

#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>

enum { MANY = 20000, PICTURES = 32, SAMPLED_AT_ONCE = 6 };

static const double BAR = 2;
static uint64_t seed = 1;
static bool missed;

/* --- this thread's work ------------------------------------------------------------------------------------------ */

struct pictures {
	struct transform *transform;
	uint8_t *data[PICTURES];
	size_t sizes[PICTURES];
	uint8_t *out;
};

static void open_pictures(struct pictures *p, const struct pipeline_fixture *f)
{
	struct error err = {""};
	const struct dataset *d = &f->dataset;
	*p = (struct pictures){.out = calloc(1, transform_sample_bytes(&f->config))};
	if (!p->out || transform_open(&p->transform, &f->config, d->max_width, d->max_height, &err))
		fixture_die(err.text);
	for (size_t i = 0; i < PICTURES; i++) {
		char path[256];
		(void)snprintf(path, sizeof path, "%s/%s", d->root, d->samples[i].path);
		p->sizes[i] = d->samples[i].bytes;
		p->data[i] = malloc(p->sizes[i]);
		FILE *in = fopen(path, "rb");
		if (!in || !p->data[i] || fread(p->data[i], 1, p->sizes[i], in) != p->sizes[i])
			fixture_die("cannot read a picture");
		(void)fclose(in);
	}
}

static void close_pictures(struct pictures *p)
{
	for (size_t i = 0; i < PICTURES; i++)
		free(p->data[i]);
	free(p->out);
	transform_close(p->transform);
}

/* ns of this thread's CPU time. */
static double decode_all(const struct pictures *p)
{
	struct error err = {""};
	const double began_ns = bench_thread_ns();
	for (size_t i = 0; i < PICTURES; i++)
		if (transform_sample(p->transform, p->data[i], p->sizes[i], i, p->out, NULL, &err))
			fixture_die(err.text);
	return bench_thread_ns() - began_ns;
}

/* --- sampled and not --------------------------------------------------------------------------------------------- */

/* The sampler stays open: its events or this thread's timer rest. */
static void let_sample(struct flame *flame, bool on)
{
	if (flame->perf) {
		(void)prctl(on ? PR_TASK_PERF_EVENTS_ENABLE : PR_TASK_PERF_EVENTS_DISABLE);
		return;
	}
	const struct timespec period = {.tv_nsec = on ? (long)flame->profile.period_ns : 0};
	const struct itimerspec setting = {.it_interval = period, .it_value = period};
	for (size_t i = 0; i < flame->thread_count; i++)
		if (flame->threads[i].tid == flame->pid && flame->threads[i].has_timer)
			(void)timer_settime(flame->threads[i].timer, 0, &setting, NULL);
}

static double sampler_ns(const struct flame *flame)
{
	clockid_t clock;
	struct timespec now = {0};
	if (pthread_getcpuclockid(flame->drain, &clock) || clock_gettime(clock, &now))
		return NAN;
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static struct flame *open_sampler(enum flame_method method)
{
	struct error err = {""};
	struct flame *flame = NULL;
	const struct flame_options options = {.method = method};
	if (flame_open(&flame, &options, &err))
		printf("%s: left out: %s\n", flame_method_name(method), err.text);
	return flame;
}

/* Some blocks that are the same but for this, so that starting and stopping are rare. */
static double decode_blocks(
	const struct pictures *p, struct flame *flame, bool on, double ns[SAMPLED_AT_ONCE])
{
	double sum = 0;
	let_sample(flame, on);
	for (int i = 0; i < SAMPLED_AT_ONCE; i++) {
		ns[i] = decode_all(p);
		sum += ns[i];
	}
	let_sample(flame, false);
	return sum;
}

/* Warm: what the sampler must read once. */
static void warm_up(const struct pictures *p, struct flame *flame)
{
	double ns[SAMPLED_AT_ONCE];
	const double began_ns = sampler_ns(flame);
	double sampled_ns = 0;
	const double until = bench_wall_s() + 2;
	while (bench_wall_s() < until)
		sampled_ns += decode_blocks(p, flame, true, ns);
	printf("  the sampler's first two seconds: %.1f ms of CPU, with the tables that it reads once\n",
		(sampler_ns(flame) - began_ns) / 1e6);
	(void)sampled_ns;
}

static void print_cost(const char *what, struct bench_interval cost, double bar)
{
	printf("  %-44s %+7.3f %% [%+.3f %+.3f]  %s\n", what, cost.middle, cost.low, cost.high,
		bar > 0 ? bench_verdict(cost, bar) : "");
	missed = missed || (bar > 0 && cost.low > bar);
}

static uint64_t finish(struct flame *flame)
{
	struct flame_profile profile;
	struct error err = {""};
	if (flame_finish(flame, &profile, &err))
		fixture_die(err.text);
	const uint64_t samples = profile.samples;
	printf("  %llu samples, %llu lost, %.2f %% cut short\n", (unsigned long long)samples,
		(unsigned long long)profile.lost,
		100 * (double)profile.truncated / (double)(samples > 0 ? samples : 1));
	flame_profile_release(&profile);
	flame_close(flame);
	return samples;
}

static void measure(const struct pictures *p, enum flame_method method, double seconds)
{
	static double costs[MANY];
	static double shares[MANY];
	size_t count = 0;
	size_t share_count = 0;
	struct flame *flame = open_sampler(method);
	if (!flame)
		return;
	const double rate = 1e9 / (double)flame->profile.period_ns;
	printf("%s, %.0f samples a second of CPU time\n", flame_method_name(method), rate);
	flame_count(true);
	warm_up(p, flame);
	const double until = bench_wall_s() + seconds;
	while (bench_wall_s() < until && count + SAMPLED_AT_ONCE <= MANY) {
		double ns[2][SAMPLED_AT_ONCE];
		int order[2] = {0, 1};
		bench_shuffle(order, 2, &seed);
		const double sampler_began_ns = sampler_ns(flame);
		double sampled_ns = 0;
		for (int i = 0; i < 2; i++) {
			const double sum = decode_blocks(p, flame, order[i] == 1, ns[order[i]]);
			sampled_ns = order[i] == 1 ? sum : sampled_ns;
		}
		for (int i = 0; i < SAMPLED_AT_ONCE; i++)
			costs[count++] = bench_change(ns[0][i], ns[1][i]);
		/* What was not taken in yet is the next one's: as much as the one before left. */
		shares[share_count++] = (sampler_ns(flame) - sampler_began_ns) / sampled_ns * 100;
	}
	const struct bench_interval taken = bench_middle(costs, count);
	double sum = 0;
	for (size_t i = 0; i < share_count; i++)
		sum += shares[i];
	struct bench_interval sampler = bench_middle(shares, share_count);
	/* Of the mean, not of the middle: rare wake-ups count, too. */
	const double shift = sum / (double)share_count - sampler.middle;
	sampler.middle += shift;
	sampler.low += shift;
	sampler.high += shift;
	print_cost("interrupted", taken, 0);
	printf("  %.1f us a sample\n", taken.middle / 100 * 1e6 / rate);
	print_cost("sampler", sampler, 0);
	print_cost("both",
		(struct bench_interval){taken.middle + sampler.middle, taken.low + sampler.low,
			taken.high + sampler.high},
		BAR);
	(void)finish(flame);
}

/* --- whole ------------------------------------------------------------------------------------------------------- */

/* CPU us a picture, of the whole process. */
static double run(struct pipeline_fixture *f, struct flame *flame)
{
	struct measurement m;
	struct error err = {""};
	if (pipeline_run(&f->config, &f->dataset, NULL, &m, &err))
		fixture_die(err.text);
	const double us = m.cpu_seconds * 1e6 / (double)m.samples;
	if (flame) {
		struct flame_profile profile;
		if (flame_finish(flame, &profile, &err))
			fixture_die(err.text);
		flame_profile_release(&profile);
		flame_close(flame);
	}
	measurement_release(&m);
	return us;
}

static void show_whole(struct pipeline_fixture *f, double seconds)
{
	enum { NONE, NONE_AGAIN, SAMPLED, ARMS };
	static double costs[MANY];
	static double noise[MANY];
	const double until = bench_wall_s() + seconds;
	size_t blocks = 0;
	fixture_set(f, KEY_DECODE_WORKERS, "1");
	fixture_set(f, KEY_MEASURE_WARMUP, "250ms");
	fixture_set(f, KEY_MEASURE_DURATION, "600ms");
	while (blocks < MANY && (blocks < 10 || bench_wall_s() < until)) {
		double us[ARMS];
		int order[ARMS] = {NONE, NONE_AGAIN, SAMPLED};
		bench_shuffle(order, ARMS, &seed);
		for (int i = 0; i < ARMS; i++) {
			struct flame *flame = order[i] == SAMPLED ? open_sampler(FLAME_AUTO) : NULL;
			us[order[i]] = run(f, flame);
		}
		costs[blocks] = bench_change(us[NONE], us[SAMPLED]);
		noise[blocks++] = bench_change(us[NONE], us[NONE_AGAIN]);
	}
	printf("the pipeline, one worker, %zu times three runs of 0.6 s behind a warm-up of 0.25 s\n",
		blocks);
	print_cost("sampled", bench_middle(costs, blocks), BAR);
	print_cost("none against none", bench_middle(noise, blocks), 0);
}

int main(int argc, char **argv)
{
	const double seconds = argc > 1 ? strtod(argv[1], NULL) : 80;
	struct pipeline_fixture f;
	struct pictures pictures;
	bench_open_jpegs(&f, "64");
	open_pictures(&pictures, &f);
	(void)decode_all(&pictures);
	printf("Sampling for a flame graph; bar %.0f %% of CPU time.  Means of the middle three fifths of all blocks, and their 95 %%\n"
	       "intervals.  JPEGs of 110 KB, %.0f us each\n",
		BAR, decode_all(&pictures) / PICTURES / 1000);
	measure(&pictures, FLAME_PERF, seconds * 0.3);
	measure(&pictures, FLAME_SIGNALS, seconds * 0.3);
	show_whole(&f, seconds * 0.4);
	close_pictures(&pictures);
	bench_close_jpegs(&f);
	printf("bar: %s\n", missed ? "missed" : "not missed");
	return missed;
}
