/* An acceptance result as a line, for what passes lines on: a node health check, Slurm's reason of a node, Nagios.  These
 * go through shells, logs and files of others' formats, so that a line has printable ASCII alone and nothing that quotes.
 *
 * Slurm: the reason is a text of `scontrol update`; sinfo shows the beginning of it.  NHC puts the name of its check in
 * front and hands the line on as the reason.  Nagios: https://nagios-plugins.org/doc/guidelines.html, output and
 * performance data: 'label'=value[unit];[warn];[crit], where a range that starts at minus infinity is "~:end". */
#include "harness/base/text.h"
#include "harness/report/accept_document.h"
#include "harness/report/columns.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	SLURM_REASON_MAX = 100, /* characters */
	NHC_LINE_MAX = 240,
	NAGIOS_LINE_MAX = 1000,
	NAGIOS_FIGURES_MAX = 40,
	NAGIOS_TOLD_MAX = 10,
};

/* text in printable ASCII, without what a shell, a quoted text or performance data could take for its own. */
static void lines_add_safe(struct buffer *out, const char *text)
{
	while (*text) {
		const size_t bytes = utf8_character(text);
		const bool blank = *text == '\n' || *text == '\t';
		const bool plain = bytes == 1 && *text >= ' ' && *text < 0x7f;
		if (blank)
			buffer_text(out, " ");
		else if (!plain)
			buffer_text(out, "?");
		else if (!strchr("'\"`\\|$", *text))
			buffer_add(out, text, 1);
		text += bytes > 0 ? bytes : 1;
	}
}

/* At most `most` bytes of line, with tail behind it whatever is cut. */
static void lines_add_cut(
	struct buffer *out, const struct buffer *line, const char *tail, size_t most)
{
	const size_t room = most - strlen(tail);
	const char *data = line->data ? line->data : "";
	if (line->size <= room)
		buffer_text(out, data);
	else
		buffer_format(out, "%.*s...", (int)room - 3, data);
	buffer_text(out, tail);
	out->failed = out->failed || line->failed;
}

/* How many rows there are before those that pass or are skipped. */
static size_t lines_troubles(const json_t *rows)
{
	size_t count = 0;
	size_t i;
	const json_t *row;
	json_array_foreach(rows, i, row)
	{
		const enum accept_verdict verdict = accept_verdict_in(row);
		count += verdict != VERDICT_PASS && verdict != VERDICT_SKIP;
	}
	return count;
}

static int lines_end(const json_t *rows, struct buffer *out, struct error *err)
{
	buffer_text(out, "\n");
	return !rows || out->failed ? error_set(err, -ENOMEM, "out of memory for the line") : 0;
}

/* --- Slurm, and the node health check --------------------------------------------------------- */

static void lines_summary(const json_t *document, const json_t *rows, const char *begin,
	size_t most, struct buffer *out)
{
	const size_t troubles = lines_troubles(rows);
	const char *qualifier = accept_qualifier(document);
	struct buffer text = {0};
	struct buffer line = {0};
	char tail[32] = "";
	if (troubles > 1)
		(void)snprintf(tail, sizeof tail, " (+%zu more)", troubles - 1);
	buffer_format(&text, "%s%s%s%s%s ", begin, accept_verdict_name(accept_verdict_in(document)),
		*qualifier ? " (" : "", qualifier, *qualifier ? ")" : "");
	if (troubles > 0) {
		accept_add_brief(&text, json_array_get(rows, 0));
	} else {
		const char *sentence = column_text(document, "sentence");
		const char *colon = strstr(sentence, ": ");
		buffer_text(&text, colon ? colon + 2 : sentence);
	}
	lines_add_safe(&line, text.data ? text.data : "");
	line.failed = line.failed || text.failed;
	lines_add_cut(out, &line, tail, most);
	buffer_release(&text);
	buffer_release(&line);
}

int accept_write_slurm(const json_t *document, const struct accept_view *view, struct buffer *out,
	struct error *err)
{
	(void)view;
	json_t *rows = accept_rows(document);
	lines_summary(document, rows, "mlbench ", SLURM_REASON_MAX, out);
	const int code = lines_end(rows, out, err);
	json_decref(rows);
	return code;
}

int accept_write_nhc(const json_t *document, const struct accept_view *view, struct buffer *out,
	struct error *err)
{
	(void)view;
	json_t *rows = accept_rows(document);
	lines_summary(document, rows, "mlbench accept: ", NHC_LINE_MAX, out);
	const int code = lines_end(rows, out, err);
	json_decref(rows);
	return code;
}

