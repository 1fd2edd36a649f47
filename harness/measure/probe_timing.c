/* What waiting and looking at a clock cost on this node: the hand-off of a lock, two clocks, and how
 * far an absolute sleep goes beyond its end. */
#include "harness/measure/probe.h"

#include "harness/base/clock.h"
#include "harness/base/order.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum {
	CLOCK_READS = 20000,
	CPU_CLOCK_READS = 2000,
	SLEEPS = 40, /* of a round */
	P99_PER_MILLE = 990,
	MEDIAN_PER_MILLE = 500,
	HANDOFFS_MAX = 1024, /* of a round */
};

static const uint64_t SLEEP_NS = 500 * NS_PER_US;
/* Held so long that the other thread sleeps on the lock before it is let go. */
static const uint64_t HOLD_NS = 50 * NS_PER_US;

static double clock_cost_ns(void)
{
	const uint64_t begin = clock_now_ns();
	uint64_t end = begin;
	for (int i = 0; i < CLOCK_READS; i++)
		end = clock_now_ns();
	return (double)(end - begin) / CLOCK_READS;
}

static double cpu_clock_cost_ns(void)
{
	volatile uint64_t kept; /* so that the reads are not left out */
	const uint64_t begin = clock_now_ns();
	for (int i = 0; i < CPU_CLOCK_READS; i++)
		kept = clock_thread_cpu_ns();
	(void)kept;
	return (double)(clock_now_ns() - begin) / CPU_CLOCK_READS;
}

/* Sorts values; NAN without any. */
static double quantile(double *values, size_t count, size_t per_mille)
{
	if (count == 0)
		return NAN;
	sort_doubles(values, count);
	return values[(count - 1) * per_mille / 1000];
}

/* --- lock ---------------------------------------------------------------------------------------- */

/* Two threads take the lock in turns: whoever lets go waits until the other has it. */
struct handoff {
	pthread_mutex_t lock;
	atomic_uint owner;              /* who had it last; written under the lock */
	uint64_t released_ns;           /* under the lock: when it was about to be let go */
	double waited_ns[HANDOFFS_MAX]; /* of each, under the lock */
	size_t count;
	uint64_t end_ns;
	const struct probe_control *control;
};

static bool handoff_over(const struct handoff *handoff)
{
	return clock_now_ns() >= handoff->end_ns || probe_stopped(handoff->control);
}

/* Under the lock. */
static void take_over(struct handoff *handoff, unsigned me)
{
	const uint64_t now = clock_now_ns();
	if (handoff->released_ns && atomic_load(&handoff->owner) != me &&
		handoff->count < HANDOFFS_MAX)
		handoff->waited_ns[handoff->count++] = (double)(now - handoff->released_ns);
	atomic_store(&handoff->owner, me);
	while (clock_now_ns() < now + HOLD_NS)
		continue;
	handoff->released_ns = clock_now_ns();
}

static void take_turns(void *context, unsigned me)
{
	struct handoff *handoff = context;
	while (!handoff_over(handoff)) {
		(void)pthread_mutex_lock(&handoff->lock);
		take_over(handoff, me);
		(void)pthread_mutex_unlock(&handoff->lock);
		while (atomic_load(&handoff->owner) == me && !handoff_over(handoff))
			(void)sched_yield();
	}
}

/* The median of a round's: the mean would be that of the few that met another process on their core.
 */
static int handoff_ns(const struct probe_control *control, double *out, struct error *err)
{
	struct handoff *handoff = calloc(1, sizeof *handoff);
	if (!handoff)
		return error_set(err, -ENOMEM, "out of memory");
	handoff->control = control;
	handoff->end_ns = probe_slot_end(control, clock_now_ns());
	(void)pthread_mutex_init(&handoff->lock, NULL);
	const int code = probe_crew(2, false, take_turns, handoff, err);
	(void)pthread_mutex_destroy(&handoff->lock);
	*out = quantile(handoff->waited_ns, handoff->count, MEDIAN_PER_MILLE);
	free(handoff);
	return code;
}

/* --- sleep ------------------------------------------------------------------------------------- */

struct sleeps {
	double beyond[SLEEPS * PROBE_ROUNDS_MAX]; /* ns, of every sleep */
	size_t count;
};

static double oversleep_ns(const struct probe_control *control, struct sleeps *sleeps)
{
	double sum = 0;
	int slept = 0;
	for (; slept < SLEEPS && !probe_time_over(control); slept++) {
		const uint64_t end = clock_now_ns() + SLEEP_NS;
		clock_sleep_until_ns(end);
		const double beyond = (double)(clock_now_ns() - end);
		sleeps->beyond[sleeps->count++] = beyond;
		sum += beyond;
	}
	return slept == SLEEPS ? sum / SLEEPS : (double)NAN;
}

/* --- all --------------------------------------------------------------------------------------- */

struct timing {
	struct probe_values lock, clock, cpu_clock, oversleep;
	struct sleeps sleeps;
};

static int measure_rounds(
	const struct probe_control *control, struct timing *timing, struct error *err)
{
	int code = 0;
	for (unsigned round = 0; round < control->rounds && !probe_time_over(control); round++) {
		double handed = NAN;
		probe_add(&timing->clock, clock_cost_ns());
		probe_add(&timing->cpu_clock, cpu_clock_cost_ns());
		if (!code)
			code = handoff_ns(control, &handed, err);
		probe_add(&timing->lock, handed);
		probe_add(&timing->oversleep, oversleep_ns(control, &timing->sleeps));
	}
	return code;
}

int probe_timing(const struct probe_control *control, struct ceilings *out, struct error *err)
{
	struct timing *timing = calloc(1, sizeof *timing);
	if (!timing)
		return error_set(err, -ENOMEM, "out of memory");
	struct error why = {0};
	const int code = measure_rounds(control, timing, &why);
	out->lock_handoff_ns = probe_median(&timing->lock, &out->lock_range);
	out->clock_read_ns = probe_median(&timing->clock, &out->clock_range);
	out->cpu_clock_read_ns = probe_median(&timing->cpu_clock, &out->cpu_clock_range);
	out->oversleep_ns = probe_median(&timing->oversleep, &out->oversleep_range);
	out->oversleep_p99_ns =
		quantile(timing->sleeps.beyond, timing->sleeps.count, P99_PER_MILLE);
	free(timing);
	if (probe_stopped(control))
		return -EINTR;
	if (isnan(out->lock_handoff_ns))
		ceilings_lack(out, "lock hand-off: %s",
			code ? why.text : "no hand-over in the time allowed");
	if (isnan(out->oversleep_ns))
		ceilings_lack(out, "oversleep: no time was left for it");
	return 0;
}
