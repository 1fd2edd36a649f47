/* The diagnosis for people: the sentence first, then what it rests on. */
#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/report/diagnosis_report.h"
#include "harness/report/layout.h"
#include "harness/report/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RANGE_BYTES = 3 * UNITS_BYTES, COST_BYTES = 2 * NAME_BYTES };

/* An elasticity below this, whose interval does not reach above it, is not worth a line. */
static const double ELASTICITY_SHOWN = 0.005;

static const char *range_text(struct interval interval, char out[RANGE_BYTES])
{
	char low[UNITS_BYTES];
	char high[UNITS_BYTES];
	if (isnan(interval.low) || isnan(interval.high))
		(void)snprintf(out, RANGE_BYTES, "no interval");
	else
		(void)snprintf(out, RANGE_BYTES, "%s-%s", units_format_count(interval.low, low),
			units_format_count(interval.high, high));
	return out;
}

/* --- the sentence ------------------------------------------------------------------------------ */

static void render_head(
	const struct diagnosis_view *view, const struct style *style, struct buffer *out)
{
	buffer_format(out, "%s%s%s\n", style_ink(style, INK_BOLD), view->name, style_end(style));
	if (view->settings[0] == '\0')
		return;
	struct buffer text = {0};
	buffer_format(&text, "%zu, %s", view->point, view->settings);
	if (view->is_best)
		buffer_format(&text, " (the fastest of %zu; --point N for another)", view->points);
	layout_labelled_buffer(style, INK_DIM, "point", &text, out);
}

static void render_verdict(
	const struct diagnosis_view *view, const struct style *style, struct buffer *out)
{
	const struct verdict *v = &view->diagnosis->verdict;
	const bool tells = diagnosis_tells(view);
	struct buffer text = {0};
	diagnosis_sentence(view, &text);
	layout_labelled_buffer(style, tells ? INK_BOLD : INK_WARN, "verdict", &text, out);
	const size_t first = !tells; /* it is in the sentence */
	for (size_t i = first; i < v->evidence_count; i++)
		layout_labelled(style, INK_DIM, i == first ? "evidence" : "", v->evidence[i], out);
	/* With recommendations, or without a verdict, it says what the sentence says. */
	if (v->advice[0] && tells && view->diagnosis->recommendation_count == 0)
		layout_labelled(style, INK_BOLD, "advice", v->advice, out);
}

/* --- the model -------------------------------------------------------------------------------- */

static bool is_shown(const struct elasticity *e)
{
	return fabs(e->value) >= ELASTICITY_SHOWN || e->interval.high >= 2 * ELASTICITY_SHOWN;
}

static void render_elasticities(
	const struct elasticities *all, const struct style *style, struct buffer *out)
{
	const struct table_column columns[] = {
		{.head = "cost", .left = true},
		{.head = "share"},
		{.head = "", .bar = true, .keep = 1},
		{.head = "90 %"},
	};
	struct table table;
	layout_heading(style, "what each cost takes of the throughput: elasticity, by replay", out);
	table_open(&table, columns, sizeof columns / sizeof columns[0]);
	for (int cost = 0; cost < COSTS; cost++) {
		const struct elasticity *e = &all->costs[cost];
		if (!is_shown(e))
			continue;
		table_add(&table, INK_PLAIN, "%s / %s", replay_cost_stage(e->cost),
			replay_cost_resource(e->cost));
		table_add(&table, INK_BOLD, "%.3f", e->value);
		table_add(&table, INK_ACCENT, "%.4f", e->value);
		table_add(&table, INK_DIM, isnan(e->interval.low) ? "-" : "%.3f to %.3f",
			e->interval.low, e->interval.high);
	}
	table_render(&table, style, LAYOUT_INDENT, true, out);
	table_close(&table);
	struct buffer text = {0};
	buffer_format(&text,
		"%.3f (1 if all that binds is in the model); %.1f %% of the time between "
		"batches is in no cost",
		all->sum, 100 * all->unmodelled);
	layout_labelled_buffer(style, INK_DIM, "sum", &text, out);
}

static void render_ladder(
	const struct ladder *ladder, const struct style *style, struct buffer *out)
{
	const struct table_column columns[] = {
		{.head = ""},
		{.head = "limit", .left = true},
		{.head = "samples/s"},
		{.head = "", .bar = true, .keep = 1},
	};
	if (ladder->count == 0)
		return;
	struct table table;
	char number[UNITS_BYTES];
	double most = 0;
	for (size_t i = 0; i < ladder->count; i++)
		most = fmax(most,
			isfinite(ladder->rungs[i].throughput) ? ladder->rungs[i].throughput : 0);
	layout_heading(style, "limits in the order they come, those before them removed", out);
	table_open(&table, columns, sizeof columns / sizeof columns[0]);
	for (size_t i = 0; i < ladder->count; i++) {
		const struct ladder_rung *rung = &ladder->rungs[i];
		table_add(&table, INK_DIM, "%zu", i + 1);
		table_add(&table, INK_PLAIN, "%s / %s", rung->stage, rung->resource);
		table_add(&table, INK_BOLD, "%s", units_format_count(rung->throughput, number));
		table_add(&table, INK_ACCENT, "%.4f", most > 0 ? rung->throughput / most : 0);
	}
	table_render(&table, style, LAYOUT_INDENT, true, out);
	table_close(&table);
}

