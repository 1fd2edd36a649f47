/* The class's page: the count, a map of students and labs, where the labs are hard, predictions from lab to lab, and the
 * tables that say the same. */
#include "harness/report/class_page.h"

#include "harness/base/array.h"
#include "harness/report/columns.h"
#include "harness/report/html/chart.h"
#include "harness/report/html/palette.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	CLASS_STUDENTS_MOST = 120, /* rows of the map, which is to be looked at */
	CLASS_ROW_PIXELS = 22,
	CLASS_NAME_BYTES = 160,
	CLASS_TEXT_BYTES = 240,
	CLASS_STARTED_LEAST = 3, /* students, for a lab to be called hard */
};

/* --- what the document says --------------------------------------------------------------------- */

/* Of an edited file, as the document says it. */
#define CLASS_UNVERIFIED "unverified"

/* Predicted and given up are states of their own in the files; a class asks who is through. */
static const char *class_state(const json_t *lab)
{
	const char *state = column_text(lab, "state");
	if (strcmp(state, "passed") == 0)
		return "passed";
	if (strcmp(state, CLASS_UNVERIFIED) == 0)
		return CLASS_UNVERIFIED;
	return strcmp(state, "given-up") == 0 ? "given up" : "at work";
}

/* Whether the file is as the program wrote it; nothing is known where its student's key is not there. */
static const char *class_authentic(const json_t *lab)
{
	const json_t *is = json_object_get(lab, "authentic");
	return json_is_true(is) ? "yes" : json_is_false(is) ? "no" : "unknown";
}

/* Sums over a student's labs, or over the same lab of all students. */
struct class_sum {
	size_t labs, passed, factors, not_authentic;
	double points, minutes, measurements, hints, checks, hits;
	double scored;            /* predictions whose figure was measured since */
	double log_factor;        /* of each lab */
	double confidence, brier; /* times what was scored */
	double told, brier_told;  /* scored predictions that have them */
};

static double class_known(const json_t *lab, const char *field)
{
	const double value = column_number(lab, field);
	return isfinite(value) ? value : 0;
}

static void class_add(struct class_sum *sum, const json_t *lab)
{
	const double scored = class_known(lab, "scored");
	const double factor = column_number(lab, "factor");
	sum->labs++;
	sum->passed += strcmp(class_state(lab), "passed") == 0;
	sum->not_authentic += json_is_false(json_object_get(lab, "authentic"));
	sum->points += class_known(lab, "points");
	sum->minutes += class_known(lab, "minutes");
	sum->measurements += class_known(lab, "measurements");
	sum->hints += class_known(lab, "hints");
	sum->checks += class_known(lab, "checks");
	sum->scored += scored;
	sum->hits += class_known(lab, "hits");
	if (factor > 0) {
		sum->log_factor += log(factor);
		sum->factors++;
	}
	if (isfinite(column_number(lab, "confidence"))) {
		sum->confidence += scored * column_number(lab, "confidence");
		sum->told += scored;
	}
	if (isfinite(column_number(lab, "brier"))) {
		sum->brier += scored * column_number(lab, "brier");
		sum->brier_told += scored;
	}
}

static double class_factor(const struct class_sum *sum)
{
	return sum->factors > 0 ? exp(sum->log_factor / (double)sum->factors) : (double)NAN;
}

static double class_ratio(double part, double whole)
{
	return whole > 0 ? part / whole : (double)NAN;
}

static struct class_sum class_sum_of(const json_t *labs)
{
	struct class_sum sum = {0};
	size_t i;
	const json_t *lab;
	json_array_foreach(labs, i, lab)
	{
		class_add(&sum, lab);
	}
	return sum;
}

/* Of one lab, over the class. */
static struct class_sum class_lab_sum(const json_t *students, double number)
{
	struct class_sum sum = {0};
	size_t i;
	size_t k;
	const json_t *student;
	const json_t *lab;
	json_array_foreach(students, i, student)
	{
		json_array_foreach(json_object_get(student, "labs"), k, lab)
		{
			if (column_number(lab, "lab") == number)
				class_add(&sum, lab);
		}
	}
	return sum;
}

/* --- students by name ---------------------------------------------------------------------------- */

