/* The writers of a diagnosis, on one filled by hand: the sentence, what the text says at any width, the
 * document's members, and verification.json there and back. */
#include "tests/unit/diagnosis_fixture.h"

#include "harness/base/units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void assert_has(const struct buffer *text, const char *what)
{
	if (!text->data || !strstr(text->data, what))
		fail_msg("'%s' is not in:\n%s", what, text->data ? text->data : "");
}

static void sentence(void **state)
{
	struct told told;
	struct buffer text = {0};
	(void)state;
	told_open(&told);
	told.view.verification = NULL;
	diagnosis_sentence(&told.view, &text);
	assert_string_equal(text.data,
		"Bottleneck: decode with 4 workers, CPU-bound (97 % confidence): 612 of the 1,786 samples/s "
		"that the step could take. Try decode.workers=8 read.depth=16: predicted 1,190 (90 % CI "
		"1,120-1,240); then the bottleneck is read, latency-bound. The bottleneck changes during a "
		"repetition: decode, CPU-bound until 2.10 s (640 samples/s), then read, limited by an unknown "
		"cause (420).");
	buffer_release(&text);
	told.diagnosis.phases[1].first_repetition = told.diagnosis.phases[1].last_repetition = 2;
	told.diagnosis.phases[1].judged = true;
	told.diagnosis.phases[1].begin_s = 2.6;
	diagnosis_sentence(&told.view, &text);
	assert_has(&text,
		"latency-bound. The throughput changed from 640 to 420 samples/s between repetitions 0 and 2, 2.1 "
		"to 2.6 s after the start (before: decode, CPU-bound), and stayed there.");
	buffer_release(&text);
	told.diagnosis.phases[1].judged = false;
	diagnosis_sentence(&told.view, &text);
	assert_has(&text, "too late to know whether that lasts.");
	buffer_release(&text);
	told.diagnosis.phase_count = 1;
	(void)snprintf(told.diagnosis.verdict.also, NAME_BYTES, "read");
	told.diagnosis.recommendation_count = 0;
	diagnosis_sentence(&told.view, &text);
	assert_has(&text,
		"decode with 4 workers, CPU-bound, nearly balanced with read (97 % confidence)");
	buffer_release(&text);
	/* What the step could take is said once. */
	told.point.stages[0] =
		(struct stage_summary){.name = STAGE_SYNC_NAME, .workers = 1, .capacity = 800};
	(void)snprintf(told.diagnosis.verdict.stage, NAME_BYTES, STAGE_SYNC_NAME);
	(void)snprintf(told.diagnosis.verdict.resource, NAME_BYTES, "exchange");
	diagnosis_sentence(&told.view, &text);
	assert_has(&text, "612 of the 1,786 samples/s that the step could take. ");
	assert_null(strstr(text.data, "that it could take"));
	buffer_release(&text);
}

static void it_cannot_tell(void **state)
{
	struct told told;
	struct buffer text = {0};
	(void)state;
	told_open(&told);
	told.view.samples = 312;
	told.diagnosis.samples_needed = 6400;
	(void)snprintf(told.diagnosis.verdict.advice, EVIDENCE_BYTES,
		"set measure.duration to 14s or more");
	assert_false(diagnosis_tells(&told.view));
	diagnosis_sentence(&told.view, &text);
	assert_string_equal(text.data,
		"Inconclusive: 312 samples, 6,400 needed; set measure.duration to 14s or more");
	buffer_release(&text);
	told.diagnosis.samples_needed = 0;
	(void)snprintf(told.diagnosis.verdict.stage, NAME_BYTES, "none");
	(void)snprintf(told.diagnosis.verdict.evidence[0], EVIDENCE_BYTES, "it never settled");
	told.diagnosis.verdict.advice[0] = '\0';
	diagnosis_sentence(&told.view, &text);
	assert_string_equal(text.data, "Inconclusive: it never settled");
	buffer_release(&text);
}

