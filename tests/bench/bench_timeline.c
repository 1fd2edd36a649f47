/* What a timeline costs that is scheduled and not recording: bar, 1 % of the CPU time of a sample.  Three looks at it, the
 * narrowest first, because a whole pipeline differs from itself by more than that.
 *
 *   parts   each thing that a timeline adds, in a loop: absent, scheduled, recording; times how often a sample does it,
 *           counted in a recording of the pipeline; over the CPU time of a sample
 *   in situ the same pictures decoded by one thread, with the log of a thread and without, in blocks of a fraction of a ms
 *   whole   the pipeline: stages' CPU time a sample, in runs of some 40 ms: none, none again, scheduled
 * The instructions of the whole are counted by bench_instructions.sh, which runs the last form under valgrind.
 *
 *   bench_timeline [SECONDS]               in all, about; 80.  Exit status 1: the bar is missed
 *   bench_timeline --once SCHEDULE EPOCHS  one run of the smallest samples; SCHEDULE "": none */
#include "tests/bench_pairs.h"
#include "tests/pipeline_bench.h"

#include "harness/measure/state_clock.h"
#include "harness/measure/timeline.h"
#include "workloads/image/transform.h"

#include <string.h>

enum { ABSENT, SCHEDULED, RECORDING, WAYS };
enum { HOOK_STATE, HOOK_QUEUE, HOOK_SPAN, HOOK_FILE, HOOKS };
enum { CALLS = 1000, MANY = 20000, SAMPLES = 1024, EPOCHS = 16 };

static const double BAR = 1;
static const char *const schedules[WAYS] = {"", "1000000000,0,0,1,1", "0,0,0,1,0"};
static const char *const hook_names[HOOKS] = {
	"a state ends", "a queue changes", "a span", "a file was read"};

static uint64_t seed = 1;
static bool missed;
static struct bench_interval hook_ns[HOOKS][WAYS]; /* more than absent; [ABSENT]: all of it */

/* --- parts ---------------------------------------------------------------------------------------------------- */

struct parts {
	struct timeline *timelines[WAYS]; /* ABSENT: NULL */
	struct timeline_log *logs[WAYS];
	struct state_clock clock;
	struct queue_meter queue;
	uint64_t now_ns;
};

static struct timeline *open_timeline(const char *schedule)
{
	struct step_schedule parsed;
	struct timeline *t = NULL;
	if (step_schedule_parse(schedule, &parsed) || timeline_open(&t, &parsed, 8 * CALLS, 1))
		fixture_die("no timeline");
	return t;
}

static void open_parts(struct parts *p)
{
	*p = (struct parts){.now_ns = clock_now_ns()};
	for (int way = SCHEDULED; way < WAYS; way++) {
		p->timelines[way] = open_timeline(schedules[way]);
		p->logs[way] = timeline_add_log(p->timelines[way], TIMELINE_THREAD, "decode", 0);
		timeline_start(p->timelines[way], p->now_ns);
	}
	state_clock_start(&p->clock, THREAD_WORKING, p->now_ns);
	queue_meter_start(&p->queue, p->now_ns);
}

/* So that its room never ends. */
static void rewind_log(struct timeline_log *log)
{
	atomic_store(&log->timeline->taken, 1);
	log->next = log->timeline->entries;
	log->last = log->next + TIMELINE_CHUNK - 1;
}

static void use(struct parts *p, int way)
{
	timeline_use(p->logs[way]);
	p->clock.timeline = p->logs[way];
	p->queue.timeline = p->logs[way];
	if (p->logs[way])
		rewind_log(p->logs[way]);
}

/* As pipelines/loader.c has it. */
static void file(const struct parts *p, uint64_t now_ns)
{
	if (p->clock.timeline && timeline_keeps(p->clock.timeline, now_ns))
		timeline_span(TIMELINE_FILE, now_ns, now_ns + 1, 0, 0);
}

static double run_hook(struct parts *p, int hook)
{
	const double began_ns = bench_thread_ns();
	for (unsigned i = 0; i < CALLS; i++) {
		p->now_ns += 100;
		switch (hook) {
		case HOOK_STATE:
			state_clock_enter(
				&p->clock, i % 2 ? THREAD_WORKING : THREAD_STARVED, p->now_ns);
			break;
		case HOOK_QUEUE:
			queue_meter_set(&p->queue, i % 2, false, p->now_ns);
			break;
		case HOOK_SPAN:
			(void)timeline_end(TIMELINE_HEADER, timeline_mark(), 0);
			break;
		default:
			file(p, p->now_ns);
		}
		__asm__ volatile("" ::: "memory");
	}
	return (bench_thread_ns() - began_ns) / CALLS;
}

