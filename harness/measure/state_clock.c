/* State clocks.  The order that the sequence lock needs comes from release stores of the data by the
 * writer and acquire loads by the reader: on x86-64 both are plain moves. */
#include "harness/measure/state_clock.h"

#include "harness/measure/timeline.h"

#include <stddef.h>

static uint64_t load_clock(const atomic_uint_least64_t *value)
{
	return atomic_load_explicit(value, memory_order_acquire);
}

static void store_clock(atomic_uint_least64_t *value, uint64_t number)
{
	atomic_store_explicit(value, number, memory_order_release);
}

static unsigned begin_write(struct state_clock *clock)
{
	const unsigned sequence = atomic_load_explicit(&clock->sequence, memory_order_relaxed);
	atomic_store_explicit(&clock->sequence, sequence + 1, memory_order_relaxed);
	return sequence;
}

static void end_write(struct state_clock *clock, unsigned sequence)
{
	atomic_store_explicit(&clock->sequence, sequence + 2, memory_order_release);
}

void state_clock_start(struct state_clock *clock, enum thread_state state, uint64_t now_ns)
{
	const unsigned sequence = begin_write(clock);
	for (int i = 0; i < THREAD_STATES; i++)
		store_clock(&clock->total_ns[i], 0);
	atomic_store_explicit(&clock->state, (unsigned)state, memory_order_release);
	store_clock(&clock->since_ns, now_ns);
	end_write(clock, sequence);
}

static void tell_timeline(const struct state_clock *clock, unsigned state, uint64_t since_ns,
	uint64_t now_ns, uint64_t had_ns)
{
	if (__builtin_expect(clock->timeline != NULL, 0) &&
		timeline_keeps(clock->timeline, since_ns))
		timeline_state(clock->timeline, (enum thread_state)state, since_ns, now_ns, had_ns);
}

static uint64_t clock_since(const struct state_clock *clock)
{
	return atomic_load_explicit(&clock->since_ns, memory_order_relaxed);
}

/* Not before the group's last transition, nor this clock's. */
static uint64_t state_clock_later(
	const struct state_clock *clock, const struct state_clock *group, uint64_t ns)
{
	const uint64_t own = clock_since(clock) > ns ? clock_since(clock) : ns;
	return clock_since(group) > own ? clock_since(group) : own;
}

void state_clock_park(struct state_clock *clock, const struct state_clock *group, uint64_t now_ns)
{
	if (clock_since(clock) == 0 || atomic_load_explicit(&clock->group, memory_order_relaxed))
		return; /* never started, or parked already: woken for nothing */
	const uint64_t at_ns = state_clock_later(clock, group, now_ns);
	const unsigned state = atomic_load_explicit(&clock->state, memory_order_relaxed);
	const unsigned sequence = begin_write(clock);
	store_clock(&clock->total_ns[state],
		at_ns - clock_since(clock) +
			atomic_load_explicit(&clock->total_ns[state], memory_order_relaxed));
	uint64_t group_ns[THREAD_STATES];
	state_clock_read(group, at_ns, group_ns);
	for (int i = 0; i < THREAD_STATES; i++)
		store_clock(&clock->group_ns[i], group_ns[i]);
	store_clock(&clock->since_ns, at_ns);
	atomic_store_explicit(&clock->group, group, memory_order_release);
	end_write(clock, sequence);
}

static void leave_group(struct state_clock *clock, const struct state_clock *group,
	enum thread_state state, uint64_t now_ns)
{
	const uint64_t at_ns = state_clock_later(clock, group, now_ns);
	uint64_t total_ns[THREAD_STATES];
	state_clock_read(clock, at_ns, total_ns);
	const unsigned sequence = begin_write(clock);
	for (int i = 0; i < THREAD_STATES; i++)
		store_clock(&clock->total_ns[i], total_ns[i]);
	store_clock(&clock->since_ns, at_ns);
	atomic_store_explicit(&clock->state, (unsigned)state, memory_order_release);
	atomic_store_explicit(&clock->group, NULL, memory_order_release);
	end_write(clock, sequence);
}

