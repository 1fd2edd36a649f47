/* The parts of report.html beside its charts, each written into the page from the same input. */
#ifndef MLBENCH_REPORT_HTML_SECTIONS_H
#define MLBENCH_REPORT_HTML_SECTIONS_H

#include "harness/report/html/chart.h"
#include "harness/report/html/page.h"

#include <stdbool.h>

/* Host, date, data and device, in a line. */
void section_facts(const struct record *record, struct buffer *out);
/* The verdict, in a sentence or two. */
void section_lead(const struct chart_input *input, struct buffer *out);
/* Figures, and what must not be missed: planted conditions, an interruption, points that failed. */
void section_head(const struct chart_input *input, struct page *page);
/* The reported job whose twin it is, and the user's loader, where there is one. */
void section_alongside(const struct chart_input *input, struct page *page);
/* What to do and what it gains, best first. */
void section_advice(const struct chart_input *input, struct page *page);
/* Of a job of ranks: a row for each. */
void section_ranks(const struct chart_input *input, struct page *page);
/* What the verdict rests on, and what experiments said of it. */
void section_evidence(const struct chart_input *input, struct page *page);
/* Of a sweep over storage forms: what each takes, and gives. */
void section_storage(const struct chart_input *input, struct page *page);
/* Any point of a sweep, as the page has the best one: verdict, what to do, evidence, stages and totals.  Not its charts. */
void section_point(const struct chart_input *input, struct page *page);
/* Queues, working time, checkpoints, and calls to a server, at the point of the page. */
void section_totals(const struct chart_input *input, struct page *page);
/* Flame graph and timeline, where they were recorded. */
void section_recordings(const struct chart_input *input, struct page *page);
void section_notes(const struct chart_input *input, struct page *page);
/* The commands that measure it again. */
void section_reproduce(const struct chart_input *input, struct page *page);
/* Environment, ceilings and configuration, folded. */
void section_context(const struct chart_input *input, struct page *page);

/* A table of facts, group by group. */
void section_environment(const struct fact_list *facts, struct page *page);

/* "mlbench sweep /dev/null --set ...": every key that is not at its default, and the axes, as one command for a POSIX shell that
 * needs no file.  limits: the stages' limits were measured, which a run alone does only when it is told to.  False (and
 * nothing appended) where such a command would not be the same measurement, by the hash of its configuration. */
bool reproduce_command(
	const struct config *config, const char *name, bool limits, struct buffer *out);

#endif
