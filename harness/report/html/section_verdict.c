/* The sections that answer: the verdict in a sentence, what to do, the figures behind it and what must be known before any of
 * them is believed, then what the verdict rests on and what experiments said of it. */
#include "harness/report/html/sections.h"

#include "harness/analyze/diagnose.h"
#include "harness/analyze/experiment.h"
#include "harness/analyze/limit_kinds.h"
#include "harness/base/buffer.h"
#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/config/conditions.h"
#include "harness/report/alongside.h"
#include "harness/report/diagnosis_report.h"
#include "harness/report/runbook.h"
#include "harness/report/summary_tables.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { VERDICT_TEXT_BYTES = 400, VERDICT_FIGURE_BYTES = 64, VERDICT_FAILURES_SHOWN = 3 };

/* The step's capacity is achieved where so much of it is. */
static const double VERDICT_NEARLY = 0.95;

/* A point that has a figure. */
struct top {
	const struct chart_input *input;
	const struct point_summary *p;
	const struct diagnosis *d; /* NULL: none */
};

static bool verdict_find_point(const struct chart_input *input, struct top *top)
{
	const struct report *report = input->report;
	const bool there = input->point < report->record->grid.points;
	*top = (struct top){.input = input, .p = there ? report->points[input->point] : NULL};
	if (top->p && report->diagnoses)
		top->d = report->diagnoses[input->point];
	return top->p && isfinite(top->p->median);
}

static bool verdict_tells(const struct verdict *v)
{
	return v->stage[0] && strcmp(v->stage, "none") != 0;
}

static double verdict_confidence(const struct top *top)
{
	const struct verdict *v = &top->p->verdict;
	const struct chart_input *input = top->input;
	return input->verification ? verification_confidence(input->verification, v)
				   : v->confidence;
}

static double verdict_step_takes(const struct point_summary *p)
{
	for (size_t i = 0; i < p->stage_count; i++)
		if (stage_is(p->stages[i].name, STAGE_STEP) &&
			!p->stages[i].capacity_is_lower_bound)
			return summary_step_takes(p, &p->stages[i]);
	return NAN;
}

/* --- where, when, on what --------------------------------------------------------------------- */

void section_facts(const struct record *record, struct buffer *out)
{
	const char *node = fact_node_name(&record->environment);
	const struct fact *cpu = fact_find(&record->environment, "cpu", "model");
	char when[CLOCK_UTC_BYTES];
	clock_format_utc(record->started, when);
	if (node)
		buffer_format(out, "%s: ", node);
	buffer_format(out, "%s, %u core%s · %s",
		cpu && cpu->kind == FACT_TEXT ? cpu->text : "CPU model unknown", record->cores,
		record->cores == 1 ? "" : "s", when);
	struct buffer data = {0};
	report_data_text(record, &data);
	buffer_format(out, "%s%s", data.size > 0 ? " · " : "", data.data ? data.data : "");
	buffer_release(&data);
	buffer_format(out, " · step: %s", record->step.description);
}

/* --- the sentence ----------------------------------------------------------------------------- */

static void lead_add_limit(const struct top *top, struct buffer *out)
{
	static const double SURE = 0.7;
	const struct point_summary *p = top->p;
	const struct verdict *v = &p->verdict;
	char number[UNITS_BYTES];
	char bound[BOUND_BYTES];
	const double takes = verdict_step_takes(p);
	if (verdict_tells(v) && v->also[0]) {
		buffer_sentence(out, parts_stage(v->stage));
		buffer_format(out,
			" and %s are %snearly balanced (%s is %s): ", parts_stage(v->also),
			verdict_confidence(top) < SURE ? "probably " : "", v->stage,
			limit_kind_bound(v->stage, v->resource, bound));
	} else if (verdict_tells(v)) {
		buffer_sentence(out, v->stage);
		buffer_format(out, " is %sthe bottleneck, %s: ",
			verdict_confidence(top) < SURE ? "probably " : "",
			limit_kind_bound(v->stage, v->resource, bound));
	}
	buffer_format(out, "%s samples/s", units_format_count(p->median, number));
	if (verdict_tells(v) && v->also[0] && isfinite(p->step_utilisation))
		buffer_format(out, ", step %.0f %% busy", 100 * fmin(p->step_utilisation, 1));
	else if (isfinite(takes) && takes * VERDICT_NEARLY > p->median)
		buffer_format(out, " of the %s that the step could take",
			units_format_count(takes, number));
	buffer_text(out, verdict_tells(v) ? "." : "; the bottleneck is unknown.");
}

