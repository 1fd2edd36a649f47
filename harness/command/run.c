/* mlbench run: one setting, measured and explained. */
#include "harness/command/session.h"

static int run(const struct invocation *invocation, struct error *err)
{
	return session_run(invocation, true, err);
}

const struct command command_run = {
	.name = "run",
	.summary = "measure one setting and say what limits it",
	.arguments = "CONFIG",
	.description =
		"Runs the pipeline that CONFIG describes, measure.repeats times, and prints throughput, where "
		"every thread's time went, and which stage is the limit.\n\n"
		"A data set that is missing is generated first, when CONFIG has a recipe for it. A CONFIG that "
		"sweeps keys is refused: use 'mlbench sweep', or give each of them one value with --set. The "
		"limits of the single stages are measured when measure.limits is set explicitly.\n\n"
		"With --flame, all threads are sampled while they use CPU time, in all repetitions together and "
		"without their warm-up: by perf_event_open where it may look into the kernel (root, "
		"CAP_PERFMON, or kernel.perf_event_paranoid <= 1), else by a signal from each thread's own CPU "
		"clock. What was used and why, what was lost, and what it took itself is printed with the "
		"functions that took most. flame.svg opens in any browser; flame.folded is read by "
		"flamegraph.pl, inferno and speedscope.",
	.example = "mlbench run configs/null.ini --set decode.workers=1",
	.options = OPTION_BIT(OPTION_SET) | OPTION_BIT(OPTION_DATA) | OPTION_BIT(OPTION_OUT) |
		   OPTION_BIT(OPTION_NODE) | OPTION_BIT(OPTION_RESUME) | OPTION_BIT(OPTION_JSON) |
		   OPTION_BIT(OPTION_WATCH) | OPTION_BIT(OPTION_LISTEN) | OPTION_BIT(OPTION_FLAME),
	.arguments_max = 1,
	.run = run,
};
