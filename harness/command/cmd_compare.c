/* mlbench compare: results beside a baseline, for people and as a gate. */
#include "harness/report/compare.h"

#include "harness/base/clock.h"
#include "harness/base/log.h"
#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/command/command.h"
#include "harness/command/diagnosed.h"
#include "harness/command/product.h"
#include "harness/command/saved.h"
#include "harness/command/until_sure.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORMAT_TEXT, FORMAT_MARKDOWN, FORMAT_JSON, FORMAT_HTML, FORMATS };
enum { GATES_MAX = 64, REAL_DIGITS = 9 };

static const char *const format_names[FORMATS] = {"text", "markdown", "json", "html"};
static const char *const format_files[FORMATS] = {
	"compare.txt", "compare.md", "compare.json", "compare.html"};

static const double SIGNIFICANCE_USUAL = 0.01;
static const double SIGNIFICANCE_MOST = 0.2;
static const double SIGNIFICANCE_LEAST = 1e-6;

/* Everything that is open. */
struct comparing {
	const struct invocation *invocation;
	int format;
	double significance;
	double budget_s; /* of --until-sure; 0: not given */
	struct gate gates[GATES_MAX];
	size_t gate_count;
	struct record records[COMPARE_RESULTS_MAX]; /* the baseline first */
	struct report reports[COMPARE_RESULTS_MAX];
	size_t opened; /* of both */
	struct comparison comparisons[COMPARE_RESULTS_MAX];
	size_t count; /* of comparisons */
};

/* --- what is asked ---------------------------------------------------------------------------- */

