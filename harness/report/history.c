/* Bringing the index up to date: what is new, has changed or is gone. */
#include "harness/report/history.h"

#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/report/history_entry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static int add_known(struct known_list *known, sqlite3_stmt *statement)
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
		if (code == SQLITE_ROW && add_known(known, statement))
			code = SQLITE_NOMEM;
	}
	(void)sqlite3_finalize(statement);
	return code == SQLITE_DONE ? 0 : history_database_error(db, "read the index", err);
}

/* A run in progress may end without another byte (killed): it is looked at again. */
static bool is_same(const struct known *known, const struct found_result *found)
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

static int add(struct update *update, const struct found_result *found)
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
static int merge(struct update *update)
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
			code = add(update, &found->results[f++]);
		} else {
			if (!is_same(&known->items[k], &found->results[f]))
				code = add(update, &found->results[f]);
			k++;
			f++;
		}
	}
	return code;
}

static int count(struct history *history, struct error *err)
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
		code = merge(&update);
	log_progress_end();
	known_release(&known);
	return code ? code : count(history, err);
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
