/* mlbench accept: checks of a plan, one after the other, and the verdict on the node.
 *
 * Everything that may hang is done by processes of their own (harness/checks/runner.h): the checks, and looking at the node
 * and the storage.  Each check is kept as it ends, so that a kill loses the check in flight at most, and --resume goes on. */
#include "harness/accept/baseline.h"
#include "harness/accept/fingerprint.h"
#include "harness/accept/judge.h"
#include "harness/accept/plan.h"
#include "harness/accept/result.h"
#include "harness/base/array.h"
#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/checks/corruption.h"
#include "harness/checks/node_ranks.h"
#include "harness/checks/runner.h"
#include "harness/command/command.h"
#include "harness/measure/environment.h"
#include "harness/record/fields.h"
#include "harness/record/record.h"
#include "harness/report/accept_report.h"
#include "harness/report/columns.h"
#include "harness/report/history_filter.h"
#include "harness/report/medium.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MEASURED_FILE "measured.jsonl"

enum { LOOK_S = 5, KEEP_S = 60, QUICK_BUDGET_S = 55 };

struct accepting {
	const struct invocation *invocation;
	struct accept_plan plan;
	enum accept_tier tier;
	json_t *baseline;
	json_t *measured; /* the header with "measured"; owned */
	struct runner runner;
	/* A launcher started several, and this is rank launcher.rank; ranks: NULL where they need not speak with each other. */
	bool several;
	struct launcher launcher;
	struct node_ranks *ranks;
	char folder[PATH_MAX];  /* whose storage is judged */
	char program[PATH_MAX]; /* this one */
	char *out;              /* the result's folder; owned; NULL: nothing is kept */
	const struct accept_format *format;
};

static const char *option(const struct accepting *a, enum option_id id)
{
	return a->invocation->options.values[id];
}

static bool accept_stopped(const struct accepting *a)
{
	return atomic_load(a->invocation->stop);
}

/* Of several ranks the first one has the terminal. */
static bool accept_is_silent(const struct accepting *a)
{
	return a->several && a->launcher.rank > 0;
}

/* --- the result's files ------------------------------------------------------------------------- */

/* What touches the result's folder is done by a process of its own, too, so that signals end a run whose results lie on
 * storage that has died. */
typedef int accept_errand(
	const struct accepting *a, const void *with, struct buffer *answer, struct error *err);

struct errand {
	const struct accepting *a;
	accept_errand *work;
	const void *with;
};

static void errand_work(void *context, int fd)
{
	const struct errand *errand = context;
	struct buffer answer = {0};
	struct error err = {0};
	const int code = errand->work(errand->a, errand->with, &answer, &err);
	(void)dprintf(fd, "%d %s", code, code ? err.text : answer.data ? answer.data : "");
	buffer_release(&answer);
}

/* answer: what it has to say, fresh; NULL: nothing is asked. */
static int accept_send(const struct accepting *a, accept_errand *work, const void *with,
	const char *where, char **answer, struct error *err)
{
	struct errand errand = {.a = a, .work = work, .with = with};
	char *text = NULL;
	char *end = NULL;
	int code = run_bounded(errand_work, &errand, KEEP_S * NS_PER_S, NULL, &text);
	if (code == -ETIMEDOUT)
		return error_set(err, code,
			"'%.200s' does not answer: the result could not be kept within %d s", where,
			KEEP_S);
	if (code)
		return error_set_errno(
			err, -code, "the result could not be kept in '%.200s'", where);
	code = (int)strtol(text, &end, 10);
	if (code)
		(void)error_set(err, code, "%s", *end ? end + 1 : "");
	else if (answer)
		*answer = strdup(*end ? end + 1 : "");
	free(text);
	return !code && answer && !*answer ? error_set(err, -ENOMEM, "out of memory") : code;
}

/* --- what was asked --------------------------------------------------------------------------- */

static int accept_read_tier(const char *text, enum accept_tier *tier, struct error *err)
{
	for (int i = TIER_QUICK; i < TIER_NEVER; i++)
		if (strcmp(text, accept_tier_name((enum accept_tier)i)) == 0) {
			*tier = (enum accept_tier)i;
			return 0;
		}
	return error_set(err, -EINVAL, "--tier '%.32s' is none of quick, standard, burn", text);
}

static int accept_read_time(
	const struct accepting *a, enum option_id id, uint64_t *ns, struct error *err)
{
	const char *text = option(a, id);
	if (text && (units_parse_duration(text, ns) || *ns == 0))
		return error_set(err, -EINVAL, "--%s '%.32s' is no duration, as 90s or 8h",
			option_specs[id].name, text);
	return 0;
}

/* Leaves the checks that --check names. */
static int accept_choose_checks(struct accepting *a, struct error *err)
{
	const struct options *options = &a->invocation->options;
	const char *names[ACCEPT_CHECKS_MAX];
	for (size_t i = 0; i < a->plan.check_count && i < ACCEPT_CHECKS_MAX; i++)
		names[i] = a->plan.checks[i].name;
	for (size_t i = 0; i < options->check_count; i++) {
		size_t at = 0;
		while (at < a->plan.check_count && strcmp(names[at], options->checks[i]) != 0)
			at++;
		if (at < a->plan.check_count)
			continue;
		const char *near = suggest_nearest(options->checks[i], names, a->plan.check_count);
		return error_set(err, -EINVAL, "the plan has no check '%.64s'%s%s%s",
			options->checks[i], near ? "; did you mean '" : "", near ? near : "",
			near ? "'?" : "");
	}
	for (size_t i = 0; i < a->plan.check_count && options->check_count > 0; i++) {
		const bool runs = check_in_tier(&a->plan.checks[i], TIER_BURN);
		bool chosen = false;
		for (size_t at = 0; at < options->check_count; at++)
			chosen |= strcmp(options->checks[at], a->plan.checks[i].name) == 0;
		const enum accept_tier tier = chosen ? TIER_QUICK : TIER_NEVER;
		a->plan.left_out += runs && !chosen;
		free(a->plan.checks[i].values[PLAN_TIER].text);
		a->plan.checks[i].values[PLAN_TIER] = (struct plan_value){
			.integer = tier, .text = strdup(accept_tier_name(tier))};
	}
	return 0;
}

