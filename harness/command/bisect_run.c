/* The answerer of delta debugging's questions: mixtures become arms, pairs of runs become answers, and replay says whom to
 * suspect first.  bisect.json is written after each question, so that a kill leaves what is known. */
#include "harness/command/bisect_run.h"

#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/log.h"
#include "harness/base/program.h"
#include "harness/command/calibration.h"
#include "harness/record/config_json.h"
#include "harness/record/fields.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BISECT_EFFORT = 8, BISECT_JSON_DIGITS = 6, BISECT_VALUE_BYTES = 64 };

/* --- what the replay suspects ----------------------------------------------------------------- */

/* Throughput of a mixture by GOOD's record; NAN: replay does not know all of its keys. */
static double bisect_predict(const struct bisect_run *run, const struct calibration *calibration,
	const struct delta_set *set)
{
	struct config config;
	struct node_limits node;
	struct model model = {0};
	struct prediction prediction;
	struct error why;
	double rate = (double)NAN;
	for (size_t i = 0; i < run->sides.count; i++)
		if (delta_has(set, i) && run->sides.items[i].key_count == 0)
			return rate; /* another node */
	if (bisect_mix(&run->sides, set, &config, &node, &why))
		return rate;
	if (calibration_alter(calibration, &config, &model, &why) == 0 &&
		model_predict(&model, BISECT_EFFORT, &prediction, &why) == 0)
		rate = prediction.throughput;
	model_close(&model);
	config_release(&config);
	return rate;
}

/* Of the differences that the replay knows, what each costs in GOOD, and in the mixture of all of them. */
static void bisect_predict_items(struct bisect_run *run, const struct calibration *calibration)
{
	const struct delta_set none = {{0}};
	struct delta_set known = {{0}};
	const double base = bisect_predict(run, calibration, &none);
	for (size_t i = 0; i < run->sides.count && !isnan(base); i++) {
		struct delta_set one = {{0}};
		delta_put(&one, i);
		run->predicted_added[i] = bisect_predict(run, calibration, &one) / base - 1;
		if (!isnan(run->predicted_added[i]))
			delta_put(&known, i);
	}
	const double all = bisect_predict(run, calibration, &known);
	if (delta_size(&known) == run->sides.count)
		run->predicted_loss = all / base - 1;
	for (size_t i = 0; i < run->sides.count; i++) {
		struct delta_set one = {{0}};
		if (!delta_has(&known, i))
			continue;
		delta_put(&one, i);
		const struct delta_set without = delta_without(&known, &one);
		run->predicted_removed[i] = all / bisect_predict(run, calibration, &without) - 1;
	}
}

/* What replay leaves unexplained is suspected of those that it does not know, in equal parts. */
static void bisect_suspect(struct bisect_run *run, double loss)
{
	double explained = 0;
	size_t unknown = 0;
	for (size_t i = 0; i < run->sides.count; i++) {
		const double added = run->predicted_added[i];
		const double removed = run->predicted_removed[i];
		if (isnan(added)) {
			unknown++;
			continue;
		}
		run->suspicion[i] =
			fmax(fmax(0, -log1p(added)), isnan(removed) ? 0 : fmax(0, -log1p(removed)));
		explained += run->suspicion[i];
	}
	for (size_t i = 0; i < run->sides.count; i++)
		if (isnan(run->predicted_added[i]))
			run->suspicion[i] = fmax(0, loss - explained) / (double)unknown;
}

/* As bisect.json has it: what an earlier call predicted must lead to the same order. */
static double bisect_round(double share)
{
	char text[32];
	(void)snprintf(text, sizeof text, "%.*g", BISECT_JSON_DIGITS, share);
	return strtod(text, NULL);
}

static void bisect_forget_predictions(struct bisect_run *run)
{
	run->predicted_loss = (double)NAN;
	run->why_not[0] = '\0';
	for (size_t i = 0; i < run->sides.count; i++)
		run->predicted_added[i] = run->predicted_removed[i] = (double)NAN;
}

