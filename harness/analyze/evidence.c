/* The sentences of a verdict: each a figure that a reader can check in the table beside it. */
#include "harness/analyze/verdict_parts.h"

#include "harness/analyze/confidence.h"
#include "harness/base/units.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const double NINETY = 1.645; /* half-width of a 90 % interval, in deviations */

void evidence_add(struct verdict *out, const char *format, ...)
{
	if (out->evidence_count == EVIDENCE_MAX)
		return;
	va_list args;
	va_start(args, format);
	(void)vsnprintf(out->evidence[out->evidence_count++], EVIDENCE_BYTES, format, args);
	va_end(args);
}

/* "its 2 threads' time", "the device's time"; an emulated device has no time but its thread's */
static void whose_time(const struct evidence_base *base, const struct stage_summary *stage,
	char *text, size_t room)
{
	if (stage->device && !base->facts->step_emulated)
		(void)snprintf(text, room, "the device's time");
	else if (stage->workers == 1)
		(void)snprintf(text, room, "its thread's time");
	else
		(void)snprintf(text, room, "its %u threads' time", stage->workers);
}

/* "decode works 98.7 % of its 2 threads' time; read is blocked 71.0 %, step waits 34.0 %" */
static void add_states(const struct evidence_base *base, size_t at, struct verdict *out)
{
	const struct point_summary *point = base->point;
	const struct stage_summary *stage = &point->stages[at];
	char time[48];
	char above[96] = "";
	char below[96] = "";
	whose_time(base, stage, time, sizeof time);
	if (at > 0)
		(void)snprintf(above, sizeof above, "; %s is blocked %.1f %%",
			point->stages[at - 1].name, point->stages[at - 1].blocked * 100);
	if (at + 1 < point->stage_count)
		(void)snprintf(below, sizeof below, "%s %s waits %.1f %%", at > 0 ? "," : ";",
			point->stages[at + 1].name, point->stages[at + 1].starved * 100);
	evidence_add(out, "%s works %.1f %% of %s%s%s", stage->name, stage->busy * 100, time, above,
		below);
}

static void add_depth(
	const struct point_summary *point, const struct binding *binding, struct verdict *out)
{
	const struct stage_summary *above = &point->stages[binding->queue_above];
	const struct stage_summary *below = above + 1;
	evidence_add(out,
		"no stage is busy for long (%s %.0f %%, %s %.0f %%): in turns %s has no room %.0f %% and "
		"%s waits %.0f %% of the time",
		above->name, above->busy * 100, below->name, below->busy * 100, above->name,
		above->blocked * 100, below->name, below->starved * 100);
}

/* "by replay decode takes 0.97 of the time between batches, and the waits agree" */
static void add_replayed(
	const struct evidence_base *base, const struct binding *binding, struct verdict *out)
{
	if (!base->findings)
		return;
	double deviation;
	const char *name = base->point->stages[binding->stage].name;
	const double share = findings_stage(base->findings, name, &deviation);
	if (isnan(binding->replayed))
		return;
	if (binding->depth)
		evidence_add(out, "by replay a queue four times as deep gains %.0f %%",
			binding->depth_gain * 100);
	else
		evidence_add(out,
			"by replay a throughput elasticity of %.2f belongs to %s, and the waits point %s",
			share, name, binding->agree ? "there, too" : "elsewhere");
}

/* "3 devices: 33.1 % of the time exchanging gradients, 4.0 % waiting for one another" */
static void add_devices(const struct point_summary *point, size_t at, struct verdict *out)
{
	const struct stage_summary *sync = summary_stage(point, STAGE_SYNC_NAME);
	if (!sync || sync == &point->stages[at])
		return;
	evidence_add(out,
		"%u devices exchange gradients %.1f %% of the time and wait for one another %.1f %%",
		sync->workers, sync->busy * 100, devices_waiting(point) * 100);
}

