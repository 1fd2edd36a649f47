/* Why the step, or the copy to it, does not go faster. */
#include "harness/analyze/device_view.h"
#include "harness/analyze/trace_features.h"
#include "harness/analyze/verdict_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double CPU_BOUND = 0.90; /* of working time on a CPU */
static const double CPU_LIKELY = 0.80;
static const double HOST_BOUND =
	0.20; /* of a step's time, worked by its thread beforehand: without it, a quarter more */

/* Without the kernel's account of threads: one that waits for a core looks as one that launches. */
static const double LAUNCH_UNTOLD = 0.6;
static const double LAUNCH_BOUND =
	0.90; /* of a step's device time, spent by the host in launching it */
static const double IDLE_BOUND = 0.25;   /* of a step's device time, without a kernel */
static const double COPY_BOUND = 0.30;   /* of a step's device time, copying its own batch */
static const double SLOWED_BOUND = 0.50; /* of the samples */
static const double COPIES_MOSTLY = 0.5; /* of the uploader's working time, something is copied */
static const double LATE_TOLD =
	0.05; /* of the time, busy beyond what an emulated device computes */
static const double QUOTA_LATE = 0.20; /* the same, for a quota to be what matters most */
static const double CLOCK_LOW = 0.85;  /* of the highest clock: a power cap that matters */

/* --- a device that works by itself: what it and NVML say of it ----------------------------------------- */

static bool device_throttled(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)stage;
	const struct device_view view = device_view_of(base->repeats, base->count);
	if (!view.any)
		return false;
	if (view.slowed >= SLOWED_BOUND)
		return cause_is(out, "throttled", certainty_above(view.slowed, SLOWED_BOUND),
			"%s held its clocks down in %.0f %% of the samples: %s", view.name,
			view.slowed * 100, view.reason);
	if (view.capped >= SLOWED_BOUND && view.clock_share < CLOCK_LOW)
		return cause_is(out, "throttled",
			certainty_above(1 - view.clock_share, 1 - CLOCK_LOW),
			"the power cap held %s at %.0f %% of its highest clock, in %.0f %% of the samples",
			view.name, view.clock_share * 100, view.capped * 100);
	return false;
}

/* Without an upload stage the step begins with the copy. */
static bool device_copies(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)stage;
	const struct device_view view = device_view_of(base->repeats, base->count);
	if (summary_stage(base->point, STAGE_UPLOAD_NAME))
		return false;
	if (!view.any || !(view.copy_share >= COPY_BOUND))
		return false;
	return cause_is(out, "copy", certainty_above(view.copy_share, COPY_BOUND),
		"%.0f %% of a step's time on %s is the copy of its batch, at %.1f GB/s",
		view.copy_share * 100, view.name, view.copy_rate / 1e9);
}

static bool device_launch(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)stage;
	const struct device_view view = device_view_of(base->repeats, base->count);
	if (!view.any)
		return false;
	if (view.launch_share >= LAUNCH_BOUND)
		return cause_is(out, "launch",
			isfinite(view.idle) && view.idle < IDLE_BOUND ? 0.6 : 0.9,
			"launching a step takes the host %.0f %% of the time that the device needs for it%s",
			view.launch_share * 100,
			isfinite(view.idle) ? "" : " (idle time inside a step: not measured)");
	if (view.idle >= IDLE_BOUND)
		return cause_is(out, "launch", certainty_above(view.idle, IDLE_BOUND),
			"no kernel runs in %.0f %% of a step's time on the device",
			view.idle * 100);
	return false;
}

static bool device_computes(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const struct device_view view = device_view_of(base->repeats, base->count);
	char peak[64] = "";
	char capped[64] = "";
	if (!view.any)
		return false;
	if (isfinite(view.utilisation))
		(void)snprintf(peak, sizeof peak, ", %.0f %% of its published peak",
			view.utilisation * 100);
	if (view.capped >= SLOWED_BOUND)
		(void)snprintf(capped, sizeof capped,
			"; its power cap was reached in %.0f %% of the samples", view.capped * 100);
	return cause_is(out, "compute", 0.95, "%s computes %.1f %% of the time%s%s", view.name,
		fmin(isfinite(view.busy) ? view.busy : stage->busy, 1) * 100, peak, capped);
}

/* --- any other --------------------------------------------------------------------------------------- */

/* Shares of the time that the step's threads were at work, over the repeats; NAN: not known (no schedstat). */
struct thread_shares {
	double cpu, queued;
};

static struct thread_shares thread_shares_of(const struct evidence_base *base, const char *name)
{
	struct thread_shares sum = {0, 0};
	double working = 0;
	for (size_t i = 0; i < base->count; i++)
		for (size_t k = 0; k < base->repeats[i]->stage_count; k++) {
			const struct stage_measurement *stage = &base->repeats[i]->stages[k];
			if (strcmp(stage->name, name) != 0 || isnan(stage->run_queue_seconds))
				continue;
			sum.cpu += stage->cpu_seconds;
			sum.queued += stage->run_queue_seconds;
			working += stage->seconds[THREAD_WORKING];
		}
	return working > 0 ? (struct thread_shares){sum.cpu / working, sum.queued / working}
			   : (struct thread_shares){NAN, NAN};
}

/* Of a step's time, what its thread works before the device begins, on a core or asleep in a driver: waiting for a core is no
 * work, whether before the device or after it.  Where nobody tells of that waiting, it is in there.  NAN: not known. */
