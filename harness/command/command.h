/* Each subcommand is a const struct command at the end of what it does (cmd_NAME.c), declared
 * here and listed in main.c; tests/recipes/command.patch is a whole example.  Only main exits:
 * a command returns the exit status. */
#ifndef MLBENCH_COMMAND_COMMAND_H
#define MLBENCH_COMMAND_COMMAND_H

#include "harness/base/buffer.h"
#include "harness/base/error.h"
#include "harness/command/options.h"
#include "harness/config/config.h"
#include "harness/config/config_place.h"

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
	const atomic_bool *stop;        /* Ctrl-C */
	const struct watch_calls *view; /* of --watch (harness/live/watch.h); NULL: there is none */
	const struct party_calls
		*party;       /* of the ranks of a launcher (party.h); NULL: there are none */
	struct party *joined; /* those that the command leads; NULL: each run finds them itself */
	atomic_bool *document_written; /* with --json: stdout has its document */
	/* Asks whether paths answer that a configuration names; NULL: paths_answer (bounded.h). */
	int (*ask_paths)(
		const char *const *paths, size_t count, const atomic_bool *stop, struct error *err);
	/* What the chosen backend cannot do: backend_validate, for those that link no backend. */
	int (*check_backend)(const struct config *config, struct error *err);
};

struct command {
	const char *name;
	const char *summary;     /* for the list of commands: no full stop */
	const char *arguments;   /* "CONFIG", "[TOPIC]" */
	const char *description; /* paragraphs, separated by blank lines */
	const char *example;     /* one line, may be NULL */
	uint64_t options;        /* bits, beside OPTIONS_COMMON */
	size_t arguments_min, arguments_max;
	bool bounded;      /* what touches a path, --path too, it does in processes of their own */
	bool runs_command; /* behind its first argument and -- there is one of the user's */
	/* Returns an exit status; err->text is non-empty when there is something to say. */
	int (*run)(const struct invocation *invocation, struct error *err);
};

#define COMMAND(name) extern const struct command command_##name;
#include "harness/command/commands.def"
#undef COMMAND

/* The exit status for a negative errno: EXIT_STATUS_BAD_INPUT if the input was wrong,
 * EXIT_STATUS_CANNOT if something could not be measured, read or written.  Never
 * EXIT_STATUS_FAILED, which is a verdict. */
int command_status(int code);

/* Writes text, which it releases, to stdout; 0, or an exit status with err when it cannot be
 * written (a closed pipe is no failure). */
int command_print(struct buffer *text, struct error *err);
/* The same to stderr: stdout is that of a command of the user's. */
int command_print_beside(struct buffer *text, struct error *err);

/* Appends value, which it takes, as a document of --json; out->failed without memory. */
void command_add_json(json_t *value, struct buffer *out);

/* Writes it, which stays the caller's, to a file of the folder; atomically. */
int command_save_json(const char *folder, const char *file, const json_t *value, struct error *err);

/* Prints it, likewise. */
int command_print_json(const struct invocation *invocation, json_t *value, struct error *err);

bool command_wants_json(const struct invocation *invocation);

/* Stdout's style as --no-color and the terminal have it. */
struct style command_style(const struct invocation *invocation);

/* NULL: there is none of this name. */
const struct command *command_find(const struct command *const *commands, const char *name);

/* Appends the names of a topic of `mlbench list`, or of the topics themselves (NULL), each with
 * a space before it; those that can be had here. */
void list_names(const char *topic, struct buffer *out);

/* Appends the actions of `mlbench lab`, each with a space before it. */
void lab_action_names(struct buffer *out);
/* Every verdict that `explain` knows, each behind a blank. */
void explain_names(struct buffer *out);

struct node_results;
/* Warns of each file that could not be used; -EINVAL: it was all of them. */
int node_results_warn(const struct node_results *results, struct error *err);

/* --- what names on the command line mean ------------------------------------------------------ */

#define RESULTS_FOLDER "results"

/* The file of a configuration, and what --set says, into config; NAME NULL: config holds
 * something already.  -ETIMEDOUT: a folder that it names does not answer. */
int config_place_read(struct config *config, const struct invocation *invocation, const char *name,
	struct error *err);

bool product_is_folder(const char *path); /* or ends as one */

/* Where a command's text goes, which is released.  out: NULL or "-" is standard output; a
 * folder gets the file `name` in it; a file is replaced at once when all is written (through a
 * link, the one it points to); a device or a pipe is written to.  Returns an exit status. */
int product_write(const char *out, const char *name, struct buffer *text, struct error *err);
/* The same of words that somebody else's names are in: without control characters, in a file as on a terminal. */
int product_write_words(const char *out, const char *name, struct buffer *text, struct error *err);

#endif
