/* What the writers of an acceptance result share: units, the headline, and findings put together by figure. */
#include "harness/report/accept_document.h"

#include "harness/base/text.h"
#include "harness/report/columns.h"
#include "harness/report/part.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *accept_node(const json_t *document)
{
	const char *name = column_text(document, "node.name");
	return *name ? name : "this node";
}

enum accept_verdict accept_verdict_in(const json_t *entry)
{
	return accept_verdict_of(column_text(entry, "verdict"));
}

enum figure_unit accept_unit(const json_t *entry)
{
	const char *name = column_text(entry, "unit");
	if (!*name)
		return FIGURE_COUNT;
	for (int unit = FIGURE_COUNT; unit <= FIGURE_WATTS; unit++)
		if (strcmp(name, figure_unit_name((enum figure_unit)unit)) == 0)
			return (enum figure_unit)unit;
	return FIGURE_COUNT;
}

const char *accept_value(const json_t *finding, const char *member, char out[ACCEPT_VALUE_BYTES])
{
	char number[FIGURE_VALUE_BYTES];
	const json_t *value = json_object_get(finding, member);
	const char *text = json_is_string(value)   ? json_string_value(value)
			   : json_is_number(value) ? figure_value_text(accept_unit(finding),
							     json_number_value(value), number)
						   : "";
	(void)snprintf(out, ACCEPT_VALUE_BYTES, "%s", text);
	return out;
}

double accept_margin_at(const json_t *finding, double value)
{
	const double low = column_number(finding, "limit_low");
	const double high = column_number(finding, "limit_high");
	const double below = (value - low) / (fabs(low) > 0 ? fabs(low) : 1);
	const double above = (high - value) / (fabs(high) > 0 ? fabs(high) : 1);
	return fmin(below, above); /* of the one that is a number */
}

double accept_margin(const json_t *finding)
{
	return accept_margin_at(finding, column_number(finding, "measured"));
}

/* --- the headline ----------------------------------------------------------------------------- */

static const struct {
	enum accept_action action;
	const char *words;
} accept_actions[] = {
	{ACTION_CONFIGURE, "change its configuration and test it again"},
	{ACTION_MONITOR, "use it, and look again"},
	{ACTION_RESET, "reset or reboot it and test it again"},
	{ACTION_ISOLATE, "take it out of service"},
	{ACTION_RETURN, "hand it back to the vendor"},
};

const char *accept_action_words(const char *action)
{
	for (size_t i = 0; i < sizeof accept_actions / sizeof *accept_actions; i++)
		if (strcmp(action, accept_action_name(accept_actions[i].action)) == 0)
			return accept_actions[i].words;
	return "";
}

void accept_add_sentence(struct buffer *out, const char *sentence)
{
	const size_t size = strlen(sentence);
	buffer_format(
		out, "%s%s", sentence, size > 0 && !strchr(".!?", sentence[size - 1]) ? "." : "");
}

/* What the document says, less the verdict in front. */
static void headline_add_sentence(const json_t *document, struct buffer *out)
{
	const char *name = column_text(document, "verdict");
	const char *sentence = column_text(document, "sentence");
	const size_t length = strlen(name);
	struct buffer whole = {0};
	if (strncmp(sentence, name, length) == 0 && sentence[length] == ':')
		sentence += length + 1 + strspn(sentence + length + 1, " ");
	accept_add_sentence(&whole, sentence);
	buffer_sentence(out, whole.data ? whole.data : "");
	out->failed = out->failed || whole.failed;
	buffer_release(&whole);
}

/* "1 of 9 checks failed: slow core: decode.core of core 3 is 123 samples/s, asked at least 345 samples/s." */
static void headline_add_worst(const json_t *document, const json_t *row, struct buffer *out)
{
	static const char *const words[] = {[VERDICT_WARN] = "warn",
		[VERDICT_ERROR] = "gave no verdict",
		[VERDICT_FAIL] = "failed"};
	const enum accept_verdict verdict = accept_verdict_in(document);
	struct buffer brief = {0};
	buffer_format(out, "%.0f of %zu checks %s: ",
		column_number(json_object_get(document, "counts"), accept_verdict_name(verdict)),
		json_array_size(json_object_get(document, "checks")), words[verdict]);
	accept_add_brief(&brief, row);
	accept_add_sentence(out, brief.data ? brief.data : "");
	out->failed = out->failed || brief.failed;
	buffer_release(&brief);
}

