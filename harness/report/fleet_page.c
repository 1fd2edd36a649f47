/* A fleet as a page: the verdict, the nodes, a strip of all nodes for each metric, and what is to be said of each node. */
#include "harness/accept/result.h"
#include "harness/base/array.h"
#include "harness/base/hash.h"
#include "harness/record/fields.h"
#include "harness/report/fleet_report.h"
#include "harness/report/html/chart.h"
#include "harness/report/html/palette.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	CHARTED_VALUES_MOST =
		12000, /* dots of all charts together: a browser draws them in a second or two */
	CHARTS_LEAST = 4,
	DETAILED_NODES_MOST = 200,
	TIP_BYTES = 160,
};

/* --- links ------------------------------------------------------------------------------------ */

/* What of an address is itself. */
static bool is_plain_in_address(char c)
{
	return isalnum((unsigned char)c) || strchr("/._-~", c) != NULL;
}

static void add_address(const char *path, struct buffer *out)
{
	for (; *path; path++)
		if (is_plain_in_address(*path))
			buffer_add(out, path, 1);
		else
			buffer_format(out, "%%%02X", (unsigned)(unsigned char)*path);
}

/* From a folder to a file, both there: "../results/node/accept.html". */
static bool relative_address(const char *folder, const char *file, struct buffer *out)
{
	char from[PATH_MAX];
	char to[PATH_MAX];
	size_t shared = 0;
	if (!realpath(*folder ? folder : ".", from) || !realpath(file, to))
		return false;
	for (size_t i = 0; from[i] == to[i] || (!from[i] && to[i] == '/'); i++) {
		if (to[i] == '/' || !from[i])
			shared = i + 1;
		if (!from[i] || !to[i])
			break;
	}
	for (const char *at = from + (shared < strlen(from) ? shared : strlen(from)); *at;) {
		buffer_text(out, "../");
		at += strcspn(at, "/");
		at += *at == '/';
	}
	add_address(to + shared, out);
	return true;
}

static void link_to_node(
	struct page *page, const char *folder, const json_t *node, const char *text)
{
	const char *file = column_text(node, "page");
	struct buffer address = {0};
	if (*file && relative_address(folder, file, &address) && !address.failed)
		page_link(page, address.data, text);
	buffer_release(&address);
}

/* --- strips ----------------------------------------------------------------------------------- */

static const struct page_column strip_columns[] = {{"node", "node", PAGE_TEXT},
	{"value", "value", PAGE_REAL}, {"low", "low (99 %)", PAGE_REAL},
	{"high", "high (99 %)", PAGE_REAL}, {"change", "from the median", PAGE_SHARE},
	{"z", "deviations", PAGE_FRACTION}, {"place", "place", PAGE_TEXT},
	{"state", "state", PAGE_TEXT}};

/* Where a node's dot stands, across: the same in each strip. */
static double jitter_of(const char *node)
{
	enum { STEPS = 997 };
	return (double)(hash_bytes(node, strlen(node), 0) % STEPS) / STEPS;
}

enum { STRIP_LIKE, STRIP_OUTLIER, STRIP_BAD, STRIP_STATES };
static const struct chart_ink strip_states[STRIP_STATES] = {
	[STRIP_LIKE] = {"like the others", PALETTE_WORKING, NULL},
	[STRIP_OUTLIER] = {"outlier", PALETTE_BINDS, NULL},
	[STRIP_BAD] = {"FAIL or ERROR", PALETTE_OTHER, NULL},
};

static const char *state_of(const json_t *value, const json_t *dot)
{
	if (json_is_true(json_object_get(value, "outlier")))
		return strip_states[STRIP_OUTLIER].name;
	return strip_states[json_is_true(json_object_get(dot, "bad")) ? STRIP_BAD : STRIP_LIKE]
		.name;
}

/* Times are drawn in ms, everything else in its base unit. */
static double strip_scale(const json_t *metric)
{
	return strcmp(column_text(metric, "unit"), figure_unit_name(FIGURE_NS)) == 0 ? 1e-6 : 1;
}

