/* Decode workers.
 *
 * The OpenMP region runs on a thread of its own, since the control thread has other work; that thread
 * is worker 0.  libgomp is not instrumented for thread sanitizers, so under them the same workers are
 * started as plain threads: what is shared between workers goes through the exchange's lock and the
 * crew's either way. */
#include "pipelines/team.h"

#include "harness/base/clock.h"
#include "harness/measure/span.h"
#include "workloads/backend/backend.h"
#include "workloads/sample/sample.h"

#include <errno.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SAMPLED_VISITS =
		8, /* untimed, every so many visits are timed to learn how tiny samples are */
};

struct team {
	struct team_options options;
	pthread_t thread;
	bool started;
	struct worker *workers; /* (options.workers) */
};

struct worker {
	struct seat seat;
	struct team *team;
	unsigned index;
	struct thread_meter *meter;
	struct sample_maker maker;
	struct sample_task task; /* of the sample that is being made */
	uint64_t start_ns;
	uint64_t visits;
	uint64_t visit_ns; /* when it took what it decodes; 0: not timed */
};

/* A sample that the end of the run broke off is neither good nor bad.  One that took this long by
 * then may be why there are so few others: it is named. */
static void break_off(struct worker *w, struct blob *blob)
{
	const uint64_t now_ns = clock_now_ns();
	blob->bad = true;
	if (w->visit_ns > 0)
		bad_samples_broken_off(
			w->team->options.bad, blob->ticket.sample, now_ns - w->visit_ns);
	w->visit_ns = now_ns; /* the others that it had taken are not to blame */
}

/* Where it comes from, and where it goes. */
static void set_task(struct worker *w, const struct blob *blob)
{
	const struct team_options *o = &w->team->options;
	const struct sample_sizes *const sizes = &o->sizes;
	struct slot *const slot = blob->slot;
	const size_t place = blob->ticket.place;
	struct sample_task *const task = &w->task;
	task->bytes = blob->request.data;
	task->size = blob->request.size;
	task->seed = blob->ticket.seed;
	task->sample = &o->dataset->samples[blob->ticket.sample];
	task->labels = slot->labels + place * sizes->label_bytes;
	task->out = slot->data + place * sizes->bytes;
	if (!slot->notes)
		return;
	task->note = slot->notes + place * sizes->note_bytes;
	task->raw = slot->data;
	task->raw_used = &slot->used;
}

static void decode(struct worker *w, struct blob *blob)
{
	const struct team_options *o = &w->team->options;
	const struct read_request *request = &blob->request;
	set_task(w, blob);
	blob->bad = request->status != 0;
	if (request->status) {
		w->maker.blank(&w->task);
		bad_samples_add_unread(o->bad, blob->ticket.sample, -request->status);
		return;
	}
	struct error err;
	err.text[0] = '\0';
	const int code = w->maker.make(w->maker.worker, &w->task, &err);
	if (code == -EINTR) {
		break_off(w, blob);
	} else if (code) {
		blob->bad = true;
		w->maker.blank(&w->task);
		bad_samples_add(o->bad, blob->ticket.sample, err.text);
	}
}

/* The same with planted conditions. */
static void decode_injected(struct worker *w, struct blob *blob, struct lock_meter *lock)
{
	struct injection *injection = w->team->options.injection;
	const uint64_t began_ns = injection_begin(injection, &blob->ticket, lock);
	decode(w, blob);
	injection_end(injection, w->index, &blob->ticket, lock, began_ns, w->start_ns,
		&w->team->options.crew->stopping);
}

static void trace(const struct worker *w, const struct blob *blob, uint64_t service_ns,
	uint64_t ended_ns, uint64_t lock_wait_ns, uint64_t lock_hold_ns)
{
	const struct trace_entry item = {
		.number = blob->ticket.number,
		.end_ns = ended_ns,
		.service_ns = (float)service_ns,
		.decode = {(float)lock_wait_ns, (float)lock_hold_ns},
	};
	trace_log_put(&w->meter->trace, &item);
}

/* In the timeline. */
static void team_show(const struct blob *blob, uint64_t began_ns, uint64_t ended_ns)
{
	timeline_span(TIMELINE_DECODE, began_ns, ended_ns, blob->ticket.number,
		(uint32_t)blob->ticket.batch);
}

