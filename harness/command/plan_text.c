/* A plan in words and as JSON: how many points, how long, how much memory. */
#include "harness/base/clock.h"
#include "harness/base/step_schedule.h"
#include "harness/base/units.h"
#include "harness/command/limits.h"
#include "harness/command/plan.h"
#include "harness/record/config_json.h"
#include "harness/record/fields.h"
#include "harness/report/report.h"
#include "pipelines/conduct.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL_COLUMNS = 9, MINUTE = 60, HOUR = 3600 };

/* Before and after a repetition's clock; only for the estimate, like the next one. */
static const double SET_UP_SECONDS = 0.05;
/* A GPU's libraries are opened and a point's products are timed against each other, once; a guess, measured on no GPU yet, for
 * the estimate alone. */
static const double CHOOSE_SECONDS = 3;
/* Of a core's time, to draw and encode a pixel as JPEG; only for the estimate. */
static const double GENERATE_NS_PER_PIXEL = 30;

double plan_repetition_seconds(const struct plan *plan)
{
	return plan->cost.points > 0 ? plan->cost.seconds_sum / (double)plan->cost.points : 0;
}

double plan_generation_seconds(const struct plan *plan)
{
	if (config_integer(&plan->config, KEY_DATASET_RECIPE) == DATASET_RECIPE_NONE)
		return 0;
	const double pixels = config_real(&plan->config, KEY_DATASET_SAMPLES) *
			      config_real(&plan->config, KEY_DATASET_WIDTH) *
			      config_real(&plan->config, KEY_DATASET_HEIGHT);
	return pixels * GENERATE_NS_PER_PIXEL / (double)NS_PER_S / (plan->cores ? plan->cores : 1);
}

double plan_seconds(const struct plan *plan, size_t repetitions)
{
	const double each = plan_repetition_seconds(plan);
	const double making = plan->has_data ? 0 : plan_generation_seconds(plan);
	/* One of the stages alone is the step. */
	const double limits = plan->limits > 0 ? plan->cost.seconds_most - each : 0;
	const bool chooses = plan->facts.step_has_memory;
	const double choosing = chooses ? CHOOSE_SECONDS * (double)plan->grid.points : 0;
	return making + limits + choosing +
	       (each + SET_UP_SECONDS) * (double)(repetitions + plan->limits);
}

const char *plan_format_seconds(double seconds, char *out, size_t room)
{
	const long whole = lround(seconds);
	if (seconds < 1)
		(void)snprintf(out, room, "%.1f s", seconds);
	else if (whole < 2 * MINUTE)
		(void)snprintf(out, room, "%ld s", whole);
	else if (whole < HOUR)
		(void)snprintf(out, room, "%ld min %02ld s", whole / MINUTE, whole % MINUTE);
	else
		(void)snprintf(out, room, "%ld h %02ld min", whole / HOUR, whole % HOUR / MINUTE);
	return out;
}

static void label(struct buffer *out, const char *text)
{
	buffer_format(out, "  %-*s", LABEL_COLUMNS, text);
}

static void describe_time(const struct plan *plan, size_t repetitions, struct buffer *out)
{
	char text[UNITS_BYTES];
	const size_t repeats = (size_t)config_integer(&plan->config, KEY_MEASURE_REPEATS);
	label(out, "points");
	const bool adaptive = record_is_adaptive(&plan->config);
	buffer_format(out, "%s%zu x %zu repeat%s", adaptive ? "at most " : "", plan->grid.points,
		repeats, repeats == 1 ? "" : "s");
	if (plan->grid.points > 1)
		buffer_text(
			out, adaptive ? ", those that tell most first" : " in seeded random order");
	if (repetitions != plan->grid.points * repeats && !adaptive)
		buffer_format(out, ", %zu repetitions to go", repetitions);
	if (plan_repetition_seconds(plan) > 0)
		buffer_format(out, ", about %s",
			plan_format_seconds(plan_seconds(plan, repetitions), text, sizeof text));
	else
		buffer_text(out, ", the time is not known (measure.epochs)");
	if (plan->limits > 0)
		buffer_format(out, "; then %zu stages alone", plan->limits);
	buffer_text(out, "\n");
}

