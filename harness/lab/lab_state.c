/* A lab's state as a JSON object. */
#include "harness/lab/lab_state.h"

#include "harness/base/buffer.h"
#include "harness/base/units.h"
#include "harness/lab/ask_figures.h"
#include "harness/lab/cause_words.h"
#include "harness/record/fields.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double LAB_CONFIDENCE = 0.8; /* of a prediction that does not say how sure it is */
static const double LAB_NEAR = 1.25;      /* a factor: a single number is right within it */
static const double LAB_POINTS = 100, LAB_FAILED_COST = 5;

static const char *const lab_stage_names[LAB_STAGES] = {
	[LAB_STARTED] = "started",
	[LAB_PREDICTED] = "predicted",
	[LAB_MEASURED] = "measured",
	[LAB_PASSED] = "passed",
	[LAB_GIVEN_UP] = "given-up",
};

const char *lab_stage_name(enum lab_stage stage)
{
	return lab_stage_names[stage];
}

static const char *lab_json_text(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text ? text : "";
}

static double lab_json_number(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

enum lab_stage lab_state_stage(const json_t *state)
{
	const char *name = lab_json_text(state, "state");
	int stage = 0;
	while (stage < LAB_STAGES && strcmp(lab_stage_names[stage], name) != 0)
		stage++;
	return stage < LAB_STAGES ? (enum lab_stage)stage : LAB_STARTED;
}

static void lab_state_enter(json_t *state, enum lab_stage stage)
{
	(void)json_object_set_new(state, "state", json_string(lab_stage_names[stage]));
}

unsigned lab_state_number(const json_t *state)
{
	return (unsigned)json_integer_value(json_object_get(state, "lab"));
}

json_t *lab_state_new(const struct lab *lab, const char *student, unsigned attempt, json_t *earlier,
	const char *sealed_mine, const char *sealed_teacher, double now)
{
	return json_pack("{s:s, s:i, s:s, s:s, s:o, s:i, s:s, s:f, s:n, s:n, s:{s:s, s:s?}, "
			 "s:[], s:[], s:[], s:[], s:o}",
		"schema", LAB_SCHEMA, "lab", (int)lab->number, "name", lab->name, "title",
		lab_text(lab, 0, LAB_TITLE), "student", fields_text(student), "attempt",
		(int)attempt, "state", lab_stage_names[LAB_STARTED], "started", now, "ended",
		"points", "sealed", "mine", sealed_mine, "teacher", sealed_teacher, "predictions",
		"measurements", "hints", "checks", "earlier", earlier ? earlier : json_array());
}

int lab_state_check(const json_t *state, struct error *err)
{
	static const char *const lists[] = {
		"predictions", "measurements", "hints", "checks", "earlier"};
	const char *stage = lab_json_text(state, "state");
	bool known = false;
	if (strcmp(lab_json_text(state, "schema"), LAB_SCHEMA) != 0)
		return error_set(err, -EINVAL, "not " LAB_SCHEMA);
	for (int i = 0; i < LAB_STAGES; i++)
		known = known || strcmp(stage, lab_stage_names[i]) == 0;
	const json_int_t number = json_integer_value(json_object_get(state, "lab"));
	if (!known || number < 1 || number > 999 ||
		!json_is_number(json_object_get(state, "started")) ||
		!json_is_string(json_object_get(json_object_get(state, "sealed"), "mine")))
		return error_set(err, -EINVAL, "a damaged state of a lab");
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		const json_t *list = json_object_get(state, lists[i]);
		if (!json_is_array(list))
			return error_set(
				err, -EINVAL, "a damaged state of a lab: no '%s'", lists[i]);
		for (size_t j = 0; j < json_array_size(list); j++)
			if (!json_is_object(json_array_get(list, j)))
				return error_set(err, -EINVAL, "a damaged state of a lab: in '%s'",
					lists[i]);
	}
	return 0;
}

/* --- predictions ------------------------------------------------------------------------------ */

struct lab_guess {
	double value, low, high, confidence;
	char word[CAUSE_BYTES];
};

/* "1500", "1.5k", "40%": rates, and shares in per cent. */
static int lab_read_number(const char *text, double *value)
{
	int64_t whole;
	char plain[CAUSE_BYTES];
	(void)snprintf(plain, sizeof plain, "%s", text);
	const size_t length = strlen(plain);
	if (length > 0 && plain[length - 1] == '%')
		plain[length - 1] = '\0';
	if (units_parse_real(plain, value) != 0) {
		if (units_parse_integer(plain, &whole) != 0)
			return -EINVAL;
		*value = (double)whole;
	}
	return *value >= 0 && isfinite(*value) ? 0 : -EINVAL;
}

