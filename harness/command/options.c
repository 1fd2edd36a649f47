/* The command line. */
#include "harness/command/options.h"

#include "harness/base/buffer.h"
#include "harness/base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct option_spec option_specs[OPTION_COUNT] = {
	[OPTION_SET] = {"set", 0, "KEY=VALUE",
		"@fit Set a key of the twin, as 'decode.workers=4', or a finding, as "
		"'job.throughput=600'.\n"
		"@what-if Change a key, as 'decode.workers=8'; a list, as 'decode.workers=4,8', makes a "
		"table.\n"
		"@reproduce,gen,probe,bisect,diagnose,run,sweep,check,efficiency Override a key of the "
		"configuration, as 'decode.workers=4'.\n"
		"@sweep,check,gen A list sweeps it, as 'sweep.decode.workers=1,2,4'.\n"
		"May be repeated; the last value of a key counts."},
	[OPTION_DATA] = {"data", 0, "DIR",
		"Measure with the images in this folder, in class/name.jpg layout. Short for --set "
		"dataset.path=DIR --set dataset.recipe=none, before any --set. Nothing is written "
		"there."},
	[OPTION_OUT] = {"out", 0, "DIR",
		"@run,sweep,reproduce,bisect,efficiency,observe,accept,diagnose Write the results into "
		"this folder, instead of results/NAME/TIME.\n"
		"@fleet,history,fit,lab,report,export,compare,baseline Write into this file; a folder gets "
		"one with the usual name."},
	[OPTION_RESUME] = {"resume", 0, "DIR",
		"Continue the run in this folder: measure only what is missing or failed. 'latest' "
		"is the newest run with the configuration's name."},
	[OPTION_JSON] = {"json", 0, NULL,
		"Write one valid JSON document to standard output, even after an error."},
	[OPTION_VERIFY] = {"verify", 0, NULL,
		"@gen Read every file of the data set and compare it with the manifest.\n"
		"@diagnose Test the diagnosis by experiments."},
	[OPTION_PATH] = {"path", 0, "DIR",
		"Probe the storage under this folder, instead of the data set's or the current "
		"one."},
	[OPTION_QUICK] = {"quick", 0, NULL,
		"Take a quarter of the time: fewer depths, shorter repetitions."},
	[OPTION_FRESH] = {"fresh", 0, NULL, "Measure again, even if kept results are still valid."},
	[OPTION_NO_CACHE] = {"no-cache", 0, NULL,
		"Do not use kept results, and do not keep these."},
	[OPTION_BUDGET] = {"budget", 0, "TIME",
		"@diagnose Time that the experiments of --verify may take, as '90s' or '10m'. Default: 3 "
		"minutes.\n"
		"@accept Time that all checks may take, as '90s'. Default of the quick tier: 55s.\n"
		"@reproduce Time that it may measure, as '90s' or '10m'. Default: 5 minutes.\n"
		"@bisect Time that it may measure, as '90s' or '10m'. Default: 10 minutes.\n"
		"@fit Time that running the twin may take, as '20s'; 0: it is not run. Default: 30s."},
	[OPTION_FOLLOW] = {"follow", 0, "[=N]",
		"Set what the diagnosis recommends, measure, and continue from there, at most N "
		"times. Default: 8."},
	[OPTION_MAN] = {"man", 0, NULL, "Print the manual page mlbench(1)."},
	[OPTION_MAN_KEYS] = {"man-keys", 0, NULL, "Print the manual page mlbench.ini(5)."},
	[OPTION_COMPLETION] = {"completion", 0, "bash|zsh|fish",
		"Print the script that completes commands, options, keys and their values in this shell."},
	[OPTION_POINT] = {"point", 0, "N",
		"The point of the saved sweep to use, by its number in points.csv. Default: the "
		"best measured one.\n"
		"@what-if Without it, the model is calibrated from the points nearest to the setting, too."},
	[OPTION_FLEET] = {"fleet", 0, "N[,N...][:SPREAD]",
		"Predict this many nodes: their throughput, and whether the file server, the "
		"network, the slowest node or the node itself is the bottleneck. A list or a range, as "
		"'1-64*2'. SPREAD is how much nodes differ in speed (standard deviation), as "
		"'8,1024:3%'. Default: not at all."},
	[OPTION_STORAGE] = {"storage", 0, "RATE",
		"Bytes per second that the file server of a fleet gives to all nodes together, as "
		"'12GiB/s'. Default: what 'mlbench probe' read cold from the data's storage, if it "
		"ran."},
	[OPTION_NETWORK_BANDWIDTH] = {"network-bandwidth", 0, "RATE",
		"Bandwidth of each node's link in a fleet, as '200Gbit/s' or '25GB/s', for the exchange of "
		"gradients. Default: by the exchanges of the result's ranks; of a result without ranks, "
		"the exchange takes no time."},
	[OPTION_NETWORK_LATENCY] = {"network-latency", 0, "DURATION",
		"Latency of one message between two nodes of a fleet, as '5us'. Default: 0."},
	[OPTION_GRADIENT_BYTES] = {"gradient-bytes", 0, "SIZE",
		"Bytes of gradients that a fleet sums after each step. Default: sync.gradients, or 4 for "
		"each parameter of step.model."},
	[OPTION_OVERLAP] = {"overlap", 0, "SHARE",
		"Share of the step's time, its last part, that the exchange of gradients can overlap "
		"with: the backward pass. Default: 67 %, or 0 with sync.overlap = off. The last bucket "
		"(sync.bucket) never overlaps."},
	[OPTION_ALL_REDUCE] = {"all-reduce", 0, "ring|tree",
		"How gradients are summed. Default: the faster one at each number of nodes."},
	[OPTION_FORCE] = {"force", 0, NULL,
		"@what-if Predict a fleet even if the result was measured under other load.\n"
		"@lab With 'explain': give up."},
	[OPTION_FORMAT] = {"format", 0, "NAME",
		"Output format; the command's help lists the formats."},
	[OPTION_SORT] = {"sort", 0, "COLUMN",
		"Column to sort by: numbers largest first, names and times in their natural order."},
	[OPTION_FAIL_IF] = {"fail-if", 0, "CONDITION",
		"A gate for CI, as 'throughput < -5%': exit status 1 if this is shown, 0 if it is "
		"ruled out, 3 if the repetitions show neither. May be repeated."},
	[OPTION_REQUIRE] = {"require", 0, "CONDITION",
		"A gate with the burden of proof on B, as 'throughput > -5%': exit status 1 unless "
		"this is shown. May be repeated."},
	[OPTION_UNTIL_SURE] = {"until-sure", 0, "TIME",
		"Where a gate is inconclusive, measure A and B again, in turn, until it is decided "
		"or this time is over, as '5m'."},
	[OPTION_SIGNIFICANCE] = {"significance", 0, "SHARE",
		"Significance level of the tests. Default: 1%."},
	[OPTION_METRIC] = {"metric", 0, "NAME", "The metric to show over time."},
	[OPTION_WHERE] = {"where", 0, "CONDITION",
		"Only results for which this holds, as 'name=imagenet_like'. May be repeated; all "
		"must hold."},
	[OPTION_SINCE] = {"since", 0, "TIME", "Only results since then, as '2026-11-01' or '7d'."},
	[OPTION_NODE] = {"node", 0, "NAME",
		"Name of this node in results, history and metrics. Default: the first of "
		"SLURMD_NODENAME, NODE_NAME and the host's name that is set."},
	[OPTION_FLAME] = {"flame", 0, NULL,
		"Sample where the CPU time of each stage goes: a flame graph in report.html, and "
		"flame.folded and flame.json beside the results."},
	[OPTION_WATCH] = {"watch", 0, NULL,
		"Show the run on the whole screen of the terminal while it runs."},
	[OPTION_LISTEN] = {"listen", 0, "[=PORT]",
		"Serve live metrics (Prometheus) on this port of the loopback interface during "
		"the run. Default: 9477."},
	[OPTION_TIER] = {"tier", 0, "quick|standard|burn",
		"Which checks run: quick (under 60 s, for a scheduler's health check), standard "
		"(about ten minutes), or burn (as long as --for says). Default: standard."},
	[OPTION_CHECK] = {"check", 0, "NAME", "Run only this check of the plan. May be repeated."},
	[OPTION_FOR] = {"for", 0, "TIME",
		"@observe How long to watch, as '1m'. Default: 30s.\n"
		"@accept How long burn checks load the node, as '8h'."},
	[OPTION_BASELINE] = {"baseline", 0, "FILE",
		"The baseline that criteria 'of baseline' mean (mlbench baseline)."},
	[OPTION_JUDGE] = {"judge", 0, "RESULT",
		"Judge this saved result by the plan, without running anything."},
	[OPTION_DRY_RUN] = {"dry-run", 0, NULL,
		"Print the checks with their time, disk space and memory, and run nothing."},
	[OPTION_START_AT] = {"start-at", 0, "TIME",
		"Wait until then, as '14:30' or '2026-11-26T14:30:00Z', so that many nodes load a "
		"shared file server together."},
	[OPTION_EXPECT] = {"expect", 0, "FILE",
		"Names of the nodes that should have reported, one a line or as 'node[01-40]'."},
	[OPTION_COMPLAINT] = {"complaint", 0, "TEXT",
		"What the job's owner says is wrong. Names and paths in it are replaced."},
	[OPTION_COMPLAINT_FILE] = {"complaint-file", 0, "FILE", "The same, read from a file."},
	[OPTION_NAME] = {"name", 0, "NAME",
		"Name of the case's results, as run.name. Default: the name of its file."},
	[OPTION_AS_REPORTED] = {"as-reported", 0, NULL,
		"Emulate here what the case says of the reported node: its cores, CPU quota, and the "
		"latency and bandwidth of its storage. The output names each."},
	[OPTION_TOLERANCE] = {"tolerance", 0, "SHARE",
		"How far from the reported throughput still counts as the same. Default: 10%."},
	[OPTION_MARGIN] = {"margin", 0, "SHARE",
		"Differences that cost less than this are ignored. Default: 3%."},
	[OPTION_ENV] = {"env", 0, NULL,
		"Bisect the nodes, too, as far as this node can emulate them: fewer cores and a "
		"CPU quota of a result or a case, and the storage of a case."},
	[OPTION_DIR] = {"dir", 0, "DIR",
		"Folder of the student: predictions, measurements and checks of labs. Default: "
		"mlbench-labs."},
	[OPTION_NO_COLOR] = {"no-color", 0, NULL,
		"No colour, even on a terminal. The environment variable NO_COLOR does the same."},
	[OPTION_QUIET] = {"quiet", 'q', NULL,
		"No progress and no remarks; warnings and errors only."},
	[OPTION_VERBOSE] = {"verbose", 'v', NULL,
		"Print each step taken, and the stages of every point."},
	[OPTION_HELP] = {"help", 'h', NULL, "Help on the command."},
};