static json_t *strip_rows(const json_t *metric, const json_t *dots)
{
	json_t *rows = json_array();
	size_t i;
	const json_t *value;
	const double scale = strip_scale(metric);
	const double median = scale * column_number(metric, "median");
	json_array_foreach(json_object_get(metric, "values"), i, value)
	{
		const double its = scale * column_number(value, "value");
		json_t *dot = json_object_get(dots, column_text(value, "node"));
		json_t *link = json_object_get(dot, "link");
		parts_append(&rows,
			json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:O}", "node",
				parts_text(column_text(value, "node")), "value", parts_number(its),
				"low", parts_number(scale * column_number(value, "low")), "high",
				parts_number(scale * column_number(value, "high")), "change",
				parts_number(median != 0 ? its / median - 1 : (double)NAN), "z",
				parts_number(column_number(value, "z")), "place",
				*column_text(value, "place")
					? parts_text(column_text(value, "place"))
					: json_null(),
				"state", state_of(value, dot), "jitter",
				parts_number(jitter_of(column_text(value, "node"))), "link",
				link ? link : json_null()));
	}
	return rows;
}

static json_t *strip_levels(const json_t *metric)
{
	json_t *levels = json_array();
	const double scale = strip_scale(metric);
	const double median = scale * column_number(metric, "median");
	const double apart =
		scale * column_number(metric, "limit_z") * column_number(metric, "deviation");
	parts_append(
		&levels, json_pack("{s:o, s:s}", "at", parts_number(median), "what", "median"));
	for (int side = -1; side <= 1 && isfinite(apart); side += 2)
		parts_append(
			&levels, json_pack("{s:o, s:s}", "at", parts_number(median + side * apart),
					 "what", "limit"));
	return levels;
}

static void strip_finding(const json_t *metric, struct buffer *out)
{
	size_t i;
	const json_t *value;
	const size_t outliers = (size_t)column_number(metric, "outliers");
	size_t at = 0;
	buffer_text(out, column_text(metric, "name"));
	buffer_text(out, outliers ? ": outliers: " : "");
	json_array_foreach(json_object_get(metric, "values"), i, value)
	{
		if (json_is_true(json_object_get(value, "outlier")))
			parts_listed(out, at++, outliers, column_text(value, "node"));
	}
}

static int add_strip(struct page *page, const json_t *metric, const json_t *dots, size_t number)
{
	struct chart chart = {.table = {.columns = strip_columns,
				      .column_count = COUNT(strip_columns),
				      .rows = strip_rows(metric, dots)}};
	const char *unit = column_text(metric, "unit");
	(void)snprintf(chart.id, sizeof chart.id, "metric-%zu", number);
	(void)snprintf(chart.title, sizeof chart.title, "%s", column_text(metric, "name"));
	strip_finding(metric, &chart.finding);
	if (column_number(metric, "nodes") < 5)
		buffer_text(&chart.text, "Fewer than 5 nodes: none can be told from chance.");
	chart_open(&chart, "strip");
	chart_param(&chart, "x_title", json_string(strip_scale(metric) < 1 ? "ms" : unit));
	chart_legend(&chart, "state", NULL, strip_states, COUNT(strip_states));
	chart_data(&chart, "levels", strip_levels(metric));
	const int code = chart_done(&chart);
	if (!code)
		page_chart(page, &chart);
	chart_release(&chart);
	return code;
}

struct charted {
	const json_t *metric;
	double most; /* outliers, then the largest distance */
};

static int order_charted(const void *left, const void *right)
{
	const double a = ((const struct charted *)left)->most;
	const double b = ((const struct charted *)right)->most;
	return (a < b) - (a > b);
}

static double interest_of(const json_t *metric)
{
	size_t i;
	const json_t *value;
	double most = 0;
	json_array_foreach(json_object_get(metric, "values"), i, value)
	{
		most = fmax(most, fabs(column_number(value, "z")));
	}
	return column_number(metric, "outliers") > 0 ? 1e9 + most : most;
}

