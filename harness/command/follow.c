/* Set, measure, diagnose, repeat. */
#include "harness/command/follow.h"

#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/command/diagnosed.h"
#include "harness/command/session.h"
#include "harness/report/report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_ROOM = 32, UNDONE_MOST = 3, KEPT_MOST = 24 };

/* Below this a recommendation is not worth a run, and a gain not worth a setting. */
static const double GAIN_LEAST = 0.03, GAIN_SEEN = 0.01;

/* --- measuring ----------------------------------------------------------------------------------- */

struct taken {
	char *folder;
};

static int take_folder(void *context, const struct session_result *result, struct error *err)
{
	struct taken *taken = context;
	(void)err;
	if (result->report->good + result->report->unsteady > 0)
		taken->folder = strdup(result->record->folder);
	/* Not steady: the diagnosis says what it makes of it. */
	return taken->folder && result->status == EXIT_STATUS_CANNOT ? EXIT_STATUS_DONE
								     : result->status;
}

int follow_measure(const struct invocation *invocation, const char *const *sets, size_t count,
	const char *out, char **folder, struct error *err)
{
	struct invocation with = *invocation;
	struct taken taken = {0};
	const size_t before = invocation->options.set_count;
	const char **all = calloc(before + count + 1, sizeof(*all));
	*folder = NULL;
	if (!all)
		return command_status(error_set(err, -ENOMEM, "out of memory for the settings"));
	if (before > 0)
		memcpy(all, invocation->options.sets, before * sizeof *all);
	if (count > 0)
		memcpy(all + before, sets, count * sizeof *all);
	with.options.sets = all;
	with.options.set_count = before + count;
	if (out)
		with.options.out = out;
	const int status = session_run_then(&with, take_folder, &taken, err);
	free(all);
	*folder = taken.folder;
	return status;
}

/* --- settings ------------------------------------------------------------------------------------ */

struct settings {
	char text[KEPT_MOST][SETTING_BYTES];
	size_t count;
};

static bool same_key(const char *a, const char *b)
{
	const size_t length = strcspn(a, "=");
	return strncmp(a, b, length + 1) == 0 && a[length] == '=';
}

/* A key that is set again takes its new value. */
static void settings_add(struct settings *settings, const char *setting)
{
	size_t at = 0;
	while (at < settings->count && !same_key(settings->text[at], setting))
		at++;
	if (at == KEPT_MOST)
		return;
	settings->count += at == settings->count;
	(void)snprintf(settings->text[at], SETTING_BYTES, "%s", setting);
}

static void add_recommended(struct settings *settings, const struct recommendation *r)
{
	for (size_t i = 0; i < r->setting_count; i++)
		settings_add(settings, r->settings[i]);
}

static void join(const struct recommendation *r, char out[FOLLOW_SET_BYTES])
{
	size_t used = 0;
	out[0] = '\0';
	for (size_t i = 0; i < r->setting_count && used < FOLLOW_SET_BYTES; i++)
		used += (size_t)snprintf(
			out + used, FOLLOW_SET_BYTES - used, "%s%s", i ? " " : "", r->settings[i]);
}

/* --- the way ------------------------------------------------------------------------------------- */

struct way {
	const struct invocation *invocation;
	struct follow *follow;
	struct settings kept;
	char *root;                 /* of the first run */
	char **folder;              /* of the last that was kept */
	struct diagnosis diagnosis; /* there */
	double measured;
	size_t undone; /* since then */
};

/* Diagnoses a saved run of one point into `diagnosis` and the step. */
static int look(const char *folder, struct diagnosis *diagnosis, struct follow_step *step,
	struct error *err)
{
	struct record record = {0};
	struct report report = {0};
	struct diagnosed diagnosed = {0};
	int code = record_open(&record, folder, err);
	if (!code)
		code = report_open(&report, &record, err);
	if (!code)
		code = diagnosed_open(&diagnosed, &report, 0, err);
	if (!code) {
		const struct verdict *v = &diagnosed.diagnosis.verdict;
		*diagnosis = diagnosed.diagnosis;
		step->measured = diagnosed.summary->median;
		step->measured_95 = diagnosed.summary->ci95;
		step->confidence = v->confidence;
		memcpy(step->stage, v->stage, sizeof step->stage);
		memcpy(step->resource, v->resource, sizeof step->resource);
	}
	diagnosed_close(&diagnosed);
	report_close(&report);
	record_release(&record);
	return code;
}

static bool was_tried(const struct way *way, const char *set)
{
	for (size_t i = way->follow->count - way->undone; i < way->follow->count; i++)
		if (strcmp(way->follow->steps[i].set, set) == 0)
			return true;
	return false;
}

