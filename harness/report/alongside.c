/* The reported job and the user's loader, in a few lines. */
#include "harness/report/alongside.h"

#include "harness/analyze/limit_kinds.h"
#include "harness/analyze/reproduction.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/base/units.h"
#include "harness/report/efficiency_report.h"
#include "harness/report/reproduce_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- documents that lie beside a result ------------------------------------------------------- */

enum { ALONGSIDE_BYTES_MAX = 4 << 20 };

/* NULL: there is none that can be read. */
static json_t *alongside_read(const char *folder, const char *file, const char *schema)
{
	char *path = files_join(folder, file);
	char *text = NULL;
	size_t size = 0;
	json_t *document = NULL;
	if (path && files_read(path, ALONGSIDE_BYTES_MAX, &text, &size, NULL) == 0)
		document = json_loadb(text, size, 0, NULL);
	if (document && strcmp(column_text(document, "schema"), schema) != 0) {
		json_decref(document);
		document = NULL;
	}
	free(text);
	free(path);
	return document;
}

bool alongside_open(struct alongside *alongside, const struct report *report, size_t point)
{
	const struct record *record = report->record;
	*alongside = (struct alongside){.report = report,
		.point = point,
		.loader = alongside_read(record->folder, EFFICIENCY_FILE, EFFICIENCY_SCHEMA)};
	return record->of_case.known || alongside->loader;
}

void alongside_close(struct alongside *alongside)
{
	json_decref(alongside->loader);
	*alongside = (struct alongside){0};
}

/* --- the job that was reported ---------------------------------------------------------------- */

static void alongside_add_rate(double rate, double low, double high, struct buffer *text)
{
	char number[UNITS_BYTES];
	char edges[2][UNITS_BYTES];
	buffer_format(text, "%s samples/s", units_format_count(rate, number));
	if (isfinite(low) && isfinite(high) && high > low)
		buffer_format(text, " (%s to %s)", units_format_count(low, edges[0]),
			units_format_count(high, edges[1]));
}

static void alongside_put_complaint(const struct record_case *of, struct medium *medium)
{
	struct buffer line = {0};
	struct buffer text = {0};
	for (const char *at = of->complaint; *at; at++)
		buffer_add(&line, *at == '\n' ? " " : at, 1);
	if (line.size > 0) {
		buffer_text(&text, "\"");
		utf8_add_plain(&text, line.data, "?");
		buffer_text(&text, "\"");
	} else {
		buffer_text(&text, "a job, without a complaint");
	}
	if (of->created[0]) {
		buffer_text(&text, ", ");
		utf8_add_plain(&text, of->created, "?");
	}
	text.failed = text.failed || line.failed;
	buffer_release(&line);
	medium_fact(medium, INK_PLAIN, "case", &text);
}

static void alongside_put_reported(const struct record_case *of, struct medium *medium)
{
	struct buffer words = {0};
	struct buffer text = {0};
	if (of->rate > 0)
		alongside_add_rate(of->rate, of->low, of->high, &text);
	else
		buffer_text(&text, "its throughput is not known");
	limit_kinds_text(of->stage, of->resource, &words);
	if (of->stage[0]) {
		buffer_text(&text, "; bottleneck then: ");
		utf8_add_plain(&text, words.data ? words.data : "", "?");
	} else {
		buffer_text(&text, "; what limited it is not known");
	}
	if (of->stage[0] && isfinite(of->confidence))
		buffer_format(&text, " (%.0f %% confidence)", 100 * of->confidence);
	buffer_release(&words);
	medium_fact(medium, INK_PLAIN, "reported", &text);
}

/* "2 % more than reported; the intervals overlap" */
static void alongside_add_ratio(
	const struct record_case *of, const struct point_summary *p, struct buffer *text)
{
	static const double NONE = 0.005, TIMES = 2;
	const double ratio = p->median / of->rate;
	if (!(of->rate > 0))
		return;
	if (fabs(ratio - 1) < NONE)
		buffer_text(text, ": as much as reported");
	else if (ratio >= TIMES)
		buffer_format(text, ": %s times as much as reported", UNITS_PLAIN(ratio, 3));
	else
		buffer_format(text, ": %.1f %% %s than reported", 100 * fabs(ratio - 1),
			ratio > 1 ? "more" : "less");
	if (p->repeat_count < 2 || !isfinite(p->ci95.low + p->ci95.high + of->low + of->high))
		return;
	buffer_format(text, "; the intervals %s",
		p->ci95.low <= of->high && of->low <= p->ci95.high ? "overlap" : "do not overlap");
}

