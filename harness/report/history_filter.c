/* Conditions on results as SQL, and moments as people write them. */
#include "harness/report/history_filter.h"

#include "harness/base/text.h"
#include "harness/record/config_json.h"
#include "harness/report/history_metrics.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

enum {
	KEY_BYTES = 64,
	PATH_BYTES = KEY_BYTES + 8,
	NAMES_MAX = 640,
	METRIC_NAMES_MAX = 128,
	FACTS_MAX = 256,
};

enum operator_id { OP_EQUAL, OP_NOT, OP_LESS, OP_LESS_EQUAL, OP_MORE, OP_MORE_EQUAL, OP_CONTAINS };

/* Longer ones before those that they begin with. */
static const struct {
	const char *text;
	enum operator_id id;
} operators[] = {{"==", OP_EQUAL}, {"!=", OP_NOT}, {"<=", OP_LESS_EQUAL}, {">=", OP_MORE_EQUAL},
	{"=", OP_EQUAL}, {"<", OP_LESS}, {">", OP_MORE}, {"~", OP_CONTAINS}};

static const char *const operator_sql[] = {[OP_EQUAL] = "=",
	[OP_NOT] = "<>",
	[OP_LESS] = "<",
	[OP_LESS_EQUAL] = "<=",
	[OP_MORE] = ">",
	[OP_MORE_EQUAL] = ">="};

/* How the values of a key are read. */
enum value_kind { VALUE_TEXT, VALUE_PREFIX, VALUE_NUMBER, VALUE_TIME, VALUE_SWITCH, VALUE_STATUS };

struct column {
	const char *name, *sql;
	enum value_kind kind;
};

static const struct column columns[] = {
	{"name", "r.name", VALUE_TEXT},
	{"hash", "r.hash", VALUE_PREFIX},
	{"folder", "r.folder", VALUE_TEXT},
	{"node", "r.node", VALUE_PREFIX},
	{"host", "r.host", VALUE_TEXT},
	{"cpu", "r.cpu", VALUE_TEXT},
	{"cores", "r.cores", VALUE_NUMBER},
	{"version", "r.version", VALUE_TEXT},
	{"status", "r.status", VALUE_STATUS},
	{"backend", "r.backend", VALUE_TEXT},
	{"emulated", "r.emulated", VALUE_SWITCH},
	{"points", "r.points", VALUE_NUMBER},
	{"started", "r.started", VALUE_TIME},
	{"finished", "r.finished", VALUE_TIME},
	{"stage", "p.stage", VALUE_TEXT},
	{"resource", "p.resource", VALUE_TEXT},
	{"verdict", "(p.stage || '/' || p.resource)", VALUE_TEXT},
	{"repeats", "p.repeats", VALUE_NUMBER},
};

static const char *const statuses[] = {
	"complete", "interrupted", "failed", "running", "unreadable", NULL};

/* A condition taken apart. */
struct condition {
	const char *whole;
	char key[KEY_BYTES];
	enum operator_id op;
	const char *value;
};

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

