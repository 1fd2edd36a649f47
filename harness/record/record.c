/* A run's folder: one line per repetition, appended and synced, so that a kill loses at most the repetition in flight. */
#include "harness/record/record.h"

#include "harness/base/array.h"
#include "harness/base/buffer.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/units.h"
#include "harness/config/conditions.h"
#include "harness/record/ceilings.h"
#include "harness/record/config_json.h"
#include "harness/record/fields.h"
#include "harness/record/measurement.h"
#include "harness/record/trace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define POINTS_FILE "points.jsonl"
#define POINTS_SCHEMA "mlbench.points/1"

enum { REAL_DIGITS = 15 };
static const size_t POINTS_LIMIT_BYTES = (size_t)8 << 30;

/* --- lines other than repetitions, as JSON and back ------------------------------------------- */

static const struct field product_fields[] = {
	FIELD(step_product, name, FIELD_TEXT),
	FIELD(step_product, m, FIELD_UINT32),
	FIELD(step_product, n, FIELD_UINT32),
	FIELD(step_product, k, FIELD_UINT32),
	FIELD(step_product, count, FIELD_UINT32),
	FIELD(step_product, weights, FIELD_BOOLEAN),
	FIELD(step_product, first, FIELD_BOOLEAN),
};

/* Results of older versions have no products. */
static const struct field step_fields[] = {
	FIELD(step_info, backend, FIELD_TEXT),
	FIELD(step_info, emulated, FIELD_BOOLEAN),
	FIELD(step_info, model, FIELD_TEXT),
	FIELD(step_info, description, FIELD_TEXT),
	FIELD_ENTRIES(step_info, products, product_count, FIELD_LIST_IF_ANY, product_fields),
};

static const struct field limit_fields[] = {
	FIELD(stage_limit, stage, FIELD_TEXT),
	FIELD(stage_limit, capacity, FIELD_REAL),
	FIELD(stage_limit, how, FIELD_TEXT),
	FIELD(stage_limit, settings, FIELD_TEXT),
	FIELD_ROLE(stage_limit, stage),
};

static const struct field case_fields[] = {
	FIELD(record_case, created, FIELD_TEXT),
	FIELD(record_case, complaint, FIELD_TEXT),
	FIELD(record_case, rate, FIELD_REAL),
	FIELD(record_case, low, FIELD_REAL),
	FIELD(record_case, high, FIELD_REAL),
	FIELD(record_case, stage, FIELD_TEXT),
	FIELD(record_case, resource, FIELD_TEXT),
	FIELD(record_case, confidence, FIELD_REAL),
	FIELD(record_case, changed, FIELD_TEXT),
};

static const struct field record_fields[] = {
	FIELD(record, name, FIELD_TEXT),
	FIELD(record, started, FIELD_REAL),
	FIELD(record, config_hash, FIELD_TEXT),
	FIELD(record, cores, FIELD_UINT32),
};

static json_t *fact_to_json(const struct fact *fact)
{
	if (fact->kind == FACT_NUMBER)
		return fields_number(fact->number);
	json_t *text = fields_text(fact->text ? fact->text : "");
	if (fact->kind == FACT_TEXT)
		return text;
	return json_pack("{s:o}", "missing", text);
}

json_t *record_environment_to_json(const struct fact_list *environment)
{
	json_t *root = json_object();
	int bad = root ? 0 : -ENOMEM;
	for (size_t i = 0; i < environment->count && !bad; i++) {
		const struct fact *fact = &environment->facts[i];
		json_t *group = json_object_get(root, fact->group);
		if (!group) {
			group = json_object();
			bad = json_object_set_new(root, fact->group, group);
		}
		if (!bad)
			bad = json_object_set_new(group, fact->name, fact_to_json(fact));
	}
	return fields_whole(root, bad);
}

json_t *record_units_to_json(const struct fact_list *environment)
{
	json_t *units = json_object();
	int bad = units ? 0 : -ENOMEM;
	for (size_t i = 0; i < environment->count && !bad; i++) {
		const struct fact *fact = &environment->facts[i];
		char name[CONFIG_NAME_BYTES];
		(void)snprintf(name, sizeof name, "%s.%s", fact->group, fact->name);
		if (fact->kind == FACT_NUMBER && fact->unit)
			bad = json_object_set_new(units, name, json_string(fact->unit));
	}
	return fields_whole(units, bad);
}

static void fact_from_json(struct fact_list *list, const char *group, const char *name,
	const json_t *value, const json_t *units)
{
	char dotted[CONFIG_NAME_BYTES];
	(void)snprintf(dotted, sizeof dotted, "%s.%s", group, name);
	const char *why = json_string_value(json_object_get(value, "missing"));
	if (json_is_number(value))
		fact_number(list, group, name, json_number_value(value),
			json_string_value(json_object_get(units, dotted)));
	else if (json_is_string(value))
		fact_text(list, group, name, "%s", json_string_value(value));
	else
		fact_missing(list, group, name, "%s", why ? why : "not known");
}

void record_environment_from_json(struct fact_list *list, json_t *root, const json_t *units)
{
	const char *group;
	const char *name;
	json_t *facts;
	json_t *value;
	json_object_foreach(root, group, facts) json_object_foreach(facts, name, value)
		fact_from_json(list, group, name, value, units);
}

