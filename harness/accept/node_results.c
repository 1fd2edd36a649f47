/* Finding results, and taking out of each what fleets and baselines look at. */
#include "harness/accept/node_results.h"

#include "harness/accept/fingerprint.h"
#include "harness/base/array.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/record/fields.h"
#include "harness/record/record.h"

#include <errno.h>
#include <fts.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define RESULT_NAME "accept.json"

enum {
	RESULT_BYTES_MAX = 256 << 20,
	SEARCH_DEPTH_MAX = 8,
	FINDINGS_KEPT = 8,
	NOTES_KEPT = 16,
	TEXT_SLOTS_FIRST = 256,
	RESULTS_ROOM_FIRST = 32,
	READERS_MOST = 4,
};

/* --- texts that many results share ------------------------------------------------------------ */

struct node_text {
	char **slots; /* open addressing; a power of two of them */
	size_t count, room;
};

static char **text_slot(char **slots, size_t room, const char *text)
{
	size_t at = (size_t)hash_bytes(text, strlen(text), 0) & (room - 1);
	while (slots[at] && strcmp(slots[at], text) != 0)
		at = (at + 1) & (room - 1);
	return &slots[at];
}

static int grow_texts(struct node_text *texts)
{
	const size_t room = texts->room ? 2 * texts->room : TEXT_SLOTS_FIRST;
	char **slots = calloc(room, sizeof *slots);
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < texts->room; i++)
		if (texts->slots[i])
			*text_slot(slots, room, texts->slots[i]) = texts->slots[i];
	free(texts->slots);
	texts->slots = slots;
	texts->room = room;
	return 0;
}

/* A text that lives as long as the set; NULL without memory. */
static const char *node_results_keep(struct node_results *results, const char *text)
{
	if (!results->texts)
		results->texts = calloc(1, sizeof *results->texts);
	struct node_text *const texts = results->texts;
	if (!texts || (2 * texts->count >= texts->room && grow_texts(texts)))
		return NULL;
	char **slot = text_slot(texts->slots, texts->room, text);
	if (!*slot) {
		*slot = strdup(text);
		texts->count += *slot != NULL;
	}
	return *slot;
}

static void free_texts(struct node_text *texts)
{
	for (size_t i = 0; texts && i < texts->room; i++)
		free(texts->slots[i]);
	if (texts)
		free(texts->slots);
	free(texts);
}

/* --- members of a document -------------------------------------------------------------------- */

/* Of places that are alike on a node, one by one: "core 3" of a figure that is measured on each core, "gpu-01 to gpu-02" of one
 * of each link.  Else the place is a part of what is compared. */
static bool place_is_one_of_many(const struct figure *figure, const char *place)
{
	const size_t length = strlen(figure->place);
	if (strcmp(figure->place, "link") == 0)
		return *place;
	return length > 0 && strncmp(place, figure->place, length) == 0 && place[length] == ' ' &&
	       place[length + 1] &&
	       place[length + 1 + strspn(place + length + 1, "0123456789")] == '\0';
}

static enum accept_kind kind_of(const json_t *check)
{
	const char *name = fields_text_of(check, "kind");
	int kind = 0;
	while (kind < ACCEPT_KINDS && strcmp(accept_kind_name((enum accept_kind)kind), name) != 0)
		kind++;
	return (enum accept_kind)kind;
}

double node_result_time(const char *text)
{
	struct tm tm = {0};
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	return end ? (double)timegm(&tm) : (double)NAN;
}

/* --- figures ---------------------------------------------------------------------------------- */

static size_t count_values(const json_t *checks)
{
	size_t i;
	size_t j;
	size_t all = 0;
	const json_t *check;
	const json_t *entry;
	json_array_foreach(checks, i, check)
	{
		json_array_foreach(json_object_get(check, "values"), j, entry)
		{
			all += json_array_size(json_object_get(entry, "values"));
		}
	}
	return all;
}

