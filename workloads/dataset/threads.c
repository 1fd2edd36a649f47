/* The team: items are handed out by an atomic counter, so order of completion varies and results
 * must not depend on it. */
#include "workloads/dataset/threads.h"

#include "harness/base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

enum { TICK_MS = 100 };

struct team {
	const struct team_job *job;
	atomic_uint_fast64_t next, done;
	atomic_bool halt; /* an item failed */
	pthread_mutex_t lock;
	pthread_cond_t idle; /* running has become 0 */
	unsigned running;
	int code; /* of the first failure, under lock, as is first */
	struct error first;
};

struct member {
	struct team *team;
	unsigned worker;
	pthread_t thread;
};

static bool should_stop(const struct team *team)
{
	return atomic_load_explicit(&team->halt, memory_order_relaxed) ||
	       (team->job->stop && atomic_load_explicit(team->job->stop, memory_order_relaxed));
}

static void team_fail(struct team *team, int code, const struct error *err)
{
	(void)pthread_mutex_lock(&team->lock);
	if (!team->code) {
		team->code = code;
		team->first = *err;
	}
	(void)pthread_mutex_unlock(&team->lock);
	atomic_store(&team->halt, true);
}

static void *team_work(void *argument)
{
	const struct member *member = argument;
	struct team *team = member->team;
	const struct team_job *job = team->job;
	while (!should_stop(team)) {
		const uint64_t index = atomic_fetch_add(&team->next, 1);
		if (index >= job->count)
			break;
		struct error err = {""};
		const int code = job->item(job->context, member->worker, index, &err);
		if (code < 0)
			team_fail(team, code, &err);
		else
			atomic_fetch_add(&team->done, 1);
	}
	(void)pthread_mutex_lock(&team->lock);
	if (--team->running == 0)
		(void)pthread_cond_signal(&team->idle);
	(void)pthread_mutex_unlock(&team->lock);
	return NULL;
}

unsigned team_threads(unsigned asked)
{
	unsigned threads = asked;
	if (threads == 0) {
		cpu_set_t cores;
		threads = sched_getaffinity(0, sizeof(cores), &cores) == 0
				  ? (unsigned)CPU_COUNT(&cores)
				  : 1;
	}
	return threads > TEAM_THREADS_MAX ? TEAM_THREADS_MAX : threads;
}

/* Starts as many threads as it can, with every signal blocked; returns how many. */
static unsigned team_start_threads(struct team *team, struct member *members, unsigned wanted)
{
	sigset_t all, before;
	unsigned started = 0;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	(void)pthread_mutex_lock(&team->lock);
	for (; started < wanted; started++) {
		members[started] = (struct member){.team = team, .worker = started};
		if (pthread_create(&members[started].thread, NULL, team_work, &members[started]))
			break;
		team->running++;
	}
	(void)pthread_mutex_unlock(&team->lock);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

static void team_tick(struct team *team)
{
	struct error err = {""};
	const struct team_job *job = team->job;
	const int code = job->tick ? job->tick(job->context, atomic_load(&team->done), &err) : 0;
	if (code < 0)
		team_fail(team, code, &err);
}

/* Until every thread has finished. */
static void wait_idle(struct team *team)
{
	uint64_t deadline = clock_now_ns();
	(void)pthread_mutex_lock(&team->lock);
	while (team->running > 0) {
		deadline += TICK_MS * NS_PER_MS;
		const struct timespec until = {.tv_sec = (time_t)(deadline / NS_PER_S),
			.tv_nsec = (long)(deadline % NS_PER_S)};
		int late = 0;
		while (team->running > 0 && !late)
			late = pthread_cond_clockwait(
				&team->idle, &team->lock, CLOCK_MONOTONIC, &until);
		if (team->running == 0)
			break;
		(void)pthread_mutex_unlock(&team->lock);
		team_tick(team);
		(void)pthread_mutex_lock(&team->lock);
	}
	(void)pthread_mutex_unlock(&team->lock);
}

int team_run(const struct team_job *job, struct error *err)
{
	struct team team = {.job = job};
	unsigned threads = job->threads ? job->threads : 1;
	if (threads > job->count)
		threads = job->count ? (unsigned)job->count : 1;
	struct member *members = calloc(threads, sizeof(*members));
	if (!members)
		return error_set(err, -ENOMEM, "no memory for %u threads", threads);
	(void)pthread_mutex_init(&team.lock, NULL);
	(void)pthread_cond_init(&team.idle, NULL);
	const unsigned started = team_start_threads(&team, members, threads);
	if (started == 0) {
		team.running = 1;
		(void)team_work(&members[0]);
	}
	wait_idle(&team);
	for (unsigned i = 0; i < started; i++)
		(void)pthread_join(members[i].thread, NULL);
	team_tick(&team);
	free(members);
	(void)pthread_cond_destroy(&team.idle);
	(void)pthread_mutex_destroy(&team.lock);
	if (team.code)
		return error_set(err, team.code, "%s", team.first.text);
	if (atomic_load(&team.done) < job->count)
		return error_set(err, -EINTR, "stopped");
	return 0;
}
