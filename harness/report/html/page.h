/* A self-contained HTML page: text, tables, and charts drawn by Vega in the reader's browser, without a
 * network.  Whatever it is given is plain text and is escaped here; nobody else writes HTML.  Every chart has its
 * table behind it, so that the page tells the same without scripts, on paper and to a screen reader.
 *
 * report.html is one file that fetches nothing. Here is a small vocabulary
 * (heading, paragraph, table, figure, chart, fold); page.c alone writes HTML, so every text
 * passes html_escape once: entities, and U+FFFD for controls, turns of direction and what is no
 * UTF-8. report_page.c puts the report together from the charts in chart_kinds and the sections
 * (sections.h); it is a function of the saved result, so that the page of a run and the one that
 * mlbench report makes later are the same bytes.
 *
 * - Vega. .ci/charts writes the modules of Debian's libjs-vega that pages need, with their
 *   licence, into build/charts/vega.js, which all variants share and the assembler puts into the
 *   program (assets.c), as it does page.css, page.js and the charts. Without the package that file
 *   is one line with the reason, pages have tables only, and doctor, report --json and every page
 *   say so.
 * - Drawing. A chart's figure holds its rows (by column; < escaped) and signals as JSON; the
 *   compiled charts that a page needs are in it once each; page.js gives both to Vega with the
 *   expression interpreter. The page's Content-Security-Policy allows no request, no eval, and no
 *   script but those that bear the page's mark, a hash of its own contents. Ink is a CSS variable
 *   inside the SVG, so that light, dark and paper need no second drawing. Sliders are the page's
 *   own, so that a screen reader hears the value and not its index.
 * - Without a picture. Each chart has a table behind it; folds are open in the file, and the
 *   script closes them.
 * - What a sweep has measured stands above what is predicted of it: a recommendation that is
 *   itself a point of the sweep is shown with that measurement. The frontier counts a setting as
 *   beaten by a lesser one within 2 % of it.
 * - Reproducing. The header of points.jsonl has the command that measured. Beside it the page
 *   prints one that needs no file, which is compared with the result by the hash of its
 *   configuration before it is printed. */
#ifndef MLBENCH_REPORT_HTML_PAGE_H
#define MLBENCH_REPORT_HTML_PAGE_H

#include "harness/base/buffer.h"
#include "harness/base/error.h"
#include "harness/report/table.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* How the number of a cell is written in a table. */
enum page_format {
	PAGE_TEXT,
	PAGE_COUNT,    /* 1,234 */
	PAGE_REAL,     /* four digits that count */
	PAGE_SHARE,    /* 0.125: 12.5% */
	PAGE_SECONDS,  /* 1.25 ms */
	PAGE_BYTES,    /* 1.5 MiB */
	PAGE_RATE,     /* bytes per second */
	PAGE_FRACTION, /* 0.97 */
};

struct page_column {
	const char *field; /* of a row */
	const char *head;
	enum page_format format;
};

/* rows: array of objects; a member that is missing or null is written as a dash. */
struct page_table {
	const struct page_column *columns; /* kept, not copied */
	size_t column_count;
	/* Owned: what `columns` points to where a table's columns depend on the result, with their texts, in one block of
	 * malloc; NULL: they are constants. */
	struct page_column *made_columns;
	json_t *rows; /* owned; members that no column shows are for the chart alone */
};

enum {
	CHART_ID_BYTES = 32,
	CHART_TITLE_BYTES = 96,
	CHART_WHY_BYTES = 240,
	CHART_CAPTION_BYTES = 240,
};

/* drawing: what the page's script needs beside the table's rows; harness/report/html/chart.h makes it.  A view fills the
 * page's width.  Data colours come from palette.h; a signal named "ink", "soft" (less of it), "ground" or "tint" takes the
 * page's colour of that name, which follows light and dark.  A signal with a "bind" has a field on the page.
 * NULL: there is nothing to draw, and why_not says why in a sentence. */
