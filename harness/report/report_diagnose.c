/* The diagnosis of every point of a report, in place of the first verdict.  Points are loaded one at a time by each of a few
 * threads, measurements with their service times.  The best point is done thoroughly, the others sketchily: a sweep of
 * hundreds of points takes seconds. */
#include "harness/report/report.h"

#include "harness/analyze/diagnose.h"
#include "harness/report/material.h"
#include "harness/report/saved_diagnoses.h"
#include "harness/report/trials.h"

#include <errno.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum {
	EFFORT_SKETCH = 2,
	EFFORT_BEST = 16,
	SKETCH_REPEATS = 3,
	BEST_REPEATS = 16,
	THREADS_MOST = 8
};

static int diagnose_loaded(const struct report *report, const struct point_summary *point,
	const struct material *material, bool traced, unsigned effort, struct diagnosis *out,
	struct error *err)
{
	const struct record *record = report->record;
	struct config config = {0};
	struct beside beside = {0};
	struct point_facts facts;
	int code = config_grid_point(&record->config, &record->grid, point->id, &config, err);
	if (!code)
		code = report_facts(report, point->id, &point->facts, &facts, err);
	if (!code)
		code = beside_open(&beside, report, point->id, err);
	if (!code) {
		const struct diagnose_input input = {.point = point,
			.facts = &facts,
			.tried = &beside.tried,
			.source = {.config = &config,
				.repeats = material->repeat_list,
				.traces = traced ? material->traces_list : NULL,
				.count = material->count,
				.others = material->others,
				.other_count = material->other_count,
				.read_blocks = material->read_blocks,
				.read_block_count = material->read_block_count,
				.cores = record->cores,
				.ceilings = record->has_ceilings ? &record->ceilings : NULL,
				.contention = NAN},
			.all = material->all_list,
			.all_traces = traced ? material->all_traces_list : NULL,
			.all_count = material->all_count};
		code = diagnose_point(&input, effort, out, err);
	}
	beside_close(&beside);
	config_release(&config);
	return code;
}

static int diagnose_at(const struct report *report, size_t i, unsigned effort,
	struct diagnosis *out, struct error *err)
{
	const struct point_summary *const point = report->points[i];
	struct material_choice choice = {
		.most = effort == EFFORT_BEST ? BEST_REPEATS : SKETCH_REPEATS};
	struct material material = {0};
	int code = material_load(&material, report->record, point->id, &choice, err);
	if (code == -ENODATA) {
		material_release(&material);
		choice.without_traces = true;
		code = material_load(&material, report->record, point->id, &choice, err);
	}
	if (!code)
		code = diagnose_loaded(
			report, point, &material, !choice.without_traces, effort, out, err);
	material_release(&material);
	return code ? code : report_weigh_ranks(report, i, &out->verdict, err);
}

int report_diagnose_at(
	const struct report *report, size_t point, struct diagnosis *out, struct error *err)
{
	return diagnose_at(report, point, EFFORT_SKETCH, out, err);
}

static int diagnose_one(struct report *report, size_t i, struct error *err)
{
	struct diagnosis *diagnosis = calloc(1, sizeof *diagnosis);
	int code = diagnosis ? 0 : error_set(err, -ENOMEM, "out of memory for the diagnosis");
	if (!code)
		code = diagnose_at(
			report, i, i == report->best ? EFFORT_BEST : EFFORT_SKETCH, diagnosis, err);
	if (code) {
		free(diagnosis);
		return code;
	}
	report->points[i]->verdict = diagnosis->verdict;
	report->diagnoses[i] = diagnosis;
	return 0;
}

static int diagnosing_make_room(struct report *report, struct error *err)
{
	report->diagnoses = calloc(report->record->grid.points, sizeof(struct diagnosis *));
	return report->diagnoses ? 0 : error_set(err, -ENOMEM, "out of memory for the diagnosis");
}

int report_diagnose_best(struct report *report, struct error *err)
{
	if (report->diagnoses || report->best == report->record->grid.points)
		return 0;
	const int code = diagnosing_make_room(report, err);
	return code ? code : diagnose_one(report, report->best, err);
}

bool report_has_figures(const struct report *report, size_t i)
{
	const struct point_summary *p = report->points[i];
	return p && (p->status == POINT_OK || p->status == POINT_UNSTEADY);
}

/* A few: a point is some megabytes while it is worked on. */
static int thread_count(void)
{
	const int cores = omp_get_max_threads();
	return cores < THREADS_MOST ? cores : THREADS_MOST;
}

/* Points have nothing in common but what is read. */
int report_diagnose(struct report *report, struct error *err)
{
	const size_t points = report->record->grid.points;
	if (report->diagnoses || saved_diagnoses_take(report))
		return 0;
	int code = diagnosing_make_room(report, err);
	/* Alone, so that its many replays have all cores. */
	if (!code && report->best < points && report_has_figures(report, report->best))
		code = diagnose_one(report, report->best, err);
#pragma omp parallel for schedule(dynamic) num_threads(thread_count()) shared(code)
	for (size_t i = 0; i < points; i++) {
		struct error why = {0};
		int before;
#pragma omp atomic read
		before = code;
		const int failed = before || i == report->best || !report_has_figures(report, i)
					   ? 0
					   : diagnose_one(report, i, &why);
		if (!failed)
			continue;
#pragma omp critical(report_diagnose_failed)
		if (!code) {
			(void)error_set(err, failed, "%s", why.text);
#pragma omp atomic write
			code = failed;
		}
	}
	return code;
}
