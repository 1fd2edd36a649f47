/* A loader and the hardware: the document, and its text. */
#include "harness/report/efficiency_report.h"

#include "harness/base/array.h"
#include "harness/base/units.h"
#include "harness/record/fields.h"

#include <math.h>
#include <string.h>

/* --- the document ------------------------------------------------------------------------------- */

static json_t *efficiency_rate_json(const struct efficiency_rate *rate)
{
	return json_pack("{s:o, s:o, s:o}", "median", fields_number(rate->median), "low",
		fields_number(rate->interval.low), "high", fields_number(rate->interval.high));
}

static json_t *efficiency_look_json(const struct efficiency_look *look)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "samples_per_s",
		fields_number(look->rate), "cpu_s_per_sample", fields_number(look->cpu_s),
		"worker_cpu_s_per_sample", fields_number(look->worker_cpu_s),
		"run_queue_s_per_sample", fields_number(look->queue_s), "memory_bytes",
		fields_number(look->memory_bytes), "read_bytes_per_sample",
		fields_number(look->read_bytes), "first_batch_s", fields_number(look->start_s));
}

static json_t *efficiency_side_json(const struct efficiency_side *side)
{
	json_t *out = efficiency_look_json(&side->mean);
	(void)json_object_set_new(out, "samples_per_s", efficiency_rate_json(&side->rate));
	(void)json_object_set_new(out, "worker_s_per_sample", fields_number(side->each_s));
	(void)json_object_set_new(
		out, "cpu_time_samples", json_integer((json_int_t)side->mean.class_samples));
	return out;
}

static json_t *efficiency_class_json(enum job_class class)
{
	return json_pack(
		"{s:s, s:s}", "class", job_class_name(class), "words", job_class_words(class));
}

/* Those in which either has any time, the most lost first. */
static json_t *efficiency_classes_json(const struct efficiency *found)
{
	json_t *list = json_array();
	bool done[JOB_CLASSES] = {false};
	for (int n = 0; n < JOB_CLASSES; n++) {
		int most = -1;
		for (int k = 0; k < JOB_CLASSES; k++)
			if (!done[k] && !isnan(found->class_lost[k]) &&
				(most < 0 || found->class_lost[k] > found->class_lost[most]))
				most = k;
		if (most < 0)
			break;
		done[most] = true;
		const double theirs = found->loader.mean.classes[most];
		const double ours = found->hardware.mean.classes[most];
		if (theirs <= 0 && ours <= 0)
			continue;
		json_t *row = efficiency_class_json((enum job_class)most);
		(void)json_object_set_new(row, "loader_s", fields_number(theirs));
		(void)json_object_set_new(row, "hardware_s", fields_number(ours));
		(void)json_object_set_new(row, "lost_s", fields_number(found->class_lost[most]));
		(void)json_array_append_new(list, row);
	}
	return list;
}

static json_t *efficiency_forecasts_json(const struct efficiency *found)
{
	json_t *list = json_array();
	for (size_t i = 0; i < found->forecast_count; i++) {
		const struct efficiency_forecast *forecast = &found->forecasts[i];
		json_t *classes = json_array();
		for (size_t k = 0; k < forecast->class_count; k++)
			(void)json_array_append_new(
				classes, efficiency_class_json(forecast->classes[k]));
		(void)json_array_append_new(
			list, json_pack("{s:o, s:o, s:b}", "as_cheap_as_here", classes,
				      "samples_per_s", fields_number(forecast->rate),
				      "limited_by_cores", forecast->by_cores));
	}
	return list;
}

static json_t *efficiency_rounds_json(const struct efficiency_input *in)
{
	json_t *list = json_array();
	for (size_t i = 0; i < in->rounds; i++)
		(void)json_array_append_new(list,
			json_pack("{s:o, s:o}", "loader", efficiency_look_json(&in->loader[i]),
				"hardware", efficiency_look_json(&in->hardware[i])));
	return list;
}

