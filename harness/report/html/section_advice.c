/* What to do, what the verdict rests on, and what experiments said of it. */
#include "harness/analyze/diagnose.h"
#include "harness/analyze/experiment.h"
#include "harness/analyze/limit_kind.h"
#include "harness/base/shell.h"
#include "harness/base/units.h"
#include "harness/record/fields.h"
#include "harness/report/diagnosis_report.h"
#include "harness/report/html/sections.h"
#include "harness/report/part.h"
#include "harness/report/runbook.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RANGE_BYTES = 3 * UNITS_BYTES, MEANING_BYTES = 600 };

static const struct point_summary *point_of(const struct chart_input *input)
{
	return input->point < input->report->record->grid.points
		       ? input->report->points[input->point]
		       : NULL;
}

static const struct diagnosis *diagnosis_of(const struct chart_input *input)
{
	return point_of(input) && input->report->diagnoses ? input->report->diagnoses[input->point]
							   : NULL;
}

static void put_text(struct page *page, struct buffer *text)
{
	if (text->size > 0)
		page_paragraph(page, text->data);
	buffer_release(text);
}

/* Advice is written without a capital and a full stop. */
static void put_sentence(struct page *page, const char *words)
{
	struct buffer text = {0};
	buffer_sentence(&text, words);
	buffer_text(&text, ".");
	put_text(page, &text);
}

/* --- advice ---------------------------------------------------------------------------------------- */

/* "992 samples/s predicted, +300 % (90 % CI: 941 to 1,046)" */
static void advice_gain(const struct recommendation *r, double now, struct buffer *out)
{
	char number[UNITS_BYTES];
	char low[UNITS_BYTES];
	char high[UNITS_BYTES];
	buffer_format(out, "%s samples/s predicted, %+.0f %%",
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
		buffer_format(out, "The next bottleneck is then %s / %s", r->next_stage,
			r->next_resource[0] ? r->next_resource : "unknown");
	if (out->size > 0)
		buffer_text(out, ".");
}

/* The best one stands out; the others are a list. */
static void put_recommendations(const struct diagnosis *d, double now, struct page *page)
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

static void put_enough(const struct report *report, struct page *page)
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
	buffer_format(&text, " gives %s samples/s, within 5 %% of the best, with less.",
		units_format_count(report->points[enough]->median, number));
	put_text(page, &text);
}

void section_advice(const struct chart_input *input, struct page *page)
{
	const struct point_summary *p = point_of(input);
	const struct diagnosis *d = diagnosis_of(input);
	if (!p)
		return;
	page_heading(page, 2, "advice", "What to do");
	if (d && d->recommendation_count > 0) {
		put_recommendations(d, p->median, page);
	} else {
		put_sentence(page, p->verdict.advice[0] ? p->verdict.advice
							: "there is no advice without a verdict");
	}
	put_enough(input->report, page);
}

/* --- evidence -------------------------------------------------------------------------------------- */

/* What the pair means, from the runbook: its marks taken out. */
static void put_meaning(const struct verdict *v, struct page *page)
{
	struct runbook_text entry;
	struct buffer text = {0};
	if (!runbook_find(v->stage, v->resource, &entry))
		return;
	const struct runbook_text meaning = runbook_meaning(&entry);
	for (size_t i = 0; i < meaning.size && i < MEANING_BYTES; i++)
		if (meaning.text[i] != '*' && meaning.text[i] != '`')
			buffer_add(&text, meaning.text[i] == '\n' ? " " : &meaning.text[i], 1);
	char pair[PAIR_BYTES];
	buffer_format(
		&text, ". More: mlbench explain %s", limit_kind_pair(v->stage, v->resource, pair));
	put_text(page, &text);
}

