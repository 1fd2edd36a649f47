/* The sampler of a session. */
#include "harness/command/flame_run.h"

#include "harness/base/clock.h"
#include "harness/base/log.h"
#include "harness/report/flame_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int choose_method(enum flame_method *method, struct error *err)
{
	const char *const wanted = getenv("MLBENCH_FLAME");
	*method = FLAME_AUTO;
	if (!wanted || !*wanted)
		return 0;
	if (strcmp(wanted, "perf") == 0)
		*method = FLAME_PERF;
	else if (strcmp(wanted, "signals") == 0)
		*method = FLAME_SIGNALS;
	else
		return error_set(err, -EINVAL,
			"MLBENCH_FLAME = '%.60s': it must be perf or signals", wanted);
	return 0;
}

int flame_run_start(struct flame_run *run, const struct invocation *invocation, struct error *err)
{
	struct flame_options options = {0};
	if (!options_given(&invocation->options, OPTION_FLAME))
		return 0;
	const int code = choose_method(&options.method, err);
	return code ? code : flame_open(&run->flame, &options, err);
}

void flame_run_note(const struct flame_run *run, struct measurement *m)
{
	struct flame_profile facts;
	if (!run->flame)
		return;
	flame_facts(run->flame, &facts);
	measurement_note(m, "CPU time was sampled during the run: %s, %.0f Hz of CPU time%s%.120s",
		flame_method_name(facts.method), (double)NS_PER_S / (double)facts.period_ns,
		facts.why_not_perf[0] ? "; not perf_event: " : "", facts.why_not_perf);
}

int flame_run_finish(struct flame_run *run, const struct record *record, struct error *err)
{
	if (!run->flame)
		return 0;
	int code = flame_finish(run->flame, &run->profile, err);
	if (!code && run->profile.windows == 0) {
		log_warn("no flame graph: nothing was measured");
		return 0;
	}
	if (!code)
		code = flame_write_files(&run->profile, record->name, record->folder, err);
	run->finished = code == 0;
	return code;
}

int flame_run_print(
	const struct flame_run *run, const struct invocation *invocation, struct error *err)
{
	if (!run->finished || command_wants_json(invocation))
		return 0;
	const struct style style = command_style(invocation);
	struct buffer text = {0};
	flame_table(&run->profile, &style, &text);
	const int status = command_print(&text, err);
	buffer_release(&text);
	return status;
}

void flame_run_close(struct flame_run *run)
{
	flame_profile_release(&run->profile);
	flame_close(run->flame);
	*run = (struct flame_run){0};
}
