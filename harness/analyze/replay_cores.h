/* Cores shared by all that is runnable, in virtual time: the service that each thread on a core has had
 * since the start, at the rate that the load leaves.  A piece of work ends when virtual time has moved on
 * by its length, so the order of ends never changes and a step costs O(log n).  (Weighted fair queueing.)
 *
 * Without time slices all that is runnable is on the cores at once, each at its part of them: processor * sharing.  With slices there is a place for each core; who has used least comes next, and stays for a
 * slice while others wait, as under a kernel's scheduler: a sample can be half done for as long.  A thread
 * that wakes up is given at most a slice's credit, and takes the place of one that has used more. */
#ifndef MLBENCH_ANALYZE_REPLAY_CORES_H
#define MLBENCH_ANALYZE_REPLAY_CORES_H

#include "harness/analyze/replay_heap.h"

#include <math.h>

static const uint32_t REPLAY_NOBODY = UINT32_MAX;

struct replay_thread {
	double used;      /* service in all; raised after a sleep, so that no credit is saved up */
	double from;      /* virtual time when it came to its place */
	double slice_end; /* virtual time */
	double end;       /* of its work: virtual time on a core; what is left while it waits */
};

struct replay_cores {
	struct replay_heap
		running; /* by virtual time of the end of work or of the slice; ids: threads */
	struct replay_heap waiting; /* by service used; empty without slices */
	struct replay_thread *threads;
	uint32_t places, on_place, in_line; /* counts; places is UINT32_MAX without slices */
	uint32_t
		going_on; /* the thread whose work has just ended and whose place is kept, or NOBODY */
	double slice_ns, floor; /* floor: of service used, by those that came to a place */
	double virtual_now;
	double slowness; /* ns of time for a ns of service, at this load */
	double busy;     /* cores, at this load, those for outside included */
	/* (all threads + 1) by how many are runnable: the two above; borrowed */
	double *slowness_of, *busy_of;
};

/* With n of our threads runnable: what is left of the cores for us is dealt to those on places, and no more than a quota
 * allows.  A quota leaves cores idle, but not while its threads run: those slow each other down as without it. */
static inline void replay_cores_rate(double cores, double quota, double outside, double contention,
	uint32_t places, uint32_t n, double *slowness, double *busy)
{
	const double threads = n + outside;
	const double running = n < places ? n : places;
	const double most = threads < cores ? threads : cores;
	const double shared = threads > cores ? threads / cores : 1;
	const double dealt = n > places ? shared * (double)places / n : shared;
	const double allowed = quota > 0 ? running / quota : 0;
	const double slow = allowed > dealt ? allowed : dealt;
	*slowness = slow * (1 + contention * (most > 1 ? most - 1 : 0));
	*busy = most - (slow > dealt ? running / dealt - quota : 0);
}

static inline void replay_cores_load(struct replay_cores *c)
{
	const uint32_t runnable = c->on_place + c->in_line;
	c->slowness = c->slowness_of[runnable];
	c->busy = c->busy_of[runnable];
}

/* A thread is on a place, and its `end` and `slice_end` are set. */
static inline void replay_cores_place(struct replay_cores *c, uint32_t thread)
{
	const struct replay_thread *t = &c->threads[thread];
	const double key = t->end < t->slice_end ? t->end : t->slice_end;
	replay_heap_push(&c->running, (struct replay_event){key, thread});
	c->on_place++;
}

static inline void replay_cores_queue(struct replay_cores *c, uint32_t thread)
{
	replay_heap_push(&c->waiting, (struct replay_event){c->threads[thread].used, thread});
	c->in_line++;
}

/* The line's first come to free places; who comes to the line may take another's (replay_cores.c). */
void replay_cores_call(struct replay_cores *cores);
void replay_cores_preempt(struct replay_cores *cores, double used);

/* Gives the free places to those that wait; after each event. */
static inline void replay_cores_fill(struct replay_cores *c)
{
	c->going_on = REPLAY_NOBODY;
	if (c->in_line > 0 && c->on_place < c->places)
		replay_cores_call(c);
}

/* With time slices: whoever begins now has to wait. */
static inline bool replay_cores_all_busy(const struct replay_cores *c)
{
	return c->on_place + c->in_line + (c->going_on != REPLAY_NOBODY) >= c->places;
}

/* A thread begins ns > 0 of work. */
static inline void replay_cores_begin(struct replay_cores *c, uint32_t thread, double ns)
{
	struct replay_thread *t = &c->threads[thread];
	if (c->slice_ns <= 0 || thread == c->going_on) {
		c->going_on = REPLAY_NOBODY;
		t->from = c->virtual_now;
		t->end = c->virtual_now + ns;
		replay_cores_place(c, thread);
	} else {
		t->end = ns;
		const double least = c->floor - c->slice_ns;
		t->used = t->used > least ? t->used : least;
		const bool full = replay_cores_all_busy(c);
		replay_cores_queue(c, thread);
		if (full)
			replay_cores_preempt(c, t->used);
	}
	replay_cores_load(c);
}

/* When the next piece of work, or slice, ends if nothing else happens; HUGE_VAL: never. */
static inline double replay_cores_next(struct replay_cores *c, double now)
{
	const struct replay_event *first = replay_heap_first(&c->running);
	if (!first)
		return HUGE_VAL;
	const double left = first->key - c->virtual_now;
	return left > 0 ? now + left * c->slowness : now;
}

/* What replay_cores_next spoke of is now.  The thread whose work ended, which may begin more before
 * replay_cores_fill gives its place away; NOBODY: a slice ended. */
static inline uint32_t replay_cores_end(struct replay_cores *c)
{
	const struct replay_event first = c->running.events[0];
	struct replay_thread *t = &c->threads[first.id];
	replay_heap_pop(&c->running);
	c->on_place--;
	c->virtual_now = first.key;
	t->used += first.key - t->from;
	t->from = first.key;
	if (t->end <= first.key) {
		c->going_on = first.id;
		replay_cores_load(c);
		return first.id;
	}
	if (c->in_line > 0) {
		t->end -= first.key;
		replay_cores_queue(c, first.id);
	} else {
		t->slice_end = first.key + c->slice_ns;
		replay_cores_place(c, first.id);
	}
	return REPLAY_NOBODY;
}

/* So much time passes in which nothing ends. */
static inline void replay_cores_pass(struct replay_cores *c, double ns)
{
	if (c->on_place > 0)
		c->virtual_now += ns / c->slowness;
}

#endif
