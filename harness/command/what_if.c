/* The question (which point is changed, and into what) and the answers: forecasts, the
 * bottleneck then, what they extrapolate, and a fleet of such nodes. */
#include "harness/command/what_if.h"

#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/log.h"
#include "harness/base/memory.h"
#include "harness/base/units.h"
#include "harness/record/config_json.h"
#include "workloads/backend/backend.h"
#include "workloads/model/emulated_steps.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLEET_EFFORT = 8 };

enum { ASSIGNMENT_BYTES = 4096 };

/* --- the point to start from ------------------------------------------------------------------ */

static int given_point(const struct what_if *what_if, size_t *point, struct error *err)
{
	const char *text = what_if->invocation->options.values[OPTION_POINT];
	int64_t number;
	if (units_parse_integer(text, &number) != 0 || number < 0 ||
		(uint64_t)number >= what_if->record.grid.points)
		return error_set(err, -EINVAL,
			"--point: '%s' is not a point of this result (0 to %zu)", text,
			what_if->record.grid.points - 1);
	*point = (size_t)number;
	if (isnan(calibration_measured(&what_if->record, *point)))
		return error_set(err, -EINVAL, "--point: point %zu was not measured", *point);
	return 0;
}

static int best_point(const struct what_if *what_if, size_t *point, struct error *err)
{
	double most = 0;
	for (size_t i = 0; i < what_if->point_count; i++) {
		const double measured = calibration_measured(&what_if->record, what_if->points[i]);
		if (measured > most) { /* false for NAN */
			most = measured;
			*point = what_if->points[i];
		}
	}
	return most > 0 ? 0
			: error_set(
				  err, -ENODATA, "'%s' has no measurement", what_if->record.folder);
}

/* Points that have a repetition which ran, ascending. */
static int what_if_list_points(struct what_if *what_if, struct error *err)
{
	const struct record *record = &what_if->record;
	bool *there = calloc(record->grid.points, sizeof *there);
	what_if->points = calloc(record->grid.points, sizeof *what_if->points);
	if (!there || !what_if->points) {
		free(there);
		return error_set(err, -ENOMEM, "out of memory");
	}
	for (size_t e = 0; e < record->entry_count; e++)
		there[record->entries[e].point] |= record_counts(record, &record->entries[e]);
	for (size_t i = 0; i < record->grid.points; i++)
		if (there[i])
			what_if->points[what_if->point_count++] = i;
	free(there);
	return 0;
}

static int choose_base(struct what_if *what_if, struct error *err)
{
	what_if->one_source = options_given(&what_if->invocation->options, OPTION_POINT);
	const int code = what_if->one_source ? given_point(what_if, &what_if->base, err)
					     : best_point(what_if, &what_if->base, err);
	if (code)
		return code;
	what_if->base_repeats =
		calibration_repeats(&what_if->record, what_if->base, &what_if->base_repeat_count);
	what_if->base_measured =
		statistics_median(what_if->base_repeats, what_if->base_repeat_count);
	return what_if->base_repeats ? 0 : error_set(err, -ENOMEM, "out of memory");
}

/* --- what is changed -------------------------------------------------------------------------- */

/* "KEY=LIST" or "sweep.KEY=LIST": each key becomes an axis, of one value or more. */
static int set_axis(struct what_if *what_if, const char *assignment, struct error *err)
{
	static const char sweep[] = "sweep.";
	const char *plain = strncmp(assignment, sweep, sizeof sweep - 1) == 0
				    ? assignment + sizeof sweep - 1
				    : assignment;
	const size_t length = strcspn(plain, "=");
	char name[CONFIG_NAME_BYTES];
	char text[ASSIGNMENT_BYTES];
	if (length >= sizeof name || strlen(plain) + sizeof sweep > sizeof text)
		return error_set(err, -EINVAL, "--set: '%.64s...' is too long", plain);
	(void)snprintf(name, sizeof name, "%.*s", (int)length, plain);
	const enum key_id key = config_find_key(name);
	if (key == KEY_COUNT) /* says what is wrong with it */
		return config_set(&what_if->asked, plain, err);
	if (!model_knows(key))
		return calibration_refuse(key, err);
	(void)snprintf(text, sizeof text, "%s%s", sweep, plain);
	return config_set(&what_if->asked, text, err);
}

