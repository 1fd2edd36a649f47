/* Histograms per segment of time. */
#include "harness/measure/service_log.h"

#include "harness/base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int service_log_open(struct service_log *log, unsigned segments)
{
	*log = (struct service_log){.segments = segments};
	log->histograms = memory_touched(segments, sizeof *log->histograms);
	return log->histograms ? 0 : -ENOMEM;
}

void service_log_close(struct service_log *log)
{
	free(log->histograms);
	*log = (struct service_log){0};
}

void service_log_start(struct service_log *log, uint64_t start_ns, uint64_t length_ns)
{
	log->start_ns = start_ns;
	log->length_ns = length_ns;
	log->end_ns = start_ns + length_ns;
	log->current = 0;
}

/* Two old segments become one; the upper half is empty again. */
static void halve(struct service_log *log)
{
	const unsigned half = log->segments / 2;
	for (unsigned i = 0; i < half; i++) {
		if (i > 0)
			log->histograms[i] = log->histograms[2 * i];
		histogram_merge(&log->histograms[i], &log->histograms[2 * i + 1]);
	}
	memset(&log->histograms[half], 0, half * sizeof *log->histograms);
	log->length_ns *= 2;
}

void service_log_advance(struct service_log *log, uint64_t now_ns)
{
	while (now_ns - log->start_ns >= log->segments * log->length_ns)
		halve(log);
	log->current = (unsigned)((now_ns - log->start_ns) / log->length_ns);
	log->end_ns = log->start_ns + (log->current + 1) * log->length_ns;
}

void service_log_merge(const struct service_log *log, uint64_t cut_ns, struct histogram *to)
{
	if (log->length_ns == 0)
		return; /* never started */
	const uint64_t first = (cut_ns + log->length_ns - 1) / log->length_ns;
	for (uint64_t i = first; i < log->segments; i++)
		histogram_merge(to, &log->histograms[i]);
}
