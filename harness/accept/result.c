/* From what was measured to a verdict; reading both: result_file.c. */
#include "harness/accept/result.h"

#include "harness/accept/baseline.h"
#include "harness/accept/judge.h"
#include "harness/base/array.h"
#include "harness/base/buffer.h"
#include "harness/base/units.h"
#include "harness/record/fields.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RESULT_SENTENCE_BYTES = 480, RESULT_PLACES_MAX = 4096 };

const char *accept_verdict_name(enum accept_verdict verdict)
{
	static const char *const names[] = {"PASS", "SKIP", "WARN", "ERROR", "FAIL"};
	return names[verdict];
}

enum accept_verdict accept_verdict_of(const char *name)
{
	for (int verdict = VERDICT_PASS; verdict <= VERDICT_FAIL; verdict++)
		if (name && strcmp(name, accept_verdict_name((enum accept_verdict)verdict)) == 0)
			return (enum accept_verdict)verdict;
	return VERDICT_ERROR;
}

int accept_verdict_status(enum accept_verdict verdict)
{
	static const int statuses[] = {[VERDICT_PASS] = EXIT_STATUS_DONE,
		[VERDICT_SKIP] = EXIT_STATUS_CANNOT,
		[VERDICT_WARN] = EXIT_STATUS_DONE,
		[VERDICT_ERROR] = EXIT_STATUS_CANNOT,
		[VERDICT_FAIL] = EXIT_STATUS_FAILED};
	return statuses[verdict];
}

/* --- one criterion at one place --------------------------------------------------------------- */

/* What the whole judgement rests on. */
struct judging {
	const struct accept_plan *plan;
	enum accept_tier tier;
	const json_t *measured; /* of one check */
	const json_t *baseline;
	double rate;   /* the plan's error rate */
	size_t limits; /* of the plan in this tier, which share the rate of false fails */
	const char *repeat_file;
	const char *measured_in; /* the tier, where it is a shorter one than this; NULL */
	bool interrupted;
	bool twice; /* the check was measured twice: which one counts is unknown */
};

/* What was found out of a figure at a place. */
struct evidence {
	const struct accept_check *check;
	const struct accept_limit *limit;
	const char *place;
	double *values; /* repetitions, or one number that is no repetition; owned */
	size_t count;
	bool exact;       /* a number that is no repetition */
	const char *text; /* of a text; NULL */
	double peak;
	const char *missing; /* why there is nothing; NULL */
	bool lacks;          /* ... because the node has no such thing */
	size_t places;       /* of the figure */
	/* Under what it was measured (CONDITION_BUSY, CONDITION_LIMITED), and that in words; "". */
	const char *condition, *conditions;
};

/* What came of one clause. */
struct judged {
	enum judgement judgement;
	bool unknown;     /* there is nothing to compare with: why says it */
	bool skippable;   /* which a plan may allow */
	double low, high; /* the bounds; infinite: none */
	double shown;     /* the figure, or the statistic of it, that was compared; NAN of texts */
	enum figure_unit unit;
	struct interval interval;
	double rate; /* of the interval: that of the look, so that it keeps clear of a limit where the test does */
	char why[RESULT_SENTENCE_BYTES]; /* of unknown, and what was compared in words */
};

/* The entry of a list about a figure at a place. */
static json_t *entry_of(
	const json_t *measured, const char *list, const char *figure, const char *place)
{
	size_t i;
	json_t *entry;
	json_array_foreach(json_object_get(measured, list), i, entry)
	{
		if (strcmp(fields_text_of(entry, "figure"), figure) == 0 &&
			strcmp(fields_text_of(entry, "place"), place) == 0)
			return entry;
	}
	return NULL;
}

static double entry_median(const json_t *entry)
{
	const json_t *array = json_object_get(entry, "values");
	const size_t count = json_array_size(array);
	double *values = malloc((count + 1) * sizeof *values);
	if (!values)
		return (double)NAN;
	size_t kept = 0;
	for (size_t i = 0; i < count; i++)
		if (json_is_number(json_array_get(array, i)))
			values[kept++] = json_number_value(json_array_get(array, i));
	const double median = statistics_median(values, kept);
	free(values);
	return median;
}

/* The median or the best over the places of a figure: of two in the middle the better one, so that one slow place of two
 * is held to the other. */
static double reference_of_places(const struct judging *judging, const struct figure *figure,
	bool best, struct judged *judged)
{
	double medians[RESULT_PLACES_MAX];
	size_t count = 0;
	size_t i;
	json_t *entry;
	json_array_foreach(json_object_get(judging->measured, "values"), i, entry)
	{
		if (strcmp(fields_text_of(entry, "figure"), figure->name) != 0 ||
			count == COUNT(medians))
			continue;
		const double median = entry_median(entry);
		if (isfinite(median))
			medians[count++] = median;
	}
	/* Compared with itself, a place would never fail. */
	if (count < 2) {
		judged->skippable = count == 1;
		if (count == 1)
			(void)snprintf(judged->why, sizeof judged->why,
				"there is only one %s to compare", figure->place);
		else
			(void)snprintf(judged->why, sizeof judged->why, "no place gave a value");
		return (double)NAN;
	}
	sort_doubles(medians, count);
	const bool less = figure->sense == FIGURE_LESS_IS_BETTER;
	if (best)
		return medians[less ? 0 : count - 1];
	return medians[less ? (count - 1) / 2 : count / 2];
}

static const json_t *baseline_entry(const struct judging *judging, const struct evidence *evidence)
{
	return judging->baseline ? baseline_figure(judging->baseline, evidence->check->name,
					   evidence->limit->figure->name, evidence->place)
				 : NULL;
}