/* Items with planted conditions, each timed for itself; *now_ns moves on.  The mean time of one. */
static uint64_t decode_each(struct worker *w, struct blob *const *items, size_t n, uint64_t *now_ns)
{
	struct lock_meter *const lock = &w->meter->lock;
	const uint64_t began_ns = *now_ns;
	for (size_t i = 0; i < n; i++) {
		const uint64_t waited_ns = lock_meter_wait_ns(lock, *now_ns);
		const uint64_t held_ns = lock_meter_hold_ns(lock);
		const bool shown = timeline_is_on();
		w->visit_ns = *now_ns;
		decode_injected(w, items[i], lock);
		const uint64_t ended_ns = clock_now_ns();
		team_show(items[i], shown ? *now_ns : 0, ended_ns);
		thread_meter_add(w->meter, ended_ns, ended_ns - *now_ns, 1);
		trace(w, items[i], ended_ns - *now_ns, ended_ns,
			lock_meter_wait_ns(lock, ended_ns) - waited_ns,
			lock_meter_hold_ns(lock) - held_ns);
		*now_ns = ended_ns;
	}
	return (*now_ns - began_ns) / n;
}

/* Of items that were timed together only the mean is known. */
static void meter_chunk(
	struct worker *w, struct blob *const *items, size_t n, uint64_t service_ns, uint64_t now_ns)
{
	thread_meter_add(w->meter, now_ns, service_ns, (uint32_t)n);
	for (size_t i = 0; i < n; i++)
		trace(w, items[i], service_ns, now_ns, 0, 0);
}

/* A sample, and in a timeline when it began and ended; the next one begins at the end that is returned (0: not
 * timed). */
static uint64_t decode_shown(struct worker *w, struct blob *blob, bool injected, uint64_t began_ns)
{
	if (injected)
		decode_injected(w, blob, NULL);
	else
		decode(w, blob);
	if (__builtin_expect(began_ns == 0, 1))
		return 0;
	const uint64_t ended_ns = clock_now_ns();
	team_show(blob, began_ns, ended_ns);
	return ended_ns;
}

/* Decodes n items and returns the mean time of one, 0 if it was not taken; *now_ns moves on. */
static uint64_t decode_items(
	struct worker *w, struct blob *const *items, size_t n, uint64_t *now_ns)
{
	const bool injected = w->team->options.injection->decode_active;
	if (injected && w->meter)
		return decode_each(w, items, n, now_ns);
	const bool sampled = !w->meter && w->visits++ % SAMPLED_VISITS == 0;
	const uint64_t began_ns = sampled ? clock_now_ns() : *now_ns;
	w->visit_ns = began_ns;
	uint64_t shown_ns = timeline_mark();
	for (size_t i = 0; i < n; i++) {
		/* The next file's first lines are on another core: ask for them meanwhile. */
		if (i + 1 < n)
			__builtin_prefetch(items[i + 1]->request.data);
		shown_ns = decode_shown(w, items[i], injected, shown_ns);
	}
	if (!w->meter && !sampled)
		return 0;
	const uint64_t ended_ns = shown_ns > 0 ? shown_ns : clock_now_ns();
	const uint64_t service_ns = (ended_ns - began_ns) / n;
	if (w->meter) {
		meter_chunk(w, items, n, service_ns, ended_ns);
		*now_ns = ended_ns;
	}
	return service_ns;
}

static void work(struct worker *w)
{
	struct exchange *x = w->team->options.exchange;
	const struct backend_ops *const backend = w->team->options.backend;
	uint64_t now_ns = w->meter ? w->start_ns : 0;
	uint64_t service_ns = 0;
	struct blob *items[FLOW_CHUNK_MAX];
	size_t n = 0;
	while ((n = exchange_decode(x, &w->seat, items, n, service_ns, &now_ns)) > 0) {
		backend_mark(backend, STAGE_DECODE_NAME);
		service_ns = decode_items(w, items, n, &now_ns);
		backend_mark(backend, NULL);
	}
}

static void run_worker(struct worker *w)
{
	const struct team_options *o = &w->team->options;
	struct error err = {0};
	(void)placement_bind(o->placement, o->first_place + w->index, 1);
	span_thread_begin(STAGE_DECODE, w->meter);
	const struct sample_options options = {
		.config = o->config, .dataset = o->dataset, .stop = &o->crew->stopping};
	w->task.sizes = &o->sizes;
	const int code = sample_maker_open(&w->maker, &options, &o->sizes, &err);
	if (code)
		crew_fail(o->crew, code, &err);
	if (crew_arrive(o->crew, &w->start_ns)) {
		span_thread_start(w->meter, THREAD_STARVED, w->start_ns, o->segment_ns);
		work(w);
	}
	sample_maker_close(&w->maker);
	span_thread_end(w->meter);
}

