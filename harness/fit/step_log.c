#include "harness/fit/step_log.h"

#include "harness/analyze/loop_headroom.h"
#include "harness/base/array.h"
#include "harness/base/files.h"
#include "harness/fit/json_mend.h"
#include "harness/fit/scalar_events.h"
#include "harness/fit/step_lines.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum {
	LOG_LINE_BYTES = 1 << 16,
	LOG_COLUMNS_MAX = 256,
	LOG_TAGS_MAX = 128,
	LOG_FILES_MAX = 4096,          /* entries of a folder that are looked at */
	LOG_LINES_LOOKED_AT = 1 << 20, /* for a shape */
	LOG_DOCUMENT_BYTES = 16 << 20,
};

void step_log_row_clear(struct step_log_row *row)
{
	*row = (struct step_log_row){.number = NAN};
	for (int role = 0; role < STEP_ROLES; role++)
		row->of[role] = NAN;
}

static int log_row_add(struct step_log *rows, const struct step_log_row *row, struct error *err)
{
	if (rows->count == STEP_LOG_ROWS_MAX) {
		rows->lost = true;
		return 0;
	}
	if (rows->count == rows->room) {
		const size_t room = rows->room ? 2 * rows->room : 256;
		struct step_log_row *of = realloc(rows->of, room * sizeof *of);
		if (!of)
			return error_set_errno(err, ENOMEM, "cannot keep a log of steps");
		rows->of = of;
		rows->room = room;
	}
	rows->of[rows->count++] = *row;
	return 0;
}

static uint64_t log_hash(const char *text, size_t length)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
	return hash;
}

/* --- CSV -------------------------------------------------------------------------------------- */

struct log_cell {
	const char *text;
	size_t length;
};

struct log_table {
	const char *path;
	struct error *err;
	struct step_log *rows;
	char separator; /* ' ': blanks */
	struct step_name names[LOG_COLUMNS_MAX];
	size_t columns; /* 0: not known yet */
	bool named;
	bool unitless;  /* moments have no unit */
	bool evaluated; /* the last row was of an evaluation */
	bool json;
	uint64_t keys[LOG_COLUMNS_MAX]; /* their hashes */
	double pauses;                  /* ns of evaluations */
};

static char log_separator_of(const char *line)
{
	static const char separators[] = {'\t', ';', ','};

	for (size_t i = 0; i < COUNT(separators); i++)
		if (strchr(line, separators[i]))
			return separators[i];
	return ' ';
}

static struct log_cell log_trim(const char *text, size_t length)
{
	while (length > 0 && strchr(" \t\r\"'", text[0])) {
		text++;
		length--;
	}
	while (length > 0 && strchr(" \t\r\"'", text[length - 1]))
		length--;
	return (struct log_cell){text, length};
}

static size_t log_split(char separator, const char *line, struct log_cell cells[LOG_COLUMNS_MAX])
{
	const char ends[] = {separator, separator == ' ' ? '\t' : separator, '\0'};
	size_t count = 0;

	while (count < LOG_COLUMNS_MAX) {
		if (separator == ' ')
			line += strspn(line, " \t");
		const size_t length = strcspn(line, ends);
		if (separator != ' ' || length > 0)
			cells[count++] = log_trim(line, length);
		line += length;
		if (!*line++)
			break;
	}
	return count;
}

static bool log_moment(const struct log_cell *cell, double *s)
{
	return step_moment(cell->text, cell->length, s) ||
	       (cell->length > 0 && step_clock(cell->text, s) == cell->length);
}

static bool log_is_value(const struct log_cell *cell)
{
	double value;
	double unit;

	return step_number(cell->text, cell->length, &value, &unit) || log_moment(cell, &value);
}

static bool log_are_values(const struct log_cell *cells, size_t count)
{
	bool are = count > 0;

	for (size_t i = 0; i < count; i++)
		are = are && log_is_value(&cells[i]);
	return are;
}