static int ask(struct what_if *what_if, struct error *err)
{
	const struct options *options = &what_if->invocation->options;
	int code = config_grid_point(&what_if->record.config, &what_if->record.grid, what_if->base,
		&what_if->asked, err);
	for (size_t i = 0; i < options->set_count && !code; i++)
		code = set_axis(what_if, options->sets[i], err);
	if (!code)
		code = config_grid_open(&what_if->asked, &what_if->grid, err);
	if (code)
		return code;
	if (what_if->grid.points > WHAT_IF_POINTS_MAX)
		return error_set(err, -EINVAL,
			"%zu settings are too many: at most %d are predicted at once",
			what_if->grid.points, WHAT_IF_POINTS_MAX);
	what_if->alternatives = calloc(what_if->grid.points, sizeof *what_if->alternatives);
	return what_if->alternatives ? 0 : error_set(err, -ENOMEM, "out of memory");
}

/* --- settings and the points nearest to them -------------------------------------------------- */

static int add_alternatives(struct what_if *what_if, struct error *err)
{
	int code = 0;
	for (size_t i = 0; i < what_if->grid.points && !code; i++) {
		struct config config = {0};
		code = config_grid_point(&what_if->asked, &what_if->grid, i, &config, err);
		if (!code)
			code = config_validate(&config, err);
		if (!code)
			code = backend_validate(&config, err);
		if (code == -ENOTSUP) /* this node's lack, not the result's */
			code = 0;
		if (!code) {
			what_if->alternatives[i].item = what_if->forecaster.count;
			code = forecaster_add(&what_if->forecaster, &config, err);
		}
		config_release(&config);
	}
	return code;
}

static int what_if_add_points(struct what_if *what_if, struct error *err)
{
	const struct record *record = &what_if->record;
	int code = 0;
	for (size_t i = 0; i < what_if->point_count && !code; i++) {
		struct config config = {0};
		code = config_grid_point(
			&record->config, &record->grid, what_if->points[i], &config, err);
		if (!code)
			code = forecaster_add(&what_if->forecaster, &config, err);
		config_release(&config);
	}
	return code;
}

struct candidate {
	size_t item;
	double distance; /* to the nearest alternative */
};

static int nearer(const void *a, const void *b)
{
	const struct candidate *left = a;
	const struct candidate *right = b;
	if (left->distance < right->distance || left->distance > right->distance)
		return left->distance < right->distance ? -1 : 1;
	return left->item < right->item ? -1 : left->item > right->item;
}

static size_t list_candidates(const struct what_if *what_if, struct candidate *list)
{
	const struct forecast_space space = forecaster_space(&what_if->forecaster);
	size_t count = 0;
	for (size_t i = 0; i < what_if->point_count; i++) {
		if (what_if->one_source && what_if->points[i] != what_if->base)
			continue;
		double least = HUGE_VAL;
		for (size_t a = 0; a < what_if->grid.points; a++)
			least = fmin(
				least, forecast_distance(&space, i, what_if->alternatives[a].item));
		list[count++] = (struct candidate){.item = i, .distance = least};
	}
	qsort(list, count, sizeof *list, nearer);
	return count;
}

/* --- how much is replayed ---------------------------------------------------------------------- */

/* Samples that are replayed to calibrate, to see how well the measured points predict each other, and to answer: of one
 * setting together as many as a core replays in about 1.5 s, whatever was recorded.  They are counted and no clock is read, so
 * that the answer is the same on every machine.  Where less is replayed, intervals are wider. */
static const uint64_t CALIBRATE_SAMPLES = 1500000;
static const uint64_t ERRORS_SAMPLES = 1500000;
static const uint64_t ANSWER_SAMPLES = 1500000; /* of one setting at most */
static const uint64_t ANSWERS_SAMPLES = 6000000;
static const uint64_t ELASTICITIES_SAMPLES = 8000000;
enum { EFFORT_LEAST = 3, SOURCES_LEAST = 4 };

/* The least effort that the sources afford, each predicting its nearest ones. */
static unsigned errors_effort(const struct what_if *what_if)
{
	const struct forecaster *forecaster = &what_if->forecaster;
	const size_t pairs = what_if->source_count * FORECAST_NEAREST;
	unsigned effort = forecaster->effort;
	for (size_t i = 0; i < what_if->source_count; i++)
		effort = model_effort_within(
			&forecaster->items[what_if->sources[i]].calibration.model,
			ERRORS_SAMPLES / pairs, EFFORT_LEAST, effort);
	return effort;
}

