/* The end of a session: what was measured becomes a report, files and an exit status. */
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/command/adaptive_sweep.h"
#include "harness/command/session_parts.h"
#include "harness/report/html/report_page.h"
#include "harness/report/report.h"
#include "harness/report/style.h"

#include <errno.h>
#include <stdlib.h>

void session_cannot_save(struct session *session, int code, const struct error *err)
{
	if (session->trouble_code)
		return;
	session->trouble = *err;
	session->trouble_code = code;
	log_error("%s; stopping here", err->text);
}

static int print_report(
	const struct session *session, const struct report *report, struct error *err)
{
	if (command_wants_json(session->invocation))
		return command_print_json(session->invocation, report_summary_json(report), err);
	const struct style style = command_style(session->invocation);
	struct buffer text = {0};
	report_terminal(report, &style,
		options_given(&session->invocation->options, OPTION_VERBOSE), &text);
	const int status = command_print(&text, err);
	buffer_release(&text);
	return status;
}

static int final_status(const struct session *session, const struct report *report)
{
	if (session->trouble_code)
		return EXIT_STATUS_FAILED;
	if (session->record.interrupted) {
		log_warn(
			"interrupted: what was measured is kept; 'mlbench %s --resume %s' does the rest",
			session->sequel ? "run" : session->invocation->command->name,
			session->record.folder);
		return EXIT_STATUS_INTERRUPTED;
	}
	if (report->good + report->unsteady == 0) {
		log_warn("nothing could be measured");
		/* That the data are no good was found out, that there is no device was not measured. */
		return session->data_failed ? EXIT_STATUS_FAILED : EXIT_STATUS_CANNOT;
	}
	if (report->checksum_check.differ) {
		log_error("%s", report->checksum_check.words);
		return EXIT_STATUS_FAILED;
	}
	if (report->failed > 0) {
		log_warn("%zu of %zu points failed", report->failed, session->plan.grid.points);
		return EXIT_STATUS_FAILED;
	}
	if (report->good == 0)
		log_warn(
			"no point was steady: measure longer (measure.duration, measure.warmup), or find what "
			"disturbs this node");
	return report->good == 0 ? EXIT_STATUS_CANNOT : EXIT_STATUS_DONE;
}

/* Predictions are made anew from the record. */
static int add_forecasts(const struct session *session, struct report *report, struct error *err)
{
	return session->adaptive ? adaptive_sweep_forecast(report, err) : 0;
}

static int print_and_judge(
	const struct session *session, const struct report *report, struct error *err)
{
	int printed = print_report(session, report, err);
	if (!printed)
		printed = flame_run_print(&session->flame, session->invocation, err);
	const int status = final_status(session, report);
	return status ? status : printed;
}

static int go_on(const struct session *session, const struct report *report, struct error *err)
{
	const struct session_result result = {.plan = &session->plan,
		.record = &session->record,
		.report = report,
		.status = final_status(session, report)};
	return session->sequel(session->context, &result, err);
}

/* The page, and its name where people look last. */
static int write_page(struct session *session, const struct report *report, struct error *err)
{
	char *path = files_join(session->record.folder, REPORT_PAGE_FILE);
	if (!path)
		return error_set(err, -ENOMEM, "out of memory for '%s'", REPORT_PAGE_FILE);
	const int code = report_page_write(report, report->best, path, err);
	session->page = code ? NULL : path;
	if (code)
		free(path);
	return code;
}

int session_finish(struct session *session, struct error *err)
{
	struct report report;
	struct error saving = {0};
	session->record.interrupted =
		atomic_load(session->invocation->stop) || (session->adaptive && !session->complete);
	int saved = record_end(&session->record, &saving);
	int code = report_open(&report, &session->record, err);
	if (code)
		return command_status(code);
	code = report_diagnose(&report, err);
	if (!code)
		code = add_forecasts(session, &report, err);
	if (!code && !saved)
		saved = report_write_files(&report, &saving);
	if (!code && !saved)
		saved = write_page(session, &report, &saving);
	if (saved)
		session_cannot_save(session, saved, &saving);
	if (code) {
		report_close(&report);
		return command_status(code);
	}
	live_show_end_view(session->live);
	const int status = session->sequel ? go_on(session, &report, err)
					   : print_and_judge(session, &report, err);
	report_close(&report);
	if (session->page && !session->sequel)
		log_info("report: %s", session->page);
	return status;
}
