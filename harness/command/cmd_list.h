/* Within harness/command: rows of `mlbench list`. */
#ifndef MLBENCH_COMMAND_CMD_LIST_H
#define MLBENCH_COMMAND_CMD_LIST_H

#include "harness/command/command.h"

struct listing {
	json_t *rows; /* array of {"name", "summary", "unavailable"} */
	bool failed;  /* out of memory on the way */
};

/* why_not: NULL when it can be had here. */
void listing_add(struct listing *listing, const char *name, const char *why_not, const char *text);

/* The .ini files of ./configs and of those beside the program (config_place.h), each with its first comment. */
void list_configs(struct listing *listing);

/* The names of a topic of `mlbench list`, or of the topics themselves (NULL), each with a space before it; those that
 * can be had here. */
void list_names(const char *topic, struct buffer *out);

#endif
