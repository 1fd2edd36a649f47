/* What experiments said of the diagnosis. */
#include "harness/base/units.h"
#include "harness/report/diagnosis_report.h"
#include "harness/report/layout.h"
#include "harness/report/table.h"

#include <math.h>
#include <stdio.h>

enum { RANGE_BYTES = 3 * UNITS_BYTES };

static const double SUM_LOW = 0.93, SUM_HIGH = 1.07;
static const double BASELINE_SAME = 0.05; /* |ln| */

/* "3.96x (3.80-4.12)" */
static const char *with_interval(double value, struct interval interval, char out[RANGE_BYTES])
{
	if (isnan(value))
		(void)snprintf(out, RANGE_BYTES, "-");
	else if (isnan(interval.low) || isnan(interval.high))
		(void)snprintf(out, RANGE_BYTES, "%.3gx", value);
	else
		(void)snprintf(
			out, RANGE_BYTES, "%.3gx (%.3g-%.3g)", value, interval.low, interval.high);
	return out;
}

static enum ink ink_of(enum experiment_outcome outcome)
{
	switch (outcome) {
	case EXPERIMENT_CONFIRMED:
		return INK_GOOD;
	case EXPERIMENT_FAILED:
		return INK_BAD;
	case EXPERIMENT_UNCLEAR:
		return INK_WARN;
	default:
		return INK_DIM;
	}
}

static const char *word_of(enum experiment_outcome outcome)
{
	return outcome == EXPERIMENT_CONFIRMED ? "confirmed"
	       : outcome == EXPERIMENT_FAILED  ? "FAILED"
					       : experiment_outcome_name(outcome);
}

static void add_ratio(enum ink ink, double value, struct interval interval, struct table *table)
{
	table_add(table, ink, isnan(value) ? "-" : "%.3gx", value);
	table_add(table, INK_DIM, isnan(interval.low) || isnan(interval.high) ? "-" : "%.3g-%.3g",
		interval.low, interval.high);
}

static void add_rate(enum ink ink, double rate, struct table *table)
{
	char number[UNITS_BYTES];
	table_add(table, ink, "%s", units_or_dash(units_format_count, rate, number));
}

static void add_experiment(const struct experiment *e, struct table *table)
{
	table_add(table, ink_of(e->outcome), "%s", word_of(e->outcome));
	add_ratio(INK_PLAIN, e->predicted, e->predicted_90, table);
	add_ratio(INK_BOLD, e->measured, e->measured_90, table);
	add_rate(INK_BOLD, e->throughput, table);
	add_rate(INK_PLAIN, e->baseline, table);
	table_add(table, INK_DIM, "%zu", e->blocks);
	table_add(table, INK_PLAIN, "%s", e->what);
}

static void render_experiments(
	const struct verification *v, const struct style *style, struct buffer *out)
{
	const struct table_column columns[] = {
		{.head = "", .left = true},
		{.head = "predicted"},
		{.head = "90 %", .keep = 4},
		{.head = "measured"},
		{.head = "90 %", .keep = 3},
		{.head = "samples/s", .keep = 1},
		{.head = "baseline", .keep = 2},
		{.head = "blocks", .keep = 5},
		{.head = "experiment", .left = true, .wraps = true},
	};
	struct table table;
	table_open(&table, columns, sizeof columns / sizeof columns[0]);
	for (size_t i = 0; i < v->count; i++)
		add_experiment(&v->experiments[i], &table);
	table_render(&table, style, LAYOUT_INDENT, true, out);
	table_close(&table);
}

/* Both figures of each failed prediction, and why something was not measured or predicted. */
static void render_remarks(
	const struct verification *v, const struct style *style, struct buffer *out)
{
	for (size_t i = 0; i < v->count; i++) {
		const struct experiment *e = &v->experiments[i];
		char predicted[RANGE_BYTES];
		char measured[RANGE_BYTES];
		struct buffer text = {0};
		if (e->outcome == EXPERIMENT_FAILED)
			buffer_format(&text, "%s: predicted %s of the baseline, measured %s",
				e->what, with_interval(e->predicted, e->predicted_90, predicted),
				with_interval(e->measured, e->measured_90, measured));
		else if (e->why[0])
			buffer_format(&text, "%s: %s", e->what, e->why);
		const bool failed = e->outcome == EXPERIMENT_FAILED;
		layout_labelled_buffer(
			style, failed ? INK_BAD : INK_DIM, failed ? "FAILED" : "", &text, out);
	}
}

static void render_elasticities(
	const struct verification *v, const struct style *style, struct buffer *out)
{
	if (v->elasticity_count == 0)
		return;
	const struct table_column columns[] = {
		{.head = "stage", .left = true},
		{.head = "measured"},
		{.head = "", .bar = true, .keep = 2},
		{.head = "90 %"},
		{.head = "replayed", .keep = 1},
	};
	struct table table;
	char number[UNITS_BYTES];
	layout_heading(style, "elasticity of each stage, by slowing it down", out);
	table_open(&table, columns, sizeof columns / sizeof columns[0]);
	for (size_t i = 0; i <= v->elasticity_count; i++) {
		const bool is_sum = i == v->elasticity_count;
		const struct measured_elasticity *e = &v->elasticities[is_sum ? 0 : i];
		const double value = is_sum ? v->elasticity_sum : e->value;
		const struct interval interval = is_sum ? v->elasticity_sum_90 : e->interval;
		const double replayed = is_sum ? v->replayed_sum : e->replayed;
		table_add(&table, is_sum ? INK_BOLD : INK_PLAIN, "%s", is_sum ? "sum" : e->stage);
		table_add(&table, INK_BOLD, isnan(value) ? "-" : "%.3f", value);
		table_add(&table, INK_ACCENT, "%.4f", is_sum || isnan(value) ? 0 : value);
		table_add(&table, INK_DIM, isnan(interval.low) ? "-" : "%.3f to %.3f", interval.low,
			interval.high);
		(void)snprintf(number, sizeof number, isnan(replayed) ? "-" : "%.3f", replayed);
		table_add(&table, INK_DIM, "%s", number);
	}
	table_render(&table, style, LAYOUT_INDENT, true, out);
	table_close(&table);
}