void accept_add_caveats(struct buffer *out, const json_t *document)
{
	size_t i;
	const json_t *caveat;
	json_array_foreach(json_object_get(document, "caveats"), i, caveat)
	{
		const char *text = json_string_value(caveat);
		struct buffer sentence = {0};
		accept_add_sentence(&sentence, text ? text : "");
		buffer_sentence(out, sentence.data ? sentence.data : "");
		buffer_text(out, " ");
		out->failed = out->failed || sentence.failed;
		buffer_release(&sentence);
	}
}

const char *accept_qualifier(const json_t *document)
{
	if (json_object_get(document, "test"))
		return "with planted faults";
	return json_object_get(document, "left_out") || json_object_get(document, "shortened")
		       ? "in part"
		       : "";
}

void accept_headline(const json_t *document, const json_t *rows, struct buffer *out)
{
	static const char *const fitness[] = {[VERDICT_PASS] = "fit to train on",
		[VERDICT_SKIP] = "not judged",
		[VERDICT_WARN] = "fit, with a warning",
		[VERDICT_ERROR] = "not judged",
		[VERDICT_FAIL] = "not fit"};
	const enum accept_verdict verdict = accept_verdict_in(document);
	const json_t *worst = json_array_get(rows, 0);
	const bool busy = strcmp(column_text(worst, "finding.condition"), CONDITION_BUSY) == 0;
	const char *action = verdict == VERDICT_ERROR && busy
				     ? "the node is busy: stop other work and test it again"
			     : verdict == VERDICT_FAIL || verdict == VERDICT_WARN
				     ? accept_action_words(column_text(document, "action"))
				     : "";
	/* A good verdict on a part of the plan is none on the node. */
	const bool whole = result_is_whole(document) || verdict > VERDICT_WARN;
	struct buffer text = {0};
	buffer_format(&text, "%s %s: %s%s%s. %s", accept_verdict_name(verdict),
		accept_node(document), whole ? fitness[verdict] : "not shown to be fit",
		*action ? ", " : "", action,
		json_is_true(json_object_get(document, "complete")) ? "" : "Interrupted. ");
	accept_add_caveats(&text, document);
	if (verdict >= VERDICT_WARN && worst && accept_verdict_in(worst) == verdict)
		headline_add_worst(document, worst, &text);
	else
		headline_add_sentence(document, &text);
	utf8_add_plain(out, text.data ? text.data : "", "?");
	out->failed = out->failed || text.failed;
	buffer_release(&text);
}

void accept_add_limit(struct buffer *out, const json_t *finding)
{
	char low[ACCEPT_VALUE_BYTES];
	char high[ACCEPT_VALUE_BYTES];
	accept_value(finding, "limit_low", low);
	accept_value(finding, "limit_high", high);
	if (*low && strcmp(low, high) == 0)
		buffer_text(out, low);
	else if (*low && *high)
		buffer_format(out, "%s to %s", low, high);
	else if (*low || *high)
		buffer_format(out, "at %s %s%s", *low ? "least" : "most", low, high);
	else
		buffer_text(out, column_text(finding, "asked"));
}

void accept_add_subject(struct buffer *out, const json_t *finding)
{
	const char *statistic = column_text(finding, "statistic");
	const char *place = column_text(finding, "place");
	buffer_format(out, "%s%s%s%s%s", statistic, *statistic ? " of " : "",
		column_text(finding, "figure"), *place ? " of " : "", place);
}

/* The same of one finding, without its check. */
static void accept_add_figure(struct buffer *out, const json_t *finding)
{
	char measured[ACCEPT_VALUE_BYTES];
	accept_add_subject(out, finding);
	buffer_format(out, " is %s, asked ", accept_value(finding, "measured", measured));
	accept_add_limit(out, finding);
}

void accept_add_brief(struct buffer *out, const json_t *row)
{
	const json_t *finding = json_object_get(row, "finding");
	char measured[ACCEPT_VALUE_BYTES];
	buffer_format(out, "%s: ", column_text(row, "check"));
	if (strcmp(column_text(finding, "condition"), CONDITION_BUSY) == 0 &&
		column_number(finding, "repetitions") > 1) {
		accept_add_subject(out, finding);
		buffer_text(out, " was measured beside other work");
		return;
	}
	if (*accept_value(finding, "measured", measured))
		accept_add_figure(out, finding);
	else
		buffer_text(out, column_text(row, "sentence"));
}

/* --- rows ------------------------------------------------------------------------------------- */

static bool accept_same(const json_t *a, const json_t *b, const char *member)
{
	return strcmp(column_text(a, member), column_text(b, member)) == 0;
}

/* Whether two findings are about the same figure, and the same statistic of it. */
static bool accept_alike(const json_t *a, const json_t *b)
{
	return accept_same(a, b, "figure") && accept_same(a, b, "statistic");
}