/* What a clause's share is of; NAN, with why. */
static double clause_reference(const struct judging *judging, const struct evidence *evidence,
	const struct clause *clause, struct judged *judged)
{
	const struct figure *figure = evidence->limit->figure;
	double reference = (double)NAN;
	switch (clause->of) {
	case OF_NOTHING:
		return 0;
	case OF_PEAK:
		reference = evidence->peak;
		if (!isfinite(reference))
			(void)snprintf(judged->why, sizeof judged->why, "no peak is known here");
		judged->skippable = true;
		break;
	case OF_BASELINE:
		reference =
			fields_real(json_object_get(baseline_entry(judging, evidence), "median"));
		if (!isfinite(reference))
			(void)snprintf(judged->why, sizeof judged->why, "%s",
				judging->baseline ? "the baseline has nothing on it"
						  : "no baseline was given (--baseline FILE)");
		judged->skippable = !judging->baseline;
		break;
	case OF_MEDIAN:
	case OF_BEST:
		reference = reference_of_places(judging, figure, clause->of == OF_BEST, judged);
		break;
	}
	/* A share of nothing is no limit: dead cores would hold dead ones to it. */
	if (isfinite(reference) && reference <= 0 && figure->sense == FIGURE_MORE_IS_BETTER) {
		(void)snprintf(
			judged->why, sizeof judged->why, "what it is compared with is not above 0");
		judged->skippable = false;
		reference = (double)NAN;
	}
	judged->unknown = !isfinite(reference);
	return reference;
}

static void judge_bounds(const struct judging *judging, const struct evidence *evidence,
	const struct clause *clause, const struct judge_rates *rates, struct judged *judged)
{
	const struct figure *figure = evidence->limit->figure;
	const double reference = clause_reference(judging, evidence, clause, judged);
	if (judged->unknown)
		return;
	bool open = false;
	if (clause->kind == CLAUSE_WITHIN && isnan(clause->value)) { /* the baseline's own limits */
		const json_t *entry = baseline_entry(judging, evidence);
		judged->low = figure->sense == FIGURE_LESS_IS_BETTER
				      ? -(double)INFINITY
				      : fields_real(json_object_get(entry, "low"));
		judged->high = figure->sense == FIGURE_MORE_IS_BETTER
				       ? (double)INFINITY
				       : fields_real(json_object_get(entry, "high"));
		if (isnan(judged->low) || isnan(judged->high)) {
			judged->unknown = true;
			(void)snprintf(judged->why, sizeof judged->why,
				"the baseline has no limits of it");
			return;
		}
	} else {
		clause_bounds(clause, figure, reference, &judged->low, &judged->high, &open);
	}
	if (!evidence->exact) {
		judged->rate = rates->pass * ldexp(1.0, -(int)rates->look);
		judged->interval = judge_interval(evidence->values, evidence->count, judged->rate);
		judged->judgement = judge_median(
			evidence->values, evidence->count, judged->low, judged->high, open, rates);
		return;
	}
	const double value = judged->shown;
	const bool holds = open ? value > judged->low && value < judged->high
				: value >= judged->low && value <= judged->high;
	judged->judgement = holds ? JUDGED_HOLDS : JUDGED_BROKEN;
}

static void judge_similarity(const struct judging *judging, const struct evidence *evidence,
	const struct clause *clause, const struct judge_rates *rates, struct judged *judged)
{
	const json_t *entry = baseline_entry(judging, evidence);
	const json_t *quantiles = json_object_get(entry, "quantiles");
	double baseline[64];
	size_t count = 0;
	bool whole = json_array_size(quantiles) <= COUNT(baseline);
	for (; whole && count < json_array_size(quantiles); count++) {
		baseline[count] = fields_real(json_array_get(quantiles, count));
		whole = isfinite(baseline[count]);
	}
	if (!whole) {
		judged->unknown = true;
		(void)snprintf(judged->why, sizeof judged->why,
			"the baseline's distribution of it is not made of numbers");
		return;
	}
	if (count == 0) {
		judged->unknown = true;
		judged->skippable = !judging->baseline;
		(void)snprintf(judged->why, sizeof judged->why, "%s",
			judging->baseline ? "the baseline has nothing on it"
					  : "no baseline was given (--baseline FILE)");
		return;
	}
	judged->unit = FIGURE_SHARE;
	judged->low = clause->value;
	judged->rate = judge_look_rate(rates);
	judged->judgement = judge_similar(evidence->values, evidence->count, baseline, count,
		evidence->limit->figure->sense != FIGURE_LESS_IS_BETTER, clause->value, rates,
		&judged->shown, &judged->interval);
}

/* All places and repetitions the same. */
static void judge_equal(
	const struct judging *judging, const struct evidence *evidence, struct judged *judged)
{
	const char *figure = evidence->limit->figure->name;
	json_t *first = NULL;
	size_t compared = 0;
	size_t i;
	json_t *entry;
	judged->judgement = JUDGED_HOLDS;
	json_array_foreach(json_object_get(judging->measured, "facts"), i, entry)
	{
		if (strcmp(fields_text_of(entry, "figure"), figure) != 0)
			continue;
		json_t *value = json_object_get(entry, "value");
		if (!first)
			first = value;
		if (!json_equal(first, value))
			judged->judgement = JUDGED_BROKEN;
	}
	json_array_foreach(json_object_get(judging->measured, "values"), i, entry)
	{
		if (strcmp(fields_text_of(entry, "figure"), figure) != 0)
			continue;
		size_t at;
		json_t *value;
		json_array_foreach(json_object_get(entry, "values"), at, value)
		{
			if (!first)
				first = value;
			compared++;
			if (!json_equal(first, value))
				judged->judgement = JUDGED_BROKEN;
		}
	}
	/* A single repetition was compared with nothing; a fact of the only place there is equals itself. */
	if (compared == 1 && judged->judgement == JUDGED_HOLDS)
		judged->judgement = JUDGED_OPEN;
	if (judged->judgement == JUDGED_BROKEN)
		(void)snprintf(judged->why, sizeof judged->why, "not all are the same");
}

static bool evidence_is_busy(const struct evidence *evidence)
{
	return strcmp(evidence->condition, CONDITION_BUSY) == 0;
}

/* Whether other work on the node cannot have made it hold: a part that gives enough beside it gives enough without it.  Places
 * that are compared are not disturbed alike. */
