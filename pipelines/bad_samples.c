/* The list of bad samples. */
#include "pipelines/bad_samples.h"

#include "harness/base/clock.h"

#include <stdbool.h>
#include <stdio.h>

int bad_samples_open(struct bad_samples *bad)
{
	*bad = (struct bad_samples){0};
	return -pthread_mutex_init(&bad->lock, NULL);
}

void bad_samples_close(struct bad_samples *bad)
{
	(void)pthread_mutex_destroy(&bad->lock);
}

static bool is_listed(const struct bad_samples *bad, uint32_t sample)
{
	for (uint32_t i = 0; i < bad->listed; i++)
		if (bad->list[i].sample == sample)
			return true;
	return false;
}

void bad_samples_add(struct bad_samples *bad, uint32_t sample, const char *reason)
{
	(void)pthread_mutex_lock(&bad->lock);
	bad->count++;
	if (bad->listed < BAD_LISTED && !is_listed(bad, sample)) {
		bad->list[bad->listed].sample = sample;
		(void)snprintf(bad->list[bad->listed].reason, BAD_REASON_BYTES, "%s", reason);
		bad->listed++;
	}
	(void)pthread_mutex_unlock(&bad->lock);
}

void bad_samples_broken_off(struct bad_samples *bad, uint32_t sample, uint64_t took_ns)
{
	(void)pthread_mutex_lock(&bad->lock);
	if (took_ns >= NS_PER_S && took_ns > bad->slow_ns) {
		bad->slow_ns = took_ns;
		bad->slow = sample;
	}
	(void)pthread_mutex_unlock(&bad->lock);
}

uint64_t bad_samples_count(struct bad_samples *bad)
{
	(void)pthread_mutex_lock(&bad->lock);
	const uint64_t count = bad->count;
	(void)pthread_mutex_unlock(&bad->lock);
	return count;
}

void bad_samples_report(
	const struct bad_samples *bad, const struct dataset *dataset, struct measurement *m)
{
	m->bad_samples = bad->count;
	for (uint32_t i = 0; i < bad->listed; i++)
		measurement_note(m, "bad sample '%s': %s",
			dataset->samples[bad->list[i].sample].path, bad->list[i].reason);
	if (bad->slow_ns > 0)
		measurement_note(m,
			"slow sample '%s': decoding it had taken %.1f s when the run ended, and all of its batch waited for it",
			dataset->samples[bad->slow].path, (double)bad->slow_ns / (double)NS_PER_S);
}
