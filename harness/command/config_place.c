/* From a configuration's name on the command line to its file, and to what it says. */
#include "harness/command/config_place.h"

#include "harness/base/program.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Of an installed program, of an unpacked one, of one in build/VARIANT. */
static const char *const beside[] = {"../share/mlbench/configs", "../configs", "../../configs"};

enum { PLACES = 1 + sizeof beside / sizeof beside[0] };

static bool candidate(size_t i, char *out, size_t room, struct stat *st)
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
		bool is_new = candidate(place, out, room, st);
		for (size_t j = 0; j < count && is_new; j++)
			is_new = seen[j].st_dev != st->st_dev || seen[j].st_ino != st->st_ino;
		if (is_new && count++ == i)
			return true;
	}
	return false;
}

static bool config_place_is_file(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* The file that NAME means on the command line, into out: NAME itself where it is a file, else NAME or NAME.ini (with or
 * without configs/ before it) in one of those folders, else NAME, for the reader to say what is wrong with it. */
static const char *config_place_find(const char *name, char *out, size_t room)
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
		for (size_t j = 0; j < sizeof endings / sizeof endings[0]; j++) {
			const int length = snprintf(out, room, "%s/%s%s", folder, rest, endings[j]);
			if (length > 0 && (size_t)length < room && config_place_is_file(out))
				return out;
		}
	return name;
}

int config_place_read(struct config *config, const struct invocation *invocation, const char *name,
	struct error *err)
{
	int code = 0;
	if (name) {
		char place[PATH_MAX];
		config_init(config);
		code = config_read_file(config, config_place_find(name, place, sizeof place), err);
	}
	for (size_t i = 0; i < invocation->options.set_count && !code; i++)
		code = config_set(config, invocation->options.sets[i], err);
	return code;
}
