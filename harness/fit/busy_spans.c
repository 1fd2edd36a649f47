#include "harness/fit/busy_spans.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

void busy_spans_open(struct busy_spans *spans, size_t most)
{
	*spans = (struct busy_spans){.most = most};
}

void busy_spans_close(struct busy_spans *spans)
{
	free(spans->of);
	*spans = (struct busy_spans){0};
}

static int busy_order(const void *a, const void *b)
{
	const struct busy_span *left = a;
	const struct busy_span *right = b;

	return (left->begin_ns > right->begin_ns) - (left->begin_ns < right->begin_ns);
}

static bool busy_in_order(const struct busy_spans *spans)
{
	for (size_t i = 1; i < spans->count; i++)
		if (spans->of[i].begin_ns < spans->of[i - 1].begin_ns)
			return false;
	return true;
}

/* Joins neighbours whose gap is at most so long. */
static void busy_join(struct busy_spans *spans, int64_t gap_ns)
{
	size_t kept = 0;

	for (size_t i = 1; i < spans->count; i++) {
		struct busy_span *last = &spans->of[kept];
		const struct busy_span *next = &spans->of[i];
		const int64_t gap = next->begin_ns - last->end_ns;
		if (gap > gap_ns) {
			spans->of[++kept] = *next;
			continue;
		}
		if (gap > 0) {
			spans->filled_ns += gap;
			if (gap > spans->longest_filled_ns)
				spans->longest_filled_ns = gap;
		}
		if (next->end_ns > last->end_ns)
			last->end_ns = next->end_ns;
	}
	if (spans->count > 0)
		spans->count = kept + 1;
}

void busy_spans_sort(struct busy_spans *spans)
{
	if (!busy_in_order(spans))
		qsort(spans->of, spans->count, sizeof *spans->of, busy_order);
	busy_join(spans, 0);
}

/* Which of eight classes within its power of two a gap is of, over all powers; the classes are in order. */
static size_t busy_class(int64_t gap_ns)
{
	const int power = 63 - __builtin_clzll((unsigned long long)gap_ns);
	const int64_t eighth = power >= 3 ? gap_ns >> (power - 3) : gap_ns << (3 - power);

	return 8 * (size_t)power + (size_t)(eighth & 7);
}

/* Closes the shortest gaps, so that a quarter of the room is free again. */
static void busy_fill(struct busy_spans *spans)
{
	enum { CLASSES = 8 * 64 };
	size_t gaps[CLASSES] = {0};
	const size_t keep = spans->most - spans->most / 4;
	size_t closed = 0;
	size_t class = 0;

	for (size_t i = 1; i < spans->count; i++)
		gaps[busy_class(spans->of[i].begin_ns - spans->of[i - 1].end_ns)]++;
	for (; class < CLASSES - 16 && spans->count - closed > keep; class ++)
		closed += gaps[class];
	/* the longest of the last class that is closed: eighths of a power of two */
	const int power = (int)(class / 8);
	const int64_t above = (INT64_C(8) + (int64_t)(class % 8));
	busy_join(spans, power >= 3 ? (above << (power - 3)) - 1 : ((above - 1) >> (3 - power)));
}

static int busy_make_room(struct busy_spans *spans)
{
	if (spans->count > 0) {
		busy_spans_sort(spans);
		if (spans->count <= spans->room / 2)
			return 0;
	}
	if (spans->room >= spans->most) {
		busy_fill(spans);
		return 0;
	}
	const size_t twice = spans->room ? 2 * spans->room : BUSY_SPANS_LEAST;
	const size_t room = twice < spans->most ? twice : spans->most;
	struct busy_span *of = realloc(spans->of, room * sizeof *of);
	if (!of)
		return -ENOMEM;
	spans->of = of;
	spans->room = room;
	return 0;
}

int busy_spans_add(struct busy_spans *spans, int64_t begin_ns, int64_t end_ns)
{
	if (end_ns <= begin_ns)
		return 0;
	if (spans->count > 0) { /* what comes in order is joined at once */
		struct busy_span *last = &spans->of[spans->count - 1];
		if (begin_ns >= last->begin_ns && begin_ns <= last->end_ns) {
			if (end_ns > last->end_ns)
				last->end_ns = end_ns;
			return 0;
		}
	}
	if (spans->count == spans->room) {
		const int code = busy_make_room(spans);
		if (code)
			return code;
	}
	spans->of[spans->count++] = (struct busy_span){begin_ns, end_ns};
	return 0;
}

/* The first one that ends after a moment. */
static size_t busy_first_after(const struct busy_spans *spans, int64_t at_ns)
{
	size_t low = 0;
	size_t high = spans->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (spans->of[middle].end_ns > at_ns)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static int64_t busy_overlap(const struct busy_span *span, int64_t begin_ns, int64_t end_ns)
{
	const int64_t begin = span->begin_ns > begin_ns ? span->begin_ns : begin_ns;
	const int64_t end = span->end_ns < end_ns ? span->end_ns : end_ns;

	return end > begin ? end - begin : 0;
}

int64_t busy_spans_within(const struct busy_spans *spans, int64_t begin_ns, int64_t end_ns)
{
	int64_t sum = 0;

	for (size_t i = busy_first_after(spans, begin_ns);
		i < spans->count && spans->of[i].begin_ns < end_ns; i++)
		sum += busy_overlap(&spans->of[i], begin_ns, end_ns);
	return sum;
}

int64_t busy_spans_both(
	const struct busy_spans *a, const struct busy_spans *b, int64_t begin_ns, int64_t end_ns)
{
	int64_t sum = 0;

	for (size_t i = busy_first_after(a, begin_ns); i < a->count && a->of[i].begin_ns < end_ns;
		i++) {
		const struct busy_span *span = &a->of[i];
		sum += busy_spans_within(b, span->begin_ns > begin_ns ? span->begin_ns : begin_ns,
			span->end_ns < end_ns ? span->end_ns : end_ns);
	}
	return sum;
}
