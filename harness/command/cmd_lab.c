/* mlbench lab: labs of the workshop.  A bottleneck is planted; the student predicts, measures, fixes and says why, and the program
 * examines (harness/lab, lab_run.h). */
#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/base/text.h"
#include "harness/command/lab_call.h"
#include "harness/command/lab_class.h"
#include "harness/command/lab_shelf.h"
#include "harness/lab/seal.h"
#include "harness/record/fields.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LAB_STEP_SCHEMA "mlbench.lab_step/1"

/* Words behind the action and the lab. */
static const char *const *lab_words_of(const struct lab_call *call, size_t *count)
{
	const struct options *options = &call->invocation->options;
	*count = options->argument_count > 2 ? options->argument_count - 2 : 0;
	return options->arguments + 2;
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
	return lab_book_take_teacher(&call->book, key, err);
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
	call->state = NULL;
	if (!code)
		code = lab_book_begin(&call->book, call->lab, &laptop, before, clock_utc_seconds(),
			&call->state, &call->drawn, err);
	if (!code)
		code = lab_book_save_student(&call->book, err);
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

/* --- the command ------------------------------------------------------------------------------ */

enum lab_needs { LAB_NEEDS_BOOK, LAB_NEEDS_FILE /* also an edited one */, LAB_NEEDS_STATE };

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
	{"reset", lab_reset, NULL, LAB_NEEDS_FILE, false},
};

/* Actions of none. */
static const struct lab_other {
	const char *name;
	int (*run)(const struct invocation *invocation, struct error *err);
} lab_others[] = {
	{"list", lab_shelf_list},
	{"scores", lab_class_scores},
	{"key", lab_class_key},
	{"open", lab_class_open},
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
	int code = lab_shelf_find(options->arguments[1], &call->lab, err);
	if (!code)
		code = lab_book_open(&call->book, folder ? folder : LAB_BOOK_FOLDER,
			action->needs == LAB_NEEDS_BOOK, NULL, err);
	if (!code)
		code = lab_book_load(&call->book, call->lab->number,
			action->needs == LAB_NEEDS_FILE, &call->state, err);
	if (code || action->needs == LAB_NEEDS_BOOK)
		goto out;
	if (!call->state || json_is_true(json_object_get(call->state, "reset")))
		code = error_set(err, -EINVAL, "lab %u is not begun: mlbench lab start %u",
			call->lab->number, call->lab->number);
	else if (action->needs == LAB_NEEDS_STATE)
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
		/* A seal that does not open is a folder that somebody changed. */
		status = command_status(code == -EBADMSG ? -EINVAL : code);
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
		"takes the program apart finds it. Files that were edited or put back from a copy "
		"count as nothing; the key that says so lies outside of the folder, on the same "
		"account (XDG_STATE_HOME), where labs go on.\n\n"
		"For teachers: 'key FILE' makes a key pair. With 'start N student=NAME "
		"teacher=KEY' the draw and the key are sealed for the teacher, too: 'open FOLDER "
		"key=FILE' prints what was planted, says what was edited, and judges the answers "
		"again. 'scores FOLDER... key=FILE' sums up the folders of a class, "
		"and with --format html makes a page of them; --out names a file for it. A student "
		"who reads the source can still forge what was measured.\n\n"
		"Exit status: 0 done or passed, 1 the check was not passed, or 'open' found a file "
		"that was edited or an answer that is wrong, 2 the input was wrong, 3 "
		"too noisy to tell.",
	.example = "mlbench lab start 1",
	.options = OPTION_BIT(OPTION_DIR) | OPTION_BIT(OPTION_FORCE) | OPTION_BIT(OPTION_FORMAT) |
		   OPTION_BIT(OPTION_OUT) | OPTION_BIT(OPTION_JSON),
	.arguments_min = 1,
	.arguments_max = SIZE_MAX,
	.run = lab_command,
};
