/* Lists of nodes that should have reported. */
#include "harness/accept/fleet.h"
#include "harness/base/files.h"
#include "harness/base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	EXPECT_BYTES_MAX = 16 << 20,
	EXPECT_NODES_MAX = 100000,
	EXPECT_NAME_BYTES = 256,
	EXPECT_DIGITS_MAX = 9
};

struct expecting {
	json_t *names, *seen; /* seen: an object, for twins */
	size_t line;
	struct error *err;
};

static int expect_name(struct expecting *expecting, const char *name)
{
	if (json_object_get(expecting->seen, name))
		return 0;
	if (json_array_size(expecting->names) == EXPECT_NODES_MAX)
		return error_set(expecting->err, -EINVAL, "line %zu: more than %d nodes",
			expecting->line, EXPECT_NODES_MAX);
	json_t *text = json_string(name);
	if (!text)
		return error_set(expecting->err, -EINVAL, "line %zu: a name that is no UTF-8",
			expecting->line);
	if (json_object_set_new(expecting->seen, name, json_true()) ||
		json_array_append_new(expecting->names, text))
		return error_set(expecting->err, -ENOMEM, "out of memory");
	return 0;
}

static int refuse_range(const struct expecting *expecting, const char *word)
{
	return error_set(expecting->err, -EINVAL,
		"line %zu: '%.100s' is no list of nodes; write it as 'node[01-40,45]'",
		expecting->line, word);
}

/* "01-40": a number and its digits. */
static const char *take_number(const char *text, unsigned long *number, int *digits)
{
	const size_t length = strspn(text, "0123456789");
	if (length == 0 || length > EXPECT_DIGITS_MAX)
		return NULL;
	*digits = (int)length;
	*number = strtoul(text, NULL, 10);
	return text + length;
}

/* One list in brackets; what follows it has none. */
static int expect_range(struct expecting *expecting, const char *word, const char *open)
{
	const char *close = strchr(open, ']');
	const char *at = open + 1;
	char name[2 * EXPECT_NAME_BYTES];
	int code = close && !strpbrk(close + 1, "[]") && at < close ? 0
								    : refuse_range(expecting, word);
	while (!code && at < close) {
		unsigned long first;
		unsigned long last;
		int digits;
		int ignored;
		const char *end = take_number(at, &first, &digits);
		last = first;
		if (end && *end == '-')
			end = take_number(end + 1, &last, &ignored);
		if (!end || (*end != ',' && *end != ']') || last < first ||
			last - first > EXPECT_NODES_MAX)
			return refuse_range(expecting, word);
		for (unsigned long i = first; i <= last && !code; i++) {
			(void)snprintf(name, sizeof name, "%.*s%0*lu%s", (int)(open - word), word,
				digits, i, close + 1);
			code = expect_name(expecting, name);
		}
		at = end + 1;
	}
	return code;
}

static int expect_word(struct expecting *expecting, const char *word)
{
	const char *open = strchr(word, '[');
	if (open)
		return expect_range(expecting, word, open);
	return strchr(word, ']') ? refuse_range(expecting, word) : expect_name(expecting, word);
}

/* Up to a blank, or a comma that is in no brackets. */
static size_t word_length(const char *text)
{
	size_t length = 0;
	bool inside = false;
	for (; text[length] && !strchr(" \t\r\n#", text[length]); length++) {
		inside = text[length] == '[' || (inside && text[length] != ']');
		if (text[length] == ',' && !inside)
			break;
	}
	return length;
}

static int expect_all(struct expecting *expecting, const char *text)
{
	int code = 0;
	expecting->line = 1;
	while (*text && !code) {
		char word[EXPECT_NAME_BYTES];
		const size_t length = word_length(text);
		if (length >= sizeof word)
			return error_set(expecting->err, -EINVAL,
				"line %zu: a name of more than %d bytes", expecting->line,
				EXPECT_NAME_BYTES - 1);
		if (length > 0) {
			memcpy(word, text, length);
			word[length] = '\0';
			code = expect_word(expecting, word);
			text += length;
			continue;
		}
		if (*text == '#')
			text += strcspn(text, "\n");
		expecting->line += *text == '\n';
		text += *text != '\0';
	}
	return code;
}

int fleet_expect_parse(const char *text, json_t **names, struct error *err)
{
	struct expecting expecting = {.names = json_array(), .seen = json_object(), .err = err};
	int code = expecting.names && expecting.seen ? expect_all(&expecting, text) : -ENOMEM;
	if (!code && json_array_size(expecting.names) == 0)
		code = error_set(err, -EINVAL, "it names no node");
	json_decref(expecting.seen);
	*names = code ? NULL : expecting.names;
	if (code)
		json_decref(expecting.names);
	return code;
}

int fleet_expect_read(const char *path, json_t **names, struct error *err)
{
	char *text = NULL;
	size_t size = 0;
	*names = NULL;
	int code = files_read(path, EXPECT_BYTES_MAX, &text, &size, err);
	if (code)
		return code;
	code = fleet_expect_parse(text, names, err);
	free(text);
	return code ? error_prefix(err, code, "'%.300s'", path) : 0;
}
