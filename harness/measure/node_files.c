/* Small files of /proc, /sys, /etc. */
#include "harness/measure/node_files.h"

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/measure/proc_text.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The path of a format; false: it has no room. */
__attribute__((format(printf, 2, 0))) static bool format_path(
	char path[NODE_PATH_BYTES], const char *format, va_list args)
{
	const int length = vsnprintf(path, NODE_PATH_BYTES, format, args);
	return length >= 0 && length < NODE_PATH_BYTES;
}

#define PATH_OF(path, format)                              \
	char path[NODE_PATH_BYTES];                        \
	va_list args;                                      \
	va_start(args, format);                            \
	const bool fits = format_path(path, format, args); \
	va_end(args)

static void trim_blanks(char *text)
{
	size_t length = strlen(text);
	while (length > 0 && isspace((unsigned char)text[length - 1]))
		text[--length] = '\0';
	const size_t first = strspn(text, " \t\r");
	memmove(text, text + first, length - first + 1);
}

static int line_of(const char *path, char *out, size_t room)
{
	const int code = files_first_line(path, out, room);
	trim_blanks(out);
	utf8_make_plain(out, '?');
	return code ? code : out[0] ? 0 : -ENODATA;
}

int node_line(char *out, size_t room, const char *format, ...)
{
	PATH_OF(path, format);
	out[0] = '\0';
	return fits ? line_of(path, out, room) : -ENAMETOOLONG;
}

int node_number_of(const char *text, double *value)
{
	char *end;
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	const int base = text[0] == '0' && (text[1] | ' ') == 'x' ? 16 : 10;
	errno = 0;
	const unsigned long long number = strtoull(text, &end, base);
	if (errno || *end)
		return errno ? -errno : -EINVAL;
	*value = (double)number;
	return 0;
}

int node_number(double *value, const char *format, ...)
{
	char line[64];
	PATH_OF(path, format);
	const int code = fits ? line_of(path, line, sizeof line) : -ENAMETOOLONG;
	return code ? code : node_number_of(line, value);
}

char *node_text(const char *format, ...)
{
	PATH_OF(path, format);
	return fits ? proc_text(path) : NULL;
}

bool node_has(const char *format, ...)
{
	PATH_OF(path, format);
	return fits && access(path, F_OK) == 0;
}

static int by_version(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

size_t node_each(node_visit *visit, void *context, const char *format, ...)
{
	glob_t found;
	PATH_OF(pattern, format);
	if (!fits || glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
		return 0;
	qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, by_version);
	const size_t count = found.gl_pathc < NODE_VISITS_MAX ? found.gl_pathc : NODE_VISITS_MAX;
	for (size_t i = 0; i < count; i++)
		visit(context, found.gl_pathv[i]);
	globfree(&found);
	return count;
}

const char *node_base(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}
