/* The grammar of gates, and their outcomes. */
#include "harness/analyze/comparison.h"

#include "harness/analyze/student.h"
#include "harness/base/array.h"
#include "harness/base/text.h"
#include "harness/base/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- figures by name -------------------------------------------------------------------------- */

static double ratio(double part, double whole)
{
	return whole > 0 ? part / whole : (double)NAN;
}

/* A figure that is one expression of the measurement, or of its stage. */
#define RUN_METRIC(name, figure)                                                               \
	static double name(const struct measurement *m, const struct stage_measurement *stage) \
	{                                                                                      \
		(void)stage;                                                                   \
		return figure;                                                                 \
	}
#define STAGE_METRIC(name, figure)                                                             \
	static double name(const struct measurement *m, const struct stage_measurement *stage) \
	{                                                                                      \
		(void)m;                                                                       \
		return figure;                                                                 \
	}

/* --- of the run ------------------------------------------------------------------------------- */

RUN_METRIC(throughput, m->throughput)

static double step_time(const struct measurement *m, const struct stage_measurement *stage)
{
	(void)stage;
	const struct stage_measurement *step = measurement_stage(m, STAGE_STEP);
	return step && step->service.count > 0 ? histogram_mean(&step->service) : (double)NAN;
}

RUN_METRIC(step_busy, m->step_utilisation)
RUN_METRIC(step_wait, m->step_wait_share)
RUN_METRIC(cpu_time, 1e9 * ratio(m->cpu_seconds, (double)m->samples))
RUN_METRIC(bytes_read_rate, m->bytes_read_per_s)
RUN_METRIC(cached, m->page_cache_share)
RUN_METRIC(resident, m->rss_peak_bytes > 0 ? (double)m->rss_peak_bytes : (double)NAN)
RUN_METRIC(others, m->cores_busy_outside)

static const struct metric_kind run_kinds[] = {
	{"throughput", "throughput", METRIC_PER_S, METRIC_MORE_IS_BETTER, throughput},
	{"step_time", "mean time of a step", METRIC_NS, METRIC_LESS_IS_BETTER, step_time},
	{"step_utilisation", "share of the time that the step computes", METRIC_SHARE,
		METRIC_MORE_IS_BETTER, step_busy},
	{"step_wait", "share of the time that the step waits for a batch", METRIC_SHARE,
		METRIC_LESS_IS_BETTER, step_wait},
	{"cpu_time", "CPU time of the process for a sample", METRIC_NS, METRIC_LESS_IS_BETTER,
		cpu_time},
	{"read_rate", "bytes read per second", METRIC_BYTES_PER_S, METRIC_NEITHER, bytes_read_rate},
	{"page_cache", "share of what is read that comes from the page cache", METRIC_SHARE,
		METRIC_NEITHER, cached},
	{"memory", "resident memory at its peak", METRIC_BYTES, METRIC_LESS_IS_BETTER, resident},
	{"other_load", "cores kept busy by other processes", METRIC_CORES, METRIC_NEITHER, others},
};

/* --- of its devices --------------------------------------------------------------------------- */

/* Mean of a member over the devices that know it. */
static double device_mean(const struct measurement *m, size_t offset)
{
	double sum = 0;
	size_t known = 0;
	for (size_t i = 0; i < m->device_count; i++) {
		double value;
		memcpy(&value, (const char *)&m->devices[i] + offset, sizeof value);
		if (isnan(value))
			continue;
		sum += value;
		known++;
	}
	return known > 0 ? sum / (double)known : (double)NAN;
}

#define DEVICE_MEAN(m, member) device_mean(m, offsetof(struct device_measurement, member))

RUN_METRIC(device_busy, ratio(DEVICE_MEAN(m, step_seconds), m->measured_seconds))
RUN_METRIC(device_idle, DEVICE_MEAN(m, idle_share))
RUN_METRIC(device_of_peak, DEVICE_MEAN(m, model_utilisation))
RUN_METRIC(device_launch, DEVICE_MEAN(m, launch_ns))
RUN_METRIC(device_upload, ratio(DEVICE_MEAN(m, upload_bytes), DEVICE_MEAN(m, upload_seconds)))
RUN_METRIC(device_clock, DEVICE_MEAN(m, sm_clock_mhz.mean))
RUN_METRIC(device_power, DEVICE_MEAN(m, power_w.mean))
RUN_METRIC(device_heat, DEVICE_MEAN(m, temperature_c.mean))

