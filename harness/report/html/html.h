/* Within harness/report/html: which bytes of a text are shown, and data for the page's script. */
#ifndef MLBENCH_REPORT_HTML_HTML_H
#define MLBENCH_REPORT_HTML_HTML_H

#include "harness/report/html/page.h"

#include <stddef.h>

#define HTML_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD, for what is not */

/* {"title": ..., "columns": {"FIELD": [...], ...}} and the members of the drawing, so written that it cannot end the script
 * element that it stands in.  Without memory out becomes failed. */
void page_data(const struct chart *chart, struct buffer *out);
/* JSON, likewise. */
void page_data_text(const char *text, struct buffer *out);

#endif
