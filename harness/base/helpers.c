/* How they wait is OpenCV's habit (modules/core/src/parallel_impl.cpp, its defaults): some pauses of the core, then by turns a
 * pause and a sched_yield, 2,000 turns for a helper and 10,000 for the caller, and then a condition variable.  The caller waits
 * for those alone that took a part: a helper that gets no core in time finds nothing to do. */
#include "harness/base/helpers.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

enum {
	PAUSES_AT_ONCE = 16,
	PAUSES_ONLY = 16, /* turns */
	HELPER_TURNS = 2000,
	CALLER_TURNS = 10000,
	PARTS_A_THREAD = 4, /* so that one that is late holds up little */
};

struct piece_of_work {
	helpers_part *part;
	void *context;
	uint32_t items, step;
};

struct helper {
	struct helpers *team;
	pthread_t thread;
	unsigned who;
};

struct helpers {
	pthread_mutex_t mutex; /* of what follows up to next */
	pthread_cond_t begins, ends;
	struct piece_of_work work;
	bool is_open;        /* items may be left */
	unsigned asleep;     /* helpers */
	atomic_uint number;  /* of the piece; changed under the mutex */
	atomic_uint working; /* helpers; likewise */
	atomic_bool over;    /* likewise */
	atomic_uint next;    /* the first item that nobody has */
	unsigned threads, started;
	struct helper list[];
};

static void helpers_pause(int turn)
{
	if (turn >= PAUSES_ONLY && turn % 2 == 0) {
		(void)sched_yield();
		return;
	}
	for (int i = 0; i < PAUSES_AT_ONCE; i++)
#if defined(__x86_64__)
		__builtin_ia32_pause();
#elif defined(__aarch64__)
		__asm__ volatile("yield" ::: "memory");
#else
		atomic_signal_fence(memory_order_seq_cst);
#endif
}

static void helpers_take_parts(struct helpers *team, const struct piece_of_work *work, unsigned who)
{
	uint32_t first;
	while ((first = atomic_fetch_add(&team->next, work->step)) < work->items) {
		const uint32_t left = work->items - first;
		work->part(
			work->context, who, first, first + (left < work->step ? left : work->step));
	}
}

/* For the next piece, which becomes the newest that it has seen; false: there will be none. */
static bool helper_waits(struct helpers *team, unsigned *seen)
{
	for (int turn = 0; turn < HELPER_TURNS && atomic_load(&team->number) == *seen; turn++)
		helpers_pause(turn);
	(void)pthread_mutex_lock(&team->mutex);
	while (atomic_load(&team->number) == *seen && !atomic_load(&team->over)) {
		team->asleep++;
		(void)pthread_cond_wait(&team->begins, &team->mutex);
		team->asleep--;
	}
	*seen = atomic_load(&team->number);
	return !atomic_load(&team->over); /* the mutex is held */
}

static void *helper_run(void *context)
{
	struct helper *const helper = context;
	struct helpers *const team = helper->team;
	unsigned seen = 0;
	while (helper_waits(team, &seen)) {
		const struct piece_of_work work = team->work;
		const bool joins = team->is_open;
		if (joins)
			atomic_fetch_add(&team->working, 1);
		(void)pthread_mutex_unlock(&team->mutex);
		if (!joins)
			continue;
		helpers_take_parts(team, &work, helper->who);
		(void)pthread_mutex_lock(&team->mutex);
		if (atomic_fetch_sub(&team->working, 1) == 1)
			(void)pthread_cond_signal(&team->ends);
		(void)pthread_mutex_unlock(&team->mutex);
	}
	(void)pthread_mutex_unlock(&team->mutex);
	return NULL;
}

int helpers_open(struct helpers **out, unsigned threads, struct error *err)
{
	struct helpers *const team = calloc(1, sizeof *team + threads * sizeof team->list[0]);
	*out = NULL;
	if (!team)
		return error_set(err, -ENOMEM, "out of memory");
	team->threads = threads;
	(void)pthread_mutex_init(&team->mutex, NULL);
	(void)pthread_cond_init(&team->begins, NULL);
	(void)pthread_cond_init(&team->ends, NULL);
	for (unsigned i = 1; i < threads; i++) {
		struct helper *const helper = &team->list[team->started];
		*helper = (struct helper){.team = team, .who = i};
		const int code = pthread_create(&helper->thread, NULL, helper_run, helper);
		if (code) {
			helpers_close(team);
			return error_set_errno(err, code, "cannot start helper %u of a worker's %u",
				i, threads - 1);
		}
		(void)pthread_setname_np(helper->thread, "mlb-helper");
		team->started++;
	}
	*out = team;
	return 0;
}

void helpers_close(struct helpers *team)
{
	if (!team)
		return;
	(void)pthread_mutex_lock(&team->mutex);
	atomic_store(&team->over, true);
	atomic_fetch_add(&team->number, 1);
	(void)pthread_cond_broadcast(&team->begins);
	(void)pthread_mutex_unlock(&team->mutex);
	for (unsigned i = 0; i < team->started; i++)
		(void)pthread_join(team->list[i].thread, NULL);
	(void)pthread_cond_destroy(&team->ends);
	(void)pthread_cond_destroy(&team->begins);
	(void)pthread_mutex_destroy(&team->mutex);
	free(team);
}

void helpers_do(struct helpers *team, helpers_part *part, void *context, uint32_t items)
{
	if (!team || items < 2) {
		if (items > 0)
			part(context, 0, 0, items);
		return;
	}
	const uint32_t parts = team->threads * PARTS_A_THREAD;
	(void)pthread_mutex_lock(&team->mutex);
	team->work = (struct piece_of_work){.part = part,
		.context = context,
		.items = items,
		.step = (items + parts - 1) / parts};
	atomic_store(&team->next, 0);
	team->is_open = true;
	atomic_fetch_add(&team->number, 1);
	if (team->asleep > 0)
		(void)pthread_cond_broadcast(&team->begins);
	(void)pthread_mutex_unlock(&team->mutex);
	helpers_take_parts(team, &team->work, 0);
	(void)pthread_mutex_lock(&team->mutex);
	team->is_open = false;
	(void)pthread_mutex_unlock(&team->mutex);
	for (int turn = 0; turn < CALLER_TURNS && atomic_load(&team->working) > 0; turn++)
		helpers_pause(turn);
	(void)pthread_mutex_lock(&team->mutex);
	while (atomic_load(&team->working) > 0)
		(void)pthread_cond_wait(&team->ends, &team->mutex);
	(void)pthread_mutex_unlock(&team->mutex);
}