static double launch_share(const struct evidence_base *base, const struct stage_summary *stage)
{
	if (!base->source || base->facts->step_threads > 0)
		return NAN;
	const struct trace_set set =
		trace_set_of(base->source->traces, base->source->count, stage->name);
	const double host = trace_host_share(&set, base->facts->step_emulated);
	const struct thread_shares thread = thread_shares_of(base, stage->name);
	/* fmin and fmax pass over NAN */
	return isnan(host) ? NAN : fmin(host, fmax(thread.cpu, host - thread.queued));
}

/* The device waits for its thread: as with many small kernels.  The two take turns, so that what the one takes is lost to
 * the other, whichever takes more. */
static bool launch(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const double host = launch_share(base, stage);
	if (!(host >= HOST_BOUND))
		return false;
	const double by_host = cause_elasticity(base, COST_STEP_HOST);
	const bool agree = isnan(by_host) || by_host >= HOST_BOUND / 2;
	const bool told = !isnan(thread_shares_of(base, stage->name).queued);
	const double certainty = agree ? certainty_above(host, HOST_BOUND) : 0.5;
	return cause_is(out, "launch", told ? certainty : fmin(certainty, LAUNCH_UNTOLD),
		"the step's thread %s %.0f %% of a step's time before the device begins%s",
		told ? "works" : "takes", host * 100,
		told ? "" : "; how much of that it waited for a core is not known (no schedstat)");
}

/* Of the time, beyond what the device computes and its thread launches; 0 where the rate or the capacity is not known. */
static double late_share(const struct evidence_base *base, const struct stage_summary *stage)
{
	const double launching = launch_share(base, stage);
	const double late = stage->busy - base->point->median / stage->capacity -
			    (isnan(launching) ? 0 : launching * stage->busy);
	return late > 0 ? late : 0;
}

bool step_is_late(const struct evidence_base *base)
{
	const struct point_summary *point = base->point;
	const struct stage_summary *step = summary_stage(point, STAGE_STEP_NAME);
	return base->facts->step_emulated && step && late_share(base, step) > LATE_TOLD;
}

/* An emulated device whose thread the quota stops is late by that. */
static bool late_by_quota(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const double late = late_share(base, stage);
	char quota[QUOTA_NAME_BYTES];
	if (!base->facts->step_emulated || late < QUOTA_LATE || !cause_quota_throttles(base->point))
		return false;
	return cause_is(out, "quota", cause_quota_certainty(base->point),
		"%s throttled in %.0f %% of its periods: for %.0f %% of the time the emulated device's "
		"thread was late to hand over a step, or to wake up after it",
		cause_quota_name(base->point, quota), base->point->throttled_share * 100,
		late * 100);
}

/* How busy an emulated device is follows from its nominal time, not from how long its thread slept. */
static bool emulated_computes(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const double late = late_share(base, stage);
	/* fmin passes over NAN: a capacity that is not known */
	const double computing = fmin(base->point->median / stage->capacity, stage->busy);
	if (isnan(base->point->step_utilisation)) /* a run in progress */
		return cause_is(out, "compute", 0.95,
			"the step's thread is with its emulated device %.1f %% of the time, late wake-ups included",
			stage->busy * 100);
	if (late <= LATE_TOLD)
		return cause_is(out, "compute", 0.95,
			"the emulated device computes %.1f %% of the time", computing * 100);
	return cause_is(out, "compute", 0.6,
		"the emulated device computes %.1f %% of the time; for another %.1f %% its thread was late to hand over a step, or to wake up after it",
		computing * 100, late * 100);
}

static bool on_device(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	if (base->facts->step_emulated)
		return emulated_computes(base, stage, out);
	if (!stage->device)
		return false;
	return cause_is(
		out, "compute", 0.9, "the device computes %.1f %% of the time", stage->busy * 100);
}

static bool works_on_cpu(const struct stage_summary *stage, const char *resource, struct cause *out)
{
	if (stage->cpu < CPU_LIKELY)
		return false;
	return cause_is(out, resource,
		stage->cpu >= CPU_BOUND ? certainty_above(stage->cpu, CPU_BOUND) : 0.6,
		"%.1f %% of %s's working time is on a CPU, %.1f %% waits for a core",
		stage->cpu * 100, stage->name, stage->run_queue * 100);
}

static bool computes(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)base;
	return works_on_cpu(stage, "compute", out);
}

static bool device_uploads(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	const struct device_view view = device_view_of(base->repeats, base->count);
	/* A thread that works while nothing is copied lacks something on the host. */
	if (!view.any || !isfinite(view.copy_rate) ||
		!(view.copying >= COPIES_MOSTLY * stage->busy))
		return false;
	return cause_is(out, "copy", 0.95,
		"batches are copied to %s %.0f %% of the time, at %.1f GB/s", view.name,
		stage->busy * 100, view.copy_rate / 1e9);
}

static bool copies(
	const struct evidence_base *base, const struct stage_summary *stage, struct cause *out)
{
	(void)base;
	if (works_on_cpu(stage, "copy", out))
		return true;
	/* A copy that sleeps waits for the memory or the link that it copies over. */
	const double asleep = cause_asleep(stage);
	if (isnan(asleep) || asleep < stage->run_queue)
		return false;
	return cause_is(out, "copy", 0.85,
		"upload copies %.0f %% of its working time on a core and waits %.0f %% for the other side",
		stage->cpu * 100, asleep * 100);
}

cause_rule *const cause_rules_step[] = {cause_slow_device, device_throttled, device_copies,
	device_launch, device_computes, launch, late_by_quota, on_device, cause_unknown_split,
	cause_quota, cause_stolen, cause_external, cause_cores, computes, cause_unexplained, NULL};
cause_rule *const cause_rules_upload[] = {device_uploads, cause_unknown_split, cause_quota,
	cause_stolen, cause_external, cause_cores, copies, cause_unexplained, NULL};
