/* Within harness/config: one value as text and back, by the type of its key; giving it to a key;
 * the swept axes. */
#ifndef MLBENCH_CONFIG_VALUE_H
#define MLBENCH_CONFIG_VALUE_H

#include "harness/base/buffer.h"
#include "harness/base/error.h"
#include "harness/config/config.h"

#include <stdbool.h>
#include <stddef.h>

struct section_owner;

/* --- one value -------------------------------------------------------------------------------- */

enum {
	VALUE_TEXT_BYTES_MAX = 4096, /* of a TEXT value: a path's */
	VALUE_BLANKS_MAX = 64,       /* in a row, in a TEXT value */
	VALUE_LIST_MAX = 4096,       /* values of one axis */
};

/* Cuts the blanks off the end and returns the first letter that is none. */
char *text_trim(char *text);

/* Reads one literal value (no variables).  0; -EINVAL, with what is wrong and an example; -ENOMEM.
 * value->text is fresh for TEXT, without blanks at its ends, else NULL. */
int value_parse(enum key_id key, const char *text, struct config_value *value, struct error *err);

/* Reads "1,2,4", "1-8+1", "1-64*2" and mixtures of them into *values (owned by the caller, release
 * each and free).  At least one value, none twice. */
int value_parse_list(enum key_id key, const char *text, struct config_value **values, size_t *count,
	struct error *err);

/* Whether text is a list or a range that value_parse cannot take, to give better advice. */
bool value_looks_like_list(enum key_id key, const char *text);

int value_copy(struct config_value *to, const struct config_value *from, struct error *err);
bool value_equal(enum key_id key, const struct config_value *a, const struct config_value *b);
void value_release(struct config_value *value);
void value_list_release(struct config_value *values, size_t count);

/* Appends the text that value_parse reads back exactly; escaped adds what a file and --set need
 * for '$', '#' and ';' in a TEXT value. */
void value_write(
	enum key_id key, const struct config_value *value, bool escaped, struct buffer *out);

/* The key's limits as text in its own unit ("64KiB", "50%"). */
void value_write_limit(enum key_id key, double limit, struct buffer *out);

/* "8", "64KiB", "1.5ms": what a right value of this key looks like. */
const char *value_example(enum key_id key);

/* --- setting keys ----------------------------------------------------------------------------- */

/* Within harness/config: giving a key a value or an axis, from a file's line, --set or a program, and variables in
 * values. */

/* What one file has set so far: the line of each value and each axis, 0 if none.  The files that
 * include it are its outer scopes. */
struct assign_scope {
	const struct assign_scope *outer;
	const char *name;
	int value_line[KEY_COUNT];
	int axis_line[KEY_COUNT];
	const struct section_owner
		*owner; /* whose first section has begun, above others; NULL: nobody's */
	bool foreign;   /* a case or a lab, which others may have written: expands no variables */
};

/* dotted: "decode.workers" or "sweep.decode.workers"; text: as written, with variables.  scope may
 * be NULL (--set); line belongs to scope->name.  -EINVAL with the reason, without the place.  Of a
 * foreign scope, a path may begin with CONFIG_DATA_ROOT, and no other variable is expanded. */
#define CONFIG_DATA_ROOT "${MLBENCH_DATA:-data}"
int assign(struct config *config, struct assign_scope *scope, int line, const char *dotted,
	const char *text, struct error *err);

/* The index of key's axis, or config->axis_count. */
size_t assign_find_axis(const struct config *config, enum key_id key);

/* Appends text with ${VAR} and ${VAR:-default} replaced from the environment ("-default" where VAR
 * is unset or empty; it may hold variables itself), and $$ $# $; by the second character.  -EINVAL:
 * an undefined variable or a stray '$'. */
int expand_variables(const char *text, struct buffer *out, struct error *err);

/* --- wrong names ------------------------------------------------------------------------------ */

bool keys_have_section(const char *name);

/* Both return -EINVAL, with "unknown … 'x'; did you mean 'y'?" in err. */
int keys_refuse_section(const char *name, struct error *err);
int keys_refuse_key(const char *dotted, struct error *err);

/* --- the swept axes: sweep.zip as links between them, and sweep.exclude ----------------------- */

/* Sets each axis's zip_with from sweep.zip, as far as it is right already: a file may name the keys
 * before it sweeps them.  config_grid_open refuses what is left. */
void grid_link_zips(struct config *config);

/* Refuses names in a zip text that are no keys; whether they are swept is seen later. */
int grid_check_zip(const char *text, struct error *err);

/* Refuses a text of sweep.exclude that cannot be read. */
int grid_check_exclude(const struct config *config, const char *text, struct error *err);

/* Takes a key that is no longer swept out of sweep.zip. */
void grid_unzip_key(struct config *config, enum key_id key);

/* Sets the swept keys of config to the values of one point; config's own axes stay as they are. */
int grid_apply_point(const struct config *from, const struct config_grid *grid, size_t point,
	struct config *config, struct error *err);

#endif
