/* From a saved point to its diagnosis, and a calibrated model for more. */
#include "harness/command/diagnosed.h"

#include "harness/report/material.h"
#include "harness/report/trials.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EFFORT = 20 }; /* replays for an interval, as in model.h */

static double contention_of(const struct record *record)
{
	const size_t count = record->grid.points;
	double contention = NAN;
	size_t *points = count > 1 ? calloc(count, sizeof *points) : NULL;
	for (size_t i = 0; points && i < count; i++)
		points[i] = i;
	if (points)
		contention = calibration_contention(record, points, count);
	free(points);
	return contention;
}

static int diagnose(struct diagnosed *d, const struct report *report,
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
		d->samples += material->repeats[i].samples;
	code = diagnose_point(&input, effort, &d->diagnosis, err);
	beside_close(&beside);
	return code;
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

static void diagnosed_calibrate(struct diagnosed *d, const struct record *record, double contention)
{
	struct error why = {0};
	if (d->why_not[0])
		return;
	d->calibrated = calibration_open(&d->calibration, record, d->point, contention, &why) == 0;
	if (!d->calibrated)
		(void)snprintf(d->why_not, sizeof d->why_not, "%.*s", EVIDENCE_BYTES - 1, why.text);
}

int diagnosed_open(
	struct diagnosed *d, const struct report *report, size_t point, struct error *err)
{
	const struct record *record = report->record;
	const double contention = contention_of(record);
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
		code = diagnose(d, report, &material, contention, effort, err);
	if (!code && effort == 0)
		memcpy(d->diagnosis.why_not, d->why_not, sizeof d->why_not);
	material_release(&material);
	if (!code)
		diagnosed_calibrate(d, record, contention);
	else
		diagnosed_close(d);
	return code;
}

void diagnosed_close(struct diagnosed *d)
{
	calibration_close(&d->calibration);
	config_release(&d->config);
	*d = (struct diagnosed){0};
}
