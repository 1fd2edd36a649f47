/* The top of the report: the verdict in a sentence, the figures behind it, and what must be known before any of them is
 * believed. */
#include "harness/analyze/diagnose.h"
#include "harness/analyze/experiment.h"
#include "harness/analyze/headroom.h"
#include "harness/analyze/limit_kind.h"
#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/report/diagnosis_report.h"
#include "harness/report/html/sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 400, FIGURE_BYTES = 64, FAILURES_SHOWN = 3 };

/* The step's capacity is achieved where so much of it is. */
static const double NEARLY = 0.95;

/* A point that has a figure. */
struct top {
	const struct chart_input *input;
	const struct point_summary *p;
	const struct diagnosis *d; /* NULL: none */
};

static bool find_point(const struct chart_input *input, struct top *top)
{
	const struct report *report = input->report;
	const bool there = input->point < report->record->grid.points;
	*top = (struct top){.input = input, .p = there ? report->points[input->point] : NULL};
	if (top->p && report->diagnoses)
		top->d = report->diagnoses[input->point];
	return top->p && isfinite(top->p->median);
}

static bool tells(const struct verdict *v)
{
	return v->stage[0] && strcmp(v->stage, "none") != 0;
}

static double confidence_of(const struct top *top)
{
	const struct verdict *v = &top->p->verdict;
	const struct chart_input *input = top->input;
	return input->verification ? verification_confidence(input->verification, v)
				   : v->confidence;
}

static double step_takes(const struct point_summary *p)
{
	for (size_t i = 0; i < p->stage_count; i++)
		if (stage_is(p->stages[i].name, STAGE_STEP) &&
			!p->stages[i].capacity_is_lower_bound)
			return p->stages[i].capacity;
	return NAN;
}

/* --- where, when, on what ------------------------------------------------------------------------- */

static void add_data(const struct record *record, struct buffer *out)
{
	const struct fact *samples = fact_find(&record->environment, "dataset", "samples");
	const struct fact *bytes = fact_find(&record->environment, "dataset", "bytes");
	const struct fact *path = fact_find(&record->environment, "data", "path");
	char text[UNITS_BYTES];
	if (!samples || samples->kind != FACT_NUMBER)
		return;
	buffer_format(out, " · %s samples", units_format_count(samples->number, text));
	if (bytes && bytes->kind == FACT_NUMBER)
		buffer_format(out, ", %s", units_format_size(bytes->number, text));
	if (path && path->kind == FACT_TEXT)
		buffer_format(out, " in %s", path->text);
}

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
	add_data(record, out);
	buffer_format(out, " · step: %s", record->step.description);
}

/* --- the sentence -------------------------------------------------------------------------------- */

/* Beside a stage of the input "step" alone reads like one of its steps. */
static const char *stage_words(const char *stage)
{
	return stage_is(stage, STAGE_STEP) ? "the training step" : stage;
}

static void add_limit(const struct top *top, struct buffer *out)
{
	static const double SURE = 0.7;
	const struct point_summary *p = top->p;
	const struct verdict *v = &p->verdict;
	char number[UNITS_BYTES];
	const double takes = step_takes(p);
	if (tells(v) && v->also[0]) {
		buffer_sentence(out, stage_words(v->stage));
		buffer_format(out,
			" and %s are %snearly balanced, %s by %s: ", stage_words(v->also),
			confidence_of(top) < SURE ? "probably " : "", v->stage,
			limit_kind_words(v->stage, v->resource));
	} else if (tells(v)) {
		buffer_sentence(out, v->stage);
		buffer_format(out,
			" is %sthe limit, by %s: ", confidence_of(top) < SURE ? "probably " : "",
			limit_kind_words(v->stage, v->resource));
	}
	buffer_format(out, "%s samples/s", units_format_count(p->median, number));
	if (tells(v) && v->also[0] && isfinite(p->step_utilisation))
		buffer_format(out, ", step %.0f %% busy", 100 * fmin(p->step_utilisation, 1));
	else if (isfinite(takes) && takes * NEARLY > p->median)
		buffer_format(out, " of the %s that the step could take",
			units_format_count(takes, number));
	buffer_text(out, tells(v) ? "." : "; which stage is the limit there cannot be told.");
}

/* How much the input could gain where it is hardly waited for; what to do otherwise is section_advice's. */
static void add_headroom(const struct top *top, struct buffer *out)
{
	const struct diagnosis *d = top->d;
	const struct verdict *v = &top->p->verdict;
	const double takes = step_takes(top->p);
	char words[HEADROOM_BYTES];
	if ((d && d->recommendation_count > 0) || !tells(v) || !isfinite(takes) ||
		top->p->median < NEARLY * takes)
		return;
	const struct headroom headroom = headroom_of_input(top->p, v);
	buffer_format(out, " %s", headroom_words(&headroom, words));
}

void section_lead(const struct chart_input *input, struct buffer *out)
{
	struct top top;
	if (find_point(input, &top)) {
		add_limit(&top, out);
		add_headroom(&top, out);
	} else {
		buffer_text(out,
			input->report->failed > 0
				? "Nothing could be measured: every point that was tried failed."
				: "Nothing was measured yet.");
	}
}

/* --- figures ------------------------------------------------------------------------------------- */

