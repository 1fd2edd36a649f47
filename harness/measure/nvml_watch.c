/* The threads that ask.  Only they call NVML; whoever started them waits for them so long and no longer,
 * and leaves them what they hold: a call that hangs costs the memory of its watch, never the run. */
#include "harness/measure/nvml_watch.h"

#include "harness/base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the time, in calls; above it a sampler slows down. */
static const double SHARE_IN_CALLS_MOST = 0.1;
static const uint64_t PERIOD_MOST_NS = 60 * NS_PER_S;

/* --- under the lock ---------------------------------------------------------------------------------- */

static void lock(struct nvml_watch *w)
{
	(void)pthread_mutex_lock(&w->lock);
}

static void unlock(struct nvml_watch *w)
{
	(void)pthread_mutex_unlock(&w->lock);
}

/* Waits for a change until a moment; false: it is there. */
static bool wait_until(struct nvml_watch *w, uint64_t t_ns)
{
	const struct timespec at = {
		.tv_sec = (time_t)(t_ns / NS_PER_S), .tv_nsec = (long)(t_ns % NS_PER_S)};
	return pthread_cond_timedwait(&w->changed, &w->lock, &at) != ETIMEDOUT;
}

static void release(struct nvml_watch *w)
{
	lock(w);
	const bool last = --w->holders == 0;
	unlock(w);
	if (!last)
		return;
	for (size_t pace = 0; pace < NVML_PACES; pace++)
		for (size_t i = 0; i < w->count; i++)
			nvml_series_close(&w->samplers[pace].series[i]);
	(void)pthread_cond_destroy(&w->changed);
	(void)pthread_mutex_destroy(&w->lock);
	free(w);
}

static bool is_stopping(struct nvml_watch *w)
{
	lock(w);
	const bool stopping = w->stopping;
	unlock(w);
	return stopping;
}

/* --- sampling ------------------------------------------------------------------------------------------ */

static void ask_device(struct nvml_sampler *s, size_t device)
{
	struct nvml_watch *w = s->watch;
	const struct nvml_group *group = s->group;
	struct nvml_sample sample = {.t_ns = clock_now_ns()};
	int codes[NVML_GROUP_MAX];
	for (size_t i = 0; i < group->count; i++) {
		/* Only this thread writes codes. */
		codes[i] = s->series[device].codes[i];
		sample.values[i] = NAN;
		if (!nvml_code_is_final(codes[i]))
			codes[i] = nvml_ask(
				w->library, w->devices[device], group->list[i], &sample.values[i]);
	}
	lock(w);
	if (nvml_series_add(&s->series[device], &sample, codes) && device == 0)
		s->period_ns = s->period_ns < PERIOD_MOST_NS ? 2 * s->period_ns : s->period_ns;
	s->cpu_ns = clock_thread_cpu_ns();
	unlock(w);
}

/* Samples on a grid; one that was missed is left out. */
static void sample_all(struct nvml_sampler *s)
{
	struct nvml_watch *w = s->watch;
	uint64_t due_ns = clock_now_ns();
	while (!is_stopping(w)) {
		const uint64_t began_ns = clock_now_ns();
		for (size_t i = 0; i < w->count && !is_stopping(w); i++)
			if (w->devices[i])
				ask_device(s, i);
		const uint64_t now_ns = clock_now_ns();
		lock(w);
		if ((double)(now_ns - began_ns) > SHARE_IN_CALLS_MOST * (double)s->period_ns &&
			s->period_ns < PERIOD_MOST_NS)
			s->period_ns *= 2;
		due_ns += (now_ns - due_ns) / s->period_ns * s->period_ns + s->period_ns;
		while (!w->stopping && wait_until(w, due_ns))
			continue;
		unlock(w);
	}
}

/* --- opening, on the quick thread ---------------------------------------------------------------------- */

static void enter(struct nvml_watch *w, enum nvml_phase phase, const char *why)
{
	lock(w);
	w->phase = phase;
	(void)snprintf(w->why, sizeof w->why, "%s", why);
	(void)pthread_cond_broadcast(&w->changed);
	unlock(w);
}

static bool open_nvml(struct nvml_watch *w)
{
	char why[sizeof w->why];
	w->library = nvml_library_open(why, sizeof why);
	const int code = w->library ? w->library->init() : NVML_OK;
	if (code)
		(void)snprintf(why, sizeof why, "NVML does not start: %s", nvml_code_words(code));
	if (!w->library || code) {
		enter(w, NVML_PHASE_ABSENT, why);
		return false;
	}
	for (size_t i = 0; i < w->count; i++) {
		w->codes[i] = nvml_find(w->library, w->buses[i], &w->devices[i]);
		w->clock_max[i] = NAN;
		if (w->codes[i])
			w->devices[i] = NULL;
		else
			(void)nvml_ask(
				w->library, w->devices[i], NVML_SM_CLOCK_MAX, &w->clock_max[i]);
	}
	enter(w, NVML_PHASE_READY, "");
	return true;
}

