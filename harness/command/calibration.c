/* Loading what a model is calibrated from: measurements, traces, and facts of the node. */
#include "harness/command/calibration.h"

#include "harness/base/array.h"
#include "harness/base/buffer.h"
#include "harness/command/step_facts.h"
#include "harness/record/config_json.h"
#include "harness/report/material.h"
#include "workloads/backend/backend.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void note_bytes(struct calibration *calibration, const struct material *material)
{
	uint64_t bytes = 0;
	uint64_t samples = 0;
	double cached = 0;
	for (size_t i = 0; i < material->count; i++) {
		const struct measurement *m = &material->repeats[i];
		bytes += m->bytes_read;
		samples += m->samples;
		cached += m->page_cache_share;
	}
	calibration->bytes_per_sample = samples > 0 ? (double)bytes / (double)samples : (double)NAN;
	calibration->page_cache_share = cached / (double)material->count;
}

struct model_source calibration_source(const struct config *config, const struct record *record,
	const struct material *material, double contention)
{
	return (struct model_source){.config = config,
		.repeats = material->repeat_list,
		.traces = material->traces_list,
		.count = material->count,
		.cores = record->cores,
		.ceilings = record->has_ceilings ? &record->ceilings : NULL,
		.contention = contention,
		.others = material->others,
		.other_count = material->other_count,
		.step_time = step_facts_recorded_time,
		.exchange_time = backend_exchange_ns};
}

int calibration_open(struct calibration *calibration, const struct record *record, size_t point,
	double contention, struct error *err)
{
	struct material material = {0};
	*calibration = (struct calibration){0};
	int code = material_load(&material, record, point, &(struct material_choice){0}, err);
	if (!code)
		code = config_grid_point(
			&record->config, &record->grid, point, &calibration->config, err);
	if (!code) {
		const struct model_source source =
			calibration_source(&calibration->config, record, &material, contention);
		note_bytes(calibration, &material);
		code = model_open(&calibration->model, &source, err);
	}
	material_release(&material);
	if (code)
		calibration_close(calibration);
	return code;
}

struct model_lack calibration_lack(const struct record *record, size_t point)
{
	struct material material = {0};
	struct config config = {0};
	struct model model = {0};
	struct model_lack lack = {0};
	struct error why;
	int code = material_load(&material, record, point, &(struct material_choice){0}, &why);
	if (!code)
		code = config_grid_point(&record->config, &record->grid, point, &config, &why);
	if (!code) {
		struct model_source source = calibration_source(&config, record, &material, NAN);
		source.lack = &lack;
		(void)model_open(&model, &source, &why);
	}
	model_close(&model);
	config_release(&config);
	material_release(&material);
	return lack;
}

void calibration_close(struct calibration *calibration)
{
	model_close(&calibration->model);
	config_release(&calibration->config);
	*calibration = (struct calibration){0};
}

int calibration_alter(const struct calibration *calibration, const struct config *to,
	struct model *out, struct error *err)
{
	*out = (struct model){0};
	int code = model_copy(out, &calibration->model, err);
	if (code)
		return code;
	code = model_alter(out, &calibration->config, to, err);
	if (code)
		model_close(out);
	return code;
}

int calibration_refuse(enum key_id key, struct error *err)
{
	struct buffer known = {0};
	char name[CONFIG_NAME_BYTES];
	for (int k = 0; k < KEY_COUNT; k++)
		if (model_knows((enum key_id)k))
			buffer_format(&known, "%s%s", known.size ? ", " : "",
				config_key_name((enum key_id)k, name));
	const int code = error_set(err, -ENOTSUP,
		"'%s' cannot be predicted: the model does not cover it; it covers %s",
		config_key_name(key, name), known.data ? known.data : "nothing");
	buffer_release(&known);
	return code;
}

double calibration_contention(const struct record *record, const size_t *points, size_t count)
{
	for (size_t i = 0; i < record->config.axis_count; i++)
		if (!model_keeps_decode_cost(record->config.axes[i].key))
			return NAN;
	double *busy = calloc(record->entry_count + 1, sizeof *busy);
	double *cpu = calloc(record->entry_count + 1, sizeof *cpu);
	struct measurement *m = calloc(1, sizeof *m);
	size_t known = 0;
	for (size_t e = 0; busy && cpu && m && e < record->entry_count; e++) {
		bool asked = false;
		for (size_t i = 0; i < count && !asked; i++)
			asked = record->entries[e].point == points[i];
		if (!asked || !record_counts(record, &record->entries[e]))
			continue;
		if (record_load(record, e, m, NULL) == 0)
			known +=
				model_contention_point(m, record->cores, &busy[known], &cpu[known]);
		measurement_release(m);
		*m = (struct measurement){0};
	}
	const double contention =
		busy && cpu ? model_fit_contention(busy, cpu, known) : (double)NAN;
	free(m);
	free(cpu);
	free(busy);
	return contention;
}

double *calibration_repeats(const struct record *record, size_t point, size_t *count)
{
	double *values = calloc(record->entry_count + 1, sizeof *values);
	struct measurement *m = calloc(1, sizeof *m);
	*count = 0;
	for (size_t e = 0; values && m && e < record->entry_count; e++) {
		const struct record_entry *entry = &record->entries[e];
		if (entry->point != point || !record_counts(record, entry))
			continue;
		if (record_load(record, e, m, NULL) == 0 && !isnan(m->throughput))
			values[(*count)++] = m->throughput;
		measurement_release(m);
		*m = (struct measurement){0};
	}
	free(m);
	if (values)
		sort_doubles(values, *count);
	return values;
}

double calibration_measured(const struct record *record, size_t point)
{
	size_t count;
	double *values = calibration_repeats(record, point, &count);
	const double median = values ? statistics_median(values, count) : (double)NAN;
	free(values);
	return median;
}
