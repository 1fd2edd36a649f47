/* Loading the repetitions of a point. */
#include "harness/report/material.h"

#include "harness/analyze/diagnose.h"
#include "harness/config/shape.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double OTHER_ERROR = 0.02; /* of ln(rate), of one repetition of another point */

void material_release(struct material *material)
{
	for (size_t i = 0; i < material->all_count; i++) {
		measurement_release(&material->repeats[i]);
		traces_release(&material->traces[i]);
	}
	free(material->repeats);
	free(material->traces);
	free(material->repeat_list);
	free(material->traces_list);
	free(material->all_list);
	free(material->all_traces_list);
	free(material->others);
	*material = (struct material){0};
}

static int load_entry(
	struct material *material, const struct record *record, size_t entry, bool with_traces)
{
	struct measurement *m = &material->repeats[material->all_count];
	struct traces *traces = &material->traces[material->all_count];
	int code = record_load(record, entry, m, &material->why);
	if (!code && with_traces) {
		code = record_load_traces(record, entry, traces, &material->why);
		if (code)
			traces_release(traces);
	}
	if (code) {
		measurement_release(m);
		*m = (struct measurement){0};
		*traces = (struct traces){0};
		return code;
	}
	material->all_list[material->all_count] = m;
	material->all_traces_list[material->all_count] = traces;
	material->all_count++;
	return 0;
}

static void material_take(struct material *material, size_t i)
{
	material->repeat_list[material->count] = material->all_list[i];
	material->traces_list[material->count] = material->all_traces_list[i];
	material->count++;
}

/* Those that count by their status and, where the throughput changed between them, are of the state that lasts: as in
 * the summary of the point. */
static void material_choose(struct material *material, enum point_status status)
{
	struct regimes regimes;
	size_t counting = 0;
	for (size_t i = 0; i < material->all_count; i++)
		if (point_counts(status, material->all_list[i]->status))
			material->repeat_list[counting++] = material->all_list[i];
	regimes_find(material->repeat_list, counting, &regimes);
	counting = 0;
	for (size_t i = 0; i < material->all_count; i++)
		if (point_counts(status, material->all_list[i]->status) &&
			regimes_last(&regimes, counting++))
			material_take(material, i);
}

/* --- other depths of the sweep ------------------------------------------------------------------ */

/* Each worker that reads has a file in flight. */
static bool is_depth(const struct record *record, enum key_id key)
{
	const bool by_workers = shape_by_workers(&record->config) &&
				!config_find_axis(&record->config, KEY_READ_BY);
	return key == KEY_READ_DEPTH || key == KEY_READ_THREADS ||
	       (key == KEY_DECODE_WORKERS && by_workers);
}

/* Whether two points differ in how many files are in flight, and in nothing else. */
static bool differ_in_depth(const struct record *record, size_t a, size_t b)
{
	const struct config_grid *grid = &record->grid;
	bool differ = false;
	for (size_t i = 0; i < grid->axis_count; i++) {
		const bool same = grid->choice[a * grid->axis_count + i] ==
				  grid->choice[b * grid->axis_count + i];
		if (!same && !is_depth(record, record->config.axes[i].key))
			return false;
		differ = differ || !same;
	}
	return differ;
}

static void load_others(struct material *material, const struct record *record, size_t point)
{
	if (!record->grid.choice)
		return;
	struct measurement *m = calloc(1, sizeof *m);
	material->others = calloc(record->entry_count + 1, sizeof *material->others);
	for (size_t e = 0; m && material->others && e < record->entry_count; e++) {
		const struct record_entry *entry = &record->entries[e];
		if (entry->point == point || !record_counts(record, entry) ||
			!differ_in_depth(record, entry->point, point))
			continue;
		struct read_point *other = &material->others[material->other_count];
		if (record_load(record, e, m, NULL) == 0 && measurement_read_point(m, other)) {
			other->rate_error = OTHER_ERROR;
			material->other_count++;
		}
		measurement_release(m);
		*m = (struct measurement){0};
	}
	free(m);
}

static void take_reads_alone(struct material *material, const struct record *record, size_t point)
{
	for (size_t i = 0; i < record->read_block_count; i++)
		if (record->read_blocks[i].point == point)
			material->read_blocks[material->read_block_count++] =
				record->read_blocks[i];
}

static int material_make_room(struct material *material, size_t count)
{
	material->repeats = calloc(count, sizeof *material->repeats);
	material->traces = calloc(count, sizeof *material->traces);
	material->repeat_list = calloc(count, sizeof(const struct measurement *));
	material->traces_list = calloc(count, sizeof(const struct traces *));
	material->all_list = calloc(count, sizeof(const struct measurement *));
	material->all_traces_list = calloc(count, sizeof(const struct traces *));
	return material->repeats && material->traces && material->repeat_list &&
			       material->traces_list && material->all_list &&
			       material->all_traces_list
		       ? 0
		       : -ENOMEM;
}

/* They were loaded from the last one on. */
static void material_reverse(struct material *material)
{
	for (size_t i = 0, k = material->all_count; i + 1 < k; i++) {
		k--;
		const struct measurement *m = material->all_list[i];
		const struct traces *traces = material->all_traces_list[i];
		material->all_list[i] = material->all_list[k];
		material->all_traces_list[i] = material->all_traces_list[k];
		material->all_list[k] = m;
		material->all_traces_list[k] = traces;
	}
}

int material_load(struct material *material, const struct record *record, size_t point,
	const struct material_choice *choice, struct error *err)
{
	const size_t most = choice->most ? choice->most : record->entry_count;
	size_t loaded[MEASUREMENT_UNSTEADY + 1] = {0}; /* by status */
	size_t own = 0;
	bool measured = false;
	for (size_t e = 0; e < record->entry_count; e++)
		own += record->entries[e].point == point;
	int code = material_make_room(material, own + 1);
	if (code)
		return error_set(err, code, "out of memory for the repetitions of a point");
	for (size_t e = record->entry_count; e-- > 0;) {
		const struct record_entry *entry = &record->entries[e];
		const bool ran =
			entry->status == MEASUREMENT_OK || entry->status == MEASUREMENT_UNSTEADY;
		if (entry->point != point || !ran || loaded[entry->status] == most)
			continue;
		const int one = load_entry(material, record, e, !choice->without_traces);
		loaded[entry->status] += one == 0;
		code = code ? code : one;
		measured = true;
	}
	if (!measured)
		return error_set(err, -ENOENT, "point %zu was not measured", point);
	material_reverse(material);
	material_choose(material, record_point_status(record, point));
	if (material->count > 0) {
		load_others(material, record, point);
		take_reads_alone(material, record, point);
		return 0;
	}
	if (code == -ENOENT)
		return error_set(err, -ENODATA,
			"no service times were recorded (%.300s): measure again with this version and "
			"measure.profiler = on",
			material->why.text);
	return error_set(err, code, "%s", material->why.text);
}
