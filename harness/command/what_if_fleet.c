/* A fleet of such nodes, and the options that say what they share. */
#include "harness/command/what_if.h"

#include "harness/base/array.h"
#include "harness/base/memory.h"
#include "harness/base/units.h"
#include "harness/report/report_ranks.h"
#include "workloads/model/emulated_steps.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Deviation of the nodes' speeds beyond which they are no fleet. */
static const double SPREAD_MOST = 0.5;
enum { FLEET_EFFORT = 8 };
/* Half of what measured ranks showed to be wrong, at 90 %. */
static const double MISS_DOUBT = 0.5 * 1.645;
/* Waiting that differs by less from what is predicted is not mentioned. */
static const double TOGETHER_LESS = 0.8, TOGETHER_MORE = 1.25;
/* Of the step, the backward pass, at its end. */
static const double BACKWARD_SHARE = 2.0 / 3;
/* Samples that are replayed for the weak and for the strong scaling, about. */
static const uint64_t FLEET_SAMPLES = 400000;

/* --- options of --fleet ----------------------------------------------------------------------- */

/* "8", or "1-64*2". */
static int fleet_add_counts(struct fleet_answer *answer, const char *word)
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

static int order_counts(const void *a, const void *b)
{
	const unsigned left = *(const unsigned *)a;
	const unsigned right = *(const unsigned *)b;
	return (left > right) - (left < right);
}

/* Ascending, each once. */
static void sort_counts(struct fleet_answer *answer)
{
	size_t kept = 0;
	qsort(answer->counts, answer->count, sizeof *answer->counts, order_counts);
	for (size_t i = 0; i < answer->count; i++)
		if (i == 0 || answer->counts[i] != answer->counts[kept - 1])
			answer->counts[kept++] = answer->counts[i];
	answer->count = kept;
}

/* "1,8,64", and how much the nodes differ: "1,8,64:3%". */
static int parse_counts(struct fleet_answer *answer, const char *text, struct error *err)
{
	char *copy = strdup(text);
	char *spread = copy;
	int code = copy ? 0 : -ENOMEM;
	char *rest = strsep(&spread, ":");
	if (spread &&
		(units_parse_share(spread, &answer->spread.deviation) != 0 ||
			answer->spread.deviation < 0 || answer->spread.deviation > SPREAD_MOST))
		code = error_set(err, -EINVAL,
			"--fleet: '%s' is not how much nodes differ, a share of 0 to %g %%; write it as '8,64:3%%'",
			spread, 100 * SPREAD_MOST);
	else
		for (char *word = strsep(&rest, ","); word && !code; word = strsep(&rest, ","))
			if (fleet_add_counts(answer, word))
				code = error_set(err, -EINVAL,
					"--fleet: '%s' is not a list of nodes from 1 to %d; write it as '1,8,64' or "
					"'1-64*2'",
					text, FLEET_NODES_MAX);
	sort_counts(answer);
	free(copy);
	return code;
}

