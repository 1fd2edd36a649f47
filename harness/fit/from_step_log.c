/* Findings from a log of step times: CSV, or TensorBoard's event files (one file, or a folder with one in it).
 *
 * CSV (also through gzip): the first line names the columns, which commas, semicolons, tabs or blanks separate.  Needed is a column of
 * step times ("step_time_ms", "iter_time (s)", "batch_time_s", ...), of steps per second ("it/s"), or of moments ("timestamp",
 * "wall_time": dates, or seconds, ms, us or ns since 1970), whose differences are the period.  Of use are, beside it, the number of the
 * step, the wait for the batch ("data_time_ms") and samples per second.  One column of numbers needs no name where each has its unit
 * ("31.5ms").  harness/fit/step_names.c has all names.  A unit is never guessed.
 *
 * Event files: a scalar with such a name ("perf/step_time"), else the moments at which the most frequent scalar was written.  A unit
 * that the name does not say is told by those moments: the largest one in which steps fit between them.
 *
 * Whether a column of step times has the waits for batches in it, names do not say.  Moments do: step times that fill the
 * time between them are periods.  So do waits that are longer than their steps.  Else they are taken as periods, and a note says so.
 *
 * Slow steps at the beginning are warm-up and left out: those before the first that takes less than 1.5 times the median. */
#include "harness/analyze/statistics.h"
#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/units.h"
#include "harness/fit/finding.h"
#include "harness/fit/scalar_events.h"
#include "harness/fit/step_means.h"
#include "harness/fit/step_names.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum {
	LOG_ROWS_MAX = FINDINGS_STEPS_MAX,
	LOG_LINE_BYTES = 1 << 16,
	LOG_COLUMNS_MAX = 256,
	LOG_TAGS_MAX = 128,
	LOG_FILES_MAX = 4096, /* entries of a folder that are looked at */
	LOG_ROWS_LEAST = 3,
};

/* One step, or one line of the log. */
struct log_row {
	double number; /* of the step; NAN */
	double of
		[STEP_ROLES]; /* CLOCK in s, TIME and WAIT in their unit, the others per second; NAN */
};

struct log_rows {
	struct log_row *of; /* owned */
	size_t count, room;
	double unit_ns[STEP_ROLES]; /* of TIME and WAIT; 0: not said */
	bool lost;                  /* there are more than LOG_ROWS_MAX */
	bool events;                /* of an event file */
	uint64_t unread;            /* lines without what they should have */
};

static const struct log_row log_row_empty = {NAN, {NAN, NAN, NAN, NAN, NAN, NAN, NAN}};

static int log_row_add(struct log_rows *rows, const struct log_row *row, struct error *err)
{
	if (rows->count == LOG_ROWS_MAX) {
		rows->lost = true;
		return 0;
	}
	if (rows->count == rows->room) {
		const size_t room = rows->room ? 2 * rows->room : 256;
		struct log_row *of = realloc(rows->of, room * sizeof *of);
		if (!of)
			return error_set_errno(err, ENOMEM, "cannot keep a log of steps");
		rows->of = of;
		rows->room = room;
	}
	rows->of[rows->count++] = *row;
	return 0;
}

static bool log_has(const struct log_rows *rows, enum step_role role)
{
	for (size_t i = 0; i < rows->count; i++)
		if (isfinite(rows->of[i].of[role]))
			return true;
	return false;
}

/* --- CSV -------------------------------------------------------------------------------------- */

struct log_cell {
	const char *text;
	size_t length;
};

