/* Stores in a closed loop, as a reader with so many files in flight would find them: a small event simulation that leaves what
 * a real run does: the first files, other depths in the warm-up, the measured part with its service times in sequence.  What
 * limits the store is known, because it is chosen. */
#ifndef MLBENCH_TESTS_STORAGE_FIXTURE_H
#define MLBENCH_TESTS_STORAGE_FIXTURE_H

#include "harness/analyze/diagnose.h"
#include "harness/analyze/storage_capacity.h"
#include "harness/base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
	STORE_JOBS_MAX = 128,
	STORE_FILES_MAX = 4096, /* of the measured part */
	STORE_POINT_FILES = 300,
	STORE_PARTS = 8, /* of a point, for its error */
	STORE_BLOCK = 64,
	STORE_REPEATS = 2,
	STORE_WINDOWS_MAX = 400,
};

#define STORE_WINDOW_S 0.1

struct store {
	double latency_ms, latency_cv; /* of each file, beside all others */
	bool exponential;              /* latency */
	double slow_share, slow_ms;    /* of the files, any; so much longer */
	unsigned slots;     /* servers that are taken for the latency; 0: as many as wanted */
	unsigned others;    /* files that others keep in flight at the one slot */
	double bytes_per_s; /* 0: unlimited */
	bool shared; /* bytes are shared evenly by what is in flight; else one after the other */
	double requests_per_s;         /* 0: unlimited */
	double slice_s;                /* requests are let through so often; 0: evenly */
	double saved;                  /* requests that are let through at once in the beginning */
	double stall_s, stall_every_s; /* nothing is answered meanwhile */
	double outage_at_s, outage_s;
	double cold_ms;   /* what the very first file takes beside */
	double hit_share; /* answered by the page cache */
	double bytes_mean, bytes_cv;
	double small_share; /* of files with a tenth of the bytes */
	double think_ms;    /* a consumer that takes so long a file, one after the other; 0: none */
	unsigned depth;
	bool one_point; /* neither ramp nor points */
	bool blocking;
	unsigned block_files; /* of a block of reads alone; 0: STORE_POINT_FILES */
	unsigned
		samples; /* that are cut out of each file, which is then a large request; 0: it is one itself */
	double seconds; /* measured; 0: until STORE_FILES_MAX */
	uint64_t seed;
};

struct store_job {
	double sent, end; /* end: HUGE_VAL while it shares the link */
	double bytes, left;
	uint64_t number;
	unsigned in_flight;
};

struct store_sim {
	const struct store *store;
	struct rng rng;
	double now;
	struct store_job jobs[STORE_JOBS_MAX];
	unsigned in_flight;
	double slot_free[STORE_JOBS_MAX];
	double other_end[STORE_JOBS_MAX];
	double link_free, consumed;
	double requests; /* let through */
	uint64_t number;
	struct trace_item *items; /* where completions go; NULL: nowhere */
	size_t count, room;
	struct measurement *m;            /* whose windows are filled; NULL: none */
	double blocked_s, starved_s, cut; /* of reader and consumer, since the cut */
	uint64_t bytes;
};

static inline double store_lognormal(struct rng *rng, double mean, double cv)
{
	if (cv <= 0)
		return mean;
	const double s2 = log1p(cv * cv);
	return mean * exp(sqrt(s2) * rng_normal(rng) - s2 / 2);
}

/* The moment at which an answer comes that would come at t. */
static inline double store_after_stalls(const struct store *s, double t)
{
	if (s->outage_s > 0 && t >= s->outage_at_s && t < s->outage_at_s + s->outage_s)
		t = s->outage_at_s + s->outage_s;
	if (!(s->stall_s > 0))
		return t;
	const double phase = fmod(t, s->stall_every_s);
	const double quiet = s->stall_every_s - s->stall_s;
	return phase > quiet ? t + s->stall_every_s - phase : t;
}