/* The nearest points that can be calibrated from; the reason of the first when none can. */
static int what_if_calibrate(struct what_if *what_if, struct error *err)
{
	struct candidate *list = calloc(what_if->point_count + 1, sizeof *list);
	if (!list)
		return error_set(err, -ENOMEM, "out of memory");
	const size_t count = list_candidates(what_if, list);
	what_if->forecaster.contention = calibration_contention(&what_if->record, NULL, 0);
	int code = 0;
	while (what_if->points[what_if->base_item] != what_if->base)
		what_if->base_item++;
	what_if->forecaster.measured[what_if->base_item] = what_if->base_measured;
	/* The setting that is changed, and the nearest ones. */
	for (size_t i = 0; i < count; i++)
		if (list[i].item == what_if->base_item) {
			const struct candidate base = list[i];
			memmove(&list[1], &list[0], i * sizeof *list);
			list[0] = base;
		}
	const uint64_t most = replay_samples_done() + CALIBRATE_SAMPLES;
	for (size_t i = 0; i < count && !code && what_if->source_count < WHAT_IF_SOURCES_MAX; i++) {
		const size_t item = list[i].item;
		if (what_if->source_count >= SOURCES_LEAST && replay_samples_done() >= most)
			break;
		code = forecaster_calibrate(&what_if->forecaster, item, what_if->points[item], err);
		if (what_if->forecaster.items[item].calibrated)
			what_if->sources[what_if->source_count++] = item;
	}
	if (!code && what_if->source_count == 0) {
		const struct forecaster_item *first = &what_if->forecaster.items[list[0].item];
		code = error_set(err, first->why_code,
			first->why_code == -ENODATA ? "inconclusive: %s" : "%s",
			first->why_not.text);
	}
	free(list);
	return code;
}

/* How much is spent on each setting, so that a thousand of them take seconds. */
static void set_effort(struct forecaster *forecaster, size_t settings)
{
	static const struct {
		size_t most;
		unsigned effort;
		size_t nearest;
	} table[] = {{1, 24, FORECAST_NEAREST}, {16, 16, FORECAST_NEAREST},
		{128, 8, FORECAST_NEAREST}, {WHAT_IF_POINTS_MAX, 3, 2}};
	size_t row = 0;
	while (row + 1 < COUNT(table) && settings > table[row].most)
		row++;
	forecaster->effort = table[row].effort;
	forecaster->nearest = table[row].nearest;
}

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

