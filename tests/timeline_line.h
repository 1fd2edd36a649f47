/* A step thread and a worker whose times are made up, for tests of timelines. */
#ifndef MLBENCH_TESTS_TIMELINE_LINE_H
#define MLBENCH_TESTS_TIMELINE_LINE_H

#include "harness/measure/state_clock.h"
#include "harness/measure/timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { STEP_NS = 1000, START_NS = 1000000 };

/* A step thread and a worker, whose times are made up. */
struct line {
	struct timeline *timeline;
	struct timeline_log *step, *work;
	struct state_clock step_clock, work_clock;
	uint64_t now_ns, batch;
};

static inline void open_line_at(
	struct line *line, struct step_schedule schedule, uint64_t entries, uint64_t start_ns)
{
	memset(line, 0, sizeof *line);
	assert_int_equal(timeline_open(&line->timeline, &schedule, entries, 2), 0);
	line->step = timeline_add_log(line->timeline, TIMELINE_THREAD, "step", 0);
	line->work = timeline_add_log(line->timeline, TIMELINE_THREAD, "decode", 0);
	assert_non_null(line->work);
	assert_null(timeline_add_log(line->timeline, TIMELINE_THREAD, "decode", 1));
	line->step->leads = true;
	line->step->clock = &line->step_clock;
	line->work->clock = &line->work_clock;
	line->step_clock.timeline = line->step;
	line->work_clock.timeline = line->work;
	line->now_ns = start_ns;
	timeline_start(line->timeline, start_ns);
	state_clock_start(&line->step_clock, THREAD_STARVED, start_ns);
	state_clock_start(&line->work_clock, THREAD_STARVED, start_ns);
}

static inline void open_line(struct line *line, struct step_schedule schedule, uint64_t entries)
{
	open_line_at(line, schedule, entries, START_NS);
}

/* 300 ns of waiting, 700 of work on either thread; the worker lags 100 behind and has `spans` samples. */
static inline void run_step(struct line *line, unsigned spans)
{
	const uint64_t at = line->now_ns;
	state_clock_enter(&line->work_clock, THREAD_BLOCKED, at + 100);
	state_clock_enter(&line->step_clock, THREAD_WORKING, at + 300);
	state_clock_enter(&line->work_clock, THREAD_WORKING, at + 400);
	timeline_use(line->work);
	for (unsigned i = 0; i < spans && timeline_is_on(); i++)
		timeline_span(TIMELINE_DECODE, at + 400 + i, at + 401 + i, line->batch * spans + i,
			(uint32_t)line->batch);
	timeline_use(line->step);
	timeline_span(
		TIMELINE_COMPUTE, timeline_is_on() ? at + 300 : 0, at + STEP_NS, line->batch, 1);
	timeline_use(NULL);
	line->now_ns += STEP_NS;
	timeline_step(line->step, line->batch++, line->now_ns);
	state_clock_enter(&line->step_clock, THREAD_STARVED, line->now_ns);
}

static inline void close_line(struct line *line)
{
	timeline_close(line->timeline);
}

#endif