static inline double store_let_through(struct store_sim *sim)
{
	const struct store *s = sim->store;
	if (!(s->requests_per_s > 0))
		return sim->now;
	/* What was not used is lost, but for what is saved. */
	const double unused = s->slice_s > 0 ? s->slice_s * s->requests_per_s : 0;
	sim->requests = fmax(sim->requests, (sim->now * s->requests_per_s) - unused);
	double at = (sim->requests++ - s->saved) / s->requests_per_s;
	if (s->slice_s > 0)
		at = floor(at / s->slice_s) * s->slice_s;
	return fmax(at, sim->now);
}

static inline double store_bytes(struct store_sim *sim)
{
	const struct store *s = sim->store;
	const double mean = s->bytes_mean > 0 ? s->bytes_mean : 1e5;
	if (s->small_share > 0)
		return rng_uniform(&sim->rng) < s->small_share ? mean / 10 : mean;
	return fmax(store_lognormal(&sim->rng, mean, s->bytes_cv), 100);
}

/* Each sends its next file when the last one is done: in turn with ours. */
static inline void store_others(struct store_sim *sim)
{
	const struct store *s = sim->store;
	for (;;) {
		unsigned at = 0;
		for (unsigned i = 1; i < s->others; i++)
			at = sim->other_end[i] < sim->other_end[at] ? i : at;
		if (s->others == 0 || sim->other_end[at] > sim->now)
			return;
		sim->slot_free[0] = fmax(sim->slot_free[0], sim->other_end[at]) +
				    store_lognormal(&sim->rng, s->latency_ms / 1e3, s->latency_cv);
		sim->other_end[at] = sim->slot_free[0];
	}
}

static inline void store_send(struct store_sim *sim)
{
	const struct store *s = sim->store;
	struct store_job *job = &sim->jobs[sim->in_flight++];
	*job = (struct store_job){.sent = sim->now,
		.bytes = store_bytes(sim),
		.number = sim->number++,
		.in_flight = sim->in_flight};
	const double mean = s->latency_ms / 1e3;
	double latency = s->exponential ? mean * rng_exponential(&sim->rng)
					: store_lognormal(&sim->rng, mean, s->latency_cv);
	if (s->slow_share > 0 && rng_uniform(&sim->rng) < s->slow_share)
		latency += s->slow_ms / 1e3;
	if (job->number == 0)
		latency += s->cold_ms / 1e3;
	const double hit = rng_uniform(&sim->rng);
	if (hit < s->hit_share) {
		job->end = sim->now + 3e-5;
		return;
	}
	double start = store_let_through(sim);
	store_others(sim);
	if (s->slots > 0) {
		unsigned at = 0;
		for (unsigned i = 1; i < s->slots; i++)
			at = sim->slot_free[i] < sim->slot_free[at] ? i : at;
		start = fmax(start, sim->slot_free[at]);
		sim->slot_free[at] = start + latency;
	}
	job->end = start + latency;
	if (s->bytes_per_s > 0 && s->shared) {
		job->left = job->bytes;
		job->end = HUGE_VAL;
	} else if (s->bytes_per_s > 0) {
		sim->link_free = fmax(sim->link_free, start) + job->bytes / s->bytes_per_s;
		job->end = sim->link_free + latency;
	}
	if (isfinite(job->end))
		job->end = store_after_stalls(s, job->end);
}

static inline unsigned store_sharing(const struct store_sim *sim)
{
	unsigned n = 0;
	for (unsigned i = 0; i < sim->in_flight; i++)
		n += isinf(sim->jobs[i].end) ? 1 : 0;
	return n;
}

/* To the next event; true: a file is done, *at says which. */
static inline bool store_step(struct store_sim *sim, unsigned *at)
{
	const unsigned sharing = store_sharing(sim);
	const double rate = sharing > 0 ? sim->store->bytes_per_s / sharing : 0;
	double first = HUGE_VAL;
	bool link = false;
	for (unsigned i = 0; i < sim->in_flight; i++) {
		const struct store_job *job = &sim->jobs[i];
		const bool shares = isinf(job->end);
		const double t = shares ? sim->now + job->left / rate : job->end;
		if (t < first) {
			first = t;
			*at = i;
			link = shares;
		}
	}
	for (unsigned i = 0; i < sim->in_flight; i++)
		if (isinf(sim->jobs[i].end))
			sim->jobs[i].left -= rate * (first - sim->now);
	sim->now = fmax(sim->now, first);
	if (!link)
		return true;
	sim->jobs[*at].end =
		store_after_stalls(sim->store, sim->now + sim->store->latency_ms / 1e3);
	return false;
}

