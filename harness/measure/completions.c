/* The log of completed steps. */
#include "harness/measure/completions.h"

#include "harness/base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int completions_open(struct completions *c, size_t room)
{
	*c = (struct completions){.room = room, .stride = 1};
	c->entries = memory_touched(room, sizeof *c->entries);
	return c->entries ? 0 : -ENOMEM;
}

void completions_close(struct completions *c)
{
	free(c->entries);
	*c = (struct completions){0};
}

static void thin_completions(struct completions *c)
{
	for (size_t i = 0; i < c->count / 2; i++)
		c->entries[i] = c->entries[2 * i + 1];
	c->count /= 2;
	c->stride *= 2;
}

void completions_add(struct completions *c, const struct completion *now)
{
	c->last = *now;
	if (now->batches % c->stride != 0)
		return;
	if (c->count == c->room) {
		thin_completions(c);
		if (now->batches % c->stride != 0)
			return;
	}
	c->entries[c->count++] = *now;
}

/* Index of the first entry at t_ns or later. */
static size_t find_completion(const struct completions *c, uint64_t t_ns)
{
	size_t low = 0;
	size_t high = c->count;
	while (low < high) {
		const size_t middle = (low + high) / 2;
		if (c->entries[middle].t_ns < t_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint64_t completions_between(
	const struct completions *c, uint64_t cut_ns, uint64_t end_ns, struct completion *out)
{
	*out = (struct completion){0};
	const size_t first = find_completion(c, cut_ns);
	const size_t end = find_completion(c, end_ns + 1);
	if (first >= end)
		return 0;
	const struct completion *a = &c->entries[first];
	const struct completion *b = c->last.t_ns <= end_ns ? &c->last : &c->entries[end - 1];
	out->t_ns = b->t_ns - a->t_ns;
	out->samples = b->samples - a->samples;
	out->batches = b->batches - a->batches;
	out->device_ns = b->device_ns - a->device_ns;
	out->oversleep_ns = b->oversleep_ns - a->oversleep_ns;
	out->stepped = b->stepped - a->stepped;
	out->launch_ns = b->launch_ns - a->launch_ns;
	out->sync_ns = b->sync_ns - a->sync_ns;
	out->copy_ns = b->copy_ns - a->copy_ns;
	out->copy_bytes = b->copy_bytes - a->copy_bytes;
	out->idle_ns = b->idle_ns - a->idle_ns;
	out->idle_of_ns = b->idle_of_ns - a->idle_of_ns;
	return out->batches + 1;
}

void completions_add_standstill(const struct completions *c, uint64_t cut_ns, uint64_t end_ns,
	uint64_t least_ns, struct completion *out)
{
	const size_t first = find_completion(c, cut_ns);
	const size_t end = find_completion(c, end_ns + 1);
	if (first + 2 > end)
		return;
	uint64_t longest_ns = 0;
	for (size_t i = first + 1; i < end; i++) {
		const uint64_t between_ns = c->entries[i].t_ns - c->entries[i - 1].t_ns;
		longest_ns = between_ns > longest_ns ? between_ns : longest_ns;
	}
	const uint64_t last_ns = c->last.t_ns <= end_ns ? c->last.t_ns : c->entries[end - 1].t_ns;
	const uint64_t ends_ns[] = {c->entries[first].t_ns - cut_ns, end_ns - last_ns};
	for (int i = 0; i < 2; i++)
		if (ends_ns[i] > 2 * longest_ns && ends_ns[i] > least_ns)
			out->t_ns += ends_ns[i];
}

double completions_samples_at(const struct completions *c, uint64_t t_ns)
{
	const size_t at = find_completion(c, t_ns);
	const struct completion zero = {0};
	const struct completion *before = at > 0 ? &c->entries[at - 1] : &zero;
	const struct completion *after = at < c->count ? &c->entries[at] : &c->last;
	if (after->t_ns <= before->t_ns || t_ns >= after->t_ns)
		return (double)after->samples;
	const double share = (double)(t_ns - before->t_ns) / (double)(after->t_ns - before->t_ns);
	return (double)before->samples + share * (double)(after->samples - before->samples);
}