static const char *alongside_same_cause(const struct record_case *of, const struct verdict *v)
{
	if (!of->stage[0])
		return "";
	if (!limit_stage_is_of(of->stage, v->stage) && !limit_stage_is_of(of->stage, v->also))
		return ", another stage than reported";
	if (!of->resource[0] || strcmp(of->resource, "unknown") == 0 ||
		strcmp(of->stage, v->stage) != 0)
		return ", the reported stage";
	return reproduction_allows(of->resource, v->resource)
		       ? ", as reported"
		       : ", the reported stage, but another resource";
}

static void alongside_put_here(const struct alongside *alongside, struct medium *medium)
{
	const struct record *record = alongside->report->record;
	const struct record_case *of = &record->of_case;
	const bool any = alongside->point < record->grid.points;
	const struct point_summary *p = any ? alongside->report->points[alongside->point] : NULL;
	struct buffer text = {0};
	if (!p || !isfinite(p->median))
		return;
	const struct verdict *v = &p->verdict;
	alongside_add_rate(
		p->median, p->repeat_count > 1 ? p->ci95.low : (double)NAN, p->ci95.high, &text);
	if (record->config.axis_count > 0) {
		buffer_text(&text, " at ");
		report_settings(alongside->report, alongside->point, &text);
	}
	alongside_add_ratio(of, p, &text);
	if (v->stage[0] && strcmp(v->stage, "none") != 0) {
		buffer_text(&text, ". Bottleneck: ");
		limit_kinds_text(v->stage, v->resource, &text);
		buffer_format(&text, "%s%s", v->also[0] ? ", nearly balanced with " : "", v->also);
		buffer_text(&text, alongside_same_cause(of, v));
	} else {
		buffer_text(&text, ". The bottleneck here is unknown");
	}
	medium_fact(medium, INK_BOLD, "here", &text);
}

/* What `mlbench reproduce` concluded of this twin and its variants. */
static void alongside_put_outcome(const struct record *record, struct medium *medium)
{
	const char *slash = strrchr(record->folder, '/');
	char *folder = slash ? strndup(record->folder, (size_t)(slash - record->folder)) : NULL;
	json_t *document = folder && strcmp(slash + 1, RECORD_TWIN) == 0
				   ? alongside_read(folder, REPRODUCE_FILE, REPRODUCE_SCHEMA)
				   : NULL;
	const char *outcome = column_text(document, "outcome");
	for (int i = REPRODUCTION_OPEN; i <= REPRODUCTION_REFUTED; i++)
		if (strcmp(outcome, reproduction_outcome_name((enum reproduction_outcome)i)) == 0) {
			struct buffer text = {0};
			buffer_format(&text, "'mlbench reproduce' found: %s", outcome);
			medium_fact(medium, INK_BOLD, "", &text);
		}
	json_decref(document);
	free(folder);
}

static void alongside_put_case(const struct alongside *alongside, struct medium *medium)
{
	const struct record_case *of = &alongside->report->record->of_case;
	struct buffer text = {0};
	alongside_put_complaint(of, medium);
	alongside_put_reported(of, medium);
	alongside_put_here(alongside, medium);
	alongside_put_outcome(alongside->report->record, medium);
	if (of->changed[0]) {
		buffer_text(&text, "set otherwise than in the case: ");
		utf8_add_plain(&text, of->changed, "?");
	}
	medium_fact(medium, INK_WARN, "changed", &text);
}

/* --- the user's loader ------------------------------------------------------------------------ */

static void alongside_put_loader(const struct alongside *alongside, struct medium *medium)
{
	const json_t *rate = column_value(alongside->loader, "loader.samples_per_s");
	const double share = column_number(alongside->loader, "ratio.median");
	struct buffer text = {0};
	alongside_add_rate(column_number(rate, "median"), column_number(rate, "low"),
		column_number(rate, "high"), &text);
	if (isfinite(share))
		buffer_format(&text, ", %.0f %% of what this pipeline gives", 100 * share);
	buffer_text(&text,
		". It is another program, measured in turn with this one; " EFFICIENCY_FILE
		" has the rest");
	medium_fact(medium, INK_PLAIN, "loader", &text);
}

void alongside_put(const struct alongside *alongside, struct medium *medium)
{
	if (alongside->report->record->of_case.known)
		alongside_put_case(alongside, medium);
	if (alongside->loader)
		alongside_put_loader(alongside, medium);
}
