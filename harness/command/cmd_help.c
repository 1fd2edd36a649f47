/* mlbench help: commands, keys, and terms of the glossary; mlbench(1), and the scripts that
 * complete the command line in a shell.  All of it is made from the tables of commands,
 * options, keys and topics. */
#include "harness/accept/plan.h"
#include "harness/base/array.h"
#include "harness/base/text.h"
#include "harness/command/command.h"
#include "harness/command/glossary.h"
#include "harness/config/config.h"
#include "harness/config/document.h"
#include "harness/record/config_json.h"
#include "harness/report/accept_report.h"
#include "harness/report/layout.h"
#include "harness/report/table.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
	DATE_BYTES = 32,
	INDENT_COLUMNS = 2,
	OPTION_TEXT_BYTES = 64,
	TOPICS_MAX = 1024,
	WORDS_MAX = 4
};

/* --- commands on a terminal ------------------------------------------------------------------- */

struct tagged {
	const char *tag, *text;
};

static const struct tagged exits[] = {
	{"0", "Done."},
	{"1", "A check, a point, a prediction or a gate failed, or results could not be written."},
	{"2", "Wrong input: command line, configuration or data set."},
	{"3", "Not measurable (a missing device or engine, or never steady), or inconclusive."},
	{"130", "Interrupted by SIGINT, SIGTERM or SIGHUP; what was measured is kept."},
};

static const struct tagged files[] = {
	{"results/NAME/TIME/points.jsonl",
		"A header line, then one line per repetition, written to disk as it ends."},
	{"results/NAME/TIME/summary.json",
		"Statistics, verdicts, limits, environment and configuration; its schema is "
		"docs/summary.schema.json."},
	{"results/NAME/TIME/points.csv", "One row per point."},
	{"results/NAME/TIME/diagnoses.json",
		"What was diagnosed, so that it is not computed again; can be deleted at any time."},
};

static uint64_t options_of(const struct command *command)
{
	return command->options | OPTIONS_COMMON;
}

/* Paragraphs are separated by blank lines: cuts the first off `text` and returns the rest. */
static const char *cut_paragraph(const char *text, struct buffer *paragraph)
{
	const char *end = strstr(text, "\n\n");
	const size_t length = end ? (size_t)(end - text) : strlen(text);
	*paragraph = (struct buffer){0};
	buffer_text(paragraph, "");
	buffer_add(paragraph, text, length);
	return text + length + (end ? 2 : 0);
}

/* "--set KEY=VALUE", "-q, --quiet" */
static const char *option_text(const struct option_spec *spec, char out[OPTION_TEXT_BYTES])
{
	char letter[8] = "";
	if (spec->letter)
		(void)snprintf(letter, sizeof letter, "-%c, ", spec->letter);
	(void)snprintf(out, OPTION_TEXT_BYTES, "%s--%s%s%s", letter, spec->name,
		spec->metavar && spec->metavar[0] != '[' ? " " : "",
		spec->metavar ? spec->metavar : "");
	return out;
}

static const struct table_column name_and_text[] = {
	{.head = "", .left = true}, {.head = "", .left = true, .wraps = true}};

static void render_options(
	uint64_t options, const char *command, const struct style *style, struct buffer *out)
{
	struct table table;
	table_open(&table, name_and_text, 2);
	for (int id = 0; id < OPTION_COUNT; id++) {
		char text[OPTION_TEXT_BYTES];
		if (!(options & OPTION_BIT(id)))
			continue;
		table_add(&table, INK_ACCENT, "%s", option_text(&option_specs[id], text));
		struct buffer doc = {0};
		option_doc((enum option_id)id, command, &doc);
		table_add(&table, INK_PLAIN, "%s", doc.data ? doc.data : "");
		buffer_release(&doc);
	}
	table_render(&table, style, INDENT_COLUMNS, false, out);
	table_close(&table);
}

