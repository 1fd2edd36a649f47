/* The index of results: which there are below a folder, what of each becomes rows, and what is new, has changed or
 * is gone. */
#include "harness/report/history.h"

#include "harness/base/buffer.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/log.h"
#include "harness/measure/environment.h"
#include "harness/record/config_json.h"
#include "harness/record/fields.h"
#include "harness/report/report.h"
#include "harness/report/saved_diagnoses.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* --- walking the folders ---------------------------------------------------------------------- */

struct found_result {
	char *folder; /* below the root, "." for the root itself; owned */
	int64_t mtime_ns, size;
	bool running; /* its run holds the file locked */
};

struct found_results {
	struct found_result *results; /* (count) by folder; owned */
	size_t count, room;
};

enum { DEPTH_MAX = 8, RESULTS_MAX = 1000000, LINE_BYTES = 256, LOCKS_MAX = 256 };

/* Files that somebody holds locked (flock), by /proc/locks: to try the lock would disturb who wants it. */
struct locks {
	struct {
		unsigned major, minor;
		uint64_t inode;
	} files[LOCKS_MAX];
	size_t count;
};

struct walk {
	const char *root;
	struct found_results *found;
	struct locks locks;
	struct error *err;
};

static void read_locks(struct locks *locks)
{
	char line[LINE_BYTES];
	FILE *file = fopen("/proc/locks", "re");
	while (file && locks->count < LOCKS_MAX && fgets(line, sizeof line, file)) {
		const char *flock = strstr(line, "FLOCK");
		unsigned major;
		unsigned minor;
		uint64_t inode;
		if (flock && sscanf(flock, "FLOCK %*s %*s %*s %x:%x:%" SCNu64, &major, &minor,
				     &inode) == 3) {
			locks->files[locks->count].major = major;
			locks->files[locks->count].minor = minor;
			locks->files[locks->count++].inode = inode;
		}
	}
	if (file)
		(void)fclose(file);
}

static bool is_locked(const struct locks *locks, const struct stat *st)
{
	for (size_t i = 0; i < locks->count; i++)
		if (locks->files[i].inode == st->st_ino &&
			locks->files[i].major == major(st->st_dev) &&
			locks->files[i].minor == minor(st->st_dev))
			return true;
	return false;
}

static int scan_add_found(struct walk *walk, const char *folder, const struct stat *st)
{
	struct found_results *found = walk->found;
	if (found->count == RESULTS_MAX)
		return error_set(
			walk->err, -E2BIG, "more than %d results in '%s'", RESULTS_MAX, walk->root);
	if (found->count == found->room) {
		const size_t room = found->room ? 2 * found->room : 64;
		struct found_result *larger = realloc(found->results, room * sizeof *larger);
		if (!larger)
			return error_set(walk->err, -ENOMEM, "out of memory for the history");
		found->results = larger;
		found->room = room;
	}
	char *copy = strdup(*folder ? folder : ".");
	if (!copy)
		return error_set(walk->err, -ENOMEM, "out of memory for the history");
	found->results[found->count++] = (struct found_result){.folder = copy,
		.mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
		.size = (int64_t)st->st_size,
		.running = is_locked(&walk->locks, st)};
	return 0;
}

static bool holds_points(const char *path, struct stat *st)
{
	char *points = files_join(path, "points.jsonl");
	const bool there = points && stat(points, st) == 0 && S_ISREG(st->st_mode);
	free(points);
	return there;
}

