/* Reading INI files through inih.  inih (as built by distributions) cuts lines at 200 bytes and
 * section names at 50, takes an indented line for the continuation of the one above, drops what
 * follows "]", and leaves sections without keys unseen; none of that is said aloud.  So the stream
 * that is handed to inih is made of checked lines: counted, trimmed, without comments, and long
 * ones cut into the continuation pieces that inih joins by itself. */
#include "harness/config/ini.h"

#include "harness/base/array.h"
#include "harness/base/bounded.h"
#include "harness/base/buffer.h"
#include "harness/base/files.h"
#include "harness/config/value.h"

#include <errno.h>
#include <ini.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- lines: counted, bounded, without what is no text ----------------------------------------- */

enum { LINE_BYTES_MAX = 1 << 20 };

struct lines {
	const char *at, *end; /* the text not read yet */
	int number;           /* of the line read last, from 1 */
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* 1 with the next line, fresh, without its end; 0 at the end of the text; -EINVAL for a line with
 * control characters or one that is too long; -ENOMEM. */
static int lines_next(struct lines *lines, char **line, struct error *err)
{
	*line = NULL;
	if (lines->at == lines->end)
		return 0;
	const char *start = lines->at;
	const char *newline = memchr(start, '\n', (size_t)(lines->end - start));
	const char *stop = newline ? newline : lines->end;
	lines->at = newline ? newline + 1 : lines->end;
	lines->number++;
	if (stop > start && stop[-1] == '\r')
		stop--;
	if (stop - start > LINE_BYTES_MAX)
		return error_set(err, -EINVAL, "line is longer than %d bytes", LINE_BYTES_MAX);
	for (const char *at = start; at < stop; at++)
		if (((unsigned char)*at < ' ' && *at != '\t') || *at == '\x7f')
			return error_set(err, -EINVAL, "control character (%d) in column %td", *at,
				at - start + 1);
	*line = strndup(start, (size_t)(stop - start));
	return *line ? 1 : error_set(err, -ENOMEM, "out of memory");
}

/* Cuts the comment off: from a '#' or ';' at the start or after a blank.  Where ';' separates, it
 * stays, and the blanks before it go, lest inih take it for a comment. */
static void lines_strip_comment(char *line, bool semicolons_separate)
{
	char *out = line;
	for (char *at = line; *at; at++) {
		const bool opens = (*at == '#' || *at == ';') && (at == line || is_blank(at[-1]));
		if (opens && !(*at == ';' && semicolons_separate))
			break;
		while (opens && out > line && is_blank(out[-1]))
			out--;
		*out++ = *at;
	}
	*out = '\0';
}

/* inih trims each piece of a long value: within it blanks are letters that no line may hold. */
static const char blanks_as[][2] = {{' ', '\x1e'}, {'\t', '\x1f'}};

static void lines_replace_blanks(char *text, size_t size, bool back)
{
	for (size_t i = 0; i < size; i++)
		for (size_t k = 0; k < COUNT(blanks_as); k++)
			if (text[i] == blanks_as[k][back])
				text[i] = blanks_as[k][!back];
}

/* How many of length bytes to put into room: all, or as many as end at a place where the second piece
 * opens no comment.  0: there is none. */
static size_t lines_piece(const char *value, size_t length, size_t room)
{
	if (length <= room)
		return length;
	for (size_t cut = room; cut > 0; cut--)
		if (!strchr(";#", value[cut]))
			return cut;
	return 0;
}

/* --- files ------------------------------------------------------------------------------------ */

enum {
	FILE_BYTES_MAX = 4 << 20,
	INCLUDE_DEPTH_MAX = 16,
	INCLUDE_FILES_MAX = 64,
	LINE_END_BYTES = 3, /* what inih keeps for "\r\n" and NUL */
};

struct reader {
	const struct ini_target *target;
	struct error *err;
	int code; /* the first error; nothing is read after it */

	struct ini_place place;     /* its name for messages */
	const struct stat *status;  /* NULL when from memory: includes are refused */
	const struct reader *outer; /* the file that includes this one */
	int *files;                 /* opened so far, over all */

	struct lines lines;
	char section[INI_NAME_BYTES];