static const struct metric_kind device_kinds[] = {
	{"device.busy", "share of the time that a step is on the device", METRIC_SHARE,
		METRIC_MORE_IS_BETTER, device_busy},
	{"device.idle", "share of a step that no kernel runs", METRIC_SHARE, METRIC_LESS_IS_BETTER,
		device_idle},
	{"device.mfu", "products computed, of the device's peak", METRIC_SHARE,
		METRIC_MORE_IS_BETTER, device_of_peak},
	{"device.launch", "host time to launch a step", METRIC_NS, METRIC_LESS_IS_BETTER,
		device_launch},
	{"device.upload_rate", "bytes per second while it copies", METRIC_BYTES_PER_S,
		METRIC_MORE_IS_BETTER, device_upload},
	{"device.clock", "clock of the multiprocessors", METRIC_MHZ, METRIC_NEITHER, device_clock},
	{"device.power", "power", METRIC_WATTS, METRIC_LESS_IS_BETTER, device_power},
	{"device.temperature", "temperature", METRIC_CELSIUS, METRIC_NEITHER, device_heat},
};

/* --- of a stage ------------------------------------------------------------------------------- */

static double thread_seconds(const struct stage_measurement *stage)
{
	return stage->seconds[THREAD_STARVED] + stage->seconds[THREAD_WORKING] +
	       stage->seconds[THREAD_BLOCKED];
}

STAGE_METRIC(stage_capacity, stage->capacity)

static double service_quantile(const struct stage_measurement *stage, double at)
{
	const double ns =
		stage->service.count > 0 ? histogram_quantile(&stage->service, at) : (double)NAN;
	return ns > 0 ? ns : (double)NAN;
}

static double stage_mean(const struct measurement *m, const struct stage_measurement *stage)
{
	(void)m;
	const double ns = stage->service.count > 0 ? histogram_mean(&stage->service) : (double)NAN;
	return ns > 0 ? ns : (double)NAN;
}

STAGE_METRIC(stage_p50, service_quantile(stage, 0.5))
STAGE_METRIC(stage_p99, service_quantile(stage, 0.99))
STAGE_METRIC(stage_busy, ratio(stage->seconds[THREAD_WORKING], thread_seconds(stage)))
STAGE_METRIC(stage_starved, ratio(stage->seconds[THREAD_STARVED], thread_seconds(stage)))
STAGE_METRIC(stage_blocked, ratio(stage->seconds[THREAD_BLOCKED], thread_seconds(stage)))

/* As in the summary: of a stage that hardly worked, or whose device does, the split means
 * nothing. */
static double of_work(const struct stage_measurement *stage, double seconds)
{
	static const double least = 0.05;
	const double working = stage->seconds[THREAD_WORKING];
	if (stage->device || !(working > least * thread_seconds(stage)))
		return NAN;
	return fmin(seconds / working, 1);
}

STAGE_METRIC(stage_run_queue, of_work(stage, stage->run_queue_seconds))
STAGE_METRIC(stage_io_wait, of_work(stage, stage->io_wait_seconds))
STAGE_METRIC(stage_lock_wait, of_work(stage, stage->lock_wait_seconds))

static const struct metric_kind stage_kinds[] = {
	{"capacity", "samples/s if it never waited", METRIC_PER_S, METRIC_MORE_IS_BETTER,
		stage_capacity},
	{"mean", "service time, mean", METRIC_NS, METRIC_LESS_IS_BETTER, stage_mean},
	{"p50", "service time, median", METRIC_NS, METRIC_LESS_IS_BETTER, stage_p50},
	{"p99", "service time, 99th percentile", METRIC_NS, METRIC_LESS_IS_BETTER, stage_p99},
	{"busy", "share of its time that it works", METRIC_SHARE, METRIC_NEITHER, stage_busy},
	{"starved", "share of its time that it waits for input", METRIC_SHARE, METRIC_NEITHER,
		stage_starved},
	{"blocked", "share of its time that it waits for room", METRIC_SHARE, METRIC_NEITHER,
		stage_blocked},
	{"run_queue", "share of its work that it waits for a core", METRIC_SHARE,
		METRIC_LESS_IS_BETTER, stage_run_queue},
	{"io_wait", "share of its work that it waits for I/O", METRIC_SHARE, METRIC_LESS_IS_BETTER,
		stage_io_wait},
	{"lock_wait", "share of its work that it waits for a lock", METRIC_SHARE,
		METRIC_LESS_IS_BETTER, stage_lock_wait},
};

