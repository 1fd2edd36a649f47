/* An acceptance result for people: what failed, could not be judged, is warned about and was skipped, the passes, and, as the
 * last lines of a terminal and the first of Markdown, the answer: the verdict, what to do, and how to repeat it.  A terminal
 * shows a screen of it unless it is asked for all. */
#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/report/accept_document.h"
#include "harness/report/medium.h"
#include "harness/report/screen.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Below what is on the screen stand the result's folder and the prompt; --verbose and Markdown have everything. */
enum {
	ACCEPT_LINES = SCREEN_LINES - 1,
	HEADLINE_LINES = 5,
	DO_LINES = 4,
	REPEAT_LINES = 2,
	PASS_LINES = 2, /* at least, of passes beside troubles */
	TOLD_FULLY_MAX = 2,
	PLACES_MAX = 8,
	PASSES_MAX = 10,
	PASSES_NAMED_MAX = 20
};

struct accept_sheet {
	const json_t *document;
	struct medium medium;
	bool all;
	struct screen screen;
};

/* --- blocks ------------------------------------------------------------------------------------- */

/* What is written from now on goes into the block; returns where it went before. */
static struct buffer *block_begin(struct accept_sheet *sheet, struct buffer *block)
{
	struct buffer *before = sheet->medium.out;
	sheet->medium.out = block;
	return before;
}

/* Puts the block out, so many lines of it at most. */
static void block_end(
	struct accept_sheet *sheet, struct buffer *before, struct buffer *block, size_t most)
{
	const char *text = block->data ? block->data : "";
	size_t lines = 0;
	size_t size = 0;
	while (size < block->size && lines < most)
		lines += text[size++] == '\n';
	if (size > 0)
		buffer_add(before, text, size);
	before->failed = before->failed || block->failed;
	sheet->medium.out = before;
	buffer_release(block);
}

static size_t block_most(const struct accept_sheet *sheet, size_t lines)
{
	return sheet->all ? SIZE_MAX : lines;
}

static void accept_text_fact(
	struct accept_sheet *sheet, enum ink ink, const char *term, const char *text)
{
	struct buffer plain = {0};
	utf8_add_plain(&plain, text, "?");
	medium_fact(&sheet->medium, ink, term, &plain);
}

static void accept_text_head(struct accept_sheet *sheet, const json_t *rows)
{
	static const enum ink inks[] = {[VERDICT_PASS] = INK_GOOD,
		[VERDICT_SKIP] = INK_WARN,
		[VERDICT_WARN] = INK_WARN,
		[VERDICT_ERROR] = INK_BAD,
		[VERDICT_FAIL] = INK_BAD};
	const struct style *style = sheet->medium.style;
	const char *name = accept_verdict_name(accept_verdict_in(sheet->document));
	struct buffer line = {0};
	accept_headline(sheet->document, rows, &line);
	if (line.failed) {
		sheet->medium.out->failed = true;
	} else if (style) {
		buffer_format(sheet->medium.out, "%s%s%s ",
			style_ink(style, inks[accept_verdict_in(sheet->document)]), name,
			style_end(style));
		style_wrap(style, line.data + strlen(name) + 1, 0, (int)strlen(name) + 1,
			sheet->medium.out);
	} else {
		medium_title(&sheet->medium, line.data, "");
	}
	buffer_release(&line);
}

static void accept_text_run(struct accept_sheet *sheet)
{
	const json_t *document = sheet->document;
	const json_t *baseline = column_value(document, "judged_by.baseline");
	char took[UNITS_BYTES];
	struct buffer text = {0};
	buffer_format(&text, "%s, tier %s, started %s, took %s, mlbench %s",
		column_text(document, "judged_by.plan.name"), column_text(document, "tier"),
		column_text(document, "started"),
		units_format_duration(column_number(document, "seconds") * 1e9, took),
		column_text(document, "program"));
	if (json_is_object(baseline))
		buffer_format(&text, "; baseline of %.0f nodes, %.0f repetitions",
			column_number(baseline, "nodes"), column_number(baseline, "repetitions"));
	accept_text_fact(sheet, INK_DIM, "plan", text.data ? text.data : "");
	buffer_release(&text);
	if (!json_is_true(json_object_get(document, "complete")))
		accept_text_fact(sheet, INK_WARN, "status",
			"not complete: some checks did not run to their end");
}

