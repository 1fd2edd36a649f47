/* What `mlbench lab` prints of one lab. */
#include "harness/base/array.h"
#include "harness/base/units.h"
#include "harness/command/lab_call.h"
#include "harness/lab/ask_figures.h"
#include "harness/record/fields.h"
#include "harness/report/layout.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *lab_word_value(const char *word, const char *name)
{
	const size_t length = strlen(name);
	return strncmp(word, name, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

void lab_say(struct lab_call *call, enum ink ink, const char *label, const char *text)
{
	layout_labelled(&call->style, ink, label, text, &call->text);
}

void lab_sayf(struct lab_call *call, enum ink ink, const char *label, const char *format, ...)
{
	char line[1024];
	va_list list;
	va_start(list, format);
	(void)vsnprintf(line, sizeof line, format, list);
	va_end(list);
	lab_say(call, ink, label, line);
}

void lab_say_title(struct lab_call *call)
{
	buffer_format(&call->text, "%sLab %u: %s%s (%s)\n", style_ink(&call->style, INK_BOLD),
		call->lab->number, lab_text(call->lab, 0, LAB_TITLE), style_end(&call->style),
		lab_stage_name(lab_state_stage(call->state)));
}

void lab_say_knobs(struct lab_call *call)
{
	struct lab_run run;
	const struct lab_line *line;
	size_t at = 0;
	if (lab_configure(call->lab, &call->drawn, &(struct lab_setting){0}, false, &run, NULL))
		return;
	for (bool first = true; (line = lab_next(call->lab, call->drawn.variant, LAB_KNOB, &at));
		first = false) {
		const struct lab_pair *knob = &line->pairs[0];
		const enum key_id key = config_find_key(knob->key);
		char value[CONFIG_VALUE_BYTES] = "";
		struct buffer bounds = {0};
		lab_knob_words(&call->drawn, knob, &bounds);
		if (key != KEY_COUNT)
			(void)config_format_value(
				key, &run.config.values[key], value, sizeof value);
		lab_sayf(call, INK_PLAIN, first ? "may set" : "", "%s = %s (%s)", knob->key, value,
			bounds.data ? bounds.data : "");
		buffer_release(&bounds);
	}
	config_release(&run.config);
}

void lab_say_asks(struct lab_call *call)
{
	const struct lab_line *line;
	size_t at = 0;
	for (bool first = true; (line = lab_next(call->lab, call->drawn.variant, LAB_ASK, &at));
		first = false) {
		const char *unit = ask_figure_unit(ask_figure_find(line->second));
		const bool told = strstr(line->text, unit) != NULL;
		lab_sayf(call, INK_PLAIN, first ? "predict" : "", "%s: %s%s%s%s", line->name,
			line->text, told ? "" : " (", told ? "" : unit, told ? "" : ")");
	}
}

void lab_say_evidence(struct lab_call *call)
{
	const struct lab_line *line;
	size_t at = 0;
	for (bool first = true;
		(line = lab_next(call->lab, call->drawn.variant, LAB_EVIDENCE, &at)); first = false)
		lab_sayf(
			call, INK_PLAIN, first ? "evidence" : "", "%s: %s", line->name, line->text);
	at = 0;
	for (bool first = true; (line = lab_next(call->lab, call->drawn.variant, LAB_ANSWER, &at));
		first = false)
		lab_sayf(call, INK_PLAIN, first ? "answer" : "", "%s: %s", line->name, line->text);
}

/* What comes next, as a command. */
void lab_say_next(struct lab_call *call)
{
	const unsigned n = call->lab->number;
	struct buffer open = {0};
	switch (lab_state_stage(call->state)) {
	case LAB_STARTED:
		(void)lab_state_open_asks(call->lab, &call->drawn, call->state, &open);
		lab_sayf(call, INK_ACCENT, "next",
			"mlbench lab predict %u NAME=LOW..HIGH@SURE%% for: %s", n,
			open.data ? open.data : "");
		break;
	case LAB_PREDICTED:
		lab_sayf(call, INK_ACCENT, "next", "mlbench lab measure %u [KEY=VALUE ...]", n);
		break;
	case LAB_MEASURED:
		lab_sayf(call, INK_ACCENT, "next",
			"mlbench lab check %u KEY=VALUE ... cause=STAGE/RESOURCE evidence=NAME, or "
			"measure more, or mlbench lab hint %u",
			n, n);
		break;
	case LAB_PASSED:
	case LAB_GIVEN_UP:
	case LAB_STAGES:
		lab_sayf(call, INK_ACCENT, "next", "mlbench lab explain %u", n);
		break;
	}
	buffer_release(&open);
}

static void lab_say_prediction(struct lab_call *call, bool first, const json_t *p)
{
	const double sure = fields_real(json_object_get(p, "confidence"));
	const char *word = json_string_value(json_object_get(p, "word"));
	const json_t *hit = json_object_get(p, "hit");
	const json_t *measured = json_object_get(p, "measured");
	const double factor = fields_real(json_object_get(p, "factor"));
	struct buffer line = {0};
	buffer_format(&line, "%s: ", fields_text_of(p, "name"));
	if (word)
		buffer_text(&line, word);
	else
		buffer_format(&line, "%s..%s",
			UNITS_PLAIN(fields_real(json_object_get(p, "low")), 4),
			UNITS_PLAIN(fields_real(json_object_get(p, "high")), 4));
	buffer_format(&line, ", %.0f %% sure", sure * 100);
	if (json_is_number(measured))
		buffer_format(&line, "; measured %s: %s, the middle was off by %.2f x",
			UNITS_PLAIN(json_number_value(measured), 4),
			json_is_true(hit) ? "right" : "wrong", factor);
	else if (json_is_string(measured))
		buffer_format(&line, "; it is %s: %s", json_string_value(measured),
			json_is_true(hit) ? "right" : "wrong");
	else if (lab_state_stage(call->state) >= LAB_PASSED)
		buffer_text(&line, "; not measured");
	lab_say(call,
		!json_is_boolean(hit) ? INK_PLAIN
		: json_is_true(hit)   ? INK_GOOD
				      : INK_WARN,
		first ? "you said" : "", line.data ? line.data : "");
	buffer_release(&line);
}

void lab_say_predictions(struct lab_call *call)
{
	const json_t *list = json_object_get(call->state, "predictions");
	for (size_t i = 0; i < json_array_size(list); i++)
		lab_say_prediction(call, i == 0, json_array_get(list, i));
}

/* Verdict, evidence and advice are what the student shall find: they come when the lab is over. */
void lab_say_measured(struct lab_call *call, const struct report *report)
{
	const bool over = lab_state_stage(call->state) >= LAB_PASSED;
	json_t *point = over ? NULL : report_point_json(report, 0);
	static const char *const concluded[] = {"verdict", "diagnosis"};
	for (size_t i = 0; i < COUNT(concluded) && point; i++)
		(void)json_object_del(point, concluded[i]);
	call->more = json_pack(
		"{s:o}", over ? "summary" : "point", over ? report_summary_json(report) : point);
	if (over)
		report_terminal(report, &call->style,
			options_given(&call->invocation->options, OPTION_VERBOSE)
				? REPORT_EVERY_POINT
				: REPORT_WHOLE,
			&call->text);
	else
		report_measured(report, &call->style, &call->text);
	buffer_text(&call->text, "\n");
}

static void lab_say_gain(struct lab_call *call, const struct lab_check *check)
{
	const struct lab_judgement *j = &check->judgement;
	const double pass = lab_amount(call->lab, call->drawn.variant, LAB_PASS, 0.7);
	char bounds[80] = "not known";
	if (isfinite(j->interval.low) && isfinite(j->interval.high))
		(void)snprintf(bounds, sizeof bounds, "95 %% CI %.0f to %.0f %%",
			j->interval.low * 100, j->interval.high * 100);
	lab_sayf(call, INK_PLAIN, "measured",
		"as it stood %s, yours %s, best here %s samples/s (%zu times in turns)",
		UNITS_PLAIN(j->median.broken, 4), UNITS_PLAIN(j->median.yours, 4),
		UNITS_PLAIN(j->median.best, 4), j->blocks);
	switch (j->gain) {
	case LAB_GAIN_YES:
	case LAB_GAIN_NO:
		lab_sayf(call, j->gain == LAB_GAIN_YES ? INK_GOOD : INK_WARN, "gain",
			"%.0f %% of what can be gained (%s); %.0f %% are needed", j->share * 100,
			bounds, pass * 100);
		break;
	case LAB_GAIN_OPEN:
		lab_sayf(call, INK_WARN, "gain",
			"too noisy to tell: %.0f %% of what can be gained (%s), and %.0f %% are needed; "
			"end other programs and check again, which costs nothing",
			j->share * 100, bounds, pass * 100);
		break;
	case LAB_GAIN_NONE:
		lab_say(call, INK_WARN, "gain",
			"the best setting gains less than 5 % here: this laptop cannot show this lab");
		break;
	}
}

void lab_say_check(struct lab_call *call, const struct lab_check *check)
{
	if (check->measures)
		lab_say_gain(call, check);
	lab_say(call, check->cause_right ? INK_GOOD : INK_WARN, "cause",
		check->cause_right ? "right"
		: check->stage_right
			? "the stage is right; what it lacks is something else"
			: "not this: look again at which stage is never starved and never blocked");
	lab_say(call, check->evidence_right ? INK_GOOD : INK_WARN, "evidence",
		check->evidence_right
			? "right"
			: "that may be true, and would be so with another cause, too");
	if (lab_line(call->lab, call->drawn.variant, LAB_ANSWER))
		lab_say(call, check->answers_right ? INK_GOOD : INK_WARN, "answers",
			check->answers_right ? "right" : "at least one number is too far off");
	if (check->passed)
		lab_sayf(call, INK_GOOD, "verdict", "PASSED with %.0f of 100 points",
			lab_state_points(call->state));
	else if (check->open)
		lab_say(call, INK_WARN, "verdict", "NOT CLEAR; it costs no points");
	else
		lab_sayf(call, INK_BAD, "verdict",
			"NOT PASSED: it takes the gain, the cause and the evidence together (%.0f points are left)",
			lab_state_points(call->state));
}

/* The last measurement of a setting; NULL. */
const json_t *lab_find_measured(const struct lab_call *call, const struct lab_setting *setting)
{
	const json_t *list = json_object_get(call->state, "measurements");
	json_t *wanted = lab_setting_to_json(setting);
	const json_t *found = NULL;
	for (size_t i = 0; i < json_array_size(list); i++)
		if (json_equal(json_object_get(json_array_get(list, i), "setting"), wanted))
			found = json_array_get(list, i);
	json_decref(wanted);
	return found;
}

void lab_say_fixes(struct lab_call *call)
{
	const struct lab_line *line;
	struct lab_setting setting;
	struct buffer words = {0};
	json_t *fixes = json_array();
	size_t at = 0;
	const json_t *base = lab_find_measured(call, &(struct lab_setting){0});
	if (base)
		lab_sayf(call, INK_PLAIN, "stood at", "%s samples/s",
			UNITS_PLAIN(json_number_value(json_object_get(base, "rate")), 4));
	while ((line = lab_next(call->lab, call->drawn.variant, LAB_WRONG, &at))) {
		setting = (struct lab_setting){0};
		if (lab_setting_of_line(&call->drawn, line, &setting, NULL) ||
			lab_setting_normalise(call->lab, &call->drawn, &setting, NULL))
			continue;
		json_t *json = lab_setting_to_json(&setting);
		words.size = 0;
		lab_setting_words(json, &words);
		/* A replay would tell of those that were not measured, and not surely enough for a lesson. */
		const json_t *measured = lab_find_measured(call, &setting);
		const double rate = fields_real(json_object_get(measured, "rate"));
		if (isfinite(rate))
			buffer_format(&words, " (measured %s samples/s)", UNITS_PLAIN(rate, 4));
		lab_sayf(call, INK_PLAIN, json_array_size(fixes) ? "" : "no help", "%s: %s",
			words.data ? words.data : "", line->text);
		(void)json_array_append_new(fixes,
			json_pack("{s:s, s:o, s:o, s:o}", "name", line->name, "setting", json,
				"rate", fields_number(rate), "why", fields_text(line->text)));
	}
	buffer_release(&words);
	(void)json_object_set_new(call->more, "wrong", fixes);
	if (lab_setting_best(call->lab, &call->drawn, &setting, NULL) || setting.count == 0)
		return;
	json_t *json = lab_setting_to_json(&setting);
	lab_setting_words(json, &words);
	const double best = fields_real(json_object_get(
		json_array_get(json_object_get(call->state, "checks"),
			json_array_size(json_object_get(call->state, "checks")) - 1),
		"best"));
	if (isfinite(best))
		buffer_format(&words, ": %s samples/s in the last check", UNITS_PLAIN(best, 4));
	lab_say(call, INK_GOOD, "best", words.data ? words.data : "");
	(void)json_object_set_new(call->more, "best", json);
	buffer_release(&words);
}

void lab_say_answers(struct lab_call *call)
{
	const struct lab_line *line;
	size_t at = 0;
	double truth;
	while ((line = lab_next(call->lab, call->drawn.variant, LAB_ANSWER, &at)))
		if (expression_evaluate(line->second, &call->drawn.scope, &truth, NULL) == 0)
			lab_sayf(call, INK_PLAIN, "answer", "%s: %s", line->name,
				UNITS_PLAIN(truth, 4));
}
