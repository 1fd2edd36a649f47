/* Which folder is meant: a run's own, a file in it, or the newest run of a benchmark. */
#include "harness/base/files.h"
#include "harness/report/record.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool holds_run(const char *folder)
{
	char *points = files_join(folder, "points.jsonl");
	const bool there = points && access(points, F_OK) == 0;
	free(points);
	return there;
}

/* Folders are named by UTC time, so that the last in alphabetical order is the newest. */
static int newest_below(const char *root, char **folder, struct error *err)
{
	DIR *dir = opendir(root);
	if (!dir)
		return error_set_errno(err, errno, "cannot open result '%s'", root);
	char *best = NULL;
	for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		char *path = entry->d_name[0] == '.' ? NULL : files_join(root, entry->d_name);
		if (path && holds_run(path) && (!best || strcmp(path, best) > 0)) {
			free(best);
			best = path;
		} else {
			free(path);
		}
	}
	(void)closedir(dir);
	*folder = best;
	return best ? 0 : error_set(err, -ENOENT, "no run in '%s' (no points.jsonl)", root);
}

static char *parent(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

int record_find_newest(const char *root, char **folder, struct error *err)
{
	struct stat st;
	*folder = NULL;
	if (stat(root, &st) != 0)
		return error_set_errno(err, errno, "cannot open result '%s'", root);
	char *path = S_ISDIR(st.st_mode) ? strdup(root) : parent(root);
	if (!path)
		return error_set(err, -ENOMEM, "out of memory");
	for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
		path[n - 1] = '\0';
	if (holds_run(path)) {
		*folder = path;
		return 0;
	}
	const int code = S_ISDIR(st.st_mode)
				 ? newest_below(path, folder, err)
				 : error_set(err, -ENOENT,
					   "'%s' is no result (no points.jsonl beside it)", root);
	free(path);
	return code;
}
