/* Which result is meant. */
#include "harness/command/saved.h"

#include "harness/base/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RESULTS_FOLDER "results"

int saved_open(struct record *record, const char *name, struct error *err)
{
	if (access(name, F_OK) == 0 || strchr(name, '/'))
		return record_open(record, name, err);
	char *path = files_join(RESULTS_FOLDER, name);
	const int code =
		path && access(path, F_OK) == 0
			? record_open(record, path, err)
			: error_set(err, -ENOENT,
				  "no such result: '%s' (nor '" RESULTS_FOLDER "/%s')", name, name);
	free(path);
	return code;
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
