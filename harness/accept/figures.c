/* The table of figures, and quantities in their units. */
#include "harness/accept/figures.h"

#include "harness/analyze/comparison.h"

#include "harness/base/array.h"
#include "harness/base/text.h"
#include "harness/base/units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct figure figure_list[] = {
#define FIGURE(kind, name, unit, sense, place, action, doc, remedy) \
	{ACCEPT_##kind, name, FIGURE_##unit, FIGURE_##sense, place, ACTION_##action, doc, remedy},
#define TEXTS(kind, name, texts)
#include "harness/accept/figures.def"
#undef FIGURE
#undef TEXTS
	{.name = NULL},
};

const char *figure_texts(const struct figure *figure)
{
	static const struct {
		enum accept_kind kind;
		const char *name, *texts;
	} of[] = {
#define FIGURE(...)
#define TEXTS(kind, name, texts) {ACCEPT_##kind, name, texts},
#include "harness/accept/figures.def"
#undef FIGURE
#undef TEXTS
	};
	for (size_t i = 0; i < COUNT(of); i++)
		if (of[i].kind == figure->kind && strcmp(of[i].name, figure->name) == 0)
			return of[i].texts;
	return NULL;
}

const char *accept_kind_name(enum accept_kind kind)
{
	static const char *const names[] = {
		"expect", "ceiling", "pipeline", "burn", "repeatable", "network"};
	return names[kind];
}

const char *accept_action_name(enum accept_action action)
{
	static const char *const names[] = {
		"none", "configure", "monitor", "reset", "isolate", "return to vendor"};
	return names[action];
}

enum accept_action accept_action_of(const char *name)
{
	int action = ACTION_RETURN;
	while (action > ACTION_NONE &&
		strcmp(name, accept_action_name((enum accept_action)action)) != 0)
		action--;
	return (enum accept_action)action;
}

const char *figure_unit_name(enum figure_unit unit)
{
	static const char *const names[] = {"", "", "samples/s", "requests/s", "bytes", "bytes/s",
		"FLOP/s", "ns", "%", "MHz", "C", "W"};
	return names[unit];
}

const char *figure_value_text(enum figure_unit unit, double value, char out[FIGURE_VALUE_BYTES])
{
	char number[UNITS_BYTES];
	switch (unit) {
	case FIGURE_BYTES:
		(void)snprintf(out, FIGURE_VALUE_BYTES, "%s", units_format_size(value, number));
		break;
	case FIGURE_BYTES_PER_S:
		(void)snprintf(out, FIGURE_VALUE_BYTES, "%s", units_format_rate(value, number));
		break;
	case FIGURE_NS:
		(void)snprintf(out, FIGURE_VALUE_BYTES, "%s", units_format_duration(value, number));
		break;
	case FIGURE_SHARE:
		(void)snprintf(out, FIGURE_VALUE_BYTES, "%s", units_format_share(value, number));
		break;
	case FIGURE_FLOPS:
		if (isfinite(value) && fabs(value) < 1e12)
			(void)snprintf(out, FIGURE_VALUE_BYTES, "%s GFLOP/s",
				UNITS_PLAIN(value * 1e-9, 3));
		else
			(void)snprintf(out, FIGURE_VALUE_BYTES, "%s TFLOP/s",
				UNITS_PLAIN(value * 1e-12, 4));
		break;
	case FIGURE_TEXT:
	case FIGURE_COUNT:
	case FIGURE_PER_S:
	case FIGURE_REQUESTS:
	case FIGURE_MHZ:
	case FIGURE_CELSIUS:
	case FIGURE_WATTS:
		(void)snprintf(out, FIGURE_VALUE_BYTES, "%s%s%s", units_format_count(value, number),
			*figure_unit_name(unit) ? " " : "", figure_unit_name(unit));
		break;
	}
	return out;
}

/* --- quantities as a person writes them ------------------------------------------------------- */

struct unit_word {
	enum figure_unit unit;
	const char *word;
	double scale;
};

