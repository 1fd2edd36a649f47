/* Where a document is written: a terminal, Markdown or a page of HTML.  A document says what, in order; here is how
 * each medium has it.  A sequence of facts, sentences or tables that are empty leaves nothing behind.
 *
 *	struct medium medium = medium_terminal(&style, &out); // or medium_markdown(&out), medium_page(page)
 *	medium_heading(&medium, "limits of this node");
 *	medium_table(&medium, columns, COUNT(columns), rows, "each stage alone");
 *	medium_fact(&medium, INK_BOLD, "verdict", &text);     // takes what is in the buffer
 *	medium_list(&medium, INK_DIM, "evidence", column_value(document, "verdict.evidence"), 0);
 *	medium_end(&medium); */
#ifndef MLBENCH_REPORT_MEDIUM_H
#define MLBENCH_REPORT_MEDIUM_H

#include "harness/report/columns.h"
#include "harness/report/html/page.h"

struct medium {
	const struct style *style; /* of a terminal */
	struct page *page;         /* of HTML; neither: Markdown */
	struct buffer *out;
	bool in_facts, after_table; /* of HTML; of Markdown, where an empty line ends a table */
};

struct medium medium_terminal(const struct style *style, struct buffer *out);
struct medium medium_markdown(struct buffer *out);
struct medium medium_page(struct page *page);
void medium_end(struct medium *medium);

/* Its name, and what stands beside it. */
void medium_title(struct medium *medium, const char *name, const char *beside);
/* An empty line in the terminal, where facts follow a table. */
void medium_space(struct medium *medium);
/* Above what follows it; the medium gives it a capital where it has them. */
void medium_heading(struct medium *medium, const char *text);
/* "  verdict  Bottleneck: ...", "- **verdict:** ...": nothing of an empty text.  Without a term the fact before it goes on.
 * Releases the buffer. */
void medium_fact(struct medium *medium, enum ink ink, const char *term, struct buffer *text);
void medium_fact_text(struct medium *medium, enum ink ink, const char *term, const char *text);
/* Texts of an array from `first` on, under one term. */
void medium_list(
	struct medium *medium, enum ink ink, const char *term, const json_t *texts, size_t first);
/* A line of its own, less than the rest. */
void medium_note(struct medium *medium, struct buffer *text);
/* Nothing without rows.  caption: of HTML, where a table must have one. */
void medium_table(struct medium *medium, const struct table_column *columns, size_t count,
	const json_t *rows, const char *caption);

#endif
