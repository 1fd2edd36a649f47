/* Help for terminals and mlbench(1), both from the same tables. */
#include "harness/command/manual.h"

#include "harness/report/table.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { INDENT_COLUMNS = 2, OPTION_TEXT_BYTES = 64 };

static const struct exit_line {
	const char *status, *text;
} exits[] = {
	{"0", "Done."},
	{"1", "A check, a point, a prediction or a gate failed, or results could not be written."},
	{"2", "Wrong input: command line, configuration or data set."},
	{"3", "Not measurable (a missing device or engine, or never steady), or inconclusive."},
	{"130", "Interrupted by SIGINT, SIGTERM or SIGHUP; what was measured is kept."},
};

static const struct file_line {
	const char *path, *text;
} files[] = {
	{"results/NAME/TIME/points.jsonl",
		"A header line, then one line per repetition, written to disk as it ends."},
	{"results/NAME/TIME/summary.json",
		"Statistics, verdicts, limits, environment and configuration; its schema is "
		"docs/summary.schema.json."},
	{"results/NAME/TIME/points.csv", "One row per point."},
	{"results/NAME/TIME/diagnoses.json",
		"What was diagnosed, so that it is not computed again; can be deleted at any time."},
};

static uint64_t manual_options_of(const struct command *command)
{
	return command->options | OPTIONS_COMMON;
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

/* --- terminal -----------------------------------------------------------------------------------
 */

static const struct table_column name_and_text[] = {
	{.head = "", .left = true}, {.head = "", .left = true, .wraps = true}};

static void heading(const struct style *style, const char *text, struct buffer *out)
{
	buffer_format(out, "\n%s%s%s\n", style_ink(style, INK_BOLD), text, style_end(style));
}

static void render_options(uint64_t options, const struct style *style, struct buffer *out)
{
	struct table table;
	table_open(&table, name_and_text, 2);
	for (int id = 0; id < OPTION_COUNT; id++) {
		char text[OPTION_TEXT_BYTES];
		if (!(options & OPTION_BIT(id)))
			continue;
		table_add(&table, INK_ACCENT, "%s", option_text(&option_specs[id], text));
		table_add(&table, INK_PLAIN, "%s", option_specs[id].doc);
	}
	table_render(&table, style, INDENT_COLUMNS, false, out);
	table_close(&table);
}

void manual_overview(
	const struct command *const *commands, const struct style *style, struct buffer *out)
{
	struct table table;
	style_wrap(style,
		"mlbench measures training input pipelines: it reads, decodes, augments and prefetches real files "
		"for a training step, sweeps any setting, accounts for every thread's time, and names the "
		"bottleneck.",
		0, 0, out);
	heading(style, "commands", out);
	table_open(&table, name_and_text, 2);
	for (size_t i = 0; commands[i]; i++) {
		table_add(&table, INK_ACCENT, "%s", commands[i]->name);
		table_add(&table, INK_PLAIN, "%s", commands[i]->summary);
	}
	table_render(&table, style, INDENT_COLUMNS, false, out);
	table_close(&table);
	heading(style, "start with", out);
	buffer_text(out,
		"  mlbench doctor                          what disturbs measuring on this node\n"
		"  mlbench list configs                    what you can run\n"
		"  mlbench check imagenet_like             what that runs, and how long it takes\n"
		"  mlbench sweep imagenet_like             run it\n"
		"  mlbench diagnose imagenet_like          its bottleneck, and what to do about it\n"
		"  mlbench help COMMAND | KEY | TERM       explain one; also 'keys' and 'terms'\n");
	heading(style, "options of every command", out);
	render_options(OPTIONS_COMMON, style, out);
}

void manual_command(const struct command *command, const struct style *style, struct buffer *out)
{
	buffer_format(out, "%susage%s: mlbench %s [OPTIONS]%s%s\n\n", style_ink(style, INK_BOLD),
		style_end(style), command->name, command->arguments[0] ? " " : "",
		command->arguments);
	for (const char *at = command->description; *at;) {
		const char *end = strstr(at, "\n\n");
		const size_t length = end ? (size_t)(end - at) : strlen(at);
		struct buffer paragraph = {0};
		buffer_add(&paragraph, at, length);
		style_wrap(style, paragraph.data ? paragraph.data : "", 0, 0, out);
		buffer_release(&paragraph);
		at += length + (end ? 2 : 0);
		buffer_text(out, *at ? "\n" : "");
	}
	heading(style, "options", out);
	render_options(manual_options_of(command), style, out);
	if (command->example) {
		heading(style, "example", out);
		buffer_format(out, "  %s\n", command->example);
	}
}

/* --- mdoc ---------------------------------------------------------------------------------------
 */

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
		const char *end = strstr(text, "\n\n");
		const size_t length = end ? (size_t)(end - text) : strlen(text);
		struct buffer paragraph = {0};
		buffer_add(&paragraph, text, length);
		mdoc_text(paragraph.data ? paragraph.data : "", out);
		buffer_release(&paragraph);
		text += length + (end ? 2 : 0);
		buffer_text(out, *text ? ".Pp\n" : "");
	}
}

static void mdoc_options(uint64_t options, struct buffer *out)
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
		mdoc_text(spec->doc, out);
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
		mdoc_options(command->options, out);
	if (command->example)
		buffer_format(out, ".Pp\nExample:\n.Dl %s\n", command->example);
}

static void mdoc_lists(struct buffer *out)
{
	buffer_text(out, ".Sh FILES\n.Bl -tag -width Ds\n");
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		buffer_format(out, ".It Pa %s\n", files[i].path);
		mdoc_text(files[i].text, out);
	}
	buffer_text(out, ".El\n.Sh EXIT STATUS\n.Bl -tag -width Ds\n");
	for (size_t i = 0; i < sizeof exits / sizeof exits[0]; i++) {
		buffer_format(out, ".It %s\n", exits[i].status);
		mdoc_text(exits[i].text, out);
	}
	buffer_text(out, ".El\n");
}

void manual_page(const struct command *const *commands, struct buffer *out)
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
	mdoc_options(OPTIONS_COMMON, out);
	buffer_text(out, ".Sh COMMANDS\n");
	for (size_t i = 0; commands[i]; i++)
		mdoc_command(commands[i], out);
	buffer_text(out, ".Sh ENVIRONMENT\n.Bl -tag -width Ds\n"
			 ".It Ev NO_COLOR\nNo colour if it is set and not empty.\n"
			 ".It Ev COLUMNS\nWidth of the output, instead of the terminal's.\n.El\n");
	mdoc_lists(out);
	buffer_text(out, ".Sh SEE ALSO\n.Xr fio 1 ,\n.Xr mlbench.ini 5\n");
}
