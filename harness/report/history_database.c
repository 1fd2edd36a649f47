/* Opening the index, whatever there is in its place. */
#include "harness/report/history_database.h"

#include "harness/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, WORD_BYTES = 64, SQL_BYTES = 128 };

/* results: one row each; problem: why it could not be read.  points: one row each of a sweep.  config, swept, facts and
 * metrics are flat JSON objects, {"decode.workers": 4}. */
static const char schema[] =
	"CREATE TABLE made_by (version TEXT NOT NULL);"
	"CREATE TABLE results ("
	" id INTEGER PRIMARY KEY, folder TEXT NOT NULL UNIQUE, mtime INTEGER NOT NULL,"
	" size INTEGER NOT NULL, running INTEGER NOT NULL, problem TEXT, name TEXT, hash TEXT,"
	" node TEXT, host TEXT, cpu TEXT, cores INTEGER, version TEXT, started REAL, finished REAL,"
	" status TEXT NOT NULL, backend TEXT, emulated INTEGER, points INTEGER,"
	" config TEXT, facts TEXT);"
	"CREATE TABLE points ("
	" result INTEGER NOT NULL REFERENCES results(id) ON DELETE CASCADE,"
	" point INTEGER NOT NULL, status TEXT NOT NULL, settings TEXT NOT NULL, swept TEXT NOT NULL,"
	" throughput REAL, low REAL, high REAL, repeats INTEGER NOT NULL, stage TEXT, also TEXT,"
	" resource TEXT, confidence REAL, metrics TEXT NOT NULL, PRIMARY KEY (result, point))"
	" WITHOUT ROWID;";

enum finding {
	FINDING_OURS,
	FINDING_EMPTY,
	FINDING_OLD,     /* ours, of another version of the schema or the program */
	FINDING_FOREIGN, /* a database of another program */
	FINDING_BROKEN,
	FINDING_LOCKED,
	FINDING_CLOSED, /* it cannot be opened */
};

int history_database_run(const struct history_database *db, const char *sql)
{
	return sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
}

int history_database_error(const struct history_database *db, const char *what, struct error *err)
{
	return error_set(err, -EIO, "history: cannot %s: %s", what, sqlite3_errmsg(db->handle));
}

