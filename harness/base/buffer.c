/* A growing byte string. */
#include "harness/base/buffer.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool grow_buffer(struct buffer *buffer, size_t extra)
{
	if (buffer->failed)
		return false;
	if (buffer->size + extra + 1 <= buffer->room)
		return true;
	size_t room = buffer->room ? buffer->room : 256;
	while (room < buffer->size + extra + 1)
		room *= 2;
	char *data = realloc(buffer->data, room);
	if (!data) {
		buffer->failed = true;
		return false;
	}
	buffer->data = data;
	buffer->room = room;
	return true;
}

void buffer_add(struct buffer *buffer, const void *bytes, size_t size)
{
	if (!grow_buffer(buffer, size))
		return;
	if (size > 0)
		memcpy(buffer->data + buffer->size, bytes, size);
	buffer->size += size;
	buffer->data[buffer->size] = '\0';
}

void buffer_text(struct buffer *buffer, const char *text)
{
	buffer_add(buffer, text, strlen(text));
}

void buffer_sentence(struct buffer *buffer, const char *words)
{
	const char *dot = memchr(words, '.', strcspn(words, " "));
	const bool key = dot && islower((unsigned char)dot[1]);
	const char first = (char)(key ? words[0] : toupper((unsigned char)words[0]));
	if (first == '\0')
		return;
	buffer_add(buffer, &first, 1);
	buffer_text(buffer, words + 1);
}

void buffer_format(struct buffer *buffer, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	va_list again;
	va_copy(again, args);
	const int length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (length >= 0 && grow_buffer(buffer, (size_t)length)) {
		(void)vsnprintf(buffer->data + buffer->size, (size_t)length + 1, format, again);
		buffer->size += (size_t)length;
	}
	va_end(again);
}

void buffer_repeat(struct buffer *buffer, const char *text, int times)
{
	for (int i = 0; i < times; i++)
		buffer_text(buffer, text);
}

void buffer_release(struct buffer *buffer)
{
	free(buffer->data);
	*buffer = (struct buffer){0};
}

/* --- for the shell ---------------------------------------------------------------------------- */

/* Quoting for the shell. */

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
