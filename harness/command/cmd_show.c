/* mlbench show: a saved result again, as the sweep printed it. */
#include "harness/command/adaptive_sweep.h"
#include "harness/command/command.h"
#include "harness/report/report.h"

#include <errno.h>

static int print_record(
	const struct invocation *invocation, const struct record *record, struct error *err)
{
	struct report report;
	int code = report_open(&report, record, err);
	if (code)
		return command_status(code);
	code = report_complete(&report, err);
	int status;
	if (code) {
		status = command_status(code);
	} else if (command_wants_json(invocation)) {
		status = command_print_json(invocation, report_summary_json(&report), err);
	} else {
		const struct style style = command_style(invocation);
		struct buffer text = {0};
		report_terminal(&report, &style,
			options_given(&invocation->options, OPTION_VERBOSE), &text);
		status = command_print(&text, err);
	}
	if (!status && report.checksum_check.differ) {
		(void)error_set(err, -EIO, "%s", report.checksum_check.words);
		status = EXIT_STATUS_FAILED;
	}
	report_close(&report);
	return status;
}

static int show_command(const struct invocation *invocation, struct error *err)
{
	struct record record = {0};
	const int code = saved_open(&record, invocation->options.arguments[0], SAVED_NEWEST, err);
	const int status = code ? command_status(code) : print_record(invocation, &record, err);
	record_release(&record);
	return status;
}

const struct command command_show = {
	.name = "show",
	.summary = "print a saved result again",
	.arguments = "RESULT",
	.description =
		"RESULT is a run's folder, a file in it, or the name of a benchmark in results/ "
		"(its newest run). Everything is computed from points.jsonl, so a run that was "
		"killed can be shown too; what was diagnosed before is used again while no file of "
		"the result has changed. --verbose shows the stages of every point. Exit status 1 "
		"if checksums of run.verify differ that must agree.",
	.example = "mlbench show imagenet_like",
	.options = OPTION_BIT(OPTION_JSON),
	.arguments_min = 1,
	.arguments_max = 1,
	.run = show_command,
};
