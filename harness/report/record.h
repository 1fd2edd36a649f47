/* The files of a run: `results/<name>/<utc>/`.
 *   points.jsonl   a header line (schema, resolved configuration, environment, grid), then one line per
 *                  repetition, appended and synced as it ends; limits as lines of their own
 *   summary.json   schema mlbench.summary/1 (docs/summary.schema.json)
 *   points.csv     one row per point
 * A torn last line (a kill in the middle of a write) is dropped on reading. */
#ifndef MLBENCH_REPORT_RECORD_H
#define MLBENCH_REPORT_RECORD_H

#include "harness/analyze/summary.h"
#include "harness/base/error.h"
#include "harness/config/config.h"
#include "harness/measure/environment.h"
#include "harness/measure/measurement.h"

#include <stdbool.h>

struct step_info {
	char backend[NAME_BYTES];
	bool emulated;
	char model[NAME_BYTES];
	char description[NOTE_BYTES];
	double flops_per_sample; /* 0: no model */
};

/* A result as a whole: read from its folder, or being made. */
struct record {
	char *folder;             /* owned */
	char name[128];
	double started, finished; /* seconds since the epoch; finished 0: not yet */
	struct config config;     /* resolved, with the sweep's axes */
	char config_hash[17];
	struct fact_list environment;
	struct step_info step;
	struct config_grid grid;
	struct measurement **measurements; /* owned, in the order they ended */
	size_t measurement_count, measurement_room;
	struct stage_limit limits[STAGES_MAX];
	size_t limit_count;
	bool interrupted;
};

/* Makes the folder and writes the header line. */
int record_create(struct record *record, struct error *err);
/* Appends one repetition, synced; on success the record owns it. */
int record_append(struct record *record, struct measurement *measurement, struct error *err);
int record_append_limit(struct record *record, const struct stage_limit *limit, struct error *err);
/* Reads points.jsonl; refuses another schema by name.  folder may be the results/NAME (the newest run is
 * taken) or one run's folder. */
int record_open(struct record *record, const char *folder, struct error *err);
/* Writes summary.json and points.csv from what the record holds. */
int record_finish(struct record *record, struct error *err);
void record_release(struct record *record); /* safe on {0} */

/* Whether (point, repeat) is measured: what --resume skips. */
bool record_has(const struct record *record, uint32_t point, uint32_t repeat);

#endif