/* Each is said once. */
static void note(struct fleet_answer *answer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void note(struct fleet_answer *answer, const char *format, ...)
{
	char text[NOTE_BYTES];
	va_list args;
	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	for (size_t i = 0; i < answer->note_count; i++)
		if (strcmp(answer->notes[i], text) == 0)
			return;
	if (answer->note_count < FLEET_NOTES_MAX)
		memcpy(answer->notes[answer->note_count++], text, NOTE_BYTES);
}

static int fleet_refuse(enum option_id id, const char *text, struct error *err)
{
	return error_set(err, -EINVAL, "--%s: '%s' is not a %s", option_specs[id].name, text,
		option_specs[id].metavar);
}

static int read_quantity(const struct options *options, enum option_id id,
	int (*parse)(const char *, uint64_t *), uint64_t least, double *value, struct error *err)
{
	const char *text = options->values[id];
	uint64_t number = 0;
	if (!text)
		return 0;
	char bytes[UNITS_BYTES];
	if (parse == units_parse_size && units_bytes_for_bits(text, bytes))
		return error_set(err, -EINVAL,
			"--%s: '%s' counts bits, and a size counts bytes (did you mean %s?)",
			option_specs[id].name, text, bytes);
	if (parse(text, &number) != 0 || number < least)
		return fleet_refuse(id, text, err);
	*value = (double)number;
	return 0;
}

static int read_network(const struct options *options, struct fleet *fleet, struct error *err)
{
	const char *overlap = options->values[OPTION_OVERLAP];
	double latency_ns = 0;
	int code = read_quantity(options, OPTION_NETWORK_BANDWIDTH, units_parse_rate, 1,
		&fleet->network_bytes_per_s, err);
	if (!code)
		code = read_quantity(
			options, OPTION_NETWORK_LATENCY, units_parse_duration, 0, &latency_ns, err);
	fleet->network_latency_s = latency_ns * 1e-9;
	if (!code && overlap &&
		(units_parse_share(overlap, &fleet->overlap) != 0 || !(fleet->overlap >= 0) ||
			fleet->overlap > 1))
		code = fleet_refuse(OPTION_OVERLAP, overlap, err);
	return code ? code
		    : read_quantity(options, OPTION_GRADIENT_BYTES, units_parse_size, 0,
			      &fleet->gradient_bytes, err);
}

static int read_exchange(const struct options *options, struct fleet *fleet, struct error *err)
{
	const char *text = options->values[OPTION_ALL_REDUCE];
	fleet->exchange = FLEET_EXCHANGE_CHEAPER;
	if (!text)
		return 0;
	for (int e = FLEET_EXCHANGE_RING; e <= FLEET_EXCHANGE_TREE; e++)
		if (strcmp(text, fleet_exchange_name((enum fleet_exchange)e)) == 0)
			fleet->exchange = (enum fleet_exchange)e;
	return fleet->exchange == FLEET_EXCHANGE_CHEAPER
		       ? fleet_refuse(OPTION_ALL_REDUCE, text, err)
		       : 0;
}

static int read_options(
	const struct options *options, struct fleet_answer *answer, struct error *err)
{
	struct fleet *fleet = &answer->fleet;
	fleet->storage_bytes_per_s = fleet->network_bytes_per_s = HUGE_VAL;
	fleet->gradient_bytes = NAN;
	fleet->overlap = NAN;
	int code = parse_counts(answer, options->values[OPTION_FLEET], err);
	if (!code)
		code = read_quantity(options, OPTION_STORAGE, units_parse_rate, 1,
			&fleet->storage_bytes_per_s, err);
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
	for (size_t i = 0; i < COUNT(of_fleet) && !asked; i++)
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

/* --- the node that is multiplied -------------------------------------------------------------- */

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
			cost == COST_STEP_HOST || cost == COST_STEP_DEVICE || cost >= COST_SYNC;
		if (is_step == step)
			copy.replay.scale[cost] = 0;
	}
	code = model_predict(&copy, 0, &prediction, err);
	*out = prediction.throughput;
	model_close(&copy);
	return code;
}

/* What one node has to do for a batch, by replay with its step, or all else, taken away. */
static int take_node(
	const struct model *model, double samples_per_s, struct fleet *fleet, struct error *err)
{
	double step_samples_per_s = 0;
	int code = throughput_without(model, true, &fleet->input_samples_per_s, err);
	if (!code)
		code = throughput_without(model, false, &step_samples_per_s, err);
	/* A node's step is that of all its devices. */
	const unsigned devices = model->replay.shape.devices > 1 ? model->replay.shape.devices : 1;
	fleet->batch = (double)model->replay.shape.batch_size * devices;
	fleet->step_seconds = step_samples_per_s > 0 && isfinite(step_samples_per_s)
				      ? fleet->batch / step_samples_per_s
				      : 0;
	fleet->node_samples_per_s = samples_per_s;
	return code;
}

/* The nearest calibration, and what is asked of it. */
static const struct calibration *nearest_of(const struct what_if *what_if)
{
	const struct alternative *alternative = &what_if->alternatives[0];
	return &what_if->forecaster.items[alternative->forecast.from[0]].calibration;
}

