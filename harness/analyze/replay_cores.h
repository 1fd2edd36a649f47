/* Cores shared by all that is runnable: egalitarian processor sharing in virtual time.  Every runnable
 * thread gets service at the same rate, so virtual time is the service that each has had since the start;
 * a piece of work ends when virtual time has moved on by its length, and that order never changes.  (The
 * technique of Nagle and of weighted fair queueing; a step costs O(log n).) */
#ifndef MLBENCH_ANALYZE_REPLAY_CORES_H
#define MLBENCH_ANALYZE_REPLAY_CORES_H

#include "harness/analyze/replay_heap.h"

#include <math.h>

struct replay_cores {
	struct replay_heap work; /* key: virtual time of its end, ns */
	double virtual_now;
	uint32_t running; /* threads on cores, outside ones not counted */
	double slowness;  /* ns of time for a ns of service, at this load */
	double busy;      /* cores, at this load, those for outside included */
	/* (all threads + 1) by running: the two above; borrowed */
	double *slowness_of, *busy_of;
};

/* Slowness and busy cores with n threads of ours on them. */
static inline void replay_cores_rate(
	double cores, double outside, double contention, uint32_t n, double *slowness, double *busy)
{
	const double threads = n + outside;
	*busy = threads < cores ? threads : cores;
	*slowness = (threads > cores ? threads / cores : 1) *
		    (1 + contention * (*busy > 1 ? *busy - 1 : 0));
}

static inline void replay_cores_load(struct replay_cores *cores, uint32_t running)
{
	cores->running = running;
	cores->slowness = cores->slowness_of[running];
	cores->busy = cores->busy_of[running];
}

/* `threads` threads begin ns > 0 of work each, side by side. */
static inline void replay_cores_begin(
	struct replay_cores *cores, uint32_t id, double ns, uint32_t threads)
{
	replay_heap_push(&cores->work,
		(struct replay_event){.key = cores->virtual_now + ns, .id = id, .weight = threads});
	replay_cores_load(cores, cores->running + threads);
}

/* When the next piece of work ends if nothing else happens; HUGE_VAL: never. */
static inline double replay_cores_next(struct replay_cores *cores, double now)
{
	const struct replay_event *first = replay_heap_first(&cores->work);
	if (!first)
		return HUGE_VAL;
	const double left = first->key - cores->virtual_now;
	return left > 0 ? now + left * cores->slowness : now;
}

/* The piece that replay_cores_next spoke of ends now; its id. */
static inline uint32_t replay_cores_end(struct replay_cores *cores)
{
	const struct replay_event first = cores->work.events[0];
	replay_heap_pop(&cores->work);
	cores->virtual_now = first.key;
	replay_cores_load(cores, cores->running - first.weight);
	return first.id;
}

/* So much time passes in which no work ends. */
static inline void replay_cores_pass(struct replay_cores *cores, double ns)
{
	if (cores->running > 0)
		cores->virtual_now += ns / cores->slowness;
}

#endif