static int lab_read_guess(const char *text, bool word, struct lab_guess *guess, struct error *err)
{
	char body[2 * CAUSE_BYTES];
	const char *at = strchr(text, '@');
	*guess = (struct lab_guess){.confidence = LAB_CONFIDENCE};
	const size_t length = at ? (size_t)(at - text) : strlen(text);
	if (length == 0 || length >= sizeof body)
		return error_set(err, -EINVAL, "'%.60s' is no prediction", text);
	(void)snprintf(body, sizeof body, "%.*s", (int)length, text);
	if (at && (!strchr(at, '%') || units_parse_share(at + 1, &guess->confidence) != 0 ||
			  guess->confidence < 0.01 || guess->confidence > 0.99))
		return error_set(
			err, -EINVAL, "how sure is from 1%% to 99%%, as '@80%%', not '%.40s'", at);
	if (word) {
		(void)snprintf(guess->word, sizeof guess->word, "%.*s", CAUSE_BYTES - 1, body);
		return 0;
	}
	char *dots = strstr(body, "..");
	if (dots)
		*dots = '\0';
	if (lab_read_number(body, &guess->low) != 0 ||
		(dots && lab_read_number(dots + 2, &guess->high) != 0))
		return error_set(err, -EINVAL,
			"'%.60s' is no number: VALUE or LOW..HIGH, and how sure you are as '@80%%'",
			text);
	if (!dots)
		guess->high = guess->low;
	if (guess->high < guess->low)
		return error_set(
			err, -EINVAL, "'%.60s': the upper end is below the lower one", text);
	guess->value = sqrt(guess->low * guess->high);
	if (!dots) {
		guess->low /= LAB_NEAR;
		guess->high *= LAB_NEAR;
	}
	return 0;
}

static json_t *lab_find_prediction(const json_t *state, const char *name)
{
	const json_t *list = json_object_get(state, "predictions");
	for (size_t i = 0; i < json_array_size(list); i++)
		if (strcmp(lab_json_text(json_array_get(list, i), "name"), name) == 0)
			return json_array_get(list, i);
	return NULL;
}

static int lab_refuse_ask(
	const struct lab *lab, size_t variant, const char *name, struct error *err)
{
	struct buffer names = {0};
	const struct lab_line *line;
	size_t at = 0;
	while ((line = lab_next(lab, variant, LAB_ASK, &at)))
		buffer_format(&names, "%s%s", names.size ? ", " : "", line->name);
	const int code = error_set(err, -EINVAL, "'%.40s' is not asked here; these are: %s", name,
		names.data ? names.data : "");
	buffer_release(&names);
	return code;
}

/* The setting that a question is about. */
static int lab_ask_setting(const struct lab *lab, const struct lab_drawn *drawn,
	const struct lab_line *ask, json_t **setting, struct error *err)
{
	struct lab_setting of = {0};
	*setting = NULL;
	int code = lab_setting_of_line(drawn, ask, &of, err);
	if (!code)
		code = lab_setting_normalise(lab, drawn, &of, err);
	if (!code)
		*setting = lab_setting_to_json(&of);
	return code;
}

