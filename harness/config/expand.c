/* Variables in values.  An undefined one is an error wherever it stands: a path with a hole in it
 * is another path. */
#include "harness/config/expand.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 128, NESTING_MAX = 8, EXPANDED_BYTES_MAX = 256 * 1024 };

static int expand_span(
	const char *text, size_t size, int depth, struct buffer *out, struct error *err);

/* The '}' that closes a "${" whose body starts at text, or NULL. */
static const char *closing_brace(const char *text, const char *end)
{
	int open = 1;
	for (const char *at = text; at < end; at++) {
		if (*at == '$' && at + 1 < end && at[1] == '{')
			open++;
		else if (*at == '}' && --open == 0)
			return at;
	}
	return NULL;
}

static size_t name_length(const char *text, const char *end)
{
	const char *at = text;
	while (at < end && (isalnum((unsigned char)*at) || *at == '_'))
		at++;
	return at > text && isdigit((unsigned char)*text) ? 0 : (size_t)(at - text);
}

/* The body of "${...}". */
static int expand_body(
	const char *body, const char *end, int depth, struct buffer *out, struct error *err)
{
	char name[NAME_BYTES];
	const size_t length = name_length(body, end);
	const char *rest = body + length;
	const bool has_default = end - rest >= 2 && rest[0] == ':' && rest[1] == '-';
	if (length == 0 || length >= sizeof name || (rest != end && !has_default))
		return error_set(err, -EINVAL,
			"bad variable '${%.*s}'; write '${NAME}' or '${NAME:-default}'",
			(int)(end - body < 48 ? end - body : 48), body);
	memcpy(name, body, length);
	name[length] = '\0';
	const char *value = getenv(name);
	if (value && (*value || !has_default)) {
		buffer_text(out, value);
		return 0;
	}
	if (has_default)
		return expand_span(rest + 2, (size_t)(end - rest - 2), depth + 1, out, err);
	return error_set(err, -EINVAL,
		"variable '%s' is not defined; set it, or write '${%s:-default}'", name, name);
}

/* What a '$' at `at` stands for; *next is where to go on. */
static int expand_dollar(const char *at, const char *end, int depth, const char **next,
	struct buffer *out, struct error *err)
{
	const char follower = at + 1 < end ? at[1] : '\0';
	if (follower == '$' || follower == '#' || follower == ';') {
		buffer_add(out, at + 1, 1);
		*next = at + 2;
		return 0;
	}
	if (follower != '{')
		return error_set(err, -EINVAL,
			"stray '$'; write '${NAME}' for a variable and '$$' for a dollar");
	const char *close = closing_brace(at + 2, end);
	if (!close)
		return error_set(err, -EINVAL, "'${' without '}'");
	*next = close + 1;
	return expand_body(at + 2, close, depth, out, err);
}

static int expand_span(
	const char *text, size_t size, int depth, struct buffer *out, struct error *err)
{
	const char *end = text + size;
	if (depth > NESTING_MAX)
		return error_set(err, -EINVAL, "variables nested more than %d deep", NESTING_MAX);
	while (text < end) {
		const char *dollar = memchr(text, '$', (size_t)(end - text));
		const char *stop = dollar ? dollar : end;
		buffer_add(out, text, (size_t)(stop - text));
		text = stop;
		const int code = dollar ? expand_dollar(dollar, end, depth, &text, out, err) : 0;
		if (code)
			return code;
		if (out->size > EXPANDED_BYTES_MAX)
			return error_set(
				err, -EINVAL, "value is longer than %d bytes", EXPANDED_BYTES_MAX);
	}
	return 0;
}

int expand_variables(const char *text, struct buffer *out, struct error *err)
{
	buffer_text(out, "");
	const int code = expand_span(text, strlen(text), 0, out, err);
	if (!code && out->failed)
		return error_set(err, -ENOMEM, "out of memory");
	return code;
}