static void manual_overview(
	const struct command *const *commands, const struct style *style, struct buffer *out)
{
	static const char *const first[][2] = {
		{"mlbench doctor", "what disturbs measuring on this node"},
		{"mlbench list configs", "what you can run"},
		{"mlbench check imagenet_like", "what that runs, and how long it takes"},
		{"mlbench sweep imagenet_like", "run it"},
		{"mlbench diagnose imagenet_like", "its bottleneck, and what to do about it"},
		{"mlbench help COMMAND | KEY | TERM", "explain one; also 'keys' and 'terms'"},
	};
	struct table table;
	style_wrap(style,
		"mlbench measures training input pipelines: it reads, decodes, augments and prefetches real files "
		"for a training step, sweeps any setting, accounts for every thread's time, and names the "
		"bottleneck.",
		0, 0, out);
	layout_heading(style, "commands", out);
	table_open(&table, name_and_text, 2);
	for (size_t i = 0; commands[i]; i++) {
		table_add(&table, INK_ACCENT, "%s", commands[i]->name);
		table_add(&table, INK_PLAIN, "%s", commands[i]->summary);
	}
	table_render(&table, style, INDENT_COLUMNS, false, out);
	table_close(&table);
	layout_heading(style, "start with", out);
	table_open(&table, name_and_text, 2);
	for (size_t i = 0; i < COUNT(first); i++) {
		table_add(&table, INK_PLAIN, "%s", first[i][0]);
		table_add(&table, INK_PLAIN, "%s", first[i][1]);
	}
	table_render(&table, style, INDENT_COLUMNS, false, out);
	table_close(&table);
	layout_heading(style, "options of every command", out);
	render_options(OPTIONS_COMMON, "", style, out);
}

static void manual_command(
	const struct command *command, const struct style *style, struct buffer *out)
{
	buffer_format(out, "%susage%s: mlbench %s [OPTIONS]%s%s\n\n", style_ink(style, INK_BOLD),
		style_end(style), command->name, command->arguments[0] ? " " : "",
		command->arguments);
	for (const char *at = command->description; *at;) {
		struct buffer paragraph;
		at = cut_paragraph(at, &paragraph);
		style_wrap(style, paragraph.failed ? "" : paragraph.data, 0, 0, out);
		buffer_release(&paragraph);
		buffer_text(out, *at ? "\n" : "");
	}
	layout_heading(style, "options", out);
	render_options(options_of(command), command->name, style, out);
	if (command->example) {
		layout_heading(style, "example", out);
		layout_command(style, command->example, out);
	}
}

/* --- mlbench(1), in mdoc ---------------------------------------------------------------------- */

/* A text line: a leading dot or quote would be a macro, a backslash an escape. */
static void mdoc_text(const char *text, struct buffer *out)
{
	if (*text == '.' || *text == '\'')
		buffer_text(out, "\\&");
	for (; *text; text++) {
		if (*text == '\\')
			buffer_text(out, "\\e");
		else if (*text == '-')
			buffer_text(out, "\\-");
		else
			buffer_add(out, text, 1);
		/* A sentence ends its line, so that the formatter spaces it. */
		if (*text == '.' && text[1] == ' ' && isupper((unsigned char)text[2])) {
			buffer_text(out, "\n");
			text++;
		}
	}
	buffer_text(out, "\n");
}

static void mdoc_paragraphs(const char *text, struct buffer *out)
{
	while (*text) {
		struct buffer paragraph;
		text = cut_paragraph(text, &paragraph);
		mdoc_text(paragraph.failed ? "" : paragraph.data, out);
		buffer_release(&paragraph);
		buffer_text(out, *text ? ".Pp\n" : "");
	}
}

static void mdoc_options(uint64_t options, const char *command, struct buffer *out)
{
	buffer_text(out, ".Bl -tag -width Ds\n");
	for (int id = 0; id < OPTION_COUNT; id++) {
		const struct option_spec *spec = &option_specs[id];
		if (!(options & OPTION_BIT(id)))
			continue;
		buffer_text(out, ".It ");
		if (spec->letter)
			buffer_format(out, "Fl %c , ", spec->letter);
		buffer_format(out, "Fl Fl %s", spec->name);
		if (spec->metavar)
			buffer_format(out, spec->metavar[0] == '[' ? " Ns Ar %s" : " Ar %s",
				spec->metavar);
		buffer_text(out, "\n");
		struct buffer doc = {0};
		option_doc((enum option_id)id, command, &doc);
		mdoc_text(doc.data ? doc.data : "", out);
		buffer_release(&doc);
	}
	buffer_text(out, ".El\n");
}

static void mdoc_command(const struct command *command, struct buffer *out)
{
	buffer_format(out, ".Ss mlbench %s\n", command->name);
	buffer_format(out, ".Nm\n.Cm %s\n.Op Ar OPTIONS\n", command->name);
	if (command->arguments[0])
		buffer_format(out, ".Ar %s\n", command->arguments);
	buffer_text(out, ".Pp\n");
	mdoc_paragraphs(command->description, out);
	if (command->options)
		mdoc_options(command->options, command->name, out);
	if (command->example)
		buffer_format(out, ".Pp\nExample:\n.Dl %s\n", command->example);
}