json_t *record_step_to_json(const struct step_info *step)
{
	json_t *object = json_object();
	int bad = fields_encode(object, step_fields, COUNT(step_fields), step);
	if (step->reference[0])
		bad |= json_object_set_new(object, "reference", fields_text(step->reference));
	json_t *flops =
		step->flops_per_sample > 0 ? json_real(step->flops_per_sample) : json_null();
	bad |= json_object_set_new(object, "flops_per_sample", flops);
	return fields_whole(object, bad);
}

static int step_from_json(struct step_info *step, const json_t *object, struct error *err)
{
	const double flops = fields_real(json_object_get(object, "flops_per_sample"));
	step->flops_per_sample = isnan(flops) ? 0 : flops;
	const char *reference = json_string_value(json_object_get(object, "reference"));
	(void)snprintf(step->reference, sizeof step->reference, "%s", reference ? reference : "");
	return fields_decode(object, step_fields, COUNT(step_fields), step, err);
}

json_t *record_case_to_json(const struct record_case *of)
{
	return fields_object(case_fields, COUNT(case_fields), of);
}

static json_t *resolved_to_json(const struct config *config)
{
	char *text = config_dump(config);
	json_t *value = text ? json_string(text) : NULL;
	free(text);
	return value;
}

static json_t *record_header_to_json(const struct record *record)
{
	json_t *object = json_object();
	int bad = json_object_set_new(object, "schema", json_string(POINTS_SCHEMA));
	bad |= fields_encode(object, record_fields, COUNT(record_fields), record);
	bad |= json_object_set_new(object, "version", json_string(MLBENCH_VERSION));
	if (record->command)
		bad |= json_object_set_new(object, "command", json_string(record->command));
	bad |= json_object_set_new(object, "points", json_integer((json_int_t)record->grid.points));
	bad |= json_object_set_new(object, "resolved", resolved_to_json(&record->config));
	bad |= json_object_set_new(object, "step", record_step_to_json(&record->step));
	bad |= json_object_set_new(object, "config", config_to_json(&record->config));
	bad |= json_object_set_new(
		object, "environment", record_environment_to_json(&record->environment));
	bad |= json_object_set_new(
		object, "environment_units", record_units_to_json(&record->environment));
	if (record->of_case.known)
		bad |= json_object_set_new(object, "case", record_case_to_json(&record->of_case));
	if (record->has_ceilings)
		bad |= json_object_set_new(
			object, "ceilings", ceilings_to_json(&record->ceilings, record->started));
	return fields_whole(object, bad);
}

static int refuse_schema(const json_t *header, struct error *err)
{
	const char *schema = json_string_value(json_object_get(header, "schema"));
	if (!schema)
		return error_set(err, -EINVAL, "not a result of mlbench: 'schema' is missing");
	return strcmp(schema, POINTS_SCHEMA) == 0
		       ? 0
		       : error_set(err, -EINVAL, "schema is '%s', expected '%s'", schema,
				 POINTS_SCHEMA);
}

/* The resolved file reads back to the same configuration; keys that it does not have yet are at
 * their defaults. */
static int config_from_header(struct record *record, const json_t *header, struct error *err)
{
	const char *text = json_string_value(json_object_get(header, "resolved"));
	config_init(&record->config);
	if (!text)
		return error_set(err, -EINVAL, "the configuration ('resolved') is missing");
	char *now = older_config(text);
	const int code = now ? config_read_text(&record->config, "resolved", now, strlen(now), err)
			     : error_set(err, -ENOMEM, "out of memory for a result");
	free(now);
	return code;
}

static int command_from_header(struct record *record, const json_t *header, struct error *err)
{
	const char *text = json_string_value(json_object_get(header, "command"));
	record->command = text ? strdup(text) : NULL;
	return text && !record->command ? error_set(err, -ENOMEM, "out of memory for a result") : 0;
}

/* Those that cannot be read are as if they were not there: the measurements stand without them. */
static void ceilings_from_header(struct record *record, const json_t *header)
{
	const json_t *object = json_object_get(header, "ceilings");
	record->has_ceilings = object && ceilings_from_json(&record->ceilings, object, NULL) == 0;
}

/* Nor would they without this. */
static void case_from_header(struct record *record, const json_t *header)
{
	const json_t *object = json_object_get(header, "case");
	record->of_case.known = object && fields_decode(object, case_fields, COUNT(case_fields),
						  &record->of_case, NULL) == 0;
}

/* Fills name, started, config, config_hash, cores, environment, ceilings, step, grid; the record
 * keeps header. */
static int record_header_from_json(struct record *record, json_t *header, struct error *err)
{
	record->header = json_incref(header);
	int code = refuse_schema(header, err);
	if (!code)
		code = fields_decode(header, record_fields, COUNT(record_fields), record, err);
	if (!code)
		code = command_from_header(record, header, err);
	if (!code)
		code = config_from_header(record, header, err);
	if (!code)
		code = step_from_json(&record->step, json_object_get(header, "step"), err);
	if (!code)
		code = config_grid_open(&record->config, &record->grid, err);
	if (!code)
		ceilings_from_header(record, header);
	if (!code)
		case_from_header(record, header);
	if (!code)
		record_environment_from_json(&record->environment,
			json_object_get(header, "environment"),
			json_object_get(header, "environment_units"));
	return code;
}

