/* Saved results by their names. */
#include "harness/command/saved.h"

#include "harness/base/array.h"
#include "harness/base/buffer.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/command/command.h"
#include "harness/config/section_owner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RUNS_LOOKED_AT = 64 };

/* The newest sweep among the runs of a benchmark that has something measured; -ENOENT: none of them is one. */
static int open_newest_sweep(
	struct record *record, const char *root, size_t *passed_over, struct error *err)
{
	char **folders;
	size_t count;
	int code = record_find_runs(root, &folders, &count, NULL);
	if (code)
		return code;
	code = -ENOENT;
	for (size_t i = 0; i < count && i < RUNS_LOOKED_AT && code; i++) {
		code = record_open(record, folders[i], err);
		if (!code && record->grid.points > 1 && record->entry_count > 0) {
			*passed_over = i;
			break;
		}
		record_release(record);
		code = -ENOENT;
	}
	record_runs_free(folders, count);
	return code;
}

/* What else people take for a result, and what makes a result of it. */
static int saved_explain(const char *name, const char *path, int code, struct error *err)
{
	struct stat st;
	const size_t length = strlen(path);
	char *observed = files_join(path, "observe.json");
	const bool is_observed = (observed && access(observed, F_OK) == 0) ||
				 (length > 12 && strcmp(path + length - 12, "observe.json") == 0);
	free(observed);
	if (is_observed)
		return error_set(err, code,
			"'%s' is what 'mlbench observe' saw of a job, and no result: 'mlbench fit' makes a case of it, "
			"and 'mlbench run' a result of the case",
			name);
	if (section_owners_refuse(path, name, SECTION_WANTS_RESULT, err))
		return code;
	if (length > 4 && strcmp(path + length - 4, ".ini") == 0 && stat(path, &st) == 0 &&
		S_ISREG(st.st_mode))
		return error_set(err, code,
			"'%s' is a configuration, and no result: 'mlbench run %s' makes one", name,
			name);
	return code;
}

int saved_may_open(const struct record *record, struct error *err)
{
	int code = 0;
	for (const struct section_owner *const *owner = section_owners(); *owner && !code; owner++)
		if ((*owner)->may_open && record_is_of_lab(record))
			code = (*owner)->may_open(record->folder, err);
	return code;
}

/* passed_over: newer results than the sweep that was asked for. */
static int saved_find_named(struct record *record, const char *name, enum saved_choice choice,
	size_t *passed_over, struct error *err)
{
	const int there = strchr(name, '/') ? 1 : files_is_there(name, err);
	if (there < 0)
		return there;
	char *path = there ? strdup(name) : files_join(RESULTS_FOLDER, name);
	int code = path ? 0 : error_set(err, -ENOMEM, "out of memory");
	*passed_over = 0;
	const int found = code || there ? 1 : files_is_there(path, err);
	if (!code && found < 0)
		code = found;
	else if (!code && !found)
		code = error_set(err, -ENOENT, "no such result: '%s' (nor '" RESULTS_FOLDER "/%s')",
			name, name);
	else if (!code && (choice != SAVED_SWEEP_FIRST || record_is_run(path) ||
				  open_newest_sweep(record, path, passed_over, err) != 0))
		code = record_open(record, path, err);
	if (code == -ENOENT && path && access(path, F_OK) == 0)
		code = saved_explain(name, path, code, err);
	free(path);
	if (!code && (code = saved_may_open(record, err)) != 0)
		record_release(record);
	return code;
}

int saved_find(struct record *record, const char *name, struct error *err)
{
	size_t passed_over;
	return saved_find_named(record, name, SAVED_NEWEST, &passed_over, err);
}

int saved_open(struct record *record, const char *name, enum saved_choice choice, struct error *err)
{
	size_t passed_over;
	struct buffer text = {0};
	const int code = saved_find_named(record, name, choice, &passed_over, err);
	if (code)
		return code;
	record_describe(record, &text);
	if (passed_over > 0)
		buffer_format(&text, " (the newest sweep; %zu newer result%s passed over)",
			passed_over, passed_over == 1 ? "" : "s");
	log_info("result: %s", text.data ? text.data : record->folder);
	buffer_release(&text);
	return 0;
}

static bool is_file_of_result(const char *name)
{
	static const char *const files[] = {"points.jsonl", "summary.json", "points.csv"};
	const char *slash = strrchr(name, '/');
	const char *file = slash ? slash + 1 : name;
	for (size_t i = 0; i < COUNT(files); i++)
		if (strcmp(file, files[i]) == 0)
			return true;
	return false;
}

bool saved_is_meant(const char *name)
{
	struct stat st;
	if (stat(name, &st) == 0)
		return S_ISDIR(st.st_mode) || is_file_of_result(name);
	char *path = strchr(name, '/') ? NULL : files_join(RESULTS_FOLDER, name);
	const bool there = path && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
	free(path);
	return there;
}
