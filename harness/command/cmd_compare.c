/* mlbench compare: results beside a baseline, for people and as a gate; with --until-sure two saved
 * results are measured again, in turn, until a gate is decided or the time is over.
 *
 * A repetition of A, one of B, one of B, one of A ..., by a seeded coin, each set up anew, at every
 * point: what changes from run to run falls on both sides alike.  The gates are looked at after 5, 10,
 * 20, ... repetitions, and when the time is over: looking until something is seen would err more often
 * than the level says.  So the saved results are judged at half of it, and each later look at an equal
 * part of the other half (Bonferroni). */
#include "harness/base/clock.h"
#include "harness/base/log.h"
#include "harness/base/rng.h"
#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/command/calibration.h"
#include "harness/command/command.h"
#include "harness/command/resume.h"
#include "harness/command/saved.h"
#include "harness/command/session.h"
#include "harness/measure/environment.h"
#include "harness/report/compare.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FORMAT_TEXT, FORMAT_MARKDOWN, FORMAT_JSON, FORMAT_HTML, FORMATS };
enum { GATES_MAX = 64 };

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

enum { SIDES = 2, LOOK_FIRST = 5, ROUNDS_LEAST = 2 };

static const uint64_t TURNS_STREAM = 0x5455524e53ULL; /* apart from other uses of run.seed */

/* --until-sure: two sessions that take turns. */
struct turns {
	const struct comparing *c;
	struct invocation plain; /* the command's own, without what is for it alone */
	struct session sides[SIDES];
	struct party alone; /* of no ranks */
	unsigned look;      /* the last */
	uint32_t repeats;
	uint64_t begun_ns, round_ns; /* round_ns: what the slowest round took */
};

/* The level of a look; look 0 is at the saved results. */
static double until_sure_level(double significance, unsigned look)
{
	enum { LOOKS_MOST = 7 }; /* after 5, 10, ... 160 repetitions, and when the time is over */
	return look == 0 ? significance / 2 : significance / 2 / LOOKS_MOST;
}

/* --- what is asked ---------------------------------------------------------------------------- */

