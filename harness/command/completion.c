/* Each script has the tables as functions that print words, of the few lines that its shell needs to say them: the same in
 * bash and zsh, and likewise in fish. */
#include "harness/command/completion.h"

#include "harness/base/text.h"
#include "harness/command/cmd_list.h"
#include "harness/config/config.h"
#include "harness/record/config_json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 96 };

/* How a shell writes a function of one argument that prints words. */
struct dialect {
	const char *before_name, *after_name; /* of the function */
	const char *before_case, *after_case; /* of one of its cases */
	const char *after_words, *end;
};
static const struct dialect posix = {
	"", "() {\n\tcase $1 in\n", "\t", ") echo \"", "\" ;;\n", "\tesac\n}\n"};
static const struct dialect fish = {"function ", "\n\tswitch \"$argv[1]\"\n", "\t\tcase '",
	"'\n\t\t\tstring split -n ' ' \"", "\"\n", "\tend\nend\n"};

static void completion_add_words(struct buffer *out, const char *list, char separator)
{
	while (*list) {
		const char *const end = strchr(list, separator);
		const size_t length = end ? (size_t)(end - list) : strlen(list);
		buffer_format(out, " %.*s", (int)length, list);
		list += length + (end ? 1 : 0);
	}
}

static void begin_case(struct buffer *out, const struct dialect *dialect, const char *name)
{
	buffer_format(out, "%s%s%s", dialect->before_case, name, dialect->after_case);
}

static void begin_function(struct buffer *out, const struct dialect *dialect, const char *name)
{
	buffer_format(out, "%s%s%s", dialect->before_name, name, dialect->after_name);
}

static void write_values(const struct dialect *dialect, struct buffer *out)
{
	begin_function(out, dialect, "_mlbench_values");
	for (int key = 0; key < KEY_COUNT; key++) {
		const struct key *k = &config_keys[key];
		char name[NAME_BYTES];
		const char *const topic = key == KEY_STEP_MODEL    ? "models"
					  : key == KEY_STEP_DEVICE ? "devices"
								   : NULL;
		if (k->type != KEY_TYPE_BOOLEAN && k->type != KEY_TYPE_CHOICE && !topic)
			continue;
		begin_case(out, dialect, config_key_name((enum key_id)key, name));
		if (topic)
			list_names(topic, out);
		else
			completion_add_words(
				out, k->type == KEY_TYPE_BOOLEAN ? "on|off" : k->choices, '|');
		buffer_text(out, dialect->after_words);
	}
	buffer_text(out, dialect->end);
}

static uint64_t completion_options_of(const struct command *command)
{
	return command->options | OPTIONS_COMMON;
}

static void write_options(
	const struct command *const *commands, const struct dialect *dialect, struct buffer *out)
{
	begin_function(out, dialect, "_mlbench_options");
	for (size_t i = 0; commands[i]; i++) {
		begin_case(out, dialect, commands[i]->name);
		for (int id = 0; id < OPTION_COUNT; id++)
			if (completion_options_of(commands[i]) & OPTION_BIT(id))
				buffer_format(out, " --%s", option_specs[id].name);
		buffer_text(out, dialect->after_words);
	}
	buffer_text(out, dialect->end);
}

/* What an option takes: of its metavar's choices, or of a topic. */
static void write_option_values(const struct dialect *dialect, struct buffer *out)
{
	begin_function(out, dialect, "_mlbench_option_values");
	for (int id = 0; id < OPTION_COUNT; id++) {
		const char *const metavar = option_specs[id].metavar;
		char name[NAME_BYTES];
		if (id != OPTION_FORMAT && !(metavar && strchr(metavar, '|')))
			continue;
		(void)snprintf(name, sizeof name, "--%s", option_specs[id].name);
		begin_case(out, dialect, name);
		if (id == OPTION_FORMAT)
			list_names("formats", out);
		else
			completion_add_words(out, metavar, '|');
		buffer_text(out, dialect->after_words);
	}
	buffer_text(out, dialect->end);
}

static void add_commands(const struct command *const *commands, struct buffer *out)
{
	for (size_t i = 0; commands[i]; i++)
		buffer_format(out, " %s", commands[i]->name);
}

