/* Metrics, moments as people write them, and conditions. */
#include "harness/report/history_filter.h"

#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/record/config_json.h"
#include "harness/record/fields.h"
#include "harness/record/measurement.h"
#include "harness/report/columns.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- metrics ---------------------------------------------------------------------------------- */

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { METRIC_NAMES_MAX = 128 };

/* path: in a point of summary.json, or in a stage of it. */
struct named {
	const char *name;
	enum history_unit unit;
	int better;
	const char *path;
	double scale; /* to the unit; 0: 1 */
};

static const struct named point_metrics[] = {
	{"throughput", HISTORY_RATE, 1, "throughput.median", 0},
	{"step_utilisation", HISTORY_SHARE, 1, "step_utilisation", 0},
	{"step_wait_share", HISTORY_SHARE, -1, "step_wait_share", 0},
	{"bytes_read_per_s", HISTORY_BYTES_PER_S, 0, "bytes_read_per_s", 0},
	{"page_cache_share", HISTORY_SHARE, 0, "page_cache_share", 0},
	{"rss_peak_bytes", HISTORY_BYTES, -1, "rss_peak_bytes", 0},
	{"pool_bytes", HISTORY_BYTES, 0, "pool_bytes", 0},
	{"accounted", HISTORY_SHARE, 0, "accounted", 0},
	{"bad_samples", HISTORY_PLAIN, -1, "bad_samples", 0},
	{"cores_busy_outside", HISTORY_PLAIN, -1, "foreign_load.cores_busy_outside", 0},
	{"steal_share", HISTORY_SHARE, -1, "foreign_load.steal_share", 0},
	{"confidence", HISTORY_SHARE, 0, "verdict.confidence", 0},
	{"device.step", HISTORY_SECONDS, -1, "devices.0.step_ms", 1e-3},
	{"device.step_share", HISTORY_SHARE, 1, "devices.0.step_share", 0},
	{"device.peak_share", HISTORY_SHARE, 1, "devices.0.peak_share", 0},
	{"device.power_w", HISTORY_PLAIN, 0, "devices.0.power_w.mean", 0},
	{"device.temperature_c", HISTORY_PLAIN, 0, "devices.0.temperature_c.mean", 0},
	{"device.sm_clock_mhz", HISTORY_PLAIN, 0, "devices.0.sm_clock_mhz.mean", 0},
};

static const struct named stage_metrics[] = {
	{"capacity", HISTORY_RATE, 1, "capacity", 0},
	{"busy", HISTORY_SHARE, 0, "busy", 0},
	{"starved", HISTORY_SHARE, 0, "starved", 0},
	{"blocked", HISTORY_SHARE, 0, "blocked", 0},
	{"cpu", HISTORY_SHARE, 0, "cpu", 0},
	{"run_queue", HISTORY_SHARE, -1, "run_queue", 0},
	{"io_wait", HISTORY_SHARE, -1, "io_wait", 0},
	{"lock_wait", HISTORY_SHARE, -1, "lock_wait", 0},
	{"mean", HISTORY_SECONDS, -1, "service_us.mean", 1e-6},
	{"p50", HISTORY_SECONDS, -1, "service_us.p50", 1e-6},
	{"p90", HISTORY_SECONDS, -1, "service_us.p90", 1e-6},
	{"p99", HISTORY_SECONDS, -1, "service_us.p99", 1e-6},
	{"p99.9", HISTORY_SECONDS, -1, "service_us.p999", 1e-6},
	{"max", HISTORY_SECONDS, -1, "service_us.max", 1e-6},
};

static void metrics_fill(const char *name, const struct named *from, int stage_letters,
	struct history_metric *metric)
{
	*metric = (struct history_metric){.unit = from->unit,
		.has_interval = from == &point_metrics[0],
		.better = from->better,
		.scale = from->scale > 0 ? from->scale : 1};
	(void)snprintf(metric->name, sizeof metric->name, "%s", name);
	(void)snprintf(metric->path, sizeof metric->path, "%s%.*s%s%s",
		stage_letters ? "stages." : "", stage_letters, name, stage_letters ? "." : "",
		from->path);
}

static bool is_of_stage(const char *name, struct history_metric *metric)
{
	const char *dot = strchr(name, '.');
	for (size_t s = 0; dot && s < STAGE_IDS; s++) {
		if (strlen(stage_names[s]) != (size_t)(dot - name) ||
			strncmp(stage_names[s], name, (size_t)(dot - name)) != 0)
			continue;
		for (size_t i = 0; i < COUNT(stage_metrics); i++)
			if (strcmp(dot + 1, stage_metrics[i].name) == 0) {
				metrics_fill(name, &stage_metrics[i], (int)(dot - name), metric);
				return true;
			}
	}
	return false;
}

