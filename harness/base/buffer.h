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

/* --- for the shell ---------------------------------------------------------------------------- */

/* Words as a POSIX shell reads them back. */

/* text as one word: as it is where that is safe, else quoted.  Control characters and bytes above ASCII are written as
 * $'\x1b', which bash, zsh and ksh read, so that the word is plain text whatever it holds. */
void shell_word(const char *text, struct buffer *out);

#endif