int lab_state_predict(const struct lab *lab, const struct lab_drawn *drawn, json_t *state,
	const char *word, double now, struct error *err)
{
	char name[LAB_WORD_BYTES];
	const char *equals = strchr(word, '=');
	json_t *setting = NULL;
	struct lab_guess guess;
	if (lab_state_stage(state) > LAB_PREDICTED)
		return error_set(err, -EINVAL,
			"predictions stand since the first measurement; 'mlbench lab reset %u' begins anew",
			lab->number);
	if (!equals)
		return error_set(err, -EINVAL, "expected NAME=PREDICTION, not '%.60s'", word);
	(void)snprintf(name, sizeof name, "%.*s", (int)(equals - word), word);
	const struct lab_line *ask = lab_named(lab, drawn->variant, LAB_ASK, name);
	if (!ask)
		return lab_refuse_ask(lab, drawn->variant, name, err);
	const enum ask_figure figure = ask_figure_find(ask->second);
	const bool is_word = ask_figure_is_word(figure);
	int code = lab_read_guess(equals + 1, is_word, &guess, err);
	if (!code && is_word && !cause_word(figure == ASK_STAGE, guess.word)) {
		bool right;
		code = cause_word_judge("", figure == ASK_STAGE, guess.word, &right, err);
	}
	if (!code)
		code = lab_ask_setting(lab, drawn, ask, &setting, err);
	if (code)
		return error_prefix(err, code, "%s", name);
	json_t *prediction =
		json_pack("{s:f, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:f, s:n, s:n, s:n}", "at", now,
			"name", ask->name, "figure", ask_figure_name(figure), "setting", setting,
			"value", is_word ? json_null() : json_real(guess.value), "low",
			is_word ? json_null() : json_real(guess.low), "high",
			is_word ? json_null() : json_real(guess.high), "word",
			is_word ? fields_text(guess.word) : json_null(), "confidence",
			guess.confidence, "measured", "factor", "hit");
	json_t *earlier = lab_find_prediction(state, ask->name);
	if (earlier)
		(void)json_object_update(earlier, prediction);
	if (earlier)
		json_decref(prediction);
	else
		(void)json_array_append_new(json_object_get(state, "predictions"), prediction);
	if (lab_state_open_asks(lab, drawn, state, NULL) == 0)
		lab_state_enter(state, LAB_PREDICTED);
	return 0;
}

size_t lab_state_open_asks(const struct lab *lab, const struct lab_drawn *drawn,
	const json_t *state, struct buffer *out)
{
	const struct lab_line *ask;
	size_t at = 0;
	size_t open = 0;
	while ((ask = lab_next(lab, drawn->variant, LAB_ASK, &at))) {
		if (lab_find_prediction(state, ask->name))
			continue;
		if (out)
			buffer_format(out, "%s%s", open ? ", " : "", ask->name);
		open++;
	}
	return open;
}

/* Numbers that came: a prediction is scored once. */
static void lab_score_number(json_t *prediction, double measured)
{
	const double low = lab_json_number(prediction, "low");
	const double high = lab_json_number(prediction, "high");
	const bool hit = measured >= low && measured <= high;
	const double floor =
		ask_figure_find(lab_json_text(prediction, "figure")) == ASK_DEVICE ? 1 : 0.01;
	(void)json_object_set_new(prediction, "measured", json_real(measured));
	(void)json_object_set_new(prediction, "factor",
		json_real(lab_factor(lab_json_number(prediction, "value"), measured, floor)));
	(void)json_object_set_new(prediction, "hit", json_boolean(hit));
}

static bool lab_is_scored(const json_t *prediction)
{
	return json_is_boolean(json_object_get(prediction, "hit"));
}

static void lab_score_setting(
	json_t *state, const json_t *setting, enum ask_figure figure, double measured)
{
	const json_t *list = json_object_get(state, "predictions");
	for (size_t i = 0; i < json_array_size(list) && isfinite(measured); i++) {
		json_t *prediction = json_array_get(list, i);
		if (!lab_is_scored(prediction) &&
			ask_figure_find(lab_json_text(prediction, "figure")) == figure &&
			(!setting || json_equal(json_object_get(prediction, "setting"), setting)))
			lab_score_number(prediction, measured);
	}
}

/* When the cause is told: words are scored. */
static void lab_score_words(const struct lab *lab, const struct lab_drawn *drawn, json_t *state)
{
	const char *choices = lab_text(lab, drawn->variant, LAB_CAUSE);
	const json_t *list = json_object_get(state, "predictions");
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *prediction = json_array_get(list, i);
		const enum ask_figure figure = ask_figure_find(lab_json_text(prediction, "figure"));
		const bool stage = figure == ASK_STAGE;
		bool right = false;
		char first[CAUSE_BYTES];
		if (figure == ASK_FIGURES || !ask_figure_is_word(figure) ||
			lab_is_scored(prediction))
			continue;
		(void)cause_word_judge(
			choices, stage, lab_json_text(prediction, "word"), &right, NULL);
		cause_first(choices, stage, first);
		(void)json_object_set_new(prediction, "measured", json_string(first));
		(void)json_object_set_new(prediction, "hit", json_boolean(right));
	}
}

/* --- measuring -------------------------------------------------------------------------------- */

