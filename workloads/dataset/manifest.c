/* Reading and writing manifests.  The header goes through jansson.  What follows it may be millions of
 * samples: fixed-size rows and one block of text, read in pieces straight to where they stay.  Reads
 * and no mapping: a file that is cut short meanwhile is a damaged manifest and no SIGBUS.  The lines
 * of manifests of earlier versions are read by a strict parser, in place. */
#include "workloads/dataset/manifest.h"

#include "harness/base/files.h"
#include "harness/base/hash.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bounds what a hostile file can make of memory; 1,281,167 samples take about 80 MB. */
static const size_t MANIFEST_BYTES_MAX = (size_t)16 << 30;
static const size_t MANIFEST_HEADER_MAX = (size_t)256 << 20; /* millions of classes */

enum { MANIFEST_PIECE_ROWS = 1024, MANIFEST_PIECE_BYTES = 256 * 1024 };

/* A sample in the file: little-endian, without holes. */
struct manifest_row {
	uint64_t bytes, checksum;
	uint32_t width, height, label, format;
};
_Static_assert(sizeof(struct manifest_row) == 32, "rows are written as they lie in memory");

static bool is_plain(unsigned char c)
{
	return c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '%';
}

/* A class's name, escaped. */
static void add_name(struct buffer *buffer, const char *name)
{
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

/* A number behind the character `before`. */
static uint64_t take_number(struct cursor *cursor, char before, uint64_t most)
{
	manifest_expect(cursor, before);
	const char *start = cursor->at;
	uint64_t value = 0;
	for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++) {
		const uint64_t digit = (uint64_t)(*cursor->at - '0');
		if (digit > most || value > (most - digit) / 10)
			cursor->failed = true;
		value = value * 10 + digit;
	}
	if (cursor->at == start)
		cursor->failed = true;
	return cursor->failed ? 0 : value;
}

/* The inside of a string behind the character `before`; escapes stay. */
static char *take_string(struct cursor *cursor, char before, char **end)
{
	manifest_expect(cursor, before);
	manifest_expect(cursor, '"');
	char *start = cursor->at;
	while (cursor->at < cursor->end && *cursor->at != '"')
		cursor->at++;
	*end = cursor->at;
	manifest_expect(cursor, '"');
	return start;
}

static char *manifest_take_name(struct cursor *cursor, char before)
{
	char *end;
	char *start = take_string(cursor, before, &end);
	if (cursor->failed || !decode_name(start, end))
		cursor->failed = true;
	return start;
}