/* What kinds refuse, beyond what keys say. */
static int accept_validate(const struct accept_plan *plan, struct error *err)
{
	for (size_t i = 0; i < plan->check_count; i++) {
		const struct accept_check *check = &plan->checks[i];
		const struct check_ops *ops = check_list[check->kind];
		const int code = ops->validate ? ops->validate(plan, check, err) : 0;
		if (code)
			return error_prefix(err, code, "%.200s:%d: [%s]",
				plan->path ? plan->path : "plan", check->line, check->name);
	}
	return 0;
}

static int accept_name_plan(struct accept_plan *plan, const char *path, struct error *err)
{
	if (plan->values[PLAN_NAME].text)
		return 0;
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');
	plan->values[PLAN_NAME].text =
		strndup(name, dot && dot > name ? (size_t)(dot - name) : strlen(name));
	return plan->values[PLAN_NAME].text ? plan_check_name(plan->values[PLAN_NAME].text, err)
					    : error_set(err, -ENOMEM, "out of memory");
}

static bool accept_is_config(const char *path)
{
	struct config config;
	config_init(&config);
	const bool is = !plan_is(path) && config_read_file(&config, path, NULL) == 0;
	config_release(&config);
	return is;
}

static int accept_read_plan(struct accepting *a, const char *name, struct error *err)
{
	char place[PATH_MAX];
	const char *path = config_place_find(name, place, sizeof place);
	int code = plan_read_file(&a->plan, path, err);
	if (code == -EINVAL && accept_is_config(path))
		code = error_set(err, code,
			"'%s' is a configuration, and no plan: 'mlbench run %s' measures it; in a plan, a "
			"check of kind = pipeline with 'config = %s' does",
			name, name, name);
	if (!code)
		code = accept_name_plan(&a->plan, path, err);
	if (!code)
		code = accept_validate(&a->plan, err);
	return code ? code : accept_choose_checks(a, err);
}

/* Of --baseline or the plan, beside which it is looked for. */
static int accept_read_baseline(struct accepting *a, struct error *err)
{
	const char *asked = option(a, OPTION_BASELINE);
	const char *named = asked ? asked : plan_text(&a->plan, PLAN_BASELINE);
	if (!*named)
		return 0;
	char path[PATH_MAX];
	const char *slash = a->plan.path ? strrchr(a->plan.path, '/') : NULL;
	(void)snprintf(path, sizeof path, "%s", named);
	if (!asked && *named != '/' && slash)
		(void)snprintf(path, sizeof path, "%.*s/%s", (int)(slash - a->plan.path),
			a->plan.path, named);
	int code = path_answers(path, a->invocation->stop, err);
	if (!code)
		code = baseline_read(path, &a->baseline, err);
	if (!code && json_object_set_new(a->baseline, "file", fields_text(path)))
		code = error_set(err, -ENOMEM, "out of memory");
	return code;
}

/* A baseline of other hardware is refused, not compared. */
static int accept_check_baseline(const struct accepting *a, struct error *err)
{
	char why[256];
	const json_t *fingerprint = json_object_get(a->measured, "fingerprint");
	if (!a->baseline || baseline_fits(a->baseline, fingerprint, why, sizeof why))
		return 0;
	return error_set(err, -EINVAL, "the baseline is of other hardware than this node: %s", why);
}

/* --- the node --------------------------------------------------------------------------------- */

static void accept_look(void *context, int fd)
{
	const char *folder = context;
	struct fact_list facts = {0};
	const char *from = NULL;
	char name[NODE_NAME_BYTES];
	environment_capture(&facts, folder);
	node_name_facts(&facts);
	(void)node_name_here(name, &from);
	json_t *document = json_pack("{s:o, s:o, s:o, s:o}", "environment",
		record_environment_to_json(&facts), "environment_units",
		record_units_to_json(&facts), "fingerprint", fingerprint_make(&facts), "node",
		json_pack("{s:o, s:o}", "name", fields_text(node_name_here(name, &from)),
			"name_from", fields_text(from ? from : "")));
	char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;
	if (text)
		(void)files_write_all(fd, text, strlen(text));
}

/* Whether --for makes a burn shorter than the plan does. */
static bool accept_is_shortened(const struct accepting *a)
{
	struct runner planned = a->runner;
	bool shorter = false;
	planned.for_ns = 0;
	for (size_t i = 0; i < a->plan.check_count && a->runner.for_ns > 0; i++) {
		const struct accept_check *check = &a->plan.checks[i];
		shorter |= check->kind == ACCEPT_BURN && check_in_tier(check, a->tier) &&
			   runner_cost(&a->runner, check).seconds <
				   runner_cost(&planned, check).seconds;
	}
	return shorter;
}

/* What tests of mlbench itself have planted, in words; "" of nothing: every form of the result says it. */
static void accept_planted(const struct accepting *a, char *out, size_t size)
{
	const char *inject = getenv(CORRUPTION_VARIABLE);
	const bool rooted = *a->runner.root;
	(void)snprintf(out, size, "%s%s%s%.80s%s",
		rooted ? "a test of mlbench: facts of the system come from a folder (MLBENCH_ACCEPT_ROOT)"
		       : "",
		rooted && inject ? ", and " : "",
		inject ? "a fault is planted (" CORRUPTION_VARIABLE "=" : "", inject ? inject : "",
		inject ? ")" : "");
}

