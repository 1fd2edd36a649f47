/* Which folder is meant: a run's own, a file in it, or the newest run of a benchmark. */
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/record/record.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

bool record_is_run(const char *folder)
{
	char *points = files_join(folder, "points.jsonl");
	const bool there = points && access(points, F_OK) == 0;
	free(points);
	return there;
}

static int order_newest(const void *left, const void *right)
{
	return -strcmp(*(char *const *)left, *(char *const *)right);
}

void record_runs_free(char **folders, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(folders[i]);
	free(folders);
}

/* Takes path.  0 or -ENOMEM. */
static int add_run(char ***folders, size_t *count, char *path)
{
	char **more = path ? realloc(*folders, (*count + 1) * sizeof **folders) : NULL;
	if (!more) {
		free(path);
		return -ENOMEM;
	}
	*folders = more;
	more[(*count)++] = path;
	return 0;
}

/* Folders are named by UTC time, so that the last in alphabetical order is the newest. */
int record_find_runs(const char *root, char ***folders, size_t *count, struct error *err)
{
	DIR *dir = opendir(root);
	int code = 0;
	*folders = NULL;
	*count = 0;
	if (!dir)
		return error_set_errno(err, errno, "cannot open result '%s'", root);
	for (const struct dirent *entry = readdir(dir); entry && !code; entry = readdir(dir)) {
		if (entry->d_name[0] == '.')
			continue;
		char *path = files_join(root, entry->d_name);
		if (path && !record_is_run(path))
			free(path);
		else
			code = add_run(folders, count, path);
	}
	(void)closedir(dir);
	if (*count > 0)
		qsort(*folders, *count, sizeof **folders, order_newest);
	if (!code && *count > 0)
		return 0;
	record_runs_free(*folders, *count);
	*folders = NULL;
	*count = 0;
	return code ? error_set(err, code, "out of memory")
		    : error_set(err, -ENOENT, "no run in '%s' (no points.jsonl)", root);
}

static int newest_below(const char *root, char **folder, struct error *err)
{
	char **folders = NULL;
	size_t count;
	const int code = record_find_runs(root, &folders, &count, err);
	if (code || !folders)
		return code;
	*folder = folders[0];
	folders[0] = NULL;
	record_runs_free(folders, count);
	return 0;
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
	if (record_is_run(path)) {
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

void record_describe(const struct record *record, struct buffer *out)
{
	char when[CLOCK_UTC_BYTES];
	const size_t points = record->grid.points;
	const size_t repeats = record_repeats(record);
	const bool diagnosed =
		record->command && strncmp(record->command, "mlbench diagnose", 16) == 0;
	clock_format_utc(record->started, when);
	buffer_format(out, "%s: %s, %zu point%s x %zu repeat%s, started %s", record->folder,
		points > 1  ? "sweep"
		: diagnosed ? "diagnosis"
			    : "run",
		points, points == 1 ? "" : "s", repeats, repeats == 1 ? "" : "s", when);
	const char *node = fact_node_name(&record->environment);
	if (node)
		buffer_format(out, " on %s", node);
}
