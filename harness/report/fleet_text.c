/* A fleet in words and tables, and as CSV. */
#include "harness/accept/figures.h"
#include "harness/accept/result.h"
#include "harness/base/array.h"
#include "harness/base/text.h"
#include "harness/report/accept_document.h"
#include "harness/report/fleet_report.h"

#include <math.h>
#include <string.h>

enum {
	NAME_COLUMNS_MOST = 24,
	NODES_SHOWN = 60,
	DETAILS_SHOWN = 20,
	METRICS_SHOWN = 40,
	MISSING_SHOWN = 40,
	DIFFERENCES_SHOWN = 6,
	OUTLIERS_SHOWN = 4,
};

/* --- cells ------------------------------------------------------------------------------------ */

static void add_cut(const char *text, int most, struct buffer *out)
{
	int columns = 0;
	for (; *text && columns < most; columns++) {
		const size_t size = utf8_character(text);
		buffer_add(out, text, size ? size : 1);
		text += size ? size : 1;
	}
	buffer_text(out, *text ? ".." : "");
}

static void fleet_name_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	(void)column;
	add_cut(column_text(row, "node"), NAME_COLUMNS_MOST, out);
}

static enum ink fleet_verdict_ink(const struct table_column *column, const json_t *row)
{
	(void)column;
	switch (accept_verdict_of(column_text(row, "verdict"))) {
	case VERDICT_FAIL:
		return INK_BAD;
	case VERDICT_ERROR:
	case VERDICT_WARN:
		return INK_WARN;
	case VERDICT_SKIP:
		return INK_DIM;
	case VERDICT_PASS:
		break;
	}
	return json_is_true(column_value(row, "outlier"))       ? INK_BAD
	       : json_array_size(column_value(row, "gaps")) > 0 ? INK_WARN
								: INK_GOOD;
}

static void fleet_verdict_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	(void)column;
	buffer_text(out, column_text(row, "verdict"));
	if (json_is_true(column_value(row, "outlier")))
		buffer_text(out, ", outlier");
	else if (json_array_size(column_value(row, "gaps")) > 0)
		buffer_text(out, ", not comparable");
}

/* What the distance is of, and the first finding, which need not be about the same: "decode.core; finding: cgroup.withheld". */
static void fleet_what_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	const json_t *finding = column_value(row, "findings.0");
	const char *place = column_text(finding, "place");
	const char *farthest = column_text(row, "worst_figure");
	(void)column;
	if (json_is_true(column_value(row, "stranger")) && !finding)
		buffer_text(out, "other hardware");
	buffer_text(out, farthest);
	if (!finding)
		return;
	buffer_format(out, "%sfinding: %s%s%s", *farthest ? "; " : "",
		*column_text(finding, "figure") ? column_text(finding, "figure")
						: column_text(finding, "check"),
		*place ? " @ " : "", place);
}

static void fleet_action_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	const char *action = column_text(row, "action");
	(void)column;
	if (strcmp(action, accept_action_name(ACTION_NONE)) != 0)
		buffer_text(out, action);
}

const struct table_column fleet_columns[] = {
	{.head = "node", .left = true, .text_of = fleet_name_cell},
	{.head = "verdict",
		.left = true,
		.text_of = fleet_verdict_cell,
		.ink_of = fleet_verdict_ink},

	{.head = "vs median", .path = "apart"},
	{.head = "z", .path = "z", COLUMN_DECIMALS(1)},
	{.head = "action", .left = true, .text_of = fleet_action_cell, .keep = 1},
	{.head = "in", .left = true, .text_of = fleet_what_cell, .wraps = true},
};
const size_t fleet_column_count = COUNT(fleet_columns);

void fleet_csv(const json_t *document, struct buffer *out)
{
	static const struct table_column columns[] = {
		{.path = "node", .csv = "node"},
		{.path = "group", .csv = "group"},
		{.path = "verdict", .csv = "verdict"},
		{.path = "outlier", .csv = "outlier"},
		{.path = "action", .csv = "action"},
		{.path = "worst_metric", .csv = "worst_metric"},
		{.path = "z", .unit = COLUMN_FIXED, .decimals = 3, .csv = "deviations"},
		{.path = "change", .unit = COLUMN_FIXED, .decimals = 5, .csv = "change"},
		{.path = "sentence", .csv = "sentence"},
		{.path = "started", .csv = "started"},
		{.path = "tier", .csv = "tier"},
		{.path = "results", .unit = COLUMN_COUNT, .csv = "results"},
		{.path = "file", .csv = "file"},
	};
	columns_csv(columns, COUNT(columns), json_object_get(document, "nodes"), out);
}

/* --- sentences -------------------------------------------------------------------------------- */