static void range_text(struct interval interval, const char *what, char *out, size_t room)
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
	char range[FIGURE_BYTES];
	struct buffer text = {0};
	const bool swept = top->input->report->record->config.axis_count > 0;
	const bool best = top->input->point == top->input->report->best;
	range_text(p->repeat_count > 1 ? p->ci95 : (struct interval){NAN, NAN}, "; 95 %", range,
		sizeof range);
	buffer_format(
		&text, "%s, ", p->status == POINT_UNSTEADY ? "measured, not steady" : "measured");
	if (p->left_out > 0)
		buffer_format(&text, "median of the %zu of %zu repeats that count%s",
			p->repeat_count, p->repeat_count + p->left_out, range);
	else
		buffer_format(&text, "median of %zu repeat%s%s", p->repeat_count,
			p->repeat_count == 1 ? "" : "s", range);
	if (swept) {
		buffer_text(&text, best ? "; the best setting: " : "; at ");
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
	if (isfinite(top->p->step_utilisation))
		page_figure(page, units_format_share(busy, value), "utilisation",
			"the step's busy share of the time; the rest it waited for input");
}

static void figure_step(const struct top *top, struct page *page)
{
	const double takes = step_takes(top->p);
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
	char value[FIGURE_BYTES];
	char text[TEXT_BYTES];
	char pair[PAIR_BYTES];
	const struct verification *tried = top->input->verification;
	if (!tells(v))
		return;
	(void)snprintf(value, sizeof value, "%.2f", confidence_of(top));
	const int used = snprintf(
		text, sizeof text, "that it is %s; ", limit_kind_pair(v->stage, v->resource, pair));
	if (tried && tried->confirmed + tried->failed + tried->unclear > 0)
		(void)snprintf(text + used, sizeof text - (size_t)used,
			"experiments: %zu predictions confirmed, %zu failed, %zu unclear",
			tried->confirmed, tried->failed, tried->unclear);
	else
		(void)snprintf(
			text + used, sizeof text - (size_t)used, "not yet tried by experiments");
	page_figure(page, value, "confidence", text);
}

static void figures(const struct chart_input *input, struct page *page)
{
	struct top top;
	if (!find_point(input, &top))
		return;
	page_figures_begin(page);
	figure_measured(&top, page);
	figure_utilisation(&top, page);
	figure_step(&top, page);
	figure_confidence(&top, page);
	page_figures_end(page);
}

/* --- notices ------------------------------------------------------------------------------------- */

static void notice(struct page *page, const char *label, struct buffer *text)
{
	if (text->size > 0)
		page_notice(page, label, text->data);
	buffer_release(text);
}

static void notice_injected(const struct record *record, struct page *page)
{
	struct buffer text = {0};
	report_injected_text(&record->config, ", ", &text);
	if (text.size > 0)
		buffer_text(&text, ". These figures are not those of the node as it is.");
	notice(page, "Planted conditions:", &text);
}

static void notice_interrupted(const struct record *record, struct page *page)
{
	struct buffer text = {0};
	const size_t all =
		record->grid.points * (size_t)config_integer(&record->config, KEY_MEASURE_REPEATS);
	if (record->interrupted)
		buffer_format(&text,
			"%zu of %s%zu repetitions are measured. The rest: mlbench %s --resume %s",
			record->entry_count, record_is_adaptive(&record->config) ? "at most " : "",
			all, record->config.axis_count ? "sweep" : "run", record->folder);
	notice(page, "Interrupted:", &text);
}

static void notice_failed(const struct report *report, struct page *page)
{
	struct buffer text = {0};
	size_t shown = 0;
	if (report->failed > 0)
		buffer_format(&text, "%zu of %zu points failed", report->failed,
			report->record->grid.points);
	for (size_t i = 0; i < report->record->grid.points && shown < FAILURES_SHOWN; i++) {
		const struct point_summary *p = report->points[i];
		if (!p || p->status != POINT_FAILED)
			continue;
		buffer_text(&text, shown++ ? "; " : ": ");
		report_settings(report, i, &text);
		buffer_format(
			&text, "%s%s", report->record->config.axis_count ? ": " : "", p->error);
	}
	notice(page, "Failed:", &text);
	if (report->unsteady > 0)
		buffer_format(&text,
			"%zu of %zu points; longer measurements may be steady (measure.duration)",
			report->unsteady, report->record->grid.points);
	notice(page, "Not steady:", &text);
	report_left_out_text(report, &text);
	notice(page, "Left out:", &text);
	if (report->checksum_check.differ)
		buffer_text(&text, report->checksum_check.words);
	notice(page, "Wrong batches:", &text);
}

static void notice_bad(const struct report *report, struct page *page)
{
	struct buffer text = {0};
	report_bad_text(report, &text);
	notice(page, "Bad samples:", &text);
}

static void notice_contaminated(const struct report *report, struct page *page)
{
	struct buffer text = {0};
	report_contaminated_text(report, &text);
	notice(page, "Other load:", &text);
}

static void notice_memory(const struct chart_input *input, struct page *page)
{
	struct top top;
	struct buffer text = {0};
	if (find_point(input, &top) && top.d && top.d->memory.leaks)
		buffer_text(&text, top.d->memory.words);
	notice(page, "Memory:", &text);
}

void section_head(const struct chart_input *input, struct page *page)
{
	figures(input, page);
	notice_injected(input->report->record, page);
	notice_interrupted(input->report->record, page);
	notice_failed(input->report, page);
	notice_bad(input->report, page);
	notice_contaminated(input->report, page);
	notice_memory(input, page);
}
