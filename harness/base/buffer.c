/* A growing byte string. */
#include "harness/base/buffer.h"

#include <ctype.h>
#include <stdarg.h>
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
