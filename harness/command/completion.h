/* Scripts that complete the command line in a shell, made from the tables of commands, options, keys and topics. */
#ifndef MLBENCH_COMMAND_COMPLETION_H
#define MLBENCH_COMMAND_COMPLETION_H

#include "harness/command/command.h"

/* -EINVAL: no such shell. */
int completion_write(const struct command *const *commands, const char *shell, struct buffer *out,
	struct error *err);

#endif
