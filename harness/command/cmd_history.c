/* mlbench history: all results below a folder, and what became of them over time. */
#include "harness/base/log.h"
#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/command/command.h"
#include "harness/report/history_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum format { FORMAT_TEXT, FORMAT_HTML, FORMAT_JSON, FORMAT_CSV, FORMATS };

static const char *const formats[FORMATS] = {"text", "html", "json", "csv"};
static const char *const file_names[FORMATS] = {
	"history.txt", "history.html", "history.json", "history.csv"};

/* What was asked for. */
struct request {
	enum format format;
	struct history_metric metric;
	bool plots;
	double significance;
	double since; /* 0: from the begin */
};

static int history_parse_format(
	const struct options *options, enum format *format, struct error *err)
{
	const char *name = options->values[OPTION_FORMAT];
	const char *out = options->values[OPTION_OUT];
	*format = options_given(options, OPTION_JSON) ? FORMAT_JSON : FORMAT_TEXT;
	if (*format == FORMAT_JSON && out && strcmp(out, "-") != 0)
		return error_set(err, -EINVAL,
			"--json writes to standard output: for a file, --format json --out FILE");
	if (!name)
		return 0;
	for (int i = 0; i < FORMATS; i++)
		if (strcmp(name, formats[i]) == 0) {
			if (options_given(options, OPTION_JSON) && i != FORMAT_JSON)
				return error_set(err, -EINVAL,
					"--json and --format %s contradict each other", name);
			*format = (enum format)i;
			return 0;
		}
	const char *near = suggest_nearest(name, formats, FORMATS);
	if (near)
		return error_set(
			err, -EINVAL, "unknown format '%s' (did you mean '%s'?)", name, near);
	return error_set(err, -EINVAL, "unknown format '%s': text, html, json or csv", name);
}

static int parse_request(const struct options *options, struct request *request, struct error *err)
{
	const char *metric = options->values[OPTION_METRIC];
	const char *since = options->values[OPTION_SINCE];
	const char *level = options->values[OPTION_SIGNIFICANCE];
	*request = (struct request){0};
	int code = history_parse_format(options, &request->format, err);
	request->significance = LEVEL_SIGNIFICANCE;
	if (!code && level &&
		(units_parse_share(level, &request->significance) ||
			request->significance < LEVEL_SIGNIFICANCE_LEAST ||
			request->significance > 0.5))
		code = error_set(err, -EINVAL,
			"--significance '%s': give a level from 0.1%% to 50%%, as '1%%'", level);
	if (!code && since)
		code = history_time_parse(since, (double)time(NULL), &request->since, err);
	/* A page without a chart would be a poor one. */
	request->plots = metric || request->format == FORMAT_HTML;
	if (!code && request->plots)
		code = history_metric_find(metric ? metric : "throughput", &request->metric, err);
	return code;
}

static int history_print_json(
	const struct invocation *invocation, json_t *document, struct error *err)
{
	const char *out = invocation->options.values[OPTION_OUT];
	if (!out || strcmp(out, "-") == 0)
		return command_print_json(invocation, json_incref(document), err);
	char *line = json_dumps(document, JSON_INDENT(1));
	struct buffer text = {.failed = !line};
	buffer_format(&text, "%s\n", line ? line : "");
	free(line);
	return product_write(out, file_names[FORMAT_JSON], &text, err);
}

static int print_report(const struct invocation *invocation, const struct request *request,
	json_t *document, struct error *err)
{
	const char *out = invocation->options.values[OPTION_OUT];
	struct style style = command_style(invocation);
	struct buffer text = {0};
	int code = 0;
	if (request->format == FORMAT_JSON)
		return history_print_json(invocation, document, err);
	style.colour = style.colour && !out;
	if (request->format == FORMAT_HTML)
		code = history_page(document, &text, err);
	else if (request->format == FORMAT_CSV)
		history_csv(document, &text);
	else
		history_text(document, &style, &text);
	const int status = code ? command_status(code)
				: product_write(out, file_names[request->format], &text, err);
	buffer_release(&text);
	return status;
}