/* --- what does not pass ----------------------------------------------------------------------- */

/* "core 3, core 5 and 2 more places", without the one that the sentence is about. */
static void accept_text_places(struct accept_sheet *sheet, const json_t *row)
{
	const json_t *places = json_object_get(row, "places");
	const char *told = column_text(row, "place");
	const size_t others = json_array_size(places) > 0 ? json_array_size(places) - 1 : 0;
	struct buffer text = {0};
	size_t written = 0;
	for (size_t i = 0; i <= others && others > 0; i++) {
		const char *place = json_string_value(json_array_get(places, i));
		if (!place || strcmp(place, told) == 0 || (written == PLACES_MAX && !sheet->all))
			continue;
		buffer_format(&text, "%s%s", written++ ? ", " : "", place);
	}
	if (written < others)
		buffer_format(&text, " and %zu more", others - written);
	accept_text_fact(sheet, INK_DIM, "also", text.data ? text.data : "");
	buffer_release(&text);
}

static void accept_text_do(struct accept_sheet *sheet, const json_t *row, bool headed)
{
	const char *words = headed ? "" : accept_action_words(column_text(row, "action"));
	const char *remedy = column_text(row, "remedy");
	struct buffer text = {0};
	struct buffer block = {0};
	struct buffer *before = block_begin(sheet, &block);
	buffer_format(&text, "%s%s%s", words, *words && *remedy ? "; " : "", remedy);
	accept_text_fact(sheet, INK_BOLD, "do", text.data ? text.data : "");
	buffer_release(&text);
	block_end(sheet, before, &block, block_most(sheet, DO_LINES));
	before = block_begin(sheet, &block);
	accept_text_fact(sheet, INK_DIM, "repeat", column_text(row, "repeat"));
	block_end(sheet, before, &block, block_most(sheet, REPEAT_LINES));
}

/* answered: the answer says what to do. */
static void accept_text_row(
	struct accept_sheet *sheet, const json_t *row, bool fully, bool answered)
{
	static const enum ink inks[] = {[VERDICT_PASS] = INK_GOOD,
		[VERDICT_SKIP] = INK_DIM,
		[VERDICT_WARN] = INK_WARN,
		[VERDICT_ERROR] = INK_BAD,
		[VERDICT_FAIL] = INK_BAD};
	const enum accept_verdict verdict = accept_verdict_in(row);
	struct buffer text = {0};
	if (fully)
		buffer_format(
			&text, "%s: %s", column_text(row, "check"), column_text(row, "sentence"));
	else
		accept_add_brief(&text, row);
	accept_text_fact(
		sheet, inks[verdict], accept_verdict_name(verdict), text.data ? text.data : "");
	buffer_release(&text);
	if (!fully)
		return;
	accept_text_places(sheet, row);
	if (!answered)
		accept_text_do(sheet, row, false);
	accept_text_fact(sheet, INK_DIM, "more", column_text(row, "runbook"));
}

/* Whether a row was told: fully, else in brief, if so many lines may be taken. */
static bool accept_text_try(
	struct accept_sheet *sheet, const json_t *row, bool fully, bool answered, size_t most)
{
	for (int brief = fully ? 0 : 1; brief < 2; brief++) {
		struct buffer block = {0};
		struct buffer *before = block_begin(sheet, &block);
		accept_text_row(sheet, row, !brief, answered);
		if (screen_lines_of(&block) <= most) {
			block_end(sheet, before, &block, SIZE_MAX);
			return true;
		}
		sheet->medium.out = before;
		buffer_release(&block);
	}
	return false;
}