/* The header of a result.  Storage that does not answer leaves the facts about it out. */
static int accept_header(const struct accepting *a, json_t **header, struct error *err)
{
	char utc[CLOCK_UTC_BYTES];
	char *text;
	const bool answers = !a->runner.folder_why[0];
	int code = run_bounded(accept_look, answers ? (void *)(uintptr_t)a->folder : NULL,
		LOOK_S * NS_PER_S, a->invocation->stop, &text);
	const char *note = NULL;
	if (code == -ETIMEDOUT || code == -EIO) {
		note = code == -ETIMEDOUT ? "the storage or the driver did not answer within 5 s"
					  : "looking at the node failed";
		log_warn("%s: the result has no facts of the node", note);
		code = 0;
	}
	if (code)
		return error_set(err, code, "interrupted");
	json_t *seen = text ? json_loads(text, 0, NULL) : NULL;
	free(text);
	char planted[256];
	accept_planted(a, planted, sizeof planted);
	clock_format_utc(clock_utc_seconds(), utc);
	char name[NODE_NAME_BYTES];
	const char *from = NULL;
	(void)node_name_here(name, &from);
	if (!seen)
		seen = json_pack("{s:{}, s:{}, s:{s:o, s:o}}", "environment", "fingerprint", "node",
			"name", fields_text(name), "name_from", fields_text(from ? from : ""));
	*header = json_pack("{s:s, s:s, s:s, s:s, s:o, s:s?}", "schema", MEASURED_SCHEMA, "program",
		MLBENCH_VERSION, "tier", accept_tier_name(a->tier), "started", utc, "plan",
		result_plan(&a->plan), "note", note);
	int bad = !*header || !seen || json_object_update_missing(*header, seen);
	if (accept_is_shortened(a))
		bad |= json_object_set_new(
			*header, "shortened", fields_text(option(a, OPTION_FOR)));
	if (*planted)
		bad |= json_object_set_new(*header, "test", fields_text(planted));
	if (a->plan.left_out > 0)
		bad |= json_object_set_new(
			*header, "left_out", json_integer((json_int_t)a->plan.left_out));
	json_decref(seen);
	return bad ? error_set(err, -ENOMEM, "out of memory") : 0;
}

/* --- the result's folder ---------------------------------------------------------------------- */

static int append_errand(
	const struct accepting *a, const void *with, struct buffer *answer, struct error *err)
{
	const json_t *line = with;
	(void)answer;
	char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
	char *path = files_join(a->out, MEASURED_FILE);
	int code = -ENOMEM;
	if (text && path) {
		const size_t length = strlen(text);
		text[length] = '\n';
		code = files_append(path, text, length + 1, err);
	} else {
		(void)error_set(err, code, "out of memory");
	}
	free(text);
	free(path);
	return code;
}

static int accept_append(const struct accepting *a, const json_t *line, struct error *err)
{
	return accept_send(a, append_errand, line, a->out, NULL, err);
}

/* Below the folder of a plan or of --out: of several ranks each that judges has a folder by its node's name. */
static const char *accept_node_folder(const struct accepting *a, char out[NODE_NAME_BYTES + 1])
{
	const char *from = NULL;
	out[0] = '\0';
	if (!a->several)
		return out;
	out[0] = '/';
	(void)node_name_here(out + 1, &from);
	for (char *c = out + 1; *c; c++)
		*c = *c == '/' || (*c == '.' && c == out + 1) ? '_' : *c;
	if (!out[1])
		(void)snprintf(out, NODE_NAME_BYTES, "/rank-%u", a->launcher.rank);
	return out;
}

static int make_folder_errand(
	const struct accepting *a, const void *with, struct buffer *answer, struct error *err)
{
	(void)with;
	char parent[PATH_MAX];
	char node[NODE_NAME_BYTES + 1];
	char utc[CLOCK_UTC_BYTES];
	const char *asked = option(a, OPTION_OUT);
	(void)accept_node_folder(a, node);
	(void)snprintf(parent, sizeof parent, "%s%s", asked ? asked : "", node);
	char *file = asked ? files_join(parent, MEASURED_FILE) : NULL;
	char *path = NULL;
	const bool taken = file && files_has_line(file);
	if (file && !taken)
		(void)unlink(
			file); /* a kill before the first line leaves a file that holds nothing */
	free(file);
	if (taken)
		return error_set(err, -EEXIST,
			"'%s' holds a result already; --resume goes on with it", parent);
	if (asked) {
		buffer_text(answer, parent);
		return files_make_folder(parent, err);
	}
	clock_format_utc_compact(clock_utc_seconds(), utc);
	(void)snprintf(parent, sizeof parent, "%s/%.200s%s", RESULTS_FOLDER,
		plan_text(&a->plan, PLAN_NAME), node);
	const int code = files_make_new_folder(parent, utc, &path, err);
	if (!code)
		buffer_text(answer, path);
	free(path);
	return code;
}

/* results/PLAN/UTC (of several ranks results/PLAN/NODE/UTC), or what --out names; never one that holds a result. */
static int accept_make_folder(struct accepting *a, struct error *err)
{
	const char *asked = option(a, OPTION_OUT);
	const int code = accept_send(
		a, make_folder_errand, NULL, asked ? asked : RESULTS_FOLDER, &a->out, err);
	return code ? code : accept_append(a, a->measured, err);
}

/* What this part of the measurement adds to what a reader has to know of the whole. */
static int accept_add_caveats_of(struct accepting *a, const json_t *here, struct error *err)
{
	static const char *const members[] = {"test", "shortened"};
	json_t *line = json_object();
	int bad = !line;
	for (size_t i = 0; i < COUNT(members); i++) {
		json_t *its = json_object_get(here, members[i]);
		bad |= its && (json_object_set(line, members[i], its) ||
				      json_object_set(a->measured, members[i], its));
	}
	int code = bad ? error_set(err, -ENOMEM, "out of memory") : 0;
	if (!code && json_object_size(line) > 0)
		code = accept_append(a, line, err);
	json_decref(line);
	return code;
}

