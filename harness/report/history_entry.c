/* From a result's files to rows of the index. */
#include "harness/report/history_entry.h"
#include "harness/measure/node_name.h"

#include "harness/base/buffer.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/record/config_json.h"
#include "harness/record/fields.h"
#include "harness/report/report.h"
#include "harness/report/saved_verdicts.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODE_BYTES = 24, HOST_BYTES = 80 };

/* --- a statement with its values ------------------------------------------------------------------ */

struct insert {
	sqlite3_stmt *statement;
	int at, code;
};

static void insert_open(struct insert *insert, const struct history_database *db, const char *sql)
{
	*insert = (struct insert){.at = 1};
	insert->code = sqlite3_prepare_v2(db->handle, sql, -1, &insert->statement, NULL);
}

static void bind_text(struct insert *insert, const char *text)
{
	if (insert->code == SQLITE_OK)
		insert->code = text ? sqlite3_bind_text(insert->statement, insert->at, text, -1,
					      SQLITE_TRANSIENT)
				    : sqlite3_bind_null(insert->statement, insert->at);
	insert->at++;
}

static void bind_integer(struct insert *insert, int64_t value)
{
	if (insert->code == SQLITE_OK)
		insert->code = sqlite3_bind_int64(insert->statement, insert->at, value);
	insert->at++;
}

/* NAN: nothing. */
static void bind_real(struct insert *insert, double value)
{
	if (insert->code == SQLITE_OK)
		insert->code = isfinite(value)
				       ? sqlite3_bind_double(insert->statement, insert->at, value)
				       : sqlite3_bind_null(insert->statement, insert->at);
	insert->at++;
}

/* Takes value. */
static void bind_json(struct insert *insert, json_t *value)
{
	char *text = value ? json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	if (!text && insert->code == SQLITE_OK)
		insert->code = SQLITE_NOMEM;
	bind_text(insert, text);
	free(text);
	json_decref(value);
}

/* An SQLite code. */
static int insert_close(struct insert *insert)
{
	if (insert->code == SQLITE_OK) {
		const int code = sqlite3_step(insert->statement);
		insert->code = code == SQLITE_DONE ? SQLITE_OK : code;
	}
	(void)sqlite3_finalize(insert->statement);
	return insert->code;
}

/* --- what is kept of a result --------------------------------------------------------------------- */

/* Numbers in the key's base unit, so that they compare; choices and texts as text. */
static json_t *plain_value(enum key_id key, const struct config_value *value)
{
	switch (config_keys[key].type) {
	case KEY_TYPE_REAL:
	case KEY_TYPE_SHARE:
		return json_real(value->real);
	case KEY_TYPE_CHOICE:
	case KEY_TYPE_TEXT:
		return config_value_to_json(key, value);
	default:
		return json_integer(value->integer);
	}
}

