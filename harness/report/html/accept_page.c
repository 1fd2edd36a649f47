/* accept.html: an acceptance result for people who look.  What to do first, then every figure's distance to its limit, the
 * checks, what a burn looked like over its time, and folded below: all findings, the node's data sheet, and by what it was
 * judged. */
#include "harness/report/html/accept_page.h"

#include "harness/base/units.h"
#include "harness/record/record.h"
#include "harness/report/accept_document.h"
#include "harness/report/columns.h"
#include "harness/report/html/sections.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PAGE_TROUBLES_MAX = 20, PAGE_FINDINGS_MAX = 2000, PAGE_NOTES_MAX = 200 };

/* "mlbench node plan, tier quick, 2026-11-26T03:10:00Z, 48.2 s": under the title of either. */
static void accept_page_facts(const json_t *document, struct buffer *out)
{
	char took[UNITS_BYTES];
	buffer_format(out, "Plan %s, tier %s. Started %s, took %s.",
		column_text(document, "judged_by.plan.name"), column_text(document, "tier"),
		column_text(document, "started"),
		units_format_duration(column_number(document, "seconds") * 1e9, took));
}

/* --- what to do ------------------------------------------------------------------------------- */

static void accept_page_counts(struct page *page, const json_t *document)
{
	static const struct {
		enum accept_verdict verdict;
		const char *unit, *text;
	} figures[] = {
		{VERDICT_FAIL, "failed", "Outside a limit of the plan."},
		{VERDICT_ERROR, "not judged", "A check that gave no answer is no pass."},
		{VERDICT_WARN, "with a warning", "Fit for use, with something to look at."},
		{VERDICT_SKIP, "skipped", "The plan allows it."},
		{VERDICT_PASS, "passed", "Inside every limit."},
	};
	page_figures_begin(page);
	for (size_t i = 0; i < PARTS_COUNT(figures); i++) {
		const double count = column_number(json_object_get(document, "counts"),
			accept_verdict_name(figures[i].verdict));
		char number[UNITS_BYTES];
		if (count > 0)
			page_figure(page, units_format_count(count, number), figures[i].unit,
				figures[i].text);
	}
	page_figures_end(page);
	if (!json_is_true(json_object_get(document, "complete")))
		page_notice(page, "Not complete.", "Some checks did not run to their end.");
}

static void accept_page_trouble(struct page *page, const json_t *row)
{
	const json_t *finding = json_object_get(row, "finding");
	const char *words = accept_action_words(column_text(row, "action"));
	const char *remedy = column_text(row, "remedy");
	const size_t others = json_array_size(json_object_get(row, "places"));
	struct buffer what = {0};
	struct buffer text = {0};
	buffer_format(&what, "%s%s", column_text(row, "check"), finding ? ": " : "");
	if (finding)
		accept_add_subject(&what, finding);
	accept_add_sentence(&text, column_text(row, "sentence"));
	if (others > 1)
		buffer_format(&text, " The same at %zu other place%s.", others - 1,
			others == 2 ? "" : "s");
	if (*words || *remedy)
		buffer_format(
			&text, " To do: %s%s%s.", words, *words && *remedy ? "; " : "", remedy);
	page_action(page, what.data ? what.data : "", column_text(row, "verdict"),
		text.data ? text.data : "");
	if (*column_text(row, "repeat"))
		page_code(page, column_text(row, "repeat"));
	buffer_release(&what);
	buffer_release(&text);
}

static void accept_page_troubles(struct page *page, const json_t *rows)
{
	size_t told = 0;
	size_t i;
	const json_t *row;
	json_array_foreach(rows, i, row)
	{
		const enum accept_verdict verdict = accept_verdict_in(row);
		if (verdict == VERDICT_PASS || verdict == VERDICT_SKIP)
			continue;
		if (told == 0)
			page_heading(page, 2, "do", "What to do");
		if (told++ < PAGE_TROUBLES_MAX)
			accept_page_trouble(page, row);
	}
	if (told > PAGE_TROUBLES_MAX)
		page_paragraph(page, "And more: the table of findings has all of them.");
}

/* --- checks and findings ---------------------------------------------------------------------- */

static void accept_page_subject(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	(void)column;
	accept_add_subject(out, row);
}

static void accept_page_measured(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	char value[ACCEPT_VALUE_BYTES];
	(void)column;
	buffer_text(out, accept_value(row, "measured", value));
}