/* --- the list --------------------------------------------------------------------------------- */

static void metrics_add(
	struct metric *metrics, size_t *count, const struct metric_kind *kind, const char *stage)
{
	if (*count == METRICS_MAX)
		return;
	struct metric *metric = &metrics[(*count)++];
	*metric = (struct metric){.kind = kind};
	(void)snprintf(metric->stage, sizeof metric->stage, "%s", stage);
	(void)snprintf(
		metric->name, sizeof metric->name, "%s%s%s", stage, *stage ? "." : "", kind->name);
}

static size_t metrics_list(
	const char *const *stages, size_t stage_count, struct metric metrics[METRICS_MAX])
{
	size_t count = 0;
	for (size_t i = 0; i < COUNT(run_kinds); i++)
		metrics_add(metrics, &count, &run_kinds[i], "");
	for (size_t i = 0; i < COUNT(device_kinds); i++)
		metrics_add(metrics, &count, &device_kinds[i], "");
	for (size_t s = 0; s < stage_count; s++)
		for (size_t i = 0; i < COUNT(stage_kinds); i++)
			metrics_add(metrics, &count, &stage_kinds[i], stages[s]);
	return count;
}

size_t metrics_of_stages(
	const char (*stages)[NAME_BYTES], size_t stage_count, struct metric metrics[METRICS_MAX])
{
	const char *names[STAGES_MAX];
	const size_t used = stage_count < STAGES_MAX ? stage_count : STAGES_MAX;
	for (size_t i = 0; i < used; i++)
		names[i] = stages[i];
	return metrics_list(names, used, metrics);
}

int metric_find(const char *name, struct metric *metric, struct error *err)
{
	struct metric metrics[METRICS_MAX];
	const char *names[METRICS_MAX];
	const size_t count = metrics_list(stage_names, STAGE_IDS, metrics);
	for (size_t i = 0; i < count; i++) {
		names[i] = metrics[i].name;
		if (strcmp(name, names[i]) == 0) {
			*metric = metrics[i];
			return 0;
		}
	}
	const char *near = suggest_nearest(name, names, count);
	return error_set(err, -EINVAL, "unknown metric '%.60s'; %s%s%s", name,
		near ? "did you mean '" : "metrics are throughput, step_time, decode.capacity, ...",
		near ? near : "", near ? "'?" : "");
}

double metric_value(const struct metric *metric, const struct measurement *m)
{
	if (!metric->stage[0])
		return metric->kind->value(m, NULL);
	const struct stage_measurement *stage = measurement_stage_named(m, metric->stage);
	return stage ? metric->kind->value(m, stage) : (double)NAN;
}

/* --- scales ----------------------------------------------------------------------------------- */

bool metric_is_ratio(const struct metric *metric)
{
	const enum metric_unit unit = metric->kind->unit;
	return unit != METRIC_SHARE && unit != METRIC_CORES && unit != METRIC_CELSIUS;
}

double metric_scaled(const struct metric *metric, double value)
{
	if (!isfinite(value))
		return NAN;
	if (!metric_is_ratio(metric))
		return value;
	return value > 0 ? log(value) : (double)NAN;
}

double metric_unscaled(const struct metric *metric, double y)
{
	return metric_is_ratio(metric) ? exp(y) : y;
}

double metric_change(const struct metric *metric, double difference)
{
	return metric_is_ratio(metric) ? expm1(difference) : difference;
}

const char *metric_unit_name(enum metric_unit unit)
{
	static const char *const names[] = {
		"samples/s", "ns", "share", "bytes", "bytes/s", "cores", "MHz", "W", "degrees C"};
	return names[unit];
}