static bool clause_holds_anyway(
	const struct clause *clause, const struct figure *figure, const struct judged *judged)
{
	if (clause->kind == CLAUSE_KNOWN)
		return true;
	if (judged->judgement != JUDGED_HOLDS || clause->of == OF_MEDIAN || clause->of == OF_BEST ||
		(clause->kind != CLAUSE_LIMIT && clause->kind != CLAUSE_WITHIN))
		return false;
	return figure->sense == FIGURE_MORE_IS_BETTER   ? isinf(judged->high)
	       : figure->sense == FIGURE_LESS_IS_BETTER ? isinf(judged->low)
							: false;
}

static void judge_clause(const struct judging *judging, const struct evidence *evidence,
	const struct clause *clause, const struct judge_rates *rates, struct judged *judged)
{
	const struct figure *figure = evidence->limit->figure;
	*judged = (struct judged){
		.low = -(double)INFINITY,
		.high = (double)INFINITY,
		.shown = statistics_median(evidence->values, evidence->count),
		.unit = figure->unit,
		.interval = {(double)NAN, (double)NAN},
	};
	switch (clause->kind) {
	case CLAUSE_LIMIT:
	case CLAUSE_WITHIN:
		judge_bounds(judging, evidence, clause, rates, judged);
		break;
	case CLAUSE_SPREAD:
		judged->unit = FIGURE_SHARE;
		judged->high = clause->value;
		judged->shown = judge_spread(evidence->values, evidence->count);
		judged->rate = judge_look_rate(rates);
		judged->judgement = judge_spread_within(
			evidence->values, evidence->count, clause->value, rates, &judged->interval);
		break;
	case CLAUSE_SIMILARITY:
		judge_similarity(judging, evidence, clause, rates, judged);
		break;
	case CLAUSE_EQUAL:
		judge_equal(judging, evidence, judged);
		break;
	case CLAUSE_IS:
	case CLAUSE_IS_NOT:
	case CLAUSE_HAS:
		judged->judgement = evidence->text && judge_text(clause, evidence->text)
					    ? JUDGED_HOLDS
					    : JUDGED_BROKEN;
		break;
	case CLAUSE_KNOWN:
		judged->judgement = JUDGED_HOLDS;
		break;
	}
	if (evidence_is_busy(evidence) && !clause_holds_anyway(clause, figure, judged)) {
		judged->judgement = JUDGED_HOLDS;
		judged->unknown = true;
		judged->skippable = false;
		(void)snprintf(judged->why, sizeof judged->why, "the node is busy: %s",
			evidence->conditions);
	}
}

/* --- evidence --------------------------------------------------------------------------------- */

static bool evidence_read(const struct judging *judging, const struct accept_check *check,
	const struct accept_limit *limit, const char *place, struct evidence *evidence)
{
	const char *figure = limit->figure->name;
	const json_t *values = entry_of(judging->measured, "values", figure, place);
	const json_t *fact =
		json_object_get(entry_of(judging->measured, "facts", figure, place), "value");
	const json_t *missing = entry_of(judging->measured, "missing", figure, place);
	const json_t *array = json_object_get(values, "values");
	*evidence = (struct evidence){.check = check, .limit = limit, .place = place};
	evidence->values = malloc((json_array_size(array) + 1) * sizeof *evidence->values);
	if (!evidence->values)
		return false;
	for (size_t i = 0; i < json_array_size(array); i++)
		if (json_is_number(json_array_get(array, i)) &&
			figure_value_is_possible(json_number_value(json_array_get(array, i))))
			evidence->values[evidence->count++] =
				json_number_value(json_array_get(array, i));
	const bool whole = evidence->count == json_array_size(array);
	evidence->peak = fields_real(json_object_get(values, "peak"));
	if (evidence->count == 0 && json_is_number(fact) &&
		figure_value_is_possible(json_number_value(fact))) {
		evidence->exact = true;
		evidence->values[evidence->count++] = json_number_value(fact);
	}
	evidence->text = json_string_value(fact);
	evidence->lacks = json_is_true(json_object_get(missing, "lack"));
	const json_t *under = entry_of(judging->measured, "conditions", figure, place);
	if (!under) /* of all that the check measured */
		under = entry_of(judging->measured, "conditions", "", "");
	evidence->condition = evidence->exact || evidence->text ? "" : fields_text_of(under, "is");
	evidence->conditions = fields_text_of(under, "text");
	if (missing) /* of some repetitions, too: closed by default */
		evidence->missing = fields_text_of(missing, "why");
	else if (!whole)
		evidence->missing = "a repetition gave no number";
	else if (evidence->text && !*evidence->text)
		evidence->missing = "the check gave an empty text";
	else if (evidence->count == 0 && !evidence->text)
		evidence->missing = "the check gave no value of it";
	else if ((limit->figure->unit == FIGURE_TEXT) != (evidence->text != NULL))
		evidence->missing = "the check gave a value of another type";
	return true;
}

/* The places of a figure, in the order in which they were first told; "" where there is nothing of it. */
static size_t places_of(
	const json_t *measured, const char *figure, const char *places[RESULT_PLACES_MAX])
{
	static const char *const lists[] = {"values", "facts", "missing"};
	size_t count = 0;
	for (size_t list = 0; list < COUNT(lists); list++) {
		size_t i;
		json_t *entry;
		json_array_foreach(json_object_get(measured, lists[list]), i, entry)
		{
			if (strcmp(fields_text_of(entry, "figure"), figure) != 0 ||
				count == RESULT_PLACES_MAX)
				continue;
			const char *place = fields_text_of(entry, "place");
			size_t at = 0;
			while (at < count && strcmp(places[at], place) != 0)
				at++;
			if (at == count)
				places[count++] = place;
		}
	}
	if (count == 0)
		places[count++] = "";
	return count;
}

