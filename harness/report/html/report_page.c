/* report.html from top to bottom.  Everything comes from the saved result, so the page of a run and the one made of it
 * later are the same. */
#include "harness/report/html/report_page.h"

#include "harness/analyze/experiment.h"
#include "harness/base/array.h"
#include "harness/base/files.h"
#include "harness/record/fields.h"
#include "harness/report/diagnosis_report.h"
#include "harness/report/html/chart.h"
#include "harness/report/html/sections.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TITLE_BYTES = RECORD_NAME_BYTES + 32 };

#define CHART(id, title, part) {#id, title, CHART_##part, chart_##id},
#define CHART_FILE(id)
const struct chart_kind chart_kinds[] = {
#include "harness/report/html/charts.def"
	{NULL, NULL, CHART_MORE, NULL},
};
#undef CHART
#undef CHART_FILE

/* What a chart is made from, and who owns it. */
struct page_input {
	struct chart_input input;
	struct measurement *m;
	struct traces traces;
	struct verification *verification;
};

static void report_page_release(struct page_input *all)
{
	if (all->m)
		measurement_release(all->m);
	free(all->m);
	traces_release(&all->traces);
	free(all->verification);
}

static bool report_page_counts(const struct record_entry *entry, size_t point)
{
	return entry->point == point &&
	       (entry->status == MEASUREMENT_OK || entry->status == MEASUREMENT_UNSTEADY);
}

/* Moves the repetition into all->m when its throughput is nearer to the point's median than what is there. */
static int report_page_consider(
	struct page_input *all, size_t entry, bool *taken, struct error *err)
{
	const double median = all->input.report->points[all->input.point]->median;
	struct measurement *m = calloc(1, sizeof *m);
	if (!m)
		return error_set(err, -ENOMEM, "out of memory for the report");
	const int code = record_load(all->input.report->record, entry, m, err);
	*taken = !code &&
		 (!all->m || fabs(m->throughput - median) < fabs(all->m->throughput - median));
	if (*taken) {
		struct measurement *other = all->m;
		all->m = m;
		m = other;
	}
	if (m)
		measurement_release(m);
	free(m);
	return code;
}

/* The repetition that stands for the point, with its traces if there are any. */
static int report_page_load_repetition(struct page_input *all, struct error *err)
{
	const struct record *record = all->input.report->record;
	size_t chosen = record->entry_count;
	struct error why;
	int code = 0;
	for (size_t i = 0; i < record->entry_count && !code; i++) {
		bool taken = false;
		if (report_page_counts(&record->entries[i], all->input.point))
			code = report_page_consider(all, i, &taken, err);
		chosen = taken ? i : chosen;
	}
	all->input.m = all->m;
	if (!code && all->m && record_load_traces(record, chosen, &all->traces, &why) == 0)
		all->input.traces = &all->traces;
	return code;
}

/* Experiments that cannot be read are as if there were none: the result stands without them. */
static int report_page_load_verification(struct page_input *all, struct error *err)
{
	struct error why;
	const struct record *record = all->input.report->record;
	all->verification = calloc(1, sizeof *all->verification);
	if (!all->verification)
		return error_set(err, -ENOMEM, "out of memory for the report");
	if (verification_load(record->folder, all->input.point, all->verification, &why) == 1)
		all->input.verification = all->verification;
	return 0;
}

static int report_page_load(
	struct page_input *all, const struct report *report, size_t point, struct error *err)
{
	const size_t points = report->record->grid.points;
	*all = (struct page_input){
		.input = {.report = report, .point = point < points ? point : report->best}};
	const struct point_summary *p =
		all->input.point < points ? report->points[all->input.point] : NULL;
	if (!p) {
		all->input.point = points;
		return 0;
	}
	int code = report_page_load_repetition(all, err);
	return code ? code : report_page_load_verification(all, err);
}

/* --- the page's order ---------------------------------------------------------------------------- */

