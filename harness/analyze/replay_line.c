/* The loop of events.  Whatever is integrated over time changes only at events. */
#include "harness/analyze/replay_line.h"

#include <errno.h>

void replay_dispatch(struct replay *r, uint32_t id)
{
	const uint32_t index = id & EVENT_INDEX_MASK;
	switch ((enum replay_event_kind)(id >> EVENT_INDEX_BITS)) {
	case EVENT_STEP:
		replay_step_go(r, index);
		break;
	case EVENT_UPLOAD:
		replay_upload_go(r, index);
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
	case EVENT_SYNC:
		replay_sync_done(r);
		break;
	}
}

/* Wakes all who can go on, until nobody can. */
static void replay_line_settle(struct replay *r)
{
	bool any = true;
	while (any && !replay_over(r)) {
		any = replay_wake_workers(r);
		any = replay_wake_readers(r) || any;
		any = replay_wake_ends(r) || any;
	}
	replay_cores_fill(&r->cores);
}

static bool step_is_busy(const struct replay_ends *ends, const struct replay_device *device)
{
	return device->step == STEP_ENDS || (device->step == STEP_LAUNCHES && ends->on_cores);
}

/* True: a consumer of batches waits for one. */
static bool pass_ends(const struct replay_ends *ends, double ns, double *sum)
{
	bool waits = false;
	for (uint32_t i = 0; i < ends->count; i++) {
		const struct replay_device *device = &ends->devices[i];
		sum[LEVEL_UPLOAD_STARVED] += ns * device->upload_starved;
		sum[LEVEL_UPLOAD_BLOCKED] += ns * device->upload_blocked;
		sum[LEVEL_STEP_STARVED] += ns * device->step_waits;
		sum[LEVEL_STEP_BUSY] += ns * step_is_busy(ends, device);
		sum[LEVEL_STEP_BLOCKED] += ns * (device->step == STEP_SYNCS);
		waits = waits || (ends->staging > 0 ? device->upload_starved : device->step_waits);
	}
	sum[LEVEL_SYNC_BUSY] += ns * (ends->gathered == ends->count);
	return waits;
}

static void pass(struct replay *r, double ns)
{
	const struct flow *flow = &r->flow;
	const uint32_t waiting =
		flow->deliverable < r->prefetch_depth ? flow->deliverable : r->prefetch_depth;
	double *sum = r->integral;
	const bool consumer_waits = pass_ends(&r->ends, ns, sum);
	sum[LEVEL_READ_BLOCKED] += ns * r->crew.blocked;
	sum[LEVEL_DECODE_STARVED] += ns * r->team.waiting[THREAD_STARVED];
	sum[LEVEL_DECODE_BLOCKED] += ns * r->team.waiting[THREAD_BLOCKED];
	sum[LEVEL_LOCK] += ns * r->team.locked;
	sum[LEVEL_CORES] += ns * r->cores.busy;
	sum[LEVEL_SAMPLES] += ns * r->flow.ready_count;
	sum[LEVEL_BATCHES] += ns * waiting;
	sum[LEVEL_ORDER_WAIT] += ns * (consumer_waits && flow->finished_count > flow->deliverable);
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
	/* The steps stopped where the last goal was reached. */
	for (uint32_t i = 0; r->ends.batches > 0 && i < r->ends.count; i++)
		replay_step_go(r, i);
	replay_line_settle(r);
	while (!replay_over(r)) {
		if (r->events >= r->events_max)
			return -E2BIG;
		if (!next_event(r))
			return -EDEADLK;
		replay_line_settle(r);
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
	for (uint32_t i = 0; r->ends.staging > 0 && i < r->ends.count; i++)
		replay_upload_go(r, i);
	for (uint32_t i = 0; i < r->ends.count; i++)
		replay_step_go(r, i);
}
