/* A loader of somebody else beside this pipeline: the document mlbench.efficiency/1 (docs/efficiency.schema.json), and the
 * same for people.  The text is made of the document alone. */
#ifndef MLBENCH_REPORT_EFFICIENCY_REPORT_H
#define MLBENCH_REPORT_EFFICIENCY_REPORT_H

#include "harness/analyze/efficiency.h"
#include "harness/report/medium.h"

#define EFFICIENCY_SCHEMA "mlbench.efficiency/1"
#define EFFICIENCY_FILE "efficiency.json" /* beside the repetitions of this pipeline */

struct efficiency_material {
	const char *name;   /* of the configuration */
	const char *folder; /* where this pipeline's repetitions are a result */
	const struct efficiency_input *input;
	const struct efficiency *found;
	uint64_t samples, batch_size; /* of the data set and the configuration */
	const char *stage,
		*resource; /* that seem to limit the loader, as `mlbench observe` names them */
	double duration_s, warmup_s;
	size_t planned; /* rounds */
	json_t *notes;  /* an array of texts; borrowed */
};

/* NULL without memory. */
json_t *efficiency_json(const struct efficiency_material *material);

void efficiency_text(const json_t *document, struct medium *medium);

#endif