static void mdoc_tags(const char *head, const char *macro, const struct tagged *list, size_t count,
	struct buffer *out)
{
	buffer_format(out, ".Sh %s\n.Bl -tag -width Ds\n", head);
	for (size_t i = 0; i < count; i++) {
		buffer_format(out, ".It %s%s\n", macro, list[i].tag);
		mdoc_text(list[i].text, out);
	}
	buffer_text(out, ".El\n");
}

static void manual_page(const struct command *const *commands, struct buffer *out)
{
	buffer_text(out,
		".Dd $Mdocdate$\n.Dt MLBENCH 1\n.Os mlbench " MLBENCH_VERSION "\n"
		".Sh NAME\n.Nm mlbench\n.Nd measure training input pipelines and name their bottleneck\n"
		".Sh SYNOPSIS\n");
	for (size_t i = 0; commands[i]; i++)
		buffer_format(out, ".Nm\n.Cm %s\n.Op Ar OPTIONS\n%s%s%s", commands[i]->name,
			commands[i]->arguments[0] ? ".Ar " : "", commands[i]->arguments,
			commands[i]->arguments[0] ? "\n" : "");
	buffer_text(out, ".Sh DESCRIPTION\n");
	mdoc_text(
		"mlbench measures training input pipelines: it reads, decodes, augments and prefetches real files "
		"for a training step as a configuration describes, sweeps any setting, accounts for every thread's "
		"time, and names the bottleneck. Configurations are described in mlbench.ini(5).",
		out);
	buffer_text(out, ".Pp\nEvery command takes these options:\n");
	mdoc_options(OPTIONS_COMMON, "", out);
	buffer_text(out, ".Sh COMMANDS\n");
	for (size_t i = 0; commands[i]; i++)
		mdoc_command(commands[i], out);
	buffer_text(out, ".Sh ENVIRONMENT\n.Bl -tag -width Ds\n"
			 ".It Ev NO_COLOR\nNo colour if it is set and not empty.\n"
			 ".It Ev COLUMNS\nWidth of the output, instead of the terminal's.\n.El\n");
	mdoc_tags("FILES", "Pa ", files, COUNT(files), out);
	mdoc_tags("EXIT STATUS", "", exits, COUNT(exits), out);
	buffer_text(out, ".Sh SEE ALSO\n.Xr fio 1 ,\n.Xr mlbench.ini 5\n");
}

/* --- completion ------------------------------------------------------------------------------- */

/* Each script has the tables as functions that print words, of the few lines that its shell needs to say them: the same in
 * bash and zsh, and likewise in fish. */

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
		char name[CONFIG_NAME_BYTES];
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