static json_t *config_of(const struct config *config)
{
	json_t *object = json_object();
	int bad = object ? 0 : -ENOMEM;
	for (int key = 0; key < KEY_COUNT && !bad; key++) {
		char name[CONFIG_NAME_BYTES];
		bad = json_object_set_new(object, config_key_name((enum key_id)key, name),
			plain_value((enum key_id)key, &config->values[key]));
	}
	if (!bad)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *swept_of(const struct record *record, size_t point)
{
	json_t *object = json_object();
	int bad = object ? 0 : -ENOMEM;
	for (size_t axis = 0; axis < record->config.axis_count && !bad; axis++) {
		const struct config_axis *a = &record->config.axes[axis];
		const size_t choice = record->grid.choice[point * record->grid.axis_count + axis];
		char name[CONFIG_NAME_BYTES];
		bad = json_object_set_new(object, config_key_name(a->key, name),
			plain_value(a->key, &a->values[choice]));
	}
	if (!bad)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *facts_of(const struct fact_list *facts)
{
	json_t *object = json_object();
	int bad = object ? 0 : -ENOMEM;
	for (size_t i = 0; i < facts->count && !bad; i++) {
		const struct fact *fact = &facts->facts[i];
		char name[CONFIG_NAME_BYTES];
		(void)snprintf(name, sizeof name, "%s.%s", fact->group, fact->name);
		if (fact->kind == FACT_NUMBER)
			bad = json_object_set_new(object, name, fields_number(fact->number));
		else if (fact->kind == FACT_TEXT)
			bad = json_object_set_new(object, name, fields_text(fact->text));
	}
	if (!bad)
		return object;
	json_decref(object);
	return NULL;
}

static const char *text_of(const struct fact_list *facts, const char *group, const char *name)
{
	const struct fact *fact = fact_find(facts, group, name);
	return fact && fact->kind == FACT_TEXT ? fact->text : NULL;
}

static uint64_t add_text(uint64_t hash, const char *text)
{
	return hash_bytes(text, strlen(text) + 1, hash);
}

/* What makes nodes comparable: name, CPU, cores that were usable, GPUs. */
static void node_of(const struct record *record, char out[NODE_BYTES])
{
	const struct fact_list *facts = &record->environment;
	const char *cpu = text_of(facts, "cpu", "model");
	const char *name = fact_node_name_lasts(facts) ? fact_node_name(facts) : "";
	uint64_t hash = add_text(record->cores, name);
	hash = add_text(hash, cpu ? cpu : "");
	for (size_t i = 0; i < facts->count; i++) {
		const struct fact *fact = &facts->facts[i];
		if (strcmp(fact->group, "gpu") == 0 && fact->kind == FACT_TEXT &&
			(strstr(fact->name, "name") || strstr(fact->name, "model")))
			hash = add_text(hash, fact->text);
	}
	(void)snprintf(out, NODE_BYTES, "%08" PRIx32, (uint32_t)(hash ^ hash >> 32));
}

/* --- rows ------------------------------------------------------------------------------------------ */

static const char result_sql[] =
	"INSERT INTO results (folder, mtime, size, running, problem, name, hash, node, host, cpu,"
	" cores, version, started, finished, status, backend, emulated, points, config, facts)"
	" VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
static const char point_sql[] =
	"INSERT INTO points (result, point, status, settings, swept, throughput, low, high, repeats,"
	" stage, also, resource, confidence, metrics) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)";

static void bind_file(struct insert *insert, const struct found_result *found, const char *problem)
{
	bind_text(insert, found->folder);
	bind_integer(insert, found->mtime_ns);
	bind_integer(insert, found->size);
	bind_integer(insert, found->running);
	bind_text(insert, problem);
}

static int insert_unreadable(
	struct history_database *db, const struct found_result *found, const char *problem)
{
	struct insert insert;
	insert_open(&insert, db,
		"INSERT INTO results (folder, mtime, size, running, problem, status) VALUES "
		"(?,?,?,?,?,'unreadable')");
	bind_file(&insert, found, problem);
	return insert_close(&insert);
}

static int insert_result(
	struct history_database *db, const struct found_result *found, const struct report *report)
{
	const struct record *record = report->record;
	const char *version = json_string_value(json_object_get(record->header, "version"));
	char node[NODE_BYTES];
	struct insert insert;
	node_of(record, node);
	insert_open(&insert, db, result_sql);
	bind_file(&insert, found, NULL);
	bind_text(&insert, record->name);
	bind_text(&insert, record->config_hash);
	bind_text(&insert, node);
	bind_text(&insert, fact_node_name(&record->environment));
	bind_text(&insert, text_of(&record->environment, "cpu", "model"));
	bind_integer(&insert, record->cores);
	bind_text(&insert, version);
	bind_real(&insert, record->started);
	bind_real(&insert, record->finished);
	bind_text(
		&insert, found->running && record->interrupted ? "running" : report_status(report));
	bind_text(&insert, record->step.backend);
	bind_integer(&insert, record->step.emulated);
	bind_integer(&insert, (int64_t)record->grid.points);
	bind_json(&insert, config_of(&record->config));
	bind_json(&insert, facts_of(&record->environment));
	return insert_close(&insert);
}

static int insert_point(
	struct history_database *db, int64_t result, const struct report *report, size_t point)
{
	const struct point_summary *p = report->points[point];
	const struct verdict *v = &p->verdict;
	struct buffer settings = {0};
	struct insert insert;
	insert_open(&insert, db, point_sql);
	report_settings(report, point, &settings);
	bind_integer(&insert, result);
	bind_integer(&insert, (int64_t)point);
	bind_text(&insert, point_status_name(p->status));
	bind_text(&insert, settings.data ? settings.data : "");
	bind_json(&insert, swept_of(report->record, point));
	bind_real(&insert, p->status == POINT_FAILED ? (double)NAN : p->median);
	bind_real(&insert, p->ci95.low);
	bind_real(&insert, p->ci95.high);
	bind_integer(&insert, (int64_t)p->repeat_count);
	bind_text(&insert, v->stage);
	bind_text(&insert, v->also);
	bind_text(&insert, v->resource);
	bind_real(&insert, v->confidence);
	bind_json(&insert, history_metrics_of(p));
	buffer_release(&settings);
	return insert_close(&insert);
}

static int insert_all(
	struct history_database *db, const struct found_result *found, const struct report *report)
{
	int code = insert_result(db, found, report);
	const int64_t id = sqlite3_last_insert_rowid(db->handle);
	for (size_t i = 0; i < report->record->grid.points && code == SQLITE_OK; i++)
		if (report->points[i])
			code = insert_point(db, id, report, i);
	return code;
}

static int delete_result(struct history_database *db, const char *folder)
{
	struct insert remove;
	insert_open(&remove, db, "DELETE FROM results WHERE folder = ?");
	bind_text(&remove, folder);
	return insert_close(&remove);
}

/* report NULL: the result cannot be read, for this reason.  An SQLite code. */
static int replace(struct history_database *db, const struct found_result *found,
	const struct report *report, const char *problem)
{
	int code = history_database_run(db, "BEGIN IMMEDIATE");
	if (code != SQLITE_OK)
		return code;
	code = delete_result(db, found->folder);
	if (code == SQLITE_OK)
		code = report ? insert_all(db, found, report)
			      : insert_unreadable(db, found, problem);
	if (code == SQLITE_OK)
		code = history_database_run(db, "COMMIT");
	if (code != SQLITE_OK)
		(void)history_database_run(db, "ROLLBACK");
	return code;
}

/* What does not go into the file goes into memory. */
static int put_into(struct history_database *db, const struct found_result *found,
	const struct report *report, const char *problem, struct error *err)
{
	int code = replace(db, found, report, problem);
	if (code != SQLITE_OK && !db->in_memory && db->path) {
		const int left = history_database_leave_file(db, sqlite3_errstr(code), err);
		if (left)
			return left;
		code = replace(db, found, report, problem);
	}
	return code == SQLITE_OK ? 0 : history_database_error(db, "add a result", err);
}

int history_entry_add(struct history_database *db, const char *root,
	const struct found_result *found, bool *readable, struct error *err)
{
	struct record record = {0};
	struct report report = {0};
	struct error why = {0};
	char *folder =
		strcmp(found->folder, ".") == 0 ? strdup(root) : files_join(root, found->folder);
	int code = folder ? record_open(&record, folder, &why)
			  : error_set(&why, -ENOMEM, "out of memory");
	if (!code)
		code = report_open(&report, &record, &why);
	if (!code && !saved_verdicts_take(&report))
		code = report_diagnose_best(&report, &why);
	*readable = code == 0;
	struct found_result seen = *found;
	if (code && code != -EINVAL)
		seen.mtime_ns =
			-1; /* the reason may have passed the next time: it is looked at again then */
	if (code != -ENOMEM)
		code = put_into(db, &seen, code ? NULL : &report, why.text, err);
	else
		code = error_set(err, -ENOMEM, "%s", why.text);
	report_close(&report);
	record_release(&record);
	free(folder);
	return code;
}

int history_entry_remove(struct history_database *db, const char *folder, struct error *err)
{
	int code = delete_result(db, folder);
	if (code != SQLITE_OK && !db->in_memory && db->path) {
		const int left = history_database_leave_file(db, sqlite3_errstr(code), err);
		if (left)
			return left;
		code = delete_result(db, folder);
	}
	return code == SQLITE_OK ? 0 : history_database_error(db, "remove a result", err);
}