static void add_second(
	const struct point_summary *point, const struct binding *binding, struct verdict *out)
{
	if (binding->second >= point->stage_count || binding->depth || binding->stalls)
		return;
	const char *first = point->stages[binding->stage].name;
	const char *second = point->stages[binding->second].name;
	if (!confidence_is_pair(binding->alone))
		evidence_add(out,
			"the throughput answers to the costs of %s nearly as it does to those of %s: both bind",
			second, first);
	else if (binding->alone < 0.5)
		evidence_add(out, "%s is within %.1f %% of %s: both bind", second,
			binding->second_gap * 100, first);
	else
		evidence_add(out, "%s is %.1f %% from %s, give or take %.1f %%: both may bind",
			second, binding->second_gap * 100, first,
			NINETY * binding->second_noise * 100);
}

static size_t least_capacity(const struct point_summary *point)
{
	return binding_next_capacity(point, point->stage_count);
}

/* More than a stage can give, beyond what rounding and edges explain: one of the two figures is off. */
static const double CAPACITY_EXCEEDED = 1.10;

static const char *capacity_caveat(const struct point_summary *point, size_t least, size_t stage)
{
	if (point->median > CAPACITY_EXCEEDED * point->stages[least].capacity)
		return ": too few samples to tell either exactly, measure longer";
	return least == stage ? "" : ", though the waits point elsewhere";
}

/* The sanity line: throughput against the least capacity, and the limit that comes next. */
static void add_capacities(const struct point_summary *point, size_t stage, struct verdict *out)
{
	const size_t least = least_capacity(point);
	if (least == point->stage_count)
		return;
	char rate[UNITS_BYTES];
	char capacity[UNITS_BYTES];
	(void)units_format_count(point->median, rate);
	(void)units_format_count(point->stages[least].capacity, capacity);
	evidence_add(out, "throughput %s samples/s is %.0f %% of the least capacity, %s's %s%s",
		rate, point->median / point->stages[least].capacity * 100,
		point->stages[least].name, capacity, capacity_caveat(point, least, stage));
	const size_t next = binding_next_capacity(point, stage);
	if (next == point->stage_count || next == least)
		return;
	(void)units_format_count(point->stages[next].capacity, capacity);
	evidence_add(out, "the next limit is %s, at %s%s samples/s", point->stages[next].name,
		point->stages[next].capacity_is_lower_bound ? "no less than " : "", capacity);
}

static void add_others(
	const struct evidence_base *base, const struct cause *cause, struct verdict *out)
{
	const double outside = base->point->cores_busy_outside;
	if (base->point->contaminated[0] && strcmp(cause->resource, "external") != 0)
		evidence_add(out, "%s meanwhile", base->point->contaminated);
	else if (outside >= 0.1 * base->facts->cores && strcmp(cause->resource, "external") != 0)
		evidence_add(out, "other processes kept %.1f of %u cores busy meanwhile", outside,
			base->facts->cores);
	if (base->count < 3)
		evidence_add(out, "%zu repetition%s only: the spread is hardly known", base->count,
			base->count == 1 ? "" : "s");
}

void evidence_write(const struct evidence_base *base, const struct binding *binding,
	const struct cause *cause, struct verdict *out)
{
	if (binding->depth)
		add_depth(base->point, binding, out);
	else
		add_states(base, binding->stage, out);
	if (binding->conflict && !binding->depth && !base->findings)
		evidence_add(out,
			"the waits beside it point elsewhere, but no other stage is nearly as busy");
	add_replayed(base, binding, out);
	add_second(base->point, binding, out);
	if (!binding->depth)
		evidence_add(out, "%s", cause->words);
	if (!binding->depth && stage_is(base->point->stages[binding->stage].name, STAGE_READ))
		evidence_add_store(base, cause->resource, out);
	add_devices(base->point, binding->stage, out);
	add_capacities(base->point, binding->stage, out);
	add_others(base, cause, out);
}
