/* What a comparison says, in words that all formats share. */
#include "harness/report/compare.h"

#include "harness/analyze/verdict.h"
#include "harness/record/config_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double PERCENT = 100;

const char *compare_verdict_name(enum difference_verdict verdict)
{
	static const char *const names[] = {
		"missing", "untold", "unsure", "none", "noise", "less", "more"};
	return names[verdict];
}

/* "slower" and "faster" of rates of the whole, "less" and "more" of everything else. */
static const char *direction(const struct metric *metric, bool more)
{
	if (strcmp(metric->name, "throughput") == 0)
		return more ? "faster" : "slower";
	return more ? "more" : "less";
}

static const char *unsigned_change(
	const struct metric *metric, double change, char out[METRIC_TEXT_BYTES])
{
	const char *text = metric_change_text(metric, fabs(change), out);
	return *text == '+' ? text + 1 : text;
}

static void cannot_tell(const struct difference *d, char out[COMPARE_WORDS_BYTES])
{
	char repeats[METRIC_TEXT_BYTES];
	if (d->a_count == d->b_count)
		(void)snprintf(repeats, sizeof repeats, "%zu repetition%s", d->a_count,
			d->a_count == 1 ? "" : "s");
	else
		(void)snprintf(
			repeats, sizeof repeats, "%zu and %zu repetitions", d->a_count, d->b_count);
	if (d->is_mean)
		(void)snprintf(out, COMPARE_WORDS_BYTES,
			"inconclusive: at least %s per point, too noisy", repeats);
	else if (d->repeats_needed > 0)
		(void)snprintf(out, COMPARE_WORDS_BYTES, "inconclusive: %s; about %zu would decide",
			repeats, d->repeats_needed);
	else
		(void)snprintf(out, COMPARE_WORDS_BYTES, "inconclusive: %s, too noisy", repeats);
}

const char *compare_verdict_words(const struct metric *metric, const struct difference *difference,
	char out[COMPARE_WORDS_BYTES])
{
	char text[METRIC_TEXT_BYTES];
	const struct difference *d = difference;
	switch (d->verdict) {
	case DIFFERENCE_LESS:
	case DIFFERENCE_MORE:
		if (d->set_aside > 0)
			(void)snprintf(out, COMPARE_WORDS_BYTES,
				"%s, excluding the worst %zu of %zu repetitions",
				direction(metric, d->verdict == DIFFERENCE_MORE), d->set_aside,
				d->a_count);
		else
			(void)snprintf(out, COMPARE_WORDS_BYTES, "%s",
				direction(metric, d->verdict == DIFFERENCE_MORE));
		break;
	case DIFFERENCE_NOISE:
		(void)snprintf(out, COMPARE_WORDS_BYTES, "within the noise floor of %s",
			unsigned_change(metric, metric_change(metric, d->floor), text));
		break;
	case DIFFERENCE_NONE:
		(void)snprintf(out, COMPARE_WORDS_BYTES, "no difference beyond %s",
			unsigned_change(metric,
				metric_change(metric,
					fmax(fabs(d->interval.low), fabs(d->interval.high))),
				text));
		break;
	case DIFFERENCE_UNSURE:
	case DIFFERENCE_UNTOLD:
		cannot_tell(d, out);
		break;
	case DIFFERENCE_MISSING:
		(void)snprintf(out, COMPARE_WORDS_BYTES, "not available in %s",
			d->a_count == 0 && d->b_count == 0 ? "either"
			: d->a_count == 0                  ? "A"
							   : "B");
		break;
	}
	return out;
}

const char *compare_interval_words(const struct metric *metric, const struct difference *difference,
	char out[COMPARE_WORDS_BYTES])
{
	char low[METRIC_TEXT_BYTES];
	char high[METRIC_TEXT_BYTES];
	if (isnan(difference->interval.low)) {
		(void)snprintf(out, COMPARE_WORDS_BYTES, "-");
		return out;
	}
	(void)metric_change_text(metric, metric_change(metric, difference->interval.low), low);
	(void)metric_change_text(metric, metric_change(metric, difference->interval.high), high);
	(void)snprintf(out, COMPARE_WORDS_BYTES, "%s to %s", low, high);
	return out;
}

