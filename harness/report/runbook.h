/* The runbook, docs/runbook.md, as it was when the program was built: one entry per (stage, resource). */
#ifndef MLBENCH_REPORT_RUNBOOK_H
#define MLBENCH_REPORT_RUNBOOK_H

#include "harness/base/buffer.h"
#include "harness/report/style.h"

#include <stdbool.h>
#include <stddef.h>

/* Text that is not ended by a zero. */
struct runbook_text {
	const char *text;
	size_t size;
};

struct runbook_text runbook_whole(void);

/* The entry's paragraphs, without its heading; false: there is none. */
bool runbook_find(const char *stage, const char *resource, struct runbook_text *entry);

/* The first sentence of its first paragraph, without the label: what the pair means. */
struct runbook_text runbook_meaning(const struct runbook_text *entry);

/* For a terminal: paragraphs wrapped, Markdown's marks taken out. */
void runbook_render(const struct runbook_text *entry, const struct style *style, int indent,
	struct buffer *out);

#endif
