/* Two sessions that take turns. */
#include "harness/command/until_sure.h"

#include "harness/base/clock.h"
#include "harness/base/log.h"
#include "harness/base/rng.h"
#include "harness/base/units.h"
#include "harness/command/resume.h"
#include "harness/command/session.h"
#include "harness/measure/environment.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SIDES = 2, LOOK_FIRST = 5, ROUNDS_LEAST = 2 };

static const uint64_t TURNS_STREAM = 0x5455524e53ULL; /* apart from other uses of run.seed */

struct turns {
	struct until_sure *sure;
	struct invocation plain; /* the caller's, without what is for its own command */
	struct session sides[SIDES];
	const struct record *saved[SIDES];
	uint64_t begun_ns, round_ns; /* round_ns: what the slowest round took */
};

double until_sure_level(double significance, unsigned look)
{
	enum { LOOKS_MOST = 7 }; /* after 5, 10, ... 160 repetitions, and when the time is over */
	return look == 0 ? significance / 2 : significance / 2 / LOOKS_MOST;
}

/* --- whether they can be measured again ------------------------------------------------------------------- */

static int refuse_same(const struct turns *turns, struct error *err)
{
	const struct compare_facts *facts = &turns->sure->saved->facts;
	for (size_t i = 0; i < facts->count; i++)
		if (facts->list[i].is_key && facts->list[i].weight > COMPARE_HARMLESS)
			return 0;
	return error_set(err, -EINVAL,
		"--until-sure: A and B have the same configuration, so measuring both again "
		"shows nothing: they differ in something else");
}

static int refuse_unpaired(const struct turns *turns, struct error *err)
{
	const struct comparison *c = turns->sure->saved;
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

/* --- both sides ------------------------------------------------------------------------------------------------ */

static int until_sure_open_plan(
	struct turns *turns, size_t side, const char *name, struct error *err)
{
	struct session *session = &turns->sides[side];
	const struct record *saved = turns->saved[side];
	struct plan *plan = &session->plan;
	session->invocation = &turns->plain;
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
	if (!code && (!is_number(saved, "samples", (double)plan->dataset.count) ||
			     !is_number(saved, "bytes", (double)plan->dataset.total_bytes)))
		code = error_set(err, -EINVAL, "--until-sure: the data of %s has changed", name);
	return code;
}

/* Both headers say that they belong together; as many repetitions are planned as can be. */
static int open_record(struct turns *turns, size_t side, const char *together, struct error *err)
{
	struct session *session = &turns->sides[side];
	char most[UNITS_BYTES];
	(void)snprintf(most, sizeof most, "%d", COMPARE_REPEATS_MOST);
	int code = config_set_key(&session->plan.config, KEY_MEASURE_REPEATS, most, err);
	config_hash(&session->plan.config, session->plan.hash);
	fact_text(&session->record.environment, "mlbench", "in_turn", "%s", together);
	if (!code)
		code = resume_record(&session->record, &session->plan, &turns->plain, err);
	return code;
}

static int open_plans(struct turns *turns, struct error *err)
{
	static const char *const names[SIDES] = {"A", "B"};
	int code = refuse_same(turns, err);
	if (!code)
		code = refuse_unpaired(turns, err);
	for (size_t i = 0; i < SIDES && !code; i++)
		code = refuse_elsewhere(turns->saved[i], names[i], err);
	for (size_t i = 0; i < SIDES && !code; i++)
		code = until_sure_open_plan(turns, i, names[i], err);
	return code;
}

static int open_records(struct turns *turns, struct error *err)
{
	char when[CLOCK_UTC_BYTES];
	char together[CLOCK_UTC_BYTES + 32];
	int code = 0;
	clock_format_utc((double)time(NULL), when);
	(void)snprintf(together, sizeof together, "%s, process %d", when, (int)getpid());
	for (size_t i = 0; i < SIDES && !code; i++)
		code = open_record(turns, i, together, err);
	return code;
}

/* --- measuring ------------------------------------------------------------------------------------------------- */

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
	return (double)turns->sure->saved->match.pair_count *
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
	const double left = fmax(0, turns->sure->budget_s - until_sure_spent_s(turns));
	const double rounds = fmax(1, floor(left / fmax(1e-3, round_seconds(turns))));
	const double room = (double)(COMPARE_REPEATS_MOST - turns->sure->repeats);
	const size_t each = SIDES * turns->sure->saved->match.pair_count;
	for (size_t i = 0; i < SIDES; i++)
		turns->sides[i].progress.total =
			turns->sides[i].progress.done + (size_t)fmin(rounds, room) * each;
}

