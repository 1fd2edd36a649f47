/* What sampling for a flame graph costs: bar, 2 % of CPU time.  In two parts that add up to it:
 *
 *   interrupted  what each sample takes from the thread that it interrupts: this thread walks over 20 KiB of its stack again and
 *                again, a microsecond each time, sampled and not in turn; what a walk takes longer than the usual one was taken
 *                from it, the reading of what the sample drove out of the cache included.  Where it takes much longer, another
 *                thread had its turn
 *   sampler      what the thread takes that unwinds the samples, by its own CPU clock: so much for each look at the rings,
 *                while this thread sleeps, and so much for each sample, while it decodes; as a share of one busy core
 *
 * Tables are read when an address is first met: in a run, mostly in its warm-up.  That comes once and is shown apart.  Beside
 * it, decoding: the CPU time of JPEGs in blocks, sampled and not in turn, which has everything in it, the noise too.
 *
 *   bench_flame [SECONDS]     in all, about; 40.  Exit status 1: the bar is missed */
#include "tests/bench_pairs.h"
#include "tests/pipeline_bench.h"

#include "harness/measure/flame.c" /* its timers and its own thread are nobody else's business */
#include "workloads/image/transform.h"

#include <pthread.h>
#include <string.h>

enum {
	MANY = 20000,
	PICTURES = 16,
	WALKED_BYTES = 20 << 10,
	LINE_BYTES = 64,
	WALK_MS = 50,
	SHORT_NS = 300,   /* what walks differ by anyway */
	LONG_NS = 150000, /* no interrupt takes so long */
};

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
	if (!p->out || transform_open(&p->transform, &f->config, &d->extents, NULL, &err))
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

