/* The clock of an emulated device.  A timer wakes a thread tens of microseconds late, by an amount
 * that is steady on a given node; so the lateness is learned, the wake-up asked for that much
 * earlier, and the rest spun away.  The spin is bounded, because it takes CPU from decoders on a
 * small node. */
#include "workloads/backend/deadline.h"

#include "harness/base/clock.h"

enum {
	SLICE_NS = 100 * 1000 * 1000, /* between looks at the stop flag */
	APPROACH_NS = 300 * 1000,     /* the last sleep: the longer it is, the later it ends */
	LEARN_UP = 2,                 /* share of an excess that is added */
	LEARN_DOWN = 64,              /* share of a surplus that is given up */
	LEARN_SPARE_NS = 3000,        /* aim above the lateness itself */
};

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t clamp(uint64_t value, uint64_t low, uint64_t high)
{
	return value < low ? low : least(value, high);
}

uint64_t deadline_start(const struct deadline *deadline, uint64_t now_ns, uint64_t nominal_ns)
{
	if (deadline->returned_ns == 0 || now_ns < deadline->returned_ns)
		return now_ns;
	const uint64_t handover = now_ns - deadline->returned_ns;
	if (handover > least(deadline->oversleep_ns, DEADLINE_HANDOVER_NS))
		return now_ns;
	return now_ns - least(deadline->oversleep_ns, nominal_ns);
}

uint64_t deadline_done(struct deadline *deadline, uint64_t deadline_ns, uint64_t now_ns)
{
	deadline->returned_ns = now_ns;
	deadline->oversleep_ns = now_ns > deadline_ns ? now_ns - deadline_ns : 0;
	return deadline->oversleep_ns;
}

void deadline_forget(struct deadline *deadline)
{
	deadline->returned_ns = 0;
	deadline->oversleep_ns = 0;
}

uint64_t deadline_margin(const struct deadline *deadline, uint64_t nominal_ns)
{
	const uint64_t margin =
		clamp(deadline->margin_ns, DEADLINE_MARGIN_MIN_NS, DEADLINE_MARGIN_MAX_NS);
	return least(margin, nominal_ns / DEADLINE_MARGIN_SHARE);
}

void deadline_learn(struct deadline *deadline, uint64_t lateness_ns)
{
	const uint64_t wanted = lateness_ns + LEARN_SPARE_NS;
	if (wanted > deadline->margin_ns)
		deadline->margin_ns += (wanted - deadline->margin_ns) / LEARN_UP;
	else
		deadline->margin_ns -= (deadline->margin_ns - wanted) / LEARN_DOWN;
	deadline->margin_ns =
		clamp(deadline->margin_ns, DEADLINE_MARGIN_MIN_NS, DEADLINE_MARGIN_MAX_NS);
}

static bool stopped(const atomic_bool *stop)
{
	return stop && atomic_load_explicit(stop, memory_order_relaxed);
}

/* Sleeps until wake_ns in slices; the time at the end.  Stops between slices. */
static uint64_t sleep_in_slices(uint64_t now, uint64_t wake_ns, const atomic_bool *stop)
{
	while (now < wake_ns && !stopped(stop)) {
		clock_sleep_until_ns(least(wake_ns, now + SLICE_NS));
		now = clock_now_ns();
	}
	return now;
}

uint64_t deadline_sleep(uint64_t wake_ns, const atomic_bool *stop)
{
	return sleep_in_slices(clock_now_ns(), wake_ns, stop);
}

uint64_t deadline_wait(struct deadline *deadline, uint64_t deadline_ns, uint64_t nominal_ns,
	const atomic_bool *stop)
{
	uint64_t now = clock_now_ns();
	const uint64_t wake_ns = deadline_ns - deadline_margin(deadline, nominal_ns);
	if (now < wake_ns) {
		/* A core that slept for long is in a deeper idle state: wake it early once, so that
		 * the lateness that counts is that of a short sleep, whatever the step's time. */
		if (now + 2 * APPROACH_NS < wake_ns)
			now = sleep_in_slices(now, wake_ns - APPROACH_NS, stop);
		now = sleep_in_slices(now, wake_ns, stop);
		if (now < wake_ns)
			return now;
		deadline_learn(deadline, now - wake_ns);
	}
	while (now < deadline_ns) {
		__builtin_ia32_pause();
		now = clock_now_ns();
	}
	return now;
}