struct class_seat {
	const json_t *student;
	char name[CLASS_NAME_BYTES]; /* two of one name are told apart by a number */
};

struct class_room {
	struct class_seat *seats; /* by name */
	size_t count;
};

static int class_order_names(const void *left, const void *right)
{
	const struct class_seat *a = left;
	const struct class_seat *b = right;
	const int by_name =
		strcmp(column_text(a->student, "student"), column_text(b->student, "student"));
	return by_name ? by_name
		       : strcmp(column_text(a->student, "folder"),
				 column_text(b->student, "folder"));
}

static int class_seat_all(const json_t *students, struct class_room *room)
{
	size_t i;
	const json_t *student;
	size_t same = 1;
	room->seats = calloc(json_array_size(students) + 1, sizeof *room->seats);
	if (!room->seats)
		return -ENOMEM;
	json_array_foreach(students, i, student)
	{
		room->seats[room->count++].student = student;
	}
	qsort(room->seats, room->count, sizeof *room->seats, class_order_names);
	for (size_t k = 0; k < room->count; k++) {
		const char *name = column_text(room->seats[k].student, "student");
		const bool again = k > 0 && strcmp(name, column_text(room->seats[k - 1].student,
								 "student")) == 0;
		same = again ? same + 1 : 1;
		(void)snprintf(room->seats[k].name, sizeof room->seats[k].name, "%.120s", name);
		if (again)
			(void)snprintf(room->seats[k].name, sizeof room->seats[k].name,
				"%.120s (%zu)", name, same);
	}
	return 0;
}

/* --- the map ------------------------------------------------------------------------------------- */

static const struct page_column class_map_columns[] = {{"student", "student", PAGE_TEXT},
	{"lab", "lab", PAGE_COUNT}, {"title", "title", PAGE_TEXT}, {"state", "state", PAGE_TEXT},
	{"points", "points", PAGE_COUNT}, {"minutes", "minutes", PAGE_REAL},
	{"attempt", "attempt", PAGE_COUNT}, {"measurements", "measurements", PAGE_COUNT},
	{"hints", "hints", PAGE_COUNT}, {"checks", "checks", PAGE_COUNT},
	{"factor", "predictions off by", PAGE_FRACTION},
	{"authentic", "file untouched", PAGE_TEXT}};

static json_t *class_map_row(const struct class_seat *seat, const json_t *lab)
{
	static const char *const copied[] = {
		"minutes", "attempt", "measurements", "hints", "checks", "factor"};
	char label[16] = "";
	const double points = column_number(lab, "points");
	struct part row = part_open();
	if (isfinite(points))
		(void)snprintf(label, sizeof label, "%.0f", points);
	part_put(&row, "student", parts_text(seat->name));
	part_put(&row, "lab", parts_number(column_number(lab, "lab")));
	part_put(&row, "title", parts_text(column_text(lab, "title")));
	part_put(&row, "state", json_string(class_state(lab)));
	part_put(&row, "points", parts_number(points));
	part_put(&row, "label", json_string(label));
	for (size_t i = 0; i < COUNT(copied); i++)
		part_put(&row, copied[i], parts_number(column_number(lab, copied[i])));
	part_put(&row, "authentic", json_string(class_authentic(lab)));
	return part_close(&row);
}

static const struct chart_ink class_states[] = {{"passed", PALETTE_GOOD, NULL},
	{"at work", PALETTE_STARVED, NULL}, {"given up", PALETTE_BLOCKED, NULL},
	{CLASS_UNVERIFIED, PALETTE_OTHER, NULL}};

