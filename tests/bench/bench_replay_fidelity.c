/* The replay against the real pipeline, one to one: structures whose times are waits (so that a busy
 * machine disturbs them little), and then workers that decode JPEGs on the machine's cores, are run, their
 * recorded service times are replayed, and throughput and the states of every stage are compared.  What
 * differs is the replay's structural error and the machine's own lateness; run it under `nice -n -20` or
 * `chrt -f 10` where others work, too.
 * Usage: bench_replay_fidelity [seconds each] [wake-up ns] [structure] */
#include "tests/pipeline_bench.h"

#include "harness/analyze/replay.h"
#include "harness/analyze/statistics.h"
#include "harness/config/shape.h"

#include <math.h>
#include <unistd.h>

enum { SETTINGS_MAX = 12, SAMPLES = 400, JPEGS = -1 };
static const double WAKE_NS = 20e3;

struct structure {
	const char *name;
	double device_ns; /* of a file, where reading has a device; JPEGS: the data set is pictures */
	struct {
		enum key_id key;
		const char *value;
	} set[SETTINGS_MAX];
};

static const struct structure structures[] = {
	{"decode binds", 0,
		{{KEY_DECODE_WORKERS, "4"}, {KEY_INJECT_DECODE_WAIT, "2ms"},
			{KEY_STEP_TIME, "1ms"}}},
	{"step binds", 0,
		{{KEY_DECODE_WORKERS, "4"}, {KEY_INJECT_DECODE_WAIT, "2ms"},
			{KEY_STEP_TIME, "6ms"}}},
	{"decode and step, depth 1", 0,
		{{KEY_DECODE_WORKERS, "4"}, {KEY_INJECT_DECODE_WAIT, "2ms"}, {KEY_STEP_TIME, "4ms"},
			{KEY_STEP_JITTER, "0.5"}, {KEY_PREFETCH_DEPTH, "1"}}},
	{"read latency binds", 0,
		{{KEY_DECODE_WORKERS, "4"}, {KEY_INJECT_DECODE_WAIT, "2ms"}, {KEY_STEP_TIME, "2ms"},
			{KEY_INJECT_READ_LATENCY, "4ms"}, {KEY_READ_DEPTH, "4"}}},
	{"read and decode", 0,
		{{KEY_DECODE_WORKERS, "4"}, {KEY_INJECT_DECODE_WAIT, "2ms"}, {KEY_STEP_TIME, "2ms"},
			{KEY_INJECT_READ_LATENCY, "2ms"}, {KEY_READ_DEPTH, "4"}}},
	{"read, decode and step, jitter", 0,
		{{KEY_DECODE_WORKERS, "4"}, {KEY_INJECT_DECODE_WAIT, "2ms"}, {KEY_STEP_TIME, "4ms"},
			{KEY_STEP_JITTER, "0.3"}, {KEY_INJECT_READ_LATENCY, "4ms"},
			{KEY_READ_DEPTH, "4"}, {KEY_READ_THREADS, "2"},
			{KEY_INJECT_SLOW_SHARE, "10%"}, {KEY_INJECT_SLOW_FACTOR, "4"}}},
	{"device of reading binds", 1e6,
		{{KEY_DECODE_WORKERS, "4"}, {KEY_INJECT_DECODE_WAIT, "2ms"}, {KEY_STEP_TIME, "2ms"},
			{KEY_INJECT_READ_BANDWIDTH, "781000B/s"}, {KEY_READ_DEPTH, "4"}}},
	{"rare slow items, in order", 0,
		{{KEY_DECODE_WORKERS, "8"}, {KEY_INJECT_DECODE_WAIT, "1500us"},
			{KEY_STEP_TIME, "1ms"}, {KEY_BATCH_SIZE, "4"}, {KEY_PREFETCH_DEPTH, "2"},
			{KEY_INJECT_SLOW_SHARE, "2%"}, {KEY_INJECT_SLOW_FACTOR, "20"}}},
	{"rare slow items, as completed", 0,
		{{KEY_DECODE_WORKERS, "8"}, {KEY_INJECT_DECODE_WAIT, "1500us"},
			{KEY_STEP_TIME, "1ms"}, {KEY_BATCH_SIZE, "4"}, {KEY_PREFETCH_DEPTH, "2"},
			{KEY_INJECT_SLOW_SHARE, "2%"}, {KEY_INJECT_SLOW_FACTOR, "20"},
			{KEY_BATCH_ORDER, "as-completed"}}},
	{"one slow worker, in order", 0,
		{{KEY_DECODE_WORKERS, "4"}, {KEY_INJECT_DECODE_WAIT, "1ms"},
			{KEY_STEP_TIME, "500us"}, {KEY_BATCH_SIZE, "2"}, {KEY_PREFETCH_DEPTH, "1"},
			{KEY_INJECT_SLOW_WORKER, "8"}}},
	{"one slow worker, as completed", 0,
		{{KEY_DECODE_WORKERS, "4"}, {KEY_INJECT_DECODE_WAIT, "1ms"},
			{KEY_STEP_TIME, "500us"}, {KEY_BATCH_SIZE, "2"}, {KEY_PREFETCH_DEPTH, "1"},
			{KEY_INJECT_SLOW_WORKER, "8"}, {KEY_BATCH_ORDER, "as-completed"}}},
	{"half of the items under a lock", 0,
		{{KEY_DECODE_WORKERS, "4"}, {KEY_INJECT_DECODE_WAIT, "1ms"}, {KEY_STEP_TIME, "1ms"},
			{KEY_INJECT_LOCK_SHARE, "50%"}}},
	{"upload and step", 0,
		{{KEY_DECODE_WORKERS, "4"}, {KEY_INJECT_DECODE_WAIT, "2ms"},
			{KEY_STEP_TIME, "3800us"}, {KEY_STEP_JITTER, "0.5"},
			{KEY_UPLOAD_MODE, "copy"}, {KEY_UPLOAD_DEPTH, "1"},
			{KEY_INJECT_UPLOAD_FACTOR, "100"}, {KEY_PREFETCH_DEPTH, "1"}}},
	{"few blobs", 0,
		{{KEY_DECODE_WORKERS, "4"}, {KEY_INJECT_DECODE_WAIT, "2300us"}, {KEY_STEP_TIME, "1ms"},
			{KEY_INJECT_READ_LATENCY, "3ms"}, {KEY_READ_DEPTH, "4"},
			{KEY_DECODE_QUEUE, "7"}}},
	{"few blobs, two readers", 0,
		{{KEY_DECODE_WORKERS, "3"}, {KEY_INJECT_DECODE_WAIT, "1700us"},
			{KEY_STEP_TIME, "1ms"}, {KEY_INJECT_READ_LATENCY, "2900us"},
			{KEY_READ_DEPTH, "3"}, {KEY_READ_THREADS, "2"}, {KEY_DECODE_QUEUE, "8"},
			{KEY_INJECT_SLOW_SHARE, "20%"}, {KEY_INJECT_SLOW_FACTOR, "3"}}},
	{"large batches", 0,
		{{KEY_DECODE_WORKERS, "6"}, {KEY_INJECT_DECODE_WAIT, "1ms"}, {KEY_STEP_TIME, "9ms"},
			{KEY_STEP_JITTER, "0.3"}, {KEY_BATCH_SIZE, "64"},
			{KEY_PREFETCH_DEPTH, "1"}}},
	{"more workers than a batch", 0,
		{{KEY_DECODE_WORKERS, "16"}, {KEY_INJECT_DECODE_WAIT, "6ms"},
			{KEY_STEP_TIME, "1500us"}, {KEY_STEP_JITTER, "0.4"}, {KEY_BATCH_SIZE, "4"},
			{KEY_PREFETCH_DEPTH, "1"}}},
	{"1 worker on the cores", JPEGS, {{KEY_DECODE_WORKERS, "1"}, {KEY_STEP_TIME, "2ms"}}},
	{"2 workers on the cores", JPEGS, {{KEY_DECODE_WORKERS, "2"}, {KEY_STEP_TIME, "2ms"}}},
	{"3 workers on the cores", JPEGS, {{KEY_DECODE_WORKERS, "3"}, {KEY_STEP_TIME, "2ms"}}},
	{"6 workers on the cores", JPEGS, {{KEY_DECODE_WORKERS, "6"}, {KEY_STEP_TIME, "2ms"}}},
	{"6 workers on the cores, that wait", JPEGS,
		{{KEY_DECODE_WORKERS, "6"}, {KEY_STEP_TIME, "2ms"},
			{KEY_INJECT_DECODE_WAIT, "3ms"}}},
	{"4 workers on the cores and a step", JPEGS,
		{{KEY_DECODE_WORKERS, "4"}, {KEY_STEP_TIME, "6ms"}, {KEY_STEP_JITTER, "0.5"},
			{KEY_PREFETCH_DEPTH, "1"}}},
};