static inline void store_complete(struct store_sim *sim, unsigned at)
{
	const struct store_job job = sim->jobs[at];
	sim->jobs[at] = sim->jobs[--sim->in_flight];
	if (sim->items && sim->count < sim->room)
		sim->items[sim->count] = (struct trace_item){.number = job.number,
			.end_s = job.end,
			.bytes = (uint32_t)job.bytes,
			.in_flight = job.in_flight,
			.service_ns = (float)((job.end - job.sent) * 1e9),
			.lock_wait_ns = NAN,
			.lock_hold_ns = NAN,
			.host_ns = NAN};
	sim->count++;
	sim->bytes += (uint64_t)job.bytes;
	if (sim->store->think_ms > 0)
		sim->consumed = fmax(sim->consumed, job.end) + sim->store->think_ms / 1e3;
}

/* Nobody changes state between two events. */
static inline void store_pass(struct store_sim *sim, double from, double to, bool blocked)
{
	while (sim->m && from < to) {
		struct measurement *m = sim->m;
		const double edge = sim->cut + STORE_WINDOW_S * (double)(m->window_count + 1);
		const double until = fmin(edge, to);
		sim->blocked_s += blocked ? until - from : 0;
		sim->starved_s += fmax(until - fmax(from, sim->consumed), 0);
		from = until;
		if (until < edge || m->window_count == STORE_WINDOWS_MAX)
			return;
		struct window *w = &m->windows[m->window_count++];
		const double passed = edge - sim->cut;
		*w = (struct window){.t = edge,
			.samples = sim->count,
			.bytes_read = sim->bytes,
			.heap_used_bytes = NAN,
			.heap_free_bytes = NAN};
		w->stage_seconds[0][THREAD_BLOCKED] = sim->blocked_s;
		w->stage_seconds[0][THREAD_WORKING] = passed - sim->blocked_s;
		w->stage_seconds[1][THREAD_STARVED] = 2 * passed;
		w->stage_seconds[2][THREAD_STARVED] = sim->starved_s;
		w->stage_seconds[2][THREAD_WORKING] = passed - sim->starved_s;
	}
}

/* Reads with so many in flight until `files` are done or the time is over, then lets what is in flight come in.  A consumer
 * lets the reader be at most twice the depth ahead. */
static inline void store_read(struct store_sim *sim, unsigned depth, size_t files, double until)
{
	sim->count = 0;
	while (sim->count < files && sim->now < until) {
		const double ahead = 2.0 * depth * sim->store->think_ms / 1e3;
		while (sim->in_flight < depth && sim->in_flight < STORE_JOBS_MAX &&
			sim->consumed <= sim->now + ahead)
			store_send(sim);
		unsigned at = 0;
		const double before = sim->now;
		const bool blocked = sim->in_flight < depth;
		bool done = false;
		if (sim->in_flight == 0)
			sim->now = fmax(sim->now, sim->consumed - ahead);
		else
			done = store_step(sim, &at);
		store_pass(sim, before, sim->now, blocked);
		if (done)
			store_complete(sim, at);
	}
}

static inline void store_drain(struct store_sim *sim)
{
	unsigned at = 0;
	sim->items = NULL;
	while (sim->in_flight > 0)
		if (store_step(sim, &at))
			store_complete(sim, at);
}

static inline int store_by_number(const void *a, const void *b)
{
	const struct trace_item *x = a;
	const struct trace_item *y = b;
	return (x->number > y->number) - (x->number < y->number);
}

