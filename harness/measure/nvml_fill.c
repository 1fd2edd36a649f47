/* From samples to a measurement: ranges and shares over the measured part, and for what is not known one
 * note per reason and device. */
#include "harness/base/clock.h"
#include "harness/measure/nvml_watch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A window's value is no older than so many periods. */
enum { STALE_PERIODS = 3, NAMES_BYTES = 160 };

static const struct device_range unknown = {NAN, NAN, NAN};

void nvml_forget(struct device_measurement *d)
{
	d->sm_clock_mhz = d->memory_clock_mhz = d->power_w = d->temperature_c = unknown;
	d->memory_used_bytes = unknown;
	d->pcie_to_device_bytes_per_s = d->pcie_from_device_bytes_per_s = unknown;
	d->sm_clock_max_mhz = NAN;
	d->busy_share = NAN;
	d->ecc_corrected = d->ecc_uncorrected = NAN;
	d->throttle_count = 0;
	d->samples = 0;
}

static struct device_range range_of(
	const struct nvml_span *span, const struct nvml_group *group, enum nvml_quantity quantity)
{
	return nvml_span_range(span, nvml_group_place(group, quantity));
}

static int by_share(const void *a, const void *b)
{
	const double one = *(const double *)a;
	const double other = *(const double *)b;
	return one < other ? 1 : one > other ? -1 : 0;
}

static void fill_throttles(const struct nvml_span *span, struct device_measurement *d)
{
	struct entry {
		double share;
		unsigned bit;
	} found[NVML_THROTTLE_BITS];
	const size_t place = nvml_group_place(&nvml_quick, NVML_THROTTLES);
	size_t count = 0;
	for (unsigned bit = 0; bit < NVML_THROTTLE_BITS; bit++) {
		const double share = nvml_span_share(span, place, bit);
		if (nvml_throttle_name(bit) && share > 0)
			found[count++] = (struct entry){.share = share, .bit = bit};
	}
	qsort(found, count, sizeof *found, by_share);
	d->throttle_count = count < THROTTLES_MAX ? count : THROTTLES_MAX;
	for (size_t i = 0; i < d->throttle_count; i++) {
		(void)snprintf(d->throttles[i].reason, sizeof d->throttles[i].reason, "%s",
			nvml_throttle_name(found[i].bit));
		d->throttles[i].share = found[i].share;
	}
}

static void fill_device(struct nvml_watch *w, size_t i, uint64_t from_ns, uint64_t to_ns,
	struct device_measurement *d)
{
	const struct nvml_series *quick = &w->samplers[NVML_PACE_QUICK].series[i];
	const struct nvml_series *slow = &w->samplers[NVML_PACE_SLOW].series[i];
	const struct nvml_span span = nvml_series_span(quick, from_ns, to_ns);
	const struct nvml_span copies = nvml_series_span(slow, from_ns, to_ns);
	d->samples = (double)span.count;
	d->sm_clock_max_mhz = w->clock_max[i];
	d->sm_clock_mhz = range_of(&span, &nvml_quick, NVML_SM_CLOCK);
	d->memory_clock_mhz = range_of(&span, &nvml_quick, NVML_MEMORY_CLOCK);
	d->power_w = range_of(&span, &nvml_quick, NVML_POWER);
	d->temperature_c = range_of(&span, &nvml_quick, NVML_TEMPERATURE);
	d->memory_used_bytes = range_of(&span, &nvml_quick, NVML_MEMORY_USED);
	d->busy_share = range_of(&span, &nvml_quick, NVML_KERNEL_RESIDENT).mean;
	d->pcie_to_device_bytes_per_s = range_of(&copies, &nvml_slow, NVML_PCIE_TO_DEVICE);
	d->pcie_from_device_bytes_per_s = range_of(&copies, &nvml_slow, NVML_PCIE_FROM_DEVICE);
	d->ecc_corrected = nvml_series_growth(
		quick, nvml_group_place(&nvml_quick, NVML_ECC_CORRECTED), from_ns, to_ns);
	d->ecc_uncorrected = nvml_series_growth(
		quick, nvml_group_place(&nvml_quick, NVML_ECC_UNCORRECTED), from_ns, to_ns);
	fill_throttles(&span, d);
}

/* --- what is missing --------------------------------------------------------------------------------- */

/* Of one quantity: no sample of the span has it. */
static bool lacks(const struct nvml_span *span, size_t place)
{
	return isnan(nvml_span_range(span, place).mean);
}

static int code_of(const struct nvml_series *series, size_t place)
{
	return series->codes[place] == NVML_OK ? NVML_NOT_ASKED : series->codes[place];
}

