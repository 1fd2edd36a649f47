/* mlbench run: one setting, measured and explained. */
#include "harness/command/session.h"

static int cmd_run_run_command(const struct invocation *invocation, struct error *err)
{
	return session_run(invocation, true, err);
}

const struct command command_run = {
	.name = "run",
	.summary = "measure one setting and name its bottleneck",
	.arguments = "CONFIG",
	.description =
		"Runs the pipeline that CONFIG describes measure.repeats times. Prints "
		"throughput, where every thread's time went, and the bottleneck.\n\n"
		"A missing data set is generated first if CONFIG has a recipe for it. A CONFIG "
		"that sweeps keys is refused: use 'mlbench sweep', or give each swept key one "
		"value with --set. The limits of the single stages are measured only if "
		"measure.limits is set explicitly.\n\n"
		"--flame samples the stacks of all threads while they use CPU time, in all "
		"repetitions but not in their warm-up. Each thread's CPU clock sends it a signal, "
		"which needs no privileges; time in the kernel counts for the call that entered "
		"it. The output says what was lost, what the sampling cost, and which functions "
		"took most. report.html has the flame graph; flamegraph.pl, inferno and "
		"speedscope read flame.folded.",
	.example = "mlbench run configs/null.ini --set decode.workers=1",
	.options = OPTION_BIT(OPTION_SET) | OPTION_BIT(OPTION_DATA) | OPTION_BIT(OPTION_OUT) |
		   OPTION_BIT(OPTION_NODE) | OPTION_BIT(OPTION_RESUME) | OPTION_BIT(OPTION_JSON) |
		   OPTION_BIT(OPTION_WATCH) | OPTION_BIT(OPTION_LISTEN) | OPTION_BIT(OPTION_FLAME),
	.arguments_max = 1,
	.run = cmd_run_run_command,
};
