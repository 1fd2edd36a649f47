/* The folders of the shipped configurations and plans, and files in them by their names. */
#include "harness/config/config_place.h"

#include "harness/base/array.h"
#include "harness/base/program.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Of an installed program, of an unpacked one, of one in build/VARIANT. */
static const char *const beside[] = {"../share/mlbench/configs", "../configs", "../../configs"};

enum { PLACES = 1 + COUNT(beside) };

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
