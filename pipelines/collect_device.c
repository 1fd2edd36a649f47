/* Filling the measurement's devices.
 *
 *   step, sync         sums of the device's own times over the steps between the span's completions
 *   upload             likewise of the copies that ended between its edges; where there is no upload stage,
 *                      of the copies that the steps began with
 *   utilisation        FLOPs of the steps / time between the completions / published peak */
#include "pipelines/collect_device.h"

#include "harness/base/clock.h"

static double seconds(uint64_t ns)
{
	return (double)ns / (double)NS_PER_S;
}

static void fill_copies(const struct recorded *r, const struct span *span, unsigned device,
	const struct completion *steps, struct device_measurement *out)
{
	const bool by_stage = r->plan->staging_slots > 0;
	const struct upload_totals *const from = &span->from->uploads[device];
	const struct upload_totals *const to = &span->to->uploads[device];
	out->upload_seconds = seconds(by_stage ? to->device_ns - from->device_ns : steps->copy_ns);
	out->upload_bytes = (double)(by_stage ? to->bytes - from->bytes : steps->copy_bytes);
}

static void fill_flops(const struct step_account *step, const struct completion *steps,
	uint32_t batch_size, struct device_measurement *out)
{
	const double flops = step->flops_per_sample * (double)steps->stepped;
	if (!(out->flops_per_step > 0))
		out->flops_per_step = step->flops_per_sample * batch_size;
	if (!(flops > 0))
		return;
	if (steps->device_ns > 0)
		out->achieved_flops = flops / seconds(steps->device_ns);
	if (steps->t_ns > 0)
		out->model_utilisation = flops / seconds(steps->t_ns) / out->peak_flops;
}

/* Of the exchanges in the rounds that were complete by then.  Rounds are complete later than a device's own step, so at the
 * edges of a span their sums are of other steps than a device's: only the share is taken from them. */
static double waiting_share(const struct round_sums *from, const struct round_sums *to)
{
	const uint64_t waiting_ns = to->waiting_ns - from->waiting_ns;
	const uint64_t all_ns = waiting_ns + to->exchange_ns - from->exchange_ns;
	return all_ns > 0 ? (double)waiting_ns / (double)all_ns : 0;
}

static void collect_device(const struct recorded *r, const struct span *span, unsigned device,
	const struct step_account *step, struct device_measurement *out)
{
	struct completion own;
	const struct completion *const steps = &own;
	const uint64_t from_ns = span->completed_from_ns;
	(void)completions_between(&step->completions, from_ns, span->to->t_ns, &own);
	*out = step->device;
	out->step_seconds = seconds(steps->device_ns);
	out->sync_seconds = seconds(steps->sync_ns);
	out->sync_wait_seconds = out->sync_seconds * waiting_share(&span->from->rounds[device],
							     &span->to->rounds[device]);
	if (!step->on_device)
		return;
	fill_copies(r, span, device, steps, out);
	fill_flops(step, steps, (uint32_t)config_integer(r->config, KEY_BATCH_SIZE), out);
	if (steps->idle_of_ns > 0)
		out->idle_share = (double)steps->idle_ns / (double)steps->idle_of_ns;
	if (steps->batches > 0)
		out->launch_ns = (double)steps->launch_ns / (double)steps->batches;
}

void collect_devices(const struct recorded *r, const struct span *span, struct measurement *m)
{
	for (unsigned i = 0; i < r->devices->count; i++) {
		const struct step_account *step = stepper_account(r->devices->steppers[i]);
		if (!step->described)
			continue;
		collect_device(r, span, i, step, &m->devices[m->device_count++]);
		if (step->not_pinned[0])
			measurement_note(m,
				"upload.memory = pinned was refused, memory is pageable: %s",
				step->not_pinned);
	}
}
