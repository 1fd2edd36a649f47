/* --fleet: the predicted node multiplied on paper. */
#include "harness/base/units.h"
#include "harness/command/what_if.h"
#include "workloads/backend/backend.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLEET_EFFORT = 8 };

/* --- options ------------------------------------------------------------------------------------ */

static int refuse_counts(const char *text, struct error *err)
{
	return error_set(err, -EINVAL,
		"--fleet: '%s' is not a list of nodes from 1 to %d; write it as '1,8,64' or "
		"'1-64*2'",
		text, FLEET_NODES_MAX);
}

/* "8", or "1-64*2". */
static int what_if_fleet_add_counts(struct fleet_answer *answer, const char *word)
{
	char *end;
	unsigned long last;
	unsigned long factor = 2;
	errno = 0;
	const unsigned long first = strtoul(word, &end, 10);
	last = first;
	if (end == word || *word == '-')
		return -EINVAL;
	if (*end == '-') {
		const char *from = end + 1;
		last = strtoul(from, &end, 10);
		if (end == from || *from == '-')
			return -EINVAL;
		if (*end == '*') {
			from = end + 1;
			factor = strtoul(from, &end, 10);
		}
	}
	if (*end || errno || first < 1 || last < first || last > FLEET_NODES_MAX || factor < 2 ||
		factor > FLEET_NODES_MAX)
		return -EINVAL;
	for (unsigned long n = first; n <= last; n *= factor) {
		if (answer->count == FLEET_COUNTS_MAX)
			return -E2BIG;
		answer->counts[answer->count++] = (unsigned)n;
	}
	return 0;
}

static int parse_counts(struct fleet_answer *answer, const char *text, struct error *err)
{
	char *copy = strdup(text);
	char *rest = copy;
	int code = copy ? 0 : -ENOMEM;
	for (char *word = strsep(&rest, ","); word && !code; word = strsep(&rest, ","))
		code = what_if_fleet_add_counts(answer, word);
	free(copy);
	return code ? refuse_counts(text, err) : 0;
}