/* GOOD's record has grown since then, and would predict otherwise.  False: nothing was predicted yet. */
static bool bisect_load_predictions(struct bisect_run *run)
{
	char *path = files_join(run->folder, BISECT_FILE);
	json_t *json = path ? json_load_file(path, 0, NULL) : NULL;
	const json_t *list = json_object_get(json, "differences");
	const char *why_not = json_string_value(json_object_get(json, "no_prediction"));
	bool known = json_is_object(json_object_get(json, "loss")) &&
		     json_array_size(list) == run->sides.count;
	for (size_t i = 0; i < run->sides.count && known; i++) {
		const json_t *of = json_array_get(list, i);
		const char *name = json_string_value(json_object_get(of, "name"));
		known = name && strcmp(name, run->sides.items[i].name) == 0;
		run->predicted_added[i] = fields_real(json_object_get(of, "predicted_added"));
		run->predicted_removed[i] = fields_real(json_object_get(of, "predicted_removed"));
	}
	run->predicted_loss = fields_real(json_object_get(json, "predicted_loss"));
	if (why_not)
		(void)snprintf(
			run->why_not, sizeof run->why_not, "%.*s", BISECT_NOTE_BYTES - 1, why_not);
	json_decref(json);
	free(path);
	if (!known)
		bisect_forget_predictions(run);
	return known;
}

static void bisect_make_predictions(struct bisect_run *run)
{
	struct calibration calibration;
	struct error why = {0};
	const int code = calibration_open(&calibration, paired_record(run->paired, run->good_arm),
		0, (double)NAN, NULL, &why);
	if (code)
		(void)snprintf(
			run->why_not, sizeof run->why_not, "%.*s", BISECT_NOTE_BYTES - 1, why.text);
	else
		bisect_predict_items(run, &calibration);
	calibration_close(&calibration);
	for (size_t i = 0; i < run->sides.count; i++) {
		run->predicted_added[i] = bisect_round(run->predicted_added[i]);
		run->predicted_removed[i] = bisect_round(run->predicted_removed[i]);
	}
}

/* --- questions -------------------------------------------------------------------------------- */

static int bisect_arm(
	struct bisect_run *run, const struct delta_set *set, size_t *arm, struct error *err)
{
	const struct delta_set all = delta_all(run->sides.count);
	const size_t size = delta_size(set);
	struct config config;
	struct paired_arm_spec spec = {.config = &config, .keep_traces = size == 0};
	char label[PAIRED_LABEL_BYTES] = "good";
	if (delta_equal(set, &all))
		(void)snprintf(label, sizeof label, "bad");
	else if (size > 0)
		(void)snprintf(label, sizeof label, "mix-%016" PRIx64,
			hash_bytes(set->words, sizeof set->words, 0));
	spec.label = label;
	int code = bisect_mix(&run->sides, set, &config, &spec.node, err);
	if (code)
		return code;
	code = paired_add(run->paired, &spec, arm, err);
	config_release(&config);
	return code;
}

/* What ends all questions, and not this mixture alone. */
static bool bisect_is_end(int code)
{
	return code == -EINTR || code == -ETIME || code == -EDOM || code == -E2BIG ||
	       code == -ENOSPC || code == -EROFS || code == -EDQUOT;
}

static bool bisect_is_answered(void *context, const struct paired_estimate *estimate)
{
	return delta_is_answered(context, estimate);
}

static enum delta_answer bisect_measure(
	struct bisect_run *run, struct delta_question *question, struct error *err)
{
	struct paired_question pair = {
		.rate = question->rate, .hint = question->hint, .pairs_most = BISECT_PAIRS_MOST};
	int code = bisect_arm(run, &question->mix, &pair.a, err);
	if (!code)
		code = bisect_arm(run, &question->reference, &pair.b, err);
	const bool ran = !code;
	if (!code)
		code = paired_ask(
			run->paired, &pair, bisect_is_answered, question, &question->estimate, err);
	if (code && !bisect_is_end(code) && (!ran || code == -EIO)) {
		if (question->purpose == DELTA_LOSS)
			(void)snprintf(run->stuck, sizeof run->stuck, "%.*s", BISECT_NOTE_BYTES - 1,
				err->text);
		return DELTA_INVALID;
	}
	if (code) {
		run->code = code == -ETIME ? 0 : code;
		run->trouble = *err;
		return DELTA_OVER;
	}
	if (question->purpose == DELTA_LOSS) {
		if (!run->predictions_known)
			bisect_make_predictions(run);
		bisect_suspect(run, -question->estimate.value);
	}
	return delta_answer_of(question, &question->estimate);
}

static void bisect_save(struct bisect_run *run, bool done)
{
	struct error err = {0};
	json_t *json = bisect_to_json(run, done);
	char *text =
		json ? json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(BISECT_JSON_DIGITS))
		     : NULL;
	char *path = files_join(run->folder, BISECT_FILE);
	run->unsaved = !text || !path || files_write_atomic(path, text, strlen(text), &err);
	if (run->unsaved)
		log_warn("'" BISECT_FILE "' is not written: %s",
			err.text[0] ? err.text : "out of memory");
	free(path);
	free(text);
	json_decref(json);
}

