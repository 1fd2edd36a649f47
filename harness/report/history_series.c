/* Results grouped into series. */
#include "harness/report/history_series.h"

#include "harness/analyze/statistics.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FACTS_SHOWN_MAX = 6 };
static const double INTERVAL_ERRORS = 2 * 1.96; /* a 95 % interval in standard errors */

static int compare_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

/* Name, configuration, node, setting; then time. */
static int by_series(const void *a, const void *b)
{
	const struct history_row *left = *(const struct history_row *const *)a;
	const struct history_row *right = *(const struct history_row *const *)b;
	int order = compare_text(left->name, right->name);
	order = order ? order : compare_text(left->hash, right->hash);
	order = order ? order : compare_text(left->node, right->node);
	order = order ? order : compare_text(left->settings, right->settings);
	if (order)
		return order;
	if (left->started != right->started)
		return left->started < right->started ? -1 : 1;
	return compare_text(left->folder, right->folder);
}

static bool is_comparable(const struct history_row *a, const struct history_row *b)
{
	return compare_text(a->name, b->name) == 0 && compare_text(a->hash, b->hash) == 0 &&
	       compare_text(a->node, b->node) == 0;
}

static bool is_same_setting(const struct history_row *a, const struct history_row *b)
{
	return is_comparable(a, b) && compare_text(a->settings, b->settings) == 0;
}

struct stretch {
	size_t first, count;
};

static double median_rate(const struct history_row *const *rows, size_t count)
{
	double *rates = malloc((count + 1) * sizeof *rates);
	size_t known = 0;
	for (size_t i = 0; rates && i < count; i++)
		if (isfinite(rows[i]->throughput))
			rates[known++] = rows[i]->throughput;
	const double median = known > 0 ? statistics_median(rates, known) : 0;
	free(rates);
	return median;
}

/* The setting of a comparable stretch that is plotted. */
static struct stretch choose(const struct history_row *const *rows, struct stretch all)
{
	struct stretch best = {0};
	double best_rate = 0;
	for (size_t first = all.first; first < all.first + all.count;) {
		size_t last = first;
		while (last < all.first + all.count && is_same_setting(rows[first], rows[last]))
			last++;
		const size_t count = last - first;
		const double rate = median_rate(rows + first, count);
		if (count > best.count || (count == best.count && rate > best_rate)) {
			best = (struct stretch){first, count};
			best_rate = rate;
		}
		first = last;
	}
	return best;
}

static double own_error(const struct history_row *row, const struct history_metric *metric)
{
	return metric->has_interval ? (row->high - row->low) / INTERVAL_ERRORS : (double)NAN;
}

static enum level_scale scale_of(
	const struct history_series *series, const struct history_metric *metric)
{
	if (metric->unit == HISTORY_SHARE)
		return LEVEL_DIFFERENCE;
	for (size_t i = 0; i < series->count; i++)
		if (series->values[i].value <= 0)
			return LEVEL_DIFFERENCE;
	return LEVEL_RATIO;
}

static int fill(struct history_series *series, const struct history_row *const *rows,
	struct stretch stretch, const struct history_plot *plot)
{
	const size_t most = LEVEL_VALUES_MAX;
	series->left_out = stretch.count > most ? stretch.count - most : 0;
	series->count = stretch.count - series->left_out;
	series->rows = calloc(series->count, sizeof(const struct history_row *));
	series->values = calloc(series->count, sizeof *series->values);
	if (!series->rows || !series->values)
		return -ENOMEM;
	for (size_t i = 0; i < series->count; i++) {
		const struct history_row *row = rows[stretch.first + series->left_out + i];
		series->rows[i] = row;
		series->values[i] = (struct level_value){row->value, own_error(row, &plot->metric)};
	}
	series->scale = scale_of(series, &plot->metric);
	series->change_count = level_changes_find(
		series->values, series->count, series->scale, plot->significance, series->changes);
	return 0;
}

static int add_series(
	struct history_plot *plot, const struct history_row *const *rows, struct stretch stretch)
{
	struct history_series *larger = realloc(plot->series, (plot->count + 1) * sizeof *larger);
	if (!larger)
		return -ENOMEM;
	plot->series = larger;
	struct history_series *series = &plot->series[plot->count++];
	*series = (struct history_series){0};
	return fill(series, rows, stretch, plot);
}

