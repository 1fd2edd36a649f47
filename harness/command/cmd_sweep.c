/* mlbench sweep: every combination of the swept keys. */
#include "harness/command/session.h"

static int sweep_run(const struct invocation *invocation, struct error *err)
{
	return session_run(invocation, false, err);
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
