#include "harness/fit/trace_marks.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TRACE_TALLIED_MAX = 64 };

int trace_marks_add(struct trace_marks *marks, const struct kineto_event *e)
{
	if (marks->count == TRACE_MARKS_MAX) {
		marks->lost++;
		return 0;
	}
	if (marks->count == marks->room) {
		const size_t room = marks->room ? 2 * marks->room : 64;
		struct trace_mark *of = realloc(marks->of, room * sizeof *of);
		if (!of)
			return -ENOMEM;
		marks->of = of;
		marks->room = room;
	}
	const char *number = strchr(e->name, '#');
	const bool counts = number && isdigit((unsigned char)number[1]);
	marks->of[marks->count++] = (struct trace_mark){e->begin_ns, e->end_ns, e->thread,
		e->process, counts ? strtol(number + 1, NULL, 10) : -1};
	return 0;
}

static int trace_mark_order(const void *a, const void *b)
{
	const struct trace_mark *left = a;
	const struct trace_mark *right = b;

	return (left->begin_ns > right->begin_ns) - (left->begin_ns < right->begin_ns);
}

/* How many marks the first few threads or processes have, and which of them has most. */
struct trace_tally {
	uint64_t ids[TRACE_TALLIED_MAX];
	size_t counts[TRACE_TALLIED_MAX];
	size_t count, most;
};

static struct trace_tally trace_marks_tally(const struct trace_marks *marks, bool of_processes)
{
	struct trace_tally tally = {0};

	for (size_t i = 0; i < marks->count; i++) {
		const uint64_t id = of_processes ? marks->of[i].process : marks->of[i].thread;
		size_t at = 0;
		while (at < tally.count && tally.ids[at] != id)
			at++;
		if (at == TRACE_TALLIED_MAX)
			continue;
		tally.ids[at] = id;
		tally.count += at == tally.count;
		if (++tally.counts[at] > tally.counts[tally.most])
			tally.most = at;
	}
	return tally;
}

uint64_t trace_marks_thread(const struct trace_marks *marks)
{
	const struct trace_tally tally = trace_marks_tally(marks, false);

	return tally.ids[tally.most];
}

size_t trace_marks_processes(const struct trace_marks *marks)
{
	const struct trace_tally tally = trace_marks_tally(marks, true);
	size_t trains = 0;

	for (size_t i = 0; i < tally.count; i++)
		trains += tally.counts[i] >= TRACE_STEPS_LEAST;
	return trains;
}

void trace_marks_drop_zeros(struct trace_marks *marks)
{
	size_t kept = 0;

	for (size_t i = 0; i < marks->count; i++)
		if (marks->of[i].begin_ns != 0)
			marks->of[kept++] = marks->of[i];
	marks->count = kept;
}

size_t trace_marks_settle(struct trace_marks *marks, uint64_t thread)
{
	const size_t all = marks->count;
	size_t kept = 0;
	size_t others = 0;

	if (all > 0)
		qsort(marks->of, all, sizeof *marks->of, trace_mark_order);
	for (size_t i = 0; i < all; i++) {
		const struct trace_mark *last = kept > 0 ? &marks->of[kept - 1] : NULL;
		if (marks->of[i].thread != thread)
			others++;
		else if (!last || marks->of[i].begin_ns >=
					  last->begin_ns + (last->end_ns - last->begin_ns) / 2)
			marks->of[kept++] = marks->of[i];
	}
	marks->count = kept;
	return others;
}

/* The first of settled marks that begins at a moment or later. */
static size_t trace_marks_from(const struct trace_marks *marks, int64_t at_ns)
{
	size_t low = 0;
	size_t high = marks->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (marks->of[middle].begin_ns < at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t trace_marks_within(const struct trace_marks *marks, int64_t begin_ns, int64_t end_ns)
{
	return trace_marks_from(marks, end_ns) - trace_marks_from(marks, begin_ns);
}

bool trace_marks_twice(struct trace_marks *steps, uint64_t thread)
{
	const struct trace_mark *last = NULL;
	size_t twice = 0;
	size_t others = 0;

	if (steps->count > 0)
		qsort(steps->of, steps->count, sizeof *steps->of, trace_mark_order);
	for (size_t i = 0; i < steps->count; i++) {
		const struct trace_mark *mark = &steps->of[i];
		if (mark->thread != thread || mark->number < 0)
			continue;
		const int64_t later = last ? mark->begin_ns - last->begin_ns : 0;
		const bool same = last && mark->number == last->number;
		twice += same && later > (last->end_ns - last->begin_ns) / 100;
		others += last && !same;
		last = mark;
	}
	return others > 0 && 3 * twice > steps->count;
}
