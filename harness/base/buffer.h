/* A growing byte string for writers of text: one allocation failure makes it sticky-failed, so the
 * caller checks once at the end. */
#ifndef MLBENCH_BASE_BUFFER_H
#define MLBENCH_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct buffer {
	char *data; /* always NUL-terminated once non-NULL; owned */
	size_t size;
	size_t room;
	bool failed;
};

void buffer_add(struct buffer *buffer, const void *bytes, size_t size);
void buffer_text(struct buffer *buffer, const char *text);
/* Words that begin a sentence: with a capital, unless a key does ("decode.workers=2 keeps ..."). */
void buffer_sentence(struct buffer *buffer, const char *words);
void buffer_format(struct buffer *buffer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void buffer_repeat(struct buffer *buffer, const char *text, int times);
void buffer_release(struct buffer *buffer); /* safe on {0} */

#endif
