/* The kind record: row groups by column and by row against what they were made of, files and groups that
 * lie, and generated files. */
#include "tests/unit/dataset_fixture.h"

#include "workloads/sample/rowgroup.h"
#include "workloads/sample/sample.h"

#include <errno.h>

enum { ROWS = 5, COLUMNS = 4, GROUPS = 3, FILE_MAX = 4096 };

struct bytes {
	uint8_t data[FILE_MAX];
	size_t size;
};

static void put_le(struct bytes *bytes, uint64_t value, size_t size)
{
	assert_true(bytes->size + size <= FILE_MAX);
	for (size_t i = 0; i < size; i++)
		bytes->data[bytes->size++] = (uint8_t)(value >> 8 * i);
}

/* A number that only this value has; columns 1 and 3 are whole, and some are negative. */
static float value_of(uint32_t group, uint32_t row, uint32_t column)
{
	const int32_t whole = (int32_t)(group * 10000 + row * 100 + column) - 5000;
	return column % 2 ? (float)whole : (float)whole + 0.25f;
}

static void put_value(struct bytes *bytes, uint32_t group, uint32_t row, uint32_t column)
{
	const float value = value_of(group, row, column);
	uint32_t bits;
	memcpy(&bits, &value, sizeof bits);
	put_le(bytes, column % 2 ? (uint32_t)(int32_t)value : bits, 4);
}

static void put_group(struct bytes *out, uint32_t group, uint32_t rows, bool by_column)
{
	const uint32_t begin = ROW_GROUP_HEAD_BYTES + ROW_GROUP_COLUMN_BYTES * COLUMNS;
	memcpy(out->data + out->size, ROW_GROUP_MAGIC, 4);
	out->size += 4;
	put_le(out, rows, 4);
	put_le(out, COLUMNS, 4);
	put_le(out, by_column ? 4 : 4 * COLUMNS, 4);
	for (uint32_t c = 0; c < COLUMNS; c++) {
		put_le(out, begin + (by_column ? c * rows : c) * 4, 4);
		put_le(out, c % 2 ? ROW_TYPE_INT32 : ROW_TYPE_FLOAT32, 4);
	}
	for (uint32_t i = 0; i < rows * COLUMNS; i++)
		put_value(out, group, by_column ? i % rows : i / COLUMNS,
			by_column ? i / rows : i % COLUMNS);
}

/* The last group has two rows fewer. */
static void make_rows(struct bytes *file, bool by_column)
{
	uint64_t at = ROWS_HEAD_BYTES + 4 * COLUMNS + ROWS_ENTRY_BYTES * GROUPS;
	file->size = 0;
	memcpy(file->data, ROWS_MAGIC, 8);
	file->size = 8;
	put_le(file, COLUMNS, 4);
	put_le(file, GROUPS, 4);
	put_le(file, GROUPS * ROWS - 2, 8);
	for (uint32_t c = 0; c < COLUMNS; c++)
		put_le(file, c % 2 ? ROW_TYPE_INT32 : ROW_TYPE_FLOAT32, 4);
	for (uint32_t g = 0; g < GROUPS; g++) {
		const uint32_t rows = ROWS - (g + 1 == GROUPS ? 2 : 0);
		put_le(file, at, 8);
		put_le(file, rows, 4);
		put_le(file, 0, 4);
		at += row_group_bytes(COLUMNS, COLUMNS, rows);
	}
	for (uint32_t g = 0; g < GROUPS; g++)
		put_group(file, g, ROWS - (g + 1 == GROUPS ? 2 : 0), by_column);
	assert_int_equal(file->size, at);
}

/* ---- through the whole way: a folder, the scan, the split, a worker ---------------------------- */

struct rows {
	struct config config;
	struct dataset files, samples;
	struct sample_sizes sizes;
	struct sample_maker maker;
	float out[ROWS * COLUMNS];
	uint32_t label;
	struct error err;
};

static int rows_open(struct rows *r, const char *folder, const char *columns, const char *layout)
{
	*r = (struct rows){0};
	fixture_config(
		&r->config, folder, "sample.kind=record", "record.rows=5", columns, layout, NULL);
	int code = dataset_open(&r->config, NULL, &r->files, &r->err);
	if (!code)
		code = sample_cut_files(&r->config, &r->files, &r->samples, &r->err);
	if (code)
		return code;
	sample_sizes_of(&r->config, &r->samples, &r->sizes);
	const struct sample_options options = {.config = &r->config, .dataset = &r->samples};
	return sample_maker_open(&r->maker, &options, &r->sizes, &r->err);
}