static int take_apart(const char *text, struct condition *condition, struct error *err)
{
	const char *at = filter_skip_blanks(text);
	size_t length = 0;
	while (is_key_letter(at[length]))
		length++;
	*condition = (struct condition){.whole = text};
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

/* --- values ----------------------------------------------------------------------------------- */

static int filter_push(
	struct history_filter *filter, const char *text, double number, struct error *err)
{
	if (filter->value_count == HISTORY_VALUES_MAX)
		return error_set(err, -EINVAL, "more than %d conditions", HISTORY_CONDITIONS_MAX);
	struct history_value *value = &filter->values[filter->value_count];
	*value = (struct history_value){.number = number};
	if (text) {
		value->text = strdup(text);
		if (!value->text)
			return error_set(err, -ENOMEM, "out of memory for the conditions");
	}
	filter->value_count++;
	return 0;
}

static int filter_refuse_value(const struct condition *condition, const char *as, struct error *err)
{
	return error_set(err, -EINVAL, "'%s': '%s' is not a value of %s%s%s", condition->whole,
		condition->value, condition->key, *as ? ": as " : "", as);
}

/* What stands left of the operator is `sql`; its own places are filled already. */
static int filter_add_text(struct history_filter *filter, const struct condition *condition,
	const char *sql, struct error *err)
{
	switch (condition->op) {
	case OP_EQUAL:
	case OP_NOT:
		buffer_format(&filter->sql, " AND (%s %s ?)", sql, operator_sql[condition->op]);
		break;
	case OP_CONTAINS:
		buffer_format(&filter->sql, " AND (instr(lower(%s), lower(?)) > 0)", sql);
		break;
	default:
		return error_set(err, -EINVAL,
			"'%s': %s is text; compare it with =, != or ~ (contains)", condition->whole,
			condition->key);
	}
	return filter_push(filter, condition->value, 0, err);
}

static int filter_add_number(struct history_filter *filter, const struct condition *condition,
	const char *sql, double number, struct error *err)
{
	if (condition->op == OP_CONTAINS)
		return error_set(err, -EINVAL,
			"'%s': %s is a number; compare it with =, !=, <, <=, > or >=",
			condition->whole, condition->key);
	buffer_format(&filter->sql, " AND (%s %s ?)", sql, operator_sql[condition->op]);
	return filter_push(filter, NULL, number, err);
}

static int add_prefix(struct history_filter *filter, const struct condition *condition,
	const char *sql, struct error *err)
{
	if (condition->op != OP_EQUAL)
		return filter_add_text(filter, condition, sql, err);
	if (!*condition->value)
		return filter_refuse_value(condition, "its first letters", err);
	buffer_format(&filter->sql, " AND (substr(%s, 1, length(?)) = ?)", sql);
	const int code = filter_push(filter, condition->value, 0, err);
	return code ? code : filter_push(filter, condition->value, 0, err);
}

static int add_status(struct history_filter *filter, const struct condition *condition,
	const char *sql, struct error *err)
{
	size_t count = 0;
	for (; statuses[count]; count++)
		if (strcmp(statuses[count], condition->value) == 0)
			return filter_add_text(filter, condition, sql, err);
	const char *near = suggest_nearest(condition->value, statuses, count);
	if (near)
		return error_set(err, -EINVAL, "unknown status '%s' (did you mean '%s'?)",
			condition->value, near);
	return filter_refuse_value(
		condition, "complete, interrupted, failed, running or unreadable", err);
}

static int filter_add_column(struct history_filter *filter, const struct condition *condition,
	const struct column *column, struct error *err)
{
	char *end;
	double number = 0;
	switch (column->kind) {
	case VALUE_PREFIX:
		return add_prefix(filter, condition, column->sql, err);
	case VALUE_STATUS:
		return add_status(filter, condition, column->sql, err);
	case VALUE_NUMBER:
		number = strtod(condition->value, &end);
		if (end == condition->value || *end || !isfinite(number))
			return filter_refuse_value(condition, "a number", err);
		return filter_add_number(filter, condition, column->sql, number, err);
	case VALUE_TIME:
		if (history_time_parse(condition->value, (double)time(NULL), &number, err))
			return -EINVAL;
		return filter_add_number(filter, condition, column->sql, number, err);
	case VALUE_SWITCH:
		number = strcmp(condition->value, "yes") == 0 ||
			 strcmp(condition->value, "true") == 0 ||
			 strcmp(condition->value, "1") == 0;
		if (number == 0 && strcmp(condition->value, "no") != 0 &&
			strcmp(condition->value, "false") != 0 &&
			strcmp(condition->value, "0") != 0)
			return filter_refuse_value(condition, "yes or no", err);
		return filter_add_number(filter, condition, column->sql, number, err);
	case VALUE_TEXT:
		break;
	}
	return filter_add_text(filter, condition, column->sql, err);
}

/* --- keys that are members of a JSON object --------------------------------------------------- */

static int push_path(struct history_filter *filter, const char *key, struct error *err)
{
	char path[PATH_BYTES];
	(void)snprintf(path, sizeof path, "$.\"%s\"", key);
	return filter_push(filter, path, 0, err);
}

/* Read as the configuration reads it: "64k", "1.5ms", "on". */
static int add_config(struct history_filter *filter, const struct condition *condition,
	enum key_id key, struct error *err)
{
	static const char sql[] = "coalesce(json_extract(p.swept, ?), json_extract(r.config, ?))";
	const enum key_type type = config_keys[key].type;
	struct config config;
	int code = push_path(filter, condition->key, err);
	if (!code)
		code = push_path(filter, condition->key, err);
	if (code)
		return code;
	if (type == KEY_TYPE_TEXT || (type == KEY_TYPE_CHOICE && condition->op == OP_CONTAINS))
		return filter_add_text(filter, condition, sql, err);
	config_init(&config);
	code = config_set_key(&config, key, condition->value, err);
	if (!code && type == KEY_TYPE_CHOICE)
		code = filter_add_text(filter, condition, sql, err);
	else if (!code)
		code = filter_add_number(filter, condition, sql,
			type == KEY_TYPE_REAL || type == KEY_TYPE_SHARE
				? config.values[key].real
				: (double)config.values[key].integer,
			err);
	config_release(&config);
	return code;
}

static int add_metric(struct history_filter *filter, const struct condition *condition,
	const struct history_metric *metric, struct error *err)
{
	double number;
	if (history_unit_parse(metric->unit, condition->value, &number) || !isfinite(number))
		return filter_refuse_value(condition, history_unit_name(metric->unit), err);
	if (strcmp(metric->name, "throughput") == 0)
		return filter_add_number(filter, condition, "p.throughput", number, err);
	if (strcmp(metric->name, "confidence") == 0)
		return filter_add_number(filter, condition, "p.confidence", number, err);
	const int code = push_path(filter, condition->key, err);
	return code ? code
		    : filter_add_number(
			      filter, condition, "json_extract(p.metrics, ?)", number, err);
}

/* A fact is a text or a number, as it was found. */
static int filter_add_fact(
	struct history_filter *filter, const struct condition *condition, struct error *err)
{
	char *end;
	const double number = strtod(condition->value, &end);
	const bool is_number = end != condition->value && !*end && isfinite(number);
	const int code = push_path(filter, condition->key, err);
	if (code)
		return code;
	if (is_number && condition->op != OP_CONTAINS)
		return filter_add_number(
			filter, condition, "CAST(json_extract(r.facts, ?) AS REAL)", number, err);
	return filter_add_text(filter, condition, "json_extract(r.facts, ?)", err);
}

/* --- names ------------------------------------------------------------------------------------ */

/* Names of facts that any result has, at most FACTS_MAX. */
static size_t fact_names(const struct history_database *db, char (*names)[KEY_BYTES])
{
	sqlite3_stmt *statement = NULL;
	size_t count = 0;
	if (!db || sqlite3_prepare_v2(db->handle,
			   "SELECT DISTINCT f.key FROM results r, json_each(r.facts) f "
			   "WHERE r.facts IS NOT NULL LIMIT 256",
			   -1, &statement, NULL) != SQLITE_OK)
		return 0;
	while (count < FACTS_MAX && sqlite3_step(statement) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(statement, 0);
		size_t length = 0;
		while (name && is_key_letter(name[length]))
			length++;
		if (name && length > 0 && !name[length] && length < KEY_BYTES)
			(void)snprintf(names[count++], KEY_BYTES, "%s", name);
	}
	(void)sqlite3_finalize(statement);
	return count;
}

static bool is_fact(const char (*facts)[KEY_BYTES], size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(facts[i], name) == 0)
			return true;
	return false;
}