static int class_add_map(
	struct page *page, const struct class_room *room, size_t labs, const struct class_sum *all)
{
	struct chart chart = {.id = "students",
		.title = "Students and labs",
		.table = {.columns = class_map_columns,
			.column_count = COUNT(class_map_columns),
			.rows = json_array()}};
	const size_t shown = room->count < CLASS_STUDENTS_MOST ? room->count : CLASS_STUDENTS_MOST;
	for (size_t i = 0; i < shown; i++) {
		size_t k;
		const json_t *lab;
		json_array_foreach(json_object_get(room->seats[i].student, "labs"), k, lab)
		{
			parts_append(&chart.table.rows, class_map_row(&room->seats[i], lab));
		}
	}
	buffer_format(
		&chart.finding, "Passed: %zu of %zu that were started", all->passed, all->labs);
	if (shown < room->count)
		buffer_format(&chart.text, "The first %zu of %zu students are drawn.", shown,
			room->count);
	chart_open(&chart, "lab_class");
	chart_param(&chart, "columns", json_integer((json_int_t)labs));
	chart_param(&chart, "height",
		json_integer(CLASS_ROW_PIXELS * (json_int_t)(shown > 0 ? shown : 1)));
	chart_legend(&chart, "state", NULL, class_states, COUNT(class_states));
	const int code = chart_done(&chart);
	if (!code)
		page_chart(page, &chart);
	chart_release(&chart);
	return code;
}

/* --- which lab is hard --------------------------------------------------------------------------- */

static const struct page_column class_lab_columns[] = {{"lab", "lab", PAGE_COUNT},
	{"title", "title", PAGE_TEXT}, {"started", "started", PAGE_COUNT},
	{"passed", "passed", PAGE_COUNT}, {"at_work", "at work", PAGE_COUNT},
	{"given_up", "given up", PAGE_COUNT}, {"minutes", "minutes to pass (median)", PAGE_REAL},
	{"hints", "hints (mean)", PAGE_FRACTION}, {"checks", "checks (mean)", PAGE_FRACTION}};

static double class_passed_share(const json_t *lab)
{
	return class_ratio(class_known(lab, "passed"), column_number(lab, "started"));
}

/* The lab of which the smallest share is passed, the slowest among equals; NULL: too few students started any. */
static const json_t *class_hardest(const json_t *labs)
{
	size_t i;
	const json_t *lab;
	const json_t *hardest = NULL;
	json_array_foreach(labs, i, lab)
	{
		if (!(column_number(lab, "started") >= CLASS_STARTED_LEAST))
			continue;
		const double least = hardest ? class_passed_share(hardest) : (double)INFINITY;
		const double share = class_passed_share(lab);
		if (share < least || (share == least && class_known(lab, "minutes") >
								class_known(hardest, "minutes")))
			hardest = lab;
	}
	return hardest;
}

static void class_hardest_words(const json_t *labs, struct buffer *out)
{
	const json_t *hardest = class_hardest(labs);
	if (!hardest) {
		buffer_format(out, "No lab is called hard that fewer than %d students started",
			CLASS_STARTED_LEAST);
		return;
	}
	buffer_format(out, "Hardest: lab %.0f, %s: %.0f of %.0f passed",
		column_number(hardest, "lab"), column_text(hardest, "title"),
		class_known(hardest, "passed"), column_number(hardest, "started"));
	if (isfinite(column_number(hardest, "minutes")))
		buffer_format(out, ", %.0f minutes", column_number(hardest, "minutes"));
}

static json_t *class_lab_row(const json_t *lab)
{
	static const char *const copied[] = {
		"lab", "started", "passed", "given_up", "minutes", "hints", "checks"};
	const double at_work = class_known(lab, "started") - class_known(lab, "passed") -
			       class_known(lab, "given_up");
	struct part row = part_open();
	part_put(&row, "title", parts_text(column_text(lab, "title")));
	for (size_t i = 0; i < COUNT(copied); i++)
		part_put(&row, copied[i], parts_number(column_number(lab, copied[i])));
	part_put(&row, "at_work", parts_number(fmax(0, at_work)));
	return part_close(&row);
}

/* Of those who passed: nobody may have yet. */
static bool class_has_minutes(const json_t *labs)
{
	size_t i;
	const json_t *lab;
	json_array_foreach(labs, i, lab)
	{
		if (isfinite(column_number(lab, "minutes")))
			return true;
	}
	return false;
}

static int class_add_hard(struct page *page, const json_t *labs)
{
	struct chart chart = {.id = "labs",
		.title = "Which lab is hard",
		.table = {.columns = class_lab_columns,
			.column_count = COUNT(class_lab_columns),
			.rows = json_array()}};
	size_t i;
	const json_t *lab;
	json_array_foreach(labs, i, lab)
	{
		parts_append(&chart.table.rows, class_lab_row(lab));
	}
	class_hardest_words(labs, &chart.finding);
	chart_open(&chart, "lab_hard");
	if (!class_has_minutes(labs))
		chart_drop(&chart, "minutes");
	const int code = chart_done(&chart);
	if (!code)
		page_chart(page, &chart);
	chart_release(&chart);
	return code;
}

