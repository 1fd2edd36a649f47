/* The glossary, docs/GLOSSARY.md, as it was when the program was built.  An entry is a paragraph:
 *
 *   **term** — what it means.  Also: synonym, another.  See: `key`, `stage/resource`, `term`. */
#ifndef MLBENCH_COMMAND_GLOSSARY_H
#define MLBENCH_COMMAND_GLOSSARY_H

#include "harness/report/runbook.h"

enum { GLOSSARY_NAME_BYTES = 64 };

struct glossary_entry {
	struct runbook_text term, meaning;
	struct runbook_text also, see; /* lists with commas; empty where there is none */
};

struct runbook_text glossary_whole(void);

/* The next entry behind *at, which begins as NULL; false: there is none. */
bool glossary_next(const char **at, struct glossary_entry *entry);

/* The entry that has the name, as its term or as a synonym.  Case does not count, and blanks, dashes and
 * underscores are the same. */
bool glossary_find(const char *name, struct glossary_entry *entry);

/* The entry's names, the term first, and what it refers to; false: it has no more. */
bool glossary_name(const struct glossary_entry *entry, size_t index, char out[GLOSSARY_NAME_BYTES]);
bool glossary_reference(
	const struct glossary_entry *entry, size_t index, char out[GLOSSARY_NAME_BYTES]);

/* Whether two names are the same to glossary_find. */
bool glossary_same_name(const char *a, const char *b);

/* Every name that leads to an entry, as one word ("queue-depth"), each behind a blank. */
void glossary_words(struct buffer *out);

/* For a terminal: the meaning, the synonyms, and the commands that say more. */
void glossary_render(const struct glossary_entry *entry, const struct style *style, int indent,
	struct buffer *out);

#endif