static bool option_doc_is_of(const char *names, size_t length, const char *command)
{
	const size_t wanted = strlen(command);
	for (const char *at = names; at < names + length;) {
		const size_t one = strcspn(at, ", ");
		if (one == wanted && strncmp(at, command, one) == 0)
			return true;
		at += one + 1;
	}
	return false;
}

void option_doc(enum option_id id, const char *command, struct buffer *out)
{
	const size_t begun = out->size;
	for (const char *line = option_specs[id].doc; *line;) {
		const size_t length = strcspn(line, "\n");
		const size_t names = *line == '@' ? strcspn(line, " ") + 1 : 0;
		if (names == 0 || option_doc_is_of(line + 1, names - 2, command)) {
			buffer_text(out, out->size > begun ? " " : "");
			buffer_add(out, line + names, length - names);
		}
		line += length + (line[length] == '\n');
	}
}

struct parser {
	struct options *options;
	uint64_t allowed;
	int argc, at; /* at: of the argument being looked at */
	const char *const *argv;
	struct error *err;
};

static int refuse_unknown(const struct parser *parser, const char *name, size_t length)
{
	const char *names[OPTION_COUNT];
	size_t count = 0;
	for (int id = 0; id < OPTION_COUNT; id++)
		if (parser->allowed & OPTION_BIT(id))
			names[count++] = option_specs[id].name;
	char word[64];
	const size_t kept = length < sizeof word ? length : sizeof word - 1;
	memcpy(word, name, kept);
	word[kept] = '\0';
	const char *near = suggest_nearest(word, names, count);
	if (near)
		return error_set(parser->err, -EINVAL,
			"unknown option '--%s' (did you mean '--%s'?)", word, near);
	return error_set(parser->err, -EINVAL, "unknown option '--%s'", word);
}

