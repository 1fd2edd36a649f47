/* The report that people read.  A terminal shows its end: there the answer comes last, the points with their map, what is
 * best, the verdict, what to do, and where the page is; on its own it fits a screen.  Markdown is read from the top, where it
 * has the answer. */
#include "harness/analyze/limit_kinds.h"
#include "harness/base/clock.h"
#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/config/conditions.h"
#include "harness/measure/environment.h"
#include "harness/record/config_json.h"
#include "harness/report/alongside.h"
#include "harness/report/diagnosis_report.h"
#include "harness/report/export.h"
#include "harness/report/heatmap.h"
#include "harness/report/read_points.h"
#include "harness/report/report.h"
#include "harness/report/scaling.h"
#include "harness/report/screen.h"
#include "harness/report/summary_tables.h"

#include <math.h>
#include <string.h>

enum {
	POINTS_SHOWN_MAX = 100,
	POINTS_MARKDOWN_MAX = 1000,
	NOTES_SHOWN_MAX = 8,
	AGE_BYTES = 64,
	WORKLOADS_SHOWN = 3, /* beside the first */
	ROWS_WANTED = 4,     /* of points on a screen */
	KEEP_POINTS = 4,     /* what is less important makes room for them */
};

static const double NEAR_BEST_SHARE = 0.05;

struct sheet_of_report {
	const struct report *report;
	const struct point_summary *best; /* NULL: nothing has a figure */
	const struct diagnosis *d;        /* of it; NULL: none */
	bool swept, verbose;
	struct medium medium;
};

/* --- host, date, data ------------------------------------------------------------------------- */

static void text_put_run(struct sheet_of_report *sheet)
{
	const struct record *record = sheet->report->record;
	const struct fact *cpu = fact_find(&record->environment, "cpu", "model");
	const char *node = fact_node_name(&record->environment);
	const double seconds = fmax(0, record->finished - record->started);
	char when[CLOCK_UTC_BYTES];
	char took[UNITS_BYTES];
	char age[AGE_BYTES];
	struct buffer text = {0};
	clock_format_utc(record->started, when);
	record_put_extent(record, &text);
	buffer_format(&text, ", started %s, took %s, config %s", when,
		units_format_duration(seconds * (double)NS_PER_S, took), record->config_hash);
	medium_fact(&sheet->medium, INK_DIM, "run", &text);
	if (node) {
		utf8_add_plain(&text, node, "?");
		buffer_text(&text, ": ");
	}
	buffer_format(&text, "%s, %u core%s usable; ceilings: %s",
		cpu && cpu->kind == FACT_TEXT ? cpu->text : "CPU model unknown", record->cores,
		record->cores == 1 ? "" : "s",
		record->has_ceilings ? ceilings_age(&record->ceilings, record->started, "before",
					       age, sizeof age)
				     : "none (mlbench probe)");
	medium_fact(&sheet->medium, INK_DIM, "node", &text);
	report_data_text(record, &text);
	medium_fact(&sheet->medium, INK_DIM, "data", &text);
}

static void text_put_conditions(struct sheet_of_report *sheet)
{
	const struct record *record = sheet->report->record;
	const char *warning = conditions_warning(&record->config, record->step.emulated);
	struct buffer text = {0};
	conditions_injected(&record->config, ", ", &text);
	medium_fact(&sheet->medium, INK_WARN, "injected", &text);
	conditions_declared(&record->config, &text);
	medium_fact(&sheet->medium, INK_WARN, "declared", &text);
	medium_fact_text(&sheet->medium, INK_WARN, "warning", warning ? warning : "");
}

static void text_put_interrupted(struct sheet_of_report *sheet)
{
	const struct record *record = sheet->report->record;
	const size_t all =
		record->grid.points * (size_t)config_integer(&record->config, KEY_MEASURE_REPEATS);
	struct buffer text = {0};
	if (record->interrupted) {
		buffer_format(&text,
			"interrupted: %zu of %s%zu repetitions measured; measure the rest with: ",
			record->entry_count,
			record_is_sequential(&record->config) ? "at most " : "", all);
		record_add_command(record, NULL, &text);
	}
	medium_fact(&sheet->medium, INK_WARN, "status", &text);
}