/* Those with outliers first, and no more dots than a browser draws soon. */
static int add_strips(struct page *page, const json_t *document, const json_t *dots)
{
	size_t g;
	size_t i;
	const json_t *group;
	const json_t *metric;
	size_t count = 0;
	size_t drawn = 0;
	int code = 0;
	json_array_foreach(json_object_get(document, "groups"), g, group)
	{
		count += json_array_size(json_object_get(group, "metrics"));
	}
	struct charted *list = calloc(count + 1, sizeof *list);
	if (!list)
		return -ENOMEM;
	count = 0;
	json_array_foreach(json_object_get(document, "groups"), g, group)
	{
		json_array_foreach(json_object_get(group, "metrics"), i, metric)
		{
			if (column_number(metric, "nodes") > 1)
				list[count++] = (struct charted){metric, interest_of(metric)};
		}
	}
	qsort(list, count, sizeof *list, order_charted);
	page_heading(page, 2, "metrics", "Metrics");
	page_paragraph(
		page, "Metrics with outliers first, then those whose nodes are farthest apart.");
	size_t at = 0;
	for (; at < count && !code; at++) {
		drawn += (size_t)column_number(list[at].metric, "nodes");
		if (at >= CHARTS_LEAST && drawn > CHARTED_VALUES_MOST)
			break;
		code = add_strip(page, list[at].metric, dots, at);
	}
	if (at < count) {
		char text[TIP_BYTES];
		(void)snprintf(text, sizeof text,
			"%zu more metrics, in which the nodes are closer together, are in fleet.json (--json).",
			count - at);
		page_paragraph(page, text);
	}
	free(list);
	return code;
}

/* --- the page --------------------------------------------------------------------------------- */

/* Of each node what its dots show: {NAME: {"bad": FAIL or ERROR, "link": to its page, or null}}. */
static json_t *dots_of(const json_t *document, const char *folder)
{
	size_t i;
	const json_t *node;
	json_t *dots = json_object();
	int bad = !dots;
	json_array_foreach(json_object_get(document, "nodes"), i, node)
	{
		const enum accept_verdict verdict = accept_verdict_of(column_text(node, "verdict"));
		const char *file = column_text(node, "page");
		struct buffer link = {0};
		const bool linked = *file && relative_address(folder, file, &link) && !link.failed;
		bad = bad ||
		      json_object_set_new(dots, column_text(node, "node"),
			      json_pack("{s:b, s:o}", "bad",
				      verdict == VERDICT_FAIL || verdict == VERDICT_ERROR, "link",
				      linked ? json_string(link.data) : json_null()));
		buffer_release(&link);
	}
	return fields_whole(dots, bad);
}

static void add_counts(struct page *page, const json_t *document)
{
	static const char *const verdicts[] = {"FAIL", "ERROR", "WARN", "PASS"};
	static const char *const meanings[] = {"not fit by a criterion of the plan",
		"no verdict: see why", "fit, with a warning", "fit by the plan"};
	page_figures_begin(page);
	for (size_t i = 0; i < COUNT(verdicts); i++) {
		char number[PAGE_NUMBER_BYTES];
		const double count =
			column_number(json_object_get(document, "counts"), verdicts[i]);
		if (count > 0)
			page_figure(page, page_number(PAGE_COUNT, count, number), verdicts[i],
				meanings[i]);
	}
	size_t outliers = 0;
	size_t k;
	const json_t *node;
	json_array_foreach(json_object_get(document, "nodes"), k, node)
	{
		outliers += json_is_true(json_object_get(node, "outlier"));
	}
	char number[PAGE_NUMBER_BYTES];
	if (outliers > 0)
		page_figure(page, page_number(PAGE_COUNT, (double)outliers, number),
			outliers == 1 ? "outlier" : "outliers",
			"worse than chance explains, whatever the plan says");
	page_figures_end(page);
}