static int parse_counts(struct fleet_answer *answer, const char *text, struct error *err)
{
	char *copy = strdup(text);
	char *rest = copy;
	int code = copy ? 0 : -ENOMEM;
	for (char *word = strsep(&rest, ","); word && !code; word = strsep(&rest, ","))
		code = fleet_add_counts(answer, word);
	free(copy);
	if (!code)
		return 0;
	return error_set(err, -EINVAL,
		"--fleet: '%s' is not a list of nodes from 1 to %d; write it as '1,8,64' or "
		"'1-64*2'",
		text, FLEET_NODES_MAX);
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
		(units_parse_share(overlap, &fleet->overlap) != 0 || fleet->overlap < 0 ||
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
	int code = parse_counts(answer, options->values[OPTION_FLEET], err);
	if (!code)
		code = read_quantity(options, OPTION_STORAGE, units_parse_rate, 1,
			&fleet->storage_bytes_per_s, err);
	if (!code)
		code = read_network(options, fleet, err);
	return code ? code : read_exchange(options, fleet, err);
}

static int what_if_fleet_check(const struct what_if *what_if, struct error *err)
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

int what_if_ask(struct what_if *what_if, struct error *err)
{
	const struct record *record = &what_if->record;
	const struct options *options = &what_if->invocation->options;
	if (options->set_count == 0 && !options_given(options, OPTION_FLEET))
		return error_set(err, -EINVAL,
			"'mlbench what-if' needs a change, as --set decode.workers=8, or --fleet N");
	int code = what_if_list_points(what_if, err);
	if (!code)
		code = choose_base(what_if, err);
	if (!code)
		code = ask(what_if, err);
	if (!code)
		code = what_if_fleet_check(what_if, err);
	if (!code)
		code = forecaster_open(&what_if->forecaster, record,
			what_if->point_count + what_if->grid.points, 0, err);
	if (!code)
		set_effort(&what_if->forecaster, what_if->grid.points);
	if (!code)
		code = what_if_add_points(what_if, err);
	if (!code)
		code = add_alternatives(what_if, err);
	if (code)
		return code;
	for (size_t i = 0; i < record->config.axis_count; i++)
		forecaster_take_key(&what_if->forecaster, record->config.axes[i].key);
	for (size_t i = 0; i < what_if->asked.axis_count; i++)
		forecaster_take_key(&what_if->forecaster, what_if->asked.axes[i].key);
	forecaster_place(&what_if->forecaster);
	return what_if_calibrate(what_if, err);
}

/* --- the answers ------------------------------------------------------------------------------ */

/* Breaks ties among the costs of one stage; too small to change the order of stages. */
static const double SAME_STAGE = 1e-3;

static void add_note(struct alternative *alternative, const char *text)
{
	for (size_t i = 0; i < alternative->note_count; i++)
		if (strcmp(alternative->notes[i], text) == 0)
			return;
	if (alternative->note_count < WHAT_IF_NOTES_MAX)
		(void)snprintf(
			alternative->notes[alternative->note_count++], NOTE_BYTES, "%s", text);
}

/* step.time says what a step takes, whatever the device's name. */
static void note_names(struct alternative *alternative, const struct what_if *what_if)
{
	bool names = false;
	bool time = false;
	for (size_t i = 0; i < what_if->asked.axis_count; i++) {
		const enum key_id key = what_if->asked.axes[i].key;
		names = names || key == KEY_STEP_DEVICE || key == KEY_STEP_MODEL;
		time = time || key == KEY_STEP_TIME || key == KEY_STEP_TIMES;
	}
	if (names && !time && config_sets_step_time(&what_if->asked))
		add_note(alternative,
			config_integer(&what_if->asked, KEY_STEP_TIME) > 0
				? "step.time is set in the result, so step.device and step.model have no effect; "
				  "step.time=0 uses their published times"
				: "step.times are set in the result, so step.device and step.model have no effect");
}

/* Which stage's costs throughput answers to most, and which of them. */
static void take_limit(struct alternative *alternative, const struct elasticities *e)
{
	double most = 0;
	double sum[COSTS] = {0};
	int top = -1;
	for (int a = 0; a < COSTS; a++)
		for (int b = 0; b < COSTS; b++)
			if (strcmp(replay_cost_stage((enum replay_cost)a),
				    replay_cost_stage((enum replay_cost)b)) == 0)
				sum[a] += e->costs[b].value;
	for (int a = 0; a < COSTS; a++) {
		const double rank = sum[a] + SAME_STAGE * e->costs[a].value;
		if (sum[a] > 0 && e->costs[a].value > 0 && rank > most) {
			most = rank;
			top = a;
		}
	}
	if (top < 0)
		return;
	(void)snprintf(alternative->stage, sizeof alternative->stage, "%s",
		replay_cost_stage((enum replay_cost)top));
	(void)snprintf(alternative->resource, sizeof alternative->resource, "%s",
		replay_cost_resource((enum replay_cost)top));
}

/* From the nearest calibration: the others differ in how much, seldom in what. */
static int what_if_explain(
	struct what_if *what_if, struct alternative *alternative, struct error *err)
{
	const struct forecaster *forecaster = &what_if->forecaster;
	const struct calibration *nearest =
		&forecaster->items[alternative->forecast.from[0]].calibration;
	struct model model;
	struct elasticities elasticities;
	int code = calibration_alter(
		nearest, &forecaster->items[alternative->item].config, &model, err);
	if (code)
		return code;
	/* What model_alter had to say, beside what the calibration said already. */
	for (size_t i = nearest->model.note_count; i < model.note_count; i++)
		add_note(alternative, model.notes[i]);
	note_names(alternative, what_if);
	/* Of larger tables only the stage is told, by the wait states of the replay. */
	const bool closely =
		what_if->grid.points == 1 ||
		what_if->grid.points * model_elasticities_samples(&model) <= ELASTICITIES_SAMPLES;
	if (closely)
		code = model_elasticities(&model, 1, &elasticities, err);
	else
		(void)snprintf(alternative->stage, sizeof alternative->stage, "%s",
			forecaster_limit(
				forecaster, alternative->forecast.from[0], alternative->item));
	if (!code && closely)
		take_limit(alternative, &elasticities);
	model_close(&model);
	return code;
}

/* How well the measured points predict each other, as far as replays for it go. */
static void find_errors(struct what_if *what_if)
{
	struct forecaster *forecaster = &what_if->forecaster;
	const unsigned effort = forecaster->effort;
	forecaster->effort = errors_effort(what_if);
	forecaster->samples_most = replay_samples_done() + ERRORS_SAMPLES;
	const struct forecast_input input = forecaster_input(forecaster);
	forecast_errors_find(&input, &what_if->errors);
	forecaster->effort = effort;
}

/* The effort that one of the settings affords. */
static unsigned answer_effort(
	const struct what_if *what_if, const struct alternative *alternative, unsigned most)
{
	const struct forecaster *forecaster = &what_if->forecaster;
	const uint64_t share = ANSWERS_SAMPLES / what_if->grid.points;
	const uint64_t samples = share < ANSWER_SAMPLES ? share : ANSWER_SAMPLES;
	struct model model;
	struct error unused;
	if (calibration_alter(&forecaster->items[what_if->sources[0]].calibration,
		    &forecaster->items[alternative->item].config, &model, &unused))
		return most;
	const unsigned effort = model_effort_within(
		&model, samples / (forecaster->nearest + 1), EFFORT_LEAST, most);
	model_close(&model);
	return effort;
}

int what_if_answer(struct what_if *what_if, struct error *err)
{
	const unsigned effort = what_if->forecaster.effort;
	const uint64_t begun = clock_thread_cpu_ns();
	find_errors(what_if);
	const struct forecast_input input = forecaster_input(&what_if->forecaster);
	int code = 0;
	for (size_t i = 0; i < what_if->grid.points && !code; i++) {
		const uint64_t spent = clock_thread_cpu_ns() - begun;
		if (i > 0 && (atomic_load(what_if->invocation->stop) ||
				     spent > WHAT_IF_SECONDS_MAX * NS_PER_S))
			break;
		struct alternative *alternative = &what_if->alternatives[i];
		what_if->forecaster.effort = answer_effort(what_if, alternative, effort);
		forecast_change(&input, what_if->errors.widening, what_if->base_item,
			alternative->item, &alternative->forecast);
		code = alternative->forecast.known ? what_if_explain(what_if, alternative, err)
						   : error_set(err, -ENODATA, "inconclusive: %s",
							     alternative->forecast.why);
		alternative->done = !code;
		what_if->done += !code;
	}
	log_detail("%llu samples were replayed, from %zu measured points",
		(unsigned long long)replay_samples_done(), what_if->source_count);
	if (!code && what_if->done < what_if->grid.points)
		log_warn(
			"stopped after %d s of computing: %zu of %zu settings predicted; ask for fewer",
			WHAT_IF_SECONDS_MAX, what_if->done, what_if->grid.points);
	return code;
}

size_t what_if_measured_item(const struct what_if *what_if, const struct alternative *alternative)
{
	const struct forecast_space space = forecaster_space(&what_if->forecaster);
	for (size_t i = 0; i < what_if->point_count; i++)
		if (!isnan(what_if->forecaster.measured[i]) &&
			forecast_distance(&space, i, alternative->item) <= 0)
			return i;
	return what_if->point_count;
}

/* --- a fleet: the predicted node multiplied on paper ------------------------------------------ */

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
	const struct alternative *alternative = &what_if->alternatives[0];
	const struct calibration *nearest =
		&what_if->forecaster.items[alternative->forecast.from[0]].calibration;
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
	const struct alternative *alternative = &what_if->alternatives[0];
	const struct config *config = &what_if->forecaster.items[alternative->item].config;
	const bool given = !isnan(fleet->gradient_bytes);
	char text[UNITS_BYTES];
	char hidden[NOTE_BYTES / 2] = "none of it overlaps with the step (--overlap)";
	if (fleet->overlap > 0)
		(void)snprintf(hidden, sizeof hidden,
			"it overlaps with up to %g %% of the step's time", 100 * fleet->overlap);
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
