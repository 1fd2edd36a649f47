/* Which resource a binding stage lacks: from the split of its working time and from what is known
 * of the node.  Where the measurements cannot tell two causes apart, the resource says so
 * ("storage", "unknown") instead of guessing. */
#include "harness/analyze/verdict_parts.h"

#include "harness/base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double CPU_BOUND = 0.90; /* of working time on a CPU */
static const double CPU_LIKELY = 0.80;
static const double RUN_QUEUE_BOUND = 0.10; /* of working time waiting for a core */
static const double WAITING_BOUND = 0.15;   /* neither on a CPU nor waiting for one */
static const double OUTSIDE_SHARE = 0.20;   /* of the cores, kept busy by others */
static const double THROTTLED_BOUND = 0.05;
static const double DEVICE_BOUND = 0.90; /* of the storage's ceiling */
static const double LATENCY_BELOW = 0.70;
static const double IN_FLIGHT_FULL = 0.90; /* of what may be in flight */
static const double ONE_A_THREAD = 0.05;
static const double PAGE_CACHE_SERVED = 0.90;

enum { CERTAIN_ENOUGH_ZONE = 10 }; /* percent above a threshold at which it is beyond doubt */

/* 0.5 at the threshold, 0.95 from a tenth of the whole above it. */
static double certainty_above(double value, double threshold)
{
	const double step = (value - threshold) * CERTAIN_ENOUGH_ZONE;
	return 0.5 + 0.45 * fmin(fmax(step, 0), 1);
}

__attribute__((format(printf, 3, 4))) static struct cause cause(
	const char *resource, double certainty, const char *format, ...)
{
	struct cause cause = {.resource = resource, .certainty = certainty};
	va_list args;
	va_start(args, format);
	(void)vsnprintf(cause.words, sizeof cause.words, format, args);
	va_end(args);
	return cause;
}

/* Too few cores: throttled by the cgroup, taken by others, or asked for more than there are. */
static struct cause cores_cause(const struct evidence_base *base, const struct stage_summary *stage)
{
	const struct point_summary *point = base->point;
	/* What waits for neither a core nor runs on one speaks for another cause. */
	const double waiting = fmax(1 - stage->cpu - stage->run_queue, 0);
	const double certainty = certainty_above(stage->run_queue, RUN_QUEUE_BOUND) * (1 - waiting);
	const unsigned wanted = base->facts->decode_workers + base->facts->step_threads;
	if (point->throttled_share >= THROTTLED_BOUND)
		return cause("cores", certainty,
			"%s waits for a core %.0f %% of its working time, and the cgroup's CPU quota "
			"throttled the process %.0f %% of the time",
			stage->name, stage->run_queue * 100, point->throttled_share * 100);
	if (point->cores_busy_outside >= fmax(OUTSIDE_SHARE * base->facts->cores, 0.5))
		return cause("external", certainty,
			"%s waits for a core %.0f %% of its working time, and other processes keep %.1f "
			"of %u cores busy",
			stage->name, stage->run_queue * 100, point->cores_busy_outside,
			base->facts->cores);
	return cause("cores", certainty,
		"%s waits for a core %.0f %% of its working time: %u decode workers and %u step "
		"threads on %u cores",
		stage->name, stage->run_queue * 100, base->facts->decode_workers,
		wanted - base->facts->decode_workers, base->facts->cores);
}

/* A stage that computes on the CPU: `computes` is its resource when it does so undisturbed. */
static struct cause cpu_cause(
	const struct evidence_base *base, const struct stage_summary *stage, const char *computes)
{
	if (isnan(stage->cpu) || isnan(stage->run_queue))
		return cause("unknown", 0.5,
			"how %s's working time divides into CPU and waiting is not known (no schedstat)",
			stage->name);
	const double waiting = fmax(1 - stage->cpu - stage->run_queue, 0);
	if (stage->run_queue >= RUN_QUEUE_BOUND && stage->run_queue >= waiting)
		return cores_cause(base, stage);

	if (stage->cpu >= CPU_BOUND)
		return cause(computes, certainty_above(stage->cpu, CPU_BOUND),
			"%.1f %% of %s's working time is on a CPU, %.1f %% waits for a core",
			stage->cpu * 100, stage->name, stage->run_queue * 100);
	if (waiting >= WAITING_BOUND)
		return cause("lock", certainty_above(waiting, WAITING_BOUND) * 0.9,
			"%s sleeps %.0f %% of the time in which it should work, and not for want of a "
			"core (%.1f %%): it waits for a lock",
			stage->name, waiting * 100, stage->run_queue * 100);
	return cause(stage->cpu >= CPU_LIKELY ? computes : "unknown", 0.5,
		"%.0f %% of %s's working time is on a CPU, %.0f %% waits for a core, %.0f %% for "
		"something else",
		stage->cpu * 100, stage->name, stage->run_queue * 100, waiting * 100);
}

