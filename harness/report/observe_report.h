/* What was observed of a job from outside: the document mlbench.observe/1 (docs/observe.schema.json), and the same for
 * people.  The text is made of the document alone, so that a saved one reads as the first print did. */
#ifndef MLBENCH_REPORT_OBSERVE_REPORT_H
#define MLBENCH_REPORT_OBSERVE_REPORT_H

#include "harness/analyze/job_verdict.h"
#include "harness/measure/job_places.h"
#include "harness/measure/job_sampler.h"
#include "harness/report/medium.h"

#define OBSERVE_SCHEMA "mlbench.observe/1"

struct observe_input {
	const struct job_record *record;
	const struct job_verdict *verdict;
	const struct job_profile *profile; /* NULL: its CPU time was not sampled */
	const struct job_places *places;   /* NULL: not looked at */
	const struct job_lines
		*hang; /* who waits for whom, where it stands still; NULL: it does not */
};

/* NULL without memory. */
json_t *observe_json(const struct observe_input *input);

/* verbose: with all processes and threads. */
void observe_text(const json_t *document, struct medium *medium, bool verbose);

#endif