/* --- predictions --------------------------------------------------------------------------------- */

static const struct page_column class_prediction_columns[] = {{"lab", "lab", PAGE_COUNT},
	{"title", "title", PAGE_TEXT}, {"factor", "off by (class)", PAGE_FRACTION},
	{"scored", "predictions scored", PAGE_COUNT}, {"hits", "right", PAGE_COUNT},
	{"hit_share", "right", PAGE_SHARE}, {"confidence", "how sure", PAGE_SHARE},
	{"brier", "Brier score", PAGE_FRACTION}};

static json_t *class_prediction_row(const json_t *lab, const struct class_sum *sum)
{
	struct part row = part_open();
	part_put(&row, "lab", parts_number(column_number(lab, "lab")));
	part_put(&row, "title", parts_text(column_text(lab, "title")));
	part_put(&row, "factor", parts_number(class_factor(sum)));
	part_put(&row, "scored", parts_number(sum->scored));
	part_put(&row, "hits", parts_number(sum->hits));
	part_put(&row, "hit_share", parts_number(class_ratio(sum->hits, sum->scored)));
	part_put(&row, "confidence", parts_number(class_ratio(sum->confidence, sum->told)));
	part_put(&row, "brier", parts_number(class_ratio(sum->brier, sum->brier_told)));
	return part_close(&row);
}

/* A line for each student: where more than a hundred overlap, none can be seen. */
static json_t *class_student_lines(const struct class_room *room)
{
	json_t *lines = json_array();
	for (size_t i = 0; i < room->count && i < CLASS_STUDENTS_MOST; i++) {
		size_t k;
		const json_t *lab;
		json_array_foreach(json_object_get(room->seats[i].student, "labs"), k, lab)
		{
			if (column_number(lab, "factor") > 0)
				parts_append(&lines,
					json_pack("{s:o, s:o, s:o}", "student",
						parts_text(room->seats[i].name), "lab",
						parts_number(column_number(lab, "lab")), "factor",
						parts_number(column_number(lab, "factor"))));
		}
	}
	return lines;
}

/* The class's factor in the first and in the second half of the labs that have one. */
static bool class_halves(const json_t *rows, double *first, double *second)
{
	double logs[2] = {0};
	size_t counts[2] = {0};
	size_t count = 0;
	size_t at = 0;
	size_t i;
	const json_t *row;
	json_array_foreach(rows, i, row)
	{
		count += column_number(row, "factor") > 0;
	}
	json_array_foreach(rows, i, row)
	{
		if (!(column_number(row, "factor") > 0))
			continue;
		const size_t half = at++ >= (count + 1) / 2;
		logs[half] += log(column_number(row, "factor"));
		counts[half]++;
	}
	if (!counts[0] || !counts[1])
		return false;
	*first = exp(logs[0] / (double)counts[0]);
	*second = exp(logs[1] / (double)counts[1]);
	return true;
}

static void class_prediction_words(const json_t *rows, struct buffer *out)
{
	double first;
	double second;
	if (class_halves(rows, &first, &second))
		buffer_format(out,
			"Predicted figures were off by a factor of %.2f in the first half of the labs, of %.2f in the second",
			first, second);
	else
		buffer_text(out, "How far predicted figures were off");
}

static json_t *class_prediction_rows(const json_t *document)
{
	json_t *rows = json_array();
	size_t i;
	const json_t *lab;
	json_array_foreach(json_object_get(document, "labs"), i, lab)
	{
		const struct class_sum sum = class_lab_sum(
			json_object_get(document, "students"), column_number(lab, "lab"));
		if (sum.scored > 0)
			parts_append(&rows, class_prediction_row(lab, &sum));
	}
	return rows;
}