/* NAN is nearer to no limit than any number. */
static bool accept_is_worse(const json_t *finding, const json_t *than)
{
	const double mine = accept_margin(finding);
	const double other = accept_margin(than);
	return isfinite(mine) && (!isfinite(other) || mine < other);
}

/* The row shows this finding. */
static int accept_row_take(json_t *row, json_t *finding)
{
	static const char *const members[] = {
		"figure", "place", "sentence", "action", "remedy", "runbook", "repeat"};
	int bad = json_object_set(row, "finding", finding);
	for (size_t i = 0; i < sizeof members / sizeof *members; i++)
		bad |= json_object_set_new(
			row, members[i], json_string(column_text(finding, members[i])));
	return bad;
}

static json_t *accept_row_open(const json_t *check, const char *verdict)
{
	/* A check that died tells how to repeat it only in its findings. */
	const json_t *any = json_array_get(json_object_get(check, "findings"), 0);
	return json_pack("{s:s, s:s, s:s, s:s, s:[], s:s, s:s, s:s, s:s, s:s}", "check",
		column_text(check, "check"), "verdict", verdict, "figure", "", "place", "",
		"places", "sentence", column_text(check, "sentence"), "action", "", "remedy", "",
		"runbook", "", "repeat", column_text(any, "repeat"));
}

/* Into the row of its figure, level and verdict among those of its check, from `first` on. */
static int accept_add_finding(json_t *rows, size_t first, const json_t *check, json_t *finding)
{
	json_t *row = NULL;
	for (size_t i = first; i < json_array_size(rows) && !row; i++) {
		json_t *at = json_array_get(rows, i);
		const json_t *shown = json_object_get(at, "finding");
		if (accept_alike(shown, finding) && accept_same(at, finding, "verdict") &&
			(accept_same(shown, finding, "level") ||
				accept_same(at, finding, "sentence")))
			row = at;
	}
	int bad = 0;
	if (!row) {
		row = accept_row_open(check, column_text(finding, "verdict"));
		if (!row || json_array_append_new(rows, row))
			return -1;
		bad |= accept_row_take(row, finding);
	} else if (!accept_same(json_object_get(row, "finding"), finding, "level")) {
		return 0; /* the place is there already */
	} else if (accept_is_worse(finding, json_object_get(row, "finding"))) {
		bad |= accept_row_take(row, finding);
	}
	json_t *places = json_object_get(row, "places");
	return bad | json_array_append_new(places, json_string(column_text(finding, "place")));
}

bool accept_speaks(const json_t *check)
{
	const enum accept_verdict verdict = accept_verdict_in(check);
	bool told = false;
	size_t i;
	const json_t *finding;
	json_array_foreach(json_object_get(check, "findings"), i, finding)
	{
		if (accept_same(finding, check, "sentence"))
			return false;
		told = told || accept_verdict_in(finding) == verdict;
	}
	return !told || verdict == VERDICT_ERROR || verdict == VERDICT_SKIP;
}

/* Whether a text is one of an array's. */
static bool accept_has(const json_t *texts, const char *text)
{
	size_t i;
	const json_t *each;
	json_array_foreach(texts, i, each)
	{
		if (strcmp(json_string_value(each) ? json_string_value(each) : "", text) == 0)
			return true;
	}
	return false;
}

/* A warning says nothing new where the figure fails at each of its places. */
static bool accept_is_told(const json_t *rows, size_t first, const json_t *warning)
{
	for (size_t i = first; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		bool all = accept_verdict_in(row) == VERDICT_FAIL &&
			   accept_alike(json_object_get(row, "finding"),
				   json_object_get(warning, "finding"));
		size_t at;
		const json_t *place;
		json_array_foreach(json_object_get(warning, "places"), at, place)
		{
			all = all && json_is_string(place) &&
			      accept_has(json_object_get(row, "places"), json_string_value(place));
		}
		if (all)
			return true;
	}
	return false;
}

static int accept_add_check(json_t *rows, const json_t *check)
{
	const size_t first = json_array_size(rows);
	const bool speaks = accept_speaks(check);
	size_t i;
	json_t *finding;
	int bad = 0;
	if (speaks)
		bad |= json_array_append_new(
			rows, accept_row_open(check, column_text(check, "verdict")));
	json_array_foreach(json_object_get(check, "findings"), i, finding)
	{
		if (!speaks || !json_is_null(json_object_get(finding, "measured")))
			bad |= accept_add_finding(rows, first, check, finding);
	}
	for (i = json_array_size(rows); i-- > first;) {
		const json_t *row = json_array_get(rows, i);
		if (accept_verdict_in(row) == VERDICT_WARN && accept_is_told(rows, first, row))
			bad |= json_array_remove(rows, i);
	}
	return bad;
}