static json_t *record_limit_to_json(const struct stage_limit *limit)
{
	json_t *object = json_object();
	int bad = json_object_set_new(object, "kind", json_string("limit"));
	bad |= fields_encode(object, limit_fields, COUNT(limit_fields), limit);
	return fields_whole(object, bad);
}

static int record_limit_from_json(struct record *record, const json_t *object, struct error *err)
{
	if (record->limit_count == RECORD_LIMITS_MAX)
		return error_set(err, -EINVAL, "more limits than this version knows");
	struct stage_limit *limit = &record->limits[record->limit_count++];
	return fields_decode(object, limit_fields, COUNT(limit_fields), limit, err);
}

static json_t *record_read_block_to_json(const struct read_block *block)
{
	json_t *object = json_object();
	/* A version that knows reads alone only passes over the others. */
	int bad = json_object_set_new(
		object, "kind", json_string(block->stage[0] ? "stage_alone" : "reads_alone"));
	bad |= fields_encode(object, read_block_fields, READ_BLOCK_FIELDS, block);
	return fields_whole(object, bad);
}

static int record_read_block_from_json(
	struct record *record, const json_t *object, struct error *err)
{
	if (record->read_block_count == RECORD_READ_BLOCKS_MAX)
		return error_set(
			err, -EINVAL, "more blocks of stages alone than this version knows");
	struct read_block *block = &record->read_blocks[record->read_block_count++];
	return fields_decode(object, read_block_fields, READ_BLOCK_FIELDS, block, err);
}

static json_t *record_end_to_json(const struct record *record)
{
	return json_pack("{s:s, s:f, s:b}", "kind", "end", "finished", record->finished,
		"interrupted", (int)record->interrupted);
}

static void record_end_from_json(struct record *record, const json_t *object)
{
	const double finished = fields_real(json_object_get(object, "finished"));
	record->finished = isnan(finished) ? 0 : finished;
	record->interrupted = json_is_true(json_object_get(object, "interrupted"));
}

/* --- the file of points ----------------------------------------------------------------------- */

static char *points_path(const struct record *record, struct error *err)
{
	char *path = files_join(record->folder, POINTS_FILE);
	if (!path)
		(void)error_set(err, -ENOMEM, "out of memory");
	return path;
}

/* Held until release, so that two runs cannot write to one folder. */
static int lock_points(struct record *record, const char *path, int flags, struct error *err)
{
	const int fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC | flags, 0666);
	if (fd < 0)
		return error_set_errno(err, errno, "cannot write '%s'", path);
	if (files_lock(fd, record->folder)) {
		(void)close(fd);
		return error_set(err, -EBUSY, "another run is writing to '%s'", record->folder);
	}
	record->lock = fd;
	record->locked = true;
	return 0;
}

static int append_text(struct record *record, const char *text, struct error *err)
{
	char *path = points_path(record, err);
	if (!path)
		return -ENOMEM;
	int code = 0;
	if (record->torn && truncate(path, (off_t)record->whole_bytes) != 0)
		code = error_set_errno(
			err, errno, "cannot remove the incomplete last line of '%s'", path);
	if (!code) {
		const size_t size = strlen(text);
		code = files_append(path, text, size, err);
		record->torn = code != 0; /* part of it may have been written */
		if (!code)
			record->whole_bytes += size;
	}
	free(path);
	return code;
}

/* Takes line; NULL without memory. */
static char *line_text(json_t *line)
{
	char *text =
		line ? json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(REAL_DIGITS)) : NULL;
	json_decref(line);
	return text;
}

/* text may be NULL: there was no memory for it. */
static int append_line(struct record *record, const char *text, struct error *err)
{
	struct buffer out = {.failed = !text};
	if (text) {
		buffer_text(&out, text);
		buffer_text(&out, "\n");
	}
	const int code = out.failed ? error_set(err, -ENOMEM, "out of memory for a line of results")
				    : append_text(record, out.data, err);
	buffer_release(&out);
	return code;
}

static int append_json(struct record *record, json_t *line, struct error *err)
{
	char *text = line_text(line);
	const int code = append_line(record, text, err);
	free(text);
	return code;
}

int record_create(struct record *record, struct error *err)
{
	int code = files_make_folder(record->folder, err);
	if (code)
		return code;
	char *path = points_path(record, err);
	if (!path)
		return -ENOMEM;
	code = lock_points(record, path, O_CREAT, err);
	/* Whoever made it, it is that run's which has its lock first.  One without a complete line was left by a kill. */
	if (code == -EBUSY || (!code && files_has_line(path)))
		code = error_set(err, -EEXIST,
			"'%s' already holds a run; continue it with --resume, or name another folder",
			record->folder);
	else if (!code && ftruncate(record->lock, 0) != 0)
		code = error_set_errno(err, errno, "cannot write '%s'", path);
	if (!code) {
		code = append_json(record, record_header_to_json(record), err);
		if (code)
			(void)unlink(
				path); /* without a header it is no run, but would be taken for the newest */
	}
	free(path);
	return code;
}