static void rows_close(struct rows *r)
{
	sample_maker_close(&r->maker);
	sample_cut_release(&r->samples, &r->files);
	dataset_close(&r->files);
	config_release(&r->config);
}

static int rows_make(struct rows *r, const struct bytes *file, size_t index)
{
	const size_t size = r->samples.samples[index].bytes;
	assert_true(r->samples.offsets[index] + size <= file->size);
	uint8_t *const own = malloc(size + 1);
	assert_non_null(own);
	memcpy(own + 1, file->data + r->samples.offsets[index], size);
	const struct sample_task task = {.bytes = own + 1,
		.size = size,
		.sample = &r->samples.samples[index],
		.labels = (uint8_t *)&r->label,
		.sizes = &r->sizes,
		.out = (uint8_t *)r->out};
	r->err.text[0] = '\0';
	const int code = r->maker.make(r->maker.worker, &task, &r->err);
	free(own);
	return code;
}

static void groups_become_samples_however_they_lie(void **state)
{
	(void)state;
	for (int by_column = 0; by_column < 2; by_column++) {
		struct bytes file;
		const char *const folder = by_column ? "by_column" : "by_row";
		char name[64];
		make_rows(&file, by_column);
		(void)snprintf(name, sizeof name, "%s/b", folder);
		fixture_folder(name);
		(void)snprintf(name, sizeof name, "%s/a", folder);
		fixture_folder(name);
		(void)snprintf(name, sizeof name, "%s/a/x.rows", folder);
		fixture_write(name, file.data, file.size);
		(void)snprintf(name, sizeof name, "%s/b/y.rows", folder);
		fixture_write(name, file.data, file.size);
		for (uint32_t columns = 1; columns <= COLUMNS; columns++) {
			struct rows r;
			char key[32];
			(void)snprintf(key, sizeof key, "record.columns=%u", columns);
			if (rows_open(&r, folder, key,
				    by_column ? "record.layout=columns" : "record.layout=rows"))
				fail_msg("%s", r.err.text);
			/* The short groups at the ends are none. */
			assert_int_equal(r.files.count, 2 * GROUPS);
			assert_int_equal(r.samples.count, 2 * (GROUPS - 1));
			assert_int_equal(r.sizes.bytes, ROWS * columns * 4);
			assert_int_equal(r.samples.max_bytes,
				row_group_bytes(COLUMNS, by_column ? columns : COLUMNS, ROWS));
			for (uint32_t i = 0; i < r.samples.count; i++) {
				if (rows_make(&r, &file, i))
					fail_msg("%s", r.err.text);
				assert_int_equal(r.label, i / (GROUPS - 1));
				for (uint32_t v = 0; v < ROWS * columns; v++)
					assert_true(r.out[v] == value_of(i % (GROUPS - 1),
									v / columns, v % columns));
			}
			rows_close(&r);
		}
	}
}

/* ---- what lies --------------------------------------------------------------------------------- */

static void refused(int code, const struct error *err, const char *why)
{
	if (code != -EINVAL || !strstr(err->text, why))
		fail_msg("%d '%s' instead of '%s'", code, err->text, why);
}

/* Writes 32 bits at a place of a good file. */
static void change(struct bytes *file, size_t at, uint32_t value)
{
	make_rows(file, true);
	for (size_t i = 0; i < 4; i++)
		file->data[at + i] = (uint8_t)(value >> 8 * i);
}

