/* The loop of events.  Whatever is integrated over time changes only at events. */
#include "harness/analyze/replay_line.h"

#include <errno.h>

void replay_dispatch(struct replay *r, uint32_t id)
{
	const uint32_t index = id & EVENT_INDEX_MASK;
	switch ((enum replay_event_kind)(id >> EVENT_INDEX_BITS)) {
	case EVENT_STEP:
		replay_step_go(r);
		break;
	case EVENT_UPLOAD:
		replay_upload_go(r);
		break;
	case EVENT_WORKER:
		replay_worker_go(r, index);
		break;
	case EVENT_READER:
		replay_reader_go(r, index);
		break;
	case EVENT_FILE:
		replay_file_done(r, index);
		break;
	case EVENT_LOOK:
		replay_reader_look(r, index);
		break;
	}
}

/* Wakes all who can go on, until nobody can. */
static void settle(struct replay *r)
{
	bool any = true;
	while (any && !replay_over(r)) {
		any = replay_wake_workers(r);
		any = replay_wake_readers(r) || any;
		any = replay_wake_ends(r) || any;
	}
	replay_cores_fill(&r->cores);
}

static bool step_is_busy(const struct replay_ends *ends)
{
	return ends->step == STEP_ENDS || (ends->step == STEP_LAUNCHES && ends->on_cores);
}

static void pass(struct replay *r, double ns)
{
	const struct replay_ends *ends = &r->ends;
	const struct replay_slots *slots = &r->slots;
	const uint32_t waiting =
		slots->deliverable < r->prefetch_depth ? slots->deliverable : r->prefetch_depth;
	const bool consumer_waits = ends->staging > 0 ? ends->upload_starved : ends->step_waits;
	double *sum = r->integral;
	sum[LEVEL_READ_BLOCKED] += ns * r->crew.blocked;
	sum[LEVEL_DECODE_STARVED] += ns * r->team.waiting[THREAD_STARVED];
	sum[LEVEL_DECODE_BLOCKED] += ns * r->team.waiting[THREAD_BLOCKED];
	sum[LEVEL_UPLOAD_STARVED] += ns * ends->upload_starved;
	sum[LEVEL_UPLOAD_BLOCKED] += ns * ends->upload_blocked;
	sum[LEVEL_STEP_STARVED] += ns * ends->step_waits;
	sum[LEVEL_STEP_BUSY] += ns * step_is_busy(ends);
	sum[LEVEL_LOCK] += ns * r->team.locked;
	sum[LEVEL_CORES] += ns * r->cores.busy;
	sum[LEVEL_SAMPLES] += ns * r->files.ready;
	sum[LEVEL_BATCHES] += ns * waiting;
	sum[LEVEL_ORDER_WAIT] +=
		ns * (consumer_waits && slots->finished_count > slots->deliverable);
	r->now += ns;
}

static void do_timed(struct replay *r, const struct replay_event event)
{
	const double ns = event.key - r->now;
	replay_heap_pop(&r->timed);
	replay_cores_pass(&r->cores, ns);
	pass(r, ns);
	replay_resume(r, event.id);
}

static void do_core(struct replay *r, double end)
{
	pass(r, end - r->now);
	const uint32_t thread = replay_cores_end(&r->cores);
	if (thread != REPLAY_NOBODY)
		replay_dispatch(r, r->event_of[thread]);
}

/* Goes to the next event and does it; false: there is none.  What is off the cores comes first. */
static bool next_event(struct replay *r)
{
	const struct replay_event *timed = replay_heap_first(&r->timed);
	const double core_end = replay_cores_next(&r->cores, r->now);
	if (timed && timed->key <= core_end)
		do_timed(r, *timed);
	else if (core_end < HUGE_VAL)
		do_core(r, core_end);
	else
		return false;
	r->events++;
	return true;
}

int replay_until(struct replay *r, uint64_t batches)
{
	r->batches_end = batches;
	/* The step stopped where the last goal was reached. */
	if (r->ends.batches > 0)
		replay_step_go(r);
	settle(r);
	while (!replay_over(r)) {
		if (r->events >= r->events_max)
			return -E2BIG;
		if (!next_event(r))
			return -EDEADLK;
		settle(r);
	}
	return 0;
}

void replay_start(struct replay *r)
{
	r->batches_end = UINT64_MAX;
	for (uint32_t i = 0; i < r->crew.count; i++)
		replay_reader_go(r, i);
	for (uint32_t i = 0; i < r->team.count; i++)
		replay_worker_go(r, i);
	if (r->ends.staging > 0)
		replay_upload_go(r);
	replay_step_go(r);
}