int record_settle_repeats(struct record *record, uint32_t repeats, struct error *err)
{
	char number[UNITS_BYTES];
	char *text = NULL;
	size_t size = 0;
	struct buffer out = {0};
	(void)snprintf(number, sizeof number, "%u", repeats);
	int code = config_set_key(&record->config, KEY_MEASURE_REPEATS, number, err);
	if (code)
		return code;
	config_hash(&record->config, record->config_hash);
	char *path = points_path(record, err);
	char *header = line_text(record_header_to_json(record));
	code = path ? files_read(path, POINTS_LIMIT_BYTES, &text, &size, err) : -ENOMEM;
	const char *rest = code ? NULL : memchr(text, '\n', size);
	if (rest && header) {
		buffer_text(&out, header);
		buffer_add(&out, rest, size - (size_t)(rest - text));
	}
	if (!code && (out.failed || !out.data))
		code = error_set(err, -ENOMEM, "out of memory for '%s'", path);
	if (!code)
		code = files_write_atomic(path, out.data, out.size, err);
	if (!code)
		record->whole_bytes = out.size;
	buffer_release(&out);
	free(text);
	free(header);
	free(path);
	return code;
}

static struct record_entry *find_entry(const struct record *record, uint32_t point, uint32_t repeat)
{
	for (size_t i = 0; i < record->entry_count; i++)
		if (record->entries[i].point == point && record->entries[i].repeat == repeat)
			return &record->entries[i];
	return NULL;
}

/* A fresh entry, or the earlier one of the same (point, repeat), emptied; NULL without memory. */
static struct record_entry *make_entry(struct record *record, uint32_t point, uint32_t repeat)
{
	struct record_entry *same = find_entry(record, point, repeat);
	if (same) {
		free(same->line);
		same->line = NULL;
		return same;
	}
	if (record->entry_count == record->entry_room) {
		const size_t room = record->entry_room ? 2 * record->entry_room : 64;
		struct record_entry *larger = realloc(record->entries, room * sizeof(*larger));
		if (!larger)
			return NULL;
		record->entries = larger;
		record->entry_room = room;
	}
	return &record->entries[record->entry_count++];
}

static bool make_tallies(struct record *record, size_t points)
{
	if (points <= record->tally_count)
		return true;
	struct record_tally *larger = realloc(record->tallies, points * sizeof(*larger));
	if (!larger)
		return false;
	memset(larger + record->tally_count, 0, (points - record->tally_count) * sizeof *larger);
	record->tallies = larger;
	record->tally_count = points;
	return true;
}

/* Takes line. */
static int keep_entry(
	struct record *record, const struct measurement *m, char *line, struct error *err)
{
	const bool room = line && make_tallies(record, (size_t)m->point + 1);
	const size_t known = record->entry_count;
	struct record_entry *entry = room ? make_entry(record, m->point, m->repeat) : NULL;
	if (!entry) {
		free(line);
		return error_set(err, -ENOMEM, "out of memory for results");
	}
	size_t *const with_status = record->tallies[m->point].with_status;
	with_status[m->status]++;
	if (record->entry_count == known)
		with_status[entry->status]--;
	*entry = (struct record_entry){.point = m->point,
		.repeat = m->repeat,
		.status = m->status,
		.ended = m->started + m->wall_seconds,
		.throughput = m->throughput,
		.resident_before = m->resident_before,
		.line = line};
	return 0;
}

char *record_header_text(const struct record *record)
{
	return line_text(record_header_to_json(record));
}

char *record_repetition_text(const struct measurement *measurement)
{
	return line_text(measurement_to_json(measurement));
}

int record_append(struct record *record, const struct measurement *measurement, struct error *err)
{
	char *line = record_repetition_text(measurement);
	const int saved = append_line(record, line, err);
	const int code = keep_entry(record, measurement, line, saved ? NULL : err);
	return saved ? saved : code;
}

int record_load(const struct record *record, size_t entry, struct measurement *m, struct error *err)
{
	json_error_t wrong;
	json_t *object = json_loads(record->entries[entry].line, 0, &wrong);
	if (!object) {
		*m = (struct measurement){0};
		return error_set(err, -EINVAL, "not JSON: %s", wrong.text);
	}
	const int code = measurement_from_json(m, object, err);
	if (!code && !measurement_json_has_fact(object, "reads_block"))
		m->facts = older_facts(record, m);
	else if (!code && !measurement_json_has_fact(object, "uses_codecs"))
		m->facts.uses_codecs = older_facts(record, m).uses_codecs;
	json_decref(object);
	return code;
}

int record_append_limit(struct record *record, const struct stage_limit *limit, struct error *err)
{
	if (record->limit_count == RECORD_LIMITS_MAX)
		return error_set(err, -ENOSPC, "more than %d stage limits", RECORD_LIMITS_MAX);
	record->limits[record->limit_count++] = *limit;
	return append_json(record, record_limit_to_json(limit), err);
}

