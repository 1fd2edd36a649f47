/* mlbench run and mlbench sweep: one setting, or every combination of the swept keys, measured and explained. */
#include "harness/command/session.h"

static int run_command(const struct invocation *invocation, struct error *err)
{
	return session_run(invocation, true, NULL, NULL, err);
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
		"took most. flame.svg opens in any browser; flamegraph.pl, inferno and "
		"speedscope read flame.folded.",
	.example = "mlbench run configs/null.ini --set decode.workers=1",
	.options = OPTION_BIT(OPTION_SET) | OPTION_BIT(OPTION_DATA) | OPTION_BIT(OPTION_OUT) |
		   OPTION_BIT(OPTION_NODE) | OPTION_BIT(OPTION_RESUME) | OPTION_BIT(OPTION_JSON) |
		   OPTION_BIT(OPTION_WATCH) | OPTION_BIT(OPTION_LISTEN) | OPTION_BIT(OPTION_FLAME),
	.arguments_max = 1,
	.run = run_command,
};

static int sweep_run(const struct invocation *invocation, struct error *err)
{
	return session_run(invocation, false, NULL, NULL, err);
}

const struct command command_sweep = {
	.name = "sweep",
	.summary = "measure every combination of the swept keys",
	.arguments = "CONFIG",
	.description =
		"Measures each point of CONFIG's [sweep] section measure.repeats times. The "
		"repetitions of all points are interleaved in a seeded random order. Then it "
		"measures each stage alone, for the limits of this node (measure.limits). Prints "
		"a table, a map of throughput over the swept keys, the limits, the best point, "
		"and its bottleneck.\n\n"
		"Each repetition is saved as it ends. A point that fails is a row with its "
		"reason, and the other points still run. Ctrl-C keeps what was measured; "
		"--resume measures only what is missing. 'mlbench check' prints the number of "
		"points and the time before anything runs.\n\n"
		"With sweep.mode = adaptive, it measures the points that tell most, predicts the "
		"others with the model until every 90 % interval is within sweep.error of its "
		"throughput, and measures what it recommends. Every output marks predictions "
		"('~' in tables and maps).",
	.example = "mlbench sweep configs/imagenet_like.ini --set sweep.decode.workers=1,2,4",
	.options = OPTION_BIT(OPTION_SET) | OPTION_BIT(OPTION_DATA) | OPTION_BIT(OPTION_OUT) |
		   OPTION_BIT(OPTION_NODE) | OPTION_BIT(OPTION_RESUME) | OPTION_BIT(OPTION_JSON) |
		   OPTION_BIT(OPTION_WATCH) | OPTION_BIT(OPTION_LISTEN),
	.arguments_max = 1,
	.run = sweep_run,
};
