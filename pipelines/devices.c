/* Sums over devices. */
#include "pipelines/devices.h"

struct step_progress devices_progress(const struct devices *d)
{
	struct step_progress all = {0};
	for (unsigned i = 0; i < d->count; i++) {
		if (!d->steppers[i])
			continue;
		const struct step_progress one = stepper_progress(d->steppers[i]);
		all.samples += one.samples;
		all.batches += one.batches;
		if (one.last_step_ns > all.last_step_ns)
			all.last_step_ns = one.last_step_ns;
	}
	return all;
}

void devices_read_uploads(const struct devices *d, struct upload_totals *out)
{
	for (unsigned i = 0; i < d->count; i++)
		if (d->uploads[i])
			out[i] = upload_read_totals(d->uploads[i]);
}

void devices_start_meters(const struct devices *d, uint64_t now_ns)
{
	for (unsigned i = 0; i < d->count; i++)
		if (d->uploads[i])
			upload_start_meter(d->uploads[i], now_ns);
}

uint32_t devices_read_queues(const struct devices *d, uint64_t now_ns, struct queue_integrals *out)
{
	uint32_t depth = 0;
	*out = (struct queue_integrals){0};
	for (unsigned i = 0; i < d->count; i++) {
		struct queue_integrals one;
		if (!d->uploads[i])
			continue;
		depth += upload_read_queue(d->uploads[i], now_ns, &one);
		out->depth_ns += one.depth_ns;
		out->empty_ns += one.empty_ns / d->count;
		out->full_ns += one.full_ns / d->count;
		out->total_ns += one.total_ns / d->count;
	}
	return depth;
}

void devices_wake(const struct devices *d)
{
	for (unsigned i = 0; i < d->count; i++)
		if (d->uploads[i])
			upload_wake(d->uploads[i]);
}

bool devices_join(const struct devices *d, uint64_t deadline_ns)
{
	bool all = true;
	for (unsigned i = 0; i < d->count; i++)
		all = upload_join(d->uploads[i], deadline_ns) && all;
	for (unsigned i = 0; i < d->count; i++)
		all = stepper_join(d->steppers[i], deadline_ns) && all;
	return all;
}

void devices_free(struct devices *d)
{
	for (unsigned i = 0; i < d->count; i++) {
		stepper_free(d->steppers[i]);
		upload_free(d->uploads[i]);
	}
	*d = (struct devices){0};
}