enum ink compare_ink(const struct metric *metric, const struct difference *difference)
{
	const bool more = difference->verdict == DIFFERENCE_MORE;
	if (difference->verdict != DIFFERENCE_LESS && !more)
		return difference->verdict == DIFFERENCE_UNSURE ||
				       difference->verdict == DIFFERENCE_UNTOLD
			       ? INK_WARN
			       : INK_DIM;
	if (metric->kind->sense == METRIC_NEITHER)
		return INK_ACCENT;
	return more == (metric->kind->sense == METRIC_MORE_IS_BETTER) ? INK_GOOD : INK_BAD;
}

/* --- points ----------------------------------------------------------------------------------- */

enum setting_parts { SETTING_NAME = 1, SETTING_VALUE = 2 };

/* Of the keys that points are matched by, each with what is asked for: "decode.workers=2". */
static void words_add_settings(const struct comparison *comparison, const struct report *report,
	size_t point, unsigned parts, const char *between, struct buffer *out)
{
	const struct record *record = report->record;
	const size_t begin = out->size;
	for (int k = 0; k < KEY_COUNT; k++) {
		const enum key_id key = (enum key_id)k;
		char name[CONFIG_NAME_BYTES];
		if (!comparison->match.swept[k])
			continue;
		char *value = config_value_text(
			key, point_value(&record->config, &record->grid, point, key));
		buffer_format(out, "%s%s%s%s", out->size > begin ? between : "",
			parts & SETTING_NAME ? config_key_name(key, name) : "",
			parts == (SETTING_NAME | SETTING_VALUE) ? "=" : "",
			!(parts & SETTING_VALUE) ? ""
			: value                  ? value
						 : "?");
		free(value);
	}
}

void compare_point_settings(const struct comparison *comparison, const struct report *report,
	size_t point, struct buffer *out)
{
	words_add_settings(comparison, report, point, SETTING_NAME | SETTING_VALUE, " ", out);
}

void compare_values(const struct comparison *comparison, size_t pair, struct buffer *out)
{
	words_add_settings(comparison, comparison->a.report, comparison->pairs[pair].a,
		SETTING_VALUE, " / ", out);
}

void compare_key_names(const struct comparison *comparison, struct buffer *out)
{
	words_add_settings(comparison, comparison->a.report, 0, SETTING_NAME, " / ", out);
}

void compare_settings(const struct comparison *comparison, size_t pair, struct buffer *out)
{
	compare_point_settings(comparison, comparison->a.report, comparison->pairs[pair].a, out);
}

/* --- sentences -------------------------------------------------------------------------------- */

static void count_verdicts(const struct comparison *c, size_t counts[DIFFERENCE_MORE + 1])
{
	for (size_t i = 0; i < c->pair_count; i++)
		counts[c->differences[i].verdict]++;
}

static void points_sentence(const struct comparison *c, struct buffer *out)
{
	size_t n[DIFFERENCE_MORE + 1] = {0};
	count_verdicts(c, n);
	const size_t untold = n[DIFFERENCE_UNSURE] + n[DIFFERENCE_UNTOLD];
	buffer_format(out, ". Of %zu points: %zu slower, %zu faster, %zu without a difference",
		c->pair_count, n[DIFFERENCE_LESS], n[DIFFERENCE_MORE],
		n[DIFFERENCE_NOISE] + n[DIFFERENCE_NONE]);
	if (untold > 0)
		buffer_format(out, ", %zu inconclusive", untold);
}