/* The rows in the order of what has to be told first. */
static json_t *accept_sorted(const json_t *rows)
{
	static const enum accept_verdict order[] = {
		VERDICT_FAIL, VERDICT_ERROR, VERDICT_WARN, VERDICT_SKIP, VERDICT_PASS};
	json_t *sorted = json_array();
	size_t i;
	json_t *row;
	int bad = 0;
	/* Of one verdict those first that ask for most. */
	for (size_t at = 0; at < sizeof order / sizeof *order; at++)
		for (int action = ACTION_RETURN; action >= ACTION_NONE; action--)
			json_array_foreach(rows, i, row)
			{
				if (accept_verdict_in(row) == order[at] &&
					(int)accept_action_of(column_text(row, "action")) == action)
					bad |= json_array_append(sorted, row);
			}
	return part_list(sorted, bad);
}

json_t *accept_rows(const json_t *document)
{
	json_t *rows = json_array();
	size_t i;
	json_t *check;
	int bad = !rows;
	json_array_foreach(json_object_get(document, "checks"), i, check)
	{
		bad |= accept_add_check(rows, check);
	}
	json_t *sorted = bad ? NULL : accept_sorted(rows);
	json_decref(rows);
	return sorted;
}

/* --- figures ---------------------------------------------------------------------------------- */

static int accept_figure_add(json_t *figures, size_t first, const json_t *check, json_t *finding)
{
	json_t *row = NULL;
	for (size_t i = first; i < json_array_size(figures) && !row; i++)
		if (accept_alike(json_object_get(json_array_get(figures, i), "finding"), finding))
			row = json_array_get(figures, i);
	if (!row) {
		row = json_pack("{s:s, s:s}", "check", column_text(check, "check"), "figure",
			column_text(finding, "figure"));
		if (!row || json_array_append_new(figures, row))
			return -1;
	}
	const json_t *shown = json_object_get(row, "finding");
	const bool worse =
		!shown || accept_verdict_in(finding) > accept_verdict_in(shown) ||
		(accept_verdict_in(finding) == accept_verdict_in(shown) &&
			accept_same(finding, shown, "level") && accept_is_worse(finding, shown));
	return worse ? json_object_set(row, "finding", finding) : 0;
}

/* How many places there are, and what each level asks at the one that is shown. */
static int accept_figure_close(json_t *row, const json_t *check)
{
	const json_t *shown = json_object_get(row, "finding");
	json_int_t places = 0;
	size_t i;
	json_t *finding;
	int bad = json_object_set_new(row, "place", json_string(column_text(shown, "place"))) |
		  json_object_set_new(row, "verdict", json_string(column_text(shown, "verdict")));
	json_array_foreach(json_object_get(check, "findings"), i, finding)
	{
		const char *level = column_text(finding, "level");
		if (!accept_alike(finding, shown))
			continue;
		places += accept_same(finding, shown, "level");
		if (accept_same(finding, shown, "place"))
			bad |= json_object_set(
				row, strcmp(level, "warn") == 0 ? "warn" : "fail", finding);
	}
	return bad | json_object_set_new(row, "places", json_integer(places));
}

json_t *accept_figures(const json_t *document)
{
	json_t *figures = json_array();
	size_t i;
	size_t at;
	json_t *check;
	json_t *finding;
	int bad = !figures;
	json_array_foreach(json_object_get(document, "checks"), i, check)
	{
		const size_t first = json_array_size(figures);
		json_array_foreach(json_object_get(check, "findings"), at, finding)
		{
			bad |= accept_figure_add(figures, first, check, finding);
		}
		for (at = first; at < json_array_size(figures); at++)
			bad |= accept_figure_close(json_array_get(figures, at), check);
	}
	return part_list(figures, bad);
}

void accept_unit_cell(const struct table_column *column, const json_t *row, struct buffer *out)
{
	char text[FIGURE_VALUE_BYTES];
	const double value = column_number(row, column->context);
	for (int kind = 0; kind < ACCEPT_KINDS && isfinite(value); kind++) {
		const struct figure *figure =
			strcmp(accept_kind_name((enum accept_kind)kind),
				column_text(row, "kind")) == 0
				? figure_find((enum accept_kind)kind, column_text(row, "figure"))
				: NULL;
		if (figure)
			buffer_text(out, figure_value_text(figure->unit, value, text));
	}
}
