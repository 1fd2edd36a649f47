/* mlbench baseline: what healthy nodes give, from the results of many. */
#include "harness/accept/baseline.h"

#include "harness/accept/fingerprint.h"
#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/log.h"
#include "harness/command/command.h"
#include "harness/record/fields.h"
#include "harness/report/accept_document.h"
#include "harness/report/history_filter.h"
#include "harness/report/medium.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define BASELINE_FILE "baseline.json"

/* What the command line named: results, and baselines to be merged with them. */
struct baseline_inputs {
	struct node_results results;
	json_t **older; /* owned */
	size_t older_count;
};

/* A file that says of itself that it is a baseline; folders hold results. */
static bool is_baseline(const char *path)
{
	char head[256];
	struct stat st;
	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return false;
	FILE *file = fopen(path, "re");
	const size_t size = file ? fread(head, 1, sizeof head - 1, file) : 0;
	head[size] = '\0';
	if (file)
		(void)fclose(file);
	return strstr(head, "\"mlbench.baseline/") != NULL;
}

static int baseline_inputs_read(
	const struct invocation *invocation, struct baseline_inputs *inputs, struct error *err)
{
	const struct options *options = &invocation->options;
	const char **paths = calloc(options->argument_count + 1, sizeof *paths);
	size_t count = 0;
	inputs->older = calloc(options->argument_count + 1, sizeof(json_t *));
	int code = paths && inputs->older ? 0 : error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < options->argument_count && !code; i++) {
		if (!is_baseline(options->arguments[i])) {
			paths[count++] = options->arguments[i];
			continue;
		}
		code = baseline_read(
			options->arguments[i], &inputs->older[inputs->older_count], err);
		inputs->older_count += code == 0;
	}
	if (!code)
		code = node_results_read(&inputs->results, paths, count, invocation->stop, err);
	free(paths);
	return code;
}

static void baseline_inputs_release(struct baseline_inputs *inputs)
{
	node_results_release(&inputs->results);
	for (size_t i = 0; i < inputs->older_count; i++)
		json_decref(inputs->older[i]);
	free(inputs->older);
}

int node_results_warn(const struct node_results *results, struct error *err)
{
	size_t i;
	const json_t *entry;
	json_array_foreach(results->left_out, i, entry)
	{
		log_warn(
			"left out '%s': %s", column_text(entry, "file"), column_text(entry, "why"));
	}
	if (results->count > 0 || json_array_size(results->left_out) == 0)
		return 0;
	entry = json_array_get(results->left_out, 0);
	return error_set(err, results->left_out_code,
		"none of the results can be read: '%.200s': %.200s", column_text(entry, "file"),
		column_text(entry, "why"));
}

static int baseline_request_make(
	const struct options *options, struct baseline_request *request, struct error *err)
{
	static char made[CLOCK_UTC_BYTES];
	clock_format_utc((double)time(NULL), made);
	request->made = made;
	request->since = options->values[OPTION_SINCE];
	return request->since ? history_time_parse(
					request->since, (double)time(NULL), &request->since_s, err)
			      : 0;
}

/* --- what was made, in words ------------------------------------------------------------------ */

/* The limit that a worse node is beyond. */
static void baseline_limit_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	const char *sense = column_text(row, "sense");
	struct table_column of = *column;
	of.context = strcmp(sense, "less") == 0 ? "high" : "low";
	accept_unit_cell(&of, row, out);
	if (strcmp(sense, "neither") == 0) {
		buffer_text(out, " - ");
		of.context = "high";
		accept_unit_cell(&of, row, out);
	}
}

static void baseline_figure_cell(
	const struct table_column *column, const json_t *row, struct buffer *out)
{
	const char *place = column_text(row, "place");
	(void)column;
	buffer_text(out, column_text(row, "figure"));
	if (*place)
		buffer_format(out, " @ %s", strcmp(place, PLACE_ALL) == 0 ? "each place" : place);
}