/* How much the input could gain where it is hardly waited for; what to do otherwise is section_advice's. */
static void lead_add_headroom(const struct top *top, struct buffer *out)
{
	const struct diagnosis *d = top->d;
	const struct verdict *v = &top->p->verdict;
	const double takes = verdict_step_takes(top->p);
	char words[HEADROOM_BYTES];
	if ((d && d->recommendation_count > 0) || !verdict_tells(v) || !isfinite(takes) ||
		top->p->median < VERDICT_NEARLY * takes)
		return;
	const struct headroom headroom = headroom_of_input(top->p, v);
	buffer_format(out, " %s", headroom_words(&headroom, words));
}

void section_lead(const struct chart_input *input, struct buffer *out)
{
	struct top top;
	if (verdict_find_point(input, &top)) {
		lead_add_limit(&top, out);
		lead_add_headroom(&top, out);
		diagnosis_add_change(top.d, out);
		diagnosis_add_cold(top.p, out);
	} else {
		buffer_text(out,
			input->report->failed > 0
				? "Nothing could be measured: every point that was tried failed."
				: "Nothing was measured yet.");
	}
}

/* --- figures ---------------------------------------------------------------------------------- */

static void figure_range(struct interval interval, const char *what, char *out, size_t room)
{
	char low[UNITS_BYTES];
	char high[UNITS_BYTES];
	out[0] = '\0';
	if (isfinite(interval.low) && isfinite(interval.high))
		(void)snprintf(out, room, "%s: %s to %s", what,
			units_format_count(interval.low, low),
			units_format_count(interval.high, high));
}

static void figure_measured(const struct top *top, struct page *page)
{
	const struct point_summary *p = top->p;
	char number[UNITS_BYTES];
	char range[VERDICT_FIGURE_BYTES];
	struct buffer text = {0};
	const bool swept = top->input->report->record->config.axis_count > 0;
	const bool best = top->input->point == top->input->report->best;
	figure_range(p->repeat_count > 1 ? p->ci95 : (struct interval){NAN, NAN}, "; 95 % CI",
		range, sizeof range);
	const int64_t ranks =
		report_integer_at(top->input->report, top->input->point, KEY_RUN_RANKS);
	buffer_format(&text, "%s", p->status == POINT_UNSTEADY ? "unsteady; " : "");
	if (ranks > 1)
		buffer_format(&text, "each of %" PRId64 " ranks; ", ranks);
	if (p->left_out > 0)
		buffer_format(&text, "median of %zu of %zu repetitions (the others are excluded)%s",
			p->repeat_count, p->repeat_count + p->left_out, range);
	else
		buffer_format(&text, "median of %zu repetition%s%s", p->repeat_count,
			p->repeat_count == 1 ? "" : "s", range);
	if (swept) {
		buffer_text(&text, best ? "; best setting: " : "; at ");
		report_settings(top->input->report, top->input->point, &text);
	}
	page_figure(page, units_format_count(p->median, number), "samples/s",
		text.data ? text.data : "");
	buffer_release(&text);
}

static void figure_utilisation(const struct top *top, struct page *page)
{
	char value[UNITS_BYTES];
	const double busy = fmin(top->p->step_utilisation, 1); /* passes over NAN */
	const bool exchanges = summary_stage(top->p, STAGE_SYNC_NAME);
	if (isfinite(top->p->step_utilisation))
		page_figure(page, units_format_share(busy, value), "utilisation",
			exchanges
				? "busy share of the step; the rest of the time it waited for input, or for "
				  "the exchange of gradients"
				: "busy share of the step; the rest of the time it waited for input");
}

static void figure_step(const struct top *top, struct page *page)
{
	const double takes = verdict_step_takes(top->p);
	char number[UNITS_BYTES];
	if (isfinite(takes))
		page_figure(page, units_format_count(takes, number), "samples/s",
			top->input->report->record->step.emulated
				? "what the step could take; it is emulated"
				: "what the step could take");
}

static void figure_confidence(const struct top *top, struct page *page)
{
	const struct verdict *v = &top->p->verdict;
	char value[VERDICT_FIGURE_BYTES];
	char text[VERDICT_TEXT_BYTES];
	char pair[PAIR_BYTES];
	const struct verification *tried = top->input->verification;
	if (!verdict_tells(v))
		return;
	(void)snprintf(value, sizeof value, "%.2f", verdict_confidence(top));
	const int used = snprintf(text, sizeof text, "that the bottleneck is %s; ",
		limit_kind_pair(v->stage, v->resource, pair));
	if (tried && tried->confirmed + tried->failed + tried->unclear > 0)
		(void)snprintf(text + used, sizeof text - (size_t)used,
			"experiments: %zu predictions confirmed, %zu failed, %zu unclear",
			tried->confirmed, tried->failed, tried->unclear);
	else
		(void)snprintf(
			text + used, sizeof text - (size_t)used, "not yet tested by experiments");
	page_figure(page, value, "confidence", text);
}

