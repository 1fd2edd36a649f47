/* Devices of a point: as lines and tables for people, and as members of summary.json. */
#include "harness/report/device_report.h"

#include "harness/base/units.h"
#include "harness/record/fields.h"
#include "harness/record/measurement.h"
#include "harness/report/layout.h"
#include "harness/report/part.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- for people ------------------------------------------------------------------------------- */

enum { LABEL_BYTES = 24 };

/* Before every part but the first. */
static void separate(struct buffer *text)
{
	if (text->size > 0)
		buffer_text(text, "; ");
}

static void add_share(struct buffer *text, const char *before, double share, const char *after)
{
	char number[UNITS_BYTES];
	if (isnan(share))
		return;
	separate(text);
	buffer_format(text, "%s%s%s", before, units_format_share(share, number), after);
}

static void device_add_rate(struct buffer *text, const char *before, double bytes_per_s)
{
	char number[UNITS_BYTES];
	if (isnan(bytes_per_s))
		return;
	separate(text);
	buffer_format(text, "%s%s", before, units_format_rate(bytes_per_s, number));
}

static void add_duration(struct buffer *text, const char *before, double ns)
{
	char number[UNITS_BYTES];
	if (isnan(ns))
		return;
	separate(text);
	buffer_format(text, "%s%s", before, units_format_duration(ns, number));
}

/* "1980 (1695-1980) MHz"; the range only where there is one. */
static void device_add_range(
	struct buffer *text, const char *before, const struct device_range *range, const char *unit)
{
	if (isnan(range->mean))
		return;
	separate(text);
	buffer_format(text, "%s%.0f", before, range->mean);
	if (round(range->low) < round(range->high))
		buffer_format(text, " (%.0f-%.0f)", range->low, range->high);
	buffer_format(text, " %s", unit);
}

/* --- its steps -------------------------------------------------------------------------------- */

static void add_scaled(struct buffer *text, double value)
{
	static const struct {
		double scale;
		const char *name;
	} units[] = {{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1, ""}};
	size_t i = 0;
	while (i + 1 < sizeof units / sizeof units[0] && value < units[i].scale)
		i++;
	buffer_format(text, "%.3g %s", value / units[i].scale, units[i].name);
}

static void add_flops(struct buffer *text, const struct device_summary *device)
{
	const struct device_measurement *all = &device->all;
	if (isnan(all->achieved_flops) || all->achieved_flops <= 0)
		return;
	separate(text);
	add_scaled(text, all->achieved_flops);
	buffer_text(text, "FLOP/s in a step, ");
	if (isnan(device->peak_share))
		buffer_text(text, "peak unknown");
	else
		buffer_format(text, "%.0f %% of the published peak", 100 * device->peak_share);
	if (!isnan(all->model_utilisation))
		buffer_format(text, " (model utilisation over all time %.0f %%)",
			100 * all->model_utilisation);
}

static void device_add_steps(struct buffer *text, const struct device_summary *device)
{
	const struct device_measurement *all = &device->all;
	add_duration(text, "step ", device->step_ns);
	add_share(text, "in a step ", device->step_share, " of the time");
	add_flops(text, device);
	add_share(text, "idle inside a step ", all->idle_share, "");
	add_duration(text, "launch ", all->launch_ns);
	device_add_rate(text, "upload ", device->upload_bytes_per_s);
	if (all->sync_seconds > 0 && all->step_seconds > 0)
		add_share(text, "exchange of gradients ", all->sync_seconds / all->step_seconds,
			" of a step");
	if (all->sync_wait_seconds > 0 && all->sync_seconds > 0)
		add_share(text, "of that waiting for other devices ",
			all->sync_wait_seconds / all->sync_seconds, "");
	if (!isnan(all->nonfinite_share) && all->nonfinite_share > 0)
		add_share(text, "NOT FINITE: ", all->nonfinite_share, " of the gradients");
}

/* --- its state, by the driver ----------------------------------------------------------------- */

static void device_add_throttles(struct buffer *text, const struct device_measurement *all)
{
	char number[UNITS_BYTES];
	if (!(all->samples > 0))
		return;
	for (size_t i = 0; i < all->throttle_count; i++) {
		if (i == 0)
			separate(text);
		buffer_format(text, "%s%s %s", i ? ", " : "throttled: ", all->throttles[i].reason,
			units_format_share(all->throttles[i].share, number));
	}
}

