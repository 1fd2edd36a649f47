/* Reading and writing manifests.  The header goes through jansson; the lines of samples are read by
 * a strict parser of our own shape, in place, because there may be millions of them. */
#include "workloads/dataset/manifest.h"

#include "harness/base/files.h"
#include "harness/base/hash.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* 1,281,167 samples take about 100 MB. */
static const size_t MANIFEST_BYTES_MAX = (size_t)16 << 30;

static bool is_plain(unsigned char c)
{
	return c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '%';
}

/* A file name (or a reason) as a JSON string. */
static void add_name(struct buffer *buffer, const char *name)
{
	buffer_add(buffer, "\"", 1);
	while (*name) {
		size_t run = 0;
		while (name[run] && is_plain((unsigned char)name[run]))
			run++;
		if (run)
			buffer_add(buffer, name, run);
		name += run;
		if (*name)
			buffer_format(buffer, "%%%02X", (unsigned char)*name++);
	}
	buffer_add(buffer, "\"", 1);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* Undoes add_name's escapes in place, over [text, end); the result is NUL-terminated before end or
 * at it.  False for a broken escape or a NUL. */
static bool decode_name(char *text, const char *end)
{
	char *out = text;
	for (char *at = text; at < end; at++) {
		if (*at != '%') {
			*out++ = *at;
			continue;
		}
		if (end - at < 3 || hex_digit(at[1]) < 0 || hex_digit(at[2]) < 0)
			return false;
		*out = (char)(hex_digit(at[1]) * 16 + hex_digit(at[2]));
		if (*out++ == '\0')
			return false;
		at += 2;
	}
	*out = '\0';
	return true;
}

/* The reader's position in one line. */
struct cursor {
	char *at, *end;
	bool failed;
};

static void manifest_expect(struct cursor *cursor, char c)
{
	if (cursor->at < cursor->end && *cursor->at == c)
		cursor->at++;
	else
		cursor->failed = true;
}

static uint64_t take_number(struct cursor *cursor, uint64_t most)
{
	const char *start = cursor->at;
	uint64_t value = 0;
	for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++) {
		const uint64_t digit = (uint64_t)(*cursor->at - '0');
		if (value > (most - digit) / 10)
			cursor->failed = true;
		value = value * 10 + digit;
	}
	if (cursor->at == start)
		cursor->failed = true;
	return cursor->failed ? 0 : value;
}

/* The inside of a string; escapes stay. */
static char *take_string(struct cursor *cursor, char **end)
{
	manifest_expect(cursor, '"');
	char *start = cursor->at;
	while (cursor->at < cursor->end && *cursor->at != '"')
		cursor->at++;
	*end = cursor->at;
	manifest_expect(cursor, '"');
	return start;
}

static char *manifest_take_name(struct cursor *cursor)
{
	char *end;
	char *start = take_string(cursor, &end);
	if (cursor->failed || !decode_name(start, end))
		cursor->failed = true;
	return start;
}

static uint64_t take_hex(struct cursor *cursor)
{
	char *end;
	const char *start = take_string(cursor, &end);
	uint64_t value = 0;
	if (end - start > 16)
		cursor->failed = true;
	for (; start < end && !cursor->failed; start++) {
		if (hex_digit(*start) < 0)
			cursor->failed = true;
		value = value << 4 | (uint64_t)hex_digit(*start);
	}
	return value;
}

static void add_hex(struct buffer *buffer, uint64_t value)
{
	if (value)
		buffer_format(buffer, "\"%016" PRIx64 "\"", value);
	else
		buffer_text(buffer, "\"\"");
}

void journal_format(struct buffer *buffer, const struct journal_entry *entry)
{
	buffer_format(buffer, "[%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",", entry->id,
		entry->bytes, entry->width, entry->height);
	add_hex(buffer, entry->checksum);
	buffer_text(buffer, "]\n");
}

bool journal_parse(const char *line, const char *end, struct journal_entry *entry)
{
	struct cursor cursor = {.at = (char *)(uintptr_t)line, .end = (char *)(uintptr_t)end};
	manifest_expect(&cursor, '[');
	entry->id = take_number(&cursor, UINT64_MAX);
	manifest_expect(&cursor, ',');
	entry->bytes = take_number(&cursor, UINT64_MAX);
	manifest_expect(&cursor, ',');
	entry->width = (uint32_t)take_number(&cursor, UINT32_MAX);
	manifest_expect(&cursor, ',');
	entry->height = (uint32_t)take_number(&cursor, UINT32_MAX);
	manifest_expect(&cursor, ',');
	entry->checksum = take_hex(&cursor);
	manifest_expect(&cursor, ']');
	return !cursor.failed && cursor.at == cursor.end;
}