static inline void store_point(
	struct store_sim *sim, unsigned depth, size_t files, struct measurement *m)
{
	static struct trace_item items[STORE_POINT_FILES];
	struct read_point *p = &m->read_points[m->read_point_count++];
	const double begin = sim->now;
	sim->items = items;
	sim->room = STORE_POINT_FILES;
	store_read(sim, depth, files, begin + 1);
	const size_t n = sim->count < files ? sim->count : files;
	*p = (struct read_point){.depth = depth, .seconds = sim->now - begin, .files = n};
	double parts[STORE_PARTS] = {0};
	double squares = 0;
	for (size_t i = 0; i < n; i++) {
		const double share = (items[i].end_s - begin) / p->seconds * STORE_PARTS;
		parts[share < STORE_PARTS ? (size_t)share : STORE_PARTS - 1]++;
		p->bytes += items[i].bytes;
		p->latency_mean_ns += (double)items[i].service_ns / (double)n;
		squares += pow((double)items[i].service_ns, 2) / (double)n;
	}
	p->latency_deviation_ns = sqrt(fmax(squares - pow(p->latency_mean_ns, 2), 0));
	p->rate_error = statistics_deviation(parts, STORE_PARTS) / sqrt(STORE_PARTS) /
			((double)n / STORE_PARTS);
	store_drain(sim);
}

static inline struct trace *store_trace(struct traces *traces, const char *name, size_t room)
{
	struct trace *trace = &traces->stages[traces->stage_count++];
	(void)snprintf(trace->stage, sizeof trace->stage, "%s", name);
	trace->items = calloc(room, sizeof *trace->items);
	assert_non_null(trace->items);
	trace->block = STORE_BLOCK;
	return trace;
}

static inline struct stage_measurement *store_stage(
	struct measurement *m, const char *name, unsigned workers, double busy)
{
	struct stage_measurement *stage = &m->stages[m->stage_count++];
	*stage = (struct stage_measurement){.workers = workers,
		.items = m->samples,
		.run_queue_seconds = 0,
		.io_wait_seconds = NAN,
		.lock_wait_seconds = NAN,
		.lock_held_seconds = NAN};
	(void)snprintf(stage->name, sizeof stage->name, "%s", name);
	const double all = m->measured_seconds * workers;
	stage->seconds[THREAD_WORKING] = busy * all;
	stage->seconds[THREAD_STARVED] = (1 - busy) * all;
	stage->capacity = m->throughput / busy;
	return stage;
}

/* What was read are requests that hold so many samples each, which the other stages see. */
static inline void store_cut_samples(struct measurement *m, unsigned samples, unsigned batch)
{
	m->facts.reads_large = true;
	m->read_requests = m->samples;
	m->samples *= samples;
	m->batches = m->samples / batch;
	m->throughput *= samples;
	for (size_t i = 0; i < m->window_count; i++)
		m->windows[i].samples *= samples;
}

