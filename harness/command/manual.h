/* Help and manual pages, from the tables of commands, options and keys. */
#ifndef MLBENCH_COMMAND_MANUAL_H
#define MLBENCH_COMMAND_MANUAL_H

#include "harness/command/command.h"
#include "harness/report/style.h"

/* mlbench(1), in mdoc. */
void manual_page(const struct command *const *commands, struct buffer *out);

/* `mlbench help` and `mlbench help COMMAND`. */
void manual_overview(
	const struct command *const *commands, const struct style *style, struct buffer *out);
void manual_command(const struct command *command, const struct style *style, struct buffer *out);

#endif