static void measure_hook(struct parts *p, int hook, double seconds)
{
	static double values[WAYS][MANY];
	const double until = bench_wall_s() + seconds;
	size_t count = 0;
	int order[WAYS] = {ABSENT, SCHEDULED, RECORDING};
	for (; count < MANY && bench_wall_s() < until; count++) {
		double ns[WAYS];
		bench_shuffle(order, WAYS, &seed);
		for (int i = 0; i < WAYS; i++) {
			use(p, order[i]);
			ns[order[i]] = run_hook(p, hook);
		}
		for (int way = 0; way < WAYS; way++)
			values[way][count] = ns[way] - (way == ABSENT ? 0 : ns[ABSENT]);
	}
	for (int way = 0; way < WAYS; way++)
		hook_ns[hook][way] = bench_middle(values[way], count);
	printf("  %-18s %8.2f", hook_names[hook], hook_ns[hook][ABSENT].middle);
	for (int way = SCHEDULED; way < WAYS; way++)
		printf("  %+7.2f [%+.2f %+.2f]", hook_ns[hook][way].middle, hook_ns[hook][way].low,
			hook_ns[hook][way].high);
	printf("  %zu blocks\n", count);
}

static void measure_parts(double seconds)
{
	struct parts p;
	open_parts(&p);
	printf("ns of CPU each\n  %-18s %8s  %-20s  %s\n", "", "absent", "scheduled, more",
		"recording, more");
	for (int hook = 0; hook < HOOKS; hook++)
		measure_hook(&p, hook, seconds / HOOKS);
	use(&p, ABSENT);
	for (int way = SCHEDULED; way < WAYS; way++)
		timeline_close(p.timelines[way]);
}

/* --- how often ------------------------------------------------------------------------------------------------- */

/* Stages' CPU us a sample. */
static double run(struct pipeline_fixture *f, int way, struct timeline **timeline)
{
	struct measurement m;
	struct error err = {""};
	const struct pipeline_control control = {.timeline = timeline};
	double cpu_s = 0;
	fixture_set(f, KEY_TRACE_SCHEDULE, schedules[way]);
	if (pipeline_run(&f->config, &f->dataset, &control, &m, &err))
		fixture_die(err.text);
	for (size_t i = 0; i < m.stage_count; i++)
		cpu_s += m.stages[i].cpu_seconds;
	const double samples = (double)m.samples;
	measurement_release(&m);
	return cpu_s * 1e6 / samples;
}

static double run_only(struct pipeline_fixture *f, int way, uint64_t *dropped)
{
	struct timeline *timeline = NULL;
	const double us = run(f, way, &timeline);
	*dropped += timeline ? timeline->dropped_steps : 0;
	timeline_close(timeline);
	return us;
}

static int hook_of(unsigned kind)
{
	if (kind >= TIMELINE_STATE && kind < TIMELINE_STATE + THREAD_STATES)
		return HOOK_STATE;
	return kind == TIMELINE_DEPTH ? HOOK_QUEUE : kind == TIMELINE_FILE ? HOOK_FILE : HOOK_SPAN;
}

/* A sample's, from what a recording holds of every step.  Recording makes samples longer and chunks of them shorter, so
 * that there are rather more changes of states and queues than without. */
static void count_hooks(struct pipeline_fixture *f, double each[HOOKS])
{
	struct timeline *t = NULL;
	(void)run(f, RECORDING, &t);
	if (!t || t->dropped_steps > 0 || t->window_count == 0)
		fixture_die("the recording is not whole");
	for (uint32_t c = 0; c < t->chunks; c++)
		for (uint32_t i = 0; i < t->used[c]; i++)
			each[hook_of(t->entries[(size_t)c * TIMELINE_CHUNK + i].kind)]++;
	for (int hook = 0; hook < HOOKS; hook++)
		each[hook] /= (double)(f->dataset.count *
				       (size_t)config_integer(&f->config, KEY_MEASURE_EPOCHS));
	timeline_close(t);
}

