/* mlbench help: commands, keys, and terms of the glossary; the manual pages. */
#include "harness/base/text.h"
#include "harness/command/command.h"
#include "harness/command/completion.h"
#include "harness/command/glossary.h"
#include "harness/command/manual.h"
#include "harness/config/config.h"
#include "harness/config/document.h"
#include "harness/report/table.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { DATE_BYTES = 32, INDENT_COLUMNS = 2, TOPICS_MAX = 512, WORDS_MAX = 4 };

static const char config_help[] =
	"A configuration is an INI file that describes one benchmark completely:\n"
	"\n"
	"  [dataset]\n"
	"  path = data/photos         ; units: sizes 64k, times 1.5ms, rates 2GiB/s, 90%\n"
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

static const struct command *help_find_command(
	const struct command *const *commands, const char *name)
{
	for (size_t i = 0; commands[i]; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

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
	static const struct table_column columns[] = {
		{.head = "", .left = true}, {.head = "", .left = true, .wraps = true}};
	struct table table;
	struct glossary_entry entry;
	table_open(&table, columns, sizeof columns / sizeof columns[0]);
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
	const struct command *command = help_find_command(invocation->commands, topic);
	struct glossary_entry entry;
	if (command)
		manual_command(command, &style, out);
	else if (strcmp(topic, "keys") == 0)
		document_keys(out, (size_t)style.width);
	else if (strcmp(topic, "config") == 0)
		buffer_text(out, config_help);
	else if (strcmp(topic, "terms") == 0)
		help_on_terms(&style, out);
	else if (glossary_find(topic, &entry))
		return help_on_term(&entry, topic, &style, out, err);
	else if (is_key_or_section(topic))
		return document_key(out, topic, (size_t)style.width, err);
	else
		return refuse_topic(invocation->commands, topic, err);
	return 0;
}

/* A topic of several words, as 'mlbench help queue depth', is one term. */
static int help_on_words(const struct invocation *invocation, struct buffer *out, struct error *err)
{
	const struct options *options = &invocation->options;
	struct buffer topic = {0};
	for (size_t i = 0; i < options->argument_count; i++)
		buffer_format(&topic, "%s%s", i ? " " : "", options->arguments[i]);
	const int code = topic.failed ? error_set(err, -ENOMEM, "out of memory")
				      : help_on(invocation, topic.data, out, err);
	buffer_release(&topic);
	return code;
}

static int help_run(const struct invocation *invocation, struct error *err)
{
	const struct options *options = &invocation->options;
	const struct style style = command_style(invocation);
	struct buffer text = {0};
	int code = 0;
	if (options_given(options, OPTION_MAN))
		manual_page(invocation->commands, &text);
	else if (options_given(options, OPTION_MAN_KEYS))
		append_key_manual(&text);
	else if (options_given(options, OPTION_COMPLETION))
		code = completion_write(invocation->commands,
			options_value(options, OPTION_COMPLETION), &text, err);
	else if (options->argument_count > 0)
		code = help_on_words(invocation, &text, err);
	else
		manual_overview(invocation->commands, &style, &text);
	const int status = code ? command_status(code) : command_print(&text, err);
	buffer_release(&text);
	return status;
}

const struct command command_help = {
	.name = "help",
	.summary = "explain a command, a key, a section of keys, or a term",
	.arguments = "[COMMAND | KEY | SECTION | TERM | keys | terms | config]",
	.description =
		"'mlbench help decode.workers' explains a key, 'mlbench help decode' the keys of a section, "
		"'mlbench help keys' prints all of them with default, values and meaning, and 'mlbench help config' "
		"explains how to write a configuration.\n\n"
		"'mlbench help straggler' explains a term, and 'mlbench help terms' lists all of them. Names from "
		"other tools work too: 'mlbench help num_workers' explains decode.workers. The same text is "
		"docs/GLOSSARY.md.",
	.example = "mlbench help prefetch_factor",
	.options = OPTION_BIT(OPTION_MAN) | OPTION_BIT(OPTION_MAN_KEYS) |
		   OPTION_BIT(OPTION_COMPLETION),
	.arguments_max = WORDS_MAX,
	.run = help_run,
};