static int group(struct history_plot *plot, const struct history_row *const *rows, size_t count)
{
	int code = 0;
	for (size_t first = 0; first < count && !code;) {
		size_t last = first;
		while (last < count && is_comparable(rows[first], rows[last]))
			last++;
		code = add_series(plot, rows, choose(rows, (struct stretch){first, last - first}));
		first = last;
	}
	return code;
}

/* Measured, and of a known time. */
static bool counts(const struct history_row *row)
{
	return row->settings && isfinite(row->value) && isfinite(row->started) &&
	       row->point_status && strcmp(row->point_status, "failed") != 0;
}

int history_plot_make(struct history_plot *plot, const struct history_rows *rows,
	const struct history_metric *metric, double significance, struct error *err)
{
	*plot = (struct history_plot){.metric = *metric, .significance = significance};
	const struct history_row **sorted =
		calloc(rows->count + 1, sizeof(const struct history_row *));
	if (!sorted)
		return error_set(err, -ENOMEM, "out of memory for the history");
	size_t count = 0;
	for (size_t i = 0; i < rows->count; i++)
		if (counts(&rows->rows[i]))
			sorted[count++] = &rows->rows[i];
	if (count > 0)
		qsort(sorted, count, sizeof(const struct history_row *), by_series);
	const int code = group(plot, sorted, count);
	free(sorted);
	return code ? error_set(err, code, "out of memory for the history") : 0;
}

void history_plot_release(struct history_plot *plot)
{
	for (size_t i = 0; i < plot->count; i++) {
		free(plot->series[i].rows);
		free(plot->series[i].values);
	}
	free(plot->series);
	*plot = (struct history_plot){0};
}

double history_series_level(const struct history_series *series, size_t i)
{
	if (series->change_count == 0)
		return level_of(series->values, 0, series->count, series->scale);
	double level = series->changes[0].before;
	for (size_t c = 0; c < series->change_count && series->changes[c].at <= i; c++)
		level = series->changes[c].after;
	return level;
}

const char *history_change_size(
	const struct history_series *series, size_t change, char out[HISTORY_NUMBER_BYTES])
{
	const struct level_change *c = &series->changes[change];
	if (series->scale == LEVEL_RATIO)
		(void)snprintf(
			out, HISTORY_NUMBER_BYTES, "%+.1f %%", 100 * (c->after / c->before - 1));
	else
		(void)snprintf(out, HISTORY_NUMBER_BYTES, "%+.3g", c->after - c->before);
	return out;
}

/* Facts that come and go from run to run and explain nothing. */
static bool is_transient(const char *name)
{
	static const char *const names[] = {"load.", "memory.available", "memory.free",
		"memory.cached", "data.free", "mlbench.ceilings", "gpu."};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return strcmp(name, "gpu.driver_version") != 0;
	return false;
}

static void add_value(struct buffer *out, const json_t *value)
{
	if (json_is_string(value))
		buffer_text(out, json_string_value(value));
	else if (json_is_number(value))
		buffer_format(out, "%g", json_number_value(value));
	else
		buffer_text(out, "unknown");
}

void history_change_facts(const struct history_series *series, size_t change, struct buffer *out)
{
	const size_t at = series->changes[change].at;
	const char *texts[] = {series->rows[at - 1]->facts, series->rows[at]->facts};
	json_t *before = texts[0] ? json_loads(texts[0], 0, NULL) : NULL;
	json_t *after = texts[1] ? json_loads(texts[1], 0, NULL) : NULL;
	const char *name;
	json_t *value;
	size_t shown = 0;
	json_object_foreach(after, name, value)
	{
		const json_t *old = json_object_get(before, name);
		if (!old || json_equal(old, value) || is_transient(name))
			continue;
		if (shown++ == FACTS_SHOWN_MAX) {
			buffer_text(out, "; and more");
			break;
		}
		buffer_format(out, "%s%s ", shown > 1 ? "; " : "", name);
		add_value(out, old);
		buffer_text(out, " -> ");
		add_value(out, value);
	}
	json_decref(before);
	json_decref(after);
}