int record_append_read_block(
	struct record *record, const struct read_block *block, struct error *err)
{
	if (record->read_block_count == RECORD_READ_BLOCKS_MAX)
		return error_set(err, -ENOSPC, "more than %d blocks of stages alone",
			RECORD_READ_BLOCKS_MAX);
	record->read_blocks[record->read_block_count++] = *block;
	return append_json(record, record_read_block_to_json(block), err);
}

enum point_status record_point_status(const struct record *record, size_t point)
{
	static const struct record_tally none;
	return point_status_of(
		(point < record->tally_count ? &record->tallies[point] : &none)->with_status);
}

bool record_counts(const struct record *record, const struct record_entry *entry)
{
	return point_counts(record_point_status(record, entry->point), entry->status);
}

/* Repetitions of each point: as set, or as many as a diagnosis came to; of a sequential sweep, at most. */
static size_t record_repeats(const struct record *record)
{
	size_t repeats = (size_t)config_integer(&record->config, KEY_MEASURE_REPEATS);
	for (size_t i = 0; i < record->entry_count; i++)
		if (record->entries[i].repeat >= repeats)
			repeats = (size_t)record->entries[i].repeat + 1;
	return repeats;
}

bool record_has(const struct record *record, uint32_t point, uint32_t repeat)
{
	const struct record_entry *entry = find_entry(record, point, repeat);
	return entry && entry->status != MEASUREMENT_FAILED &&
	       entry->status != MEASUREMENT_INTERRUPTED;
}

size_t record_failed_count(const struct record *record)
{
	size_t failed = 0;
	for (size_t i = 0; i < record->entry_count; i++)
		failed += record->entries[i].status == MEASUREMENT_FAILED;
	return failed;
}

static int read_repetition(struct record *record, const json_t *object, const char *text,
	size_t size, struct error *err)
{
	struct measurement *m = calloc(1, sizeof *m);
	if (!m)
		return error_set(err, -ENOMEM, "out of memory for results");
	int code = measurement_from_json(m, object, err);
	if (!code && m->point >= record->grid.points)
		code = error_set(err, -EINVAL, "point %u is not in this sweep", m->point);
	if (!code)
		code = keep_entry(record, m, strndup(text, size), err);
	measurement_release(m);
	free(m);
	return code;
}

static int read_record_object(
	struct record *record, json_t *object, const char *text, size_t size, struct error *err)
{
	if (!record->header)
		return record_header_from_json(record, object, err);
	const char *kind = json_string_value(json_object_get(object, "kind"));
	if (kind && strcmp(kind, "repetition") == 0) {
		record->ended = false;
		return read_repetition(record, object, text, size, err);
	}
	if (kind && strcmp(kind, "limit") == 0)
		return record_limit_from_json(record, object, err);
	if (kind && (strcmp(kind, "reads_alone") == 0 || strcmp(kind, "stage_alone") == 0))
		return record_read_block_from_json(record, object, err);
	if (kind && strcmp(kind, "end") == 0) {
		record->ended = true;
		record_end_from_json(record, object);
	}
	return 0; /* a kind of a later version */
}

static int read_record_line(struct record *record, const char *text, size_t size, struct error *err)
{
	json_error_t wrong;
	json_t *object = json_loadb(text, size, 0, &wrong);
	if (!object)
		return error_set(err, -EINVAL, "not JSON: %s", wrong.text);
	const int code = read_record_object(record, object, text, size, err);
	json_decref(object);
	return code;
}

static int read_record_lines(
	struct record *record, const char *path, const char *text, size_t size, struct error *err)
{
	size_t at = 0;
	for (size_t number = 1; at < size; number++) {
		const char *newline = memchr(text + at, '\n', size - at);
		if (!newline)
			break;
		const size_t length = (size_t)(newline - (text + at));
		const int code = read_record_line(record, text + at, length, err);
		if (code)
			return error_prefix(err, code, "%s:%zu", path, number);
		at += length + 1;
	}
	record->whole_bytes = at;
	record->torn = at < size;
	if (!record->header)
		return error_set(err, -EINVAL,
			"'%s' has no complete line: nothing was measured; --out with this folder measures into it",
			path);
	return 0;
}

bool record_is_sequential(const struct config *config)
{
	return config->axis_count > 0 &&
	       config_integer(config, KEY_SWEEP_MODE) == SWEEP_MODE_SEQUENTIAL;
}

/* Without an end line (a kill): when the last thing known happened. */
static void settle_end(struct record *record)
{
	size_t measured = 0;
	double last = record->started;
	for (size_t i = 0; i < record->entry_count; i++) {
		const struct record_entry *entry = &record->entries[i];
		last = entry->ended > last ? entry->ended : last;
		measured += entry->status != MEASUREMENT_INTERRUPTED;
	}
	const size_t repeats = (size_t)config_integer(&record->config, KEY_MEASURE_REPEATS);
	if (!record_is_sequential(&record->config))
		record->interrupted = measured < repeats * record->grid.points;
	if (record->finished < last)
		record->finished = last;
}

int record_read(
	struct record *record, const char *path, const char *text, size_t size, struct error *err)
{
	const int code = read_record_lines(record, path, text, size, err);
	if (code)
		return code;
	if (record_is_sequential(&record->config) && !record->ended)
		record->interrupted = true;
	settle_end(record);
	return 0;
}

