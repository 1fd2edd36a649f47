/* mlbench bisect: which of the differences between two settings make the slower one slow, by experiment. */
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/base/units.h"
#include "harness/command/bisect_run.h"
#include "harness/command/verify.h"
#include "harness/report/bisect_report.h"
#include "harness/report/style.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BISECT_RUNS_PLANNED = 150 };

static const double BISECT_BUDGET_S = 600, BISECT_MARGIN = 0.03, BISECT_DURATION_LEAST_S = 0.5;

static int bisect_read_options(struct bisect_run *run, struct error *err)
{
	const struct options *options = &run->invocation->options;
	const char *budget = options->values[OPTION_BUDGET];
	const char *margin = options->values[OPTION_MARGIN];
	uint64_t ns = 0;
	run->budget_s = BISECT_BUDGET_S;
	run->margin = BISECT_MARGIN;
	if (budget && (units_parse_duration(budget, &ns) != 0 || ns == 0))
		return error_set(
			err, -EINVAL, "--budget takes a time, as '90s' or '10m', not '%s'", budget);
	if (budget)
		run->budget_s = (double)ns / (double)NS_PER_S;
	if (margin && (units_parse_share(margin, &run->margin) != 0 || !(run->margin >= 0.001) ||
			      !(run->margin <= 0.5)))
		return error_set(err, -EINVAL,
			"--margin takes a share from 0.1%% to 50%%, as '3%%', not '%s'", margin);
	if (options->values[OPTION_RESUME] && options->values[OPTION_OUT])
		return error_set(err, -EINVAL,
			"--resume and --out exclude each other: --resume names the folder");
	return 0;
}

/* OUT, what --resume names, or results/bisect/TIME. */
static int bisect_choose_folder(const struct options *options, char **folder, struct error *err)
{
	const char *resume = options->values[OPTION_RESUME];
	const char *out = resume ? resume : options->values[OPTION_OUT];
	char when[CLOCK_UTC_BYTES];
	char path[FILES_PATH_BYTES];
	if (!out) {
		clock_format_utc_compact(clock_utc_seconds(), when);
		(void)snprintf(path, sizeof path, RESULTS_FOLDER "/bisect/%s", when);
		out = path;
	}
	*folder = strdup(out);
	return *folder ? 0 : error_set(err, -ENOMEM, "out of memory");
}

static double bisect_seconds(const struct config *config, enum key_id key)
{
	return (double)config_integer(config, key) / (double)NS_PER_S;
}

/* A session that goes on has runs as long as those that it has, whatever its budget is now. */
static void bisect_as_before(
	const struct bisect_run *run, bool resume, double *warmup, double *duration)
{
	struct record record = {0};
	char *good = resume ? files_join(run->folder, "good") : NULL;
	if (good && record_is_run(good) && record_open(&record, good, NULL) == 0) {
		*warmup = bisect_seconds(&record.config, KEY_MEASURE_WARMUP);
		*duration = bisect_seconds(&record.config, KEY_MEASURE_DURATION);
		record_release(&record);
	}
	free(good);
}

/* Many short runs tell more than a few long ones. */
static int bisect_shorten(struct bisect_run *run, bool resume, struct error *err)
{
	struct config *const both[] = {&run->sides.good.config, &run->sides.bad.config};
	const struct config *good = both[0];
	const double each_s = run->budget_s / BISECT_RUNS_PLANNED;
	double warmup = fmin(bisect_seconds(good, KEY_MEASURE_WARMUP), each_s / 4);
	double duration = fmin(bisect_seconds(good, KEY_MEASURE_DURATION),
		fmax(BISECT_DURATION_LEAST_S, each_s - warmup));
	int code = 0;
	bisect_as_before(run, resume, &warmup, &duration);
	if (config_integer(good, KEY_MEASURE_EPOCHS) > 0)
		return 0;
	for (size_t i = 0; i < 2 && !code; i++)
		code = verify_set_time(both[i], warmup, duration, err);
	return code;
}