static void render_recommendation(const struct recommendation *r, size_t number,
	const struct style *style, struct buffer *out)
{
	char label[UNITS_BYTES];
	char range[RANGE_BYTES];
	char count[UNITS_BYTES];
	struct buffer text = {0};
	(void)snprintf(label, sizeof label, "%zu", number);
	for (size_t i = 0; i < r->setting_count; i++)
		buffer_format(&text, "%s--set %s", i ? " " : "", r->settings[i]);
	layout_labelled_buffer(style, INK_GOOD, label, &text, out);
	if (r->measured > 0)
		buffer_format(&text, "measured %s samples/s there (",
			units_format_count(r->measured, count));
	buffer_format(&text, "predicted %s samples/s (90 %%: %s)%s",
		units_format_count(r->predicted, count), range_text(r->interval, range),
		r->measured > 0 ? ")" : "");
	if (r->words[0])
		buffer_format(&text, ": %s", r->words);
	else if (r->next_stage[0])
		buffer_format(&text, "; then %s / %s binds", r->next_stage,
			r->next_resource[0] ? r->next_resource : "unknown");
	layout_labelled_buffer(style, INK_PLAIN, "", &text, out);
}

static void render_recommendations(
	const struct diagnosis *d, const struct style *style, struct buffer *out)
{
	if (d->recommendation_count == 0)
		return;
	layout_heading(style, "to do, best first", out);
	for (size_t i = 0; i < d->recommendation_count; i++)
		render_recommendation(&d->recommendations[i], i + 1, style, out);
}

/* --- the rest ---------------------------------------------------------------------------------- */

static void render_replay(
	const struct diagnosis *d, double measured, const struct style *style, struct buffer *out)
{
	char replayed[UNITS_BYTES];
	char number[UNITS_BYTES];
	struct buffer text = {0};
	if (d->modelled)
		buffer_format(&text, "gives %s samples/s as it stands, %s measured (%+.1f %%)",
			units_format_count(d->replayed, replayed),
			units_format_count(measured, number), 100 * (d->replayed / measured - 1));
	else
		buffer_format(
			&text, "none: %s", d->why_not[0] ? d->why_not : "it was not asked for");
	layout_labelled_buffer(style, d->modelled ? INK_DIM : INK_WARN, "replay", &text, out);
	if (d->knee.workers > 0)
		buffer_format(&text, "%u decode worker%s: %s samples/s, twice as many give %s",
			d->knee.workers, d->knee.workers == 1 ? "" : "s",
			units_format_count(d->knee.throughput, number),
			units_format_count(d->knee.doubled, replayed));
	layout_labelled_buffer(style, INK_DIM, "knee", &text, out);
}

static void render_memory(
	const struct memory_finding *memory, const struct style *style, struct buffer *out)
{
	char rate[UNITS_BYTES];
	char time[UNITS_BYTES];
	struct buffer text = {0};
	if (memory->words[0])
		buffer_text(&text, memory->words);
	else if (memory->leaks)
		buffer_format(&text, "memory leaks %s%s%s",
			units_format_rate(memory->bytes_per_s, rate),
			memory->stage[0] ? " in " : "", memory->stage);
	else if (isnan(memory->bytes_per_s))
		buffer_text(&text, "too short a run to tell whether memory grows");
	else
		buffer_text(&text, "memory does not grow beyond its pools");
	if (memory->leaks && !memory->words[0] && isfinite(memory->seconds_to_full))
		buffer_format(&text, "; full in %s",
			units_format_duration(memory->seconds_to_full * (double)NS_PER_S, time));
	layout_labelled_buffer(style, memory->leaks ? INK_BAD : INK_DIM, "growth", &text, out);
}

static void render_phases(const struct diagnosis *d, const struct style *style, struct buffer *out)
{
	const struct table_column columns[] = {
		{.head = "from"},
		{.head = "to"},
		{.head = "samples/s"},
		{.head = "limited by", .left = true},
		{.head = "confi-\ndence", .keep = 1},
	};
	if (d->phase_count < 2)
		return;
	struct table table;
	char number[UNITS_BYTES];
	layout_heading(style, "the limit changes during the run", out);
	table_open(&table, columns, sizeof columns / sizeof columns[0]);
	for (size_t i = 0; i < d->phase_count; i++) {
		const struct phase *phase = &d->phases[i];
		table_add(&table, INK_PLAIN, "%.2f s", phase->begin_s);
		table_add(&table, INK_PLAIN, "%.2f s", phase->end_s);
		table_add(&table, INK_BOLD, "%s", units_format_count(phase->throughput, number));
		table_add(&table, INK_PLAIN, "%s / %s", phase->stage, phase->resource);
		table_add(&table, INK_DIM, "%.2f", phase->confidence);
	}
	table_render(&table, style, LAYOUT_INDENT, true, out);
	table_close(&table);
}

void diagnosis_model_text(
	const struct diagnosis *d, double measured, const struct style *style, struct buffer *out)
{
	render_replay(d, measured, style, out);
	render_memory(&d->memory, style, out);
	render_phases(d, style, out);
	if (d->modelled && d->samples_needed == 0) {
		render_elasticities(&d->elasticities, style, out);
		render_ladder(&d->ladder, style, out);
	}
	render_recommendations(d, style, out);
}

void diagnosis_text(
	const struct diagnosis_view *view, const struct style *style, struct buffer *out)
{
	const struct diagnosis *d = view->diagnosis;
	render_head(view, style, out);
	render_verdict(view, style, out);
	diagnosis_model_text(d, view->summary->median, style, out);
	if (view->verification)
		verification_text(view->verification, &d->verdict, style, out);
	if (view->follow)
		follow_text(view->follow, style, out);
	buffer_text(out, "\n");
	layout_labelled(style, INK_DIM, "results", view->folder, out);
}