void fleet_expected_words(const json_t *expected, struct buffer *out)
{
	size_t i;
	const json_t *name;
	const json_t *missing = json_object_get(expected, "missing");
	const json_t *unexpected = json_object_get(expected, "unexpected");
	if (!json_is_object(expected))
		return;
	buffer_format(out, "%.0f of %.0f reported", column_number(expected, "reported"),
		column_number(expected, "count"));
	json_array_foreach(missing, i, name)
	{
		if (i < MISSING_SHOWN)
			buffer_format(
				out, "%s %s", i ? "," : ", missing:", json_string_value(name));
	}
	if (json_array_size(missing) > MISSING_SHOWN)
		buffer_format(out, " and %zu more", json_array_size(missing) - MISSING_SHOWN);
	json_array_foreach(unexpected, i, name)
	{
		if (i < MISSING_SHOWN)
			buffer_format(
				out, "%s %s", i ? "," : "; not expected:", json_string_value(name));
	}
	if (json_array_size(unexpected) > MISSING_SHOWN)
		buffer_format(out, " and %zu more", json_array_size(unexpected) - MISSING_SHOWN);
}

void fleet_rule_words(const json_t *document, struct buffer *out)
{
	if (column_number(document, "tests") > 0)
		buffer_format(out,
			"z: deviations of healthy nodes from their median. A node is an outlier where it is farther from "
			"the median of its group than their scatter and its own repetitions explain, over all %.0f values "
			"of the fleet together: about %g %% of fleets of healthy nodes have one by chance. Differences "
			"below 1 %% are not named.",
			column_number(document, "tests"),
			100 * column_number(document, "false_alarms"));
	else
		buffer_text(out,
			"Fewer than 5 nodes of one hardware: what is out of line cannot be told from chance.");
}

bool fleet_node_is_quiet(const json_t *node)
{
	return accept_verdict_of(column_text(node, "verdict")) == VERDICT_PASS &&
	       !json_is_true(json_object_get(node, "stranger")) &&
	       json_array_size(json_object_get(node, "gaps")) == 0 &&
	       json_array_size(json_object_get(node, "outliers")) == 0 &&
	       json_array_size(column_value(node, "changed.changes")) == 0;
}

static void difference_words(const json_t *fact, struct buffer *out)
{
	const double like_it = column_number(fact, "like_it");
	buffer_format(out, "%s: %s (%.0f nodes have %s", column_text(fact, "name"),
		column_text(fact, "value"), column_number(fact, "have_majority"),
		column_text(fact, "majority"));
	if (like_it > 0)
		buffer_format(out, "; %.0f more %s %s", like_it, like_it == 1 ? "has" : "have",
			column_text(fact, "value"));
	buffer_text(out, ")");
}

static void more_fact(const json_t *list, struct medium *medium)
{
	struct buffer more = {0};
	if (json_array_size(list) > OUTLIERS_SHOWN)
		buffer_format(&more, "and %zu more", json_array_size(list) - OUTLIERS_SHOWN);
	medium_fact(medium, INK_PLAIN, "", &more);
}

static void findings_facts(const json_t *findings, struct medium *medium)
{
	size_t i;
	const json_t *item;
	json_array_foreach(findings, i, item)
	{
		if (i < OUTLIERS_SHOWN)
			medium_fact_text(medium, fleet_verdict_ink(NULL, item),
				column_text(item, "verdict"),
				*column_text(item, "sentence") ? column_text(item, "sentence")
							       : column_text(item, "check"));
	}
	more_fact(findings, medium);
}

static void outliers_facts(const json_t *outliers, struct medium *medium)
{
	size_t i;
	const json_t *item;
	json_array_foreach(outliers, i, item)
	{
		const bool bad = json_is_true(column_value(item, "bad"));
		if (i < OUTLIERS_SHOWN)
			medium_fact_text(medium, bad ? INK_BAD : INK_PLAIN,
				bad ? "worse" : "better", column_text(item, "sentence"));
	}
	more_fact(outliers, medium);
}

void fleet_node_facts(const json_t *node, struct medium *medium)
{
	size_t i;
	const json_t *item;
	const char *action = column_text(node, "action");
	const json_t *differs = json_object_get(node, "differs");
	findings_facts(json_object_get(node, "findings"), medium);
	if (json_is_true(json_object_get(node, "stranger")))
		medium_fact_text(medium, INK_WARN, "differs", column_text(node, "sentence"));
	medium_list(medium, INK_WARN, "unlike", json_object_get(node, "gaps"), 0);
	outliers_facts(json_object_get(node, "outliers"), medium);
	medium_list(medium, INK_PLAIN, "why", json_object_get(node, "why"), 0);
	json_array_foreach(differs, i, item)
	{
		struct buffer text = {0};
		if (i < DIFFERENCES_SHOWN)
			difference_words(item, &text);
		else if (i == DIFFERENCES_SHOWN)
			buffer_format(&text, "and %zu more",
				json_array_size(differs) - DIFFERENCES_SHOWN);
		medium_fact(medium, INK_PLAIN, i == 0 ? "differs" : "", &text);
	}
	if (json_array_size(column_value(node, "changed.changes")) > 0) {
		struct buffer since = {0};
		buffer_format(&since, "since %s:", column_text(node, "changed.since"));
		medium_fact(medium, INK_PLAIN, "changed", &since);
		medium_list(medium, INK_PLAIN, "", column_value(node, "changed.changes"), 0);
	}
	if (strcmp(action, accept_action_name(ACTION_NONE)) != 0)
		medium_fact_text(medium, INK_BOLD, "action", action);
}