static size_t count_figures(const json_t *checks)
{
	size_t i;
	size_t all = 0;
	const json_t *check;
	json_array_foreach(checks, i, check)
	{
		all += json_array_size(json_object_get(check, "values"));
	}
	return all;
}

/* A number that is a text, or larger than anything, is damage: it must not be taken for "not measured", or for a good one. */
static int refuse_value(
	const char *check, const struct figure *figure, const json_t *value, struct error *err)
{
	const bool number = figure->unit != FIGURE_TEXT;
	if (json_is_null(value) || (!number && json_is_string(value)) ||
		(number && json_is_number(value) &&
			figure_value_is_possible(json_number_value(value))))
		return 0;
	char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
	const int code = error_set(err, -EINVAL, "%s of check '%.64s' is damaged: %.64s is no %s",
		figure->name, check, text ? text : "a value",
		number ? "number that can be measured" : "text");
	free(text);
	return code;
}

static int take_figure(struct node_results *results, struct node_result *node, const char *check,
	const struct figure *figure, const json_t *entry, double **free_values, struct error *err)
{
	size_t i;
	const json_t *value;
	int code = 0;
	struct node_figure *at = &node->figures[node->figure_count];
	*at = (struct node_figure){.check = node_results_keep(results, check),
		.place = node_results_keep(results, fields_text_of(entry, "place")),
		.figure = figure,
		.values = *free_values};
	if (!json_is_array(json_object_get(entry, "values")))
		code = refuse_value(check, figure, entry, err);
	json_array_foreach(json_object_get(entry, "values"), i, value)
	{
		code = code ? code : refuse_value(check, figure, value, err);
		if (json_is_number(value))
			at->values[at->count++] = json_number_value(value);
	}
	*free_values += at->count;
	node->figure_count += at->count > 0;
	return at->check && at->place ? code : -ENOMEM;
}

static bool figure_is_pooled(const struct node_figure *figure)
{
	return place_is_one_of_many(figure->figure, figure->place);
}

/* Places that are alike stand together, in the order of their numbers. */
static int order_node_figures(const void *left, const void *right)
{
	const struct node_figure *const a = left;
	const struct node_figure *const b = right;
	const int checks = strcmp(a->check, b->check);
	const int figures = strcmp(a->figure->name, b->figure->name);
	const int pooled = (int)figure_is_pooled(a) - (int)figure_is_pooled(b);
	return checks    ? checks
	       : figures ? figures
	       : pooled  ? pooled
			 : strverscmp(a->place, b->place);
}

/* Of checks that came to their end alone: what a check measured before it died is evidence, and no figure. */
static int take_figures(struct node_results *results, struct node_result *node,
	const json_t *checks, struct error *err)
{
	size_t i;
	size_t j;
	const json_t *check;
	const json_t *entry;
	int code = 0;
	node->values = calloc(count_values(checks) + 1, sizeof *node->values);
	node->figures = calloc(count_figures(checks) + 1, sizeof *node->figures);
	if (!node->values || !node->figures)
		return -ENOMEM;
	double *free_values = node->values;
	json_array_foreach(checks, i, check)
	{
		const enum accept_kind kind = kind_of(check);
		if (kind == ACCEPT_KINDS || strcmp(fields_text_of(check, "state"), "done") != 0)
			continue;
		json_array_foreach(json_object_get(check, "values"), j, entry)
		{
			/* One of a newer program is no figure here. */
			const struct figure *figure =
				figure_find(kind, fields_text_of(entry, "figure"));
			if (figure && !code)
				code = take_figure(results, node, fields_text_of(check, "check"),
					figure, entry, &free_values, err);
		}
		json_array_foreach(json_object_get(check, "facts"), j, entry)
		{
			const struct figure *figure =
				figure_find(kind, fields_text_of(entry, "figure"));
			if (figure && !code)
				code = refuse_value(fields_text_of(check, "check"), figure,
					json_object_get(entry, "value"), err);
		}
	}
	if (!code && node->figure_count > 1)
		qsort(node->figures, node->figure_count, sizeof *node->figures, order_node_figures);
	return code;
}