/* Half of one node's result and half of another's would be no node's: this one must be the one that was measured. */
static int accept_check_node(struct accepting *a, struct error *err)
{
	json_t *here = NULL;
	struct buffer why = {0};
	int code = accept_header(a, &here, err);
	const json_t *mine = json_object_get(here, "fingerprint");
	const json_t *kept = json_object_get(a->measured, "fingerprint");
	if (code)
		return code;
	if (strcmp(column_text(here, "node.name"), column_text(a->measured, "node.name")) != 0)
		code = error_set(err, -EINVAL,
			"the result in '%s' is of node '%.64s', and this is '%.64s'", a->out,
			column_text(a->measured, "node.name"), column_text(here, "node.name"));
	else if (json_object_size(mine) > 0 && json_object_size(kept) > 0 &&
		 !fingerprint_same(mine, kept, &why))
		code = error_set(err, -EINVAL,
			"the result in '%s' is of other hardware than this node: %.200s", a->out,
			why.data ? why.data : "");
	else
		code = accept_add_caveats_of(a, here, err);
	buffer_release(&why);
	json_decref(here);
	return code;
}

/* The newest folder below results/PLAN that holds a result; fresh; NULL with err. */
static char *accept_latest(const struct accepting *a, struct error *err)
{
	char pattern[PATH_MAX];
	char node[NODE_NAME_BYTES + 1];
	glob_t found;
	char *newest = NULL;
	(void)snprintf(pattern, sizeof pattern, "%s/%.200s%s/*/%s", RESULTS_FOLDER,
		plan_text(&a->plan, PLAN_NAME), accept_node_folder(a, node), MEASURED_FILE);
	/* Folders are named by time, so that the last is the newest. */
	if (glob(pattern, 0, NULL, &found) == 0) {
		const char *last = found.gl_pathv[found.gl_pathc - 1];
		newest = strndup(last, strlen(last) - strlen("/" MEASURED_FILE));
		globfree(&found);
	}
	if (!newest)
		(void)error_set(err, -ENOENT, "no result in '%s/%.200s' to go on with",
			RESULTS_FOLDER, plan_text(&a->plan, PLAN_NAME));
	return newest;
}

/* The result in that folder goes on, of the same node, plan and tier. */
static int accept_resume(struct accepting *a, struct error *err)
{
	char hash[17];
	char node[NODE_NAME_BYTES + 1];
	char place[PATH_MAX];
	const char *asked = option(a, OPTION_RESUME);
	(void)snprintf(place, sizeof place, "%s%s", asked, accept_node_folder(a, node));
	a->out = strcmp(asked, "latest") == 0 ? accept_latest(a, err) : strdup(place);
	if (!a->out)
		return -ENOENT;
	char *path = files_join(a->out, MEASURED_FILE);
	/* Killed before its first line: begun anew in its place. */
	if (path && access(path, F_OK) == 0 && !files_has_line(path)) {
		log_info("nothing was kept in '%s': it begins anew", a->out);
		int begun = unlink(path) == 0
				    ? accept_header(a, &a->measured, err)
				    : error_set_errno(err, errno, "cannot remove '%s'", path);
		free(path);
		return begun ? begun : accept_append(a, a->measured, err);
	}
	int code = path ? result_read(path, &a->measured, err)
			: error_set(err, -ENOMEM, "out of memory");
	/* Ends a last line that a kill tore, so that what follows does not hang on it. */
	if (!code)
		code = files_append(path, "\n", 1, err);
	free(path);
	if (code)
		return code;
	(void)json_object_del(a->measured, "interrupted");
	plan_hash(&a->plan, hash);
	const char *its = column_text(a->measured, "plan.hash");
	if (strcmp(its, hash) != 0)
		return error_set(err, -EINVAL,
			"the result in '%s' is of another plan (or of other --check)", a->out);
	if (!option(a, OPTION_TIER))
		code = accept_read_tier(column_text(a->measured, "tier"), &a->tier, err);
	else if (strcmp(column_text(a->measured, "tier"), accept_tier_name(a->tier)) != 0)
		code = error_set(err, -EINVAL, "the result in '%s' is of --tier %s", a->out,
			column_text(a->measured, "tier"));
	return code ? code : accept_check_node(a, err);
}

/* Whether a check has been done: those that died, hung or were interrupted run again. */
static bool accept_is_done(const struct accepting *a, const struct accept_check *check)
{
	size_t i;
	json_t *line;
	json_array_foreach(json_object_get(a->measured, "measured"), i, line)
	{
		if (strcmp(column_text(line, "check"), check->name) == 0)
			return strcmp(column_text(line, "state"), "done") == 0;
	}
	return false;
}

/* The line takes the place of an earlier one of that check. */
static int accept_keep(struct accepting *a, json_t *line, struct error *err)
{
	json_t *list = json_object_get(a->measured, "measured");
	if (!list && json_object_set_new(a->measured, "measured", json_array()) == 0)
		list = json_object_get(a->measured, "measured");
	for (size_t i = 0; i < json_array_size(list); i++)
		if (strcmp(column_text(json_array_get(list, i), "check"),
			    column_text(line, "check")) == 0)
			(void)json_array_remove(list, i--);
	if (!line || json_array_append(list, line))
		return error_set(err, -ENOMEM, "out of memory");
	return accept_append(a, line, err);
}

/* --- running ---------------------------------------------------------------------------------- */

static void accept_pause(const struct accepting *a, uint64_t ns)
{
	const uint64_t until = clock_now_ns() + ns;
	while (clock_now_ns() < until && !accept_stopped(a))
		clock_sleep_until_ns(clock_now_ns() + 50 * NS_PER_MS);
}