int lab_state_may_measure(const struct lab *lab, const struct lab_drawn *drawn, const json_t *state,
	struct error *err)
{
	struct buffer open = {0};
	int code = 0;
	if (lab_state_open_asks(lab, drawn, state, &open) > 0)
		code = error_set(err, -EINVAL,
			"predict first: %s (mlbench lab predict %u NAME=VALUE ...)",
			open.data ? open.data : "", lab->number);
	buffer_release(&open);
	return code;
}

void lab_state_note_measured(json_t *state, json_t *setting, const struct lab_measured *measured,
	const char *folder, double now)
{
	lab_score_setting(state, setting, ASK_RATE, measured->rate);
	lab_score_setting(state, setting, ASK_DEVICE, measured->device);
	(void)json_array_append_new(json_object_get(state, "measurements"),
		json_pack("{s:f, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "at", now, "number",
			(int)lab_state_measurements(state) + 1, "setting", setting, "rate",
			fields_number(measured->rate), "low", fields_number(measured->low), "high",
			fields_number(measured->high), "device", fields_number(measured->device),
			"folder", fields_text(folder)));
	if (lab_state_stage(state) < LAB_MEASURED)
		lab_state_enter(state, LAB_MEASURED);
}

unsigned lab_state_measurements(const json_t *state)
{
	return (unsigned)json_array_size(json_object_get(state, "measurements"));
}

/* --- hints ------------------------------------------------------------------------------------ */

int lab_state_take_hint(const struct lab *lab, size_t variant, json_t *state, double now,
	const char **text, double *price, struct error *err)
{
	json_t *hints = json_object_get(state, "hints");
	const size_t taken = json_array_size(hints);
	*text = NULL;
	*price = 0;
	if (lab_state_stage(state) >= LAB_PASSED)
		return error_set(err, -EINVAL,
			"lab %u is over: 'mlbench lab explain %u' tells all of it", lab->number,
			lab->number);
	if (taken >= LAB_HINTS)
		return 0;
	const enum lab_word word = (enum lab_word)(LAB_HINT1 + taken);
	*text = lab_text(lab, variant, word);
	*price = lab_amount(lab, variant, word, 0);
	(void)json_array_append_new(hints,
		json_pack("{s:f, s:i, s:f}", "at", now, "number", (int)taken + 1, "price", *price));
	return 0;
}

/* --- checks ----------------------------------------------------------------------------------- */

static const char *lab_find_answer(const struct lab_claim *claim, const char *name)
{
	const size_t length = strlen(name);
	for (size_t i = 0; i < claim->answer_count; i++)
		if (strncmp(claim->answers[i], name, length) == 0 &&
			claim->answers[i][length] == '=')
			return claim->answers[i] + length + 1;
	return NULL;
}

static int lab_judge_answers(const struct lab *lab, const struct lab_drawn *drawn,
	const struct lab_claim *claim, bool *right, struct error *err)
{
	const struct lab_line *line;
	size_t at = 0;
	*right = true;
	while ((line = lab_next(lab, drawn->variant, LAB_ANSWER, &at))) {
		const char *text = lab_find_answer(claim, line->name);
		double given;
		double truth;
		if (!text)
			return error_set(
				err, -EINVAL, "'%s=NUMBER' is missing: %s", line->name, line->text);
		if (lab_read_number(text, &given) != 0)
			return error_set(err, -EINVAL, "%s=%.40s is no number", line->name, text);
		const int code = expression_evaluate(line->second, &drawn->scope, &truth, err);
		if (code)
			return code;
		*right = *right && fabs(given - truth) <= line->amount * fabs(truth);
	}
	for (size_t i = 0; i < claim->answer_count; i++) {
		char name[LAB_WORD_BYTES];
		(void)snprintf(name, sizeof name, "%.*s", (int)strcspn(claim->answers[i], "="),
			claim->answers[i]);
		if (!lab_named(lab, drawn->variant, LAB_ANSWER, name))
			return error_set(err, -EINVAL,
				"'%.40s' is none of what a check takes: settings, cause, evidence, answers",
				name);
	}
	return 0;
}

static int lab_judge_evidence(
	const struct lab *lab, size_t variant, const char *evidence, bool *right, struct error *err)
{
	if (evidence && lab_named(lab, variant, LAB_EVIDENCE, evidence)) {
		*right = lab_is_among(lab_text(lab, variant, LAB_RIGHT), evidence);
		return 0;
	}
	struct buffer names = {0};
	const struct lab_line *line;
	size_t at = 0;
	while ((line = lab_next(lab, variant, LAB_EVIDENCE, &at)))
		buffer_format(&names, "%s%s", names.size ? ", " : "", line->name);
	const int code = evidence ? error_set(err, -EINVAL, "evidence=%.40s: pick one of %s",
					    evidence, names.data ? names.data : "")
				  : error_set(err, -EINVAL, "'evidence=NAME' is missing: one of %s",
					    names.data ? names.data : "");
	buffer_release(&names);
	return code;
}

