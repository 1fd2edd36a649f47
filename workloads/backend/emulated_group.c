/* A barrier that carries the latest time.  Rounds are numbered; the result of one stays until the one after the next
 * is complete, and by then everybody has read it. */
#include "workloads/backend/emulated_group.h"

#include "harness/base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum { LOOK_NS = 20 * 1000 * 1000 /* between looks at the stop flag */ };

struct emulated_group {
	pthread_mutex_t lock;
	pthread_cond_t complete;
	unsigned count, arrived;
	uint64_t round;
	uint64_t latest_ns, longest_ns;      /* of those who have arrived */
	struct emulated_exchange results[2]; /* by round % 2 */
};

static int open_condition(struct emulated_group *group)
{
	pthread_condattr_t attributes;
	int code = pthread_condattr_init(&attributes);
	if (code)
		return code;
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	code = pthread_cond_init(&group->complete, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	return code;
}

int emulated_group_open(struct emulated_group **out, unsigned count)
{
	struct emulated_group *group = calloc(1, sizeof *group);
	*out = NULL;
	if (!group)
		return -ENOMEM;
	group->count = count;
	int code = open_condition(group);
	if (code) {
		free(group);
		return -code;
	}
	code = pthread_mutex_init(&group->lock, NULL);
	if (code) {
		(void)pthread_cond_destroy(&group->complete);
		free(group);
		return -code;
	}
	*out = group;
	return 0;
}

void emulated_group_close(struct emulated_group *group)
{
	if (!group)
		return;
	(void)pthread_mutex_destroy(&group->lock);
	(void)pthread_cond_destroy(&group->complete);
	free(group);
}

static bool stopped(const atomic_bool *stop)
{
	return stop && atomic_load_explicit(stop, memory_order_relaxed);
}

static void wait_until(struct emulated_group *group, uint64_t deadline_ns)
{
	const struct timespec deadline = {
		.tv_sec = (time_t)(deadline_ns / NS_PER_S),
		.tv_nsec = (long)(deadline_ns % NS_PER_S),
	};
	(void)pthread_cond_timedwait(&group->complete, &group->lock, &deadline);
}

/* The lock is held.  True: the round is complete. */
static bool await_round(struct emulated_group *group, uint64_t round, uint64_t computed_ns,
	const atomic_bool *stop, const struct group_watch *watch)
{
	while (group->round == round && !stopped(stop)) {
		const uint64_t now = clock_now_ns();
		uint64_t until = now + LOOK_NS;
		if (watch && now >= computed_ns) {
			watch->enter(watch->context, GROUP_WAITS, computed_ns);
			watch = NULL;
		} else if (watch && computed_ns < until) {
			until = computed_ns;
		}
		wait_until(group, until);
	}
	return group->round != round;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void complete_round(struct emulated_group *group)
{
	group->results[group->round % 2] = (struct emulated_exchange){
		.begin_ns = group->latest_ns,
		.end_ns = group->latest_ns + group->longest_ns,
	};
	group->arrived = 0;
	group->latest_ns = 0;
	group->longest_ns = 0;
	group->round++;
	(void)pthread_cond_broadcast(&group->complete);
}

bool emulated_group_meet(struct emulated_group *group, uint64_t computed_ns, uint64_t exchange_ns,
	const atomic_bool *stop, const struct group_watch *watch, struct emulated_exchange *out)
{
	(void)pthread_mutex_lock(&group->lock);
	const uint64_t round = group->round;
	group->latest_ns = later(computed_ns, group->latest_ns);
	group->longest_ns = later(exchange_ns, group->longest_ns);
	if (++group->arrived == group->count)
		complete_round(group);
	const bool complete = await_round(group, round, computed_ns, stop, watch);
	*out = group->results[round % 2];
	(void)pthread_mutex_unlock(&group->lock);
	return complete;
}
