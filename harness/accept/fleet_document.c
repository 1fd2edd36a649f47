/* What a fleet came to, as a document: words for outliers, what an outlier has that most nodes do not have, why it is slow,
 * and what changed since its last result.  Facts are weighed by the tables of `mlbench compare` (comparison.h). */
#include "harness/accept/fingerprint.h"
#include "harness/accept/fleet_nodes.h"
#include "harness/analyze/comparison.h"
#include "harness/base/array.h"
#include "harness/base/units.h"
#include "harness/record/fields.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	DIFFERENCES_MOST = 12,
	OUTLIERS_MOST = 8,
	CHANGES_MOST = 12,
	NOTES_MOST = 4,
	NAMES_MOST = 8,
	STAGES_MOST = 16,
	STRANGERS_SHARE = 10, /* one in so many of the largest group */
};

static const double EXPLAIN_Z = 3;      /* a figure that is farther out is worth a word */
static const double CHANGED_ERRORS = 4; /* of the difference of two results */
static const double CHANGED_LEAST = 0.01;

/* --- what a node has that others do not have -------------------------------------------------- */

/* Nodes of the group with that value. */
static size_t nodes_with(const struct fleet_group *group, const struct fact *fact)
{
	const struct fleet_fact key = {fact, 0};
	size_t low = 0;
	size_t high = group->fact_count;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (fleet_order_facts(&group->facts[middle], &key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	size_t count = 0;
	while (low + count < group->fact_count &&
		fleet_order_facts(&group->facts[low + count], &key) == 0)
		count++;
	return count;
}

static const struct fact *fact_named(const struct fact_list *facts, const char *name)
{
	const struct fact *found = NULL;
	/* names of checks may have dots, too */
	for (const char *dot = strchr(name, '.'); dot && !found; dot = strchr(dot + 1, '.')) {
		char group[COMPARE_NAME_BYTES];
		(void)snprintf(group, sizeof group, "%.*s", (int)(dot - name), name);
		found = fact_find(facts, group, dot + 1);
	}
	return found;
}

static bool difference_is_shown(const struct compare_fact *fact)
{
	return fact->weight > COMPARE_HARMLESS && strncmp(fact->name, "node.", 5) != 0 &&
	       strncmp(fact->name, "load.", 5) != 0 && strcmp(fact->name, "kernel.nodename") != 0 &&
	       strncmp(fact->b, "not recorded", 12) != 0 &&
	       strncmp(fact->a, "not recorded", 12) != 0;
}

/* [{"name", "value", "majority", "weight", "like_it": other nodes with this value, "have_majority"}] */
static json_t *differences_json(const struct fleet_group *group, const struct fleet_node *node)
{
	json_t *array = json_array();
	struct compare_facts facts = {0};
	int bad = !array;
	if (group->majority.count > 0) {
		compare_environments(&facts, &group->majority, &node->newest->facts);
		compare_facts_sort(&facts);
	}
	for (size_t i = 0; i < facts.count && json_array_size(array) < DIFFERENCES_MOST; i++) {
		const struct compare_fact *const fact = &facts.list[i];
		const struct fact *its = fact_named(&node->newest->facts, fact->name);
		const struct fact *theirs = fact_named(&group->majority, fact->name);
		if (!difference_is_shown(fact) || !its || !theirs)
			continue;
		bad |= json_array_append_new(array,
			json_pack("{s:o, s:o, s:o, s:s, s:I, s:I}", "name", fields_text(fact->name),
				"value", fields_text(fact->b), "majority", fields_text(fact->a),
				"weight", compare_weight_name(fact->weight), "like_it",
				(json_int_t)nodes_with(group, its) - 1, "have_majority",
				(json_int_t)nodes_with(group, theirs)));
	}
	bad |= facts.failed;
	compare_facts_release(&facts);
	return fields_whole(array, bad);
}

/* --- words ------------------------------------------------------------------------------------ */

/* "throughput of 'training'", "decode.core of 'slow core', worst of the cores (core 3)". */
static void metric_words(
	const struct fleet_metric *metric, const struct fleet_value *value, struct buffer *out)
{
	buffer_format(out, "%s of '%s'", metric->figure->name, metric->check);
	if (metric->worst)
		buffer_format(out, " at its worst %s%s%s%s", metric->figure->place,
			value ? " (" : "", value ? value->worst : "", value ? ")" : "");
	else if (strcmp(metric->place, PLACE_ALL) == 0)
		buffer_format(out, ", median of each %s", metric->figure->place);
	else if (*metric->place)
		buffer_format(out, " at %s", metric->place);
}

/* The difference to the level: of shares and counts absolute, else relative. */
static double fleet_change(const struct fleet_metric *metric, double value)
{
	const double centre = metric->spread.centre;
	if (metric->figure->unit == FIGURE_SHARE || metric->figure->unit == FIGURE_COUNT)
		return value - centre;
	return centre != 0 ? value / centre - 1 : (double)NAN;
}

static void change_words(const struct fleet_metric *metric, double value, struct buffer *out)
{
	const double change = fleet_change(metric, value);
	const char *side = change < 0 ? "below" : "above";
	if (metric->figure->unit == FIGURE_COUNT)
		buffer_format(out, "%s %s", UNITS_PLAIN(fabs(change), 3), side);
	else if (metric->figure->unit == FIGURE_SHARE)
		buffer_format(out, "%.1f points %s", 100 * fabs(change), side);
	else
		buffer_format(out, "%.1f %% %s", 100 * fabs(change), side);
}

static void outlier_sentence(const struct fleet_metric *metric, const struct fleet_value *value,
	const struct spread *spread, size_t tests, struct buffer *out)
{
	char text[FIGURE_VALUE_BYTES];
	metric_words(metric, value, out);
	buffer_format(
		out, " is %s, ", figure_value_text(metric->figure->unit, value->of.value, text));
	change_words(metric, value->of.value, out);
	buffer_format(out, " the median of %zu nodes (%.1f deviations, limit %.1f)", metric->count,
		fabs(value->z), spread_limit(spread, FLEET_RATE, tests));
}

/* Takes the buffer. */
static json_t *buffer_json(struct buffer *text)
{
	json_t *value = text->failed ? NULL : fields_text(text->data ? text->data : "");
	buffer_release(text);
	return value;
}

/* --- why a node is slow ----------------------------------------------------------------------- */

static const struct fleet_value *value_of_node(const struct fleet_metric *metric, size_t node)
{
	/* Values were added in the order of nodes. */
	size_t low = 0;
	size_t high = metric->count;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (metric->values[middle].node < node)
			low = middle + 1;
		else
			high = middle;
	}
	return low < metric->count && metric->values[low].node == node ? &metric->values[low]
								       : NULL;
}

/* The stage of "read.capacity"; false: it is no capacity of a stage. */
static bool capacity_stage(const char *figure, char stage[NAME_BYTES])
{
	const char *dot = strrchr(figure, '.');
	if (!dot || strcmp(dot, ".capacity") != 0 || dot == figure)
		return false;
	(void)snprintf(stage, NAME_BYTES, "%.*s", (int)(dot - figure), figure);
	return true;
}

static void explain_parts(const struct explanation *explanation, struct buffer *out)
{
	for (size_t i = 0;
		i < explanation->part_count && fabs(explanation->parts[i].effect) > 0.002; i++)
		buffer_format(out, "%s%s %+.1f %%", out->size ? ", " : "",
			explanation->parts[i].name, 100 * (exp(explanation->parts[i].effect) - 1));
}

/* By the capacities of its stages against those of the group. */
static int explain_check(const struct node_fleet *fleet, size_t node,
	const struct fleet_metric *metric, const struct fleet_value *value, json_t *reasons)
{
	struct explain_capacity stages[STAGES_MOST];
	struct explanation explanation;
	struct buffer text = {0};
	struct buffer parts = {0};
	size_t count = 0;
	for (size_t i = 0; i < fleet->metric_count && count < STAGES_MOST; i++) {
		const struct fleet_metric *const other = &fleet->metrics[i];
		const struct fleet_value *its =
			other->group == metric->group && other->check == metric->check &&
					capacity_stage(other->figure->name, stages[count].stage)
				? value_of_node(other, node)
				: NULL;
		if (!its)
			continue;
		stages[count].a = other->spread.centre;
		stages[count++].b = its->of.value;
	}
	if (count > 1) {
		explain_by_capacities(
			stages, count, log(value->of.value / metric->spread.centre), &explanation);
		explain_parts(&explanation, &parts);
	}
	if (parts.size > 0)
		buffer_format(&text,
			"The capacities of its stages in '%s' account for this much of %+.1f %%: %s",
			metric->check, 100 * fleet_change(metric, value->of.value), parts.data);
	const bool said = text.size > 0;
	buffer_release(&parts);
	json_t *words = buffer_json(&text);
	return said ? json_array_append_new(reasons, words) : (json_decref(words), 0);
}

/* What else of that check is out of line. */
static int explain_by_figures(const struct node_fleet *fleet, size_t node,
	const struct fleet_metric *metric, json_t *reasons)
{
	int bad = 0;
	for (size_t i = 0; i < fleet->metric_count && json_array_size(reasons) < NOTES_MOST; i++) {
		const struct fleet_metric *const other = &fleet->metrics[i];
		struct buffer text = {0};
		const struct fleet_value *its = other != metric && other->group == metric->group &&
								other->check == metric->check &&
								strchr(other->figure->name, '.')
							? value_of_node(other, node)
							: NULL;
		if (!its || fleet_badness(other->figure, its->z) < EXPLAIN_Z)
			continue;
		metric_words(other, its, &text);
		buffer_text(&text, " is ");
		change_words(other, its->of.value, &text);
		buffer_text(&text, " the others' median");
		bad |= json_array_append_new(reasons, buffer_json(&text));
	}
	return bad;
}

static bool names_bottleneck(const char *note)
{
	return strcasestr(note, "bottleneck") != NULL;
}

static int explain_by_notes(const struct fleet_node *node, const char *check, json_t *reasons)
{
	size_t i;
	const json_t *note;
	int bad = 0;
	json_array_foreach(json_object_get(node->newest->notes, check), i, note)
	{
		if (json_is_string(note) && names_bottleneck(json_string_value(note)) &&
			json_array_size(reasons) < NOTES_MOST)
			bad |= json_array_append_new(
				reasons, json_sprintf("Diagnosis of '%s': %s", check,
						 json_string_value(note)));
	}
	return bad;
}

/* Sentences about each pipeline check whose throughput is far below the others'. */
static json_t *reasons_json(const struct node_fleet *fleet, size_t node)
{
	json_t *reasons = json_array();
	int bad = !reasons;
	for (size_t i = 0; i < fleet->metric_count && !bad; i++) {
		const struct fleet_metric *const metric = &fleet->metrics[i];
		const struct fleet_value *value =
			metric->group == fleet->nodes[node].group &&
					metric->figure->kind == ACCEPT_PIPELINE &&
					!strchr(metric->figure->name, '.') &&
					metric->figure->unit == FIGURE_PER_S
				? value_of_node(metric, node)
				: NULL;
		if (!value ||
			!(value->outlier || fleet_badness(metric->figure, value->z) > EXPLAIN_Z) ||
			fleet_badness(metric->figure, value->z) < 0)
			continue;
		bad |= explain_check(fleet, node, metric, value, reasons);
		bad |= explain_by_figures(fleet, node, metric, reasons);
		bad |= explain_by_notes(&fleet->nodes[node], metric->check, reasons);
	}
	return fields_whole(reasons, bad);
}

/* --- what changed since the last result ------------------------------------------------------- */

static int change_of_verdict(const struct fleet_node *node, json_t *changes)
{
	if (node->newest->verdict == node->before->verdict)
		return 0;
	return json_array_append_new(changes,
		json_sprintf("verdict: %s, it was %s", accept_verdict_name(node->newest->verdict),
			accept_verdict_name(node->before->verdict)));
}

/* The series of a result, by its check, figure and place. */
static bool series_find(
	const struct node_result *result, const struct node_series *like, struct node_series *found)
{
	size_t at = 0;
	while (node_series_next(result, &at, found))
		if (found->figures->figure == like->figures->figure &&
			found->figures->check == like->figures->check &&
			strcmp(found->place, like->place) == 0)
			return true;
	return false;
}

static struct spread_value series_value(const struct node_series *series)
{
	struct spread_value of = {.value = NAN, .error = NAN};
	double *values = calloc(series->repetitions + 1, sizeof *values);
	if (values) {
		node_series_values(series, values);
		of = spread_value_of(values, series->repetitions);
	}
	free(values);
	return of;
}

/* How much of the difference of two results is chance: by the scatter of nodes, or by the repetitions alone. */
static double chance_of_change(const struct node_fleet *fleet, const struct fleet_node *node,
	const struct node_series *series, const struct spread_value *now,
	const struct spread_value *then)
{
	const double within = hypot(now->error, then->error);
	double between = NAN;
	for (size_t i = 0; i < fleet->metric_count; i++) {
		const struct fleet_metric *const metric = &fleet->metrics[i];
		if (metric->group == node->group && metric->figure == series->figures->figure &&
			metric->check == series->figures->check && !metric->worst &&
			strcmp(metric->place, series->place) == 0 &&
			metric->count >= SPREAD_NODES_LEAST)
			between = M_SQRT2 * metric->spread.scale;
	}
	return fmax(within, between); /* passes over NAN */
}

static int change_of_series(const struct node_fleet *fleet, const struct fleet_node *node,
	const struct node_series *series, json_t *changes)
{
	struct node_series before;
	struct buffer text = {0};
	char a[FIGURE_VALUE_BYTES];
	char b[FIGURE_VALUE_BYTES];
	if (!series_find(node->before, series, &before))
		return 0;
	const struct figure *const figure = series->figures->figure;
	const struct spread_value now = series_value(series);
	const struct spread_value then = series_value(&before);
	const double apart = now.value - then.value;
	const double least = figure->unit == FIGURE_SHARE   ? CHANGED_LEAST
			     : figure->unit == FIGURE_COUNT ? 1
							    : CHANGED_LEAST * fabs(then.value);
	const double chance = chance_of_change(fleet, node, series, &now, &then);
	if (!(fabs(apart) >= least) || !(fabs(apart) > CHANGED_ERRORS * chance))
		return 0;
	buffer_format(&text, "%s of '%s'%s%s: %s, it was %s", figure->name, series->figures->check,
		*series->place ? " at " : "",
		strcmp(series->place, PLACE_ALL) == 0 ? "all places" : series->place,
		figure_value_text(figure->unit, now.value, a),
		figure_value_text(figure->unit, then.value, b));
	if (figure->unit != FIGURE_SHARE && figure->unit != FIGURE_COUNT && then.value != 0)
		buffer_format(&text, " (%+.1f %%)", 100 * apart / then.value);
	return json_array_append_new(changes, buffer_json(&text));
}

/* A number that a check read, as a temperature, differs from run to run: it tells something where most nodes have the same. */
static bool change_tells(
	const struct fleet_group *group, const struct fleet_node *node, const char *name)
{
	const struct fact *fact = fact_named(&node->newest->facts, name);
	const bool of_check = fact && (size_t)(fact - node->newest->facts.facts) >=
					      node->newest->environment_count;
	return !of_check || fact->kind != FACT_NUMBER || fact_named(&group->majority, name);
}

static int changes_of_facts(
	const struct fleet_group *group, const struct fleet_node *node, json_t *changes)
{
	struct compare_facts facts = {0};
	int bad = 0;
	compare_environments(&facts, &node->before->facts, &node->newest->facts);
	compare_facts_sort(&facts);
	for (size_t i = 0; i < facts.count && json_array_size(changes) < CHANGES_MOST; i++)
		if (difference_is_shown(&facts.list[i]) &&
			change_tells(group, node, facts.list[i].name))
			bad |= json_array_append_new(
				changes, json_sprintf("%s: %s, it was %s", facts.list[i].name,
						 facts.list[i].b, facts.list[i].a));
	bad |= facts.failed;
	compare_facts_release(&facts);
	return bad;
}

/* {"since", "changes": [...]}, or null. */
static json_t *changed_json(const struct node_fleet *fleet, const struct fleet_node *node)
{
	struct node_series series;
	size_t at = 0;
	if (!node->before)
		return json_null();
	json_t *changes = json_array();
	int bad = !changes || change_of_verdict(node, changes);
	while (!bad && json_array_size(changes) < CHANGES_MOST &&
		node_series_next(node->newest, &at, &series))
		bad |= change_of_series(fleet, node, &series, changes);
	bad = bad || changes_of_facts(&fleet->groups[node->group], node, changes);
	return fields_whole(json_pack("{s:o, s:o}", "since", fields_text(node->before->started),
				    "changes", changes),
		bad);
}

/* --- the document ----------------------------------------------------------------------------- */

enum node_rank {
	RANK_PASS,
	RANK_WARN,
	RANK_STRANGER,
	RANK_GAPS,
	RANK_ERROR,
	RANK_OUTLIER,
	RANK_FAIL
};

/* Hardware that hardly any node has: more likely a part that is missing than another purchase. */
static bool is_stranger(const struct node_fleet *fleet, const struct fleet_node *node)
{
	return STRANGERS_SHARE * fleet->groups[node->group].nodes <= fleet->groups[0].nodes;
}

static int rank_of(const struct node_fleet *fleet, const struct fleet_node *node)
{
	if (node->newest->verdict == VERDICT_FAIL)
		return RANK_FAIL;
	if (node->bad_outliers > 0)
		return RANK_OUTLIER;
	if (node->newest->verdict == VERDICT_ERROR)
		return RANK_ERROR;
	if (json_array_size(node->gaps) > 0)
		return RANK_GAPS;
	if (is_stranger(fleet, node))
		return RANK_STRANGER;
	return node->newest->verdict == VERDICT_PASS ? RANK_PASS : RANK_WARN;
}

static enum accept_action action_named(const char *name)
{
	int action = ACTION_RETURN;
	while (action > ACTION_NONE &&
		strcmp(accept_action_name((enum accept_action)action), name) != 0)
		action--;
	return (enum accept_action)action;
}

/* An outlier that no criterion failed is at least to be looked at. */
static enum accept_action action_of(const struct fleet_node *node)
{
	const enum accept_action its = action_named(node->newest->action);
	const enum accept_action outlier =
		node->bad_outliers > 0 ? node->worst->figure->action : ACTION_NONE;
	return its > outlier ? its : outlier;
}

static json_t *metric_name_json(const struct fleet_metric *metric)
{
	struct buffer text = {0};
	metric_words(metric, NULL, &text);
	return buffer_json(&text);
}

/* An outlier of a node, to be sorted. */
struct node_outlier {
	const struct fleet_metric *metric;
	const struct fleet_value *value;
	double bad;
};

static int order_outliers(const void *left, const void *right)
{
	const double a = ((const struct node_outlier *)left)->bad;
	const double b = ((const struct node_outlier *)right)->bad;
	return (a < b) - (a > b);
}

static json_t *outlier_json(const struct node_fleet *fleet, const struct node_outlier *outlier)
{
	const struct fleet_metric *const metric = outlier->metric;
	const struct fleet_value *const value = outlier->value;
	struct buffer text = {0};
	outlier_sentence(metric, value, &metric->spread, fleet->tests, &text);
	return json_pack("{s:o, s:s, s:o, s:f, s:o, s:b, s:o}", "check", fields_text(metric->check),
		"figure", metric->figure->name, "place",
		fields_text(metric->worst ? value->worst : metric->place), "z", value->z, "change",
		fields_number(fleet_change(metric, value->of.value)), "bad", outlier->bad > 0,
		"sentence", buffer_json(&text));
}

/* The worst first, those on the good side last. */
static json_t *outliers_of_node(const struct node_fleet *fleet, size_t node)
{
	struct node_outlier *list = calloc(fleet->metric_count + 1, sizeof *list);
	json_t *array = json_array();
	size_t count = 0;
	int bad = !array || !list;
	for (size_t i = 0; i < fleet->metric_count && !bad; i++) {
		const struct fleet_metric *const metric = &fleet->metrics[i];
		const struct fleet_value *value = metric->group == fleet->nodes[node].group
							  ? value_of_node(metric, node)
							  : NULL;
		if (value && value->outlier)
			list[count++] = (struct node_outlier){
				metric, value, fleet_badness(metric->figure, value->z)};
	}
	if (!bad)
		qsort(list, count, sizeof *list, order_outliers);
	for (size_t i = 0; i < count && i < OUTLIERS_MOST && !bad; i++)
		bad = json_array_append_new(array, outlier_json(fleet, &list[i]));
	free(list);
	return fields_whole(array, bad);
}

/* What is said of the node in one sentence: its worst finding, or how it stands out. */
static json_t *sentence_json(const struct node_fleet *fleet, const struct fleet_node *node)
{
	const json_t *finding = json_array_get(node->newest->findings, 0);
	const char *said = json_string_value(json_object_get(finding, "sentence"));
	struct buffer text = {0};
	if (node->rank == RANK_OUTLIER)
		outlier_sentence(
			node->worst, node->worst_value, &node->worst->spread, fleet->tests, &text);
	else if (said)
		buffer_text(&text, said);
	else if (node->rank == RANK_GAPS)
		buffer_text(&text, json_string_value(json_array_get(node->gaps, 0)));
	else if (node->rank == RANK_STRANGER) {
		buffer_text(&text, "hardware that hardly any other node has: ");
		(void)fingerprint_same(
			node->newest->fingerprint, fleet->groups[0].fingerprint, &text);
	} else if (node->rank != RANK_PASS)
		buffer_text(&text, node->newest->sentence);
	return buffer_json(&text);
}

/* The page that `mlbench accept` left beside the result; null: there is none. */
static json_t *page_json(const struct node_result *result)
{
	static const char *const names[] = {"accept.html", "report.html"};
	const char *slash = strrchr(result->path, '/');
	for (size_t i = 0; i < COUNT(names); i++) {
		char *path = NULL;
		if (asprintf(&path, "%.*s%s", slash ? (int)(slash + 1 - result->path) : 0,
			    result->path, names[i]) < 0)
			return NULL;
		json_t *value = access(path, R_OK) == 0 ? json_string(path) : NULL;
		free(path);
		if (value)
			return value;
	}
	return json_null();
}

/* For a narrow column: "decode.core, worst core". */
static json_t *worst_figure_json(const struct fleet_metric *metric)
{
	struct buffer text = {0};
	buffer_text(&text, metric->figure->name);
	if (metric->worst)
		buffer_format(&text, ", worst %s", metric->figure->place);
	else if (*metric->place && strcmp(metric->place, PLACE_ALL) != 0)
		buffer_format(&text, " @ %s", metric->place);
	return buffer_json(&text);
}

/* "-5.0 %" from the median of its worst metric, "+3" of counts; null: it is in none on the bad side. */
static json_t *apart_json(const struct fleet_node *node)
{
	/* Compared with others, and worse than their median in nothing: not the same as not compared. */
	if (!node->worst && node->compared > 0)
		return json_string("not worse");
	if (!node->worst)
		return json_null();
	const double change = fleet_change(node->worst, node->worst_value->of.value);
	if (node->worst->figure->unit == FIGURE_COUNT)
		return json_sprintf("%s%s", change < 0 ? "" : "+", UNITS_PLAIN(change, 3));
	return json_sprintf("%+.1f %s", 100 * change,
		node->worst->figure->unit == FIGURE_SHARE ? "points" : "%");
}

static json_t *node_json(const struct node_fleet *fleet, size_t at)
{
	const struct fleet_node *const node = &fleet->nodes[at];
	const struct fleet_metric *const worst = node->worst;
	json_t *object = json_pack(
		"{s:o, s:I, s:s, s:b, s:s, s:o, s:o, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:O, s:O, s:o, s:o, s:o, s:o}",
		"node", fields_text(node->newest->name), "group", (json_int_t)node->group,
		"verdict", accept_verdict_name(node->newest->verdict), "outlier",
		node->bad_outliers > 0, "action", accept_action_name(action_of(node)), "sentence",
		sentence_json(fleet, node), "started", fields_text(node->newest->started), "tier",
		node->newest->tier, "results", (json_int_t)node->results, "file",
		fields_text(node->newest->path), "page", page_json(node->newest), "worst_metric",
		worst ? metric_name_json(worst) : json_null(), "z",
		fields_number(worst ? node->worst_value->z : (double)NAN), "change",
		fields_number(
			worst ? fleet_change(worst, node->worst_value->of.value) : (double)NAN),
		"apart", apart_json(node), "worst_figure",
		worst ? worst_figure_json(worst) : json_null(), "stranger",
		is_stranger(fleet, node), "gaps", node->gaps, "findings", node->newest->findings,
		"outliers", outliers_of_node(fleet, at), "why", reasons_json(fleet, at), "differs",
		differences_json(&fleet->groups[node->group], node), "changed",
		changed_json(fleet, node));
	return object;
}

static json_t *fleet_short_number(double value)
{
	char text[32];
	if (!isfinite(value))
		return json_null();
	(void)snprintf(text, sizeof text, "%.6g", value);
	return json_real(strtod(text, NULL));
}

static json_t *values_json(const struct node_fleet *fleet, const struct fleet_metric *metric)
{
	json_t *array = json_array();
	int bad = !array;
	for (size_t i = 0; i < metric->count && !bad; i++) {
		const struct fleet_value *const value = &metric->values[i];
		const double reach = isfinite(value->of.reach) ? value->of.reach : (double)NAN;
		bad = json_array_append_new(
			array, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "node",
				       fields_text(fleet->nodes[value->node].newest->name), "value",
				       fleet_short_number(value->of.value), "low",
				       fleet_short_number(value->of.value - reach), "high",
				       fleet_short_number(value->of.value + reach), "z",
				       fleet_short_number(value->z), "place",
				       value->worst ? fields_text(value->worst) : json_null(),
				       "outlier", value->outlier));
	}
	return fields_whole(array, bad);
}

