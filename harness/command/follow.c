/* Set, measure, hold it against what was predicted, keep or undo, and ask again. */
#include "harness/command/follow.h"

#include "harness/base/files.h"
#include "harness/base/log.h"
#include "harness/command/calibration.h"
#include "harness/command/session.h"
#include "harness/report/report.h"
#include "harness/report/trials.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_ROOM = 32, UNDONE_MOST = 3, KEPT_MOST = 24 };

/* Below this a recommendation is not worth a run. */
static const double GAIN_LEAST = 0.03;

/* --- measuring -------------------------------------------------------------------------------- */

static int follow_take_folder(void *context, const struct session_result *result, struct error *err)
{
	char **folder = context;
	(void)err;
	if (result->report->good + result->report->unsteady > 0)
		*folder = strdup(result->record->folder);
	/* Not steady: the diagnosis says what it makes of it. */
	return *folder && result->status == EXIT_STATUS_CANNOT ? EXIT_STATUS_DONE : result->status;
}

int follow_measure(const struct invocation *invocation, const char *const *sets, size_t count,
	const char *out, char **folder, struct error *err)
{
	struct invocation with = *invocation;
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
		with.options.values[OPTION_OUT] = out;
	const int status = session_run(&with, true, follow_take_folder, folder, err);
	free(all);
	return status;
}

/* --- settings --------------------------------------------------------------------------------- */

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

static void join(const struct recommendation *r, char out[FOLLOW_SET_BYTES])
{
	size_t used = 0;
	out[0] = '\0';
	for (size_t i = 0; i < r->setting_count && used < FOLLOW_SET_BYTES; i++)
		used += (size_t)snprintf(
			out + used, FOLLOW_SET_BYTES - used, "%s%s", i ? " " : "", r->settings[i]);
}

/* --- the way ---------------------------------------------------------------------------------- */

struct way {
	const struct follow_means *means;
	struct follow *follow;
	struct settings kept;
	char *root;                /* of the first run */
	char **folder;             /* of the last that was kept */
	struct follow_place first; /* its configuration has the values of keys that are not set */
	struct follow_place place; /* the last that was kept */
	size_t at;                 /* its step */
	struct trials trials;      /* all that were measured; predictions are those of the place */
	struct settings set[TRIALS_MAX]; /* of each */
	struct settings keys;            /* all that were ever set */
	size_t undone;                   /* since the last that was kept */
};

static int follow_look(
	const struct way *way, const char *folder, struct follow_place *place, struct error *err)
{
	*place = (struct follow_place){.rate = NAN};
	return way->means->look(way->means->context, folder, place, err);
}

static void note_place(struct follow_step *step, const struct follow_place *place)
{
	const struct verdict *v = &place->diagnosis.verdict;
	step->measured = place->rate;
	step->measured_95 = place->rate_95;
	step->confidence = v->confidence;
	memcpy(step->stage, v->stage, sizeof step->stage);
	memcpy(step->resource, v->resource, sizeof step->resource);
}

static bool was_tried(const struct way *way, const char *set)
{
	for (size_t i = way->follow->count - way->undone; i < way->follow->count; i++)
		if (strcmp(way->follow->steps[i].trial.set, set) == 0)
			return true;
	return false;
}

/* The first that promises enough and was not measured yet; NULL: none. */
static const struct recommendation *follow_choose(const struct way *way)
{
	for (size_t i = 0; i < way->place.diagnosis.recommendation_count; i++) {
		const struct recommendation *r = &way->place.diagnosis.recommendations[i];
		char set[FOLLOW_SET_BYTES];
		join(r, set);
		if (r->setting_count > 0 && !(r->measured > 0) &&
			r->predicted > (1 + GAIN_LEAST) * way->place.rate && !was_tried(way, set))
			return r;
	}
	return NULL;
}

static void follow_end(struct way *way, const char *why)
{
	const struct verdict *v = &way->place.diagnosis.verdict;
	const bool known = v->stage[0] && strcmp(v->stage, "none") != 0;
	if (known)
		(void)snprintf(way->follow->end, sizeof way->follow->end,
			"%s: the bottleneck is %s / %s", why, v->stage, v->resource);
	else
		(void)snprintf(way->follow->end, sizeof way->follow->end,
			"%s: the bottleneck is unknown", why);
}

/* --- what is remembered ----------------------------------------------------------------------- */