/* What an answer says: of the search, whether these are as slow as those. */
static const char *bisect_answer_words(const struct bisect_test *test)
{
	static const char *const answers[] = {[DELTA_UNCLEAR] = "unclear",
		[DELTA_INVALID] = "cannot run",
		[DELTA_OVER] = "not finished"};
	const bool below = test->answer == DELTA_BELOW;
	if (test->answer > DELTA_ABOVE)
		return answers[test->answer];
	switch (test->purpose) {
	case DELTA_SEARCH:
		return below ? "as slow" : "not as slow";
	case DELTA_NEEDED:
	case DELTA_WHOLE:
		return below ? "not faster" : "faster";
	case DELTA_LOSS:
	case DELTA_REST:
	case DELTA_ADDED:
	case DELTA_REMOVED:
		break;
	}
	return below ? "slower" : "not slower";
}

static void bisect_tell(const struct bisect_run *run, const struct bisect_test *test)
{
	log_info("bisect: %s, %zu of %zu differences against %zu: %s, %zu pair%s",
		delta_purpose_name(test->purpose), delta_size(&test->mix), run->sides.count,
		delta_size(&test->reference), bisect_answer_words(test), test->estimate.pairs,
		test->estimate.pairs == 1 ? "" : "s");
}

/* A delta_ask. */
static enum delta_answer bisect_ask(void *context, struct delta_question *question)
{
	struct bisect_run *run = context;
	struct error err = {0};
	question->estimate = (struct paired_estimate){
		.value = (double)NAN, .interval = {-(double)INFINITY, (double)INFINITY}};
	const enum delta_answer answer = bisect_measure(run, question, &err);
	if (run->test_count == BISECT_TESTS_MAX)
		return DELTA_OVER;
	struct bisect_test *test = &run->tests[run->test_count++];
	*test = (struct bisect_test){.purpose = question->purpose,
		.mix = question->mix,
		.reference = question->reference,
		.answer = answer,
		.estimate = question->estimate};
	if (answer == DELTA_INVALID)
		(void)snprintf(
			test->why, sizeof test->why, "%.*s", BISECT_NOTE_BYTES - 1, err.text);
	bisect_tell(run, test);
	bisect_save(run, false);
	return answer;
}

static int bisect_allocate(struct bisect_run *run, struct error *err)
{
	const size_t count = run->sides.count;
	run->tests = calloc(BISECT_TESTS_MAX, sizeof *run->tests);
	run->predicted_added = calloc(count + 1, sizeof *run->predicted_added);
	run->predicted_removed = calloc(count + 1, sizeof *run->predicted_removed);
	run->suspicion = calloc(count + 1, sizeof *run->suspicion);
	if (!run->tests || !run->predicted_added || !run->predicted_removed || !run->suspicion)
		return error_set(err, -ENOMEM, "out of memory");
	bisect_forget_predictions(run);
	return 0;
}

int bisect_run_all(struct bisect_run *run, struct error *err)
{
	const struct delta_set none = {{0}};
	const struct delta_set all = delta_all(run->sides.count);
	int code = bisect_allocate(run, err);
	if (!code && options_given(&run->invocation->options, OPTION_RESUME))
		run->predictions_known = bisect_load_predictions(run);
	/* Both sides must run; a mixture need not. */
	if (!code)
		code = bisect_arm(run, &none, &run->good_arm, err);
	if (code)
		return error_prefix(err, code, "GOOD");
	code = bisect_arm(run, &all, &run->bad_arm, err);
	if (code)
		return error_prefix(err, code, "BAD");
	const struct delta_task task = {.count = run->sides.count,
		.suspicion = run->suspicion,
		.margin = run->margin,
		.ask = bisect_ask,
		.context = run};
	delta_debug(&task, &run->result);
	bisect_save(run, true);
	if (run->code && run->code != -EINTR)
		*err = run->trouble;
	return run->code == -EINTR ? 0 : run->code;
}

void bisect_run_release(struct bisect_run *run)
{
	paired_close(run->paired);
	bisect_sides_close(&run->sides);
	free(run->tests);
	free(run->predicted_added);
	free(run->predicted_removed);
	free(run->suspicion);
	*run = (struct bisect_run){0};
}

/* --- the document ----------------------------------------------------------------------------- */

/* A logarithm as a change: -0.25 is a quarter less; null where it is not finite.  To the billionth: rates that a session reads
 * back are rounded in their fifteenth digit, and it must say the same as before. */