/* "120 samples/s to 125 samples/s" */
static void accept_page_interval(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	char low[ACCEPT_VALUE_BYTES];
	char high[ACCEPT_VALUE_BYTES];
	(void)column;
	accept_value(row, "low", low);
	accept_value(row, "high", high);
	if (*low && *high && strcmp(low, high) != 0)
		buffer_format(out, "%s to %s", low, high);
}

static void accept_page_limit(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	(void)column;
	accept_add_limit(out, row);
}

static void accept_page_checks(struct page *page, const json_t *document)
{
	static const struct table_column columns[] = {
		{.head = "verdict", .left = true, .path = "verdict"},
		{.head = "check", .left = true, .path = "check"},
		{.head = "kind", .left = true, .path = "kind"},
		{.head = "result", .left = true, .path = "sentence"},
		{.head = "took", .path = "seconds", .unit = COLUMN_SECONDS},
	};
	page_heading(page, 2, "checks", "Checks");
	page_rows(page, columns, PARTS_COUNT(columns), json_object_get(document, "checks"),
		"Every check of the plan in this tier");
}

/* The findings of all checks in one list, with their check. */
static json_t *accept_page_all(const json_t *document)
{
	json_t *all = json_array();
	size_t i;
	size_t at;
	const json_t *check;
	json_t *finding;
	json_array_foreach(json_object_get(document, "checks"), i, check)
		json_array_foreach(json_object_get(check, "findings"), at, finding)
	{
		json_t *row = json_copy(finding);
		if (json_array_size(all) >= PAGE_FINDINGS_MAX || !row ||
			json_object_set(row, "check", json_object_get(check, "check")))
			json_decref(row);
		else
			parts_append(&all, row);
	}
	return all;
}

static int accept_page_findings(struct page *page, const json_t *document)
{
	static const struct table_column columns[] = {
		{.head = "verdict", .left = true, .path = "verdict"},
		{.head = "check", .left = true, .path = "check"},
		{.head = "figure", .left = true, .text_of = accept_page_subject},
		{.head = "level", .left = true, .path = "level"},
		{.head = "measured", .left = true, .text_of = accept_page_measured},
		{.head = "interval", .left = true, .text_of = accept_page_interval},
		{.head = "repetitions", .path = "repetitions", .unit = COLUMN_COUNT},
		{.head = "asked", .left = true, .path = "asked"},
		{.head = "limit", .left = true, .text_of = accept_page_limit},
	};
	json_t *all = accept_page_all(document);
	if (!all)
		return -ENOMEM;
	page_more_begin(page, "findings", "All findings",
		"Every criterion at every place, those that hold too");
	if (json_array_size(all) >= PAGE_FINDINGS_MAX)
		page_paragraph(page, "The first 2,000; accept.json has all.");
	page_rows(page, columns, PARTS_COUNT(columns), all, "Measured, and asked");
	page_fold_end(page);
	json_decref(all);
	return 0;
}

static int accept_page_charts(struct page *page, const json_t *document, const json_t *figures)
{
	struct chart chart = {0};
	size_t i;
	const json_t *line;
	int code = accept_chart_limits(figures, &chart);
	page_section_end(page);
	if (!code)
		page_chart(page, &chart);
	chart_release(&chart);
	accept_page_checks(page, document);
	json_array_foreach(json_object_get(document, "measured"), i, line)
	{
		if (code || json_array_size(json_object_get(line, "series")) == 0)
			continue;
		code = accept_chart_time(line, &chart);
		(void)snprintf(chart.id, sizeof chart.id, "time-%zu", i);
		page_section_end(page);
		if (!code)
			page_chart(page, &chart);
		chart_release(&chart);
	}
	return code;
}

/* --- the node's data sheet -------------------------------------------------------------------- */

static void accept_page_environment(struct page *page, const json_t *document)
{
	struct fact_list facts = {0};
	record_environment_from_json(&facts, json_object_get(document, "environment"),
		json_object_get(document, "environment_units"));
	section_environment(&facts, page);
	fact_list_release(&facts);
}

static void accept_page_fact(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	char value[ACCEPT_VALUE_BYTES];
	const char *why = column_text(row, "why");
	(void)column;
	if (*why)
		buffer_format(out, "not available: %s", why);
	else
		buffer_text(out, accept_value(row, "value", value));
}

/* What the checks found out besides numbers that repeat, and what they could not. */
static void accept_page_found(struct page *page, const json_t *line)
{
	static const struct table_column columns[] = {
		{.head = "fact", .left = true, .path = "figure"},
		{.head = "place", .left = true, .path = "place"},
		{.head = "value", .left = true, .text_of = accept_page_fact},
	};
	json_t *facts = json_copy(json_object_get(line, "facts"));
	(void)json_array_extend(facts, json_object_get(line, "missing"));
	if (json_array_size(facts) > 0)
		page_rows(page, columns, PARTS_COUNT(columns), facts, column_text(line, "check"));
	json_decref(facts);
}