static void die(const char *what)
{
	fprintf(stderr, "bench_replay_fidelity: %s\n", what);
	exit(1);
}

static void configure(struct pipeline_fixture *f, const struct structure *s, const char *seconds)
{
	config_release(&f->config);
	config_init(&f->config);
	fixture_set(f, KEY_DATASET_PATH, f->root);
	fixture_set(f, KEY_READ_ENGINE, "memory");
	if (s->device_ns >= 0)
		fixture_set(f, KEY_AUGMENT_SIZE, "16");
	fixture_set(f, KEY_STEP_BACKEND, "emulated");
	fixture_set(f, KEY_STEP_DEVICE, "custom");
	fixture_set(f, KEY_STEP_MODEL, "custom");
	fixture_set(f, KEY_BATCH_SIZE, "8");
	fixture_set(f, KEY_BATCH_DROP_LAST, "on");
	fixture_set(f, KEY_MEASURE_WARMUP, "300ms");
	fixture_set(f, KEY_MEASURE_DURATION, seconds);
	fixture_set(f, KEY_MEASURE_MIN_BATCHES, "10");
	for (int i = 0; i < SETTINGS_MAX && s->set[i].value; i++)
		fixture_set(f, s->set[i].key, s->set[i].value);
}

/* --- from traces to a model -------------------------------------------------------------------------- */

