/* The log of stalls. */
#include "pipelines/stall_log.h"

#include "harness/base/clock.h"
#include "harness/base/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* Of the measured part, one stall: whether it falls into it is chance. */
static const double STALL_TOLD = 0.02;
/* Too few to make whole periods of. */
enum { STALLS_FEW = 3 };

int stalls_open(struct stall_log *log)
{
	*log = (struct stall_log){.list = memory_touched(STALLS_MAX, sizeof *log->list)};
	return log->list ? 0 : -ENOMEM;
}

void stalls_close(struct stall_log *log)
{
	free(log->list);
	*log = (struct stall_log){0};
}

void stalls_begin(struct stall_log *log, struct thread_meter *step_meter, uint64_t stepped_ns)
{
	const uint64_t now_ns = clock_now_ns();
	if (step_meter)
		state_clock_enter(&step_meter->clock, THREAD_BLOCKED, now_ns);
	if (log->count < STALLS_MAX)
		log->list[log->count] = (struct stall){
			.stepped_ns = stepped_ns, .begin_ns = now_ns - log->start_ns};
	log->count++;
}

void stalls_end(struct stall_log *log, struct thread_meter *step_meter, uint64_t *now_ns)
{
	*now_ns = clock_now_ns();
	if (step_meter)
		state_clock_enter(&step_meter->clock, THREAD_WORKING, *now_ns);
	if (log->count <= STALLS_MAX)
		log->list[log->count - 1].end_ns = *now_ns - log->start_ns;
}

size_t stalls_kept(const struct stall_log *log)
{
	return log->count < STALLS_MAX ? log->count : STALLS_MAX;
}

bool stalls_is_in(const struct stall_log *log, size_t i, uint64_t from_ns, uint64_t to_ns)
{
	const struct stall *const s = &log->list[i];
	const uint64_t middle_ns = s->begin_ns + (s->end_ns - s->begin_ns) / 2;
	return s->end_ns > 0 && middle_ns >= from_ns && middle_ns <= to_ns;
}

uint64_t stalls_period_ns(const struct stall_log *log)
{
	size_t last = stalls_kept(log);
	while (last > 0 && log->list[last - 1].end_ns == 0)
		last--;
	return last < 2 ? 0
			: (log->list[last - 1].stepped_ns - log->list[0].stepped_ns) / (last - 1);
}

bool stalls_whole(const struct stall_log *log, uint64_t *from_ns, uint64_t *to_ns)
{
	const struct stall *first = NULL;
	const struct stall *last = NULL;
	for (size_t i = 0; i < stalls_kept(log); i++) {
		const struct stall *const s = &log->list[i];
		if (s->stepped_ns < *from_ns || s->end_ns > *to_ns || s->end_ns == 0)
			continue;
		first = first ? first : s;
		last = s;
	}
	if (!first || last->stepped_ns - first->stepped_ns < (*to_ns - *from_ns) / 3)
		return false;
	*from_ns = first->stepped_ns;
	/* Other devices' last steps may end while this one's thread stands still already. */
	*to_ns = last->begin_ns + (last->end_ns - last->begin_ns) / 2;
	return true;
}

void stalls_note(const struct stall_log *log, const struct stalls_told *told, uint64_t measured_ns,
	struct measurement *m)
{
	const double share = told->max_ns / (double)measured_ns;
	if (told->outside)
		measurement_note(m,
			"no %s ended in the measured part: throughput is that without them (%s.every, or measure.duration)",
			told->what, told->section);
	else if (told->count > 0 && told->count < STALLS_FEW && share > STALL_TOLD)
		measurement_note(m,
			"only %" PRIu64
			" %s%s ended in the measured part: throughput depends on when they come, by up to %.0f %% (measure.duration)",
			told->count, told->what, told->count == 1 ? "" : "s", 100 * share);
	if (log->count > STALLS_MAX)
		measurement_note(
			m, "of %zu %ss the first %d are told", log->count, told->what, STALLS_MAX);
}
