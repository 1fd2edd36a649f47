/* Text of unknown origin: what of it are characters and may be shown, and the nearest of a list of
 * names. */
#ifndef MLBENCH_BASE_TEXT_H
#define MLBENCH_BASE_TEXT_H

#include "harness/base/buffer.h"

#include <stdbool.h>
#include <stddef.h>

/* --- characters ------------------------------------------------------------------------------- */

/* Text of unknown origin: which of its bytes are characters (UTF-8, RFC 3629), and what may be shown. */

#define UTF8_REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

/* Bytes of the character that text begins with; 0 where it begins with none (over-long forms, surrogates,
 * a torn end) or is at its end. */
size_t utf8_character(const char *text);

/* A control character (C0, DEL, C1): a terminal may obey it. */
bool utf8_is_control(const char *character);

/* text with control characters and bytes that are no UTF-8 as `replacement`: fit for a terminal's line. */
void utf8_add_plain(struct buffer *out, const char *text, const char *replacement);

/* The same in place, without memory of its own; it never grows. */
void utf8_make_plain(char *text, char replacement);

/* --- did you mean ----------------------------------------------------------------------------- */

/* "did you mean": the nearest of a list of names. */

/* The name with the least Damerau-Levenshtein distance to word, or NULL when none is near enough to
 * be worth saying (distance above a third of the longer word, at least 2). */
const char *suggest_nearest(const char *word, const char *const *names, size_t count);

#endif