static void text_put_head(struct sheet_of_report *sheet)
{
	const struct record *record = sheet->report->record;
	struct buffer text = {0};
	buffer_format(&text, "step: %s", record->step.description);
	medium_title(&sheet->medium, record->name, text.data ? text.data : "");
	buffer_release(&text);
	if (record->step.reference[0])
		buffer_format(&text, "reference: %s", record->step.reference);
	medium_fact(&sheet->medium, INK_DIM, "", &text);
	text_put_run(sheet);
	text_put_conditions(sheet);
	text_put_interrupted(sheet);
}

/* --- the verdict, and what to do -------------------------------------------------------------- */

static void text_add_rate(const struct report *report, size_t point, struct buffer *text)
{
	report_add_rate(report, point, text);
	if (report->record->config.axis_count == 0)
		return;
	buffer_text(text, " at ");
	report_settings(report, point, text);
}

/* Of a sequential sweep whose repetitions did not tell the best point from others. */
static void text_put_open(struct sheet_of_report *sheet)
{
	const struct report *report = sheet->report;
	const size_t points = report->record->grid.points;
	struct buffer text = {0};
	size_t open = 0;
	for (size_t i = 0; report->decided && report->best < points && i < points; i++)
		open += report->decided[i].state == STOP_OPEN &&
			report_same_workload(report, i, report->best);
	if (open > 0 && !report->record->interrupted)
		buffer_format(&text,
			"%zu of %zu points may be as fast as the fastest: repetitions differ too much to tell",
			open, points);
	medium_fact(&sheet->medium, INK_WARN, "open", &text);
}

/* Of the only workload, or of one of several: "of tokens.length=256: 900 samples/s at decode.workers=2". */
static void text_add_best(
	const struct report *report, size_t best, bool several, struct buffer *text)
{
	const size_t fastest = report_fastest_like(report, best);
	struct buffer knobs = {0};
	char number[UNITS_BYTES];
	if (several) {
		buffer_text(text, "of ");
		report_settings_of(report, best, false, text);
		buffer_text(text, ": ");
	}
	report_add_rate(report, best, text);
	report_settings_of(report, best, true, &knobs);
	if (knobs.size > 0)
		buffer_format(text, " at %s", knobs.data);
	text->failed = text->failed || knobs.failed;
	buffer_release(&knobs);
	if (fastest == best)
		return;
	buffer_format(text, "; tied with the highest, %s at ",
		units_format_count(report->points[fastest]->median, number));
	report_differing_settings(report, fastest, best, text);
}

/* Whether a point is the first of a workload that is not the verdict's own. */
static bool begins_other_workload(const struct report *report, size_t point)
{
	size_t first = 0;
	while (first < point && !report_same_workload(report, first, point))
		first++;
	return first == point && !report_same_workload(report, point, report->best) &&
	       report_best_like(report, point) < report->record->grid.points;
}

/* The best setting of each workload, the verdict's own first. */
static void text_put_best(struct sheet_of_report *sheet)
{
	const struct report *report = sheet->report;
	size_t others = 0;
	size_t shown = 0;
	struct buffer text = {0};
	for (size_t i = 0; i < report->record->grid.points; i++)
		others += begins_other_workload(report, i);
	text_add_best(report, report->best, others > 0, &text);
	medium_fact(&sheet->medium, INK_GOOD, "best", &text);
	for (size_t i = 0; i < report->record->grid.points && shown < WORKLOADS_SHOWN; i++) {
		if (!begins_other_workload(report, i))
			continue;
		text_add_best(report, report_best_like(report, i), true, &text);
		medium_fact(&sheet->medium, INK_GOOD, "", &text);
		shown++;
	}
	if (others > shown)
		buffer_format(
			&text, "and %zu workloads more: see the table of points", others - shown);
	medium_fact(&sheet->medium, INK_GOOD, "", &text);
}

static void text_put_verdict(struct sheet_of_report *sheet)
{
	const struct verdict *v = &sheet->best->verdict;
	struct buffer text = {0};
	if (v->stage[0] && strcmp(v->stage, "none") != 0) {
		diagnosis_bottleneck(sheet->best, v->confidence, &text);
		buffer_text(&text, ".");
	} else {
		buffer_text(&text, "Inconclusive: the bottleneck is unknown.");
	}
	diagnosis_add_change(sheet->d, &text);
	diagnosis_add_cold(sheet->best, &text);
	medium_fact(&sheet->medium, INK_BOLD, "verdict", &text);
}