static int filter_refuse_key(const struct condition *condition, const char (*facts)[KEY_BYTES],
	size_t fact_count, struct error *err)
{
	const char *names[NAMES_MAX];
	char metrics[METRIC_NAMES_MAX][64];
	char keys[KEY_COUNT][CONFIG_NAME_BYTES];
	size_t count = 0;
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
		names[count++] = columns[i].name;
	for (int key = 0; key < KEY_COUNT && count < NAMES_MAX; key++)
		names[count++] = config_key_name((enum key_id)key, keys[key]);
	const size_t metric_count = history_metric_names(metrics, METRIC_NAMES_MAX);
	for (size_t i = 0; i < metric_count && count < NAMES_MAX; i++)
		names[count++] = metrics[i];
	for (size_t i = 0; i < fact_count && count < NAMES_MAX; i++)
		names[count++] = facts[i];
	const char *near = suggest_nearest(condition->key, names, count);
	if (near)
		return error_set(err, -EINVAL, "'%s': unknown key '%s' (did you mean '%s'?)",
			condition->whole, condition->key, near);
	return error_set(err, -EINVAL,
		"'%s': unknown key '%s'; 'mlbench help history' lists the keys", condition->whole,
		condition->key);
}

static int add_member(struct history_filter *filter, const struct history_database *db,
	const struct condition *condition, struct error *err)
{
	struct history_metric metric;
	char facts[FACTS_MAX][KEY_BYTES];
	const enum key_id key = config_find_key(condition->key);
	if (key != KEY_COUNT)
		return add_config(filter, condition, key, err);
	if (history_metric_is(condition->key, &metric))
		return add_metric(filter, condition, &metric, err);
	const size_t count = fact_names(db, facts);
	if (is_fact((const char(*)[KEY_BYTES])facts, count, condition->key))
		return filter_add_fact(filter, condition, err);
	return filter_refuse_key(condition, (const char(*)[KEY_BYTES])facts, count, err);
}

int history_filter_add(struct history_filter *filter, const struct history_database *db,
	const char *condition, struct error *err)
{
	struct condition parts;
	const int code = take_apart(condition, &parts, err);
	if (code)
		return code;
	if (filter->condition_count++ == HISTORY_CONDITIONS_MAX)
		return error_set(err, -EINVAL, "more than %d conditions", HISTORY_CONDITIONS_MAX);
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
		if (strcmp(parts.key, columns[i].name) == 0)
			return filter_add_column(filter, &parts, &columns[i], err);
	return add_member(filter, db, &parts, err);
}

int history_filter_since(struct history_filter *filter, double seconds, struct error *err)
{
	buffer_text(&filter->sql, " AND (r.started >= ?)");
	return filter_push(filter, NULL, seconds, err);
}

int history_filter_bind(const struct history_filter *filter, sqlite3_stmt *statement, int *at)
{
	int code = SQLITE_OK;
	for (size_t i = 0; i < filter->value_count && code == SQLITE_OK; i++) {
		const struct history_value *value = &filter->values[i];
		code = value->text ? sqlite3_bind_text(
					     statement, *at, value->text, -1, SQLITE_TRANSIENT)
				   : sqlite3_bind_double(statement, *at, value->number);
		(*at)++;
	}
	return code;
}

void history_filter_release(struct history_filter *filter)
{
	for (size_t i = 0; i < filter->value_count; i++)
		free(filter->values[i].text);
	buffer_release(&filter->sql);
	*filter = (struct history_filter){0};
}
