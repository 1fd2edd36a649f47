/* Nodes into groups of hardware, figures into metrics, metrics into outliers, and what most nodes have. */
#include "harness/accept/fleet_nodes.h"

#include "harness/accept/fingerprint.h"
#include "harness/analyze/comparison.h"
#include "harness/analyze/statistics.h"
#include "harness/base/array.h"
#include "harness/record/fields.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAJORITY_LEAST = 3 /* nodes of which there can be one */ };

/* --- nodes, groups and metrics ---------------------------------------------------------------- */

static int fleet_grow(void **list, size_t count, size_t *room, size_t size)
{
	if (count < *room)
		return 0;
	const size_t more = *room ? 2 * *room : 32;
	void *fresh = realloc(*list, more * size);
	if (!fresh)
		return -ENOMEM;
	*list = fresh;
	*room = more;
	return 0;
}

static bool less_is_better(const struct figure *figure)
{
	return figure->sense == FIGURE_LESS_IS_BETTER;
}

double fleet_badness(const struct figure *figure, double distance)
{
	if (figure->sense == FIGURE_NEITHER)
		return fabs(distance);
	return less_is_better(figure) ? distance : -distance;
}

/* Nodes of results that are sorted by name and time. */
static int fleet_take_nodes(struct node_fleet *fleet, struct node_results *results)
{
	node_results_sort(results);
	fleet->nodes = calloc(results->count + 1, sizeof *fleet->nodes);
	if (!fleet->nodes)
		return -ENOMEM;
	for (size_t i = 0; i < results->count; i++) {
		const struct node_result *const result = &results->list[i];
		if (fleet->request->since_s > 0 &&
			!(result->started_s >= fleet->request->since_s)) {
			fleet->failed |= json_array_append_new(fleet->left_out,
						 json_pack("{s:o, s:o}", "file",
							 fields_text(result->path), "why",
							 json_sprintf("older than --since %s",
								 fleet->request->since))) != 0;
			continue;
		}
		struct fleet_node *last =
			fleet->node_count ? &fleet->nodes[fleet->node_count - 1] : NULL;
		if (last && strcmp(last->newest->name, result->name) == 0) {
			last->before = last->before ? last->before : result;
			last->results++;
			continue;
		}
		fleet->nodes[fleet->node_count++] =
			(struct fleet_node){.newest = result, .results = 1};
	}
	return 0;
}

static int order_groups(const void *left, const void *right)
{
	const struct fleet_group *const a = left;
	const struct fleet_group *const b = right;
	return (a->nodes < b->nodes) - (a->nodes > b->nodes);
}

static size_t group_of(const struct node_fleet *fleet, const json_t *fingerprint)
{
	size_t at = 0;
	while (at < fleet->group_count &&
		!fingerprint_same(fingerprint, fleet->groups[at].fingerprint, NULL))
		at++;
	return at;
}

/* The largest first. */
static int fleet_take_groups(struct node_fleet *fleet)
{
	fleet->groups = calloc(fleet->node_count + 1, sizeof *fleet->groups);
	if (!fleet->groups)
		return -ENOMEM;
	for (size_t i = 0; i < fleet->node_count; i++) {
		const json_t *its = fleet->nodes[i].newest->fingerprint;
		const size_t at = group_of(fleet, its);
		if (at == fleet->group_count)
			fleet->groups[fleet->group_count++].fingerprint = its;
		fleet->groups[at].nodes++;
	}
	qsort(fleet->groups, fleet->group_count, sizeof *fleet->groups, order_groups);
	for (size_t i = 0; i < fleet->node_count; i++)
		fleet->nodes[i].group = group_of(fleet, fleet->nodes[i].newest->fingerprint);
	return 0;
}

