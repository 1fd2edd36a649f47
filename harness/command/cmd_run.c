/* mlbench run, sweep and check: one setting, or every combination of the swept keys, measured
 * and explained, or only planned. */
#include "harness/command/command.h"
#include "harness/command/run_plan.h"
#include "harness/command/session.h"
#include "harness/fit/case_report.h"
#include "harness/report/layout.h"
#include "harness/report/report.h"
#include "harness/report/table.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

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
		"throughput, where every thread's time went, and the bottleneck, on one screen; "
		"'mlbench show' and --verbose print all of it.\n\n"
		"A missing data set is generated first if CONFIG has a recipe for it. A CONFIG "
		"that sweeps keys is refused: use 'mlbench sweep', or give each swept key one "
		"value with --set. The limits of the single stages are measured only if "
		"measure.limits is set explicitly.\n\n"
		"Started by a launcher ('mpirun -n 4 mlbench run CONFIG', srun), its ranks train "
		"together: rank 0 prints and writes the result, which has those of the others in "
		"ranks/ ('mlbench help rank').\n\n"
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
		"Measures each point of CONFIG's [sweep] section once, then again where the answer is "
		"open: points that may still be the best, ties with it, points near the frontier, and "
		"unsteady ones. The others keep one or two repetitions, and every table says how many. "
		"With measure.repeats set, each point has that many (sweep.mode). Points are "
		"interleaved in a seeded random order. Then it "
		"measures each stage alone at the best setting, for the limits of this node "
		"(measure.limits). Prints the best points, a map of throughput over the swept "
		"keys, the best setting (the smallest that is tied with the fastest), its "
		"bottleneck and what to do, on one screen. 'mlbench show' and --verbose print "
		"all of it. Settings are compared within one workload: 'mlbench help KEY' says "
		"whether a key is a knob, a workload or an assumption.\n\n"
		"Started by a launcher (mpirun, srun), its ranks train together at each point; "
		"sweep.ranks = 1,2,4 measures how they scale.\n\n"
		"Each repetition is saved as it ends. A point that fails is a row with its "
		"reason, and the other points still run. Ctrl-C keeps what was measured; "
		"--resume measures only what is missing. 'mlbench check' prints the number of "
		"points and the time before anything runs.",
	.example = "mlbench sweep configs/imagenet_like.ini --set sweep.decode.workers=1,2,4",
	.options = OPTION_BIT(OPTION_SET) | OPTION_BIT(OPTION_DATA) | OPTION_BIT(OPTION_OUT) |
		   OPTION_BIT(OPTION_NODE) | OPTION_BIT(OPTION_RESUME) | OPTION_BIT(OPTION_JSON) |
		   OPTION_BIT(OPTION_WATCH) | OPTION_BIT(OPTION_LISTEN),
	.arguments_max = 1,
	.run = sweep_run,
};

enum { POINTS_SHOWN_ALL = 40, POINTS_SHOWN_FIRST = 10, INDENT_COLUMNS = 2 };

static void check_add_points(const struct plan *plan, const struct style *style, struct buffer *out)
{
	const size_t axes = plan->config.axis_count;
	const size_t shown =
		plan->grid.points > POINTS_SHOWN_ALL ? POINTS_SHOWN_FIRST : plan->grid.points;
	struct table_column columns[CONFIG_AXES_MAX];
	char heads[CONFIG_AXES_MAX][CONFIG_VALUE_BYTES];
	struct table table;
	if (axes == 0)
		return;
	for (size_t i = 0; i < axes; i++) {
		const struct key *key = &config_keys[plan->config.axes[i].key];
		(void)snprintf(heads[i], sizeof heads[i], "%s\n%s", key->section, key->name);
		columns[i] = (struct table_column){.head = heads[i]};
	}
	table_open(&table, columns, axes);
	for (size_t point = 0; point < shown; point++)
		for (size_t i = 0; i < axes; i++) {
			const struct config_axis *axis = &plan->config.axes[i];
			const size_t choice = plan->grid.choice[point * plan->grid.axis_count + i];
			char value[CONFIG_VALUE_BYTES];
			table_add(&table, INK_PLAIN, "%s",
				config_format_value(
					axis->key, &axis->values[choice], value, sizeof value));
		}
	buffer_text(out, "\n");
	table_render(&table, style, INDENT_COLUMNS, true, out);
	table_close(&table);
	if (shown < plan->grid.points)
		buffer_format(out, "  ... and %zu more points\n", plan->grid.points - shown);
}