static int keep_value(const struct parser *parser, enum option_id id, const char *value)
{
	struct options *options = parser->options;
	if (!*value)
		return error_set(parser->err, -EINVAL, "option '--%s' has an empty value",
			option_specs[id].name);
	options->values[id] = value;
	if (id == OPTION_SET)
		options->sets[options->set_count++] = value;
	else if (id == OPTION_FAIL_IF || id == OPTION_WHERE)
		options->conditions[options->condition_count++] = value;
	else if (id == OPTION_CHECK)
		options->checks[options->check_count++] = value;
	else if (id == OPTION_REQUIRE)
		options->requirements[options->requirement_count++] = value;
	return 0;
}

/* value: after "=", or NULL. */
static int take(struct parser *parser, enum option_id id, const char *value)
{
	const struct option_spec *spec = &option_specs[id];
	if (!(parser->allowed & OPTION_BIT(id)))
		return error_set(parser->err, -EINVAL, "option '--%s' is not one of this command",
			spec->name);
	parser->options->given |= OPTION_BIT(id);
	if (!spec->metavar)
		return value ? error_set(parser->err, -EINVAL, "option '--%s' takes no value",
				       spec->name)
			     : 0;
	if (!value && spec->metavar[0] == '[')
		return 0;
	if (!value && parser->at + 1 < parser->argc)
		value = parser->argv[++parser->at];
	if (!value)
		return error_set(parser->err, -EINVAL, "option '--%s' needs a value (%s)",
			spec->name, spec->metavar);
	return keep_value(parser, id, value);
}

