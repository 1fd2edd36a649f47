/* Points of a sweep and saved trials, as changes against the point that is diagnosed. */
#include "harness/report/trials.h"

#include "harness/base/files.h"
#include "harness/record/fields.h"
#include "harness/report/part.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of a larger sweep each point would be compared with all others for seconds. */
enum { FILE_BYTES_MAX = 1 << 20, SWEEP_POINTS_MOST = 10000, JSON_DIGITS = 9 };

/* --- trials.json --------------------------------------------------------------------------------- */

static const struct field trial_fields[] = {
	FIELD(trial, set, FIELD_TEXT),
	FIELD(trial, before, FIELD_REAL),
	FIELD(trial, before_half, FIELD_REAL),
	FIELD(trial, rate, FIELD_REAL),
	FIELD(trial, half, FIELD_REAL),
	FIELD(trial, predicted, FIELD_REAL),
	FIELD(trial, disturbed, FIELD_BOOLEAN),
};
enum { TRIAL_FIELDS = sizeof trial_fields / sizeof trial_fields[0] };

static json_t *trial_json(const struct trial *t)
{
	struct part part = part_open();
	json_t *settings = json_array();
	for (size_t i = 0; i < t->setting_count; i++)
		part.bad |= json_array_append_new(settings, fields_text(t->settings[i]));
	part.bad |= fields_encode(part.object, trial_fields, TRIAL_FIELDS, t);
	part_put(&part, "settings", settings);
	part_put(&part, "predicted_low", fields_number(t->predicted_90.low));
	part_put(&part, "predicted_high", fields_number(t->predicted_90.high));
	part_put(&part, "outcome", json_string(experiment_outcome_name(t->outcome)));
	part_put(&part, "kept", json_boolean(t->kept));
	return part_close(&part);
}

json_t *trials_to_json(const struct trials *trials)
{
	struct part part = part_open();
	json_t *list = json_array();
	for (size_t i = 0; i < trials->count; i++)
		part.bad |= json_array_append_new(list, trial_json(&trials->list[i]));
	part_put(&part, "schema", json_string(TRIALS_SCHEMA));
	part_put(&part, "trials", list);
	return part_close(&part);
}

static int trial_from_json(struct trial *t, const json_t *object, struct error *err)
{
	const json_t *settings = json_object_get(object, "settings");
	int code = fields_decode(object, trial_fields, TRIAL_FIELDS, t, err);
	if (!code && json_array_size(settings) > TRIED_CHANGES_MAX)
		code = error_set(
			err, -EINVAL, "a trial of more than %d settings", TRIED_CHANGES_MAX);
	if (code)
		return code;
	t->predicted_90 = (struct interval){fields_real(json_object_get(object, "predicted_low")),
		fields_real(json_object_get(object, "predicted_high"))};
	for (size_t i = 0; i < json_array_size(settings); i++) {
		const char *text = json_string_value(json_array_get(settings, i));
		if (!text || strlen(text) >= SETTING_BYTES)
			return error_set(err, -EINVAL, "a setting of a trial is not KEY=VALUE");
		memcpy(t->settings[t->setting_count++], text, strlen(text) + 1);
	}
	trial_judge(t);
	return 0;
}

int trials_from_json(struct trials *trials, const json_t *object, struct error *err)
{
	const char *schema = json_string_value(json_object_get(object, "schema"));
	const json_t *list = json_object_get(object, "trials");
	int code = 0;
	*trials = (struct trials){0};
	if (!schema || strcmp(schema, TRIALS_SCHEMA) != 0)
		return error_set(err, -EINVAL, "schema '%s' is not '%s'", schema ? schema : "",
			TRIALS_SCHEMA);
	if (!json_is_array(list) || json_array_size(list) > TRIALS_MAX)
		return error_set(err, -EINVAL, "not a list of at most %d trials", TRIALS_MAX);
	for (size_t i = 0; i < json_array_size(list) && !code; i++)
		code = trial_from_json(
			&trials->list[trials->count++], json_array_get(list, i), err);
	return code;
}

int trials_save(const char *folder, const struct trials *trials, struct error *err)
{
	json_t *json = trials_to_json(trials);
	char *text =
		json ? json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(JSON_DIGITS)) : NULL;
	char *path = files_join(folder, TRIALS_FILE);
	const int code = text && path
				 ? files_write_atomic(path, text, strlen(text), err)
				 : error_set(err, -ENOMEM, "out of memory for '%s'", TRIALS_FILE);
	json_decref(json);
	free(text);
	free(path);
	return code;
}

int trials_load(const char *folder, struct trials *trials, struct error *err)
{
	char *path = folder ? files_join(folder, TRIALS_FILE) : NULL;
	struct error why = {0};
	char *text = NULL;
	size_t size = 0;
	*trials = (struct trials){0};
	int code = path ? files_read(path, FILE_BYTES_MAX, &text, &size, &why) : -ENOENT;
	if (code == -ENOENT) {
		free(path);
		return 0;
	}
	json_t *json = code ? NULL : json_loadb(text, size, 0, NULL);
	if (!code)
		code = json ? trials_from_json(trials, json, &why)
			    : error_set(&why, -EINVAL, "not valid JSON");
	if (code)
		(void)error_set(err, code, "'%s': %s", path, why.text);
	json_decref(json);
	free(text);
	free(path);
	return code ? code : 1;
}

/* --- a sweep --------------------------------------------------------------------------------------- */