static bool is_plain_folder(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int walk_folder(struct walk *walk, const char *path, const char *folder, int depth);

static int walk_entry(
	struct walk *walk, const char *path, const char *folder, const char *name, int depth)
{
	if (name[0] == '.')
		return 0;
	char *below = files_join(path, name);
	char *relative = *folder ? files_join(folder, name) : strdup(name);
	int code = below && relative
			   ? 0
			   : error_set(walk->err, -ENOMEM, "out of memory for the history");
	if (!code && is_plain_folder(below))
		code = walk_folder(walk, below, relative, depth + 1);
	free(relative);
	free(below);
	return code;
}

static int walk_folder(struct walk *walk, const char *path, const char *folder, int depth)
{
	struct stat st;
	if (holds_points(path, &st))
		return scan_add_found(walk, folder, &st);
	if (depth == DEPTH_MAX)
		return 0;
	DIR *dir = opendir(path);
	if (!dir && depth == 0)
		return error_set_errno(walk->err, errno, "cannot open '%s'", path);
	if (!dir) {
		log_warn("cannot open '%s': %s", path, strerror(errno));
		return 0;
	}
	int code = 0;
	for (const struct dirent *entry = readdir(dir); entry && !code; entry = readdir(dir))
		code = walk_entry(walk, path, folder, entry->d_name, depth);
	(void)closedir(dir);
	return code;
}

static int by_folder(const void *a, const void *b)
{
	const struct found_result *left = a;
	const struct found_result *right = b;
	return strcmp(left->folder, right->folder);
}

/* Every points.jsonl in folders below root, without opening any; not through links, and a result's own folder is not
 * searched.  What cannot be read is warned of and left out. */
static int history_scan(const char *root, struct found_results *out, struct error *err)
{
	struct walk walk = {.root = root, .found = out, .err = err};
	*out = (struct found_results){0};
	read_locks(&walk.locks);
	const int code = walk_folder(&walk, root, "", 0);
	if (!code && out->count > 0)
		qsort(out->results, out->count, sizeof *out->results, by_folder);
	return code;
}

static void history_scan_release(struct found_results *found)
{
	for (size_t i = 0; i < found->count; i++)
		free(found->results[i].folder);
	free(found->results);
	*found = (struct found_results){0};
}

/* --- from files to rows ----------------------------------------------------------------------- */

enum { NODE_BYTES = 24, HOST_BYTES = 80 };

/* --- a statement with its values -------------------------------------------------------------- */

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

/* --- what is kept of a result ----------------------------------------------------------------- */

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

static json_t *entry_facts_of(const struct fact_list *facts)
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

static const char *entry_text_of(const struct fact_list *facts, const char *group, const char *name)
{
	const struct fact *fact = fact_find(facts, group, name);
	return fact && fact->kind == FACT_TEXT ? fact->text : NULL;
}

static uint64_t entry_add_text(uint64_t hash, const char *text)
{
	return hash_bytes(text, strlen(text) + 1, hash);
}

/* What makes nodes comparable: name, CPU, cores that were usable, GPUs. */
static void entry_node_of(const struct record *record, char out[NODE_BYTES])
{
	const struct fact_list *facts = &record->environment;
	const char *cpu = entry_text_of(facts, "cpu", "model");
	const char *name = fact_node_name_lasts(facts) ? fact_node_name(facts) : "";
	uint64_t hash = entry_add_text(record->cores, name);
	hash = entry_add_text(hash, cpu ? cpu : "");
	for (size_t i = 0; i < facts->count; i++) {
		const struct fact *fact = &facts->facts[i];
		if (strcmp(fact->group, "gpu") == 0 && fact->kind == FACT_TEXT &&
			(strstr(fact->name, "name") || strstr(fact->name, "model")))
			hash = entry_add_text(hash, fact->text);
	}
	(void)snprintf(out, NODE_BYTES, "%08" PRIx32, (uint32_t)(hash ^ hash >> 32));
}

/* --- rows ------------------------------------------------------------------------------------- */

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
	entry_node_of(record, node);
	insert_open(&insert, db, result_sql);
	bind_file(&insert, found, NULL);
	bind_text(&insert, record->name);
	bind_text(&insert, record->config_hash);
	bind_text(&insert, node);
	bind_text(&insert, fact_node_name(&record->environment));
	bind_text(&insert, entry_text_of(&record->environment, "cpu", "model"));
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
	bind_json(&insert, entry_facts_of(&record->environment));
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

/* Reads the result in found->folder below root and puts it into the index, in place of what was there of it.  A result
 * that cannot be read is kept as such, with the reason. */
static int history_entry_add(struct history_database *db, const char *root,
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

static int history_entry_remove(struct history_database *db, const char *folder, struct error *err)
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

/* --- bringing it up to date ------------------------------------------------------------------- */

/* What the index knows of a file. */
struct known {
	char *folder;
	int64_t mtime_ns, size;
	bool running;
};

struct known_list {
	struct known *items;
	size_t count, room;
};

static void known_release(struct known_list *known)
{
	for (size_t i = 0; i < known->count; i++)
		free(known->items[i].folder);
	free(known->items);
	*known = (struct known_list){0};
}

static int history_add_known(struct known_list *known, sqlite3_stmt *statement)
{
	if (known->count == known->room) {
		const size_t room = known->room ? 2 * known->room : 64;
		struct known *larger = realloc(known->items, room * sizeof *larger);
		if (!larger)
			return -ENOMEM;
		known->items = larger;
		known->room = room;
	}
	const char *folder = (const char *)sqlite3_column_text(statement, 0);
	char *copy = strdup(folder ? folder : "");
	if (!copy)
		return -ENOMEM;
	known->items[known->count++] = (struct known){.folder = copy,
		.mtime_ns = sqlite3_column_int64(statement, 1),
		.size = sqlite3_column_int64(statement, 2),
		.running = sqlite3_column_int64(statement, 3) != 0};
	return 0;
}

static int read_known(
	const struct history_database *db, struct known_list *known, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v2(db->handle,
		"SELECT folder, mtime, size, running FROM results ORDER BY folder", -1, &statement,
		NULL);
	while (code == SQLITE_OK || code == SQLITE_ROW) {
		code = sqlite3_step(statement);
		if (code == SQLITE_ROW && history_add_known(known, statement))
			code = SQLITE_NOMEM;
	}
	(void)sqlite3_finalize(statement);
	return code == SQLITE_DONE ? 0 : history_database_error(db, "read the index", err);
}

/* A run in progress may end without another byte (killed): it is looked at again. */
static bool history_is_same(const struct known *known, const struct found_result *found)
{
	return known->mtime_ns == found->mtime_ns && known->size == found->size &&
	       known->running == found->running;
}

struct update {
	struct history *history;
	const struct known_list *known;
	const struct found_results *found;
	const atomic_bool *stop;
	struct error *err;
	uint64_t begun_ns;
};

static int history_add(struct update *update, const struct found_result *found)
{
	struct history *history = update->history;
	bool readable = true;
	if (update->stop && atomic_load(update->stop))
		return error_set(update->err, -EINTR, "interrupted");
	const int code =
		history_entry_add(&history->db, history->root, found, &readable, update->err);
	history->fresh++;
	log_progress(
		"reading results: %zu new or changed of %zu", history->fresh, update->found->count);
	return code;
}

static int take_away(struct update *update, const struct known *known)
{
	update->history->gone++;
	return history_entry_remove(&update->history->db, known->folder, update->err);
}

/* Both lists are in the order of the folders. */
static int history_merge(struct update *update)
{
	const struct known_list *known = update->known;
	const struct found_results *found = update->found;
	size_t k = 0;
	size_t f = 0;
	int code = 0;
	while (!code && (k < known->count || f < found->count)) {
		const int order = k == known->count   ? 1
				  : f == found->count ? -1
						      : strcmp(known->items[k].folder,
								found->results[f].folder);
		if (order < 0) {
			code = take_away(update, &known->items[k++]);
		} else if (order > 0) {
			code = history_add(update, &found->results[f++]);
		} else {
			if (!history_is_same(&known->items[k], &found->results[f]))
				code = history_add(update, &found->results[f]);
			k++;
			f++;
		}
	}
	return code;
}

static int history_count(struct history *history, struct error *err)
{
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v2(history->db.handle,
		"SELECT count(*), count(problem) FROM results", -1, &statement, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	if (code == SQLITE_ROW) {
		history->total = (size_t)sqlite3_column_int64(statement, 0);
		history->unreadable = (size_t)sqlite3_column_int64(statement, 1);
	}
	(void)sqlite3_finalize(statement);
	return code == SQLITE_ROW ? 0
				  : history_database_error(&history->db, "count the results", err);
}

static int bring_up_to_date(struct history *history, const struct found_results *found,
	const atomic_bool *stop, struct error *err)
{
	struct known_list known = {0};
	struct update update = {
		.history = history, .known = &known, .found = found, .stop = stop, .err = err};
	int code = read_known(&history->db, &known, err);
	if (!code)
		code = history_merge(&update);
	log_progress_end();
	known_release(&known);
	return code ? code : history_count(history, err);
}

/* A result alone has no index beside it: it would lie in the result's own folder. */
static bool is_result(const struct found_results *found)
{
	return found->count == 1 && strcmp(found->results[0].folder, ".") == 0;
}

int history_open(struct history *history, const char *root, bool rebuild, const atomic_bool *stop,
	struct error *err)
{
	struct found_results found;
	*history = (struct history){.root = strdup(root)};
	if (!history->root)
		return error_set(err, -ENOMEM, "out of memory");
	int code = history_scan(root, &found, err);
	char *path = is_result(&found) ? NULL : files_join(root, HISTORY_FILE);
	if (!code && !path && !is_result(&found))
		code = error_set(err, -ENOMEM, "out of memory");
	if (!code)
		code = history_database_open(&history->db, path, rebuild, err);
	if (!code)
		code = bring_up_to_date(history, &found, stop, err);
	free(path);
	history_scan_release(&found);
	return code;
}

void history_close(struct history *history)
{
	history_database_close(&history->db);
	free(history->root);
	*history = (struct history){0};
}