static int take_long(struct parser *parser, const char *text)
{
	const size_t length = strcspn(text, "=");
	for (int id = 0; id < OPTION_COUNT; id++)
		if (strlen(option_specs[id].name) == length &&
			strncmp(option_specs[id].name, text, length) == 0)
			return take(parser, (enum option_id)id,
				text[length] ? text + length + 1 : NULL);
	return refuse_unknown(parser, text, length);
}

static int take_letters(struct parser *parser, const char *letters)
{
	int code = 0;
	for (; *letters && !code; letters++) {
		int id = 0;
		while (id < OPTION_COUNT && option_specs[id].letter != *letters)
			id++;
		code = id < OPTION_COUNT
			       ? take(parser, (enum option_id)id, NULL)
			       : error_set(parser->err, -EINVAL,
					 "unknown option '-%c' (only -h, -q and -v have one dash)",
					 *letters);
	}
	return code;
}

static int parse_all(struct parser *parser)
{
	bool only_arguments = false;
	int code = 0;
	for (parser->at = 0; parser->at < parser->argc && !code; parser->at++) {
		const char *text = parser->argv[parser->at];
		if (only_arguments || text[0] != '-' || text[1] == '\0') {
			parser->options->arguments[parser->options->argument_count++] = text;
			parser->options->own_count += !only_arguments;
		} else if (strcmp(text, "--") == 0)
			only_arguments = true;
		else if (text[1] == '-')
			code = take_long(parser, text + 2);
		else
			code = take_letters(parser, text + 1);
	}
	return code;
}

/* --data as assignments, before those of --set. */
static int set_data(struct options *options, struct error *err)
{
	const char *folder = options->values[OPTION_DATA];
	if (!folder)
		return 0;
	if (asprintf(&options->data_path, "dataset.path=%s", folder) < 0) {
		options->data_path = NULL;
		return error_set(err, -ENOMEM, "out of memory");
	}
	memmove(options->sets + 2, options->sets, options->set_count * sizeof *options->sets);
	options->sets[0] = options->data_path;
	options->sets[1] = "dataset.recipe=none";
	options->set_count += 2;
	return 0;
}

int options_parse(struct options *options, uint64_t allowed, int argc, const char *const *argv,
	struct error *err)
{
	const size_t most = argc > 0 ? (size_t)argc : 1;
	*options = (struct options){0};
	options->sets = calloc(most + 2, sizeof(*options->sets)); /* --data is two */
	options->arguments = calloc(most, sizeof(*options->arguments));
	options->conditions = calloc(most, sizeof(*options->conditions));
	options->requirements = calloc(most, sizeof(*options->requirements));
	options->checks = calloc(most, sizeof(*options->checks));
	if (!options->sets || !options->arguments || !options->conditions ||
		!options->requirements || !options->checks) {
		options_release(options);
		return error_set(err, -ENOMEM, "out of memory");
	}
	struct parser parser = {
		.options = options, .allowed = allowed, .argc = argc, .argv = argv, .err = err};
	const int code = parse_all(&parser);
	return code ? code : set_data(options, err);
}

void options_release(struct options *options)
{
	free(options->sets);
	free(options->data_path);
	free(options->arguments);
	free(options->conditions);
	free(options->requirements);
	free(options->checks);
	*options = (struct options){0};
}

bool options_given(const struct options *options, enum option_id id)
{
	return (options->given & OPTION_BIT(id)) != 0;
}