static void put_replay(const struct diagnosis *d, double measured, struct page *page)
{
	char replayed[UNITS_BYTES];
	char number[UNITS_BYTES];
	struct buffer text = {0};
	if (d->modelled)
		buffer_format(&text,
			"Replay of what was recorded gives %s samples/s as it stands, %s measured (%+.1f %%).",
			units_format_count(d->replayed, replayed),
			units_format_count(measured, number), 100 * (d->replayed / measured - 1));
	else if (d->why_not[0])
		buffer_format(&text, "It could not be replayed: %s.", d->why_not);
	put_text(page, &text);
}

static const struct page_column elasticity_columns[] = {
	{"cost", "cost", PAGE_TEXT},
	{"value", "elasticity", PAGE_FRACTION},
	{"low", "90 %: from", PAGE_FRACTION},
	{"high", "to", PAGE_FRACTION},
};

static void put_elasticities(const struct elasticities *all, struct page *page)
{
	static const double SHOWN = 0.005;
	struct page_table table = {
		.columns = elasticity_columns, .column_count = 4, .rows = json_array()};
	for (int cost = 0; cost < COSTS; cost++) {
		const struct elasticity *e = &all->costs[cost];
		char name[PAIR_BYTES + 2];
		struct part part = part_open();
		if (!(fabs(e->value) >= SHOWN)) {
			json_decref(part_close(&part));
			continue;
		}
		(void)snprintf(name, sizeof name, "%s / %s", replay_cost_stage(e->cost),
			replay_cost_resource(e->cost));
		part_put(&part, "cost", json_string(name));
		part_put(&part, "value", fields_number(e->value));
		part_put(&part, "low", fields_number(e->interval.low));
		part_put(&part, "high", fields_number(e->interval.high));
		(void)json_array_append_new(table.rows, part_close(&part));
	}
	if (json_array_size(table.rows) > 0)
		page_table(page, &table,
			"Elasticity (predicted): throughput gained, in %, when a cost falls by 1 %; total 1.00: the model explains everything");
	json_decref(table.rows);
}

static const struct page_column phase_columns[] = {
	{"begin", "from", PAGE_SECONDS},
	{"end", "to", PAGE_SECONDS},
	{"rate", "samples/s", PAGE_COUNT},
	{"limit", "limited by", PAGE_TEXT},
	{"confidence", "confidence", PAGE_FRACTION},
};

static void put_phases(const struct diagnosis *d, struct page *page)
{
	struct page_table table = {
		.columns = phase_columns, .column_count = 5, .rows = json_array()};
	for (size_t i = 0; d->phase_count > 1 && i < d->phase_count; i++) {
		const struct phase *phase = &d->phases[i];
		char limit[PAIR_BYTES + 2];
		struct part part = part_open();
		(void)snprintf(limit, sizeof limit, "%s / %s", phase->stage, phase->resource);
		part_put(&part, "begin", fields_number(phase->begin_s));
		part_put(&part, "end", fields_number(phase->end_s));
		part_put(&part, "rate", fields_number(phase->throughput));
		part_put(&part, "limit", json_string(limit));
		part_put(&part, "confidence", fields_number(phase->confidence));
		(void)json_array_append_new(table.rows, part_close(&part));
	}
	if (json_array_size(table.rows) > 0)
		page_table(page, &table, "The limit changed during the run");
	json_decref(table.rows);
}

/* --- experiments ----------------------------------------------------------------------------------- */

static const struct page_column experiment_columns[] = {
	{"what", "experiment", PAGE_TEXT},
	{"outcome", "outcome", PAGE_TEXT},
	{"predicted", "predicted ratio", PAGE_REAL},
	{"predicted_low", "90 %: from", PAGE_REAL},
	{"predicted_high", "to", PAGE_REAL},
	{"measured", "measured ratio", PAGE_REAL},
	{"measured_low", "90 %: from", PAGE_REAL},
	{"measured_high", "to", PAGE_REAL},
	{"throughput", "samples/s", PAGE_COUNT},
	{"baseline", "baseline, samples/s", PAGE_COUNT},
	{"blocks", "blocks", PAGE_COUNT},
};

