/* The grammar of gates, and their outcomes. */
#include "harness/analyze/compare_gate.h"

#include "harness/base/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char blanks[] = " \t";

/* --- grammar ---------------------------------------------------------------------------------- */

static int gate_refuse_value(const struct gate *gate, const char *value, struct error *err)
{
	static const char *const examples[] = {
		"1200", "3ms", "0.9", "512MiB", "1GiB/s", "0.5", "1400", "300", "80"};
	return error_set(err, -EINVAL,
		"condition '%s': '%.40s' is no value of %s (as '%s', or a change as '-5%%')",
		gate->text, value, gate->metric.name, examples[gate->metric.kind->unit]);
}

static int parse_absolute(struct gate *gate, const char *text, struct error *err)
{
	uint64_t whole;
	int code;
	switch (gate->metric.kind->unit) {
	case METRIC_NS:
		code = units_parse_duration(text, &whole);
		gate->value = (double)whole;
		break;
	case METRIC_BYTES:
		code = units_parse_size(text, &whole);
		gate->value = (double)whole;
		break;
	case METRIC_BYTES_PER_S:
		code = units_parse_rate(text, &whole);
		gate->value = (double)whole;
		break;
	default:
		code = units_parse_real(text, &gate->value);
		break;
	}
	if (code || !isfinite(gate->value))
		return gate_refuse_value(gate, text, err);
	if (metric_is_ratio(&gate->metric) && gate->value <= 0)
		return error_set(err, -EINVAL,
			"condition '%s': %s is above 0; a change has '%%', as '%s %s%%'",
			gate->text, gate->metric.name, gate->above != gate->required ? ">" : "<",
			text);
	return 0;
}

static int parse_relative(struct gate *gate, char *text, struct error *err)
{
	double percent;
	text[strlen(text) - 1] = '\0';
	if (units_parse_real(text, &percent) || !isfinite(percent))
		return gate_refuse_value(gate, text, err);
	gate->relative = true;
	gate->value = percent / 100;
	if (gate->value <= -1)
		return error_set(err, -EINVAL, "condition '%s': nothing falls by 100 %% or more",
			gate->text);
	return 0;
}

static int gate_parse_value(struct gate *gate, const char *text, struct error *err)
{
	char value[GATE_TEXT_BYTES];
	(void)snprintf(value, sizeof value, "%s", text);
	size_t size = strlen(value);
	while (size > 0 && strchr(blanks, value[size - 1]))
		value[--size] = '\0';
	if (size == 0)
		return gate_refuse_value(gate, "", err);
	return value[size - 1] == '%' ? parse_relative(gate, value, err)
				      : parse_absolute(gate, value, err);
}

int gate_parse(const char *text, bool required, struct gate *gate, struct error *err)
{
	char name[GATE_TEXT_BYTES];
	*gate = (struct gate){.required = required};
	if (strlen(text) >= sizeof gate->text)
		return error_set(err, -EINVAL, "condition '%.40s...' is too long", text);
	(void)snprintf(gate->text, sizeof gate->text, "%s", text);
	text += strspn(text, blanks);
	const size_t length = strcspn(text, " \t<>=");
	const char *rest = text + length + strspn(text + length, blanks);
	if (length == 0 || (*rest != '<' && *rest != '>'))
		return error_set(err, -EINVAL,
			"condition '%s': expected METRIC < VALUE or METRIC > VALUE, as 'throughput < -5%%'",
			gate->text);
	(void)snprintf(name, sizeof name, "%.*s", (int)length, text);
	int code = metric_find(name, &gate->metric, err);
	if (code)
		return error_prefix(err, code, "condition '%s'", gate->text);
	gate->above = (*rest++ == '>') != required;
	rest += *rest == '='; /* of an interval the end point makes no difference */
	rest += strspn(rest, blanks);
	return gate_parse_value(gate, rest, err);
}

/* --- judgement -------------------------------------------------------------------------------- */

/* The limit as a difference of y from this baseline; NAN: there is none (a share of nothing). */
static double bound_of(const struct gate *gate, const struct difference *d)
{
	if (!gate->relative)
		return metric_scaled(&gate->metric, gate->value) - d->a;
	if (metric_is_ratio(&gate->metric))
		return log1p(gate->value);
	return gate->value * d->a;
}

/* Distance from the limit in y, positive on the good side; below 0: what was seen is beyond it. */
static double margin_of(const struct gate *gate, const struct difference *d)
{
	const double bound = bound_of(gate, d);
	return gate->above ? bound - d->value : d->value - bound;
}

/* Within the noise floor, where no change at all would be within the limit. Where the figure itself
 * is meant, the noise floor of its change does not apply. */
static bool is_noise(const struct gate *gate, const struct difference *d)
{
	const double limit = gate->above ? gate->value : -gate->value;
	return gate->relative && limit >= 0 && fabs(d->value) <= d->floor;
}

/* Two-sided p that the difference is beyond the limit, as its interval has it; 1: not shown. */
static double p_beyond(const struct gate *gate, const struct difference *d)
{
	const double beyond = -margin_of(gate, d);
	if (isnan(beyond) || isnan(d->error) || is_noise(gate, d) ||
		beyond <= d->critical * d->error)
		return 1;
	return fmin(1, 2 * (double)d->tests * compare_student(-beyond / d->error, d->freedom));
}