void state_clock_enter(struct state_clock *clock, enum thread_state state, uint64_t now_ns)
{
	const struct state_clock *group = atomic_load_explicit(&clock->group, memory_order_relaxed);
	if (group) {
		leave_group(clock, group, state, now_ns);
		return;
	}
	const unsigned before = atomic_load_explicit(&clock->state, memory_order_relaxed);
	const uint64_t since_ns = clock_since(clock);
	if (before == (unsigned)state || since_ns == 0)
		return; /* no change, or never started */
	const unsigned sequence = begin_write(clock);
	if (now_ns > since_ns) {
		const uint64_t total =
			atomic_load_explicit(&clock->total_ns[before], memory_order_relaxed);
		tell_timeline(clock, before, since_ns, now_ns, total);
		store_clock(&clock->total_ns[before], total + (now_ns - since_ns));
		store_clock(&clock->since_ns, now_ns);
	}
	atomic_store_explicit(&clock->state, (unsigned)state, memory_order_release);
	end_write(clock, sequence);
}

void state_clock_move(struct state_clock *clock, enum thread_state from, enum thread_state to,
	uint64_t ns, uint64_t now_ns)
{
	const unsigned state = atomic_load_explicit(&clock->state, memory_order_relaxed);
	const uint64_t since_ns = clock_since(clock);
	if (since_ns == 0)
		return;
	const unsigned sequence = begin_write(clock);
	if (now_ns > since_ns) {
		const uint64_t total =
			atomic_load_explicit(&clock->total_ns[state], memory_order_relaxed);
		tell_timeline(clock, state, since_ns, now_ns, total);
		store_clock(&clock->total_ns[state], total + (now_ns - since_ns));
		store_clock(&clock->since_ns, now_ns);
	}
	const uint64_t had = atomic_load_explicit(&clock->total_ns[from], memory_order_relaxed);
	const uint64_t moved = ns < had ? ns : had;
	store_clock(&clock->total_ns[from], had - moved);
	store_clock(&clock->total_ns[to],
		moved + atomic_load_explicit(&clock->total_ns[to], memory_order_relaxed));
	end_write(clock, sequence);
}

void state_clock_read(
	const struct state_clock *clock, uint64_t now_ns, uint64_t total_ns[THREAD_STATES])
{
	unsigned before;
	unsigned after;
	unsigned state;
	uint64_t since_ns;
	const struct state_clock *group;
	uint64_t parked_ns[THREAD_STATES] = {0};
	do {
		before = atomic_load_explicit(&clock->sequence, memory_order_acquire);
		for (int i = 0; i < THREAD_STATES; i++)
			total_ns[i] = load_clock(&clock->total_ns[i]);
		state = atomic_load_explicit(&clock->state, memory_order_acquire);
		since_ns = load_clock(&clock->since_ns);
		group = atomic_load_explicit(&clock->group, memory_order_acquire);
		for (int i = 0; group && i < THREAD_STATES; i++)
			parked_ns[i] = load_clock(&clock->group_ns[i]);
		after = atomic_load_explicit(&clock->sequence, memory_order_relaxed);
	} while (before != after || before % 2 != 0);
	if (group) {
		uint64_t group_ns[THREAD_STATES];
		state_clock_read(group, now_ns > since_ns ? now_ns : since_ns, group_ns);
		for (int i = 0; i < THREAD_STATES; i++)
			total_ns[i] += group_ns[i] - parked_ns[i];
	} else if (since_ns > 0 && now_ns > since_ns) {
		total_ns[state] += now_ns - since_ns;
	}
}

uint64_t state_clock_look(const struct state_clock *clock, enum thread_state *state)
{
	unsigned before;
	unsigned after;
	uint64_t since_ns;
	const struct state_clock *group;
	do {
		before = atomic_load_explicit(&clock->sequence, memory_order_acquire);
		*state = (enum thread_state)atomic_load_explicit(
			&clock->state, memory_order_acquire);
		since_ns = load_clock(&clock->since_ns);
		group = atomic_load_explicit(&clock->group, memory_order_acquire);
		after = atomic_load_explicit(&clock->sequence, memory_order_relaxed);
	} while (before != after || before % 2 != 0);
	if (!group)
		return since_ns;
	const uint64_t turned_ns = state_clock_look(group, state);
	return turned_ns > since_ns ? turned_ns : since_ns;
}