static void text_says_it_all(void **state)
{
	static const char *const parts[] = {"decode with 4 workers, CPU-bound (",
		"decode works 99.8 %", "decode / cpu", "0.910 to 0.970",
		"1.004 (1.00: the model explains everything)", "read / latency", "1,240",
		"--set decode.workers=8 --set read.depth=16",
		"predicted 1,190 samples/s (90 % CI 1,120-1,240): 4 workers are busy all the time",
		"does not grow beyond its pools", "0.50 s", "2.10 s", "read / device",
		"predicts 615 samples/s for this configuration, 612 measured (model error +0.5 %)",
		"10 decode workers: predicted 1,450 samples/s; with twice as many, 1,500",
		"best of 12; --point N", "decode: ready-made samples", "FAILED", "confirmed",
		"read: files from memory: predicted 1x (0.97-1.03) of the baseline, measured 1.2x",
		"could not run: test", "confidence falls from 0.97 to 0.96", "0.94", "unchanged",
		"(undone)", "read.depth=32: predicted 3,198 (90 % CI 3,038-3,326), measured 640",
		"did not come true; undone",
		"prefetch.depth=4: predicted 1,300 (90 % CI 1,235-1,352), could not be measured; undone",
		"1 of 3 predictions came true, 1 failed",
		"--set decode.workers=8 --set read.depth=16", "no setting is predicted to help"};
	const struct style style = {.width = 160, .utf8 = true};
	struct told told;
	struct buffer text = {0};
	(void)state;
	told_open(&told);
	diagnosis_text(&told.view, &style, true, &text);
	assert_false(text.failed);
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		assert_has(&text, parts[i]);
	buffer_release(&text);
}

static void text_fits(void **state)
{
	struct told told;
	(void)state;
	told_open(&told);
	for (int width = STYLE_WIDTH_LEAST; width <= STYLE_WIDTH_MOST; width += 4) {
		const struct style style = {.width = width, .utf8 = width % 8 == 0};
		struct buffer text = {0};
		diagnosis_text(&told.view, &style, true, &text);
		for (char *line = strtok(text.data, "\n"); line; line = strtok(NULL, "\n")) {
			if (style_columns(line) > width &&
				!strstr(line, "  results  ")) /* a path is one word */
				fail_msg("%d columns at width %d: %s", style_columns(line), width,
					line);
			assert_int_not_equal(line[strlen(line) - 1], ' ');
		}
		buffer_release(&text);
	}
}

static void without_a_replay(void **state)
{
	const struct style style = {.width = 100};
	struct told told;
	struct buffer text = {0};
	(void)state;
	told_open(&told);
	told.view.verification = NULL;
	told.view.follow = NULL;
	told.view.settings = "";
	told.diagnosis.modelled = false;
	told.diagnosis.recommendation_count = 0;
	told.diagnosis.phase_count = 1;
	told.diagnosis.memory = (struct memory_finding){.bytes_per_s = NAN};
	(void)snprintf(told.diagnosis.why_not, EVIDENCE_BYTES, "no service times were recorded");
	diagnosis_text(&told.view, &style, true, &text);
	assert_has(&text, "none: no service times were recorded");
	assert_has(&text, "unknown: the run was too short");
	assert_null(strstr(text.data, "elasticity"));
	assert_null(strstr(text.data, "bottlenecks in order"));
	buffer_release(&text);
	json_t *json = diagnosis_json(&told.view);
	assert_true(json_is_null(json_object_get(json, "replayed")));
	assert_string_equal(json_string_value(json_object_get(json, "not_modelled")),
		"no service times were recorded");
	assert_int_equal(json_array_size(json_object_get(json, "elasticities")), 0);
	json_decref(json);
}

