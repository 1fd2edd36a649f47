/* The recipe record: files of row groups (workloads/sample/rowgroup.h).  Three columns of four are float32,
 * each around a mean of its own, and every fourth is a category, int32. */
#include "harness/base/rng.h"
#include "workloads/dataset/maker.h"
#include "workloads/sample/rowgroup.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { RECORD_CATEGORY_EVERY = 4, RECORD_CATEGORIES = 1000 };
static const double RECORD_FILE_BYTES_MAX = 4e9; /* what may be in a maker's memory */

/* The shape of a file. */
struct record_shape {
	uint32_t rows, columns, groups; /* rows of a group */
	bool by_column;
	uint64_t groups_at, group_bytes;
};

static struct record_shape record_shape_of(const struct recipe *recipe, uint64_t groups)
{
	struct record_shape shape = {
		.rows = (uint32_t)recipe_integer(recipe, KEY_RECORD_ROWS),
		.columns = (uint32_t)recipe_integer(recipe, KEY_DATASET_COLUMNS),
		.groups = (uint32_t)groups,
		.by_column = recipe_integer(recipe, KEY_RECORD_LAYOUT) == RECORD_LAYOUT_COLUMNS,
	};
	shape.groups_at =
		ROWS_HEAD_BYTES + 4ULL * shape.columns + (uint64_t)ROWS_ENTRY_BYTES * shape.groups;
	shape.group_bytes = row_group_bytes(shape.columns, shape.columns, shape.rows);
	return shape;
}

static uint64_t maker_record_groups(const struct recipe *recipe)
{
	return (uint64_t)recipe_integer(recipe, KEY_DATASET_FILE_GROUPS);
}

static double maker_record_mean(const struct recipe *recipe)
{
	const struct record_shape shape = record_shape_of(recipe, maker_record_groups(recipe));
	return (double)shape.groups_at + (double)shape.groups * (double)shape.group_bytes;
}

/* Measured once, writing included. */
static double maker_record_mean_ns(const struct recipe *recipe)
{
	return 1.2 * maker_record_mean(recipe);
}

static int maker_record_check(struct recipe *recipe, struct error *err)
{
	if (maker_record_mean(recipe) <= RECORD_FILE_BYTES_MAX)
		return 0;
	return error_set(err, -EINVAL,
		"'dataset.file_groups' x 'record.rows' x 'dataset.columns' makes files of more than 4 GB: set dataset.file_groups lower");
}

static const char *maker_record_extension(const struct recipe *recipe)
{
	(void)recipe;
	return "rows";
}

static uint8_t *record_put32(uint8_t *at, uint32_t value)
{
	const uint32_t raw = htole32(value);
	memcpy(at, &raw, sizeof raw);
	return at + sizeof raw;
}

static uint8_t *record_put64(uint8_t *at, uint64_t value)
{
	return record_put32(record_put32(at, (uint32_t)value), (uint32_t)(value >> 32));
}

static uint32_t record_type(uint32_t column)
{
	return column % RECORD_CATEGORY_EVERY == RECORD_CATEGORY_EVERY - 1 ? ROW_TYPE_INT32
									   : ROW_TYPE_FLOAT32;
}

static uint8_t *record_put_header(uint8_t *at, const struct record_shape *shape)
{
	memcpy(at, ROWS_MAGIC, sizeof ROWS_MAGIC - 1);
	at = record_put32(at + sizeof ROWS_MAGIC - 1, shape->columns);
	at = record_put32(at, shape->groups);
	at = record_put64(at, (uint64_t)shape->groups * shape->rows);
	for (uint32_t c = 0; c < shape->columns; c++)
		at = record_put32(at, record_type(c));
	for (uint64_t g = 0; g < shape->groups; g++) {
		at = record_put64(at, shape->groups_at + g * shape->group_bytes);
		at = record_put32(record_put32(at, shape->rows), 0);
	}
	return at;
}

static void record_put_value(uint8_t *at, uint32_t column, uint32_t random)
{
	const float mean = (float)(column % 16);
	const float value = mean + (float)(int32_t)random * 0x1p-31f;
	uint32_t bits;
	memcpy(&bits, &value, sizeof bits);
	const bool category = record_type(column) == ROW_TYPE_INT32;
	(void)record_put32(
		at, category ? (uint32_t)((uint64_t)random * RECORD_CATEGORIES >> 32) : bits);
}

static uint8_t *record_put_group(uint8_t *at, const struct record_shape *shape, struct rng *rng)
{
	const size_t between =
		shape->by_column ? ROW_VALUE_BYTES : (size_t)ROW_VALUE_BYTES * shape->columns;
	const uint64_t begin = row_group_bytes(shape->columns, 0, 0);
	uint8_t *const group = at;
	memcpy(at, ROW_GROUP_MAGIC, 4);
	at = record_put32(record_put32(at + 4, shape->rows), shape->columns);
	at = record_put32(at, (uint32_t)between);
	for (uint32_t c = 0; c < shape->columns; c++) {
		const uint64_t first = begin + (shape->by_column ? (uint64_t)c * shape->rows : c) *
						       ROW_VALUE_BYTES;
		uint64_t random = 0;
		at = record_put32(record_put32(at, (uint32_t)first), record_type(c));
		for (uint64_t r = 0; r < shape->rows; r++) {
			random = r % 2 == 0 ? rng_next(rng) : random >> 32;
			record_put_value(group + first + r * between, c, (uint32_t)random);
		}
	}
	return group + shape->group_bytes;
}

static int maker_record_make(
	struct maker *maker, const struct recipe *recipe, uint64_t id, struct error *err)
{
	const struct record_shape shape = record_shape_of(recipe, recipe_samples_of(recipe, id));
	const uint64_t bytes = shape.groups_at + shape.groups * shape.group_bytes;
	struct rng rng;
	const int code = maker_grow(maker, bytes, err);
	if (code)
		return code;
	rng_init(&rng, recipe->seed, id);
	uint8_t *at = record_put_header(maker->bytes, &shape);
	for (uint32_t g = 0; g < shape.groups; g++)
		at = record_put_group(at, &shape, &rng);
	maker->size = bytes;
	return 0;
}

const struct recipe_ops maker_record = {
	.version = 1,
	.keys = {KEY_DATASET_COLUMNS, KEY_DATASET_FILE_GROUPS, KEY_RECORD_ROWS, KEY_RECORD_LAYOUT},
	.key_count = 4,
	.extension = maker_record_extension,
	.check = maker_record_check,
	.mean_bytes = maker_record_mean,
	.mean_ns = maker_record_mean_ns,
	.per_file = maker_record_groups,
	.make = maker_record_make,
};