int record_open(struct record *record, const char *folder, struct error *err)
{
	*record = (struct record){0};
	int code = record_find_newest(folder, &record->folder, err);
	if (code)
		return code;
	char *path = points_path(record, err);
	char *text = NULL;
	size_t size = 0;
	code = path ? files_read(path, POINTS_LIMIT_BYTES, &text, &size, err) : -ENOMEM;
	if (!code)
		code = record_read(record, path, text, size, err);
	free(text);
	free(path);
	return code;
}

int record_end(struct record *record, struct error *err)
{
	const bool ended = record->finished > 0;
	settle_end(record);
	/* To what is saved of it, so that a report that is made again says the same. */
	if (!ended)
		record->finished = ceil(clock_utc_seconds() * 1e3) / 1e3;
	return append_json(record, record_end_to_json(record), err);
}

char *record_end_line(const struct record *record)
{
	return line_text(record_end_to_json(record));
}

void record_release(struct record *record)
{
	for (size_t i = 0; i < record->entry_count; i++)
		free(record->entries[i].line);
	free(record->entries);
	free(record->tallies);
	free(record->folder);
	free(record->command);
	config_grid_close(&record->grid);
	config_release(&record->config);
	fact_list_release(&record->environment);
	json_decref(record->header);
	if (record->locked)
		(void)close(record->lock);
	*record = (struct record){0};
}

/* --- traces/p00012-r1.json -------------------------------------------------------------------- */

/* Each says when its repetition ended, so that one left over from an attempt that was not kept is not taken for another's. */
enum { TRACES_LIMIT_BYTES = 16 << 20, TRACES_NAME_BYTES = 48 };
static const double SAME_MOMENT_S = 1e-3;

char *record_timeline_path(const struct record *record, uint32_t point, bool compress)
{
	char name[48];
	const char *end = compress ? ".json.gz" : ".json";
	if (record->config.axis_count == 0)
		(void)snprintf(name, sizeof name, "trace%s", end);
	else
		(void)snprintf(name, sizeof name, "trace-p%05" PRIu32 "%s", point, end);
	return files_join(record->folder, name);
}

char *record_rank_folder(const struct record *record, unsigned rank)
{
	char name[TRACES_NAME_BYTES];
	(void)snprintf(name, sizeof name, RECORD_RANKS_FOLDER "/%04u", rank);
	return files_join(record->folder, name);
}

void record_add_command(const struct record *record, const char *words, struct buffer *out)
{
	static const char ranks[] = "/" RECORD_RANKS_FOLDER "/";
	enum { DIGITS = 4 };
	const size_t size = strlen(record->folder);
	char *const folder = strdup(record->folder);
	char *const end = folder && size > sizeof ranks - 1 + DIGITS
				  ? folder + size - DIGITS - (sizeof ranks - 1)
				  : NULL;
	if (end && strncmp(end, ranks, sizeof ranks - 1) == 0 &&
		strspn(end + sizeof ranks - 1, "0123456789") == DIGITS)
		*end = '\0';
	conditions_launcher(&record->config, out);
	buffer_format(out, "mlbench %s ",
		words                           ? words
		: record->config.axis_count > 0 ? "sweep --resume"
						: "run --resume");
	shell_word(folder ? folder : record->folder, out);
	free(folder);
}

char *record_traces_path(const struct record *record, uint32_t point, uint32_t repeat)
{
	char name[TRACES_NAME_BYTES];
	(void)snprintf(name, sizeof name, RECORD_TRACES_FOLDER "/p%05" PRIu32 "-r%" PRIu32 ".json",
		point, repeat);
	return files_join(record->folder, name);
}

static int make_traces_folder(const struct record *record, struct error *err)
{
	char *folder = files_join(record->folder, RECORD_TRACES_FOLDER);
	if (!folder)
		return error_set(err, -ENOMEM, "out of memory");
	const int code = files_make_folder(folder, err);
	free(folder);
	return code;
}

int record_save_traces(const struct record *record, const struct traces *traces,
	const struct measurement *m, struct error *err)
{
	int code = make_traces_folder(record, err);
	if (code)
		return code;
	struct buffer text = {0};
	char *path = record_traces_path(record, m->point, m->repeat);
	struct traces named = *traces;
	named.point = m->point;
	named.repeat = m->repeat;
	traces_to_json(&named, m->started + m->wall_seconds, &text);
	if (!path || text.failed)
		code = error_set(err, -ENOMEM, "out of memory for traces");
	else
		code = files_write_atomic(path, text.data, text.size, err);
	buffer_release(&text);
	free(path);
	return code;
}

static int parse_traces_file(struct traces *traces, const struct record_entry *entry,
	const char *text, size_t size, struct error *err)
{
	double ended = NAN;
	json_error_t wrong;
	json_t *object = json_loadb(text, size, 0, &wrong);
	if (!object)
		return error_set(err, -EINVAL, "not JSON: %s", wrong.text);
	const int code = traces_from_json(traces, &ended, object, err);
	json_decref(object);
	if (code)
		return code;
	if (traces->point != entry->point || traces->repeat != entry->repeat)
		return error_set(err, -EINVAL, "it belongs to point %" PRIu32 ", repeat %" PRIu32,
			traces->point, traces->repeat);
	if (!(fabs(ended - entry->ended) <= SAME_MOMENT_S))
		return error_set(err, -ENOENT, "it belongs to another attempt at this repetition");
	return 0;
}