/* The worst clause of a criterion at a place. */
static void judge_limit(const struct judging *judging, const struct evidence *evidence,
	struct judged *worst, const struct clause **deciding)
{
	const struct criterion *criterion = &evidence->limit->criterion;
	/* Each look is at so many more repetitions; places that could be told early were not looked at again. */
	const unsigned repeats = judge_repeats(judging->rate);
	const size_t looks = (evidence->count + repeats - 1) / repeats;
	const struct judge_rates rates = {
		.pass = judging->rate,
		.fail = judging->rate / (double)(judging->limits * evidence->places),
		.look = looks < 1 ? 1 : (unsigned)looks,
	};
	*worst = (struct judged){0};
	for (size_t i = 0; i < criterion->clause_count; i++) {
		struct judged judged;
		judge_clause(judging, evidence, &criterion->clauses[i], &rates, &judged);
		const bool worse =
			judged.judgement > worst->judgement ||
			(judged.unknown && !worst->unknown && worst->judgement != JUDGED_BROKEN);
		if (i == 0 || worse) {
			*worst = judged;
			*deciding = &criterion->clauses[i];
		}
	}
}

/* --- in words --------------------------------------------------------------------------------- */

/* "decode.core on core 3". */
static void say_subject(const struct evidence *evidence, struct buffer *out)
{
	buffer_format(out, "%s%s%s", evidence->limit->figure->name, *evidence->place ? " of " : "",
		evidence->place);
}

static void say_statistic(const struct clause *clause, struct buffer *out)
{
	if (clause->kind == CLAUSE_SPREAD)
		buffer_text(out, "the spread of ");
	else if (clause->kind == CLAUSE_SIMILARITY)
		buffer_text(out, "the similarity to the baseline of ");
}

static void say_measured(const struct evidence *evidence, const struct judged *judged,
	const struct clause *clause, struct buffer *out)
{
	char value[FIGURE_VALUE_BYTES];
	say_statistic(clause, out);
	say_subject(evidence, out);
	if (evidence->text) {
		buffer_format(out, " is '%s'", evidence->text);
		return;
	}
	buffer_format(out, " is %s", figure_value_text(judged->unit, judged->shown, value));
	if (!isfinite(judged->interval.low) || evidence->count < 2)
		return;
	/* Too few values have no interval at that level. */
	if (judge_tail(evidence->count, evidence->count) <= judged->rate)
		buffer_format(out, " (%s %% CI ", UNITS_PLAIN(100 * (1 - 2 * judged->rate), 4));
	else
		buffer_text(out, " (range ");
	buffer_text(out, figure_value_text(judged->unit, judged->interval.low, value));
	buffer_format(out, " to %s, %zu repetitions)",
		figure_value_text(judged->unit, judged->interval.high, value), evidence->count);
}

/* How far the figure is on the good side of the limit that it is beyond, or else nearer to, as a share of it: below 0,
 * beyond it. */
static double judged_by(const struct judged *judged)
{
	const double above_low = isfinite(judged->low) && judged->low != 0
					 ? (judged->shown - judged->low) / fabs(judged->low)
					 : (double)NAN;
	const double below_high = isfinite(judged->high) && judged->high != 0
					  ? (judged->high - judged->shown) / fabs(judged->high)
					  : (double)NAN;
	return isfinite(judged->shown) ? fmin(above_low, below_high) : (double)NAN;
}

/* "; asked: at least 348 samples/s (within 15 % of median)". */
static void say_asked(
	const struct evidence *evidence, const struct judged *judged, struct buffer *out)
{
	char low[FIGURE_VALUE_BYTES];
	char high[FIGURE_VALUE_BYTES];
	const char *text = evidence->limit->criterion.text;
	(void)figure_value_text(judged->unit, judged->low, low);
	(void)figure_value_text(judged->unit, judged->high, high);
	if (isfinite(judged->low) && isfinite(judged->high) && judged->low != judged->high)
		buffer_format(out, "; asked: %s to %s (%s)", low, high, text);
	else if (isfinite(judged->low) && judged->low == judged->high)
		buffer_format(out, "; asked: %s", low);
	else if (isfinite(judged->low))
		buffer_format(out, "; asked: at least %s (%s)", low, text);
	else if (isfinite(judged->high))
		buffer_format(out, "; asked: at most %s (%s)", high, text);
	else
		buffer_format(out, "; asked: %s", text);
}

/* The first event about the figure at the place. */
static void say_event(
	const struct judging *judging, const struct evidence *evidence, struct buffer *out)
{
	const json_t *event = entry_of(
		judging->measured, "events", evidence->limit->figure->name, evidence->place);
	if (!event)
		return;
	const json_t *at_s = json_object_get(event, "at_s");
	if (json_is_number(at_s))
		buffer_format(
			out, "; at %.1f s: %s", fields_real(at_s), fields_text_of(event, "text"));
	else
		buffer_format(out, "; %s", fields_text_of(event, "text"));
}

static void say_finding(const struct judging *judging, const struct evidence *evidence,
	const struct judged *judged, const struct clause *clause, struct buffer *out)
{
	if (evidence->missing) {
		say_subject(evidence, out);
		buffer_format(out, " is not available: %s", evidence->missing);
		return;
	}
	say_measured(evidence, judged, clause, out);
	if (judged->unknown) {
		buffer_format(out, "; '%s' cannot be told: %s", evidence->limit->criterion.text,
			judged->why);
		return;
	}
	const double by = judged_by(judged);
	if (judged->judgement == JUDGED_BROKEN && isfinite(by))
		buffer_format(out, ", %s %% beyond its limit", UNITS_PLAIN(-100 * by, 3));
	else if (judged->judgement == JUDGED_BROKEN && *judged->why)
		buffer_format(out, ": %s", judged->why);
	say_asked(evidence, judged, out);
	if (judged->judgement == JUDGED_OPEN)
		buffer_text(out,
			"; inconclusive: the repetitions show neither that it holds nor that it does not");
	if (judged->judgement == JUDGED_BROKEN && evidence->limit->figure->action == ACTION_NONE)
		buffer_text(out, "; a busy node is not judged");
	say_event(judging, evidence, out);
}

/* The command that repeats only this check. */
static void say_repeat(
	const struct judging *judging, const struct accept_check *check, struct buffer *out)
{
	buffer_text(out, "mlbench accept ");
	shell_word(judging->repeat_file, out);
	buffer_format(out, " --tier %s --check ", accept_tier_name(judging->tier));
	shell_word(check->name, out);
}

/* --- a finding -------------------------------------------------------------------------------- */

