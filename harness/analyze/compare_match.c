/* Points with the same settings: both sides sorted by the values of the swept keys, then merged. */
#include "harness/analyze/compare_match.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A point to be ordered; the sides share the keys. */
struct place {
	const struct config *config;
	const struct config_grid *grid;
	const bool *swept;
	size_t point;
};

const struct config_value *point_value(
	const struct config *config, const struct config_grid *grid, size_t point, enum key_id key)
{
	for (size_t axis = 0; axis < config->axis_count; axis++)
		if (config->axes[axis].key == key)
			return &config->axes[axis]
					.values[grid->choice[point * grid->axis_count + axis]];
	return &config->values[key];
}

static int order_values(enum key_id key, const struct config_value *a, const struct config_value *b)
{
	const enum key_type type = config_keys[key].type;
	if (type == KEY_TYPE_TEXT)
		return strcmp(a->text ? a->text : "", b->text ? b->text : "");
	if (type == KEY_TYPE_REAL || type == KEY_TYPE_SHARE)
		return (a->real > b->real) - (a->real < b->real);
	if (a->integer != b->integer)
		return a->integer > b->integer ? 1 : -1;
	return strcmp(a->text ? a->text : "", b->text ? b->text : "");
}

bool config_value_same(enum key_id key, const struct config_value *a, const struct config_value *b)
{
	return order_values(key, a, b) == 0;
}

static int order_settings(const struct place *a, const struct place *b)
{
	for (int key = 0; key < KEY_COUNT; key++) {
		if (!a->swept[key])
			continue;
		const enum key_id id = (enum key_id)key;
		const int order = order_values(id, point_value(a->config, a->grid, a->point, id),
			point_value(b->config, b->grid, b->point, id));
		if (order)
			return order;
	}
	return 0;
}

static int order_places(const void *left, const void *right)
{
	const struct place *a = left;
	const struct place *b = right;
	const int order = order_settings(a, b);
	return order ? order : (a->point > b->point) - (a->point < b->point);
}

static int order_pairs(const void *left, const void *right)
{
	const struct point_pair *a = left;
	const struct point_pair *b = right;
	return (a->a > b->a) - (a->a < b->a);
}

static int order_points(const void *left, const void *right)
{
	const size_t a = *(const size_t *)left;
	const size_t b = *(const size_t *)right;
	return (a > b) - (a < b);
}

static struct place *places_of(
	const struct config *config, const struct config_grid *grid, const bool *swept)
{
	struct place *places = calloc(grid->points + 1, sizeof *places);
	for (size_t i = 0; places && i < grid->points; i++)
		places[i] = (struct place){config, grid, swept, i};
	if (places)
		qsort(places, grid->points, sizeof *places, order_places);
	return places;
}

static void merge(struct point_match *match, const struct place *a, size_t a_count,
	const struct place *b, size_t b_count)
{
	size_t i = 0;
	size_t j = 0;
	while (i < a_count || j < b_count) {
		const int order = i == a_count   ? 1
				  : j == b_count ? -1
						 : order_settings(&a[i], &b[j]);
		if (order == 0)
			match->pairs[match->pair_count++] =
				(struct point_pair){a[i++].point, b[j++].point};
		else if (order < 0)
			match->only_a[match->only_a_count++] = a[i++].point;
		else
			match->only_b[match->only_b_count++] = b[j++].point;
	}
	qsort(match->pairs, match->pair_count, sizeof *match->pairs, order_pairs);
	qsort(match->only_a, match->only_a_count, sizeof *match->only_a, order_points);
	qsort(match->only_b, match->only_b_count, sizeof *match->only_b, order_points);
}

int point_match(const struct config *a, const struct config_grid *a_grid, const struct config *b,
	const struct config_grid *b_grid, struct point_match *match)
{
	*match = (struct point_match){0};
	for (size_t i = 0; i < a->axis_count; i++)
		match->swept[a->axes[i].key] = true;
	for (size_t i = 0; i < b->axis_count; i++)
		match->swept[b->axes[i].key] = true;
	struct place *left = places_of(a, a_grid, match->swept);
	struct place *right = places_of(b, b_grid, match->swept);
	match->pairs = calloc(a_grid->points + 1, sizeof *match->pairs);
	match->only_a = calloc(a_grid->points + 1, sizeof *match->only_a);
	match->only_b = calloc(b_grid->points + 1, sizeof *match->only_b);
	const bool room = left && right && match->pairs && match->only_a && match->only_b;
	if (room)
		merge(match, left, a_grid->points, right, b_grid->points);
	else
		point_match_release(match);
	free(left);
	free(right);
	return room ? 0 : -ENOMEM;
}

void point_match_release(struct point_match *match)
{
	free(match->pairs);
	free(match->only_a);
	free(match->only_b);
	*match = (struct point_match){0};
}