/* The first that promises enough and was not tried from here; NULL: none. */
static const struct recommendation *choose(const struct way *way)
{
	for (size_t i = 0; i < way->diagnosis.recommendation_count; i++) {
		const struct recommendation *r = &way->diagnosis.recommendations[i];
		char set[FOLLOW_SET_BYTES];
		join(r, set);
		if (r->setting_count > 0 && r->predicted > (1 + GAIN_LEAST) * way->measured &&
			!was_tried(way, set))
			return r;
	}
	return NULL;
}

static void end(struct way *way, const char *why)
{
	const struct verdict *v = &way->diagnosis.verdict;
	const bool known = v->stage[0] && strcmp(v->stage, "none") != 0;
	if (known)
		(void)snprintf(way->follow->end, sizeof way->follow->end, "%s: %s / %s binds", why,
			v->stage, v->resource);
	else
		(void)snprintf(way->follow->end, sizeof way->follow->end,
			"%s: it cannot tell what binds", why);
}

static void keep(struct way *way, const struct recommendation *r, const struct diagnosis *diagnosis,
	struct follow_step *step, char *folder)
{
	add_recommended(&way->kept, r);
	step->kept = true;
	way->measured = step->measured;
	way->undone = 0;
	free(*way->folder);
	*way->folder = folder;
	way->diagnosis = *diagnosis; /* r was of the one before: last */
}

static int measure_step(struct way *way, const struct recommendation *r, struct error *err)
{
	struct follow *follow = way->follow;
	struct follow_step *step = &follow->steps[follow->count++];
	struct settings settings = way->kept;
	const char *sets[KEPT_MOST];
	char name[NAME_ROOM];
	char *folder = NULL;
	*step = (struct follow_step){.measured = NAN,
		.measured_95 = {NAN, NAN},
		.predicted = r->predicted,
		.predicted_90 = r->interval};
	join(r, step->set);
	log_info("follow %zu: set %s, %.0f samples/s predicted", follow->count - 1, step->set,
		r->predicted);
	add_recommended(&settings, r);
	for (size_t i = 0; i < settings.count; i++)
		sets[i] = settings.text[i];
	(void)snprintf(name, sizeof name, "follow-%zu", follow->count - 1);
	char *out = files_join(way->root, name);
	int status = follow_measure(way->invocation, sets, settings.count, out, &folder, err);
	free(out);
	struct diagnosis *diagnosis = calloc(1, sizeof *diagnosis);
	if (status == EXIT_STATUS_DONE && folder && diagnosis)
		status = command_status(look(folder, diagnosis, step, err));
	if (status == EXIT_STATUS_DONE && diagnosis &&
		step->measured > (1 + GAIN_SEEN) * way->measured) {
		keep(way, r, diagnosis, step, folder);
		folder = NULL;
	} else {
		way->undone++;
	}
	free(diagnosis);
	free(folder);
	return status;
}

static int walk(struct way *way, size_t steps, struct error *err)
{
	int status = EXIT_STATUS_DONE;
	while (way->follow->count <= steps) {
		const struct recommendation *r = choose(way);
		if (!r) {
			end(way, way->undone > 0 ? "what was left to set gained nothing"
						 : "nothing is left to set");
			return status;
		}
		status = measure_step(way, r, err);
		if (status == EXIT_STATUS_INTERRUPTED || atomic_load(way->invocation->stop)) {
			way->follow->interrupted = true;
			end(way, "interrupted");
			return EXIT_STATUS_INTERRUPTED;
		}
		if (way->undone == UNDONE_MOST) {
			end(way, "what it recommended gained nothing");
			return EXIT_STATUS_DONE;
		}
	}
	end(way, "as many settings as --follow allows");
	return status;
}

static void tell_settings(const struct way *way)
{
	struct follow *follow = way->follow;
	size_t used = 0;
	for (size_t i = 0; i < way->kept.count && used < sizeof follow->set; i++)
		used += (size_t)snprintf(follow->set + used, sizeof follow->set - used,
			"%s--set %s", i ? " " : "", way->kept.text[i]);
}

int follow_advice(const struct invocation *invocation, size_t steps, char **folder,
	struct follow *follow, struct error *err)
{
	struct way *way = calloc(1, sizeof *way);
	char *root = strdup(*folder);
	int status = way && root ? EXIT_STATUS_DONE
				 : command_status(error_set(err, -ENOMEM, "out of memory"));
	*follow = (struct follow){.count = 1};
	follow->steps[0] = (struct follow_step){.measured_95 = {NAN, NAN},
		.predicted = NAN,
		.predicted_90 = {NAN, NAN},
		.kept = true};
	if (!status && way) {
		*way = (struct way){
			.invocation = invocation, .follow = follow, .root = root, .folder = folder};
		status = command_status(look(*folder, &way->diagnosis, &follow->steps[0], err));
	}
	if (!status && way) {
		way->measured = follow->steps[0].measured;
		status = walk(way, steps, err);
		tell_settings(way);
	}
	free(root);
	free(way);
	return status;
}