static enum accept_verdict finding_verdict(const struct accept_check *check,
	const struct accept_limit *limit, const struct evidence *evidence,
	const struct judged *judged)
{
	const bool may_skip = check_integer(check, PLAN_MISSING) == 1 || limit->criterion.may_miss;
	if (evidence->missing || judged->unknown) {
		/* A value of which a part is missing is no lack of the node's, nor one that the check failed to get. */
		const bool lacks = evidence->missing ? evidence->lacks && evidence->count == 0 &&
							       !evidence->text
						     : judged->skippable;
		return may_skip && lacks ? VERDICT_SKIP
		       : limit->warns    ? VERDICT_WARN
					 : VERDICT_ERROR;
	}
	if (judged->judgement == JUDGED_HOLDS)
		return VERDICT_PASS;
	if (limit->warns)
		return VERDICT_WARN;
	return judged->judgement == JUDGED_BROKEN && limit->figure->action != ACTION_NONE
		       ? VERDICT_FAIL
		       : VERDICT_ERROR;
}

static json_t *limit_number(double value)
{
	return fields_number(isfinite(value) ? value : (double)NAN);
}

static json_t *text_from(struct buffer *buffer)
{
	json_t *text = buffer->failed ? NULL : fields_text(buffer->data ? buffer->data : "");
	buffer_release(buffer);
	return text;
}

static bool evidence_is_limited(const struct evidence *evidence)
{
	return strcmp(evidence->condition, CONDITION_LIMITED) == 0;
}

/* A node that is not fit is not used; one that is, is. */
static enum accept_action finding_action(
	const struct evidence *evidence, enum accept_verdict verdict)
{
	const enum accept_action action =
		evidence_is_limited(evidence) ? ACTION_CONFIGURE : evidence->limit->figure->action;
	if (verdict == VERDICT_FAIL)
		return action == ACTION_MONITOR ? ACTION_ISOLATE : action;
	return verdict != VERDICT_WARN      ? ACTION_NONE
	       : action == ACTION_CONFIGURE ? ACTION_CONFIGURE
					    : ACTION_MONITOR;
}

/* Under what it was measured, where that decides what to do; NULL. */
static const char *finding_condition(
	const struct evidence *evidence, enum accept_verdict verdict, const struct judged *judged)
{
	if (verdict == VERDICT_PASS || verdict == VERDICT_SKIP || evidence->missing)
		return NULL;
	if (evidence->limit->figure->action == ACTION_NONE && judged->judgement == JUDGED_BROKEN)
		return CONDITION_BUSY;
	return *evidence->condition ? evidence->condition : NULL;
}

/* Nothing is wrong with a part that nobody could tell anything of. */
static const char *finding_remedy(const struct figure *figure, enum accept_verdict verdict,
	const struct evidence *evidence, const struct judged *judged)
{
	if (verdict == VERDICT_PASS || verdict == VERDICT_SKIP)
		return "";
	if (!evidence->missing && evidence_is_busy(evidence))
		return "stop other work on the node and repeat the check";
	if (evidence->missing || judged->unknown)
		return "fix what the reason names and repeat the check; if the node is not supposed to have it, write 'or missing' in the plan";
	if (judged->judgement == JUDGED_OPEN)
		return "stop other work on the node and repeat the check, with a larger budget if it ran out of time; if it stays inconclusive, the figure lies at its limit";
	if (evidence_is_limited(evidence))
		return "raise or remove the limit of the control group (or of its container or job) and repeat the check: "
		       "it hides what the part gives";
	return figure->remedy;
}

static json_t *finding_make(const struct judging *judging, const struct evidence *evidence)
{
	static const char *const senses[] = {"more", "less", "neither"};
	const struct accept_limit *limit = evidence->limit;
	const struct figure *figure = limit->figure;
	struct judged judged = {.shown = (double)NAN,
		.unit = figure->unit,
		.interval = {(double)NAN, (double)NAN},
		.low = (double)NAN,
		.high = (double)NAN};
	const struct clause *clause = &limit->criterion.clauses[0];
	if (!evidence->missing)
		judge_limit(judging, evidence, &judged, &clause);
	const enum accept_verdict verdict =
		finding_verdict(evidence->check, limit, evidence, &judged);
	struct buffer sentence = {0};
	struct buffer remedy = {0};
	struct buffer repeat = {0};
	say_finding(judging, evidence, &judged, clause, &sentence);
	buffer_text(&remedy, finding_remedy(figure, verdict, evidence, &judged));
	const char *note = check_text(evidence->check, PLAN_NOTE);
	if (*note && verdict != VERDICT_PASS)
		buffer_format(&remedy, "; %s", note);
	say_repeat(judging, evidence->check, &repeat);
	const bool is_text = evidence->text && !evidence->missing;
	json_t *measured = is_text ? fields_text(evidence->text) : limit_number(judged.shown);
	const char *statistic = clause->kind == CLAUSE_SPREAD       ? "spread"
				: clause->kind == CLAUSE_SIMILARITY ? "similarity"
								    : NULL;
	return json_pack(
		"{s:s, s:s*, s:s*, s:o, s:s, s:s, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:s, s:o, s:o, s:o}",
		"figure", figure->name, "statistic", statistic, "condition",
		finding_condition(evidence, verdict, &judged), "place",
		fields_text(evidence->place), "level", limit->warns ? "warn" : "fail", "verdict",
		accept_verdict_name(verdict), "asked", fields_text(limit->criterion.text), "unit",
		figure_unit_name(judged.unit), "sense", senses[figure->sense], "measured", measured,
		"low", limit_number(judged.interval.low), "high",
		limit_number(judged.interval.high), "limit_low", limit_number(judged.low),
		"limit_high", limit_number(judged.high), "repetitions",
		evidence->exact ? 1 : (int)evidence->count, "by", fields_number(judged_by(&judged)),
		"sentence", text_from(&sentence), "action",
		accept_action_name(finding_action(evidence, verdict)), "remedy", text_from(&remedy),
		"runbook", json_sprintf("mlbench help %s", figure->name), "repeat",
		text_from(&repeat));
}

