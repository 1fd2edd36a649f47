/* Which result is meant. */
#include "harness/command/saved.h"

#include "harness/base/files.h"
#include "harness/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RESULTS_FOLDER "results"

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

static int saved_open_folder(struct record *record, const char *path, enum saved_choice choice,
	size_t *passed_over, struct error *err)
{
	*passed_over = 0;
	if (choice == SAVED_SWEEP_FIRST && !record_is_run(path) &&
		open_newest_sweep(record, path, passed_over, err) == 0)
		return 0;
	return record_open(record, path, err);
}

static int saved_find_named(struct record *record, const char *name, enum saved_choice choice,
	size_t *passed_over, struct error *err)
{
	if (access(name, F_OK) == 0 || strchr(name, '/'))
		return saved_open_folder(record, name, choice, passed_over, err);
	char *path = files_join(RESULTS_FOLDER, name);
	const int code =
		path && access(path, F_OK) == 0
			? saved_open_folder(record, path, choice, passed_over, err)
			: error_set(err, -ENOENT,
				  "no such result: '%s' (nor '" RESULTS_FOLDER "/%s')", name, name);
	free(path);
	return code;
}

int saved_find(struct record *record, const char *name, enum saved_choice choice, struct error *err)
{
	size_t passed_over;
	return saved_find_named(record, name, choice, &passed_over, err);
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
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
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
