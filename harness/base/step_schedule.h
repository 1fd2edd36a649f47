/* Which steps of a run are recorded: five numbers with the meaning that torch.profiler.schedule gives them.
 * The first `skip` steps are left out; then cycles of `wait` steps that are left out, `warmup` steps that are
 * recorded and dropped, and `active` steps that are kept; `repeat` cycles, or (0) until the end.  Pure. */
#ifndef MLBENCH_BASE_STEP_SCHEDULE_H
#define MLBENCH_BASE_STEP_SCHEDULE_H

#include <stdint.h>

struct step_schedule {
	uint64_t skip, wait, warmup, active, repeat;
};

enum step_phase { STEP_PHASE_IDLE, STEP_PHASE_WARMUP, STEP_PHASE_ACTIVE };

enum { STEP_SCHEDULE_NUMBERS = 5 };
#define STEP_SCHEDULE_MOST UINT64_C(1000000000) /* of each number */

/* "skip,wait,warmup,active,repeat": all five, whole, 0 to STEP_SCHEDULE_MOST, blanks around them allowed, active
 * at least 1.  NULL, or what is wrong with text (static; out is then {0}). */
const char *step_schedule_parse(const char *text, struct step_schedule *out);

/* What is done with step `step`, counted from 0.  Idle for a schedule of {0}. */
enum step_phase step_schedule_phase(const struct step_schedule *schedule, uint64_t step);

/* Steps that are kept if the run is long enough; UINT64_MAX: until the end. */
uint64_t step_schedule_kept(const struct step_schedule *schedule);

#endif