static const struct config *config_of(const struct what_if *what_if)
{
	return &what_if->forecaster.items[what_if->alternatives[0].item].config;
}

/* --- what nodes share ------------------------------------------------------------------------- */

/* Whether the run read into pages of another kind than the data sheet's, whose rate is then not its own. */
static bool other_pages(const struct what_if *what_if, char run[NAME_BYTES])
{
	const struct record *record = &what_if->record;
	struct measurement *m = calloc(1, sizeof *m);
	run[0] = '\0';
	for (size_t i = 0; m && i < record->entry_count && !run[0]; i++) {
		if (record->entries[i].point != what_if->base ||
			record_load(record, i, m, NULL) != 0)
			continue;
		(void)snprintf(run, NAME_BYTES, "%s", m->read_pages);
		measurement_release(m);
	}
	free(m);
	return memory_pages_differ(run, record->ceilings.read_pages);
}

static void note_storage(const struct what_if *what_if, struct fleet_answer *answer)
{
	char pages[NAME_BYTES];
	const struct calibration *nearest = nearest_of(what_if);
	struct fleet *fleet = &answer->fleet;
	char text[UNITS_BYTES];
	char share[UNITS_BYTES];
	const bool given = isfinite(fleet->storage_bytes_per_s);
	const struct record *record = &what_if->record;
	const bool comparable = given || !record->has_ceilings || !other_pages(what_if, pages);
	if (!comparable) {
		note(answer,
			"file server: not available: the run read into %s, and 'mlbench probe' into %s; give --storage",
			pages, record->ceilings.read_pages);
		fleet->bytes_per_sample =
			isnan(fleet->bytes_per_sample) ? 0 : fleet->bytes_per_sample;
		fleet->storage_bytes_per_s = HUGE_VAL;
		return;
	}
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
	const struct config *config = config_of(what_if);
	const bool given = !isnan(fleet->gradient_bytes);
	char text[UNITS_BYTES];
	char bucket[UNITS_BYTES];
	char hidden[NOTE_BYTES / 2] = "none of which overlaps with the step (--overlap)";
	if (fleet->overlap > 0)
		(void)snprintf(hidden, sizeof hidden,
			"which overlap with the last %.0f %% of the step, except the last one",
			100 * fleet->overlap);
	if (!given)
		fleet->gradient_bytes = model_gradient_bytes(config);
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
		note(answer, "gradients: %s%s a step, in buckets of at most %s, %s",
			units_format_size(fleet->gradient_bytes, text),
			given || config_real(config, KEY_SYNC_GRADIENTS) > 0
				? ""
				: " (4 bytes per parameter)",
			units_format_size(fleet->bucket_bytes, bucket), hidden);
}

/* --- ranks that were measured ----------------------------------------------------------------- */

/* Of repetitions that all of them have. */
static int keep_own_rounds(
	const struct ranks_view *view, struct fleet_answer *answer, struct error *err)
{
	struct fleet_measured *const measured = &answer->measured;
	size_t repeats = RANK_ROUNDS_MOST;
	for (unsigned r = 0; r < view->count; r++)
		repeats = view->of[r].repeats < repeats ? view->of[r].repeats : repeats;
	answer->own_seconds = calloc(view->count * repeats + 1, sizeof *answer->own_seconds);
	answer->factors = calloc(view->count, sizeof *answer->factors);
	if (!answer->own_seconds || !answer->factors)
		return error_set(err, -ENOMEM, "out of memory");
	bool positive = repeats > 0;
	for (unsigned r = 0; r < view->count; r++)
		for (size_t i = 0; i < repeats; i++) {
			answer->own_seconds[r * repeats + i] = view->of[r].own_round_s[i];
			positive = positive && view->of[r].own_round_s[i] > 0;
		}
	measured->repeats = repeats;
	measured->own_seconds = answer->own_seconds;
	if (positive && !(answer->spread.deviation > 0))
		answer->spread = fleet_spread_of(measured, answer->factors);
	return 0;
}

