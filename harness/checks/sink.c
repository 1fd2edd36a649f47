/* Lines of JSON from a check to who keeps them. */
#include "harness/checks/sink.h"

#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/record/fields.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the check's end -------------------------------------------------------------------------- */

enum { SINK_TEXT_BYTES = 1024 };

/* Takes the message. */
static void sink_send(struct check_sink *sink, json_t *message)
{
	char *line = message ? json_dumps(message, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
	json_decref(message);
	if (!line)
		return;
	const size_t length = strlen(line);
	line[length] =
		'\n'; /* in place of its end: one write, so that lines of threads stay whole */
	(void)files_write_all(sink->fd, line, length + 1);
	free(line);
}

/* The caller's words, in a local `text`. */
#define SINK_FORMAT                                                    \
	char text[SINK_TEXT_BYTES];                                    \
	do {                                                           \
		va_list arguments;                                     \
		va_start(arguments, format);                           \
		(void)vsnprintf(text, sizeof text, format, arguments); \
		va_end(arguments);                                     \
	} while (0)

void sink_activity(struct check_sink *sink, const char *format, ...)
{
	SINK_FORMAT;
	sink_send(sink, json_pack("{s:o}", "activity", fields_text(text)));
}

void sink_value(struct check_sink *sink, const char *figure, const char *place, double value)
{
	if (!isfinite(value)) {
		sink_missing(sink, figure, place, "the check gave a value that is no number");
		return;
	}
	sink_send(sink, json_pack("{s:s, s:s, s:f}", "value", figure, "place", place, "is", value));
}

void sink_text(struct check_sink *sink, const char *figure, const char *place, const char *text)
{
	sink_send(sink, json_pack("{s:s, s:s, s:o}", "fact", figure, "place", place, "is",
				fields_text(text)));
}

void sink_number(struct check_sink *sink, const char *figure, const char *place, double value)
{
	if (!isfinite(value)) {
		sink_missing(sink, figure, place, "the check gave a value that is no number");
		return;
	}
	sink_send(sink, json_pack("{s:s, s:s, s:f}", "fact", figure, "place", place, "is", value));
}

static void sink_send_missing(
	struct check_sink *sink, const char *figure, const char *place, const char *why, bool lack)
{
	sink_send(sink, json_pack("{s:s, s:s, s:o, s:b}", "missing", figure, "place", place, "why",
				fields_text(why), "lack", lack));
}

void sink_missing(
	struct check_sink *sink, const char *figure, const char *place, const char *format, ...)
{
	SINK_FORMAT;
	sink_send_missing(sink, figure, place, text, false);
}

void sink_lack(
	struct check_sink *sink, const char *figure, const char *place, const char *format, ...)
{
	SINK_FORMAT;
	sink_send_missing(sink, figure, place, text, true);
}

void sink_peak(struct check_sink *sink, const char *figure, const char *place, double peak,
	const char *source)
{
	sink_send(sink, json_pack("{s:s, s:s, s:o, s:o}", "peak", figure, "place", place, "is",
				fields_number(peak), "source", fields_text(source)));
}

void sink_event(struct check_sink *sink, const char *figure, const char *place, double at_s,
	const char *format, ...)
{
	SINK_FORMAT;
	sink_send(sink, json_pack("{s:s, s:s, s:o, s:o}", "event", figure, "place", place, "at_s",
				fields_number(at_s), "text", fields_text(text)));
}

void sink_condition(struct check_sink *sink, const char *figure, const char *place, const char *is,
	const char *format, ...)
{
	SINK_FORMAT;
	sink_send(sink, json_pack("{s:s, s:s, s:s, s:o}", "condition", figure, "place", place, "is",
				is, "text", fields_text(text)));
}

void sink_point(struct check_sink *sink, const char *series, const char *place,
	enum figure_unit unit, double at_s, double value)
{
	sink_send(sink, json_pack("{s:s, s:s, s:s, s:o, s:o}", "point", series, "place", place,
				"unit", figure_unit_name(unit), "at_s", fields_number(at_s), "is",
				fields_number(value)));
}

void sink_note(struct check_sink *sink, const char *format, ...)
{
	SINK_FORMAT;
	sink_send(sink, json_pack("{s:o}", "note", fields_text(text)));
}

void sink_end(struct check_sink *sink, int code, const struct error *err)
{
	sink_send(sink, json_pack("{s:i, s:o}", "end", code, "why", fields_text(err->text)));
}

/* --- asking for less -------------------------------------------------------------------------- */

/* Whether `open`, "figure" or "figure @ place", is about them; place NULL: any. */
static bool open_names(const char *open, const char *figure, const char *place)
{
	const size_t length = strlen(figure);
	if (strncmp(open, figure, length) != 0)
		return false;
	if (!open[length])
		return true;
	if (strncmp(open + length, " @ ", 3) != 0)
		return false;
	return !place || strcmp(open + length + 3, place) == 0;
}

bool check_wants(const struct check_context *context, const char *figure, const char *place)
{
	if (!check_asks(context->check, figure))
		return false;
	bool wanted = !context->open;
	for (size_t i = 0; i < context->open_count && !wanted; i++)
		wanted = open_names(context->open[i], figure, place);
	return wanted;
}

bool check_stopped(const struct check_context *context)
{
	return (context->stop && atomic_load(context->stop)) ||
	       (context->deadline_ns && clock_now_ns() >= context->deadline_ns);
}

/* --- the other end ---------------------------------------------------------------------------- */

int gather_open(struct gather *gather, const char *check, const char *kind)
{
	*gather = (struct gather){0};
	gather->check = json_pack(
		"{s:o, s:s, s:s, s:n, s:n, s:f, s:f, s:i, s:[], s:[], s:[], s:[], s:[], s:[], s:[]}",
		"check", fields_text(check), "kind", kind, "state", "died", "why", "activity",
		"started_s", 0.0, "seconds", 0.0, "rounds", 0, "values", "facts", "missing",
		"conditions", "events", "series", "notes");
	return gather->check ? 0 : -ENOMEM;
}

void gather_close(struct gather *gather)
{
	json_decref(gather->check);
	free(gather->pending);
	*gather = (struct gather){0};
}

/* The entry of a list that is about these; NULL: there is none. */
static json_t *gather_find(json_t *list, const char *kind, const char *name, const char *place)
{
	size_t i;
	json_t *entry;
	json_array_foreach(list, i, entry)
	{
		const char *its = json_string_value(json_object_get(entry, kind));
		const char *where = json_string_value(json_object_get(entry, "place"));
		if (its && where && strcmp(its, name) == 0 && strcmp(where, place) == 0)
			return entry;
	}
	return NULL;
}

/* The same, made of `fresh` where it is not there yet, which it takes; NULL: the list is full. */
static json_t *gather_entry(struct gather *gather, const char *list_name, const char *kind,
	const char *name, const char *place, size_t most, json_t *fresh)
{
	json_t *list = json_object_get(gather->check, list_name);
	json_t *entry = gather_find(list, kind, name, place);
	if (!entry && json_array_size(list) < most) {
		gather->failed |= json_array_append(list, fresh) != 0;
		entry = fresh;
	} else if (!entry) {
		gather->dropped = true;
		gather->lost |= strcmp(kind, "figure") == 0;
	}
	json_decref(fresh);
	return entry;
}

static json_t *gather_values(struct gather *gather, const char *figure, const char *place)
{
	return gather_entry(gather, "values", "figure", figure, place, GATHER_VALUES_MAX,
		json_pack("{s:s, s:s, s:[], s:n, s:n}", "figure", figure, "place", place, "values",
			"peak", "source"));
}

/* Adds to an array what it takes, if there is room. */
static void gather_add(struct gather *gather, json_t *array, json_t *value, size_t most)
{
	if (json_array_size(array) >= most) {
		gather->dropped = true;
		json_decref(value);
		return;
	}
	gather->failed |= json_array_append_new(array, value) != 0;
}

static void gather_fact(
	struct gather *gather, const char *figure, const char *place, const json_t *message)
{
	json_t *entry = gather_entry(gather, "facts", "figure", figure, place, GATHER_VALUES_MAX,
		json_pack("{s:s, s:s}", "figure", figure, "place", place));
	if (entry)
		gather->failed |=
			json_object_set(entry, "value", json_object_get(message, "is")) != 0;
}

static void gather_peak(
	struct gather *gather, const char *figure, const char *place, const json_t *message)
{
	json_t *entry = gather_values(gather, figure, place);
	if (!entry)
		return;
	gather->failed |= json_object_set(entry, "peak", json_object_get(message, "is")) != 0 ||
			  json_object_set(entry, "source", json_object_get(message, "source")) != 0;
}

static void gather_missing(
	struct gather *gather, const char *figure, const char *place, const json_t *message)
{
	json_t *entry = gather_entry(gather, "missing", "figure", figure, place, GATHER_VALUES_MAX,
		json_pack("{s:s, s:s}", "figure", figure, "place", place));
	if (!entry)
		return;
	/* What failed once is no lack, whatever else is said of it. */
	const bool lack = json_is_true(json_object_get(message, "lack")) &&
			  !json_is_false(json_object_get(entry, "lack"));
	gather->failed |= json_object_set(entry, "why", json_object_get(message, "why")) != 0 ||
			  json_object_set_new(entry, "lack", json_boolean(lack)) != 0;
}

void gather_condition(struct gather *gather, const char *figure, const char *place, const char *is,
	const char *text)
{
	json_t *entry = gather_entry(gather, "conditions", "figure", figure, place,
		GATHER_VALUES_MAX, json_pack("{s:s, s:s}", "figure", figure, "place", place));
	if (entry)
		gather->failed |= json_object_set_new(entry, "is", fields_text(is)) != 0 ||
				  json_object_set_new(entry, "text", fields_text(text)) != 0;
}

static void gather_point(
	struct gather *gather, const char *series, const char *place, const json_t *message)
{
	const char *unit = json_string_value(json_object_get(message, "unit"));
	json_t *entry = gather_entry(gather, "series", "series", series, place, GATHER_VALUES_MAX,
		json_pack("{s:s, s:s, s:s, s:[]}", "series", series, "place", place, "unit",
			unit ? unit : "", "points"));
	if (entry)
		gather_add(gather, json_object_get(entry, "points"),
			json_pack("[O, O]", json_object_get(message, "at_s"),
				json_object_get(message, "is")),
			GATHER_POINTS_MAX);
}

/* Says how the check ended. */
static void gather_end(struct gather *gather, const json_t *message)
{
	const json_int_t code = json_integer_value(json_object_get(message, "end"));
	const char *state = code == 0 ? "done" : code == -EINTR ? "interrupted" : "failed";
	gather->ended = true;
	gather->failed |= json_object_set_new(gather->check, "state", json_string(state)) != 0;
	gather->failed |= json_object_set(gather->check, "why",
				  code == 0 ? json_null() : json_object_get(message, "why")) != 0;
}

static void gather_message(struct gather *gather, const json_t *message)
{
	const char *place = json_string_value(json_object_get(message, "place"));
	json_t *is = json_object_get(message, "is");
	const char *name;
	if (!place)
		place = "";
	if ((name = json_string_value(json_object_get(message, "value")))) {
		json_t *entry = gather_values(gather, name, place);
		if (entry)
			gather_add(gather, json_object_get(entry, "values"), json_incref(is),
				GATHER_REPEATS_MAX);
	} else if ((name = json_string_value(json_object_get(message, "fact")))) {
		gather_fact(gather, name, place, message);
	} else if ((name = json_string_value(json_object_get(message, "missing")))) {
		gather_missing(gather, name, place, message);
	} else if ((name = json_string_value(json_object_get(message, "peak")))) {
		gather_peak(gather, name, place, message);
	} else if ((name = json_string_value(json_object_get(message, "point")))) {
		gather_point(gather, name, place, message);
	} else if ((name = json_string_value(json_object_get(message, "condition")))) {
		const char *text = json_string_value(json_object_get(message, "text"));
		gather_condition(
			gather, name, place, is ? json_string_value(is) : "", text ? text : "");
	} else if ((name = json_string_value(json_object_get(message, "event")))) {
		gather_add(gather, json_object_get(gather->check, "events"),
			json_pack("{s:s, s:s, s:O, s:O}", "figure", name, "place", place, "at_s",
				json_object_get(message, "at_s"), "text",
				json_object_get(message, "text")),
			GATHER_EVENTS_MAX);
	} else if (json_object_get(message, "note")) {
		gather_add(gather, json_object_get(gather->check, "notes"),
			json_incref(json_object_get(message, "note")), GATHER_NOTES_MAX);
	} else if (json_object_get(message, "activity")) {
		gather->failed |= json_object_set(gather->check, "activity",
					  json_object_get(message, "activity")) != 0;
	} else if (json_object_get(message, "end")) {
		gather_end(gather, message);
	}
}

static void gather_line(struct gather *gather, const char *line, size_t size)
{
	json_t *message = json_loadb(line, size, 0, NULL);
	/* What is no message was torn by a death in the middle of it. */
	if (json_is_object(message))
		gather_message(gather, message);
	json_decref(message);
}

void gather_bytes(struct gather *gather, const char *bytes, size_t size)
{
	while (size > 0) {
		const char *newline = memchr(bytes, '\n', size);
		const size_t piece = newline ? (size_t)(newline - bytes) : size;
		if (gather->pending_size + piece <= GATHER_LINE_BYTES) {
			char *grown = realloc(gather->pending, gather->pending_size + piece + 1);
			if (!grown) {
				gather->failed = true;
				return;
			}
			memcpy(grown + gather->pending_size, bytes, piece);
			gather->pending = grown;
			gather->pending_size += piece;
		} else {
			gather->dropped = gather->lost = true;
		}
		if (!newline)
			return;
		gather_line(gather, gather->pending, gather->pending_size);
		gather->pending_size = 0;
		bytes += piece + 1;
		size -= piece + 1;
	}
}

void gather_state(struct gather *gather, const char *state, const char *format, ...)
{
	char why[ERROR_TEXT_BYTES];
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(why, sizeof why, format, arguments);
	va_end(arguments);
	gather->failed |= json_object_set_new(gather->check, "state", json_string(state)) != 0 ||
			  json_object_set_new(gather->check, "why", json_string(why)) != 0;
}

void gather_time(struct gather *gather, uint64_t started_ns, uint64_t began_ns, unsigned rounds)
{
	gather->failed |= json_object_set_new(gather->check, "started_s",
				  json_real((double)(began_ns - started_ns) / NS_PER_S)) != 0;
	gather->failed |= json_object_set_new(gather->check, "seconds",
				  json_real((double)(clock_now_ns() - began_ns) / NS_PER_S)) != 0;
	gather->failed |= json_object_set_new(gather->check, "rounds", json_integer(rounds)) != 0;
}
