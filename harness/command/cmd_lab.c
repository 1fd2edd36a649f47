/* mlbench lab: labs of the workshop.  A bottleneck is planted; the student predicts, measures, fixes and says why, and the program
 * examines (harness/lab, lab_run.h). */
#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/command/command.h"
#include "harness/command/lab_run.h"
#include "harness/config/config_place.h"
#include "harness/lab/ask_figures.h"
#include "harness/lab/lab_book.h"
#include "harness/lab/lab_scores.h"
#include "harness/lab/lab_state.h"
#include "harness/lab/seal.h"
#include "harness/record/fields.h"
#include "harness/report/class_page.h"
#include "harness/report/columns.h"
#include "harness/report/layout.h"
#include "harness/report/style.h"
#include "harness/report/table.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LAB_STEP_SCHEMA "mlbench.lab_step/1"

enum { LAB_FILES_MAX = 100, LAB_KEY_FILE_BYTES = 4096, LAB_LABEL_COLUMNS = 10 };

/* One call of the command. */
struct lab_call {
	const struct invocation *invocation;
	const char *action;
	struct lab *lab;
	struct lab_book book;
	char *place;   /* DIR/05 */
	json_t *state; /* NULL: not begun */
	struct lab_drawn drawn;
	struct style style;
	struct buffer text; /* what is printed */
	json_t *more;       /* what a document has beside the state */
};

/* Words behind the action and the lab. */
static const char *const *lab_words_of(const struct lab_call *call, size_t *count)
{
	const struct options *options = &call->invocation->options;
	*count = options->argument_count > 2 ? options->argument_count - 2 : 0;
	return options->arguments + 2;
}