static void accept_page_sheet(struct page *page, const json_t *document)
{
	size_t i;
	const json_t *line;
	page_more_begin(page, "node", "Data sheet of the node", accept_node(document));
	accept_page_environment(page, document);
	json_array_foreach(json_object_get(document, "measured"), i, line)
		accept_page_found(page, line);
	page_fold_end(page);
}

/* --- by what it was judged -------------------------------------------------------------------- */

static void accept_page_rules(struct page *page, const json_t *document)
{
	const json_t *baseline = column_value(document, "judged_by.baseline");
	const json_t *errors = json_object_get(document, "errors");
	char text[400];
	page_more_begin(page, "rules", "By what it was judged",
		column_text(document, "judged_by.plan.file"));
	page_terms_begin(page);
	page_term(page, "plan", column_text(document, "judged_by.plan.file"));
	page_term(page, "hash of the plan", column_text(document, "judged_by.plan.hash"));
	page_term(page, "program", column_text(document, "program"));
	if (json_is_object(baseline))
		(void)snprintf(text, sizeof text,
			"%.200s: %.0f nodes, %.0f repetitions, made %.40s",
			column_text(baseline, "file"), column_number(baseline, "nodes"),
			column_number(baseline, "repetitions"), column_text(baseline, "made"));
	else
		(void)snprintf(text, sizeof text, "none");
	page_term(page, "baseline", text);
	if (isfinite(column_number(errors, "false_fail"))) {
		(void)snprintf(text, sizeof text,
			"A figure exactly at its limit is passed wrongly in at most %s %% of runs, and a node all "
			"of whose figures are exactly at their limits is failed wrongly in at most %s %%. Where "
			"repetitions show neither, more are taken, up to a bound; then the check is an ERROR.",
			UNITS_PLAIN(100 * column_number(errors, "false_pass"), 3),
			UNITS_PLAIN(100 * column_number(errors, "false_fail"), 3));
		page_term(page, "error rates", text);
	}
	page_terms_end(page);
	page_code(page, column_text(document, "judged_by.plan.text"));
	page_fold_end(page);
}

static void accept_page_notes(struct page *page, const json_t *document)
{
	size_t i;
	size_t at;
	size_t told = 0;
	const json_t *line;
	const json_t *note;
	json_array_foreach(json_object_get(document, "measured"), i, line)
		json_array_foreach(json_object_get(line, "notes"), at, note)
	{
		struct buffer text = {0};
		if (told == 0) {
			page_more_begin(page, "notes", "Notes of the measurement", NULL);
			page_list_begin(page, false);
		}
		buffer_format(&text, "%s: %s", column_text(line, "check"), json_string_value(note));
		if (told++ < PAGE_NOTES_MAX)
			page_item(page, text.data ? text.data : "");
		buffer_release(&text);
	}
	if (told > 0) {
		page_list_end(page);
		page_fold_end(page);
	}
}

static int accept_page_body(
	struct page *page, const json_t *document, const json_t *rows, const json_t *figures)
{
	accept_page_counts(page, document);
	accept_page_troubles(page, rows);
	int code = accept_page_charts(page, document, figures);
	page_section_end(page);
	if (!code)
		code = accept_page_findings(page, document);
	accept_page_sheet(page, document);
	accept_page_rules(page, document);
	accept_page_notes(page, document);
	return code;
}

int accept_write_page(const json_t *document, const struct accept_view *view, struct buffer *out,
	struct error *err)
{
	struct buffer headline = {0};
	struct buffer facts = {0};
	json_t *rows = accept_rows(document);
	json_t *figures = accept_figures(document);
	(void)view;
	accept_headline(document, rows, &headline);
	accept_page_facts(document, &facts);
	const bool made = rows && figures && !headline.failed && !facts.failed;
	struct page *page = made ? page_begin("mlbench accept", headline.data) : NULL;
	int code = page ? 0 : -ENOMEM;
	if (page) {
		page_facts(page, facts.data);
		code = accept_page_body(page, document, rows, figures);
	}
	buffer_release(&headline);
	buffer_release(&facts);
	json_decref(rows);
	json_decref(figures);
	if (!code)
		return page_end(page, out, err);
	page_release(page);
	return error_set(err, code, "out of memory for the page");
}
