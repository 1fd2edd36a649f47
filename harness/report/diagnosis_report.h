/* A diagnosis for people and for programs: what was found at one point, what experiments said of it, and
 * where its own advice led.  Writers only: everything is computed before. */
#ifndef MLBENCH_REPORT_DIAGNOSIS_REPORT_H
#define MLBENCH_REPORT_DIAGNOSIS_REPORT_H

#include "harness/analyze/diagnose.h"
#include "harness/analyze/experiment.h"
#include "harness/base/buffer.h"
#include "harness/report/medium.h"

#include <jansson.h>

enum { FOLLOW_STEPS_MAX = 33, FOLLOW_SET_BYTES = TRIAL_SET_BYTES };

/* One setting on the way that the advice leads. */
struct follow_step {
	struct trial
		trial; /* what was set, predicted, and came of it; at the start nothing was predicted */
	double measured; /* samples/s, median; NAN: could not be measured */
	struct interval measured_95;
	char stage[NAME_BYTES], resource[NAME_BYTES]; /* what binds there */
	double confidence; /* of that, once what it predicted was tried */
};

struct follow {
	struct follow_step steps[FOLLOW_STEPS_MAX];
	size_t count;
	size_t came_true,
		failed; /* predictions; the others are unclear, or could not be measured */
	char set[FOLLOW_STEPS_MAX *
		 FOLLOW_SET_BYTES]; /* "--set a=1 --set b=2": all that was kept */
	char end[EVIDENCE_BYTES];   /* why it goes no further */
	bool interrupted;
};

struct diagnosis_view {
	const char *name, *folder;
	size_t point;
	const char *settings; /* of the point in a sweep, "" without one */
	bool is_best;         /* the point was chosen because it is the best of `points` */
	size_t points;
	uint64_t samples; /* measured, all repeats */
	const struct point_summary *summary;
	const struct diagnosis *diagnosis;
	const struct verification *verification; /* NULL: none */
	const struct follow *follow;             /* NULL: not followed */
};

/* False: it cannot tell, and diagnosis_reason says why. */
bool diagnosis_tells(const struct diagnosis_view *view);
/* "Inconclusive: 312 samples, 6,400 needed; set measure.duration to 14s or more" */
void diagnosis_reason(const struct diagnosis_view *view, struct buffer *out);

/* "Bottleneck: decode with 4 workers, CPU-bound (97 % confidence): 612 of the 1,786 samples/s that the step
 * could take", without a full stop: what a verdict that names a stage says of its point. */
void diagnosis_bottleneck(const struct point_summary *point, double confidence, struct buffer *out);
/* Behind such a sentence: what changed during the run (diagnosis NULL: nothing is known of that). */
void diagnosis_add_change(const struct diagnosis *diagnosis, struct buffer *out);
/* Likewise: what was measured is not what read.cache = cold asked for (summary.h). */
void diagnosis_add_cold(const struct point_summary *point, struct buffer *out);
/* The verdict with what to do, in sentences; or why there is none. */
void diagnosis_sentence(const struct diagnosis_view *view, struct buffer *out);

/* The answer last; not whole: what fits a screen. */
void diagnosis_text(const struct diagnosis_view *view, const struct style *style, bool whole,
	struct buffer *out);
/* Parts of it, from the values of diagnosis_parts_json: what stands below the verdict, and pieces of that. */
void diagnosis_put_model(struct medium *medium, const json_t *parts, double measured);
/* Of it, whether memory grows. */
void diagnosis_put_memory(struct medium *medium, const json_t *memory);
void diagnosis_put_elasticities(struct medium *medium, const json_t *parts);
void diagnosis_put_phases(struct medium *medium, const json_t *phases);
void diagnosis_put_recommendations(struct medium *medium, const json_t *recommendations);
bool diagnosis_is_modelled(const json_t *parts); /* it has elasticities */
void diagnosis_put_replay(struct medium *medium, const json_t *parts, double measured);
/* Its experiments as tables, and what follows from them. */
void verification_put(struct medium *medium, const struct verification *verification,
	const struct verdict *verdict);
enum ink outcome_ink(const char *outcome); /* of an experiment or a trial, as JSON has it */
/* Why not every experiment has what it needs, "" if it has; how many blocks were repeated, "" if none. */
void verification_incomplete(const struct verification *verification, struct buffer *out);
void verification_repeated(const struct verification *verification, struct buffer *out);

/* The parts that rest on replay, windows and memory, without the verdict: of a point in summary.json; NULL
 * without memory. */
json_t *diagnosis_parts_json(const struct diagnosis *diagnosis);
/* All of it with its verdict, and back.  -EINVAL: it is no diagnosis of this version. */
json_t *diagnosis_to_json(const struct diagnosis *diagnosis);
int diagnosis_from_json(struct diagnosis *diagnosis, const json_t *object, struct error *err);
/* A verdict as summary.json has it. */
json_t *verdict_to_json(const struct verdict *verdict);

/* The document of --json, mlbench.diagnosis/1 (docs/diagnosis.schema.json); NULL without memory. */
json_t *diagnosis_json(const struct diagnosis_view *view);

/* verification.json, and back: what was measured and predicted; the rest, and the confidence that is left of the verdict, is
 * weighed again. */
#define VERIFICATION_SCHEMA "mlbench.verification/1"
json_t *verification_to_json(
	const struct verification *verification, uint32_t point, const struct verdict *verdict);
int verification_from_json(struct verification *verification, uint32_t *point, const json_t *object,
	struct error *err);
/* Of a result's folder, as far as it is of this point: 1; 0: there is none; negative: it cannot be read. */
#define VERIFICATION_FILE "verification.json"
int verification_load(
	const char *folder, size_t point, struct verification *verification, struct error *err);
/* In the document: the experiments; the measured elasticities with their sum. */
json_t *verification_experiments_json(const struct verification *verification);
json_t *verification_elasticities_json(const struct verification *verification);
json_t *follow_json(const struct follow *follow);

#endif
