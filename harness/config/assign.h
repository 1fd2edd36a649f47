/* Within harness/config: giving a key a value or an axis, from a file's line, --set or a program, and variables in
 * values. */
#ifndef MLBENCH_CONFIG_ASSIGN_H
#define MLBENCH_CONFIG_ASSIGN_H

#include "harness/base/buffer.h"
#include "harness/base/error.h"
#include "harness/config/config.h"

#include <stdbool.h>

/* What one file has set so far: the line of each value and each axis, 0 if none.  The files that
 * include it are its outer scopes. */
struct assign_scope {
	const struct assign_scope *outer;
	const char *name;
	int value_line[KEY_COUNT];
	int axis_line[KEY_COUNT];
};

/* dotted: "decode.workers" or "sweep.decode.workers"; text: as written, with variables.  scope may
 * be NULL (--set); line belongs to scope->name.  -EINVAL with the reason, without the place. */
int assign(struct config *config, struct assign_scope *scope, int line, const char *dotted,
	const char *text, struct error *err);

/* Sets a parsed value (taken over, TEXT included) and takes the key out of the sweep. */
void assign_pinned(struct config *config, enum key_id key, struct config_value value);

/* The index of key's axis, or config->axis_count. */
size_t assign_find_axis(const struct config *config, enum key_id key);
/* The axis of a key, or NULL. */
const struct config_axis *assign_axis(const struct config *config, enum key_id key);

/* Appends text with ${VAR} and ${VAR:-default} replaced from the environment ("-default" where VAR
 * is unset or empty; it may hold variables itself), and $$ $# $; by the second character.  -EINVAL:
 * an undefined variable or a stray '$'. */
int expand_variables(const char *text, struct buffer *out, struct error *err);

#endif