/* document: of the case that the plan is of; NULL: of a configuration. */
static int check_print(const struct invocation *invocation, const struct plan *plan,
	json_t *document, struct error *err)
{
	if (command_wants_json(invocation)) {
		json_t *of_plan = plan_to_json(plan);
		if (!document)
			return command_print_json(invocation, of_plan, err);
		(void)json_object_set_new(document, "plan", of_plan);
		return command_print_json(invocation, json_incref(document), err);
	}
	const size_t repeats = (size_t)config_integer(&plan->config, KEY_MEASURE_REPEATS);
	const struct style style = command_style(invocation);
	struct buffer lines = {0};
	struct buffer text = {0};
	struct medium medium = medium_terminal(&style, &text);
	if (document) {
		case_text(document, &medium);
		buffer_text(&text, "\n");
	}
	plan_describe(plan, plan->grid.points * repeats, &lines);
	text.failed = text.failed || lines.failed;
	layout_lines(&style, lines.data ? lines.data : "", &text);
	buffer_release(&lines);
	check_add_points(plan, &style, &text);
	return command_print(&text, err);
}

/* The case that `name` means; *document stays NULL where it means none. */
static int check_find_case(const char *name, json_t **document, struct error *err)
{
	char place[PATH_MAX];
	struct case_file file;
	const char *path = config_place_find(name, place, sizeof place);
	if (!case_is(path))
		return 0;
	const int code = case_read(&file, path, err);
	if (code)
		return code;
	*document = case_json(&file, name, NULL);
	case_release(&file);
	return *document ? 0 : error_set(err, -ENOMEM, "out of memory");
}

static int check_command(const struct invocation *invocation, struct error *err)
{
	struct plan plan = {.as_needed = true};
	json_t *document = NULL;
	const char *name = invocation->options.arguments[0];
	int code = check_find_case(name, &document, err);
	if (!code)
		code = plan_open(&plan, invocation, name, err);
	/* One point is measured with 'run', which has no limits unless they are asked for. */
	if (plan.config.axis_count == 0 && !plan.config.is_set[KEY_MEASURE_LIMITS])
		plan.limits = 0;
	if (!code)
		code = plan_data(&plan, invocation, false, err);
	const int status =
		code ? command_status(code) : check_print(invocation, &plan, document, err);
	json_decref(document);
	plan_close(&plan);
	return status;
}

const struct command command_check = {
	.name = "check",
	.summary = "show what would run, the time and the memory; tell a case in words",
	.arguments = "CONFIG|CASE",
	.description =
		"Reads CONFIG and reports errors in it with file, line and the nearest valid "
		"name. Prints what computes the step, the points, an estimate of the time, the "
		"data set, the read engine, and the most memory that the run can take. It runs "
		"nothing.\n\n"
		"Of a CASE (mlbench fit), it first tells the case in words: the complaint, what is "
		"known of the job and how, the bottleneck as it was held to be then, the node that "
		"it was reported from, the twin's keys, which of them are guesses and why, and what "
		"'mlbench reproduce' would do. --json: docs/case.schema.json.",
	.example = "mlbench check configs/imagenet_like.ini --set sweep.batch.size=32-256*2",
	.options = OPTION_BIT(OPTION_SET) | OPTION_BIT(OPTION_DATA) | OPTION_BIT(OPTION_JSON),
	.arguments_min = 1,
	.arguments_max = 1,
	.run = check_command,
};
