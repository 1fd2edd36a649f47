/* Logs for the threads, streams and queues of a run. */
#include "pipelines/timeline_wiring.h"

#include "harness/measure/timeline.h"
#include "workloads/backend/backend.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
	/* Entries of a sample at most: its file in two parts, the visits of a reader, open, read and close, the
	 * sample with its sub-stages, the depth of the queue twice, a change of state four times. */
	ENTRIES_PER_SAMPLE = 26,
	/* Of a step, and of each thread in it: copies and steps with their parts, states cut at its end. */
	ENTRIES_PER_STEP = 32,
	ENTRIES_PER_THREAD = 8,
	STREAMS_PER_DEVICE = 2,
	QUEUES = 2, /* beside one of uploaded batches for each device */
};

static bool timeline_wanted(const struct config *config, struct step_schedule *schedule)
{
	const char *text = config_text(config, KEY_TRACE_SCHEDULE);
	return *text && !step_schedule_parse(text, schedule) &&
	       config_on(config, KEY_MEASURE_PROFILER);
}

static uint64_t entries_for(const struct step_schedule *schedule, uint64_t per_step)
{
	/* The step before each window is kept, too. */
	const uint64_t kept = step_schedule_kept(schedule);
	const uint64_t steps = kept < UINT64_MAX ? kept + schedule->repeat : kept;
	return steps > TIMELINE_ENTRIES_MAX / per_step ? TIMELINE_ENTRIES_MAX : steps * per_step;
}

void timeline_wiring_plan(const struct config *config, struct pipeline_plan *plan)
{
	struct step_schedule schedule;
	if (!timeline_wanted(config, &schedule))
		return;
	const unsigned uploads = plan->staging_slots > 0 ? plan->devices : 0;
	const unsigned threads = plan->reader_threads + plan->decode_workers + uploads +
				 plan->devices + (plan->devices > 1 ? plan->devices : 0);
	const uint64_t samples = (uint64_t)config_integer(config, KEY_BATCH_SIZE) * plan->devices;
	const uint64_t per_step = samples * ENTRIES_PER_SAMPLE + plan->devices * ENTRIES_PER_STEP +
				  threads * ENTRIES_PER_THREAD;
	plan->timeline_logs = threads + STREAMS_PER_DEVICE * plan->devices + QUEUES + uploads;
	plan->timeline_entries = entries_for(&schedule, per_step);
	plan->timeline_bytes = timeline_bytes(plan->timeline_entries, plan->timeline_logs);
}

static void attach_stage(struct run *run, struct stage *stage, bool leads)
{
	for (unsigned i = 0; i < stage->workers; i++) {
		struct timeline_log *log =
			timeline_add_log(run->timeline, TIMELINE_THREAD, stage->name, i);
		if (!log)
			return;
		log->clock = &stage->meters[i].clock;
		log->leads = leads && i == 0;
		log->lone = stage->workers == 1;
		stage->meters[i].clock.timeline = log;
	}
}

static void timeline_wiring_describe(struct run *run)
{
	struct timeline *t = run->timeline;
	t->batches_per_epoch = run->plan.batches_per_epoch;
	t->batch_size = (uint32_t)config_integer(run->config, KEY_BATCH_SIZE);
	t->devices = run->plan.devices;
	t->emulated = run->backend->emulated;
}

int timeline_wiring_open(struct run *run)
{
	struct step_schedule schedule;
	if (!run->wants_timeline || !timeline_wanted(run->config, &schedule))
		return 0;
	const int code = timeline_open(
		&run->timeline, &schedule, run->plan.timeline_entries, run->plan.timeline_logs);
	if (code)
		return code;
	timeline_wiring_describe(run);
	for (int id = 0; id < STAGE_IDS; id++)
		if (run->stages[id].meters)
			attach_stage(run, &run->stages[id], id == STAGE_STEP);
	return 0;
}

struct timeline_log *timeline_wiring_queue(struct run *run, const char *name, unsigned device)
{
	return run->timeline ? timeline_add_log(run->timeline, TIMELINE_QUEUE, name, device) : NULL;
}

struct timeline_log *timeline_wiring_stream(struct run *run, const char *name, unsigned device)
{
	return run->timeline ? timeline_add_log(run->timeline, TIMELINE_DEVICE, name, device)
			     : NULL;
}

void timeline_wiring_start(struct run *run, uint64_t start_ns)
{
	if (run->timeline)
		timeline_start(run->timeline, start_ns);
}

static void note_lost(const struct timeline *t, struct measurement *m)
{
	if (t->dropped_steps > 0)
		measurement_note(m,
			"timeline: %" PRIu64
			" steps of trace.schedule are not in it: its memory was used up",
			t->dropped_steps);
}

void timeline_wiring_hand_over(struct run *run, struct timeline **out)
{
	struct timeline *t = run->timeline;
	if (!t || !out)
		return;
	timeline_finish(t, clock_now_ns());
	(void)snprintf(t->engine, sizeof t->engine, "%s", run->source->ops->name);
	uint64_t steps = 0;
	for (size_t i = 0; i < t->window_count; i++)
		steps += t->windows[i].steps;
	if (steps > 0)
		measurement_note(run->m,
			"timeline: %" PRIu64 " steps recorded, the first of them step %" PRIu64,
			steps, t->windows[0].first_step);
	else
		measurement_note(run->m,
			"timeline: the repetition ended after %" PRIu64
			" steps, before one was recorded whole by trace.schedule",
			t->steps);
	note_lost(t, run->m);
	*out = t;
	run->timeline = NULL;
}
