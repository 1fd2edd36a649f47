/* Rows of a comparison: points, stages, figures, and what else differs. */
#include "harness/report/compare_tables.h"

#include "harness/base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE_MOST = 40, FACT_MOST = 400 };

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Text of a configuration or a node; most: bytes. */
static void add_plain(struct table *table, const char *text, int most)
{
	struct buffer plain = {0};
	utf8_add_plain(&plain, text, "?");
	table_add(table, INK_PLAIN, "%.*s", most, plain.data ? plain.data : "");
	buffer_release(&plain);
}

static void open_columns(
	struct compare_table *out, const struct table_column *columns, size_t count)
{
	memcpy(out->columns, columns, count * sizeof *columns);
	table_open(&out->table, out->columns, count);
}

static bool differs(const struct difference *d)
{
	return d->verdict == DIFFERENCE_LESS || d->verdict == DIFFERENCE_MORE ||
	       (d->verdict == DIFFERENCE_MISSING && d->a_count + d->b_count > 0);
}

/* --- points --------------------------------------------------------------------------------------------------- */

/* "decode\nworkers" of every key that points are matched by. */
static size_t key_columns(const struct comparison *c, struct compare_table *out)
{
	enum { KEYS_MOST = 12 };
	size_t count = 0;
	for (int k = 0; k < KEY_COUNT && count < KEYS_MOST; k++) {
		if (!c->match.swept[k])
			continue;
		(void)snprintf(out->heads[count], sizeof out->heads[count], "%s\n%s",
			config_keys[k].section, config_keys[k].name);
		out->columns[count] = (struct table_column){.head = out->heads[count]};
		count++;
	}
	return count;
}

static void add_settings(struct table *table, const struct comparison *c, size_t pair, size_t most)
{
	const struct record *record = c->a.report->record;
	size_t count = 0;
	for (int k = 0; k < KEY_COUNT && count < most; k++) {
		const enum key_id key = (enum key_id)k;
		if (!c->match.swept[k])
			continue;
		char *value = config_value_text(
			key, point_value(&record->config, &record->grid, c->pairs[pair].a, key));
		add_plain(table, value ? value : "?", VALUE_MOST);
		free(value);
		count++;
	}
}

static void add_p(struct table *table, double p)
{
	if (isnan(p))
		table_add(table, INK_DIM, "-");
	else if (p < 1e-4)
		table_add(table, INK_DIM, "<0.0001");
	else
		table_add(table, INK_DIM, "%.4f", p);
}

static void add_difference(
	struct table *table, const struct metric *metric, const struct difference *d)
{
	char text[METRIC_TEXT_BYTES];
	char words[COMPARE_WORDS_BYTES];
	const enum ink ink = compare_ink(metric, d);
	table_add(table, INK_PLAIN, "%s", metric_text(metric, metric_unscaled(metric, d->a), text));
	table_add(table, INK_PLAIN, "%s", metric_text(metric, metric_unscaled(metric, d->b), text));
	table_add(table, ink, "%s",
		metric_change_text(metric, metric_change(metric, d->value), text));
	table_add(table, INK_PLAIN, "%s", compare_interval_words(metric, d, words));
	add_p(table, d->adjusted);
	table_add(table, ink, "%s", compare_verdict_words(metric, d, words));
}

void compare_points_table(const struct comparison *comparison, struct compare_table *out)
{
	static const struct table_column fixed[] = {{.head = "samples/s\nA"},
		{.head = "samples/s\nB"}, {.head = "change"}, {.head = "interval", .keep = 1},
		{.head = "p", .keep = 2}, {.head = "B is", .left = true, .wraps = true}};
	const size_t keys = key_columns(comparison, out);
	memcpy(&out->columns[keys], fixed, sizeof fixed);
	table_open(&out->table, out->columns, keys + COUNT(fixed));
	for (size_t i = 0; i < comparison->pair_count && i < COMPARE_POINTS_SHOWN; i++) {
		add_settings(&out->table, comparison, i, keys);
		add_difference(&out->table, &comparison->metrics[0], &comparison->differences[i]);
	}
}

/* --- stages --------------------------------------------------------------------------------------------------- */

struct figure {
	const struct metric *metric;
	const struct difference *difference;
};

static bool find(
	const struct comparison *c, const char *stage, const char *kind, struct figure *out)
{
	for (size_t i = 0; i < c->metric_count; i++)
		if (strcmp(c->metrics[i].stage, stage) == 0 &&
			strcmp(c->metrics[i].kind->name, kind) == 0) {
			*out = (struct figure){
				&c->metrics[i], &c->differences[i * c->pair_count + c->focus]};
			return true;
		}
	return false;
}

static void add_value(struct table *table, const struct comparison *c, const char *stage,
	const char *kind, bool b)
{
	struct figure f = {0};
	char text[METRIC_TEXT_BYTES];
	const double y = !find(c, stage, kind, &f) ? (double)NAN
			 : b                       ? f.difference->b
						   : f.difference->a;
	table_add(table, INK_PLAIN, "%s",
		isnan(y) ? "-" : metric_text(f.metric, metric_unscaled(f.metric, y), text));
}

