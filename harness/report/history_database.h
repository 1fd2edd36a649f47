/* The file behind the history: an SQLite database that can be thrown away at any time.  Whatever is wrong with it (torn,
 * of another program, of another version, locked, on a read-only medium) is said, and costs time, never an
 * answer: at worst the index is made in memory. */
#ifndef MLBENCH_REPORT_HISTORY_DATABASE_H
#define MLBENCH_REPORT_HISTORY_DATABASE_H

#include "harness/base/error.h"

#include <sqlite3.h>
#include <stdbool.h>

#define HISTORY_FILE "history.sqlite"

enum {
	HISTORY_APPLICATION = 0x6d6c6268, /* "mlbh" */
	HISTORY_VERSION = 2,              /* of the schema: PRAGMA user_version */
	HISTORY_BUSY_MS = 2000,
};

struct history_database {
	sqlite3 *handle;
	char *path; /* owned; NULL: was in memory from the start */
	bool in_memory;
};

/* path: of the file, or NULL for memory alone.  rebuild: what it holds is forgotten. */
int history_database_open(
	struct history_database *db, const char *path, bool rebuild, struct error *err);
void history_database_close(struct history_database *db); /* safe on {0} */

/* From now on in memory, with a copy of what the file holds where it can be read; warns with why. */
int history_database_leave_file(struct history_database *db, const char *why, struct error *err);

/* One or more statements without results.  An SQLite code. */
int history_database_run(const struct history_database *db, const char *sql);
/* -EIO with SQLite's words. */
int history_database_error(const struct history_database *db, const char *what, struct error *err);

#endif
