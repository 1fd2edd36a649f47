/* Life of a measurement: what it owns, and its notes. */
#include "harness/record/measurement.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const thread_state_names[THREAD_STATES] = {"starved", "working", "blocked"};

void device_measurement_init(struct device_measurement *device)
{
	static const struct device_range unknown = {NAN, NAN, NAN};
	*device = (struct device_measurement){
		.step_seconds = NAN,
		.upload_seconds = NAN,
		.sync_seconds = NAN,
		.sync_wait_seconds = NAN,
		.idle_share = NAN,
		.launch_ns = NAN,
		.upload_bytes = NAN,
		.achieved_flops = NAN,
		.peak_flops = NAN,
		.model_utilisation = NAN,
		.clock_map_error_ns = NAN,
		.gradient_norm = NAN,
		.nonfinite_share = NAN,
		.activation_mean = NAN,
		.activation_deviation = NAN,
		.sm_clock_mhz = unknown,
		.memory_clock_mhz = unknown,
		.power_w = unknown,
		.temperature_c = unknown,
		.memory_used_bytes = unknown,
		.pcie_to_device_bytes_per_s = unknown,
		.pcie_from_device_bytes_per_s = unknown,
		.sm_clock_max_mhz = NAN,
		.busy_share = NAN,
		.ecc_corrected = NAN,
		.ecc_uncorrected = NAN,
	};
}

void store_measurement_init(struct store_measurement *store, const char *why)
{
	*store = (struct store_measurement){
		.reads_per_s = NAN,
		.bytes_per_s = NAN,
		.read_ns = NAN,
		.busy_share = NAN,
		.bytes_limit = NAN,
		.bytes_used = NAN,
		.requests_limit = NAN,
		.requests_used = NAN,
	};
	(void)snprintf(store->why, sizeof store->why, "%s", why);
}

void measurement_release(struct measurement *m)
{
	free(m->windows);
	m->windows = NULL;
	m->window_count = 0;
}

double measurement_counted_seconds(const struct measurement *m)
{
	double longest = 0;
	for (size_t i = 0; i < m->stage_count; i++) {
		const struct stage_measurement *stage = &m->stages[i];
		const double all = stage->seconds[THREAD_STARVED] + stage->seconds[THREAD_WORKING] +
				   stage->seconds[THREAD_BLOCKED];
		if (!stage->device && stage->workers > 0)
			longest = fmax(longest, all / stage->workers);
	}
	return longest > 0 ? longest : m->measured_seconds;
}

void measurement_note(struct measurement *m, const char *format, ...)
{
	if (m->note_count >= NOTES_MAX)
		return;
	char *note = m->notes[m->note_count];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(note, NOTE_BYTES, format, args);
	va_end(args);
	/* The same thing is said once. */
	for (size_t i = 0; i < m->note_count; i++)
		if (strcmp(m->notes[i], note) == 0)
			return;
	m->note_count++;
}

size_t measurement_stage_at(const struct measurement *m, const char *name)
{
	size_t i = 0;
	while (i < m->stage_count && strcmp(m->stages[i].name, name) != 0)
		i++;
	return i;
}

const struct stage_measurement *measurement_stage_named(
	const struct measurement *m, const char *name)
{
	const size_t at = measurement_stage_at(m, name);
	return at < m->stage_count ? &m->stages[at] : NULL;
}

const struct stage_measurement *measurement_stage(const struct measurement *m, enum stage_id id)
{
	return measurement_stage_named(m, stage_name(id));
}
