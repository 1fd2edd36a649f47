/* report.html from top to bottom.  Everything comes from the saved result, so the page of a run and the one made of it
 * later are the same. */
#include "harness/report/html/report_page.h"

#include "harness/analyze/experiment.h"
#include "harness/base/files.h"
#include "harness/report/diagnosis_report.h"
#include "harness/report/html/chart.h"
#include "harness/report/html/sections.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TITLE_BYTES = RECORD_NAME_BYTES + 32 };

/* What a chart is made from, and who owns it. */
struct page_input {
	struct chart_input input;
	struct measurement *m;
	struct traces traces;
	struct verification *verification;
};

static void release(struct page_input *all)
{
	if (all->m)
		measurement_release(all->m);
	free(all->m);
	traces_release(&all->traces);
	free(all->verification);
}

static bool counts(const struct record_entry *entry, size_t point)
{
	return entry->point == point &&
	       (entry->status == MEASUREMENT_OK || entry->status == MEASUREMENT_UNSTEADY);
}

/* Moves the repetition into all->m when its throughput is nearer to the point's median than what is there. */
static int consider(struct page_input *all, size_t entry, bool *taken, struct error *err)
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
static int load_repetition(struct page_input *all, struct error *err)
{
	const struct record *record = all->input.report->record;
	size_t chosen = record->entry_count;
	struct error why;
	int code = 0;
	for (size_t i = 0; i < record->entry_count && !code; i++) {
		bool taken = false;
		if (counts(&record->entries[i], all->input.point))
			code = consider(all, i, &taken, err);
		chosen = taken ? i : chosen;
	}
	all->input.m = all->m;
	if (!code && all->m && record_load_traces(record, chosen, &all->traces, &why) == 0)
		all->input.traces = &all->traces;
	return code;
}

/* Experiments that cannot be read are as if there were none: the result stands without them. */
static int load_verification(struct page_input *all, struct error *err)
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

static int load(
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
	int code = load_repetition(all, err);
	return code ? code : load_verification(all, err);
}

static int put_chart(
	const struct chart_input *input, const struct chart_kind *kind, struct page *page)
{
	struct chart chart = {0};
	const int code = kind->fill(input, &chart);
	if (!chart.id[0])
		(void)snprintf(chart.id, sizeof chart.id, "%s", kind->id);
	if (!chart.title[0])
		(void)snprintf(chart.title, sizeof chart.title, "%s", kind->title);
	if (!code)
		page_chart(page, &chart);
	chart_release(&chart);
	return code;
}

static int put_all(const struct chart_input *input, struct page *page)
{
	int code = 0;
	section_head(input, page);
	for (size_t i = 0; chart_kinds[i].id && !code; i++)
		code = put_chart(input, &chart_kinds[i], page);
	section_advice(input, page);
	section_evidence(input, page);
	section_recordings(input, page);
	section_notes(input, page);
	section_reproduce(input, page);
	section_context(input, page);
	return code;
}

static int write_page(const struct chart_input *input, struct buffer *out, struct error *err)
{
	char title[TITLE_BYTES];
	struct buffer lead = {0};
	(void)snprintf(title, sizeof title, "%s, measured by mlbench", input->report->record->name);
	section_lead(input, &lead);
	struct page *page = page_begin(title, lead.data);
	buffer_release(&lead);
	if (page && put_all(input, page)) {
		page_release(page);
		return error_set(err, -ENOMEM, "out of memory for the report");
	}
	return page_end(page, out, err);
}

int report_page(const struct report *report, size_t point, struct buffer *out, struct error *err)
{
	struct page_input all;
	int code = load(&all, report, point, err);
	if (!code)
		code = write_page(&all.input, out, err);
	release(&all);
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