int lab_check_claims(const struct lab *lab, const struct lab_drawn *drawn, const json_t *state,
	const struct lab_claim *claim, struct lab_check *check, struct error *err)
{
	struct cause_right right;
	*check = (struct lab_check){.measures = lab_line(lab, drawn->variant, LAB_BEST) != NULL};
	if (lab_state_stage(state) >= LAB_PASSED)
		return error_set(err, -EINVAL,
			"lab %u is over ('%s'); 'mlbench lab reset %u' begins anew", lab->number,
			lab_stage_names[lab_state_stage(state)], lab->number);
	if (lab_state_stage(state) < LAB_MEASURED)
		return error_set(
			err, -EINVAL, "measure first: mlbench lab measure %u", lab->number);
	if (!claim->cause)
		return error_set(err, -EINVAL,
			"'cause=STAGE/RESOURCE' is missing: what is the bottleneck, and what does it lack");
	int code = cause_judge(lab_text(lab, drawn->variant, LAB_CAUSE), claim->cause, &right, err);
	if (!code)
		code = lab_judge_evidence(
			lab, drawn->variant, claim->evidence, &check->evidence_right, err);
	if (!code)
		code = lab_judge_answers(lab, drawn, claim, &check->answers_right, err);
	check->stage_right = right.stage;
	check->cause_right = right.resource;
	return code;
}

static json_t *lab_answers_json(const struct lab_claim *claim)
{
	json_t *answers = json_object();
	for (size_t i = 0; i < claim->answer_count; i++) {
		char name[LAB_WORD_BYTES];
		const size_t length = strcspn(claim->answers[i], "=");
		(void)snprintf(name, sizeof name, "%.*s", (int)length, claim->answers[i]);
		(void)json_object_set_new(
			answers, name, fields_text(claim->answers[i] + length + 1));
	}
	return answers;
}