static double number(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

static void another_baseline(void **state)
{
	const struct style style = {.width = 200};
	struct told told;
	struct buffer text = {0};
	(void)state;
	told_open(&told);
	diagnosis_text(&told.view, &style, true, &text);
	assert_null(strstr(text.data, "the node has changed"));
	buffer_release(&text);
	for (size_t i = 0; i < told.verification.count; i++)
		told.verification.experiments[i].baseline = 500;
	diagnosis_text(&told.view, &style, true, &text);
	assert_has(&text,
		"reached 500 samples/s during the experiments, but 612 when it was diagnosed");
	buffer_release(&text);
}

/* What was interrupted, or measured again, is said; and only then. */
static void incomplete_experiments(void **state)
{
	struct told told;
	struct buffer text = {0};
	(void)state;
	told_open(&told);
	verification_incomplete(&told.verification, &text);
	verification_repeated(&told.verification, &text);
	assert_int_equal(text.size, 0);
	told.verification.interrupted = true;
	told.verification.experiments[1].blocks = 1;
	told.verification.experiments[0].repeated = 2;
	verification_weigh(&told.verification);
	verification_incomplete(&told.verification, &text);
	assert_has(&text, "interrupted before 1 of 6 experiments had the 2 blocks that they need");
	verification_repeated(&told.verification, &text);
	assert_has(&text, "2 blocks were measured again");
	buffer_release(&text);
	json_t *json = diagnosis_json(&told.view);
	assert_true(json_is_string(json_object_get(json, "verification_incomplete")));
	json_decref(json);
}

static void document(void **state)
{
	struct told told;
	(void)state;
	told_open(&told);
	json_t *json = diagnosis_json(&told.view);
	assert_non_null(json);
	const json_t *verdict = json_object_get(json, "verdict");
	assert_string_equal(json_string_value(json_object_get(verdict, "stage")), "decode");
	assert_true(fabs(number(verdict, "confidence_unverified") - 0.97) < 1e-9);
	assert_true(number(verdict, "confidence") < 0.97);
	assert_int_equal(json_array_size(json_object_get(json, "elasticities")), COSTS);
	assert_int_equal(json_array_size(json_object_get(json, "ladder")), 3);
	assert_int_equal(json_array_size(json_object_get(json, "phases")), 2);
	assert_int_equal(json_array_size(json_object_get(json, "verification")), 6);
	const json_t *knob = json_array_get(json_object_get(json, "verification"), 0);
	assert_string_equal(json_string_value(json_object_get(knob, "outcome")), "confirmed");
	assert_true(fabs(number(knob, "predicted_throughput") - 1.94 * 610) < 1e-6);
	const json_t *measured = json_object_get(json, "measured_elasticities");
	assert_int_equal(json_array_size(json_object_get(measured, "stages")), 2);
	assert_true(fabs(number(measured, "sum") - 1) < 0.05);
	const json_t *memory = json_object_get(json, "memory");
	assert_true(json_is_null(json_object_get(memory, "seconds_to_full")));
	const json_t *steps = json_object_get(json_object_get(json, "follow"), "steps");
	assert_int_equal(json_array_size(steps), 4);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(steps, 3), "outcome")), "failed");
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(json, "follow"), "failed")), 1);
	assert_true(json_is_null(json_object_get(json_array_get(steps, 2), "measured")));
	json_decref(json);
}

static void verification_comes_back(void **state)
{
	struct told told;
	struct verification back;
	uint32_t point;
	struct error err;
	(void)state;
	told_open(&told);
	json_t *json = verification_to_json(&told.verification, 3, &told.diagnosis.verdict);
	char *text = json_dumps(json, JSON_REAL_PRECISION(17));
	assert_true(number(json, "confidence_unverified") == 0.97);
	assert_true(number(json, "confidence") < 0.97);
	json_decref(json);
	json = json_loads(text, 0, NULL);
	assert_int_equal(verification_from_json(&back, &point, json, &err), 0);
	assert_int_equal(point, 3);
	json_t *again = verification_to_json(&back, point, &told.diagnosis.verdict);
	char *text_again = json_dumps(again, JSON_REAL_PRECISION(17));
	assert_string_equal(text, text_again);
	assert_int_equal(back.failed, told.verification.failed);
	assert_int_equal(back.experiments[2].outcome, EXPERIMENT_FAILED);
	free(text);
	free(text_again);
	json_decref(json);
	json_decref(again);
}