static int bisect_open(struct bisect_run *run, struct error *err)
{
	const struct options *options = &run->invocation->options;
	int code = bisect_sides_open(&run->sides, run->invocation, run->folder, err);
	if (!code && run->sides.count == 0)
		code = error_set(err, -EINVAL,
			"'%s' and '%s' do not differ in anything that bisect can change%s",
			run->sides.good.name, run->sides.bad.name,
			options_given(options, OPTION_ENV) ? ""
							   : "; --env compares their nodes, too");
	if (!code)
		code = bisect_shorten(run, options->values[OPTION_RESUME] != NULL, err);
	if (code)
		return code;
	const struct paired_options paired = {.invocation = run->invocation,
		.folder = run->folder,
		.seed = (uint64_t)config_integer(&run->sides.good.config, KEY_RUN_SEED),
		.budget_s = run->budget_s,
		.resume = options->values[OPTION_RESUME]};
	return paired_open(&run->paired, &paired, err);
}

static int bisect_exit(const struct bisect_run *run)
{
	if (run->code == -EINTR)
		return EXIT_STATUS_INTERRUPTED;
	switch (run->result.status) {
	case DELTA_EXPLAINED:
		return EXIT_STATUS_DONE;
	case DELTA_NO_LOSS:
		return EXIT_STATUS_FAILED;
	case DELTA_UNKNOWN:
	case DELTA_PARTLY:
	case DELTA_UNFINISHED:
		break;
	}
	return EXIT_STATUS_CANNOT;
}

static int bisect_print(const struct bisect_run *run, struct error *err)
{
	json_t *json = bisect_to_json(run, true);
	if (!json)
		return command_status(error_set(err, -ENOMEM, "out of memory"));
	if (command_wants_json(run->invocation))
		return command_print_json(run->invocation, json, err);
	const struct style style = command_style(run->invocation);
	struct buffer text = {0};
	bisect_report_text(
		json, &style, options_given(&run->invocation->options, OPTION_VERBOSE), &text);
	json_decref(json);
	return command_print(&text, err);
}

static int bisect_command(const struct invocation *invocation, struct error *err)
{
	struct bisect_run run = {.invocation = invocation};
	char *folder = NULL;
	int code = bisect_read_options(&run, err);
	if (!code)
		code = bisect_choose_folder(&invocation->options, &folder, err);
	run.folder = folder;
	if (!code)
		code = bisect_open(&run, err);
	if (!code) {
		log_info("bisect: %zu difference%s, at most %.0f s, results in %s", run.sides.count,
			run.sides.count == 1 ? "" : "s", run.budget_s, folder);
		code = bisect_run_all(&run, err);
	}
	int status = command_status(code);
	if (!code) {
		err->text[0] = '\0';
		const int printed = bisect_print(&run, err);
		status = printed || run.unsaved ? EXIT_STATUS_CANNOT : bisect_exit(&run);
		if (run.result.status == DELTA_UNFINISHED)
			log_warn("%s: results are kept; 'mlbench bisect ... --resume %s' goes on",
				run.code == -EINTR ? "interrupted" : "the time is over", folder);
	}
	bisect_run_release(&run);
	free(folder);
	return status;
}

const struct command command_bisect = {
	.name = "bisect",
	.summary = "find which differences make a slow setting slow, by experiment",
	.arguments = "GOOD BAD",
	.description =
		"GOOD and BAD are two configurations, cases (mlbench fit) or results. Finds the "
		"smallest set of differing keys that explains why BAD is slower, also where "
		"differences cost only together or hide each other. Mixtures of both are run in "
		"turns, pair by pair, until each answer is sure: what is noisy is repeated, never "
		"guessed. The replay of GOOD says which difference to suspect first; only runs "
		"decide. Keys of [dataset] change together.\n\n"
		"At the end it prints what each cause costs from both sides, added to GOOD and "
		"taken out of BAD, what was predicted, and, with --verbose, each question on the "
		"way. All repetitions are kept, and bisect.json. When --budget is over it says "
		"which differences remain; --resume DIR goes on with what was measured.\n\n"
		"Exit status: 0 explained, 1 BAD is not slower (sure), 3 not clear, or the time was "
		"over.",
	.example = "mlbench bisect good.ini bad.ini --budget 5m",
	.options = OPTION_BIT(OPTION_SET) | OPTION_BIT(OPTION_DATA) | OPTION_BIT(OPTION_OUT) |
		   OPTION_BIT(OPTION_RESUME) | OPTION_BIT(OPTION_BUDGET) |
		   OPTION_BIT(OPTION_MARGIN) | OPTION_BIT(OPTION_ENV) | OPTION_BIT(OPTION_JSON),
	.arguments_min = 2,
	.arguments_max = 2,
	.run = bisect_command,
};
