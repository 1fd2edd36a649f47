/* mlbench fleet: many nodes beside each other. */
#include "harness/accept/fleet.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/text.h"
#include "harness/command/command.h"
#include "harness/report/fleet_report.h"
#include "harness/report/history_filter.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum fleet_format { FLEET_TEXT, FLEET_MARKDOWN, FLEET_HTML, FLEET_JSON, FLEET_CSV, FLEET_FORMATS };

static const char *const fleet_formats[FLEET_FORMATS] = {"text", "markdown", "html", "json", "csv"};
static const char *const fleet_files[FLEET_FORMATS] = {
	"fleet.txt", "fleet.md", "fleet.html", "fleet.json", "fleet.csv"};

static int fleet_parse_format(
	const struct options *options, enum fleet_format *format, struct error *err)
{
	const char *name = options->values[OPTION_FORMAT];
	const bool json = options_given(options, OPTION_JSON);
	*format = json ? FLEET_JSON : FLEET_TEXT;
	if (json && options->values[OPTION_OUT] && strcmp(options->values[OPTION_OUT], "-") != 0)
		return error_set(err, -EINVAL,
			"--json writes to standard output: for a file, --format json --out FILE");
	for (int i = 0; name && i < FLEET_FORMATS; i++)
		if (strcmp(name, fleet_formats[i]) == 0) {
			*format = (enum fleet_format)i;
			return json && i != FLEET_JSON
				       ? error_set(err, -EINVAL,
						 "--json and --format %s contradict each other",
						 name)
				       : 0;
		}
	if (!name)
		return 0;
	const char *near = suggest_nearest(name, fleet_formats, FLEET_FORMATS);
	return error_set(err, -EINVAL, "unknown format '%s': %s%s%s", name,
		near ? "did you mean '" : "text, markdown, html, json or csv", near ? near : "",
		near ? "'?" : "");
}

/* The folder that a page will lie in; the current one where it goes to standard output. */
static char *folder_of(const char *out)
{
	if (!out || strcmp(out, "-") == 0)
		return strdup("");
	const char *slash = strrchr(out, '/');
	if (product_is_folder(out))
		return strdup(out);
	return slash ? strndup(out, (size_t)(slash - out) + 1) : strdup("");
}

static int fleet_print_text(const struct invocation *invocation, const json_t *document,
	enum fleet_format format, struct error *err)
{
	const char *out = invocation->options.values[OPTION_OUT];
	struct style style = command_style(invocation);
	struct buffer text = {0};
	style.colour = style.colour && !out;
	struct medium medium =
		format == FLEET_MARKDOWN ? medium_markdown(&text) : medium_terminal(&style, &text);
	fleet_text(document, &medium, options_given(&invocation->options, OPTION_VERBOSE));
	if (format == FLEET_MARKDOWN)
		return product_write(out, fleet_files[format], &text, err);
	return product_write_words(out, fleet_files[format], &text, err);
}

static int fleet_deliver(const struct invocation *invocation, json_t *document,
	enum fleet_format format, struct error *err)
{
	const char *out = invocation->options.values[OPTION_OUT];
	struct buffer text = {0};
	int code = 0;
	if (format == FLEET_TEXT || format == FLEET_MARKDOWN)
		return fleet_print_text(invocation, document, format, err);
	if (format == FLEET_JSON && (!out || strcmp(out, "-") == 0))
		return command_print_json(invocation, json_incref(document), err);
	if (format == FLEET_JSON) {
		command_add_json(json_incref(document), &text);
	} else if (format == FLEET_CSV) {
		fleet_csv(document, &text);
	} else {
		char *folder = folder_of(out);
		code = folder ? fleet_page(document, folder, &text, err)
			      : error_set(err, -ENOMEM, "out of memory");
		free(folder);
	}
	return code ? command_status(code) : product_write(out, fleet_files[format], &text, err);
}

static int fleet_read_request(const struct options *options, struct fleet_request *request,
	json_t **expect, struct error *err)
{
	int code = 0;
	request->since = options->values[OPTION_SINCE];
	request->expect_file = options->values[OPTION_EXPECT];
	if (request->since)
		code = history_time_parse(
			request->since, (double)time(NULL), &request->since_s, err);
	if (!code && request->expect_file)
		code = fleet_expect_read(request->expect_file, expect, err);
	request->expect = *expect;
	return code;
}

static int fleet_run(const struct invocation *invocation, struct error *err)
{
	const struct options *options = &invocation->options;
	struct node_results results = {.now_s = clock_utc_seconds()};
	struct fleet_request request = {0};
	enum fleet_format format;
	json_t *expect = NULL;
	json_t *document = NULL;
	int code = fleet_parse_format(options, &format, err);
	if (!code)
		code = fleet_read_request(options, &request, &expect, err);
	if (!code)
		code = node_results_read(&results, options->arguments, options->argument_count,
			invocation->stop, err);
	if (!code)
		code = node_results_warn(&results, err);
	if (!code)
		code = fleet_make(&results, &request, &document, err);
	node_results_release(&results); /* the document has all that is needed */
	int status = command_status(code);
	if (!status)
		status = fleet_deliver(invocation, document, format, err);
	if (!status)
		status = (int)json_integer_value(json_object_get(document, "exit_status"));
	json_decref(document);
	json_decref(expect);
	return status;
}

const struct command command_fleet = {
	.name = "fleet",
	.summary = "compare many nodes by their results of 'mlbench accept'",
	.arguments = "RESULT...",
	.description =
		"Reads results of 'mlbench accept' (files, or folders that are searched for "
		"accept.json) of 1 to 1,000 and more nodes, and shows a row per node, the worst "
		"first: its verdict, how far it is from the median of the others and in what, "
		"and what to do. Of each node that failed or stands out it says which stage makes "
		"it slow, what it has that most others do not have (microcode, kernel, mount "
		"options, settings), and what changed since its last result.\n\n"
		"Each node counts by its newest result; one that is dated in the future, or damaged, "
		"is left out. Nodes of different hardware are not "
		"compared. A node is an outlier where neither the scatter of the nodes nor its own "
		"repetitions explain its distance, over all metrics and nodes together: 1 % of "
		"healthy fleets have one by chance. Fewer than 5 nodes cannot tell.\n\n"
		"--expect names a file with the nodes that should have reported, one a line or as "
		"Slurm writes them (node[01-40]). --format is text, markdown, html (a page with a "
		"strip of all nodes for each metric), json or csv; --out names a file for it.\n\n"
		"Exit status: 0 all nodes passed, 1 a node failed or stands out on the bad side, 2 "
		"the input was wrong, 3 a node has no verdict, did not report, lacks what most others measured, was judged by "
		"another plan, or has hardware that hardly any other has, or a file could not be used.",
	.example = "mlbench fleet results/ --expect nodes.txt --format html --out fleet.html",
	.options = OPTION_BIT(OPTION_EXPECT) | OPTION_BIT(OPTION_SINCE) |
		   OPTION_BIT(OPTION_FORMAT) | OPTION_BIT(OPTION_OUT) | OPTION_BIT(OPTION_JSON),
	.arguments_min = 1,
	.arguments_max = SIZE_MAX,
	.run = fleet_run,
};