static uint64_t accept_cool_down(
	const struct accepting *a, const struct accept_check *check, bool first)
{
	static const uint64_t quick = 200 * NS_PER_MS;
	static const uint64_t longer = 2 * NS_PER_S;
	const int64_t asked = check_integer(check, PLAN_COOL);
	if (asked > 0)
		return (uint64_t)asked;
	if (first || check->kind == ACCEPT_EXPECT)
		return 0;
	return a->tier == TIER_QUICK ? quick : longer;
}

/* together: with the other ranks. */
static int accept_run_check(
	struct accepting *a, const struct accept_check *check, bool together, struct error *err)
{
	/* The others measure with this node, whether it needs it or not. */
	const bool done = accept_is_done(a, check);
	if (done && !together)
		return 0;
	json_t *line =
		together ? node_ranks_check(a->ranks, check) : runner_check(&a->runner, check);
	log_progress_end();
	int code = line ? 0 : error_set(err, -ENOMEM, "out of memory");
	if (!code && !done)
		code = accept_keep(a, line, err);
	json_decref(line);
	return code;
}

/* Those that all ranks measure together come first, while no node does anything else; then the others. */
static int accept_run_some(struct accepting *a, bool together, size_t *number, struct error *err)
{
	size_t count = 0;
	int code = 0;
	for (size_t i = 0; i < a->plan.check_count; i++)
		count += check_in_tier(&a->plan.checks[i], a->tier);
	for (size_t i = 0; i < a->plan.check_count && !accept_stopped(a) && !code; i++) {
		const struct accept_check *check = &a->plan.checks[i];
		if (!check_in_tier(check, a->tier) ||
			together != (a->ranks && check->kind == ACCEPT_NETWORK))
			continue;
		++*number;
		if (!accept_is_silent(a))
			log_progress("check %zu of %zu: %s (%s)", *number, count, check->name,
				accept_kind_name(check->kind));
		if (!together && !accept_is_done(a, check))
			accept_pause(a, accept_cool_down(a, check, *number == 1));
		if (!accept_stopped(a))
			code = accept_run_check(a, check, together, err);
	}
	log_progress_end();
	return code;
}

static int accept_run_checks(struct accepting *a, struct error *err)
{
	size_t number = 0;
	int failed = accept_run_some(a, true, &number, err);
	if (!failed)
		failed = accept_run_some(a, false, &number, err);
	if (failed)
		return failed;
	json_t *line = json_pack("{s:b}", "interrupted", accept_stopped(a));
	if (accept_stopped(a))
		(void)json_object_set_new(a->measured, "interrupted", json_true());
	const int code = accept_append(a, line, err);
	json_decref(line);
	return code;
}

/* "14:30", the next such moment, or what history understands. */
static int accept_wait(const struct accepting *a, struct error *err)
{
	const char *text = option(a, OPTION_START_AT);
	if (!text)
		return 0;
	const time_t now = time(NULL);
	struct tm moment;
	double seconds;
	(void)localtime_r(&now, &moment);
	const char *rest = strptime(
		text, strchr(text, ':') != strrchr(text, ':') ? "%H:%M:%S" : "%H:%M", &moment);
	if (rest && !*rest) {
		if (strlen(text) <= 5)
			moment.tm_sec = 0;
		moment.tm_isdst = -1;
		seconds = (double)mktime(&moment);
		if (seconds < (double)now) {
			moment.tm_mday++;
			moment.tm_isdst = -1;
			seconds = (double)mktime(&moment);
		}
	} else if (history_time_parse(text, (double)now, &seconds, NULL)) {
		return error_set(err, -EINVAL,
			"--start-at '%.40s' is no time, as 14:30 or 2026-11-26T14:30:00Z", text);
	}
	if (seconds < (double)now)
		return error_set(err, -EINVAL, "--start-at '%.40s' is over", text);
	if (seconds - (double)now > 30.0 * 24 * 3600)
		return error_set(
			err, -EINVAL, "--start-at '%.40s' is more than 30 days away", text);
	while (clock_utc_seconds() < seconds && !accept_stopped(a)) {
		log_progress("starting in %.0f s", seconds - clock_utc_seconds());
		accept_pause(a, 200 * NS_PER_MS);
	}
	log_progress_end();
	return 0;
}

static void accept_set_runner(struct accepting *a, uint64_t for_ns, uint64_t budget_ns)
{
	const char *root = getenv("MLBENCH_ACCEPT_ROOT");
	a->runner = (struct runner){
		.plan = &a->plan,
		.tier = a->tier,
		.baseline = a->baseline,
		.folder = a->folder,
		.root = root ? root : "",
		.program = a->program,
		.for_ns = for_ns,
		.free_bytes = (double)NAN,
		.started_ns = clock_now_ns(),
		.stop = a->invocation->stop,
	};
	if (budget_ns == 0 && a->tier == TIER_QUICK)
		budget_ns = QUICK_BUDGET_S * NS_PER_S;
	if (budget_ns > 0)
		a->runner.until_ns = a->runner.started_ns + budget_ns;
}

static int accept_set_folder(struct accepting *a, struct error *err)
{
	const char *asked = option(a, OPTION_PATH);
	const char *data = plan_text(&a->plan, PLAN_DATA);
	const char *path = asked ? asked : *data ? data : ".";
	const ssize_t length = readlink("/proc/self/exe", a->program, sizeof a->program - 1);
	a->program[length > 0 ? length : 0] = '\0';
	return snprintf(a->folder, sizeof a->folder, "%s", path) >= (int)sizeof a->folder
		       ? error_set(err, -ENAMETOOLONG, "path too long: '%.64s'", path)
		       : 0;
}

/* --- what comes out --------------------------------------------------------------------------- */

