/* Keeping the latest rounds of each segment; when segments are joined, the latest of both. */
#include "pipelines/lateness.h"

#include "harness/base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int lateness_open(struct lateness *l)
{
	*l = (struct lateness){.segments = memory_touched(LATENESS_SEGMENTS, sizeof *l->segments)};
	return l->segments ? service_log_open(&l->log, LATENESS_SEGMENTS) : -ENOMEM;
}

void lateness_close(struct lateness *l)
{
	service_log_close(&l->log);
	free(l->segments);
	*l = (struct lateness){0};
}

void lateness_start(struct lateness *l, uint64_t start_ns, uint64_t segment_ns)
{
	service_log_start(&l->log, start_ns, segment_ns);
	l->length_ns = segment_ns;
}

static bool lateness_is_later(const struct late_round *a, const struct late_round *b)
{
	return a->late_ns > b->late_ns || (a->late_ns == b->late_ns && a->step < b->step);
}

static void lateness_put(struct late_segment *segment, const struct late_round *round)
{
	size_t at = segment->count;
	while (at > 0 && lateness_is_later(round, &segment->list[at - 1]))
		at--;
	if (at == LATE_ROUNDS_MAX || round->late_ns == 0)
		return;
	segment->count += segment->count < LATE_ROUNDS_MAX;
	memmove(&segment->list[at + 1], &segment->list[at],
		(segment->count - at - 1) * sizeof *segment->list);
	segment->list[at] = *round;
}

static void lateness_merge(struct late_segment *to, const struct late_segment *from)
{
	for (size_t i = 0; i < from->count; i++)
		lateness_put(to, &from->list[i]);
}

/* As the log's segments did. */
static void lateness_halve(struct lateness *l)
{
	for (size_t i = 0; i < LATENESS_SEGMENTS; i++) {
		const struct late_segment segment = l->segments[i];
		l->segments[i].count = 0;
		lateness_merge(&l->segments[i / 2], &segment);
	}
	l->length_ns *= 2;
}

void lateness_add(struct lateness *l, uint64_t ended_ns, const struct late_round *round)
{
	if (!l->segments)
		return;
	service_log_add(&l->log, ended_ns, round->late_ns, 1);
	while (l->length_ns < l->log.length_ns)
		lateness_halve(l);
	lateness_put(&l->segments[l->log.current], round);
}

/* As service_log_merge does. */
static void lateness_merge_between(
	const struct lateness *l, uint64_t from_ns, uint64_t to_ns, struct ranks_measurement *out)
{
	struct late_segment worst = {.count = 0};
	service_log_merge(&l->log, from_ns, to_ns, &out->lateness);
	for (uint64_t i = (from_ns + l->length_ns - 1) / l->length_ns;
		i < LATENESS_SEGMENTS && i * l->length_ns < to_ns; i++)
		lateness_merge(&worst, &l->segments[i]);
	memcpy(out->worst, worst.list, sizeof worst.list);
	out->worst_count = worst.count;
}

void lateness_fill(
	const struct lateness *l, uint64_t from_ns, uint64_t to_ns, struct ranks_measurement *out)
{
	if (!l->segments || l->length_ns == 0)
		return;
	lateness_merge_between(l, from_ns, to_ns, out);
	/* A run of few rounds may have none that began after the rounded-up cut. */
	if (out->lateness.count == 0)
		lateness_merge_between(l, 0, UINT64_MAX, out);
}
