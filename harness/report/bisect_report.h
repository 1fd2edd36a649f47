/* A bisection for people, made of its document (mlbench.bisect/1, docs/bisect.schema.json). */
#ifndef MLBENCH_REPORT_BISECT_REPORT_H
#define MLBENCH_REPORT_BISECT_REPORT_H

#include "harness/base/buffer.h"
#include "harness/report/style.h"

#include <jansson.h>
#include <stdbool.h>

/* path: with each question on the way. */
void bisect_report_text(
	const json_t *document, const struct style *style, bool path, struct buffer *out);

#endif
