/* The folders of the shipped configurations and plans, and files in them by their names. */
#include "harness/config/config_place.h"

#include "harness/base/array.h"
#include "harness/base/files.h"
#include "harness/base/program.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Of an installed program, of an unpacked one, of one in build/VARIANT. */
static const char *const beside[] = {"../share/mlbench/configs", "../configs", "../../configs"};

enum { PLACES = 1 + COUNT(beside), DEPTH_MAX = 2 };

static bool config_place_candidate(size_t i, char *out, size_t room, struct stat *st)
{
	if (i == 0)
		(void)snprintf(out, room, "configs");
	else if (!program_beside(beside[i - 1], out, room))
		return false;
	char *const plain = i > 0 ? realpath(out, NULL) : NULL;
	if (plain)
		(void)snprintf(out, room, "%s", plain);
	free(plain);
	return stat(out, st) == 0 && S_ISDIR(st->st_mode);
}

bool config_place(size_t i, char *out, size_t room)
{
	struct stat seen[PLACES];
	size_t count = 0;
	for (size_t place = 0; place < PLACES; place++) {
		struct stat *st = &seen[count];
		bool is_new = config_place_candidate(place, out, room, st);
		for (size_t j = 0; j < count && is_new; j++)
			is_new = seen[j].st_dev != st->st_dev || seen[j].st_ino != st->st_ino;
		if (is_new && count++ == i)
			return true;
	}
	return false;
}

const char *config_place_find(const char *name, char *out, size_t room)
{
	static const char *const endings[] = {"", ".ini"};
	static const char prefix[] = "configs/";
	char folder[PATH_MAX];
	struct stat st;
	/* What is no folder is meant as it is: a file, a pipe. */
	if (name[0] == '/' || name[0] == '.' || (stat(name, &st) == 0 && !S_ISDIR(st.st_mode)))
		return name;
	const char *const rest =
		strncmp(name, prefix, sizeof prefix - 1) == 0 ? name + sizeof prefix - 1 : name;
	for (size_t i = 0; *rest && config_place(i, folder, sizeof folder); i++)
		for (size_t j = 0; j < COUNT(endings); j++) {
			const int length = snprintf(out, room, "%s/%s%s", folder, rest, endings[j]);
			if (length > 0 && (size_t)length < room && stat(out, &st) == 0 &&
				S_ISREG(st.st_mode))
				return out;
		}
	return name;
}

static void config_place_walk(
	const char *folder, size_t root, int depth, config_place_visit *visit, void *context)
{
	struct dirent **entries = NULL;
	const int count = depth < DEPTH_MAX ? scandir(folder, &entries, NULL, alphasort) : 0;
	for (int i = 0; i < count; i++) {
		char *path = entries[i]->d_name[0] == '.' ? NULL
							  : files_join(folder, entries[i]->d_name);
		char *ending = path ? strrchr(path, '.') : NULL;
		if (ending && strcmp(ending, ".ini") == 0) {
			char *name = strndup(path + root, (size_t)(ending - path) - root);
			if (name)
				visit(context, name, path);
			free(name);
		} else if (path && entries[i]->d_type == DT_DIR) {
			config_place_walk(path, root, depth + 1, visit, context);
		}
		free(path);
		free(entries[i]);
	}
	free(entries);
}

void config_place_each(config_place_visit *visit, void *context)
{
	char folder[PATH_MAX];
	for (size_t i = 0; config_place(i, folder, sizeof folder); i++)
		config_place_walk(folder, strlen(folder) + 1, 0, visit, context);
}

static void config_place_add_name(void *context, const char *name, const char *path)
{
	(void)path;
	struct buffer *out = context;
	const size_t length = strlen(name);
	for (const char *at = out->data; at && (at = strstr(at, name)) != NULL; at += length)
		if (at[-1] == ' ' && (at[length] == ' ' || !at[length]))
			return;
	if (!strchr(name, ' '))
		buffer_format(out, " %s", name);
}

void config_place_names(struct buffer *out)
{
	config_place_each(config_place_add_name, out);
}
