/* Time slices: who comes to a core, and who has to leave it. */
#include "harness/analyze/replay_cores.h"

/* Those that have used least come first. */
void replay_cores_call(struct replay_cores *c)
{
	const struct replay_event *first;
	while (c->on_place < c->places && (first = replay_heap_first(&c->waiting))) {
		const uint32_t thread = first->id;
		struct replay_thread *t = &c->threads[thread];
		replay_heap_pop(&c->waiting);
		c->in_line--;
		c->floor = t->used > c->floor ? t->used : c->floor;
		t->from = c->virtual_now;
		t->end += c->virtual_now;
		t->slice_end = c->virtual_now + c->slice_ns;
		replay_cores_place(c, thread);
	}
}

/* The one that has used most leaves its place, if that is more than `used`, the newcomer's: so a thread that
 * seldom runs does not wait for a slice's end. */
void replay_cores_preempt(struct replay_cores *c, double used)
{
	if (!replay_heap_first(&c->running))
		return;
	uint32_t most = REPLAY_NOBODY;
	for (uint32_t i = 0; i < c->running.count; i++) {
		const struct replay_thread *t = &c->threads[c->running.events[i].id];
		const double now_used = t->used + c->virtual_now - t->from;
		if (now_used > used) {
			used = now_used;
			most = i;
		}
	}
	if (most == REPLAY_NOBODY)
		return;
	const uint32_t thread = c->running.events[most].id;
	replay_heap_remove(&c->running, most);
	c->on_place--;
	c->threads[thread].used = used;
	c->threads[thread].end -= c->virtual_now;
	replay_cores_queue(c, thread);
}