static void parse_sample(struct cursor *cursor, struct sample *sample)
{
	manifest_expect(cursor, '[');
	sample->path = manifest_take_name(cursor);
	manifest_expect(cursor, ',');
	sample->bytes = take_number(cursor, UINT64_MAX);
	manifest_expect(cursor, ',');
	sample->width = (uint32_t)take_number(cursor, UINT32_MAX);
	manifest_expect(cursor, ',');
	sample->height = (uint32_t)take_number(cursor, UINT32_MAX);
	manifest_expect(cursor, ',');
	sample->label = (uint32_t)take_number(cursor, UINT32_MAX);
	manifest_expect(cursor, ',');
	sample->checksum = take_hex(cursor);
	sample->format = (uint8_t)image_format_of_name(sample->path);
	if (cursor->at < cursor->end && *cursor->at == ',') {
		cursor->at++;
		sample->format = (uint8_t)take_number(cursor, IMAGE_FORMATS - 1);
	}
	manifest_expect(cursor, ']');
}

static void parse_bad(struct cursor *cursor, struct dataset_bad *bad)
{
	manifest_expect(cursor, '[');
	bad->path = manifest_take_name(cursor);
	manifest_expect(cursor, ',');
	bad->reason = manifest_take_name(cursor);
	manifest_expect(cursor, ']');
}

json_t *manifest_parse_header(
	const char *line, size_t length, const char *schema, struct error *err)
{
	json_error_t why;
	json_t *header = json_loadb(line, length, JSON_REJECT_DUPLICATES, &why);
	const char *there = json_string_value(json_object_get(header, "schema"));
	if (there && strcmp(there, schema) == 0)
		return header;
	(void)error_set(err, -EBADMSG, "its first line is not a header of %s", schema);
	json_decref(header);
	return NULL;
}

static void format_body(struct buffer *body, const struct dataset *dataset)
{
	for (size_t i = 0; i < dataset->count; i++) {
		const struct sample *sample = &dataset->samples[i];
		buffer_text(body, "[");
		add_name(body, sample->path);
		buffer_format(body, ",%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",",
			sample->bytes, sample->width, sample->height, sample->label);
		add_hex(body, sample->checksum);
		if (sample->format != image_format_of_name(sample->path))
			buffer_format(body, ",%u", sample->format);
		buffer_text(body, "]\n");
	}
	for (size_t i = 0; i < dataset->bad_count; i++) {
		buffer_text(body, "[");
		add_name(body, dataset->bad[i].path);
		buffer_text(body, ",");
		add_name(body, dataset->bad[i].reason);
		buffer_text(body, "]\n");
	}
}

static json_t *class_list(const struct dataset *dataset)
{
	json_t *classes = json_array();
	for (size_t i = 0; i < dataset->class_count; i++) {
		struct buffer name = {0};
		add_name(&name, dataset->class_names[i]);
		(void)json_array_append_new(
			classes, name.failed ? NULL : json_stringn(name.data + 1, name.size - 2));
		buffer_release(&name);
	}
	return classes;
}

/* The first line; NULL without memory. */
static char *format_header(
	const json_t *given, const struct dataset *dataset, const struct buffer *body)
{
	char hex[17];
	(void)snprintf(hex, sizeof(hex), "%016" PRIx64, hash_bytes(body->data, body->size, 0));
	json_t *header = json_object();
	(void)json_object_set_new(header, "schema", json_string(MANIFEST_SCHEMA));
	(void)json_object_update(header, (json_t *)(uintptr_t)given);
	(void)json_object_set_new(header, "count", json_integer((json_int_t)dataset->count));
	(void)json_object_set_new(header, "bad", json_integer((json_int_t)dataset->bad_count));
	(void)json_object_set_new(header, "bytes", json_integer((json_int_t)dataset->total_bytes));
	(void)json_object_set_new(header, "body", json_string(hex));
	(void)json_object_set_new(header, "classes", class_list(dataset));
	char *text = json_array_size(json_object_get(header, "classes")) == dataset->class_count
			     ? json_dumps(header, JSON_COMPACT)
			     : NULL;
	json_decref(header);
	return text;
}

int manifest_write(
	const char *path, const json_t *header, const struct dataset *dataset, struct error *err)
{
	struct buffer body = {0}, file = {0};
	buffer_text(&body, "");
	format_body(&body, dataset);
	char *first = body.failed ? NULL : format_header(header, dataset, &body);
	if (first) {
		buffer_text(&file, first);
		buffer_text(&file, "\n");
		buffer_add(&file, body.data, body.size);
	}
	int code;
	if (!first || file.failed)
		code = error_set(err, -ENOMEM, "no memory for the manifest");
	else
		code = files_write_atomic(path, file.data, file.size, err);
	free(first);
	buffer_release(&body);
	buffer_release(&file);
	return code;
}