static void figures_put(const struct chart_input *input, struct page *page)
{
	struct top top;
	if (!verdict_find_point(input, &top))
		return;
	page_figures_begin(page);
	figure_measured(&top, page);
	figure_utilisation(&top, page);
	figure_step(&top, page);
	figure_confidence(&top, page);
	page_figures_end(page);
}

/* --- notices ---------------------------------------------------------------------------------- */

static void notice_put(struct page *page, const char *label, struct buffer *text)
{
	if (text->size > 0)
		page_notice(page, label, text->data);
	buffer_release(text);
}

static void notice_injected(const struct record *record, struct page *page)
{
	struct buffer text = {0};
	conditions_injected(&record->config, ", ", &text);
	if (text.size > 0)
		buffer_text(&text, ". These figures are not those of an undisturbed node.");
	notice_put(page, "Planted conditions:", &text);
}

static void notice_declared(const struct record *record, struct page *page)
{
	struct buffer text = {0};
	conditions_declared(&record->config, &text);
	notice_put(page, "Declared costs:", &text);
}

static void notice_interrupted(const struct record *record, struct page *page)
{
	struct buffer text = {0};
	const size_t all =
		record->grid.points * (size_t)config_integer(&record->config, KEY_MEASURE_REPEATS);
	if (record->interrupted) {
		buffer_format(&text, "%zu of %s%zu repetitions measured. Measure the rest with: ",
			record->entry_count,
			record_is_sequential(&record->config) ? "at most " : "", all);
		record_add_command(record, NULL, &text);
	}
	notice_put(page, "Interrupted:", &text);
}

static void notice_failed(const struct report *report, struct page *page)
{
	struct buffer text = {0};
	size_t shown = 0;
	if (report->failed > 0)
		buffer_format(&text, "%zu of %zu points failed", report->failed,
			report->record->grid.points);
	for (size_t i = 0; i < report->record->grid.points && shown < VERDICT_FAILURES_SHOWN; i++) {
		const struct point_summary *p = report->points[i];
		if (!p || p->status != POINT_FAILED)
			continue;
		buffer_text(&text, shown++ ? "; " : ": ");
		report_settings(report, i, &text);
		buffer_format(
			&text, "%s%s", report->record->config.axis_count ? ": " : "", p->error);
	}
	notice_put(page, "Failed:", &text);
	if (report->unsteady > 0)
		buffer_format(&text, "%zu of %zu points; measure longer (measure.duration)",
			report->unsteady, report->record->grid.points);
	notice_put(page, "Unsteady:", &text);
	report_left_out_text(report, &text);
	notice_put(page, "Left out:", &text);
	if (report->checksum_check.differ)
		buffer_text(&text, report->checksum_check.words);
	notice_put(page, "Wrong batches:", &text);
}

static void notice_bad(const struct report *report, struct page *page)
{
	struct buffer text = {0};
	report_bad_text(report, &text);
	notice_put(page, "Bad samples:", &text);
}

static void notice_contaminated(const struct report *report, struct page *page)
{
	struct buffer text = {0};
	report_contaminated_text(report, &text);
	notice_put(page, "Other load:", &text);
}

static void notice_memory(const struct chart_input *input, struct page *page)
{
	struct top top;
	struct buffer text = {0};
	if (verdict_find_point(input, &top) && top.d && top.d->memory.leaks)
		buffer_text(&text, top.d->memory.words);
	notice_put(page, "Memory:", &text);
}

void section_head(const struct chart_input *input, struct page *page)
{
	figures_put(input, page);
	notice_injected(input->report->record, page);
	notice_declared(input->report->record, page);
	notice_interrupted(input->report->record, page);
	notice_failed(input->report, page);
	notice_bad(input->report, page);
	notice_contaminated(input->report, page);
	notice_memory(input, page);
}

void section_alongside(const struct chart_input *input, struct page *page)
{
	struct alongside alongside;
	if (alongside_open(&alongside, input->report, input->point)) {
		struct medium medium = medium_page(page);
		page_heading(page, 2, "alongside",
			input->report->record->of_case.known ? "The reported job"
							     : "The loader beside it");
		alongside_put(&alongside, &medium);
		medium_end(&medium);
	}
	alongside_close(&alongside);
}