/* --- Nagios ----------------------------------------------------------------------------------- */

int accept_nagios_status(const json_t *document)
{
	enum { OK, WARNING, CRITICAL, UNKNOWN };
	const double status = column_number(document, "exit_status");
	const enum accept_verdict verdict = accept_verdict_in(document);
	if (verdict == VERDICT_FAIL)
		return CRITICAL;
	if (!(fabs(status) <= 0) || !result_is_whole(document)) /* no verdict on the node */
		return UNKNOWN;
	return verdict == VERDICT_PASS ? OK : verdict == VERDICT_WARN ? WARNING : UNKNOWN;
}

/* A number in a unit that Nagios has: seconds, percent, bytes, or none. */
static void nagios_add_number(struct buffer *out, enum figure_unit unit, double value)
{
	const double scale = unit == FIGURE_NS ? 1e-9 : unit == FIGURE_SHARE ? 100 : 1;
	buffer_format(out, "%.9g", value * scale);
}

static const char *nagios_unit(enum figure_unit unit)
{
	return unit == FIGURE_NS      ? "s"
	       : unit == FIGURE_SHARE ? "%"
	       : unit == FIGURE_BYTES ? "B"
				      : "";
}

/* ";345:" of a level that asks for at least 345; ";" of one that asks nothing. */
static void nagios_add_range(struct buffer *out, const json_t *finding)
{
	const double low = column_number(finding, "limit_low");
	const double high = column_number(finding, "limit_high");
	buffer_text(out, ";");
	if (isfinite(low)) {
		nagios_add_number(out, accept_unit(finding), low);
		buffer_text(out, ":");
	} else if (isfinite(high)) {
		buffer_text(out, "~:");
	}
	if (isfinite(high))
		nagios_add_number(out, accept_unit(finding), high);
}

static void nagios_add_label(struct buffer *out, const json_t *row)
{
	struct buffer label = {0};
	buffer_format(&label, "%s ", column_text(row, "check"));
	accept_add_subject(&label, json_object_get(row, "finding"));
	for (char *at = label.data; at && *at; at++)
		if (*at == '=')
			*at = ' ';
	buffer_text(out, "'");
	lines_add_safe(out, label.data ? label.data : "");
	buffer_text(out, "'=");
	buffer_release(&label);
}

/* Each figure at its worst place, up to a bound: what reads this takes a few kilobytes. */
static void nagios_add_figures(struct buffer *out, const json_t *figures)
{
	size_t written = 0;
	size_t i;
	const json_t *row;
	json_array_foreach(figures, i, row)
	{
		const json_t *finding = json_object_get(row, "finding");
		const double value = column_number(finding, "measured");
		if (!isfinite(value) || written == NAGIOS_FIGURES_MAX)
			continue;
		buffer_text(out, written++ ? " " : " | ");
		nagios_add_label(out, row);
		nagios_add_number(out, accept_unit(finding), value);
		buffer_text(out, nagios_unit(accept_unit(finding)));
		nagios_add_range(out, json_object_get(row, "warn"));
		nagios_add_range(out, json_object_get(row, "fail"));
	}
}

int accept_write_nagios(const json_t *document, const struct accept_view *view, struct buffer *out,
	struct error *err)
{
	static const char *const names[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};
	json_t *rows = accept_rows(document);
	json_t *figures = accept_figures(document);
	struct buffer headline = {0};
	struct buffer line = {0};
	const size_t troubles = lines_troubles(rows);
	(void)view;
	accept_headline(document, rows, &headline);
	lines_add_safe(&line, headline.data ? headline.data : "");
	buffer_format(out, "MLBENCH %s - ", names[accept_nagios_status(document)]);
	lines_add_cut(out, &line, "", NAGIOS_LINE_MAX);
	nagios_add_figures(out, figures);
	for (size_t i = 0; i < troubles && i < NAGIOS_TOLD_MAX; i++) {
		const json_t *row = json_array_get(rows, i);
		buffer_format(out, "\n%s ", accept_verdict_name(accept_verdict_in(row)));
		lines_add_safe(out, column_text(row, "check"));
		buffer_text(out, ": ");
		lines_add_safe(out, column_text(row, "sentence"));
	}
	out->failed = out->failed || headline.failed || line.failed || !figures;
	const int code = lines_end(rows, out, err);
	buffer_release(&headline);
	buffer_release(&line);
	json_decref(rows);
	json_decref(figures);
	return code;
}
