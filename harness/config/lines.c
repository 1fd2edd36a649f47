/* Lines of a file: counted, bounded, without what is no text. */
#include "harness/config/lines.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES_MAX = 1 << 20 };

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static int check_letters(const char *line, size_t length, struct error *err)
{
	if (length > LINE_BYTES_MAX)
		return error_set(err, -EINVAL, "line is longer than %d bytes", LINE_BYTES_MAX);
	for (size_t i = 0; i < length; i++)
		if (((unsigned char)line[i] < ' ' && line[i] != '\t') || line[i] == '\x7f')
			return error_set(err, -EINVAL, "control character (%d) in column %zu",
				line[i], i + 1);
	return 0;
}

int lines_next(struct lines *lines, char **line, struct error *err)
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
	const int code = check_letters(start, (size_t)(stop - start), err);
	if (code)
		return code;
	*line = strndup(start, (size_t)(stop - start));
	return *line ? 1 : error_set(err, -ENOMEM, "out of memory");
}

void lines_strip_comment(char *line, bool semicolons_separate)
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

size_t lines_piece(const char *value, size_t length, size_t room)
{
	if (length <= room)
		return length;
	for (size_t cut = room; cut > 0; cut--)
		if (!is_blank(value[cut - 1]) && !is_blank(value[cut]) && !strchr(";#", value[cut]))
			return cut;
	return 0;
}
