/* What a diagnosis comes to, in one sentence. */
#include "harness/analyze/headroom.h"
#include "harness/base/units.h"
#include "harness/report/diagnosis_report.h"

#include <math.h>
#include <string.h>

bool diagnosis_tells(const struct diagnosis_view *view)
{
	const struct diagnosis *d = view->diagnosis;
	return d->samples_needed == 0 && d->verdict.stage[0] &&
	       strcmp(d->verdict.stage, "none") != 0;
}

void diagnosis_reason(const struct diagnosis_view *view, struct buffer *out)
{
	const struct diagnosis *d = view->diagnosis;
	char have[UNITS_BYTES];
	char need[UNITS_BYTES];
	if (d->samples_needed > 0)
		buffer_format(out, "cannot tell: %s samples, %s needed",
			units_format_count((double)view->samples, have),
			units_format_count((double)d->samples_needed, need));
	else
		buffer_format(out, "cannot tell: %s",
			d->verdict.evidence_count > 0 ? d->verdict.evidence[0]
			: d->why_not[0]               ? d->why_not
						      : "the measurements do not say");
	if (d->verdict.advice[0])
		buffer_format(out, "; %s", d->verdict.advice);
}

/* "4 workers give 612 samples/s of 1,786 the step can take" */
static void add_measured(const struct diagnosis_view *view, struct buffer *out)
{
	const struct point_summary *p = view->summary;
	const struct verdict *v = &view->diagnosis->verdict;
	const struct stage_summary *stage = summary_stage(p, v->stage);
	const struct stage_summary *step = summary_stage(p, STAGE_STEP_NAME);
	char number[UNITS_BYTES];
	if (stage && stage_is(v->stage, STAGE_DECODE))
		buffer_format(out, "%u worker%s give%s ", stage->workers,
			stage->workers == 1 ? "" : "s", stage->workers == 1 ? "s" : "");
	else
		buffer_text(out, "it gives ");
	buffer_format(out, "%s samples/s", units_format_count(p->median, number));
	if (step && stage != step && isfinite(step->capacity) && step->capacity > p->median)
		buffer_format(out, " of %s%s the step can take",
			step->capacity_is_lower_bound ? "at least " : "",
			units_format_count(step->capacity, number));
}

static void add_recommended(const struct recommendation *r, struct buffer *out)
{
	char number[UNITS_BYTES];
	char low[UNITS_BYTES];
	char high[UNITS_BYTES];
	buffer_text(out, "; ");
	for (size_t i = 0; i < r->setting_count; i++)
		buffer_format(out, "%s%s", i ? " " : "", r->settings[i]);
	if (r->measured > 0)
		buffer_format(out, " measured %s", units_format_count(r->measured, number));
	else
		buffer_format(out, " predicted %s (%s-%s)",
			units_format_count(r->predicted, number),
			units_format_count(r->interval.low, low),
			units_format_count(r->interval.high, high));
	if (r->next_stage[0])
		buffer_format(out, "; then %s binds%s%s%s", r->next_stage,
			r->next_resource[0] ? " (" : "", r->next_resource,
			r->next_resource[0] ? ")" : "");
}

/* A step that is busy, but not at its rate, is held up by something else. */
static void add_keeps_up(const struct diagnosis_view *view, struct buffer *out)
{
	static const double NEARLY = 0.9;
	const struct point_summary *p = view->summary;
	const struct stage_summary *step = summary_stage(p, view->diagnosis->verdict.stage);
	const struct headroom headroom = headroom_of_input(p, &view->diagnosis->verdict);
	char words[HEADROOM_BYTES];
	char number[UNITS_BYTES];
	if (step && !step->capacity_is_lower_bound && p->median < NEARLY * step->capacity)
		buffer_format(out, " of the %s it could take",
			units_format_count(step->capacity, number));
	else
		buffer_format(out, ". %s", headroom_words(&headroom, words));
}

void diagnosis_sentence(const struct diagnosis_view *view, struct buffer *out)
{
	const struct diagnosis *d = view->diagnosis;
	const struct verdict *v = &d->verdict;
	if (!diagnosis_tells(view)) {
		diagnosis_reason(view, out);
		return;
	}
	const double confidence =
		view->verification ? verification_confidence(view->verification, v) : v->confidence;
	buffer_format(out, "%s%s%s bind%s (%s, %.2f): ", v->stage, v->also[0] ? " and " : "",
		v->also, v->also[0] ? "" : "s", v->resource, confidence);
	add_measured(view, out);
	if (d->recommendation_count > 0)
		add_recommended(&d->recommendations[0], out);
	else if (stage_is(v->stage, STAGE_STEP) || stage_is(v->stage, STAGE_SYNC))
		add_keeps_up(view, out);
}
