/* mlbench help: on commands and keys, and the manual pages. */
#include "harness/command/command.h"
#include "harness/command/completion.h"
#include "harness/command/manual.h"
#include "harness/config/config.h"
#include "harness/config/document.h"

#include <errno.h>
#include <string.h>
#include <time.h>

enum { DATE_BYTES = 32 };

static const char config_help[] =
	"A configuration is an INI file that describes one benchmark completely:\n"
	"\n"
	"  [dataset]\n"
	"  path = data/photos                ; sizes, times and rates carry their unit: 64k 1.5ms 2GiB/s 90%\n"
	"\n"
	"  [decode]\n"
	"  workers = 2\n"
	"\n"
	"  [sweep]                           ; any sweepable key, with its section in front\n"
	"  decode.workers = 1-8*2            ; lists 1,2,4; ranges 1-8+1 and 1-64*2\n"
	"  zip = decode.workers, read.threads ; step together instead of in a product\n"
	"  exclude = decode.workers=1 batch.size=256; batch.size=512\n"
	"\n"
	"  include = base.ini                takes another file's keys first; what follows overrides them\n"
	"  ${VAR} and ${VAR:-default}        are taken from the environment; an undefined one is an error\n"
	"\n"
	"  --set section.key=value           overrides a key from the command line, and takes it out of the sweep\n"
	"  --set sweep.section.key=1,2,4     sweeps it\n"
	"\n"
	"A configuration may come from a pipe: 'generate | mlbench run /dev/stdin', 'mlbench run <(generate)'.\n"
	"\n"
	"'mlbench help keys' prints every key, 'mlbench help KEY' one, 'mlbench check FILE' what a file means.\n";

static const struct command *find(const struct command *const *commands, const char *name)
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

static int help_on(const struct invocation *invocation, const char *topic, struct buffer *out,
	struct error *err)
{
	const struct style style = command_style(invocation);
	const struct command *command = find(invocation->commands, topic);
	if (command)
		manual_command(command, &style, out);
	else if (strcmp(topic, "keys") == 0)
		document_keys(out, (size_t)style.width);
	else if (strcmp(topic, "config") == 0)
		buffer_text(out, config_help);
	else
		return document_key(out, topic, (size_t)style.width, err);
	return 0;
}

static int run(const struct invocation *invocation, struct error *err)
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
		code = help_on(invocation, options->arguments[0], &text, err);
	else
		manual_overview(invocation->commands, &style, &text);
	const int status = code ? command_status(code) : command_print(&text, err);
	buffer_release(&text);
	return status;
}

const struct command command_help = {
	.name = "help",
	.summary = "help on a command, a key, or all keys",
	.arguments = "[COMMAND|keys|KEY|SECTION|config]",
	.description =
		"'mlbench help keys' prints every key with its default, values and meaning; 'mlbench help "
		"decode.workers' explains one, 'mlbench help decode' a section, 'mlbench help config' how a "
		"configuration is written.",
	.example = "mlbench help read.cache",
	.options = OPTION_BIT(OPTION_MAN) | OPTION_BIT(OPTION_MAN_KEYS) |
		   OPTION_BIT(OPTION_COMPLETION),
	.arguments_max = 1,
	.run = run,
};