/* The first column of the first row as text. */
static int database_ask(sqlite3 *handle, const char *sql, char out[WORD_BYTES])
{
	sqlite3_stmt *statement = NULL;
	out[0] = '\0';
	int code = sqlite3_prepare_v2(handle, sql, -1, &statement, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	const char *text =
		code == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : NULL;
	(void)snprintf(out, WORD_BYTES, "%s", text ? text : "");
	(void)sqlite3_finalize(statement);
	return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

static enum finding finding_of(int code)
{
	switch (code & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return FINDING_LOCKED;
	case SQLITE_NOTADB:
	case SQLITE_CORRUPT:
	case SQLITE_ERROR: /* a table that is not as it should be */
		return FINDING_BROKEN;
	default:
		return FINDING_CLOSED;
	}
}

static enum finding look_at_ours(sqlite3 *handle, const char *schema_version)
{
	char word[WORD_BYTES];
	char wanted[WORD_BYTES];
	(void)snprintf(wanted, sizeof wanted, "%d", HISTORY_VERSION);
	if (strcmp(schema_version, wanted) != 0)
		return FINDING_OLD;
	int code = database_ask(handle, "PRAGMA quick_check(1)", word);
	if (code != SQLITE_OK)
		return finding_of(code);
	if (strcmp(word, "ok") != 0)
		return FINDING_BROKEN;
	code = database_ask(handle, "SELECT version FROM made_by", word);
	if (code != SQLITE_OK)
		return finding_of(code);
	return strcmp(word, MLBENCH_VERSION) == 0 ? FINDING_OURS : FINDING_OLD;
}

static enum finding database_look(sqlite3 *handle)
{
	char application[WORD_BYTES];
	char version[WORD_BYTES];
	char tables[WORD_BYTES];
	char ours[WORD_BYTES];
	int code = database_ask(handle, "PRAGMA application_id", application);
	if (code == SQLITE_OK)
		code = database_ask(handle, "PRAGMA user_version", version);
	if (code == SQLITE_OK)
		code = database_ask(handle, "SELECT count(*) FROM sqlite_schema", tables);
	if (code != SQLITE_OK)
		return finding_of(code);
	(void)snprintf(ours, sizeof ours, "%d", HISTORY_APPLICATION);
	if (strcmp(application, ours) == 0)
		return look_at_ours(handle, version);
	const bool unused = strcmp(application, "0") == 0 && strcmp(version, "0") == 0;
	return unused && strcmp(tables, "0") == 0 ? FINDING_EMPTY : FINDING_FOREIGN;
}

static void close_handle(struct history_database *db)
{
	(void)sqlite3_close_v2(db->handle);
	db->handle = NULL;
}

static int open_handle(struct history_database *db, const char *path, int flags)
{
	const int code = sqlite3_open_v2(path, &db->handle, flags, NULL);
	if (code != SQLITE_OK)
		return code;
	(void)sqlite3_extended_result_codes(db->handle, 1);
	(void)sqlite3_busy_timeout(db->handle, HISTORY_BUSY_MS);
	/* A power failure may cost the index, which is then made again: no need to wait for the disk. */
	return history_database_run(db, "PRAGMA foreign_keys = ON; PRAGMA synchronous = OFF; "
					"PRAGMA trusted_schema = OFF;");
}

/* In one transaction; another process may have been first.  An SQLite code. */
static int make_tables(struct history_database *db)
{
	char tables[WORD_BYTES];
	char sql[SQL_BYTES];
	int code = history_database_run(db, "BEGIN IMMEDIATE");
	if (code != SQLITE_OK)
		return code;
	code = database_ask(db->handle, "SELECT count(*) FROM sqlite_schema", tables);
	if (code == SQLITE_OK && strcmp(tables, "0") == 0) {
		(void)snprintf(sql, sizeof sql,
			"PRAGMA application_id = %d; PRAGMA user_version = %d;",
			HISTORY_APPLICATION, HISTORY_VERSION);
		code = history_database_run(db, sql);
		if (code == SQLITE_OK)
			code = history_database_run(db, schema);
		if (code == SQLITE_OK)
			code = history_database_run(
				db, "INSERT INTO made_by VALUES ('" MLBENCH_VERSION "')");
	}
	if (code == SQLITE_OK)
		code = history_database_run(db, "COMMIT");
	if (code != SQLITE_OK)
		(void)history_database_run(db, "ROLLBACK");
	return code;
}

static int open_memory(struct history_database *db, struct error *err)
{
	db->in_memory = true;
	if (open_handle(db, ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) != SQLITE_OK ||
		make_tables(db) != SQLITE_OK)
		return history_database_error(db, "make the index in memory", err);
	return 0;
}

/* What the file holds, if that is ours and can be read. */
static bool copy_to_memory(const struct history_database *file, struct history_database *memory)
{
	sqlite3_backup *backup = sqlite3_backup_init(memory->handle, "main", file->handle, "main");
	if (!backup)
		return false;
	const int code = sqlite3_backup_step(backup, -1);
	return sqlite3_backup_finish(backup) == SQLITE_OK && code == SQLITE_DONE;
}

int history_database_leave_file(struct history_database *db, const char *why, struct error *err)
{
	struct history_database memory = {.path = db->path, .in_memory = true};
	log_warn("%s: %s; this time the index is in memory only", db->path, why);
	bool copied = false;
	if (open_handle(&memory, ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) !=
		SQLITE_OK)
		return history_database_error(&memory, "make the index in memory", err);
	if (db->handle && database_look(db->handle) == FINDING_OURS)
		copied = copy_to_memory(db, &memory);
	close_handle(db);
	*db = memory;
	if (copied)
		return 0;
	close_handle(db);
	return open_memory(db, err);
}

/* SQLite would roll a journal of the old file back into the new one. */
static void remove_journals(const char *path)
{
	static const char *const endings[] = {"-journal", "-wal", "-shm"};
	char beside[PATH_BYTES];
	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
		(void)snprintf(beside, sizeof beside, "%s%s", path, endings[i]);
		(void)unlink(beside);
	}
}

/* Nothing is destroyed: it may be somebody's. */
static bool move_aside(struct history_database *db, const char *what)
{
	char aside[PATH_BYTES];
	close_handle(db);
	(void)snprintf(aside, sizeof aside, "%s.bad", db->path);
	if (rename(db->path, aside) != 0)
		return false;
	remove_journals(db->path);
	log_warn("%s %s; it was moved to '%s', and a new one was made", db->path, what, aside);
	return true;
}

static bool remove_file(struct history_database *db)
{
	close_handle(db);
	if (unlink(db->path) != 0)
		return false;
	remove_journals(db->path);
	return true;
}

static enum finding open_file(struct history_database *db)
{
	const int code = open_handle(db, db->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
	return code == SQLITE_OK ? database_look(db->handle) : finding_of(code);
}

/* SQLite says the same of a lock that is held and of a file system that has none: ask for one of a byte that it never
 * locks. */
static const char *words_for_locked(const char *path)
{
	const struct flock first_byte = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1};
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const bool refused = fd >= 0 && fcntl(fd, F_SETLK, &first_byte) != 0;
	if (fd >= 0)
		(void)close(fd);
	return refused ? "its file system does not support locks"
		       : "another process holds it locked";
}

static const char *words_for(const struct history_database *db, int code)
{
	return finding_of(code) == FINDING_LOCKED ? words_for_locked(db->path)
						  : sqlite3_errstr(code);
}

static int open_fresh(struct history_database *db, struct error *err)
{
	if (!db->handle &&
		open_handle(db, db->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) != SQLITE_OK)
		return history_database_leave_file(db, sqlite3_errmsg(db->handle), err);
	const int code = make_tables(db);
	if (code == SQLITE_OK)
		return 0;
	return history_database_leave_file(db, words_for(db, code), err);
}

static int database_settle(
	struct history_database *db, enum finding found, bool rebuild, struct error *err)
{
	bool gone = false;
	switch (found) {
	case FINDING_OURS:
		if (!rebuild)
			return 0;
		gone = remove_file(db);
		break;
	case FINDING_EMPTY:
		return open_fresh(db, err);
	case FINDING_OLD:
		log_warn("%s is from another version of mlbench; it was made again", db->path);
		gone = remove_file(db);
		break;
	case FINDING_FOREIGN:
		gone = move_aside(db, "is another program's database");
		break;
	case FINDING_BROKEN:
		gone = move_aside(db, "is damaged, or not a database");
		break;
	case FINDING_LOCKED:
		close_handle(db); /* not asked again: that would wait once more */
		return history_database_leave_file(db, words_for_locked(db->path), err);
	case FINDING_CLOSED:
		return history_database_leave_file(db, sqlite3_errmsg(db->handle), err);
	}
	if (!gone)
		return history_database_leave_file(db, strerror(errno), err);
	return open_fresh(db, err);
}

int history_database_open(
	struct history_database *db, const char *path, bool rebuild, struct error *err)
{
	*db = (struct history_database){0};
	if (!path)
		return open_memory(db, err);
	if (strlen(path) + sizeof "-journal" > PATH_BYTES)
		return error_set(err, -ENAMETOOLONG, "path too long: '%s'", path);
	db->path = strdup(path);
	if (!db->path)
		return error_set(err, -ENOMEM, "out of memory");
	return database_settle(db, open_file(db), rebuild, err);
}

void history_database_close(struct history_database *db)
{
	close_handle(db);
	free(db->path);
	*db = (struct history_database){0};
}
