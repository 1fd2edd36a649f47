/* What teachers do: keys, what was planted, and the scores of a class. */
#include "harness/command/lab_class.h"

#include "harness/base/array.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/command/lab_call.h"
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
	if (json_is_false(json_object_get(row, "authentic")))
		buffer_text(out, "edited by hand");
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

int lab_class_open(const struct invocation *invocation, struct error *err)
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