/* A chart with nothing to draw is left out; `left_out` says why. */
static int report_page_put_chart(const struct chart_input *input, const struct chart_kind *kind,
	struct page *page, json_t *left_out)
{
	struct chart chart = {0};
	const int code = kind->fill(input, &chart);
	(void)snprintf(chart.id, sizeof chart.id, "%s", kind->id);
	(void)snprintf(chart.title, sizeof chart.title, "%s", kind->title);
	if (!code && !chart.drawing) {
		char text[CHART_TITLE_BYTES + CHART_WHY_BYTES];
		(void)snprintf(text, sizeof text, "%s: %s", kind->title, chart.why_not);
		(void)json_array_append_new(left_out, fields_text(text));
	} else if (!code && kind->part == CHART_MORE) {
		page_more_begin(page, NULL, kind->title, chart.finding.data);
		page_chart(page, &chart);
		page_fold_end(page);
	} else if (!code) {
		page_chart(page, &chart);
	}
	chart_release(&chart);
	return code;
}

static int report_page_put_charts(
	const struct chart_input *input, enum chart_part part, struct page *page, json_t *left_out)
{
	int code = 0;
	page_section_end(page);
	for (size_t i = 0; chart_kinds[i].id && !code; i++)
		if (chart_kinds[i].part == part)
			code = report_page_put_chart(input, &chart_kinds[i], page, left_out);
	return code;
}

static void report_page_put_left_out(const json_t *left_out, struct page *page)
{
	size_t i;
	const json_t *text;
	if (json_array_size(left_out) == 0)
		return;
	page_more_begin(page, NULL, "Charts that are left out", NULL);
	page_list_begin(page, false);
	json_array_foreach(left_out, i, text) page_item(page, json_string_value(text));
	page_list_end(page);
	page_fold_end(page);
}

/* A point takes some 2 KB of the page, and its time line, whose windows stand in the chart and in its table, 10 more. */
enum { POINTS_MOST = 1000, POINTS_WITH_TIMELINE_MOST = 32 };

static int report_page_put_point(
	const struct report *report, size_t point, bool timeline, struct page *page)
{
	struct page_input all;
	struct chart chart = {0};
	struct error err = {0};
	struct buffer text = {0};
	all = (struct page_input){.input = {.report = report, .point = point}};
	/* One that cannot be read costs its time line, and not the page. */
	const bool lost = timeline && report_page_load_repetition(&all, &err) != 0;
	if (lost)
		all.input.m = NULL;
	section_point(&all.input, page);
	int code = timeline && !lost ? chart_timeline(&all.input, &chart) : 0;
	if (lost) {
		buffer_format(&text, "No time line: %s", err.text);
		page_paragraph(page, text.data ? text.data : "No time line");
		buffer_release(&text);
	}
	if (!code && chart.drawing) {
		(void)snprintf(chart.id, sizeof chart.id, "timeline-%zu", point);
		(void)snprintf(chart.title, sizeof chart.title, "Over time");
		page_chart(page, &chart);
	}
	if (!code) {
		buffer_text(&text, "mlbench report ");
		shell_word(report->record->folder, &text);
		buffer_format(&text, " --point %zu --out point-%zu.html", point, point);
		page_paragraph(page, "All charts of this point, on a page of its own:");
		page_code(page, text.data ? text.data : "");
		page_point_end(page);
	}
	buffer_release(&text);
	chart_release(&chart);
	report_page_release(&all);
	return code;
}

/* Those that failed have a section last. */
static double report_page_rate(const struct point_summary *p)
{
	return fmax(p->median, 0);
}

/* What the slowest point that has a section gives, and how many of those that give as much have one. */
static double report_page_slowest(const struct report *report, size_t known, size_t *ties)
{
	double *rates = known > POINTS_MOST ? calloc(known, sizeof *rates) : NULL;
	double slowest = 0;
	size_t count = 0;
	*ties = known;
	for (size_t i = 0; rates && i < report->record->grid.points; i++)
		if (report->points[i])
			rates[count++] = report_page_rate(report->points[i]);
	if (rates) {
		sort_doubles(rates, count);
		slowest = rates[count - POINTS_MOST];
		for (*ties = 0;
			*ties < POINTS_MOST && rates[count - POINTS_MOST + *ties] == slowest;)
			++*ties;
	}
	free(rates);
	return slowest;
}