static json_t *experiment_row(const struct experiment *e)
{
	struct part part = part_open();
	part_put(&part, "what", fields_text(e->what));
	part_put(&part, "outcome", json_string(experiment_outcome_name(e->outcome)));
	part_put(&part, "predicted", fields_number(e->predicted));
	part_put(&part, "predicted_low", fields_number(e->predicted_90.low));
	part_put(&part, "predicted_high", fields_number(e->predicted_90.high));
	part_put(&part, "measured", fields_number(e->measured));
	part_put(&part, "measured_low", fields_number(e->measured_90.low));
	part_put(&part, "measured_high", fields_number(e->measured_90.high));
	part_put(&part, "throughput", fields_number(e->throughput));
	part_put(&part, "baseline", fields_number(e->baseline));
	part_put(&part, "blocks", json_integer((json_int_t)e->blocks));
	return part_close(&part);
}

static void put_conclusion(
	const struct verification *v, const struct verdict *verdict, struct page *page)
{
	const struct measured_elasticity *other = verification_contradicts(v, verdict);
	const double after = verification_confidence(v, verdict);
	struct buffer text = {0};
	if (v->confirmed + v->failed + v->unclear > 0)
		buffer_format(&text,
			"Of the predictions that experiments tried, %zu were confirmed, %zu failed, %zu are unclear.",
			v->confirmed, v->failed, v->unclear);
	else
		buffer_text(
			&text, "There were no predictions that the experiments could have tried.");
	if (after < verdict->confidence)
		buffer_format(&text, " The verdict's confidence falls from %.2f to %.2f.",
			verdict->confidence, after);
	if (other)
		buffer_format(&text,
			" But slowing %s down costs more than slowing %s down: the experiments name %s.",
			other->stage, verdict->stage, other->stage);
	put_text(page, &text);
	verification_incomplete(v, &text);
	if (text.size > 0)
		page_notice(page, "Incomplete:", text.data);
	buffer_release(&text);
	verification_repeated(v, &text);
	if (text.size > 0)
		page_notice(page, "Measured again:", text.data);
	buffer_release(&text);
}

static void put_verification(
	const struct verification *v, const struct verdict *verdict, struct page *page)
{
	struct page_table table = {.columns = experiment_columns,
		.column_count = sizeof experiment_columns / sizeof experiment_columns[0],
		.rows = json_array()};
	for (size_t i = 0; i < v->count; i++)
		(void)json_array_append_new(table.rows, experiment_row(&v->experiments[i]));
	page_heading(page, 3, "verification", "Tried by experiments");
	put_conclusion(v, verdict, page);
	page_table(page, &table,
		"Experiments: throughput over that of the baseline (the configuration as it is), in ABBA blocks");
	json_decref(table.rows);
}

void section_evidence(const struct chart_input *input, struct page *page)
{
	const struct point_summary *p = point_of(input);
	const struct diagnosis *d = diagnosis_of(input);
	if (!p)
		return;
	page_heading(page, 2, "evidence", "Evidence");
	page_list_begin(page, false);
	for (size_t i = 0; i < p->verdict.evidence_count; i++)
		page_item(page, p->verdict.evidence[i]);
	page_list_end(page);
	put_meaning(&p->verdict, page);
	if (d) {
		put_replay(d, p->median, page);
		put_phases(d, page);
		if (d->modelled && d->samples_needed == 0)
			put_elasticities(&d->elasticities, page);
	}
	if (input->verification) {
		put_verification(input->verification, &p->verdict, page);
		return;
	}
	page_paragraph(page, "No experiment has tried it yet. To prove it, and the advice:");
	struct buffer text = {0};
	buffer_text(&text, "mlbench diagnose ");
	shell_word(input->report->record->folder, &text);
	buffer_text(&text, " --verify");
	page_code(page, text.data ? text.data : "");
	buffer_release(&text);
}
