/* Metrics as text, in the two dialects that are read: OpenMetrics 1.0, which a scrape can ask for, and the text format
 * of Prometheus (0.0.4), which node-exporter reads from files and promtool checks.  Names are given as the
 * samples have them ("..._total", "..._info"); the writer knows what each dialect calls the family.
 *
 * Names: https://prometheus.io/docs/practices/naming/; formats: OpenMetrics 1.0 and
 * https://prometheus.io/docs/instrumenting/exposition_formats/. */
#ifndef MLBENCH_REPORT_OPENMETRICS_H
#define MLBENCH_REPORT_OPENMETRICS_H

#include "harness/base/buffer.h"

#include <stddef.h>

enum { OPENMETRICS_LABEL_BYTES = 256 }; /* of a value; what is longer is cut */

#define OPENMETRICS_CONTENT_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define OPENMETRICS_PROMETHEUS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum openmetrics_dialect { OPENMETRICS_1_0, OPENMETRICS_PROMETHEUS };

/* COUNTER: the name ends in "_total".  INFO: in "_info", its samples are 1 (Prometheus: a gauge). */
enum openmetrics_type { OPENMETRICS_GAUGE, OPENMETRICS_COUNTER, OPENMETRICS_INFO };

struct openmetrics_family {
	const char *name; /* of its samples */
	enum openmetrics_type type;
	const char *
		unit; /* "seconds", "bytes", "ratio"; the name (without "_total") ends in it; "": none */
	const char *help; /* one sentence */
};

struct openmetrics_label {
	const char *name, *value; /* value: any bytes; what is no UTF-8 becomes U+FFFD */
};

/* A page of metrics while it is written. */
struct openmetrics {
	struct buffer *out;
	enum openmetrics_dialect dialect;
	const struct openmetrics_family *open; /* the family whose head stands; NULL: none */
};

/* One sample.  The family's head is written before its first one, so that a family without samples does not appear;
 * all samples of a family come one after another.  A value that is not known (NAN) writes nothing: a metric that is
 * absent is told apart from zero. */
void openmetrics_add(struct openmetrics *metrics, const struct openmetrics_family *family,
	const struct openmetrics_label *labels, size_t label_count, double value);

/* The last line; without it a reader of OpenMetrics refuses the page as torn. */
void openmetrics_end(struct openmetrics *metrics);

#endif