static int accept_print(const struct accepting *a, json_t *document, struct error *err)
{
	if (command_wants_json(a->invocation))
		return command_print_json(a->invocation, json_incref(document), err);
	const struct accept_view view = {.style = command_style(a->invocation),
		.verbose = options_given(&a->invocation->options, OPTION_VERBOSE)};
	struct buffer text = {0};
	const int code = a->format->write(document, &view, &text, err);
	if (code) {
		buffer_release(&text);
		return command_status(code);
	}
	const char *out = option(a, OPTION_OUT);
	if (out && a->format != &accept_formats[0] && !a->out)
		return product_write(
			out, a->format->file ? a->format->file : a->format->name, &text, err);
	return command_print(&text, err);
}

static int write_files_errand(
	const struct accepting *a, const void *with, struct buffer *answer, struct error *err)
{
	(void)answer;
	return accept_files_write(with, a->out, err);
}

/* Keeps and prints it; returns the exit status. */
static int accept_put_out(const struct accepting *a, json_t *document, struct error *err)
{
	int status = accept_verdict_status(accept_verdict_of(column_text(document, "verdict")));
	struct error trouble = {0};
	if (a->format->of_node && !result_is_whole(document) && status == EXIT_STATUS_DONE)
		status = EXIT_STATUS_CANNOT;
	if (a->out && accept_send(a, write_files_errand, document, a->out, NULL, &trouble)) {
		/* Not 1, which would say that the node failed. */
		log_warn("the result's files are not complete: %s", trouble.text);
		status = status == EXIT_STATUS_DONE ? EXIT_STATUS_CANNOT : status;
	}
	const int printed = accept_is_silent(a) ? 0 : accept_print(a, document, err);
	if (a->out && a->several)
		log_info("%s: %s: %s", column_text(document, "node.name"),
			column_text(document, "verdict"), a->out);
	else if (a->out)
		log_info("result: %s (page: accept.html)", a->out);
	if (a->format->status && !printed)
		return a->format->status(document);
	if (accept_stopped(a))
		return EXIT_STATUS_INTERRUPTED;
	return printed ? printed : status;
}

static int accept_finish(const struct accepting *a, struct error *err)
{
	json_t *document = result_judge(a->measured, &a->plan, a->tier, a->baseline, err);
	if (!document)
		return command_status(-ENOMEM);
	const int status = accept_put_out(a, document, err);
	json_decref(document);
	return status;
}

static void dry_add_row(
	const struct accepting *a, const struct accept_check *check, json_t *rows, double *seconds)
{
	const struct check_cost cost = runner_cost(&a->runner, check);
	*seconds += cost.seconds;
	(void)json_array_append_new(rows,
		json_pack("{s:o, s:s, s:i, s:o, s:o, s:o, s:o}", "check", fields_text(check->name),
			"kind", accept_kind_name(check->kind), "criteria", (int)check->limit_count,
			"seconds", fields_number(cost.seconds), "budget_s",
			fields_number((double)runner_budget(&a->runner, check) / NS_PER_S),
			"disk_bytes", fields_number(cost.disk_bytes), "memory_bytes",
			fields_number(cost.memory_bytes)));
}

/* --dry-run. */
static int accept_print_plan(const struct accepting *a, struct error *err)
{
	static const struct table_column columns[] = {
		{.head = "check", .left = true, .path = "check"},
		{.head = "kind", .left = true, .path = "kind"},
		{.head = "criteria", .path = "criteria", .unit = COLUMN_COUNT, .keep = 2},
		{.head = "time", .path = "seconds", .unit = COLUMN_SECONDS},
		{.head = "at most", .path = "budget_s", .unit = COLUMN_SECONDS, .keep = 1},
		{.head = "disk", .path = "disk_bytes", .unit = COLUMN_BYTES},
		{.head = "memory", .path = "memory_bytes", .unit = COLUMN_BYTES},
	};
	json_t *rows = json_array();
	double seconds = 0;
	for (size_t i = 0; i < a->plan.check_count; i++)
		if (check_in_tier(&a->plan.checks[i], a->tier))
			dry_add_row(a, &a->plan.checks[i], rows, &seconds);
	const double rate = plan_share(&a->plan, PLAN_ERROR);
	const unsigned repeats = judge_repeats(rate);
	if (command_wants_json(a->invocation))
		return command_print_json(a->invocation,
			json_pack("{s:s, s:s, s:s, s:f, s:f, s:i, s:o}", "schema",
				"mlbench.accept_plan/1", "plan", plan_text(&a->plan, PLAN_NAME),
				"tier", accept_tier_name(a->tier), "seconds", seconds, "error_rate",
				rate, "repetitions", (int)repeats, "checks", rows),
			err);
	const struct style style = command_style(a->invocation);
	struct buffer out = {0};
	struct buffer note = {0};
	char time_text[UNITS_BYTES];
	struct medium medium = medium_terminal(&style, &out);
	medium_title(&medium, plan_text(&a->plan, PLAN_NAME), accept_tier_name(a->tier));
	medium_table(&medium, columns, COUNT(columns), rows, "checks");
	medium_space(&medium);
	medium_fact_text(
		&medium, INK_BOLD, "time", clock_format_span(seconds, time_text, sizeof time_text));
	buffer_format(&note,
		"A figure exactly at its limit is passed wrongly in at most %s %% of runs, and a node "
		"all of whose figures are at their limits is failed wrongly in at most %s %%. Each "
		"figure is measured %u times at first, and up to %u times where that cannot tell.",
		UNITS_PLAIN(100 * rate, 3), UNITS_PLAIN(100 * rate, 3), repeats,
		repeats * JUDGE_LOOKS_MAX);
	medium_fact(&medium, INK_PLAIN, "errors", &note);
	medium_end(&medium);
	json_decref(rows);
	return command_print(&out, err);
}

/* --- the command ------------------------------------------------------------------------------ */

