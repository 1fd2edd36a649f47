/* Configurations that are at hand: in the working directory, and beside the program. */
#include "harness/base/files.h"
#include "harness/command/cmd_list.h"
#include "harness/command/config_place.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SENTENCE_BYTES = 320, CONFIG_BYTES_MAX = 1 << 20, DEPTH_MAX = 2 };

static bool ends_in_ini(const char *name)
{
	const size_t length = strlen(name);
	return length > 4 && strcmp(name + length - 4, ".ini") == 0;
}

/* The first sentence of the comment at the top says what the file teaches. */
static void first_sentence(const char *path, char out[SENTENCE_BYTES])
{
	char *text = NULL;
	size_t size = 0;
	size_t used = 0;
	out[0] = '\0';
	if (files_read(path, CONFIG_BYTES_MAX, &text, &size, NULL) != 0)
		return;
	for (const char *line = text; *line == '#' || *line == ';';) {
		const char *words = line + strspn(line, "#; \t");
		const size_t length = strcspn(words, "\n");
		if (length == 0)
			break;
		used += (size_t)snprintf(out + used, SENTENCE_BYTES - used, "%s%.*s",
			used ? " " : "", (int)length, words);
		if (used >= SENTENCE_BYTES || words[length] == '\0')
			break;
		line = words + length + 1;
	}
	free(text);
	for (char *at = out; *at; at++)
		if ((*at == '.' || *at == '?') && (at[1] == ' ' || at[1] == '\0')) {
			at[1] = '\0';
			break;
		}
}

static void list_configs_list_folder(struct listing *listing, const char *folder, int depth)
{
	struct dirent **entries = NULL;
	const int count = depth < DEPTH_MAX ? scandir(folder, &entries, NULL, alphasort) : 0;
	for (int i = 0; i < count; i++) {
		char *path = entries[i]->d_name[0] == '.' ? NULL
							  : files_join(folder, entries[i]->d_name);
		char comment[SENTENCE_BYTES];
		if (path && ends_in_ini(path)) {
			first_sentence(path, comment);
			listing_add(listing, path, NULL, comment);
		} else if (path && entries[i]->d_type == DT_DIR) {
			list_configs_list_folder(listing, path, depth + 1);
		}
		free(path);
		free(entries[i]);
	}
	free(entries);
}

void list_configs(struct listing *listing)
{
	char folder[PATH_MAX];
	for (size_t i = 0; config_place(i, folder, sizeof folder); i++)
		list_configs_list_folder(listing, folder, 0);
}