static void note(struct fleet_answer *answer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void note(struct fleet_answer *answer, const char *format, ...)
{
	va_list args;
	if (answer->note_count == FLEET_NOTES_MAX)
		return;
	va_start(args, format);
	(void)vsnprintf(answer->notes[answer->note_count++], NOTE_BYTES, format, args);
	va_end(args);
}

static int what_if_fleet_refuse(enum option_id id, const char *text, struct error *err)
{
	return error_set(err, -EINVAL, "--%s: '%s' is not a %s", option_specs[id].name, text,
		option_specs[id].metavar);
}

static int read_rate(const struct options *options, enum option_id id, double missing,
	double *value, struct error *err)
{
	const char *text = options_value(options, id);
	uint64_t rate = 0;
	*value = missing;
	if (!text)
		return 0;
	if (units_parse_rate(text, &rate) != 0 || rate == 0)
		return what_if_fleet_refuse(id, text, err);
	*value = (double)rate;
	return 0;
}

static int read_network(const struct options *options, struct fleet *fleet, struct error *err)
{
	const char *latency = options_value(options, OPTION_NETWORK_LATENCY);
	const char *overlap = options_value(options, OPTION_OVERLAP);
	const char *gradient = options_value(options, OPTION_GRADIENT_BYTES);
	uint64_t number = 0;
	if (latency && units_parse_duration(latency, &number) != 0)
		return what_if_fleet_refuse(OPTION_NETWORK_LATENCY, latency, err);
	fleet->network_latency_s = (double)number * 1e-9;
	if (overlap && (units_parse_share(overlap, &fleet->overlap) != 0 || fleet->overlap < 0 ||
			       fleet->overlap > 1))
		return what_if_fleet_refuse(OPTION_OVERLAP, overlap, err);
	fleet->gradient_bytes = NAN;
	if (gradient && units_parse_size(gradient, &number) != 0)
		return what_if_fleet_refuse(OPTION_GRADIENT_BYTES, gradient, err);
	if (gradient)
		fleet->gradient_bytes = (double)number;
	return 0;
}

static int read_exchange(const struct options *options, struct fleet *fleet, struct error *err)
{
	const char *text = options_value(options, OPTION_ALL_REDUCE);
	fleet->exchange = FLEET_EXCHANGE_CHEAPER;
	if (!text)
		return 0;
	for (int e = FLEET_EXCHANGE_RING; e <= FLEET_EXCHANGE_TREE; e++)
		if (strcmp(text, fleet_exchange_name((enum fleet_exchange)e)) == 0)
			fleet->exchange = (enum fleet_exchange)e;
	return fleet->exchange == FLEET_EXCHANGE_CHEAPER
		       ? what_if_fleet_refuse(OPTION_ALL_REDUCE, text, err)
		       : 0;
}

static int read_options(
	const struct options *options, struct fleet_answer *answer, struct error *err)
{
	struct fleet *fleet = &answer->fleet;
	int code = parse_counts(answer, options_value(options, OPTION_FLEET), err);
	if (!code)
		code = read_rate(
			options, OPTION_STORAGE, HUGE_VAL, &fleet->storage_bytes_per_s, err);
	if (!code)
		code = read_rate(options, OPTION_NETWORK_BANDWIDTH, HUGE_VAL,
			&fleet->network_bytes_per_s, err);
	if (!code)
		code = read_network(options, fleet, err);
	return code ? code : read_exchange(options, fleet, err);
}

int what_if_fleet_check(const struct what_if *what_if, struct error *err)
{
	static const enum option_id of_fleet[] = {OPTION_STORAGE, OPTION_NETWORK_BANDWIDTH,
		OPTION_NETWORK_LATENCY, OPTION_GRADIENT_BYTES, OPTION_OVERLAP, OPTION_ALL_REDUCE};
	const struct options *options = &what_if->invocation->options;
	const bool asked = options_given(options, OPTION_FLEET);
	for (size_t i = 0; i < sizeof of_fleet / sizeof of_fleet[0] && !asked; i++)
		if (options_given(options, of_fleet[i]))
			return error_set(err, -EINVAL,
				"--%s belongs to a fleet: give --fleet N, too",
				option_specs[of_fleet[i]].name);
	if (!asked)
		return 0;
	if (what_if->grid.points > 1)
		return error_set(
			err, -EINVAL, "--fleet takes one setting, not %zu", what_if->grid.points);
	struct fleet_answer *answer = calloc(1, sizeof *answer);
	const int code = answer ? read_options(options, answer, err)
				: error_set(err, -ENOMEM, "out of memory");
	free(answer);
	return code;
}

/* --- the node ----------------------------------------------------------------------------------- */

/* Throughput with some of the costs taken away. */
static int throughput_without(const struct model *model, bool step, double *out, struct error *err)
{
	struct model copy;
	struct prediction prediction;
	int code = model_copy(&copy, model, err);
	if (code)
		return code;
	for (int cost = 0; cost < COSTS; cost++) {
		const bool is_step =
			cost == COST_STEP_HOST || cost == COST_STEP_DEVICE || cost == COST_SYNC;
		if (is_step == step)
			copy.replay.scale[cost] = 0;
	}
	code = model_predict(&copy, FLEET_EFFORT, &prediction, err);
	*out = prediction.throughput;
	model_close(&copy);
	return code;
}

/* What one node has to do for a batch, by replay with its step, or all else, taken away. */
static int take_node(const struct what_if *what_if, struct fleet *fleet, struct error *err)
{
	const struct alternative *alternative = &what_if->alternatives[0];
	const struct forecaster_item *items = what_if->forecaster.items;
	const struct calibration *nearest = &items[alternative->forecast.from[0]].calibration;
	struct model model;
	double step_samples_per_s = 0;
	int code = calibration_alter(nearest, &items[alternative->item].config, &model, err);
	if (code)
		return code;
	code = throughput_without(&model, true, &fleet->input_samples_per_s, err);
	if (!code)
		code = throughput_without(&model, false, &step_samples_per_s, err);
	/* A node's step is that of all its devices. */
	const unsigned devices = model.replay.shape.devices > 1 ? model.replay.shape.devices : 1;
	fleet->batch = (double)model.replay.shape.batch_size * devices;
	fleet->step_seconds = step_samples_per_s > 0 && isfinite(step_samples_per_s)
				      ? fleet->batch / step_samples_per_s
				      : 0;
	fleet->bytes_per_sample = nearest->bytes_per_sample;
	fleet->node_samples_per_s = alternative->forecast.throughput;
	model_close(&model);
	return code;
}

static void note_storage(const struct what_if *what_if, struct fleet_answer *answer)
{
	const struct alternative *alternative = &what_if->alternatives[0];
	const struct calibration *nearest =
		&what_if->forecaster.items[alternative->forecast.from[0]].calibration;
	struct fleet *fleet = &answer->fleet;
	char text[UNITS_BYTES];
	char share[UNITS_BYTES];
	const bool given = isfinite(fleet->storage_bytes_per_s);
	const struct record *record = &what_if->record;
	if (!given && record->has_ceilings) {
		const double best = ceilings_read_bytes_per_s(
			&record->ceilings, fleet->bytes_per_sample, 0, true);
		fleet->storage_bytes_per_s = best > 0 ? best : HUGE_VAL; /* NAN: not measured */
	}
	if (!given && isfinite(fleet->storage_bytes_per_s))
		note(answer,
			"file server: %s, as 'mlbench probe' read cold from %.80s; --storage overrides "
			"it",
			units_format_rate(fleet->storage_bytes_per_s, text),
			record->ceilings.storage);
	if (isinf(fleet->storage_bytes_per_s)) {
		note(answer,
			record->has_ceilings
				? "no file server: give --storage, or run 'mlbench probe' with files of this size"
				: "no file server: give --storage");
		fleet->bytes_per_sample =
			isnan(fleet->bytes_per_sample) ? 0 : fleet->bytes_per_sample;
		return;
	}
	if (!(fleet->bytes_per_sample > 0)) {
		note(answer, "no file server: the result does not say how many bytes were read");
		fleet->storage_bytes_per_s = HUGE_VAL;
		fleet->bytes_per_sample = 0;
		return;
	}
	note(answer, "file server: it delivers %s per sample%s%s%s",
		units_format_size(fleet->bytes_per_sample, text),
		nearest->page_cache_share > 0 ? ", although the page cache served " : "",
		nearest->page_cache_share > 0 ? units_format_share(nearest->page_cache_share, share)
					      : "",
		nearest->page_cache_share > 0 ? " of them when it was measured" : "");
}

static void note_network(const struct what_if *what_if, struct fleet_answer *answer)
{
	struct fleet *fleet = &answer->fleet;
	const struct alternative *alternative = &what_if->alternatives[0];
	const struct config *config = &what_if->forecaster.items[alternative->item].config;
	const bool given = !isnan(fleet->gradient_bytes);
	char text[UNITS_BYTES];
	char hidden[NOTE_BYTES / 2] = "none of it overlaps with the step (--overlap)";
	if (fleet->overlap > 0)
		(void)snprintf(hidden, sizeof hidden,
			"it overlaps with up to %g %% of the step's time", 100 * fleet->overlap);
	if (!given)
		fleet->gradient_bytes = backend_gradient_bytes(config);
	if (!given && fleet->gradient_bytes <= 0)
		note(answer,
			"no gradient exchange: the size of step.model '%.64s' is unknown; give "
			"--gradient-bytes",
			config_text(config, KEY_STEP_MODEL));
	else if (isinf(fleet->network_bytes_per_s) && fleet->network_latency_s <= 0)
		note(answer,
			"no network: give --network-bandwidth; without it, the gradient exchange takes "
			"no time");
	else
		note(answer, "gradients: %s%s after each step, %s",
			units_format_size(fleet->gradient_bytes, text),
			given ? "" : " (4 bytes per parameter)", hidden);
}

int what_if_fleet(struct what_if *what_if, struct error *err)
{
	struct fleet_answer *answer = calloc(1, sizeof *answer);
	if (!answer)
		return error_set(err, -ENOMEM, "out of memory");
	what_if->fleet = answer;
	struct fleet *fleet = &answer->fleet;
	int code = read_options(&what_if->invocation->options, answer, err);
	if (!code)
		code = take_node(what_if, fleet, err);
	if (code)
		return code;
	note_storage(what_if, answer);
	note_network(what_if, answer);
	note(answer, "all nodes are assumed to be equally fast: no stragglers");
	code = fleet_check(fleet, err);
	for (size_t i = 0; i < answer->count && !code; i++)
		answer->points[i] = fleet_at(fleet, answer->counts[i]);
	if (!code) {
		answer->storage_binds = fleet_first(fleet, FLEET_LIMIT_STORAGE);
		answer->network_binds = fleet_first(fleet, FLEET_LIMIT_NETWORK);
	}
	return code;
}