/* Whether a saved document holds its verdict, and no other is asked for. */
static bool accept_is_judged(const struct accepting *a)
{
	const struct options *options = &a->invocation->options;
	return a->plan.check_count == 0 &&
	       strcmp(column_text(a->measured, "schema"), ACCEPT_SCHEMA) == 0 &&
	       !options_given(options, OPTION_BASELINE) && !options_given(options, OPTION_TIER) &&
	       !options_given(options, OPTION_CHECK);
}

/* Whether a saved result can stand for a node now: it is of the node that --node names, and, where a scheduler or a monitor
 * acts on it, not dated in the future. */
static int accept_check_saved(const struct accepting *a, const char *saved, struct error *err)
{
	const char *asked = option(a, OPTION_NODE);
	const char *node = column_text(a->measured, "node.name");
	const char *started = column_text(a->measured, "started");
	const double late_s = node_result_time(started) - clock_utc_seconds();
	if (asked && strcmp(asked, node) != 0)
		return error_set(err, -ETIME,
			"'%.200s' is no verdict on %.60s: it is of the node %.60s", saved, asked,
			node);
	if ((a->format->of_node || a->format->status) && !(late_s <= CLOCKS_APART_S))
		return error_set(err, -ETIME,
			"'%.200s' is no verdict on the node now: it is dated '%.31s', which is still to come or no time",
			saved, started);
	return 0;
}

/* A saved result as it is, or by another plan, baseline, tier or choice of checks. */
static int accept_judge_saved(struct accepting *a, const char *saved, struct error *err)
{
	int code = result_read(saved, &a->measured, err);
	if (!code)
		code = accept_check_saved(a, saved, err);
	if (code)
		return command_status(code);
	if (accept_is_judged(a))
		return accept_put_out(a, a->measured, err);
	if (a->plan.check_count == 0) {
		const char *text = column_text(a->measured, "plan.text");
		const char *file = column_text(a->measured, "plan.file");
		code = plan_read_text(&a->plan, saved, text, strlen(text), err);
		if (!code && *file)
			a->plan.path = strdup(file);
		if (!code)
			code = accept_choose_checks(a, err);
	}
	if (!code && !option(a, OPTION_TIER))
		code = accept_read_tier(column_text(a->measured, "tier"), &a->tier, err);
	if (!code)
		code = accept_read_baseline(a, err);
	if (!code)
		code = accept_check_baseline(a, err);
	return code ? command_status(code) : accept_finish(a, err);
}

/* A verdict that a resumed result had is over: a kill must not leave it behind. */
static int forget_verdict_errand(
	const struct accepting *a, const void *with, struct buffer *answer, struct error *err)
{
	char *judged = files_join(a->out, ACCEPT_FILE);
	(void)with;
	(void)answer;
	int code = judged ? 0 : error_set(err, -ENOMEM, "out of memory");
	if (judged && unlink(judged) != 0 && errno != ENOENT)
		code = error_set_errno(err, errno, "cannot remove '%s'", judged);
	free(judged);
	return code;
}

/* Asks what is free where checks write.  A folder that does not answer costs only the checks that need it. */
static int accept_ask_folder(struct accepting *a, struct error *err)
{
	const int code = runner_ask_folder(&a->runner, err);
	if (code != -ETIMEDOUT)
		return code;
	(void)snprintf(a->runner.folder_why, sizeof a->runner.folder_why, "%s", err->text);
	log_warn("%s The checks that write there are not run", err->text);
	err->text[0] = '\0';
	return 0;
}

static int accept_measure(struct accepting *a, struct error *err)
{
	uint64_t for_ns = 0;
	uint64_t budget_ns = 0;
	int code = accept_read_time(a, OPTION_FOR, &for_ns, err);
	if (!code)
		code = accept_read_time(a, OPTION_BUDGET, &budget_ns, err);
	if (!code)
		code = accept_set_folder(a, err);
	if (!code)
		code = accept_read_baseline(a, err);
	if (code)
		return command_status(code);
	accept_set_runner(a, for_ns, budget_ns);
	if (options_given(&a->invocation->options, OPTION_DRY_RUN)) {
		code = runner_ask_folder(&a->runner, err);
		return code ? command_status(code) : accept_print_plan(a, err);
	}
	code = accept_wait(a, err);
	if (!code && accept_stopped(a))
		return EXIT_STATUS_INTERRUPTED;
	accept_set_runner(a, for_ns, budget_ns);
	if (!code && a->several)
		code = node_ranks_open(&a->ranks, &a->runner, &a->launcher, err);
	/* The first rank of this node judges it. */
	if (!code && a->several && a->launcher.local_rank > 0)
		return EXIT_STATUS_DONE;
	if (!code)
		code = accept_ask_folder(a, err);
	if (!code)
		code = option(a, OPTION_RESUME) ? accept_resume(a, err)
						: accept_header(a, &a->measured, err);
	if (!code && a->several && a->tier != a->runner.tier)
		code = error_set(err, -EINVAL,
			"the result in '%s' is of --tier %s: say so beside --resume, for all ranks",
			a->out, accept_tier_name(a->tier));
	if (!code)
		code = accept_check_baseline(a, err);
	if (!code && !a->out)
		code = accept_make_folder(a, err);
	a->runner.tier = a->tier;
	if (!code)
		code = accept_send(a, forget_verdict_errand, NULL, a->out, NULL, err);
	if (!code)
		code = accept_run_checks(a, err);
	return code ? command_status(code) : accept_finish(a, err);
}

static bool accept_is_saved(const char *name)
{
	struct stat status;
	const size_t length = strlen(name);
	return (stat(name, &status) == 0 && S_ISDIR(status.st_mode)) ||
	       (length > 5 && strcmp(name + length - 5, ".json") == 0) ||
	       (length > 6 && strcmp(name + length - 6, ".jsonl") == 0);
}