/* The cells of a line.  "0.03 s" and "2026-11-26 06:53:01" are one. */
static size_t log_cells(
	const struct log_table *table, const char *line, struct log_cell cells[LOG_COLUMNS_MAX])
{
	if (table->separator == ' ' && table->columns <= 1) {
		cells[0] = log_trim(line, strlen(line));
		if (table->columns == 1 || log_is_value(&cells[0]))
			return 1;
	}
	return log_split(table->separator, line, cells);
}

/* The first column of each role counts; of JSON, the first key in each row, because objects differ. */
static void log_give_role(struct log_table *table, struct step_name *name)
{
	if (table->json)
		table->rows->named[name->role]++;
	else if (table->rows->named[name->role]++ > 0)
		name->role = STEP_ROLE_NONE;
	else
		table->rows->column[name->role] = 1 + (size_t)(name - table->names);
}

static void log_name_columns(struct log_table *table, const struct log_cell *cells, size_t count)
{
	memset(table->rows->named, 0, sizeof table->rows->named); /* by a comment before */
	for (size_t i = 0; i < count; i++) {
		table->names[i] = step_name_of(cells[i].text, cells[i].length);
		if (!table->names[i].either)
			log_give_role(table, &table->names[i]);
	}
	table->columns = count;
	table->named = true;
}

/* "time" is a moment where its first value is one; a column that says what it is comes before it. */
static void log_settle_column(
	struct log_table *table, struct step_name *name, const struct log_cell *cell)
{
	double value;
	double unit = 0;

	if (!name->either)
		return;
	name->either = false;
	if (log_moment(cell, &value) || (step_number(cell->text, cell->length, &value, &unit) &&
						unit <= 0 && step_epoch_unit_ns(value) > 0))
		name->role = STEP_ROLE_CLOCK;
	log_give_role(table, name);
}

static int log_unnamed(struct log_table *table, const struct log_cell *cells, size_t count)
{
	double value;
	double unit;

	if (count != 1)
		return error_set(table->err, -EINVAL,
			"'%s' has %zu columns without names: its first line must say which is "
			"which, as in step,step_time_ms",
			table->path, count);
	table->columns = 1;
	table->names[0] = (struct step_name){.role = STEP_ROLE_TIME, .either = true};
	log_settle_column(table, &table->names[0], cells);
	if (table->names[0].role == STEP_ROLE_TIME &&
		step_number(cells->text, cells->length, &value, &unit) && unit <= 0)
		return error_set(table->err, -EINVAL,
			"'%s' has numbers without a unit: write step_time_ms or step_time_s into a "
			"line before them, or the unit behind each (31.5ms)",
			table->path);
	return 0;
}

/* Of a table without rows: why its moments are of no use. */
static int log_check_moments(struct log_table *table)
{
	if (!table->unitless || table->rows->count > 0)
		return 0;
	return error_set(table->err, -EINVAL,
		"'%s' has times that are neither dates nor seconds since 1970, and tells no unit of "
		"them: name their column elapsed_s, elapsed_ms or elapsed_us",
		table->path);
}

static int log_no_unit(struct log_table *table, const char *what)
{
	return error_set(table->err, -EINVAL,
		"'%s' does not say in which unit its %s are: name the column %s_ms, %s_s or %s_us",
		table->path, what, what, what, what);
}

