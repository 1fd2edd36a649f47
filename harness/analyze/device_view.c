/* Means over devices of what they measured; the reasons of a slow-down in three kinds: harm that the device
 * avoids, the power cap that large products reach on healthy devices, and what is no slow-down at all. */
#include "harness/analyze/device_view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A mean of those values that are known. */
struct mean {
	double sum;
	size_t count;
};

static void mean_add(struct mean *mean, double value)
{
	if (!isfinite(value))
		return;
	mean->sum += value;
	mean->count++;
}

static double mean_of(const struct mean *mean)
{
	return mean->count > 0 ? mean->sum / (double)mean->count : (double)NAN;
}

struct means {
	struct mean busy, launch, idle, copy, copying, rate, sync, utilisation, slowed, capped,
		clock;
};

static double ratio(double value, double of)
{
	return of > 0 ? value / of : (double)NAN;
}

static bool is_power_cap(const char *reason)
{
	return strcmp(reason, "power cap") == 0;
}

/* Clocks that somebody asked for, or that nothing asked for. */
static bool is_no_slow_down(const char *reason)
{
	static const char *const harmless[] = {
		"idle", "application clocks", "display clocks", "sync boost"};
	for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++)
		if (strcmp(reason, harmless[i]) == 0)
			return true;
	return false;
}

/* Reasons overlap in time: the commonest stands for all. */
static void add_throttles(
	const struct device_measurement *device, struct means *means, struct device_view *out)
{
	double slowed = 0;
	double capped = 0;
	if (!(device->samples > 0))
		return;
	for (size_t i = 0; i < device->throttle_count; i++) {
		const char *reason = device->throttles[i].reason;
		const double share = device->throttles[i].share;
		if (is_power_cap(reason)) {
			capped = share;
		} else if (!is_no_slow_down(reason) && share > slowed) {
			slowed = share;
			(void)snprintf(out->reason, sizeof out->reason, "%s", reason);
		}
	}
	mean_add(&means->slowed, slowed);
	mean_add(&means->capped, capped);
}

static void add_device(const struct measurement *m, const struct device_measurement *device,
	struct means *means, struct device_view *out)
{
	const double steps = m->batches > 0 && m->device_count > 0
				     ? (double)m->batches / (double)m->device_count
				     : (double)NAN;
	out->any = true;
	(void)snprintf(out->name, sizeof out->name, "%s", device->name);
	mean_add(&means->busy, ratio(device->step_seconds, m->measured_seconds));
	mean_add(&means->launch, ratio(device->launch_ns * steps / 1e9, device->step_seconds));
	mean_add(&means->idle, device->idle_share);
	mean_add(&means->copy, ratio(device->upload_seconds, device->step_seconds));
	mean_add(&means->copying, ratio(device->upload_seconds, m->measured_seconds));
	mean_add(&means->rate, ratio(device->upload_bytes, device->upload_seconds));
	mean_add(&means->sync, ratio(device->sync_seconds, device->step_seconds));
	mean_add(&means->utilisation, device->model_utilisation);
	mean_add(&means->clock, ratio(device->sm_clock_mhz.mean, device->sm_clock_max_mhz));
	add_throttles(device, means, out);
}

struct device_view device_view_of(const struct measurement *const *repeats, size_t count)
{
	struct device_view out = {0};
	struct means means = {0};
	for (size_t i = 0; i < count; i++)
		for (size_t d = 0; d < repeats[i]->device_count; d++)
			if (!repeats[i]->devices[d].emulated)
				add_device(repeats[i], &repeats[i]->devices[d], &means, &out);
	out.busy = mean_of(&means.busy);
	out.launch_share = mean_of(&means.launch);
	out.idle = mean_of(&means.idle);
	out.copy_share = mean_of(&means.copy);
	out.copying = mean_of(&means.copying);
	out.copy_rate = mean_of(&means.rate);
	out.sync_share = mean_of(&means.sync);
	out.utilisation = mean_of(&means.utilisation);
	out.slowed = mean_of(&means.slowed);
	out.capped = mean_of(&means.capped);
	out.clock_share = mean_of(&means.clock);
	return out;
}