static struct fleet_metric *metric_of(
	struct node_fleet *fleet, size_t group, const struct node_series *series, bool worst)
{
	for (size_t i = 0; i < fleet->metric_count; i++) {
		struct fleet_metric *const at = &fleet->metrics[i];
		if (at->group == group && at->figure == series->figures->figure &&
			at->check == series->figures->check && at->worst == worst &&
			strcmp(at->place, series->place) == 0)
			return at;
	}
	if (fleet_grow((void **)&fleet->metrics, fleet->metric_count, &fleet->metric_room,
		    sizeof *fleet->metrics))
		return NULL;
	struct fleet_metric *fresh = &fleet->metrics[fleet->metric_count++];
	*fresh = (struct fleet_metric){.group = group,
		.check = series->figures->check,
		.place = series->place,
		.figure = series->figures->figure,
		.worst = worst};
	return fresh;
}

static int fleet_add_value(struct node_fleet *fleet, size_t node, const struct node_series *series,
	bool worst, struct spread_value of, const char *place)
{
	struct fleet_metric *metric = metric_of(fleet, fleet->nodes[node].group, series, worst);
	if (!metric || fleet_grow((void **)&metric->values, metric->count, &metric->room,
			       sizeof *metric->values))
		return -ENOMEM;
	metric->values[metric->count++] =
		(struct fleet_value){.node = node, .of = of, .worst = place};
	return 0;
}

/* Of places that are alike: the median of their medians, its error by their repetitions, and the worst place. */
static int fleet_add_series(struct node_fleet *fleet, size_t node, const struct node_series *series)
{
	double *room = calloc(series->repetitions + series->count, sizeof *room);
	double *medians = room;
	size_t worst_at = 0;
	struct spread_value worst = {0};
	double error = 0;
	if (!room)
		return -ENOMEM;
	for (size_t i = 0; i < series->count; i++) {
		const struct node_figure *const figure = &series->figures[i];
		double *values = room + series->count;
		memcpy(values, figure->values, figure->count * sizeof *values);
		const struct spread_value of = spread_value_of(values, figure->count);
		medians[i] = of.value;
		error += of.error * of.error;
		if (i == 0 || (less_is_better(figure->figure) ? of.value > worst.value
							      : of.value < worst.value)) {
			worst = of;
			worst_at = i;
		}
	}
	struct spread_value all = worst;
	if (series->count > 1) {
		all.value = statistics_median(medians, series->count);
		all.error = sqrt(error) / (double)series->count;
		all.reach = worst.reach / worst.error * all.error;
	}
	int code = fleet_add_value(fleet, node, series, false, all, NULL);
	if (!code && series->count > 1)
		code = fleet_add_value(
			fleet, node, series, true, worst, series->figures[worst_at].place);
	free(room);
	return code;
}

static int fleet_take_metrics(struct node_fleet *fleet)
{
	int code = 0;
	for (size_t i = 0; i < fleet->node_count && !code; i++) {
		struct node_series series;
		size_t at = 0;
		while (!code && node_series_next(fleet->nodes[i].newest, &at, &series))
			code = fleet_add_series(fleet, i, &series);
	}
	for (size_t m = 0; m < fleet->metric_count; m++)
		if (fleet->metrics[m].count >= SPREAD_NODES_LEAST)
			fleet->tests += fleet->metrics[m].count;
	return code;
}

static int fleet_judge_metric(struct node_fleet *fleet, struct fleet_metric *metric)
{
	struct spread_value *values = calloc(metric->count + 1, sizeof *values);
	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < metric->count; i++)
		values[i] = metric->values[i].of;
	spread_fit(&metric->spread, values, metric->count, metric->figure->unit);
	free(values);
	fleet->groups[metric->group].metrics++;
	for (size_t i = 0; i < metric->count; i++) {
		struct fleet_value *const value = &metric->values[i];
		struct fleet_node *const node = &fleet->nodes[value->node];
		value->z = spread_z(&metric->spread, &value->of);
		value->outlier = spread_is_outlier(&metric->spread, &value->of,
			metric->figure->unit, FLEET_RATE, fleet->tests);
		const double bad = fleet_badness(metric->figure, value->z);
		metric->outliers += value->outlier;
		node->bad_outliers += value->outlier && bad > 0;
		node->compared += metric->count > 1;
		/* what is an outlier stands before what is only far out */
		if (metric->count > 1 && bad > 0 &&
			(!node->worst || value->outlier > node->worst_value->outlier ||
				(value->outlier == node->worst_value->outlier &&
					bad > node->bad))) {
			node->worst = metric;
			node->worst_value = value;
			node->bad = bad;
		}
	}
	return 0;
}

