/* Within harness/report/html: which bytes of a text are shown, and data for the page's script. */
#ifndef MLBENCH_REPORT_HTML_HTML_H
#define MLBENCH_REPORT_HTML_HTML_H

#include "harness/report/html/page.h"

#include <stddef.h>

#define HTML_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD, for what is not */

/* How many bytes at the beginning of text are to be replaced: a control character (but tab and newline), one that
 * turns the direction of what follows, or a byte that is no UTF-8; 0: none.  *text is not 0. */
size_t html_unshown(const char *text);

/* {"title": ..., "spec": {...}, "columns": {"FIELD": [...], ...}}, so written that it cannot end the script element
 * that it stands in.  Without memory out becomes failed. */
void page_data(const struct chart *chart, struct buffer *out);

#endif