const char *metric_text(const struct metric *metric, double value, char out[METRIC_TEXT_BYTES])
{
	char text[UNITS_BYTES];
	const enum metric_unit unit = metric->kind->unit;
	if (isnan(value))
		(void)snprintf(text, sizeof text, "-");
	else if (unit == METRIC_NS)
		(void)units_format_duration(value, text);
	else if (unit == METRIC_SHARE)
		(void)units_format_share(value, text);
	else if (unit == METRIC_BYTES)
		(void)units_format_size(value, text);
	else if (unit == METRIC_BYTES_PER_S)
		(void)units_format_rate(value, text);
	else if (unit == METRIC_PER_S)
		(void)units_format_count(value, text);
	else
		(void)snprintf(text, sizeof text, "%s %s", UNITS_PLAIN(value, 4),
			unit == METRIC_CELSIUS ? "C" : metric_unit_name(unit));
	(void)snprintf(out, METRIC_TEXT_BYTES, "%s", text);
	return out;
}

const char *metric_change_text(
	const struct metric *metric, double change, char out[METRIC_TEXT_BYTES])
{
	const double percent = 100 * change;
	if (isnan(change))
		(void)snprintf(out, METRIC_TEXT_BYTES, "-");
	else if (metric->kind->unit == METRIC_CORES)
		(void)snprintf(out, METRIC_TEXT_BYTES, "%+.2f cores", change);
	else if (metric->kind->unit == METRIC_CELSIUS)
		(void)snprintf(out, METRIC_TEXT_BYTES, "%+.1f C", change);
	else if (fabs(percent) >= 1000)
		(void)snprintf(out, METRIC_TEXT_BYTES, "%s times", UNITS_PLAIN(1 + change, 3));
	else
		(void)snprintf(out, METRIC_TEXT_BYTES, "%+.*f %s", fabs(percent) < 0.995 ? 2 : 1,
			percent, metric_is_ratio(metric) ? "%" : "points");
	return out;
}

/* --- the grammar of gates --------------------------------------------------------------------- */

static const char blanks[] = " \t";

static int gate_refuse_value(const struct gate *gate, const char *value, struct error *err)
{
	static const char *const examples[] = {
		"1200", "3ms", "0.9", "512MiB", "1GiB/s", "0.5", "1400", "300", "80"};
	return error_set(err, -EINVAL,
		"condition '%s': '%.40s' is not a value of %s; write it as '%s', or a change as '-5%%'",
		gate->text, value, gate->metric.name, examples[gate->metric.kind->unit]);
}

static int parse_absolute(struct gate *gate, const char *text, struct error *err)
{
	uint64_t whole;
	int code;
	switch (gate->metric.kind->unit) {
	case METRIC_NS:
		code = units_parse_duration(text, &whole);
		gate->value = (double)whole;
		break;
	case METRIC_BYTES:
		code = units_parse_size(text, &whole);
		gate->value = (double)whole;
		break;
	case METRIC_BYTES_PER_S:
		code = units_parse_rate(text, &whole);
		gate->value = (double)whole;
		break;
	default:
		code = units_parse_real(text, &gate->value);
		break;
	}
	if (code || !isfinite(gate->value))
		return gate_refuse_value(gate, text, err);
	if (metric_is_ratio(&gate->metric) && gate->value <= 0)
		return error_set(err, -EINVAL,
			"condition '%s': %s is always above 0; a change needs '%%', as '%s %s%%'",
			gate->text, gate->metric.name, gate->above != gate->required ? ">" : "<",
			text);
	return 0;
}

static int parse_relative(struct gate *gate, char *text, struct error *err)
{
	double percent;
	text[strlen(text) - 1] = '\0';
	if (units_parse_real(text, &percent) || !isfinite(percent))
		return gate_refuse_value(gate, text, err);
	gate->relative = true;
	gate->value = percent / 100;
	if (gate->value <= -1)
		return error_set(err, -EINVAL, "condition '%s': nothing can fall by 100 %% or more",
			gate->text);
	return 0;
}

