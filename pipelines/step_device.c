/* Stepping on a device that works by itself: the thread launches the next steps while the device is at
 * one, at most 1 + step.ahead of them, and finishes them in their order.
 *
 * While any is in flight it waits for whichever comes first, a batch or the end of the oldest step: for
 * the batch in the queue where it would be woken, with a look at the device now and then.  That the end
 * is seen a little late costs nothing, since there is no batch to launch, and no truth, since the end is
 * what the device's clock says.
 *
 * A planted slow-down keeps a clock of the steps as they should have been: each begins when the device
 * began it, or when the one before it ended, and is counted, and its slot given back, when it ends. */
#include "pipelines/stepper_parts.h"

#include "harness/base/clock.h"
#include "harness/measure/span.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum {
	LOOKS_PER_STEP = 16,
	LOOK_LEAST_NS = 50000,
	LOOK_MOST_NS = 1000000,
};

/* A step that was launched. */
struct flight {
	struct slot *slot;
	uint64_t had_ns;     /* the thread had the batch */
	uint64_t launch_ns;  /* host time of launching it */
	double factor;       /* planted */
	uint64_t copy_bytes; /* of a batch that was not uploaded before */
};

struct flights {
	struct stepper *stepper;
	struct flight *list; /* ring of (room) */
	unsigned room;
	uint64_t launched, finished;
	uint64_t last_end_ns; /* of the newest that was finished, as planted */
	uint64_t look_ns;     /* between looks at the device */
	bool over;            /* no batch will come */
};

static bool step_device_report(const struct stepper *s, int code, const struct error *err)
{
	struct error named = *err;
	if (code && !crew_stopping(s->options.crew))
		stepper_fail(s, code, &named);
	return code == 0;
}

static bool launch(struct flights *f, struct slot *slot)
{
	struct stepper *s = f->stepper;
	const struct stepper_options *o = &s->options;
	const struct batch_view view = stepper_view(s, slot);
	struct flight *const flight = &f->list[f->launched % f->room];
	if (view.place == BATCH_ON_HOST)
		first_epoch_hash(o->first, slot);
	*flight = (struct flight){
		.slot = slot,
		.had_ns = clock_now_ns(),
		.copy_bytes = view.place == BATCH_ON_HOST ? view.bytes : 0,
	};
	const struct span span = span_begin(STAGE_STEP, s->backend->ops->mark);
	flight->factor = injection_begin_step(o->injection, o->lane, &o->crew->stopping);
	struct error err = {0};
	const int code = s->backend->ops->launch(s->backend, &view, &err);
	flight->launch_ns = clock_now_ns() - flight->had_ns;
	span_end(&span, TIMELINE_LAUNCH, slot->batch, slot->size);
	f->launched++;
	return step_device_report(s, code, &err);
}

static uint64_t step_device_later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* When the device was at it, by its own clock where that is known, never after now; as planted. */
static struct step_record step_device_judge(
	struct flights *f, const struct flight *flight, struct step_result *result, uint64_t now_ns)
{
	const bool known = result->end_ns > 0 && result->end_ns < now_ns;
	const uint64_t real_end_ns = known ? result->end_ns : now_ns;
	const uint64_t free_ns = step_device_later(f->last_end_ns, flight->had_ns);
	uint64_t began_ns =
		result->begin_ns > 0 ? result->begin_ns : real_end_ns - result->device_ns;
	began_ns = step_device_later(began_ns, f->last_end_ns);
	/* Nothing is planted in what it spends with other devices. */
	const uint64_t own_ns = result->device_ns - result->sync_ns;
	const uint64_t took_ns = (uint64_t)(flight->factor * (double)own_ns) + result->sync_ns;
	/* The rest of a gap is waiting for the copy of the batch. */
	const uint64_t gap_ns = began_ns > free_ns ? began_ns - free_ns : 0;
	const bool planted = flight->factor > 1 || f->last_end_ns > real_end_ns;
	const uint64_t end_ns = planted ? began_ns + took_ns : real_end_ns;
	result->device_ns = took_ns;
	result->launch_ns = flight->launch_ns;
	const struct step_record record = {
		.seen_ns = now_ns,
		.ended_ns = step_device_later(end_ns, f->last_end_ns),
		.service_ns = took_ns - result->sync_ns,
		.host_ns = gap_ns < flight->launch_ns ? gap_ns : flight->launch_ns,
		.took_ns = now_ns - flight->had_ns,
		.copy_bytes = flight->copy_bytes,
	};
	f->last_end_ns = record.ended_ns;
	return record;
}

