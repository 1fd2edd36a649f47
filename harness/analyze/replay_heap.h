/* The few pending events of a replay: a binary heap by (key, id), in memory of the caller's.  Most
 * events end one thing and begin another of the same kind, so the first place is left open by a pop and
 * filled by the push that follows, which then costs one way down instead of two. */
#ifndef MLBENCH_ANALYZE_REPLAY_HEAP_H
#define MLBENCH_ANALYZE_REPLAY_HEAP_H

#include <stdbool.h>
#include <stdint.h>

struct replay_event {
	double key;
	uint32_t id;
};

struct replay_heap {
	struct replay_event *events; /* borrowed, large enough for all that can be pending */
	uint32_t count;              /* the open place included */
	bool open;                   /* events[0] was taken */
};

static inline bool replay_before(const struct replay_event *a, const struct replay_event *b)
{
	return a->key < b->key || (a->key == b->key && a->id < b->id);
}

static inline void replay_heap_down(struct replay_heap *heap, const struct replay_event event)
{
	struct replay_event *const events = heap->events;
	const uint32_t count = heap->count;
	uint32_t at = 0;
	for (;;) {
		uint32_t child = 2 * at + 1;
		if (child >= count)
			break;
		if (child + 1 < count && replay_before(&events[child + 1], &events[child]))
			child++;
		if (!replay_before(&events[child], &event))
			break;
		events[at] = events[child];
		at = child;
	}
	events[at] = event;
}

static inline void replay_heap_push(struct replay_heap *heap, const struct replay_event event)
{
	if (heap->open) {
		heap->open = false;
		replay_heap_down(heap, event);
		return;
	}
	struct replay_event *const events = heap->events;
	uint32_t at = heap->count++;
	while (at > 0 && replay_before(&event, &events[(at - 1) / 2])) {
		events[at] = events[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	events[at] = event;
}

/* The first event, or NULL; it stays until replay_heap_pop. */
static inline const struct replay_event *replay_heap_first(struct replay_heap *heap)
{
	if (heap->open) {
		heap->open = false;
		heap->count--;
		if (heap->count > 0)
			replay_heap_down(heap, heap->events[heap->count]);
	}
	return heap->count > 0 ? heap->events : (const struct replay_event *)0;
}

/* Takes out the event at a place; right after replay_heap_first gave one. */
static inline void replay_heap_remove(struct replay_heap *heap, uint32_t at)
{
	struct replay_event *const events = heap->events;
	/* Up to the first place, as if it were the earliest, and out there. */
	for (; at > 0; at = (at - 1) / 2)
		events[at] = events[(at - 1) / 2];
	heap->open = true;
}

/* Right after replay_heap_first gave one. */
static inline void replay_heap_pop(struct replay_heap *heap)
{
	heap->open = true;
}

#endif