static int gate_parse_value(struct gate *gate, const char *text, struct error *err)
{
	char value[GATE_TEXT_BYTES];
	(void)snprintf(value, sizeof value, "%s", text);
	size_t size = strlen(value);
	while (size > 0 && strchr(blanks, value[size - 1]))
		value[--size] = '\0';
	if (size == 0)
		return gate_refuse_value(gate, "", err);
	return value[size - 1] == '%' ? parse_relative(gate, value, err)
				      : parse_absolute(gate, value, err);
}

int gate_parse(const char *text, bool required, struct gate *gate, struct error *err)
{
	char name[GATE_TEXT_BYTES];
	*gate = (struct gate){.required = required};
	if (strlen(text) >= sizeof gate->text)
		return error_set(err, -EINVAL, "condition '%.40s...' is too long", text);
	(void)snprintf(gate->text, sizeof gate->text, "%s", text);
	text += strspn(text, blanks);
	const size_t length = strcspn(text, " \t<>=");
	const char *rest = text + length + strspn(text + length, blanks);
	if (length == 0 || (*rest != '<' && *rest != '>'))
		return error_set(err, -EINVAL,
			"condition '%s': expected METRIC < VALUE or METRIC > VALUE, for example 'throughput < -5%%'",
			gate->text);
	(void)snprintf(name, sizeof name, "%.*s", (int)length, text);
	int code = metric_find(name, &gate->metric, err);
	if (code)
		return error_prefix(err, code, "condition '%s'", gate->text);
	gate->above = (*rest++ == '>') != required;
	rest += *rest == '='; /* of an interval the end point makes no difference */
	rest += strspn(rest, blanks);
	return gate_parse_value(gate, rest, err);
}

/* --- judgement -------------------------------------------------------------------------------- */

/* The limit as a difference of y from this baseline; NAN: there is none (a share of nothing). */
static double bound_of(const struct gate *gate, const struct difference *d)
{
	if (!gate->relative)
		return metric_scaled(&gate->metric, gate->value) - d->a;
	if (metric_is_ratio(&gate->metric))
		return log1p(gate->value);
	return gate->value * d->a;
}

/* Distance from the limit in y, positive on the good side; below 0: what was seen is beyond it. */
static double margin_of(const struct gate *gate, const struct difference *d)
{
	const double bound = bound_of(gate, d);
	return gate->above ? bound - d->value : d->value - bound;
}

/* Within the noise floor, where no change at all would be within the limit. Where the figure itself
 * is meant, the noise floor of its change does not apply. */
static bool is_noise(const struct gate *gate, const struct difference *d)
{
	const double limit = gate->above ? gate->value : -gate->value;
	return gate->relative && limit >= 0 && fabs(d->value) <= d->floor;
}

/* Two-sided p that the difference is beyond the limit, as its interval has it; 1: not shown. */
static double p_beyond(const struct gate *gate, const struct difference *d)
{
	const double beyond = -margin_of(gate, d);
	if (isnan(beyond) || isnan(d->error) || is_noise(gate, d) ||
		beyond <= d->critical * d->error)
		return 1;
	return fmin(1, 2 * (double)d->tests * student_below(-beyond / d->error, d->freedom));
}

/* By how much it is shown to be within the limit; below 0: not shown. */
static double room_of(const struct gate *gate, const struct difference *d)
{
	return isnan(d->error) ? -INFINITY
			       : margin_of(gate, d) - fmax(d->critical * d->error, d->floor);
}

static void no_figures(
	struct gate_result *result, const struct gate *gate, size_t missing, size_t count)
{
	*result = (struct gate_result){
		.outcome = GATE_INCONCLUSIVE, .missing = true, .point = count, .points = missing};
	if (count <= 1)
		(void)snprintf(result->why, sizeof result->why,
			"%s is not available in both results", gate->metric.name);
	else
		(void)snprintf(result->why, sizeof result->why,
			"%s is not available at %zu of %zu points", gate->metric.name, missing,
			count);
}