/* The sum of what a sample does times what it costs; errors of the parts are independent. */
static struct bench_interval bound(const double each[HOOKS], int way, double us)
{
	double sum = 0;
	double squares = 0;
	for (int hook = 0; hook < HOOKS; hook++) {
		const struct bench_interval *cost = &hook_ns[hook][way];
		const double half = each[hook] * (cost->high - cost->low) / 2;
		sum += each[hook] * cost->middle;
		squares += half * half;
	}
	const double scale = 100 / (us * 1000);
	return (struct bench_interval){
		sum * scale, (sum - sqrt(squares)) * scale, (sum + sqrt(squares)) * scale};
}

static void print_cost(const char *what, struct bench_interval cost, double bar)
{
	printf("  %-34s %+8.3f %% [%+.3f %+.3f]  %s\n", what, cost.middle, cost.low, cost.high,
		bar > 0 ? bench_verdict(cost, bar) : "");
	missed = missed || (bar > 0 && strcmp(bench_verdict(cost, bar), "MISSED") == 0);
}

static void show_bound(struct pipeline_fixture *f)
{
	double each[HOOKS] = {0};
	double us[5];
	uint64_t dropped = 0;
	count_hooks(f, each);
	for (size_t i = 0; i < 5; i++)
		us[i] = run_only(f, ABSENT, &dropped);
	const double median = bench_median(us, 5);
	printf("  a sample takes %.2f us of CPU [%.2f %.2f]; of it %.2f states, %.2f changes of queues, %.2f spans, %.2f files\n",
		median, us[0], us[4], each[HOOK_STATE], each[HOOK_QUEUE], each[HOOK_SPAN],
		each[HOOK_FILE]);
	/* Over the fastest: the largest share. */
	print_cost("parts, scheduled", bound(each, SCHEDULED, us[0]), BAR);
	print_cost("parts, recording", bound(each, RECORDING, us[0]), 0);
}

/* --- in situ ---------------------------------------------------------------------------------------------------- */

struct pictures {
	struct transform *transform;
	uint8_t **data;
	size_t *sizes;
	size_t count;
	uint8_t *out;
};