/* keep: lines that are for what passes. */
static void accept_text_troubles(struct accept_sheet *sheet, const json_t *rows, size_t keep)
{
	size_t i;
	const json_t *row;
	size_t left_out = 0;
	json_array_foreach(rows, i, row)
	{
		const enum accept_verdict verdict = accept_verdict_in(row);
		if (verdict == VERDICT_PASS)
			continue;
		if (i == 0)
			medium_space(&sheet->medium);
		/* A line is for what is left out. */
		const size_t left = screen_left(&sheet->screen);
		const size_t most = left > keep + 1 ? left - keep - 1 : 0;
		const bool fully = (i < TOLD_FULLY_MAX || sheet->all) && verdict != VERDICT_SKIP;
		left_out += left_out > 0 || !accept_text_try(sheet, row, fully,
						    i == 0 && sheet->medium.style, most);
	}
	if (left_out > 0) {
		struct buffer text = {0};
		buffer_format(&text, "and %zu more: --verbose shows all of them", left_out);
		medium_fact(&sheet->medium, INK_DIM, "", &text);
	}
}

/* --- what passes ------------------------------------------------------------------------------ */

/* Of a check that passes, the finding that is nearest to its limit. */
static const json_t *accept_text_nearest(const json_t *check)
{
	const json_t *nearest = NULL;
	double least = (double)INFINITY;
	size_t i;
	const json_t *finding;
	json_array_foreach(json_object_get(check, "findings"), i, finding)
	{
		const double margin = accept_margin(finding);
		if (!nearest || margin < least) {
			nearest = finding;
			least = isfinite(margin) ? margin : (double)INFINITY;
		}
	}
	return nearest;
}

enum pass_cell { PASS_CHECK, PASS_CRITERIA, PASS_FIGURE, PASS_MEASURED, PASS_LIMIT };
static const enum pass_cell pass_check = PASS_CHECK, pass_criteria = PASS_CRITERIA,
			    pass_figure = PASS_FIGURE, pass_measured = PASS_MEASURED,
			    pass_limit = PASS_LIMIT;

static void accept_text_pass_cell(
	const struct table_column *column, const json_t *check, struct buffer *out)
{
	const json_t *finding = accept_text_nearest(check);
	char value[ACCEPT_VALUE_BYTES];
	struct buffer text = {0};
	switch (*(const enum pass_cell *)column->context) {
	case PASS_CHECK:
		buffer_text(&text, column_text(check, "check"));
		break;
	case PASS_CRITERIA:
		buffer_format(&text, "%zu", json_array_size(json_object_get(check, "findings")));
		break;
	case PASS_FIGURE:
		accept_add_subject(&text, finding);
		break;
	case PASS_MEASURED:
		buffer_text(&text, accept_value(finding, "measured", value));
		break;
	case PASS_LIMIT:
		accept_add_limit(&text, finding);
		break;
	}
	utf8_add_plain(out, text.data ? text.data : "", "?");
	buffer_release(&text);
}

/* So many of them in a table. */
static void accept_text_passes(struct accept_sheet *sheet, size_t most)
{
	static const struct table_column columns[] = {
		{.head = "", .left = true, .path = "verdict", .ink = INK_GOOD},
		{.head = "check",
			.left = true,
			.text_of = accept_text_pass_cell,
			.context = &pass_check},
		{.head = "criteria",
			.text_of = accept_text_pass_cell,
			.context = &pass_criteria,
			.keep = 2},
		{.head = "nearest to its limit",
			.left = true,
			.text_of = accept_text_pass_cell,
			.context = &pass_figure},
		{.head = "measured", .text_of = accept_text_pass_cell, .context = &pass_measured},
		{.head = "asked",
			.left = true,
			.text_of = accept_text_pass_cell,
			.context = &pass_limit,
			.keep = 1},
	};
	json_t *passes = json_array();
	struct buffer names = {0};
	size_t named = 0;
	size_t left_out = 0;
	size_t i;
	json_t *check;
	int bad = !passes;
	json_array_foreach(json_object_get(sheet->document, "checks"), i, check)
	{
		if (accept_verdict_in(check) != VERDICT_PASS)
			continue;
		if (json_array_size(passes) < most || sheet->all)
			bad |= json_array_append(passes, check);
		else if (named++ < PASSES_NAMED_MAX)
			buffer_format(&names, "%s%s", names.size ? ", " : "",
				column_text(check, "check"));
		else
			left_out++;
	}
	if (left_out > 0)
		buffer_format(&names, " and %zu more", left_out);
	if (json_array_size(passes) > 0)
		medium_space(&sheet->medium);
	medium_table(&sheet->medium, columns, sizeof columns / sizeof *columns, passes, "passed");
	accept_text_fact(sheet, INK_GOOD, "PASS", names.data ? names.data : "");
	sheet->medium.out->failed = sheet->medium.out->failed || bad;
	buffer_release(&names);
	json_decref(passes);
}