/* "-17.2 % (99 % CI -73.0 % to +154.2 %)" */
static void gate_say(struct gate_result *result, const struct gate *gate,
	const struct difference *d, double level)
{
	char text[3][METRIC_TEXT_BYTES];
	const struct metric *metric = &gate->metric;
	const double y[] = {d->value, d->interval.low, d->interval.high};
	for (size_t i = 0; i < 3; i++)
		if (gate->relative)
			(void)metric_change_text(metric, metric_change(metric, y[i]), text[i]);
		else
			(void)metric_text(metric, metric_unscaled(metric, d->a + y[i]), text[i]);
	if (isnan(d->error))
		(void)snprintf(result->why, sizeof result->why,
			"%s (no CI: one repetition has no spread)", text[0]);
	else
		(void)snprintf(result->why, sizeof result->why, "%s (%g %% CI %s to %s)", text[0],
			100 * (1 - level), text[1], text[2]);
}

/* About how many repetitions per side would show what was seen: that the most certain point is
 * worse, or that every point is within. */
static size_t repeats_to_decide(
	const struct gate *gate, const struct difference *differences, size_t count, double level)
{
	enum { REPEATS_TO_BEGIN = 3 };
	const double among = count > 1 ? 2 * (double)count : 1;
	size_t worse = 0;
	size_t within = 0;
	bool seen_beyond = false;
	bool never = false;
	for (size_t i = 0; i < count; i++) {
		const struct difference *d = &differences[i];
		const double margin = margin_of(gate, d);
		const bool beyond = margin < 0;
		size_t repeats = REPEATS_TO_BEGIN;
		if (room_of(gate, d) > 0)
			continue;
		if (!isnan(d->error))
			repeats = compare_repeats_for(
				d, fabs(margin), beyond ? level / among : level);
		seen_beyond = seen_beyond || beyond;
		never = never || repeats == 0;
		if (beyond && repeats > 0 && (worse == 0 || repeats < worse))
			worse = repeats;
		within = repeats > within ? repeats : within;
	}
	return seen_beyond ? worse : never ? 0 : within;
}

/* p: (count), among the points.  Returns whether it is worse anywhere. */
static bool find_worse(const struct gate *gate, const double *p, size_t count,
	const struct difference *overall, double level, struct gate_result *result)
{
	const double own = count > 1 ? level / 2 : level;
	const bool mean_is = count > 1 && p_beyond(gate, overall) <= own;
	for (size_t i = 0; i < count; i++) {
		if (p[i] > own)
			continue;
		result->points++;
		if (result->point == count || p[i] < p[result->point])
			result->point = i;
	}
	result->point = mean_is ? count : result->point;
	return mean_is || result->points > 0;
}

static void find_least_within(const struct gate *gate, const struct difference *differences,
	size_t count, struct gate_result *result)
{
	result->point = 0;
	for (size_t i = 0; i < count; i++) {
		const double room = room_of(gate, &differences[i]);
		result->points += !(room > 0);
		if (room < room_of(gate, &differences[result->point]))
			result->point = i;
	}
}

void gate_judge(const struct gate *gate, const struct difference *differences, size_t count,
	const struct difference *overall, double level, struct gate_result *result)
{
	*result = (struct gate_result){.point = count};
	size_t missing = 0;
	double *p = calloc(count + 1, sizeof *p);
	for (size_t i = 0; i < count; i++)
		missing += isnan(differences[i].value) || isnan(bound_of(gate, &differences[i]));
	if (!p || missing > 0 || count == 0) {
		no_figures(result, gate, missing, count);
		free(p);
		return;
	}
	for (size_t i = 0; i < count; i++)
		p[i] = p_beyond(gate, &differences[i]);
	compare_holm(p, count);
	if (find_worse(gate, p, count, overall, level, result)) {
		result->outcome = GATE_WORSE;
	} else {
		find_least_within(gate, differences, count, result);
		result->outcome = result->points > 0 ? GATE_INCONCLUSIVE : GATE_WITHIN;
	}
	if (result->outcome == GATE_INCONCLUSIVE)
		result->repeats_needed = repeats_to_decide(gate, differences, count, level);
	gate_say(result, gate, result->point == count ? overall : &differences[result->point],
		level);
	free(p);
}

bool gate_fails(const struct gate *gate, const struct gate_result *result)
{
	return result->outcome == GATE_WORSE ||
	       (gate->required && result->outcome == GATE_INCONCLUSIVE);
}