static int compare_parse_format(struct comparing *c, struct error *err)
{
	const char *name = options_value(&c->invocation->options, OPTION_FORMAT);
	const bool json = command_wants_json(c->invocation);
	c->format = json ? FORMAT_JSON : FORMAT_TEXT;
	if (!name)
		return 0;
	for (int i = 0; i < FORMATS; i++)
		if (strcmp(name, format_names[i]) == 0) {
			c->format = i;
			if (json && i != FORMAT_JSON && !c->invocation->options.out)
				return error_set(err, -EINVAL,
					"--json writes JSON to standard output: --format %s needs --out",
					name);
			return 0;
		}
	const char *near = suggest_nearest(name, format_names, FORMATS);
	return error_set(err, -EINVAL, "unknown format '%.60s'%s%s%s: text, markdown, json or html",
		name, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

static int compare_parse_significance(struct comparing *c, struct error *err)
{
	const char *text = options_value(&c->invocation->options, OPTION_SIGNIFICANCE);
	c->significance = SIGNIFICANCE_USUAL;
	if (!text)
		return 0;
	if (units_parse_share(text, &c->significance) == 0 &&
		c->significance >= SIGNIFICANCE_LEAST && c->significance <= SIGNIFICANCE_MOST)
		return 0;
	return error_set(err, -EINVAL,
		"--significance '%.40s': give a share from 0.0001%% to 20%%, as '1%%'", text);
}

static int parse_gates(struct comparing *c, struct error *err)
{
	const struct options *options = &c->invocation->options;
	int code = 0;
	if (options->condition_count + options->requirement_count > GATES_MAX)
		return error_set(err, -EINVAL, "more than %d conditions", (int)GATES_MAX);
	for (size_t i = 0; i < options->condition_count && !code; i++)
		code = gate_parse(options->conditions[i], false, &c->gates[c->gate_count++], err);
	for (size_t i = 0; i < options->requirement_count && !code; i++)
		code = gate_parse(options->requirements[i], true, &c->gates[c->gate_count++], err);
	return code;
}

static int parse_until_sure(struct comparing *c, struct error *err)
{
	const struct options *options = &c->invocation->options;
	const char *text = options_value(options, OPTION_UNTIL_SURE);
	uint64_t ns = 0;
	if (!text)
		return 0;
	if (units_parse_duration(text, &ns) || ns == 0)
		return error_set(
			err, -EINVAL, "--until-sure '%.40s' is not a time; write it as '5m'", text);
	if (c->gate_count == 0)
		return error_set(err, -EINVAL,
			"--until-sure needs a gate to decide: give one with --fail-if or --require");
	if (options->argument_count != 2)
		return error_set(err, -EINVAL, "--until-sure measures two results again, not %zu",
			options->argument_count);
	c->budget_s = (double)ns / (double)NS_PER_S;
	c->significance = until_sure_level(c->significance, 0);
	return 0;
}

/* --- results ---------------------------------------------------------------------------------- */

static int compare_open_result(struct comparing *c, const char *name, struct error *err)
{
	struct record *record = &c->records[c->opened];
	struct report *report = &c->reports[c->opened];
	c->opened++;
	int code = saved_find(record, name, SAVED_NEWEST, err);
	if (!code)
		code = report_open(report, record, err);
	if (!code && report->best == record->grid.points && report->good + report->unsteady == 0)
		code = error_set(err, -EINVAL, "'%s' has no measured point", record->folder);
	return code;
}

static int open_results(struct comparing *c, struct error *err)
{
	const struct options *options = &c->invocation->options;
	int code = 0;
	for (size_t i = 0; i < options->argument_count && !code; i++)
		code = compare_open_result(c, options->arguments[i], err);
	return code;
}

/* --- why they differ -------------------------------------------------------------------------- */

static void take_verdict(
	struct compare_side *side, size_t point, const struct diagnosed *diagnosed, bool known)
{
	side->verdict = known ? diagnosed->diagnosis.verdict : side->report->points[point]->verdict;
}

static void say_why_not(struct explanation *explanation, const struct diagnosed *a,
	const struct diagnosed *b, const struct error *why)
{
	const char *reason = !a->calibrated && a->why_not[0]   ? a->why_not
			     : !b->calibrated && b->why_not[0] ? b->why_not
							       : why->text;
	(void)snprintf(
		explanation->why_not, sizeof explanation->why_not, "%.*s", NOTE_BYTES - 1, reason);
}

static void compare_explain_loss(
	struct comparison *comparison, const struct diagnosed *a, const struct diagnosed *b)
{
	struct error why = {0};
	struct explain_capacity capacities[STAGES_MAX];
	const struct difference *d = &comparison->differences[comparison->focus];
	int code = -ENODATA;
	if (d->verdict != DIFFERENCE_LESS && d->verdict != DIFFERENCE_MORE)
		return;
	comparison->explained = true;
	if (a->calibrated && b->calibrated)
		code = explain_by_replay(&a->calibration.model, &b->calibration.model, d->value,
			&comparison->explanation, &why);
	if (!code)
		return;
	const size_t count = compare_capacities(comparison, capacities);
	explain_by_capacities(capacities, count, d->value, &comparison->explanation);
	say_why_not(&comparison->explanation, a, b, &why);
}

static int diagnose_both(struct comparison *comparison, struct error *err)
{
	const struct point_pair *pair = &comparison->pairs[comparison->focus];
	struct diagnosed *both = calloc(2, sizeof *both);
	struct error why = {0};
	if (!both)
		return error_set(err, -ENOMEM, "out of memory for a diagnosis");
	const int a = diagnosed_open(&both[0], comparison->a.report, pair->a, &why);
	take_verdict(&comparison->a, pair->a, &both[0], !a);
	const int b = diagnosed_open(&both[1], comparison->b.report, pair->b, &why);
	take_verdict(&comparison->b, pair->b, &both[1], !b);
	compare_explain_loss(comparison, &both[0], &both[1]);
	diagnosed_close(&both[0]);
	diagnosed_close(&both[1]);
	free(both);
	return 0;
}

static int compare_one(struct comparing *c, size_t result, struct error *err)
{
	struct comparison *comparison = &c->comparisons[c->count];
	int code =
		compare_open(comparison, &c->reports[0], &c->reports[result], c->significance, err);
	if (code)
		return code;
	c->count++;
	code = compare_judge(comparison, c->gates, c->gate_count, err);
	if (!code)
		code = diagnose_both(comparison, err);
	return code;
}

/* --- measured again --------------------------------------------------------------------------- */

static bool is_decided(const struct comparing *c, const struct comparison *comparison)
{
	for (size_t g = 0; g < c->gate_count; g++)
		if (comparison->gates[g].outcome == GATE_INCONCLUSIVE &&
			!comparison->gates[g].missing)
			return false;
	return true;
}

/* An until_sure_judge; context: struct comparing. */
static int judge_look(void *context, const struct record *a, const struct record *b, unsigned look,
	struct error *err)
{
	struct comparing *c = context;
	struct report reports[2] = {{0}};
	struct comparison *comparison = calloc(1, sizeof *comparison);
	const struct record *const records[] = {a, b};
	const double level = until_sure_level(2 * c->significance, look);
	int code = comparison ? 0 : error_set(err, -ENOMEM, "out of memory for a comparison");
	for (size_t i = 0; i < 2 && !code; i++)
		code = report_open(&reports[i], records[i], err);
	if (!code)
		code = compare_open(comparison, &reports[0], &reports[1], level, err);
	if (!code) {
		code = compare_judge(comparison, c->gates, c->gate_count, err);
		code = code ? code : is_decided(c, comparison);
		compare_close(comparison);
	}
	for (size_t i = 0; i < 2; i++)
		if (reports[i].record)
			report_close(&reports[i]);
	free(comparison);
	return code;
}

static void close_results(struct comparing *c)
{
	for (size_t i = 0; i < c->count; i++)
		compare_close(&c->comparisons[i]);
	for (size_t i = 0; i < c->opened; i++) {
		if (c->reports[i].record)
			report_close(&c->reports[i]);
		record_release(&c->records[i]);
	}
	c->count = c->opened = 0;
}

/* The new results take the place of the saved ones. */
static int compare_new(struct comparing *c, const struct until_sure *sure, struct error *err)
{
	int code = 0;
	close_results(c);
	c->significance = until_sure_level(2 * c->significance, sure->look);
	for (size_t i = 0; i < 2 && !code; i++) {
		c->records[i] = sure->records[i];
		c->opened++;
		code = report_open(&c->reports[i], &c->records[i], err);
	}
	return code ? code : compare_one(c, 1, err);
}

/* What cannot be measured again stays inconclusive, and says why. */
static int compare_until_sure(struct comparing *c, struct error *err)
{
	struct until_sure sure = {.invocation = c->invocation,
		.saved = &c->comparisons[0],
		.budget_s = c->budget_s,
		.judge = judge_look,
		.context = c};
	struct error why = {0};
	if (is_decided(c, sure.saved)) {
		log_info("the saved results decide every gate: nothing was measured");
		return 0;
	}
	const int code = until_sure_run(&sure, &why);
	if (!code && sure.look > 0)
		return compare_new(c, &sure, err);
	record_release(&sure.records[0]);
	record_release(&sure.records[1]);
	if (code == -EINVAL) {
		log_warn("%s", why.text);
		return 0;
	}
	*err = why;
	return code;
}

/* --- all -------------------------------------------------------------------------------------- */

static int compare_all(struct comparing *c, struct error *err)
{
	int code = compare_parse_format(c, err);
	if (!code)
		code = compare_parse_significance(c, err);
	if (!code)
		code = parse_gates(c, err);
	if (!code)
		code = parse_until_sure(c, err);
	if (!code)
		code = open_results(c, err);
	for (size_t i = 1; i < c->opened && !code; i++)
		code = compare_one(c, i, err);
	if (!code && c->budget_s > 0)
		code = compare_until_sure(c, err);
	return code;
}

/* --- output ----------------------------------------------------------------------------------- */

static int json_text(const json_t *document, struct buffer *out, struct error *err)
{
	char *text = json_dumps(document, JSON_INDENT(1) | JSON_REAL_PRECISION(REAL_DIGITS));
	if (!text)
		return error_set(err, -ENOMEM, "out of memory for the document");
	buffer_text(out, text);
	buffer_text(out, "\n");
	free(text);
	return 0;
}

static int compare_render(const struct comparing *c, const struct compare_document *compared,
	const json_t *document, struct buffer *out, struct error *err)
{
	struct style style = command_style(c->invocation);
	switch (c->format) {
	case FORMAT_MARKDOWN:
		compare_markdown(compared, document, out);
		return 0;
	case FORMAT_JSON:
		return json_text(document, out, err);
	case FORMAT_HTML:
		return compare_html(document, out, err);
	default:
		style.colour = style.colour && !c->invocation->options.out;
		compare_text(compared, document, &style, out);
		return 0;
	}
}

static int compare_write_all(
	const struct comparing *c, const struct compare_document *compared, struct error *err)
{
	json_t *document = compare_json(compared);
	const char *path = c->invocation->options.out;
	const bool json = command_wants_json(c->invocation);
	struct buffer text = {0};
	int status = EXIT_STATUS_DONE;
	if (!document)
		return command_status(error_set(err, -ENOMEM, "out of memory for the document"));
	if (path || !json) {
		const int code = compare_render(c, compared, document, &text, err);
		status = code ? command_status(code)
			      : product_write(path, format_files[c->format], &text, err);
	}
	if (!status && json)
		status = command_print_json(c->invocation, json_incref(document), err);
	json_decref(document);
	buffer_release(&text);
	return status;
}

/* The worst outcome of all gates: EXIT_STATUS_FAILED, EXIT_STATUS_CANNOT, done. */
static int gate_status(const struct comparing *c, struct error *err)
{
	const size_t all = c->count * c->gate_count;
	size_t failed = 0;
	size_t inconclusive = 0;
	for (size_t i = 0; i < c->count; i++)
		for (size_t g = 0; g < c->gate_count; g++) {
			const struct gate_result *result = &c->comparisons[i].gates[g];
			const bool fails = gate_fails(&c->gates[g], result);
			failed += fails;
			inconclusive += !fails && result->outcome == GATE_INCONCLUSIVE;
		}
	if (failed > 0) {
		(void)error_set(err, -EINVAL, "%zu of %zu condition%s fail%s", failed, all,
			all == 1 ? "" : "s", failed == 1 ? "s" : "");
		return EXIT_STATUS_FAILED;
	}
	if (inconclusive == 0)
		return EXIT_STATUS_DONE;
	(void)error_set(err, -ENODATA, "%zu of %zu condition%s %s inconclusive", inconclusive, all,
		all == 1 ? "" : "s", inconclusive == 1 ? "is" : "are");
	return EXIT_STATUS_CANNOT;
}

/* Figures of wrong batches are worth nothing. */
static int checksum_status(const struct comparing *c, struct error *err)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->comparisons[i].checksum_check.differ) {
			(void)error_set(err, -EIO, "%s", c->comparisons[i].checksum_check.words);
			return EXIT_STATUS_FAILED;
		}
	return EXIT_STATUS_DONE;
}

