/* Uploading to a device that copies by itself.  The thread begins a copy for every batch that there is a
 * place for, and gives a batch's slot back when its copy has ended.  It waits for a batch or a place only
 * while no copy is under way: then it holds no slot.
 *
 * A planted slow-down keeps a clock of the copies as they should have been: each begins when the device
 * began it, or when the one before it ended, and the step gets its batch only when it ends. */
#include "pipelines/upload_parts.h"

#include "harness/base/clock.h"
#include "harness/measure/span.h"
#include "workloads/backend/backend.h"

#include <math.h>

struct copies {
	struct upload *upload;
	struct slot *from[UPLOAD_PLACES_MAX]; /* by place; of those under way */
	uint64_t begun_ns[UPLOAD_PLACES_MAX]; /* the host began it */
	uint64_t begun, ended;                /* copies */
	uint64_t last_end_ns;                 /* of the newest that ended */
	bool late;                            /* the step gets a batch when its copy has ended */
	bool over;                            /* no batch will come */
};

static bool upload_device_report(const struct upload *u, int code, const struct error *err)
{
	struct error named = *err;
	if (code && u->options.devices > 1)
		(void)error_prefix(&named, code, "device %u", u->options.lane);
	if (code && !crew_stopping(u->options.crew))
		crew_fail(u->options.crew, code, &named);
	return code == 0;
}

static bool upload_device_begin(
	struct copies *c, struct slot *to, struct slot *from, uint64_t now_ns)
{
	struct upload *u = c->upload;
	const struct upload_options *o = &u->options;
	first_epoch_hash(o->first, from);
	upload_label(to, from);
	const struct batch_view view = slot_view(from, &o->sizes, (int)to->index);
	c->from[to->index] = from;
	c->begun_ns[to->index] = clock_now_ns();
	struct error err = {0};
	const struct span span = span_begin(STAGE_UPLOAD, u->backend->ops->mark);
	const int code = u->backend->ops->upload(u->backend, to->index, &view, &err);
	span_end(&span, TIMELINE_COPY_LAUNCH, from->batch, 0);
	if (!upload_device_report(u, code, &err))
		return false;
	c->begun++;
	if (!c->late)
		upload_deliver(u, now_ns);
	return true;
}

/* When it was at work, by the device's own clock where that is known. */
static void upload_device_judge(struct copies *c, const struct slot *from,
	const struct upload_result *result, uint64_t begun_ns, struct copy_times *out)
{
	const struct upload_options *o = &c->upload->options;
	const uint64_t now_ns = clock_now_ns();
	const bool known = result->end_ns > 0;
	uint64_t end_ns = known && result->end_ns < now_ns ? result->end_ns : now_ns;
	uint64_t took_ns = known ? result->device_ns : 0;
	const uint64_t free_ns = begun_ns > c->last_end_ns ? begun_ns : c->last_end_ns;
	if (!known)
		took_ns = end_ns > free_ns ? end_ns - free_ns : 0;
	out->batch = from->batch;
	out->bytes = slot_view(from, &o->sizes, 0).bytes;
	if (c->late) {
		const uint64_t began_ns = end_ns - took_ns;
		took_ns = injection_copy_ns(o->injection, began_ns, took_ns, out->bytes);
		end_ns = (began_ns > c->last_end_ns ? began_ns : c->last_end_ns) + took_ns;
	}
	out->service_ns = took_ns;
	out->ended_ns = end_ns > c->last_end_ns ? end_ns : c->last_end_ns;
	c->last_end_ns = out->ended_ns;
}

/* What the device did, as nothing planted would have it. */
static void upload_device_trace_device(
	const struct upload *u, uint64_t batch, const struct upload_result *result)
{
	const struct trace_entry item = {
		.number = batch,
		.end_ns = result->end_ns,
		.service_ns = (float)(result->end_ns - result->begin_ns),
		.host_ns = NAN,
	};
	if (result->end_ns > 0)
		span_device(u->options.meter, u->options.device_timeline, TIMELINE_DEVICE_COPY,
			result->begin_ns, &item);
}

/* Waits for the oldest copy; its slot is free again.  NULL: the run is over. */
static struct slot *upload_device_finish(struct copies *c, uint64_t *now_ns)
{
	struct upload *u = c->upload;
	const struct upload_options *o = &u->options;
	const unsigned place = (unsigned)(c->ended % u->ring.places);
	struct upload_result result = {0};
	struct error err = {0};
	const uint64_t shown_ns = timeline_mark();
	const int code = u->backend->ops->upload_finish(u->backend, place, &result, &err);
	(void)timeline_end(TIMELINE_COPY_WAIT, shown_ns, c->from[place]->batch);
	if (!upload_device_report(u, code, &err) || crew_stopping(o->crew))
		return NULL;
	struct slot *const from = c->from[place];
	struct copy_times times;
	upload_device_judge(c, from, &result, c->begun_ns[place], &times);
	upload_device_trace_device(u, from->batch, &result);
	c->ended++;
	if (c->late)
		injection_hold(times.ended_ns, &o->crew->stopping);
	if (*now_ns > 0)
		*now_ns = clock_now_ns();
	upload_count(u, &times, true);
	upload_copied(u);
	if (c->late)
		upload_deliver(u, *now_ns);
	return from;
}

/* Begins the copy of the next batch, giving a slot back (or NULL) on the way.  False: the run is over, or
 * failed; *begun: whether there was a batch. */
static bool begin_next(
	struct copies *c, struct slot *to, struct slot *used, bool *begun, uint64_t *now_ns)
{
	struct upload *u = c->upload;
	struct exchange *x = u->options.exchange;
	const unsigned lane = u->options.lane;
	const bool flying = c->begun > c->ended;
	struct slot *const from =
		flying ? exchange_try_batch(x, lane, &u->seat, used, 0, &c->over, now_ns)
		       : exchange_next_batch(x, lane, &u->seat, used, now_ns);
	c->over = c->over || (!flying && !from);
	*begun = from != NULL;
	return !from || upload_device_begin(c, to, from, *now_ns);
}

void upload_by_device(struct upload *u, uint64_t start_ns)
{
	const struct backend_ops *const ops = u->backend->ops;
	struct copies c = {.upload = u, .late = injection_slows_copies(u->options.injection)};
	uint64_t now_ns = u->options.meter ? start_ns : 0;
	struct slot *used = NULL;
	bool going = true;
	while (going && !crew_stopping(u->options.crew)) {
		const bool flying = c.begun > c.ended;
		const unsigned oldest = (unsigned)(c.ended % u->ring.places);
		if (flying && !used && ops->upload_finished(u->backend, oldest)) {
			used = upload_device_finish(&c, &now_ns);
			going = used != NULL;
			continue;
		}
		struct slot *const to =
			c.over ? NULL : upload_take_place(u, c.begun, !flying && !used, &now_ns);
		bool begun = false;
		if (to)
			going = begin_next(&c, to, used, &begun, &now_ns);
		else if (used)
			exchange_release(u->options.exchange, &u->seat, used, &now_ns);
		used = NULL;
		if (begun || !going)
			continue;
		if (c.begun > c.ended)
			going = (used = upload_device_finish(&c, &now_ns)) != NULL;
		else if (c.over)
			going = false;
	}
}
