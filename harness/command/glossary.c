/* docs/GLOSSARY.md is the one home of the terms and their synonyms: the assembler puts the file into
 * the program. */
#include "harness/command/glossary.h"

#include <ctype.h>
#include <string.h>

__asm__(".pushsection .rodata\n"
	"mlbench_glossary_begin:\n"
	".incbin \"docs/GLOSSARY.md\"\n"
	"mlbench_glossary_end:\n"
	".byte 0\n"
	".popsection\n");
extern const char mlbench_glossary_begin[], mlbench_glossary_end[];

enum { LABEL_COLUMNS = 6 };

struct runbook_text glossary_whole(void)
{
	return (struct runbook_text){.text = mlbench_glossary_begin,
		.size = (size_t)(mlbench_glossary_end - mlbench_glossary_begin)};
}

static const char *find_words(const char *from, const char *end, const char *what)
{
	return memmem(from, (size_t)(end - from), what, strlen(what));
}

static struct runbook_text text_between(const char *from, const char *end)
{
	while (end > from && isspace((unsigned char)end[-1]))
		end--;
	return (struct runbook_text){.text = from, .size = (size_t)(end - from)};
}

/* Cuts the list behind the label off the paragraph's end, without its full stop. */
static struct runbook_text cut_list(const char *from, const char **end, const char *label)
{
	const char *at = find_words(from, *end, label);
	if (!at)
		return (struct runbook_text){.text = *end};
	struct runbook_text list = text_between(at + strlen(label), *end);
	list.size -= list.size > 0 && list.text[list.size - 1] == '.';
	*end = at;
	return list;
}

bool glossary_next(const char **at, struct glossary_entry *entry)
{
	static const char begin[] = "\n\n**";
	static const char dash[] = "** — ";
	const struct runbook_text all = glossary_whole();
	const char *end = all.text + all.size;
	const char *from = find_words(*at ? *at : all.text, end, begin);
	if (!from)
		return false;
	from += strlen(begin);
	const char *stop = find_words(from, end, "\n\n");
	const char *after = stop ? stop : end;
	const char *meaning = find_words(from, after, dash);
	if (!meaning)
		return false;
	entry->term = text_between(from, meaning);
	meaning += strlen(dash);
	*at = after;
	entry->see = cut_list(meaning, &after, "\nSee: ");
	entry->also = cut_list(meaning, &after, "\nAlso: ");
	entry->meaning = text_between(meaning, after);
	return true;
}

static bool list_item(const struct runbook_text *list, size_t index, char out[GLOSSARY_NAME_BYTES])
{
	const char *at = list->text;
	const char *end = list->text + list->size;
	for (; index > 0; index--) {
		at = memchr(at, ',', (size_t)(end - at));
		if (!at)
			return false;
		at++;
	}
	size_t used = 0;
	for (; at < end && *at != ','; at++) {
		const char c = *at == '\n' ? ' ' : *at;
		if (c != '`' && (c != ' ' || used > 0) && used + 1 < GLOSSARY_NAME_BYTES)
			out[used++] = c;
	}
	out[used] = '\0';
	return used > 0;
}

bool glossary_name(const struct glossary_entry *entry, size_t index, char out[GLOSSARY_NAME_BYTES])
{
	return index == 0 ? list_item(&entry->term, 0, out)
			  : list_item(&entry->also, index - 1, out);
}

bool glossary_reference(
	const struct glossary_entry *entry, size_t index, char out[GLOSSARY_NAME_BYTES])
{
	return list_item(&entry->see, index, out);
}

static int fold_letter(char c)
{
	return c == '_' || c == '-' ? ' ' : tolower((unsigned char)c);
}

bool glossary_same_name(const char *a, const char *b)
{
	for (; fold_letter(*a) == fold_letter(*b); a++, b++)
		if (!*a)
			return true;
	return false;
}

bool glossary_find(const char *name, struct glossary_entry *entry)
{
	char candidate[GLOSSARY_NAME_BYTES];
	for (const char *at = NULL; glossary_next(&at, entry);)
		for (size_t i = 0; glossary_name(entry, i, candidate); i++)
			if (glossary_same_name(name, candidate))
				return true;
	return false;
}

void glossary_words(struct buffer *out)
{
	struct glossary_entry entry;
	char name[GLOSSARY_NAME_BYTES];
	for (const char *at = NULL; glossary_next(&at, &entry);)
		for (size_t i = 0; glossary_name(&entry, i, name); i++) {
			bool plain = true;
			for (char *c = name; *c; c++) {
				*c = *c == ' ' ? '-' : *c;
				plain = plain && (isalnum((unsigned char)*c) || strchr("-_./", *c));
			}
			if (plain)
				buffer_format(out, " %s", name);
		}
}

/* "  also   a, b" */
static void glossary_render_list(const char *label, const char *words, const struct style *style,
	int indent, struct buffer *out)
{
	buffer_format(out, "%*s%s%-*s%s", indent, "", style_ink(style, INK_DIM), LABEL_COLUMNS,
		label, style_end(style));
	style_wrap(style, words, indent + LABEL_COLUMNS, indent + LABEL_COLUMNS, out);
}

/* The command that explains what the entry refers to, with all that it explains of it. */
static void reference_list(const struct glossary_entry *entry, bool verdicts, struct buffer *list)
{
	char name[GLOSSARY_NAME_BYTES];
	for (size_t i = 0; glossary_reference(entry, i, name); i++) {
		if ((strchr(name, '/') != NULL) != verdicts)
			continue;
		const char *command = verdicts ? "mlbench explain " : "mlbench help ";
		buffer_format(list, "%s%s", list->size ? ", " : command, name);
	}
}

void glossary_render(const struct glossary_entry *entry, const struct style *style, int indent,
	struct buffer *out)
{
	char name[GLOSSARY_NAME_BYTES];
	struct buffer also = {0};
	struct buffer terms = {0};
	struct buffer verdicts = {0};
	for (size_t i = 1; glossary_name(entry, i, name); i++)
		buffer_format(&also, "%s%s", i > 1 ? ", " : "", name);
	reference_list(entry, false, &terms);
	reference_list(entry, true, &verdicts);
	runbook_render(&entry->meaning, style, indent, out);
	if (also.size || terms.size || verdicts.size)
		buffer_text(out, "\n");
	if (also.size)
		glossary_render_list("also", also.data, style, indent, out);
	if (terms.size)
		glossary_render_list("see", terms.data, style, indent, out);
	if (verdicts.size)
		glossary_render_list(terms.size ? "" : "see", verdicts.data, style, indent, out);
	out->failed = out->failed || also.failed || terms.failed || verdicts.failed;
	buffer_release(&also);
	buffer_release(&terms);
	buffer_release(&verdicts);
}