enum { VERDICT_MEANING_BYTES = 600 };

static void section_put_text(struct page *page, struct buffer *text)
{
	if (text->size > 0)
		page_paragraph(page, text->data);
	buffer_release(text);
}

/* Advice is written without a capital and a full stop. */
static void section_put_sentence(struct page *page, const char *words)
{
	struct buffer text = {0};
	buffer_sentence(&text, words);
	buffer_text(&text, ".");
	section_put_text(page, &text);
}

/* --- advice ----------------------------------------------------------------------------------- */

/* "992 samples/s predicted, +300 % (90 % CI: 941 to 1,046)" */
static void advice_gain(const struct recommendation *r, double now, struct buffer *out)
{
	char number[UNITS_BYTES];
	char low[UNITS_BYTES];
	char high[UNITS_BYTES];
	buffer_format(out, "predicted: %s samples/s, %+.0f %%",
		units_format_count(r->predicted, number), 100 * (r->predicted / now - 1));
	if (isfinite(r->interval.low) && isfinite(r->interval.high))
		buffer_format(out, " (90 %% CI: %s to %s)",
			units_format_count(r->interval.low, low),
			units_format_count(r->interval.high, high));
	if (r->measured > 0)
		buffer_format(out, "; measured: %s, %+.0f %%",
			units_format_count(r->measured, number), 100 * (r->measured / now - 1));
	buffer_text(out, ".");
}

static void advice_after(const struct recommendation *r, struct buffer *out)
{
	if (r->words[0])
		buffer_sentence(out, r->words);
	else if (r->next_stage[0])
		buffer_format(out, "Then the bottleneck is %s / %s", r->next_stage,
			r->next_resource[0] ? r->next_resource : "unknown");
	if (out->size > 0)
		buffer_text(out, ".");
}

/* The best one stands out; the others are a list. */
static void advice_put_all(const struct diagnosis *d, double now, struct page *page)
{
	for (size_t i = 0; i < d->recommendation_count; i++) {
		const struct recommendation *r = &d->recommendations[i];
		struct buffer what = {0};
		struct buffer gain = {0};
		struct buffer after = {0};
		for (size_t k = 0; k < r->setting_count; k++)
			buffer_format(&what, "%s--set %s", k ? " " : "", r->settings[k]);
		advice_gain(r, now, &gain);
		advice_after(r, &after);
		if (i == 0) {
			page_action(page, what.data ? what.data : "", gain.data ? gain.data : "",
				after.data ? after.data : "");
		} else {
			if (i == 1) {
				page_paragraph(page, "Or:");
				page_list_begin(page, false);
			}
			buffer_format(&what, ": %s %s", gain.data ? gain.data : "",
				after.data ? after.data : "");
			page_item(page, what.data ? what.data : "");
		}
		buffer_release(&what);
		buffer_release(&gain);
		buffer_release(&after);
	}
	if (d->recommendation_count > 1)
		page_list_end(page);
}

static void advice_put_enough(const struct report *report, struct page *page)
{
	static const double NEAR_BEST_SHARE = 0.05;
	const size_t points = report->record->grid.points;
	const size_t enough = report_smallest_within(report, NEAR_BEST_SHARE);
	char number[UNITS_BYTES];
	struct buffer text = {0};
	if (report->best == points || enough == report->best || enough == points)
		return;
	buffer_text(&text, "Enough: ");
	report_settings(report, enough, &text);
	buffer_format(&text, " gives %s samples/s, within 5 %% of the best, with fewer resources.",
		units_format_count(report->points[enough]->median, number));
	section_put_text(page, &text);
}

static void advice_put(const struct chart_input *input, struct page *page)
{
	const struct point_summary *p = parts_point(input);
	const struct diagnosis *d = parts_diagnosis(input);
	if (d && d->recommendation_count > 0)
		advice_put_all(d, p->median, page);
	else
		section_put_sentence(page, p->verdict.advice[0]
						   ? p->verdict.advice
						   : "no advice: the bottleneck is unknown");
}

void section_advice(const struct chart_input *input, struct page *page)
{
	if (!parts_point(input))
		return;
	page_heading(page, 2, "advice", "What to do");
	advice_put(input, page);
	advice_put_enough(input->report, page);
}

/* --- evidence --------------------------------------------------------------------------------- */

