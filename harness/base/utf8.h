/* Text of unknown origin: which of its bytes are characters (UTF-8, RFC 3629), and what may be shown. */
#ifndef MLBENCH_BASE_UTF8_H
#define MLBENCH_BASE_UTF8_H

#include "harness/base/buffer.h"

#include <stdbool.h>
#include <stddef.h>

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

#endif