struct built {
	struct replay_model model;
	float *series[COSTS];
	float *factor;
};

static void set_series(struct built *b, enum replay_cost cost, float *ns, size_t count)
{
	b->series[cost] = ns;
	b->model.series[cost] = (struct replay_series){ns, count};
}

static float *column(const struct trace *trace)
{
	float *ns = calloc(trace->count + 1, sizeof *ns);
	if (!ns)
		die("out of memory");
	return ns;
}

/* How long each worker's items take in the mean, against all. */
static void find_factors(struct built *b, const struct trace *trace)
{
	const unsigned workers = b->model.shape.decode_workers;
	double *sum = calloc(2 * (size_t)workers, sizeof *sum);
	b->factor = calloc(workers, sizeof *b->factor);
	if (!sum || !b->factor)
		die("out of memory");
	double all = 0;
	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_item *item = &trace->items[i];
		const double ns = (double)(item->service_ns - item->lock_wait_ns);
		sum[item->worker] += ns;
		sum[workers + item->worker]++;
		all += ns / (double)trace->count;
	}
	for (unsigned w = 0; w < workers; w++)
		b->factor[w] = sum[workers + w] > 0 ? (float)(sum[w] / sum[workers + w] / all) : 1;
	free(sum);
}

static void build_decode(struct built *b, const struct structure *s, const struct trace *trace)
{
	bool slow_worker = false;
	for (int i = 0; i < SETTINGS_MAX && s->set[i].value; i++)
		slow_worker = slow_worker || s->set[i].key == KEY_INJECT_SLOW_WORKER;
	if (slow_worker)
		find_factors(b, trace);
	float *wait = column(trace);
	float *lock = column(trace);
	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_item *item = &trace->items[i];
		const float factor = b->factor ? b->factor[item->worker] : 1;
		lock[i] = item->lock_hold_ns / factor;
		wait[i] = (item->service_ns - item->lock_wait_ns - item->lock_hold_ns) / factor;
		wait[i] = wait[i] > 0 ? wait[i] : 0;
	}
	set_series(b, COST_DECODE_WAIT, wait, trace->count);
	set_series(b, COST_DECODE_LOCK, lock, trace->count);
	b->model.worker_factor = b->factor;
}

