/* The diagnosis of every point of a report, in place of the first verdict.  Points are loaded one at a time by each of a few
 * threads, measurements with their service times.  The best point is done thoroughly, the others sketchily: a sweep of
 * hundreds of points takes seconds. */
#include "harness/report/report.h"

#include "harness/analyze/diagnose.h"
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

/* What one point left, as far as it counts. */
struct loaded {
	struct measurement *repeats;            /* (count), owned */
	struct traces *traces;                  /* likewise */
	const struct measurement **repeat_list; /* of them, owned */
	const struct traces **traces_list;
	size_t count;
	bool traced; /* all of them have service times */
};

static void loaded_release(struct loaded *loaded)
{
	for (size_t i = 0; i < loaded->count; i++) {
		measurement_release(&loaded->repeats[i]);
		traces_release(&loaded->traces[i]);
	}
	free(loaded->repeats);
	free(loaded->traces);
	free(loaded->repeat_list);
	free(loaded->traces_list);
	*loaded = (struct loaded){0};
}

static bool counts(const struct record_entry *entry, const struct point_summary *point)
{
	return entry->point == point->id &&
	       (entry->status == MEASUREMENT_OK ||
		       (point->status == POINT_UNSTEADY && entry->status == MEASUREMENT_UNSTEADY));
}

static int load_entry(
	struct loaded *loaded, const struct record *record, size_t entry, struct error *err)
{
	struct measurement *m = &loaded->repeats[loaded->count];
	struct traces *traces = &loaded->traces[loaded->count];
	struct error why;
	const int code = record_load(record, entry, m, err);
	if (code) {
		measurement_release(m);
		*m = (struct measurement){0};
		return code;
	}
	if (loaded->traced && record_load_traces(record, entry, traces, &why)) {
		loaded->traced = false;
		*traces = (struct traces){0};
	}
	loaded->repeat_list[loaded->count] = m;
	loaded->traces_list[loaded->count] = traces;
	loaded->count++;
	return 0;
}

/* At most `most` repetitions, the first of them. */
static int load_point(struct loaded *loaded, const struct record *record,
	const struct point_summary *point, size_t most, struct error *err)
{
	*loaded = (struct loaded){.traced = true};
	loaded->repeats = calloc(most, sizeof *loaded->repeats);
	loaded->traces = calloc(most, sizeof *loaded->traces);
	loaded->repeat_list = calloc(most, sizeof(const struct measurement *));
	loaded->traces_list = calloc(most, sizeof(const struct traces *));
	if (!loaded->repeats || !loaded->traces || !loaded->repeat_list || !loaded->traces_list)
		return error_set(err, -ENOMEM, "out of memory for the diagnosis");
	int code = 0;
	for (size_t e = 0; e < record->entry_count && loaded->count < most && !code; e++)
		if (counts(&record->entries[e], point))
			code = load_entry(loaded, record, e, err);
	return code;
}

static int diagnose_loaded(const struct report *report, const struct point_summary *point,
	const struct loaded *loaded, unsigned effort, struct diagnosis *out, struct error *err)
{
	const struct record *record = report->record;
	struct config config = {0};
	struct beside beside = {0};
	struct point_facts facts;
	int code = config_grid_point(&record->config, &record->grid, point->id, &config, err);
	if (!code)
		code = report_facts(report, point->id, &facts, err);
	if (!code)
		code = beside_open(&beside, report, point->id, err);
	if (!code) {
		const struct diagnose_input input = {.point = point,
			.facts = &facts,
			.tried = &beside.tried,
			.source = {.config = &config,
				.repeats = loaded->repeat_list,
				.traces = loaded->traced ? loaded->traces_list : NULL,
				.count = loaded->count,
				.cores = record->cores,
				.step_emulated = record->step.emulated,
				.step_on_cores = strcmp(record->step.backend, "openblas") == 0,
				.step_has_memory = strcmp(record->step.backend, "cuda") == 0,
				.ceilings = record->has_ceilings ? &record->ceilings : NULL,
				.contention = NAN}};
		code = diagnose_point(&input, effort, out, err);
	}
	beside_close(&beside);
	config_release(&config);
	return code;
}

static int diagnose_one(struct report *report, size_t i, struct error *err)
{
	struct point_summary *point = report->points[i];
	const bool best = i == report->best;
	struct loaded loaded;
	struct diagnosis *diagnosis = calloc(1, sizeof *diagnosis);
	int code = diagnosis ? 0 : error_set(err, -ENOMEM, "out of memory for the diagnosis");
	if (code)
		return code;
	code = load_point(
		&loaded, report->record, point, best ? BEST_REPEATS : SKETCH_REPEATS, err);
	if (!code)
		code = diagnose_loaded(
			report, point, &loaded, best ? EFFORT_BEST : EFFORT_SKETCH, diagnosis, err);
	loaded_release(&loaded);
	if (code) {
		free(diagnosis);
		return code;
	}
	point->verdict = diagnosis->verdict;
	report->diagnoses[i] = diagnosis;
	return 0;
}

static int make_room(struct report *report, struct error *err)
{
	report->diagnoses = calloc(report->record->grid.points, sizeof(struct diagnosis *));
	return report->diagnoses ? 0 : error_set(err, -ENOMEM, "out of memory for the diagnosis");
}

int report_diagnose_best(struct report *report, struct error *err)
{
	if (report->diagnoses || report->best == report->record->grid.points)
		return 0;
	const int code = make_room(report, err);
	return code ? code : diagnose_one(report, report->best, err);
}

static bool has_figures(const struct report *report, size_t i)
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
	if (report->diagnoses)
		return 0;
	int code = make_room(report, err);
#pragma omp parallel for schedule(dynamic) num_threads(thread_count()) shared(code)
	for (size_t i = 0; i < points; i++) {
		struct error why = {0};
		int before;
#pragma omp atomic read
		before = code;
		const int failed =
			before || !has_figures(report, i) ? 0 : diagnose_one(report, i, &why);
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