static void add_errors(struct buffer *text, const struct device_measurement *all)
{
	const double corrected = all->ecc_corrected;
	const double uncorrected = all->ecc_uncorrected;
	if (!(corrected > 0) && !(uncorrected > 0))
		return;
	separate(text);
	buffer_text(text, "memory errors:");
	if (corrected > 0)
		buffer_format(text, " %.0f corrected", corrected);
	if (uncorrected > 0)
		buffer_format(text, "%s %.0f UNCORRECTED", corrected > 0 ? "," : "", uncorrected);
}

static void device_add_state(struct buffer *text, const struct device_measurement *all)
{
	char number[UNITS_BYTES];
	device_add_range(text, "clock ", &all->sm_clock_mhz, "MHz");
	if (!isnan(all->sm_clock_mhz.mean) && !isnan(all->sm_clock_max_mhz))
		buffer_format(text, " of %.0f", all->sm_clock_max_mhz);
	device_add_range(text, "power ", &all->power_w, "W");
	device_add_range(text, "", &all->temperature_c, "C");
	if (!isnan(all->memory_used_bytes.high)) {
		separate(text);
		buffer_format(
			text, "memory %s", units_format_size(all->memory_used_bytes.high, number));
	}
	device_add_rate(text, "PCIe to it ", all->pcie_to_device_bytes_per_s.mean);
	device_add_throttles(text, all);
	add_errors(text, all);
}

/* --- whether it computes the same again ------------------------------------------------------- */

static const char *results_words(const struct point_summary *point, bool promised)
{
	static const char *const words[2][SAME_NO + 1] = {
		{"bit-identical: not promised",
			"bit-identical: not promised; yes by the first loss of all repetitions",
			"bit-identical: not promised, and the first loss differs between repetitions"},
		{"bit-identical: promised by the libraries; nothing was compared",
			"bit-identical: yes, as the libraries promise (first loss of all repetitions)",
			"bit-identical: NO, though the libraries promise it: the first loss differs between repetitions"},
	};
	return words[promised][point->same_results];
}

static void render_results(
	const struct point_summary *point, const struct style *style, struct buffer *out)
{
	bool promised = true;
	for (size_t i = 0; i < point->device_count; i++) {
		if (point->devices[i].all.emulated)
			return;
		promised = promised && point->devices[i].all.deterministic;
	}
	const bool broken = promised && point->same_results == SAME_NO;
	layout_labelled(style, broken ? INK_BAD : INK_DIM, broken ? "results" : "",
		results_words(point, promised), out);
}

/* A name is what a driver, or a file, says: it moves no cursor. */
static void device_add_name(struct buffer *text, const char *name)
{
	for (; *name; name++)
		buffer_format(
			text, "%c", (unsigned char)*name < ' ' || *name == 0x7f ? '?' : *name);
}

static void render_device(
	const struct device_summary *device, const struct style *style, struct buffer *out)
{
	const struct device_measurement *all = &device->all;
	char label[LABEL_BYTES];
	struct buffer text = {0};
	struct buffer steps = {0};
	(void)snprintf(label, sizeof label, all->index < 10 ? "device %u" : "dev %u", all->index);
	device_add_steps(&steps, device);
	device_add_name(&text, all->name);
	buffer_text(&text, all->precision[0] ? " " : "");
	device_add_name(&text, all->precision);
	buffer_format(&text, "%s%s", steps.size > 0 ? ": " : "", steps.data ? steps.data : "");
	buffer_release(&steps);
	layout_labelled_buffer(style, INK_BOLD, label, &text, out);
	device_add_state(&text, all);
	const bool bad = all->ecc_uncorrected > 0;
	layout_labelled_buffer(style, bad ? INK_BAD : INK_DIM, bad ? "errors" : "", &text, out);
}

void device_text_render(
	const struct point_summary *point, const struct style *style, struct buffer *out)
{
	for (size_t i = 0; i < point->device_count; i++)
		render_device(&point->devices[i], style, out);
	if (point->device_count > 0)
		render_results(point, style, out);
}

/* --- for summary.json ------------------------------------------------------------------------- */

/* The note that says why something is missing, or the usual reason. */
static const char *why_of(const struct point_summary *point, const char *subject, const char *usual)
{
	for (size_t i = 0; i < point->note_count; i++)
		if (strstr(point->notes[i], subject) && strstr(point->notes[i], "unknown"))
			return point->notes[i];
	return usual;
}

