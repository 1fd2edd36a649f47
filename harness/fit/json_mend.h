/* Text that is almost JSON, as programs write it that do not escape their strings, or write nan: a parser reads it once it is mended. */
#ifndef MLBENCH_FIT_JSON_MEND_H
#define MLBENCH_FIT_JSON_MEND_H

#include <stddef.h>

/* Where the text before ended; JSON_MEND_OUTSIDE at its beginning. */
enum json_mend { JSON_MEND_OUTSIDE, JSON_MEND_STRING, JSON_MEND_ESCAPE };

/* Copies size bytes to out, which may be text itself: in strings, unknown escapes become a backslash, control characters blanks, and quotes
 * that do not end their string apostrophes; outside, nan, inf and the like become "", which is no number.  all: how many bytes there are to
 * look at. */
void json_mend(enum json_mend *state, const char *text, char *out, size_t size, size_t all);

#endif