static json_t *metric_json(const struct node_fleet *fleet, const struct fleet_metric *metric)
{
	static const char *const senses[] = {"more", "less", "neither"};
	const struct spread *const spread = &metric->spread;
	const double limit = spread_limit(spread, FLEET_RATE, fleet->tests);
	return json_pack("{s:o, s:o, s:s, s:s, s:o, s:b, s:s, s:s, s:I, s:o, s:o, s:o, s:I, s:o}",
		"name", metric_name_json(metric), "check", fields_text(metric->check), "kind",
		accept_kind_name(metric->figure->kind), "figure", metric->figure->name, "place",
		fields_text(metric->place), "worst", metric->worst, "unit",
		figure_unit_name(metric->figure->unit), "sense", senses[metric->figure->sense],
		"nodes", (json_int_t)metric->count, "median", fleet_short_number(spread->centre),
		"deviation", fleet_short_number(spread->scale), "limit_z",
		fleet_short_number(limit), "outliers", (json_int_t)metric->outliers, "values",
		values_json(fleet, metric));
}

static json_t *group_json(const struct node_fleet *fleet, size_t at)
{
	const struct fleet_group *const group = &fleet->groups[at];
	struct buffer hardware = {0};
	struct buffer differs = {0};
	json_t *metrics = json_array();
	int bad = !metrics;
	fingerprint_words(group->fingerprint, &hardware);
	if (at > 0)
		(void)fingerprint_same(group->fingerprint, fleet->groups[0].fingerprint, &differs);
	for (size_t m = 0; m < fleet->metric_count && !bad; m++)
		if (fleet->metrics[m].group == at)
			bad = json_array_append_new(
				metrics, metric_json(fleet, &fleet->metrics[m]));
	json_t *object = json_pack("{s:o, s:O, s:I, s:o, s:o}", "hardware", buffer_json(&hardware),
		"fingerprint", group->fingerprint, "nodes", (json_int_t)group->nodes, "differs",
		at > 0 ? buffer_json(&differs) : json_null(), "metrics", metrics);
	return fields_whole(object, bad || !object);
}

