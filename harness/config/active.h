/* The part of a repetition in which planted slow-downs act (inject.begin, inject.end). */
#ifndef MLBENCH_CONFIG_ACTIVE_H
#define MLBENCH_CONFIG_ACTIVE_H

#include "harness/config/config.h"

#include <stdbool.h>
#include <stdint.h>

/* ns since the start of the repetition, warm-up included; {0}: always. */
struct active_span {
	uint64_t begin_ns, end_ns;
};

/* Shares of measure.warmup + measure.duration; what runs on beyond the planned time belongs to the
 * last part.  A run by epochs has no planned time: always. */
struct active_span active_span_of(const struct config *config);

static inline bool active_at(const struct active_span *span, uint64_t since_start_ns)
{
	return span->end_ns == 0 ||
	       (since_start_ns >= span->begin_ns && since_start_ns < span->end_ns);
}

#endif