/* By how much it is shown to be within the limit; below 0: not shown. */
static double room_of(const struct gate *gate, const struct difference *d)
{
	return isnan(d->error) ? -INFINITY
			       : margin_of(gate, d) - fmax(d->critical * d->error, d->floor);
}

static bool is_missing(const struct gate *gate, const struct difference *d)
{
	return isnan(d->value) || isnan(bound_of(gate, d));
}

static void no_figures(
	struct gate_result *result, const struct gate *gate, size_t missing, size_t count)
{
	*result = (struct gate_result){
		.outcome = GATE_INCONCLUSIVE, .missing = true, .point = count, .points = missing};
	if (count <= 1)
		(void)snprintf(result->why, sizeof result->why,
			"%s is not available in both results", gate->metric.name);
	else
		(void)snprintf(result->why, sizeof result->why,
			"%s is not available at %zu of %zu points", gate->metric.name, missing,
			count);
}

/* "-17.2 % (99 % CI -73.0 % to +154.2 %)" */
static void gate_say(struct gate_result *result, const struct gate *gate,
	const struct difference *d, double level)
{
	char text[3][METRIC_TEXT_BYTES];
	const struct metric *metric = &gate->metric;
	const double y[] = {d->value, d->interval.low, d->interval.high};
	for (size_t i = 0; i < 3; i++)
		if (gate->relative)
			(void)metric_change_text(metric, metric_change(metric, y[i]), text[i]);
		else
			(void)metric_text(metric, metric_unscaled(metric, d->a + y[i]), text[i]);
	if (isnan(d->error))
		(void)snprintf(result->why, sizeof result->why,
			"%s (no CI: one repetition has no spread)", text[0]);
	else
		(void)snprintf(result->why, sizeof result->why, "%s (%g %% CI %s to %s)", text[0],
			100 * (1 - level), text[1], text[2]);
}

/* About how many repetitions per side would show what was seen: that the most certain point is
 * worse, or that every point is within. */
static size_t repeats_to_decide(
	const struct gate *gate, const struct difference *differences, size_t count, double level)
{
	enum { REPEATS_TO_BEGIN = 3 };
	const double among = count > 1 ? 2 * (double)count : 1;
	size_t worse = 0;
	size_t within = 0;
	bool seen_beyond = false;
	bool never = false;
	for (size_t i = 0; i < count; i++) {
		const struct difference *d = &differences[i];
		const double margin = margin_of(gate, d);
		const bool beyond = margin < 0;
		size_t repeats = REPEATS_TO_BEGIN;
		if (room_of(gate, d) > 0)
			continue;
		if (!isnan(d->error))
			repeats = compare_repeats_for(
				d, fabs(margin), beyond ? level / among : level);
		seen_beyond = seen_beyond || beyond;
		never = never || repeats == 0;
		if (beyond && repeats > 0 && (worse == 0 || repeats < worse))
			worse = repeats;
		within = repeats > within ? repeats : within;
	}
	return seen_beyond ? worse : never ? 0 : within;
}

/* p: (count), among the points.  Returns whether it is worse anywhere. */
static bool find_worse(const struct gate *gate, const double *p, size_t count,
	const struct difference *overall, double level, struct gate_result *result)
{
	const double own = count > 1 ? level / 2 : level;
	const bool mean_is = count > 1 && p_beyond(gate, overall) <= own;
	for (size_t i = 0; i < count; i++) {
		if (p[i] > own)
			continue;
		result->points++;
		if (result->point == count || p[i] < p[result->point])
			result->point = i;
	}
	result->point = mean_is ? count : result->point;
	return mean_is || result->points > 0;
}

static void find_least_within(const struct gate *gate, const struct difference *differences,
	size_t count, struct gate_result *result)
{
	result->point = 0;
	for (size_t i = 0; i < count; i++) {
		const double room = room_of(gate, &differences[i]);
		result->points += !(room > 0);
		if (room < room_of(gate, &differences[result->point]))
			result->point = i;
	}
}

void gate_judge(const struct gate *gate, const struct difference *differences, size_t count,
	const struct difference *overall, double level, struct gate_result *result)
{
	*result = (struct gate_result){.point = count};
	size_t missing = 0;
	double *p = calloc(count + 1, sizeof *p);
	for (size_t i = 0; i < count; i++)
		missing += is_missing(gate, &differences[i]) ? 1 : 0;
	if (!p || missing > 0 || count == 0) {
		no_figures(result, gate, missing, count);
		free(p);
		return;
	}
	for (size_t i = 0; i < count; i++)
		p[i] = p_beyond(gate, &differences[i]);
	compare_holm(p, count);
	if (find_worse(gate, p, count, overall, level, result)) {
		result->outcome = GATE_WORSE;
	} else {
		find_least_within(gate, differences, count, result);
		result->outcome = result->points > 0 ? GATE_INCONCLUSIVE : GATE_WITHIN;
	}
	if (result->outcome == GATE_INCONCLUSIVE)
		result->repeats_needed = repeats_to_decide(gate, differences, count, level);
	gate_say(result, gate, result->point == count ? overall : &differences[result->point],
		level);
	free(p);
}

bool gate_fails(const struct gate *gate, const struct gate_result *result)
{
	return result->outcome == GATE_WORSE ||
	       (gate->required && result->outcome == GATE_INCONCLUSIVE);
}