static json_t *bisect_change(double log_ratio)
{
	return fields_number(round(expm1(log_ratio) * 1e9) / 1e9);
}

static json_t *bisect_estimate(const struct paired_estimate *estimate)
{
	if (estimate->pairs == 0)
		return json_null();
	return json_pack("{s:o, s:[o, o], s:I}", "change", bisect_change(estimate->value),
		"interval", bisect_change(estimate->interval.low),
		isinf(estimate->interval.high) ? json_null()
					       : bisect_change(estimate->interval.high),
		"pairs", (json_int_t)estimate->pairs);
}

static json_t *bisect_set(const struct bisect_run *run, const struct delta_set *set)
{
	json_t *array = json_array();
	for (size_t i = 0; i < run->sides.count; i++)
		if (delta_has(set, i))
			(void)json_array_append_new(array, fields_text(run->sides.items[i].name));
	return array;
}

static json_t *bisect_item_keys(const struct bisect_run *run, const struct bisect_item *item)
{
	json_t *keys = json_object();
	for (size_t k = 0; k < item->key_count; k++) {
		struct bisect_item one = {.keys = {item->keys[k]}, .key_count = 1};
		char name[CONFIG_NAME_BYTES];
		char good[BISECT_VALUE_BYTES];
		char bad[BISECT_VALUE_BYTES];
		(void)json_object_set_new(keys, config_key_name(item->keys[k], name),
			json_pack("[o, o]",
				fields_text(
					bisect_value(&run->sides, &one, false, good, sizeof good)),
				fields_text(
					bisect_value(&run->sides, &one, true, bad, sizeof bad))));
	}
	return keys;
}

static json_t *bisect_differences(const struct bisect_run *run)
{
	json_t *array = json_array();
	for (size_t i = 0; i < run->sides.count; i++) {
		const struct bisect_item *item = &run->sides.items[i];
		char good[BISECT_VALUE_BYTES];
		char bad[BISECT_VALUE_BYTES];
		bool blamed = false;
		for (size_t c = 0; c < run->result.cause_count; c++)
			blamed = blamed || delta_has(&run->result.causes[c].items, i);
		(void)json_array_append_new(array,
			json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b}", "name",
				fields_text(item->name), "good",
				fields_text(
					bisect_value(&run->sides, item, false, good, sizeof good)),
				"bad",
				fields_text(bisect_value(&run->sides, item, true, bad, sizeof bad)),
				"keys", bisect_item_keys(run, item), "predicted_added",
				fields_number(run->predicted_added ? run->predicted_added[i]
								   : (double)NAN),
				"predicted_removed",
				fields_number(run->predicted_removed ? run->predicted_removed[i]
								     : (double)NAN),
				"blamed", (int)blamed, "remaining",
				(int)delta_has(&run->result.remaining, i)));
	}
	return array;
}

/* Whether a cause costs the same in GOOD and in BAD: null where it is not known. */
static const char *bisect_interaction(const struct bisect_run *run, const struct delta_cause *cause)
{
	const struct paired_estimate *added = &cause->added;
	const struct paired_estimate *removed = &cause->removed;
	const double margin = log(1 - run->margin);
	if (added->pairs == 0 || removed->pairs == 0)
		return NULL;
	const bool apart = added->interval.low > removed->interval.high ||
			   removed->interval.low > added->interval.high;
	if (!apart)
		return "none seen";
	if (added->value > margin)
		return "only beside other differences";
	return removed->value > margin ? "hidden by other differences"
				       : "other differences change it";
}

static double bisect_predicted(
	const struct bisect_run *run, const struct delta_cause *cause, const double *predicted)
{
	double only = (double)NAN;
	for (size_t i = 0; predicted && i < run->sides.count; i++)
		if (delta_has(&cause->items, i) && delta_size(&cause->items) == 1)
			only = predicted[i];
	return only;
}

static json_t *bisect_causes(const struct bisect_run *run)
{
	json_t *array = json_array();
	for (size_t i = 0; i < run->result.cause_count; i++) {
		const struct delta_cause *cause = &run->result.causes[i];
		(void)json_array_append_new(array,
			json_pack("{s:o, s:b, s:b, s:o, s:o, s:s?, s:o, s:o}", "differences",
				bisect_set(run, &cause->items), "confirmed", (int)cause->confirmed,
				"ambiguous", (int)cause->ambiguous, "added",
				bisect_estimate(&cause->added), "removed",
				bisect_estimate(&cause->removed), "interaction",
				bisect_interaction(run, cause), "predicted_added",
				fields_number(bisect_predicted(run, cause, run->predicted_added)),
				"predicted_removed",
				fields_number(
					bisect_predicted(run, cause, run->predicted_removed))));
	}
	return array;
}