static const char *lab_word_value(const char *word, const char *name)
{
	const size_t length = strlen(name);
	return strncmp(word, name, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

/* --- finding labs ----------------------------------------------------------------------------- */

static int lab_order_by_number(const void *a, const void *b)
{
	const struct lab *left = *(struct lab *const *)a;
	const struct lab *right = *(struct lab *const *)b;
	return (left->number > right->number) - (left->number < right->number);
}

/* Those of one folder, whose numbers nobody has yet. */
static void lab_find_in(const char *folder, struct lab **labs, size_t *count)
{
	DIR *dir = opendir(folder);
	for (const struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
		struct error err = {0};
		struct lab *lab = NULL;
		char *path = files_name_ends(entry->d_name, ".ini")
				     ? files_join(folder, entry->d_name)
				     : NULL;
		const int code = path ? lab_read(&lab, path, &err) : -ENOENT;
		free(path);
		if (path && code && code != -ENODATA)
			log_warn("left out: %s", err.text);
		for (size_t i = 0; i < *count && lab; i++)
			if (labs[i]->number == lab->number) {
				lab_free(lab);
				lab = NULL;
			}
		if (lab && *count < LAB_FILES_MAX)
			labs[(*count)++] = lab;
		else
			lab_free(lab);
	}
	if (dir)
		(void)closedir(dir);
}

static size_t lab_find_all(struct lab *labs[LAB_FILES_MAX])
{
	char place[PATH_MAX];
	size_t count = 0;
	for (size_t i = 0; config_place(i, place, sizeof place); i++) {
		char *folder = files_join(place, "labs");
		if (folder)
			lab_find_in(folder, labs, &count);
		free(folder);
	}
	qsort(labs, count, sizeof(struct lab *), lab_order_by_number);
	return count;
}

/* "5", "05_latency" or a file. */
static int lab_find(const char *name, struct lab **lab, struct error *err)
{
	struct lab *labs[LAB_FILES_MAX];
	int64_t number = 0;
	*lab = NULL;
	if (strchr(name, '/') || files_name_ends(name, ".ini"))
		return lab_read(lab, name, err);
	const bool is_number = units_parse_integer(name, &number) == 0;
	const size_t count = lab_find_all(labs);
	struct buffer numbers = {0};
	for (size_t i = 0; i < count; i++) {
		buffer_format(&numbers, "%s%u", i ? ", " : "", labs[i]->number);
		if (!*lab &&
			(is_number ? number == labs[i]->number : strcmp(labs[i]->name, name) == 0))
			*lab = labs[i];
		else
			lab_free(labs[i]);
	}
	const int code =
		*lab ? 0
		     : error_set(err, -ENOENT, "there is no lab '%.40s'; there are: %s", name,
			       numbers.data ? numbers.data : "none (configs/labs/ is not found)");
	buffer_release(&numbers);
	return code;
}

/* --- what is printed -------------------------------------------------------------------------- */

static void lab_say(struct lab_call *call, enum ink ink, const char *label, const char *text)
{
	layout_labelled(&call->style, ink, label, text, &call->text);
}

static void lab_sayf(struct lab_call *call, enum ink ink, const char *label, const char *format,
	...) __attribute__((format(printf, 4, 5)));
static void lab_sayf(
	struct lab_call *call, enum ink ink, const char *label, const char *format, ...)
{
	char line[1024];
	va_list list;
	va_start(list, format);
	(void)vsnprintf(line, sizeof line, format, list);
	va_end(list);
	lab_say(call, ink, label, line);
}

static void lab_say_title(struct lab_call *call)
{
	buffer_format(&call->text, "%sLab %u: %s%s (%s)\n", style_ink(&call->style, INK_BOLD),
		call->lab->number, lab_text(call->lab, 0, LAB_TITLE), style_end(&call->style),
		lab_stage_name(lab_state_stage(call->state)));
}

/* What the student may know of a state. */
static json_t *lab_state_shown(const json_t *state)
{
	json_t *shown = state ? json_copy((json_t *)state) : json_null();
	(void)json_object_del(shown, "sealed");
	(void)json_object_del(shown, "mac");
	return shown;
}

static int lab_print(struct lab_call *call, struct error *err)
{
	if (command_wants_json(call->invocation)) {
		json_t *document = json_pack("{s:s, s:s, s:o}", "schema", LAB_STEP_SCHEMA, "action",
			call->action, "lab", lab_state_shown(call->state));
		if (call->more)
			(void)json_object_update(document, call->more);
		return command_print_json(call->invocation, document, err);
	}
	struct buffer text = call->text;
	call->text = (struct buffer){0};
	return command_print(&text, err);
}

/* --- start ------------------------------------------------------------------------------------ */

static void lab_say_knobs(struct lab_call *call)
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

static void lab_say_asks(struct lab_call *call)
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

static void lab_say_evidence(struct lab_call *call)
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
static void lab_say_next(struct lab_call *call)
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

/* teacher=: a public key, or a file that holds one. */
static int lab_take_teacher(struct lab_call *call, const char *teacher, struct error *err)
{
	char key[SEAL_SECRET_TEXT + 8];
	struct stat st;
	(void)snprintf(key, sizeof key, "%s", teacher);
	if (stat(teacher, &st) == 0 && S_ISREG(st.st_mode))
		(void)files_first_line(teacher, key, sizeof key);
	if (!seal_is_key(key))
		return error_set(err, -EINVAL,
			"teacher=%.60s is no public key; 'mlbench lab key FILE' makes "
			"one, and FILE.pub is what students get",
			teacher);
	(void)json_object_set_new(call->book.student, "teacher", json_string(key));
	return 0;
}

static int lab_take_start_words(struct lab_call *call, struct error *err)
{
	size_t count;
	const char *const *words = lab_words_of(call, &count);
	int code = 0;
	for (size_t i = 0; i < count && !code; i++) {
		const char *student = lab_word_value(words[i], "student");
		const char *teacher = lab_word_value(words[i], "teacher");
		if (student && *student)
			(void)json_object_set_new(
				call->book.student, "student", fields_text(student));
		else if (teacher)
			code = lab_take_teacher(call, teacher, err);
		else
			code = error_set(err, -EINVAL,
				"'%.60s': start takes student=NAME and teacher=KEY", words[i]);
	}
	return code;
}

static int lab_begin(struct lab_call *call, struct error *err)
{
	struct lab_laptop laptop;
	json_t *known = json_object_get(call->book.student, "calibration");
	json_t *before = call->state;
	if (!json_is_object(known)) {
		known = json_object();
		(void)json_object_set_new(call->book.student, "calibration", known);
	}
	log_info("getting to know this laptop ...");
	int code = lab_run_laptop(call->invocation, call->lab, known, call->place, &laptop, err);
	if (!code)
		code = lab_book_save_student(&call->book, err);
	call->state = NULL;
	if (!code)
		code = lab_book_begin(&call->book, call->lab, &laptop, before, clock_utc_seconds(),
			&call->state, &call->drawn, err);
	json_decref(before);
	return code ? code : lab_book_save(&call->book, call->state, err);
}

/* One that was begun: a name, and a teacher's key, may come later. */
static int lab_go_on(struct lab_call *call, struct error *err)
{
	int code = lab_book_drawn(&call->book, call->lab, call->state, &call->drawn, err);
	if (!code && call->invocation->options.argument_count > 2) {
		(void)json_object_set(
			call->state, "student", json_object_get(call->book.student, "student"));
		code = lab_book_seal_for_teacher(
			&call->book, call->lab, &call->drawn, call->state, err);
		if (!code)
			code = lab_book_save_student(&call->book, err);
		if (!code)
			code = lab_book_save(&call->book, call->state, err);
	}
	return code;
}

static int lab_start(struct lab_call *call, struct error *err)
{
	int code = lab_take_start_words(call, err);
	const bool again = json_is_true(json_object_get(call->state, "reset"));
	if (!code && (!call->state || again))
		code = lab_begin(call, err);
	else if (!code)
		code = lab_go_on(call, err);
	if (code)
		return code;
	lab_say_title(call);
	lab_sayf(call, INK_PLAIN, "page", "%s (about %.0f min)", lab_text(call->lab, 0, LAB_PAGE),
		lab_amount(call->lab, 0, LAB_MINUTES, 15));
	lab_say(call, INK_PLAIN, "goal", lab_text(call->lab, call->drawn.variant, LAB_GOAL));
	lab_say_knobs(call);
	lab_say_asks(call);
	lab_say_next(call);
	return 0;
}

/* --- predict ---------------------------------------------------------------------------------- */

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
		buffer_format(&line, "%.4g..%.4g", fields_real(json_object_get(p, "low")),
			fields_real(json_object_get(p, "high")));
	buffer_format(&line, ", %.0f %% sure", sure * 100);
	if (json_is_number(measured))
		buffer_format(&line, "; measured %.4g: %s, the middle was off by %.2f x",
			json_number_value(measured), json_is_true(hit) ? "right" : "wrong", factor);
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

static void lab_say_predictions(struct lab_call *call)
{
	const json_t *list = json_object_get(call->state, "predictions");
	for (size_t i = 0; i < json_array_size(list); i++)
		lab_say_prediction(call, i == 0, json_array_get(list, i));
}

static int lab_predict(struct lab_call *call, struct error *err)
{
	size_t count;
	const char *const *words = lab_words_of(call, &count);
	int code = count > 0 ? 0
			     : error_set(err, -EINVAL,
				       "predict what? 'mlbench lab start %u' prints the questions",
				       call->lab->number);
	for (size_t i = 0; i < count && !code; i++)
		code = lab_state_predict(
			call->lab, &call->drawn, call->state, words[i], clock_utc_seconds(), err);
	if (!code)
		code = lab_book_save(&call->book, call->state, err);
	if (code)
		return code;
	lab_say_title(call);
	lab_say_predictions(call);
	lab_say_next(call);
	return 0;
}

/* --- measure ---------------------------------------------------------------------------------- */

/* The words of a setting; others: those that are none, NULL: there may be none. */
static int lab_take_setting(struct lab_call *call, struct lab_setting *setting,
	struct lab_claim *claim, struct error *err)
{
	size_t count;
	const char *const *words = lab_words_of(call, &count);
	int code = 0;
	*setting = (struct lab_setting){0};
	for (size_t i = 0; i < count && !code; i++) {
		const char *equals = strchr(words[i], '=');
		const char *dot = strchr(words[i], '.');
		const char *cause = lab_word_value(words[i], "cause");
		const char *evidence = lab_word_value(words[i], "evidence");
		if (claim && cause)
			claim->cause = cause;
		else if (claim && evidence)
			claim->evidence = evidence;
		else if (!claim || !equals || (dot && dot < equals))
			code = lab_setting_take(call->lab, &call->drawn, words[i], setting, err);
		else if (claim->answer_count < LAB_PAIRS_MAX)
			claim->answers[claim->answer_count++] = words[i];
		else
			code = error_set(err, -EINVAL, "more than %d answers", LAB_PAIRS_MAX);
	}
	return code ? code : lab_setting_normalise(call->lab, &call->drawn, setting, err);
}

/* Verdict, evidence and advice are what the student shall find: they come when the lab is over. */
static void lab_say_measured(struct lab_call *call, const struct report *report)
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
			options_given(&call->invocation->options, OPTION_VERBOSE), &call->text);
	else
		report_measured(report, &call->style, &call->text);
	buffer_text(&call->text, "\n");
}