/* The value of a cell, in what struct step_log_row has; -EAGAIN: none. */
static int log_value(struct log_table *table, const struct step_name *name,
	const struct log_cell *cell, double *out)
{
	double value;
	double unit;

	if (name->role == STEP_ROLE_CLOCK && log_moment(cell, out))
		return 0;
	if (!step_number(cell->text, cell->length, &value, &unit))
		return -EAGAIN;
	if (unit <= 0)
		unit = name->unit_ns;
	switch (name->role) {
	case STEP_ROLE_CLOCK:
		if (unit <= 0)
			unit = step_epoch_unit_ns(value);
		table->unitless = table->unitless || unit <= 0;
		if (unit <= 0)
			return -EAGAIN;
		*out = value * (unit / 1e9);
		return 0;
	case STEP_ROLE_TIME:
	case STEP_ROLE_WAIT:
	case STEP_ROLE_RUN:
	case STEP_ROLE_PAUSE:
		if (unit <= 0)
			return log_no_unit(
				table, name->role == STEP_ROLE_TIME ? "step_time" : "data_time");
		*out = value * unit;
		break;
	case STEP_ROLE_RATE:
		*out = value > 0 ? 1e9 / value : (double)NAN;
		break;
	default:
		*out = value;
		break;
	}
	return isfinite(*out) && *out >= 0 ? 0 : -EAGAIN;
}

/* Of pipelines/adaptors/headroom.py; NAN: no side's. */
static double log_side_of(const struct log_cell *cell)
{
	for (int side = 0; side < LOOP_SIDES; side++) {
		const char *name = loop_side_name((enum loop_side)side);
		if (strlen(name) == cell->length && strncmp(name, cell->text, cell->length) == 0)
			return side;
	}
	return (double)NAN;
}

/* Puts a cell into its row. */
static int log_take_cell(struct log_table *table, struct step_name *name,
	const struct log_cell *cell, struct step_log_row *row)
{
	double value;

	log_settle_column(table, name, cell);
	if (name->role == STEP_ROLE_PHASE && step_is_of_validation(cell->text, cell->length))
		row->of[STEP_ROLE_PHASE] = 1;
	if (name->role == STEP_ROLE_SIDE)
		row->of[STEP_ROLE_SIDE] = log_side_of(cell);
	if (name->role == STEP_ROLE_NONE || name->role == STEP_ROLE_PHASE ||
		name->role == STEP_ROLE_SIDE ||
		isfinite(name->role == STEP_ROLE_NUMBER ? row->number : row->of[name->role]))
		return 0;
	const int code = log_value(table, name, cell, &value);
	if (code)
		return code == -EAGAIN ? 0 : code;
	if (name->role == STEP_ROLE_NUMBER)
		row->number = value;
	else
		row->of[name->role] = value;
	return 0;
}

static bool log_tells(const struct step_log_row *row)
{
	static const enum step_role roles[] = {STEP_ROLE_CLOCK, STEP_ROLE_TIME, STEP_ROLE_WAIT,
		STEP_ROLE_RATE, STEP_ROLE_SAMPLES, STEP_ROLE_RUN};
	bool tells = false;

	for (size_t i = 0; i < COUNT(roles); i++)
		tells = tells || isfinite(row->of[roles[i]]);
	return tells;
}

/* Rows of an evaluation are no steps; the next one knows that it comes behind them. */
static int log_take_whole_row(struct log_table *table, struct step_log_row *row)
{
	const bool evaluates = isfinite(row->of[STEP_ROLE_PHASE]);

	row->evaluated = table->evaluated;
	table->evaluated = evaluates;
	return evaluates ? 0 : log_row_add(table->rows, row, table->err);
}

static int log_take_row(struct log_table *table, const struct log_cell *cells, size_t count)
{
	struct step_log_row row;

	step_log_row_clear(&row);
	for (size_t i = 0; i < count && i < table->columns; i++) {
		const int code = log_take_cell(table, &table->names[i], &cells[i], &row);
		if (code)
			return code;
	}
	if (!log_tells(&row) || count < table->columns) {
		table->rows->unread++;
		table->rows->numbers += log_are_values(cells, count);
		return 0;
	}
	return log_take_whole_row(table, &row);
}

