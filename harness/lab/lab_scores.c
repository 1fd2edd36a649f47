/* The scores of a class. */
#include "harness/lab/lab_scores.h"

#include "harness/analyze/statistics.h"
#include "harness/base/array.h"
#include "harness/base/files.h"
#include "harness/lab/lab_book.h"
#include "harness/lab/lab_state.h"
#include "harness/lab/seal.h"
#include "harness/record/fields.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SCORES_FILE_BYTES_MAX = 4 << 20, SCORES_STUDENTS_MAX = 1000, SCORES_LABS_MAX = 999 };

/* --- one student ------------------------------------------------------------------------------ */

static json_t *scores_load(const char *folder, const char *name, struct error *err)
{
	char *path = files_join(folder, name);
	char *text = NULL;
	size_t size = 0;
	json_t *json = NULL;
	int code = path ? files_read(path, SCORES_FILE_BYTES_MAX, &text, &size, err) : -ENOMEM;
	if (!code) {
		json = json_loadb(text, size, 0, NULL);
		if (!json)
			(void)error_set(err, -EINVAL, "'%s' is no JSON", path);
	}
	free(text);
	free(path);
	return json;
}

static void scores_skip(json_t *document, const char *folder, const char *why)
{
	(void)json_array_append_new(json_object_get(document, "skipped"),
		json_pack("{s:o, s:o}", "folder", fields_text(folder), "why", fields_text(why)));
}

/* To its end; or, where it has none, to the last thing that was done in it; NAN: nothing was. */
static double scores_minutes(const json_t *state)
{
	static const char *const lists[] = {"predictions", "measurements", "hints", "checks"};
	const double started = fields_real(json_object_get(state, "started"));
	double last = fields_real(json_object_get(state, "ended"));
	for (size_t i = 0; i < COUNT(lists) && !isfinite(last); i++) {
		const json_t *list = json_object_get(state, lists[i]);
		for (size_t j = 0; j < json_array_size(list); j++)
			last = fmax(
				last, fields_real(json_object_get(json_array_get(list, j), "at")));
	}
	return isfinite(last) ? fmax(last - started, 0) / 60 : (double)NAN;
}

static size_t scores_length(const json_t *state, const char *name)
{
	return json_array_size(json_object_get(state, name));
}

static json_t *scores_of_lab(
	const json_t *state, unsigned number, const struct lab_student *student)
{
	const int authentic = lab_book_is_authentic(state, number, student, NULL);
	/* What anybody may have written counts as nothing. */
	const struct lab_predicted p =
		authentic > 0
			? lab_state_predicted(state)
			: (struct lab_predicted){.factor = NAN, .brier = NAN, .confidence = NAN};
	json_t *points = authentic > 0 ? json_object_get(state, "points") : NULL;
	return json_pack(
		"{s:i, s:o, s:s, s:O, s:o, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:o}",
		"lab", (int)lab_state_number(state), "title",
		fields_text(fields_text_of(state, "title")), "state",
		authentic > 0 ? lab_stage_name(lab_state_stage(state)) : LAB_UNVERIFIED, "points",
		points ? points : json_null(), "minutes",
		fields_number(authentic > 0 ? scores_minutes(state) : (double)NAN), "measurements",
		(int)scores_length(state, "measurements"), "hints",
		(int)scores_length(state, "hints"), "checks", (int)scores_length(state, "checks"),
		"attempt", (int)json_integer_value(json_object_get(state, "attempt")),
		"predictions", (int)p.count, "scored", (int)p.scored, "hits", (int)p.hits, "factor",
		fields_number(p.factor), "brier", fields_number(p.brier), "confidence",
		fields_number(p.confidence), "authentic",
		authentic < 0 ? json_null() : json_boolean(authentic));
}

static int scores_take_student(
	const char *folder, const char *key, json_t *document, struct error *err)
{
	struct error why = {0};
	json_t *students = json_object_get(document, "students");
	if (json_array_size(students) == SCORES_STUDENTS_MAX)
		return error_set(err, -E2BIG, "more than %d students", SCORES_STUDENTS_MAX);
	struct lab_student student;
	if (lab_student_read(folder, key, &student, &why)) {
		scores_skip(document, folder, why.text);
		return 0;
	}
	json_t *labs = json_array();
	for (unsigned number = 1; number <= SCORES_LABS_MAX; number++) {
		char file[32];
		struct stat st;
		(void)snprintf(file, sizeof file, "%02u.json", number);
		char *path = files_join(folder, file);
		json_t *state =
			path && stat(path, &st) == 0 ? scores_load(folder, file, &why) : NULL;
		if (state && lab_state_check(state, &why) == 0)
			(void)json_array_append_new(labs, scores_of_lab(state, number, &student));
		else if (path && stat(path, &st) == 0)
			scores_skip(document, path, why.text);
		json_decref(state);
		free(path);
	}
	(void)json_array_append_new(
		students, json_pack("{s:o, s:o, s:o}", "student",
				  json_incref(json_object_get(student.json, "student")), "folder",
				  fields_text(folder), "labs", labs));
	lab_student_release(&student);
	return 0;
}