/* So it is with blocking reads (pread), whatever the configured depth. */
static bool is_one_a_thread(double in_flight, const struct point_facts *facts)
{
	return fabs(in_flight - facts->read_threads) <= ONE_A_THREAD * facts->read_threads;
}

static struct cause storage_cause(
	const struct evidence_base *base, const struct stage_summary *read)
{
	const struct point_facts *facts = base->facts;
	const double ceiling = facts->storage_bytes_per_s;
	const double rate = base->point->bytes_read_per_s;
	const double latency = histogram_mean(&read->service);
	const double allowed = (double)facts->read_threads * facts->read_depth;
	const double in_flight = base->point->median * latency * 1e-9;
	const bool full =
		in_flight >= IN_FLIGHT_FULL * allowed || is_one_a_thread(in_flight, facts);

	char rate_text[UNITS_BYTES];
	char ceiling_text[UNITS_BYTES];
	char latency_text[UNITS_BYTES];
	(void)units_format_rate(rate, rate_text);
	(void)units_format_rate(ceiling, ceiling_text);
	(void)units_format_duration(latency, latency_text);
	if (ceiling > 0 && rate >= DEVICE_BOUND * ceiling)
		return cause("device", 0.9,
			"reads run at %s, %.0f %% of the %s that this storage gave at best",
			rate_text, rate / ceiling * 100, ceiling_text);
	if (ceiling > 0 && rate < LATENCY_BELOW * ceiling && full)
		return cause("latency", 0.85,
			"reads run at %s, %.0f %% of the %s that this storage gave at best, with %.1f of "
			"%.0f allowed in flight at %s each",
			rate_text, rate / ceiling * 100, ceiling_text, in_flight, allowed,
			latency_text);
	if (is_one_a_thread(in_flight, facts))
		return cause("storage", 0.8,
			"each of %u reader threads has one file in flight, %s each, %s: slow storage or too "
			"few at once, which one point cannot tell apart",
			facts->read_threads, latency_text, rate_text);
	if (full)
		return cause("storage", 0.8,
			"%.1f of %.0f files allowed are in flight, %s each, %s: slow storage or too few "
			"at once, which one point cannot tell apart",
			in_flight, allowed, latency_text, rate_text);
	return cause("storage", 0.6, "%.1f of %.0f files allowed are in flight, %s each, %s",
		in_flight, allowed, latency_text, rate_text);
}

static struct cause read_cause(const struct evidence_base *base, const struct stage_summary *stage)
{
	const bool from_memory =
		base->facts->reads_memory || base->point->page_cache_share >= PAGE_CACHE_SERVED;
	const bool on_cpu = stage->cpu + stage->run_queue >= CPU_BOUND;
	if (!isnan(stage->cpu) && (from_memory || on_cpu)) {
		struct cause found = cpu_cause(base, stage, "cpu");
		/* A page-cache read that sleeps waits for its disk's queue after all, not for a
		 * lock. */
		if (strcmp(found.resource, "lock") == 0)
			found.resource = "unknown";
		return found;
	}
	if (from_memory)
		return cause("cpu", 0.7, "reads are served from memory (%.0f %% page cache)",
			base->facts->reads_memory ? 100 : base->point->page_cache_share * 100);
	return storage_cause(base, stage);
}

static struct cause step_cause(const struct evidence_base *base, const struct stage_summary *stage)
{
	if (base->facts->step_emulated)
		return cause("compute", 0.95, "the emulated device computes %.1f %% of the time",
			stage->busy * 100);
	if (stage->device)
		return cause("compute", 0.9, "the device computes %.1f %% of the time",
			stage->busy * 100);
	return cpu_cause(base, stage, "compute");
}

struct cause cause_of_stage(const struct evidence_base *base, const struct stage_summary *stage)
{
	if (strcmp(stage->name, "read") == 0)
		return read_cause(base, stage);
	if (strcmp(stage->name, "step") == 0)
		return step_cause(base, stage);
	if (strcmp(stage->name, "upload") == 0)
		return cpu_cause(base, stage, "copy");
	return cpu_cause(base, stage, "cpu");
}
