/* One file per subcommand, each ending in a const struct command, which is declared here and listed
 * in main.c; tests/recipes/command.patch is a whole example.  Only main exits: a command returns
 * the exit status. */
#ifndef MLBENCH_COMMAND_COMMAND_H
#define MLBENCH_COMMAND_COMMAND_H

#include "harness/base/buffer.h"
#include "harness/base/error.h"
#include "harness/command/options.h"

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct command;

/* What a command is called with. */
struct invocation {
	const struct command *const *commands; /* all of them, NULL-terminated, for help */
	const struct command *command;
	struct options options;
	const atomic_bool *stop;       /* Ctrl-C */
	atomic_bool *document_written; /* with --json: stdout has its document */
};

struct command {
	const char *name;
	const char *summary;     /* for the list of commands: no full stop */
	const char *arguments;   /* "CONFIG", "[TOPIC]" */
	const char *description; /* paragraphs, separated by blank lines */
	const char *example;     /* one line, may be NULL */
	uint64_t options;        /* bits, beside OPTIONS_COMMON */
	size_t arguments_min, arguments_max;
	/* Returns an exit status; err->text is non-empty when there is something to say. */
	int (*run)(const struct invocation *invocation, struct error *err);
};

extern const struct command command_run, command_sweep, command_gen, command_check, command_list,
	command_doctor, command_probe, command_show, command_report, command_top, command_compare,
	command_history, command_what_if, command_diagnose, command_explain, command_export,
	command_help;
extern const struct command command_status_of_run; /* status */

/* The exit status for a negative errno. */
int command_status(int code);

/* Writes text to stdout; 0, or an exit status with err when it cannot be written (a closed pipe is
 * no failure). */
int command_print(const struct buffer *text, struct error *err);

/* Writes value, which it takes, as the document of --json; likewise. */
int command_print_json(const struct invocation *invocation, json_t *value, struct error *err);

bool command_wants_json(const struct invocation *invocation);

/* Stdout's style as --no-color and the terminal have it. */
struct style command_style(const struct invocation *invocation);

#endif