static int compare_parse_format(struct comparing *c, struct error *err)
{
	const char *name = c->invocation->options.values[OPTION_FORMAT];
	const bool json = command_wants_json(c->invocation);
	c->format = json ? FORMAT_JSON : FORMAT_TEXT;
	if (!name)
		return 0;
	for (int i = 0; i < FORMATS; i++)
		if (strcmp(name, format_names[i]) == 0) {
			c->format = i;
			if (json && i != FORMAT_JSON && !c->invocation->options.values[OPTION_OUT])
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
	const char *text = c->invocation->options.values[OPTION_SIGNIFICANCE];
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
	const char *text = options->values[OPTION_UNTIL_SURE];
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

static int open_results(struct comparing *c, struct error *err)
{
	const struct options *options = &c->invocation->options;
	int code = 0;
	while (c->opened < options->argument_count && !code) {
		struct record *record = &c->records[c->opened];
		struct report *report = &c->reports[c->opened];
		code = saved_find(record, options->arguments[c->opened++], err);
		if (!code)
			code = report_open(report, record, err);
		if (!code && report->best == record->grid.points &&
			report->good + report->unsteady == 0)
			code = error_set(
				err, -EINVAL, "'%s' has no measured point", record->folder);
	}
	return code;
}

/* --- why they differ -------------------------------------------------------------------------- */

static void take_verdict(
	struct compare_side *side, size_t point, const struct diagnosed *diagnosed, bool known)
{
	side->verdict = known ? diagnosed->diagnosis.verdict : side->report->points[point]->verdict;
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
	const char *reason = !a->calibrated && a->why_not[0]   ? a->why_not
			     : !b->calibrated && b->why_not[0] ? b->why_not
							       : why.text;
	(void)snprintf(comparison->explanation.why_not, sizeof comparison->explanation.why_not,
		"%.*s", NOTE_BYTES - 1, reason);
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

/* 1: decided; 0: go on; or a negative errno. */
static int judge_look(const struct comparing *c, const struct record *a, const struct record *b,
	unsigned look, struct error *err)
{
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

/* --- --until-sure: whether they can be measured again ----------------------------------------- */

/* There is something to measure: settings that differ, at the same points. */
static int refuse_pair(const struct comparison *c, struct error *err)
{
	bool differ = false;
	for (size_t i = 0; i < c->facts.count; i++)
		differ = differ ||
			 (c->facts.list[i].is_key && c->facts.list[i].weight > COMPARE_HARMLESS);
	if (!differ)
		return error_set(err, -EINVAL,
			"--until-sure: A and B have the same configuration, so measuring both again "
			"shows nothing: they differ in something else");
	if (c->match.only_a_count + c->match.only_b_count == 0)
		return 0;
	return error_set(err, -EINVAL,
		"--until-sure: A and B do not have the same points (%zu only in A, %zu only in B)",
		c->match.only_a_count, c->match.only_b_count);
}

/* It was measured here, as this node is now, by this program. */
static int refuse_elsewhere(const struct record *record, const char *side, struct error *err)
{
	struct fact_list now = {0};
	struct compare_facts facts = {0};
	const struct fact *version = fact_find(&record->environment, "mlbench", "version");
	int code = 0;
	if (!version || version->kind != FACT_TEXT || strcmp(version->text, MLBENCH_VERSION) != 0)
		return error_set(err, -EINVAL,
			"--until-sure: %s was measured by mlbench %s, and this is " MLBENCH_VERSION,
			side, version && version->kind == FACT_TEXT ? version->text : "(unknown)");
	environment_capture(&now, config_text(&record->config, KEY_DATASET_PATH));
	compare_environments(&facts, &record->environment, &now);
	compare_facts_sort(&facts);
	if (compare_facts_count(&facts, COMPARE_STRONG) > 0)
		code = error_set(err, -EINVAL,
			"--until-sure: this node has changed since %s was measured: %s was %.60s and is "
			"%.60s",
			side, facts.list[0].name, facts.list[0].a, facts.list[0].b);
	compare_facts_release(&facts);
	fact_list_release(&now);
	return code;
}

static bool is_number(const struct record *record, const char *name, double value)
{
	const struct fact *fact = fact_find(&record->environment, "dataset", name);
	return fact && fact->kind == FACT_NUMBER && fact->number == value;
}

/* --- --until-sure: both sides ----------------------------------------------------------------- */

static int until_sure_open_plan(
	struct turns *turns, size_t side, const char *name, struct error *err)
{
	struct session *session = &turns->sides[side];
	const struct record *saved = &turns->c->records[side];
	struct plan *plan = &session->plan;
	session->invocation = &turns->plain;
	session->party = &turns->alone;
	int code = config_copy(&plan->config, &saved->config, err);
	if (!code)
		code = plan_open(plan, &turns->plain, NULL, err);
	if (code)
		return code;
	(void)snprintf(plan->name, sizeof plan->name, "%s", saved->name);
	code = plan_data(plan, &turns->plain, false, err);
	if (!code && !plan->has_data)
		code = error_set(err, -EINVAL, "--until-sure: the data of %s is missing: %s", name,
			plan->data_why);
	if (!code && (!is_number(saved, "samples", (double)plan->samples) ||
			     !is_number(saved, "bytes", (double)plan->sample_bytes)))
		code = error_set(err, -EINVAL, "--until-sure: the data of %s has changed", name);
	return code;
}

/* Both headers say that they belong together; as many repetitions are planned as can be. */
static int open_records(struct turns *turns, struct error *err)
{
	char when[CLOCK_UTC_BYTES];
	char most[UNITS_BYTES];
	int code = 0;
	clock_format_utc((double)time(NULL), when);
	(void)snprintf(most, sizeof most, "%d", COMPARE_REPEATS_MOST);
	for (size_t i = 0; i < SIDES && !code; i++) {
		struct session *session = &turns->sides[i];
		code = config_set_key(&session->plan.config, KEY_MEASURE_REPEATS, most, err);
		config_hash(&session->plan.config, session->plan.hash);
		fact_text(&session->record.environment, "mlbench", "in_turn", "%s, process %d",
			when, (int)getpid());
		if (!code)
			code = resume_record(&session->record, &session->plan, &turns->plain, err);
	}
	return code;
}

static int open_plans(struct turns *turns, struct error *err)
{
	static const char *const names[SIDES] = {"A", "B"};
	int code = refuse_pair(&turns->c->comparisons[0], err);
	for (size_t i = 0; i < SIDES && !code; i++)
		code = refuse_elsewhere(&turns->c->records[i], names[i], err);
	for (size_t i = 0; i < SIDES && !code; i++)
		code = until_sure_open_plan(turns, i, names[i], err);
	return code;
}

/* --- --until-sure: measuring ------------------------------------------------------------------ */

static double until_sure_spent_s(const struct turns *turns)
{
	return (double)(clock_now_ns() - turns->begun_ns) / (double)NS_PER_S;
}

/* Of one repetition, as it is planned; of so many epochs, it is not known. */
static double planned_seconds(const struct session *session)
{
	static const double overhead_guess = 0.1;
	return plan_repetition_seconds(&session->plan) + overhead_guess;
}

static double round_seconds(const struct turns *turns)
{
	if (turns->round_ns > 0)
		return (double)turns->round_ns / (double)NS_PER_S;
	return (double)turns->c->comparisons[0].match.pair_count *
	       (planned_seconds(&turns->sides[0]) + planned_seconds(&turns->sides[1]));
}

static bool until_sure_is_stopped(const struct turns *turns)
{
	return atomic_load(turns->plain.stop) || turns->sides[0].trouble_code ||
	       turns->sides[1].trouble_code;
}

static void take_turn(struct turns *turns, size_t side, size_t point, uint32_t repeat)
{
	struct session *session = &turns->sides[side];
	const struct schedule_item item = {.point = (uint32_t)point, .repeat = repeat};
	live_show_plan(session->live, session->plan.name, session->record.folder);
	session_measure_item(session, &item);
	turns->sides[1 - side].progress = session->progress;
}

/* As many repetitions as the time that is left has room for, this round's at least. */
static void until_sure_expect(struct turns *turns)
{
	const double left = fmax(0, turns->c->budget_s - until_sure_spent_s(turns));
	const double rounds = fmax(1, floor(left / fmax(1e-3, round_seconds(turns))));
	const double room = (double)(COMPARE_REPEATS_MOST - turns->repeats);
	const size_t each = SIDES * turns->c->comparisons[0].match.pair_count;
	for (size_t i = 0; i < SIDES; i++)
		turns->sides[i].progress.total =
			turns->sides[i].progress.done + (size_t)fmin(rounds, room) * each;
}

/* One repetition of each point on both sides. */
static void take_round(struct turns *turns, uint32_t repeat)
{
	const struct point_match *match = &turns->c->comparisons[0].match;
	const uint64_t begun_ns = clock_now_ns();
	until_sure_expect(turns);
	struct rng rng;
	rng_init(&rng, (uint64_t)config_integer(&turns->c->records[0].config, KEY_RUN_SEED),
		TURNS_STREAM + repeat);
	for (size_t i = 0; i < match->pair_count && !until_sure_is_stopped(turns); i++) {
		const size_t first = rng_below(&rng, SIDES);
		const size_t points[SIDES] = {match->pairs[i].a, match->pairs[i].b};
		take_turn(turns, first, points[first], repeat);
		if (!until_sure_is_stopped(turns))
			take_turn(turns, 1 - first, points[1 - first], repeat);
	}
	const uint64_t took_ns = clock_now_ns() - begun_ns;
	turns->round_ns = took_ns > turns->round_ns ? took_ns : turns->round_ns;
}

static int look(struct turns *turns, struct error *err)
{
	turns->look++;
	log_progress_end();
	return judge_look(
		turns->c, &turns->sides[0].record, &turns->sides[1].record, turns->look, err);
}

static int until_sure_measure(struct turns *turns, struct error *err)
{
	uint32_t next = LOOK_FIRST;
	int decided = 0;
	turns->begun_ns = clock_now_ns();
	while (decided == 0 && turns->repeats < COMPARE_REPEATS_MOST &&
		(turns->repeats < ROUNDS_LEAST ||
			until_sure_spent_s(turns) + round_seconds(turns) <= turns->c->budget_s)) {
		take_round(turns, turns->repeats);
		if (until_sure_is_stopped(turns))
			return error_set(err, -EINTR,
				"interrupted: %u repetitions of each point are kept in '%.100s' and '%.100s'",
				turns->repeats, turns->sides[0].record.folder,
				turns->sides[1].record.folder);
		if (++turns->repeats < next)
			continue;
		decided = look(turns, err);
		next *= 2;
	}
	/* The time was over between two looks. */
	if (decided == 0 && turns->repeats > 0 && turns->repeats != next / 2)
		decided = look(turns, err);
	return decided < 0 ? decided : 0;
}

/* --- --until-sure: the whole ------------------------------------------------------------------ */

/* As many repetitions of each side; what was stopped in is not counted. */
static int until_sure_finish(struct turns *turns, int code, struct error *err)
{
	struct error saving = {0};
	int saved = 0;
	log_progress_end();
	for (size_t i = 0; i < SIDES && !saved; i++)
		if (turns->sides[i].trouble_code) {
			saved = turns->sides[i].trouble_code;
			saving = turns->sides[i].trouble;
		} else {
			struct record *record = &turns->sides[i].record;
			if (turns->repeats > 0)
				saved = record_settle_repeats(record, turns->repeats, &saving);
			if (!saved)
				saved = report_finish(record, &saving);
		}
	if (saved)
		*err = saving;
	return saved ? saved : code;
}

static int until_sure_run_turns(struct turns *turns, struct live_show *live, struct error *err)
{
	char budget[UNITS_BYTES];
	const double least = ROUNDS_LEAST * round_seconds(turns);
	if (least > turns->c->budget_s)
		return error_set(err, -EINVAL,
			"--until-sure allows %.0f s, but %d repetitions of each point of A and B take "
			"about %.0f s",
			turns->c->budget_s, (int)ROUNDS_LEAST, ceil(least));
	const int code = open_records(turns, err);
	if (code)
		return code;
	const size_t pairs = turns->c->comparisons[0].match.pair_count;
	log_info("inconclusive: measuring A and B again, in turn, for at most %s, into %s and %s",
		units_format_duration(turns->c->budget_s * (double)NS_PER_S, budget),
		turns->sides[0].record.folder, turns->sides[1].record.folder);
	const struct progress progress = {
		.each_seconds = round_seconds(turns) / (double)(SIDES * pairs)};
	for (size_t i = 0; i < SIDES; i++) {
		turns->sides[i].live = live;
		turns->sides[i].progress = progress;
	}
	err->text[0] = '\0';
	return until_sure_finish(turns, until_sure_measure(turns, err), err);
}

/* The new results take the place of the saved ones. */
static int compare_new(struct comparing *c, struct turns *turns, struct error *err)
{
	int code = 0;
	close_results(c);
	c->significance = until_sure_level(2 * c->significance, turns->look);
	for (size_t i = 0; i < SIDES && !code; i++) {
		c->records[i] = turns->sides[i].record;
		turns->sides[i].record = (struct record){0};
		c->opened++;
		code = report_open(&c->reports[i], &c->records[i], err);
	}
	return code ? code : compare_one(c, 1, err);
}

/* What cannot be measured again stays inconclusive, and says why. */
static int compare_until_sure(struct comparing *c, struct error *err)
{
	struct live_show *live = NULL;
	struct error why = {0};
	if (is_decided(c, &c->comparisons[0])) {
		log_info("the saved results decide every gate: nothing was measured");
		return 0;
	}
	struct turns *turns = calloc(1, sizeof *turns);
	if (!turns)
		return error_set(err, -ENOMEM, "out of memory");
	turns->c = c;
	turns->plain = *c->invocation;
	turns->plain.options.set_count = 0; /* they are in the saved configurations */
	turns->plain.options.values[OPTION_OUT] = turns->plain.options.values[OPTION_RESUME] = NULL;
	int code = open_plans(turns, &why);
	if (!code)
		code = live_show_open(&live, &turns->plain, &why);
	if (!code)
		code = until_sure_run_turns(turns, live, &why);
	live_show_close(live);
	if (code == -EINVAL) {
		log_warn("%s", why.text);
		code = 0;
	} else if (code) {
		*err = why;
	} else if (turns->look > 0) {
		code = compare_new(c, turns, err);
	}
	for (size_t i = 0; i < SIDES; i++) {
		record_release(&turns->sides[i].record);
		plan_close(&turns->sides[i].plan);
	}
	free(turns);
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

static int compare_render(const struct comparing *c, const struct compare_document *compared,
	json_t *document, struct buffer *out, struct error *err)
{
	struct style style = command_style(c->invocation);
	switch (c->format) {
	case FORMAT_MARKDOWN:
		compare_markdown(compared, document, out);
		return 0;
	case FORMAT_JSON:
		command_add_json(json_incref(document), out);
		return 0;
	case FORMAT_HTML:
		return compare_html(document, out, err);
	default:
		style.colour = style.colour && !c->invocation->options.values[OPTION_OUT];
		compare_text(compared, document, &style, out);
		return 0;
	}
}

static int compare_write_all(
	const struct comparing *c, const struct compare_document *compared, struct error *err)
{
	json_t *document = compare_json(compared);
	const char *path = c->invocation->options.values[OPTION_OUT];
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

static int compare_run(const struct invocation *invocation, struct error *err)
{
	struct comparing *c = calloc(1, sizeof *c);
	if (!c)
		return command_status(error_set(err, -ENOMEM, "out of memory"));
	c->invocation = invocation;
	const int code = compare_all(c, err);
	int status = command_status(code);
	if (!code) {
		const struct compare_document compared = {.comparisons = c->comparisons,
			.count = c->count,
			.gates = c->gates,
			.gate_count = c->gate_count,
			.verbose = options_given(&invocation->options, OPTION_VERBOSE),
			.whole = options_given(&invocation->options, OPTION_VERBOSE) ||
				 invocation->options.values[OPTION_OUT]};
		status = compare_write_all(c, &compared, err);
	}
	/* Figures of wrong batches are worth nothing. */
	for (size_t i = 0; i < c->count && !status; i++)
		if (c->comparisons[i].checksum_check.differ) {
			(void)error_set(err, -EIO, "%s", c->comparisons[i].checksum_check.words);
			status = EXIT_STATUS_FAILED;
		}
	if (!status)
		status = gate_status(c, err);
	close_results(c);
	free(c);
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