static bool history_metric_is(const char *name, struct history_metric *metric)
{
	for (size_t i = 0; i < COUNT(point_metrics); i++)
		if (strcmp(name, point_metrics[i].name) == 0) {
			metrics_fill(name, &point_metrics[i], 0, metric);
			return true;
		}
	return is_of_stage(name, metric);
}

static size_t history_metric_names(char (*names)[64], size_t room)
{
	size_t count = 0;
	for (size_t i = 0; i < COUNT(point_metrics) && count < room; i++)
		(void)snprintf(names[count++], 64, "%s", point_metrics[i].name);
	for (size_t s = 0; s < STAGE_IDS; s++)
		for (size_t i = 0; i < COUNT(stage_metrics) && count < room; i++)
			(void)snprintf(
				names[count++], 64, "%s.%s", stage_names[s], stage_metrics[i].name);
	return count;
}

int history_metric_find(const char *name, struct history_metric *metric, struct error *err)
{
	if (history_metric_is(name, metric))
		return 0;
	char names[METRIC_NAMES_MAX][64];
	const char *list[METRIC_NAMES_MAX];
	const size_t count = history_metric_names(names, METRIC_NAMES_MAX);
	for (size_t i = 0; i < count; i++)
		list[i] = names[i];
	const char *near = suggest_nearest(name, list, count);
	if (near)
		return error_set(
			err, -EINVAL, "unknown metric '%s' (did you mean '%s'?)", name, near);
	return error_set(err, -EINVAL,
		"unknown metric '%s'; as 'throughput', 'step_utilisation', 'decode.capacity', 'read.p99'",
		name);
}

/* Of memory, 0 is not known. */
double history_metric_value(const struct history_metric *metric, const json_t *point)
{
	const double value = column_number(point, metric->path) * metric->scale;
	return metric->unit == HISTORY_BYTES && value <= 0 ? (double)NAN : value;
}

int history_unit_parse(enum history_unit unit, const char *text, double *value)
{
	uint64_t number = 0;
	int code;
	switch (unit) {
	case HISTORY_SHARE:
		return units_parse_share(text, value);
	case HISTORY_SECONDS:
		code = units_parse_duration(text, &number);
		*value = (double)number / 1e9;
		return code;
	case HISTORY_BYTES:
		code = units_parse_size(text, &number);
		*value = (double)number;
		return code;
	case HISTORY_BYTES_PER_S:
		code = units_parse_rate(text, &number);
		*value = (double)number;
		return code;
	case HISTORY_RATE:
	case HISTORY_PLAIN:
		break;
	}
	return units_parse_real(text, value);
}

const char *history_unit_format(
	enum history_unit unit, double value, char out[HISTORY_NUMBER_BYTES])
{
	char text[UNITS_BYTES];
	const char *shown = text;
	if (isnan(value))
		(void)snprintf(text, sizeof text, "-");
	else if (unit == HISTORY_SHARE)
		shown = units_format_share(value, text);
	else if (unit == HISTORY_SECONDS)
		shown = units_format_duration(value * 1e9, text);
	else if (unit == HISTORY_BYTES)
		shown = units_format_size(value, text);
	else if (unit == HISTORY_BYTES_PER_S)
		shown = units_format_rate(value, text);
	else
		shown = units_format_count(value, text);
	(void)snprintf(out, HISTORY_NUMBER_BYTES, "%s", shown);
	return out;
}

const char *history_unit_name(enum history_unit unit)
{
	static const char *const names[] = {[HISTORY_RATE] = "samples/s",
		[HISTORY_SHARE] = "share",
		[HISTORY_SECONDS] = "s",
		[HISTORY_BYTES] = "bytes",
		[HISTORY_BYTES_PER_S] = "bytes/s",
		[HISTORY_PLAIN] = ""};
	return names[unit];
}

/* --- moments ---------------------------------------------------------------------------------- */

/* strptime reads over blanks and takes what is out of range for some fields: the result must read back. */
static bool parse_moment(const char *text, const char *format, double *seconds)
{
	struct tm tm = {.tm_mday = 1};
	const char *end = strptime(text, format, &tm);
	if (!end || *end || isspace((unsigned char)*text))
		return false;
	struct tm same = tm;
	const time_t moment = timegm(&same);
	*seconds = (double)moment;
	return same.tm_mday == tm.tm_mday && same.tm_mon == tm.tm_mon && same.tm_hour == tm.tm_hour;
}