#if defined(__SANITIZE_THREAD__)

static void *run_plain(void *context)
{
	run_worker(context);
	return NULL;
}

static void run_team(struct team *team)
{
	const unsigned count = team->options.workers;
	pthread_t *threads = calloc(count, sizeof *threads);
	unsigned started = 1;
	while (threads && started < count &&
		pthread_create(&threads[started], NULL, run_plain, &team->workers[started]) == 0)
		started++;
	if (started < count) {
		struct error err;
		crew_fail(team->options.crew,
			error_set(&err, -EAGAIN, "cannot start decode worker %u of %u", started + 1,
				count),
			&err);
	}
	run_worker(&team->workers[0]);
	for (unsigned i = 1; i < started; i++)
		(void)pthread_join(threads[i], NULL);
	free(threads);
}

#else

static void run_team(struct team *team)
{
	const unsigned count = team->options.workers;
	omp_set_dynamic(0);
#pragma omp parallel num_threads(count)
	{
		const unsigned index = (unsigned)omp_get_thread_num();
		const unsigned got = (unsigned)omp_get_num_threads();
		if (got == count) {
			run_worker(&team->workers[index]);
		} else if (index == 0) {
			struct error err;
			crew_fail(team->options.crew,
				error_set(&err, -EAGAIN,
					"decode.workers = %u, but OpenMP gave %u threads "
					"(is OMP_THREAD_LIMIT set?)",
					count, got),
				&err);
		}
	}
}

#endif

static void *team_thread(void *context)
{
	run_team(context);
	return NULL;
}

static void *do_nothing(void *context)
{
	uint64_t start_ns;
	(void)crew_arrive(context, &start_ns);
	return NULL;
}

/* libgomp ends the whole program when it cannot start a thread, so it is tried out beforehand: as many
 * threads at once, which end when the last has started. */
static int try_threads(unsigned count, struct error *err)
{
	struct crew gate;
	pthread_t *threads = calloc(count, sizeof *threads);
	if (!threads || crew_open(&gate, 0, NULL, NULL)) {
		free(threads);
		return error_set(err, -ENOMEM, "out of memory");
	}
	unsigned started = 0;
	int code = 0;
	while (!code && started < count) {
		code = pthread_create(&threads[started], NULL, do_nothing, &gate);
		started += code == 0;
	}
	crew_start(&gate, 0);
	for (unsigned i = 0; i < started; i++)
		(void)pthread_join(threads[i], NULL);
	crew_close(&gate);
	free(threads);
	return code ? error_set_errno(
			      err, code, "cannot start %u decode workers, only %u", count, started)
		    : 0;
}

int team_start(struct team **out, const struct team_options *options, struct error *err)
{
	struct team *team = calloc(1, sizeof *team);
	if (!team)
		return error_set(err, -ENOMEM, "out of memory");
	*out = team;
	team->options = *options;
	team->workers =
		aligned_alloc(_Alignof(struct worker), options->workers * sizeof *team->workers);
	if (!team->workers)
		return error_set(err, -ENOMEM, "out of memory");
	memset(team->workers, 0, options->workers * sizeof *team->workers);
	for (unsigned i = 0; i < options->workers; i++) {
		struct worker *w = &team->workers[i];
		w->team = team;
		w->index = i;
		w->meter = options->meters ? &options->meters[i] : NULL;
		w->seat.clock = w->meter ? &w->meter->clock : NULL;
		w->seat.lock = w->meter ? &w->meter->lock : NULL;
	}
	int code = try_threads(options->workers, err);
	if (code)
		return code;
	code = pthread_create(&team->thread, NULL, team_thread, team);
	if (code)
		return error_set_errno(err, code, "cannot start the decode team");
	team->started = true;
	(void)pthread_setname_np(team->thread, "mlb-decode");
	return 0;
}

bool team_join(struct team *team, uint64_t deadline_ns)
{
	if (team && team->started && crew_join(team->thread, deadline_ns))
		team->started = false;
	return !team || !team->started;
}

void team_free(struct team *team)
{
	if (!team)
		return;
	free(team->workers);
	free(team);
}