struct chart {
	char id[CHART_ID_BYTES];           /* of the element, for links: "stages" */
	char title[CHART_TITLE_BYTES];     /* what it is of, for the contents */
	struct buffer finding;             /* what it shows, its heading; empty: the title */
	char caption[CHART_CAPTION_BYTES]; /* how to read it, in a line */
	struct buffer text;                /* further numbers, below it */
	json_t *drawing;                   /* owned */
	json_t *file;                      /* owned: the compiled chart, until chart_done */
	bool failed;                       /* something of it could not be made */
	struct page_table table;
	char why_not[CHART_WHY_BYTES];
};

void chart_release(struct chart *chart); /* safe on {0} */

/* A page while it is written.  An allocation that fails is kept, and page_end says it. */
struct page;

/* NULL without memory.  title: of the document; lead: its first sentence, in large type; may be NULL. */
struct page *page_begin(const char *title, const char *lead);
/* What stands between the title and the lead: where, when and on what it was measured. */
void page_facts(struct page *page, const char *text);
/* Level 2 or 3; id for links, may be NULL.  Those of level 2 and charts with an id are the page's contents. */
void page_heading(struct page *page, int level, const char *id, const char *text);
/* A chart that follows is a section of its own, no part of the last one. */
void page_section_end(struct page *page);
void page_paragraph(struct page *page, const char *text);
/* Term and text, side by side. */
void page_terms_begin(struct page *page);
void page_term(struct page *page, const char *term, const char *text);
void page_terms_end(struct page *page);
void page_code(struct page *page, const char *text); /* as typed in a terminal */
/* To a file beside the page, by its plain name. */
void page_link(struct page *page, const char *file, const char *text);
/* Figures side by side, large: "612", "samples/s", "decode.workers=4". */
void page_figures_begin(struct page *page);
void page_figure(struct page *page, const char *value, const char *unit, const char *text);
void page_figures_end(struct page *page);
/* A list of sentences. */
void page_list_begin(struct page *page, bool numbered);
void page_item(struct page *page, const char *text);
void page_list_end(struct page *page);
/* Said so that nobody can miss it: planted conditions, an interrupted sweep. */
void page_notice(struct page *page, const char *label, const char *text);
void page_table(struct page *page, const struct page_table *table, const char *caption);
/* The same of columns that other media have, too (columns.h). */
void page_rows(struct page *page, const struct table_column *columns, size_t count,
	const json_t *rows, const char *caption);
void page_chart(struct page *page, const struct chart *chart);
/* One thing to do, said so that it is seen first: "read.depth=4", "992 samples/s predicted", what follows from it. */
void page_action(struct page *page, const char *what, const char *gain, const char *text);
/* A section that is folded until the reader opens it or follows a link into it; its charts are drawn all the same.  id:
 * NULL where a chart in it has one; finding: beside the heading, may be NULL. */
void page_more_begin(struct page *page, const char *id, const char *heading, const char *finding);
/* One point of a sweep, folded under a line until the reader opens it or a mark of it is clicked: "point-12" is its id.  Its
 * charts are drawn when it is opened, and are no part of the contents; page_point_end ends it. */
void page_point_begin(struct page *page, size_t point, const char *heading, const char *finding);
void page_point_end(struct page *page);
/* What follows is folded under `summary` until the reader opens it; page_fold_end ends either. */
void page_fold_begin(struct page *page, const char *summary);
void page_fold_end(struct page *page);
/* The document is a sheet of A4 to be printed and signed: no contents, and what is on it must fit. */
void page_sheet(struct page *page);
/* Lines to sign on, side by side: what each is for ("checked by (name, date)"). */
void page_signatures(struct page *page, const char *const *labels, size_t count);
/* The whole document into *out; releases the page in any case.  0 or -ENOMEM. */
int page_end(struct page *page, struct buffer *out, struct error *err);
void page_release(struct page *page); /* of a page that is given up; NULL is fine */

/* The number as a cell of that format has it, at most PAGE_NUMBER_BYTES; returns out. */
enum { PAGE_NUMBER_BYTES = 48 };
const char *page_number(enum page_format format, double value, char out[PAGE_NUMBER_BYTES]);

/* text as HTML: &, <, > and quotes as entities, control characters and bytes that are no UTF-8 as U+FFFD. */
void html_escape(const char *text, struct buffer *out);

#endif