/* The quantities from `place` on that are missing for the same reason, marked as told. */
static void gather_missing(const struct nvml_series *series, const struct nvml_span *span,
	size_t place, bool told[NVML_GROUP_MAX], char *names, size_t room)
{
	size_t used = 0;
	for (size_t k = place; k < series->group->count; k++) {
		if (told[k] || code_of(series, k) != code_of(series, place) || !lacks(span, k))
			continue;
		told[k] = true;
		if (used < room)
			used += (size_t)snprintf(names + used, room - used, "%s%s",
				used ? ", " : "", nvml_quantity_name(series->group->list[k]));
	}
}

static void note_missing(const struct nvml_series *series, uint64_t from_ns, uint64_t to_ns,
	unsigned index, struct measurement *m)
{
	bool told[NVML_GROUP_MAX] = {false};
	char names[NAMES_BYTES];
	const struct nvml_span span = nvml_series_span(series, from_ns, to_ns);
	for (size_t place = 0; place < series->group->count; place++) {
		if (told[place] || !lacks(&span, place))
			continue;
		const int code = code_of(series, place);
		gather_missing(series, &span, place, told, names, sizeof names);
		measurement_note(m, "device %u: %s unknown: %s", index, names,
			code == NVML_NOT_ASKED ? "no sample fell into the measured part"
					       : nvml_code_words(code));
	}
}

/* In decades, so that repetitions say the same: the next of 0.01, 0.1, 1, 10 and 100 %. */
static double cost_percent(const struct nvml_watch *w)
{
	const double wall = (double)(w->stopped_ns - w->started_ns);
	double cpu = 0;
	double bound = 0.01;
	for (size_t i = 0; i < NVML_PACES; i++)
		cpu += (double)w->samplers[i].cpu_ns;
	while (wall > 0 && 100 * cpu / wall > bound)
		bound *= 10;
	return bound;
}

static void note_cost(const struct nvml_watch *w, struct measurement *m)
{
	measurement_note(m, "NVML: sampled every %.3g s%s; it took at most %.3g %% of a core",
		(double)w->samplers[NVML_PACE_QUICK].period_ns / (double)NS_PER_S,
		w->given_up ? " until a call did not come back" : "", cost_percent(w));
}

static size_t find_watched(const struct nvml_watch *w, const char *bus)
{
	size_t i = 0;
	while (i < w->count && !nvml_same_bus(w->buses[i], bus))
		i++;
	return i;
}

static void fill_ready(
	struct nvml_watch *w, uint64_t from_ns, uint64_t to_ns, struct measurement *m)
{
	for (size_t i = 0; i < m->device_count; i++) {
		struct device_measurement *d = &m->devices[i];
		const size_t at = find_watched(w, d->bus);
		if (at == w->count)
			continue;
		if (!w->devices[at]) {
			measurement_note(m, "device %u: NVML does not show '%s': %s", d->index,
				d->bus, nvml_code_words(w->codes[at]));
			continue;
		}
		fill_device(w, at, from_ns, to_ns, d);
		for (size_t pace = 0; pace < NVML_PACES; pace++)
			note_missing(&w->samplers[pace].series[at], from_ns, to_ns, d->index, m);
	}
	note_cost(w, m);
}

void nvml_watch_fill(struct nvml_watch *w, uint64_t from_ns, uint64_t to_ns, struct measurement *m)
{
	for (size_t i = 0; i < m->device_count; i++)
		nvml_forget(&m->devices[i]);
	(void)pthread_mutex_lock(&w->lock);
	if (w->phase == NVML_PHASE_READY)
		fill_ready(w, from_ns, to_ns, m);
	else
		measurement_note(m,
			"clocks, power, temperature and throttling of the device unknown: %s",
			w->phase == NVML_PHASE_ABSENT ? w->why
						      : "NVML did not start within the run");
	(void)pthread_mutex_unlock(&w->lock);
}

void nvml_watch_window(struct nvml_watch *w, uint64_t t_ns, struct window *window)
{
	const struct nvml_sampler *quick = &w->samplers[NVML_PACE_QUICK];
	const struct nvml_sample *latest = NULL;
	window->device_clock_mhz = window->device_power_w = window->device_temperature_c = NAN;
	(void)pthread_mutex_lock(&w->lock);
	const uint64_t oldest_ns = STALE_PERIODS * quick->period_ns;
	const struct nvml_span span =
		nvml_series_span(&quick->series[0], t_ns > oldest_ns ? t_ns - oldest_ns : 0, t_ns);
	if (w->count > 0 && span.count > 0)
		latest = &span.first[span.count - 1];
	if (latest) {
		const struct nvml_group *group = &nvml_quick;
		window->device_clock_mhz =
			(float)latest->values[nvml_group_place(group, NVML_SM_CLOCK)];
		window->device_power_w = (float)latest->values[nvml_group_place(group, NVML_POWER)];
		window->device_temperature_c =
			(float)latest->values[nvml_group_place(group, NVML_TEMPERATURE)];
	}
	(void)pthread_mutex_unlock(&w->lock);
}