struct log_table {
	const char *path;
	struct error *err;
	struct log_rows *rows;
	char separator; /* ' ': blanks */
	struct step_name names[LOG_COLUMNS_MAX];
	size_t columns; /* 0: not known yet */
	bool named;
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

static bool log_is_value(const struct log_cell *cell)
{
	double value;
	double unit;

	return step_number(cell->text, cell->length, &value, &unit) ||
	       step_moment(cell->text, cell->length, &value);
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

/* The first column of each role counts. */
static void log_name_columns(struct log_table *table, const struct log_cell *cells, size_t count)
{
	bool has[STEP_ROLES] = {false};

	for (size_t i = 0; i < count; i++) {
		struct step_name name = step_name_of(cells[i].text, cells[i].length);
		if (has[name.role])
			name.role = STEP_ROLE_NONE;
		has[name.role] = name.role != STEP_ROLE_NONE;
		table->names[i] = name;
	}
	table->columns = count;
	table->named = true;
}

/* "time" is a moment where its first value is one. */
static void log_settle_column(struct step_name *name, const struct log_cell *cell)
{
	double value;
	double unit = 0;

	if (!name->either)
		return;
	name->either = false;
	if (step_moment(cell->text, cell->length, &value) ||
		(step_number(cell->text, cell->length, &value, &unit) && unit <= 0 &&
			step_epoch_unit_ns(value) > 0))
		name->role = STEP_ROLE_CLOCK;
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
	log_settle_column(&table->names[0], cells);
	if (table->names[0].role == STEP_ROLE_TIME &&
		step_number(cells->text, cells->length, &value, &unit) && unit <= 0)
		return error_set(table->err, -EINVAL,
			"'%s' has numbers without a unit: write step_time_ms or step_time_s into a "
			"line before them, or the unit behind each (31.5ms)",
			table->path);
	return 0;
}

static int log_no_unit(struct log_table *table, const char *what)
{
	return error_set(table->err, -EINVAL,
		"'%s' does not say in which unit its %s are: name the column %s_ms, %s_s or %s_us",
		table->path, what, what, what, what);
}

/* The value of a cell, in what struct log_row has; -EAGAIN: none. */
static int log_value(struct log_table *table, const struct step_name *name,
	const struct log_cell *cell, double *out)
{
	double value;
	double unit;

	if (name->role == STEP_ROLE_CLOCK && step_moment(cell->text, cell->length, out))
		return 0;
	if (!step_number(cell->text, cell->length, &value, &unit))
		return -EAGAIN;
	if (unit <= 0)
		unit = name->unit_ns;
	switch (name->role) {
	case STEP_ROLE_CLOCK:
		if (unit <= 0)
			unit = step_epoch_unit_ns(value);
		if (unit <= 0)
			return log_no_unit(table, "elapsed");
		*out = value * (unit / 1e9);
		return 0;
	case STEP_ROLE_TIME:
	case STEP_ROLE_WAIT:
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

static int log_take_row(struct log_table *table, const struct log_cell *cells, size_t count)
{
	struct log_row row = log_row_empty;
	bool told = false;

	for (size_t i = 0; i < count && i < table->columns; i++) {
		struct step_name *name = &table->names[i];
		log_settle_column(name, &cells[i]);
		if (name->role == STEP_ROLE_NONE)
			continue;
		double value;
		const int code = log_value(table, name, &cells[i], &value);
		if (code && code != -EAGAIN)
			return code;
		if (code)
			continue;
		if (name->role == STEP_ROLE_NUMBER)
			row.number = value;
		else
			row.of[name->role] = value;
		told = told || name->role != STEP_ROLE_NUMBER;
	}
	if (!told || count < table->columns) {
		table->rows->unread++;
		return 0;
	}
	return log_row_add(table->rows, &row, table->err);
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
	bool values = count > 0;
	for (size_t i = 0; i < count; i++)
		values = values && log_is_value(&cells[i]);
	if (values && !comment) {
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

/* A line that has no end may be torn within a number, and is left out. */
static int log_read_lines(struct log_table *table, gzFile in)
{
	char *line = malloc(LOG_LINE_BYTES);
	bool first = true;
	int code = 0;

	if (!line)
		return error_set_errno(table->err, ENOMEM, "cannot read '%s'", table->path);
	while (!code && !table->rows->lost && gzgets(in, line, LOG_LINE_BYTES)) {
		char *end = strchr(line, '\n');
		if (!end && (strlen(line) == LOG_LINE_BYTES - 1 || !gzeof(in)))
			code = error_set(table->err, -ENOMSG,
				"'%s' is no log of steps: it has a line of more than %d bytes, or "
				"bytes that are no text",
				table->path, LOG_LINE_BYTES);
		if (!end)
			break;
		*end = '\0';
		char *text = line;
		if (first && strncmp(text, "\xef\xbb\xbf", 3) == 0)
			text += 3;
		first = false;
		code = log_take_line(table, text);
	}
	free(line);
	return code;
}

/* Text, and no JSON. */
static bool log_is_text(const unsigned char *bytes, size_t size)
{
	size_t first = 0;

	for (size_t i = 0; i < size; i++)
		if (bytes[i] < ' ' && (!bytes[i] || !strchr("\t\r\n", bytes[i])))
			return false;
	while (first < size && bytes[first] <= ' ')
		first++;
	return first == size || (bytes[first] != '{' && bytes[first] != '[');
}

/* --- event files ------------------------------------------------------------------------------ */

struct log_tag {
	uint64_t hash;
	struct step_name name;
	uint64_t count;
};

struct log_events {
	struct error *err;
	struct log_rows *rows;
	struct log_tag tags[LOG_TAGS_MAX];
	size_t tag_count;
	const struct log_tag *chosen[STEP_ROLES]; /* CLOCK: whose moments count */
	struct log_row row;                       /* of the step that is being read */
	bool has_row;
};

static uint64_t log_hash(const char *text, size_t length)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
	return hash;
}

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
				log->row = log_row_empty;
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

static int log_read_events(
	struct log_rows *rows, struct findings *out, const char *path, struct error *err)
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
	if (file.torn)
		findings_note(out,
			"the end of the event file is missing: the %" PRIu64
			" records before it count",
			file.records);
	if (file.damaged > 0)
		findings_note(out,
			"%" PRIu64 " records of the event file are damaged, and were left out",
			file.damaged);
	return code;
}

/* --- what the rows tell ----------------------------------------------------------------------- */

/* Times per step, in ns, of `count` rows; owned. */
struct log_times {
	double *step, *wait, *period; /* NAN where they are not known; one allocation */
	size_t count;
	bool consecutive;
};

/* From the moment of the row before to that of this one, for each step between them; NAN: they do not follow each other, or there
 * was a pause. */
static double log_period(const struct log_row *before, const struct log_row *row)
{
	const double s = row->of[STEP_ROLE_CLOCK] - before->of[STEP_ROLE_CLOCK];
	const double steps = isfinite(row->number) && isfinite(before->number)
				     ? row->number - before->number
				     : 1;

	return steps >= 1 && s >= 0 ? s * 1e9 / steps : (double)NAN;
}

static int log_take_times(const struct log_rows *rows, struct log_times *times, struct error *err)
{
	times->count = rows->count;
	times->step = malloc((3 * rows->count + 1) * sizeof *times->step);
	if (!times->step)
		return error_set_errno(err, ENOMEM, "cannot keep a log of steps");
	times->wait = times->step + rows->count;
	times->period = times->wait + rows->count;
	times->consecutive = true;
	for (size_t i = 0; i < rows->count; i++) {
		const struct log_row *row = &rows->of[i];
		times->step[i] = isfinite(row->of[STEP_ROLE_TIME]) ? row->of[STEP_ROLE_TIME]
								   : row->of[STEP_ROLE_RATE];
		times->wait[i] = row->of[STEP_ROLE_WAIT];
		times->period[i] = i > 0 ? log_period(&rows->of[i - 1], row) : (double)NAN;
		if (i > 0 && isfinite(row->number) && row->number != rows->of[i - 1].number + 1)
			times->consecutive = false;
	}
	return 0;
}

/* The finite ones to the front; how many. */
static size_t log_known(const double *values, size_t count, double *out)
{
	size_t known = 0;

	for (size_t i = 0; i < count; i++)
		if (isfinite(values[i]))
			out[known++] = values[i];
	return known;
}

static double log_mean_of(const double *values, size_t count, double most)
{
	double sum = 0;
	size_t known = 0;

	for (size_t i = 0; i < count; i++)
		if (isfinite(values[i]) && values[i] <= most) {
			sum += values[i];
			known++;
		}
	return known > 0 ? sum / (double)known : (double)NAN;
}

/* Evaluations, nights: they are no steps. */
static size_t log_drop_pauses(struct log_times *times, double median)
{
	size_t dropped = 0;

	for (size_t i = 0; i < times->count; i++)
		if (times->period[i] > 60.0 * (double)NS_PER_S && times->period[i] > 100 * median) {
			times->period[i] = NAN;
			dropped++;
		}
	return dropped;
}

/* How many slow steps there are before the first usual one, a third of all at most. */
static size_t log_warmup(const double *values, size_t count, double median)
{
	size_t at = 0;

	while (at < count / 3 && !(values[at] <= 1.5 * median))
		at++;
	return at < count / 3 ? at : 0;
}

struct log_told {
	struct findings *out;
	const char *path;
	struct error *err;
	struct log_rows *rows;
	struct log_times times;
	double *scratch; /* as many as rows; owned */
};

static double log_median(struct log_told *told, const double *values)
{
	const size_t known = log_known(values, told->times.count, told->scratch);

	return statistics_median(told->scratch, known);
}

/* A unit that the name of a tag does not say: the largest in which steps fit between their moments. */
static int log_tell_unit(struct log_told *told, enum step_role role, double *values)
{
	static const double units_ns[] = {1e9, 1e6, 1e3, 1};
	double unit = told->rows->unit_ns[role];
	const double value = log_median(told, values);
	const double period = log_median(told, told->times.period);

	for (size_t i = 0; i < COUNT(units_ns) && !(unit > 0); i++)
		if (value * units_ns[i] <= 1.2 * period)
			unit = units_ns[i];
	if (!(unit > 0))
		return error_set(told->err, -EINVAL,
			"'%s' has step times that do not fit between the moments at which they were "
			"written, in no unit: name the scalar step_time_ms or step_time_s",
			told->path);
	for (size_t i = 0; i < told->times.count; i++)
		values[i] *= unit;
	return 0;
}

static int log_tell_units(struct log_told *told)
{
	const bool rates = !log_has(told->rows, STEP_ROLE_TIME);
	int code = 0;

	if (!told->rows->events) /* each cell had its unit */
		return 0;
	if (log_has(told->rows, STEP_ROLE_TIME) && !rates)
		code = log_tell_unit(told, STEP_ROLE_TIME, told->times.step);
	if (!code && log_has(told->rows, STEP_ROLE_WAIT)) {
		if (!(told->rows->unit_ns[STEP_ROLE_WAIT] > 0)) /* that of its neighbour */
			told->rows->unit_ns[STEP_ROLE_WAIT] = told->rows->unit_ns[STEP_ROLE_TIME];
		code = log_tell_unit(told, STEP_ROLE_WAIT, told->times.wait);
	}
	return code;
}

/* Whether the waits for batches are in the step times. */
enum log_waits { LOG_WAITS_INSIDE, LOG_WAITS_OUTSIDE, LOG_WAITS_UNSAID };

static enum log_waits log_where_waits_are(struct log_told *told)
{
	const struct log_times *t = &told->times;
	const double median = log_median(told, t->period);
	const double most = 1000 * median; /* of what is compared; pauses are gone */
	size_t longer = 0;

	if (!log_has(told->rows, STEP_ROLE_TIME)) /* a rate is of everything */
		return LOG_WAITS_INSIDE;
	for (size_t i = 0; i < t->count; i++)
		longer += t->wait[i] > t->step[i];
	if (20 * longer > t->count) /* more than rounding makes */
		return LOG_WAITS_OUTSIDE;
	if (!(median > 0))
		return LOG_WAITS_UNSAID;
	return log_mean_of(t->step, t->count, most) > 0.9 * log_mean_of(t->period, t->count, most)
		       ? LOG_WAITS_INSIDE
		       : LOG_WAITS_OUTSIDE;
}

/* One series of the findings: the values that are known after the warm-up. */
static size_t log_series(struct log_told *told, const double *values, size_t skip)
{
	return log_known(values + skip, told->times.count - skip, told->scratch);
}

static int log_keep(struct log_told *told, enum finding_id is, const double *values, size_t skip)
{
	const size_t count = log_series(told, values, skip);
	const bool whole = count == told->times.count - skip;

	return step_mean_keep(
		told->out, is, told->times.consecutive && whole, told->scratch, count, told->err);
}

static void log_add(struct log_told *told, enum finding_id id, enum finding_how how,
	const double *values, size_t skip, const char *why)
{
	const size_t count = log_series(told, values, skip);

	if (count > 0)
		step_mean_find(told->out, id, SOURCE_STEP_LOG, how, told->scratch, count, why);
}

/* Step times, and whatever else the rows have. */
static int log_conclude_steps(struct log_told *told, size_t skip)
{
	struct log_times *t = &told->times;
	const enum log_waits waits = log_where_waits_are(told);
	const bool has_wait = log_has(told->rows, STEP_ROLE_WAIT);

	if (has_wait)
		log_add(told, FINDING_STEP_WAIT, FINDING_MEASURED, t->wait, skip, NULL);
	if (waits == LOG_WAITS_OUTSIDE) {
		log_add(told, FINDING_STEP_TIME, FINDING_MEASURED, t->step, skip, NULL);
		const int code = log_keep(told, FINDING_STEP_TIME, t->step, skip);
		log_add(told, FINDING_STEP_PERIOD, FINDING_MEASURED, t->period, skip, NULL);
		for (size_t i = 0; i < t->count; i++)
			t->step[i] += t->wait[i];
		log_add(told, FINDING_STEP_PERIOD, FINDING_DERIVED, t->step, skip,
			"the step time and the wait for its batch");
		return code;
	}
	log_add(told, FINDING_STEP_PERIOD, FINDING_MEASURED, t->step, skip, NULL);
	if (waits == LOG_WAITS_UNSAID)
		findings_note(told->out,
			"the log does not say whether its step times have the waits for batches in "
			"them: they are taken to have; a column of moments (timestamp) would tell");
	if (!has_wait)
		return log_keep(told, FINDING_STEP_PERIOD, t->step, skip);
	for (size_t i = 0; i < t->count; i++)
		t->step[i] = t->step[i] < t->wait[i] ? 0 : t->step[i] - t->wait[i];
	log_add(told, FINDING_STEP_TIME, FINDING_DERIVED, t->step, skip,
		"the period without the wait for the batch");
	return log_keep(told, FINDING_STEP_TIME, t->step, skip);
}

static int log_conclude_moments(struct log_told *told, size_t skip)
{
	log_add(told, FINDING_STEP_PERIOD, FINDING_DERIVED, told->times.period, skip,
		"from one moment of the log to the next");
	findings_note(told->out,
		"the log has no column of step times: periods are the time between its moments");
	return log_keep(told, FINDING_STEP_PERIOD, told->times.period, skip);
}

/* Samples per second; with the period, the batch. */
static void log_add_samples(struct log_told *told, size_t skip)
{
	const struct log_rows *rows = told->rows;
	const struct finding *period = &told->out->known[FINDING_STEP_PERIOD];
	size_t count = 0;

	for (size_t i = skip; i < rows->count; i++)
		if (isfinite(rows->of[i].of[STEP_ROLE_SAMPLES]))
			told->scratch[count++] = rows->of[i].of[STEP_ROLE_SAMPLES];
	if (count == 0 || period->how == FINDING_UNKNOWN)
		return;
	/* A mean of rates is not the rate of the whole: the batch comes first, of rows that have both. */
	count = 0;
	for (size_t i = skip; i < rows->count; i++) {
		const struct log_row *row = &rows->of[i];
		const double ns = isfinite(row->of[STEP_ROLE_TIME]) ? row->of[STEP_ROLE_TIME]
								    : row->of[STEP_ROLE_RATE];
		if (isfinite(row->of[STEP_ROLE_SAMPLES]) && isfinite(ns) && !rows->events)
			told->scratch[count++] = row->of[STEP_ROLE_SAMPLES] * ns / 1e9;
	}
	if (count == 0)
		return;
	const double quantiles[] = {0.1, 0.5, 0.9};
	double batch[3];
	statistics_quantiles(told->scratch, count, quantiles, COUNT(quantiles), batch);
	const double whole = round(batch[1]);
	if (whole < 1 || batch[2] - batch[0] > 0.02 * whole ||
		fabs(batch[1] - whole) > 0.02 * whole)
		return; /* no batch of one size */
	findings_add(told->out, FINDING_BATCH_SIZE, SOURCE_STEP_LOG, FINDING_DERIVED, whole, NAN,
		NAN, "samples per second times the step time");
	findings_add(told->out, FINDING_THROUGHPUT, SOURCE_STEP_LOG, FINDING_DERIVED,
		whole * 1e9 / period->value, whole * 1e9 / period->high,
		period->low > 0 ? whole * 1e9 / period->low : (double)NAN,
		"the batch over the period of the steps");
}

static int log_refuse(const struct log_told *told)
{
	const bool column = log_has(told->rows, STEP_ROLE_TIME) ||
			    log_has(told->rows, STEP_ROLE_RATE) ||
			    log_has(told->rows, STEP_ROLE_CLOCK);

	if (!column)
		return error_set(told->err, -EINVAL,
			"'%s' has no column of step times: name one step_time_ms, step_time_s, it/s "
			"or timestamp",
			told->path);
	return error_set(told->err, -EINVAL, "'%s' has %zu usable steps: it needs %d at least",
		told->path, told->rows->count, LOG_ROWS_LEAST);
}

static int log_check_range(const struct log_told *told, double median)
{
	char took[UNITS_BYTES];

	if (median > 0 && median >= (double)NS_PER_US && median <= 24 * 3600 * (double)NS_PER_S)
		return 0;
	return error_set(told->err, -EINVAL, "'%s' has steps of %s: is the unit right?", told->path,
		units_format_duration(median, took));
}

static void log_note_rows(struct log_told *told, size_t count, size_t skip, size_t pauses)
{
	findings_note(told->out, "%zu steps of the log count", count);
	if (skip > 0)
		findings_note(told->out,
			"%zu slow step%s at its beginning %s warm-up, and %s left out", skip,
			skip == 1 ? "" : "s", skip == 1 ? "is" : "are", skip == 1 ? "was" : "were");
	if (pauses > 0)
		findings_note(told->out, "%zu pauses of more than a minute were left out", pauses);
	if (told->rows->unread > 0)
		findings_note(told->out, "%" PRIu64 " lines that could not be read were left out",
			told->rows->unread);
	if (told->rows->lost)
		findings_note(told->out, "only the first %d steps count", LOG_ROWS_MAX);
}

static int log_conclude(struct log_told *told)
{
	const bool steps =
		log_has(told->rows, STEP_ROLE_TIME) || log_has(told->rows, STEP_ROLE_RATE);

	if (told->rows->count < LOG_ROWS_LEAST || (!steps && !log_has(told->rows, STEP_ROLE_CLOCK)))
		return log_refuse(told);
	told->scratch = malloc(told->rows->count * sizeof *told->scratch);
	if (!told->scratch)
		return error_set_errno(told->err, ENOMEM, "cannot keep a log of steps");
	int code = log_take_times(told->rows, &told->times, told->err);
	if (!code)
		code = log_tell_units(told);
	if (code)
		return code;
	const size_t pauses = log_drop_pauses(&told->times, log_median(told, told->times.period));
	const double *values = steps ? told->times.step : told->times.period;
	const double median = log_median(told, values);
	code = log_check_range(told, median);
	if (code)
		return code;
	const size_t first = steps ? 0 : 1; /* the first moment ends no period */
	const size_t slow = log_warmup(values + first, told->times.count - first, median);
	const size_t skip = slow + first;
	const size_t count = log_series(told, values, skip);
	code = steps ? log_conclude_steps(told, skip) : log_conclude_moments(told, skip);
	if (!code)
		log_add_samples(told, skip);
	log_note_rows(told, count, slow, pauses);
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

static int log_read_table(struct log_rows *rows, const char *path, gzFile in, struct error *err)
{
	struct log_table *table = calloc(1, sizeof *table);

	if (!table)
		return error_set_errno(err, ENOMEM, "cannot read '%s'", path);
	table->path = path;
	table->err = err;
	table->rows = rows;
	const int code = log_read_lines(table, in);
	free(table);
	return code;
}

/* Which of the two it is shows in the first bytes.  They cannot be put back into a pipe. */
static int log_read_file(
	struct log_rows *rows, struct findings *out, const char *path, struct error *err)
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
		code = log_read_events(rows, out, path, err);
	else if (!log_is_text(head, (size_t)n))
		code = error_set(
			err, -ENOMSG, "'%s' is no log of steps: neither CSV nor events", path);
	else if (gzrewind(in) != 0)
		code = error_set(err, -EINVAL, "'%s' is a pipe: give a file", path);
	else
		code = log_read_table(rows, path, in, err);
	(void)gzclose(in);
	return code;
}

int findings_from_step_log(struct findings *out, const char *path, struct error *err)
{
	struct log_rows rows = {0};
	struct log_told told = {.out = out, .path = path, .err = err, .rows = &rows};
	char found[PATH_MAX];
	struct stat st;
	int code = 0;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		code = log_find_in_folder(path, found, err);
		told.path = found;
	}
	if (!code)
		code = log_read_file(&rows, out, told.path, err);
	if (!code)
		code = log_conclude(&told);
	free(told.times.step);
	free(told.scratch);
	free(rows.of);
	return code;
}
