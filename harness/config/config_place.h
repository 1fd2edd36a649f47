/* Where configurations and plans lie that the command line, and plans, name. */
#ifndef MLBENCH_CONFIG_CONFIG_PLACE_H
#define MLBENCH_CONFIG_CONFIG_PLACE_H

#include "harness/base/buffer.h"

#include <stdbool.h>
#include <stddef.h>

/* Where the shipped configurations are, in ./configs and beside the program, installed, unpacked or
 * built: the i-th folder that is there, each one once, into out; false: no more. */
bool config_place(size_t i, char *out, size_t room);

/* The file that NAME means on the command line, into out: NAME itself where it is a file, else NAME or NAME.ini (with or
 * without configs/ before it) in one of those folders, else NAME, for the reader to say what is wrong with it. */
const char *config_place_find(const char *name, char *out, size_t room);

/* Calls visit for each .ini file in those folders, folder by folder, with the NAME that commands take ("labs/01_story"). */
typedef void config_place_visit(void *context, const char *name, const char *path);
void config_place_each(config_place_visit *visit, void *context);

/* Appends the names to out, each once and after a blank; a name with a blank is left out. */
void config_place_names(struct buffer *out);

#endif
