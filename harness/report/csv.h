/* Fields of comma-separated values. */
#ifndef MLBENCH_REPORT_CSV_H
#define MLBENCH_REPORT_CSV_H

#include "harness/base/buffer.h"

/* RFC 4180: a field with a comma, a quote or a line break is quoted. */
void csv_text(struct buffer *out, const char *text);

#endif
