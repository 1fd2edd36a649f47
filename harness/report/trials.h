/* What was measured beside a point: the other points of its sweep, and what --follow set from it, which trials.json keeps. */
#ifndef MLBENCH_REPORT_TRIALS_H
#define MLBENCH_REPORT_TRIALS_H

#include "harness/analyze/experiment.h"
#include "harness/report/report.h"

#define TRIALS_FILE "trials.json"
#define TRIALS_SCHEMA "mlbench.trials/1"

json_t *trials_to_json(const struct trials *trials); /* NULL without memory */
int trials_from_json(struct trials *trials, const json_t *object, struct error *err);

/* Into the result's folder, whole or not at all. */
int trials_save(const char *folder, const struct trials *trials, struct error *err);
/* Of a result's folder: 1; 0: there are none; negative: the file cannot be read. */
int trials_load(const char *folder, struct trials *trials, struct error *err);

struct beside {
	struct tried tried;       /* of points; what diagnose_point takes */
	struct tried_point *list; /* owned */
};

/* Of a measured point; borrows values from the record. */
int beside_open(
	struct beside *beside, const struct report *report, size_t point, struct error *err);
void beside_close(struct beside *beside); /* safe on {0} */

#endif
