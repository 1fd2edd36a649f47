/* The report that people read.  First what was run (and whether its step is emulated), then every
 * point, the map, where the time went at the best point, each stage's limit, and the verdict. */
#include "harness/analyze/limit_kind.h"
#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/base/utf8.h"
#include "harness/measure/node_name.h"
#include "harness/record/config_json.h"
#include "harness/report/diagnosis_report.h"
#include "harness/report/heatmap.h"
#include "harness/report/layout.h"
#include "harness/report/read_points.h"
#include "harness/report/report.h"
#include "harness/report/scaling.h"
#include "harness/report/summary_tables.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
	POINTS_SHOWN_MAX = 100,
	NOTES_SHOWN_MAX = 8,
	AGE_BYTES = 64,
};

static const double NEAR_BEST_SHARE = 0.05;

static void render_run(const struct report *report, const struct style *style, struct buffer *out)
{
	const struct record *record = report->record;
	const struct fact *cpu = fact_find(&record->environment, "cpu", "model");
	char when[CLOCK_UTC_BYTES];
	char took[UNITS_BYTES];
	char age[AGE_BYTES];
	struct buffer line = {0};
	clock_format_utc(record->started, when);
	const double seconds = fmax(0, record->finished - record->started);
	const size_t repeats = record_repeats(record);
	buffer_format(&line, "%zu point%s x %zu repetition%s, started %s, took %s, config %s",
		record->grid.points, record->grid.points == 1 ? "" : "s", repeats,
		repeats == 1 ? "" : "s", when,
		units_format_duration(seconds * (double)NS_PER_S, took), record->config_hash);
	layout_labelled(style, INK_DIM, "run", line.data ? line.data : "", out);
	buffer_release(&line);
	const char *node = fact_node_name(&record->environment);
	if (node) {
		utf8_add_plain(&line, node, "?");
		buffer_text(&line, ": ");
	}
	buffer_format(&line, "%s, %u core%s usable; ceilings: %s",
		cpu && cpu->kind == FACT_TEXT ? cpu->text : "CPU model unknown", record->cores,
		record->cores == 1 ? "" : "s",
		record->has_ceilings ? ceilings_age(&record->ceilings, record->started, "before",
					       age, sizeof age)
				     : "none (mlbench probe)");
	layout_labelled(style, INK_DIM, "node", line.data ? line.data : "", out);
	buffer_release(&line);
}

static void render_conditions(
	const struct report *report, const struct style *style, struct buffer *out)
{
	struct buffer text = {0};
	report_injected_text(&report->record->config, ", ", &text);
	layout_labelled_buffer(style, INK_WARN, "injected", &text, out);
	const struct record *record = report->record;
	const char *warning = report_emulation_warning(&record->config, record->step.emulated);
	if (warning)
		layout_labelled(style, INK_WARN, "warning", warning, out);
	if (!report->record->interrupted)
		return;
	const size_t all = report->record->grid.points *
			   (size_t)config_integer(&report->record->config, KEY_MEASURE_REPEATS);
	const bool adaptive = record_is_adaptive(&report->record->config);
	buffer_format(&text,
		"interrupted: %zu of %s%zu repetitions measured; measure the rest with: mlbench "
		"sweep --resume %s",
		report->record->entry_count, adaptive ? "at most " : "", all,
		report->record->folder);
	layout_labelled(style, INK_WARN, "status", text.data ? text.data : "", out);
	buffer_release(&text);
}

static void render_head(const struct report *report, const struct style *style, struct buffer *out)
{
	const struct record *record = report->record;
	buffer_format(out, "%s%s%s  ", style_ink(style, INK_BOLD), record->name, style_end(style));
	const int used = style_columns(record->name) + 2;
	struct buffer step = {0};
	buffer_format(&step, "step: %s", record->step.description);
	style_wrap(style, step.data ? step.data : "", LAYOUT_INDENT + LAYOUT_LABEL, used, out);
	buffer_release(&step);
	if (record->step.reference[0]) {
		struct buffer reference = {0};
		buffer_format(&reference, "reference: %s", record->step.reference);
		layout_labelled_buffer(style, INK_DIM, "", &reference, out);
	}
	render_run(report, style, out);
	render_conditions(report, style, out);
}

static void render_exceeded(
	const struct report *report, const struct style *style, struct buffer *out)
{
	struct buffer text = {0};
	if (report->best < report->record->grid.points)
		report_exceeded_text(report, report->points[report->best], "", &text);
	if (text.size > 0)
		layout_labelled(style, INK_WARN, "note", text.data, out);
	buffer_release(&text);
}