static int log_take_line(struct log_table *table, char *line)
{
	struct log_cell cells[LOG_COLUMNS_MAX];
	const bool comment = line[0] == '#';

	line += strspn(line, "# \t\r");
	if (!*line || (comment && table->columns > 0))
		return 0;
	if (!table->columns)
		table->separator = log_separator_of(line);
	const size_t count = log_cells(table, line, cells);
	if (table->columns > 0)
		return log_take_row(table, cells, count);
	if (!comment && log_are_values(cells, count)) {
		const int code = log_unnamed(table, cells, count);
		return code ? code : log_take_row(table, cells, count);
	}
	log_name_columns(table, cells, count);
	for (size_t i = 0; comment && i < count; i++) /* words that name no column: a comment */
		if (table->names[i].role == STEP_ROLE_TIME ||
			table->names[i].role == STEP_ROLE_CLOCK ||
			table->names[i].role == STEP_ROLE_RATE)
			return 0;
	table->columns = comment ? 0 : count;
	return 0;
}

/* --- lines ------------------------------------------------------------------------------------ */

struct log_lines {
	gzFile in;
	const char *path;
	struct error *err;
	char *text; /* LOG_LINE_BYTES; owned */
	size_t at, size;
	bool begun;
	bool any; /* lines without an end are passed over, and so is what is no text: else they are an error */
};

static int log_lines_open(
	struct log_lines *lines, gzFile in, const char *path, bool any, struct error *err)
{
	*lines = (struct log_lines){.in = in, .path = path, .err = err, .any = any};
	if (gzrewind(in) != 0)
		return error_set(err, -EINVAL, "'%s' is a pipe: give a file", path);
	lines->text = malloc(LOG_LINE_BYTES);
	return lines->text ? 0 : error_set_errno(err, ENOMEM, "cannot read '%s'", path);
}

/* Progress bars go back to the beginning of their line: what they then write is another one. */
static char *log_line_end(char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (text[i] == '\n' || text[i] == '\r' || text[i] == '\b')
			return text + i;
	return NULL;
}

/* The next line that is not empty: 1; 0: there is none.  A line that has no end may be torn within
 * a number, and is left out. */
static int log_next_line(struct log_lines *lines, char **line)
{
	bool passing = false;

	for (;;) {
		char *from = lines->text + lines->at;
		char *end = log_line_end(from, lines->size - lines->at);
		if (end) {
			const bool text = !memchr(from, '\0', (size_t)(end - from));
			*end = '\0';
			lines->at = (size_t)(end - lines->text) + 1;
			if (!text && !lines->any)
				break;
			if (!lines->begun && strncmp(from, "\xef\xbb\xbf", 3) == 0)
				from += 3;
			lines->begun = true;
			if (*from && text && !passing) {
				*line = from;
				return 1;
			}
			passing = false;
			continue;
		}
		lines->size -= lines->at;
		memmove(lines->text, from, lines->size);
		lines->at = 0;
		if (lines->size == LOG_LINE_BYTES) {
			if (!lines->any)
				break;
			passing = true;
			lines->size = 0;
		}
		const int n = gzread(lines->in, lines->text + lines->size,
			(unsigned)(LOG_LINE_BYTES - lines->size));
		if (n <= 0)
			return 0;
		lines->size += (size_t)n;
	}
	return error_set(lines->err, -ENOMSG,
		"'%s' is no log of steps: it has a line of more than %d bytes, or bytes that are "
		"no text",
		lines->path, LOG_LINE_BYTES);
}

/* Which shape the lines have: steps, the first one of several lines; whole, of one line; NULL:
 * none. */
struct log_shapes {
	const struct step_shape *steps, *whole;
};