static void add_groups(struct page *page, const json_t *groups)
{
	size_t i;
	const json_t *group;
	page_terms_begin(page);
	json_array_foreach(groups, i, group)
	{
		struct buffer text = {0};
		char term[64];
		const double nodes = column_number(group, "nodes");
		(void)snprintf(term, sizeof term, "%.0f node%s", nodes, nodes == 1 ? "" : "s");
		buffer_text(&text, column_text(group, "hardware"));
		if (*column_text(group, "differs"))
			buffer_format(&text, " (%s)", column_text(group, "differs"));
		page_term(page, term, text.data ? text.data : "");
		buffer_release(&text);
	}
	page_terms_end(page);
	if (json_array_size(groups) > 1)
		page_paragraph(page,
			"Nodes of different hardware are not compared. A node that lost memory or a GPU stands in a group of its own.");
}

static void add_details(struct page *page, const json_t *nodes, const char *folder)
{
	size_t i;
	const json_t *node;
	size_t shown = 0;
	json_array_foreach(nodes, i, node)
	{
		if (fleet_node_is_quiet(node) || shown == DETAILED_NODES_MOST)
			continue;
		struct medium medium = medium_page(page);
		if (shown++ == 0)
			page_heading(page, 2, "details", "Findings per node");
		page_heading(page, 3, NULL, column_text(node, "node"));
		fleet_node_facts(node, &medium);
		medium_end(&medium);
		link_to_node(page, folder, node, "The node's own report");
	}
}

static void add_links(struct page *page, const json_t *nodes, const char *folder)
{
	size_t i;
	const json_t *node;
	bool any = false;
	json_array_foreach(nodes, i, node)
	{
		any = any || *column_text(node, "page");
	}
	if (!any)
		return;
	page_fold_begin(page, "Reports of all nodes");
	json_array_foreach(nodes, i, node)
	{
		link_to_node(page, folder, node, column_text(node, "node"));
	}
	page_fold_end(page);
}

static void add_notices(struct page *page, const json_t *document)
{
	size_t i;
	const json_t *file;
	struct buffer expected = {0};
	const json_t *left_out = json_object_get(document, "left_out");
	fleet_expected_words(json_object_get(document, "expected"), &expected);
	if (expected.size > 0)
		page_notice(page, "Expected nodes", expected.data);
	json_array_foreach(json_object_get(document, "notes"), i, file)
	{
		page_notice(page, "Note", json_string_value(file));
	}
	buffer_release(&expected);
	if (json_array_size(left_out) == 0)
		return;
	page_fold_begin(page, "Files that were left out");
	page_terms_begin(page);
	json_array_foreach(left_out, i, file)
	{
		page_term(page, column_text(file, "file"), column_text(file, "why"));
	}
	page_terms_end(page);
	page_fold_end(page);
}

static void add_rule(struct page *page, const json_t *document)
{
	struct buffer text = {0};
	fleet_rule_words(document, &text);
	page_heading(page, 2, "rule", "How outliers are found");
	page_paragraph(page, text.data ? text.data : "");
	buffer_release(&text);
}

int fleet_page(const json_t *document, const char *folder, struct buffer *out, struct error *err)
{
	struct page *page = page_begin("mlbench fleet", column_text(document, "sentence"));
	json_t *dots = dots_of(document, folder);
	const json_t *nodes = json_object_get(document, "nodes");
	int code = page && dots ? 0 : -ENOMEM;
	if (!code) {
		add_counts(page, document);
		add_notices(page, document);
		page_heading(page, 2, "nodes", "Nodes, the worst first");
		page_rows(page, fleet_columns, fleet_column_count, nodes,
			"One row per node; z: deviations of healthy nodes from their median");
		add_details(page, nodes, folder);
		add_links(page, nodes, folder);
		code = add_strips(page, document, dots);
	}
	if (!code) {
		page_heading(page, 2, "hardware", "Hardware");
		add_groups(page, json_object_get(document, "groups"));
		add_rule(page, document);
	}
	json_decref(dots);
	if (!code)
		return page_end(page, out, err);
	page_release(page);
	return error_set(err, code, "out of memory for the page");
}