/* Options that contradict each other: none is ignored in silence. */
static int accept_check_options(const struct accepting *a, bool saved, struct error *err)
{
	if (a->several && option(a, OPTION_NODE) && !saved &&
		a->launcher.local_count != a->launcher.count)
		return error_set(err, -EINVAL,
			"--node names one node, and %s started ranks on several: leave it out, each node "
			"has its own name",
			a->launcher.name);
	if (option(a, OPTION_RESUME) && option(a, OPTION_OUT))
		return error_set(err, -EINVAL,
			"--resume goes on in the result's own folder: leave --out out");
	if (option(a, OPTION_RESUME) && (saved || option(a, OPTION_JUDGE)))
		return error_set(err, -EINVAL,
			"--resume goes on with measuring: name the plan, and leave --judge out");
	if (saved && option(a, OPTION_JUDGE))
		return error_set(err, -EINVAL,
			"--judge judges a saved result by a plan: name the plan, not a result");
	return 0;
}

static int accept_run(const struct invocation *invocation, struct error *err)
{
	struct accepting *a = calloc(1, sizeof *a);
	if (!a)
		return command_status(error_set(err, -ENOMEM, "out of memory"));
	*a = (struct accepting){
		.invocation = invocation, .tier = TIER_STANDARD, .format = &accept_formats[0]};
	const char *name = invocation->options.arguments[0];
	const bool saved = accept_is_saved(name);
	a->several = node_ranks_here(&a->launcher);
	if (accept_is_silent(a))
		atomic_store(invocation->document_written, true);
	/* What measures nothing is said once. */
	if (accept_is_silent(a) && (saved || option(a, OPTION_JUDGE) ||
					   options_given(&invocation->options, OPTION_DRY_RUN))) {
		free(a);
		return EXIT_STATUS_DONE;
	}
	int code = accept_check_options(a, saved, err);
	if (!code)
		code = option(a, OPTION_TIER)
			       ? accept_read_tier(option(a, OPTION_TIER), &a->tier, err)
			       : 0;
	if (!code && option(a, OPTION_FORMAT))
		code = accept_format_find(option(a, OPTION_FORMAT), &a->format, err);
	if (!code && !saved)
		code = accept_read_plan(a, name, err);
	int status = code ? command_status(code) : 0;
	if (!code && saved)
		status = accept_judge_saved(a, name, err);
	else if (!code && option(a, OPTION_JUDGE))
		status = accept_judge_saved(a, option(a, OPTION_JUDGE), err);
	else if (!code)
		status = accept_measure(a, err);
	if (a->format->status && err->text[0])
		status = a->format->status(NULL);
	node_ranks_close(a->ranks, status != EXIT_STATUS_DONE);
	/* It says nothing, but the first rank of its node does. */
	if (a->several && a->launcher.local_rank > 0)
		err->text[0] = '\0';
	if (a->several && accept_stopped(a))
		status = EXIT_STATUS_INTERRUPTED;
	plan_release(&a->plan);
	json_decref(a->baseline);
	json_decref(a->measured);
	free(a->out);
	free(a);
	return status;
}

const struct command command_accept = {
	.name = "accept",
	.summary = "check whether this node is fit to train on: PASS, or the reason",
	.arguments = "PLAN|RESULT",
	.description =
		"Runs the checks of a plan (an INI file; configs/accept/ has some to start from), one "
		"after the other, each in a process of its own with a bounded time, and prints the "
		"verdict: PASS, WARN, FAIL, SKIP or ERROR for each check, and for the node. A check "
		"that died, hung, gave no value or was too noisy to tell is an ERROR, never a PASS. "
		"A FAIL says what was measured, what was asked, by how much, and what to do.\n\n"
		"The burden of proof is on the node: a figure passes only if its repetitions show that "
		"it is inside its limit, and fails only if they show that it is outside. Where they "
		"show neither, more are taken, up to a bound. On a node that is busy with other work only "
		"absolute limits that hold all the same pass; the rest is not judged.\n\n"
		"Every form of a result says if only a part of the plan ran (--check, or a burn that --for "
		"made shorter) or if faults were planted for a test. Such a PASS does not show that the "
		"node is fit, and gets no certificate.\n\n"
		"The result is kept in results/PLAN/TIME. Given a saved RESULT, accept prints it in any "
		"--format; --tier, --check or --baseline judge it again by its own plan, and PLAN --judge "
		"RESULT by another one. With --node it must be of that node.\n\n"
		"Started by mpirun or srun, the first rank of each node judges it, into results/PLAN/NODE/TIME "
		"or DIR/NODE; together they measure the links between the nodes where the plan has a check of "
		"kind = network.\n\n"
		"'mlbench help plan' explains plans, their keys and figures.\n\n"
		"--format is one of terminal (the default), json, page, certificate, markdown, junit, "
		"openmetrics, nagios, nhc, slurm. Those that are files lie in the result's folder, too.\n\n"
		"Exit status: 0 for PASS and WARN, 1 for FAIL, 2 for wrong input, 3 for no verdict (also "
		"if every check was skipped) or files that could not be written, 130 for an interruption.",
	.example = "mlbench accept configs/accept/node.ini --tier quick",
	.options = OPTION_BIT(OPTION_TIER) | OPTION_BIT(OPTION_CHECK) | OPTION_BIT(OPTION_FOR) |
		   OPTION_BIT(OPTION_BUDGET) | OPTION_BIT(OPTION_BASELINE) |
		   OPTION_BIT(OPTION_JUDGE) | OPTION_BIT(OPTION_DRY_RUN) |
		   OPTION_BIT(OPTION_START_AT) | OPTION_BIT(OPTION_RESUME) |
		   OPTION_BIT(OPTION_PATH) | OPTION_BIT(OPTION_OUT) | OPTION_BIT(OPTION_FORMAT) |
		   OPTION_BIT(OPTION_NODE) | OPTION_BIT(OPTION_JSON),
	.arguments_min = 1,
	.arguments_max = 1,
	.bounded = true,
	.run = accept_run,
};
