/* Recursive descent over the text itself; brackets nest at most EXPRESSION_DEPTH deep. */
#include "harness/lab/expression.h"

#include "harness/base/clock.h"
#include "harness/base/units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { EXPRESSION_DEPTH = 16 };

struct expression {
	const char *at;
	const struct expression_scope *scope;
	int depth;
	const char *wrong; /* NULL: nothing yet */
	char name[EXPRESSION_NAME_BYTES];
};

static double expression_sum(struct expression *e);

int expression_define(struct expression_scope *scope, const char *name, double value)
{
	size_t i = 0;
	while (i < scope->count && strcmp(scope->of[i].name, name) != 0)
		i++;
	if (i == EXPRESSION_NAMES_MAX || strlen(name) >= EXPRESSION_NAME_BYTES)
		return -E2BIG;
	if (i == scope->count) {
		(void)snprintf(scope->of[i].name, sizeof scope->of[i].name, "%.*s",
			EXPRESSION_NAME_BYTES - 1, name);
		scope->count++;
	}
	scope->of[i].value = value;
	return 0;
}

static double expression_fail(struct expression *e, const char *wrong)
{
	if (!e->wrong)
		e->wrong = wrong;
	return (double)NAN;
}

static bool expression_takes(struct expression *e, char sign)
{
	while (isspace((unsigned char)*e->at))
		e->at++;
	if (*e->at != sign)
		return false;
	e->at++;
	return true;
}

/* "4ms", "16KiB", "2MiB/s", "90%", "1.5". */
static double expression_number(struct expression *e)
{
	char text[EXPRESSION_NAME_BYTES];
	size_t length = strspn(e->at, "0123456789.");
	length += strspn(e->at + length, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ%");
	if (e->at[length] == '/' && e->at[length + 1] == 's' &&
		!isalnum((unsigned char)e->at[length + 2]) &&
		isalpha((unsigned char)e->at[length - 1]))
		length += 2;
	if (length >= sizeof text)
		return expression_fail(e, "a number is too long");
	memcpy(text, e->at, length);
	text[length] = '\0';
	e->at += length;
	double real;
	uint64_t whole;
	if (units_parse_share(text, &real) == 0)
		return real;
	if (units_parse_real(text, &real) == 0)
		return real;
	if (units_parse_duration(text, &whole) == 0)
		return (double)whole / (double)NS_PER_S;
	if (units_parse_size(text, &whole) == 0 || units_parse_rate(text, &whole) == 0)
		return (double)whole;
	return expression_fail(e, "a number has an unknown unit");
}

/* min(a, b, ...) and max(a, b, ...), behind the bracket. */
static double expression_extreme(struct expression *e, bool least)
{
	double value = expression_sum(e);
	while (expression_takes(e, ',')) {
		const double other = expression_sum(e);
		value = least ? fmin(value, other) : fmax(value, other);
	}
	return expression_takes(e, ')') ? value : expression_fail(e, "')' is missing");
}

static double expression_named(struct expression *e)
{
	size_t length = 0;
	while (isalnum((unsigned char)e->at[length]) || e->at[length] == '.' ||
		e->at[length] == '_')
		length++;
	(void)snprintf(e->name, sizeof e->name, "%.*s", (int)length, e->at);
	e->at += length;
	if (strcmp(e->name, "min") == 0 && expression_takes(e, '('))
		return expression_extreme(e, true);
	if (strcmp(e->name, "max") == 0 && expression_takes(e, '('))
		return expression_extreme(e, false);
	for (size_t i = 0; i < e->scope->count; i++)
		if (strcmp(e->scope->of[i].name, e->name) == 0 && !isnan(e->scope->of[i].value))
			return e->scope->of[i].value;
	return expression_fail(e, "unknown name");
}

static double expression_factor(struct expression *e)
{
	if (++e->depth > EXPRESSION_DEPTH)
		return expression_fail(e, "brackets are nested too deep");
	double value;
	if (expression_takes(e, '-')) {
		value = -expression_factor(e);
	} else if (expression_takes(e, '(')) {
		value = expression_sum(e);
		if (!expression_takes(e, ')'))
			value = expression_fail(e, "')' is missing");
	} else if (isdigit((unsigned char)*e->at) || *e->at == '.') {
		value = expression_number(e);
	} else if (isalpha((unsigned char)*e->at)) {
		value = expression_named(e);
	} else {
		value = expression_fail(
			e, *e->at ? "a number or a name is expected" : "it ends too early");
	}
	e->depth--;
	return value;
}

static double expression_product(struct expression *e)
{
	double value = expression_factor(e);
	while (!e->wrong) {
		if (expression_takes(e, '*'))
			value *= expression_factor(e);
		else if (expression_takes(e, '/'))
			value /= expression_factor(e);
		else
			break;
	}
	return value;
}

static double expression_sum(struct expression *e)
{
	double value = expression_product(e);
	while (!e->wrong) {
		if (expression_takes(e, '+'))
			value += expression_product(e);
		else if (expression_takes(e, '-'))
			value -= expression_product(e);
		else
			break;
	}
	return value;
}

int expression_evaluate(
	const char *text, const struct expression_scope *scope, double *value, struct error *err)
{
	struct expression e = {.at = text, .scope = scope};
	*value = expression_sum(&e);
	while (isspace((unsigned char)*e.at))
		e.at++;
	if (!e.wrong && *e.at)
		e.wrong = "something follows it";
	if (!e.wrong && !isfinite(*value))
		e.wrong = "it divides by zero";
	if (!e.wrong)
		return 0;
	const bool named = strcmp(e.wrong, "unknown name") == 0;
	return error_set(err, -EINVAL, "cannot compute '%.120s': %s%s%s%s", text, e.wrong,
		named ? " '" : "", named ? e.name : "", named ? "'" : "");
}