/* A measurement that cannot hold enough batches is known before it is made. */
static void describe_short(const struct plan *plan, struct buffer *out)
{
	const struct plan_cost *cost = &plan->cost;
	char duration[UNITS_BYTES], batch[UNITS_BYTES];
	if (cost->short_points == 0)
		return;
	const double least = cost->short_worst.batches_least;
	const double batch_s = cost->short_worst.batch_s;
	const double duration_s = cost->short_worst.duration_s;
	label(out, "short");
	if (plan->grid.points > 1)
		buffer_format(out, "%zu of %zu points: ", cost->short_points, plan->grid.points);
	buffer_format(out,
		"measure.duration of %s has room for %.2g of the %g batches that a measurement wants, at %s a batch: a repetition takes up to %d times as long%s; measure.duration=%.0fs is enough\n",
		plan_format_seconds(duration_s, duration, sizeof duration), duration_s / batch_s,
		least, plan_format_seconds(batch_s, batch, sizeof batch), CONDUCT_EXTENSION,
		cost->short_worst.hopeless ? ", and has too few even then" : "",
		ceil((least + 1) * batch_s));
}

static void describe_data(const struct plan *plan, struct buffer *out)
{
	char text[UNITS_BYTES];
	const char *path = config_text(&plan->config, KEY_DATASET_PATH);
	label(out, "data");
	if (plan->has_data) {
		const struct dataset *set = &plan->dataset;
		const bool some =
			!set->generated &&
			(int64_t)set->count == config_integer(&plan->config, KEY_DATASET_SAMPLES);
		buffer_format(out, "%zu samples%s, %s, in %s", set->count,
			some ? " (no more than dataset.samples)" : "",
			units_format_size((double)set->total_bytes, text), path);
		if (set->bad_count > 0)
			buffer_format(out, "; %zu file%s left out (%s: %s)", set->bad_count,
				set->bad_count == 1 ? "" : "s", set->bad[0].path,
				set->bad[0].reason);
	} else {
		const bool makes = config_integer(&plan->config, KEY_DATASET_GENERATE) ==
				   DATASET_GENERATE_AUTO;
		buffer_format(out, "%s; %s", plan->data_why,
			makes ? "a run generates it first" : "'mlbench gen' makes it");
		buffer_format(out, ", about %s",
			plan_format_seconds(plan_generation_seconds(plan), text, sizeof text));
	}
	buffer_text(out, "\n");
}

static void describe_memory(const struct plan *plan, struct buffer *out)
{
	char pools[UNITS_BYTES];
	char all[UNITS_BYTES];
	label(out, "memory");
	if (!plan->has_data) {
		buffer_text(out, "the bound is known when the data set is there\n");
		return;
	}
	const double bytes = (double)plan->largest.pool_bytes;
	const double alone = (double)plan->cost.limit_pool_bytes;
	const double bound = (double)plan->cost.bound_bytes;
	buffer_format(out, "at most %s resident%s: %s of pools at the largest point",
		units_format_size(bound, all),
		plan->facts.step_has_memory ? " (beside the CUDA libraries)" : "",
		units_format_size(bytes, pools));
	if (alone > bytes)
		buffer_format(out, ", %s where a stage runs alone, from memory",
			units_format_size(alone, pools));
	buffer_format(out, ", and %s for the program\n",
		units_format_size(bound - (alone > bytes ? alone : bytes), pools));
	if (plan->largest.picture_bytes > 0)
		buffer_format(out,
			"           each place in a batch has room for a decoded picture of %s at most\n",
			units_format_size((double)plan->largest.picture_bytes, pools));
}

static void describe_timeline(const struct plan *plan, struct buffer *out)
{
	struct step_schedule schedule;
	char room[UNITS_BYTES];
	const char *text = config_text(&plan->config, KEY_TRACE_SCHEDULE);
	if (!*text || step_schedule_parse(text, &schedule))
		return;
	label(out, "timeline");
	const uint64_t first = schedule.skip + schedule.wait + schedule.warmup;
	const uint64_t cycle = schedule.wait + schedule.warmup + schedule.active;
	if (step_schedule_kept(&schedule) == UINT64_MAX)
		buffer_format(out, "%llu of every %llu steps from step %llu on",
			(unsigned long long)schedule.active, (unsigned long long)cycle,
			(unsigned long long)first);
	else
		buffer_format(out, "%llu steps from step %llu on",
			(unsigned long long)step_schedule_kept(&schedule),
			(unsigned long long)first);
	buffer_text(out, ", of the first repetition of each point");
	if (plan->has_data)
		buffer_format(out, ", recorded in at most %s",
			units_format_size((double)plan->largest.timeline_bytes, room));
	buffer_text(out, "\n");
}

