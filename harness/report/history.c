/* Reading the results below a folder, and the series over time that they form. */
#include "harness/report/history.h"

#include "harness/analyze/statistics.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/log.h"
#include "harness/base/units.h"
#include "harness/measure/environment.h"
#include "harness/record/fields.h"
#include "harness/record/record.h"
#include "harness/report/columns.h"
#include "harness/report/history_filter.h"
#include "harness/report/part.h"
#include "harness/report/report.h"

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
	int64_t mtime_ns;
	bool running;  /* its run holds the file locked */
	bool in_turns; /* beside others, which were measured in turns with it */
};

struct found_results {
	struct found_result *results; /* (count) by folder; owned */
	size_t count, room;
};

enum { DEPTH_MAX = 8, RESULTS_MAX = 100000, LINE_BYTES = 256, LOCKS_MAX = 256 };

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
	bool in_turns; /* of what is found next */
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

static int64_t changed_ns(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
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
		.mtime_ns = changed_ns(st),
		.running = is_locked(&walk->locks, st),
		.in_turns = walk->in_turns};
	return 0;
}

static bool history_holds(const char *path, const char *file, struct stat *st)
{
	char *below = files_join(path, file);
	const bool there = below && stat(below, st) == 0 && S_ISREG(st->st_mode);
	free(below);
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
	if (history_holds(path, "points.jsonl", &st))
		return scan_add_found(walk, folder, &st);
	/* Of the root itself the user wants to see all. */
	const bool session = depth > 0 && history_holds(path, RECORD_BLOCKS_FILE, &st);
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
	for (const struct dirent *entry = readdir(dir); entry && !code; entry = readdir(dir)) {
		walk->in_turns = session;
		code = walk_entry(walk, path, folder, entry->d_name, depth);
	}
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

/* --- the summary of a result ------------------------------------------------------------------ */

enum { NODE_BYTES = 24 };
static const size_t SUMMARY_LIMIT_BYTES = (size_t)64 << 20;

/* NULL: there is none, it is torn, or measurements came after it. */
static json_t *summary_read(const char *folder, const struct found_result *found)
{
	struct stat st;
	char *path = files_join(folder, "summary.json");
	char *text = NULL;
	size_t size = 0;
	json_t *summary = NULL;
	if (path && !found->running && stat(path, &st) == 0 &&
		files_read(path, SUMMARY_LIMIT_BYTES, &text, &size, NULL) == 0)
		summary = json_loadb(text, size, 0, NULL);
	if (summary && (changed_ns(&st) < found->mtime_ns ||
			       strcmp(column_text(summary, "schema"), "mlbench.summary/1") != 0)) {
		json_decref(summary);
		summary = NULL;
	}
	free(text);
	free(path);
	return summary;
}

/* Of a lab, whose verdict is to be found. */
static void summary_forget_verdicts(json_t *summary)
{
	size_t i;
	json_t *point;
	json_array_foreach(json_object_get(summary, "points"), i, point)
	{
		(void)json_object_set_new(point, "verdict", json_null());
		(void)json_object_set_new(point, "diagnosis", json_null());
	}
}

/* As the run would have written it, but for verdicts: of the best point alone. */
static json_t *summary_make(const char *folder, struct error *err)
{
	struct record record = {0};
	struct report report = {0};
	json_t *summary = NULL;
	int code = record_open(&record, folder, err);
	if (!code)
		code = report_open(&report, &record, err);
	const bool sealed = !code && record_is_of_lab(&record);
	if (!code && !sealed)
		code = report_diagnose_best(&report, err);
	if (!code)
		summary = report_summary_json(&report);
	if (sealed)
		summary_forget_verdicts(summary);
	if (!code && !summary)
		(void)error_set(err, -ENOMEM, "out of memory");
	report_close(&report);
	record_release(&record);
	return summary;
}

/* --- from a summary to rows ------------------------------------------------------------------- */

/* What makes nodes comparable: name, CPU, cores that were usable, GPUs. */
static void node_of(const struct fact_list *facts, const json_t *environment, char out[NODE_BYTES])
{
	json_t *gpus = json_object_get(environment, "gpu");
	const char *const texts[] = {fact_node_name_lasts(facts) ? fact_node_name(facts) : "",
		column_text(environment, "cpu.model")};
	const char *name;
	json_t *value;
	uint64_t hash = (uint64_t)fmax(column_number(environment, "cpu.allowed"), 0);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		hash = hash_bytes(texts[i], strlen(texts[i]) + 1, hash);
	json_object_foreach(gpus, name, value)
	{
		const char *text = json_string_value(value);
		if (text && (strstr(name, "name") || strstr(name, "model")))
			hash = hash_bytes(text, strlen(text) + 1, hash);
	}
	(void)snprintf(out, NODE_BYTES, "%08" PRIx32, (uint32_t)(hash ^ hash >> 32));
}

/* "decode.workers=2 batch.size=64" */
static json_t *settings_of(json_t *settings)
{
	struct buffer text = {0};
	const char *name;
	json_t *value;
	buffer_text(&text, "");
	json_object_foreach(settings, name, value)
	{
		const struct table_column plain = {.path = name};
		buffer_format(&text, "%s%s=", text.size ? " " : "", name);
		column_cell(&plain, settings, &text);
	}
	json_t *out = text.failed ? NULL : json_string(text.data ? text.data : "");
	buffer_release(&text);
	return out;
}

/* Also "" is nothing. */
static json_t *known(const char *text)
{
	return text && *text ? fields_text(text) : json_null();
}

static json_t *history_same_text(const json_t *from, const char *path)
{
	return known(column_text(from, path));
}

/* Which result stands for it, and for how many this one does, is known when all are there. */
static void put_session(struct part *row, const struct found_result *found)
{
	const char *slash = found->in_turns ? strrchr(found->folder, '/') : NULL;
	char *session = slash ? strndup(found->folder, (size_t)(slash - found->folder)) : NULL;
	part_put(row, "session", session ? fields_text(session) : json_null());
	part_put(row, "variant_of", json_null());
	part_put(row, "variants", json_integer(0));
	free(session);
}

/* Members of all rows of a result. */
static void put_result(struct part *row, const struct found_result *found, const json_t *summary,
	const char *problem)
{
	json_t *environment = json_object_get(summary, "environment");
	const char *measured_by = column_text(environment, "build.mlbench");
	const char *status = problem ? "unreadable" : column_text(summary, "status");
	struct fact_list facts = {0};
	char node[NODE_BYTES] = "";
	record_environment_from_json(&facts, environment, NULL);
	if (!problem)
		node_of(&facts, environment, node);
	part_put(row, "folder", fields_text(found->folder));
	put_session(row, found);
	part_put(row, "status",
		json_string(
			found->running && strcmp(status, "interrupted") == 0 ? "running" : status));
	part_put(row, "problem", known(problem));
	part_put(row, "name", history_same_text(summary, "name"));
	part_put(row, "config_hash", history_same_text(summary, "config_hash"));
	part_put(row, "node", known(node));
	part_put(row, "host", known(fact_node_name(&facts)));
	part_put(row, "cpu", history_same_text(environment, "cpu.model"));
	part_put(row, "version",
		*measured_by ? fields_text(measured_by) : history_same_text(summary, "version"));
	part_put(row, "started", history_same_text(summary, "started"));
	part_put(row, "finished", history_same_text(summary, "finished"));
	part_put(row, "step_backend", history_same_text(summary, "step.backend"));
	part_put(row, "emulated",
		json_boolean(json_is_true(column_value(summary, "step.emulated"))));
	part_put(row, "points",
		json_integer((json_int_t)json_array_size(json_object_get(summary, "points"))));
	fact_list_release(&facts);
}

static json_t *same_number(const json_t *from, const char *path)
{
	return fields_number(column_number(from, path));
}

/* point NULL: nothing was measured. */
static void put_point(struct part *row, const json_t *point, const struct history_metric *metric)
{
	static const char *const members[] = {
		"point", "settings", "point_status", "contaminated", "verdict"};
	for (size_t i = 0; !point && i < sizeof members / sizeof *members; i++)
		part_put(row, members[i], json_null());
	part_put(row, "throughput", same_number(point, "throughput.median"));
	part_put(row, "ci95_low", same_number(point, "throughput.ci95.0"));
	part_put(row, "ci95_high", same_number(point, "throughput.ci95.1"));
	if (metric)
		part_put(row, metric->name, fields_number(history_metric_value(metric, point)));
	if (!point)
		return;
	part_put(row, "point", json_integer((json_int_t)column_number(point, "id")));
	part_put(row, "settings", settings_of(json_object_get(point, "settings")));
	part_put(row, "point_status", history_same_text(point, "status"));
	part_put(row, "contaminated",
		json_boolean(json_is_true(column_value(point, "foreign_load.contaminated"))));
	struct part verdict = part_open();
	part_put(&verdict, "stage", history_same_text(point, "verdict.stage"));
	part_put(&verdict, "also", history_same_text(point, "verdict.also"));
	part_put(&verdict, "resource", history_same_text(point, "verdict.resource"));
	part_put(&verdict, "confidence", same_number(point, "verdict.confidence"));
	part_put(row, "verdict", part_close(&verdict));
}

static const char *row_text(const json_t *json, const char *path)
{
	return json_string_value(column_value(json, path));
}

static double row_time(const json_t *json, const char *path)
{
	double seconds;
	const char *text = row_text(json, path);
	return text && history_time_parse(text, 0, &seconds, NULL) == 0 ? seconds : (double)NAN;
}

/* What is asked of rows more than once, out of their JSON.  Takes json. */
static struct history_row history_row_of(json_t *json, const json_t *summary, const json_t *point,
	const struct history_metric *metric)
{
	json_t *environment = json_object_get(summary, "environment");
	return (struct history_row){.json = json,
		.environment = json_incref(environment),
		.folder = row_text(json, "folder"),
		.problem = row_text(json, "problem"),
		.name = row_text(json, "name"),
		.hash = row_text(json, "config_hash"),
		.node = row_text(json, "node"),
		.host = row_text(json, "host"),
		.cpu = row_text(json, "cpu"),
		.settings = row_text(json, "settings"),
		.session = row_text(json, "session"),
		.emulated = json_is_true(json_object_get(json, "emulated")),
		.failed = strcmp(column_text(json, "point_status"), "failed") == 0,
		.started = row_time(json, "started"),
		.throughput = column_number(json, "throughput"),
		.low = column_number(json, "ci95_low"),
		.high = column_number(json, "ci95_high"),
		.value = metric && point ? history_metric_value(metric, point) : (double)NAN};
}

static void row_release(struct history_row *row)
{
	json_decref(row->json);
	json_decref(row->environment);
}

struct reading {
	struct history *history;
	struct history_filter *filter;
	const struct history_metric *metric; /* NULL: the best points are enough */
	const atomic_bool *stop;
	struct error *err;
};

static int history_add_row(const struct reading *reading, const struct found_result *found,
	const json_t *summary, const json_t *point, const char *problem)
{
	struct history *history = reading->history;
	struct part part = part_open();
	put_result(&part, found, summary, problem);
	put_point(&part, point, reading->metric);
	json_t *json = part_close(&part);
	if (!json)
		return -ENOMEM;
	struct history_row row = history_row_of(json, summary, point, reading->metric);
	if (!history_filter_meets(reading->filter, json, summary, point)) {
		row_release(&row);
		return 0;
	}
	if (history->count == history->room) {
		const size_t room = history->room ? 2 * history->room : 64;
		struct history_row *larger = realloc(history->rows, room * sizeof *larger);
		if (!larger) {
			row_release(&row);
			return -ENOMEM;
		}
		history->rows = larger;
		history->room = room;
	}
	history->rows[history->count++] = row;
	return 0;
}

/* Interrupted before it, or predicted. */
static bool point_was_measured(const json_t *point)
{
	const char *status = column_text(point, "status");
	return strcmp(status, "predicted") != 0 &&
	       (strcmp(status, "interrupted") != 0 ||
		       json_array_size(json_object_get(point, "stages")) > 0);
}

/* Known figures first, the larger first. */
static int by_rate(const void *a, const void *b)
{
	const struct history_row *left = a;
	const struct history_row *right = b;
	if (isnan(left->throughput) || isnan(right->throughput))
		return isnan(left->throughput) - isnan(right->throughput);
	return (left->throughput < right->throughput) - (left->throughput > right->throughput);
}

static int history_add_rows(
	const struct reading *reading, const struct found_result *found, const json_t *summary)
{
	struct history *history = reading->history;
	const size_t first = history->count;
	/* Results of older programs do not say which point is the best: the fastest is, then. */
	const json_t *best = json_object_get(summary, "best");
	size_t sorted = 0; /* rows in their place already: the best point's */
	size_t i;
	size_t measured = 0;
	const json_t *point;
	int code = 0;
	json_array_foreach(json_object_get(summary, "points"), i, point)
	{
		if (code || !point_was_measured(point))
			continue;
		measured++;
		const size_t before = history->count;
		code = history_add_row(reading, found, summary, point, NULL);
		if (history->count > before && json_is_integer(best) &&
			json_integer_value(best) == (json_int_t)i) {
			const struct history_row row = history->rows[first];
			history->rows[first] = history->rows[history->count - 1];
			history->rows[history->count - 1] = row;
			sorted = 1;
		}
	}
	if (!code && measured == 0)
		code = history_add_row(reading, found, summary, NULL, NULL);
	if (code || history->count == first)
		return code;
	qsort(history->rows + first + sorted, history->count - first - sorted,
		sizeof *history->rows, by_rate);
	history->rows[first].best = true;
	while (!reading->metric && history->count > first + 1)
		row_release(&history->rows[--history->count]);
	return 0;
}

static int history_read_result(const struct reading *reading, const struct found_result *found)
{
	struct history *history = reading->history;
	struct error why = {0};
	char *folder = strcmp(found->folder, ".") == 0 ? strdup(history->root)
						       : files_join(history->root, found->folder);
	if (!folder)
		return -ENOMEM;
	json_t *summary = summary_read(folder, found);
	if (!summary)
		summary = summary_make(folder, &why);
	int code = 0;
	if (summary) {
		history_filter_learn(reading->filter, json_object_get(summary, "environment"));
		code = history_add_rows(reading, found, summary);
	} else {
		const size_t before = history->count;
		history->unreadable++;
		code = history_add_row(
			reading, found, NULL, NULL, why.text[0] ? why.text : "it cannot be read");
		if (history->count > before)
			history->rows[before].best = true;
	}
	json_decref(summary);
	free(folder);
	return code;
}

/* Those of no known time last. */
static int by_time(const void *a, const void *b)
{
	const struct history_row *left = a;
	const struct history_row *right = b;
	if (isnan(left->started) != isnan(right->started))
		return isnan(left->started) - isnan(right->started);
	if (left->started < right->started || left->started > right->started)
		return left->started < right->started ? -1 : 1;
	const int order = strcmp(left->folder, right->folder);
	return order ? order : right->best - left->best;
}

static bool history_is_twin(const struct history_row *row)
{
	const char *slash = strrchr(row->folder, '/');
	return slash && strcmp(slash + 1, RECORD_TWIN) == 0;
}

/* Results that were measured in turns together, the one that stands for the others first: the twin, or the oldest one. */
static int by_session(const void *a, const void *b)
{
	const struct history_row *left = *(struct history_row *const *)a;
	const struct history_row *right = *(struct history_row *const *)b;
	int order = strcmp(left->session, right->session);
	order = order ? order : history_is_twin(right) - history_is_twin(left);
	return order ? order : left < right ? -1 : left > right;
}

static int history_mark_variants(struct history *history, struct error *err)
{
	struct history_row **rows = calloc(history->count + 1, sizeof(struct history_row *));
	size_t count = 0;
	int bad = 0;
	if (!rows)
		return error_set(err, -ENOMEM, "out of memory for the history");
	for (size_t i = 0; i < history->count; i++)
		if (history->rows[i].session)
			rows[count++] = &history->rows[i];
	if (count > 0)
		qsort(rows, count, sizeof *rows, by_session);
	for (size_t first = 0, last; first < count; first = last) {
		const struct history_row *stands = rows[first];
		for (last = first + 1;
			last < count && strcmp(rows[last]->session, stands->session) == 0; last++) {
			rows[last]->is_variant = true;
			bad |= json_object_set_new(
				rows[last]->json, "variant_of", fields_text(stands->folder));
		}
		bad |= json_object_set_new(
			stands->json, "variants", json_integer((json_int_t)(last - first - 1)));
	}
	free(rows);
	return bad ? error_set(err, -ENOMEM, "out of memory for the history") : 0;
}

int history_read(struct history *history, const char *root, struct history_filter *filter,
	const struct history_metric *metric, const atomic_bool *stop, struct error *err)
{
	struct found_results found;
	const struct reading reading = {history, filter, metric, stop, err};
	*history = (struct history){.root = strdup(root)};
	if (!history->root)
		return error_set(err, -ENOMEM, "out of memory");
	int code = history_scan(root, &found, err);
	for (size_t i = 0; i < found.count && !code; i++) {
		if (stop && atomic_load(stop))
			code = error_set(err, -EINTR, "interrupted");
		else if (history_read_result(&reading, &found.results[i]))
			code = error_set(err, -ENOMEM, "out of memory for the history");
		history->total++;
		log_progress("reading results: %zu of %zu", history->total, found.count);
	}
	log_progress_end();
	history_scan_release(&found);
	if (!code)
		code = history_filter_check(filter, err);
	if (!code && history->count > 0)
		qsort(history->rows, history->count, sizeof *history->rows, by_time);
	if (!code)
		code = history_mark_variants(history, err);
	for (size_t i = 0; i < history->count; i++)
		history->results += history->rows[i].best;
	return code;
}

void history_close(struct history *history)
{
	for (size_t i = 0; i < history->count; i++)
		row_release(&history->rows[i]);
	free(history->rows);
	free(history->root);
	*history = (struct history){0};
}

/* --- series ----------------------------------------------------------------------------------- */

enum { FACTS_SHOWN_MAX = 6, FACT_BYTES = 128 };
static const double INTERVAL_ERRORS = 2 * 1.96; /* a 95 % interval in standard errors */

static int compare_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

/* Name, configuration, node, setting; then time. */
static int by_series(const void *a, const void *b)
{
	const struct history_row *left = *(const struct history_row *const *)a;
	const struct history_row *right = *(const struct history_row *const *)b;
	int order = compare_text(left->name, right->name);
	order = order ? order : compare_text(left->hash, right->hash);
	order = order ? order : compare_text(left->node, right->node);
	order = order ? order : compare_text(left->settings, right->settings);
	if (order)
		return order;
	if (left->started != right->started)
		return left->started < right->started ? -1 : 1;
	return compare_text(left->folder, right->folder);
}

static bool is_comparable(const struct history_row *a, const struct history_row *b)
{
	return compare_text(a->name, b->name) == 0 && compare_text(a->hash, b->hash) == 0 &&
	       compare_text(a->node, b->node) == 0;
}

static bool is_same_setting(const struct history_row *a, const struct history_row *b)
{
	return is_comparable(a, b) && compare_text(a->settings, b->settings) == 0;
}

struct stretch {
	size_t first, count;
};

static double median_rate(const struct history_row *const *rows, size_t count)
{
	double *rates = malloc((count + 1) * sizeof *rates);
	size_t known = 0;
	for (size_t i = 0; rates && i < count; i++)
		if (isfinite(rows[i]->throughput))
			rates[known++] = rows[i]->throughput;
	const double median = known > 0 ? statistics_median(rates, known) : 0;
	free(rates);
	return median;
}

/* The setting of a comparable stretch that is plotted. */
static struct stretch series_choose(const struct history_row *const *rows, struct stretch all)
{
	struct stretch best = {0};
	double best_rate = 0;
	for (size_t first = all.first; first < all.first + all.count;) {
		size_t last = first;
		while (last < all.first + all.count && is_same_setting(rows[first], rows[last]))
			last++;
		const size_t count = last - first;
		const double rate = median_rate(rows + first, count);
		if (count > best.count || (count == best.count && rate > best_rate)) {
			best = (struct stretch){first, count};
			best_rate = rate;
		}
		first = last;
	}
	return best;
}

static double own_error(const struct history_row *row, const struct history_metric *metric)
{
	return metric->has_interval ? (row->high - row->low) / INTERVAL_ERRORS : (double)NAN;
}

static enum level_scale series_scale_of(
	const struct history_series *series, const struct history_metric *metric)
{
	if (metric->unit == HISTORY_SHARE)
		return LEVEL_DIFFERENCE;
	for (size_t i = 0; i < series->count; i++)
		if (series->values[i].value <= 0)
			return LEVEL_DIFFERENCE;
	return LEVEL_RATIO;
}

static int series_fill(struct history_series *series, const struct history_row *const *rows,
	struct stretch stretch, const struct history_plot *plot)
{
	const size_t most = LEVEL_VALUES_MAX;
	series->left_out = stretch.count > most ? stretch.count - most : 0;
	series->count = stretch.count - series->left_out;
	series->rows = calloc(series->count, sizeof(const struct history_row *));
	series->values = calloc(series->count, sizeof *series->values);
	if (!series->rows || !series->values)
		return -ENOMEM;
	for (size_t i = 0; i < series->count; i++) {
		const struct history_row *row = rows[stretch.first + series->left_out + i];
		series->rows[i] = row;
		series->values[i] = (struct level_value){row->value, own_error(row, &plot->metric)};
	}
	series->scale = series_scale_of(series, &plot->metric);
	series->change_count = level_changes_find(
		series->values, series->count, series->scale, plot->significance, series->changes);
	return 0;
}

static int series_add_series(
	struct history_plot *plot, const struct history_row *const *rows, struct stretch stretch)
{
	struct history_series *larger = realloc(plot->series, (plot->count + 1) * sizeof *larger);
	if (!larger)
		return -ENOMEM;
	plot->series = larger;
	struct history_series *series = &plot->series[plot->count++];
	*series = (struct history_series){0};
	return series_fill(series, rows, stretch, plot);
}

static int group(struct history_plot *plot, const struct history_row *const *rows, size_t count)
{
	int code = 0;
	for (size_t first = 0; first < count && !code;) {
		size_t last = first;
		while (last < count && is_comparable(rows[first], rows[last]))
			last++;
		code = series_add_series(
			plot, rows, series_choose(rows, (struct stretch){first, last - first}));
		first = last;
	}
	return code;
}

/* Measured, and of a known time. */
static bool series_counts(const struct history_row *row)
{
	return row->settings && isfinite(row->value) && isfinite(row->started) && !row->failed &&
	       !row->is_variant;
}

int history_plot_make(struct history_plot *plot, const struct history *history,
	const struct history_metric *metric, double significance, struct error *err)
{
	*plot = (struct history_plot){.metric = *metric, .significance = significance};
	const struct history_row **sorted =
		calloc(history->count + 1, sizeof(const struct history_row *));
	if (!sorted)
		return error_set(err, -ENOMEM, "out of memory for the history");
	size_t count = 0;
	for (size_t i = 0; i < history->count; i++)
		if (series_counts(&history->rows[i]))
			sorted[count++] = &history->rows[i];
	if (count > 0)
		qsort(sorted, count, sizeof(const struct history_row *), by_series);
	const int code = group(plot, sorted, count);
	free(sorted);
	return code ? error_set(err, code, "out of memory for the history") : 0;
}

void history_plot_release(struct history_plot *plot)
{
	for (size_t i = 0; i < plot->count; i++) {
		free(plot->series[i].rows);
		free(plot->series[i].values);
	}
	free(plot->series);
	*plot = (struct history_plot){0};
}

double history_series_level(const struct history_series *series, size_t i)
{
	if (series->change_count == 0)
		return level_of(series->values, 0, series->count, series->scale);
	double level = series->changes[0].before;
	for (size_t c = 0; c < series->change_count && series->changes[c].at <= i; c++)
		level = series->changes[c].after;
	return level;
}

const char *history_change_size(
	const struct history_series *series, size_t change, char out[HISTORY_NUMBER_BYTES])
{
	const struct level_change *c = &series->changes[change];
	if (series->scale == LEVEL_RATIO)
		(void)snprintf(
			out, HISTORY_NUMBER_BYTES, "%+.1f %%", 100 * (c->after / c->before - 1));
	else
		(void)snprintf(out, HISTORY_NUMBER_BYTES, "%s%s", c->after < c->before ? "" : "+",
			UNITS_PLAIN(c->after - c->before, 3));
	return out;
}

/* Facts that come and go from run to run and explain nothing. */
static bool is_transient(const char *name)
{
	static const char *const names[] = {"load.", "memory.available", "memory.free",
		"memory.cached", "data.free", "mlbench.ceilings", "gpu."};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return strcmp(name, "gpu.driver_version") != 0;
	return false;
}

static void series_add_value(struct buffer *out, const json_t *value)
{
	if (json_is_string(value))
		buffer_text(out, json_string_value(value));
	else if (json_is_number(value))
		buffer_format(out, "%g", json_number_value(value));
	else
		buffer_text(out, "unknown");
}

void history_change_facts(const struct history_series *series, size_t change, struct buffer *out)
{
	const size_t at = series->changes[change].at;
	const char *group;
	json_t *facts;
	size_t shown = 0;
	json_object_foreach(series->rows[at]->environment, group, facts)
	{
		const json_t *before = json_object_get(series->rows[at - 1]->environment, group);
		const char *name;
		json_t *value;
		json_object_foreach(facts, name, value)
		{
			char dotted[FACT_BYTES];
			const json_t *old = json_object_get(before, name);
			(void)snprintf(dotted, sizeof dotted, "%s.%s", group, name);
			if (!old || json_is_object(old) || json_is_object(value) ||
				json_equal(old, value) || is_transient(dotted))
				continue;
			if (shown++ == FACTS_SHOWN_MAX) {
				buffer_text(out, "; and more");
				return;
			}
			buffer_format(out, "%s%s ", shown > 1 ? "; " : "", dotted);
			series_add_value(out, old);
			buffer_text(out, " -> ");
			series_add_value(out, value);
		}
	}
}
