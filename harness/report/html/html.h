/* Within harness/report/html: which bytes of a text are shown. */
#ifndef MLBENCH_REPORT_HTML_HTML_H
#define MLBENCH_REPORT_HTML_HTML_H

#include <stddef.h>

#define HTML_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD, for what is not */

/* How many bytes at the beginning of text are to be replaced: a control character (but tab and newline), one that
 * turns the direction of what follows, or a byte that is no UTF-8; 0: none.  *text is not 0. */
size_t html_unshown(const char *text);

#endif