static int load_traces_file(struct traces *traces, const struct record_entry *entry,
	const char *path, struct error *err)
{
	char *text = NULL;
	size_t size = 0;
	if (access(path, F_OK) != 0)
		return error_set(err, -ENOENT, "no traces were saved: '%s' does not exist", path);
	int code = files_read(path, TRACES_LIMIT_BYTES, &text, &size, err);
	if (code)
		return code;
	code = parse_traces_file(traces, entry, text, size, err);
	free(text);
	return code ? error_prefix(err, code, "%s", path) : 0;
}

int record_load_traces(
	const struct record *record, size_t entry, struct traces *traces, struct error *err)
{
	const struct record_entry *of = &record->entries[entry];
	char *path = record_traces_path(record, of->point, of->repeat);
	*traces = (struct traces){0};
	const int code = path ? load_traces_file(traces, of, path, err)
			      : error_set(err, -ENOMEM, "out of memory");
	free(path);
	if (code)
		traces_release(traces);
	return code;
}

/* --- what a killed run leaves ----------------------------------------------------------------- */

/* Files half written, and recordings of a repetition that has no line. */
enum { NAME_ROOM = 48 };

static bool is_lone_trace(const struct record *record, const char *name)
{
	char same[NAME_ROOM];
	uint32_t point;
	uint32_t repeat;
	if (sscanf(name, "p%9" SCNu32 "-r%9" SCNu32 ".json", &point, &repeat) != 2)
		return false;
	(void)snprintf(same, sizeof same, "p%05" PRIu32 "-r%" PRIu32 ".json", point, repeat);
	return strcmp(name, same) == 0 && !find_entry(record, point, repeat);
}

/* A timeline is of the point's first repetition. */
static bool is_lone_timeline(const struct record *record, const char *name)
{
	char same[NAME_ROOM];
	uint32_t point = 0;
	const size_t length = strlen(name);
	const bool packed = length > 3 && strcmp(name + length - 3, ".gz") == 0;
	if (sscanf(name, "trace-p%9" SCNu32 ".json", &point) == 1)
		(void)snprintf(same, sizeof same, "trace-p%05" PRIu32 ".json%s", point,
			packed ? ".gz" : "");
	else
		(void)snprintf(same, sizeof same, "trace.json%s", packed ? ".gz" : "");
	return strcmp(name, same) == 0 && !find_entry(record, point, 0);
}

static void remove_lone(const struct record *record, const char *folder,
	bool (*is_lone)(const struct record *record, const char *name))
{
	DIR *dir = opendir(folder);
	for (const struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir))
		if (is_lone(record, entry->d_name))
			(void)unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		(void)closedir(dir);
}

/* Of a record that this process has for writing. */
static void record_remove_litter(const struct record *record)
{
	char *traces = files_join(record->folder, RECORD_TRACES_FOLDER);
	files_remove_left(record->folder);
	remove_lone(record, record->folder, is_lone_timeline);
	if (traces) {
		files_remove_left(traces);
		remove_lone(record, traces, is_lone_trace);
	}
	free(traces);
}

int record_continue(struct record *record, struct error *err)
{
	char *path = points_path(record, err);
	if (!path)
		return -ENOMEM;
	const int code = lock_points(record, path, 0, err);
	free(path);
	if (!code)
		record_remove_litter(record);
	record->finished = 0;
	record->interrupted = false;
	return code;
}

/* --- which folder is meant: a run's own, a file in it, or the newest run of a benchmark ------- */

bool record_is_of_lab(const struct record *record)
{
	for (size_t i = 0; i < record->entry_count; i++)
		if (strstr(record->entries[i].line, RECORD_LAB_NOTE))
			return true;
	return false;
}

bool record_is_run(const char *folder)
{
	char *points = files_join(folder, POINTS_FILE);
	const bool there = points && files_has_line(points);
	free(points);
	return there;
}

static int order_newest(const void *left, const void *right)
{
	return -strcmp(*(char *const *)left, *(char *const *)right);
}

void record_runs_free(char **folders, size_t count)
{
	for (size_t i = 0; folders && i < count; i++)
		free(folders[i]);
	free(folders);
}

/* Takes path.  0 or -ENOMEM. */
static int add_run_folder(char ***folders, size_t *count, char *path)
{
	char **more = path ? realloc(*folders, (*count + 1) * sizeof **folders) : NULL;
	if (!more) {
		free(path);
		return -ENOMEM;
	}
	*folders = more;
	more[(*count)++] = path;
	return 0;
}

