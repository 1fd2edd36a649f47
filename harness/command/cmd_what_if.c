/* mlbench what-if: throughput of settings that were not measured, from a saved result. */
#include "harness/command/what_if.h"

#include "harness/base/log.h"
#include "harness/report/report.h"
#include "harness/report/style.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Too little to predict from is no mistake of the user's. */
static int status_of(int code)
{
	return code == -ENODATA   ? EXIT_STATUS_CANNOT
	       : code == -ENOTSUP ? EXIT_STATUS_BAD_INPUT /* a key that replay does not model */
				  : command_status(code);
}

static int what_if_print(const struct what_if *what_if, struct error *err)
{
	json_t *document = what_if_json(what_if);
	if (command_wants_json(what_if->invocation) || !document)
		return command_print_json(what_if->invocation, document, err);
	const struct style style = command_style(what_if->invocation);
	struct buffer text = {0};
	what_if_text(what_if, document, &style, &text);
	json_decref(document);
	return command_print(&text, err);
}

static void what_if_release(struct what_if *what_if)
{
	forecaster_close(&what_if->forecaster);
	config_grid_close(&what_if->grid);
	config_release(&what_if->asked);
	record_release(&what_if->record);
	free(what_if->points);
	free(what_if->base_repeats);
	free(what_if->alternatives);
	free(what_if->fleet);
	free(what_if);
}

/* The base last: its reason is the one that is told. */
static int look_for_load(struct what_if *what_if, struct error *err)
{
	struct report report = {0};
	int code = report_open(&report, &what_if->record, err);
	for (size_t i = 0; i < what_if->source_count && !code; i++) {
		const size_t point = what_if->points[what_if->sources[i]];
		const struct point_summary *p = report.points[point];
		if (!p || !p->contaminated[0])
			continue;
		if (what_if->contaminated++ == 0 || point == what_if->base)
			memcpy(what_if->contamination, p->contaminated,
				sizeof what_if->contamination);
	}
	report_close(&report);
	if (code || what_if->contaminated == 0 ||
		!options_given(&what_if->invocation->options, OPTION_FLEET) ||
		options_given(&what_if->invocation->options, OPTION_FORCE))
		return code;
	return error_set(err, -ENODATA,
		"--fleet: '%s' was measured on a loaded node (%s); measure it again on an idle "
		"one, or give --force",
		what_if->record.folder, what_if->contamination);
}

static int what_if_command(const struct invocation *invocation, struct error *err)
{
	struct what_if *what_if = calloc(1, sizeof *what_if);
	if (!what_if)
		return command_status(error_set(err, -ENOMEM, "out of memory"));
	what_if->invocation = invocation;
	int code = saved_open(
		&what_if->record, invocation->options.arguments[0], SAVED_SWEEP_FIRST, err);
	if (!code)
		code = what_if_ask(what_if, err);
	if (!code)
		code = what_if_answer(what_if, err);
	if (!code)
		code = look_for_load(what_if, err);
	if (!code && options_given(&invocation->options, OPTION_FLEET))
		code = what_if_fleet(what_if, err);
	int status = status_of(code);
	if (!code)
		err->text[0] = '\0'; /* what was met and overcome on the way */
	if (!code)
		status = what_if_print(what_if, err);
	if (!code && !status && what_if->done < what_if->grid.points)
		status = atomic_load(invocation->stop) ? EXIT_STATUS_INTERRUPTED
						       : EXIT_STATUS_CANNOT;
	what_if_release(what_if);
	return status;
}

const struct command command_what_if = {
	.name = "what-if",
	.summary = "predict other settings, or a fleet, from a saved result",
	.arguments = "RESULT",
	.description =
		"Replays the service times recorded in RESULT through the pipeline as it would "
		"be with the keys of --set changed. Prints the predicted throughput with a 90 % "
		"interval, the measured one beside it, and the bottleneck that the change would "
		"lead to. Nothing runs, and every figure is marked as predicted. A list, as in "
		"--set decode.workers=4,8,16, makes a table; several lists are combined, up to "
		"1,000 settings.\n\n"
		"RESULT is a run's folder or the name of a benchmark in results/ (its newest "
		"sweep, or else its newest run); the first line says which one was read. Of a "
		"sweep, the changes apply to the best measured point or to that of --point. "
		"Predictions come from the measured points nearest to the setting; where these "
		"disagree or predict each other badly, the interval is wider.\n\n"
		"--fleet N predicts N nodes like this one, which share a file server (--storage) "
		"and sum their gradients over a network after each step (--network-bandwidth, "
		"--network-latency), by ring or tree. The exchange is hidden behind the step "
		"only as far as --overlap says. It prints which of node, file server and network "
		"is the bottleneck, and from how many nodes on.\n\n"
		"The output says if a result was measured under other load. Predictions then "
		"hold for a node under the same load, and a fleet is refused without --force.\n\n"
		"A key that the replay does not model is refused, with the list of keys that it "
		"does. A run that was too short is refused with exit status 3.",
	.example = "mlbench what-if imagenet_like --set decode.workers=16 --set step.device=a100",
	.options = OPTION_BIT(OPTION_SET) | OPTION_BIT(OPTION_JSON) | OPTION_BIT(OPTION_POINT) |
		   OPTION_BIT(OPTION_FLEET) | OPTION_BIT(OPTION_STORAGE) |
		   OPTION_BIT(OPTION_NETWORK_BANDWIDTH) | OPTION_BIT(OPTION_NETWORK_LATENCY) |
		   OPTION_BIT(OPTION_GRADIENT_BYTES) | OPTION_BIT(OPTION_OVERLAP) |
		   OPTION_BIT(OPTION_ALL_REDUCE) | OPTION_BIT(OPTION_FORCE),
	.arguments_min = 1,
	.arguments_max = 1,
	.run = what_if_command,
};