static void files_that_lie_are_left_out(void **state)
{
	enum { ENTRIES = ROWS_HEAD_BYTES + 4 * COLUMNS };
	static const struct {
		size_t at;
		uint32_t value;
		const char *why;
		size_t good; /* groups that are found before it shows */
	} lies[] = {
		{0, 0, "does not begin with MLROWS1", 0},
		{8, 0, "0 columns; 1 to 65536 are read", 0},
		{8, 65537, "65537 columns", 0},
		{8, 5, "a row group of", 0},
		{12, UINT32_MAX, "whose list does not fit into", 0},
		{12, 2, "10 rows in its groups, and its header says 13", 2},
		{16, 12, "13 rows in its groups, and its header says 12", 3},
		{20, 1, "and its header says 4294967309", 3},
		{ENTRIES, 0, "does not lie behind byte", 0},
		{ENTRIES + 4, 1, "does not lie behind byte", 0},
		{ENTRIES + 8, 0, "a row group of 0 rows", 0},
		{ENTRIES + 8, UINT32_MAX, "a row group of 4294967295 rows", 0},
		{ENTRIES + 16, 88, "does not lie behind byte", 1},
	};
	(void)state;
	fixture_folder("lies/a");
	for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
		struct bytes file;
		struct rows r;
		struct stat st;
		char path[FIXTURE_PATH];
		change(&file, lies[i].at, lies[i].value);
		fixture_write("lies/a/x.rows", file.data, file.size);
		/* Written anew within a tick of the clock: told apart by the time. */
		assert_int_equal(stat(fixture_path("lies/a/x.rows", path), &st), 0);
		const struct timespec times[2] = {
			{.tv_sec = (time_t)i + 1}, {.tv_sec = (time_t)i + 1}};
		assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
		const int code = rows_open(&r, "lies", "record.columns=2", "record.layout=columns");
		if (lies[i].good == 0) {
			assert_int_equal(code, -ENODATA);
			if (!strstr(r.err.text, lies[i].why))
				fail_msg("'%s' instead of '%s'", r.err.text, lies[i].why);
		} else {
			assert_int_equal(code, 0);
			assert_int_equal(r.files.count, lies[i].good);
			assert_int_equal(r.files.bad_count, 1);
			if (!strstr(r.files.bad[0].reason, lies[i].why))
				fail_msg(
					"'%s' instead of '%s'", r.files.bad[0].reason, lies[i].why);
		}
		rows_close(&r);
	}
}

static void groups_that_lie_are_refused(void **state)
{
	static const struct {
		size_t at;
		uint32_t value;
		const char *why;
	} lies[] = {
		{0, 0, "no row group begins here"},
		{4, 4, "a row group of 4 rows"},
		{8, 2, "2 columns; 5 rows and 3 columns are asked for"},
		{8, 65537, "65537 columns"},
		{8, 60000, "a row group of"},
		{12, 0, "values 0 apart"},
		{12, 8, "values 8 apart"},
		{16, 0, "column 0 lies in bytes 0"},
		{16, 47, "column 0 lies in bytes 47"},
		{24, 1000, "column 1 lies in bytes 1000"},
		{32, UINT32_MAX, "column 2 lies in bytes 4294967295"},
		{20, 3, "column 0 is of type 3"},
	};
	struct error err = {""};
	float out[ROWS * 3];
	(void)state;
	for (size_t i = 0; i <= sizeof lies / sizeof *lies; i++) {
		struct bytes group = {.size = 0};
		put_group(&group, 1, ROWS, true);
		const size_t size = (size_t)row_group_bytes(COLUMNS, 3, ROWS);
		for (size_t k = 0; i > 0 && k < 4; k++)
			group.data[lies[i - 1].at + k] = (uint8_t)(lies[i - 1].value >> 8 * k);
		uint8_t *const own = malloc(size);
		assert_non_null(own);
		memcpy(own, group.data, size);
		const int code = row_group_read(own, size, ROWS, 3, out, &err);
		if (i == 0)
			assert_int_equal(code, 0);
		else
			refused(code, &err, lies[i - 1].why);
		free(own);
	}
	/* Cut anywhere. */
	for (size_t size = 0; size < row_group_bytes(COLUMNS, 3, ROWS); size++) {
		struct bytes group = {.size = 0};
		put_group(&group, 1, ROWS, true);
		uint8_t *const own = malloc(size + 1);
		assert_non_null(own);
		memcpy(own, group.data, size);
		refused(row_group_read(own, size, ROWS, 3, out, &err), &err, "rows: ");
		free(own);
	}
}

