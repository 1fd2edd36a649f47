/* Text that is almost JSON, as programs write it that do not escape their strings, or write nan: a
 * parser reads it once it is mended. */
#ifndef MLBENCH_FIT_JSON_MEND_H
#define MLBENCH_FIT_JSON_MEND_H

#include <stdbool.h>
#include <stddef.h>

/* Where the text before ended; {0} at its beginning. */
struct json_mend {
	enum json_mend_at { JSON_MEND_OUTSIDE, JSON_MEND_STRING, JSON_MEND_ESCAPE } at;
	bool value; /* a colon stands before the string: it is a value of an object */
};

/* Copies size bytes to out, which may be text itself: in strings, unknown escapes become a
 * backslash, control characters blanks, and quotes that do not end their string apostrophes;
 * outside, nan, inf and the like become "", which is no number.  all: how many bytes there are to
 * look at. */
void json_mend(struct json_mend *state, const char *text, char *out, size_t size, size_t all);

#endif