static const struct unit_word unit_words[] = {
	{FIGURE_PER_S, "samples/s", 1},
	{FIGURE_PER_S, "images/s", 1},
	{FIGURE_PER_S, "/s", 1},
	{FIGURE_REQUESTS, "requests/s", 1},
	{FIGURE_REQUESTS, "IOPS", 1},
	{FIGURE_REQUESTS, "/s", 1},
	{FIGURE_BYTES, "B", 1},
	{FIGURE_BYTES, "bytes", 1},
	{FIGURE_BYTES, "KB", 1e3},
	{FIGURE_BYTES, "MB", 1e6},
	{FIGURE_BYTES, "GB", 1e9},
	{FIGURE_BYTES, "TB", 1e12},
	{FIGURE_BYTES, "KiB", 1024},
	{FIGURE_BYTES, "MiB", 1048576},
	{FIGURE_BYTES, "GiB", 1073741824},
	{FIGURE_BYTES, "TiB", 1099511627776},
	{FIGURE_BYTES_PER_S, "B/s", 1},
	{FIGURE_BYTES_PER_S, "bytes/s", 1},
	{FIGURE_BYTES_PER_S, "KB/s", 1e3},
	{FIGURE_BYTES_PER_S, "MB/s", 1e6},
	{FIGURE_BYTES_PER_S, "GB/s", 1e9},
	{FIGURE_BYTES_PER_S, "TB/s", 1e12},
	{FIGURE_BYTES_PER_S, "KiB/s", 1024},
	{FIGURE_BYTES_PER_S, "MiB/s", 1048576},
	{FIGURE_BYTES_PER_S, "GiB/s", 1073741824},
	{FIGURE_BYTES_PER_S, "TiB/s", 1099511627776},
	{FIGURE_FLOPS, "FLOP/s", 1},
	{FIGURE_FLOPS, "MFLOP/s", 1e6},
	{FIGURE_FLOPS, "GFLOP/s", 1e9},
	{FIGURE_FLOPS, "TFLOP/s", 1e12},
	{FIGURE_FLOPS, "PFLOP/s", 1e15},
	{FIGURE_NS, "ns", 1},
	{FIGURE_NS, "us", 1e3},
	{FIGURE_NS, "ms", 1e6},
	{FIGURE_NS, "s", 1e9},
	{FIGURE_NS, "min", 60e9},
	{FIGURE_NS, "h", 3600e9},
	{FIGURE_SHARE, "%", 0.01},
	{FIGURE_SHARE, "", 1},
	{FIGURE_COUNT, "", 1},
	{FIGURE_COUNT, "cores", 1},
	{FIGURE_MHZ, "MHz", 1},
	{FIGURE_MHZ, "GHz", 1e3},
	{FIGURE_CELSIUS, "C", 1},
	{FIGURE_WATTS, "W", 1},
	{FIGURE_WATTS, "kW", 1e3},
};

/* What a right value of this unit looks like. */
static const char *unit_example(enum figure_unit unit)
{
	static const char *const examples[] = {"a text", "64", "2,000 samples/s", "20,000 IOPS",
		"512 GiB", "1.5 GiB/s", "30 GFLOP/s", "5 ms", "90 %", "2,600 MHz", "85 C", "700 W"};
	return examples[unit];
}

/* The digits of text without the commas between thousands; what follows them.  NULL: there is no number, or a comma is
 * not between thousands. */
static const char *take_digits(const char *text, double *value)
{
	char digits[40];
	size_t length = 0;
	const char *at = text;
	int since_comma = -1; /* digits; -1: no comma yet */
	if (*at == '-' || *at == '+')
		digits[length++] = *at++;
	for (; length + 1 < sizeof digits; at++) {
		if (*at == ',' && isdigit((unsigned char)at[1])) {
			if (since_comma >= 0 && since_comma != 3)
				return NULL;
			since_comma = 0;
		} else if (isdigit((unsigned char)*at)) {
			digits[length++] = *at;
			since_comma += since_comma >= 0;
		} else {
			break;
		}
	}
	if (since_comma >= 0 && since_comma != 3)
		return NULL;
	while (length + 1 < sizeof digits && (isdigit((unsigned char)*at) || *at == '.'))
		digits[length++] = *at++;
	if ((*at == 'e' || *at == 'E') &&
		isdigit((unsigned char)at[1 + (at[1] == '-' || at[1] == '+')]))
		do
			digits[length++] = *at++;
		while (length + 1 < sizeof digits &&
			(isdigit((unsigned char)*at) || *at == '-' || *at == '+'));
	digits[length] = '\0';
	char *end;
	*value = strtod(digits, &end);
	return length > 0 && *end == '\0' && isfinite(*value) ? at : NULL;
}