static bool parse_ago(const char *text, double now, double *seconds)
{
	static const struct {
		char unit;
		double seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 7 * 86400}};
	char *end;
	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	const double count = strtod(text, &end);
	for (size_t i = 0; i < sizeof units / sizeof *units && !errno; i++)
		if (end[0] == units[i].unit && end[1] == '\0') {
			*seconds = now - count * units[i].seconds;
			return true;
		}
	return false;
}

int history_time_parse(const char *text, double now, double *seconds, struct error *err)
{
	static const char *const formats[] = {"%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M",
		"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%Y%m%dT%H%M%SZ"};
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (parse_moment(text, formats[i], seconds))
			return 0;
	if (parse_ago(text, now, seconds))
		return 0;
	return error_set(err, -EINVAL,
		"'%s' is not a time; write '2026-11-01', '2026-11-01T08:30' (UTC), or how long "
		"ago: '12h', '7d', '2w'",
		text);
}

/* --- conditions ------------------------------------------------------------------------------- */

enum { NAMES_MAX = 640, FACTS_MAX = 256, FACT_NUMBER_BYTES = 32 };

/* Longer ones before those that they begin with. */
static const struct {
	const char *text;
	enum history_operator id;
} operators[] = {{"==", OP_EQUAL}, {"!=", OP_NOT}, {"<=", OP_LESS_EQUAL}, {">=", OP_MORE_EQUAL},
	{"=", OP_EQUAL}, {"<", OP_LESS}, {">", OP_MORE}, {"~", OP_CONTAINS}};

/* How the values of a key are read. */
enum value_kind { VALUE_TEXT, VALUE_PREFIX, VALUE_NUMBER, VALUE_TIME, VALUE_SWITCH, VALUE_STATUS };

/* path: in the row as --json has it, in the point, or in the summary. */
static const struct column {
	const char *name, *path;
	enum value_kind kind;
	enum { IN_ROW, IN_POINT, IN_SUMMARY } in;
} columns[] = {
	{"name", "name", VALUE_TEXT, IN_ROW},
	{"hash", "config_hash", VALUE_PREFIX, IN_ROW},
	{"folder", "folder", VALUE_TEXT, IN_ROW},
	{"node", "node", VALUE_PREFIX, IN_ROW},
	{"host", "host", VALUE_TEXT, IN_ROW},
	{"cpu", "cpu", VALUE_TEXT, IN_ROW},
	{"cores", "environment.cpu.allowed", VALUE_NUMBER, IN_SUMMARY},
	{"version", "version", VALUE_TEXT, IN_ROW},
	{"status", "status", VALUE_STATUS, IN_ROW},
	{"backend", "step_backend", VALUE_TEXT, IN_ROW},
	{"emulated", "step.emulated", VALUE_SWITCH, IN_SUMMARY},
	{"points", "points", VALUE_NUMBER, IN_SUMMARY},
	{"started", "started", VALUE_TIME, IN_ROW},
	{"finished", "finished", VALUE_TIME, IN_ROW},
	{"stage", "verdict.stage", VALUE_TEXT, IN_ROW},
	{"resource", "verdict.resource", VALUE_TEXT, IN_ROW},
	{"verdict", "verdict", VALUE_TEXT, IN_ROW},
	{"repeats", "throughput.repeats", VALUE_NUMBER, IN_POINT},
};

static const char *const statuses[] = {
	"complete", "interrupted", "failed", "running", "unreadable", NULL};

/* --- taking apart ----------------------------------------------------------------------------- */

static bool is_key_letter(char c)
{
	return isalnum((unsigned char)c) || c == '.' || c == '_' || c == '-';
}

static const char *filter_skip_blanks(const char *text)
{
	while (*text == ' ')
		text++;
	return text;
}

static int take_apart(const char *text, struct history_condition *condition, struct error *err)
{
	const char *at = filter_skip_blanks(text);
	size_t length = 0;
	while (is_key_letter(at[length]))
		length++;
	*condition = (struct history_condition){.whole = text};
	if (length == 0 || length >= sizeof condition->key)
		return error_set(err, -EINVAL,
			"'%s' is not a condition; write KEY OP VALUE, as 'name=imagenet_like' or "
			"'throughput>1000'",
			text);
	memcpy(condition->key, at, length);
	at = filter_skip_blanks(at + length);
	for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
		const size_t size = strlen(operators[i].text);
		if (strncmp(at, operators[i].text, size) != 0)
			continue;
		condition->op = operators[i].id;
		condition->value = filter_skip_blanks(at + size);
		return 0;
	}
	return error_set(err, -EINVAL,
		"'%s' is not a condition; after '%s', write one of = != < <= > >= and ~ "
		"(contains)",
		text, condition->key);
}