json_t *efficiency_json(const struct efficiency_material *m)
{
	const struct efficiency *found = m->found;
	return json_pack(
		"{s:s, s:s, s:o, s:o, s:i, s:I, s:I, s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:{s:s, s:s}, s:o, s:o, s:o, s:o, s:o, s:o, s:O}",
		"schema", EFFICIENCY_SCHEMA, "version", MLBENCH_VERSION, "name",
		fields_text(m->name), "folder", fields_text(m->folder), "workers",
		(int)m->input->workers, "batch_size", (json_int_t)m->batch_size, "dataset_samples",
		(json_int_t)m->samples, "cores", fields_number(m->input->cores), "warmup_s",
		fields_number(m->warmup_s), "duration_s", fields_number(m->duration_s),
		"planned_rounds", (int)m->planned, "rounds", efficiency_rounds_json(m->input),
		"loader", efficiency_side_json(&found->loader), "hardware",
		efficiency_side_json(&found->hardware), "ratio",
		efficiency_rate_json(&found->ratio), "worker_busy",
		fields_number(found->worker_busy), "loader_limit", "stage", m->stage, "resource",
		m->resource, "lost_s_per_sample", fields_number(found->lost_s), "classes",
		efficiency_classes_json(found), "run_queue_lost_s_per_sample",
		fields_number(found->queue_lost_s), "rest_s_per_sample",
		fields_number(found->rest_s), "predicted", efficiency_forecasts_json(found),
		"no_prediction",
		found->no_forecast[0] ? fields_text(found->no_forecast) : json_null(), "notes",
		m->notes);
}

/* --- the text ----------------------------------------------------------------------------------- */

static const struct table_column side_columns[] = {
	{.head = "", .left = true, .path = "who"},
	{.head = "samples/s", .path = "samples_per_s.median", .unit = COLUMN_COUNT},
	{.head = "CPU a\nsample", .path = "cpu_s_per_sample", .unit = COLUMN_SECONDS},
	{.head = "memory", .path = "memory_bytes", .unit = COLUMN_BYTES},
	{.head = "read a\nsample", .path = "read_bytes_per_sample", .unit = COLUMN_BYTES},
	{.head = "first\nbatch", .path = "first_batch_s", .unit = COLUMN_SECONDS, .keep = 1},
};

static const struct table_column loss_columns[] = {
	{.head = "workers' time for a sample", .left = true, .path = "words"},
	{.head = "your\nloader", .path = "loader_s", .unit = COLUMN_SECONDS},
	{.head = "this\nhardware", .path = "hardware_s", .unit = COLUMN_SECONDS},
	{.head = "lost", .path = "lost_s", COLUMN_DECIMALS(2), .scale = 1e3, .after = " ms"},
};

static void efficiency_add_interval(const json_t *rate, struct buffer *text)
{
	char low[UNITS_BYTES];
	char high[UNITS_BYTES];
	if (!isnan(column_number(rate, "low")))
		buffer_format(text, " (%s to %s)",
			units_format_count(column_number(rate, "low"), low),
			units_format_count(column_number(rate, "high"), high));
}

static void efficiency_say_rates(const json_t *document, struct medium *medium)
{
	const json_t *loader = column_value(document, "loader.samples_per_s");
	const json_t *hardware = column_value(document, "hardware.samples_per_s");
	const int workers = (int)column_number(document, "workers");
	char rate[UNITS_BYTES];
	struct buffer text = {0};
	buffer_format(&text, "Your loader: %s samples/s",
		units_format_count(column_number(loader, "median"), rate));
	efficiency_add_interval(loader, &text);
	buffer_format(&text, ". This hardware with the same %d worker%s: %s", workers,
		workers == 1 ? "" : "s",
		units_format_count(column_number(hardware, "median"), rate));
	efficiency_add_interval(hardware, &text);
	buffer_format(&text, ". Your loader reaches %.0f %% of it",
		100 * column_number(document, "ratio.median"));
	if (!isnan(column_number(document, "ratio.low")))
		buffer_format(&text, " (95 %% CI %.0f to %.0f)",
			100 * column_number(document, "ratio.low"),
			100 * column_number(document, "ratio.high"));
	buffer_text(&text, ".");
	medium_fact(medium, INK_BOLD, "result", &text);
}

/* To two decimals, and no "-0.00". */
static double efficiency_ms(double seconds)
{
	static const double SHOWN = 0.005;
	return fabs(1e3 * seconds) < SHOWN ? 0 : 1e3 * seconds;
}

/* Classes by how much they are apart, the rest of them together: the parts sum to the whole. */
static void efficiency_say_classes(const json_t *classes, struct buffer *text)
{
	enum { LOSSES_TOLD = 4 };
	double others = 0;
	bool told[JOB_CLASSES] = {false};
	const size_t count = json_array_size(classes);
	for (size_t n = 0; n < LOSSES_TOLD && n < count; n++) {
		size_t most = count;
		double largest = 0;
		for (size_t i = 0; i < count; i++) {
			const double lost = column_number(json_array_get(classes, i), "lost_s");
			if (!told[i] && (most == count || fabs(lost) > fabs(largest))) {
				most = i;
				largest = lost;
			}
		}
		told[most] = true;
		buffer_format(text, " %s %.2f,",
			column_text(json_array_get(classes, most), "words"),
			efficiency_ms(largest));
	}
	for (size_t i = 0; i < count; i++)
		others += told[i] ? 0 : column_number(json_array_get(classes, i), "lost_s");
	if (count > LOSSES_TOLD)
		buffer_format(text, " other classes %.2f,", efficiency_ms(others));
}

