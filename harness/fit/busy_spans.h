/* Stretches of time in which something was so, of millions of intervals that come in any order and overlap, in bounded
 * memory.
 *
 * Intervals that touch or overlap become one.  Where more separate ones remain than there is room for, the shortest gaps
 * between them are closed: for a device, idle gaps of a microsecond or so count as busy then, and filled_ns says how much time
 * that is at most (what comes later may lie in them), so that a report can say how far off it may be. */
#ifndef MLBENCH_FIT_BUSY_SPANS_H
#define MLBENCH_FIT_BUSY_SPANS_H

#include <stddef.h>
#include <stdint.h>

struct busy_span {
	int64_t begin_ns, end_ns; /* [begin, end) */
};

struct busy_spans {
	struct busy_span *of; /* owned; sorted and apart after busy_spans_sort */
	size_t count, room;
	size_t most; /* never more than so many */
	int64_t filled_ns;
	int64_t longest_filled_ns;
};

enum { BUSY_SPANS_LEAST = 64 };

/* most: at least BUSY_SPANS_LEAST. */
void busy_spans_open(struct busy_spans *spans, size_t most);
void busy_spans_close(struct busy_spans *spans); /* safe on {0} */

/* end_ns >= begin_ns; nothing of no length is kept.  0 or -ENOMEM. */
int busy_spans_add(struct busy_spans *spans, int64_t begin_ns, int64_t end_ns);
/* Puts what was added in order, joined.  Before anything below. */
void busy_spans_sort(struct busy_spans *spans);
/* How much of [begin, end) is in them. */
int64_t busy_spans_within(const struct busy_spans *spans, int64_t begin_ns, int64_t end_ns);
/* How much of [begin, end) is in both. */
int64_t busy_spans_both(
	const struct busy_spans *a, const struct busy_spans *b, int64_t begin_ns, int64_t end_ns);

#endif