/* The sampler stays open, and this thread's timer rests. */
static void let_sample(struct flame *flame, bool on)
{
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

static struct flame *open_bench_sampler(void)
{
	struct error err = {""};
	struct flame *flame = NULL;
	const struct flame_options options = {0};
	if (flame_open(&flame, &options, &err))
		printf("left out: %s\n", err.text);
	return flame;
}

static double decode_as(const struct pictures *p, struct flame *flame, bool on)
{
	let_sample(flame, on);
	const double ns = decode_all(p);
	let_sample(flame, false);
	return ns;
}

/* --- interrupts --------------------------------------------------------------------------------------------------- */

struct walks {
	double taken_ns, rest_ns; /* in interrupts; and all but what other threads took */
};

static double usual_ns = HUGE_VAL; /* of a walk */

static uint64_t walk_once(volatile uint8_t *bytes)
{
	const uint64_t began_ns = clock_now_ns();
	for (size_t i = 0; i < WALKED_BYTES; i += LINE_BYTES)
		bytes[i]++;
	return clock_now_ns() - began_ns;
}

static int walk_order(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a;
	const uint32_t y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

/* The stack that a sample copies is deep here, as it is in a decoder. */
__attribute__((noinline)) static struct walks walk(void)
{
	enum { FIRST = 1001 };
	static uint32_t first[FIRST];
	volatile uint8_t bytes[WALKED_BYTES];
	struct walks walks = {0};
	memset((void *)(uintptr_t)bytes, 0, sizeof bytes);
	for (size_t i = 0; i < FIRST; i++)
		first[i] = (uint32_t)walk_once(bytes);
	qsort(first, FIRST, sizeof *first, walk_order);
	const size_t middle = FIRST / 2;
	usual_ns = first[middle];
	const uint64_t until_ns = clock_now_ns() + (uint64_t)WALK_MS * NS_PER_MS;
	while (clock_now_ns() < until_ns) {
		const double ns = (double)walk_once(bytes);
		if (ns > usual_ns + LONG_NS)
			continue;
		walks.rest_ns += ns;
		if (ns > usual_ns + SHORT_NS) {
			walks.taken_ns += ns - usual_ns;
		}
	}
	return walks;
}

static struct walks walk_as(struct flame *flame, bool on)
{
	let_sample(flame, on);
	const struct walks walks = walk();
	let_sample(flame, false);
	return walks;
}

static struct bench_interval measure_interrupts(struct flame *flame, double seconds)
{
	static double costs[MANY];
	size_t count = 0;
	const double until = bench_wall_s() + seconds;
	for (; count < MANY && (count < 10 || bench_wall_s() < until); count++) {
		struct walks walks[2];
		int order[2] = {0, 1};
		bench_shuffle(order, 2, &seed);
		for (int i = 0; i < 2; i++)
			walks[order[i]] = walk_as(flame, order[i] == 1);
		costs[count] = 100 * (walks[1].taken_ns / walks[1].rest_ns -
					     walks[0].taken_ns / walks[0].rest_ns);
	}
	const struct bench_interval cost = bench_middle(costs, count);
	const double rate = 1e9 / (double)flame->profile.period_ns;
	printf("  %zu times two blocks of walks: %.1f us a sample\n", count,
		cost.middle / 100 * 1e6 / rate);
	return cost;
}

/* --- the sampler's thread, and decoding --------------------------------------------------------------------------- */

static void print_cost(const char *what, struct bench_interval cost, double bar)
{
	printf("  %-44s %+7.3f %% [%+.3f %+.3f]  %s\n", what, cost.middle, cost.low, cost.high,
		bar > 0 ? bench_verdict(cost, bar) : "");
	missed = missed || (bar > 0 && strcmp(bench_verdict(cost, bar), "MISSED") == 0);
}

/* What the sampler reads once. */
static void warm_up(const struct pictures *p, struct flame *flame)
{
	const double began_ns = sampler_ns(flame);
	const double until = bench_wall_s() + 2;
	while (bench_wall_s() < until)
		(void)decode_as(p, flame, true);
	printf("  the sampler's first two seconds, with the tables that it reads once: %.1f ms of CPU\n",
		(sampler_ns(flame) - began_ns) / 1e6);
}

/* What it takes of a core when there is nothing to be taken in, in pieces of time. */
enum { PIECES = 10 };

static void measure_idle(const struct flame *flame, double seconds, double shares[PIECES])
{
	for (int i = 0; i < PIECES; i++) {
		const double began_ns = sampler_ns(flame);
		const double began_s = bench_wall_s();
		clock_sleep_until_ns(clock_now_ns() + (uint64_t)(seconds / PIECES * 1e9));
		shares[i] = (sampler_ns(flame) - began_ns) / (bench_wall_s() - began_s) / 1e9;
	}
}

static struct bench_interval interval_of(const double values[PIECES])
{
	double sum = 0;
	double squares = 0;
	for (int i = 0; i < PIECES; i++)
		sum += values[i];
	const double mean = sum / PIECES;
	for (int i = 0; i < PIECES; i++)
		squares += (values[i] - mean) * (values[i] - mean);
	/* Student's t, 9 degrees of freedom. */
	const double half = 2.26 * sqrt(squares / (PIECES - 1) / PIECES);
	return (struct bench_interval){mean, mean - half, mean + half};
}

static struct bench_interval scaled(struct bench_interval i, double by)
{
	return (struct bench_interval){i.middle * by, i.low * by, i.high * by};
}

static struct bench_interval sum_of(struct bench_interval a, struct bench_interval b)
{
	const double half = hypot((a.high - a.low) / 2, (b.high - b.low) / 2);
	const double middle = a.middle + b.middle;
	return (struct bench_interval){middle, middle - half, middle + half};
}

/* Of one busy core, %.  On a machine with other work this thread gets a part of one only, and the looks go on: that part of
 * the sampler's time is taken off before it is divided by samples, and added as a busy core has it. */
static struct bench_interval measure_sampler(
	const struct pictures *p, struct flame *flame, double seconds)
{
	double idle[PIECES];
	double each_us[PIECES];
	const double rate = 1e9 / (double)flame->profile.period_ns;
	measure_idle(flame, seconds / 3, idle);
	const struct bench_interval looks = interval_of(idle);
	for (int i = 0; i < PIECES; i++) {
		const double began_ns = sampler_ns(flame);
		const double began_s = bench_wall_s();
		double sampled_ns = 0;
		while (sampled_ns == 0 || bench_wall_s() < began_s + seconds * 2 / 3 / PIECES)
			sampled_ns += decode_as(p, flame, true);
		const double looks_ns = looks.middle * (bench_wall_s() - began_s) * 1e9;
		each_us[i] =
			(sampler_ns(flame) - began_ns - looks_ns) / 1e3 / (sampled_ns / 1e9 * rate);
	}
	const struct bench_interval each = interval_of(each_us);
	printf("  the sampler: %.3f %% of a core while there is nothing to do; %.1f us [%.1f %.1f] a sample\n",
		looks.middle * 100, each.middle, each.low, each.high);
	return sum_of(scaled(looks, 100), scaled(each, rate / 1e6 * 100));
}

static struct bench_interval measure_decoding(
	const struct pictures *p, struct flame *flame, double seconds)
{
	static double costs[MANY];
	size_t count = 0;
	const double until = bench_wall_s() + seconds;
	for (; count < MANY && (count < 10 || bench_wall_s() < until); count++) {
		double ns[2];
		int order[2] = {0, 1};
		bench_shuffle(order, 2, &seed);
		for (int i = 0; i < 2; i++)
			ns[order[i]] = decode_as(p, flame, order[i] == 1);
		costs[count] = bench_change(ns[0], ns[1]);
	}
	return bench_middle(costs, count);
}

static void finish(struct flame *flame)
{
	struct flame_profile profile;
	struct error err = {""};
	if (flame_finish(flame, &profile, &err))
		fixture_die(err.text);
	const double samples = profile.samples > 0 ? (double)profile.samples : NAN;
	printf("  %llu samples, %llu lost, %.2f %% cut short\n",
		(unsigned long long)profile.samples, (unsigned long long)profile.lost,
		100 * (double)profile.truncated / samples);
	flame_profile_release(&profile);
	flame_close(flame);
}

static void measure(const struct pictures *p, double seconds)
{
	struct flame *flame = open_bench_sampler();
	if (!flame)
		return;
	printf("%.0f samples a second of CPU time\n", 1e9 / (double)flame->profile.period_ns);
	flame_count(true);
	warm_up(p, flame);
	const struct bench_interval sampler = measure_sampler(p, flame, seconds * 0.2);
	const struct bench_interval decoding = measure_decoding(p, flame, seconds * 0.4);
	flame_count(false); /* walks have stacks that no copy covers */
	const struct bench_interval taken = measure_interrupts(flame, seconds * 0.4);
	print_cost("interrupted", taken, 0);
	print_cost("sampler", sampler, 0);
	print_cost("both", sum_of(taken, sampler), BAR);
	print_cost("decoding, without the sampler's thread", decoding, 0);
	finish(flame);
}

int main(int argc, char **argv)
{
	const double seconds = argc > 1 ? strtod(argv[1], NULL) : 40;
	struct pipeline_fixture f;
	struct pictures pictures;
	bench_open_jpegs(&f, "64");
	open_pictures(&pictures, &f);
	(void)decode_all(&pictures);
	printf("Sampling for a flame graph; bar %.0f %% of CPU time.  Means with 95 %% intervals.  JPEGs of 110 KB, %.0f us each\n",
		BAR, decode_all(&pictures) / PICTURES / 1000);
	measure(&pictures, seconds);
	close_pictures(&pictures);
	bench_close_jpegs(&f);
	printf("bar: %s\n", missed ? "missed" : "not missed");
	return missed;
}
