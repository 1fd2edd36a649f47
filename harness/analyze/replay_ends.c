/* Upload and step of a replay: exchange_next_batch of pipelines/exchange.c, the loops of upload.c and
 * stepper.c for each device, and the exchange of gradients between them. */
#include "harness/analyze/replay_line.h"

/* The consumer of a lane gives back what it held and takes a batch; false: there is none. */
static bool fetch(struct replay *r, uint32_t lane)
{
	struct replay_device *device = &r->ends.devices[lane];
	if (device->held != FLOW_NONE)
		flow_release(&r->flow, device->held);
	device->held = flow_deliver(&r->flow, lane);
	return device->held != FLOW_NONE;
}

/* The same from the staging slots. */
static bool fetch_staged(struct replay_device *device)
{
	struct flow_staging *staging = &device->staging;
	staging->released += device->step_holds;
	device->step_holds = flow_staging_has_batch(staging);
	staging->taken += device->step_holds;
	return device->step_holds;
}

/* The last device to come begins the exchange. */
static void replay_ends_gather(struct replay *r, struct replay_device *device)
{
	struct replay_ends *ends = &r->ends;
	device->step = STEP_SYNCS;
	if (++ends->gathered == ends->count)
		replay_wait(
			r, replay_event_id(EVENT_SYNC, 0), replay_cursor_next(&ends->sync_cost));
}

void replay_sync_done(struct replay *r)
{
	struct replay_ends *ends = &r->ends;
	ends->gathered = 0;
	ends->batches += ends->count;
	for (uint32_t i = 0; i < ends->count; i++)
		ends->devices[i].step = STEP_FETCHES;
	for (uint32_t i = 0; i < ends->count && !replay_over(r); i++)
		replay_resume(r, replay_event_id(EVENT_STEP, i));
}

void replay_step_go(struct replay *r, uint32_t index)
{
	struct replay_ends *ends = &r->ends;
	struct replay_device *device = &ends->devices[index];
	double ns;
	for (;;) {
		switch (device->step) {
		case STEP_FETCHES:
			device->step_woken = false;
			device->step_waits =
				ends->staging > 0 ? !fetch_staged(device) : !fetch(r, index);
			if (device->step_waits)
				return;
			device->step = STEP_LAUNCHES;
			ns = replay_cursor_next(&ends->host_cost);
			if (ns <= 0)
				break;
			for (uint32_t i = 0; i < ends->step_threads; i++)
				replay_compute(r, EVENT_STEP, index * ends->step_threads + i, ns);
			device->computing = ends->step_threads;
			return;
		case STEP_LAUNCHES:
			if (device->computing > 0 && --device->computing > 0)
				return;
			device->step = STEP_ENDS;
			ns = device->factor * replay_cursor_next(&ends->device_cost);
			if (ns <= 0)
				break;
			replay_wait(r, replay_event_id(EVENT_STEP, index), ns);
			return;
		case STEP_ENDS:
			if (ends->count > 1) {
				replay_ends_gather(r, device);
				return;
			}
			device->step = STEP_FETCHES;
			ends->batches++;
			if (replay_over(r))
				return;
			break;
		case STEP_SYNCS:
			return;
		}
	}
}

void replay_upload_go(struct replay *r, uint32_t index)
{
	struct replay_ends *ends = &r->ends;
	struct replay_device *device = &ends->devices[index];
	double ns;
	for (;;) {
		switch (device->upload) {
		case UPLOAD_FETCHES:
			device->upload_woken = false;
			device->upload_starved = !fetch(r, index);
			if (device->upload_starved)
				return;
			device->upload = UPLOAD_STAGES;
			break;
		case UPLOAD_STAGES:
			device->upload_woken = false;
			device->upload_blocked =
				!flow_staging_has_place(&device->staging, device->staging.filled);
			if (device->upload_blocked)
				return;
			device->upload = UPLOAD_ENDS;
			ns = replay_cursor_next(&ends->upload_cost);
			if (ns <= 0)
				break;
			if (ends->copies_off_cores)
				replay_wait(r, replay_event_id(EVENT_UPLOAD, index), ns);
			else
				replay_compute(r, EVENT_UPLOAD, index, ns);
			return;
		case UPLOAD_ENDS:
			device->staging.filled++;
			device->upload = UPLOAD_FETCHES;
		}
	}
}

static bool wake_upload(struct replay *r, uint32_t index)
{
	struct replay_device *device = &r->ends.devices[index];
	const bool fed = device->upload_starved && flow_has_for(&r->flow, index);
	const bool room = device->upload_blocked &&
			  flow_staging_has_place(&device->staging, device->staging.filled);
	if (device->upload_woken || !(fed || room))
		return false;
	device->upload_woken = true;
	replay_wake(r, replay_event_id(EVENT_UPLOAD, index));
	return true;
}

bool replay_wake_ends(struct replay *r)
{
	const struct replay_ends *ends = &r->ends;
	bool any = false;
	for (uint32_t i = 0; i < ends->count; i++) {
		struct replay_device *device = &r->ends.devices[i];
		any = (ends->staging > 0 && wake_upload(r, i)) || any;
		const bool fed = ends->staging > 0 ? flow_staging_has_batch(&device->staging)
						   : flow_has_for(&r->flow, i);
		if (device->step_waits && !device->step_woken && fed) {
			device->step_woken = true;
			replay_wake(r, replay_event_id(EVENT_STEP, i));
			any = true;
		}
	}
	return any;
}