bool node_series_next(const struct node_result *node, size_t *at, struct node_series *series)
{
	if (*at >= node->figure_count)
		return false;
	const struct node_figure *const first = &node->figures[*at];
	const bool pooled = figure_is_pooled(first);
	*series =
		(struct node_series){.figures = first, .place = pooled ? PLACE_ALL : first->place};
	do
		series->repetitions += first[series->count++].count;
	while (*at + series->count < node->figure_count && pooled &&
		first[series->count].check == first->check &&
		first[series->count].figure == first->figure &&
		figure_is_pooled(&first[series->count]));
	*at += series->count;
	return true;
}

void node_series_values(const struct node_series *series, double *values)
{
	for (size_t i = 0; i < series->count; i++) {
		memcpy(values, series->figures[i].values,
			series->figures[i].count * sizeof *values);
		values += series->figures[i].count;
	}
}

static void take_facts(struct node_result *node, const json_t *checks)
{
	size_t i;
	size_t j;
	const json_t *check;
	const json_t *entry;
	json_array_foreach(checks, i, check)
	{
		json_array_foreach(json_object_get(check, "facts"), j, entry)
		{
			const json_t *value = json_object_get(entry, "value");
			const char *place = fields_text_of(entry, "place");
			char name[2 * NODE_PLACE_BYTES];
			(void)snprintf(name, sizeof name, "%s%s%s", fields_text_of(entry, "figure"),
				*place ? " @ " : "", place);
			if (json_is_string(value))
				fact_text(&node->facts, fields_text_of(check, "check"), name, "%s",
					json_string_value(value));
			else if (json_is_number(value))
				fact_number(&node->facts, fields_text_of(check, "check"), name,
					json_number_value(value), NULL);
		}
	}
}

