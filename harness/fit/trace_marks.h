/* Marks in a trace: annotations of steps, requests for batches, calls of an optimizer. */
#ifndef MLBENCH_FIT_TRACE_MARKS_H
#define MLBENCH_FIT_TRACE_MARKS_H

#include "harness/fit/kineto.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TRACE_MARKS_MAX = 1 << 18,
	TRACE_STEPS_LEAST = 2, /* below: no steps */
};

struct trace_mark {
	int64_t begin_ns, end_ns;
	uint64_t thread, process;
	long number; /* of a ProfilerStep; -1: it has none */
};

struct trace_marks {
	struct trace_mark *of; /* owned */
	size_t count, room;
	uint64_t lost; /* above TRACE_MARKS_MAX */
};

/* 0 or -ENOMEM. */
int trace_marks_add(struct trace_marks *marks, const struct kineto_event *e);
/* The thread that has most of them, of the first few that there are. */
uint64_t trace_marks_thread(const struct trace_marks *marks);
/* How many processes have marks; at least two each, as a process that trains does. */
size_t trace_marks_processes(const struct trace_marks *marks);
/* Forgets those whose time is zero, which is none. */
void trace_marks_drop_zeros(struct trace_marks *marks);
/* Keeps those of one thread, in order, one of each that lie within each other.  How many were of
 * other threads. */
size_t trace_marks_settle(struct trace_marks *marks, uint64_t thread);
/* Whether steps of one thread come twice: two ranks in containers, whose processes have the same
 * number, in one file.  An annotation that was recorded twice begins at the same time. */
bool trace_marks_twice(struct trace_marks *steps, uint64_t thread);
/* How many settled ones begin in [begin, end). */
size_t trace_marks_within(const struct trace_marks *marks, int64_t begin_ns, int64_t end_ns);

#endif
