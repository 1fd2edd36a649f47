/* The labs that there are. */
#include "harness/command/lab_shelf.h"

#include "harness/base/array.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/base/units.h"
#include "harness/lab/lab_book.h"
#include "harness/lab/lab_scores.h"
#include "harness/lab/lab_state.h"
#include "harness/record/fields.h"
#include "harness/report/layout.h"
#include "harness/report/table.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LAB_FILES_MAX = 100 };

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
int lab_shelf_find(const char *name, struct lab **lab, struct error *err)
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

static void lab_list_row(
	struct table *table, json_t *rows, const struct lab *lab, const json_t *state)
{
	const bool reset = json_is_true(json_object_get(state, "reset"));
	const bool edited = json_is_true(json_object_get(state, "edited"));
	const char *stage = !state || reset ? ""
			    : edited        ? LAB_UNVERIFIED
					    : lab_stage_name(lab_state_stage(state));
	const json_t *points = reset || edited ? NULL : json_object_get(state, "points");
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

int lab_shelf_list(const struct invocation *invocation, struct error *err)
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
	const int begun = files_is_there(folder, err);
	int code = begun > 0 ? lab_book_open(&book, folder, false, NULL, err) : begun;
	const size_t count = code ? 0 : lab_find_all(labs);
	table_open(&table, columns, COUNT(columns));
	for (size_t i = 0; i < count; i++) {
		json_t *state = NULL;
		if (!code && begun)
			code = lab_book_load(&book, labs[i]->number, true, &state, err);
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
		return command_status(code == -EBADMSG ? -EINVAL : code);
	}
	if (!command_wants_json(invocation)) {
		json_decref(rows);
		return command_print(&text, err);
	}
	buffer_release(&text);
	return command_print_json(invocation,
		json_pack("{s:s, s:o}", "schema", "mlbench.lab_list/1", "labs", rows), err);
}