/* --- a check ---------------------------------------------------------------------------------- */

static enum accept_verdict worse(enum accept_verdict a, enum accept_verdict b)
{
	return a > b ? a : b;
}

/* How the check itself went, where it did not end as it should; PASS with *sentence empty: it did. */
static enum accept_verdict state_verdict(
	const struct judging *judging, const struct accept_check *check, struct buffer *sentence)
{
	if (!judging->measured) {
		buffer_text(sentence, judging->interrupted ? "it was not run: interrupted before"
							   : "it was not run");
		return VERDICT_ERROR;
	}
	if (judging->twice) {
		buffer_text(sentence, "the result has two measurements of it");
		return VERDICT_ERROR;
	}
	if (judging->measured_in) {
		buffer_format(sentence, "it was measured in tier %s, which shows less than tier %s",
			judging->measured_in, accept_tier_name(judging->tier));
		return VERDICT_ERROR;
	}
	const char *state = fields_text_of(judging->measured, "state");
	const char *why = fields_text_of(judging->measured, "why");
	const char *kind = fields_text_of(judging->measured, "kind");
	if (*kind && strcmp(kind, accept_kind_name(check->kind)) != 0) {
		buffer_format(sentence, "what was measured is a check of kind = %s, not %s", kind,
			accept_kind_name(check->kind));
		return VERDICT_ERROR;
	}
	const char *activity = fields_text_of(judging->measured, "activity");
	if (strcmp(state, "done") == 0)
		return VERDICT_PASS;
	if (strcmp(state, "skipped") == 0) {
		buffer_text(sentence, why);
		return check_integer(check, PLAN_MISSING) == 1 ? VERDICT_SKIP : VERDICT_ERROR;
	}
	buffer_format(sentence, "the check %s%s%s",
		strcmp(state, "timed out") == 0     ? "was abandoned"
		: strcmp(state, "interrupted") == 0 ? "was interrupted"
						    : state,
		*why ? ": " : "", why);
	if (*activity)
		buffer_format(sentence, " (it was %s)", activity);
	return VERDICT_ERROR;
}

/* The finding of that verdict that asks for most; NULL: there is none. */
static const json_t *gravest_finding(const json_t *findings, enum accept_verdict verdict)
{
	const json_t *gravest = NULL;
	size_t i;
	const json_t *finding;
	json_array_foreach(findings, i, finding)
	{
		if (accept_verdict_of(fields_text_of(finding, "verdict")) == verdict &&
			(!gravest || accept_action_of(fields_text_of(finding, "action")) >
					     accept_action_of(fields_text_of(gravest, "action"))))
			gravest = finding;
	}
	return gravest;
}

/* What the check says first: how it went, or its gravest finding. */
static json_t *check_sentence(
	const json_t *findings, enum accept_verdict verdict, struct buffer *state)
{
	const json_t *gravest = verdict == VERDICT_PASS ? NULL : gravest_finding(findings, verdict);
	if (gravest && (state->size == 0 || verdict == VERDICT_FAIL)) {
		buffer_release(state);
		return json_incref(json_object_get(gravest, "sentence"));
	}
	if (state->size == 0)
		buffer_format(state, "%s asked", json_array_size(findings) == 1 ? "as" : "all as");
	return text_from(state);
}

static json_t *check_judge(const struct judging *judging, const struct accept_check *check)
{
	static const char *places[RESULT_PLACES_MAX];
	struct buffer state = {0};
	enum accept_verdict verdict = state_verdict(judging, check, &state);
	json_t *findings = json_array();
	bool failed = !findings;
	bool passed = false;
	const bool run = judging->measured &&
			 strcmp(fields_text_of(judging->measured, "state"), "skipped") != 0;
	for (size_t i = 0; i < check->limit_count && run && !failed; i++) {
		const struct accept_limit *limit = &check->limits[i];
		const size_t count = places_of(judging->measured, limit->figure->name, places);
		for (size_t place = 0; place < count && !failed; place++) {
			struct evidence evidence;
			failed = !evidence_read(judging, check, limit, places[place], &evidence);
			evidence.places = count;
			json_t *finding = failed ? NULL : finding_make(judging, &evidence);
			free(evidence.values);
			const enum accept_verdict its =
				accept_verdict_of(fields_text_of(finding, "verdict"));
			verdict = worse(verdict, its);
			passed |= its == VERDICT_PASS;
			failed = failed || !finding || json_array_append_new(findings, finding);
		}
	}
	/* What a node lacks does not spoil what it has. */
	if (verdict == VERDICT_SKIP && passed)
		verdict = VERDICT_PASS;
	json_t *sentence = failed ? NULL : check_sentence(findings, verdict, &state);
	buffer_release(&state);
	return json_pack("{s:o, s:s, s:s, s:o, s:o, s:o}", "check", fields_text(check->name),
		"kind", accept_kind_name(check->kind), "verdict", accept_verdict_name(verdict),
		"sentence", sentence, "seconds",
		fields_number(fields_real(json_object_get(judging->measured, "seconds"))),
		"findings", findings);
}

static size_t plan_limits(const struct accept_plan *plan, enum accept_tier tier)
{
	size_t limits = 0;
	for (size_t i = 0; i < plan->check_count; i++)
		if (check_in_tier(&plan->checks[i], tier))
			limits += plan->checks[i].limit_count;
	return limits > 0 ? limits : 1;
}

static const json_t *measured_check(const json_t *measured, const char *name, bool *twice)
{
	size_t i;
	const json_t *check;
	const json_t *found = NULL;
	*twice = false;
	json_array_foreach(json_object_get(measured, "measured"), i, check)
	{
		if (strcmp(fields_text_of(check, "check"), name) != 0)
			continue;
		*twice = found != NULL;
		found = check;
	}
	return found;
}

/* --- the node --------------------------------------------------------------------------------- */

struct summing {
	size_t counts[VERDICT_FAIL + 1];
	size_t checks;
	enum accept_action action;
	const char *first; /* the sentence of the worst check */
	const char *first_check;
	enum accept_action
		first_action; /* that it asks for: of checks with the same verdict the gravest speaks */
	enum accept_verdict verdict;
};

