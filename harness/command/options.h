/* The command line: long options only, but for -h, -q and -v.  One table of options drives parsing,
 * help and the man page; a command names those it takes. */
#ifndef MLBENCH_COMMAND_OPTIONS_H
#define MLBENCH_COMMAND_OPTIONS_H

#include "harness/base/error.h"

struct buffer;

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_id {
	OPTION_SET,
	OPTION_DATA,
	OPTION_OUT,
	OPTION_RESUME,
	OPTION_JSON,
	OPTION_VERIFY,
	OPTION_PATH,
	OPTION_QUICK,
	OPTION_FRESH,
	OPTION_NO_CACHE,
	OPTION_MAN,
	OPTION_MAN_KEYS,
	OPTION_COMPLETION,
	OPTION_POINT,
	OPTION_BUDGET,
	OPTION_FOLLOW,
	OPTION_FLEET,
	OPTION_STORAGE,
	OPTION_NETWORK_BANDWIDTH,
	OPTION_NETWORK_LATENCY,
	OPTION_GRADIENT_BYTES,
	OPTION_OVERLAP,
	OPTION_ALL_REDUCE,
	OPTION_FORCE,
	OPTION_FORMAT,
	OPTION_SORT,
	OPTION_FAIL_IF,
	OPTION_REQUIRE,
	OPTION_UNTIL_SURE,
	OPTION_SIGNIFICANCE,
	OPTION_METRIC,
	OPTION_WHERE,
	OPTION_SINCE,
	OPTION_NODE,
	OPTION_FLAME,
	OPTION_WATCH,
	OPTION_LISTEN,
	OPTION_TIER,
	OPTION_CHECK,
	OPTION_FOR,
	OPTION_BASELINE,
	OPTION_JUDGE,
	OPTION_DRY_RUN,
	OPTION_START_AT,
	OPTION_EXPECT,
	OPTION_COMPLAINT,
	OPTION_COMPLAINT_FILE,
	OPTION_NAME,
	OPTION_AS_REPORTED,
	OPTION_TOLERANCE,
	OPTION_MARGIN,
	OPTION_ENV,
	OPTION_DIR,
	OPTION_NO_COLOR,
	OPTION_QUIET,
	OPTION_VERBOSE,
	OPTION_HELP,
	OPTION_COUNT
};

#define OPTION_BIT(id) (UINT64_C(1) << (id))

/* Options that every command takes. */
#define OPTIONS_COMMON                                                                         \
	(OPTION_BIT(OPTION_NO_COLOR) | OPTION_BIT(OPTION_QUIET) | OPTION_BIT(OPTION_VERBOSE) | \
		OPTION_BIT(OPTION_HELP))

struct option_spec {
	const char *name; /* without the dashes */
	char letter;      /* 0: none */
	/* NULL: takes no value; "[=N]": one that may be left out, and stands behind '=' */
	const char *metavar;
	const char *doc; /* lines; one that begins with "@run,sweep " is of these commands alone */
};
extern const struct option_spec option_specs[OPTION_COUNT];

/* Appends what an option means to a command. */
void option_doc(enum option_id id, const char *command, struct buffer *out);

struct options {
	uint64_t given; /* bits of those that were */
	/* Of every option that takes one; the last given holds; NULL: it was not given. */
	const char *values[OPTION_COUNT];
	const char **sets; /* set_count assignments, in order; owned array, borrowed strings */
	char *data_path;   /* one of them, that of --data; owned */
	size_t set_count;
	const char **conditions; /* condition_count of --fail-if, --where; likewise */
	size_t condition_count;
	const char **requirements; /* requirement_count of --require; likewise */
	size_t requirement_count;
	const char **checks; /* check_count of --check; likewise */
	size_t check_count;
	const char **arguments; /* argument_count positional ones; likewise */
	size_t argument_count;
	size_t own_count; /* of them, those in front of -- */
};

/* Parses argv[0 .. argc-1] (after the command's name).  -EINVAL: an unknown option (with the
 * nearest one), one that the command does not take, or a missing value. */
int options_parse(struct options *options, uint64_t allowed, int argc, const char *const *argv,
	struct error *err);
void options_release(struct options *options); /* safe on {0} */

bool options_given(const struct options *options, enum option_id id);

#endif
