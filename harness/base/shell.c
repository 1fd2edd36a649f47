/* Quoting for the shell. */
#include "harness/base/shell.h"

#include <stdbool.h>
#include <string.h>

static bool is_plain_word(const char *text)
{
	static const char safe[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=.,:/@%";
	return *text && text[strspn(text, safe)] == '\0';
}

static bool is_text(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || (unsigned char)*text >= 0x7f)
			return false;
	return true;
}

static void put_quoted(const char *text, struct buffer *out)
{
	buffer_text(out, "'");
	for (; *text; text++)
		if (*text == '\'')
			buffer_text(out, "'\\''");
		else
			buffer_add(out, text, 1);
	buffer_text(out, "'");
}

static void put_control(const char *text, struct buffer *out)
{
	buffer_text(out, "$'");
	for (; *text; text++) {
		const unsigned char c = (unsigned char)*text;
		if (c < 0x20 || c >= 0x7f)
			buffer_format(out, "\\x%02x", c);
		else if (c == '\'' || c == '\\')
			buffer_format(out, "\\%c", c);
		else
			buffer_add(out, text, 1);
	}
	buffer_text(out, "'");
}

void shell_word(const char *text, struct buffer *out)
{
	if (is_plain_word(text))
		buffer_text(out, text);
	else if (is_text(text))
		put_quoted(text, out);
	else
		put_control(text, out);
}