static void text_put_memory(struct sheet_of_report *sheet)
{
	if (sheet->d && sheet->d->memory.leaks)
		medium_fact_text(&sheet->medium, INK_BAD, "memory", sheet->d->memory.words);
}

static void text_put_enough(struct sheet_of_report *sheet)
{
	const size_t enough = report_smallest_within(sheet->report, NEAR_BEST_SHARE);
	struct buffer text = {0};
	if (enough != sheet->report->best && sheet->swept) {
		text_add_rate(sheet->report, enough, &text);
		buffer_text(&text, ": the smallest setting within 5 % of the best");
	}
	medium_fact(&sheet->medium, INK_GOOD, "enough", &text);
}

static void text_put_more(struct sheet_of_report *sheet)
{
	const struct verdict *v = &sheet->best->verdict;
	char pair[PAIR_BYTES];
	struct buffer text = {0};
	if (limit_kind_find(v->stage, v->resource))
		buffer_format(
			&text, "mlbench explain %s", limit_kind_pair(v->stage, v->resource, pair));
	medium_fact(&sheet->medium, INK_DIM, "more", &text);
}

static void text_put_recommendations(struct sheet_of_report *sheet)
{
	json_t *parts = sheet->d ? diagnosis_parts_json(sheet->d) : NULL;
	diagnosis_put_recommendations(&sheet->medium, column_value(parts, "recommendations"));
	json_decref(parts);
}

/* Beside the reported job, or the user's loader. */
static void text_put_alongside(struct sheet_of_report *sheet)
{
	struct alongside alongside;
	if (alongside_open(&alongside, sheet->report, sheet->report->best)) {
		medium_space(&sheet->medium);
		alongside_put(&alongside, &sheet->medium);
	}
	alongside_close(&alongside);
}

/* --- where the time went ---------------------------------------------------------------------- */

static void text_put_stages(struct sheet_of_report *sheet, size_t at)
{
	const struct report *report = sheet->report;
	struct buffer text = {0};
	json_t *point = report_point_json(report, at);
	buffer_text(&text, "where the time went");
	if (sheet->swept) {
		buffer_text(&text, at == report->best ? " at the best point, " : ", ");
		report_settings(report, at, &text);
	}
	medium_heading(&sheet->medium, text.data ? text.data : "");
	buffer_release(&text);
	summary_stages(&sheet->medium, point);
	summary_totals(&sheet->medium, point);
	read_points_text(report, at, &text);
	medium_fact(&sheet->medium, INK_DIM, "reads", &text);
	summary_devices(&sheet->medium, point);
	if (report_ranks_registered())
		report_ranks_registered()->put(point, &sheet->medium);
	json_decref(point);
}

/* What the replay of a point says; of one without, that there is none only where it is asked for. */
static void text_put_model(struct sheet_of_report *sheet, size_t at, bool always)
{
	const struct diagnosis *d = sheet->report->diagnoses ? sheet->report->diagnoses[at] : NULL;
	if (!d || (!always && !d->modelled && d->phase_count <= 1))
		return;
	json_t *parts = diagnosis_parts_json(d);
	diagnosis_put_model(&sheet->medium, parts, sheet->report->points[at]->median);
	if (at != sheet->report->best)
		diagnosis_put_recommendations(
			&sheet->medium, column_value(parts, "recommendations"));
	json_decref(parts);
}

static void text_put_other_points(struct sheet_of_report *sheet)
{
	for (size_t i = 0; i < sheet->report->record->grid.points; i++) {
		const struct point_summary *p = sheet->report->points[i];
		if (!p || p->status == POINT_FAILED || i == sheet->report->best)
			continue;
		text_put_stages(sheet, i);
		text_put_model(sheet, i, false);
	}
}

static void text_put_evidence(struct sheet_of_report *sheet)
{
	json_t *verdict = verdict_to_json(&sheet->best->verdict);
	medium_space(&sheet->medium);
	medium_list(&sheet->medium, INK_DIM, "evidence", column_value(verdict, "evidence"), 0);
	json_decref(verdict);
	if (!sheet->swept || sheet->verbose)
		text_put_model(sheet, sheet->report->best, !sheet->swept);
}

/* --- all points, and the rest ----------------------------------------------------------------- */

