/* From a saved point to a calibrated model and to a diagnosis: measurements, traces, and facts
 * of the node. */
#include "harness/command/calibration.h"

#include "harness/base/array.h"
#include "harness/base/buffer.h"
#include "harness/record/config_json.h"
#include "harness/report/material.h"
#include "harness/report/trials.h"
#include "workloads/model/emulated_steps.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EFFORT = 20 }; /* replays for an interval, as in model.h */

/* --- the model of a point --------------------------------------------------------------------- */

static void note_bytes(struct calibration *calibration, const struct material *material)
{
	uint64_t bytes = 0;
	uint64_t samples = 0;
	double cached = 0;
	for (size_t i = 0; i < material->count; i++) {
		const struct measurement *m = material->repeat_list[i];
		bytes += m->bytes_read;
		samples += m->samples;
		cached += m->page_cache_share;
	}
	calibration->bytes_per_sample = samples > 0 ? (double)bytes / (double)samples : (double)NAN;
	calibration->page_cache_share = cached / (double)material->count;
}

/* What a model of a point is calibrated from; borrows all of it. */
static struct model_source calibration_source(const struct config *config,
	const struct record *record, const struct material *material, double contention)
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
		.read_blocks = material->read_blocks,
		.read_block_count = material->read_block_count,
		.step_time = emulated_step_ns,
		.exchange_time = emulated_exchange_ns};
}

static int calibration_take(struct calibration *calibration, const struct record *record,
	size_t point, const struct material *material, double contention, struct model_lack *lack,
	struct error *err)
{
	*calibration = (struct calibration){0};
	int code =
		config_grid_point(&record->config, &record->grid, point, &calibration->config, err);
	if (!code) {
		struct model_source source =
			calibration_source(&calibration->config, record, material, contention);
		source.lack = lack;
		note_bytes(calibration, material);
		code = model_open(&calibration->model, &source, err);
	}
	if (code)
		calibration_close(calibration);
	return code;
}

