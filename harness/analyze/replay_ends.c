/* Upload and step of a replay: exchange_next_batch of pipelines/exchange.c, the loops of upload.c and
 * stepper.c. */
#include "harness/analyze/replay_line.h"

/* The exchange's consumer gives back what it held and takes a batch; false: there is none. */
static bool fetch(struct replay *r, bool *holds)
{
	r->slots.free += *holds;
	*holds = r->slots.deliverable > 0;
	if (*holds)
		replay_slots_deliver(&r->slots);
	return *holds;
}

/* The same from the staging slots. */
static bool fetch_staged(struct replay_ends *ends)
{
	ends->released += ends->step_holds;
	ends->step_holds = ends->taken < ends->filled;
	ends->taken += ends->step_holds;
	return ends->step_holds;
}

void replay_step_go(struct replay *r)
{
	struct replay_ends *ends = &r->ends;
	double ns;
	for (;;) {
		switch (ends->step) {
		case STEP_FETCHES:
			ends->step_woken = false;
			ends->step_waits = ends->staging > 0 ? !fetch_staged(ends)
							     : !fetch(r, &ends->step_holds);
			if (ends->step_waits)
				return;
			ends->step = STEP_LAUNCHES;
			ns = replay_cursor_next(&ends->host_cost);
			if (ns <= 0)
				break;
			for (uint32_t i = 0; i < ends->step_threads; i++)
				replay_compute(r, EVENT_STEP, i, ns);
			ends->computing = ends->step_threads;
			return;
		case STEP_LAUNCHES:
			if (ends->computing > 0 && --ends->computing > 0)
				return;
			ends->step = STEP_ENDS;
			ns = replay_cursor_next(&ends->device_cost);
			if (ns <= 0)
				break;
			replay_wait(r, replay_event_id(EVENT_STEP, 0), ns);
			return;
		case STEP_ENDS:
			ends->step = STEP_FETCHES;
			ends->batches++;
			if (replay_over(r))
				return;
		}
	}
}

void replay_upload_go(struct replay *r)
{
	struct replay_ends *ends = &r->ends;
	double ns;
	for (;;) {
		switch (ends->upload) {
		case UPLOAD_FETCHES:
			ends->upload_woken = false;
			ends->upload_starved = !fetch(r, &ends->upload_holds);
			if (ends->upload_starved)
				return;
			ends->upload = UPLOAD_STAGES;
			break;
		case UPLOAD_STAGES:
			ends->upload_woken = false;
			ends->upload_blocked = ends->filled - ends->released >= ends->staging;
			if (ends->upload_blocked)
				return;
			ends->upload = UPLOAD_ENDS;
			ns = replay_cursor_next(&ends->upload_cost);
			if (ns <= 0)
				break;
			replay_compute(r, EVENT_UPLOAD, 0, ns);
			return;
		case UPLOAD_ENDS:
			ends->filled++;
			ends->upload = UPLOAD_FETCHES;
		}
	}
}

static bool wake_upload(struct replay *r)
{
	struct replay_ends *ends = &r->ends;
	const bool fed = ends->upload_starved && r->slots.deliverable > 0;
	const bool room = ends->upload_blocked && ends->filled - ends->released < ends->staging;
	if (ends->upload_woken || !(fed || room))
		return false;
	ends->upload_woken = true;
	replay_wake(r, replay_event_id(EVENT_UPLOAD, 0));
	return true;
}

bool replay_wake_ends(struct replay *r)
{
	struct replay_ends *ends = &r->ends;
	bool any = ends->staging > 0 && wake_upload(r);
	const bool fed = ends->staging > 0 ? ends->taken < ends->filled : r->slots.deliverable > 0;
	if (ends->step_waits && !ends->step_woken && fed) {
		ends->step_woken = true;
		replay_wake(r, replay_event_id(EVENT_STEP, 0));
		any = true;
	}
	return any;
}