static void text_put_points(struct sheet_of_report *sheet)
{
	struct medium *medium = &sheet->medium;
	struct buffer map = {0};
	medium_heading(medium, sheet->swept ? "all points" : "throughput");
	summary_points(
		medium, sheet->report, medium->style ? POINTS_SHOWN_MAX : POINTS_MARKDOWN_MAX);
	if (medium->style && heatmap_render(sheet->report, medium->style, &map)) {
		medium_space(medium);
		buffer_add(medium->out, map.data, map.size);
	}
	medium->out->failed = medium->out->failed || map.failed;
	buffer_release(&map);
	summary_storage(
		medium, sheet->report, medium->style ? POINTS_SHOWN_MAX : POINTS_MARKDOWN_MAX);
}

static void text_put_limits(struct sheet_of_report *sheet)
{
	struct buffer text = {0};
	if (sheet->report->record->limit_count == 0)
		return;
	json_t *limits = report_limits_json(sheet->report->record);
	const char *at =
		sheet->report->record->limits[sheet->report->record->limit_count - 1].settings;
	buffer_format(&text, "limits of this node, each stage alone%s%s", *at ? ", at " : "", at);
	medium_heading(&sheet->medium, text.data ? text.data : "");
	buffer_release(&text);
	summary_limits(&sheet->medium, limits);
	json_decref(limits);
	if (sheet->best)
		report_exceeded_text(sheet->report, sheet->best, "", &text);
	medium_fact(&sheet->medium, INK_WARN, "note", &text);
}

static void text_put_notes(struct sheet_of_report *sheet)
{
	const size_t most = sheet->verbose ? NOTES_MAX : NOTES_SHOWN_MAX;
	for (size_t i = 0; sheet->best && i < sheet->best->note_count && i < most; i++)
		medium_fact_text(&sheet->medium, INK_DIM, sheet->medium.style && i ? "" : "notes",
			sheet->best->notes[i]);
	if (sheet->best && sheet->best->note_count > most)
		medium_fact_text(
			&sheet->medium, INK_DIM, "", "more with --verbose, or in summary.json");
}

static void text_put_load(struct sheet_of_report *sheet)
{
	struct buffer text = {0};
	report_contaminated_text(sheet->report, &text);
	medium_fact(&sheet->medium, INK_WARN, "load", &text);
}

static void text_put_checks(struct sheet_of_report *sheet)
{
	const struct checksum_check *check = &sheet->report->checksum_check;
	if (check->checked > 0)
		medium_fact_text(
			&sheet->medium, check->differ ? INK_BAD : INK_DIM, "verify", check->words);
}

static void text_put_left_out(struct sheet_of_report *sheet)
{
	struct buffer text = {0};
	report_left_out_text(sheet->report, &text);
	medium_fact(&sheet->medium, INK_WARN, "left out", &text);
}

static void text_put_bad(struct sheet_of_report *sheet)
{
	struct buffer text = {0};
	report_bad_text(sheet->report, &text);
	medium_fact(&sheet->medium, INK_WARN, "bad", &text);
}

static void text_put_ranks(struct sheet_of_report *sheet)
{
	const struct report_ranks *const ranks = report_ranks_registered();
	struct buffer text = {0};
	if (!ranks)
		return;
	json_t *const point =
		json_pack("{s:o*}", "ranks", ranks->json(sheet->report, sheet->report->best));
	ranks->say(point, &text);
	medium_fact(&sheet->medium, INK_BOLD, "ranks", &text);
	json_decref(point);
	ranks->scaling(sheet->report, &text);
	medium_fact(&sheet->medium, INK_BOLD, "scaling", &text);
}

static void text_put_advice(struct sheet_of_report *sheet)
{
	medium_fact_text(&sheet->medium, INK_BOLD, "advice", sheet->best->verdict.advice);
}

static void text_put_place(struct sheet_of_report *sheet)
{
	screen_put_place(&sheet->medium, sheet->report->record->folder);
}

/* What is said at the end, or at the top of Markdown: in this order, and the larger `keep`, the earlier it is left out where
 * there is no room.  best: only where some point has a figure. */
static const struct {
	void (*put)(struct sheet_of_report *sheet);
	int keep;
	bool best;
} answer[] = {
	{text_put_open, 6, false},
	{text_put_left_out, 7, false},
	{text_put_bad, 3, false},
	{text_put_checks, 3, false},
	{text_put_load, 5, false},
	{text_put_best, 1, true},
	{text_put_ranks, 1, true},
	{text_put_enough, 8, true},
	{text_put_memory, 2, true},
	{text_put_verdict, 0, true},
	{text_put_advice, 0, true},
	{text_put_more, 9, true},
	{text_put_place, 0, false},
};