/* Confidence may have been asked of nobody. */
static void class_name_shares(struct chart *chart)
{
	static const char *const fields[] = {"confidence", "hit_share"};
	static const struct chart_ink inks[] = {{"how sure they were", PALETTE_STARVED, NULL},
		{"how often right", PALETTE_GOOD, NULL}};
	static const int dashes[] = {3, 0};
	json_t *names = json_array();
	json_t *colours = json_array();
	json_t *lines = json_array();
	size_t at;
	const json_t *row;
	for (size_t i = 0; i < COUNT(fields); i++) {
		bool any = false;
		json_array_foreach(chart->table.rows, at, row)
		{
			any = any || json_is_number(json_object_get(row, fields[i]));
		}
		if (!any)
			continue;
		parts_append(&names, json_string(inks[i].name));
		parts_append(&colours, json_string(inks[i].colour));
		parts_append(&lines, json_pack("[ii]", dashes[i] ? 5 : 1, dashes[i]));
	}
	chart_param(chart, "whats", names);
	chart_param(chart, "what_colours", colours);
	chart_param(chart, "what_dashes", lines);
}

static int class_add_predictions(
	struct page *page, const json_t *document, const struct class_room *room)
{
	struct chart chart = {.id = "predictions",
		.title = "Predictions",
		.table = {.columns = class_prediction_columns,
			.column_count = COUNT(class_prediction_columns),
			.rows = class_prediction_rows(document)}};
	int code;
	class_prediction_words(chart.table.rows, &chart.finding);
	if (json_array_size(chart.table.rows) == 0) {
		code = chart_why_not(&chart, "No prediction was measured yet.");
	} else {
		buffer_text(&chart.text,
			"Labs differ, so a smaller factor in a later one is no proof of learning; a student's own line says more.");
		chart_open(&chart, "lab_predictions");
		chart_data(&chart, "students", class_student_lines(room));
		class_name_shares(&chart);
		code = chart_done(&chart);
	}
	if (!code)
		page_chart(page, &chart);
	chart_release(&chart);
	return code;
}

/* --- the table of students, and what is to be known ---------------------------------------------- */

static const struct page_column class_student_columns[] = {{"student", "student", PAGE_TEXT},
	{"passed", "passed", PAGE_COUNT}, {"started", "started", PAGE_COUNT},
	{"points", "points", PAGE_COUNT}, {"minutes", "minutes", PAGE_COUNT},
	{"measurements", "measurements", PAGE_COUNT}, {"hints", "hints", PAGE_COUNT},
	{"checks", "checks", PAGE_COUNT}, {"scored", "predictions scored", PAGE_COUNT},
	{"hit_share", "right", PAGE_SHARE}, {"confidence", "how sure", PAGE_SHARE},
	{"factor", "off by", PAGE_FRACTION}, {"brier", "Brier score", PAGE_FRACTION},
	{"changed", "files changed", PAGE_COUNT}};

static json_t *class_student_row(const struct class_seat *seat)
{
	const struct class_sum sum = class_sum_of(json_object_get(seat->student, "labs"));
	struct part row = part_open();
	part_put(&row, "student", parts_text(seat->name));
	part_put(&row, "passed", parts_number((double)sum.passed));
	part_put(&row, "started", parts_number((double)sum.labs));
	part_put(&row, "points", parts_number(sum.points));
	part_put(&row, "minutes", parts_number(round(sum.minutes)));
	part_put(&row, "measurements", parts_number(sum.measurements));
	part_put(&row, "hints", parts_number(sum.hints));
	part_put(&row, "checks", parts_number(sum.checks));
	part_put(&row, "scored", parts_number(sum.scored));
	part_put(&row, "hit_share", parts_number(class_ratio(sum.hits, sum.scored)));
	part_put(&row, "confidence", parts_number(class_ratio(sum.confidence, sum.told)));
	part_put(&row, "factor", parts_number(class_factor(&sum)));
	part_put(&row, "brier", parts_number(class_ratio(sum.brier, sum.brier_told)));
	part_put(&row, "changed", parts_number((double)sum.not_authentic));
	return part_close(&row);
}

static int class_add_students(struct page *page, const struct class_room *room)
{
	struct page_table table = {.columns = class_student_columns,
		.column_count = COUNT(class_student_columns),
		.rows = json_array()};
	for (size_t i = 0; i < room->count; i++)
		parts_append(&table.rows, class_student_row(&room->seats[i]));
	if (!table.rows)
		return -ENOMEM;
	page_heading(page, 2, "table", "Each student");
	page_table(page, &table,
		"By name. Off by: geometric mean over the labs. Brier score: 0 is sure and right, 0.25 is a guess, 1 is sure and wrong.");
	json_decref(table.rows);
	return 0;
}