static int lab_measure(struct lab_call *call, struct error *err)
{
	struct lab_setting setting;
	struct lab_result result;
	const unsigned number = lab_state_measurements(call->state) + 1;
	char folder[32];
	int code = lab_state_may_measure(call->lab, &call->drawn, call->state, err);
	if (!code)
		code = lab_take_setting(call, &setting, NULL, err);
	if (!code && number > LAB_MEASUREMENTS_MAX)
		code = error_set(err, -EINVAL,
			"more than %d measurements; 'mlbench lab reset %u' begins anew",
			LAB_MEASUREMENTS_MAX, call->lab->number);
	if (!code)
		code = lab_run_measure(call->invocation, call->lab, &call->drawn, &setting,
			call->place, number, &result, err);
	if (code)
		return code;
	(void)snprintf(folder, sizeof folder, "%02u/m%03u", call->lab->number, number);
	lab_state_note_measured(call->state, lab_setting_to_json(&setting), &result.measured,
		folder, clock_utc_seconds());
	code = lab_book_save(&call->book, call->state, err);
	if (!code) {
		lab_say_measured(call, &result.report);
		lab_say_title(call);
		lab_say_predictions(call);
		lab_say_evidence(call);
		lab_say_next(call);
	}
	lab_result_close(&result);
	return code;
}

/* --- hint ------------------------------------------------------------------------------------- */

static int lab_hint(struct lab_call *call, struct error *err)
{
	const char *text;
	double price;
	int code = lab_state_take_hint(call->lab, call->drawn.variant, call->state,
		clock_utc_seconds(), &text, &price, err);
	if (!code)
		code = lab_book_save(&call->book, call->state, err);
	if (code)
		return code;
	lab_say_title(call);
	/* Those that were paid for stay readable. */
	const size_t taken = json_array_size(json_object_get(call->state, "hints"));
	for (size_t i = 0; i < taken && i < LAB_HINTS; i++) {
		const enum lab_word word = (enum lab_word)(LAB_HINT1 + i);
		lab_sayf(call, INK_PLAIN, i ? "" : "hint", "%zu: %s", i + 1,
			lab_text(call->lab, call->drawn.variant, word));
	}
	if (text)
		lab_sayf(call, INK_DIM, "price", "%.0f points; %.0f are left", price,
			lab_state_points(call->state));
	else
		lab_sayf(call, INK_DIM, "",
			"there are no more; 'mlbench lab explain %u --force' gives up",
			call->lab->number);
	return 0;
}

/* --- check ------------------------------------------------------------------------------------ */