/* What the pair means, from the runbook: its marks taken out. */
static void evidence_put_meaning(const struct verdict *v, struct page *page)
{
	struct runbook_text entry;
	struct buffer text = {0};
	if (!runbook_find(v->stage, v->resource, &entry))
		return;
	const struct runbook_text meaning = runbook_meaning(&entry);
	for (size_t i = 0; i < meaning.size && i < VERDICT_MEANING_BYTES; i++)
		if (meaning.text[i] != '*' && meaning.text[i] != '`')
			buffer_add(&text, meaning.text[i] == '\n' ? " " : &meaning.text[i], 1);
	char pair[PAIR_BYTES];
	buffer_format(
		&text, ". More: mlbench explain %s", limit_kind_pair(v->stage, v->resource, pair));
	section_put_text(page, &text);
}

/* The model, and what changed during the run. */
static void evidence_put_model(const struct diagnosis *d, double measured, struct page *page)
{
	struct medium medium = medium_page(page);
	json_t *parts = diagnosis_parts_json(d);
	diagnosis_put_replay(&medium, parts, measured);
	diagnosis_put_phases(&medium, column_value(parts, "phases"));
	if (diagnosis_is_modelled(parts))
		diagnosis_put_elasticities(&medium, parts);
	medium_end(&medium);
	json_decref(parts);
}

static void evidence_put_list(const struct verdict *v, struct page *page)
{
	page_list_begin(page, false);
	for (size_t i = 0; i < v->evidence_count; i++)
		page_item(page, v->evidence[i]);
	page_list_end(page);
}

void section_evidence(const struct chart_input *input, struct page *page)
{
	const struct point_summary *p = parts_point(input);
	const struct diagnosis *d = parts_diagnosis(input);
	if (!p)
		return;
	page_heading(page, 2, "evidence", "Evidence");
	evidence_put_list(&p->verdict, page);
	evidence_put_meaning(&p->verdict, page);
	if (d)
		evidence_put_model(d, p->median, page);
	if (input->verification) {
		struct medium medium = medium_page(page);
		verification_put(&medium, input->verification, &p->verdict);
		medium_end(&medium);
		return;
	}
	page_paragraph(page, "Not yet tested by experiments. To test the verdict and the advice:");
	struct buffer text = {0};
	record_add_command(input->report->record, "diagnose", &text);
	buffer_text(&text, " --verify");
	page_code(page, text.data ? text.data : "");
	buffer_release(&text);
}

/* Of a job of several. */
void section_ranks(const struct chart_input *input, struct page *page)
{
	const struct report_ranks *const of = report_ranks_registered();
	json_t *const ranks =
		of && parts_point(input) ? of->json(input->report, input->point) : NULL;
	if (!ranks)
		return;
	json_t *const point = json_pack("{s:o}", "ranks", ranks);
	struct medium medium = medium_page(page);
	of->put(point, &medium);
	medium_end(&medium);
	json_decref(point);
}

/* --- any point of a sweep ---------------------------------------------------------------------- */

/* "#12  4 / 64" is for a chart's axis; a line of its own has room for the keys. */
static void point_begin(
	const struct chart_input *input, const struct point_summary *p, struct page *page)
{
	char pair[PAIR_BYTES];
	struct buffer heading = {0};
	struct buffer finding = {0};
	buffer_format(&heading, "Point %zu: ", input->point);
	report_settings(input->report, input->point, &heading);
	if (isfinite(p->median)) {
		report_add_rate(input->report, input->point, &finding);
		buffer_format(&finding, "%s", p->status == POINT_UNSTEADY ? ", unsteady" : "");
		if (verdict_tells(&p->verdict))
			buffer_format(&finding, ", %s",
				limit_kind_pair(p->verdict.stage, p->verdict.resource, pair));
	} else {
		buffer_text(&finding, point_status_name(p->status));
	}
	page_point_begin(page, input->point, heading.data ? heading.data : "",
		finding.data ? finding.data : "");
	buffer_release(&heading);
	buffer_release(&finding);
}

void section_point(const struct chart_input *input, struct page *page)
{
	const struct point_summary *p = parts_point(input);
	struct medium medium = medium_page(page);
	struct top top;
	point_begin(input, p, page);
	if (p->error[0])
		page_notice(page, "Failed:", p->error);
	if (p->contaminated[0])
		page_notice(page, "Other load:", p->contaminated);
	if (verdict_find_point(input, &top)) {
		struct buffer lead = {0};
		section_lead(input, &lead);
		section_put_text(page, &lead);
		advice_put(input, page);
		evidence_put_list(&p->verdict, page);
		json_t *const point = report_point_json(input->report, input->point);
		summary_stages(&medium, point);
		summary_totals(&medium, point);
		if (report_ranks_registered())
			report_ranks_registered()->put(point, &medium);
		json_decref(point);
	}
	medium_end(&medium);
}
