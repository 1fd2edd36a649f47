/* The answers as mlbench.what-if/1. */
#include "harness/command/what_if.h"
#include "harness/record/config_json.h"
#include "harness/record/fields.h"

#include <math.h>

#define WHAT_IF_SCHEMA "mlbench.what-if/1"

static json_t *interval(const struct interval *range)
{
	return json_pack("[o,o]", fields_number(range->low), fields_number(range->high));
}

static json_t *sources(const struct what_if *what_if, const struct forecast *forecast)
{
	json_t *array = json_array();
	for (size_t i = 0; i < forecast->from_count; i++)
		(void)json_array_append_new(
			array, json_integer((json_int_t)what_if->points[forecast->from[i]]));
	return array;
}

static json_t *notes(const char (*lines)[NOTE_BYTES], size_t count)
{
	json_t *array = json_array();
	for (size_t i = 0; i < count; i++)
		(void)json_array_append_new(array, fields_text(lines[i]));
	return array;
}

static json_t *limit(const struct alternative *alternative)
{
	if (!alternative->stage[0])
		return json_null();
	return json_pack("{s:s, s:s?}", "stage", alternative->stage, "resource",
		alternative->resource[0] ? alternative->resource : NULL);
}

static json_t *what_if_json_answer(const struct what_if *what_if, size_t i)
{
	const struct alternative *alternative = &what_if->alternatives[i];
	const struct forecast *forecast = &alternative->forecast;
	const size_t item = what_if_measured_item(what_if, alternative);
	return json_pack("{s:o, s:b, s:f, s:o, s:f, s:o, s:o, s:o, s:o}", "settings",
		config_point_to_json(&what_if->asked, &what_if->grid, i), "predicted", 1,
		"throughput", forecast->throughput, "interval90", interval(&forecast->interval),
		"gain", forecast->throughput / what_if->base_measured - 1, "limit",
		limit(alternative), "calibrated_from", sources(what_if, forecast), "extrapolates",
		notes((const char(*)[NOTE_BYTES])alternative->notes, alternative->note_count),
		"measured",
		item < what_if->point_count ? fields_number(what_if->forecaster.measured[item])
					    : json_null());
}

static json_t *what_if_json_answers(const struct what_if *what_if)
{
	json_t *array = json_array();
	for (size_t i = 0; i < what_if->grid.points; i++)
		if (what_if->alternatives[i].done)
			(void)json_array_append_new(array, what_if_json_answer(what_if, i));
	return array;
}

static json_t *base(const struct what_if *what_if)
{
	json_t *repeats = json_array();
	for (size_t i = 0; i < what_if->base_repeat_count; i++)
		(void)json_array_append_new(repeats, json_real(what_if->base_repeats[i]));
	return json_pack("{s:I, s:o, s:f, s:o}", "point", (json_int_t)what_if->base, "settings",
		config_point_to_json(&what_if->record.config, &what_if->record.grid, what_if->base),
		"measured", what_if->base_measured, "repeats", repeats);
}

/* Of predicting measured points from each other; null: there was nothing to compare. */
static json_t *errors(const struct forecast_errors *of)
{
	return json_pack("{s:I, s:o, s:o}", "points", (json_int_t)of->count, "median",
		fields_number(of->median), "worst", fields_number(of->worst));
}

static json_t *contaminated(const struct what_if *what_if)
{
	if (what_if->contaminated == 0)
		return json_null();
	return json_pack("{s:I, s:s}", "points", (json_int_t)what_if->contaminated, "reason",
		what_if->contamination);
}

json_t *what_if_json(const struct what_if *what_if)
{
	const struct record *record = &what_if->record;
	return json_pack("{s:s, s:o, s:o, s:s, s:s, s:b, s:b, s:o, s:o, s:o, s:o, s:o}", "schema",
		WHAT_IF_SCHEMA, "name", fields_text(record->name), "result",
		fields_text(record->folder), "config_hash", record->config_hash, "unit",
		"samples/s", "predicted", 1, "complete",
		(int)(what_if->done == what_if->grid.points), "base", base(what_if), "alternatives",
		what_if_json_answers(what_if), "contaminated", contaminated(what_if),
		"cross_errors", errors(&what_if->errors), "fleet",
		what_if->fleet ? what_if_fleet_json(what_if) : json_null());
}