static int filter_refuse_value(
	const struct history_condition *condition, const char *as, struct error *err)
{
	return error_set(err, -EINVAL, "'%s': '%s' is not a value of %s%s%s", condition->whole,
		condition->value, condition->key, *as ? ": as " : "", as);
}

static int filter_take_text(const struct history_condition *condition, struct error *err)
{
	if (condition->op == OP_EQUAL || condition->op == OP_NOT || condition->op == OP_CONTAINS)
		return 0;
	return error_set(err, -EINVAL, "'%s': %s is text; compare it with =, != or ~ (contains)",
		condition->whole, condition->key);
}

static int filter_take_number(struct history_condition *condition, double number, struct error *err)
{
	if (condition->op == OP_CONTAINS)
		return error_set(err, -EINVAL,
			"'%s': %s is a number; compare it with =, !=, <, <=, > or >=",
			condition->whole, condition->key);
	condition->is_number = true;
	condition->number = number;
	return 0;
}

static int filter_take_status(const struct history_condition *condition, struct error *err)
{
	size_t count = 0;
	for (; statuses[count]; count++)
		if (strcmp(statuses[count], condition->value) == 0)
			return filter_take_text(condition, err);
	const char *near = suggest_nearest(condition->value, statuses, count);
	if (near)
		return error_set(err, -EINVAL, "unknown status '%s' (did you mean '%s'?)",
			condition->value, near);
	return filter_refuse_value(
		condition, "complete, interrupted, failed, running or unreadable", err);
}

/* -1: neither. */
static int filter_switch_of(const char *text)
{
	static const char *const words[] = {"no", "yes", "false", "true", "0", "1"};
	for (int i = 0; i < 6; i++)
		if (strcmp(text, words[i]) == 0)
			return i % 2;
	return -1;
}

static int filter_take_column(
	struct history_condition *condition, const struct column *column, struct error *err)
{
	char *end;
	double number = 0;
	switch (column->kind) {
	case VALUE_PREFIX:
		condition->is_prefix = condition->op == OP_EQUAL;
		if (condition->is_prefix && !*condition->value)
			return filter_refuse_value(condition, "its first letters", err);
		break;
	case VALUE_STATUS:
		return filter_take_status(condition, err);
	case VALUE_NUMBER:
		number = strtod(condition->value, &end);
		if (end == condition->value || *end || !isfinite(number))
			return filter_refuse_value(condition, "a number", err);
		return filter_take_number(condition, number, err);
	case VALUE_TIME:
		if (history_time_parse(condition->value, (double)time(NULL), &number, err))
			return -EINVAL;
		return filter_take_number(condition, number, err);
	case VALUE_SWITCH:
		if (filter_switch_of(condition->value) < 0)
			return filter_refuse_value(condition, "yes or no", err);
		return filter_take_number(condition, filter_switch_of(condition->value), err);
	case VALUE_TEXT:
		break;
	}
	return filter_take_text(condition, err);
}

static double filter_plain_number(const struct config *config, enum key_id key)
{
	const enum key_type type = config_keys[key].type;
	return type == KEY_TYPE_REAL || type == KEY_TYPE_SHARE
		       ? config->values[key].real
		       : (double)config->values[key].integer;
}

/* Read as the configuration reads it: "64k", "1.5ms", "on". */
static int filter_take_config(struct history_condition *condition, struct error *err)
{
	const enum key_type type = config_keys[condition->config_key].type;
	struct config config;
	if (type == KEY_TYPE_TEXT || (type == KEY_TYPE_CHOICE && condition->op == OP_CONTAINS))
		return filter_take_text(condition, err);
	config_init(&config);
	int code = config_set_key(&config, condition->config_key, condition->value, err);
	if (!code)
		code = type == KEY_TYPE_CHOICE
			       ? filter_take_text(condition, err)
			       : filter_take_number(condition,
					 filter_plain_number(&config, condition->config_key), err);
	config_release(&config);
	return code;
}