static void baseline_words(const json_t *document, const struct style *style, struct buffer *out)
{
	static const struct table_column columns[] = {
		{.head = "check", .left = true, .path = "check", .keep = 2},
		{.head = "figure", .left = true, .text_of = baseline_figure_cell},
		{.head = "median", .text_of = accept_unit_cell, .context = "median"},
		{.head = "limit", .text_of = baseline_limit_cell},
		{.head = "similarity", .path = "similarity", COLUMN_DECIMALS(3), .keep = 1},
		{.head = "nodes", .path = "nodes", .unit = COLUMN_COUNT},
		{.head = "repetitions", .path = "repetitions", .unit = COLUMN_COUNT, .keep = 3},
	};
	static const struct table_column left_out[] = {
		{.head = "left out", .left = true, .path = "name"},
		{.head = "started (UTC)", .left = true, .path = "started", .keep = 1},
		{.head = "why", .left = true, .path = "why", .wraps = true},
	};
	struct medium medium = medium_terminal(style, out);
	struct buffer hardware = {0};
	struct buffer sentence = {0};
	size_t i;
	const json_t *node;
	fingerprint_words(json_object_get(document, "fingerprint"), &hardware);
	buffer_format(&sentence, "%zu node%s of: %s",
		json_array_size(json_object_get(document, "nodes")),
		json_array_size(json_object_get(document, "nodes")) == 1 ? "" : "s",
		hardware.data ? hardware.data : "");
	medium_title(&medium, "baseline", sentence.data ? sentence.data : "");
	medium_table(&medium, columns, COUNT(columns), json_object_get(document, "figures"), NULL);
	medium_table(
		&medium, left_out, COUNT(left_out), json_object_get(document, "left_out"), NULL);
	medium_space(&medium);
	json_array_foreach(json_object_get(document, "left_out"), i, node)
	{
		medium_list(&medium, INK_DIM, column_text(node, "name"),
			json_object_get(node, "figures"), 0);
	}
	medium_list(&medium, INK_WARN, "note", json_object_get(document, "notes"), 0);
	medium_end(&medium);
	buffer_release(&hardware);
	buffer_release(&sentence);
}

static int baseline_deliver(
	const struct invocation *invocation, json_t *document, struct error *err)
{
	const char *out = invocation->options.values[OPTION_OUT];
	char *line = json_dumps(document, JSON_COMPACT);
	struct buffer text = {.failed = !line};
	struct style style = command_style(invocation);
	buffer_format(&text, "%s\n", line ? line : "");
	free(line);
	if (!out || strcmp(out, "-") == 0) {
		if (command_wants_json(invocation)) {
			buffer_release(&text);
			return command_print_json(invocation, json_incref(document), err);
		}
		return command_print(&text, err);
	}
	const int status = product_write(out, BASELINE_FILE, &text, err);
	if (status)
		return status;
	if (command_wants_json(invocation))
		return command_print_json(invocation, json_incref(document), err);
	struct buffer words = {0};
	baseline_words(document, &style, &words);
	return product_write_words(NULL, BASELINE_FILE, &words, err);
}

static int baseline_run(const struct invocation *invocation, struct error *err)
{
	struct baseline_inputs inputs = {.results = {.now_s = clock_utc_seconds()}};
	struct baseline_request request = {0};
	json_t *document = NULL;
	int code = baseline_request_make(&invocation->options, &request, err);
	if (!code)
		code = baseline_inputs_read(invocation, &inputs, err);
	if (!code)
		code = node_results_warn(&inputs.results, err);
	request.older = (const json_t *const *)inputs.older;
	request.older_count = inputs.older_count;
	if (!code)
		code = baseline_make(&inputs.results, &request, &document, err);
	/* That nodes do not agree is an outcome, and no fault of the command line. */
	const int status = code == -ENODATA ? EXIT_STATUS_CANNOT
			   : code           ? command_status(code)
					    : baseline_deliver(invocation, document, err);
	json_decref(document);
	baseline_inputs_release(&inputs);
	return status;
}

const struct command command_baseline = {
	.name = "baseline",
	.summary = "make a baseline from the results of healthy nodes, for 'mlbench accept'",
	.arguments = "RESULT...",
	.description =
		"Reads results of 'mlbench accept' (files, or folders that are searched for "
		"accept.json) and writes what healthy nodes of one kind of hardware give: for "
		"each figure the median, the limits that a healthy node is within, and the "
		"distribution. Criteria as 'within baseline', 'within 5 % of baseline' and "
		"'similarity >= 0.95' are judged by it (mlbench accept --baseline FILE).\n\n"
		"Nodes that failed, were interrupted or have other hardware than most are left "
		"out. So is a node whose distribution of any figure is less than 0.95 similar to "
		"that of the most typical node, or whose median is an outlier on the bad side. "
		"The reason is printed and kept in the file. Each node counts once, by its newest "
		"result. Fewer than 5 nodes give wide limits, and one node gives none.\n\n"
		"A RESULT may be an older baseline: it is merged with the results. --since leaves "
		"out what is older, in baselines, too.\n\n"
		"Exit status: 0 a baseline was made, 2 the input was wrong, 3 no majority of the "
		"nodes agrees or none is healthy.",
	.example = "mlbench baseline results/node/ --out baseline.json",
	.options = OPTION_BIT(OPTION_OUT) | OPTION_BIT(OPTION_SINCE) | OPTION_BIT(OPTION_JSON),
	.arguments_min = 1,
	.arguments_max = SIZE_MAX,
	.run = baseline_run,
};