static int order_nodes(const void *left, const void *right)
{
	const struct fleet_node *const a = *(const struct fleet_node *const *)left;
	const struct fleet_node *const b = *(const struct fleet_node *const *)right;
	if (a->rank != b->rank)
		return b->rank - a->rank;
	if (a->bad != b->bad)
		return a->bad < b->bad ? 1 : -1;
	return strcmp(a->newest->name, b->newest->name);
}

static json_t *nodes_json(struct node_fleet *fleet)
{
	const struct fleet_node **sorted =
		calloc(fleet->node_count + 1, sizeof(struct fleet_node *));
	json_t *array = json_array();
	int bad = !array || !sorted;
	for (size_t i = 0; i < fleet->node_count && !bad; i++) {
		fleet->nodes[i].rank = rank_of(fleet, &fleet->nodes[i]);
		sorted[i] = &fleet->nodes[i];
	}
	if (!bad)
		qsort(sorted, fleet->node_count, sizeof(struct fleet_node *), order_nodes);
	for (size_t i = 0; i < fleet->node_count && !bad; i++)
		bad = json_array_append_new(
			array, node_json(fleet, (size_t)(sorted[i] - fleet->nodes)));
	free(sorted);
	return fields_whole(array, bad);
}

static bool has_node(const struct node_fleet *fleet, const char *name)
{
	size_t low = 0; /* nodes are in the order of their names */
	size_t high = fleet->node_count;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const int order = strcmp(fleet->nodes[middle].newest->name, name);
		if (order == 0)
			return true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

/* {"file", "count", "reported", "missing": [...], "unexpected": [...]}, or null. */
static json_t *expected_json(const struct node_fleet *fleet)
{
	const json_t *expect = fleet->request->expect;
	size_t i;
	const json_t *name;
	size_t reported = 0;
	if (!expect)
		return json_null();
	json_t *missing = json_array();
	json_t *unexpected = json_array();
	json_t *known = json_object();
	int bad = !missing || !unexpected || !known;
	json_array_foreach(expect, i, name)
	{
		const bool is_here = has_node(fleet, json_string_value(name));
		reported += is_here;
		bad = bad || json_object_set_new(known, json_string_value(name), json_true());
		if (!is_here)
			bad = bad || json_array_append(missing, (json_t *)(uintptr_t)name);
	}
	for (size_t k = 0; k < fleet->node_count && !bad; k++)
		if (!json_object_get(known, fleet->nodes[k].newest->name))
			bad = json_array_append_new(
				unexpected, fields_text(fleet->nodes[k].newest->name));
	json_decref(known);
	json_t *object = json_pack("{s:o, s:I, s:I, s:o, s:o}", "file",
		fields_text(fleet->request->expect_file ? fleet->request->expect_file : ""),
		"count", (json_int_t)json_array_size(expect), "reported", (json_int_t)reported,
		"missing", missing, "unexpected", unexpected);
	return fields_whole(object, bad || !object);
}

static json_t *counts_json(const struct node_fleet *fleet)
{
	size_t counts[VERDICT_FAIL + 1] = {0};
	json_t *object = json_object();
	int bad = !object;
	for (size_t i = 0; i < fleet->node_count; i++)
		counts[fleet->nodes[i].newest->verdict]++;
	for (int v = VERDICT_PASS; v <= VERDICT_FAIL && !bad; v++)
		bad = json_object_set_new(object, accept_verdict_name((enum accept_verdict)v),
			json_integer((json_int_t)counts[v]));
	return fields_whole(object, bad);
}

static size_t count_outliers(const struct node_fleet *fleet)
{
	size_t count = 0;
	for (size_t i = 0; i < fleet->node_count; i++)
		count += fleet->nodes[i].bad_outliers > 0;
	return count;
}

static size_t count_gaps(const struct node_fleet *fleet)
{
	size_t count = 0;
	for (size_t i = 0; i < fleet->node_count; i++)
		count += json_array_size(fleet->nodes[i].gaps) > 0;
	return count;
}

static size_t count_missing(const json_t *expected)
{
	return json_array_size(json_object_get(expected, "missing"));
}

/* "40 nodes: 2 FAIL, 36 PASS; 1 stands out; 2 of 40 are missing". */
static json_t *fleet_sentence(
	const struct node_fleet *fleet, const json_t *counts, const json_t *expected)
{
	struct buffer text = {0};
	bool listed = false;
	const size_t outliers = count_outliers(fleet);
	buffer_format(&text, "%zu node%s:", fleet->node_count, fleet->node_count == 1 ? "" : "s");
	for (int v = VERDICT_FAIL; v >= VERDICT_PASS; v--) {
		const char *name = accept_verdict_name((enum accept_verdict)v);
		const json_int_t count = json_integer_value(json_object_get(counts, name));
		if (count > 0)
			buffer_format(
				&text, "%s %lld %s", listed ? "," : "", (long long)count, name);
		listed = listed || count > 0;
	}
	if (outliers > 0)
		buffer_format(&text, "; %zu outlier%s", outliers, outliers == 1 ? "" : "s");
	if (count_gaps(fleet) > 0)
		buffer_format(&text, "; %zu not comparable", count_gaps(fleet));
	if (count_missing(expected) > 0)
		buffer_format(&text, "; %zu of %lld expected nodes did not report",
			count_missing(expected),
			(long long)json_integer_value(json_object_get(expected, "count")));
	return buffer_json(&text);
}

/* 1: a node failed or stands out; 3: one has no verdict, did not report, or has one that is not that of the others; 0. */
static int fleet_status(const struct node_fleet *fleet, const json_t *expected)
{
	bool undecided = count_missing(expected) > 0 || fleet->unreadable > 0;
	for (size_t i = 0; i < fleet->node_count; i++) {
		if (fleet->nodes[i].rank >= RANK_OUTLIER)
			return EXIT_STATUS_FAILED;
		undecided = undecided || fleet->nodes[i].rank >= RANK_STRANGER ||
			    fleet->nodes[i].newest->verdict == VERDICT_SKIP;
	}
	return undecided ? EXIT_STATUS_CANNOT : EXIT_STATUS_DONE;
}

static const char *tier_of(const struct node_result *result)
{
	return result->tier;
}

static const char *program_of(const struct node_result *result)
{
	return result->program;
}

/* Nodes whose results are not what most results are: their verdicts and figures are hard to compare. */
static int note_unlike(
	const struct node_fleet *fleet, fleet_text *of, const char *what, json_t *notes)
{
	size_t most;
	const char *common = fleet_most_common(fleet, of, FLEET_ALL, &most);
	struct buffer text = {0};
	size_t count = 0;
	for (size_t i = 0; i < fleet->node_count; i++)
		count += strcmp(of(fleet->nodes[i].newest), common) != 0;
	if (count == 0)
		return 0;
	buffer_format(&text, "%zu node%s by another %s than most:", count,
		count == 1 ? " was judged" : "s were judged", what);
	size_t named = 0;
	for (size_t i = 0; i < fleet->node_count && named < NAMES_MOST; i++)
		if (strcmp(of(fleet->nodes[i].newest), common) != 0)
			buffer_format(
				&text, "%s %s", named++ ? "," : "", fleet->nodes[i].newest->name);
	if (named < count)
		buffer_text(&text, " and others");
	return json_array_append_new(notes, buffer_json(&text));
}

static int note_unreadable(const struct node_fleet *fleet, json_t *notes)
{
	if (fleet->unreadable == 0)
		return 0;
	return json_array_append_new(
		notes, json_sprintf("%zu file%s could not be used: the node%s may be missing here.",
			       fleet->unreadable, fleet->unreadable == 1 ? "" : "s",
			       fleet->unreadable == 1 ? " that it is of" : "s that they are of"));
}

static json_t *fleet_notes_json(const struct node_fleet *fleet)
{
	json_t *notes = json_array();
	const int bad = !notes || note_unreadable(fleet, notes) ||
			note_unlike(fleet, fleet_plan_of, "plan", notes) ||
			note_unlike(fleet, tier_of, "tier", notes) ||
			note_unlike(fleet, program_of, "version of mlbench", notes);
	return fields_whole(notes, bad);
}

static json_t *groups_json(const struct node_fleet *fleet)
{
	json_t *array = json_array();
	int bad = !array;
	for (size_t i = 0; i < fleet->group_count && !bad; i++)
		bad = json_array_append_new(array, group_json(fleet, i));
	return fields_whole(array, bad);
}

json_t *fleet_document(struct node_fleet *fleet)
{
	json_t *counts = counts_json(fleet);
	json_t *expected = expected_json(fleet);
	json_t *nodes = nodes_json(fleet);
	size_t results = 0;
	for (size_t i = 0; i < fleet->node_count; i++)
		results += fleet->nodes[i].results;
	return json_pack("{s:s, s:s, s:o, s:i, s:I, s:I, s:f, s:I, s:o, s:o, s:O, s:o, s:o, s:o}",
		"schema", FLEET_SCHEMA, "program", MLBENCH_VERSION, "sentence",
		fleet_sentence(fleet, counts, expected), "exit_status",
		fleet_status(fleet, expected), "node_count", (json_int_t)fleet->node_count,
		"result_count", (json_int_t)results, "false_alarms", FLEET_RATE, "tests",
		(json_int_t)fleet->tests, "counts", counts, "expected", expected, "left_out",
		fleet->left_out, "nodes", nodes, "groups", groups_json(fleet), "notes",
		fleet_notes_json(fleet));
}
