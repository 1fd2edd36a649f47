/* What came through the step. */
#include "pipelines/stepper_parts.h"

#include "harness/base/clock.h"
#include "harness/measure/span.h"

#include <errno.h>
#include <math.h>

struct batch_view stepper_view(const struct stepper *s, const struct slot *slot)
{
	const struct stepper_options *o = &s->options;
	const bool uploaded = o->upload && backend_is_device(s->backend->ops);
	return slot_view(slot, &o->sizes, uploaded ? (int)slot->index : BATCH_ON_HOST);
}

static void account_meter(
	struct thread_meter *meter, const struct slot *slot, const struct step_record *r)
{
	const struct trace_entry item = {
		.number = slot->batch,
		.end_ns = r->ended_ns,
		.service_ns = (float)r->service_ns,
		.host_ns = (float)r->host_ns,
	};
	span_item(meter, r->ended_ns, r->service_ns, &item);
}

/* A device may not tell it of every step. */
static void keep_loss(struct step_account *account, double loss)
{
	if (account->on_device && isnan(loss))
		return;
	if (isnan(account->loss_first))
		account->loss_first = loss;
	account->loss_last = loss;
}

static void add_device_times(struct completion *sum, const struct step_result *result)
{
	sum->launch_ns += result->launch_ns;
	sum->copy_ns += result->copy_ns;
	if (isnan(result->idle_share))
		return;
	sum->idle_ns += (uint64_t)(result->idle_share * (double)result->device_ns);
	sum->idle_of_ns += result->device_ns;
}

/* The newest that was sampled. */
static void keep_statistics(struct device_measurement *device, const struct step_result *result)
{
	if (isnan(result->gradient_norm) && isnan(result->nonfinite_share))
		return;
	device->gradient_norm = result->gradient_norm;
	device->nonfinite_share = result->nonfinite_share;
	device->activation_mean = result->activation_mean;
	device->activation_deviation = result->activation_deviation;
}

/* An emulated device is a clock: its times are nominal ones. */
void stepper_show_device(const struct stepper *s, uint64_t batch, const struct step_result *result)
{
	struct timeline_log *const log = s->options.device_timeline;
	if (!log || result->end_ns == 0)
		return;
	const uint64_t computed_ns =
		result->sync_ns > 0 ? result->end_ns - result->sync_ns : result->end_ns;
	struct timeline_entry entry = {.begin_ns = result->begin_ns,
		.end_ns = computed_ns,
		.number = batch,
		.kind = TIMELINE_DEVICE_STEP};
	timeline_put(log, &entry);
	entry.begin_ns = computed_ns;
	entry.end_ns = result->end_ns;
	entry.kind = TIMELINE_DEVICE_SYNC;
	if (result->sync_ns > 0)
		timeline_put(log, &entry);
}

/* The step's thread has seen its end: the next one begins. */
static void end_step(const struct stepper *s, const struct slot *slot, uint64_t seen_ns)
{
	struct timeline_log *const log = s->options.meter ? s->options.meter->clock.timeline : NULL;
	if (log)
		timeline_step(log, slot->batch, seen_ns);
}

void stepper_fail(const struct stepper *s, int code, struct error *err)
{
	if (s->options.devices > 1)
		(void)error_prefix(err, code, "device %u", s->options.lane);
	crew_fail(s->options.crew, code, err);
}

/* What of the step the device spent with others is known only now: its thread was counted as working. */
static void move_sync(const struct stepper *s, const struct step_result *result)
{
	if (s->options.meter && s->account.on_device && result->sync_ns > 0)
		state_clock_move(&s->options.meter->clock, THREAD_WORKING, THREAD_BLOCKED,
			result->sync_ns, clock_now_ns());
}

static void add_round(struct stepper *s, const struct slot *slot, const struct step_result *result,
	const struct step_record *record)
{
	const struct round_step step = {
		.batch = slot->batch,
		.ended_ns = record->ended_ns,
		.samples = slot->size - slot->bad,
		.stepped = slot->size,
		.compute_ns = result->device_ns - result->sync_ns,
		.oversleep_ns = result->oversleep_ns,
		.sync_begin_ns = result->sync_begin_ns,
		.sync_ns = result->sync_ns,
	};
	rounds_add(s->options.rounds, s->options.lane, &step);
}

bool stepper_count(struct stepper *s, const struct slot *slot, const struct step_result *result,
	const struct step_record *record)
{
	s->sum.t_ns = record->ended_ns - s->start_ns;
	s->sum.samples += slot->size - slot->bad;
	s->sum.batches++;
	s->sum.device_ns += result->device_ns;
	s->sum.oversleep_ns += result->oversleep_ns;
	s->sum.stepped += slot->size;
	s->sum.sync_ns += result->sync_ns;
	s->sum.copy_bytes += record->copy_bytes;
	if (s->account.on_device) {
		add_device_times(&s->sum, result);
		keep_statistics(&s->account.device, result);
	}
	completions_add(&s->account.completions, &s->sum);
	move_sync(s, result);
	add_round(s, slot, result, record);
	if (s->sum.t_ns >= s->options.warmup_ns &&
		result->oversleep_ns > s->account.oversleep_max_ns)
		s->account.oversleep_max_ns = result->oversleep_ns;
	keep_loss(&s->account, result->loss);
	if (s->options.meter)
		account_meter(s->options.meter, slot, record);
	end_step(s, slot, record->seen_ns);
	atomic_store_explicit(&s->samples, s->sum.samples, memory_order_relaxed);
	atomic_store_explicit(&s->batches, s->sum.batches, memory_order_relaxed);
	atomic_store_explicit(&s->last_step_ns, record->took_ns, memory_order_relaxed);
	if (first_epoch_step(s->options.first, slot))
		return true;
	struct error err;
	crew_fail(s->options.crew,
		error_set(&err, -EBADMSG,
			"not one sample of the first epoch could be read and decoded"),
		&err);
	return false;
}