static void choose_look(struct flights *f, uint64_t service_ns)
{
	const uint64_t share_ns = service_ns / LOOKS_PER_STEP;
	f->look_ns = share_ns < LOOK_LEAST_NS  ? LOOK_LEAST_NS
		     : share_ns < LOOK_MOST_NS ? share_ns
					       : LOOK_MOST_NS;
}

static void step_device_trace_device(
	const struct stepper *s, uint64_t batch, const struct step_result *result)
{
	const struct trace_entry item = {
		.number = batch,
		.end_ns = result->end_ns,
		.service_ns = (float)(result->end_ns - result->begin_ns),
		.host_ns = (float)result->launch_ns,
	};
	if (result->end_ns > 0)
		span_device(s->options.meter, NULL, TIMELINE_DEVICE_STEP, result->begin_ns, &item);
}

/* Waits for the oldest step; its slot is free again.  NULL: the run is over. */
static struct slot *step_device_finish(struct flights *f, uint64_t *now_ns)
{
	struct stepper *s = f->stepper;
	const struct stepper_options *o = &s->options;
	if (o->upload)
		upload_wait_copy(o->upload, &s->seat, f->finished, now_ns);
	if (crew_stopping(o->crew))
		return NULL;
	const struct flight *const flight = &f->list[f->finished % f->room];
	struct step_result result = {.loss = NAN,
		.idle_share = NAN,
		.gradient_norm = NAN,
		.nonfinite_share = NAN,
		.activation_mean = NAN,
		.activation_deviation = NAN};
	struct error err = {0};
	const uint64_t shown_ns = timeline_mark();
	const int code = s->backend->ops->finish(s->backend, &result, &err);
	(void)timeline_end(TIMELINE_STEP_WAIT, shown_ns, flight->slot->batch);
	/* A step that was cut short by the end of the run does not count. */
	if (!step_device_report(s, code, &err) || crew_stopping(o->crew))
		return NULL;
	struct step_record record = step_device_judge(f, flight, &result, clock_now_ns());
	step_device_trace_device(s, flight->slot->batch, &result);
	stepper_show_device(s, flight->slot->batch, &result);
	injection_hold(record.ended_ns, &o->crew->stopping);
	if (crew_stopping(o->crew))
		return NULL;
	choose_look(f, record.service_ns);
	f->finished++;
	if (s->options.meter)
		record.seen_ns = clock_now_ns();
	return stepper_count(s, flight->slot, &result, &record) ? flight->slot : NULL;
}

/* The next batch, giving a slot back (or NULL) on the way. */
static struct slot *step_device_next_batch(struct flights *f, struct slot *used, uint64_t *now_ns)
{
	struct stepper *s = f->stepper;
	const struct stepper_options *o = &s->options;
	struct slot *slot;
	if (f->launched == f->finished) {
		slot = o->upload
			       ? upload_next_batch(o->upload, &s->seat, used, now_ns)
			       : exchange_next_batch(o->exchange, o->lane, &s->seat, used, now_ns);
		f->over = !slot;
		return slot;
	}
	const uint64_t until_ns =
		s->backend->ops->finished(s->backend) ? 0 : clock_now_ns() + f->look_ns;
	return o->upload ? upload_try_batch(o->upload, &s->seat, used, f->finished, until_ns,
				   &f->over, now_ns)
			 : exchange_try_batch(o->exchange, o->lane, &s->seat, used, until_ns,
				   &f->over, now_ns);
}

static void fly(struct flights *f)
{
	struct stepper *s = f->stepper;
	const struct backend_ops *const ops = s->backend->ops;
	uint64_t now_ns = s->options.meter ? s->start_ns : 0;
	struct slot *used = NULL;
	bool going = true;
	while (going && !crew_stopping(s->options.crew)) {
		const uint64_t in_flight = f->launched - f->finished;
		struct slot *slot = NULL;
		if (used || (!f->over && in_flight < f->room))
			slot = step_device_next_batch(f, used, &now_ns);
		used = NULL;
		if (slot)
			going = launch(f, slot);
		else if (in_flight > 0 &&
			 (f->over || in_flight == f->room || ops->finished(s->backend)))
			going = (used = step_device_finish(f, &now_ns)) != NULL;
		else if (f->over)
			going = false;
		if (s->options.meter)
			now_ns = clock_now_ns();
	}
}

void step_by_device(struct stepper *s)
{
	struct flights f = {
		.stepper = s,
		.room = 1 + (unsigned)config_integer(s->options.config, KEY_STEP_AHEAD),
		.last_end_ns = s->start_ns,
		.look_ns = LOOK_LEAST_NS,
	};
	f.list = calloc(f.room, sizeof *f.list);
	if (f.list) {
		fly(&f);
	} else {
		struct error err;
		crew_fail(s->options.crew, error_set(&err, -ENOMEM, "out of memory"), &err);
	}
	free(f.list);
}
