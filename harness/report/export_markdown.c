/* The report's tables and verdict as Markdown: for a pull request, a wiki, a mail. */
#include "harness/analyze/verdict.h"
#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/report/diagnosis_report.h"
#include "harness/report/export.h"
#include "harness/report/points_table.h"
#include "harness/report/stage_table.h"
#include "harness/report/table.h"

#include <math.h>
#include <string.h>

enum { POINTS_SHOWN_MAX = 1000 };

/* "- **term:** text"; text is escaped and released. */
static void add_item(struct buffer *out, const char *term, struct buffer *text)
{
	buffer_format(out, "- **%s:** ", term);
	markdown_escape(text->data ? text->data : "", out);
	buffer_text(out, "\n");
	out->failed = out->failed || text->failed;
	buffer_release(text);
}

static void export_add_fact(struct buffer *out, const char *term, const char *value)
{
	struct buffer text = {0};
	buffer_text(&text, value);
	add_item(out, term, &text);
}

static void add_node(const struct record *record, struct buffer *out)
{
	const struct fact *cpu = fact_find(&record->environment, "cpu", "model");
	struct buffer text = {0};
	buffer_format(&text, "%s, %u core%s usable",
		cpu && cpu->kind == FACT_TEXT ? cpu->text : "CPU model unknown", record->cores,
		record->cores == 1 ? "" : "s");
	add_item(out, "node", &text);
}

static void export_add_injected(const struct record *record, struct buffer *out)
{
	struct buffer text = {0};
	report_injected_text(&record->config, ", ", &text);
	if (text.size > 0)
		add_item(out, "injected", &text);
	buffer_release(&text);
}

static void export_add_head(const struct report *report, struct buffer *out)
{
	const struct record *record = report->record;
	char when[CLOCK_UTC_BYTES];
	struct buffer text = {0};
	clock_format_utc(record->started, when);
	buffer_text(out, "## ");
	markdown_escape(record->name, out);
	buffer_text(out, "\n\n");
	export_add_fact(out, "step", record->step.description);
	buffer_format(&text, "started %s, config %s, %s", when, record->config_hash,
		report_status(report));
	add_item(out, "run", &text);
	add_node(record, out);
	export_add_injected(record, out);
}

static void export_add_best(const struct report *report, struct buffer *out)
{
	const struct point_summary *p = report->points[report->best];
	const struct verdict *v = &p->verdict;
	char number[UNITS_BYTES];
	struct buffer text = {0};
	buffer_format(&text, "%s samples/s", units_format_count(p->median, number));
	if (report->record->config.axis_count > 0) {
		buffer_text(&text, " at ");
		report_settings(report, report->best, &text);
	}
	add_item(out, "best", &text);
	if (v->stage[0] && strcmp(v->stage, "none") != 0) {
		diagnosis_bottleneck(p, v->confidence, &text);
		buffer_text(&text, ".");
	} else {
		buffer_text(&text, "Inconclusive: the bottleneck is unknown.");
	}
	add_item(out, "verdict", &text);
	for (size_t i = 0; i < v->evidence_count; i++)
		export_add_fact(out, "evidence", v->evidence[i]);
	if (v->advice[0])
		export_add_fact(out, "advice", v->advice);
}

static void export_add_points(const struct report *report, struct buffer *out)
{
	struct points_table points;
	points_table_open(&points, report, true, POINTS_SHOWN_MAX);
	buffer_text(out, "\n### Points\n\n");
	table_markdown(&points.table, out);
	table_close(&points.table);
	if (report->record->grid.points > POINTS_SHOWN_MAX)
		buffer_format(out, "\nThe first %d of %zu points; points.csv has all of them.\n",
			POINTS_SHOWN_MAX, report->record->grid.points);
}

static void export_add_stages(const struct report *report, struct buffer *out)
{
	struct table stages;
	stage_table_open(&stages, report->points[report->best]);
	buffer_text(out, "\n### Where the time went at the best point\n\n");
	table_markdown(&stages, out);
	table_close(&stages);
}

static void export_add_limits(const struct record *record, struct buffer *out)
{
	static const struct table_column columns[] = {{.head = "stage", .left = true},
		{.head = "samples/s"}, {.head = "how", .left = true}};
	char number[UNITS_BYTES];
	struct table table;
	if (record->limit_count == 0)
		return;
	table_open(&table, columns, sizeof columns / sizeof *columns);
	for (size_t i = 0; i < record->limit_count; i++) {
		const struct stage_limit *limit = &record->limits[i];
		table_add(&table, INK_PLAIN, "%s", limit->stage);
		table_add(&table, INK_PLAIN, "%s",
			isfinite(limit->capacity) ? units_format_count(limit->capacity, number)
						  : "-");
		table_add(&table, INK_PLAIN, "%s", limit->how);
	}
	buffer_text(out, "\n### Limits of this node, each stage alone\n\n");
	table_markdown(&table, out);
	table_close(&table);
}

static int write_markdown(const struct report *report, struct buffer *out, struct error *err)
{
	(void)err;
	const bool any = report->best < report->record->grid.points;
	export_add_head(report, out);
	if (any)
		export_add_best(report, out);
	export_add_points(report, out);
	if (any)
		export_add_stages(report, out);
	export_add_limits(report->record, out);
	return 0;
}

const struct export_ops export_markdown = {
	.name = "markdown",
	.summary = "the report's tables and verdict, as GitHub shows them",
	.extension = ".md",
	.text = write_markdown,
};