static bool await_nvml(struct nvml_watch *w)
{
	lock(w);
	while (w->phase == NVML_PHASE_OPENING && !w->stopping)
		(void)pthread_cond_wait(&w->changed, &w->lock);
	const bool ready = w->phase == NVML_PHASE_READY;
	unlock(w);
	return ready;
}

static bool is_last(const struct nvml_watch *w)
{
	unsigned running = 0;
	for (size_t i = 0; i < NVML_PACES; i++)
		running += w->samplers[i].running;
	return running == 1;
}

/* The last of the threads has NVML closed.  One that nobody waits for any more says that it is back. */
static void end(struct nvml_sampler *s)
{
	struct nvml_watch *w = s->watch;
	lock(w);
	if (is_last(w) && w->phase == NVML_PHASE_READY) {
		unlock(w);
		(void)w->library->shutdown();
		lock(w);
	}
	s->running = false;
	const bool back = w->given_up;
	(void)pthread_cond_broadcast(&w->changed);
	unlock(w);
	if (back)
		nvml_come_back();
}

static void *run(void *context)
{
	struct nvml_sampler *s = context;
	struct nvml_watch *w = s->watch;
	if (s->group == &nvml_quick ? open_nvml(w) : await_nvml(w))
		sample_all(s);
	end(s);
	release(w);
	return NULL;
}

/* --- from outside ---------------------------------------------------------------------------------------- */

static int open_lock(struct nvml_watch *w)
{
	pthread_condattr_t attributes;
	if (pthread_mutex_init(&w->lock, NULL))
		return -ENOMEM;
	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&w->changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	return 0;
}

static int open_watch(struct nvml_watch **out, const struct nvml_watch_options *o)
{
	struct nvml_watch *w = calloc(1, sizeof *w);
	if (!w || open_lock(w)) {
		free(w);
		return -ENOMEM;
	}
	w->holders = 1;
	w->count = o->count < DEVICES_MAX ? o->count : DEVICES_MAX;
	int code = 0;
	for (size_t pace = 0; pace < NVML_PACES; pace++) {
		struct nvml_sampler *s = &w->samplers[pace];
		s->watch = w;
		s->group = pace == NVML_PACE_QUICK ? &nvml_quick : &nvml_slow;
		s->period_ns = pace == NVML_PACE_QUICK ? o->period_ns : o->pcie_period_ns;
		for (size_t i = 0; i < w->count && !code; i++)
			code = nvml_series_open(&s->series[i], s->group);
	}
	for (size_t i = 0; i < w->count; i++) {
		(void)snprintf(w->buses[i], sizeof w->buses[i], "%s", o->buses[i]);
		w->codes[i] = NVML_NOT_ASKED;
	}
	if (code)
		release(w);
	*out = code ? NULL : w;
	return code;
}

/* Who starts a sampler holds the lock, so that it sees all that was started. */
static int start_sampler(struct nvml_sampler *s)
{
	pthread_t thread;
	s->running = true;
	s->watch->holders++;
	const int code = pthread_create(&thread, NULL, run, s);
	if (code) {
		s->running = false;
		s->watch->holders--;
		return -code;
	}
	(void)pthread_setname_np(thread, "mlb-nvml");
	(void)pthread_detach(thread);
	return 0;
}

int nvml_watch_start(
	struct nvml_watch **out, const struct nvml_watch_options *options, struct error *err)
{
	int code = open_watch(out, options);
	if (code)
		return error_set(err, code, "out of memory for the samples of NVML");
	struct nvml_watch *w = *out;
	w->started_ns = clock_now_ns();
	if (nvml_hangs()) {
		enter(w, NVML_PHASE_ABSENT, NVML_HANGS);
		return 0;
	}
	lock(w);
	for (size_t i = 0; i < NVML_PACES && !code; i++)
		code = start_sampler(&w->samplers[i]);
	w->stopping = code;
	(void)pthread_cond_broadcast(&w->changed);
	unlock(w);
	if (!code)
		return 0;
	release(w);
	*out = NULL;
	return error_set_errno(err, -code, "cannot start a thread to ask NVML");
}

void nvml_watch_stop(struct nvml_watch *w, uint64_t patience_ns)
{
	const uint64_t until_ns = clock_now_ns() + patience_ns;
	lock(w);
	w->stopping = true;
	w->stopped_ns = clock_now_ns();
	(void)pthread_cond_broadcast(&w->changed);
	for (size_t i = 0; i < NVML_PACES; i++) {
		while (w->samplers[i].running &&
			(wait_until(w, until_ns) || clock_now_ns() < until_ns))
			continue;
		w->given_up = w->given_up || w->samplers[i].running;
	}
	for (size_t i = 0; w->given_up && i < NVML_PACES; i++)
		if (w->samplers[i].running)
			nvml_abandon();
	unlock(w);
}

void nvml_watch_free(struct nvml_watch *w)
{
	if (w)
		release(w);
}