static void sum_check(struct summing *sum, const json_t *check)
{
	const enum accept_verdict verdict = accept_verdict_of(fields_text_of(check, "verdict"));
	sum->counts[verdict]++;
	sum->checks++;
	const json_t *gravest = gravest_finding(json_object_get(check, "findings"), verdict);
	const enum accept_action its = accept_action_of(fields_text_of(gravest, "action"));
	if (!sum->first || verdict > sum->verdict ||
		(verdict == sum->verdict && its > sum->first_action)) {
		sum->first = fields_text_of(check, "sentence");
		sum->first_check = fields_text_of(check, "check");
		sum->first_action = its;
	}
	sum->verdict = worse(sum->verdict, verdict);
	size_t i;
	json_t *finding;
	json_array_foreach(json_object_get(check, "findings"), i, finding)
	{
		const enum accept_action action =
			accept_action_of(fields_text_of(finding, "action"));
		if (action > sum->action)
			sum->action = action;
	}
}

static json_t *sum_sentence(const struct summing *sum)
{
	struct buffer out = {0};
	const size_t passed = sum->counts[VERDICT_PASS];
	buffer_format(&out, "%s: ", accept_verdict_name(sum->verdict));
	if (sum->verdict == VERDICT_PASS)
		buffer_format(&out, "%s%zu check%s passed", sum->checks == 1 ? "" : "all ",
			sum->checks, sum->checks == 1 ? "" : "s");
	else if (sum->verdict == VERDICT_SKIP)
		buffer_format(&out, "%zu passed, %zu skipped", passed, sum->counts[VERDICT_SKIP]);
	else
		buffer_format(&out, "%zu of %zu checks %s: %s: %s", sum->counts[sum->verdict],
			sum->checks,
			sum->verdict == VERDICT_FAIL   ? "failed"
			: sum->verdict == VERDICT_WARN ? "warned"
						       : "gave no verdict",
			sum->first_check, sum->first);
	return text_from(&out);
}

/* Closed by default: where nothing passed, there is no verdict; what was skipped alone does not spoil one. */
static enum accept_verdict sum_verdict(const struct summing *sum)
{
	if (sum->verdict > VERDICT_SKIP)
		return sum->verdict;
	return sum->counts[VERDICT_PASS] > 0 ? VERDICT_PASS : VERDICT_ERROR;
}

static int sum_put(json_t *document, struct summing *sum, double rate)
{
	json_t *sentence = sum->checks > 0 ? sum_sentence(sum) : NULL;
	const enum accept_verdict verdict = sum_verdict(sum);
	if (verdict == VERDICT_ERROR && sum->verdict <= VERDICT_SKIP) {
		json_decref(sentence);
		sentence = json_string(
			sum->checks > 0 ? "ERROR: every check was skipped: nothing was judged"
					: "ERROR: the plan has no check in this tier");
	} else if (verdict == VERDICT_PASS && sum->verdict == VERDICT_SKIP) {
		json_decref(sentence);
		sentence = json_sprintf("PASS: %zu check%s passed, %zu skipped",
			sum->counts[VERDICT_PASS], sum->counts[VERDICT_PASS] == 1 ? "" : "s",
			sum->counts[VERDICT_SKIP]);
	}
	json_t *counts = json_object();
	int bad = !counts;
	for (int i = VERDICT_PASS; i <= VERDICT_FAIL; i++)
		bad |= json_object_set_new(counts, accept_verdict_name((enum accept_verdict)i),
			json_integer((json_int_t)sum->counts[i]));
	bad |= json_object_set_new(document, "verdict", json_string(accept_verdict_name(verdict)));
	bad |= json_object_set_new(
		document, "exit_status", json_integer(accept_verdict_status(verdict)));
	bad |= json_object_set_new(document, "sentence", sentence);
	bad |= json_object_set_new(
		document, "action", json_string(accept_action_name(sum->action)));
	bad |= json_object_set_new(document, "counts", counts);
	bad |= json_object_set_new(document, "errors",
		json_pack("{s:f, s:f}", "false_fail", rate, "false_pass", rate));
	return bad;
}

/* Of the baseline, what a reader needs to know. */
static json_t *baseline_summary(const json_t *baseline)
{
	if (!baseline)
		return json_null();
	double most = 0;
	size_t i;
	json_t *figure;
	json_array_foreach(json_object_get(baseline, "figures"), i, figure)
	{
		const double repetitions = fields_real(json_object_get(figure, "repetitions"));
		most = repetitions > most ? repetitions : most;
	}
	return json_pack("{s:i, s:f, s:O?, s:O?, s:O?}", "nodes",
		(int)json_array_size(json_object_get(baseline, "nodes")), "repetitions", most,
		"fingerprint", json_object_get(baseline, "fingerprint"), "made",
		json_object_get(baseline, "made"), "file", json_object_get(baseline, "file"));
}

static json_t *plan_summary(const struct accept_plan *plan)
{
	char hash[17];
	plan_hash(plan, hash);
	char *text = plan_dump(plan);
	json_t *summary =
		json_pack("{s:o, s:o, s:s, s:o}", "name", fields_text(plan_text(plan, PLAN_NAME)),
			"file", plan->path ? fields_text(plan->path) : json_null(), "hash", hash,
			"text", fields_text(text ? text : ""));
	free(text);
	return summary;
}

json_t *result_plan(const struct accept_plan *plan)
{
	return plan_summary(plan);
}

/* The header's members, less what is the measured document's own. */
static json_t *document_begin(const json_t *measured)
{
	static const char *const members[] = {"program", "node", "fingerprint", "started", "plan",
		"environment", "environment_units", "interrupted", "note", "test", "shortened"};
	json_t *document = json_object();
	int bad = !document || json_object_set_new(document, "schema", json_string(ACCEPT_SCHEMA));
	for (size_t i = 0; i < COUNT(members) && !bad; i++) {
		json_t *value = json_object_get(measured, members[i]);
		if (value)
			bad = json_object_set(document, members[i], value);
	}
	return fields_whole(document, bad);
}

