/* The file of a lab: an ordinary configuration with a section [lab], which says what is planted, what may be changed, what is
 * asked and what passes.  The reader of configurations passes over that section, and this one over all others.
 *
 * A line of [lab] has one of three forms (lab_words in lab_file.c says which word has which):
 *
 *   title = TEXT
 *   plant = KEY = VALUE                     a..b drawn in log, x | y one of them; VALUE is an expression (expression.h)
 *   wrong = NAME, KEY=VALUE, ...: TEXT      a head of words and settings, then a text
 *
 * Sections [lab.NAME] are variants: the draw takes one, whose lines come on top of those of [lab].  docs/workshop/LABS.md has
 * all words.  A struct lab is constant once it is read. */
#ifndef MLBENCH_LAB_LAB_FILE_H
#define MLBENCH_LAB_LAB_FILE_H

#include "harness/base/error.h"
#include "harness/config/config.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	LAB_LINES_MAX = 192,
	LAB_VARIANTS_MAX = 8,
	LAB_PAIRS_MAX = 8,
	LAB_KEY_BYTES = 48,
	LAB_VALUE_BYTES = 96,
	LAB_WORD_BYTES = 40,
	LAB_HINTS = 3,
};

extern const char *const lab_sections[]; /* of a struct section_owner, which has variants */

enum lab_word {
	LAB_NUMBER,
	LAB_TITLE,
	LAB_MINUTES,
	LAB_PAGE,
	LAB_GOAL,
	LAB_PASS,
	LAB_CHECK,
	LAB_CAUSE,
	LAB_RIGHT,
	LAB_EXPLAIN,
	LAB_SCALE,
	LAB_PLANT,
	LAB_KNOB,
	LAB_BEST,
	LAB_WRONG,
	LAB_ASK,
	LAB_EVIDENCE,
	LAB_ANSWER,
	LAB_HINT1,
	LAB_HINT2,
	LAB_HINT3,
	LAB_WORDS
};

/* What is planted beside keys: fewer cores, by affinity (harness/command/node_emulation.h). */
#define LAB_NODE_CORES "node.cores"

/* KEY=VALUE, as written: the key exists, the value is an expression or a word. */
struct lab_pair {
	char key[LAB_KEY_BYTES];
	char value[LAB_VALUE_BYTES];
};

/* One line. */
struct lab_line {
	enum lab_word word;
	size_t variant; /* 0: [lab] itself */
	int number;     /* in the file */
	char *text;     /* the value, or what stands behind the head's colon; owned */
	/* Of a head: its first word, its second, and the settings; of a pair alone: one setting. */
	char name[LAB_WORD_BYTES];
	char second
		[LAB_VALUE_BYTES]; /* ask: the figure; answer: the expression; hints: the price, as name */
	double amount;             /* number, minutes, pass, price, tolerance; check: seconds */
	struct lab_pair pairs[LAB_PAIRS_MAX];
	size_t pair_count;
};

struct lab {
	char *path;    /* owned */
	char name[64]; /* "05_latency": of the file */
	unsigned number;
	struct lab_line lines[LAB_LINES_MAX];
	size_t line_count;
	char variants[LAB_VARIANTS_MAX][LAB_WORD_BYTES]; /* "" is [lab] */
	size_t variant_count;                            /* at least 1 */
};

/* -EINVAL: the file is wrong, err says where; -ENODATA: it has no [lab]. */
int lab_read(struct lab **lab, const char *path, struct error *err);
/* From memory, for tests. */
int lab_read_text(struct lab **lab, const char *name, const char *text, struct error *err);
void lab_free(struct lab *lab); /* NULL is fine */

/* The next line of a word in [lab] or the variant, behind *at, which begins as 0; NULL: no more. */
const struct lab_line *lab_next(
	const struct lab *lab, size_t variant, enum lab_word word, size_t *at);
/* The one that holds: the variant's, else that of [lab]; NULL: there is none. */
const struct lab_line *lab_line(const struct lab *lab, size_t variant, enum lab_word word);
/* Its text; "" where there is none. */
const char *lab_text(const struct lab *lab, size_t variant, enum lab_word word);
double lab_amount(const struct lab *lab, size_t variant, enum lab_word word, double otherwise);
/* The line of a word with this name; NULL. */
const struct lab_line *lab_named(
	const struct lab *lab, size_t variant, enum lab_word word, const char *name);

/* Whether `choices`, "a | b", has the word; case does not count. */
bool lab_is_among(const char *choices, const char *word);

#endif