/* What is waited for.  Nobody waits for less than no time: then this pipeline waits longer. */
static void efficiency_say_wait(
	const char *before, const char *what, double seconds, struct buffer *text)
{
	const double ms = efficiency_ms(seconds);
	buffer_format(text, "%s%s %.2f%s", before, what, fabs(ms),
		ms < 0 ? " less than this pipeline" : "");
}

static void efficiency_say_losses(const json_t *document, struct medium *medium)
{
	const double lost = column_number(document, "lost_s_per_sample");
	const double queue = column_number(document, "run_queue_lost_s_per_sample");
	struct buffer text = {0};
	if (lost <= 0) {
		buffer_text(&text, "nothing: your loader is no slower than this pipeline");
		medium_fact(medium, INK_GOOD, "lost", &text);
		return;
	}
	buffer_format(&text, "Of the %.2f ms of a worker that you lose on a sample:", 1e3 * lost);
	efficiency_say_classes(column_value(document, "classes"), &text);
	if (!isnan(queue))
		efficiency_say_wait(" ", "waiting for a core", queue, &text);
	efficiency_say_wait(isnan(queue) ? " " : ", ", "other waits",
		column_number(document, "rest_s_per_sample"), &text);
	buffer_text(&text, ".");
	medium_fact(medium, INK_PLAIN, "lost", &text);
}

static void efficiency_say_forecasts(const json_t *document, struct medium *medium)
{
	const json_t *list = column_value(document, "predicted");
	const char *why = column_text(document, "no_prediction");
	struct buffer text = {0};
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *row = json_array_get(list, i);
		const json_t *classes = column_value(row, "as_cheap_as_here");
		char rate[UNITS_BYTES];
		buffer_text(&text, "with ");
		for (size_t k = 0; k < json_array_size(classes); k++)
			buffer_format(&text, "%s%s", k ? " and " : "",
				column_text(json_array_get(classes, k), "words"));
		buffer_format(&text, " as cheap as here: %s samples/s (predicted%s)",
			units_format_count(column_number(row, "samples_per_s"), rate),
			json_is_true(column_value(row, "limited_by_cores"))
				? "; the cores limit it then"
				: "");
		medium_fact(medium, INK_GOOD, i ? "" : "change", &text);
	}
	if (why[0]) {
		buffer_format(&text, "no prediction: %s", why);
		medium_fact(medium, INK_DIM, "change", &text);
	}
}

static json_t *efficiency_sides(const json_t *document)
{
	static const char *const sides[][2] = {
		{"loader", "your loader"}, {"hardware", "this hardware"}};
	json_t *rows = json_array();
	for (size_t i = 0; i < COUNT(sides); i++) {
		json_t *row = json_copy(json_object_get(document, sides[i][0]));
		(void)json_object_set_new(row, "who", json_string(sides[i][1]));
		(void)json_array_append_new(rows, row);
	}
	return rows;
}

void efficiency_text(const json_t *document, struct medium *medium)
{
	json_t *sides = efficiency_sides(document);
	struct buffer text = {0};
	medium_title(medium, column_text(document, "name"), "a loader beside this hardware");
	buffer_format(&text, "%d of %d rounds of %.1f s in turn, after %.1f s of warm-up; %d cores",
		(int)json_array_size(column_value(document, "rounds")),
		(int)column_number(document, "planned_rounds"),
		column_number(document, "duration_s"), column_number(document, "warmup_s"),
		(int)column_number(document, "cores"));
	medium_fact(medium, INK_DIM, "measured", &text);
	efficiency_say_rates(document, medium);
	efficiency_say_losses(document, medium);
	efficiency_say_forecasts(document, medium);
	buffer_format(&text, "stage %s, resource %s; its workers are on a core %.0f %% of the time",
		column_text(document, "loader_limit.stage"),
		column_text(document, "loader_limit.resource"),
		100 * column_number(document, "worker_busy"));
	medium_fact(medium, INK_DIM, "limit", &text);
	medium_space(medium);
	medium_table(medium, side_columns, COUNT(side_columns), sides, "both sides");
	if (json_array_size(column_value(document, "classes"))) {
		medium_space(medium);
		medium_table(medium, loss_columns, COUNT(loss_columns),
			column_value(document, "classes"), "CPU time by class");
	}
	medium_space(medium);
	medium_list(medium, INK_WARN, "note", column_value(document, "notes"), 0);
	medium_fact_text(medium, INK_DIM, "results", column_text(document, "folder"));
	medium_end(medium);
	json_decref(sides);
}