/* The words that can stand where a command's arguments do; files and results are the script's. */
static void write_arguments(
	const struct command *const *commands, const struct dialect *dialect, struct buffer *out)
{
	begin_function(out, dialect, "_mlbench_arguments");
	for (size_t i = 0; commands[i]; i++) {
		const char *const arguments = commands[i]->arguments;
		begin_case(out, dialect, commands[i]->name);
		if (strcmp(commands[i]->name, "list") == 0)
			list_names(NULL, out);
		if (strcmp(commands[i]->name, "help") == 0) {
			buffer_text(out, " keys config");
			add_commands(commands, out);
			list_names("keys", out);
		}
		if (strstr(arguments, "CONFIG"))
			buffer_text(out, " :config");
		if (strstr(arguments, "RESULT"))
			buffer_text(out, " :result");
		buffer_text(out, dialect->after_words);
	}
	buffer_text(out, dialect->end);
	begin_function(out, dialect, "_mlbench_words");
	begin_case(out, dialect, "commands");
	add_commands(commands, out);
	buffer_text(out, dialect->after_words);
	begin_case(out, dialect, "keys");
	list_names("keys", out);
	buffer_text(out, dialect->after_words);
	buffer_text(out, dialect->end);
}

/* Names that are found at the time: shipped configurations and saved results. */
static const char posix_found[] =
	"_mlbench_found() {\n"
	"\tlocal word\n"
	"\tfor word in $(_mlbench_arguments \"$1\" | tr ' ' '\\n'); do\n"
	"\t\tcase $word in\n"
	"\t\t:config) mlbench list configs --json 2>/dev/null | sed -n 's|.*\"name\": *\"[^\"]*/\\([^/\"]*\\)\\.ini\".*|\\1|p' ;;\n"
	"\t\t:result) ls results 2>/dev/null ;;\n"
	"\t\t*) echo \"$word\" ;;\n"
	"\t\tesac\n"
	"\tdone\n"
	"}\n";

static const char bash_script[] =
	"_mlbench() {\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} key=\n"
	"\tCOMPREPLY=()\n"
	"\tif [ \"$cur\" = = ]; then key=$before cur=\n"
	"\telif [ \"$before\" = = ]; then key=${COMP_WORDS[COMP_CWORD-2]}\n"
	"\tfi\n"
	"\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$(_mlbench_words commands) --version --help\" -- \"$cur\"))\n"
	"\telif [ -n \"$key\" ]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$(_mlbench_values \"${key#sweep.}\")\" -- \"${cur##*,}\"))\n"
	"\telif [ \"$before\" = --set ]; then\n"
	"\t\tCOMPREPLY=($(compgen -S = -W \"$(_mlbench_words keys)\" -- \"${cur#sweep.}\"))\n"
	"\t\tcase $cur in sweep.*) COMPREPLY=(\"${COMPREPLY[@]/#/sweep.}\") ;; esac\n"
	"\t\tcompopt -o nospace 2>/dev/null\n"
	"\telif [[ $cur == -* ]]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$(_mlbench_options \"${COMP_WORDS[1]}\")\" -- \"$cur\"))\n"
	"\telif [ -n \"$(_mlbench_option_values \"$before\")\" ]; then\n"
	"\t\tCOMPREPLY=($(compgen -W \"$(_mlbench_option_values \"$before\")\" -- \"$cur\"))\n"
	"\telse\n"
	"\t\tCOMPREPLY=($(compgen -W \"$(_mlbench_found \"${COMP_WORDS[1]}\")\" -- \"$cur\"))\n"
	"\tfi\n"
	"}\n"
	"complete -o default -F _mlbench mlbench\n";

