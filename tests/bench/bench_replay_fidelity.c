/* The replay against the real pipeline, one to one: structures whose times are waits (so that a busy
 * machine disturbs them little), and then workers that decode JPEGs on the machine's cores, are run, their
 * recorded service times are replayed, and throughput and the states of every stage are compared.  What
 * differs is the replay's structural error and the machine's own lateness; run it under `nice -n -20` or
 * `chrt -f 10` where others work, too.
 * Usage: bench_replay_fidelity [time of each] [part of a structure's name] */
#include "tests/pipeline_bench.h"
#include "tests/replay_pipeline.h"

#include "harness/analyze/statistics.h"

enum { SETTINGS_MAX = 12, SAMPLES = 400, JPEGS = -1 };

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
		{{KEY_DECODE_WORKERS, "4"}, {KEY_INJECT_DECODE_WAIT, "2300us"},
			{KEY_STEP_TIME, "1ms"}, {KEY_INJECT_READ_LATENCY, "3ms"},
			{KEY_READ_DEPTH, "4"}, {KEY_DECODE_QUEUE, "7"}}},
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

static bool sets(const struct structure *s, enum key_id key)
{
	for (int i = 0; i < SETTINGS_MAX && s->set[i].value; i++)
		if (s->set[i].key == key)
			return true;
	return false;
}

static void configure(struct pipeline_fixture *f, const struct structure *s, const char *seconds)
{
	replayed_configure(f, seconds);
	if (s->device_ns >= 0)
		fixture_set(f, KEY_AUGMENT_SIZE, "16");
	for (int i = 0; i < SETTINGS_MAX && s->set[i].value; i++)
		fixture_set(f, s->set[i].key, s->set[i].value);
}

static const struct {
	const char *name;
	int stage;
} stages[] = {{"read", REPLAY_READ}, {"decode", REPLAY_DECODE}, {"upload", REPLAY_UPLOAD},
	{"step", REPLAY_STEP}};

/* Prints the states of all stages; the largest difference of a share. */
static double compare_states(const struct measurement *m, const struct replay_result *r)
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

static double compare(
	struct pipeline_fixture *f, const struct structure *s, const char *seconds, double *state)
{
	const struct replayed_facts facts = {
		.device_ns = s->device_ns > 0 ? s->device_ns : 0,
		.on_cores = s->device_ns < 0,
		.slow_workers = sets(s, KEY_INJECT_SLOW_WORKER),
	};
	struct measurement m;
	configure(f, s, seconds);
	const struct replay_result r = replayed_run(f, &facts, &m);
	const double error = r.throughput / m.throughput - 1;
	printf("%-33s measured %7.1f  replayed %7.1f  %+6.2f %%   queues %5.1f:%-5.1f %4.2f:%-4.2f"
	       "   outside %.1f cores\n",
		s->name, m.throughput, r.throughput, 100 * error, m.queues[0].mean_depth,
		r.samples_waiting, m.queues[1].mean_depth, r.batches_waiting, m.cores_busy_outside);
	*state = compare_states(&m, &r);
	measurement_release(&m);
	return fabs(error);
}

int main(int argc, char **argv)
{
	enum { COUNT = sizeof structures / sizeof *structures };
	const char *seconds = argc > 1 ? argv[1] : "2s";
	const char *only = argc > 2 ? argv[2] : "";
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
		errors[count] =
			compare(s->device_ns < 0 ? &jpegs : &tiny, s, seconds, &states[count]);
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
