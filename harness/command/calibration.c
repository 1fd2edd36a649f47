/* Loading what a model is calibrated from: measurements, traces, and facts of the node. */
#include "harness/command/calibration.h"

#include "harness/base/buffer.h"
#include "harness/command/material.h"
#include "harness/command/step_facts.h"
#include "harness/report/config_json.h"

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

int calibration_open(struct calibration *calibration, const struct record *record, size_t point,
	const struct ceilings *ceilings, struct error *err)
{
	struct material material = {0};
	*calibration = (struct calibration){0};
	int code = material_load(&material, record, point, true, err);
	if (!code)
		code = config_grid_point(
			&record->config, &record->grid, point, &calibration->config, err);
	if (!code) {
		const char *backend = step_facts_backend(&calibration->config);
		const struct model_source source = {.config = &calibration->config,
			.repeats = material.repeat_list,
			.traces = material.traces_list,
			.count = material.count,
			.cores = record->cores,
			.step_emulated = strcmp(backend, "emulated") == 0,
			.step_on_cores = strcmp(backend, "openblas") == 0,
			.ceilings = ceilings,
			.contention = NAN};
		note_bytes(calibration, &material);
		code = step_facts_resolve(&calibration->config, err);
		if (!code)
			code = model_open(&calibration->model, &source, err);
	}
	material_release(&material);
	if (code)
		calibration_close(calibration);
	return code;
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
	struct config resolved = {0};
	*out = (struct model){0};
	int code = config_copy(&resolved, to, err);
	if (!code)
		code = step_facts_resolve(&resolved, err);
	if (!code)
		code = model_copy(out, &calibration->model, err);
	if (!code) {
		code = model_alter(out, &calibration->config, &resolved, err);
		if (code)
			model_close(out);
	}
	config_release(&resolved);
	return code;
}

bool calibration_knows(enum key_id key)
{
	return model_knows(key) || key == KEY_STEP_DEVICE || key == KEY_STEP_MODEL;
}

int calibration_refuse(enum key_id key, struct error *err)
{
	struct buffer known = {0};
	char name[CONFIG_NAME_BYTES];
	for (int k = 0; k < KEY_COUNT; k++)
		if (calibration_knows((enum key_id)k))
			buffer_format(&known, "%s%s", known.size ? ", " : "",
				config_key_name((enum key_id)k, name));
	const int code = error_set(err, -ENOTSUP,
		"'%s' cannot be predicted: replay does not model it; it models %s",
		config_key_name(key, name), known.data ? known.data : "nothing");
	buffer_release(&known);
	return code;
}

double calibration_measured(const struct record *record, size_t point)
{
	size_t count;
	const enum measurement_status status = material_status(record, point, &count);
	double *values = calloc(count + 1, sizeof *values);
	struct measurement *m = calloc(1, sizeof *m);
	size_t known = 0;
	for (size_t e = 0; values && m && count > 0 && e < record->entry_count; e++) {
		if (record->entries[e].point != point || record->entries[e].status != status)
			continue;
		if (record_load(record, e, m, NULL) == 0 && !isnan(m->throughput))
			values[known++] = m->throughput;
		measurement_release(m);
		*m = (struct measurement){0};
	}
	const double median = values ? statistics_median(values, known) : (double)NAN;
	free(m);
	free(values);
	return median;
}