static int filter_take_metric(struct history_condition *condition, struct error *err)
{
	double number;
	const enum history_unit unit = condition->metric.unit;
	if (history_unit_parse(unit, condition->value, &number) || !isfinite(number))
		return filter_refuse_value(condition, history_unit_name(unit), err);
	return filter_take_number(condition, number, err);
}

/* A fact is a text or a number, as it was found. */
static int filter_take_fact(struct history_condition *condition, struct error *err)
{
	char *end;
	const double number = strtod(condition->value, &end);
	const bool is_number = end != condition->value && !*end && isfinite(number);
	return is_number && condition->op != OP_CONTAINS
		       ? filter_take_number(condition, number, err)
		       : filter_take_text(condition, err);
}

int history_filter_add(struct history_filter *filter, const char *text, struct error *err)
{
	struct history_condition condition;
	const int code = take_apart(text, &condition, err);
	if (code)
		return code;
	if (filter->count == HISTORY_CONDITIONS_MAX)
		return error_set(err, -EINVAL, "more than %d conditions", HISTORY_CONDITIONS_MAX);
	struct history_condition *added = &filter->conditions[filter->count++];
	*added = condition;
	added->config_key = config_find_key(added->key);
	for (size_t i = 0; i < COUNT(columns); i++)
		if (strcmp(added->key, columns[i].name) == 0) {
			added->of = OF_COLUMN;
			added->column = i;
			return filter_take_column(added, &columns[i], err);
		}
	if (added->config_key != KEY_COUNT) {
		added->of = OF_CONFIG;
		return filter_take_config(added, err);
	}
	if (history_metric_is(added->key, &added->metric)) {
		added->of = OF_METRIC;
		return filter_take_metric(added, err);
	}
	added->of = OF_FACT;
	return filter_take_fact(added, err);
}

/* --- facts that results have -------------------------------------------------------------------- */

void history_filter_learn(struct history_filter *filter, json_t *environment)
{
	const char *group;
	json_t *facts;
	bool asks = false;
	for (size_t i = 0; i < filter->count; i++)
		asks = asks || filter->conditions[i].of == OF_FACT;
	if (!asks)
		return;
	if (!filter->facts)
		filter->facts = json_object();
	json_object_foreach(environment, group, facts)
	{
		const char *name;
		json_t *value;
		json_object_foreach(facts, name, value)
		{
			char dotted[HISTORY_KEY_BYTES];
			const int size = snprintf(dotted, sizeof dotted, "%s.%s", group, name);
			size_t letters = 0;
			while (is_key_letter(dotted[letters]))
				letters++;
			if (size < HISTORY_KEY_BYTES && !dotted[letters] &&
				json_object_size(filter->facts) < FACTS_MAX)
				(void)json_object_set_new(filter->facts, dotted, json_true());
		}
	}
}

static int filter_refuse_key(
	const struct history_condition *condition, json_t *facts, struct error *err)
{
	const char *names[NAMES_MAX];
	char metrics[METRIC_NAMES_MAX][64];
	char keys[KEY_COUNT][CONFIG_NAME_BYTES];
	const char *fact;
	json_t *unused;
	size_t count = 0;
	for (size_t i = 0; i < COUNT(columns); i++)
		names[count++] = columns[i].name;
	for (int key = 0; key < KEY_COUNT && count < NAMES_MAX; key++)
		names[count++] = config_key_name((enum key_id)key, keys[key]);
	const size_t metric_count = history_metric_names(metrics, METRIC_NAMES_MAX);
	for (size_t i = 0; i < metric_count && count < NAMES_MAX; i++)
		names[count++] = metrics[i];
	json_object_foreach(facts, fact, unused) if (unused && count < NAMES_MAX) names[count++] =
		fact;
	const char *near = suggest_nearest(condition->key, names, count);
	if (near)
		return error_set(err, -EINVAL, "'%s': unknown key '%s' (did you mean '%s'?)",
			condition->whole, condition->key, near);
	return error_set(err, -EINVAL,
		"'%s': unknown key '%s'; 'mlbench help history' lists the keys", condition->whole,
		condition->key);
}

int history_filter_check(const struct history_filter *filter, struct error *err)
{
	for (size_t i = 0; i < filter->count; i++)
		if (filter->conditions[i].of == OF_FACT &&
			!json_object_get(filter->facts, filter->conditions[i].key))
			return filter_refuse_key(&filter->conditions[i], filter->facts, err);
	return 0;
}

void history_filter_release(struct history_filter *filter)
{
	json_decref(filter->facts);
	*filter = (struct history_filter){0};
}