/* --- what most nodes have ---------------------------------------------------------------------- */

/* Of the node itself, or of the moment. */
static bool fact_is_the_nodes_own(const struct fact *fact)
{
	static const char *const names[] = {"kernel.nodename", "data.path", "data.free",
		"memory.available", "memory.huge_pages_free", "cgroup.cpu_limit_group",
		"cgroup.memory_limit_group"};
	char name[COMPARE_NAME_BYTES];
	if (strcmp(fact->group, "node") == 0 || strcmp(fact->group, "load") == 0)
		return true;
	(void)snprintf(name, sizeof name, "%s.%s", fact->group, fact->name);
	for (size_t i = 0; i < COUNT(names); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* Missing is one value, whatever the reason. */
static const char *fact_value(const struct fact *fact)
{
	return fact->kind == FACT_MISSING ? "" : fact->text;
}

static int order_names(const struct fact *a, const struct fact *b)
{
	const int groups = strcmp(a->group, b->group);
	return groups ? groups : strcmp(a->name, b->name);
}

int fleet_order_facts(const void *left, const void *right)
{
	const struct fact *const a = ((const struct fleet_fact *)left)->fact;
	const struct fact *const b = ((const struct fleet_fact *)right)->fact;
	const int names = order_names(a, b);
	return names ? names : strcmp(fact_value(a), fact_value(b));
}

/* The facts of one name, from `first` to before `end`, which are sorted by value: the value that most have, or of numbers
 * that vary, the median. */
static void add_majority(struct fleet_group *group, size_t first, size_t end)
{
	size_t most = 0;
	size_t best = first;
	for (size_t i = first; i < end;) {
		size_t same = 1;
		while (i + same < end && strcmp(fact_value(group->facts[i].fact),
						 fact_value(group->facts[i + same].fact)) == 0)
			same++;
		if (same > most) {
			most = same;
			best = i;
		}
		i += same;
	}
	const struct fact *const fact = group->facts[best].fact;
	if (2 * most > end - first && fact->kind == FACT_TEXT)
		fact_text(&group->majority, fact->group, fact->name, "%s", fact->text);
	else if (2 * most > end - first && fact->kind == FACT_MISSING)
		fact_missing(&group->majority, fact->group, fact->name, "%s", fact->text);
	else if (2 * most > end - first)
		fact_number(&group->majority, fact->group, fact->name, fact->number, fact->unit);
}

static int fleet_take_majority(struct node_fleet *fleet, size_t at)
{
	struct fleet_group *const group = &fleet->groups[at];
	size_t most = 0;
	if (group->nodes < MAJORITY_LEAST)
		return 0;
	for (size_t i = 0; i < fleet->node_count; i++)
		if (fleet->nodes[i].group == at)
			most += fleet->nodes[i].newest->facts.count;
	group->facts = calloc(most + 1, sizeof *group->facts);
	if (!group->facts)
		return -ENOMEM;
	for (size_t i = 0; i < fleet->node_count; i++) {
		const struct fact_list *const facts = &fleet->nodes[i].newest->facts;
		for (size_t k = 0; fleet->nodes[i].group == at && k < facts->count; k++)
			if (!fact_is_the_nodes_own(&facts->facts[k]))
				group->facts[group->fact_count++] =
					(struct fleet_fact){&facts->facts[k], i};
	}
	qsort(group->facts, group->fact_count, sizeof *group->facts, fleet_order_facts);
	for (size_t i = 0; i < group->fact_count;) {
		size_t end = i + 1;
		while (end < group->fact_count &&
			order_names(group->facts[i].fact, group->facts[end].fact) == 0)
			end++;
		add_majority(group, i, end);
		i = end;
	}
	return group->majority.failed ? -ENOMEM : 0;
}

/* --- what keeps a good verdict from being that of the others ------------------------------------- */

enum { GAPS_MOST = 8 };

/* What of a group's results is counted: of how many nodes. */
struct fleet_cover {
	const char *what;
	size_t nodes;
};

static int order_covers(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Everything that nodes of the group were judged by or measured, each once; *count of them.  NULL without memory. */
static struct fleet_cover *covers_of_group(
	const struct node_fleet *fleet, size_t group, size_t *count)
{
	size_t all = 0;
	for (size_t i = 0; i < fleet->node_count; i++)
		if (fleet->nodes[i].group == group)
			all += fleet->nodes[i].newest->covered_count;
	const char **texts = calloc(all + 1, sizeof *texts);
	struct fleet_cover *covers = calloc(all + 1, sizeof *covers);
	all = 0;
	*count = 0;
	for (size_t i = 0; i < fleet->node_count && texts && covers; i++) {
		const struct node_result *its = fleet->nodes[i].newest;
		for (size_t k = 0; k < its->covered_count && fleet->nodes[i].group == group; k++)
			texts[all++] = its->covered[k];
	}
	if (texts && covers)
		qsort(texts, all, sizeof *texts, order_covers);
	for (size_t i = 0; i < all; i++) {
		/* Equal texts are equal pointers. */
		if (*count == 0 || covers[*count - 1].what != texts[i])
			covers[(*count)++].what = texts[i];
		covers[*count - 1].nodes++;
	}
	free(texts);
	return covers;
}

/* What failed or has no verdict says so itself. */
static bool is_compared(const struct fleet_node *node, size_t group)
{
	return node->group == group && node->newest->verdict < VERDICT_ERROR;
}

/* Of `others` nodes, most. */
static bool is_most(size_t nodes, size_t others)
{
	return 2 * nodes > others;
}

static int gaps_of_measurements(const struct fleet_group *group, struct fleet_node *node,
	const struct fleet_cover *covers, size_t count)
{
	size_t lacking = 0;
	int bad = 0;
	for (size_t i = 0; i < count && !bad; i++) {
		if (!is_most(covers[i].nodes, group->nodes - 1) ||
			node_result_covers(node->newest, covers[i].what))
			continue;
		if (lacking++ < GAPS_MOST)
			bad = json_array_append_new(node->gaps,
				json_sprintf("not measured: %s, which %zu of %zu like nodes have",
					covers[i].what, covers[i].nodes, group->nodes));
	}
	if (lacking > GAPS_MOST)
		bad = bad || json_array_append_new(
				     node->gaps, json_sprintf("and %zu more that were not measured",
							 lacking - GAPS_MOST));
	return bad;
}

const char *fleet_plan_of(const struct node_result *result)
{
	return result->plan;
}

static const char *baseline_of(const struct node_result *result)
{
	return result->baseline;
}

static bool is_of_group(const struct node_fleet *fleet, size_t node, size_t group)
{
	return group == FLEET_ALL || fleet->nodes[node].group == group;
}

const char *fleet_most_common(
	const struct node_fleet *fleet, fleet_text *of, size_t group, size_t *count)
{
	const char *best = "";
	size_t nodes = 0;
	*count = 0;
	for (size_t i = 0; i < fleet->node_count; i++)
		nodes += is_of_group(fleet, i, group);
	for (size_t i = 0; i < fleet->node_count; i++) {
		const char *its = of(fleet->nodes[i].newest);
		size_t same = 0;
		if (!is_of_group(fleet, i, group) || (*count > 0 && strcmp(its, best) == 0))
			continue;
		for (size_t k = 0; k < fleet->node_count; k++)
			same += is_of_group(fleet, k, group) &&
				strcmp(of(fleet->nodes[k].newest), its) == 0;
		if (same > *count) {
			*count = same;
			best = its;
		}
		if (2 * *count >= nodes)
			break; /* no other can have more */
	}
	return best;
}

/* Of each node of the group that was judged by another one than most. */
static int gaps_of_judging(
	const struct node_fleet *fleet, size_t group, fleet_text *of, const char *what)
{
	size_t most;
	int bad = 0;
	const char *common = fleet_most_common(fleet, of, group, &most);
	for (size_t i = 0; i < fleet->node_count && !bad; i++)
		if (is_compared(&fleet->nodes[i], group) &&
			strcmp(of(fleet->nodes[i].newest), common) != 0)
			bad = json_array_append_new(fleet->nodes[i].gaps,
				json_sprintf("judged by another %s than %zu of %zu like nodes",
					what, most, fleet->groups[group].nodes));
	return bad;
}

static int fleet_take_gaps(struct node_fleet *fleet)
{
	int bad = 0;
	for (size_t i = 0; i < fleet->node_count; i++) {
		fleet->nodes[i].gaps = json_array();
		bad |= !fleet->nodes[i].gaps;
	}
	for (size_t group = 0; group < fleet->group_count && !bad; group++) {
		size_t count;
		struct fleet_cover *covers = covers_of_group(fleet, group, &count);
		bad = !covers;
		for (size_t i = 0; i < fleet->node_count && !bad; i++)
			if (is_compared(&fleet->nodes[i], group))
				bad = gaps_of_measurements(
					&fleet->groups[group], &fleet->nodes[i], covers, count);
		bad = bad || gaps_of_judging(fleet, group, fleet_plan_of, "plan") ||
		      gaps_of_judging(fleet, group, baseline_of, "baseline");
		free(covers);
	}
	return bad ? -ENOMEM : 0;
}

static void fleet_release(struct node_fleet *fleet)
{
	for (size_t i = 0; i < fleet->metric_count; i++)
		free(fleet->metrics[i].values);
	for (size_t i = 0; i < fleet->node_count; i++)
		json_decref(fleet->nodes[i].gaps);
	for (size_t i = 0; i < fleet->group_count; i++) {
		fact_list_release(&fleet->groups[i].majority);
		free(fleet->groups[i].facts);
	}
	free(fleet->metrics);
	free(fleet->groups);
	free(fleet->nodes);
	json_decref(fleet->left_out);
}

int fleet_make(struct node_results *results, const struct fleet_request *request, json_t **document,
	struct error *err)
{
	struct node_fleet fleet = {.request = request,
		.left_out = results->left_out ? json_deep_copy(results->left_out) : json_array()};
	*document = NULL;
	fleet.unreadable = json_array_size(fleet.left_out);
	int code = fleet.left_out ? fleet_take_nodes(&fleet, results) : -ENOMEM;
	if (!code && fleet.node_count == 0) {
		fleet_release(&fleet);
		return error_set(err, -ENODATA, "no results are left%s%s",
			request->since ? " since " : "", request->since ? request->since : "");
	}
	code = code ? code : fleet_take_groups(&fleet);
	code = code ? code : fleet_take_gaps(&fleet);
	code = code ? code : fleet_take_metrics(&fleet);
	for (size_t i = 0; i < fleet.metric_count && !code; i++)
		code = fleet_judge_metric(&fleet, &fleet.metrics[i]);
	for (size_t i = 0; i < fleet.group_count && !code; i++)
		code = fleet_take_majority(&fleet, i);
	if (!code)
		*document = fleet_document(&fleet);
	code = *document && !fleet.failed ? 0
					  : error_set(err, -ENOMEM, "out of memory for the fleet");
	if (code) {
		json_decref(*document);
		*document = NULL;
	}
	fleet_release(&fleet);
	return code;
}