static void add_change(
	struct table *table, const struct comparison *c, const char *stage, const char *kind)
{
	struct figure f = {0};
	char text[METRIC_TEXT_BYTES];
	if (!find(c, stage, kind, &f) || isnan(f.difference->value)) {
		table_add(table, INK_DIM, "-");
		return;
	}
	(void)metric_change_text(f.metric, metric_change(f.metric, f.difference->value), text);
	char *points = strstr(text, " points");
	if (points)
		*points = '\0';
	table_add(table, compare_ink(f.metric, f.difference), "%s", text);
}

static size_t stages_of(const struct comparison *c, const char *names[STAGES_MAX])
{
	size_t count = 0;
	for (size_t i = 0; i < c->metric_count; i++) {
		const char *stage = c->metrics[i].stage;
		bool known = !stage[0] || count == STAGES_MAX;
		for (size_t j = 0; j < count; j++)
			known = known || strcmp(names[j], stage) == 0;
		if (!known)
			names[count++] = stage;
	}
	return count;
}

void compare_stages_table(const struct comparison *comparison, struct compare_table *out)
{
	static const struct table_column columns[] = {{.head = "stage", .left = true},
		{.head = "capacity/s\nA", .keep = 2}, {.head = "\nB", .keep = 1},
		{.head = "\nchange"}, {.head = "p50\nA", .keep = 7},
		{.head = "p50\nchange", .keep = 4}, {.head = "p99\nA", .keep = 7},
		{.head = "p99\nchange", .keep = 3}, {.head = "busy\nA", .keep = 5},
		{.head = "busy\nB", .keep = 1}, {.head = "starved\npoints", .keep = 6},
		{.head = "blocked\npoints", .keep = 6}};
	const char *names[STAGES_MAX];
	const size_t count = stages_of(comparison, names);
	struct table *table = &out->table;
	open_columns(out, columns, COUNT(columns));
	for (size_t i = 0; i < count; i++) {
		table_add(table, INK_PLAIN, "%s", names[i]);
		add_value(table, comparison, names[i], "capacity", false);
		add_value(table, comparison, names[i], "capacity", true);
		add_change(table, comparison, names[i], "capacity");
		add_value(table, comparison, names[i], "p50", false);
		add_change(table, comparison, names[i], "p50");
		add_value(table, comparison, names[i], "p99", false);
		add_change(table, comparison, names[i], "p99");
		add_value(table, comparison, names[i], "busy", false);
		add_value(table, comparison, names[i], "busy", true);
		add_change(table, comparison, names[i], "starved");
		add_change(table, comparison, names[i], "blocked");
	}
}

/* --- figures -------------------------------------------------------------------------------------------------- */

/* In the stages' table already. */
static bool is_shown(const struct metric *metric)
{
	static const char *const shown[] = {
		"capacity", "mean", "p50", "p99", "busy", "starved", "blocked"};
	for (size_t i = 0; i < COUNT(shown); i++)
		if (metric->stage[0] && strcmp(metric->kind->name, shown[i]) == 0)
			return true;
	return false;
}

void compare_figures_table(const struct comparison *comparison, bool all, struct compare_table *out)
{
	static const struct table_column columns[] = {{.head = "figure", .left = true},
		{.head = "A", .keep = 1}, {.head = "B"}, {.head = "change"},
		{.head = "interval", .keep = 2}, {.head = "p", .keep = 3},
		{.head = "B is", .left = true, .wraps = true}};
	open_columns(out, columns, COUNT(columns));
	for (size_t i = 0; i < comparison->metric_count; i++) {
		const struct metric *metric = &comparison->metrics[i];
		const struct difference *d =
			&comparison->differences[i * comparison->pair_count + comparison->focus];
		if (!all && (i == 0 || is_shown(metric) || !differs(d)))
			continue;
		table_add(&out->table, INK_PLAIN, "%s", metric->name);
		add_difference(&out->table, metric, d);
	}
}

/* --- what else differs ------------------------------------------------------------------------------------------ */

/* "2ms -> 4ms" */
static void add_both(struct table *table, const struct compare_fact *fact)
{
	struct buffer plain = {0};
	utf8_add_plain(&plain, fact->a[0] ? fact->a : "(empty)", "?");
	buffer_text(&plain, " -> ");
	utf8_add_plain(&plain, fact->b[0] ? fact->b : "(empty)", "?");
	table_add(table, INK_PLAIN, "%.*s", FACT_MOST, plain.data ? plain.data : "");
	buffer_release(&plain);
}

void compare_facts_table(const struct comparison *comparison, bool all, struct compare_table *out)
{
	static const struct table_column columns[] = {{.head = "what differs", .left = true},
		{.head = "weight", .left = true}, {.head = "A -> B", .left = true, .wraps = true}};
	open_columns(out, columns, COUNT(columns));
	for (size_t i = 0; i < comparison->facts.count; i++) {
		const struct compare_fact *fact = &comparison->facts.list[i];
		if (!all && fact->weight == COMPARE_HARMLESS)
			continue;
		const enum ink ink = fact->weight >= COMPARE_STRONG ? INK_WARN : INK_PLAIN;
		table_add(&out->table, ink, "%s", fact->name);
		table_add(&out->table, ink, "%s", compare_weight_name(fact->weight));
		add_both(&out->table, fact);
	}
}
