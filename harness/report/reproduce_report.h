/* Whether a case was reproduced: the document mlbench.reproduce/1 (docs/reproduce.schema.json), and
 * the same for people.  The text is made of the document alone. */
#ifndef MLBENCH_REPORT_REPRODUCE_REPORT_H
#define MLBENCH_REPORT_REPRODUCE_REPORT_H

#include "harness/analyze/reproduction.h"
#include "harness/report/medium.h"

#define REPRODUCE_SCHEMA "mlbench.reproduce/1"
#define REPRODUCE_FILE "reproduce.json" /* in the folder of the twin and its variants */

enum { REPRODUCE_LINE_BYTES = 240, REPRODUCE_LINES_MAX = 40 };

/* A line, and what it is about: an emulation that is on or not, a key that is a guess. */
struct reproduce_line {
	char name[REPRODUCTION_TEXT_BYTES]; /* "" or "batch.size" */
	char words[REPRODUCE_LINE_BYTES];
	bool done;
};

struct reproduce_lines {
	struct reproduce_line of[REPRODUCE_LINES_MAX];
	size_t count;
};

/* Adds a line, cut to fit; where there is no room, nothing. */
void reproduce_add_line(struct reproduce_lines *lines, const char *name, bool done,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

struct reproduce_view {
	const char *name;    /* of the case */
	const char *created; /* its day; "": not known */
	const char *folder;  /* of the results */
	const struct reproduction *reproduction;
	/* One per variant: the label of its result; why it could not be measured, or "". */
	const char *labels[REPRODUCTION_VARIANTS_MAX];
	const char *why_not[REPRODUCTION_VARIANTS_MAX];
	size_t left_out;       /* repetitions of the twin that failed */
	size_t unsteady;       /* that count, and were not steady */
	const char *disturbed; /* how other processes took this node's cores meanwhile; "" */
	/* Why the verdict here is what it is, or why there is none; "". */
	const char *seen_why;
	const struct reproduction_need *needs;
	size_t need_count;
	const char *no_replay; /* why nothing is replayed; "": it is, or there was no need */
	const struct reproduction_difference *differences;
	size_t difference_count;
	const struct reproduce_lines *unknown; /* of the environment: what the case does not say */
	bool as_reported;
	bool could_emulate; /* the case says of the reported node what could be emulated here */
	const struct reproduce_lines *emulated, *assumed;
	double budget_s, spent_s;
	bool interrupted;
};

/* NULL without memory. */
json_t *reproduce_json(const struct reproduce_view *view);
void reproduce_text(const json_t *document, struct medium *medium);

#endif