/* On the cores: the time of an item less its planned wait, as long as the CPU time was in all. */
static void build_decode_on_cores(struct built *b, const struct pipeline_fixture *f,
	const struct measurement *m, const struct trace *trace)
{
	const float planned = (float)config_integer(&f->config, KEY_INJECT_DECODE_WAIT);
	float *wait = column(trace);
	float *cpu = column(trace);
	double sum = 0;
	double cpu_ns = NAN;
	for (size_t i = 0; i < trace->count; i++) {
		wait[i] = planned;
		cpu[i] = fmaxf(trace->items[i].service_ns - planned, 0);
		sum += (double)cpu[i] / (double)trace->count;
	}
	for (size_t i = 0; i < m->stage_count; i++)
		if (strcmp(m->stages[i].name, "decode") == 0)
			cpu_ns = m->stages[i].cpu_seconds / (double)m->stages[i].items * 1e9;
	set_series(b, COST_DECODE_WAIT, wait, trace->count);
	set_series(b, COST_DECODE_CPU, cpu, trace->count);
	b->model.scale[COST_DECODE_CPU] = cpu_ns / sum;
	b->model.cores = (double)sysconf(_SC_NPROCESSORS_ONLN);
}

static void build(struct built *b, const struct structure *s, const struct pipeline_fixture *f,
	const struct measurement *m, const struct traces *traces)
{
	const struct shape_facts facts = {.samples = f->dataset.count, .in_memory = true};
	*b = (struct built){.model.cores = HUGE_VAL};
	pipeline_shape_of(&f->config, &facts, &b->model.shape);
	for (int cost = 0; cost < COSTS; cost++)
		b->model.scale[cost] = 1;
	const struct trace *read = traces_find(traces, "read");
	const struct trace *decode = traces_find(traces, "decode");
	const struct trace *upload = traces_find(traces, "upload");
	const struct trace *step = traces_find(traces, "step");
	if (!read || !decode || !step)
		die("no traces");
	float *ns = column(read);
	for (size_t i = 0; i < read->count; i++)
		ns[i] = s->device_ns > 0 ? (float)s->device_ns : read->items[i].service_ns;
	set_series(b, s->device_ns > 0 ? COST_READ_DEVICE : COST_READ_LATENCY, ns, read->count);
	if (s->device_ns < 0)
		build_decode_on_cores(b, f, m, decode);
	else
		build_decode(b, s, decode);
	ns = column(step);
	for (size_t i = 0; i < step->count; i++)
		ns[i] = step->items[i].service_ns;
	set_series(b, COST_STEP_DEVICE, ns, step->count);
	if (!upload)
		return;
	ns = column(upload);
	for (size_t i = 0; i < upload->count; i++)
		ns[i] = upload->items[i].service_ns;
	set_series(b, COST_UPLOAD, ns, upload->count);
}

static void release(struct built *b)
{
	for (int cost = 0; cost < COSTS; cost++)
		free(b->series[cost]);
	free(b->factor);
}