static uint64_t take_hex(struct cursor *cursor, char before)
{
	char *end;
	const char *start = take_string(cursor, before, &end);
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

void journal_format(struct buffer *buffer, const struct journal_entry *entry)
{
	buffer_format(buffer, "[%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",", entry->id,
		entry->bytes, entry->width, entry->height);
	if (entry->checksum)
		buffer_format(buffer, "\"%016" PRIx64 "\"]\n", entry->checksum);
	else
		buffer_text(buffer, "\"\"]\n");
}

bool journal_parse(const char *line, const char *end, struct journal_entry *entry)
{
	struct cursor cursor = {.at = (char *)(uintptr_t)line, .end = (char *)(uintptr_t)end};
	entry->id = take_number(&cursor, '[', UINT64_MAX);
	entry->bytes = take_number(&cursor, ',', UINT64_MAX);
	entry->width = (uint32_t)take_number(&cursor, ',', UINT32_MAX);
	entry->height = (uint32_t)take_number(&cursor, ',', UINT32_MAX);
	entry->checksum = take_hex(&cursor, ',');
	manifest_expect(&cursor, ']');
	return !cursor.failed && cursor.at == cursor.end;
}

static void parse_sample(struct cursor *cursor, struct sample *sample)
{
	sample->path = manifest_take_name(cursor, '[');
	sample->bytes = take_number(cursor, ',', UINT64_MAX);
	sample->width = (uint32_t)take_number(cursor, ',', UINT32_MAX);
	sample->height = (uint32_t)take_number(cursor, ',', UINT32_MAX);
	sample->label = (uint32_t)take_number(cursor, ',', UINT32_MAX);
	sample->checksum = take_hex(cursor, ',');
	sample->format = (uint8_t)image_format_of_name(sample->path);
	if (cursor->at < cursor->end && *cursor->at == ',')
		sample->format = (uint8_t)take_number(cursor, ',', IMAGE_FORMATS - 1);
	manifest_expect(cursor, ']');
}

static void parse_bad(struct cursor *cursor, struct dataset_bad *bad)
{
	bad->path = manifest_take_name(cursor, '[');
	bad->reason = manifest_take_name(cursor, ',');
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

static json_t *class_list(const struct dataset *dataset)
{
	json_t *classes = json_array();
	for (size_t i = 0; i < dataset->class_count; i++) {
		struct buffer name = {0};
		add_name(&name, dataset->class_names[i]);
		(void)json_array_append_new(classes,
			name.failed ? NULL : json_stringn(name.size ? name.data : "", name.size));
		buffer_release(&name);
	}
	return classes;
}

static size_t manifest_files(const struct dataset *dataset)
{
	size_t files = 0;
	for (size_t i = 0; i < dataset->count; i++)
		files += dataset_begins_file(dataset, i);
	return files;
}

/* The first line; NULL without memory. */
static char *format_header(const json_t *given, const struct dataset *dataset, const char *body,
	size_t size, size_t text_size)
{
	char hex[17];
	(void)snprintf(hex, sizeof(hex), "%016" PRIx64, hash_bytes(body, size, 0));
	const bool packed = dataset->offsets != NULL;
	json_t *header =
		json_pack("{s:s}", "schema", packed ? MANIFEST_SCHEMA_PACKED : MANIFEST_SCHEMA);
	json_t *own = json_pack("{s:I, s:I, s:I, s:I, s:s, s:o*}", "count",
		(json_int_t)dataset->count, "bad", (json_int_t)dataset->bad_count, "bytes",
		(json_int_t)dataset->total_bytes, "text", (json_int_t)text_size, "body", hex,
		"classes", class_list(dataset));
	(void)json_object_update(header, (json_t *)(uintptr_t)given);
	(void)json_object_update(header, own);
	json_decref(own);
	if (packed) {
		(void)json_object_set_new(
			header, "packed", json_integer((json_int_t)manifest_files(dataset)));
		(void)json_object_set_new(
			header, "stored", json_integer((json_int_t)dataset->stored_bytes));
	}
	char *text = json_array_size(json_object_get(header, "classes")) == dataset->class_count
			     ? json_dumps(header, JSON_COMPACT)
			     : NULL;
	json_decref(header);
	return text;
}

static size_t manifest_text_size(const struct dataset *dataset)
{
	size_t size = 0;
	for (size_t i = 0; i < dataset->count; i++)
		if (dataset_begins_file(dataset, i))
			size += strlen(dataset->samples[i].path) + 1;
	for (size_t i = 0; i < dataset->bad_count; i++)
		size += strlen(dataset->bad[i].path) + strlen(dataset->bad[i].reason) + 2;
	return size;
}

/* Bytes in front of the text. */
static size_t manifest_rows_size(size_t count, bool packed, size_t files)
{
	return count * (sizeof(struct manifest_row) + (packed ? sizeof(uint64_t) : 0)) +
	       (packed ? files * sizeof(uint64_t) : 0);
}

/* Where each sample begins, and how many each file has. */
static char *manifest_fill_packed(char *at, const struct dataset *dataset)
{
	uint64_t in_file = 0;
	for (size_t i = 0; i < dataset->count; i++, at += sizeof(uint64_t)) {
		const uint64_t offset = htole64(dataset->offsets[i]);
		memcpy(at, &offset, sizeof offset);
	}
	for (size_t i = 0; i < dataset->count; i++) {
		in_file++;
		if (i + 1 < dataset->count && !dataset_begins_file(dataset, i + 1))
			continue;
		const uint64_t count = htole64(in_file);
		memcpy(at, &count, sizeof count);
		at += sizeof count;
		in_file = 0;
	}
	return at;
}

/* Rows, then the names of samples, then those of bad files with their reasons. */
static void manifest_fill_body(char *at, const struct dataset *dataset)
{
	for (size_t i = 0; i < dataset->count; i++, at += sizeof(struct manifest_row)) {
		const struct sample *sample = &dataset->samples[i];
		const struct manifest_row row = {
			.bytes = htole64(sample->bytes),
			.checksum = htole64(sample->checksum),
			.width = htole32(sample->width),
			.height = htole32(sample->height),
			.label = htole32(sample->label),
			.format = htole32(sample->format),
		};
		memcpy(at, &row, sizeof row);
	}
	if (dataset->offsets)
		at = manifest_fill_packed(at, dataset);
	for (size_t i = 0; i < dataset->count; i++)
		if (dataset_begins_file(dataset, i))
			at = stpcpy(at, dataset->samples[i].path) + 1;
	for (size_t i = 0; i < dataset->bad_count; i++) {
		at = stpcpy(at, dataset->bad[i].path) + 1;
		at = stpcpy(at, dataset->bad[i].reason) + 1;
	}
}

int manifest_write(
	const char *path, const json_t *header, const struct dataset *dataset, struct error *err)
{
	const size_t text_size = manifest_text_size(dataset);
	const bool packed = dataset->offsets != NULL;
	const size_t size =
		manifest_rows_size(dataset->count, packed, packed ? manifest_files(dataset) : 0) +
		text_size;
	char *file = malloc(size + 1);
	if (file)
		manifest_fill_body(file, dataset);
	char *first = file ? format_header(header, dataset, file, size, text_size) : NULL;
	const size_t length = first ? strlen(first) : 0;
	char *whole = first ? realloc(file, length + 1 + size) : NULL;
	int code;
	if (whole) {
		file = whole;
		memmove(file + length + 1, file, size);
		memcpy(file, first, length);
		file[length] = '\n';
		code = files_write_atomic(path, file, length + 1 + size, err);
	} else {
		code = error_set(err, -ENOMEM, "no memory for the manifest");
	}
	free(first);
	free(file);
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

static bool manifest_has_class(const struct dataset *dataset, uint32_t label)
{
	return label < dataset->class_count || label == DATASET_UNLABELLED;
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
			if (!manifest_has_class(dataset, dataset->samples[i].label))
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

static int manifest_take_counts(struct dataset *dataset, const json_t *header, size_t sample_bytes,
	size_t bad_bytes, size_t left, struct error *err)
{
	dataset->count = header_number(header, "count");
	dataset->bad_count = header_number(header, "bad");
	if (dataset->count > left / sample_bytes || dataset->bad_count > left / bad_bytes)
		return error_set(err, -EBADMSG, "its counts are wrong");
	dataset->samples = arena_take(dataset->arena, dataset->count * sizeof(*dataset->samples));
	dataset->bad = arena_take(dataset->arena, dataset->bad_count * sizeof(*dataset->bad));
	if (!dataset->samples || !dataset->bad)
		return error_set(err, -ENOMEM, "no memory for %zu samples", dataset->count);
	return 0;
}

static bool manifest_is_sum(const json_t *header, uint64_t sum)
{
	char hex[17];
	const char *there = json_string_value(json_object_get(header, "body"));
	(void)snprintf(hex, sizeof hex, "%016" PRIx64, sum);
	return there && strcmp(there, hex) == 0;
}

/* Of the earlier version: a line for each sample.  The text is the arena's; names point into it. */
static int manifest_parse_lines(
	char *text, size_t size, const json_t *header, struct dataset *dataset, struct error *err)
{
	enum { LEAST_LINE = 8 }; /* bytes of the shortest line */
	if (!manifest_is_sum(header, hash_bytes(text, size, 0)))
		return error_set(err, -EBADMSG, "it is cut short or changed");
	const int code = manifest_take_counts(dataset, header, LEAST_LINE, LEAST_LINE, size, err);
	if (code)
		return code;
	if (!read_lines(dataset, text, text + size))
		return error_set(err, -EBADMSG, "a line is not as mlbench writes it");
	return 0;
}

/* ---- reading from the file ------------------------------------------------------------------- */

struct manifest_file {
	int fd;
	size_t size, header_size; /* with its newline */
};

/* Exactly so many bytes; -EBADMSG: there are fewer. */
static int manifest_read_exactly(int fd, char *to, size_t size)
{
	while (size > 0) {
		const ssize_t n = read(fd, to, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
		to += n;
		size -= (size_t)n;
	}
	return 0;
}

static int manifest_explain(int code, const char *what, struct error *err)
{
	return code == -EBADMSG ? error_set(err, code, "it was cut short while it was read")
				: error_set_errno(err, -code, "cannot read its %s", what);
}

/* The first line, and the file's position behind it. */
static int manifest_read_first_line(
	struct manifest_file *file, struct buffer *line, struct error *err)
{
	const char *end = NULL;
	while (!end && line->size < file->size && line->size < MANIFEST_HEADER_MAX) {
		char piece[16 * 1024];
		const size_t left = file->size - line->size;
		const size_t size = left < sizeof piece ? left : sizeof piece;
		const int code = manifest_read_exactly(file->fd, piece, size);
		if (code)
			return manifest_explain(code, "header", err);
		end = memchr(piece, '\n', size);
		buffer_add(line, piece, end ? (size_t)(end - piece) : size);
	}
	if (line->failed)
		return error_set(err, -ENOMEM, "no memory for its header");
	file->header_size = line->size + 1;
	if (!end || lseek(file->fd, (off_t)file->header_size, SEEK_SET) < 0)
		return error_set(err, -EBADMSG, "it has no header");
	return 0;
}

static int manifest_take_rows(const struct manifest_file *file, struct dataset *dataset,
	struct hash_pieces *sum, struct error *err)
{
	struct manifest_row rows[MANIFEST_PIECE_ROWS];
	for (size_t done = 0; done < dataset->count;) {
		const size_t left = dataset->count - done;
		const size_t count = left < MANIFEST_PIECE_ROWS ? left : MANIFEST_PIECE_ROWS;
		const int code =
			manifest_read_exactly(file->fd, (char *)rows, count * sizeof *rows);
		if (code)
			return manifest_explain(code, "samples", err);
		hash_add(sum, rows, count * sizeof *rows);
		for (size_t i = 0; i < count; i++, done++) {
			const struct manifest_row *row = &rows[i];
			dataset->samples[done] = (struct sample){
				.bytes = le64toh(row->bytes),
				.checksum = le64toh(row->checksum),
				.width = le32toh(row->width),
				.height = le32toh(row->height),
				.label = le32toh(row->label),
				.format = (uint8_t)le32toh(row->format),
			};
			if (!manifest_has_class(dataset, le32toh(row->label)) ||
				le32toh(row->format) >= IMAGE_FORMATS)
				return error_set(err, -EBADMSG,
					"sample %zu has a class or a format that there is not",
					done);
		}
	}
	return 0;
}

static int manifest_take_text(const struct manifest_file *file, char *text, size_t size,
	struct hash_pieces *sum, struct error *err)
{
	for (size_t done = 0; done < size;) {
		const size_t left = size - done;
		const size_t piece = left < MANIFEST_PIECE_BYTES ? left : MANIFEST_PIECE_BYTES;
		const int code = manifest_read_exactly(file->fd, text + done, piece);
		if (code)
			return manifest_explain(code, "names", err);
		hash_add(sum, text + done, piece);
		done += piece;
	}
	return 0;
}

/* The next string of the block; NULL where the block ends before. */
static const char *manifest_next_text(const char **at, const char *end)
{
	const char *const start = *at;
	const char *const stop = start < end ? memchr(start, '\0', (size_t)(end - start)) : NULL;
	if (!stop)
		return NULL;
	*at = stop + 1;
	return start;
}

/* counts: samples of each file of a packed set; NULL: each is a file. */
static bool manifest_place_names(
	struct dataset *dataset, const uint64_t *counts, const char *at, size_t size)
{
	const char *const end = at + size;
	size_t done = 0;
	for (size_t i = 0; done < dataset->count; i++) {
		const char *const path = manifest_next_text(&at, end);
		const uint64_t count = counts ? le64toh(counts[i]) : 1;
		if (!path)
			return false;
		for (uint64_t k = 0; k < count; k++)
			dataset->samples[done++].path = path;
	}
	for (size_t i = 0; i < dataset->bad_count; i++)
		if (!(dataset->bad[i].path = manifest_next_text(&at, end)) ||
			!(dataset->bad[i].reason = manifest_next_text(&at, end)))
			return false;
	return at == end;
}

/* Where samples begin, and how many each file has, which is all of them together. */
static int manifest_take_packed(const struct manifest_file *file, struct dataset *dataset,
	const uint64_t *counts, size_t files, struct hash_pieces *sum, struct error *err)
{
	uint64_t *const offsets = (uint64_t *)(uintptr_t)dataset->offsets;
	int code = manifest_take_text(
		file, (char *)offsets, dataset->count * sizeof *offsets, sum, err);
	if (!code)
		code = manifest_take_text(
			file, (char *)(uintptr_t)counts, files * sizeof *counts, sum, err);
	if (code)
		return code;
	uint64_t left = dataset->count;
	for (size_t i = 0; i < dataset->count; i++) {
		offsets[i] = le64toh(offsets[i]);
		if (dataset->samples[i].bytes > UINT64_MAX - offsets[i])
			return error_set(err, -EBADMSG, "sample %zu lies behind any file", i);
	}
	for (size_t i = 0; i < files; i++) {
		const uint64_t count = le64toh(counts[i]);
		if (count == 0 || count > left)
			return error_set(err, -EBADMSG, "its counts are wrong");
		left -= count;
	}
	return left == 0 ? 0 : error_set(err, -EBADMSG, "its counts are wrong");
}

static int manifest_take_body(const struct manifest_file *file, const json_t *header, bool packed,
	struct dataset *dataset, struct error *err)
{
	/* Empty strings; of a packed set most samples have no name of their own. */
	enum { LEAST_TEXT = 1, LEAST_BAD = 2 * LEAST_TEXT };
	const size_t left = file->size - file->header_size;
	const size_t text_size = header_number(header, "text");
	const size_t files = packed ? header_number(header, "packed") : 0;
	uint64_t *counts = NULL;
	int code = manifest_take_counts(dataset, header,
		manifest_rows_size(1, packed, 0) + (packed ? 0 : LEAST_TEXT), LEAST_BAD, left, err);
	if (code)
		return code;
	if (files > dataset->count || text_size > left ||
		left - text_size != manifest_rows_size(dataset->count, packed, files))
		return error_set(err, -EBADMSG, "it is cut short or changed");
	if (packed) {
		dataset->offsets = arena_take(dataset->arena, dataset->count * sizeof(uint64_t));
		counts = arena_take(dataset->arena, files * sizeof *counts);
		dataset->stored_bytes = header_number(header, "stored");
		dataset->files = files;
		if (!dataset->offsets || !counts)
			return error_set(err, -ENOMEM, "no memory for %zu samples", dataset->count);
	}
	char *text = arena_take(dataset->arena, text_size);
	struct hash_pieces *const sum = hash_begin(0);
	if (!text || !sum)
		code = error_set(err, -ENOMEM, "no memory for %zu samples", dataset->count);
	if (!code)
		code = manifest_take_rows(file, dataset, sum, err);
	if (!code && packed)
		code = manifest_take_packed(file, dataset, counts, files, sum, err);
	if (!code)
		code = manifest_take_text(file, text, text_size, sum, err);
	const uint64_t found = sum ? hash_end(sum) : 0;
	if (code)
		return code;
	if (!manifest_is_sum(header, found))
		return error_set(err, -EBADMSG, "it is cut short or changed");
	if (!manifest_place_names(dataset, counts, text, text_size))
		return error_set(err, -EBADMSG, "its names are not as mlbench writes them");
	return 0;
}

static int manifest_take_lines(const struct manifest_file *file, const json_t *header,
	struct dataset *dataset, struct error *err)
{
	const size_t size = file->size - file->header_size;
	char *text = arena_take(dataset->arena, size + 1);
	if (!text)
		return error_set(err, -ENOMEM, "no memory for a manifest of %zu bytes", size);
	const int code = manifest_read_exactly(file->fd, text, size);
	if (code)
		return manifest_explain(code, "samples", err);
	text[size] = '\0';
	return manifest_parse_lines(text, size, header, dataset, err);
}

static int manifest_take_file(
	struct manifest_file *file, struct dataset *dataset, json_t **header, struct error *err)
{
	struct buffer line = {0};
	/* Of all schemas, the one whose failure is told first. */
	static const char *const schemas[] = {
		MANIFEST_SCHEMA, MANIFEST_SCHEMA_LINES, MANIFEST_SCHEMA_PACKED};
	enum { LINES = 1, PACKED = 2 };
	struct error ignored;
	size_t schema = 0;
	int code = manifest_read_first_line(file, &line, err);
	for (size_t i = 0; !code && !*header && i < sizeof schemas / sizeof *schemas; i++) {
		*header = manifest_parse_header(
			line.data ? line.data : "", line.size, schemas[i], i == 0 ? err : &ignored);
		schema = i;
	}
	if (!code && !*header)
		code = -EBADMSG;
	buffer_release(&line);
	if (!code && !read_classes(dataset, *header))
		code = error_set(err, -EBADMSG, "its classes are not as mlbench writes them");
	if (!code)
		code = schema == LINES
			       ? manifest_take_lines(file, *header, dataset, err)
			       : manifest_take_body(file, *header, schema == PACKED, dataset, err);
	if (!code)
		manifest_total(dataset);
	return code;
}

static int manifest_open_file(const char *path, struct manifest_file *file, struct error *err)
{
	struct stat st;
	/* Not to wait for a pipe's other end. */
	file->fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (file->fd < 0 || fstat(file->fd, &st) != 0)
		return error_set_errno(err, errno, "cannot open '%s'", path);
	if (S_ISDIR(st.st_mode))
		return error_set_errno(err, EISDIR, "cannot read '%s'", path);
	if (!S_ISREG(st.st_mode))
		return error_set(err, -EBADMSG, "'%s' is not a regular file", path);
	if (st.st_size < 0 || (uint64_t)st.st_size > MANIFEST_BYTES_MAX)
		return error_set(
			err, -EOVERFLOW, "'%s' is larger than %zu bytes", path, MANIFEST_BYTES_MAX);
	file->size = (size_t)st.st_size;
	return 0;
}

int manifest_read(const char *path, struct dataset *dataset, json_t **header, struct error *err)
{
	struct manifest_file file = {.fd = -1};
	*header = NULL;
	int code = manifest_open_file(path, &file, err);
	if (!code) {
		dataset->arena = arena_open();
		code = dataset->arena ? manifest_take_file(&file, dataset, header, err)
				      : error_set(err, -ENOMEM, "no memory");
		if (code)
			code = error_prefix(err, code, "%s '%s'",
				code == -EBADMSG ? "damaged manifest" : "cannot read manifest",
				path);
	}
	if (file.fd >= 0)
		(void)close(file.fd);
	if (!code)
		return 0;
	json_decref(*header);
	arena_close(dataset->arena);
	*header = NULL;
	*dataset = (struct dataset){0};
	return code;
}

bool dataset_begins_file(const struct dataset *dataset, size_t sample)
{
	const struct sample *const here = &dataset->samples[sample];
	return !dataset->offsets || sample == 0 ||
	       (here->path != here[-1].path && strcmp(here->path, here[-1].path) != 0);
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
	if (dataset->offsets)
		return;
	dataset->files = dataset->count;
	dataset->stored_bytes = dataset->total_bytes;
}

/* ---- memory of a data set: blocks in a list, freed together --------------------------------- */

enum { BLOCK_BYTES = 64 * 1024, ALIGNMENT = 16 };

struct owned {
	struct owned *next;
	void *memory;
};

struct arena {
	struct owned *blocks;
	char *at; /* free part of the newest block of ours */
	size_t room;
};

struct arena *arena_open(void)
{
	return calloc(1, sizeof(struct arena));
}

void arena_close(struct arena *arena)
{
	if (!arena)
		return;
	while (arena->blocks) {
		struct owned *block = arena->blocks;
		arena->blocks = block->next;
		free(block->memory);
		free(block);
	}
	free(arena);
}

/* free() it later; false (and freed) without memory. */
static bool arena_own(struct arena *arena, void *memory)
{
	struct owned *block = malloc(sizeof(*block));
	if (!block) {
		free(memory);
		return false;
	}
	*block = (struct owned){.next = arena->blocks, .memory = memory};
	arena->blocks = block;
	return true;
}

/* The next `size` bytes of the newest block, or of a fresh one. */
static char *arena_cut(struct arena *arena, size_t size)
{
	if (size > arena->room) {
		const size_t block = size > BLOCK_BYTES ? size : BLOCK_BYTES;
		char *memory = malloc(block);
		if (!memory || !arena_own(arena, memory))
			return NULL;
		arena->at = memory;
		arena->room = block;
	}
	char *taken = arena->at;
	arena->at += size;
	arena->room -= size;
	return taken;
}

void *arena_take(struct arena *arena, size_t size)
{
	size = size ? size : 1;
	/* Texts may have left the free part unaligned. */
	const size_t skew = (uintptr_t)arena->at % ALIGNMENT;
	const size_t skip = skew ? ALIGNMENT - skew : 0;
	if (arena->room >= skip && arena->room - skip >= size) {
		arena->at += skip;
		arena->room -= skip;
	} else {
		arena->room = 0;
	}
	return arena_cut(arena, size);
}

char *arena_text(struct arena *arena, const char *text, size_t length)
{
	char *copy = arena_cut(arena, length + 1);
	if (!copy)
		return NULL;
	memcpy(copy, text, length);
	copy[length] = '\0';
	return copy;
}