static const char zsh_script[] =
	"_mlbench() {\n"
	"\tlocal cur=${words[CURRENT]} before=${words[CURRENT-1]}\n"
	"\tif (( CURRENT == 2 )); then\n"
	"\t\tcompadd -- ${=\"$(_mlbench_words commands)\"} --version --help\n"
	"\telif [[ $before == --set && $cur == *=* ]]; then\n"
	"\t\tlocal key=${${cur%%=*}#sweep.}\n"
	"\t\tcompset -P '*[=,]'\n"
	"\t\tcompadd -- ${=\"$(_mlbench_values $key)\"}\n"
	"\telif [[ $before == --set ]]; then\n"
	"\t\tcompset -P 'sweep.'\n"
	"\t\tcompadd -S = -- ${=\"$(_mlbench_words keys)\"}\n"
	"\telif [[ $cur == -* ]]; then\n"
	"\t\tcompadd -- ${=\"$(_mlbench_options ${words[2]})\"}\n"
	"\telif [[ -n $(_mlbench_option_values $before) ]]; then\n"
	"\t\tcompadd -- ${=\"$(_mlbench_option_values $before)\"}\n"
	"\telse\n"
	"\t\tcompadd -- ${(f)\"$(_mlbench_found ${words[2]})\"}\n"
	"\t\t_files\n"
	"\tfi\n"
	"}\n"
	"if [ \"$funcstack[1]\" = _mlbench ]; then _mlbench \"$@\"; else compdef _mlbench mlbench; fi\n";

static const char fish_script[] =
	"function _mlbench_found\n"
	"\tfor word in (_mlbench_arguments $argv[1])\n"
	"\t\tswitch $word\n"
	"\t\t\tcase ':config'\n"
	"\t\t\t\tmlbench list configs --json 2>/dev/null | string replace -rf '.*\"name\": *\"[^\"]*/([^/\"]*)\\.ini\".*' '$1'\n"
	"\t\t\tcase ':result'\n"
	"\t\t\t\tls results 2>/dev/null\n"
	"\t\t\tcase '*'\n"
	"\t\t\t\techo $word\n"
	"\t\tend\n"
	"\tend\n"
	"end\n"
	"function _mlbench\n"
	"\tset -l words (commandline -opc)\n"
	"\tset -l cur (commandline -ct)\n"
	"\tif test (count $words) -lt 2\n"
	"\t\t_mlbench_words commands\n"
	"\t\tprintf '%s\\n' --version --help\n"
	"\telse if test \"$words[-1]\" = --set; and string match -q '*=*' -- $cur\n"
	"\t\tset -l key (string replace -r '=.*' '' -- $cur)\n"
	"\t\tfor value in (_mlbench_values (string replace -r '^sweep\\.' '' -- $key))\n"
	"\t\t\techo $key=$value\n"
	"\t\tend\n"
	"\telse if test \"$words[-1]\" = --set\n"
	"\t\tprintf '%s=\\n' (_mlbench_words keys)\n"
	"\telse if string match -q -- '-*' $cur\n"
	"\t\t_mlbench_options $words[2]\n"
	"\telse if test -n \"$(_mlbench_option_values $words[-1])\"\n"
	"\t\t_mlbench_option_values $words[-1]\n"
	"\telse\n"
	"\t\t_mlbench_found $words[2]\n"
	"\t\t__fish_complete_path $cur\n"
	"\tend\n"
	"end\n"
	"complete -c mlbench -f -a '(_mlbench)'\n";

static void write_tables(
	const struct command *const *commands, const struct dialect *dialect, struct buffer *out)
{
	write_values(dialect, out);
	write_options(commands, dialect, out);
	write_option_values(dialect, out);
	write_arguments(commands, dialect, out);
}

static const struct shell {
	const char *name, *head;
	const struct dialect *dialect;
	const char *found, *script;
} shells[] = {
	{"bash",
		"# bash completion of mlbench: source it, or put it into bash-completion's folder.\n",
		&posix, posix_found, bash_script},
	{"zsh", "#compdef mlbench\n", &posix, posix_found, zsh_script},
	{"fish", "# fish completion of mlbench.\n", &fish, "", fish_script},
};

enum { SHELLS = sizeof shells / sizeof shells[0] };

int completion_write(const struct command *const *commands, const char *shell, struct buffer *out,
	struct error *err)
{
	const char *names[SHELLS];
	for (size_t i = 0; i < SHELLS; i++) {
		names[i] = shells[i].name;
		if (strcmp(shell, shells[i].name) != 0)
			continue;
		buffer_text(out, shells[i].head);
		write_tables(commands, shells[i].dialect, out);
		buffer_text(out, shells[i].found);
		buffer_text(out, shells[i].script);
		return 0;
	}
	const char *near = suggest_nearest(shell, names, SHELLS);
	return error_set(err, -EINVAL, "no completion for '%s'%s%s%s; there are bash, zsh and fish",
		shell, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}