int figure_value_parse(enum figure_unit unit, const char *text, double *value, struct error *err)
{
	double number;
	const char *rest = take_digits(text, &number);
	if (!rest)
		return error_set(err, -EINVAL, "'%.64s' is no number; write it as '%s'", text,
			unit_example(unit));
	rest += strspn(rest, " \t");
	const struct unit_word *other = NULL;
	for (size_t i = 0; i < COUNT(unit_words); i++) {
		if (strcmp(unit_words[i].word, rest) != 0)
			continue;
		if (unit_words[i].unit == unit) {
			*value = number * unit_words[i].scale;
			return 0;
		}
		other = &unit_words[i];
	}
	const double bits = unit == FIGURE_BYTES_PER_S ? units_bit_rate(rest, strlen(rest)) : 0;
	if (bits > 0) {
		*value = number * bits;
		return 0;
	}
	if (!*rest)
		return error_set(err, -EINVAL, "'%.64s' has no unit; write it as '%s'", text,
			unit_example(unit));
	if (other)
		return error_set(err, -EINVAL,
			"'%s' is not a unit of this figure; write it as '%s'", rest,
			unit_example(unit));
	return error_set(
		err, -EINVAL, "unknown unit '%.32s'; write it as '%s'", rest, unit_example(unit));
}

/* --- finding them ----------------------------------------------------------------------------- */

enum { PIPELINE_FIGURES_MAX = 128 };

/* The metrics of `compare`, which are figures of a pipeline check, as plans ask for them: kept for the process's life. */
static struct metric pipeline_metrics[PIPELINE_FIGURES_MAX];
static struct figure pipeline_figures[PIPELINE_FIGURES_MAX];
static size_t pipeline_count;

static const struct figure *figure_of_metric(const struct metric *metric)
{
	static const enum figure_unit units[] = {
		[METRIC_PER_S] = FIGURE_PER_S,
		[METRIC_NS] = FIGURE_NS,
		[METRIC_SHARE] = FIGURE_SHARE,
		[METRIC_BYTES] = FIGURE_BYTES,
		[METRIC_BYTES_PER_S] = FIGURE_BYTES_PER_S,
		[METRIC_CORES] = FIGURE_COUNT,
		[METRIC_MHZ] = FIGURE_MHZ,
		[METRIC_WATTS] = FIGURE_WATTS,
		[METRIC_CELSIUS] = FIGURE_CELSIUS,
	};
	static const enum figure_sense senses[] = {
		[METRIC_MORE_IS_BETTER] = FIGURE_MORE_IS_BETTER,
		[METRIC_LESS_IS_BETTER] = FIGURE_LESS_IS_BETTER,
		[METRIC_NEITHER] = FIGURE_NEITHER,
	};
	if (pipeline_count == PIPELINE_FIGURES_MAX)
		return NULL;
	struct metric *kept = &pipeline_metrics[pipeline_count];
	*kept = *metric;
	pipeline_figures[pipeline_count] = (struct figure){
		.kind = ACCEPT_PIPELINE,
		.name = kept->name,
		.unit = units[metric->kind->unit],
		.sense = senses[metric->kind->sense],
		.place = "",
		.action = ACTION_ISOLATE,
		.doc = metric->kind->title,
		.remedy =
			"look at the check's bottleneck, and compare the run with one of a good node (mlbench compare)",
	};
	return &pipeline_figures[pipeline_count++];
}

const struct figure *figure_find(enum accept_kind kind, const char *name)
{
	for (const struct figure *figure = figure_list; figure->name; figure++)
		if (figure->kind == kind && strcmp(figure->name, name) == 0)
			return figure;
	if (kind != ACCEPT_PIPELINE)
		return NULL;
	for (size_t i = 0; i < pipeline_count; i++)
		if (strcmp(pipeline_figures[i].name, name) == 0)
			return &pipeline_figures[i];
	struct metric metric;
	return metric_find(name, &metric, NULL) == 0 ? figure_of_metric(&metric) : NULL;
}

int figure_refuse(enum accept_kind kind, const char *name, struct error *err)
{
	const char *names[256];
	size_t count = 0;
	for (const struct figure *figure = figure_list; figure->name; figure++) {
		if (strcmp(figure->name, name) == 0)
			return error_set(err, -EINVAL,
				"'%s' is a figure of kind = %s, not of kind = %s", name,
				accept_kind_name(figure->kind), accept_kind_name(kind));
		if (figure->kind == kind && count < COUNT(names))
			names[count++] = figure->name;
	}
	const char *near = suggest_nearest(name, names, count);
	struct metric metric;
	if (!near && kind == ACCEPT_PIPELINE && metric_find(name, &metric, err))
		return -EINVAL; /* it names the nearest metric */
	return error_set(err, -EINVAL, "unknown key or figure '%.64s' of kind = %s%s%s%s", name,
		accept_kind_name(kind), near ? "; did you mean '" : "", near ? near : "",
		near ? "'?" : " (mlbench help plan lists them)");
}
