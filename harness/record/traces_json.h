/* Traces of a repetition as one JSON object, "mlbench.traces/1", and back: columns as arrays of
 * integers (ns, bytes), a column that is the same all through as one number, one that does not apply
 * left out. */
#ifndef MLBENCH_RECORD_TRACES_JSON_H
#define MLBENCH_RECORD_TRACES_JSON_H

#include "harness/base/buffer.h"
#include "harness/base/error.h"
#include "harness/record/trace.h"

#include <jansson.h>

/* ended: of the repetition they are of, seconds since the epoch.  out->failed without memory. */
void traces_to_json(const struct traces *traces, double ended, struct buffer *out);

/* Fills traces (initialised here; released by the caller in any case).  -EINVAL with what is wrong. */
int traces_from_json(struct traces *traces, double *ended, const json_t *object, struct error *err);

#endif
