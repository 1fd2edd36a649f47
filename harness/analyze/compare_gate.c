/* The grammar of gates, and when one holds. */
#include "harness/analyze/compare_gate.h"

#include "harness/base/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char blanks[] = " \t";

/* --- grammar ------------------------------------------------------------------------------------------------ */

static int refuse_value(const struct gate *gate, const char *value, struct error *err)
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
		return refuse_value(gate, text, err);
	if (metric_is_ratio(&gate->metric) && gate->value <= 0)
		return error_set(err, -EINVAL,
			"condition '%s': %s is above 0; a change has '%%', as '%s %s%%'",
			gate->text, gate->metric.name, gate->above ? ">" : "<", text);
	return 0;
}

static int parse_relative(struct gate *gate, char *text, struct error *err)
{
	double percent;
	text[strlen(text) - 1] = '\0';
	if (units_parse_real(text, &percent) || !isfinite(percent))
		return refuse_value(gate, text, err);
	gate->relative = true;
	gate->value = percent / 100;
	if (gate->value <= -1)
		return error_set(err, -EINVAL, "condition '%s': nothing falls by 100 %% or more",
			gate->text);
	return 0;
}

static int parse_value(struct gate *gate, const char *text, struct error *err)
{
	char value[GATE_TEXT_BYTES];
	(void)snprintf(value, sizeof value, "%s", text);
	size_t size = strlen(value);
	while (size > 0 && strchr(blanks, value[size - 1]))
		value[--size] = '\0';
	if (size == 0)
		return refuse_value(gate, "", err);
	return value[size - 1] == '%' ? parse_relative(gate, value, err)
				      : parse_absolute(gate, value, err);
}

int gate_parse(const char *text, struct gate *gate, struct error *err)
{
	char name[GATE_TEXT_BYTES];
	*gate = (struct gate){0};
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
	gate->above = *rest++ == '>';
	rest += *rest == '='; /* of an interval the end point makes no difference */
	rest += strspn(rest, blanks);
	return parse_value(gate, rest, err);
}

/* --- judgement ---------------------------------------------------------------------------------------------- */

/* The bound as a difference of y from this baseline; NAN: none (a share of nothing). */
static double bound_of(const struct gate *gate, const struct difference *d)
{
	if (!gate->relative)
		return metric_scaled(&gate->metric, gate->value) - d->a;
	if (metric_is_ratio(&gate->metric))
		return log1p(gate->value);
	return gate->value * d->a;
}

/* Two-sided p that the difference is beyond the bound, as its interval has it; 1: cannot be told. */
static double p_beyond(const struct gate *gate, const struct difference *d)
{
	const double bound = bound_of(gate, d);
	/* Where a figure itself is meant, the noise floor of its change says nothing. */
	if (isnan(bound) || isnan(d->error) || (gate->relative && fabs(d->value) <= d->floor))
		return 1;
	const double margin = gate->above ? d->value - bound : bound - d->value;
	if (margin <= d->critical * d->error)
		return 1;
	return fmin(1, 2 * (double)d->tests * compare_student(-margin / d->error, d->freedom));
}

static bool is_missing(const struct gate *gate, const struct difference *d)
{
	return isnan(d->value) || isnan(bound_of(gate, d));
}

static void no_figures(
	struct gate_result *result, const struct gate *gate, size_t missing, size_t count)
{
	result->outcome = GATE_NO_FIGURES;
	if (count <= 1)
		(void)snprintf(result->why, sizeof result->why,
			"%s is not available in both results: a gate without figures does not pass",
			gate->metric.name);
	else
		(void)snprintf(result->why, sizeof result->why,
			"%s is not available at %zu of %zu points: a gate without figures does not pass",
			gate->metric.name, missing, count);
}

static void untold(struct gate_result *result, const struct gate *gate)
{
	result->outcome = GATE_NO_FIGURES;
	(void)snprintf(result->why, sizeof result->why,
		"one repetition a side tells no spread of %s: a gate that cannot be judged does not pass",
		gate->metric.name);
}

static void say(struct gate_result *result, const struct gate *gate, const struct difference *d)
{
	char change[METRIC_TEXT_BYTES];
	char low[METRIC_TEXT_BYTES];
	char high[METRIC_TEXT_BYTES];
	const struct metric *metric = &gate->metric;
	if (gate->relative)
		(void)snprintf(result->why, sizeof result->why, "%s %s, %s to %s", metric->name,
			metric_change_text(metric, metric_change(metric, d->value), change),
			metric_change_text(metric, metric_change(metric, d->interval.low), low),
			metric_change_text(metric, metric_change(metric, d->interval.high), high));
	else
		(void)snprintf(result->why, sizeof result->why, "%s %s, %s to %s", metric->name,
			metric_text(metric, metric_unscaled(metric, d->b), change),
			metric_text(metric, metric_unscaled(metric, d->a + d->interval.low), low),
			metric_text(
				metric, metric_unscaled(metric, d->a + d->interval.high), high));
}

void gate_judge(const struct gate *gate, const struct difference *differences, size_t count,
	const struct difference *overall, double level, struct gate_result *result)
{
	*result = (struct gate_result){.outcome = GATE_PASSES, .point = count};
	size_t missing = 0;
	size_t told = 0;
	double *p = calloc(count + 1, sizeof *p);
	for (size_t i = 0; i < count; i++) {
		missing += is_missing(gate, &differences[i]) ? 1 : 0;
		told += isnan(differences[i].error) ? 0 : 1;
	}
	if (!p || missing > 0 || count == 0) {
		no_figures(result, gate, missing, count);
		free(p);
		return;
	}
	const bool overall_holds = count > 1 && p_beyond(gate, overall) <= level;
	if (told == 0 && isnan(overall->error)) {
		untold(result, gate);
		free(p);
		return;
	}
	for (size_t i = 0; i < count; i++)
		p[i] = p_beyond(gate, &differences[i]);
	compare_holm(p, count);
	for (size_t i = 0; i < count; i++) {
		if (p[i] > level)
			continue;
		result->points++;
		if (result->point == count || p[i] < p[result->point])
			result->point = i;
	}
	if (overall_holds || result->points > 0)
		result->outcome = GATE_HOLDS;
	result->point = overall_holds ? count : result->point;
	const bool of_mean = result->point == count;
	say(result, gate,
		!of_mean    ? &differences[result->point]
		: count > 1 ? overall
			    : differences);
	free(p);
}