static inline void store_repeat(const struct store *s, uint64_t repeat, unsigned batch,
	struct measurement *m, struct traces *traces)
{
	struct store_sim *sim = calloc(1, sizeof *sim);
	assert_non_null(sim);
	sim->store = s;
	rng_init(&sim->rng, 77 + s->seed, repeat);
	*m = (struct measurement){.status = MEASUREMENT_OK,
		.accounted = 1,
		.dataset_samples = 100000,
		.file_bytes_mean = s->bytes_mean > 0 ? s->bytes_mean : 1e5,
		.page_cache_share = s->hit_share,
		.oversleep_mean_ns = NAN,
		.steal_share = NAN};
	(void)snprintf(m->engine, sizeof m->engine, "%s", s->blocking ? "pread" : "io_uring");
	*traces = (struct traces){0};
	if (!s->one_point) {
		struct trace *ramp = store_trace(traces, TRACE_READ_RAMP, TRACE_RAMP_FILES_MAX);
		sim->items = ramp->items;
		sim->room = TRACE_RAMP_FILES_MAX;
		store_read(sim, s->depth, TRACE_RAMP_FILES_MAX, HUGE_VAL);
		ramp->count = sim->room;
		store_drain(sim);
		qsort(ramp->items, ramp->count, sizeof *ramp->items, store_by_number);
		if (s->depth > 1)
			store_point(sim, s->depth / 2, STORE_POINT_FILES, m);
		if (!s->blocking)
			store_point(sim, s->depth * 2, STORE_POINT_FILES, m);
	}
	sim->items = NULL;
	store_read(sim, s->depth, s->depth, HUGE_VAL);
	m->cut_seconds = sim->cut = sim->now;
	m->windows = calloc(STORE_WINDOWS_MAX, sizeof *m->windows);
	assert_non_null(m->windows);
	m->window_seconds = STORE_WINDOW_S;
	sim->bytes = 0;
	sim->m = m;
	struct trace *read = store_trace(traces, "read", STORE_FILES_MAX);
	sim->items = read->items;
	sim->room = STORE_FILES_MAX;
	store_read(
		sim, s->depth, STORE_FILES_MAX, s->seconds > 0 ? sim->now + s->seconds : HUGE_VAL);
	read->count = sim->count < sim->room ? sim->count : sim->room;
	m->measured_seconds = sim->now - m->cut_seconds;
	m->samples = read->count;
	m->batches = read->count / batch;
	m->throughput = (double)read->count / m->measured_seconds;
	if (s->samples > 0)
		store_cut_samples(m, s->samples, batch);
	const double blocked = sim->blocked_s / m->measured_seconds;
	const double starved = sim->starved_s / m->measured_seconds;
	struct stage_measurement *stage = store_stage(m, "read", 1, 1 - blocked);
	stage->seconds[THREAD_STARVED] = 0;
	stage->seconds[THREAD_BLOCKED] = sim->blocked_s;
	for (size_t i = 0; i < read->count; i++) {
		histogram_add(&stage->service, (uint64_t)read->items[i].service_ns, 1);
		m->bytes_read += read->items[i].bytes;
	}
	m->bytes_read_per_s = (double)m->bytes_read / m->measured_seconds;
	stage->cpu_seconds = 5e-6 * (double)read->count;
	stage = store_stage(m, "decode", 2, fmin(5e-5 * m->throughput / 2, 0.5));
	stage->cpu_seconds = stage->seconds[THREAD_WORKING];
	stage->seconds[THREAD_BLOCKED] = 2 * sim->blocked_s * 0.9;
	stage->seconds[THREAD_STARVED] = 2 * m->measured_seconds - stage->seconds[THREAD_WORKING] -
					 stage->seconds[THREAD_BLOCKED];
	const double step = s->think_ms > 0 ? 1 - starved : fmin(1e-4 * m->throughput / batch, 0.5);
	stage = store_stage(m, "step", 1, step);
	stage->items = m->batches;
	stage->per_batch = stage->device = true;
	stage->cpu_seconds = 0;
	m->step_utilisation = stage->seconds[THREAD_WORKING] / m->measured_seconds;
	qsort(read->items, read->count, sizeof *read->items, store_by_number);
	free(sim);
}

/* A whole point, read-bound: what follows costs 50 us a file on each of two workers and 100 us a batch. */
struct store_run {
	struct config config;
	struct measurement measurements[STORE_REPEATS];
	struct traces traces[STORE_REPEATS];
	const struct measurement *repeats[STORE_REPEATS];
	const struct traces *traces_list[STORE_REPEATS];
	struct point_facts facts;
	struct point_summary summary;
	struct diagnose_input input;
};

static inline void store_other_traces(struct traces *traces, const struct measurement *m)
{
	struct trace *decode = store_trace(traces, "decode", m->samples);
	struct trace *step = store_trace(traces, "step", m->batches + 1);
	for (decode->count = 0; decode->count < m->samples; decode->count++)
		decode->items[decode->count] = (struct trace_item){.number = decode->count,
			.end_s = m->cut_seconds + (double)decode->count / m->throughput,
			.worker = (uint32_t)(decode->count % 2),
			.service_ns = 5e4F,
			.lock_wait_ns = 0,
			.lock_hold_ns = 0,
			.host_ns = NAN};
	for (step->count = 0; step->count < m->batches; step->count++)
		step->items[step->count] = (struct trace_item){.number = step->count,
			.service_ns = 1e5F,
			.lock_wait_ns = NAN,
			.lock_hold_ns = NAN};
}