/* Deviation of ln(samples/s) of one repetition, over all points. */
static double pooled_deviation(const struct report *report, double *freedom)
{
	double squares = 0;
	*freedom = 0;
	for (size_t i = 0; i < report->record->grid.points; i++) {
		const struct point_summary *p = report->points[i];
		double sum = 0;
		if (!p || !p->repeats || p->repeat_count < 2)
			continue;
		for (size_t k = 0; k < p->repeat_count; k++)
			sum += log(p->repeats[k]);
		for (size_t k = 0; k < p->repeat_count; k++)
			squares += pow(log(p->repeats[k]) - sum / (double)p->repeat_count, 2);
		*freedom += (double)(p->repeat_count - 1);
	}
	return *freedom > 0 ? sqrt(squares / *freedom) : (double)NAN;
}

/* False: it is not measured, or too far away. */
static bool trials_take_point(
	const struct report *report, size_t point, size_t other, struct tried_point *out)
{
	const struct config_grid *grid = &report->record->grid;
	const struct point_summary *p = report->points[other];
	*out = (struct tried_point){.half = NAN};
	if (!p || p->status == POINT_FAILED || !(p->median > 0))
		return false;
	for (size_t axis = 0; axis < grid->axis_count; axis++) {
		const size_t choice = grid->choice[other * grid->axis_count + axis];
		const struct config_axis *a = &report->record->config.axes[axis];
		if (choice == grid->choice[point * grid->axis_count + axis])
			continue;
		if (out->change_count == TRIED_CHANGES_MAX)
			return false;
		out->changes[out->change_count++] =
			(struct tried_change){.key = a->key, .value = a->values[choice]};
	}
	out->rate = p->median;
	return true;
}

static int add_sweep(
	struct beside *beside, const struct report *report, size_t point, struct error *err)
{
	const size_t points = report->record->grid.points;
	double freedom;
	const double deviation = pooled_deviation(report, &freedom);
	beside->list = calloc(points, sizeof *beside->list);
	if (!beside->list)
		return error_set(err, -ENOMEM, "out of memory for the points beside");
	for (size_t i = 0; i < points; i++) {
		struct tried_point *next = &beside->list[beside->tried.count];
		if (!trials_take_point(report, point, i, next))
			continue;
		next->half = tried_half(deviation, freedom, report->points[i]->repeat_count);
		beside->tried.count++;
	}
	return 0;
}

/* --- trials ---------------------------------------------------------------------------------------- */

/* Settings that are as they are here are no change.  False: more than can be told apart. */
static bool take_settings(const struct trial *t, const struct config *here, struct config *scratch,
	struct tried_point *out)
{
	struct error err;
	for (size_t i = 0; i < t->setting_count; i++) {
		char name[SETTING_BYTES];
		const size_t length = strcspn(t->settings[i], "=");
		memcpy(name, t->settings[i], length);
		name[length] = '\0';
		const enum key_id key = config_find_key(name);
		if (key == KEY_COUNT || config_keys[key].type == KEY_TYPE_TEXT ||
			config_set(scratch, t->settings[i], &err))
			return false;
		const struct config_value *value = &scratch->values[key];
		if (value->text || value->integer != here->values[key].integer ||
			value->real < here->values[key].real ||
			value->real > here->values[key].real)
			out->changes[out->change_count++] = (struct tried_change){
				.key = key, .value = {value->integer, value->real, NULL}};
	}
	return true;
}

static bool take_trial(const struct trial *t, const struct config *here, struct tried_point *out,
	struct error *err)
{
	struct config scratch = {0};
	*out = (struct tried_point){.rate = t->rate,
		.half = t->half,
		.failed = t->outcome == EXPERIMENT_FAILED,
		.predicted = t->predicted,
		.predicted_90 = t->predicted_90};
	if (config_copy(&scratch, here, err))
		return false;
	const bool taken = take_settings(t, here, &scratch, out);
	config_release(&scratch);
	return taken;
}

static void add_here(struct beside *beside, const struct point_summary *p)
{
	beside->list[beside->tried.count++] = (struct tried_point){
		.rate = p->median, .half = trial_half(p->repeats, p->repeat_count, NAN)};
}

static int add_trials(struct beside *beside, const struct report *report,
	const struct trials *trials, struct error *err)
{
	beside->list = calloc(trials->count + 1, sizeof *beside->list);
	if (!beside->list)
		return error_set(err, -ENOMEM, "out of memory for what was tried");
	add_here(beside, report->points[0]);
	for (size_t i = 0; i < trials->count; i++)
		beside->tried.count += take_trial(&trials->list[i], &report->record->config,
			&beside->list[beside->tried.count], err);
	return 0;
}

int beside_open(struct beside *beside, const struct report *report, size_t point, struct error *err)
{
	const size_t points = report->record->grid.points;
	struct trials *trials = NULL;
	int code = 0;
	*beside = (struct beside){0};
	if (points > 1) {
		if (points <= SWEEP_POINTS_MOST || point == report->best)
			code = add_sweep(beside, report, point, err);
	} else {
		trials = calloc(1, sizeof *trials);
		code = trials ? trials_load(report->record->folder, trials, err)
			      : error_set(err, -ENOMEM, "out of memory for what was tried");
		if (code > 0)
			code = add_trials(beside, report, trials, err);
	}
	free(trials);
	beside->tried.points = beside->list;
	return code;
}

void beside_close(struct beside *beside)
{
	free(beside->list);
	*beside = (struct beside){0};
}