/* Every key that any trial has set, as it was in this one. */
static void spell_out(const struct way *way, const struct settings *set, struct trial *trial)
{
	trial->setting_count = 0;
	for (size_t i = 0; i < way->keys.count && i < TRIED_CHANGES_MAX; i++) {
		char *out = trial->settings[trial->setting_count++];
		const char *text = NULL;
		for (size_t k = 0; k < set->count && !text; k++)
			if (same_key(set->text[k], way->keys.text[i]))
				text = set->text[k];
		char name[SETTING_BYTES];
		char value[CONFIG_VALUE_BYTES];
		const int length = (int)strcspn(way->keys.text[i], "=");
		(void)snprintf(name, sizeof name, "%.*s", length, way->keys.text[i]);
		const enum key_id key = config_find_key(name);
		if (text)
			(void)snprintf(out, SETTING_BYTES, "%s", text);
		else if (key < KEY_COUNT)
			(void)snprintf(out, SETTING_BYTES, "%.*s=%.24s", length, name,
				config_format_value(
					key, &way->first.config.values[key], value, sizeof value));
	}
}

/* Kept beside the place's result: whoever diagnoses that again knows what came of its advice. */
static int remember(struct way *way, struct error *err)
{
	if (way->keys.count > TRIED_CHANGES_MAX)
		return 0;
	for (size_t i = 0; i < way->trials.count; i++)
		spell_out(way, &way->set[i], &way->trials.list[i]);
	return trials_save(*way->folder, &way->trials, err);
}

static void add_trial(struct way *way, const struct trial *trial, const struct settings *set)
{
	if (way->trials.count == TRIALS_MAX)
		return;
	way->set[way->trials.count] = *set;
	way->trials.list[way->trials.count++] = *trial;
	for (size_t i = 0; i < set->count; i++)
		settings_add(&way->keys, set->text[i]);
}

/* --- a step ----------------------------------------------------------------------------------- */

static void follow_move(
	struct way *way, const struct settings *set, struct follow_place *to, char *folder)
{
	config_release(&way->place.config);
	way->place = *to;
	*to = (struct follow_place){0};
	way->kept = *set;
	way->at = way->follow->count - 1;
	way->undone = 0;
	free(*way->folder);
	*way->folder = folder;
	/* At another place these are measurements, and no predictions of its. */
	for (size_t i = 0; i < way->trials.count; i++) {
		struct trial *trial = &way->trials.list[i];
		trial->predicted = trial->predicted_90.low = trial->predicted_90.high = NAN;
		trial_judge(trial);
	}
}

/* The verdict whose prediction failed is less sure, and its advice another: both follow from what is remembered. */
static int look_again(struct way *way, struct error *err)
{
	struct follow_place again;
	const int code = follow_look(way, *way->folder, &again, err);
	if (code) {
		config_release(&again.config);
		return code;
	}
	config_release(&way->place.config);
	way->place = again;
	note_place(&way->follow->steps[way->at], &way->place);
	return 0;
}

static void tell_trial(const struct way *way, const struct trial *trial)
{
	char words[TRIAL_WORDS_BYTES];
	const char *what = trial_words(trial, words);
	if (trial->outcome == EXPERIMENT_FAILED)
		log_warn("follow %zu: %s: %s", way->follow->count - 1, trial->set, what);
	else
		log_info("follow %zu: %s: %s", way->follow->count - 1, trial->set, what);
}

/* Takes the folder; NULL: it could not be measured. */
static int judge_step(struct way *way, const struct settings *set, char *folder, struct error *err)
{
	struct follow *follow = way->follow;
	struct follow_step *step = &follow->steps[follow->count - 1];
	struct follow_place place = {0};
	int code = folder ? follow_look(way, folder, &place, err) : 0;
	if (folder && !code) {
		note_place(step, &place);
		step->trial.rate = place.rate;
		step->trial.half = place.half;
		step->trial.disturbed =
			place.unsteady || (place.contaminated && !way->place.contaminated);
	}
	trial_judge(&step->trial);
	follow->failed += step->trial.outcome == EXPERIMENT_FAILED;
	follow->came_true += step->trial.outcome == EXPERIMENT_CONFIRMED;
	add_trial(way, &step->trial, set);
	tell_trial(way, &step->trial);
	if (!code)
		code = remember(way, err);
	if (!code && step->trial.kept) {
		if (step->trial.outcome == EXPERIMENT_FAILED)
			code = look_again(way, err);
		follow_move(way, set, &place, folder);
		return code ? code : remember(way, err);
	}
	way->undone++;
	config_release(&place.config);
	free(folder);
	return code ? code : look_again(way, err);
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
		.trial = {.before = way->place.rate,
			.before_half = way->place.half,
			.rate = NAN,
			.half = NAN,
			.predicted = r->predicted,
			.predicted_90 = r->interval}};
	join(r, step->trial.set);
	log_info("follow %zu: setting %s, predicted %.0f samples/s", follow->count - 1,
		step->trial.set, r->predicted);
	for (size_t i = 0; i < r->setting_count; i++)
		settings_add(&settings, r->settings[i]);
	for (size_t i = 0; i < settings.count; i++)
		sets[i] = settings.text[i];
	(void)snprintf(name, sizeof name, "follow-%zu", follow->count - 1);
	char *out = files_join(way->root, name);
	const int status =
		way->means->measure(way->means->context, sets, settings.count, out, &folder, err);
	free(out);
	if (status == EXIT_STATUS_INTERRUPTED || atomic_load(way->means->stop)) {
		free(folder);
		way->undone++;
		return EXIT_STATUS_INTERRUPTED;
	}
	if (status) /* it is said in the log, and undone */
		err->text[0] = '\0';
	if (status) {
		free(folder);
		folder = NULL;
	}
	return command_status(judge_step(way, &settings, folder, err));
}

