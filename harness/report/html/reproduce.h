/* The command that measures a saved result again. */
#ifndef MLBENCH_REPORT_HTML_REPRODUCE_H
#define MLBENCH_REPORT_HTML_REPRODUCE_H

#include "harness/base/buffer.h"
#include "harness/config/config.h"

#include <stdbool.h>

/* "mlbench sweep /dev/null --set ...": every key that is not at its default, and the axes, as one command for a POSIX shell that
 * needs no file.  limits: the stages' limits were measured, which a run alone does only when it is told to.  False (and
 * nothing appended) where such a command would not be the same measurement, by the hash of its configuration. */
bool reproduce_command(
	const struct config *config, const char *name, bool limits, struct buffer *out);

#endif