/* An interval's end that is not known is null. */
static json_t *lab_bound(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

void lab_state_note_check(const struct lab *lab, const struct lab_drawn *drawn, json_t *state,
	json_t *setting, const struct lab_claim *claim, struct lab_check *check, double now)
{
	const struct lab_judgement *j = &check->judgement;
	const bool claims = check->cause_right && check->evidence_right && check->answers_right;
	const enum lab_gain gain = check->measures ? j->gain : LAB_GAIN_YES;
	check->passed = claims && gain == LAB_GAIN_YES;
	check->open = !check->passed && (gain == LAB_GAIN_OPEN || gain == LAB_GAIN_NONE);
	if (check->measures)
		lab_score_setting(state, NULL, ASK_BEST, j->median.best);
	(void)json_array_append_new(json_object_get(state, "checks"),
		json_pack(
			"{s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:s, s:b, s:b, "
			"s:b, s:b, s:b}",
			"at", now, "setting", setting, "cause", fields_text(claim->cause),
			"evidence", fields_text(claim->evidence), "answers",
			lab_answers_json(claim), "broken",
			lab_bound(check->measures ? j->median.broken : (double)NAN), "yours",
			lab_bound(check->measures ? j->median.yours : (double)NAN), "best",
			lab_bound(check->measures ? j->median.best : (double)NAN), "share",
			lab_bound(check->measures ? j->share : (double)NAN), "low",
			lab_bound(check->measures ? j->interval.low : (double)NAN), "high",
			lab_bound(check->measures ? j->interval.high : (double)NAN), "blocks",
			(int)j->blocks, "gain", lab_gain_name(gain), "stage_right",
			check->stage_right, "cause_right", check->cause_right, "evidence_right",
			check->evidence_right, "answers_right", check->answers_right, "passed",
			check->passed));
	if (!check->passed)
		return;
	lab_score_words(lab, drawn, state);
	(void)json_object_set_new(state, "points", json_real(lab_state_points(state)));
	(void)json_object_set_new(state, "ended", json_real(now));
	lab_state_enter(state, LAB_PASSED);
}

int lab_state_give_up(const struct lab *lab, const struct lab_drawn *drawn, json_t *state,
	double now, struct error *err)
{
	if (lab_state_stage(state) >= LAB_PASSED)
		return error_set(err, -EINVAL, "lab %u is over already", lab->number);
	lab_score_words(lab, drawn, state);
	(void)json_object_set_new(state, "points", json_real(0));
	(void)json_object_set_new(state, "ended", json_real(now));
	lab_state_enter(state, LAB_GIVEN_UP);
	return 0;
}

/* --- what it comes to ------------------------------------------------------------------------- */

double lab_state_points(const json_t *state)
{
	const json_t *hints = json_object_get(state, "hints");
	const json_t *checks = json_object_get(state, "checks");
	double points = LAB_POINTS;
	for (size_t i = 0; i < json_array_size(hints); i++)
		points -= json_number_value(json_object_get(json_array_get(hints, i), "price"));
	for (size_t i = 0; i < json_array_size(checks); i++) {
		const json_t *check = json_array_get(checks, i);
		const char *gain = lab_json_text(check, "gain");
		const bool told = strcmp(gain, "yes") == 0 || strcmp(gain, "no") == 0;
		if (told && !json_is_true(json_object_get(check, "passed")))
			points -= LAB_FAILED_COST;
	}
	return lab_state_stage(state) == LAB_GIVEN_UP ? 0 : fmax(points, 0);
}

json_t *lab_state_attempt(const json_t *state)
{
	json_t *points = json_object_get(state, "points");
	return json_pack("{s:i, s:s, s:O, s:i, s:i}", "attempt",
		(int)json_integer_value(json_object_get(state, "attempt")), "state",
		lab_stage_names[lab_state_stage(state)], "points", points ? points : json_null(),
		"hints", (int)json_array_size(json_object_get(state, "hints")), "checks",
		(int)json_array_size(json_object_get(state, "checks")));
}

struct lab_predicted lab_state_predicted(const json_t *state)
{
	const json_t *list = json_object_get(state, "predictions");
	struct lab_predicted p = {.count = json_array_size(list)};
	double factors = 0;
	double brier = 0;
	double confidence = 0;
	for (size_t i = 0; i < p.count; i++) {
		const json_t *prediction = json_array_get(list, i);
		const double factor = lab_json_number(prediction, "factor");
		const double sure = lab_json_number(prediction, "confidence");
		const bool hit = json_is_true(json_object_get(prediction, "hit"));
		if (!lab_is_scored(prediction) || !isfinite(sure))
			continue;
		p.scored++;
		p.hits += hit;
		brier += lab_brier(sure, hit);
		confidence += sure;
		p.factors += factor > 0;
		factors += factor > 0 ? log(factor) : 0;
	}
	p.factor = p.factors ? exp(factors / (double)p.factors) : (double)NAN;
	p.brier = p.scored ? brier / (double)p.scored : (double)NAN;
	p.confidence = p.scored ? confidence / (double)p.scored : (double)NAN;
	return p;
}

/* --- judged again ----------------------------------------------------------------------------- */

int lab_state_judge_again(const struct lab *lab, const struct lab_drawn *drawn, const json_t *state)
{
	const json_t *checks = json_object_get(state, "checks");
	const json_t *last = json_array_get(checks, json_array_size(checks) - 1);
	struct lab_claim claim = {.cause = json_string_value(json_object_get(last, "cause")),
		.evidence = json_string_value(json_object_get(last, "evidence"))};
	char answers[LAB_PAIRS_MAX][2 * LAB_WORD_BYTES];
	const char *name;
	json_t *value;
	struct lab_check check;
	if (lab_state_stage(state) != LAB_PASSED)
		return -1;
	json_object_foreach(json_object_get(last, "answers"), name, value)
	{
		if (claim.answer_count == LAB_PAIRS_MAX)
			break;
		char *answer = answers[claim.answer_count];
		(void)snprintf(answer, sizeof answers[0], "%.*s=%.*s", LAB_WORD_BYTES - 1, name,
			LAB_WORD_BYTES - 1, json_is_string(value) ? json_string_value(value) : "");
		claim.answers[claim.answer_count++] = answer;
	}
	json_t *before = json_copy((json_t *)state);
	lab_state_enter(before, LAB_MEASURED);
	const int code = lab_check_claims(lab, drawn, before, &claim, &check, NULL);
	json_decref(before);
	return !code && check.cause_right && check.evidence_right && check.answers_right &&
	       fabs(lab_json_number(state, "points") - lab_state_points(state)) < 0.5;
}
