/* Configurations that are at hand: in the working directory, and beside the installed program. */
#include "harness/base/files.h"
#include "harness/command/list.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 400, DEPTH_MAX = 2 };

static bool ends_in_ini(const char *name)
{
	const size_t length = strlen(name);
	return length > 4 && strcmp(name + length - 4, ".ini") == 0;
}

/* The first comment line says what the file teaches. */
static void first_comment(const char *path, char out[LINE_BYTES])
{
	char line[LINE_BYTES];
	out[0] = '\0';
	if (files_first_line(path, line, sizeof line) != 0)
		return;
	const char *text = line + strspn(line, "#; \t");
	if (text != line)
		(void)snprintf(out, LINE_BYTES, "%s", text);
}

static void list_folder(struct listing *listing, const char *folder, int depth)
{
	struct dirent **entries = NULL;
	const int count = depth < DEPTH_MAX ? scandir(folder, &entries, NULL, alphasort) : 0;
	for (int i = 0; i < count; i++) {
		char *path = entries[i]->d_name[0] == '.' ? NULL
							  : files_join(folder, entries[i]->d_name);
		char comment[LINE_BYTES];
		if (path && ends_in_ini(path)) {
			first_comment(path, comment);
			listing_add(listing, path, NULL, comment);
		} else if (path && entries[i]->d_type == DT_DIR) {
			list_folder(listing, path, depth + 1);
		}
		free(path);
		free(entries[i]);
	}
	free(entries);
}

void list_configs(struct listing *listing)
{
	char program[PATH_MAX];
	char path[PATH_MAX + LINE_BYTES];
	list_folder(listing, "configs", 0);
	const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
	if (length <= 0)
		return;
	program[length] = '\0';
	for (int up = 0; up < 2; up++) {
		char *slash = strrchr(program, '/');
		if (!slash)
			return;
		*slash = '\0';
	}
	(void)snprintf(path, sizeof path, "%s/share/mlbench/configs", program);
	list_folder(listing, path, 0);
}