	struct buffer pending; /* the value of the current line, without comment */
	size_t handed;         /* bytes of it that inih has got */
	bool awaited;          /* a line was handed over and its handler call is due */
	char key[INI_NAME_BYTES];
	struct buffer value; /* what came back from inih */
};

static int read_named_file(const struct ini_target *target, const char *path,
	const struct reader *outer, int *files, struct error *err);

/* Puts the place in front of a message. */
static int fail_here(struct reader *reader, int code)
{
	/* The end of a long path tells more than its start, and the message must fit behind it. */
	enum { SHOWN = 200 };
	const size_t length = strlen(reader->place.name);
	const bool cut = length > SHOWN;
	reader->code = error_prefix(reader->err, code, "%s%s:%d", cut ? "..." : "",
		reader->place.name + (cut ? length - SHOWN : 0), reader->lines.number);
	return reader->code;
}

/* Whether ';' separates values in a line "key = value". */
static bool semicolons_separate(const struct reader *reader, const char *line)
{
	const char *const *names = reader->target->lists;
	for (; names && *names; names++) {
		const size_t section = strcspn(*names, ".");
		const char *key = *names + section + 1;
		const size_t length = strlen(key);
		if (strncmp(line, key, length) == 0 &&
			line[length + strspn(line + length, " \t")] == '=' &&
			strncmp(reader->section, *names, section) == 0 && !reader->section[section])
			return true;
	}
	return false;
}

static int check_section_line(struct reader *reader, const char *line)
{
	const size_t length = strlen(line);
	if (line[length - 1] != ']' || length < 3 || strcspn(line, "]") != length - 1)
		return error_set(reader->err, -EINVAL, "expected '[section]', not '%.48s'", line);
	(void)snprintf(reader->section, sizeof reader->section, "%.*s",
		(int)(length - 2 < sizeof reader->section ? length - 2
							  : sizeof reader->section - 1),
		line + 1);
	reader->place.line = reader->lines.number;
	return reader->target->section(
		reader->target->context, &reader->place, reader->section, reader->err);
}

/* Splits "key = value" into reader->key and reader->pending. */
static int split_key_line(struct reader *reader, char *line)
{
	char *equals = strchr(line, '=');
	if (!equals)
		return error_set(reader->err, -EINVAL, "expected 'key = value', not '%.48s'", line);
	*equals = '\0';
	const char *key = text_trim(line);
	if (!*key)
		return error_set(reader->err, -EINVAL, "there is no key in front of '='");
	if (strchr(key, ':'))
		return error_set(reader->err, -EINVAL,
			"expected 'key = value' with '=', not ':' ('%.48s')", key);
	if (strlen(key) >= sizeof reader->key)
		return error_set(reader->err, -EINVAL, "unknown key '%.48s...'", key);
	(void)snprintf(reader->key, sizeof reader->key, "%s", key);
	reader->pending.size = 0;
	reader->handed = 0;
	buffer_text(&reader->pending, text_trim(equals + 1));
	return reader->pending.failed ? error_set(reader->err, -ENOMEM, "out of memory") : 0;
}

/* Hands inih the key with the first piece of its value, or, indented, the next piece. */
static char *hand_over(struct reader *reader, char *out, size_t room)
{
	const bool first = !reader->awaited;
	const size_t lead = first ? strlen(reader->key) + 1 : 1;
	const char *rest = reader->pending.data + reader->handed;
	const size_t length = reader->pending.size - reader->handed;
	const size_t piece = lead < room ? lines_piece(rest, length, room - lead) : 0;
	if (piece == 0 && length > 0) {
		(void)fail_here(reader, error_set(reader->err, -EINVAL, "line is too long"));
		return NULL;
	}
	(void)snprintf(out, room + 1, "%s%s%.*s", first ? reader->key : "", first ? "=" : " ",
		(int)piece, rest);
	lines_replace_blanks(out + lead, piece, false);
	reader->handed += piece;
	reader->awaited = true;
	return out;
}

/* One line: 1 when inih shall see it, 0 when there is nothing in it, negative when it is wrong. */
static int prepare_line(struct reader *reader, char *line, char *out, size_t room)
{
	line = text_trim(line);
	lines_strip_comment(line, semicolons_separate(reader, line));
	line = text_trim(line);
	if (!*line)
		return 0;
	int code;
	if (*line == '[') {
		code = check_section_line(reader, line);
		if (!code)
			(void)snprintf(out, room + 1, "%s", line);
		return code ? fail_here(reader, code) : 1;
	}
	code = split_key_line(reader, line);
	if (code)
		return fail_here(reader, code);
	return hand_over(reader, out, room) ? 1 : reader->code;
}

/* inih's reader: called once a line, like fgets. */
static char *next_ini_line(char *out, int room, void *stream)
{
	struct reader *reader = stream;
	const size_t usable = (size_t)room - LINE_END_BYTES;
	if (reader->code)
		return NULL;
	if (reader->awaited && reader->handed < reader->pending.size)
		return hand_over(reader, out, usable);
	if (reader->awaited) {
		(void)fail_here(reader, error_set(reader->err, -EINVAL, "line was not understood"));
		return NULL;
	}
	for (;;) {
		char *line;
		int code = lines_next(&reader->lines, &line, reader->err);
		if (code < 0)
			(void)fail_here(reader, code);
		if (code <= 0)
			return NULL;
		code = prepare_line(reader, line, out, usable);
		free(line);
		if (code)
			return code > 0 ? out : NULL;
	}
}

/* "a.ini -> b.ini -> a.ini", from the file that is met again. */
static void write_chain(const struct reader *reader, const struct reader *from, struct buffer *out)
{
	if (reader != from)
		write_chain(reader->outer, from, out);
	buffer_format(out, "%s -> ", reader->place.name);
}

static int refuse_cycle(const struct reader *reader, const struct reader *again, const char *path,
	struct error *err)
{
	struct buffer chain = {0};
	write_chain(reader, again, &chain);
	const int code = error_set(err, -EINVAL, "files include each other: %.300s%s",
		chain.failed ? "" : chain.data, path);
	buffer_release(&chain);
	return code;
}

/* Reads the file that an include line names; path is relative to this file's folder. */
static int include_path(struct reader *reader, const char *path)
{
	const char *slash = strrchr(reader->place.name, '/');
	struct buffer whole = {0};
	if (*path != '/' && slash)
		buffer_add(&whole, reader->place.name, (size_t)(slash - reader->place.name) + 1);
	buffer_text(&whole, path);
	if (whole.failed) {
		buffer_release(&whole);
		return fail_here(reader, error_set(reader->err, -ENOMEM, "out of memory"));
	}
	/* It may lie on a mount that does not answer, whatever the file that names it lies on. */
	const int silent = path_answers(whole.data, NULL, reader->err);
	if (silent) {
		buffer_release(&whole);
		return fail_here(reader, silent);
	}
	struct stat status;
	int depth = 0;
	for (const struct reader *at = reader; at; at = at->outer)
		depth++;
	const struct reader *again = stat(whole.data, &status) == 0 ? reader : NULL;
	/* Met again on the way out: the files include each other. */
	while (again && !(again->status && again->status->st_dev == status.st_dev &&
				again->status->st_ino == status.st_ino))
		again = again->outer;
	int code = 0;
	if (again)
		code = refuse_cycle(reader, again, whole.data, reader->err);
	else if (depth >= INCLUDE_DEPTH_MAX)
		code = error_set(reader->err, -EINVAL, "includes are nested more than %d deep",
			INCLUDE_DEPTH_MAX);
	else if (*reader->files >= INCLUDE_FILES_MAX)
		code = error_set(
			reader->err, -EINVAL, "more than %d files are included", INCLUDE_FILES_MAX);
	if (code)
		(void)fail_here(reader, code);
	else
		reader->code = read_named_file(
			reader->target, whole.data, reader, reader->files, reader->err);
	buffer_release(&whole);
	return reader->code;
}

static int include(struct reader *reader, const char *text)
{
	if (reader->place.foreign)
		return fail_here(reader,
			error_set(reader->err, -EINVAL,
				"'include' does not work in a case or a lab, which others may have written: copy the lines that you need"));
	if (!reader->status)
		return fail_here(
			reader, error_set(reader->err, -EINVAL, "'include' works only in files"));
	struct buffer path = {0};
	int code = expand_variables(text, &path, reader->err);
	if (!code && !*path.data)
		code = error_set(reader->err, -EINVAL, "'include' names no file");
	code = code ? fail_here(reader, code) : include_path(reader, path.data);
	buffer_release(&path);
	return code;
}

static int take_value(struct reader *reader, const char *section)
{
	if (strcmp(reader->key, "include") == 0)
		return include(reader, reader->value.data);
	reader->place.line = reader->lines.number;
	const int code = reader->target->value(reader->target->context, &reader->place,
		*section ? reader->section : "", reader->key, reader->value.data, reader->err);
	return code ? fail_here(reader, code) : 0;
}

/* inih's handler: called with each piece of a value; the last one completes it. */
static int handle_piece(void *user, const char *section, const char *name, const char *value)
{
	struct reader *reader = user;
	/* A build of inih that does not join continuations would show them under other names. */
	if (reader->code || strncmp(name, reader->key, strlen(name)) != 0)
		return 0;
	const size_t before = reader->value.size;
	buffer_text(&reader->value, value ? value : "");
	if (!reader->value.failed)
		lines_replace_blanks(
			reader->value.data + before, reader->value.size - before, true);
	if (reader->handed < reader->pending.size)
		return 1;
	reader->awaited = false;
	const int code =
		reader->value.failed
			? fail_here(reader, error_set(reader->err, -ENOMEM, "out of memory"))
			: take_value(reader, section);
	reader->value.size = 0;
	return code == 0;
}

/* Whether any section is foreign, wherever it stands: known before the first value is taken. */
static bool has_foreign_section(const struct ini_target *target, const char *text, const char *end)
{
	while (target->foreign && text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *stop = newline ? newline : end;
		while (text < stop && is_blank(*text))
			text++;
		const char *close = memchr(text, ']', (size_t)(stop - text));
		char name[INI_NAME_BYTES];
		if (text < stop && *text == '[' && close && close - text < INI_NAME_BYTES) {
			(void)snprintf(
				name, sizeof name, "%.*s", (int)(close - text - 1), text + 1);
			if (target->foreign(name))
				return true;
		}
		text = newline ? newline + 1 : end;
	}
	return false;
}

static int read_stream(struct reader *reader, const char *text, size_t size)
{
	static const char mark[] = "\xef\xbb\xbf"; /* UTF-8 byte order mark */
	const bool marked = size >= sizeof mark - 1 && memcmp(text, mark, sizeof mark - 1) == 0;
	reader->lines.at = text + (marked ? sizeof mark - 1 : 0);
	reader->lines.end = text + size;
	reader->place.foreign =
		has_foreign_section(reader->target, reader->lines.at, reader->lines.end);
	reader->place.outer = reader->outer ? &reader->outer->place : NULL;
	reader->place.scope = calloc(1, reader->target->scope_size + 1);
	if (!reader->place.scope)
		return error_set(reader->err, -ENOMEM, "out of memory");
	const int wrong = ini_parse_stream(next_ini_line, reader, handle_piece, reader);
	if (!reader->code && (wrong || reader->awaited))
		(void)fail_here(reader, error_set(reader->err, -EINVAL, "line was not understood"));
	buffer_release(&reader->pending);
	buffer_release(&reader->value);
	free(reader->place.scope);
	reader->place.scope = NULL;
	return reader->code;
}

/* A file that cannot be read is its reader's error, or the including line's. */
static int read_named_file(const struct ini_target *target, const char *path,
	const struct reader *outer, int *files, struct error *err)
{
	char *text;
	size_t size;
	struct stat status;
	int code = stat(path, &status) == 0 ? 0
					    : error_set_errno(err, errno, "cannot open '%s'", path);
	if (!code)
		code = files_read(path, FILE_BYTES_MAX, &text, &size, err);
	if (code && outer) {
		(void)error_prefix(err, code, "%s:%d", outer->place.name, outer->lines.number);
		return -EINVAL;
	}
	if (code)
		return code;
	++*files;
	struct reader reader = {
		.target = target,
		.err = err,
		.place = {.name = path, .file = *files},
		.status = &status,
		.outer = outer,
		.files = files,
	};
	code = read_stream(&reader, text, size);
	free(text);
	return code;
}

int ini_read_file(const struct ini_target *target, const char *path, struct error *err)
{
	int files = 0;
	return read_named_file(target, path, NULL, &files, err);
}

int ini_read_text(const struct ini_target *target, const char *name, const char *text, size_t size,
	struct error *err)
{
	int files = 0;
	struct reader reader = {
		.target = target, .err = err, .place = {.name = name}, .files = &files};
	return read_stream(&reader, text, size);
}