static void put_times(struct part *part, const struct device_summary *device)
{
	const struct device_measurement *all = &device->all;
	const char *untimed = "the device's times were not measured";
	part_number(part, "step_ms", device->step_ns / 1e6, untimed);
	part_number(part, "step_share", device->step_share, untimed);
	part_number(
		part, "idle_share", all->idle_share, "idle time inside a step was not measured");
	part_number(part, "launch_us", all->launch_ns / 1e3, "steps are not launched");
	part_number(part, "upload_bytes_per_s", device->upload_bytes_per_s,
		"no copy to the device was timed");
	part_number(part, "sync_share", all->sync_seconds / all->step_seconds,
		"no exchange of gradients was timed");
	part_number(part, "sync_wait_share", all->sync_wait_seconds / all->sync_seconds,
		"no exchange of gradients was timed");
	part_number(part, "clock_map_error_us", all->clock_map_error_ns / 1e3,
		"its event times could not be mapped to the host's clock");
}

static void put_work(struct part *part, const struct device_summary *device)
{
	const struct device_measurement *all = &device->all;
	const char *no_peak = "no published peak for this device and precision";
	const char *not_sampled = "step.statistics is off, or nothing was sampled yet";
	part_number(part, "flops_per_step", all->flops_per_step > 0 ? all->flops_per_step : NAN,
		"the step has no model of known layers");
	part_number(part, "achieved_flops", all->achieved_flops, "no time or no FLOPs are known");
	part_number(part, "peak_flops", all->peak_flops, no_peak);
	part_number(part, "peak_share", device->peak_share, no_peak);
	part_number(part, "model_utilisation", all->model_utilisation, no_peak);
	part_number(part, "gradient_norm", all->gradient_norm, not_sampled);
	part_number(part, "nonfinite_share", all->nonfinite_share, not_sampled);
	part_number(part, "activation_mean", all->activation_mean, not_sampled);
	part_number(part, "activation_deviation", all->activation_deviation, not_sampled);
}

static void put_range(
	struct part *part, const char *name, const struct device_range *range, const char *why)
{
	if (isnan(range->mean))
		part_number(part, name, NAN, why);
	else
		part_put(part, name, device_range_to_json(range));
}

static void put_state(
	struct part *part, const struct point_summary *point, const struct device_measurement *all)
{
	/* As the notes call what they miss. */
	static const char *const subjects[DEVICE_RANGES] = {"clock", "clock", "power",
		"temperature", "memory used", "PCIe to device", "PCIe from device"};
	const char *usual = all->emulated ? "the device is emulated"
					  : "NVML was not asked (measure.device), or is not there";
	const char *general = why_of(point, "clocks, power", usual);
	for (size_t i = 0; i < DEVICE_RANGES; i++)
		put_range(part, device_ranges[i].name,
			(const void *)((const char *)all + device_ranges[i].offset),
			why_of(point, subjects[i], general));
	part_number(part, "sm_clock_max_mhz", all->sm_clock_max_mhz, general);
	part_number(part, "kernel_resident_share", all->busy_share,
		why_of(point, "kernel resident", general));
	part_number(part, "ecc_corrected", all->ecc_corrected,
		why_of(point, "corrected memory errors", general));
	part_number(part, "ecc_uncorrected", all->ecc_uncorrected,
		why_of(point, "uncorrected memory errors", general));
	part_put(part, "samples", fields_number(all->samples));
	if (all->samples > 0)
		part_put(part, "throttles", device_throttles_to_json(all));
	else
		part_number(part, "throttles", NAN, general);
}

static json_t *device_summary_to_json(
	const struct point_summary *point, const struct device_summary *device)
{
	struct part part = part_open();
	part_put(&part, "index", json_integer(device->all.index));
	part_put(&part, "name", fields_text(device->all.name));
	part_put(&part, "bus", fields_text(device->all.bus));
	part_put(&part, "precision", fields_text(device->all.precision));
	part_put(&part, "emulated", json_boolean(device->all.emulated));
	part_put(&part, "deterministic", json_boolean(device->all.deterministic));
	put_times(&part, device);
	put_work(&part, device);
	put_state(&part, point, &device->all);
	return part_close(&part);
}

json_t *device_summaries_to_json(const struct point_summary *point)
{
	json_t *array = json_array();
	for (size_t i = 0; i < point->device_count; i++)
		if (json_array_append_new(
			    array, device_summary_to_json(point, &point->devices[i])) != 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}