static bool read_classes(struct dataset *dataset, const json_t *header)
{
	const json_t *classes = json_object_get(header, "classes");
	dataset->class_count = json_array_size(classes);
	dataset->class_names =
		arena_take(dataset->arena, dataset->class_count * sizeof(*dataset->class_names));
	if (!dataset->class_names)
		return false;
	for (size_t i = 0; i < dataset->class_count; i++) {
		const json_t *name = json_array_get(classes, i);
		const size_t length = json_string_length(name);
		char *copy =
			name ? arena_text(dataset->arena,
				       json_is_string(name) ? json_string_value(name) : "", length)
			     : NULL;
		if (!copy || !decode_name(copy, copy + length))
			return false;
		dataset->class_names[i] = copy;
	}
	return true;
}

static bool read_lines(struct dataset *dataset, char *at, char *end)
{
	for (size_t i = 0; i < dataset->count + dataset->bad_count; i++) {
		char *stop = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
		if (!stop)
			return false;
		struct cursor cursor = {.at = at, .end = stop};
		if (i < dataset->count) {
			parse_sample(&cursor, &dataset->samples[i]);
			if (dataset->samples[i].label >= dataset->class_count)
				return false;
		} else {
			parse_bad(&cursor, &dataset->bad[i - dataset->count]);
		}
		if (cursor.failed || cursor.at != stop)
			return false;
		at = stop + 1;
	}
	return at == end;
}

static uint64_t header_number(const json_t *header, const char *key)
{
	const json_int_t value = json_integer_value(json_object_get(header, key));
	return value < 0 ? 0 : (uint64_t)value;
}

/* The text is the arena's; names point into it. */
static int parse(
	char *text, size_t size, struct dataset *dataset, json_t **header, struct error *err)
{
	enum {
		LEAST_LINE = 8
	}; /* bytes of the shortest line: bounds the counts that a header can claim */
	char *body = memchr(text, '\n', size);
	if (!body)
		return error_set(err, -EBADMSG, "it has no header");
	*header = manifest_parse_header(text, (size_t)(body - text), MANIFEST_SCHEMA, err);
	if (!*header)
		return -EBADMSG;
	body++;
	const size_t left = size - (size_t)(body - text);
	const char *sum = json_string_value(json_object_get(*header, "body"));
	if (!sum || strtoull(sum, NULL, 16) != hash_bytes(body, left, 0))
		return error_set(err, -EBADMSG, "it is cut short or changed");
	dataset->count = header_number(*header, "count");
	dataset->bad_count = header_number(*header, "bad");
	if (dataset->count > left / LEAST_LINE || dataset->bad_count > left / LEAST_LINE)
		return error_set(err, -EBADMSG, "its counts are wrong");
	dataset->samples = arena_take(dataset->arena, dataset->count * sizeof(*dataset->samples));
	dataset->bad = arena_take(dataset->arena, dataset->bad_count * sizeof(*dataset->bad));
	if (!dataset->samples || !dataset->bad)
		return error_set(err, -ENOMEM, "no memory for %zu samples", dataset->count);
	if (!read_classes(dataset, *header) || !read_lines(dataset, body, text + size))
		return error_set(err, -EBADMSG, "a line is not as mlbench writes it");
	manifest_total(dataset);
	return 0;
}

int manifest_read(const char *path, struct dataset *dataset, json_t **header, struct error *err)
{
	char *text;
	size_t size;
	*header = NULL;
	int code = files_read(path, MANIFEST_BYTES_MAX, &text, &size, err);
	if (code)
		return code;
	struct arena *arena = arena_open();
	if (!arena || !arena_own(arena, text)) {
		if (!arena)
			free(text);
		arena_close(arena);
		return error_set(err, -ENOMEM, "no memory to read '%s'", path);
	}
	dataset->arena = arena;
	code = parse(text, size, dataset, header, err);
	if (!code)
		return 0;
	json_decref(*header);
	*header = NULL;
	arena_close(arena);
	dataset->arena = NULL;
	return error_prefix(err, code, "damaged manifest '%s'", path);
}

void manifest_total(struct dataset *dataset)
{
	dataset->total_bytes = dataset->max_bytes = 0;
	dataset->extents = (struct image_extents){0};
	for (size_t i = 0; i < dataset->count; i++) {
		const struct sample *sample = &dataset->samples[i];
		dataset->total_bytes += sample->bytes;
		if (sample->bytes > dataset->max_bytes)
			dataset->max_bytes = sample->bytes;
		image_extents_add(&dataset->extents, (enum image_format)sample->format,
			sample->width, sample->height);
	}
}