/* --- comparing -------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	int stage;
} stages[] = {{"read", REPLAY_READ}, {"decode", REPLAY_DECODE}, {"upload", REPLAY_UPLOAD},
	{"step", REPLAY_STEP}};

static double worst_state(const struct measurement *m, const struct replay_result *r)
{
	double worst = 0;
	for (size_t s = 0; s < m->stage_count; s++)
		for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
			const double *seconds = m->stages[s].seconds;
			if (strcmp(m->stages[s].name, stages[i].name) != 0)
				continue;
			const double total = seconds[0] + seconds[1] + seconds[2];
			printf("  %-6s", stages[i].name);
			for (int k = 0; k < THREAD_STATES; k++) {
				const double there = seconds[k] / total;
				const double here = r->share[stages[i].stage][k];
				printf(" %5.1f:%-5.1f", 100 * there, 100 * here);
				worst = fmax(worst, fabs(there - here));
			}
		}
	printf("\n");
	return worst;
}

static double compare(struct pipeline_fixture *f, const struct structure *s, const char *seconds,
	double wake_ns, double *state)
{
	configure(f, s, seconds);
	struct measurement m;
	struct traces traces = {0};
	struct error err = {""};
	const struct pipeline_control control = {.traces = &traces};
	if (pipeline_run(&f->config, &f->dataset, &control, &m, &err))
		die(err.text);
	struct built b;
	build(&b, s, f, &m, &traces);
	b.model.wake_ns = wake_ns;
	const struct replay_options options = {
		.batches = m.batches, .warmup_batches = m.batches / 10};
	struct replay_result r;
	if (replay_run(&b.model, &options, &r, &err))
		die(err.text);
	const double error = r.throughput / m.throughput - 1;
	printf("%-32s measured %8.1f  replayed %8.1f  %+6.2f %%   queues %5.1f:%-5.1f %4.2f:%-4.2f\n",
		s->name, m.throughput, r.throughput, 100 * error, m.queues[0].mean_depth,
		r.samples_waiting, m.queues[1].mean_depth, r.batches_waiting);
	printf("  step late %.0f us, cores outside %.2f, decode cpu %.2f runq %.2f\n", m.oversleep_mean_ns/1e3, m.cores_busy_outside, m.stages[1].cpu_seconds/m.stages[1].seconds[1], m.stages[1].run_queue_seconds/m.stages[1].seconds[1]);
	*state = worst_state(&m, &r);
	release(&b);
	traces_release(&traces);
	measurement_release(&m);
	return fabs(error);
}

int main(int argc, char **argv)
{
	enum { COUNT = sizeof structures / sizeof *structures };
	const char *seconds = argc > 1 ? argv[1] : "2s";
	const double wake_ns = argc > 2 ? strtod(argv[2], NULL) : WAKE_NS;
	const char *only = argc > 3 ? argv[3] : "";
	struct pipeline_fixture tiny, jpegs;
	double errors[COUNT], states[COUNT];
	size_t count = 0;
	fixture_open(&tiny, SAMPLES, 16, 16, 1);
	bench_open_jpegs(&jpegs, "200");
	printf("states: starved working blocked, in %% of the stage's thread time, measured:replayed\n");
	for (size_t i = 0; i < COUNT; i++) {
		const struct structure *s = &structures[i];
		if (!strstr(s->name, only))
			continue;
		errors[count] = compare(
			s->device_ns < 0 ? &jpegs : &tiny, s, seconds, wake_ns, &states[count]);
		count++;
	}
	fixture_close(&tiny);
	bench_close_jpegs(&jpegs);
	printf("\nthroughput: median %.2f %%, worst %.2f %%; a state's share: median %.1f, worst %.1f points\n",
		100 * statistics_median(errors, count), 100 * statistics_quantile(errors, count, 1),
		100 * statistics_median(states, count),
		100 * statistics_quantile(states, count, 1));
	return 0;
}