/* --- the whole -------------------------------------------------------------------------------- */

static void groups_text(const json_t *groups, struct medium *medium)
{
	size_t i;
	const json_t *group;
	json_array_foreach(groups, i, group)
	{
		struct buffer text = {0};
		const double nodes = column_number(group, "nodes");
		buffer_format(&text, "%.0f node%s: %s", nodes, nodes == 1 ? "" : "s",
			column_text(group, "hardware"));
		if (*column_text(group, "differs"))
			buffer_format(&text, " (%s)", column_text(group, "differs"));
		medium_fact(medium, i ? INK_WARN : INK_PLAIN, i ? "" : "hardware", &text);
	}
	if (json_array_size(groups) > 1)
		medium_fact_text(medium, INK_DIM, "",
			"Nodes of different hardware are not compared. One that lost memory or a GPU is one of these.");
}

static void nodes_text(const json_t *nodes, struct medium *medium, bool verbose)
{
	size_t i;
	const json_t *node;
	json_t *shown = json_array();
	struct buffer rest = {0};
	json_array_foreach(nodes, i, node)
	{
		if (verbose || i < NODES_SHOWN || !fleet_node_is_quiet(node))
			(void)json_array_append(shown, (json_t *)(uintptr_t)node);
	}
	medium_table(medium, fleet_columns, fleet_column_count, shown, "Nodes, the worst first");
	if (json_array_size(shown) < json_array_size(nodes))
		buffer_format(&rest, "and %zu more that passed (--verbose shows all)",
			json_array_size(nodes) - json_array_size(shown));
	medium_note(medium, &rest);
	json_decref(shown);
	buffer_release(&rest);
}

static void details_text(const json_t *nodes, struct medium *medium, bool verbose)
{
	size_t i;
	const json_t *node;
	size_t shown = 0;
	json_array_foreach(nodes, i, node)
	{
		if (fleet_node_is_quiet(node) || (!verbose && shown == DETAILS_SHOWN))
			continue;
		struct buffer name = {0};
		add_cut(column_text(node, "node"), 3 * NAME_COLUMNS_MOST, &name);
		medium_heading(medium, name.data ? name.data : "");
		fleet_node_facts(node, medium);
		buffer_release(&name);
		shown++;
	}
}

static void metrics_text(const json_t *groups, struct medium *medium, bool verbose)
{
	static const struct table_column columns[] = {
		{.head = "metric", .left = true, .path = "name"},
		{.head = "median", .text_of = accept_unit_cell, .context = "median"},
		{.head = "deviation",
			.text_of = accept_unit_cell,
			.context = "deviation",
			.keep = 1},
		{.head = "nodes", .path = "nodes", .unit = COLUMN_COUNT, .keep = 2},
		{.head = "outliers", .path = "outliers", .unit = COLUMN_COUNT},
	};
	size_t i;
	size_t k;
	const json_t *group;
	const json_t *metric;
	json_t *rows = json_array();
	struct buffer rest = {0};
	size_t left = 0;
	json_array_foreach(groups, i, group)
	{
		json_array_foreach(json_object_get(group, "metrics"), k, metric)
		{
			if (column_number(metric, "nodes") < 2)
				continue;
			const bool shown = verbose || json_array_size(rows) < METRICS_SHOWN ||
					   column_number(metric, "outliers") > 0;
			if (shown)
				(void)json_array_append(rows, (json_t *)(uintptr_t)metric);
			left += !shown;
		}
	}
	if (json_array_size(rows) > 0)
		medium_heading(medium, "metrics");
	medium_table(medium, columns, COUNT(columns), rows, "Metrics");
	if (left > 0)
		buffer_format(&rest, "and %zu more without outliers (--verbose shows all)", left);
	medium_note(medium, &rest);
	json_decref(rows);
	buffer_release(&rest);
}

void fleet_text(const json_t *document, struct medium *medium, bool verbose)
{
	struct buffer expected = {0};
	struct buffer rule = {0};
	size_t i;
	const json_t *file;
	const json_t *nodes = json_object_get(document, "nodes");
	const json_t *left_out = json_object_get(document, "left_out");
	medium_title(medium, "fleet", column_text(document, "sentence"));
	fleet_expected_words(json_object_get(document, "expected"), &expected);
	medium_fact(medium, INK_BOLD, "expected", &expected);
	groups_text(json_object_get(document, "groups"), medium);
	medium_list(medium, INK_WARN, "note", json_object_get(document, "notes"), 0);
	medium_space(medium);
	nodes_text(nodes, medium, verbose);
	details_text(nodes, medium, verbose);
	metrics_text(json_object_get(document, "groups"), medium, verbose);
	medium_space(medium);
	fleet_rule_words(document, &rule);
	medium_fact(medium, INK_DIM, "rule", &rule);
	json_array_foreach(left_out, i, file)
	{
		struct buffer text = {0};
		buffer_format(&text, "%s: %s", column_text(file, "file"), column_text(file, "why"));
		medium_fact(medium, INK_WARN, i ? "" : "left out", &text);
	}
	medium_end(medium);
}