/* The row in which the measured ones stand beside the predicted ones. */
static void add_measured_count(struct fleet_answer *answer)
{
	if (answer->count == FLEET_COUNTS_MAX)
		return;
	answer->counts[answer->count++] = answer->measured.ranks;
	sort_counts(answer);
}

/* The network over which the exchange would have taken what it did. */
static void take_measured_exchange(
	const struct ranks_view *view, const struct what_if *what_if, struct fleet_answer *answer)
{
	struct fleet *const fleet = &answer->fleet;
	const struct options *const options = &what_if->invocation->options;
	char text[UNITS_BYTES];
	answer->measured.exposed_seconds = view->exchange * view->round_s;
	if (options_given(options, OPTION_NETWORK_BANDWIDTH) ||
		options_given(options, OPTION_GRADIENT_BYTES))
		return;
	fleet->gradient_bytes = view->bytes;
	fleet->network_bytes_per_s =
		fleet_bandwidth_of(fleet, view->count, answer->measured.exposed_seconds);
	if (isfinite(fleet->network_bytes_per_s))
		note(answer,
			"network: %s, by the exchanges of %u ranks; --network-bandwidth overrides it",
			units_format_rate(fleet->network_bytes_per_s, text), view->count);
}

/* A rank's model has what it waited for others and exchanged as a part of its own rounds: without that it is a node alone. */
static int take_ranks(struct what_if *what_if, struct model *model, struct error *err)
{
	struct fleet_answer *const answer = what_if->fleet;
	struct report report = {0};
	struct ranks_view view = {0};
	struct prediction alone;
	model->replay.shape.ranks = 1;
	int code = model_predict(model, FLEET_EFFORT, &alone, err);
	if (!code)
		code = take_node(model, alone.throughput, &answer->fleet, err);
	answer->node = alone.interval;
	if (!code)
		code = report_open(&report, &what_if->record, err);
	if (!code)
		code = report_ranks_open(&view, &report, what_if->base, err);
	if (!code && view.count > 1 && view.known == view.count && view.rate > 0 &&
		view.round_s > 0) {
		answer->measured = (struct fleet_measured){.ranks = view.count,
			.round_seconds = view.round_s,
			.samples_per_s = view.rate};
		code = keep_own_rounds(&view, answer, err);
		take_measured_exchange(&view, what_if, answer);
		if (what_if->asked.axis_count > 0) /* they tell how ranks differ, and no more */
			answer->measured.ranks = 0;
		else
			add_measured_count(answer);
	} else if (!code) {
		note(answer,
			"not all ranks' measurements are there (ranks/): how much they differ is unknown");
	}
	ranks_view_close(&view);
	report_close(&report);
	return code;
}

/* --- weak and strong scaling ------------------------------------------------------------------ */

static int open_rounds(struct fleet_replay **out, const struct fleet_answer *answer,
	const struct fleet *fleet, const struct model *model, uint64_t samples, struct error *err)
{
	const int code = fleet_check(fleet, err);
	*out = NULL;
	return code ? code : fleet_replay_open(out, model, &answer->spread, samples, err);
}

/* Makes the model say of the measured ranks what they did: by how much they wait for each other, and by how fast one is. */
static int mend_by_ranks(
	struct fleet_answer *answer, struct fleet_replay *replay, struct error *err)
{
	const struct fleet_measured *const measured = &answer->measured;
	struct fleet *const fleet = &answer->fleet;
	struct fleet_round round;
	int code = fleet_wait_for_slowest(fleet, replay, &measured->ranks, 1, &round, err);
	if (code)
		return code;
	const struct fleet_point before = fleet_at(fleet, measured->ranks);
	answer->unmended = before.samples_per_s;
	answer->together = fleet_replay_mend(replay, &round, fleet_waiting_of(measured));
	if (before.limit == FLEET_LIMIT_STORAGE)
		return 0;
	code = fleet_wait_for_slowest(fleet, replay, &measured->ranks, 1, &round, err);
	const double faster =
		measured->samples_per_s / fleet_at(fleet, measured->ranks).samples_per_s;
	fleet->node_samples_per_s *= faster;
	answer->node.low *= faster;
	answer->node.high *= faster;
	return code;
}