static json_t *bisect_path(const struct bisect_run *run)
{
	json_t *array = json_array();
	for (size_t i = 0; i < run->test_count; i++) {
		const struct bisect_test *test = &run->tests[i];
		(void)json_array_append_new(
			array, json_pack("{s:s, s:o, s:o, s:s, s:o, s:o}", "question",
				       delta_purpose_name(test->purpose), "mix",
				       bisect_set(run, &test->mix), "reference",
				       bisect_set(run, &test->reference), "answer",
				       bisect_answer_words(test), "effect",
				       bisect_estimate(&test->estimate), "why",
				       test->why[0] ? fields_text(test->why) : json_null()));
	}
	return array;
}

static json_t *bisect_side(const struct bisect_run *run, bool bad)
{
	const struct bisect_side *side = bad ? &run->sides.bad : &run->sides.good;
	size_t count = 0;
	double *rates = NULL;
	size_t good = 0;
	if (run->test_count > 0) {
		const double *list =
			paired_rates(run->paired, bad ? run->bad_arm : run->good_arm, &count);
		rates = calloc(count + 1, sizeof *rates);
		for (size_t i = 0; rates && i < count; i++)
			if (!isnan(list[i]))
				rates[good++] = list[i];
	}
	json_t *json = json_pack("{s:o, s:s, s:o, s:I}", "name", fields_text(side->name), "kind",
		side->kind, "throughput",
		fields_number(rates ? statistics_median(rates, good) : (double)NAN), "repetitions",
		(json_int_t)good);
	free(rates);
	return json;
}

static json_t *bisect_notes(const struct bisect_run *run)
{
	json_t *array = json_array();
	if (run->stuck[0])
		(void)json_array_append_new(array, fields_text(run->stuck));
	for (size_t i = 0; i < run->sides.note_count; i++)
		(void)json_array_append_new(array, fields_text(run->sides.notes[i]));
	return array;
}

/* Questions to come, by the halvings of what is left and both sides of one more cause, as long as those so far took. */
static double bisect_more_s(const struct bisect_run *run)
{
	const size_t left = delta_size(&run->result.remaining);
	double pairs = 0;
	double asked = 0;
	for (size_t i = 0; i < run->test_count; i++) {
		pairs += (double)run->tests[i].estimate.pairs;
		asked += run->tests[i].estimate.pairs > 0;
	}
	const double questions = 4 + log2((double)left + 1);
	return asked > 0 ? questions * pairs / asked * 2 * paired_each_s(run->paired) : (double)NAN;
}

static const char *bisect_status(const struct bisect_run *run, bool done)
{
	static const char *const names[] = {[DELTA_EXPLAINED] = "explained",
		[DELTA_NO_LOSS] = "no loss",
		[DELTA_UNKNOWN] = "unclear whether there is a loss",
		[DELTA_PARTLY] = "partly explained",
		[DELTA_UNFINISHED] = "not finished"};
	if (!done)
		return "running";
	return run->code == -EINTR ? "interrupted" : names[run->result.status];
}

json_t *bisect_to_json(const struct bisect_run *run, bool done)
{
	const struct delta_result *result = &run->result;
	const bool over = done && result->status == DELTA_UNFINISHED;
	json_t *all = json_pack("{s:s, s:s, s:s, s:o, s:o, s:f, s:f, s:I, s:I}", "schema",
		BISECT_SCHEMA, "version", MLBENCH_VERSION, "status", bisect_status(run, done),
		"good", bisect_side(run, false), "bad", bisect_side(run, true), "margin",
		run->margin, "error_rate", DELTA_RATE, "runs", (json_int_t)paired_runs(run->paired),
		"questions", (json_int_t)run->test_count);
	json_t *rest = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"loss", bisect_estimate(&result->loss), "predicted_loss",
		fields_number(run->predicted_loss), "differences", bisect_differences(run),
		"causes", bisect_causes(run), "rest", bisect_estimate(&result->rest), "whole",
		bisect_estimate(&result->whole), "within", fields_number(result->within),
		"remaining", bisect_set(run, &result->remaining), "more_seconds",
		over ? fields_number(bisect_more_s(run)) : json_null(), "no_prediction",
		run->why_not[0] ? fields_text(run->why_not) : json_null(), "notes",
		bisect_notes(run), "path", bisect_path(run));
	if (all && rest)
		(void)json_object_update(all, rest);
	json_decref(rest);
	return all;
}