static void settings_that_do_not_fit_are_refused(void **state)
{
	static const struct {
		const char *columns, *rows, *why;
	} bad[] = {
		{"record.columns=5", "record.rows=5", "4 columns, and record.columns is 5"},
		{"record.columns=4", "record.rows=4", "5 rows, and record.rows is 4"},
		{"record.columns=65536", "record.rows=5000", "values a sample; 268435456 are"},
	};
	struct bytes file;
	(void)state;
	make_rows(&file, true);
	fixture_folder("settings/a");
	fixture_write("settings/a/x.rows", file.data, file.size);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct config config;
		struct dataset files = {0};
		struct dataset samples;
		struct error err = {""};
		fixture_config(&config, "settings", "sample.kind=record", bad[i].columns,
			bad[i].rows, NULL);
		int code = sample_validate(&config, &err);
		if (!code)
			code = dataset_open(&config, NULL, &files, &err);
		if (!code)
			code = sample_cut_files(&config, &files, &samples, &err);
		refused(code, &err, bad[i].why);
		dataset_close(&files);
		config_release(&config);
	}
}

/* ---- the recipe -------------------------------------------------------------------------------- */

/* By column or by row the same values, for any number of threads; a category in every fourth column. */
static void generated_rows_are_as_promised(void **state)
{
	static const char *const layouts[] = {"record.layout=columns", "record.layout=rows"};
	float values[2][8 * 6];
	(void)state;
	for (size_t layout = 0; layout < 2; layout++) {
		uint64_t first = 0;
		for (unsigned threads = 1; threads <= 3; threads += 2) {
			char name[32];
			struct config config;
			struct dataset dataset;
			struct dataset samples;
			struct dataset_generated made;
			struct error err = {""};
			(void)snprintf(name, sizeof name, "rows-%zu-%u", layout, threads);
			fixture_config(&config, name, "dataset.recipe=record", "sample.kind=record",
				"dataset.samples=7", "dataset.classes=2", "dataset.columns=6",
				"dataset.file_groups=3", "record.rows=8", "record.columns=6",
				layouts[layout], NULL);
			const struct dataset_control control = {.threads = threads};
			if (dataset_generate(&config, &control, &made, &err) ||
				dataset_open(&config, NULL, &dataset, &err) ||
				sample_cut_files(&config, &dataset, &samples, &err))
				fail_msg("%s", err.text);
			assert_int_equal(samples.count, 7);
			assert_int_equal(dataset.files, 3);
			assert_int_equal(dataset.class_count, 2);
			assert_int_equal(samples.samples[3].label, 1);
			struct dataset_verified verified;
			assert_int_equal(dataset_verify(&config, NULL, &verified, &err), 0);
			assert_int_equal(verified.bad, 0);
			uint64_t all = 0;
			for (int file = 0; file < 3; file++) {
				char path[64];
				(void)snprintf(path, sizeof path, "%s/class_000%d/0000000%d.rows",
					name, file % 2, file);
				all = all * 31 + fixture_hash(path);
			}
			if (threads == 1)
				first = all;
			assert_true(all == first);
			char path[FIXTURE_PATH];
			char *bytes;
			size_t size;
			(void)snprintf(path, sizeof path, "%.2000s/%s/%s", fixture_root, name,
				samples.samples[1].path);
			assert_int_equal(files_read(path, 1 << 20, &bytes, &size, &err), 0);
			assert_true(samples.offsets[1] + samples.samples[1].bytes <= size);
			assert_int_equal(
				row_group_read((const uint8_t *)bytes + samples.offsets[1],
					samples.samples[1].bytes, 8, 6, values[layout], &err),
				0);
			free(bytes);
			sample_cut_release(&samples, &dataset);
			dataset_close(&dataset);
			config_release(&config);
		}
	}
	assert_memory_equal(values[0], values[1], sizeof values[0]);
	for (size_t i = 0; i < 8 * 6; i++) {
		const float value = values[0][i];
		const size_t column = i % 6;
		if (column == 3)
			assert_true(value == (float)(int)value && value >= 0 && value < 1000);
		else
			assert_true(value >= (float)column - 1 && value <= (float)column + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_become_samples_however_they_lie),
		cmocka_unit_test(files_that_lie_are_left_out),
		cmocka_unit_test(groups_that_lie_are_refused),
		cmocka_unit_test(settings_that_do_not_fit_are_refused),
		cmocka_unit_test(generated_rows_are_as_promised),
	};
	return cmocka_run_group_tests_name("rowgroup", tests, fixture_setup, fixture_teardown);
}