static int log_find_shapes(struct log_lines *lines, struct log_shapes *found)
{
	enum { SHAPES_MAX = 32, LINES_LEAST = 3 };
	size_t counts[SHAPES_MAX] = {0};
	struct step_log_row row;
	size_t looked = 0;
	char *line;
	int code;

	while ((code = log_next_line(lines, &line)) > 0 && looked++ < LOG_LINES_LOOKED_AT) {
		step_line_clean(line);
		for (size_t i = 0; step_shapes[i].name; i++)
			counts[i] += step_line_read(&step_shapes[i], line, &row);
	}
	*found = (struct log_shapes){0};
	for (size_t i = 0; step_shapes[i].name; i++) {
		const struct step_shape *shape = &step_shapes[i];
		const struct step_shape **out = shape->whole ? &found->whole : &found->steps;
		if (!*out && counts[i] >= (shape->whole ? 1 : LINES_LEAST))
			*out = shape;
	}
	return code < 0 ? code : 0;
}

static int log_take_lines(
	struct step_log *rows, const struct step_shape *shape, struct log_lines *lines)
{
	struct step_log_row row;
	bool evaluated = false;
	char *line;
	int code = 0;

	while (!rows->lost && (code = log_next_line(lines, &line)) > 0) {
		step_line_clean(line);
		if (!step_line_read(shape, line, &row)) {
			evaluated = evaluated || step_line_evaluates(line);
			continue;
		}
		row.evaluated = evaluated;
		evaluated = false;
		code = log_row_add(rows, &row, lines->err);
		if (code)
			return code;
	}
	rows->lines = shape->name;
	return rows->lost ? 0 : code;
}

static int log_look_at_lines(
	struct log_shapes *found, const char *path, gzFile in, struct error *err)
{
	struct log_lines lines;
	int code = log_lines_open(&lines, in, path, true, err);

	if (!code)
		code = log_find_shapes(&lines, found);
	free(lines.text);
	return code;
}

static int log_read_shape(struct step_log *rows, const struct step_shape *shape, const char *path,
	gzFile in, struct error *err)
{
	struct log_lines lines;
	int code = log_lines_open(&lines, in, path, true, err);

	if (!code)
		code = log_take_lines(rows, shape, &lines);
	free(lines.text);
	return code;
}