int calibration_open(struct calibration *calibration, const struct record *record, size_t point,
	double contention, struct model_lack *lack, struct error *err)
{
	struct material material = {0};
	*calibration = (struct calibration){0};
	int code = material_load(&material, record, point, &(struct material_choice){0}, err);
	if (!code)
		code = calibration_take(
			calibration, record, point, &material, contention, lack, err);
	material_release(&material);
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
	if (model_refuse_unmeasured(key, err))
		return -ENOTSUP;
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

/* Loads the next repetition from entry *e on that counts, of these points (NULL: of all), in
 * place of the one that m holds; false: there is none. */
static bool next_counting(const struct record *record, const size_t *points, size_t count,
	size_t *e, struct measurement *m)
{
	while (*e < record->entry_count) {
		const size_t at = (*e)++;
		bool asked = !points;
		for (size_t i = 0; i < count && !asked; i++)
			asked = record->entries[at].point == points[i];
		measurement_release(m);
		*m = (struct measurement){0};
		if (asked && record_counts(record, &record->entries[at]) &&
			record_load(record, at, m, NULL) == 0)
			return true;
	}
	measurement_release(m);
	return false;
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
	for (size_t e = 0; busy && cpu && m && next_counting(record, points, count, &e, m);)
		known += model_contention_point(m, record->cores, &busy[known], &cpu[known]);
	const double contention =
		busy && cpu ? model_fit_contention(busy, cpu, known) : (double)NAN;
	free(m);
	free(cpu);
	free(busy);
	return contention;
}

/* Fills values with the rates of the repetitions that count and are of the state that lasts; returns how many. */
static size_t calibration_lasting(const struct record *record, size_t point, double *values)
{
	size_t most = 1; /* the last one is asked for in vain */
	size_t known = 0;
	size_t count = 0;
	struct regimes regimes;
	for (size_t e = 0; e < record->entry_count; e++)
		most += record->entries[e].point == point;
	struct measurement *repeats = calloc(most, sizeof *repeats);
	const struct measurement **list = calloc(most, sizeof(const struct measurement *));
	for (size_t e = 0; repeats && list && next_counting(record, &point, 1, &e, &repeats[known]);
		known++)
		list[known] = &repeats[known];
	if (known > 0)
		regimes_find(list, known, &regimes);
	for (size_t i = 0; i < known; i++) {
		if (regimes_last(&regimes, i) && !isnan(repeats[i].throughput))
			values[count++] = repeats[i].throughput;
		measurement_release(&repeats[i]);
	}
	free(list);
	free(repeats);
	return count;
}

double *calibration_repeats(const struct record *record, size_t point, size_t *count)
{
	double *values = NULL;
	*count = 0;
	for (size_t e = 0; e < record->entry_count; e++)
		*count += record->entries[e].point == point;
	values = calloc(*count + 1, sizeof *values);
	*count = 0;
	for (size_t e = 0; values && e < record->entry_count; e++) {
		const struct record_entry *entry = &record->entries[e];
		if (entry->point == point && record_counts(record, entry) &&
			!isnan(entry->throughput))
			values[(*count)++] = entry->throughput;
	}
	/* Which of them are of the state that lasts is a question only where they differ. */
	if (values && *count > 1 && regimes_may_differ(values, *count))
		*count = calibration_lasting(record, point, values);
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

/* --- the diagnosis of a point ----------------------------------------------------------------- */

static int diagnosed_judge(struct diagnosed *d, const struct report *report,
	const struct material *material, double contention, unsigned effort, struct error *err)
{
	struct point_facts facts;
	int code = report_facts(report, d->point, &d->summary->facts, &facts, err);
	if (code)
		return code;
	struct beside beside;
	code = beside_open(&beside, report, d->point, err);
	if (code)
		return code;
	const struct diagnose_input input = {.point = d->summary,
		.facts = &facts,
		.tried = &beside.tried,
		.source = calibration_source(&d->config, report->record, material, contention),
		.all = material->all_list,
		.all_traces = effort ? material->all_traces_list : NULL,
		.all_count = material->all_count};
	for (size_t i = 0; i < material->count; i++)
		d->samples += material->repeat_list[i]->samples;
	code = diagnose_point(&input, effort, &d->diagnosis, err);
	beside_close(&beside);
	return code ? code : report_weigh_ranks(report, d->point, &d->diagnosis.verdict, err);
}

/* Without service times in sequence only wait states can be judged. */
static int diagnosed_load(struct diagnosed *d, const struct record *record,
	struct material *material, unsigned *effort, struct error *err)
{
	struct error why = {0};
	struct material_choice choice = {0};
	*effort = EFFORT;
	int code = material_load(material, record, d->point, &choice, &why);
	if (code != -ENODATA) {
		if (code)
			*err = why;
		return code;
	}
	*effort = 0;
	(void)snprintf(d->why_not, sizeof d->why_not, "%.*s", EVIDENCE_BYTES - 1, why.text);
	material_release(material);
	choice.without_traces = true;
	return material_load(material, record, d->point, &choice, err);
}

int diagnosed_open(
	struct diagnosed *d, const struct report *report, size_t point, struct error *err)
{
	const struct record *record = report->record;
	const double contention =
		record->grid.points > 1 ? calibration_contention(record, NULL, 0) : (double)NAN;
	struct material material = {0};
	unsigned effort;
	*d = (struct diagnosed){.point = point};
	d->summary = point < record->grid.points ? report->points[point] : NULL;
	if (!d->summary)
		return error_set(err, -ENODATA, "point %zu was not measured", point);
	int code = config_grid_point(&record->config, &record->grid, point, &d->config, err);
	if (!code)
		code = diagnosed_load(d, record, &material, &effort, err);
	if (!code)
		code = diagnosed_judge(d, report, &material, contention, effort, err);
	if (!code && effort == 0)
		memcpy(d->diagnosis.why_not, d->why_not, sizeof d->why_not);
	if (!code && !d->why_not[0]) {
		struct error why = {0};
		d->calibrated = calibration_take(&d->calibration, record, point, &material,
					contention, NULL, &why) == 0;
		if (!d->calibrated)
			(void)snprintf(d->why_not, sizeof d->why_not, "%.*s", EVIDENCE_BYTES - 1,
				why.text);
	}
	material_release(&material);
	if (code)
		diagnosed_close(d);
	return code;
}

void diagnosed_close(struct diagnosed *d)
{
	calibration_close(&d->calibration);
	config_release(&d->config);
	*d = (struct diagnosed){0};
}