static int walk(struct way *way, size_t steps, struct error *err)
{
	while (way->follow->count <= steps) {
		const struct recommendation *r = follow_choose(way);
		if (!r) {
			follow_end(way, way->undone > 0 ? "no other setting is predicted to help"
							: "no setting is predicted to help");
			return EXIT_STATUS_DONE;
		}
		const int status = measure_step(way, r, err);
		if (status == EXIT_STATUS_INTERRUPTED) {
			way->follow->interrupted = true;
			follow_end(way, "interrupted");
		}
		if (status)
			return status;
		if (way->undone == UNDONE_MOST) {
			follow_end(way, "the recommended settings gained nothing");
			return EXIT_STATUS_DONE;
		}
	}
	follow_end(way, "--follow allows no more steps");
	return EXIT_STATUS_DONE;
}

/* What is there before any advice: measured, and predicted by nobody. */
static int follow_begin(struct way *way, struct error *err)
{
	struct follow *follow = way->follow;
	int code = follow_look(way, *way->folder, &way->place, err);
	if (!code)
		code = follow_look(way, *way->folder, &way->first, err);
	*follow = (struct follow){.count = 1};
	follow->steps[0].trial = (struct trial){.before = NAN,
		.before_half = NAN,
		.rate = way->place.rate,
		.half = way->place.half,
		.predicted = NAN,
		.predicted_90 = {NAN, NAN}};
	trial_judge(&follow->steps[0].trial);
	follow->steps[0].trial.kept = true;
	note_place(&follow->steps[0], &way->place);
	add_trial(way, &follow->steps[0].trial, &way->kept);
	return code;
}

int follow_walk(const struct follow_means *means, size_t steps, char **folder,
	struct follow *follow, struct error *err)
{
	struct way *way = calloc(1, sizeof *way);
	char *root = strdup(*folder);
	int status = way && root ? EXIT_STATUS_DONE
				 : command_status(error_set(err, -ENOMEM, "out of memory"));
	if (!status && way) {
		*way = (struct way){
			.means = means, .follow = follow, .root = root, .folder = folder};
		status = command_status(follow_begin(way, err));
	}
	size_t used = 0;
	if (!status && way) {
		status = walk(way, steps, err);
		for (size_t i = 0; i < way->kept.count && used < sizeof follow->set; i++)
			used += (size_t)snprintf(follow->set + used, sizeof follow->set - used,
				"%s--set %s", i ? " " : "", way->kept.text[i]);
	}
	if (way) {
		config_release(&way->place.config);
		config_release(&way->first.config);
	}
	free(root);
	free(way);
	return status;
}

/* --- with what is really measured ------------------------------------------------------------- */

static int measure_saved(void *context, const char *const *sets, size_t count, const char *out,
	char **folder, struct error *err)
{
	return follow_measure(context, sets, count, out, folder, err);
}

/* A saved run of one point. */
static int look_at_saved(
	void *context, const char *folder, struct follow_place *place, struct error *err)
{
	struct record record = {0};
	struct report report = {0};
	struct diagnosed diagnosed = {0};
	(void)context;
	int code = record_open(&record, folder, err);
	if (!code)
		code = report_open(&report, &record, err);
	if (!code)
		code = diagnosed_open(&diagnosed, &report, 0, err);
	if (!code)
		code = config_copy(&place->config, &diagnosed.config, err);
	if (!code) {
		const struct point_summary *p = diagnosed.summary;
		place->diagnosis = diagnosed.diagnosis;
		place->rate = p->median;
		place->rate_95 = p->ci95;
		place->unsteady = p->status == POINT_UNSTEADY;
		place->contaminated = p->contaminated[0] != '\0';
		place->half = trial_half(p->repeats, p->repeat_count, place->diagnosis.width);
	}
	diagnosed_close(&diagnosed);
	report_close(&report);
	record_release(&record);
	return code;
}

int follow_advice(const struct invocation *invocation, size_t steps, char **folder,
	struct follow *follow, struct error *err)
{
	struct invocation with = *invocation;
	const struct follow_means means = {.measure = measure_saved,
		.look = look_at_saved,
		.stop = invocation->stop,
		.context = &with};
	return follow_walk(&means, steps, folder, follow, err);
}