static int order_texts(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

bool node_result_covers(const struct node_result *node, const char *what)
{
	return node->covered_count > 0 && bsearch(&what, node->covered, node->covered_count,
						  sizeof *node->covered, order_texts) != NULL;
}

static int cover(struct node_results *results, struct node_result *node, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static int cover(struct node_results *results, struct node_result *node, const char *format, ...)
{
	char what[512];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(what, sizeof what, format, args);
	va_end(args);
	node->covered[node->covered_count] = node_results_keep(results, what);
	return node->covered[node->covered_count++] ? 0 : -ENOMEM;
}

/* The checks that were judged, the figures that were measured at their places, and what was found out of the inventory. */
static int take_covered(
	struct node_results *results, struct node_result *node, const json_t *document)
{
	size_t i;
	size_t kept = 0;
	int bad = 0;
	const json_t *check;
	const json_t *checks = json_object_get(document, "checks");
	node->covered = calloc(json_array_size(checks) + node->figure_count + node->facts.count + 1,
		sizeof *node->covered);
	if (!node->covered)
		return -ENOMEM;
	json_array_foreach(checks, i, check)
	{
		bad |= cover(results, node, "check '%s'", fields_text_of(check, "check"));
	}
	for (i = 0; i < node->figure_count; i++) {
		const struct node_figure *at = &node->figures[i];
		/* A link is measured by its two nodes alone: in a job of three, two have it. */
		const bool placed = *at->place && strcmp(at->figure->place, "link") != 0;
		bad |= cover(results, node, "%s%s%s of '%s'", at->figure->name,
			placed ? " at " : "", placed ? at->place : "", at->check);
	}
	for (i = node->environment_count; i < node->facts.count; i++) {
		const struct fact *fact = &node->facts.facts[i];
		bad |= cover(results, node, "%.*s of '%s'", (int)strcspn(fact->name, " "),
			fact->name, fact->group);
	}
	if (bad)
		return -ENOMEM;
	qsort(node->covered, node->covered_count, sizeof *node->covered, order_texts);
	for (i = 0; i < node->covered_count; i++)
		if (kept == 0 || node->covered[i] != node->covered[kept - 1])
			node->covered[kept++] = node->covered[i];
	node->covered_count = kept;
	return 0;
}

static int take_notes(struct node_result *node, const json_t *checks)
{
	size_t i;
	const json_t *check;
	int bad = 0;
	node->notes = json_object();
	json_array_foreach(checks, i, check)
	{
		json_t *notes = json_object_get(check, "notes");
		if (json_array_size(notes) > 0 && json_array_size(notes) <= NOTES_KEPT)
			bad |= json_object_set(node->notes, fields_text_of(check, "check"), notes);
	}
	return bad || !node->notes ? -ENOMEM : 0;
}

/* --- verdicts --------------------------------------------------------------------------------- */

static bool is_bad(const char *verdict)
{
	const enum accept_verdict of = accept_verdict_of(verdict);
	return of == VERDICT_FAIL || of == VERDICT_ERROR;
}

/* A criterion that means a baseline cannot hold before there is one: it does not keep a node out of the first. */
static bool lacks_baseline(const json_t *document, const json_t *finding)
{
	const char *asked = fields_text_of(finding, "asked");
	return !json_is_object(
		       json_object_get(json_object_get(document, "judged_by"), "baseline")) &&
	       (strstr(asked, "baseline") || strstr(asked, "similarity")) &&
	       accept_verdict_of(fields_text_of(finding, "verdict")) == VERDICT_ERROR;
}

static char *unfit_by_check(const json_t *document, const json_t *check)
{
	size_t i;
	size_t lacking = 0;
	const json_t *finding;
	const json_t *findings = json_object_get(check, "findings");
	char *why = NULL;
	json_array_foreach(findings, i, finding)
	{
		if (!is_bad(fields_text_of(finding, "verdict")))
			continue;
		if (lacks_baseline(document, finding)) {
			lacking++;
			continue;
		}
		return asprintf(&why, "%s: %s", fields_text_of(check, "check"),
			       *fields_text_of(finding, "sentence")
				       ? fields_text_of(finding, "sentence")
				       : fields_text_of(finding, "verdict")) < 0
			       ? NULL
			       : why;
	}
	if (lacking > 0)
		return NULL;
	return asprintf(&why, "%s: %s", fields_text_of(check, "check"),
		       *fields_text_of(check, "sentence") ? fields_text_of(check, "sentence")
							  : fields_text_of(check, "verdict")) < 0
		       ? NULL
		       : why;
}

/* What other work on the node may have slowed is no limit for others, though no criterion was judged by it. */
static char *unfit_by_load(const json_t *document)
{
	size_t i, j;
	const json_t *check, *condition;
	char *why = NULL;
	json_array_foreach(json_object_get(document, "measured"), i, check)
	{
		json_array_foreach(json_object_get(check, "conditions"), j, condition)
		{
			if (strcmp(fields_text_of(condition, "is"), CONDITION_BUSY) != 0)
				continue;
			return asprintf(&why, "%s: the node was busy: %s",
				       fields_text_of(check, "check"),
				       fields_text_of(condition, "text")) < 0
				       ? NULL
				       : why;
		}
	}
	return NULL;
}

static int find_unfit(struct node_result *node, const json_t *document)
{
	size_t i;
	const json_t *check;
	if (!result_is_whole(document)) {
		node->unfit = strdup(
			!node->complete ? "it was interrupted, so not everything is measured"
			: json_object_get(document, "test")
				? "faults were planted, or facts came from a folder for tests"
				: "only a part of the plan was run (--check, --for)");
		return node->unfit ? 0 : -ENOMEM;
	}
	json_array_foreach(json_object_get(document, "checks"), i, check)
	{
		if (node->unfit || !is_bad(fields_text_of(check, "verdict")))
			continue;
		node->unfit = unfit_by_check(document, check);
	}
	if (!node->unfit)
		node->unfit = unfit_by_load(document);
	return 0;
}

static int order_findings(const void *left, const void *right)
{
	const json_t *const a = *(json_t *const *)left;
	const json_t *const b = *(json_t *const *)right;
	const int verdicts = (int)accept_verdict_of(fields_text_of(b, "verdict")) -
			     (int)accept_verdict_of(fields_text_of(a, "verdict"));
	const double far = fabs(json_number_value(json_object_get(b, "by"))) -
			   fabs(json_number_value(json_object_get(a, "by")));
	return verdicts ? verdicts : (far > 0) - (far < 0);
}

/* What of a finding a fleet shows. */
static json_t *finding_kept(const json_t *check, const json_t *finding)
{
	static const char *const members[] = {
		"figure", "place", "verdict", "by", "action", "sentence"};
	json_t *kept = json_object();
	int bad = !kept || json_object_set(kept, "check", json_object_get(check, "check"));
	for (size_t i = 0; i < COUNT(members); i++)
		if (json_object_get(finding, members[i]))
			bad |= json_object_set(
				kept, members[i], json_object_get(finding, members[i]));
	return fields_whole(kept, bad);
}

/* A check without a finding that is as bad as the check itself: it died, or could not be judged. */
static bool speaks_for_itself(const json_t *check)
{
	size_t i;
	const json_t *finding;
	const enum accept_verdict verdict = accept_verdict_of(fields_text_of(check, "verdict"));
	json_array_foreach(json_object_get(check, "findings"), i, finding)
	{
		if (accept_verdict_of(fields_text_of(finding, "verdict")) == verdict)
			return false;
	}
	return true;
}

static bool is_shown(const char *verdict)
{
	return is_bad(verdict) || accept_verdict_of(verdict) == VERDICT_WARN;
}

static int take_findings(struct node_result *node, const json_t *document)
{
	size_t i;
	size_t j;
	size_t count = 0;
	const json_t *check;
	const json_t *finding;
	json_t **list = NULL;
	int bad = 0;
	size_t most = 0;
	const json_t *checks = json_object_get(document, "checks");
	json_array_foreach(checks, i, check)
	{
		most += 1 + json_array_size(json_object_get(check, "findings"));
	}
	list = calloc(most + 1, sizeof(json_t *));
	node->findings = json_array();
	if (!list || !node->findings) {
		free(list);
		return -ENOMEM;
	}
	json_array_foreach(checks, i, check)
	{
		if (is_shown(fields_text_of(check, "verdict")) && speaks_for_itself(check))
			list[count++] = finding_kept(check, check);
		json_array_foreach(json_object_get(check, "findings"), j, finding)
		{
			if (is_shown(fields_text_of(finding, "verdict")))
				list[count++] = finding_kept(check, finding);
		}
	}
	for (size_t k = 0; k < count; k++)
		bad |= !list[k];
	if (!bad && count > 1)
		qsort(list, count, sizeof(json_t *), order_findings);
	for (size_t k = 0; k < count; k++)
		if (k < FINDINGS_KEPT && !bad)
			bad |= json_array_append_new(node->findings, list[k]);
		else
			json_decref(list[k]);
	free(list);
	return bad ? -ENOMEM : 0;
}

/* --- a document ------------------------------------------------------------------------------- */

static int refuse_document(const json_t *document, struct error *err)
{
	static const char stem[] = "mlbench.accept/";
	const char *schema = fields_text_of(document, "schema");
	if (strcmp(schema, ACCEPT_SCHEMA) == 0)
		return 0;
	if (strncmp(schema, stem, sizeof stem - 1) == 0)
		return error_set(err, -EINVAL,
			"written as '%.40s', and this program knows '%s': use a newer mlbench",
			schema, ACCEPT_SCHEMA);
	return error_set(
		err, -EINVAL, "not a result of 'mlbench accept': its schema is '%.40s'", schema);
}

static char *name_of_node(const struct node_result *node, const json_t *document)
{
	const json_t *member = json_object_get(document, "node");
	const char *name =
		json_is_string(member) ? json_string_value(member) : fields_text_of(member, "name");
	if (!*name)
		name = fact_node_name(&node->facts);
	return name && *name ? strdup(name) : NULL;
}

static void node_result_release(struct node_result *node)
{
	free(node->path);
	free(node->name);
	free(node->action);
	free(node->sentence);
	free(node->unfit);
	free(node->figures);
	free(node->covered);
	free(node->values);
	json_decref(node->fingerprint);
	json_decref(node->findings);
	json_decref(node->notes);
	fact_list_release(&node->facts);
}

/* A copy of its own: the document is dropped. */
static json_t *fingerprint_of_node(const struct node_result *node, const json_t *document)
{
	const json_t *given = json_object_get(document, "fingerprint");
	return json_is_object(given) ? json_deep_copy(given) : fingerprint_make(&node->facts);
}

/* A result without a date, or of a time to come, would hide the newest one. */
static int refuse_date(
	const struct node_results *results, const struct node_result *node, struct error *err)
{
	if (isnan(node->started_s))
		return error_set(
			err, -EINVAL, "it has no date: 'started' is '%.31s'", node->started);
	if (results->now_s > 0 && node->started_s > results->now_s + CLOCKS_APART_S)
		return error_set(err, -EINVAL,
			"it is dated %.31s, which is still to come: the node's clock was wrong, or this one is",
			node->started);
	return 0;
}

static int digest(struct node_results *results, struct node_result *node, const json_t *document,
	struct error *err)
{
	const json_t *checks = json_object_get(document, "measured");
	record_environment_from_json(&node->facts, json_object_get(document, "environment"), NULL);
	node->environment_count = node->facts.count;
	take_facts(node, checks);
	node->fingerprint = fingerprint_of_node(node, document);
	node->name = name_of_node(node, document);
	node->action = strdup(fields_text_of(document, "action"));
	node->sentence = strdup(fields_text_of(document, "sentence"));
	node->verdict = accept_verdict_of(fields_text_of(document, "verdict"));
	node->complete = json_is_true(json_object_get(document, "complete"));
	/* What is not of the whole plan, or of a test of mlbench, is no verdict on the node. */
	const bool whole = result_is_whole(document);
	if (!whole && node->verdict <= VERDICT_WARN)
		node->verdict = VERDICT_ERROR;
	(void)snprintf(
		node->started, sizeof node->started, "%s", fields_text_of(document, "started"));
	(void)snprintf(node->tier, sizeof node->tier, "%s", fields_text_of(document, "tier"));
	(void)snprintf(
		node->program, sizeof node->program, "%s", fields_text_of(document, "program"));
	(void)snprintf(node->plan, sizeof node->plan, "%s",
		fields_text_of(
			json_object_get(json_object_get(document, "judged_by"), "plan"), "hash"));
	(void)snprintf(node->baseline, sizeof node->baseline, "%s",
		fields_text_of(json_object_get(json_object_get(document, "judged_by"), "baseline"),
			"made"));
	node->started_s = node_result_time(node->started);
	if (!node->name)
		return error_set(err, -EINVAL, "it does not say of which node it is");
	if (node->facts.failed || !node->fingerprint || !node->action || !node->sentence)
		return -ENOMEM;
	int code = refuse_date(results, node, err);
	if (!code)
		code = take_figures(results, node, checks, err);
	if (!code)
		code = take_covered(results, node, document);
	if (!code)
		code = take_notes(node, checks);
	if (!code)
		code = take_findings(node, document);
	return code ? code : find_unfit(node, document);
}

static int grow_results(struct node_results *results)
{
	if (results->count < results->room)
		return 0;
	const size_t room = results->room ? 2 * results->room : RESULTS_ROOM_FIRST;
	struct node_result *list = realloc(results->list, room * sizeof *list);
	if (!list)
		return -ENOMEM;
	results->list = list;
	results->room = room;
	return 0;
}

int node_results_add(
	struct node_results *results, const json_t *document, const char *path, struct error *err)
{
	struct node_result node = {.path = strdup(path)};
	int code = refuse_document(document, err);
	if (!code)
		code = result_consistent(document, err);
	if (!code && results->count == NODE_RESULTS_MAX)
		code = error_set(err, -E2BIG, "more than %d results", NODE_RESULTS_MAX);
	if (!code && (!node.path || grow_results(results)))
		code = -ENOMEM;
	if (!code)
		code = digest(results, &node, document, err);
	if (code == -ENOMEM)
		(void)error_set(err, code, "out of memory for the results");
	if (code)
		node_result_release(&node);
	else
		results->list[results->count++] = node;
	return code;
}

/* --- files ------------------------------------------------------------------------------------ */

static int leave_out(
	struct node_results *results, const char *path, int code, const struct error *why)
{
	if (!results->left_out)
		results->left_out_code = code;
	if (!results->left_out)
		results->left_out = json_array();
	return results->left_out && json_array_append_new(results->left_out,
					    json_pack("{s:o, s:o}", "file", fields_text(path),
						    "why", fields_text(why->text))) == 0
		       ? 0
		       : -ENOMEM;
}

static int read_document(const char *path, json_t **document, struct error *err)
{
	char *text = NULL;
	size_t size = 0;
	json_error_t wrong;
	const int code = files_read(path, RESULT_BYTES_MAX, &text, &size, err);
	if (code)
		return code;
	*document = json_loadb(text, size, JSON_REJECT_DUPLICATES, &wrong);
	free(text);
	return *document ? 0
			 : error_set(err, -EINVAL, "no JSON (line %d): %s", wrong.line, wrong.text);
}

/* Files that are to be read, in their order. */
struct file_list {
	char **paths; /* owned */
	size_t count, room;
};

static int list_file(struct file_list *files, const char *path)
{
	if (files->count == files->room) {
		const size_t room = files->room ? 2 * files->room : RESULTS_ROOM_FIRST;
		char **paths = realloc(files->paths, room * sizeof *paths);
		if (!paths)
			return -ENOMEM;
		files->paths = paths;
		files->room = room;
	}
	files->paths[files->count] = strdup(path);
	return files->paths[files->count++] ? 0 : -ENOMEM;
}

static void file_list_release(struct file_list *files)
{
	for (size_t i = 0; i < files->count; i++)
		free(files->paths[i]);
	free(files->paths);
}

/* Takes what was read of a file; one that cannot be used is no failure of the whole. */
static int take_file(struct node_results *results, const char *path, const json_t *document,
	int code, struct error *why, struct error *err)
{
	if (!code)
		code = node_results_add(results, document, path, why);
	if (code == -ENOMEM || code == -E2BIG)
		return error_set(err, code, "%s", why->text);
	return code && leave_out(results, path, code, why)
		       ? error_set(err, -ENOMEM, "out of memory")
		       : 0;
}

/* Reading JSON is what takes the time, so that a few threads do it; results are taken in the order of the files. */
static int read_files(struct node_results *results, const struct file_list *files,
	const atomic_bool *stop, struct error *err)
{
	int code = 0;
#pragma omp parallel for ordered schedule(dynamic, 1) num_threads(READERS_MOST)
	for (size_t i = 0; i < files->count; i++) {
		struct error why = {0};
		json_t *document = NULL;
		const bool stopped = stop && atomic_load(stop);
		const int read = stopped ? -EINTR : read_document(files->paths[i], &document, &why);
#pragma omp ordered
		{
			if (!code && stopped)
				code = error_set(err, -EINTR, "interrupted");
			else if (!code)
				code = take_file(
					results, files->paths[i], document, read, &why, err);
			json_decref(document);
		}
	}
	return code;
}

/* A folder that cannot be read may hold a node's result. */
static int leave_out_folder(
	struct node_results *results, const char *path, int number, struct error *err)
{
	struct error why = {0};
	(void)error_set_errno(&why, number, "cannot read the folder");
	return leave_out(results, path, -number, &why) ? error_set(err, -ENOMEM, "out of memory")
						       : 0;
}

static int order_entries(const FTSENT **left, const FTSENT **right)
{
	return strcmp((*left)->fts_name, (*right)->fts_name);
}

static int list_below(struct node_results *results, struct file_list *files, const char *folder,
	const atomic_bool *stop, struct error *err)
{
	char *path = strdup(folder);
	char *const roots[] = {path, NULL};
	FTS *walk = path ? fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, order_entries) : NULL;
	FTSENT *entry;
	const size_t before = files->count;
	int code = walk ? 0 : error_set(err, -ENOMEM, "out of memory");
	while (walk && !code && (entry = fts_read(walk)) != NULL) {
		if (stop && atomic_load(stop))
			code = error_set(err, -EINTR, "interrupted");
		else if (entry->fts_info == FTS_D && entry->fts_level >= SEARCH_DEPTH_MAX)
			(void)fts_set(walk, entry, FTS_SKIP);
		else if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR)
			code = leave_out_folder(results, entry->fts_path, entry->fts_errno, err);
		else if (entry->fts_info == FTS_F && strcmp(entry->fts_name, RESULT_NAME) == 0 &&
			 list_file(files, entry->fts_path))
			code = error_set(err, -ENOMEM, "out of memory");
		else if (files->count > NODE_RESULTS_MAX)
			code = error_set(err, -E2BIG, "more than %d results", NODE_RESULTS_MAX);
	}
	if (walk)
		(void)fts_close(walk);
	free(path);
	struct error none;
	(void)error_set(&none, 0, "there is no " RESULT_NAME " in it or below");
	return !code && files->count == before && leave_out(results, folder, -ENOENT, &none)
		       ? -ENOMEM
		       : code;
}