static void lab_say_gain(struct lab_call *call, const struct lab_check *check)
{
	const struct lab_judgement *j = &check->judgement;
	const double pass = lab_amount(call->lab, call->drawn.variant, LAB_PASS, 0.7);
	char bounds[80] = "not known";
	if (isfinite(j->interval.low) && isfinite(j->interval.high))
		(void)snprintf(bounds, sizeof bounds, "95 %% CI %.0f to %.0f %%",
			j->interval.low * 100, j->interval.high * 100);
	lab_sayf(call, INK_PLAIN, "measured",
		"as it stood %.4g, yours %.4g, best here %.4g samples/s (%zu times in turns)",
		j->median.broken, j->median.yours, j->median.best, j->blocks);
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

static void lab_say_check(struct lab_call *call, const struct lab_check *check)
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

static int lab_check_it(struct lab_call *call, int *status, struct error *err)
{
	struct lab_setting setting;
	struct lab_claim claim = {0};
	struct lab_check check;
	int code = lab_take_setting(call, &setting, &claim, err);
	if (!code)
		code = lab_check_claims(call->lab, &call->drawn, call->state, &claim, &check, err);
	if (!code && check.measures)
		code = lab_run_check(call->invocation, call->lab, &call->drawn, &setting,
			call->place, &check.judgement, err);
	if (code)
		return code;
	lab_state_note_check(call->lab, &call->drawn, call->state, lab_setting_to_json(&setting),
		&claim, &check, clock_utc_seconds());
	code = lab_book_save(&call->book, call->state, err);
	if (code)
		return code;
	lab_say_title(call);
	lab_say_check(call, &check);
	if (check.passed)
		lab_say_predictions(call);
	lab_say_next(call);
	*status = check.passed ? EXIT_STATUS_DONE
		  : check.open ? EXIT_STATUS_CANNOT
			       : EXIT_STATUS_FAILED;
	return 0;
}

/* --- explain ---------------------------------------------------------------------------------- */

/* The last measurement of a setting; NULL. */
static const json_t *lab_find_measured(
	const struct lab_call *call, const struct lab_setting *setting)
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

/* What a setting gave.  A replay of what was measured could tell of others, too, and not surely enough for a lesson. */
static void lab_rate_words(
	const struct lab_call *call, const struct lab_setting *setting, struct buffer *out)
{
	const json_t *measured = lab_find_measured(call, setting);
	if (measured)
		buffer_format(out, "measured %.4g samples/s",
			json_number_value(json_object_get(measured, "rate")));
	else
		buffer_text(out, "not measured");
}

static void lab_say_fixes(struct lab_call *call)
{
	const struct lab_line *line;
	struct lab_setting setting;
	struct buffer words = {0};
	json_t *fixes = json_array();
	size_t at = 0;
	const json_t *base = lab_find_measured(call, &(struct lab_setting){0});
	if (base)
		lab_sayf(call, INK_PLAIN, "stood at", "%.4g samples/s",
			json_number_value(json_object_get(base, "rate")));
	while ((line = lab_next(call->lab, call->drawn.variant, LAB_WRONG, &at))) {
		struct buffer rate = {0};
		setting = (struct lab_setting){0};
		if (lab_setting_of_line(&call->drawn, line, &setting, NULL) ||
			lab_setting_normalise(call->lab, &call->drawn, &setting, NULL))
			continue;
		json_t *json = lab_setting_to_json(&setting);
		words.size = 0;
		lab_setting_words(json, &words);
		lab_rate_words(call, &setting, &rate);
		lab_sayf(call, INK_PLAIN, json_array_size(fixes) ? "" : "no help", "%s: %s. %s",
			words.data ? words.data : "", rate.data ? rate.data : "", line->text);
		(void)json_array_append_new(
			fixes, json_pack("{s:s, s:o, s:o, s:o}", "name", line->name, "setting",
				       json, "rate", fields_text(rate.data ? rate.data : ""), "why",
				       fields_text(line->text)));
		buffer_release(&rate);
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
		buffer_format(&words, ": %.4g samples/s in the last check", best);
	lab_say(call, INK_GOOD, "best", words.data ? words.data : "");
	(void)json_object_set_new(call->more, "best", json);
	buffer_release(&words);
}

static void lab_say_answers(struct lab_call *call)
{
	const struct lab_line *line;
	size_t at = 0;
	double truth;
	while ((line = lab_next(call->lab, call->drawn.variant, LAB_ANSWER, &at)))
		if (expression_evaluate(line->second, &call->drawn.scope, &truth, NULL) == 0)
			lab_sayf(call, INK_PLAIN, "answer", "%s: %.4g", line->name, truth);
}

static int lab_explain(struct lab_call *call, struct error *err)
{
	const bool over = lab_state_stage(call->state) >= LAB_PASSED;
	int code = 0;
	if (!over && !options_given(&call->invocation->options, OPTION_FORCE))
		return error_set(err, -EINVAL,
			"lab %u is not passed yet; --force gives up, which is recorded with 0 points",
			call->lab->number);
	if (!over)
		code = lab_state_give_up(
			call->lab, &call->drawn, call->state, clock_utc_seconds(), err);
	if (!code && !over)
		code = lab_book_save(&call->book, call->state, err);
	if (code)
		return code;
	call->more = json_object();
	lab_say_title(call);
	const struct lab_setting *plants = &call->drawn.plants;
	for (size_t i = 0; i < plants->count; i++)
		lab_sayf(call, INK_BOLD, i ? "" : "planted", "%s = %s", plants->of[i].key,
			plants->of[i].value);
	(void)json_object_set_new(call->more, "planted", lab_setting_to_json(plants));
	lab_say(call, INK_PLAIN, "cause", lab_text(call->lab, call->drawn.variant, LAB_CAUSE));
	const struct lab_line *line;
	size_t at = 0;
	for (bool first = true; (line = lab_next(call->lab, call->drawn.variant, LAB_EXPLAIN, &at));
		first = false) {
		struct buffer words = {0};
		lab_fill_in(&call->drawn, line->text, &words);
		lab_say(call, INK_PLAIN, first ? "why" : "", words.data ? words.data : "");
		buffer_release(&words);
	}
	lab_say_answers(call);
	lab_say_fixes(call);
	lab_say_predictions(call);
	const json_t *base = lab_find_measured(call, &(struct lab_setting){0});
	if (base)
		lab_sayf(call, INK_PLAIN, "verdict",
			"mlbench show %s/%s: what the program says of it", call->book.folder,
			fields_text_of(base, "folder"));
	lab_sayf(call, INK_PLAIN, "file", "%s, with its comments", call->lab->path);
	return 0;
}

/* --- reset ------------------------------------------------------------------------------------ */

/* The attempt stays in the state until the next start, which keeps it as an earlier one. */
static int lab_reset(struct lab_call *call, struct error *err)
{
	if (access(call->place, F_OK) == 0) {
		const int code = files_remove_tree(call->place, err);
		if (code)
			return code;
	}
	(void)json_object_set_new(call->state, "reset", json_true());
	const int code = lab_book_save(&call->book, call->state, err);
	if (!code)
		lab_sayf(call, INK_PLAIN, "reset",
			"lab %u begins anew, with other values, with 'mlbench lab start %u'; the attempt is "
			"remembered",
			call->lab->number, call->lab->number);
	return code;
}

/* --- list ------------------------------------------------------------------------------------- */

static void lab_list_row(
	struct table *table, json_t *rows, const struct lab *lab, const json_t *state)
{
	const bool reset = json_is_true(json_object_get(state, "reset"));
	const char *stage = !state || reset ? "" : lab_stage_name(lab_state_stage(state));
	const json_t *points = reset ? NULL : json_object_get(state, "points");
	char text[16] = "";
	if (json_is_number(points))
		(void)snprintf(text, sizeof text, "%.0f", json_number_value(points));
	table_add(table, INK_PLAIN, "%u", lab->number);
	table_add(table, INK_PLAIN, "%s", lab_text(lab, 0, LAB_TITLE));
	table_add(table, INK_PLAIN, "%.0f", lab_amount(lab, 0, LAB_MINUTES, 15));
	table_add(table, INK_PLAIN, "%s", stage);
	table_add(table, INK_PLAIN, "%s", text);
	(void)json_array_append_new(rows,
		json_pack("{s:i, s:s, s:o, s:f, s:s, s:s, s:O?}", "lab", (int)lab->number, "name",
			lab->name, "title", fields_text(lab_text(lab, 0, LAB_TITLE)), "minutes",
			lab_amount(lab, 0, LAB_MINUTES, 15), "page", lab_text(lab, 0, LAB_PAGE),
			"state", *stage ? stage : "open", "points", points));
}

static int lab_list(const struct invocation *invocation, struct error *err)
{
	static const struct table_column columns[] = {{.head = "lab"},
		{.head = "title", .left = true}, {.head = "minutes"},
		{.head = "state", .left = true}, {.head = "points"}};
	const char *folder = invocation->options.values[OPTION_DIR];
	const struct style style = command_style(invocation);
	struct lab *labs[LAB_FILES_MAX];
	struct lab_book book = {.lock = -1};
	struct table table;
	struct buffer text = {0};
	json_t *rows = json_array();
	folder = folder ? folder : LAB_BOOK_FOLDER;
	const bool begun = access(folder, F_OK) == 0;
	int code = begun ? lab_book_open(&book, folder, false, NULL, err) : 0;
	const size_t count = code ? 0 : lab_find_all(labs);
	table_open(&table, columns, COUNT(columns));
	for (size_t i = 0; i < count; i++) {
		json_t *state = NULL;
		if (!code && begun)
			code = lab_book_load(&book, labs[i]->number, &state, err);
		lab_list_row(&table, rows, labs[i], state);
		json_decref(state);
		lab_free(labs[i]);
	}
	lab_book_close(&book);
	if (!code && count == 0)
		code = error_set(err, -ENOENT,
			"no labs: there is no configs/labs/ here or beside the program");
	table_render(&table, &style, LAYOUT_INDENT, true, &text);
	table_close(&table);
	if (code) {
		buffer_release(&text);
		json_decref(rows);
		return command_status(code);
	}
	if (!command_wants_json(invocation)) {
		json_decref(rows);
		return command_print(&text, err);
	}
	buffer_release(&text);
	return command_print_json(invocation,
		json_pack("{s:s, s:o}", "schema", "mlbench.lab_list/1", "labs", rows), err);
}

/* --- for teachers ----------------------------------------------------------------------------- */

static int lab_write_key(const char *path, const char *key, mode_t mode, struct error *err)
{
	struct buffer text = {0};
	buffer_format(&text, "%s\n", key);
	int code = text.failed ? error_set(err, -ENOMEM, "out of memory")
			       : files_write_atomic(path, text.data, text.size, err);
	buffer_release(&text);
	if (!code && chmod(path, mode) != 0)
		code = error_set_errno(err, errno, "cannot protect '%s'", path);
	return code;
}

static int lab_key(const struct invocation *invocation, struct error *err)
{
	const struct options *options = &invocation->options;
	char public_text[SEAL_SECRET_TEXT];
	char secret_text[SEAL_SECRET_TEXT];
	char path[PATH_MAX];
	struct buffer text = {0};
	const char *file = options->argument_count == 2 ? options->arguments[1] : NULL;
	int code = file ? seal_begin(err)
			: error_set(err, -EINVAL, "'mlbench lab key' takes the name of a new file");
	if (!code && access(file, F_OK) == 0)
		code = error_set(
			err, -EEXIST, "'%s' is there already; a key is not written over", file);
	if (code)
		return command_status(code);
	(void)snprintf(path, sizeof path, "%s.pub", file);
	const mode_t before = umask(077);
	seal_make_pair(public_text, secret_text);
	code = lab_write_key(file, secret_text, 0600, err);
	(void)umask(before);
	if (!code)
		code = lab_write_key(path, public_text, 0644, err);
	if (code)
		return command_status(code);
	if (command_wants_json(invocation))
		return command_print_json(invocation,
			json_pack("{s:s, s:s, s:o, s:o}", "schema", "mlbench.lab_key/1", "public",
				public_text, "secret_file", fields_text(file), "public_file",
				fields_text(path)),
			err);
	buffer_format(&text,
		"%s: the secret key, for you alone\n%s: the public key, for students:\n"
		"  mlbench lab start 1 student=NAME teacher=%s\n",
		file, path, public_text);
	return command_print(&text, err);
}

/* A row for each student and lab. */
static json_t *lab_score_rows(const json_t *document)
{
	json_t *rows = json_array();
	const json_t *students = json_object_get(document, "students");
	for (size_t i = 0; i < json_array_size(students); i++) {
		const json_t *student = json_array_get(students, i);
		const json_t *labs = json_object_get(student, "labs");
		for (size_t j = 0; j < json_array_size(labs); j++) {
			json_t *row = json_copy(json_array_get(labs, j));
			(void)json_object_set(row, "student", json_object_get(student, "student"));
			(void)json_array_append_new(rows, row);
		}
	}
	return rows;
}

static void lab_score_changed(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	(void)column;
	if (json_is_false(json_object_get(row, "authentic")))
		buffer_text(out, "edited by hand");
}

static void lab_scores_text(const json_t *document, const struct style *style, struct buffer *out)
{
	static const struct table_column of_students[] = {
		{.head = "student", .left = true, .path = "student"},
		{.head = "lab", .path = "lab"}, {.head = "state", .left = true, .path = "state"},
		{.head = "points", .path = "points", COLUMN_DECIMALS(0)},
		{.head = "minutes", .path = "minutes", COLUMN_DECIMALS(0)},
		{.head = "measured", .path = "measurements", .keep = 2},
		{.head = "hints", .path = "hints"}, {.head = "checks", .path = "checks"},
		{.head = "attempt", .path = "attempt", .keep = 3},
		{.head = "right", .path = "hits", .keep = 1},
		{.head = "of", .path = "scored", .keep = 1},
		{.head = "off by", .path = "factor", COLUMN_DECIMALS(2), .after = "x"},
		{.head = "Brier", .path = "brier", COLUMN_DECIMALS(2)},
		{.head = "remark", .left = true, .text_of = lab_score_changed, .ink = INK_WARN}};
	static const struct table_column of_labs[] = {{.head = "lab", .path = "lab"},
		{.head = "title", .left = true, .path = "title"},
		{.head = "started", .path = "started"}, {.head = "passed", .path = "passed"},
		{.head = "gave up", .path = "given_up"},
		{.head = "minutes", .path = "minutes", COLUMN_DECIMALS(0)},
		{.head = "hints", .path = "hints", COLUMN_DECIMALS(1)},
		{.head = "checks", .path = "checks", COLUMN_DECIMALS(1)},
		{.head = "points", .path = "points", COLUMN_DECIMALS(0)},
		{.head = "off by", .path = "factor", COLUMN_DECIMALS(2), .after = "x"},
		{.head = "Brier", .path = "brier", COLUMN_DECIMALS(2)}};
	struct table table;
	json_t *rows = lab_score_rows(document);
	columns_table(of_students, COUNT(of_students), rows, &table);
	table_render(&table, style, LAYOUT_INDENT, true, out);
	table_close(&table);
	json_decref(rows);
	layout_heading(style, "Each lab", out);
	columns_table(of_labs, COUNT(of_labs), json_object_get(document, "labs"), &table);
	table_render(&table, style, LAYOUT_INDENT, true, out);
	table_close(&table);
}

static int lab_scores_page(const json_t *document, const char *out, struct error *err)
{
	struct buffer text = {0};
	const int code = class_page(document, &text, err);
	return code ? command_status(code) : product_write(out, "class.html", &text, err);
}

static int lab_scores_print(
	const struct invocation *invocation, const json_t *document, struct error *err)
{
	const char *out = invocation->options.values[OPTION_OUT];
	struct style style = command_style(invocation);
	struct buffer text = {0};
	style.colour = style.colour && !out;
	lab_scores_text(document, &style, &text);
	return product_write_words(out, "class.txt", &text, err);
}

static int lab_scores_format(const struct options *options, bool *html, struct error *err)
{
	const char *name = options->values[OPTION_FORMAT];
	*html = name && strcmp(name, "html") == 0;
	if (name && !*html && strcmp(name, "text") != 0)
		return error_set(err, -EINVAL, "unknown format '%.40s': text or html", name);
	if (options_given(options, OPTION_JSON) && (name || options->values[OPTION_OUT]))
		return error_set(err, -EINVAL,
			"--json writes to standard output: leave --format and --out out");
	return 0;
}

static int lab_scores_command(const struct invocation *invocation, struct error *err)
{
	const struct options *options = &invocation->options;
	json_t *document = NULL;
	const char *const own[] = {LAB_BOOK_FOLDER};
	const bool named = options->argument_count > 1;
	bool html = false;
	int code = lab_scores_format(options, &html, err);
	if (!code)
		code = lab_scores(named ? options->arguments + 1 : own,
			named ? options->argument_count - 1 : 1, &document, err);
	if (code)
		return command_status(code);
	const json_t *skipped = json_object_get(document, "skipped");
	for (size_t i = 0; i < json_array_size(skipped); i++)
		log_warn("left out: %s: %s", fields_text_of(json_array_get(skipped, i), "folder"),
			fields_text_of(json_array_get(skipped, i), "why"));
	if (command_wants_json(invocation))
		return command_print_json(invocation, document, err);
	const int status = html ? lab_scores_page(document, options->values[OPTION_OUT], err)
				: lab_scores_print(invocation, document, err);
	json_decref(document);
	return status;
}

/* What was planted, of every state in a folder: {"student", "lab", "attempt", "planted"}. */
static int lab_open_state(
	const char *folder, const char *name, const char *key, json_t *rows, struct error *err)
{
	char *path = files_join(folder, name);
	json_t *state = path ? json_load_file(path, 0, NULL) : NULL;
	char *text = NULL;
	free(path);
	int code = state ? lab_state_check(state, err) : error_set(err, -EINVAL, "no JSON");
	const char *sealed =
		json_string_value(json_object_get(json_object_get(state, "sealed"), "teacher"));
	if (!code && !sealed)
		code = error_set(err, -ENODATA,
			"nothing was sealed for a teacher ('teacher=' was not given)");
	if (!code)
		code = seal_open_box(key, sealed, &text, err);
	if (!code)
		(void)json_array_append_new(rows, json_pack("{s:O, s:O, s:O, s:o}", "student",
							  json_object_get(state, "student"), "lab",
							  json_object_get(state, "lab"), "attempt",
							  json_object_get(state, "attempt"),
							  "drawn", json_loads(text, 0, NULL)));
	free(text);
	json_decref(state);
	return code ? error_prefix(err, code, "%s/%s", folder, name) : 0;
}

static int lab_open_folder(const char *folder, const char *key, json_t *rows, struct error *err)
{
	int code = 0;
	for (unsigned number = 1; number < 1000 && !code; number++) {
		char name[32];
		(void)snprintf(name, sizeof name, "%02u.json", number);
		char *path = files_join(folder, name);
		if (path && access(path, F_OK) == 0)
			code = lab_open_state(folder, name, key, rows, err);
		free(path);
	}
	if (!code && json_array_size(rows) == 0)
		code = error_set(err, -ENOENT, "'%s' holds no lab that was begun", folder);
	return code;
}

static int lab_open_command(const struct invocation *invocation, struct error *err)
{
	const struct options *options = &invocation->options;
	char key[SEAL_SECRET_TEXT + 8] = "";
	const char *file =
		options->argument_count == 3 ? lab_word_value(options->arguments[2], "key") : NULL;
	json_t *rows = json_array();
	int code = file ? seal_begin(err)
			: error_set(err, -EINVAL, "expected: mlbench lab open FOLDER key=FILE");
	if (!code && files_first_line(file, key, sizeof key) != 0)
		code = error_set(err, -ENOENT, "cannot read the key '%s'", file);
	if (!code)
		code = lab_open_folder(options->arguments[1], key, rows, err);
	if (code) {
		json_decref(rows);
		return command_status(code == -EBADMSG ? -EINVAL : code);
	}
	if (command_wants_json(invocation))
		return command_print_json(invocation,
			json_pack("{s:s, s:o}", "schema", "mlbench.lab_open/1", "labs", rows), err);
	struct buffer text = {0};
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		buffer_format(&text, "%s, lab %d: ", fields_text_of(row, "student"),
			(int)json_integer_value(json_object_get(row, "lab")));
		lab_setting_words(json_object_get(json_object_get(row, "drawn"), "plants"), &text);
		buffer_text(&text, "\n");
	}
	json_decref(rows);
	return command_print(&text, err);
}

/* --- the command ------------------------------------------------------------------------------ */

enum lab_needs { LAB_NEEDS_NOTHING, LAB_NEEDS_BOOK, LAB_NEEDS_STATE };

/* Actions of one lab: what they need, and what they do. */
static const struct lab_action {
	const char *name;
	int (*run)(struct lab_call *call, struct error *err);
	int (*judge)(struct lab_call *call, int *status, struct error *err);
	enum lab_needs needs;
	bool words; /* behind the lab's number */
} lab_actions[] = {
	{"start", lab_start, NULL, LAB_NEEDS_BOOK, true},
	{"predict", lab_predict, NULL, LAB_NEEDS_STATE, true},
	{"measure", lab_measure, NULL, LAB_NEEDS_STATE, true},
	{"hint", lab_hint, NULL, LAB_NEEDS_STATE, false},
	{"check", NULL, lab_check_it, LAB_NEEDS_STATE, true},
	{"explain", lab_explain, NULL, LAB_NEEDS_STATE, false},
	{"reset", lab_reset, NULL, LAB_NEEDS_STATE, false},
};

/* Actions of none. */
static const struct lab_other {
	const char *name;
	int (*run)(const struct invocation *invocation, struct error *err);
} lab_others[] = {
	{"list", lab_list},
	{"scores", lab_scores_command},
	{"key", lab_key},
	{"open", lab_open_command},
};

void lab_action_names(struct buffer *out)
{
	for (size_t i = 0; i < COUNT(lab_others); i++)
		buffer_format(out, " %s", lab_others[i].name);
	for (size_t i = 0; i < COUNT(lab_actions); i++)
		buffer_format(out, " %s", lab_actions[i].name);
}

static int lab_refuse_action(const char *name, struct error *err)
{
	const char *names[COUNT(lab_actions) + COUNT(lab_others)];
	size_t count = 0;
	struct buffer all = {0};
	for (size_t i = 0; i < COUNT(lab_others); i++)
		names[count++] = lab_others[i].name;
	for (size_t i = 0; i < COUNT(lab_actions); i++)
		names[count++] = lab_actions[i].name;
	lab_action_names(&all);
	const char *nearest = suggest_nearest(name, names, count);
	const int code =
		nearest ? error_set(err, -EINVAL, "unknown action '%.40s'; did you mean '%s'?",
				  name, nearest)
			: error_set(err, -EINVAL, "unknown action '%.40s'; there are%s", name,
				  all.data ? all.data : "");
	buffer_release(&all);
	return code;
}

static int lab_call_open(struct lab_call *call, const struct lab_action *action, struct error *err)
{
	const struct options *options = &call->invocation->options;
	const char *folder = options->values[OPTION_DIR];
	if (options->argument_count < 2)
		return error_set(err, -EINVAL,
			"which lab? 'mlbench lab %s N'; 'mlbench lab list' has them", action->name);
	if (options->argument_count > 2 && !action->words)
		return error_set(err, -EINVAL, "'%.60s': 'mlbench lab %s' takes the lab alone",
			options->arguments[2], action->name);
	int code = lab_find(options->arguments[1], &call->lab, err);
	if (!code)
		code = lab_book_open(&call->book, folder ? folder : LAB_BOOK_FOLDER,
			action->needs == LAB_NEEDS_BOOK, NULL, err);
	if (!code)
		code = lab_book_load(&call->book, call->lab->number, &call->state, err);
	if (code || action->needs != LAB_NEEDS_STATE)
		goto out;
	if (!call->state || json_is_true(json_object_get(call->state, "reset")))
		code = error_set(err, -EINVAL, "lab %u is not begun: mlbench lab start %u",
			call->lab->number, call->lab->number);
	else
		code = lab_book_drawn(&call->book, call->lab, call->state, &call->drawn, err);
out:
	call->place = code ? NULL : lab_book_place(&call->book, call->lab->number);
	return code || call->place ? code : error_set(err, -ENOMEM, "out of memory");
}

static int lab_run_action(
	const struct invocation *invocation, const struct lab_action *action, struct error *err)
{
	int status = EXIT_STATUS_DONE;
	struct lab_call *call = calloc(1, sizeof *call);
	if (!call)
		return command_status(error_set(err, -ENOMEM, "out of memory"));
	call->invocation = invocation;
	call->action = action->name;
	call->style = command_style(invocation);
	call->book.lock = -1;
	int code = lab_call_open(call, action, err);
	if (!code)
		code = action->judge ? action->judge(call, &status, err) : action->run(call, err);
	if (code) {
		/* A seal that does not open is a folder that somebody changed; what cannot be measured is no failed check. */
		status = command_status(code == -EBADMSG ? -EINVAL : code == -EIO ? -EBUSY : code);
	} else {
		err->text[0] = '\0';
		const int printed = lab_print(call, err);
		status = printed ? printed : status;
	}
	lab_book_close(&call->book);
	json_decref(call->state);
	json_decref(call->more);
	buffer_release(&call->text);
	free(call->place);
	lab_free(call->lab);
	free(call);
	return status;
}

static int lab_command(const struct invocation *invocation, struct error *err)
{
	const struct options *options = &invocation->options;
	const char *name = options->arguments[0];
	if ((options->values[OPTION_FORMAT] || options->values[OPTION_OUT]) &&
		strcmp(name, "scores") != 0)
		return command_status(error_set(err, -EINVAL,
			"--format and --out are options of 'mlbench lab scores', not of '%.40s'",
			name));
	for (size_t i = 0; i < COUNT(lab_actions); i++)
		if (strcmp(lab_actions[i].name, name) == 0)
			return lab_run_action(invocation, &lab_actions[i], err);
	for (size_t i = 0; i < COUNT(lab_others); i++)
		if (strcmp(lab_others[i].name, name) == 0)
			return lab_others[i].run(invocation, err);
	return command_status(lab_refuse_action(name, err));
}

const struct command command_lab = {
	.name = "lab",
	.summary = "learn by labs: predict, measure, fix and explain a planted bottleneck",
	.arguments = "ACTION [LAB] [NAME=VALUE...]",
	.description =
		"'list' lists the labs. Of one lab, in this order: 'start N' gets to know this laptop "
		"and prints the questions; 'predict N NAME=LOW..HIGH@80% ...' records what you "
		"expect and how sure you are; 'measure N [KEY=VALUE ...]' measures, under "
		"conditions that are planted and that no output names; 'check N KEY=VALUE ... "
		"cause=STAGE/RESOURCE evidence=NAME' measures your setting in turns with the broken "
		"and the best one, and passes if enough is gained, and the cause is right, and the "
		"evidence, too. 'hint N' gives three hints, each dearer than the one before. "
		"'explain N' tells all after passing; with --force it gives up. 'reset N' begins "
		"anew with other values.\n\n"
		"All of it is kept in one folder (--dir), a JSON file for each lab. What is planted "
		"is drawn for each student, and sealed: it can be read from no file, but whoever "
		"takes the program apart finds it.\n\n"
		"For teachers: 'key FILE' makes a key pair. With 'start N student=NAME "
		"teacher=KEY' the draw is sealed for its owner, too, and 'open FOLDER key=FILE' "
		"prints it. 'scores FOLDER...' sums up the folders of a class, "
		"and with --format html makes a page of them; --out names a file for it.\n\n"
		"Exit status: 0 done or passed, 1 the check was not passed, 2 the input was wrong, 3 "
		"too noisy to tell.",
	.example = "mlbench lab start 1",
	.options = OPTION_BIT(OPTION_DIR) | OPTION_BIT(OPTION_FORCE) | OPTION_BIT(OPTION_FORMAT) |
		   OPTION_BIT(OPTION_OUT) | OPTION_BIT(OPTION_JSON),
	.arguments_min = 1,
	.arguments_max = SIZE_MAX,
	.run = lab_command,
};
