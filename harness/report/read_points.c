/* Reads at other depths, from the lines of repetitions. */
#include "harness/report/read_points.h"

#include "harness/base/units.h"
#include "harness/config/shape.h"
#include "harness/record/fields.h"
#include "harness/report/part.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Told of each repetition of a point that has read points. */
typedef void visit_repetition(void *context, const struct measurement *m);

/* Older results have none, and most of a line is windows: it is read only where it has some. */
static void read_points_visit(
	const struct report *report, size_t point, visit_repetition *told, void *context)
{
	const struct record *record = report->record;
	struct measurement *m = calloc(1, sizeof *m);
	for (size_t i = 0; m && i < record->entry_count; i++) {
		const struct record_entry *entry = &record->entries[i];
		struct error err;
		if (entry->point != point || !strstr(entry->line, "\"read_points\""))
			continue;
		if (record_load(record, i, m, &err) == 0 && m->read_point_count > 0)
			told(context, m);
		measurement_release(m);
	}
	free(m);
}

/* --- as text -------------------------------------------------------------------------------------- */

struct rate_at {
	uint32_t depth;
	double files, seconds;
};

struct rates {
	const struct report *report;
	size_t point;
	struct rate_at list[READ_POINTS_MAX + 1];
	size_t count;
	bool large; /* of requests that hold many samples, and not of files */
};

static void read_points_add_rate(struct rates *rates, uint32_t depth, double files, double seconds)
{
	size_t at = 0;
	while (at < rates->count && rates->list[at].depth != depth)
		at++;
	if (at == sizeof rates->list / sizeof *rates->list)
		return;
	if (at == rates->count)
		rates->list[rates->count++] = (struct rate_at){.depth = depth};
	rates->list[at].files += files;
	rates->list[at].seconds += seconds;
}

static int by_depth(const void *a, const void *b)
{
	const uint32_t x = ((const struct rate_at *)a)->depth;
	const uint32_t y = ((const struct rate_at *)b)->depth;
	return x < y ? -1 : x > y;
}

/* Files in flight that the point's configuration allows, all readers together. */
static uint32_t set_depth(const struct report *report, size_t point, bool one_at_a_time)
{
	struct config config = {0};
	struct error err;
	uint32_t depth = 0;
	if (config_grid_point(
		    &report->record->config, &report->record->grid, point, &config, &err) == 0) {
		depth = shape_readers(&config) * (one_at_a_time ? 1 : shape_read_depth(&config));
	}
	config_release(&config);
	return depth;
}

static void add_repetition(void *context, const struct measurement *m)
{
	struct rates *rates = context;
	const uint32_t set = set_depth(rates->report, rates->point, m->facts.reads_block);
	rates->large = m->facts.reads_large;
	for (size_t i = 0; i < m->read_point_count; i++)
		read_points_add_rate(rates, m->read_points[i].depth,
			(double)m->read_points[i].files, m->read_points[i].seconds);
	for (size_t i = 0; i < m->stage_count; i++)
		if (stage_is(m->stages[i].name, STAGE_READ))
			read_points_add_rate(
				rates, set, measurement_reads(m), m->wall_seconds - m->cut_seconds);
}

/* The key that was turned; NULL: they were not read alone. */
static const char *add_reads_alone(struct rates *rates)
{
	const struct record *record = rates->report->record;
	const char *key = NULL;
	for (size_t i = 0; i < record->read_block_count; i++) {
		const struct read_block *block = &record->read_blocks[i];
		if (block->point != rates->point || block->part[0] || block->stage[0])
			continue;
		key = block->key;
		read_points_add_rate(
			rates, block->value, (double)block->read.files, block->read.seconds);
	}
	return key;
}

void read_points_text(const struct report *report, size_t point, struct buffer *out)
{
	struct rates rates = {.report = report, .point = point};
	const char *key = add_reads_alone(&rates);
	if (!key)
		read_points_visit(report, point, add_repetition, &rates);
	if (rates.count == 0)
		return;
	qsort(rates.list, rates.count, sizeof *rates.list, by_depth);
	buffer_format(out, "%s%s ", key ? "alone, at " : "at ", key ? key : "depth");
	for (size_t i = 0; i < rates.count; i++)
		buffer_format(out, "%s%u", i ? ", " : "", rates.list[i].depth);
	for (size_t i = 0; i < rates.count; i++) {
		const struct rate_at *at = &rates.list[i];
		char number[UNITS_BYTES];
		buffer_format(out, "%s%s", i ? ", " : ": ",
			units_format_count(at->files / at->seconds, number));
	}
	buffer_text(out, rates.large ? " requests/s" : " files/s");
}

/* --- as JSON -------------------------------------------------------------------------------------- */

static json_t *read_point_json(const struct read_point *p, uint32_t repeat)
{
	struct part part = part_open();
	part_put(&part, "repeat", json_integer(repeat));
	part_put(&part, "depth", json_integer(p->depth));
	part_put(&part, "seconds", fields_number(p->seconds));
	part_put(&part, "files", json_integer((json_int_t)p->files));
	part_put(&part, "bytes", json_integer((json_int_t)p->bytes));
	part_put(&part, "files_per_s", fields_number((double)p->files / p->seconds));
	part_put(&part, "latency_mean_ns", fields_number(p->latency_mean_ns));
	part_put(&part, "latency_deviation_ns", fields_number(p->latency_deviation_ns));
	part_number(&part, "rate_error", p->rate_error, "too short to split into blocks");
	part_number(&part, "blocked_share", p->blocked_share, "the readers did nothing");
	return part_close(&part);
}

static void append_repetition(void *context, const struct measurement *m)
{
	for (size_t i = 0; i < m->read_point_count; i++)
		(void)json_array_append_new(
			context, read_point_json(&m->read_points[i], m->repeat));
}

static json_t *read_block_json(const struct read_block *block)
{
	json_t *object = read_point_json(&block->read, block->round);
	int bad = object ? 0 : -1;
	bad |= json_object_del(object, "repeat");
	bad |= json_object_set_new(object, "key", json_string(block->key));
	bad |= json_object_set_new(object, "value", json_integer(block->value));
	bad |= json_object_set_new(
		object, "part", block->part[0] ? json_string(block->part) : json_null());
	return fields_whole(object, bad);
}

static json_t *stage_block_json(const struct read_block *block)
{
	struct part part = part_open();
	part_put(&part, "stage", json_string(block->stage));
	part_put(&part, "seconds", fields_number(block->read.seconds));
	part_put(&part, "samples", json_integer((json_int_t)block->read.files));
	part_put(&part, "samples_per_s",
		fields_number((double)block->read.files / block->read.seconds));
	part_number(&part, "rate_error", block->read.rate_error, "no service times");
	return part_close(&part);
}

json_t *reads_alone_json(const struct report *report, size_t point, bool stages)
{
	const struct record *record = report->record;
	json_t *array = json_array();
	for (size_t i = 0; i < record->read_block_count; i++)
		if (record->read_blocks[i].point == point &&
			(record->read_blocks[i].stage[0] != '\0') == stages)
			(void)json_array_append_new(
				array, stages ? stage_block_json(&record->read_blocks[i])
					      : read_block_json(&record->read_blocks[i]));
	if (json_array_size(array) > 0)
		return array;
	json_decref(array);
	return NULL;
}

json_t *read_points_json(const struct report *report, size_t point)
{
	json_t *array = json_array();
	read_points_visit(report, point, append_repetition, array);
	if (json_array_size(array) > 0)
		return array;
	json_decref(array);
	return json_null();
}