static int log_read_table(struct log_table *table, gzFile in)
{
	struct log_lines lines;
	char *line;
	int code = log_lines_open(&lines, in, table->path, false, table->err);

	while (!code && !table->rows->lost && (code = log_next_line(&lines, &line)) > 0)
		code = log_take_line(table, line);
	free(lines.text);
	return code ? code : log_check_moments(table);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static int log_take_json(
	struct log_table *table, const char *key, json_t *value, struct step_log_row *row);

static struct step_name *log_key(struct log_table *table, const char *key)
{
	const uint64_t hash = log_hash(key, strlen(key));

	for (size_t i = 0; i < table->columns; i++)
		if (table->keys[i] == hash)
			return &table->names[i];
	if (table->columns == LOG_COLUMNS_MAX)
		return NULL;
	struct step_name *name = &table->names[table->columns];
	table->keys[table->columns++] = hash;
	*name = step_name_of(key, strlen(key));
	if (!name->either)
		log_give_role(table, name);
	return name;
}

/* Objects in a list are rows of their own; what else an object holds belongs to its row. */
static int log_take_object(struct log_table *table, json_t *object)
{
	struct step_log_row row;
	const char *key;
	json_t *value;
	int code = 0;

	step_log_row_clear(&row);
	json_object_foreach(object, key, value) if (!code) code =
		log_take_json(table, key, value, &row);
	const double clock = row.of[STEP_ROLE_CLOCK];
	if (!isfinite(row.number)) /* any program's log has moments */
		row.of[STEP_ROLE_CLOCK] = NAN;
	if (code || !log_tells(&row))
		return code;
	row.of[STEP_ROLE_CLOCK] = clock;
	row.of[STEP_ROLE_RUN] -= table->pauses;
	return log_take_whole_row(table, &row);
}

static int log_take_json(
	struct log_table *table, const char *key, json_t *value, struct step_log_row *row)
{
	char text[64];
	struct log_cell cell = {text, 0};
	json_t *element;
	const char *inner;
	size_t i;
	int code = 0;

	if (json_is_object(value)) {
		json_object_foreach(value, inner, element) if (!code) code =
			log_take_json(table, inner, element, row);
		return code;
	}
	if (json_is_array(value) && json_array_size(value) > 0 &&
		json_is_number(json_array_get(value, json_array_size(value) - 1)))
		value = json_array_get(value, json_array_size(value) - 1); /* epoch and step */
	json_array_foreach(value, i, element)
	{
		if (!code && json_is_object(element))
			code = log_take_object(table, element);
	}
	if (json_is_string(value))
		cell = log_trim(json_string_value(value), json_string_length(value));
	else if (json_is_number(value))
		cell.length =
			(size_t)snprintf(text, sizeof text, "%.17g", json_number_value(value));
	struct step_name *name = cell.length > 0 ? log_key(table, key) : NULL;
	if (code || !name)
		return code;
	const bool pause = name->role == STEP_ROLE_PAUSE;
	code = log_take_cell(table, name, &cell, row);
	if (!code && pause && isfinite(row->of[STEP_ROLE_PAUSE]))
		table->pauses += row->of[STEP_ROLE_PAUSE];
	return code;
}

static json_t *log_load(char *text, size_t size, size_t flags)
{
	struct json_mend state = {0};

	json_mend(&state, text, text, size, size);
	return json_loadb(text, size, flags, NULL);
}

/* An object on each line, with a mark of its logger before it. */
static int log_read_json_lines(struct log_table *table, gzFile in)
{
	struct log_lines lines;
	char *line;
	int code = log_lines_open(&lines, in, table->path, true, table->err);

	while (!code && !table->rows->lost && (code = log_next_line(&lines, &line)) > 0) {
		char *begin = strchr(line, '{');
		json_t *object =
			begin ? log_load(begin, strlen(begin), JSON_DISABLE_EOF_CHECK) : NULL;
		code = json_is_object(object) ? log_take_object(table, object) : 0;
		json_decref(object);
	}
	free(lines.text);
	return code;
}

/* One document; it is none, or too large to be a log, where this finds no rows. */
static int log_read_json_document(struct log_table *table, gzFile in)
{
	char *text = malloc(LOG_DOCUMENT_BYTES);
	struct step_log_row row;
	int code = 0;

	if (!text)
		return error_set_errno(table->err, ENOMEM, "cannot read '%s'", table->path);
	const int n = gzrewind(in) == 0 ? gzread(in, text, LOG_DOCUMENT_BYTES) : 0;
	json_t *document = n > 0 && gzeof(in) ? log_load(text, (size_t)n, 0) : NULL;
	free(text);
	step_log_row_clear(&row);
	if (json_is_object(document))
		code = log_take_object(table, document);
	else if (json_is_array(document))
		code = log_take_json(table, "", document, &row);
	json_decref(document);
	return code;
}

static int log_read_json(struct log_table *table, gzFile in)
{
	int code = log_read_json_document(table, in);

	if (!code && table->rows->count == 0)
		code = log_read_json_lines(table, in);
	if (!code)
		code = log_check_moments(table);
	return !code && table->rows->count == 0 ? -ENOMSG : code;
}

static bool log_begins_json(const unsigned char *bytes, size_t size)
{
	size_t first = 0;

	if (size >= 5 && memcmp(bytes, "DLLL ", 5) == 0)
		return true;
	while (first < size && bytes[first] <= ' ')
		first++;
	return first < size && (bytes[first] == '{' || bytes[first] == '[');
}

static bool log_is_text(const unsigned char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i] < ' ' && (!bytes[i] || !strchr("\t\r\n\b\x1b", bytes[i])))
			return false;
	return true;
}

/* --- event files ------------------------------------------------------------------------------ */

struct log_tag {
	uint64_t hash;
	struct step_name name;
	uint64_t count;
};