static void render_limits(
	const struct report *report, const struct style *style, struct buffer *out)
{
	struct medium medium = medium_terminal(style, out);
	if (report->record->limit_count == 0)
		return;
	json_t *limits = report_limits_json(report->record);
	medium_heading(&medium, "limits of this node, each stage alone");
	summary_limits(&medium, limits);
	json_decref(limits);
	render_exceeded(report, style, out);
}

static void append_rate_at(const struct report *report, size_t point, struct buffer *text)
{
	char number[UNITS_BYTES];
	buffer_format(
		text, "%s samples/s", units_format_count(report->points[point]->median, number));
	if (report->record->config.axis_count == 0)
		return;
	buffer_text(text, " at ");
	report_settings(report, point, text);
}

/* "measured 9 of 60 points, predicted 51 (90 % intervals within 5.0 %)", and how far to trust that. */
static void render_predicted(
	const struct report *report, const struct style *style, struct buffer *out)
{
	const struct forecast_errors *errors = &report->forecast_errors;
	const size_t measured = report->good + report->unsteady;
	struct buffer text = {0};
	if (!report->forecasts)
		return;
	buffer_format(&text, "measured %zu of %zu points, predicted %zu", measured,
		report->record->grid.points, report->predicted);
	if (report->predicted > 0)
		buffer_format(&text, " (90 %% intervals within %.1f %%; marked ~)",
			100 * report_forecast_width(report));
	if (errors->count > 0)
		buffer_format(&text,
			"; model error, each measured point predicted from the others: median %.1f %%, "
			"worst %.1f %%; %zu of %zu outside their interval",
			100 * errors->median, 100 * errors->worst, report->missed, errors->count);
	layout_labelled(style, INK_BOLD, "adaptive", text.data ? text.data : "", out);
	buffer_release(&text);
}

static void render_best(const struct report *report, const struct style *style, struct buffer *out)
{
	struct buffer text = {0};
	append_rate_at(report, report->best, &text);
	layout_labelled(style, INK_GOOD, "best", text.data ? text.data : "", out);
	buffer_release(&text);
	const size_t enough = report_smallest_within(report, NEAR_BEST_SHARE);
	if (enough == report->best || report->record->config.axis_count == 0)
		return;
	append_rate_at(report, enough, &text);
	buffer_text(&text, ": the smallest setting within 5 % of the best");
	layout_labelled(style, INK_GOOD, "enough", text.data ? text.data : "", out);
	buffer_release(&text);
}

static void render_scaling(
	const struct report *report, const struct style *style, struct buffer *out)
{
	struct buffer text = {0};
	scaling_describe(report, &text);
	if (text.size > 0)
		layout_labelled(style, INK_DIM, "scaling", text.data, out);
	buffer_release(&text);
}

static const struct diagnosis *diagnosis_at(const struct report *report, size_t point)
{
	return report->diagnoses ? report->diagnoses[point] : NULL;
}

/* What was found beside the verdict, and where more is said. */
static void render_beside_verdict(
	const struct report *report, const struct style *style, struct buffer *out)
{
	const struct verdict *v = &report->points[report->best]->verdict;
	const struct diagnosis *d = diagnosis_at(report, report->best);
	char pair[PAIR_BYTES];
	struct buffer text = {0};
	if (d && d->memory.leaks)
		layout_labelled(style, INK_BAD, "memory", d->memory.words, out);
	if (!limit_kind_find(v->stage, v->resource))
		return;
	buffer_format(&text, "mlbench explain %s", limit_kind_pair(v->stage, v->resource, pair));
	layout_labelled_buffer(style, INK_DIM, "more", &text, out);
}

static void render_verdict(
	const struct report *report, const struct style *style, struct buffer *out)
{
	const struct verdict *v = &report->points[report->best]->verdict;
	struct buffer text = {0};
	if (v->stage[0] && strcmp(v->stage, "none") != 0) {
		diagnosis_bottleneck(report->points[report->best], v->confidence, &text);
		buffer_text(&text, ".");
	} else {
		buffer_text(&text, "Inconclusive: the bottleneck is unknown.");
	}
	layout_labelled_buffer(style, INK_BOLD, "verdict", &text, out);
	for (size_t i = 0; i < v->evidence_count; i++)
		layout_labelled(style, INK_DIM, i ? "" : "evidence", v->evidence[i], out);
	if (v->advice[0])
		layout_labelled(style, INK_BOLD, "advice", v->advice, out);
	render_beside_verdict(report, style, out);
}