void compare_sentence(const struct comparison *comparison, struct buffer *out)
{
	const struct metric *metric = &comparison->metrics[0];
	const struct difference *d = &comparison->overall[0];
	char change[METRIC_TEXT_BYTES];
	char words[COMPARE_WORDS_BYTES];
	const double by = metric_change(metric, d->value);
	if (d->verdict == DIFFERENCE_LESS || d->verdict == DIFFERENCE_MORE)
		buffer_format(out, "B is %s by %s",
			direction(metric, d->verdict == DIFFERENCE_MORE),
			unsigned_change(metric, by, change));
	else
		buffer_format(out, "B's throughput against A's: %s",
			metric_change_text(metric, by, change));
	if (!isnan(d->interval.low))
		buffer_format(out, " (%g %% CI %s)", PERCENT * (1 - comparison->significance),
			compare_interval_words(metric, d, words));
	if (d->set_aside > 0)
		buffer_format(out,
			", excluding the worst %zu of %zu repetitions of each, whose spread would hide "
			"it",
			d->set_aside, d->a_count);
	if (comparison->pair_count > 1)
		buffer_text(out, ", in the geometric mean");
	if (d->verdict != DIFFERENCE_LESS && d->verdict != DIFFERENCE_MORE)
		buffer_format(out, ": %s", compare_verdict_words(metric, d, words));
	if (comparison->pair_count > 1)
		points_sentence(comparison, out);
}

/* Of the part's own capacity, where it is a stage that showed one. */
static void part_words(
	const struct comparison *c, const struct explain_part *part, struct buffer *out)
{
	char name[METRIC_NAME_BYTES];
	char change[METRIC_TEXT_BYTES];
	const struct explanation *e = &c->explanation;
	(void)snprintf(name, sizeof name, "%s.capacity", part->name);
	const struct difference *all = compare_differences_of(c, name);
	const struct difference *d = all ? &all[c->focus] : NULL;
	buffer_text(out, part->name);
	if (d && !isnan(d->value))
		buffer_format(out, " (capacity %s)",
			metric_change_text(&c->metrics[0], expm1(d->value), change));
	buffer_format(out, " explains %.0f %%", PERCENT * part->effect / e->measured);
}

/* Some part works against the change by half of it or more: the others then exceed it by as much. */
static bool parts_cancel(const struct explanation *e)
{
	static const double by = -0.5;
	bool cancel = false;
	for (size_t i = 0; i < e->part_count; i++)
		cancel = cancel || e->parts[i].effect / e->measured <= by;
	return cancel;
}

void compare_explanation_words(const struct comparison *comparison, struct buffer *out)
{
	static const double said_least = 0.02;
	const struct explanation *e = &comparison->explanation;
	char change[METRIC_TEXT_BYTES];
	size_t said = 0;
	if (!comparison->explained)
		return;
	buffer_format(out, "of the %s of %s", e->measured < 0 ? "loss" : "gain",
		unsigned_change(&comparison->metrics[0], expm1(e->measured), change));
	if (comparison->pair_count > 1) {
		buffer_text(out, " at ");
		compare_settings(comparison, comparison->focus, out);
	}
	buffer_text(out, " ");
	for (size_t i = 0; i < e->part_count; i++) {
		if (fabs(e->parts[i].effect / e->measured) < said_least)
			continue;
		buffer_text(out, said++ ? ", " : "");
		part_words(comparison, &e->parts[i], out);
	}
	if (said == 0)
		buffer_text(out, isnan(e->explained) ? "unexplained: no capacities are known"
						     : "no stage explains it");
	const double rest = isnan(e->explained) ? 1 : 1 - e->explained / e->measured;
	if (rest >= 0)
		buffer_format(out, "; %.0f %% is unexplained", PERCENT * rest);
	else
		buffer_format(out, "; together %.0f %% more than was measured", -PERCENT * rest);
	if (parts_cancel(e))
		buffer_text(out,
			"; some of these cancel each other out, so none alone explains the difference");
	if (e->replayed)
		buffer_text(out, " (predicted: A's costs replaced by B's, mean over all orders)");
	else
		buffer_format(out, " (from the lowest stage capacity; no prediction: %s)",
			e->why_not[0] ? e->why_not : "no sequence of service times was recorded");
}

static bool is_told(const struct verdict *verdict)
{
	return verdict->stage[0] && strcmp(verdict->stage, "none") != 0;
}

static void verdict_words(const struct verdict *verdict, struct buffer *out)
{
	if (!is_told(verdict))
		buffer_text(out, "unknown");
	else
		buffer_format(out, "%s/%s (%.0f %% confidence)", verdict->stage, verdict->resource,
			PERCENT * verdict->confidence);
}