static inline struct store_run *store_open(const struct store *s)
{
	enum { BATCH = 16 };
	struct store_run *run = calloc(1, sizeof *run);
	struct error err = {""};
	char depth[48];
	assert_non_null(run);
	config_init(&run->config);
	(void)snprintf(depth, sizeof depth, "read.depth=%u", s->depth);
	const char *const settings[] = {"step.backend=emulated", "step.time=100us", "batch.size=16",
		"decode.workers=2", "prefetch.depth=4", depth};
	for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
		if (config_set(&run->config, settings[i], &err))
			fail_msg("%s", err.text);
	for (size_t r = 0; r < STORE_REPEATS; r++) {
		store_repeat(s, r, BATCH, &run->measurements[r], &run->traces[r]);
		store_other_traces(&run->traces[r], &run->measurements[r]);
		run->measurements[r].facts.step_emulated = true;
		run->repeats[r] = &run->measurements[r];
		run->traces_list[r] = &run->traces[r];
	}
	run->facts = (struct point_facts){.cores = 8,
		.decode_workers = 2,
		.read_threads = 1,
		.read_depth = s->depth,
		.batch_size = BATCH,
		.prefetch_depth = 4,
		.step_emulated = true,
		.reads_large = s->samples > 0,
		.seed = 1};
	assert_int_equal(
		summary_of_point(run->repeats, STORE_REPEATS, &run->facts, &run->summary, &err), 0);
	run->input = (struct diagnose_input){.point = &run->summary,
		.facts = &run->facts,
		.source = {.config = &run->config,
			.repeats = run->repeats,
			.traces = run->traces_list,
			.count = STORE_REPEATS,
			.cores = 8,
			.contention = NAN}};
	return run;
}

static inline void store_close(struct store_run *run)
{
	for (size_t r = 0; r < STORE_REPEATS; r++) {
		measurement_release(&run->measurements[r]);
		traces_release(&run->traces[r]);
	}
	point_summary_release(&run->summary);
	config_release(&run->config);
	free(run);
}

/* --- reads alone, forth and back: as many, twice and four times as many in flight -------- */

enum { STORE_ALONE_ARMS = 3, STORE_ALONE_BLOCKS = 2 * STORE_ALONE_ARMS };

/* One block on a store that is `s` by now. */
static inline struct read_block store_alone_block(
	const struct store *s, unsigned depth, bool as_set, const char *part)
{
	static struct measurement m;
	static struct store_sim sim;
	static uint64_t seed = 70;
	struct read_block block = {.key = "read.depth", .value = depth, .as_set = as_set};
	sim = (struct store_sim){.store = s};
	rng_init(&sim.rng, seed++, 1);
	m.read_point_count = 0;
	store_read(&sim, depth, 2 * depth, HUGE_VAL); /* its warm-up */
	store_drain(&sim);
	store_point(&sim, depth, s->block_files ? s->block_files : STORE_POINT_FILES, &m);
	block.read = m.read_points[0];
	(void)snprintf(block.part, sizeof block.part, "%s", part);
	return block;
}

/* More latency by so many milliseconds in each block. */
static inline size_t store_alone(
	const struct store *s, double ages_ms, struct read_block blocks[STORE_ALONE_BLOCKS])
{
	for (unsigned i = 0; i < STORE_ALONE_BLOCKS; i++) {
		const unsigned arm = i < STORE_ALONE_ARMS ? i : STORE_ALONE_BLOCKS - 1 - i;
		struct store now = *s;
		now.latency_ms += ages_ms * i;
		blocks[i] = store_alone_block(&now, s->depth << arm, arm == 0, "");
	}
	return STORE_ALONE_BLOCKS;
}

/* Fitted to one repetition and these blocks. */
static inline struct storage store_fit_alone(
	const struct store *s, const struct read_block *blocks, size_t count)
{
	static struct measurement m;
	static struct traces t;
	struct storage out;
	store_repeat(s, 0, 16, &m, &t);
	const struct measurement *repeats[] = {&m};
	const struct traces *traces[] = {&t};
	const struct storage_evidence evidence = {.repeats = repeats,
		.traces = traces,
		.count = 1,
		.read_blocks = blocks,
		.read_block_count = count};
	storage_fit(&evidence, &out);
	measurement_release(&m);
	traces_release(&t);
	return out;
}

#endif