static void comparing_close(struct comparing *c)
{
	close_results(c);
	free(c);
}

static int compare_run(const struct invocation *invocation, struct error *err)
{
	struct comparing *c = calloc(1, sizeof *c);
	if (!c) {
		(void)error_set(err, -ENOMEM, "out of memory");
		return EXIT_STATUS_FAILED;
	}
	c->invocation = invocation;
	const int code = compare_all(c, err);
	int status = command_status(code);
	if (!code) {
		const struct compare_document compared = {.comparisons = c->comparisons,
			.count = c->count,
			.gates = c->gates,
			.gate_count = c->gate_count,
			.verbose = options_given(&invocation->options, OPTION_VERBOSE)};
		status = compare_write_all(c, &compared, err);
	}
	if (!status)
		status = checksum_status(c, err);
	if (!status)
		status = gate_status(c, err);
	comparing_close(c);
	return status;
}

const struct command command_compare = {
	.name = "compare",
	.summary = "compare results with a baseline; a gate for CI",
	.arguments = "A B [C...]",
	.description =
		"A is the baseline; each other result is compared with it. A result is named as "
		"for 'mlbench show'. Points match if they have the same values of all keys that "
		"either result sweeps; points without a partner are listed. Prints the "
		"difference of throughput at each point with its interval and test, the stages, "
		"the bottleneck in each result, which part of the difference each stage explains "
		"(predicted), and which keys and facts of the node differ. Results with "
		"different data, image size, model or backend are refused, because their rates "
		"cannot be compared.\n\n"
		"Differences are tested at --significance (1 % by default), and count only "
		"beyond the noise floor: two runs of the same thing differ by more than their "
		"repetitions show. If a stall spoils one repetition among few, a second test "
		"without the worst repetition of each side may find what the spread hides; the "
		"output says where it did.\n\n"
		"If both results have checksums of run.verify, those of the same seed and data "
		"must agree; otherwise the exit status is 1.\n\n"
		"--fail-if METRIC < VALUE (or >) is a gate. With % it means the change against "
		"A, without it B's own figure, as in 'throughput < -5%', 'step_time > 3ms', "
		"'decode.p99 > 10%'. It has three outcomes. Exit status 1: the confidence "
		"interval shows that the condition is true, at any point or in the mean of all. "
		"0: the intervals of all points show that it is false. 3, INCONCLUSIVE: they "
		"show neither, or a result lacks the metric; the line says how many repetitions "
		"would decide. --require puts the burden of proof on B: --require 'throughput > "
		"-5%' is the same limit, and exits with 1 unless it is shown. Of several gates "
		"the worst outcome counts: 1 before 3 before 0. Both kinds of error are as rare "
		"as --significance says.\n\n"
		"--until-sure TIME measures A and B again where a gate is inconclusive, in turn "
		"and from the configurations that they were saved with, into two new results, "
		"until the gate is decided or the time is over. Each look spends a part of the "
		"significance. It needs the node, the data and the version of mlbench that both "
		"were measured with, and a configuration that differs.",
	.example = "mlbench compare results/main results/branch --fail-if 'throughput < -5%'",
	.options = OPTION_BIT(OPTION_FORMAT) | OPTION_BIT(OPTION_OUT) | OPTION_BIT(OPTION_JSON) |
		   OPTION_BIT(OPTION_FAIL_IF) | OPTION_BIT(OPTION_REQUIRE) |
		   OPTION_BIT(OPTION_UNTIL_SURE) | OPTION_BIT(OPTION_SIGNIFICANCE),
	.arguments_min = 2,
	.arguments_max = COMPARE_RESULTS_MAX,
	.run = compare_run,
};
