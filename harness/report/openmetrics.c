/* The text of metrics. */
#include "harness/report/openmetrics.h"

#include "harness/base/text.h"

#include <math.h>
#include <string.h>

static const char *type_name(enum openmetrics_type type, enum openmetrics_dialect dialect)
{
	switch (type) {
	case OPENMETRICS_COUNTER:
		return "counter";
	case OPENMETRICS_INFO:
		return dialect == OPENMETRICS_1_0 ? "info" : "gauge";
	case OPENMETRICS_GAUGE:
		break;
	}
	return "gauge";
}

static size_t without_suffix(const char *name, const char *suffix)
{
	const size_t length = strlen(name);
	const size_t cut = strlen(suffix);
	return length > cut && strcmp(name + length - cut, suffix) == 0 ? length - cut : length;
}

/* Bytes of the sample's name that are the family's. */
static size_t family_length(
	const struct openmetrics_family *family, enum openmetrics_dialect dialect)
{
	if (dialect == OPENMETRICS_1_0 && family->type == OPENMETRICS_COUNTER)
		return without_suffix(family->name, "_total");
	if (dialect == OPENMETRICS_1_0 && family->type == OPENMETRICS_INFO)
		return without_suffix(family->name, "_info");
	return strlen(family->name);
}

static void openmetrics_add_head(
	struct openmetrics *metrics, const struct openmetrics_family *family)
{
	const int length = (int)family_length(family, metrics->dialect);
	buffer_format(metrics->out, "# HELP %.*s %s\n", length, family->name, family->help);
	buffer_format(metrics->out, "# TYPE %.*s %s\n", length, family->name,
		type_name(family->type, metrics->dialect));
	if (family->unit[0] && metrics->dialect == OPENMETRICS_1_0)
		buffer_format(metrics->out, "# UNIT %.*s %s\n", length, family->name, family->unit);
}

/* One character of a label's value; returns the bytes it took. */
static size_t add_character(struct buffer *out, const char *text)
{
	const size_t length = utf8_character(text);
	if (*text == '\n')
		buffer_text(out, "\\n");
	else if (length == 0 || utf8_is_control(text))
		buffer_text(out, UTF8_REPLACEMENT);
	else if (*text == '"' || *text == '\\')
		buffer_format(out, "\\%c", *text);
	else
		buffer_add(out, text, length);
	return length > 0 ? length : 1;
}

static void openmetrics_add_label(struct buffer *out, const struct openmetrics_label *label)
{
	buffer_format(out, "%s=\"", label->name);
	for (size_t at = 0; label->value[at] && at < OPENMETRICS_LABEL_BYTES;)
		at += add_character(out, label->value + at);
	buffer_text(out, "\"");
}

static void openmetrics_add_value(struct buffer *out, double value)
{
	if (isinf(value))
		buffer_text(out, value > 0 ? "+Inf" : "-Inf");
	else
		buffer_format(out, "%.15g", value);
}

void openmetrics_add(struct openmetrics *metrics, const struct openmetrics_family *family,
	const struct openmetrics_label *labels, size_t label_count, double value)
{
	if (isnan(value))
		return;
	if (metrics->open != family)
		openmetrics_add_head(metrics, family);
	metrics->open = family;
	buffer_text(metrics->out, family->name);
	for (size_t i = 0; i < label_count; i++) {
		buffer_text(metrics->out, i ? "," : "{");
		openmetrics_add_label(metrics->out, &labels[i]);
	}
	buffer_text(metrics->out, label_count > 0 ? "} " : " ");
	openmetrics_add_value(metrics->out, value);
	buffer_text(metrics->out, "\n");
}

void openmetrics_end(struct openmetrics *metrics)
{
	buffer_text(metrics->out, "# EOF\n");
}
