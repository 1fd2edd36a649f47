/* The sampler of a session. */
#include "harness/command/flame_run.h"

#include "harness/base/clock.h"
#include "harness/base/log.h"
#include "harness/report/flame_report.h"

int flame_run_start(struct flame_run *run, const struct invocation *invocation, struct error *err)
{
	const struct flame_options options = {0};
	return options_given(&invocation->options, OPTION_FLAME)
		       ? flame_open(&run->flame, &options, err)
		       : 0;
}

void flame_run_note(const struct flame_run *run, struct measurement *m)
{
	struct flame_profile facts;
	if (!run->flame)
		return;
	flame_facts(run->flame, &facts);
	measurement_note(m,
		"CPU time was sampled during the run: clock signals, %.0f Hz of CPU time",
		(double)NS_PER_S / (double)facts.period_ns);
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
	return command_print(&text, err);
}

void flame_run_close(struct flame_run *run)
{
	flame_profile_release(&run->profile);
	flame_close(run->flame);
	*run = (struct flame_run){0};
}
