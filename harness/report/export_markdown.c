/* The report's tables and verdict as Markdown: for a pull request, a wiki, a mail. */
#include "harness/analyze/limit_kind.h"
#include "harness/base/clock.h"
#include "harness/base/units.h"
#include "harness/report/diagnosis_report.h"
#include "harness/report/export.h"
#include "harness/report/summary_tables.h"

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

static int write_markdown(const struct report *report, struct buffer *out, struct error *err)
{
	(void)err;
	const bool any = report->best < report->record->grid.points;
	struct medium medium = medium_markdown(out);
	export_add_head(report, out);
	if (any)
		export_add_best(report, out);
	medium_heading(&medium, "points");
	summary_points(&medium, report, POINTS_SHOWN_MAX);
	if (any) {
		json_t *point = report_point_json(report, report->best);
		medium_heading(&medium, "where the time went at the best point");
		summary_stages(&medium, point);
		json_decref(point);
	}
	if (report->record->limit_count > 0) {
		json_t *limits = report_limits_json(report->record);
		medium_heading(&medium, "limits of this node, each stage alone");
		summary_limits(&medium, limits);
		json_decref(limits);
	}
	return 0;
}

const struct export_ops export_markdown = {
	.name = "markdown",
	.summary = "the report's tables and verdict, as GitHub shows them",
	.extension = ".md",
	.text = write_markdown,
};