/* What the replay of a point says; of one without, that there is none only where it is asked for. */
static void render_model(const struct report *report, size_t point, bool always,
	const struct style *style, struct buffer *out)
{
	const struct diagnosis *d = diagnosis_at(report, point);
	struct medium medium = medium_terminal(style, out);
	if (!d || (!always && !d->modelled && d->phase_count <= 1))
		return;
	json_t *parts = diagnosis_parts_json(d);
	diagnosis_put_model(&medium, parts, report->points[point]->median);
	diagnosis_put_recommendations(&medium, column_value(parts, "recommendations"));
	json_decref(parts);
}

static void render_notes(
	const struct report *report, const struct style *style, size_t most, struct buffer *out)
{
	const struct point_summary *p = report->points[report->best];
	for (size_t i = 0; i < p->note_count && i < most; i++)
		layout_labelled(style, INK_DIM, i ? "" : "notes", p->notes[i], out);
	if (p->note_count > most)
		layout_labelled(style, INK_DIM, "", "more with --verbose, or in summary.json", out);
}

static void render_bad_samples(
	const struct report *report, const struct style *style, struct buffer *out)
{
	struct buffer text = {0};
	report_bad_text(report, &text);
	if (text.data)
		layout_labelled(style, INK_WARN, "bad", text.data, out);
	buffer_release(&text);
}

static void render_checksums(
	const struct report *report, const struct style *style, struct buffer *out)
{
	const struct checksum_check *check = &report->checksum_check;
	if (check->checked > 0)
		layout_labelled(
			style, check->differ ? INK_BAD : INK_DIM, "verify", check->words, out);
}

static void render_left_out(
	const struct report *report, const struct style *style, struct buffer *out)
{
	struct buffer text = {0};
	report_left_out_text(report, &text);
	if (text.size > 0)
		layout_labelled(style, INK_WARN, "left out", text.data, out);
	buffer_release(&text);
}

static void render_contaminated(
	const struct report *report, const struct style *style, struct buffer *out)
{
	struct buffer text = {0};
	report_contaminated_text(report, &text);
	layout_labelled_buffer(style, INK_WARN, "load", &text, out);
}

static void render_read_points(
	const struct report *report, size_t point, const struct style *style, struct buffer *out)
{
	struct buffer text = {0};
	read_points_text(report, point, &text);
	if (text.size > 0)
		layout_labelled(style, INK_DIM, "reads", text.data, out);
	buffer_release(&text);
}

static void render_stages(
	const struct report *report, const struct style *style, bool verbose, struct buffer *out)
{
	struct medium medium = medium_terminal(style, out);
	const bool one = report->record->config.axis_count == 0;
	for (size_t i = 0; i < report->record->grid.points; i++) {
		const struct point_summary *p = report->points[i];
		if (!p || p->status == POINT_FAILED || (!verbose && i != report->best))
			continue;
		struct buffer title = {0};
		buffer_text(&title, "where the time went");
		if (!one) {
			buffer_text(&title, i == report->best ? " at the best point, " : ", ");
			report_settings(report, i, &title);
		}
		layout_heading(style, title.data ? title.data : "", out);
		buffer_release(&title);
		json_t *point = report_point_json(report, i);
		summary_stages(&medium, point);
		summary_totals(&medium, point);
		render_read_points(report, i, style, out);
		summary_devices(&medium, point);
		json_decref(point);
		if (verbose && !one)
			render_model(report, i, false, style, out);
	}
}

void report_terminal(
	const struct report *report, const struct style *style, bool verbose, struct buffer *out)
{
	const size_t points = report->record->grid.points;
	struct medium medium = medium_terminal(style, out);
	render_head(report, style, out);
	buffer_text(out, "\n");
	summary_points(&medium, report, POINTS_SHOWN_MAX);
	struct buffer map = {0};
	if (heatmap_render(report, style, &map)) {
		buffer_text(out, "\n");
		buffer_add(out, map.data, map.size);
	}
	out->failed = out->failed || map.failed;
	buffer_release(&map);
	if (report->best < points)
		render_stages(report, style, verbose, out);
	render_limits(report, style, out);
	buffer_text(out, "\n");
	render_predicted(report, style, out);
	if (report->best < points) {
		render_best(report, style, out);
		render_scaling(report, style, out);
		render_verdict(report, style, out);
		if (report->record->config.axis_count == 0) {
			render_model(report, report->best, true, style, out);
			buffer_text(out, "\n");
		}
		render_notes(report, style, verbose ? NOTES_MAX : NOTES_SHOWN_MAX, out);
	}
	render_contaminated(report, style, out);
	render_checksums(report, style, out);
	render_left_out(report, style, out);
	render_bad_samples(report, style, out);
	layout_labelled(style, INK_DIM, "results", report->record->folder, out);
}