/* To the last bit: what is printed of a saved diagnosis is what was printed of the first. */
static void diagnosis_comes_back(void **state)
{
	struct told told;
	struct diagnosis back;
	struct error err = {0};
	(void)state;
	told_open(&told);
	for (int modelled = 0; modelled < 2; modelled++) {
		told.diagnosis.modelled = modelled;
		(void)snprintf(told.diagnosis.why_not, sizeof told.diagnosis.why_not, "%s",
			modelled ? "" : "no service times");
		json_t *json = diagnosis_to_json(&told.diagnosis);
		char *text = json_dumps(json, JSON_REAL_PRECISION(17));
		json_decref(json);
		json = json_loads(text, 0, NULL);
		assert_int_equal(diagnosis_from_json(&back, json, &err), 0);
		json_decref(json);
		json = diagnosis_to_json(&back);
		char *again = json_dumps(json, JSON_REAL_PRECISION(17));
		json_decref(json);
		assert_string_equal(text, again);
		assert_int_equal(back.modelled, modelled);
		assert_string_equal(back.why_not, told.diagnosis.why_not);
		assert_true(back.recommendations[0].predicted ==
			    told.diagnosis.recommendations[0].predicted);
		free(text);
		free(again);
	}
}

static void damaged_diagnoses(void **state)
{
	static const char *const damages[] = {"verdict", "evidence", "ladder", "elasticities",
		"recommendations", "phases", "memory", "knee", "not_modelled"};
	struct told told;
	struct diagnosis back;
	(void)state;
	told_open(&told);
	for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
		struct error err = {0};
		json_t *json = diagnosis_to_json(&told.diagnosis);
		json_t *list = json_array();
		for (int k = 0; k < 100; k++)
			assert_int_equal(json_array_append_new(list, json_integer(k)), 0);
		json_t *in = strcmp(damages[i], "evidence") == 0 ? json_object_get(json, "verdict")
								 : json;
		/* An object of the wrong members, or a list that is too long. */
		const bool is_object = json_is_object(json_object_get(in, damages[i])) ||
				       strcmp(damages[i], "knee") == 0;
		assert_int_equal(json_object_set_new(in, damages[i],
					 is_object ? json_pack("{s:i, s:s, s:s}", "stage", 3,
							     "workers", "many", "leaks", "perhaps")
						   : json_incref(list)),
			0);
		if (diagnosis_from_json(&back, json, &err) == 0)
			fail_msg("a wrong '%s' is taken", damages[i]);
		assert_true(err.text[0]);
		json_decref(list);
		json_decref(json);
	}
}

static void damaged_verifications(void **state)
{
	static const char *const texts[] = {"{}", "{\"schema\": \"mlbench.verification/2\"}",
		"{\"schema\": \"mlbench.verification/1\", \"point\": -1, \"experiments\": []}",
		"{\"schema\": \"mlbench.verification/1\", \"point\": 0, \"experiments\": [{\"kind\": \"x\"}]}",
		"{\"schema\": \"mlbench.verification/1\", \"point\": 0, \"experiments\": "
		"[{\"kind\": \"knob\", \"log_ratios\": [null]}]}",
		"{\"schema\": \"mlbench.verification/1\", \"point\": 0, \"experiments\": "
		"[{\"kind\": \"knob\", \"stage\": 3}]}",
		"{\"schema\": \"mlbench.verification/1\", \"point\": 0, \"experiments\": "
		"[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}"};
	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct verification v;
		struct error err = {0};
		uint32_t point;
		json_t *json = json_loads(texts[i], 0, NULL);
		assert_non_null(json);
		assert_int_not_equal(verification_from_json(&v, &point, json, &err), 0);
		assert_true(err.text[0]);
		json_decref(json);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sentence),
		cmocka_unit_test(it_cannot_tell),
		cmocka_unit_test(text_says_it_all),
		cmocka_unit_test(text_fits),
		cmocka_unit_test(without_a_replay),
		cmocka_unit_test(another_baseline),
		cmocka_unit_test(incomplete_experiments),
		cmocka_unit_test(document),
		cmocka_unit_test(verification_comes_back),
		cmocka_unit_test(diagnosis_comes_back),
		cmocka_unit_test(damaged_diagnoses),
		cmocka_unit_test(damaged_verifications),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
