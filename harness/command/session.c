/* Plan, measure point by point, measure the limits, report. */
#include "harness/base/log.h"
#include "harness/base/units.h"
#include "harness/command/resume.h"
#include "harness/command/session_parts.h"
#include "harness/report/report.h"

#include <errno.h>
#include <stdlib.h>

static int refuse_sweep(const struct plan *plan, struct error *err)
{
	struct buffer names = {0};
	for (size_t i = 0; i < plan->config.axis_count; i++) {
		const struct key *key = &config_keys[plan->config.axes[i].key];
		buffer_format(&names, "%s%s.%s", i ? ", " : "", key->section, key->name);
	}
	const int code = error_set(err, -EINVAL,
		"'%s' sweeps %s: measure it with 'mlbench sweep', or give each one value with --set",
		plan->config.path ? plan->config.path : plan->name, names.data ? names.data : "");
	buffer_release(&names);
	return code;
}

/* A run alone has no limits measured unless the user asks: they take longer than the run. */
static int make_one_point(struct session *session, struct error *err)
{
	struct plan *plan = &session->plan;
	if (plan->config.axis_count > 0)
		return refuse_sweep(plan, err);
	if (!plan->config.is_set[KEY_MEASURE_LIMITS])
		plan->limits = 0;
	return 0;
}

static int list_items(struct session *session, struct error *err)
{
	const struct config *config = &session->plan.config;
	const size_t repeats = (size_t)config_integer(config, KEY_MEASURE_REPEATS);
	const size_t all = session->plan.grid.points * repeats;
	session->items = schedule_make(
		session->plan.grid.points, repeats, (uint64_t)config_integer(config, KEY_RUN_SEED));
	if (!session->items)
		return error_set(
			err, -ENOMEM, "out of memory for the order of %zu repetitions", all);
	for (size_t i = 0; i < all && !session->adaptive; i++)
		if (!record_has(
			    &session->record, session->items[i].point, session->items[i].repeat))
			session->items[session->item_count++] = session->items[i];
	return 0;
}

/* How long it may take where the planned repetitions are too few for a verdict. */
static void describe_more(const struct session *session, struct buffer *out)
{
	char time[UNITS_BYTES];
	const size_t most = SESSION_REPEATS_TIMES *
			    (size_t)config_integer(&session->plan.config, KEY_MEASURE_REPEATS);
	if (!session->sequel)
		return;
	buffer_format(out, "  verdict  up to %zu repeats where it takes more", most);
	if (plan_repetition_seconds(&session->plan) > 0)
		buffer_format(out, ", about %s in all",
			plan_format_seconds(plan_seconds(&session->plan, most), time, sizeof time));
	buffer_text(out, "\n");
}

static void tell_plan(const struct session *session)
{
	struct buffer text = {0};
	const size_t most = session->plan.grid.points *
			    (size_t)config_integer(&session->plan.config, KEY_MEASURE_REPEATS);
	plan_describe(&session->plan, session->adaptive ? most : session->item_count, &text);
	describe_more(session, &text);
	buffer_format(&text, "  results  %s\n", session->record.folder);
	const size_t failed = record_failed_count(&session->record);
	if (failed > 0)
		buffer_format(&text, "  again    %zu repetition%s that failed\n", failed,
			failed == 1 ? "" : "s");
	buffer_text(&text, "\n");
	if (!text.failed)
		log_lines(text.data);
	buffer_release(&text);
}

static int prepare(struct session *session, bool one_point, struct error *err)
{
	const struct invocation *invocation = session->invocation;
	struct plan *plan = &session->plan;
	int code = resume_plan(plan, &session->record, invocation, err);
	if (!code && one_point)
		code = make_one_point(session, err);
	if (!code)
		code = plan_data(plan, invocation, PLAN_DATA_MAKE, err);
	if (!code && plan->limits > 0)
		code = limits_open(
			&session->limits, &plan->config, &plan->grid, &plan->dataset, err);
	if (!code)
		code = flame_run_start(&session->flame, invocation, err);
	if (!code)
		code = resume_record(&session->record, plan, invocation, err);
	session->adaptive = !code && record_is_adaptive(&plan->config);
	return code ? code : list_items(session, err);
}

static int run_session(const struct invocation *invocation, bool one_point, session_sequel *sequel,
	void *context, struct error *err)
{
	struct session *session = calloc(1, sizeof *session);
	if (!session)
		return command_status(error_set(err, -ENOMEM, "out of memory"));
	session->invocation = invocation;
	session->sequel = sequel;
	session->context = context;
	int code = live_show_open(&session->live, invocation, err);
	if (!code)
		code = prepare(session, one_point, err);
	int status = command_status(code);
	if (!status) {
		err->text[0] =
			'\0'; /* what was met and overcome on the way is no error of the run */
		tell_plan(session);
		live_show_plan(session->live, session->plan.name, session->record.folder);
		live_show_begin_view(session->live);
		session_measure(session);
		status = session_finish(session, err);
	}
	live_show_close(session->live);
	free(session->items);
	free(session->page);
	flame_run_close(&session->flame);
	limits_close(&session->limits);
	record_release(&session->record);
	plan_close(&session->plan);
	free(session);
	return status;
}

int session_run(const struct invocation *invocation, bool one_point, struct error *err)
{
	return run_session(invocation, one_point, NULL, NULL, err);
}

int session_run_then(const struct invocation *invocation, session_sequel *sequel, void *context,
	struct error *err)
{
	return run_session(invocation, true, sequel, context, err);
}