/* Each node has its batch. */
static int scale_weakly(struct fleet_answer *answer, const struct model *model, struct error *err)
{
	struct fleet_replay *replay;
	int code = open_rounds(&replay, answer, &answer->fleet, model, FLEET_SAMPLES, err);
	answer->together = 1;
	if (!code && answer->measured.ranks > 0)
		code = mend_by_ranks(answer, replay, err);
	if (!code)
		code = fleet_wait_for_slowest(
			&answer->fleet, replay, answer->counts, answer->count, answer->rounds, err);
	fleet_replay_close(replay);
	/* What was missed is missed no more, but not for certain. */
	const double doubt =
		answer->measured.ranks > 0
			? MISS_DOUBT * log(answer->unmended / answer->measured.samples_per_s)
			: 0;
	const double node = answer->fleet.node_samples_per_s;
	const struct interval relative = {exp(-hypot(log(answer->node.low / node), doubt)),
		exp(hypot(log(answer->node.high / node), doubt))};
	for (size_t i = 0; i < answer->count && !code; i++) {
		answer->points[i] = fleet_at(&answer->fleet, answer->counts[i]);
		answer->intervals[i] = fleet_interval(
			&answer->fleet, answer->counts[i], &relative, &answer->rounds[i]);
	}
	return code;
}

/* All nodes together have the batch that the fewest had: this many of `nodes` get a part of it. */
static int scale_strongly_to(const struct what_if *what_if, const struct model *model,
	uint32_t batch, size_t at, struct fleet_strong *out, struct error *err)
{
	const struct fleet_answer *const answer = what_if->fleet;
	const unsigned nodes = answer->counts[at];
	struct fleet fleet = answer->fleet;
	struct fleet_round round;
	struct model part = {0};
	struct config config = {0};
	struct prediction whole;
	struct prediction other;
	struct fleet_replay *replay = NULL;
	int code = model_copy(&part, model, err);
	if (!code)
		code = config_copy(&config, &model->config, err);
	if (!code) {
		config.values[KEY_BATCH_SIZE].integer = batch;
		code = model_alter(&part, &model->config, &config, err);
	}
	if (!code)
		code = model_predict(model, 0, &whole, err);
	if (!code)
		code = model_predict(&part, 0, &other, err);
	if (!code)
		code = take_node(&part,
			fleet.node_samples_per_s * other.throughput / whole.throughput, &fleet,
			err);
	if (!code)
		code = open_rounds(
			&replay, answer, &fleet, &part, FLEET_SAMPLES / answer->count, err);
	if (!code) {
		fleet_replay_set_waiting(replay, answer->together);
		code = fleet_wait_for_slowest(&fleet, replay, &nodes, 1, &round, err);
	}
	fleet_replay_close(replay);
	if (!code) {
		out->batch = batch;
		out->samples_per_s = fleet_at(&fleet, nodes).samples_per_s;
	}
	for (size_t i = model->note_count; i < part.note_count && !code; i++)
		note(what_if->fleet, "strong scaling: %s", part.notes[i]);
	config_release(&config);
	model_close(&part);
	return code;
}

static int scale_strongly(struct what_if *what_if, const struct model *model, struct error *err)
{
	struct fleet_answer *const answer = what_if->fleet;
	const uint64_t all = (uint64_t)model->replay.shape.batch_size * answer->counts[0];
	const double first = answer->points[0].samples_per_s / answer->counts[0];
	for (size_t i = 0; i < answer->count; i++)
		answer->strong[i] = (struct fleet_strong){.efficiency = NAN};
	if (answer->count > 1) /* else there is nothing that it scales from */
		answer->strong[0] = (struct fleet_strong){
			model->replay.shape.batch_size, answer->points[0].samples_per_s, 1};
	for (size_t i = 1; i < answer->count && answer->counts[i] <= all; i++) {
		struct fleet_strong *const strong = &answer->strong[i];
		const unsigned nodes = answer->counts[i];
		const uint64_t batch = (all + nodes / 2) / nodes;
		const int code = scale_strongly_to(what_if, model, (uint32_t)batch, i, strong, err);
		if (code == -ENOTSUP) { /* a step whose time at another batch is unknown */
			note(answer, "strong scaling: not available: %s", err->text);
			return 0;
		}
		if (code)
			return code;
		strong->efficiency = strong->samples_per_s / nodes / first;
	}
	return 0;
}