static void open_pictures(struct pictures *p, const struct pipeline_fixture *f, size_t count)
{
	struct error err = {""};
	const struct dataset *d = &f->dataset;
	*p = (struct pictures){.count = count};
	p->data = calloc(count, sizeof *p->data);
	p->sizes = calloc(count, sizeof *p->sizes);
	p->out = calloc(1, transform_sample_bytes(&f->config));
	if (!p->data || !p->sizes || !p->out ||
		transform_open(&p->transform, &f->config, &d->extents, NULL, &err))
		fixture_die(err.text);
	for (size_t i = 0; i < count; i++) {
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
	for (size_t i = 0; i < p->count; i++)
		free(p->data[i]);
	free(p->data);
	free(p->sizes);
	free(p->out);
	transform_close(p->transform);
}

static double decode_all(const struct pictures *p)
{
	struct error err = {""};
	const double began_ns = bench_thread_ns();
	for (size_t i = 0; i < p->count; i++)
		if (transform_sample(p->transform, p->data[i], p->sizes[i], i, p->out, NULL, &err))
			fixture_die(err.text);
	return bench_thread_ns() - began_ns;
}

/* Spans alone: states, queues and files are the pipeline's. */
static void show_in_situ(const struct pipeline_fixture *f, size_t count, double seconds)
{
	static double costs[MANY];
	static double noise[MANY];
	struct pictures pictures;
	struct parts parts;
	size_t blocks = 0;
	open_pictures(&pictures, f, count);
	open_parts(&parts);
	const double until = bench_wall_s() + seconds;
	for (; blocks < MANY && bench_wall_s() < until; blocks++) {
		enum { AGAIN = WAYS };
		double ns[WAYS + 1];
		int order[] = {ABSENT, SCHEDULED, AGAIN};
		bench_shuffle(order, 3, &seed);
		for (int i = 0; i < 3; i++) {
			use(&parts, order[i] == SCHEDULED ? SCHEDULED : ABSENT);
			ns[order[i]] = decode_all(&pictures);
		}
		costs[blocks] = bench_change(ns[ABSENT], ns[SCHEDULED]);
		noise[blocks] = bench_change(ns[ABSENT], ns[AGAIN]);
	}
	use(&parts, ABSENT);
	print_cost("spans in situ, scheduled", bench_middle(costs, blocks), BAR);
	print_cost("nothing against nothing", bench_middle(noise, blocks), 0);
	for (int way = SCHEDULED; way < WAYS; way++)
		timeline_close(parts.timelines[way]);
	close_pictures(&pictures);
}

/* --- whole ------------------------------------------------------------------------------------------------------ */

static void show_whole(struct pipeline_fixture *f, double seconds)
{
	enum { NONE, NONE_AGAIN, IDLE, ARMS };
	static double costs[MANY];
	static double noise[MANY];
	const double until = bench_wall_s() + seconds;
	uint64_t dropped = 0;
	size_t blocks = 0;
	for (; blocks < MANY && (blocks < 10 || bench_wall_s() < until); blocks++) {
		double us[ARMS] = {0};
		int order[ARMS] = {NONE, NONE_AGAIN, IDLE};
		bench_shuffle(order, ARMS, &seed);
		for (int i = 0; i < 2 * ARMS; i++) {
			const int arm = order[i < ARMS ? i : 2 * ARMS - 1 - i];
			us[arm] += run_only(f, arm == IDLE ? SCHEDULED : ABSENT, &dropped);
		}
		costs[blocks] = bench_change(us[NONE], us[IDLE]);
		noise[blocks] = bench_change(us[NONE], us[NONE_AGAIN]);
	}
	print_cost("whole, scheduled", bench_middle(costs, blocks), BAR);
	print_cost("none against none", bench_middle(noise, blocks), 0);
	printf("  (%zu blocks of %d runs)\n", blocks, 2 * ARMS);
}

static void prepare(struct pipeline_fixture *f, int epochs)
{
	char text[32];
	(void)snprintf(text, sizeof text, "%d", epochs);
	fixture_set(f, KEY_MEASURE_EPOCHS, text);
	fixture_set(f, KEY_MEASURE_WARMUP, "0s");
	fixture_set(f, KEY_BATCH_DROP_LAST, "off");
	fixture_set(f, KEY_DECODE_WORKERS, "1");
}

static void open_smallest(struct pipeline_fixture *f, int epochs)
{
	fixture_open(f, SAMPLES, 40, 40, 1);
	fixture_set(f, KEY_AUGMENT_TYPE, "uint8");
	fixture_set(f, KEY_AUGMENT_LAYOUT, "hwc");
	fixture_set(f, KEY_AUGMENT_CROP, "none");
	fixture_set(f, KEY_AUGMENT_SIZE, "40");
	fixture_set(f, KEY_BATCH_SIZE, "256");
	prepare(f, epochs);
}

static int run_once(const char *schedule, const char *epochs)
{
	struct pipeline_fixture f;
	struct measurement m;
	struct error err = {""};
	struct timeline *timeline = NULL;
	const struct pipeline_control control = {.timeline = &timeline};
	open_smallest(&f, (int)strtol(epochs, NULL, 10));
	fixture_set(&f, KEY_TRACE_SCHEDULE, schedule);
	if (pipeline_run(&f.config, &f.dataset, &control, &m, &err))
		fixture_die(err.text);
	printf("%llu samples\n", (unsigned long long)m.samples);
	timeline_close(timeline);
	measurement_release(&m);
	fixture_close(&f);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "--once") == 0)
		return run_once(argv[2], argv[3]);
	const double seconds = argc > 1 ? strtod(argv[1], NULL) : 80;
	struct pipeline_fixture f;
	printf("A timeline that is scheduled and not recording; bar %.0f %% of the CPU time of a sample.  Means of the middle three\n"
	       "fifths of all blocks, and their 95 %% intervals.\n",
		BAR);
	measure_parts(seconds * 0.1);
	printf("\nraw, 40 x 40, batches of 256, as stored\n");
	open_smallest(&f, EPOCHS);
	show_bound(&f);
	show_in_situ(&f, 64, seconds * 0.1);
	show_whole(&f, seconds * 0.55);
	fixture_close(&f);
	printf("\nraw, 102 x 102, cropped to 100, float\n");
	fixture_open(&f, SAMPLES, 102, 102, 1);
	fixture_set(&f, KEY_AUGMENT_CROP, "center");
	fixture_set(&f, KEY_AUGMENT_SIZE, "100");
	prepare(&f, 3);
	show_bound(&f);
	show_in_situ(&f, 8, seconds * 0.1);
	fixture_close(&f);
	printf("\nJPEG, 110 KB\n");
	bench_open_jpegs(&f, "64");
	prepare(&f, 3);
	show_bound(&f);
	show_in_situ(&f, 1, seconds * 0.1);
	bench_close_jpegs(&f);
	printf("bar: %s\n", missed ? "missed" : "not missed");
	return missed;
}
