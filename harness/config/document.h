/* The key table as documents: help on the terminal and the manual page.  All append to out, which
 * the caller checks for failure and releases. */
#ifndef MLBENCH_CONFIG_DOCUMENT_H
#define MLBENCH_CONFIG_DOCUMENT_H

#include "harness/base/buffer.h"
#include "harness/base/error.h"

/* `mlbench help keys`: every key by section, with default, values and meaning, wrapped to width
 * columns (at least 60). */
void document_keys(struct buffer *out, size_t width);

/* `mlbench help decode.workers`, or of a whole section: `mlbench help decode`.  -EINVAL with the
 * nearest name when there is neither. */
int document_key(struct buffer *out, const char *name, size_t width, struct error *err);

/* Words that begin in `column` of a line that has been begun, wrapped to width columns, and the line's end. */
void document_wrap(struct buffer *out, const char *text, size_t column, size_t width);

/* mlbench.ini.5 in mdoc(7); date as "May 4, 2025". */
void document_manual(struct buffer *out, const char *date);

#endif
