/* What teachers do: keys, what was planted, and the scores of a class. */
#include "harness/command/lab_class.h"

#include "harness/base/array.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/command/lab_call.h"
#include "harness/command/lab_shelf.h"
#include "harness/lab/lab_scores.h"
#include "harness/lab/seal.h"
#include "harness/record/fields.h"
#include "harness/report/class_page.h"
#include "harness/report/columns.h"
#include "harness/report/layout.h"
#include "harness/report/table.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

enum { TEACHER_KEY_BYTES = SEAL_SECRET_TEXT + 8 };

static int lab_read_key(const char *file, char key[TEACHER_KEY_BYTES], struct error *err)
{
	const int code = files_first_line(file, key, TEACHER_KEY_BYTES);
	if (code)
		return error_set_errno(err, -code, "cannot read the key '%s'", file);
	return seal_is_key(key) ? 0 : error_set(err, -EINVAL, "'%s' is no key of a teacher", file);
}

int lab_class_key(const struct invocation *invocation, struct error *err)
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
	const json_t *authentic = json_object_get(row, "authentic");
	if (json_is_false(authentic))
		buffer_text(out, "not as written");
	else if (!json_is_true(authentic))
		buffer_text(out, "not checked");
}

/* Of the predictions that were scored. */
static void lab_score_right(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	(void)column;
	buffer_format(out, "%.0f of %.0f", fields_real(json_object_get(row, "hits")),
		fields_real(json_object_get(row, "scored")));
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
		{.head = "right", .text_of = lab_score_right, .keep = 1},
		{.head = "off by", .path = "factor", COLUMN_DECIMALS(2), .after = "x"},
		{.head = "Brier", .path = "brier", COLUMN_DECIMALS(2)},
		{.head = "remark", .left = true, .text_of = lab_score_changed, .ink = INK_WARN}};
	static const struct table_column of_labs[] = {{.head = "lab", .path = "lab"},
		{.head = "title", .left = true, .path = "title"},
		{.head = "started", .path = "started"}, {.head = "passed", .path = "passed"},
		{.head = "gave up", .path = "given_up", .keep = 1},
		{.head = "minutes", .path = "minutes", COLUMN_DECIMALS(0)},
		{.head = "hints", .path = "hints", COLUMN_DECIMALS(1), .keep = 3},
		{.head = "checks", .path = "checks", COLUMN_DECIMALS(1), .keep = 4},
		{.head = "points", .path = "points", COLUMN_DECIMALS(0)},
		{.head = "off by", .path = "factor", COLUMN_DECIMALS(2), .after = "x"},
		{.head = "Brier", .path = "brier", COLUMN_DECIMALS(2), .keep = 2}};
	struct table table;
	json_t *rows = lab_score_rows(document);
	bool changed = false;
	for (size_t i = 0; i < json_array_size(rows); i++)
		changed = changed ||
			  json_is_false(json_object_get(json_array_get(rows, i), "authentic"));
	columns_table(of_students, COUNT(of_students) - (changed ? 0 : 1), rows, &table);
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

int lab_class_scores(const struct invocation *invocation, struct error *err)
{
	const struct options *options = &invocation->options;
	json_t *document = NULL;
	const char *const own[] = {LAB_BOOK_FOLDER};
	const char **folders = calloc(options->argument_count + 1, sizeof *folders);
	size_t count = 0;
	char key[TEACHER_KEY_BYTES] = "";
	bool html = false;
	int code = folders ? lab_scores_format(options, &html, err)
			   : error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 1; i < options->argument_count && !code; i++) {
		const char *file = lab_word_value(options->arguments[i], "key");
		if (file)
			code = lab_read_key(file, key, err);
		else
			folders[count++] = options->arguments[i];
	}
	if (!code)
		code = lab_scores(count ? folders : own, count ? count : 1, *key ? key : NULL,
			&document, err);
	free(folders);
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

/* --- what the teacher opens --------------------------------------------------------------------- */

/* What was planted; *text fresh. */
static int lab_open_sealed(const json_t *state, const char *key, char **text, struct error *err)
{
	const char *sealed =
		json_string_value(json_object_get(json_object_get(state, "sealed"), "teacher"));
	*text = NULL;
	return sealed ? seal_open_box(key, sealed, text, err)
		      : error_set(err, -ENODATA,
				"nothing was sealed for a teacher ('teacher=' was not given)");
}

/* As lab_state_judge_again; NULL, a JSON null: not passed, or its lab is not here. */
static json_t *lab_open_answer(const json_t *state, const json_t *drawn_json)
{
	char number[16];
	struct lab *lab = NULL;
	struct lab_drawn drawn;
	int right = -1;
	(void)snprintf(number, sizeof number, "%u", lab_state_number(state));
	if (lab_shelf_find(number, &lab, NULL) == 0 &&
		lab_drawn_from_json(lab, drawn_json, &drawn, NULL) == 0)
		right = lab_state_judge_again(lab, &drawn, state);
	lab_free(lab);
	return right < 0 ? json_null() : json_boolean(right);
}