static void class_add_figures(
	struct page *page, const struct class_room *room, const struct class_sum *all)
{
	char number[PAGE_NUMBER_BYTES];
	page_figures_begin(page);
	page_figure(page, page_number(PAGE_COUNT, (double)room->count, number),
		room->count == 1 ? "student" : "students", "");
	page_figure(page, page_number(PAGE_COUNT, (double)all->passed, number), "labs passed",
		"of those that were started");
	if (all->labs > 0)
		page_figure(page,
			page_number(PAGE_FRACTION, all->hints / (double)all->labs, number),
			"hints a lab", "mean of all that were started");
	if (all->scored > 0)
		page_figure(page, page_number(PAGE_SHARE, all->hits / all->scored, number),
			"predictions right",
			"inside the interval that was predicted, or the right word");
	page_figures_end(page);
}

static void class_add_notices(
	struct page *page, const json_t *document, const struct class_sum *all)
{
	const json_t *skipped = json_object_get(document, "skipped");
	size_t i;
	const json_t *folder;
	char text[CLASS_TEXT_BYTES];
	if (all->not_authentic > 0) {
		(void)snprintf(text, sizeof text,
			"%zu file%s not what the program wrote for that student: changed by hand, copied or damaged. The map's tooltips and the last column of the table say whose.",
			all->not_authentic, all->not_authentic == 1 ? " is" : "s are");
		page_notice(page, "Changed files", text);
	}
	if (json_array_size(skipped) == 0)
		return;
	page_fold_begin(page, "Folders that were left out");
	page_terms_begin(page);
	json_array_foreach(skipped, i, folder)
	{
		page_term(page, column_text(folder, "folder"), column_text(folder, "why"));
	}
	page_terms_end(page);
	page_fold_end(page);
}

static void class_lead(
	const json_t *document, size_t students, const struct class_sum *all, struct buffer *out)
{
	buffer_format(out, "%zu student%s passed %zu of the %zu lab%s that they started. ",
		students, students == 1 ? "" : "s", all->passed, all->labs,
		all->labs == 1 ? "" : "s");
	if (class_hardest(json_object_get(document, "labs"))) {
		class_hardest_words(json_object_get(document, "labs"), out);
		buffer_text(out, ".");
	}
}

/* --- the page ------------------------------------------------------------------------------------ */

static struct class_sum class_all(const json_t *document)
{
	struct class_sum all = {0};
	size_t i;
	size_t k;
	const json_t *student;
	const json_t *lab;
	json_array_foreach(json_object_get(document, "students"), i, student)
	{
		json_array_foreach(json_object_get(student, "labs"), k, lab)
		{
			class_add(&all, lab);
		}
	}
	return all;
}

static int class_fill(struct page *page, const json_t *document, const struct class_room *room,
	const struct class_sum *all)
{
	const json_t *labs = json_object_get(document, "labs");
	int code = 0;
	class_add_figures(page, room, all);
	class_add_notices(page, document, all);
	if (all->labs == 0)
		return 0;
	code = class_add_map(page, room, json_array_size(labs), all);
	if (!code)
		code = class_add_hard(page, labs);
	if (!code)
		code = class_add_predictions(page, document, room);
	page_section_end(page);
	return code ? code : class_add_students(page, room);
}

int class_page(const json_t *document, struct buffer *out, struct error *err)
{
	const struct class_sum all = class_all(document);
	struct class_room room = {0};
	struct buffer lead = {0};
	int code = class_seat_all(json_object_get(document, "students"), &room);
	class_lead(document, room.count, &all, &lead);
	struct page *page =
		code || lead.failed ? NULL : page_begin("mlbench lab scores", lead.data);
	if (!page)
		code = -ENOMEM;
	if (!code)
		code = class_fill(page, document, &room, &all);
	buffer_release(&lead);
	free(room.seats);
	if (!code)
		return page_end(page, out, err);
	page_release(page);
	return error_set(err, code, "out of memory for the page");
}