static bool scores_is_student(const char *folder)
{
	struct stat st;
	char *path = files_join(folder, "student.json");
	const bool is = path && stat(path, &st) == 0 && S_ISREG(st.st_mode);
	free(path);
	return is;
}

static int scores_order_names(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* A student's own folder, or those of students in it, or in a folder of theirs. */
static int scores_take_folder(
	const char *folder, const char *key, int depth, json_t *document, struct error *err)
{
	struct dirent **entries = NULL;
	int code = 0;
	if (scores_is_student(folder))
		return scores_take_student(folder, key, document, err);
	const int count = depth > 0 ? scandir(folder, &entries, NULL, scores_order_names) : 0;
	if (count < 0)
		return error_set_errno(err, errno, "cannot read '%s'", folder);
	for (int i = 0; i < count; i++) {
		struct stat st;
		char *path = entries[i]->d_name[0] == '.' || code
				     ? NULL
				     : files_join(folder, entries[i]->d_name);
		if (path && lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
			code = scores_take_folder(path, key, depth - 1, document, err);
		free(path);
		free(entries[i]);
	}
	free(entries);
	return code;
}

/* --- the class -------------------------------------------------------------------------------- */

/* Every student's entry of a lab: an array of borrowed objects. */
static json_t *scores_entries(const json_t *document, json_int_t number)
{
	const json_t *students = json_object_get(document, "students");
	json_t *entries = json_array();
	for (size_t i = 0; i < json_array_size(students); i++) {
		const json_t *labs = json_object_get(json_array_get(students, i), "labs");
		for (size_t j = 0; j < json_array_size(labs); j++)
			if (json_integer_value(json_object_get(json_array_get(labs, j), "lab")) ==
				number)
				(void)json_array_append(entries, json_array_get(labs, j));
	}
	return entries;
}

static size_t scores_in_state(const json_t *entries, enum lab_stage stage)
{
	size_t count = 0;
	for (size_t i = 0; i < json_array_size(entries); i++)
		count += strcmp(fields_text_of(json_array_get(entries, i), "state"),
				 lab_stage_name(stage)) == 0;
	return count;
}

/* Of a member of those that have it; NAN: none. */
static double scores_mean(const json_t *entries, const char *name, bool geometric)
{
	double sum = 0;
	size_t count = 0;
	for (size_t i = 0; i < json_array_size(entries); i++) {
		const double value = fields_real(json_object_get(json_array_get(entries, i), name));
		if (!isfinite(value) || (geometric && !(value > 0)))
			continue;
		sum += geometric ? log(value) : value;
		count++;
	}
	if (count == 0)
		return NAN;
	return geometric ? exp(sum / (double)count) : sum / (double)count;
}

/* Of those who passed: the others are not at the end. */
static double scores_median_minutes(const json_t *entries)
{
	double minutes[SCORES_STUDENTS_MAX];
	size_t count = 0;
	for (size_t i = 0; i < json_array_size(entries) && count < COUNT(minutes); i++) {
		const json_t *entry = json_array_get(entries, i);
		if (strcmp(fields_text_of(entry, "state"), lab_stage_name(LAB_PASSED)) == 0)
			minutes[count++] = fields_real(json_object_get(entry, "minutes"));
	}
	sort_doubles(minutes, count);
	return count ? statistics_median(minutes, count) : (double)NAN;
}

static void scores_sum_up(json_t *document)
{
	json_t *labs = json_object_get(document, "labs");
	for (json_int_t number = 1; number <= SCORES_LABS_MAX; number++) {
		json_t *entries = scores_entries(document, number);
		if (json_array_size(entries) > 0)
			(void)json_array_append_new(labs,
				json_pack("{s:I, s:O, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o}",
					"lab", number, "title",
					json_object_get(json_array_get(entries, 0), "title"),
					"started", (int)json_array_size(entries), "passed",
					(int)scores_in_state(entries, LAB_PASSED), "given_up",
					(int)scores_in_state(entries, LAB_GIVEN_UP), "minutes",
					fields_number(scores_median_minutes(entries)), "hints",
					fields_number(scores_mean(entries, "hints", false)),
					"checks",
					fields_number(scores_mean(entries, "checks", false)),
					"points",
					fields_number(scores_mean(entries, "points", false)),
					"factor",
					fields_number(scores_mean(entries, "factor", true)),
					"brier",
					fields_number(scores_mean(entries, "brier", false))));
		json_decref(entries);
	}
}

int lab_scores(const char *const *folders, size_t count, const char *key, json_t **document,
	struct error *err)
{
	enum { SCORES_DEPTH = 2 };
	int code = seal_begin(err);
	*document = json_pack("{s:s, s:[], s:[], s:[]}", "schema", LAB_SCORES_SCHEMA, "students",
		"labs", "skipped");
	if (!code && !*document)
		code = error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < count && !code; i++)
		code = scores_take_folder(folders[i], key, SCORES_DEPTH, *document, err);
	if (!code && json_array_size(json_object_get(*document, "students")) == 0)
		code = error_set(err, -ENOENT, "no student's folder (with student.json) in '%s'%s",
			count ? folders[0] : "", count > 1 ? " or the others" : "");
	if (!code)
		scores_sum_up(*document);
	if (code) {
		json_decref(*document);
		*document = NULL;
	}
	return code;
}