static void text_put_answer(struct sheet_of_report *sheet)
{
	medium_space(&sheet->medium);
	for (size_t i = 0; i < sizeof answer / sizeof answer[0]; i++)
		if (sheet->best || !answer[i].best)
			answer[i].put(sheet);
}

static void text_put_rest(struct sheet_of_report *sheet)
{
	struct buffer text = {0};
	medium_space(&sheet->medium);
	scaling_describe(sheet->report, &text);
	medium_fact(&sheet->medium, INK_DIM, "scaling", &text);
	text_put_notes(sheet);
}

static void text_put_details(struct sheet_of_report *sheet, bool every_point)
{
	text_put_alongside(sheet);
	if (sheet->best) {
		text_put_stages(sheet, sheet->report->best);
		text_put_evidence(sheet);
		text_put_recommendations(sheet);
	}
	if (sheet->best && every_point)
		text_put_other_points(sheet);
}

static struct sheet_of_report sheet_of(
	const struct report *report, bool verbose, struct medium medium)
{
	const bool any = report->best < report->record->grid.points;
	return (struct sheet_of_report){.report = report,
		.best = any ? report->points[report->best] : NULL,
		.d = any && report->diagnoses ? report->diagnoses[report->best] : NULL,
		.swept = report->record->config.axis_count > 0,
		.verbose = verbose,
		.medium = medium};
}

/* --- on one screen ------------------------------------------------------------------------------ */

/* The best points, with an empty line behind them. */
static void screen_put_table(
	struct sheet_of_report *sheet, size_t rows, bool counts, struct buffer *out)
{
	buffer_release(out);
	sheet->medium.out = out;
	summary_best_points(&sheet->medium, sheet->report, rows, counts);
	if (out->size > 0)
		buffer_text(out, "\n");
}

/* As many of the best points as there is room for, and the map; without it where it leaves no room for them. */
static void screen_put_points(
	struct sheet_of_report *sheet, struct screen *screen, struct buffer *out)
{
	struct buffer map = {0};
	struct buffer table = {0};
	if (heatmap_render(sheet->report, sheet->medium.style, &map))
		buffer_text(&map, "\n");
	screen_put_table(sheet, ROWS_WANTED, map.size == 0, &table);
	screen_make_room(screen, screen_lines_of(&table) + screen_lines_of(&map), KEEP_POINTS);
	size_t rows = screen_left(screen);
	while (rows > 0) {
		screen_put_table(sheet, rows, map.size == 0, &table);
		const size_t lines = screen_lines_of(&table) + screen_lines_of(&map);
		if (lines <= screen_left(screen))
			break;
		if (rows == 1 && map.size > 0) {
			buffer_release(&map);
			rows = screen_left(screen);
		} else {
			rows--;
		}
	}
	if (rows == 0)
		buffer_release(&map);
	if (rows > 0)
		buffer_add(out, table.data, table.size);
	buffer_add(out, map.data, map.size);
	out->failed = out->failed || table.failed || map.failed;
	buffer_release(&table);
	buffer_release(&map);
}

/* Of one setting, where its time went, and why that is the verdict. */
static void screen_put_stages(
	struct sheet_of_report *sheet, const struct screen *screen, struct buffer *out)
{
	const size_t room = screen_left(screen);
	struct buffer text = {0};
	json_t *point = report_point_json(sheet->report, sheet->report->best);
	const json_t *evidence = column_value(point, "verdict.evidence");
	sheet->medium.out = &text;
	summary_stages(&sheet->medium, point);
	buffer_text(&text, "\n");
	const size_t stages = text.size;
	for (size_t i = 0; i < json_array_size(evidence); i++) {
		struct buffer line = {0};
		sheet->medium.out = &line;
		medium_fact_text(&sheet->medium, INK_DIM, i ? "" : "evidence",
			json_string_value(json_array_get(evidence, i)));
		if (screen_lines_of(&text) + screen_lines_of(&line) < room)
			buffer_add(&text, line.data, line.size);
		text.failed = text.failed || line.failed;
		buffer_release(&line);
	}
	json_decref(point);
	if (text.size > stages)
		buffer_text(&text, "\n");
	if (screen_lines_of(&text) <= room)
		buffer_add(out, text.data, text.size);
	out->failed = out->failed || text.failed;
	buffer_release(&text);
}