/* The baseline runs again what was diagnosed: samples/s over all experiments; NAN: none was run. */
static double baseline_of(const struct verification *v)
{
	double sum = 0;
	size_t blocks = 0;
	for (size_t i = 0; i < v->count; i++) {
		const struct experiment *e = &v->experiments[i];
		sum += e->blocks > 0 ? (double)e->blocks * log(e->baseline) : 0;
		blocks += e->blocks;
	}
	return blocks > 0 ? exp(sum / (double)blocks) : NAN;
}

static void render_baseline(
	const struct verification *v, const struct style *style, struct buffer *out)
{
	const double baseline = baseline_of(v);
	char now[UNITS_BYTES];
	char then[UNITS_BYTES];
	struct buffer text = {0};
	if (!isnan(baseline) && fabs(log(baseline / v->throughput)) > BASELINE_SAME)
		buffer_format(&text,
			"the baseline gave %s samples/s among the experiments, and %s when it was diagnosed: the "
			"node has changed, or short runs are not like long ones",
			units_format_count(baseline, now), units_format_count(v->throughput, then));
	layout_labelled_buffer(style, INK_WARN, "note", &text, out);
}

void verification_incomplete(const struct verification *v, struct buffer *out)
{
	if (!v->interrupted && v->untried == 0)
		return;
	buffer_text(out, v->interrupted ? "interrupted" : "the time was over");
	if (v->untried > 0)
		buffer_format(out, " before %zu of %zu experiments had the %d blocks they need",
			v->untried, v->count, EXPERIMENT_BLOCKS_LEAST);
	buffer_text(out, "; --verify measures all of them again");
}

void verification_repeated(const struct verification *v, struct buffer *out)
{
	if (v->repeated > 0)
		buffer_format(out,
			"%zu block%s measured again: the baseline in %s was further from the others' than noise "
			"takes it",
			v->repeated, v->repeated == 1 ? " was" : "s were",
			v->repeated == 1 ? "it" : "them");
}

static void render_conclusion(const struct verification *v, const struct verdict *verdict,
	const struct style *style, struct buffer *out)
{
	struct buffer text = {0};
	const double after = verification_confidence(v, verdict);
	const struct measured_elasticity *other = verification_contradicts(v, verdict);
	buffer_format(&text, "%zu predictions confirmed, %zu failed, %zu unclear", v->confirmed,
		v->failed, v->unclear);
	if (after < verdict->confidence)
		buffer_format(
			&text, "; confidence falls from %.2f to %.2f", verdict->confidence, after);
	else
		buffer_format(&text, "; confidence stays %.2f", after);
	layout_labelled_buffer(style, v->failed ? INK_BAD : INK_GOOD, "verified", &text, out);
	verification_incomplete(v, &text);
	layout_labelled_buffer(style, INK_WARN, "partly", &text, out);
	verification_repeated(v, &text);
	layout_labelled_buffer(style, INK_WARN, "note", &text, out);
	if (other)
		buffer_format(&text,
			"slowing %s down costs more than slowing %s down: the experiments name %s",
			other->stage, verdict->stage, other->stage);
	layout_labelled_buffer(style, INK_BAD, "but", &text, out);
	const struct interval *sum = &v->elasticity_sum_90;
	if (v->elasticity_count > 0 && sum->high < SUM_LOW)
		buffer_format(&text,
			"the measured elasticities sum to %.2f: something binds that is in no stage",
			v->elasticity_sum);
	else if (v->elasticity_count > 0 && sum->low > SUM_HIGH)
		buffer_format(&text,
			"the measured elasticities sum to %.2f: stages nearly in balance, where each slow-down "
			"alone makes a new limit",
			v->elasticity_sum);
	layout_labelled_buffer(style, INK_WARN, "note", &text, out);
	render_baseline(v, style, out);
}

void verification_text(const struct verification *v, const struct verdict *verdict,
	const struct style *style, struct buffer *out)
{
	char spent[UNITS_BYTES];
	struct buffer head = {0};
	buffer_format(&head,
		"experiments: throughput over that of the baseline (the configuration as it is), in ABBA blocks "
		"of %d runs, %s in all",
		EXPERIMENT_RUNS, units_format_duration(v->spent_s * 1e9, spent));
	layout_heading(style, head.data ? head.data : "", out);
	buffer_release(&head);
	render_experiments(v, style, out);
	render_elasticities(v, style, out);
	buffer_text(out, "\n");
	render_conclusion(v, verdict, style, out);
	render_remarks(v, style, out);
}