/* Folders are named by UTC time, so that the last in alphabetical order is the newest. */
int record_find_runs(const char *root, char ***folders, size_t *count, struct error *err)
{
	DIR *dir = opendir(root);
	int code = 0;
	*folders = NULL;
	*count = 0;
	if (!dir)
		return error_set_errno(err, errno, "cannot open result '%s'", root);
	for (const struct dirent *entry = readdir(dir); entry && !code; entry = readdir(dir)) {
		if (entry->d_name[0] == '.' || entry->d_type == DT_REG) /* there may be a million */
			continue;
		char *path = files_join(root, entry->d_name);
		if (path && !record_is_run(path))
			free(path);
		else
			code = add_run_folder(folders, count, path);
	}
	(void)closedir(dir);
	if (*count > 0)
		qsort(*folders, *count, sizeof **folders, order_newest);
	if (!code && *count > 0)
		return 0;
	record_runs_free(*folders, *count);
	*folders = NULL;
	*count = 0;
	return code ? error_set(err, code, "out of memory")
		    : error_set(err, -ENOENT, "no run in '%s' (no points.jsonl)", root);
}

/* Runs that were measured in turns lie side by side, and none of them is newer than another: meant is the twin of a case among
 * its variants, and where there is none the user has to say which. */
static bool is_side_by_side(const char *folder)
{
	char *blocks = files_join(folder, RECORD_BLOCKS_FILE);
	const bool is = blocks && access(blocks, F_OK) == 0;
	free(blocks);
	return is;
}

static int pick_side_by_side(
	const char *root, char *const *folders, size_t count, char **folder, struct error *err)
{
	enum { NAMES_MAX = 8 };
	char *twin = files_join(root, RECORD_TWIN);
	struct buffer names = {0};
	int code = twin ? 0 : error_set(err, -ENOMEM, "out of memory");
	if (!code && record_is_run(twin)) {
		*folder = twin;
		return 0;
	}
	for (size_t i = 0; i < count && i < NAMES_MAX; i++)
		buffer_format(&names, "%s%s", i > 0 ? ", " : "",
			strrchr(folders[count - 1 - i], '/') + 1);
	if (count > NAMES_MAX)
		buffer_format(&names, ", ...");
	if (!code)
		code = error_set(err, -EINVAL,
			"'%s' holds %zu results side by side: name one of them, as '%s' (%s)", root,
			count, folders[count - 1], names.data ? names.data : "");
	buffer_release(&names);
	free(twin);
	return code;
}

/* The newest folder in root that holds results side by side; NULL: there is none, or no memory. */
static char *newest_side_by_side(const char *root)
{
	char *newest = NULL;
	DIR *dir = opendir(root);
	for (const struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
		char *path = entry->d_name[0] == '.' || entry->d_type == DT_REG
				     ? NULL
				     : files_join(root, entry->d_name);
		if (!path || !is_side_by_side(path) || (newest && strcmp(path, newest) < 0)) {
			free(path);
			continue;
		}
		free(newest);
		newest = path;
	}
	if (dir)
		(void)closedir(dir);
	return newest;
}

static int newest_below(const char *root, char **folder, struct error *err)
{
	char **folders = NULL;
	size_t count;
	char *session = is_side_by_side(root) ? strdup(root) : NULL;
	int code = record_find_runs(root, &folders, &count, err);
	if (code == -ENOENT && !session && (session = newest_side_by_side(root)) != NULL)
		code = record_find_runs(session, &folders, &count, err);
	if (!code && folders && session)
		code = pick_side_by_side(session, folders, count, folder, err);
	else if (!code && folders) {
		*folder = folders[0];
		folders[0] = NULL;
	}
	record_runs_free(folders, count);
	free(session);
	return code;
}

static char *parent_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

int record_find_newest(const char *root, char **folder, struct error *err)
{
	struct stat st;
	*folder = NULL;
	if (stat(root, &st) != 0)
		return error_set_errno(err, errno, "cannot open result '%s'", root);
	char *path = S_ISDIR(st.st_mode) ? strdup(root) : parent_folder(root);
	if (!path)
		return error_set(err, -ENOMEM, "out of memory");
	for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
		path[n - 1] = '\0';
	char *points = files_join(path, POINTS_FILE);
	const bool there = points && access(points, F_OK) == 0;
	free(points);
	if (there) {
		*folder = path;
		return 0;
	}
	const int code =
		S_ISDIR(st.st_mode)
			? newest_below(path, folder, err)
			: error_set(err, -ENOENT,
				  "'%s' is not a result: there is no points.jsonl beside it", root);
	free(path);
	return code;
}

void record_put_extent(const struct record *record, struct buffer *out)
{
	const size_t points = record->grid.points;
	const bool sequential = record_is_sequential(&record->config);
	const size_t repeats = sequential ? record->entry_count : record_repeats(record);
	buffer_format(out, "%zu point%s%s %zu repetition%s", points, points == 1 ? "" : "s",
		sequential ? "," : " x", repeats, repeats == 1 ? "" : "s");
}

void record_describe(const struct record *record, struct buffer *out)
{
	char when[CLOCK_UTC_BYTES];
	const size_t points = record->grid.points;
	const bool diagnosed =
		record->command && strncmp(record->command, "mlbench diagnose", 16) == 0;
	clock_format_utc(record->started, when);
	buffer_format(out, "%s: %s, ", record->folder,
		points > 1  ? "sweep"
		: diagnosed ? "diagnosis"
			    : "run");
	record_put_extent(record, out);
	buffer_format(out, ", started %s", when);
	const char *node = fact_node_name(&record->environment);
	if (node)
		buffer_format(out, " on %s", node);
}
