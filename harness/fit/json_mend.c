#include "harness/fit/json_mend.h"

#include "harness/base/array.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

static bool mend_is_hex(const char *text, size_t size)
{
	for (size_t i = 0; i < size && i < 4; i++)
		if (!isxdigit((unsigned char)text[i]))
			return false;
	return true;
}

static size_t mend_blanks(const char *text, size_t size)
{
	size_t at = 0;

	while (at < size && text[at] && strchr(" \t\r\n", text[at]))
		at++;
	return at;
}

/* Whether a key and its colon begin behind blanks; what is cut off may be one. */
static bool mend_is_key(const char *text, size_t size)
{
	enum { KEY_BYTES_MOST = 128 };
	size_t at = mend_blanks(text, size);

	if (at == size)
		return true;
	if (text[at] != '"')
		return false;
	const char *end = memchr(text + at + 1, '"', size - at - 1);
	if (!end)
		return size - at < KEY_BYTES_MOST;
	at = (size_t)(end - text) + 1;
	at += mend_blanks(text + at, size - at);
	return at == size || text[at] == ':';
}

/* Whether a quote ends its string, by what follows it: behind a value of an object, another key or
 * the object's end. */
static bool mend_ends_string(const char *text, size_t size, bool value)
{
	const size_t at = mend_blanks(text, size);

	if (at == size)
		return true;
	if (!value)
		return text[at] && strchr(",:}]", text[at]);
	if (text[at] == ',')
		return mend_is_key(text + at + 1, size - at - 1);
	if (text[at] != '}')
		return false;
	const size_t next = at + 1 + mend_blanks(text + at + 1, size - at - 1);
	return next == size || (text[next] && strchr(",}]{", text[next]));
}

/* Whether an escaped quote ends its string all the same, as behind a path of Windows: a key
 * follows, which it does in no string of JSON. */
static bool mend_ends_in_backslash(const char *text, size_t size)
{
	const size_t at = mend_blanks(text, size);

	return at + 2 < size && text[at] == ',' && mend_is_key(text + at + 1, size - at - 1);
}

/* How long the number at this place is that JSON does not know (nan, -Infinity); 0: there is none. */
static size_t mend_odd_number(const char *text, size_t size)
{
	static const char *const words[] = {"infinity", "inf", "nan"};
	const size_t sign = size > 0 && (text[0] == '-' || text[0] == '+');

	for (size_t i = 0; i < COUNT(words); i++) {
		const size_t length = sign + strlen(words[i]);
		if (length <= size && strncasecmp(text + sign, words[i], length - sign) == 0 &&
			(length == size || !isalnum((unsigned char)text[length])))
			return length;
	}
	return 0;
}

void json_mend(struct json_mend *state, const char *text, char *out, size_t size, size_t all)
{
	if (out != text)
		memcpy(out, text, size);
	for (size_t i = 0; i < size; i++) {
		const unsigned char c = (unsigned char)text[i];
		if (state->at == JSON_MEND_ESCAPE && c == '"' && i > 0 &&
			mend_ends_in_backslash(text + i + 1, all - i - 1)) {
			out[i - 1] = ' ';
			state->at = JSON_MEND_OUTSIDE;
		} else if (state->at == JSON_MEND_ESCAPE) {
			if (!c || !strchr("\"\\/bfnrtu", c) ||
				(c == 'u' && !mend_is_hex(text + i + 1, all - i - 1)))
				out[i] = '\\';
			state->at = JSON_MEND_STRING;
		} else if (state->at == JSON_MEND_STRING) {
			if (c == '\\')
				state->at = JSON_MEND_ESCAPE;
			else if (c < ' ')
				out[i] = ' ';
			else if (c == '"' &&
				 mend_ends_string(text + i + 1, all - i - 1, state->value))
				state->at = JSON_MEND_OUTSIDE;
			else if (c == '"')
				out[i] = '\'';
		} else if (c == '"') {
			state->at = JSON_MEND_STRING;
		} else if (c == ':' || c == ',' || c == '[' || c == '{') {
			state->value = c == ':';
		} else if (c == '-' || c == '+' || isalpha(c)) {
			const size_t odd = mend_odd_number(text + i, size - i);
			if (odd > 0) {
				memset(out + i, ' ', odd);
				out[i] = out[i + 1] = '"';
				i += odd - 1;
			}
		}
	}
}