static void text_put_screen(
	const struct report *report, const struct style *style, struct buffer *out)
{
	struct screen screen = {0};
	struct sheet_of_report sheet = sheet_of(report, false, medium_terminal(style, out));
	struct buffer title = {0};
	/* How its time came about, where that is more than a line, is in the whole of it. */
	const char *name = report->record->name;
	const char *step = report->record->step.description;
	const char *ends = strstr(step, ": ");
	buffer_format(&title, "step: %s", step);
	if (ends && style_columns(name) + 2 + style_columns(title.data ? title.data : "") >
			    style->width)
		title.size = (size_t)(ends - step) + sizeof "step: " - 1;
	if (title.data)
		title.data[title.size] = '\0';
	sheet.medium.out = screen_add(&screen, 0);
	medium_title(&sheet.medium, name, title.data ? title.data : "");
	buffer_release(&title);
	sheet.medium.out = screen_add(&screen, 0);
	text_put_conditions(&sheet);
	sheet.medium.out = screen_add(&screen, 5);
	text_put_interrupted(&sheet);
	sheet.medium.out = screen_add(&screen, 2);
	text_put_alongside(&sheet);
	buffer_text(screen_add(&screen, 0), "\n");
	struct buffer *points = screen_add(&screen, 0);
	for (size_t i = 0; i < sizeof answer / sizeof answer[0]; i++) {
		/* Load of the point that the verdict is about stays. */
		const bool loaded =
			answer[i].put == text_put_load && sheet.best && sheet.best->contaminated[0];
		sheet.medium.out = screen_add(&screen, loaded ? 2 : answer[i].keep);
		if (sheet.best || !answer[i].best)
			answer[i].put(&sheet);
	}
	if (sheet.swept || !sheet.best)
		screen_put_points(&sheet, &screen, points);
	else
		screen_put_stages(&sheet, &screen, points);
	screen_print(&screen, out);
}

void report_terminal(const struct report *report, const struct style *style,
	enum report_detail detail, struct buffer *out)
{
	struct sheet_of_report sheet =
		sheet_of(report, detail == REPORT_EVERY_POINT, medium_terminal(style, out));
	if (detail == REPORT_SCREEN) {
		text_put_screen(report, style, out);
		return;
	}
	text_put_head(&sheet);
	text_put_details(&sheet, detail == REPORT_EVERY_POINT);
	text_put_limits(&sheet);
	text_put_rest(&sheet);
	text_put_points(&sheet);
	text_put_answer(&sheet);
}

void report_measured(const struct report *report, const struct style *style, struct buffer *out)
{
	const struct point_summary *p = report->points[0];
	struct sheet_of_report sheet = {
		.report = report, .best = p, .medium = medium_terminal(style, out)};
	struct buffer text = {0};
	text_put_head(&sheet);
	if (p) {
		text_add_rate(report, 0, &text);
		if (isfinite(p->ci95.low) && p->repeat_count > 1)
			buffer_format(&text, " (95 %% CI %s to %s)", UNITS_PLAIN(p->ci95.low, 4),
				UNITS_PLAIN(p->ci95.high, 4));
		medium_fact(&sheet.medium, INK_BOLD, "measured", &text);
		text_put_stages(&sheet, 0);
	}
	if (p && report->diagnoses && report->diagnoses[0]) {
		json_t *parts = diagnosis_parts_json(report->diagnoses[0]);
		diagnosis_put_memory(&sheet.medium, column_value(parts, "memory"));
		json_decref(parts);
	}
	text_put_rest(&sheet);
	text_put_load(&sheet);
	text_put_checks(&sheet);
	text_put_left_out(&sheet);
	text_put_bad(&sheet);
	medium_fact_text(&sheet.medium, INK_DIM, "results", report->record->folder);
	medium_end(&sheet.medium);
}

int export_markdown(const struct report *report, struct buffer *out, struct error *err)
{
	(void)err;
	struct sheet_of_report sheet = sheet_of(report, false, medium_markdown(out));
	text_put_head(&sheet);
	text_put_answer(&sheet);
	text_put_details(&sheet, false);
	text_put_points(&sheet);
	text_put_limits(&sheet);
	text_put_rest(&sheet);
	medium_end(&sheet.medium);
	return 0;
}