static void describe_conditions(const struct plan *plan, struct buffer *out)
{
	char lines[INJECTED_MAX][NOTE_BYTES];
	const size_t count = report_injected(&plan->config, lines, INJECTED_MAX);
	if (count > 0)
		label(out, "injected");
	for (size_t i = 0; i < count; i++)
		buffer_format(out, "%s%s%s", i ? ", " : "", lines[i], i + 1 == count ? "\n" : "");
	const char *warning = report_emulation_warning(&plan->config, plan->step.emulated);
	if (warning) {
		label(out, "warning");
		buffer_format(out, "%s\n", warning);
	}
	if (plan->refused > 0) {
		label(out, "refused");
		buffer_format(out, "%zu of %zu points cannot run here; the first: %s\n",
			plan->refused, plan->grid.points, plan->refusal.text);
	}
}

void plan_describe(const struct plan *plan, size_t repetitions, struct buffer *out)
{
	buffer_format(out, "%s  step: %s\n", plan->name, plan->step.description);
	if (plan->step_note[0]) {
		label(out, "");
		buffer_format(out, "%s\n", plan->step_note);
	}
	if (plan->step.reference[0]) {
		label(out, "");
		buffer_format(out, "reference: %s\n", plan->step.reference);
	}
	describe_conditions(plan, out);
	describe_time(plan, repetitions, out);
	describe_short(plan, out);
	describe_data(plan, out);
	label(out, "engine");
	buffer_format(out, "%s%s%s%s\n", plan->engine, plan->engine_note[0] ? " (" : "",
		plan->engine_note, plan->engine_note[0] ? ")" : "");
	describe_memory(plan, out);
	describe_timeline(plan, out);
	label(out, "config");
	buffer_format(out, "%s %s\n", plan->hash, plan->config.path ? plan->config.path : "");
}

static json_t *points_of(const struct plan *plan)
{
	json_t *array = json_array();
	for (size_t point = 0; point < plan->grid.points; point++)
		if (json_array_append_new(
			    array, config_point_to_json(&plan->config, &plan->grid, point)) != 0) {
			json_decref(array);
			return NULL;
		}
	return array;
}

json_t *plan_to_json(const struct plan *plan)
{
	const size_t repeats = (size_t)config_integer(&plan->config, KEY_MEASURE_REPEATS);
	const bool timed = plan_repetition_seconds(plan) > 0;
	json_t *memory = plan->has_data ? json_real((double)plan->cost.bound_bytes) : json_null();
	json_t *seconds = fields_number(
		timed ? plan_seconds(plan, plan->grid.points * repeats) : (double)NAN);
	json_t *step = json_pack("{s:s, s:b, s:s, s:o, s:o}", "backend", plan->step.backend,
		"emulated", (int)plan->step.emulated, "model", plan->step.model, "description",
		fields_text(plan->step.description), "flops_per_sample",
		plan->step.flops_per_sample > 0 ? json_real(plan->step.flops_per_sample)
						: json_null());
	return json_pack(
		"{s:s, s:o, s:s, s:o, s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:b, s:o, s:I, s:o}",
		"schema", "mlbench.check/1", "name", fields_text(plan->name), "config_hash",
		plan->hash, "step", step, "engine", plan->engine, "repeats", (json_int_t)repeats,
		"limits", (json_int_t)plan->limits, "refused", (json_int_t)plan->refused, "short",
		(json_int_t)plan->cost.short_points, "seconds", seconds, "memory_bytes", memory,
		"data_set", (int)plan->has_data, "refusal",
		plan->refused ? fields_text(plan->refusal.text) : json_null(), "point_count",
		(json_int_t)plan->grid.points, "points", points_of(plan));
}
