/* The kind record: rows of numbers in row groups (.rows, see rowgroup.h), of which each becomes a sample,
 * float32 (record.rows, record.columns), and the class of its file.
 *
 * Stored in columns, the first record.columns columns of a group are the beginning of it, and no more is
 * read; stored in rows, all of it.  What parsing costs a real reader beyond that (decompression,
 * dictionaries, dates) is declared as record.parse, and that much CPU time is spun. */
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/units.h"
#include "workloads/dataset/container.h"
#include "workloads/sample/rowgroup.h"
#include "workloads/sample/sample.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORD_VALUES_MAX = 1 << 28 }; /* in a sample: 1 GiB of them */
static const char RECORD_ENDING[] = ".rows";

static uint32_t sample_record_rows(const struct config *config)
{
	return (uint32_t)config_integer(config, KEY_RECORD_ROWS);
}

static uint32_t sample_record_columns(const struct config *config)
{
	return (uint32_t)config_integer(config, KEY_RECORD_COLUMNS);
}

static int sample_record_validate(const struct config *config, struct error *err)
{
	const uint64_t values =
		(uint64_t)sample_record_rows(config) * sample_record_columns(config);
	return values <= RECORD_VALUES_MAX ? 0
					   : error_set(err, -EINVAL,
						     "'record.rows' x 'record.columns' is %" PRIu64
						     " values a sample; %d are the limit",
						     values, RECORD_VALUES_MAX);
}

static void sample_record_shape(const struct config *config, struct sample_shape *out)
{
	*out = (struct sample_shape){.type = BATCH_FLOAT32,
		.dimensions = 2,
		.of = {sample_record_rows(config), sample_record_columns(config)}};
}

static size_t sample_record_labels(const struct config *config)
{
	(void)config;
	return sizeof(uint32_t);
}

/* Of a row group, whose columns and rows the split has found. */
static int sample_record_cut(const struct config *config, const struct sample *group,
	struct sample_cut *out, struct error *err)
{
	const uint32_t rows = sample_record_rows(config);
	const uint32_t columns = sample_record_columns(config);
	const bool by_column = config_integer(config, KEY_RECORD_LAYOUT) == RECORD_LAYOUT_COLUMNS;
	if (columns > group->width)
		return error_set(err, -EINVAL,
			"its rows have %" PRIu32 " columns, and record.columns is %" PRIu32,
			group->width, columns);
	if (rows < group->height)
		return error_set(err, -EINVAL,
			"its row groups have up to %" PRIu32 " rows, and record.rows is %" PRIu32,
			group->height, rows);
	const uint64_t bytes = row_group_bytes(group->width, columns, group->height);
	*out = (struct sample_cut){
		.bytes = by_column && bytes < group->bytes ? bytes : group->bytes,
		.count = rows == group->height, /* the last group of a file may have fewer */
	};
	return 0;
}

static void sample_record_note(const struct config *config, char *out, size_t room)
{
	const double ns = (double)config_integer(config, KEY_RECORD_PARSE);
	char each[UNITS_BYTES];
	char sample[UNITS_BYTES];
	if (ns > 0)
		(void)snprintf(out, room,
			"record.parse: %s of CPU time for each value, %s a sample, are spun in place of parsing",
			units_format_duration(ns, each),
			units_format_duration(
				ns * sample_record_rows(config) * sample_record_columns(config),
				sample));
}

/* ---- a worker ---------------------------------------------------------------------------------- */

struct record_worker {
	uint32_t rows, columns;
	uint64_t parse_ns; /* of CPU time, a sample */
	const atomic_bool *stop;
};

static int sample_record_open(void **out, const struct sample_options *options, struct error *err)
{
	struct record_worker *const worker = calloc(1, sizeof *worker);
	*out = worker;
	if (!worker)
		return error_set(err, -ENOMEM, "no memory for a worker");
	worker->rows = sample_record_rows(options->config);
	worker->columns = sample_record_columns(options->config);
	worker->parse_ns = (uint64_t)config_integer(options->config, KEY_RECORD_PARSE) *
			   worker->rows * worker->columns;
	worker->stop = options->stop;
	return 0;
}

static void sample_record_close(void *worker)
{
	free(worker);
}

static int sample_record_make(void *context, const struct sample_task *task, struct error *err)
{
	const struct record_worker *const worker = context;
	sample_put_class(task);
	const int code = row_group_read(task->bytes, task->size, worker->rows, worker->columns,
		(float *)(void *)task->out, err);
	if (code)
		return code;
	return clock_spin_cpu(worker->parse_ns, worker->stop) ? 0 : -EINTR;
}

/* ---- files ------------------------------------------------------------------------------------- */

static bool record_rows_takes(const char *name)
{
	return files_name_ends(name, RECORD_ENDING);
}

/* The groups, as the file's list has them; what each says of itself is seen when it is read. */
static int record_rows_split(struct container_file *file, struct error *err)
{
	const uint8_t *bytes;
	struct rows_header header = {0};
	uint64_t rows = 0;
	int code = container_view(file, 0, ROWS_HEAD_BYTES, &bytes, err);
	if (!code)
		code = rows_read_header(bytes, ROWS_HEAD_BYTES, file->bytes, &header, err);
	uint64_t least = header.groups_at;
	for (uint32_t i = 0; i < header.groups && !code; i++) {
		struct row_group_place place = {0};
		code = container_view(file, header.entries_at + (uint64_t)ROWS_ENTRY_BYTES * i,
			ROWS_ENTRY_BYTES, &bytes, err);
		if (!code)
			code = rows_read_entry(&header, bytes, least, file->bytes, &place, err);
		const struct container_part part = {.offset = place.offset,
			.length = place.bytes,
			.width = header.columns,
			.height = place.rows};
		if (!code)
			code = container_add(file, &part, err);
		least = place.offset + place.bytes;
		rows += place.rows;
	}
	if (!code && rows != header.rows)
		code = error_set(err, -EINVAL,
			"rows: %" PRIu64 " rows in its groups, and its header says %" PRIu64, rows,
			header.rows);
	return code;
}

static const struct container_ops record_container = {
	.name = "rows",
	.summary = "row groups",
	.endings = RECORD_ENDING,
	.takes = record_rows_takes,
	.split = record_rows_split,
};

static const enum key_id record_keys[] = {
	KEY_RECORD_ROWS, KEY_RECORD_COLUMNS, KEY_RECORD_LAYOUT, KEY_RECORD_PARSE};

const struct sample_ops sample_record = {
	.name = "record",
	.summary = "row groups of numbers (.rows), by column or by row; the class of their file",
	.shape = sample_record_shape,
	.label_bytes = sample_record_labels,
	.make = sample_record_make,
	.open = sample_record_open,
	.close = sample_record_close,
	.cut = sample_record_cut,
	.note = sample_record_note,
	.validate = sample_record_validate,
	.keys = record_keys,
	.key_count = sizeof record_keys / sizeof *record_keys,
	.size_key = "record.columns",
	.container = &record_container,
};