static struct judging judging_of(
	const struct accept_plan *plan, enum accept_tier tier, const json_t *baseline)
{
	return (struct judging){
		.plan = plan,
		.tier = tier,
		.baseline = baseline,
		.rate = plan_share(plan, PLAN_ERROR),
		.limits = plan_limits(plan, tier),
		.repeat_file = plan->path ? plan->path : "PLAN",
	};
}

/* The tier that it was measured in, where that is a shorter one than `tier`: less time, memory and storage. */
static const char *shorter_tier(const json_t *measured, enum accept_tier tier)
{
	const char *its = fields_text_of(measured, "tier");
	for (int i = TIER_QUICK; i < (int)tier; i++)
		if (strcmp(its, accept_tier_name((enum accept_tier)i)) == 0)
			return its;
	return NULL;
}

bool result_is_whole(const json_t *document)
{
	return json_is_true(json_object_get(document, "complete")) &&
	       !json_object_get(document, "left_out") && !json_object_get(document, "shortened") &&
	       !json_object_get(document, "test");
}

/* What a reader of any form has to know beside the verdict. */
static int caveats_put(json_t *document, const json_t *measured, const struct accept_plan *plan)
{
	const char *test = fields_text_of(measured, "test");
	const char *shortened = fields_text_of(measured, "shortened");
	const char *note = fields_text_of(measured, "note");
	char hash[17];
	plan_hash(plan, hash);
	const char *its = fields_text_of(json_object_get(measured, "plan"), "hash");
	const bool same = strcmp(its, hash) == 0;
	const json_t *before = same ? json_object_get(measured, "left_out") : NULL;
	const json_int_t left_out =
		json_is_integer(before) ? json_integer_value(before) : (json_int_t)plan->left_out;
	json_t *caveats = json_array();
	int bad = !caveats;
	if (left_out > 0) {
		const size_t asked = json_array_size(json_object_get(document, "checks"));
		bad |= json_object_set_new(document, "left_out", json_integer(left_out));
		bad |= json_array_append_new(caveats,
			json_sprintf("only %zu of %zu checks of the plan were asked for (--check)",
				asked, asked + (size_t)left_out));
	}
	if (*shortened)
		bad |= json_array_append_new(
			caveats, json_sprintf("burns were shortened to %s (--for)", shortened));
	if (*test)
		bad |= json_array_append_new(caveats, fields_text(test));
	if (*note)
		bad |= json_array_append_new(caveats, fields_text(note));
	if (*its && !same)
		bad |= json_array_append_new(caveats,
			json_string("it is judged by another plan than it was measured by"));
	bad |= json_object_set(document, "caveats", caveats);
	json_decref(caveats);
	return bad;
}

json_t *result_judge(const json_t *measured, const struct accept_plan *plan, enum accept_tier tier,
	const json_t *baseline, struct error *err)
{
	struct judging judging = judging_of(plan, tier, baseline);
	struct summing sum = {0};
	json_t *document = document_begin(measured);
	json_t *checks = json_array();
	double seconds = 0;
	judging.interrupted = json_is_true(json_object_get(measured, "interrupted"));
	judging.measured_in = shorter_tier(measured, tier);
	bool complete = !judging.interrupted;
	int bad = !document || !checks;
	for (size_t i = 0; i < plan->check_count && !bad; i++) {
		const struct accept_check *check = &plan->checks[i];
		if (!check_in_tier(check, tier))
			continue;
		judging.measured = measured_check(measured, check->name, &judging.twice);
		complete &= judging.measured != NULL;
		json_t *judged = check_judge(&judging, check);
		bad = json_array_append_new(checks, judged);
		if (bad)
			break;
		sum_check(&sum, judged);
		const double its = fields_real(json_object_get(judged, "seconds"));
		seconds += its > 0 ? its : 0;
	}
	bad = bad || sum_put(document, &sum, judging.rate);
	bad = bad ||
	      json_object_set_new(document, "judged_by",
		      json_pack("{s:o, s:s, s:o}", "plan", plan_summary(plan), "tier",
			      accept_tier_name(tier), "baseline", baseline_summary(baseline)));
	bad = bad || json_object_set_new(document, "tier", json_string(accept_tier_name(tier)));
	bad = bad || json_object_set_new(document, "complete", json_boolean(complete));
	bad = bad || json_object_set_new(document, "seconds", json_real(seconds));
	bad = bad || json_object_set(document, "checks", checks);
	bad = bad || caveats_put(document, measured, plan);
	json_t *lines = json_object_get(measured, "measured"); /* none where no check has begun */
	bad = bad || (lines ? json_object_set(document, "measured", lines)
			    : json_object_set_new(document, "measured", json_array()));
	json_decref(checks);
	document = fields_whole(document, bad);
	if (!document)
		(void)error_set(err, -ENOMEM, "out of memory");
	return document;
}

size_t result_open(const json_t *measured_check_line, const struct accept_check *check,
	const struct accept_plan *plan, enum accept_tier tier, const json_t *baseline, char **open,
	size_t room)
{
	static const char *places[RESULT_PLACES_MAX];
	struct judging judging = judging_of(plan, tier, baseline);
	size_t count = 0;
	judging.measured = measured_check_line;
	for (size_t i = 0; i < check->limit_count; i++) {
		const struct accept_limit *limit = &check->limits[i];
		const size_t places_count =
			places_of(judging.measured, limit->figure->name, places);
		for (size_t place = 0; place < places_count && count < room; place++) {
			struct evidence evidence;
			if (!evidence_read(&judging, check, limit, places[place], &evidence))
				return count;
			evidence.places = places_count;
			struct judged judged = {0};
			const struct clause *clause;
			if (!evidence.missing && !evidence.exact && !evidence.text)
				judge_limit(&judging, &evidence, &judged, &clause);
			free(evidence.values);
			if (judged.judgement != JUDGED_OPEN || judged.unknown)
				continue;
			struct buffer name = {0};
			buffer_format(&name, "%s%s%s", limit->figure->name,
				*places[place] ? " @ " : "", places[place]);
			if (!name.failed)
				open[count++] = name.data;
		}
	}
	return count;
}