/* --- the answer ------------------------------------------------------------------------------- */

static void note_waiting(struct fleet_answer *answer)
{
	char text[UNITS_BYTES];
	size_t beyond = 0;
	if (answer->spread.measured > 0)
		note(answer,
			"nodes differ by %s in speed (standard deviation), as the %u measured ranks do",
			units_format_share(answer->spread.deviation, text),
			answer->spread.measured);
	else if (answer->spread.deviation > 0)
		note(answer, "nodes differ by %s in speed (standard deviation)",
			units_format_share(answer->spread.deviation, text));
	else
		note(answer,
			"nodes are assumed to be equally fast on average; --fleet N:3%% lets them differ");
	if (answer->measured.ranks > 0 &&
		(answer->together < TOGETHER_LESS || answer->together > TOGETHER_MORE))
		note(answer,
			"waiting: the measured ranks waited %s of what nodes would that vary each on its "
			"own; so do the predicted ones",
			units_format_share(answer->together, text));
	while (beyond < answer->count && !answer->rounds[beyond].beyond)
		beyond++;
	if (beyond < answer->count)
		note(answer,
			"from %u nodes on there are more nodes than rounds were recorded: waiting is "
			"bounded by the slowest one recorded",
			answer->counts[beyond]);
}

static void take_sync_keys(const struct config *config, struct fleet *fleet)
{
	fleet->bucket_bytes = config_real(config, KEY_SYNC_BUCKET);
	if (isnan(fleet->overlap))
		fleet->overlap = config_on(config, KEY_SYNC_OVERLAP) ? BACKWARD_SHARE : 0;
}

static int take_nodes(struct what_if *what_if, struct model *model, struct error *err)
{
	const struct forecast *const forecast = &what_if->alternatives[0].forecast;
	struct fleet_answer *const answer = what_if->fleet;
	take_sync_keys(config_of(what_if), &answer->fleet);
	if (model->replay.shape.ranks > 1)
		return take_ranks(what_if, model, err);
	answer->node = forecast->interval;
	return take_node(model, forecast->throughput, &answer->fleet, err);
}

int what_if_fleet(struct what_if *what_if, struct error *err)
{
	struct fleet_answer *answer = calloc(1, sizeof *answer);
	struct model model = {0};
	if (!answer)
		return error_set(err, -ENOMEM, "out of memory");
	what_if->fleet = answer;
	answer->fleet.bytes_per_sample = nearest_of(what_if)->bytes_per_sample;
	int code = read_options(&what_if->invocation->options, answer, err);
	if (!code)
		code = calibration_alter(nearest_of(what_if), config_of(what_if), &model, err);
	if (code)
		return code;
	code = take_nodes(what_if, &model, err);
	if (!code) {
		note_storage(what_if, answer);
		note_network(what_if, answer);
		code = scale_weakly(answer, &model, err);
	}
	if (!code) {
		note_waiting(answer);
		answer->storage_binds = fleet_first(&answer->fleet, FLEET_LIMIT_STORAGE);
		answer->network_binds = fleet_first(&answer->fleet, FLEET_LIMIT_NETWORK);
		answer->slowest_binds = fleet_first(&answer->fleet, FLEET_LIMIT_SLOWEST);
		code = scale_strongly(what_if, &model, err);
	}
	model_close(&model);
	return code;
}

void what_if_fleet_close(struct fleet_answer *answer)
{
	if (answer) {
		free(answer->own_seconds);
		free(answer->factors);
	}
	free(answer);
}