/* One repetition of each point on both sides. */
static void take_round(struct turns *turns, uint32_t repeat)
{
	const struct point_match *match = &turns->sure->saved->match;
	const uint64_t begun_ns = clock_now_ns();
	until_sure_expect(turns);
	struct rng rng;
	rng_init(&rng, (uint64_t)config_integer(&turns->saved[0]->config, KEY_RUN_SEED),
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

static bool is_time_left(const struct turns *turns)
{
	return until_sure_spent_s(turns) + round_seconds(turns) <= turns->sure->budget_s;
}

static int until_sure_refuse_budget(const struct turns *turns, struct error *err)
{
	const double least = ROUNDS_LEAST * round_seconds(turns);
	if (least <= turns->sure->budget_s)
		return 0;
	return error_set(err, -EINVAL,
		"--until-sure allows %.0f s, but %d repetitions of each point of A and B take "
		"about %.0f s",
		turns->sure->budget_s, (int)ROUNDS_LEAST, ceil(least));
}

static int look(struct turns *turns, struct error *err)
{
	struct until_sure *sure = turns->sure;
	sure->look++;
	log_progress_end();
	return sure->judge(
		sure->context, &turns->sides[0].record, &turns->sides[1].record, sure->look, err);
}

static int until_sure_measure(struct turns *turns, struct error *err)
{
	struct until_sure *sure = turns->sure;
	uint32_t next = LOOK_FIRST;
	int decided = 0;
	turns->begun_ns = clock_now_ns();
	while (decided == 0 && sure->repeats < COMPARE_REPEATS_MOST &&
		(sure->repeats < ROUNDS_LEAST || is_time_left(turns))) {
		take_round(turns, sure->repeats);
		if (until_sure_is_stopped(turns))
			return error_set(err, -EINTR,
				"interrupted: %u repetitions of each point are kept in '%.100s' and '%.100s'",
				sure->repeats, turns->sides[0].record.folder,
				turns->sides[1].record.folder);
		if (++sure->repeats < next)
			continue;
		decided = look(turns, err);
		next *= 2;
	}
	/* The time was over between two looks. */
	if (decided == 0 && sure->repeats > 0 && sure->repeats != next / 2)
		decided = look(turns, err);
	return decided < 0 ? decided : 0;
}

/* --- the whole -------------------------------------------------------------------------------------------------- */

static int finish_side(struct turns *turns, size_t side, struct error *err)
{
	struct record *record = &turns->sides[side].record;
	const uint32_t repeats = turns->sure->repeats;
	int code = repeats > 0 ? record_settle_repeats(record, repeats, err) : 0;
	return code ? code : report_finish(record, err);
}

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
			saved = finish_side(turns, i, &saving);
		}
	if (saved)
		*err = saving;
	return saved ? saved : code;
}

static void close_sides(struct turns *turns)
{
	for (size_t i = 0; i < SIDES; i++) {
		record_release(&turns->sides[i].record);
		plan_close(&turns->sides[i].plan);
	}
	free(turns);
}

static int until_sure_run_turns(struct turns *turns, struct live_show *live, struct error *err)
{
	char budget[UNITS_BYTES];
	int code = open_plans(turns, err);
	if (!code)
		code = until_sure_refuse_budget(turns, err);
	if (!code)
		code = open_records(turns, err);
	if (code)
		return code;
	const size_t pairs = turns->sure->saved->match.pair_count;
	log_info("inconclusive: measuring A and B again, in turn, for at most %s, into %s and %s",
		units_format_duration(turns->sure->budget_s * (double)NS_PER_S, budget),
		turns->sides[0].record.folder, turns->sides[1].record.folder);
	const struct progress progress = {
		.each_seconds = round_seconds(turns) / (double)(SIDES * pairs)};
	for (size_t i = 0; i < SIDES; i++) {
		turns->sides[i].live = live;
		turns->sides[i].progress = progress;
	}
	err->text[0] = '\0';
	code = until_sure_finish(turns, until_sure_measure(turns, err), err);
	for (size_t i = 0; i < SIDES; i++) {
		turns->sure->records[i] = turns->sides[i].record;
		turns->sides[i].record = (struct record){0};
	}
	return code;
}

int until_sure_run(struct until_sure *sure, struct error *err)
{
	struct turns *turns = calloc(1, sizeof *turns);
	struct live_show *live = NULL;
	if (!turns)
		return error_set(err, -ENOMEM, "out of memory");
	turns->sure = sure;
	turns->plain = *sure->invocation;
	turns->plain.options.set_count = 0; /* they are in the saved configurations */
	turns->plain.options.out = turns->plain.options.resume = NULL;
	turns->saved[0] = sure->saved->a.report->record;
	turns->saved[1] = sure->saved->b.report->record;
	int code = live_show_open(&live, &turns->plain, err);
	if (!code)
		code = until_sure_run_turns(turns, live, err);
	live_show_close(live);
	close_sides(turns);
	return code;
}
