/* Within harness/config: variables in values. */
#ifndef MLBENCH_CONFIG_EXPAND_H
#define MLBENCH_CONFIG_EXPAND_H

#include "harness/base/buffer.h"
#include "harness/base/error.h"

/* Appends text with ${VAR} and ${VAR:-default} replaced from the environment ("-default" where VAR
 * is unset or empty; it may hold variables itself), and $$ $# $; by the second character.  -EINVAL:
 * an undefined variable or a stray '$'. */
int expand_variables(const char *text, struct buffer *out, struct error *err);

#endif