struct log_events {
	struct error *err;
	struct step_log *rows;
	struct log_tag tags[LOG_TAGS_MAX];
	size_t tag_count;
	const struct log_tag *chosen[STEP_ROLES]; /* CLOCK: whose moments count */
	struct step_log_row row;                  /* of the step that is being read */
	bool has_row;
};

static int log_count_tag(void *context, const struct scalar_event *event)
{
	struct log_events *log = context;
	const uint64_t hash = log_hash(event->tag, event->tag_length);

	for (size_t i = 0; i < log->tag_count; i++)
		if (log->tags[i].hash == hash) {
			log->tags[i].count++;
			return 0;
		}
	if (log->tag_count < LOG_TAGS_MAX)
		log->tags[log->tag_count++] =
			(struct log_tag){hash, step_name_of(event->tag, event->tag_length), 1};
	return 0;
}

/* Of each role the most frequent tag. */
static void log_choose_tags(struct log_events *log)
{
	const struct log_tag *most = NULL;

	for (size_t i = 0; i < log->tag_count; i++) {
		const struct log_tag *tag = &log->tags[i];
		const struct log_tag **chosen = &log->chosen[tag->name.role];
		log->rows->named[tag->name.role]++;
		if (tag->name.role != STEP_ROLE_NONE && tag->name.role != STEP_ROLE_CLOCK &&
			tag->name.role != STEP_ROLE_NUMBER &&
			(!*chosen || tag->count > (*chosen)->count))
			*chosen = tag;
		if (!most || tag->count > most->count)
			most = tag;
	}
	log->chosen[STEP_ROLE_CLOCK] = log->chosen[STEP_ROLE_TIME]   ? log->chosen[STEP_ROLE_TIME]
				       : log->chosen[STEP_ROLE_RATE] ? log->chosen[STEP_ROLE_RATE]
								     : most;
}

static int log_end_row(struct log_events *log)
{
	if (!log->has_row)
		return 0;
	log->has_row = false;
	return log_row_add(log->rows, &log->row, log->err);
}

/* A step has a row, in which the scalars of that step come together.  Each row needs its moment. */
static int log_take_scalar(void *context, const struct scalar_event *event)
{
	struct log_events *log = context;
	const uint64_t hash = log_hash(event->tag, event->tag_length);
	int code = 0;

	for (int role = 0; role < STEP_ROLES; role++) {
		if (!log->chosen[role] || log->chosen[role]->hash != hash)
			continue;
		if (role == STEP_ROLE_CLOCK) {
			if (log->has_row && log->row.number != (double)event->step)
				code = log_end_row(log);
			if (!log->has_row) {
				step_log_row_clear(&log->row);
				log->row.number = (double)event->step;
				log->row.of[STEP_ROLE_CLOCK] = event->wall_time_s;
				log->has_row = true;
			}
		}
		break;
	}
	if (code || !log->has_row || log->row.number != (double)event->step)
		return code;
	for (int role = 0; role < STEP_ROLES; role++)
		if (role != STEP_ROLE_CLOCK && log->chosen[role] &&
			log->chosen[role]->hash == hash && event->value >= 0)
			log->row.of[role] = role != STEP_ROLE_RATE ? event->value
					    : event->value > 0     ? 1e9 / event->value
								   : (double)NAN;
	return 0;
}

static int log_read_events(struct step_log *rows, const char *path, struct error *err)
{
	struct log_events *log = calloc(1, sizeof *log);
	struct scalar_file file;

	if (!log)
		return error_set_errno(err, ENOMEM, "cannot read '%s'", path);
	log->err = err;
	log->rows = rows;
	rows->events = true;
	int code = scalars_read(path, log_count_tag, log, &file, err);
	if (!code) {
		log_choose_tags(log);
		code = scalars_read(path, log_take_scalar, log, &file, err);
	}
	if (!code)
		code = log_end_row(log);
	for (int role = 0; role < STEP_ROLES; role++)
		rows->unit_ns[role] = log->chosen[role] ? log->chosen[role]->name.unit_ns : 0;
	free(log);
	rows->torn = file.torn;
	rows->damaged = file.damaged;
	return code;
}