static int lab_open_state(const char *folder, const char *name, unsigned number,
	const struct lab_student *student, const char *key, json_t *rows, struct error *err)
{
	char *path = files_join(folder, name);
	json_t *state = path ? json_load_file(path, 0, NULL) : NULL;
	char *text = NULL;
	const char *wrong = NULL;
	free(path);
	int code = state ? lab_state_check(state, err) : error_set(err, -EINVAL, "no JSON");
	if (!code)
		code = lab_open_sealed(state, key, &text, err);
	if (!code) {
		json_t *drawn = json_loads(text, 0, NULL);
		const int authentic = lab_book_is_authentic(state, number, student, &wrong);
		json_t *row = json_pack("{s:O, s:O, s:O?, s:s, s:o, s:o, s:s?, s:o}", "student",
			json_object_get(student->json, "student"), "lab",
			json_object_get(state, "lab"), "attempt", json_object_get(state, "attempt"),
			"state", lab_stage_name(lab_state_stage(state)), "authentic",
			authentic < 0 ? json_null() : json_boolean(authentic), "answer_right",
			lab_open_answer(state, drawn), "wrong", wrong, "drawn",
			drawn ? drawn : json_null());
		if (json_array_append_new(rows, row))
			code = error_set(err, -ENOMEM, "out of memory");
	}
	free(text);
	json_decref(state);
	return code ? error_prefix(err, code, "%s/%s", folder, name) : 0;
}

/* A lab that student.json knows and that is not there. */
static void lab_open_missing(const struct lab_student *student, unsigned number, json_t *rows)
{
	(void)json_array_append_new(rows,
		json_pack("{s:O, s:i, s:n, s:n, s:b, s:n, s:s, s:n}", "student",
			json_object_get(student->json, "student"), "lab", (int)number, "attempt",
			"state", "authentic", 0, "answer_right", "wrong", "removed", "drawn"));
}

static int lab_open_folder(const char *folder, const char *key, json_t *rows, struct error *err)
{
	struct lab_student student;
	int code = lab_student_read(folder, key, &student, err);
	for (unsigned number = 1; number < 1000 && !code; number++) {
		char name[32];
		(void)snprintf(name, sizeof name, "%02u.json", number);
		char *path = files_join(folder, name);
		const int there =
			path ? files_is_there(path, err) : error_set(err, -ENOMEM, "out of memory");
		code = there > 0 ? lab_open_state(folder, name, number, &student, key, rows, err)
				 : there;
		name[strcspn(name, ".")] = '\0';
		if (there == 0 && json_object_get(json_object_get(student.json, "files"), name))
			lab_open_missing(&student, number, rows);
		free(path);
	}
	if (!code && json_array_size(rows) == 0)
		code = error_set(err, -ENOENT, "'%s' holds no lab that was begun", folder);
	lab_student_release(&student);
	return code;
}

static void lab_open_say(const json_t *row, struct buffer *text)
{
	const char *wrong = json_string_value(json_object_get(row, "wrong"));
	const json_t *answer = json_object_get(row, "answer_right");
	buffer_format(text, "%s, lab %d: ", fields_text_of(row, "student"),
		(int)json_integer_value(json_object_get(row, "lab")));
	if (json_is_object(json_object_get(row, "drawn")))
		lab_setting_words(json_object_get(json_object_get(row, "drawn"), "plants"), text);
	if (wrong)
		buffer_format(text, "; COUNTS AS NOTHING: it was %s", wrong);
	else
		buffer_format(text, "; %s", fields_text_of(row, "state"));
	if (json_is_boolean(answer))
		buffer_text(text, json_is_true(answer) ? ", the answer is right (judged again)"
						       : ", THE ANSWER IS WRONG (judged again)");
	buffer_text(text, "\n");
}

int lab_class_open(const struct invocation *invocation, struct error *err)
{
	const struct options *options = &invocation->options;
	char key[TEACHER_KEY_BYTES] = "";
	const char *file =
		options->argument_count == 3 ? lab_word_value(options->arguments[2], "key") : NULL;
	json_t *rows = json_array();
	int code = file ? seal_begin(err)
			: error_set(err, -EINVAL, "expected: mlbench lab open FOLDER key=FILE");
	if (!code)
		code = lab_read_key(file, key, err);
	if (!code)
		code = lab_open_folder(options->arguments[1], key, rows, err);
	if (code) {
		json_decref(rows);
		return command_status(code == -EBADMSG ? -EINVAL : code);
	}
	struct buffer text = {0};
	int failed = EXIT_STATUS_DONE;
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		lab_open_say(row, &text);
		if (!json_is_true(json_object_get(row, "authentic")) ||
			json_is_false(json_object_get(row, "answer_right")))
			failed = EXIT_STATUS_FAILED;
	}
	buffer_text(&text,
		"Gains, times and points are as the student's machine measured them: who reads the source can "
		"forge them. What was planted, and whether an answer fits it, is computed here.\n");
	int status;
	if (command_wants_json(invocation)) {
		buffer_release(&text);
		status = command_print_json(invocation,
			json_pack("{s:s, s:o}", "schema", "mlbench.lab_open/1", "labs", rows), err);
	} else {
		json_decref(rows);
		status = command_print(&text, err);
	}
	return status ? status : failed;
}