/* As many of them in a table as there is room for. */
static void accept_text_fit_passes(struct accept_sheet *sheet)
{
	const size_t left = screen_left(&sheet->screen);
	for (size_t most = PASSES_MAX;; most--) {
		struct buffer block = {0};
		struct buffer *before = block_begin(sheet, &block);
		accept_text_passes(sheet, most);
		if (most == 0 || screen_lines_of(&block) <= left) {
			block_end(sheet, before, &block, left);
			return;
		}
		sheet->medium.out = before;
		buffer_release(&block);
	}
}

/* The verdict, and what to do about the worst finding. */
static void accept_text_answer(struct accept_sheet *sheet, const json_t *rows)
{
	const json_t *worst = json_array_get(rows, 0);
	const enum accept_verdict verdict = accept_verdict_in(worst);
	struct buffer block = {0};
	struct buffer *before = block_begin(sheet, &block);
	accept_text_head(sheet, rows);
	block_end(sheet, before, &block, block_most(sheet, HEADLINE_LINES));
	if (worst && verdict != VERDICT_PASS && verdict != VERDICT_SKIP)
		accept_text_do(sheet, worst, verdict == accept_verdict_in(sheet->document));
}

static size_t accept_passes(const json_t *document)
{
	return (size_t)column_number(
		json_object_get(document, "counts"), accept_verdict_name(VERDICT_PASS));
}

/* The answer is written first, to know what it leaves of the screen, and put out last. */
static void accept_text_screen(struct accept_sheet *sheet, const json_t *rows)
{
	struct buffer *const out = sheet->medium.out;
	struct buffer *const run = screen_add(&sheet->screen, 0);
	struct buffer *const checks = screen_add(&sheet->screen, 0);
	sheet->medium.out = screen_add(&sheet->screen, 0);
	medium_space(&sheet->medium);
	accept_text_answer(sheet, rows);
	sheet->medium.out = run;
	accept_text_run(sheet);
	sheet->medium.out = checks;
	accept_text_troubles(sheet, rows, accept_passes(sheet->document) > 0 ? PASS_LINES : 0);
	accept_text_fit_passes(sheet);
	sheet->medium.out = out;
	screen_print(&sheet->screen, out);
}

static int accept_text_write(
	const json_t *document, struct medium medium, bool all, struct error *err)
{
	struct accept_sheet sheet = {.document = document,
		.medium = medium,
		.all = all,
		.screen.lines = all ? SIZE_MAX : ACCEPT_LINES};
	json_t *rows = accept_rows(document);
	if (medium.style) {
		accept_text_screen(&sheet, rows);
	} else {
		accept_text_head(&sheet, rows);
		accept_text_run(&sheet);
		accept_text_troubles(&sheet, rows, 0);
		accept_text_passes(&sheet, SIZE_MAX);
	}
	medium_end(&sheet.medium);
	const bool failed = !rows || sheet.medium.out->failed;
	json_decref(rows);
	return failed ? error_set(err, -ENOMEM, "out of memory for the report") : 0;
}

int accept_write_terminal(const json_t *document, const struct accept_view *view,
	struct buffer *out, struct error *err)
{
	return accept_text_write(document, medium_terminal(&view->style, out), view->verbose, err);
}

int accept_write_markdown(const json_t *document, const struct accept_view *view,
	struct buffer *out, struct error *err)
{
	(void)view;
	return accept_text_write(document, medium_markdown(out), true, err);
}