/* Of results that are named twice (a folder and a file in it), one stays. */
static void drop_twins(struct node_results *results)
{
	size_t kept = 0;
	node_results_sort(results);
	for (size_t i = 0; i < results->count; i++) {
		struct stat a;
		struct stat b;
		if (kept > 0 && strcmp(results->list[i].name, results->list[kept - 1].name) == 0 &&
			strcmp(results->list[i].started, results->list[kept - 1].started) == 0 &&
			stat(results->list[i].path, &a) == 0 &&
			stat(results->list[kept - 1].path, &b) == 0 && a.st_ino == b.st_ino &&
			a.st_dev == b.st_dev)
			node_result_release(&results->list[i]);
		else
			results->list[kept++] = results->list[i];
	}
	results->count = kept;
}

int node_results_read(struct node_results *results, const char *const *paths, size_t count,
	const atomic_bool *stop, struct error *err)
{
	struct file_list files = {0};
	int code = 0;
	for (size_t i = 0; i < count && !code; i++) {
		struct stat st;
		if (stat(paths[i], &st))
			code = error_set_errno(err, errno, "cannot read '%.300s'", paths[i]);
		else if (S_ISDIR(st.st_mode))
			code = list_below(results, &files, paths[i], stop, err);
		else if (list_file(&files, paths[i]))
			code = error_set(err, -ENOMEM, "out of memory");
	}
	if (!code)
		code = read_files(results, &files, stop, err);
	file_list_release(&files);
	if (!code)
		drop_twins(results);
	return code;
}

static int order_node_results(const void *left, const void *right)
{
	const struct node_result *const a = left;
	const struct node_result *const b = right;
	const int names = strcmp(a->name, b->name);
	const int times = (a->started_s < b->started_s) - (a->started_s > b->started_s);
	/* Of one moment, the worse verdict counts, and not the path. */
	const int verdicts = (int)b->verdict - (int)a->verdict;
	return names ? names : times ? times : verdicts ? verdicts : strcmp(a->path, b->path);
}

void node_results_sort(struct node_results *results)
{
	if (results->count > 1)
		qsort(results->list, results->count, sizeof *results->list, order_node_results);
}

void node_results_release(struct node_results *results)
{
	for (size_t i = 0; i < results->count; i++)
		node_result_release(&results->list[i]);
	free(results->list);
	json_decref(results->left_out);
	free_texts(results->texts);
	*results = (struct node_results){0};
}
