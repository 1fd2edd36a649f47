/* docs/runbook.md is the one home of the text: the assembler puts the file into the program. */
#include "harness/report/runbook.h"

#include <stdio.h>
#include <string.h>

__asm__(".pushsection .rodata\n"
	"mlbench_runbook_begin:\n"
	".incbin \"docs/runbook.md\"\n"
	"mlbench_runbook_end:\n"
	".byte 0\n"
	".popsection\n");
extern const char mlbench_runbook_begin[], mlbench_runbook_end[];

enum { HEADING_BYTES = 80 };

struct runbook_text runbook_whole(void)
{
	return (struct runbook_text){.text = mlbench_runbook_begin,
		.size = (size_t)(mlbench_runbook_end - mlbench_runbook_begin)};
}

static const char *runbook_lookup(const char *from, const char *end, const char *what)
{
	return memmem(from, (size_t)(end - from), what, strlen(what));
}

bool runbook_find(const char *stage, const char *resource, struct runbook_text *entry)
{
	char heading[HEADING_BYTES];
	const struct runbook_text all = runbook_whole();
	const char *end = all.text + all.size;
	(void)snprintf(heading, sizeof heading, "\n## %s/%s\n\n", stage, resource);
	const char *at = runbook_lookup(all.text, end, heading);
	if (!at)
		return false;
	at += strlen(heading);
	const char *next = runbook_lookup(at, end, "\n## ");
	*entry = (struct runbook_text){.text = at, .size = (size_t)((next ? next : end) - at)};
	return true;
}

struct runbook_text runbook_meaning(const struct runbook_text *entry)
{
	static const char label[] = "**Means.** ";
	const char *end = entry->text + entry->size;
	const char *from = runbook_lookup(entry->text, end, label);
	from = from ? from + strlen(label) : entry->text;
	const char *paragraph = runbook_lookup(from, end, "\n\n");
	const char *stop = paragraph ? paragraph : end;
	for (const char *c = from; c + 1 < stop; c++)
		if (*c == '.' && (c[1] == ' ' || c[1] == '\n'))
			stop = c;
	while (stop > from && (stop[-1] == '.' || stop[-1] == '\n'))
		stop--;
	return (struct runbook_text){.text = from, .size = (size_t)(stop - from)};
}

/* One paragraph: its lines joined, ** and ` taken out. */
static void render_paragraph(
	const char *text, size_t size, const struct style *style, int indent, struct buffer *out)
{
	struct buffer line = {0};
	for (size_t i = 0; i < size; i++) {
		if (i + 1 < size && text[i] == '*' && text[i + 1] == '*') {
			i++;
		} else if (text[i] == '\n') {
			buffer_text(&line, " ");
		} else if (text[i] != '`') {
			buffer_add(&line, &text[i], 1);
		}
	}
	buffer_repeat(out, " ", indent);
	style_wrap(style, line.data ? line.data : "", indent, indent, out);
	out->failed = out->failed || line.failed;
	buffer_release(&line);
}

void runbook_render(
	const struct runbook_text *entry, const struct style *style, int indent, struct buffer *out)
{
	const char *end = entry->text + entry->size;
	for (const char *at = entry->text; at < end;) {
		const char *next = runbook_lookup(at, end, "\n\n");
		const char *stop = next ? next : end;
		while (stop > at && stop[-1] == '\n')
			stop--;
		if (at > entry->text)
			buffer_text(out, "\n");
		render_paragraph(at, (size_t)(stop - at), style, indent, out);
		at = next ? next + 2 : end;
	}
}