/* Where a click on a mark leads. */
static int report_page_put_points(const struct report *report, struct page *page)
{
	const size_t points = report->record->grid.points;
	size_t known = 0;
	int code = 0;
	for (size_t i = 0; i < points; i++)
		known += report->points[i] != NULL;
	if (report->record->config.axis_count == 0 || known == 0)
		return 0;
	size_t ties;
	const double slowest = report_page_slowest(report, known, &ties);
	const bool all = known <= POINTS_MOST;
	page_more_begin(page, "points", all ? "Every point" : "The fastest points",
		known <= POINTS_WITH_TIMELINE_MOST
			? "verdict, evidence, stages and time line of each"
			: "verdict, evidence and stages of each");
	if (!all)
		page_paragraph(page,
			"Slower points have their numbers in points.csv, and pages of their own: mlbench report RESULT --point N.");
	for (size_t i = 0; i < points && !code; i++) {
		const struct point_summary *p = report->points[i];
		if (p && (report_page_rate(p) > slowest ||
				 (report_page_rate(p) == slowest && ties > 0 && ties-- > 0)))
			code = report_page_put_point(
				report, i, known <= POINTS_WITH_TIMELINE_MOST, page);
	}
	page_fold_end(page);
	return code;
}

/* In the order of a reader's questions: what was found, what to do, how busy the stages are, why to believe it, how it
 * depends on the settings; the rest is folded. */
static int report_page_put_all(const struct chart_input *input, struct page *page)
{
	json_t *left_out = json_array();
	section_advice(input, page);
	section_head(input, page);
	section_alongside(input, page);
	int code = report_page_put_charts(input, CHART_UTILISATION, page, left_out);
	if (!code)
		code = report_page_put_charts(input, CHART_EVIDENCE, page, left_out);
	section_ranks(input, page);
	section_evidence(input, page);
	if (!code)
		code = report_page_put_charts(input, CHART_MAP, page, left_out);
	section_storage(input, page);
	if (!code)
		code = report_page_put_points(input->report, page);
	if (!code)
		code = report_page_put_charts(input, CHART_MORE, page, left_out);
	section_totals(input, page);
	section_recordings(input, page);
	section_notes(input, page);
	section_reproduce(input, page);
	section_context(input, page);
	report_page_put_left_out(left_out, page);
	json_decref(left_out);
	return code;
}

static int report_page_put(const struct chart_input *input, struct buffer *out, struct error *err)
{
	char title[TITLE_BYTES];
	struct buffer lead = {0};
	struct buffer facts = {0};
	(void)snprintf(title, sizeof title, "%s, measured by mlbench", input->report->record->name);
	section_lead(input, &lead);
	section_facts(input->report->record, &facts);
	struct page *page = page_begin(title, lead.data);
	if (page && facts.data)
		page_facts(page, facts.data);
	buffer_release(&facts);
	buffer_release(&lead);
	if (page && report_page_put_all(input, page)) {
		page_release(page);
		return error_set(err, -ENOMEM, "out of memory for the report");
	}
	return page_end(page, out, err);
}

/* The whole page; point: as in struct chart_input, grid.points for the best one. */
static int report_page(
	const struct report *report, size_t point, struct buffer *out, struct error *err)
{
	struct page_input all;
	int code = report_page_load(&all, report, point, err);
	if (!code)
		code = report_page_put(&all.input, out, err);
	report_page_release(&all);
	return code;
}

int report_page_write(
	const struct report *report, size_t point, const char *path, struct error *err)
{
	struct buffer out = {0};
	int code = report_page(report, point, &out, err);
	if (!code)
		code = files_write_atomic(path, out.data, out.size, err);
	buffer_release(&out);
	return code;
}