static int report_on(const struct invocation *invocation, const struct request *request,
	const struct history *history, struct error *err)
{
	const struct options *options = &invocation->options;
	struct history_plot plot = {0};
	struct buffer conditions = {0};
	const int code = request->plots ? history_plot_make(&plot, history, &request->metric,
						  request->significance, err)
					: 0;
	for (size_t i = 0; i < options->condition_count; i++)
		buffer_format(&conditions, "%s%s", i ? ", " : "", options->conditions[i]);
	if (options->values[OPTION_SINCE])
		buffer_format(&conditions, "%ssince %s", conditions.size ? ", " : "",
			options->values[OPTION_SINCE]);
	const struct history_report report = {.history = history,
		.plot = request->plots ? &plot : NULL,
		.conditions = conditions.data ? conditions.data : ""};
	json_t *document = code ? NULL : history_json(&report);
	const int status =
		code || !document
			? command_status(code ? code : error_set(err, -ENOMEM, "out of memory"))
			: print_report(invocation, request, document, err);
	json_decref(document);
	buffer_release(&conditions);
	history_plot_release(&plot);
	return status;
}

static int history_run(const struct invocation *invocation, struct error *err)
{
	const struct options *options = &invocation->options;
	const char *root = options->argument_count > 0 ? options->arguments[0] : RESULTS_FOLDER;
	struct request request;
	struct history history = {0};
	struct history_filter filter = {0};
	int code = parse_request(options, &request, err);
	for (size_t i = 0; i < options->condition_count && !code; i++)
		code = history_filter_add(&filter, options->conditions[i], err);
	filter.since = request.since;
	if (!code)
		code = history_read(&history, root, &filter, request.plots ? &request.metric : NULL,
			invocation->stop, err);
	const int status =
		code ? command_status(code) : report_on(invocation, &request, &history, err);
	history_filter_release(&filter);
	history_close(&history);
	return status;
}

const struct command command_history = {
	.name = "history",
	.summary = "list all results; show how a metric changed over time",
	.arguments = "[RESULTS_DIR]",
	.description =
		"Lists every result below RESULTS_DIR (by default results/), oldest first, each "
		"with its best point. With --metric, it also shows that metric over time: "
		"results of one configuration on one node form a series, in which changes of "
		"level are marked that are significant (--significance) and larger than 1 %. "
		"Metrics of a point: throughput, step_utilisation, rss_peak_bytes and others; of "
		"a stage: capacity, busy, starved, blocked, cpu, io_wait, lock_wait, mean, p50, "
		"p90, p99, p99.9 and max, as in 'decode.capacity' or 'read.p99'.\n\n"
		"Of results that were measured in turns (reproduce, bisect) one stands for all, the twin "
		"where there is one, and a '+' says how many more there are. A RESULTS_DIR in their "
		"folder lists each of them; so do json and csv.\n\n"
		"--where takes KEY OP VALUE, where OP is one of = != < <= > >= and ~ (contains). "
		"KEY is one of name, hash, folder, node, host, cpu, cores, version, status, "
		"backend, emulated, points, started, finished, stage, resource, verdict, "
		"repeats; a metric; a key of the configuration (of a sweep, the points with that "
		"value count); or a fact of the environment, as 'kernel.release'.\n\n"
		"--format is text, html (a page with charts), json or csv; --out names a file "
		"for it.",
	.example = "mlbench history --metric throughput --where name=imagenet_like --since 30d",
	.options = OPTION_BIT(OPTION_WHERE) | OPTION_BIT(OPTION_SINCE) | OPTION_BIT(OPTION_METRIC) |
		   OPTION_BIT(OPTION_SIGNIFICANCE) | OPTION_BIT(OPTION_FORMAT) |
		   OPTION_BIT(OPTION_OUT) | OPTION_BIT(OPTION_JSON),
	.arguments_max = 1,
	.run = history_run,
};