/* --- the file --------------------------------------------------------------------------------- */

/* The one event file of a folder; -ENOMSG: there is none. */
static int log_find_in_folder(const char *path, char found[PATH_MAX], struct error *err)
{
	DIR *folder = opendir(path);
	size_t count = 0;

	if (!folder)
		return error_set_errno(err, errno, "cannot open '%s'", path);
	for (int looked = 0; looked < LOG_FILES_MAX; looked++) {
		const struct dirent *entry = readdir(folder);
		if (!entry)
			break;
		if (!strstr(entry->d_name, "tfevents"))
			continue;
		count++;
		if (snprintf(found, PATH_MAX, "%s/%s", path, entry->d_name) >= PATH_MAX)
			count = 0;
	}
	(void)closedir(folder);
	if (count == 0)
		return error_set(err, -ENOMSG, "'%s' has no file of TensorBoard's events", path);
	if (count > 1)
		return error_set(err, -EINVAL,
			"'%s' has %zu files of TensorBoard's events: give one of them", path,
			count);
	return 0;
}

/* Lines of a program that is known, else JSON, else CSV. */
static int log_read_text(
	struct step_log *rows, const char *path, gzFile in, bool json, struct error *err)
{
	struct log_table *table = calloc(1, sizeof *table);
	struct log_shapes shapes = {0};

	if (!table)
		return error_set_errno(err, ENOMEM, "cannot read '%s'", path);
	*table = (struct log_table){.path = path, .err = err, .rows = rows};
	table->json = json;
	int code = log_look_at_lines(&shapes, path, in, err);
	if (code)
		goto out;
	code = -ENOMSG;
	if (!shapes.steps && json)
		code = log_read_json(table, in);
	if (code != -ENOMSG)
		goto out;
	if (shapes.steps || shapes.whole)
		code = log_read_shape(
			rows, shapes.steps ? shapes.steps : shapes.whole, path, in, err);
	else if (!json)
		code = log_read_table(table, in);
	else
		code = error_set(err, code,
			"'%s' is no log of steps: nothing in it has a name or a unit of step times",
			path);
out:
	free(table);
	return code;
}

/* What it is shows in the first bytes.  They cannot be put back into a pipe. */
static int log_read_file(struct step_log *rows, const char *path, struct error *err)
{
	unsigned char head[SCALAR_HEAD_BYTES];
	int code;
	const int fd = files_open_stream(path, err);
	if (fd < 0)
		return fd;
	gzFile in = gzdopen(fd, "rb");
	if (!in) {
		(void)close(fd);
		return error_set_errno(err, ENOMEM, "cannot read '%s'", path);
	}
	const int n = gzread(in, head, sizeof head);
	if (n <= 0)
		code = error_set(err, -ENOMSG, "'%s' is empty", path);
	else if (scalars_begin(head, (size_t)n))
		code = log_read_events(rows, path, err);
	else if (!log_is_text(head, (size_t)n))
		code = error_set(
			err, -ENOMSG, "'%s' is no log of steps: neither text nor events", path);
	else
		code = log_read_text(rows, path, in, log_begins_json(head, (size_t)n), err);
	(void)gzclose(in);
	return code;
}

int step_log_read(struct step_log *log, const char *path, struct error *err)
{
	char found[PATH_MAX];
	struct stat st;

	*log = (struct step_log){0};
	if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
		return log_read_file(log, path, err);
	const int code = log_find_in_folder(path, found, err);
	return code ? code : log_read_file(log, found, err);
}

void step_log_release(struct step_log *log)
{
	free(log->of);
	*log = (struct step_log){0};
}