static void write_options(
	const struct command *const *commands, const struct dialect *dialect, struct buffer *out)
{
	begin_function(out, dialect, "_mlbench_options");
	for (size_t i = 0; commands[i]; i++) {
		begin_case(out, dialect, commands[i]->name);
		for (int id = 0; id < OPTION_COUNT; id++)
			if (options_of(commands[i]) & OPTION_BIT(id))
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
		char name[CONFIG_NAME_BYTES];
		if (id != OPTION_FORMAT && !(metavar && strchr(metavar, '|')))
			continue;
		(void)snprintf(name, sizeof name, "--%s", option_specs[id].name);
		begin_case(out, dialect, name);
		if (id == OPTION_FORMAT) {
			list_names("formats", out);
			for (const struct accept_format *at = accept_formats; at->name; at++)
				buffer_format(out, " %s", at->name);
		} else
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
		if (strcmp(commands[i]->name, "lab") == 0)
			lab_action_names(out);
		if (strcmp(commands[i]->name, "help") == 0) {
			buffer_text(out, " keys terms config plan");
			add_commands(commands, out);
			list_names("keys", out);
			glossary_words(out);
		}
		if (strcmp(commands[i]->name, "explain") == 0)
			explain_names(out);
		if (strstr(arguments, "PLAN"))
			buffer_text(out, " :plan");
		if (strstr(arguments, "CONFIG"))
			buffer_text(out, " :config");
		if (strstr(arguments, "RESULT") || strstr(arguments, "A B") ||
			strstr(arguments, "GOOD") || strstr(arguments, "SOURCE"))
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

/* Names that are found at the time: shipped configurations and plans, and saved results. */
static const char posix_found[] =
	"_mlbench_found() {\n"
	"\tlocal word\n"
	"\tfor word in $(_mlbench_arguments \"$1\" | tr ' ' '\\n'); do\n"
	"\t\tcase $word in\n"
	"\t\t:config) mlbench list configs --json 2>/dev/null | sed -n '/\"accept[/]/d; s|.*\"name\": *\"\\([^\"]*\\)\".*|\\1|p' ;;\n"
	"\t\t:plan) mlbench list configs --json 2>/dev/null | sed -n 's|.*\"name\": *\"\\(accept/[^\"]*\\)\".*|\\1|p' ;;\n"
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
	"\t\t\t\tmlbench list configs --json 2>/dev/null | string replace -rf '.*\"name\": *\"((?!accept/)[^\"]*)\".*' '$1'\n"
	"\t\t\tcase ':plan'\n"
	"\t\t\t\tmlbench list configs --json 2>/dev/null | string replace -rf '.*\"name\": *\"(accept/[^\"]*)\".*' '$1'\n"
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

enum { SHELLS = COUNT(shells) };

static int completion_write(const struct command *const *commands, const char *shell,
	struct buffer *out, struct error *err)
{
	const char *names[SHELLS];
	for (size_t i = 0; i < SHELLS; i++) {
		names[i] = shells[i].name;
		if (strcmp(shell, shells[i].name) != 0)
			continue;
		buffer_text(out, shells[i].head);
		write_values(shells[i].dialect, out);
		write_options(commands, shells[i].dialect, out);
		write_option_values(shells[i].dialect, out);
		write_arguments(commands, shells[i].dialect, out);
		buffer_text(out, shells[i].found);
		buffer_text(out, shells[i].script);
		return 0;
	}
	const char *near = suggest_nearest(shell, names, SHELLS);
	return error_set(err, -EINVAL, "no completion for '%s'%s%s%s; there are bash, zsh and fish",
		shell, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

/* --- keys and terms --------------------------------------------------------------------------- */

static const char config_help[] =
	"A configuration is an INI file that describes one benchmark completely:\n"
	"\n"
	"  [dataset]\n"
	"  path = data/photos         ; units: 64k, 64KiB, 1.5ms, 90%, 2GiB/s; 10Gbit/s is 1.25GB/s\n"
	"\n"
	"  [decode]\n"
	"  workers = 2\n"
	"\n"
	"  [sweep]                    ; any sweepable key, with its section in front\n"
	"  decode.workers = 1-8*2     ; lists 1,2,4; ranges 1-8+1 and 1-64*2\n"
	"  zip = decode.workers, read.threads   ; vary together, not in a product\n"
	"  exclude = decode.workers=1 batch.size=256; batch.size=512\n"
	"\n"
	"include = base.ini           reads another file first; later lines override it\n"
	"${VAR}, ${VAR:-default}      are replaced from the environment; it is an error\n"
	"                             when VAR is not set and has no default\n"
	"--set section.key=value      overrides a key, and takes it out of the sweep\n"
	"--set sweep.section.key=1,2  sweeps the key\n"
	"\n"
	"A configuration can come from a pipe: 'generate | mlbench run /dev/stdin', or\n"
	"'mlbench run <(generate)'.\n"
	"\n"
	"'mlbench help keys' prints every key, 'mlbench help KEY' explains one, and\n"
	"'mlbench check FILE' prints what a file would run.\n";

static const char plan_help[] =
	"A plan of 'mlbench accept' is an INI file whose sections are checks:\n"
	"\n"
	"  [slow core]                          ; any name\n"
	"  kind = ceiling                       ; what it does: expect, ceiling, pipeline, ...\n"
	"  tier = quick                         ; from which tier on it runs\n"
	"  decode.core = within 15 % of median  ; FAIL where this does not hold\n"
	"  warn.decode.core = spread <= 5 %     ; WARN\n"
	"\n"
	"  >= 2,000 samples/s                   ; > <= < =; the unit is checked\n"
	"  >= 90 % of peak                      ; of baseline; of median or best of the places\n"
	"  within 5 % of baseline               ; on the bad side; 'either side of'\n"
	"  within baseline                      ; the baseline's own limits\n"
	"  spread <= 3 %, similarity >= 0.95    ; of the repetitions; to the baseline's\n"
	"  equal, known                         ; everywhere the same; any value, but one\n"
	"  AMD*, is one of a*, b*, is not a*    ; texts\n"
	"  has noatime, nconnect=16             ; words of a list\n"
	"  ... and ...                          ; all of them\n"
	"  ... or missing                       ; skipped on a node that lacks it\n"
	"\n"
	"'include = node.ini' reads another plan first; later lines override it, 'FIGURE =\n"
	"none' takes a criterion away, and 'tier = never' a check.\n"
	"\n";

/* mdoc's date. */
static void append_key_manual(struct buffer *out)
{
	char date[DATE_BYTES];
	const time_t now = time(NULL);
	struct tm tm;
	if (!gmtime_r(&now, &tm) || strftime(date, sizeof date, "%B %e, %Y", &tm) == 0)
		date[0] = '\0';
	document_manual(out, date);
}

static bool is_key_or_section(const char *topic)
{
	for (size_t i = 0; i < config_section_count; i++)
		if (strcmp(config_sections[i].name, topic) == 0)
			return true;
	return config_find_key(topic) != KEY_COUNT;
}

/* "num_workers -> decode.workers" where it was asked for by another name. */
static void append_heading(
	const char *asked, const char *term, const struct style *style, struct buffer *out)
{
	const bool other = !glossary_same_name(asked, term);
	buffer_format(out, "%s%s%s%s%s\n", style_ink(style, INK_ACCENT), other ? asked : "",
		other ? style_glyph(style, " → ", " -> ") : "", term, style_end(style));
}

/* Of a key its own help first, then what the glossary adds; of a section the other way round. */
static int help_on_term(const struct glossary_entry *entry, const char *asked,
	const struct style *style, struct buffer *out, struct error *err)
{
	char term[GLOSSARY_NAME_BYTES];
	int code = 0;
	(void)glossary_name(entry, 0, term);
	const bool key = config_find_key(term) != KEY_COUNT;
	if (!key || !glossary_same_name(asked, term))
		append_heading(asked, term, style, out);
	if (key) {
		code = document_key(out, term, (size_t)style->width, err);
		buffer_text(out, "\n");
	}
	glossary_render(entry, style, INDENT_COLUMNS, out);
	if (!key && is_key_or_section(term)) {
		buffer_text(out, "\n");
		code = document_key(out, term, (size_t)style->width, err);
	}
	return code;
}

/* All of them, each with its first sentence. */
static void help_on_terms(const struct style *style, struct buffer *out)
{
	struct table table;
	struct glossary_entry entry;
	table_open(&table, name_and_text, 2);
	for (const char *at = NULL; glossary_next(&at, &entry);) {
		const struct runbook_text first = runbook_meaning(&entry.meaning);
		struct buffer text = {0};
		for (size_t i = 0; i < first.size; i++)
			if (first.text[i] != '`')
				buffer_add(&text, first.text[i] == '\n' ? " " : &first.text[i], 1);
		table_add(&table, INK_BOLD, "%.*s", (int)entry.term.size, entry.term.text);
		table_add(&table, INK_PLAIN, "%s", text.data ? text.data : "");
		out->failed = out->failed || text.failed;
		buffer_release(&text);
	}
	buffer_format(out, "%sterms that mlbench prints; 'mlbench help TERM' says more%s\n",
		style_ink(style, INK_ACCENT), style_end(style));
	table_render(&table, style, INDENT_COLUMNS, false, out);
	table_close(&table);
}

/* What may be asked for besides keys, which have a search of their own. */
struct topics {
	char names[TOPICS_MAX][GLOSSARY_NAME_BYTES];
	size_t count;
};

static void topics_add(struct topics *topics, const char *name)
{
	if (topics->count < TOPICS_MAX)
		(void)snprintf(topics->names[topics->count++], GLOSSARY_NAME_BYTES, "%s", name);
}

static void topics_collect(const struct command *const *commands, struct topics *topics)
{
	char name[GLOSSARY_NAME_BYTES];
	struct glossary_entry entry;
	topics->count = 0;
	for (size_t i = 0; commands[i]; i++)
		topics_add(topics, commands[i]->name);
	for (size_t i = 0; i < config_section_count; i++)
		topics_add(topics, config_sections[i].name);
	for (const char *at = NULL; glossary_next(&at, &entry);)
		for (size_t i = 0; glossary_name(&entry, i, name); i++)
			topics_add(topics, name);
}

/* Nothing has this name.  With a dot it was meant as a key, and the table of keys knows the nearest. */
static int refuse_topic(const struct command *const *commands, const char *topic, struct error *err)
{
	static struct topics topics;
	const char *names[TOPICS_MAX];
	if (strchr(topic, '.')) {
		struct buffer unused = {0};
		const int code = document_key(&unused, topic, 0, err);
		buffer_release(&unused);
		return code;
	}
	topics_collect(commands, &topics);
	for (size_t i = 0; i < topics.count; i++)
		names[i] = topics.names[i];
	const char *near = suggest_nearest(topic, names, topics.count);
	if (near)
		return error_set(
			err, -EINVAL, "no help on '%.64s'; did you mean '%s'?", topic, near);
	return error_set(err, -EINVAL,
		"no help on '%.64s'; see 'mlbench help', 'mlbench help keys' or 'mlbench help terms'",
		topic);
}

static int help_on(const struct invocation *invocation, const char *topic, struct buffer *out,
	struct error *err)
{
	const struct style style = command_style(invocation);
	const struct command *command = command_find(invocation->commands, topic);
	struct glossary_entry entry;
	if (command)
		manual_command(command, &style, out);
	else if (strcmp(topic, "keys") == 0) {
		document_keys(out, (size_t)style.width);
		buffer_text(out, "\n");
		plan_document(out, (size_t)style.width);
	} else if (strcmp(topic, "plan") == 0) {
		buffer_text(out, plan_help);
		plan_document(out, (size_t)style.width);
	} else if (strcmp(topic, "config") == 0)
		buffer_text(out, config_help);
	else if (strcmp(topic, "terms") == 0)
		help_on_terms(&style, out);
	else if (glossary_find(topic, &entry))
		return help_on_term(&entry, topic, &style, out, err);
	else if (is_key_or_section(topic))
		return document_key(out, topic, (size_t)style.width, err);
	else if (!plan_document_name(out, topic, (size_t)style.width))
		return refuse_topic(invocation->commands, topic, err);
	return 0;
}

static int help_run(const struct invocation *invocation, struct error *err)
{
	const struct options *options = &invocation->options;
	const struct style style = command_style(invocation);
	struct buffer text = {0};
	int code = 0;
	/* A topic of several words, as 'mlbench help queue depth', is one term. */
	struct buffer topic = {0};
	for (size_t i = 0; i < options->argument_count; i++)
		buffer_format(&topic, "%s%s", i ? " " : "", options->arguments[i]);
	if (options_given(options, OPTION_MAN))
		manual_page(invocation->commands, &text);
	else if (options_given(options, OPTION_MAN_KEYS))
		append_key_manual(&text);
	else if (options_given(options, OPTION_COMPLETION))
		code = completion_write(
			invocation->commands, options->values[OPTION_COMPLETION], &text, err);
	else if (options->argument_count > 0)
		code = topic.failed ? error_set(err, -ENOMEM, "out of memory")
				    : help_on(invocation, topic.data, &text, err);
	else
		manual_overview(invocation->commands, &style, &text);
	const int status = code ? command_status(code) : command_print(&text, err);
	buffer_release(&topic);
	buffer_release(&text);
	return status;
}

const struct command command_help = {
	.name = "help",
	.summary = "explain a command, a key, a section of keys, or a term",
	.arguments = "[COMMAND | KEY | SECTION | TERM | keys | terms | config | plan]",
	.description =
		"'mlbench help decode.workers' explains a key, 'mlbench help decode' the keys of a section, "
		"'mlbench help keys' prints all of them with default, values and meaning, and 'mlbench help config' "
		"explains how to write a configuration, 'mlbench help plan' a plan of 'mlbench accept'.\n\n"
		"'mlbench help straggler' explains a term, and 'mlbench help terms' lists all of them. Names from "
		"other tools work too: 'mlbench help num_workers' explains decode.workers. The same text is "
		"docs/GLOSSARY.md.",
	.example = "mlbench help prefetch_factor",
	.options = OPTION_BIT(OPTION_MAN) | OPTION_BIT(OPTION_MAN_KEYS) |
		   OPTION_BIT(OPTION_COMPLETION),
	.arguments_max = WORDS_MAX,
	.run = help_run,
};
