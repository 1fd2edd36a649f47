/* Where the shipped configurations lie: in ./configs, and beside the program, installed, unpacked or built. */
#ifndef MLBENCH_COMMAND_CONFIG_PLACE_H
#define MLBENCH_COMMAND_CONFIG_PLACE_H

#include "harness/command/command.h"
#include "harness/config/config.h"

#include <stdbool.h>
#include <stddef.h>

/* The i-th folder that is there, each one once, into out; false: no more. */
bool config_place(size_t i, char *out, size_t room);

/* That file, and what --set says, into config; NAME NULL: config holds something already. */
int config_place_read(struct config *config, const struct invocation *invocation, const char *name,
	struct error *err);

#endif