/* --- what meets them ----------------------------------------------------------------------------- */

/* What is not known meets nothing. */
static bool condition_has_number(const struct history_condition *condition, double value)
{
	const double wanted = condition->number;
	switch (condition->op) {
	case OP_EQUAL:
		return value >= wanted && value <= wanted;
	case OP_NOT:
		return value < wanted || value > wanted;
	case OP_LESS:
		return value < wanted;
	case OP_LESS_EQUAL:
		return value <= wanted;
	case OP_MORE:
		return value > wanted;
	case OP_MORE_EQUAL:
		return value >= wanted;
	case OP_CONTAINS:
		break;
	}
	return false;
}

static bool condition_has_text(const struct history_condition *condition, const char *value)
{
	if (!value)
		return false;
	if (condition->is_prefix)
		return strncmp(value, condition->value, strlen(condition->value)) == 0;
	if (condition->op == OP_CONTAINS)
		return strcasestr(value, condition->value);
	return (strcmp(value, condition->value) == 0) == (condition->op == OP_EQUAL);
}

static bool meets_column(const struct history_condition *condition, const json_t *row,
	const json_t *summary, const json_t *point)
{
	const struct column *column = &columns[condition->column];
	const json_t *from = column->in == IN_ROW ? row : column->in == IN_POINT ? point : summary;
	const json_t *value = column_value(from, column->path);
	const char *text = json_string_value(value);
	double moment;
	switch (column->kind) {
	case VALUE_NUMBER:
		return condition_has_number(condition,
			json_is_array(value) ? (double)json_array_size(value) : fields_real(value));
	case VALUE_TIME:
		return text && history_time_parse(text, 0, &moment, NULL) == 0 &&
		       condition_has_number(condition, moment);
	case VALUE_SWITCH:
		return value && condition_has_number(condition, json_is_true(value));
	default:
		break;
	}
	if (!json_is_object(value))
		return condition_has_text(condition, text);
	char both[2 * HISTORY_KEY_BYTES];
	const char *stage = column_text(value, "stage");
	(void)snprintf(both, sizeof both, "%s/%s", stage, column_text(value, "resource"));
	return *stage && condition_has_text(condition, both);
}

/* Of a sweep, the point's own value. */
static bool meets_config(
	const struct history_condition *condition, const json_t *summary, const json_t *point)
{
	const json_t *value = json_object_get(json_object_get(point, "settings"), condition->key);
	struct config config;
	if (!value)
		value = column_value(json_object_get(summary, "config"), condition->key);
	const char *text = json_string_value(value);
	if (!condition->is_number)
		return condition_has_text(condition, text);
	if (!text)
		return value &&
		       condition_has_number(condition,
			       json_is_boolean(value) ? json_is_true(value) : fields_real(value));
	config_init(&config);
	const bool meets = config_set_key(&config, condition->config_key, text, NULL) == 0 &&
			   condition_has_number(
				   condition, filter_plain_number(&config, condition->config_key));
	config_release(&config);
	return meets;
}

static bool meets_fact(const struct history_condition *condition, const json_t *summary)
{
	const json_t *value = column_value(json_object_get(summary, "environment"), condition->key);
	const char *text = json_string_value(value);
	char number[FACT_NUMBER_BYTES];
	if (condition->is_number)
		return condition_has_number(
			condition, text ? strtod(text, NULL) : fields_real(value));
	if (!text && json_is_number(value)) {
		(void)snprintf(number, sizeof number, "%.15g", json_number_value(value));
		text = number;
	}
	return condition_has_text(condition, text);
}

bool history_filter_meets(const struct history_filter *filter, const json_t *row,
	const json_t *summary, const json_t *point)
{
	double started;
	if (filter->since > 0 &&
		(history_time_parse(column_text(row, "started"), 0, &started, NULL) != 0 ||
			started < filter->since))
		return false;
	for (size_t i = 0; i < filter->count; i++) {
		const struct history_condition *condition = &filter->conditions[i];
		bool meets = false;
		switch (condition->of) {
		case OF_COLUMN:
			meets = meets_column(condition, row, summary, point);
			break;
		case OF_CONFIG:
			meets = meets_config(condition, summary, point);
			break;
		case OF_METRIC:
			meets = condition_has_number(
				condition, history_metric_value(&condition->metric, point));
			break;
		case OF_FACT:
			meets = meets_fact(condition, summary);
			break;
		}
		if (!meets)
			return false;
	}
	return true;
}