void compare_binding_words(const struct comparison *comparison, struct buffer *out)
{
	const struct verdict *a = &comparison->a.verdict;
	const struct verdict *b = &comparison->b.verdict;
	buffer_text(out, "in A ");
	verdict_words(a, out);
	buffer_text(out, ", in B ");
	verdict_words(b, out);
	if (is_told(a) && is_told(b) &&
		(strcmp(a->stage, b->stage) != 0 || strcmp(a->resource, b->resource) != 0))
		buffer_text(out, ": the bottleneck has moved");
	if (comparison->pair_count > 1) {
		buffer_text(out, "; at ");
		compare_settings(comparison, comparison->focus, out);
	}
}

void compare_method_words(const struct comparison *comparison, struct buffer *out)
{
	const struct difference *d = &comparison->overall[0];
	char floor[METRIC_TEXT_BYTES];
	buffer_format(out,
		"figures are geometric means of the repetitions; differences are significant at "
		"%g %% in a moderated t test on logarithms, %s, or in a second test without the "
		"worst repetitions of both sides, which a stall of the machine may have spoiled "
		"(each test at half of that)",
		PERCENT * comparison->significance,
		comparison->interleaved ? "A and B measured in turn"
					: "assuming that two runs vary as much as two repetitions");
	if (comparison->pair_count > 1)
		buffer_text(out,
			"; adjusted over the points of a metric (Holm), so that a false alarm at any of "
			"them is as rare");
	if (!isnan(d->floor))
		buffer_format(out,
			"; noise floor %s%s: 1.96 sqrt(2) times the deviation between runs, estimated "
			"from the repetitions, at least %g %%",
			unsigned_change(&comparison->metrics[0], expm1(d->floor), floor),
			comparison->pair_count > 1 ? " of the mean" : "",
			PERCENT * COMPARE_RUN_DEVIATION);
}

const char *compare_gate_label(const struct gate *gate, const struct gate_result *result)
{
	if (gate_fails(gate, result))
		return "FAILS";
	return result->outcome == GATE_INCONCLUSIVE ? "INCONCLUSIVE" : "passes";
}

/* "that it is within -5%", "that it is 1200 or more" */
static void add_claim(const struct gate *gate, struct buffer *out)
{
	const char *value = gate->text + strcspn(gate->text, "<>");
	value += strspn(value, "<>= \t");
	if (gate->relative)
		buffer_format(out, "within %s", value);
	else
		buffer_format(out, "%s or %s", value, gate->above ? "less" : "more");
}

static void add_inconclusive(const struct gate *gate, const struct gate_result *result,
	const struct comparison *c, struct buffer *out)
{
	const bool one = c->pair_count == 1;
	buffer_text(out, ": cannot show that it is ");
	add_claim(gate, out);
	if (result->missing) {
		buffer_text(out, ": it was not measured in both results");
		return;
	}
	if (!one)
		buffer_format(out, " at %zu of %zu points", result->points, c->pair_count);
	if (result->repeats_needed > 0)
		buffer_format(out, "; about %zu repetitions%s would", result->repeats_needed,
			one ? "" : " of each point");
	else
		buffer_format(out, "; even %d repetitions would not", COMPARE_REPEATS_MOST);
}

void compare_gate_words(const struct gate *gate, const struct gate_result *result,
	const struct comparison *comparison, struct buffer *out)
{
	const size_t pairs = comparison->pair_count;
	buffer_format(out, "%s: %s", gate->text, result->why);
	if (pairs > 1 && !result->missing) {
		buffer_text(out, result->point == pairs ? " in the mean of all points" : " at ");
		if (result->point < pairs)
			compare_settings(comparison, result->point, out);
	}
	if (result->outcome == GATE_INCONCLUSIVE)
		add_inconclusive(gate, result, comparison, out);
	else if (result->outcome == GATE_WITHIN)
		buffer_format(out, ": within the limit%s",
			pairs > 1 ? ", and every other point by more" : "");
	else if (pairs > 1)
		buffer_format(out, ": beyond the limit%s",
			result->points == 0 ? ", though at no single point" : "");
	else
		buffer_text(out, ": beyond the limit");
	if (result->outcome == GATE_WORSE && pairs > 1 && result->points > 0)
		buffer_format(out, " at %zu of %zu points", result->points, pairs);
}
